"""Flags made from the table of parameters."""

import json

import pytest
import typer
from typer.testing import CliRunner

from crisptree.cli.options import HELP, parameter_options, with_options
from crisptree.parameters.estimators import (
    ClassifierParameters,
    ForestClassifierParameters,
    SegmenterParameters,
    TreeParameters,
)
from crisptree.parameters.training import declare_parameters, number, one_of, parameter, true_or_false, whole, word_or
from tests.cli.running import done


@declare_parameters
class Toy(TreeParameters):
    """Parameters of every kind; nothing but this makes them options."""

    tempo: float = parameter(default=0.5, rule=number(0.0), flag="--tempo", doc="How fast.")
    size: int | None = parameter(default=3, rule=whole(1, none=True), flag="--size", doc="How large.")
    rate: float | str = parameter(default="auto", rule=word_or("auto", number(0.0)), flag="--rate", doc="How much.")
    colour: str = parameter(default="red", rule=one_of("red", "blue", None), flag="--colour", doc="Which.")
    loud: bool = parameter(default=False, rule=true_or_false(), flag="--loud", doc="Whether.")
    quiet: bool = parameter(default=True, rule=true_or_false(), flag="--not-quiet", doc="Whether not.")
    places: tuple[int, ...] = parameter(default=(1, 2), flag="--places", doc="Where.")
    hidden: int = parameter(default=1)


SEED = {"random_state": 0}
"""Commands are repeatable."""


def run(*arguments, command=None):
    app = typer.Typer()

    @app.command()
    @with_options(Toy)
    def toy(name: str, *, parameters: dict, again: bool = False):
        typer.echo(json.dumps([name, parameters, again]))
        if command:
            command()

    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_a_parameter_with_a_flag_is_an_option_with_its_help_choices_and_default():
    said = run("--help").output
    for words in ("--tempo", "How fast.", "(0.5)", "<int|none>", "<float|str>", "red|blue", "(1,2)"):
        assert words in said
    assert "hidden" not in said


def test_a_command_gets_what_was_given_and_nothing_else():
    assert json.loads(run("x").output) == ["x", SEED, False]
    given = ("--tempo", "2", "--size", "none", "--rate", "auto", "--colour", "blue", "--loud", "--not-quiet")
    expected = {"tempo": 2.0, "size": None, "rate": "auto", "colour": "blue", "loud": True, "quiet": False}
    assert json.loads(run("x", *given, "--places", "3x4", "--again").output) == [
        "x",
        SEED | expected | {"places": [3, 4]},
        True,
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tempo", "-1"), "--tempo must be a number at least 0 and below 1e+30; got -1.0."),
        (("--size", "0"), "--size must be a whole number of at least 1 or None; got 0."),
        (("--size", "many"), "--size must be a whole number of at least 1 or None; got 'many'."),
        (("--rate", "high"), "--rate must be 'auto' or a number at least 0 and below 1e+30; got 'high'."),
        (("--colour", "green"), "'--colour'"),
    ],
)
def test_a_wrong_value_names_the_rule_and_the_flag(arguments, said):
    result = run("x", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_errors_of_the_library_name_the_flag_of_a_parameter_that_has_one():
    def fails():
        raise ValueError("`tempo` must be lower for `hidden` and `other`.")

    assert str(run("x", command=fails).exception) == "--tempo must be lower for `hidden` and `other`."


@pytest.mark.parametrize(
    ("estimator", "command", "without"),
    [
        (ClassifierParameters, ["fit"], ()),
        (
            SegmenterParameters,
            ["segment", "fit"],
            ("class_weight", "leaf_l2", "max_shift", "optimizer", "n_init", "time_budget", "max_candidates"),
        ),
    ],
)
def test_commands_have_every_flag_that_is_declared(estimator, command, without):
    said = done(*command, "--help").text
    flags = {declared.flag: declared for declared in estimator.declared_parameters().values() if declared.flag}
    for name, option in parameter_options(estimator, without).items():
        assert f"{option.declared.flag} " in said
        assert HELP.get(name, option.declared.help) in said
        assert flags.pop(option.declared.flag).flag == estimator.declared_parameters()[name].flag
    assert set(flags) == {estimator.declared_parameters()[name].flag for name in without}


@pytest.mark.parametrize(
    ("name", "flag", "text", "value"),
    [
        ("min_samples_split", "--min-samples-split", "7", 7),
        ("min_samples_leaf", "--min-samples-leaf", "0.25", 0.25),
        ("n_iter_no_change", "--n-iter-no-change", "3", 3),
    ],
)
def test_limits_and_patience_are_flags(name, flag, text, value):
    option = parameter_options(ClassifierParameters)[name]
    assert option.declared.flag == flag
    found = option.parse(text)
    assert (found, type(found)) == (value, type(value))
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        option.parse("-1")


@pytest.mark.parametrize(
    ("text", "value"), [("4x3", (4, 3)), ("sqrt", "sqrt"), ("0.5", 0.5), ("3", 3), ("none", None)], ids=str
)
def test_features_of_a_split_are_a_number_a_share_a_word_or_a_patch(text, value):
    assert parameter_options(ForestClassifierParameters)["max_features"].parse(text) == value
