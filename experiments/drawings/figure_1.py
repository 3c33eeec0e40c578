"""Figure 1 of the paper, from the numbers in its LaTeX source: ``python docs/pictures.py figure_1``.

Four hyperplanes cut the plane into five leaves. While a tree is trained its splits are probabilistic, and p(red | x) is
a smooth surface; the tree that predicts takes one path.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from crisptree import CrispTreeClassifier
from crisptree.data.raw_rows import Scaling
from crisptree.inference.finalization import finalize
from crisptree.plots import class_colors, plot_regions
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

# The hyperplanes, f(x) = w · x + b with x right of a split where f(x) > 0, and the leaves' p(red). Negative numbers in
# the structure are leaves: ~0 is A, ~1 is B.
weight = torch.tensor([[1.0, -0.8], [0.05, 0.65], [0.38, 0.6], [1.0, 0.0]])
bias = torch.tensor([-0.1, -0.4, -0.38, -0.3])
structure = TreeStructure(left=[1, ~0, ~3, ~1], right=[2, 3, ~4, ~2])
red = torch.tensor([1 / 3, 0.0, 2 / 3, 0.0, 1.0])
tree = Tree(structure, ObliqueSplits.from_hyperplanes(weight, bias), torch.stack([1 - red, red], dim=1))

# The points of the figure. Their classes, counted in the leaves, are the tables above: one of three in A is red, two of
# three in C.
BLUE = [[0.15, 0.50], [0.25, 0.25], [0.05, 0.90], [0.25, 0.72], [0.37, 0.65], [0.30, 0.15], [0.65, 0.18]]
RED = [[0.40, 0.55], [0.33, 0.95], [0.60, 0.76], [0.80, 0.80], [0.93, 0.58], [0.65, 0.35], [0.87, 0.24]]
X = np.array(BLUE + RED, dtype=np.float32)
y = np.repeat([0, 1], 7)
steepness = 45.0
model = CrispTreeClassifier()
model.tree_ = finalize(tree.crisp(Scaling.none(2), steepness), X, y, np.ones(14), 0.0)
model.classes_, model.n_features_in_ = np.array(["blue", "red"]), 2
assert np.allclose(model.tree_.leaves[:, 1], red)


# (a) the tessellation with the normals β of the splits, which point to where a row goes right, (b) the surface of
# equation 2 with γ = 45, (c) the diagram. Splits are numbered from 1 as in the paper.
figure = plt.figure(figsize=(13.5, 4.4), layout="constrained")
names = ["x1", "x2"]
cells = plot_regions(
    model,
    X,
    model.classes_[y],
    figure.add_subplot(1, 3, 1),
    hyperplanes=True,
    legend=False,
    bounds=(0.0, 1.0, 0.0, 1.0),
    feature_names=names,
)
places = {text.get_text(): np.array(text.get_position()) for text in cells.texts}
for split, normal in enumerate(weight.numpy()):
    start = places[str(split)]
    end = start + 0.1 * normal / np.linalg.norm(normal)
    cells.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#1a9fd0", "linewidth": 1.8})
    cells.annotate(rf"$\beta_{split + 1}$", end + 0.015, color="#0b6e99", fontsize=12)
for text in cells.texts:
    if text.get_text().isdigit():
        text.set_text(str(int(text.get_text()) + 1))
cells.set(aspect="equal", xticks=[], yticks=[], title="(a) tessellation")

side = torch.linspace(0, 1, 65)
grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1)
height = tree.log_class_probabilities(grid.reshape(-1, 2), steepness).exp()[:, 1].reshape(65, 65).numpy()
blue, orange = class_colors(2)
surface = figure.add_subplot(1, 3, 2, projection="3d")
colors = np.clip(height[..., None] * orange + (1 - height[..., None]) * blue, 0, 1)
options = {"rstride": 1, "cstride": 1, "edgecolor": (1, 1, 1, 0.25), "linewidth": 0.2}
surface.plot_surface(grid[..., 0].numpy(), grid[..., 1].numpy(), height, facecolors=colors, **options)
for letter, (x1, x2), p in zip(
    "ABCDE", [(0.2, 0.4), (0.1, 0.8), (0.5, 0.8), (0.42, 0.1), (0.8, 0.4)], red, strict=True
):
    surface.text(x1, x2, float(p) + 0.03, letter, weight="bold", zorder=10, ha="center", va="center")
surface.set_zlabel("p(red | x)", labelpad=14)
surface.set(xlabel="$x_1$", ylabel="$x_2$", xticks=[], yticks=[], zlim=(0, 1))
surface.set_zticks([0, 0.33, 0.66, 1])
surface.set_title(f"(b) p(red | x), γ = {steepness:g}")
surface.view_init(elev=70, azim=-110)  # the paper's view is (-20, 70) counted as in pgfplots

# The diagram: a row takes the left branch of a split with probability 1 − s(f(x)), the right one with s(f(x)).
diagram = figure.add_subplot(1, 3, 3)
leaves = iter(np.arange(5) - 2.0)
place = {}


def put(node, depth):
    if node < 0:
        place[node] = (next(leaves), -depth)
        return
    for child in (structure.left[node], structure.right[node]):
        put(child, depth + 1)
    place[node] = (np.mean([place[structure.left[node]][0], place[structure.right[node]][0]]), -depth)


put(0, 0)
for split in range(structure.n_splits):
    for child in (structure.left[split], structure.right[split]):
        diagram.annotate("", place[child], place[split], arrowprops={"arrowstyle": "-|>", "shrinkA": 14, "shrinkB": 14})
for node, spot in place.items():
    name = f"{node + 1}" if node >= 0 else "ABCDE"[~node]
    color = "#006699" if node >= 0 else orange if red[~node] > 0.5 else blue
    box = {"boxstyle": "circle", "facecolor": "white", "edgecolor": color, "linewidth": 2.2} if node >= 0 else None
    diagram.text(*spot, name, color=color, weight="bold", fontsize=14, ha="center", va="center", bbox=box)
diagram.text(-1.15, -0.35, r"$1 - s(f_{\beta_1}(x))$", ha="right", fontsize=12)
diagram.text(1.0, -0.35, r"$s(f_{\beta_1}(x))$", ha="left", fontsize=12)
diagram.set(xlim=(-3, 3), ylim=(-3.3, 0.4), title="(c) tree diagram")
diagram.set_axis_off()

plt.show()
