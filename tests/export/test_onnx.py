from dataclasses import replace

import numpy as np
import pytest

from crisptree import export
from crisptree.export import ExportError, Portable
from crisptree.export.formats import encode_rows
from crisptree.export.onnx_graph import FORMS, render, run
from crisptree.structure import TreeStructure
from tests.export.models import HOSTILE, numbers, of_table, rough_rows, thresholds
from tests.plots.models import module_model

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def oblique():
    model, _ = numbers(n_features=40, labels=HOSTILE[:4])
    return model, rough_rows(model, 5000)


@pytest.fixture(scope="module")
def axis():
    model, _ = thresholds()
    return model, rough_rows(model, 5000)


def domains(written):
    return {node.domain for node in onnx.load_from_string(written).graph.node}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["oblique", "axis"])
def test_rounding_explains_every_row_that_reaches_another_leaf(form, name, request):
    model, X = request.getfixturevalue(name)
    found = export.check(model, X, "onnx", form=form)
    assert found.holds
    assert found.rows - found.equal_leaves <= found.near <= 50
    assert found.largest_difference < 1e-7


def test_a_row_that_takes_a_wrong_turn_would_be_found(oblique):
    model, X = oblique
    portable = Portable.of(model)
    (tree,) = portable.trees
    swapped = TreeStructure(tree.structure.right, tree.structure.left)
    wrong = render(replace(portable, trees=(replace(tree, structure=swapped),)))
    assert not export.formats.check_written(model, encode_rows(model, X), "onnx", wrong).holds


def test_paths_need_core_operators_only(oblique):
    written = {form: export.onnx(oblique[0], form=form) for form in FORMS}
    assert [domains(written[form]) for form in FORMS] == [{"", "ai.onnx.ml"}, {""}]
    versions = {entry.domain: entry.version for entry in onnx.load_from_string(written["ensemble"]).opset_import}
    assert versions == {"": 13, "ai.onnx.ml": 3}


def test_names_and_types_are_those_of_skl2onnx_with_the_leaf_beside():
    kinds = {"tensor(int64)": np.array([7, 3]), "tensor(string)": np.array(["ja", "nein"])}
    for kind, labels in kinds.items():
        model, X = numbers(n=100, n_features=3, n_classes=2, max_depth=2, labels=labels)
        session = runtime.InferenceSession(export.onnx(model), providers=["CPUExecutionProvider"])
        assert [(given.name, given.type, given.shape) for given in session.get_inputs()] == [
            ("X", "tensor(float)", ["N", 3])
        ]
        said = [(output.name, output.type, output.shape) for output in session.get_outputs()]
        expected = [
            ("label", kind, ["N"]),
            ("probabilities", "tensor(float)", ["N", 2]),
            ("leaf", "tensor(int64)", ["N"]),
        ]
        assert said == expected
        label, probabilities, leaf = session.run(None, {"X": X[:5]})
        assert label.tolist() == model.predict(X[:5]).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(X[:5]), rtol=1e-6)
        np.testing.assert_array_equal(leaf, model.leaf_indices(X[:5]))


def test_names_stay_nothing_but_names():
    model, columns = of_table(names=(*HOSTILE[:2], "label", ""), levels=HOSTILE[:3], labels=HOSTILE[:2])
    found = export.check(model, columns, "onnx")
    assert found.equal_leaves == found.equal_classes == found.rows
    names = [given.name for given in onnx.load_from_string(export.onnx(model)).graph.input]
    assert names == [HOSTILE[0], HOSTILE[1], "column 2: label", "column 3: "]


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_and_categories_are_encoded_in_the_graph(form):
    model, columns = of_table(n=200)
    columns = {name: [*values, values[0]] for name, values in columns.items()}
    columns["plan"][-1] = "never seen"
    with pytest.warns(match="training did not know"):
        found = export.check(model, columns, "onnx", form=form)
    assert found.equal_leaves == found.rows == 201


@pytest.mark.parametrize("form", FORMS)
def test_a_forest_is_one_graph_whatever_the_sizes_of_its_trees(form):
    first, X = numbers(n=200, n_features=6)
    second, _ = numbers(n=200, n_features=6, max_depth=2, random_state=1)
    trees = [Portable.of(model).trees[0] for model in (first, second)]
    (only, _), tables = trees, trees[1].tables
    leaf = replace(
        only, structure=TreeStructure.single_leaf(), tables=tables[:1], weight=only.weight[:0], bias=only.bias[:0]
    )
    forest = replace(Portable.of(first), trees=(trees[1], leaf, trees[0]))
    found = run(forest, render(forest, form=form), encode_rows(first, X))
    leaves = np.stack([second.leaf_indices(X), np.zeros(len(X), np.int64), first.leaf_indices(X)], axis=1)
    mean = (tables[leaves[:, 0]] + tables[:1] + trees[0].tables[leaves[:, 2]]) / 3
    np.testing.assert_array_equal(found.leaves, leaves)
    np.testing.assert_allclose(found.outputs, mean, atol=1e-7)
    np.testing.assert_array_equal(found.classes, mean.argmax(axis=1))


@pytest.mark.parametrize("form", FORMS)
def test_a_single_leaf_is_exported(form):
    model, X = numbers(n=60, n_features=3, max_depth=1)
    (tree,) = Portable.of(model).trees
    leaf = replace(
        tree, structure=TreeStructure.single_leaf(), tables=tree.tables[:1], weight=tree.weight[:0], bias=tree.bias[:0]
    )
    one = replace(Portable.of(model), trees=(leaf,))
    found = run(one, render(one, form=form), encode_rows(model, X))
    assert not found.leaves.any()
    np.testing.assert_array_equal(found.classes, leaf.tables.argmax())


def test_a_regression_predicts_the_values_of_its_leaf():
    model, X = numbers(n=200, n_features=6)
    portable = Portable.of(model)
    (tree,) = portable.trees
    one = replace(tree, tables=np.linspace(-1e3, 1 / 3, tree.n_leaves)[:, None])
    two = replace(tree, tables=np.linspace(-1e3, 1 / 3, 2 * tree.n_leaves).reshape(-1, 2))
    for trees in ((one,), (one, one), (two,), (two, two)):
        of_numbers = replace(portable, trees=trees, classes=())
        written = render(of_numbers)
        assert [output.name for output in onnx.load_from_string(written).graph.output] == ["variable", "leaf"]
        found = run(of_numbers, written, encode_rows(model, X))
        np.testing.assert_allclose(found.outputs, trees[0].tables[model.leaf_indices(X)], rtol=1e-6)


def test_split_modules_and_unknown_forms_are_refused(oblique):
    with pytest.raises(ExportError, match="must be one of ensemble, paths; got 'soft'"):
        export.onnx(oblique[0], form="soft")
    with pytest.raises(ExportError, match="ONNX does not support split modules: its splits are modules of torch"):
        export.onnx(module_model())


def test_writing_twice_gives_the_same_bytes(axis):
    assert export.onnx(axis[0]) == export.onnx(axis[0])
