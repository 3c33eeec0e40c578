"""
Churn: from a raw table to a tree on one page
=============================================

Six leaves and one column per split: a tree that can be read aloud. The table has identifiers, dates, text and
missing values, and the tree speaks of its columns.
"""

import matplotlib.pyplot as plt
import pandas as pd

from crisptree import CrispTreeClassifier, TableEncoder, explain, export
from crisptree.datasets import make_churn
from crisptree.plots import plot_tree

customers = pd.DataFrame(make_churn())  # synthetic
print(customers.head(3).T)

# %%
# ``fit`` refuses the table as it is, with a reason for every column that needs a decision:
X, y = customers.drop(columns="churned"), customers["churned"].map({"yes": "leaves", "no": "stays"})
try:
    CrispTreeClassifier.readable().fit(X, y)
except ValueError as error:
    print(error)

# %%
# The identifier is left out, and the date of joining becomes numbers.
encoder = TableEncoder(drop=["customer_id"], dates=["joined"])
model = CrispTreeClassifier.readable(
    max_leaf_nodes=6, max_features_per_split=1, leaf_model="constant", categorical_features=encoder, random_state=0
)
model = model.fit(X[:1500], y[:1500])
print(f"accuracy on new customers: {100 * model.score(X[1500:], y[1500:]):.1f} %")
print(model.encoder_.get_feature_names_out())

# %%
# One sentence per leaf:
print(export.sentences(model))

# %%
plot_tree(model)

# %%
# Why a customer is expected to leave, and what would have to change. Only four columns can be changed:
leaving = X[1500:][model.predict(X[1500:]) == "leaves"].iloc[0]
print(explain.path(model, leaving))
print(explain.find_counterfactual(model, leaving, actionable=["calls", "fee", "plan", "satisfaction"]))

plt.show()
