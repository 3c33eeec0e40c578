"""Small forests for tests."""

from crisptree import CrispForestClassifier, CrispForestRegressor
from crisptree.estimators.classifier import CrispTreeClassifier
from crisptree.selection.candidates import apply_selected

QUICK = {"epochs": 2, "finetune_epochs": 2, "min_updates": 10, "max_depth": 3, "random_state": 0, "device": "cpu"}
PLAIN = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "scale": "feature", **QUICK}
"""Nothing is chosen."""


def classifier(**changes):
    return CrispForestClassifier.from_flat(**PLAIN | {"n_estimators": 4} | changes)


def regressor(**changes):
    return CrispForestRegressor.from_flat(**PLAIN | {"n_estimators": 4} | changes)


def parameters(**changes):
    """The parameters of one tree with nothing left open."""
    model = CrispTreeClassifier.from_flat(**PLAIN | {"shrinkage": 0.0} | changes)
    return apply_selected(model.training_parameters(), {}, None)
