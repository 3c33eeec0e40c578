#include "coordinates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace crisptree {
namespace {

constexpr double kGainUnits = 1e6;  // gains that agree in so many parts are equal, and the first partition wins
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int64_t kFewRows = 96;  // sorted by comparing

double phi(double z) { return z > 0 ? z * std::log(z) : 0.0; }

// The middle of two crossings, the first of which may be −∞ and the second ∞.
double middle(double low, double high) {
  const bool lower = std::isfinite(low), upper = std::isfinite(high);
  if (!lower && !upper) return 0.0;
  const double below = lower ? low : high - 1 - std::abs(high), above = upper ? high : low + 1 + std::abs(low);
  return below / 2 + above / 2;
}

// The order of numbers: by the digits of their single-precision values, then put right where those are too coarse.
class Sorter {
 public:
  const std::vector<int32_t>& order(const std::vector<double>& points) {
    const int64_t n = static_cast<int64_t>(points.size());
    order_.resize(n);
    for (int64_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
    if (n > kFewRows) by_digits(points);
    for (int64_t i = 1; i < n; ++i) {
      const int32_t row = order_[i];
      int64_t k = i;
      for (; k > 0 && points[order_[k - 1]] > points[row]; --k) order_[k] = order_[k - 1];
      order_[k] = row;
    }
    return order_;
  }

 private:
  static constexpr int kBits = 11, kPasses = 3, kDigits = 1 << kBits;

  void by_digits(const std::vector<double>& points) {
    const size_t n = points.size();
    keys_.resize(n);
    other_.resize(n);
    std::memset(counts_, 0, sizeof(counts_));
    for (size_t i = 0; i < n; ++i) {
      const float value = static_cast<float>(points[i]);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits ^= (bits >> 31) ? 0xffffffffu : 0x80000000u;
      keys_[i] = bits;
      for (int pass = 0; pass < kPasses; ++pass) ++counts_[pass][(bits >> (pass * kBits)) & (kDigits - 1)];
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      int32_t sum = 0;
      for (int32_t& count : counts_[pass]) {
        const int32_t here = count;
        count = sum;
        sum += here;
      }
      for (const int32_t row : order_) other_[counts_[pass][(keys_[row] >> (pass * kBits)) & (kDigits - 1)]++] = row;
      order_.swap(other_);
    }
  }

  std::vector<int32_t> order_, other_;
  std::vector<uint32_t> keys_;
  int32_t counts_[kPasses][kDigits];
};

struct Best {
  double place = 0, gain = -1;
};

// The search along one line of partitions of the rows of a node.
class Node {
 public:
  Node(const int64_t* y, const double* weight, int64_t n, int64_t n_classes, const Keep& keep)
      : y_(y), weight_(weight), n_(n), keep_(keep), totals_(n_classes, 0.0), right_(n_classes) {
    are_single_ = std::all_of(weight, weight + n, [](double one) { return one == 1.0; });
    if (are_single_) {
      for (int64_t count = 0; count <= n; ++count) table_.push_back(phi(static_cast<double>(count)));
    }
    for (int64_t i = 0; i < n; ++i) {
      totals_[y[i]] += weight[i];
      all_ += weight[i];
    }
    impure_ = of(all_);
    for (const double total : totals_) impure_ -= of(total);
  }

  // The place on the line with the highest gain; each row changes sides where score + place · slope is zero.
  Best best(const double* scores, const double* slope) {
    points_.clear();
    moving_.clear();
    std::fill(right_.begin(), right_.end(), 0.0);
    double weight_right = 0;
    int64_t rows_right = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const double point = -scores[i] / slope[i];
      const bool moves = std::isfinite(point);
      if (moves) {
        points_.push_back(point);
        moving_.push_back(static_cast<int32_t>(i));
      }
      if (moves ? slope[i] < 0 : scores[i] > 0) {
        right_[y_[i]] += weight_[i];
        weight_right += weight_[i];
        ++rows_right;
      }
    }
    double pure = 0;
    for (size_t k = 0; k < totals_.size(); ++k) pure += of(right_[k]) + of(totals_[k] - right_[k]);
    const std::vector<int32_t>& order = sorter_.order(points_);
    const int64_t n_moving = static_cast<int64_t>(order.size());
    Best best;
    double highest = -1;
    for (int64_t state = 0;; ++state) {
      const double low = state ? points_[order[state - 1]] : -kInfinite, high = state < n_moving ? points_[order[state]] : kInfinite;
      const bool keeps = std::min(rows_right, n_ - rows_right) >= keep_.rows && !(std::min(weight_right, all_ - weight_right) < keep_.weight);
      if (low < high && keeps) {
        const double gain = (impure_ - of(weight_right) - of(all_ - weight_right) + pure) / all_;
        const double rounded = std::nearbyint(gain * kGainUnits);
        if (rounded > highest) {
          highest = rounded;
          best = {middle(low, high), std::max(gain, 0.0)};
        }
      }
      if (state == n_moving) return best;
      const int32_t row = moving_[order[state]];
      const double change = slope[row] < 0 ? -weight_[row] : weight_[row], before = right_[y_[row]], after = before + change;
      const double total = totals_[y_[row]];
      pure += of(after) - of(before) + of(total - after) - of(total - before);
      right_[y_[row]] = after;
      weight_right += change;
      rows_right += slope[row] < 0 ? -1 : 1;
    }
  }

 private:
  double of(double z) const { return are_single_ ? table_[static_cast<size_t>(z)] : phi(z); }

  const int64_t* y_;
  const double* weight_;
  const int64_t n_;
  const Keep keep_;
  bool are_single_;
  std::vector<double> totals_, right_, table_, points_;
  std::vector<int32_t> moving_;
  double all_ = 0, impure_ = 0;
  Sorter sorter_;
};

void descend_line(const Lines& lines, const Tries& tries, const Keep& keep, int64_t line) {
  const int64_t node = line / lines.n_starts, start = line % lines.n_starts, p = lines.n_features;
  const int64_t first = node ? lines.ends[node - 1] : 0, n = lines.ends[node] - first;
  const int64_t n_rows = lines.ends[lines.n_nodes - 1];
  const float* const columns = lines.columns + first;
  double* const beta = lines.beta + line * (p + 1);
  double* const scores = lines.scores + line * lines.width;
  double& gain = lines.gain[line];
  if (gain < 0) return;
  Node rows(lines.y + first, lines.weight + first, n, lines.n_classes, keep);
  std::vector<double> slope(n);
  // Moves along the slope where that gains; how far.
  const auto improved = [&](double& step) {
    const Best best = rows.best(scores, slope.data());
    if (!(best.gain > gain + 1 / kGainUnits)) return false;
    for (int64_t i = 0; i < n; ++i) scores[i] += best.place * slope[i];
    gain = best.gain;
    step = best.place;
    return true;
  };
  double step = 0;
  for (int64_t round = 0; round < tries.n_rounds; ++round) {
    if (round > 0) {
      const double* const jump = tries.jumps + ((round - 1) * lines.n_starts + start) * (p + 1);
      std::fill(slope.begin(), slope.end(), jump[p]);
      for (int64_t j = 0; j < p; ++j) {
        for (int64_t i = 0; i < n; ++i) slope[i] += static_cast<double>(columns[j * n_rows + i]) * jump[j];
      }
      if (!improved(step)) return;
      for (int64_t j = 0; j <= p; ++j) beta[j] += step * jump[j];
    }
    int64_t in_vain = 0;
    for (int64_t number = 0; number < tries.n_tries && in_vain <= p; ++number) {
      const int64_t coordinate = tries.coordinates[round * tries.n_tries + number];
      for (int64_t i = 0; i < n; ++i) slope[i] = coordinate < p ? static_cast<double>(columns[coordinate * n_rows + i]) : 1.0;
      ++in_vain;
      if (improved(step)) {
        beta[coordinate] += step;
        in_vain = 0;
      }
    }
  }
}

}  // namespace

void thresholds(const float* scores, int64_t n_lines, int64_t n, const int64_t* y, const double* weight, int64_t n_classes, const Keep& keep,
                double* place, double* gain, Pool& pool) {
  constexpr int64_t kLinesPerTask = 8;
  const std::vector<double> slope(n, -1.0);  // a row leaves the right side as the threshold passes its score
  pool.run((n_lines + kLinesPerTask - 1) / kLinesPerTask, [&](int64_t task) {
    Node rows(y, weight, n, n_classes, keep);
    std::vector<double> line(n);
    for (int64_t k = task * kLinesPerTask; k < std::min(n_lines, (task + 1) * kLinesPerTask); ++k) {
      for (int64_t i = 0; i < n; ++i) line[i] = static_cast<double>(scores[k * n + i]);
      const Best best = rows.best(line.data(), slope.data());
      place[k] = best.place;
      gain[k] = best.gain;
    }
  });
}

void descend(const Lines& lines, const Tries& tries, const Keep& keep, Pool& pool) {
  pool.run(lines.n_nodes * lines.n_starts, [&](int64_t line) { descend_line(lines, tries, keep, line); });
}

}  // namespace crisptree
