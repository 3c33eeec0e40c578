"""Missing numbers that training did not have: exports fill them with the means of training, as ``predict`` does."""

import subprocess
import warnings

import numpy as np
import pytest

from crisptree import export
from crisptree.export import ExportError, Portable
from crisptree.export.c99.runner import ParsedHeader
from tests.cli.running import QUICK, done, run
from tests.export.models import numbers, skip_unless_it_runs, thresholds
from tests.toys import plain_tree

pytestmark = pytest.mark.filterwarnings("ignore:.*missing values?, none in training")


@pytest.fixture(scope="module")
def model_with_gaps():
    model, X = numbers(n=200, n_features=6)
    X = X.astype(np.float64)
    X[::3, 1] = np.nan
    X[1::4, :2] = np.nan
    filled = np.where(np.isnan(X), np.float32([column.fill for column in Portable.of(model).inputs]), X)
    assert (model.predict(filled) == model.predict(X)).all()
    assert (model.leaf_indices(np.nan_to_num(X)) != model.leaf_indices(X)).any()  # another filling is noticed
    return model, X


EXPORTS = [("c", {}), ("c", {"integer": "int16"}), ("onnx", {}), ("onnx", {"form": "paths"}), ("js", {}), ("sql", {})]


@pytest.mark.parametrize(("to", "options"), [*EXPORTS, ("json", {})], ids=str)
def test_an_export_fills_missing_numbers_as_predict_does(model_with_gaps, to, options):
    skip_unless_it_runs(to)
    model, X = model_with_gaps
    agreement = export.check(model, X, to, **options)
    assert agreement.equal_leaves >= agreement.rows - (1 if options.get("integer") else 0)
    assert agreement.holds


def test_sklearn_trees_fill_missing_numbers_too():
    model, X = thresholds(n=200)
    X = X.copy()
    X[::3] = np.nan
    agreement = export.check(model, X, "sklearn")
    assert agreement.equal_leaves == agreement.rows


def test_onnx_run_by_a_program_fills_raw_rows(model_with_gaps):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, X = model_with_gaps
    session = onnxruntime.InferenceSession(export.onnx(model), providers=["CPUExecutionProvider"])
    (leaves,) = session.run(["leaf"], {"X": X.astype(np.float32)})
    np.testing.assert_array_equal(leaves, model.leaf_indices(X))


PROGRAM = """
#define M_IMPLEMENTATION
#include "m.h"
#include <stdio.h>
int main(void) {
    double columns[M_N_COLUMNS];
    float row[M_N_FEATURES];
    int i;
    while (1) {
        for (i = 0; i < M_N_COLUMNS; ++i) if (scanf("%lf", &columns[i]) != 1) return 0;
        if (m_encode(columns, row) != 0) return 1;
        printf("%d\\n", (int)m_leaf(row));
    }
}
"""


def test_a_c_program_that_calls_encode_gets_the_leaves_of_predict(model_with_gaps, tmp_path):
    skip_unless_it_runs("c")
    model, X = model_with_gaps
    (tmp_path / "m.h").write_text(export.c(model, name="m"))
    (tmp_path / "main.c").write_text(PROGRAM)
    built = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([*built, str(tmp_path / "main.c"), "-o", str(tmp_path / "main")], check=True)
    rows = "\n".join(" ".join(map(repr, row)) for row in X.tolist())
    result = subprocess.run([str(tmp_path / "main")], input=rows, capture_output=True, text=True, check=True)
    np.testing.assert_array_equal(list(map(int, result.stdout.split())), model.leaf_indices(X))


def test_integer_inputs_cannot_hold_missing_values_and_a_check_says_so():
    skip_unless_it_runs("c")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (200, 5))
    model = plain_tree(max_depth=3, random_state=0).fit(X.astype(np.float32), X[:, 0] + X[:, 1] > 200)
    assert ParsedHeader.of(export.c(model, integer="int8")).row_type == "uint8_t"
    gaps = X.astype(np.float64)
    gaps[3, 0] = np.nan
    for inputs in ("plain", "scaled"):
        with pytest.raises(ExportError, match=r"cannot fill missing values: its inputs are u?int.*row 3"):
            export.check(model, gaps, "c", integer="int8", inputs=inputs)


def test_a_model_that_refuses_missing_values_has_no_encoder():
    X = np.random.default_rng(0).normal(size=(100, 3))
    strict = plain_tree(max_depth=2, random_state=0, categorical_features=None).fit(X, X[:, 0] > 0)
    assert not Portable.of(strict).fills
    assert "_encode(" not in export.c(strict)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="NaN"):
        export.check(strict, np.full((2, 3), np.nan), "json")


@pytest.mark.parametrize("to", ["c", "onnx", "js", "sql"])
def test_the_command_compares_rows_with_gaps_through_the_functions_of_the_export(to, tmp_path):
    skip_unless_it_runs(to)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    texts = [[f"{value:.4f}" for value in row] for row in X]

    def write(name, rows):
        lines = [",".join([*row, str(label)]) for row, label in zip(rows, y, strict=True)]
        (tmp_path / name).write_text("\n".join(["a,b,c,y", *lines]))

    write("train.csv", texts)
    write("gaps.csv", [["", *row[1:]] if number % 3 == 0 else row for number, row in enumerate(texts)])
    done("fit", tmp_path / "train.csv", "--target", "y", "-o", tmp_path / "m.crisp", *QUICK)
    ending = {"c": "h", "onnx": "onnx", "js": "mjs", "sql": "sql"}[to]
    result = run(
        "export", tmp_path / "m.crisp", "--to", to, "-o", tmp_path / f"m.{ending}", "--check", tmp_path / "gaps.csv"
    )
    assert result.exit_code == 0, result.text
    assert "200 of 200 rows reach the same leaf" in result.text
