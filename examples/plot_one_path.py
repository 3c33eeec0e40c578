"""
The decision path of a digit
============================

A deterministic tree decides along one path. The path shows the margin at each split, the pixels that
contributed most, and the class frequencies before and after.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

from crisptree import CrispTreeClassifier, TrainingOptions, explain
from crisptree.datasets import load_digits
from crisptree.plots import plot_tree

digits = load_digits()
model = CrispTreeClassifier(
    max_depth=4,
    image_shape=digits.image_shape,
    training=TrainingOptions(scale="global"),
    spatial_penalty=0.01,
    random_state=0,
).fit(digits.X_train, digits.y_train)

# %%
# The first misclassified validation digit, and its path in the tree.
wrong = (model.predict(digits.X_valid) != digits.y_valid).argmax()
print(f"a {digits.y_valid[wrong]}, predicted as {model.predict(digits.X_valid[[wrong]])[0]}")
plot_tree(model, sample=digits.X_valid[wrong])

# %%
# The same path as text: contributions are weights times the difference from the mean digit.
print(explain.path(model, digits.X_valid[wrong], top=3))

# %%
# Confusion matrix on the validation digits.
ConfusionMatrixDisplay.from_estimator(model, digits.X_valid, digits.y_valid)

plt.show()
