"""Parameters are declared once, and everything that speaks of them agrees with the declaration."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispPixelRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    TableEncoder,
    TrainingOptions,
)
from crisptree.cli.options import parameter_options
from crisptree.parameters.estimators import ClassifierParameters
from crisptree.parameters.training import NEVER, declare_parameters, parameter, whole
from tests.toys import clouds

ESTIMATORS = [
    *(CrispTreeClassifier, CrispTreeRegressor, CrispForestClassifier, CrispForestRegressor),
    *(CrispSegmenter, CrispPixelRegressor),
]
WITHOUT_RULE = {"random_state", "device", "ignore_label", "training"}
"""Their values are checked where what they mean is known: labels, scikit-learn's generators, torch's devices."""

MAX_PARAMETERS = 24


@pytest.mark.parametrize("kind", [*ESTIMATORS, TrainingOptions])
def test_the_signature_offers_exactly_what_is_declared(kind):
    arguments = list(inspect.signature(kind).parameters.values())
    assert {argument.name: argument.default for argument in arguments} == {
        name: declared.default for name, declared in kind.PARAMETERS.items()
    }
    assert all(argument.kind is inspect.Parameter.KEYWORD_ONLY for argument in arguments)
    assert set(kind().get_params(deep=False)) == set(kind.PARAMETERS)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_constructor_has_few_parameters(kind):
    assert len(kind.PARAMETERS) <= MAX_PARAMETERS


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_has_a_rule_that_its_default_obeys(kind):
    for name, declared in {**kind.declared_parameters(), "training": kind.PARAMETERS["training"]}.items():
        assert (declared.rule is None) == (name in WITHOUT_RULE)
        assert declared.rule is None or declared.rule.holds(declared.default)


@pytest.mark.parametrize("kind", [*ESTIMATORS, TrainingOptions])
def test_every_parameter_is_described_with_its_default(kind):
    described = kind.__doc__.split("Parameters\n")[1]
    for name, declared in kind.PARAMETERS.items():
        default = repr(declared.default).replace("'", '"')
        assert f"    {name} : {declared.kind}, default={default}\n        {declared.doc.split()[0]}" in described


def test_training_options_are_nested_parameters():
    model = CrispTreeClassifier(max_depth=2).set_params(training__epochs=3, l1=0.0)
    assert (model.training, model.l1) == (TrainingOptions(epochs=3), 0.0)
    assert model.get_params()["training__epochs"] == clone(model).training.epochs == 3
    assert CrispTreeClassifier().get_params()["training__epochs"] == TrainingOptions().epochs
    with pytest.raises(ValueError, match="TrainingOptions has no option 'epoch'; it has algorithm, "):
        model.set_params(training__epoch=3)


def test_a_grid_search_reaches_training_options():
    X, y = clouds(40)
    model = CrispTreeClassifier(split="oblique", l1=0.0, input_noise=0.0, shrinkage=0.0, max_depth=1, random_state=0)
    search = GridSearchCV(model, {"training__epochs": [1, 2]}, cv=2).fit(X, y)
    assert search.best_estimator_.training.epochs == search.best_params_["training__epochs"]


def test_training_options_are_immutable_and_travel():
    options = TrainingOptions(epochs=3, device="cpu")
    with pytest.raises(AttributeError, match=r"options.replace\(epochs=...\), or estimator.set_params"):
        options.epochs = 4
    assert (options.replace(epochs=4).epochs, options.epochs) == (4, 3)
    assert pickle.loads(pickle.dumps(options)) == options != TrainingOptions()
    assert repr(options) == "TrainingOptions(epochs=3, device='cpu')"


def test_training_must_be_training_options():
    with pytest.raises(ValueError, match=r"`training` must be a TrainingOptions or None; got \{'epochs': 3\}"):
        CrispTreeClassifier(training={"epochs": 3}).fit(*clouds(20))
    with pytest.raises(TypeError, match=r"TrainingOptions\(\) has no parameter 'l1'; it has algorithm, "):
        TrainingOptions(l1=0.0)


@pytest.mark.parametrize("kind", [CrispTreeRegressor, CrispSegmenter])
def test_an_estimator_refuses_training_options_that_it_has_no_use_for(kind):
    X = np.zeros((8, 8))
    with pytest.raises(ValueError, match="`algorithm` must be one of 'em', 'alternating', 'likelihood'; got 'sgd'"):
        kind(training=TrainingOptions(algorithm="sgd")).fit(X, X[:, 0] if kind is CrispTreeRegressor else X)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("epochs", "it is a training option: training=TrainingOptions(epochs=...)"),
        ("prune", "it is called 'ccp_alpha' now: ccp_alpha=..."),
        ("shifts", "it is called 'max_shift' now: training=TrainingOptions(max_shift=...)"),
    ],
)
def test_parameters_of_earlier_versions_name_their_new_place(name, words):
    with pytest.raises(TypeError, match=re.escape(f"CrispTreeClassifier() has no parameter {name!r}; {words}")):
        CrispTreeClassifier(**{name: 1})


def test_a_copy_has_the_same_parameters():
    model = CrispTreeClassifier(max_depth=3, l1=0.5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "CrispTreeClassifier(l1=0.5, max_depth=3)"


def test_an_unknown_parameter_lists_the_known_ones():
    with pytest.raises(TypeError, match=r"CrispTreeClassifier\(\) has no parameter 'color'; it has split, "):
        CrispTreeClassifier(color=3)


def test_a_misspelt_parameter_gets_a_suggestion():
    with pytest.raises(TypeError, match=r"has no parameter 'maxdepth'; .* Did you mean 'max_depth'\?"):
        CrispTreeClassifier(maxdepth=3)


def test_flags_are_unique():
    for kind in ESTIMATORS:
        with_flag = [declared for declared in kind.declared_parameters().values() if declared.flag]
        assert len({declared.flag for declared in with_flag}) == len(with_flag)
        assert all(declared.help for declared in with_flag)


def test_later_parameters_declare_their_earlier_value():
    assert ClassifierParameters.declared_parameters()["learning_rate_decay"].before == "none"
    assert ClassifierParameters.declared_parameters()["epochs"].before is NEVER


def test_every_word_is_known_where_it_is_used():
    from crisptree.data.raw_rows import SCALES
    from crisptree.equations.annealing import DECAYS, SCHEDULES
    from crisptree.learning.fitting import GROWERS
    from crisptree.learning.loop import ALGORITHMS
    from crisptree.splits import KINDS, MODULES

    words = {
        name: set(declared.rule.words)
        for name, declared in ClassifierParameters.declared_parameters().items()
        if declared.rule
    }
    assert words["algorithm"] == set(ALGORITHMS)
    assert words["grow"] == set(GROWERS)
    assert words["annealing"] == set(SCHEDULES)
    assert words["learning_rate_decay"] == set(DECAYS)
    assert words["scale"] == {*SCALES, "auto"}
    assert words["split"] == {*KINDS, *MODULES, "auto"}


def test_a_new_parameter_is_one_declaration():
    @declare_parameters
    class OwnParameters(ClassifierParameters):
        patience: int = parameter(default=3, kind="int", doc="Days.", rule=whole(1), flag="--patience", before=2)

    class PatientTree(OwnParameters, CrispTreeClassifier):
        """A tree.

        Parameters
        ----------
        {parameters}
        """

    assert PatientTree(patience=5).get_params()["patience"] == clone(PatientTree(patience=5)).patience == 5
    assert "patience : int, default=3" in PatientTree.__doc__
    assert parameter_options(OwnParameters)["patience"].argument.name == "patience"
    with pytest.raises(ValueError, match="`patience` must be a whole number of at least 1; got 0"):
        PatientTree(patience=0).fit(*clouds(20))


BOOLEANS = {
    "warm_start": lambda value: CrispTreeClassifier(warm_start=value).fit(*clouds(20)),
    "early_stopping": lambda value: CrispTreeClassifier(training=TrainingOptions(early_stopping=value)).fit(
        *clouds(20)
    ),
    "normalise_images": lambda value: CrispSegmenter(normalise_images=value).fit(np.zeros((8, 8)), np.zeros((8, 8))),
    "bootstrap": lambda value: CrispForestClassifier(bootstrap=value).fit(*clouds(20)),
    "resume": lambda value: CrispTreeClassifier().fit(*clouds(20), checkpoint="folder", resume=value),
    "keep_constant": lambda value: TableEncoder(keep_constant=value).fit({"a": ["x", "y"]}),
}


@pytest.mark.parametrize("wrong", [2.0, 1, 0, "True"])
@pytest.mark.parametrize("name", BOOLEANS)
def test_boolean_parameters_take_booleans_only(name, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"`{name}` must be .*True or False; got {wrong!r}"):
        BOOLEANS[name](wrong)
    assert not list(tmp_path.iterdir())
