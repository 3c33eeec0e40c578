// Python's door to minimisations: hyperplanes and tables, whole trees, leaf models.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "binding_training.h"
#include "work_list.h"

using namespace crisptree;

namespace {

using Signs = Array<const int8_t, 1>;

// Features that l1 penalises together must come one after the other.
Constraints constraints_of(const std::optional<Numbers<2>>& groups, const std::optional<Signs>& signs, int64_t p) {
  Constraints found;
  if (groups) {
    must(groups->shape(1) == 2, "a group has its first feature and the one after its last");
    must_be_aligned(*groups);
    int64_t before = 0;
    for (size_t i = 0; i < groups->shape(0); ++i) {
      const int64_t first = groups->data()[2 * i], end = groups->data()[2 * i + 1];
      must(before <= first && first < end && end <= p, "groups of features must be in order, none of them empty");
      before = end;
    }
    found.groups = groups->data();
    found.n_groups = static_cast<int64_t>(groups->shape(0));
  }
  if (signs) {
    must(static_cast<int64_t>(signs->shape(0)) == p, "one sign per feature");
    found.signs = signs->data();
  }
  return found;
}

// Trees of one structure on rows of their own; weights, biases, leaf tables and counts are written in place.
template <class T>
Minimum minimize(Array<const T, 2> x, std::optional<Numbers<1>> index, std::optional<Numbers<1>> label, std::optional<Array<const double, 2>> y, Array<const T, 1> sample_weight,
                 Numbers<1> order, Numbers<1> begin, Numbers<1> end, Children left, Children right, Array<T, 2> weight, Array<T, 1> bias,
                 Array<T, 2> leaves, Doubles share, std::optional<Array<const bool, 2>> zeros, Array<double, 2> counts, double steepness, double noise,
                 double l1, double l2, double prior, int max_iterations, double tolerance, std::optional<Numbers<2>> groups, std::optional<Signs> signs, int n_threads) {
  const int64_t n = static_cast<int64_t>(sample_weight.shape(0)), p = static_cast<int64_t>(x.shape(1)), n_trees = static_cast<int64_t>(begin.shape(0));
  const int64_t n_splits = static_cast<int64_t>(left.shape(0)), n_leaves = n_splits + 1;
  must(kernel<T>().minimize != nullptr, "this compiler has built no L-BFGS");
  must(n_trees > 0 && n_splits > 0 && n > 0 && p > 0 && static_cast<int64_t>(end.shape(0)) == n_trees, "every tree must have rows and splits");
  must(static_cast<int64_t>(index ? index->shape(0) : x.shape(0)) == n, "features of every row");
  for (int64_t i = 0; index && i < n; ++i) must(index->data()[i] >= 0 && index->data()[i] < static_cast<int64_t>(x.shape(0)), "a row must exist");
  must(label.has_value() != y.has_value(), "labels or numbers per row");
  must(static_cast<int64_t>(label ? label->shape(0) : y->shape(0)) == n && static_cast<int64_t>(sample_weight.shape(0)) == n, "one y and one weight per row");
  must(static_cast<int64_t>(weight.shape(0)) == n_trees * n_splits && static_cast<int64_t>(weight.shape(1)) == p &&
           bias.shape(0) == weight.shape(0) && share.shape(0) == weight.shape(0),
       "one hyperplane and one share per split");
  must(!zeros || (zeros->shape(0) == weight.shape(0) && zeros->shape(1) == weight.shape(1)), "what stays zero must have the shape of the weights");
  must(static_cast<int64_t>(leaves.shape(0)) == n_leaves && static_cast<int64_t>(counts.shape(0)) == n_leaves &&
           static_cast<int64_t>(leaves.shape(1)) % n_trees == 0 && static_cast<int64_t>(counts.shape(1)) % n_trees == 0,
       "one table and its counts per leaf");
  const int64_t n_values = static_cast<int64_t>(leaves.shape(1)) / n_trees, n_statistics = static_cast<int64_t>(counts.shape(1)) / n_trees;
  const int64_t n_outputs = y ? static_cast<int64_t>(y->shape(1)) : 0;
  must(label ? n_statistics == n_values : n_values == 2 * n_outputs && n_statistics == 2 * n_outputs + 1, "tables and counts must fit y");
  if (label) {
    for (int64_t i = 0; i < n; ++i) must(label->data()[i] >= 0 && label->data()[i] < n_values, "a label must be a class");
  }
  for (int64_t i = 0; i < static_cast<int64_t>(order.shape(0)); ++i) must(order.data()[i] >= 0 && order.data()[i] < n, "a row must exist");
  for (int64_t tree = 0; tree < n_trees; ++tree) {
    must(begin.data()[tree] >= 0 && begin.data()[tree] < end.data()[tree] && end.data()[tree] <= static_cast<int64_t>(order.shape(0)), "every tree must have rows");
  }
  must(right.shape(0) == left.shape(0), "one child on each side of a split");
  check_children(left, right, left.shape(0));
  for (int64_t i = 0; i < n_splits; ++i) {
    for (const int32_t child : {left.data()[i], right.data()[i]}) must(child >= 0 || ~child < n_leaves, "a leaf must exist");
  }
  must_be_aligned(x, sample_weight, order, begin, end, left, right, weight, bias, leaves, share, counts);
  if (index) must_be_aligned(*index);
  if (label) must_be_aligned(*label);
  if (y) must_be_aligned(*y);
  must_be_threads(n_threads);
  const TreeBatch<T> batch = {x.data(), p, index ? index->data() : nullptr, label ? label->data() : nullptr, y ? y->data() : nullptr, n_outputs, sample_weight.data(), order.data(),
                              begin.data(), end.data(), n_trees, left.data(), right.data(), n_splits, weight.data(), bias.data(), leaves.data(), n_values,
                              share.data(), zeros ? zeros->data() : nullptr, counts.data(), n_statistics, constraints_of(groups, signs, p)};
  const Objective objective = {steepness, noise, l1, l2, prior, max_iterations, tolerance};
  nb::gil_scoped_release released;
  Pool pool(n_threads);
  return kernel<T>().minimize(batch, objective, pool);
}

// How a tree trains.
struct TreeOptions {
  GrowthRules rules{-1, -1, 2, 1, 0, 0, 1, -1, 0};
  std::vector<double> growth_steepness, finetuning_steepness;
  TreePhase growth{}, finetuning{};
  std::optional<Numbers<2>> groups;
  std::optional<Signs> signs;
};

// A trained tree as arrays of Python's.
template <class T>
class TreeResult {
 public:
  struct Stage {
    TreeStage<T> record;
    std::vector<int32_t> left, right;
    std::vector<T> weight, bias, leaves;
  };

  TreeResult(int64_t p, int64_t n_values) : p_(p), n_values_(n_values) {}

  void add(const TreeStage<T>& stage, bool keeps_tree) {
    stages_.push_back({stage, {}, {}, {}, {}, {}});
    if (!keeps_tree || stage.is_growth) return;
    Stage& kept = stages_.back();
    const int64_t m = stage.n_splits;
    kept.left.assign(stage.left, stage.left + m);
    kept.right.assign(stage.right, stage.right + m);
    kept.weight.assign(stage.weight, stage.weight + m * p_);
    kept.bias.assign(stage.bias, stage.bias + m);
    kept.leaves.assign(stage.leaves, stage.leaves + (m + 1) * n_values_);
  }

  void take(const TrainedTree<T>& tree) {
    const int64_t m = tree.n_splits;
    left_.assign(tree.left, tree.left + m);
    right_.assign(tree.right, tree.right + m);
    splits_[0].assign(tree.grown_weight, tree.grown_weight + m * p_);
    biases_[0].assign(tree.grown_bias, tree.grown_bias + m);
    leaves_[0].assign(tree.grown_leaves, tree.grown_leaves + (m + 1) * n_values_);
    splits_[1].assign(tree.weight, tree.weight + m * p_);
    biases_[1].assign(tree.bias, tree.bias + m);
    leaves_[1].assign(tree.leaves, tree.leaves + (m + 1) * n_values_);
    score_ = tree.score;
  }

  double score() const { return score_; }
  // Children, weights, biases and leaf tables of the grown (0) or the finetuned tree (1).
  nb::tuple tree(int number) {
    must(number == 0 || number == 1, "there are two trees");
    const size_t m = left_.size();
    return nb::make_tuple(array(left_, m), array(right_, m), array(splits_[number], m, p_), array(biases_[number], m), array(leaves_[number], m + 1, n_values_));
  }

  // (is growth, level, number of splits, number of the stage, γ, log-likelihood, weight of the rows, tree or None) of every stage.
  nb::list stages() {
    nb::list found;
    for (Stage& stage : stages_) found.append(tuple(stage));
    return found;
  }

  nb::tuple last() { return tuple(stages_.back()); }

 private:
  nb::tuple tuple(Stage& stage) {
    const TreeStage<T>& record = stage.record;
    nb::object tree = nb::none();
    if (!stage.leaves.empty()) {
      const size_t m = stage.bias.size();
      tree = nb::make_tuple(array(stage.left, m), array(stage.right, m), array(stage.weight, m, p_), array(stage.bias, m), array(stage.leaves, m + 1, n_values_));
    }
    return nb::make_tuple(record.is_growth, record.level, record.n_splits, record.number, record.steepness, record.log_likelihood, record.row_weight, tree);
  }

  // A copy, (n,) or (n, columns).
  template <class Value>
  static nb::object array(const std::vector<Value>& values, size_t n, int64_t columns = -1) {
    auto copy = std::make_unique<std::vector<Value>>(values);
    Value* data = copy->data();
    nb::capsule owner(copy.release(), [](void* one) noexcept { delete static_cast<std::vector<Value>*>(one); });
    const size_t shape[2] = {n, static_cast<size_t>(columns)};
    return nb::cast(nb::ndarray<nb::numpy, Value>(data, columns < 0 ? 1 : 2, shape, owner));
  }

  int64_t p_, n_values_;
  std::vector<int32_t> left_, right_;
  std::vector<T> splits_[2], biases_[2], leaves_[2];
  std::vector<Stage> stages_;
  double score_ = 0;
};

// A tree to finetune: children, weights, biases, leaf tables, and whether weights that are zero stay so. Its arrays live as
// long as the tuple.
template <class T>
BegunTree<T> begun_tree(nb::handle given, int64_t p, int64_t n_values) {
  if (given.is_none()) return {};
  const auto parts = nb::cast<nb::tuple>(given);
  must(parts.size() == 6, "a tree has left and right children, weights, biases, leaf tables and a flag");
  const auto left = nb::cast<Children>(parts[0]), right = nb::cast<Children>(parts[1]);
  const auto weight = nb::cast<Array<const T, 2>>(parts[2]), leaves = nb::cast<Array<const T, 2>>(parts[4]);
  const auto bias = nb::cast<Array<const T, 1>>(parts[3]);
  const auto n = static_cast<int64_t>(left.shape(0));
  must(static_cast<int64_t>(right.shape(0)) == n && static_cast<int64_t>(weight.shape(0)) == n && static_cast<int64_t>(weight.shape(1)) == p &&
           static_cast<int64_t>(bias.shape(0)) == n && static_cast<int64_t>(leaves.shape(0)) == n + 1 && static_cast<int64_t>(leaves.shape(1)) == n_values,
       "a tree to finetune must have the shape of its structure");
  check_children(left, right, left.shape(0));
  must_be_tree(left.data(), right.data(), n);
  must_be_aligned(left, right, weight, bias, leaves);
  return {n, left.data(), right.data(), weight.data(), bias.data(), leaves.data(), nb::cast<bool>(parts[5])};
}

// Trees on rows of one array; `problems` are (rows, weights, seed, start, options, tree or None, y or None): a tree to finetune
// instead of growing one, and numbers in place of those of all trees. `hear` is called with every stage of the first
// tree, and ends the training of all by False.
template <class T>
nb::list train_trees(Array<const T, 2> x, std::optional<Numbers<1>> label, std::optional<Array<const double, 2>> y, int64_t n_values, nb::list problems,
                     std::optional<nb::callable> hear, bool keeps_trees, int n_threads) {
  const int64_t m = static_cast<int64_t>(x.shape(0)), p = static_cast<int64_t>(x.shape(1)), n_outputs = y ? static_cast<int64_t>(y->shape(1)) : 0;
  must(kernel<T>().train_tree != nullptr, "this compiler has built no L-BFGS");
  must(p > 0 && label.has_value() != y.has_value(), "rows must have features, and labels or numbers");
  must(static_cast<int64_t>(label ? label->shape(0) : y->shape(0)) == m && (label ? n_values > 0 : n_values == 2 * n_outputs && n_outputs > 0), "one y per row, and tables that fit");
  must_be_aligned(x);
  if (label) must_be_aligned(*label);
  if (y) must_be_aligned(*y);
  for (int64_t i = 0; label && i < m; ++i) must(label->data()[i] >= 0 && label->data()[i] < n_values, "a label must be a class");
  must_be_threads(n_threads);
  const auto n_problems = static_cast<int64_t>(problems.size());
  must(n_problems > 0, "there must be a tree");
  std::vector<TreeProblem<T>> trees;
  std::vector<Numbers<1>> rows;
  std::vector<Array<const T, 1>> weights;
  std::vector<Array<const double, 2>> own_y;
  std::vector<TreeResult<T>*> results;
  nb::list found;
  for (nb::handle one : problems) {
    const auto problem = nb::cast<nb::tuple>(one);
    must(problem.size() == 7, "a problem has rows, weights, a seed, the number of a start, options, a tree and numbers");
    rows.push_back(nb::cast<Numbers<1>>(problem[0]));
    weights.push_back(nb::cast<Array<const T, 1>>(problem[1]));
    const TreeOptions& options = nb::cast<const TreeOptions&>(problem[4]);
    const auto n = static_cast<int64_t>(rows.back().shape(0));
    must_be_aligned(rows.back(), weights.back());
    must(n > 0 && static_cast<int64_t>(weights.back().shape(0)) == n, "a tree must have rows, with one weight each");
    for (int64_t i = 0; i < n; ++i) must(rows.back().data()[i] >= 0 && rows.back().data()[i] < m, "a row must exist");
    must(options.rules.n_drawn <= p && options.rules.n_drawn != 0 && options.rules.tries > 0 && !options.growth_steepness.empty(), "a tree must be able to grow");
    const double* numbers = y ? y->data() : nullptr;
    if (!problem[6].is_none()) {
      own_y.push_back(nb::cast<Array<const double, 2>>(problem[6]));
      must(y && own_y.back().shape(0) == y->shape(0) && own_y.back().shape(1) == y->shape(1), "a tree's own numbers must have the shape of those of all");
      must_be_aligned(own_y.back());
      numbers = own_y.back().data();
    }
    TreePhase growth = options.growth, finetuning = options.finetuning;
    growth.steepness = options.growth_steepness.data();
    growth.n_stages = static_cast<int64_t>(options.growth_steepness.size());
    finetuning.steepness = options.finetuning_steepness.data();
    finetuning.n_stages = static_cast<int64_t>(options.finetuning_steepness.size());
    trees.push_back({x.data(), p, rows.back().data(), n, label ? label->data() : nullptr, numbers, n_outputs, n_values, weights.back().data(),
                     nb::cast<uint64_t>(problem[2]), nb::cast<uint64_t>(problem[3]), options.rules, growth, finetuning,
                     constraints_of(options.groups, options.signs, p), begun_tree<T>(problem[5], p, n_values)});
    auto result = std::make_unique<TreeResult<T>>(p, n_values);
    results.push_back(result.get());
    found.append(nb::cast(std::move(result)));
  }
  const auto look = [] {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  const std::thread::id caller = std::this_thread::get_id();
  nb::gil_scoped_release released;
  WorkList list(n_problems, n_threads, look);
  struct Context {
    int64_t number;
    TreeResult<T>* result;
    const std::function<bool(int64_t)>* hear;
    bool keeps_trees;
  };
  const std::function<bool(int64_t)> hears = [&](int64_t number) {
    if (std::this_thread::get_id() == caller) {
      look();
      if (number == 0 && hear) {
        const nb::gil_scoped_acquire held;
        if (!nb::cast<bool>((*hear)(results[0]->last()))) list.end();
      }
    }
    return !list.is_ended();
  };
  list.run([&](int64_t number, Pool& pool) {
    Context context{number, results[number], &hears, keeps_trees};
    const TreeListener<T> listener = {&context,
                                      [](void* given, const TreeStage<T>& stage) {
                                        auto& own = *static_cast<Context*>(given);
                                        own.result->add(stage, own.keeps_trees);
                                        return (*own.hear)(own.number);
                                      },
                                      [](void* given, const TrainedTree<T>& tree) { static_cast<Context*>(given)->result->take(tree); }};
    kernel<T>().train_tree(trees[number], listener, pool);
  });
  return found;
}

void fit_leaf_models(Array<const double, 2> x, std::optional<Numbers<1>> label, std::optional<Array<const double, 2>> y, Numbers<1> row, Numbers<1> begin,
                     Doubles share, Children left, Children right, Array<const double, 2> root, Doubles penalty, std::optional<Array<const double, 3>> start,
                     Array<double, 4> weights, std::optional<Array<double, 3>> variance, int max_iterations, double tolerance) {
  const int64_t n = static_cast<int64_t>(x.shape(0)), q = static_cast<int64_t>(x.shape(1)), n_splits = static_cast<int64_t>(left.shape(0));
  const int64_t n_nodes = 2 * n_splits + 1, n_rows = static_cast<int64_t>(row.shape(0)), n_outputs = static_cast<int64_t>(weights.shape(3));
  must(active->fit_leaf_models != nullptr, "this compiler has built no leaf models");
  must(label.has_value() != y.has_value(), "labels or numbers per row");
  must(static_cast<int64_t>(label ? label->shape(0) : y->shape(0)) == n && (!y || static_cast<int64_t>(y->shape(1)) == n_outputs), "one y per row");
  must(q > 0 && n_outputs > 0 && root.shape(0) == penalty.shape(0) && static_cast<int64_t>(root.shape(1)) == q, "one strength per weight of the root and penalty");
  must(weights.shape(0) == penalty.shape(0) && static_cast<int64_t>(weights.shape(1)) == n_nodes && static_cast<int64_t>(weights.shape(2)) == q,
       "weights of every node and penalty");
  must(!start || (static_cast<int64_t>(start->shape(0)) == n_nodes && static_cast<int64_t>(start->shape(1)) == q && static_cast<int64_t>(start->shape(2)) == n_outputs),
       "a start for the weights of every node");
  must(!variance || (variance->shape(0) == penalty.shape(0) && static_cast<int64_t>(variance->shape(1)) == n_splits + 1 && static_cast<int64_t>(variance->shape(2)) == n_outputs),
       "a variance of every leaf and penalty");
  must(static_cast<int64_t>(share.shape(0)) == n_rows && static_cast<int64_t>(begin.shape(0)) == n_splits + 2, "rows of every leaf, each with a share");
  must(begin.data()[0] == 0 && begin.data()[n_splits + 1] == n_rows, "every row of a leaf");
  for (int64_t leaf = 0; leaf <= n_splits; ++leaf) must(begin.data()[leaf] <= begin.data()[leaf + 1], "rows of leaves in order");
  for (int64_t i = 0; i < n_rows; ++i) must(row.data()[i] >= 0 && row.data()[i] < n, "a row must exist");
  for (int64_t i = 0; label && i < n; ++i) must(label->data()[i] >= 0 && label->data()[i] < n_outputs, "a label must be a class");
  for (size_t i = 0; i < penalty.shape(0); ++i) must(penalty.data()[i] > 0, "penalties must be above 0");
  must(right.shape(0) == left.shape(0), "one child on each side of a split");
  check_children(left, right, left.shape(0));
  must_be_tree(left.data(), right.data(), n_splits);
  must_be_aligned(x, row, begin, share, left, right, root, penalty, weights);
  const LeafProblem problem = {x.data(), q, label ? label->data() : nullptr, y ? y->data() : nullptr, n_outputs, row.data(), begin.data(), share.data(),
                               left.data(), right.data(), n_splits, root.data(), penalty.data(), static_cast<int64_t>(penalty.shape(0)), max_iterations,
                               tolerance, weights.data(), start ? start->data() : nullptr, variance ? variance->data() : nullptr};
  nb::gil_scoped_release released;
  active->fit_leaf_models(problem);
}

template <class T>
void bind_precision(nb::module_& m, const char* tree) {
  m.def("minimize", &minimize<T>);
  nb::class_<TreeResult<T>>(m, tree)
      .def_prop_ro("score", &TreeResult<T>::score)
      .def_prop_ro("stages", &TreeResult<T>::stages)
      .def("tree", &TreeResult<T>::tree);
  m.def("train_trees", &train_trees<T>);
}

}  // namespace

void crisptree::bind_trees(nb::module_& m) {
  nb::class_<Minimum>(m, "Minimum")
      .def_ro("log_likelihood", &Minimum::log_likelihood)
      .def_ro("weight", &Minimum::weight)
      .def_ro("evaluations", &Minimum::evaluations);
  nb::class_<TreeOptions>(m, "TreeOptions")
      .def(nb::init<>())
      .def("set_rules", [](TreeOptions& o, int64_t max_depth, int64_t max_leaf_nodes, int64_t min_samples_split, int64_t min_samples_leaf, double min_weight_fraction,
                           double min_impurity_decrease, int64_t tries, int64_t n_drawn, double lost) {
        o.rules = {max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight_fraction, min_impurity_decrease, tries, n_drawn, lost};
      })
      .def("set_constraints", [](TreeOptions& o, std::optional<Numbers<2>> groups, std::optional<Signs> signs) {
        o.groups = std::move(groups);
        o.signs = std::move(signs);
      }, nb::arg().none(), nb::arg().none())
      .def("set_growth", [](TreeOptions& o, std::vector<double> steepness, double noise, double l1, double l2, double prior, int max_iterations, double tolerance,
                            double leaf_prior, bool is_shared_by_rows) {
        o.growth_steepness = std::move(steepness);
        o.growth = {nullptr, 0, noise, l1, l2, prior, max_iterations, tolerance, leaf_prior, is_shared_by_rows};
      })
      .def("set_finetuning", [](TreeOptions& o, std::vector<double> steepness, double noise, double l1, double l2, double prior, int max_iterations,
                                double tolerance, double leaf_prior, bool is_shared_by_rows) {
        o.finetuning_steepness = std::move(steepness);
        o.finetuning = {nullptr, 0, noise, l1, l2, prior, max_iterations, tolerance, leaf_prior, is_shared_by_rows};
      });
  m.attr("has_leaf_models") = base_training.fit_leaf_models != nullptr;
  m.def("fit_leaf_models", &fit_leaf_models, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  bind_precision<float>(m, "SingleTree");
  bind_precision<double>(m, "DoubleTree");
}
