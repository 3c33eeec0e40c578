"""The way of one row: what each split asked, what pushed the row to which side, and what that did to the classes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree
from crisptree.view import html
from crisptree.view.checks import whole_number
from crisptree.view.influence import most_influential
from crisptree.view.model import ModelView, view_of

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Push:
    """One feature's part in something.

    Parameters
    ----------
    feature : int
        Its column.
    name : str
        Its name.
    value : float
        Its value in the row that is explained.
    amount : float
        What it adds: to the score of a split (above zero pushes right, below zero left), or to the row's own value.
    says : str
        What it says about the row in the words of a table, such as "plan is basic".
    """

    feature: int
    name: str
    value: float
    amount: float
    says: str = ""


@dataclass(frozen=True, eq=False)
class Step:
    """One split on a row's way.

    Parameters
    ----------
    split : int
        Its number.
    score : float
        f(x), as the prediction computes it, in single precision; above zero the row goes right.
    margin : float
        The score in units of the spread of the training rows' scores at this split. Where all of them scored the same
        it is in units of that score.
    goes_right : bool
        The turn taken.
    pushes : tuple of Push
        The features with the largest |w_j (x_j − mean_j)|, largest first, without those that add nothing; none for a
        module.
    offset : float
        The score of the mean training row. With the amounts of all features it adds up to the score. For a module,
        which has no such sum, the score itself.
    before, after : ndarray of shape (n_classes,)
        Class frequencies of the training rows at the split, and at the child that the row goes to; of a leaf its table,
        in which ``leaf_prior`` counts too. Where numbers are predicted, means and then variances.
    """

    split: int
    score: float
    margin: float
    goes_right: bool
    pushes: tuple[Push, ...]
    offset: float
    before: Doubles
    after: Doubles


@dataclass(frozen=True, eq=False)
class Path:
    """The way of one row to its leaf; ``print`` it for a text.

    Parameters
    ----------
    steps : tuple of Step
        The splits from the root on.
    leaf, node : int
        The leaf's number among the leaves, and among all nodes (splits first).
    predicted : object
        The class label, or the number, or numbers.
    probabilities : ndarray of shape (n_classes,)
        The leaf's table: where numbers are predicted, means and then variances.
    classes : ndarray of shape (n_classes,)
        What its columns mean; empty where numbers are predicted.
    """

    steps: tuple[Step, ...]
    leaf: int
    node: int
    predicted: Any
    probabilities: Doubles
    classes: npt.NDArray[Any]

    def _said(self, table: Doubles) -> str:
        """What a node says of what is predicted in the end: the share of the class, or the means."""
        if len(self.classes):
            return f"{table[int(self.probabilities.argmax())]:.1%}"
        return ", ".join(f"{mean:.4g}" for mean in table[: len(table) // 2])

    @property
    def _answer(self) -> str:
        if len(self.classes):
            return f"{self.predicted} ({self._said(self.probabilities)})"
        half = len(self.probabilities) // 2
        pairs = zip(self.probabilities[:half], np.sqrt(self.probabilities[half:]), strict=True)
        return ", ".join(f"{mean:.4g} ± {spread:.2g}" for mean, spread in pairs)

    def __str__(self) -> str:
        name = str(self.predicted) if len(self.classes) else "mean"
        lines = []
        for step in self.steps:
            turn = "right" if step.goes_right else "left"
            lines.append(f"split {step.split}: {turn}, score {step.score:.4g} ({abs(step.margin):.2f} spreads away)")
            for side, sign in (("right", 1), ("left", -1)):
                named = [f"{p.says} ({p.amount:+.3g})" for p in step.pushes if p.amount * sign > 0]
                if named:
                    lines.append(f"    pushed {side} by {', '.join(named)}")
            lines.append(f"    {name}: {self._said(step.before)} -> {self._said(step.after)}")
        lines.append(f"leaf {self.leaf}: {self._answer}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = []
        for step in self.steps:
            turn = "right" if step.goes_right else "left"
            pushes = [
                f"{escape(p.name)} = {p.value:.4g} ({'→' if p.amount > 0 else '←'} {p.amount:+.3g})"
                for p in step.pushes
            ]
            way = f"{turn}, score {step.score:.4g}, {abs(step.margin):.2f} spreads away"
            share = f"{self._said(step.before)} → {self._said(step.after)}"
            rows.append((f"split {step.split}", way, html.Markup("<br>".join(pushes)), share))
        name = str(self.predicted) if len(self.classes) else "mean"
        return html.table(("", "turn", "pushed by", name), rows, f"leaf {self.leaf}: {self._answer}")


def path(model: Any, x: Any, *, top: int = 5) -> Path:
    """The way of one row through a fitted tree.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape
        One row. It goes through the earlier steps of a Pipeline; what is said is about the features that leave them.
    top : int, default=5
        How many features to name at each split.

    Returns
    -------
    Path
        Its steps, its leaf and the class predicted there.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> way = explain.path(model, [8.5, 5.0])
    >>> str(way.predicted), len(way.steps), [push.name for push in way.steps[0].pushes]
    ('high', 1, ['x0'])
    >>> way.steps[0].before.tolist(), way.steps[0].after.tolist()  # of "high" and "low"
    ([0.5, 0.5], [1.0, 0.0])
    """
    view = view_of(model, "explain.path")
    return walk(view, view.row(x), whole_number("top", top, 0))


def walk(view: ModelView, row: Singles, top: int) -> Path:
    """The path of one row (1, n_features), naming the ``top`` largest pushes at each split."""
    tree, structure, steps = view.tree, view.tree.structure, []
    leaf = int(view.leaves(row)[0])
    for (split, goes_right), child in zip(structure.path(leaf), structure.nodes_to(leaf)[1:], strict=True):
        score = float(tree.scores(row, split)[0])
        amounts, offset = contributions(tree, row[0], split) if isinstance(tree, FlatTree) else (np.zeros(0), score)
        pushes, margin = largest_pushes(view, row[0], amounts, amounts, top), score / margin_units(tree)[split]
        steps.append(Step(split, score, margin, goes_right, pushes, offset, view.tables[split], view.tables[child]))
    probabilities = tree.leaf_values(np.array([leaf]), row)[0]
    predicted = view.predicted(leaf, row)
    return Path(tuple(steps), leaf, structure.n_splits + leaf, predicted, probabilities, view.classes)


def largest_pushes(view: ModelView, row: Singles, amounts: Doubles, sizes: Doubles, top: int) -> tuple[Push, ...]:
    """What some features of a row add: those of the largest sizes, largest first, without those that add nothing."""
    chosen, names = most_influential(sizes, top), view.feature_names
    return tuple(
        Push(int(j), names[j], float(row[j]), float(amounts[j]), view.says(int(j), float(row[j]))) for j in chosen
    )


def contributions(tree: FlatTree, row: Singles, split: int) -> tuple[Doubles, float]:
    """w_j (x_j − mean_j) of every feature, and the score of the mean row; together the score.  (n_features,)"""
    weight, mean = tree.weight[split].astype(np.float64), tree.statistics.scaling.mean
    return weight * (row - mean), float(weight @ mean + tree.bias[split])


def margin_units(tree: CrispTree) -> Doubles:
    """What scores are divided by to become margins; never zero.  (n_splits,)"""
    statistics = tree.statistics
    same = np.abs(statistics.score_mean)
    return np.where(statistics.score_spread > 0, statistics.score_spread, np.where(same > 0, same, 1.0))
