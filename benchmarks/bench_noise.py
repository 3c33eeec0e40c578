"""Input noise of trees on large data: scores of trials beside those of whole fits, on validation rows.

    python -m benchmarks.bench_noise prepare                       # training parts of Connect-4, MNIST, Fashion-MNIST
    python -m benchmarks.bench_noise fit --seeds 30,31 --jobs 2    # every noise level, as trials and as a fit
    python -m benchmarks.bench_noise compare                       # what rules of selection would have scored

``prepare`` writes the rows of each data set without its test part, which takes no part in this comparison. Every seed
holds out a quarter of them as validation rows. ``fit`` trains each noise level on the held-out split of the selection,
for the share of the epochs that a trial has and for all of them, then on all rows but the validation rows. ``compare``
applies rules to the scores of the trials: the share of the epochs, the standard errors within which the most noise is
preferred, and penalties ``l2``. Records that exist are not made again.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.bench_selection import describe_difference, evaluate
from benchmarks.bench_tables import prepare_process
from benchmarks.real_tables import CLASSIFICATION, read_tables, split_rows
from benchmarks.table_models import make_tree
from experiments.provenance import commit
from experiments.store import Store

from crisptree.datasets import load_connect4, load_fashion_mnist, load_mnist
from crisptree.selection import search
from crisptree.selection.candidates import LOSS_SHARE, NOISE_LEVELS, Trial

ROOT = Path(__file__).parent.parent
DATA, RECORDS = ROOT / "build" / "large", ROOT / "build" / "noise.jsonl"
KEYS = ("table", "scale", "input_noise", "l2", "seed")
SEEDS = [30, 31, 32]
LENGTHS = (search.TRIAL_EPOCHS, 1.0)
PENALISED = ((1, 0.01), (2, 0.01))
"""Places of noise levels that are fitted with a value of ``l2``."""

MAX_ERRORS = (0.0, 0.25, 0.5, 1.0)
"""Standard errors within which the most noise is selected."""

LOADERS = {"connect4": load_connect4, "mnist": load_mnist, "fashion_mnist": load_fashion_mnist}

Values = dict[str, Any]


def list_cells(name: str) -> list[Values]:
    """List the settings that are compared on a data set: noise levels, by scale on Connect-4, and some with ``l2``."""
    scales = ("feature", "global") if name == "connect4" else ("global",)
    levels = NOISE_LEVELS["table" if name == "connect4" else "image"]
    plain = [{"scale": scale, "input_noise": noise, "l2": 0.0} for scale, noise in itertools.product(scales, levels)]
    return plain + [{"scale": "global", "input_noise": levels[i], "l2": l2} for i, l2 in PENALISED]


def write_tables(folder: Path, max_rows: int | None) -> None:
    """Write the data sets without their test parts, as files that ``read_tables`` reads."""
    (folder / CLASSIFICATION).mkdir(parents=True, exist_ok=True)
    for name, load in LOADERS.items():
        dataset = load()
        X, y = dataset.all_but_test()
        if max_rows is not None and len(y) > max_rows:
            kept = np.sort(np.random.default_rng(0).choice(len(y), max_rows, replace=False))
            X, y = X[kept], y[kept]
        if dataset.image_shape is not None:
            X = X.reshape(-1, *dataset.image_shape)
        if float(X.max()) <= 1 and dataset.image_shape is not None:
            X = np.rint(X * 255)
        path = folder / CLASSIFICATION / f"{name}.npz"
        columns = np.arange(X[0].size).astype(str)
        np.savez_compressed(path, X=X.astype(np.uint8), y=y.astype(np.uint8), columns=columns)
        print(f"{path.name}: {X.shape}")


def make_search(values: Values, trials: list[Trial]) -> type[search.CandidateSearch]:
    """Make a search that scores one candidate after every share of the epochs, and selects it."""

    class Single(search.CandidateSearch):
        def run(self) -> tuple[Values, list[Trial]]:
            for length in LENGTHS:
                self.trials = []
                with patch.object(search, "TRIAL_EPOCHS", length):
                    self.evaluate([self.complete(values)])
                trials.append(self.trials[-1])
            return self.evaluator.select(self), []

    return Single


def fit_cell(options: argparse.Namespace, name: str, cell: Values, seed: int) -> None:
    """Record the scores of a setting as trials and as a fit."""
    store, key = Store(options.records, KEYS), {"table": name, **cell, "seed": seed}
    if store.get(*(key[field] for field in KEYS)) is not None:
        return
    (table,) = read_tables(options.data, [name])
    start, split, trials = time.process_time(), split_rows(table, seed), list[Trial]()
    values = {"split": "oblique", "l1": 0.0, "leaf_model": "constant", **cell}
    del values["l2"]
    model = make_tree(CLASSIFICATION, seed, 1, l2=cell["l2"])
    with patch.object(search, "CandidateSearch", make_search(values, trials)):
        model.fit(split.X_train, split.y_train)
    score, loss = evaluate(model, CLASSIFICATION, split)
    described = [
        {"length": length, "score": trial.score, "log_loss": trial.log_loss, "right": pack_bits(trial.row_scores)}
        for length, trial in zip(LENGTHS, trials, strict=True)
    ]
    seconds = round(time.process_time() - start, 2)
    record = {"score": score, "log_loss": loss, "n_scored": len(trials[0].row_scores), "trials": described}
    store.put(key | record | {"n_validation": len(split.y_test), "seconds": seconds, "commit": options.commit})
    print(f"{name}, {cell}, seed {seed}: {100 * score:.2f}, {seconds} s", flush=True)


def pack_bits(row_scores: np.ndarray) -> str:
    """Encode scores of 0 and 1 as text."""
    return base64.b64encode(np.packbits(row_scores > 0.5)).decode()


def list_units(options: argparse.Namespace) -> Iterator[tuple[str, Values, int]]:
    """Iterate over data sets, settings and seeds, in the order in which they are fitted."""
    for seed in options.seeds:
        for name in options.tables:
            for cell in list_cells(name):
                yield name, cell, seed


def run_fits(options: argparse.Namespace) -> None:
    """Fit all settings, in several processes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, prepare_process, (1,)) as pool:
        list(pool.map(partial(fit_cell, options), *zip(*list_units(options), strict=True)))


def compute_merits(records: Sequence[Values], length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return merits and correct rows of the trials of some length.  (n,), (n, n_rows)"""
    trials = [next(trial for trial in one["trials"] if trial["length"] == length) for one in records]
    merits = np.array([trial["score"] - LOSS_SHARE * trial["log_loss"] for trial in trials])
    right = [np.unpackbits(np.frombuffer(base64.b64decode(trial["right"]), dtype=np.uint8)) for trial in trials]
    return merits, np.array([bits[: one["n_scored"]] for bits, one in zip(right, records, strict=True)], dtype=float)


def select_noise(records: Sequence[Values], length: float, max_errors: float) -> Values:
    """Return the setting of the most noise within some standard errors of the highest merit."""
    merits, right = compute_merits(records, length)
    best = int(np.argmax(merits))
    errors = (right[best] - right).std(axis=1) / np.sqrt(right.shape[1])
    is_close = merits[best] - merits <= max_errors * errors
    return max(itertools.compress(records, is_close), key=lambda one: one["input_noise"])


def select_setting(records: Sequence[Values], length: float, max_errors: float) -> Values:
    """Return what the rounds of a large table select: a noise level on the first scale, then a scale."""
    scale = min(one["scale"] for one in records)
    first = select_noise([one for one in records if one["scale"] == scale], length, max_errors)
    same_noise = [one for one in records if one["input_noise"] == first["input_noise"]]
    return same_noise[int(np.argmax(compute_merits(same_noise, length)[0]))]


def select_penalised(records: Sequence[Values], penalised: Sequence[Values]) -> Values:
    """Return what trials as short as those of a fit select among all levels, of noise alone and with ``l2``."""
    every = [*records, *penalised]
    return every[int(np.argmax(compute_merits(every, LENGTHS[0])[0]))]


def compare_records(options: argparse.Namespace) -> None:
    """Print the scores of all settings, and of what rules select."""
    for name in options.tables:
        cells, by_seed = list_cells(name), defaultdict[int, list[Values]](list)
        for record in Store(options.records, KEYS).records(table=name):
            by_seed[record["seed"]].append(record)
        plain = {seed: [one for one in own if not one["l2"]] for seed, own in by_seed.items()}
        complete = [seed for seed, own in plain.items() if len(own) == len(cells) - len(PENALISED)]
        print(f"\n{name}: {len(complete)} of {len(by_seed)} seeds complete")
        for cell in cells:
            print_cell(cell, [one for own in by_seed.values() for one in own if all(one[k] == cell[k] for k in cell)])
        if not complete:
            continue
        default = [select_setting(plain[seed], LENGTHS[0], 0.0) for seed in complete]
        for length, max_errors in itertools.product(LENGTHS, MAX_ERRORS):
            selected = [select_setting(plain[seed], length, max_errors) for seed in complete]
            print_rule(selected, default, f"epochs {length}, {max_errors} errors")
        with_l2 = [[one for one in by_seed[seed] if one["l2"]] for seed in complete]
        selected = [select_penalised(plain[seed], own) for seed, own in zip(complete, with_l2, strict=True)]
        print_rule(selected, default, "with l2")


def print_cell(cell: Values, records: Sequence[Values]) -> None:
    """Print the mean scores of a setting."""
    if not records:
        return
    merits = [np.mean([compute_merits([one], length)[0] for one in records]) for length in LENGTHS]
    trials = ", ".join(f"{length}: {100 * merit:.2f}" for length, merit in zip(LENGTHS, merits, strict=True))
    score, loss = (np.mean([one[key] for one in records]) for key in ("score", "log_loss"))
    print(
        f"  {cell}: merit of trials {trials}; validation {100 * score:.2f} %, log loss {loss:.4f}, {len(records)} seeds"
    )


def print_rule(selected: Sequence[Values], default: Sequence[Values], name: str) -> None:
    """Print what a rule selects and its difference from the default."""
    scores, others = (np.array([[one["score"], 0.0] for one in each]) for each in (selected, default))
    chosen = " ".join(f"{one['scale'][0]}{one['input_noise']:g}{'+l2' if one['l2'] else ''}" for one in selected)
    print(f"  {name}: {100 * scores[:, 0].mean():.2f} %, {describe_difference(scores, others)} ({chosen})")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "fit", "compare"])
    parser.add_argument("--data", type=Path, default=DATA, help="folder that prepare writes")
    parser.add_argument("--max-rows", type=int, help="prepare: rows of a data set at most")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(LOADERS), help="with commas")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(arguments)
    if options.what == "prepare":
        write_tables(options.data, options.max_rows)
    elif options.what == "compare":
        compare_records(options)
    else:
        options.commit = commit(options.records)
        run_fits(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
