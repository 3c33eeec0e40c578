"""The stored encoding of tables as C: columns of numbers and categories become the row that the trees see."""

from __future__ import annotations

from crisptree.export import escaping
from crisptree.export.c99 import text
from crisptree.export.c99.source import filled
from crisptree.export.portable import Input, Portable

DECLARATIONS = """\
#define ${NAME}_N_COLUMNS $n_columns

/* The number that stands for a category of a column; -1 for one that training did not know, -2 for a text that means a
 * missing value.
 */
int32_t ${name}_category(int32_t column, const char *text);

/* Columns of a table as the row that all other functions take. A column is a number; 1 or 0 for true and false; or the
 * number of a category. Not a number (NaN), or -2 for a category, is a missing value: the mean of training stands in.
 * The result is 0, or the number of the first column that cannot be used, counted from 1: its value is too large for
 * single precision, or is missing where the model keeps nothing to stand in.
 */
int32_t ${name}_encode(const double *columns, float *row);
"""

CODE = """
static int ${name}_is(const char *known, const char *text)
{
    int32_t i;
    for (i = 0; known[i] != 0 && known[i] == text[i]; ++i) {
    }
    return known[i] == text[i];
}

int32_t ${name}_category(int32_t column, const char *text)
{
    int32_t place;
    for (place = ${name}_first_category[column]; place < (int32_t)${name}_first_category[column + 1]; ++place) {
        if (${name}_is(${name}_categories[place], text)) {
            return place - (int32_t)${name}_first_category[column];
        }
    }
    for (place = 0; place < $n_missing; ++place) {
        if (${name}_is(${name}_missing[place], text)) {
            return -2;
        }
    }
    return -1;
}

int32_t ${name}_encode(const double *columns, float *row)
{
    int32_t column, k;
    for (column = 0; column < ${NAME}_N_COLUMNS; ++column) {
        const double value = columns[column];
        const int32_t kind = ${name}_column_kind[column];
        const int32_t levels = (int32_t)${name}_first_category[column + 1] - (int32_t)${name}_first_category[column];
        const int missing = (!(value >= 0.0) && !(value < 0.0)) || ((kind & 1) != 0 && value < -1.5);
        if (missing && (kind & 4) != 0) {
            return column + 1;
        }
        if ((kind & 1) != 0) {
            for (k = 0; k < levels; ++k) {
                row[k] = !missing && value >= (double)k && value < (double)k + 1.0 ? 1.0f : 0.0f;
            }
            row += levels;
        } else {
            if (!missing && !(value >= -3.4028234663852886e38 && value <= 3.4028234663852886e38)) {
                return column + 1;
            }
            *row++ = missing ? ${name}_fill[column] : (float)value;
        }
        if ((kind & 2) != 0) {
            *row++ = missing ? 1.0f : 0.0f;
        }
    }
    return 0;
}
"""


def declarations(model: Portable, name: str) -> str:
    """What a program must know to encode a row."""
    lines = [f"Column {number}: {_words(column)}" for number, column in enumerate(model.inputs)]
    return text.comment(lines) + filled(DECLARATIONS, name=name, n_columns=len(model.inputs))


def _words(column: Input) -> str:
    kinds = {
        "number": "a number",
        "boolean": "true (1) or false (0)",
        "category": f"{len(column.categories)} categories",
    }
    return f"{escaping.comment(column.name)}, {kinds[column.kind]}{', may be missing' if column.missing else ''}"


def _kind(column: Input) -> int:
    """Bit 0: a category; bit 1: a feature tells where values are missing; bit 2: a missing value is an error."""
    is_category = column.kind == "category"
    return is_category + 2 * column.missing + 4 * (column.fill is None and not is_category)


def code(model: Portable, name: str) -> str:
    """Its tables, and the functions that use them."""
    columns = model.inputs
    firsts = [0]
    for column in columns:
        firsts.append(firsts[-1] + len(column.categories))
    fills = [column.fill or 0.0 for column in columns]
    texts = [value for column in columns for value in column.categories] or [""]
    tables: list[object] = [
        text.integers(f"{name}_first_category", firsts),
        text.integers(f"{name}_column_kind", [_kind(column) for column in columns]),
        text.rounded(f"{name}_fill", fills),
    ]
    absent = model.missing_texts or ("",)
    for what, held in (("categories", texts), ("missing", absent)):
        strings = text.wrapped(text.strings(held))
        tables.append(f"static const char *const {name}_{what}[{len(held)}] = {{\n{strings}\n}};\n")
    return "\n" + "".join(map(str, tables)) + filled(CODE, name=name, n_missing=len(model.missing_texts))
