"""Warnings and errors of the library that need nothing else of it, and words of their messages."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

MAX_COLUMNS_SHOWN = 20


class CrispTreeWarning(UserWarning):
    """Unusual input or settings that the caller may want to change; training went on.

    Examples
    --------
    >>> import warnings
    >>> from crisptree import CrispTreeWarning
    >>> warnings.filterwarnings("ignore", category=CrispTreeWarning)  # no warnings of this library
    >>> warnings.resetwarnings()
    """


class CheckpointError(ValueError):
    """A checkpoint that is damaged, that belongs to another fit, or that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CheckpointError, CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "max_depth": 1}
    >>> folder = Path(tempfile.mkdtemp()) / "checkpoint"
    >>> model = CrispTreeClassifier(**fixed).fit(X, y, checkpoint=folder)
    >>> try:
    ...     model.fit(X, y, checkpoint=folder)
    ... except CheckpointError:
    ...     print("The folder holds a checkpoint, and resume=False.")
    The folder holds a checkpoint, and resume=False.
    """


class ProcessGroupError(RuntimeError):
    """A process of the group has died, does not respond, or has other arguments than the others.

    Examples
    --------
    The rows of the other processes are lost with it, so nothing can be trained further. Started again by ``torchrun``,
    the processes continue from the last checkpoint.

    >>> from crisptree.distributed import ProcessGroupError
    >>> issubclass(ProcessGroupError, RuntimeError)
    True
    """


class TableError(ValueError):
    """A table, or a value in it, that cannot be used; the message has the remedy."""


class RefusedColumns(TableError):
    """Columns that cannot be used as they are: ``reasons`` has a sentence for each, which names a remedy.

    ``remedies`` are parameters by which all of them are left out, or become numbers where they hold ``dates``.
    """

    def __init__(
        self, table: object, reasons: dict[str, str], *, can_be_dropped: bool = False, dates: Collection[str] = ()
    ) -> None:
        self.reasons, shown = reasons, [reason.removeprefix(f"{table}: ") for reason in reasons.values()]
        remedies = {"drop": [name for name in reasons if name not in dates], "dates": list(dates)}
        self.remedies = {parameter: names for parameter, names in remedies.items() if names}
        lines = [f"{table} has {len(shown)} columns that cannot be used as they are:"]
        lines += [f"  {reason}" for reason in shown[:MAX_COLUMNS_SHOWN]]
        if len(shown) > MAX_COLUMNS_SHOWN:
            lines.append(f"  and {len(shown) - MAX_COLUMNS_SHOWN} more.")
        if can_be_dropped:
            flags = " ".join(f"`{parameter}={names}`" for parameter, names in self.remedies.items())
            lines.append(f"All of them are left out{', or become numbers,' if dates else ''} with {flags}.")
        super().__init__("\n".join(lines) if len(shown) > 1 else next(iter(reasons.values())))


def format_names(names: Iterable[str], limit: int = 8) -> str:
    """Format the first names in quotation marks, and the number of others.

    Examples
    --------
    >>> format_names(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(str(name)) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")


def format_count(count: int, what: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> format_count(1, "value"), format_count(1200, "value")
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
