import json
from functools import cache

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import crisptree
from crisptree import ModelFileError, TableEncoder, export
from tests.export.models import HOSTILE, numbers, of_table, rough_rows, table, thresholds
from tests.golden.test_model_files import FILES, KINDS, cases
from tests.toys import plain_tree


def read_back(text, tmp_path, split=None):
    (tmp_path / "m.json").write_text(text, encoding="utf-8")
    return crisptree.load(tmp_path / "m.json", split=split)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_of_every_kind_comes_back_bit_for_bit(kind, tmp_path):
    split = cases.SmallNetwork if kind == "own-modules" else None
    model = crisptree.load(FILES / f"{kind}.crisp", split=split)
    model.save(tmp_path / "one.crisp")
    read_back(export.json(model), tmp_path, split).save(tmp_path / "two.crisp")
    assert (tmp_path / "one.crisp").read_bytes() == (tmp_path / "two.crisp").read_bytes()


@pytest.mark.parametrize("kind", ["conv", "own-modules"])
def test_arrays_of_split_modules_are_written_in_the_order_of_their_names(kind):
    model = crisptree.load(FILES / f"{kind}.crisp", split=cases.SmallNetwork if kind == "own-modules" else None)
    arrays = json.loads(export.json(model))["sections"]["tree"]["arrays"]
    names = [name for name in arrays if name.startswith("module/")]
    assert len(names) > 3
    assert names == sorted(names)


def test_every_row_reaches_the_same_leaf():
    for model, X in (numbers(), thresholds(), of_table()):
        rows = X if isinstance(X, dict) else rough_rows(model, 2000)
        agreement = export.check(model, rows, "json")
        assert agreement.equal_leaves == agreement.rows
        assert agreement.largest_difference == 0


def test_a_pipeline_comes_back_as_a_model_that_takes_the_table(tmp_path):
    columns, y = table()
    pipeline = make_pipeline(TableEncoder(), plain_tree(max_depth=2, random_state=0)).fit(columns, y)
    np.testing.assert_array_equal(
        read_back(export.json(pipeline), tmp_path).predict(columns), pipeline.predict(columns)
    )


def test_hostile_names_come_back_as_they_were(tmp_path):
    model, _ = of_table(names=HOSTILE[:4], levels=HOSTILE[2:5], labels=HOSTILE[:2])
    again = read_back(export.json(model), tmp_path)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.feature_names_in_.tolist() == list(HOSTILE[:4])
    assert again.encoder_.preprocessing_.columns[2].categories == model.encoder_.preprocessing_.columns[2].categories


@cache
def small_text():
    return export.json(numbers(n=60, n_features=2, max_depth=2)[0])


def small():
    return json.loads(small_text())


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("version",), 2, r"\$\.version must be 1; got 2\. Update"),
        (("format",), "x", r"\$\.format must be 'crisptree'"),
        (("more",), 1, r"\$ must have no other entries .* it has 'more' too"),
        (("sections",), 3, r"\$\.sections must be an object; got 3"),
        (("sections", "tree"), {}, r"\$\.sections\.tree must have the entry 'required'"),
        (("sections", "tree", "required"), 1, r"\$\.sections\.tree\.required must be true or false; got 1"),
        (("sections", "tree", "arrays", "bias", "type"), "float8", r"arrays\.bias\.type must be one of float32"),
        (("sections", "tree", "arrays", "bias", "shape"), [-1], r"arrays\.bias\.shape must be a list of"),
        (
            ("sections", "tree", "arrays", "bias", "shape"),
            [99],
            r"arrays\.bias\.values must be nested lists of the shape \[99\]",
        ),
        (("sections", "tree", "arrays", "weight", "values", 0, 1), "a", r"weight\.values\[0\]\[1\] must be a number"),
        (("sections", "tree", "arrays", "weight", "values", 0, 1), 1e39, r"weight\.values\[0\]\[1\] must be a number"),
        (("sections", "tree", "arrays", "weight", "values", 0, 1), True, r"weight\.values\[0\]\[1\] must be a number"),
        (("sections", "tree", "arrays", "weight", "values", 0, 1), None, "'weight' of the section 'tree' holds values"),
        (("sections", "tree", "arrays", "left", "values", 0), 0.5, r"left\.values\[0\] must be a whole number"),
        (("sections", "tree", "arrays", "left", "values", 0), 2**40, r"left\.values\[0\] must be a whole number"),
        (("sections", "tree", "arrays", "left", "values", 0), 0, "must be numbered after its parent"),
        (("sections", "estimator", "content", "classes"), None, "must hold class labels"),
    ],
)
def test_what_is_wrong_in_a_document_is_named_with_its_place(place, value, says, tmp_path):
    document = small()
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ModelFileError, match=says):
        read_back(json.dumps(document), tmp_path)


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', "{" * 100_000, '{"a": ' * 100_000])
def test_text_that_is_no_document_is_refused(text, tmp_path):
    with pytest.raises(ModelFileError, match="is not a JSON document"):
        read_back(text, tmp_path)


def test_a_document_of_a_later_version_with_unknown_sections_is_refused(tmp_path):
    document = small()
    document["sections"]["oracle"] = {"required": True, "content": {}, "arrays": {}}
    with pytest.raises(ModelFileError, match="needs oracle, unknown to this version"):
        read_back(json.dumps(document), tmp_path)
    document["sections"]["oracle"]["required"] = False
    assert read_back(json.dumps(document), tmp_path).get_n_leaves() > 1
