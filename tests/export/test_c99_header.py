"""What a header says and defines: where it comes from, constants, guards, and sums of any input."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crisptree
from crisptree import CrispForestClassifier, CrispTreeClassifier, export
from crisptree.export import Portable
from crisptree.export.c99 import header
from crisptree.export.c99.header import make_header, render
from crisptree.export.c99.quantization import quantize
from tests.export import programs
from tests.export.models import HOSTILE, numbers, of_numbers, of_table, skip_unless_it_runs, thresholds
from tests.golden.test_model_files import loaded
from tests.toys import plain_tree

needs_cc = pytest.mark.skipif(not programs.shutil.which("cc"), reason="needs a C compiler")


def compile_and_run(folder, main, *headers, command=("cc", "-std=c99")):
    """Output of a program of two files, which both include all headers; the second one defines nothing."""
    for name, text in headers:
        (folder / f"{name}.h").write_text(text)
    (folder / "main.c").write_text(main)
    (folder / "other.c").write_text("".join(f'#include "{name}.h"\n' for name, _ in headers) + "int other;\n")
    built = [command[0], *programs.STRICT, *command[1:], str(folder / "main.c"), str(folder / "other.c")]
    result = subprocess.run([*built, "-o", str(folder / "main")], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    done = subprocess.run([str(folder / "main")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_text_names_the_model_the_version_and_its_terms():
    model, _ = thresholds(n=100)
    identifier = Portable.of(model).model_id
    for to in ("c", "js", "sql"):
        text = export.write(model, to)
        assert f"Model {identifier}, written by crisptree {crisptree.__version__}." in text
        assert "licence of crisptree does not apply to this text" in text
        assert text == export.write(model, to)
    assert f'#define MODEL_MODEL_ID "{identifier}"' in export.c(model)
    assert f'export const modelId = "{identifier}";' in export.js(model)
    assert json.loads(export.json(model))["sections"]["provenance"]["content"]["model_id"] == identifier


def test_onnx_graphs_have_the_identifier_as_metadata():
    onnx = pytest.importorskip("onnx")
    model, _ = numbers(n=60, max_depth=1)
    graph = onnx.load_from_string(export.onnx(model))
    assert {entry.key: entry.value for entry in graph.metadata_props} == {"model_id": Portable.of(model).model_id}


@pytest.mark.parametrize("make", [numbers, thresholds, of_table, of_numbers])
def test_the_identifier_survives_saving_and_changes_with_the_model(make, tmp_path):
    model, _ = make()
    portable = Portable.of(model)
    model.save(tmp_path / "m.crisp")
    (tmp_path / "m.json").write_text(export.json(model))
    for name in ("m.crisp", "m.json"):
        assert Portable.of(crisptree.load(tmp_path / name)).model_id == portable.model_id
    (tree,) = portable.trees
    bias = tree.bias.copy()
    bias[-1] = np.nextafter(bias[-1], np.float32(9))
    columns = (replace(portable.inputs[0], fill=0.125), *portable.inputs[1:])
    others = [replace(portable, trees=(replace(tree, bias=bias),)), replace(portable, inputs=columns)]
    others += [replace(portable, classes=("other", *portable.classes[1:]))] if portable.classes else []
    assert len({portable.model_id, *(other.model_id for other in others)}) == len(others) + 1


def test_models_beyond_linear_splits_have_no_identifier():
    model = loaded("conv")
    assert Portable.of(model).model_id is None
    assert "provenance" not in json.loads(export.json(model))["sections"]


@needs_cc
def test_class_constants_are_distinct_positions(tmp_path):
    labels = ("a b", "a-b", "ü", "é", "", "1", "-1", "x" * 70, "x" * 80, *HOSTILE[:3])
    model, _ = numbers(n=100, n_classes=2, max_depth=1)
    portable = Portable.of(model)
    (tree,) = portable.trees
    tables = np.full((tree.n_leaves, len(labels)), 1 / len(labels))
    text = render(replace(portable, classes=labels, trees=(replace(tree, tables=tables),)), "m")
    constants = re.findall(r"\bM_CLASS_(\w+) = (\d+)", text)
    assert [int(position) for _, position in constants] == list(range(len(labels)))
    assert [name for name, _ in constants][:7] == ["a_b", "a_b_1", "2", "3", "4", "1", "1_6"]
    shown = "".join(f'    printf("%d ", M_CLASS_{name});\n' for name, _ in constants)
    main = (
        f'#define M_IMPLEMENTATION\n#include "m.h"\n#include <stdio.h>\nint main(void) {{\n{shown}    return 0;\n}}\n'
    )
    assert compile_and_run(tmp_path, main, ("m", text)).split() == [str(k) for k in range(len(labels))]


@needs_cc
@pytest.mark.parametrize("options", [{}, {"integer": "int16"}], ids=str)
def test_a_header_may_be_included_again_and_beside_another_one(options, tmp_path):
    texts = [
        (name, export.c(numbers(n=100, n_features=n)[0], name=name, **options)) for name, n in (("a", 3), ("b", 40))
    ]
    includes = "#define A_IMPLEMENTATION\n#define B_IMPLEMENTATION\n" + 2 * '#include "a.h"\n#include "b.h"\n'
    main = includes + '#include <stdio.h>\nint main(void) {\n    printf("%d", A_MAX_SPLITS);\n    return 0;\n}\n'
    for flags in ((), ("-DA_WITH_FLOAT", "-DB_WITH_FLOAT")):
        command = ("cc", "-std=c99", *flags)
        assert compile_and_run(tmp_path, main, *texts, command=command) == str(
            numbers(n=100, n_features=3)[0].get_depth()
        )


def test_includes_precede_all_definitions():
    for model in (numbers(n=100)[0], of_table(n=100)[0]):
        for options in ({}, {"integer": "int16"}):
            text = export.c(model, **options)
            assert text.rindex("#include") < text.index("\nstatic ")
            assert text.rindex("#include") < text.index("\nconst char *const model_classes[")


def test_max_splits_is_the_depth_summed_over_trees():
    X = np.random.default_rng(0).normal(size=(100, 3))
    forest = CrispForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(X, X[:, 0] > 0)
    depths = [tree.structure.depth for tree in forest.forest_]
    assert f"#define MODEL_MAX_SPLITS {sum(depths)}\n" in export.c(forest)


def test_integer_headers_name_the_macro_for_floats_first():
    text = export.c(numbers(n=100)[0], integer="int16")
    top = text[: text.index("*/")]
    assert "MODEL_WITH_FLOAT, defined before every include, adds model_quantize and model_encode" in top
    assert (
        "model_encode(columns, features) == 0) { model_quantize(features, row); class = model_predict(row); }" in text
    )


def test_leaves_of_the_header_and_nodes_of_apply_differ_by_the_documented_number():
    model, X = numbers(n=100)
    (number,) = re.findall(r"apply are larger by (\d+), the number of splits", export.c(model))
    np.testing.assert_array_equal(model.apply(X) - int(number), model.leaf_indices(X))


EXTREME = """
#define M_IMPLEMENTATION
#include "m.h"
#include <stdio.h>
static const {type} rows[{n}][M_N_FEATURES] = {{{rows}}};
int main(void)
{{
    int i;
    for (i = 0; i < {n}; ++i) printf("%d ", (int)m_leaf(rows[i]));
    return 0;
}}
"""


@pytest.mark.parametrize("precision", ["int8", "int16"])
@pytest.mark.parametrize(("n_features", "is_sparse"), [(4, False), (600, False), (600, True)])
def test_no_row_of_the_type_overflows_a_sum(precision, n_features, is_sparse, tmp_path):
    """The rows with the largest sums, from all values of the type, under the undefined-behaviour sanitizer."""
    skip_unless_it_runs("c")
    if not programs.can_compile(programs.COMPILERS["sanitizers"], tmp_path):
        pytest.skip("the sanitizers are not there")
    portable = Portable.of(numbers(n=200, n_features=n_features)[0])
    (tree,) = portable.trees
    if is_sparse:
        weight = np.where(np.arange(n_features) % 4 == 0, tree.weight, np.float32(0))
        portable = replace(portable, trees=(replace(tree, weight=weight),))
    trees = quantize(portable, precision)
    assert trees.clips == (precision == "int16" and n_features == 600)  # with inputs of fewer than 16 bits
    ends = np.iinfo(trees.inputs.type.removesuffix("_t"))
    rows = [np.where(side * trees.weight > 0, ends.max, ends.min) for side in (1, -1)]
    rows = np.concatenate([*rows, np.full((1, n_features), ends.min), np.full((1, n_features), ends.max)])
    inputs = np.clip(rows, trees.inputs.low, trees.inputs.high) if trees.clips else rows
    sums = inputs @ trees.weight.T + trees.bias
    assert np.abs(sums).max() <= trees.max_sum <= 2**31 - 1
    expected = portable.stacked.route(lambda split, at: sums[at, split] > 0, len(rows))[0]
    text = render(portable, "m", precision)
    assert f"No sum exceeds {trees.max_sum:,} of" in text
    assert ("m_clip" in text) == trees.clips
    assert ("m_gap" in text) == is_sparse
    values = ",\n".join("{" + ",".join(map(str, row)) + "}" for row in rows.tolist())
    main = EXTREME.format(type=trees.inputs.type, n=len(rows), rows=values)
    found = compile_and_run(tmp_path, main, ("m", text), command=programs.COMPILERS["sanitizers"])
    np.testing.assert_array_equal(list(map(int, found.split())), expected)


def test_the_flash_figure_says_what_it_includes():
    skip_unless_it_runs("c")
    model, X = numbers(n=100)
    (note,) = (note for note in export.check(model, X, "c", integer="int16").notes if "Cortex" in note)
    content = make_header(Portable.of(model), "model", "int16", "auto")
    assert f"for {header.INCLUDED}; besides {content.conversion.n_bytes:,} bytes of tables" in note
    assert content.conversion.n_bytes == 3 * 4 * 40  # offset, factor and mean of every feature


@needs_cc
@pytest.mark.parametrize("split", ["oblique", "axis"])
@pytest.mark.parametrize("seed", [0, 3])
def test_raw_counts_of_sensors_need_no_floats(split, seed):
    rng = np.random.default_rng(seed)
    base, spread = rng.integers(200, 3500, 8), rng.integers(20, 400, 8)
    X = np.clip(np.rint(base + spread * rng.normal(size=(3000, 8))), 0, 4095)
    Z = (X - base) / spread
    y = Z[:, :3].sum(axis=1) + Z[:, 3] * Z[:, 4] > 0
    model = CrispTreeClassifier(max_depth=6, leaf_model="constant", split=split, random_state=0)
    model.fit(X[:2000], y[:2000])
    text = export.c(model, integer="int16")
    assert "void model_quantize(const int32_t *features, int16_t *row);" in text
    assert not re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    assert export.check(model, X[2000:], "c", integer="int16").equal_leaves >= 998


PAGE = Path(__file__).parents[2] / "docs" / "guide" / "export" / "c.md"


@needs_cc
def test_programs_of_the_guide_compile_and_run(tmp_path):
    """Its C examples in their order: rows from a file, numbers, a table, counts of sensors."""
    X = np.random.default_rng(0).integers(0, 17, (200, 4))
    labels = np.where(X[:, 0] > 8, "setosa", "other")
    numeric = plain_tree(max_depth=2, random_state=0).fit(X.astype(float), labels)
    of_bytes = export.c(numeric, name="digits", integer="int8", inputs="plain")
    of_counts = export.c(numeric, integer="int16", inputs="scaled")
    texts = [
        ("digits", of_bytes),
        *(("model", text) for text in (export.c(numeric), export.c(of_table()[0]), of_counts)),
    ]
    programs_of_page = re.findall(r"^```c\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(programs_of_page) == len(texts)
    for number, (program, header_text) in enumerate(zip(programs_of_page, texts, strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{header_text[0]}.h").write_text(header_text[1])
        (folder / "main.c").write_text(program + ("" if "main" in program else "\nint main(void) { return 0; }\n"))
        command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", str(folder / "main.c")]
        built = subprocess.run([*command, "-o", str(folder / "main")], capture_output=True, text=True, check=False)
        assert (built.returncode, built.stderr) == (0, "")
        rows = X[:5].astype(np.uint8).tobytes()
        done = subprocess.run([str(folder / "main")], input=rows, capture_output=True, check=False)
        assert done.returncode == 0
        if number == 0:
            assert done.stdout.decode().split() == numeric.predict(X[:5].astype(float)).tolist()
