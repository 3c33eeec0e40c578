"""
Missing values and categories
=============================

A missing number is replaced by the mean of training and marked by an indicator feature, whose weight every
split learns. Here incomes are missing more often for people who default, and the tree uses it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_tree

rng = np.random.default_rng(0)
n = 1500
table = pd.DataFrame(
    {
        "income": rng.lognormal(10, 0.5, n).round(),
        "age": rng.integers(18, 80, n),
        "housing": rng.choice(["rent", "own", "family"], n),
    }
)
risk = 1.5 - table["income"] / 20_000 + 1.0 * (table["housing"] == "rent") + 0.5 * rng.normal(size=n)
defaults = np.where(risk > 0.7, "defaults", "pays")
table.loc[(defaults == "defaults") & (rng.random(n) < 0.5), "income"] = np.nan
table.loc[rng.random(n) < 0.05, "housing"] = None
print(table.head())

# %%
# The table is used as it is:
model = CrispTreeClassifier(max_depth=2, leaf_model="constant", random_state=0).fit(table[:1000], defaults[:1000])
print(*model.encoder_.notes_, sep="\n")
print(f"accuracy on new rows: {100 * model.score(table[1000:], defaults[1000:]):.1f} %")

# %%
plot_tree(model)
plt.show()
