"""Every parameter of the estimators, declared once: its default, its rule, its name on the command line, since when.

Parameters are annotated class attributes, ``epochs: int = parameter(default=20)``. ``declare_parameters`` gives their
class the ``__init__`` that scikit-learn asks for, and an estimator inherits it. Only NumPy is imported here: the
command line reads the flags from this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import Signature
from numbers import Real
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from crisptree.estimators.constraints import APART, SIGNS
from crisptree.estimators.rules import (
    Rule,
    columns_or_encoder,
    is_whole,
    number,
    one_of,
    rows_or_fraction,
    split_rule,
    true_or_false,
    whole,
    whole_numbers,
    word_or,
)

RIVALS = ("axis_aligned", "random", "oc1", "co2")
NUMBER_RIVALS = ("axis_aligned", "random", "oc1")
"""Those that can do with numbers: CO2 bounds a loss of classes."""

MOST_STAGES = 8
DeclaredT = TypeVar("DeclaredT", bound="Declared")
NEVER = object()
"""There was no time without the parameter."""


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Parameters
    ----------
    default : object
        What it is where nobody says.
    rule : Rule or None
        What it must be; None where that takes more than its value to tell.
    flag : str or None
        Its name on the command line, for those that have one.
    help : str
        A sentence for the command line.
    since : str
        The first version with it.
    before : object
        What a model file that does not name it was trained with; ``NEVER`` for the parameters of the first version.
    """

    default: Any
    rule: Rule | None
    flag: str | None
    help: str
    since: str
    before: Any


def parameter(
    *,
    default: Any,
    rule: Rule | None = None,
    flag: str | None = None,
    help: str = "",
    since: str = "0.1",
    before: Any = NEVER,
) -> Any:
    """Declare a parameter; see ``Parameter``. Type checkers look for a ``default`` by that name."""
    return Parameter(default, rule, flag, help, since, before)


class Declared:
    """Base of classes whose parameters are declared as class attributes."""

    PARAMETERS: ClassVar[dict[str, Parameter]] = {}


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def declare_parameters(cls: type[DeclaredT]) -> type[DeclaredT]:
    """Collect the parameters that a class and its bases declare, and make an ``__init__`` that takes them.

    Only classes of nothing but parameters are decorated. Type checkers take every annotation of a decorated class for
    an argument of ``__init__``, so an estimator inherits from one, undecorated, and may annotate its fitted attributes.
    """
    own = {name: value for name, value in cls.__dict__.items() if isinstance(value, Parameter)}
    cls.PARAMETERS = {name: value for base in cls.__mro__[:0:-1] for name, value in _of(base).items()} | own
    for name in own:
        delattr(cls, name)
    cls.__init__ = _init_of(cls)  # type: ignore[method-assign]
    return cls


def _of(base: type) -> dict[str, Parameter]:
    found: dict[str, Parameter] = base.__dict__.get("PARAMETERS", {})
    return found


def _init_of(cls: type[Declared]) -> Callable[..., None]:
    """An ``__init__`` that stores every parameter, with a signature for people and for scikit-learn."""
    declared = cls.PARAMETERS

    def __init__(self: Any, **given: Any) -> None:
        unknown = given.keys() - declared.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__}() has no parameter {min(unknown)!r}; it has {', '.join(declared)}.")
        for name, parameter in declared.items():
            setattr(self, name, given.get(name, parameter.default))

    arguments = [Argument(name, Argument.KEYWORD_ONLY, default=declared[name].default) for name in declared]
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [Argument("self", Argument.POSITIONAL_OR_KEYWORD), *arguments]
    )
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


@declare_parameters
class TreeParameters(Declared):
    """The parameters that every estimator of trees has; ``CrispTreeClassifier`` says what each of them does."""

    split: str | Callable[[tuple[int, ...]], Any] = parameter(
        default="oblique", rule=split_rule("oblique", "axis", "conv"), flag="--split", help="What a split asks."
    )
    algorithm: str = parameter(
        default="likelihood", rule=one_of("em", "alternating", "likelihood"), flag="--algorithm", help="How to train."
    )
    grow: str = parameter(default="greedy", rule=one_of("greedy", "balanced"))
    max_depth: int | None = parameter(
        default=8,
        rule=whole(0, none=True, remark=" (0 gives a single leaf, None grows until leaves are pure)"),
        flag="--depth",
        help="Most splits on a path.",
    )
    max_leaf_nodes: int | None = parameter(
        default=None, rule=whole(2, none=True), flag="--leaves", help="Most leaves; the tree then grows best first."
    )
    min_samples_split: int | float = parameter(
        default=2,
        rule=rows_or_fraction(2),
        flag="--min-samples-split",
        help="Rows that a node needs to be split, or a fraction of all rows.",
    )
    min_samples_leaf: int | float = parameter(
        default=1,
        rule=rows_or_fraction(1, below_one=True),
        flag="--min-samples-leaf",
        help="Rows that each side of a split must keep, or a fraction of all rows.",
    )
    min_weight_fraction_leaf: float = parameter(default=0.0, rule=number(0.0, high=0.5))
    min_impurity_decrease: float = parameter(default=0.0, rule=number(0.0))
    epochs: int = parameter(default=20, rule=whole(1), flag="--epochs", help="Epochs of every split.")
    finetune_epochs: int = parameter(
        default=40,
        rule=whole(0, remark=" (0 keeps the greedy tree)"),
        flag="--finetune-epochs",
        help="Epochs of the tree.",
    )
    min_updates: int = parameter(default=200, rule=whole(0, remark=" (0 counts epochs alone)"))
    learning_rate: float | str = parameter(default="auto", rule=word_or("auto", number(0.0, strict=True)))
    learning_rate_decay: str = parameter(default="linear", rule=one_of("none", "linear", "cosine"), before="none")
    batch_size: int = parameter(default=256, rule=whole(1))
    steepness: float = parameter(default=1.0, rule=number(0.0, strict=True))
    steepness_step: float = parameter(default=0.1, rule=number(0.0))
    annealing: str = parameter(default="linear", rule=one_of("linear", "geometric"))
    finetune_steepness: float | str = parameter(
        default="restart",
        rule=word_or("restart", word_or("continue", number(0.0, strict=True))),
        flag="--finetune-steepness",
        help="γ at which finetuning starts: a number, restart, or continue from growth.",
        before="restart",
    )
    l1: float | str = parameter(default=0.0, rule=number(0.0), flag="--l1", help="Strength of Σ|β|: zeros.")
    l2: float | str = parameter(default=0.0, rule=number(0.0), flag="--l2", help="Strength of Σβ².")
    leaf_prior: float = parameter(default=0.0, rule=number(0.0))
    roughness: float = parameter(
        default=0.0, rule=number(0.0), flag="--roughness", help="Strength of differences of neighbouring pixels."
    )
    penalty_share: str = parameter(default="rows", rule=one_of("rows", "none"), before="rows")
    input_noise: float | str = parameter(
        default=0.0,
        rule=number(0.0),
        flag="--input-noise",
        help="Width of noise on the scaled inputs, integrated out.",
        before=0.0,
    )
    mass_threshold: float = parameter(default=1e-3, rule=number(0.0, high=1.0))
    upper_levels: int | None = parameter(
        default=4,
        rule=whole(1, high=10, none=True),
        flag="--upper-levels",
        help="Levels of a tree of many splits, few rows to each, that are finetuned first.",
        before=None,
    )
    scale: str | None = parameter(default="feature", rule=one_of("feature", "global", None))
    prune: float | str | None = parameter(
        default=None,
        rule=word_or("auto", number(0.0, none=True)),
        flag="--prune",
        help="What a leaf must gain, in nats per row; auto lets held-out rows choose.",
        before=None,
    )
    shrinkage: float | str = parameter(
        default=0.0,
        rule=word_or("auto", number(0.0)),
        flag="--shrinkage",
        help="How strongly leaf tables are drawn to those above; auto lets held-out rows choose.",
        before=0.0,
    )
    validation_fraction: float = parameter(default=0.1, rule=number(0.0, strict=True, high=1.0))
    early_stopping: bool = parameter(
        default=False,
        rule=true_or_false(),
        flag="--early-stopping",
        help="Stop finetuning when the validation score no longer improves, and keep the best epoch; without "
        "validation rows a tenth of the rows or images is held out.",
    )
    n_iter_no_change: int = parameter(
        default=10,
        rule=whole(1),
        flag="--n-iter-no-change",
        help="Epochs without a better validation score after which --early-stopping ends finetuning.",
        before=10,
    )
    random_state: int | np.random.RandomState | None = parameter(
        default=None, flag="--seed", help="Makes the run repeatable."
    )
    device: str = parameter(default="auto", flag="--device", help="cpu, cuda or auto.")
    n_jobs: int | None = parameter(
        default=None,
        rule=Rule(
            lambda value: value is None or (whole(-(2**31), high=2**31 - 1).holds(value) and value != 0),
            "None, or a whole number other than 0: 1 or more threads, -1 for all available cores, -2 for all but one",
        ),
        flag="--jobs",
        help="Threads; by default all available cores, -2 is all but one.",
    )
    verbose: int = parameter(
        default=0,
        rule=Rule(
            lambda value: isinstance(value, bool) or is_whole(value), "a whole number (0 and below show nothing)"
        ),
    )
    callbacks: Sequence[Callable[..., object]] | None = parameter(
        default=None,
        rule=Rule(
            lambda value: value is None or (isinstance(value, list | tuple) and all(map(callable, value))),
            "None or a list of functions that take a record of an epoch",
        ),
    )


@declare_parameters
class RowParameters(TreeParameters):
    """What classifier and regressor have beside them."""

    split: str | Callable[[tuple[int, ...]], Any] = parameter(
        default="auto", rule=split_rule("auto", "oblique", "axis", "conv"), flag="--split", help="What a split asks."
    )
    l1: float | str = parameter(
        default="auto", rule=word_or("auto", number(0.0)), flag="--l1", help="Strength of Σ|β|: zeros."
    )
    l2: float | str = parameter(default=0.0, rule=word_or("auto", number(0.0)), flag="--l2", help="Strength of Σβ².")
    input_noise: float | str = parameter(
        default="auto",
        rule=word_or("auto", number(0.0)),
        flag="--input-noise",
        help="Width of noise on the scaled inputs, integrated out.",
        before=0.0,
    )
    shrinkage: float | str = parameter(
        default="auto",
        rule=word_or("auto", number(0.0)),
        flag="--shrinkage",
        help="How strongly leaf tables are drawn to those above; auto lets held-out rows choose.",
        before=0.0,
    )
    scale: str | None = parameter(default="auto", rule=one_of("auto", "feature", "global", None))
    image_shape: tuple[int, ...] | None = parameter(
        default=None,
        rule=Rule(
            lambda value: value is None or whole_numbers((2, 3))(value),
            "None, (height, width) or (height, width, channels)",
        ),
        flag="--image-shape",
        help="Rows are images.",
    )
    shifts: int = parameter(
        default=0,
        rule=whole(0, remark=" (0 leaves images where they are)"),
        flag="--shifts",
        help="Most pixels that images are shifted while they train.",
        before=0,
    )
    categorical: Any = parameter(default="auto", rule=columns_or_encoder(), before="auto")
    signs: dict[Any, int] | None = parameter(default=None, rule=SIGNS, before=None)
    max_features_per_split: int | None = parameter(
        default=None,
        rule=whole(1, none=True),
        flag="--max-features-per-split",
        help="Most weights of a split that are not zero.",
        before=None,
    )
    apart: Sequence[Sequence[Any]] | None = parameter(default=None, rule=APART, before=None)
    leaves: str = parameter(
        default="constant",
        rule=one_of("constant", "linear"),
        flag="--leaf-models",
        help="Whether a leaf has one answer, or a linear model.",
        before="constant",
    )
    leaf_penalty: float | str = parameter(
        default="auto",
        rule=word_or("auto", number(0.0, strict=True)),
        flag="--leaf-penalty",
        help="How strongly a leaf's linear model is drawn to that above it; auto lets held-out rows choose.",
        before="auto",
    )
    warm_start: bool = parameter(default=False, rule=true_or_false())


@declare_parameters
class LabelParameters(TreeParameters):
    """What estimators of classes have beside them."""

    class_weight: dict[Any, float] | dict[Any, int] | str | None = parameter(
        default=None, flag="--class-weight", help="balanced, or CLASS=WEIGHT, which may be repeated."
    )


@declare_parameters
class ClassifierParameters(RowParameters, LabelParameters):
    """Those of ``CrispTreeClassifier``."""

    algorithm: str = parameter(
        default="likelihood",
        rule=one_of("em", "alternating", "likelihood", "non_greedy"),
        flag="--algorithm",
        help="How to train.",
    )
    grow: str = parameter(default="greedy", rule=one_of("greedy", "balanced", *RIVALS))
    nu: float | None = parameter(default=None, rule=number(0.0, strict=True, none=True))


@declare_parameters
class RegressorParameters(RowParameters):
    """Those of ``CrispTreeRegressor``."""

    steepness_step: float | str = parameter(  # type: ignore[assignment]
        default="auto", rule=word_or("auto", number(0.0))
    )
    grow: str = parameter(default="greedy", rule=one_of("greedy", "balanced", *NUMBER_RIVALS))


@declare_parameters
class PixelParameters(TreeParameters):
    """What estimators that answer for every pixel of an image have beside them."""

    window: int = parameter(
        default=31,
        rule=Rule(
            lambda value: whole(1).holds(value) and value % 2 == 1,
            "an odd whole number of at least 1, so that a pixel stands in its middle",
        ),
        flag="--window",
        help="Pixels along a side of the window, odd.",
    )
    scales: tuple[int, ...] = parameter(
        default=(1,),
        rule=Rule(
            whole_numbers(different=True), "a tuple of different whole numbers of at least 1, such as (1,) or (1, 4)"
        ),
        flag="--scales",
        help="How far apart a window's samples lie, such as 1,4.",
    )
    normalise_images: bool = parameter(
        default=False,
        rule=true_or_false(),
        flag="--normalise",
        help="Take every image by its own mean and spread.",
        before=False,
    )
    stages: int = parameter(
        default=1, rule=whole(1, high=MOST_STAGES), flag="--stages", help="Trees that follow each other."
    )
    pixels_per_epoch: int | None = parameter(
        default=300_000,
        rule=whole(1, none=True, remark=" (None shows all of them)"),
        flag="--pixels-per-epoch",
        help="Pixels that an epoch goes through.",
    )


@declare_parameters
class SegmenterParameters(PixelParameters, LabelParameters):
    """Those of ``CrispSegmenter``."""

    ignore_label: Any = parameter(default=None, flag="--ignore-label", help="The value of pixels without a label.")


@declare_parameters
class PixelRegressorParameters(PixelParameters):
    """Those of ``CrispPixelRegressor``."""

    ignore_value: float | None = parameter(
        default=None,
        rule=Rule(
            lambda value: value is None or (isinstance(value, Real) and not isinstance(value, bool)),
            "None or a number, that of pixels which have none",
        ),
    )
