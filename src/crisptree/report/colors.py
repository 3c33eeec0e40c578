"""A color for every class, the same as in the drawings for up to ten of them; no matplotlib needed."""

from __future__ import annotations

import colorsys

TEN = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
"""matplotlib's tab10, which ``crisptree.plots`` uses."""

LIGHTNESS = (0.44, 0.62)
"""Neighbouring hues beyond ten classes take turns, so that they can be told apart."""


def class_colors(n_classes: int) -> list[str]:
    """Ten well-known colors, or evenly spaced hues.

    Examples
    --------
    >>> class_colors(2)
    ['#1f77b4', '#ff7f0e']
    """
    if n_classes <= len(TEN):
        return list(TEN[:n_classes])
    return [_hex(number / n_classes, LIGHTNESS[number % 2]) for number in range(n_classes)]


def _hex(hue: float, lightness: float) -> str:
    channels = (round(255 * channel) for channel in colorsys.hls_to_rgb(hue, lightness, 0.62))
    return "#" + "".join(f"{channel:02x}" for channel in channels)
