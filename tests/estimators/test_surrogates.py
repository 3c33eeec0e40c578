"""Lone surrogates, which UTF-8 cannot encode, are refused by fit and load, in labels, names and categories."""

import numpy as np
import pytest

import crisptree
from crisptree import CrispForestClassifier, CrispSegmenter, CrispTreeClassifier, ModelFileError, TableEncoder
from crisptree.estimators.loading import ESTIMATOR, KNOWN, PREPROCESSING
from crisptree.persistence.model_file import read, write

QUICK = {"max_depth": 1, "epochs": 2, "finetune_epochs": 2, "min_updates": 10, "input_noise": 0.5, "l1": 0.0}
QUICK |= {"random_state": 0, "split": "oblique"}
LONE = "half \ud83d"
X = np.random.default_rng(0).normal(size=(60, 2))
IS_LARGE = X[:, 0] > 0
LABELS = np.where(IS_LARGE, LONE, "b")


def frame(columns, **values):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(values or X)
    table.columns = pandas.Index(columns, dtype=object)  # pandas' own strings refuse such text
    return table


def named(values):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(values, name=LONE)


FITS = {
    "labels": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(X, LABELS),
    "labels of type object": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(X, LABELS.astype(object)),
    "labels of a forest": lambda: CrispForestClassifier.from_flat(**QUICK, n_estimators=2).fit(X, LABELS),
    "labels of batches": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(lambda: iter([(X, LABELS)])),
    "classes of partial_fit": lambda: CrispTreeClassifier.from_flat(**QUICK).partial_fit(
        X, np.full(60, "b"), classes=["a", "b", LONE]
    ),
    "labels of pixels": lambda: CrispSegmenter(max_depth=1, window=3).fit(
        X[:49].reshape(2, 7, 7), LABELS[:49].repeat(2).reshape(2, 7, 7)
    ),
    "columns of probabilities": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(
        X, frame([LONE, "b"], a=0.5 + 0.4 * IS_LARGE, b=0.5 - 0.4 * IS_LARGE)
    ),
    "names of columns": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(frame([LONE, "b"]), IS_LARGE),
    "names of columns of a table": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(
        {LONE: X[:, 0], "b": X[:, 1]}, IS_LARGE
    ),
    "categories": lambda: CrispTreeClassifier.from_flat(**QUICK).fit({"a": LABELS.tolist(), "b": X[:, 1]}, IS_LARGE),
    "the name of y": lambda: CrispTreeClassifier.from_flat(**QUICK).fit(X, named(IS_LARGE)),
    "an encoder": lambda: TableEncoder().fit({"a": LABELS.tolist()}),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_refuses_lone_surrogates(kind):
    with pytest.raises(ValueError, match=r"must be text that UTF-8 can encode; .*half .ud83d' has a lone") as caught:
        FITS[kind]()
    assert not isinstance(caught.value, UnicodeError)
    str(caught.value).encode()


def test_pairs_of_surrogates_are_characters():
    labels = np.where(IS_LARGE, "\N{GRINNING FACE}", "b")
    assert set(CrispTreeClassifier.from_flat(**QUICK).fit(X, labels).predict(X)) <= set(labels)


@pytest.mark.parametrize("place", ["label", "feature", "column", "category"])
def test_a_file_with_lone_surrogates_is_refused(place, tmp_path):
    table = {"a": np.where(IS_LARGE, "u", "v").tolist(), "b": X[:, 1]}
    CrispTreeClassifier.from_flat(**QUICK).fit(table, np.where(IS_LARGE, "yes", "no")).save(tmp_path / "x.crisp")
    sections = read(tmp_path / "x.crisp", KNOWN).sections
    header, table = sections[ESTIMATOR].content, sections[PREPROCESSING].content
    if place == "label":
        header["classes"]["values"][0] = LONE
    elif place == "feature":
        header["feature_names"][0] = LONE
    elif place == "column":
        table["columns"][1]["name"] = table["inputs"][1] = LONE
    else:
        table["columns"][0]["categories"][0] = LONE
    write(tmp_path / "y.crisp", sections)
    with pytest.raises(ModelFileError):
        crisptree.load(tmp_path / "y.crisp")
