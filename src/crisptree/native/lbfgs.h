// Full-batch minimisation of a tree's negative log-likelihood by L-BFGS. No Python objects in here.
#pragma once

#include <cstdint>

#include "pool.h"

namespace crisptree {

// Features that l1 keeps or drops together, and the signs that weights must have.
struct Constraints {
  const int64_t* groups = nullptr;  // (n_groups, 2): first feature and the one after the last; others are penalised by themselves
  int64_t n_groups = 0;
  const int8_t* signs = nullptr;  // (p,): 1 or −1, 0 where free; null where all are
};

// Rows that several trees share, and the trees. Tree t has the rows order[begin[t]] … order[end[t] − 1] and the splits
// t·n_splits … of a common structure; its leaf tables are the columns t·n_values … of `leaves` (n_leaves, n_trees·n_values).
template <class T>
struct TreeBatch {
  const T* x;  // (m, p)
  int64_t p;
  const int64_t* index;  // (n,): row i has the features x[index[i]]; null for those of x[i]
  const int64_t* label;  // (n,), or null
  const double* y;       // (n, n_outputs), where there are no labels
  int64_t n_outputs;
  const T* sample_weight;
  const int64_t *order, *begin, *end;
  int64_t n_trees;
  const int32_t *left, *right;
  int64_t n_splits;  // of one tree
  T *weight, *bias, *leaves;
  int64_t n_values;
  const double* share;  // of the rows, that the penalties of a split are multiplied by
  const bool* zeros;    // weights that stay zero, or null
  double* counts;       // (n_leaves, n_trees·n_statistics)
  int64_t n_statistics;
  Constraints constraints;
};

struct Objective {
  double steepness;
  double noise;  // (π/8) σ², see equations/annealing.py
  double l1, l2;
  double prior;  // pseudo-rows of a leaf, with equal parts of all classes
  int max_iterations;
  double tolerance;  // relative decrease of the objective that ends the minimisation
};

struct Minimum {
  double log_likelihood = 0, weight = 0;
  int64_t evaluations = 0;
};

template <class T>
using Minimize = Minimum (*)(const TreeBatch<T>&, const Objective&, Pool&);

}  // namespace crisptree
