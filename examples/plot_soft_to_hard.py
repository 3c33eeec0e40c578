"""
From soft to hard splits
========================

While a tree trains, a point goes right with probability σ(γ f(x)). The steepness γ rises with every epoch,
until the tree is deterministic: one path per point.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.plots import plot_regions, plot_training

X, y = make_moons(600, noise=0.2, random_state=0)
training = TrainingOptions(optimizer="adam")  # mini-batches, as in the paper
model = CrispTreeClassifier(max_depth=3, l2=1e-3, training=training, random_state=0)
model.fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))

# %%
# One tree, drawn with five values of γ; the last panel is the deterministic tree with its splits.
figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.6), layout="constrained", sharex=True, sharey=True)
for ax, steepness in zip(axes.flat, (0.5, 1, 2, 4, 10, None), strict=True):
    plot_regions(model, X[400:], y[400:], ax, steepness=steepness, hyperplanes=steepness is None, legend=False)
    ax.set_title("deterministic" if steepness is None else f"γ = {steepness:g}")
    ax.set(xlabel="", ylabel="")

# %%
# Its training: the stumps of each level, then the whole tree.
plot_training(model)

plt.show()
