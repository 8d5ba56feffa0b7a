/* transform_compress.c - makes a model smaller without changing results: weights with the same bytes are stored once
 * and, on request, weights that are mostly zeros become sparse. */
#include "transform/transform_compress.h"

void onxi_compress_tell(const onxi_compressor *c, const char *rule, onx_str name, const char *text)
{
    const onx_change change = { "compress", onx_str_of(rule), name, onx_str_of(text) };
    if (c->options->changed)
        c->options->changed(c->options->user, &change);
}

/* ---- names that are referred to elsewhere ---- */

static onx_status fix(void *user, onx_bytes *name)
{
    onxi_compressor *c = user;
    return onxi_dict_at(&c->fixed, onx_view(*name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status list_fixed(void *user, const onx_visit *at)
{
    onxi_compressor *c = user;
    if (at->kind == ONX_KIND_VALUE_INFO && at->field && strcmp(at->field, "value_info") != 0)
        return fix(c, &((onx_value_info *)at->message)->name);
    if (at->kind == ONX_KIND_TENSOR_ANNOTATION)
        return fix(c, &((onx_tensor_annotation *)at->message)->tensor_name);
    if (at->kind == ONX_KIND_SHARDING_SPEC)
        return fix(c, &((onx_sharding_spec *)at->message)->tensor_name);
    if (at->kind == ONX_KIND_STRING_STRING_ENTRY && at->parent && at->parent->kind == ONX_KIND_TENSOR_ANNOTATION)
        return fix(c, &((onx_string_string_entry *)at->message)->value);
    if (at->kind == ONX_KIND_NODE)
        return onxi_node_each_named(at->message, fix, c);
    if (at->kind != ONX_KIND_TRAINING_INFO)
        return ONX_OK;
    onx_training_info *info = at->message;
    for (uint32_t i = 0; i < info->initialization_binding_count; i++)
        ONX_TRY(fix(c, &info->initialization_binding[i]->key));
    for (uint32_t i = 0; i < info->update_binding_count; i++)
        ONX_TRY(fix(c, &info->update_binding[i]->key));
    if (info->initialization)
        ONX_TRY(onxi_graph_each_name(c->cx, info->initialization, fix, c));
    return info->algorithm ? onxi_graph_each_name(c->cx, info->algorithm, fix, c) : ONX_OK;
}

/* ---- finding equal weights ---- */

/* Reads block by block, so that the pages of a large file need not stay in memory. */
enum { PIECE = 1 << 20 };

static uint64_t hash_of(const onxi_compressor *c, const onx_tensor *t, onx_str bytes)
{
    uint64_t hash = onx_hash(c->cx, onx_str_make((const char *)t->dims, t->dims_count * sizeof *t->dims),
                             (uint64_t)(uint32_t)t->data_type);
    for (size_t at = 0; at < bytes.len; at += PIECE) {
        const onx_str piece = onx_str_make(bytes.ptr + at, bytes.len - at < PIECE ? bytes.len - at : PIECE);
        hash = onx_hash(c->cx, piece, hash);
        if (c->doc->forget)
            c->doc->forget(c->doc, piece);
    }
    return hash;
}

static bool same_bytes(const onxi_compressor *c, onx_str a, onx_str b)
{
    bool same = a.len == b.len;
    for (size_t at = 0; same && at < a.len; at += PIECE) {
        const size_t n = a.len - at < PIECE ? a.len - at : PIECE;
        same = memcmp(a.ptr + at, b.ptr + at, n) == 0;
        if (c->doc->forget) {
            c->doc->forget(c->doc, onx_str_make(a.ptr + at, n));
            c->doc->forget(c->doc, onx_str_make(b.ptr + at, n));
        }
    }
    return same;
}

bool onxi_compress_may_change(const onxi_compressor *c, const onx_tensor *t)
{
    uint64_t count, size;
    return onx_view(t->name).len && !onxi_dict_find(&c->fixed, onx_view(t->name)) && t->data_type != ONX_STRING &&
           onx_tensor_count(t, &count) && onx_dtype_size(t->data_type, count, &size) && size > 0;
}

static onx_status rename_to(onxi_compressor *c, onx_bytes from, onx_bytes to)
{
    onxi_dict_entry *entry = onxi_dict_at(&c->renamed, onx_view(from), c->renamed.count, NULL);
    if (!entry || !ONXI_GROW_IN(c->scratch, c->to, c->to_room, c->renamed.count))
        return ONX_E_MEMORY;
    c->to[entry->value] = to;
    return ONX_OK;
}

/* Only within one graph: in other graphs the name may have another meaning. */
static onx_status share(onxi_compressor *c, onx_graph *g)
{
    onxi_dict hashes = onxi_dict_in_arena(c->scratch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        onx_tensor *t = g->initializer[i];
        onx_str bytes, other;
        bool made = true;
        uint64_t *hash = ONXI_NEW(c->scratch, uint64_t);
        if (!hash)
            return ONX_E_MEMORY;
        if (!onxi_compress_may_change(c, t)) {
            g->initializer[kept++] = t;
            continue;
        }
        ONX_TRY(onx_tensor_bytes(c->doc, t, &bytes));
        *hash = hash_of(c, t, bytes);
        onxi_dict_entry *entry = onxi_dict_at(&hashes, onx_str_make((const char *)hash, sizeof *hash), kept, &made);
        if (!entry)
            return ONX_E_MEMORY;
        const onx_tensor *first = made ? NULL : g->initializer[entry->value];
        if (first && first->data_type == t->data_type && first->dims_count == t->dims_count &&
            onxi_same_dims(first->dims, t->dims, t->dims_count)) {
            ONX_TRY(onx_tensor_bytes(c->doc, first, &other));
            if (same_bytes(c, bytes, other)) {
                ONX_TRY(rename_to(c, t->name, first->name));
                onxi_compress_tell(c, "share", onx_view(t->name),
                                   "is stored once, together with another weight of the same bytes");
                continue;
            }
        }
        g->initializer[kept++] = t;
    }
    g->initializer_count = kept;
    return ONX_OK;
}

/* ---- renaming in readers of removed weights ---- */

static onx_status rename_use(void *user, const onx_visit *at)
{
    const onxi_compressor *c = user;
    onx_node *n = at->message;
    for (uint32_t i = 0; at->kind == ONX_KIND_NODE && i < n->input_count; i++) {
        const onxi_dict_entry *entry =
            onx_view(n->input[i]).len ? onxi_dict_find(&c->renamed, onx_view(n->input[i])) : NULL;
        if (entry)
            n->input[i] = c->to[entry->value];
    }
    return ONX_OK;
}

static onx_status run(onxi_compressor *c)
{
    onx_graph *g = c->model->graph;
    if (!g)
        return ONX_OK;
    ONX_TRY(onx_message_walk(c->cx, ONX_KIND_MODEL, c->model, list_fixed, c));
    ONX_TRY(share(c, g));
    if (c->renamed.count)
        ONX_TRY(onx_message_walk(c->cx, ONX_KIND_GRAPH, g, rename_use, c));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->value_info_count; i++)
        if (!onxi_dict_find(&c->renamed, onx_view(g->value_info[i]->name)))
            g->value_info[kept++] = g->value_info[i];
    g->value_info_count = kept;
    return c->options->sparse ? onxi_compress_sparse(c, g) : ONX_OK;
}

static onx_status compress(onx_ctx *cx, onx_doc *doc, const onx_compress_options *options)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *scratch;
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(onxi_doc_warn_of_cycle(doc, ONXI_CYCLE_STAYS));
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_compressor c = { .cx = cx,
                          .doc = doc,
                          .arena = onx_doc_arena(doc),
                          .scratch = scratch,
                          .model = model,
                          .options = options,
                          .fixed = onxi_dict_in_arena(scratch),
                          .renamed = onxi_dict_in_arena(scratch) };
    const onx_status status = run(&c);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_compress(onx_ctx *cx, onx_doc *doc, const onx_compress_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_compress_options, own, options);
    ONXI_TRANSFORM(cx, doc, compress(cx, doc, &own));
}
