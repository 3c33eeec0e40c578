"""Linear splits: feature effects, rules in raw units and importances.

The effect of feature j at a split is w_j · spread_j, with raw weights and the feature's standard deviation in training:
how far the score moves when the feature alone moves by its own spread. In the scaled space of training the same number
is β_j · factor_j · spread_j. For ``scale="feature"`` the factor is 1 / spread and the effect is β_j itself; where many
features share one factor, β_j still has the feature's unit in it, and only the effect can be compared between features.
Influence is the absolute effect. Importances, rules, plots and reports all use this definition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from crisptree.inference import CrispTree, FlatTree
from crisptree.inspection.display import format_terms
from crisptree.inspection.model_view import ModelView, require_linear_splits, view_model

Doubles = npt.NDArray[np.float64]


N_DRAWS = 1024
"""Draws from a normal distribution for a mean; they are the same in every call."""


def compute_effects(tree: FlatTree, split: Any = slice(None)) -> Doubles:
    """Compute w_j · spread_j; above zero, larger values go right.  (n_splits, n_features), or (n_features,)

    ``split`` is one split, several, or all.
    """
    return tree.weight[split].astype(np.float64) * tree.statistics.scaling.spread


def compute_influence(tree: FlatTree, split: Any = slice(None)) -> Doubles:
    """Compute |w_j| · spread_j.  (n_splits, n_features), or (n_features,)"""
    return np.abs(compute_effects(tree, split))


def rank_features(effect: Doubles, top: int) -> npt.NDArray[np.intp]:
    """Return the ``top`` features with the largest effects at one split, without those of no effect."""
    order = np.argsort(-np.abs(effect), kind="stable")[:top]
    return order[effect[order] != 0]


NEGATED = {">": "<", "<": ">", "≤": "≥", "≥": "≤"}
COMPLEMENTS = {">": "≤", "<": "≥", "≤": ">", "≥": "<"}


class SplitRule(NamedTuple):
    """A rule; rows that satisfy it go right."""

    terms: tuple[tuple[float, int], ...]
    """(weight, feature) pairs, the most influential first; the weight of a single feature is 1."""

    left_out: int
    """Number of nonzero terms that are not listed; the threshold is that of the whole sum."""

    sign: str
    """">", "<", "≤" or "≥"."""

    threshold: float

    def format_terms(self, names: list[str], digits: int = 4) -> tuple[tuple[str, ...], str]:
        """Format the listed terms, and what stands for the others before the sign.

        Examples
        --------
        >>> SplitRule(((1.0, 1),), 0, "<", 3.5).format_terms(["age", "income"])
        (('income',), '')
        >>> SplitRule(((0.5, 0), (-2.0, 1)), 3, ">", 7.0).format_terms(["age", "income"])
        (('0.5 × age', '− 2 × income'), '+ 3 more ')
        """
        terms = format_terms([(weight, names[feature]) for weight, feature in self.terms], digits)
        if len(terms) == 1 and not self.left_out and self.terms[0][0] == 1:  # a single feature has no weight
            terms = [names[self.terms[0][1]]]
        more = f"+ {self.left_out} more " if self.left_out else ""
        if not terms:
            more = f"{self.left_out} terms " if self.left_out else "0 "
        return tuple(terms), more

    def negate(self) -> SplitRule:
        """Return the same rule with all weights negated."""
        terms = tuple((-weight, feature) for weight, feature in self.terms)
        return SplitRule(terms, self.left_out, NEGATED[self.sign], -self.threshold + 0.0)

    def complement(self) -> SplitRule:
        """Return the rule of the other rows."""
        return self._replace(sign=COMPLEMENTS[self.sign])


def make_split_rule(tree: FlatTree, split: int, top: int | None = None) -> SplitRule:
    """Make the rule of a split in raw units, with its ``top`` most influential terms; None for all."""
    weight, bias = tree.weight[split].astype(np.float64), float(tree.bias[split])
    used = np.flatnonzero(weight)
    if len(used) == 1 and top != 0:  # a threshold in the unit of the feature
        feature = int(used[0])
        return SplitRule(((1.0, feature),), 0, ">" if weight[feature] > 0 else "<", -bias / weight[feature] + 0.0)
    order = rank_features(compute_effects(tree, split), len(used) if top is None else top)
    without_spread = [] if top is not None else [j for j in used if j not in set(order.tolist())]
    listed = [*order.tolist(), *without_spread]
    return SplitRule(tuple((float(weight[j]), int(j)) for j in listed), len(used) - len(listed), ">", -bias + 0.0)


def feature_importances(model: Any) -> Doubles:
    """Compute impurity-based feature importances: non-negative, sum 1.  (n_features_in_,)

    The information gain of a split, weighted by its share of the training rows, is distributed over the features by
    influence, |w_j| · spread_j: how far a feature moves the score when it moves by its own spread. So is the gain of a
    linear leaf over a constant one. For regression that is the decrease of its variance; for classification the
    decrease of the entropy if features varied in the leaf as in all of training. Correlated features
    share what either could contribute alone; ``sklearn.inspection.permutation_importance(model, X, y)`` measures what
    the score loses without a feature.

    Parameters
    ----------
    model : CrispTreeClassifier, Pipeline or FlatTree
        A fitted estimator with linear splits, a fitted Pipeline that ends in one, or its tree; of a Pipeline the
        features that reach the tree. For an estimator that encodes a table by itself, the importances are those of the
        columns of the table: the features of one category and its missing-value indicator are summed. Without any
        gain all are zero.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.inspection import permutation_importance
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> round(float(explain.feature_importances(model).sum()), 9)
    1.0
    >>> permuted = permutation_importance(model, X, y, n_repeats=5, random_state=0).importances_mean
    >>> bool(permuted[2:].min() > permuted[:2].max())  # the petals
    True
    """
    purpose = "explain.feature_importances"
    tree = require_linear_splits(model if isinstance(model, CrispTree) else view_model(model, purpose).tree, purpose)
    encoder = getattr(model, "__dict__", {}).get("encoder_")
    if encoder is not None:
        return np.asarray(encoder.preprocessing_.by_input(feature_importances(tree)))
    shares = compute_influence(tree)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    passing = tree.target.weight(tree.statistics.node_counts[: tree.structure.n_splits])
    importances = (passing * tree.statistics.gain) @ shares + _leaf_importances(tree)
    total = importances.sum()
    return importances / total if total > 0 else importances


def _leaf_importances(tree: FlatTree) -> Doubles:
    """Distribute the gains of linear leaves over the features.  (n_features,)"""
    importances = np.zeros(tree.n_features)
    if tree.linear_weight is None:
        return importances
    counts = tree.statistics.node_counts
    weights = tree.target.weight(counts)
    for node in range(tree.structure.n_splits, tree.structure.n_nodes):
        effects = tree.linear_weight[node] * tree.statistics.scaling.spread
        if tree.linear_variance is not None:
            gain = float(tree.target.impurity(counts[node]) - weights[node] * tree.linear_variance[node].mean())
        else:
            effects = effects - effects.mean(axis=0)  # the softmax ignores what all classes share
            gain = float(weights[node]) * _expected_gain(tree, node, effects)
        size = np.abs(effects).sum(axis=0)
        importances += max(gain, 0.0) * size / max(float(size.sum()), np.finfo(float).tiny)
    return importances


@np.errstate(under="ignore")  # a probability that is too small is 0
def _expected_gain(tree: FlatTree, node: int, effects: Doubles) -> float:
    """Compute the information gain of p = softmax(log frequencies + effects · z) over its mean, for normal z."""
    corner = np.linalg.qr(effects.T, mode="r")  # effects · z has the distribution of cornerᵀ · z, of few dimensions
    normal = np.random.default_rng(0).standard_normal((N_DRAWS, len(corner)))
    frequencies = tree.leaves[node - tree.structure.n_splits]
    probabilities = softmax(np.log(np.maximum(frequencies, np.finfo(float).tiny)) + normal @ corner, axis=1)
    return float(tree.target.impurity(probabilities.mean(axis=0)) - tree.target.impurity(probabilities).mean())


def rank_columns(view: ModelView, top: int) -> list[tuple[str, float]]:
    """Return the ``top`` columns of the table with the largest importances; none if splits are modules."""
    if not isinstance(view.tree, FlatTree):
        return []
    importances = sum_by_column(view, feature_importances(view.tree))
    order = np.argsort(-importances, kind="stable")[:top]
    return [(view.columns[j].name, round(float(importances[j]), 6)) for j in order if importances[j] > 0]


def sum_by_column(view: ModelView, values: Doubles) -> Doubles:
    """Sum the values of features by column.  (n_features,) → (n_columns,)"""
    return np.array([values[column.all_features].sum() for column in view.columns], dtype=np.float64)
