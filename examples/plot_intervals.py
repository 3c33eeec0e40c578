"""
Prediction intervals
====================

A leaf of a regression tree holds a mean and a standard deviation, so its intervals are wide where the data are
noisy. Those of a forest come from the mixture of all leaves that a row reaches.
"""

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispForestRegressor, CrispTreeRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 800))
y = np.sin(x) * x / 3 + (0.1 + 0.12 * x) * rng.normal(size=len(x))
X, grid = x[:, None], np.linspace(0, 10, 400)[:, None]
tree = CrispTreeRegressor(split="oblique", max_depth=4, leaf_model="constant", random_state=0).fit(X, y)
forest = CrispForestRegressor(n_estimators=30, split="oblique", max_depth=5, random_state=0).fit(X, y)
bands = {
    "tree": (tree.predict(grid), *tree.predict_interval(grid, coverage=0.9)),
    "forest": (forest.predict(grid), *forest.predict_interval(grid, coverage=0.9)),
}

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained", sharey=True)
for ax, (name, (middle, low, high)) in zip(axes, bands.items(), strict=True):
    ax.scatter(x, y, s=5, color="0.55")
    ax.fill_between(grid[:, 0], low, high, alpha=0.3, label="90 %")
    ax.plot(grid[:, 0], middle, linewidth=2)
    ax.set_title(name)
    ax.legend(loc="lower left")
plt.show()
