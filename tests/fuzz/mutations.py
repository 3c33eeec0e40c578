"""Files changed by chance: bytes of any file, words of a text, what stands inside a container that is sealed anew."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from crisptree.persistence import model_file

Mutation = Callable[[bytes, np.random.Generator], bytes]

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
WORDS = (
    b"",
    b"nan",
    b"inf",
    b"1e400",
    b"-1",
    b"99999999999999999999",
    b"\x00",
    b'"',
    b",",
    b":",
    b"\n",
    b"\xff",
    b"=1",
)
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**9, 10**30, -(2**63), 1e308, "", "x" * 300, "\ud800", "\x1b[2J"),
    *([], {}, [1, 1.5, 2], [[1], 2], {"values": [1, 1.5, 2], "type": "int64"}, {"float": "nan"}, {"pairs": [1]}),
)
EXTREMES = (0.0, -0.0, 1e-300, 1e-30, 3e38, -3e38, 1e308, -1e308, np.nan, np.inf, -1.0, 2.0)


def changed_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes: a bit, a byte, a number, a cut, noise, a piece repeated or left out."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(max(1, len(changed))))
        if rng.random() < 0.5:  # where formats say what follows
            place = min(place, int(rng.integers(64)))
        if not changed:
            return b""
        kind = rng.integers(8)
        if kind == 0:
            changed[place % len(changed)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[place % len(changed)] = int(rng.integers(256))
        elif kind == 2:
            size, order = int(rng.choice([2, 4, 8])), str(rng.choice(["little", "big"]))
            number = NUMBERS[rng.integers(len(NUMBERS))] % 2 ** (8 * size)
            changed[place : place + size] = number.to_bytes(size, order)  # type: ignore[arg-type]
        elif kind == 3:
            del changed[place:]
        elif kind == 4:
            noise = rng.integers(0, 256, int(rng.integers(1, 32)), dtype=np.uint8).tobytes()
            changed[place : place + len(noise)] = noise
        elif kind == 5:
            length = int(rng.integers(1, 64))
            changed[place:place] = changed[place : place + length] * int(rng.integers(1, 8))
        elif kind == 6:
            del changed[place : place + int(rng.integers(1, 64))]
        else:
            changed += data[: int(rng.integers(len(data) + 1))]
    return bytes(changed)


def changed_words(data: bytes, rng: np.random.Generator) -> bytes:
    """A value of a text replaced, or its bytes changed."""
    if rng.random() < 0.4:
        return changed_bytes(data, rng)
    separators = b",:\n "
    places = [place for place, byte in enumerate(data) if byte in separators]
    at = int(rng.integers(len(places) - 1))
    word = WORDS[rng.integers(len(WORDS))]
    return data[: places[at] + 1] + word + data[places[at + 1] :]


def packed_anew(unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], inner: Mutation) -> Mutation:
    """What is inside is changed and packed again, so that a checksum of the outside agrees; or the outside itself."""

    def mutate(data: bytes, rng: np.random.Generator) -> bytes:
        return pack(inner(unpack(data), rng)) if rng.random() < 0.5 else changed_bytes(data, rng)

    return mutate


def changed_archive(data: bytes, rng: np.random.Generator) -> bytes:
    """A member of a .zip or .npz changed, the archive in order; or its bytes."""
    if rng.random() < 0.4:
        return changed_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = list(members)[rng.integers(len(members))]
    members[chosen] = _changed_npy(members[chosen], rng) if rng.random() < 0.5 else changed_bytes(members[chosen], rng)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def _changed_npy(data: bytes, rng: np.random.Generator) -> bytes:
    """The shape or type that an .npy claims."""
    start, end = data.find(b"{"), data.find(b"}") + 1
    if start < 0 or not end:
        return changed_bytes(data, rng)
    shapes = ("(0, 1000000000000000000)", "(1000000000000000000, 0)", "(2147483648, 1024)", "(-1, 4)", "()", "(1,)")
    types = ("'|O'", "'<U1000000000'", "'<M8[ns]'", "'<f2'", "'<c16'", "'|V8'", "[('a', '<f8')]", "'<f16'", "'|S8'")
    said = f"{{'descr': {rng.choice(['<f8', *types])!s}, 'fortran_order': False, 'shape': {rng.choice(shapes)!s}, }}"
    said = said.replace(": <f8", ": '<f8'")
    text = said.encode().ljust(end - start)[: max(end - start, len(said))]
    return data[:8] + (len(text) + 1).to_bytes(2, "little") + text + b"\n" + data[end:].lstrip(b" \n")


def resealed(data: bytes, rng: np.random.Generator) -> bytes:
    """A model file with one or two of its arrays or words changed, and a checksum that agrees again."""
    length = int.from_bytes(data[:8], "little")
    outer = json.loads(data[8 : 8 + length])
    body = bytearray(data[8 + length :])
    header = json.loads(outer["__metadata__"][model_file.KEY])
    names = [name for name in outer if name != "__metadata__"]
    for _ in range(rng.integers(1, 3)):
        kind = rng.integers(5)
        if kind < 2:
            _change_array(outer[names[rng.integers(len(names))]], body, rng)
        elif kind == 2:
            _change_leaf(header, rng)
        elif kind == 3:
            entry = outer[names[rng.integers(len(names))]]
            entry["shape"] = [max(0, side + int(rng.integers(-1, 2))) for side in entry["shape"]][
                :: rng.choice([1, -1])
            ]
        else:
            one, other = (names[place] for place in rng.integers(len(names), size=2))
            outer[one] = outer[other]
    outer["__metadata__"] = {model_file.KEY: json.dumps(header), model_file.DIGEST: model_file.NO_DIGEST}
    text = json.dumps(outer, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    sealed = len(text).to_bytes(8, "little") + text + bytes(body)
    digest = model_file._checksum(sealed, model_file.NO_DIGEST)
    return model_file._with_digest(sealed, model_file.NO_DIGEST, digest)


def _change_array(entry: dict[str, Any], body: bytearray, rng: np.random.Generator) -> None:
    start, end = entry["data_offsets"]
    kind = {"F32": np.float32, "F64": np.float64, "I32": np.int32}.get(entry["dtype"], np.uint8)
    array = np.frombuffer(bytes(body[start:end]), dtype=kind).copy()
    if not len(array):
        return
    places = rng.integers(len(array), size=int(rng.integers(1, 4))) if rng.random() < 0.7 else slice(None)
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind == "f":
            array[places] = np.array(EXTREMES[rng.integers(len(EXTREMES))]).astype(kind)
        else:
            array[places] = np.array(int(rng.integers(-6, 8))).astype(kind)
    body[start:end] = array.tobytes()


def _change_leaf(content: Any, rng: np.random.Generator) -> None:
    """Go down a JSON document by chance and put something else in a place."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(content[key], dict | list) and content[key] and rng.random() < 0.8:
            content = content[key]
            continue
        content[key] = JSON_VALUES[rng.integers(len(JSON_VALUES))]
        return
