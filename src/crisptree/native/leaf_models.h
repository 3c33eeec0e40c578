// Linear models in the leaves of a tree: hierarchical ridge regression and softmax. No Python objects in here.
#pragma once

#include <cstdint>

namespace crisptree {

// Leaf ℓ looks at the rows row[begin[ℓ]] … row[begin[ℓ + 1] − 1], each with its share. Children are splits (>= 0) or leaves
// (~child); nodes are numbered splits first. A node's weights are those of its parent plus a part of its own, and what is
// minimised is Σ share · loss + λ/2 Σ ‖part‖², with another strength for every weight of the root.
struct LeafProblem {
  const double* x;  // (n, q), the last column is constant
  int64_t q;
  const int64_t* label;  // (n,) for a softmax, or null
  const double* y;       // (n, n_outputs) for a regression
  int64_t n_outputs;     // linear functions of a leaf
  const int64_t *row, *begin;
  const double* share;
  const int32_t *left, *right;
  int64_t n_splits;
  const double* root;  // (n_penalties, q)
  const double* penalty;
  int64_t n_penalties;
  int max_iterations;  // of a softmax
  double tolerance;
  double* weights;   // (n_penalties, n_nodes, q, n_outputs); those of a softmax start from `start`, then from the ones before
  const double* start;  // (n_nodes, q, n_outputs), or null
  double* variance;  // (n_penalties, n_leaves, n_outputs) of a regression: what its rows leave over, or null
};

using FitLeafModels = void (*)(const LeafProblem&);

}  // namespace crisptree
