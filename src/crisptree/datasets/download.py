"""Download of published files with pooch: whole and checked, or not at all. Only `crisptree data fetch` does this.

What a server sends is written and hashed, never unpacked. It has a maximum size, and what the server says of itself is
shown without its control characters.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from crisptree import limits
from crisptree.datasets.catalog import PublishedFile
from crisptree.files import atomic_write, checked_size
from crisptree.sanitization import sanitize

TIMEOUT = 30.0
"""Seconds without a byte after which the connection is closed."""

CHUNK_BYTES = 1 << 16

OnBytes = Callable[[int, int | None], None]
"""Called with the bytes so far and, where known, the total."""


class DownloadError(Exception):
    """A file could not be fetched, or is not the published one; nothing of it was kept."""


@dataclass(frozen=True)
class Receipt:
    """A downloaded or existing file, whose checksum of the algorithm ``proof`` agrees; "none" if none does."""

    path: Path
    sha256: str
    proof: str
    fresh: bool

    @property
    def verified(self) -> bool:
        """Return True if a confirmed checksum agrees."""
        return self.proof == "sha256"


def fetch(
    file: PublishedFile,
    folder: Path,
    *,
    url: str | None = None,
    unverified: bool = False,
    replace: bool = False,
    on_bytes: OnBytes = lambda done, total: None,
) -> Receipt:
    """Download one file into ``folder``, which is created if need be; no partial file is left behind.

    ``url`` is another address than the publisher's, whose checksum still holds. ``unverified`` keeps a file whose
    checksum is unknown, or differs from an MD5. The content of an archive is verified when it is read. ``replace``
    downloads even if the file exists.
    """
    path = folder / file.name
    if path.exists() and not replace:
        try:
            proof = _verify(file, path, unverified)
            return Receipt(path, compute_digest(path, "sha256"), proof, fresh=False)
        except DownloadError as error:
            raise DownloadError(f"{path} is there already, but {error} Say `replace=True` to fetch it again.") from None
    if file.checksum is None and file.content is None and not unverified:
        raise DownloadError(
            f"the checksum of {file.name} is not known, so that it cannot be verified. Say `unverified=True` to fetch "
            f"it all the same, from {url or file.url}."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            with part.open("wb") as target:
                _download(Sink(file, url or file.url, target, on_bytes), folder)
            proof = _verify(file, part, unverified)
            return Receipt(path, compute_digest(part, "sha256"), proof, fresh=True)
    except OSError as error:
        raise DownloadError(f"cannot write {path}: {error.strerror or error}.") from error


def compute_digest(path: Path, algorithm: str) -> str:
    """Return the digest of the file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


class Sink:
    """The file and progress bar that pooch is given: enforces the size of the file."""

    def __init__(self, file: PublishedFile, url: str, target: BinaryIO, on_bytes: OnBytes) -> None:
        self.file, self.url, self.target, self.on_bytes = file, url, target, on_bytes
        self.limits, self.n_bytes = limits.current(), 0
        self._total: int | None = None

    @property
    def total(self) -> int | None:
        """Return the size that the server announces, if it does."""
        return self._total

    @total.setter
    def total(self, announced: int) -> None:
        self._total = announced or None
        if announced and self.file.size not in (None, announced):
            raise DownloadError(f"{self.url} offers {announced:,} bytes; the published file has {self.file.size:,}.")
        self._check_size(announced)

    def write(self, data: bytes) -> int:
        """Write a chunk, unless it makes the file too large."""
        self.n_bytes += self.target.write(data)
        self._check_size(self.n_bytes)
        self.on_bytes(self.n_bytes, self.file.size or self._total)
        return len(data)

    def flush(self, n_bytes: int = 0) -> None:
        """Do nothing: ``write`` reports progress, and closing the file flushes it."""

    update = reset = close = flush

    def _check_size(self, size: int) -> None:
        if self.file.size is None:
            try:
                self.limits.check("download_bytes", size, f"{self.url} sends {size:,} bytes or more")
            except limits.LimitError as error:
                raise DownloadError(str(error)) from error
        elif size > self.file.size:
            raise DownloadError(f"{self.url} sent more than the {self.file.size:,} bytes of the published file.")


def _download(sink: Sink, folder: Path) -> None:
    by_hand = f"You may also download {sink.url} by other means and put it into {folder}."
    if sink.url.startswith("file:"):
        path = Path(url2pathname(urlsplit(sink.url).path))
        if not path.is_file():
            raise DownloadError(f"{sink.url} cannot be reached (there is no such file). {by_hand}")
        with path.open("rb") as source:
            shutil.copyfileobj(source, sink, CHUNK_BYTES)
        return
    try:
        import pooch
        from requests import HTTPError, RequestException
    except ModuleNotFoundError as error:
        raise DownloadError(
            f"downloads need pooch; install it with: pip install 'crisptree[datasets]'. {by_hand}"
        ) from error
    responses: list[Any] = []  # pooch does not close those that it does not read to the end

    def keep(response: Any, *_: Any, **__: Any) -> None:
        responses.append(response)

    options = {"headers": {"User-Agent": "crisptree", "Accept-Encoding": "identity"}, "hooks": {"response": keep}}
    try:
        pooch.HTTPDownloader(progressbar=sink, chunk_size=CHUNK_BYTES, timeout=TIMEOUT, **options)(sink.url, sink, None)
    except HTTPError as error:
        response: Any = error.response
        reason = sanitize(str(response.reason))[:200]
        raise DownloadError(
            f"the server answered {response.status_code} ({reason}) for {sink.url}. {by_hand}"
        ) from error
    except (RequestException, ValueError) as error:
        reason = sanitize(str(error))[:200]
        if responses:
            raise DownloadError(f"the connection to {sink.url} broke ({reason}). Try again.") from error
        raise DownloadError(f"{sink.url} cannot be reached ({reason}). Is this machine connected? {by_hand}") from error
    finally:
        for response in responses:
            response.close()


def _verify(file: PublishedFile, path: Path, unverified: bool) -> str:
    """Return the algorithm of the checksum that agrees, or "none"; raise if the file is not the published one."""
    try:
        size = checked_size(path)
    except limits.LimitError as error:
        raise DownloadError(f"{path} {error}") from error
    if file.size is not None and size != file.size:
        raise DownloadError(f"{file.name} must have {file.size:,} bytes; it has {size:,}.")
    if file.checksum is None:
        return "none"
    actual = compute_digest(path, file.checksum.algorithm)
    if actual == file.checksum.digest:
        return file.checksum.algorithm
    if unverified and not file.checksum.confirmed:
        return "none"
    remedy = " As that checksum was never confirmed, `unverified=True` keeps such a file."
    raise DownloadError(
        f"{file.name} must have {file.checksum}; it has {actual}.{'' if file.checksum.confirmed else remedy}"
    )
