"""A model as a C99 header: its declarations, tables and functions, and its cost on a small machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.c99 import source
from crisptree.export.c99.quantization import PRECISIONS, InputQuantization, QuantizedTrees, quantize
from crisptree.export.c99.source import CArray, SparseTerms, fill, make_array, make_float_array
from crisptree.export.escaping import escape_comment
from crisptree.export.portable import ExportError, Portable, StackedTrees
from crisptree.inference.flat_tree import LANES
from crisptree.inspection.model_view import InputColumn

MAX_NAMES = 200
"""Features of a model with more are not listed: pixels have numbers for names."""

MAX_OFFSET = 2**30
"""To which a program can still add an input in 32 bits."""

POINTER_BYTES = 4

CODE_BYTES = {("float", False): 3072, ("float", True): 8192, ("integer", False): 512, ("integer", True): 1024}
"""Machine code of a single tree and of a forest on a Cortex-M0, with the compiler's own functions for floats and
division: upper bounds with -Os and -O2, measured, with room to spare."""

STACK_BYTES = {("float", False): 288, ("float", True): 352, ("integer", False): 96, ("integer", True): 128}
"""Stack likewise, without the sums of a forest."""

FLOAT_NOTES = (
    "Weights are in the units of the features as they are; no scaling is needed before.",
    "All values of a row must be finite. Leaves are those of crisptree, bit by bit, on machines with IEEE floats.",
)


@dataclass(frozen=True, eq=False)
class Header:
    """Content of a header."""

    name: str  # prefix of all names
    trees: StackedTrees
    notes: tuple[str, ...]  # remarks for its reader
    declarations: tuple[str, ...]
    arrays: tuple[CArray, ...]
    functions: tuple[str, ...]
    options: str  # of the export, as the header states them
    costs: npt.NDArray[np.int64]  # multiply-adds of every split
    kind: str  # type of the sums: "float" or "integer"


@dataclass(frozen=True)
class DeviceCost:
    """Cost of a header on a small machine (a Cortex-M0)."""

    flash: int  # bytes of tables, names of classes and code, at most
    stack: int  # bytes of stack of one prediction, at most
    worst: int  # multiply-adds of the most expensive row

    @classmethod
    def of(cls, model: Portable, header: Header) -> DeviceCost:
        """Estimate the cost from the tables themselves and the measured size of the code."""
        is_linear = header.trees.linear is not None
        case = (header.kind, header.trees.n_trees > 1 or is_linear)
        sums = {"float": 8, "integer": 4}[header.kind] * model.n_outputs * (1 + is_linear) if case[1] else 0
        tables = sum(array.n_bytes for array in (*header.arrays, *_class_arrays(model, header.name)))
        names = sum(len(str(label).encode("utf-8", "surrogatepass")) + 1 + POINTER_BYTES for label in model.classes)
        worst = header.trees.max_cost(header.costs) + header.trees.linear_cost
        return cls(tables + names + CODE_BYTES[case], STACK_BYTES[case] + sums, worst)


def render(
    model: Portable,
    name: str = "model",
    integer: str | None = None,
    inputs: str = "auto",
    max_flash: int | None = None,
    max_stack: int | None = None,
) -> str:
    """Write the header; see ``export.c``."""
    header = make_header(model, source.check_name(name), integer, inputs)
    cost = DeviceCost.of(model, header)
    for limit, maximum, needed in (("max_flash", max_flash, cost.flash), ("max_stack", max_stack, cost.stack)):
        if maximum is not None and needed > maximum:
            smaller = {None: "integer='int8' takes a quarter; ", "int16": "integer='int8' takes half; "}
            raise ExportError(
                f"the header must take at most `{limit}` = {maximum:,} bytes; it takes {needed:,}. "
                f"{smaller.get(integer, '')}fewer weights do too: train with max_features_per_split or l1, or cut the "
                "tree at a depth with truncate."
            )
    return _assemble(model, header)


def make_header(model: Portable, name: str, integer: str | None, inputs: str) -> Header:
    """Make the content of a header, with weights in single precision or quantized."""
    if integer is None:
        return _float_header(model, name)
    return _integer_header(model, quantize(model, integer, inputs), name)


def _float_header(model: Portable, name: str) -> Header:
    """Sums in single precision, in the kernel's order."""
    trees = model.stacked
    terms = SparseTerms.of(trees.weight)
    is_sparse = trees.weight.size * 4 > len(terms.gap) * 5
    words = {"name": name, "row_type": "float", "table_type": "double", "sum_type": "double"}
    arrays = _routing_arrays(trees, name, terms if is_sparse else None)
    arrays.append(make_array(f"{name}_weight", terms.value if is_sparse else trees.weight))
    arrays.append(make_array(f"{name}_bias", trees.bias))
    if trees.linear is None:
        arrays.append(make_array(f"{name}_table", trees.tables))
    else:
        arrays += [make_array(f"{name}_{part}", trees.linear[k]) for k, part in enumerate(("slope", "offset"))]
    full = model.n_features // LANES * LANES
    lanes = fill("FULL_LANES", name=name, whole=full) if full else ""
    n_lanes = 2 ** (min(model.n_features, LANES) - 1).bit_length()
    score = "SPARSE_FLOATS" if is_sparse else "DENSE_FLOATS"
    code = fill("EXACT_FLOATS", "FOLD", name=name, half=n_lanes // 2)
    code += fill(score, whole=lanes, rest=model.n_features - full, lanes=n_lanes, **words)
    declarations, functions = _encoder(model, name)
    return Header(
        name,
        trees,
        FLOAT_NOTES,
        (_declarations(model, words), *declarations),
        tuple(arrays),
        (code, _prediction_code(model, fill("FLOAT_STEP", name=name), words), *functions),
        "single precision",
        terms.costs() if is_sparse else np.full(trees.n_splits, model.n_features, dtype=np.int64),
        "float",
    )


def _integer_header(model: Portable, quantized: QuantizedTrees, name: str) -> Header:
    """Sums of 32-bit integers that cannot overflow."""
    trees, inputs, precision = quantized.trees, quantized.inputs, quantized.precision
    words = {"name": name, "row_type": inputs.type, "weight_type": f"{precision}_t"}
    words |= (
        {"table_type": f"u{precision}_t", "sum_type": "uint32_t"}
        if model.classes
        else {"table_type": "double", "sum_type": "double"}
    )
    is_sparse, terms = quantized.is_sparse, quantized.terms
    weights = terms.value if is_sparse else quantized.weight
    one = f"/* The integer that means probability 1. */\n#define {name.upper()}_ONE {PRECISIONS[precision].table}\n"
    declarations, further, functions = _input_code(model, inputs, name)
    return Header(
        name,
        trees,
        _integer_notes(model, quantized),
        (_declarations(model, words), *([one] if model.classes else []), *declarations),
        (
            *_routing_arrays(trees, name, terms if is_sparse else None),
            make_array(f"{name}_weight", weights, words["weight_type"]),
            make_array(f"{name}_bias", quantized.bias, "int32_t"),
            make_array(f"{name}_table", quantized.tables, words["table_type"])
            if model.classes
            else make_array(f"{name}_table", trees.tables),
            *further,
        ),
        (
            fill("SPARSE_INTEGERS" if is_sparse else "DENSE_INTEGERS", **words),
            _prediction_code(model, fill("INTEGER_STEP", name=name), words),
            *functions,
        ),
        f"integer={precision}, inputs={'plain' if inputs.is_plain else 'scaled'}",
        quantized.costs,
        "integer",
    )


def _integer_notes(model: Portable, quantized: QuantizedTrees) -> tuple[str, ...]:
    inputs = quantized.inputs
    how = "the features as they are" if inputs.is_plain else "what quantize makes of the features"
    return (
        f"Weights are {quantized.precision}, every split at a scale of its own; no floating point is needed.",
        f"A row is {model.n_features} values of {inputs.type} from {inputs.low} to {inputs.high}: {how}.",
        f"No sum exceeds {quantized.max_sum():,} of 2,147,483,647, whatever the row.",
    )


def _input_code(model: Portable, inputs: InputQuantization, name: str) -> tuple[list[str], list[CArray], list[str]]:
    """Declarations, arrays and code that quantize features, and encode the columns of a table."""
    words = {"name": name, "row_type": inputs.type, "low": str(inputs.low), "high": str(inputs.high)}
    if takes_integers(model, inputs):
        offset, factor = (part.astype(np.int64) for part in (inputs.offset, inputs.factor))
        arrays = [make_array(f"{name}_offset", offset), make_array(f"{name}_factor", factor)]
        declaration = fill("QUANTIZE_INTEGERS_DECLARATION", **words)
        return [declaration], arrays, [fill("QUANTIZE_INTEGERS", **words)]
    if inputs.is_plain and not model.encodes:
        return [], [], []
    arrays = [make_float_array(f"{name}_offset", inputs.offset), make_float_array(f"{name}_factor", inputs.factor)]
    encoder_declarations, encoder = _encoder(model, name)
    declarations = [fill("QUANTIZE_FLOATS_DECLARATION", **words), *encoder_declarations]
    exact = fill("EXACT_FLOATS", name=name)
    code = ["\n", exact, "\n", *map(str, arrays), fill("QUANTIZE_FLOATS", **words), *encoder]
    guard = f"#ifdef {name.upper()}_WITH_FLOAT\n"  # not needed if the inputs are made elsewhere
    return [guard + "\n".join(declarations) + "#endif\n"], [], [f"\n{guard}", *code, "#endif\n"]


def takes_integers(model: Portable, inputs: InputQuantization) -> bool:
    """Return True if features are quantized in integer arithmetic alone."""
    assert model.ranges is not None
    whole = all(bool((part == np.floor(part)).all()) for part in (inputs.offset, inputs.factor))
    small = bool((np.abs(inputs.offset) < MAX_OFFSET).all())
    return whole and small and bool(model.ranges.whole.all()) and not model.encodes and not inputs.is_plain


def _encoder(model: Portable, name: str) -> tuple[list[str], list[str]]:
    """Declarations and code that encode the columns of a table; empty if the columns are the features."""
    if not model.encodes:
        return [], []
    columns = model.inputs
    kinds = {"number": "a number", "boolean": "true (1) or false (0)"}
    lines = [
        f"Column {number}: {escape_comment(column.name)}, "
        f"{kinds.get(column.kind, f'{len(column.categories)} categories')}"
        f"{', may be missing' if column.missing else ''}"
        for number, column in enumerate(columns)
    ]
    declared = source.comment(lines) + fill("ENCODER_DECLARATIONS", name=name, n_columns=len(columns))
    tables: list[Any] = [
        make_array(f"{name}_first_category", np.cumsum([0, *(len(column.categories) for column in columns)])),
        make_array(f"{name}_column_kind", [_column_flags(column) for column in columns]),
        make_float_array(f"{name}_fill", [column.fill or 0.0 for column in columns]),
    ]
    categories = [value for column in columns for value in column.categories] or [""]
    for what, strings in (("categories", categories), ("missing", model.missing_texts or ("",))):
        quoted = source.wrap(source.strings(strings))
        tables.append(f"static const char *const {name}_{what}[{len(strings)}] = {{\n{quoted}\n}};\n")
    code = fill("ENCODER", name=name, n_missing=len(model.missing_texts))
    return [declared], ["\n" + "".join(map(str, tables)) + code]


def _column_flags(column: InputColumn) -> int:
    """Bit 0: a category; bit 1: has a missing indicator; bit 2: a missing value is an error."""
    is_category = column.kind == "category"
    return is_category + 2 * column.missing + 4 * (column.fill is None and not is_category)


def _routing_arrays(trees: StackedTrees, name: str, terms: SparseTerms | None) -> list[CArray]:
    """Children of splits, roots of several trees, and the features of sparse weights."""
    children = source.smallest_type(np.concatenate([trees.left, trees.right, [-1]]))
    arrays = [make_array(f"{name}_{side}", getattr(trees, side), children) for side in ("left", "right")]
    if trees.n_trees > 1:
        arrays += [make_array(f"{name}_{part}", getattr(trees, part)) for part in ("root", "first_leaf")]
    if terms is not None:
        arrays += [make_array(f"{name}_start", terms.start), make_array(f"{name}_gap", terms.gap, "uint8_t")]
    return arrays


def _class_arrays(model: Portable, name: str) -> list[CArray]:
    """Class of every leaf, for a single tree with constant leaves; others sum up the tables of their leaves."""
    trees = model.stacked
    is_needed = trees.n_trees == 1 and model.classes and trees.linear is None
    return [make_array(f"{name}_answer", trees.leaf_classes)] if is_needed else []


def _prediction_code(model: Portable, step: str, words: dict[str, str]) -> str:
    """Functions from a row to leaf, class and probabilities; ``step`` goes from a node to its child."""
    trees, name = model.stacked, words["name"]
    is_single, in_integers = trees.n_trees == 1, words["sum_type"] == "uint32_t"
    n_trees = f"{trees.n_trees}{'u' if in_integers else '.0'}"
    mean = "" if in_integers else f"        sums[k] = sums[k] / {n_trees};\n"
    root = str(trees.root[0])
    words = words | {"turn": step, "root": root, "trees": n_trees, "mean": mean}
    words["leaf"] = f"{name}_arrive(row, {root if is_single else f'{name}_root[tree]'})"
    templates = ["ROUTE", "TREE_LEAF" if is_single else "FOREST_LEAF"]
    if trees.linear is not None:
        templates += ["LEAF_MODEL", *(["EXP"] if model.classes else [])]
    is_constant = is_single and trees.linear is None
    if not is_constant:
        kind = "TABLE" if trees.linear is None else "SOFTMAX" if model.classes else "LINEAR"
        templates.append("ADD_UP")
        words |= {"add": fill(f"ADD_{kind}", **words), "comment": source.SUM_COMMENTS[kind]}
    words["function"], words["output"] = ("predict_proba", "probabilities") if model.classes else ("predict", "values")
    output = "classes" if model.classes else "value" if model.n_outputs == 1 else "values"
    return fill(*templates, *source.PREDICTIONS[output, is_constant], **words)


def _declarations(model: Portable, words: dict[str, str]) -> str:
    """Declarations of the functions that a program calls."""
    name, row, table = words["name"], words["row_type"], words["table_type"]
    is_single = len(model.trees) == 1
    lines = [
        f"/* Index of the leaf that a row reaches{'' if is_single else ' in a tree'}. */",
        f"int32_t {name}_leaf(const {row} *row{'' if is_single else ', int32_t tree'});",
        "",
    ]
    if model.classes:
        lines += [
            f"/* Index of the predicted class; {name}_classes has the names. */",
            f"int32_t {name}_predict(const {row} *row);",
            f"extern const char *const {name}_classes[{name.upper()}_N_OUTPUTS];",
            "",
            "/* Probabilities of all classes. */",
            f"void {name}_predict_proba(const {row} *row, {table} *probabilities);",
        ]
    elif model.n_outputs > 1:
        lines += ["/* Prediction for a row. */", f"void {name}_predict(const {row} *row, double *values);"]
    else:
        lines += ["/* Prediction for a row. */", f"double {name}_predict(const {row} *row);"]
    return "\n".join([*lines, ""])


def _assemble(model: Portable, header: Header) -> str:
    """Join description, declarations, tables and functions."""
    name, trees, upper = header.name, header.trees, header.name.upper()
    constants = {"N_FEATURES": model.n_features, "N_OUTPUTS": model.n_outputs, "N_TREES": trees.n_trees}
    defined = "".join(f"#define {upper}_{word} {number}\n" for word, number in constants.items())
    what = "a decision tree" if trees.n_trees == 1 else f"a forest of {trees.n_trees} trees"
    head = [
        f"{name}: {what} of crisptree in C99.",
        "",
        f"{trees.n_splits} splits, {trees.n_leaves} leaves, {model.n_features} features, "
        f"{sum(array.n_bytes for array in header.arrays):,} bytes of tables.",
        *header.notes,
        "",
        "Include it where it is needed; in exactly one file, write before the include:",
        f"    #define {upper}_IMPLEMENTATION",
        "It needs no library, allocates no memory, and compiles as C++ too.",
        f"Options: {header.options}.",
        *_feature_lines(model),
    ]
    declarations = "\n".join(header.declarations)
    texts = [source.comment(head), fill("OPENING", name=name, constants=defined, declarations=declarations)]
    if model.classes:
        names = source.wrap(source.strings(map(str, model.classes)))
        texts.append(f"const char *const {name}_classes[{upper}_N_OUTPUTS] = {{\n{names}\n}};\n\n")
    arrays = (*header.arrays, *_class_arrays(model, name))
    return "".join([*texts, *(f"{array}\n" for array in arrays), *header.functions, fill("CLOSING", name=name)])


def _feature_lines(model: Portable) -> list[str]:
    """Return names of the features, unless they are the default ones."""
    n = model.n_features
    if n > MAX_NAMES or model.feature_names == tuple(f"x{number}" for number in range(n)):
        return []
    names = (f"    {number} {escape_comment(name)}" for number, name in enumerate(model.feature_names))
    return ["", "Features:", *names]
