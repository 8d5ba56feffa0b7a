/* feature.c - operators on single features or rows of features: Scaler, Normalizer, Binarizer, Imputer,
 * FeatureVectorizer, ArrayFeatureExtractor. */
#include "kernel/core/ml.h"

#include <math.h>

#define GRAIN 8192u

/* A batch whose rows run along the last dim of a tensor of rank 1 or more. */
static onx_status last_rows(onx_prepare *p, onxi_ml_batch *out)
{
    const onx_value *x = p->inputs[0];
    if (!x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is a scalar");
    out->columns = (uint64_t)x->dims[x->rank - 1];
    out->rows = out->columns ? x->count / out->columns : 0;
    p->rows = out->rows;
    p->grain = GRAIN / (out->columns + 1) + 1;
    return ONX_OK;
}

/* ---- Scaler ---- */

typedef struct scaler_params {
    onxi_ml_batch batch;
    onxi_ml_numbers offset, scale;
} scaler_params;

static onx_status scaler_prepare(onx_prepare *p)
{
    scaler_params *q = ONXI_NEW(p->arena, scaler_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(last_rows(p, &q->batch));
    ONX_TRY(onxi_ml_numbers_of(p, "offset", &q->offset));
    ONX_TRY(onxi_ml_numbers_of(p, "scale", &q->scale));
    const onxi_ml_numbers *lists[] = { &q->offset, &q->scale };
    for (int i = 0; i < 2; i++)
        if (lists[i]->count > 1 && lists[i]->count != q->batch.columns)
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %llu elements, expected 1 or %llu",
                                    i ? "scale" : "offset", (unsigned long long)lists[i]->count,
                                    (unsigned long long)q->batch.columns);
    p->params = q;
    return onxi_ml_workspace(p, q->batch.columns, 0);
}

static double entry(const onxi_ml_numbers *list, uint64_t i, double fallback)
{
    return !list->count ? fallback : list->at[list->count == 1 ? 0 : i];
}

static onx_status scaler_run(onx_work *work, uint64_t first, uint64_t last)
{
    const scaler_params *q = work->params;
    double *v = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        onxi_ml_load(work->inputs[0], row, q->batch.columns, v);
        for (uint64_t i = 0; i < q->batch.columns; i++)
            v[i] = (v[i] - entry(&q->offset, i, 0)) * entry(&q->scale, i, 1);
        onxi_ml_store(work->outputs[0], row, q->batch.columns, v);
    }
    return ONX_OK;
}

/* ---- Normalizer ---- */

typedef enum norm { NORM_MAX, NORM_L1, NORM_L2, NORM_COUNT } norm;

typedef struct normalizer_params {
    onxi_ml_batch batch;
    norm norm;
} normalizer_params;

static onx_status normalizer_prepare(onx_prepare *p)
{
    static const char *const names[] = { "MAX", "L1", "L2" };
    normalizer_params *q = ONXI_NEW(p->arena, normalizer_params);
    onx_str name = onx_prepare_text(p, "norm");
    if (!q)
        return ONX_E_MEMORY;
    while (q->norm < NORM_COUNT && !onx_str_is(name, names[q->norm]))
        q->norm++;
    if (q->norm == NORM_COUNT)
        return onx_prepare_fail(p, ONX_E_INVALID, "norm is \"%.*s\"", ONX_ARG(name));
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    p->params = q;
    p->rows = q->batch.columns ? q->batch.rows : 0;
    p->grain = GRAIN / (q->batch.columns + 1) + 1;
    return onxi_ml_workspace(p, q->batch.columns, 0);
}

static double norm_of(norm kind, const double *v, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        double size = fabs(v[i]);
        if (kind == NORM_MAX)
            sum = size > sum || isnan(size) ? size : sum;
        else
            sum += kind == NORM_L1 ? size : size * size;
    }
    return kind == NORM_L2 ? sqrt(sum) : sum;
}

static onx_status normalizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const normalizer_params *q = work->params;
    double *v = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        onxi_ml_load(work->inputs[0], row, q->batch.columns, v);
        double size = norm_of(q->norm, v, q->batch.columns);
        for (uint64_t i = 0; i < q->batch.columns && size != 0; i++)
            v[i] /= size;
        onxi_ml_store(work->outputs[0], row, q->batch.columns, v);
    }
    return ONX_OK;
}

/* ---- Binarizer ---- */

typedef struct binarizer_params {
    float threshold;
    int64_t above; /* the least integer greater than the threshold */
    bool none;     /* no integer is greater */
} binarizer_params;

static onx_status binarizer_prepare(onx_prepare *p)
{
    binarizer_params *q = ONXI_NEW(p->arena, binarizer_params);
    if (!q)
        return ONX_E_MEMORY;
    q->threshold = onx_prepare_float(p, "threshold");
    float below = floorf(q->threshold);
    q->none = !(below < 0x1p63f);
    /* Cannot overflow: a float below 2^63 is below 2^63 - 1, too. */
    q->above = q->none ? INT64_MAX : below < -0x1p63f ? INT64_MIN : (int64_t)below + 1;
    p->params = q;
    p->rows = p->inputs[0]->count;
    p->grain = GRAIN;
    return ONX_OK;
}

#define BINARIZE(T, TEST)                                                                                              \
    do {                                                                                                               \
        const T *x = (const T *)work->inputs[0]->data;                                                                 \
        T *y = (T *)work->outputs[0]->data;                                                                            \
        for (uint64_t i = first; i < last; i++)                                                                        \
            y[i] = (TEST) ? (T)1 : (T)0;                                                                               \
    } while (0)

static onx_status binarizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const binarizer_params *q = work->params;
    switch (work->inputs[0]->dtype) {
    case ONX_FLOAT:
        BINARIZE(float, x[i] > q->threshold);
        break;
    case ONX_DOUBLE:
        BINARIZE(double, x[i] > (double)q->threshold);
        break;
    case ONX_INT32:
        BINARIZE(int32_t, !q->none && x[i] >= q->above);
        break;
    default:
        BINARIZE(int64_t, !q->none && x[i] >= q->above);
    }
    return ONX_OK;
}

/* ---- Imputer ---- */

typedef struct imputer_params {
    onxi_ml_batch batch;
    const void *values; /* in the input's type */
    uint32_t count;     /* 1, or one per column */
    double missing;
    int64_t missing_int;
} imputer_params;

static onx_status imputed_ints(const onx_prepare *p, imputer_params *q)
{
    const int64_t *given = onx_prepare_ints(p, "imputed_value_int64s", &q->count);
    int32_t *narrow = ONXI_ARRAY(p->arena, int32_t, q->count + 1u);
    if (!narrow)
        return ONX_E_MEMORY;
    q->missing_int = onx_prepare_int(p, "replaced_value_int64");
    q->values = given;
    if (p->inputs[0]->dtype == ONX_INT64)
        return ONX_OK;
    for (uint32_t i = 0; i < q->count; i++) {
        if (given[i] < INT32_MIN || given[i] > INT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "imputed_value_int64s has %lld, which is no int32",
                                    (long long)given[i]);
        narrow[i] = (int32_t)given[i];
    }
    q->values = narrow;
    return ONX_OK;
}

static onx_status imputed_floats(const onx_prepare *p, imputer_params *q)
{
    const float *given = onx_prepare_floats(p, "imputed_value_floats", &q->count);
    double *wide = ONXI_ARRAY(p->arena, double, q->count + 1u);
    if (!wide)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < q->count; i++)
        wide[i] = (double)given[i];
    q->missing = (double)onx_prepare_float(p, "replaced_value_float");
    q->values = p->inputs[0]->dtype == ONX_DOUBLE ? (const void *)wide : given;
    return ONX_OK;
}

static onx_status imputer_prepare(onx_prepare *p)
{
    imputer_params *q = ONXI_NEW(p->arena, imputer_params);
    int dtype = p->inputs[0]->dtype;
    bool floats = dtype == ONX_FLOAT || dtype == ONX_DOUBLE;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(last_rows(p, &q->batch));
    ONX_TRY(floats ? imputed_floats(p, q) : imputed_ints(p, q));
    if (q->count != 1 && (!q->count || q->count != q->batch.columns))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute imputed_value_%s has %u elements, expected 1 or %llu",
                                floats ? "floats" : "int64s", q->count, (unsigned long long)q->batch.columns);
    p->params = q;
    return ONX_OK;
}

#define IMPUTE(T, MISSING)                                                                                             \
    do {                                                                                                               \
        const T *x = (const T *)work->inputs[0]->data, *values = (const T *)q->values;                                 \
        T *y = (T *)work->outputs[0]->data;                                                                            \
        for (uint64_t i = first * n, column = 0; i < last * n; i++, column = column + 1 < n ? column + 1 : 0)          \
            y[i] = (MISSING) ? values[q->count == 1 ? 0 : column] : x[i];                                              \
    } while (0)

static onx_status imputer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const imputer_params *q = work->params;
    uint64_t n = q->batch.columns;
    bool nan = isnan(q->missing);
    switch (work->inputs[0]->dtype) {
    case ONX_FLOAT:
        IMPUTE(float, nan ? isnan(x[i]) : (double)x[i] == q->missing);
        break;
    case ONX_DOUBLE:
        IMPUTE(double, nan ? isnan(x[i]) : x[i] == q->missing);
        break;
    case ONX_INT32:
        IMPUTE(int32_t, x[i] == q->missing_int);
        break;
    default:
        IMPUTE(int64_t, x[i] == q->missing_int);
    }
    return ONX_OK;
}

/* ---- FeatureVectorizer ---- */

typedef struct vectorizer_params {
    uint64_t rows, columns; /* of the output */
    struct part {
        uint64_t given, wanted;
    } * parts;
} vectorizer_params;

/* Inputs are cut or padded with zeros to inputdimensions; without that attribute they keep their sizes. */
static onx_status vectorizer_shape(const onx_prepare *p, vectorizer_params *q)
{
    uint32_t count;
    const int64_t *sizes = onx_prepare_ints(p, "inputdimensions", &count);
    q->parts = onxi_arena_array(p->arena, p->input_count + 1u, sizeof *q->parts);
    if (!q->parts)
        return ONX_E_MEMORY;
    if (count && count != p->input_count)
        return onx_prepare_fail(p, ONX_E_INVALID, "inputdimensions has %u elements for %u inputs", count,
                                p->input_count);
    for (uint32_t i = 0; i < p->input_count; i++) {
        onxi_ml_batch batch;
        ONX_TRY(onxi_ml_batch_of(p, i, &batch));
        if (!(ONXI_ML_NUMBERS & ONX_DTYPE_BIT(p->inputs[i]->dtype)))
            return ONX_E_UNSUPPORTED;
        if (i && batch.rows != q->rows)
            return onx_prepare_fail(p, ONX_E_INVALID, "inputs 0 and %u have %llu and %llu rows", i,
                                    (unsigned long long)q->rows, (unsigned long long)batch.rows);
        if (count && sizes[i] < 0)
            return onx_prepare_fail(p, ONX_E_INVALID, "inputdimensions has the value %lld", (long long)sizes[i]);
        q->rows = batch.rows;
        q->parts[i] = (struct part){ batch.columns, count ? (uint64_t)sizes[i] : batch.columns };
        if (!onxi_add_u64(q->columns, q->parts[i].wanted, &q->columns) || q->columns > INT64_MAX)
            return onx_prepare_fail(p, ONX_E_LIMIT, "the rows are too long together");
    }
    return ONX_OK;
}

static onx_status vectorizer_types(onx_prepare *p)
{
    vectorizer_params q = { .columns = 0 };
    ONX_TRY(vectorizer_shape(p, &q));
    const int64_t dims[] = { (int64_t)q.rows, (int64_t)q.columns };
    return onx_prepare_output(p, 0, ONX_FLOAT, 2, dims);
}

static onx_status vectorizer_prepare(onx_prepare *p)
{
    vectorizer_params *q = ONXI_NEW(p->arena, vectorizer_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(vectorizer_shape(p, q));
    ONX_TRY(onxi_ml_want_scores(p, 0, q->rows, q->columns));
    p->params = q;
    p->rows = q->columns ? q->rows : 0;
    p->grain = GRAIN / (q->columns + 1) + 1;
    return ONX_OK;
}

static onx_status vectorizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const vectorizer_params *q = work->params;
    for (uint64_t row = first; row < last; row++) {
        float *to = (float *)work->outputs[0]->data + row * q->columns;
        for (uint32_t i = 0; i < work->prepared->input_count; i++) {
            const struct part part = q->parts[i];
            const onx_value *x = work->inputs[i];
            uint64_t take = part.given < part.wanted ? part.given : part.wanted;
            const char *from = (const char *)x->data + row * part.given * (onx_dtype_bits(x->dtype) / 8);
            if (take)
                onxi_convert(ONX_FLOAT, to, (onx_dtype)x->dtype, from, 0, take, true);
            for (uint64_t k = take; k < part.wanted; k++)
                to[k] = 0;
            to += part.wanted;
        }
    }
    return ONX_OK;
}

/* ---- ArrayFeatureExtractor ---- */

typedef struct extractor_params {
    uint64_t columns, picks, width;
} extractor_params;

static onx_status extractor_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1];
    extractor_params *q = ONXI_NEW(p->arena, extractor_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!x->rank || index->dtype != ONX_INT64 || p->outputs[0]->dtype != x->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 has rank %u, and the indexes are %s", x->rank,
                                onx_dtype_name(index->dtype));
    q->columns = (uint64_t)x->dims[x->rank - 1];
    q->picks = index->count;
    q->width = onxi_element_size(x->dtype);
    p->rows = q->picks ? onxi_product(x->dims, 0, x->rank - 1) : 0;
    if (p->outputs[0]->count != p->rows * q->picks)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output does not have the elements that are picked");
    p->params = q;
    p->grain = GRAIN / (q->picks + 1) + 1;
    return ONX_OK;
}

static onx_status extractor_run(onx_work *work, uint64_t first, uint64_t last)
{
    const extractor_params *q = work->params;
    const int64_t *at = work->inputs[1]->data;
    for (uint64_t row = first; row < last; row++) {
        const char *from = (const char *)work->inputs[0]->data + row * q->columns * q->width;
        char *to = (char *)work->outputs[0]->data + row * q->picks * q->width;
        for (uint64_t i = 0; i < q->picks; i++) {
            if (at[i] < 0 || (uint64_t)at[i] >= q->columns)
                return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of a dimension of %llu",
                                     (long long)at[i], (unsigned long long)q->columns);
            memcpy(to + i * q->width, from + (uint64_t)at[i] * q->width, q->width);
        }
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_ml_feature[] = {
    ONXI_ML_ROW("Scaler", 1, .dtypes = ONXI_ML_NUMBERS, .prepare = scaler_prepare, .run = scaler_run),
    ONXI_ML_ROW("Normalizer", 1, .dtypes = ONXI_ML_NUMBERS, .prepare = normalizer_prepare, .run = normalizer_run),
    ONXI_ML_ROW("Binarizer", 1, .dtypes = ONXI_ML_NUMBERS, .flags = ONX_KERNEL_IN_PLACE, .prepare = binarizer_prepare,
                .run = binarizer_run),
    ONXI_ML_ROW("Imputer", 1, .dtypes = ONXI_ML_NUMBERS, .flags = ONX_KERNEL_IN_PLACE, .prepare = imputer_prepare,
                .run = imputer_run),
    ONXI_ML_ROW("FeatureVectorizer", 1, .dtypes = ONXI_ML_NUMBERS, .types = vectorizer_types,
                .prepare = vectorizer_prepare, .run = vectorizer_run),
    ONXI_ML_ROW("ArrayFeatureExtractor", 1, .prepare = extractor_prepare, .run = extractor_run),
    { 0 }
};
