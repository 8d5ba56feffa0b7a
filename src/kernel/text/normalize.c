/* normalize.c - StringNormalizer: stop words go, then the case of what is left changes. Case comes from
 * utf8proc, by the mappings of Unicode for single characters, whatever the locale. */
#include "kernel/core/ml.h"

#ifdef ONX_WITH_UTF8PROC
#include <utf8proc.h>

#define FUNCTIONS(F)                                                                                                   \
    F(utf8proc_iterate) F(utf8proc_toupper) F(utf8proc_tolower) F(utf8proc_decompose_char) F(utf8proc_encode_char)

typedef struct utf8proc {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} utf8proc;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };
#else
typedef struct utf8proc utf8proc;
#endif

typedef enum text_case { KEEP, LOWER, UPPER, FOLD, CASE_COUNT } text_case;

typedef struct normalizer {
    const utf8proc *lib; /* NULL: case does not count */
    text_case change;
    bool fold; /* stop words are compared without their case */
    onxi_ml_index stop;
} normalizer;

/* ---- case ---- */

#ifdef ONX_WITH_UTF8PROC
/* The text in another case: its length, and to `out` (or NULL) its bytes; false where it is not UTF-8. */
static bool change_case(const utf8proc *lib, text_case to, onx_str s, char *out, size_t *len)
{
    const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)s.ptr;
    *len = 0;
    for (size_t at = 0; at < s.len;) {
        utf8proc_int32_t c, made[8];
        size_t left = s.len - at;
        utf8proc_ssize_t n = lib->utf8proc_iterate(p + at, left < 4 ? (utf8proc_ssize_t)left : 4, &c), count = 1;
        if (n <= 0)
            return false;
        at += (size_t)n;
        made[0] = to == UPPER ? lib->utf8proc_toupper(c) : to == LOWER ? lib->utf8proc_tolower(c) : c;
        if (to == FOLD)
            count = lib->utf8proc_decompose_char(c, made, 8, UTF8PROC_CASEFOLD, NULL);
        for (utf8proc_ssize_t i = 0; i < count && i < 8; i++) {
            utf8proc_uint8_t bytes[4];
            size_t width = (size_t)lib->utf8proc_encode_char(made[i], bytes);
            if (out)
                memcpy(out + *len, bytes, width);
            *len += width;
        }
    }
    return true;
}
#else
static bool change_case(const utf8proc *lib, text_case to, onx_str s, char *out, size_t *len)
{
    (void)lib, (void)to, (void)s, (void)out;
    *len = 0;
    return false;
}
#endif

static onx_status need_case(const onx_prepare *p, normalizer *q)
{
#ifdef ONX_WITH_UTF8PROC
    q->lib = ONXI_FUNCTIONS(ONXI_LIBRARY_UTF8PROC, function_names);
#endif
    if (q->lib)
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "to change or ignore case StringNormalizer %s",
                            onxi_library_missing(ONXI_LIBRARY_UTF8PROC));
}

/* ---- preparing ---- */

static onx_status stop_words(const onx_prepare *p, normalizer *q)
{
    uint32_t count;
    const onx_bytes *words = onxi_ml_texts_of(p, "stopwords", &count);
    q->fold = count && onx_prepare_int(p, "is_case_sensitive") == 0;
    if (q->fold || q->change != KEEP)
        ONX_TRY(need_case(p, q));
    if (!q->fold)
        return onxi_ml_index_texts(p, words, count, true, &q->stop);
    onx_bytes *folded = ONXI_ARRAY(p->arena, onx_bytes, count);
    if (!folded)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        size_t len;
        if (!change_case(q->lib, FOLD, onx_view(words[i]), NULL, &len))
            return onx_prepare_fail(p, ONX_E_INVALID, "stop word %u is not UTF-8", i);
        char *text = onx_arena_alloc(p->arena, len + 1);
        if (!text)
            return ONX_E_MEMORY;
        change_case(q->lib, FOLD, onx_view(words[i]), text, &len);
        ONX_TRY(onx_arena_refer(p->arena, onx_str_make(text, len), &folded[i]));
    }
    return onxi_ml_index_texts(p, folded, count, true, &q->stop);
}

static onx_status normalize_prepare(onx_prepare *p)
{
    static const char *const names[] = { "NONE", "LOWER", "UPPER" };
    const onx_value *x = p->inputs[0];
    normalizer *q = ONXI_NEW(p->arena, normalizer);
    onx_str action = onx_prepare_text(p, "case_change_action");
    if (!q)
        return ONX_E_MEMORY;
    if (x->dtype != ONX_STRING || x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings of shape [C] or [1, C]");
    while (q->change < FOLD && !onx_str_is(action, names[q->change]))
        q->change++;
    if (q->change == FOLD)
        return onx_prepare_fail(p, ONX_E_INVALID, "case_change_action is \"%.*s\"", ONX_ARG(action));
    p->params = q;
    return stop_words(p, q);
}

/* ---- running ---- */

static onx_status not_text(onx_work *work, uint64_t i)
{
    return onx_work_fail(work, ONX_E_INVALID, "string %llu is not UTF-8", (unsigned long long)i);
}

/* Room for all strings in the case `to`, one after the other, or for the longest alone. */
static onx_status case_room(onx_work *work, text_case to, bool longest, char **out)
{
    const normalizer *q = work->params;
    const onx_value *x = work->inputs[0];
    uint64_t total = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        size_t len;
        if (!change_case(q->lib, to, ((const onx_str *)x->data)[i], NULL, &len))
            return not_text(work, i);
        if (longest)
            total = len > total ? len : total;
        else if (!onxi_add_u64(total, len, &total))
            return onxi_no_memory(work->cx);
    }
    *out = onxi_arena_array(work->text, total + 1, 1);
    return *out ? ONX_OK : ONX_E_MEMORY;
}

static onx_status is_stop_word(onx_work *work, uint64_t i, char *room, bool *out)
{
    const normalizer *q = work->params;
    onx_str s = ((const onx_str *)work->inputs[0]->data)[i];
    size_t len;
    if (q->fold) {
        if (!change_case(q->lib, FOLD, s, room, &len))
            return not_text(work, i);
        s = onx_str_make(room, len);
    }
    *out = onxi_ml_find_text(&q->stop, s) != ONXI_ML_NOWHERE;
    return ONX_OK;
}

/* What is left when `out` is NULL is only counted. */
static onx_status keep(onx_work *work, char *room, char *text, onx_str *out, int64_t *kept)
{
    const normalizer *q = work->params;
    const onx_value *x = work->inputs[0];
    *kept = 0;
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < x->count; i++) {
        onx_str s = ((const onx_str *)x->data)[i];
        bool stop = false;
        if (onxi_pace_stops(&pace, 200 + 16 * s.len))
            return ONX_E_CANCELLED;
        size_t len;
        ONX_TRY(is_stop_word(work, i, room, &stop));
        if (stop)
            continue;
        if (out && q->change != KEEP) {
            if (!change_case(q->lib, q->change, s, text, &len))
                return not_text(work, i);
            s = onx_str_make(text, len);
            text += len;
        }
        if (out)
            out[*kept] = s;
        ++*kept;
    }
    return ONX_OK;
}

static onx_status normalize_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const normalizer *q = work->params;
    onx_value *y = work->outputs[0];
    char *room = NULL, *text = NULL;
    int64_t kept;
    if (q->fold)
        ONX_TRY(case_room(work, FOLD, true, &room));
    if (q->change != KEEP)
        ONX_TRY(case_room(work, q->change, false, &text));
    ONX_TRY(keep(work, room, text, NULL, &kept));
    const int64_t dims[] = { 1, kept ? kept : 1 };
    uint32_t rank = work->inputs[0]->rank;
    ONX_TRY(onxi_value_size(y, ONX_STRING, rank, dims + 2 - rank));
    ((onx_str *)y->data)[0] = onx_str_make(NULL, 0); /* when nothing is left */
    return keep(work, room, text, y->data, &kept);
}

const onx_kernel onxi_kernels_text_normalize[] = {
    { .op = "StringNormalizer",
      .since = 10,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .types = normalize_prepare, /* only looks: errors are reported while planning */
      .prepare = normalize_prepare,
      .run = normalize_run },
    { 0 }
};
