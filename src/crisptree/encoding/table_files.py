"""Tables in files: read in batches of a fixed size, as often as needed, and written a batch at a time.

Read are CSV and TSV, plain or compressed, Parquet in one file, several or a folder, .npz and LIBSVM text; written are
CSV, TSV and Parquet. Every value of a text file is read as text; what it means is decided in one place, later.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import MAX_ROWS_PER_BATCH, TableLike, check_unique_names, compute_batch_rows
from crisptree.encoding.text_formats import DEFAULT_FORMAT, NumberFormat
from crisptree.exceptions import TableError, format_names, suggest_name
from crisptree.files import DECOMPRESSORS, decompress, read_libsvm, read_npz, reading
from crisptree.limits import MAX_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa  # slow to import: only where rows are read or written

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LIBSVM_SUFFIXES = (".libsvm", ".svm", ".txt")
SUFFIXES = (*DELIMITERS, ".parquet", ".npz", *LIBSVM_SUFFIXES)

CSV_BLOCK_BYTES = 2**20
"""Bytes that are parsed at a time; Arrow reads 32 such blocks ahead. No row may be longer, so wide tables take more."""

BLOCK_BYTES_PER_HEADER_BYTE = 16

UNSUPPORTED_ENCODINGS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7"}
"""Encodings of names and of programs, in which a comma need not be a comma."""

DENSE_VALUES_PER_BATCH, MIN_DENSE_ROWS = 2**20, 64
"""How much of a matrix becomes columns at a time; each takes hundreds of bytes beside its values."""

INVALID_TEXT = re.compile(".{0,12}[\udc80-\udcff\ufffd].{0,12}")
"""What cannot be decoded, and the characters around it."""

UTF16_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
"""How UTF-16 begins where it is read as UTF-8."""


def open_table(
    path: Path | Sequence[Path],
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    number_format: NumberFormat = DEFAULT_FORMAT,
    n_features: int | None = None,
) -> TableFile:
    r"""Open a table in a file for reading.

    It is a .csv or .tsv with a header, a .parquet, a .npz or LIBSVM text; text may be .gz, .bz2 or .xz. A folder of
    .parquet files, or several of them, are one table; names of folders such as year=2024 are a column. LIBSVM rows have
    ``n_features`` features, by default as many as the largest index in the file. ``delimiter`` and ``encoding`` are for
    .csv and .tsv, ``number_format`` for numbers in columns of text.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("age,color\n41,red\n12,blue\n")
    >>> table = open_table(path)
    >>> table.names, [batch.num_rows for batch in table.batches(["age"])]
    (('age', 'color'), [2])
    """
    if not isinstance(path, Path) or path.is_dir():
        return _open_parquet_files(path)
    if not path.exists():
        raise TableError(f"there is no file {path}.")
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] in DECOMPRESSORS
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
        table: TableFile
        if ending in DELIMITERS:
            table = DelimitedFile(path, delimiter or DELIMITERS[ending], encoding)
        elif ending in LIBSVM_SUFFIXES:
            table = LibsvmFile(path, n_features)
        else:
            table = NpzFile(path) if ending == ".npz" else ParquetFile(path)
    table.number_format = number_format
    return table


def find_parquet_files(folder: Path) -> list[Path]:
    """List the .parquet files of a folder and its folders, but not those that Spark and others hide ("_temporary")."""

    def is_hidden(file: Path) -> bool:
        return any(part.startswith((".", "_")) and "=" not in part for part in file.relative_to(folder).parts)

    return [file for file in sorted(folder.rglob("*.parquet")) if file.is_file() and not is_hidden(file)]


def _open_parquet_files(path: Path | Sequence[Path]) -> TableFile:
    """Open a folder of Parquet files, or several of them, as one table."""
    if isinstance(path, Path):
        first, files = path, find_parquet_files(path)
        if not files:
            raise TableError(f"{path} is a folder without .parquet files; name a file in it.")
    else:
        first, files = path[0], [*path]
        for file in files:
            if file.suffix.lower() != ".parquet" or not file.is_file():
                raise TableError(f"several tables must be .parquet files with the same columns; {file} is none.")
    with reading(first, TableError, "Parquet file"):
        return ParquetFiles(first, files)


class TableFile(TableLike):
    """A table in a file. Formats differ in how they find the column names and the raw batches.

    ``target`` is the column of labels and ``image_shape`` the shape of a row that is an image, where the format has a
    place for them.
    """

    path: Path
    target: str | None = None
    image_shape: tuple[int, ...] | None = None

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names, self.kind = path, tuple(names), f"{path.suffix} file"
        check_columns(len(self.names) - 1)
        check_unique_names(self.names, path)

    @abstractmethod
    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over batches of any size with the columns, in any order."""

    @abstractmethod
    def fraction_read(self) -> float | None:
        """Return how much of the file the latest pass has read, from 0 to 1; None where that is not known."""

    def batches(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        wanted = set(columns)
        order = [name for name in self.names if name in wanted]
        self.n_read = 0
        with reading(self.path, TableError, self.kind):
            for batch in _rebatch(self.raw_batches(order), compute_batch_rows(len(order))):
                yield batch.select(order)
                self.n_read += batch.num_rows

    def column(self, name: str, option: str) -> str:
        """Return a column's name, if there is such a column."""
        if name not in self.names:
            has = (
                format_names(self.names) if not self.matrix else format_names(self.names[self.matrix :]) or "no labels"
            )
            raise TableError(
                f"{self.path} has no column {name!r} ({option}); it has {has}.{suggest_name(name, self.names)}"
            )
        return name

    def columns(self, words: Iterable[str], option: str) -> list[str]:
        """Return the columns that words name, each of them a column or several separated by commas."""
        names: dict[str, None] = {}
        for word in words:
            for name in [word] if word in self.names or "," not in word else word.split(","):
                names[self.column(name if name in self.names else name.strip(), option)] = None
        return list(names)


def check_columns(n_columns: int) -> None:
    """Check the limit on columns: a matrix of hashed words, say, has columns that hold next to nothing."""
    if n_columns > MAX_COLUMNS:
        raise TableError(f"a table must have at most {MAX_COLUMNS:,} columns; it has {n_columns:,}.")


def _rebatch(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Iterate over the same rows in batches of ``rows``, the last one smaller."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count < rows:
            continue
        table = pa.Table.from_batches(waiting)
        while count >= rows:
            yield from table.slice(0, rows).combine_chunks().to_batches()
            table, count = table.slice(rows), count - rows
        waiting = table.to_batches()
    if count:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


class DelimitedFile(TableFile):
    """A text file, plain or compressed, with a header and a value per column in every line."""

    raw: IO[bytes] | None = None

    def __init__(self, path: Path, delimiter: str, encoding: str | None = None) -> None:
        self.path, self.delimiter = path, delimiter
        self.encoding = None if encoding is None else resolve_encoding(encoding)
        try:
            with self.open_text() as file, io.TextIOWrapper(file, self.encoding or "utf-8-sig", newline="") as text:
                names = _read_header(text, path, delimiter)
        except UnicodeError as error:
            raise TableError(f"{path} {self._explain_encoding()}") from error
        others = [other for other in ";,\t|" if other in names[0]]
        if len(names) == 1 and others:
            raise TableError(
                f"{path} must have its columns separated by {delimiter!r}; its header is {names[0][:60]!r}. "
                f"Say `delimiter={others[0]!r}`."
            )
        header_bytes = sum(len(name.encode()) + 1 for name in names)
        self.block_bytes = max(CSV_BLOCK_BYTES, BLOCK_BYTES_PER_HEADER_BYTE * header_bytes)
        super().__init__(path, names)

    @contextmanager
    def open_text(self) -> Iterator[Any]:
        """Open the text as decompressed bytes."""
        try:
            with self.path.open("rb") as self.raw:
                yield decompress(self.raw, self.path.suffix.lower(), self.path.stat().st_size)
        finally:
            self.raw = None

    def fraction_read(self) -> float | None:
        return min(1.0, self.raw.tell() / max(1, self.path.stat().st_size)) if self.raw else None

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        read = arrow_csv.ReadOptions(block_size=self.block_bytes, use_threads=False, encoding=self.encoding or "utf8")
        several = len(self.names) > 1  # in a table of one column an empty line is a missing value, not nothing
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=several)
        as_text = dict.fromkeys(columns, pa.string())
        convert = arrow_csv.ConvertOptions(column_types=as_text, include_columns=columns, strings_can_be_null=False)
        try:
            with self.open_text() as file:
                yield from arrow_csv.open_csv(file, read, parse, convert)
        except (pa.ArrowInvalid, UnicodeError) as error:
            is_encoding = isinstance(error, UnicodeError) or "UTF8" in str(error)
            reason = self._explain_encoding() if is_encoding else _explain_csv_error(str(error))
            raise TableError(f"{self.path} {reason}") from error

    def _explain_encoding(self) -> str:
        """Name the first line that is not text in the encoding; Arrow names none."""
        encoding, n_lines = self.encoding or "utf-8", 1
        errors = "replace" if self.encoding else "surrogateescape"
        with self.open_text() as file:
            text = io.TextIOWrapper(file, encoding, errors=errors, newline="\n")
            while line := text.readline(CSV_BLOCK_BYTES):
                if bad := INVALID_TEXT.search(line):
                    break
                n_lines += line.endswith("\n")
        problem = f"line {n_lines} must be text in {self.encoding or 'UTF-8'}; it is not"
        if self.encoding is not None or not bad:
            return f"{problem}. Name the encoding that the file was saved in, for example with `encoding='utf-8'`."
        if line.startswith(UTF16_MARKS):
            return "must be text in UTF-8; it begins as text in utf-16 does. Say `encoding='utf-16'`."
        shown = bad[0].encode("utf-8", "surrogateescape").decode("cp1252", "replace")
        return (
            f"{problem}. If {shown!r} is what it should say there, say `encoding='cp1252'`; or save the file as UTF-8."
        )


def _read_header(text: io.TextIOWrapper, path: Path, delimiter: str) -> list[str]:
    """Read the names in the first line. Arrow would read far ahead for them."""
    try:
        return next(line for line in csv.reader(text, delimiter=delimiter) if line)
    except StopIteration:
        raise TableError(f"{path} is empty; the first line of a table must name its columns.") from None
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}.") from error


def _explain_csv_error(message: str) -> str:
    if "straddl" in message or "block" in message:
        return "has a line that is far longer than its header, or a quotation mark that is never closed."
    return f"cannot be read as a table: {message.removeprefix('CSV parse error: ')}"


def resolve_encoding(name: str) -> str:
    """Return the name by which Python knows a text encoding, if tables are written in it."""
    try:
        "a".encode(name)  # refuses what is no encoding of text, such as zip
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        codec = None
    if codec is None or codec.incrementaldecoder is None or codec.name.replace("-", "_") in UNSUPPORTED_ENCODINGS:
        raise TableError(
            f"`encoding` must be an encoding of text that Python knows, such as utf-8, cp1252, latin-1 or utf-16; got "
            f"{name!r}."
        )
    return codec.name


class ParquetFile(TableFile):
    """A Parquet file, read in batches and only the columns that are needed."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            names, self.n_rows = file.schema_arrow.names, file.metadata.num_rows
        super().__init__(path, names)

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(min(MAX_ROWS_PER_BATCH, 2**20 // max(1, len(columns)) + 1), columns=columns)

    def fraction_read(self) -> float | None:
        return self.n_read / max(1, self.n_rows)


class ParquetFiles(TableFile):
    """Parquet files with the same columns, in the order of their paths; folders such as year=2024 are a column."""

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        import pyarrow.dataset

        names, base = [str(file) for file in files], str(path) if path.is_dir() else None
        found = pyarrow.dataset.dataset(names, format="parquet", partitioning="hive", partition_base_dir=base)
        # A column may be empty or whole in one file, and have text or fractions in another.
        own = [fragment.physical_schema for fragment in found.get_fragments()]
        try:
            columns = pyarrow.unify_schemas(own, promote_options="permissive")
        except pyarrow.ArrowTypeError as error:
            raise TableError(f"columns of {path} must have the same types in all files: {error}") from None
        # Keys stay the text that the folders have, whichever of them there are: 01 is no number, see ``ColumnProfile``.
        keys = pyarrow.schema([(name, pyarrow.string()) for name in found.schema.names if name not in columns.names])
        self.dataset = pyarrow.dataset.dataset(
            names,
            schema=pyarrow.schema([*columns, *keys]),
            format="parquet",
            partitioning=pyarrow.dataset.partitioning(keys, flavor="hive") if len(keys) else None,
            partition_base_dir=base,
        )
        self.n_rows = self.dataset.count_rows()
        names = self.dataset.schema.names
        for fragment in self.dataset.get_fragments():
            others = set(fragment.physical_schema.names).symmetric_difference(names)
            if others - set(pyarrow.dataset.get_partition_keys(fragment.partition_expression)):
                raise TableError(f"{fragment.path} must have the columns of the other files, {format_names(names)}.")
        super().__init__(path, names)
        self.kind = "Parquet file"

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        rows = min(MAX_ROWS_PER_BATCH, 2**20 // max(1, len(columns)) + 1)
        yield from self.dataset.to_batches(columns=columns, batch_size=rows)

    def fraction_read(self) -> float | None:
        return self.n_read / max(1, self.n_rows)


class MatrixFile(TableFile):
    """A matrix, dense or sparse, whose columns have no names, and ``single``: arrays of a value per row, by name."""

    def __init__(self, path: Path, X: Any, single: dict[str, npt.NDArray[Any]]) -> None:
        self.X, self.single, self.matrix = X, single, X.shape[1]
        self.target = "y" if "y" in single else None
        super().__init__(path, [*(f"x{number}" for number in range(self.matrix)), *single])

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        indices = {name: index for index, name in enumerate(self.names[: self.matrix])}
        step = max(MIN_DENSE_ROWS, DENSE_VALUES_PER_BATCH // max(1, self.matrix))
        n_rows = self.X.shape[0]
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            X = self.X[rows]
            X = X.toarray(order="F") if hasattr(X, "toarray") else X
            parts = [X[:, indices[name]] if name in indices else self.single[name][rows] for name in columns]
            yield pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(part)) for part in parts], names=columns)

    def fraction_read(self) -> float | None:
        return self.n_read / max(1, self.X.shape[0])


class NpzFile(MatrixFile):
    """A .npz with a matrix X (or the only array of two or more dimensions) and arrays with a value per row, such as y.

    A .npz is read whole: its arrays lie one after the other, not row by row.
    """

    def __init__(self, path: Path) -> None:
        self.arrays = read_npz(path)
        X = _find_matrix(self.arrays, path)
        if not math.prod(X.shape[1:]):
            raise TableError(f"{path} must hold an array X with columns; that of {X.shape} has none.")
        check_columns(math.prod(X.shape[1:]))
        self.image_shape = X.shape[1:] if X.ndim > 2 else None
        single = {
            name: array
            for name, array in self.arrays.items()
            if array.ndim == 1 and len(array) == len(X) and array.dtype.kind in "biufU"
        }
        super().__init__(path, X.reshape(len(X), math.prod(X.shape[1:])), single)

    def column(self, name: str, option: str) -> str:
        if name in self.arrays and name not in self.names:
            array = self.arrays[name]
            raise TableError(
                f"{self.path}: the array {name!r} ({option}) must have one number or text for each of the "
                f"{len(self.X):,} rows; it has the shape {array.shape} and the type {array.dtype}."
            )
        return super().column(name, option)


def _find_matrix(arrays: dict[str, npt.NDArray[Any]], path: Path) -> npt.NDArray[Any]:
    """Return the features: X, or the only array that can be meant."""
    wide = [name for name, array in arrays.items() if array.ndim >= 2 and array.dtype.kind in "biuf"]
    if "X" in wide or len(wide) == 1:
        return arrays["X" if "X" in wide else wide[0]]
    raise TableError(
        f"{path} must hold an array X of numbers, a row per sample; it holds {format_names(arrays) or 'nothing'}. "
        "Write it with numpy.savez(path, X=X, y=y)."
    )


class LibsvmFile(MatrixFile):
    """Lines of a label and ``index:value`` pairs, plain or compressed, read whole as a sparse matrix."""

    def __init__(self, path: Path, n_features: int | None) -> None:
        with path.open("rb") as file:
            try:
                X, y = read_libsvm(decompress(file, path.suffix.lower(), path.stat().st_size))
            except ValueError as error:
                raise TableError(f"{path} {error}") from error
        n_rows, width = X.shape[0], int(X.indices.max(initial=-1)) + 1
        check_columns(width)
        if n_features is None and width == 0:
            raise TableError(f"{path} must hold lines such as '1 3:0.5 7:1'; it has no features.")
        if n_features is not None and width > n_features:
            raise TableError(
                f"{path} must have {n_features} features at most, as in training; it has a feature {width}."
            )
        X.resize(n_rows, n_features or width)
        super().__init__(path, X, {"y": y})


OUTPUT_SUFFIXES = (*DELIMITERS, ".parquet")


class TableWriter:
    """Write batches of a table, all with the same columns; ``close`` ends the file but leaves the handle open.

    The format is that of a suffix among ``OUTPUT_SUFFIXES``. The first batch defines the columns; in Parquet every
    batch is a row group.
    """

    def __init__(self, file: BinaryIO, suffix: str) -> None:
        self.file, self.suffix = file, suffix
        self.writer: Any = None

    def write(self, columns: dict[str, Any]) -> None:
        """Add rows: NumPy or pyarrow arrays of one length by the names of the columns."""
        import pyarrow as pa

        table = pa.table(columns)
        if self.suffix != ".parquet":
            for field in table.schema:
                if pa.types.is_nested(field.type):
                    raise TableError(
                        f"column {field.name!r} holds values of type {field.type}, which only a .parquet can keep. "
                        "Write one, or do without this column."
                    )
        if self.writer is None and self.suffix == ".parquet":
            import pyarrow.parquet as pq

            self.writer = pq.ParquetWriter(self.file, table.schema)
        elif self.writer is None:
            import pyarrow.csv as arrow_csv

            options = arrow_csv.WriteOptions(delimiter=DELIMITERS[self.suffix])
            self.writer = arrow_csv.CSVWriter(self.file, table.schema, write_options=options)
        self.writer.write_table(table)

    def close(self) -> None:
        """Write what is still to be written."""
        if self.writer is not None:
            self.writer.close()
