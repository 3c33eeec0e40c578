"""What the headers of all models have in common: the way to a leaf, its answers, and the frame around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crisptree.export import escaping
from crisptree.export.c99 import source
from crisptree.export.c99.source import filled
from crisptree.export.c99.text import Array, comment, integers, smallest_type, strings, wrapped
from crisptree.export.portable import Portable
from crisptree.export.stacked import Stacked

MOST_NAMES = 200
"""Features of a model with more are not listed: pixels have numbers for names."""

CODE_BYTES = {("float", False): 3072, ("float", True): 8192, ("integer", False): 512, ("integer", True): 1024}
"""Machine code of one tree and of a forest on a Cortex-M0, with the compiler's own functions for floats and division:
at most, with -Os and -O2; measured, with room to spare."""

STACK_BYTES = {("float", False): 288, ("float", True): 352, ("integer", False): 96, ("integer", True): 128}
"""Stack likewise, without the sums of a forest."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """What a header has in it.

    Parameters
    ----------
    name : str
        The prefix of all names.
    trees : Stacked
        The trees.
    notes : tuple of str
        What its reader should know.
    declared, functions : tuple of str
        Declarations, and the code.
    arrays : tuple of Array
        The tables.
    options : str
        How it was made, as the header says it.
    costs : ndarray of shape (n_splits,)
        Multiply-adds of every split.
    kind : {"float", "integer"}
        What its sums are made of.
    """

    name: str
    trees: Stacked
    notes: tuple[str, ...]
    declared: tuple[str, ...]
    arrays: tuple[Array, ...]
    functions: tuple[str, ...]
    options: str
    costs: npt.NDArray[np.int64]
    kind: str

    @property
    def table_bytes(self) -> int:
        """Of all arrays."""
        return sum(array.n_bytes for array in self.arrays)


def dense_costs(trees: Stacked) -> npt.NDArray[np.int64]:
    """Multiply-adds of splits that ask for every feature."""
    return np.full(trees.n_splits, trees.weight.shape[1], dtype=np.int64)


def routing_arrays(trees: Stacked, name: str) -> list[Array]:
    """Where splits lead, and where trees begin."""
    children = smallest_type(np.concatenate([trees.left, trees.right, [-1]]))
    arrays = [integers(f"{name}_left", trees.left, children), integers(f"{name}_right", trees.right, children)]
    if trees.n_trees > 1:
        arrays.append(integers(f"{name}_root", trees.root))
        arrays.append(integers(f"{name}_first_leaf", trees.first_leaf))
    return arrays


def answer_arrays(model: Portable, trees: Stacked, name: str) -> list[Array]:
    """The class of every leaf, for a single tree of tables; others add up what their leaves say."""
    is_one_tree_of_classes = trees.n_trees == 1 and model.task == "classification" and trees.linear is None
    return [integers(f"{name}_answer", trees.answers)] if is_one_tree_of_classes else []


def prediction(model: Portable, trees: Stacked, turn: str, words: dict[str, str]) -> str:
    """From a row to leaf, class and probabilities; ``turn`` goes from a node to the next."""
    is_one, is_classes = trees.n_trees == 1, model.task == "classification"
    in_integers = words["sum_type"] == "uint32_t"
    number = f"{trees.n_trees}{'u' if in_integers else '.0'}"
    mean = "" if in_integers else f"        sums[k] = sums[k] / {number};\n"
    words = words | {"turn": turn, "root": str(trees.root[0]), "trees": number, "mean": mean}
    says = "classes" if is_classes else "number" if model.n_outputs == 1 else "numbers"
    texts = [source.ARRIVE, source.ONE_TREE if is_one else source.FOREST]
    if trees.linear is not None:
        words["arrived"] = f"{words['name']}_arrive(row, {words['root'] if is_one else words['name'] + '_root[tree]'})"
        texts += [source.LEAF_MODEL, source.ADD_SHARES if is_classes else source.ADD_NUMBERS]
    elif not is_one:
        texts.append(source.ADD_TABLES)
    texts.append(source.PREDICTIONS[says, is_one and trees.linear is None])
    return "".join(filled(text, **words) for text in texts)


def declarations(model: Portable, words: dict[str, str]) -> str:
    """What a program calls."""
    name, row, table = words["name"], words["row_type"], words["table_type"]
    is_one = len(model.trees) == 1
    lines = [
        f"/* The number of the leaf that a row reaches{'' if is_one else ' in a tree'}. */",
        f"int32_t {name}_leaf(const {row} *row{'' if is_one else ', int32_t tree'});",
        "",
    ]
    if model.task == "regression":
        many = model.n_outputs > 1
        says = (
            f"void {name}_predict(const {row} *row, double *values);"
            if many
            else f"double {name}_predict(const {row} *row);"
        )
        lines += ["/* What the model says of a row. */", says, ""]
        return "\n".join(lines)
    lines += [
        f"/* The number of its class; {name}_classes has the name of every class. */",
        f"int32_t {name}_predict(const {row} *row);",
        f"extern const char *const {name}_classes[{name.upper()}_N_OUTPUTS];",
        "",
        "/* The probabilities of all classes. */",
        f"void {name}_predict_proba(const {row} *row, {table} *probabilities);",
        "",
    ]
    return "\n".join(lines)


def assembled(model: Portable, pieces: Pieces) -> str:
    """The whole header: what it is, declarations, tables, functions."""
    name, trees, upper = pieces.name, pieces.trees, pieces.name.upper()
    constants = {"N_FEATURES": model.n_features, "N_OUTPUTS": model.n_outputs, "N_TREES": trees.n_trees}
    defined = "".join(f"#define {upper}_{word} {number}\n" for word, number in constants.items())
    what = "a decision tree" if trees.n_trees == 1 else f"a forest of {trees.n_trees} trees"
    head = [
        f"{name}: {what} of crisptree in C99.",
        "",
        f"{trees.n_splits} splits, {trees.n_leaves} leaves, {model.n_features} features, "
        f"{pieces.table_bytes:,} bytes of tables.",
        *pieces.notes,
        "",
        "Include it wherever it is needed; in one file, and in no other, say before that",
        f"    #define {upper}_IMPLEMENTATION",
        "It needs no library, asks for no memory, and is C++ as well.",
        f"Options: {pieces.options}.",
        *_feature_lines(model),
    ]
    declared = "\n".join(pieces.declared)
    texts = [comment(head), filled(source.OPENING, name=name, constants=defined, declarations=declared)]
    if model.task == "classification":
        names = wrapped(strings(map(str, model.classes)))
        texts.append(f"const char *const {name}_classes[{upper}_N_OUTPUTS] = {{\n{names}\n}};\n\n")
    arrays = [*pieces.arrays, *answer_arrays(model, trees, name)]
    return "".join([*texts, *(f"{array}\n" for array in arrays), *pieces.functions, source.CLOSING])


def _feature_lines(model: Portable) -> list[str]:
    """The names of features that have some."""
    n = model.n_features
    if n > MOST_NAMES or model.feature_names == tuple(f"x{number}" for number in range(n)):
        return []
    names = (f"    {place} {escaping.comment(name)}" for place, name in enumerate(model.feature_names))
    return ["", "Features:", *names]
