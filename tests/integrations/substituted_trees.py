"""Plugin of pytest that runs scikit-learn's tests of trees on ours: ``python -m pytest -p`` this module.

Its trees are those of thresholds that scikit-learn's CART grows, under the names of scikit-learn's classes. They accept
``criterion``, ``splitter`` and ``max_features``, so that a test gets past its constructor, and ignore them. Outcomes of
the tests that make such a tree are written to the file that ``SUBSTITUTED_OUTCOMES`` names.
"""

import importlib
import json
import os
from pathlib import Path

import sklearn.tree

from crisptree import CrispTreeClassifier, CrispTreeRegressor, TrainingOptions
from crisptree.parameters.estimators import ClassifierParameters, RegressorParameters
from crisptree.parameters.training import declare_parameters, parameter, redeclare

THRESHOLDS = {"split": "axis", "leaf_model": "constant", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
OPTIONS = ("min_samples_split", "min_impurity_decrease")
"""Parameters of scikit-learn's that are training options here."""

outcomes: dict[str, str] = {}
running: list[str] = [""]
makers: set[str] = set()
"""Tests that made one of our trees."""


def substitute(ours, base, theirs):
    """Make a subclass of one of our estimators with the signature and defaults of one of scikit-learn's."""
    signature = theirs().get_params()
    own = {
        name: redeclare(base, name, default=THRESHOLDS.get(name, signature.get(name)))
        for name in base.PARAMETERS
        if name in signature or name in THRESHOLDS
    }
    own |= {name: parameter(default=value) for name, value in signature.items() if name not in base.PARAMETERS}
    declared = declare_parameters(type(f"{ours.__name__}Parameters", (base,), own))

    def training_parameters(self):
        options = {name: getattr(self, name) for name in OPTIONS}
        twin = ours(**{name: getattr(self, name) for name in base.PARAMETERS})
        twin.training = TrainingOptions(grow="cart", finetune_epochs=0, **options)
        return twin.training_parameters()

    def init(self, **parameters):
        makers.add(running[0])
        declared.__init__(self, **parameters)

    init.__signature__ = declared.__init__.__signature__
    name = theirs.__name__
    body = {"training_parameters": training_parameters, "__init__": init, "__module__": __name__, "__qualname__": name}
    return type(name, (declared, ours), body)


DecisionTreeClassifier = substitute(CrispTreeClassifier, ClassifierParameters, sklearn.tree.DecisionTreeClassifier)
DecisionTreeRegressor = substitute(CrispTreeRegressor, RegressorParameters, sklearn.tree.DecisionTreeRegressor)


def pytest_configure():
    """Import the tests while scikit-learn's names stand for our classes, which use scikit-learn's own themselves."""
    own = {name: getattr(sklearn.tree, name) for name in ("DecisionTreeClassifier", "DecisionTreeRegressor")}
    for name in own:
        setattr(sklearn.tree, name, globals()[name])
    importlib.import_module("sklearn.tree.tests.test_tree")
    for name, kind in own.items():
        setattr(sklearn.tree, name, kind)


def pytest_runtest_setup(item):
    running[0] = item.nodeid


def pytest_runtest_logreport(report):
    if report.when == "call":
        text = "" if report.passed else str(report.longrepr).strip().splitlines()[-1]
        error = next((line[2:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")), text)
        outcomes[report.nodeid] = "passed" if report.passed else error


def pytest_sessionfinish(session):
    named = {name.split("::")[-1]: outcomes[name] for name in outcomes if name in makers}
    Path(os.environ["SUBSTITUTED_OUTCOMES"]).write_text(json.dumps(named, indent=1))
