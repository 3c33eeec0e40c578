"""
A readable tree about churn
===========================

Six leaves and one feature per split: a tree that can be read aloud. The table has text, categories and
missing values, and the tree speaks of its columns.
"""

import matplotlib.pyplot as plt
import pandas as pd

from crisptree import CrispTreeClassifier, TableEncoder, export
from crisptree.datasets import make_churn
from crisptree.plots import plot_tree

customers = pd.DataFrame(make_churn())  # synthetic
X, y = customers.drop(columns="churned"), customers["churned"].map({"yes": "leaves", "no": "stays"})
model = CrispTreeClassifier.readable(
    max_leaf_nodes=6,
    max_features_per_split=1,
    categorical_features=TableEncoder(drop=["customer_id", "joined"]),
    random_state=0,
).fit(X[:1500], y[:1500])
print(f"accuracy on new customers: {100 * model.score(X[1500:], y[1500:]):.1f} %")

# %%
# One sentence per leaf:
print(export.sentences(model))

# %%
plot_tree(model)
plt.show()
