"""A model as one SELECT in standard SQL: nested CASE expressions lead to a leaf, a list of leaves has the answers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.agreement import Answers, Rows
from crisptree.export.escaping import sql as quoted
from crisptree.export.escaping import sql_name as named
from crisptree.export.portable import ExportError, Input, Portable, PortableTree
from crisptree.export.thresholds import double_threshold, split_threshold

LEVELS_AT_ONCE = 10
"""Databases limit how deeply expressions nest; a deeper tree goes on in another step."""

TERMS_AT_ONCE = 50
"""A sum of hundreds of terms is nested as deeply for a parser as it is long, so it is summed up in parts."""

ROW, LEAF = "crisptree_row", "crisptree_leaf"
WHOLE = re.compile(r"-?\d+")


def sql(model: Any, *, table: str = "rows") -> str:
    """A fitted model as one SELECT in standard SQL: every row of a table with its leaf, prediction and probabilities.

    A split on one feature compares the column with a threshold, and every row reaches the leaf that it reaches here. A
    split on several sums them up in double precision, where the model sums in single precision: a row that lies within
    rounding of a boundary may turn the other way; ``export.check(model, X, "sql")`` counts such rows.

    NULL is a missing value; categories are text.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline of a ``TableEncoder`` and one.
    table : str, default="rows"
        The table or view to read, which has the model's columns under their names.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = {"size": [0.0, 1.0, 8.0, 9.0]}, ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> print(export.sql(model, table="boxes"), end="")  # doctest: +ELLIPSIS
    -- A crisp decision tree of 1 feature and 2 classes, by crisptree.
    WITH crisptree_answers (crisptree_leaf, "prediction", "probability of high", "probability of low") AS (
      VALUES (0, 'high', 1, 0),
             (1, 'low', 0, 1)
    ),
    crisptree_rows AS (
      SELECT r.*,
        CASE WHEN r."size" <= 4.4...
          THEN 1
          ELSE 0
        END AS crisptree_leaf
      FROM "boxes" AS r
    )
    SELECT r.*, a."prediction", a."probability of high", a."probability of low"
    FROM crisptree_rows AS r
    LEFT JOIN crisptree_answers AS a ON a.crisptree_leaf = r.crisptree_leaf
    """
    from crisptree.export.support import target_named

    return str(target_named("sql").write(model, table=table))


def write(portable: Portable, table: str = "rows") -> str:
    """The statement."""
    _check_names(portable, table)
    (tree,) = portable.trees
    answers, leaves = _answers(portable, tree), list(_steps(portable, tree, named(table)))
    outputs = ", ".join(f"a.{name}" for name in _outputs(portable))
    features = f"{portable.n_features} feature{'s' if portable.n_features > 1 else ''}"
    return (
        f"-- A crisp decision tree of {features} and {portable.n_outputs} classes, by crisptree.\n"
        f"WITH crisptree_answers ({LEAF}, {', '.join(_outputs(portable))}) AS (\n  VALUES {answers}\n),\n"
        + ",\n".join(leaves)
        + f"\nSELECT r.*, {outputs}\nFROM crisptree_rows AS r\n"
        f"LEFT JOIN crisptree_answers AS a ON a.{LEAF} = r.{LEAF}\n"
    )


def answers(portable: Portable, written: str, rows: Rows) -> Answers:
    """What SQLite answers for the columns of rows."""
    with_leaf = sqlite3.connect(":memory:")
    try:
        _fill(with_leaf.execute, with_leaf.executemany, portable, rows)
        found = with_leaf.execute(f"{written} ORDER BY r.{ROW}").fetchall()
    except (sqlite3.Error, OverflowError) as error:
        raise ExportError(f"SQLite cannot run the statement: {error}. Read it with another database.") from error
    finally:
        with_leaf.close()
    return read_answers(portable, found, f"run with SQLite {sqlite3.sqlite_version}")


def read_answers(portable: Portable, found: list[tuple[Any, ...]], note: str) -> Answers:
    """Leaves, classes and probabilities in the last columns of a result."""
    n_outputs = portable.n_outputs
    place = {label: number for number, label in enumerate(portable.classes)}
    leaves = np.array([-1 if row[-n_outputs - 2] is None else row[-n_outputs - 2] for row in found], dtype=np.int64)
    classes = np.array([place.get(row[-n_outputs - 1], -1) for row in found], dtype=np.int64)
    tables = [[np.nan if value is None else float(value) for value in row[-n_outputs:]] for row in found]
    return Answers(leaves, classes, np.array(tables).reshape(-1, n_outputs), (note,))


def _fill(execute: Any, executemany: Any, portable: Portable, rows: Rows, table: str = "rows") -> None:
    """A table with the columns of rows, and their numbers so that they can be put in order."""
    types = {"number": "DOUBLE PRECISION", "boolean": "BOOLEAN", "category": "VARCHAR"}
    columns = [f"{named(column.name)} {types[column.kind]}" for column in portable.inputs]
    execute(f"CREATE TABLE {named(table)} ({', '.join([*columns, f'{ROW} INTEGER'])})")
    values = zip(*(rows.columns[column.name] for column in portable.inputs), range(len(rows)), strict=True)
    executemany(f"INSERT INTO {named(table)} VALUES ({', '.join('?' * (len(columns) + 1))})", list(values))


def _check_names(portable: Portable, table: str) -> None:
    """Refuse names that a database cannot tell apart or hold."""
    seen: dict[str, str] = {}
    for column in portable.inputs:
        other = seen.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise ExportError(
                f"columns of a database must differ in more than upper and lower case; got {other!r} and "
                f"{column.name!r}. Rename one before training."
            )
    if not isinstance(table, str) or not table:
        raise ExportError(f"`table` must be the name of a table; got {table!r}.")


def _outputs(portable: Portable) -> list[str]:
    labels = [named(f"probability of {label}") for label in portable.classes]
    return ['"prediction"', *labels]


def _answers(portable: Portable, tree: PortableTree) -> str:
    lines = []
    for leaf, table in enumerate(tree.tables):
        label = _literal(portable.classes[int(table.argmax())])
        lines.append(f"({leaf}, {label}, {', '.join(_number(value) for value in table.tolist())})")
    return ",\n         ".join(lines)


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return quoted(label) if isinstance(label, str) else _number(label)


def _number(value: Any) -> str:
    """A number; one with a fraction has an exponent, so that databases take it for a double and not for a decimal."""
    text = (str(value) if isinstance(value, np.float32) else repr(value)).removesuffix(".0")
    return text if WHOLE.fullmatch(text) or "e" in text else f"{text}e0"


def _steps(portable: Portable, tree: PortableTree, table: str) -> Iterator[str]:
    """Common table expressions from the table to the leaf of every row, some levels at a time."""
    structure = tree.structure
    depths = structure.node_depths
    stages = max(1, -(-structure.depth // LEVELS_AT_ONCE))
    source = table
    for stage in range(stages):
        last = stage == stages - 1
        name, column = ("crisptree_rows", LEAF) if last else (f"crisptree_step_{stage}", f"crisptree_node_{stage}")
        if stage == 0:
            root = 0 if structure.n_splits else -1
            guard = _guard(portable, tree)
            body = _case(portable, tree, root, LEVELS_AT_ONCE, "    " + ("  " if guard else ""))
            if guard:
                body = f"CASE WHEN {guard} THEN NULL ELSE\n      {body}\n    END"
        else:
            before = f"r.crisptree_node_{stage - 1}"
            here = np.flatnonzero(depths[: structure.n_splits] == stage * LEVELS_AT_ONCE).tolist()
            parts = [
                f"WHEN {-split - 1} THEN\n        {_case(portable, tree, split, LEVELS_AT_ONCE, ' ' * 8)}"
                for split in here
            ]
            body = f"CASE {before}\n      " + "\n      ".join(parts) + f"\n      ELSE {before}\n    END"
        yield f"{name} AS (\n  SELECT r.*,\n    {body} AS {column}\n  FROM {source} AS r\n)"
        source = name


def _case(portable: Portable, tree: PortableTree, child: int, levels: int, indent: str) -> str:
    """What leads from a child to a leaf number, or, after some levels, to −split − 1 of a split to go on from."""
    if child < 0:
        return str(~child)
    if not levels:
        return str(-child - 1)
    inner = indent + "  "
    condition = _goes_right(portable, tree, child, inner)
    right, left = (
        _case(portable, tree, int(side[child]), levels - 1, inner)
        for side in (tree.structure.right, tree.structure.left)
    )
    return f"CASE WHEN {condition}\n{inner}THEN {right}\n{inner}ELSE {left}\n{indent}END"


def _goes_right(portable: Portable, tree: PortableTree, split: int, indent: str) -> str:
    weight, bias = tree.weight[split], tree.bias[split]
    used = np.flatnonzero(weight)
    if len(used) <= 1:
        return _threshold(portable, weight, bias)
    parts = [text for column in portable.inputs if (text := _part(portable, column, weight))]
    groups = [parts[start : start + TERMS_AT_ONCE] for start in range(0, len(parts), TERMS_AT_ONCE)]
    if len(groups) > 1:
        parts = [f"({' + '.join(group)})" for group in groups]
    return f"\n{indent}  + ".join(parts) + f" > {_number(-bias)}"


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
    question = f"{_value(column)} {sign} {_number(limit)}"
    fill_goes_right = column.fill is not None and (np.float32(column.fill) > value) == larger_go_right
    return f"({question} OR {missing})" if fill_goes_right else question


def _part(portable: Portable, column: Input, weight: npt.NDArray[np.float32]) -> str:
    """What a column adds to a sum; nothing where it has no weight."""
    own = weight[column.feature : column.feature + column.n_own]
    hole = np.float32(0) if column.missing_feature is None else weight[column.missing_feature]
    missing = _missing(portable, column)
    if column.kind == "category":
        levels = [
            f"WHEN {_text(column)} = {quoted(level)} THEN {_number(term)}"
            for level, term in zip(column.categories, own, strict=True)
            if term
        ]
        levels += [f"WHEN {missing} THEN {_number(hole)}"] if hole else []
        return f"CASE {' '.join(levels)} ELSE 0 END" if levels else ""
    if not own[0] and not hole:
        return ""
    present = f"{_number(own[0])} * {_value(column)}" if own[0] else "0"
    if column.fill is None:
        return present
    if not hole:
        filled = f"COALESCE({_value(column)}, {_number(float(np.float32(column.fill)))})"
        return f"{_number(own[0])} * {filled}"
    absent = float(own[0]) * float(np.float32(column.fill)) + float(hole)
    return f"CASE WHEN {missing} THEN {_number(absent)} ELSE {present} END"


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


def _guard(portable: Portable, tree: PortableTree) -> str:
    """Where there is no answer: a number is missing that the tree asks for, and nothing is kept to fill it with."""
    asked = np.asarray(tree.weight.any(axis=0))
    bare = [c for c in portable.inputs if c.kind != "category" and c.fill is None and asked[c.feature]]
    groups = [bare[start : start + TERMS_AT_ONCE] for start in range(0, len(bare), TERMS_AT_ONCE)]
    sums = (" + ".join(map(_value, group)) for group in groups)
    return "\n      OR ".join(f"({total}) IS NULL" if " + " in total else f"{total} IS NULL" for total in sums)
