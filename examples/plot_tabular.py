"""
A tree on a table
=================

Splits of a table are plotted with their largest weights: bars to the right are features whose large values
send a row right. With at most three features per split, a small tree can be read as text.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from crisptree import CrispTreeClassifier, explain
from crisptree.plots import plot_tree, plot_weights

wine = load_wine(as_frame=True)
growers = wine.target.map({0: "grower A", 1: "grower B", 2: "grower C"})
X, X_test, y, y_test = train_test_split(wine.data, growers, test_size=0.3, stratify=growers, random_state=0)
model = CrispTreeClassifier(max_depth=2, max_features_per_split=3, leaf_model="constant", random_state=0).fit(X, y)
print(f"{100 * model.score(X_test, y_test):.1f} % of {len(X_test)} test wines")

# %%
plot_tree(model)

# %%
# All non-zero weights.
plot_weights(model)

# %%
# The path of one wine. Columns are matched by name.
print(explain.path(model, X_test.iloc[0], top=3))

plt.show()
