"""The paper, one formula a function: tensors in, tensors out.

"End-to-end Learning of Deterministic Decision Trees", Hehn & Hamprecht.

======================================= ================================ =====================================
in the paper (equation)                 symbol                           in the code
======================================= ================================ =====================================
split feature (3.1)                     f(x) = (x, 1)·β                  ``splits.*`` → scores (n, n_splits)
split function, probabilistic (sigmoid, σ(γ f)                           once, in ``routing.log_turns``
gamma)
split function, deterministic (3.1)     Θ(f): f > 0 goes right           ``routing.goes_right``
probability of a path (3.1)             μ_ℓ(x)                           ``routing.log_path_probabilities``
prediction (probest)                    p(y∣x) = Σ_ℓ π_ℓ(y) μ_ℓ(x)       ``routing.log_class_probabilities``
log-likelihood (objective)              Σ_n log p(y_n∣x_n)               ``routing.log_likelihoods``
E-step (EMhidden)                       h_{n,ℓ}                          ``em.responsibilities``
M-step, leaves (EMleaves)               π_ℓ                              ``em.leaf_distributions``
M-step, splits (EMsplitobjective)       Σ h log μ                        ``em.split_loss``
leaves under a split                    H_{n,i} = H^L + H^R              ``em.node_masses``
alternating scheme (discreteleaves)     N_{ℓ,k} / N_ℓ                    ``alternating.hard_responsibilities``
steepness (gamma)                       γ                                ``annealing.*``
information gain (3.6)                  H_ℓ, Σ N_ℓ/N H_ℓ                 ``gain.*``
spatial regularisation (regularization) λ βᵀMβ                           ``penalties.grid_laplacian``,
                                                                         ``penalties.roughness``
======================================= ================================ =====================================

Glossary: *score* f(x), *steepness* γ, *path* from the root to a leaf, *leaf* and its *table* π, *responsibility*
h, *mass* (a sum of responsibilities), *turn* (left or right).
"""
