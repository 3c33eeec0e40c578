"""How splits move on CUDA, in Triton: their steepness under noise, penalties and Adam. See ``cuda_kernels``."""

from __future__ import annotations

import triton
import triton.language as tl

from crisptree.learning.backends.cuda_kernels import GAMMA, L1, L2, LEARNING_RATE, NOISE, ROUGHNESS

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
def noise_pull(
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
    """What a split's steepness, falling with its norm, adds to the gradient of each weight, for one unit of it.

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
def add_roughness(
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
    """2 λ M β, added to the first part of each split's gradient: every pixel against its four neighbours."""
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
    strength = 2.0 * tl.load(settings + ROUGHNESS) * tl.load(shares + split)
    tl.store(into, tl.load(into, mask=inside) + strength * pull, mask=inside)


@triton.jit
def _moved(value, mean, square, gradient, steps, learning_rate, l1):
    """Adam's new value, mean and square, with the proximal step of l1."""
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
    """One split's gradient summed over its slots, and its step, a few features at a time."""
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
        value, mean, square = _moved(value, mean, square, total, taken, learning_rate, l1)
        tl.store(weight + at, value, mask=inside)
        tl.store(weight_mean + at, mean, mask=inside)
        tl.store(weight_square + at, square, mask=inside)
        if tl.program_id(1) == 0:
            one = split + tl.arange(0, 1)
            new_bias, new_mean, new_square = _moved(
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
