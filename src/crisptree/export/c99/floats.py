"""Single precision: the sums of the kernel, bit by bit."""

from __future__ import annotations

from crisptree.export.c99 import encoder, parts, source, text
from crisptree.export.c99.parts import Pieces
from crisptree.export.c99.source import filled
from crisptree.export.portable import Portable
from crisptree.export.stacked import Stacked, Terms
from crisptree.inference.flat_tree import LANES

NOTES = (
    "Weights are in the units of the features as they are; no scaling is needed before.",
    "All values of a row must be finite. Leaves are those of crisptree, bit by bit, on machines with IEEE floats.",
)


MODELS = ("slope", "offset")


def float_pieces(model: Portable, name: str) -> Pieces:
    """What the header of a model has in it, with sums in single precision in the kernel's order."""
    trees = Stacked.of(model)
    terms = Terms.of(trees.weight)
    is_sparse = trees.weight.size * 4 > len(terms.gap) * 5
    words = {"name": name, "row_type": "float", "table_type": "double", "sum_type": "double"}
    arrays = parts.routing_arrays(trees, name)
    if is_sparse:
        arrays += [text.integers(f"{name}_start", terms.start), text.integers(f"{name}_gap", terms.gap, "uint8_t")]
    arrays.append(text.singles(f"{name}_weight", terms.value if is_sparse else trees.weight))
    arrays.append(text.singles(f"{name}_bias", trees.bias))
    if trees.linear is None:
        arrays.append(text.doubles(f"{name}_table", trees.tables))
    else:
        arrays += [text.doubles(f"{name}_{what}", part) for what, part in zip(MODELS, trees.linear, strict=True)]
    whole = model.n_features // LANES * LANES
    lanes = filled(source.WHOLE_LANES, name=name, whole=whole) if whole else ""
    score = source.SPARSE_SINGLES if is_sparse else source.DENSE_SINGLES
    number = 2 ** (min(model.n_features, LANES) - 1).bit_length()
    code = filled(source.EXACT_SINGLES + source.FOLD, name=name, half=number // 2)
    code += filled(score, whole=lanes, rest=model.n_features - whole, lanes=number, **words)
    functions = [code, parts.prediction(model, trees, filled(source.SINGLE_TURN, name=name), words)]
    declared = [parts.declarations(model, words)]
    if model.encodes:
        declared.append(encoder.declarations(model, name))
        functions.append(encoder.code(model, name))
    costs = terms.costs() if is_sparse else parts.dense_costs(trees)
    return Pieces(
        name, trees, NOTES, tuple(declared), tuple(arrays), tuple(functions), "single precision", costs, "float"
    )
