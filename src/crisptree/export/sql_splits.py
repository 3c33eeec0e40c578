"""What a split asks, as a condition in SQL: thresholds exactly, sums in double precision."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.escaping import sql as quoted
from crisptree.export.escaping import sql_name as named
from crisptree.export.portable import Input, Portable, PortableTree
from crisptree.export.thresholds import double_threshold, split_threshold

TERMS_AT_ONCE = 50
"""A sum of hundreds of terms is nested as deeply for a parser as it is long, so it is summed up in parts."""

WHOLE = re.compile(r"-?\d+")


def literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return quoted(label) if isinstance(label, str) else number(label)


def number(value: Any) -> str:
    """A number; one with a fraction has an exponent, so that databases take it for a double and not for a decimal."""
    text = (str(value) if isinstance(value, np.float32) else repr(value)).removesuffix(".0")
    return text if WHOLE.fullmatch(text) or "e" in text else f"{text}e0"


def goes_right(portable: Portable, tree: PortableTree, split: int, indent: str) -> str:
    weight, bias = tree.weight[split], tree.bias[split]
    used = np.flatnonzero(weight)
    if len(used) <= 1:
        return _threshold(portable, weight, bias)
    parts = [text for column in portable.inputs if (text := _part(portable, column, weight))]
    groups = [parts[start : start + TERMS_AT_ONCE] for start in range(0, len(parts), TERMS_AT_ONCE)]
    if len(groups) > 1:
        parts = [f"({' + '.join(group)})" for group in groups]
    return f"\n{indent}  + ".join(parts) + f" > {number(-bias)}"


def _threshold(portable: Portable, weight: npt.NDArray[np.float32], bias: np.float32) -> str:
    """A split on one feature; the comparison gives the very turn of the model's sum."""
    feature, value, larger_go_right = split_threshold(weight, bias)
    if not weight.any() or value == -np.inf or value >= np.finfo(np.float32).max:
        above = value == -np.inf  # all rows are on one side
        return "1 = 1" if above == larger_go_right else "1 = 0"
    column = next(c for c in portable.inputs if c.feature <= feature < c.feature + c.n_own + c.missing)
    is_own, missing = feature < column.feature + column.n_own, _missing(portable, column)
    if column.kind == "category" or not is_own:
        if not 0 <= value < 1:  # 0 and 1 are on the same side
            return "1 = 1" if (value < 0) == larger_go_right else "1 = 0"
        if not is_own:
            return missing if larger_go_right else f"NOT ({missing})"
        same = f"{_text(column)} = {quoted(column.categories[feature - column.feature])}"
        return same if larger_go_right else f"({same}) IS NOT TRUE"
    limit, inclusive = double_threshold(value)
    sign = (">" if inclusive else ">=") if larger_go_right else ("<=" if inclusive else "<")
    question = f"{_value(column)} {sign} {number(limit)}"
    fill_goes_right = column.fill is not None and (np.float32(column.fill) > value) == larger_go_right
    return f"({question} OR {missing})" if fill_goes_right else question


def _part(portable: Portable, column: Input, weight: npt.NDArray[np.float32]) -> str:
    """What a column adds to a sum; nothing where it has no weight."""
    own = weight[column.feature : column.feature + column.n_own]
    hole = np.float32(0) if column.missing_feature is None else weight[column.missing_feature]
    missing = _missing(portable, column)
    if column.kind == "category":
        levels = [
            f"WHEN {_text(column)} = {quoted(level)} THEN {number(term)}"
            for level, term in zip(column.categories, own, strict=True)
            if term
        ]
        levels += [f"WHEN {missing} THEN {number(hole)}"] if hole else []
        return f"CASE {' '.join(levels)} ELSE 0 END" if levels else ""
    if not own[0] and not hole:
        return ""
    present = f"{number(own[0])} * {_value(column)}" if own[0] else "0"
    if column.fill is None:
        return present
    if not hole:
        filled = f"COALESCE({_value(column)}, {number(float(np.float32(column.fill)))})"
        return f"{number(own[0])} * {filled}"
    absent = float(own[0]) * float(np.float32(column.fill)) + float(hole)
    return f"CASE WHEN {missing} THEN {number(absent)} ELSE {present} END"


def _value(column: Input) -> str:
    """A column as a number."""
    name = f"r.{named(column.name)}"
    return f"CAST({name} AS INTEGER)" if column.kind == "boolean" else name


def _text(column: Input) -> str:
    """A column as text; levels that are all whole numbers may come from a column of numbers."""
    name = f"r.{named(column.name)}"
    return f"CAST({name} AS VARCHAR)" if all(map(WHOLE.fullmatch, column.categories)) else name


def _missing(portable: Portable, column: Input) -> str:
    null = f"r.{named(column.name)} IS NULL"
    if column.kind != "category" or not portable.missing_texts:
        return null
    return f"({null} OR {_text(column)} IN ({', '.join(map(quoted, portable.missing_texts))}))"


def no_answer(portable: Portable, tree: PortableTree) -> str:
    """Where there is no answer: a number is missing that the tree asks for, and nothing is kept to fill it with."""
    asked = np.asarray(tree.weight.any(axis=0))
    bare = [c for c in portable.inputs if c.kind != "category" and c.fill is None and asked[c.feature]]
    groups = [bare[start : start + TERMS_AT_ONCE] for start in range(0, len(bare), TERMS_AT_ONCE)]
    sums = (" + ".join(map(_value, group)) for group in groups)
    return "\n      OR ".join(f"({total}) IS NULL" if " + " in total else f"{total} IS NULL" for total in sums)
