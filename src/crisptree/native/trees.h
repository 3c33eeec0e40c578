// Whole trees trained by L-BFGS: growth from random stumps, then all splits jointly. No Python objects in here.
#pragma once

#include <cstdint>

#include "lbfgs.h"
#include "pool.h"

namespace crisptree {

// Minimisations one after the other, each at its own γ; all else stays.
struct TreePhase {
  const double* steepness;
  int64_t n_stages;
  double noise, l1, l2, prior;
  int max_iterations;
  double tolerance;
  double leaf_prior;     // of the tables between two minimisations
  bool is_shared_by_rows;  // whether penalties of a split are multiplied by its share of the rows
};

struct GrowthRules {
  int64_t max_depth, max_leaf_nodes;  // −1 for none
  int64_t min_samples_split, min_samples_leaf;
  double min_weight_fraction, min_impurity_decrease;
  int64_t tries;
  int64_t n_drawn;  // features of a split, or −1 for all
  double lost;      // a stump of numbers that gains less than this share of its start's gain is put back to it; 0 for never
};

// A tree to finetune instead of growing one.
template <class T>
struct BegunTree {
  int64_t n_splits = -1;  // −1 for none
  const int32_t *left = nullptr, *right = nullptr;
  const T *weight = nullptr, *bias = nullptr, *leaves = nullptr;
  bool keeps_zeros = false;  // whether weights that are zero stay so
};

// A tree to be trained: some rows of an array, row i with the features x[rows[i]], its y and its weight.
template <class T>
struct TreeProblem {
  const T* x;
  int64_t p;
  const int64_t* rows;
  int64_t n;
  const int64_t* label;  // by row of the array, or null
  const double* y;       // (…, n_outputs) by row of the array, where there are no labels
  int64_t n_outputs;
  int64_t n_values;     // of a leaf table
  const T* weight;      // (n,)
  uint64_t seed, start;  // random numbers follow from both
  GrowthRules rules;
  TreePhase growth, finetuning;
  Constraints constraints;
  BegunTree<T> begun;
};

// The end of a minimisation. Tables and splits are there while a whole tree is finetuned.
template <class T>
struct TreeStage {
  bool is_growth;
  int64_t level, n_splits, number;  // of the minimisation, from 0
  double steepness, log_likelihood, row_weight;
  const int32_t *left, *right;
  const T *weight, *bias, *leaves;
};

// A trained tree; what `grown` arrays hold is the tree before it was finetuned.
template <class T>
struct TrainedTree {
  int64_t n_splits;
  const int32_t *left, *right;
  const T *grown_weight, *grown_bias, *grown_leaves;
  const T *weight, *bias, *leaves;
  double score;  // mean score of the deterministic tree on the training rows
};

// Who hears of stages, and may stop the training there by false, and takes the tree.
template <class T>
struct TreeListener {
  void* context;
  bool (*hear)(void*, const TreeStage<T>&);
  void (*take)(void*, const TrainedTree<T>&);
};

template <class T>
using TrainTree = void (*)(const TreeProblem<T>&, const TreeListener<T>&, Pool&);

}  // namespace crisptree
