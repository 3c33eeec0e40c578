"""Parameters of all estimators, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from crisptree.parameters.training import (
    EstimatorParameters,
    Rule,
    TrainingOptions,
    columns_or_encoder,
    declare_parameters,
    is_whole,
    number,
    one_of,
    parameter,
    redeclare,
    rows_or_fraction,
    true_or_false,
    whole,
    whole_numbers,
    word_or,
    word_or_function,
)

CLASSIFICATION_SCORINGS = ("accuracy", "balanced_accuracy", "neg_brier_score", "neg_log_loss")
REGRESSION_SCORINGS = ("r2", "neg_mean_squared_error", "neg_mean_absolute_error")
"""scikit-learn's names of metrics that are a weighted mean over rows; ``selection.evaluators`` computes them."""

MAX_STAGES = 8
MAX_TREES = 10_000


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or (is_whole(value) and value >= 0)


def _are_columns(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(map(_is_column, value))


def _is_direction(value: Any) -> bool:
    return is_whole(value) and value in (-1, 0, 1)


MONOTONIC_CST = Rule(
    lambda value: (
        value is None
        or (isinstance(value, dict) and all(map(_is_column, value)) and all(map(_is_direction, value.values())))
        or (isinstance(value, tuple | list) and len(value) > 0 and all(map(_is_direction, value)))
    ),
    'None, a dict of columns, by name or number, with 1, 0 or -1 for each, such as {"age": 1, 3: -1}, or a list with '
    "one of these numbers for every column",
)

INTERACTION_CST = Rule(
    lambda value: (
        value is None or (isinstance(value, tuple | list) and len(value) > 1 and all(map(_are_columns, value)))
    ),
    'None or a list of two or more groups of columns, by name or number, such as [["age", "height"], [3, 4]]',
)


DEPTH = whole(0, none=True, remark=" (0 gives a single leaf, None grows until leaves are pure)")


@declare_parameters
class TreeParameters(EstimatorParameters):
    """Parameters of every estimator."""

    AUTO: ClassVar[dict[str, Any]] = {"steepness_step": 0.1}

    split: str | Callable[[tuple[int, ...]], Any] = parameter(
        default="oblique",
        kind='{"oblique", "axis", "conv"} or callable',
        doc="""Kind of split function: a hyperplane, a threshold on one feature, or the paper's small
        convolutional network for images. A function ``split(input_shape)`` returns the torch module of a
        split, which maps a batch to one number per row; ``input_shape`` is (n_features,), or (channels,
        height, width) for images.""",
        rule=word_or_function("oblique", "axis", "conv"),
        flag="--split",
    )
    max_depth: int | None = parameter(
        default=8,
        kind="int or None",
        doc="""Maximum number of splits on a path. None grows until leaves are pure or their rows identical, as
        far as the other limits allow; where six stumps in a row leave one side empty, the best
        threshold on one feature takes their place (not for split modules, ``monotonic_cst``, sparse rows,
        batches and process groups). Finetuning then moves rows to other leaves. With "auto" parameters
        the fit may select a smaller depth.""",
        rule=DEPTH,
        flag="--depth",
    )
    max_leaf_nodes: int | None = parameter(
        default=None,
        kind="int or None",
        doc="Maximum number of leaves; the tree then grows best first by impurity decrease.",
        rule=whole(2, none=True),
        flag="--leaves",
    )
    min_samples_leaf: int | float = parameter(
        default=1,
        kind="int or float",
        doc="""Minimum number of rows on each side of a split, or a fraction of all rows. Rows count as rows,
        whatever their weight.""",
        rule=rows_or_fraction(1, below_one=True),
        flag="--min-samples-leaf",
    )
    min_weight_fraction_leaf: float = parameter(
        default=0.0,
        kind="float",
        doc="Minimum share of the total sample weight on each side of a split.",
        rule=number(0.0, high=0.5, closed=True),
    )
    l1: float | str = parameter(
        default=0.0,
        kind="float",
        doc="Strength of the penalty Σ|β| on scaled weights, which makes weights exactly zero.",
        rule=number(0.0),
        flag="--l1",
    )
    l2: float = parameter(
        default=0.0, kind="float", doc="Strength of the penalty Σβ² on scaled weights.", rule=number(0.0), flag="--l2"
    )
    input_noise: float | str = parameter(
        default=0.0,
        kind="float",
        doc="""Standard deviation of Gaussian noise on the scaled features, integrated out in closed form.
        Linear splits only; the steepness of a split falls with the norm of its weights.""",
        rule=number(0.0),
        flag="--input-noise",
        before=0.0,
    )
    spatial_penalty: float = parameter(
        default=0.0,
        kind="float",
        doc="""Strength of the paper's Laplacian penalty: squared differences of the weights of neighbouring
        pixels. Oblique splits on images only.""",
        rule=number(0.0),
        flag="--spatial-penalty",
    )
    ccp_alpha: float | str | None = parameter(
        default=None,
        kind='float, "auto" or None',
        doc="""Cost-complexity pruning: impurity that a leaf must save per training row, in nats or, in
        regression, as a share of the variance of y. ``cost_complexity_pruning_path`` lists the values that matter.
        "auto" takes the smallest tree within one standard error of the best one on validation rows. Without such
        rows a first tree is trained on the others, which takes twice the time.""",
        rule=word_or("auto", number(0.0, none=True)),
        flag="--ccp-alpha",
        before=None,
    )
    shrinkage: float | str = parameter(
        default=0.0,
        kind='float or "auto"',
        doc="""Hierarchical shrinkage λ of leaf values towards those of the nodes above: a node of λ rows is
        trusted by half. Routing does not change. "auto" selects it by log loss, or squared error, on
        held-out rows.""",
        rule=word_or("auto", number(0.0)),
        flag="--shrinkage",
        before=0.0,
    )
    random_state: int | np.random.RandomState | None = parameter(
        default=None, kind="int, RandomState or None", doc="Seed that makes the fit repeatable.", flag="--seed"
    )
    n_jobs: int | None = parameter(
        default=None,
        kind="int or None",
        doc="""Number of threads of fits and predictions. None is 1, or the value of a
        ``joblib.parallel_config`` context; -1 takes all available cores (CPU affinity and cgroup quota
        are respected), -2 all but one. Results are bit-identical for any number.""",
        rule=Rule(
            lambda value: value is None or (whole(-(2**31), high=2**31 - 1).holds(value) and value != 0),
            "None, or a whole number other than 0: 1 or more threads, -1 for all available cores, -2 for all but one",
        ),
        flag="--jobs",
    )
    verbose: int | None = parameter(
        default=None,
        kind="int or None",
        doc="""Show a live line of progress if 1 or more, nothing if 0. None shows it in a notebook or a terminal
        while a fit takes longer than 3 seconds.""",
        rule=Rule(
            lambda value: value is None or isinstance(value, bool) or is_whole(value),
            "None or a whole number (0 and below show nothing)",
        ),
    )
    training: TrainingOptions | None = parameter(
        default=None,
        kind="TrainingOptions or None",
        doc="""Expert options: optimiser, annealing schedule, growth limits, early stopping, device. None is
        ``TrainingOptions()``.""",
    )


AUTO_OR_STRENGTH = word_or("auto", number(0.0))
AUTO_DOC = ' "auto" selects it on held-out rows.'


@declare_parameters
class RowParameters(TreeParameters):
    """Parameters that classifiers and regressors of rows have beside them."""

    split: str | Callable[[tuple[int, ...]], Any] = parameter(
        default="auto",
        kind='{"auto", "oblique", "axis", "conv"} or callable',
        doc="""Kind of split function: a hyperplane, a threshold on one feature, or the paper's small
        convolutional network for images. "auto" compares hyperplanes and, for tables, CART's thresholds on
        held-out rows; so does "axis", with thresholds only, where other parameters are "auto". A function
        ``split(input_shape)`` returns the torch module of a split, which maps a batch to one number per row;
        ``input_shape`` is (n_features,), or (channels, height, width) with ``image_shape``.""",
        rule=word_or_function("auto", "oblique", "axis", "conv"),
        flag="--split",
    )
    max_depth: int | str | None = parameter(  # type: ignore[assignment]
        default="auto",
        kind='int, "auto" or None',
        doc="""Maximum number of splits on a path. "auto" selects it on held-out rows, and is 8 for images, sparse
        rows and tables of more than a million values. A number limits the depths that are selected
        from. None grows until leaves are pure or their rows identical, as far as the other limits
        allow; where six stumps in a row leave one side empty, the best threshold on one feature takes
        their place (not for split modules, ``monotonic_cst``, sparse rows, batches and process groups).""",
        rule=word_or("auto", DEPTH),
        flag="--depth",
    )
    l1: float | str = redeclare(
        TreeParameters,
        "l1",
        default="auto",
        kind='float or "auto"',
        doc="""Strength of the penalty Σ|β| on scaled weights, which makes weights exactly zero. Linear splits
        only. The features that a column of a table becomes are one group, penalised by √size ‖β‖.
        "auto" selects it on held-out rows.""",
        rule=AUTO_OR_STRENGTH,
    )
    input_noise: float | str = redeclare(
        TreeParameters,
        "input_noise",
        default="auto",
        kind='float or "auto"',
        doc=TreeParameters.PARAMETERS["input_noise"].doc + AUTO_DOC,
        rule=AUTO_OR_STRENGTH,
    )
    shrinkage: float | str = redeclare(TreeParameters, "shrinkage", default="auto")
    image_shape: tuple[int, ...] | None = parameter(
        default=None,
        kind="tuple of int or None",
        doc="""Shape (height, width) or (height, width, channels) of the image in a row. Images given as X
        carry their own shape.""",
        rule=Rule(
            lambda value: value is None or whole_numbers((2, 3))(value),
            "None, (height, width) or (height, width, channels)",
        ),
        flag="--image-shape",
    )
    categorical_features: Any = parameter(
        default="auto",
        kind='"auto", None, list of columns or TableEncoder',
        doc="""Encoding of an X that is not all numbers. "auto" encodes text, categories and missing values by
        a ``TableEncoder`` and leaves rows of finite numbers as they are. A list names numeric columns
        that are categories, by label or index; a ``TableEncoder`` says more, such as columns to drop.
        None accepts finite numbers only. See docs/guide/classification.md.""",
        rule=columns_or_encoder(),
        before="auto",
    )
    monotonic_cst: dict[Any, int] | Sequence[int] | None = parameter(
        default=None,
        kind="dict, list or None",
        doc="""Monotonic constraints, as in ``HistGradientBoosting``: columns, by name or index, with 1 if the
        prediction must not fall, and -1 if it must not rise with the column; or a list with 1, 0 or -1
        for every column. Needs y of two classes, whose second one has the probability in question, or
        of one output. The column's weights have one sign in all splits, and leaves are ordered. See
        docs/guide/explanations.md.""",
        rule=MONOTONIC_CST,
        before=None,
    )
    interaction_cst: Sequence[Sequence[Any]] | None = parameter(
        default=None,
        kind="list of lists or None",
        doc="""Interaction constraints: groups of columns, by name or index, of which no split combines two.
        Columns in no group go with any. Each split keeps the group with most influence and is trained
        on.""",
        rule=INTERACTION_CST,
        before=None,
    )
    max_features_per_split: int | None = parameter(
        default=None,
        kind="int or None",
        doc="""Maximum number of non-zero weights of a split. A stump is trained with all features first; the
        largest weights stay and are trained on.""",
        rule=whole(1, none=True),
        flag="--max-features-per-split",
        before=None,
    )
    leaf_model: str = parameter(
        default="auto",
        kind='{"auto", "constant", "linear", "branch_linear", "sparse_linear"}',
        doc="""Model of a leaf: class frequencies or mean of its rows, or a logistic or ridge regression. "linear" has
        all features, "branch_linear" those that the splits of the tree have; "sparse_linear", of readable trees, as
        many features as a split has, where these save a penalty. The weights of linear leaves are sums of parts along
        the path (docs/guide/regression.md). They need dense rows of at most 512 features and linear splits. "auto"
        compares "constant", "linear" and "branch_linear" on held-out rows of small tables
        where other parameters are selected, too; else leaves are constant.""",
        rule=one_of("auto", "constant", "linear", "branch_linear", "sparse_linear"),
        flag="--leaf-model",
        before="constant",
    )
    warm_start: bool = parameter(
        default=False,
        kind="bool",
        doc="""Let the next ``fit`` grow ``greedy_tree_`` further (to a larger ``max_depth``, on the same rows
        and with the scaling of the first fit) and finetune again.""",
        rule=true_or_false(),
    )


CLASS_WEIGHT = Rule(
    lambda value: value is None or isinstance(value, dict) or (isinstance(value, str) and value == "balanced"),
    "None, 'balanced' or a dict by class",
)


@declare_parameters
class LabelParameters(TreeParameters):
    """Parameters of estimators of classes."""

    class_weight: dict[Any, float] | dict[Any, int] | str | None = parameter(
        default=None,
        kind='dict, "balanced" or None',
        doc="Factors on the weights of the rows of each class.",
        rule=CLASS_WEIGHT,
        flag="--class-weight",
    )


@declare_parameters
class ClassifierParameters(RowParameters, LabelParameters):
    """Parameters of ``CrispTreeClassifier``."""

    scoring: str | None = parameter(
        default=None,
        kind="str or None",
        doc="""Metric that candidates are compared by where parameters are "auto": "accuracy", "balanced_accuracy",
        "neg_brier_score" or "neg_log_loss". None is the accuracy. Log loss decides between trees that it cannot tell
        apart.""",
        rule=one_of(None, *CLASSIFICATION_SCORINGS),
        flag="--scoring",
        before=None,
    )


@declare_parameters
class RegressorParameters(RowParameters):
    """Parameters of ``CrispTreeRegressor``."""

    scoring: str | None = parameter(
        default=None,
        kind="str or None",
        doc="""Metric that candidates are compared by where parameters are "auto": "r2", "neg_mean_squared_error" or
        "neg_mean_absolute_error", of y with variance 1. None is R².""",
        rule=one_of(None, *REGRESSION_SCORINGS),
        flag="--scoring",
        before=None,
    )


@declare_parameters
class PixelParameters(TreeParameters):
    """Parameters of estimators of pixels."""

    AUTO: ClassVar[dict[str, Any]] = {"steepness_step": 0.1, "scale": "feature"}
    TRAINING_RULES: ClassVar[dict[str, Rule]] = {
        "grow": one_of("greedy", "balanced"),
        "optimizer": one_of("auto", "adam"),
        "n_init": Rule(lambda value: value in ("auto", 1), "'auto' or 1 for pixels"),
        "max_shift": Rule(lambda value: is_whole(value) and value == 0, "0 for pixels, whose windows overlap"),
        **dict.fromkeys(("time_budget", "max_candidates"), Rule(lambda value: value is None, "None for pixels")),
        "round_splits": Rule(lambda value: value is False, "False for pixels"),
    }

    window: int = parameter(
        default=31,
        kind="int",
        doc="Side of the window around a pixel, odd.",
        rule=Rule(
            lambda value: whole(1).holds(value) and value % 2 == 1,
            "an odd whole number of at least 1, so that a pixel stands in its middle",
        ),
        flag="--window",
    )
    scales: tuple[int, ...] = parameter(
        default=(1,),
        kind="tuple of int",
        doc="""Spacings of the samples of a window: at scale s every s pixels, on the image smoothed by a
        Gaussian of standard deviation s / 2. ``window=31, scales=(1, 4)`` sees 31 pixels finely and 121
        coarsely.""",
        rule=Rule(
            whole_numbers(different=True), "a tuple of different whole numbers of at least 1, such as (1,) or (1, 4)"
        ),
        flag="--scales",
    )
    normalise_images: bool = parameter(
        default=False,
        kind="bool",
        doc="""Standardise every image by its own mean and standard deviation, channel by channel. For images
        whose brightness or contrast differs without a meaning.""",
        rule=true_or_false(),
        flag="--normalise",
        before=False,
    )
    stages: int = parameter(
        default=1,
        kind="int",
        doc="""Number of trees in sequence. Each later one also sees the prediction of the one before for every
        pixel.""",
        rule=whole(1, high=MAX_STAGES),
        flag="--stages",
    )
    pixels_per_epoch: int | None = parameter(
        default=100_000,
        kind="int or None",
        doc="""Number of pixels in an epoch, a fresh sample of every node's own each time. None takes all. A
        small node gives at least a batch and what ``min_updates`` demands.""",
        rule=whole(1, none=True, remark=" (None shows all of them)"),
        flag="--pixels-per-epoch",
    )


@declare_parameters
class SegmenterParameters(PixelParameters, LabelParameters):
    """Parameters of ``CrispSegmenter``."""

    ignore_label: Any = parameter(
        default=None,
        kind="scalar or None",
        doc="Label of pixels without a label, which may be NaN.",
        flag="--ignore-label",
    )


@declare_parameters
class PixelRegressorParameters(PixelParameters):
    """Parameters of ``CrispPixelRegressor``."""

    ignore_value: float | None = parameter(
        default=None,
        kind="float or None",
        doc="Value of pixels without a target, which may be NaN.",
        rule=Rule(
            lambda value: value is None or (isinstance(value, Real) and not isinstance(value, bool)),
            "None or a number, that of pixels which have none",
        ),
    )


PAPER: dict[str, Any] = {
    "split": "oblique",
    "algorithm": "em",
    "optimizer": "adam",
    "n_init": 1,
    "leaf_model": "constant",
    "grow": "greedy",
    "max_depth": 8,
    "epochs": 50,
    "finetune_epochs": 50,
    "min_updates": 0,
    "learning_rate": 0.001,
    "learning_rate_decay": "none",
    "batch_size": 1000,
    "steepness": 1.0,
    "steepness_step": 0.1,
    "annealing": "linear",
    "finetune_steepness": "restart",
    "l1": 0.0,
    "l2": 0.0,
    "leaf_prior": 0.0,
    "spatial_penalty": 0.0,
    "penalty_share": "none",
    "input_noise": 0.0,
    "upper_levels": None,
    "max_shift": 0,
    "ccp_alpha": None,
    "shrinkage": 0.0,
    "scale": "feature",
}
"""The protocol of the paper's section 4.1, and the one λ of equation 15 where a spatial penalty is set."""

PAPER_EPOCHS = (20, 35, 50, 65)
"""The epochs that section 4.1 compares on validation rows."""

PAPER_PIXELS: dict[str, Any] = {name: value for name, value in PAPER.items() if name != "leaf_model"} | {
    "window": 31,
    "scales": (1,),
    "normalise_images": False,
    "stages": 1,
    "pixels_per_epoch": None,
    "epochs": 40,
    "finetune_epochs": 0,
}
"""The protocol of section 4.3: a greedy tree of depth 8, 40 epochs of all pixels for every split."""

READABLE: dict[str, Any] = {
    "max_features_per_split": 3,
    "max_leaf_nodes": 8,
    "leaf_model": "sparse_linear",
    "round_splits": True,
}
"""Limits of a tree that people read; docs/decisions/2026-11-18-readable-trees.md has the reasons."""

SHARE_RULE = Rule(
    lambda value: value is None or whole(1).holds(value) or (number(0.0, strict=True).holds(value) and value <= 1.0),
    "None, a whole number of at least 1 or a share above 0 and up to 1",
)


SHARE_OR_PATCH = Rule(
    lambda value: SHARE_RULE.holds(value) or whole_numbers((2,))(value),
    f"{SHARE_RULE.sentence}, or the (height, width) of a patch of the image",
)


@declare_parameters
class BaggingParameters(TreeParameters):
    """Parameters of forests."""

    n_estimators: int = parameter(
        default=25,
        kind="int",
        doc="Number of trees.",
        rule=whole(1, high=MAX_TREES),
        flag="--trees",
    )
    max_samples: int | float | None = parameter(
        default=None,
        kind="int, float or None",
        doc="""Number of rows drawn for each tree, or their share. None draws as many as there are, but four
        fifths of images where ``bootstrap`` is "auto".""",
        rule=SHARE_RULE,
        flag="--max-samples",
    )
    max_features: int | float | str | tuple[int, int] | None = parameter(
        default="auto",
        kind='int, float, (height, width), "sqrt", "log2", "auto" or None',
        doc="""Number of features drawn for each split, or their share. None takes all. "auto" takes all for
        hyperplanes and the square root of their number for CART's thresholds, unless the fit selects
        otherwise. Split modules and growth other than "greedy" and "cart" take all. Of images,
        (height, width) takes the pixels of such a patch, at a random place for each split;
        ``split="oblique"`` only.""",
        rule=word_or("auto", word_or("sqrt", word_or("log2", SHARE_OR_PATCH))),
        flag="--max-features",
    )
    max_depth: Any = parameter(
        default="auto",
        kind='int, "auto" or None',
        doc="""Maximum number of splits on a path. "auto" is 14 for hyperplanes, 8 in regression, and None for
        thresholds.""",
        rule=word_or("auto", DEPTH),
        flag="--depth",
    )
    warm_start: bool = parameter(
        default=False,
        kind="bool",
        doc="Let the next ``fit`` on the same rows add trees, up to ``n_estimators``.",
        rule=true_or_false(),
    )


BOOTSTRAP_DOC = """Draw rows with replacement. False draws them without, and takes all without ``max_samples``.
        "auto" is True, but False with four fifths of the rows for images without ``max_samples``. Rows
        are weighted, not copied."""

UNPRUNED = {"ccp_alpha": None, "shrinkage": 0.0, "max_features_per_split": None, "spatial_penalty": 0.0}
"""The mean of many trees is regularised already, and nobody reads the splits of many."""


@declare_parameters
class ForestClassifierParameters(BaggingParameters, ClassifierParameters):
    """Parameters of ``CrispForestClassifier``."""

    FIXED: ClassVar[dict[str, Any]] = UNPRUNED

    class_weight: dict[Any, float] | dict[Any, int] | str | None = redeclare(
        LabelParameters,
        "class_weight",
        default=None,
        kind='dict, "balanced", "balanced_subsample" or None',
        doc="""Factors on the weights of the rows of each class. "balanced_subsample" balances the classes of the rows
        that each tree draws.""",
        rule=word_or("balanced_subsample", CLASS_WEIGHT),
    )
    bootstrap: bool | str = parameter(
        default="auto",
        kind='bool, "balanced" or "auto"',
        doc=BOOTSTRAP_DOC + ' "balanced" draws as many rows of every class.',
        rule=word_or("auto", word_or("balanced", true_or_false())),
    )


@declare_parameters
class ForestRegressorParameters(BaggingParameters, RegressorParameters):
    """Parameters of ``CrispForestRegressor``."""

    FIXED: ClassVar[dict[str, Any]] = UNPRUNED

    bootstrap: bool | str = parameter(
        default="auto", kind='bool or "auto"', doc=BOOTSTRAP_DOC, rule=word_or("auto", true_or_false())
    )


ARGUMENTS: dict[str, Rule | None] = {
    **{name: declared.rule for name, declared in ClassifierParameters.declared_parameters().items()},
    "alpha": number(0.0),
    "depth": whole(0),
    "coverage": Rule(
        lambda value: number(0.0, strict=True).holds(value) and value < 1, "a number between 0 and 1, neither of them"
    ),
    "points": number(0.0),
    "copies": word_or("auto", whole(0)),
    "decay": number(0.0),
    "resume": true_or_false(),
    "noise": number(0.0),
    "labels": one_of("hard", "sample", "soft"),
    "trust": Rule(
        lambda value: value is None or (number(0.0).holds(value) and value <= 1), "a number from 0 to 1 or None"
    ),
}
"""Rules of arguments of methods, which may have the name of a parameter."""


def check_argument(name: str, value: Any) -> None:
    """Check an argument of a method by its rule."""
    rule = ARGUMENTS[name]
    assert rule is not None
    rule.check(name, value)
