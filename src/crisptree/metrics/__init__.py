"""How good an answer is: ``segmentation`` has measures of label images, ``probabilities`` those of class probabilities.

>>> import numpy as np
>>> from crisptree import metrics
>>> truth, said = np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]])
>>> round(metrics.log_loss(truth, said), 3), round(metrics.brier_score(truth, said), 3)
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
