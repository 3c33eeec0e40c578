"""
New rows for a fitted tree
==========================

``partial_fit`` continues with new rows when the old ones are gone. Here the classes drift: a tree that is
updated daily follows them, one that is not loses accuracy.
"""

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispTreeClassifier

rng = np.random.default_rng(0)


def rows_of(day, n=500):
    """Two clouds that rotate around each other."""
    angle = 0.12 * day
    y = rng.integers(0, 2, n)
    center = np.stack([np.cos(angle + np.pi * y), np.sin(angle + np.pi * y)], axis=1)
    return center + 0.7 * rng.normal(size=(n, 2)), y


settings = {"split": "oblique", "max_depth": 3, "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0, "random_state": 0}
fixed, updated = (CrispTreeClassifier(**settings).partial_fit(*rows_of(0), classes=[0, 1]) for _ in range(2))
scores = {"never updated": [], "partial_fit": []}
for day in range(1, 16):
    X, y = rows_of(day)
    scores["never updated"].append(fixed.score(X, y))
    scores["partial_fit"].append(updated.score(X, y))  # before it has seen the rows of the day
    updated.partial_fit(X, y, memory=0.2)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in scores.items():
    ax.plot(range(1, 16), [100 * value for value in values], marker="o", label=name)
ax.set(xlabel="day", ylabel="accuracy on new rows, %", ylim=(0, 100))
ax.legend()
plt.show()
