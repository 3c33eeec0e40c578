"""The hot loops of training on CUDA, in Triton. ``cuda_engine`` calls them; ``TorchEngine`` is what they compute.

Nothing here adds atomically: every sum has one order, so that a fit on one kind of device is the same every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from crisptree.equations.leaves import DEEPEST_DOUBT

ROWS_PER_TASK = 16
FEATURES_AT_ONCE = 128
FEATURES_OF_ROWS = 1024
TASKS_AT_ONCE = 64
NODES_AT_ONCE = 256

GAMMA, LEARNING_RATE, L1, L2, SPATIAL_PENALTY, MASS_THRESHOLD, NOISE = (tl.constexpr(place) for place in range(7))
"""Index of each value in ``settings``. They travel as a tensor: a kernel would take a plain number as float32."""

DOUBT = tl.constexpr(DEEPEST_DOUBT)


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


@triton.jit(do_not_specialize=["first_task"])
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
    steepness,
    before_steepness,
    task_group,
    task_begin,
    task_rows,
    task_is_first,
    task_in_loss,
    task_in_counts,
    steps,
    gradient,
    bias_gradient,
    counts,
    log_likelihood,
    first_task,
    n_features,
    width,
    n_cells,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Process a few rows of one stump: their part of the gradient, of the leaf counts and of the log-likelihood.

    ``width`` numbers are the table of a leaf, and so many its counts; see ``cuda_leaves``. Without ``OUTPUTS`` y are
    classes.
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
    base = X + row * n_features
    own = group * n_features
    kind = X.dtype.element_ty
    old_sum = tl.zeros([ROWS], dtype=kind)
    new_sum = tl.zeros([ROWS], dtype=kind)
    for start in range(0, n_features, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        inside = feature < n_features
        x = tl.load(base[:, None] + feature[None, :], mask=here[:, None] & inside[None, :], other=0.0)
        old_sum += tl.sum(x * tl.load(before_weight + own + feature, mask=inside, other=0.0)[None, :], axis=1)
        new_sum += tl.sum(x * tl.load(weight + own + feature, mask=inside, other=0.0)[None, :], axis=1)
    gamma = tl.load(steepness + group)
    old_score = tl.load(before_steepness + group) * (old_sum + tl.load(before_bias + group))
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
    own_weight = tl.load(sample_weight + row, mask=here, other=0.0)
    once = own_weight * tl.load(task_in_counts + task)
    in_loss = tl.load(task_in_loss + task)
    new_score = gamma * (new_sum + tl.load(bias + group))
    residual = gamma * own_weight * in_loss * (h_left * _sigmoid(new_score) - h_right * _sigmoid(-new_score))

    for start in range(0, n_features, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        inside = feature < n_features
        x = tl.load(base[:, None] + feature[None, :], mask=here[:, None] & inside[None, :], other=0.0)
        tl.store(
            gradient + slot.to(tl.int64) * n_features + feature, tl.sum(x * residual[:, None], axis=0), mask=inside
        )
    tl.store(bias_gradient + slot, tl.sum(residual, axis=0))
    tl.store(log_likelihood + task, tl.sum(tl.where(here, once * likelihood, 0.0), axis=0))
    column = tl.arange(0, WIDTH)
    if OUTPUTS == 0:
        adds = (label[:, None] == column[None, :]).to(kind)
    else:
        adds = _moments(numbers[:, None], column[None, :], here[:, None], OUTPUTS)
    into = counts + task.to(tl.int64) * 2 * width + column
    tl.store(into, tl.sum(adds * (once * h_left)[:, None], axis=0), mask=column < width)
    tl.store(into + width, tl.sum(adds * (once * h_right)[:, None], axis=0), mask=column < width)
    is_first = tl.load(task_is_first + task) != 0
    tl.store(steps + group, tl.load(steps + group) + 1, mask=is_first)


@triton.jit
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


@triton.jit(do_not_specialize=["begin", "step"])
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
    n_splits,
    n_leaves,
    n_levels,
    width,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    NODES: tl.constexpr,
):
    """Route one row through the tree: down to the responsibilities of the leaves, up to the residuals of the splits.

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
    line = nodes + here.to(tl.int64) * (n_splits + n_leaves)
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
            tl.store(line + tl.load(left_node + split, mask=mask, other=0), left, mask=mask)
            tl.store(line + tl.load(right_node + split, mask=mask, other=0), right, mask=mask)
        tl.debug_barrier()

    leaves = line + n_splits
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
            left = tl.load(line + tl.load(left_node + split, mask=mask, other=0), mask=mask)
            right = tl.load(line + tl.load(right_node + split, mask=mask, other=0), mask=mask)
            mass = left + right
            enough = mask & (mass >= mass_threshold)
            gamma = tl.load(steepness + split, mask=mask)
            z = gamma * (tl.load(score + split, mask=mask) + tl.load(bias + split, mask=mask))
            wrong = tl.where(enough, gamma * scale * (left * _sigmoid(z) - right * _sigmoid(-z)), 0.0)
            tl.store(residual + here.to(tl.int64) * n_splits + split, wrong, mask=mask)
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


@triton.jit
def damp(weight, settings, steepness, n_features, FEATURES: tl.constexpr):
    """γ / √(1 + (π/8) γ² σ² ‖β‖²) of one split: its steepness under noise on the inputs."""
    split = tl.program_id(0)
    square = tl.zeros([FEATURES], dtype=weight.dtype.element_ty)
    for start in range(0, n_features, FEATURES):
        feature = start + tl.arange(0, FEATURES)
        value = tl.load(weight + split * n_features + feature, mask=feature < n_features, other=0.0)
        square += value * value
    gamma = tl.load(settings + GAMMA)
    tl.store(
        steepness + split, gamma / tl.sqrt(1.0 + tl.load(settings + NOISE) * gamma * gamma * tl.sum(square, axis=0))
    )


@triton.jit(do_not_specialize=["first_split", "first_slot"])
def noise_gradient(
    gradient,
    bias_gradient,
    weight,
    bias,
    steepness,
    pull,
    splits,
    slots,
    settings,
    first_split,
    first_slot,
    n_features,
    FEATURES: tl.constexpr,
):
    """Compute the contribution of the norm-dependent steepness of a split to the gradient, per unit of each weight.

    −(π/8) σ² γ² Σ g f, where Σ g f is β times the gradient plus b times the bias's own.
    """
    number = tl.program_id(0)
    split = tl.load(splits + first_split + number)
    first = tl.load(slots + first_slot + number)
    end = tl.load(slots + first_slot + number + 1)
    sums = tl.zeros([FEATURES], dtype=weight.dtype.element_ty)
    for slot in range(first, end):
        for start in range(0, n_features, FEATURES):
            feature = start + tl.arange(0, FEATURES)
            inside = feature < n_features
            part = tl.load(gradient + slot * n_features + feature, mask=inside, other=0.0)
            sums += part * tl.load(weight + split * n_features + feature, mask=inside, other=0.0)
        sums += tl.where(tl.arange(0, FEATURES) == 0, tl.load(bias_gradient + slot) * tl.load(bias + split), 0.0)
    gamma = tl.load(steepness + split)
    tl.store(pull + split, -tl.load(settings + NOISE) * gamma * gamma * tl.sum(sums, axis=0))


@triton.jit(do_not_specialize=["first_split", "first_slot"])
def add_laplacian_gradient(
    gradient,
    weight,
    splits,
    slots,
    settings,
    shares,
    first_split,
    first_slot,
    height,
    line,
    channels,
    n_features,
    FEATURES: tl.constexpr,
):
    """Add 2 λ M β to the first part of each split's gradient: every pixel against its four neighbours."""
    split = tl.load(splits + first_split + tl.program_id(0))
    slot = tl.load(slots + first_slot + tl.program_id(0))
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < n_features
    image = weight + split * n_features + feature
    center = tl.load(image, mask=inside, other=0.0)
    column = feature % line
    pull = tl.zeros([FEATURES], dtype=weight.dtype.element_ty)
    above = inside & (feature >= line)
    pull += tl.where(above, center - tl.load(image - line, mask=above, other=0.0), 0.0)
    below = inside & (feature < (height - 1) * line)
    pull += tl.where(below, center - tl.load(image + line, mask=below, other=0.0), 0.0)
    before = inside & (column >= channels)
    pull += tl.where(before, center - tl.load(image - channels, mask=before, other=0.0), 0.0)
    after = inside & (column < line - channels)
    pull += tl.where(after, center - tl.load(image + channels, mask=after, other=0.0), 0.0)
    into = gradient + slot * n_features + feature
    strength = 2.0 * tl.load(settings + SPATIAL_PENALTY) * tl.load(shares + split)
    tl.store(into, tl.load(into, mask=inside) + strength * pull, mask=inside)


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


@triton.jit(do_not_specialize=["first_split", "first_slot"])
def adam(
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
    pull,
    splits,
    slots,
    settings,
    shares,
    first_split,
    first_slot,
    n_features,
    FEATURES: tl.constexpr,
    TASKS: tl.constexpr,
):
    """Sum the gradient of one split over its slots and take its step, a few features at a time."""
    number = tl.program_id(0)
    split = tl.load(splits + first_split + number)
    slot = tl.load(slots + first_slot + number)
    end = tl.load(slots + first_slot + number + 1)
    learning_rate = tl.load(settings + LEARNING_RATE)
    if tl.load(moving + split) != 0:
        kind = weight.dtype.element_ty
        feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
        inside = feature < n_features
        at = split * n_features + feature
        total = tl.zeros([FEATURES], dtype=kind)
        bias_total = tl.zeros([TASKS], dtype=kind)
        for start in range(slot, end, TASKS):
            place = start + tl.arange(0, TASKS)
            parts = gradient + place[:, None] * n_features + feature[None, :]
            total += tl.sum(tl.load(parts, mask=(place < end)[:, None] & inside[None, :], other=0.0), axis=0)
            bias_total += tl.load(bias_gradient + place, mask=place < end, other=0.0)
        taken = tl.load(steps + split)
        value = tl.load(weight + at, mask=inside, other=0.0)
        mean = tl.load(weight_mean + at, mask=inside, other=0.0)
        square = tl.load(weight_square + at, mask=inside, other=0.0)
        share = tl.load(shares + split)
        total += (2.0 * tl.load(settings + L2) * share + tl.load(pull + split)) * value
        l1 = tl.load(settings + L1) * share
        value, mean, square = _adam_step(value, mean, square, total, taken, learning_rate, l1)
        tl.store(weight + at, value, mask=inside)
        tl.store(weight_mean + at, mean, mask=inside)
        tl.store(weight_square + at, square, mask=inside)
        if tl.program_id(1) == 0:
            one = split + tl.arange(0, 1)
            new_bias, new_mean, new_square = _adam_step(
                tl.load(bias + one),
                tl.load(bias_mean + one),
                tl.load(bias_square + one),
                tl.sum(bias_total, axis=0) + tl.zeros([1], dtype=kind),
                taken,
                learning_rate,
                0.0,
            )
            tl.store(bias + one, new_bias)
            tl.store(bias_mean + one, new_mean)
            tl.store(bias_square + one, new_square)
