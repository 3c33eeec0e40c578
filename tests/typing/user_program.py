"""A typed program that uses every estimator and every fitted attribute: type checkers accept it, and it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch.utils.data import DataLoader, TensorDataset

import crisptree
from crisptree import (
    Batches,
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
from crisptree.typing import ArrayLike, MatrixLike

Doubles = npt.NDArray[np.float64]


class ArrowTable:
    """A table of another library, known by Arrow's interface alone."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class OwnTree(CrispTreeClassifier):
    """Somebody's own estimator, with a fitted attribute of its own."""

    n_rows_: int

    def fit_and_count(self, X: npt.NDArray[Any], y: ArrayLike) -> OwnTree:
        self.fit(X, y)
        self.n_rows_ = len(X)
        return self


def quick_tree() -> CrispTreeClassifier:
    return CrispTreeClassifier(
        split="oblique",
        max_depth=1,
        training=TrainingOptions(epochs=1, finetune_epochs=1),
        l1=0.0,
        input_noise=0.0,
        shrinkage=0,
        random_state=0,
    )


def rows() -> tuple[Doubles, npt.NDArray[np.int64]]:
    X = np.random.default_rng(0).normal(size=(40, 2))
    return X, (X[:, 0] > 0).astype(np.int64)


def score_of(X: MatrixLike, y: ArrayLike) -> float:
    """Whoever hands X and y on can say what they are."""
    model = quick_tree().fit(X, y)
    return float(model.score(X, y))


def use_containers() -> None:
    X, y = rows()
    columns = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    frame, table = pd.DataFrame(columns), pa.table(columns)
    containers: list[MatrixLike] = [X, X.tolist(), X.astype(np.float32), sparse.csr_array(X), frame, table, columns]
    containers += [pl.DataFrame(columns), ArrowTable(table), torch.from_numpy(X)]
    containers += [sparse.csr_matrix(X), sparse.csc_matrix(X), sparse.coo_array(X)]
    for container in containers:
        assert len(quick_tree().fit(container, y).predict(container)) == len(y)
    quick_tree().fit(sparse.csr_matrix(X), y).predict_proba(sparse.csr_array(X))
    quick_tree().fit([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    quick_tree().fit([[1.0, "red"], [None, "blue"]], [0, 1])
    for labels in (y, y.tolist(), pd.Series(y), pl.Series(y), y > 0, y.astype(str)):
        quick_tree().fit(X, labels, sample_weight=[1.0] * len(y), eval_set=(sparse.csr_matrix(X).toarray(), labels))
    assert score_of(frame, pd.Series(y)) > 0.5


def use_batches() -> None:
    X, y = rows()

    def begin() -> Iterator[tuple[Doubles, npt.NDArray[np.int64]]]:
        yield X, y

    dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    quick_tree().fit(Batches.from_arrays(X, y))
    quick_tree().fit(begin)
    quick_tree().fit(dataset)
    quick_tree().fit(DataLoader(dataset, batch_size=20))


def use_classifier(folder: Path) -> None:
    X, y = rows()
    model = CrispTreeClassifier(
        split=lambda shape: torch.nn.Linear(shape[0], 1),
        max_depth=1,
        training=TrainingOptions(epochs=1, finetune_epochs=1, callbacks=[lambda record: str(record)]),
        class_weight={0: 1, 1: 2},
        random_state=np.random.RandomState(0),
    )
    model.fit(X, y, checkpoint=folder / "checkpoint", checkpoint_every=60)
    given: dict[str, float] = {"no": 1.0, "yes": 2.0}
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    named = np.where(y, "yes", "no")
    model = quick_tree().set_params(class_weight=given, max_depth=None).fit(frame, named)
    model = CrispTreeClassifier.paper(max_depth=1, epochs=1, finetune_epochs=1, random_state=0).fit(
        frame, pd.Series(named, name="bought")
    )
    classes: npt.NDArray[Any] = model.classes_
    chosen: dict[str, Any] = model.best_params_
    stopped: int = quick_tree().set_params(training__early_stopping=True).fit(X, y).best_iteration_
    assert stopped >= 0
    shrinkage: float = model.shrinkage_
    shape: tuple[int, ...] | None = model.image_shape_
    n_features: int = model.n_features_in_
    names: npt.NDArray[Any] = model.feature_names_in_
    target: str = model.target_name_
    losses: list[float] = [record.loss for record in model.history_]
    trials = [trial.score for trial in model.cv_results_]
    n_candidates: int = model.n_candidates_
    assert n_candidates == 0
    assert (classes.tolist(), shrinkage, shape, n_features) == (["no", "yes"], 0.0, None, 2)
    assert (names.tolist(), target, bool(losses), chosen, trials) == (["a", "b"], "bought", True, {}, [])
    assert model.tree_.structure.n_leaves == model.greedy_tree_.structure.n_leaves == model.get_n_leaves()
    predicted: npt.NDArray[Any] = model.predict(frame)
    probabilities: Doubles = model.predict_proba(frame)
    logarithms: Doubles = model.predict_log_proba(frame)
    soft: Doubles = model.soft_predict_proba(frame, steepness=2.0)
    leaves: npt.NDArray[np.int64] = model.leaf_indices(frame)
    assert len(predicted) == len(probabilities) == len(logarithms) == len(soft) == len(leaves)
    importances: Doubles = model.feature_importances_
    assert len(importances) == 2
    assert model.truncate(0).get_depth() == 0
    assert model.prune(0.0).before_finetuning().get_depth() == model.get_depth() == 1
    assert len(model.cost_complexity_pruning_path().ccp_alphas) > 0
    assert quick_tree().partial_fit(X, y, classes=[0, 1]).partial_fit(X, y, decay=0.5).get_depth() == 1
    assert quick_tree().distill(model, frame, copies=1).get_depth() == 1
    numbered = quick_tree().fit(pd.DataFrame(X), y)
    labels: list[Any] = numbered.column_labels_
    assert labels == [0, 1]
    assert OwnTree(max_depth=1, training=TrainingOptions(epochs=1), random_state=0).fit_and_count(X, y).n_rows_ == 40
    assert len({model: "a model is hashable", numbered: "this one too"}) == 2


def use_regressor() -> None:
    X, y = rows()
    model = CrispTreeRegressor(
        split="oblique",
        max_depth=1,
        training=TrainingOptions(epochs=1, finetune_epochs=1, steepness_step=0.1),
        l1=0,
        input_noise=0,
        random_state=0,
    )
    model.fit(X, y.astype(np.float64), eval_set=(X, y))
    n_outputs: int = model.n_outputs_
    mean: Doubles = model.predict(X)
    std: Doubles = model.predict_std(X)
    low, high = model.predict_interval(X, coverage=0.5)
    scale: float = model.interval_scale_
    score: float = model.score(X, y)
    assert n_outputs == 1
    assert scale >= 1
    assert mean.shape == std.shape == low.shape == high.shape
    assert score == float(model.score(X.tolist(), y.tolist()))
    assert model.soft_predict(X).shape == mean.shape
    assert model.tree_.structure.n_leaves == model.greedy_tree_.structure.n_leaves
    assert (model.image_shape_, model.n_features_in_) == (None, 2)
    assert isinstance(model.best_params_, dict)
    assert isinstance(model.cv_results_, list)
    assert model.shrinkage_ >= 0.0
    assert len(model.history_) > 0


def use_tables() -> None:
    table = {"age": [41, None, 12, 30], "plan": ["basic", "gold", "basic", "gold"]}
    model = quick_tree().fit(table, [True, False, True, False])
    encoder: TableEncoder = model.encoder_
    notes: list[str] = encoder.notes_
    encoded: npt.NDArray[np.float32] = encoder.transform(table)
    assert encoded.shape == (4, len(encoder.get_feature_names_out()))
    assert encoder.n_features_in_ == len(encoder.feature_names_in_) == 2
    assert isinstance(notes, list)
    pipeline = make_pipeline(TableEncoder(categorical=["plan"], drop=("age",)), quick_tree())
    pipeline.fit(table, [1, 0, 1, 0])


def use_forests() -> None:
    X, y = rows()
    forest = CrispForestClassifier(
        n_estimators=2,
        split="oblique",
        max_depth=1,
        training=TrainingOptions(epochs=1, finetune_epochs=1),
        l1=0.0,
        input_noise=0.0,
        random_state=0,
    )
    forest.fit(pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), y.tolist())
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    classes: npt.NDArray[Any] = forest.classes_
    unseen: Doubles = forest.oob_decision_function_
    score: float = forest.oob_score_
    trees: list[CrispTreeClassifier] = forest.estimators_
    assert (len(classes), unseen.shape, len(trees), len(forest)) == (2, (40, 2), 2, 2)
    assert 0.0 <= score <= 1.0
    assert len(forest.forest_.trees) == 2
    assert (forest.best_params_, forest.cv_results_, forest.image_shape_, forest.n_features_in_) == ({}, [], None, 2)
    assert forest.feature_names_in_.tolist() == ["a", "b"]
    assert len(forest.history_) > 0
    assert len(forest.predict(frame)) == len(forest.predict_proba(frame))
    assert forest.tree(0).get_depth() == 1
    assert forest.to_tree(frame, max_depth=1, copies=0).get_depth() == 1
    table = {"age": [41, None, 12, 30] * 4, "plan": ["basic", "gold", "basic", "gold"] * 4}
    assert forest.set_params(max_depth="auto").fit(table, [1, 0, 1, 0] * 4).encoder_.n_features_in_ == 2

    numbers = CrispForestRegressor(
        n_estimators=2,
        split="oblique",
        max_depth=1,
        training=TrainingOptions(epochs=1, finetune_epochs=1),
        l1=0.0,
        input_noise=0.0,
        random_state=0,
    ).fit(X, y)
    n_outputs: int = numbers.n_outputs_
    guesses: Doubles = numbers.oob_prediction_
    regressors: list[CrispTreeRegressor] = numbers.estimators_
    assert (n_outputs, len(guesses), len(regressors)) == (1, 40, 2)
    assert numbers.oob_score_ <= 1.0
    assert len(numbers.forest_.trees) == 2
    assert (numbers.cv_results_, numbers.image_shape_, numbers.n_features_in_) == ([], None, 2)
    assert isinstance(numbers.best_params_, dict)
    assert len(numbers.history_) > 0
    assert len(numbers.predict(X)) == len(numbers.predict_interval(X)[0]) == 40
    assert isinstance(numbers.score(X, y), float)


def use_pixels() -> None:
    image = np.random.default_rng(0).normal(size=(12, 12))
    segmenter = CrispSegmenter(
        window=3, scales=(1,), max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=1), random_state=0
    )
    segmenter.fit([image], [image > 0])
    classes: npt.NDArray[Any] = segmenter.classes_
    channels: int | None = segmenter.channels_
    looks_at: tuple[int, tuple[int, ...], bool, int] = segmenter.looks_at_
    assert (len(classes), channels, looks_at) == (2, None, (3, (1,), False, 1))
    assert (segmenter.earlier_trees_, segmenter.image_shape_, segmenter.n_features_in_) == ([], (3, 3), 9)
    assert segmenter.tree_.structure.n_leaves == segmenter.greedy_tree_.structure.n_leaves
    assert segmenter.predict(image).shape == image.shape
    assert len(segmenter.history_) > 0
    regressor = CrispPixelRegressor(
        window=3, max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=1), random_state=0
    )
    regressor.fit([image], [image * 2])
    n_outputs: int = regressor.n_outputs_
    assert (n_outputs, regressor.channels_, regressor.looks_at_) == (1, None, (3, (1,), False, 1))
    assert (regressor.earlier_trees_, regressor.image_shape_, regressor.n_features_in_) == ([], (3, 3), 9)
    assert regressor.tree_.structure.n_leaves == regressor.greedy_tree_.structure.n_leaves
    assert len(regressor.history_) > 0
    assert regressor.predict(image).shape == image.shape


def use_the_rest(folder: Path) -> None:
    X, y = rows()
    model = quick_tree().fit(X, y)
    model.save(folder / "model.crisp")
    loaded = crisptree.load(folder / "model.crisp")
    assert isinstance(loaded, CrispTreeClassifier)
    assert loaded.predict_proba(X).shape == (40, 2)
    path = model.explain(X[0])
    assert path.steps[0].pushes[0].name == explain.path(model, X[0]).steps[0].pushes[0].name
    assert path.leaf == int(model.leaf_indices(X[:1])[0])
    other = explain.find_counterfactual(model, X[0])
    assert other is None or other.distance > 0
    assert len(explain.feature_importances(model)) == 2
    text: str = export.text(model)
    program: str = export.c(model)
    document: str = export.json(model)
    statement: str = export.sql(model, table="rows")
    assert all([text, program, document, statement, export.dot(model), export.js(model)])
    assert str(export.check(model, X, to="json"))
    assert len(cross_val_score(quick_tree(), X, y, cv=2)) == 2


def main(folder: Path) -> None:
    use_containers()
    use_batches()
    use_classifier(folder)
    use_regressor()
    use_tables()
    use_forests()
    use_pixels()
    use_the_rest(folder)
