"""HTML representations for notebooks: no script, no style sheet, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:2px 10px 2px 0;text-align:{side};vertical-align:top"


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
    inside = (f'<{tag} style="{style}">{_render_cell(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True))
    return f"<tr>{''.join(inside)}</tr>"


class Markup(str):
    """HTML made by one of our own functions, which needs no escaping."""


def _render_cell(cell: object) -> str:
    return cell if isinstance(cell, Markup) else escape(str(cell))


def render_bar(share: float, color: str = "#5b8dd6", width: int = 120) -> Markup:
    """Render a share from 0 to 1 as a bar.

    Examples
    --------
    >>> "width:60px" in render_bar(0.5)
    True
    """
    length = round(width * min(abs(share), 1.0))
    inner = f'<span style="display:inline-block;height:9px;width:{length}px;background:{color}"></span>'
    return Markup(f'<span style="display:inline-block;width:{width}px;text-align:left">{inner}</span>')
