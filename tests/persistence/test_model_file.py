"""The model file: whole and sound, or refused with a sentence."""

import json
import os
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import crisptree
from crisptree import ModelFileError
from crisptree.persistence import model_file
from tests.toys import checkerboard, clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 4, "finetune_epochs": 4, "min_updates": 10, "random_state": 0}
X, Y = clouds(90)
KEPT = Path(__file__).parent.parent / "data" / "format-1.crisp"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "x.crisp"
    plain_tree(**QUICK).fit(X, Y).save(path)
    return path


def rewritten(saved, path, change):
    """The file with its header and arrays changed, and a checksum that agrees again."""
    data = saved.read_bytes()
    arrays = load_arrays(data)
    header = json.loads(model_file._metadata(data)[model_file.KEY])
    change(header, arrays)
    metadata = {model_file.KEY: json.dumps(header), model_file.DIGEST: model_file.NO_DIGEST}
    new = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)
    digest = model_file._checksum(new, model_file.NO_DIGEST)
    path.write_bytes(model_file._with_digest(new, model_file.NO_DIGEST, digest))
    return path


def test_a_file_rewritten_unchanged_is_valid(saved, tmp_path):
    again = crisptree.load(rewritten(saved, tmp_path / "y.crisp", lambda header, arrays: None))
    assert np.array_equal(again.predict_proba(X), crisptree.load(saved).predict_proba(X))


def test_a_file_of_format_1_stays_readable():
    # Written once with version 0.1 and never again: labels, probabilities and leaves are those of that day.
    model = crisptree.load(KEPT)
    expected = json.loads(KEPT.with_suffix(".json").read_text())
    rows = np.array(expected["rows"], dtype=np.float32)
    assert model.predict(rows).tolist() == expected["predict"]
    assert model.leaf_indices(rows).tolist() == expected["apply"]
    assert model.predict_proba(rows).tolist() == expected["predict_proba"]
    assert model.before_finetuning().leaf_indices(rows).tolist() == expected["greedy_apply"]
    assert model.flat_parameters()["learning_rate_decay"] == "none", "there was no other way then"


def test_another_process_predicts_the_same_bits_without_torch(saved, tmp_path):
    model = crisptree.load(saved)
    np.save(tmp_path / "rows.npy", X)
    code = (
        "import sys, numpy, crisptree\n"
        f"model = crisptree.load({str(saved)!r})\n"
        f"numpy.save({str(tmp_path / 'out.npy')!r}, model.predict_proba(numpy.load({str(tmp_path / 'rows.npy')!r})))\n"
        "print([name for name in ('torch', 'matplotlib') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    assert np.array_equal(np.load(tmp_path / "out.npy"), model.predict_proba(X))


def test_two_thousand_mutations_are_all_refused_without_large_allocations(saved, tmp_path):
    whole = saved.read_bytes()
    rng = np.random.default_rng(0)
    header_end = 8 + int.from_bytes(whole[:8], "little")
    path = tmp_path / "mutant.crisp"
    tracemalloc.start()
    for number in range(2_000):
        mutant = bytearray(whole)
        kind = number % 4
        if kind == 0:  # one bit anywhere
            mutant[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        elif kind == 1:  # a byte of the header, where names, shapes and offsets are
            mutant[rng.integers(header_end)] = rng.integers(256)
        elif kind == 2:  # cut short
            del mutant[rng.integers(len(whole)) :]
        else:  # a run of bytes overwritten
            start = rng.integers(len(whole))
            noise = rng.integers(0, 256, rng.integers(1, 64), dtype=np.uint8).tobytes()
            mutant[start : start + len(noise)] = noise
        if bytes(mutant) == whole:
            continue
        path.write_bytes(mutant)
        with pytest.raises(ModelFileError):
            crisptree.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(whole) + 2**22


def set_array(name, change):
    def apply(header, arrays):
        arrays[name] = change(arrays[name].copy())

    return apply


def put(value, *place):
    def change(array):
        array[place or ...] = value
        return array

    return change


def set_header(*path, value):
    def apply(header, arrays):
        target = header
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return apply


def remove(name):
    def apply(header, arrays):
        del arrays[name]

    return apply


HOSTILE = {
    "a cycle": (set_array("tree/left", put(0, 1)), "holds no tree: every split must be numbered after its parent"),
    "a child out of range": (set_array("tree/right", put(10**6, 0)), "holds no tree"),
    "a leaf out of range": (set_array("tree/right", put(-(10**6), 1)), "holds no tree"),
    "a leaf twice": (set_array("tree/left", lambda a: a * 0 + a[-1]), "holds no tree"),
    "weights that are not numbers": (set_array("tree/weight", put(np.nan, 0, 0)), "'weight' .* not finite"),
    "an infinite offset": (set_array("tree/bias", put(np.inf, 0)), "'bias' .* not finite"),
    "too few weights": (set_array("tree/weight", lambda a: a[:-1]), "'weight' .* must have shape"),
    "too few features": (set_array("tree/weight", lambda a: a[:, :-1]), "'weight' .* must have shape"),
    "doubles as weights": (set_array("tree/weight", lambda a: a.astype(np.float64)), "must have type float32"),
    "flat weights": (set_array("tree/weight", np.ravel), "must have type float32 and 2 dimensions"),
    "a missing array": (remove("tree/bias"), "lacks the array 'bias'"),
    "missing statistics": (remove("statistics/gain"), "lacks the array 'gain'"),
    "negative probabilities": (set_array("tree/leaves", put(-1.0, 0, 0)), "leaves that are not probabilities"),
    "no features": (set_array("statistics/center", lambda a: a[:0]), "no features"),
    "another format": (set_header("format", value=2), "has format 2; this version of crisptree reads format 1"),
    "a format that is a word": (set_header("format", value="one"), "has format 'one'"),
    "an unknown required section": (
        set_header("sections", "forest", value={"required": True}),
        "needs forest, unknown to this version",
    ),
    "no estimator": (lambda header, arrays: header["sections"].pop("estimator"), "section 'estimator' is missing"),
    "another estimator": (set_header("sections", "estimator", "class", value="Forest"), "holds a 'Forest'"),
    "no sections": (set_header("sections", value=[]), "not a crisptree model file"),
    "huge labels": (
        set_header("sections", "estimator", "classes", value={"values": ["a", "b", "c"], "type": "<U1000000000"}),
        "must hold class labels",
    ),
    "equal labels": (
        set_header("sections", "estimator", "classes", value={"values": [1, 1, 1], "type": "int64"}),
        "list of different values",
    ),
    "labels that would merge": (
        set_header("sections", "estimator", "classes", value={"values": [1, 1.5, 2], "type": "int64"}),
        "must be of the type it names, int64",
    ),
    "labels that end in nothing": (
        set_header("sections", "estimator", "classes", value={"values": ["a", "a\x00", "b"], "type": "str"}),
        "must be of the type it names, str",
    ),
    "truth of more than two values": (
        set_header("sections", "estimator", "classes", value={"values": [0, 1, 2], "type": "bool"}),
        "must be of the type it names, bool",
    ),
    "a steepness that turns round": (set_array("statistics/steepness", put(-1.0, 0)), "steepness above 0"),
    "a steepness beyond all bounds": (set_array("statistics/steepness", put(1e300, 0)), "steepness above 0"),
    "too few labels": (
        set_header("sections", "estimator", "classes", value={"values": [1, 2], "type": "int64"}),
        "must have shape",
    ),
    "labels that are objects": (
        set_header("sections", "estimator", "classes", value={"values": [[1], [2], [3]], "type": "int64"}),
        "list of different values",
    ),
    "an invalid parameter": (
        set_header("sections", "estimator", "parameters", "max_depth", value=-5),
        "an invalid parameter: `max_depth` must be",
    ),
    "parameters that are a list": (
        set_header("sections", "estimator", "parameters", value=[]),
        "estimator's parameters",
    ),
    "wrong column names": (set_header("sections", "estimator", "feature_names", value=["a"]), "name its 5 columns"),
    "an unknown module": (
        set_header("sections", "estimator", "module", value={"name": "own", "input_shape": [5]}),
        "split=function",
    ),
    "a hostile digest": (None, "damaged"),
    "labels that cannot be compared": (
        set_header("sections", "estimator", "classes", value={"values": [[1], [2, 3], 4], "type": "object"}),
        "must hold class labels|different values",
    ),
    "one very long label": (
        set_header(
            "sections", "estimator", "classes", value={"values": ["x" * 10**6, *map(str, range(10**4))], "type": "str"}
        ),
        "differ so much in length",
    ),
    "a parameter beyond all numbers": (
        set_header("sections", "estimator", "parameters", "l1", value=10**400),
        "an invalid parameter",
    ),
    "a module whose name is a list": (
        set_header("sections", "estimator", "module", value={"name": [], "input_shape": [5]}),
        "describe its split modules",
    ),
    "two trees of different widths": (
        lambda header, arrays: [
            arrays.update({name: arrays[name][..., :-1]})
            for name in (
                "greedy/weight",
                *(f"greedy_statistics/{part}" for part in ("center", "factor", "mean", "spread")),
            )
        ],
        "two trees for rows of different widths",
    ),
    "a senseless module": (set_header("sections", "estimator", "module", value=7), "describe its split modules"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_invalid_file_with_a_valid_checksum_is_rejected_with_the_reason(saved, tmp_path, hostile):
    change, message = HOSTILE[hostile]
    path = tmp_path / "hostile.crisp"
    if change is None:
        data = saved.read_bytes()
        digest = model_file._metadata(data)[model_file.DIGEST].encode()
        path.write_bytes(data.replace(digest, b"\\ud800" + digest[6:]))
    else:
        rewritten(saved, path, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        crisptree.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        set_array("tree/weight", put([3e38, -3e38, 3e38, -3e38, 3e38])),
        set_array("statistics/factor", put(1e-300)),
        set_array("statistics/factor", put(1e300)),
        set_array("statistics/center", put(1e300)),
    ],
    ids=["weights", "small factors", "large factors", "centers"],
)
def test_a_file_of_extreme_values_gives_probabilities_or_is_rejected(saved, tmp_path, change):
    path = rewritten(saved, tmp_path / "extreme.crisp", lambda header, arrays: change(header, arrays))
    model = crisptree.load(path)
    with np.errstate(all="ignore"):
        tables = [model.predict_proba(100 * X), model.soft_predict_proba(100 * X), model.soft_predict_proba(X, 1e29)]
    for table in tables:
        assert np.isfinite(table).all()
        assert np.allclose(table.sum(axis=1), 1)


def test_huge_shapes_in_the_header_allocate_nothing(tmp_path):
    header = {"__metadata__": {}, "tree/weight": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    for length in (len(text), 2**63, 2**64 - 1):
        (tmp_path / "huge.crisp").write_bytes(length.to_bytes(8, "little") + text + b"\0\0\0\0")
        with pytest.raises(ModelFileError, match="not a crisptree model file"):
            crisptree.load(tmp_path / "huge.crisp")


def test_deeply_nested_headers_are_refused(tmp_path):
    text = b"[" * 100_000
    (tmp_path / "deep.crisp").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ModelFileError, match="not a crisptree model file"):
        crisptree.load(tmp_path / "deep.crisp")


def test_an_unknown_optional_section_is_ignored(saved, tmp_path):
    change = set_header("sections", "remarks", value={"required": False, "text": "from a later version"})
    path = rewritten(saved, tmp_path / "later.crisp", change)
    assert np.array_equal(crisptree.load(path).predict(X), crisptree.load(saved).predict(X))


def test_a_file_without_the_greedy_tree_loads(saved, tmp_path):
    def drop(header, arrays):
        for section in ("greedy", "greedy_statistics"):
            del header["sections"][section]
            for name in [name for name in arrays if name.startswith(section + "/")]:
                del arrays[name]

    model = crisptree.load(rewritten(saved, tmp_path / "small.crisp", drop))
    assert np.array_equal(model.before_finetuning().predict(X), model.predict(X))


def test_a_crash_while_saving_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "x.crisp"
    model = crisptree.load(saved)
    model.save(path)
    before = path.read_bytes()

    def crash(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="the disk is full"):
        model.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.crisp"]


def test_the_same_model_gives_the_same_file(saved, tmp_path):
    crisptree.load(saved).save(tmp_path / "loaded.crisp")
    assert (tmp_path / "loaded.crisp").read_bytes() == saved.read_bytes()
    for number in range(8):  # the library underneath puts its entries in an order that chance chooses
        plain_tree(**QUICK).fit(X, Y).save(tmp_path / "again.crisp")
        assert (tmp_path / "again.crisp").read_bytes() == saved.read_bytes(), number


def test_a_saved_file_has_the_ordinary_permissions(saved, tmp_path):
    (tmp_path / "ordinary").touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)


def test_the_node_statistics_are_in_the_file(saved, tmp_path):
    model = plain_tree(**QUICK).fit(X, Y)
    again = crisptree.load(saved).tree_.statistics
    for name in ("node_counts", "gain", "score_mean", "score_spread", "soft_leaves"):
        assert np.array_equal(getattr(again, name), getattr(model.tree_.statistics, name))
    assert again.steepness == model.tree_.statistics.steepness
    assert np.array_equal(again.scaling.mean, model.tree_.statistics.scaling.mean)


def test_parameters_of_every_type_round_trip(tmp_path):
    model = plain_tree(
        **QUICK
        | {
            "max_depth": np.int64(3),
            "learning_rate": np.float32(0.5),
            "image_shape": [5, 1],
            "class_weight": {0: 1.0, 1: 2.0, 2: np.float64(3.0)},
        }
    ).fit(X, Y)
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert (again.max_depth, again.flat_parameters()["learning_rate"], again.image_shape) == (3, 0.5, (5, 1))
    assert again.class_weight == {0: 1.0, 1: 2.0, 2: 3.0}


def own_module(input_shape):
    return torch.nn.Sequential(torch.nn.Linear(input_shape[0], 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def test_loading_custom_modules_requires_their_factory(tmp_path):
    X, y = checkerboard(120)
    model = plain_tree(**QUICK, split=own_module).fit(X, y)
    model.save(tmp_path / "own.crisp")
    with pytest.raises(ModelFileError, match=r"crisptree\.load\(path, split=function\)"):
        crisptree.load(tmp_path / "own.crisp")
    again = crisptree.load(tmp_path / "own.crisp", split=own_module)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.split is own_module
    with pytest.raises(ModelFileError, match="must have the parameters"):
        crisptree.load(tmp_path / "own.crisp", split=lambda shape: torch.nn.Linear(shape[0], 1))


def test_built_in_modules_are_stored_by_name(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(60, 256)).astype(np.float32)
    y = (images[:, :128].sum(axis=1) > 0).astype(int)
    model = plain_tree(**QUICK | {"split": "conv", "image_shape": (16, 16), "max_depth": 1}).fit(images, y)
    model.save(tmp_path / "conv.crisp")
    again = crisptree.load(tmp_path / "conv.crisp")
    assert again.split == "conv"
    assert np.array_equal(again.predict_proba(images), model.predict_proba(images))


def test_a_label_of_64_zeros_keeps_the_checksum_valid(tmp_path):
    model = plain_tree(**QUICK).fit(X, np.array(["0" * 64, "b", "c"])[Y])
    for number in range(8):
        model.save(tmp_path / f"{number}.crisp")
        assert np.array_equal(crisptree.load(tmp_path / f"{number}.crisp").predict(X), model.predict(X))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16])
def test_modules_of_another_type_are_refused(tmp_path, dtype):
    model = plain_tree(**QUICK, split=own_module).fit(X, Y)
    model.save(tmp_path / "own.crisp")

    def change(header, arrays):
        for name in arrays:
            if "/module/" in name:
                arrays[name] = arrays[name].astype(dtype)

    with pytest.raises(ModelFileError, match="must have type float32"):
        crisptree.load(rewritten(tmp_path / "own.crisp", tmp_path / "other.crisp", change), split=own_module)
