"""The parameters of an estimator as options of a command; what they are stands in ``estimators.parameters`` alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter as Argument
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from crisptree.cli.options import TRAINING, TREE
from crisptree.cli.signatures import in_the_place_of
from crisptree.estimators.parameters import Declared, Parameter
from crisptree.estimators.rules import Rule, is_whole, whole

OF_THE_TREE = ("window", "scales", "normalise_images", "stages", "max_depth", "max_leaf_nodes", "split", "image_shape")
"""These come first, in this order and under a heading of their own; the others are about training."""

PANELS = {**dict.fromkeys(OF_THE_TREE, TREE), "n_jobs": None}
SHORT = {"n_jobs": "-j"}
WRITTEN = {"image_shape": "HxW[xC]", "scales": "N[,N...]"}
"""How to write values that are more than a word."""

NARROWED: dict[str, dict[str, Any]] = {
    # A run of the command can be repeated unless the user asks for another one.
    "random_state": {"default": 0, "rule": whole(0, high=2**32 - 1)},
    "ignore_label": {"rule": Rule(is_whole, "a whole number, as the pixels of a label image are")},
}
"""Where a command takes less than Python does."""

NOT_GIVEN: tuple[Any, ...] = (None, False, [])


@dataclass(frozen=True)
class ParameterOption:
    """One parameter on the command line: its name in Python, what it is, and what it may be by its annotation."""

    name: str
    declared: Parameter
    kinds: tuple[Any, ...]

    @property
    def argument(self) -> Argument:
        """The argument from which typer makes the option; but for switches and choices its value is a text."""
        declared, default = self.declared, self.declared.default
        names = [name for name in (declared.flag, SHORT.get(self.name)) if name]
        words = tuple(word for word in declared.rule.words if word) if declared.rule else ()
        shown: dict[str, Any] = {"help": declared.help, "rich_help_panel": PANELS.get(self.name, TRAINING)}
        kind: Any = str | None
        unless_given: str | bool | None = None
        if bool in self.kinds:
            kind, unless_given = bool, False
        elif any(get_origin(kind) is dict for kind in self.kinds):
            kind = list[str] | None
        elif words:
            kind = Literal[words] | None
        else:
            types = [kind.__name__ for kind in self.kinds if kind in (int, float, str)] or ["int"]
            none = ["none"] if default is not None and declared.rule is not None and declared.rule.holds(None) else []
            shown["metavar"] = WRITTEN.get(self.name) or f"<{'|'.join(types + none)}>"
        if "default" in NARROWED.get(self.name, {}):
            unless_given = str(default)
        elif kind is not bool and default is not None:
            shown["show_default"] = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        option = typer.Option(*names, **shown)
        return Argument(self.name, Argument.KEYWORD_ONLY, default=unless_given, annotation=Annotated[kind, option])

    def value(self, given: Any) -> Any:
        """What was given as the parameter takes it, held to its rule."""
        if given is True:
            return not self.declared.default
        value = _parsed(given, self.kinds) if isinstance(given, str) else given
        if self.declared.rule is not None:
            self.declared.rule.check(self.name, value)
        return value


def parameter_options(estimator: type[Declared], without: Collection[str] = ()) -> dict[str, ParameterOption]:
    """An option for every parameter with a flag."""
    hints = get_type_hints(estimator)
    names = [name for name, declared in estimator.PARAMETERS.items() if declared.flag and name not in without]
    first = [name for name in OF_THE_TREE if name in names]
    options = {}
    for name in dict.fromkeys([*first, *names]):
        declared = replace(estimator.PARAMETERS[name], **NARROWED.get(name, {}))
        hint = hints[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        options[name] = ParameterOption(name, declared, kinds)
    return options


def with_parameters(
    estimator: type[Declared], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of an estimator; it gets those that were given as its argument ``parameters``.

    Errors of the library name the parameter; here they name the flag.
    """
    options = parameter_options(estimator, without)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            texts = {name: given.pop(name) for name in options}
            try:
                parameters = {name: options[name].value(text) for name, text in texts.items() if text not in NOT_GIVEN}
            except ValueError as error:
                raise typer.BadParameter(_naming_flags(str(error), options)) from None
            try:
                command(**given, parameters=parameters)
            except ValueError as error:
                said = _naming_flags(str(error), options)
                if said != str(error):
                    error.args = (said, *error.args[1:])
                raise

        in_the_place_of("parameters", [option.argument for option in options.values()], command, run)
        return run

    return decorate


def _parsed(text: str, kinds: tuple[Any, ...]) -> Any:
    """The first kind of value that a text can be read as; one that is none of them is left for the rule to refuse.

    Examples
    --------
    >>> _parsed("28x28", (tuple[int, ...],)), _parsed("none", (int, NoneType)), _parsed("auto", (float, str))
    ((28, 28), None, 'auto')
    """
    if NoneType in kinds and text.lower() == "none":
        return None
    for kind in kinds:
        try:
            if get_origin(kind) is tuple:
                return tuple(map(int, re.split("[,x×]", text)))
            if kind in (int, float):
                return kind(text)
            if kind is Any:
                return int(text)
        except ValueError:
            continue
    return text


def _naming_flags(text: str, options: dict[str, ParameterOption]) -> str:
    """A sentence of the library with flags in the place of names of parameters."""

    def named(match: re.Match[str]) -> str:
        option = options.get(match[1])
        return f"{option.declared.flag} {WRITTEN.get(option.name, '')}".rstrip() if option else match[0]

    return re.sub(r"`(\w+)`", named, text)
