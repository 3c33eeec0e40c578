// A tree made ready for routing, and the routing of many rows on several threads. No Python objects in here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "route.h"

namespace crisptree {

// Memory at the start of a cache line: a vector that crosses two lines takes twice as long to load.
template <class Value>
struct Aligned {
  using value_type = Value;
  static constexpr std::align_val_t kLine{64};
  Aligned() = default;
  template <class Other>
  Aligned(const Aligned<Other>&) {}
  Value* allocate(size_t n) { return static_cast<Value*>(::operator new(n * sizeof(Value), kLine)); }
  void deallocate(Value* memory, size_t) { ::operator delete(memory, kLine); }
  friend bool operator==(const Aligned&, const Aligned&) { return true; }
  friend bool operator!=(const Aligned&, const Aligned&) { return false; }
};
using AlignedFloats = std::vector<float, Aligned<float>>;
using AlignedPairs = std::vector<uint32_t, Aligned<uint32_t>>;

// What rows are made of; each value becomes a float as it is read.
enum class Element { kFloat, kDouble, kByte, kHalf };

// Rows at any strides, counted in elements.
struct Rows {
  const void* data;
  Element element;
  int64_t n_rows;
  int64_t row_stride;
  int64_t column_stride;
};

// Rows that are windows, as many as there are bases.
struct Windows {
  const float* data;
  const int64_t* base;
  const int64_t* offset;
  int64_t n_rows;
};

// Rows without their zeros; see csr.h.
struct SparseRows {
  const float* value;
  const int32_t* index;
  const int64_t* start;
  int64_t n_rows;
};

// Some rows at a time as contiguous floats: where they lie, or copied.
class RowBlock {
 public:
  RowBlock(const Rows& rows, int64_t n_features);
  Source take(int64_t first, int64_t n_rows);

 private:
  const Rows& rows_;
  int64_t n_features_;
  bool ready_;
  std::vector<float> block_;
};

// Hands the rows out in pieces of at least so many, on as many threads as are worth their start; false where a piece says so.
bool share_out(int64_t n_rows, int64_t n_values, int n_threads, int64_t least, const std::function<bool(int64_t begin, int64_t end)>& route_piece);

// The room that coarse rows need while so many rows are on their way; a single row needs none.
inline int64_t pairs_for(int64_t n_rows, int64_t n_features) {
  return n_rows < 2 ? 0 : std::min<int64_t>(n_rows, kMostRowsAtOnce) * ((n_features + kLanes - 1) / kLanes * kPairs);
}

class Router {
 public:
  Router(const int32_t* left, const int32_t* right, const float* weight, const float* bias, int64_t n_splits,
         int64_t n_features);

  int64_t n_features() const { return n_features_; }
  int64_t n_sparse() const { return n_sparse_; }
  size_t n_splits() const { return bias_.size(); }

  // Writes the leaf of every row. False where `check_finite` found a value that is not finite; the leaves mean nothing
  // then.
  bool route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const;

  // The same for rows that are ready, on this thread; `pairs` has room as `pairs_for` says.
  bool route_source(const Source& source, int64_t n_rows, int64_t* leaves, bool check_finite, uint32_t* pairs, const Kernel& kernel) const {
    return kernel.route(view(), source, n_rows, leaves, check_finite, pairs, nullptr);
  }

  // Makes coarse rows of rows, on the bench; false where one of them is not finite.
  bool take(const Source& source, int64_t n_rows, class Bench& bench, const Kernel& kernel) const;

  // The leaves of rows whose coarse ones are on the bench.
  void route_bench(const Source& source, class Bench& bench, int64_t n_rows, int64_t* leaves, const Kernel& kernel) const;

  void route(const Windows& windows, int64_t* leaves, int n_threads, const Kernel& kernel) const;

  // The same leaves as those of the rows with their zeros.
  void route(const SparseRows& rows, int64_t* leaves, int n_threads) const;

  // Σ w, Σ w f and Σ w f² of the rows that pass each split, added to `moments`, (n_splits, 3). Rows are contiguous floats.
  void score_moments(const float* rows, int64_t n_rows, const double* sample_weight, double* moments, int n_threads,
                     const Kernel& kernel) const;
  void score_moments(const Windows& windows, const double* sample_weight, double* moments, int n_threads, const Kernel& kernel) const;
  void score_moments(const SparseRows& rows, const double* sample_weight, double* moments, int n_threads) const;

 private:
  TreeView view() const;
  bool route_range(const Rows& rows, int64_t begin, int64_t end, int64_t* leaves, bool check_finite,
                   const Kernel& kernel) const;
  void add_moments(const Source& source, int64_t n_rows, const double* sample_weight, double* moments, int n_threads,
                   const Kernel& kernel) const;
  // Walks every row down in pieces; `begin()` gives a piece its function of row and split, the score without its bias.
  template <class Begin>
  void add_moments(int64_t n_rows, const double* sample_weight, double* moments, int n_threads, const Begin& begin) const;
  float score(const SparseRows& rows, int64_t row, int32_t split) const;

  int64_t n_features_;
  int64_t padded_;
  int64_t n_sparse_ = 0;
  std::vector<int32_t> children_, count_, index_;
  std::vector<int64_t> start_;
  std::vector<float> bias_, value_;
  AlignedFloats dense_;
  AlignedPairs pairs_;
  std::vector<Coarse> coarse_;
};

// Room for some coarse rows on their way through several trees, and for the lists in which they wait.
class Bench {
 public:
  Bench(int64_t n_rows, int64_t n_features, size_t most_splits) : rows(n_rows), first(most_splits, -1), next(n_rows), waiting(most_splits) {
    const int64_t half = (n_features + kLanes - 1) / kLanes * kPairs;
    pairs_.resize(n_rows * half);
    for (int64_t i = 0; i < n_rows; ++i) rows[i].pairs = pairs_.data() + i * half;
  }

  std::vector<CoarseRow> rows;
  std::vector<int32_t> first, next, waiting;

 private:
  AlignedPairs pairs_;
};

// The kernels that this processor can run, the widest last.
std::vector<const Kernel*> available_kernels();

}  // namespace crisptree
