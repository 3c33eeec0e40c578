"""Small files in the form of the publishers, for tests."""

import bz2
import gzip

import numpy as np


def write_idx(path, array):
    """An idx file of bytes; compressed if its name ends in .gz."""
    array = np.asarray(array, dtype=np.uint8)
    data = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_libsvm(path, X, y, pair="{}:{:.6g}"):
    """LIBSVM text without its zeros; compressed if the name ends in .bz2."""
    rows = [
        " ".join([str(label), *(pair.format(j + 1, value) for j, value in enumerate(row) if value)])
        for row, label in zip(X, y, strict=True)
    ]
    data = "".join(f"{row} \n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(data) if path.suffix == ".bz2" else data)


def write_mnist(folder, X, y, X_test, y_test, ending=".gz"):
    """The four files of MNIST or Fashion-MNIST."""
    for name, array in (
        ("train-images-idx3-ubyte", X),
        ("train-labels-idx1-ubyte", y),
        ("t10k-images-idx3-ubyte", X_test),
        ("t10k-labels-idx1-ubyte", y_test),
    ):
        write_idx(folder / (name + ending), array)


def compress(data):
    """What Unix ``compress`` writes: codes of 9 to 16 bits in groups of eight, without ever emptying the table."""
    out, group, width, emitted = bytearray(b"\x1f\x9d\x90"), [], 9, 0

    def flush(n_bytes):
        out.extend(sum(code << at * width for at, code in enumerate(group)).to_bytes(n_bytes, "little"))
        group.clear()

    def emit(code):
        nonlocal width, emitted
        if width < 16 and 257 + max(emitted - 1, 0) >= 1 << width:
            if group:
                flush(width)
            width += 1
        group.append(code)
        emitted += 1
        if len(group) == 8:
            flush(width)

    codes, word = {bytes([i]): i for i in range(256)}, b""
    for byte in data:
        longer = word + bytes([byte])
        if longer in codes:
            word = longer
            continue
        emit(codes[word])
        if 1 + len(codes) < 1 << 16:
            codes[longer] = 1 + len(codes)
        word = bytes([byte])
    if word:
        emit(codes[word])
    if group:
        flush((len(group) * width + 7) // 8)
    return bytes(out)
