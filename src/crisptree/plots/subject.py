"""What is drawn: a fitted model, with the words for its classes and features. User input is checked here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import naming
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.statistics import node_tables


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and its words.

    Parameters
    ----------
    tree : CrispTree
        The deterministic tree.
    classes, features : list of str
        One line of text for every class and feature.
    image_shape : tuple of int, or None
        (height, width[, channels]) where a row is an image.
    split : str
        What kind of split it has: "oblique", "axis", "conv", or the name of a function.
    """

    tree: CrispTree
    classes: list[str]
    features: list[str]
    image_shape: tuple[int, ...] | None
    split: str

    @classmethod
    def of(
        cls,
        model: Any,
        drawing: str,
        class_names: Sequence[Any] | None = None,
        feature_names: Sequence[Any] | None = None,
    ) -> Subject:
        """Check model and names; ``drawing`` is the function to name in errors."""
        tree = getattr(model, "tree_", None)
        if not isinstance(tree, CrispTree):
            raise ValueError(
                f"{drawing} must have a fitted crisptree model; got a {type(model).__name__} without a tree. "
                "Call fit first."
            )
        return cls(
            tree,
            words(model.classes_ if class_names is None else class_names, tree.n_outputs, "class_names", "classes"),
            [_line(name) for name in naming.feature_names(model, feature_names)],
            model.image_shape_,
            _kind(getattr(model, "split", "module")),
        )

    @property
    def as_images(self) -> bool:
        """Whether the splits have weights that are images."""
        return self.image_shape is not None and isinstance(self.tree, FlatTree)

    @cached_property
    def tables(self) -> npt.NDArray[np.float64]:
        """Class frequencies of every node, splits first, then leaves.  (n_nodes, n_classes)"""
        return node_tables(self.tree)

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Which features were not constant in training.  (n_features,)"""
        return np.asarray(self.tree.statistics.scaling.factor != 0)

    @property
    def asks_thresholds(self) -> bool:
        """Whether every split looks at one feature only."""
        tree = self.tree
        return isinstance(tree, FlatTree) and bool(np.all(np.count_nonzero(tree.weight, axis=1) == 1))

    def hyperplanes(self, drawing: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Weights and offsets in the scaled space, or a clear error for splits that have none."""
        if not isinstance(self.tree, FlatTree):
            raise ValueError(
                f"{drawing} must have a model with linear splits; got {type(self.tree).__name__}, whose splits are "
                "modules and have no weights per feature. Use plot_tree."
            )
        return self.tree.scaled_hyperplanes()


def _kind(split: Any) -> str:
    name = split if isinstance(split, str) else getattr(split, "__name__", "module")
    return name if name.isidentifier() else "module"  # a lambda's name says nothing


def _line(name: Any) -> str:
    return " ".join(str(name).split())


def words(names: Any, number: int, parameter: str, things: str) -> list[str]:
    """Names as single lines of text, one for each thing."""
    lines = [_line(name) for name in names]
    if len(lines) != number:
        raise ValueError(f"`{parameter}` must name all {number} {things}; got {len(lines)} names.")
    return lines


def check_takes_rows(model: Any, drawing: str) -> None:
    """Refuse a segmenter, which takes images."""
    from crisptree.explain import rows

    rows.check_takes_rows(model, drawing)


def row_of(model: Any, sample: Any, parameter: str) -> npt.NDArray[np.float32]:
    """One sample, given as a row or as an image; names of columns are held against the model's.  (1, n_features)"""
    from crisptree.explain.rows import one_row

    return one_row(model, sample, parameter)


def rows_of(model: Any, X: Any) -> npt.NDArray[np.float32]:
    """The rows of a frame, whose columns are held against the model's.  (n, n_features)"""
    from crisptree.explain.rows import many_rows

    return many_rows(model, X)


def check_depth(max_depth: Any) -> int | None:
    """The number of levels to draw, None for all."""
    if max_depth is None:
        return None
    if isinstance(max_depth, bool) or not isinstance(max_depth, int | np.integer) or max_depth < 0:
        raise ValueError(f"`max_depth` must be a whole number of at least 0, or None for all; got {max_depth!r}.")
    return int(max_depth)


def class_numbers(classes: npt.NDArray[Any], y: Any, n_rows: int) -> npt.NDArray[np.int64]:
    """The number of every label among the model's classes, or an error that names those it does not know."""
    labels = np.asarray(y).reshape(-1)
    if len(labels) != n_rows:
        raise ValueError(f"`y` must have a label for each of the {n_rows} rows of X; got {len(labels)}.")
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in numbers]
    if unknown:
        raise ValueError(f"`y` must hold classes that the model knows, {classes.tolist()}; got {unknown} too.")
    return np.array([numbers[label] for label in labels.tolist()], dtype=np.int64)
