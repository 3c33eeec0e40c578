"""Text of other encodings as UTF-8, a piece at a time; what is no text is refused with its line."""

from __future__ import annotations

import codecs
import io
from typing import Any

from crisptree.files import PIECE
from crisptree.tables.errors import TableError

NOT_FOR_TABLES = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7")
"""Encodings of names and of programs, in which a comma need not be a comma."""

ROUND_THE_BYTE = 12
"""How many letters are shown on either side of a byte that is no text."""


def text_encoding(name: str) -> str:
    """The encoding of this name as Python calls it, if tables are written in it.

    Examples
    --------
    >>> text_encoding("Windows-1252")
    'cp1252'
    """
    try:
        "a".encode(name)  # refuses what is no encoding of text, such as zip
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        found = None
    if found is None or found.incrementaldecoder is None or found.name.replace("-", "_") in _AVOIDED:
        raise TableError(
            f"`encoding` must be an encoding of text that Python knows, such as utf-8, cp1252, latin-1 or utf-16; got "
            f"{name!r}."
        )
    return found.name


_AVOIDED = {name.replace("-", "_") for name in NOT_FOR_TABLES}


class Transcoded(io.RawIOBase):
    """A stream of bytes in some encoding as a stream of bytes in UTF-8."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self.stream, self.encoding = stream, encoding
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.waiting, self.n_lines, self.ended = memoryview(b""), 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.waiting and not self.ended:
            piece = self.stream.read(min(len(buffer), PIECE))
            self.ended = not piece
            try:
                text = self.decoder.decode(piece, final=self.ended)
                self.waiting = memoryview(text.encode())
            except UnicodeError as error:
                raise TableError(self._refusal(error, piece)) from error
            self.n_lines += text.count("\n")
        n_bytes = min(len(buffer), len(self.waiting))
        buffer[:n_bytes], self.waiting = self.waiting[:n_bytes], self.waiting[n_bytes:]
        return n_bytes

    def _refusal(self, error: UnicodeError, piece: bytes) -> str:
        name = "UTF-8" if self.encoding == "utf-8" else self.encoding
        data, start = (error.object, error.start) if isinstance(error, UnicodeDecodeError) else (piece, 0)
        line = self.n_lines + data[:start].decode(self.encoding, "replace").count("\n") + 1
        said = f"line {line} must be text in {name}; it is not"
        if name != "UTF-8":
            return f"{said}. Name the encoding that the file was saved in, for example with `encoding='utf-8'`."
        if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "must be text in UTF-8; it begins as text in utf-16 does. Say `encoding='utf-16'`."
        around = data[max(0, start - ROUND_THE_BYTE) : start + ROUND_THE_BYTE].splitlines()
        shown = next(part for part in around if data[start : start + 1] in part).decode("cp1252", "replace")
        return f"{said}. If {shown!r} is what it should say there, say `encoding='cp1252'`; or save the file as UTF-8."
