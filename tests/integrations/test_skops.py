"""skops stores fitted estimators of every kind, and needs no more trust than the public list."""

from importlib import import_module

import numpy as np
import pytest

import crisptree
from tests.every_kind import FITS, QUICK, Data

KINDS = [name for name in FITS if name != "conv"]


def test_trusted_types_exist():
    for name in crisptree.skops_trusted_types():
        module, _, kind = name.rpartition(".")
        assert hasattr(import_module(module), kind), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "table"])
def test_skops_restores_a_model_with_the_trusted_types(kind):
    skops_io = pytest.importorskip("skops.io", reason="needs skops")
    data = Data.of(200, 4)
    if kind == "table":
        pandas = pytest.importorskip("pandas")
        rows = pandas.DataFrame({"number": data.X[:, 0], "word": np.where(data.X[:, 1] > 0, "up", "down")})
        rows.loc[3, "number"] = np.nan
        model = crisptree.CrispTreeClassifier.from_flat(**QUICK).fit(rows, data.y)
    else:
        model = FITS[kind](data, **QUICK)
        rows = data.picture if kind in ("segmenter", "pixel regressor") else data.X
    stored = skops_io.dumps(model)
    restored = skops_io.loads(stored, trusted=crisptree.skops_trusted_types())
    np.testing.assert_array_equal(restored.predict(rows), model.predict(rows))
