import torch

from crisptree.learning.batches import Groups, group_rows
from crisptree.learning.plan import Plan
from tests.toys import generator


def groups_of(*sizes):
    return Groups(torch.arange(sum(sizes)), torch.tensor(sizes))


def seen(groups, plan):
    """The rows of every update of an epoch, and the group of each."""
    return list(groups.epoch(plan, generator()))


def test_an_epoch_shows_every_row_once_in_batches_of_at_most_the_batch_size_per_group():
    updates = seen(groups_of(23, 4, 10), Plan(batch_size=5))
    assert len(updates) == 5
    assert sorted(torch.cat([rows for rows, _ in updates]).tolist()) == list(range(37))
    for _, group in updates:
        assert torch.bincount(group).max() <= 5


def test_groups_that_have_finished_their_batches_drop_out():
    updates = groups_of(4, 23, 10).schedule(Plan(batch_size=5))
    assert [update.active.tolist() for update in updates] == [[0, 1, 2], [1, 2], [1], [1], [1]]


def test_rows_are_shuffled_inside_their_group_only():
    rows, group = seen(groups_of(50, 50), Plan(batch_size=20))[0]
    assert (rows < 50).tolist() == (group == 0).tolist()
    assert rows[group == 0].tolist() != list(range(len(rows) // 2))


def test_small_groups_go_through_their_rows_until_they_have_had_enough_updates():
    groups, plan = groups_of(100, 10), Plan(batch_size=10, epochs=5, min_updates=30)
    assert groups.passes(plan).tolist() == [1, 6]
    times_seen = torch.bincount(torch.cat([rows for rows, _ in seen(groups, plan)]))
    assert times_seen.tolist() == [1] * 100 + [6] * 10


def test_one_batch_draws_no_random_numbers():
    shuffler = generator()
    before = shuffler.get_state()
    groups_of(5, 3).shuffled(Plan(batch_size=10), shuffler)
    assert torch.equal(shuffler.get_state(), before)


def test_rows_are_gathered_by_group_in_the_order_asked_for():
    groups = group_rows(torch.tensor([2, 0, 1, 2, 0]), [2, 0])
    assert groups.rows.tolist() == [0, 3, 1, 4]
    assert groups.group.tolist() == [0, 0, 1, 1]
