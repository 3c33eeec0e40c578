import torch

from crisptree.learning.engines.base import Groups, Orders, group_rows
from crisptree.learning.options import Plan
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
    groups_of(5, 3).shuffle(Plan(batch_size=10), shuffler)
    assert torch.equal(shuffler.get_state(), before)


def test_rows_are_gathered_by_group_in_the_requested_order():
    groups = group_rows(torch.tensor([2, 0, 1, 2, 0]), [2, 0])
    assert groups.rows.tolist() == [0, 3, 1, 4]
    assert groups.group.tolist() == [0, 0, 1, 1]


def test_an_epoch_sees_a_share_of_every_group_and_at_least_a_batch_of_it():
    groups, plan = groups_of(1000, 400, 5), Plan(batch_size=50, rows_per_epoch=281)
    assert groups.count_taken(plan).tolist() == [200, 80, 5]
    updates = seen(groups, plan)
    rows, group = (torch.cat(parts) for parts in zip(*updates, strict=True))
    assert torch.bincount(group).tolist() == [200, 80, 5]
    assert len(rows.unique()) == 285
    assert torch.equal(torch.bucketize(rows, torch.tensor([1000, 1400]), right=True), group)


def test_small_groups_give_as_many_batches_as_they_need_updates():
    plan = Plan(batch_size=10, epochs=4, min_updates=12, rows_per_epoch=100)
    assert groups_of(2000, 200).count_taken(plan).tolist() == [91, 30]


def test_epochs_walk_on_through_all_rows_before_one_comes_again():
    orders = Orders(groups_of(100, 60), Plan(batch_size=10, rows_per_epoch=32), generator())
    epochs = [orders.next() for _ in range(10)]
    assert all(len(order) == 32 for order in epochs)
    for five in (epochs[:5], epochs[5:]):
        assert torch.cat(five).sort().values.tolist() == list(range(160))
    assert not torch.equal(epochs[0], epochs[5])


def test_as_many_rows_as_there_are_make_the_same_epochs_as_no_limit():
    plans = (Plan(batch_size=10), Plan(batch_size=10, rows_per_epoch=160))
    one, other = (Orders(groups_of(100, 60), plan, generator()).next() for plan in plans)
    assert torch.equal(one, other)


def test_a_sample_of_the_groups_is_spread_evenly_over_their_rows():
    sample = groups_of(100, 10).sample(Plan(batch_size=5, rows_per_epoch=22))
    assert sample.sizes.tolist() == [20, 5]
    assert sample.rows.tolist() == [*range(0, 100, 5), *range(100, 110, 2)]
