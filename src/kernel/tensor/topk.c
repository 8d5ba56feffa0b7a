/* topk.c - TopK: a heap if k is small; otherwise a radix sort of all elements that may be among the first k. Both keep
 * equal elements in the order of their indices. */
#include "kernel/core/topk.h"
#include "kernel/tensor/keys.h"

/* An element's key and index. Keys and indices of up to 32 bits are packed into one integer, which is faster to move
 * and to compare. */
typedef uint64_t brief;
typedef struct candidate {
    uint64_t key;
    int64_t index;
} candidate;

typedef struct topk_params {
    uint32_t axis;
    int64_t length, k;
    uint64_t inner;
    bool largest;
    bool sorts; /* sort the line instead of using a heap */
    bool is_brief;
    onxi_topk_few few;         /* vectorized functions for small k; both NULL: heap or sort */
    onxi_topk_abreast abreast; /* for several adjacent lines together */
} topk_params;

static bool fits_brief(const topk_params *q, int dtype)
{
    return onxi_element_size(dtype) <= 4 && (uint64_t)q->length <= UINT32_MAX;
}

/* A heap looks at most elements once and takes about log(k) steps for each element that enters it. Sorting takes some
 * passes over all elements and some fixed time. The thresholds were measured with float lines. For very long lines, the
 * memory needed stays proportional to k. */
static bool better_sorted(const topk_params *q)
{
    static const struct {
        int64_t length, share; /* up to this length: sort if k is greater than this many 256ths of it */
    } from[] = { { 32, 64 },   { 64, 208 },    { 128, 128 },   { 512, 43 },
                 { 4096, 16 }, { 1 << 14, 4 }, { 1 << 22, 2 }, { INT64_MAX, 64 } };
    size_t i = 0;
    while (q->length > from[i].length)
        i++;
    return q->k >= 4 && q->k > q->length / 256 * from[i].share + q->length % 256 * from[i].share / 256;
}

/* Whether a vectorized function of the row computes this. Lines abreast beat sorting, too. */
static bool takes(const onxi_topk_body *body, topk_params *q, int dtype)
{
    enum { LEAST = 4 /* adjacent lines */ };
    if (q->k < 1 || q->k > ONXI_TOPK_FEW)
        return false;
    if (q->inner >= LEAST && (fits_brief(q, dtype) || onxi_element_size(dtype) == 8)) {
        q->abreast = body->abreast;
        q->sorts = false;
    } else if (q->inner == 1 && !q->sorts && q->length >= ONXI_TOPK_LINE) {
        q->few = body->few;
    }
    return q->abreast || q->few;
}

onx_status onxi_topk_prepare(onx_prepare *p)
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
    q->sorts = better_sorted(q);
    if (p->kernel->body && !takes(p->kernel->body, q, x->dtype))
        return ONX_E_UNSUPPORTED;
    q->is_brief = q->sorts && fits_brief(q, x->dtype);
    p->params = q;
    p->rows = y && y->count ? y->count / (uint64_t)q->k : 0;
    p->grain = q->length ? 16384 / (uint64_t)q->length + 1 : 1;
    const uint64_t room = q->is_brief ? 2 * sizeof(brief) : q->sorts ? 2 * sizeof(candidate) : sizeof(candidate);
    if (q->abreast) {
        p->grain = p->grain < ONXI_TOPK_ABREAST ? ONXI_TOPK_ABREAST : p->grain;
        p->thread_workspace = (uint64_t)q->k * ONXI_TOPK_ABREAST * 3 * sizeof(uint64_t);
    } else if (!onxi_mul_u64((uint64_t)(q->sorts ? q->length : q->k), room, &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "k is %lld", (long long)q->k);
    return ONX_OK;
}

/* For each i below count, in parts between which it asks whether the run has to end; after that the rest is left out.
 */
enum { PART = 1 << 16 };
#define IN_PARTS(i, count, pace)                                                                                       \
    for (uint64_t part_ = 0, end_ = 0;                                                                                 \
         part_ < (count) && (end_ = (count)-part_ < PART ? (count) : part_ + PART) > 0 &&                              \
         !onxi_pace_stops(pace, 4 * (end_ - part_));                                                                   \
         part_ = end_)                                                                                                 \
        for (uint64_t i = part_; i < end_; i++)

/* ---- small k: a heap ---- */

static inline bool is_after(const candidate *a, const candidate *b)
{
    return a->key != b->key ? a->key > b->key : a->index > b->index;
}

/* Restores the heap order; the last candidate is on top. */
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

/* Is x certainly not among the first k? `limit` is the last of these so far. NaN gives false and is examined
 * further. */
static inline bool is_worse(const topk_params *q, float x, float limit)
{
    return q->largest ? x <= limit : x >= limit;
}

/* The same for all of the next GLANCE floats. */
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

/* Considers element i; its index is greater than those considered before. */
static inline void consider(const topk_params *q, const onx_value *x, uint64_t base, uint64_t i, candidate *heap,
                            onxi_pace *pace)
{
    const uint64_t k = (uint64_t)q->k;
    const candidate c = { key_of(x->dtype, x->data, base + i * q->inner) ^ (q->largest ? UINT64_MAX : 0), (int64_t)i };
    if (i < k) {
        heap[i] = c;
        for (uint64_t at = i + 1 == k ? k / 2 : 0; at-- > 0 && !onxi_pace_stops(pace, 32);)
            sift_down(heap, k, at);
    } else if (is_after(&heap[0], &c) && !onxi_pace_stops(pace, 64)) {
        heap[0] = c;
        sift_down(heap, k, 0);
    }
}

/* Sorts the heap in place. */
static void put_in_order(candidate *heap, uint64_t k, onxi_pace *pace)
{
    for (uint64_t left = k; left > 1 && !onxi_pace_stops(pace, 64); left--) {
        candidate last = heap[0];
        heap[0] = heap[left - 1];
        heap[left - 1] = last;
        sift_down(heap, left - 1, 0);
    }
}

/* Finds the first k in order among elements with stride `inner`. Incomplete if the run has to end. */
static void choose(const topk_params *q, const onx_value *x, uint64_t base, candidate *heap, onxi_pace *pace)
{
    const uint64_t k = (uint64_t)q->k, length = (uint64_t)q->length;
    const float *line = x->dtype == ONX_FLOAT && q->inner == 1 ? (const float *)x->data + base : NULL;
    uint64_t i = 0;
    for (; i < length && (!line || i < k) && !onxi_pace_stops(pace, 8); i++)
        consider(q, x, base, i, heap, pace);
    if (onxi_pace_stops(pace, 0)) /* the heap may be incomplete */
        return;
    float limit = i < length ? line[heap[0].index] : 0;
    for (uint64_t end; i < length && !onxi_pace_stops(pace, GLANCE); i = end) {
        end = length - i < GLANCE ? length : i + GLANCE;
        if (end - i == GLANCE && all_worse(q, line + i, limit))
            continue;
        for (uint64_t at = i; at < end; at++) {
            if (is_worse(q, line[at], limit))
                continue;
            consider(q, x, base, at, heap, pace);
            limit = line[heap[0].index];
        }
    }
    put_in_order(heap, k, pace);
}

/* ---- large k: radix sort ---- */

enum { DIGIT = 8, DIGITS = 1 << DIGIT, COARSE = 11, COARSE_DIGITS = 1 << COARSE, FEW = 48 };

/* Functions for entries of type T with keys of BYTES bytes; COUNT is a type that can hold the number of entries, KEY
 * gives the key of an entry, AFTER compares two entries.
 *
 * narrow_T: drops entries whose first key bits show that they are not among the first k; returns how many remain.
 *
 * sort_T: radix sort, from the least significant digit on; skips digits that all entries have in common. Each pass is
 * stable, so equal keys stay in the order of their indices. Returns the one of the two arrays that has the result.
 *
 * Both return at once if the run has to end, since incomplete counts are no indices. */
#define SORT(T, BYTES, COUNT, KEY, AFTER)                                                                              \
    static uint64_t narrow_##T(T *a, uint64_t count, uint64_t k, onxi_pace *pace)                                      \
    {                                                                                                                  \
        uint64_t sizes[COARSE_DIGITS] = { 0 }, sum = 0, limit = 0, kept = 0;                                           \
        IN_PARTS(i, count, pace)                                                                                       \
        sizes[KEY(a[i]) >> (BYTES * 8 - COARSE)]++;                                                                    \
        if (onxi_pace_stops(pace, 0))                                                                                  \
            return 0;                                                                                                  \
        while ((sum += sizes[limit]) < k)                                                                              \
            limit++;                                                                                                   \
        IN_PARTS(i, count, pace)                                                                                       \
        {                                                                                                              \
            const T entry = a[i];                                                                                      \
            a[kept] = entry;                                                                                           \
            kept += KEY(entry) >> (BYTES * 8 - COARSE) <= limit;                                                       \
        }                                                                                                              \
        return kept;                                                                                                   \
    }                                                                                                                  \
    static void insert_##T(T *a, uint64_t count)                                                                       \
    {                                                                                                                  \
        for (uint64_t i = 1; i < count; i++) {                                                                         \
            const T moving = a[i];                                                                                     \
            uint64_t at = i;                                                                                           \
            for (; at > 0 && AFTER(a[at - 1], moving); at--)                                                           \
                a[at] = a[at - 1];                                                                                     \
            a[at] = moving;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static T *sort_##T(T *a, T *b, uint64_t count, onxi_pace *pace)                                                    \
    {                                                                                                                  \
        COUNT starts[BYTES][DIGITS];                                                                                   \
        if (count <= FEW) {                                                                                            \
            insert_##T(a, count);                                                                                      \
            return a;                                                                                                  \
        }                                                                                                              \
        memset(starts, 0, sizeof starts);                                                                              \
        IN_PARTS(i, count, pace)                                                                                       \
        for (unsigned d = 0; d < BYTES; d++)                                                                           \
            starts[d][KEY(a[i]) >> d * DIGIT & (DIGITS - 1)]++;                                                        \
        for (unsigned d = 0; d < BYTES; d++) {                                                                         \
            COUNT *start = starts[d], sum = 0;                                                                         \
            if (onxi_pace_stops(pace, 0))                                                                              \
                return a;                                                                                              \
            if (start[KEY(a[0]) >> d * DIGIT & (DIGITS - 1)] == count)                                                 \
                continue;                                                                                              \
            for (unsigned i = 0; i < DIGITS; i++) {                                                                    \
                const COUNT size = start[i];                                                                           \
                start[i] = sum;                                                                                        \
                sum += size;                                                                                           \
            }                                                                                                          \
            IN_PARTS(i, count, pace)                                                                                   \
            b[start[KEY(a[i]) >> d * DIGIT & (DIGITS - 1)]++] = a[i];                                                  \
            T *const sorted = b;                                                                                       \
            b = a;                                                                                                     \
            a = sorted;                                                                                                \
        }                                                                                                              \
        return a;                                                                                                      \
    }
#define BRIEF_KEY(e)          ((e) >> 32)
#define BRIEF_AFTER(e, f)     ((e) > (f))
#define CANDIDATE_KEY(e)      ((e).key)
#define CANDIDATE_AFTER(e, f) is_after(&(e), &(f))
SORT(brief, 4, uint32_t, BRIEF_KEY, BRIEF_AFTER)
SORT(candidate, 8, uint64_t, CANDIDATE_KEY, CANDIDATE_AFTER)

/* Computes the keys of a line, inverted if the greatest come first. `dtype` is constant in each call, so the compiler
 * makes a loop per type. */
static inline void put_briefs(const topk_params *q, int dtype, const void *data, uint64_t base, brief *out,
                              onxi_pace *pace)
{
    const bool is_signed = dtype == ONX_INT8 || dtype == ONX_INT16 || dtype == ONX_INT32;
    const uint32_t flip = q->largest ? UINT32_MAX : 0, lift = is_signed ? UINT32_C(0x80000000) : 0;
    const unsigned shift = 32 - 8 * onxi_element_size(dtype);
    IN_PARTS(i, (uint64_t)q->length, pace)
    out[i] = (uint64_t)(((uint32_t)key_of(dtype, data, base + i * q->inner) << shift ^ lift) ^ flip) << 32 | i;
}

static void take_briefs(const topk_params *q, const onx_value *x, uint64_t base, brief *out, onxi_pace *pace)
{
#define TAKE(dtype)                                                                                                    \
    case dtype:                                                                                                        \
        put_briefs(q, dtype, x->data, base, out, pace);                                                                \
        break
    switch (x->dtype) {
        TAKE(ONX_FLOAT);
        TAKE(ONX_FLOAT16);
        TAKE(ONX_BFLOAT16);
        TAKE(ONX_INT8);
        TAKE(ONX_INT16);
        TAKE(ONX_INT32);
        TAKE(ONX_UINT16);
        TAKE(ONX_UINT32);
        TAKE(ONX_UINT8);
    default:
        put_briefs(q, x->dtype, x->data, base, out, pace);
    }
#undef TAKE
}

/* ---- output ---- */

typedef struct sink {
    char *values; /* NULL: this output is not wanted */
    const char *from;
    int64_t *indices; /* also NULL if not wanted */
    uint64_t step;
    uint32_t size;
} sink;

static inline void put(const sink *s, uint64_t place, uint64_t index)
{
    if (s->values)
        onxi_copy_item(s->values + place * s->step * s->size, s->from + index * s->step * s->size, s->size);
    if (s->indices)
        s->indices[place * s->step] = (int64_t)index;
}

static void sort_line(const topk_params *q, const onx_value *x, uint64_t base, void *room, const sink *s,
                      onxi_pace *pace)
{
    const uint64_t k = (uint64_t)q->k;
    uint64_t count = (uint64_t)q->length;
    const bool narrows = count >= COARSE_DIGITS && k < count / 2;
    if (q->is_brief) {
        brief *a = room, *b = a + count;
        take_briefs(q, x, base, a, pace);
        if (narrows)
            count = narrow_brief(a, count, k, pace);
        a = sort_brief(a, b, count, pace);
        if (onxi_pace_stops(pace, 0)) /* the list may be incomplete */
            return;
        IN_PARTS(i, k, pace)
        put(s, i, (uint32_t)a[i]);
        return;
    }
    candidate *a = room, *b = a + count;
    const uint64_t flip = q->largest ? UINT64_MAX : 0;
    IN_PARTS(i, count, pace)
    a[i] = (candidate){ key_of(x->dtype, x->data, base + i * q->inner) ^ flip, (int64_t)i };
    if (narrows)
        count = narrow_candidate(a, count, k, pace);
    a = sort_candidate(a, b, count, pace);
    if (onxi_pace_stops(pace, 0))
        return;
    IN_PARTS(i, k, pace)
    put(s, i, (uint64_t)a[i].index);
}

/* Gives the index of the first element of line `row`, and sets *s to the destination of its results. */
static uint64_t begin_line(const onx_work *work, uint64_t row, sink *s)
{
    const topk_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0], *index = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    const uint32_t size = onxi_element_size(x->dtype);
    const uint64_t outer = row / q->inner, column = row % q->inner;
    const uint64_t from = outer * (uint64_t)q->length * q->inner + column,
                   to = outer * (uint64_t)q->k * q->inner + column;
    *s = (sink){ .values = y ? (char *)y->data + to * size : NULL,
                 .from = (const char *)x->data + from * size,
                 .indices = index ? (int64_t *)index->data + to : NULL,
                 .step = q->inner,
                 .size = size };
    return from;
}

#define COPY_ROW(T)                                                                                                    \
    case sizeof(T):                                                                                                    \
        for (uint64_t c = 0; c < count; c++)                                                                           \
            ((T *)(void *)to)[c] = ((const T *)(const void *)s->from)[indices[c] * s->step + c];                       \
        break

/* Writes one element of each of `count` adjacent lines; `to` is the first of them. */
static void put_row(const sink *s, const uint64_t *indices, uint64_t count, char *to)
{
    switch (s->size) {
        COPY_ROW(uint8_t);
        COPY_ROW(uint16_t);
        COPY_ROW(uint32_t);
    default:
        COPY_ROW(uint64_t);
    }
}

static void run_abreast(const onx_work *work, uint64_t first, uint64_t last, onxi_pace *pace)
{
    const topk_params *q = work->params;
    const uint64_t k = (uint64_t)q->k;
    uint64_t *indices = work->thread_workspace;
    for (uint64_t row = first, count; row < last; row += count) {
        sink s;
        begin_line(work, row, &s);
        count = q->inner - row % q->inner;
        count = last - row < count ? last - row : count;
        count = count < ONXI_TOPK_ABREAST ? count : ONXI_TOPK_ABREAST;
        const onxi_topk_lines lines = {
            work->inputs[0]->dtype, s.from, q->inner, (uint64_t)q->length, k, count, q->largest, pace
        };
        q->abreast(&lines, indices + k * ONXI_TOPK_ABREAST, indices);
        if (onxi_pace_stops(pace, 0))
            return;
        for (uint64_t i = 0; i < k; i++) {
            if (s.values)
                put_row(&s, indices + i * count, count, s.values + i * s.step * s.size);
            if (s.indices)
                memcpy(s.indices + i * s.step, indices + i * count, (size_t)count * sizeof *indices);
        }
    }
}

onx_status onxi_topk_run(onx_work *work, uint64_t first, uint64_t last)
{
    const topk_params *q = work->params;
    const onx_value *x = work->inputs[0];
    candidate *heap = work->thread_workspace;
    onxi_pace pace = { .work = work };
    if (q->abreast) {
        run_abreast(work, first, last, &pace);
        return ONX_OK;
    }
    for (uint64_t row = first; row < last && !onxi_pace_stops(&pace, 16); row++) {
        sink s;
        const uint64_t from = begin_line(work, row, &s);
        if (q->sorts) {
            sort_line(q, x, from, heap, &s, &pace);
            continue;
        }
        uint64_t places[ONXI_TOPK_FEW];
        if (q->few && q->few(x->dtype, s.from, (uint64_t)q->length, (uint64_t)q->k, q->largest, places, &pace)) {
            for (uint64_t i = 0; i < (uint64_t)q->k; i++)
                put(&s, i, places[i]);
            continue;
        }
        choose(q, x, from, heap, &pace);
        if (onxi_pace_stops(&pace, 0))
            return ONX_OK;
        IN_PARTS(i, (uint64_t)q->k, &pace)
        put(&s, i, (uint64_t)heap[i].index);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_topk[] = {
    { .op = "TopK", .since = 1, .dtypes = ONXI_NUMBERS, .prepare = onxi_topk_prepare, .run = onxi_topk_run }, { 0 }
};
