import ctypes
import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from crisptree import export
from crisptree.export import ExportError, Portable
from crisptree.export.c99 import render, run
from crisptree.export.c99.header import DeviceCost, make_header
from crisptree.export.c99.quantization import quantize
from crisptree.export.formats import encode_rows
from crisptree.structure import TreeStructure
from tests.export import programs
from tests.export.models import HOSTILE, HOSTILE_COLUMNS, numbers, of_table, rough_rows, thresholds
from tests.toys import plain_tree

pytestmark = pytest.mark.skipif(not programs.shutil.which("cc"), reason="needs a C compiler")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    quick = {"max_depth": 5, "epochs": 3, "finetune_epochs": 3, "random_state": 0}
    return plain_tree(**quick).fit(X, y), X.astype(np.float32)


@pytest.fixture(scope="module")
def oblique():
    model, _ = numbers(n_features=40, labels=HOSTILE[:4])
    return model, rough_rows(model, 5000)


@pytest.fixture(scope="module")
def axis():
    model, _ = thresholds()
    return model, rough_rows(model, 5000)


@pytest.mark.parametrize("name", ["oblique", "axis"])
def test_every_row_reaches_the_same_leaf_and_gets_the_same_probabilities(name, request):
    model, X = request.getfixturevalue(name)
    found = export.check(model, X, "c")
    assert found.equal_leaves == found.equal_classes == found.rows
    assert found.largest_difference == 0
    assert not any("warns" in note for note in found.notes)


@pytest.mark.parametrize("n_features", [1, 3, 33])
def test_any_number_of_features_is_summed_in_the_kernels_order(n_features):
    model, _ = numbers(n=100, n_features=n_features, max_depth=2)
    found = export.check(model, rough_rows(model, 2000), "c")
    assert found.equal_leaves == found.rows


QUICK = ("gcc", "g++ with fused products", "32 bits, 80-bit floats", "sanitizers")


@pytest.mark.parametrize(
    ("compiler", "name"),
    [
        pytest.param(compiler, name, marks=() if compiler in QUICK and name == "oblique" else pytest.mark.slow)
        for compiler in programs.COMPILERS
        for name in ("oblique", "axis")
    ],
)
def test_every_compiler_agrees_without_warnings(compiler, name, request, tmp_path):
    command = programs.COMPILERS[compiler]
    if not programs.can_compile(command, tmp_path):
        pytest.skip(f"{compiler} is not there")
    model, X = request.getfixturevalue(name)
    leaves, classes = programs.asked(command, export.c(model), X.astype(np.float32), tmp_path, len(model.classes_))
    np.testing.assert_array_equal(leaves, model.leaf_indices(X))
    np.testing.assert_array_equal(model.classes_[classes], model.predict(X))


def test_fast_math_is_a_compile_error(axis, tmp_path):
    (tmp_path / "model.h").write_text(export.c(axis[0]))
    command = [*("cc", "-ffast-math", "-x", "c", "-DMODEL_IMPLEMENTATION", "-c"), str(tmp_path / "model.h")]
    result = subprocess.run([*command, "-o", os.devnull], capture_output=True, text=True, check=False)
    assert result.returncode
    assert "reorders sums" in result.stderr


def test_a_single_leaf_is_exported(tmp_path):
    model, X = numbers(n=60, n_features=3, max_depth=1)
    (tree,) = Portable.of(model).trees
    leaf = replace(
        tree, structure=TreeStructure.single_leaf(), tables=tree.tables[:1], weight=tree.weight[:0], bias=tree.bias[:0]
    )
    for options in ({}, {"integer": "int8"}):
        one = replace(Portable.of(model), trees=(leaf,))
        found = run(one, render(one, **options), encode_rows(model, X))
        assert not found.leaves.any()
        np.testing.assert_array_equal(found.classes, leaf.tables.argmax())


# Names that want to be code.


def test_names_compile_to_string_literals_only(tmp_path):
    model, X = numbers(n=100, n_features=len(HOSTILE_COLUMNS), labels=HOSTILE[:4], max_depth=2)
    hostile = (*HOSTILE_COLUMNS[:-1], "ends in a backslash \\")
    portable = replace(Portable.of(model), feature_names=hostile)
    (tmp_path / "model.h").write_text(render(portable))
    library = tmp_path / "model.so"
    command = ["cc", "-std=c99", *programs.STRICT, "-x", "c", "-DMODEL_IMPLEMENTATION", "-shared", "-fPIC"]
    result = subprocess.run([*command, str(tmp_path / "model.h"), "-o", str(library)], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    names = (ctypes.c_char_p * 4).in_dll(ctypes.CDLL(str(library)), "model_classes")
    assert [name.decode() for name in names] == sorted(HOSTILE[:4])
    assert export.check(model, X, "c").equal_leaves == len(X)


@pytest.mark.parametrize("name", ["", "2nd", "a-b", "_x", "ü", 'x"; system("y'])
def test_an_invalid_prefix_is_rejected(axis, name):
    with pytest.raises(ExportError, match="`name` must be ASCII letters"):
        export.c(axis[0], name=name)


def test_names_that_c_strings_cannot_hold_are_rejected():
    for label, why in (("a\0b", "no null"), ("x" * 5000, "at most 4095 bytes")):
        model, _ = numbers(n=60, n_features=2, n_classes=2, max_depth=1, labels=["ok", "other"])
        with pytest.raises(ExportError, match=why):
            render(replace(Portable.of(model), classes=(label, "other")))


# Tables.


@pytest.mark.parametrize("options", [{}, {"integer": "int16"}], ids=str)
def test_missing_values_and_categories_are_encoded_in_c(options):
    model, columns = of_table(names=HOSTILE[:4], levels=(*HOSTILE[:2], "1"))
    columns = {name: [*values, values[0]] for name, values in columns.items()}
    columns[HOSTILE[2]][-1] = "never seen"
    with pytest.warns(match="training did not know"):
        found = export.check(model, columns, "c", **options)
    assert found.equal_leaves == found.rows == 401


def test_a_value_that_cannot_be_encoded_returns_its_column(tmp_path):
    model, _ = of_table(n=100)
    (tmp_path / "model.h").write_text(export.c(model))
    command = ["cc", "-std=c99", "-x", "c", "-DMODEL_IMPLEMENTATION", "-shared", "-fPIC", str(tmp_path / "model.h")]
    subprocess.run([*command, "-o", str(tmp_path / "model.so")], check=True)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    row = (ctypes.c_float * 16)()
    for columns, expected in (([40, 3000, 1, 1], 0), ([np.nan, 3000, np.nan, 1], 0), ([40, 1e300, 1, 1], 2)):
        assert library.model_encode((ctypes.c_double * 4)(*columns), row) == expected
    assert library.model_category(2, b"gold") == 2
    assert library.model_category(2, b"gol") == -1
    assert library.model_category(2, b"") == -2
    rows = [(ctypes.c_float * 16)() for _ in range(2)]
    for row, plan in zip(rows, (-2, np.nan), strict=True):
        assert library.model_encode((ctypes.c_double * 4)(40, 3000, plan, 1), row) == 0
    assert list(rows[0]) == list(rows[1])


# Forests and regression, from values alone.


def test_a_forest_is_the_mean_of_its_trees_in_their_order():
    first, X = numbers(n=200, n_features=6)
    second, _ = numbers(n=200, n_features=6, max_depth=2, random_state=1)
    trees = [Portable.of(model).trees[0] for model in (first, second)]
    forest = replace(Portable.of(first), trees=(trees[0], trees[1], trees[0]))
    found = run(forest, render(forest), encode_rows(first, X))
    leaves = np.stack([first.leaf_indices(X), second.leaf_indices(X), first.leaf_indices(X)], axis=1)
    mean = (trees[0].tables[leaves[:, 0]] + trees[1].tables[leaves[:, 1]] + trees[0].tables[leaves[:, 2]]) / 3
    np.testing.assert_array_equal(found.leaves, leaves)
    np.testing.assert_array_equal(found.outputs, mean)
    np.testing.assert_array_equal(found.classes, mean.argmax(axis=1))
    whole = run(forest, render(forest, integer="int16"), encode_rows(first, X))
    np.testing.assert_array_equal(whole.leaves, leaves)
    np.testing.assert_allclose(whole.outputs, mean, atol=2e-5)


def test_a_regression_predicts_the_values_of_its_leaf():
    model, X = numbers(n=200, n_features=6)
    portable = Portable.of(model)
    (tree,) = portable.trees
    one = replace(tree, tables=np.linspace(-1e3, 1 / 3, tree.n_leaves)[:, None])
    two = replace(tree, tables=np.linspace(-1e3, 1 / 3, 2 * tree.n_leaves).reshape(-1, 2))
    for trees, options in (((one,), {}), ((two,), {"integer": "int16"}), ((one, one), {}), ((two, two), {})):
        numbers_of = replace(portable, trees=trees, classes=())
        found = run(numbers_of, render(numbers_of, **options), encode_rows(model, X))
        np.testing.assert_array_equal(found.outputs, trees[0].tables[model.leaf_indices(X)])


# Whole numbers.


@pytest.mark.parametrize(("precision", "most"), [("int8", 0.01), ("int16", 0.001)])
def test_quantization_changes_few_classes_of_digits(digits, precision, most):
    model, X = digits
    found = export.check(model, X, "c", integer=precision)
    assert found.changed <= most
    assert found.holds


@pytest.mark.parametrize(("name", "precision"), [("oblique", "int16"), ("axis", "int8"), ("digits", "int8")])
def test_c_code_equals_exact_arithmetic_for_rows_of_any_magnitude(name, precision, request, tmp_path):
    model, X = request.getfixturevalue(name)
    text = export.c(model, integer=precision)
    X = np.concatenate([X, 1e4 * X[:300]]).astype(np.float32)  # far beyond the range of the inputs
    if "const int32_t *features" in text:
        X = np.rint(X)
    trees = quantize(Portable.of(model), precision)
    command = programs.COMPILERS["sanitizers"]
    if not programs.can_compile(command, tmp_path):
        pytest.skip("the sanitizers are not there")
    leaves, classes = programs.asked(command, text, X, tmp_path, len(model.classes_))
    reached = trees.route(X)
    np.testing.assert_array_equal(leaves, reached[0])
    np.testing.assert_array_equal(classes, trees.classes(reached))


@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_no_input_overflows_a_sum(digits, precision, tmp_path):
    model, _ = digits
    for inputs in ("plain", "scaled"):
        trees = quantize(Portable.of(model), precision, inputs)
        extreme = np.where(trees.weight > 0, trees.inputs.high, trees.inputs.low)  # the largest sum of every split
        sums = np.abs((extreme * trees.weight).sum(axis=1)) + np.abs(trees.bias)
        assert sums.max() <= trees.max_sum <= 2**31 - 1


def test_a_bias_beyond_all_inputs_decides_the_split():
    model, X = numbers(n=100, n_features=4, max_depth=2)
    portable = Portable.of(model)
    tree = replace(portable.trees[0], bias=np.float32([1e30, -1e30, 1e30])[: len(portable.trees[0].bias)])
    far = replace(portable, trees=(tree,))
    for precision in ("int8", "int16"):
        exact = run(far, render(far), encode_rows(model, X))
        whole = run(far, render(far, integer=precision), encode_rows(model, X))
        np.testing.assert_array_equal(whole.leaves, exact.leaves)


def test_a_split_without_weights_keeps_the_sign_of_its_bias():
    model, X = numbers(n=100, n_features=4, max_depth=2)
    portable = Portable.of(model)
    (tree,) = portable.trees
    for bias in (0.3, 0.0, -0.3):
        none = replace(tree, weight=np.zeros_like(tree.weight), bias=np.full_like(tree.bias, bias))
        odd = replace(portable, trees=(none,))
        whole = quantize(odd, "int8")
        right = run(odd, render(odd), encode_rows(model, X)).leaves
        np.testing.assert_array_equal(whole.route(X)[0], right.ravel())


def test_rows_that_plain_inputs_cannot_hold_are_refused(digits):
    model, X = digits
    with pytest.raises(ExportError, match="row 1, counted from 0, is not"):
        export.check(model, X[:3] + np.float32([[0], [0.5], [0]]), "c", integer="int8", inputs="plain")


def test_sparse_tables_are_used_where_they_are_smaller():
    fitted, X = numbers(n=100, n_features=600, max_depth=2)
    portable = Portable.of(fitted)
    weight = portable.trees[0].weight.copy()
    weight[:, 5:590] = 0  # gaps wider than a byte
    few = replace(portable, trees=(replace(portable.trees[0], weight=weight),))
    for options in ({}, {"integer": "int8"}):
        text = render(few, **options)
        assert "model_gap" in text
        assert "model_gap" not in render(portable, **options)
        headers = [make_header(model, "model", options.get("integer"), "auto") for model in (few, portable)]
        sparse, full = (sum(array.n_bytes for array in header.arrays) for header in headers)
        assert sparse < full / 5
        dense = replace(few, trees=(replace(few.trees[0], weight=np.where(weight == 0, np.float32(1e-30), weight)),))
        rows = encode_rows(fitted, X)
        np.testing.assert_array_equal(run(few, text, rows).leaves, run(dense, render(dense, **options), rows).leaves)


def test_a_model_beyond_the_flash_or_stack_limit_is_rejected(digits):
    model, _ = digits
    costs = DeviceCost.of(Portable.of(model), make_header(Portable.of(model), "model", "int8", "auto"))
    assert export.c(model, integer="int8", max_flash=costs.flash, max_stack=costs.stack)
    with pytest.raises(ExportError, match=r"at most `max_flash` = 2,000 bytes; it takes .*max_features_per_split"):
        export.c(model, integer="int8", max_flash=2000)
    with pytest.raises(ExportError, match="at most `max_stack` = 10 bytes"):
        export.c(model, max_stack=10)


def test_unsupported_quantizations_are_refused_with_a_reason(oblique):
    model, _ = oblique
    with pytest.raises(ExportError, match="must be one of int8, int16; got 'int4'"):
        export.c(model, integer="int4")
    with pytest.raises(ExportError, match="must be one of auto, plain, scaled; got 'odd'"):
        export.c(model, integer="int8", inputs="odd")
    with pytest.raises(ExportError, match="needs features that were whole numbers"):
        export.c(model, integer="int8", inputs="plain")
    with pytest.raises(ExportError, match=r"needs the range of every feature.*Train it again"):
        render(replace(Portable.of(model), ranges=None), integer="int8")


# Small machines.

needs_arm = pytest.mark.skipif(not programs.shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")


@needs_arm
@pytest.mark.parametrize("options", [{}, {"integer": "int8"}], ids=str)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_cost_on_a_cortex_m0_is_at_most_the_estimate(digits, options, n_trees, tmp_path, record_property):
    portable = Portable.of(digits[0])
    portable = replace(portable, trees=portable.trees * n_trees)
    flash, stack, unknown = programs.sizes(render(portable, **options), tmp_path)
    costs = DeviceCost.of(portable, make_header(portable, "model", options.get("integer"), "auto"))
    record_property("sizes", f"{flash} of {costs.flash} bytes of flash, {stack} of {costs.stack} bytes of stack")
    assert flash <= costs.flash
    assert stack <= costs.stack
    of_the_compiler = {"__aeabi_uidiv"} if options else {"__aeabi_fadd", "__aeabi_fmul", "__aeabi_fcmpgt"}
    of_means = {"__aeabi_dadd", "__aeabi_ddiv", "__aeabi_dcmpgt"}
    of_encode = {"__aeabi_d2f", "__aeabi_dcmpge", "__aeabi_dcmple", "__aeabi_dcmplt"}
    assert set(unknown) <= of_the_compiler | (of_means | of_encode if not options else set())
    assert n_trees > 1 or not options or not unknown


@needs_arm
@pytest.mark.parametrize("precision", ["int8", pytest.param("int16", marks=pytest.mark.slow)])
def test_an_emulated_cortex_m0_gets_the_same_classes(digits, precision, tmp_path):
    model, X = digits
    trees = quantize(Portable.of(model), precision)
    rows = X[:300]
    said = programs.on_a_microbit(export.c(model, integer=precision), trees.inputs(rows), tmp_path)
    if said is None:
        pytest.skip("compiled and linked; qemu-system-arm is not there to run it")
    np.testing.assert_array_equal(said, trees.classes(trees.route(rows)))
