"""
Oblique splits against thresholds
=================================

Where the classes are separated by a tilted boundary, CART approximates it by stairs. A crisp tree needs a
few splits, because each of them is a line of any direction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from crisptree import CrispTreeClassifier

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(1200, 2))
y = (X[:, 1] > 0.8 * X[:, 0]).astype(int) + (X[:, 1] > 0.9 - 1.2 * X[:, 0])
X += 0.04 * rng.normal(size=X.shape)
X_test, y_test = X[600:], y[600:]

cart = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(X[:600], y[:600])
crisp = CrispTreeClassifier(split="oblique", max_depth=2, random_state=0).fit(X[:600], y[:600])

# %%
# Both trees on new points:
grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 400)] * 2), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, {"CART": cart, "crisptree": crisp}.items(), strict=True):
    ax.imshow(model.predict(grid).reshape(400, 400), extent=(-1, 1, -1, 1), origin="lower", cmap="viridis", alpha=0.45)
    ax.scatter(*X_test.T, c=y_test, s=8, cmap="viridis", edgecolors="white", linewidths=0.2)
    accuracy = 100 * model.score(X_test, y_test)
    ax.set_title(f"{name}: {model.get_n_leaves()} leaves, accuracy {accuracy:.1f} %")
plt.show()
