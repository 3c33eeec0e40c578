"""
One tree and a forest
=====================

A forest averages trees that were trained on bootstrap samples. Its boundary is smoother, and it is more
accurate where labels are noisy; a single tree stays readable.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from crisptree import CrispForestClassifier, CrispTreeClassifier

X, y = make_moons(1200, noise=0.35, random_state=0)
X_test, y_test = X[400:], y[400:]
settings = {"split": "oblique", "max_depth": 6, "input_noise": 0.1, "l1": 0.0, "random_state": 0}
models = {
    "one tree": CrispTreeClassifier(**settings, shrinkage=0.0).fit(X[:400], y[:400]),
    "5 trees": CrispForestClassifier(n_estimators=5, **settings).fit(X[:400], y[:400]),
    "50 trees": CrispForestClassifier(n_estimators=50, **settings).fit(X[:400], y[:400]),
}

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict_proba", ax=ax, grid_resolution=250, cmap="RdBu", alpha=0.8, vmin=0, vmax=1
    )
    ax.scatter(*X[:400].T, c=y[:400], cmap="RdBu", s=8, edgecolors="0.3", linewidths=0.3)
    ax.set_title(f"{name}: accuracy {100 * model.score(X_test, y_test):.1f} %")
plt.show()
