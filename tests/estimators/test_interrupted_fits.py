"""An interrupted or failed fit leaves the earlier one unchanged."""

import sys

import numpy as np
import pytest

from crisptree import CrispSegmenter, CrispTreeClassifier
from crisptree.estimators import base, classifier, pixels
from tests.golden.cases import QUICK

FEW = {**QUICK, "max_depth": 1, "epochs": 1, "finetune_epochs": 1, "min_updates": 0, "device": "cpu"}
FILES = {module.__file__ for module in (base, classifier, pixels)}


def rows(width=3):
    X = np.random.default_rng(0).normal(size=(40, width))
    return X, (X[:, 0] > 0).astype(int)


def images(size=8):
    image = np.random.default_rng(0).normal(size=(size, size))
    return image, (image < np.roll(image, 1, axis=1)).astype(int)


MODELS = {
    "classifier": (lambda: CrispTreeClassifier.from_flat(**FEW), rows),
    "warm start": (lambda: CrispTreeClassifier.from_flat(**FEW, warm_start=True), rows),
    "segmenter": (lambda: CrispSegmenter.from_flat(**FEW, window=3), images),
}


class Broken(Exception):
    """What a callback raises."""


def fail(record):
    raise Broken


def interrupt(record):
    raise KeyboardInterrupt


WAYS = {
    "a refused parameter": (lambda model, data: model.set_params(max_depth=-1).fit(*data), ValueError),
    "a callback that is none": (lambda model, data: model.set_params(training__callbacks=[3]).fit(*data), Exception),
    "a callback that fails": (lambda model, data: model.set_params(training__callbacks=[fail]).fit(*data), Broken),
    "an interrupt": (
        lambda model, data: model.set_params(training__callbacks=[interrupt]).fit(*data),
        KeyboardInterrupt,
    ),
    "no labels": (lambda model, data: model.fit(data[0], None), (ValueError, TypeError)),
    "labels that are no numbers": (lambda model, data: model.fit(data[0], np.full(data[1].shape, np.nan)), ValueError),
    "values that are not finite": (lambda model, data: model.fit(np.full_like(data[0], np.inf), data[1]), ValueError),
    "a wrong validation": (lambda model, data: model.fit(*data, eval_set=(data[0], None)), (ValueError, TypeError)),
    "a device that is not there": (
        lambda model, data: model.set_params(training__device="meta:9").fit(*data),
        ValueError,
    ),
}


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def is_whole(model, before):
    now = learned(model)
    return now.keys() == before.keys() and all(now[name] is before[name] for name in before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was(kind, way):
    make, data = MODELS[kind]
    model = make().fit(*data())
    before, predicted = learned(model), model.predict(data()[0])
    do, error = WAYS[way]
    with pytest.raises(error):
        do(model, data())
    assert is_whole(model, before)
    assert np.array_equal(model.predict(data()[0]), predicted)


@pytest.mark.parametrize("kind", MODELS)
def test_an_estimator_that_was_never_fitted_stays_so_when_its_fit_fails(kind):
    make, data = MODELS[kind]
    model = make().set_params(training__callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data())
    assert not learned(model)


@pytest.mark.parametrize("kind", ["classifier", pytest.param("segmenter", marks=pytest.mark.slow)])
def test_an_interrupt_at_any_line_leaves_one_whole_fit(kind):
    make, data = MODELS[kind]
    model = make().fit(*data())
    for first in range(1000):
        before, lines = learned(model), 0

        def trace(frame, event, argument, first=first):
            nonlocal lines
            if frame.f_code.co_filename not in FILES:
                return None
            if event == "line":
                lines += 1
                if lines > first:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            model.fit(*data())
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        new = learned(model)
        assert is_whole(model, before) or not any(new[name] is before[name] for name in ("tree_", "greedy_tree_"))
        assert new.keys() == before.keys()
        model.predict(data()[0])
        if lines <= first:
            break
    assert first > 10


@pytest.mark.parametrize(("kind", "other"), [("classifier", 5), ("segmenter", 12)])
def test_the_earlier_fit_predicts_while_a_new_one_runs(kind, other):
    make, data = MODELS[kind]
    model, X = make().fit(*data()), data()[0]
    expected, before, seen = model.predict(X), learned(model), []

    def ask(record):
        seen.append(is_whole(model, before) and np.array_equal(model.predict(X), expected))

    model.set_params(training__callbacks=[ask]).fit(*data(other))
    assert set(seen) == {True}
