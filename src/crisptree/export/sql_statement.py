"""A model as one SELECT in standard SQL: nested CASE expressions lead to a leaf, a list of leaves has the answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np

from crisptree.export.agreement import Answers, Rows, no_classes
from crisptree.export.escaping import sql_name as named
from crisptree.export.portable import ExportError, Portable, PortableTree
from crisptree.export.sql_splits import goes_right, literal, no_answer, number

LEVELS_AT_ONCE = 10
"""Databases limit how deeply expressions nest; a deeper tree goes on in another step."""

MOST_TERMS = 15_000
"""Weights that a statement may have: 12,000 take SQLite most of a minute before it reads a row, measured, and that time
grows with their square."""

ROW, LEAF = "crisptree_row", "crisptree_leaf"


def sql(model: Any, *, table: str = "rows") -> str:
    """A fitted model as one SELECT in standard SQL: every row of a table with its leaf, prediction and probabilities.

    A split on one feature compares the column with a threshold, and every row reaches the leaf that it reaches here. A
    split on several sums them up in double precision, where the model sums in single precision: a row that lies within
    rounding of a boundary may turn the other way; ``export.check(model, X, "sql")`` counts such rows.

    NULL is a missing value; categories are text.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispForestClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline of a ``TableEncoder`` and one.
    table : str, default="rows"
        The table or view to read, which has the model's columns under their names.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = {"size": [0.0, 1.0, 8.0, 9.0, 10.0]}, ["low", "low", "high", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> print(export.sql(model, table="boxes"), end="")  # doctest: +ELLIPSIS
    -- A crisp decision tree, 1 feature, 2 classes, by crisptree.
    WITH crisptree_answers (crisptree_leaf, "prediction", "probability of high", "probability of low") AS (
      VALUES (0, 'high', 1, 0),
             (1, 'low', 0, 1)
    ),
    crisptree_rows AS (
      SELECT r.*,
        CASE WHEN r."size" <... 4.47...
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
    _check_size(portable)
    parts = [_table_of_leaves(portable, place) for place in range(len(portable.trees))]
    source = named(table)
    for place, tree in enumerate(portable.trees):
        parts += _steps(portable, tree, source, place)
        source = f"crisptree_rows{_suffix(portable, place)}"
    body = ",\n".join(parts) + _selection(portable, source, _outputs(portable))
    return f"-- {portable.words}, by crisptree.\nWITH {body}"


def _selection(portable: Portable, source: str, outputs: list[str]) -> str:
    """What comes out: columns, leaves and answers; of a forest the means of what its leaves say."""
    suffixes = [_suffix(portable, place) for place in range(len(portable.trees))]
    joins = "\n".join(
        f"LEFT JOIN crisptree_answers{suffix} AS a{suffix} ON a{suffix}.{LEAF} = r.{LEAF}{suffix}"
        for suffix in suffixes
    )
    if len(suffixes) == 1:
        chosen = ", ".join(f"a.{name}" for name in outputs)
        return f"\nSELECT r.*, {chosen}\nFROM {source} AS r\n{joins}\n"
    means = [
        f"({' + '.join(f'a{suffix}.{name}' for suffix in suffixes)}) / {len(suffixes)}e0 AS {name}"
        for name in _numbers(portable)
    ]
    if not portable.classes:
        return f"\nSELECT r.*, {', '.join(means)}\nFROM {source} AS r\n{joins}\n"
    largest = " ".join(
        "WHEN " + " AND ".join(f"r.{one} >= r.{other}" for other in outputs[1:]) + f" THEN {literal(label)}"
        for one, label in zip(outputs[1:], portable.classes, strict=True)
    )
    return (
        f",\ncrisptree_means AS (\n  SELECT r.*, {', '.join(means)}\n  FROM {source} AS r\n  "
        + joins.replace("\n", "\n  ")
        + f"\n)\nSELECT r.*, CASE {largest} END AS {outputs[0]}\nFROM crisptree_means AS r\n"
    )


def _numbers(portable: Portable) -> list[str]:
    """What the numbers of a leaf are called."""
    if portable.classes:
        return _outputs(portable)[1:]
    if portable.n_outputs == 1:
        return ['"prediction"']
    return [f'"prediction {place}"' for place in range(portable.n_outputs)]


def _suffix(portable: Portable, place: int) -> str:
    """What tells the trees of a forest apart."""
    return f"_{place}" if len(portable.trees) > 1 else ""


def _table_of_leaves(portable: Portable, place: int) -> str:
    """The leaves of a tree with their answers; in a forest those have probabilities only."""
    tree, suffix, outputs = portable.trees[place], _suffix(portable, place), _outputs(portable)
    lines = []
    for leaf, table in enumerate(tree.tables):
        label = [] if suffix or not portable.classes else [literal(portable.classes[int(table.argmax())])]
        lines.append(f"({', '.join([str(leaf), *label, *map(number, table.tolist())])})")
    shown = ", ".join(_numbers(portable) if suffix else outputs)
    values = ",\n         ".join(lines)
    return f"crisptree_answers{suffix} ({LEAF}, {shown}) AS (\n  VALUES {values}\n)"


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
    """Leaves, classes and probabilities in the last columns of a result, a forest's leaves one by one."""
    n_outputs, n_trees = portable.n_outputs, len(portable.trees)
    if not portable.classes:  # … leaves, numbers
        numbers = np.array([row[-n_outputs - n_trees :] for row in found], dtype=np.float64)
        leaves_found = np.nan_to_num(numbers[:, :n_trees], nan=-1).astype(np.int64)
        return Answers(leaves_found, no_classes(len(found)), numbers[:, n_trees:], (note,))
    known = {label: place for place, label in enumerate(portable.classes)}
    if n_trees == 1:  # … leaf, prediction, probabilities
        leaf_at, class_at, table_at = [-n_outputs - 2], -n_outputs - 1, slice(-n_outputs, None)
    else:  # … leaves, probabilities, prediction
        leaf_at = list(range(-n_trees - n_outputs - 1, -n_outputs - 1))
        class_at, table_at = -1, slice(-n_outputs - 1, -1)
    leaves = [[-1 if row[at] is None else row[at] for at in leaf_at] for row in found]
    tables = [[np.nan if value is None else float(value) for value in row[table_at]] for row in found]
    classes = np.array([known.get(row[class_at], -1) for row in found], dtype=np.int64)
    by_tree = np.array(leaves, dtype=np.int64).reshape(-1, n_trees)
    return Answers(by_tree, classes, np.array(tables).reshape(-1, n_outputs), (note,))


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
    labels = [label.lower() for label in map(str, portable.classes)]
    if len(set(labels)) < len(labels):
        raise ExportError(
            f"classes must differ in more than upper and lower case, because columns of a database are called after "
            f"them; got {list(portable.classes)}. Rename one before training."
        )
    taken = {f"probability of {label}" for label in labels} | ({"prediction"} if len(portable.trees) > 1 else set())
    for column in portable.inputs:
        if column.name.lower() in taken or column.name.lower().startswith("crisptree_"):
            raise ExportError(
                f"no column may be called like one of the statement's own; got {column.name!r}. Rename it before "
                "training."
            )
    if not isinstance(table, str) or not table:
        raise ExportError(f"`table` must be the name of a table; got {table!r}.")


def _check_size(portable: Portable) -> None:
    """Refuse trees that databases would read for hours."""
    terms = sum(int(tree.terms.sum()) for tree in portable.trees)
    if terms > MOST_TERMS:
        splits = sum(tree.structure.n_splits for tree in portable.trees)
        raise ExportError(
            f"a statement may have at most {MOST_TERMS:,} weights, because databases take hours to read longer ones; "
            f"this model has {terms:,}. Simplify it first, model.simplified(X, y, max_terms="
            f"{max(MOST_TERMS // splits, 1)}), train with split='axis', or export to C, ONNX or JavaScript."
        )


def _outputs(portable: Portable) -> list[str]:
    """The names of what comes out: the class and its probabilities, or numbers."""
    if not portable.classes:
        return _numbers(portable)
    labels = [named(f"probability of {label}") for label in portable.classes]
    return ['"prediction"', *labels]


def _steps(portable: Portable, tree: PortableTree, table: str, place: int) -> Iterator[str]:
    """Common table expressions from the table to the leaf of every row, some levels at a time."""
    structure, suffix = tree.structure, _suffix(portable, place)
    depths = structure.node_depths
    stages = max(1, -(-structure.depth // LEVELS_AT_ONCE))
    source = table
    for stage in range(stages):
        last = stage == stages - 1
        name, column = f"crisptree_step{suffix}_{stage}", f"crisptree_node{suffix}_{stage}"
        if last:
            name, column = f"crisptree_rows{suffix}", f"{LEAF}{suffix}"
        if stage == 0:
            root = 0 if structure.n_splits else -1
            guard = no_answer(portable, tree)
            body = _case(portable, tree, root, LEVELS_AT_ONCE, "    " + ("  " if guard else ""))
            if guard:
                body = f"CASE WHEN {guard} THEN NULL ELSE\n      {body}\n    END"
        else:
            before = f"r.crisptree_node{suffix}_{stage - 1}"
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
    condition = goes_right(portable, tree, child, inner)
    right, left = (
        _case(portable, tree, int(side[child]), levels - 1, inner)
        for side in (tree.structure.right, tree.structure.left)
    )
    return f"CASE WHEN {condition}\n{inner}THEN {right}\n{inner}ELSE {left}\n{indent}END"
