"""What each target of an export is and can do: the one table that functions, command line and documentation share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from crisptree.export.portable import ExportError, Portable

ABILITIES = {
    "oblique": "hyperplanes",
    "axis": "thresholds",
    "conv": 'split="conv"',
    "module": "modules of one's own",
    "missing": "missing values",
    "categories": "categories",
    "forest": "forests",
    "regression": "regression",
    "segmenter": "segmenters",
    "linear": 'leaves="linear"',
    "leaf": "leaf numbers",
}
"""What a model may ask of a target, and how people call it."""


@dataclass(frozen=True)
class ExportTarget:
    """A form that models are written in.

    Parameters
    ----------
    name : str
        As the command line calls it.
    title : str
        What it is, in a few words.
    endings : tuple of str
        What names of its files end in; the first one is usual.
    module : str
        The module of this package with ``write(portable, **options)``, which returns text or bytes, and
        ``answers(portable, written, rows)``, which runs what was written on rows.
    runs_with : str
        What a check needs.
    options : tuple of str
        Keywords that ``write`` takes.
    refuses : mapping
        Abilities that it lacks, each with the reason and what to do instead.
    whole : bool
        Whether ``write`` takes the model itself, because it keeps more than plain values.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    module: str
    runs_with: str
    options: tuple[str, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False

    def check(self, portable: Portable) -> None:
        """Refuse a model that it cannot hold, with the first of the reasons: what no other training would change."""
        for word, reason in self.refuses.items():
            if word in portable.uses:
                raise ExportError(f"{self.title} cannot hold {ABILITIES[word]}: {reason}")

    def write(self, model: Any, **options: Any) -> str | bytes:
        """The model in this form."""
        portable = Portable.of(model, f"an export to {self.title}")
        self.check(portable)
        unknown = [name for name in options if name not in self.options]
        if unknown:
            known = ", ".join(f"`{name}`" for name in self.options) or "none"
            raise ExportError(f"{self.title} takes the options {known}; got `{unknown[0]}`.")
        return self._module().write(model if self.whole else portable, **options)

    def answers(self, model: Any, written: str | bytes, rows: Any) -> Any:
        """What the written model says of rows (``agreement.Rows``), by running it."""
        return self._module().answers(Portable.of(model), written, rows)

    def _module(self) -> Any:
        return import_module(f"crisptree.export.{self.module}")


MODULES_STAY = "its splits are modules of torch. Train with split='oblique' or 'axis', or keep the model file (.crisp)."
IMAGES_STAY = (
    "its rows are windows that must be cut out of images first. Keep the model file (.crisp), or export to JSON."
)

MODELS_STAY = (
    "its leaves say more than one table each. Train with leaves='constant', or export to C, ONNX, JavaScript or JSON."
)

NOT_IN_C = "a network of several layers is no table. Export to ONNX, or train with split='oblique' or 'axis'."

TARGETS = {
    target.name: target
    for target in (
        ExportTarget(
            "c",
            "C99",
            (".h",),
            "c99",
            "a C compiler",
            ("name", "integer", "inputs", "max_flash", "max_stack"),
            refuses={
                "conv": NOT_IN_C,
                "module": MODULES_STAY,
                "segmenter": IMAGES_STAY,
            },
        ),
        ExportTarget(
            "onnx",
            "ONNX",
            (".onnx",),
            "onnx_graph",
            "onnxruntime",
            ("name", "form"),
            refuses={
                "module": "of modules it knows split='conv' only. Export yours with torch.onnx, or train hyperplanes.",
                "segmenter": IMAGES_STAY,
            },
        ),
        ExportTarget(
            "js",
            "JavaScript",
            (".mjs", ".js"),
            "javascript",
            "Node.js",
            refuses={"conv": MODULES_STAY, "module": MODULES_STAY, "segmenter": IMAGES_STAY},
        ),
        ExportTarget(
            "sql",
            "SQL",
            (".sql",),
            "sql_statement",
            "Python's own SQLite",
            ("table",),
            {"conv": MODULES_STAY, "module": MODULES_STAY, "segmenter": IMAGES_STAY, "linear": MODELS_STAY},
        ),
        ExportTarget("json", "a JSON document", (".json",), "json_document", "crisptree itself", whole=True),
        ExportTarget(
            "sklearn",
            "scikit-learn",
            (".joblib",),
            "sklearn_tree",
            "scikit-learn",
            ("form",),
            refuses={
                "oblique": "it knows thresholds on single features only. Train with split='axis'.",
                "conv": MODULES_STAY,
                "module": MODULES_STAY,
                "segmenter": IMAGES_STAY,
                "linear": MODELS_STAY,
            },
        ),
    )
}
"""By name; a new target is one entry here and one module."""


def target_named(name: str) -> ExportTarget:
    """A target, or an error that names all of them."""
    if name not in TARGETS:
        raise ExportError(f"an export must go to one of {', '.join(TARGETS)}; got {name!r}.")
    return TARGETS[name]


def support_table() -> str:
    """The table as Markdown: a line for every ability, a column for every target."""
    lines = [
        "| | " + " | ".join(f"`{name}`" for name in TARGETS) + " |",
        "| --- |" + " --- |" * len(TARGETS),
    ]
    for word, called in ABILITIES.items():
        cells = ["–" if word in target.refuses else "yes" for target in TARGETS.values()]
        lines.append(f"| {called} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
