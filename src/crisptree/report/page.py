"""The page: template, style, scripts and data put together into one file."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import crisptree
from crisptree.export.javascript import read_runtime
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.columns import find_preprocessing
from crisptree.inspection.names import sanitize_names
from crisptree.inspection.validation import check_integer
from crisptree.persistence.writing import atomic_write
from crisptree.report.collect import collect
from crisptree.report.number_page import number_page
from crisptree.report.samples import ReportRows
from crisptree.report.words import cards, notes, subtitle

SCRIPTS = (
    *("data", "draw", "charts", "layout", "view", "nodes"),
    *("tree", "panel", "whatif", "sample", "confusion", "curves", "quality", "main"),
)
"""In the order in which they are joined, after the code of the JavaScript export; they share one scope."""

HIDEABLE = ("confusion", "samples", "blame", "history", "roc", "importances", "pruning")
"""Parts of the page that not every model and not all rows have something for."""


def write(
    model: Any,
    path: str | PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    feature_names: Names = None,
    class_names: Names = None,
    title: str | None = None,
    max_samples: int = 800,
    ids: Any = None,
    target: str | None = None,
) -> Path:
    """Write a report about a fitted tree: one HTML file that needs no network.

    Without rows it shows the tree, its weights and what training counted. With rows also scores at the splits and
    examples; with their classes also accuracy, confusions and the splits that cause errors. The page of a regressor is
    a plainer one: errors, predicted against true numbers, residuals, leaves, importances and rules.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one: the page is about the features that reach the tree.
    path : str or path
        The file to write; its folder must exist.
    X : array-like of shape (n_samples, n_features), default=None
        Rows to send down the tree, best those that the model has not seen.
    y : array-like of shape (n_samples,), default=None
        Their classes.
    feature_names, class_names : list of str, default=None
        Words in place of ``feature_names_in_`` and ``classes_``.
    title : str, default=None
        The page's heading.
    max_samples : int, default=800
        How many rows the page holds to look at: wrong ones first, then some of every leaf. The numbers count all rows.
    ids : array-like of shape (n_samples,), default=None
        What to call the rows; None takes the index of a DataFrame, and else counts them from 0.
    target : str, default=None
        What the classes are classes of; None takes the name of ``y``, or that of the column that the model was
        trained on, where there is one.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(model, pathlib.Path(folder) / "report.html", X, y).name
    'report.html'
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder of a report must exist; {file.parent} does not. Make it first.")
    environment = _environment()  # asks for Jinja2 before any work is done
    view = view_model(model, "a report", class_names=class_names, feature_names=feature_names)
    budget = check_integer("max_samples", max_samples, 0)
    known = getattr(find_preprocessing(view), "target", None) or getattr(view.estimator, "target_name_", None)
    named = target or getattr(y, "name", None) or known
    learned = None if named is None else sanitize_names([named])[0]
    heading = title or ("Decision tree" if learned is None else f"Decision tree for {learned}")
    if view.is_regression:
        page = number_page(environment, view, X, y, heading, budget)
    else:
        page = _render(environment, view, collect(view, ReportRows.of(view, X, y, ids), budget, learned), heading)
    with atomic_write(file) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return file


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "a report needs Jinja2, which is not installed. Install it with: pip install 'crisptree[report]'"
        ) from error
    # Every value is escaped unless it is one of our own files or the data, which ``_json`` makes safe.
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


def _render(environment: Any, view: ModelView, values: dict[str, Any], title: str) -> str:
    from markupsafe import Markup

    style = _resource("report.css")
    script = "\n".join([read_runtime(), *(_resource("scripts", f"{name}.js") for name in SCRIPTS)])
    return environment.from_string(_resource("template.html")).render(
        title=title,
        subtitle=subtitle(view, values),
        version=crisptree.__version__,
        cards=cards(values),
        notes=notes(values, takes_rows=not hasattr(view.estimator, "window")),
        has={name: values[name] is not None for name in HIDEABLE},
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        data=Markup(_json(values)),
    )


def _json(values: dict[str, Any]) -> str:
    """JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    """How a Content-Security-Policy names the one text that it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _resource(*parts: str) -> str:
    return files("crisptree.report").joinpath(*parts).read_text(encoding="utf-8")
