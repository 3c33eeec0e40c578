"""One table, written in every format."""

from __future__ import annotations

import bz2
import gzip
import lzma
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

PACK = {".gz": partial(gzip.compress, mtime=0), ".bz2": bz2.compress, ".xz": lzma.compress}


def customers(n: int = 160, seed: int = 0) -> pa.Table:
    """Numbers with holes, a category with holes, booleans; whether a customer buys follows from all of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    income = rng.lognormal(10, 0.5, n).round(2)
    color = rng.choice(np.array(["rot", "grün", "blue green"], dtype=object), n)
    member = rng.random(n) < 0.4
    score = income / 2e4 + 1.5 * (color == "rot") + member - age / 40
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(n) < 0.1),
            "income": income,
            "color": pa.array(color, pa.string(), mask=rng.random(n) < 0.05),
            "member": member,
            "buys": np.where(score > np.median(score), "yes", "no").astype(object),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """By the ending of the name."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
        return path
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink)
    data = sink.getvalue().to_pybytes()
    path.write_bytes(PACK[path.suffix](data) if path.suffix in PACK else data)
    return path


def text(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
