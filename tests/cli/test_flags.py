import pickle

import pytest

from crisptree.cli.flags import with_flags
from crisptree.remedies import Note, Remedy
from crisptree.tables.errors import TableError


@pytest.mark.parametrize(
    ("remedy", "words", "flag"),
    [
        (Remedy("drop", ["id"]), "drop=['id']", "--drop id"),
        (Remedy("drop", ["the id"]), "drop=['the id']", "--drop 'the id'"),
        (Remedy("max_categories", 1000), "max_categories=1000", "--max-categories 1000"),
        (Remedy("delimiter", "\t"), r"delimiter='\t'", r"--delimiter '\t'"),
        (Remedy("unverified"), "unverified=True", "--unverified"),
    ],
)
def test_a_remedy_is_a_parameter_in_the_library_and_a_flag_in_the_shell(remedy, words, flag):
    for said in (TableError(f"say {remedy}.", remedy), Note(f"say {remedy}.", remedy)):
        assert str(said) == f"say {words}."
        assert with_flags(said) == f"say {flag}."


def test_other_messages_stay_as_they_are():
    assert with_flags(ValueError("drop=['id']")) == "drop=['id']"
    assert with_flags("a note") == "a note"


def test_an_error_keeps_its_remedies_on_the_way_from_another_process():
    error = pickle.loads(pickle.dumps(TableError("say drop=['id'].", Remedy("drop", ["id"]))))
    assert with_flags(error) == "say --drop id."
