"""
Growth and annealing as an animation
====================================

A tree is trained while every split is a probability σ(γ f(x)). The steepness γ rises until the
probabilities are decisions. The animation shows p(y|x) of the same tree for rising γ, first of a stump,
then of the whole tree.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from sklearn.datasets import make_moons

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_regions

X, y = make_moons(300, noise=0.2, random_state=0)
model = CrispTreeClassifier(split="oblique", max_depth=3, input_noise=0.1, l1=0.0, shrinkage=0.0, random_state=0)
model.fit(X, y)

# %%
# One frame per steepness, for the tree truncated at depths 1, 2 and 3:
steps = [(depth, steepness) for depth in (1, 2, 3) for steepness in np.geomspace(0.3, 12, 8)]
figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")


def draw(step):
    depth, steepness = step
    ax.clear()
    plot_regions(model.truncate(depth), X, y, ax, steepness=steepness, legend=False)
    ax.set_title(f"depth {depth}, γ = {steepness:.1f}")


animation = FuncAnimation(figure, draw, frames=steps, interval=250)
plt.show()
