"""A model as a C99 header: its declarations, tables and functions, and its cost on a small machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
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

INCLUDED = "leaf, predict and predict_proba"
"""Functions whose code and tables the bounds below include."""

CODE_BYTES = {("float", False): 3072, ("float", True): 8192, ("integer", False): 512, ("integer", True): 1024}
"""Machine code of a single tree and of a forest on a Cortex-M0, with the compiler's own functions for floats and
division: upper bounds with -Os and -O2, measured, with room to spare."""

STACK_BYTES = {("float", False): 288, ("float", True): 352, ("integer", False): 96, ("integer", True): 128}
"""Stack likewise, without the sums of a forest."""

FLOAT_NOTES = (
    "Weights are in the units of the features as they are; no scaling is needed before.",
    "All values of a row must be finite. Leaves are those of crisptree, bit by bit, on machines with IEEE floats.",
)

WITH_FLOAT_NOTE = "Where floats are available, {upper}_WITH_FLOAT, defined before every include, adds {functions}."

FLOAT_CALLS = ("row", "class = NAME_predict(row);")
INTEGER_CALLS = ("features", "NAME_quantize(features, row); class = NAME_predict(row);")
"""The features of a row, and what to call with them; for the comment of ``encode``."""

COLUMN_KINDS = """A column is a number; 1 or 0 for true and false; or the number of a category.
 * NaN, or -2 for a category, is a missing value."""

MAX_CLASS_NAME = 40
"""Characters of a class in the name of its constant; compilers of C99 distinguish 63 of a name in all."""


@dataclass(frozen=True)
class Conversion:
    """Functions that make the rows of a header: from columns of a table, from features, or both."""

    declarations: str = ""
    code: str = ""
    n_bytes: int = 0  # of tables and names
    includes: str = ""  # at the beginning of the implementation
    notes: tuple[str, ...] = ()


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
    conversion: Conversion


@dataclass(frozen=True)
class DeviceCost:
    """Cost of a header on a small machine (a Cortex-M0)."""

    flash: int  # bytes of tables, names of classes and code, at most; without ``Header.conversion``
    stack: int  # bytes of stack of one prediction, at most
    worst: int  # multiply-adds of the most expensive row

    @classmethod
    def of(cls, model: Portable, header: Header) -> DeviceCost:
        """Estimate the cost from the tables themselves and the measured size of the code."""
        is_linear = header.trees.linear is not None
        case = (header.kind, header.trees.n_trees > 1 or is_linear)
        sums = {"float": 8, "integer": 4}[header.kind] * model.n_outputs * (1 + is_linear) if case[1] else 0
        tables = sum(array.n_bytes for array in (*header.arrays, *_class_arrays(model, header.name)))
        worst = header.trees.max_cost(header.costs) + header.trees.linear_cost
        flash = tables + _string_bytes(model.classes) + CODE_BYTES[case]
        return cls(flash, STACK_BYTES[case] + sums, worst)


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
    words: dict[str, Any] = {"name": name, "row_type": "float", "table_type": "double", "sum_type": "double"}
    arrays = _routing_arrays(trees, name, terms if is_sparse else None)
    arrays.append(make_array(f"{name}_weight", terms.value if is_sparse else trees.weight))
    arrays.append(make_array(f"{name}_bias", trees.bias))
    if trees.linear is None:
        arrays.append(make_array(f"{name}_table", trees.tables))
    else:
        arrays += [make_array(f"{name}_{part}", trees.linear[k]) for k, part in enumerate(("slope", "offset"))]
    n_lanes = 2 ** (min(model.n_features, LANES) - 1).bit_length()
    lanes = {"lanes": n_lanes, "half": n_lanes // 2}
    score = fill("SPARSE_FLOATS", **words, **lanes) if is_sparse else _dense_score(model.n_features, words | lanes)
    conversion = _encoder(model, name, FLOAT_CALLS)
    return Header(
        name,
        trees,
        FLOAT_NOTES,
        (_declarations(model, words), conversion.declarations),
        tuple(arrays),
        (fill("FOLD", **words, **lanes), score, _prediction_code(model, fill("FLOAT_STEP", name=name), words)),
        "single precision",
        terms.costs() if is_sparse else np.full(trees.n_splits, model.n_features, dtype=np.int64),
        "float",
        replace(conversion, includes=fill("EXACT_FLOATS", name=name)),
    )


def _dense_score(n_features: int, words: dict[str, Any]) -> str:
    """Sum of all features: whole rounds of the lanes, and then the rest."""
    whole, rest = n_features // LANES * LANES, n_features % LANES
    words = words | {"whole": whole, "rest": rest, "at": f"{whole} + i" if whole else "i"}
    terms = fill(*["FULL_LANES"] * (whole > 0), *["LAST_LANES"] * (rest > 0), **words)
    return fill("DENSE_FLOATS", terms=terms, counters="first, i" if whole else "i", **words)


def _integer_header(model: Portable, quantized: QuantizedTrees, name: str) -> Header:
    """Sums of 32-bit integers that cannot overflow."""
    trees, inputs, precision = quantized.trees, quantized.inputs, quantized.precision
    words = {"name": name, "row_type": inputs.type, "weight_type": f"{precision}_t"}
    words |= {"low": str(inputs.low), "high": str(inputs.high)}
    words |= {"read": f"{name}_clip(" if quantized.clips else "(int32_t)", "end": ")" if quantized.clips else ""}
    words |= (
        {"table_type": f"u{precision}_t", "sum_type": "uint32_t"}
        if model.classes
        else {"table_type": "double", "sum_type": "double"}
    )
    is_sparse, terms = quantized.is_sparse, quantized.terms
    weights = terms.value if is_sparse else quantized.weight
    one = f"/* The integer that means probability 1. */\n#define {name.upper()}_ONE {PRECISIONS[precision].table}\n"
    conversion = _convert_inputs(model, inputs, name)
    score = "SPARSE_INTEGERS" if is_sparse else "DENSE_INTEGERS"
    return Header(
        name,
        trees,
        (*_integer_notes(model, quantized), *conversion.notes),
        (_declarations(model, words), *([one] if model.classes else []), conversion.declarations),
        (
            *_routing_arrays(trees, name, terms if is_sparse else None),
            make_array(f"{name}_weight", weights, words["weight_type"]),
            make_array(f"{name}_bias", quantized.bias, "int32_t"),
            make_array(f"{name}_table", quantized.tables, words["table_type"])
            if model.classes
            else make_array(f"{name}_table", trees.tables),
        ),
        (
            fill(*["CLIP"] * quantized.clips, score, **words),
            _prediction_code(model, fill("INTEGER_STEP", name=name), words),
        ),
        f"integer={precision}, inputs={'plain' if inputs.is_plain else 'scaled'}",
        quantized.costs,
        "integer",
        conversion,
    )


def _integer_notes(model: Portable, quantized: QuantizedTrees) -> tuple[str, ...]:
    inputs = quantized.inputs
    how = "the features as they are" if inputs.is_plain else "what quantize makes of the features"
    others = "clipped to that range" if quantized.clips else "used as they are"
    beyond = "" if inputs.type == "uint8_t" else f"Other values of {inputs.type} are {others}. "
    return (
        f"Weights are {quantized.precision}, every split at a scale of its own; no floating point is needed.",
        f"A row is {model.n_features} values of {inputs.type} from {inputs.low} to {inputs.high}: {how}.",
        f"{beyond}No sum exceeds {quantized.max_sum:,} of 2,147,483,647, whatever the row.",
    )


def _convert_inputs(model: Portable, inputs: InputQuantization, name: str) -> Conversion:
    """Functions that quantize features, and encode the columns of a table, as far as inputs need them."""
    words = {"name": name, "row_type": inputs.type, "low": str(inputs.low), "high": str(inputs.high)}
    if takes_integers(model, inputs):
        parts = (make_array(f"{name}_{part}", getattr(inputs, part).astype(np.int64)) for part in ("offset", "factor"))
        arrays = [*parts]
        code = "\n" + "".join(map(str, arrays)) + fill("QUANTIZE_INTEGERS", **words)
        declaration = fill("QUANTIZE_INTEGERS_DECLARATION", **words)
        return Conversion(declaration, code, sum(array.n_bytes for array in arrays))
    if inputs.is_plain and not model.encodes:
        return Conversion()
    arrays = [make_float_array(f"{name}_offset", inputs.offset), make_float_array(f"{name}_factor", inputs.factor)]
    encoder = _encoder(model, name, INTEGER_CALLS)
    words["encode"] = f", as {name}_encode does" if encoder.code else ""
    declared = fill("QUANTIZE_FLOATS_DECLARATION", **words) + "\n" * bool(encoder.code) + encoder.declarations
    code = "\n" + "".join(map(str, arrays)) + fill("QUANTIZE_FLOATS", **words) + encoder.code
    upper = name.upper()
    functions = " and ".join(f"{name}_{what}" for what in ("quantize", *(["encode"] if encoder.code else [])))
    guarded = [  # not needed if the inputs are made elsewhere
        f"#ifdef {upper}_WITH_FLOAT\n{part.lstrip()}#endif\n"
        for part in (declared, code, fill("EXACT_FLOATS", name=name))
    ]
    return Conversion(
        guarded[0],
        "\n" + guarded[1],
        sum(array.n_bytes for array in arrays) + encoder.n_bytes,
        "\n" + guarded[2],
        (WITH_FLOAT_NOTE.format(upper=upper, functions=functions),),
    )


def takes_integers(model: Portable, inputs: InputQuantization) -> bool:
    """Return True if features are quantized in integer arithmetic alone."""
    assert model.ranges is not None
    whole = all(bool((part == np.floor(part)).all()) for part in (inputs.offset, inputs.factor))
    small = bool((np.abs(inputs.offset) < MAX_OFFSET).all())
    return whole and small and bool(model.ranges.whole.all()) and not model.encodes and not inputs.is_plain


def _encoder(model: Portable, name: str, calls: tuple[str, str]) -> Conversion:
    """Functions that encode the columns of a table and replace missing numbers, wherever ``predict`` does.

    ``calls`` are the array of features and the calls after it, for the comment.
    """
    if not (model.encodes or model.fills):
        return Conversion()
    columns, words = model.inputs, {"name": name, "n_columns": len(model.inputs)}
    words |= {"features": calls[0], "predict": calls[1].replace("NAME", name), "n_missing": len(model.missing_texts)}
    means = make_float_array(f"{name}_fill", [column.fill or 0.0 for column in columns])
    if not model.encodes and all(column.fill is not None for column in columns):
        words |= {"category": "", "kinds": "A column is a number, or NaN if it is missing."}
        return Conversion(
            fill("ENCODER_DECLARATIONS", **words), f"\n{means}{fill('NUMBER_ENCODER', **words)}", means.n_bytes
        )
    kinds = {"number": "a number", "boolean": "true (1) or false (0)"}
    lines = [
        f"Column {number}: {escape_comment(column.name)}, "
        f"{kinds.get(column.kind, f'{len(column.categories)} categories')}"
        f"{', may be missing' if column.missing else ''}"
        for number, column in enumerate(columns)
    ]
    words |= {"category": fill("CATEGORY_DECLARATION", name=name), "kinds": COLUMN_KINDS}
    arrays = [
        make_array(f"{name}_first_category", np.cumsum([0, *(len(column.categories) for column in columns)])),
        make_array(f"{name}_column_kind", [_column_flags(column) for column in columns]),
        means,
    ]
    categories = [value for column in columns for value in column.categories] or [""]
    texts = {"categories": categories, "missing": model.missing_texts or ("",)}
    tables = "".join(map(str, arrays))
    for what, strings in texts.items():
        quoted = source.wrap(source.strings(strings))
        tables += f"static const char *const {name}_{what}[{len(strings)}] = {{\n{quoted}\n}};\n"
    return Conversion(
        source.comment(lines) + fill("ENCODER_DECLARATIONS", **words),
        f"\n{tables}{fill('ENCODER', **words)}",
        sum(array.n_bytes for array in arrays) + sum(map(_string_bytes, texts.values())),
    )


def _string_bytes(strings: Iterable[Any]) -> int:
    """Bytes of strings and of the pointers to them."""
    return sum(len(str(text).encode("utf-8", "surrogatepass")) + 1 + POINTER_BYTES for text in strings)


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
    n_splits = model.trees[0].structure.n_splits
    above = f"by {n_splits}, the number" if is_single else "by the number"
    lines = [
        f"/* Index of the leaf that a row reaches{'' if is_single else ' in a tree'}: that of leaf_indices in Python. "
        f"The nodes of\n * apply are larger {above} of splits{'' if is_single else ' of the tree'}. */",
        f"int32_t {name}_leaf(const {row} *row{'' if is_single else ', int32_t tree'});",
        "",
    ]
    if model.classes:
        lines += [
            f"/* Predicted class: its position in {name}_classes, which has the names. */",
            f"int32_t {name}_predict(const {row} *row);",
            f"extern const char *const {name}_classes[{name.upper()}_N_OUTPUTS];",
            f"enum {{\n{source.wrap(_class_constants(model, name))}\n}};",
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
    defined += f"/* Splits that a row visits at most. */\n#define {upper}_MAX_SPLITS "
    defined += f"{trees.max_cost(np.ones(trees.n_splits, dtype=np.int64))}\n"
    defined += f'#define {upper}_MODEL_ID "{model.model_id}"\n'
    what = "a decision tree" if trees.n_trees == 1 else f"a forest of {trees.n_trees} trees"
    head = [
        f"{name}: {what} in C99.",
        *model.provenance,
        "",
        f"{trees.n_splits} splits, {trees.n_leaves} leaves, {model.n_features} features, "
        f"{sum(array.n_bytes for array in header.arrays):,} bytes of tables.",
        *header.notes,
        "",
        "As a header, include it where it is needed; in exactly one file, write before the include:",
        f"    #define {upper}_IMPLEMENTATION",
        "As a source file with this line already in it, compile it.",
        "It needs no library, allocates no memory, and compiles as C++ too.",
        f"Options: {header.options}.",
        *_feature_lines(model),
    ]
    declarations = "\n".join(header.declarations)
    texts = [source.comment(head), fill("OPENING", name=name, constants=defined, declarations=declarations)]
    texts.append(f"{header.conversion.includes}\n")
    if model.classes:
        names = source.wrap(source.strings(map(str, model.classes)))
        texts.append(f"const char *const {name}_classes[{upper}_N_OUTPUTS] = {{\n{names}\n}};\n\n")
    arrays = (*header.arrays, *_class_arrays(model, name))
    code = (*header.functions, header.conversion.code, fill("CLOSING", name=name))
    return "".join([*texts, *(f"{array}\n" for array in arrays), *code])


def _class_constants(model: Portable, name: str) -> list[str]:
    """Return constants for the positions of classes; a name that is taken, or has no letters, gets its position."""
    names: list[str] = []
    for position, label in enumerate(model.classes):
        plain = re.sub(r"[^0-9A-Za-z]+", "_", str(label))[:MAX_CLASS_NAME].strip("_")
        while not plain or plain in names:
            plain = f"{plain}_{position}".lstrip("_")
        names.append(plain)
    return [f"{name.upper()}_CLASS_{plain} = {position}" for position, plain in enumerate(names)]


def _feature_lines(model: Portable) -> list[str]:
    """Return names of the features, unless they are the default ones."""
    n = model.n_features
    if n > MAX_NAMES or model.feature_names == tuple(f"x{number}" for number in range(n)):
        return []
    names = (f"    {number} {escape_comment(name)}" for number, name in enumerate(model.feature_names))
    return ["", "Features:", *names]
