"""Remedies of the library, which are parameters, as flags of the command line."""

from __future__ import annotations

from shlex import quote

from crisptree.remedies import Remedy


def with_flags(said: BaseException | str) -> str:
    """A message of the library, its remedies written as one types them in a shell.

    Examples
    --------
    >>> from crisptree.remedies import Note
    >>> drop = Remedy("drop", ["the id"])
    >>> with_flags(Note(f"leave it out with {drop}.", drop))
    "leave it out with --drop 'the id'."
    """
    text = str(said)
    for remedy in getattr(said, "remedies", ()):
        text = text.replace(str(remedy), _flag(remedy))
    return text


def _flag(remedy: Remedy) -> str:
    flag = f"--{remedy.parameter.replace('_', '-')}"
    values = remedy.value if isinstance(remedy.value, list) else [remedy.value]
    words = (quote(str(value).replace("\t", "\\t")) for value in values)
    return flag if remedy.value is True else " ".join(f"{flag} {word}" for word in words)
