"""Attributions: what each column adds to the prediction of a row, along its path or as Shapley values.

Path attributions follow one row down the tree: every split changes the prediction of the node, and the features that
push the row its way share the change. Shapley values average over all orders in which columns become known. A leaf's
part of the prediction is a product of one factor per column wherever splits have one column each, and the Shapley
values of a product are a polynomial's integral, which a few quadrature points give exactly:

    φ_j = (a_j − b_j) ∫₀¹ Π_{k≠j} (t a_k + (1 − t) b_k) dt

with a_k = 1 where the row satisfies the leaf's conditions on column k, and b_k the same of a background row
(interventional) or the share of training rows that do (path-dependent). Where both are 0 or 1 the integral is a ratio
of factorials, which depends on two counts only. Splits on several columns have no such product: few columns are
enumerated, more are sampled, with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import beta, softmax

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inspection.decision_path import compute_contributions
from crisptree.inspection.display import Names, Printable, format_change, format_number, format_short
from crisptree.inspection.linear_splits import compute_influence, feature_importances, sum_by_column
from crisptree.inspection.model_view import InputColumn, ModelView, linear_models, require_linear_splits, view_model
from crisptree.inspection.validation import check_integer

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

MAX_ENUMERATED = 10
"""Columns up to which all their subsets are evaluated."""

MAX_BACKGROUND = 100
"""Rows of the background; of a larger one so many are drawn."""

ROWS_AT_ONCE = 2**16
"""Maximum number of rows predicted in one call."""

VALUES_AT_ONCE = 2**24
"""Maximum number of values of rows that are mixed for sampling."""


@dataclass(frozen=True, eq=False)
class Attributions(Printable):
    """Contribution of each column to the predictions of some rows; ``print`` shows the first row.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        Contributions; with ``base_values`` they add up to the prediction. Several classes or outputs have one each.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        The prediction before any column is known.
    data : ndarray of shape (n_rows, n_columns)
        Values of the columns; levels of a category as text, None for missing values.
    column_names, output_names : list of str
        Names of the columns, and of the classes or outputs.
    method : str
        What the values are, and whether they are exact.
    standard_errors : ndarray of the shape of values or None
        Standard errors of sampled values; None for exact ones.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrispTreeClassifier(split="axis", max_depth=2, random_state=0).fit(X, y)
    >>> attributions = explain.shapley_values(model, X[:3], background=X)
    >>> bool(np.allclose(attributions.predictions, model.predict_proba(X[:3])))
    True
    """

    values: Doubles
    base_values: Doubles
    data: npt.NDArray[Any]
    column_names: list[str]
    output_names: list[str]
    method: str
    standard_errors: Doubles | None = None

    @property
    def predictions(self) -> Doubles:
        """Base values and contributions added up.  (n_rows,) or (n_rows, n_outputs)"""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, which the plots of shap take, such as ``shap.plots.waterfall(…[0])``."""
        from shap import Explanation

        names = self.output_names if self.values.ndim > 2 else None
        labels = {"feature_names": self.column_names, "output_names": names}
        return Explanation(self.values, self.base_values, self.data, error_std=self.standard_errors, **labels)

    def __str__(self) -> str:
        lines = [self.method]
        outputs = self.output_names if self.values.ndim > 2 else self.output_names[-1:]
        for position, name in enumerate(outputs):
            values = self.values[0, :, position] if self.values.ndim > 2 else self.values[0]
            start, end = (np.atleast_1d(part[0])[position] for part in (self.base_values, self.predictions))
            lines.append(f"{name}: {format_number(start)} -> {format_number(end)}")
            order = np.argsort(-np.abs(values), kind="stable")
            lines += [
                f"    {format_change(values[j])} {self.column_names[j]} = {_format(self.data[0, j])}"
                for j in order
                if values[j] != 0
            ]
        return "\n".join(lines)


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "missing" if value is None else format_short(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class ImportanceEstimate(Printable):
    """Importances of columns over refitted models, the largest first; ``print`` shows them.

    Parameters
    ----------
    importances : ndarray of shape (n_fits, n_columns)
        Of every refitted model.
    column_names : list of str
        Names of the columns.

    Examples
    --------
    >>> from crisptree.explain import ImportanceEstimate
    >>> print(ImportanceEstimate(np.array([[0.8, 0.2], [0.6, 0.4]]), ["age", "income"]))
    mean and standard deviation over 2 fits
     70.0% ± 14.1%  age
     30.0% ± 14.1%  income
    """

    importances: Doubles
    column_names: list[str]

    @property
    def mean(self) -> Doubles:
        """Mean over the fits.  (n_columns,)"""
        return np.asarray(self.importances.mean(axis=0))

    @property
    def std(self) -> Doubles:
        """Standard deviation over the fits.  (n_columns,)"""
        return np.asarray(self.importances.std(axis=0, ddof=1))

    def __str__(self) -> str:
        order = np.argsort(-self.mean, kind="stable")
        rows = [f"{self.mean[j]:6.1%} ± {self.std[j]:5.1%}  {self.column_names[j]}" for j in order if self.mean[j] > 0]
        return "\n".join([f"mean and standard deviation over {len(self.importances)} fits", *rows])


def path_attributions(model: Any, X: Any, *, class_names: Names = None) -> Attributions:
    """Attribute the predictions of rows to columns along their decision paths; they add up exactly.

    A split moves the prediction from that of its node to that of the child that the row goes to. With one feature the
    change is its contribution; with several, those that push the row the way it goes, w_j (x_j − mean_j), share it in
    proportion. A linear leaf adds w_j (x_j − mean_j) of its model; the rest of its change is part of the base value. Of
    classes these are terms of scores, and those that push a class's probability the way it changes share the change.
    The contributions of a forest are the means over its trees.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted tree or forest with linear splits, or a fitted Pipeline that ends in one. For classification the
        contributions are those to class probabilities.
    X : array-like
        Rows, as in ``predict``.
    class_names : list of str, default=None
        Names in place of ``classes_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> result = explain.path_attributions(model, X)
    >>> result.values.shape, bool(np.allclose(result.predictions, model.predict_proba(X), rtol=1e-12))
    ((150, 4, 3), True)
    """
    view = view_model(model, "explain.path_attributions", class_names=class_names, forests=True)
    rows = view.prepare_rows(X)
    values, base = _mean_over_trees([_follow_paths(view, tree, rows) for tree in view.trees])
    return _collect(view, rows, _by_column(view, values), base, "contributions along the path (exact)")


def _mean_over_trees(parts: list[tuple[Doubles, Doubles]]) -> tuple[Doubles, Doubles]:
    values, base = zip(*parts, strict=True)
    return np.mean(values, axis=0), np.mean(base, axis=0)


def _follow_paths(view: ModelView, any_tree: CrispTree, rows: Singles) -> tuple[Doubles, Doubles]:
    """Compute the contributions of the features, and the base values.  (n, n_features, n_outputs), (n, n_outputs)"""
    from crisptree.inference.node_arrays import node_tables

    tree = require_linear_splits(any_tree, "explain.path_attributions")
    structure, n_outputs = tree.structure, len(view.class_names)
    nodes = tree.restore_units(node_tables(tree))[:, :n_outputs]
    leaf = route_rows(tree, rows)
    values, base = np.zeros((len(rows), tree.n_features, n_outputs)), np.tile(nodes[0], (len(rows), 1))
    for number in np.unique(leaf):
        own = np.flatnonzero(leaf == number)
        path = structure.nodes_to(int(number))
        for (split, goes_right), child in zip(structure.path(int(number)), path[1:], strict=True):
            amounts, _ = compute_contributions(tree, rows[own], split)
            shares = _shares(amounts if goes_right else -amounts, compute_influence(tree, split))
            values[own] += shares[..., None] * (nodes[child] - nodes[split])
        models = linear_models(tree)
        if models is not None:
            weight, bias = models[0][path[-1]], models[1][path[-1]]
            mean = tree.statistics.scaling.mean
            terms, start = (rows[own] - mean)[:, None, :] * weight, weight @ mean + bias
            if not view.is_regression:
                start = softmax(start)
                terms = _share_probabilities(tree, terms, start, tree.leaf_values(leaf[own], rows[own]) - start)
            values[own] += terms.transpose(0, 2, 1)
            base[own] += start - nodes[path[-1]]
    return values, base


def _share_probabilities(tree: FlatTree, terms: Doubles, start: Doubles, changes: Doubles) -> Doubles:
    """Share changes of class probabilities out to features in proportion to the terms of scores that push their way.

    (n, n_classes, n_features), (n_classes,), (n, n_classes) → (n, n_classes, n_features)
    """
    pushes = terms - np.einsum("c,ncf->nf", start, terms)[:, None]  # the derivative of log p, times the change of x
    shared = [
        _shares(np.sign(change)[:, None] * push, np.ones(tree.n_features)) * change[:, None]
        for push, change in zip(pushes.transpose(1, 0, 2), changes.T, strict=True)
    ]
    return np.stack(shared, axis=1)


def _shares(amounts: Doubles, influence: Doubles) -> Doubles:
    """Compute the shares of features with positive amounts in a step; each row's add up to 1.  (n, n_features)"""
    pushes = np.maximum(amounts, 0.0)
    for fallback in (influence, np.ones_like(influence)):
        pushes = np.where(pushes.sum(axis=1, keepdims=True) > 0, pushes, fallback)
    return np.asarray(pushes / pushes.sum(axis=1, keepdims=True))


def shapley_values(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    n_permutations: int = 100,
    random_state: int | None = None,
    class_names: Names = None,
) -> Attributions:
    """Compute Shapley values of columns: exact where that is possible, sampled with standard errors otherwise.

    * Without ``background``, and splits of one column each: path-dependent values, exact. An unknown column follows
      both branches by the shares of the training rows, as in shap's ``tree_path_dependent``.
    * With ``background``: interventional values. Unknown columns take their values from a background row, and the
      result is the mean over these rows. Exact where splits have one column each, or where the splits and linear leaves
      use at most 10 columns; otherwise sampled from ``n_permutations`` pairs of an order of the columns and its
      reverse, each pair with one background row, and all background rows equally often. ``standard_errors`` include
      the spread over background rows, and are at least as large as the errors of sampling.

    Values and base values add up to the prediction in any case.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted tree or forest with linear splits, or a fitted Pipeline that ends in one.
    X : array-like
        Rows, as in ``predict``.
    background : array-like, default=None
        Rows that stand for what is not known, such as the training rows; of more than 100, 100 are drawn.
    n_permutations : int, default=100
        Number of pairs of permutations where values are sampled, rounded up to a multiple of the background rows.
    random_state : int, default=None
        Seed of the permutations and of the rows that are drawn.
    class_names : list of str, default=None
        Names in place of ``classes_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> result = explain.shapley_values(model, X[:5], background=X, random_state=0)
    >>> result.method
    'interventional Shapley values (exact) over 100 background rows'
    >>> bool(np.allclose(result.predictions, model.predict_proba(X[:5])))
    True
    """
    view = view_model(model, "explain.shapley_values", class_names=class_names, forests=True)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    rows, rng = view.prepare_rows(X), np.random.default_rng(random_state)
    trees = [require_linear_splits(tree, "explain.shapley_values") for tree in view.trees]
    owner = _owners(view)
    is_product = all(_has_one_column_each(tree, owner) for tree in trees)
    if background is None and not is_product:
        raise ValueError(
            "`background` must be given where splits have several columns or leaves are linear; path-dependent "
            "values exist for splits of one column each. Pass training rows, such as background=X_train."
        )
    others = None if background is None else view.prepare_rows(background)
    if others is not None and len(others) > MAX_BACKGROUND:
        others = others[np.sort(rng.choice(len(others), MAX_BACKGROUND, replace=False))]
    size = "" if others is None else f"over {len(others)} background row{'s' * (len(others) != 1)}"
    exact = (
        "path-dependent Shapley values (exact)" if others is None else f"interventional Shapley values (exact) {size}"
    )
    if others is None or is_product:
        values, base = _mean_over_trees([_product_values(view, tree, rows, owner, others) for tree in trees])
        return _collect(view, rows, values, base, exact)
    used = np.unique(owner[np.flatnonzero(np.any([_used_features(tree) for tree in trees], axis=0))])
    base = np.tile(_predict(view, others).mean(axis=0), (len(rows), 1))
    values = np.zeros((len(rows), len(view.columns), base.shape[1]))
    if len(used) <= MAX_ENUMERATED:
        for number, row in enumerate(rows):
            values[number][used] = _enumerate(view, row, others, owner, used)
        return _collect(view, rows, values, base, exact)
    errors, rounds = np.zeros_like(values), max(-(-n_permutations // len(others)), 2 if len(others) == 1 else 1)
    for number, row in enumerate(rows):
        values[number][used], errors[number][used] = _sample(view, row, others, owner, used, rounds, rng)
    method = f"interventional Shapley values (sampled, {rounds * len(others)} pairs of permutations) {size}"
    return _collect(view, rows, values, base, method, errors)


def _owners(view: ModelView) -> npt.NDArray[np.intp]:
    """Return the column of every feature.  (n_features,)"""
    owner = np.zeros(view.tree.n_features, dtype=np.intp)
    for number, column in enumerate(view.columns):
        owner[column.all_features] = number
    return owner


def _used_features(tree: FlatTree) -> npt.NDArray[np.bool_]:
    used = (tree.weight != 0).any(axis=0)
    return used if tree.linear_weight is None else used | (tree.linear_weight != 0).any(axis=(0, 1))


def _has_one_column_each(tree: FlatTree, owner: npt.NDArray[np.intp]) -> bool:
    """Return True if every leaf's share is a product over columns: splits of one column, and constant leaves."""
    return not tree.is_linear and all(len(set(owner[np.flatnonzero(weight)].tolist())) <= 1 for weight in tree.weight)


def _product_values(
    view: ModelView, tree: FlatTree, rows: Singles, owner: npt.NDArray[np.intp], others: Singles | None
) -> tuple[Doubles, Doubles]:
    """Compute Shapley values of the product games of all leaves, and the base values."""
    n_outputs, structure = len(view.class_names), tree.structure
    outputs = tree.leaf_values()[:, :n_outputs]
    values = np.zeros((len(rows), len(view.columns), n_outputs))
    base = np.zeros(n_outputs)
    counts = tree.target.weight(tree.statistics.node_counts)
    owners = [_column_of(tree, split, owner) for split in range(structure.n_splits)]
    own_right = [tree.scores(rows, split) > 0 for split in range(structure.n_splits)]
    other_right = [] if others is None else [tree.scores(others, split) > 0 for split in range(structure.n_splits)]
    for leaf in range(structure.n_leaves):
        path, nodes = structure.path(leaf), structure.nodes_to(leaf)
        columns = sorted({owners[split] for split, _ in path} - {-1})
        place = {column: number for number, column in enumerate(columns)}
        own = np.ones((len(rows), len(columns)))
        unknown = np.ones((1 if others is None else len(others), len(columns)))
        reached = 1.0
        for (split, goes_right), node, child in zip(path, nodes, nodes[1:], strict=False):
            column = owners[split]
            if column < 0:  # all rows go one way
                reached *= float((tree.bias[split] > 0) == goes_right)
                continue
            own[:, place[column]] *= own_right[split] == goes_right
            if others is None:
                unknown[:, place[column]] *= counts[child] / counts[node] if counts[node] > 0 else 0.5
            else:
                unknown[:, place[column]] *= other_right[split] == goes_right
        shares = reached * (_product_shapley if others is None else _indicator_shapley)(own, unknown)
        values[:, columns] += shares[..., None] * outputs[leaf]
        base += reached * unknown.prod(axis=1).mean() * outputs[leaf]
    return values, np.tile(base, (len(rows), 1))


def _column_of(tree: FlatTree, split: int, owner: npt.NDArray[np.intp]) -> int:
    used = np.flatnonzero(tree.weight[split])
    return int(owner[used[0]]) if len(used) else -1


def _product_shapley(own: Doubles, unknown: Doubles) -> Doubles:
    """Compute the Shapley values of v(S) = Π_{j∈S} a_j Π_{j∉S} b_j, mean over rows of b.  (n, d), (m, d) → (n, d)

    Examples
    --------
    >>> _product_shapley(np.array([[1.0, 1.0]]), np.array([[0.5, 0.0]]))
    array([[0.25, 0.75]])
    """
    n_columns = own.shape[1]
    points, weights = np.polynomial.legendre.leggauss(n_columns // 2 + 1)
    values = np.zeros_like(own)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        for row in unknown:
            mixed = point * own + (1 - point) * row
            for column in range(n_columns):
                rest = np.delete(mixed, column, axis=1).prod(axis=1)
                values[:, column] += weight * rest * (own[:, column] - row[column])
    return values / len(unknown)


def _indicator_shapley(own: Doubles, unknown: Doubles) -> Doubles:
    """Compute the same for indicators a and b.  (n, d), (m, d) → (n, d)

    With g columns of a = 1, b = 0 and l of a = 0, b = 1, and none of a = b = 0, a column of the first kind has
    the value (g − 1)! l! / (g + l)!, and one of the second kind −g! (l − 1)! / (g + l)!.

    Examples
    --------
    >>> own, unknown = np.array([[1.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    >>> bool(np.allclose(_indicator_shapley(own, unknown), _product_shapley(own, unknown)))
    True
    """
    own, rows = np.unique(own, axis=0, return_inverse=True)
    unknown, counts = np.unique(unknown, axis=0, return_counts=True)
    gained, lost = own @ (1 - unknown).T, (1 - own) @ unknown.T
    is_reachable = (1 - own) @ (1 - unknown).T == 0
    share = is_reachable * counts / counts.sum()
    up = share * (gained > 0) * beta(np.maximum(gained, 1), lost + 1)
    down = share * (lost > 0) * beta(gained + 1, np.maximum(lost, 1))
    return np.asarray((own * (up @ (1 - unknown)) - (1 - own) * (down @ unknown))[rows.ravel()])


def _predict(view: ModelView, rows: Singles) -> Doubles:
    """Predict class probabilities or means of prepared rows.  (n, n_outputs)"""
    blocks = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
    return np.concatenate(
        [np.mean([tree.leaf_values(route_rows(tree, block), block) for tree in view.trees], axis=0) for block in blocks]
    )[:, : len(view.class_names)]


def _predict_mixed(
    view: ModelView, row: Singles, others: Singles, owner: npt.NDArray[np.intp], known: npt.NDArray[np.bool_]
) -> Doubles:
    """Predict the means over background rows with some columns of a row.  (m, n_columns) → (m, n_outputs)"""
    mixed = np.where(known[:, None, owner], row, others[None]).astype(np.float32)
    values = _predict(view, np.ascontiguousarray(mixed.reshape(-1, len(row))))
    return np.asarray(values.reshape(len(known), len(others), -1).mean(axis=1))


def _enumerate(
    view: ModelView, row: Singles, others: Singles, owner: npt.NDArray[np.intp], used: npt.NDArray[np.intp]
) -> Doubles:
    """Compute exact Shapley values from all subsets of the columns that are used.  (len(used), n_outputs)"""
    from math import comb

    n = len(used)
    subsets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    known = np.zeros((len(subsets), len(view.columns)), dtype=bool)
    known[:, used] = subsets
    outcomes, sizes = _predict_mixed(view, row, others, owner, known), subsets.sum(axis=1)
    values = np.zeros((n, outcomes.shape[1]))
    for column in range(n):
        without = np.flatnonzero(~subsets[:, column])
        weight = np.array([1 / (n * comb(n - 1, int(size))) for size in sizes[without]])
        values[column] = weight @ (outcomes[without + 2**column] - outcomes[without])
    return values


def _sample(
    view: ModelView,
    row: Singles,
    others: Singles,
    owner: npt.NDArray[np.intp],
    used: npt.NDArray[np.intp],
    rounds: int,
    rng: np.random.Generator,
) -> tuple[Doubles, Doubles]:
    """Estimate Shapley values from pairs of permutations: values and standard errors.  (len(used), n_outputs) each

    Each round has one pair for every background row, whose columns turn into those of the row one after the other.
    """
    n, steps, pairs = len(used), np.arange(len(used) + 1), list[Doubles]()
    at_once = max(1, VALUES_AT_ONCE // (2 * len(steps) * len(row)))
    background = np.tile(others, (rounds, 1))
    for start in range(0, len(background), at_once):
        rest = background[start : start + at_once]
        ranks = rng.permuted(np.tile(np.arange(n), (len(rest), 1)), axis=1)
        ranks = np.stack([ranks, n - 1 - ranks])  # an order and its reverse
        turn = np.full((2, len(rest), len(view.columns)), n)  # a column that is not used stays as it is
        turn[..., used] = ranks
        mixed = np.where(turn[:, :, None, owner] < steps[:, None], row, rest[:, None])
        outcomes = _predict(view, np.ascontiguousarray(mixed.reshape(-1, len(row))))
        changes = np.diff(outcomes.reshape(2, len(rest), n + 1, -1), axis=2)
        pairs.extend(np.take_along_axis(changes, ranks[..., None], axis=2).mean(axis=0))
    return np.mean(pairs, axis=0), np.std(pairs, axis=0, ddof=1) / np.sqrt(len(pairs))


def _by_column(view: ModelView, values: Doubles) -> Doubles:
    """Add up the contributions of the features of a column.  (n, n_features, …) → (n, n_columns, …)"""
    return np.stack([values[:, column.all_features].sum(axis=1) for column in view.columns], axis=1)


def _collect(
    view: ModelView, rows: Singles, values: Doubles, base: Doubles, method: str, errors: Doubles | None = None
) -> Attributions:
    """Make the result; a single regression output has no axis of its own."""
    if values.shape[2] == 1:
        values, base, errors = values[..., 0], base[..., 0], None if errors is None else errors[..., 0]
    data = np.array([[_value(column, row) for column in view.columns] for row in rows], dtype=object)
    if all(column.kind == "number" and not column.missing for column in view.columns):
        data = data.astype(np.float64)
    names = [column.name for column in view.columns]
    return Attributions(values, base, data, names, list(view.class_names), method, errors)


def _value(column: InputColumn, row: Singles) -> Any:
    value = column.value(row)
    if column.kind == "boolean" and value is not None:
        return value > 0.5
    return float(str(value)) if isinstance(value, np.floating) else value


def importances_over_folds(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, n_folds: int = 5, random_state: int = 0
) -> ImportanceEstimate:
    """Refit a model to all folds but one each, and compare the importances of its columns: mean and spread.

    An importance of one fit says nothing about what another sample of rows would give. Where the standard deviation is
    as large as the mean, the order of columns means little.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted or not; clones are fitted, with model selection where parameters are "auto".
    X, y, sample_weight : array-like
        Rows in memory, as in ``fit``.
    n_folds : int, default=5
        Number of folds, at least 2; stratified for classification.
    random_state : int, default=0
        Seed of the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CrispTreeClassifier(max_depth=2, split="axis", random_state=0)
    >>> result = explain.importances_over_folds(model, X, y)
    >>> result.importances.shape, result.column_names[int(result.mean.argmax())].startswith("petal")
    ((5, 4), True)
    """
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.utils import _safe_indexing

    labels = np.asarray(y)
    folds = (StratifiedKFold if is_classifier(model) else KFold)(
        check_integer("n_folds", n_folds, 2), shuffle=True, random_state=random_state
    )
    weights = None if sample_weight is None else np.asarray(sample_weight)
    found: list[Doubles] = []
    for train, _ in folds.split(np.zeros(len(labels)), labels):
        options = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train), **options)
        view = view_model(fitted, "explain.importances_over_folds", forests=True)
        found.append(np.mean([sum_by_column(view, feature_importances(tree)) for tree in view.trees], axis=0))
    return ImportanceEstimate(np.array(found), [column.name for column in view.columns])
