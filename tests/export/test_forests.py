"""Fitted forests, through every target that takes them."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from crisptree import CrispForestClassifier, TableEncoder, export
from crisptree.export import Portable
from crisptree.export.support import TARGETS
from tests.export.models import table
from tests.toys import clouds

QUICK = {"n_estimators": 5, "max_depth": 3, "epochs": 2, "finetune_epochs": 1, "min_updates": 5, "random_state": 0}
QUICK |= {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
WAYS = [("c", {}), ("c", {"integer": "int16"}), ("onnx", {}), ("onnx", {"form": "paths"})]


@pytest.fixture(scope="module")
def forest():
    X, y = clouds(300, n_features=7, n_classes=3)
    return CrispForestClassifier(**QUICK).fit(X, np.array(["a", "b", "c"])[y]), X


def test_a_forest_becomes_all_of_its_trees(forest):
    model, _ = forest
    portable = Portable.of(model)
    assert len(portable.trees) == 5
    assert "forest" in portable.uses
    assert portable.classes == ("a", "b", "c")
    lowest = [tree.statistics.lowest for tree in model.forest_]
    np.testing.assert_array_equal(portable.ranges.lowest, np.min(lowest, axis=0))


@pytest.mark.parametrize(("to", "options"), WAYS, ids=str)
def test_every_row_reaches_the_same_leaves_and_gets_the_same_class(forest, to, options):
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    model, X = forest
    far = np.random.default_rng(0).normal(scale=2.0, size=(2000, 7)).astype(np.float32)
    found = export.check(model, X if options.get("integer") else far, to, **options)
    assert found.holds
    assert found.equal_classes >= found.rows - found.near - (1 if options.get("integer") else 0)
    assert found.largest_difference <= (0 if to == "c" and not options else 5e-5)


def test_a_forest_of_tables_is_encoded_too():
    columns, y = table(150)
    for model in (CrispForestClassifier(**QUICK), make_pipeline(TableEncoder(), CrispForestClassifier(**QUICK))):
        found = export.check(model.fit(columns, y), columns, "c")
        assert found.equal_leaves == found.equal_classes == found.rows == 150


def test_targets_of_one_tree_refuse_a_forest_with_a_reason(forest):
    for target in TARGETS.values():
        if "forest" in target.refuses:
            with pytest.raises(export.ExportError, match=r"forests|hyperplanes"):
                target.write(forest[0])
