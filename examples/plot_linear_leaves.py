"""
Linear models in the leaves
===========================

Constant leaves follow a trend in steps. With ``leaf_model="linear"`` each leaf holds a ridge regression,
and a tree of a few leaves fits a function with trends and jumps.
"""

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispTreeRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 400))
truth = np.where(x < 3, 2 * x, np.where(x < 6.5, 9 - x, 0.6 * x - 4))
y = truth + 0.4 * rng.normal(size=len(x))
X = x[:, None]

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, leaf_model in zip(axes, ("constant", "linear"), strict=True):
    model = CrispTreeRegressor(split="oblique", leaf_model=leaf_model, max_depth=3, random_state=0).fit(X, y)
    ax.scatter(x, y, s=6, color="0.6")
    ax.plot(x, model.predict(X), color="tab:blue", linewidth=2)
    error = np.sqrt(np.mean((model.predict(X) - truth) ** 2))
    ax.set_title(f"{leaf_model} leaves: {model.get_n_leaves()} of them, RMSE {error:.2f}")
plt.show()
