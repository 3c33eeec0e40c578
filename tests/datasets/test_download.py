import functools
import hashlib
import http.server
import threading

import pytest

from crisptree.datasets.catalog import PublishedFile
from crisptree.datasets.download import DownloadError, fetch

pytest.importorskip("pooch", reason="needs the extra: pip install crisptree[datasets]")

DATA = bytes(range(256)) * 1000
CHECKSUM = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The address of a server on this machine that has the file ``data``."""
    monkeypatch.setenv("no_proxy", "*")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "data").write_bytes(DATA)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def published(server, name="data", **facts):
    return PublishedFile(name, f"{server}/{name}", **{"size": len(DATA), "checksum": CHECKSUM} | facts)


@pytest.mark.parametrize("checksum", [CHECKSUM, f"md5:{hashlib.md5(DATA).hexdigest()}", None])
def test_a_published_file_is_fetched_once(server, tmp_path, checksum):
    file = published(server, checksum=checksum)
    path = fetch(file, tmp_path / "home")
    assert path == tmp_path / "home" / "data"
    assert path.read_bytes() == DATA
    (tmp_path / "site" / "data").unlink()
    assert fetch(file, tmp_path / "home") == path


def test_another_file_than_the_published_one_is_not_kept(server, tmp_path):
    with pytest.raises(DownloadError, match=f"{server}/data cannot be fetched .*put it into .*home"):
        fetch(published(server, checksum="sha256:" + "0" * 64), tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())


def test_a_missing_file_and_a_missing_server_are_errors(server, tmp_path):
    for file in (published(server, "absent"), PublishedFile("data", "http://127.0.0.1:1/data")):
        with pytest.raises(DownloadError, match="cannot be fetched"):
            fetch(file, tmp_path / "home")
