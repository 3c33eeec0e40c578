// What both bindings demand of the arrays they are given. Nothing that comes from Python is trusted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "csr.h"

namespace crisptree {

constexpr int kMostThreads = 4096;

inline void must(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

inline void must_be_threads(int n_threads) { must(n_threads >= 1 && n_threads <= kMostThreads, "there must be 1 to 4096 threads"); }

// Values begin at multiples of their size: what reads them counts on it.
template <class... Arrays>
void must_be_aligned(const Arrays&... arrays) {
  const auto is_aligned = [](const auto& array) {
    return array.size() == 0 || reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize() == 0;
  };
  must((is_aligned(arrays) && ...), "arrays must be aligned; copy those that are not");
}

// Sparse rows that lie inside their arrays; every index is looked at.
template <class Values, class Indices, class Starts>
void must_be_csr(const Values& value, const Indices& index, const Starts& start, int64_t n_features) {
  must(n_features > 0 && n_features < std::numeric_limits<int32_t>::max(), "rows must have features, and fewer than 2 ** 31");
  must(start.shape(0) > 0 && index.shape(0) == value.shape(0), "one feature per value, and one start more than rows");
  must_be_aligned(value, index, start);
  must(is_csr(static_cast<int64_t>(value.shape(0)), index.data(), start.data(), static_cast<int64_t>(start.shape(0)) - 1, n_features),
       "sparse rows must lie inside the data, their features in order, each once and below the width");
}

// Every split but the first is the child of one split at most, and the first of none: so no way down comes back. Leaves are
// numbered from 0 to n_splits.
inline void must_be_tree(const int32_t* left, const int32_t* right, int64_t n_splits) {
  std::vector<char> has_parent(static_cast<size_t>(n_splits), 0);
  for (int64_t split = 0; split < n_splits; ++split) {
    for (const int32_t child : {left[split], right[split]}) {
      if (child < 0) {
        must(~static_cast<int64_t>(child) <= n_splits, "a tree has one leaf more than it has splits");
        continue;
      }
      must(child > 0 && child < n_splits, "a child must be a split other than the first, or a leaf");
      must(!has_parent[static_cast<size_t>(child)], "a split must have one parent");
      has_parent[static_cast<size_t>(child)] = 1;
    }
  }
}

}  // namespace crisptree
