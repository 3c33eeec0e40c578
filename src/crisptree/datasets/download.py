"""Fetching a published file: whole and checked, or not at all. Loaders never come here; `crisptree data fetch` does.

What a server sends is written down and hashed, never unpacked. It has a largest size and a time by which it must be
here, and what the server says of itself is shown without its control characters.
"""

from __future__ import annotations

import hashlib
import http.client
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from crisptree import limits
from crisptree.datasets.catalog import Checksum, PublishedFile
from crisptree.files import checked_size
from crisptree.persistence.writing import written_whole
from crisptree.sanitization import sanitize

TIMEOUT = 30.0
"""Seconds without a byte before the server counts as silent."""

PIECE = 1 << 16
WAITING = 16
"""Pieces that may wait to be written."""

OnBytes = Callable[[int, int | None], None]
"""Receives the bytes so far and, where known, the bytes in all."""


class DownloadError(Exception):
    """A file could not be fetched, or is not the published one; nothing of it was kept."""


@dataclass(frozen=True)
class Receipt:
    """What was fetched, or was there already. Its ``proof`` is "sha256", "md5" where only a hint agrees, or "none"."""

    path: Path
    sha256: str
    proof: str
    fresh: bool

    @property
    def verified(self) -> bool:
        """Whether a checksum that counts is known and agrees."""
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
    """Bring one file into ``folder``, which is made if need be; ``on_bytes`` is told after every piece how far it is.

    ``url`` is another address than the publisher's, whose checksum stays the one that counts. ``unverified`` keeps a
    file whose checksum is not known, or differs from an MD5, which is but a hint; an archive of known content is kept,
    for that content is checked where it is read. ``replace`` fetches even if the file is there. A DownloadError says
    what to do, and nothing half-written is left behind, on an interrupt neither.
    """
    path = folder / file.name
    if path.exists() and not replace:
        try:
            return _receipt(file, path, path, unverified, fresh=False)
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
            return _receipt(file, path, part, unverified, fresh=True)
    except OSError as error:
        raise DownloadError(f"cannot write {path}: {error.strerror or error}.") from error


def _receipt(file: PublishedFile, path: Path, here: Path, unverified: bool, *, fresh: bool) -> Receipt:
    """For a file that lies ``here`` now and will be ``path``."""
    proof = _proof(file, here, unverified)
    return Receipt(path, digest(here, "sha256"), proof, fresh)


def digest(path: Path, algorithm: str) -> str:
    """The digest of the file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _copy(file: PublishedFile, url: str, target: BinaryIO, on_bytes: OnBytes) -> None:
    most = limits.current()
    download = _Download(url, Path(target.name).parent, time.monotonic() + most.download_seconds)
    total, done = download.total(), 0
    expected = file.size if file.size is not None else total
    if file.size is not None and total not in (None, file.size):
        raise DownloadError(f"{url} offers {total:,} bytes; the published file has {file.size:,}.")
    if file.size is None:
        _check_size(total or 0, url, most)
    for piece in download.pieces():
        done += target.write(piece)
        if file.size is None:
            _check_size(done, url, most)
        elif done > file.size:
            raise DownloadError(f"{url} sent more than the {file.size:,} bytes of the published file.")
        on_bytes(done, expected)
    if total is not None and done != total:
        raise DownloadError(f"{url} ended after {done:,} of {total:,} bytes. Try again.")


def _check_size(size: int, url: str, most: limits.Limits) -> None:
    try:
        most.check("download_bytes", size, f"{url} sends {size:,} bytes or more")
    except limits.LimitError as error:
        raise DownloadError(str(error)) from error


class _Download:
    """Pieces of a file from a thread of its own: a server that sends a byte now and then holds up nobody else.

    The caller waits for the next piece until the deadline, and no longer.
    """

    def __init__(self, url: str, folder: Path, deadline: float) -> None:
        self.url, self.folder, self.deadline = url, folder, deadline
        self.waiting: queue.Queue[Any] = queue.Queue(WAITING)
        self.left = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def total(self) -> int | None:
        """The bytes that the server announces, if it does."""
        announced = self._next()
        return int(announced) if announced and announced.isdecimal() and len(announced) < 20 else None

    def pieces(self) -> Iterator[bytes]:
        """What follows, piece by piece."""
        try:
            while piece := self._next():
                yield piece
        finally:
            self.left.set()

    def _next(self) -> Any:
        try:
            found = self.waiting.get(timeout=max(0.0, self.deadline - time.monotonic()))
        except queue.Empty:
            self.left.set()
            raise DownloadError(
                f"{self.url} was not here in time. Try again, or raise the limit download_seconds."
            ) from None
        if isinstance(found, DownloadError):
            raise found
        return found

    def _work(self) -> None:
        try:
            with self._opened() as response:
                self._hand_over(response.headers.get("Content-Length") or "")
                while not self.left.is_set() and (piece := self._piece(response)):
                    self._hand_over(piece)
            self._hand_over(b"")
        except DownloadError as error:
            self._hand_over(error)

    def _hand_over(self, found: Any) -> None:
        while not self.left.is_set():
            try:
                self.waiting.put(found, timeout=1.0)
            except queue.Full:
                continue
            return

    def _opened(self) -> Any:
        by_hand = f"You may also download {self.url} by other means and put it into {self.folder}."
        try:
            request = urllib.request.Request(self.url, headers={"User-Agent": "crisptree"})
            return urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            error.close()
            said = sanitize(str(error.reason))[:200]
            raise DownloadError(f"the server answered {error.code} ({said}) for {self.url}. {by_hand}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            said = sanitize(str(getattr(error, "reason", error)))[:200]
            raise DownloadError(
                f"{self.url} cannot be reached ({said}). Is this machine connected? {by_hand}"
            ) from error

    def _piece(self, response: Any) -> bytes:
        try:
            return bytes(response.read1(PIECE))
        except (OSError, ValueError, http.client.HTTPException) as error:
            said = sanitize(str(error))[:200]
            raise DownloadError(f"the connection to {self.url} broke ({said}). Try again.") from error


def _proof(file: PublishedFile, path: Path, unverified: bool) -> str:
    """The algorithm of the checksum that agrees, or "none"; raises if the file is recognised as another one."""
    try:
        size = checked_size(path)
    except limits.LimitError as error:
        raise DownloadError(f"{path} {error}") from error
    if file.size is not None and size != file.size:
        raise DownloadError(f"{file.name} must have {file.size:,} bytes; it has {size:,}.")
    if file.checksum is None:
        return "none"
    actual = digest(path, file.checksum.algorithm)
    if actual == file.checksum.digest:
        return file.checksum.algorithm
    if file.checksum.confirmed or not unverified:
        raise _mismatch(file.name, file.checksum, actual)
    return "none"


def _mismatch(name: str, expected: Checksum, actual: str) -> DownloadError:
    doubt = "" if expected.confirmed else " As that checksum was never confirmed, `unverified=True` keeps such a file."
    return DownloadError(f"{name} must have {expected}; it has {actual}.{doubt}")
