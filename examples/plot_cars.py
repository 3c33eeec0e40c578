"""
Cars: sums of few columns in the leaves
=======================================

The fuel economy of 406 cars with a text, a date and missing values. The leaves of a readable regression tree are sums
of at most three columns in round numbers where that predicts better. The table is in the folder ``examples/data``
(StatLib, Donoho and Ramos 1982).
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import PredictionErrorDisplay

from crisptree import CrispTreeRegressor, TableEncoder, explain, export
from crisptree.plots import plot_tree

cars = pd.read_csv("data/cars.csv")
print(cars.sample(4, random_state=1).T)

# %%
# Eight cars have no known economy. The name of a car hardly ever repeats, but its first word does: the maker.
known = cars[cars["Miles_per_Gallon"].notna()].sample(frac=1, random_state=0)
X = known.drop(columns=["Miles_per_Gallon", "Name"]).assign(maker=known["Name"].str.split().str[0])
y = known["Miles_per_Gallon"]

# %%
# Makers of fewer than ten cars share one encoding, and the year of the model becomes a number.
encoder = TableEncoder(dates=["Year"], min_frequency=10)
model = CrispTreeRegressor.readable(max_leaf_nodes=4, categorical_features=encoder, random_state=0)
model = model.fit(X[:300], y[:300])
print(f"R² on {len(y) - 300} other cars: {model.score(X[300:], y[300:]):.3f}")
for note in model.encoder_.notes_:
    print(note)

# %%
# Every leaf is a sentence, with the standard deviation of its residuals after ±:
print(export.sentences(model))

# %%
plot_tree(model)

# %%
# Constant leaves are less accurate here:
constant = CrispTreeRegressor.readable(leaf_model="constant", categorical_features=encoder, random_state=0)
print(f"R² with up to eight constant leaves: {constant.fit(X[:300], y[:300]).score(X[300:], y[300:]):.3f}")

# %%
PredictionErrorDisplay.from_estimator(model, X[300:], y[300:], kind="actual_vs_predicted")

# %%
# What the columns add to the prediction for one car, starting from the mean of all:
print(explain.path_attributions(model, X[300:301]))

plt.show()
