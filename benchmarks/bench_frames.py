"""Prediction from a DataFrame against the same values as an array plus the conversion by pandas.

    OMP_NUM_THREADS=1 python benchmarks/bench_frames.py

10,000 rows of 20 columns: ten of numbers, of which three have holes, two of booleans, eight of text. Both sides predict
the same classes; the times are medians of many rounds, taken in turn, in one thread. The last column is the range of
the ratio between the quarters of the rounds, which tells how steady the machine was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.inspection.model_view import strip_encoder

N_ROWS, ROUNDS = 10_000, 60
TYPES = {"text": "str", "objects": object, "categories": "category"}


def table(n_rows: int = N_ROWS, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Mixed columns, and a class that follows from some of them."""
    rng = np.random.default_rng(seed)
    numbers = {f"n{i}": rng.normal(size=n_rows) for i in range(10)}
    for name in ("n0", "n1", "n2"):
        numbers[name][rng.random(n_rows) < 0.1] = np.nan
    flags = {f"b{i}": rng.random(n_rows) < 0.5 for i in range(2)}
    words = np.array([f"value {i}" for i in range(12)], dtype=object)
    text = {f"c{i}": rng.choice(words[: 4 + i], n_rows) for i in range(8)}
    y = (np.nan_to_num(numbers["n0"]) + flags["b0"] + (text["c0"] == "value 1") > 0.8).astype(int)
    return pd.DataFrame(numbers | flags | text), y


def by_pandas(frame: pd.DataFrame, names: list[str], means: pd.Series) -> Any:
    """Make the encoder's features by pandas: missing indicators, imputed means, dummies."""
    holes = frame[means.index].isna().rename(columns=lambda name: f"{name} is missing")
    filled = frame.fillna(means.to_dict())
    dummies = pd.get_dummies(filled, prefix_sep="=", dtype=np.float32)
    return pd.concat([dummies, holes], axis=1).reindex(columns=names, fill_value=0).to_numpy(dtype=np.float32)


def in_turn(*tasks: Callable[[], Any]) -> Any:
    """Seconds of each task in every round.  (ROUNDS, n_tasks)"""
    seconds = np.empty((ROUNDS, len(tasks)))
    for round_ in range(ROUNDS):
        for number, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            seconds[round_, number] = time.perf_counter() - start
    return seconds


def ratio(seconds: Any) -> float:
    """Compute the median ratio of the time of a DataFrame to that of array and conversion."""
    ours, array, pandas = np.median(seconds, axis=0)
    return float(ours / (array + pandas))


def main() -> None:
    """Print a line of Markdown for each type of text column."""
    print("| text columns as | DataFrame | array | pandas' conversion | ratio | in quarters |")
    print("| --- | --- | --- | --- | --- | --- |")
    for said, dtype in TYPES.items():
        frame, y = table()
        frame = frame.astype({name: dtype for name in frame.columns if name.startswith("c")})
        model = CrispTreeClassifier(
            max_depth=4,
            training=TrainingOptions(epochs=3, finetune_epochs=3),
            n_jobs=1,
            random_state=0,
            split="oblique",
        )
        model.fit(frame[:2000], y[:2000])
        names = model.encoder_.get_feature_names_out().tolist()
        means = pd.Series({c.name: c.mean for c in model.encoder_.preprocessing_.columns if c.missing})
        bare, rows = strip_encoder(model), by_pandas(frame, names, means)
        assert np.array_equal(model.predict(frame), bare.predict(rows))
        seconds = in_turn(
            lambda model=model, frame=frame: model.predict(frame),
            lambda bare=bare, rows=rows: bare.predict(rows),
            lambda frame=frame, names=names, means=means: by_pandas(frame, names, means),
        )
        times = " | ".join(f"{1e3 * median:.1f} ms" for median in np.median(seconds, axis=0))
        quarters = [ratio(part) for part in np.split(seconds, 4)]
        print(f"| {said} | {times} | {ratio(seconds):.2f} | {min(quarters):.2f} to {max(quarters):.2f} |")


if __name__ == "__main__":
    main()
