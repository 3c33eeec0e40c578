import pytest
from experiments.store import as_json, store_of

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


def test_a_new_parameter_makes_no_finished_cell_run_again():
    """The parameters that cells of the paper's protocol have; one that comes later belongs into EARLIER_DEFAULTS."""
    record = store_of("paper", provenance.RESULTS / "paper", "mnist").records(method="finetuned_em", kind="cell")[0]
    epochs, more = (record["config"]["parameters"][name] for name in ("epochs", "finetune_epochs"))
    model = methods.ours("finetuned_em", record["depth"], epochs, more, record["seed"])
    assert as_json(methods.parameters(model)) == record["config"]["parameters"]


def test_the_share_of_penalties_stands_in_a_cell_only_where_there_are_penalties():
    assert "penalty_share" not in methods.parameters(CrispTreeClassifier.paper())
    assert methods.parameters(CrispTreeClassifier.paper(spatial_penalty=0.1))["penalty_share"] == "none"
