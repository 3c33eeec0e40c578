// Python's door to the router.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <stdexcept>

#include "checks.h"
#include "forest.h"
#include "router.h"

namespace nb = nanobind;
using crisptree::Element;
using crisptree::Forest;
using crisptree::Kernel;
using crisptree::must;
using crisptree::must_be_aligned;
using crisptree::must_be_threads;
using crisptree::Router;
using crisptree::Rows;
using crisptree::SparseRows;
using crisptree::Windows;

namespace {

template <class Value, int Dimensions>
using Array = nb::ndarray<const Value, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using AnyRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Moments = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Leaves = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const Kernel* active = &crisptree::scalar_kernel;  // until crisptree.native says which the processor has

const Kernel& kernel_named(const std::string& name) {
  if (name.empty()) return *active;
  for (const Kernel* kernel : crisptree::available_kernels()) {
    if (name == kernel->name) return *kernel;
  }
  throw std::invalid_argument("this processor has no instruction set '" + name + "'");
}

template <class Trees>
Rows rows_of(const AnyRows& X, const Trees& router) {
  const nb::dlpack::dtype half{static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
  const bool is_double = X.dtype() == nb::dtype<double>(), is_byte = X.dtype() == nb::dtype<uint8_t>(), is_half = X.dtype() == half;
  must(is_double || is_byte || is_half || X.dtype() == nb::dtype<float>(), "rows must be float32, float64, float16 or uint8");
  const Element element = is_double ? Element::kDouble : is_byte ? Element::kByte : is_half ? Element::kHalf : Element::kFloat;
  must(static_cast<int64_t>(X.shape(1)) == router.n_features(), "rows have another width");
  must_be_aligned(X);
  return {X.data(), element, static_cast<int64_t>(X.shape(0)), X.stride(0), X.stride(1)};
}

Windows windows_of(const Array<float, 1>& data, const Array<int64_t, 1>& base, const Array<int64_t, 1>& offset, const Router& router) {
  must(static_cast<int64_t>(offset.shape(0)) == router.n_features(), "rows have another width");
  must_be_aligned(data, base, offset);
  const auto n_values = static_cast<int64_t>(data.shape(0)), n_rows = static_cast<int64_t>(base.shape(0));
  must(crisptree::windows_fit(n_values, base.data(), n_rows, offset.data(), router.n_features()), "windows must lie inside the data");
  return {data.data(), base.data(), offset.data(), n_rows};
}

SparseRows sparse_of(const Array<float, 1>& value, const Array<int32_t, 1>& index, const Array<int64_t, 1>& start, int64_t n_features,
                     const Router& router) {
  must(n_features == router.n_features(), "rows have another width");
  crisptree::must_be_csr(value, index, start, n_features);
  return {value.data(), index.data(), start.data(), static_cast<int64_t>(start.shape(0)) - 1};
}

}  // namespace

NB_MODULE(_router, m) {
  nb::set_leak_warnings(false);  // a model that lives until the interpreter ends is no leak
  m.doc() = "Which leaf a row reaches; see crisptree.inference.compiled.";
  m.def("instruction_sets", [] {
    std::vector<std::string> names;
    for (const Kernel* kernel : crisptree::available_kernels()) names.push_back(kernel->name);
    return names;
  });
  m.def("set_instruction_set", [](const std::string& name) { active = &kernel_named(name); });
  using ManyLeaves = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  nb::class_<Forest>(m, "Forest")
      .def(
          "__init__",
          [](Forest* self, nb::tuple kept, Array<double, 2> tables) {  // a tuple stays as it is, and keeps its trees
            std::vector<const Router*> trees;
            for (const nb::handle tree : kept) {
              must(nb::isinstance<Router>(tree), "trees must be routers");
              trees.push_back(nb::cast<const Router*>(tree));
            }
            must(!trees.empty(), "there must be trees");
            size_t n_leaves = 0;
            for (const Router* tree : trees) {
              must(tree != nullptr && tree->n_features() == trees.front()->n_features(), "all trees must have the same features");
              n_leaves += tree->n_splits() + 1;
            }
            must(tables.shape(0) == n_leaves && tables.shape(1) > 0, "every leaf must have a table");
            must_be_aligned(tables);
            new (self) Forest(std::move(trees), tables.data(), static_cast<int64_t>(tables.shape(1)));
          },
          nb::arg("trees"), nb::arg("tables"), nb::keep_alive<1, 2>())
      .def(
          "route",
          [](const Forest& self, AnyRows X, ManyLeaves leaves, int n_threads, bool check_finite, const std::string& instruction_set) {
            const Rows rows = rows_of(X, self);
            must(leaves.shape(0) == X.shape(0) && leaves.shape(1) == self.n_trees(), "one leaf per row and tree");
            must_be_aligned(leaves);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named(instruction_set);
            nb::gil_scoped_release released;
            return self.route(rows, leaves.data(), n_threads, check_finite, kernel);
          },
          nb::arg("X"), nb::arg("leaves"), nb::arg("n_threads"), nb::arg("check_finite"), nb::arg("instruction_set") = "")
      .def(
          "sum",
          [](const Forest& self, AnyRows X, Moments sums, int n_threads, bool check_finite, const std::string& instruction_set) {
            const Rows rows = rows_of(X, self);
            must(sums.shape(0) == X.shape(0) && static_cast<int64_t>(sums.shape(1)) == self.n_outputs(), "one sum per row and output");
            must_be_aligned(sums);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named(instruction_set);
            nb::gil_scoped_release released;
            return self.sum(rows, sums.data(), n_threads, check_finite, kernel);
          },
          nb::arg("X"), nb::arg("sums"), nb::arg("n_threads"), nb::arg("check_finite"), nb::arg("instruction_set") = "");
  nb::class_<Router>(m, "Router")
      .def(
          "__init__",
          [](Router* self, Array<int32_t, 1> left, Array<int32_t, 1> right, Array<float, 2> weight, Array<float, 1> bias) {
            const size_t n = left.shape(0);
            must(right.shape(0) == n && weight.shape(0) == n && bias.shape(0) == n, "left, right, weight and bias must have one entry per split");
            must(weight.shape(1) > 0 && weight.shape(1) < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
                 "there must be features, and fewer than 2 ** 31");
            must_be_aligned(left, right, weight, bias);
            crisptree::must_be_tree(left.data(), right.data(), static_cast<int64_t>(n));
            new (self) Router(left.data(), right.data(), weight.data(), bias.data(), static_cast<int64_t>(n),
                              static_cast<int64_t>(weight.shape(1)));
          },
          nb::arg("left"), nb::arg("right"), nb::arg("weight"), nb::arg("bias"))
      .def_prop_ro("n_sparse", &Router::n_sparse)
      .def(
          "score_moments",
          [](const Router& self, Array<float, 2> X, Array<double, 1> sample_weight, Moments moments, int n_threads) {
            must(static_cast<int64_t>(X.shape(1)) == self.n_features(), "rows have another width");
            must(sample_weight.shape(0) == X.shape(0), "one weight per row");
            must(moments.shape(0) == self.n_splits() && moments.shape(1) == 3, "moments must be (n_splits, 3)");
            must_be_aligned(X, sample_weight, moments);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named("");
            nb::gil_scoped_release released;
            self.score_moments(X.data(), static_cast<int64_t>(X.shape(0)), sample_weight.data(), moments.data(), n_threads, kernel);
          },
          nb::arg("X"), nb::arg("sample_weight"), nb::arg("moments"), nb::arg("n_threads"))
      .def(
          "score_moments_of_windows",
          [](const Router& self, Array<float, 1> data, Array<int64_t, 1> base, Array<int64_t, 1> offset,
             Array<double, 1> sample_weight, Moments moments, int n_threads) {
            const Windows windows = windows_of(data, base, offset, self);
            must(sample_weight.shape(0) == base.shape(0), "one weight per row");
            must(moments.shape(0) == self.n_splits() && moments.shape(1) == 3, "moments must be (n_splits, 3)");
            must_be_aligned(sample_weight, moments);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named("");
            nb::gil_scoped_release released;
            self.score_moments(windows, sample_weight.data(), moments.data(), n_threads, kernel);
          },
          nb::arg("data"), nb::arg("base"), nb::arg("offset"), nb::arg("sample_weight"), nb::arg("moments"), nb::arg("n_threads"))
      .def(
          "score_moments_of_sparse",
          [](const Router& self, Array<float, 1> value, Array<int32_t, 1> index, Array<int64_t, 1> start, int64_t n_features,
             Array<double, 1> sample_weight, Moments moments, int n_threads) {
            const SparseRows rows = sparse_of(value, index, start, n_features, self);
            must(static_cast<int64_t>(sample_weight.shape(0)) == rows.n_rows, "one weight per row");
            must(moments.shape(0) == self.n_splits() && moments.shape(1) == 3, "moments must be (n_splits, 3)");
            must_be_aligned(sample_weight, moments);
            must_be_threads(n_threads);
            nb::gil_scoped_release released;
            self.score_moments(rows, sample_weight.data(), moments.data(), n_threads);
          },
          nb::arg("value"), nb::arg("index"), nb::arg("start"), nb::arg("n_features"), nb::arg("sample_weight"), nb::arg("moments"),
          nb::arg("n_threads"))
      .def(
          "route_sparse",
          [](const Router& self, Array<float, 1> value, Array<int32_t, 1> index, Array<int64_t, 1> start, int64_t n_features,
             Leaves leaves, int n_threads) {
            const SparseRows rows = sparse_of(value, index, start, n_features, self);
            must(static_cast<int64_t>(leaves.shape(0)) == rows.n_rows, "one leaf per row");
            must_be_aligned(leaves);
            must_be_threads(n_threads);
            nb::gil_scoped_release released;
            self.route(rows, leaves.data(), n_threads);
          },
          nb::arg("value"), nb::arg("index"), nb::arg("start"), nb::arg("n_features"), nb::arg("leaves"), nb::arg("n_threads"))
      .def(
          "route_windows",
          [](const Router& self, Array<float, 1> data, Array<int64_t, 1> base, Array<int64_t, 1> offset, Leaves leaves,
             int n_threads, const std::string& instruction_set) {
            const Windows windows = windows_of(data, base, offset, self);
            must(leaves.shape(0) == base.shape(0), "one leaf per row");
            must_be_aligned(leaves);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named(instruction_set);
            nb::gil_scoped_release released;
            self.route(windows, leaves.data(), n_threads, kernel);
          },
          nb::arg("data"), nb::arg("base"), nb::arg("offset"), nb::arg("leaves"), nb::arg("n_threads"),
          nb::arg("instruction_set") = "")
      .def(
          "route",
          [](const Router& self, AnyRows X, Leaves leaves, int n_threads, bool check_finite,
             const std::string& instruction_set) {
            const Rows rows = rows_of(X, self);
            must(leaves.shape(0) == X.shape(0), "one leaf per row");
            must_be_aligned(leaves);
            must_be_threads(n_threads);
            const Kernel& kernel = kernel_named(instruction_set);
            nb::gil_scoped_release released;
            return self.route(rows, leaves.data(), n_threads, check_finite, kernel);
          },
          nb::arg("X"), nb::arg("leaves"), nb::arg("n_threads"), nb::arg("check_finite"),
          nb::arg("instruction_set") = "");
}
