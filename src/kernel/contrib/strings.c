/* strings.c - kernels of ai.onnx.contrib on strings: case, trimming, lengths, hashes, joining, splitting, selecting. */
#include "kernel/contrib/contrib.h"
#include "token/token.h"

static const onx_str *texts_of(const onx_value *v)
{
    return v->data;
}

onx_status onxi_contrib_text(onx_work *work, uint32_t input, onx_str *out)
{
    const onx_value *v = work->inputs[input];
    if (v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "input %u has %llu elements, expected 1", input,
                             (unsigned long long)v->count);
    *out = texts_of(v)[0];
    return ONX_OK;
}

onx_status onxi_contrib_int(onx_work *work, uint32_t input, int64_t *out)
{
    const onx_value *v = work->inputs[input];
    if (v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "input %u has %llu elements, expected 1", input,
                             (unsigned long long)v->count);
    *out = *(const int64_t *)v->data;
    return ONX_OK;
}

static onx_status same_count_prepare(onx_prepare *p)
{
    if (p->inputs[0]->dtype != ONX_STRING || p->outputs[0]->count != p->inputs[0]->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings with the shape of the output");
    p->rows = p->inputs[0]->count ? 1 : 0;
    return ONX_OK;
}

/* ---- case and ends ---- */

static bool is_ascii(onx_str s)
{
    unsigned char all = 0;
    for (size_t i = 0; i < s.len; i++)
        all |= (unsigned char)s.ptr[i];
    return all < 0x80;
}

/* Copies the string and converts ASCII letters of one case to the other. */
static onx_status change_letters(onx_work *work, onx_str s, char from, onx_str *out)
{
    char *text = onxi_arena_array(work->text, s.len ? s.len : 1, 1);
    if (!text)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < s.len; i++) {
        const bool letter = s.ptr[i] >= from && s.ptr[i] <= from + 25;
        text[i] = (char)(letter ? s.ptr[i] ^ 0x20 : s.ptr[i]);
    }
    *out = onx_str_make(text, s.len);
    return ONX_OK;
}

static onx_status upper_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ONX_TRY(change_letters(work, texts_of(work->inputs[0])[i], 'a', (onx_str *)work->outputs[0]->data + i));
    }
    return ONX_OK;
}

static onx_status lower_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onx_str s = texts_of(work->inputs[0])[i];
        onx_str *y = (onx_str *)work->outputs[0]->data + i;
        if (is_ascii(s)) {
            ONX_TRY(change_letters(work, s, 'A', y));
            continue;
        }
        if (!onxi_unicode_there())
            return onx_work_fail(work, ONX_E_UNSUPPORTED, "for letters beyond ASCII StringLower %s",
                                 onxi_library_missing(ONXI_LIBRARY_UTF8PROC));
        onxi_chars made = { .arena = work->text };
        if (!onxi_chars_lower(&made, s))
            return ONX_E_MEMORY;
        *y = onxi_chars_view(&made);
    }
    return ONX_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A string of only white space is not changed. */
static onx_status strip_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onx_str s = texts_of(work->inputs[0])[i];
        size_t from = 0, to = s.len;
        while (from < to && is_blank(s.ptr[from]))
            from++;
        while (to > from && is_blank(s.ptr[to - 1]))
            to--;
        ((onx_str *)work->outputs[0]->data)[i] = from < to ? onx_str_make(s.ptr + from, to - from) : s;
    }
    return ONX_OK;
}

/* ---- lengths and hashes ---- */

/* Counts code points; an invalid byte counts as one. */
static onx_status length_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onx_str s = texts_of(work->inputs[0])[i];
        int64_t count = 0;
        for (size_t at = 0; at < s.len; at += onxi_rune_size(s.ptr + at, onxi_str_end(s)))
            count++;
        ((int64_t *)work->outputs[0]->data)[i] = count;
    }
    return ONX_OK;
}

/* Both hashes are 64-bit MurmurHash. They differ in the seed, and in whether an empty tail after whole words is
 * hashed. */
typedef struct hash_kind {
    uint64_t seed;
    bool always_ends;
} hash_kind;

static const hash_kind hash_of_tensorflow = { UINT64_C(0xdecafcaffe), true }, hash_of_gcc = { 0xc70f6907u, false };

static uint64_t hash_text(const hash_kind *kind, onx_str s)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t h = kind->seed ^ (uint64_t)s.len * factor;
    size_t at = 0;
    for (; s.len - at >= 8; at += 8) {
        uint64_t word = 0;
        for (unsigned i = 0; i < 8; i++)
            word |= (uint64_t)(unsigned char)s.ptr[at + i] << 8 * i;
        word *= factor;
        word = (word ^ word >> 47) * factor;
        h = (h ^ word) * factor;
    }
    if (at < s.len || kind->always_ends) {
        for (unsigned i = 0; at + i < s.len; i++)
            h ^= (uint64_t)(unsigned char)s.ptr[at + i] << 8 * i;
        h *= factor;
    }
    h = (h ^ h >> 47) * factor;
    return h ^ h >> 47;
}

static onx_status hash_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    int64_t buckets = 0;
    ONX_TRY(onxi_contrib_int(work, 1, &buckets));
    if (buckets < 1)
        return onx_work_fail(work, ONX_E_INVALID, "num_buckets is %lld, expected at least 1", (long long)buckets);
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ((int64_t *)work->outputs[0]->data)[i] =
            (int64_t)(hash_text(work->prepared->kernel->body, texts_of(work->inputs[0])[i]) % (uint64_t)buckets);
    }
    return ONX_OK;
}

/* ---- pairs ---- */

static onx_status concat_prepare(onx_prepare *p)
{
    if (p->inputs[1]->dtype != ONX_STRING || p->inputs[1]->count != p->inputs[0]->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu strings and %llu to join them with",
                                (unsigned long long)p->inputs[0]->count, (unsigned long long)p->inputs[1]->count);
    return same_count_prepare(p);
}

static onx_status concat_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onx_str x = texts_of(work->inputs[0])[i], y = texts_of(work->inputs[1])[i];
        char *text = onxi_arena_array(work->text, x.len + y.len + 1, 1);
        if (!text)
            return ONX_E_MEMORY;
        if (x.len)
            memcpy(text, x.ptr, x.len);
        if (y.len)
            memcpy(text + x.len, y.ptr, y.len);
        ((onx_str *)work->outputs[0]->data)[i] = onx_str_make(text, x.len + y.len);
    }
    return ONX_OK;
}

static onx_status equal_prepare(onx_prepare *p)
{
    static const int32_t from_the_first[] = { 0, 0 };
    onxi_broadcast *b = ONXI_NEW(p->arena, onxi_broadcast);
    if (!b)
        return ONX_E_MEMORY;
    if (p->inputs[0]->dtype != ONX_STRING || p->inputs[1]->dtype != ONX_STRING ||
        !onxi_broadcast_make(b, p->inputs, 2, p->outputs[0], from_the_first))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs cannot be broadcast to the output");
    p->params = b;
    p->rows = p->outputs[0]->count ? b->outer : 0;
    return ONX_OK;
}

static onx_status equal_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_broadcast *b = work->params;
    const uint32_t inner = b->rank - 1;
    for (uint64_t row = first; row < last; row++) {
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, row, at);
        for (int64_t i = 0; i < b->inner; i++) {
            const onx_str x = texts_of(work->inputs[0])[at[0] + i * b->step[0][inner]],
                          y = texts_of(work->inputs[1])[at[1] + i * b->step[1][inner]];
            ((uint8_t *)work->outputs[0]->data)[(int64_t)row * b->inner + i] = onx_str_equal(x, y);
        }
    }
    return ONX_OK;
}

/* ---- StringJoin ---- */

static onx_status join_one(onx_work *work, const onx_str *x, uint64_t count, uint64_t step, onx_str by, onx_str *out)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!onxi_add_u64(total, x[i * step].len, &total) || !onxi_add_u64(total, by.len, &total))
            return onxi_no_memory(work->cx);
    char *text = onxi_arena_array(work->text, total + 1, 1);
    if (!text)
        return ONX_E_MEMORY;
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onx_str part = x[i * step];
        if (i && by.len)
            memcpy(text + at, by.ptr, by.len);
        at += i ? by.len : 0;
        if (part.len)
            memcpy(text + at, part.ptr, part.len);
        at += part.len;
    }
    *out = onx_str_make(text, at);
    return ONX_OK;
}

static onx_status join_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    int64_t dims[ONX_RANK_MAX] = { 1 }, axis = 0;
    onx_str by = { 0 };
    ONX_TRY(onxi_contrib_text(work, 1, &by));
    ONX_TRY(onxi_contrib_int(work, 2, &axis));
    if (x->rank && (axis < 0 || axis >= (int64_t)x->rank))
        return onx_work_fail(work, ONX_E_INVALID, "axis is %lld, and the strings have rank %u", (long long)axis,
                             x->rank);
    for (uint32_t i = 0; x->rank > 1 && i + 1 < x->rank; i++)
        dims[i] = x->dims[i < axis ? i : i + 1];
    ONX_TRY(onxi_value_size(y, ONX_STRING, x->rank > 1 ? x->rank - 1 : 1, dims));
    if (y->count && !x->count)
        memset(y->data, 0, y->size);
    if (!x->count || !y->count)
        return ONX_OK;
    const uint32_t at = x->rank ? (uint32_t)axis : 0;
    const uint64_t count = x->rank ? (uint64_t)x->dims[at] : 1,
                   step = x->rank ? onxi_product(x->dims, at + 1, x->rank) : 1;
    for (uint64_t i = 0; i < y->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ONX_TRY(
            join_one(work, texts_of(x) + i / step * step * count + i % step, count, step, by, (onx_str *)y->data + i));
    }
    return ONX_OK;
}

/* ---- StringSplit ---- */

typedef struct split_state {
    onx_str by;
    bool keep; /* keeps empty parts */
    onx_str *parts;
    int64_t *places; /* row and column of each part; both NULL: parts are only counted */
    uint64_t count;
    int64_t columns;
} split_state;

static void add_part(split_state *s, uint64_t row, int64_t column, onx_str part)
{
    if (s->parts) {
        s->parts[s->count] = part;
        s->places[2 * s->count] = (int64_t)row;
        s->places[2 * s->count + 1] = column;
    }
    s->count++;
    s->columns = column >= s->columns ? column + 1 : s->columns;
}

/* Each byte in `by` is a delimiter. If `by` is empty, each byte is a part. */
static void split_row(split_state *s, uint64_t row, onx_str text)
{
    bool ends[256] = { false };
    int64_t column = 0;
    for (size_t i = 0; i < s->by.len; i++)
        ends[(unsigned char)s->by.ptr[i]] = true;
    for (size_t i = 0; !s->by.len && i < text.len; i++)
        add_part(s, row, (int64_t)i, onx_str_make(text.ptr + i, 1));
    for (size_t from = 0, i = 0; s->by.len && text.len && i <= text.len; i++) {
        if (i < text.len && !ends[(unsigned char)text.ptr[i]])
            continue;
        if (s->keep || i > from)
            add_part(s, row, column++, onx_str_make(text.ptr + from, i - from));
        from = i + 1;
    }
}

/* Parts refer to the input. */
static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0], *skip = work->inputs[2];
    split_state s = { .keep = true };
    ONX_TRY(onxi_contrib_text(work, 1, &s.by));
    if (x->rank != 1 || skip->count != 1)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the strings have rank %u and skip_empty %llu elements, expected 1 each", x->rank,
                             (unsigned long long)skip->count);
    s.keep = !*(const uint8_t *)skip->data;
    for (uint64_t row = 0; row < x->count; row++)
        split_row(&s, row, texts_of(x)[row]);
    const int64_t places[] = { (int64_t)s.count, 2 }, two = 2, columns = s.columns;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, places));
    ONX_TRY(onxi_value_size(work->outputs[1], ONX_STRING, 1, places));
    ONX_TRY(onxi_value_size(work->outputs[2], ONX_INT64, 1, &two));
    ((int64_t *)work->outputs[2]->data)[0] = (int64_t)x->count;
    ((int64_t *)work->outputs[2]->data)[1] = columns;
    s.parts = s.count ? work->outputs[1]->data : NULL;
    s.places = work->outputs[0]->data;
    s.count = 0;
    for (uint64_t row = 0; s.parts && row < x->count; row++)
        split_row(&s, row, texts_of(x)[row]);
    return ONX_OK;
}

/* ---- MaskedFill ---- */

static onx_status masked_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0], *mask = work->inputs[1];
    const uint8_t *keep = mask->data;
    int64_t count = 0;
    if (x->rank > 1 || mask->rank != x->rank || mask->count != x->count)
        return onx_work_fail(work, ONX_E_INVALID,
                             "a mask of rank %u with %llu elements does not fit strings of rank %u with %llu elements",
                             mask->rank, (unsigned long long)mask->count, x->rank, (unsigned long long)x->count);
    for (uint64_t i = 0; i < x->count; i++)
        count += keep[i] != 0;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &count));
    onx_str *y = work->outputs[0]->data;
    for (uint64_t i = 0; i < x->count; i++)
        if (keep[i])
            *y++ = texts_of(x)[i];
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_strings[] = {
    CONTRIB_KERNEL("StringUpper", .prepare = same_count_prepare, .run = upper_run),
    CONTRIB_KERNEL("StringLower", .prepare = same_count_prepare, .run = lower_run),
    CONTRIB_KERNEL("StringStrip", .prepare = same_count_prepare, .run = strip_run),
    CONTRIB_KERNEL("StringLength", .prepare = same_count_prepare, .run = length_run),
    CONTRIB_KERNEL("StringToHashBucket", .prepare = same_count_prepare, .run = hash_run, .body = &hash_of_tensorflow),
    CONTRIB_KERNEL("StringToHashBucketFast", .prepare = same_count_prepare, .run = hash_run, .body = &hash_of_gcc),
    CONTRIB_KERNEL("StringConcat", .prepare = concat_prepare, .run = concat_run),
    CONTRIB_KERNEL("StringEqual", .prepare = equal_prepare, .run = equal_run),
    CONTRIB_KERNEL("StringJoin", .run = join_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("StringSplit", .run = split_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("MaskedFill", .run = masked_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
