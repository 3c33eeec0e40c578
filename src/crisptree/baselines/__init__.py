"""The paper's baselines: other searches for the splits of a tree, and one other training of a whole tree.

Each gives an ordinary ``Tree`` with oblique splits on scaled features, so that finetuning, conversion to the
deterministic tree, prediction and model files serve them all. ``growth.SEARCHES`` lists those that grow a tree.
"""
