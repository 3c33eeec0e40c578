"""Commands that share options: one argument of a function stands for several on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
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


def made_of(name: str, make: Callable[..., Any], defaults: Mapping[str, Any]) -> Callable[..., Callable[..., None]]:
    """A decorator: the command gets the options that are the arguments of ``make``, and what that makes as ``name``."""
    hints = get_type_hints(make, include_extras=True)
    options = [
        Argument(option, Argument.KEYWORD_ONLY, default=defaults[option], annotation=hints[option])
        for option in signature(make).parameters
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            said = {option: given.pop(option) for option in defaults}
            command(**given, **{name: make(**said)})

        in_the_place_of(name, options, command, run)
        return run

    return decorate
