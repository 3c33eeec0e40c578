"""What "auto" may become: candidates, the rounds in which they are tried, their comparison, and fallbacks.

A round is a generator of batches of candidates, dicts of parameter values. A batch is scored before the next one is
requested, so that later ones may start from the best so far; its candidates are trained side by side. To add a
candidate, add a value to a table or a generator to a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inference.finalization import (
    SomeTree,
    constrain_monotonic,
    prune,
    select_alpha,
    select_strength,
    shrink,
)
from crisptree.inference.flat_tree import BRANCH_LINEAR, LINEAR_LEAVES, has_linear_leaves

if TYPE_CHECKING:
    from crisptree.learning.samples import RowSet, TrainingTask
    from crisptree.selection.search import CandidateSearch


Doubles = npt.NDArray[np.float64]

LOSS_SHARE = 0.2
"""Weight of a nat of log loss relative to accuracy in the comparison of classification trials."""

FALLBACKS: dict[str, Any] = {
    "split": "oblique",
    "input_noise": 0.3,
    "l1": 0.0,
    "leaf_model": "constant",
    "shrinkage": 0.0,
}
"""Values in place of "auto" where nothing is selected, such as on too few rows."""

OBLIQUE_DEPTH = {"classes": 14, "soft_classes": 14, "gaussians": 8}
"""max_depth="auto" of forests for hyperplanes, by target; CART's thresholds then have no limit."""

TREE_DEPTH = 8
"""max_depth="auto" of single trees where nothing is selected."""

TRIAL_SHRINKAGE = 3.0
"""Shrinkage of the leaf tables of trials, in rows of mean weight: probabilities and means of small leaves are compared
as a fit would leave them."""

SELECTED = ("split", "input_noise", "l1", "shrinkage")
"""Parameters whose "auto" starts a selection; max_depth, leaf_model and scale are resolved along with them."""


def is_auto(parameters: Mapping[str, Any], name: str) -> bool:
    """Return True if a parameter is "auto"."""
    return isinstance(parameters.get(name), str) and parameters[name] == "auto"


def is_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if a parameter is to be selected on held-out rows."""
    return any(is_auto(parameters, name) for name in SELECTED) or is_leaf_penalty_unresolved(parameters)


def is_leaf_penalty_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if the penalty of linear leaves is to be selected."""
    return has_linear_leaves(parameters) and is_auto(parameters, "leaf_l2")


def has_candidates(parameters: Mapping[str, Any]) -> bool:
    """Return True if there are candidates for this kind of tree: greedy growth of hyperplanes or thresholds."""
    if parameters["grow"] != "greedy" or callable(parameters["split"]):
        return False
    return bool(parameters["split"] != "conv" and parameters["max_depth"] != 0)


def resolve_scale(
    parameters: Mapping[str, Any], image_shape: tuple[int, ...] | None, *, is_sparse: bool = False
) -> str | None:
    """Return the scale that training starts with: for "auto" one per column of a table.

    The pixels of an image share a unit, and so do the counts or indicators of sparse rows: scaled by its own spread, a
    feature that few rows have would be the largest of all.
    """
    scale: str | None = parameters["scale"]
    return scale if scale != "auto" else "feature" if image_shape is None and not is_sparse else "global"


def resolve_depth(parameters: Mapping[str, Any], target: str) -> dict[str, Any]:
    """Replace max_depth="auto" by the depth of hyperplanes for a target of that name."""
    if not is_auto(parameters, "max_depth"):
        return dict(parameters)
    return dict(parameters) | {"max_depth": OBLIQUE_DEPTH[target] if "n_estimators" in parameters else TREE_DEPTH}


def retain_selected(selected: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selected values that still hold when a tree is grown further: not its depth, nor what is set now."""
    names = {name for name in selected if is_auto(parameters, name)}
    if is_auto(parameters, "split") or is_auto(parameters, "leaf_model") or parameters["split"] == "axis":
        names |= {"finetune_epochs", "min_samples_leaf"}
    return {name: value for name, value in selected.items() if name in names}


def apply_selected(
    parameters: Mapping[str, Any],
    selected: Mapping[str, Any],
    image_shape: tuple[int, ...] | None,
    *,
    is_sparse: bool = False,
) -> dict[str, Any]:
    """Replace "auto" by the selected values, or by fallbacks where nothing is selected."""
    values = dict(parameters)
    fallbacks = dict(FALLBACKS)
    has_closed_form_noise = parameters["split"] in ("auto", "oblique", "axis")
    is_annealed = parameters["grow"] in ("greedy", "balanced")
    if not (has_closed_form_noise and is_annealed):
        fallbacks["input_noise"] = 0.0
    values["scale"] = resolve_scale(parameters, image_shape, is_sparse=is_sparse)
    for name, value in (fallbacks | dict(selected)).items():
        if is_auto(parameters, name) or (name in selected and name == "max_depth"):
            values[name] = value
    if "finetune_epochs" in selected:
        values["finetune_epochs"] = selected["finetune_epochs"]
    # Candidates of thresholds are grown by CART and not finetuned; without candidates, split="axis" is trained jointly.
    is_cart = parameters["split"] == "auto" or "finetune_epochs" in selected
    if is_cart and values["split"] == "axis" and values["max_depth"] != 0:
        values["grow"] = "cart"
        if isinstance(values["min_samples_leaf"], Integral):
            values["min_samples_leaf"] = max(values["min_samples_leaf"], selected.get("min_samples_leaf", 1))
    return values


def list_changes(
    parameters: Mapping[str, Any], selected: Mapping[str, Any], target: str, image_shape: tuple[int, ...] | None
) -> dict[str, Any]:
    """Return the values to set so that a fit selects nothing and trains what was selected.

    The inverse of ``apply_selected``: an estimator that is given them has its parameters.
    """
    limited = resolve_depth(parameters, target)
    resolved = apply_selected(limited, selected, image_shape)
    changes = {name: value for name, value in resolved.items() if value is not limited[name] and value != limited[name]}
    # "auto" depends on the kind of rows.
    changes = {name: changes[name] for name in changes if name in selected or name != "scale"}
    if is_auto(parameters, "shrinkage") and "shrinkage" not in selected:
        changes["shrinkage"] = 0.0 if has_linear_leaves(resolved) else TRIAL_SHRINKAGE
    return changes


def is_postprocessing_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if pruning or shrinkage is to be resolved on rows that did not train the tree."""
    return "auto" in (parameters["ccp_alpha"], parameters["shrinkage"])


def disable_postprocessing(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a silent fit without pruning and shrinkage."""
    return {**parameters, "ccp_alpha": None, "shrinkage": 0.0, "callbacks": None, "verbose": False}


def postprocess(tree: SomeTree, parameters: Mapping[str, Any]) -> SomeTree:
    """Order the leaf tables of a trained tree, prune it and shrink its leaf tables by resolved parameters."""
    prior = parameters["leaf_prior"]
    tree = order(tree, parameters)
    if parameters["ccp_alpha"] is not None:
        tree = prune(tree, parameters["ccp_alpha"], prior)
    return shrink(tree, parameters["shrinkage"], prior)


def order(tree: SomeTree, parameters: Mapping[str, Any]) -> SomeTree:
    """Order the leaf tables of a tree where there are monotonic constraints."""
    features = parameters.get("monotonic_cst")
    return constrain_monotonic(tree, features) if features else tree


def resolve_postprocessing(
    tree: SomeTree, parameters: Mapping[str, Any], task: TrainingTask, held_out: RowSet | None, mean_weight: float
) -> dict[str, Any]:
    """Resolve "auto" of pruning, then of shrinkage, on held-out rows; in a process group one process does it for all.

    ``mean_weight`` is that of the training rows, the unit of the shrinkage strengths that are compared.
    """
    n_jobs, prior = parameters["n_jobs"], parameters["leaf_prior"]

    def select() -> dict[str, Any]:
        assert held_out is not None
        rows = (held_out.X, held_out.y, held_out.weight)
        selected = {name: parameters[name] for name in ("ccp_alpha", "shrinkage")}
        if selected["ccp_alpha"] == "auto":
            selected["ccp_alpha"] = select_alpha(tree, *rows, n_jobs=n_jobs)
        if selected["shrinkage"] == "auto":
            pruned = postprocess(tree, {**parameters, **selected, "shrinkage": 0.0})
            strength = select_strength([(pruned, rows)], prior, mean_weight, n_jobs)
            selected["shrinkage"] = strength
        return selected

    return {**parameters, **(task.compute_once(select) if is_postprocessing_unresolved(parameters) else {})}


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate and its scores on held-out rows.

    Parameters
    ----------
    values : dict
        The candidate: values of parameters.
    row_scores : ndarray of shape (n,)
        Score of every held-out row, fold after fold, by ``scoring``; by default 1 or 0 for classification, and 1 − the
        squared error of y with variance 1 for regression.
    row_weights : ndarray of shape (n,)
        Weights of these rows.
    weights, leaves : float
        Number of non-zero weights, those of linear leaves included, and of leaves; averaged over folds and trees.
    row_losses : ndarray of shape (n,) or None
        Log loss of every held-out row; None for regression.
    trees : tuple of FlatTree
        Trees of the folds, kept while candidates are compared.
    candidate : int
        Number of the candidate in the order of training, from 1; one that is scored at several depths has several
        trials.
    """

    values: dict[str, Any]
    row_scores: Doubles
    row_weights: Doubles
    weights: float
    leaves: float
    row_losses: Doubles | None = None
    trees: tuple[FlatTree, ...] = ()
    candidate: int = 0

    @cached_property
    def score(self) -> float:
        """Weighted mean over the rows."""
        return float(np.average(self.row_scores, weights=self.row_weights))

    @cached_property
    def merit(self) -> float:
        """The score less a share of the log loss, which tells trees apart that are right on the same rows."""
        return self.score - LOSS_SHARE * self.log_loss

    @cached_property
    def log_loss(self) -> float:
        """Weighted mean log loss of the rows; 0 for regression."""
        return 0.0 if self.row_losses is None else float(np.average(self.row_losses, weights=self.row_weights))

    def error_against(self, other: Trial) -> float:
        """Standard error of the difference of two scores, row by row."""
        return self._error(self.row_scores - other.row_scores)

    @property
    def error(self) -> float:
        """Standard error of the score."""
        return self._error(self.row_scores)

    def _error(self, values: Doubles) -> float:
        share = self.row_weights / self.row_weights.sum()
        return float(np.sqrt((share**2 * (values - share @ values) ** 2).sum()))

    @property
    def size(self) -> float:
        """Leaves × weights: the measure of ``simplest_within``."""
        return self.leaves * self.weights


def find_simplest(trials: Sequence[Trial], tolerance: float) -> Trial:
    """Return the smallest trial whose score is within a tolerance of the highest one, the best of equal sizes."""
    least = max(trial.score for trial in trials) - tolerance
    return min((trial for trial in trials if trial.score >= least), key=lambda trial: (trial.size, -trial.merit))


def find_best(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the highest merit, the first one of equals."""
    return max(trials, key=lambda trial: trial.merit)


def select_against(reference: Trial, trials: Sequence[Trial], min_errors: float) -> Trial:
    """Return the best trial if it exceeds a reference by more than so many standard errors, else the reference."""
    best = find_best(trials)
    return best if best.score - reference.score > min_errors * best.error_against(reference) else reference


Batch = list[dict[str, Any]]
Candidates = Iterator[Batch]
Round = Callable[["CandidateSearch"], Candidates]

NOISE_LEVELS = {"table": (0.0, 0.3, 0.7, 1.4), "image": (0.0, 0.5, 1.0, 1.5)}
"""Input noise in units of the scaled features: the two in the middle first, then the one beyond the better of them."""

NOISE_LADDER = (0.0, 0.3, 0.7, 1.4)
DEPTH_LADDER = (1, 2, 3, 4, 6, 8, 10, 14)
L1_LADDER = (0.0, 0.003, 0.01, 0.03)
"""Values of small tables, where a trial takes milliseconds: a search walks along a ladder while scores rise."""

START_DEPTH, START_NOISE, START_L1 = 4, 0.3, (0.01, 0.003)
"""Starts of the searches."""

DEEPER = 8
"""Depth of hyperplanes that are tried once more where the first ones are far behind."""

LINEAR_LEAF_DEPTHS = (0, 1, 2, 3, 4, 6, 8)
"""Depths of trees with linear leaves; depth 0 is a linear model."""

MAX_DEPTH_OF_LINEAR_LEAVES = {"oblique": 4, "axis": 8, BRANCH_LINEAR: 8}
"""Depth to which trees with linear leaves grow, by their splits and models."""

CONSTRAINTS_OF_SPLITS = ("monotonic_cst", "max_features_per_split", "interaction_cst")
"""Parameters that CART's search does not know."""

RESTRICTIONS_OF_LINEAR_LEAVES = ("ccp_alpha", *CONSTRAINTS_OF_SPLITS)
"""Parameters under which linear leaves are not tried."""

MAX_VALUES_OF_LINEAR_LEAVES = 512
"""Features times outputs of a leaf's model that is tried: solving larger ones takes longer than all other trials."""

SPARSE: tuple[dict[str, float], ...] = ({"l1": 0.01, "input_noise": 0.3}, {"l1": 0.03})
"""Sparse trees: slightly sparser with little noise, then more with the best noise, or little: without any, the full
training overfits where the short one of a trial did not."""

SPARSE_DEPTH = 4
"""Depth of sparse classification trees."""

FIRST_DEPTH = {"constant": 6, "linear": 4}
"""Regression trees are tried at this depth first, then with the best noise at others: full ones take the longest."""

LOWER_DEPTHS = {
    ("classes", "constant"): (4,),
    ("classes", "linear"): (4,),
    ("gaussians", "constant"): (4, 6),
    ("gaussians", "linear"): (2, 4),
}
"""Depths that are tried beside the full and the minimal one, by target and leaf model: a linear leaf does the work of
many constant ones."""

MAX_DEFICIT = {"classes": 0.04, "gaussians": 0.1}
"""A family whose first candidate is further behind the best, in accuracy or R², gets no further one."""

SPREAD_RATIOS_OF_ONE_UNIT = (1.5, 30.0)
"""Columns may share a unit if the 90th percentile of their spreads is so many times the 10th."""

CART_SPLITS = {"split": "axis", "input_noise": 0.0, "l1": 0.0}
"""Splits on one feature each, found as CART finds them."""

CART_MIN_SAMPLES_LEAF = (1, 5)
"""Minimal leaf sizes of CART's thresholds."""

MIN_SAMPLES_OF_LINEAR_LEAVES = {"linear": (20,), BRANCH_LINEAR: (5, 20)}
"""The same for linear leaves of all features, and of those that the splits have."""

LINEAR_LEAVES_IN_FOREST = (
    *((BRANCH_LINEAR, min_rows, penalty) for min_rows in (5, 20) for penalty in (1.0, 10.0, 100.0)),
    *(("linear", min_rows, penalty) for min_rows, penalty in ((20, 10.0), (20, 100.0), (50, 10.0), (5, 30.0))),
)
"""Linear leaves in regression forests: model, minimal leaf size, and penalty in rows of mean weight."""

MAX_FEATURES_OF_LINEAR_LEAVES_OF_CART = 64
"""Features up to which CART's thresholds are tried with linear leaves of all features."""

CART_MAX_FEATURES, FEWER_FEATURES = ("sqrt", None), (1 / 3, 2 / 3)
"""Features per split of CART's thresholds in a forest, and of the best of a regression forest once more."""

FEATURE_FRACTION = 0.4
"""Fraction of the features per hyperplane of a forest, which decorrelates its trees."""


def climb(search: CandidateSearch, name: str, ladder: Sequence[Any]) -> Candidates:
    """Try both neighbours of the best hyperplanes on a ladder of values, and walk on while the best ones change."""
    while True:
        best = search.best_of(is_oblique)
        place = ladder.index(best.values.get(name, ladder[0]))
        yield [best.values | {name: ladder[i]} for i in (place + 1, place - 1) if 0 <= i < len(ladder)]
        if search.best_of(is_oblique) is best:
            break


def limit_depths(search: CandidateSearch) -> list[int]:
    """Return the depths of trees, with the given limit in the place of those beyond it."""
    limit = search.max_depth
    if limit is None or search.has_free_depth:
        return list(DEPTH_LADDER)
    return [*(depth for depth in DEPTH_LADDER if depth < limit), limit]


def is_oblique(values: Mapping[str, Any]) -> bool:
    """Return True for candidates of hyperplanes with constant leaves."""
    return values.get("split", "oblique") == "oblique" and not has_linear_leaves(values)


def is_axis_aligned(values: Mapping[str, Any]) -> bool:
    """Return True for candidates of thresholds."""
    return values.get("split") == "axis"


def is_hopeless(search: CandidateSearch, belongs: Callable[[dict[str, Any]], bool] = is_oblique) -> bool:
    """Return True if some candidates, by default hyperplanes, are so far behind that no further ones are tried."""
    return search.best_of(belongs).merit < search.best.merit - MAX_DEFICIT[search.target.name]


def try_hyperplanes(search: CandidateSearch) -> Candidates:
    """Walk along noise levels, depths and noise levels again; then sparse weights."""
    if search.has_linear_leaves:
        return
    depths = limit_depths(search)
    start = {"split": "oblique", "max_depth": min(START_DEPTH, depths[-1]), "l1": 0.0}
    noises = [START_NOISE, *(NOISE_LADDER if search.is_free("input_noise") else ())]
    yield [start | {"input_noise": noise} for noise in noises]
    if is_hopeless(search):
        yield [search.best_of(is_oblique).values | {"max_depth": max(d for d in depths if d <= DEEPER)}]
        if is_hopeless(search):
            return
    yield from try_scales(search)
    yield from climb(search, "max_depth", depths)
    if search.is_free("input_noise"):
        yield from climb(search, "input_noise", NOISE_LADDER)
    if search.is_free("l1"):
        yield [search.best_of(is_oblique).values | {"l1": l1} for l1 in START_L1]
        yield from climb(search, "l1", L1_LADDER)


def limit_leaf_sizes(search: CandidateSearch, sizes: Sequence[int]) -> list[dict[str, int]]:
    """Return minimal leaf sizes of candidates, none below the one that is set."""
    given = search.parameters["min_samples_leaf"]
    # A fraction is no lower bound that a number of rows could raise.
    if not isinstance(given, Integral):
        return [{}]
    return [{"min_samples_leaf": size} for size in sorted({max(int(given), size) for size in sizes})]


def try_cart(search: CandidateSearch) -> Candidates:
    """CART's thresholds of several leaf sizes at every depth."""
    if not search.seeks_thresholds or search.has_linear_leaves:
        return
    depth = {} if search.max_depth is not None and not search.has_free_depth else {"max_depth": None}
    limits = limit_leaf_sizes(search, CART_MIN_SAMPLES_LEAF)
    yield [CART_SPLITS | {"finetune_epochs": 0} | depth | limit for limit in limits]


def try_linear_leaves(search: CandidateSearch) -> Candidates:
    """A linear model, and CART's thresholds with linear leaves at every depth; hyperplanes where they are asked for."""
    given, n_outputs = search.parameters.get("leaf_model"), search.target.n_classes or 1
    n_values = n_outputs * search.task.training.X.shape[1]
    # Pruning counts constant leaves, and a linear leaf has all features.
    is_restricted = any(search.parameters.get(name) is not None for name in RESTRICTIONS_OF_LINEAR_LEAVES)
    is_offered = search.is_free("leaf_model") and not is_restricted

    def limit(depth: int) -> dict[str, Any]:
        is_free = search.has_free_depth or search.max_depth is None
        return {"max_depth": depth if is_free else min(depth, search.max_depth or 0), "finetune_epochs": 0}

    n_before, batch = len(search.trials), Batch()
    oblique = {"split": "oblique", "l1": 0.0, "input_noise": START_NOISE}
    if given == BRANCH_LINEAR and not search.seeks_thresholds:
        batch.append(oblique | {"leaf_model": BRANCH_LINEAR} | limit(MAX_DEPTH_OF_LINEAR_LEAVES["oblique"]))
    if given == "linear" or (is_offered and n_values <= MAX_VALUES_OF_LINEAR_LEAVES):
        model = {"leaf_model": "linear"}
        has_splits = given == "linear" and not search.is_axis_aligned
        batch.append(oblique | model | limit(MAX_DEPTH_OF_LINEAR_LEAVES["oblique"] if has_splits else 0))
        if search.seeks_thresholds and search.task.training.X.shape[1] <= MAX_FEATURES_OF_LINEAR_LEAVES_OF_CART:
            for size in limit_leaf_sizes(search, MIN_SAMPLES_OF_LINEAR_LEAVES["linear"]):
                batch.append(CART_SPLITS | model | size | limit(MAX_DEPTH_OF_LINEAR_LEAVES["axis"]))
    if search.seeks_thresholds and (given == BRANCH_LINEAR or is_offered):
        own = {"leaf_model": BRANCH_LINEAR} | limit(MAX_DEPTH_OF_LINEAR_LEAVES[BRANCH_LINEAR])
        sizes = limit_leaf_sizes(search, MIN_SAMPLES_OF_LINEAR_LEAVES[BRANCH_LINEAR])
        batch += [CART_SPLITS | own | size for size in sizes]
    yield batch
    if given in LINEAR_LEAVES and search.parameters["finetune_epochs"] and len(search.trials) > n_before:
        best = find_best(search.trials[n_before:]).values
        if best["max_depth"] and not search.is_axis_aligned:
            yield [{name: value for name, value in best.items() if name != "finetune_epochs"}]


def try_noise_levels(search: CandidateSearch) -> Candidates:
    """Two noise levels, and a third level beyond the better one, or all levels."""
    none, low, high, highest = NOISE_LEVELS["table" if search.image_shape is None else "image"]
    first = {"max_depth": search.first_depth, "split": "oblique"}
    yield [first | {"input_noise": noise, "l1": 0.0} for noise in (low, high)]
    if search.is_free("input_noise"):
        best = search.best_of(is_oblique).values
        further = [highest, none] if best["input_noise"] == high else [none, highest]
        # Trials by L-BFGS are quick.
        yield [best | {"input_noise": noise} for noise in (further if search.uses_lbfgs else further[:1])]


def try_scales(search: CandidateSearch) -> Candidates:
    """One scale for all columns where they may share a unit; for sparse rows one per column."""
    if not search.is_free("scale"):
        return
    if search.is_sparse:
        yield [search.best_of(is_oblique).values | {"scale": "feature"}]
        return
    spread = search.folds[0].task.scaling.spread
    low, high = np.quantile(spread[spread > 0], (0.1, 0.9)) if spread.any() else (1.0, 1.0)
    if SPREAD_RATIOS_OF_ONE_UNIT[0] < high / low < SPREAD_RATIOS_OF_ONE_UNIT[1]:
        yield [search.best_of(is_oblique).values | {"scale": "global"}]


def try_noise_again(search: CandidateSearch) -> Candidates:
    """Walk along noise levels where another scale is the best one: a scale has a best noise of its own."""
    if search.is_free("input_noise") and search.best_of(is_oblique).values.get("scale"):
        yield from climb(search, "input_noise", NOISE_LADDER)


def try_depths(search: CandidateSearch) -> Candidates:
    """Shallower trees with the best noise, down to a linear model of one split, and the full depth."""
    lowest = max(1, math.ceil(math.log2(search.target.min_leaves)))
    best = search.best_of(is_oblique).values
    limit = math.inf if search.max_depth is None else search.max_depth
    lower = sorted({lowest, *LOWER_DEPTHS[search.target.name, search.leaf_model]})
    depths = [*(depth for depth in lower if lowest <= depth < limit), search.max_depth]
    yield [best | {"max_depth": depth} for depth in depths]


def try_sparse_weights(search: CandidateSearch) -> Candidates:
    """Shallow trees with l1; for regression as deep as the best so far, except the deepest."""
    if not search.is_free("l1"):
        return
    depth, limit = SPARSE_DEPTH, search.max_depth
    if search.target.is_regression:
        depth, limit = FIRST_DEPTH[search.leaf_model], search.best_of(is_oblique).values["max_depth"]
    depth = depth if limit is None else min(depth, limit)
    noise = {"input_noise": max(search.best_of(is_oblique).values.get("input_noise", 0.0), FALLBACKS["input_noise"])}
    for values in SPARSE:
        yield [search.best_of(is_oblique).values | noise | values | {"max_depth": depth}]
        if search.trials[-1].score < search.best_of(is_oblique).score - MAX_DEFICIT[search.target.name]:
            return


def try_sparse_weights_in_forest(search: CandidateSearch) -> Candidates:
    """Sparse trees as for a single tree, and at full depth; then fewer features per split."""
    yield from try_sparse_weights(search)
    if search.best_of(is_oblique).values.get("l1"):
        yield [search.best_of(is_oblique).values | {"max_depth": search.max_depth}]
    yield [search.best_of(is_oblique).values | {"max_features": FEATURE_FRACTION}]


def try_thresholds(search: CandidateSearch) -> Candidates:
    """CART's thresholds, of further leaf sizes unless those before are far behind the best."""
    for number, values in enumerate(chain.from_iterable(try_cart(search))):
        if number == 0 and search.is_far_behind(values):
            return
        yield [values]
        if is_hopeless(search, is_axis_aligned):
            return


def try_thresholds_in_forest(search: CandidateSearch) -> Candidates:
    """CART's thresholds to the full depth, as in a random forest."""
    if search.seeks_thresholds:
        depth = {"max_depth": None} if search.has_free_depth else {}
        yield [CART_SPLITS | {"finetune_epochs": 0, "max_features": share} | depth for share in CART_MAX_FEATURES]


def try_linear_leaves_in_forest(search: CandidateSearch) -> Candidates:
    """CART's thresholds with linear leaves, of several penalties: for regression only."""
    n_features = search.task.training.X.shape[1]
    if not (search.target.is_regression and search.seeks_thresholds and search.is_free("leaf_model")):
        return
    unit = search.task.mean_weight
    limit = {"max_depth": None if search.has_free_depth else search.max_depth, "finetune_epochs": 0}
    yield [
        CART_SPLITS
        | {"leaf_model": leaf_model, "leaf_l2": unit * penalty, "min_samples_leaf": min_rows, "max_features": None}
        | limit
        for leaf_model, min_rows, penalty in LINEAR_LEAVES_IN_FOREST
        if leaf_model == BRANCH_LINEAR or n_features <= MAX_FEATURES_OF_LINEAR_LEAVES_OF_CART
    ]


def try_fewer_features(search: CandidateSearch) -> Candidates:
    """The best thresholds of a regression forest, if nothing is better, with fewer features per split."""
    best = search.best.values
    if search.target.is_regression and search.seeks_thresholds and best.get("split", "axis") == "axis":
        yield [best | {"max_features": share} for share in FEWER_FEATURES]


def begin_together(*rounds: Round) -> Round:
    """Join the first batches of some rounds, none of which depends on trials."""

    def join(search: CandidateSearch) -> Candidates:
        batches = [candidates(search) for candidates in rounds]
        yield [candidate for each in batches for candidate in next(each, [])]
        yield from chain.from_iterable(batches)

    return join


TREE_ROUNDS: tuple[Round, ...] = (begin_together(try_cart, try_linear_leaves, try_hyperplanes),)
"""Trees on small tables, which L-BFGS trains."""

LARGE_TREE_ROUNDS: tuple[Round, ...] = (
    try_noise_levels,
    try_scales,
    try_noise_again,
    try_depths,
    try_sparse_weights,
    try_thresholds,
)
"""Trees that Adam trains, for which every trial counts."""


def try_hyperplanes_in_forest(search: CandidateSearch) -> Candidates:
    """Noise levels, scales and sparse weights, unless shallow hyperplanes are far behind."""
    limit = search.max_depth
    probe = {"split": "oblique", "l1": 0.0, "input_noise": START_NOISE}
    if search.trials:
        yield [probe | {"max_depth": DEEPER if limit is None else min(DEEPER, limit)}]
        if is_hopeless(search):
            return
    yield from try_noise_levels(search)
    yield from try_scales(search)
    yield from try_sparse_weights_in_forest(search)


THRESHOLD_ROUNDS: dict[bool, tuple[Round, ...]] = {
    False: (try_cart, try_linear_leaves),
    True: (try_thresholds_in_forest, try_linear_leaves_in_forest, try_fewer_features),
}
"""Trees, and forests, whose splits are to be thresholds: exact search takes a hundredth of the time of gradients."""

FOREST_ROUNDS: tuple[Round, ...] = (
    try_thresholds_in_forest,
    try_linear_leaves_in_forest,
    try_hyperplanes_in_forest,
    try_fewer_features,
)

IMAGE_ROUNDS: tuple[Round, ...] = (try_noise_levels,)
"""Images have no shallow, sparse or axis-aligned trees worth trying."""

USUAL_WORK = {TREE_ROUNDS: 14.0, LARGE_TREE_ROUNDS: 5.0, FOREST_ROUNDS: 12.0, IMAGE_ROUNDS: 3.0}
"""Candidates that a selection usually has, without those of ``LINEAR_LEAVES_IN_FOREST``; of large trees by the work of
one of full depth."""
