"""
Resume an interrupted fit
=========================

A fit with a checkpoint folder continues where it was interrupted, and ends with the same tree, bit for bit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.datasets import load_digits

digits = load_digits()


class Interrupted(Exception):
    pass


def make_model(callback):
    training = TrainingOptions(optimizer="adam", epochs=10, finetune_epochs=40, callbacks=[callback])
    return CrispTreeClassifier(
        split="oblique", max_depth=4, input_noise=0.5, l1=0.0, shrinkage=0.0, random_state=0, training=training
    )


def interrupt_at(last):
    def callback(record):
        seen.append(-record.loss)
        if len(seen) == last:
            raise Interrupted

    seen = []
    return seen, callback


# %%
# The first fit is interrupted in the middle of finetuning, the second resumes it.
folder = Path(tempfile.mkdtemp()) / "checkpoint"
before, callback = interrupt_at(60)
try:
    make_model(callback).fit(digits.X_train, digits.y_train, checkpoint=folder, checkpoint_every=0)
except Interrupted:
    print(f"interrupted after {len(before)} epochs")
after, callback = interrupt_at(None)
resumed = make_model(callback).fit(digits.X_train, digits.y_train, checkpoint=folder, resume=True)
whole, callback = interrupt_at(None)
reference = make_model(callback).fit(digits.X_train, digits.y_train)
print("same weights as without interruption:", (resumed.tree_.weight == reference.tree_.weight).all())

# %%
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(whole, color="0.8", linewidth=6, label="without interruption")
ax.plot(after, color="tab:blue", label="resumed")
ax.plot(before, color="tab:red", linestyle="--", label="until the interruption")
ax.axvline(len(before), color="tab:red", linewidth=0.8)
ax.set(xlabel="epoch", ylabel="log-likelihood per row")
ax.legend()
plt.show()
