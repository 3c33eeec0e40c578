// Several trees over the same rows, in one pass: a block of rows goes down all of them while it is in the cache. No Python objects in here.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "router.h"

namespace crisptree {

class Forest {
 public:
  // The trees belong to the caller, who keeps them; all of them have the same features. `tables` holds the leaf tables of all trees, one
  // after the other, n_outputs numbers to a leaf.
  Forest(std::vector<const Router*> trees, const double* tables, int64_t n_outputs);

  int64_t n_features() const { return trees_.front()->n_features(); }
  int64_t n_outputs() const { return n_outputs_; }
  size_t n_trees() const { return trees_.size(); }

  // The leaf of every row in every tree, (n_rows, n_trees). False where `check_finite` found a value that is not finite.
  bool route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const;

  // The sum of the tables of every row's leaves, added up in the order of the trees, (n_rows, n_outputs).
  bool sum(const Rows& rows, double* sums, int n_threads, bool check_finite, const Kernel& kernel) const;

 private:
  using Found = std::function<void(size_t tree, int64_t first, int64_t n_rows, const int64_t* leaves)>;
  bool walk(const Rows& rows, int n_threads, bool check_finite, const Kernel& kernel, const Found& found) const;

  std::vector<const Router*> trees_;
  std::vector<double> tables_;
  std::vector<int64_t> first_;  // of the tables of every tree
  int64_t n_outputs_;
  size_t most_splits_ = 0;
};

}  // namespace crisptree
