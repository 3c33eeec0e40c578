"""
Calibrated probabilities
========================

The class frequencies of a pure leaf are 0 and 1, which is overconfident. Shrinking leaf tables towards
those of their ancestors, by a strength that is selected on held-out rows, calibrates the probabilities.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from crisptree import CrispTreeClassifier, metrics

X, y = make_classification(12_000, 10, n_informative=5, flip_y=0.15, random_state=1)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.8, random_state=0)
settings = {"split": "oblique", "max_depth": 6, "input_noise": 0.3, "l1": 0.0, "random_state": 0}

figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
for shrinkage, color in ((0.0, "tab:red"), ("auto", "tab:blue")):
    model = CrispTreeClassifier(**settings, shrinkage=shrinkage).fit(X, y)
    proba = model.predict_proba(X_test)
    error = metrics.calibration_error(y_test, proba)
    CalibrationDisplay.from_predictions(
        y_test,
        proba[:, 1],
        n_bins=10,
        ax=ax,
        color=color,
        linewidth=2,
        name=f"shrinkage={shrinkage!r}: calibration error {error:.3f}",
    )
ax.set(xlabel="predicted probability of class 1", ylabel="observed frequency", title="Reliability of probabilities")
ax.legend(loc="upper left")
plt.show()
