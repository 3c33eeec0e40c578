"""A new source of rows is a function that yields them in pieces; growth, finetuning and statistics need no more."""

import numpy as np

from crisptree.data.raw_rows import Scaling
from crisptree.inference import route_rows
from crisptree.learning.fitting import fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet
from crisptree.pipeline.batches import BatchedTask, Totals
from crisptree.targets import Classes
from tests.toys import plain_tree

N_PIECES, PIECE = 6, 200


def computed_rows(number):
    """Rows that are stored nowhere."""
    X = np.random.default_rng(number).normal(size=(PIECE, 3)).astype(np.float32)
    return RowSet(X, (X[:, 0] > X[:, 1]).astype(np.int64), np.ones(PIECE))


def passes(seed):
    order = np.arange(N_PIECES) if seed is None else np.random.default_rng(seed).permutation(N_PIECES)
    return (computed_rows(int(number)) for number in order)


def test_a_tree_is_trained_on_rows_that_are_computed_in_every_pass():
    pieces = list(passes(None))
    counts = np.bincount(np.concatenate([piece.y for piece in pieces]), minlength=2).astype(np.float64)
    mean = np.mean([piece.X.mean(axis=0) for piece in pieces], axis=0, dtype=np.float64)
    totals = Totals(N_PIECES * PIECE, 1.0, counts, mean)
    task = BatchedTask(pieces[0], Scaling.none(3), Classes(2), totals=totals, chunks=passes)
    parameters = plain_tree(algorithm="likelihood", max_depth=2, epochs=3, finetune_epochs=3).training_parameters()
    spec = Spec.of(parameters, input_norm=3.0, mean_weight=1.0, n_rows=totals.n_rows, image_shape=None, seed=0)
    tree = fit_tree(spec, task).tree
    assert tree.statistics.node_counts[0].tolist() == counts.tolist(), "leaf statistics are those of all rows"
    unseen = computed_rows(N_PIECES)
    assert np.mean(tree.labels(route_rows(tree, unseen.X)) == unseen.y) > 0.95
