"""What the trees of a forest say of one row, and what pushed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.view import html
from crisptree.view.paths import Path, path

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForestPath:
    """The ways of one row through all trees of a forest; ``print`` it for a text.

    Parameters
    ----------
    paths : tuple of Path
        That of every tree.
    predicted : object
        What the forest answers.
    probabilities : ndarray of shape (n_classes,)
        The mean of the trees' tables; where numbers are predicted, of their means and then of their variances.
    pushes : tuple of (str, float)
        The features with the largest part in the turns of all trees, largest first, and their shares.
    """

    paths: tuple[Path, ...]
    predicted: Any
    probabilities: Doubles
    pushes: tuple[tuple[str, float], ...]

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are predicted."""
        return not len(self.paths[0].classes)

    @property
    def n_for(self) -> int:
        """How many trees answer as the forest does."""
        return sum(bool(np.all(way.predicted == self.predicted)) for way in self.paths)

    @property
    def order(self) -> list[int]:
        """The trees by their numbers: first those that speak most clearly for the answer, or are nearest to it."""
        if self.has_numbers:
            return sorted(range(len(self.paths)), key=lambda tree: float(np.abs(self._off(tree)).sum()))
        winner = int(self.probabilities.argmax())
        return sorted(range(len(self.paths)), key=lambda tree: -float(self.paths[tree].probabilities[winner]))

    def _off(self, tree: int) -> Any:
        return np.asarray(self.paths[tree].predicted) - np.asarray(self.predicted)

    def _answer(self) -> str:
        if not self.has_numbers:
            return f"{self.predicted} ({self.probabilities.max():.1%}): {self.n_for} of {len(self.paths)} trees"
        said = np.array([way.predicted for way in self.paths], dtype=float)
        low, high = (_in_words(found) for found in (said.min(axis=0), said.max(axis=0)))
        return f"{_in_words(self.predicted)}: {len(self.paths)} trees say {low} to {high}"

    def _says(self, way: Path) -> tuple[str, str]:
        """What a tree answers, and its share of that class."""
        if self.has_numbers:
            return _in_words(way.predicted), ""
        return str(way.predicted), f"{way.probabilities.max():.1%}"

    def __str__(self) -> str:
        lines = [self._answer()]
        if self.pushes:
            lines.append("pushed most by " + ", ".join(f"{name} ({part:.0%})" for name, part in self.pushes))
        for tree in self.order:
            way = self.paths[tree]
            turns = " ".join(f"{step.split}{'R' if step.goes_right else 'L'}" for step in way.steps)
            answer, share = self._says(way)
            says = f"{answer} ({share})" if share else answer
            lines.append(f"tree {tree}: {says} in leaf {way.leaf}, splits {turns}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = []
        for tree in self.order:
            way = self.paths[tree]
            turns = ", ".join(f"{step.split} {'right' if step.goes_right else 'left'}" for step in way.steps)
            rows.append((f"tree {tree}", *self._says(way), turns))
        return html.table(("", "says", "share", "splits"), rows, self._answer())


def _in_words(numbers: Any) -> str:
    return ", ".join(f"{number:.4g}" for number in np.atleast_1d(numbers))


def votes(model: Any, x: Any, *, top: int = 5) -> ForestPath:
    """What every tree of a forest says of one row, by which splits, and which features pushed it most.

    Parameters
    ----------
    model : CrispForestClassifier or CrispForestRegressor
        Fitted.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape
        One row.
    top : int, default=5
        How many features to name at each split, and for the whole forest. The part of a feature is the sum over all
        splits on the row's ways of |w_j (x_j − mean_j)|, as a share of all features named there.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispForestClassifier, explain
    >>> X, y = np.array([[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0]]), ["low", "low", "high", "high"]
    >>> forest = CrispForestClassifier(n_estimators=3, bootstrap=False, max_depth=1, random_state=0).fit(X, y)
    >>> said = explain.votes(forest, [8.5, 5.0])
    >>> print(str(said).splitlines()[0])
    high (100.0%): 3 of 3 trees
    >>> said.pushes
    (('x0', 1.0),)
    """
    if not hasattr(model, "forest_"):
        raise TypeError(
            f"explain.votes must have a fitted crisp forest; got a {type(model).__name__}. A single tree is explained "
            "by explain.path."
        )
    paths = tuple(path(tree, x, top=top) for tree in model.estimators_)
    probabilities = np.mean([way.probabilities for way in paths], axis=0)
    answer = model.forest_.meaning.answers(probabilities[None])[0]
    parts: dict[str, float] = {}
    for way in paths:
        for step in way.steps:
            total = sum(abs(push.amount) for push in step.pushes)
            for push in step.pushes:
                parts[push.name] = parts.get(push.name, 0.0) + abs(push.amount) / max(total, np.finfo(float).tiny)
    ranked = sorted(parts.items(), key=lambda part: -part[1])[:top]
    pushes = tuple((name, part / sum(parts.values())) for name, part in ranked)
    classes = paths[0].classes
    predicted = classes[int(answer)] if len(classes) else float(answer[0]) if len(answer) == 1 else answer
    return ForestPath(paths, predicted, probabilities, pushes)
