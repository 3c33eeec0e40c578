"""A fitted model as plain values: what every export for machines starts from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.forests import first_view, n_targets_of, trees_of
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.statistics import node_tables
from crisptree.inspection import ModelView
from crisptree.inspection.columns import find_preprocessing
from crisptree.inspection.names import resolve_feature_names
from crisptree.labels import label_type
from crisptree.structure import TreeStructure

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class ExportError(ValueError):
    """A model cannot be written in a form; the message says why and what to do."""


@dataclass(frozen=True)
class Input:
    """One column of the user's table, and the features of the tree that it becomes.

    Parameters
    ----------
    name : str
        The column's name, as the user wrote it: any text at all.
    kind : {"number", "boolean", "category"}
        A number is a feature as it is, rounded to single precision; true is 1 and false is 0; a category is one
        feature for every value in ``categories``, 1 for that value and 0 for all others.
    feature : int
        The number of its first feature.
    categories : tuple of str
        The values of a category.
    fill : float or None
        What stands in where a number is missing; None for categories, and where the model keeps nothing for it.
    missing : bool
        Whether one more feature, the column's last, is 1 where the value is missing.
    """

    name: str
    kind: str
    feature: int
    categories: tuple[str, ...] = ()
    fill: float | None = None
    missing: bool = False

    @property
    def n_own(self) -> int:
        """How many features its values have, without the one for missing ones."""
        return len(self.categories) if self.kind == "category" else 1

    @property
    def missing_feature(self) -> int | None:
        """The feature that is 1 where the value is missing."""
        return self.feature + self.n_own if self.missing else None


@dataclass(frozen=True, eq=False)
class PortableTree:
    """One tree: go right where ``inference.summation`` of weights, row and bias is above zero, left elsewhere.

    Parameters
    ----------
    structure : TreeStructure
        Its ``left`` and ``right`` children: a child c ≥ 0 is a split, c < 0 is leaf −c − 1.
    tables : ndarray of shape (n_leaves, n_outputs)
        What every leaf says: class probabilities, or the mean of a regression.
    node_tables : ndarray of shape (n_nodes, n_outputs)
        The same for every node, splits first; for readers that want to know what a split stands on.
    node_rows : ndarray of shape (n_nodes,)
        The weight of the training rows at every node, splits first.
    weight, bias : ndarray, float32
        Hyperplanes on raw features, (n_splits, n_features) and (n_splits,); without any splits for modules.
    modules : mapping
        Of trees whose splits are modules, their parameters by name, stacked over the splits; else empty.
    scaling : pair of ndarray or None
        Of such trees: a module sees (x − center) · factor.
    linear : pair of ndarray or None
        Where leaves have linear models, their weights (n_leaves, n_outputs, n_features) and offsets (n_leaves,
        n_outputs), in the units of what is predicted; of classes the answer is softmax(weights · x + offsets).
    node_variances : ndarray of shape (n_nodes, n_outputs) or None
        Of a regression, the variance of the target at every node, splits first.
    """

    structure: TreeStructure
    tables: Doubles
    node_tables: Doubles
    node_rows: Doubles
    weight: Singles
    bias: Singles
    modules: Mapping[str, npt.NDArray[Any]]
    scaling: tuple[Doubles, Doubles] | None = None
    linear: tuple[Doubles, Doubles] | None = None
    node_variances: Doubles | None = None

    @classmethod
    def of(cls, tree: CrispTree, n_targets: int | None = None) -> PortableTree:
        """The arrays of a tree that predicts classes or, where that is given, so many numbers."""
        own = slice(0, n_targets)  # of numbers leaves have means, and then variances
        nodes = tree.in_units(node_tables(tree))
        variances = None if n_targets is None else nodes[:, n_targets:]
        weight = tree.meaning.weight(tree.statistics.node_counts)
        said = tree.structure, tree.leaf_values()[:, own], nodes[:, own], weight
        if isinstance(tree, FlatTree):
            return cls(*said, tree.weight, tree.bias, {}, linear=_linear(tree), node_variances=variances)
        modules: Any = tree
        none, scaling = np.zeros((0, tree.n_features), np.float32), tree.statistics.scaling
        return cls(*said, none, none[:, 0], modules.parameter_arrays(), (scaling.center, scaling.factor))

    @property
    def n_leaves(self) -> int:
        return self.structure.n_leaves

    @cached_property
    def terms(self) -> npt.NDArray[np.int64]:
        """How many weights of every split are not zero.  (n_splits,)"""
        return np.count_nonzero(self.weight, axis=1)

    @property
    def is_axis_aligned(self) -> bool:
        """Whether no split looks at more than one feature."""
        return not self.modules and bool((self.terms <= 1).all())


@dataclass(frozen=True, eq=False)
class Ranges:
    """What values the features took in training: from where to where, whether whole numbers only, mean and spread."""

    lowest: Doubles
    highest: Doubles
    whole: npt.NDArray[np.bool_]
    mean: Doubles
    spread: Doubles

    @classmethod
    def of(cls, trees: Sequence[CrispTree]) -> Ranges | None:
        """Over the training rows of all trees; None where one of them does not know."""
        seen = [tree.statistics for tree in trees]
        lowest, highest, whole = ([getattr(one, name) for one in seen] for name in ("lowest", "highest", "whole"))
        if any(part is None for part in (*lowest, *highest, *whole)):
            return None
        mean = np.mean([one.scaling.mean for one in seen], axis=0)
        spread = np.mean([one.scaling.spread for one in seen], axis=0)
        return cls(np.min(lowest, axis=0), np.max(highest, axis=0), np.all(whole, axis=0), mean, spread)


@dataclass(frozen=True, eq=False)
class Windows:
    """How rows are made of images: the window around every pixel, at every scale, of every channel."""

    window: int
    scales: tuple[int, ...]
    channels: int | None
    normalised: bool
    earlier: tuple[PortableTree, ...]


@dataclass(frozen=True, eq=False)
class Portable:
    """A fitted model without its estimator; ``Portable.of`` makes it.

    Parameters
    ----------
    trees : tuple of PortableTree
        One, or several whose tables are averaged.
    task : {"classification", "regression"}
        What the numbers of a leaf are.
    classes : tuple
        The class labels as Python's values: text, whole numbers, floats or booleans. None for a regression.
    class_type : str
        The name of their type in ``crisptree.labels``.
    inputs : tuple of Input
        The columns of a table, and how they become features.
    feature_names : tuple of str
        What the features are called, as the user or the encoder wrote them.
    missing_texts : tuple of str
        Texts that mean a missing value.
    named : bool
        Whether columns are found by their names; otherwise by their place.
    split : str
        "oblique", "axis", "conv" or "module".
    image_shape : tuple of int or None
        (height, width[, channels]) where a row is an image.
    windows : Windows or None
        Of segmenters and regressors of pixels: how images become rows.
    target : str or None
        The column that was learned, where that is known.
    ranges : Ranges or None
        What values the features took in training, where that is known.

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = Portable.of(CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y))
    >>> model.n_features, model.classes, model.split, sorted(model.uses)
    (1, ('high', 'low'), 'axis', ['axis'])
    """

    trees: tuple[PortableTree, ...]
    task: str
    classes: tuple[Any, ...]
    class_type: str
    inputs: tuple[Input, ...]
    feature_names: tuple[str, ...]
    missing_texts: tuple[str, ...]
    named: bool
    split: str
    image_shape: tuple[int, ...] | None = None
    windows: Windows | None = None
    target: str | None = None
    ranges: Ranges | None = None

    @classmethod
    def of(cls, model: Any, purpose: str = "an export") -> Portable:
        """The values of a fitted estimator, or of a Pipeline of table encoders that ends in one."""
        if isinstance(model, Portable):
            return model
        view, n_targets = first_view(model, purpose), n_targets_of(model)
        _check_earlier(view, purpose)
        estimator = view.estimator
        trees = tuple(PortableTree.of(tree, n_targets) for tree in trees_of(model))
        inputs, stored = _inputs(view)
        classes = np.asarray(estimator.classes_ if n_targets is None else [])
        return cls(
            trees=trees,
            task="classification" if n_targets is None else "regression",
            classes=tuple(classes.tolist()),
            class_type="" if n_targets is not None else label_type(classes),
            inputs=inputs,
            feature_names=tuple(resolve_feature_names(estimator, None, view.transformers)),
            missing_texts=() if stored is None else tuple(stored.missing),
            named=_is_named(estimator) if stored is None else bool(stored.named),
            split=_split(view, trees),
            image_shape=None if estimator.image_shape_ is None else tuple(estimator.image_shape_),
            windows=_windows(estimator, n_targets),
            target=None if stored is None else stored.target,
            ranges=Ranges.of(trees_of(model)),
        )

    @property
    def n_features(self) -> int:
        """The width of the rows that the trees see."""
        return len(self.feature_names)

    @property
    def n_outputs(self) -> int:
        """How many numbers a leaf says."""
        return self.trees[0].tables.shape[1]

    @property
    def uses(self) -> frozenset[str]:
        """What a target must be able to do for this model: words of ``support.ABILITIES``."""
        asked = {
            self.split: True,
            "missing": any(column.missing or column.fill is not None for column in self.inputs),
            "categories": any(column.kind == "category" for column in self.inputs),
            "forest": len(self.trees) > 1,
            "regression": self.task == "regression",
            "segmenter": self.windows is not None,
            "linear": any(tree.linear is not None for tree in self.trees),
        }
        return frozenset(word for word, needed in asked.items() if needed)

    @property
    def words(self) -> str:
        """What it is, in a few words without any name of a user's."""
        what = (
            "A crisp decision tree" if len(self.trees) == 1 else f"A forest of {len(self.trees)} crisp decision trees"
        )
        features = f"{self.n_features} feature{'' if self.n_features == 1 else 's'}"
        outputs = f"{self.n_outputs} classes" if self.classes else f"{self.n_outputs} number(s) predicted"
        return f"{what}, {features}, {outputs}"

    @property
    def encodes(self) -> bool:
        """Whether the columns of a table are anything else than the features themselves."""
        return any(column.kind != "number" or column.missing for column in self.inputs)


def _linear(tree: FlatTree) -> tuple[Doubles, Doubles] | None:
    """The models of the leaves; those of numbers are brought from the scale of training to the units of y."""
    if tree.linear_weight is None or tree.linear_bias is None:
        return None
    leaves = slice(tree.structure.n_splits, None)
    weight, bias = tree.linear_weight[leaves], tree.linear_bias[leaves]
    center, unit = tree.statistics.y_center, tree.statistics.y_unit
    if center is None or unit is None:
        return weight, bias
    return weight * np.asarray(unit)[..., None], bias * unit + center


def _check_earlier(view: ModelView, purpose: str) -> None:
    """Refuse Pipelines with steps that only their own library can do."""
    for holder in view.transformers:
        for step in [step for _, step in getattr(holder, "steps", [("", holder)])]:
            if step is not None and not isinstance(step, str) and not hasattr(step, "encoded"):
                raise ExportError(
                    f"{purpose} can take only table encoders before the tree; this Pipeline has a "
                    f"{type(step).__name__}, whose arithmetic it does not know. Export the last step alone, "
                    "pipeline[-1], and do the earlier ones yourself before its rows come in; to scale features is not "
                    "needed at all, a fit does that."
                )


def _inputs(view: ModelView) -> tuple[tuple[Input, ...], Any]:
    """The columns of the table and the preprocessing that says so, or None: every feature is then a number."""
    stored = find_preprocessing(view)
    if stored is None:
        names = resolve_feature_names(view.estimator, None, view.transformers)
        return tuple(Input(name, "number", number) for number, name in enumerate(names)), None
    inputs, place = [], 0
    for column in stored.columns:
        fill = None if math.isnan(column.mean) else float(column.mean)
        inputs.append(Input(column.name, column.kind, place, tuple(column.categories), fill, bool(column.missing)))
        place += len(column.features)
    return tuple(inputs), stored


def _is_named(estimator: Any) -> bool:
    return getattr(estimator, "feature_names_in_", None) is not None


def _split(view: ModelView, trees: tuple[PortableTree, ...]) -> str:
    if any(tree.modules for tree in trees):
        return "conv" if view.split_name == "conv" else "module"
    return "axis" if all(tree.is_axis_aligned for tree in trees) else "oblique"


def _windows(estimator: Any, n_targets: int | None) -> Windows | None:
    if not hasattr(estimator, "window"):
        return None
    return Windows(
        int(estimator.window),
        tuple(int(scale) for scale in estimator.scales),
        estimator.channels_,
        bool(estimator.normalise_images),
        tuple(PortableTree.of(tree, n_targets) for tree in estimator.earlier_trees_),
    )
