import contextlib
import functools
import gzip
import hashlib
import http.server
import os
import sys
import threading
import zipfile

import pytest

from crisptree import limits
from crisptree.datasets.catalog import Checksum, Content, PublishedFile
from crisptree.datasets.download import DownloadError, fetch

pytest.importorskip("pooch", reason="needs the extra: pip install crisptree[datasets]")

DATA = bytes(range(256)) * 1000
SHA256 = Checksum("sha256", hashlib.sha256(DATA).hexdigest())


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; what lies under /short/ breaks off after half of what it announced."""

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        if self.path in SERVED:
            return SERVED[self.path](self)
        if not self.path.startswith("/short/"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA[: len(DATA) // 2])
        return None


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(1000):
            handler.wfile.write(DATA)


SERVED = {
    "/endless": endless,
    "/pot": lambda handler: handler.wfile.write(b"HTTP/1.0 418 a \x1b[2Jpot\r\n\r\n"),
}


def send_packed(handler, data):
    """Compressed though the client asked for plain bytes."""
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    with contextlib.suppress(OSError):
        handler.wfile.write(data)


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """A client that hangs up is what some tests are about."""


@pytest.fixture
def site(tmp_path):
    """A folder, and its address on a server of our own."""
    root = tmp_path / "site"
    root.mkdir()
    with QuietServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield root, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def published_file(site):
    root, address = site
    (root / "rows.bin").write_bytes(DATA)
    return PublishedFile("rows.bin", f"{address}/rows.bin", len(DATA), SHA256)


def changed(file, **changes):
    return PublishedFile(**{**vars(file), **changes})


def test_a_verified_file_is_written_and_progress_is_reported(published_file, tmp_path):
    steps = []
    receipt = fetch(published_file, tmp_path / "new" / "home", on_bytes=lambda *step: steps.append(step))
    assert receipt.path.read_bytes() == DATA
    assert receipt.sha256 == SHA256.digest
    assert receipt.verified
    assert receipt.fresh
    assert steps[-1] == (len(DATA), len(DATA))
    assert [path.name for path in receipt.path.parent.iterdir()] == ["rows.bin"]


def test_an_existing_file_is_not_downloaded_again(published_file, tmp_path):
    fetch(published_file, tmp_path)
    elsewhere = changed(published_file, url="http://127.0.0.1:1/")
    again = fetch(elsewhere, tmp_path)
    assert again.verified
    assert not again.fresh
    with pytest.raises(DownloadError, match="cannot be reached"):
        fetch(elsewhere, tmp_path, replace=True)
    assert (tmp_path / "rows.bin").read_bytes() == DATA


def test_an_existing_file_with_another_checksum_is_kept_unless_replaced(published_file, tmp_path):
    (tmp_path / "rows.bin").write_bytes(b"mine")
    with pytest.raises(DownloadError, match=r"is there already, but .* `replace=True`"):
        fetch(published_file, tmp_path)
    assert (tmp_path / "rows.bin").read_bytes() == b"mine"
    assert fetch(published_file, tmp_path, replace=True).verified


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checksum": Checksum("sha256", "0" * 64)}, "must have sha256 0000"),
        ({"checksum": Checksum("md5", "0" * 32)}, "`unverified=True` keeps such a file"),
        ({"size": 7}, "offers 256,000 bytes; the published file has 7"),
        ({"checksum": None}, "checksum of rows.bin is not known"),
    ],
)
def test_a_file_with_another_size_or_checksum_is_discarded(published_file, tmp_path, changes, message):
    home = tmp_path / "home"
    with pytest.raises(DownloadError, match=message):
        fetch(changed(published_file, **changes), home)
    assert not home.exists() or not list(home.iterdir())


def test_unverified_files_must_match_a_confirmed_checksum(published_file, tmp_path):
    with pytest.raises(DownloadError, match="must have sha256"):
        fetch(changed(published_file, checksum=Checksum("sha256", "0" * 64)), tmp_path, unverified=True)


@pytest.mark.parametrize("checksum", [None, Checksum("md5", "0" * 32)], ids=["unknown", "doubtful"])
def test_an_unverified_file_is_kept_on_request(published_file, tmp_path, checksum):
    receipt = fetch(changed(published_file, checksum=checksum), tmp_path, unverified=True)
    assert not receipt.verified
    assert receipt.sha256 == SHA256.digest


def test_a_download_is_not_unpacked(site, tmp_path, monkeypatch):
    root, address = site
    file = PublishedFile("a.zip", f"{address}/a.zip", content=Content("rows.data", len(DATA), SHA256))
    (root / "a.zip").write_bytes(b"no archive at all")

    def unpacked(*arguments, **more):
        raise AssertionError("fetching unpacks")

    monkeypatch.setattr(zipfile, "ZipFile", unpacked)
    receipt = fetch(file, tmp_path)
    assert receipt.path.read_bytes() == b"no archive at all"
    assert not receipt.verified, "what is inside is checked by whoever reads it"


def test_a_matching_md5_is_reported_as_proof_but_not_as_verified(published_file, tmp_path):
    md5 = Checksum("md5", hashlib.md5(DATA).hexdigest())
    receipt = fetch(changed(published_file, checksum=md5), tmp_path)
    assert not receipt.verified
    assert receipt.proof == "md5"


@pytest.mark.parametrize("place", ["rows.bin", "endless"])
def test_a_file_of_unknown_size_is_limited(site, published_file, tmp_path, place):
    file = changed(published_file, url=f"{site[1]}/{place}", size=None)
    with limits.changed(download_bytes=100_000), pytest.raises(DownloadError, match="more than the limit of 100,000"):
        fetch(file, tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())


def test_control_characters_of_a_server_are_escaped(site, published_file, tmp_path):
    with pytest.raises(DownloadError, match=r"answered 418 \(a \\x1b\[2Jpot\)"):
        fetch(changed(published_file, url=f"{site[1]}/pot"), tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes in folders")
def test_an_existing_pipe_is_rejected(published_file, tmp_path):
    os.mkfifo(tmp_path / "rows.bin")
    with pytest.raises(DownloadError, match="must be a regular file"):
        fetch(published_file, tmp_path)


def test_a_broken_connection_leaves_nothing(site, published_file, tmp_path):
    for size in (len(DATA), None):
        with pytest.raises(DownloadError, match="Try again"):
            fetch(changed(published_file, url=f"{site[1]}/short/rows.bin", size=size), tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())


def test_an_interrupt_leaves_nothing(published_file, tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        fetch(published_file, tmp_path / "home", on_bytes=interrupt)
    assert not list((tmp_path / "home").iterdir())


def test_errors_of_server_and_network_are_distinguished(site, published_file, tmp_path):
    with pytest.raises(DownloadError, match=r"answered 404 .* by other means and put it into"):
        fetch(changed(published_file, url=f"{site[1]}/none.bin"), tmp_path)
    with pytest.raises(DownloadError, match=r"cannot be reached .* Is this machine connected"):
        fetch(changed(published_file, url="http://127.0.0.1:1/rows.bin"), tmp_path)


def test_a_folder_that_cannot_be_created_is_named(published_file, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError, match=r"cannot write .*file"):
        fetch(published_file, tmp_path / "file" / "home")


def test_without_pooch_the_extra_is_named_and_a_local_mirror_still_works(published_file, tmp_path, site, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DownloadError, match=r"need pooch.*crisptree\[datasets\].* by other means"):
        fetch(published_file, tmp_path)
    assert not list(tmp_path.glob("rows.bin*"))
    assert fetch(published_file, tmp_path, url=(site[0] / "rows.bin").as_uri()).verified


def test_a_compressed_response_is_limited(site, published_file, tmp_path, monkeypatch):
    packed = gzip.compress(bytes(10**7))
    monkeypatch.setitem(SERVED, "/packed", functools.partial(send_packed, data=packed))
    file = changed(published_file, url=f"{site[1]}/packed", size=None)
    with limits.changed(download_bytes=10**6), pytest.raises(DownloadError, match="more than the limit of 1,000,000"):
        fetch(file, tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())
