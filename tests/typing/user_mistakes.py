"""Mistakes that type checkers must see: a comment that ignores an error which is not reported is itself an error."""

from __future__ import annotations

from typing import Any

import numpy as np

import crisptree
from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispPixelRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    TableEncoder,
    TrainingOptions,
    explain,
    export,
)


def misspelt_parameters() -> None:
    CrispTreeClassifier(max_dept=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispTreeRegressor(max_dept=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispForestClassifier(n_trees=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispForestRegressor(n_trees=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispSegmenter(windows=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispPixelRegressor(windows=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    TableEncoder(categorial=["plan"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def parameters_of_others() -> None:
    CrispTreeRegressor(class_weight="balanced")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispTreeClassifier(n_estimators=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispTreeRegressor(n_outputs_=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    CrispTreeClassifier("oblique")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def parameters_of_other_types() -> None:
    CrispTreeClassifier(max_depth=2.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CrispTreeRegressor(training=TrainingOptions(steepness_step=None))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CrispForestClassifier(n_estimators=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CrispForestRegressor(bootstrap=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CrispSegmenter(window="large")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CrispPixelRegressor(scales=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def arguments(model: CrispTreeClassifier, X: np.ndarray[Any, Any]) -> None:
    model.fit(object(), [1, 2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model.fit(X, [1, 2], weights=[1, 1])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    model.predict(object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model.predict(X, 1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    model.truncate("2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model.save(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    crisptree.load(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    explain.path(model, X[0], tops=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    export.text(model, digits=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def results(model: CrispTreeClassifier, X: np.ndarray[Any, Any]) -> Any:
    labels: list[str] = model.predict(X)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    depth: str = model.get_depth()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    score: str = model.tree_  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return labels, depth, score


def attributes(regressor: CrispTreeRegressor, forest: CrispForestClassifier) -> Any:
    """What mypy cannot see, because estimators inherit from scikit-learn's, which has no types."""
    classes = regressor.classes_  # pyright: ignore[reportAttributeAccessIssue]
    unseen = forest.oob_decisionfunction_  # pyright: ignore[reportAttributeAccessIssue]
    return classes, unseen
