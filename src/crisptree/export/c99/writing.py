"""A model as the text of a C99 header, and what it costs a small machine."""

from __future__ import annotations

from dataclasses import dataclass

from crisptree.export.c99.floats import float_pieces
from crisptree.export.c99.integer import integer_pieces
from crisptree.export.c99.parts import CODE_BYTES, STACK_BYTES, Pieces, answer_arrays, assembled
from crisptree.export.c99.quantizing import IntegerTrees, integer_trees
from crisptree.export.c99.text import checked_name
from crisptree.export.portable import ExportError, Portable

POINTER = 4


@dataclass(frozen=True)
class Costs:
    """What a header costs a small machine (a Cortex-M0).

    Parameters
    ----------
    flash : int
        Bytes of tables, names of classes and code, at most.
    stack : int
        Bytes of stack of one prediction, at most.
    worst : int
        Multiply-adds of the dearest row that there can be.
    """

    flash: int
    stack: int
    worst: int

    @classmethod
    def of(cls, model: Portable, pieces: Pieces) -> Costs:
        """From the tables themselves and the measured size of the code."""
        is_linear = pieces.trees.linear is not None
        case = (pieces.kind, pieces.trees.n_trees > 1 or is_linear)
        sums = {"float": 8, "integer": 4}[pieces.kind] * model.n_outputs * (1 + is_linear) if case[1] else 0
        tables = pieces.table_bytes + sum(array.n_bytes for array in answer_arrays(model, pieces.trees, pieces.name))
        names = sum(len(str(label).encode("utf-8", "surrogatepass")) + 1 + POINTER for label in model.classes)
        flash = tables + names + CODE_BYTES[case]
        worst = pieces.trees.worst_cost(pieces.costs) + pieces.trees.model_cost
        return cls(flash, STACK_BYTES[case] + sums, worst)


def header(
    model: Portable,
    name: str = "model",
    integer: str | None = None,
    inputs: str = "auto",
    max_flash: int | None = None,
    max_stack: int | None = None,
) -> str:
    """The text of the header; see ``export.c``."""
    pieces, _ = pieces_of(model, checked_name(name), integer, inputs)
    costs = Costs.of(model, pieces)
    for limit, most, needed in (("max_flash", max_flash, costs.flash), ("max_stack", max_stack, costs.stack)):
        if most is not None and needed > most:
            raise ExportError(
                f"the header must take at most `{limit}` = {most:,} bytes; it takes {needed:,}. {_remedy(integer)}"
            )
    return assembled(model, pieces)


def _remedy(integer: str | None) -> str:
    smaller = {None: "integer='int8' takes a quarter; ", "int16": "integer='int8' takes half; "}.get(integer, "")
    return f"{smaller}fewer weights do too: model.simplified(X, y, max_terms=…), or cut the tree at a depth with cut."


def pieces_of(model: Portable, name: str, integer: str | None, inputs: str) -> tuple[Pieces, IntegerTrees | None]:
    """What the header has in it, and the trees in whole numbers where there are some."""
    if integer is None:
        return float_pieces(model, name), None
    found = integer_trees(model, integer, inputs)
    return integer_pieces(model, found, name), found
