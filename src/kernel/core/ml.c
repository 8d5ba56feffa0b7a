/* ml.c - common parts of the kernels of ai.onnx.ml. All of them compute in double. */
#include "kernel/core/ml.h"

#include <math.h>
#include <stdio.h>

/* ---- features ---- */

onx_status onxi_ml_batch_of(const onx_prepare *p, uint32_t input, onxi_ml_batch *out)
{
    const onx_value *x = p->inputs[input];
    if (!x || x->kind != ONX_VALUE_TENSOR || x->rank < 1 || x->rank > 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "input %u has rank %u, expected 1 or 2", input, x ? x->rank : 0);
    out->rows = x->rank == 2 ? (uint64_t)x->dims[0] : 1;
    out->columns = (uint64_t)x->dims[x->rank - 1];
    return ONX_OK;
}

void onxi_ml_load(const onx_value *x, uint64_t row, uint64_t columns, double *out)
{
    const char *from = (const char *)x->data + row * columns * (onx_dtype_bits(x->dtype) / 8);
    onxi_convert(ONX_DOUBLE, out, (onx_dtype)x->dtype, from, 0, columns, true);
}

onx_status onxi_ml_want_scores(const onx_prepare *p, uint32_t output, uint64_t rows, uint64_t columns)
{
    const onx_value *y = output < p->output_count ? p->outputs[output] : NULL;
    if (!y)
        return ONX_OK;
    if (y->kind != ONX_VALUE_TENSOR || y->rank != 2 || (uint64_t)y->dims[0] != rows || (uint64_t)y->dims[1] != columns)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu scores for each of %llu rows, output %u has %lld",
                                (unsigned long long)columns, (unsigned long long)rows, output,
                                y->kind == ONX_VALUE_TENSOR && y->rank ? (long long)y->dims[y->rank - 1] : 0LL);
    return ONX_OK;
}

void onxi_ml_store_rows(onx_value *y, uint64_t row, uint64_t count, uint64_t columns, const double *scores)
{
    uint64_t width = onx_dtype_bits(y->dtype) / 8;
    onxi_convert((onx_dtype)y->dtype, (char *)y->data + row * columns * width, ONX_DOUBLE, scores, 0, count * columns,
                 true);
}

void onxi_ml_store(onx_value *y, uint64_t row, uint64_t columns, const double *scores)
{
    onxi_ml_store_rows(y, row, 1, columns, scores);
}

onx_status onxi_ml_workspace(onx_prepare *p, uint64_t count, uint64_t more)
{
    uint64_t total;
    if (!onxi_add_u64(count, more, &total) || !onxi_mul_u64(total, sizeof(double), &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "%llu and %llu numbers exceed any memory", (unsigned long long)count,
                                (unsigned long long)more);
    return ONX_OK;
}

/* ---- attributes ---- */

static onx_status tensor_numbers(const onx_prepare *p, const char *name, const onx_tensor *t, onxi_ml_numbers *out)
{
    uint64_t count;
    if (!onx_tensor_count(t, &count) || !onx_dtype_bits(t->data_type))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is no tensor of numbers", name);
    onx_str bytes; /* the tensor must have as many elements as its dims say before memory is allocated for them */
    ONX_TRY(onx_tensor_bytes(p->doc, t, &bytes));
    double *made = ONXI_ARRAY(p->arena, double, count + 1);
    if (!made)
        return ONX_E_MEMORY;
    if (count)
        ONX_TRY(onx_tensor_get_f64(p->doc, t, 0, count, made));
    *out = (onxi_ml_numbers){ .at = made, .count = count, .dtype = t->data_type };
    return ONX_OK;
}

onx_status onxi_ml_numbers_of(const onx_prepare *p, const char *name, onxi_ml_numbers *out)
{
    const char *const names[] = { name, onxi_arena_printf(p->arena, "%s_as_tensor", name).ptr };
    *out = (onxi_ml_numbers){ 0 };
    for (int i = 0; i < 2; i++) {
        const onxi_attr_value *v = names[i] ? onxi_attrs_find(p->attrs, names[i]) : NULL;
        if (v && v->type == ONX_ATTR_TENSOR)
            return tensor_numbers(p, names[i], v->t, out);
        if (!v || v->type != ONX_ATTR_FLOATS || !v->count)
            continue;
        const float *floats = v->list;
        const uint32_t count = v->count;
        double *made = ONXI_ARRAY(p->arena, double, count + 1u);
        if (!made)
            return ONX_E_MEMORY;
        onxi_convert(ONX_DOUBLE, made, ONX_FLOAT, floats, 0, count, true);
        *out = (onxi_ml_numbers){ .at = made, .count = count, .dtype = ONX_FLOAT };
        return ONX_OK;
    }
    return ONX_OK;
}

const onx_bytes *onxi_ml_texts_of(const onx_prepare *p, const char *name, uint32_t *count)
{
    return onx_prepare_strings(p, name, count);
}

onx_status onxi_ml_labels_of(const onx_prepare *p, const char *ints, onxi_ml_labels *out)
{
    uint32_t int_count = 0, text_count = 0;
    *out = (onxi_ml_labels){ 0 };
    out->ints = onx_prepare_ints(p, ints, &int_count);
    out->texts = onxi_ml_texts_of(p, "classlabels_strings", &text_count);
    if (int_count && text_count)
        return onx_prepare_fail(p, ONX_E_INVALID, "attributes %s and classlabels_strings exclude each other", ints);
    if (!text_count)
        out->texts = NULL;
    if (!int_count)
        out->ints = NULL;
    out->count = int_count + text_count;
    return ONX_OK;
}

onx_status onxi_ml_classes(onx_prepare *p, const onxi_ml_labels *labels, uint64_t rows, uint64_t scores)
{
    const int64_t dims[] = { (int64_t)rows, (int64_t)scores };
    ONX_TRY(onx_prepare_output(p, 0, labels->texts ? ONX_STRING : ONX_INT64, 1, dims));
    return onx_prepare_output(p, 1, ONX_FLOAT, 2, dims);
}

void onxi_ml_label(const onxi_ml_labels *labels, onx_value *y, uint64_t row, uint64_t index, int64_t fallback)
{
    if (!y)
        return;
    if (y->dtype == ONX_STRING) {
        onx_str text = onx_str_of(fallback < 0 ? "" : fallback ? "1" : "0");
        ((onx_str *)y->data)[row] = index < labels->count ? onx_view(labels->texts[index]) : text;
        return;
    }
    int64_t number = fallback < 0 ? 0 : fallback;
    if (index < labels->count)
        number = labels->ints[index];
    ((int64_t *)y->data)[row] = number;
}

/* ---- categories ---- */

uint32_t onxi_ml_find_text(const onxi_ml_index *index, onx_str key)
{
    uint32_t hash = onxi_table_hash(&index->table, key);
    ONXI_TABLE_EACH (&index->table, hash, i)
        if (onx_str_equal(index->texts[i], key))
            return i;
    return ONXI_ML_NOWHERE;
}

uint32_t onxi_ml_find_word(const onxi_ml_index *index, uint64_t key)
{
    if (index->places)
        return key - index->least < index->span ? index->places[key - index->least] : ONXI_ML_NOWHERE;
    uint32_t hash = onxi_table_hash_word(&index->table, key);
    ONXI_TABLE_EACH (&index->table, hash, i)
        if (index->words[i] == key)
            return i;
    return ONXI_ML_NOWHERE;
}

onx_status onxi_ml_index_texts(const onx_prepare *p, const onx_bytes *keys, uint32_t count, bool last,
                               onxi_ml_index *out)
{
    onx_str *texts = ONXI_ARRAY(p->arena, onx_str, count + 1u);
    *out = (onxi_ml_index){ .texts = texts, .table = onxi_table_in_arena(p->arena) };
    if (!texts || !onxi_table_reserve(&out->table, count))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        texts[i] = onx_view(keys[i]);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = last ? count - 1 - n : n; /* the first one is kept */
        if (onxi_ml_find_text(out, texts[i]) == ONXI_ML_NOWHERE &&
            !onxi_table_add(&out->table, onxi_table_hash(&out->table, texts[i]), i))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Integers that are close together, such as category ids, need no hash table. */
static onx_status place_words(const onx_prepare *p, const uint64_t *keys, uint32_t count, bool last, onxi_ml_index *out)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        least = (int64_t)keys[i] < least ? (int64_t)keys[i] : least;
        most = (int64_t)keys[i] > most ? (int64_t)keys[i] : most;
    }
    const uint64_t span = (uint64_t)most - (uint64_t)least + 1;
    if (!count || !span || span > 4 * (uint64_t)count + 64)
        return ONX_OK;
    uint32_t *places = ONXI_ARRAY(p->arena, uint32_t, span);
    if (!places)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < span; i++)
        places[i] = ONXI_ML_NOWHERE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *place = &places[keys[i] - (uint64_t)least];
        *place = last || *place == ONXI_ML_NOWHERE ? i : *place;
    }
    out->places = places;
    out->least = (uint64_t)least;
    out->span = span;
    return ONX_OK;
}

onx_status onxi_ml_index_words(const onx_prepare *p, const uint64_t *keys, uint32_t count, bool last,
                               onxi_ml_index *out)
{
    *out = (onxi_ml_index){ .words = keys, .table = onxi_table_in_arena(p->arena) };
    ONX_TRY(place_words(p, keys, count, last, out));
    if (out->places)
        return ONX_OK;
    if (!onxi_table_reserve(&out->table, count))
        return ONX_E_MEMORY;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = last ? count - 1 - n : n;
        if (onxi_ml_find_word(out, keys[i]) == ONXI_ML_NOWHERE &&
            !onxi_table_add(&out->table, onxi_table_hash_word(&out->table, keys[i]), i))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* ---- scores ---- */

#define SUM_OF(name, TERM)                                                                                             \
    double name(const double *a, const double *b, uint64_t n)                                                          \
    {                                                                                                                  \
        enum { WAYS = 8 };                                                                                             \
        double sums[WAYS] = { 0 }, sum = 0;                                                                            \
        for (; n >= WAYS; n -= WAYS, a += WAYS, b += WAYS)                                                             \
            for (int i = 0; i < WAYS; i++)                                                                             \
                sums[i] += TERM;                                                                                       \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            sum += TERM;                                                                                               \
        for (int i = 0; i < WAYS / 2; i++)                                                                             \
            sums[i] += sums[i + WAYS / 2];                                                                             \
        return sum + ((sums[0] + sums[2]) + (sums[1] + sums[3]));                                                      \
    }
SUM_OF(onxi_ml_product, a[i] * b[i])
SUM_OF(onxi_ml_distance, (a[i] - b[i]) * (a[i] - b[i]))

onx_status onxi_ml_transform_of(const onx_prepare *p, onxi_ml_transform *out)
{
    static const char *const names[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    onx_str name = onx_prepare_text(p, "post_transform");
    for (int i = 0; i < ONXI_ML_TRANSFORM_COUNT; i++)
        if (onx_str_is(name, names[i])) {
            *out = (onxi_ml_transform)i;
            return ONX_OK;
        }
    return onx_prepare_fail(p, ONX_E_INVALID, "post_transform is \"%.*s\"", ONX_ARG(name));
}

double onxi_ml_logistic(double x)
{
    double v = 1 / (1 + exp(-fabs(x)));
    return x < 0 ? 1 - v : v;
}

/* The quantile of the normal distribution by Winitzki's approximation of the inverse error function, as other
 * runtimes do; the exact one differs in the third digit. */
static double probit(double p)
{
    const double a = 0.147, pi = 3.14159265358979323846;
    double x = 2 * p - 1, rest = (1 - x) * (1 + x);
    if (rest == 0)
        return 0;
    double l = log(rest), v = 2 / (pi * a) + 0.5 * l;
    double y = sqrt(-v + sqrt(v * v - l / a));
    return 1.41421356 * (x < 0 ? -y : y);
}

/* Scores of (nearly) zero are no evidence and keep no part of the sum. */
static void softmax(double *scores, uint64_t count, bool zero)
{
    double most = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < count; i++)
        most = scores[i] > most || isnan(scores[i]) ? scores[i] : most;
    for (uint64_t i = 0; i < count; i++) {
        bool none = zero && scores[i] <= 1e-7 && scores[i] >= -1e-7;
        scores[i] = none ? scores[i] * exp(-most) : exp(scores[i] - most);
        sum += scores[i];
    }
    for (uint64_t i = 0; i < count; i++)
        scores[i] = zero && sum == 0 ? 0.5 : scores[i] / sum;
}

void onxi_ml_finish(onxi_ml_transform transform, double *scores, uint64_t count)
{
    switch (transform) {
    case ONXI_ML_SOFTMAX:
    case ONXI_ML_SOFTMAX_ZERO:
        softmax(scores, count, transform == ONXI_ML_SOFTMAX_ZERO);
        break;
    case ONXI_ML_LOGISTIC:
        for (uint64_t i = 0; i < count; i++)
            scores[i] = onxi_ml_logistic(scores[i]);
        break;
    case ONXI_ML_PROBIT:
        for (uint64_t i = 0; i < count; i++)
            scores[i] = probit(scores[i]);
        break;
    default:
        break;
    }
}

uint64_t onxi_ml_argmax(const double *scores, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++)
        if (scores[i] > scores[best] || (isnan(scores[i]) && !isnan(scores[best])))
            best = i;
    return best;
}
