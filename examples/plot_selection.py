"""
Candidates of a default fit
===========================

Where parameters are "auto", a fit compares candidates on held-out rows: noise levels, depths, sparse
weights, thresholds and linear leaves. The one of the highest accuracy, less a share of the log loss, is
trained on all rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_selection

X, y = load_breast_cancer(return_X_y=True)
model = CrispTreeClassifier(max_depth=6, random_state=0).fit(X, y)
print(model.best_params_)

# %%
# Every trial with its standard error; the selected one has a ring.
plot_selection(model)

plt.show()
