"""Process groups of 1, 2 and 3 processes train the model of the record, ``process_groups.json``, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden import process_groups
from tests.golden.test_fits import check_same, machine

RECORD = Path(__file__).parent / "process_groups.json"


def make_record() -> dict[str, Any]:
    return {"machine": machine(), "fits": process_groups.run()[1][0]}


def test_groups_of_any_size_train_the_models_of_the_record():
    """One test, so that the processes are started once whatever the number of pytest's workers."""
    record = json.loads(RECORD.read_text())
    groups = process_groups.run()
    assert list(record["fits"]) == list(process_groups.CASES)
    for name, before in record["fits"].items():
        alone = groups[1][0][name]
        check_same(alone, before, record["machine"] == machine())
        for size, models in groups.items():
            assert [model[name] for model in models] == size * [alone], name
