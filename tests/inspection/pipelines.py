"""Fitted Pipelines that end in one of our estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 2, "epochs": 3, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}


def tree(**changes):
    return plain_tree(**QUICK | changes)


def scaled(*, names=None, n_features=3, **changes):
    """A StandardScaler before the tree, fitted on an array or, with names, on a frame. (pipeline, X, y)"""
    X, y = clouds(120, n_features=n_features)
    X = X * 10.0 ** np.arange(n_features) + 5
    rows = X if names is None else pd.DataFrame(X, columns=names)
    return make_pipeline(StandardScaler(), tree(**changes)).fit(rows, y), rows, y


def shop():
    """Two numbers and a category in a frame. (pipeline, frame, labels)"""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 12, 150),
            "town": rng.choice(["Aa", "Bonn", "Cork"], 150),
            "income": rng.normal(3000, 900, 150),
        }
    )
    y = np.where((frame.age > 40) | (frame.town == "Bonn"), "buys", "leaves")
    encoder = ColumnTransformer(
        [("number", StandardScaler(), ["age", "income"]), ("category", OneHotEncoder(sparse_output=False), ["town"])]
    )
    return make_pipeline(encoder, tree()).fit(frame, y), frame, y
