"""What a written header says of rows: it is compiled with the system's compiler, loaded, and asked."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from string import Template

import numpy as np

from crisptree.export.agreement import Answers, Rows
from crisptree.export.portable import ExportError, Portable

COMPILERS = ("cc", "gcc", "clang")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion")

DRIVER = Template("""\
#define ${NAME}_IMPLEMENTATION
#define ${NAME}_WITH_FLOAT
#include "${name}.h"

void crisptree_ask(const $given *rows, int32_t n, int32_t *leaves, int32_t *classes, double *says);
void crisptree_ask(const $given *rows, int32_t n, int32_t *leaves, int32_t *classes, double *says)
{
    int32_t i, k;
    for (i = 0; i < n; ++i) {
        const $given *given = rows + i * (int32_t)${NAME}_N_FEATURES;
$quantize        for (k = 0; k < ${NAME}_N_TREES; ++k) {
            *leaves++ = ${name}_leaf($row$tree);
        }
$predict    }
    (void)k;
    (void)classes;
}
""")

CLASSES = """\
        {
            $table_type table[${NAME}_N_OUTPUTS];
            ${name}_predict_proba($row, table);
            *classes++ = ${name}_predict($row);
            for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
                *says++ = (double)table[k] / $one;
            }
        }
"""

QUANTIZE = """\
        $row_type row[${NAME}_N_FEATURES];
        ${name}_quantize(given, row);
"""

BETWEEN = {"float": np.float32, "uint8_t": np.uint8, "int8_t": np.int8, "int16_t": np.int16, "int32_t": np.int32}


def compiler() -> str:
    """The command of a C compiler: $CC, or the first that is there."""
    for command in (os.environ.get("CC", ""), *COMPILERS):
        if command and shutil.which(command):
            return command
    raise ExportError(f"to run C needs a compiler; none of {', '.join(COMPILERS)} is there. Install one, or set CC.")


def answers(portable: Portable, written: str, rows: Rows) -> Answers:
    """What the header says of rows; of whole numbers, ``quantize`` makes them first."""
    name, driver, given = driver_of(portable, written)
    n, n_trees = len(rows), len(portable.trees)
    command = compiler()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / f"{name}.h").write_text(written, encoding="ascii")
        (place / "driver.c").write_text(driver, encoding="ascii")
        library = place / "driver.so"
        run = [command, *WARNINGS, "-O2", "-shared", "-fPIC", str(place / "driver.c"), "-o", str(library)]
        result = subprocess.run(run, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ExportError(f"{command} must compile what was written; it says: {result.stderr.strip()[:2000]}")
        ask = ctypes.CDLL(str(library)).crisptree_ask
    inputs = np.ascontiguousarray(rows.X, dtype=BETWEEN[given])
    leaves, classes = np.full((n, n_trees), -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    says = np.full((n, portable.n_outputs), np.nan)
    found = (leaves, classes, says)
    ask(inputs.ctypes.data_as(ctypes.c_void_p), ctypes.c_int32(n), *(part.ctypes.data_as(ctypes.c_void_p) for part in found))
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    warned = ("the compiler warned: " + result.stderr.strip()[:500],) if result.stderr.strip() else ()
    leaf_numbers = leaves[:, 0] if n_trees == 1 else leaves
    return Answers(
        leaf_numbers.astype(np.int64), classes.astype(np.int64), says, (f"compiled with {version}", *warned)
    )


def driver_of(portable: Portable, written: str) -> tuple[str, str, str]:
    """The prefix of a header, a program that asks it, and the type of the values that this takes."""
    prefix = re.search(r"^int32_t (\w+)_leaf\(const (\w+) \*row", written, re.MULTILINE)
    if prefix is None:
        raise ExportError("the text must be a header that crisptree wrote; it has no function NAME_leaf.")
    name, row_type = prefix[1], prefix[2]
    made = re.search(rf"^void {name}_quantize\(const (\w+) \*features", written, re.MULTILINE)
    one = re.search(rf"^#define {name.upper()}_ONE (\d+)$", written, re.MULTILINE)
    table = re.search(rf"^void {name}_predict_proba\(.*, (\w+) \*probabilities", written, re.MULTILINE)
    words = {"name": name, "NAME": name.upper(), "row_type": row_type, "given": made[1] if made else row_type}
    words["row"] = "row" if made else "given"
    words["tree"] = ", k" if len(portable.trees) > 1 else ""
    words["one"] = f"{one[1]}.0" if one else "1.0"
    words["table_type"] = table[1] if table else "double"
    quantize = Template(QUANTIZE).substitute(words) if made else ""
    predict = CLASSES if table else "        *says++ = ${name}_predict($row);\n"
    driver = DRIVER.substitute(words, quantize=quantize, predict=Template(predict).substitute(words))
    return name, driver, words["given"]
