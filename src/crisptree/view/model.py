"""A fitted estimator, alone or at the end of a Pipeline, behind one set of questions."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.statistics import node_tables
from crisptree.targets.labels import class_numbers
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
        One line of text for every class, or for every number where the model predicts these, and for every feature that
        the tree sees.
    """

    estimator: Any
    earlier: tuple[Any, ...]
    class_names: list[str]
    feature_names: list[str]

    @property
    def tree(self) -> CrispTree:
        return self.estimator.tree_

    @property
    def predicts_numbers(self) -> bool:
        """Whether leaves hold means and variances instead of class frequencies."""
        return self.tree.target == "gaussians"

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The class labels themselves; none where numbers are predicted.  (n_classes,)"""
        return np.zeros(0) if self.predicts_numbers else np.asarray(self.estimator.classes_)

    @property
    def preprocessing(self) -> Any:
        """What becomes of the columns of a table, where the last step before the tree encodes one; else None."""
        last: Any = self.earlier[-1] if self.earlier else self.estimator
        while hasattr(last, "steps"):
            last = last.steps[-1][1]
        return getattr(last, "preprocessing_", None)

    def says(self, feature: int, value: float) -> str:
        """What a feature says about a row: "age = 41", or "plan is basic" where the features are those of a table."""
        table = self._shown_table
        if table is None or list(table.feature_names) != self.feature_names:
            return f"{self.feature_names[feature]} = {value:.4g}"
        return str(table.says(feature, value))

    @cached_property
    def _shown_table(self) -> Any:
        return None if self.preprocessing is None else names.in_lines(self.preprocessing)

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
        """Class frequencies of every node, or means and variances in the units of y.  (n_nodes, n_outputs)"""
        return self.tree.in_units(node_tables(self.tree))

    @cached_property
    def bars(self) -> Doubles:
        """What is drawn of every node: its class frequencies, or where its means lie among all.  (n_nodes, n)"""
        if not self.predicts_numbers:
            return self.tables
        means = self.tables[:, : len(self.class_names)]
        low, reach = means.min(axis=0), np.ptp(means, axis=0)
        return (means - low) / np.where(reach > 0, reach, 1.0)

    def numbers(self, node: int) -> list[tuple[str, float, float]]:
        """The name, the mean and the spread of every number that a node predicts."""
        table, names = self.tables[node], self.class_names
        return [(name, float(table[k]), float(np.sqrt(table[len(names) + k]))) for k, name in enumerate(names)]

    @cached_property
    def node_rows(self) -> Doubles:
        """Training rows at every node, by weight.  (n_nodes,)"""
        return self.tree.meaning.weight(self.tree.statistics.node_counts)

    def ranked(self, node: int) -> list[tuple[str, float]]:
        """The classes of a node and their shares, the most frequent first."""
        table = self.tables[node]
        return [(self.class_names[number], float(table[number])) for number in np.argsort(-table, kind="stable")]

    def answer(self, node: int) -> str:
        """What a node answers, in a few words: its most frequent class and the share of it, or means and spreads.

        Of a linear leaf that is what its training rows are like; ``linear_words`` says its model.
        """
        if self.predicts_numbers:
            said = [(name, f"{mean:.4g} ± {spread:.2g}") for name, mean, spread in self.numbers(node)]
            return said[0][1] if len(said) == 1 else ", ".join(f"{name} {words}" for name, words in said)
        name, share = self.ranked(node)[0]
        return f"{name} ({share:.1%})"

    def linear_words(self, node: int, terms: int | None = 3, decimals: int = 3) -> str:
        """The model of a linear leaf: its largest terms in raw units; of classes that of the most frequent one.

        Empty where leaves are constant.
        """
        tree = self.tree
        if not isinstance(tree, FlatTree) or tree.linear_weight is None or tree.linear_bias is None:
            return ""
        said = []
        ranked = range(len(self.class_names)) if self.predicts_numbers else [int(self.tables[node].argmax())]
        for answer in ranked:
            weight, bias = tree.linear_weight[node, answer], float(tree.linear_bias[node, answer])
            if self.predicts_numbers:
                center, unit = tree.statistics.y_center, tree.statistics.y_unit
                assert center is not None
                assert unit is not None
                weight, bias = weight * unit[answer], bias * float(unit[answer]) + float(center[answer])
            effect = np.abs(weight) * tree.statistics.scaling.spread
            order = np.argsort(-effect, kind="stable")
            order = order[effect[order] > 0]
            shown = order if terms is None else order[:terms]
            parts = [f"{weight[j]:+.{decimals}g} * {self.feature_names[j]}" for j in shown]
            if len(order) > len(shown):
                parts.append(f"+ ({len(order) - len(shown)} more)")
            name = "" if len(self.class_names) == 1 else f"{self.class_names[answer]} "
            left = "" if self.predicts_numbers else "score "
            said.append(f"{name}{left}= {bias:.{decimals}g} {' '.join(parts)}".strip())
        return "; ".join(said)

    def predicted(self, leaf: int, row: Singles | None = None) -> Any:
        """The class label that a leaf predicts, or its mean, or means; ``row`` (1, n_features) is for linear leaves."""
        found = self.tree.labels(leaf) if row is None else self.tree.predictions(np.array([leaf]), row)[0]
        if self.predicts_numbers:
            return float(found[0]) if len(found) == 1 else found
        return self.classes[found]

    def check_has_constant_leaves(self, purpose: str) -> None:
        """Refuse linear leaves where a leaf must have one answer."""
        if self.tree.is_linear:
            raise TypeError(
                f"{purpose} must have leaves of one answer each; with leaves='linear' it depends on the row inside a "
                "leaf too. Train with leaves='constant'."
            )

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

    def check_has_classes(self, purpose: str, instead: str) -> None:
        """Refuse a model of numbers where classes are meant."""
        if self.predicts_numbers:
            raise TypeError(
                f"{purpose} must have a model that predicts classes; a {type(self.estimator).__name__} predicts "
                f"numbers. {instead}"
            )

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
    if tree.target == "gaussians":
        n_numbers = tree.n_outputs // 2
        plain = ["y"] if n_numbers == 1 else [f"y{number}" for number in range(n_numbers)]
        classes = names.one_name_each(
            plain if class_names is None else class_names, n_numbers, "class_names", "outputs"
        )
    else:
        labels = estimator.classes_ if class_names is None else class_names
        classes = names.one_name_each(labels, tree.n_outputs, "class_names", "classes")
    features = names.feature_names(estimator, feature_names, earlier)
    view = ModelView(estimator, earlier, classes, names.on_one_line(features))
    if view.preprocessing is not None and list(view.preprocessing.feature_names) == features:
        return replace(view, feature_names=list(names.in_lines(view.preprocessing).feature_names))
    return view


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
    """What stands before the estimator, and the estimator. A Pipeline may end in another one, or in a search.

    Of a search such as GridSearchCV it is the best estimator.

    An estimator that encodes tables by itself is seen as its encoder and an estimator of the rows that leave it.
    """
    earlier = []
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps"):
            if len(model.steps) > 1:
                earlier.append(model[:-1])
            model = model.steps[-1][1]
        else:
            break
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


def _held(estimator: Any) -> str:
    """What to give in the place of an estimator that holds others."""
    if hasattr(estimator, "cv_results_"):
        return " It was fitted with refit=False and keeps no model: fit it with refit=True."
    if hasattr(estimator, "param_grid") or hasattr(estimator, "param_distributions"):
        return " It is not fitted: call fit first, then its best_estimator_ is looked at."
    if any(hasattr(estimator, name) for name in ("estimator", "estimators", "estimator_", "estimators_")):
        return " It holds other models: give one of those, fitted, such as estimator_ or one of estimators_."
    return ""


def _refusal(model: Any, estimator: Any, purpose: str) -> Exception:
    """Why a model cannot be looked at."""
    from sklearn.exceptions import NotFittedError

    must = f"{purpose} must have a fitted crisptree model"
    if isinstance(estimator, CrispTree):
        return TypeError(f"{must}, which knows its classes; got its tree. Give the model.")
    kind = type(estimator).__name__
    if "forest_" in getattr(estimator, "__dict__", {}):
        return TypeError(f"{purpose} must have one tree; got a {kind}. Give one of its trees, tree(0), or to_tree(X).")
    got = f"a {kind}" if estimator is model else f"a {type(model).__name__} whose last step is a {kind}"
    if not any(base.__module__.startswith("crisptree.") for base in type(estimator).__mro__):
        return TypeError(f"{must}, or a Pipeline that ends in one; got {got}.{_held(estimator)}")
    return NotFittedError(f"{must}; got {got} that is not fitted. Call fit first.")
