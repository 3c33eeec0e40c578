"""The results in the repository: few files in order, and pages that say what stands in them."""

import json

import pytest
from experiments.provenance import RESULTS
from experiments.store import KEYS, store_of
from experiments.table import Results

from experiments import cnn, configs, extension, recipe, report, roughness, segmentation

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="a source distribution carries no results")

BENCHMARKS = {"forests", "regression"}
"""Folders whose lines belong to a script of benchmarks/, which keeps them in its own way."""

FILES = sorted(path for path in RESULTS.glob("*/*.jsonl") if path.parent.name not in BENCHMARKS)


def paper():
    found = [Results.read(configs.read(path), report.RESULTS) for path in configs.find([])]
    return report.page(found)


PAGES = {
    "paper.md": paper,
    "cnn.md": lambda: cnn.page(cnn.RESULTS),
    "images.md": lambda: roughness.page(roughness.RESULTS),
    "segmentation.md": segmentation.page,
    "extension.md": lambda: extension.page(extension.RESULTS),
    "recipe.md": lambda: recipe.page(RESULTS),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_the_repository_reports_what_its_records_contain(name):
    assert (RESULTS / name).read_text(encoding="utf-8") == PAGES[name]()


def test_every_experiment_keeps_one_file_for_each_data_set_and_nothing_else():
    assert {path.parent.name for path in FILES} == set(KEYS)
    assert not list(RESULTS.rglob("*.json"))
    assert not list(RESULTS.rglob("*.tmp"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_in_the_repository_is_as_the_store_would_write_it(path):
    records = store_of(path.parent.name, path.parent, path.stem).records()
    assert path.read_text(encoding="utf-8") == "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_records_that_name_their_data_stand_in_its_file(path):
    records = store_of(path.parent.name, path.parent, path.stem).records()
    assert {one.get("data", path.stem) for one in records} == {path.stem}
