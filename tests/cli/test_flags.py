import pickle

import pytest

from crisptree.cli.output import with_flags
from crisptree.encoding.errors import TableError


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
        ("unverified=True", "--unverified"),
        ("drop=['id', 'the date']", "--drop 'id,the date'"),
        ("drop=['a,b', 'c']", "--drop a,b --drop c"),
        ("decimal=','", "--decimal ','"),
        ("unit=['%']", "--unit '%'"),
    ],
)
def test_a_remedy_is_a_parameter_in_the_library_and_a_flag_in_the_shell(remedy, flag):
    assert with_flags(f"say `{remedy}`, or `{remedy}`.") == f"say {flag}, or {flag}."


def test_other_messages_stay_as_they_are():
    for text in ("drop=['id']", "a note", "`drop`", "`drop=id`", "`a=b` and `drop=['id'`"):
        assert with_flags(text) == text


def test_an_error_keeps_its_remedies_on_the_way_from_another_process():
    error = pickle.loads(pickle.dumps(TableError("say `drop=['id']`.")))
    assert with_flags(str(error)) == "say --drop id."
