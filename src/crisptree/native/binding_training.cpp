// Python's door to the training steps.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "binding_training.h"
#include "coordinates.h"
#include "processor.h"

namespace nb = nanobind;
using namespace crisptree;

const TrainingKernels* crisptree::active = &base_training;  // until crisptree.native says which the processor has

namespace {

// The training steps have no scalar variant: "scalar" and "sse2" or "neon" are both what every machine of the kind has.
const TrainingKernels* kernels_named(const std::string& name) {
#if defined(__GNUC__) && defined(__x86_64__)
  if (name == "avx512" && has_avx512()) return &avx512_training;
  if (name == "avx2" && has_avx2()) return &avx2_training;
#endif
  if (name == "scalar" || name == "sse2" || name == "neon") return &base_training;
  throw std::invalid_argument("this processor has no instruction set '" + name + "'");
}

// One step at a time: what a trainer keeps between steps is not made for two threads.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& taken) : taken_(taken) { must(!taken_.exchange(true), "a trainer takes one step at a time"); }
  ~Turn() { taken_ = false; }
  Turn(const Turn&) = delete;

 private:
  std::atomic<bool>& taken_;
};


// Where rows come from; the arrays belong to Python and are kept alive here.
template <class T>
class Source {
 public:
  explicit Source(Array<const T, 2> X) : n_rows_(X.shape(0)), array_(X) {
    must(X.shape(1) > 0, "rows must have features");
    must_be_aligned(X);
    rows_ = {X.data(), nullptr, nullptr, 0, static_cast<int64_t>(X.shape(1))};
  }

  Source(Array<const T, 2> X, Doubles center, Doubles factor) : Source(X) {
    must(center.shape(0) == X.shape(1) && factor.shape(0) == X.shape(1), "one center and one factor per feature");
    must_be_aligned(center, factor);
    center_ = center;
    factor_ = factor;
    rows_.center = center.data();
    rows_.factor = factor.data();
  }

  Source(Array<const T, 1> data, Numbers<1> base, Numbers<1> offset) : n_rows_(base.shape(0)), data_(data), base_(base) {
    const auto n = static_cast<int64_t>(offset.shape(0));
    must(n > 0, "rows must have features");
    must_be_aligned(data, base, offset);
    must(windows_fit(static_cast<int64_t>(data.shape(0)), base.data(), static_cast<int64_t>(n_rows_), offset.data(), n),
         "windows must lie inside the data");
    const auto [low, high] = std::minmax_element(offset.data(), offset.data() + n);
    first_ = -*low;
    last_ = static_cast<int64_t>(data.shape(0)) - 1 - *high;
    runs_ = runs_of(offset.data(), n);
    rows_ = {data.data(), base.data(), runs_.data(), static_cast<int64_t>(runs_.size()), n};
  }

  Source(Array<const T, 1> data, Children index, Numbers<1> start, int64_t n_features)
      : n_rows_(start.shape(0) - 1), data_(data), index_(index), base_(start) {
    must_be_csr(data, index, start, n_features);
    rows_ = {data.data(), nullptr, nullptr, 0, n_features, index.data(), start.data()};
  }

  Source(const Source&) = delete;  // its rows point to its own runs

  const Rows<T>& rows() const { return rows_; }
  size_t n_rows() const { return n_rows_; }
  size_t n_features() const { return static_cast<size_t>(rows_.n_features); }

  // That the row is there. Its arrays belong to Python, which may have changed them since they were first looked at.
  void must_hold(int64_t row) const {
    must(row >= 0 && row < static_cast<int64_t>(n_rows_), "a row must exist");
    must(rows_.base == nullptr || (rows_.base[row] >= first_ && rows_.base[row] <= last_), "windows must lie inside the data");
    if (!rows_.are_sparse()) return;
    const int64_t begin = rows_.start[row], end = rows_.start[row + 1];
    must(begin >= 0 && begin <= end && end <= static_cast<int64_t>(data_.shape(0)), "sparse rows must lie inside the data");
    int32_t low = 0, high = 0;
    for (int64_t k = begin; k < end; ++k) {
      low = std::min(low, rows_.index[k]);
      high = std::max(high, rows_.index[k]);
    }
    must(low >= 0 && high < rows_.n_features, "a value must belong to a feature");
  }

  void route(Numbers<1> numbers, Array<int32_t, 1> node, Array<const T, 2> weight, Array<const T, 1> bias,
             Children left, Children right, int n_threads) const {
    const size_t n_splits = bias.shape(0);
    must_be_aligned(numbers, node, weight, bias, left, right);
    must_be_threads(n_threads);
    check(numbers);
    must(node.shape(0) == numbers.shape(0), "one node per row");
    must(weight.shape(0) == n_splits && weight.shape(1) == n_features(), "weights must be (n_splits, n_features)");
    must(left.shape(0) == n_splits && right.shape(0) == n_splits, "one child on each side of a split");
    for (size_t i = 0; i < node.shape(0); ++i) must(node.data()[i] < static_cast<int64_t>(n_splits), "a row must begin at a node");
    check_children(left, right, n_splits);
    const Turns<T> turns = {weight.data(), bias.data(), left.data(), right.data()};
    nb::gil_scoped_release released;
    Pool pool(n_threads);
    kernel<T>().route(rows_, numbers.data(), static_cast<int64_t>(numbers.shape(0)), turns, node.data(), pool);
  }

  void gather(Numbers<1> numbers, Array<T, 2> copies, int n_threads) const {
    must_be_aligned(numbers, copies);
    must_be_threads(n_threads);
    check(numbers);
    must(!rows_.are_sparse(), "rows without their zeros are not copied");
    must(copies.shape(0) == numbers.shape(0) && copies.shape(1) == n_features(), "copies must be (n, n_features)");
    nb::gil_scoped_release released;
    Pool pool(n_threads);
    kernel<T>().gather(rows_, numbers.data(), static_cast<int64_t>(numbers.shape(0)), copies.data(), pool);
  }

 private:
  void check(const Numbers<1>& numbers) const {
    for (size_t i = 0; i < numbers.shape(0); ++i) must_hold(numbers.data()[i]);
  }

  size_t n_rows_;
  Array<const T, 2> array_;
  Array<const T, 1> data_;
  Children index_;
  Doubles center_, factor_;
  Numbers<1> base_;  // or the start of every sparse row
  int64_t first_ = 0, last_ = 0;  // of the places where windows may begin
  std::vector<Run> runs_;
  Rows<T> rows_;
};

// Splits in training: their parameters and Adam state belong to Python and are kept alive here.
template <class T>
class Trainer {
 public:
  Trainer(const Source<T>& source, std::optional<Numbers<1>> y, Array<const T, 1> sample_weight, Array<T, 2> weight, Array<T, 1> bias,
          Array<T, 2> weight_mean, Array<T, 2> weight_square, Array<T, 1> bias_mean, Array<T, 1> bias_square, Array<T, 1> steps,
          double l1, double l2, double roughness, double noise, Array<double, 1> squares, Doubles taps, std::optional<Array<T, 2>> correlated,
          std::optional<Array<const T, 1>> varying, Doubles share, std::pair<int64_t, int64_t> image,
          std::optional<Array<const bool, 2>> zeros, std::optional<Array<const int8_t, 1>> signs, Numbers<2> groups,
          int n_threads)
      : source_(source), y_(y), sample_weight_(sample_weight), weight_(weight), bias_(bias), weight_mean_(weight_mean), weight_square_(weight_square),
        bias_mean_(bias_mean), bias_square_(bias_square), steps_(steps), squares_(squares), taps_(taps), correlated_(correlated), varying_(varying), share_(share), zeros_(zeros), signs_(signs), groups_(groups) {
    const size_t n = bias.shape(0), p = source.n_features();
    pairs_per_row_.assign(1, static_cast<double>(n));
    must((!y || y->shape(0) == source.n_rows()) && sample_weight.shape(0) == source.n_rows(), "one label and one weight per row");
    if (y) must_be_aligned(*y);
    for (const auto& matrix : {weight, weight_mean, weight_square}) {
      must(matrix.shape(0) == n && matrix.shape(1) == p, "weights must be (n_splits, n_features)");
    }
    for (const auto& vector : {bias_mean, bias_square, steps}) must(vector.shape(0) == n, "one entry per split");
    must(squares.shape(0) == n && noise >= 0, "one squared norm per split, and noise of no negative width");
    must(share.shape(0) == n, "one share of the penalties per split");
    must_be_aligned(sample_weight, weight, bias, weight_mean, weight_square, bias_mean, bias_square, steps, squares, share);
    must_be_threads(n_threads);
    const auto side = static_cast<int64_t>(p);  // an image has no more pixels than a row has features
    must(image.first >= 0 && image.second >= 0 && image.first <= side && image.second <= side, "an image must fit into a row");
    const int64_t pixels = image.first * image.second;
    must((roughness == 0 && !correlated) || (pixels > 0 && side % pixels == 0), "rows must be images for roughness and correlated noise");
    must(!correlated || (correlated->shape(0) == n && correlated->shape(1) == p), "one correlated weight per weight");
    must(!varying || varying->shape(0) == p, "every feature varies or not");
    must((roughness == 0 && !correlated) || !source.rows().are_sparse(), "sparse rows are no images");
    must(!zeros || (zeros->shape(0) == n && zeros->shape(1) == p), "every weight stays zero or not");
    must(!signs || signs->shape(0) == p, "one sign per feature");
    must(groups.shape(1) == 2 && (groups.shape(0) == 0 || !source.rows().are_sparse()), "groups are (n, 2), of rows that are not sparse");
    must_be_aligned(taps, groups);
    int64_t after = 0;
    for (size_t group = 0; group < groups.shape(0); ++group) {
      const int64_t begin = groups.data()[2 * group], end = groups.data()[2 * group + 1];
      must(begin >= after && end > begin && end <= side, "groups of features must be in order and apart");
      after = end;
    }
    if (correlated) must_be_aligned(*correlated);
    if (varying) must_be_aligned(*varying);
    pool_ = std::make_unique<Pool>(n_threads);
    splits_ = {weight.data(), bias.data(), weight_mean.data(), weight_square.data(), bias_mean.data(), bias_square.data(),
               steps.data(), 0.0, l1, l2, roughness, share.data(), image.first, image.second,
               pixels > 0 ? static_cast<int64_t>(p) / pixels : 0, noise, squares.data(), taps.data(),
               static_cast<int64_t>(taps.shape(0)), correlated ? correlated->data() : nullptr, varying ? varying->data() : nullptr,
               zeros ? zeros->data() : nullptr, signs ? signs->data() : nullptr,
               groups.data(), static_cast<int64_t>(groups.shape(0)), {}};
  }

  double learning_rate() const { return splits_.learning_rate; }
  void set_learning_rate(double rate) { splits_.learning_rate = rate; }

  // From now on steps add the gradients of the parts of the rows up in whole units, and `move` moves the splits. `found` (n_parts, 2) is
  // where the log-likelihood and weight of every part are added up.
  void collect(Array<int64_t, 2> exact, Doubles unit, Array<double, 2> found) {
    const size_t n = bias_.shape(0), p = source_.n_features();
    must(!source_.rows().are_sparse(), "rows without their zeros move splits at once");
    must(exact.shape(0) == n && exact.shape(1) == p + 2, "sums must be (n_splits, n_features + 2)");
    must(found.shape(1) == 2, "two numbers per part");
    must(unit.shape(0) == p + 1, "one unit per weight, and one for the bias");
    for (size_t j = 0; j <= p; ++j) must(unit.data()[j] > 0, "units must be positive");
    must_be_aligned(exact, unit, found);
    exact_ = exact;
    unit_ = unit;
    found_ = found;
    pairs_per_row_.assign(found.shape(0), static_cast<double>(n));
    splits_.sums = {exact.data(), unit.data(), static_cast<int64_t>(found.shape(0)), found.data()};
  }

  // A batch goes in pieces by how many pairs the last one had; where bits must not hang on what was before, that is forgotten.
  void forget() { std::fill(pairs_per_row_.begin(), pairs_per_row_.end(), static_cast<double>(bias_.shape(0))); }

  bool move(double steepness) {
    const Turn turn(taken_);
    must(splits_.sums.are_there(), "gradients must have been added up");
    nb::gil_scoped_release released;
    return kernel<T>().move(splits_, static_cast<int64_t>(bias_.shape(0)), static_cast<int64_t>(source_.n_features()), steepness, *pool_);
  }

  Result stumps(Numbers<1> order, Numbers<1> active, Numbers<1> begin, Numbers<1> end, Doubles in_loss, Doubles in_counts,
                Array<const T, 2> before_weight, Array<const T, 1> before_bias, Doubles before_squares, Array<const T, 2> tables,
                Array<double, 2> counts, double steepness) {
    const Turn turn(taken_);
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_labels = static_cast<int64_t>(tables.shape(1));
    must(n > 0 && n_labels > 0 && n_labels % n == 0, "there must be stumps, all with the same classes");
    must_be_aligned(tables, counts);
    must(tables.shape(0) == 2 && counts.shape(0) == 2 * n_parts() && counts.shape(1) == tables.shape(1), "tables must be (2, n_labels)");
    check(before_weight, before_bias, before_squares);
    const Batch<T> rows = batch(order, active, begin, end, in_loss, in_counts, n, n_labels / n);
    const ClassStumps<T> leaves = {rows.y, tables.data(), n, n_labels / n};
    const Before<T> before = {before_weight.data(), before_bias.data(), before_squares.data()};
    nb::gil_scoped_release released;
    return kernel<T>().stumps(rows, before, splits_, leaves, counts.data(), steepness, *pool_);
  }

  Result gaussian_stumps(Numbers<1> order, Numbers<1> active, Numbers<1> begin, Numbers<1> end, Doubles in_loss, Doubles in_counts,
                         Array<const T, 2> before_weight, Array<const T, 1> before_bias, Doubles before_squares, Array<const double, 2> y,
                         Array<const double, 3> forms, Array<double, 2> counts, double steepness) {
    const Turn turn(taken_);
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_outputs = static_cast<int64_t>(y.shape(1)), width = 2 * n_outputs + 1;
    must_be_aligned(y, forms, counts);
    must(n > 0 && n_outputs > 0 && y.shape(0) == source_.n_rows(), "there must be stumps, and numbers for every row");
    must(forms.shape(0) == 2 && static_cast<int64_t>(forms.shape(1)) == n && static_cast<int64_t>(forms.shape(2)) == width, "forms must be (2, n_stumps, n)");
    must(counts.shape(0) == 2 * n_parts() && static_cast<int64_t>(counts.shape(1)) == n * width, "counts must be (2, n_stumps · n)");
    check(before_weight, before_bias, before_squares);
    const Batch<T> rows = batch(order, active, begin, end, in_loss, in_counts, n, std::nullopt);
    const GaussianStumps leaves = {y.data(), forms.data(), n, n_outputs};
    const Before<T> before = {before_weight.data(), before_bias.data(), before_squares.data()};
    nb::gil_scoped_release released;
    return kernel<T>().gaussian_stumps(rows, before, splits_, leaves, counts.data(), steepness, *pool_);
  }

  Result tree(Numbers<1> order, Numbers<1> active, Numbers<1> begin, Numbers<1> end, Doubles in_loss, Doubles in_counts,
              Array<const T, 2> before_weight, Array<const T, 1> before_bias, Doubles before_squares, Array<const T, 2> best,
              Array<double, 2> counts, double steepness, Children left, Children right, double mass_threshold) {
    const Turn turn(taken_);
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_classes = static_cast<int64_t>(best.shape(1));
    must(n > 0 && static_cast<int64_t>(best.shape(0)) == 2 * n + 1, "best must have a row per node");
    must(counts.shape(0) == (bias_.shape(0) + 1) * n_parts() && best.shape(1) == counts.shape(1), "counts must be (n_leaves, n_classes)");
    must_be_aligned(best, counts);
    check(before_weight, before_bias, before_squares);
    const Tree<T> problem = shape(left, right, mass_threshold);
    const Batch<T> rows = batch(order, active, begin, end, in_loss, in_counts, 1, n_classes);
    const ClassLeaves<T> leaves = {rows.y, best.data(), n, n_classes};
    const Before<T> before = {before_weight.data(), before_bias.data(), before_squares.data()};
    nb::gil_scoped_release released;
    return kernel<T>().tree(rows, before, splits_, problem, leaves, counts.data(), steepness, *pool_);
  }

  Result gaussian_tree(Numbers<1> order, Numbers<1> active, Numbers<1> begin, Numbers<1> end, Doubles in_loss, Doubles in_counts,
                       Array<const T, 2> before_weight, Array<const T, 1> before_bias, Doubles before_squares, Array<const double, 2> y,
                       Array<const int32_t, 2> bins, Array<const double, 2> forms, Array<const double, 3> best, Array<const double, 2> highest,
                       Array<double, 2> counts, double steepness, Children left, Children right, double mass_threshold) {
    const Turn turn(taken_);
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_outputs = static_cast<int64_t>(y.shape(1)), n_bins = static_cast<int64_t>(best.shape(1));
    const size_t width = 2 * y.shape(1) + 1;
    must_be_aligned(y, bins, forms, best, highest, counts);
    must(n > 0 && n_outputs > 0 && y.shape(0) == source_.n_rows() && bins.shape(0) == y.shape(0) && bins.shape(1) == y.shape(1), "numbers and bins for every row");
    must(forms.shape(0) == width && static_cast<int64_t>(forms.shape(1)) == n + 1, "forms must be (n, n_leaves)");
    must(counts.shape(0) == (bias_.shape(0) + 1) * n_parts() && counts.shape(1) == width, "counts must be (n_leaves, n)");
    must(best.shape(0) == y.shape(1) && n_bins > 0 && static_cast<int64_t>(best.shape(2)) == 2 * n + 1, "best must be (n_outputs, n_bins, n_nodes)");
    must(highest.shape(0) == y.shape(1) && highest.shape(1) == best.shape(1), "highest must be (n_outputs, n_bins)");
    check(before_weight, before_bias, before_squares);
    const Tree<T> problem = shape(left, right, mass_threshold);
    const Batch<T> rows = batch(order, active, begin, end, in_loss, in_counts, 1, std::nullopt);
    for (int64_t range = 0; range < rows.n_active; ++range) {
      for (int64_t place = rows.begin[range]; place < rows.end[range]; ++place) {
        for (int64_t k = 0; k < n_outputs; ++k) {
          const int32_t bin = bins.data()[order.data()[place] * n_outputs + k];
          must(bin >= 0 && bin < n_bins, "a number must be in a bin");
        }
      }
    }
    const GaussianLeaves leaves = {y.data(), bins.data(), forms.data(), best.data(), highest.data(), n, n_outputs, n_bins};
    const Before<T> before = {before_weight.data(), before_bias.data(), before_squares.data()};
    nb::gil_scoped_release released;
    return kernel<T>().gaussian_tree(rows, before, splits_, problem, leaves, counts.data(), steepness, *pool_);
  }

  Result bound(Numbers<1> order, Children start, Children left, Children right, Array<const T, 2> worst, double nu) {
    const Turn turn(taken_);
    must_be_aligned(order, start, left, right, worst);
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_nodes = static_cast<int64_t>(worst.shape(0));
    must(left.shape(0) == bias_.shape(0) && right.shape(0) == bias_.shape(0), "one child on each side of a split");
    check_children(left, right, bias_.shape(0));
    for (int64_t i = 0; i < n; ++i) {
      for (const int32_t child : {left.data()[i], right.data()[i]}) must(child >= 0 || n + ~child < n_nodes, "worst must have a row per node");
    }
    must(start.shape(0) == order.shape(0), "one node per row");
    for (size_t i = 0; i < start.shape(0); ++i) must(start.data()[i] >= 0 && start.data()[i] < n, "a row must begin at a split");
    must(nu > 0, "nu must be positive");
    must(!source_.rows().are_sparse(), "the bound needs rows with their zeros");
    must(y_.has_value(), "the bound needs classes");
    const int64_t first = 0, end = static_cast<int64_t>(order.shape(0));
    const double once = 1.0;
    const Batch<T> rows = {source_.rows(), y_->data(), sample_weight_.data(), order.data(), &first, &first, &end, &once, &once, 1, nullptr};
    for (int64_t i = 0; i < end; ++i) {
      const int64_t row = order.data()[i];
      source_.must_hold(row);
      must(y_->data()[row] >= 0 && y_->data()[row] < static_cast<int64_t>(worst.shape(1)), "a label must have a column");
    }
    const Paths<T> paths = {left.data(), right.data(), start.data(), worst.data(), n, static_cast<int64_t>(worst.shape(1)), nu};
    nb::gil_scoped_release released;
    return kernel<T>().bound(rows, splits_, paths, *pool_);
  }

 private:
  size_t n_parts() const { return static_cast<size_t>(splits_.sums.n_parts); }

  void check(const Array<const T, 2>& weight, const Array<const T, 1>& bias, const Doubles& squares) const {
    must(squares.shape(0) == bias_.shape(0), "one squared norm per split");
    must(weight.shape(0) == bias_.shape(0) && weight.shape(1) == source_.n_features() && bias.shape(0) == bias_.shape(0),
         "the splits before must have the shape of those now");
    must_be_aligned(weight, bias, squares);
  }

  Tree<T> shape(const Children& left, const Children& right, double mass_threshold) {
    const int64_t n = static_cast<int64_t>(bias_.shape(0));
    must(left.shape(0) == bias_.shape(0) && right.shape(0) == bias_.shape(0), "one child on each side of a split");
    must_be_aligned(left, right);
    must_be_tree(left.data(), right.data(), n);
    return {left.data(), right.data(), n, mass_threshold, pairs_per_row_.data(), &desks_};
  }

  Batch<T> batch(const Numbers<1>& order, const Numbers<1>& active, const Numbers<1>& begin, const Numbers<1>& end,
                 const Doubles& in_loss, const Doubles& in_counts, int64_t n_groups, std::optional<int64_t> n_classes) const {
    const size_t n = active.shape(0);
    must(!n_classes || y_.has_value(), "rows must have classes");
    must(n > 0 && begin.shape(0) == n && end.shape(0) == n && in_loss.shape(0) == n && in_counts.shape(0) == n,
         "one range and two factors per active group");
    must_be_aligned(order, active, begin, end, in_loss, in_counts);
    for (size_t a = 0; a < n; ++a) {
      must(active.data()[a] >= 0 && active.data()[a] / static_cast<int64_t>(n_parts()) < n_groups, "an active group must exist");
      must(a == 0 || active.data()[a - 1] < active.data()[a], "active groups must be in order, each once");
      must(begin.data()[a] >= 0 && begin.data()[a] < end.data()[a] && end.data()[a] <= static_cast<int64_t>(order.shape(0)),
           "a range must lie inside the order and hold a row");
      for (int64_t place = begin.data()[a]; place < end.data()[a]; ++place) {
        const int64_t row = order.data()[place];
        source_.must_hold(row);
        must(!n_classes || (y_->data()[row] >= 0 && y_->data()[row] < *n_classes), "a row must be of one of the classes");
      }
    }
    return {source_.rows(), y_ ? y_->data() : nullptr, sample_weight_.data(), order.data(), active.data(), begin.data(), end.data(), in_loss.data(),
            in_counts.data(), static_cast<int64_t>(n), &shelf_};
  }

  const Source<T>& source_;  // kept alive by Python
  std::optional<Numbers<1>> y_;  // none where y is no class
  Array<const T, 1> sample_weight_;
  Array<T, 2> weight_;
  Array<T, 1> bias_;
  Array<T, 2> weight_mean_, weight_square_;
  Array<T, 1> bias_mean_, bias_square_, steps_;
  Array<double, 1> squares_;
  Doubles taps_;
  std::optional<Array<T, 2>> correlated_;
  std::optional<Array<const T, 1>> varying_;
  Doubles share_;
  std::optional<Array<const bool, 2>> zeros_;
  std::optional<Array<const int8_t, 1>> signs_;
  Numbers<2> groups_;
  Array<int64_t, 2> exact_;
  Array<double, 2> found_;
  Doubles unit_;
  mutable Shelf<T> shelf_;
  Splits<T> splits_;
  std::unique_ptr<Pool> pool_;
  std::atomic<bool> taken_{false};
  std::vector<double> pairs_per_row_;
  std::vector<T> desks_;
};

template <class T>
void bind(nb::module_& m, const char* rows, const char* trainer) {
  nb::class_<Source<T>>(m, rows)
      .def(nb::init<Array<const T, 2>>())
      .def(nb::init<Array<const T, 2>, Doubles, Doubles>())
      .def(nb::init<Array<const T, 1>, Numbers<1>, Numbers<1>>())
      .def(nb::init<Array<const T, 1>, Children, Numbers<1>, int64_t>())
      .def("route", &Source<T>::route)
      .def("gather", &Source<T>::gather);
  nb::class_<Trainer<T>>(m, trainer)
      .def(nb::init<const Source<T>&, std::optional<Numbers<1>>, Array<const T, 1>, Array<T, 2>, Array<T, 1>, Array<T, 2>, Array<T, 2>,
                    Array<T, 1>, Array<T, 1>, Array<T, 1>, double, double, double, double, Array<double, 1>, Doubles,
                    std::optional<Array<T, 2>>, std::optional<Array<const T, 1>>, Doubles, std::pair<int64_t, int64_t>,
                    std::optional<Array<const bool, 2>>, std::optional<Array<const int8_t, 1>>, Numbers<2>, int>(),
           nb::keep_alive<1, 2>())
      .def_prop_rw("learning_rate", &Trainer<T>::learning_rate, &Trainer<T>::set_learning_rate)
      .def("stumps", &Trainer<T>::stumps)
      .def("tree", &Trainer<T>::tree)
      .def("gaussian_stumps", &Trainer<T>::gaussian_stumps)
      .def("gaussian_tree", &Trainer<T>::gaussian_tree)
      .def("bound", &Trainer<T>::bound)
      .def("collect", &Trainer<T>::collect)
      .def("forget", &Trainer<T>::forget)
      .def("move", &Trainer<T>::move);
}

void check_labels(const Numbers<1>& y, int64_t n_classes) {
  for (size_t i = 0; i < y.shape(0); ++i) must(y.data()[i] >= 0 && y.data()[i] < n_classes, "a label must be a class");
}

void best_thresholds(Array<const float, 2> scores, Numbers<1> y, Doubles weight, int64_t n_classes, std::pair<int64_t, double> keep,
                     Array<double, 1> place, Array<double, 1> gain, int n_threads) {
  const size_t n_lines = scores.shape(0), n = scores.shape(1);
  must(n > 0 && y.shape(0) == n && weight.shape(0) == n, "one label and one weight per score");
  must_be_aligned(scores, y, weight, place, gain);
  must_be_threads(n_threads);
  must(place.shape(0) == n_lines && gain.shape(0) == n_lines, "one place and one gain per line");
  check_labels(y, n_classes);
  nb::gil_scoped_release released;
  Pool pool(n_threads);
  thresholds(scores.data(), static_cast<int64_t>(n_lines), static_cast<int64_t>(n), y.data(), weight.data(), n_classes, {keep.first, keep.second},
             place.data(), gain.data(), pool);
}

void descend_lines(Array<const float, 2> columns, Numbers<1> y, Doubles weight, Numbers<1> ends, Array<double, 2> beta, Array<double, 2> scores,
                   Array<double, 1> gain, int64_t n_classes, Numbers<2> coordinates, Array<const double, 3> jumps, std::pair<int64_t, double> keep,
                   int n_threads) {
  const int64_t n = static_cast<int64_t>(columns.shape(1)), p = static_cast<int64_t>(columns.shape(0)), n_nodes = static_cast<int64_t>(ends.shape(0));
  const int64_t n_lines = static_cast<int64_t>(gain.shape(0)), width = static_cast<int64_t>(scores.shape(1)), n_rounds = static_cast<int64_t>(coordinates.shape(0));
  must_be_aligned(columns, y, weight, ends, beta, scores, gain, coordinates, jumps);
  must_be_threads(n_threads);
  must(n_nodes > 0 && n_lines > 0 && n_lines % n_nodes == 0 && ends.data()[n_nodes - 1] == n, "every node must have its rows and lines");
  for (int64_t node = 0; node < n_nodes; ++node) {
    const int64_t first = node ? ends.data()[node - 1] : 0;
    must(ends.data()[node] > first && ends.data()[node] - first <= width, "every node must hold a row, and no more than the width");
  }
  must(static_cast<int64_t>(y.shape(0)) == n && static_cast<int64_t>(weight.shape(0)) == n, "one label and one weight per row");
  check_labels(y, n_classes);
  must(static_cast<int64_t>(beta.shape(0)) == n_lines && static_cast<int64_t>(beta.shape(1)) == p + 1 && static_cast<int64_t>(scores.shape(0)) == n_lines,
       "one hyperplane and its scores per line");
  for (size_t i = 0; i < coordinates.size(); ++i) must(coordinates.data()[i] >= 0 && coordinates.data()[i] <= p, "a coordinate must exist");
  must(n_rounds > 0 && static_cast<int64_t>(jumps.shape(0)) == n_rounds - 1 && (n_rounds == 1 || (static_cast<int64_t>(jumps.shape(1)) == n_lines / n_nodes && static_cast<int64_t>(jumps.shape(2)) == p + 1)),
       "one jump per start between two rounds");
  const Lines lines = {columns.data(), y.data(), weight.data(), ends.data(), n_nodes, n_lines / n_nodes, p, n_classes, beta.data(), scores.data(), gain.data(), width};
  const Tries tries = {coordinates.data(), jumps.data(), n_rounds, static_cast<int64_t>(coordinates.shape(1))};
  nb::gil_scoped_release released;
  Pool pool(n_threads);
  descend(lines, tries, {keep.first, keep.second}, pool);
}

}  // namespace

NB_MODULE(_training, m) {
  nb::set_leak_warnings(false);
  m.doc() = "Optimiser steps on linear splits; see crisptree.learning.engines.native_engine.";
#if defined(__VERSION__)
  m.attr("compiler") = __VERSION__;  // the last bits of training are the compiler's choice too
#else
  m.attr("compiler") = "unknown";
#endif
  m.def("set_instruction_set", [](const std::string& name) { active = kernels_named(name); });
  nb::class_<Result>(m, "Result")
      .def_ro("log_likelihood", &Result::log_likelihood)
      .def_ro("weight", &Result::weight)
      .def_ro("pairs", &Result::pairs);
  m.def("descend", &descend_lines);
  m.def("best_thresholds", &best_thresholds);
  bind<float>(m, "SingleRows", "SingleTrainer");
  bind<double>(m, "DoubleRows", "DoubleTrainer");
  bind_trees(m);
}
