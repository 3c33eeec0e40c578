"""Smaller twins of a fitted tree; the work is done in ``simplifying``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted


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
        Accuracy on the validation rows; of numbers 1 − squared error / variance of y in training, about R².
    measure : str
        What the score is.
    """

    weights_before: int
    weights_after: int
    splits_before: int
    splits_after: int
    score_before: float
    score_after: float
    measure: str = "accuracy"

    def __str__(self) -> str:
        return (
            f"weights {self.weights_before:,} -> {self.weights_after:,}, splits {self.splits_before:,} -> "
            f"{self.splits_after:,}, {self.measure} on validation rows {self.score_before:.2%} -> "
            f"{self.score_after:.2%}"
        )


class SimplifyingMixin:
    """An estimator of one tree of rows that can be made smaller."""

    simplification_: Simplification

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
            How much accuracy, or R², on the validation rows may be lost by taking away more. None is 0.01, or, with
            ``max_terms``, takes nothing away but what that asks for.
        validation : (X, y), default=None
            Rows that judge, best such as the tree has never seen. None holds ``validation_fraction`` of X out of the
            refit; where the tree was trained on them, it looks better on them than it is, and less is taken away.
        epochs : int, default=5
            Epochs of the refit after each stage; the other numbers of the training are the estimator's.

        Returns
        -------
        estimator
            Fitted, of the same kind. Its ``simplification_`` says what was saved; its ``greedy_tree_`` is its
            ``tree_``.

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
