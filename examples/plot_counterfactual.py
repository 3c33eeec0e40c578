"""
The smallest change to another class
====================================

A counterfactual answers what would have to be different for another prediction. A leaf is an intersection
of a few half-planes, so the nearest point of another class can be found exactly.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from crisptree import CrispTreeClassifier, explain
from crisptree.plots import plot_regions

data = load_breast_cancer(as_frame=True)
X, y = data.data[["mean radius", "mean texture"]], data.target_names[data.target]
model = CrispTreeClassifier(split="oblique", max_depth=3, leaf_model="constant", random_state=0).fit(X, y)

# %%
# Some tumours that the tree calls malignant, and the nearest points that it calls benign:
figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
plot_regions(model, X, y, ax)
for row in X[model.predict(X) == "malignant"].iloc[:60:6].itertuples(index=False):
    change = explain.find_counterfactual(model, list(row), to="benign", as_in_training=False)
    after = dict(zip(X.columns, row, strict=True)) | {name: value for name, _, value in change.columns}
    ax.annotate("", tuple(after.values()), tuple(row), arrowprops={"arrowstyle": "->", "color": "black"})
ax.set_title("from malignant to benign")

# %%
# As text, with the texture held fixed:
print(explain.find_counterfactual(model, X.iloc[0], to="benign", fixed=["mean texture"]))
plt.show()
