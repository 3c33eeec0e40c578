"""Whole numbers: no floating point, and 32-bit sums that cannot overflow."""

from __future__ import annotations

import numpy as np

from crisptree.export.c99 import encoder, parts, source, text
from crisptree.export.c99.parts import Pieces
from crisptree.export.c99.quantizing import PRECISIONS, Inputs, IntegerTrees
from crisptree.export.c99.source import filled
from crisptree.export.portable import Portable

TAKES_SINGLES = """\
/* The inputs that the features of a row become: round((feature - offset) * factor), cut off at $low and $high. */
void ${name}_quantize(const float *features, $row_type *row);
"""

TAKES_WHOLES = """\
/* The inputs that the features of a row become: (feature - offset) * factor, cut off at $low and $high. */
void ${name}_quantize(const int32_t *features, $row_type *row);
"""

FROM_SINGLES = """
void ${name}_quantize(const float *features, $row_type *row)
{
    int32_t j;
    for (j = 0; j < ${NAME}_N_FEATURES; ++j) {
        const ${name}_single above = features[j] - ${name}_offset[j];
        const ${name}_single exact = above * ${name}_factor[j];
        const ${name}_single moved = exact + 0.5f;
        int32_t value = $low;
        if (moved >= $high.0f) {
            value = $high;
        } else if (moved >= $low.0f) {
            value = (int32_t)moved;
            if ((float)value > moved) {
                value -= 1;
            }
        }
        row[j] = ($row_type)value;
    }
}
"""

FROM_WHOLES = """
void ${name}_quantize(const int32_t *features, $row_type *row)
{
    int32_t j;
    for (j = 0; j < ${NAME}_N_FEATURES; ++j) {
        const int32_t factor = ${name}_factor[j];
        const int32_t offset = ${name}_offset[j];
        const int32_t most = offset + $high, least = offset - $high;
        const int32_t feature = features[j] < least ? least : features[j] > most ? most : features[j];
        const int32_t value = (feature - offset) * factor;
        row[j] = ($row_type)(value < $low ? $low : value > $high ? $high : value);
    }
}
"""


LARGEST_OFFSET = 2**30
"""To which a program can still add an input in 32 bits."""


def integer_pieces(model: Portable, found: IntegerTrees, name: str) -> Pieces:
    """What the header of a model in whole numbers has in it."""
    trees, inputs = found.trees, found.inputs
    is_classes = model.task == "classification"
    words = {
        "name": name,
        "row_type": inputs.type,
        "weight_type": f"{found.precision}_t",
        "table_type": f"u{found.precision}_t" if is_classes else "double",
        "sum_type": "uint32_t" if is_classes else "double",
    }
    arrays = parts.routing_arrays(trees, name)
    if found.is_sparse:
        arrays.append(text.integers(f"{name}_start", found.terms.start))
        arrays.append(text.integers(f"{name}_gap", found.terms.gap, "uint8_t"))
    weights = found.terms.value if found.is_sparse else found.weight
    arrays.append(text.integers(f"{name}_weight", weights, words["weight_type"]))
    arrays.append(text.integers(f"{name}_bias", found.bias, "int32_t"))
    table = f"{name}_table"
    tables = (
        text.integers(table, found.tables, words["table_type"]) if is_classes else text.doubles(table, trees.tables)
    )
    score = filled(source.SPARSE_INTEGERS if found.is_sparse else source.DENSE_INTEGERS, **words)
    turns = filled(source.INTEGER_TURN, name=name)
    declared, further, code = _inputs(model, inputs, name)
    one = f"/* What stands for the probability 1. */\n#define {name.upper()}_ONE {PRECISIONS[found.precision].table}\n"
    return Pieces(
        name,
        trees,
        _notes(model, found),
        (parts.declarations(model, words), *([one] if is_classes else []), *declared),
        (*arrays, tables, *further),
        (score, parts.prediction(model, trees, turns, words), *code),
        f"integer={found.precision}, inputs={'plain' if inputs.is_plain else 'scaled'}",
        found.costs,
        "integer",
    )


def _inputs(model: Portable, inputs: Inputs, name: str) -> tuple[list[str], list[text.Array], list[str]]:
    """Declarations, arrays and code that make inputs of features, and features of the columns of a table."""
    words = {"name": name, "row_type": inputs.type, "low": str(inputs.low), "high": str(inputs.high)}
    if takes_wholes(model, inputs):
        offset, factor = (part.astype(np.int64) for part in (inputs.offset, inputs.factor))
        arrays = [text.integers(f"{name}_offset", offset), text.integers(f"{name}_factor", factor)]
        return [filled(TAKES_WHOLES, **words)], arrays, [filled(FROM_WHOLES, **words)]
    if inputs.is_plain and not model.encodes:
        return [], [], []
    arrays = [text.rounded(f"{name}_offset", inputs.offset), text.rounded(f"{name}_factor", inputs.factor)]
    declared = [filled(TAKES_SINGLES, **words)]
    code = ["\n", filled(source.EXACT_SINGLES, name=name), "\n", *map(str, arrays), filled(FROM_SINGLES, **words)]
    if model.encodes:
        declared.append(encoder.declarations(model, name))
        code.append(encoder.code(model, name))
    guard = f"#ifdef {name.upper()}_WITH_FLOAT\n"  # whoever makes the inputs elsewhere needs none of it
    return [guard + "\n".join(declared) + "#endif\n"], [], [f"\n{guard}", *code, "#endif\n"]


def takes_wholes(model: Portable, inputs: Inputs) -> bool:
    """Whether features become inputs by whole numbers alone."""
    assert model.ranges is not None
    whole = all(bool((part == np.floor(part)).all()) for part in (inputs.offset, inputs.factor))
    small = bool((np.abs(inputs.offset) < LARGEST_OFFSET).all())
    return whole and small and bool(model.ranges.whole.all()) and not model.encodes and not inputs.is_plain


def _notes(model: Portable, found: IntegerTrees) -> tuple[str, ...]:
    inputs = found.inputs
    how = "the features as they are" if inputs.is_plain else "what quantize makes of the features"
    return (
        f"Weights are {found.precision}, every split at a scale of its own; no floating point is needed.",
        f"A row is {model.n_features} values of {inputs.type} from {inputs.low} to {inputs.high}: {how}.",
        f"No sum exceeds {found.largest_sum():,} of 2,147,483,647, whatever the row.",
    )
