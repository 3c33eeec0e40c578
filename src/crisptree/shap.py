"""Explainer for shap, which importing this module registers: ``shap.Explainer(model)`` then knows trees and forests.

shap has no registry of explainers: ``shap.Explainer`` becomes the class that fits the model when it is made, and this
module adds one class to those that it tries. Other models, maskers and algorithms are left to shap.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
import shap

from crisptree.inspection.attributions import shapley_values
from crisptree.inspection.model_view import unwrap_model

ESTIMATORS = ("CrispTreeClassifier", "CrispTreeRegressor", "CrispForestClassifier", "CrispForestRegressor")


class CrispExplainer(shap.Explainer):
    """Explainer of trees and forests, which computes ``crisptree.explain.shapley_values``.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted tree or forest, or a fitted Pipeline that ends in one.
    masker : array-like, DataFrame or shap.maskers.Independent, default=None
        Background rows; without them values depend on paths, and need splits of one column each.
    seed : int, default=None
        Seed of sampled values.
    n_permutations : int, default=100
        Number of pairs of permutations where values are sampled.
    """

    def __init__(self, model: Any, masker: Any = None, *, seed: int | None = None, n_permutations: int = 100) -> None:
        self.model, self.masker, self.seed, self.n_permutations = model, masker, seed, n_permutations
        self.feature_names = self.output_names = None
        self.background = masker.data if isinstance(masker, shap.maskers.Independent) else masker

    def __call__(self, X: Any, **options: Any) -> shap.Explanation:
        """Explain rows; ``error_std`` has the standard errors of sampled values."""
        options = {"n_permutations": self.n_permutations, "random_state": self.seed} | options
        return shapley_values(self.model, X, self.background, **options).to_shap()

    def shap_values(self, X: Any, **options: Any) -> Any:
        """Compute the values alone."""
        return self(X, **options).values

    @staticmethod
    def supports_model_with_masker(model: Any, masker: Any) -> bool:
        """Return True for trees and forests, and for rows as background."""
        tabular = masker is None or isinstance(masker, shap.maskers.Independent) or np.ndim(masker) == 2
        return tabular and type(unwrap_model(model)[1]).__name__ in ESTIMATORS


def register() -> None:
    """Let ``shap.Explainer`` become a ``CrispExplainer`` for trees and forests."""
    original = shap.Explainer.__init__

    @wraps(original)
    def choose(self: Any, model: Any, masker: Any = None, *others: Any, **options: Any) -> None:
        automatic = options.keys() <= {"seed", "n_permutations"} and not others
        if type(self) is shap.Explainer and automatic and CrispExplainer.supports_model_with_masker(model, masker):
            self.__class__ = CrispExplainer
            CrispExplainer.__init__(self, model, masker, **options)
        else:
            original(self, model, masker, *others, **options)

    shap.Explainer.__init__ = choose


register()
