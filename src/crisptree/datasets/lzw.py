"""Reading ``.Z``, the form in which the UCI repository publishes its older files.

Adaptive Lempel–Ziv–Welch as Unix ``compress`` writes it: codes of 9 to 16 bits, lowest bit first, in groups of eight.
Whenever the width of the codes changes, the rest of the group is padding.
"""

from __future__ import annotations

from crisptree.datasets.errors import DataFormatError

MAGIC = b"\x1f\x9d"
CLEAR = 256
"""In block mode, the code that empties the table."""
NARROWEST, WIDEST = 9, 16


def decompress(data: bytes) -> bytes:
    """The bytes that ``compress`` was given.

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
    alphabet = [bytes([byte]) for byte in range(256)]
    if block_mode:
        alphabet.append(b"")  # the place of CLEAR
    pieces: list[bytes] = []
    table, width, start, read = alphabet.copy(), NARROWEST, 3, 0
    previous = b""
    while True:
        if width < widest and len(table) >= 1 << width:
            start, read, width = _next_group(start, read, width), 0, width + 1
        byte, bit = divmod(read * width, 8)
        byte += start
        if 8 * byte + bit + width > 8 * len(data):
            return b"".join(pieces)
        code = int.from_bytes(data[byte : byte + 3], "little") >> bit & (1 << width) - 1
        read += 1
        if block_mode and code == CLEAR:
            start, read, width = _next_group(start, read, width), 0, NARROWEST
            table, previous = alphabet.copy(), b""
            continue
        if code < len(table):
            piece = table[code]
        elif code == len(table) and previous:
            piece = previous + previous[:1]  # the one entry that is used before it is written
        else:
            raise DataFormatError(f"damaged .Z file: code {code} of {len(table)} at byte {byte}. Download it again.")
        if previous and len(table) < 1 << widest:
            table.append(previous + piece[:1])
        pieces.append(piece)
        previous = piece


def _next_group(start: int, read: int, width: int) -> int:
    """Where the group after ``read`` codes begins; eight codes of ``width`` bits fill ``width`` bytes."""
    return start + (read + 7) // 8 * width
