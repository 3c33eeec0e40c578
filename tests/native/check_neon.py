"""The NEON kernel against the reference, cross-compiled and run in an emulator. By hand:

apt-get install g++-aarch64-linux-gnu qemu-user
python tests/native/check_neon.py
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from crisptree.data.raw_rows import Scaling
from crisptree.inference import FlatTree
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import empty_statistics
from crisptree.structure import TreeStructure

ROOT = Path(__file__).parents[2]
SOURCES = ["router", "kernel_scalar", "kernel_vector128"]


def tree_and_rows(n_features: int, density: float) -> tuple[FlatTree, np.ndarray]:
    """Half of the rows are whole numbers, as the weights of half of the splits, and often lie on a hyperplane."""
    rng = np.random.default_rng(n_features)
    structure = TreeStructure.balanced(6)
    weight = rng.normal(size=(structure.n_splits, n_features))
    weight[::2] = rng.integers(-2, 3, weight[::2].shape)
    weight *= rng.random(weight.shape) < density
    bias = rng.integers(-1, 2, structure.n_splits)
    X = np.concatenate([rng.normal(size=(2000, n_features)), rng.integers(-1, 2, (2000, n_features))])
    leaves = np.full((structure.n_leaves, 2), 0.5)
    statistics = empty_statistics(structure, Scaling.none(n_features), leaves, 1.0)
    tree = FlatTree(structure, leaves, statistics, weight=weight.astype(np.float32), bias=bias.astype(np.float32))
    return tree, X.astype(np.float32)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "route_file"
        sources = [str(ROOT / "src/crisptree/native" / f"{name}.cpp") for name in SOURCES]
        flags = ["-O3", "-std=c++17", "-ffp-contract=off", "-static", "-pthread"]
        here = str(Path(__file__).parent / "route_file.cpp")
        subprocess.run(["aarch64-linux-gnu-g++", *flags, here, *sources, "-o", str(program)], check=True)
        for n_features, density in [(1, 1.0), (5, 1.0), (33, 1.0), (100, 0.1), (784, 1.0), (784, 0.02)]:
            tree, X = tree_and_rows(n_features, density)
            sizes = np.array([tree.structure.n_splits, n_features, len(X)], dtype=np.int64)
            parts = (sizes, tree.structure.left, tree.structure.right, tree.weight, tree.bias, X)
            data = Path(folder) / "tree.bin"
            data.write_bytes(b"".join(part.tobytes() for part in parts))
            output = subprocess.run(
                ["qemu-aarch64", str(program), str(data)], check=True, capture_output=True, text=True
            )
            expected = routing.route_reference(tree, X)
            for line in output.stdout.splitlines():
                name, *leaves = line.split()
                different = int((np.array(leaves, dtype=np.int64) != expected).sum())
                print(f"{name:>7}, {n_features:>3} features, density {density}: {different} of {len(X)} rows differ")
                assert different == 0


if __name__ == "__main__":
    main()
