"""Where files are looked for, and what is said when they are not there."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from crisptree.datasets.catalog import CATALOG, Publication
from crisptree.datasets.errors import DataNotFoundError

VARIABLE = "CRISPTREE_DATA"
"""The environment variable that names the user's folder of data."""

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Found:
    """A data set on disk: the form that it has and the path of each file of that form."""

    form: str
    paths: tuple[Path, ...]


def cache_folder() -> Path:
    """The folder of this package in the user's cache, where the system keeps such things."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "crisptree"


def homes(data_home: StrPath | None = None) -> list[Path]:
    """The folders of data in the order of the search: ``data_home`` alone if given, else $CRISPTREE_DATA, the cache.

    Examples
    --------
    >>> [home.name for home in homes("my/data")]
    ['data']
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    variable = os.environ.get(VARIABLE)
    return [Path(variable).expanduser(), cache_folder()] if variable else [cache_folder()]


def folders(name: str, data_home: StrPath | None = None) -> list[Path]:
    """The folders that may hold the files of ``name``: in each home its own folder, then the home itself."""
    return [folder for home in homes(data_home) for folder in (home / name, home)]


def look_for(name: str, data_home: StrPath | None = None) -> Found | None:
    """The first complete form of the data set, or None."""
    for folder in folders(name, data_home):
        for form, files in CATALOG[name].forms.items():
            paths = tuple(path for names in files if (path := _first_file(folder, names)))
            if len(paths) == len(files):
                return Found(form, paths)
    return None


def locate(name: str, data_home: StrPath | None = None) -> Found:
    """The first complete form of the data set; raises DataNotFoundError with all that helps to get it."""
    found = look_for(name, data_home)
    if found is None:
        raise DataNotFoundError(_not_found_message(CATALOG[name], data_home))
    return found


def _first_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        path = folder / name
        if path.is_dir() if name.endswith("/") else path.is_file():
            return path
    return None


def _not_found_message(publication: Publication, data_home: StrPath | None) -> str:
    name, places = publication.name, folders(publication.name, data_home)
    lines = [f"{name}: its files are not there. The publisher's files are"]
    lines += [f"  {file}" for file in publication.files]
    lines += ["In one of these folders there must be all files of a line, each under one of its names:"]
    lines += ["  " + ", ".join(" or ".join(names) for names in form) for form in publication.forms.values()]
    lines += ["It was looked for in"]
    lines += [f"  {place}{'' if place.is_dir() else ' (no such folder)'}" for place in places]
    wanted = [names for form in publication.forms.values() for names in form]
    there = {str(path) for place in places for names in wanted if (path := _first_file(place, names))}
    if there:
        lines += ["Only these are there:", *(f"  {path}" for path in sorted(there))]
    lines += [
        f"Download with `crisptree data fetch {name}`, or from {publication.page}; or name the folder that has them "
        f"with data_home=… or the environment variable {VARIABLE}."
    ]
    return "\n".join(lines)
