"""``crisptree data list`` and ``crisptree data fetch``: which data is here, and the only way to download any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from crisptree.cli.output import PLAIN, table_of, with_flags
from crisptree.datasets.catalog import (
    CATALOG,
    Checksum,
    Publication,
    PublishedFile,
    find,
    get_folders,
    get_homes,
)
from crisptree.datasets.download import DownloadError, Receipt, fetch
from crisptree.sanitization import sanitize

app = typer.Typer(name="data", help="See which data sets are here, and download others.", no_args_is_help=True)

DataHome = Annotated[
    Path | None, typer.Option("--data-home", help="Folder of data. By default $CRISPTREE_DATA, then the user's cache.")
]


@app.command("list")
def list_data(
    data_home: DataHome = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show every data set and where its files are.

    Example: crisptree data list --json
    """
    if as_json:
        print(json.dumps([_described(publication, data_home) for publication in CATALOG.values()], indent=2))
        return
    console = Console()
    rows = [
        [each.name, each.title, f"{sum(each.rows.values()):,}", *_size_and_place(each, data_home)]
        for each in CATALOG.values()
    ]
    columns = ("name", "what it is", "rows", "download", "here")
    console.print(table_of(columns, rows, left=("what it is", "here")))
    console.print(sanitize(f"Looked for in {', then '.join(map(str, get_homes(data_home)))}"), **PLAIN)


@app.command("fetch")
def fetch_data(
    names: Annotated[list[str], typer.Argument(help=f"Which: {', '.join(CATALOG)}.")],
    data_home: DataHome = None,
    mirror: Annotated[
        str | None, typer.Option(help="Another address (http, https or file) of a folder with the publisher's files.")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Keep files whose checksum is not known or was never confirmed.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Download files that are there, too.")] = False,
) -> None:
    """Download data sets from their publishers and verify their checksums.

    Example: crisptree data fetch mnist fashion_mnist
    """
    for name in names:
        if name not in CATALOG:
            raise typer.BadParameter(f"there is no data set {name!r}; known are {', '.join(CATALOG)}.")
    if mirror is not None and not mirror.startswith(("http://", "https://", "file://")):
        raise typer.BadParameter(f"--mirror must begin with http://, https:// or file://; got {mirror!r}.")
    console, errors = Console(), Console(stderr=True)
    failed = False
    for name in names:
        publication = CATALOG[name]
        if not publication.files:
            console.print(f"{name}: comes with scikit-learn, there is nothing to fetch.")
        folder = get_homes(data_home)[0] / name
        for file in publication.files:
            address = f"{mirror.rstrip('/')}/{file.name}" if mirror else file.url
            try:
                receipt = _with_progress(file, folder, address, unverified, replace)
            except DownloadError as error:
                errors.print(f"{name}: {sanitize(with_flags(str(error)))}", style="red", **PLAIN)
                failed = True
            except KeyboardInterrupt:
                errors.print(f"{name}: stopped; of {file.name} nothing was kept.", **PLAIN)
                raise typer.Exit(130) from None
            else:
                verb = "fetched" if receipt.fresh else "already here"
                console.print(f"{name}: {verb}, {_proof(file, receipt)}: {sanitize(str(receipt.path))}", **PLAIN)
    if failed:
        raise typer.Exit(1)


def _proof(file: PublishedFile, receipt: Receipt) -> str:
    """What is known of the file that is here now."""
    if file.content is not None:
        return "its content will be checked when it is read"
    said = {"sha256": "checksum verified", "md5": "agrees with an MD5, which is a hint only"}
    return said.get(receipt.proof, "NOT verified") + ("" if receipt.verified else f", sha256 {receipt.sha256}")


def _with_progress(file: PublishedFile, folder: Path, url: str, unverified: bool, replace: bool) -> Receipt:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(file.name, total=file.size)

        def on_bytes(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        return fetch(file, folder, url=url, unverified=unverified, replace=replace, on_bytes=on_bytes)


def _size_and_place(publication: Publication, data_home: Path | None) -> tuple[str, str]:
    if not publication.files:
        return "–", "comes with scikit-learn"
    sizes, found = [file.size for file in publication.files], find(publication.name, data_home)
    size = "size not known" if None in sizes else f"{sum(size or 0 for size in sizes) / 1e6:.1f} MB"
    return size, str(found.paths[0] if len(found.paths) == 1 else found.paths[0].parent) if found else "no"


def _described(publication: Publication, data_home: Path | None) -> dict[str, Any]:
    found = find(publication.name, data_home)
    return {
        "name": publication.name,
        "title": publication.title,
        "page": publication.page,
        "rows": dict(publication.rows),
        "here": not publication.files or found is not None,
        "form": found.form if found else None,
        "paths": [str(path) for path in found.paths] if found else [],
        "looked_in": [str(folder) for folder in get_folders(publication.name, data_home)] if publication.files else [],
        "files": [_file_described(file) for file in publication.files],
    }


def _file_described(file: PublishedFile) -> dict[str, Any]:
    def tagged(checksum: Checksum | None) -> str | None:
        return f"{checksum.algorithm}:{checksum.digest}" if checksum else None

    inside = file.content
    return {
        "name": file.name,
        "url": file.url,
        "size": file.size,
        "checksum": tagged(file.checksum),
        "confirmed": file.checksum.confirmed if file.checksum else None,
        "content": inside and {"member": inside.member, "size": inside.size, "checksum": tagged(inside.checksum)},
    }
