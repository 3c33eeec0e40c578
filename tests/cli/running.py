"""Run the command in this process."""

import math
import os
from itertools import pairwise
from unittest import mock

from typer.testing import CliRunner

from crisptree.cli.app import app

QUICK = ("--depth", "2", "--epochs", "2", "--finetune-epochs", "2", *["--split", "oblique", "--algorithm", "em"])
QUICK += ("--l1", "0", "--input-noise", "0", "--shrinkage", "0", "--holdout", "0")
FOREST_QUICK = (*QUICK[:-4], *QUICK[-2:])
"""Forests have no shrinkage."""


def run(*arguments, stdin=None):
    """Run the command as ``CliRunner.invoke`` does; ``text`` of the result is its output with single spaces.

    Progress lines are off: whether one is printed depends on how long the command takes.
    """
    with mock.patch("crisptree.pipeline.monitoring.SECONDS_BETWEEN_LINES", math.inf):
        result = CliRunner().invoke(app, _without_overruled([str(argument) for argument in arguments]), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    result.text = " ".join(result.output.split())
    return result


def _without_overruled(arguments):
    """Remove flags of ``QUICK`` that a test sets itself."""
    for flag, value in zip(QUICK[::2], QUICK[1::2], strict=True):
        if arguments.count(flag) > 1:
            ours = next(place for place, pair in enumerate(pairwise(arguments)) if pair == (flag, value))
            del arguments[ours : ours + 2]
    return arguments


def done(*arguments, stdin=None):
    """Run a command that must succeed."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.text
    return result


def with_path(folder):
    """Return the environment of a process that looks for modules in a folder first."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}
