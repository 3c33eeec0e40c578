import numpy as np
import pytest
from experiments.store import as_json, store_of
from experiments.trees import train_on
from sklearn.datasets import load_digits

from crisptree import CrispTreeClassifier
from experiments import methods, provenance


def test_a_parameter_that_came_later_stands_in_a_cell_only_where_it_changes_the_training():
    assert "learning_rate_decay" not in methods.parameters(CrispTreeClassifier.paper())
    falling = methods.parameters(CrispTreeClassifier.paper(learning_rate_decay="linear"))
    assert falling["learning_rate_decay"] == "linear"
    assert "max_depth" in methods.parameters(CrispTreeClassifier.paper())


@pytest.mark.parametrize("name", methods.BASELINES)
def test_baselines_keep_the_settings_of_their_cells(name):
    model = methods.baseline(name, depth=4, epochs=3, seed=0, bounded=methods.Bounded(1.0))
    assert (model.flat_parameters()["learning_rate"], model.flat_parameters()["learning_rate_decay"]) == (0.02, "none")


@pytest.mark.parametrize("name", ["greedy_em", "finetuned_em", "continued_em", *methods.BASELINES, methods.SOFT])
def test_a_new_parameter_makes_no_finished_cell_run_again(name):
    """The parameters that cells have; one that comes later belongs into EARLIER_DEFAULTS."""
    found = store_of("paper", provenance.RESULTS / "paper", "mnist").records(method=name, kind="cell")
    assert found
    for record in found:
        values, depth, seed = record["config"]["parameters"], record["depth"], record["seed"]
        if name in methods.BASELINES:
            bounded = methods.Bounded(values.get("nu"), values["learning_rate"])
            model = methods.baseline(name, depth, values["epochs"], seed, bounded)
        elif name == methods.SOFT:
            model = methods.soft(depth, values["finetune_epochs"], seed)
        else:
            model = methods.ours(name, depth, values["epochs"], values["finetune_epochs"], seed)
        assert as_json(methods.parameters(model)) == methods.comparable(record)["parameters"]


@pytest.mark.parametrize("name", methods.BASELINES)
def test_what_baselines_leave_to_a_fit_selects_nothing(name):
    """Cells of baselines with "auto" for these parameters are those with the values that stand there now."""
    X, y = load_digits(return_X_y=True)
    rows = X[:600].astype(np.float32), y[:600]

    def train(**changes):
        start = methods.baseline("co2" if name == "non_greedy" else name, 3, 3, 0)
        model = start.set_params(**changes).fit(*rows)
        if name == "non_greedy":
            like = methods.baseline(name, 3, 3, 0, methods.Bounded(43.0)).set_params(**changes)
            model = train_on(model, like, rows)
        return model

    flat = CrispTreeClassifier().get_params(deep=False)
    fixed = train()
    free = train(**{option if option in flat else f"training__{option}": "auto" for option in methods.UNUSED})
    np.testing.assert_array_equal(fixed.tree_.weight, free.tree_.weight)
    np.testing.assert_array_equal(fixed.predict_proba(X), free.predict_proba(X))


def test_the_share_of_penalties_stands_in_a_cell_only_where_there_are_penalties():
    assert "penalty_share" not in methods.parameters(CrispTreeClassifier.paper())
    assert methods.parameters(CrispTreeClassifier.paper(spatial_penalty=0.1))["penalty_share"] == "none"
