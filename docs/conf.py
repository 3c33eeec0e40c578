"""Configuration of Sphinx (``make docs``). Neither building nor reading the pages uses the network."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib as mpl
from docutils import nodes

import crisptree

sys.path.insert(0, str(Path(__file__).parent))
from parameter_groups import grouped

# Examples must not depend on the data sets of the machine: both folders where loaders search are empty here.
NOWHERE = Path(__file__).parent.parent / "build" / "no-data"
os.environ["CRISPTREE_DATA"] = os.environ["XDG_CACHE_HOME"] = os.environ["LOCALAPPDATA"] = str(NOWHERE)
mpl.use("Agg")

project = "crisptree"
author = "The crisptree developers"
release = version = crisptree.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
]
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
exclude_patterns = [
    "results/segmentation",
    "results/forests",
    "auto_examples/**/*.ipynb",
    "auto_examples/*.py.md5",
]
nitpicky = True
suppress_warnings = ["config.cache"]  # autosummary_context holds a function
smartquotes = False  # parameters have values such as "auto"
toc_object_entries_show_parents = "hide"
# Types of class attributes that have no page of their own.
nitpick_ignore = [
    ("py:class", f"crisptree.targets.{name}")
    for name in ("classification.ClassEncoding", "regression.RegressionEncoding")
]

# Pages are plain Markdown that repository browsers show as well: links between files, headings as anchors.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["templates"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_(?!supplement)",  # the supplement needs data; its pictures are kept
    "capture_repr": (),
    "download_all_examples": False,
    "image_scrapers": ("animations.scrape", "matplotlib"),
    "min_reported_time": 1e9,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "gallery_order.GalleryOrder",
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "crisptree"
html_static_path = ["static"]
html_css_files = ["crisptree.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

SKIPPED = re.compile(
    r"set_\w+_request|get_metadata_routing|set_output"
    r"|[A-Z_]+|check_rows|\w*input_schema|in_training_order|from_flat|\w+_parameters"
)
MARKUP = re.compile(r"\||(?<=\w)_(?!\w)")
"""Text that reStructuredText would read as a substitution or link: absolute values and names such as ``tree_``."""

PAGE = re.compile(r"docs/([\w/-]+)\.md")
"""Pages that docstrings name by their files."""

EXAMPLE = re.compile(r"\]\((?:\.\./)+examples/(plot_\w+)\.py\)")
"""Links of pages to examples: files in a repository browser, pages of the gallery on the site."""

METHODS = (
    "fit",
    "partial_fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_std",
    "predict_interval",
    "score",
)
"""Methods of estimators that come first; the others follow in alphabetical order."""


def ordered_members(module: str, name: str) -> list[tuple[str, str]]:
    """Return the directives and names of an estimator's own public members, methods first."""
    thing = getattr(import_module(module), name)
    own = [cls for cls in thing.__mro__ if cls.__module__.startswith("crisptree")]
    found = {member: vars(cls)[member] for cls in own[::-1] for member in vars(cls) if not member.startswith("_")}
    found = {member: what for member, what in found.items() if not SKIPPED.fullmatch(member)}
    properties = sorted(name for name, what in found.items() if isinstance(what, (property, cached_property)))
    order = {method: number for number, method in enumerate(METHODS)}
    methods = [name for name in set(found) - set(properties) if inspect.isroutine(getattr(thing, name))]
    methods.sort(key=lambda method: (order.get(method, len(order)), method))
    return [("method", member) for member in methods] + [("property", member) for member in properties]


autosummary_context = {"ordered_members": ordered_members}


def skip_routing(app: Any, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Skip members of estimators that scikit-learn adds or that other modules of the package use."""
    return True if SKIPPED.fullmatch(name) and kind != "module" else None


def escape(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape markup in docstrings, which are plain text with ``code`` and doctests."""
    in_doctest = False
    for number, line in enumerate(lines):
        in_doctest = bool(line.strip()) and (in_doctest or line.lstrip().startswith(">>>"))
        if not in_doctest:
            parts = line.split("``")
            parts[::2] = [PAGE.sub(r":doc:`/\1`", MARKUP.sub(r"\\\g<0>", part)) for part in parts[::2]]
            lines[number] = "``".join(parts)


def group_parameters(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Group the parameters of estimators by purpose."""
    if name in ("crisptree.CrispTreeClassifier", "crisptree.CrispSegmenter"):
        lines[:] = grouped(lines)


def link_gallery(app: Any, name: str, text: list[str]) -> None:
    """Lead links to examples to their pages in the gallery."""
    text[0] = EXAMPLE.sub(rf"]({'../' * name.count('/')}auto_examples/\1.rst)", text[0])


def drop_elided(text: str) -> str:
    """Remove the outputs of a doctest that leave something out."""
    lines = text.splitlines()
    for example in reversed(doctest.DocTestParser().get_examples(text)):
        if "..." in example.want:
            start = example.lineno + example.source.count("\n")
            del lines[start : start + example.want.count("\n")]
    return "\n".join(lines)


def strip_blocks(app: Any, document: Any) -> None:
    """Remove the blank line that ends doctests in Markdown, and elided outputs where the whole output follows."""
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip()
        following = block.next_node(descend=False, siblings=True)
        if isinstance(following, nodes.literal_block) and following.get("language") == "text":
            text = drop_elided(f"{text}\n").rstrip()
        if text != block.astext():
            block[:] = [nodes.Text(text)]
            block.rawsource = text


def setup(app: Any) -> None:
    app.connect("source-read", link_gallery)
    app.connect("doctree-read", strip_blocks)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", escape, priority=100)  # before numpydoc reads the docstring
    app.connect("autodoc-process-docstring", group_parameters, priority=900)  # after it
