"""Declaration, checks, nesting and flattening of parameters; ``TrainingOptions``."""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter as Argument
from inspect import Signature
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

import numpy as np

from crisptree.parameters.names import RENAMED as RENAMED
from crisptree.parameters.names import RENAMED_VALUES as RENAMED_VALUES
from crisptree.parameters.names import describe_unknown


class Rule(NamedTuple):
    """A predicate, its text in errors ("`name` must be ``sentence``"), and the allowed words, if any."""

    holds: Callable[[Any], bool]
    sentence: str
    words: tuple[str | None, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise an error unless the predicate holds."""
        if not self.holds(value):
            raise ValueError(f"`{name}` must be {self.sentence}; got {value!r}.")


def is_whole(value: Any) -> bool:
    """Return True for an integer that is no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole(low: int, *, high: int | None = None, none: bool = False, remark: str = "") -> Rule:
    """Make the rule of an integer within bounds."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        return is_whole(value) and bool(value >= low) and (high is None or bool(value <= high))

    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
    return Rule(holds, f"a whole number {bounds}" + (" or None" if none else "") + remark)


def number(low: float, *, strict: bool = False, high: float = 1e30, closed: bool = False, none: bool = False) -> Rule:
    """Make the rule of a finite number from ``low`` on (above it if ``strict``) and below ``high`` (or up to it)."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        if not isinstance(value, Real) or not math.isfinite(value):
            return False
        real = float(value)
        return (real > low if strict else real >= low) and (real <= high if closed else real < high)

    bounds = f"{'above' if strict else 'at least'} {low:g} and {'at most' if closed else 'below'} {high:g}"
    return Rule(holds, f"a number {bounds}" + none * " or None")


def rows_or_fraction(low: int, *, below_one: bool = False) -> Rule:
    """Make the rule of a number or a fraction of rows, as in scikit-learn's trees."""
    counts = whole(low)

    def holds(value: Any) -> bool:
        if is_whole(value) or isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return counts.holds(value)
        return 0.0 < float(value) < 1.0 or (float(value) == 1.0 and not below_one)

    top = "below 1.0" if below_one else "at most 1.0"
    return Rule(holds, f"{counts.sentence}, or a fraction of the rows above 0.0 and {top}")


def one_of(*names: str | None) -> Rule:
    """Make the rule of one of some words."""

    def holds(value: Any) -> bool:
        return (value is None or isinstance(value, str)) and value in names

    return Rule(holds, "one of " + ", ".join(map(repr, names)), names)


def word_or(word: str, rule: Rule) -> Rule:
    """Make the rule of a word or of another rule."""
    return Rule(
        lambda value: (isinstance(value, str) and value == word) or rule.holds(value), f"{word!r} or {rule.sentence}"
    )


def true_or_false() -> Rule:
    """Make the rule of a bool."""
    return Rule(lambda value: isinstance(value, bool | np.bool_), "True or False")


def whole_numbers(n_values: tuple[int, ...] | None = None, *, different: bool = False) -> Callable[[Any], bool]:
    """Make the predicate of a tuple or list of positive integers, of one of the lengths."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, tuple | list)
            and (len(value) in n_values if n_values else len(value) > 0)
            and all(is_whole(item) and item > 0 for item in value)
            and (not different or len(set(value)) == len(value))
        )

    return holds


def word_or_function(*names: str, function: str = "split(input_shape) that returns a torch.nn.Module") -> Rule:
    """Make the rule of one of some words, or a function that the last argument describes."""
    return Rule(
        lambda value: callable(value) or (isinstance(value, str) and value in names),
        ", ".join(map(repr, names)) + f" or a function {function}",
        names,
    )


def columns_or_encoder() -> Rule:
    """Make the rule of ``categorical_features``."""

    def holds(value: Any) -> bool:
        if value is None or hasattr(value, "encode_rows"):
            return True
        if isinstance(value, str):
            return value == "auto"
        return isinstance(value, list | tuple) and all(isinstance(name, str) or is_whole(name) for name in value)

    return Rule(holds, "'auto', None, a list of columns or a TableEncoder")


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


def redeclare(base: type[Declared], name: str, *, default: Any, **changes: Any) -> Any:
    """Declare a parameter as a base class does, with another default and some other changes."""
    return replace(base.PARAMETERS[name], default=default, **changes)


class Declared:
    """Base of classes whose parameters are declared as class attributes.

    ``{parameters}`` in the docstring of a subclass is replaced by the documentation of its parameters.
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = {}
    OWN: ClassVar[dict[str, Parameter]] = {}
    """Parameters that the class itself declares."""

    @classmethod
    def _describe_unknown(cls, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), cls.PARAMETERS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"{cls.__name__}() has no parameter {name!r}; it has {', '.join(cls.PARAMETERS)}.{hint}"

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


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, redeclare))
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


ADAM_OPTIONS = (
    "epochs",
    "finetune_epochs",
    "min_updates",
    "learning_rate",
    "learning_rate_decay",
    "batch_size",
    "steepness",
    "steepness_step",
    "annealing",
    "finetune_steepness",
    "mass_threshold",
    "upper_levels",
    "early_stopping",
)
"""Options that only Adam has; setting one of them resolves ``optimizer="auto"`` to it."""


@declare_parameters
class TrainingOptions(Declared):
    """Expert options of training: optimiser, annealing, growth, early stopping, device.

    An estimator takes them as ``training``; ``set_params(training__epochs=5)`` and grid searches reach them. The object
    is immutable: ``replace`` returns a changed copy.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier, TrainingOptions
    >>> model = CrispTreeClassifier(training=TrainingOptions(epochs=5))
    >>> model.set_params(training__batch_size=64).training
    TrainingOptions(epochs=5, batch_size=64)
    """

    algorithm: str = parameter(
        default="likelihood",
        kind='{"likelihood", "em", "alternating"}',
        doc="""Optimisation scheme of stumps and of the whole tree: gradient ascent of the log-likelihood,
        expectation-maximisation, or the alternating scheme of the paper's supplement with hard leaf
        counts.""",
        rule=one_of("em", "alternating", "likelihood"),
        flag="--algorithm",
    )
    effort: str = parameter(
        default="default",
        kind='{"fast", "default", "thorough"}',
        doc="""Work for parameters that are "auto" and for random starts. "fast" compares no candidates and trains
        one start. "thorough" compares candidates in twice as many folds and trains twice as many starts.""",
        rule=one_of("fast", "default", "thorough"),
        flag="--effort",
        before="default",
    )
    grow: str | Callable[..., Any] = parameter(
        default="greedy",
        kind='{"greedy", "balanced", "cart"} or callable',
        doc="""How the structure is found: learned greedily; a random complete tree of ``max_depth``; or thresholds by
        scikit-learn's CART, which keep their features in finetuning with ``split="axis"``. A function
        ``grow(context, tree)`` returns a tree of hyperplanes for the rows of a
        ``learning.fitting.TrainingContext``, from a single leaf or the tree of a warm start; a model file does not
        hold it. The comparison methods of the paper are such functions (experiments/searches).""",
        rule=word_or_function("greedy", "balanced", "cart", function="grow(context, tree) that returns a Tree"),
    )
    optimizer: str = parameter(
        default="auto",
        kind='{"auto", "lbfgs", "adam"}',
        doc="""Optimiser of splits and leaves. "lbfgs" is full-batch L-BFGS for dense rows, hyperplanes and
        ``algorithm="likelihood"``; it needs a fraction of Adam's time on small tables. "adam" takes
        mini-batches, and always finetunes linear leaves. "auto" is L-BFGS up to 256 features and a
        million values, unless an option of Adam's schedule is set, such as ``epochs``,
        ``learning_rate``, ``batch_size``, ``steepness`` or ``early_stopping``.""",
        rule=one_of("auto", "lbfgs", "adam"),
        flag="--optimizer",
        before="adam",
    )
    n_init: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        doc="""Number of random starts of a single tree that is grown greedily and finetuned; the tree with the
        highest score on the training rows is kept. "auto" is 6 with L-BFGS and 1 with Adam. Trees of a
        forest, trees with linear leaves and fits with ``early_stopping`` have one. Callbacks and
        ``history_`` see the first start.""",
        rule=word_or("auto", whole(1)),
        flag="--n-init",
        before=1,
    )
    epochs: int = parameter(
        default=20, kind="int", doc="Epochs of every stump with Adam.", rule=whole(1), flag="--epochs"
    )
    finetune_epochs: int = parameter(
        default=40,
        kind="int",
        doc="Epochs of the joint finetuning of the whole tree with Adam. 0 keeps the greedy tree.",
        rule=whole(0, remark=" (0 keeps the greedy tree)"),
        flag="--finetune-epochs",
    )
    min_updates: int = parameter(
        default=200,
        kind="int",
        doc="""Minimum number of optimiser steps of a stump and of finetuning. Small nodes go through their
        rows several times per epoch. 0 counts epochs alone, as the paper does.""",
        rule=whole(0, remark=" (0 counts epochs alone)"),
    )
    learning_rate: float | str = parameter(
        default="auto",
        kind='float or "auto"',
        doc="""Learning rate of Adam. "auto" is 0.02 up to 64 features and falls with 1 / n_features beyond,
        because the steps of all weights of a hyperplane add up.""",
        rule=word_or("auto", number(0.0, strict=True)),
    )
    learning_rate_decay: str = parameter(
        default="linear",
        kind='{"linear", "cosine", "none"}',
        doc="Schedule by which the learning rate falls to almost zero in each phase, growth and finetuning.",
        rule=one_of("none", "linear", "cosine"),
        before="none",
    )
    batch_size: int = parameter(default=256, kind="int", doc="Rows per batch; per node in growth.", rule=whole(1))
    steepness: float = parameter(
        default=1.0, kind="float", doc="Steepness γ of the first epoch.", rule=number(0.0, strict=True)
    )
    steepness_step: float | str = parameter(
        default="auto",
        kind='float or "auto"',
        doc="""Increase of γ per epoch. "auto" is 0.1.""",
        rule=word_or("auto", number(0.0)),
    )
    annealing: str = parameter(
        default="linear",
        kind='{"linear", "geometric"}',
        doc="Add ``steepness_step`` to γ after every epoch, or multiply γ by 1 + ``steepness_step``.",
        rule=one_of("linear", "geometric"),
    )
    finetune_steepness: float | str = parameter(
        default="restart",
        kind='float, "restart" or "continue"',
        doc="γ of the first finetuning epoch: a number, ``steepness`` again, or on from where greedy growth ended.",
        rule=word_or("restart", word_or("continue", number(0.0, strict=True))),
        flag="--finetune-steepness",
        before="restart",
    )
    leaf_prior: float = parameter(
        default=0.0,
        kind="float",
        doc="Pseudo-count of every class in every leaf; in regression, of rows distributed like all training rows.",
        rule=number(0.0),
    )
    leaf_l2: float | str = parameter(
        default="auto",
        kind='float or "auto"',
        doc="""Ridge penalty of linear leaf models, in rows. It shrinks the part of the weights that a node
        adds to those of the nodes above it, so that a leaf with few rows predicts as its ancestors do.
        "auto" selects it on held-out rows.""",
        rule=word_or("auto", number(0.0, strict=True)),
        flag="--leaf-l2",
        before="auto",
    )
    penalty_share: str = parameter(
        default="rows",
        kind='{"rows", "none"}',
        doc="""Weight of the penalties of a split in finetuning: the share of rows that visit it, so that
        regularisation and loss keep their balance in deep splits, or 1 for all splits, the paper's
        single λ, which smooths deep splits more.""",
        rule=one_of("rows", "none"),
        before="rows",
    )
    mass_threshold: float = parameter(
        default=1e-3,
        kind="float",
        doc="""In finetuning, a split is neither evaluated nor moved by a row if the responsibilities of the leaves
        below the split add up to less than this for the row. 0 is exact.""",
        rule=number(0.0, high=1.0),
    )
    upper_levels: int | None = parameter(
        default=4,
        kind="int or None",
        doc="""Finetune large trees from the top: this many levels first, then twice as many, and so on to all.
        Applies to trees of at least 1024 splits with at most four rows per split, for which it is
        faster and more accurate (docs/results/training-speed.md). None finetunes all levels at once.""",
        rule=whole(1, high=10, none=True),
        flag="--upper-levels",
        before=None,
    )
    scale: str | None = parameter(
        default="auto",
        kind='{"auto", "feature", "global"} or None',
        doc="""Standardisation of the features for training: mean and spread per feature, one spread for all
        features, or none; sparse rows are divided only. "auto" uses one spread for pixels and for
        sparse rows and one per feature for tables, and tries the other one on held-out rows where the
        spreads are not too far apart; segmenters use one per feature. The scaling is folded into the
        weights after training.""",
        rule=one_of("auto", "feature", "global", None),
    )
    round_splits: bool = parameter(
        default=False,
        kind="bool",
        doc="""Round the splits of a single tree in raw units: the smallest weight of each becomes 1, the others and
        the threshold get the fewest digits by which 99.8 % of its rows stay on their sides.""",
        rule=true_or_false(),
        before=False,
    )
    max_shift: int = parameter(
        default=0,
        kind="int",
        doc="""Augmentation of images by random shifts of at most so many pixels, drawn anew in every epoch;
        borders are repeated. Needs ``image_shape`` and one scale for all pixels. Validation rows and
        final leaf statistics use the images as they are.""",
        rule=whole(0, remark=" (0 leaves images where they are)"),
        flag="--max-shift",
        before=0,
    )
    min_samples_split: int | float = parameter(
        default=2,
        kind="int or float",
        doc="Minimum number of rows that a node needs to be split, or a fraction of all rows.",
        rule=rows_or_fraction(2),
        flag="--min-samples-split",
    )
    min_impurity_decrease: float = parameter(
        default=0.0,
        kind="float",
        doc="""Minimum information gain of a split, in nats times the node's share of the rows; in regression
        the minimum reduction of variance, as a share of the variance of y.""",
        rule=number(0.0),
    )
    time_budget: float | None = parameter(
        default=None,
        kind="float or None",
        doc="""Seconds after which model selection trains no further candidate. One is always trained, and the
        final fit is whole. ``max_candidates=model.n_candidates_`` repeats such a fit exactly.""",
        rule=number(0.0, strict=True, none=True),
        flag="--time-budget",
        before=None,
    )
    max_candidates: int | None = parameter(
        default=None,
        kind="int or None",
        doc="Maximum number of candidates that model selection trains.",
        rule=whole(1, none=True),
        flag="--max-candidates",
        before=None,
    )
    early_stopping: bool = parameter(
        default=False,
        kind="bool",
        doc="""Stop finetuning when the validation score no longer improves, and keep the tree of the best
        epoch. The score is that of the deterministic tree on the rows of ``eval_set``, or on
        ``validation_fraction`` of the rows; see ``best_iteration_``.""",
        rule=true_or_false(),
        flag="--early-stopping",
    )
    validation_fraction: float = parameter(
        default=0.1,
        kind="float",
        doc="Share of the rows that is held out where validation rows are needed and ``fit`` gets no ``eval_set``.",
        rule=number(0.0, strict=True, high=1.0),
    )
    n_iter_no_change: int = parameter(
        default=10,
        kind="int",
        doc="""Finetuning epochs without a better validation score after which ``early_stopping`` ends
        finetuning. γ starts low, and the deterministic tree can be worse than before until γ has risen:
        a small number may stop there.""",
        rule=whole(1),
        flag="--n-iter-no-change",
        before=10,
    )
    device: str = parameter(
        default="auto",
        kind="str",
        doc='Device to train on: "cpu", "cuda", or "auto" for CUDA, if there is one, from 200,000 values of X on.',
        flag="--device",
    )
    callbacks: Sequence[Callable[..., object]] | None = parameter(
        default=None,
        kind="list of callable or None",
        doc="Functions that are called with an ``EpochRecord`` after every epoch.",
        rule=Rule(
            lambda value: value is None or (isinstance(value, list | tuple) and all(map(callable, value))),
            "None or a list of functions that take a record of an epoch",
        ),
    )

    def __setattr__(self, name: str, value: Any) -> None:
        remedy = f"use options.replace({name}=...), or estimator.set_params(training__{name}=...)."
        raise AttributeError(f"TrainingOptions cannot be changed; {remedy}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all options by name."""
        return {name: getattr(self, name) for name in self.PARAMETERS}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some options changed.

        Examples
        --------
        >>> from crisptree import TrainingOptions
        >>> TrainingOptions(epochs=5).replace(batch_size=64)
        TrainingOptions(epochs=5, batch_size=64)
        """
        return type(self)(**self.get_params() | changes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingOptions) and self.get_params() == other.get_params()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = self.get_params()
        changed = (f"{name}={value!r}" for name, value in values.items() if not self._is_default(name, value))
        return f"TrainingOptions({', '.join(changed)})"

    def _is_default(self, name: str, value: Any) -> bool:
        default = self.PARAMETERS[name].default
        return value is default or (type(value) is type(default) and bool(value == default))


class EstimatorParameters(Declared):
    """Base of all parameters of estimators, with ``training`` among them."""

    AUTO: ClassVar[dict[str, Any]] = {}
    """Training options whose "auto" is a fixed value of the estimator."""

    TRAINING_RULES: ClassVar[dict[str, Rule]] = {}
    """Training options for which the estimator accepts less."""

    FIXED: ClassVar[dict[str, Any]] = {}
    """Values of parameters that other estimators have and this one has not."""

    training: TrainingOptions | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` also the training options, as ``training__epochs``.

        Examples
        --------
        >>> from crisptree import CrispTreeClassifier
        >>> CrispTreeClassifier(max_depth=3).get_params()["training__epochs"]
        20
        """
        values: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        if deep and isinstance(self.training, TrainingOptions | None):
            options = self.training or TrainingOptions()
            values |= {f"training__{name}": value for name, value in options.get_params().items()}
        return values

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; those of ``training`` as ``training__epochs=5``.

        Examples
        --------
        >>> from crisptree import CrispTreeClassifier
        >>> CrispTreeClassifier().set_params(max_depth=3, training__epochs=5)
        CrispTreeClassifier(max_depth=3, training=TrainingOptions(epochs=5))
        """
        nested = {name: value for name, value in params.items() if name.startswith("training__")}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})  # type: ignore[misc]
        if nested:
            options = self.training or TrainingOptions()
            changes = {name.removeprefix("training__"): value for name, value in nested.items()}
            unknown = changes.keys() - options.PARAMETERS.keys()
            if unknown:
                raise ValueError(
                    f"TrainingOptions has no option {min(unknown)!r}; it has {', '.join(options.PARAMETERS)}."
                )
            self.training = options.replace(**changes)
        return self

    @classmethod
    def _describe_unknown(cls, name: str) -> str:
        known = describe_unknown(cls.__name__, name, set(cls.PARAMETERS), set(TrainingOptions.PARAMETERS))
        return known or super()._describe_unknown(name)

    @classmethod
    def declared_parameters(cls) -> dict[str, Parameter]:
        """Return the declarations of all parameters, those of ``training`` among them."""
        own = {name: one for name, one in cls.PARAMETERS.items() if name != "training"}
        rules = cls.TRAINING_RULES
        options = {
            name: replace(one, rule=rules[name]) if name in rules else one
            for name, one in TrainingOptions.PARAMETERS.items()
        }
        return own | options

    def flat_parameters(self) -> dict[str, Any]:
        """Return the values of all parameters, those of ``training`` among them, by their own names."""
        values: dict[str, Any] = self.get_params(deep=False)
        training = values.pop("training")
        if not isinstance(training, TrainingOptions | None):
            raise ValueError(f"`training` must be a TrainingOptions or None; got {training!r}.")
        values |= (training or TrainingOptions()).get_params()
        return values

    def training_parameters(self) -> dict[str, Any]:
        """Return ``flat_parameters`` with what the estimator fixes in place."""
        values = self.flat_parameters() | self.FIXED
        if values["optimizer"] == "auto" and sets_adam_options(values):
            values["optimizer"] = "adam"
        for name, value in self.AUTO.items():
            if isinstance(values[name], str) and values[name] == "auto":
                values[name] = value
        return values

    @classmethod
    def from_flat(cls, **values: Any) -> Self:
        """Make an estimator of parameters and training options by their own names, as model files have them."""
        return cls(**nest_parameters(values))


def sets_adam_options(values: Mapping[str, Any]) -> bool:
    """Return True if an option of Adam's schedule differs from its default; no finetuning at all is none of them."""
    defaults = {name: TrainingOptions.PARAMETERS[name].default for name in ADAM_OPTIONS}
    changed = {name for name, default in defaults.items() if values[name] is not default and values[name] != default}
    return bool(changed - ({"finetune_epochs"} if values["finetune_epochs"] == 0 else set()))


def nest_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Move training options among some parameters into one ``training``."""
    own = {name: value for name, value in values.items() if name not in TrainingOptions.PARAMETERS}
    changes = {name: value for name, value in values.items() if name in TrainingOptions.PARAMETERS}
    options = (own.get("training") or TrainingOptions()).replace(**changes)
    return own if options == TrainingOptions() else own | {"training": options}
