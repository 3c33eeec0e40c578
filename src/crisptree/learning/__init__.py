"""Loops that change a tree: grow it greedily, then finetune it as a whole.

``spec`` says everything about a training and is built once, ``fitting`` is the only way to train a tree, ``train``
holds the only epoch loop. ``samples`` gives rows, ``plan`` is one phase, ``stumps`` and ``finetuning`` say what is
trained, ``growing`` decides where the tree grows, ``backends`` take the steps, ``history`` is what callbacks get.
Nothing is imported here, so that ``history`` can be read without torch.
"""
