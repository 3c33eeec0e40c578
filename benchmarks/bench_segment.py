"""Labelling a 512 × 512 slice: one path per pixel against evaluating every split as a convolution, in the same run;
and the memory that training on twenty such slices and labelling one take.

python benchmarks/bench_segment.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import medians, table

from crisptree import CrispSegmenter

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


def _peak(code: str, model: Path) -> float:
    code += "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    found = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True)
    return float(found.stdout)


if __name__ == "__main__":
    main()
