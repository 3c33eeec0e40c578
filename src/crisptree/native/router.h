// A tree made ready for routing, and the routing of many rows on several threads. No Python objects in here.
#pragma once

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

// Some rows at a time as contiguous floats: where they lie, or copied. Desks are room for a kernel, zeros where they pad.
class RowBlock {
 public:
  RowBlock(const Rows& rows, int64_t n_features);
  Source take(int64_t first, int64_t n_rows);
  float* desks() { return desks_.data(); }

 private:
  const Rows& rows_;
  int64_t n_features_;
  bool ready_;
  std::vector<float> block_;
  AlignedFloats desks_;
};

// Hands the rows out in pieces of at least so many, on as many threads as are worth their start; false where a piece says so.
bool share_out(int64_t n_rows, int64_t n_values, int n_threads, int64_t least, const std::function<bool(int64_t begin, int64_t end)>& route_piece);

class Router {
 public:
  Router(const int32_t* left, const int32_t* right, const float* weight, const float* bias, int64_t n_splits,
         int64_t n_features);

  int64_t n_features() const { return n_features_; }
  int64_t n_sparse() const { return n_sparse_; }
  size_t n_splits() const { return left_.size(); }

  // Writes the leaf of every row. False where `check_finite` found a value that is not finite; the leaves mean nothing
  // then.
  bool route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const;

  // The same for rows that are ready, on this thread.
  bool route_source(const Source& source, int64_t n_rows, int64_t* leaves, bool check_finite, float* desks, const Kernel& kernel) const {
    return kernel.route(view(), source, n_rows, leaves, check_finite, desks);
  }

  // Copies rows to the bench; false where one of them is not finite.
  bool take(const Source& source, int64_t n_rows, class Bench& bench, const Kernel& kernel) const;

  // The leaves of rows on the bench, which is as wide as the widest of some trees needs.
  void route_bench(class Bench& bench, int64_t n_rows, int64_t* leaves, const Kernel& kernel) const;

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
  std::vector<int32_t> left_, right_, count_, index_;
  std::vector<int64_t> start_;
  std::vector<float> bias_, value_;
  AlignedFloats dense_;
};

// Room for some rows, padded, on their way through several trees, and for the lists in which they wait.
class Bench {
 public:
  Bench(int64_t n_rows, int64_t n_features, size_t most_splits)
      : padded((n_features + kLanes - 1) / kLanes * kLanes), rows(n_rows * padded, 0.0f), first(most_splits, -1), next(n_rows),
        waiting(most_splits), begin(n_rows), end(n_rows) {}

  // Notes from where to where a row that was taken holds more than zeros.
  void note(int64_t row);
  BlockView view(int64_t n_rows) const { return {rows.data(), begin.data(), end.data(), n_rows}; }

  int64_t padded;
  AlignedFloats rows;
  std::vector<int32_t> first, next, waiting, begin, end;
};

// The kernels that this processor can run, the widest last.
std::vector<const Kernel*> available_kernels();

}  // namespace crisptree
