"""
Whole trees on MNIST and Fashion-MNIST
======================================

The two trees of the paper's supplement: depth 4, trained by EM with a spatial penalty, so that the
splits can be looked at. An image goes right where it resembles the weight image, left where it
resembles the negative.

Needs the two data sets (``crisptree data fetch mnist fashion_mnist``). Where they are missing the
bundled digits take their place.

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
# One scale for all pixels keeps those that hardly ever vary from being blown up to noise. Of all epochs of finetuning
# the one counts after which the deterministic tree does best on validation images.
for load in (load_mnist, load_fashion_mnist):
    try:
        data = load()
    except DataNotFoundError:
        print(f"{load.__name__}: no files here; the digits instead")
        data = load_digits()
    model = CrispTreeClassifier(
        max_depth=4,
        epochs=20,
        finetune_epochs=20,
        learning_rate=0.005,
        scale="global",
        roughness=1e-2,
        image_shape=data.image_shape,
        early_stopping=True,
        random_state=0,
    ).fit(data.X_train, data.y_train, validation=(data.X_valid, data.y_valid))
    print(f"{load.__name__}: {100 * model.score(data.X_test, data.y_test):.1f} % on test images, one path each")
    plot_tree(model, class_names=data.class_names)

# %%
# For a closer look save a drawing as a vector file: ``plt.figure(1).savefig("tree.svg")``.

plt.show()

# sphinx_gallery_thumbnail_path = "images/tree-mnist.png"
