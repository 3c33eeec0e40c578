"""Drawings against stored pictures, square by square; ``drawings.py`` says how they are made."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PatchCollection, PolyCollection

from tests.plots.drawings import BASELINE, DRAWINGS, TOLERANCE, drawn, pixels, stored, worst_square


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_looks_as_it_did(name):
    assert worst_square(pixels(drawn(name)), stored(name)) < TOLERANCE


def bars(ax):
    return [one for one in ax.collections if isinstance(one, PatchCollection) and one.get_label() == "bars"]


def arrows(ax):
    return next(one for one in ax.collections if isinstance(one, PolyCollection) and one.get_label() == "arrows")


def without_the_largest_bar_of_a_leaf(ax):
    paths = bars(ax)[0].get_paths()
    tallest = max(paths, key=lambda path: np.ptp(path.vertices[:, 1]))
    tallest.vertices[:] = 0


def without_one_arrow(ax):
    arrows(ax).get_paths()[2].vertices[:] = 0


def with_thicker_arrows(ax):
    arrows(ax).set(linewidth=8, edgecolor=arrows(ax).get_facecolor())


def without_one_picture(ax):
    ax.images[1].remove()


def without_one_line(ax):
    lines = next(one for one in ax.collections if one.get_label() == "splits")
    lines.set_segments(lines.get_segments()[:-1])


def with_another_cell(ax):
    cells = next(one for one in ax.collections if one.get_label() == "cells")
    cells.set_facecolor([*cells.get_facecolor()[:-1], (1.0, 1.0, 1.0, 1.0)])


def without_one_patch(ax):
    ax.patches[0].remove()


def without_a_curve(ax):
    ax.lines[-1].remove()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("tree-images", without_the_largest_bar_of_a_leaf),
        ("tree-images", without_one_arrow),
        ("tree-images", with_thicker_arrows),
        ("tree-images", without_one_picture),
        ("tree-table", without_one_arrow),
        ("tree-table", without_the_largest_bar_of_a_leaf),
        ("weights-table", without_one_patch),
        ("regions", without_one_line),
        ("regions", with_another_cell),
        ("training", without_a_curve),
        ("choices", without_a_curve),
    ],
)
def test_a_missing_part_is_seen(name, damage):
    ax = drawn(name)
    damage(ax)
    assert worst_square(pixels(ax), stored(name)) > TOLERANCE


def test_pictures_are_few_and_small():
    files = sorted(BASELINE.glob("*.png"))
    assert {file.stem for file in files} == set(DRAWINGS)
    assert max(file.stat().st_size for file in files) < 40_000


def test_a_picture_of_another_size_is_another_picture():
    assert worst_square(np.zeros((10, 10, 3)), np.zeros((10, 12, 3))) == np.inf
    assert worst_square(np.zeros((10, 10, 3)), np.zeros((10, 10, 3))) == 0
    plt.close("all")
