// What the kernels share: the tree as they read it, and the functions that each instruction set provides.
#pragma once

#include <cstdint>

#include "windows.h"

namespace crisptree {

// A score is summed up in this many lanes; see inference/summation.py, which defines the order.
constexpr int kLanes = 32;

// Rows that a kernel may have on their way at once; each needs a desk of `padded` floats.
constexpr int kMostRowsAtOnce = 8;

// Splits are dense (count < 0: `start` is the first of `padded` weights, zeros at the end) or sparse (`count` pairs of index and
// value from `start`, in the order of the index).
struct TreeView {
  const int32_t* left;
  const int32_t* right;
  const float* bias;
  const int64_t* start;
  const int32_t* count;
  const float* dense;
  const int32_t* index;
  const float* value;
  int64_t n_features;
  int64_t padded;  // n_features rounded up to whole blocks of kLanes
  bool single_leaf;
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

// Writes the leaves of rows. False where `check_finite` found a value that is not finite (windows are not looked at); the
// leaves mean nothing then. `desks` are kMostRowsAtOnce times `padded` floats, zeros where they pad.
using Route = bool (*)(const TreeView& tree, const Source& source, int64_t n_rows, int64_t* leaves, bool check_finite,
                       float* desks);

// Copies one row to a desk of `padded` floats, and says whether all of its values are finite (windows are not looked at).
using Take = bool (*)(const TreeView& tree, const Source& source, int64_t row, float* desk);

// The score of one row of `padded` floats at one split, without its bias.
using Score = float (*)(const TreeView& tree, int32_t split, const float* row);

// Rows that lie side by side, `padded` floats each, zeros where they pad. Before the block of kLanes at `begin` and from `end` on a row holds
// zeros only, which would add nothing to any sum.
struct BlockView {
  const float* values;
  const int32_t* begin;
  const int32_t* end;
  int64_t n_rows;
};

// Writes the leaves of a block of rows. `first` and `waiting` have an entry for every split and `next` one for every row; all of `first`
// are -1 before and after.
using RouteBlock = void (*)(const TreeView& tree, const BlockView& rows, int64_t* leaves, int32_t* first, int32_t* next, int32_t* waiting);

struct Kernel {
  const char* name;
  Route route;
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
