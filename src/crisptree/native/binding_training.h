// What both doors of Python's to the training kernels share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "checks.h"
#include "training.h"

namespace crisptree {

namespace nb = nanobind;

template <class Value, int Dimensions>
using Array = nb::ndarray<Value, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <int Dimensions>
using Numbers = Array<const int64_t, Dimensions>;
using Doubles = Array<const double, 1>;

using Children = Array<const int32_t, 1>;

extern const TrainingKernels* active;  // those of an instruction set that this processor has

template <class T>
const TrainingKernel<T>& kernel();
template <>
inline const TrainingKernel<float>& kernel<float>() { return active->singles; }
template <>
inline const TrainingKernel<double>& kernel<double>() { return active->doubles; }

// A way down ends: every child comes after its parent, so none leads back.
inline void check_children(const Children& left, const Children& right, size_t n_splits) {
  for (size_t i = 0; i < n_splits; ++i) {
    const int32_t least = static_cast<int32_t>(i), most = static_cast<int32_t>(n_splits);
    for (const int32_t child : {left.data()[i], right.data()[i]}) must(child < 0 || (child > least && child < most), "children come after their parents");
  }
}

// Whole trees and leaf models: binding_trees.cpp.
void bind_trees(nb::module_& m);

}  // namespace crisptree
