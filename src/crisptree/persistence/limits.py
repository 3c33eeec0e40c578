"""How much a file may ask of the machine that reads it; held before any memory is taken for it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from crisptree import limits
from crisptree.persistence.errors import ModelFileError

LONGEST_LABELS = 2**20
"""Characters that class labels may take beyond sixteen times those that the file spells out."""

MOST_CHANNELS = 2**31 - 1


def check_header(length: int, size: int) -> None:
    """A header lies inside its file, and is no longer than a header is."""
    if not 0 <= length <= size:
        raise ModelFileError("this is not a crisptree model file: it is shorter than its header says.")
    limits.current().check("line_bytes", length, f"has a header of {length:,} bytes")


def check_depth(depth: int) -> None:
    """No path is longer than anyone would follow; explanations take as much for every split of it."""
    limits.current().check("depth", depth, f"holds a tree of depth {depth:,}")


def check_labels(labels: Sequence[str]) -> None:
    """An array of strings takes as much for every label as for the longest."""
    if len(labels) * max(map(len, labels)) > LONGEST_LABELS + 16 * sum(map(len, labels)):
        raise ModelFileError("the class labels of a model file must not differ so much in length.")


def check_channels(channels: object, path: str | PathLike[str]) -> None:
    """Images have no channels of their own, or a number of them."""
    if channels is not None and not (isinstance(channels, int) and 0 < channels <= MOST_CHANNELS):
        raise ModelFileError(f"{path} must say how many channels its images have; it says {channels!r}.")
