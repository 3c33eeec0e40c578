"""
Smooth weight images
====================

Neighbouring pixels are correlated, so training may distribute their weights arbitrarily, and weight images
look like noise. ``spatial_penalty`` adds the squared differences between neighbouring weights to the loss.
"""

import matplotlib.pyplot as plt

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.datasets import load_digits
from crisptree.plots import plot_weights

digits = load_digits()
settings = {"max_depth": 4, "image_shape": digits.image_shape, "random_state": 0}
settings["training"] = TrainingOptions(scale="global")
smooth = CrispTreeClassifier(**settings, spatial_penalty=0.3).fit(digits.X_train, digits.y_train)
plain = CrispTreeClassifier(**settings).fit(digits.X_train, digits.y_train)
for name, model in (("with spatial penalty", smooth), ("without", plain)):
    print(f"{name}: {100 * model.score(digits.X_valid, digits.y_valid):.1f} % on validation digits")

# %%
# Blue is what sends a digit right, red what sends it left; white is zero.
plot_weights(smooth, compare=plain, style="diverging")

# %%
# In grey as in the paper, from black for the smallest to white for the largest weight.
plot_weights(smooth, compare=plain, style="gray")

plt.show()
