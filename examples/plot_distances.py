"""
Pixel regression: distance to a boundary
========================================

Noisy images of shapes, and for each pixel the distance to the boundary of its shape. A tree predicts it
from the window around the pixel. A second stage, which also sees the predictions of the first one, is more
accurate.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

from crisptree import CrispPixelRegressor, TrainingOptions
from crisptree.plots import plot_pixel_regression, plot_weights

SIDE = 96
rng = np.random.default_rng(0)
shapes = ndimage.gaussian_filter(rng.normal(size=(5, SIDE, SIDE)), (0, 4, 4)) > 0
distances = np.stack([ndimage.distance_transform_edt(shape) for shape in shapes])
images = shapes + 0.5 * rng.normal(size=shapes.shape)
new, truth = images[4], distances[4]

training = TrainingOptions(epochs=5, finetune_epochs=10)
settings = {"window": 11, "max_depth": 6, "spatial_penalty": 0.05, "training": training, "random_state": 0}
model = CrispPixelRegressor(**settings).fit(images[:4], distances[:4])
twice = CrispPixelRegressor(**settings, stages=2).fit(images[:4], distances[:4])

# %%
# For comparison, linear regression on the smoothed image.
smooth = ndimage.gaussian_filter(images, (0, 4, 4))
line = np.polyfit(smooth[:4].ravel(), distances[:4].ravel(), 1)
error = np.mean((np.polyval(line, smooth[4]) - truth) ** 2)
print(f"linear regression: R² {1 - error / truth.var():.3f} on a new image")
print(f"one tree: R² {model.score(new, truth):.3f}")
print(f"two stages: R² {twice.score(new, truth):.3f}")

# %%
# The noisy image, and the distances that two stages predict.
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.4), layout="constrained")
axes[0].imshow(new, cmap="gray")
axes[1].imshow(twice.predict(new), cmap="inferno")
for ax, title in zip(axes, ("image", f"predicted distance, R² {twice.score(new, truth):.2f}"), strict=True):
    ax.set_title(title)
    ax.set_axis_off()

# %%
# The image, the true distances, the leaf of every pixel and the predictions, of one tree and of two stages.
plot_pixel_regression(new, truth, model.leaf_image(new), model.predict(new), name="one tree")
plot_pixel_regression(new, truth, twice.leaf_image(new), twice.predict(new), name="two stages")

# %%
# Weights of the first splits, as windows.
plot_weights(model, nodes=range(6))

plt.show()
