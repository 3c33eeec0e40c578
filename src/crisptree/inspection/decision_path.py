"""The decision path of one row through a tree: scores, feature contributions and node values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree
from crisptree.inspection.display import Printable, format_change, format_moments, format_number, format_short
from crisptree.inspection.linear_splits import rank_features
from crisptree.inspection.model_view import ModelView, view_model
from crisptree.inspection.sentences import RangeCondition, describe_leaf, is_readable, make_condition, uses_one_column
from crisptree.inspection.validation import check_integer

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Push:
    """The contribution of one feature.

    Parameters
    ----------
    feature : int
        Its column.
    name : str
        Its name.
    value : float
        Its value in the row that is explained.
    amount : float
        What it adds to the score of a split (above zero pushes right, below zero left), or to the value of the row.
    text : str
        Its value as text, such as "plan is basic".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> push = explain.path(model, X[0], top=1).steps[0].pushes[0]
    >>> bool(abs(push.value - X[0, push.feature]) < 1e-5)
    True
    """

    feature: int
    name: str
    value: float
    amount: float
    text: str = ""


@dataclass(frozen=True, eq=False)
class Step:
    """One split on a decision path.

    Parameters
    ----------
    split : int
        Its index.
    score : float
        f(x) in single precision, as prediction computes it; above zero the row goes right.
    margin : float
        The score in standard deviations of the training scores at this split; where all of these are equal, in units
        of their value.
    goes_right : bool
        True if the row goes to the right child.
    pushes : tuple of Push
        The features with the largest |w_j (x_j − mean_j)|, largest first, without zeros; empty for a module.
    offset : float
        The score of the mean training row; offset and the amounts of all features add up to the score. For a module
        the score itself.
    before, after : ndarray of shape (n_classes,)
        Class frequencies of the training rows at the split, and at the child that the row goes to; at a leaf its
        probabilities, which include ``leaf_prior``. For regression, means and then variances.
    condition : str
        What the row satisfies at a split on one column, such as "months = 12 ≤ 29"; empty for other splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> step = explain.path(model, X[0]).steps[0]
    >>> step.split, step.goes_right == (step.score > 0)
    (0, True)
    """

    split: int
    score: float
    margin: float
    goes_right: bool
    pushes: tuple[Push, ...]
    offset: float
    before: Doubles
    after: Doubles
    condition: str = ""


@dataclass(frozen=True, eq=False)
class Path(Printable):
    """The decision path of one row; ``print`` shows it as text.

    Parameters
    ----------
    steps : tuple of Step
        The splits from the root on.
    leaf, node : int
        Index of the leaf among the leaves, and among all nodes (splits first).
    predicted : object
        The predicted class label, number or numbers.
    probabilities : ndarray of shape (n_classes,)
        Class probabilities of the leaf; for regression, means and then variances.
    classes : ndarray of shape (n_classes,)
        Class labels; empty for regression.
    sentence : str
        The leaf in one sentence, as in ``export.sentences``; empty where splits have more than three columns, and for
        trees of more than 16 leaves.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> path = explain.path(model, X[0])
    >>> len(path.steps) <= 2, bool(path.predicted == model.predict(X[:1])[0])
    (True, True)
    """

    steps: tuple[Step, ...]
    leaf: int
    node: int
    predicted: Any
    probabilities: Doubles
    classes: npt.NDArray[Any]
    sentence: str = ""

    def _format(self, values: Doubles, *, final: bool = False) -> str:
        """Format what a node predicts: the frequency of the predicted class, or the means; of the leaf all of it."""
        if len(self.classes):
            share = f"{values[int(self.probabilities.argmax())]:.1%}"
            return f"{self.predicted} ({share})" if final else share
        means, variances = np.split(values, 2)
        return format_moments(means, np.sqrt(variances)) if final else _format_values(means)

    def __str__(self) -> str:
        name = str(self.predicted) if len(self.classes) else "mean"
        lines = []
        for step in self.steps:
            turn = "right" if step.goes_right else "left"
            score = format_number(step.score)
            distance = f"{abs(step.margin):.2f} standard deviations from the boundary"
            lines.append(f"split {step.split}: {turn}, score {score} ({distance})")
            if step.condition:
                lines.append(f"    {step.condition}")
            for side, sign in () if step.condition else (("right", 1), ("left", -1)):
                named = [f"{p.text} ({format_change(p.amount, 3)})" for p in step.pushes if p.amount * sign > 0]
                if named:
                    lines.append(f"    contributions to {side}: {', '.join(named)}")
            lines.append(f"    {name}: {self._format(step.before)} -> {self._format(step.after)}")
        lines.append(f"leaf {self.leaf}: {self._format(self.probabilities, final=True)}")
        if self.sentence:
            lines.append(self.sentence)
        return "\n".join(lines)


def path(model: Any, x: Any, *, top: int = 5) -> Path:
    """Trace the decision path of one row through a fitted tree.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape, or Pixel
        One row. It goes through the earlier steps of a Pipeline; the path is about the features that these output.
        A segmenter or pixel regressor takes a ``Pixel`` of an image; its features are the values of the window.
    top : int, default=5
        Number of features listed at each split.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, shrinkage=0.0, random_state=0).fit(X, y)
    >>> path = explain.path(model, [8.5, 5.0])
    >>> str(path.predicted), len(path.steps), [push.name for push in path.steps[0].pushes]
    ('high', 1, ['x0'])
    >>> path.steps[0].before.tolist(), path.steps[0].after.tolist()  # of "high" and "low"
    ([0.5, 0.5], [1.0, 0.0])
    """
    view = view_model(model, "explain.path")
    return trace_path(view, view.prepare_row(x), check_integer("top", top, 0))


def trace_path(view: ModelView, row: Singles, top: int) -> Path:
    """Trace the path of one prepared row, (1, n_features), with the ``top`` largest contributions at each split."""
    tree, structure, steps = view.tree, view.tree.structure, []
    leaf = int(view.apply(row)[0])
    for (split, goes_right), child in zip(structure.path(leaf), structure.nodes_to(leaf)[1:], strict=True):
        score = float(tree.scores(row, split)[0])
        amounts, offset = np.zeros(0), score
        if isinstance(tree, FlatTree):
            amounts, offset = compute_contributions(tree, row[0], split)
        pushes, margin = rank_pushes(view, row[0], amounts, amounts, top), score / margin_scales(tree)[split]
        before, after = view.node_values[split], view.node_values[child]
        condition = describe_condition(view, row[0], split, goes_right=bool(goes_right))
        steps.append(Step(split, score, margin, goes_right, pushes, offset, before, after, condition))
    probabilities = tree.leaf_values(np.array([leaf]), row)[0]
    predicted = view.predict_leaf(leaf, row)
    sentence = describe_leaf(view, leaf) if is_readable(view) else ""
    return Path(tuple(steps), leaf, structure.n_splits + leaf, predicted, probabilities, view.classes, sentence)


def rank_pushes(view: ModelView, row: Singles, amounts: Doubles, sizes: Doubles, top: int) -> tuple[Push, ...]:
    """Return the contributions of the features with the ``top`` largest sizes, largest first, without zeros."""
    largest, names = rank_features(sizes, top), view.feature_names
    return tuple(
        Push(int(j), names[j], float(row[j]), float(amounts[j]), view.describe_value(int(j), float(row[j])))
        for j in largest
    )


def describe_condition(view: ModelView, row: Singles, split: int, *, goes_right: bool) -> str:
    """Describe what a row satisfies at a split on one column, with its value; "" for other splits."""
    if not uses_one_column(view, split):
        return ""
    condition = make_condition(view, split, goes_right=goes_right)
    if not isinstance(condition, RangeCondition):
        return str(condition)
    assert isinstance(view.tree, FlatTree)
    feature = int(np.flatnonzero(view.tree.weight[split])[0])
    value, comparison = float(row[feature]), condition.lines[-1]
    if any(column.feature == feature and column.is_missing(row) for column in view.columns):
        return f"{condition.name} is missing, the mean {format_short(value)} {comparison}"
    return f"{view.describe_value(feature, value)} {comparison}"


def compute_contributions(tree: FlatTree, row: Singles, split: int) -> tuple[Doubles, float]:
    """Compute w_j (x_j − mean_j) of every feature and the score of the mean row, which add up to the score."""
    weight, mean = tree.weight[split].astype(np.float64), tree.statistics.scaling.mean
    return weight * (row - mean), float(weight @ mean + tree.bias[split])


def margin_scales(tree: CrispTree) -> Doubles:
    """Return the divisor that turns scores into margins; never zero.  (n_splits,)"""
    statistics = tree.statistics
    constant = np.abs(statistics.score_mean)
    return np.where(statistics.score_spread > 0, statistics.score_spread, np.where(constant > 0, constant, 1.0))


def _format_values(values: Any) -> str:
    return ", ".join(map(format_number, np.atleast_1d(values)))
