import pytest
from experiments.run import main
from experiments.store import store_of

TINY = """
data = "digits"
title = "Tiny"
depths = [1, 2]

[ours]
algorithms = ["em", "alternating"]
stages = ["greedy", "finetuned", "continued"]
seeds = [3, 4]
epochs = [1, 2]
choice_seeds = [3, 5]

[baselines]
methods = ["axis_aligned", "co2", "non_greedy"]
seeds = [0]
epochs = 1
nus = [1, 100]
rates = [0.02, 0.002]
time_cap = 10_000

[soft]
seeds = [0]
epochs = 1
max_depth = 1
time_cap = 10_000
"""


@pytest.fixture
def tiny(tmp_path):
    """A configuration of seconds, and a function that runs it in a folder of its own."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)

    def run(*arguments):
        places = ["--results", str(tmp_path / "results"), "--trees", str(tmp_path / "trees")]
        return main([str(path), *places, "--device", "cpu", "--commit", "abc", *arguments])

    run.path, run.results = path, tmp_path / "results"
    run.store = store_of("paper", run.results, "digits")
    return run
