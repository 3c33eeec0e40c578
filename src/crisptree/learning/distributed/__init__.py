"""ONE TREE BY SEVERAL PROCESSES, the same bits for any number of them.

Rows belong to a fixed number of shards, contiguous parts of all rows; a process has whole ones (``rows``). What a shard
adds is computed on its rows alone, in one order; sums over shards are taken in whole units (``group``), which no
order changes. Random numbers are drawn from one seed, and for the rows of a shard from that seed and the shard's number
(``steps``). So nothing in a fit knows how many processes there are.
"""
