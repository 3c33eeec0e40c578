import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from crisptree.inspection.counterfactual_search import project_onto_halfspaces


def half_spaces(m, p, seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(m, p))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.normal(size=m)


@pytest.mark.parametrize(("m", "p"), [(1, 1), (3, 1), (4, 2), (8, 3), (12, 5), (6, 40)])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_point_that_a_general_solver_finds(m, p, seed):
    normals, distances = half_spaces(m, p, seed)
    found = project_onto_halfspaces(normals, distances)
    empty = linprog(np.zeros(p), -normals, -distances, bounds=(None, None)).status == 2
    assert (found is None) == empty
    if found is None:
        return
    general = minimize(
        lambda step: step @ step,
        np.zeros(p),
        jac=lambda step: 2 * step,
        constraints={"type": "ineq", "fun": lambda step: normals @ step - distances, "jac": lambda step: normals},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert (normals @ found >= distances - 1e-9).all()
    assert np.linalg.norm(found) <= np.linalg.norm(general.x) + 1e-6


@settings(max_examples=60)
@example(5, 3, 3469, 1.0)  # empty, and three normals in force leave the fourth nothing but rounding
@given(st.integers(1, 10), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_its_multipliers_prove_it_the_nearest(m, p, seed, size):
    """Optimal: δ is a non-negative combination of the normals of half-spaces that hold with equality."""
    normals, distances = half_spaces(m, p, seed)
    found = project_onto_halfspaces(normals, size * distances)
    if found is None:
        return
    slack = (normals @ found - size * distances) / size
    assert (slack >= -1e-7).all()
    tight = normals[slack < 1e-6]
    if np.abs(found).max() < 1e-9 * size:
        return
    assert len(tight)
    best = np.clip(np.linalg.lstsq(tight.T, found, rcond=None)[0], 0, None) if len(tight) <= p else None
    if best is not None and np.linalg.matrix_rank(tight) == len(tight):
        assert tight.T @ best == pytest.approx(found, rel=1e-5, abs=1e-6 * size)


def test_without_half_spaces_the_step_is_zero():
    assert project_onto_halfspaces(np.zeros((0, 3)), np.zeros(0)).tolist() == [0, 0, 0]


def test_repeated_and_opposite_half_spaces_are_no_trouble():
    normals = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert project_onto_halfspaces(normals, np.array([2.0, 2.0, -2.0])).tolist() == [2.0, 0.0]
    assert project_onto_halfspaces(normals, np.array([2.0, 1.0, -1.9])) is None
