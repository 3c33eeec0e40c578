"""Display of names, one line of text each, and of results in notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from crisptree.sanitization import sanitize

_ESCAPES = {ord(space): space.encode("unicode_escape").decode("ascii") for space in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"}

MAX_PLAIN_NUMBER = 1e7
"""Larger numbers are written with an exponent."""

MAX_ROUND_DIGITS = 5
"""A number in single precision with so many significant digits is round, and written as it is."""

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


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with so many significant digits, but all those before the decimal point, and a minus sign.

    Examples
    --------
    >>> format_number(35104.2), format_number(-0.123456), format_number(1.5e9)
    ('35104', '−0.1235', '1.5e+09')
    """
    text = f"{value:.0f}" if 10**digits <= abs(value) < MAX_PLAIN_NUMBER else f"{value:.{digits}g}"
    return text.replace("-", "−")


def format_change(value: float, digits: int = 4) -> str:
    """Format a difference with its sign, one of 0 without.

    Examples
    --------
    >>> format_change(3786.2), format_change(-0.25), format_change(0.0)
    ('+3786', '−0.25', '0')
    """
    return f"{'+' if value > 0 else ''}{format_number(value, digits)}"


def format_short(value: float, digits: int = 4) -> str:
    """Format a number of training in single precision: all digits of a round one, so many of another.

    Examples
    --------
    >>> format_short(0.80005), format_short(2.4499998), format_short(-35.25)
    ('0.80005', '2.45', '−35.25')
    """
    exact = f"{value:.{MAX_ROUND_DIGITS}g}"
    is_round = np.float32(exact) == np.float32(value) and "e" not in exact
    return exact.replace("-", "−") if is_round else format_number(value, digits)


def format_terms(terms: Iterable[tuple[float, str]], digits: int = 4, *, signed: bool = False) -> list[str]:
    """Format the terms of a weighted sum; ``signed`` gives the first one its sign too, as something stands before it.

    Examples
    --------
    >>> format_terms([(0.5, "age"), (-2.0, "income")])
    ['0.5 × age', '− 2 × income']
    """
    return [
        f"{'− ' if weight < 0 else '+ ' if position or signed else ''}{_format_factor(abs(weight), digits)}{name}"
        for position, (weight, name) in enumerate(terms)
    ]


def _format_factor(weight: float, digits: int) -> str:
    return "" if weight == 1 else f"{format_short(weight, digits)} × "


def format_moments(means: Iterable[float], spreads: Iterable[float], names: Sequence[str] = ()) -> str:
    """Format means and standard deviations, after the names of the outputs where there are several.

    Examples
    --------
    >>> format_moments([2.5, 1.0], [0.25, 0.125], ["a", "b"])
    'a 2.5 ± 0.25, b 1 ± 0.12'
    """
    texts = [f"{format_number(mean)} ± {format_number(spread, 2)}" for mean, spread in zip(means, spreads, strict=True)]
    if len(names) > 1:
        texts = [f"{name} {text}" for name, text in zip(names, texts, strict=True)]
    return ", ".join(texts)


class Printable:
    """A result that notebooks show as the text that ``print`` shows."""

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"
