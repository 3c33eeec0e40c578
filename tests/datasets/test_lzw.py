import shutil
import subprocess

import numpy as np
import pytest

from crisptree.datasets import DataFormatError
from crisptree.datasets.files import LZW_MAGIC, decompress_lzw
from tests.datasets.writers import compress

TEXT = b"".join(np.random.default_rng(0).choice([b"b,", b"o,", b"x,", b"win\n"], 60_000, p=[0.6, 0.2, 0.15, 0.05]))
NOISE = np.random.default_rng(1).bytes(40_000)
OPTIONS = [{}, {"widest": 12}, {"block_mode": False}, {"clear_every": 700}, {"widest": 10, "clear_every": 1001}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("data", [b"", b"a", b"aaaaaaaaaa", TEXT, NOISE], ids=["empty", "a", "run", "text", "noise"])
def test_what_was_compressed_comes_back(data, options):
    assert decompress_lzw(compress(data, **options)) == data


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip is the judge here")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("data", [TEXT, NOISE], ids=["text", "noise"])
def test_gzip_reads_the_test_files_alike(data, options):
    judge = subprocess.run(["gzip", "-dc"], input=compress(data, **options), capture_output=True, check=True)
    assert judge.stdout == data


def test_a_file_of_another_kind_is_refused():
    with pytest.raises(DataFormatError, match="must begin with the bytes 1f 9d"):
        decompress_lzw(b"PK\x03\x04")
    with pytest.raises(DataFormatError, match="codes of 9 to 16 bits"):
        decompress_lzw(LZW_MAGIC + b"\x9f")


def test_an_impossible_code_is_refused():
    impossible = LZW_MAGIC + b"\x90" + (400).to_bytes(2, "little")
    with pytest.raises(DataFormatError, match="code 400 of 257"):
        decompress_lzw(impossible)
