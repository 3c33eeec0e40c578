// One optimiser step on linear splits, fused: scores, responsibilities, residuals, gradients, Adam.
// The definition is learning/train.py with torch; everything here is held to it by tests.
#pragma once

#include <cstdint>
#include <vector>

#include "pool.h"

namespace crisptree {

// The rows of one step: `rows` index X, y; a row's loss counts `mass`, its responsibilities count `once` in the leaves.
template <class T>
struct Batch {
  const T* X;
  const int64_t* y;
  const int64_t* rows;
  const T* mass;
  const T* once;
  int64_t n_rows;
  int64_t n_features;
};

// Hyperplanes with their Adam state, changed in place.
template <class T>
struct Splits {
  T *weight, *bias;
  T *weight_mean, *weight_square, *bias_mean, *bias_square;
  T* steps;
  double learning_rate, l1, l2, roughness;
  int64_t height, width, channels;
};

// Where responsibilities come from: the splits at the start of the epoch, or the current ones (the same pointers).
template <class T>
struct Before {
  const T *weight, *bias;
};

// Stumps, one per group; `group` says whose row each is, rows of a group stand together. `tables` and `counts` are
// (2, n_groups · n_classes).
template <class T>
struct Stumps {
  const int64_t* group;
  const T* tables;
  double* counts;
  int64_t n_groups, n_classes;
};

// A whole tree. `best` is (n_nodes, n_classes): the largest entry of any leaf table under a node, splits first.
template <class T>
struct Tree {
  const int32_t *left, *right;
  const T* best;
  double* counts;
  int64_t n_splits, n_classes;
  double mass_threshold;
};

struct Result {
  double log_likelihood;
  int64_t pairs;  // (row, split) pairs that were evaluated
};

template <class T>
struct TrainingKernel {
  Result (*stumps)(const Batch<T>&, const Before<T>&, const Splits<T>&, const Stumps<T>&, double steepness, Pool& pool);
  Result (*tree)(const Batch<T>&, const Before<T>&, const Splits<T>&, const Tree<T>&, double steepness, Pool& pool);
};

struct TrainingKernels {
  TrainingKernel<float> singles;
  TrainingKernel<double> doubles;
};

extern const TrainingKernels base_training;
#if defined(__GNUC__) && defined(__x86_64__)
extern const TrainingKernels avx2_training;
extern const TrainingKernels avx512_training;
#endif

}  // namespace crisptree
