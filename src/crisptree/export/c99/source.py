"""The code of an export to C99: what is the same for all models. ``$name`` is the prefix of every name in it."""

from __future__ import annotations

from string import Template

OPENING = """\
#ifndef ${NAME}_H
#define ${NAME}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

$constants
$declarations
#ifdef __cplusplus
}
#endif

#endif

#ifdef ${NAME}_IMPLEMENTATION
"""

CLOSING = """\

#endif
"""

EXACT_SINGLES = """\
#include <float.h>

/* Every product and every sum is rounded to single precision on its own: that is what makes the leaves equal to
 * crisptree's, bit by bit. Where a compiler keeps more digits, or joins a product and a sum into one instruction, a
 * volatile variable rounds. GCC does not know the pragma; with -std=c99 it joins nothing, otherwise say
 * -ffp-contract=off and define ${NAME}_ROUNDS to do without the variable.
 */
#if defined(__FAST_MATH__)
#error "-ffast-math reorders sums; rows near a boundary would reach another leaf than in crisptree"
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#pragma fp_contract(off)
#elif defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif
#if !defined(${NAME}_ROUNDS) && (!defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0 || \\
    (defined(__GNUC__) && !defined(__clang__) && defined(__FP_FAST_FMAF) && \\
     (defined(__cplusplus) || !defined(__STRICT_ANSI__))))
typedef volatile float ${name}_single;
#else
typedef float ${name}_single;
#endif
"""

FOLD = """
/* Term j goes to lane j mod 32; the upper half of the lanes is added to the lower half until one is left. Lanes that no
 * feature reaches are left out. */
static float ${name}_fold(${name}_single *lane)
{
    int width, i;
    for (width = $half; width > 0; width /= 2) {
        for (i = 0; i < width; ++i) {
            lane[i] = lane[i] + lane[i + width];
        }
    }
    return lane[0];
}
"""

DENSE_SINGLES = """
static float ${name}_score(const float *row, int32_t split)
{
    const float *weight = ${name}_weight + split * (int32_t)${NAME}_N_FEATURES;
    ${name}_single lane[$lanes];
    int32_t first = 0;
    int32_t i;
    for (i = 0; i < $lanes; ++i) {
        lane[i] = 0.0f;
    }
$whole    for (i = 0; i < $rest; ++i) {
        const ${name}_single term = row[first + i] * weight[first + i];
        lane[i] = lane[i] + term;
    }
    return ${name}_fold(lane);
}
"""

WHOLE_LANES = """\
    for (; first < $whole; first += 32) {
        for (i = 0; i < 32; ++i) {
            const ${name}_single term = row[first + i] * weight[first + i];
            lane[i] = lane[i] + term;
        }
    }
"""

SPARSE_SINGLES = """
static float ${name}_score(const float *row, int32_t split)
{
    ${name}_single lane[$lanes];
    uint32_t feature = 0;
    uint32_t term = ${name}_start[split];
    const uint32_t end = ${name}_start[split + 1];
    int i;
    if (end - term == 1u) { /* a threshold */
        const ${name}_single product = row[${name}_gap[term]] * ${name}_weight[term];
        return product;
    }
    for (i = 0; i < $lanes; ++i) {
        lane[i] = 0.0f;
    }
    for (; term < end; ++term) {
        feature += ${name}_gap[term];
        {
            const ${name}_single product = row[feature] * ${name}_weight[term];
            lane[feature % 32u] = lane[feature % 32u] + product;
        }
    }
    return ${name}_fold(lane);
}
"""

SINGLE_TURN = """\
        const ${name}_single sum = ${name}_score(row, node) + ${name}_bias[node];
        node = sum > 0.0f ? ${name}_right[node] : ${name}_left[node];
"""

DENSE_INTEGERS = """
static int32_t ${name}_score(const $row_type *row, int32_t split)
{
    const $weight_type *weight = ${name}_weight + split * (int32_t)${NAME}_N_FEATURES;
    int32_t sum = ${name}_bias[split];
    int32_t i;
    for (i = 0; i < ${NAME}_N_FEATURES; ++i) {
        sum += (int32_t)row[i] * (int32_t)weight[i];
    }
    return sum;
}
"""

SPARSE_INTEGERS = """
static int32_t ${name}_score(const $row_type *row, int32_t split)
{
    int32_t sum = ${name}_bias[split];
    uint32_t feature = 0;
    uint32_t term = ${name}_start[split];
    const uint32_t end = ${name}_start[split + 1];
    for (; term < end; ++term) {
        feature += ${name}_gap[term];
        sum += (int32_t)row[feature] * (int32_t)${name}_weight[term];
    }
    return sum;
}
"""

INTEGER_TURN = """\
        node = ${name}_score(row, node) > 0 ? ${name}_right[node] : ${name}_left[node];
"""

ARRIVE = """
/* Where a row arrives: its leaf among those of all trees. A sum above zero goes right. */
static int32_t ${name}_arrive(const $row_type *row, int32_t node)
{
    while (node >= 0) {
$turn    }
    return -(node + 1);
}
"""

ONE_TREE = """
int32_t ${name}_leaf(const $row_type *row)
{
    return ${name}_arrive(row, $root);
}
"""

ONE_TREE_CLASSES = """
int32_t ${name}_predict(const $row_type *row)
{
    return ${name}_answer[${name}_leaf(row)];
}

void ${name}_predict_proba(const $row_type *row, $table_type *probabilities)
{
    const $table_type *table = ${name}_table + ${name}_leaf(row) * (int32_t)${NAME}_N_OUTPUTS;
    int32_t k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        probabilities[k] = table[k];
    }
}
"""

ONE_TREE_MANY_NUMBERS = """
void ${name}_predict(const $row_type *row, double *values)
{
    const double *table = ${name}_table + ${name}_leaf(row) * (int32_t)${NAME}_N_OUTPUTS;
    int32_t k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        values[k] = table[k];
    }
}
"""

ONE_TREE_NUMBERS = """
double ${name}_predict(const $row_type *row)
{
    return ${name}_table[${name}_leaf(row)];
}
"""

FOREST = """
int32_t ${name}_leaf(const $row_type *row, int32_t tree)
{
    return ${name}_arrive(row, ${name}_root[tree]) - (int32_t)${name}_first_leaf[tree];
}
"""

ADD_TABLES = """
/* What all trees say, added up in their order. */
static void ${name}_add_up(const $row_type *row, $sum_type *sums)
{
    int32_t tree, k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        sums[k] = 0;
    }
    for (tree = 0; tree < ${NAME}_N_TREES; ++tree) {
        const int32_t leaf = ${name}_arrive(row, ${name}_root[tree]);
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            sums[k] = sums[k] + ${name}_table[leaf * (int32_t)${NAME}_N_OUTPUTS + k];
        }
    }
}
"""

LEAF_MODEL = """
/* What one of the linear functions of the leaves makes of a row. */
static double ${name}_model(const $row_type *row, int32_t number)
{
    const double *slope = ${name}_slope + number * (int32_t)${NAME}_N_FEATURES;
    double sum = 0.0;
    int32_t j;
    for (j = 0; j < ${NAME}_N_FEATURES; ++j) {
        sum += (double)row[j] * slope[j];
    }
    return sum + ${name}_offset[number];
}
"""

ADD_NUMBERS = """
/* What the models of the leaves say, added up over the trees in their order. */
static void ${name}_add_up(const $row_type *row, double *sums)
{
    int32_t tree, k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        sums[k] = 0;
    }
    for (tree = 0; tree < ${NAME}_N_TREES; ++tree) {
        const int32_t first = $arrived * (int32_t)${NAME}_N_OUTPUTS;
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            sums[k] = sums[k] + ${name}_model(row, first + k);
        }
    }
}
"""

ADD_SHARES = """
/* e to the power of x, for x of at most 0: halves, and a series for what is left. */
static double ${name}_exp(double x)
{
    double sum = 1.0, power = 1.0;
    int32_t halves = 0, k;
    if (x < -745.0) {
        return 0.0;
    }
    halves = (int32_t)(x * -1.4426950408889634);
    x += (double)halves * 0.6931471805599453;
    for (k = 1; k < 20; ++k) {
        power *= x / (double)k;
        sum += power;
    }
    for (; halves > 0; --halves) {
        sum *= 0.5;
    }
    return sum;
}

/* The softmax of what the models of the leaves say, added up over the trees in their order. */
static void ${name}_add_up(const $row_type *row, double *sums)
{
    int32_t tree, k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        sums[k] = 0;
    }
    for (tree = 0; tree < ${NAME}_N_TREES; ++tree) {
        const int32_t first = $arrived * (int32_t)${NAME}_N_OUTPUTS;
        double share[${NAME}_N_OUTPUTS];
        double most = 0.0, all = 0.0;
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            share[k] = ${name}_model(row, first + k);
            most = k == 0 || share[k] > most ? share[k] : most;
        }
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            share[k] = ${name}_exp(share[k] - most);
            all += share[k];
        }
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            sums[k] = sums[k] + share[k] / all;
        }
    }
}
"""

FOREST_CLASSES = """
int32_t ${name}_predict(const $row_type *row)
{
    $sum_type sums[${NAME}_N_OUTPUTS];
    int32_t k, best = 0;
    ${name}_add_up(row, sums);
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
$mean        if (sums[k] > sums[best]) {
            best = k;
        }
    }
    return best;
}

void ${name}_predict_proba(const $row_type *row, $table_type *probabilities)
{
    $sum_type sums[${NAME}_N_OUTPUTS];
    int32_t k;
    ${name}_add_up(row, sums);
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        probabilities[k] = ($table_type)(sums[k] / $trees);
    }
}
"""

FOREST_MANY_NUMBERS = """
void ${name}_predict(const $row_type *row, double *values)
{
    int32_t k;
    ${name}_add_up(row, values);
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        values[k] = values[k] / $trees;
    }
}
"""

FOREST_NUMBERS = """
double ${name}_predict(const $row_type *row)
{
    double sums[1];
    ${name}_add_up(row, sums);
    return sums[0] / $trees;
}
"""

PREDICTIONS = {
    ("classes", True): ONE_TREE_CLASSES,
    ("classes", False): FOREST_CLASSES,
    ("number", True): ONE_TREE_NUMBERS,
    ("number", False): FOREST_NUMBERS,
    ("numbers", True): ONE_TREE_MANY_NUMBERS,
    ("numbers", False): FOREST_MANY_NUMBERS,
}
"""What a model says, by what that is and whether one tree says it."""


def filled(text: str, **words: object) -> str:
    """The text with the prefix and other words in it."""
    return Template(text).substitute(NAME=str(words["name"]).upper(), **words)
