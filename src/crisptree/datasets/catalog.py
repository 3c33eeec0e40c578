"""The catalog of published data sets: their files, sizes, checksums and rows, and where they are on this machine.

Nothing here is guessed. A size or checksum that is not established is None, and errors say so.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crisptree.files import StrPath

VARIABLE = "CRISPTREE_DATA"
"""The environment variable that names the user's folder of data."""


class DataNotFoundError(FileNotFoundError):
    """A data set is in none of the folders where it is searched for.

    Examples
    --------
    >>> from crisptree.datasets import DataNotFoundError, load_mnist
    >>> try:
    ...     load_mnist("/no/such/folder")
    ... except DataNotFoundError:
    ...     print("mnist is not there")
    mnist is not there
    """


class DataFormatError(ValueError):
    """A file exists but is damaged, or holds other data than its name says.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from crisptree.datasets import DataFormatError, load_mnist
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "mnist.npz").write_bytes(b"no archive")
    >>> try:
    ...     load_mnist(folder)
    ... except DataFormatError as error:
    ...     print(error.args[0].replace(f"{folder}{os.sep}", ""))
    mnist.npz is damaged or not a .npz file (it is no archive of arrays).
    """


@dataclass(frozen=True)
class Content:
    """The file inside an archive: for archives whose own checksum is not known."""

    member: str
    sha256: str


@dataclass(frozen=True)
class PublishedFile:
    """One file as its publisher gives it; ``checksum`` is its algorithm and digest, as pooch writes them."""

    name: str
    url: str
    size: int | None = None
    checksum: str | None = None
    content: Content | None = None


Form = tuple[tuple[str, ...], ...]
"""One form of the data on disk: for each required file, the names it may have (those of folders end in /)."""


@dataclass(frozen=True)
class Publication:
    """A data set as it was published."""

    name: str
    title: str
    page: str
    files: tuple[PublishedFile, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    class_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def _parse_file(name: str, folder: str, facts: dict[str, Any]) -> PublishedFile:
    checksum = next((f"{kind}:{facts[kind]}" for kind in ("sha256", "md5") if kind in facts), None)
    inside = facts.get("content")
    content = Content(inside["member"], inside["sha256"]) if inside else None
    return PublishedFile(name, f"{folder}/{name}", facts.get("size"), checksum, content)


def _parse_publication(name: str, title: str, page: str, rows: dict[str, int], **more: Any) -> Publication:
    files = tuple(_parse_file(file, more["folder"], facts) for file, facts in more.get("files", {}).items())
    forms = {form: tuple(map(tuple, needed)) for form, needed in more.get("forms", {}).items()}
    counts = {part: tuple(counts) for part, counts in more.get("class_counts", {}).items()}
    return Publication(name, title, page, files, forms, rows, counts)


CATALOG: dict[str, Publication] = {
    name: _parse_publication(name, **entry)
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""The data sets by the name that loaders and commands give them; ``catalog.toml`` lists what is published."""


@dataclass(frozen=True)
class LocatedFiles:
    """A data set on disk: its form, and the path of each file of that form."""

    form: str
    paths: tuple[Path, ...]


def get_cache_folder() -> Path:
    """Return the folder of this package in the user's cache."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "crisptree"


def get_homes(data_home: StrPath | None = None) -> list[Path]:
    """Return the folders of data in search order: ``data_home`` alone if given, else $CRISPTREE_DATA, the cache."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    variable = os.environ.get(VARIABLE)
    return [Path(variable).expanduser(), get_cache_folder()] if variable else [get_cache_folder()]


def get_folders(name: str, data_home: StrPath | None = None) -> list[Path]:
    """Return the folders that may hold the files of ``name``: in each home its own folder, then the home itself."""
    return [folder for home in get_homes(data_home) for folder in (home / name, home)]


def find(name: str, data_home: StrPath | None = None) -> LocatedFiles | None:
    """Return the first complete form of the data set, or None."""
    for folder in get_folders(name, data_home):
        for form, files in CATALOG[name].forms.items():
            paths = tuple(path for names in files if (path := _find_file(folder, names)))
            if len(paths) == len(files):
                return LocatedFiles(form, paths)
    return None


def locate(name: str, data_home: StrPath | None = None) -> LocatedFiles:
    """Return the first complete form of the data set, or raise DataNotFoundError with what helps to get it."""
    files = find(name, data_home)
    if files is None:
        raise DataNotFoundError(_not_found_message(CATALOG[name], data_home))
    return files


def _find_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        path = folder / name
        if path.is_dir() if name.endswith("/") else path.is_file():
            return path
    return None


def _not_found_message(publication: Publication, data_home: StrPath | None) -> str:
    name, places = publication.name, get_folders(publication.name, data_home)
    lines = [f"{name}: its files are not there. In one of the folders"]
    lines += [f"  {place}{'' if place.is_dir() else ' (no such folder)'}" for place in places]
    lines += ["there must be all files of a line, each under one of its names:"]
    lines += ["  " + ", ".join(" or ".join(names) for names in form) for form in publication.forms.values()]
    lines += [
        f"Download with `crisptree data fetch {name}`, or from {publication.page}; or name the folder that has them "
        f"with data_home=… or the environment variable {VARIABLE}."
    ]
    return "\n".join(lines)
