"""
Whole trees on MNIST and Fashion-MNIST
======================================

The trees of the paper's supplement: depth 4, trained by EM with a spatial penalty. An image goes right
where it resembles the weight image, left where it resembles its negative. Strokes and rings separate
digits; trousers, boots and the outlines of coats separate garments.

The example needs both data sets (``crisptree data fetch mnist fashion_mnist``) and uses the bundled digits
where they are missing.

.. image:: /images/tree-mnist.png
   :alt: The tree of MNIST

.. image:: /images/tree-fashion.png
   :alt: The tree of Fashion-MNIST
"""

import matplotlib.pyplot as plt

from crisptree import CrispTreeClassifier
from crisptree.datasets import DataNotFoundError, load_digits, load_fashion_mnist, load_mnist
from crisptree.plots import plot_tree

# %%
# One scale for all pixels keeps those that hardly ever vary from being amplified to noise. One strength of the penalty
# for all splits, as in the paper, smooths those that see few images as well.
for load in (load_mnist, load_fashion_mnist):
    try:
        data = load()
    except DataNotFoundError:
        print(f"{load.__name__}: no files here; the digits instead")
        data = load_digits()
    settings = {"max_depth": 4, "epochs": 20, "finetune_epochs": 20, "scale": "global", "random_state": 0}
    settings |= {"image_shape": data.image_shape, "penalty_share": "none"}
    plain, smooth = (
        CrispTreeClassifier.paper(**settings, spatial_penalty=roughness).fit(*data.all_but_test())
        for roughness in (0.0, 0.3)
    )
    for name, model in (("with the penalty", smooth), ("without", plain)):
        print(f"{load.__name__}, {name}: {100 * model.score(data.X_test, data.y_test):.1f} % of the test images")
    plot_tree(smooth, class_names=data.class_names)

# %%
# For a closer look save a drawing as a vector file: ``plt.figure(1).savefig("tree.svg")``.

plt.show()

# sphinx_gallery_thumbnail_path = "images/tree-mnist.png"
