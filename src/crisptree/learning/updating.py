"""A fitted tree trained further on new rows: its structure is kept, and grown on only if that is asked for."""

from __future__ import annotations

from dataclasses import replace

import torch

from crisptree.inference import CrispTree
from crisptree.inference.statistics import add_prior_counts, finalize
from crisptree.learning.finetuning import finetune
from crisptree.learning.fitting import GROWERS, Work, kind_for, training_on, unsettled_tree
from crisptree.learning.history import Ending, Listener
from crisptree.learning.problem import Problem
from crisptree.learning.spec import Spec


def update_tree(
    earlier: CrispTree, spec: Spec, problem: Problem, *, memory: float, grows: bool, on_epoch: Listener | None = None
) -> CrispTree:
    """The tree after some new rows.

    All splits and leaves are finetuned on the new rows, from the middle γ on. What the leaves have counted before stays
    with them: in every epoch it is added, times ``memory``, to what the new rows say. Of the splits no old row is left
    to speak, so they move the slower the fewer the new rows are: by their share of all the learning rate is multiplied.

    Parameters
    ----------
    earlier : CrispTree
        Settled on its rows.
    spec : Spec
        How, with ``grow="keep"``.
    problem : Problem
        The new rows, on the scale of the earlier tree.
    memory : float
        What an old row counts beside a new one.
    grows : bool
        Whether leaves that the new rows show to be mixed may be split.
    on_epoch : callable, optional
        Called with a record of every epoch.
    """
    kind, rows = kind_for(spec, problem), problem.training
    with training_on(spec, kind, problem) as device:
        samples, _ = problem.on(device, spec.n_jobs)
        held = spec.constraints.on(problem.scaling, device)
        work = Work(spec, samples, kind, torch.Generator().manual_seed(spec.seed), Ending(on_epoch), held)
        soft = GROWERS["keep"](work, earlier)
        old = memory * earlier.statistics.node_counts[earlier.structure.n_splits :]
        before, now = problem.target.weight(old).sum(), rows.weight.sum()
        plan = spec.finetuning.later_half
        plan = replace(plan, learning_rate=plan.learning_rate * float(now / (before + now)))
        zeros = soft.tree.splits.parameters["weight"] == 0 if work.holds_zeros else None
        remembered = torch.from_numpy(old / rows.weight.mean()).to(soft.tree.leaves)
        tuned = finetune(
            soft.tree,
            samples,
            plan,
            generator=work.generator,
            on_epoch=work.on_epoch,
            zeros=zeros,
            signs=work.signs,
            remembered=remembered,
        )
        tuned = soft._replace(steepness=earlier.statistics.steepness) if tuned.tree is soft.tree else tuned
        if grows and not work.on_epoch:
            tuned = tuned._replace(tree=GROWERS["greedy"](work, tuned).tree)
        tree = unsettled_tree(tuned, spec, problem)
    tree = finalize(tree, rows.X, rows.y, rows.weight, spec.leaf_prior, spec.n_jobs, problem.target)
    return add_prior_counts(tree, earlier, memory, spec.leaf_prior)
