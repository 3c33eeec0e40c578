import torch

from crisptree.learning.batches import Groups, group_rows
from crisptree.learning.plan import Plan
from tests.toys import generator


def groups_of(*sizes):
    return Groups(torch.arange(sum(sizes)), torch.tensor(sizes))


def test_an_epoch_shows_every_row_once_in_batches_of_at_most_the_batch_size_per_group():
    groups = groups_of(23, 4, 10)
    updates = list(groups.updates(Plan(batch_size=5), generator()))
    assert len(updates) == 5
    seen = torch.cat([update.rows for update in updates])
    assert sorted(seen.tolist()) == list(range(37))
    for update in updates:
        assert torch.bincount(update.group).max() <= 5


def test_groups_that_have_finished_their_batches_drop_out():
    updates = list(groups_of(23, 4, 10).updates(Plan(batch_size=5), generator()))
    assert updates[0].active is None
    assert updates[1].active.tolist() == [0, 2]
    assert updates[4].active.tolist() == [0]


def test_rows_are_shuffled_inside_their_group_only():
    groups = groups_of(50, 50)
    first = next(iter(groups.updates(Plan(batch_size=20), generator())))
    assert (first.rows < 50).tolist() == (first.group == 0).tolist()
    assert first.rows[first.group == 0].tolist() != list(range(len(first.rows) // 2))


def test_small_groups_go_through_their_rows_until_they_have_had_enough_updates():
    groups, plan = groups_of(100, 10), Plan(batch_size=10, epochs=5, min_updates=30)
    assert groups.passes(plan).tolist() == [1, 6]
    updates = list(groups.updates(plan, generator()))
    times_seen = torch.bincount(torch.cat([update.rows for update in updates]))
    assert times_seen.tolist() == [1] * 100 + [6] * 10


def test_one_batch_draws_no_random_numbers():
    shuffler = generator()
    before = shuffler.get_state()
    list(groups_of(5, 3).updates(Plan(batch_size=10), shuffler))
    assert torch.equal(shuffler.get_state(), before)


def test_rows_are_gathered_by_group_in_the_order_asked_for():
    groups = group_rows(torch.tensor([2, 0, 1, 2, 0]), [2, 0])
    assert groups.rows.tolist() == [0, 3, 1, 4]
    assert groups.group.tolist() == [0, 0, 1, 1]
