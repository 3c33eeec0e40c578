/* Templates of the C99 header. A line that begins with //// names the template below it; $name is the prefix of every
 * name in the header, and $NAME the same in capital letters. source.py reads them.
 */
//// OPENING
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

#if defined(${NAME}_IMPLEMENTATION) && !defined(${NAME}_IMPLEMENTED)
#define ${NAME}_IMPLEMENTED
//// CLOSING

#endif
//// EXACT_FLOATS

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
#if !defined(${NAME}_ROUNDS) && (!defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0 || \
    (defined(__GNUC__) && !defined(__clang__) && defined(__FP_FAST_FMAF) && \
     (defined(__cplusplus) || !defined(__STRICT_ANSI__))))
typedef volatile float ${name}_single;
#else
typedef float ${name}_single;
#endif
//// FOLD
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
//// DENSE_FLOATS

static float ${name}_score(const float *row, int32_t split)
{
    const float *weight = ${name}_weight + split * (int32_t)${NAME}_N_FEATURES;
    ${name}_single lane[$lanes];
    int32_t $counters;
    for (i = 0; i < $lanes; ++i) {
        lane[i] = 0.0f;
    }
$terms    return ${name}_fold(lane);
}
//// FULL_LANES
    for (first = 0; first < $whole; first += 32) {
        for (i = 0; i < 32; ++i) {
            const ${name}_single term = row[first + i] * weight[first + i];
            lane[i] = lane[i] + term;
        }
    }
//// LAST_LANES
    for (i = 0; i < $rest; ++i) {
        const ${name}_single term = row[$at] * weight[$at];
        lane[i] = lane[i] + term;
    }
//// SPARSE_FLOATS

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
//// FLOAT_STEP
        const ${name}_single sum = ${name}_score(row, node) + ${name}_bias[node];
        node = sum > 0.0f ? ${name}_right[node] : ${name}_left[node];
//// CLIP

/* An input beyond the range counts as the end of the range; otherwise a sum could overflow. */
static int32_t ${name}_clip($row_type input)
{
    return input < $low ? $low : input > $high ? $high : input;
}
//// DENSE_INTEGERS

static int32_t ${name}_score(const $row_type *row, int32_t split)
{
    const $weight_type *weight = ${name}_weight + split * (int32_t)${NAME}_N_FEATURES;
    int32_t sum = ${name}_bias[split];
    int32_t i;
    for (i = 0; i < ${NAME}_N_FEATURES; ++i) {
        sum += ${read}row[i]$end * (int32_t)weight[i];
    }
    return sum;
}
//// SPARSE_INTEGERS

static int32_t ${name}_score(const $row_type *row, int32_t split)
{
    int32_t sum = ${name}_bias[split];
    uint32_t feature = 0;
    uint32_t term = ${name}_start[split];
    const uint32_t end = ${name}_start[split + 1];
    for (; term < end; ++term) {
        feature += ${name}_gap[term];
        sum += ${read}row[feature]$end * (int32_t)${name}_weight[term];
    }
    return sum;
}
//// INTEGER_STEP
        node = ${name}_score(row, node) > 0 ? ${name}_right[node] : ${name}_left[node];
//// ROUTE

/* Where a row arrives: its leaf among those of all trees. A sum above zero goes right. */
static int32_t ${name}_arrive(const $row_type *row, int32_t node)
{
    while (node >= 0) {
$turn    }
    return -(node + 1);
}
//// TREE_LEAF

int32_t ${name}_leaf(const $row_type *row)
{
    return ${name}_arrive(row, $root);
}
//// COPY_TABLE

void ${name}_$function(const $row_type *row, $table_type *$output)
{
    const $table_type *table = ${name}_table + ${name}_leaf(row) * (int32_t)${NAME}_N_OUTPUTS;
    int32_t k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        $output[k] = table[k];
    }
}
//// LEAF_CLASS

int32_t ${name}_predict(const $row_type *row)
{
    return ${name}_answer[${name}_leaf(row)];
}
//// LEAF_VALUE

double ${name}_predict(const $row_type *row)
{
    return ${name}_table[${name}_leaf(row)];
}
//// FOREST_LEAF

int32_t ${name}_leaf(const $row_type *row, int32_t tree)
{
    return ${name}_arrive(row, ${name}_root[tree]) - (int32_t)${name}_first_leaf[tree];
}
//// LEAF_MODEL

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
//// ADD_UP

/* $comment */
static void ${name}_add_up(const $row_type *row, $sum_type *sums)
{
    int32_t tree, k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        sums[k] = 0;
    }
    for (tree = 0; tree < ${NAME}_N_TREES; ++tree) {
$add    }
}
//// ADD_TABLE
        const int32_t leaf = $leaf;
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            sums[k] = sums[k] + ${name}_table[leaf * (int32_t)${NAME}_N_OUTPUTS + k];
        }
//// ADD_LINEAR
        const int32_t first = $leaf * (int32_t)${NAME}_N_OUTPUTS;
        for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
            sums[k] = sums[k] + ${name}_model(row, first + k);
        }
//// EXP

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
//// ADD_SOFTMAX
        const int32_t first = $leaf * (int32_t)${NAME}_N_OUTPUTS;
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
//// MEAN_CLASSES

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
//// MEAN_VALUES

void ${name}_predict(const $row_type *row, double *values)
{
    int32_t k;
    ${name}_add_up(row, values);
    for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
        values[k] = values[k] / $trees;
    }
}
//// MEAN_VALUE

double ${name}_predict(const $row_type *row)
{
    double sums[1];
    ${name}_add_up(row, sums);
    return sums[0] / $trees;
}
//// ENCODER_DECLARATIONS
#define ${NAME}_N_COLUMNS $n_columns

$category/* Columns of a table as features, ${NAME}_N_FEATURES values.
 * $kinds
 * Missing numbers are replaced by the mean of training. The result is 0, or the number of the first column that cannot be used, counted
 * from 1: its value is too large for single precision, or is missing where the model has no mean. To predict a row:
 *     if (${name}_encode(columns, $features) == 0) { $predict }
 */
int32_t ${name}_encode(const double *columns, float *features);
//// CATEGORY_DECLARATION
/* The number that stands for a category of a column; -1 for one that training did not know, -2 for a text that means a
 * missing value.
 */
int32_t ${name}_category(int32_t column, const char *text);

//// NUMBER_ENCODER

int32_t ${name}_encode(const double *columns, float *features)
{
    int32_t column;
    for (column = 0; column < ${NAME}_N_COLUMNS; ++column) {
        const double value = columns[column];
        if (value >= -3.4028234663852886e38 && value <= 3.4028234663852886e38) {
            features[column] = (float)value;
        } else if (value >= 0.0 || value < 0.0) {
            return column + 1;
        } else {
            features[column] = ${name}_fill[column];
        }
    }
    return 0;
}
//// ENCODER

static int ${name}_is(const char *known, const char *text)
{
    int32_t i;
    for (i = 0; known[i] != 0 && known[i] == text[i]; ++i) {
    }
    return known[i] == text[i];
}

int32_t ${name}_category(int32_t column, const char *text)
{
    int32_t place;
    for (place = ${name}_first_category[column]; place < (int32_t)${name}_first_category[column + 1]; ++place) {
        if (${name}_is(${name}_categories[place], text)) {
            return place - (int32_t)${name}_first_category[column];
        }
    }
    for (place = 0; place < $n_missing; ++place) {
        if (${name}_is(${name}_missing[place], text)) {
            return -2;
        }
    }
    return -1;
}

int32_t ${name}_encode(const double *columns, float *features)
{
    int32_t column, k;
    for (column = 0; column < ${NAME}_N_COLUMNS; ++column) {
        const double value = columns[column];
        const int32_t kind = ${name}_column_kind[column];
        const int32_t levels = (int32_t)${name}_first_category[column + 1] - (int32_t)${name}_first_category[column];
        const int missing = (!(value >= 0.0) && !(value < 0.0)) || ((kind & 1) != 0 && value < -1.5);
        if (missing && (kind & 4) != 0) {
            return column + 1;
        }
        if ((kind & 1) != 0) {
            for (k = 0; k < levels; ++k) {
                features[k] = !missing && value >= (double)k && value < (double)k + 1.0 ? 1.0f : 0.0f;
            }
            features += levels;
        } else {
            if (!missing && !(value >= -3.4028234663852886e38 && value <= 3.4028234663852886e38)) {
                return column + 1;
            }
            *features++ = missing ? ${name}_fill[column] : (float)value;
        }
        if ((kind & 2) != 0) {
            *features++ = missing ? 1.0f : 0.0f;
        }
    }
    return 0;
}
//// QUANTIZE_FLOATS_DECLARATION
/* The inputs that the features of a row become: floor((feature - offset) * factor + 0.5), clipped to $low and $high.
 * NaN becomes $low: replace missing values first$encode.
 */
void ${name}_quantize(const float *features, $row_type *row);
//// QUANTIZE_INTEGERS_DECLARATION
/* The inputs that the features of a row become: (feature - offset) * factor, clipped to $low and $high. */
void ${name}_quantize(const int32_t *features, $row_type *row);
//// QUANTIZE_FLOATS

void ${name}_quantize(const float *features, $row_type *row)
{
    int32_t j;
    for (j = 0; j < ${NAME}_N_FEATURES; ++j) {
        const ${name}_single above = features[j] - ${name}_offset[j];
        const ${name}_single exact = above * ${name}_factor[j];
        const ${name}_single moved = exact + 0.5f;
        int32_t value = $low;
        if (moved >= $high.0f) {
            value = $high;
        } else if (moved >= $low.0f) {
            value = (int32_t)moved;
            if ((float)value > moved) {
                value -= 1;
            }
        }
        row[j] = ($row_type)value;
    }
}
//// QUANTIZE_INTEGERS

void ${name}_quantize(const int32_t *features, $row_type *row)
{
    int32_t j;
    for (j = 0; j < ${NAME}_N_FEATURES; ++j) {
        const int32_t factor = ${name}_factor[j];
        const int32_t offset = ${name}_offset[j];
        const int32_t most = offset + $high, least = offset - $high;
        const int32_t feature = features[j] < least ? least : features[j] > most ? most : features[j];
        const int32_t value = (feature - offset) * factor;
        row[j] = ($row_type)(value < $low ? $low : value > $high ? $high : value);
    }
}
//// DRIVER
#define ${NAME}_IMPLEMENTATION
#define ${NAME}_WITH_FLOAT
#include "${name}.h"

int32_t crisptree_predict_rows(const $input_type *rows, int32_t n, int32_t *leaves, int32_t *classes, double *outputs);
int32_t crisptree_predict_rows(const $input_type *rows, int32_t n, int32_t *leaves, int32_t *classes, double *outputs)
{
    int32_t i, k;
    for (i = 0; i < n; ++i) {
        const $input_type *values = rows + i * (int32_t)${NAME}_$width;
$prepare        for (k = 0; k < ${NAME}_N_TREES; ++k) {
            *leaves++ = ${name}_leaf($row$tree);
        }
$predict    }
    (void)classes;
    return 0;
}
//// DRIVER_ENCODE
        float features[${NAME}_N_FEATURES];
        const int32_t refused = ${name}_encode(values, features);
        if (refused != 0) {
            return refused;
        }
//// DRIVER_QUANTIZE
        $row_type row[${NAME}_N_FEATURES];
        ${name}_quantize($features, row);
//// DRIVER_CLASSES
        {
            $table_type table[${NAME}_N_OUTPUTS];
            ${name}_predict_proba($row, table);
            *classes++ = ${name}_predict($row);
            for (k = 0; k < ${NAME}_N_OUTPUTS; ++k) {
                *outputs++ = (double)table[k] / $one;
            }
        }
//// DRIVER_VALUES
        ${name}_predict($row, outputs);
        outputs += ${NAME}_N_OUTPUTS;
//// DRIVER_VALUE
        *outputs++ = ${name}_predict($row);
