/* shard_apart.c - splits packed columns: when queries, keys and values are concatenated in the columns of one value,
 * they cannot be split by heads. In a model that is to be annotated, the product that computes them is replaced by
 * three, each with its columns of the weights, and so are additions to the result. */
#include "shard/shard_apart.h"

#include <onx/tensor.h>

#include "transform/transform.h"
#include "value/value.h"

enum { DEPTH_MAX = 8 /* maximum number of nodes after the product */ };

/* ---- queries ---- */

static onx_status count_read(onxi_unfolder *u, onx_str name, uint32_t times)
{
    onxi_dict_entry *e = name.len ? onxi_dict_at(&u->reads, name, 0, NULL) : NULL;
    if (e && e->value < UINT32_MAX / 2)
        e->value += times;
    return e || !name.len ? ONX_OK : ONX_E_MEMORY;
}

static onx_status count_inside(void *user, onx_bytes *name)
{
    return count_read(user, onx_view(*name), 2); /* whatever it is there: it stays as it is */
}

static onx_status list_ranks(onxi_unfolder *u, onx_value_info *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onx_str name = onx_view(values[i]->name);
        const onx_type *type = values[i]->type;
        if (name.len && type && ONX_HAS(type, type, tensor_type) && type->tensor_type->shape &&
            !onxi_dict_at(&u->ranks, name, type->tensor_type->shape->dim_count, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

onx_status onxi_apart_open(onxi_unfolder *u)
{
    const onx_graph *g = u->graph;
    u->reads = onxi_dict_in_arena(u->scratch);
    u->makers = onxi_dict_in_arena(u->scratch);
    u->gone = onxi_dict_in_arena(u->scratch);
    u->ranks = onxi_dict_in_arena(u->scratch);
    ONX_TRY(list_ranks(u, g->input, g->input_count));
    ONX_TRY(list_ranks(u, g->value_info, g->value_info_count));
    u->instead = (onxi_apart_list *)ONXI_ARRAY(u->scratch, onxi_apart_list, (size_t)g->node_count + 1);
    if (!u->instead)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(count_read(u, onx_view(g->output[i]->name), 2));
    for (uint32_t i = 0; i < g->input_count; i++)
        ONX_TRY(count_read(u, onx_view(g->input[i]->name), 2));
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *n = g->node[i];
        for (uint32_t k = 0; k < n->input_count; k++)
            ONX_TRY(count_read(u, onx_view(n->input[k]), 1));
        for (uint32_t k = 0; k < n->attribute_count; k++) {
            const onx_attribute *a = n->attribute[k];
            uint32_t count = 0;
            onx_graph *const *graphs = onx_attribute_value(a, ONX_SLOT_GRAPHS, &count);
            if (a->slot == ONX_SLOT_G && a->g)
                ONX_TRY(onxi_graph_each_name(u->cx, a->g, count_inside, u));
            for (uint32_t j = 0; graphs && j < count; j++)
                ONX_TRY(onxi_graph_each_name(u->cx, graphs[j], count_inside, u));
        }
        if (n->output_count && onx_view(n->output[0]).len && !onxi_dict_at(&u->makers, onx_view(n->output[0]), i, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Does it have a single reader? */
static bool is_read_once(const onxi_unfolder *u, onx_str name)
{
    const onxi_dict_entry *e = name.len ? onxi_dict_find(&u->reads, name) : NULL;
    return e && e->value == 1;
}

onx_tensor *onxi_apart_tensor(const onxi_unfolder *u, const onx_node *node, uint32_t i)
{
    const onx_str name = i < node->input_count ? onx_view(node->input[i]) : onx_str_of("");
    const onxi_dict_entry *at = is_read_once(u, name) ? onxi_dict_find(&u->tensors, name) : NULL;
    onx_tensor *t = at ? u->graph->initializer[at->value] : NULL;
    uint64_t count, size;
    const bool sized = t && t->data_type != ONX_STRING && onxi_element_size(t->data_type) &&
                       onx_tensor_count(t, &count) && onx_dtype_size(t->data_type, count, &size) && size;
    return sized ? t : NULL; /* of elements that fill bytes */
}

const onx_node *onxi_apart_at(const onxi_unfolder *u, uint32_t node)
{
    return u->graph->node[node];
}

/* ---- can the columns be split? ---- */

typedef struct maker {
    uint32_t node;
    onxi_apart_columns columns;
} maker;

static bool can_cut(const onxi_unfolder *u, const onx_node *node, uint32_t i, const onxi_apart_columns *c)
{
    const onx_tensor *t = onxi_apart_tensor(u, node, i);
    const uint32_t axis = (uint32_t)c->axis[i];
    return t && axis < t->dims_count && t->dims[axis] % c->count == 0;
}

/* The node that computes the value, if it has no other reader and its columns are those of its weights. */
static bool find_maker(const onxi_unfolder *u, onx_str name, uint32_t depth, maker *out)
{
    const onxi_dict_entry *at = is_read_once(u, name) ? onxi_dict_find(&u->makers, name) : NULL;
    const onx_node *node = at ? u->graph->node[at->value] : NULL;
    if (!node || depth >= DEPTH_MAX || node->output_count != 1 || node->input_count > ONXI_APART_INPUTS ||
        u->instead[at->value].first)
        return false;
    const onxi_bound *bound = onxi_bind(u->binder, node);
    const onxi_split_row *row = bound && bound->kind == ONXI_BOUND_OPERATOR ? onxi_split_row_find(bound->op) : NULL;
    out->node = at->value;
    out->columns = (onxi_apart_columns){ .through = ONXI_SHARD_NONE };
    memset(out->columns.axis, -1, sizeof out->columns.axis);
    if (!row || !row->columns || !row->columns(u, bound, node, &out->columns))
        return false;
    onxi_apart_columns *c = &out->columns;
    if (c->through != ONXI_SHARD_NONE) {
        maker before;
        if (!find_maker(u, onx_view(node->input[c->through]), depth + 1, &before))
            return false;
        c->count = before.columns.count;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (c->count < 1 || (c->axis[i] >= 0 && onx_view(node->input[i]).len && !can_cut(u, node, i, c)))
            return false;
    return true;
}

int64_t onxi_apart_count(const onxi_unfolder *u, onx_bytes name)
{
    maker m;
    return find_maker(u, onx_view(name), 0, &m) ? m.columns.count : 0;
}

/* ---- the columns that ONNX operators compute ---- */

bool onxi_apart_of_product(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node,
                           onxi_apart_columns *out)
{
    const onx_tensor *w = onxi_apart_tensor(u, node, 1);
    (void)bound;
    if (!w || w->dims_count != 2)
        return false;
    out->count = w->dims[1];
    out->axis[1] = 1;
    return true;
}

bool onxi_apart_of_gemm(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out)
{
    const onx_tensor *w = onxi_apart_tensor(u, node, 1), *c = onxi_apart_tensor(u, node, 2);
    if (!w || w->dims_count != 2)
        return false;
    out->axis[1] = onxi_bind_int(bound, node, "transB") ? 0 : 1;
    out->count = w->dims[out->axis[1]];
    if (node->input_count > 2 && onx_view(node->input[2]).len)
        out->axis[2] = (int8_t)(c && c->dims_count == 2 ? 1 : 0);
    return true;
}

/* Addition of a value with the same columns, or a scalar, to the result of a product. */
bool onxi_apart_of_sum(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out)
{
    (void)bound;
    for (uint32_t i = 0; i < 2 && node->input_count == 2; i++) {
        const onx_tensor *t = onxi_apart_tensor(u, node, i);
        if (!t || !t->dims_count || t->dims_count > 3)
            continue;
        out->axis[i] = (int8_t)(t->dims_count - 1);
        out->through = 1 - i;
        return true;
    }
    return false;
}

/* ---- parts of weights ---- */

static onx_status new_name(onxi_unfolder *u, onx_bytes base, onx_bytes *out)
{
    onx_str name;
    bool made = false;
    while (!made) {
        name = onxi_arena_printf(onx_doc_arena(u->doc), "%.*s.%u", ONX_ARG(onx_view(base)), ++u->named);
        if (!name.ptr || !onxi_dict_at(&u->names, name, 0, &made))
            return ONX_E_MEMORY;
    }
    return onx_arena_refer(onx_doc_arena(u->doc), name, out);
}

/* A slice of the external data of the whole tensor, if it is contiguous there. */
static onx_status refer_to_file(onxi_unfolder *u, const onx_tensor *from, uint64_t start, uint64_t size, onx_tensor *to,
                                bool *done)
{
    onx_arena *arena = onx_doc_arena(u->doc);
    onxi_external_ref ref;
    onxi_external_fault fault;
    *done = ONX_HAS(tensor, from, data_location) && from->data_location == ONX_DATA_EXTERNAL &&
            onxi_external_parse(from, &ref, &fault) && onxi_add_u64(ref.offset, start, &start);
    if (!*done)
        return ONX_OK;
    const struct {
        const char *key;
        onx_str value;
    } entries[] = { { "location", ref.location },
                    { "offset", onxi_arena_printf(arena, "%llu", (unsigned long long)start) },
                    { "length", onxi_arena_printf(arena, "%llu", (unsigned long long)size) } };
    ONX_SET(tensor, to, data_location, ONX_DATA_EXTERNAL);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        onx_string_string_entry *e = ONX_ADD(arena, to, external_data, STRING_STRING_ENTRY);
        if (!e || !entries[i].value.ptr || onx_arena_keep(arena, onx_str_of(entries[i].key), &e->key) != ONX_OK ||
            onx_arena_keep(arena, entries[i].value, &e->value) != ONX_OK)
            return ONX_E_MEMORY;
        e->has |= onx_string_string_entry_has_key | onx_string_string_entry_has_value;
    }
    return ONX_OK;
}

/* `size` of its `count` columns along the axis, from `start` on. */
static onx_status cut(onxi_unfolder *u, const onx_tensor *t, uint32_t axis, int64_t count, int64_t start, int64_t size,
                      onx_bytes *name)
{
    onx_arena *arena = onx_doc_arena(u->doc);
    onx_tensor *part = onx_message_new(arena, ONX_KIND_TENSOR);
    uint64_t inner = onxi_element_size(t->data_type), outer = 1;
    onx_str all;
    bool done = false;
    if (!part || !(part->dims = onxi_arena_array(arena, (size_t)onxi_list_room(t->dims_count), sizeof *part->dims)))
        return ONX_E_MEMORY;
    onxi_copy_dims(part->dims, t->dims, t->dims_count);
    part->dims_count = t->dims_count;
    part->dims[axis] = t->dims[axis] / count * size;
    for (uint32_t i = 0; i < t->dims_count; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? (uint64_t)(t->dims[axis] / count) : (uint64_t)t->dims[i];
    const uint64_t run = inner * (uint64_t)size, pitch = inner * (uint64_t)count, first = inner * (uint64_t)start;
    ONX_SET(tensor, part, data_type, t->data_type);
    ONX_TRY(new_name(u, t->name, name));
    ONX_SET(tensor, part, name, *name);
    if (!onx_graph_add_initializer(arena, u->graph, part))
        return ONX_E_MEMORY;
    if (outer == 1)
        ONX_TRY(refer_to_file(u, t, first, run, part, &done));
    if (done)
        return ONX_OK;
    ONX_TRY(onx_tensor_bytes(u->doc, t, &all)); /* as many as the dims require, or an error */
    part->has |= onx_tensor_has_raw_data;
    if (outer == 1)
        return onx_arena_refer(arena, onx_str_make(all.ptr + first, (size_t)run), &part->raw_data);
    char *bytes = onxi_arena_array(arena, (size_t)outer, (size_t)run);
    for (uint64_t i = 0; bytes && i < outer; i++)
        memcpy(bytes + i * run, all.ptr + i * pitch + first, (size_t)run);
    return bytes ? onx_arena_refer(arena, onx_str_make(bytes, (size_t)(outer * run)), &part->raw_data) : ONX_E_MEMORY;
}

onx_status onxi_apart_cut(onxi_unfolder *u, const onx_tensor *t, const int64_t size[ONXI_APART],
                          onx_bytes out[ONXI_APART])
{
    int64_t start = 0;
    for (uint32_t k = 0; k < ONXI_APART; start += size[k++])
        ONX_TRY(cut(u, t, t->dims_count - 1, t->dims[t->dims_count - 1], start, size[k], &out[k]));
    return ONX_OK;
}

/* ---- replacing nodes ---- */

onx_status onxi_apart_put(onxi_unfolder *u, uint32_t at, onx_node *node)
{
    onxi_apart_list *list = &u->instead[at];
    onxi_apart_node *n = ONXI_NEW(u->scratch, onxi_apart_node);
    if (!n)
        return ONX_E_MEMORY;
    n->node = node;
    *(list->first ? &list->last->next : &list->first) = n;
    list->last = n;
    return ONX_OK;
}

onx_status onxi_apart_copy(onxi_unfolder *u, uint32_t node, uint32_t room, onx_node **out)
{
    onx_arena *arena = onx_doc_arena(u->doc);
    void *copy;
    ONX_TRY(onx_message_copy(arena, ONX_KIND_NODE, u->graph->node[node], &copy));
    onx_node *n = copy;
    onx_bytes *in = onxi_arena_array(arena, (size_t)onxi_list_room(room + n->input_count), sizeof *in);
    if (!in)
        return ONX_E_MEMORY;
    memset(in, 0, ((size_t)room + n->input_count) * sizeof *in);
    for (uint32_t k = 0; k < n->input_count; k++)
        in[k] = n->input[k];
    n->input = in;
    n->input_count = n->input_count < room ? room : n->input_count;
    *out = n;
    return onxi_apart_put(u, node, n);
}

onx_status onxi_apart_binary(onxi_unfolder *u, uint32_t at, const char *op, onx_bytes a, onx_bytes b, onx_bytes *out)
{
    onx_arena *arena = onx_doc_arena(u->doc);
    onx_node *n = onx_message_new(arena, ONX_KIND_NODE);
    if (!n || onx_arena_keep(arena, onx_str_of(op), &n->op_type) != ONX_OK ||
        !(n->input = onxi_arena_array(arena, (size_t)onxi_list_room(2), sizeof *n->input)) ||
        !(n->output = onxi_arena_array(arena, (size_t)onxi_list_room(1), sizeof *n->output)))
        return ONX_E_MEMORY;
    n->has |= onx_node_has_op_type;
    n->input[0] = a;
    n->input[1] = b;
    n->input_count = 2;
    n->output_count = 1;
    ONX_TRY(new_name(u, u->graph->node[at]->output[0], &n->output[0]));
    *out = n->output[0];
    return onxi_apart_put(u, at, n);
}

onx_status onxi_apart_rename(const onxi_unfolder *u, onx_node *node, const char *op)
{
    return onx_arena_keep(onx_doc_arena(u->doc), onx_str_of(op), &node->op_type);
}

void onxi_apart_drop(onx_node *node, const char *attribute)
{
    const onx_attribute *a = onx_node_attribute(node, attribute);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i] != a)
            node->attribute[kept++] = node->attribute[i];
    node->attribute_count = kept;
}

uint32_t onxi_apart_rank(const onxi_unfolder *u, onx_bytes name)
{
    const onxi_dict_entry *e = onxi_dict_find(&u->ranks, onx_view(name));
    return e ? e->value : UINT32_MAX;
}

/* A copy of the node with some of the columns. */
static onx_status copy_part(onxi_unfolder *u, const maker *m, int64_t start, int64_t size, onx_bytes through,
                            onx_bytes *out)
{
    onx_arena *arena = onx_doc_arena(u->doc);
    const onx_node *node = u->graph->node[m->node];
    const onxi_apart_columns *c = &m->columns;
    void *copy;
    ONX_TRY(onx_message_copy(arena, ONX_KIND_NODE, node, &copy));
    onx_node *n = copy;
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (i == c->through)
            n->input[i] = through;
        else if (c->axis[i] >= 0 && onx_view(n->input[i]).len)
            ONX_TRY(cut(u, onxi_apart_tensor(u, node, i), (uint32_t)c->axis[i], c->count, start, size, &n->input[i]));
    }
    if (c->attribute) {
        onx_attribute *a = (onx_attribute *)(uintptr_t)onx_node_attribute(n, c->attribute);
        if (!a)
            return ONX_E_INVALID;
        ONX_SET(attribute, a, i, size);
    }
    if (onx_view(n->name).len)
        ONX_TRY(new_name(u, node->name, &n->name));
    ONX_TRY(new_name(u, node->output[0], &n->output[0]));
    *out = n->output[0];
    return onxi_apart_put(u, m->node, n);
}

static onx_status make_apart(onxi_unfolder *u, onx_str name, uint32_t depth, const int64_t size[ONXI_APART],
                             onx_bytes out[ONXI_APART])
{
    maker m;
    onx_bytes before[ONXI_APART] = { { 0 } };
    int64_t start = 0;
    if (!find_maker(u, name, depth, &m))
        return ONX_E_INVALID; /* which was asked before */
    if (m.columns.through != ONXI_SHARD_NONE)
        ONX_TRY(make_apart(u, onx_view(u->graph->node[m.node]->input[m.columns.through]), depth + 1, size, before));
    for (uint32_t k = 0; k < ONXI_APART; start += size[k++])
        ONX_TRY(copy_part(u, &m, start, size[k], before[k], &out[k]));
    return ONX_OK;
}

onx_status onxi_apart_make(onxi_unfolder *u, onx_bytes name, const int64_t size[ONXI_APART], onx_bytes out[ONXI_APART])
{
    return make_apart(u, onx_view(name), 0, size, out);
}

/* ---- removing the replaced nodes ---- */

static onx_status note_gone(onxi_unfolder *u, onx_bytes name)
{
    return onxi_dict_at(&u->gone, onx_view(name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* A replacement reads or computes it. */
static void note_kept(onxi_unfolder *u, onx_bytes name)
{
    onxi_dict_entry *e = onxi_dict_find(&u->gone, onx_view(name));
    if (e)
        e->value = 1;
}

static bool is_gone(const onxi_unfolder *u, onx_bytes name)
{
    const onxi_dict_entry *e = onxi_dict_find(&u->gone, onx_view(name));
    return e && !e->value;
}

/* The operands of replaced nodes, unless other nodes read or compute them. */
static onx_status list_gone(onxi_unfolder *u, const onx_node *node)
{
    for (uint32_t k = 0; k < node->input_count; k++)
        if (onxi_apart_tensor(u, node, k))
            ONX_TRY(note_gone(u, node->input[k]));
    for (uint32_t k = 0; k < node->output_count; k++)
        if (is_read_once(u, onx_view(node->output[k])))
            ONX_TRY(note_gone(u, node->output[k]));
    return ONX_OK;
}

static void drop_gone(const onxi_unfolder *u)
{
    onx_graph *g = u->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!is_gone(u, g->initializer[i]->name))
            g->initializer[kept++] = g->initializer[i];
    g->initializer_count = kept;
    for (uint32_t i = kept = 0; i < g->value_info_count; i++)
        if (!is_gone(u, g->value_info[i]->name))
            g->value_info[kept++] = g->value_info[i];
    g->value_info_count = kept;
}

onx_status onxi_apart_close(onxi_unfolder *u)
{
    onx_graph *g = u->graph;
    onx_arena *arena = onx_doc_arena(u->doc);
    uint64_t count = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onxi_apart_node *n = u->instead[i].first;
        if (n)
            ONX_TRY(list_gone(u, g->node[i]));
        for (count += !n; n; n = n->next)
            count++;
    }
    onx_node **list = count > UINT32_MAX / 2
                          ? NULL
                          : onxi_arena_array(arena, (size_t)onxi_list_room((uint32_t)count + 1), sizeof *list);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onxi_apart_node *n = u->instead[i].first;
        if (!n)
            list[kept++] = g->node[i];
        for (; n; n = n->next) {
            list[kept++] = n->node;
            for (uint32_t k = 0; k < n->node->input_count; k++)
                note_kept(u, n->node->input[k]);
            for (uint32_t k = 0; k < n->node->output_count; k++)
                note_kept(u, n->node->output[k]);
        }
    }
    g->node = list;
    g->node_count = kept;
    drop_gone(u);
    return ONX_OK;
}
