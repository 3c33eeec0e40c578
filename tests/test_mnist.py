"""The paper's protocol on real data: slow, and only where CRISPTREE_DATA says the data is."""

import os
from pathlib import Path

import numpy as np
import pytest

from crisptree import CrispTreeClassifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mnist():
    folder = os.environ.get("CRISPTREE_DATA")
    if not folder:
        pytest.skip("CRISPTREE_DATA is not set: it must name the folder that holds mnist.npz")
    with np.load(Path(folder) / "mnist.npz") as data:
        parts = {name: data[name] for name in data.files}
    return (
        parts["X_train"].reshape(-1, 784),
        parts["y_train"],
        parts["X_test"].reshape(-1, 784),
        parts["y_test"],
    )


@pytest.mark.parametrize(("depth", "epochs", "greedy", "finetuned"), [(4, 20, 0.880, 0.900), (8, 50, 0.915, 0.943)])
def test_the_papers_protocol_reaches_its_accuracy_with_hard_routing(mnist, depth, epochs, greedy, finetuned):
    X, y, X_test, y_test = mnist
    scores = []
    for seed in range(3):
        model = CrispTreeClassifier.paper(max_depth=depth, epochs=epochs, finetune_epochs=epochs, random_state=seed)
        model.fit(X, y)
        scores.append((model.before_finetuning().score(X_test, y_test), model.score(X_test, y_test)))
    means = np.mean(scores, axis=0)
    assert means[0] >= greedy
    assert means[1] >= finetuned
