/* transform_halve_write.c - writes the model with the new types: nodes, Casts, weights, and declared types. Messages
 * are copied before they are changed, because expanded functions share them. */
#include "transform/transform_halve.h"

#include <stdio.h>

/* ---- types ---- */

static onx_status retype(onxi_halver *h, onx_type **place, unsigned depth)
{
    const onx_type *old = *place;
    onx_type *t = *place = ONXI_NEW(h->arena, onx_type);
    if (!t)
        return ONX_E_MEMORY;
    *t = *old;
    if (ONX_HAS(type, t, tensor_type)) {
        if (!(t->tensor_type = ONXI_NEW(h->arena, onx_type_tensor)))
            return ONX_E_MEMORY;
        *t->tensor_type = *old->tensor_type;
        ONX_SET(type_tensor, t->tensor_type, elem_type, (int32_t)h->to);
    } else if (ONX_HAS(type, t, sparse_tensor_type)) {
        if (!(t->sparse_tensor_type = ONXI_NEW(h->arena, onx_type_sparse_tensor)))
            return ONX_E_MEMORY;
        *t->sparse_tensor_type = *old->sparse_tensor_type;
        ONX_SET(type_sparse_tensor, t->sparse_tensor_type, elem_type, (int32_t)h->to);
    } else if (ONX_HAS(type, t, sequence_type) && depth < 8) {
        if (!(t->sequence_type = ONXI_NEW(h->arena, onx_type_sequence)))
            return ONX_E_MEMORY;
        *t->sequence_type = *old->sequence_type;
        return t->sequence_type->elem_type ? retype(h, &t->sequence_type->elem_type, depth + 1) : ONX_OK;
    } else if (ONX_HAS(type, t, optional_type) && depth < 8) {
        if (!(t->optional_type = ONXI_NEW(h->arena, onx_type_optional)))
            return ONX_E_MEMORY;
        *t->optional_type = *old->optional_type;
        return t->optional_type->elem_type ? retype(h, &t->optional_type->elem_type, depth + 1) : ONX_OK;
    }
    return ONX_OK;
}

static onx_status retype_info(onxi_halver *h, onx_value_info **place)
{
    onx_value_info *copy = ONXI_NEW(h->arena, onx_value_info);
    if (!copy)
        return ONX_E_MEMORY;
    *copy = **place;
    *place = copy;
    if (!ONX_HAS(value_info, copy, type) || !onxi_halve_source(h, copy->type))
        return ONX_OK;
    return retype(h, &copy->type, 0);
}

static onx_status retype_list(onxi_halver *h, const onxi_halve_scope *scope, onx_value_info **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onxi_dict_entry *entry = onxi_dict_find(&scope->values, onx_view(list[i]->name));
        const onxi_halve_value *v = entry ? &h->value[entry->value] : NULL;
        /* The name of a renamed value now refers to its Cast. */
        if (v && v->from && v->changes == (v->now.bits == v->name.bits))
            ONX_TRY(retype_info(h, &list[i]));
    }
    return ONX_OK;
}

/* The output of a removed Cast has no declared type any more. */
static void drop_infos(onxi_halver *h, onxi_halve_scope *scope)
{
    onx_graph *g = scope->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->value_info_count; i++) {
        const onxi_dict_entry *entry = onxi_dict_find(&scope->values, onx_view(g->value_info[i]->name));
        if (!entry || !h->value[entry->value].dropped)
            g->value_info[kept++] = g->value_info[i];
    }
    g->value_info_count = kept;
}

/* ---- weights ---- */

static onx_status tell(onxi_halver *h, const char *rule, onx_str path, const char *text)
{
    const onx_change change = { "precision", onx_str_of(rule), path, onx_str_of(text) };
    if (h->options->changed)
        h->options->changed(h->options->user, &change);
    return ONX_OK;
}

enum { MOST_TOLD = 8 };

static void tell_loss(onxi_halver *h, onx_str path, const onxi_weight_loss *loss)
{
    char text[160];
    if (loss->clamped && ++h->clamped <= MOST_TOLD)
        onxi_warn(h->cx, ONX_WARNING, NULL, ONXI_AT_PATH(path),
                  "%llu of %llu elements are beyond the range of %s, and become %g", (unsigned long long)loss->clamped,
                  (unsigned long long)loss->count, onx_dtype_name((int64_t)h->to), onxi_float_largest(h->to));
    if (loss->zeroed || loss->raised) {
        (void)snprintf(text, sizeof text, "%llu of %llu elements are too small for %s and become %s",
                       (unsigned long long)(loss->zeroed + loss->raised), (unsigned long long)loss->count,
                       onx_dtype_name((int64_t)h->to), loss->zeroed ? "zero" : "its smallest number");
        (void)tell(h, loss->zeroed ? "underflow" : "raise", path, text);
    }
    h->loss.count += loss->count;
    h->loss.zeroed += loss->zeroed;
    h->loss.coarse += loss->coarse;
}

/* Most models have a few harmless weights like this, so they are reported together. */
static void tell_small(onxi_halver *h)
{
    if (h->clamped > MOST_TOLD)
        onxi_warn(h->cx, ONX_WARNING, NULL, ONXI_NOWHERE, "%u more weights have elements beyond the range of %s",
                  h->clamped - MOST_TOLD, onx_dtype_name((int64_t)h->to));
    if (h->loss.zeroed || h->loss.coarse)
        onxi_warn(
            h->cx, ONX_NOTE, NULL, ONXI_NOWHERE,
            "of %llu elements of weights %llu are too small for %s and become zero, and %llu are so small that they "
            "lose digits",
            (unsigned long long)h->loss.count, (unsigned long long)h->loss.zeroed, onx_dtype_name((int64_t)h->to),
            (unsigned long long)h->loss.coarse);
}

static onx_status convert(onxi_halver *h, const onx_tensor *from, onx_str path, onx_tensor **out)
{
    onxi_weight_loss loss;
    void **known = onxi_map_at(&h->tensors, (uint64_t)(uintptr_t)from);
    if (!known)
        return ONX_E_MEMORY;
    if (*known) {
        *out = *known;
        return ONX_OK;
    }
    ONX_TRY(onxi_weight_convert(&h->weights, from, h->to, out, &loss));
    *known = *out; /* stored before the next tensor is created */
    tell_loss(h, path, &loss);
    return ONX_OK;
}

static onx_str weight_path(onxi_halver *h, onx_str name)
{
    return onxi_arena_printf(h->scratch, "initializer \"%.*s\"", ONX_ARG(name));
}

static onx_status convert_sparse(onxi_halver *h, const onx_sparse_tensor *from, onx_str path, onx_sparse_tensor **out)
{
    if (!(*out = ONXI_NEW(h->arena, onx_sparse_tensor)))
        return ONX_E_MEMORY;
    **out = *from;
    return convert(h, from->values, path, &(*out)->values);
}

static onx_status write_weights(onxi_halver *h, const onxi_halve_scope *scope)
{
    onx_graph *g = scope->graph;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onx_str name = onx_view(g->initializer[i]->name);
        const onxi_dict_entry *entry = onxi_dict_find(&scope->values, name);
        const onxi_halve_value *v = entry ? &h->value[entry->value] : NULL;
        if (v && v->changes && v->tensor == g->initializer[i] && h->sources >> (g->initializer[i]->data_type & 31) & 1)
            ONX_TRY(convert(h, g->initializer[i], weight_path(h, name), &g->initializer[i]));
    }
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++) {
        const onx_tensor *values = g->sparse_initializer[i]->values;
        const onxi_dict_entry *entry = values ? onxi_dict_find(&scope->values, onx_view(values->name)) : NULL;
        if (entry && h->value[entry->value].changes && h->value[entry->value].sparse == g->sparse_initializer[i])
            ONX_TRY(convert_sparse(h, g->sparse_initializer[i], weight_path(h, onx_view(values->name)),
                                   &g->sparse_initializer[i]));
    }
    return ONX_OK;
}

/* ---- attributes ---- */

bool onxi_halve_can_rewrite(const onx_node *constant)
{
    if (constant->attribute_count != 1)
        return false;
    const onx_attribute *a = constant->attribute[0];
    if (onx_view(onx_attribute_more(a)->ref_attr_name).len)
        return false;
    return a->slot == ONX_SLOT_T || a->slot == ONX_SLOT_F || a->slot == ONX_SLOT_FLOATS ||
           (a->slot == ONX_SLOT_SPARSE_TENSOR && a->sparse_tensor && a->sparse_tensor->values);
}

static onx_status numbers_as_tensor(onxi_halver *h, const onx_attribute *a, onx_tensor **out)
{
    const bool list = a->slot == ONX_SLOT_FLOATS;
    const int64_t dims[] = { list ? a->count : 0 };
    return (*out = onx_tensor_new(h->scratch, ONX_FLOAT, dims, list, list ? (const void *)a->floats : &a->f, NULL))
               ? ONX_OK
               : ONX_E_MEMORY;
}

static onx_status rewrite_constant(onxi_halver *h, onx_node *node, onx_str path)
{
    const onx_attribute *old = node->attribute[0];
    const bool sparse = old->slot == ONX_SLOT_SPARSE_TENSOR;
    onx_attribute *a = onxi_attribute_new(h->arena, sparse ? "sparse_value" : "value",
                                          sparse ? ONX_ATTR_SPARSE_TENSOR : ONX_ATTR_TENSOR);
    onx_tensor *from = old->slot == ONX_SLOT_T ? old->t : NULL, *to;
    if (!a || !(node->attribute = ONXI_ARRAY(h->arena, onx_attribute *, 1)))
        return ONX_E_MEMORY;
    node->attribute[0] = a;
    if (sparse) {
        onx_sparse_tensor *s;
        ONX_TRY(convert_sparse(h, old->sparse_tensor, path, &s));
        ONX_SET(attribute, a, sparse_tensor, s);
        return ONX_OK;
    }
    if (!from)
        ONX_TRY(numbers_as_tensor(h, old, &from));
    ONX_TRY(convert(h, from, path, &to));
    ONX_SET(attribute, a, t, to);
    return ONX_OK;
}

/* The attribute that gives the output type. */
static onx_status rewrite_type(onxi_halver *h, onx_node *node, const onxi_attr *row, onx_str path)
{
    const onx_attribute *old = onx_node_attribute(node, row->name);
    const bool tensor = row->type == ONX_ATTR_TENSOR;
    onx_attribute *a = onxi_attribute_new(h->arena, row->name, tensor ? ONX_ATTR_TENSOR : ONX_ATTR_INT);
    onx_attribute **list =
        onxi_arena_array(h->arena, (size_t)onxi_list_room(node->attribute_count + (old ? 0u : 1u)), sizeof *list);
    if (!a || !list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        list[i] = node->attribute[i] == old ? a : node->attribute[i];
    if (!old)
        list[node->attribute_count++] = a;
    node->attribute = list;
    if (!tensor) {
        ONX_SET(attribute, a, i, (int64_t)h->to);
        return ONX_OK;
    }
    static const int64_t one[] = { 1 };
    static const float zero;
    onx_tensor *from =
        old && old->slot == ONX_SLOT_T ? old->t : onx_tensor_new(h->scratch, ONX_FLOAT, one, 1, &zero, NULL);
    onx_tensor *to;
    if (!from)
        return ONX_E_MEMORY;
    ONX_TRY(convert(h, from, path, &to));
    ONX_SET(attribute, a, t, to);
    return ONX_OK;
}

/* ---- nodes ---- */

static onx_bytes name_for(onxi_halver *h, const onxi_halve_use *use)
{
    const onxi_halve_value *v = &h->value[use->value];
    return v->from && v->tensor_typed && onxi_halve_wants_new(h, use) != v->changes ? v->cast : v->now;
}

static onx_bytes *copy_names(onxi_halver *h, const onx_bytes *from, uint32_t count)
{
    onx_bytes *to = onxi_arena_array(h->arena, (size_t)onxi_list_room(count), sizeof *to);
    if (to && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

/* The current name for a value whose type is not converted: a removed Cast may have produced it. */
static onx_bytes plain_name(onxi_halver *h, const onxi_halve_scope *scope, onx_bytes name)
{
    const uint32_t value = onx_view(name).len ? onxi_halve_find(h, scope, onx_view(name)) : ONXI_HALVE_NONE;
    return value == ONXI_HALVE_NONE ? name : h->value[value].now;
}

static onx_status write_operands(onxi_halver *h, const onxi_halve_node *n, onx_node *to)
{
    if (!(to->input = copy_names(h, to->input, to->input_count)) ||
        !(to->output = copy_names(h, to->output, to->output_count)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < to->input_count; i++) {
        const onxi_halve_use *u = &h->use[n->use + i];
        to->input[i] = u->value == ONXI_HALVE_NONE ? plain_name(h, n->scope, to->input[i]) : name_for(h, u);
    }
    for (uint32_t i = 0; i < to->output_count; i++)
        if (h->made[n->made + i] != ONXI_HALVE_NONE)
            to->output[i] = h->value[h->made[n->made + i]].now;
    return onxi_node_fit_devices(h->arena, to, n->node);
}

static onx_status write_node(onxi_halver *h, const onxi_halve_node *n, onx_node **out)
{
    onx_node *to = ONXI_NEW(h->arena, onx_node);
    if (!to)
        return ONX_E_MEMORY;
    *to = *n->node;
    *out = to;
    ONX_TRY(write_operands(h, n, to));
    const uint32_t made = to->output_count ? h->made[n->made] : ONXI_HALVE_NONE;
    const onx_str path = onxi_path_node(h->scratch, onx_str_of("graph."), n->index, n->node);
    if (n->op == ONXI_ID_Constant && made != ONXI_HALVE_NONE && h->value[made].changes)
        return rewrite_constant(h, to, path);
    if (n->term != ONXI_HALVE_NONE && !onxi_halve_stays(h, n->term))
        return rewrite_type(h, to, &n->schema->attrs[n->attribute], path);
    return ONX_OK;
}

static onx_status put_cast(onxi_halver *h, const onxi_halve_value *v, onxi_node_list *out)
{
    onx_node *cast = onx_message_new(h->arena, ONX_KIND_NODE);
    if (!cast || onx_arena_keep(h->arena, onx_str_of("Cast"), &cast->op_type) != ONX_OK ||
        onxi_names_make(&h->names, onx_view(v->cast), onx_str_of("cast"), &cast->name) != ONX_OK ||
        !(cast->input = copy_names(h, &v->now, 1)) || !(cast->output = copy_names(h, &v->cast, 1)))
        return ONX_E_MEMORY;
    cast->has |= onx_node_has_op_type | onx_node_has_name;
    cast->input_count = cast->output_count = 1;
    if (!onx_node_add_int(h->arena, cast, "to", v->changes ? (int64_t)v->from : (int64_t)h->to))
        return ONX_E_MEMORY;
    return onxi_node_list_add(h->scratch, out, cast);
}

/* Casts of inputs and initializers come first. */
static onx_status put_first(onxi_halver *h, const onxi_halve_scope *scope, onxi_node_list *out)
{
    for (uint32_t i = 0; i < scope->values.count; i++) {
        const onxi_halve_value *v = &h->value[scope->values.entries[i].value];
        if (onx_view(v->cast).len && (v->kind == ONXI_HALVE_INPUT || v->tensor || v->sparse))
            ONX_TRY(put_cast(h, v, out));
    }
    return ONX_OK;
}

static onx_status put_node(onxi_halver *h, const onxi_halve_node *n, onxi_node_list *out)
{
    const uint32_t made = n->node->output_count ? h->made[n->made] : ONXI_HALVE_NONE;
    onx_node *node;
    ONX_TRY(write_node(h, n, &node));
    if (made == ONXI_HALVE_NONE || !h->value[made].dropped)
        ONX_TRY(onxi_node_list_add(h->scratch, out, node));
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (h->made[n->made + i] != ONXI_HALVE_NONE && onx_view(h->value[h->made[n->made + i]].cast).len)
            ONX_TRY(put_cast(h, &h->value[h->made[n->made + i]], out));
    return ONX_OK;
}

/* ---- graphs ---- */

static onx_status write_results(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->result_count; i++) {
        const onxi_halve_result *r = &h->result[i];
        const onxi_halve_value *v = &h->value[r->use.value];
        onx_value_info **place = &r->scope->graph->output[r->index];
        if (!v->from)
            continue;
        const bool fresh = onxi_halve_wants_new(h, &r->use);
        onx_value_info *copy = ONXI_NEW(h->arena, onx_value_info);
        if (!copy)
            return ONX_E_MEMORY;
        *copy = **place;
        *place = copy;
        if (!r->scope->main)
            ONX_SET(value_info, copy, name, name_for(h, &r->use));
        if (fresh)
            ONX_TRY(retype_info(h, place));
    }
    return ONX_OK;
}

static onx_status write_graph(onxi_halver *h, onxi_halve_scope *scope, onxi_node_list *out)
{
    onx_graph *g = scope->graph;
    ONX_TRY(onxi_node_list_keep(h->arena, out, &g->node, &g->node_count));
    ONX_TRY(retype_list(h, scope, g->input, g->input_count));
    drop_infos(h, scope);
    ONX_TRY(retype_list(h, scope, g->value_info, g->value_info_count));
    return write_weights(h, scope);
}

/* A removed Cast is replaced by its input; nodes are in order, and those of subgraphs come before the node that
 * contains them. */
static void forward_names(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        const uint32_t made = n->node->output_count == 1 ? h->made[n->made] : ONXI_HALVE_NONE;
        if (made == ONXI_HALVE_NONE || !h->value[made].dropped)
            continue;
        const onxi_halve_use *u = &h->use[n->use];
        h->value[made].now = u->value == ONXI_HALVE_NONE ? plain_name(h, n->scope, n->node->input[0]) : name_for(h, u);
    }
}

static void tell_nodes(onxi_halver *h)
{
    for (uint32_t i = 0; h->options->changed && i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        bool fresh = false, old = false;
        char text[96];
        for (uint32_t k = 0; k < n->node->input_count; k++) {
            const onxi_halve_use *u = &h->use[n->use + k];
            if (u->value != ONXI_HALVE_NONE && h->value[u->value].from)
                *(onxi_halve_wants_new(h, u) ? &fresh : &old) = true;
        }
        for (uint32_t k = 0; k < n->node->output_count; k++)
            if (h->made[n->made + k] != ONXI_HALVE_NONE && h->value[h->made[n->made + k]].from)
                *(h->value[h->made[n->made + k]].changes ? &fresh : &old) = true;
        if (!fresh && !old)
            continue;
        if (n->exact) {
            (void)tell(h, "exact", onxi_path_node(h->scratch, onx_str_of("graph."), n->index, n->node),
                       "keeps its type: it computes positions, ranks or angles");
            continue;
        }
        (void)snprintf(text, sizeof text, "%s%s", fresh ? "computes in " : "keeps its type",
                       fresh ? onx_dtype_name((int64_t)h->to) : "");
        (void)tell(h,
                   fresh && old ? "mixed"
                   : fresh      ? "convert"
                                : "keep",
                   onxi_path_node(h->scratch, onx_str_of("graph."), n->index, n->node), text);
    }
}

/* Warns if the model is unchanged, or changed less than expected. */
static void warn_unchanged(const onxi_halver *h)
{
    bool any = false;
    for (uint32_t i = 0; i < h->value_count && !any; i++)
        any = h->value[i].from && (h->value[i].changes || h->value[i].wanted_new);
    if (h->untyped)
        onxi_warn(h->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "the types of %u operands are not known (the first is %.*s; onx infer reports why): their nodes keep "
                  "their types",
                  h->untyped, ONX_ARG(h->untyped_name));
    if (!any && !h->keep.count)
        onxi_warn(h->cx, ONX_WARNING, NULL, ONXI_NOWHERE, "no part of the model is converted to %s",
                  onx_dtype_name((int64_t)h->to));
}

/* Reports nodes that keep their type without having been excluded. */
static void tell_exact(const onxi_halver *h)
{
    uint32_t count = 0, first = 0;
    for (uint32_t i = 0; i < h->node_count; i++)
        if (h->node[i].exact && !count++)
            first = i;
    if (count)
        onxi_warn(h->cx, ONX_NOTE, NULL, ONXI_NOWHERE,
                  "%u nodes that compute positions, ranks or angles keep their type (the first is \"%.*s\")", count,
                  ONX_ARG(onxi_node_called(h->node[first].node)));
}

onx_status onxi_halve_write(onxi_halver *h)
{
    tell_nodes(h);
    tell_exact(h);
    warn_unchanged(h);
    if (h->options->dry_run)
        return ONX_OK;
    forward_names(h);
    for (onxi_halve_scope *s = h->scopes; s; s = s->next) {
        onxi_node_list out = { 0 };
        ONX_TRY(put_first(h, s, &out));
        for (uint32_t i = s->first_node; i != ONXI_HALVE_NONE; i = h->node[i].next)
            ONX_TRY(put_node(h, &h->node[i], &out));
        ONX_TRY(write_graph(h, s, &out));
    }
    ONX_TRY(write_results(h));
    tell_small(h);
    return onxi_weights_finish(&h->weights);
}
