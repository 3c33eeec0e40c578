"""Regression data for bench_regression.py: scikit-learn's, synthetic house prices, and each of them rotated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.model_selection import train_test_split

Doubles = npt.NDArray[np.float64]
Rows = tuple[Doubles, Doubles]

TURNED = ", rotated"


def houses(n: int, seed: int) -> Rows:
    """Numbers like those of house prices: income, age and size of houses, and how far the coast and two towns are."""
    rng = np.random.default_rng(seed)
    towns = np.array([[-1.5, 1.0], [1.0, -1.2]])
    place = np.where(rng.random((n, 1)) < 0.7, towns[rng.integers(2, size=n)], 0.0) + rng.normal(size=(n, 2))
    income, age = rng.gamma(3.0, 1.3, n), rng.uniform(1, 52, n)
    rooms = 4 + 0.4 * income + rng.normal(size=n)
    bedrooms, people = rooms / 5 + 0.1 * rng.normal(size=n), 3 + rng.exponential(0.8, n)
    crowd = rng.lognormal(7, 0.7, n)
    far = np.sqrt(((place[:, None] - towns) ** 2).sum(axis=2)).min(axis=1)
    coast = place[:, 0] + 0.8 * place[:, 1]
    price = (
        0.45 * income + 1.2 * np.exp(-far) - 0.35 * coast * (coast > 0) + 0.01 * age * (far < 1) - 0.3 * (people - 3)
    )
    price = np.minimum(np.exp(0.25 * price) + 0.25 * rng.normal(size=n), 5.0)
    return np.column_stack([income, age, rooms, bedrooms, crowd, people, place]), price


def rotated(X: Doubles, seed: int) -> Doubles:
    """Standardised columns, turned."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1], X.shape[1])))[0]
    return (X - X.mean(axis=0)) / X.std(axis=0) @ turn


FRIEDMAN: dict[str, tuple[Callable[..., Rows], float]] = {
    "friedman1": (make_friedman1, 1.0),
    "friedman2": (make_friedman2, 100.0),
    "friedman3": (make_friedman3, 0.1),
}
"""Functions and the noise on them."""

NAMES = [name + turned for name in ("diabetes", *FRIEDMAN, "houses") for turned in ("", TURNED)]


def parts(name: str, seed: int, n_made: int, n_houses: int) -> tuple[Any, ...]:
    """Training and test rows and numbers of a set, drawn by the seed: half of each, of houses four fifths to train."""
    plain = name.removesuffix(TURNED)
    if plain == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    elif plain == "houses":
        X, y = houses(n_houses, seed)
    else:
        make, noise = FRIEDMAN[plain]
        X, y = make(2 * n_made, noise=noise, random_state=seed)
    X = rotated(X, seed) if name.endswith(TURNED) else X
    share = 0.5 if plain != "houses" else 0.2
    return tuple(train_test_split(X.astype(np.float32), y, test_size=share, random_state=seed))
