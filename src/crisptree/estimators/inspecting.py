"""What a fitted estimator says about itself; the work is done in ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from crisptree.explain import MarginReport
    from crisptree.explain import Path as TreePath
    from crisptree.inference import CrispTree


class InspectingMixin:
    """Importances, explanations and margins of an estimator with a ``tree_``."""

    if TYPE_CHECKING:
        tree_: CrispTree

    def _html_repr(self) -> str:
        """What a notebook shows: the upper levels of the fitted tree, scikit-learn's own diagram folded under them."""
        diagram = str(estimator_html_repr(self))
        if "tree_" not in self.__dict__:
            return diagram
        from crisptree.export import html

        return f"{html(self)}<details><summary>Parameters</summary>{diagram}</details>"

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """How much of the information gain each feature brings, sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self, "tree_")
        from crisptree.explain import feature_importances

        try:
            return feature_importances(self)
        except TypeError as error:  # so that hasattr says no for trees with modules
            raise AttributeError(str(error)) from error

    @property
    def sparsity_(self) -> float:
        """The share of weights that are exactly zero."""
        check_is_fitted(self, "tree_")
        from crisptree.explain import sparsity

        try:
            return sparsity(self.tree_)
        except TypeError as error:
            raise AttributeError(str(error)) from error

    def explain(self, x: Any, *, top: int = 5) -> TreePath:
        """The way of one row to its leaf, with what pushed it at every split; see ``explain.path``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> print(model.explain(X.iloc[0], top=1).steps[0].pushes[0].name)
        petal length (cm)
        """
        from crisptree.explain import path

        return path(self, x, top=top)

    def margin_report(self, X: Any, *, limits: Sequence[float] | None = None) -> MarginReport:
        """How many rows lie near a boundary of the tree; see ``explain.margin_report``."""
        from crisptree.explain import margin_report

        return margin_report(self, X) if limits is None else margin_report(self, X, limits=limits)

    def report(
        self,
        path: str | PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        title: str | None = None,
        max_samples: int = 800,
        ids: Any = None,
        target: str | None = None,
    ) -> Path:
        """Write a page about the tree that any browser opens, without a network; see ``crisptree.report.write``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(pathlib.Path(folder) / "iris.html", X, y).name
        'iris.html'
        """
        check_is_fitted(self, "tree_")
        from crisptree.report import write

        return write(
            self,
            path,
            X,
            y,
            feature_names=feature_names,
            class_names=class_names,
            title=title,
            max_samples=max_samples,
            ids=ids,
            target=target,
        )
