"""
Convolutional networks as splits
================================

A split may be any torch module with one output. Here a small convolutional network decides at each split.
The tree grows best-first until it has ten leaves and is then finetuned; an image passes only the networks
on its path.
"""

# %%
# ``split`` is a function that builds the module of one split for the shape of an image. ``split="conv"`` would be the
# paper's network, which needs images of at least 16 × 16 pixels; these have 8 × 8.
import matplotlib.pyplot as plt
from torch import nn

from crisptree import CrispTreeClassifier, TrainingOptions, explain
from crisptree.datasets import load_digits
from crisptree.plots import plot_confusion


def network(input_shape):
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * (height // 2) * (width // 2), 16),
        nn.ReLU(),
        nn.Linear(16, 1),
    )


digits = load_digits()
X, y = digits.all_but_test()
model = CrispTreeClassifier(
    split=network,
    image_shape=digits.image_shape,
    max_depth=None,
    max_leaf_nodes=10,
    training=TrainingOptions(
        scale="global", learning_rate=5e-3, batch_size=128, epochs=10, finetune_epochs=15, min_updates=0
    ),
    random_state=0,
).fit(X, y)

# %%
# Ten leaves are enough for ten digits, and a path is short. One-vs-rest would evaluate 10 networks for every image,
# one-vs-one 45.
visited = model.decision_path(digits.X_test).sum(axis=1).mean() - 1
print(f"{model.get_n_leaves()} leaves, {visited:.1f} networks per image")
print(f"greedy {model.before_finetuning().score(digits.X_test, digits.y_test):.3f}, ", end="")
print(f"finetuned {model.score(digits.X_test, digits.y_test):.3f} of the test images are right")

# %%
# Error attribution: the split that is responsible for each error.
for split, errors, share in explain.attribute_errors(model, digits.X_test, digits.y_test).table():
    print(f"{'split ' + str(split) if split >= 0 else 'no split'}: {errors} ({share:.0%})")

# %%
# Which digits are taken for which.
plot_confusion(model, digits.X_test, digits.y_test)

plt.show()
