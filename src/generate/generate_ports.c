/* generate_ports.c - determines the roles of the inputs and outputs of a decoder from their names, the names in a
 * configuration, and their types. */
#include "generate/generate.h"
#include "run/run.h"

/* The first name of a row is its key in a configuration. */
static const struct {
    onxi_feed_role role;
    const char *names[6];
} names[] = {
    { ONXI_FEED_IDS, { "input_ids", "tokens", "ids" } },
    { ONXI_FEED_MASK, { "attention_mask", "mask", "attn_mask" } },
    { ONXI_FEED_POSITIONS, { "position_ids", "positions", "input_pos" } },
    { ONXI_FEED_POSITIONS, { "cache_position" } },
    { ONXI_FEED_PAST_LENGTH,
      { "past_sequence_length", "past_key_values_length", "past_seq_len", "write_indices", "past_len" } },
    { ONXI_FEED_TOTAL_LENGTH, { "total_sequence_length", "nonpad_kv_seqlen", "total_seq_len" } },
    { ONXI_FEED_TOTAL_LENGTH, { "current_sequence_length" } },
    { ONXI_FEED_LAST_POSITION, { "seqlens_k" } },
    { ONXI_FEED_HAS_PAST, { "use_cache_branch" } },
    { ONXI_FEED_ZEROS, { "token_type_ids" } },
    { ONXI_FEED_ONES, { "num_logits_to_keep", "logits_to_keep" } },
};
enum { ROWS = sizeof names / sizeof *names };

static const onx_type_tensor *tensor_of(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
}

static onxi_feed_role role_of(const onx_generator *g, onx_str name)
{
    const onxi_json *inputs = onxi_json_get(g->config.decoder, "inputs");
    for (size_t i = 0; i < ROWS; i++) {
        const onx_str given = onxi_json_text(inputs, names[i].names[0]);
        if (given.len && onx_str_equal(given, name))
            return names[i].role;
        for (size_t k = 0; !given.len && k < 6 && names[i].names[k]; k++)
            if (onx_str_is(name, names[i].names[k]))
                return names[i].role;
    }
    return ONXI_FEED_NONE;
}

static onx_status read_port(onx_generator *g, uint32_t index)
{
    onxi_feed *port = &g->ports[index];
    const onx_session_port from = onx_session_input(g->session, index);
    const onx_type_tensor *t = tensor_of(from.type);
    port->name = from.name;
    if (!t || !t->shape || t->shape->dim_count > ONX_RANK_MAX || !onx_dtype_bits(t->elem_type))
        return ONX_OK; /* unknown role; reported if it is needed */
    port->dtype = (onx_dtype)t->elem_type;
    port->rank = t->shape->dim_count;
    port->dims = ONXI_ARRAY(g->arena, int64_t, port->rank + 1u);
    port->dim_names = ONXI_ARRAY(g->arena, onx_str, port->rank + 1u);
    if (!port->dims || !port->dim_names)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < port->rank; i++) {
        const onx_dimension *d = t->shape->dim[i];
        port->dims[i] = ONX_HAS(dimension, d, dim_value) ? d->dim_value : -1;
        if (ONX_HAS(dimension, d, dim_param))
            port->dim_names[i] = onx_view(d->dim_param);
    }
    port->role = role_of(g, from.name);
    return ONX_OK;
}

/* ---- matching cache inputs with outputs ---- */

enum { KEY_MAX = 96 };

/* Words that only distinguish input from output. */
static bool is_direction(onx_str word)
{
    static const char *const words[] = { "past",  "present", "updated", "new",    "old",  "in",  "out",
                                         "input", "output",  "cache",   "cached", "next", "prev" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (onx_str_is(word, words[i]))
            return true;
    return false;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t word_length(const char *p, const char *end)
{
    size_t n = 0;
    if (is_word(*p))
        for (; p + n < end && is_word(p[n]);)
            n++;
    else
        for (; p + n < end && p[n] >= '0' && p[n] <= '9';)
            n++;
    return n;
}

/* The name without its direction: "past_key_values.3.key" and "present.3.key" both become "3 key". Words are sorted, so
 * that their order does not matter. False if the name is too long. */
static bool key_of(onx_str name, char key[KEY_MAX])
{
    onx_str list[16];
    uint32_t count = 0;
    size_t used = 0;
    const char *end = onxi_str_end(name);
    for (const char *p = name.ptr; p < end;) {
        const onx_str word = onx_str_make(p, word_length(p, end));
        p += word.len ? word.len : 1;
        /* in "key_values", both words only describe the kind of cache */
        if (onx_str_is(word, "values") && count && onx_str_is(list[count - 1], "key"))
            count--;
        else if (word.len && !is_direction(word)) {
            if (count == 16)
                return false;
            list[count++] = word;
        }
    }
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0; k--) {
            const onx_str a = list[k - 1], b = list[k];
            const size_t n = a.len < b.len ? a.len : b.len;
            const int order = memcmp(a.ptr, b.ptr, n);
            if (order < 0 || (order == 0 && a.len <= b.len))
                break;
            list[k - 1] = b;
            list[k] = a;
        }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].len + 1 >= KEY_MAX - used)
            return false;
        memcpy(key + used, list[i].ptr, list[i].len);
        used += list[i].len;
        key[used++] = ' ';
    }
    key[used] = 0;
    return used > 0;
}

/* Does the name match the pattern, with a number in place of %d? */
static bool fits_pattern(onx_str pattern, onx_str name, onx_str *number)
{
    const char *at = pattern.len ? memmem(pattern.ptr, pattern.len, "%d", 2) : NULL;
    if (!at || name.len < pattern.len - 1)
        return false;
    const size_t before = (size_t)(at - pattern.ptr), behind = pattern.len - before - 2;
    *number = onx_str_make(name.ptr + before, name.len - before - behind);
    return memcmp(name.ptr, pattern.ptr, before) == 0 &&
           memcmp(onxi_str_end(name) - behind, onxi_str_end(pattern) - behind, behind) == 0 &&
           word_length(number->ptr, onxi_str_end(*number)) == number->len && !is_word(*number->ptr);
}

/* The output that a configuration names for the input. */
static bool is_configured(const onx_generator *g, onx_str input, onx_str output)
{
    static const char *const pairs[][2] = { { "past_key_names", "present_key_names" },
                                            { "past_value_names", "present_value_names" },
                                            { "past_names", "present_names" } };
    const onxi_json *in = onxi_json_get(g->config.decoder, "inputs"),
                    *out = onxi_json_get(g->config.decoder, "outputs");
    onx_str a, b;
    for (size_t i = 0; i < 3; i++)
        if (fits_pattern(onxi_json_text(in, pairs[i][0]), input, &a) &&
            fits_pattern(onxi_json_text(out, pairs[i][1]), output, &b) && onx_str_equal(a, b))
            return true;
    return false;
}

static bool same_kind(const onxi_feed *port, const onx_type *type)
{
    const onx_type_tensor *t = tensor_of(type);
    return t && t->elem_type == (int32_t)port->dtype && (!t->shape || t->shape->dim_count == port->rank);
}

/* The output with the same name apart from its direction, and the same type. */
static onx_status find_pair(onx_generator *g, onxi_feed *port, const char (*keys)[KEY_MAX], bool *taken)
{
    char key[KEY_MAX] = "";
    const bool named = key_of(port->name, key);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < g->output_count; i++) {
            const onx_session_port out = onx_session_output(g->session, i);
            const bool fits = pass == 0 ? is_configured(g, port->name, out.name) : named && strcmp(keys[i], key) == 0;
            if (taken[i] || !fits || !same_kind(port, out.type))
                continue;
            taken[i] = true;
            port->role = ONXI_FEED_CACHE;
            port->output = i;
            g->cache_count++;
            return ONX_OK;
        }
    return ONX_OK;
}

/* Fallback if names do not match: if equally many inputs and outputs of the same types remain, they are paired in
 * order. */
static void pair_by_order(onx_generator *g, bool *taken)
{
    uint32_t ins = 0, outs = 0;
    for (uint32_t i = 0; i < g->port_count; i++)
        ins += g->ports[i].role == ONXI_FEED_NONE;
    for (uint32_t i = 0; i < g->output_count; i++)
        outs += !taken[i];
    if (!ins || ins != outs)
        return;
    for (uint32_t check = 0; check < 2; check++)
        for (uint32_t i = 0, at = 0; i < g->port_count; i++) {
            onxi_feed *port = &g->ports[i];
            if (port->role != ONXI_FEED_NONE)
                continue;
            while (taken[at])
                at++;
            if (!same_kind(port, onx_session_output(g->session, at).type) || port->rank < 2)
                return;
            if (check) {
                port->role = ONXI_FEED_CACHE;
                port->output = at;
                g->cache_count++;
                taken[at] = true;
            } else {
                at++;
            }
        }
}

static onx_status find_caches(onx_generator *g)
{
    char(*keys)[KEY_MAX] = (char(*)[KEY_MAX])onxi_arena_array(g->arena, g->output_count + 1u, KEY_MAX);
    bool *taken = ONXI_ARRAY(g->arena, bool, g->output_count + 1u);
    if (!keys || !taken)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++)
        (void)key_of(onx_session_output(g->session, i).name, keys[i]);
    taken[g->logits] = true;
    for (uint32_t i = 0; i < g->port_count; i++)
        if (g->ports[i].role == ONXI_FEED_NONE && g->ports[i].rank > 1)
            ONX_TRY(find_pair(g, &g->ports[i], (const char(*)[KEY_MAX])keys, taken));
    pair_by_order(g, taken);
    return ONX_OK;
}

/* ---- caches ---- */

/* Fills sizes that the model leaves open from the configuration. */
static void settle_sizes(const onx_generator *g, onxi_feed *port)
{
    const uint32_t heads = port->rank == 5 ? 2 : 1, last = port->rank - 1;
    double n;
    if (port->rank < 4)
        return;
    if (port->dims[heads] < 0 && heads != port->axis &&
        (n = onxi_json_number(g->config.decoder, "num_key_value_heads", -1)) > 0)
        port->dims[heads] = (int64_t)n;
    if (port->dims[last] < 0 && (n = onxi_json_number(g->config.decoder, "head_size", -1)) > 0)
        port->dims[last] = (int64_t)n;
}

/* The axis that counts tokens: the open one; if several are open, the axis of keys in [batch, heads, keys, size]. */
static onx_status settle_cache(onx_generator *g, uint32_t index)
{
    onxi_feed *port = &g->ports[index];
    const onxi_run_graph *graph = g->session->s.main;
    const uint32_t batch = port->rank == 5 && port->dims[0] == 2 ? 1 : 0,
                   usual = port->rank > 3 ? port->rank - 2 : port->rank - 1;
    uint32_t open = 0, output;
    if (port->dims[batch] < 0)
        port->dims[batch] = 1;
    port->axis = usual;
    for (uint32_t i = port->rank; i-- > batch + 1;)
        if (port->dims[i] < 0) {
            open++;
            if (port->dims[usual] >= 0)
                port->axis = i;
        }
    port->updated = onxi_run_cache_output(graph, index, &output) && output == port->output;
    port->kind = !open ? ONXI_CACHE_FIXED : port->updated ? ONXI_CACHE_ROOM : ONXI_CACHE_GROWS;
    if (port->dims[port->axis] == 0 && !port->updated) /* the model was exported with an empty past, but the axis still
                                                        * grows */
        port->kind = ONXI_CACHE_GROWS;
    settle_sizes(g, port);
    for (uint32_t i = 0; i < port->rank; i++)
        if (port->dims[i] < 0 && (i != port->axis || port->kind == ONXI_CACHE_FIXED))
            return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                             "dimension %u of the cache \"%.*s\" is open, and nothing says how large it is", i,
                             ONX_ARG(port->name));
    if (port->dims[batch] != 1)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "the cache \"%.*s\" is for %lld sequences at a time, not one", ONX_ARG(port->name),
                         (long long)port->dims[batch]);
    if (port->kind == ONXI_CACHE_FIXED && port->rank > 3 && (uint64_t)port->dims[port->axis] < g->limit)
        g->limit = (uint64_t)port->dims[port->axis];
    return ONX_OK;
}

/* ---- masks ---- */

/* Do all nodes that read the mask only count its ones or its elements? Then it may extend beyond the last token. */
static bool is_counted(const onxi_run_graph *g, uint32_t slot, uint32_t depth)
{
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        bool reads = false;
        for (uint32_t k = 0; k < op->input_count + op->capture_count; k++)
            reads |= op->inputs[k] == slot;
        if (!reads)
            continue;
        if (op->id == ONXI_ID_Cast && depth && op->output_count == 1) {
            if (!is_counted(g, op->outputs[0], depth - 1))
                return false;
        } else if (op->id != ONXI_ID_Shape && op->id != ONXI_ID_ReduceSum) {
            return false;
        }
    }
    return !g->slots[slot].is_output;
}

static void settle_mask(const onx_generator *g, uint32_t index)
{
    onxi_feed *mask = &g->ports[index];
    const onxi_run_graph *graph = g->session->s.main;
    const onx_str name = mask->rank ? mask->dim_names[mask->rank - 1] : (onx_str){ 0 };
    bool fixed = false, room = false, alike = false;
    for (uint32_t i = 0; i < g->port_count; i++) {
        const onxi_feed *cache = &g->ports[i];
        if (cache->role != ONXI_FEED_CACHE)
            continue;
        fixed |= cache->kind == ONXI_CACHE_FIXED && cache->rank > 3;
        room |= cache->kind == ONXI_CACHE_ROOM;
        alike |= cache->kind == ONXI_CACHE_ROOM && name.len && onx_str_equal(cache->dim_names[cache->axis], name);
    }
    mask->whole = fixed || alike || (room && is_counted(graph, graph->inputs[index], 2));
}

/* ---- all ports ---- */

static onx_status find_logits(onx_generator *g)
{
    onx_str wanted = onxi_json_text(onxi_json_get(g->config.decoder, "outputs"), "logits");
    if (!wanted.len)
        wanted = onx_str_of("logits");
    if (onx_session_find_output(g->session, wanted, &g->logits))
        return ONX_OK;
    /* The first output that may be [batch, tokens, vocabulary] or [batch, vocabulary]. */
    for (g->logits = 0; g->logits < g->output_count; g->logits++) {
        const onx_type_tensor *t = tensor_of(onx_session_output(g->session, g->logits).type);
        if (t && onx_dtype_class_of(t->elem_type) == ONX_CLASS_FLOATING &&
            (!t->shape || t->shape->dim_count == 2 || t->shape->dim_count == 3))
            return ONX_OK;
    }
    return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "no output of the model may be scores of tokens");
}

/* The input with the token ids: by name, or the only integer matrix without another role. */
static onx_status find_ids(onx_generator *g)
{
    onxi_feed *found = NULL;
    for (uint32_t i = 0; i < g->port_count; i++)
        if (g->ports[i].role == ONXI_FEED_IDS)
            found = found ? found : &g->ports[i];
    for (uint32_t i = 0; !found && i < g->port_count; i++) {
        onxi_feed *port = &g->ports[i];
        if (port->role == ONXI_FEED_NONE && port->rank == 2 && (port->dtype == ONX_INT64 || port->dtype == ONX_INT32)) {
            found = port;
            port->role = ONXI_FEED_IDS;
        }
    }
    if (!found)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "no input of the model takes the ids of tokens");
    if (found->rank != 2 && found->rank != 1)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the ids of tokens have rank %u, not 2", found->rank);
    if (found->rank == 2 && found->dims[0] > 1)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the model is for %lld sequences at a time, not one",
                         (long long)found->dims[0]);
    const int64_t fixed = found->dims[found->rank - 1];
    g->step = fixed > 0 ? (uint64_t)fixed : 0;
    return ONX_OK;
}

onx_status onxi_generate_ports(onx_generator *g)
{
    for (uint32_t i = 0; i < g->port_count; i++)
        ONX_TRY(read_port(g, i));
    ONX_TRY(find_logits(g));
    ONX_TRY(find_ids(g));
    ONX_TRY(find_caches(g));
    for (uint32_t i = 0; i < g->port_count; i++) {
        if (g->ports[i].role == ONXI_FEED_NONE && onx_session_input(g->session, i).required)
            return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                             "input \"%.*s\" is nothing that a decoder of tokens has, and no output takes its place",
                             ONX_ARG(g->ports[i].name));
        if (g->ports[i].role == ONXI_FEED_CACHE)
            ONX_TRY(settle_cache(g, i));
    }
    for (uint32_t i = 0; i < g->port_count; i++)
        if (g->ports[i].role == ONXI_FEED_MASK)
            settle_mask(g, i);
    if (g->step > 1 && g->cache_count)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the model takes %llu tokens at a time, not one",
                         (unsigned long long)g->step);
    if (g->step && !g->cache_count && g->step < g->limit)
        g->limit = g->step;
    return ONX_OK;
}
