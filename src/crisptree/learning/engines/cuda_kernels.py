"""The hot loops of training on CUDA, in Triton. ``cuda_engine`` calls them; ``TorchEngine`` is what they compute.

Nothing here adds atomically: every sum has one order, so that a fit on one kind of device is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import triton
import triton.language as tl

from crisptree.equations.leaves import DEEPEST_DOUBT

ROWS_PER_TASK = 8
FEATURES_AT_ONCE = 128
FEATURES_OF_ROWS = 512
WARPS_OF_TASKS = 8
TASKS_AT_ONCE = 64
NODES_AT_ONCE = 256
PARTS_AT_ONCE = 16

GAMMA, LEARNING_RATE, L1, L2, SPATIAL_PENALTY, MASS_THRESHOLD, NOISE = (tl.constexpr(place) for place in range(7))
"""Index of each value in ``settings``. They travel as a tensor: a kernel would take a plain number as float32."""

DOUBT = tl.constexpr(DEEPEST_DOUBT)


def specialized(*names: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kernel for the alignment and the divisors of these arguments only: other sizes share its code."""

    def decorate(kernel: Callable[..., Any]) -> Any:
        parameters = signature(kernel).parameters.items()
        others = [name for name, one in parameters if name not in names and "constexpr" not in str(one.annotation)]
        return triton.jit(do_not_specialize=others)(kernel)

    return decorate


@triton.jit
def do_nothing(memory):
    """Do nothing: a kernel to test whether kernels can be built."""
    tl.store(memory, 1.0)


@triton.jit
def _sigmoid(z):
    small = tl.exp(-tl.abs(z))
    return tl.where(z >= 0, 1.0, small) / (1.0 + small)


@triton.jit
def _log_sigmoid(z):
    return tl.minimum(z, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(z)))


@triton.jit
def _damped(settings, square):
    """γ / √(1 + (π/8) γ² σ² ‖β‖²): the steepness of a split under noise on the inputs."""
    gamma = tl.load(settings + GAMMA)
    return gamma / tl.sqrt(1.0 + tl.load(settings + NOISE) * gamma * gamma * square)


@triton.jit
def _log_density(y, form, step, mask, OUTPUTS: tl.constexpr):
    """log N(y; m, v), where m, 1 / 2v and the log of the highest density follow each other, ``step`` apart."""
    log = tl.load(form + 2 * OUTPUTS * step, mask=mask, other=0.0)
    for output in range(OUTPUTS):
        far = tl.load(y + output, mask=mask, other=0.0) - tl.load(form + output * step, mask=mask, other=0.0)
        log -= far * far * tl.load(form + (OUTPUTS + output) * step, mask=mask, other=0.0)
    return log


@triton.jit
def _moments(y, column, mask, OUTPUTS: tl.constexpr):
    """Compute what a regression row adds to the statistics of a leaf: 1, its y and their squares, column by column."""
    value = tl.load(y + tl.maximum(column - 1, 0) % OUTPUTS, mask=mask, other=0.0)
    return tl.where(column == 0, 1.0, tl.where(column <= OUTPUTS, value, value * value))


@triton.jit
def _await_previous(OVERLAPS: tl.constexpr):
    """Wait until the kernel before has ended, beside which this one has begun; let the next one begin."""
    if OVERLAPS:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def _load_rows(base, here, start, n_features, FEATURES: tl.constexpr):
    """Read some features of some rows."""
    feature = start + tl.arange(0, FEATURES)
    return tl.load(base[:, None] + feature[None, :], mask=here[:, None] & (feature < n_features)[None, :], other=0.0)


@triton.jit
def _scores_of(x, weight, start, n_features, FEATURES: tl.constexpr):
    """Products of some features of rows with their weights, and the squares of these."""
    feature = start + tl.arange(0, FEATURES)
    beta = tl.load(weight + feature, mask=feature < n_features, other=0.0)
    return tl.sum(x * beta[None, :], axis=1), beta * beta


@triton.jit
def _store_gradient(x, residual, line, start, n_features, FEATURES: tl.constexpr):
    """Store the gradient of some weights."""
    feature = start + tl.arange(0, FEATURES)
    tl.store(line + feature, tl.sum(x * residual[:, None], axis=0), mask=feature < n_features)


@triton.jit
def _scores(first, base, here, weight, bias, settings, n_features, FEATURES: tl.constexpr):
    """f(x) of some rows at one split, and its steepness under noise on the inputs; ``first`` are their features."""
    sums, squares = _scores_of(first, weight, 0, n_features, FEATURES)
    for start in range(FEATURES, n_features, FEATURES):
        x = _load_rows(base, here, start, n_features, FEATURES)
        more, of_more = _scores_of(x, weight, start, n_features, FEATURES)
        sums += more
        squares += of_more
    return sums + tl.load(bias), _damped(settings, tl.sum(squares, axis=0))


@specialized("X", "weight", "before_weight", "gradient", "n_features")
def stump_tasks(
    X,
    y,
    sample_weight,
    order,
    weight,
    bias,
    before_weight,
    before_bias,
    tables,
    settings,
    task_group,
    task_begin,
    task_rows,
    task_is_first,
    task_in_loss,
    task_in_counts,
    steps,
    gradient,
    bias_gradient,
    pull,
    counts,
    log_likelihood,
    first_task,
    n_features,
    width,
    n_cells,
    FRESH: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Process a few rows of one stump: their part of the gradient, of the leaf counts and of the log-likelihood.

    ``width`` numbers are the table of a leaf, and so many its counts; see ``cuda_leaves``. Without ``OUTPUTS`` y are
    classes. ``pull`` is what the steepness, which falls with ‖β‖ under noise, adds to the gradient per unit of each
    weight: −(π/8) σ² γ² Σ r f. ``FRESH`` responsibilities come from the weights as they are.
    """
    slot = tl.program_id(0)
    task = first_task + slot
    group = tl.load(task_group + task)
    lane = tl.arange(0, ROWS)
    here = lane < tl.load(task_rows + task)
    row = tl.load(order + tl.load(task_begin + task) + lane, mask=here, other=0)
    if OUTPUTS == 0:
        label = tl.load(y + row, mask=here, other=0)
    else:
        numbers = y + row * OUTPUTS
    own_weight = tl.load(sample_weight + row, mask=here, other=0.0)
    once = own_weight * tl.load(task_in_counts + task)
    in_loss = tl.load(task_in_loss + task)
    is_first = tl.load(task_is_first + task) != 0
    base = X + row * n_features
    own = group * n_features
    kind = X.dtype.element_ty
    first = _load_rows(base, here, 0, n_features, FEATURES)
    _await_previous(OVERLAPS)
    new_sum, gamma = _scores(first, base, here, weight + own, bias + group, settings, n_features, FEATURES)
    new_score = gamma * new_sum
    old_score = new_score
    if not FRESH:
        old_sum, old_gamma = _scores(
            first, base, here, before_weight + own, before_bias + group, settings, n_features, FEATURES
        )
        old_score = old_gamma * old_sum
    if OUTPUTS == 0:
        cell = tables + group * width + label
        left = _log_sigmoid(-old_score) + tl.log(tl.load(cell, mask=here, other=1.0))
        right = _log_sigmoid(old_score) + tl.log(tl.load(cell + n_cells, mask=here, other=1.0))
    else:
        form = tables + group * width + tl.zeros([ROWS], dtype=tl.int32)
        left_density = _log_density(numbers, form, 1, here, OUTPUTS)
        right_density = _log_density(numbers, form + n_cells, 1, here, OUTPUTS)
        left = _log_sigmoid(-old_score) + tl.maximum(left_density, right_density - DOUBT)
        right = _log_sigmoid(old_score) + tl.maximum(right_density, left_density - DOUBT)
    h_left, h_right = _sigmoid(left - right), _sigmoid(right - left)  # 1 − h would lose the smaller one's digits
    likelihood = tl.maximum(left, right) + tl.log(1.0 + tl.exp(-tl.abs(right - left)))
    residual = gamma * own_weight * in_loss * (h_left * _sigmoid(new_score) - h_right * _sigmoid(-new_score))

    line = gradient + slot.to(tl.int64) * n_features
    _store_gradient(first, residual, line, 0, n_features, FEATURES)
    for start in range(FEATURES, n_features, FEATURES):
        x = _load_rows(base, here, start, n_features, FEATURES)
        _store_gradient(x, residual, line, start, n_features, FEATURES)
    tl.store(bias_gradient + slot, tl.sum(residual, axis=0))
    tl.store(pull + slot, -tl.load(settings + NOISE) * gamma * gamma * tl.sum(residual * new_sum, axis=0))
    tl.store(log_likelihood + task, tl.sum(tl.where(here, once * likelihood, 0.0), axis=0))
    column = tl.arange(0, WIDTH)
    if OUTPUTS == 0:
        adds = (label[:, None] == column[None, :]).to(kind)
    else:
        adds = _moments(numbers[:, None], column[None, :], here[:, None], OUTPUTS)
    into = counts + task.to(tl.int64) * 2 * width + column
    tl.store(into, tl.sum(adds * (once * h_left)[:, None], axis=0), mask=column < width)
    tl.store(into + width, tl.sum(adds * (once * h_right)[:, None], axis=0), mask=column < width)
    tl.store(steps + group, tl.load(steps + group) + 1, mask=is_first)


@specialized()
def stump_counts(
    task_counts, group_tasks, group_start, counts, width, n_cells, WIDTH: tl.constexpr, TASKS: tl.constexpr
):
    """Sum the leaf counts of one group on one side over its tasks, in their order."""
    group = tl.program_id(0)
    side = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], dtype=counts.dtype.element_ty)
    end = tl.load(group_start + group + 1)
    for start in range(tl.load(group_start + group), end, TASKS):
        place = start + tl.arange(0, TASKS)
        task = tl.load(group_tasks + place, mask=place < end, other=0)
        inside = (place < end)[:, None] & (column < width)[None, :]
        part = tl.load(
            task_counts + (task * 2 + side)[:, None] * width + column[None, :],
            mask=inside,
            other=0.0,
        )
        total += tl.sum(part, axis=0)
    tl.store(counts + side * n_cells + group * width + column, total, mask=column < width)


@specialized()
def route(
    scores,
    bias,
    before_bias,
    order,
    y,
    sample_weight,
    tables,
    settings,
    steepness,
    before_steepness,
    step_in_loss,
    step_in_counts,
    level_start,
    level_splits,
    left_node,
    right_node,
    nodes,
    residual,
    adds,
    log_likelihood,
    reached,
    begin,
    step,
    before_at,
    score_width,
    n_slots,
    n_leaves,
    n_levels,
    width,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    NODES: tl.constexpr,
):
    """Route one row through the tree: down to the responsibilities of the leaves, up to the residuals of the splits.

    ``left_node`` and ``right_node`` are in the order of ``level_splits``; leaves follow ``n_slots`` places of splits.
    ``nodes`` is the row's own line of working memory: log μ on the way down, masses on the way up. Into its line of
    ``adds`` goes what it adds to the counts of a leaf that is wholly responsible for it.
    """
    here = tl.program_id(0)
    kind = scores.dtype.element_ty
    row = tl.load(order + begin + here)
    if OUTPUTS == 0:
        label = tl.load(y + row)
    else:
        numbers = y + row * OUTPUTS
    weight = tl.load(sample_weight + row)
    mass_threshold = tl.load(settings + MASS_THRESHOLD)
    line = nodes + here.to(tl.int64) * (n_slots + n_leaves)
    score = scores + here.to(tl.int64) * score_width
    one = tl.arange(0, 1)
    tl.store(line + one, tl.zeros([1], dtype=kind))
    tl.debug_barrier()
    for level in range(n_levels):
        end = tl.load(level_start + level + 1)
        for first in range(tl.load(level_start + level), end, NODES):
            place = first + tl.arange(0, NODES)
            mask = place < end
            split = tl.load(level_splits + place, mask=mask, other=0)
            gamma = tl.load(before_steepness + split, mask=mask)
            z = gamma * (tl.load(score + before_at + split, mask=mask) + tl.load(before_bias + split, mask=mask))
            log_reach = tl.load(line + split, mask=mask)
            softplus = tl.log(1.0 + tl.exp(-tl.abs(z)))
            left = log_reach + tl.minimum(-z, 0.0) - softplus
            right = log_reach + tl.minimum(z, 0.0) - softplus
            tl.store(line + tl.load(left_node + place, mask=mask, other=0), left, mask=mask)
            tl.store(line + tl.load(right_node + place, mask=mask, other=0), right, mask=mask)
        tl.debug_barrier()

    leaves = line + n_slots
    if OUTPUTS > 0:
        densest = tl.full([NODES], float("-inf"), dtype=kind)
        for start in range(0, n_leaves, NODES):
            leaf = start + tl.arange(0, NODES)
            mask = leaf < n_leaves
            density = _log_density(numbers + leaf * 0, tables + leaf, n_leaves, mask, OUTPUTS)
            densest = tl.maximum(densest, tl.where(mask, density, float("-inf")))
        least = tl.max(densest, axis=0) - DOUBT
    peak = tl.full([NODES], float("-inf"), dtype=kind)
    for start in range(0, n_leaves, NODES):
        leaf = start + tl.arange(0, NODES)
        mask = leaf < n_leaves
        if OUTPUTS == 0:
            says = tl.load(tables + leaf * width + label, mask=mask)
        else:
            density = _log_density(numbers + leaf * 0, tables + leaf, n_leaves, mask, OUTPUTS)
            says = tl.maximum(density, least)
        joint = tl.load(leaves + leaf, mask=mask) + says
        tl.store(leaves + leaf, joint, mask=mask)
        peak = tl.maximum(peak, tl.where(mask, joint, float("-inf")))
    tl.debug_barrier()
    highest = tl.max(peak, axis=0)
    sums = tl.zeros([NODES], dtype=kind)
    for start in range(0, n_leaves, NODES):
        leaf = start + tl.arange(0, NODES)
        mask = leaf < n_leaves
        sums += tl.where(mask, tl.exp(tl.load(leaves + leaf, mask=mask, other=0.0) - highest), 0.0)
    total = tl.sum(sums, axis=0)
    likelihood = highest + tl.log(total)
    for start in range(0, n_leaves, NODES):
        leaf = start + tl.arange(0, NODES)
        mask = leaf < n_leaves
        h = tl.exp(tl.load(leaves + leaf, mask=mask, other=0.0) - highest) / total
        tl.store(leaves + leaf, h, mask=mask)
    tl.debug_barrier()

    scale = weight * tl.load(step_in_loss + step)
    for back in range(n_levels):
        upper = n_levels - 1 - back
        end = tl.load(level_start + upper + 1)
        for first in range(tl.load(level_start + upper), end, NODES):
            place = first + tl.arange(0, NODES)
            mask = place < end
            split = tl.load(level_splits + place, mask=mask, other=0)
            left = tl.load(line + tl.load(left_node + place, mask=mask, other=0), mask=mask)
            right = tl.load(line + tl.load(right_node + place, mask=mask, other=0), mask=mask)
            mass = left + right
            enough = mask & (mass >= mass_threshold)
            gamma = tl.load(steepness + split, mask=mask)
            z = gamma * (tl.load(score + split, mask=mask) + tl.load(bias + split, mask=mask))
            wrong = tl.where(enough, gamma * scale * (left * _sigmoid(z) - right * _sigmoid(-z)), 0.0)
            tl.store(residual + here.to(tl.int64) * n_slots + split, wrong, mask=mask)
            tl.store(line + split, mass, mask=mask)
            tl.store(reached + split, 1, mask=enough)
        tl.debug_barrier()
    once = weight * tl.load(step_in_counts + step)
    column = tl.arange(0, WIDTH)
    if OUTPUTS == 0:
        added = tl.where(column == label, once, 0.0)
    else:
        added = once * _moments(numbers, column, column < width, OUTPUTS)
    tl.store(adds + here.to(tl.int64) * width + column, added, mask=column < width)
    into = log_likelihood + begin + here + one
    tl.store(into, tl.load(into) + once * likelihood)


LOG_BETA_1 = tl.constexpr(-0.10536051565782628)
LOG_BETA_2 = tl.constexpr(-0.0010005003335835335)


@specialized("weight", "n_features")
def damp(weight, settings, steepness, n_features, FEATURES: tl.constexpr):
    """Compute the steepness of one split under noise on the inputs."""
    split = tl.program_id(0)
    square = tl.zeros([FEATURES], dtype=weight.dtype.element_ty)
    for start in range(0, n_features, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        value = tl.load(weight + split * n_features + feature, mask=feature < n_features, other=0.0)
        square += value * value
    tl.store(steepness + split, _damped(settings, tl.sum(square, axis=0)))


@specialized("weight", "gradient", "n_features")
def laplacian_gradient(weight, gradient, settings, shares, height, line, channels, n_features, FEATURES: tl.constexpr):
    """Compute 2 λ M β, the gradient of the spatial penalty: every pixel against its four neighbours."""
    split = tl.program_id(0)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < n_features
    image = weight + split * n_features + feature
    center = tl.load(image, mask=inside, other=0.0)
    column = feature % line
    above = inside & (feature >= line)
    pull = tl.where(above, center - tl.load(image - line, mask=above, other=0.0), 0.0)
    below = inside & (feature < (height - 1) * line)
    pull += tl.where(below, center - tl.load(image + line, mask=below, other=0.0), 0.0)
    before = inside & (column >= channels)
    pull += tl.where(before, center - tl.load(image - channels, mask=before, other=0.0), 0.0)
    after = inside & (column < line - channels)
    pull += tl.where(after, center - tl.load(image + channels, mask=after, other=0.0), 0.0)
    strength = 2.0 * tl.load(settings + SPATIAL_PENALTY) * tl.load(shares + split)
    tl.store(gradient + split * n_features + feature, strength * pull, mask=inside)


@triton.jit
def _adam_step(value, mean, square, gradient, steps, learning_rate, l1):
    """Compute Adam's new value, mean and square, with the proximal step of l1."""
    kind = value.dtype
    correction_1 = (1.0 - tl.exp(steps.to(tl.float64) * LOG_BETA_1)).to(kind)
    correction_2 = (1.0 - tl.exp(steps.to(tl.float64) * LOG_BETA_2)).to(kind)
    mean += (gradient - mean) * 0.1
    square += (gradient * gradient - square) * 0.001
    rate = learning_rate / (tl.sqrt(square / correction_2) + 1e-8)
    moved = value - rate * mean / correction_1
    shrunk = tl.where(moved >= 0, 1.0, -1.0) * tl.maximum(tl.abs(moved) - rate * l1, 0.0)
    return tl.where(l1 > 0, shrunk, moved), mean, square  # the maximum alone would turn what is no number into zero


@triton.jit
def _load_moments(at, inside, parameters):
    """Read some weights and their moments."""
    weight, weight_mean, weight_square = parameters
    value = tl.load(weight + at, mask=inside, other=0.0)
    mean = tl.load(weight_mean + at, mask=inside, other=0.0)
    square = tl.load(weight_square + at, mask=inside, other=0.0)
    return value, mean, square


@triton.jit
def _move_weights(at, inside, moments, total, options, parameters, penalty_gradient, SPATIAL: tl.constexpr):
    """Take a step on some weights with their gradient; return the new ones."""
    weight, weight_mean, weight_square = parameters
    if SPATIAL:
        total += tl.load(penalty_gradient + at, mask=inside, other=0.0)
    value, mean, square = moments
    l2, l1, rate, taken = options
    value, mean, square = _adam_step(value, mean, square, total + l2 * value, taken, rate, l1)
    tl.store(weight + at, value, mask=inside)
    tl.store(weight_mean + at, mean, mask=inside)
    tl.store(weight_square + at, square, mask=inside)
    return value


@triton.jit
def _move_bias(split, gradient, rate, taken, bias, bias_mean, bias_square):
    one = split + tl.arange(0, 1)
    value, mean, square = _adam_step(
        tl.load(bias + one),
        tl.load(bias_mean + one),
        tl.load(bias_square + one),
        gradient + tl.zeros([1], dtype=bias.dtype.element_ty),
        taken,
        rate,
        0.0,
    )
    tl.store(bias + one, value)
    tl.store(bias_mean + one, mean)
    tl.store(bias_square + one, square)


@specialized("weight", "weight_mean", "weight_square", "gradient", "n_features")
def move_stumps(
    weight,
    bias,
    weight_mean,
    weight_square,
    bias_mean,
    bias_square,
    steps,
    gradient,
    bias_gradient,
    pull,
    penalty_gradient,
    splits,
    slots,
    settings,
    shares,
    first_split,
    first_slot,
    n_features,
    SPATIAL: tl.constexpr,
    FEATURES: tl.constexpr,
    TASKS: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Sum the gradient of one stump over its tasks and take its step, a few features at a time."""
    number = tl.program_id(0)
    split = tl.load(splits + first_split + number)
    slot = tl.load(slots + first_slot + number)
    end = tl.load(slots + first_slot + number + 1)
    kind = weight.dtype.element_ty
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < n_features
    at = split * n_features + feature
    parameters = weight, weight_mean, weight_square
    moments = _load_moments(at, inside, parameters)
    _await_previous(OVERLAPS)
    total = tl.zeros([FEATURES], dtype=kind)
    bias_total = tl.zeros([TASKS], dtype=kind)
    pull_total = tl.zeros([TASKS], dtype=kind)
    for start in range(slot, end, TASKS):
        place = start + tl.arange(0, TASKS)
        parts = gradient + place[:, None] * n_features + feature[None, :]
        total += tl.sum(tl.load(parts, mask=(place < end)[:, None] & inside[None, :], other=0.0), axis=0)
        bias_total += tl.load(bias_gradient + place, mask=place < end, other=0.0)
        pull_total += tl.load(pull + place, mask=place < end, other=0.0)
    taken = tl.load(steps + split)
    rate = tl.load(settings + LEARNING_RATE)
    share = tl.load(shares + split)
    l2, l1 = 2.0 * tl.load(settings + L2) * share + tl.sum(pull_total, axis=0), tl.load(settings + L1) * share
    _move_weights(at, inside, moments, total, (l2, l1, rate, taken), parameters, penalty_gradient, SPATIAL)
    if tl.program_id(1) == 0:
        _move_bias(split, tl.sum(bias_total, axis=0), rate, taken, bias, bias_mean, bias_square)


@triton.jit
def _gradient_of(split, feature, n_features, gradient, sums, units, IN_UNITS: tl.constexpr):
    """Read the gradient of some weights of a split, or compute it from sums in integer units."""
    inside = feature < n_features
    if IN_UNITS:
        unit = tl.load(units + feature, mask=inside, other=1.0)
        whole = tl.load(sums + split.to(tl.int64) * (n_features + 2) + feature, mask=inside, other=0)
        found = (whole.to(tl.float64) * unit).to(gradient.dtype.element_ty)
    else:
        found = tl.load(gradient + split * n_features + feature, mask=inside, other=0.0)
    return found


@triton.jit
def _sum_products(split, n_features, weight, gradient, sums, units, IN_UNITS: tl.constexpr, FEATURES: tl.constexpr):
    """Multiply the weights of a split with their gradients."""
    products = tl.zeros([FEATURES], dtype=weight.dtype.element_ty)
    for start in range(0, n_features, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        value = tl.load(weight + split * n_features + feature, mask=feature < n_features, other=0.0)
        products += value * _gradient_of(split, feature, n_features, gradient, sums, units, IN_UNITS)
    return tl.sum(products, axis=0)


@triton.jit
def _clear(line, n_values, FEATURES: tl.constexpr):
    """Set integers to zero."""
    for start in range(0, n_values, FEATURES):
        place = start + tl.arange(0, FEATURES)
        tl.store(line + place, tl.zeros([FEATURES], dtype=tl.int64), mask=place < n_values)


@specialized("weight", "weight_mean", "weight_square", "gradient", "n_features")
def move_splits(
    weight,
    bias,
    weight_mean,
    weight_square,
    bias_mean,
    bias_square,
    steps,
    moving,
    gradient,
    bias_gradient,
    sums,
    units,
    largest_number,
    penalty_gradient,
    steepness,
    settings,
    shares,
    n_features,
    SPATIAL: tl.constexpr,
    IN_UNITS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Take the step of one split if a row has reached it, and compute its new steepness.

    Under noise the steepness falls with ‖β‖, which adds −(π/8) σ² γ² Σ r f to the gradient per unit of each weight.
    Σ r f is β times the gradient plus b times the bias's own. ``IN_UNITS`` gradients are integers in ``sums``, which
    are set to zero; their last one says how often the split was reached.
    """
    split = tl.program_id(0)
    line = sums + split.to(tl.int64) * (n_features + 2)
    kind = weight.dtype.element_ty
    if IN_UNITS:
        number = tl.load(line + n_features + 1)
        tl.atomic_max(largest_number, number)
        bias_total = (tl.load(line + n_features).to(tl.float64) * tl.load(units + n_features)).to(kind)
    else:
        number = tl.load(moving + split)
        bias_total = tl.load(bias_gradient + split)
    if number > 0:
        taken = tl.load(steps + split) + 1
        product = _sum_products(split, n_features, weight, gradient, sums, units, IN_UNITS, FEATURES)
        gamma = tl.load(steepness + split)
        product += bias_total * tl.load(bias + split)
        pull = -tl.load(settings + NOISE) * gamma * gamma * product
        rate = tl.load(settings + LEARNING_RATE)
        share = tl.load(shares + split)
        options = 2.0 * tl.load(settings + L2) * share + pull, tl.load(settings + L1) * share, rate, taken
        parameters = weight, weight_mean, weight_square
        squares = tl.zeros([FEATURES], dtype=kind)
        for start in range(0, n_features, FEATURES):
            feature = start + tl.arange(0, FEATURES)
            inside = feature < n_features
            at = split * n_features + feature
            total = _gradient_of(split, feature, n_features, gradient, sums, units, IN_UNITS)
            moments = _load_moments(at, inside, parameters)
            value = _move_weights(at, inside, moments, total, options, parameters, penalty_gradient, SPATIAL)
            squares += tl.where(inside, value * value, 0.0)
        tl.debug_barrier()
        _move_bias(split, bias_total, rate, taken, bias, bias_mean, bias_square)
        tl.store(steepness + split, _damped(settings, tl.sum(squares, axis=0)))
        tl.store(steps + split, taken)
        tl.store(moving + split, 0)
    if IN_UNITS:
        tl.debug_barrier()
        _clear(line, n_features + 2, FEATURES)


MAX_UNITS = tl.constexpr(2.0**50)
OUT_OF_BOUNDS = tl.constexpr(2**32)
ROUNDING = tl.constexpr(1.5 * 2.0**52)
"""Added to a number of at most ``MAX_UNITS``, it leaves no digits behind the point."""


@specialized("gradient", "n_features")
def add_in_units(
    gradient,
    bias_gradient,
    reached,
    sums,
    units,
    splits,
    starts,
    ends,
    first_split,
    n_parts,
    n_features,
    IS_TREE: tl.constexpr,
    FEATURES: tl.constexpr,
    TASKS: tl.constexpr,
):
    """Add the gradients of one split in several tasks, or in the parts of a tree, to its sum in integer units.

    ``torch_engine.add_in_units`` is the definition.
    """
    number = tl.program_id(0)
    if IS_TREE:  # the splits of every part follow each other
        split = number
        start = number
        stride = tl.num_programs(0)
        end = number + n_parts * stride
        n_reached = n_parts * tl.load(reached + split)
    else:
        split = tl.load(splits + first_split + number)
        start = tl.load(starts + first_split + number)
        stride = 1
        end = tl.load(ends + first_split + number)
        n_reached = end - start
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature <= n_features  # the bias comes last
    per_unit = 1.0 / tl.load(units + feature, mask=inside, other=1.0)  # exact, for a power of 2
    total = tl.zeros([FEATURES], dtype=tl.int64)
    n_bad = tl.zeros([FEATURES], dtype=tl.int64)
    for first in range(start, end, TASKS * stride):
        place = (first + tl.arange(0, TASKS) * stride).to(tl.int64)
        here = place < end
        part = tl.load(
            gradient + place[:, None] * n_features + feature[None, :],
            mask=here[:, None] & (feature < n_features)[None, :],
            other=0.0,
        )
        of_bias = tl.load(bias_gradient + place, mask=here, other=0.0)
        part = tl.where((feature == n_features)[None, :], of_bias[:, None], part)
        whole = (part.to(tl.float64) * per_unit[None, :] + ROUNDING) - ROUNDING
        is_good = tl.abs(whole) < MAX_UNITS
        total += tl.sum(tl.where(is_good, whole, 0.0).to(tl.int64), axis=0)
        n_bad += tl.sum(tl.where(is_good, 0, 1).to(tl.int64), axis=0)
    line = sums + split.to(tl.int64) * (n_features + 2)
    tl.store(line + feature, tl.load(line + feature, mask=inside, other=0) + total, mask=inside)
    added = tl.sum(tl.where(inside, n_bad, 0), axis=0) * OUT_OF_BOUNDS
    added += tl.where(tl.program_id(1) == 0, n_reached, 0).to(tl.int64)
    tl.atomic_add(line + n_features + 1, added, mask=added != 0)  # whole numbers, whose order does not matter
