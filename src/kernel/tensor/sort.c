/* sort.c - operators that put elements in order: TopK and Unique. */
#include "kernel/kernel.h"

/* ---- keys: unsigned numbers in the order of the elements ---- */

/* Of a float by its bits: zeros are one, NaN is one and the greatest. */
static inline uint64_t float_key(uint64_t bits, uint64_t sign, uint64_t infinity)
{
    uint64_t size = bits & (sign - 1);
    if (size > infinity)
        return UINT64_MAX;
    return bits & sign ? sign - size : sign + size;
}

#define SIGN_64 UINT64_C(0x8000000000000000)

/* Half an element of a complex type is a number by itself: `i` counts those. */
static inline uint64_t key_of(int dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case ONX_FLOAT:
    case ONX_COMPLEX64:
        return float_key(((const uint32_t *)data)[i], UINT64_C(0x80000000), UINT64_C(0x7f800000));
    case ONX_DOUBLE:
    case ONX_COMPLEX128:
        return float_key(((const uint64_t *)data)[i], SIGN_64, UINT64_C(0x7ff0000000000000));
    case ONX_FLOAT16:
        return float_key(((const uint16_t *)data)[i], 0x8000, 0x7c00);
    case ONX_BFLOAT16:
        return float_key(((const uint16_t *)data)[i], 0x8000, 0x7f80);
    case ONX_INT8:
        return (uint64_t)((const int8_t *)data)[i] ^ SIGN_64;
    case ONX_INT16:
        return (uint64_t)((const int16_t *)data)[i] ^ SIGN_64;
    case ONX_INT32:
        return (uint64_t)((const int32_t *)data)[i] ^ SIGN_64;
    case ONX_INT64:
        return (uint64_t)((const int64_t *)data)[i] ^ SIGN_64;
    case ONX_UINT16:
        return ((const uint16_t *)data)[i];
    case ONX_UINT32:
        return ((const uint32_t *)data)[i];
    case ONX_UINT64:
        return ((const uint64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* ---- TopK ---- */

typedef struct candidate {
    uint64_t key;
    int64_t index;
} candidate;

static inline bool is_after(const candidate *a, const candidate *b)
{
    return a->key != b->key ? a->key > b->key : a->index > b->index;
}

/* The heap has the last candidate on top. */
static void sift_down(candidate *heap, uint64_t count, uint64_t at)
{
    candidate moving = heap[at];
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && is_after(&heap[child + 1], &heap[child]))
            child++;
        if (!is_after(&heap[child], &moving))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

typedef struct topk_params {
    uint32_t axis;
    int64_t length, k;
    uint64_t inner;
    bool largest;
} topk_params;

static onx_status topk_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const onx_value *y = p->outputs[0] ? p->outputs[0] : p->output_count > 1 ? p->outputs[1] : NULL;
    topk_params *q = ONXI_NEW(p->arena, topk_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &q->axis));
    q->largest = p->since < 11 || onx_prepare_int(p, "largest") != 0;
    q->length = x->dims[q->axis];
    q->k = y && y->rank == x->rank ? y->dims[q->axis] : 0;
    if (q->k > q->length)
        return onx_prepare_fail(p, ONX_E_INVALID, "k is %lld, the dimension %lld", (long long)q->k,
                                (long long)q->length);
    q->inner = onxi_product(x->dims, q->axis + 1, x->rank);
    p->params = q;
    p->rows = y && y->count ? y->count / (uint64_t)q->k : 0;
    p->grain = q->length ? 16384 / (uint64_t)q->length + 1 : 1;
    if (!onxi_mul_u64((uint64_t)q->k, sizeof(candidate), &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "k is %lld", (long long)q->k);
    return ONX_OK;
}

/* Whether x cannot be among the first: `limit` is the last of those that are. NaN, which needs a closer look, can. */
static inline bool is_worse(const topk_params *q, float x, float limit)
{
    return q->largest ? x <= limit : x >= limit;
}

/* Whether none of the floats that follow can be. */
enum { GLANCE = 16 };
static inline bool all_worse(const topk_params *q, const float *x, float limit)
{
    int32_t all = 1;
    if (q->largest)
        for (int i = 0; i < GLANCE; i++)
            all &= x[i] <= limit;
    else
        for (int i = 0; i < GLANCE; i++)
            all &= x[i] >= limit;
    return all;
}

/* Element i, which comes after those that were considered before. */
static inline void consider(const topk_params *q, const onx_value *x, uint64_t base, uint64_t i, candidate *heap)
{
    const uint64_t k = (uint64_t)q->k;
    const candidate c = { key_of(x->dtype, x->data, base + i * q->inner) ^ (q->largest ? UINT64_MAX : 0), (int64_t)i };
    if (i < k) {
        heap[i] = c;
        for (uint64_t at = i + 1 == k ? k / 2 : 0; at-- > 0;)
            sift_down(heap, k, at);
    } else if (is_after(&heap[0], &c)) {
        heap[0] = c;
        sift_down(heap, k, 0);
    }
}

/* The first k in order, of elements that are `inner` apart. */
static void choose(const topk_params *q, const onx_value *x, uint64_t base, candidate *heap)
{
    const uint64_t k = (uint64_t)q->k, length = (uint64_t)q->length;
    const float *line = x->dtype == ONX_FLOAT && q->inner == 1 ? (const float *)x->data + base : NULL;
    uint64_t i = 0;
    for (; i < length && (!line || i < k); i++)
        consider(q, x, base, i, heap);
    float limit = i < length ? line[heap[0].index] : 0;
    for (uint64_t end; i < length; i = end) {
        end = length - i < GLANCE ? length : i + GLANCE;
        if (end - i == GLANCE && all_worse(q, line + i, limit))
            continue;
        for (uint64_t at = i; at < end; at++) {
            if (is_worse(q, line[at], limit))
                continue;
            consider(q, x, base, at, heap);
            limit = line[heap[0].index];
        }
    }
    for (uint64_t left = k; left > 1; left--) {
        candidate last = heap[0];
        heap[0] = heap[left - 1];
        heap[left - 1] = last;
        sift_down(heap, left - 1, 0);
    }
}

static onx_status topk_run(onx_work *work, uint64_t first, uint64_t last)
{
    const topk_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0], *index = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    candidate *heap = work->thread_workspace;
    uint32_t size = onxi_element_size(x->dtype);
    for (uint64_t row = first; row < last; row++) {
        uint64_t outer = row / q->inner, column = row % q->inner;
        uint64_t from = outer * (uint64_t)q->length * q->inner + column,
                 to = outer * (uint64_t)q->k * q->inner + column;
        choose(q, x, from, heap);
        for (int64_t i = 0; i < q->k; i++, to += q->inner) {
            if (y)
                memcpy((char *)y->data + to * size,
                       (const char *)x->data + (from + (uint64_t)heap[i].index * q->inner) * size, size);
            if (index)
                ((int64_t *)index->data)[to] = heap[i].index;
        }
    }
    return ONX_OK;
}

/* ---- Unique ---- */

/* Items are elements, or what an index along the axis stands for. */
typedef struct unique_params {
    uint64_t outer, count, inner;
    uint32_t axis;
    bool flat, sorted;
} unique_params;

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
    /* the order, the like of it for merging, and which of the unique items each one is */
    if (!onxi_mul_u64(q->count, 3 * sizeof(uint64_t), &p->workspace))
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

static int compare_items(const unique_params *q, const onx_value *x, uint64_t a, uint64_t b)
{
    for (uint64_t o = 0; o < q->outer; o++)
        for (uint64_t i = 0; i < q->inner; i++) {
            uint64_t base = o * q->count * q->inner + i;
            int c = compare_elements(x, base + a * q->inner, base + b * q->inner);
            if (c)
                return c;
        }
    return 0;
}

/* Merges neighbouring runs of growing length; items that are equal stay in order. */
static void sort_items(const unique_params *q, const onx_value *x, uint64_t *order, uint64_t *other)
{
    for (uint64_t i = 0; i < q->count; i++)
        order[i] = i;
    for (uint64_t run = 1; x->count && run < q->count; run *= 2)
        for (uint64_t start = 0; start < q->count && q->count - start > run; start += 2 * run) {
            uint64_t end = q->count - start > 2 * run ? start + 2 * run : q->count;
            uint64_t a = 0, b = start + run, at = start;
            memcpy(other, order + start, run * sizeof *order);
            while (a < run && b < end)
                order[at++] = compare_items(q, x, other[a], order[b]) <= 0 ? other[a++] : order[b++];
            while (a < run)
                order[at++] = other[a++];
        }
}

/* Numbers the items by what they are equal to: `inverse`; the first item of each number goes to `order`. */
static uint64_t number_items(const unique_params *q, const onx_value *x, uint64_t *order, uint64_t *leader,
                             uint64_t *inverse)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < q->count; i++) {
        bool new = !i || compare_items(q, x, order[i - 1], order[i]) != 0;
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
    for (uint64_t o = 0; bytes && o < q->outer; o++)
        for (uint64_t i = 0; i < found; i++, to += bytes)
            memcpy(to, (const char *)x->data + (o * q->count + items[i]) * bytes, bytes);
    return ONX_OK;
}

static onx_status unique_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const unique_params *q = work->params;
    const onx_value *x = work->inputs[0];
    uint64_t *order = work->workspace, *inverse = NULL, found = 0;
    if (q->count) {
        uint64_t *other = order + q->count;
        inverse = other + q->count;
        sort_items(q, x, order, other);
        found = number_items(q, x, order, other, inverse);
    }
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

const onx_kernel onxi_kernels_sort[] = {
    { .op = "TopK", .since = 1, .dtypes = ONXI_NUMBERS, .prepare = topk_prepare, .run = topk_run },
    { .op = "Unique", .since = 11, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = unique_prepare, .run = unique_run },
    { 0 }
};
