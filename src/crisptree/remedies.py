"""What a user may do about an error: a parameter and its value, as Python; the command line has flags for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Remedy:
    """A parameter that would help, and its value; a message holds it as text.

    Examples
    --------
    >>> f"leave it out with {Remedy('drop', ['id'])}."
    "leave it out with drop=['id']."
    """

    parameter: str
    value: Any = True

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}"


class WithRemedies(Exception):
    """An error whose message holds remedies."""

    def __init__(self, message: str, *remedies: Remedy) -> None:
        super().__init__(message)
        self.remedies = remedies


class Note(str):
    """A sentence for the user that holds remedies."""

    remedies: tuple[Remedy, ...]

    def __new__(cls, text: str, *remedies: Remedy) -> Self:
        """The sentence, and the remedies that it holds."""
        note = super().__new__(cls, text)
        note.remedies = remedies
        return note
