"""crisptree: decision trees that are soft while they train and crisp when they predict.

>>> from crisptree import CrispTreeClassifier, TrainingOptions
>>> from crisptree.datasets import load_digits
>>> digits = load_digits()
>>> model = CrispTreeClassifier(max_depth=3, training=TrainingOptions(epochs=5, finetune_epochs=5), random_state=0)
>>> model.fit(digits.X_train, digits.y_train).get_n_leaves()
8
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "CrispTreeClassifier",
    "CrispTreeRegressor",
    "CrispForestClassifier",
    "CrispForestRegressor",
    "CrispSegmenter",
    "CrispPixelRegressor",
    "TrainingOptions",
    "TableEncoder",
    "Batches",
    "CrispTreeWarning",
    "StopTraining",
    "CheckpointError",
    "StreamError",
    "ModelFileError",
    "load",
    "skops_trusted_types",
    "distributed",
    "explain",
    "export",
    "metrics",
]

_HOMES = {
    "CrispTreeClassifier": "crisptree.estimators.classifier",
    "CrispForestClassifier": "crisptree.estimators.forest",
    "CrispForestRegressor": "crisptree.estimators.forest",
    "CrispTreeRegressor": "crisptree.estimators.regressor",
    "CrispSegmenter": "crisptree.estimators.pixels",
    "CrispPixelRegressor": "crisptree.estimators.pixels",
    "TrainingOptions": "crisptree.parameters.training",
    "TableEncoder": "crisptree.encoding.table_encoder",
    "Batches": "crisptree.data.batches",
    "StreamError": "crisptree.data.batches",
    "CrispTreeWarning": "crisptree.exceptions",
    "StopTraining": "crisptree.learning.history",
    "CheckpointError": "crisptree.exceptions",
    "ModelFileError": "crisptree.persistence.model_file",
    "load": "crisptree.estimators.loading",
    "skops_trusted_types": "crisptree.persistence.trusted_types",
}

_MODULES = ("distributed", "explain", "export", "metrics")
"""Parts of the package that open when they are first asked for."""

if TYPE_CHECKING:
    __version__: str

    from crisptree import distributed, explain, export, metrics
    from crisptree.data.batches import Batches, StreamError
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.estimators.classifier import CrispTreeClassifier
    from crisptree.estimators.forest import CrispForestClassifier, CrispForestRegressor
    from crisptree.estimators.loading import load
    from crisptree.estimators.pixels import CrispPixelRegressor, CrispSegmenter
    from crisptree.estimators.regressor import CrispTreeRegressor
    from crisptree.exceptions import CheckpointError, CrispTreeWarning
    from crisptree.learning.history import StopTraining
    from crisptree.parameters.training import TrainingOptions
    from crisptree.persistence.model_file import ModelFileError
    from crisptree.persistence.trusted_types import skops_trusted_types


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # which imports much

        return version("crisptree")
    if name in _MODULES:
        return import_module(f"crisptree.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'crisptree' has no attribute {name!r}; it offers {', '.join(__all__)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
