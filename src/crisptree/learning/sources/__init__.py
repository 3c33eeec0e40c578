"""Sources of training rows. ``Samples`` holds them in memory; a ``SummedRows`` offers sums over all of them.

``batches`` reads rows from batches again and again, ``shards`` has those of one process of a group. Growth, finetuning
and finalisation are written once, against what all of them offer.
"""
