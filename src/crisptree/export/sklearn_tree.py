"""A tree of thresholds as scikit-learn's own, which SHAP, treelite and others take."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.agreement import Answers, Rows
from crisptree.export.portable import ExportError, Input, Portable, PortableTree
from crisptree.export.thresholds import split_threshold

Integers = npt.NDArray[np.int64]

FITTED_AS = "crisptree_leaves_"
"""The attribute that keeps our leaf number of every node, −1 for splits: ``apply`` gives nodes."""


def sklearn_tree(model: Any) -> Any:
    """A tree of thresholds as a fitted ``DecisionTreeClassifier`` of scikit-learn, equal to the model on every row.

    It asks for a float32 value of at most a threshold, as scikit-learn does; the threshold is the largest number that
    our own sum sends the same way, so that rounding cannot part them. Missing numbers are NaN. Categories come
    as the features that the encoder makes of them: put ``model.encoder_`` before the tree, as in
    ``make_pipeline(model.encoder_, export.sklearn_tree(model))``.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        Fitted, its splits thresholds on one feature each, as ``split="axis"`` makes them.

    Returns
    -------
    DecisionTreeClassifier
        Fitted. ``apply`` gives scikit-learn's node numbers; ``crisptree_leaves_[node]`` is our leaf number.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> tree = export.sklearn_tree(model)
    >>> bool((tree.predict(X) == model.predict(X)).all())
    True
    >>> bool((tree.crisptree_leaves_[tree.apply(X)] == model.apply(X)).all())
    True
    """
    from crisptree.export.support import target_named

    portable = Portable.of(model, "export.sklearn_tree")
    target_named("sklearn").check(portable)
    return _built(portable)


def write(portable: Portable) -> bytes:
    """The tree as joblib writes it."""
    import joblib

    file = io.BytesIO()
    joblib.dump(_built(portable), file)
    return file.getvalue()


def answers(portable: Portable, written: bytes, rows: Rows) -> Answers:
    """What the tree in a file of our own says."""
    import joblib
    import sklearn

    tree = joblib.load(io.BytesIO(written))
    tree.__dict__.pop("feature_names_in_", None)  # the rows are an array
    X = rows.X if _takes_features(portable) else _with_holes(portable, rows.X)
    given = np.asarray(tree.classes_)
    place = {label: number for number, label in enumerate(given.tolist())}
    classes = np.array([place[label] for label in tree.predict(X).tolist()], dtype=np.int64)
    leaves = getattr(tree, FITTED_AS)[tree.apply(X)]
    return Answers(leaves, classes, tree.predict_proba(X), (f"run with scikit-learn {sklearn.__version__}",))


def _takes_features(portable: Portable) -> bool:
    """Whether rows are what the encoder makes of a table, because there are categories; else they are the columns."""
    return any(column.kind == "category" for column in portable.inputs)


def _with_holes(portable: Portable, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The columns of a table of numbers, NaN where a value is missing, from the features of the tree."""
    columns = X[:, [column.feature for column in portable.inputs]].copy()
    for place, column in enumerate(portable.inputs):
        if column.missing_feature is not None:
            columns[X[:, column.missing_feature] > 0, place] = np.nan
    return columns


def _built(portable: Portable) -> Any:
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.tree._tree import Tree

    (tree,) = portable.trees
    n_outputs = portable.n_outputs
    fitted = DecisionTreeClassifier(criterion="entropy", max_depth=max(tree.structure.depth, 1), random_state=0)
    columns: tuple[str, ...] = portable.feature_names
    if not _takes_features(portable):
        columns = tuple(column.name for column in portable.inputs)
    # A tiny fit brings everything that scikit-learn keeps beside the nodes; those are ours.
    classes = np.array(portable.classes, dtype=object if portable.class_type == "object" else None)
    label_order = np.arange(n_outputs)
    example = np.full((n_outputs, len(columns)), np.nan, dtype=np.float32)
    example[:, :] = label_order[:, None]
    fitted.fit(example, label_order)
    fitted.classes_, fitted.n_classes_ = classes, n_outputs
    if portable.named and not _takes_features(portable):
        fitted.feature_names_in_ = np.array(columns, dtype=object)
    nodes, values, leaves = _nodes(portable, tree, columns, fitted.tree_.__getstate__()["nodes"].dtype)
    state = {"max_depth": tree.structure.depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    fitted.tree_ = Tree(len(columns), np.array([n_outputs], dtype=np.intp), 1)
    fitted.tree_.__setstate__(state)
    setattr(fitted, FITTED_AS, leaves)
    return fitted


def _nodes(
    portable: Portable, tree: PortableTree, columns: tuple[str, ...], dtype: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], Integers]:
    """scikit-learn's records, in its order: a node, all that lies on its left, all that lies on its right."""
    structure = tree.structure
    nodes = np.zeros(structure.n_nodes, dtype=dtype)
    number = np.full(structure.n_nodes, -1, dtype=np.int64)  # theirs for each of our nodes
    turned = [_question(portable, tree, split) for split in range(structure.n_splits)]
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
    tables = tree.node_tables
    rows = np.maximum(tree.node_rows, 0.0)
    for ours, record in zip(order, nodes, strict=True):
        record["impurity"] = _entropy(tables[ours])
        record["weighted_n_node_samples"] = rows[ours]
        record["n_node_samples"] = round(float(rows[ours]))
        if ours >= structure.n_splits:
            record["left_child"] = record["right_child"] = -1
            record["feature"], record["threshold"] = -2, -2.0
            continue
        feature, limit, holes_go_left, in_order = turned[ours]
        sides = (structure.left_nodes[ours], structure.right_nodes[ours])
        below, above = sides if in_order else sides[::-1]
        record["left_child"], record["right_child"] = number[below], number[above]
        record["feature"], record["threshold"] = feature, limit
        record["missing_go_to_left"] = holes_go_left
    leaves = np.array([ours - structure.n_splits if ours >= structure.n_splits else -1 for ours in order])
    return nodes, tables[order][:, None, :].astype(np.float64), leaves


def _question(portable: Portable, tree: PortableTree, split: int) -> tuple[int, float, bool, bool]:
    """(column, threshold, whether NaN goes to the side of the small values, whether that side is our left one)"""
    feature, limit, larger_go_right = split_threshold(tree.weight[split], tree.bias[split])
    if _takes_features(portable):
        return feature, limit, False, larger_go_right
    place, column = _column_of(portable.inputs, feature)
    if feature == column.feature:
        fill = np.float32(column.fill or 0.0)
        return place, limit, bool(fill <= limit), larger_go_right
    # Whether the value is missing: 0 or 1. No number is above infinity, so only NaN can go to the other side.
    if limit < 0 or limit >= 1:
        whole = np.inf if limit >= 1 else -np.inf
        return place, whole, limit >= 1, larger_go_right
    return place, np.inf, False, larger_go_right


def _column_of(inputs: tuple[Input, ...], feature: int) -> tuple[int, Input]:
    for place, column in enumerate(inputs):
        if column.feature <= feature <= column.feature + column.n_own - 1 + column.missing:
            return place, column
    raise ExportError(f"the tree asks for feature {feature}, which no column has.")


def _entropy(table: npt.NDArray[np.float64]) -> float:
    """In bits, as scikit-learn counts it."""
    positive = table[table > 0]
    return float(-(positive * np.log2(positive)).sum())
