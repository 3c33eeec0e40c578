// What the kernels share: the tree as they read it, and the functions that each instruction set provides.
#pragma once

#include <cstdint>

#include "windows.h"

namespace crisptree {

// A score is summed up in this many lanes; see inference/summation.py, which defines the order.
constexpr int kLanes = 32;

// A coarse score has half as many, of two terms each.
constexpr int kPairs = kLanes / 2;

// Rows that a kernel may have on their way at once.
constexpr int kMostRowsAtOnce = 8;

// Coarse terms of a row are whole numbers of at most so much, and those of a lane of a split add up to at most kMostOfLane in each piece of
// kPiece features: products then add up to less than 2^31.
constexpr int32_t kMostOfRow = 1 << 13, kMostOfLane = (1 << 18) - 1;
constexpr int64_t kPiece = 8192;

// Values that coarse scores are made for lie between 2^-50 and 2^50: products are neither lost nor infinite.
constexpr float kSmallest = 0x1p-50f, kLargest = 0x1p50f;

// How far a coarse score may be from the exact one: `by_step` for a step of the row, `by_size` for its largest value.
struct Coarse {
  float scale, by_step, by_size;
};

// Splits are dense (count < 0: `start` is the first of `padded` weights, zeros at the end) or sparse (`count` pairs of index and
// value from `start`, in the order of the index).
struct TreeView {
  const int32_t* children;  // left and right of every split; read by a place that is computed, for a branch would be mispredicted half of the time
  const float* bias;
  const int64_t* start;
  const int32_t* count;
  const float* dense;
  const int32_t* index;
  const float* value;
  const uint32_t* pairs;  // the dense weights as pairs of whole numbers, half as many: terms j and j + kPairs of every kLanes
  const Coarse* coarse;   // of every split
  int64_t n_features;
  int64_t padded;  // n_features rounded up to whole blocks of kLanes
  bool single_leaf;
  bool has_dense;
};

// Rows of contiguous floats, `stride` apart; or, where `base` is given, windows.
struct Source {
  const float* data;
  int64_t stride;
  const int64_t* base;
  const Run* runs;
  int64_t n_runs;

  Source from(int64_t row) const {
    return base == nullptr ? Source{data + row * stride, stride, nullptr, nullptr, 0} : Source{data, stride, base + row, runs, n_runs};
  }
};

// A row in whole numbers of a step, for coarse scores. Before the block of kLanes at `begin` and from `end` on they are zeros, which would
// add nothing to any sum. `size` is the largest value without its sign, or infinite where no coarse score says anything.
struct CoarseRow {
  uint32_t* pairs;
  float step, size;
  int32_t begin, end;
};

// Writes the leaves of rows. False where `check_finite` found a value that is not finite (windows are not looked at); the
// leaves mean nothing then. `pairs` has room for kMostRowsAtOnce coarse rows, `desk` for a window.
using Route = bool (*)(const TreeView& tree, const Source& source, int64_t n_rows, int64_t* leaves, bool check_finite,
                       uint32_t* pairs, float* desk);

// Where the values of a row lie: in the source, or, of a window, on the desk.
using Values = const float* (*)(const Source& source, int64_t row, float* desk);

// Makes a coarse row of a row, and says whether all of its values are finite.
using Take = bool (*)(const TreeView& tree, const float* row, CoarseRow& coarse);

// The score of one row at one split, without its bias.
using Score = float (*)(const TreeView& tree, int32_t split, const float* row);

// Writes the leaves of a block of rows, no windows, whose coarse rows are made. `first` and `waiting` have an entry for every split and `next`
// one for every row; all of `first` are -1 before and after.
using RouteBlock = void (*)(const TreeView& tree, const Source& source, const CoarseRow* rows, int64_t n_rows, int64_t* leaves, int32_t* first,
                            int32_t* next, int32_t* waiting);

struct Kernel {
  const char* name;
  Route route;
  Values values;
  Take take;
  Score score;
  RouteBlock route_block;
};

extern const Kernel scalar_kernel;
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
extern const Kernel vector128_kernel;  // SSE2 or NEON: every machine of the kind has it
#endif
#if defined(__GNUC__) && defined(__x86_64__)
extern const Kernel avx2_kernel;
extern const Kernel avx512_kernel;
#endif

}  // namespace crisptree
