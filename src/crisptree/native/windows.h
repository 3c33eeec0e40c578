// Rows that are windows of images: feature j of row r is data[base[r] + offset[j]]. No Python objects in here.
#pragma once

#include <cstdint>
#include <vector>

namespace crisptree {

// Features whose values lie beside each other, so that they are copied together.
struct Run {
  int64_t offset, length;
};

inline std::vector<Run> runs_of(const int64_t* offset, int64_t n_features) {
  std::vector<Run> runs;
  for (int64_t j = 0; j < n_features; ++j) {
    if (!runs.empty() && offset[j] == runs.back().offset + runs.back().length) {
      ++runs.back().length;
    } else {
      runs.push_back({offset[j], 1});
    }
  }
  return runs;
}

// No array is so long that a place or an offset could be farther; sums of a few such numbers do not overflow.
constexpr int64_t kFar = int64_t{1} << 60;

// Whether every window lies inside the data.
inline bool windows_fit(int64_t n_values, const int64_t* base, int64_t n_rows, const int64_t* offset, int64_t n_features) {
  int64_t low = 0, high = 0;
  for (int64_t j = 0; j < n_features; ++j) {
    low = j == 0 || offset[j] < low ? offset[j] : low;
    high = j == 0 || offset[j] > high ? offset[j] : high;
  }
  if (low < -kFar || high > kFar) return false;
  for (int64_t r = 0; r < n_rows; ++r) {
    if (base[r] < -kFar || base[r] > kFar || base[r] + low < 0 || base[r] + high >= n_values) return false;
  }
  return true;
}

}  // namespace crisptree
