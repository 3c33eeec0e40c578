"""Metrics that scikit-learn lacks, or has for flat arrays only: of class probabilities and of label images.

>>> import numpy as np
>>> from crisptree import metrics
>>> truth, probabilities = np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]])
>>> round(metrics.log_loss(truth, probabilities), 3), round(metrics.brier_score(truth, probabilities), 3)
(0.367, 0.2)
"""

from crisptree.metrics.probabilities import brier_score, calibration_error, log_loss
from crisptree.metrics.segmentation import (
    adapted_rand_error,
    confusion,
    f1,
    intersection_over_union,
    neighbours_in_same_leaf,
    pixel_accuracy,
    recall,
    roc_auc,
    segments,
)

__all__ = [
    "adapted_rand_error",
    "brier_score",
    "calibration_error",
    "confusion",
    "f1",
    "intersection_over_union",
    "log_loss",
    "neighbours_in_same_leaf",
    "pixel_accuracy",
    "recall",
    "roc_auc",
    "segments",
]
