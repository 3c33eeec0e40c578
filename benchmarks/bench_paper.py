"""Accuracy of the paper's protocol on MNIST over several seeds: hard routing, soft scores in columns of their own.

CRISPTREE_DATA=/folder/with/mnist.npz python benchmarks/bench_paper.py --seeds 3
"""

import argparse
import os
from pathlib import Path

import numpy as np

from crisptree import CrispTreeClassifier

PROTOCOLS = {(4, 20): "depth 4, 20 + 20 epochs", (8, 50): "depth 8, 50 + 50 epochs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    seeds = arguments.seeds
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as data:
        X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
        y, y_test = data["y_train"], data["y_test"]
    print(f"MNIST, CrispTreeClassifier.paper, test accuracy in %, mean ± spread over {seeds} seeds\n")
    print("| protocol | greedy hard | greedy soft | finetuned hard | finetuned soft | finetuned hard, train |")
    print("|---|---|---|---|---|---|")
    for (depth, epochs), title in PROTOCOLS.items():
        rows = []
        for seed in range(seeds):
            model = CrispTreeClassifier.paper(
                max_depth=depth,
                epochs=epochs,
                finetune_epochs=epochs,
                random_state=seed,
                device=arguments.device,
                n_jobs=-1,
            ).fit(X, y)
            scores = []
            for tree in (model.before_finetuning(), model):
                soft = tree.classes_[tree.soft_predict_proba(X_test).argmax(axis=1)]
                scores += [tree.score(X_test, y_test), np.mean(soft == y_test)]
            rows.append([*scores, model.score(X, y)])
        mean, spread = 100 * np.mean(rows, axis=0), 100 * np.std(rows, axis=0)
        cells = " | ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {title} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
