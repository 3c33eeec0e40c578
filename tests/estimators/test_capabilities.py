"""The table of what goes with what."""

from pathlib import Path

import pytest

from crisptree import CrispForestClassifier, CrispTreeClassifier, TrainingOptions
from crisptree.parameters.estimators import (
    ForestClassifierParameters,
    ForestRegressorParameters,
    RegressorParameters,
    SegmenterParameters,
)
from crisptree.pipeline.validation import CAPABILITIES, check_capabilities, describe_capabilities, violations

PAGE = Path(__file__).parents[2] / "docs" / "capabilities.md"
KINDS = (RegressorParameters, SegmenterParameters, ForestClassifierParameters, ForestRegressorParameters)


def test_the_page_has_the_table():
    assert PAGE.read_text(encoding="utf-8").endswith(describe_capabilities())


def test_every_parameter_of_the_table_is_one_of_an_estimator():
    known = {name for kind in KINDS for name in kind.declared_parameters()}
    assert {name for capability in CAPABILITIES for name in capability.requires} <= known


@pytest.mark.parametrize("rows", ["array", "sparse", "batches", "process group"])
def test_default_parameters_go_with_all_rows(rows):
    check_capabilities(CrispTreeClassifier().training_parameters(), rows=rows, has_validation=False, is_image=False)


def test_all_that_does_not_go_together_is_listed():
    found = list(violations(CrispTreeClassifier(split="axis", warm_start=True).training_parameters(), rows="batches"))
    assert [message.split()[0] for message in found] == ["`split`", "`warm_start`"]


def test_one_drawn_feature_is_not_all_features():
    forest = CrispForestClassifier(max_features=1, training=TrainingOptions(grow="balanced"))
    with pytest.raises(ValueError, match=r"`max_features` must be 'auto', None or 1\.0 for"):
        check_capabilities(forest.training_parameters(), is_forest=True)
