"""Reading ``.Z``, the form in which the UCI repository publishes its older files.

Adaptive Lempel–Ziv–Welch as Unix ``compress`` writes it: codes of 9 to 16 bits, lowest bit first, in groups of eight.
Whenever the width of the codes changes, the rest of the group is padding.
"""

from __future__ import annotations

from crisptree.datasets.errors import DataFormatError
from crisptree.limits import LimitError

MAGIC = b"\x1f\x9d"
CLEAR = 256
"""In block mode, the code that empties the table."""
NARROWEST, WIDEST = 9, 16


def decompress(data: bytes, most: int = 2**62) -> bytes:
    """The bytes that ``compress`` was given, ``most`` of them at most.

    What a code stands for is a stretch of what was written before, so that the table needs no bytes of its own.

    Examples
    --------
    >>> decompress(bytes.fromhex("1f9d9061c48c01"))
    b'abc'
    """
    if data[:2] != MAGIC or len(data) < 3:
        raise DataFormatError("a .Z file must begin with the bytes 1f 9d; this one does not. Download it again.")
    widest, block_mode = data[2] & 0x1F, bool(data[2] & 0x80)
    if not NARROWEST <= widest <= WIDEST:
        raise DataFormatError(f"a .Z file has codes of 9 to 16 bits; this one says {widest}. Download it again.")
    alphabet = CLEAR + block_mode  # the place of CLEAR is left free
    out, table = bytearray(), list[tuple[int, int]]()
    width, start, read, latest = NARROWEST, 3, 0, -1  # where the latest piece begins; -1 before the first
    while True:
        if width < widest and alphabet + len(table) >= 1 << width:
            start, read, width = _next_group(start, read, width), 0, width + 1
        byte, bit = divmod(read * width, 8)
        byte += start
        if 8 * byte + bit + width > 8 * len(data):
            return bytes(out)
        code = int.from_bytes(data[byte : byte + 3], "little") >> bit & (1 << width) - 1
        read += 1
        if block_mode and code == CLEAR:
            start, read, width = _next_group(start, read, width), 0, NARROWEST
            table, latest = [], -1
            continue
        known = alphabet + len(table)
        begin = len(out)
        if code < CLEAR:
            out.append(code)
        elif code < known:
            first, length = table[code - alphabet]
            out += out[first : first + length]
        elif code == known and latest >= 0:
            out += out[latest:]  # the one entry that is used before it is written
            out.append(out[latest])
        else:
            raise DataFormatError(f"damaged .Z file: code {code} of {known} at byte {byte}. Download it again.")
        if len(out) > most:
            raise LimitError(f"unpacks to more than {most:,} bytes. If you trust it, raise the limit unpacked_bytes.")
        if latest >= 0 and known < 1 << widest:
            table.append((latest, begin - latest + 1))
        latest = begin


def _next_group(start: int, read: int, width: int) -> int:
    """Where the group after ``read`` codes begins; eight codes of ``width`` bits fill ``width`` bytes."""
    return start + (read + 7) // 8 * width
