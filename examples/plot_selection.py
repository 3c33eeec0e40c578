"""
What a fit tried before it chose
================================

Where parameters say "auto", a fit tries some values on rows that it holds out: widths of noise, shallower trees, sparse
ones, thresholds. It takes the simplest within one standard error of the best. Here a single hyperplane is enough.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_selection

X, y = load_breast_cancer(return_X_y=True)
model = CrispTreeClassifier(max_depth=6, random_state=0).fit(X, y)
print(model.best_params_)

# %%
# Every trial with its standard error; the chosen one has a ring.
plot_selection(model)

plt.show()
