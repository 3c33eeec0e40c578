"""A fitted model as plain values, from which every export for machines starts."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.statistics import node_tables
from crisptree.inspection import ModelView, view_model
from crisptree.inspection.columns import find_preprocessing
from crisptree.inspection.names import resolve_feature_names
from crisptree.structure import TreeStructure
from crisptree.targets.labels import label_type

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class ExportError(ValueError):
    """A model cannot be exported to a format; the message says why and what to do."""


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
        Value that replaces a missing number; None for categories, and where the model has none.
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
    def n_features(self) -> int:
        """Number of its features without the missing indicator."""
        return len(self.categories) if self.kind == "category" else 1

    @property
    def missing_feature(self) -> int | None:
        """Index of the missing indicator."""
        return self.feature + self.n_features if self.missing else None


@dataclass(frozen=True, eq=False)
class PortableTree:
    """One tree: a row goes right where ``inference.flat_tree.linear_scores`` is above zero, left elsewhere.

    Parameters
    ----------
    structure : TreeStructure
        Its ``left`` and ``right`` children: a child c ≥ 0 is a split, c < 0 is leaf −c − 1.
    tables : ndarray of shape (n_leaves, n_outputs)
        Leaf outputs: class probabilities, or the mean of a regression.
    node_tables : ndarray of shape (n_nodes, n_outputs)
        The same for every node, splits first.
    node_rows : ndarray of shape (n_nodes,)
        The weight of the training rows at every node, splits first.
    weight, bias : ndarray, float32
        Hyperplanes on raw features, (n_splits, n_features) and (n_splits,); without any splits for modules.
    modules : mapping
        Parameters of split modules by name, stacked over the splits; empty for linear splits.
    scaling : pair of ndarray or None
        Of such trees: the input of a module is (x − center) · factor.
    linear : pair of ndarray or None
        Weights (n_leaves, n_outputs, n_features) and offsets (n_leaves, n_outputs) of linear leaves, in the units of y;
        class probabilities are softmax(weights · x + offsets).
    node_variances : ndarray of shape (n_nodes, n_outputs) or None
        For regression the variance of y at every node, splits first.
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
        """Convert a tree; ``n_targets`` is the number of regression targets, None for classification."""
        own = slice(0, n_targets)  # regression tables hold means, and then variances
        nodes = tree.in_units(node_tables(tree))
        variances = None if n_targets is None else nodes[:, n_targets:]
        weight = tree.meaning.weight(tree.statistics.node_counts)
        shared = tree.structure, tree.leaf_values()[:, own], nodes[:, own], weight
        if isinstance(tree, FlatTree):
            return cls(*shared, tree.weight, tree.bias, {}, linear=_linear(tree), node_variances=variances)
        modules: Any = tree
        none, scaling = np.zeros((0, tree.n_features), np.float32), tree.statistics.scaling
        return cls(*shared, none, none[:, 0], modules.parameter_arrays(), (scaling.center, scaling.factor))

    @property
    def n_leaves(self) -> int:
        return self.structure.n_leaves

    @cached_property
    def n_terms(self) -> npt.NDArray[np.int64]:
        """Number of nonzero weights of every split.  (n_splits,)"""
        return np.count_nonzero(self.weight, axis=1)

    @property
    def is_axis_aligned(self) -> bool:
        """True if no split uses more than one feature."""
        return not self.modules and bool((self.n_terms <= 1).all())


@dataclass(frozen=True, eq=False)
class StackedTrees:
    """All trees of a model as one: splits and leaves are numbered through.

    Parameters
    ----------
    root : ndarray of shape (n_trees,)
        Root of every tree: a split ≥ 0, or the leaf −root − 1 of a tree without splits.
    first_leaf : ndarray of shape (n_trees,)
        Index of every tree's leaf 0.
    left, right : ndarray of shape (n_splits,)
        Children: a child c ≥ 0 is a split, c < 0 is leaf −c − 1.
    weight, bias : ndarray, float32
        Hyperplanes on raw features.
    tables : ndarray of shape (n_leaves, n_outputs)
        Leaf tables.
    linear : pair of ndarray or None
        Weights and offsets of linear leaves; see ``PortableTree``.
    """

    root: Integers
    first_leaf: Integers
    left: Integers
    right: Integers
    weight: Singles
    bias: Singles
    tables: Doubles
    linear: tuple[Doubles, Doubles] | None = None

    @classmethod
    def of(cls, trees: Sequence[PortableTree]) -> StackedTrees:
        """Stack trees in their order."""
        splits = np.cumsum([0, *(tree.structure.n_splits for tree in trees)])
        leaves = np.cumsum([0, *(tree.n_leaves for tree in trees)])
        left: list[Integers] = []
        right: list[Integers] = []
        root = []
        for number, tree in enumerate(trees):
            for side, children in ((left, tree.structure.left), (right, tree.structure.right)):
                own = children.astype(np.int64)
                side.append(np.where(own >= 0, own + splits[number], own - leaves[number]))
            root.append(splits[number] if tree.structure.n_splits else ~leaves[number])
        models = [tree.linear for tree in trees if tree.linear is not None]
        weights, offsets = zip(*models, strict=True) if models else ((), ())
        return cls(
            np.array(root),
            leaves[:-1],
            np.concatenate(left),
            np.concatenate(right),
            np.concatenate([tree.weight for tree in trees]),
            np.concatenate([tree.bias for tree in trees]),
            np.concatenate([tree.tables for tree in trees]),
            (np.concatenate(weights), np.concatenate(offsets)) if models else None,
        )

    @property
    def n_trees(self) -> int:
        return len(self.root)

    @property
    def n_splits(self) -> int:
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        return len(self.tables)

    @cached_property
    def leaf_classes(self) -> Integers:
        """Most probable class of every leaf, the first of equal ones.  (n_leaves,)"""
        return self.tables.argmax(axis=1)

    @property
    def linear_cost(self) -> int:
        """Multiply-adds of the linear models of one leaf of every tree."""
        return 0 if self.linear is None else self.n_trees * int(np.prod(self.linear[0].shape[1:]))

    def route(self, goes_right: Any, n_rows: int) -> Integers:
        """Leaf of rows in every tree; ``goes_right(split, rows)`` decides.  (n_trees, n_rows)"""
        leaves = np.empty((self.n_trees, n_rows), dtype=np.int64)
        for tree, root in enumerate(self.root):
            waiting = [(int(root), np.arange(n_rows))]
            while waiting:
                node, rows = waiting.pop()
                if node < 0:
                    leaves[tree, rows] = ~node
                elif len(rows):
                    right = goes_right(node, rows)
                    waiting += [(int(self.left[node]), rows[~right]), (int(self.right[node]), rows[right])]
        return leaves

    def path_costs(self, costs: Integers) -> Integers:
        """Total cost of the splits on the path to every leaf.  (n_splits,) → (n_leaves,)"""
        total = np.zeros(self.n_leaves, dtype=np.int64)
        waiting = [(int(root), 0) for root in self.root]
        while waiting:
            node, spent = waiting.pop()
            if node < 0:
                total[~node] = spent
            else:
                after = spent + int(costs[node])
                waiting += [(int(self.left[node]), after), (int(self.right[node]), after)]
        return total

    def max_cost(self, costs: Integers) -> int:
        """Maximum cost of a row: the most expensive path of every tree."""
        return int(np.maximum.reduceat(self.path_costs(costs), self.first_leaf).sum())


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """Values of the features in training: lowest, highest, whether all are whole numbers, mean and spread."""

    lowest: Doubles
    highest: Doubles
    whole: npt.NDArray[np.bool_]
    mean: Doubles
    spread: Doubles

    @classmethod
    def of(cls, trees: Sequence[CrispTree]) -> FeatureRanges | None:
        """Merge the ranges of all trees; None if one of them is unknown."""
        seen = [tree.statistics for tree in trees]
        lowest, highest, whole = ([getattr(one, name) for one in seen] for name in ("lowest", "highest", "whole"))
        if any(part is None for part in (*lowest, *highest, *whole)):
            return None
        mean = np.mean([one.scaling.mean for one in seen], axis=0)
        spread = np.mean([one.scaling.spread for one in seen], axis=0)
        return cls(np.min(lowest, axis=0), np.max(highest, axis=0), np.all(whole, axis=0), mean, spread)


@dataclass(frozen=True, eq=False)
class ImageWindows:
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
        At least one; their outputs are averaged.
    classes : tuple
        Class labels as Python values: str, int, float or bool. Empty for regression.
    class_type : str
        The name of their type in ``crisptree.targets.labels``.
    inputs : tuple of Input
        The columns of a table, and how they become features.
    feature_names : tuple of str
        Names of the features, from the user or the encoder.
    missing_texts : tuple of str
        Texts that mean a missing value.
    named : bool
        Whether columns are found by their names; otherwise by their order.
    split : str
        "oblique", "axis", "conv" or "module".
    image_shape : tuple of int or None
        (height, width[, channels]) where a row is an image.
    windows : ImageWindows or None
        Of segmenters and regressors of pixels: how images become rows.
    target : str or None
        Name of the target column, if known.
    ranges : FeatureRanges or None
        Values of the features in training, if known.

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = Portable.of(CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y))
    >>> model.n_features, model.classes, model.split, sorted(model.uses)
    (1, ('high', 'low'), 'axis', ['axis'])
    """

    trees: tuple[PortableTree, ...]
    classes: tuple[Any, ...]
    class_type: str
    inputs: tuple[Input, ...]
    feature_names: tuple[str, ...]
    missing_texts: tuple[str, ...]
    named: bool
    split: str
    image_shape: tuple[int, ...] | None = None
    windows: ImageWindows | None = None
    target: str | None = None
    ranges: FeatureRanges | None = None

    @classmethod
    def of(cls, model: Any, purpose: str = "an export") -> Portable:
        """Convert a fitted estimator, or a Pipeline of table encoders that ends in one."""
        if isinstance(model, Portable):
            return model
        view, n_targets, crisp_trees = view_of_first_tree(model, purpose), n_targets_of(model), trees_of(model)
        _check_earlier(view, purpose)
        estimator = view.estimator
        trees = tuple(PortableTree.of(tree, n_targets) for tree in crisp_trees)
        inputs, stored = _inputs(view)
        classes = np.asarray(estimator.classes_ if n_targets is None else [])
        return cls(
            trees=trees,
            classes=tuple(classes.tolist()),
            class_type="" if n_targets is not None else label_type(classes),
            inputs=inputs,
            feature_names=tuple(resolve_feature_names(estimator, None, view.transformers)),
            missing_texts=() if stored is None else tuple(stored.missing),
            named=getattr(estimator, "feature_names_in_", None) is not None if stored is None else bool(stored.named),
            split=_split(view, trees),
            image_shape=None if estimator.image_shape_ is None else tuple(estimator.image_shape_),
            windows=_windows(estimator, n_targets),
            target=None if stored is None else stored.target,
            ranges=FeatureRanges.of(crisp_trees),
        )

    @property
    def task(self) -> str:
        """What the model predicts: "classification" or "regression"."""
        return "classification" if self.classes else "regression"

    @cached_property
    def stacked(self) -> StackedTrees:
        """All trees with splits and leaves numbered through."""
        return StackedTrees.of(self.trees)

    def input_of(self, feature: int) -> tuple[int, Input]:
        """Find the column that a feature comes from, and its index."""
        for index, column in enumerate(self.inputs):
            if column.feature <= feature < column.feature + column.n_features + column.missing:
                return index, column
        raise ExportError(f"feature {feature} must belong to a column of the table; none has it.")

    @property
    def n_features(self) -> int:
        """Number of features after encoding."""
        return len(self.feature_names)

    @property
    def n_outputs(self) -> int:
        """Number of classes, or of regression targets."""
        return self.trees[0].tables.shape[1]

    @property
    def uses(self) -> frozenset[str]:
        """What a format must support for this model: keys of ``formats.FEATURES``."""
        needs = {
            self.split: True,
            "missing": any(column.missing or column.fill is not None for column in self.inputs),
            "categories": any(column.kind == "category" for column in self.inputs),
            "forest": len(self.trees) > 1,
            "regression": not self.classes,
            "segmenter": self.windows is not None,
            "linear": any(tree.linear is not None for tree in self.trees),
        }
        return frozenset(word for word, needed in needs.items() if needed)

    @property
    def description(self) -> str:
        """Short description without any name from the user."""
        what = (
            "A crisp decision tree" if len(self.trees) == 1 else f"A forest of {len(self.trees)} crisp decision trees"
        )
        features = f"{self.n_features} feature{'' if self.n_features == 1 else 's'}"
        outputs = f"{self.n_outputs} classes" if self.classes else f"{self.n_outputs} number(s) predicted"
        return f"{what}, {features}, {outputs}"

    @property
    def encodes(self) -> bool:
        """True if the columns of a table differ from the features."""
        return any(column.kind != "number" or column.missing for column in self.inputs)


def _linear(tree: FlatTree) -> tuple[Doubles, Doubles] | None:
    """Linear models of the leaves, for regression converted to the units of y."""
    if tree.linear_weight is None or tree.linear_bias is None:
        return None
    leaves = slice(tree.structure.n_splits, None)
    weight, bias = tree.linear_weight[leaves], tree.linear_bias[leaves]
    center, unit = tree.statistics.y_center, tree.statistics.y_unit
    if center is None or unit is None:
        return weight, bias
    return weight * np.asarray(unit)[..., None], bias * unit + center


def _check_earlier(view: ModelView, purpose: str) -> None:
    """Reject Pipelines with steps other than table encoders."""
    for holder in view.transformers:
        for step in [step for _, step in getattr(holder, "steps", [("", holder)])]:
            if step is not None and not isinstance(step, str) and not hasattr(step, "encoded"):
                raise ExportError(
                    f"{purpose} supports only table encoders before the tree; this Pipeline has a "
                    f"{type(step).__name__}. Export the last step alone, pipeline[-1], and apply the earlier ones to "
                    "its rows yourself; features need not be scaled, because fit does that."
                )


def _inputs(view: ModelView) -> tuple[tuple[Input, ...], Any]:
    """Columns of the table and the stored preprocessing; without any, every feature is a number."""
    stored = find_preprocessing(view)
    if stored is None:
        names = resolve_feature_names(view.estimator, None, view.transformers)
        return tuple(Input(name, "number", number) for number, name in enumerate(names)), None
    inputs, feature = [], 0
    for column in stored.columns:
        fill = None if math.isnan(column.mean) else float(column.mean)
        inputs.append(Input(column.name, column.kind, feature, tuple(column.categories), fill, bool(column.missing)))
        feature += len(column.features)
    return tuple(inputs), stored


def _split(view: ModelView, trees: tuple[PortableTree, ...]) -> str:
    if any(tree.modules for tree in trees):
        return "conv" if view.split_name == "conv" else "module"
    return "axis" if all(tree.is_axis_aligned for tree in trees) else "oblique"


def _windows(estimator: Any, n_targets: int | None) -> ImageWindows | None:
    if not hasattr(estimator, "window"):
        return None
    return ImageWindows(
        int(estimator.window),
        tuple(int(scale) for scale in estimator.scales),
        estimator.channels_,
        bool(estimator.normalise_images),
        tuple(PortableTree.of(tree, n_targets) for tree in estimator.earlier_trees_),
    )


def _first_tree(model: Any) -> Any:
    """Replace a forest, alone or at the end of a Pipeline, by its first tree."""
    if hasattr(model, "best_estimator_"):
        return _first_tree(model.best_estimator_)
    if hasattr(model, "named_steps"):
        *earlier, (name, last) = model.steps
        one = _first_tree(last)
        if one is last:
            return model
        twin = copy.copy(model)
        twin.steps = [*earlier, (name, one)]
        return twin
    return model.tree(0) if "forest_" in getattr(model, "__dict__", {}) else model


def unwrap(model: Any) -> Any:
    """Unwrap the estimator from a Pipeline or a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps"):
            model = model.steps[-1][1]
        else:
            return model


def view_of_first_tree(model: Any, purpose: str) -> ModelView:
    """View of a model; for a forest that of its first tree, which knows names, columns and classes."""
    return view_model(_first_tree(model), purpose)


def n_targets_of(model: Any) -> int | None:
    """Number of regression targets; None for classification."""
    n_targets: int | None = getattr(unwrap(model), "__dict__", {}).get("n_outputs_")
    return n_targets


def trees_of(model: Any) -> tuple[CrispTree, ...]:
    """All trees of a fitted model, at least one."""
    forest = getattr(unwrap(model), "__dict__", {}).get("forest_")
    return (view_of_first_tree(model, "an export").tree,) if forest is None else tuple(forest.trees)
