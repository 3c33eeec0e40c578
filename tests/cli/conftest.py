from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.cli.running import QUICK, done
from tests.encoding.writers import customers, write


@pytest.fixture(autouse=True)
def _a_wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A table with every kind of column, an identifier among them, and a model of it."""
    folder = tmp_path_factory.mktemp("a shop, ü")
    table = customers(160)
    table = table.add_column(0, "id", pa.array([f"r{row}" for row in range(len(table))]))
    csv, parquet = write(table, folder / "täble 1.csv"), write(table, folder / "table.parquet")
    model = folder / "shöp model.crisp"
    done("fit", csv, "--target", "buys", "--drop", "id", "-o", model, *QUICK)
    return SimpleNamespace(folder=folder, table=table, csv=csv, parquet=parquet, model=model)
