"""The paper, one formula a function: tensors in, tensors out. No formula knows what y is.

"End-to-end Learning of Deterministic Decision Trees", Hehn & Hamprecht.

============================= ============================ ==================================== ======================
in the paper (equation)       symbol                       definition                           what runs: CPU; CUDA
============================= ============================ ==================================== ======================
split feature (3.1)           f(x) = (x, 1)·β              ``splits.*`` → (n, n_splits)         A; C
split function (3, 5)         σ(γ f)                       ``routing.log_branch_probabilities``                A; B
deterministic split (3.1)     Θ(f): f > 0 goes right       ``routing.goes_right``               D; torch
probability of a path (1)     μ_ℓ(x)                       ``routing.log_path_probabilities``   A; B
prediction (2)                p(y∣x) = Σ_ℓ π_ℓ(y) μ_ℓ(x)   ``routing.log_class_probabilities``  torch; torch
log-likelihood (4)            Σ_n log p(y_n∣x_n)           ``routing.log_likelihoods``          A; B
evidence                      log π_ℓ(y_n)                 ``targets.Classes.evidence``         A; B
E-step (10)                   h_{n,ℓ}                      ``em.responsibilities``              A; B
leaves under a split          H_{n,i} = H^L + H^R          ``em.node_masses``                   A; B
M-step, splits (14)           Σ h log μ                    ``em.split_loss``                    A; B, C
M-step, leaves (13)           π_ℓ                          ``targets.Classes.statistics``,      A; B, C
                                                           ``targets.Classes.update``           torch; torch
the same on soft labels       Σ_k P_{n,k} …                ``soft_labels.*``                    torch; torch
the same on numbers           N(y; m_ℓ, v_ℓ)               ``gaussian.*``, ``targets.Gaussians``  A; torch
linear models in leaves       θ_ℓ = Σ of parts on a path   ``linear_leaves.*``                  NumPy; NumPy
alternating (supplement)      N_{ℓ,k} / N_ℓ                ``alternating.hard_responsibilities``  D; torch
steepness (3.2, 4.1)          γ                            ``annealing.*``                      –
spatial regularisation (15)   λ βᵀMβ                       ``penalties.spatial_penalty``        A; E
l1 of groups of features      Σ_g √size_g ‖β_g‖            ``penalties.group_threshold``        A; torch
noise on the inputs           γ / √(1 + (π/8) γ² σ² βᵀSβ)  ``noise.*``                          A; E, torch
information gain (16–19)      H_ℓ, Σ N_ℓ/N H_ℓ             ``targets.gain``, ``Target.impurity``  NumPy; NumPy
============================= ============================ ==================================== ======================

A: ``native/training.inc``. B: ``engines/cuda_kernels.py``, ``stump_tasks`` and ``route``. C: products of
``engines/cuda_engine.py``. D: ``native/route.h``. E: ``engines/cuda_kernels.py``. Splits that are no
hyperplanes and targets that are neither classes nor numbers run in torch, as defined.

Glossary: *score* f(x), *steepness* γ, *path* from the root to a leaf, *leaf* and its *table* π, *evidence* log p(y∣ℓ),
*responsibility* h, *mass* (a sum of responsibilities), *turn* (left or right).
"""
