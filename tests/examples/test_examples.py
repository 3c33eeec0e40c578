"""Every example runs by itself, warns of nothing and draws something."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
QUICK = {"plot_tabular.py"}

RUNNER = """
import runpy, sys
import matplotlib.pyplot as plt
runpy.run_path(sys.argv[1], run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).canvas.draw()
print("figures:", len(plt.get_fignums()))
"""


def run(example, folder, **environment):
    """What the example prints, run in an empty folder, or in its own where it reads a table from there."""
    settings = {**os.environ, "MPLBACKEND": "agg", **environment}
    command = [sys.executable, "-W", "error", "-c", RUNNER, str(example)]
    place = example.parent if "data/" in example.read_text(encoding="utf-8") else folder
    before = sorted(place.rglob("*"))
    result = subprocess.run(command, capture_output=True, text=True, cwd=place, env=settings, timeout=300)
    assert result.returncode == 0, result.stderr
    assert sorted(place.rglob("*")) == before  # nothing is written
    return result.stdout


def figures(printed):
    return int(printed.rsplit("figures:", 1)[1])


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.name in QUICK], ids=lambda path: path.stem)
def test_a_quick_example_runs_and_draws(example, tmp_path):
    assert figures(run(example, tmp_path)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_and_draws(example, tmp_path):
    assert figures(run(example, tmp_path)) > 0


@pytest.mark.slow
def test_without_data_the_digits_take_the_place_of_the_real_images(tmp_path):
    empty, work = tmp_path / "none", tmp_path / "work"
    empty.mkdir()
    work.mkdir()
    example = next(e for e in EXAMPLES if e.name == "plot_supplement_trees.py")
    places = {"CRISPTREE_DATA": str(empty), "XDG_CACHE_HOME": str(empty), "HOME": str(empty)}
    printed = run(example, work, **places)
    assert printed.count("the digits instead") == 2
    assert figures(printed) == 2


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_opens_with_a_title_and_uses_the_public_names_only(example):
    lines = example.read_text().splitlines()
    assert lines[0] == '"""'
    assert lines[2] == "=" * len(lines[1])
    imports = [line for line in lines if line.startswith("from crisptree")]
    assert imports
    assert all(line.split()[1] in {"crisptree", "crisptree.datasets", "crisptree.plots"} for line in imports)
    assert "plt.show()" in lines


def test_the_pictures_of_the_documentation_come_from_examples():
    source = (Path(__file__).parents[2] / "docs" / "pictures.py").read_text()
    assert set(re.findall(r'"(plot_\w+)"', source)) <= {example.stem for example in EXAMPLES}
