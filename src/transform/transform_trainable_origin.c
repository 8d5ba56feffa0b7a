/* transform_trainable_origin.c - facts that exporters write beside a graph: which initializers are parameters, and
 * which module of the source a node belongs to. */
#include "transform/transform_trainable.h"

#define KIND      "pkg.torch.export.graph_signature.InputSpec.kind"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define FOLDED    "pkg.onnxscript.optimizer.folded_from"
#define SCOPES    "pkg.torch.onnx.name_scopes"

static onx_str property(onx_string_string_entry *const *list, uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (onx_str_is(onx_view(list[i]->key), key))
            return onx_view(list[i]->value);
    return (onx_str){ 0 };
}

static onxi_origin origin_of_kind(onx_str kind)
{
    return onx_str_is(kind, "PARAMETER") ? ONXI_ORIGIN_PARAMETER
           : onx_str_is(kind, "BUFFER")  ? ONXI_ORIGIN_BUFFER
                                         : ONXI_ORIGIN_MADE;
}

static onx_status note(onxi_trainable *t, onx_str name, onxi_origin origin)
{
    onx_bytes kept; /* names outlive the messages that the conversion of the model replaces */
    ONX_TRY(onx_arena_keep(t->arena, name, &kept));
    onxi_dict_entry *entry = onxi_dict_at(&t->origins, onx_view(kept), (uint32_t)origin, NULL);
    if (!entry)
        return ONX_E_MEMORY;
    entry->value = (uint32_t)origin;
    t->marked |= origin == ONXI_ORIGIN_PARAMETER;
    return ONX_OK;
}

/* Takes the next text in single quotes out of *rest. */
static bool quoted(onx_str *rest, onx_str *out)
{
    const char *from = rest->len ? memchr(rest->ptr, '\'', rest->len) : NULL;
    if (!from)
        return false;
    const size_t left = rest->len - (size_t)(from - rest->ptr) - 1;
    const char *end = left ? memchr(from + 1, '\'', left) : NULL;
    if (!end)
        return false;
    *out = onx_str_make(from + 1, (size_t)(end - from - 1));
    *rest = onx_str_make(end + 1, left - out->len - 1);
    return true;
}

/* Lines like "p_fc_weight: PARAMETER target='fc.weight'". */
static onx_status read_signature(onxi_trainable *t, onx_str text)
{
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        onx_str line = onx_str_make(text.ptr, end ? (size_t)(end - text.ptr) : text.len), target;
        text = onx_str_make(text.ptr + line.len + (end != NULL), text.len - line.len - (end != NULL));
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        if (!colon)
            continue;
        onx_str rest = onx_str_make(colon + 1, line.len - (size_t)(colon - line.ptr) - 1);
        while (rest.len && *rest.ptr == ' ')
            rest = onx_str_make(rest.ptr + 1, rest.len - 1);
        const char *space = rest.len ? memchr(rest.ptr, ' ', rest.len) : NULL;
        const onx_str kind = onx_str_make(rest.ptr, space ? (size_t)(space - rest.ptr) : rest.len);
        if (quoted(&rest, &target) && (onx_str_is(kind, "PARAMETER") || onx_str_is(kind, "BUFFER")))
            ONX_TRY(note(t, target, origin_of_kind(kind)));
    }
    return ONX_OK;
}

/* A folded constant is a parameter if it was computed from one. */
static onx_status read_folded(onxi_trainable *t, onx_str name, onx_str list)
{
    onxi_origin origin = ONXI_ORIGIN_MADE;
    onx_str from;
    while (quoted(&list, &from)) {
        const onxi_dict_entry *known = onxi_dict_find(&t->origins, from);
        if (known && known->value == ONXI_ORIGIN_PARAMETER)
            origin = ONXI_ORIGIN_PARAMETER;
        else if (known && known->value == ONXI_ORIGIN_BUFFER && origin == ONXI_ORIGIN_MADE)
            origin = ONXI_ORIGIN_BUFFER;
    }
    return note(t, name, origin);
}

static onx_status each_value(onxi_trainable *t, const char *key,
                             onx_status (*take)(onxi_trainable *t, onx_str name, onx_str value))
{
    const onx_graph *g = t->model->graph;
    for (uint32_t i = 0; i < g->value_info_count; i++) {
        const onx_value_info *v = g->value_info[i];
        const onx_str value = property(v->metadata_props, v->metadata_props_count, key);
        if (value.len)
            ONX_TRY(take(t, onx_view(v->name), value));
    }
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onx_tensor *tensor = g->initializer[i];
        const onx_str value = property(tensor->metadata_props, tensor->metadata_props_count, key);
        if (value.len)
            ONX_TRY(take(t, onx_view(tensor->name), value));
    }
    return ONX_OK;
}

static onx_status take_kind(onxi_trainable *t, onx_str name, onx_str value)
{
    return note(t, name, origin_of_kind(value));
}

onx_status onxi_trainable_origins(onxi_trainable *t)
{
    const onx_graph *g = t->model->graph;
    t->torch = onx_str_is(onx_view(t->model->producer_name), "pytorch");
    ONX_TRY(read_signature(t, property(g->metadata_props, g->metadata_props_count, SIGNATURE)));
    ONX_TRY(each_value(t, KIND, take_kind));
    return each_value(t, FOLDED, read_folded);
}

static bool begins_with(onx_str text, const char *with)
{
    const size_t len = strlen(with);
    return text.len >= len && memcmp(text.ptr, with, len) == 0;
}

/* TorchScript names parameters and buffers as the modules do, and constants that it folds onnx::Operator_N. */
bool onxi_trainable_is_own_name(const onxi_trainable *t, onx_str name)
{
    return t->torch && !t->marked && !begins_with(name, "onnx::") && !begins_with(name, "/");
}

onxi_origin onxi_trainable_origin(const onxi_trainable *t, onx_str name)
{
    const onxi_dict_entry *known = onxi_dict_find(&t->origins, name);
    if (known)
        return (onxi_origin)known->value;
    if (t->marked)
        return ONXI_ORIGIN_MADE;
    return onxi_trainable_is_own_name(t, name) ? ONXI_ORIGIN_STATE : ONXI_ORIGIN_UNKNOWN;
}

/* "layers.0.norm1" of "['', 'layers.0', 'layers.0.norm1', 'layer_norm']": the last entry is the operation. */
static onx_str scope_of_list(onx_str list)
{
    onx_str part, last = { 0 }, before = { 0 };
    bool any = false;
    while (quoted(&list, &part)) {
        before = last;
        last = part;
        any = true;
    }
    return any ? before : (onx_str){ 0 };
}

/* The module of a node named "/layers.0/norm1/LayerNormalization" is "/layers.0/norm1". */
static onx_str scope_of_path(onx_str name)
{
    if (!name.len || *name.ptr != '/')
        return (onx_str){ 0 };
    size_t len = name.len;
    while (len && name.ptr[len - 1] != '/')
        len--;
    return onx_str_make(name.ptr, len > 1 ? len - 1 : len);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The end of "_2" in "/fc_2": TorchScript numbers the calls of a module so. */
static size_t skip_call(onx_str s, size_t at)
{
    size_t end = at + 1;
    while (end < s.len && is_digit(s.ptr[end]))
        end++;
    return s.ptr[at] == '_' && end > at + 1 && (end == s.len || s.ptr[end] == '/') ? end : at;
}

/* A path without such numbers. */
static bool drop_calls(onx_arena *arena, onx_str *path)
{
    size_t len = 0;
    char *to = onx_arena_alloc(arena, path->len + 1);
    if (!to)
        return false;
    for (size_t i = 0; i < path->len;)
        if ((i = skip_call(*path, i)) < path->len)
            to[len++] = path->ptr[i++];
    *path = onx_str_make(to, len);
    return true;
}

bool onxi_trainable_module(onxi_trainable *t, const onx_node *node, onx_str *out)
{
    const onx_node_extra *more = onx_node_more(node);
    const onx_str list = property(more->metadata_props, more->metadata_props_count, SCOPES);
    *out = list.len ? scope_of_list(list) : scope_of_path(onx_view(node->name));
    if (out->len && *out->ptr == '/' && !drop_calls(t->scratch, out))
        return false;
    return list.len || out->len;
}
