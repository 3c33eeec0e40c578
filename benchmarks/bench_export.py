"""Size, speed and agreement of exports: C99 and ONNX of a tree of MNIST at depth 8, with all and with few terms.

    CRISPTREE_DATA=/folder/with/mnist.npz python benchmarks/bench_export.py

Writes docs/results/export.md. The models are trained first (see ``models``; many minutes on one core) and kept in
build/bench_export. arm-none-eabi-gcc and skl2onnx (pip install --group baselines) take part where they are
installed; one thread everywhere.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import shutil
import subprocess
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from timing import medians, table

import crisptree
from crisptree import CrispTreeClassifier, export
from crisptree.export import Portable
from crisptree.export.c99.header import DeviceCost, make_header
from crisptree.export.c99.quantization import quantize
from crisptree.export.c99.runner import DTYPES, ParsedHeader, find_compiler
from crisptree.export.onnx_graph import render
from crisptree.structure import TreeStructure

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "bench_export"
PAGE = ROOT / "docs" / "results" / "export.md"
FLASH = 32_000
TERMS = (64, 80)
AT_ONCE = 100
"""Rows of one measurement in C: short enough that others rarely interrupt it."""

DEEP = 12
FORMS = ("ensemble", "paths")

ASK = """
int32_t ask(const {type} *rows, int32_t n);
int32_t ask(const {type} *rows, int32_t n)
{{
    int32_t i, sum = 0;
    for (i = 0; i < n; ++i) sum += {name}_predict(rows + i * {width});
    return sum;
}}
"""


def data() -> tuple[tuple[Any, Any], tuple[Any, Any], Any, Any]:
    """Training rows, held-out rows, test rows and labels."""
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as file:
        X, X_test = (file[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
        y, y_test = file["y_train"], file["y_test"]
    return (X[:50_000], y[:50_000]), (X[50_000:], y[50_000:]), X_test, y_test


def models() -> dict[str, Any]:
    """A tree of depth 8, and the same with few terms: of ``TERMS`` those that are best on the held-out
    training rows once the tree is pruned until its int8 header takes ``FLASH`` bytes. Test rows choose nothing.
    """
    train, held, _, _ = data()
    quick = {"epochs": 5, "finetune_epochs": 10, "batch_size": 1000, "learning_rate": 0.005}
    plain = {"algorithm": "em", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0, "learning_rate_decay": "none"}
    tree = CrispTreeClassifier.from_flat(max_depth=8, split="oblique", scale="global", random_state=0, **plain, **quick)
    full = kept("whole", lambda: tree.fit(*train))

    def small(terms: int) -> Any:
        few = clone(tree).set_params(max_features_per_split=terms)
        return fitting(kept(f"terms{terms}", lambda: few.fit(*train)))

    tried = {terms: small(terms) for terms in TERMS}
    scores = {terms: model.score(*held) for terms, model in tried.items()}
    print({"held out, all terms": full.score(*held), "held out, by terms": scores}, flush=True)
    terms = max(scores, key=lambda number: scores[number])
    return {"all": full, f"at most {terms}": tried[terms]}


def fitting(model: Any) -> Any:
    """Prune the model as little as makes its int8 header fit."""
    alphas = model.cost_complexity_pruning_path().ccp_alphas
    place = bisect_left(alphas, True, key=lambda alpha: flash(model.prune(alpha)) <= FLASH)
    return model.prune(alphas[place])


def kept(name: str, make: Callable[[], Any]) -> Any:
    """Load a model from its file, which is made first if it does not exist."""
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / f"{name}.crisp"
    if not file.exists():
        print(f"making {name}", flush=True)
        make().save(file)
    return crisptree.load(file)


def flash(model: Any) -> int:
    """Bytes of the int8 header, as the exporter says."""
    portable = Portable.of(model)
    return DeviceCost.of(portable, make_header(portable, "model", "int8", "auto")).flash


def timed_program(text: str, X: Any, folder: Path) -> Callable[[], Any]:
    """Return a call that predicts the next ``AT_ONCE`` rows by the compiled header."""
    header = ParsedHeader.of(text)
    (folder / "model.h").write_text(text)
    ask = ASK.format(type=header.row_type, name=header.name, width=X.shape[1])
    (folder / "ask.c").write_text(f'#define {header.name.upper()}_IMPLEMENTATION\n#include "model.h"\n{ask}')
    library = folder / "ask.so"
    command = [find_compiler(), "-std=c99", "-O3", "-shared", "-fPIC", str(folder / "ask.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    rows = np.ascontiguousarray(X.astype(DTYPES[header.row_type]))
    function, starts = ctypes.CDLL(str(library)).ask, itertools.cycle(range(0, len(rows), AT_ONCE))
    return lambda: function(rows[next(starts) :].ctypes.data_as(ctypes.c_void_p), ctypes.c_int32(AT_ONCE))


def measured_flash(text: str, folder: Path) -> str:
    """Bytes of a Cortex-M0's flash, from the compiler itself."""
    if shutil.which("arm-none-eabi-gcc") is None:
        return "–"
    (folder / "model.h").write_text(text)
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-Os", "-ffreestanding", "-std=c99", "-x", "c"]
    compiled = str(folder / "model.o")
    subprocess.run([*command, "-DMODEL_IMPLEMENTATION", "-c", str(folder / "model.h"), "-o", compiled], check=True)
    said = subprocess.run(["arm-none-eabi-size", "-A", compiled], check=True, capture_output=True, text=True).stdout
    kept = (".text", ".rodata", ".data")
    return f"{sum(int(line.split()[1]) for line in said.splitlines() if line.startswith(kept)):,}"


def c_lines(trees: dict[str, Any], X: Any, y: Any) -> list[list[str]]:
    lines = []
    for terms, model in trees.items():
        portable = Portable.of(model)
        for integer in (None, "int16", "int8"):
            with tempfile.TemporaryDirectory() as folder:
                text = export.c(model, integer=integer)
                header = make_header(portable, "model", integer, "auto")
                whole = None if integer is None else quantize(portable, integer)
                inputs = X if whole is None else whole.inputs(X)
                costs, found = DeviceCost.of(portable, header), export.check(model, X, "c", integer=integer)
                arrived = model.leaf_indices(X)[None] if whole is None else whole.route(X)
                mean = header.trees.path_costs(header.costs)[arrived[0]].mean()
                classes = model.tree_.labels(arrived[0]) if whole is None else whole.classes(arrived)
                seconds = medians({"c": timed_program(text, inputs, Path(folder))}, rounds=200)["c"]
                changed = (found.rows - found.equal_leaves, found.rows - found.equal_classes)
                lines.append(
                    [
                        terms,
                        str(model.get_n_leaves()),
                        integer or "float",
                        f"{100 * (model.classes_[classes] == y).mean():.2f}",
                        *(f"{number:,}" for number in changed),
                        f"{costs.flash:,}",
                        measured_flash(text, Path(folder)),
                        f"{costs.stack:,}",
                        f"{mean:,.0f}",
                        f"{costs.worst:,}",
                        f"{1e6 * seconds / AT_ONCE:.2f}",
                    ]
                )
                print(*lines[-1], flush=True)
    return lines


def runner(written: bytes) -> Callable[[Any], Any]:
    """Return a call that runs a graph on rows."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {"X": rows})


def onnx_lines(trees: dict[str, Any], X: Any) -> list[list[str]]:
    model = trees["all"].set_params(n_jobs=1)
    train, _, _, _ = data()
    calls: dict[str, Callable[[Any], Any]] = {"crisptree, predict": model.predict}
    said = {"crisptree, predict": ("", "", "")}
    for form in FORMS:
        written = export.onnx(model, form=form)
        found = export.check(model, X, "onnx", form=form)
        name = f"ONNX, form {form}"
        said[name] = (f"{found.equal_leaves:,} of {found.rows:,}", f"{found.near:,}", f"{len(written):,}")
        calls[name] = runner(written)
    try:
        from skl2onnx import to_onnx

        forest = RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1).fit(
            train[0][:10_000], train[1][:10_000]
        )
        written = to_onnx(forest, X[:1], options={id(forest): {"zipmap": False}}).SerializeToString()
        name = "skl2onnx, a forest of 100 trees of depth 8"
        said[name] = ("", "", f"{len(written):,}")
        calls[name] = runner(written)
    except ImportError:
        print("skl2onnx is not installed (pip install --group baselines); its forest is left out")
    one = medians({name: lambda call=call: call(X[:1]) for name, call in calls.items()}, rounds=20, repeat=20)
    rows = {name: lambda call=call: call(X) for name, call in calls.items()}
    many = medians(rows, rounds=5, clock=time.process_time)
    return [
        [
            name,
            *said[name],
            f"{1e6 * one[name]:.0f}",
            f"{1e3 * many[name]:.1f}",
            f"{many[name] / many['crisptree, predict']:.1f}",
        ]
        for name in calls
    ]


def deep_line(model: Any, X: Any) -> str:
    """Time one row through a random tree of many splits."""
    rng, portable = np.random.default_rng(0), Portable.of(model)
    structure = TreeStructure.balanced(DEEP)
    weight = rng.normal(size=(structure.n_splits, X.shape[1])).astype(np.float32)
    tables = rng.dirichlet(np.ones(portable.n_outputs), structure.n_leaves)
    bias = np.zeros(structure.n_splits, dtype=np.float32)
    tree = replace(portable.trees[0], structure=structure, weight=weight, bias=bias, tables=tables)
    deep = replace(portable, trees=(tree,))
    calls = {form: runner(render(deep, form=form)) for form in FORMS}
    one = medians({form: lambda call=call: call(X[:1]) for form, call in calls.items()}, rounds=20, repeat=5)
    return ", ".join(f"{form} {1e6 * one[form]:,.0f} µs" for form in FORMS)


def main() -> None:
    trees = models()
    _, _, X, y = data()
    c_table = table(C_HEADER, c_lines(trees, X, y))
    onnx_table = table(ONNX_HEADER, onnx_lines(trees, X))
    deep = deep_line(trees["all"], X)
    versions = subprocess.run(
        [find_compiler(), "--version"], capture_output=True, text=True, check=True
    ).stdout.partition("\n")[0]
    PAGE.write_text(
        TEXT.format(
            c=c_table,
            onnx=onnx_table,
            deep=deep,
            compiler=versions,
            machine=platform.machine(),
            flash=FLASH,
            tried=", ".join(map(str, TERMS)),
        ),
        encoding="utf-8",
    )
    print(c_table, onnx_table, deep, sep="\n")


C_HEADER = ["terms of a split", "leaves", "sums", "test %", "change leaf", "change class"]
C_HEADER += ["flash at most", "flash, measured", "stack at most", "multiply-adds", "at worst", "µs a row"]
ONNX_HEADER = ["", "same leaf", "within rounding", "bytes", "µs, one row"]
ONNX_HEADER += ["ms of processor time, 10,000 rows", "against predict"]

TEXT = """\
# Size, speed and agreement of exports

**A C header of a briefly trained tree of MNIST (93.7 % with floats) needs 32 kB of flash with 8-bit
integers, at 93.6 % test accuracy; with floats it reaches the model's leaf on every row. The ONNX
graph reaches the same leaf on all 10,000 rows and takes 9 times the processor time of `predict`.**

A tree of depth 8 on MNIST, trained briefly; the same with fewer terms per split
(`max_features_per_split`), then pruned until the int8 header
takes at most {flash:,} bytes. Of {tried} terms, those are shown that score best on 10,000
held-out training rows. Every one of the 10,000 test images is compared with the model. One seed,
one thread, a shared machine; written by `python benchmarks/bench_export.py` (`CRISPTREE_DATA`
has mnist.npz).

## C99

Flash and stack are those of a Cortex-M0: "at most" is the bound of the exporter, "measured" the
size of tables and code by `arm-none-eabi-gcc -Os`, without the compiler's functions for floats.
Multiply-adds are the mean over the rows, and the largest possible number. Times are those of
`NAME_predict` on this machine ({machine}, {compiler}, `-O3`), medians of pieces of 100 rows.

{c}
Inputs of the integer models are the unscaled grey values (uint8).

## ONNX

onnxruntime on the CPU, one thread, compared with `predict`, and with a scikit-learn forest
converted by skl2onnx where that is installed. "Within rounding" counts rows so close to a boundary
that another order of summation may change their leaf; no other row differs. 10,000 rows are timed
in processor time, which depends little on what else the machine does.

{onnx}
One row through a random tree of depth 12 with 4,095 splits of 784 terms: {deep}.
"""


if __name__ == "__main__":
    main()
