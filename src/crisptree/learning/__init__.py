"""Loops that change a tree: grow it greedily, then finetune it as a whole.

``samples`` gives rows, ``plan`` says how to train, ``train`` holds the only epoch loop, ``stumps`` and ``finetuning``
say what is trained, ``growing`` decides where the tree grows, ``history`` is what listeners hear. Nothing is imported
here, so that ``history`` can be read without torch.
"""
