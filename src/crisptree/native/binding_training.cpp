// Python's door to the training steps.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "training.h"

namespace nb = nanobind;
using namespace crisptree;

namespace {

template <class Value, int Dimensions>
using Array = nb::ndarray<Value, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <int Dimensions>
using Numbers = Array<const int64_t, Dimensions>;

const TrainingKernels& widest() {
#if defined(__GNUC__) && defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq")) return avx512_training;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_training;
#endif
  return base_training;
}

template <class T>
const TrainingKernel<T>& kernel();
template <>
const TrainingKernel<float>& kernel<float>() { return widest().singles; }
template <>
const TrainingKernel<double>& kernel<double>() { return widest().doubles; }

void must(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

// Splits in training: their parameters and Adam state belong to Python and are kept alive here.
template <class T>
class Trainer {
 public:
  Trainer(Array<const T, 2> X, Numbers<1> y, Array<T, 2> weight, Array<T, 1> bias, Array<T, 2> weight_mean,
          Array<T, 2> weight_square, Array<T, 1> bias_mean, Array<T, 1> bias_square, Array<T, 1> steps, double learning_rate,
          double l1, double l2, double roughness, std::pair<int64_t, int64_t> image, int n_threads)
      : X_(X), y_(y), weight_(weight), bias_(bias), weight_mean_(weight_mean), weight_square_(weight_square),
        bias_mean_(bias_mean), bias_square_(bias_square), steps_(steps), pool_(std::make_unique<Pool>(n_threads)) {
    const size_t n = bias.shape(0), p = X.shape(1);
    must(y.shape(0) == X.shape(0), "one label per row");
    for (const auto& matrix : {weight, weight_mean, weight_square}) {
      must(matrix.shape(0) == n && matrix.shape(1) == p, "weights must be (n_splits, n_features)");
    }
    for (const auto& vector : {bias_mean, bias_square, steps}) must(vector.shape(0) == n, "one entry per split");
    const int64_t pixels = image.first * image.second;
    must(roughness == 0 || (pixels > 0 && p % pixels == 0), "rows must be images for roughness");
    splits_ = {weight.data(), bias.data(), weight_mean.data(), weight_square.data(), bias_mean.data(), bias_square.data(),
               steps.data(), learning_rate, l1, l2, roughness, image.first, image.second,
               pixels > 0 ? static_cast<int64_t>(p) / pixels : 0};
  }

  std::pair<double, int64_t> stumps(Numbers<1> rows, Numbers<1> group, Array<const T, 1> mass, Array<const T, 1> once,
                                    Array<const T, 2> before_weight, Array<const T, 1> before_bias, Array<const T, 2> tables,
                                    Array<double, 2> counts, double steepness) {
    const int64_t n = static_cast<int64_t>(bias_.shape(0)), n_labels = static_cast<int64_t>(tables.shape(1));
    must(n > 0 && n_labels % n == 0, "there must be stumps, all with the same classes");
    must(tables.shape(0) == 2 && counts.shape(0) == 2 && counts.shape(1) == tables.shape(1), "tables must be (2, n_labels)");
    must(group.shape(0) == rows.shape(0), "one group per row");
    check(before_weight, before_bias);
    const Stumps<T> problem = {group.data(), tables.data(), counts.data(), n, n_labels / n};
    const Batch<T> rows_of = batch(rows, mass, once);
    const Before<T> before = {before_weight.data(), before_bias.data()};
    nb::gil_scoped_release released;
    const Result result = kernel<T>().stumps(rows_of, before, splits_, problem, steepness, *pool_);
    return {result.log_likelihood, result.pairs};
  }

  std::pair<double, int64_t> tree(Numbers<1> rows, Array<const T, 1> mass, Array<const T, 1> once,
                                  Array<const T, 2> before_weight, Array<const T, 1> before_bias,
                                  Array<const int32_t, 1> left, Array<const int32_t, 1> right, Array<const T, 2> best,
                                  Array<double, 2> counts, double steepness, double mass_threshold) {
    const int64_t n = static_cast<int64_t>(bias_.shape(0));
    must(left.shape(0) == bias_.shape(0) && right.shape(0) == bias_.shape(0), "one child on each side of a split");
    must(n > 0 && static_cast<int64_t>(best.shape(0)) == 2 * n + 1, "best must have a row per node");
    must(static_cast<int64_t>(counts.shape(0)) == n + 1 && best.shape(1) == counts.shape(1), "counts must be (n_leaves, n_classes)");
    check(before_weight, before_bias);
    const Tree<T> problem = {left.data(), right.data(), best.data(), counts.data(), n, static_cast<int64_t>(best.shape(1)),
                             mass_threshold};
    const Batch<T> rows_of = batch(rows, mass, once);
    const Before<T> before = {before_weight.data(), before_bias.data()};
    nb::gil_scoped_release released;
    const Result result = kernel<T>().tree(rows_of, before, splits_, problem, steepness, *pool_);
    return {result.log_likelihood, result.pairs};
  }

 private:
  void check(const Array<const T, 2>& weight, const Array<const T, 1>& bias) const {
    must(weight.shape(0) == bias_.shape(0) && weight.shape(1) == X_.shape(1) && bias.shape(0) == bias_.shape(0),
         "the splits before must have the shape of those now");
  }

  Batch<T> batch(const Numbers<1>& rows, const Array<const T, 1>& mass, const Array<const T, 1>& once) const {
    must(mass.shape(0) == rows.shape(0) && once.shape(0) == rows.shape(0), "one mass per row");
    return {X_.data(), y_.data(), rows.data(), mass.data(), once.data(), static_cast<int64_t>(rows.shape(0)),
            static_cast<int64_t>(X_.shape(1))};
  }

  Array<const T, 2> X_;
  Numbers<1> y_;
  Array<T, 2> weight_;
  Array<T, 1> bias_;
  Array<T, 2> weight_mean_, weight_square_;
  Array<T, 1> bias_mean_, bias_square_, steps_;
  Splits<T> splits_;
  std::unique_ptr<Pool> pool_;
};

template <class T>
void bind(nb::module_& m, const char* name) {
  nb::class_<Trainer<T>>(m, name)
      .def(nb::init<Array<const T, 2>, Numbers<1>, Array<T, 2>, Array<T, 1>, Array<T, 2>, Array<T, 2>, Array<T, 1>,
                    Array<T, 1>, Array<T, 1>, double, double, double, double, std::pair<int64_t, int64_t>, int>())
      .def("stumps", &Trainer<T>::stumps)
      .def("tree", &Trainer<T>::tree);
}

}  // namespace

NB_MODULE(_training, m) {
  nb::set_leak_warnings(false);
  m.doc() = "Optimiser steps on linear splits; see crisptree.learning.native_steps.";
  bind<float>(m, "SingleTrainer");
  bind<double>(m, "DoubleTrainer");
}
