"""Export formats: one table of what each supports, which functions, command line and documentation share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from crisptree.export.agreement import Agreement, EncodedRows, Predictions, compare, encode_rows
from crisptree.export.portable import ExportError, Portable

FEATURES = {
    "oblique": "oblique splits",
    "axis": "axis-aligned splits",
    "conv": 'split="conv"',
    "module": "custom modules",
    "missing": "missing values",
    "categories": "categories",
    "forest": "forests",
    "regression": "regression",
    "segmenter": "segmenters",
    "linear": 'leaves="linear"',
    "leaf": "leaf numbers",
}
"""What a model may need of a format, and its name in messages."""


@dataclass(frozen=True)
class ExportFormat:
    """A format that models are exported to.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Name in messages.
    endings : tuple of str
        Endings of file names; the first one is usual.
    module : str
        Module of this package with ``render(portable, **options)``, which returns text or bytes, and
        ``run(portable, written, rows)``, which runs the written model on rows.
    runs_with : str
        What a check needs.
    options : tuple of str
        Keywords of ``render``.
    unsupported : mapping
        Keys of ``FEATURES`` that it lacks, each with the reason and what to do instead.
    takes_estimator : bool
        Whether ``render`` takes the model itself, because it stores more than plain values.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    module: str
    runs_with: str
    options: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    takes_estimator: bool = False

    def check(self, portable: Portable) -> None:
        """Reject a model that needs something unsupported."""
        for word, reason in self.unsupported.items():
            if word in portable.uses:
                raise ExportError(f"{self.title} does not support {FEATURES[word]}: {reason}")

    def write(self, model: Any, **options: Any) -> str | bytes:
        """Export a model to this format."""
        portable = Portable.of(model, f"an export to {self.title}")
        self.check(portable)
        unknown = [name for name in options if name not in self.options]
        if unknown:
            known = ", ".join(f"`{name}`" for name in self.options) or "none"
            raise ExportError(f"{self.title} takes the options {known}; got `{unknown[0]}`.")
        written: str | bytes = self._module().render(model if self.takes_estimator else portable, **options)
        return written

    def run(self, model: Any, written: str | bytes, rows: EncodedRows) -> Predictions:
        """Run the written model on rows."""
        predictions: Predictions = self._module().run(Portable.of(model), written, rows)
        return predictions

    def _module(self) -> Any:
        return import_module(f"crisptree.export.{self.module}")


NO_MODULES = "its splits are modules of torch. Train with split='oblique' or 'axis', or keep the model file (.crisp)."
NO_IMAGES = (
    "its rows are windows that must be cut out of images first. Keep the model file (.crisp), or export to JSON."
)
NO_LINEAR_LEAVES = (
    "its leaves hold constants only. Train with leaves='constant', or export to C, ONNX, JavaScript or JSON."
)
NO_NETWORKS = "a network of several layers is not a table. Export to ONNX, or train with split='oblique' or 'axis'."

_LINEAR_SPLITS_ONLY = {"conv": NO_MODULES, "module": NO_MODULES, "segmenter": NO_IMAGES}

FORMATS = {
    each.name: each
    for each in (
        ExportFormat(
            "c",
            "C99",
            (".h",),
            "c99",
            "a C compiler",
            ("name", "integer", "inputs", "max_flash", "max_stack"),
            _LINEAR_SPLITS_ONLY | {"conv": NO_NETWORKS},
        ),
        ExportFormat(
            "onnx",
            "ONNX",
            (".onnx",),
            "onnx_graph",
            "onnxruntime",
            ("name", "form"),
            {
                "module": "split='conv' is the only module that it knows. Export yours with torch.onnx, or train with "
                "split='oblique'.",
                "segmenter": NO_IMAGES,
            },
        ),
        ExportFormat("js", "JavaScript", (".mjs", ".js"), "javascript", "Node.js", unsupported=_LINEAR_SPLITS_ONLY),
        ExportFormat(
            "sql",
            "SQL",
            (".sql",),
            "sql_statement",
            "Python's own SQLite",
            ("table",),
            _LINEAR_SPLITS_ONLY | {"linear": NO_LINEAR_LEAVES},
        ),
        ExportFormat("json", "a JSON document", (".json",), "json_document", "crisptree itself", takes_estimator=True),
        ExportFormat(
            "sklearn",
            "scikit-learn",
            (".joblib",),
            "sklearn_tree",
            "scikit-learn",
            ("form",),
            {"oblique": "its splits compare one feature with a threshold. Train with split='axis'."}
            | _LINEAR_SPLITS_ONLY
            | {"linear": NO_LINEAR_LEAVES},
        ),
    )
}
"""By name; a new format is one entry here and one module."""


def find_format(name: str) -> ExportFormat:
    """Return a format, or raise an error that lists all of them."""
    if name not in FORMATS:
        raise ExportError(f"an export must go to one of {', '.join(FORMATS)}; got {name!r}.")
    return FORMATS[name]


def support_table() -> str:
    """Markdown table of the features that each format supports."""
    lines = [
        "| | " + " | ".join(f"`{name}`" for name in FORMATS) + " |",
        "| --- |" + " --- |" * len(FORMATS),
    ]
    for word, name in FEATURES.items():
        cells = ["–" if word in each.unsupported else "yes" for each in FORMATS.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(model: Any, to: str, **options: Any) -> str | bytes:
    """Export a fitted model to a format, by the name of the format.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispSegmenter or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    to : str
        One of the formats of ``crisptree export``; docs/export/index.md has a table of what each supports.
    **options
        Options of the format.

    Returns
    -------
    str or bytes
        Content of the file.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> type(export.write(model, "sklearn")).__name__
    'bytes'
    """
    return find_format(to).write(model, **options)


def check(model: Any, X: Any, to: str, **options: Any) -> Agreement:
    """Export a model, run the export on rows, and compare its predictions with the model row by row.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        As in ``write``.
    X : array-like or table
        Rows as the model takes them.
    to : str
        The format.
    **options
        Options of the format.

    Returns
    -------
    Agreement
        How many rows reach the same leaf, and whether rounding explains those that do not.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> agreement = export.check(model, X, "sklearn")
    >>> agreement.rows, agreement.equal_leaves, agreement.holds
    (4, 4, True)
    """
    return check_written(model, encode_rows(model, X), to, find_format(to).write(model, **options))


def check_written(model: Any, rows: EncodedRows, to: str, written: str | bytes) -> Agreement:
    """Run an earlier export on rows, and compare its predictions with the model."""
    return compare(model, rows.X, find_format(to).run(model, written, rows), to)
