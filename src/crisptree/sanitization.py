"""Escape characters of untrusted text that would move a terminal's cursor or are not allowed in XML."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, among them the escape of terminals; not tab and line feed
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional formatting
    "\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # other line separators, surrogates, noncharacters
)


def sanitize(text: str) -> str:
    r"""Escape unsafe characters as Python does in a string literal.

    Examples
    --------
    >>> print(sanitize("\x1b[2Jred"))
    \x1b[2Jred
    """
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def sanitize_json(document: str) -> str:
    r"""Escape unsafe characters of a JSON document, which can only be in its strings, as JSON does.

    Examples
    --------
    >>> print(sanitize_json('["\x9b2J"]'))
    ["\u009b2J"]
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)
