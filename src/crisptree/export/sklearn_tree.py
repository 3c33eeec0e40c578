"""Export to scikit-learn: axis-aligned trees as its own, which SHAP, treelite and others take."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.formats import EncodedRows, Predictions, find_format
from crisptree.export.portable import ExportError, Portable, PortableTree
from crisptree.inference.node_arrays import find_split_threshold

Integers = npt.NDArray[np.int64]

LEAVES = "crisptree_leaves_"
"""Attribute with our leaf index of every node, −1 for splits: ``apply`` gives nodes."""

FORMS = ("forest", "tree")


def sklearn_tree(model: Any) -> Any:
    """Convert an axis-aligned tree to a fitted decision tree of scikit-learn, equal to the model on every row.

    Splits compare a float32 value with a threshold, as scikit-learn does; the threshold is the largest number that
    our own sum sends the same way, so that rounding cannot part them. Missing numbers are NaN. Categories come
    as the features that the encoder makes of them: put ``model.encoder_`` before the tree, as in
    ``make_pipeline(model.encoder_, export.sklearn_tree(model))``.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispTreeRegressor or Pipeline
        Fitted, its splits thresholds on one feature each, as ``split="axis"`` makes them.

    Returns
    -------
    DecisionTreeClassifier or DecisionTreeRegressor
        Fitted. ``apply`` gives scikit-learn's node numbers; ``crisptree_leaves_[node]`` is our leaf number.

    See Also
    --------
    sklearn_forest : The form that treelite takes, and that holds forests.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> tree = export.sklearn_tree(model)
    >>> bool((tree.predict(X) == model.predict(X)).all())
    True
    >>> bool((tree.crisptree_leaves_[tree.apply(X)] == model.leaf_indices(X)).all())
    True
    """
    return _convert_tree(_check_model(model, "export.sklearn_tree"))


def sklearn_forest(model: Any) -> Any:
    """Convert axis-aligned trees to a fitted random forest of scikit-learn, equal to the model on every row.

    A single tree becomes a forest of one, because treelite and FIL take scikit-learn's forests and not its single
    trees. Thresholds, missing numbers and categories are as in ``sklearn_tree``.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispTreeRegressor, CrispForestClassifier, CrispForestRegressor or Pipeline
        Fitted, its splits thresholds on one feature each, as ``split="axis"`` makes them.

    Returns
    -------
    RandomForestClassifier or RandomForestRegressor
        Fitted. ``estimators_[k].crisptree_leaves_[node]`` is our leaf number of a node of tree k.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeRegressor, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), [1.0, 1.5, 7.0, 7.5]
    >>> model = CrispTreeRegressor(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> forest = export.sklearn_forest(model)
    >>> type(forest).__name__, len(forest.estimators_)
    ('RandomForestRegressor', 1)
    >>> bool((forest.predict(X) == model.predict(X)).all())
    True
    """
    return _convert_forest(_check_model(model, "export.sklearn_forest"))


def _check_model(model: Any, purpose: str) -> Portable:
    portable = Portable.of(model, purpose)
    find_format("sklearn").check(portable)
    return portable


def render(portable: Portable, *, form: str = "forest") -> bytes:
    """Write the forest, or the single tree, with joblib."""
    import joblib

    if form not in FORMS:
        raise ExportError(f"form must be one of {', '.join(FORMS)}; got {form!r}.")
    file = io.BytesIO()
    joblib.dump(_convert_forest(portable) if form == "forest" else _convert_tree(portable), file)
    return file.getvalue()


def run(portable: Portable, written: bytes, rows: EncodedRows) -> Predictions:
    """Predict with the forest or tree in a file of our own."""
    import joblib
    import sklearn

    fitted = joblib.load(io.BytesIO(written))
    fitted.__dict__.pop("feature_names_in_", None)  # the rows are an array
    X = rows.X if _takes_features(portable) else _with_missing(portable, rows.X)
    trees = getattr(fitted, "estimators_", [fitted])
    leaves = np.stack([getattr(tree, LEAVES)[tree.apply(X)] for tree in trees], axis=1)
    predicted, classes = fitted.predict(X), np.asarray(getattr(fitted, "classes_", ())).tolist()
    outputs = fitted.predict_proba(X) if classes else predicted.reshape(len(X), -1)
    notes = (f"run with scikit-learn {sklearn.__version__}",)
    return Predictions.of(leaves, outputs, predicted.tolist() if classes else (), classes, notes)


def _takes_features(portable: Portable) -> bool:
    """Return True if rows are encoded, because there are categories; else they are the columns of the table."""
    return any(column.kind == "category" for column in portable.inputs)


def _with_missing(portable: Portable, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Restore the columns of a numeric table, NaN where a value is missing, from the features of the tree."""
    columns = X[:, [column.feature for column in portable.inputs]].copy()
    for index, column in enumerate(portable.inputs):
        if column.missing_feature is not None:
            columns[X[:, column.missing_feature] > 0, index] = np.nan
    return columns


def _columns(portable: Portable) -> tuple[str, ...]:
    """Return names of the columns of scikit-learn's rows."""
    if _takes_features(portable):
        return portable.feature_names
    return tuple(column.name for column in portable.inputs)


def _convert_tree(portable: Portable) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if len(portable.trees) > 1:
        raise ExportError(
            f"a decision tree of scikit-learn is one tree; this forest has {len(portable.trees)}. Export it with "
            "sklearn_forest (form='forest'), or the trees one by one, forest.tree(0) and so on."
        )
    fitted = _fit_template(DecisionTreeClassifier if portable.classes else DecisionTreeRegressor, portable)
    _replace_nodes(fitted, portable, portable.trees[0])
    return fitted


def _convert_forest(portable: Portable) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if portable.classes else RandomForestRegressor
    fitted = _fit_template(kind, portable, n_estimators=len(portable.trees), bootstrap=False)
    for member, tree in zip(fitted.estimators_, portable.trees, strict=True):
        _replace_nodes(member, portable, tree)
    return fitted


def _fit_template(kind: Any, portable: Portable, **parameters: Any) -> Any:
    """Fit an estimator to a few rows, which sets everything but the nodes of its trees."""
    depth = max(1, *(tree.structure.depth for tree in portable.trees))
    n_outputs, columns = portable.n_outputs, _columns(portable)
    n_rows = n_outputs if portable.classes else 2
    number = np.arange(n_rows)
    y = number if portable.classes else np.tile(number[:, None].astype(float), n_outputs)
    criterion = "entropy" if portable.classes else "squared_error"
    fitted = kind(criterion=criterion, max_depth=depth, random_state=0, **parameters)
    fitted.fit(np.tile(number[:, None].astype(np.float32), len(columns)), y[:, 0] if y.shape[1:] == (1,) else y)
    if portable.classes:
        fitted.classes_ = np.array(portable.classes, dtype=object if portable.class_type == "object" else None)
    if portable.named and not _takes_features(portable):
        fitted.feature_names_in_ = np.array(columns, dtype=object)
    return fitted


def _replace_nodes(fitted: Any, portable: Portable, tree: PortableTree) -> None:
    """Replace the nodes of a fitted scikit-learn tree by those of one of our trees."""
    from sklearn.tree._tree import Tree

    nodes, values, leaves = _nodes(portable, tree, fitted.tree_.__getstate__()["nodes"].dtype)
    state = {"max_depth": tree.structure.depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    n_classes = fitted.tree_.n_classes
    fitted.tree_ = Tree(fitted.n_features_in_, np.asarray(n_classes, dtype=np.intp), len(n_classes))
    fitted.tree_.__setstate__(state)
    setattr(fitted, LEAVES, leaves)


def _nodes(
    portable: Portable, tree: PortableTree, dtype: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], Integers]:
    """scikit-learn's node records in preorder, their values, and our leaf index of each."""
    structure = tree.structure
    nodes = np.zeros(structure.n_nodes, dtype=dtype)
    number = np.full(structure.n_nodes, -1, dtype=np.int64)  # theirs for each of our nodes
    turned = [_condition(portable, tree, split) for split in range(structure.n_splits)]
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        number[node] = len(order)
        order.append(node)
        if node < structure.n_splits:
            below, above = structure.left_nodes[node], structure.right_nodes[node]
            if not turned[node][3]:
                below, above = above, below
            waiting += [int(above), int(below)]
    tables, variances = tree.node_tables, tree.node_variances
    rows = np.maximum(tree.node_rows, 0.0)
    for ours, record in zip(order, nodes, strict=True):
        record["impurity"] = _entropy(tables[ours]) if variances is None else variances[ours].mean()
        record["weighted_n_node_samples"] = rows[ours]
        record["n_node_samples"] = round(float(rows[ours]))
        if ours >= structure.n_splits:
            record["left_child"] = record["right_child"] = -1
            record["feature"], record["threshold"] = -2, -2.0
            continue
        feature, limit, missing_go_left, in_order = turned[ours]
        sides = (structure.left_nodes[ours], structure.right_nodes[ours])
        below, above = sides if in_order else sides[::-1]
        record["left_child"], record["right_child"] = number[below], number[above]
        record["feature"], record["threshold"] = feature, limit
        record["missing_go_to_left"] = missing_go_left
    leaves = np.array([ours - structure.n_splits if ours >= structure.n_splits else -1 for ours in order])
    ordered = tables[order].astype(np.float64)  # scikit-learn: (n_nodes, n_outputs, n_classes)
    return nodes, ordered[:, None, :] if variances is None else ordered[:, :, None], leaves


def _condition(portable: Portable, tree: PortableTree, split: int) -> tuple[int, float, bool, bool]:
    """(column, threshold, whether NaN goes to the side of small values, whether that side is our left one)"""
    feature, limit, larger_go_right = find_split_threshold(tree.weight[split], tree.bias[split])
    if _takes_features(portable):
        return feature, limit, False, larger_go_right
    index, column = portable.input_of(feature)
    if feature == column.feature:
        fill = np.float32(column.fill or 0.0)
        return index, limit, bool(fill <= limit), larger_go_right
    # Whether the value is missing: 0 or 1. No number is above infinity, so only NaN can go to the other side.
    if limit < 0 or limit >= 1:
        whole = np.inf if limit >= 1 else -np.inf
        return index, whole, limit >= 1, larger_go_right
    return index, np.inf, False, larger_go_right


def _entropy(table: npt.NDArray[np.float64]) -> float:
    """Entropy in bits, as scikit-learn measures it."""
    positive = table[table > 0]
    return float(-(positive * np.log2(positive)).sum())
