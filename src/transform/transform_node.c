/* transform_node.c - creates nodes for steps of retarget, and reports what was done. */
#include "transform/transform_retarget.h"

#include <stdio.h>

onxi_versioned onxi_versioned_of(onx_str domain)
{
    domain = onxi_domain_plain(domain);
    return !domain.len ? ONXI_DEFAULT : onx_str_is(domain, "ai.onnx.ml") ? ONXI_ML : ONXI_VERSIONED_COUNT;
}

const char *const onxi_versioned_domains[ONXI_VERSIONED_COUNT] = { "", "ai.onnx.ml" };
const char *const onxi_versioned_names[ONXI_VERSIONED_COUNT] = { "ai.onnx", "ai.onnx.ml" };

/* ---- reporting ---- */

onx_str onxi_retarget_path(onxi_retarget *r)
{
    if (!r->path.len)
        r->path = onxi_path_node(r->scratch, r->prefix, r->at_index, r->at);
    return r->path;
}

onx_status onxi_retarget_fail(onxi_retarget *r, const onx_node *node, const char *hint, const char *format, ...)
{
    onx_diag diag = { .severity = r->options->best_effort ? ONX_WARNING : ONX_ERROR,
                      .status = r->options->best_effort ? ONX_OK : ONX_E_UNSUPPORTED,
                      .where = ONXI_AT_PATH(onxi_retarget_path(r)),
                      .hint = onx_str_of(hint ? hint : "") };
    va_list args;
    (void)node;
    va_start(args, format);
    onxi_vreport(r->cx, &diag, format, args);
    va_end(args);
    r->failed++;
    return ONX_OK;
}

void onxi_retarget_tell(onxi_retarget *r, const onx_node *node, int64_t from, int64_t to, const char *what)
{
    char rule[160];
    r->changes++;
    if (!r->options->changed)
        return;
    if (r->bodies_only)
        (void)snprintf(rule, sizeof rule, "%.*s", ONX_ARG(onx_view(node->op_type)));
    else
        (void)snprintf(rule, sizeof rule, "%.*s %lld to %lld", ONX_ARG(onx_view(node->op_type)), (long long)from,
                       (long long)to);
    const onx_change change = { r->bodies_only ? "inline" : "retarget", onx_str_of(rule), onxi_retarget_path(r),
                                onx_str_of(what) };
    r->options->changed(r->options->user, &change);
}

/* ---- parts of nodes ---- */

onx_node *onxi_own_node(onxi_retarget *r, const onx_node *node)
{
    onx_node *copy = ONXI_NEW(r->arena, onx_node);
    if (copy)
        *copy = *node;
    return copy;
}

onx_bytes *onxi_own_names(onxi_retarget *r, const onx_bytes *from, uint32_t count)
{
    onx_bytes *to = onxi_arena_array(r->arena, (size_t)onxi_list_room(count), sizeof *to);
    if (to && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

/* Sets an attribute of a node that is a copy, in a list that is a copy. */
onx_status onxi_set_attribute(onxi_retarget *r, onx_node *node, const onx_attribute *a)
{
    const onx_str name = onx_view(a->name);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_str_equal(onx_view(node->attribute[i]->name), name)) {
            node->attribute[i] = (onx_attribute *)(uintptr_t)a;
            return ONX_OK;
        }
    void *bare = node->attribute;
    onx_attribute **place =
        onx_list_insert(r->arena, &bare, &node->attribute_count, node->attribute_count, sizeof *place);
    if (!place)
        return ONX_E_MEMORY;
    node->attribute = bare;
    *place = (onx_attribute *)(uintptr_t)a;
    return ONX_OK;
}

onx_status onxi_own_attributes(onxi_retarget *r, onx_node *node)
{
    onx_attribute **copy = onxi_arena_array(r->arena, (size_t)onxi_list_room(node->attribute_count), sizeof *copy);
    if (!copy)
        return ONX_E_MEMORY;
    if (node->attribute_count)
        memcpy(copy, node->attribute, node->attribute_count * sizeof *copy);
    node->attribute = copy;
    return ONX_OK;
}

/* ---- creating nodes ---- */

onx_node *onxi_make_node(onxi_retarget *r, const char *op, onx_bytes from, onx_bytes to)
{
    onx_node *node = onx_message_new(r->arena, ONX_KIND_NODE);
    onx_bytes *input = node ? onxi_own_names(r, &from, 1) : NULL, *output = node ? onxi_own_names(r, &to, 1) : NULL;
    if (!input || !output || onx_arena_keep(r->arena, onx_str_of(op), &node->op_type) != ONX_OK)
        return NULL;
    node->has |= onx_node_has_op_type;
    node->input = input;
    node->output = output;
    node->input_count = node->output_count = 1;
    return node;
}

onx_node *onxi_make_cast(onxi_retarget *r, onx_bytes from, onx_bytes to, int dtype)
{
    onx_node *cast = onxi_make_node(r, "Cast", from, to);
    return cast && onx_node_add_int(r->arena, cast, "to", dtype) ? cast : NULL;
}
