"""
Segmentation of cells
=====================

Cells with dark membranes, dark grains inside them, and noise. A single pixel does not show whether it
belongs to a membrane or a grain, but the window around it does. The tree multiplies a few kernels with the
window, one after the other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from crisptree import CrispSegmenter, TrainingOptions
from crisptree.plots import plot_segmentation, plot_weights

SIDE = 160
MEMBRANE, CELL = 0, 1


def tissue(seed):
    """An image of cells and its labels."""
    rng = np.random.default_rng(seed)
    pixels = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1)[:, :, None]
    cells, grains = (rng.uniform(0, SIDE, (number, 2)) for number in (30, 60))
    distance = np.linalg.norm(pixels - cells, axis=-1)
    first, second = np.moveaxis(np.argsort(distance, axis=-1)[..., :2], -1, 0)
    two = np.sort(distance, axis=-1)[..., :2] ** 2
    to_border = (two[..., 1] - two[..., 0]) / (2 * np.linalg.norm(cells[first] - cells[second], axis=-1))
    labels = np.where(to_border < 2, MEMBRANE, CELL)
    dark = (labels == MEMBRANE) | (np.linalg.norm(pixels - grains, axis=-1).min(axis=-1) < 2.5)
    return np.where(dark, 0.3, 0.7) + rng.normal(0, 0.2, (SIDE, SIDE)), labels


images, labels = (np.stack(part) for part in zip(*map(tissue, range(4)), strict=True))
new, truth = tissue(4)

training = TrainingOptions(epochs=8, finetune_epochs=16)
settings = {"window": 15, "max_depth": 6, "pixels_per_epoch": 20_000, "training": training}
model = CrispSegmenter(**settings, spatial_penalty=0.01, random_state=0).fit(images, labels)
grey = CrispSegmenter(**{**settings, "window": 1}, random_state=0).fit(images, labels)
for name, tree in (("with a window of 15 × 15", model), ("from the pixel alone", grey)):
    membrane = tree.predict_proba(new)[..., MEMBRANE]
    print(
        f"{name}: {100 * tree.score(new, truth):.1f} % of a new image's pixels, "
        f"ROC AUC {roc_auc_score(truth.ravel() == MEMBRANE, membrane.ravel()):.3f}"
    )

# %%
# Predicted membranes over the new image.
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.4), layout="constrained")
for ax in axes:
    ax.imshow(new, cmap="gray")
    ax.set_axis_off()
predicted = np.ma.masked_not_equal(model.predict(new), MEMBRANE)
axes[1].imshow(predicted, cmap="autumn", alpha=0.75, interpolation="nearest")
axes[0].set_title("new image")
axes[1].set_title(f"membranes, {100 * model.score(new, truth):.1f} % of the pixels correct")

# %%
# The image, its labels, the leaf of every pixel and the probability of a membrane.
plot_segmentation(new, truth, model.leaf_image(new), model.predict_proba(new)[..., MEMBRANE], class_name="membrane")

# %%
# Weights of the first splits, as windows.
plot_weights(model, nodes=range(6))

plt.show()
