import pytest

from crisptree import CrispTreeClassifier
from experiments import methods


def test_a_parameter_that_came_later_stands_in_a_cell_only_where_it_changes_the_training():
    assert "learning_rate_decay" not in methods.parameters(CrispTreeClassifier.paper())
    falling = methods.parameters(CrispTreeClassifier.paper(learning_rate_decay="linear"))
    assert falling["learning_rate_decay"] == "linear"
    assert "max_depth" in methods.parameters(CrispTreeClassifier.paper())


@pytest.mark.parametrize("name", methods.RIVALS)
def test_rivals_keep_the_settings_of_their_cells(name):
    model = methods.rival(name, depth=4, epochs=3, seed=0, bounded=methods.Bounded(1.0))
    assert (model.learning_rate, model.learning_rate_decay) == (0.02, "none")
