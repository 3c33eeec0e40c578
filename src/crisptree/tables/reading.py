"""Which reader a file needs, by the endings of its name."""

from __future__ import annotations

from pathlib import Path

from crisptree.files import checked_size, reading
from crisptree.tables.errors import TableError
from crisptree.tables.matrices import Libsvm, Npz
from crisptree.tables.named_columns import DELIMITERS, Delimited, Parquet
from crisptree.tables.number_texts import PLAIN, NumberTexts
from crisptree.tables.source import UNPACK, Source

LIBSVM = (".libsvm", ".svm", ".txt")
SUFFIXES = (*DELIMITERS, ".parquet", ".npz", *LIBSVM)


def open_table(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    written: NumberTexts = PLAIN,
    n_features: int | None = None,
) -> Source:
    r"""A file of rows, ready to be read.

    It is a .csv or .tsv with a header, a .parquet, a .npz or LIBSVM text; text may be .gz, .bz2 or .xz. LIBSVM rows
    have ``n_features`` features, by default as many as the largest index in the file. ``delimiter`` and ``encoding``
    are for .csv and .tsv, ``written`` says how numbers are written in columns of text.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("age,color\n41,red\n12,blue\n")
    >>> source = open_table(path)
    >>> source.names, [batch.num_rows for batch in source.batches(["age"])]
    (('age', 'color'), [2])
    """
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] in UNPACK
    ending = ["", *(endings[:-1] if packed else endings)][-1]
    if ending not in SUFFIXES or (packed and ending in (".parquet", ".npz")):
        raise TableError(
            f"{path} must end in one of {', '.join(SUFFIXES)} (text also in .gz, .bz2 or .xz after that); "
            f"it ends in {''.join(path.suffixes[-2:]) or 'nothing'!r}."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    if encoding is not None and ending not in DELIMITERS:
        raise TableError(f"`encoding` is for {' and '.join(DELIMITERS)}; {path} says itself how its text is written.")
    with reading(path, TableError, f"{path.suffix} file"):
        checked_size(path)
        source: Source
        if ending in DELIMITERS:
            source = Delimited(path, delimiter or DELIMITERS[ending], encoding)
        elif ending in LIBSVM:
            source = Libsvm(path, n_features)
        else:
            source = Npz(path) if ending == ".npz" else Parquet(path)
    source.written = written
    return source
