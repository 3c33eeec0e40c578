"""Running of a written header: it is compiled with the system's compiler, loaded, and called."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.c99.header import INCLUDED, DeviceCost, make_header
from crisptree.export.c99.source import fill
from crisptree.export.formats import EncodedRows, Predictions
from crisptree.export.portable import ExportError, Portable

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-O1", "-shared", "-fPIC")

DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "uint8_t": np.uint8,
    "int8_t": np.int8,
    "int16_t": np.int16,
    "int32_t": np.int32,
}


@dataclass(frozen=True)
class ParsedHeader:
    """Names, types and options of a written header."""

    name: str
    row_type: str
    quantizes: str | None
    encodes: bool
    table_type: str | None
    many: bool
    one: str
    integer: str | None
    inputs: str

    @classmethod
    def of(cls, text: str) -> ParsedHeader:
        """Parse a header."""
        leaf = re.search(r"^int32_t (\w+)_leaf\(const (\w+) \*row", text, re.MULTILINE)
        if leaf is None:
            raise ExportError("the text must be a header that crisptree wrote; it has no function NAME_leaf.")
        name = leaf[1]

        def search(pattern: str) -> str | None:
            match = re.search(pattern, text, re.MULTILINE)
            return None if match is None else match[1]

        return cls(
            name,
            leaf[2],
            search(rf"^void {name}_quantize\(const (\w+) \*features"),
            f"int32_t {name}_encode(" in text,
            search(rf"^void {name}_predict_proba\(.*, (\w+) \*probabilities"),
            f"void {name}_predict(" in text,
            search(rf"^#define {name.upper()}_ONE (\d+)$") or "1",
            search(r"^ \* Options: integer=(\w+)"),
            search(r"^ \* Options: .*inputs=(\w+)") or "auto",
        )

    @property
    def input_type(self) -> str:
        """Type of the values of an input row."""
        return "double" if self.encodes else self.quantizes or self.row_type

    def driver(self, n_trees: int) -> str:
        """Write a function that predicts many rows."""
        features = "features" if self.encodes else "values"
        words = {"name": self.name, "row_type": self.row_type, "input_type": self.input_type}
        words |= {"features": features, "row": "row" if self.quantizes else features, "one": f"{self.one}.0"}
        words |= {"table_type": self.table_type or "double", "tree": ", k" if n_trees > 1 else ""}
        words["width"] = "N_COLUMNS" if self.encodes else "N_FEATURES"
        prepare = ["DRIVER_ENCODE"] * self.encodes + ["DRIVER_QUANTIZE"] * (self.quantizes is not None)
        predict = "DRIVER_CLASSES" if self.table_type else "DRIVER_VALUES" if self.many else "DRIVER_VALUE"
        return fill("DRIVER", prepare=fill(*prepare, **words), predict=fill(predict, **words), **words)


def find_compiler() -> str:
    """Find the command of a C compiler: $CC, or the first that is installed."""
    for command in (os.environ.get("CC", ""), *COMPILERS):
        if command and shutil.which(command):
            return command
    raise ExportError(
        f"a check of C needs a compiler; none of {', '.join(COMPILERS)} is installed. Install one, or set CC."
    )


def run(portable: Portable, written: str, rows: EncodedRows) -> Predictions:
    """Predict rows with the header, whose own functions encode columns and quantize features."""
    header, n = ParsedHeader.of(written), len(rows)
    command = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / f"{header.name}.h").write_text(written, encoding="ascii")
        (root / "driver.c").write_text(header.driver(len(portable.trees)), encoding="ascii")
        arguments = [command, *FLAGS, str(root / "driver.c"), "-o", str(root / "driver.so")]
        result = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ExportError(f"{command} must compile the header; it reports: {result.stderr.strip()[:2000]}")
        library = ctypes.CDLL(str(root / "driver.so"))
    inputs: npt.NDArray[Any]
    if header.encodes:
        inputs = _convert_columns(portable, rows, header, library)
    else:
        inputs = _convert_rows(portable, rows, header)
    leaves, classes = np.full((n, len(portable.trees)), -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    outputs = np.full((n, portable.n_outputs), np.nan)
    arrays = [np.ascontiguousarray(inputs), leaves, classes, outputs]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    refused = library.crisptree_predict_rows(pointers[0], ctypes.c_int32(n), *pointers[1:])
    if refused:
        raise ExportError(f"the header refuses a row for its column {portable.inputs[refused - 1].name!r}.")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
    notes = [_cost_note(portable, header, leaves.astype(np.int64)), f"compiled with {version.partition(chr(10))[0]}"]
    if result.stderr.strip():
        notes.append(f"the compiler warns: {result.stderr.strip()[:500]}")
    return Predictions(leaves.astype(np.int64), outputs, classes.astype(np.int64), tuple(notes), header.integer is None)


def _convert_rows(portable: Portable, rows: EncodedRows, header: ParsedHeader) -> npt.NDArray[Any]:
    """Convert rows to the type of the header, if that can hold them."""
    X = rows.unfilled(portable)
    missing = np.isnan(X).any(axis=1)
    if missing.any():
        raise ExportError(
            f"the export cannot fill missing values: its inputs are {header.input_type}, which has none; row "
            f"{missing.argmax()}, counted from 0, has one. Leave such rows out, or export with floating point."
        )
    with np.errstate(invalid="ignore"):
        inputs = X.astype(DTYPES[header.input_type])
    differs = (inputs != X).any(axis=1)
    if differs.any():
        raise ExportError(
            f"rows must be whole numbers that {header.input_type} holds, as all of training were; row "
            f"{differs.argmax()}, counted from 0, is not. Use inputs='scaled', leave such rows out, or export with "
            "floating point."
        )
    return inputs


def _convert_columns(
    portable: Portable, rows: EncodedRows, header: ParsedHeader, library: Any
) -> npt.NDArray[np.float64]:
    """Convert the columns of a table to numbers; categories by the header's function.  (n, n_columns)"""
    table = np.empty((len(rows), len(portable.inputs)))
    for index, column in enumerate(portable.inputs):
        values = rows.columns[column.name]
        if column.kind == "category":
            encode = getattr(library, f"{header.name}_category")
            texts = {value: str(value).encode("utf-8", "surrogatepass") for value in values if value is not None}
            codes = {value: encode(ctypes.c_int32(index), ctypes.c_char_p(text)) for value, text in texts.items()}
            table[:, index] = [np.nan if value is None else codes[value] for value in values]
        else:
            table[:, index] = [np.nan if value is None else float(value) for value in values]
    return table


def _cost_note(portable: Portable, header: ParsedHeader, leaves: npt.NDArray[np.int64]) -> str:
    """Describe program memory, stack and multiply-adds, the latter for these rows."""
    content = make_header(portable, header.name, header.integer, header.inputs)
    costs, trees = DeviceCost.of(portable, content), content.trees
    by_leaf = trees.path_costs(content.costs)
    mean = by_leaf[leaves + trees.first_leaf].sum(axis=1).mean() if len(leaves) else 0.0
    mean += trees.linear_cost
    n_bytes = content.conversion.n_bytes
    functions = " and ".join(["encode"] * header.encodes + ["quantize"] * (header.quantizes is not None))
    more = f"; besides {n_bytes:,} bytes of tables, and code, of {functions}" if n_bytes else ""
    return (
        f"on a Cortex-M0 at most {costs.flash:,} bytes of flash and {costs.stack:,} bytes of stack for {INCLUDED}{more}"
        f"; {mean:,.1f} multiply-adds a row, at worst {costs.worst:,}"
    )
