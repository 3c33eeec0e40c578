import pytest

from crisptree.equations.annealing import SCHEDULES
from crisptree.learning.options import Plan


def test_the_papers_schedule_adds_a_tenth_per_epoch():
    assert [Plan().steepness_at(epoch) for epoch in (0, 1, 10)] == pytest.approx([1.0, 1.1, 2.0])


def test_the_geometric_schedule_multiplies():
    plan = Plan(annealing="geometric", steepness=2.0, steepness_step=0.5)
    assert [plan.steepness_at(epoch) for epoch in range(3)] == pytest.approx([2.0, 3.0, 4.5])


@pytest.mark.parametrize("name", SCHEDULES)
def test_steepness_never_falls(name):
    plan = Plan(annealing=name)
    values = [plan.steepness_at(epoch) for epoch in range(50)]
    assert values == sorted(values)
    assert plan.final_steepness == plan.steepness_at(plan.epochs - 1)
