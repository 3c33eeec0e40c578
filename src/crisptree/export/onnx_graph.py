"""Export to ONNX: a model as a graph of common operators.

Rows enter under the names of their columns, scores lead to leaves in one of two forms, and outputs have the names and
types that skl2onnx gives them, with the leaf beside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.escaping import make_identifier
from crisptree.export.formats import EncodedRows, Predictions, find_format
from crisptree.export.portable import ExportError, Portable, StackedTrees
from crisptree.inspection.model_view import InputColumn

OPSET, ML_OPSET = 13, 3
"""Old enough for runtimes of phones and browsers, new enough for all operators used."""

IR_VERSION = 8

DTYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "string": np.object_}

ROWS = "X"
"""Name of the input of a model without encoder, as skl2onnx calls it."""

RESERVED = ("label", "probabilities", "variable", "leaf")
"""Names of outputs, which no input may have."""

FORMS = ("ensemble", "paths")

ROWS_PER_RUN = 4096


def onnx(model: Any, *, name: str = "model", form: str = "ensemble") -> bytes:
    """Export a fitted model to ONNX; needs the package onnx (``pip install 'crisptree[onnx]'``).

    The input is ``X``, rows of float32, or one input for every column where the model encodes tables. Outputs are
    ``label`` and ``probabilities``, as skl2onnx gives them, or ``variable`` of a regression; and ``leaf``.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    name : str, default="model"
        The name of the graph.
    form : {"ensemble", "paths"}, default="ensemble"
        "ensemble": all scores by one Gemm, then the ensemble of trees of ai.onnx.ml. "paths": level by level, every
        row evaluates the splits on its own path only, by core operators; for few rows and many splits.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> type(export.onnx(model)).__name__
    'bytes'
    """
    written = find_format("onnx").write(model, name=name, form=form)
    assert isinstance(written, bytes)
    return written


def render(model: Portable, name: str = "model", form: str = "ensemble") -> bytes:
    """Write the file; see ``export.onnx``."""
    if form not in FORMS:
        raise ExportError(f"`form` must be one of {', '.join(FORMS)}; got {form!r}.")
    graph, trees = OnnxGraph(), model.stacked
    rows = _add_inputs(graph, model)
    if form == "paths" and trees.n_splits:
        leaves = _route_by_paths(graph, model, trees, rows)
    else:
        leaves = _route_by_ensemble(graph, model, trees, _linear_scores(graph, trees, rows))
    _add_outputs(graph, model, trees, rows, leaves)
    what = "decision tree" if trees.n_trees == 1 else f"forest of {trees.n_trees} trees"
    lines = (f"{what}, {trees.n_leaves} leaves, form {form}.", *model.provenance)
    return graph.serialize(make_identifier(name), " ".join(lines), model.model_id)


def run(portable: Portable, written: bytes, rows: EncodedRows) -> Predictions:
    """Predict rows with onnxruntime on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ExportError(
            "a check of ONNX needs the package onnxruntime. Install it: pip install onnxruntime."
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    inputs = _encode_inputs(portable, rows)
    outputs_of: dict[str, list[Any]] = {name: [] for name in names}
    for start in range(0, max(len(rows), 1), ROWS_PER_RUN):
        piece = {name: values[start : start + ROWS_PER_RUN] for name, values in inputs.items()}
        for name, values in zip(names, session.run(names, piece), strict=True):
            outputs_of[name].append(values)
    outputs = {name: np.concatenate(values) for name, values in outputs_of.items()}
    notes = (f"run with onnxruntime {onnxruntime.__version__}",)
    values, labels = ("probabilities", outputs["label"].tolist()) if portable.classes else ("variable", ())
    classes = _label_values(portable.classes)[1].tolist()
    return Predictions.of(outputs["leaf"], outputs[values], labels, classes, notes)


def _encode_inputs(portable: Portable, rows: EncodedRows) -> dict[str, Any]:
    """Convert rows to the inputs of the graph."""
    if not portable.encodes:
        return {ROWS: rows.unfilled(portable)}
    inputs: dict[str, Any] = {}
    for name, column in zip(_input_names(portable), portable.inputs, strict=True):
        values = rows.columns[column.name]
        if column.kind == "category":
            texts = ["" if value is None else str(value) for value in values]
            inputs[name] = np.array(texts, dtype=object).reshape(-1, 1)
        else:
            numbers = [np.nan if value is None else float(value) for value in values]
            inputs[name] = np.array(numbers, dtype=np.float32).reshape(-1, 1)
    return inputs


class OnnxGraph:
    """A graph under construction; every method that adds a node returns the name of its output."""

    def __init__(self) -> None:
        self.helper, self.numpy_helper, self.proto = _import_onnx()
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.domains = {""}

    def input(self, name: str, kind: str, width: int) -> str:
        """Add an input of so many values per row."""
        self.inputs.append(self.helper.make_tensor_value_info(name, self._type(kind), ["N", width]))
        return name

    def output(self, source: str, name: str, kind: str, shape: Sequence[str | int]) -> None:
        """Name an output of the graph."""
        self.nodes.append(self.helper.make_node("Identity", [source], [name]))
        self.outputs.append(self.helper.make_tensor_value_info(name, self._type(kind), list(shape)))

    def constant(self, values: npt.ArrayLike, kind: str, name: str = "constant") -> str:
        """Add a constant array; strings are objects."""
        called = f"crisptree/{name}/{len(self.constants)}"
        array = np.asarray(values, dtype=DTYPES[kind])
        if kind == "string":
            texts = [str(text).encode("utf-8", "surrogatepass") for text in array.reshape(-1)]
            tensor = self.helper.make_tensor(called, self._type(kind), array.shape, texts)
        else:
            tensor = self.numpy_helper.from_array(np.ascontiguousarray(array), called)
        self.constants[called] = tensor
        return called

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node."""
        self.domains.add(domain)
        called = f"crisptree/{operator}/{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [called], domain=domain, **attributes))
        return called

    def cast(self, value: str, kind: str) -> str:
        """Add a cast to another type."""
        return self.add("Cast", value, to=self._type(kind))

    def reshape(self, value: str, *shape: int) -> str:
        """Add a reshape; −1 is inferred, 0 stays."""
        return self.add("Reshape", value, self.constant(shape, "int64", "shape"))

    def serialize(self, name: str, description: str, model_id: str | None) -> bytes:
        """Check the graph and convert it to a file."""
        import onnx

        constants = list(self.constants.values())
        graph = self.helper.make_graph(self.nodes, name, self.inputs, self.outputs, constants, description)
        versions = {"": OPSET, "ai.onnx.ml": ML_OPSET}
        opsets = [self.helper.make_opsetid(domain, versions[domain]) for domain in sorted(self.domains)]
        model = self.helper.make_model(graph, opset_imports=opsets, producer_name="crisptree", doc_string=description)
        model.ir_version = IR_VERSION
        self.helper.set_model_props(model, {"model_id": model_id})
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))

    def _type(self, kind: str) -> int:
        return int(getattr(self.proto, kind.upper()))


def _import_onnx() -> tuple[Any, Any, Any]:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ExportError(
            "an export to ONNX needs the package onnx. Install it: pip install 'crisptree[onnx]'."
        ) from error
    return helper, numpy_helper, TensorProto


def _add_inputs(graph: OnnxGraph, model: Portable) -> str:
    """Add the inputs, and encode columns to the features of the trees.  (N, n_features)

    A model that encodes tables has an input of one value a row for every column: text for a category, else a number,
    which is NaN where it is missing. A text that training did not know makes all features of its column 0.
    """
    if not model.encodes:
        rows = graph.input(ROWS, "float", model.n_features)
        if not model.fills:
            return rows
        fill = [np.nan if column.fill is None else column.fill for column in model.inputs]
        return graph.add("Where", graph.add("IsNaN", rows), graph.constant(fill, "float", "fill"), rows)
    parts = []
    for name, column in zip(_input_names(model), model.inputs, strict=True):
        parts += (
            _encode_category(graph, model, column, name)
            if column.kind == "category"
            else _encode_number(graph, column, name)
        )
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _input_names(model: Portable) -> list[str]:
    """Return names of the inputs: those of the columns, made distinct from the outputs and from each other."""
    if not model.encodes:
        return [ROWS]
    names: list[str] = []
    for number, column in enumerate(model.inputs):
        plain = column.name.encode("utf-8", "replace").decode()
        fits = plain and plain not in (*RESERVED, *names) and not plain.startswith("crisptree/")
        names.append(plain if fits else f"column {number}: {plain}")
    return names


def _encode_number(graph: OnnxGraph, column: InputColumn, name: str) -> list[str]:
    value = graph.input(name, "float", 1)
    if column.fill is None:
        return [value]
    missing = graph.add("IsNaN", value)
    filled = graph.add("Where", missing, graph.constant(column.fill, "float", "fill"), value)
    return [filled, graph.cast(missing, "float")] if column.missing else [filled]


def _encode_category(graph: OnnxGraph, model: Portable, column: InputColumn, name: str) -> list[str]:
    value = graph.input(name, "string", 1)
    parts = []
    if column.categories:
        parts.append(_one_hot(graph, value, column.categories))
    if column.missing:
        texts = tuple(dict.fromkeys(("", *model.missing_texts)))
        parts.append(graph.add("ReduceMax", _one_hot(graph, value, texts), axes=[1], keepdims=1))
    return parts


def _one_hot(graph: OnnxGraph, value: str, texts: tuple[str, ...]) -> str:
    """One-hot encode a text.  (N, 1) → (N, n_texts)"""
    categories = [text.encode("utf-8", "surrogatepass") for text in texts]
    encoded = graph.add("OneHotEncoder", value, domain="ai.onnx.ml", cats_strings=categories, zeros=1)
    return graph.reshape(encoded, -1, len(texts))


def _route_by_ensemble(graph: OnnxGraph, model: Portable, trees: StackedTrees, scores: str) -> str:
    """Leaf of each tree by a tree ensemble: scores are its features, with thresholds at zero."""
    nodes: defaultdict[str, list[Any]] = defaultdict(list)
    targets: defaultdict[str, list[Any]] = defaultdict(list)
    start = 0
    for number, tree in enumerate(model.trees):
        structure = tree.structure
        n_splits, n_leaves, n_nodes = structure.n_splits, structure.n_leaves, structure.n_nodes
        none = [0] * n_leaves
        nodes["treeids"] += [number] * n_nodes
        nodes["nodeids"] += range(n_nodes)
        nodes["featureids"] += [*range(start, start + n_splits), *none]
        nodes["modes"] += ["BRANCH_LEQ"] * n_splits + ["LEAF"] * n_leaves
        nodes["values"] += [0.0] * n_nodes
        nodes["truenodeids"] += structure.left_nodes.tolist() + none  # "true" is at most zero, our left
        nodes["falsenodeids"] += structure.right_nodes.tolist() + none
        targets["treeids"] += [number] * n_leaves
        targets["nodeids"] += range(n_splits, n_nodes)
        targets["ids"] += [number] * n_leaves
        targets["weights"] += [float(trees.first_leaf[number] + leaf) for leaf in range(n_leaves)]
        start += n_splits
    leaves = graph.add(
        "TreeEnsembleRegressor",
        scores,
        domain="ai.onnx.ml",
        n_targets=trees.n_trees,
        post_transform="NONE",
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in targets.items()},
    )
    return graph.cast(leaves, "int64")


def _route_by_paths(graph: OnnxGraph, model: Portable, trees: StackedTrees, rows: str) -> str:
    """Leaf of each tree level by level: every row computes the score of its current split only.

    Nodes are numbered over all trees, splits before leaves; a leaf is its own child and evaluates split 0 in vain.
    """
    n_splits = trees.n_splits
    children = np.repeat(np.arange(n_splits + trees.n_leaves), 2).reshape(-1, 2)
    for side, own in enumerate((trees.left, trees.right)):
        children[:n_splits, side] = np.where(own >= 0, own, n_splits + ~own)
    roots = np.where(trees.root >= 0, trees.root, n_splits + ~trees.root)
    evaluated = np.where(np.arange(n_splits + trees.n_leaves) < n_splits, np.arange(n_splits + trees.n_leaves), 0)
    weight, bias = (
        graph.constant(part, "float", name) for part, name in ((trees.weight, "weight"), (trees.bias, "bias"))
    )
    split_of = graph.constant(evaluated, "int64", "split")
    below = graph.constant(children.reshape(-1), "int64", "children")
    two, zero = graph.constant(2, "int64", "two"), graph.constant(0.0, "float", "zero")
    last = graph.constant([2], "int64", "axis")
    beside = graph.add("Unsqueeze", rows, graph.constant([1], "int64", "axis"))  # (N, 1, features)
    n_rows = graph.add("Slice", graph.add("Shape", rows), graph.constant([0], "int64"), graph.constant([1], "int64"))
    shape = graph.add("Concat", n_rows, graph.constant([trees.n_trees], "int64"), axis=0)
    node = graph.add("Expand", graph.constant(roots, "int64", "roots"), shape)
    for _ in range(max(tree.structure.depth for tree in model.trees)):
        split = graph.add("Gather", split_of, node)
        terms = graph.add("Mul", graph.add("Gather", weight, split), beside)
        score = graph.add("Add", graph.add("ReduceSum", terms, last, keepdims=0), graph.add("Gather", bias, split))
        right = graph.cast(graph.add("Greater", score, zero), "int64")
        node = graph.add("Gather", below, graph.add("Add", graph.add("Mul", node, two), right))
    return graph.add("Sub", node, graph.constant(n_splits, "int64", "n_splits"))


def _linear_scores(graph: OnnxGraph, trees: StackedTrees, rows: str) -> str:
    """Scores of all splits of all trees.  (N, n_splits)"""
    weight, bias = trees.weight, trees.bias
    if not trees.n_splits:  # matrices of a graph have at least one line
        weight, bias = np.zeros((1, weight.shape[1]), np.float32), np.zeros(1, np.float32)
    return graph.add(
        "Gemm", rows, graph.constant(weight, "float", "weight"), graph.constant(bias, "float", "bias"), transB=1
    )


def _add_outputs(graph: OnnxGraph, model: Portable, trees: StackedTrees, rows: str, leaves: str) -> None:
    """Add outputs ``label`` and ``probabilities``, or ``variable`` of a regression, and ``leaf``.  (N, n_trees)"""
    is_single = trees.n_trees == 1
    linear = _evaluate_linear_leaves(graph, model, trees, rows, leaves) if trees.linear is not None else ""
    if is_single:
        leaves = own = graph.reshape(leaves, -1)
    else:
        own = graph.add("Sub", leaves, graph.constant(trees.first_leaf[None], "int64", "first_leaf"))
    if is_single and model.classes and not linear:  # a table of labels is smaller than an ArgMax
        kind, labels = _label_values(model.classes)
        label = graph.add("Gather", graph.constant(labels[trees.leaf_classes], kind, "labels"), leaves)
        graph.output(label, "label", kind, ["N"])
        graph.output(_gather_tables(graph, trees, leaves), "probabilities", "float", ["N", model.n_outputs])
    else:
        outputs = linear or _gather_tables(graph, trees, leaves)
        if model.classes:
            kind, labels = _label_values(model.classes)
            best = graph.add("ArgMax", outputs, axis=1, keepdims=0)
            graph.output(graph.add("Gather", graph.constant(labels, kind, "labels"), best), "label", kind, ["N"])
        name = "probabilities" if model.classes else "variable"
        graph.output(graph.cast(outputs, "float"), name, "float", ["N", model.n_outputs])
    graph.output(own, "leaf", "int64", ["N"] if is_single else ["N", trees.n_trees])


def _gather_tables(graph: OnnxGraph, trees: StackedTrees, leaves: str) -> str:
    """Leaf tables, averaged over the trees of a forest.  (N, n_outputs)

    Means are taken in double precision, as ours are, so that ties stay ties.
    """
    if trees.n_trees == 1:
        return graph.add("Gather", graph.constant(trees.tables, "float", "tables"), leaves)
    tables = graph.add("Gather", graph.constant(trees.tables, "double", "tables"), leaves)  # (N, trees, outputs)
    return graph.add("ReduceMean", tables, axes=[1], keepdims=0)


def _evaluate_linear_leaves(graph: OnnxGraph, model: Portable, trees: StackedTrees, rows: str, leaves: str) -> str:
    """Linear leaves in double precision, averaged over the trees.  (N, n_outputs)"""
    assert trees.linear is not None
    weight, offset = (graph.constant(part, "double", "models") for part in trees.linear)
    features = graph.reshape(graph.cast(rows, "double"), -1, 1, model.n_features, 1)
    products = graph.add("MatMul", graph.add("Gather", weight, leaves), features)  # (N, trees, outputs, 1)
    flat = graph.reshape(products, -1, trees.n_trees, model.n_outputs)
    scores = graph.add("Add", flat, graph.add("Gather", offset, leaves))
    if model.classes:
        scores = graph.add("Softmax", scores, axis=2)
    return graph.add("ReduceMean", scores, axes=[1], keepdims=0)


def _label_values(classes: tuple[Any, ...]) -> tuple[str, Any]:
    """Type of the labels in a graph, and the labels: integers stay, all others become text."""
    if all(isinstance(label, int) for label in classes):  # booleans too, as 0 and 1
        return "int64", np.array([int(label) for label in classes], dtype=np.int64)
    return "string", np.array([str(label) for label in classes], dtype=object)
