"""How much memory a process may use."""

import math

import pytest

from crisptree.limits import control_group_limit, usable_memory

GROUPS = {
    "a container of today": ("0::/\n", {"memory.max": "2000\n"}, 2000),
    "a service": ("0::/system.slice/fit.service\n", {"system.slice/fit.service/memory.max": "3000"}, 3000),
    "a parent that allows less": (
        "0::/jobs/fit\n",
        {"jobs/fit/memory.max": "max", "jobs/memory.max": "700", "jobs/fit/memory.high": "900"},
        700,
    ),
    "a container that does not see its own path": ("0::/docker/ab\n", {"memory.max": "600"}, 600),
    "no limit": ("0::/\n", {"memory.max": "max\n"}, math.inf),
    "no groups": (None, {}, math.inf),
}


@pytest.mark.parametrize("name", GROUPS)
def test_the_least_limit_of_all_control_groups_counts(name, tmp_path):
    said, files, limit = GROUPS[name]
    process, root = tmp_path / "cgroup", tmp_path / "root"
    if said is not None:
        process.write_text(said)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    assert control_group_limit(root, process) == limit


def test_some_memory_is_usable_here():
    assert usable_memory() > 2**20
