"""``crisptree export``: a model in a form that other programs run, compared with the model row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.options import OUTPUT, option, output_option
from crisptree.cli.output import Output
from crisptree.cli.rows import encoder_of, load_model, open_like_training
from crisptree.cli.stdin import on_disk
from crisptree.encoding.errors import TableError
from crisptree.export import ExportError
from crisptree.export.agreement import Rows
from crisptree.export.checking import check_written
from crisptree.export.escaping import identifier
from crisptree.export.support import TARGETS
from crisptree.persistence.writing import written_whole

LIMITS = "Limits"


@with_dialect
def export(
    model: options.Model,
    *,
    to: Annotated[str, option("--to", help=f"What to write: {', '.join(TARGETS)}; docs/export has a table.")],
    output: Annotated[Path, output_option("The file to write.")],
    check: Annotated[
        Path | None,
        option(help=f"Run the export on these rows and compare: {options.FORMATS}; - is stdin.", panel=OUTPUT),
    ] = None,
    name: Annotated[str | None, option(help="c, onnx: what names begin with; by default that of the file.")] = None,
    integer: Annotated[str | None, option(help="c: weights in whole numbers, int8 or int16; no floats.")] = None,
    inputs: Annotated[str | None, option(help="c, with --integer: inputs auto, plain or scaled.")] = None,
    form: Annotated[str | None, option(help="onnx: matrix, ensemble or paths; sklearn: forest or tree.")] = None,
    table: Annotated[str | None, option(help="sql: the table or view to read; by default rows.")] = None,
    max_flash: Annotated[int | None, option(help="c: refuse more bytes of program memory.", panel=LIMITS)] = None,
    max_stack: Annotated[int | None, option(help="c: refuse more bytes of stack.", panel=LIMITS)] = None,
    max_changed: Annotated[
        float | None,
        option(min=0, max=1, help="With --check: refuse if more than this share of rows change class.", panel=LIMITS),
    ] = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    dialect: Dialect,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a model in a form that other programs run.

    With --check, what was written is run on rows and compared with the model; a file that disagrees is not kept.

    Example:
      crisptree export iris.crisp --to sklearn -o iris.joblib --check test.csv
      crisptree export iris.crisp --to c --integer int8 -o iris.h --check test.csv --max-changed 0.01
    """
    if to not in TARGETS:
        raise typer.BadParameter(f"--to must be one of {', '.join(TARGETS)}; got {to!r}.")
    target = TARGETS[to]
    path = options.check_output(output, target.endings)
    options.check_free([path], force)
    if max_changed is not None and check is None:
        raise typer.BadParameter("--max-changed needs rows to count on: say --check FILE too.")
    chosen: dict[str, Any] = {"name": name, "integer": integer, "inputs": inputs, "form": form, "table": table}
    chosen |= {"max_flash": max_flash, "max_stack": max_stack}
    given = {word: value for word, value in chosen.items() if value is not None}
    if "name" in target.options:
        given.setdefault("name", identifier(path.stem))
    out = Output(as_json)
    estimator = load_model(model) if check is not None else crisptree.load(model)
    written = target.write(estimator, **given)
    document: dict[str, Any] = {"model": str(model), "to": to, "output": str(path), "agreement": None}
    if check is not None:
        agreement = check_written(estimator, _rows(estimator, check, dialect, missing, drop, out), to, written)
        document["agreement"] = {**vars(agreement), "notes": list(agreement.notes)}
        out.show(str(agreement))
        if not agreement.holds:
            raise ExportError(
                f"{path} was not written: {agreement.unexplained:,} of {agreement.rows:,} rows reach another leaf than "
                f"in the model, probabilities differ by up to {agreement.largest_difference:.3g}, and neither "
                "rounding nor overflow explains it. Please report this."
            )
        if max_changed is not None and agreement.changed > max_changed:
            raise ExportError(
                f"{path} was not written: at most {max_changed:.3%} of the rows may change class; "
                f"{agreement.changed:.3%} of {agreement.rows:,} do. Take more bits, or raise --max-changed."
            )
    data = written.encode() if isinstance(written, str) else written
    with written_whole(path) as temporary:
        temporary.write_bytes(data)
    out.show(f"{target.title} · {len(data):,} bytes → {path}")
    out.finish({**document, "bytes": len(data)})


def _rows(estimator: Any, data: Path, dialect: Dialect, missing: list[str], drop: list[str], out: Output) -> Rows:
    """All rows of a table, as the tree sees them and as the table has them."""
    preprocessing = estimator.preprocessing_
    blocks = [np.zeros((0, preprocessing.n_features), np.float32)]
    columns: dict[str, list[Any]] = {column.name: [] for column in preprocessing.columns}
    with on_disk(data) as file, out.progress() as progress:
        source = open_like_training(estimator, file, dialect, out)
        target = [preprocessing.target] if preprocessing.target in source.names else []
        encoder = encoder_of(estimator, source, out, missing=missing, drop=drop, without=target)
        n_rows = 0
        for batch in source.batches(encoder.names):
            blocks.append(encoder.encode(batch, n_rows))
            n_rows += batch.num_rows
            plain = encoder.extract_columns(batch)
            for name, values in plain.items():
                columns[name] += values
            progress.update(f"reading {file.name}", source.fraction_read())
    out.note_all(encoder.notes())
    if not n_rows:
        raise TableError(f"{data} must have rows to compare; it has none.")
    return Rows(np.concatenate(blocks), columns)
