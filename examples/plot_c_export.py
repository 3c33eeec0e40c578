"""
A tree on a microcontroller
===========================

A model is exported to a C header with integer weights, compiled, and compared with the Python model on
every test row.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispTreeClassifier, TrainingOptions, export
from crisptree.datasets import load_digits

digits = load_digits()
model = CrispTreeClassifier(
    max_depth=5, leaf_model="constant", training=TrainingOptions(scale="global", effort="fast"), random_state=0
).fit(digits.X_train, digits.y_train)
X = digits.X_test.astype(np.uint8)

# %%
# The program reads rows of bytes and writes classes:
PROGRAM = r"""
#include <stdio.h>
#define MODEL_IMPLEMENTATION
#include "model.h"
int main(void) {
    uint8_t row[MODEL_N_FEATURES];
    while (fread(row, 1, sizeof row, stdin) == sizeof row) printf("%d\n", (int)model_predict(row));
    return 0;
}
"""
header = export.c(model, name="model", integer="int8")
print(header[:600], "…")

# %%
# Compile it with gcc and predict the test digits:
if shutil.which("gcc"):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.h").write_text(header)
        (Path(folder) / "main.c").write_text(PROGRAM)
        subprocess.run(["gcc", "-std=c99", "-O2", "-o", "model", "main.c"], cwd=folder, check=True)
        output = subprocess.run([Path(folder) / "model"], input=X.tobytes(), capture_output=True, check=True).stdout
    same = np.array(output.split(), dtype=int) == np.searchsorted(model.classes_, model.predict(X))
    print(f"{same.sum()} of {len(same)} test digits have the same class in C and in Python")

# %%
# What the smaller numbers cost: flash of the header, and how many classes change.
kinds = {"float": None, "int16": "int16", "int8": "int8"}
sizes, scores = [], []
for integer in kinds.values():
    agreement = export.check(model, X, "c", integer=integer)
    sizes.append(len(export.c(model, name="model", integer=integer)) / 1000)
    scores.append(100 * agreement.equal_classes / len(X))
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].bar(list(kinds), sizes, color=["0.7", "tab:blue", "tab:green"])
axes[0].set_title("size of the header, kB")
axes[1].bar(list(kinds), scores, color=["0.7", "tab:blue", "tab:green"])
axes[1].set(title="same class as in Python, %", ylim=(90, 100.5))
plt.show()
