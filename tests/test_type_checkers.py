import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import crisptree
from tests.typing import user_program

ROOT = Path(__file__).parents[1]
ESTIMATORS = [
    crisptree.CrispTreeClassifier,
    crisptree.CrispTreeRegressor,
    crisptree.CrispForestClassifier,
    crisptree.CrispForestRegressor,
    crisptree.CrispSegmenter,
    crisptree.CrispPixelRegressor,
]


@pytest.mark.slow  # a minute without a cache; `make check` and `make test` run the same commands
@pytest.mark.parametrize(
    ("checker", "arguments"), [("mypy", ["tests/typing"]), ("pyright", ["--pythonpath", sys.executable])]
)
def test_a_type_checker_accepts_the_program_and_sees_every_mistake(checker, arguments):
    pytest.importorskip(checker)
    command = [sys.executable, "-m", checker, *arguments]
    quiet = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # that there is a newer version
    found = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_program_runs(tmp_path):
    user_program.main(tmp_path)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_program_uses_every_documented_attribute(estimator):
    described = inspect.getdoc(estimator).split("Attributes\n")[1].split("Examples\n")[0]
    names = re.findall(r"\b\w+_\b", "\n".join(re.findall(r"^\w.*$", described, re.M)))
    assert len(names) > 5
    program = inspect.getsource(user_program)
    assert [name for name in names if f".{name}" not in program] == []
