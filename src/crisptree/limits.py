"""Limits of what a file may request of this machine, and a stream that refuses to decompress more.

A reader that exceeds one raises its own error with the name of the file; see ``files.reading``.
"""

from __future__ import annotations

import io
from typing import Any

MAX_UNPACKED_BYTES, MAX_EXPANSION = 2**29, 512
"""Bytes into which a compressed file may decompress: the first, or the second times its own size if that is more. Text
shrinks to a tenth, one-hot columns to a four-hundredth; what shrinks a thousand times holds next to nothing."""

MAX_COLUMNS = 2**16
"""Columns of a table: each of them takes memory of its own, whatever it holds."""

MAX_TREE_DEPTH = 1_000
"""Levels of a tree in a model file."""

MAX_LABEL_CHARACTERS = 2**20
"""Characters that the array of class labels may take beyond sixteen times those in the file."""

MAX_CHANNELS = 2**31 - 1
"""Channels of the images of a model file."""

MAX_DIMENSIONS = 8
"""Dimensions of an array in a JSON document."""


class LimitError(Exception):
    """A file requests more than a limit allows."""


def check_unpacked(n_unpacked: int, n_packed: int) -> None:
    """Refuse data that decompress into more bytes than data of ``n_packed`` bytes may."""
    limit = max(MAX_UNPACKED_BYTES, MAX_EXPANSION * n_packed)
    if n_unpacked > limit:
        raise LimitError(
            f"must decompress into at most {limit:,} bytes (the larger of {MAX_UNPACKED_BYTES:,} and {MAX_EXPANSION} "
            "times its size); it decompresses into more. If you trust it, decompress it first."
        )


class BoundedReader(io.RawIOBase):
    r"""Decompressed bytes of a stream, up to the limit for ``n_packed`` compressed ones.

    Examples
    --------
    >>> stream = io.BufferedReader(BoundedReader(io.BytesIO(b"two\nlines\n"), n_packed=10))
    >>> list(stream)
    [b'two\n', b'lines\n']
    """

    def __init__(self, stream: Any, n_packed: int) -> None:
        self.stream, self.n_packed, self.n_read = stream, n_packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        buffer[: len(data)] = data
        self.n_read += len(data)
        check_unpacked(self.n_read, self.n_packed)
        return len(data)
