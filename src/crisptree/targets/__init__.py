"""Everything that depends on y. A new target is one class in one module here, and one line in ``TARGETS``.

``base`` is the interface, ``classification`` the paper's target and its training on soft labels, ``regression`` the
other. torch and scikit-learn are imported where they are called: a loaded model predicts without torch.
"""

from crisptree.targets.base import EStep, Target, gain
from crisptree.targets.classification import Classes, SoftClasses
from crisptree.targets.regression import Gaussians

TARGETS: dict[str, type[Target]] = {"classes": Classes, "gaussians": Gaussians}
"""By their names in model files."""

__all__ = ["TARGETS", "Classes", "EStep", "Gaussians", "SoftClasses", "Target", "gain"]
