// One optimiser step on linear splits, fused: scores, responsibilities, residuals, gradients, Adam.
// The definition is learning/engines/torch_engine.py with torch; everything here is held to it by tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lbfgs.h"
#include "leaf_models.h"
#include "pool.h"
#include "trees.h"
#include "windows.h"

namespace crisptree {

// Where rows come from: an array of them; where `base` is given, windows of images, or some rows of an array; where `start` is, rows
// without their zeros; where `center` is, raw rows that are scaled, in double precision, whenever they are read.
template <class T>
struct Rows {
  const T* data;
  const int64_t* base;
  const Run* runs;
  int64_t n_runs;
  int64_t n_features;
  const int32_t* index = nullptr;
  const int64_t* start = nullptr;
  const double *center = nullptr, *factor = nullptr;

  // Windows of several runs and raw rows are copied before they are read; windows of one run lie there as a row does.
  bool are_windows() const { return base != nullptr && n_runs > 1; }
  bool are_copied() const { return are_windows() || center != nullptr; }
  const T* in_place(int64_t row) const { return base == nullptr ? data + row * n_features : data + base[row] + runs->offset; }
  bool are_sparse() const { return start != nullptr; }
};

// The gradient of one split over the features that its sparse rows have, all others being zero.
template <class T>
struct Touched {
  std::vector<T> gradient;
  std::vector<char> is_there;
  std::vector<int32_t> features;  // in the order in which they were met
  T bias_gradient = 0;

  explicit Touched(int64_t n) : gradient(n, T(0)), is_there(n, 0) {}

  void add(const Rows<T>& rows, int64_t row, T factor) {
    bias_gradient += factor;
    for (int64_t k = rows.start[row]; k < rows.start[row + 1]; ++k) {
      const int32_t feature = rows.index[k];
      if (rows.data[k] == 0) continue;
      if (!is_there[feature]) {
        is_there[feature] = 1;
        features.push_back(feature);
      }
      gradient[feature] += factor * rows.data[k];
    }
  }

  void clear() {
    for (const int32_t feature : features) {
      gradient[feature] = 0;
      is_there[feature] = 0;
    }
    features.clear();
    bias_gradient = 0;
  }
};

// Room for such gradients, as many as threads need at once; a step takes what the last one has left.
template <class T>
class Shelf {
 public:
  std::unique_ptr<Touched<T>> take(int64_t n) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Touched<T>>(n);
    auto one = std::move(free_.back());
    free_.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<Touched<T>> one) {
    one->clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Touched<T>>> free_;
};

// The rows of one step: the places begin[a] … end[a] of `order` belong to the group active[a], or where the rows have parts to active[a] / n_parts and
// to the part active[a] % n_parts. A row's sample weight is multiplied by in_loss[a] in the loss and by in_counts[a] in the leaf counts.
template <class T>
struct Batch {
  Rows<T> rows;
  const int64_t* y;  // null where y is no class
  const T* weight;
  const int64_t* order;
  const int64_t *active, *begin, *end;
  const double *in_loss, *in_counts;
  int64_t n_active;
  Shelf<T>* shelf;  // for sparse rows
};

// Where gradients of several parts of the rows are added up before the splits move, (n_splits, n_features + 2): those of weights and bias, and how many
// parts had rows at the split, in whole units, whose sum no order changes. Without `exact` splits move at once and all rows are one part.
struct Sums {
  int64_t* exact = nullptr;
  const double* unit = nullptr;  // (n_features + 1), a power of two each, for γ in [1, 2)
  int64_t n_parts = 1;
  double* found = nullptr;  // (n_parts, 2): the log-likelihood and weight of every part's rows

  bool are_there() const { return exact != nullptr; }
  void add(int64_t part, double log_likelihood, double weight) const {
    if (found == nullptr) return;
    found[2 * part] += log_likelihood;
    found[2 * part + 1] += weight;
  }
};

// Hyperplanes with their Adam state, changed in place.
template <class T>
struct Splits {
  T *weight, *bias;
  T *weight_mean, *weight_square, *bias_mean, *bias_square;
  T* steps;
  double learning_rate, l1, l2, roughness;
  const double* share;  // what the penalties of each split are multiplied by
  int64_t height, width, channels;
  double noise;     // (π/8) σ² of the noise on the inputs
  double* squares;  // βᵀSβ of every split, kept up as it moves; ‖β‖² under independent noise
  const double* taps;  // correlations of the noise of pixels 0, 1, 2, … apart
  int64_t n_taps;
  T* correlated;      // S β of every split, kept up as it moves; null under independent noise
  const T* varying;   // 0 for features without noise, 1 for the others; null where all have it
  const bool* zeros;    // weights that stay zero; null where none must
  const int8_t* signs;  // of every feature: +1 or −1 where its weights may have that sign only; null where all are free
  const int64_t* groups;  // first feature and the one after the last of those that l1 shrinks by their common norm, in order
  int64_t n_groups;
  Sums sums;
};

// γ of a split under noise on its inputs: γ / √(1 + (π/8) γ² σ² ‖β‖²); γ itself without any.
inline double damped(double steepness, double noise, double square) {
  return steepness / std::sqrt(1 + noise * steepness * steepness * square);
}

// Where responsibilities come from: the splits at the start of the epoch, or the current ones (the same pointers).
template <class T>
struct Before {
  const T *weight, *bias;
  const double* squares;
};

// What leaves say of a row, and what it leaves behind there. Where y is a class:
// the two leaves of stumps, one stump per group. `tables` is (2, n_groups · n_classes).
template <class T>
struct ClassStumps {
  const int64_t* y;
  const T* tables;
  int64_t n_groups, n_classes;
};

// The leaves of a tree. `best` is (n_nodes, n_classes): the largest entry of any leaf table under a node, splits first.
template <class T>
struct ClassLeaves {
  const int64_t* y;
  const T* best;
  int64_t n_splits, n_classes;
};

// Where y are numbers, (n, n_outputs), a leaf's form is its means, its halved precisions 1 / 2v, and the logarithm of its highest density.
struct GaussianStumps {
  const double* y;
  const double* forms;  // (2, n_groups, 2 n_outputs + 1)
  int64_t n_groups, n_outputs;
};

// `best` is (n_outputs, n_bins, n_nodes): how dense a y of a bin can be in any leaf under a node, relative to the densest leaf of all, whose logarithm
// is `highest` (n_outputs, n_bins). `bins` says where each y is.
struct GaussianLeaves {
  const double* y;
  const int32_t* bins;
  const double* forms;  // (2 n_outputs + 1, n_leaves)
  const double* best;
  const double* highest;
  int64_t n_splits, n_outputs, n_bins;
};

// A whole tree, whose only group holds all rows.
template <class T>
struct Tree {
  const int32_t *left, *right;
  int64_t n_splits;
  double mass_threshold;
  double* pairs_per_row;  // (n_parts), that the last rows of each had; a guess at first
  std::vector<T>* desks;  // for the windows of a piece of a batch; kept from step to step
};

// Where the rows of a step on the bound go down: one tree, or many stumps. `start` is the node at which each row of the step begins, `worst` is
// (n_nodes, n_classes): the largest loss of any leaf under a node, splits first.
template <class T>
struct Paths {
  const int32_t *left, *right, *start;
  const T* worst;
  int64_t n_splits, n_classes;
  double nu;
};

// Hyperplanes between two children each: >= 0 is another hyperplane, < 0 an end.
template <class T>
struct Turns {
  const T *weight, *bias;
  const int32_t *left, *right;
};

struct Result {
  double log_likelihood = 0;
  double weight = 0;  // of the rows, as the leaf counts see them
  int64_t pairs = 0;  // (row, split) pairs that were differentiated
};

template <class T>
struct TrainingKernel {
  // `counts` are what the rows of each part leave behind: (n_parts, 2, n_groups · n_statistics), or (n_parts, n_leaves, n_statistics).
  template <class Leaves>
  using StumpStep = Result (*)(const Batch<T>&, const Before<T>&, const Splits<T>&, const Leaves&, double* counts, double steepness, Pool& pool);
  template <class Leaves>
  using TreeStep = Result (*)(const Batch<T>&, const Before<T>&, const Splits<T>&, const Tree<T>&, const Leaves&, double* counts, double steepness,
                              Pool& pool);
  StumpStep<ClassStumps<T>> stumps;
  TreeStep<ClassLeaves<T>> tree;
  StumpStep<GaussianStumps> gaussian_stumps;
  TreeStep<GaussianLeaves> gaussian_tree;

  // Moves the splits by the gradients that were added up, and leaves zeros in their place. False where one was no number, or out of all bounds.
  bool (*move)(const Splits<T>&, int64_t n_splits, int64_t n_features, double steepness, Pool& pool);

  // A step on the bound ‖w‖² ≤ ν of the hard loss. The result holds Σ weight · bound, the weight, and how many scores were evaluated.
  Result (*bound)(const Batch<T>&, const Splits<T>&, const Paths<T>&, Pool& pool);

  // The end that each of the rows numbers[0] … numbers[n − 1] reaches from its own node, which it replaces.
  void (*route)(const Rows<T>&, const int64_t* numbers, int64_t n, const Turns<T>&, int32_t* node, Pool& pool);

  // Copies of those rows, one after the other.
  void (*gather)(const Rows<T>&, const int64_t* numbers, int64_t n, T* copies, Pool& pool);

  // Full-batch L-BFGS on trees; null where the compiler has no vector types.
  Minimum (*minimize)(const TreeBatch<T>&, const Objective&, Pool& pool);

  // A whole tree by the same, from its growth on.
  TrainTree<T> train_tree;
};

struct TrainingKernels {
  TrainingKernel<float> singles;
  TrainingKernel<double> doubles;
  FitLeafModels fit_leaf_models;  // null where the compiler has no vector types
};

extern const TrainingKernels base_training;
#if defined(__GNUC__) && defined(__x86_64__)
extern const TrainingKernels avx2_training;
extern const TrainingKernels avx512_training;
#endif

}  // namespace crisptree
