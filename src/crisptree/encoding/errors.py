"""Errors of tables, and formatting of their messages."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

MAX_COLUMNS_SHOWN = 20


class TableError(ValueError):
    """A table, or a value in it, that cannot be used; the message says what to do."""


class RefusedColumns(TableError):
    """Columns that cannot be used as they are: ``reasons`` has a sentence for each, which names a remedy."""

    def __init__(self, table: object, reasons: dict[str, str], *, can_be_dropped: bool = False) -> None:
        self.reasons, shown = reasons, [reason.removeprefix(f"{table}: ") for reason in reasons.values()]
        lines = [f"{table} has {len(shown)} columns that cannot be used as they are:"]
        lines += [f"  {reason}" for reason in shown[:MAX_COLUMNS_SHOWN]]
        if len(shown) > MAX_COLUMNS_SHOWN:
            lines.append(f"  and {len(shown) - MAX_COLUMNS_SHOWN} more.")
        if can_be_dropped:
            lines.append(f"All of them are left out with `drop={list(reasons)}`.")
        super().__init__("\n".join(lines) if len(shown) > 1 else next(iter(reasons.values())))


def check_unique_names(names: Sequence[object], table: object) -> None:
    """Raise if two columns have the same name."""
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableError(f"{table} has two columns named {duplicates[0]!r}. Give every column a name of its own.")


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Format the first names in quotation marks, and the number of others.

    Examples
    --------
    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(str(name)) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, what: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> counted(1, "value"), counted(1200, "value")
    ('1 value', '1,200 values')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is closest to a misspelt one, or return "".

    Examples
    --------
    >>> suggest_name("colour", ["color", "size"])
    " Did you mean 'color'?"
    """
    known = list(known)
    lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""
