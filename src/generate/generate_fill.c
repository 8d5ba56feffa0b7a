/* generate_fill.c - prepares the inputs of a run: ids, masks, positions, lengths, and the caches with their outputs. */
#include "generate/generate.h"

/* ---- inputs that depend on the number of tokens ---- */

typedef struct stretch {
    const int64_t *ids;
    uint64_t count, past; /* number of new tokens, and of earlier ones */
} stretch;

/* Makes port->value a tensor with these dims. */
static onx_status shape_value(const onx_generator *g, onxi_feed *port, const int64_t *dims)
{
    if (!port->value)
        ONX_TRY(onx_value_new(g->cx, &port->value));
    return onx_value_reset(port->value, port->dtype, port->rank, dims);
}

static onx_status put_numbers(const onxi_feed *port, uint64_t at, const double *from, uint64_t count)
{
    const uint64_t bits = onx_dtype_bits(port->dtype);
    if (bits < 8)
        return ONX_E_UNSUPPORTED;
    return onx_convert(port->dtype, (char *)port->value->data + at * bits / 8, ONX_DOUBLE, from, count, true);
}

static double number_of(const onxi_feed *port, const stretch *s, uint64_t i)
{
    switch (port->role) {
    case ONXI_FEED_IDS:
        return i < s->count ? (double)s->ids[i] : 0;
    case ONXI_FEED_POSITIONS:
        return (double)(s->past + i);
    case ONXI_FEED_PAST_LENGTH:
        return (double)s->past;
    case ONXI_FEED_TOTAL_LENGTH:
        return (double)(s->past + s->count);
    case ONXI_FEED_LAST_POSITION:
        return (double)(s->past + s->count) - 1;
    case ONXI_FEED_HAS_PAST:
        return s->past > 0;
    case ONXI_FEED_ONES:
        return 1;
    default:
        return 0;
    }
}

/* Does the last axis count the new tokens? Otherwise every element is the same number. */
static bool is_per_token(onxi_feed_role role)
{
    return role == ONXI_FEED_IDS || role == ONXI_FEED_POSITIONS || role == ONXI_FEED_ZEROS;
}

static onx_status fill_numbers(const onx_generator *g, onxi_feed *port, const stretch *s, int64_t *dims)
{
    const bool each = is_per_token(port->role);
    uint64_t width = 1;
    for (uint32_t i = 0; i < port->rank; i++)
        dims[i] = port->dims[i] >= 0 ? port->dims[i] : each && i + 1 == port->rank ? (int64_t)s->count : 1;
    if (each && port->rank)
        width = (uint64_t)dims[port->rank - 1];
    if (each && width < s->count)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "input \"%.*s\" takes %llu tokens at a time",
                         ONX_ARG(port->name), (unsigned long long)width);
    ONX_TRY(shape_value(g, port, dims));
    for (uint64_t i = 0; i < port->value->count; i++) {
        const double number = number_of(port, s, i % width);
        ONX_TRY(put_numbers(port, i, &number, 1));
    }
    return ONX_OK;
}

/* The number of keys that a mask covers. */
static uint64_t keys_of(const onx_generator *g, const onxi_feed *mask, const stretch *s)
{
    const int64_t fixed = mask->rank ? mask->dims[mask->rank - 1] : -1;
    uint64_t keys = s->past + s->count;
    if (fixed > 0)
        return (uint64_t)fixed;
    for (uint32_t i = 0; mask->whole && i < g->port_count; i++) {
        const onxi_feed *cache = &g->ports[i];
        if (cache->role != ONXI_FEED_CACHE || cache->rank < 4)
            continue;
        if (cache->kind == ONXI_CACHE_ROOM && g->room > keys)
            keys = g->room;
        if (cache->kind == ONXI_CACHE_FIXED && (uint64_t)cache->dims[cache->axis] > keys)
            keys = (uint64_t)cache->dims[cache->axis];
    }
    return keys;
}

/* A mask of [batch, keys] is 1 for all tokens. A mask of higher rank gives, for each new token, the keys that it
 * attends to: as booleans, or as 0 for these keys and the lowest number for all others. */
static onx_status fill_mask(const onx_generator *g, onxi_feed *mask, const stretch *s, int64_t *dims)
{
    const uint64_t keys = keys_of(g, mask, s), total = s->past + s->count;
    const bool causal = mask->rank > 2, added = causal && onx_dtype_class_of(mask->dtype) == ONX_CLASS_FLOATING;
    const double yes = added ? 0 : 1, no = !added ? 0 : mask->dtype == ONX_FLOAT16 ? -65504.0 : -3.0e38;
    if (keys < total)
        return onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE, "input \"%.*s\" has room for %llu tokens, not for %llu",
                         ONX_ARG(mask->name), (unsigned long long)keys, (unsigned long long)total);
    for (uint32_t i = 0; i < mask->rank; i++)
        dims[i] = mask->dims[i] >= 0 ? mask->dims[i] : 1;
    if (mask->rank)
        dims[mask->rank - 1] = (int64_t)keys;
    if (causal && mask->dims[mask->rank - 2] < 0)
        dims[mask->rank - 2] = (int64_t)s->count;
    ONX_TRY(shape_value(g, mask, dims));
    const uint64_t rows = causal ? (uint64_t)dims[mask->rank - 2] : 1;
    for (uint64_t at = 0; at < mask->value->count; at++) {
        const uint64_t key = at % keys, row = at / keys % rows;
        const bool seen = causal ? key <= s->past + row && key < total : key < total;
        ONX_TRY(put_numbers(mask, at, seen ? &yes : &no, 1));
    }
    return ONX_OK;
}

/* ---- caches ---- */

static void cache_dims(const onx_generator *g, const onxi_feed *port, uint64_t tokens, int64_t *dims)
{
    onxi_copy_dims(dims, port->dims, port->rank);
    if (port->kind == ONXI_CACHE_GROWS)
        dims[port->axis] = (int64_t)tokens;
    else if (port->kind == ONXI_CACHE_ROOM)
        dims[port->axis] = (int64_t)g->room;
}

static void drop(onx_value **value)
{
    onx_value_free(*value);
    *value = NULL;
}

/* The output cache is written into the memory of the input cache. */
static onx_status aim_there(const onx_generator *g, onxi_feed *port)
{
    const onx_value *v = port->value;
    const onx_memory memory = { .struct_size = sizeof memory,
                                .dtype = v->dtype,
                                .rank = v->rank,
                                .dims = v->dims,
                                .data = v->data,
                                .size = v->size };
    drop(&port->other);
    return onx_value_wrap(g->cx, &memory, &port->other);
}

static onx_status new_cache(const onx_generator *g, onxi_feed *port, uint64_t tokens)
{
    int64_t dims[ONX_RANK_MAX];
    cache_dims(g, port, tokens, dims);
    drop(&port->other);
    drop(&port->value);
    ONX_TRY(onx_value_new_tensor(g->cx, port->dtype, port->rank, dims, &port->value));
    return port->updated ? aim_there(g, port) : onx_value_new(g->cx, &port->other);
}

/* Grows a cache with spare room: its contents move along the token axis. */
static onx_status widen(const onx_generator *g, onxi_feed *port)
{
    int64_t dims[ONX_RANK_MAX];
    onx_value *old = port->value, *made;
    cache_dims(g, port, 0, dims);
    ONX_TRY(onx_value_new_tensor(g->cx, port->dtype, port->rank, dims, &made));
    uint64_t rows = 1, inner = onx_dtype_bits(port->dtype) / 8;
    for (uint32_t i = 0; i < port->rank; i++) {
        rows *= i < port->axis ? (uint64_t)dims[i] : 1;
        inner *= i > port->axis ? (uint64_t)dims[i] : 1;
    }
    const uint64_t from = (uint64_t)old->dims[port->axis] * inner, to = (uint64_t)dims[port->axis] * inner;
    for (uint64_t i = 0; from && i < rows; i++)
        memcpy((char *)made->data + i * to, (const char *)old->data + i * from, from);
    drop(&port->other);
    drop(&port->value);
    port->value = made;
    return aim_there(g, port);
}

/* Reserves room for `total` tokens in the caches of chosen length. */
static onx_status make_room(onx_generator *g, uint64_t total)
{
    enum { STEP = 64 };
    if (total <= g->room)
        return ONX_OK;
    uint64_t room = g->room ? 2 * g->room : g->first_room;
    if (room < total)
        room = total;
    room = (room + STEP - 1) / STEP * STEP;
    const bool first = !g->room;
    g->room = room < g->limit ? room : g->limit;
    for (uint32_t i = 0; i < g->port_count; i++) {
        onxi_feed *port = &g->ports[i];
        if (port->role == ONXI_FEED_CACHE && port->kind == ONXI_CACHE_ROOM)
            ONX_TRY(first || !port->value ? new_cache(g, port, 0) : widen(g, port));
    }
    return ONX_OK;
}

onx_status onxi_generate_empty(onx_generator *g)
{
    for (uint32_t i = 0; i < g->port_count; i++) {
        onxi_feed *port = &g->ports[i];
        if (port->role != ONXI_FEED_CACHE)
            continue;
        if (port->kind == ONXI_CACHE_ROOM) {
            if (port->value && port->value->size)
                memset(port->value->data, 0, port->value->size);
            continue;
        }
        ONX_TRY(new_cache(g, port, 0));
    }
    return ONX_OK;
}

onx_status onxi_generate_fill(onx_generator *g, const int64_t *ids, uint64_t count, uint64_t past)
{
    const stretch s = { ids, count, past };
    int64_t dims[ONX_RANK_MAX];
    ONX_TRY(make_room(g, past + count));
    for (uint32_t i = 0; i < g->port_count; i++) {
        onxi_feed *port = &g->ports[i];
        if (port->role == ONXI_FEED_NONE)
            continue;
        if (port->role == ONXI_FEED_MASK)
            ONX_TRY(fill_mask(g, port, &s, dims));
        else if (port->role != ONXI_FEED_CACHE)
            ONX_TRY(fill_numbers(g, port, &s, dims));
        g->inputs[i] = port->value;
        if (port->role != ONXI_FEED_CACHE)
            continue;
        if (!port->updated) { /* allocated at its final size, so that nothing has to be copied */
            cache_dims(g, port, past + count, dims);
            ONX_TRY(onx_value_reset(port->other, port->dtype, port->rank, dims));
        }
        g->outputs[port->output] = port->other;
    }
    return ONX_OK;
}

onx_status onxi_generate_turn(onx_generator *g, uint64_t total)
{
    int64_t dims[ONX_RANK_MAX];
    for (uint32_t i = 0; i < g->port_count; i++) {
        onxi_feed *port = &g->ports[i];
        if (port->role != ONXI_FEED_CACHE)
            continue;
        const onx_value *made = port->other;
        cache_dims(g, port, total, dims);
        if (made->kind != ONX_VALUE_TENSOR || made->rank != port->rank || !onxi_same_dims(made->dims, dims, made->rank))
            return onxi_fail(
                g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                "what takes the place of the cache \"%.*s\" has another shape: %lld along axis %u, not %lld",
                ONX_ARG(port->name), made->rank > port->axis ? (long long)made->dims[port->axis] : 0, port->axis,
                (long long)dims[port->axis]);
        if (port->updated)
            continue;
        onx_value *given = port->value;
        port->value = port->other;
        port->other = given;
    }
    return ONX_OK;
}
