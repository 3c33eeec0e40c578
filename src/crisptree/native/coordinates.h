// Coordinate descent on hyperplanes by information gain, the heart of OC1. The definition is _Lines in baselines/oc1.py.
#pragma once

#include <cstdint>

#include "pool.h"

namespace crisptree {

// Hyperplanes in descent, `n_starts` for each node. Rows stand one node after the other; those of node i end at ends[i].
struct Lines {
  const float* x;
  const int64_t* y;
  const double* weight;
  const int64_t* ends;
  int64_t n_nodes, n_starts, n_features, n_classes;
  double *beta, *scores, *gain;  // (n_lines, n_features + 1), (n_lines, width), (n_lines,)
  int64_t width;
};

// What they try: coordinates (n_rounds, n_tries), and before every round but the first a step along jumps[round − 1]
// (n_starts, n_features + 1). A round ends early when as many tries as there are coordinates brought nothing.
struct Tries {
  const int64_t* coordinates;
  const double* jumps;
  int64_t n_rounds, n_tries;
};

// What each side of a split must keep.
struct Keep {
  int64_t rows;
  double weight;
};

void descend(const Lines& lines, const Tries& tries, const Keep& keep, Pool& pool);

}  // namespace crisptree
