"""The page of a report: arguments, template and output file."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import crisptree
from crisptree.files import atomic_write
from crisptree.inspection import Names, view_model
from crisptree.inspection.display import sanitize_names
from crisptree.inspection.validation import check_integer
from crisptree.report.contents import build_context
from crisptree.report.encoding import csp_hash, read_resource
from crisptree.report.samples import ReportRows


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

    Without rows it shows the tree, its weights and the statistics of the training. With rows also scores at the splits
    and sample rows; with their classes also accuracy, confusions and the splits that cause errors, with the values of a
    regression its errors, predicted against true values and residuals.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispTreeRegressor or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one: the page is about the features that reach the tree.
    path : str or path
        The file to write; its folder must exist.
    X : array-like of shape (n_samples, n_features), default=None
        Rows to predict, best those of a test set.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their classes or numbers.
    feature_names, class_names : list of str, default=None
        Names in place of ``feature_names_in_`` and ``classes_``.
    title : str, default=None
        Heading of the page.
    max_samples : int, default=800
        Number of rows shown one by one: misclassified ones first, then some of every leaf. Statistics use all rows.
    ids : array-like of shape (n_samples,), default=None
        Identifiers of the rows; None takes the index of a DataFrame, and else numbers them from 0.
    target : str, default=None
        Name of the target; None takes the name of ``y``, or that of the column that the model was trained on.

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
    environment = _make_environment()  # fails before any work is done where Jinja2 is missing
    view = view_model(model, "a report", class_names=class_names, feature_names=feature_names)
    max_samples = check_integer("max_samples", max_samples, 0)
    stored = getattr(view.preprocessing, "target", None) or getattr(view.estimator, "target_name_", None)
    name = target or getattr(y, "name", None) or stored
    target = None if name is None else sanitize_names([name])[0]
    if target is not None and class_names is None and view.n_targets == 1:
        view = replace(view, class_names=[target])
    heading = title or ("Decision tree" if target is None else f"Decision tree for {target}")
    page = _render(environment, heading, build_context(view, ReportRows.of(view, X, y, ids), max_samples, target))
    with atomic_write(file) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return file


def _make_environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "a report needs Jinja2, which is not installed. Install it with: pip install 'crisptree[report]'"
        ) from error
    # Every value is escaped unless it is one of our own files or the data, which ``to_json`` makes safe.
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


def _render(environment: Any, title: str, context: dict[str, Any]) -> str:
    from markupsafe import Markup

    style = read_resource("page.css")
    return str(
        environment.from_string(read_resource("page.html")).render(
            title=title, version=crisptree.__version__, style=Markup(style), style_hash=csp_hash(style), **context
        )
    )
