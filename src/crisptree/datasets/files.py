"""Published files: the bytes inside a compressed one, by the endings of its name, and the arrays of an .npz."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt

from crisptree import limits
from crisptree.datasets.catalog import DataFormatError
from crisptree.encoding.array_files import read_npz
from crisptree.files import read_all, read_file, reading

DOWNLOAD_AGAIN = " Download it again."

LZW_MAGIC = b"\x1f\x9d"
LZW_CLEAR = 256
"""In block mode, the code that empties the table."""
LZW_MIN_BITS, LZW_MAX_BITS = 9, 16


def read_bytes(path: Path, member: str | None = None) -> bytes:
    """Read a file and decompress it.

    It may end in .gz, .bz2, .Z or .zip. ``member`` names a file of a .zip; its folder does not matter, and it may
    itself be compressed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.txt.gz"
    >>> _ = path.write_bytes(gzip.compress(b"1 2 3"))
    >>> read_bytes(path)
    b'1 2 3'
    """
    ending = path.suffix
    with reading(path, DataFormatError, f"{ending} file", DOWNLOAD_AGAIN):
        data = read_file(path)
        if ending == ".zip":
            return _from_zip(data, member, path)
        return DECOMPRESSORS[ending](data) if ending in DECOMPRESSORS else data


def _from_zip(data: bytes, member: str | None, path: Path) -> bytes:
    if member is None:
        raise ValueError("name the member that you want")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        for ending in ("", *DECOMPRESSORS):
            for name in names:
                if PurePosixPath(name).name == member + ending:
                    with reading(f"{name} in {path}", DataFormatError, f"{ending} file", DOWNLOAD_AGAIN):
                        with archive.open(name) as stream:
                            found = read_all(stream, len(data))
                        return DECOMPRESSORS[ending](found) if ending else found
    raise DataFormatError(f"{path}: there is no {member} in it, only {', '.join(names[:20]) or 'nothing'}")


def read_compact(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Read the compact form of a data set: arrays of an ``.npz`` by name, in this order.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez_compressed(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> [array.shape for array in read_compact(path, "X", "y")]
    [(2, 3), (2,)]
    """
    with reading(path, DataFormatError, ".npz file"):
        arrays = read_npz(path)
        if not set(names) <= set(arrays):
            raise DataFormatError(
                f"{path} must hold the arrays {', '.join(names)}; it holds {', '.join(arrays) or 'none'}."
            )
        return [arrays[name] for name in names]


def decompress_lzw(data: bytes, max_bytes: int = 2**62) -> bytes:
    """Decompress a ``.Z`` file to at most ``max_bytes``.

    The UCI repository publishes its older files so. It is Lempel–Ziv–Welch as Unix ``compress`` writes it: codes of 9
    to 16 bits, lowest bit first, in groups of eight; where the width of the codes changes, the rest of the group is
    padding. What a code stands for is a slice of the output so far, so that the table needs no bytes of its own.

    Examples
    --------
    >>> decompress_lzw(bytes.fromhex("1f9d9061c48c01"))
    b'abc'
    """
    if data[:2] != LZW_MAGIC or len(data) < 3:
        raise DataFormatError("a .Z file must begin with the bytes 1f 9d; this one does not. Download it again.")
    widest, block_mode = data[2] & 0x1F, bool(data[2] & 0x80)
    if not LZW_MIN_BITS <= widest <= LZW_MAX_BITS:
        raise DataFormatError(f"a .Z file has codes of 9 to 16 bits; this one says {widest}. Download it again.")
    alphabet = LZW_CLEAR + block_mode  # the place of LZW_CLEAR is left free
    out, table = bytearray(), list[tuple[int, int]]()
    width, start, read, latest = LZW_MIN_BITS, 3, 0, -1  # where the latest piece begins; -1 before the first
    while True:
        if width < widest and alphabet + len(table) >= 1 << width:
            start, read, width = _next_group(start, read, width), 0, width + 1
        byte, bit = divmod(read * width, 8)
        byte += start
        if 8 * byte + bit + width > 8 * len(data):
            return bytes(out)
        code = int.from_bytes(data[byte : byte + 3], "little") >> bit & (1 << width) - 1
        read += 1
        if block_mode and code == LZW_CLEAR:
            start, read, width = _next_group(start, read, width), 0, LZW_MIN_BITS
            table, latest = [], -1
            continue
        known = alphabet + len(table)
        begin = len(out)
        if code < LZW_CLEAR:
            out.append(code)
        elif code < known:
            first, length = table[code - alphabet]
            out += out[first : first + length]
        elif code == known and latest >= 0:
            out += out[latest:]  # the one entry that is used before it is written
            out.append(out[latest])
        else:
            raise DataFormatError(f"damaged .Z file: code {code} of {known} at byte {byte}. Download it again.")
        if len(out) > max_bytes:
            raise limits.LimitError(
                f"unpacks to more than {max_bytes:,} bytes. If you trust it, raise the limit unpacked_bytes."
            )
        if latest >= 0 and known < 1 << widest:
            table.append((latest, begin - latest + 1))
        latest = begin


def _next_group(start: int, read: int, width: int) -> int:
    """Return where the group after ``read`` codes begins; eight codes of ``width`` bits fill ``width`` bytes."""
    return start + (read + 7) // 8 * width


DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: read_all(gzip.GzipFile(fileobj=io.BytesIO(data)), len(data)),
    ".bz2": lambda data: read_all(bz2.BZ2File(io.BytesIO(data)), len(data)),
    ".Z": lambda data: decompress_lzw(data, limits.current().unpacked(len(data))),
}
"""Decompressors by suffix, bounded by the limits."""
