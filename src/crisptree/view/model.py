"""A fitted estimator, alone or at the end of a Pipeline, behind one set of questions."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.statistics import node_tables
from crisptree.labels import class_numbers
from crisptree.view import names, rows
from crisptree.view.names import Names

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


class NotLinearError(TypeError, ValueError):
    """The splits of a tree are modules where hyperplanes are needed."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """A fitted model and its words; ``view_of`` makes it.

    Nodes are numbered as in a ``TreeStructure``: splits first, then leaves.

    Parameters
    ----------
    estimator : estimator
        Fitted; of a Pipeline its last step.
    earlier : tuple of transformers
        What rows pass before they reach the estimator; empty without a Pipeline.
    class_names, feature_names : list of str
        One line of text for every class and for every feature that the tree sees.
    """

    estimator: Any
    earlier: tuple[Any, ...]
    class_names: list[str]
    feature_names: list[str]

    @property
    def tree(self) -> CrispTree:
        return self.estimator.tree_

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The class labels themselves.  (n_classes,)"""
        return np.asarray(self.estimator.classes_)

    @property
    def preprocessing(self) -> Any:
        """What becomes of the columns of a table, where the last step before the tree encodes one; else None."""
        last: Any = self.earlier[-1] if self.earlier else self.estimator
        while hasattr(last, "steps"):
            last = last.steps[-1][1]
        return getattr(last, "preprocessing_", None)

    def says(self, feature: int, value: float) -> str:
        """What a feature says about a row: "age = 41", or "plan is basic" where the features are those of a table."""
        table = self.preprocessing
        if table is None or list(table.feature_names) != self.feature_names:
            return f"{self.feature_names[feature]} = {value:.4g}"
        return names.on_one_line([table.says(feature, value)])[0]

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """(height, width, channels) where a row is an image."""
        shape = self.estimator.image_shape_
        if shape is None:
            return None
        height, width, channels = (*shape, 1)[:3]
        return height, width, channels

    @property
    def has_weight_images(self) -> bool:
        """Whether the splits have weights that are images."""
        return self.image_shape is not None and isinstance(self.tree, FlatTree)

    @property
    def asks_thresholds(self) -> bool:
        """Whether every split looks at one feature only."""
        tree = self.tree
        return isinstance(tree, FlatTree) and bool(np.all(np.count_nonzero(tree.weight, axis=1) == 1))

    @property
    def split_name(self) -> str:
        """What kind of split it has: "oblique", "axis", "conv", or the name of a function."""
        split = getattr(self.estimator, "split", "module")
        name = split if isinstance(split, str) else getattr(split, "__name__", "module")
        return name if name.isidentifier() else "module"  # a lambda's name says nothing

    def scaled_weights(self, split: int) -> Doubles:
        """β of a split in the scaled space of training: the weights that images show.  (n_features,)"""
        tree = linear(self.tree, "a weight image")
        return tree.statistics.scaling.unfold(tree.weight[split], tree.bias[split])[0]

    # What the nodes say. A leaf that holds something else than class frequencies is put into words here.

    @cached_property
    def tables(self) -> Doubles:
        """Class frequencies of every node.  (n_nodes, n_classes)"""
        return node_tables(self.tree)

    @cached_property
    def node_rows(self) -> Doubles:
        """Training rows at every node, by weight.  (n_nodes,)"""
        return self.tree.meaning.weight(self.tree.statistics.node_counts)

    def ranked(self, node: int) -> list[tuple[str, float]]:
        """The classes of a node and their shares, the most frequent first."""
        table = self.tables[node]
        return [(self.class_names[number], float(table[number])) for number in np.argsort(-table, kind="stable")]

    def answer(self, node: int) -> str:
        """What a node answers, in a few words: its most frequent class and the share of it."""
        name, share = self.ranked(node)[0]
        return f"{name} ({share:.1%})"

    def predicted(self, leaf: int) -> Any:
        """The class label that a leaf predicts."""
        return self.classes[self.tree.labels(leaf)]

    # Rows and labels in.

    def rows(self, X: Any) -> Singles:
        """Rows as the tree sees them, after the earlier steps, checked.  (n, n_features)"""
        return rows.many_rows(self.estimator, self.earlier, X)

    def row(self, x: Any, name: str = "x") -> Singles:
        """The same for one row; ``name`` is what errors call it.  (1, n_features)"""
        return rows.one_row(self.estimator, self.earlier, x, name)

    def leaves(self, checked: Singles) -> Integers:
        """The leaf that each of the rows that ``rows`` has made reaches.  (n,)"""
        return route_rows(self.tree, checked, self.estimator.n_jobs)

    def soft_tables(self, checked: Singles, steepness: float | None = None) -> Doubles:
        """Class probabilities of the probabilistic tree for rows that ``rows`` has made.  (n, n_classes)"""
        nameless = copy.copy(self.estimator)  # the rows are an array; a model that knows column names would warn
        nameless.__dict__.pop("feature_names_in_", None)
        return np.asarray(nameless.soft_predict_proba(checked, steepness=steepness))

    def class_numbers(self, y: Any, n_rows: int) -> Integers:
        """The number of every label among the classes, or an error that names those the model does not know.  (n,)"""
        labels = np.asarray(y).reshape(-1)
        if len(labels) != n_rows:
            raise ValueError(f"`y` must have a label for each of the {n_rows} rows of X; got {len(labels)}.")
        numbers = class_numbers(labels, self.classes)
        unknown = list(dict.fromkeys(labels[numbers < 0].tolist()))
        if unknown:
            raise ValueError(
                f"`y` must hold classes that the model knows, {self.classes.tolist()}; got {unknown} too. Leave such "
                "rows out."
            )
        return numbers

    def confusion(self, true: Integers, predicted: Integers) -> Integers:
        """How many rows of each class (a line) are predicted as each class (a column), from class numbers."""
        n_classes = len(self.classes)
        return np.bincount(true * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)

    def check_takes_rows(self, purpose: str) -> None:
        """Refuse a segmenter where rows with a class each are meant: it takes images, and labels their pixels."""
        from sklearn.base import is_classifier

        if not is_classifier(self.estimator):
            raise TypeError(
                f"{purpose} must have a classifier of rows; got a {type(self.estimator).__name__}. Of a segmenter "
                "compare the pixels themselves, labels with predict(images)."
            )


def view_of(model: Any, purpose: str, *, class_names: Names = None, feature_names: Names = None) -> ModelView:
    """A fitted model as others see it.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted; of a Pipeline the last step must be one of our estimators. Rows then go through the earlier steps, and
        features are called as these call what they hand on, where they do.
    purpose : str
        The function to name in errors.
    class_names, feature_names : sequence, default=None
        Words in place of the model's own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(PCA(2), CrispTreeClassifier(max_depth=1, random_state=0)).fit(X, y)
    >>> view = view_of(model, "example", class_names=["setosa", "versicolor", "virginica"])
    >>> view.feature_names, view.rows(X).shape
    (['pca0', 'pca1'], (150, 2))
    """
    earlier, estimator = parts_of(model)
    tree = getattr(estimator, "tree_", None)
    if not isinstance(tree, CrispTree):
        raise _refusal(model, estimator, purpose)
    labels = estimator.classes_ if class_names is None else class_names
    classes = names.one_name_each(labels, tree.n_outputs, "class_names", "classes")
    features = names.on_one_line(names.feature_names(estimator, feature_names, earlier))
    return ModelView(estimator, earlier, classes, features)


def linear(tree: CrispTree, purpose: str) -> FlatTree:
    """The tree, or an error where its splits are modules."""
    if not isinstance(tree, FlatTree):
        raise NotLinearError(
            f"{purpose} must have hyperplanes; the splits of this tree are modules, which have no weight per feature. "
            "Train with split='oblique' or 'axis', or use sklearn.inspection.permutation_importance, explain.path, "
            "explain.blame and plot_tree, which work with modules too."
        )
    return tree


def parts_of(model: Any) -> tuple[tuple[Any, ...], Any]:
    """What stands before the estimator, and the estimator. A Pipeline may end in another one.

    An estimator that encodes tables by itself is seen as its encoder and an estimator of the rows that leave it.
    """
    earlier = []
    while hasattr(model, "named_steps"):
        if len(model.steps) > 1:
            earlier.append(model[:-1])
        model = model.steps[-1][1]
    encoder = getattr(model, "__dict__", {}).get("encoder_")
    if encoder is not None:
        earlier.append(encoder)
        model = without_encoder(model)
    return tuple(earlier), model


def without_encoder(estimator: Any) -> Any:
    """A fitted estimator that takes the rows which its encoder makes, with the encoder's preprocessing beside it."""
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    trees = twin.__dict__.get("forest_") or twin.tree_  # all trees of a forest have the same features
    twin.n_features_in_ = trees.n_features
    if "encoder_" in twin.__dict__:
        twin.__dict__["preprocessing_"] = twin.__dict__.pop("encoder_").preprocessing_
    return twin


def _refusal(model: Any, estimator: Any, purpose: str) -> Exception:
    """Why a model cannot be looked at."""
    from sklearn.exceptions import NotFittedError

    must = f"{purpose} must have a fitted crisptree model"
    if isinstance(estimator, CrispTree):
        return TypeError(f"{must}, which knows its classes; got its tree. Give the model.")
    kind = type(estimator).__name__
    got = f"a {kind}" if estimator is model else f"a {type(model).__name__} whose last step is a {kind}"
    if not any(base.__module__.startswith("crisptree.") for base in type(estimator).__mro__):
        return TypeError(f"{must}, or a Pipeline that ends in one; got {got}.")
    return NotFittedError(f"{must}; got {got} that is not fitted. Call fit first.")
