/* ml.h - common parts of the kernels of ai.onnx.ml: rows of features, lists in attributes, class labels, category
 * lookup, and the final transform of scores. */
#ifndef ONXI_KERNEL_ML_H
#define ONXI_KERNEL_ML_H

#include "kernel/kernel.h"

#define ONXI_ML_NUMBERS (ONXI_F32 | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_INT64) | ONX_DTYPE_BIT(ONX_INT32))
#define ONXI_ML_ROW(name, from, ...)                                                                                   \
    {                                                                                                                  \
        .op = name, .domain = "ai.onnx.ml", .since = from, __VA_ARGS__                                                 \
    }

/* ---- features ---- */

/* [N, C], or [C], which is one row. */
typedef struct onxi_ml_batch {
    uint64_t rows, columns;
} onxi_ml_batch;
onx_status onxi_ml_batch_of(const onx_prepare *p, uint32_t input, onxi_ml_batch *out);
/* One row as double, whatever the type. */
void onxi_ml_load(const onx_value *x, uint64_t row, uint64_t columns, double *out);
/* The output is rows x columns of a numeric type. */
onx_status onxi_ml_want_scores(const onx_prepare *p, uint32_t output, uint64_t rows, uint64_t columns);
/* NULL: not requested. */
static inline onx_value *onxi_ml_output(const onx_work *work, uint32_t output)
{
    return output < work->prepared->output_count ? work->outputs[output] : NULL;
}
void onxi_ml_store(onx_value *y, uint64_t row, uint64_t columns, const double *scores);
void onxi_ml_store_rows(onx_value *y, uint64_t row, uint64_t count, uint64_t columns, const double *scores);

/* ---- attributes ---- */

typedef struct onxi_ml_numbers {
    const double *at;
    uint64_t count;
    int dtype; /* ONX_UNDEFINED: the attribute is absent */
} onxi_ml_numbers;
/* A list of floats, or the tensor `name`_as_tensor, or a tensor. */
onx_status onxi_ml_numbers_of(const onx_prepare *p, const char *name, onxi_ml_numbers *out);
const onx_bytes *onxi_ml_texts_of(const onx_prepare *p, const char *name, uint32_t *count);

typedef struct onxi_ml_labels {
    const int64_t *ints;
    const onx_bytes *texts; /* neither: a class is called by its index */
    uint32_t count;
} onxi_ml_labels;
onx_status onxi_ml_labels_of(const onx_prepare *p, const char *ints, onxi_ml_labels *out);
/* The output types of a classifier: a label and this number of scores per row. */
onx_status onxi_ml_classes(onx_prepare *p, const onxi_ml_labels *labels, uint64_t rows, uint64_t scores);
/* An `index` past the labels gives `otherwise`, as a number or as text. */
void onxi_ml_label(const onxi_ml_labels *labels, onx_value *y, uint64_t row, uint64_t index, int64_t fallback);

/* ---- categories ---- */

/* Which place in a list has this key? */
typedef struct onxi_ml_index {
    const onx_str *texts; /* the keys: these, or words */
    const uint64_t *words;
    onxi_table table;       /* of places */
    const uint32_t *places; /* direct lookup table for integers from `least` on, if they are close together; otherwise
                             * NULL */
    uint64_t least, span;
} onxi_ml_index;
#define ONXI_ML_NOWHERE UINT32_MAX
/* For a duplicate key the last one counts, or the first one. The keys are referenced, not copied. */
onx_status onxi_ml_index_texts(const onx_prepare *p, const onx_bytes *keys, uint32_t count, bool last,
                               onxi_ml_index *out);
onx_status onxi_ml_index_words(const onx_prepare *p, const uint64_t *keys, uint32_t count, bool last,
                               onxi_ml_index *out);
uint32_t onxi_ml_find_text(const onxi_ml_index *index, onx_str key);
uint32_t onxi_ml_find_word(const onxi_ml_index *index, uint64_t key);

/* ---- scores ---- */

/* The sum of products, or of squared differences, of two lists, with eight accumulators, so that none waits. */
double onxi_ml_product(const double *a, const double *b, uint64_t n);
double onxi_ml_distance(const double *a, const double *b, uint64_t n);

typedef enum onxi_ml_transform {
    ONXI_ML_NONE,
    ONXI_ML_SOFTMAX,
    ONXI_ML_LOGISTIC,
    ONXI_ML_SOFTMAX_ZERO,
    ONXI_ML_PROBIT,
    ONXI_ML_TRANSFORM_COUNT
} onxi_ml_transform;
onx_status onxi_ml_transform_of(const onx_prepare *p, onxi_ml_transform *out);
void onxi_ml_finish(onxi_ml_transform transform, double *scores, uint64_t count);
double onxi_ml_logistic(double x);
/* The first of the greatest; a NaN is greater than all. */
uint64_t onxi_ml_argmax(const double *scores, uint64_t count);

/* Requests bytes for `count` doubles, plus `more` bytes, as workspace of a thread. */
onx_status onxi_ml_workspace(onx_prepare *p, uint64_t count, uint64_t more);

#endif
