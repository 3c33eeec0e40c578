"""The point of a cell that is nearest to the origin: a small quadratic programme over the cell's half-spaces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

MET = 1e-11
"""A half-space counts as met when what is missing is smaller than this share of the largest distance asked for."""

PARALLEL = 1e-12
"""A normal whose part outside the span of those in force has a smaller square than this lies in their span."""

SHORTEST = 1e-12
"""What is left of a unit normal where nearly all of it is fixed; a shorter one says nothing of what may move."""

STEPS_PER_HALF_SPACE = 50
"""Each step raises the dual objective, so the search ends; this many steps only rounding can ask for."""


def nearest_point(normals: Doubles, distances: Doubles) -> Doubles | None:
    """The smallest δ with normals · δ ≥ distances, or None where there is none.  (m, p), (m,) → (p,)

    The normals are unit vectors; where a distance is negative δ may stay behind.

    Goldfarb and Idnani's dual method. δ = Σ λ_i n_i starts at zero; a half-space that is not met comes into force, and
    those whose multiplier λ would turn negative leave. All is done with the (m, m) products of the normals, so the
    number of features hardly counts.

    Examples
    --------
    >>> nearest_point(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, -1.0])).tolist()
    [3.0, 0.0]
    >>> nearest_point(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0])) is None  # above 1 and below −1
    True
    """
    products = normals @ normals.T
    enough = MET * float(np.abs(distances).max(initial=0.0))
    multipliers = np.zeros(len(distances))
    in_force: list[int] = []
    for _ in range(STEPS_PER_HALF_SPACE * len(distances) + 1):
        missing = distances - products @ multipliers
        missing[in_force] = 0.0
        worst = int(missing.argmax()) if len(missing) else -1
        if worst < 0 or missing[worst] <= enough:
            return multipliers @ normals
        if not _bring_into_force(worst, products, distances, multipliers, in_force, normals.shape[1]):
            return None
    return None


def nearest_in_box(normals: Doubles, distances: Doubles, low: Doubles, high: Doubles) -> Doubles | None:
    """The same with low ≤ δ ≤ high as well.  (m, p), (m,), (p,), (p,) → (p,)

    Limits come into the programme when a point breaks them: most of many features never come near theirs.

    Examples
    --------
    >>> diagonal, one = np.array([[0.6, 0.8]]), np.ones(2)
    >>> nearest_in_box(diagonal, np.array([1.0]), -one, np.array([1.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    if np.isinf(low).all() and np.isinf(high).all():
        return nearest_point(normals, distances)
    if (low > high).any():
        return None
    moves = low < high
    step = np.where(moves, 0.0, low)
    rest, inside = distances - normals @ step, normals[:, moves]
    low, high = low[moves], high[moves]
    length = np.linalg.norm(inside, axis=1)
    matters = length > SHORTEST
    if (rest[~matters] > MET * max(1.0, float(np.abs(distances).max(initial=0.0)))).any():
        return None
    inside, rest = inside[matters] / length[matters, None], rest[matters] / length[matters]
    under = over = np.zeros(len(low), dtype=bool)
    while True:
        limits, reach = np.zeros((under.sum() + over.sum(), len(low))), np.concatenate([low[under], -high[over]])
        limits[np.arange(len(limits)), np.concatenate([np.flatnonzero(under), np.flatnonzero(over)])] = 1.0
        limits[under.sum() :] *= -1.0
        found = nearest_point(np.vstack([inside, limits]), np.concatenate([rest, reach]))
        if found is None:
            return None
        more_under, more_over = (found < low) & ~under, (found > high) & ~over
        if not (more_under.any() or more_over.any()):
            step[moves] = np.clip(found, low, high)
            return step
        under, over = under | more_under, over | more_over


def _bring_into_force(
    new: int, products: Doubles, distances: Doubles, multipliers: Doubles, in_force: list[int], n_features: int
) -> bool:
    """Raise the multiplier of one half-space until it is met, in place; False where the cell is empty."""
    while True:
        others = np.array(in_force, dtype=np.intp)
        given_up = np.linalg.solve(products[np.ix_(others, others)], products[others, new])
        # As many normals as features span everything; the difference of products would be mere rounding there.
        free = len(others) < n_features
        gained = products[new, new] - products[new, others] @ given_up if free else 0.0
        falling = given_up > 0
        ends = np.full(len(others), np.inf)
        ends[falling] = multipliers[others[falling]] / given_up[falling]
        met = (distances[new] - products[new] @ multipliers) / gained if gained > PARALLEL else np.inf
        step = min(met, ends.min(initial=np.inf))
        if not np.isfinite(step):
            return False
        multipliers[others] = np.maximum(multipliers[others] - step * given_up, 0.0)
        multipliers[new] += step
        if step == met:
            in_force.append(new)
            return True
        leaves = int(ends.argmin())
        multipliers[in_force.pop(leaves)] = 0.0
