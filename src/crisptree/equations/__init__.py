"""Formulas of the paper and of its extensions as functions: tensors in, tensors out. None knows the kind of y.

"End-to-end Learning of Deterministic Decision Trees", Hehn & Hamprecht, GCPR 2018.

============================= ============================== ======================================
in the paper (equation)       symbol                         function
============================= ============================== ======================================
split feature (3.1)           f(x) = (x, 1)·β                ``splits.ObliqueSplits``
split function (3, 5)         σ(γ f)                         ``routing.log_branch_probabilities``
deterministic split (3.1)     Θ(f): f > 0 goes right         ``routing.goes_right``
probability of a path (1)     μ_ℓ(x)                         ``routing.log_path_probabilities``
prediction (2)                p(y∣x) = Σ_ℓ π_ℓ(y) μ_ℓ(x)     ``routing.log_class_probabilities``
log-likelihood (4)            Σ_n log p(y_n∣x_n)             ``routing.log_likelihoods``
evidence                      log π_ℓ(y_n)                   ``targets.Classes.evidence``
E-step (10)                   h_{n,ℓ}                        ``em.responsibilities``
leaves under a split          H_{n,i} = H^L + H^R            ``em.node_masses``
M-step, splits (14)           Σ h log μ                      ``em.split_loss``
M-step, leaves (13)           π_ℓ                            ``targets.Classes.update``
the same on soft labels       Σ_k P_{n,k} …                  ``soft_labels.responsibilities``
the same in regression        N(y; m_ℓ, v_ℓ)                 ``leaves.log_densities``,
                                                             ``targets.Gaussians.update``
linear models in leaves       θ_ℓ = Σ of parts on a path     ``leaves.TreeRidge``
alternating (supplement)      N_{ℓ,k} / N_ℓ                  ``alternating.hard_responsibilities``
steepness (3.2, 4.1)          γ                              ``annealing.linear_steepness``
spatial regularisation (15)   λ βᵀMβ                         ``penalties.spatial_penalty``
l1 of groups of features      Σ_g √size_g ‖β_g‖              ``penalties.group_threshold``
noise on the inputs           γ / √(1 + (π/8) γ² τ² ‖β‖²)    ``annealing.damped_steepness``
information gain (16–19)      H_ℓ, Σ N_ℓ/N H_ℓ               ``targets.gain``
============================= ============================== ======================================

docs/paper-to-code.md lists the fast implementations on the CPU and on CUDA beside them.

Glossary: *score* f(x), *steepness* γ, *path* from the root to a leaf, *leaf* and its *table* π, *evidence* log p(y∣ℓ)
(the log-likelihood of y under a leaf), *responsibility* h, *mass* (a sum of responsibilities), *turn* (left or right).
"""
