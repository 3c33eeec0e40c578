// Rows that keep only what is not zero: row r has value[k] at feature index[k] for k from start[r] to start[r + 1], in the
// order of the features. No Python objects in here.
#pragma once

#include <cstdint>

namespace crisptree {

// Whether every value belongs to a row and to a feature, and a row has each of its features once, in order.
inline bool is_csr(int64_t n_values, const int32_t* index, const int64_t* start, int64_t n_rows, int64_t n_features) {
  if (start[0] != 0 || start[n_rows] != n_values) return false;
  for (int64_t r = 0; r < n_rows; ++r) {
    if (start[r] > start[r + 1] || start[r + 1] > n_values) return false;
    for (int64_t k = start[r]; k < start[r + 1]; ++k) {
      if (index[k] < 0 || index[k] >= n_features || (k > start[r] && index[k] <= index[k - 1])) return false;
    }
  }
  return true;
}

}  // namespace crisptree
