import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from crisptree import export
from crisptree.export import ExportError
from crisptree.export.formats import FEATURES, FORMATS, ExportFormat, Predictions, support_table
from crisptree.inference.node_arrays import find_split_threshold
from tests.export.models import numbers, of_numbers, skip_unless_it_runs, thresholds

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "export" / "index.md"


def test_the_documented_support_table_equals_that_of_the_code():
    (table,) = re.findall(r"<!-- support table.*?-->\n(.*?)<!-- end", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert table.strip() == support_table()


@pytest.mark.parametrize("target", FORMATS.values(), ids=lambda target: target.name)
def test_every_unsupported_feature_has_a_remedy(target):
    for word, reason in target.unsupported.items():
        assert word in FEATURES
        assert re.search(r"Train|Export|Keep|Use|keep", reason), (target.name, word)


def test_an_unknown_format_or_option_is_rejected_with_the_available_ones():
    model, _ = numbers(n=60, max_depth=1)
    with pytest.raises(ExportError, match=r"must go to one of .*sklearn.*; got 'cobol'"):
        export.write(model, "cobol")
    with pytest.raises(ExportError, match="takes the options `form`; got `speed`"):
        export.write(thresholds()[0], "sklearn", speed=1)


def test_a_new_format_is_a_module_and_an_entry(monkeypatch):
    """Depth-1 trees as a JSON list: the split's feature and threshold, and the tables of its two leaves."""

    def render(portable):
        (tree,) = portable.trees
        threshold = find_split_threshold(tree.weight[0], tree.bias[0])
        return json.dumps([*threshold, tree.tables.tolist()])

    def run(portable, written, rows):
        feature, value, larger_go_right, tables = json.loads(written)
        leaves = ((rows.X[:, feature] > value) == larger_go_right).astype(int)
        outputs = np.array(tables)[leaves]
        return Predictions.of(leaves, outputs, outputs.argmax(axis=1), range(len(portable.classes)))

    monkeypatch.setitem(sys.modules, "crisptree.export.stump", SimpleNamespace(render=render, run=run))
    stump = ExportFormat("stump", "a stump", (".json",), "stump", unsupported={"oblique": "Train thresholds."})
    monkeypatch.setitem(FORMATS, "stump", stump)
    model, X = numbers(split="axis", grow="cart", finetune_epochs=0, max_depth=1)
    agreement = export.check(model, X, "stump")
    assert agreement.holds
    assert agreement.equal_leaves == agreement.rows == len(X)
    with pytest.raises(ExportError, match="a stump does not support oblique splits: Train thresholds"):
        export.write(numbers(n=60, max_depth=1)[0], "stump")


def test_changed_counts_classes_or_leaves_of_a_regression():
    skip_unless_it_runs("c")
    model, X = of_numbers(n_features=5, leaf_model="constant")
    agreement = export.check(model, X, "c", integer="int8")
    assert agreement.n_changed == agreement.rows - agreement.equal_leaves > 0
    assert agreement.changed == agreement.n_changed / len(X)
    labels = replace(agreement, what="probabilities", equal_classes=agreement.rows - 1)
    assert labels.n_changed == 1
