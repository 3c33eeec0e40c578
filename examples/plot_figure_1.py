"""
Leaves of oblique splits in the plane
=====================================

The paper's figure 1: oblique splits cut the plane into leaves. While the tree trains, each split is soft
and p(y|x) is a smooth surface; the tree that predicts has the same splits, but deterministic ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.plots import class_colors, plot_regions, plot_tree

# %%
# The fourteen points of the figure, each with twenty more around it. Three splits separate the classes; the
# figure's authors drew four.
centers = np.array(
    [
        [0.15, 0.50],
        [0.25, 0.25],
        [0.05, 0.90],
        [0.25, 0.72],
        [0.37, 0.65],
        [0.30, 0.15],
        [0.65, 0.18],
        [0.40, 0.55],
        [0.33, 0.95],
        [0.60, 0.76],
        [0.80, 0.80],
        [0.93, 0.58],
        [0.65, 0.35],
        [0.87, 0.24],
    ]
)
rng = np.random.default_rng(0)
X = np.repeat(centers, 20, axis=0) + 0.025 * rng.normal(size=(280, 2))
y = np.repeat(["blue"] * 7 + ["red"] * 7, 20)
plain = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
model = CrispTreeClassifier(
    **plain,
    max_leaf_nodes=5,
    max_depth=3,
    min_samples_leaf=15,
    l2=1e-2,
    training=TrainingOptions(scale="feature"),
    random_state=3,
)
model.fit(X, y)
print(f"{model.get_n_leaves()} leaves, {100 * model.score(X, y):.1f} % of the points are classified correctly")

# %%
# On the left the cells, with each split's line inside its own cell and its normal β, which points to where a point goes
# right; on the right p(y|x) of the probabilistic tree.
figure = plt.figure(figsize=(9.5, 4.2), layout="constrained")
cells = plot_regions(model, X, y, figure.add_subplot(1, 2, 1), hyperplanes=True, feature_names=["x1", "x2"])
cells.set_title("splits 0, 1, … with their normals β, and leaves A, B, …", fontsize=9)
places = {text.get_text(): np.array(text.get_position()) for text in cells.texts}
for split, beta in enumerate(model.tree_.weight):
    start = places[str(split)]
    end = start + 0.11 * beta / np.linalg.norm(beta)
    cells.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#2f7fb5", "linewidth": 1.8})
    cells.annotate(rf"$\beta_{split}$", end + 0.02, color="#1f5f8b", fontsize=11)
cells.set_aspect("equal")

side = np.linspace(0, 1, 80)
grid = np.stack(np.meshgrid(side, side), axis=-1)
red = model.soft_predict_proba(grid.reshape(-1, 2))[:, 1].reshape(80, 80)
surface = figure.add_subplot(1, 2, 2, projection="3d")
mixed = red[..., None] * class_colors(2)[1] + (1 - red[..., None]) * class_colors(2)[0]
surface.plot_surface(
    grid[..., 0], grid[..., 1], red, facecolors=mixed, rstride=1, cstride=1, linewidth=0, antialiased=False
)
surface.set(xlabel="x1", ylabel="x2", zlim=(0, 1))
surface.set_title("p(red | x) of the soft tree", fontsize=9)
surface.view_init(elev=50, azim=-110)

# %%
# The tree with the same letters. A point visits at most three splits. While training it goes right at split 0 with
# probability s(f(x)) and left with the rest; of the tree that predicts s is 0 or 1.
axis = plot_tree(model, letters=True, feature_names=["x1", "x2"])
signs = [text for text in axis.texts if text.get_text() in "−+"][:2]
for sign, turn, side in zip(signs, ("1 − s(f(x))     ", "      s(f(x))"), ("right", "left"), strict=True):
    axis.text(*sign.get_position(), turn, ha=side, va="bottom", fontsize=9, color="#1f5f8b")

plt.show()
