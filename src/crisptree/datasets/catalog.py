"""What is published: for each data set its files, their sizes and checksums, and how many rows they hold.

Nothing here is guessed. A size or checksum that is not established is None, and users are told so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Checksum:
    """A digest, and whether it was confirmed by more than one listing; an MD5, which can be forged, never is."""

    algorithm: str
    digest: str
    confirmed: bool = True

    def __str__(self) -> str:
        return f"{self.algorithm} {self.digest}" + ("" if self.confirmed else " (from one listing, a hint only)")


@dataclass(frozen=True)
class Content:
    """The file inside an archive: for archives whose own checksum is not known."""

    member: str
    size: int
    checksum: Checksum


@dataclass(frozen=True)
class PublishedFile:
    """One file as its publisher gives it."""

    name: str
    url: str
    size: int | None = None
    checksum: Checksum | None = None
    content: Content | None = None

    def __str__(self) -> str:
        size = f"{self.size:,} bytes" if self.size is not None else "size not known"
        checksum = str(self.checksum) if self.checksum else "checksum not known"
        if self.content:
            checksum += f" (but of {self.content.member} inside: {self.content.size:,} bytes, {self.content.checksum})"
        return f"{self.name}: {size}, {checksum}"


Form = tuple[tuple[str, ...], ...]
"""One way in which data lies on disk: for each file that is needed, the names it may have (a folder's end in /)."""


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


def _checksum(facts: dict[str, Any]) -> Checksum | None:
    if "sha256" in facts:
        return Checksum("sha256", facts["sha256"])
    return Checksum("md5", facts["md5"], confirmed=False) if "md5" in facts else None


def _file(name: str, folder: str, facts: dict[str, Any]) -> PublishedFile:
    inside = facts.get("content")
    content = Content(inside["member"], inside["size"], Checksum("sha256", inside["sha256"])) if inside else None
    return PublishedFile(name, f"{folder}/{name}", facts.get("size"), _checksum(facts), content)


def _publication(name: str, title: str, page: str, rows: dict[str, int], **more: Any) -> Publication:
    files = tuple(_file(file, more["folder"], facts) for file, facts in more.get("files", {}).items())
    forms = {form: tuple(map(tuple, needed)) for form, needed in more.get("forms", {}).items()}
    counts = {part: tuple(counts) for part, counts in more.get("class_counts", {}).items()}
    return Publication(name, title, page, files, forms, rows, counts)


CATALOG: dict[str, Publication] = {
    name: _publication(name, **entry)
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""The data sets by the name that loaders and commands give them; ``catalog.toml`` lists what is published."""
