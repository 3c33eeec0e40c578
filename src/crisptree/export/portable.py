"""A fitted model as plain values, from which every export for machines starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import crisptree
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.node_arrays import MAX_FLOAT32, node_tables
from crisptree.inspection import ModelView, view_model
from crisptree.inspection.model_view import InputColumn, linear_models, resolve_feature_names
from crisptree.structure import TreeStructure
from crisptree.targets.base import label_type

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class ExportError(ValueError):
    """Raised where a model cannot be exported to a format, with the reason and what to do.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> try:
    ...     export.sklearn_tree(model)
    ... except export.ExportError:
    ...     print("scikit-learn has no oblique splits")
    scikit-learn has no oblique splits
    """


@dataclass(frozen=True, eq=False)
class PortableTree:
    """One tree: a row goes right where ``inference.flat_tree.linear_scores`` is above zero, left elsewhere.

    ``linear`` are weights (n_leaves, n_outputs, n_features) and offsets (n_leaves, n_outputs) of linear leaves, in the
    units of y; class probabilities are softmax(weights · x + offsets).
    """

    structure: TreeStructure  # a child c ≥ 0 of ``left`` and ``right`` is a split, c < 0 is leaf −c − 1
    tables: Doubles  # class probabilities, or the means of a regression, of every leaf  (n_leaves, n_outputs)
    node_tables: Doubles  # the same for every node, splits first  (n_nodes, n_outputs)
    node_rows: Doubles  # weight of the training rows at every node  (n_nodes,)
    weight: Singles  # hyperplanes on raw features, no rows for modules  (n_splits, n_features)
    bias: Singles
    linear: tuple[Doubles, Doubles] | None = None
    node_variances: Doubles | None = None  # variance of a regression at every node  (n_nodes, n_outputs)

    @classmethod
    def of(cls, tree: CrispTree, n_targets: int | None = None) -> PortableTree:
        """Convert a tree; ``n_targets`` is the number of regression targets, None for classification."""
        own = slice(0, n_targets)  # regression tables hold means, and then variances
        nodes = tree.restore_units(node_tables(tree))
        variances = None if n_targets is None else nodes[:, n_targets:]
        weight = tree.target.weight(tree.statistics.node_counts)
        shared = tree.structure, tree.leaf_values()[:, own], nodes[:, own], weight
        if isinstance(tree, FlatTree):
            models, leaves = linear_models(tree), slice(tree.structure.n_splits, None)
            linear = None if models is None else (models[0][leaves], models[1][leaves])
            return cls(*shared, tree.weight, tree.bias, linear, variances)
        none = np.zeros((0, tree.n_features), np.float32)
        return cls(*shared, none, none[:, 0])

    @property
    def n_leaves(self) -> int:
        return self.structure.n_leaves

    @cached_property
    def n_terms(self) -> npt.NDArray[np.int64]:
        """Number of nonzero weights of every split.  (n_splits,)"""
        return np.count_nonzero(self.weight, axis=1)


@dataclass(frozen=True, eq=False)
class StackedTrees:
    """All trees of a model as one: splits and leaves are numbered through."""

    root: Integers  # of every tree: a split ≥ 0, or the leaf −root − 1 of a tree without splits  (n_trees,)
    first_leaf: Integers  # index of every tree's leaf 0  (n_trees,)
    left: Integers  # children: c ≥ 0 is a split, c < 0 is leaf −c − 1  (n_splits,)
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
class Portable:
    """A fitted model without its estimator; ``Portable.of`` makes it.

    Parameters
    ----------
    trees : tuple of PortableTree
        At least one; their outputs are averaged.
    classes : tuple
        Class labels as Python values: str, int, float or bool. Empty for regression.
    class_type : str
        The name of their type in ``crisptree.targets.base``.
    inputs : tuple of InputColumn
        The columns of a table, and how they become features.
    feature_names : tuple of str
        Names of the features, from the user or the encoder.
    missing_texts : tuple of str
        Texts that mean a missing value.
    named : bool
        Whether columns are found by their names; otherwise by their order.
    split : str
        "oblique", "axis" or "module".
    takes_images : bool
        Whether rows are windows of images, as for segmenters and regressors of pixels.
    ranges : FeatureRanges or None
        Values of the features in training, if known.

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = Portable.of(CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y))
    >>> model.n_features, model.classes, model.split, sorted(model.uses)
    (1, ('high', 'low'), 'axis', ['axis', 'missing'])
    """

    trees: tuple[PortableTree, ...]
    classes: tuple[Any, ...]
    class_type: str
    inputs: tuple[InputColumn, ...]
    feature_names: tuple[str, ...]
    missing_texts: tuple[str, ...]
    named: bool
    split: str
    takes_images: bool = False
    ranges: FeatureRanges | None = None

    @classmethod
    def of(cls, model: Any, purpose: str = "an export") -> Portable:
        """Convert a fitted estimator, or a Pipeline of table encoders that ends in one."""
        if isinstance(model, Portable):
            return model
        view = view_model(model, purpose, forests=True)
        _check_earlier(view, purpose)
        estimator, stored, n_targets = view.estimator, view.preprocessing, view.n_targets
        trees = tuple(PortableTree.of(tree, n_targets) for tree in view.trees)
        classes = np.asarray(estimator.classes_ if n_targets is None else [])
        split = "axis" if all((tree.n_terms <= 1).all() for tree in trees) else "oblique"
        if not all(isinstance(tree, FlatTree) for tree in view.trees):
            split = "module"
        return cls(
            trees=trees,
            classes=tuple(classes.tolist()),
            class_type="" if n_targets is not None else label_type(classes),
            inputs=view.raw_columns,
            feature_names=tuple(resolve_feature_names(estimator, None, view.transformers)),
            missing_texts=() if stored is None else tuple(stored.missing),
            named=getattr(estimator, "feature_names_in_", None) is not None if stored is None else bool(stored.named),
            split=split,
            takes_images=hasattr(estimator, "window"),
            ranges=FeatureRanges.of(view.trees),
        )

    @cached_property
    def stacked(self) -> StackedTrees:
        """All trees with splits and leaves numbered through."""
        return StackedTrees.of(self.trees)

    def input_of(self, feature: int) -> tuple[int, InputColumn]:
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
        """Features that a format must support for this model: keys of ``formats.FEATURES``."""
        needs = {
            self.split: True,
            "missing": any(column.missing or column.fill is not None for column in self.inputs),
            "categories": any(column.kind == "category" for column in self.inputs),
            "forest": len(self.trees) > 1,
            "regression": not self.classes,
            "segmenter": self.takes_images,
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

    @property
    def fills(self) -> bool:
        """True if ``predict`` replaces missing numbers, which every export then does too."""
        return any(column.fill is not None for column in self.inputs)

    @cached_property
    def model_id(self) -> str | None:
        """Identifier of the model: 16 digits of the SHA-256 of all that its predictions depend on.

        None for split modules and segmenters, whose networks and earlier stages are not part of this object.
        """
        if self.split == "module" or self.takes_images:
            return None
        trees = self.stacked
        inputs = [(c.name, c.kind, c.feature, c.categories, c.fill, c.missing) for c in self.inputs]
        digest = hashlib.sha256(json.dumps([self.classes, inputs, self.missing_texts]).encode())
        arrays = (trees.root, trees.first_leaf, trees.left, trees.right, trees.weight, trees.bias, trees.tables)
        for array in (*arrays, *(trees.linear or ())):
            digest.update(str(array.shape).encode())
            digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()[:16]

    @property
    def provenance(self) -> tuple[str, str]:
        """Comment of every exported text: where it comes from, and that it is free of conditions."""
        return (
            f"Model {self.model_id}, written by crisptree {crisptree.__version__}.",
            "The licence of crisptree does not apply to this text: use it without conditions.",
        )


def _check_earlier(view: ModelView, purpose: str) -> None:
    """Reject Pipelines with steps other than table encoders."""
    for holder in view.transformers:
        for step in [step for _, step in getattr(holder, "steps", [("", holder)])]:
            if step is not None and not isinstance(step, str) and not hasattr(step, "encode_rows"):
                raise ExportError(
                    f"{purpose} supports only table encoders before the tree; this Pipeline has a "
                    f"{type(step).__name__}. Export the last step alone, pipeline[-1], and apply the earlier ones to "
                    "its rows yourself; features need not be scaled, because fit does that."
                )


def convert_to_double(value: float) -> tuple[float, bool]:
    """Convert a float32 threshold to (limit, inclusive) for readers that compare doubles without rounding them.

    A double rounds to a float32 of at most ``value`` exactly if it is below the limit, or at it if inclusive.
    """
    if value == -np.inf:
        return -np.inf, False
    single = np.float32(value)
    above = np.nextafter(single, np.float32(np.inf))
    if not np.isfinite(above):  # beyond it nothing is finite in single precision
        return float(MAX_FLOAT32), True
    middle = (float(single) + float(above)) / 2  # exact: doubles have 29 bits more
    return middle, bool(np.float32(middle) == single)
