"""The file of results: whole lines, one record for each key, in an order that stays."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from experiments.store import Store, as_json, main, store_of

from experiments import store

FIELDS = ("row", "seed")


@pytest.fixture
def kept(tmp_path):
    return Store(tmp_path / "results" / "toy.jsonl", FIELDS)


def record(row, seed, **more):
    return {"row": row, "seed": seed, **more}


def lines(kept):
    return kept.path.read_text(encoding="utf-8").splitlines()


def test_a_record_is_found_again_by_its_key_and_is_the_readers_own(kept):
    assert kept.get("paper", 0) is None
    assert kept.records() == []
    kept.put(record("paper", 0, numbers=[0.1 + 0.2, None], words="λ\u2028end"))
    found = kept.get("paper", 0)
    assert found == record("paper", 0, numbers=[0.30000000000000004, None], words="λ\u2028end")
    found["numbers"].clear()
    assert kept.get("paper", 0)["numbers"]
    assert Store(kept.path, FIELDS).records() == kept.records()
    assert kept.get("paper", 1) is None


def test_records_stand_in_the_order_of_their_keys_whatever_came_first(kept):
    for row, seed in (("b", 10), ("b", 9), ("a", 3)):
        kept.put(record(row, seed))
    keys = [(one["row"], one["seed"]) for one in map(json.loads, lines(kept))]
    assert keys == [("a", 3), ("b", 9), ("b", 10)]
    assert [one["seed"] for one in kept.records(row="b")] == [9, 10]


def test_a_record_of_the_same_key_is_replaced_and_other_lines_keep_every_character(kept):
    kept.path.parent.mkdir()
    spelled = '{"row":"a",  "seed":0, "score": 1.50}'
    kept.path.write_text(spelled + "\n" + json.dumps(record("b", 0, score=1)) + "\n")
    kept.put(record("b", 0, score=2))
    assert lines(kept) == [spelled, json.dumps(record("b", 0, score=2))]


def test_the_later_of_two_lines_with_one_key_counts(kept):
    kept.path.parent.mkdir()
    kept.path.write_text("".join(json.dumps(record("a", 0, score=score)) + "\n" for score in (1, 2)))
    assert kept.get("a", 0)["score"] == 2
    kept.put(record("b", 0))
    assert len(lines(kept)) == 2


@pytest.mark.parametrize("lost", [2, 4, 12])
def test_a_half_last_line_is_ignored_and_overwritten(kept, lost):
    kept.put(record("a", 0), record("b", 0, sign="λ"))
    kept.path.write_bytes(kept.path.read_bytes()[:-lost])
    assert kept.records() == [record("a", 0)]
    kept.put(record("c", 0))
    assert list(map(json.loads, lines(kept))) == [record("a", 0), record("c", 0)]


def test_a_whole_last_line_without_an_end_counts(kept):
    kept.put(record("a", 0))
    kept.path.write_bytes(kept.path.read_bytes()[:-1])
    assert kept.records() == [record("a", 0)]
    kept.put(record("b", 0))
    assert len(lines(kept)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"row": "a", "se\n{"row": "a", "seed": 0}\n', r"toy.jsonl: every line must be a JSON object; line 1 is not"),
        ('{"row": "a"}\n', r"a record must be an object with row, seed; got row\. Is it of another experiment"),
        ("7\n", r"a record must be an object with row, seed; got 7"),
    ],
)
def test_a_broken_line_reports_where_it_is_and_nothing_is_written_over_it(kept, text, message):
    kept.path.parent.mkdir()
    kept.path.write_text(text)
    with pytest.raises(ValueError, match=message):
        kept.records()
    with pytest.raises(ValueError, match=message):
        kept.put(record("b", 0))
    assert kept.path.read_text() == text


def test_an_interruption_while_writing_leaves_the_file_as_it_was(kept, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    kept.put(record("a", 0))
    before = kept.path.read_bytes()
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(store.os, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                kept.put(record("b", 0))
        assert kept.path.read_bytes() == before
        assert [path.name for path in kept.path.parent.iterdir()] == ["toy.jsonl"]
    kept.put(record("b", 0))
    assert len(lines(kept)) == 2


def test_several_writers_of_one_file_lose_nothing_and_see_each_other(kept):
    def write(row):
        mine = Store(kept.path, FIELDS)
        for seed in range(10):
            mine.put(record(row, seed))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    found = [(one["row"], one["seed"]) for one in kept.records()]
    assert found == [(row, seed) for row in "abcd" for seed in range(10)]
    Store(kept.path, FIELDS).put(record("e", 0))
    assert kept.get("e", 0) is not None


def test_files_of_several_machines_are_put_together(tmp_path, capsys):
    here, there = (store_of("cnn", tmp_path / name, "mnist") for name in ("here", "there"))
    here.put(record("a", 0, score=1), record("b", 0, score=1))
    there.put(record("b", 0, score=2), record("a", 1, score=2))
    assert main(["cnn", str(here.path), str(there.path)]) == 0
    assert here.records() == [record("a", 0, score=1), record("a", 1, score=2), record("b", 0, score=2)]
    with pytest.raises(SystemExit):
        main(["cnn", str(here.path), str(tmp_path / "nowhere.jsonl")])
    assert "these are not" in capsys.readouterr().err


def test_tuples_are_compared_as_the_file_will_have_them():
    assert as_json({"scales": (1, 2)}) == {"scales": [1, 2]}
