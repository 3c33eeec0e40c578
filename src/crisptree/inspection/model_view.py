"""Uniform read access to a fitted estimator, alone or at the end of a Pipeline."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.statistics import node_tables
from crisptree.inspection.names import (
    Names,
    check_names,
    resolve_feature_names,
    sanitize_names,
    sanitize_preprocessing,
)
from crisptree.inspection.validation import validate_row, validate_rows
from crisptree.targets.labels import class_numbers
from crisptree.tensors import detach

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


class NotLinearError(TypeError, ValueError):
    """Raised where linear splits are needed and the splits of the tree are modules."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """A fitted model with its display names; ``view_model`` makes it.

    Nodes are numbered as in a ``TreeStructure``: splits first, then leaves.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator; the last step of a Pipeline.
    transformers : tuple of transformers
        Earlier steps of the Pipeline; empty without one.
    class_names, feature_names : list of str
        One line of text for every class, or for every output of a regressor, and for every feature of the tree.
    """

    estimator: Any
    transformers: tuple[Any, ...]
    class_names: list[str]
    feature_names: list[str]

    @property
    def tree(self) -> CrispTree:
        return self.estimator.tree_

    @property
    def is_regression(self) -> bool:
        """True if leaves hold means and variances instead of class frequencies."""
        return self.tree.target == "gaussians"

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Class labels; empty for regression.  (n_classes,)"""
        return np.zeros(0) if self.is_regression else np.asarray(self.estimator.classes_)

    @property
    def preprocessing(self) -> Any:
        """Preprocessing of the last step before the tree, where that encodes a table; else None."""
        last: Any = self.transformers[-1] if self.transformers else self.estimator
        while hasattr(last, "steps"):
            last = last.steps[-1][1]
        return getattr(last, "preprocessing_", None)

    def describe_value(self, feature: int, value: float) -> str:
        """Describe the value of a feature: "age = 41", or "plan is basic" where the features are those of a table."""
        preprocessing = self._display_preprocessing
        if preprocessing is None or list(preprocessing.feature_names) != self.feature_names:
            return f"{self.feature_names[feature]} = {value:.4g}"
        return str(preprocessing.says(feature, value))

    @cached_property
    def _display_preprocessing(self) -> Any:
        return None if self.preprocessing is None else sanitize_preprocessing(self.preprocessing)

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """(height, width, channels) where a row is an image, else None."""
        shape = self.estimator.image_shape_
        if shape is None:
            return None
        height, width, channels = (*shape, 1)[:3]
        return height, width, channels

    @property
    def has_weight_images(self) -> bool:
        """True if the weights of a split are an image."""
        return self.image_shape is not None and isinstance(self.tree, FlatTree)

    @property
    def has_axis_splits(self) -> bool:
        """True if every split uses one feature only."""
        tree = self.tree
        return isinstance(tree, FlatTree) and bool(np.all(np.count_nonzero(tree.weight, axis=1) == 1))

    @property
    def split_name(self) -> str:
        """Kind of its splits: "oblique", "axis", "conv", or the name of a function."""
        split = getattr(self.estimator, "split", "module")
        name = split if isinstance(split, str) else getattr(split, "__name__", "module")
        return name if name.isidentifier() else "module"  # a lambda has no name

    def scaled_weights(self, split: int) -> Doubles:
        """Return β of a split in the scaled space of training, which weight images show.  (n_features,)"""
        tree = require_linear_splits(self.tree, "a weight image")
        return tree.statistics.scaling.unfold(tree.weight[split], tree.bias[split])[0]

    # Node values.

    @cached_property
    def node_values(self) -> Doubles:
        """Class frequencies of every node, or means and variances in the units of y.  (n_nodes, n_outputs)"""
        return self.tree.in_units(node_tables(self.tree))

    @cached_property
    def bar_heights(self) -> Doubles:
        """Bars that are drawn for a node: class frequencies, or means scaled to 0 … 1 over all nodes.  (n_nodes, n)"""
        if not self.is_regression:
            return self.node_values
        means = self.node_values[:, : len(self.class_names)]
        low, reach = means.min(axis=0), np.ptp(means, axis=0)
        return (means - low) / np.where(reach > 0, reach, 1.0)

    def node_moments(self, node: int) -> list[tuple[str, float, float]]:
        """Return (name, mean, standard deviation) of every regression output at a node."""
        values, names = self.node_values[node], self.class_names
        return [(name, float(values[k]), float(np.sqrt(values[len(names) + k]))) for k, name in enumerate(names)]

    @cached_property
    def node_weights(self) -> Doubles:
        """Total sample weight of the training rows at every node.  (n_nodes,)"""
        return self.tree.meaning.weight(self.tree.statistics.node_counts)

    def rank_classes(self, node: int) -> list[tuple[str, float]]:
        """Return the classes of a node and their frequencies, the most frequent first."""
        values = self.node_values[node]
        return [(self.class_names[k], float(values[k])) for k in np.argsort(-values, kind="stable")]

    def describe_node(self, node: int) -> str:
        """Describe the prediction of a node: its most frequent class and its share, or means and standard deviations.

        For a linear leaf these describe its training rows; ``describe_linear_leaf`` describes its model.
        """
        if self.is_regression:
            texts = [(name, f"{mean:.4g} ± {spread:.2g}") for name, mean, spread in self.node_moments(node)]
            return texts[0][1] if len(texts) == 1 else ", ".join(f"{name} {text}" for name, text in texts)
        name, share = self.rank_classes(node)[0]
        return f"{name} ({share:.1%})"

    def describe_linear_leaf(self, node: int, terms: int | None = 3, decimals: int = 3) -> str:
        """Describe the model of a linear leaf by its largest terms in raw units; for classes that of the most frequent.

        Empty where leaves are constant.
        """
        tree = self.tree
        if not isinstance(tree, FlatTree) or tree.linear_weight is None or tree.linear_bias is None:
            return ""
        texts = []
        outputs = range(len(self.class_names)) if self.is_regression else [int(self.node_values[node].argmax())]
        for output in outputs:
            weight, bias = tree.linear_weight[node, output], float(tree.linear_bias[node, output])
            if self.is_regression:
                center, unit = tree.statistics.y_center, tree.statistics.y_unit
                assert center is not None
                assert unit is not None
                weight, bias = weight * unit[output], bias * float(unit[output]) + float(center[output])
            effect = np.abs(weight) * tree.statistics.scaling.spread
            order = np.argsort(-effect, kind="stable")
            order = order[effect[order] > 0]
            shown = order if terms is None else order[:terms]
            parts = [f"{weight[j]:+.{decimals}g} * {self.feature_names[j]}" for j in shown]
            if len(order) > len(shown):
                parts.append(f"+ ({len(order) - len(shown)} more)")
            name = "" if len(self.class_names) == 1 else f"{self.class_names[output]} "
            left = "" if self.is_regression else "score "
            texts.append(f"{name}{left}= {bias:.{decimals}g} {' '.join(parts)}".strip())
        return "; ".join(texts)

    def predict_leaf(self, leaf: int, row: Singles | None = None) -> Any:
        """Return the class label or mean that a leaf predicts; linear leaves need ``row``, (1, n_features)."""
        output = self.tree.labels(leaf) if row is None else self.tree.predictions(np.array([leaf]), row)[0]
        if self.is_regression:
            return float(output[0]) if len(output) == 1 else output
        return self.classes[output]

    def check_has_constant_leaves(self, purpose: str) -> None:
        """Refuse linear leaves where a leaf must have one prediction."""
        if self.tree.is_linear:
            raise TypeError(
                f"{purpose} needs constant leaves; with leaves='linear' the prediction also depends on the row. "
                "Train with leaves='constant'."
            )

    # Rows and labels.

    def prepare_rows(self, X: Any) -> Singles:
        """Apply the earlier steps to rows and validate them.  (n, n_features)"""
        return validate_rows(self.estimator, self.transformers, X)

    def prepare_row(self, x: Any, name: str = "x") -> Singles:
        """Apply the earlier steps to one row and validate it; ``name`` is used in errors.  (1, n_features)"""
        return validate_row(self.estimator, self.transformers, x, name)

    def apply(self, rows: Singles) -> Integers:
        """Return the leaf that each prepared row reaches.  (n,)"""
        return route_rows(self.tree, rows, self.estimator.n_jobs)

    def soft_predict_proba(self, rows: Singles, steepness: float | None = None) -> Doubles:
        """Return class probabilities of the probabilistic tree for prepared rows.  (n, n_classes)"""
        nameless = copy.copy(self.estimator)  # the rows are an array; a model that knows column names would warn
        nameless.__dict__.pop("feature_names_in_", None)
        return np.asarray(nameless.soft_predict_proba(rows, steepness=steepness))

    def encode_labels(self, y: Any, n_rows: int) -> Integers:
        """Return the class index of every label; refuse labels that the model does not know.  (n,)"""
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

    def encode_target(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        """Return class indices (n,), or the numbers of a regression target (n, n_outputs), validated."""
        if not self.is_regression:
            return self.encode_labels(y, n_rows)
        values, n_outputs = np.asarray(detach(y), dtype=np.float64), len(self.class_names)
        has_shape = values.shape == (n_rows, n_outputs) or (n_outputs == 1 and values.shape == (n_rows,))
        if not has_shape or not np.isfinite(values).all():
            numbers = "a finite number" if n_outputs == 1 else f"{n_outputs} finite numbers"
            raise ValueError(f"`y` must hold {numbers} for each of the {n_rows} rows of X; got shape {values.shape}.")
        return values.reshape(n_rows, n_outputs)

    def confusion_matrix(self, true: Integers, predicted: Integers) -> Integers:
        """Count rows by true class (row) and predicted class (column), both given as class indices."""
        n_classes = len(self.classes)
        return np.bincount(true * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)

    def check_is_classification(self, purpose: str, hint: str) -> None:
        """Refuse a regression model."""
        if self.is_regression:
            raise TypeError(
                f"{purpose} needs a classification model; got a {type(self.estimator).__name__}, which is a regression "
                f"model. {hint}"
            )

    def check_takes_rows(self, purpose: str) -> None:
        """Refuse a segmenter, which takes images and labels their pixels, where rows with one class each are needed."""
        from sklearn.base import is_classifier

        if not is_classifier(self.estimator):
            raise TypeError(
                f"{purpose} needs a classifier of rows; got a {type(self.estimator).__name__}. For a segmenter compare "
                "the labels of the pixels with predict(images)."
            )


def view_model(model: Any, purpose: str, *, class_names: Names = None, feature_names: Names = None) -> ModelView:
    """Make the view of a fitted model.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted; the last step of a Pipeline must be one of our estimators. Rows then go through the earlier steps, and
        features have the names that these give their output.
    purpose : str
        The function to name in errors.
    class_names, feature_names : sequence, default=None
        Names in place of the model's own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(PCA(2), CrispTreeClassifier(max_depth=1, random_state=0)).fit(X, y)
    >>> view = view_model(model, "example", class_names=["setosa", "versicolor", "virginica"])
    >>> view.feature_names, view.prepare_rows(X).shape
    (['pca0', 'pca1'], (150, 2))
    """
    transformers, estimator = unwrap_model(model)
    tree = getattr(estimator, "tree_", None)
    if not isinstance(tree, CrispTree):
        raise _unsupported_model(model, estimator, purpose)
    if tree.target == "gaussians":
        n_outputs = tree.n_outputs // 2
        default = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
        classes = check_names(default if class_names is None else class_names, n_outputs, "class_names", "outputs")
    else:
        labels = estimator.classes_ if class_names is None else class_names
        classes = check_names(labels, tree.n_outputs, "class_names", "classes")
    features = resolve_feature_names(estimator, feature_names, transformers)
    view = ModelView(estimator, transformers, classes, sanitize_names(features))
    if view.preprocessing is not None and list(view.preprocessing.feature_names) == features:
        return replace(view, feature_names=list(sanitize_preprocessing(view.preprocessing).feature_names))
    return view


def require_linear_splits(tree: CrispTree, purpose: str) -> FlatTree:
    """Return the tree; refuse one whose splits are modules."""
    if not isinstance(tree, FlatTree):
        raise NotLinearError(
            f"{purpose} needs linear splits; the splits of this tree are modules, which have no weight per feature. "
            "Train with split='oblique' or 'axis', or use sklearn.inspection.permutation_importance, explain.path, "
            "explain.attribute_errors and plot_tree, which work with modules too."
        )
    return tree


def unwrap_model(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the transformers before the estimator, and the estimator. A Pipeline may end in a Pipeline or a search.

    For a search such as GridSearchCV it is the best estimator. An estimator that encodes tables by itself is split into
    its encoder and an estimator of encoded rows.
    """
    transformers = []
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps"):
            if len(model.steps) > 1:
                transformers.append(model[:-1])
            model = model.steps[-1][1]
        else:
            break
    encoder = getattr(model, "__dict__", {}).get("encoder_")
    if encoder is not None:
        transformers.append(encoder)
        model = strip_encoder(model)
    return tuple(transformers), model


def strip_encoder(estimator: Any) -> Any:
    """Return a copy of a fitted estimator that takes encoded rows and keeps the preprocessing of its encoder."""
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    trees = twin.__dict__.get("forest_") or twin.tree_  # all trees of a forest have the same features
    twin.n_features_in_ = trees.n_features
    if "encoder_" in twin.__dict__:
        twin.__dict__["preprocessing_"] = twin.__dict__.pop("encoder_").preprocessing_
    return twin


def _meta_estimator_hint(estimator: Any) -> str:
    """Return what to pass in place of a meta-estimator."""
    if hasattr(estimator, "cv_results_"):
        return " It was fitted with refit=False and keeps no model: fit it with refit=True."
    if hasattr(estimator, "param_grid") or hasattr(estimator, "param_distributions"):
        return " It is not fitted: call fit first, then its best_estimator_ is used."
    if any(hasattr(estimator, name) for name in ("estimator", "estimators", "estimator_", "estimators_")):
        return " It is a meta-estimator: pass one of its fitted models, such as estimator_ or one of estimators_."
    return ""


def _unsupported_model(model: Any, estimator: Any, purpose: str) -> Exception:
    """Return the error for a model that has no view."""
    from sklearn.exceptions import NotFittedError

    needs = f"{purpose} needs a fitted crisptree model"
    if isinstance(estimator, CrispTree):
        return TypeError(f"{needs}, which knows its classes; got its tree. Pass the model.")
    kind = type(estimator).__name__
    if "forest_" in getattr(estimator, "__dict__", {}):
        return TypeError(f"{purpose} needs a single tree; got a {kind}. Pass one of its trees, tree(0), or to_tree(X).")
    got = f"a {kind}" if estimator is model else f"a {type(model).__name__} whose last step is a {kind}"
    if not any(base.__module__.startswith("crisptree.") for base in type(estimator).__mro__):
        return TypeError(f"{needs}, or a Pipeline that ends in one; got {got}.{_meta_estimator_hint(estimator)}")
    return NotFittedError(f"{needs}; got {got} that is not fitted. Call fit first.")
