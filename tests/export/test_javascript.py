import json
import re
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

from crisptree import export
from crisptree.export import ExportError, Portable
from crisptree.inference.flat_tree import LANES
from tests.export.models import HOSTILE, HOSTILE_COLUMNS, numbers, of_table, rough_rows, thresholds

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

MODELS = {
    "hyperplanes": numbers,
    "many features": lambda: numbers(n=200, n_features=333, n_classes=3),
    "few of them used": lambda: numbers(n=200, n_features=100, n_classes=3, max_features_per_split=5),
    "thresholds": thresholds,
    "a single leaf": lambda: numbers(n=60, max_depth=0),
    "whole numbers": lambda: thresholds(labels=[-5, 3, 2**60, 7]),
}


@cache
def made(kind):
    return MODELS[kind]()


def data_in(text):
    """The model in the module's text, without JavaScript."""
    (literal,) = re.findall(r"^const MODEL = (\{.*?^\});$", text, flags=re.S | re.M)
    strings = []

    def kept(match):
        strings.append(match[0])
        return f'"@{len(strings) - 1}@"'

    literal = re.sub(r'"(?:[^"\\]|\\.)*"', kept, literal)
    literal = re.sub(r"new \w+Array\((\[.*?\])\)", r"\1", literal)
    literal = re.sub(r"([,{[]\s*)(\w+):", r'\1"\2":', literal)
    literal = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"(\d)n\b", r"\1", literal))
    return json.loads(re.sub(r'"@(\d+)@"', lambda match: strings[int(match[1])], literal))


def leaf_by(spec, row):
    """The leaf that the data of the module lead to, by the rule of its comments."""
    (tree,) = spec["trees"]
    child = 0 if tree["left"] else -1
    while child >= 0:
        index, weight = tree["index"], np.array(tree["weight"], np.float32)
        if index is None:
            used, weight = range(len(row)), weight.reshape(-1, len(row))[child]
        else:
            part = slice(tree["start"][child], tree["start"][child + 1])
            used, weight = index[part], weight[part]
        lanes = np.zeros(LANES, np.float32)
        for j, w in zip(used, weight, strict=True):
            lanes[j % LANES] += row[j] * w
        while len(lanes) > 1:
            lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
        score = lanes[0] + np.float32(tree["bias"][child])
        child = tree["right"][child] if score > 0 else tree["left"][child]
    return -child - 1


@pytest.mark.parametrize("kind", MODELS)
def test_the_data_of_a_module_lead_every_row_to_its_leaf(kind):
    model, X = made(kind)
    spec = data_in(export.js(model))
    assert [leaf_by(spec, row) for row in X[:40]] == model.leaf_indices(X[:40]).tolist()
    assert spec["classes"] == model.classes_.tolist()


def test_the_data_of_a_module_name_columns_as_the_user_wrote_them():
    model, _ = of_table(names=HOSTILE_COLUMNS[4:8], levels=HOSTILE[:3], labels=HOSTILE[:2])
    text = export.js(model)
    spec, portable = data_in(text), Portable.of(model)
    assert [column["name"] for column in spec["columns"]] == list(HOSTILE_COLUMNS[4:8])
    assert [tuple(column["categories"]) for column in spec["columns"]] == [c.categories for c in portable.inputs]
    assert spec["classes"] == list(portable.classes)
    assert text.isascii()
    assert "</script" not in text


@needs_node
@pytest.mark.parametrize("kind", MODELS)
def test_node_reaches_the_same_leaf_on_every_row(kind):
    model, _ = made(kind)
    rows = rough_rows(model, min(2000, 100_000 // model.tree_.n_features))
    agreement = export.check(model, rows, "js")
    assert agreement.equal_leaves == agreement.equal_classes == agreement.rows == len(rows)
    assert agreement.largest_difference == 0


@needs_node
def test_node_encodes_tables_as_the_encoder_does():
    for names, labels in ((("age", "income", "plan", "member"), None), (HOSTILE[:4], HOSTILE[:2])):
        model, columns = of_table(names=names, levels=("basic", HOSTILE[1], "1"), labels=labels)
        agreement = export.check(model, columns, "js")
        assert agreement.equal_leaves == agreement.equal_classes == agreement.rows == 400
    odd = {name: list(values) for name, values in zip(names, zip(*ODD_ROWS, strict=True), strict=True)}
    assert asked(model, [dict(zip(names, row, strict=True)) for row in ODD_ROWS]) == [
        int(leaf) for leaf in model.leaf_indices({name: np.array(values, dtype=object) for name, values in odd.items()})
    ]


ODD_ROWS = [
    (None, 3000.0, " basic ", True),
    (41, 2000, 1.0, False),
    (41, 2000, 1, False),
    (30.5, 1e-3, "1.0", True),
    (30.5, 5000, "nan", True),
    (30.5, 5000, "", False),
    (float("nan"), 5000, None, True),
]


def asked(model, rows, what="rows.map((row) => model.leaf(row))"):
    """What a script of Node.js says of rows."""
    script = f"const rows = {json.dumps(rows)};\nconsole.log(JSON.stringify({what}));\n"
    text = export.js(model).replace("export const {", "const {").replace("export const ", "const ")
    text += "const model = { predict, predictProba, leaf, leaves };\n" + script
    run = subprocess.run(["node", "--input-type=module", "-e", text], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


@needs_node
def test_rows_come_by_name_by_place_and_as_typed_arrays():
    model, X = numbers(n=60, n_features=3)
    rows = X[:5].astype(float).tolist()
    expected = model.leaf_indices(X[:5]).tolist()
    named = [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in rows]
    assert asked(model, rows) == asked(model, named) == expected
    assert asked(model, rows, "rows.map((row) => leaf(new Float32Array(row)))") == expected


@needs_node
@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"x0": 1, "x1": 2}, 'must have the column "x2"'),
        ([1, 2], "must have 3 columns; got 2"),
        ([1, 2, "three"], 'column "x2" must hold a finite number; got three'),
        ([1, 2, 1e39], 'column "x2" must hold a finite number'),
    ],
)
def test_wrong_rows_are_refused_with_a_sentence(row, says):
    model, _ = numbers(n=60, n_features=3)
    with pytest.raises(RuntimeError, match=re.escape(says)):
        asked(model, [row])


def test_a_check_needs_node(monkeypatch):
    model, X = numbers(n=60, n_features=3)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ExportError, match=r"Node\.js must be installed"):
        export.check(model, X, "js")
