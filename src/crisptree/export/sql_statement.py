"""Export to SQL: one SELECT, in which nested CASE expressions lead to a leaf, and a join to its outputs.

Splits on one feature are exact thresholds; sums are in double precision.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.escaping import quote_sql as quote
from crisptree.export.escaping import quote_sql_name as quote_name
from crisptree.export.formats import EncodedRows, Predictions, find_format
from crisptree.export.portable import ExportError, Portable, PortableTree, convert_to_double
from crisptree.inference.node_arrays import MAX_FLOAT32, find_split_threshold
from crisptree.inspection.model_view import InputColumn

MAX_LEVELS = 10
"""Databases limit how deeply expressions nest; a deeper tree continues in another step."""

MAX_TERMS = 15_000
"""Weights of a statement: 12,000 take SQLite most of a minute before it reads a row, measured, and that time grows with
their square."""

TERMS_PER_GROUP = 50
"""A sum of hundreds of terms is nested as deeply for a parser as it is long, so it is summed in groups."""

WHOLE = re.compile(r"-?\d+")

ROW, LEAF = "crisptree_row", "crisptree_leaf"


def sql(model: Any, *, table: str = "rows") -> str:
    """Export a fitted model as one SELECT: every row of a table with its leaf, prediction and probabilities.

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
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", shrinkage=0.0, random_state=0).fit(X, y)
    >>> print(export.sql(model, table="boxes"), end="")  # doctest: +ELLIPSIS
    -- A crisp decision tree, 1 feature, 2 classes.
    -- Model ..., written by crisptree ...
    -- The licence of crisptree does not apply to this text: use it without conditions.
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
    return str(find_format("sql").write(model, table=table))


def render(portable: Portable, table: str = "rows") -> str:
    """Write the statement."""
    _check_names(portable, table)
    _check_size(portable)
    parts = [_leaf_table(portable, index) for index in range(len(portable.trees))]
    source = quote_name(table)
    for index, tree in enumerate(portable.trees):
        parts += _steps(portable, tree, source, index)
        source = f"crisptree_rows{_suffix(portable, index)}"
    body = ",\n".join(parts) + _selection(portable, source, _output_names(portable))
    comment = "".join(f"-- {line}\n" for line in (f"{portable.description}.", *portable.provenance))
    return f"{comment}WITH {body}"


def _selection(portable: Portable, source: str, outputs: list[str]) -> str:
    """Select columns, leaves and outputs; of a forest the means over its trees."""
    suffixes = [_suffix(portable, index) for index in range(len(portable.trees))]
    joins = "\n".join(
        f"LEFT JOIN crisptree_answers{suffix} AS a{suffix} ON a{suffix}.{LEAF} = r.{LEAF}{suffix}"
        for suffix in suffixes
    )
    if len(suffixes) == 1:
        selected = ", ".join(f"a.{name}" for name in outputs)
        return f"\nSELECT r.*, {selected}\nFROM {source} AS r\n{joins}\n"
    means = [
        f"({' + '.join(f'a{suffix}.{name}' for suffix in suffixes)}) / {len(suffixes)}e0 AS {name}"
        for name in _table_names(portable)
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


def _table_names(portable: Portable) -> list[str]:
    """Return names of the columns that hold leaf tables: probabilities of classes, or regression targets."""
    if portable.classes:
        return [quote_name(f"probability of {label}") for label in portable.classes]
    if portable.n_outputs == 1:
        return ['"prediction"']
    return [f'"prediction {number}"' for number in range(portable.n_outputs)]


def _output_names(portable: Portable) -> list[str]:
    """Return names of all outputs: those of leaf tables, for classification after the predicted class."""
    return [*(['"prediction"'] if portable.classes else []), *_table_names(portable)]


def _suffix(portable: Portable, index: int) -> str:
    """Suffix of the names of a tree, empty for a single one."""
    return f"_{index}" if len(portable.trees) > 1 else ""


def _leaf_table(portable: Portable, index: int) -> str:
    """Write the outputs of all leaves of a tree; in a forest without the predicted class."""
    tree, suffix, outputs = portable.trees[index], _suffix(portable, index), _output_names(portable)
    lines = []
    for leaf, table in enumerate(tree.tables):
        label = [] if suffix or not portable.classes else [literal(portable.classes[int(table.argmax())])]
        lines.append(f"({', '.join([str(leaf), *label, *map(number, table.tolist())])})")
    shown = ", ".join(_table_names(portable) if suffix else outputs)
    values = ",\n         ".join(lines)
    return f"crisptree_answers{suffix} ({LEAF}, {shown}) AS (\n  VALUES {values}\n)"


def run(portable: Portable, written: str, rows: EncodedRows) -> Predictions:
    """Predict the columns of rows with SQLite."""
    database = sqlite3.connect(":memory:")
    try:
        fill_table(database, portable, rows)
        cursor = database.execute(f"{written} ORDER BY r.{ROW}")
        return read_predictions(portable, cursor, f"run with SQLite {sqlite3.sqlite_version}")
    except (sqlite3.Error, OverflowError) as error:
        raise ExportError(f"SQLite cannot run the statement: {error}. Read it with another database.") from error
    finally:
        database.close()


def read_predictions(portable: Portable, cursor: Any, note: str) -> Predictions:
    """Read predictions from the result of a statement by the names of its columns; NULL is an unknown leaf or class."""
    index = {described[0]: number for number, described in enumerate(cursor.description)}  # ours come last
    records = cursor.fetchall()

    def read(names: Sequence[str], missing: float) -> npt.NDArray[np.float64]:
        columns = [index[name] for name in names]
        values = [[missing if row[at] is None else float(row[at]) for at in columns] for row in records]
        return np.array(values, dtype=np.float64).reshape(-1, len(names))

    leaves = read([f"{LEAF}{_suffix(portable, number)}" for number in range(len(portable.trees))], -1)
    outputs = read([name[1:-1].replace('""', '"') for name in _table_names(portable)], np.nan)
    labels = [row[index["prediction"]] for row in records] if portable.classes else ()
    return Predictions.of(leaves, outputs, labels, portable.classes, (note,))


def fill_table(database: Any, portable: Portable, rows: EncodedRows) -> None:
    """Create the table "rows" with the columns of rows, and their numbers so that results can be sorted."""
    types = {"number": "DOUBLE PRECISION", "boolean": "BOOLEAN", "category": "VARCHAR"}
    columns = [f"{quote_name(column.name)} {types[column.kind]}" for column in portable.inputs]
    database.execute(f"CREATE TABLE rows ({', '.join([*columns, f'{ROW} INTEGER'])})")
    values = zip(*(rows.columns[column.name] for column in portable.inputs), range(len(rows)), strict=True)
    holders = ", ".join("?" * (len(columns) + 1))
    database.executemany(f"INSERT INTO rows VALUES ({holders})", list(values))


def _check_names(portable: Portable, table: str) -> None:
    """Reject names that a database cannot distinguish or store."""
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
    """Reject models that databases would parse for hours."""
    terms = sum(int(tree.n_terms.sum()) for tree in portable.trees)
    if terms > MAX_TERMS:
        splits = sum(tree.structure.n_splits for tree in portable.trees)
        raise ExportError(
            f"a statement may have at most {MAX_TERMS:,} weights, because databases take hours to read longer ones; "
            f"this model has {terms:,}. Train with max_features_per_split={max(MAX_TERMS // splits, 1)} or "
            "split='axis', or export to C, ONNX or JavaScript."
        )


def _steps(portable: Portable, tree: PortableTree, table: str, index: int) -> Iterator[str]:
    """Iterate over common table expressions from the table to the leaf of every row, some levels each."""
    structure, suffix = tree.structure, _suffix(portable, index)
    depths = structure.node_depths
    stages = max(1, -(-structure.depth // MAX_LEVELS))
    source = table
    for stage in range(stages):
        last = stage == stages - 1
        name, column = f"crisptree_step{suffix}_{stage}", f"crisptree_node{suffix}_{stage}"
        if last:
            name, column = f"crisptree_rows{suffix}", f"{LEAF}{suffix}"
        if stage == 0:
            root = 0 if structure.n_splits else -1
            guard = _unknown_leaf(portable, tree)
            body = _case(portable, tree, root, MAX_LEVELS, "    " + ("  " if guard else ""))
            if guard:
                body = f"CASE WHEN {guard} THEN NULL ELSE\n      {body}\n    END"
        else:
            before = f"r.crisptree_node{suffix}_{stage - 1}"
            first = np.flatnonzero(depths[: structure.n_splits] == stage * MAX_LEVELS).tolist()
            parts = [
                f"WHEN {-split - 1} THEN\n        {_case(portable, tree, split, MAX_LEVELS, ' ' * 8)}"
                for split in first
            ]
            body = f"CASE {before}\n      " + "\n      ".join(parts) + f"\n      ELSE {before}\n    END"
        yield f"{name} AS (\n  SELECT r.*,\n    {body} AS {column}\n  FROM {source} AS r\n)"
        source = name


def _case(portable: Portable, tree: PortableTree, child: int, levels: int, indent: str) -> str:
    """Nested CASE from a node to a leaf index, or, after some levels, to −split − 1 of a split to continue from."""
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


def literal(label: Any) -> str:
    """Write a class label."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return quote(label) if isinstance(label, str) else number(label)


def number(value: Any) -> str:
    """Write a number; one with a fraction has an exponent, so that databases read a double and not a decimal."""
    text = (str(value) if isinstance(value, np.float32) else repr(value)).removesuffix(".0")
    return text if WHOLE.fullmatch(text) or "e" in text else f"{text}e0"


def _goes_right(portable: Portable, tree: PortableTree, split: int, indent: str) -> str:
    """Condition under which a row goes right."""
    weight, bias = tree.weight[split], tree.bias[split]
    used = np.flatnonzero(weight)
    if len(used) <= 1:
        return _threshold(portable, weight, bias)
    parts = [text for column in portable.inputs if (text := _part(portable, column, weight))]
    groups = [parts[start : start + TERMS_PER_GROUP] for start in range(0, len(parts), TERMS_PER_GROUP)]
    if len(groups) > 1:
        parts = [f"({' + '.join(group)})" for group in groups]
    return f"\n{indent}  + ".join(parts) + f" > {number(-bias)}"


def _threshold(portable: Portable, weight: npt.NDArray[np.float32], bias: np.float32) -> str:
    """Condition of a split on one feature, which decides exactly as the model's sum."""
    feature, value, larger_go_right = find_split_threshold(weight, bias)
    if not weight.any() or value == -np.inf or value >= MAX_FLOAT32:
        above = value == -np.inf  # all rows are on one side
        return "1 = 1" if above == larger_go_right else "1 = 0"
    _, column = portable.input_of(feature)
    is_own, missing = feature != column.missing_feature, _missing(portable, column)
    if column.kind == "category" or not is_own:
        if not 0 <= value < 1:  # 0 and 1 are on the same side
            return "1 = 1" if (value < 0) == larger_go_right else "1 = 0"
        if not is_own:
            return missing if larger_go_right else f"NOT ({missing})"
        same = f"{_text(column)} = {quote(column.categories[feature - column.feature])}"
        return same if larger_go_right else f"({same}) IS NOT TRUE"
    limit, inclusive = convert_to_double(value)
    sign = (">" if inclusive else ">=") if larger_go_right else ("<=" if inclusive else "<")
    condition = f"{_value(column)} {sign} {number(limit)}"
    fill_goes_right = column.fill is not None and (np.float32(column.fill) > value) == larger_go_right
    return f"({condition} OR {missing})" if fill_goes_right else condition


def _part(portable: Portable, column: InputColumn, weight: npt.NDArray[np.float32]) -> str:
    """Contribution of a column to a sum; empty without weights."""
    own = weight[column.feature : column.feature + column.n_features]
    indicator = np.float32(0) if column.missing_feature is None else weight[column.missing_feature]
    missing = _missing(portable, column)
    if column.kind == "category":
        levels = [
            f"WHEN {_text(column)} = {quote(level)} THEN {number(term)}"
            for level, term in zip(column.categories, own, strict=True)
            if term
        ]
        levels += [f"WHEN {missing} THEN {number(indicator)}"] if indicator else []
        return f"CASE {' '.join(levels)} ELSE 0 END" if levels else ""
    if not own[0] and not indicator:
        return ""
    present = f"{number(own[0])} * {_value(column)}" if own[0] else "0"
    if column.fill is None:
        return present
    if not indicator:
        filled = f"COALESCE({_value(column)}, {number(float(np.float32(column.fill)))})"
        return f"{number(own[0])} * {filled}"
    absent = float(own[0]) * float(np.float32(column.fill)) + float(indicator)
    return f"CASE WHEN {missing} THEN {number(absent)} ELSE {present} END"


def _value(column: InputColumn) -> str:
    """Expression of a column as a number."""
    name = f"r.{quote_name(column.name)}"
    return f"CAST({name} AS INTEGER)" if column.kind == "boolean" else name


def _text(column: InputColumn) -> str:
    """Expression of a column as text; categories that are all whole numbers may come from a numeric column."""
    name = f"r.{quote_name(column.name)}"
    return f"CAST({name} AS VARCHAR)" if all(map(WHOLE.fullmatch, column.categories)) else name


def _missing(portable: Portable, column: InputColumn) -> str:
    null = f"r.{quote_name(column.name)} IS NULL"
    if column.kind != "category" or not portable.missing_texts:
        return null
    return f"({null} OR {_text(column)} IN ({', '.join(map(quote, portable.missing_texts))}))"


def _unknown_leaf(portable: Portable, tree: PortableTree) -> str:
    """Condition under which the leaf is unknown: a number that the tree uses is missing and has no fill value."""
    used_features = np.asarray(tree.weight.any(axis=0))
    bare = [c for c in portable.inputs if c.kind != "category" and c.fill is None and used_features[c.feature]]
    groups = [bare[start : start + TERMS_PER_GROUP] for start in range(0, len(bare), TERMS_PER_GROUP)]
    sums = (" + ".join(map(_value, group)) for group in groups)
    return "\n      OR ".join(f"({total}) IS NULL" if " + " in total else f"{total} IS NULL" for total in sums)
