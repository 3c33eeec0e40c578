"""Section 3.6 of the paper, from likelihood to information gain: ``python docs/pictures.py information_gain``.

Where the splits are steep, the log-likelihood of a tree is minus the weighted entropy of its leaves, and that of a
stump is the information gain. Where they are not, the likelihood also depends on how classes overlap at the boundary.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_digits
from crisptree.equations.em import responsibilities
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.structure import TreeStructure
from crisptree.targets import Classes
from crisptree.tree import Tree


def best_log_likelihood(scores, structure, y, steepness):
    """Mean log-likelihood with the best leaf tables for these splits, by EM on the tables alone (equation 13)."""
    log_paths = log_path_probabilities(scores, structure, steepness)
    one_hot = torch.eye(int(y.max()) + 1)[y]
    masses, before, now = log_paths.exp(), -torch.inf, -1e9
    while now - before > 1e-5:
        tables = masses.T @ one_hot + 1e-9
        evidence = (tables / tables.sum(dim=1, keepdim=True)).log().T[y]
        before, now = now, float(log_likelihoods(log_paths, evidence).mean())
        masses = responsibilities(log_paths, evidence)
    return now


def leaf_entropy(scores, structure, y):
    """Weighted entropy of the leaves of the deterministic tree, Σ N_ℓ / N · H_ℓ."""
    leaf = log_path_probabilities(scores, structure, 1e6).argmax(dim=1)
    counts = np.zeros((structure.n_leaves, int(y.max()) + 1))
    np.add.at(counts, (leaf.numpy(), y.numpy()), 1)
    return float(Classes(counts.shape[1]).impurity(counts).sum() / counts.sum())


# One feature with two classes that overlap, and every threshold t: f(x) = x − t. The dashed line is the information
# gain, the others are how much the best log-likelihood of the stump exceeds that of no split at all.
rng = np.random.default_rng(0)
y = torch.arange(400) % 2
x = torch.from_numpy(rng.normal(size=400).astype(np.float32)) * 0.7 + 2 * y - 1
no_split = float(Classes(2).impurity(np.array([200.0, 200.0])) / 400.0)
thresholds = torch.linspace(-2.5, 2.5, 61)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
stump = TreeStructure.stump()
for steepness, color in zip((1, 3, 10, 30, 100), plt.cm.viridis(np.linspace(0.85, 0.1, 5)), strict=True):
    gains = [no_split + best_log_likelihood(x[:, None] - t, stump, y, float(steepness)) for t in thresholds]
    left.plot(thresholds, gains, color=color, label=f"γ = {steepness}")
gains = [no_split - leaf_entropy(x[:, None] - t, stump, y) for t in thresholds]
left.plot(thresholds, gains, "--", color="black", linewidth=1.2, label="information gain")
left.set(xlabel="threshold of the split", ylabel="gain [nats per row]", title="a stump")
left.legend(fontsize=8, frameon=False)

# The same for a whole tree: depth 4 on the digits. Both sides of the paper's last equation over γ.
digits = load_digits()
rows, labels = digits.X_train, torch.from_numpy(digits.y_train)
model = CrispTreeClassifier.paper(max_depth=4, epochs=20, finetune_epochs=20, random_state=0).fit(rows, digits.y_train)
soft = Tree.soft(model.tree_)
with torch.no_grad():
    scores = soft.splits(torch.from_numpy(model.tree_.statistics.scaling.apply(rows)))
steepness = np.geomspace(0.3, 3000, 20)
likelihoods = [best_log_likelihood(scores, soft.structure, labels, float(gamma)) for gamma in steepness]
limit = -leaf_entropy(scores, soft.structure, labels)
right.semilogx(steepness, likelihoods, color="#440154", marker=".", label="log-likelihood, best leaf tables")
right.axhline(limit, color="black", linestyle="--", linewidth=1.2, label="minus the weighted entropy of the leaves")
right.set(xlabel="steepness γ", ylabel="nats per row", title="a tree of depth 4 on the digits")
right.legend(fontsize=8, frameon=False)

plt.show()
