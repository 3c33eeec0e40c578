"""Messages name flags, and terminals get no control sequences."""

import json
import os
import pickle
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from crisptree import export, plots
from crisptree.cli.output import with_flags
from crisptree.exceptions import TableError
from crisptree.sanitization import sanitize
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import text
from tests.toys import clouds, plain_tree

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
HOSTILE = ("\x1b[31mred", "\x9b2Jc1", "turned\u202eround", "nul\x00del\x7f")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model and a table whose classes, columns and categories are escape sequences."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    lines = [f"{ESCAPE}a,b{ESCAPE},class"]
    for _ in range(80):
        x, kind = rng.normal(), rng.integers(2)
        lines.append(f"{x:.3f},{ESCAPE if kind else 'plain'},{HOSTILE[1] if x + kind > 0.5 else HOSTILE[0]}")
    table = text(folder / "table.csv", *lines)
    model = folder / f"{ESCAPE}.crisp"
    done("fit", table, "--target", "class", "-o", model, *QUICK)
    return table, model


def sends_nothing(said):
    return not any(character in said for character in "\x1b\x9b\x07\x00\x7f\u202e")


@pytest.mark.parametrize(
    "command", ["inspect", "evaluate", "evaluate --json", "inspect --json", "report", "plot", "missing"]
)
def test_escape_sequences_are_shown_and_not_sent(hostile, tmp_path, command):
    table, model = hostile
    name, *more = command.split()
    arguments = {
        "inspect": [model],
        "evaluate": [model, table],
        "report": [model, table, "-o", tmp_path / f"{ESCAPE}.html"],
        "plot": [model, "-o", tmp_path / f"{ESCAPE}.svg"],
        "missing": [tmp_path / f"{ESCAPE}.crisp"],
    }[name]
    result = run("inspect" if name == "missing" else name, *arguments, *more)
    assert result.exit_code == (1 if name == "missing" else 0), result.text
    assert sends_nothing(result.stdout + result.stderr)
    if more:
        assert HOSTILE[1] in json.dumps(json.loads(result.stdout), ensure_ascii=False), "and JSON says the same"


def test_a_terminal_is_shown_what_a_pipe_gets_as_it_is(hostile):
    pty = pytest.importorskip("pty", reason="Windows has no such terminals")
    table, model = hostile
    command = [sys.executable, "-m", "crisptree", "predict", str(model), str(table)]
    assert "\x9b" in done("predict", model, table).stdout
    terminal, end = pty.openpty()
    with subprocess.Popen(command, stdout=end, stderr=subprocess.DEVNULL):
        os.close(end)
        said = b""
        try:
            while piece := os.read(terminal, 2**16):
                said += piece
        except OSError:  # how a terminal ends on Linux
            pass
    os.close(terminal)
    assert "\x9b".encode() not in said
    assert b"\x1b" not in said
    assert rb"\x9b2Jc1" in said


def test_drawings_of_strange_names_are_valid_and_the_same_each_time(hostile, tmp_path):
    for name in ("one.svg", "two.svg"):
        done("plot", hostile[1], "-o", tmp_path / name)
    assert ElementTree.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_text_and_dot_of_strange_names_send_nothing():
    X, y = clouds(60, n_classes=3)
    model = plain_tree(max_depth=2, epochs=1, finetune_epochs=0, random_state=0).fit(X, np.array(HOSTILE[:3])[y])
    names = [f"x{ESCAPE}{number}\ud800\ufffe" for number in range(5)]
    for said in (export.text(model, names), export.dot(model, names)):
        assert sends_nothing(said)
        said.encode("utf-8")
    figure = plots.plot_tree(model, feature_names=names).figure
    assert all(sends_nothing(drawn.get_text()) for drawn in figure.findobj(lambda artist: hasattr(artist, "get_text")))


def test_other_languages_and_signs_stay_as_they_are():
    for plain in ("Grün, größer", "日本語", "👩\u200d🔬", "a\tb\nc", "−1\u00a0m²"):
        assert sanitize(plain) == plain


@pytest.mark.parametrize(
    ("remedy", "flag"),
    [
        ("drop=['id']", "--drop id"),
        ("drop=['the id']", "--drop 'the id'"),
        (f"drop={['a`b']}", "--drop 'a`b'"),
        (f"drop={['it is *', 'x'][:1]}", "--drop 'it is *'"),
        (f"""drop={["the owner's"]}""", """--drop 'the owner'"'"'s'"""),
        ("max_categories=1000", "--max-categories 1000"),
        (r"delimiter='\t'", r"--delimiter '\t'"),
        ("drop=['id', 'the date']", "--drop 'id,the date'"),
        ("drop=['a,b', 'c']", "--drop a,b --drop c"),
        ("decimal=','", "--decimal ','"),
        ("unit=['%']", "--unit '%'"),
    ],
)
def test_a_remedy_is_a_parameter_in_the_library_and_a_flag_in_the_shell(remedy, flag):
    assert with_flags(f"say `{remedy}`, or `{remedy}`.") == f"say {flag}, or {flag}."


def test_other_messages_stay_as_they_are():
    for message in ("drop=['id']", "a note", "`drop`", "`drop=id`", "`a=b` and `drop=['id'`"):
        assert with_flags(message) == message


def test_an_error_keeps_its_remedies_from_another_process():
    error = pickle.loads(pickle.dumps(TableError("say `drop=['id']`.")))
    assert with_flags(str(error)) == "say --drop id."
