"""Text from files and servers as it can be shown: nothing in it moves a cursor, and every character is one of XML."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, among them the escape that terminals obey; not tab and line feed
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing round
    "\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # other line ends, halves of characters, and no characters
)


def visible(text: str) -> str:
    r"""The text with everything that is not to be seen written as Python writes it.

    Examples
    --------
    >>> print(visible("\x1b[2Jred"))
    \x1b[2Jred
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def visible_json(document: str) -> str:
    r"""The same for a JSON document, which stays one: such characters stand in its strings only.

    Examples
    --------
    >>> print(visible_json('["\x9b2J"]'))
    ["\u009b2J"]
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
