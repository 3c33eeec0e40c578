"""Declaration of parameters: annotated class attributes that become the ``__init__`` and the docstring of a class.

``epochs: int = parameter(default=20, ...)`` declares one. ``declare_parameters`` gives the class the ``__init__`` that
scikit-learn asks for, and an estimator inherits it. Docstrings and the help of the command line are made from the
declarations.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, ClassVar, TypeVar, dataclass_transform

from crisptree.parameters.rules import Rule

DOC_WIDTH = 110
DeclaredT = TypeVar("DeclaredT", bound="Declared")
NEVER = object()
"""There was no version without the parameter."""


@dataclass(frozen=True)
class Parameter:
    """Declaration of one parameter.

    Parameters
    ----------
    default : object
        Default value.
    rule : Rule or None
        What values are valid; None where that depends on more than the value.
    kind : str
        Its type, as the documentation states it.
    doc : str
        Documentation. The first sentence is the help of the command line.
    flag : str or None
        Flag of the command line; None for parameters that have none.
    before : object
        Value in model files that do not name the parameter; ``NEVER`` for the parameters of the first version.
    """

    default: Any
    rule: Rule | None
    kind: str
    doc: str
    flag: str | None
    before: Any

    @property
    def help(self) -> str:
        """The first sentence of the documentation."""
        text = " ".join(self.doc.split()).replace("``", "")
        return text.split(". ", 1)[0].rstrip(".") + "."


def parameter(
    *,
    default: Any,
    kind: str = "",
    doc: str = "",
    rule: Rule | None = None,
    flag: str | None = None,
    before: Any = NEVER,
) -> Any:
    """Declare a parameter; see ``Parameter``. Type checkers look for a ``default`` by that name."""
    return Parameter(default, rule, kind, doc, flag, before)


class Declared:
    """Base of classes whose parameters are declared as class attributes.

    ``{parameters}`` in the docstring of a subclass is replaced by the documentation of its parameters.
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = {}
    OWN: ClassVar[dict[str, Parameter]] = {}
    """Those that the class itself declares."""

    @classmethod
    def _describe_unknown(cls, name: str) -> str:
        return f"{cls.__name__}() has no parameter {name!r}; it has {', '.join(cls.PARAMETERS)}."

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.PARAMETERS:
            cls._document()

    @classmethod
    def _document(cls) -> None:
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("    {parameters}", document_parameters(cls.PARAMETERS))


def document_parameters(declared: Mapping[str, Parameter]) -> str:
    """Write the section "Parameters" of a docstring."""
    lines = []
    for name, one in declared.items():
        default = '"' + one.default + '"' if isinstance(one.default, str) else repr(one.default)
        lines.append(f"    {name} : {one.kind}, default={default}")
        text = " ".join(one.doc.split())
        lines += textwrap.wrap(
            text, DOC_WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False
        )
    return "\n".join(lines)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def declare_parameters(cls: type[DeclaredT]) -> type[DeclaredT]:
    """Collect the parameters that a class and its bases declare, and make an ``__init__`` that takes them.

    Only classes of nothing but parameters are decorated. Type checkers take every annotation of a decorated class for
    an argument of ``__init__``, so an estimator inherits from one, undecorated, and may annotate its fitted attributes.
    What a class fixes is no parameter of it.
    """
    own = {name: value for name, value in cls.__dict__.items() if isinstance(value, Parameter)}
    cls.OWN = own
    inherited = {name: value for base in cls.__mro__[:0:-1] for name, value in base.__dict__.get("OWN", {}).items()}
    fixed = getattr(cls, "FIXED", {})
    cls.PARAMETERS = {name: value for name, value in (inherited | own).items() if name not in fixed}
    for name in own:
        delattr(cls, name)
    cls.__init__ = _make_init(cls)  # type: ignore[method-assign]
    cls._document()
    return cls


def _make_init(cls: type[Declared]) -> Callable[..., None]:
    """Make an ``__init__`` that stores every parameter, with the signature that scikit-learn inspects."""
    declared = cls.PARAMETERS

    def __init__(self: Any, **values: Any) -> None:
        unknown = values.keys() - declared.keys()
        if unknown:
            raise TypeError(type(self)._describe_unknown(min(unknown)))
        for name, one in declared.items():
            object.__setattr__(self, name, values.get(name, one.default))

    arguments = [Argument(name, Argument.KEYWORD_ONLY, default=declared[name].default) for name in declared]
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [Argument("self", Argument.POSITIONAL_OR_KEYWORD), *arguments]
    )
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__
