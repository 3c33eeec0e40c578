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
        scale="global", learning_rate=5e-3, batch_size=128, epochs=20, finetune_epochs=20, min_updates=0
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
# Test digits by the leaf in which they end, one row per leaf; those with a red frame are misclassified.
leaves = model.leaf_indices(digits.X_test)
figure, axes = plt.subplots(model.get_n_leaves(), 14, figsize=(8.4, 6.2), layout="constrained")
for leaf, row in enumerate(axes):
    images = digits.X_test[leaves == leaf][: len(row)].reshape(-1, *digits.image_shape)
    wrong = (model.predict(digits.X_test) != digits.y_test)[leaves == leaf]
    row[0].set_ylabel(f"leaf {leaf}", rotation=0, ha="right", va="center")
    for ax, image, is_wrong in zip(row, images, wrong, strict=False):
        ax.imshow(image, cmap="gray_r")
        ax.spines[:].set(color="tab:red" if is_wrong else "0.85", linewidth=2 if is_wrong else 0.8)
    for ax in row:
        ax.set(xticks=[], yticks=[])

# %%
# Error attribution: the split that is responsible for each error.
for split, errors, share in explain.attribute_errors(model, digits.X_test, digits.y_test).table():
    print(f"{'split ' + str(split) if split >= 0 else 'no split'}: {errors} ({share:.0%})")

plt.show()
