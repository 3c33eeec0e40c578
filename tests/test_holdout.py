import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from crisptree.targets.base import hold_out


def test_every_row_is_in_one_of_the_two_parts():
    kept, held = hold_out(np.arange(50) % 3, 0.3, seed=1)
    assert len(held) == 15
    assert sorted([*kept, *held]) == list(range(50))


def test_rows_are_those_of_scikit_learn_with_classes_in_their_shares():
    y = np.random.default_rng(0).integers(0, 4, 103)
    for share, n_held in ((0.1, 10), (0.5, 52), (21, 21)):
        expected = train_test_split(np.arange(103), test_size=n_held, random_state=7, stratify=y)
        for part, rows in zip(hold_out(y, share, seed=7), expected, strict=True):
            assert part.tolist() == rows.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_equal_remainders_are_drawn_as_scikit_learn_draws_them(seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(5).repeat(2), rng.integers(0, 5, rng.integers(5, 40))])
    n_held = int(rng.integers(5, len(y) - 4))
    expected = train_test_split(np.arange(len(y)), test_size=n_held, random_state=seed, stratify=y)
    for part, rows in zip(hold_out(y, n_held, seed=seed), expected, strict=True):
        assert part.tolist() == rows.tolist()


def test_names_of_classes_give_the_same_rows_as_their_numbers():
    y = np.random.default_rng(1).integers(0, 3, 60)
    names = np.array(["ash", "beech", "oak"])[y]
    assert [part.tolist() for part in hold_out(names, 0.2, 0)] == [part.tolist() for part in hold_out(y, 0.2, 0)]


@pytest.mark.parametrize("y", [[0, 0, 0, 1], [0, 1, 2, 0, 1, 2]], ids=["one row of a class", "no room for all"])
def test_where_classes_cannot_have_their_shares_rows_are_drawn_without_regard_to_them(y):
    expected = train_test_split(np.arange(len(y)), test_size=1, random_state=3)
    for part, rows in zip(hold_out(np.array(y), 0.2, seed=3), expected, strict=True):
        assert part.tolist() == rows.tolist()


def test_a_share_is_at_least_one_row_and_not_all():
    y = np.zeros(5, dtype=int)
    assert [len(part) for part in hold_out(y, 0.001, 0)] == [4, 1]
    assert [len(part) for part in hold_out(y, 0.999, 0)] == [1, 4]


def test_classes_can_be_kept_where_they_would_be_held_out_whole():
    y = np.array([0] * 9 + [1])
    seed = next(seed for seed in range(100) if 9 in hold_out(y, 0.2, seed)[1])
    kept, held = hold_out(y, 0.2, seed, keep_classes=True)
    assert 9 in kept
    assert 9 not in held
    assert sorted([*kept, *held]) == list(range(10))


def test_one_row_cannot_be_divided():
    with pytest.raises(ValueError, match="at least 2 rows"):
        hold_out(np.array([1]), 0.5, 0)


def test_copies_of_a_row_go_with_it_and_are_never_held_out():
    source = np.tile(np.arange(30), 4)
    y = np.arange(30) % 3
    kept, held = hold_out(np.tile(y, 4), 0.2, seed=1, source=source)
    assert len(held) == 6
    assert held.max() < 30
    assert sorted(kept) == [row for row in range(120) if row % 30 not in held]
