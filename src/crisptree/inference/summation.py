"""The order in which a score is summed up, which is part of the model.

Floating-point sums depend on their order, and a row near a hyperplane can change sides with it. So the order is
fixed once: term j goes to lane j mod 32, each lane adds its terms from left to right, and the lanes are added
pairwise, the upper half to the lower half, until one is left; the bias comes last. Products and sums are rounded to
single precision one by one (no fused multiply-add). Any other implementation must give these very bits.

Thirty-two lanes are enough for the widest vector units to add without waiting for the sum before.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LANES = 32


def linear_scores(
    X: npt.NDArray[np.float32], weight: npt.NDArray[np.float32], bias: np.float32
) -> npt.NDArray[np.float32]:
    """weight · x + bias in the fixed order.  (n, n_features) → (n,)"""
    lanes = np.zeros((len(X), LANES), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, X.shape[1], LANES):
            terms = X[:, start : start + LANES] * weight[start : start + LANES]
            lanes[:, : terms.shape[1]] += terms
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = lanes[:, :half] + lanes[:, half:]
        return lanes[:, 0] + bias
