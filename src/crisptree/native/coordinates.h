// Coordinate descent on hyperplanes by information gain, the heart of OC1. The definition is _Lines in baselines/oc1.py.
#pragma once

#include <cstdint>

#include "pool.h"

namespace crisptree {

// Hyperplanes in descent, `n_starts` for each node. Rows stand one node after the other; those of node i end at ends[i].
struct Lines {
  const float* columns;  // (n_features, n_rows): a try reads one feature of all rows of a node
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

// The threshold of every line of scores (n_lines, n) for which score > threshold gains most, and that gain.
void thresholds(const float* scores, int64_t n_lines, int64_t n, const int64_t* y, const double* weight, int64_t n_classes, const Keep& keep,
                double* place, double* gain, Pool& pool);

void descend(const Lines& lines, const Tries& tries, const Keep& keep, Pool& pool);

}  // namespace crisptree
