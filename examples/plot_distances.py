"""
A number for every pixel
========================

Shapes under so much noise that their borders are hardly seen. Of every pixel we want to know how far inside a shape it
is: 0 outside, and else the distance to the border. The tree says it from the window around the pixel; a second one,
which sees what the first one says of the neighbours too, says it better.
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
# Beside them, the best that a straight line makes of the smoothed image.
smooth = ndimage.gaussian_filter(images, (0, 4, 4))
line = np.polyfit(smooth[:4].ravel(), distances[:4].ravel(), 1)
error = np.mean((np.polyval(line, smooth[4]) - truth) ** 2)
print(f"smoothed by 4 pixels and a line: R² {1 - error / truth.var():.3f} on a new image")
print(f"one tree: R² {model.score(new, truth):.3f}")
print(f"two stages: R² {twice.score(new, truth):.3f}")

# %%
# The image, the true distances, the leaf of every pixel and the distances found, by one tree and in two stages.
plot_pixel_regression(new, truth, model.leaf_image(new), model.predict(new), name="one tree")
plot_pixel_regression(new, truth, twice.leaf_image(new), twice.predict(new), name="two stages")

# %%
# What the first splits ask of the window.
plot_weights(model, nodes=range(6))

plt.show()
