// A tree made ready for routing, and the routing of many rows on several threads. No Python objects in here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "route.h"

namespace crisptree {

// Rows of floats or doubles at any strides, counted in elements.
struct Rows {
  const void* data;
  bool is_double;
  int64_t n_rows;
  int64_t row_stride;
  int64_t column_stride;
};

class Router {
 public:
  Router(const int32_t* left, const int32_t* right, const float* weight, const float* bias, int64_t n_splits,
         int64_t n_features);

  int64_t n_features() const { return n_features_; }
  int64_t n_sparse() const { return n_sparse_; }

  // Writes the leaf of every row. False where `check_finite` found a value that is not finite; the leaves mean nothing
  // then.
  bool route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const;

 private:
  TreeView view() const;
  bool route_range(const Rows& rows, int64_t begin, int64_t end, int64_t* leaves, bool check_finite,
                   const Kernel& kernel) const;

  int64_t n_features_;
  int64_t n_sparse_ = 0;
  std::vector<int32_t> left_, right_, count_, index_;
  std::vector<int64_t> start_;
  std::vector<float> bias_, dense_, value_;
};

// The kernels that this processor can run, the widest last.
std::vector<const Kernel*> available_kernels();

}  // namespace crisptree
