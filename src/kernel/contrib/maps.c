/* maps.c - kernels of ai.onnx.contrib that look up strings or vectors in a table. */
#include "kernel/contrib/contrib.h"

typedef struct map {
    onxi_dict places; /* maps keys to entries */
    onx_str *texts;
    int64_t *vectors; /* `width` numbers each; the last vector is that of unknown keys */
    uint32_t count, width;
    onx_str unknown;
} map;

static onx_status wrong_line(const onx_prepare *p, uint32_t line, const char *why)
{
    return onx_prepare_fail(p, ONX_E_INVALID, "line %u of attribute map %s", line + 1, why);
}

static bool read_int(onx_str text, int64_t *out)
{
    const bool below = text.len && *text.ptr == '-';
    *out = 0;
    for (size_t i = below; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, below ? '0' - text.ptr[i] : text.ptr[i] - '0', out))
            return false;
    return text.len > below;
}

/* Reads exactly `width` numbers. */
static bool read_vector(onx_str text, uint32_t width, int64_t *out)
{
    onx_str word;
    for (uint32_t i = 0; i < width; i++)
        if (!onxi_next_part(&text, ' ', &word) || !read_int(word, out + i))
            return false;
    return !onxi_next_part(&text, ' ', &word);
}

/* Divides a line into a key and a value, separated by a tab. */
static bool read_line(onx_str line, onx_str *key, onx_str *value)
{
    onx_str more;
    return onxi_next_part(&line, '\t', key) && onxi_next_part(&line, '\t', value) &&
           !onxi_next_part(&line, '\t', &more);
}

static uint32_t count_parts(onx_str text, char by)
{
    onx_str part;
    uint32_t count = 0;
    while (onxi_next_part(&text, by, &part))
        count++;
    return count;
}

/* The number of elements in the value of the first line; 0: it has none. */
static uint32_t width_of(onx_str text)
{
    onx_str line, key, numbers;
    return onxi_next_part(&text, '\n', &line) && read_line(line, &key, &numbers) ? count_parts(numbers, ' ') : 0;
}

/* The last entry of a key counts. */
static onx_status add_key(map *q, onx_str key, uint32_t entry)
{
    onxi_dict_entry *e = onxi_dict_at(&q->places, key, entry, NULL);
    if (!e)
        return ONX_E_MEMORY;
    e->value = entry;
    return ONX_OK;
}

static onx_status map_prepare(onx_prepare *p, bool vectors, map **out)
{
    const onx_str text = onx_prepare_text(p, "map");
    map *q = ONXI_NEW(p->arena, map);
    if (!q)
        return ONX_E_MEMORY;
    if (text.len > INT32_MAX)
        return onx_prepare_fail(p, ONX_E_LIMIT, "attribute map has %zu bytes", text.len);
    q->count = count_parts(text, '\n');
    q->width = vectors ? width_of(text) : 0;
    q->places = onxi_dict_in_arena(p->arena);
    q->texts = ONXI_ARRAY(p->arena, onx_str, q->count + 1);
    if (vectors && !q->width)
        return wrong_line(p, 0, "is no string, a tab, and numbers");
    if (vectors)
        q->vectors = onxi_arena_array(p->arena, ((uint64_t)q->count + 1) * q->width, sizeof *q->vectors);
    if (!q->texts || (vectors && !q->vectors))
        return ONX_E_MEMORY;
    *out = q;
    p->params = q;
    p->rows = p->outputs[0]->count ? 1 : 0;
    return ONX_OK;
}

/* Keys are strings, or the bytes of vectors. */
static onx_status read_lines(onx_prepare *p, map *q, bool by_vector)
{
    onx_str rest = onx_prepare_text(p, "map");
    onx_str line, key, value;
    for (uint32_t i = 0; onxi_next_part(&rest, '\n', &line); i++) {
        if (!read_line(line, &key, &value))
            return wrong_line(p, i, "is no string, a tab, and what stands for it");
        int64_t *vector = q->width ? q->vectors + (uint64_t)i * q->width : NULL;
        if (vector && !read_vector(value, q->width, vector))
            return onx_prepare_fail(p, ONX_E_INVALID, "line %u of attribute map does not have %u whole numbers", i + 1,
                                    q->width);
        q->texts[i] = by_vector ? key : value;
        ONX_TRY(add_key(q, by_vector ? onx_str_make((const char *)vector, q->width * sizeof *vector) : key, i));
    }
    return ONX_OK;
}

/* ---- StringMapping ---- */

static onx_status mapping_prepare(onx_prepare *p)
{
    map *q;
    ONX_TRY(map_prepare(p, false, &q));
    return read_lines(p, q, false);
}

static onx_status mapping_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const map *q = work->params;
    const onx_str *x = work->inputs[0]->data;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onxi_dict_entry *e = onxi_dict_find(&q->places, x[i]);
        ((onx_str *)work->outputs[0]->data)[i] = e ? q->texts[e->value] : x[i];
    }
    return ONX_OK;
}

/* ---- StringToVector ---- */

static onx_status to_vector_prepare(onx_prepare *p)
{
    map *q;
    ONX_TRY(map_prepare(p, true, &q));
    ONX_TRY(read_lines(p, q, false));
    if (!read_vector(onx_prepare_text(p, "unk"), q->width, q->vectors + (uint64_t)q->count * q->width))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute unk does not have %u whole numbers", q->width);
    return ONX_OK;
}

static onx_status to_vector_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const map *q = work->params;
    const onx_str *x = work->inputs[0]->data;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const onxi_dict_entry *e = onxi_dict_find(&q->places, x[i]);
        memcpy((int64_t *)work->outputs[0]->data + i * q->width,
               q->vectors + (uint64_t)(e ? e->value : q->count) * q->width, q->width * sizeof(int64_t));
    }
    return ONX_OK;
}

/* ---- VectorToString ---- */

static onx_status to_string_prepare(onx_prepare *p)
{
    map *q;
    ONX_TRY(map_prepare(p, true, &q));
    q->unknown = onx_prepare_text(p, "unk");
    return read_lines(p, q, true);
}

static onx_status to_string_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const map *q = work->params;
    const onx_value *x = work->inputs[0];
    for (uint64_t i = 0; i < work->outputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const char *key = (const char *)((const int64_t *)x->data + i * q->width);
        const onxi_dict_entry *e = onxi_dict_find(&q->places, onx_str_make(key, q->width * sizeof(int64_t)));
        ((onx_str *)work->outputs[0]->data)[i] = e ? q->texts[e->value] : q->unknown;
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_maps[] = {
    CONTRIB_KERNEL("StringMapping", .prepare = mapping_prepare, .run = mapping_run),
    CONTRIB_KERNEL("StringToVector", .prepare = to_vector_prepare, .run = to_vector_run),
    CONTRIB_KERNEL("VectorToString", .prepare = to_string_prepare, .run = to_string_run),
    { 0 },
};
