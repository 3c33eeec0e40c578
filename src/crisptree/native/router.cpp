#include "router.h"

#include "pool.h"
#include "processor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace crisptree {
namespace {

// Whether (index, value) pairs are quicker than a dense row: measured, a pair costs about as much as twelve dense terms,
// and the sum of several pairs as much as 320 more.
bool pairs_are_quicker(int64_t pairs, int64_t n_features) { return pairs <= 1 || 12 * pairs + 320 < n_features; }

// Rows that are not contiguous floats are brought into that form so many at a time: enough to use whole cache lines of
// a transposed array, few enough to stay in the cache.
constexpr int64_t kBlock = 32;

// A thread is worth its start for so many values.
constexpr int64_t kValuesPerThread = int64_t{1} << 18;

constexpr int64_t kPiecesPerThread = 16;

// Sums are made over at least so many rows, in so many pieces at most.
constexpr int64_t kRowsPerPiece = 1024, kMostPieces = 64;

// The cores but the caller's. A new thread often starts on the core of the one that made it, and is moved to an idle one
// only after some milliseconds: longer than ten thousand rows take.
class OtherCores {
 public:
#if defined(__linux__)
  OtherCores() {
    CPU_ZERO(&cores_);
    const int here = sched_getcpu();
    known_ = here >= 0 && sched_getaffinity(0, sizeof(cores_), &cores_) == 0;
    if (known_) CPU_CLR(here, &cores_);
    known_ = known_ && CPU_COUNT(&cores_) > 0;
  }
  void take(std::thread& thread) const {
    if (known_) pthread_setaffinity_np(thread.native_handle(), sizeof(cores_), &cores_);
  }

 private:
  cpu_set_t cores_;
  bool known_;
#else
  void take(std::thread&) const {}
#endif
};

// A number of IEEE's sixteen bits. Its exponent and mantissa in their places of a float are 2^-112 of it, subnormal ones
// too; what is not finite has all bits of the exponent set, there and here.
struct Half {
  uint16_t bits;
  explicit operator float() const {
    const uint32_t size = static_cast<uint32_t>(bits & 0x7fff) << 13, sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    float value;
    std::memcpy(&value, &size, sizeof(value));
    value *= 0x1p112f;
    uint32_t whole;
    std::memcpy(&whole, &value, sizeof(whole));
    whole |= sign | ((bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u);
    std::memcpy(&value, &whole, sizeof(value));
    return value;
  }
};

bool lie_ready(const Rows& rows, int64_t n_features) {
  return rows.element == Element::kFloat && (rows.column_stride == 1 || n_features <= 1);
}

template <class Value>
void copy_block(const Rows& rows, int64_t begin, int64_t end, int64_t n_features, float* block) {
  const Value* data = static_cast<const Value*>(rows.data);
  const int64_t n = end - begin;
  if (rows.column_stride == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const Value* row = data + (begin + i) * rows.row_stride;
      for (int64_t j = 0; j < n_features; ++j) block[i * n_features + j] = static_cast<float>(row[j]);
    }
    return;
  }
  for (int64_t j = 0; j < n_features; ++j) {
    const Value* column = data + j * rows.column_stride;
    for (int64_t i = 0; i < n; ++i) {
      block[i * n_features + j] = static_cast<float>(column[(begin + i) * rows.row_stride]);
    }
  }
}

// A dense row of weights in whole numbers, `pairs`, of a scale: as fine as sixteen bits and the sums of a lane allow. How far scores are off:
// values of a row are rounded to whole steps, each by half a step at most; what is rounded off a weight counts as often as the largest value;
// and both ways round their sums, each of as many terms as a lane has, to 24 bits.
Coarse coarse_of(const float* weight, int64_t padded, uint32_t* pairs) {
  double largest = 0.0, whole = 0.0, lane_of_piece = 0.0;
  for (int64_t piece = 0; piece < padded; piece += kPiece) {
    double lanes[kPairs] = {};
    for (int64_t j = piece; j < std::min(piece + kPiece, padded); ++j) {
      const double size = std::abs(static_cast<double>(weight[j]));
      lanes[j % kPairs] += size;
      largest = std::max(largest, size);
      whole += size;
    }
    lane_of_piece = std::max(lane_of_piece, *std::max_element(lanes, lanes + kPairs));
  }
  std::fill(pairs, pairs + padded / 2, 0u);
  const float infinite = std::numeric_limits<float>::infinity();
  if (!(largest >= kSmallest && whole <= kLargest)) return {0.0f, infinite, infinite};
  const double rounded = kPiece / kPairs / 2;  // what rounding may add to a lane
  const auto scale = static_cast<float>(1.001 * std::max(largest / INT16_MAX, lane_of_piece / (kMostOfLane - rounded)));
  double off = 0.0;
  for (int64_t j = 0; j < padded; ++j) {
    const double number = std::nearbyint(static_cast<double>(weight[j]) / scale);
    off += std::abs(static_cast<double>(weight[j]) - number * scale);
    const auto bits = static_cast<uint32_t>(static_cast<uint16_t>(static_cast<int16_t>(number)));
    pairs[j / kLanes * kPairs + j % kPairs] |= j % kLanes < kPairs ? bits : bits << 16;
  }
  const double rounding = (static_cast<double>(padded / kLanes + padded / kPiece) + 20.0) * 0x1p-24;
  return {scale, static_cast<float>(1.01 * 0.5 * whole), static_cast<float>(1.01 * (off + rounding * whole))};
}

}  // namespace

Router::Router(const int32_t* left, const int32_t* right, const float* weight, const float* bias, int64_t n_splits,
               int64_t n_features)
    : n_features_(n_features),
      padded_((n_features + kLanes - 1) / kLanes * kLanes),
      bias_(bias, bias + n_splits) {
  for (int64_t split = 0; split < n_splits; ++split) {
    const float* row = weight + split * n_features;
    children_.insert(children_.end(), {left[split], right[split]});
    const int64_t terms = n_features - std::count(row, row + n_features, 0.0f);
    if (pairs_are_quicker(terms, n_features)) {
      start_.push_back(static_cast<int64_t>(index_.size()));
      coarse_.push_back({});
      count_.push_back(static_cast<int32_t>(terms));
      for (int64_t j = 0; j < n_features; ++j) {
        if (row[j] == 0.0f) continue;
        index_.push_back(static_cast<int32_t>(j));
        value_.push_back(row[j]);
      }
      ++n_sparse_;
    } else {
      start_.push_back(static_cast<int64_t>(dense_.size()));
      count_.push_back(-1);
      dense_.insert(dense_.end(), row, row + n_features);
      dense_.resize(dense_.size() + (padded_ - n_features), 0.0f);
      pairs_.resize(dense_.size() / 2);
      coarse_.push_back(coarse_of(dense_.data() + start_.back(), padded_, pairs_.data() + start_.back() / 2));
    }
  }
}

TreeView Router::view() const {
  return {children_.data(), bias_.data(),  start_.data(), count_.data(),
          dense_.data(), index_.data(), value_.data(), pairs_.data(),  coarse_.data(), n_features_,  padded_, bias_.empty(), !dense_.empty()};
}

RowBlock::RowBlock(const Rows& rows, int64_t n_features)
    : rows_(rows), n_features_(n_features), ready_(lie_ready(rows, n_features)) {}

Source RowBlock::take(int64_t first, int64_t n_rows) {
  if (ready_) return {static_cast<const float*>(rows_.data) + first * rows_.row_stride, rows_.row_stride, nullptr, nullptr, 0};
  block_.resize(std::max<size_t>(block_.size(), n_rows * n_features_));
  const int64_t last = first + n_rows;
  switch (rows_.element) {
    case Element::kFloat: copy_block<float>(rows_, first, last, n_features_, block_.data()); break;
    case Element::kDouble: copy_block<double>(rows_, first, last, n_features_, block_.data()); break;
    case Element::kByte: copy_block<uint8_t>(rows_, first, last, n_features_, block_.data()); break;
    case Element::kHalf: copy_block<Half>(rows_, first, last, n_features_, block_.data()); break;
  }
  return {block_.data(), n_features_, nullptr, nullptr, 0};
}

bool Router::route_range(const Rows& rows, int64_t begin, int64_t end, int64_t* leaves, bool check_finite,
                         const Kernel& kernel) const {
  RowBlock block(rows, n_features_);
  AlignedPairs pairs(pairs_for(end - begin, n_features_));
  const int64_t at_once = lie_ready(rows, n_features_) ? std::max<int64_t>(end - begin, 1) : kBlock;
  for (int64_t first = begin; first < end; first += at_once) {
    const int64_t number = std::min(end - first, at_once);
    if (!route_source(block.take(first, number), number, leaves + first, check_finite, pairs.data(), kernel)) return false;
  }
  return true;
}

bool Router::take(const Source& source, int64_t n_rows, Bench& bench, const Kernel& kernel) const {
  TreeView tree = view();
  tree.has_dense = true;  // other trees may have dense splits where this one has none
  bool finite = true;
  for (int64_t i = 0; i < n_rows; ++i) finite &= kernel.take(tree, source.data + i * source.stride, bench.rows[i]);
  return finite;
}

void Router::route_bench(const Source& source, Bench& bench, int64_t n_rows, int64_t* leaves, const Kernel& kernel) const {
  kernel.route_block(view(), source, bench.rows.data(), n_rows, leaves, bench.first.data(), bench.next.data(), bench.waiting.data());
}

bool Router::route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const {
  return share_out(rows.n_rows, rows.n_rows * n_features_, n_threads, kBlock, [&](int64_t begin, int64_t end) {
    return route_range(rows, begin, end, leaves, check_finite, kernel);
  });
}

void Router::route(const Windows& windows, int64_t* leaves, int n_threads, const Kernel& kernel) const {
  const TreeView tree = view();
  const std::vector<Run> runs = runs_of(windows.offset, n_features_);
  const Source source = {windows.data, 0, windows.base, runs.data(), static_cast<int64_t>(runs.size())};
  share_out(windows.n_rows, windows.n_rows * n_features_, n_threads, kBlock, [&](int64_t begin, int64_t end) {
    AlignedPairs pairs(kMostRowsAtOnce * padded_ / 2);
    AlignedFloats desks(kMostRowsAtOnce * padded_);
    return kernel.route(tree, source.from(begin), end - begin, leaves + begin, false, pairs.data(), desks.data());
  });
}

// The score of a sparse row without its bias, in the order of inference/summation.py: zeros would add nothing to any lane.
float Router::score(const SparseRows& rows, int64_t row, int32_t split) const {
  float lanes[kLanes] = {};
  const int64_t end = rows.start[row + 1];
  if (count_[split] < 0) {
    const float* const weight = dense_.data() + start_[split];
    for (int64_t k = rows.start[row]; k < end; ++k) lanes[rows.index[k] % kLanes] += rows.value[k] * weight[rows.index[k]];
  } else {
    const int32_t *term = index_.data() + start_[split], *const last = term + count_[split];
    for (int64_t k = rows.start[row]; k < end && term != last; ++k) {
      term = std::lower_bound(term, last, rows.index[k]);
      if (term == last || *term != rows.index[k]) continue;
      lanes[*term % kLanes] += rows.value[k] * value_[term - index_.data()];
    }
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

void Router::route(const SparseRows& rows, int64_t* leaves, int n_threads) const {
  share_out(rows.n_rows, rows.start[rows.n_rows], n_threads, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int32_t node = bias_.empty() ? -1 : 0;
      while (node >= 0) node = children_[2 * node + (score(rows, i, node) + bias_[node] > 0.0f)];
      leaves[i] = ~static_cast<int64_t>(node);
    }
    return true;
  });
}

bool share_out(int64_t n_rows, int64_t n_values, int n_threads, int64_t least, const std::function<bool(int64_t, int64_t)>& route_piece) {
  const int64_t worth = n_values / kValuesPerThread;
  const int64_t threads = std::clamp<int64_t>(std::min<int64_t>(n_threads, worth), 1, std::max<int64_t>(n_rows, 1));
  if (threads == 1) return route_piece(0, n_rows);
  // Threads help themselves to pieces, so that one that starts late or is slowed down holds nobody up.
  std::atomic<bool> finite{true};
  std::atomic<int64_t> taken{0};
  const int64_t piece = std::max(least, n_rows / (threads * kPiecesPerThread));
  std::atomic<bool> failed{false};
  const auto work = [&] {
    try {
      for (int64_t begin; finite && (begin = taken.fetch_add(piece)) < n_rows;) {
        const int64_t end = std::min(begin + piece, n_rows);
        if (!route_piece(begin, end)) finite = false;
      }
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  };
  const OtherCores elsewhere;
  std::vector<std::thread> others;
  try {
    for (int64_t number = 1; number < threads; ++number) {
      others.emplace_back(work);
      elsewhere.take(others.back());
    }
  } catch (const std::system_error&) {
    // The machine gives no more threads: those that there are do the work.
  }
  work();
  for (std::thread& other : others) other.join();
  if (failed) throw std::bad_alloc();
  return finite;
}

void Router::score_moments(const float* rows, int64_t n_rows, const double* sample_weight, double* moments, int n_threads,
                           const Kernel& kernel) const {
  add_moments({rows, n_features_, nullptr, nullptr, 0}, n_rows, sample_weight, moments, n_threads, kernel);
}

void Router::score_moments(const Windows& windows, const double* sample_weight, double* moments, int n_threads,
                           const Kernel& kernel) const {
  const std::vector<Run> runs = runs_of(windows.offset, n_features_);
  const Source source = {windows.data, 0, windows.base, runs.data(), static_cast<int64_t>(runs.size())};
  add_moments(source, windows.n_rows, sample_weight, moments, n_threads, kernel);
}

void Router::score_moments(const SparseRows& rows, const double* sample_weight, double* moments, int n_threads) const {
  add_moments(rows.n_rows, sample_weight, moments, n_threads,
              [&] { return [&](int64_t row, int32_t split) { return score(rows, row, split); }; });
}

void Router::add_moments(const Source& source, int64_t n_rows, const double* sample_weight, double* moments, int n_threads,
                         const Kernel& kernel) const {
  const TreeView tree = view();
  add_moments(n_rows, sample_weight, moments, n_threads, [&] {
    return [&, desk = AlignedFloats(n_features_), taken = int64_t{-1}, values = static_cast<const float*>(nullptr)](
               int64_t row, int32_t split) mutable {
      if (row != taken) values = kernel.values(source, taken = row, desk.data());
      return kernel.score(tree, split, values);
    };
  });
}

template <class Begin>
void Router::add_moments(int64_t n_rows, const double* sample_weight, double* moments, int n_threads, const Begin& begin) const {
  if (bias_.empty()) return;
  const int64_t n_values = 3 * static_cast<int64_t>(bias_.size()), n_pieces = std::clamp<int64_t>(n_rows / kRowsPerPiece, 1, kMostPieces);
  std::vector<std::vector<double>> sums(n_pieces);  // added up in the order of the rows, whatever thread made them
  Pool(n_threads).run(n_pieces, [&](int64_t piece) {
    std::vector<double>& sum = sums[piece];
    sum.assign(n_values, 0.0);
    auto score_of = begin();
    for (int64_t i = n_rows * piece / n_pieces; i < n_rows * (piece + 1) / n_pieces; ++i) {
      for (int32_t node = 0; node >= 0;) {
        const float score = score_of(i, node) + bias_[node];
        const double f = static_cast<double>(score), w = sample_weight[i];
        sum[3 * node] += w;
        sum[3 * node + 1] += w * f;
        sum[3 * node + 2] += w * f * f;
        node = children_[2 * node + (score > 0.0f)];
      }
    }
  });
  for (const std::vector<double>& sum : sums) {
    for (int64_t k = 0; k < n_values; ++k) moments[k] += sum[k];
  }
}

std::vector<const Kernel*> available_kernels() {
  std::vector<const Kernel*> kernels = {&scalar_kernel};
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
  kernels.push_back(&vector128_kernel);
#endif
#if defined(__GNUC__) && defined(__x86_64__)
  if (has_avx2()) kernels.push_back(&avx2_kernel);
  if (has_avx512()) kernels.push_back(&avx512_kernel);
#endif
  return kernels;
}

}  // namespace crisptree
