"""Data sets for comparisons: four that come with scikit-learn and seven made to favour one model or another.

The defaults were developed on those of ``DATA``; those of ``FURTHER`` took no part in that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)

Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Rows and labels, and one sentence on what they are."""

    make: Callable[[], tuple[npt.ArrayLike, npt.ArrayLike]]
    story: str

    def load(self) -> tuple[Rows, Labels]:
        """Load the rows in single precision, the same at every call."""
        X, y = self.make()
        return np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.int64)


def flipped(y: npt.NDArray[np.bool_], share: float, rng: np.random.Generator) -> Labels:
    """Labels of two classes, some of them turned over: the best possible accuracy is 1 − share."""
    return (y ^ (rng.random(len(y)) < share)).astype(np.int64)


def diagonal() -> tuple[Rows, Labels]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10)).astype(np.float32)
    return X, flipped(X.sum(axis=1) > 0, 0.05, rng)


def checkerboard() -> tuple[Rows, Labels]:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 4, size=(2000, 2)).astype(np.float32)
    return X, flipped(np.floor(X).sum(axis=1) % 2 == 1, 0.05, rng)


def xor() -> tuple[Rows, Labels]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 10)).astype(np.float32)
    return X, flipped((X[:, 0] > 0) ^ (X[:, 1] > 0), 0.05, rng)


def irrelevant() -> tuple[Rows, Labels]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 100)).astype(np.float32)
    return X, flipped((X[:, 0] > -0.5) & (X[:, 1] > -0.5), 0.05, rng)


def words() -> tuple[Rows, Labels]:
    """Word counts: each of four topics uses 15 of 500 words a little more often; most entries are zero."""
    rng = np.random.default_rng(4)
    y = rng.integers(4, size=1200)
    rates = np.full((4, 500), 0.02)
    for topic in range(4):
        rates[topic, 15 * topic : 15 * (topic + 1)] = 0.15
    return rng.poisson(rates[y]).astype(np.float32), y


def categories() -> tuple[Rows, Labels]:
    """Six columns of five levels, one-hot, and four numbers; rules of two or three columns decide."""
    rng = np.random.default_rng(5)
    levels, numbers = rng.integers(5, size=(2000, 6)), rng.normal(size=(2000, 4))
    favoured = (levels[:, 0] <= 1) & (numbers[:, 0] > -0.3)
    blocked = (levels[:, 1] == 3) | ((levels[:, 2] == 0) & (numbers[:, 1] > 0.8))
    rescued = (levels[:, 3] == 4) & (levels[:, 4] >= 3)
    X = np.concatenate([np.eye(5)[levels].reshape(len(levels), -1), numbers], axis=1)
    return X.astype(np.float32), flipped((favoured & ~blocked) | rescued, 0.05, rng)


DATA: dict[str, Data] = {
    "Iris": Data(lambda: load_iris(return_X_y=True), "Measurements of flowers; nearly linear."),
    "Wine": Data(lambda: load_wine(return_X_y=True), "Chemical analyses."),
    "Breast cancer": Data(lambda: load_breast_cancer(return_X_y=True), "Shapes of cell nuclei; correlated features."),
    "Digits": Data(lambda: load_digits(return_X_y=True), "Images of 8 × 8 pixels."),
    "Moons": Data(lambda: make_moons(1000, noise=0.25, random_state=0), "Two curved classes in the plane, noisy."),
    "Diagonal": Data(diagonal, "The sign of the sum of all features; 5 % of the labels are wrong."),
    "Checkerboard": Data(checkerboard, "4 × 4 squares in the plane; 5 % of the labels are wrong."),
    "XOR": Data(xor, "The signs of two of ten features differ; 5 % of the labels are wrong."),
    "Irrelevant features": Data(irrelevant, "Two thresholds and 98 features of noise; 5 % of the labels are wrong."),
    "Words": Data(words, "Counts of rare words, four topics; 97 % of the entries are zero."),
    "Categories": Data(categories, "Rules over six one-hot columns and four numbers; 5 % of the labels are wrong."),
}


def churn() -> tuple[Rows, Labels]:
    """Make a customer table: nearly linear in a few of its columns, and very noisy."""
    rng = np.random.default_rng(6)
    numbers, flags = rng.normal(size=(4000, 10)), rng.integers(2, size=(4000, 10))
    score = numbers[:, :4] @ [0.8, -0.6, 0.5, 0.4] + flags[:, :3] @ [0.7, -0.5, 0.4] + 0.4 * numbers[:, 0] * flags[:, 0]
    X = np.concatenate([numbers * rng.uniform(0.1, 100, 10), flags], axis=1)
    return X.astype(np.float32), (rng.random(4000) < 1 / (1 + np.exp(-score))).astype(np.int64)


def steps() -> tuple[Rows, Labels]:
    """Three classes by thresholds on three of eight features, one inside the other."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, size=(1500, 8)).astype(np.float32)
    y = np.where(X[:, 2] > 0.2, 2, np.where(X[:, 5] > -0.1, (X[:, 0] > 0).astype(int), 1))
    return X, np.where(rng.random(1500) < 0.05, rng.integers(3, size=1500), y)


FURTHER: dict[str, Data] = {
    "Churn": Data(churn, "A noisy, nearly linear customer table."),
    "Steps": Data(steps, "Nested thresholds, three classes; 5 % of the labels are random."),
    "Circles": Data(lambda: make_circles(1000, noise=0.15, factor=0.5, random_state=0), "A ring around a disc."),
    "Hastie": Data(lambda: _hastie(), "The sign of a sum of ten squares."),
    "Quantiles": Data(
        lambda: make_gaussian_quantiles(n_samples=1500, n_features=6, n_classes=4, random_state=0),
        "Shells around the origin, four classes.",
    ),
    "Clusters": Data(
        lambda: make_classification(
            3000, 30, n_informative=8, n_redundant=6, n_classes=5, n_clusters_per_class=2, random_state=0
        ),
        "Two clusters for each of five classes, and features of noise.",
    ),
}


def _hastie() -> tuple[Rows, Labels]:
    X, y = make_hastie_10_2(3000, random_state=0)
    return X, (y > 0).astype(np.int64)
