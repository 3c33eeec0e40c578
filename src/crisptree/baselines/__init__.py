"""The paper's rivals: other ways to find the splits of a tree, and one other way to train a whole tree.

Each gives an ordinary ``Tree`` with oblique splits on scaled features, so that finetuning, conversion to the crisp
tree, prediction and model files serve them all. ``growing.SEARCHES`` names those that grow a tree.
"""
