/* map.c - operators on maps from categories to values: DictVectorizer, CastMap, ZipMap. */
#include "kernel/core/ml.h"
#include "kernel/core/sort.h"

#include <math.h>

/* ---- reading maps ---- */

static onx_status want_map(onx_work *work, const onx_value *x)
{
    if (x->kind != ONX_VALUE_MAP)
        return onx_work_fail(work, ONX_E_INVALID, "the input is not a map");
    for (uint64_t i = 0; i < x->count; i++) {
        const onx_value *v = x->items[i];
        if (v->kind != ONX_VALUE_TENSOR || v->count != 1 || v->dtype != x->items[0]->dtype)
            return onx_work_fail(work, ONX_E_INVALID, "value %llu of the map is not a single element of the same type",
                                 (unsigned long long)i);
    }
    return ONX_OK;
}

/* ---- DictVectorizer ---- */

typedef struct dict_params {
    onxi_ml_index index;
    uint32_t count;
    int key;
} dict_params;

static onx_status dict_prepare(onx_prepare *p)
{
    dict_params *q = ONXI_NEW(p->arena, dict_params);
    uint32_t ints, texts;
    const int64_t *words = onx_prepare_ints(p, "int64_vocabulary", &ints);
    const onx_bytes *names = onxi_ml_texts_of(p, "string_vocabulary", &texts);
    if (!q)
        return ONX_E_MEMORY;
    if (!ints == !texts)
        return onx_prepare_fail(p, ONX_E_INVALID, "one of int64_vocabulary and string_vocabulary is expected");
    q->count = ints + texts;
    q->key = texts ? ONX_STRING : ONX_INT64;
    p->params = q;
    return texts ? onxi_ml_index_texts(p, names, texts, true, &q->index)
                 : onxi_ml_index_words(p, (const uint64_t *)(const void *)words, ints, true, &q->index);
}

/* Keys that are not in the vocabulary are ignored. */
static onx_status dict_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const dict_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    ONX_TRY(want_map(work, x));
    int dtype = x->count ? x->items[0]->dtype : ONX_FLOAT;
    const uint32_t allowed =
        ONX_DTYPE_BIT(ONX_INT64) | ONX_DTYPE_BIT(ONX_FLOAT) | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_STRING);
    if (x->dtype != q->key || !(allowed & ONX_DTYPE_BIT(dtype)))
        return onx_work_fail(work, ONX_E_INVALID, "a map from %s to %s does not suit a vocabulary of %s",
                             onx_dtype_name(x->dtype), onx_dtype_name(dtype), onx_dtype_name(q->key));
    const int64_t dims[] = { 1, q->count };
    ONX_TRY(onxi_value_size(y, dtype, 2, dims));
    uint32_t width = onxi_element_size(dtype);
    memset(y->data, 0, (size_t)q->count * width);
    for (uint64_t i = 0; i < x->count; i++) {
        uint32_t at = q->key == ONX_STRING ? onxi_ml_find_text(&q->index, ((const onx_str *)x->data)[i])
                                           : onxi_ml_find_word(&q->index, ((const uint64_t *)x->data)[i]);
        if (at != ONXI_ML_NOWHERE)
            memcpy((char *)y->data + (uint64_t)at * width, x->items[i]->data, width);
    }
    return ONX_OK;
}

/* ---- CastMap ---- */

typedef struct cast_params {
    onx_dtype to;
    bool dense;
    int64_t length; /* length of a sparse output */
} cast_params;

static onx_status cast_prepare(onx_prepare *p)
{
    static const struct {
        const char *name;
        onx_dtype dtype;
    } types[] = { { "TO_FLOAT", ONX_FLOAT }, { "TO_INT64", ONX_INT64 }, { "TO_STRING", ONX_STRING } };
    cast_params *q = ONXI_NEW(p->arena, cast_params);
    onx_str to = onx_prepare_text(p, "cast_to"), form = onx_prepare_text(p, "map_form");
    if (!q)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (onx_str_is(to, types[i].name))
            q->to = types[i].dtype;
    q->dense = onx_str_is(form, "DENSE");
    q->length = onx_prepare_int(p, "max_map");
    if (!q->to || (!q->dense && !onx_str_is(form, "SPARSE")))
        return onx_prepare_fail(p, ONX_E_INVALID, "cast_to is \"%.*s\" and map_form \"%.*s\"", ONX_ARG(to),
                                ONX_ARG(form));
    if (!q->dense && q->length < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "max_map is %lld", (long long)q->length);
    p->params = q;
    return ONX_OK;
}

static onx_status cast_to_text(onx_work *work, const onx_value *from, onx_str *to)
{
    char buf[32];
    if (from->dtype == ONX_STRING) {
        *to = *(const onx_str *)from->data;
        return ONX_OK;
    }
    size_t len = onxi_print_f32(buf, *(const float *)from->data);
    char *copy = onx_arena_alloc(work->text, len);
    if (!copy)
        return ONX_E_MEMORY;
    memcpy(copy, buf, len);
    *to = onx_str_make(copy, len);
    return ONX_OK;
}

static onx_status cast_item(onx_work *work, const onx_value *from, onx_value *y, uint64_t at)
{
    if (y->dtype == ONX_STRING)
        return cast_to_text(work, from, &((onx_str *)y->data)[at]);
    double number;
    bool overflow;
    if (from->dtype == ONX_STRING) {
        onx_str text = *(const onx_str *)from->data;
        if (!onxi_parse_f64(text, &number, &overflow))
            return onx_work_fail(work, ONX_E_INVALID, "\"%.*s\" is no number", ONX_ARG(text));
    } else {
        number = (double)*(const float *)from->data;
    }
    onxi_convert((onx_dtype)y->dtype, (char *)y->data + at * (onx_dtype_bits(y->dtype) / 8), ONX_DOUBLE, &number, 0, 1,
                 true);
    return ONX_OK;
}

typedef struct place {
    int64_t key;
    uint64_t item;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static onx_status cast_sorted(onx_work *work, const cast_params *q, const place *places, onxi_pace *pace)
{
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    const int64_t dims[] = { 1, q->dense ? (int64_t)x->count : q->length };
    ONX_TRY(onxi_value_size(y, (int)q->to, 2, dims));
    memset(y->data, 0, y->size);
    for (uint64_t i = 0; i < x->count && !onxi_pace_stops(pace, 16); i++) {
        int64_t key = places[i].key;
        if (i && key == places[i - 1].key)
            return onx_work_fail(work, ONX_E_INVALID, "key %lld is in the map twice", (long long)key);
        if (!q->dense && (key < 0 || key >= q->length))
            return onx_work_fail(work, ONX_E_INVALID, "key %lld is outside of max_map %lld", (long long)key,
                                 (long long)q->length);
        ONX_TRY(cast_item(work, x->items[places[i].item], y, q->dense ? i : (uint64_t)key));
    }
    return ONX_OK;
}

static onx_status cast_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    ONX_TRY(want_map(work, x));
    if (x->dtype != ONX_INT64 || (x->count && x->items[0]->dtype != ONX_FLOAT && x->items[0]->dtype != ONX_STRING))
        return onx_work_fail(work, ONX_E_INVALID, "the map has keys of %s, expected int64 for float or string",
                             onx_dtype_name(x->dtype));
    onx_ctx *cx = work->outputs[0]->cx;
    const uint64_t size = 2 * (x->count + 1) * sizeof(place);
    onxi_pace pace = { .work = work };
    place *places = onxi_resize(cx, NULL, 0, size);
    if (!places)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < x->count; i++)
        places[i] = (place){ ((const int64_t *)x->data)[i], i };
    onx_status status = ONX_E_CANCELLED;
    if (onxi_sort(&pace, places, places + x->count, x->count, sizeof *places, compare_places))
        status = cast_sorted(work, work->params, places, &pace);
    onxi_release(cx, places, size);
    return status;
}

/* ---- ZipMap ---- */

typedef struct zip_params {
    onxi_ml_batch batch;
    onxi_ml_labels labels;
} zip_params;

static onx_status zip_prepare(onx_prepare *p)
{
    zip_params *q = ONXI_NEW(p->arena, zip_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(onxi_ml_labels_of(p, "classlabels_int64s", &q->labels));
    if (p->inputs[0]->dtype != ONX_FLOAT || !q->labels.count || q->labels.count != q->batch.columns)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %u keys for %llu columns of %s", q->labels.count,
                                (unsigned long long)q->batch.columns, onx_dtype_name(p->inputs[0]->dtype));
    p->params = q;
    return ONX_OK;
}

static onx_status zip_row(const onxi_ml_labels *labels, const float *scores, onx_value *map, onxi_pace *pace)
{
    ONX_TRY(onx_value_reset_list(map, ONX_VALUE_MAP, labels->texts ? ONX_STRING : ONX_INT64));
    for (uint32_t i = 0; i < labels->count; i++) {
        onx_value *item;
        if (onxi_pace_stops(pace, 256))
            return ONX_E_CANCELLED;
        ONX_TRY(onx_value_new_tensor(map->cx, ONX_FLOAT, 0, NULL, &item));
        *(float *)item->data = scores[i];
        onx_status status = onx_value_insert(map, i, item);
        onx_value_free(item);
        ONX_TRY(status);
    }
    for (uint32_t i = 0; i < labels->count && !labels->texts; i++)
        ((int64_t *)map->data)[i] = labels->ints[i];
    for (uint32_t i = 0; i < labels->count && labels->texts; i++) /* still in the model; copied at the end */
        ((onx_str *)map->data)[i] = onx_view(labels->texts[i]);
    return onxi_value_own_texts(map);
}

static onx_status zip_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    onx_value *y = work->outputs[0];
    const zip_params *q = work->params;
    uint64_t limit = onx_ctx_limits(y->cx).memory;
    if (work->inputs[0]->count > limit / (sizeof(onx_value) + sizeof(onx_str))) /* a map is larger than its scores */
        return onx_work_fail(work, ONX_E_LIMIT, "maps of %llu values exceed the memory limit of %llu bytes",
                             (unsigned long long)work->inputs[0]->count, (unsigned long long)limit);
    ONX_TRY(onx_value_reset_list(y, ONX_VALUE_SEQUENCE, ONX_UNDEFINED));
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0; row < q->batch.rows; row++) {
        onx_value *map;
        ONX_TRY(onx_value_new(y->cx, &map));
        onx_status status =
            zip_row(&q->labels, (const float *)work->inputs[0]->data + row * q->batch.columns, map, &pace);
        if (status == ONX_OK)
            status = onx_value_insert(y, row, map);
        onx_value_free(map);
        ONX_TRY(status);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_ml_map[] = {
    ONXI_ML_ROW("DictVectorizer", 1, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = dict_prepare, .run = dict_run),
    ONXI_ML_ROW("CastMap", 1, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = cast_prepare, .run = cast_run),
    ONXI_ML_ROW("ZipMap", 1, .flags = ONX_KERNEL_SIZES_OUTPUT, .types = zip_prepare, .prepare = zip_prepare,
                .run = zip_run),
    { 0 }
};
