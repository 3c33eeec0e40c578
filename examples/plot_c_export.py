"""
A tree on a microcontroller
===========================

A tree that reads 8 × 8 digits with 96 % accuracy fits into 2,203 bytes of flash. It is exported to a C header
with integer weights, compiled, and compared with the Python model on every test row.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from crisptree import CrispTreeClassifier, TrainingOptions, export
from crisptree.datasets import load_digits

digits = load_digits()
settings = {"leaf_model": "constant", "training": TrainingOptions(scale="global", effort="fast"), "random_state": 0}
model = CrispTreeClassifier(**settings, max_depth=5).fit(digits.X_train, digits.y_train)
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
# Accuracy against flash on a Cortex-M0, for trees of depth 2 to 6. Integers of 8 bits need a fifth of the flash of
# floats, and hardly change a class.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for integer, color in ((None, "0.5"), ("int16", "tab:blue"), ("int8", "tab:green")):
    flash, accuracy = [], []
    for depth in range(2, 7):
        tree = CrispTreeClassifier(**settings, max_depth=depth).fit(digits.X_train, digits.y_train)
        agreement = export.check(tree, X, "c", integer=integer)
        flash.append(int(re.search(r"([\d,]+) bytes of flash", str(agreement))[1].replace(",", "")))
        accuracy.append(100 * tree.score(X, digits.y_test))
    ax.plot(flash, accuracy, "o-", color=color, linewidth=2, label=integer or "float")
for size, machine in ((2048, "2 kB"), (8192, "8 kB")):
    ax.axvline(size, color="tab:red", linewidth=0.8, linestyle="--")
    ax.text(size, 33, f" {machine}", color="tab:red")
ax.set(xscale="log", xlabel="bytes of flash", ylabel="accuracy on test digits, %", ylim=(30, 100))
ax.set_title("Digits on a microcontroller")
ax.legend(loc="center right")
plt.show()
