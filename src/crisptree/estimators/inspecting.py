"""What a fitted estimator says about itself; the work is done in ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from crisptree.explain import MarginReport
    from crisptree.explain import Path as TreePath
    from crisptree.inference import CrispTree


@dataclass(frozen=True)
class Simplification:
    """What a simplification has saved and what it costs; ``print`` it for a text.

    Parameters
    ----------
    weights_before, weights_after : int
        Weights of all splits that are not zero.
    splits_before, splits_after : int
        Splits of the tree.
    score_before, score_after : float
        Accuracy on the validation rows.
    """

    weights_before: int
    weights_after: int
    splits_before: int
    splits_after: int
    score_before: float
    score_after: float

    def __str__(self) -> str:
        return (
            f"weights {self.weights_before:,} -> {self.weights_after:,}, splits {self.splits_before:,} -> "
            f"{self.splits_after:,}, accuracy on validation rows {self.score_before:.2%} -> {self.score_after:.2%}"
        )


class InspectingMixin:
    """Importances, explanations and margins of an estimator with a ``tree_``."""

    if TYPE_CHECKING:
        tree_: CrispTree
        classes_: npt.NDArray[Any]

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

    def simplified(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_terms: int | None = None,
        tolerance: float | None = None,
        validation: tuple[Any, Any] | None = None,
        epochs: int = 5,
    ) -> Self:
        """A new estimator with fewer weights and fewer splits that predicts nearly as well; this one stays as it is.

        Weights go first, by halves of the largest number that any split has. Each split keeps those with the largest
        |w_j| · spread_j, and after each stage all that is left is trained jointly for some epochs, zeros held at zero.
        Then subtrees that bring the least on the validation rows become leaves. Leaf tables are counted again on the
        rows of the refit, splits that part none of these are gone, and tables are shrunk as before; what a tolerance
        allows is measured without shrinkage. A tree from which nothing is taken away is returned as it was.

        Parameters
        ----------
        X, y : array-like
            Rows to refit on, usually those of the training.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        max_terms : int, default=None
            The most weights that a split may keep, whatever that costs.
        tolerance : float, default=None
            How much accuracy on the validation rows may be lost by taking away more. None is 0.01, or, with
            ``max_terms``, takes nothing away but what that asks for.
        validation : (X, y), default=None
            Rows that judge, best such as the tree has never seen. None holds ``validation_fraction`` of X out of the
            refit; where the tree was trained on them, it looks better on them than it is, and less is taken away.
        epochs : int, default=5
            Epochs of the refit after each stage; the other numbers of the training are the estimator's.

        Returns
        -------
        CrispTreeClassifier
            A fitted estimator. Its ``simplification_`` says what was saved; its ``greedy_tree_`` is its ``tree_``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(600, 20))
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 3] > X[:, 7])
        >>> small = model.simplified(X, X[:, 3] > X[:, 7], max_terms=2)
        >>> sorted(np.flatnonzero(small.feature_importances_).tolist())
        [3, 7]
        """
        check_is_fitted(self, "tree_")
        from crisptree.estimators.simplifying import simplify_tree

        return simplify_tree(self, X, y, sample_weight, max_terms, tolerance, validation, epochs)
