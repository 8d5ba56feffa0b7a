/* label.c - operators that look categories up in lists: LabelEncoder, CategoryMapper, OneHotEncoder. */
#include "kernel/core/ml.h"

#include <math.h>

#define GRAIN 4096u

typedef struct label_params {
    onxi_ml_index index;
    int key; /* element type of the keys */
    /* Floats that compare equal are the same key, and all NaN are one key; otherwise bits are compared. */
    bool alike;
    uint64_t count;     /* number of keys and of values */
    const void *values; /* in the output's type; strings as onx_str */
    uint64_t value[2];  /* default for inputs that are no key: an element, or an onx_str */
    bool needed;        /* OneHotEncoder: the input must be a key */
} label_params;

/* ---- keys ---- */

static uint64_t float_key(float x, bool alike)
{
    uint32_t bits;
    x = alike && isnan(x) ? NAN : alike && x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t double_key(double x, bool alike)
{
    uint64_t bits;
    x = alike && isnan(x) ? (double)NAN : alike && x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Element i of a numeric list or tensor as a word by which keys are compared. */
static uint64_t key_word(int dtype, const void *data, uint64_t i, bool alike)
{
    switch (dtype) {
    case ONX_FLOAT:
        return float_key(((const float *)data)[i], alike);
    case ONX_DOUBLE:
        return double_key(((const double *)data)[i], alike);
    case ONX_INT16:
        return (uint64_t)((const int16_t *)data)[i];
    case ONX_INT32:
        return (uint64_t)((const int32_t *)data)[i];
    default:
        return (uint64_t)((const int64_t *)data)[i];
    }
}

/* ---- lists of any type ---- */

typedef struct list {
    int dtype; /* ONX_UNDEFINED: the list is not given */
    uint64_t count;
    const void *data;       /* elements of a numeric list */
    const onx_bytes *texts; /* or strings */
} list;

static onx_status list_of_tensor(const onx_prepare *p, const onx_tensor *t, const char *name, list *out)
{
    const uint32_t known = ONXI_ML_NUMBERS | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_STRING);
    uint64_t count;
    onx_str bytes;
    if (!onx_tensor_count(t, &count) || t->data_type < 0 || t->data_type > 31 ||
        !(known & ONX_DTYPE_BIT((uint32_t)t->data_type)))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s holds %s", name,
                                onx_dtype_name(t->data_type) ? onx_dtype_name(t->data_type) : "nothing");
    *out = (list){ .dtype = t->data_type, .count = count };
    if (t->data_type == ONX_STRING) {
        out->texts = t->string_data;
        if (t->string_data_count != count)
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %u strings for %llu elements", name,
                                    t->string_data_count, (unsigned long long)count);
        return ONX_OK;
    }
    ONX_TRY(onx_tensor_bytes(p->doc, t, &bytes));
    void *copy = onx_arena_alloc(p->arena, bytes.len + 8); /* raw bytes may be unaligned */
    if (!copy)
        return ONX_E_MEMORY;
    if (bytes.len)
        memcpy(copy, bytes.ptr, bytes.len);
    out->data = copy;
    return ONX_OK;
}

/* Reads `what`_strings, _int64s, _floats or _tensor; at most one of them may be given. */
static onx_status list_of(const onx_prepare *p, const char *what, list *out)
{
    static const char *const kinds[] = { "strings", "int64s", "floats", "tensor" };
    uint32_t given = 0;
    *out = (list){ 0 };
    for (int i = 0; i < 4; i++) {
        onx_str name = onxi_arena_printf(p->arena, "%s_%s", what, kinds[i]);
        const onxi_attr_value *v = name.ptr ? onxi_attrs_find(p->attrs, name.ptr) : NULL;
        if (!v || !v->given)
            continue;
        given++;
        if (v->type == ONX_ATTR_TENSOR)
            ONX_TRY(list_of_tensor(p, v->t, name.ptr, out));
        else if (v->type == ONX_ATTR_STRINGS)
            *out = (list){ .dtype = ONX_STRING, .count = v->count, .texts = v->list };
        else
            *out = (list){ .dtype = i == 1 ? ONX_INT64 : ONX_FLOAT, .count = v->count, .data = v->list };
    }
    if (given > 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "%u attributes begin with %s_, expected one", given, what);
    return ONX_OK;
}

/* ---- params ---- */

static onx_status use_keys(const onx_prepare *p, label_params *q, const list *keys, bool last)
{
    const onx_value *x = p->inputs[0];
    if (keys->dtype != x->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is %s, the keys are %s", onx_dtype_name(x->dtype),
                                onx_dtype_name(keys->dtype) ? onx_dtype_name(keys->dtype) : "not there");
    if (keys->count >= UINT32_MAX / 2)
        return onx_prepare_fail(p, ONX_E_LIMIT, "%llu keys are too many", (unsigned long long)keys->count);
    q->key = keys->dtype;
    q->count = keys->count;
    if (keys->dtype == ONX_STRING)
        return onxi_ml_index_texts(p, keys->texts, (uint32_t)keys->count, last, &q->index);
    uint64_t *words = ONXI_ARRAY(p->arena, uint64_t, keys->count + 1);
    if (!words)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < keys->count; i++)
        words[i] = key_word(keys->dtype, keys->data, i, q->alike);
    return onxi_ml_index_words(p, words, (uint32_t)keys->count, last, &q->index);
}

static onx_status use_values(const onx_prepare *p, label_params *q, const list *values)
{
    const onx_value *y = p->outputs[0];
    if (values->count != q->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu keys and %llu values", (unsigned long long)q->count,
                                (unsigned long long)values->count);
    if (y->dtype != values->dtype || y->count != p->inputs[0]->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output is %s, the values are %s", onx_dtype_name(y->dtype),
                                onx_dtype_name(values->dtype) ? onx_dtype_name(values->dtype) : "not there");
    q->values = values->data;
    if (values->dtype != ONX_STRING)
        return ONX_OK;
    onx_str *texts = ONXI_ARRAY(p->arena, onx_str, values->count + 1);
    if (!texts)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < values->count; i++)
        texts[i] = onx_view(values->texts[i]);
    q->values = texts;
    return ONX_OK;
}

static void use_default(const onx_prepare *p, label_params *q)
{
    if (p->outputs[0]->dtype == ONX_STRING) {
        const onx_str text = onx_prepare_text(p, "default_string");
        memcpy(q->value, &text, sizeof text);
    } else if (p->outputs[0]->dtype == ONX_FLOAT) {
        const float number = onx_prepare_float(p, "default_float");
        memcpy(q->value, &number, sizeof number);
    } else {
        const int64_t whole = onx_prepare_int(p, "default_int64");
        memcpy(q->value, &whole, sizeof whole);
    }
}

/* If the values are a tensor, the default value is a tensor, too. */
static onx_status use_default_tensor(const onx_prepare *p, label_params *q)
{
    list given = { 0 };
    const onx_tensor *t = onx_prepare_tensor(p, "default_tensor");
    const int dtype = p->outputs[0]->dtype;
    if (t) {
        ONX_TRY(list_of_tensor(p, t, "default_tensor", &given));
        if (given.dtype != dtype || given.count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "default_tensor has %llu elements of %s, expected 1 of %s",
                                    (unsigned long long)given.count, onx_dtype_name(given.dtype),
                                    onx_dtype_name(dtype));
    }
    onx_str text = given.texts ? onx_view(given.texts[0]) : onx_str_of("_Unused");
    double fallback = dtype == ONX_FLOAT || dtype == ONX_DOUBLE ? -0.0 : -1;
    if (dtype == ONX_STRING)
        memcpy(q->value, &text, sizeof text);
    else if (given.data)
        memcpy(q->value, given.data, onx_dtype_bits(dtype) / 8);
    else
        onxi_convert((onx_dtype)dtype, q->value, ONX_DOUBLE, &fallback, 0, 1, true);
    return ONX_OK;
}

static onx_status new_params(onx_prepare *p, label_params **out)
{
    *out = ONXI_NEW(p->arena, label_params);
    p->params = *out;
    p->rows = p->inputs[0]->count;
    p->grain = GRAIN;
    return *out ? ONX_OK : ONX_E_MEMORY;
}

/* ---- LabelEncoder ---- */

static onx_status encoder_prepare(onx_prepare *p)
{
    label_params *q = NULL;
    list keys, values;
    ONX_TRY(new_params(p, &q));
    ONX_TRY(list_of(p, "keys", &keys));
    ONX_TRY(list_of(p, "values", &values));
    q->alike = p->since >= 4;
    ONX_TRY(use_keys(p, q, &keys, true));
    ONX_TRY(use_values(p, q, &values));
    if (onx_prepare_given(p, "values_tensor"))
        return use_default_tensor(p, q);
    use_default(p, q);
    return ONX_OK;
}

/* Maps strings to numbers or back, by two lists of the same length. */
static onx_status both_ways(onx_prepare *p, const list *texts, const list *numbers, bool last)
{
    label_params *q = NULL;
    ONX_TRY(new_params(p, &q));
    bool from_text = p->inputs[0]->dtype == ONX_STRING;
    ONX_TRY(use_keys(p, q, from_text ? texts : numbers, last));
    ONX_TRY(use_values(p, q, from_text ? numbers : texts));
    use_default(p, q);
    return ONX_OK;
}

static onx_status first_encoder_prepare(onx_prepare *p)
{
    list texts = { .dtype = ONX_STRING }, places = { .dtype = ONX_INT64 };
    uint32_t count;
    texts.texts = onxi_ml_texts_of(p, "classes_strings", &count);
    int64_t *made = ONXI_ARRAY(p->arena, int64_t, count + 1u);
    if (!made)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        made[i] = i;
    places.data = made;
    texts.count = places.count = count;
    return both_ways(p, &texts, &places, false);
}

/* ---- CategoryMapper ---- */

static onx_status mapper_prepare(onx_prepare *p)
{
    list texts = { .dtype = ONX_STRING }, numbers = { .dtype = ONX_INT64 };
    uint32_t count;
    texts.texts = onxi_ml_texts_of(p, "cats_strings", &count);
    texts.count = count;
    numbers.data = onx_prepare_ints(p, "cats_int64s", &count);
    numbers.count = count;
    return both_ways(p, &texts, &numbers, true);
}

/* ---- running ---- */

static uint32_t find(const label_params *q, const onx_value *x, uint64_t i)
{
    if (q->key == ONX_STRING)
        return onxi_ml_find_text(&q->index, ((const onx_str *)x->data)[i]);
    return onxi_ml_find_word(&q->index, key_word(q->key, x->data, i, q->alike));
}

static onx_status label_run(onx_work *work, uint64_t first, uint64_t last)
{
    enum { STRETCH = 256 };
    const label_params *q = work->params;
    const uint32_t width = onxi_element_size(work->outputs[0]->dtype);
    const char *values = q->values, *fallback = (const char *)q->value;
    uint32_t at[STRETCH];
    for (uint64_t done = first, n; done < last; done += n) {
        char *y = (char *)work->outputs[0]->data + done * width;
        n = last - done < STRETCH ? last - done : STRETCH;
        for (uint64_t i = 0; i < n; i++)
            at[i] = find(q, work->inputs[0], done + i);
        for (uint64_t i = 0; i < n; i++)
            onxi_copy_item(y + i * width, at[i] == ONXI_ML_NOWHERE ? fallback : values + at[i] * width, width);
    }
    return ONX_OK;
}

/* ---- OneHotEncoder ---- */

static onx_status hot_prepare(onx_prepare *p)
{
    label_params *q = NULL;
    list keys;
    ONX_TRY(new_params(p, &q));
    ONX_TRY(list_of(p, "cats", &keys));
    const onx_value *x = p->inputs[0];
    if ((x->dtype == ONX_STRING) != (keys.dtype == ONX_STRING) ||
        (x->dtype != ONX_STRING && !(ONXI_ML_NUMBERS & ONX_DTYPE_BIT(x->dtype))))
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is %s, the categories are %s", onx_dtype_name(x->dtype),
                                onx_dtype_name(keys.dtype) ? onx_dtype_name(keys.dtype) : "not there");
    if (keys.count >= UINT32_MAX / 2 || p->outputs[0]->count / (keys.count ? keys.count : 1) != x->count * !!keys.count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output does not have %llu places for each element",
                                (unsigned long long)keys.count);
    q->key = keys.dtype;
    q->count = keys.count;
    q->needed = onx_prepare_int(p, "zeros") == 0;
    p->grain = GRAIN / (keys.count + 1) + 1;
    if (keys.dtype == ONX_STRING)
        return onxi_ml_index_texts(p, keys.texts, (uint32_t)keys.count, true, &q->index);
    return onxi_ml_index_words(p, keys.data, (uint32_t)keys.count, true, &q->index);
}

/* Numbers are truncated towards zero. A number that does not fit an int64 is no category. */
static uint32_t find_whole(const label_params *q, const onx_value *x, uint64_t i)
{
    if (x->dtype == ONX_STRING || x->dtype == ONX_INT64)
        return find(q, x, i);
    double v = onxi_value_number(x, i);
    return v > -0x1p63 && v < 0x1p63 ? onxi_ml_find_word(&q->index, (uint64_t)(int64_t)v) : ONXI_ML_NOWHERE;
}

static onx_status one_hot_run(onx_work *work, uint64_t first, uint64_t last)
{
    const label_params *q = work->params;
    float *y = work->outputs[0]->data;
    memset(y + first * q->count, 0, (last - first) * q->count * sizeof *y);
    for (uint64_t i = first; i < last; i++) {
        uint32_t at = find_whole(q, work->inputs[0], i);
        if (at != ONXI_ML_NOWHERE)
            y[i * q->count + at] = 1;
        else if (q->needed)
            return onx_work_fail(work, ONX_E_INVALID, "element %llu is in no category", (unsigned long long)i);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_ml_label[] = {
    ONXI_ML_ROW("LabelEncoder", 1, .prepare = first_encoder_prepare, .run = label_run),
    ONXI_ML_ROW("LabelEncoder", 2, .prepare = encoder_prepare, .run = label_run),
    ONXI_ML_ROW("CategoryMapper", 1, .prepare = mapper_prepare, .run = label_run),
    ONXI_ML_ROW("OneHotEncoder", 1, .prepare = hot_prepare, .run = one_hot_run),
    { 0 }
};
