"""The same training with one kind of steps and with another."""

from crisptree.learning import loop as training_loop
from tests.toys import generator


def trained(make, trainee, data, plan, monkeypatch):
    """The trainee after a training whose steps are ``make``'s."""
    monkeypatch.setattr(training_loop, "select_engine", lambda *arguments: make)
    training_loop.train(trainee, data, plan, generator=generator())
    return trainee


def largest_difference(one, other):
    """The largest difference of any weight, bias or leaf entry of two trainees."""
    pairs = [(one.splits.parameters[name], other.splits.parameters[name]) for name in ("weight", "bias")]
    return max((a - b).abs().max().item() for a, b in [*pairs, (one.leaves, other.leaves)])
