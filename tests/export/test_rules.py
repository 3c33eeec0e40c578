import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import crisptree
from crisptree import export
from crisptree.structure import TreeStructure
from tests.inspection.models import STRANGE, fitted, written
from tests.toys import plain_tree


def test_a_written_tree_reads_as_it_was_written():
    X = np.array([[-1, -1, 0], [-1, 2, 0], [3, 0, 0]], dtype=np.float32)
    structure = TreeStructure([1, ~0], [~2, ~1])
    model = written(structure, [[2, 0, 0], [-0.5, 1, 0.25]], [-1, 0], [0, 1, 2], X=X, y=[0, 1, 2])
    assert export.text(model, ["a", "b", "c"], terms=2) == (
        "split 0, 3 rows: a > 0.5?\n"
        "    no:  split 1, 2 rows: b − 0.5 × a + 1 more > 0?\n"
        "        no:  leaf 0, 1 row: 0 (100.0%)\n"
        "        yes: leaf 1, 1 row: 1 (100.0%)\n"
        "    yes: leaf 2, 1 row: 2 (100.0%)"
    )


def test_rules_route_rows_as_the_tree_does():
    """With all terms and nine digits a reader of the text comes to the same leaf."""
    model, X, _ = fitted(n_features=4)
    rules = export.text(model, terms=4, decimals=9).splitlines()
    for row, leaf in zip(X[:50], model.leaf_indices(X[:50]), strict=True):
        assert read(rules, row) == leaf


def read(rules, row):
    line = 0
    while "?" in rules[line]:
        rule = re.search(r"rows?: (.*)\?$", rules[line]).group(1).replace("×", "*").replace("−", "-")
        holds = eval(re.sub(r"x(\d+)", r"row[\1]", rule), {"row": row.astype(np.float64)})
        depth = len(rules[line]) - len(rules[line].lstrip())
        turn = "yes: " if holds else "no:  "
        line = next(i for i in range(line + 1, len(rules)) if rules[i].startswith(" " * (depth + 4) + turn))
    return int(re.search(r"leaf (\d+)", rules[line]).group(1))


def test_terms_are_selected_by_their_influence_in_raw_units():
    X = (np.random.default_rng(0).normal(size=(500, 3)) * [1, 1000, 1]).astype(np.float32)
    model = written(TreeStructure.stump(), [[1.0, 2.0, 0.0]], [0.0], [0, 1], X=X, scale="feature")
    line = export.text(model, terms=1).splitlines()[0]
    assert "× x1 + 1 more >" in line


def test_truncated_rules_mark_subtrees():
    model, _, _ = fitted(n_classes=6)
    lines = export.text(model, max_depth=1).splitlines()
    assert len(lines) == 3
    assert all("and below" in line for line in lines[1:])
    assert export.text(model, max_depth=0).count("\n") == 0


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"max_depth": 0}, "leaf 0, 150 rows"),
        ({"split": lambda shape: torch.nn.Linear(shape[0], 1)}, "module 0 > 0?"),
        ({"n_features": 1}, ": x0 "),
        ({"image_shape": (2, 3)}, "× pixel ("),
        ({"n_classes": 26, "max_depth": 6}, "leaf 25"),
        ({"labels": STRANGE}, "$a_b$"),
    ],
)
def test_trees_of_every_kind_have_rules(changes, holds):
    model, _, _ = fitted(**changes)
    written_down = export.text(model)
    assert holds in written_down
    assert len(written_down.splitlines()) == model.tree_.structure.n_nodes


def test_names_with_line_breaks_keep_to_one_line():
    model, _, _ = fitted(n_features=2, max_depth=1)
    assert "two lines" in export.text(model, ["two\nlines", "b"])
    assert len(export.text(model, ["two\nlines", "b\r\n"]).splitlines()) == 3


def test_wrong_arguments_are_refused_with_a_sentence():
    model, _, _ = fitted(max_depth=1)
    with pytest.raises(ValueError, match="must name all 6 features; got 2"):
        export.text(model, ["a", "b"])
    for name, values in (("terms", (-1, 1.5, "a")), ("max_depth", (-1, 0.5)), ("decimals", (0, 2.5, None))):
        for value in values:
            with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least"):
                export.text(model, **{name: value})
    with pytest.raises(ValueError, match="Call fit first"):
        export.dot(plain_tree())


def test_a_loaded_model_is_written_down_without_torch(tmp_path):
    model, _, _ = fitted(n_features=2)
    model.save(tmp_path / "m.crisp")
    code = (
        f"import crisptree, sys; model = crisptree.load({str(tmp_path / 'm.crisp')!r}); "
        "print(len(crisptree.export.text(model)), len(crisptree.export.dot(model)), 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == [str(len(export.text(model))), str(len(export.dot(model))), "False"]
    assert crisptree.export is export
