"""Display of names and tables: one line of text for each name, HTML without script or style sheet for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from crisptree.sanitization import sanitize

_ESCAPES = {ord(space): space.encode("unicode_escape").decode("ascii") for space in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"}

CELL = "padding:2px 10px 2px 0;text-align:{side};vertical-align:top"

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


def render_table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: object = "") -> str:
    """Render a table; its first column is left-aligned, the others right-aligned.

    Examples
    --------
    >>> render_table(("split",), [("<b>",)], "a & b").count("&lt;b&gt;")
    1
    """
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    title = f"<p><b>{escape(str(caption))}</b></p>" if caption else ""
    return f'<div>{title}<table style="border-collapse:collapse">{"".join(lines)}</table></div>'


def _row(tag: str, cells: Sequence[object]) -> str:
    styles = [CELL.format(side="left" if position == 0 else "right") for position in range(len(cells))]
    texts = [cell if isinstance(cell, Markup) else escape(str(cell)) for cell in cells]
    inside = (f'<{tag} style="{style}">{text}</{tag}>' for style, text in zip(styles, texts, strict=True))
    return f"<tr>{''.join(inside)}</tr>"


class Markup(str):
    """HTML made by one of our own functions, which needs no escaping."""


BAR_WIDTH = 120


def render_bar(share: float, color: str) -> Markup:
    """Render a share from 0 to 1 as a bar.

    Examples
    --------
    >>> "width:60px" in render_bar(0.5, "red")
    True
    """
    length = round(BAR_WIDTH * min(abs(share), 1.0))
    inner = f'<span style="display:inline-block;height:9px;width:{length}px;background:{color}"></span>'
    return Markup(f'<span style="display:inline-block;width:{BAR_WIDTH}px;text-align:left">{inner}</span>')
