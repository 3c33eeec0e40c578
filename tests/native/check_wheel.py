"""Whether an installed wheel carries its kernels, trains and predicts; run by cibuildwheel and by the tests."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import crisptree
from crisptree import native

assert Path(crisptree.__file__).is_relative_to(sys.prefix), f"{crisptree.__file__} is not the installed package"
assert Path(crisptree.__file__).with_name("py.typed").is_file(), "type checkers would ignore the annotations"
assert native.router is not None, "the kernel that routes rows was not built"
assert native.training is not None, "the kernels of training were not built"

X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
model = crisptree.CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.crisp")
    model.save(path)
    assert crisptree.load(path).predict(X).tolist() == y.tolist()
print("the kernels are there; a saved model predicts")
