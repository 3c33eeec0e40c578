"""Download of published files with pooch, which verifies their checksums. Only `crisptree data fetch` does this."""

from __future__ import annotations

from pathlib import Path

from crisptree.datasets.catalog import PublishedFile


class DownloadError(Exception):
    """A file could not be fetched, or is not the published one; nothing of it was kept."""


def fetch(file: PublishedFile, folder: Path) -> Path:
    """Download one file into ``folder`` unless it is there already, and return its path.

    A file whose checksum is not known is verified by the loader that reads it.
    """
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise DownloadError("downloads need pooch; install it with: pip install 'crisptree[datasets]'.") from error
    try:
        return Path(pooch.retrieve(file.url, file.checksum, fname=file.name, path=folder))
    except (OSError, ValueError) as error:
        raise DownloadError(
            f"{file.url} cannot be fetched ({error}). You may also download it by other means and put it into {folder}."
        ) from error
