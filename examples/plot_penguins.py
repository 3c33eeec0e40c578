"""
Penguins: a raw table of field notes
====================================

Measurements of 344 penguins as they were typed in: text, dates, comments and missing values. Which of them predict
the sex? The table is in the folder ``examples/data`` (Palmer Station LTER and K. Gorman, CC0).
"""

import matplotlib.pyplot as plt
import pandas as pd

from crisptree import CrispTreeClassifier, TableEncoder, explain, export
from crisptree.plots import plot_tree

penguins = pd.read_csv("data/penguins_raw.csv")
print(penguins.iloc[0])

# %%
# Eleven penguins have no known sex and are left out. Columns that need a decision are refused:
known = penguins[penguins["Sex"].notna()].sample(frac=1, random_state=0)
X, y = known.drop(columns="Sex"), known["Sex"].str.lower()
X["Species"] = X["Species"].str.split().str[0]  # without the Latin name
try:
    CrispTreeClassifier.readable().fit(X, y)
except ValueError as error:
    print(error)

# %%
# Sample numbers and individual IDs identify rows, and comments describe what happened to a sample. The day of the
# first egg becomes numbers. Missing measurements are replaced by the mean and marked by indicator features.
encoder = TableEncoder(drop=["Sample Number", "Individual ID", "Comments"], dates=["Date Egg"], keep_constant=False)
model = CrispTreeClassifier.readable(max_leaf_nodes=6, categorical_features=encoder, random_state=0)
model = model.fit(X[:250], y[:250])
for note in model.encoder_.notes_:
    print(note)
print(f"accuracy on {len(y) - 250} other penguins: {100 * model.score(X[250:], y[250:]):.1f} %")

# %%
# The tree on one page, as sentences and as a drawing:
print(export.sentences(model))

# %%
plot_tree(model)

# %%
# What the limits of six leaves and three terms cost on held-out rows:
print(model.readability_cost(X, y, n_folds=3))

# %%
# Why one penguin is predicted to be female:
print(explain.path(model, X[250:].iloc[0]))

plt.show()
