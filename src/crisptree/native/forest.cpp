#include "forest.h"

#include <algorithm>

namespace crisptree {
namespace {

// A block has about so many values: it stays in the second-level cache while all trees are walked, and their weights are fetched once for
// each block.
constexpr int64_t kValuesPerBlock = int64_t{1} << 18;
constexpr int64_t kFewestRows = 256;

// Fewer rows are not worth a bench of their own.
constexpr int64_t kWorthABench = 16;

}  // namespace

Forest::Forest(std::vector<const Router*> trees, const double* tables, int64_t n_outputs)
    : trees_(std::move(trees)), n_outputs_(n_outputs) {
  int64_t n_leaves = 0;
  for (const Router* tree : trees_) {
    first_.push_back(n_leaves * n_outputs);
    n_leaves += static_cast<int64_t>(tree->n_splits()) + 1;
    most_splits_ = std::max(most_splits_, tree->n_splits());
  }
  tables_.assign(tables, tables + n_leaves * n_outputs);
}

bool Forest::walk(const Rows& rows, int n_threads, bool check_finite, const Kernel& kernel, const Found& found) const {
  const int64_t n = n_features(), block = std::max(kFewestRows, kValuesPerBlock / n);
  const int64_t work = rows.n_rows * n * static_cast<int64_t>(trees_.size());
  return share_out(rows.n_rows, work, n_threads, std::min(block, (rows.n_rows + n_threads - 1) / n_threads), [&](int64_t begin, int64_t end) {
    RowBlock reader(rows, n);
    const int64_t at_once = std::min(block, end - begin);
    std::vector<int64_t> leaves(at_once);
    const bool together = at_once >= kWorthABench;
    AlignedPairs pairs(together ? 0 : pairs_for(at_once, n));
    Bench bench(together ? at_once : 0, n, together ? most_splits_ : 0);
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t number = std::min(at_once, end - first);
      const Source source = reader.take(first, number);
      if (together && !trees_.front()->take(source, number, bench, kernel) && check_finite) return false;
      for (size_t tree = 0; tree < trees_.size(); ++tree) {
        if (together) {
          trees_[tree]->route_bench(source, bench, number, leaves.data(), kernel);
        } else if (!trees_[tree]->route_source(source, number, leaves.data(), check_finite && tree == 0, pairs.data(), kernel)) {
          return false;
        }
        found(tree, first, number, leaves.data());
      }
    }
    return true;
  });
}

bool Forest::route(const Rows& rows, int64_t* leaves, int n_threads, bool check_finite, const Kernel& kernel) const {
  const auto n_trees = static_cast<int64_t>(trees_.size());
  return walk(rows, n_threads, check_finite, kernel, [&](size_t tree, int64_t first, int64_t n_rows, const int64_t* here) {
    for (int64_t i = 0; i < n_rows; ++i) leaves[(first + i) * n_trees + static_cast<int64_t>(tree)] = here[i];
  });
}

bool Forest::sum(const Rows& rows, double* sums, int n_threads, bool check_finite, const Kernel& kernel) const {
  return walk(rows, n_threads, check_finite, kernel, [&](size_t tree, int64_t first, int64_t n_rows, const int64_t* here) {
    const double* const tables = tables_.data() + first_[tree];
    for (int64_t i = 0; i < n_rows; ++i) {
      double* const sum = sums + (first + i) * n_outputs_;
      const double* const table = tables + here[i] * n_outputs_;
      if (tree == 0) {
        std::copy(table, table + n_outputs_, sum);
      } else {
        for (int64_t k = 0; k < n_outputs_; ++k) sum[k] += table[k];
      }
    }
  });
}

}  // namespace crisptree
