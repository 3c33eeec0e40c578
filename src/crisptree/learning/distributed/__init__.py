"""Communication of a process group. One tree by several processes has the same bits for any number of them.

Rows belong to a fixed number of shards, contiguous parts of all rows, and a process has whole shards
(``learning/sources/shards.py``). What a shard adds is computed from its rows alone, in one order; sums over shards are
taken in integer units (``group``), which no order changes. Random numbers are drawn from one seed, and for the rows of
a shard from that seed and the shard's number (``ShardedGroups``). So no result depends on the number of
processes.
"""
