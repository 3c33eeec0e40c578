"""What a leaf predicts. A new kind of y is one file here and one line in ``TARGETS``.

``base`` is the contract, ``classes`` the paper's: a leaf is a distribution over classes. Nothing here imports torch at
the top: training hands tensors to the same object that a loaded model asks with arrays.
"""

from crisptree.targets.base import Target, gain
from crisptree.targets.classes import Classes

TARGETS: dict[str, type[Target]] = {"classes": Classes}
"""By the name that a model file gives."""

__all__ = ["TARGETS", "Classes", "Target", "gain"]
