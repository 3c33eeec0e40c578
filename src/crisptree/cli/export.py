"""``crisptree export``: a model as code or data for other programs, compared with the model row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crisptree.cli import options
from crisptree.cli.options import OUTPUT, CsvFormat, option, output_option, with_options
from crisptree.cli.output import Output
from crisptree.cli.tables import load_model, load_table_model, make_encoder, open_for_model, stdin_as_file
from crisptree.exceptions import TableError
from crisptree.export import ExportError, Portable
from crisptree.export.escaping import make_identifier
from crisptree.export.formats import FORMATS, Agreement, EncodedRows, check_written
from crisptree.files import atomic_write

LIMITS = "Limits"
SOURCE_COMMENT = "/* Compile this file as it is. Other files include the header, which -o m.h writes. */\n"


@with_options()
def export(
    model: options.Model,
    *,
    to: Annotated[
        str | None, option("--to", help=f"What to write: {', '.join(FORMATS)}; by default from the ending of -o.")
    ] = None,
    output: Annotated[Path, output_option("The file to write.")],
    check: Annotated[
        Path | None,
        option(help=f"Run the export on these rows and compare: {options.FORMATS}; - is stdin.", panel=OUTPUT),
    ] = None,
    name: Annotated[str | None, option(help="c, onnx: what names begin with; by default that of the file.")] = None,
    integer: Annotated[str | None, option(help="c: weights in whole numbers, int8 or int16; no floats.")] = None,
    inputs: Annotated[str | None, option(help="c, with --integer: inputs auto, plain or scaled.")] = None,
    form: Annotated[str | None, option(help="onnx: ensemble or paths; sklearn: forest or tree.")] = None,
    table: Annotated[str | None, option(help="sql: the table or view to read; by default rows.")] = None,
    max_flash: Annotated[int | None, option(help="c: refuse more bytes of program memory.", panel=LIMITS)] = None,
    max_stack: Annotated[int | None, option(help="c: refuse more bytes of stack.", panel=LIMITS)] = None,
    max_changed: Annotated[
        float | None,
        option(min=0, max=1, help="With --check: refuse if more than this share of rows change.", panel=LIMITS),
    ] = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    csv: CsvFormat,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a model as code or data for other programs.

    With --check, the export is run on rows and compared with the model; a file that disagrees is not kept.

    C is written as a header, or for -o m.c as a source file that compiles by itself. Integer weights change the
    leaf of some rows: a warning counts them, and --max-changed refuses them.

    Example:
      crisptree export iris.crisp -o iris.joblib --check test.csv
      crisptree export iris.crisp --to c --integer int8 -o iris.h --check test.csv --max-changed 0.01
    """
    to = find_format_of(output) if to is None else to
    if to not in FORMATS:
        raise typer.BadParameter(f"--to must be one of {', '.join(FORMATS)}; got {to!r}.")
    target = FORMATS[to]
    path = options.check_output(output, target.endings)
    options.check_free([path], force)
    if max_changed is not None and check is None:
        raise typer.BadParameter("--max-changed needs rows to count: name them with --check FILE.")
    settings: dict[str, Any] = {"name": name, "integer": integer, "inputs": inputs, "form": form, "table": table}
    settings |= {"max_flash": max_flash, "max_stack": max_stack}
    settings = {key: value for key, value in settings.items() if value is not None}
    if "name" in target.options:
        settings.setdefault("name", make_identifier(path.stem))
    out = Output(as_json)
    estimator = load_table_model(model) if check is not None else load_model(model)
    written = target.write(estimator, **settings)
    model_id = Portable.of(estimator).model_id
    document: dict[str, Any] = {"model": str(model), "model_id": model_id, "to": to, "output": str(path)}
    document["agreement"] = None
    if check is not None:
        agreement = check_written(estimator, _read_rows(estimator, check, csv, drop, out), to, written)
        document["agreement"] = {**vars(agreement), "notes": list(agreement.notes)}
        out.show(str(agreement))
        _check_agreement(agreement, path, max_changed, out)
    if isinstance(written, str) and path.suffix.lower() == ".c":
        written = f"{SOURCE_COMMENT}#define {settings['name'].upper()}_IMPLEMENTATION\n{written}"
    data = written.encode() if isinstance(written, str) else written
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)
    out.show(f"{target.title} · {len(data):,} bytes → {path}")
    out.finish({**document, "bytes": len(data)})


def find_format_of(output: Path) -> str:
    """Return the format whose files have this ending."""
    for name, each in FORMATS.items():
        if output.suffix.lower() in each.endings:
            return name
    endings = ", ".join(ending for each in FORMATS.values() for ending in each.endings)
    raise typer.BadParameter(f"-o must end in one of {endings}, or --to must name the format; got {str(output)!r}.")


def _check_agreement(agreement: Agreement, path: Path, max_changed: float | None, out: Output) -> None:
    """Refuse an export that differs from its model; warn of the rows that integer weights change."""
    if not agreement.holds:
        raise ExportError(
            f"{path} was not written: {agreement.unexplained:,} of {agreement.rows:,} rows reach another leaf than "
            f"in the model, probabilities differ by up to {agreement.largest_difference:.3g}, and neither "
            "rounding nor overflow explains it. Please report this."
        )
    if max_changed is not None and agreement.changed > max_changed:
        raise ExportError(
            f"{path} was not written: at most {max_changed:.3%} of the rows may change; "
            f"{agreement.changed:.3%} of {agreement.rows:,} do. Use more bits, or raise --max-changed."
        )
    if not agreement.exact and agreement.equal_leaves < agreement.rows:
        what = "reach another leaf" if agreement.what == "values" else "get another class"
        out.note(
            f"warning: {agreement.n_changed:,} of {agreement.rows:,} rows {what} than in the model "
            f"({agreement.changed:.3%}), because weights are integers; --max-changed 0 refuses such a file."
        )


def _read_rows(estimator: Any, data: Path, csv: CsvFormat, drop: list[str], out: Output) -> EncodedRows:
    """Read all rows of a table, encoded and as they are in the table."""
    preprocessing = estimator.preprocessing_
    blocks = [np.zeros((0, preprocessing.n_features), np.float32)]
    columns: dict[str, list[Any]] = {column.name: [] for column in preprocessing.columns}
    with stdin_as_file(data) as file, out.progress() as progress:
        source = open_for_model(estimator, file, csv, out)
        target = [preprocessing.target] if preprocessing.target in source.names else []
        encoder = make_encoder(estimator, source, out, missing=csv.missing, drop=drop, without=target)
        n_rows = 0
        for batch in source.batches(list(dict.fromkeys(encoder.names))):
            blocks.append(encoder.encode(batch, n_rows))
            n_rows += batch.num_rows
            for name, values in encoder.extract_columns(batch).items():
                columns[name] += values
            progress.update(f"reading {file.name}", source.fraction_read())
    out.note_all(encoder.notes())
    if not n_rows:
        raise TableError(f"{data} must have rows to compare; it has none.")
    return EncodedRows(np.concatenate(blocks), columns)
