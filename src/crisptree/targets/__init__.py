"""What a leaf predicts. A new kind of y is one file here and one line in ``TARGETS``.

``base`` is the contract, ``classes`` the paper's: a leaf is a distribution over classes. ``soft_classes`` trains the
same leaves on probabilities instead of labels, and ``gaussians`` leaves that are normal distributions of numbers.
Nothing here imports torch at the top: training hands tensors to the same object that a loaded model asks with arrays.
"""

from crisptree.targets.base import EStep, Target, gain
from crisptree.targets.classes import Classes
from crisptree.targets.gaussians import Gaussians
from crisptree.targets.soft_classes import SoftClasses

TARGETS: dict[str, type[Target]] = {"classes": Classes, "gaussians": Gaussians}
"""By the name that a model file gives."""

__all__ = ["TARGETS", "Classes", "EStep", "Gaussians", "SoftClasses", "Target", "gain"]
