"""Two synthetic data sets of the shape of SensIT and Protein, for users without their files.

They are **not** SensIT and Protein, and no claim of the paper is tested on them; titles say “made”. What they share is
the shape: 100 dense features that follow one another, and 357 = 17 × 21 of which one in 21 is 1; three classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crisptree.datasets import LOADERS as PUBLISHED
from crisptree.datasets import Dataset

N_TRAIN, N_VALID, N_TEST = 12_000, 3_000, 5_000
SEED = 2017

SERIES, LENGTH, FOLLOWS = 2, 50, 0.8
KINDS, APART = 4, 0.45
SITES, LETTERS, WIDTH, LEAN = 17, 21, 4.0, 0.55
SHARES = (0.25, 0.25, 0.5)
"""Of the three classes."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def made_sensors() -> Dataset:
    """Two series of 50 values each: a row of class k is one of 4 kinds, x = m_kj + e.

    The kinds' means m_kj are smooth random curves, N(0, 0.45²) at each value; the noise e is N(0, 1), and neighbours in
    a series are correlated by 0.8: e_t = 0.8 e_(t−1) + 0.6 N(0, 1).

    Examples
    --------
    >>> made_sensors().X_train.shape
    (12000, 100)
    """
    random = np.random.default_rng(SEED)
    y = _labels(random)
    kind = random.integers(KINDS, size=len(y))
    means = APART * _follow(random.normal(size=(3, KINDS, SERIES, LENGTH)))
    noise = _follow(random.normal(size=(len(y), SERIES, LENGTH)))
    return _in_parts((means[y, kind] + noise).reshape(len(y), -1).astype(np.float32), y)


def made_sequences() -> Dataset:
    """Seventeen letters of 21, each as 21 features of which one is 1.

    A letter a at a site at distance d from the middle has the probability softmax(c_a + 0.55 exp(−d / 4) b_ka) in class
    k, with c and b from N(0, 1): sites in the middle say most of the class.

    Examples
    --------
    >>> made = made_sequences()
    >>> made.X_train.shape, float(made.X_train[0].sum())
    ((12000, 357), 17.0)
    """
    random = np.random.default_rng(SEED + 1)
    y = _labels(random)
    common, own = random.normal(size=LETTERS), random.normal(size=(3, LETTERS))
    weight = LEAN * np.exp(-np.abs(np.arange(SITES) - SITES // 2) / WIDTH)
    logits = common + weight[:, None] * own[:, None, :]
    # The largest of logits with Gumbel noise is a draw from their softmax.
    letters = (logits[y] + random.gumbel(size=(len(y), SITES, LETTERS))).argmax(axis=2)
    return _in_parts(np.eye(LETTERS, dtype=np.float32)[letters].reshape(len(y), -1), y)


LOADERS: dict[str, Callable[..., Dataset]] = {
    **PUBLISHED,
    "made_sensors": made_sensors,
    "made_sequences": made_sequences,
}
"""All data sets that an experiment may name."""


def _labels(random: np.random.Generator) -> Ints:
    return random.choice(3, size=N_TRAIN + N_VALID + N_TEST, p=SHARES)


def _follow(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Numbers of unit variance along the last axis, neighbours correlated."""
    found = values.copy()
    for place in range(1, values.shape[-1]):
        found[..., place] = FOLLOWS * found[..., place - 1] + np.sqrt(1 - FOLLOWS**2) * values[..., place]
    return found


def _in_parts(X: Floats, y: Ints) -> Dataset:
    first, second = N_TRAIN, N_TRAIN + N_VALID
    parts = (slice(None, first), slice(first, second), slice(second, None))
    return Dataset(*(array[part] for part in parts for array in (X, y)), class_names=("a", "b", "c"))
