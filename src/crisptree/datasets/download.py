"""Fetching a published file: whole and checked, or not at all. Loaders never come here; `crisptree data fetch` does."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from crisptree.datasets.catalog import Checksum, PublishedFile
from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.reading import unpacked
from crisptree.persistence.writing import written_whole

TIMEOUT = 30.0
"""Seconds without a byte before the server counts as silent."""

PIECE = 1 << 16

OnBytes = Callable[[int, int | None], None]
"""Receives the bytes so far and, where known, the bytes in all."""


class DownloadError(Exception):
    """A file could not be fetched, or is not the published one; nothing of it was kept."""


@dataclass(frozen=True)
class Receipt:
    """What was fetched, or was there already."""

    path: Path
    sha256: str
    verified: bool
    fresh: bool


def fetch(
    file: PublishedFile,
    folder: Path,
    *,
    url: str | None = None,
    unverified: bool = False,
    replace: bool = False,
    on_bytes: OnBytes = lambda done, total: None,
) -> Receipt:
    """Bring one file into ``folder``, which is made if need be; ``on_bytes`` is told after every piece how far it is.

    ``url`` is another address than the publisher's, whose checksum stays the one that counts. ``unverified`` keeps a
    file whose checksum is not known, or differs from one that was never confirmed; ``replace`` fetches even if the file
    is there. A DownloadError says what to do, and nothing half-written is left behind, on an interrupt neither.
    """
    path = folder / file.name
    if path.exists() and not replace:
        try:
            return Receipt(path, digest(path, "sha256"), _verify(file, path, unverified), fresh=False)
        except DownloadError as error:
            raise DownloadError(f"{path} is there already, but {error} Say `replace=True` to fetch it again.") from None
    if file.checksum is None and file.content is None and not unverified:
        raise DownloadError(
            f"the checksum of {file.name} is not known, so that it cannot be verified. Say `unverified=True` to fetch "
            f"it all the same, from {url or file.url}."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as part:
            with part.open("wb") as target:
                _copy(file, url or file.url, target, on_bytes)
            return Receipt(path, digest(part, "sha256"), _verify(file, part, unverified), fresh=True)
    except OSError as error:
        raise DownloadError(f"cannot write {path}: {error.strerror or error}.") from error


def digest(path: Path, algorithm: str) -> str:
    """The digest of the file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _copy(file: PublishedFile, url: str, target: BinaryIO, on_bytes: OnBytes) -> None:
    with _opened(url, Path(target.name).parent) as response:
        announced = response.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdecimal() else None
        if file.size is not None and total not in (None, file.size):
            raise DownloadError(f"{url} offers {total:,} bytes; the published file has {file.size:,}.")
        done = 0
        while piece := _piece(response, url):
            done += target.write(piece)
            if file.size is not None and done > file.size:
                raise DownloadError(f"{url} sent more than the {file.size:,} bytes of the published file.")
            on_bytes(done, total or file.size)
    if total is not None and done != total:
        raise DownloadError(f"{url} ended after {done:,} of {total:,} bytes. Try again.")


def _opened(url: str, folder: Path) -> Any:
    by_hand = f"You may also download {url} by other means and put it into {folder}."
    request = urllib.request.Request(url, headers={"User-Agent": "crisptree"})
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"the server answered {error.code} ({error.reason}) for {url}. {by_hand}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(f"{url} cannot be reached ({reason}). Is this machine connected? {by_hand}") from error


def _piece(response: Any, url: str) -> bytes:
    try:
        return bytes(response.read(PIECE))
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"the connection to {url} broke ({error}). Try again.") from error


def _verify(file: PublishedFile, path: Path, unverified: bool) -> bool:
    """Whether the file was recognised by a checksum; raises if it is recognised as another one."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise DownloadError(f"{file.name} must have {file.size:,} bytes; it has {size:,}.")
    if file.checksum is not None:
        actual = digest(path, file.checksum.algorithm)
        if actual == file.checksum.digest:
            return True
        if file.checksum.confirmed or not unverified:
            raise _mismatch(file.name, file.checksum, actual)
        return False
    if file.content is not None:
        try:
            inside = unpacked(file.name, path.read_bytes(), file.content.member)
        except DataFormatError as error:
            raise DownloadError(str(error)) from error
        actual = hashlib.new(file.content.checksum.algorithm, inside).hexdigest()
        if actual != file.content.checksum.digest:
            raise _mismatch(f"{file.content.member} in {file.name}", file.content.checksum, actual)
        return True
    return False


def _mismatch(name: str, expected: Checksum, actual: str) -> DownloadError:
    doubt = "" if expected.confirmed else " As that checksum was never confirmed, `unverified=True` keeps such a file."
    return DownloadError(f"{name} must have {expected}; it has {actual}.{doubt}")
