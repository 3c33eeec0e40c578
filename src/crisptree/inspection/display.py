"""Display of names, one line of text each, and of results in notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from crisptree.sanitization import sanitize

_ESCAPES = {ord(space): space.encode("unicode_escape").decode("ascii") for space in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"}

Names = Sequence[Any] | None
"""One name per feature or class, of any type that has a text; None for the model's own."""


def check_names(names: Iterable[object], number: int, parameter: str, things: str) -> list[str]:
    """Sanitize names and check that there is one for each feature or class."""
    texts = sanitize_names(names)
    if len(texts) != number:
        raise ValueError(f"`{parameter}` must name all {number} {things}; got {len(texts)} names.")
    return texts


def sanitize_names(names: Iterable[object]) -> list[str]:
    r"""Make names safe for one line of text or of a plot, whatever characters they have.

    Line breaks and tabs become spaces, except where two names would become equal; those are escaped.

    Examples
    --------
    >>> sanitize_names(["go\nld", "ba sic"])
    ['go ld', 'ba sic']
    >>> sanitize_names(["ba\tsic", "ba sic"]) == [r"ba\tsic", "ba sic"]
    True
    """
    texts = [str(name) for name in names]
    shown = [" ".join(text.split()) for text in texts]
    if len(set(shown)) < len(set(texts)):
        behind = Counter(" ".join(text.split()) for text in set(texts))
        escaped = [text.translate(_ESCAPES) for text in texts]
        shown = [one if behind[one] == 1 else other for one, other in zip(shown, escaped, strict=True)]
    return [sanitize(text) for text in shown]


class Printable:
    """A result that notebooks show as the text that ``print`` shows."""

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"
