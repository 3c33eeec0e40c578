"""Loader of model files for ``mlflow.pyfunc``: ``log_model(loader_module="crisptree.mlflow", data_path="x.crisp")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crisptree.estimators.loading import PublicEstimator

METHODS = ("predict", "predict_proba", "predict_std", "predict_interval")


class PythonFunction:
    """A fitted estimator as mlflow calls it; ``params={"method": "predict_proba"}`` calls another method."""

    def __init__(self, model: PublicEstimator) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Predict rows."""
        method = (params or {}).get("method", "predict")
        if method not in METHODS or not hasattr(self.model, method):
            offered = ", ".join(name for name in METHODS if hasattr(self.model, name))
            raise ValueError(f"`method` must be one of {offered}; got {method!r}.")
        return getattr(self.model, method)(model_input)


def _load_pyfunc(data_path: str) -> PythonFunction:
    """Load a model file; mlflow calls this function by its name."""
    from crisptree.estimators.loading import load

    return PythonFunction(load(data_path))
