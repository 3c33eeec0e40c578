"""Commands that share options: one argument of a function stands for several on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter as Argument
from inspect import Signature, signature
from typing import Any, get_type_hints


def in_the_place_of(
    name: str, others: Sequence[Argument], command: Callable[..., Any], run: Callable[..., Any]
) -> None:
    """Give ``run`` the signature of a command, but with other arguments in the place of the one of this name."""
    hints = get_type_hints(command, include_extras=True)
    arguments: list[Argument] = []
    for argument in signature(command).parameters.values():
        if argument.name == name:
            arguments += others
        else:
            arguments.append(argument.replace(kind=Argument.KEYWORD_ONLY, annotation=hints[argument.name]))
    run.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    run.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
