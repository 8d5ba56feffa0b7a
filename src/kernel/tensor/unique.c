/* unique.c - Unique: sorts items to find equal ones; many numbers are sorted by radix sort of their keys. */
#include "kernel/tensor/keys.h"

/* Items are elements, or the slices at each index of the axis. */
typedef struct unique_params {
    uint64_t outer, count, inner;
    uint32_t axis;
    bool flat, sorted;
    bool by_keys; /* items are numbers, and many: radix sort of their keys */
} unique_params;

enum { KEYS_LEAST = 64 };

static onx_status unique_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    unique_params *q = ONXI_NEW(p->arena, unique_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_whole_bytes(p));
    *q = (unique_params){ .outer = 1, .count = x->count, .inner = 1, .flat = !onx_prepare_given(p, "axis") };
    if (!q->flat) {
        ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &q->axis));
        q->outer = onxi_product(x->dims, 0, q->axis);
        q->count = (uint64_t)x->dims[q->axis];
        q->inner = onxi_product(x->dims, q->axis + 1, x->rank);
    }
    q->sorted = onx_prepare_int(p, "sorted") != 0;
    p->params = q;
    q->by_keys = q->flat && q->count >= KEYS_LEAST && x->dtype != ONX_STRING && x->dtype != ONX_COMPLEX64 &&
                 x->dtype != ONX_COMPLEX128;
    /* Arrays: the order, its copy for merging, the first item equal to each item and, if used, keys. */
    if (!onxi_mul_u64(q->count, (q->by_keys ? 4 : 3) * sizeof(uint64_t), &p->workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many elements");
    return ONX_OK;
}

static int compare_elements(const onx_value *x, uint64_t a, uint64_t b)
{
    if (x->dtype == ONX_STRING) {
        onx_str s = ((const onx_str *)x->data)[a], t = ((const onx_str *)x->data)[b];
        size_t n = s.len < t.len ? s.len : t.len;
        int c = n ? memcmp(s.ptr, t.ptr, n) : 0;
        return c ? c : (s.len > t.len) - (s.len < t.len);
    }
    unsigned parts = x->dtype == ONX_COMPLEX64 || x->dtype == ONX_COMPLEX128 ? 2 : 1;
    for (unsigned i = 0; i < parts; i++) {
        uint64_t k = key_of(x->dtype, x->data, a * parts + i), l = key_of(x->dtype, x->data, b * parts + i);
        if (k != l)
            return k > l ? 1 : -1;
    }
    return 0;
}

static int compare_items(const unique_params *q, const onx_value *x, uint64_t a, uint64_t b, onxi_pace *pace)
{
    for (uint64_t o = 0; o < q->outer; o++)
        for (uint64_t i = 0; i < q->inner && !onxi_pace_stops(pace, 8); i++) {
            uint64_t base = o * q->count * q->inner + i;
            int c = compare_elements(x, base + a * q->inner, base + b * q->inner);
            if (c)
                return c;
        }
    return 0;
}

/* Merges adjacent sorted runs of growing length (stable merge sort). */
static void sort_items(const unique_params *q, const onx_value *x, uint64_t *order, uint64_t *other, onxi_pace *pace)
{
    for (uint64_t i = 0; i < q->count; i++)
        order[i] = i;
    for (uint64_t run = 1; x->count && run < q->count; run *= 2)
        for (uint64_t start = 0; start < q->count && q->count - start > run; start += 2 * run) {
            uint64_t end = q->count - start > 2 * run ? start + 2 * run : q->count;
            uint64_t a = 0, b = start + run, at = start;
            memcpy(other, order + start, run * sizeof *order);
            while (a < run && b < end)
                order[at++] = compare_items(q, x, other[a], order[b], pace) <= 0 ? other[a++] : order[b++];
            while (a < run)
                order[at++] = other[a++];
        }
}

/* One pass of the radix sort, stable: moves pairs of key and index by the digit at `shift`. */
static void sort_digit(const uint64_t *keys, const uint64_t *order, uint64_t count, unsigned shift, uint64_t *starts,
                       uint64_t *to_keys, uint64_t *to_order, onxi_pace *pace)
{
    for (uint64_t i = 0; i < count && !onxi_pace_stops(pace, 4); i++) {
        const uint64_t to = starts[keys[i] >> shift & 255]++;
        to_keys[to] = keys[i];
        to_order[to] = order[i];
    }
}

/* `keys` and `order` have two arrays of `count` entries each, used alternately; returns the index of the sorted
 * ones. */
static int sort_keys(const onx_value *x, uint64_t count, uint64_t *const keys[2], uint64_t *const order[2],
                     onxi_pace *pace)
{
    enum { DIGITS = 8, VALUES = 256 };
    uint64_t starts[DIGITS][VALUES] = { { 0 } };
    int at = 0;
    for (uint64_t i = 0; i < count && !onxi_pace_stops(pace, 16); i++) {
        const uint64_t key = key_of(x->dtype, x->data, i);
        keys[0][i] = key;
        order[0][i] = i;
        for (unsigned d = 0; d < DIGITS; d++)
            starts[d][key >> 8 * d & 255]++;
    }
    for (unsigned d = 0; d < DIGITS && !onxi_pace_stops(pace, ONXI_PACE); d++) {
        uint64_t before = 0;
        if (starts[d][keys[0][0] >> 8 * d & 255] == count) /* all keys have the same digit */
            continue;
        for (unsigned v = 0; v < VALUES; v++) {
            const uint64_t n = starts[d][v];
            starts[d][v] = before;
            before += n;
        }
        sort_digit(keys[at], order[at], count, 8 * d, starts[d], keys[!at], order[!at], pace);
        at = !at;
    }
    return at;
}

/* Numbers the distinct items: `inverse` gets the number of each item, `order` the first item of each number. `keys` is
 * NULL or has the keys in sorted order. */
static uint64_t number_items(const unique_params *q, const onx_value *x, uint64_t *order, const uint64_t *keys,
                             uint64_t *leader, uint64_t *inverse, onxi_pace *pace)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < q->count; i++) {
        bool new = !i || (keys ? keys[i - 1] != keys[i] : compare_items(q, x, order[i - 1], order[i], pace) != 0);
        leader[order[i]] = new ? order[i] : leader[order[i - 1]];
        inverse[order[i]] = new ? found++ : found - 1;
    }
    if (q->sorted) {
        for (uint64_t i = 0; i < q->count; i++)
            if (leader[i] == i)
                order[inverse[i]] = i;
        return found;
    }
    uint64_t seen = 0;
    for (uint64_t i = 0; i < q->count; i++) {
        inverse[i] = leader[i] == i ? seen : inverse[leader[i]];
        if (leader[i] == i)
            order[seen++] = i;
    }
    return found;
}

static onx_status make_list(onx_work *work, uint32_t output, uint64_t count, int64_t **out)
{
    const int64_t dims[1] = { (int64_t)count };
    onx_value *v = output < work->prepared->output_count ? work->outputs[output] : NULL;
    *out = NULL;
    if (!v)
        return ONX_OK;
    ONX_TRY(onxi_value_size(v, ONX_INT64, 1, dims));
    *out = v->data;
    return ONX_OK;
}

static onx_status copy_items(onx_work *work, const unique_params *q, const uint64_t *items, uint64_t found)
{
    const onx_value *x = work->inputs[0];
    int64_t dims[ONX_RANK_MAX] = { 0 };
    uint64_t bytes = q->inner * onxi_element_size(x->dtype);
    if (!q->flat)
        onxi_copy_dims(dims, x->dims, x->rank);
    dims[q->axis] = (int64_t)found;
    if (!work->outputs[0])
        return ONX_OK;
    ONX_TRY(onxi_value_size(work->outputs[0], x->dtype, q->flat ? 1 : x->rank, dims));
    char *to = work->outputs[0]->data;
    onxi_pace pace = { .work = work };
    for (uint64_t o = 0; bytes && o < q->outer; o++)
        for (uint64_t i = 0; i < found && !onxi_pace_stops(&pace, 4 + bytes / 8); i++, to += bytes)
            memcpy(to, (const char *)x->data + (o * q->count + items[i]) * bytes, bytes);
    return ONX_OK;
}

static onx_status unique_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const unique_params *q = work->params;
    const onx_value *x = work->inputs[0];
    uint64_t *order = work->workspace, *inverse = NULL, found = 0;
    onxi_pace pace = { .work = work };
    if (q->by_keys) {
        uint64_t *const orders[] = { order, order + q->count };
        uint64_t *const keys[] = { order + 2 * q->count, order + 3 * q->count };
        const int at = sort_keys(x, q->count, keys, orders, &pace);
        if (onxi_pace_stops(&pace, ONXI_PACE)) /* the keys may be incomplete */
            return ONX_OK;
        order = orders[at];
        inverse = keys[!at];
        found = number_items(q, x, order, keys[at], orders[!at], inverse, &pace);
    } else if (q->count) {
        uint64_t *other = order + q->count;
        inverse = other + q->count;
        sort_items(q, x, order, other, &pace);
        found = number_items(q, x, order, NULL, other, inverse, &pace);
    }
    if (onxi_pace_stops(&pace, ONXI_PACE))
        return ONX_OK;
    ONX_TRY(copy_items(work, q, order, found));
    int64_t *firsts, *inverses, *counts;
    ONX_TRY(make_list(work, 1, found, &firsts));
    ONX_TRY(make_list(work, 2, q->count, &inverses));
    ONX_TRY(make_list(work, 3, found, &counts));
    for (uint64_t i = 0; i < found; i++) {
        if (firsts)
            firsts[i] = (int64_t)order[i];
        if (counts)
            counts[i] = 0;
    }
    for (uint64_t i = 0; i < q->count; i++) {
        if (inverses)
            inverses[i] = (int64_t)inverse[i];
        if (counts)
            counts[inverse[i]]++;
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_unique[] = {
    { .op = "Unique", .since = 11, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = unique_prepare, .run = unique_run },
    { 0 }
};
