"""How a fitted forest is looked at: what it is made of, what it says of a row, and a page about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.bagging import check_tree_number
from crisptree.estimators.row_estimator import visited
from crisptree.inference.forest import CrispForest
from crisptree.typing import MatrixLike

if TYPE_CHECKING:
    from crisptree.explain import ForestPath

ROWS_AT_ONCE = 1024
"""Rows of a table of proximities that are counted at a time."""


class InspectsForest(ABC):
    """What is asked of fitted trees that answer together."""

    SCORE: ClassVar[tuple[str, str]]
    """What ``score`` measures, and how it is written."""

    forest_: CrispForest

    if TYPE_CHECKING:

        @property
        def estimators_(self) -> list[Any]: ...
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __len__(self) -> int: ...

    @abstractmethod
    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """What the forest answers."""

    @abstractmethod
    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """The leaf of every row in every tree."""

    @abstractmethod
    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        """How far two predictions are apart."""

    def proximity(self, X: MatrixLike, Y: MatrixLike | None = None) -> npt.NDArray[np.float64]:
        """The share of trees in which two rows end in the same leaf.  (n, n_features), (m, n_features) → (n, m)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        Y : array-like of shape (m_samples, n_features), default=None
            Rows to hold them against; None holds X against itself.
        """
        here = self.apply(X)
        there = here if Y is None else self.apply(Y)
        shares = np.empty((len(here), len(there)))
        for start in range(0, len(here), ROWS_AT_ONCE):
            rows = here[start : start + ROWS_AT_ONCE]
            same = np.zeros((len(rows), len(there)), dtype=np.int32)
            for tree in range(here.shape[1]):
                same += rows[:, tree, None] == there[None, :, tree]
            shares[start : start + len(rows)] = same / here.shape[1]
        return shares

    def decision_path(self, X: MatrixLike) -> tuple[sparse.csr_matrix, npt.NDArray[np.int64]]:
        """Which nodes every row visits in all trees, as scikit-learn's forests say it.

        Returns
        -------
        indicator : sparse matrix of shape (n, n_nodes)
            Columns are the splits and then the leaves of the first tree, then those of the second, and so on.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            The columns of tree k are those from ``n_nodes_ptr[k]`` up to ``n_nodes_ptr[k + 1]``.
        """
        structures = [tree.structure for tree in self.forest_] if "forest_" in self.__dict__ else []
        paths = [visited(shape, leaves) for shape, leaves in zip(structures, self.apply(X).T, strict=True)]
        return sparse.hstack(paths, format="csr"), np.cumsum([0, *(path.shape[1] for path in paths)])

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The mean of the trees' importances, sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self, "forest_")
        from crisptree.explain import feature_importances

        try:
            each = [feature_importances(tree) for tree in self.forest_]
        except TypeError as error:  # so that hasattr says no for trees with modules
            raise AttributeError(str(error)) from error
        mean = np.mean(each, axis=0)
        total = mean.sum()
        mean = mean / total if total > 0 else mean
        encoder = self.__dict__.get("encoder_")
        return mean if encoder is None else np.asarray(encoder.preprocessing_.by_input(mean))

    def get_depth(self) -> int:
        """The largest number of splits that a row may visit in a tree."""
        check_is_fitted(self, "forest_")
        return max(tree.structure.depth for tree in self.forest_)

    def get_n_leaves(self) -> int:
        """The number of leaves of all trees together."""
        check_is_fitted(self, "forest_")
        return sum(tree.structure.n_leaves for tree in self.forest_)

    def report(
        self, path: str | PathLike[str], X: Any = None, y: Any = None, *, number: int | None = None, **options: Any
    ) -> Path:
        """Write a page about one of the trees, with the forest's scores in its title; see ``crisptree.report.write``.

        Parameters
        ----------
        path : str or path
            The file to write.
        X, y : array-like, default=None
            Rows and their classes, or numbers.
        number : int, default=None
            Which tree; None takes the one that answers most as the forest does on X, or the first.
        **options
            As the ``report`` of one tree takes them.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **given, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.report(pathlib.Path(folder) / "iris.html", X, y).name
        'iris.html'
        """
        check_is_fitted(self, "forest_")
        trees, said = self.estimators_, [f"{len(self)} trees"]
        name, form = self.SCORE
        if X is not None:
            if number is None:
                answers = self.predict(X)
                number = int(np.argmin([self._difference(tree.predict(X), answers) for tree in trees]))
            if y is not None:
                said.append(f"{name} {self.score(X, y):{form}}")
        out_of_bag = getattr(self, "oob_score_", np.nan)
        if np.isfinite(out_of_bag):
            said.append(f"out of bag {out_of_bag:{form}}")
        number = check_tree_number(number or 0, len(self))
        title = f"Tree {number} of a forest ({', '.join(said)})"
        return trees[number].report(path, X, y, **{"title": title} | options)

    def explain(self, x: Any, *, top: int = 5) -> ForestPath:
        """Explain the prediction of one row by the paths through all trees; see ``explain.explain_forest``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **given, random_state=0).fit(X, y)
        >>> said = forest.explain(X.iloc[0], top=1)
        >>> said.n_for, len(said.paths)
        (3, 3)
        """
        from crisptree.explain import explain_forest

        return explain_forest(self, x, top=top)
