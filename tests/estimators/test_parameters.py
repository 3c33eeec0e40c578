"""Parameters are declared once, and everything that speaks of them agrees with the declaration."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from crisptree import CrispForestClassifier, CrispSegmenter, CrispTreeClassifier, TableEncoder
from crisptree.estimators.parameters import NEVER, ClassifierParameters
from tests.toys import clouds

ESTIMATORS = [CrispTreeClassifier, CrispSegmenter]
WITHOUT_RULE = {"class_weight", "random_state", "device", "ignore_label"}
"""Their values are checked where what they mean is known: labels, scikit-learn's generators, torch's devices."""


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_signature_offers_exactly_what_is_declared(kind):
    arguments = list(inspect.signature(kind).parameters.values())
    assert {argument.name: argument.default for argument in arguments} == {
        name: declared.default for name, declared in kind.PARAMETERS.items()
    }
    assert all(argument.kind is inspect.Parameter.KEYWORD_ONLY for argument in arguments)
    assert set(kind().get_params()) == set(kind.PARAMETERS)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_has_a_rule_that_its_default_obeys(kind):
    for name, declared in kind.PARAMETERS.items():
        assert (declared.rule is None) == (name in WITHOUT_RULE)
        assert declared.rule is None or declared.rule.holds(declared.default)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_is_described_with_its_default(kind):
    described = kind.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    for name, declared in kind.PARAMETERS.items():
        line = re.search(rf"^    [^\n]*\b{name}\b[^\n]*$", described, re.M)
        assert line, f"{name} is not described"
        if re.match(rf"    {name} :.*default=", line.group()):
            default = line.group().split("default=")[1].replace("_", "")
            assert default == repr(declared.default).replace("'", '"').replace("0.001", "1e-3").replace("_", "")


def test_a_copy_has_the_same_parameters():
    model = CrispTreeClassifier(max_depth=3, l1=0.5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "CrispTreeClassifier(l1=0.5, max_depth=3)"


def test_an_unknown_parameter_is_answered_with_the_known_ones():
    with pytest.raises(TypeError, match=r"CrispTreeClassifier\(\) has no parameter 'depth'; it has split, "):
        CrispTreeClassifier(depth=3)


def test_flags_are_told_apart():
    for kind in ESTIMATORS:
        flags = [declared.flag for declared in kind.PARAMETERS.values() if declared.flag]
        assert len(set(flags)) == len(flags)
        assert all(declared.help for declared in kind.PARAMETERS.values() if declared.flag)


def test_what_came_later_says_what_was_before():
    assert ClassifierParameters.PARAMETERS["learning_rate_decay"].before == "none"
    assert ClassifierParameters.PARAMETERS["epochs"].before is NEVER


def test_every_word_is_known_where_it_is_used():
    from crisptree.baselines.growth import SEARCHES
    from crisptree.data.scaling import SCALES
    from crisptree.equations.annealing import SCHEDULES
    from crisptree.equations.decay import DECAYS
    from crisptree.learning.loop import ALGORITHMS
    from crisptree.splits import KINDS, MODULES

    words = {
        name: set(declared.rule.words) for name, declared in ClassifierParameters.PARAMETERS.items() if declared.rule
    }
    assert words["algorithm"] == set(ALGORITHMS) | {"non_greedy"}
    assert words["grow"] == set(SEARCHES) | {"greedy", "balanced"}
    assert words["annealing"] == set(SCHEDULES)
    assert words["learning_rate_decay"] == set(DECAYS)
    assert words["scale"] == {*SCALES, "auto"}
    assert words["split"] == {*KINDS, *MODULES, "auto"}


BOOLEANS = {
    "warm_start": lambda value: CrispTreeClassifier(warm_start=value).fit(*clouds(20)),
    "early_stopping": lambda value: CrispTreeClassifier(early_stopping=value).fit(*clouds(20)),
    "normalise_images": lambda value: CrispSegmenter(normalise_images=value).fit(np.zeros((8, 8)), np.zeros((8, 8))),
    "bootstrap": lambda value: CrispForestClassifier(bootstrap=value).fit(*clouds(20)),
    "resume": lambda value: CrispTreeClassifier().fit(*clouds(20), checkpoint="folder", resume=value),
    "grow": lambda value: CrispTreeClassifier().partial_fit(*clouds(20), classes=[0, 1, 2], grow=value),
    "keep_constant": lambda value: TableEncoder(keep_constant=value).fit({"a": ["x", "y"]}),
}


@pytest.mark.parametrize("wrong", [2.0, 1, 0, "True"])
@pytest.mark.parametrize("name", BOOLEANS)
def test_boolean_parameters_take_booleans_only(name, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"`{name}` must be .*True or False; got {wrong!r}"):
        BOOLEANS[name](wrong)
    assert not list(tmp_path.iterdir())
