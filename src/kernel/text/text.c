/* text.c - StringConcat and StringSplit. */
#include "kernel/kernel.h"

/* ---- StringConcat ---- */

static onx_status concat_prepare(onx_prepare *p)
{
    onxi_broadcast *b = ONXI_NEW(p->arena, onxi_broadcast);
    if (!b)
        return ONX_E_MEMORY;
    if (p->inputs[1]->dtype != ONX_STRING || !onxi_broadcast_make(b, p->inputs, 2, p->outputs[0], NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs cannot be broadcast to the output");
    p->params = b;
    p->rows = p->outputs[0]->count ? 1 : 0;
    return ONX_OK;
}

/* Calls for every element of the output, in order; `total` counts bytes, `to` (or NULL) takes them. */
static bool concat_all(const onx_work *work, char *to, uint64_t *total)
{
    const onxi_broadcast *b = work->params;
    const onx_str *x = work->inputs[0]->data, *y = work->inputs[1]->data;
    onx_str *z = work->outputs[0]->data;
    uint32_t last = b->rank - 1;
    *total = 0;
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0; row < b->outer; row++) {
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, row, at);
        for (int64_t i = 0; i < b->inner; i++, z++) {
            if (onxi_pace_stops(&pace, 16))
                return true;
            const onx_str u = x[at[0] + i * b->step[0][last]], v = y[at[1] + i * b->step[1][last]];
            uint64_t start = *total;
            if (!onxi_add_u64(*total, u.len, total) || !onxi_add_u64(*total, v.len, total))
                return false;
            if (!to)
                continue;
            if (u.len)
                memcpy(to + start, u.ptr, u.len);
            if (v.len)
                memcpy(to + start + u.len, v.ptr, v.len);
            *z = onx_str_make(to + start, u.len + v.len);
        }
    }
    return true;
}

static onx_status concat_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    uint64_t total, limit = onx_ctx_limits(work->cx).memory;
    if (!concat_all(work, NULL, &total) || total > limit)
        return onx_work_fail(work, ONX_E_LIMIT, "the strings exceed the memory limit of %llu bytes",
                             (unsigned long long)limit);
    char *text = onxi_arena_array(work->text, total ? total : 1, 1);
    if (!text)
        return ONX_E_MEMORY;
    concat_all(work, text, &total);
    return ONX_OK;
}

/* ---- StringSplit ---- */

typedef struct split_params {
    onx_str delimiter; /* empty: white space of any length */
    uint64_t most;     /* splits */
} split_params;

static onx_status split_prepare(onx_prepare *p)
{
    split_params *q = ONXI_NEW(p->arena, split_params);
    int64_t most = onx_prepare_int(p, "maxsplit");
    if (!q)
        return ONX_E_MEMORY;
    if (p->inputs[0]->dtype != ONX_STRING || p->inputs[0]->rank >= ONX_RANK_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings of rank below %u", ONX_RANK_MAX);
    q->delimiter = onx_prepare_text(p, "delimiter");
    q->most = most < 0 ? UINT64_MAX : (uint64_t)most;
    p->params = q;
    return ONX_OK;
}

/* Bytes of the white space at the start of s: what Unicode calls so, and the four separators of ASCII. */
static size_t space_at(onx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if ((p[0] >= 0x09 && p[0] <= 0x0d) || (p[0] >= 0x1c && p[0] <= 0x20))
        return 1;
    if (s.len >= 2 && p[0] == 0xc2)
        return p[1] == 0x85 || p[1] == 0xa0 ? 2 : 0;
    if (s.len < 3 || p[0] < 0xe1 || p[0] > 0xe3)
        return 0;
    unsigned c = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    bool space = c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
                 c == 0x205f || c == 0x3000;
    return space ? 3 : 0;
}

static onx_str without_front(onx_str s, size_t bytes)
{
    return onx_str_make(s.ptr + bytes, s.len - bytes);
}

static onx_str without_space(onx_str s)
{
    for (size_t n; s.len && (n = space_at(s)); s = without_front(s, n))
        ;
    return s;
}

/* The next part of *rest; false when there is none. */
static bool next_word(onx_str *rest, bool whole, onx_str *part)
{
    onx_str s = without_space(*rest);
    if (!s.len)
        return false;
    *part = s;
    *rest = onx_str_make(NULL, 0);
    for (size_t i = 0; i < s.len && !whole; i++)
        if (space_at(without_front(s, i))) {
            *part = onx_str_make(s.ptr, i);
            *rest = without_front(s, i);
            break;
        }
    return true;
}

static uint64_t split_words(const split_params *q, onx_str s, onx_str *out)
{
    uint64_t count = 0;
    for (onx_str part; next_word(&s, count >= q->most, &part); count++)
        if (out)
            out[count] = part;
    return count;
}

static uint64_t split_parts(const split_params *q, onx_str s, onx_str *out)
{
    uint64_t count = 0;
    while (count < q->most && s.len) {
        const char *hit = memmem(s.ptr, s.len, q->delimiter.ptr, q->delimiter.len);
        if (!hit)
            break;
        if (out)
            out[count] = onx_str_make(s.ptr, (size_t)(hit - s.ptr));
        count++;
        s = without_front(s, (size_t)(hit - s.ptr) + q->delimiter.len);
    }
    if (out)
        out[count] = s;
    return count + 1;
}

static uint64_t split(const split_params *q, onx_str s, onx_str *out)
{
    return q->delimiter.len ? split_parts(q, s, out) : split_words(q, s, out);
}

/* Parts refer to the input. */
static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const split_params *q = work->params;
    const onx_value *x = work->inputs[0];
    const onx_str *texts = x->data;
    onx_value *y = work->outputs[0], *counts = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    uint64_t most = 0;
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < x->count; i++) {
        if (onxi_pace_stops(&pace, 32 + 4 * texts[i].len))
            return ONX_OK;
        uint64_t count = split(q, texts[i], NULL);
        most = count > most ? count : most;
        if (counts)
            ((int64_t *)counts->data)[i] = (int64_t)count;
    }
    if (!y)
        return ONX_OK;
    int64_t dims[ONX_RANK_MAX];
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[x->rank] = (int64_t)most;
    ONX_TRY(onxi_value_size(y, ONX_STRING, x->rank + 1, dims));
    if (y->size)
        memset(y->data, 0, y->size);
    for (uint64_t i = 0; i < x->count && !onxi_pace_stops(&pace, 32 + 4 * texts[i].len + most); i++)
        split(q, texts[i], (onx_str *)y->data + i * most);
    return ONX_OK;
}

const onx_kernel onxi_kernels_text[] = {
    { .op = "StringConcat",
      .since = 20,
      .dtypes = ONX_DTYPE_BIT(ONX_STRING),
      .prepare = concat_prepare,
      .run = concat_run },
    { .op = "StringSplit", .since = 20, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = split_prepare, .run = split_run },
    { 0 }
};
