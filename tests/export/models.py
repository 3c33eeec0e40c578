"""Models for every export: all kinds of splits, columns and labels, names that want to be code among them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 4, "epochs": 3, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}
HOSTILE = ('"; system("x', "'; DROP TABLE rows; --", "</script><script>alert(1)</script>", "*/ int x; /*", "${x}`\\")
"""Class and column names that must stay nothing but strings."""

HOSTILE_COLUMNS = (*HOSTILE, "\u2028 line\nend", "ü\\x", "??/", "")


def numbers(n=400, n_features=40, n_classes=4, labels=None, **changes):
    """Rows of numbers. (model, X)"""
    X, y = clouds(n, n_features=n_features, n_classes=n_classes)
    y = y if labels is None else np.asarray(labels)[y]
    return plain_tree(**QUICK | changes).fit(X, y), X


def thresholds(n=400, n_features=6, n_classes=4, labels=None):
    """CART's thresholds. (model, X)"""
    return numbers(n, n_features, n_classes, labels, split="axis", grow="cart", finetune_epochs=0)


def table(n=400, seed=0, names=("age", "income", "plan", "member"), levels=("basic", "gold", "1")):
    """A table with all kinds of columns and holes. (columns, labels)"""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(18, 80, n).astype(float), rng.lognormal(8, 0.5, n)
    plan, member = rng.choice(np.array([*levels, None], dtype=object), n), rng.random(n) < 0.4
    wish = income / 4000 + (plan == levels[1]) + np.where(member, 1.5, age / 40) + (plan == None)  # noqa: E711
    holes = rng.random(n) < 0.2
    wish += 2 * holes
    age = [None if hole else value for hole, value in zip(holes, age.tolist(), strict=True)]
    columns = dict(zip(names, (age, income.tolist(), plan.tolist(), member.tolist()), strict=True))
    return columns, np.where(wish > np.median(wish), "yes", "no")


def of_table(n=400, labels=None, **changes):
    """A model of such a table. (model, columns); ``names`` and ``levels`` as there"""
    given = {name: changes.pop(name) for name in ("names", "levels") if name in changes}
    columns, y = table(n, **given)
    if labels is not None:
        y = np.where(y == "yes", labels[0], labels[1])
    parameters = {"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
    return CrispTreeClassifier.from_flat(**parameters | QUICK | changes).fit(columns, y), columns


def rough_rows(model, n=20_000, seed=1):
    """Rows of numbers of very different sizes, some of them on the thresholds themselves.  (n, n_features), float64"""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, model.tree_.n_features)) * 10.0 ** rng.integers(-3, 4, (n, 1))
    for split in range(model.tree_.structure.n_splits):
        weight = model.tree_.weight[split].astype(np.float64)
        used = np.flatnonzero(weight)
        if len(used) == 1:
            limit = np.float32(-model.tree_.bias[split] / weight[used[0]])
            around = [limit, np.nextafter(limit, np.float32(9e9)), np.nextafter(limit, np.float32(-9e9))]
            X[3 * split : 3 * split + 3, used[0]] = around
            X[600 + split, used[0]] = (float(around[0]) + float(around[1])) / 2  # rounds to one of them
    return X


def of_numbers(estimator=CrispTreeRegressor, n_outputs=1, n_features=35, **parameters):
    """A regressor of thousands, one number for every row or two. (model, X)"""
    X = np.random.default_rng(0).normal(size=(300, n_features)).astype(np.float32)
    bent = X[:, 0] + X[:, 1] * (X[:, 2] > 0)
    y = 1000 * np.stack([bent, X[:, 2] * X[:, 3]], axis=1)[:, :n_outputs]
    return estimator.from_flat(**parameters).fit(X, y[:, 0] if n_outputs == 1 else y), X


PROGRAMS = {"js": ("node", "Node.js is not installed"), "c": ("cc", "needs a C compiler")}


def skip_unless_it_runs(to):
    """Skip a test whose export has nothing on this machine that runs it."""
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    program, reason = PROGRAMS.get(to, ("", ""))
    if program and shutil.which(program) is None:
        pytest.skip(reason)
