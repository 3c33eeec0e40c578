"""Labelling a 512 × 512 slice: one path per pixel against evaluating every split as a convolution, in the same run;
and the memory that training on twenty such slices and labelling one take.

    python benchmarks/bench_segment.py
    CRISPTREE_DATA=/folder/with/isbi2012_em.npz python benchmarks/bench_segment.py fit [slices] [seeds] [threads]

The second command fits the first slices of ISBI 2012 by default parameters with some numbers of pixels an epoch, and
scores the validation slices. No test slice is used.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import medians, table

from crisptree import CrispSegmenter
from crisptree.datasets import load_isbi

SIDE, WINDOW, DEPTH = 512, 31, 8
SETTINGS: dict[str, dict[str, Any]] = {"one scale": {}, "scales (1, 4)": {"scales": (1, 4)}}

SLICES = 20
SETUP = "import sys, numpy as np, crisptree\nrng = np.random.default_rng(0)\n"
TRAINING = f"""
images = rng.normal(size=({SLICES}, {SIDE}, {SIDE})).astype(np.float32)
labels = (images > np.roll(images, 1, axis=1)).astype(np.uint8)
some = dict(epochs=1, finetune_epochs=1, device="cpu", n_jobs=-1)
model = crisptree.CrispSegmenter(window={WINDOW}, max_depth={DEPTH}, **some)
model.fit(images, labels).save(sys.argv[1])
"""
LABELLING = f"""
crisptree.load(sys.argv[1]).predict(rng.normal(size=({SIDE}, {SIDE})).astype(np.float32))
"""


def segmenter(image: np.ndarray, labels: np.ndarray, settings: dict[str, Any]) -> CrispSegmenter:
    """Make a complete tree with random splits, which has the longest paths of the depth."""
    return CrispSegmenter.from_flat(
        window=WINDOW,
        max_depth=DEPTH,
        grow="balanced",
        finetune_epochs=0,
        device="cpu",
        random_state=0,
        n_jobs=-1,
        **settings,
    ).fit(image, labels)


def main() -> None:
    rng = np.random.default_rng(0)
    image = rng.normal(size=(SIDE, SIDE)).astype(np.float32)
    labels = (image > 0).astype(np.int64)
    models = {name: segmenter(image, labels, settings) for name, settings in SETTINGS.items()}
    kernels = torch.from_numpy(rng.normal(size=(2**DEPTH - 1, 1, WINDOW, WINDOW)).astype(np.float32))
    slice_ = torch.from_numpy(image)[None, None]
    with torch.inference_mode():
        seconds = medians(
            {name: lambda model=model: model.predict(image) for name, model in models.items()}
            | {"all splits": lambda: torch.nn.functional.conv2d(slice_, kernels, padding="same")},
            rounds=1,
        )
    first = seconds["one scale"]
    rows = [[name, f"{value / first:.1f}"] for name, value in seconds.items()]
    print(table([f"a {SIDE} × {SIDE} slice, window {WINDOW}, depth {DEPTH}", "time, ratio to the first"], rows))
    memory()


def memory() -> None:
    """Peak memory of whole processes, interpreter and libraries included: one that trains, one that labels."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            [name, f"{_peak(SETUP + code, Path(folder) / 'model.crisp'):.0f} MB"]
            for name, code in {
                f"training on {SLICES} slices, one epoch a level and one for the tree": TRAINING,
                "labelling one slice with that model": LABELLING,
            }.items()
        ]
    print(table([f"window {WINDOW}, depth {DEPTH}", "peak memory of the process"], lines))


PIXELS = (50_000, 100_000, 300_000)


def fits(n_slices: int = 6, n_seeds: int = 2, n_jobs: int = 2) -> None:
    """Seconds of default fits and pixel accuracy on the validation slices, by the pixels of an epoch."""
    data = load_isbi()
    lines = []
    for pixels in PIXELS:
        seconds, processor, scores = [], [], []
        for seed in range(n_seeds):
            model = CrispSegmenter(window=WINDOW, pixels_per_epoch=pixels, random_state=seed, n_jobs=n_jobs)
            started, started_processor = time.perf_counter(), time.process_time()
            model.fit(data.X_train[:n_slices], data.y_train[:n_slices])
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - started_processor)
            scores.append(model.score(data.X_valid, data.y_valid))
        times = (f"{np.median(values):.0f}" for values in (seconds, processor))
        lines.append([f"{pixels:,}", *times, " / ".join(f"{score:.4f}" for score in scores)])
    head = ["pixels an epoch", "wall time, s", "processor time, s", "pixel accuracy on validation slices, by seed"]
    print(f"{n_slices} slices, window {WINDOW}, depth {DEPTH}, {n_jobs} threads\n")
    print(table(head, lines))


def _peak(code: str, model: Path) -> float:
    code += "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    found = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True)
    return float(found.stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        fits(*map(int, sys.argv[2:]))
    else:
        main()
