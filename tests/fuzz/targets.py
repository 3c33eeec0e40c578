"""One target for every reader: a sound file, how it is changed, what reads it, and the errors that it may raise."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.fuzz import mutations

GOLDEN = Path(__file__).parents[1] / "golden" / "files"


@dataclass(frozen=True)
class Target:
    """``seed`` gives the bytes of a sound file called ``name``; ``read`` uses one wholly."""

    name: str
    seed: Callable[[], bytes]
    mutate: mutations.Mutation
    read: Callable[[Path], Any]


def errors() -> tuple[type[Exception], ...]:
    """What a reader may say of a file."""
    from crisptree.data.batches import StreamError
    from crisptree.datasets.catalog import DataFormatError
    from crisptree.exceptions import CheckpointError, TableError
    from crisptree.persistence.model_file import ModelFileError

    return CheckpointError, DataFormatError, ModelFileError, StreamError, TableError


class BadAnswerError(AssertionError):
    """A file was accepted, and what came of it cannot be."""


def _read_model(path: Path) -> None:
    import crisptree

    model = crisptree.load(path)
    rows = _asked(model)
    for tables in (model.predict_proba(rows), model.soft_predict_proba(rows)):
        if not np.isfinite(tables).all() or not np.allclose(np.asarray(tables).sum(axis=-1), 1):
            raise BadAnswerError("probabilities that are none")
    if len(set(model.classes_.tolist())) < len(model.classes_):
        raise BadAnswerError("classes that are one")
    model.predict(rows)


def _asked(model: Any) -> Any:
    rng = np.random.default_rng(0)
    if hasattr(model, "window"):
        shape = (12, 12) if model.channels_ is None else (12, 12, model.channels_)
        return 100 * rng.random(shape, dtype=np.float32)
    model.__dict__.pop("feature_names_in_", None)
    return 100 * rng.normal(size=(3, model.n_features_in_)).astype(np.float32)


def _read_foreign_table(path: Path) -> None:
    """A table of another encoding, with numbers written otherwise."""
    from crisptree.encoding.text_formats import NumberFormat

    written = NumberFormat(decimal=",", thousands=".", units=("€",))
    _read_table(path, delimiter=";", encoding="utf-16", number_format=written)


def _read_table(path: Path, **how: Any) -> None:
    """As ``crisptree fit`` reads a table."""
    from crisptree.encoding.preprocessing import ColumnOptions, profile_table
    from crisptree.encoding.table_encoder import RowEncoder
    from crisptree.encoding.table_files import open_table
    from crisptree.encoding.target_column import parse_class_labels, read_labels

    source = open_table(path, **how)
    target = source.target or source.names[-1]
    labels = read_labels(source, target)
    preprocessing = profile_table(source, source.features([target]), ColumnOptions(keep_constant=True), target=target)
    X = RowEncoder(preprocessing, source, without=[target]).encode_all()
    if not np.isfinite(X).all():
        raise BadAnswerError("rows that are not finite")
    parse_class_labels(labels, path, target)


def _train_on(folder: Path, stop_after: int | None = None) -> None:
    """A short training that goes on from the checkpoint in a folder, and leaves one if it is stopped."""
    import torch

    from crisptree.learning.engines.base import use_store
    from crisptree.learning.history import StopTraining
    from crisptree.learning.loop import DivergenceError, EpochEnd, WholeTree, train
    from crisptree.learning.options import Plan
    from crisptree.persistence.checkpoints import CheckpointFolder, CheckpointStore
    from crisptree.structure import TreeStructure
    from tests import toys

    x, y = (torch.from_numpy(part) for part in _rows())
    data = toys.class_samples(x.float(), y, torch.ones(len(y)), 2)
    trainee = WholeTree(toys.random_tree(TreeStructure.balanced(2), 4, 2), data)
    trainee.splits = trainee.splits.replace_parameters(
        {n: v.detach().float() for n, v in trainee.splits.parameters.items()}
    )
    trainee.splits, trainee.leaves = trainee.splits.trainable(), trainee.leaves.float()

    def stop(end: EpochEnd) -> None:
        if end.epoch == stop_after:
            raise StopTraining

    plan = Plan(epochs=4, batch_size=5, rows_per_epoch=8, input_noise=0.3)
    with use_store(CheckpointStore(CheckpointFolder(folder), 0.0 if stop_after else np.inf)):
        try:
            train(trainee, data, plan, generator=toys.generator(), on_epoch=stop)
        except (StopTraining, DivergenceError):
            return
    if not all(value.isfinite().all() for value in trainee.splits.parameters.values()):
        raise BadAnswerError("weights that are not finite")


def _read_stream(path: Path) -> None:
    """As a fit on batches reads a Parquet file."""
    from crisptree.data.batches import Batches

    for batch in Batches.from_parquet(path, "y", at_once=5).one_pass():
        if not np.isfinite(batch.X).all():
            raise BadAnswerError("rows that are not finite")


def _parquet_of_numbers() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    X, y = _rows()
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(dict(zip("abcd", X.T, strict=True)) | {"y": y}), sink, row_group_size=6)
    return sink.getvalue().to_pybytes()


@cache
def _checkpoint() -> bytes:
    with TemporaryDirectory() as folder:
        _train_on(Path(folder), stop_after=2)
        return (Path(folder) / "working.safetensors").read_bytes()


@cache
def _finished() -> bytes:
    with TemporaryDirectory() as folder:
        _train_on(Path(folder))
        return (Path(folder) / "finished-00000.safetensors").read_bytes()


def _read_checkpoint(path: Path) -> None:
    """As a fit that goes on reads its folder, where nothing else stands."""
    folder = path.parent / "checkpoint"
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder)
    try:
        _train_on(folder)
    finally:
        for file in folder.glob("*.safetensors"):
            file.unlink()


def _read_idx(path: Path) -> None:
    from crisptree.datasets.loaders import read_idx

    read_idx(path)


def _read_compact(path: Path) -> None:
    from crisptree.datasets.files import read_compact

    read_compact(path, "X", "y")


def _read_dataset_libsvm(path: Path) -> None:
    from crisptree.datasets.loaders import read_libsvm_file

    read_libsvm_file(path, 4)


def _read_bytes(path: Path) -> None:
    from crisptree.datasets.files import read_bytes

    read_bytes(path, "rows.data" if path.suffix == ".zip" else None)


def _read_images(path: Path) -> None:
    from crisptree.datasets.files import read_images

    read_images(path)


@cache
def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 4)).round(3), rng.integers(0, 2, 12)


def _idx() -> bytes:
    return bytes([0, 0, 8, 2, 0, 0, 0, 12, 0, 0, 0, 4]) + bytes(range(48))


def _npz() -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, X=_rows()[0], y=_rows()[1])
    return sink.getvalue()


def _csv() -> bytes:
    X, y = _rows()
    lines = ["a,b,color,d,y"]
    lines += [
        f"{row[0]},{row[1]},{'red' if row[2] > 0 else 'blue'},{row[3]},{label}" for row, label in zip(X, y, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def _foreign_csv() -> bytes:
    lines = [f"{1000 * row[0]:,.2f} €;{row[1]};{label}" for row, label in zip(*_rows(), strict=True)]
    text = "\n".join(lines).translate(str.maketrans(".,", ",."))
    return f"price;x;y\n{text}\n".encode("utf-16")


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.csv.read_csv(io.BytesIO(_csv())), sink)
    return sink.getvalue().to_pybytes()


def _libsvm() -> bytes:
    lines = [f"{y} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for row, y in zip(*_rows(), strict=True)]
    return ("\n".join(lines) + "\n").encode()


def _compressed() -> bytes:
    from tests.datasets.writers import compress

    return compress(_csv() * 4)


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/rows.data.Z", _compressed())
        archive.writestr("rows.txt", _csv())
    return sink.getvalue()


def _image(form: str, pages: int = 1) -> bytes:
    from PIL import Image

    sink = io.BytesIO()
    images = [Image.fromarray((np.arange(100, dtype=np.uint8) + 9 * page).reshape(10, 10)) for page in range(pages)]
    more: dict[str, Any] = (
        {"save_all": True, "append_images": images[1:], "compression": "tiff_lzw"} if pages > 1 else {}
    )
    images[0].save(sink, format=form, **more)
    return sink.getvalue()


def _golden(kind: str) -> Callable[[], bytes]:
    return (GOLDEN / f"{kind}.crisp").read_bytes


@cache
def _document() -> bytes:
    import crisptree

    return crisptree.export.json(crisptree.load(GOLDEN / "names.crisp")).encode()


TARGETS: dict[str, Target] = {
    "model": Target("x.crisp", _golden("table"), mutations.resealed, _read_model),
    "segmenter": Target("x.crisp", _golden("scales"), mutations.resealed, _read_model),
    "json": Target("x.json", _document, mutations.changed_words, _read_model),
    "checkpoint": Target("working.safetensors", _checkpoint, mutations.resealed, _read_checkpoint),
    "finished": Target("finished-00000.safetensors", _finished, mutations.resealed, _read_checkpoint),
    "idx": Target("x-idx2-ubyte", _idx, mutations.changed_bytes, _read_idx),
    "idx.gz": Target(
        "x.gz",
        lambda: gzip.compress(_idx()),
        mutations.packed_anew(gzip.decompress, gzip.compress, mutations.changed_bytes),
        _read_idx,
    ),
    "npz": Target("x.npz", _npz, mutations.changed_archive, _read_table),
    "compact": Target("x.npz", _npz, mutations.changed_archive, _read_compact),
    "csv": Target("x.csv", _csv, mutations.changed_words, _read_table),
    "csv.gz": Target(
        "x.csv.gz",
        lambda: gzip.compress(_csv()),
        mutations.packed_anew(gzip.decompress, gzip.compress, mutations.changed_words),
        _read_table,
    ),
    "csv.xz": Target("x.csv.xz", lambda: lzma.compress(_csv()), mutations.changed_bytes, _read_table),
    "csv.bz2": Target("x.csv.bz2", lambda: bz2.compress(_csv()), mutations.changed_bytes, _read_table),
    "csv in utf-16": Target(
        "x.csv",
        _foreign_csv,
        mutations.packed_anew(
            lambda data: data.decode("utf-16").encode(),
            lambda data: data.decode("utf-8", "replace").encode("utf-16"),
            mutations.changed_words,
        ),
        _read_foreign_table,
    ),
    "parquet": Target("x.parquet", _parquet, mutations.changed_bytes, _read_table),
    "parquet in batches": Target("x.parquet", _parquet_of_numbers, mutations.changed_bytes, _read_stream),
    "libsvm": Target("x.libsvm", _libsvm, mutations.changed_words, _read_table),
    "libsvm.bz2": Target(
        "x.bz2",
        lambda: bz2.compress(_libsvm()),
        mutations.packed_anew(bz2.decompress, bz2.compress, mutations.changed_words),
        _read_dataset_libsvm,
    ),
    "Z": Target("x.Z", _compressed, mutations.changed_bytes, _read_bytes),
    "zip": Target("x.zip", _zip, mutations.changed_archive, _read_bytes),
    "tif": Target("x.tif", lambda: _image("TIFF", pages=3), mutations.changed_bytes, _read_images),
    "png": Target("x.png", lambda: _image("PNG"), mutations.changed_bytes, _read_images),
}
