/* transform_adjust.c - moves a node across a version change without changing its operator: attributes that are added or
 * removed, operands that a version does not have, and casts for types that it does not support. */
#include "transform/transform_retarget.h"

#include <stdio.h>

/* ---- attributes across a version change ---- */

static bool word_in(const char *words, onx_str word)
{
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (onx_str_equal(onx_str_make(at, strcspn(at, " ")), word))
            return true;
    return false;
}

bool onxi_is_reference(const onx_attribute *a)
{
    return onx_view(onx_attribute_more(a)->ref_attr_name).len != 0;
}

static bool same_numbers(const onx_attribute *a, const onxi_attr_value *v)
{
    switch (v->type) {
    case ONX_ATTR_INT:
        return onxi_attribute_int(a) == v->i;
    case ONX_ATTR_FLOAT:
        return onxi_attribute_float(a) == v->f;
    case ONX_ATTR_STRING:
        return onx_str_equal(onxi_attribute_text(a), v->s);
    case ONX_ATTR_INTS:
        return a->count == v->count && (!v->count || memcmp(a->ints, v->list, v->count * sizeof *a->ints) == 0);
    default:
        return false;
    }
}

static bool is_implied(const onx_attribute *a)
{
    static const char *const lists[] = { "dilations", "strides", "pads", "output_padding" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!onx_str_is(onx_view(a->name), lists[i]) || a->slot != ONX_SLOT_INTS)
            continue;
        for (uint32_t k = 0; k < a->count; k++)
            if (a->ints[k] != onxi_attr_implied(lists[i]))
                return false;
        return true;
    }
    return false;
}

bool onxi_retarget_is_default(onxi_retarget *r, const onxi_schema *row, const onx_attribute *a)
{
    const onxi_attr *attr = onxi_schema_attr(row, onx_view(a->name));
    onxi_attr_value value;
    if (!attr || onxi_is_reference(a))
        return false;
    if (!attr->default_text || onxi_attr_default(attr, r->scratch, &value) != ONX_OK)
        return is_implied(a);
    return onx_attribute_type_of(a) == (onx_attribute_type)value.type && same_numbers(a, &value);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The attributes that the row `to` has and the node omits, whose default has changed. */
static onx_status keep_defaults(onxi_retarget *r, onxi_subject *s, const onxi_schema *to, onx_node *node)
{
    for (const onxi_attr *a = s->row->attrs; a && a->name; a++) {
        const onxi_attr *now = a->default_text ? onxi_schema_attr(to, onx_str_of(a->name)) : NULL;
        if (!now || now->type != a->type || same_text(a->default_text, now->default_text) ||
            onx_node_attribute(node, a->name))
            continue;
        const onx_attribute *value = onxi_subject_attribute(s, a->name);
        if (!value)
            return ONX_E_MEMORY;
        ONX_TRY(onxi_set_attribute(r, node, value));
    }
    return ONX_OK;
}

/* Moves the node, which is a copy, from the row of the subject to another row of the same operator. False, after a
 * report, if that is not possible. */
onx_status onxi_retarget_adjust(onxi_retarget *r, onxi_subject *s, const onxi_schema *to, const char *drop,
                                onx_node *node, bool *good)
{
    uint32_t kept = 0;
    char hint[96];
    (void)snprintf(hint, sizeof hint, "version %d is the %s that supports it", s->up ? to->since - 1 : s->row->since,
                   s->up ? "highest" : "lowest");
    *good = true;
    ONX_TRY(onxi_own_attributes(r, node));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        onx_attribute *a = node->attribute[i];
        const onx_str name = onx_view(a->name);
        if (word_in(drop, name) || (!onxi_schema_attr(to, name) && onxi_retarget_is_default(r, s->row, a)))
            continue;
        if (!onxi_schema_attr(to, name) && onxi_schema_attr(s->row, name)) {
            *good = false;
            ONX_TRY(onxi_retarget_fail(r, node, hint, "version %d of %s has no attribute %.*s", to->since, to->name,
                                       ONX_ARG(name)));
        }
        node->attribute[kept++] = a;
    }
    node->attribute_count = kept;
    for (uint32_t i = 0; i < s->prepared_count; i++)
        ONX_TRY(onxi_set_attribute(r, node, s->prepared[i]));
    ONX_TRY(keep_defaults(r, s, to, node));
    while (node->input_count && !onx_view(node->input[node->input_count - 1]).len)
        node->input_count--;
    while (node->output_count && !onx_view(node->output[node->output_count - 1]).len)
        node->output_count--;
    if (*good && (!onxi_arity_fits(node->input_count, to->min_input, to->max_input) ||
                  !onxi_arity_fits(node->output_count, to->min_output, to->max_output))) {
        *good = false;
        ONX_TRY(onxi_retarget_fail(r, node, hint, "version %d of %s does not accept %u inputs and %u outputs",
                                   to->since, to->name, node->input_count, node->output_count));
    }
    for (const onxi_attr *a = to->attrs; *good && a && a->name; a++)
        if (a->required && !onx_node_attribute(node, a->name)) {
            *good = false;
            ONX_TRY(
                onxi_retarget_fail(r, node, hint, "version %d of %s needs attribute %s", to->since, to->name, a->name));
        }
    return ONX_OK;
}

/* ---- types across a version change ---- */

/* The types that a port accepts: those of a constraint, or a single type. */
static onxi_type_set port_types(const onxi_schema *row, const onxi_port *port)
{
    const onxi_type_constraint *constraint = onxi_schema_type(row, port->type);
    onxi_type_set one = { 0 };
    if (constraint)
        return constraint->set;
    (void)onxi_type_set_add(&one, onx_str_of(port->type));
    return one;
}

/* The types that can represent every value of a type, the smallest first; at least for the types that occur. */
static const struct wider {
    uint8_t from, to[4];
} wider[] = {
    { ONX_FLOAT16, { ONX_FLOAT, ONX_DOUBLE } },
    { ONX_BFLOAT16, { ONX_FLOAT, ONX_DOUBLE } },
    { ONX_FLOAT8E4M3FN, { ONX_FLOAT16, ONX_FLOAT } },
    { ONX_FLOAT8E4M3FNUZ, { ONX_FLOAT16, ONX_FLOAT } },
    { ONX_FLOAT8E5M2, { ONX_FLOAT16, ONX_FLOAT } },
    { ONX_FLOAT8E5M2FNUZ, { ONX_FLOAT16, ONX_FLOAT } },
    { ONX_INT8, { ONX_INT32, ONX_INT64, ONX_FLOAT, ONX_DOUBLE } },
    { ONX_UINT8, { ONX_INT32, ONX_INT64, ONX_FLOAT, ONX_DOUBLE } },
    { ONX_INT16, { ONX_INT32, ONX_INT64, ONX_FLOAT, ONX_DOUBLE } },
    { ONX_UINT16, { ONX_INT32, ONX_INT64, ONX_FLOAT, ONX_DOUBLE } },
    { ONX_INT4, { ONX_INT8, ONX_INT32, ONX_FLOAT } },
    { ONX_UINT4, { ONX_UINT8, ONX_INT32, ONX_FLOAT } },
    { ONX_INT32, { ONX_INT64, ONX_DOUBLE } },
    { ONX_UINT32, { ONX_INT64, ONX_DOUBLE } },
    { ONX_BOOL, { ONX_UINT8, ONX_INT32, ONX_FLOAT } },
};

/* Operators whose results are elements of their inputs, positions, or comparisons: any type that has all values of the
 * old one gives the same. */
static bool only_selects(onxi_op_id op)
{
    switch ((int)op) {
    case ONXI_ID_ArgMax:
    case ONXI_ID_ArgMin:
    case ONXI_ID_Clip:
    case ONXI_ID_GlobalMaxPool:
    case ONXI_ID_Max:
    case ONXI_ID_MaxPool:
    case ONXI_ID_MaxUnpool:
    case ONXI_ID_Min:
    case ONXI_ID_ReduceMax:
    case ONXI_ID_ReduceMin:
    case ONXI_ID_Relu:
    case ONXI_ID_Sign:
    case ONXI_ID_TopK:
        return true;
    case ONXI_ID_AffineGrid:
    case ONXI_ID_GridSample:
    case ONXI_ID_Resize:
    case ONXI_ID_Upsample:
        return false;
    default:
        return onxi_operator_of(op)->family == ONXI_FAMILY_tensor ||
               onxi_operator_of(op)->family == ONXI_FAMILY_logical;
    }
}

/* Operators whose results of integers are the same modulo any power of two. */
static bool wraps_around(onxi_op_id op)
{
    switch ((int)op) {
    case ONXI_ID_Add:
    case ONXI_ID_CumSum:
    case ONXI_ID_MatMul:
    case ONXI_ID_Mul:
    case ONXI_ID_Neg:
    case ONXI_ID_ReduceProd:
    case ONXI_ID_ReduceSum:
    case ONXI_ID_ReduceSumSquare:
    case ONXI_ID_Sub:
    case ONXI_ID_Sum:
        return true;
    default:
        return false;
    }
}

/* Does the operator give the same with casts around it, but for the rounding of floating-point numbers? */
static bool casts_keep(onxi_op_id op, int from, int to)
{
    const onx_dtype_class class = onx_dtype_class_of(from);
    if (op == ONXI_ID_If || op == ONXI_ID_Loop || op == ONXI_ID_Scan) /* subgraphs have the type as well */
        return false;
    if (class == ONX_CLASS_FLOATING || only_selects(op))
        return true;
    return onx_dtype_class_of(to) == ONX_CLASS_SIGNED && wraps_around(op);
}

static onx_dtype wider_type(onxi_op_id op, int dtype, uint32_t allowed)
{
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++)
        for (int k = 0; wider[i].from == dtype && k < 4 && wider[i].to[k]; k++)
            if (allowed >> wider[i].to[k] & 1 && casts_keep(op, dtype, wider[i].to[k]))
                return (onx_dtype)wider[i].to[k];
    return ONX_UNDEFINED;
}

onxi_lost_type onxi_retarget_lost(onxi_retarget *r, onxi_scope *scope, const onx_node *node, const onxi_schema *from,
                                  const onxi_schema *to)
{
    for (int k = 0; k < 2; k++) {
        const onxi_port *old = k ? from->outputs : from->inputs, *now = k ? to->outputs : to->inputs, *before = NULL;
        const uint32_t count = k ? node->output_count : node->input_count;
        const onx_bytes *names = k ? node->output : node->input;
        onxi_type_set was = { 0 }, is = { 0 };
        bool narrower = false;
        for (uint32_t i = 0; i < count; i++) {
            const onxi_port *port = onxi_port_at(old, i);
            const onxi_port *next = port ? onxi_port_at(now, i) : NULL; /* operands keep their places */
            if (next && port != before) {
                was = port_types(from, port);
                is = port_types(to, next);
                narrower = (was.tensor & ~is.tensor) || (was.sparse_tensor & ~is.sparse_tensor) ||
                           (was.seq & ~is.seq) || (was.optional & ~is.optional) ||
                           (was.optional_seq & ~is.optional_seq);
                before = port;
            }
            if (!next || !narrower || !onx_view(names[i]).len)
                continue;
            const onx_type *type = onxi_values_type(&r->values, scope, onx_view(names[i]));
            const int dtype = onxi_type_dtype(type);
            if (dtype > 0 && dtype < 32 && onxi_element_types(&was, type) >> dtype & 1 &&
                !(onxi_element_types(&is, type) >> dtype & 1))
                return (onxi_lost_type){ port->type, dtype, ONX_HAS(type, type, tensor_type) ? is.tensor : 0 };
        }
    }
    return (onxi_lost_type){ 0 };
}

onxi_lost_type onxi_retarget_wide(onxi_retarget *r, onxi_scope *scope, onxi_op_id op, const onx_node *node,
                                  const onxi_schema *row)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onxi_port *port = onxi_port_at(row->inputs, i);
        const onxi_type_constraint *constraint = port ? onxi_schema_type(row, port->type) : NULL;
        const onx_type *type = constraint && onx_view(node->input[i]).len
                                   ? onxi_values_type(&r->values, scope, onx_view(node->input[i]))
                                   : NULL;
        const int dtype = type && ONX_HAS(type, type, tensor_type) ? onxi_type_dtype(type) : ONX_UNDEFINED;
        if (dtype > 0 && wider_type(op, dtype, constraint->set.tensor) != ONX_UNDEFINED)
            return (onxi_lost_type){ port->type, dtype, constraint->set.tensor };
    }
    return (onxi_lost_type){ 0 };
}

/* ---- casts ---- */

static onx_status note_type(onxi_retarget *r, onxi_scope *scope, onx_bytes like, onx_bytes name, onx_dtype dtype)
{
    const onx_type *type = onxi_values_type(&r->values, scope, onx_view(like));
    int64_t dims[ONX_RANK_MAX];
    const int rank = onxi_type_rank(type);
    for (int i = 0; i < rank; i++)
        dims[i] = onxi_type_dim(type, (uint32_t)i);
    const onx_type *now = onx_type_new_tensor(r->scratch, dtype, dims, rank);
    return now ? onxi_values_note(&r->values, onx_view(name), now, NULL) : ONX_E_MEMORY;
}

/* The greatest and least element of nothing are the limits of the type. */
static bool gives_limits(onxi_retarget *r, onxi_scope *scope, onxi_op_id op, const onx_node *node, int dtype)
{
    if ((op != ONXI_ID_ReduceMax && op != ONXI_ID_ReduceMin) || onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING)
        return false;
    const onx_type *type = node->input_count ? onxi_values_type(&r->values, scope, onx_view(node->input[0])) : NULL;
    const int rank = onxi_type_rank(type);
    bool empty = rank < 0;
    for (int i = 0; i < rank; i++)
        empty |= onxi_type_dim(type, (uint32_t)i) < 1;
    return empty;
}

/* Adds casts around the operands of a constraint; casts of outputs go to `after`. False: the type cannot be
 * replaced. */
onx_status onxi_retarget_cast(onxi_retarget *r, onxi_scope *scope, onxi_op_id op, onx_node *node,
                              const onxi_schema *row, onxi_lost_type what, onxi_versions at, onxi_node_list *out,
                              onxi_node_list *after, bool *good)
{
    const onx_dtype to =
        gives_limits(r, scope, op, node, what.dtype) ? ONX_UNDEFINED : wider_type(op, what.dtype, what.allowed);
    const onx_str base = node->output_count ? onx_view(node->output[0]) : (onx_str){ 0 };
    bool bound = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onxi_port *port = onxi_port_at(row->inputs, i);
        bound |= port && onx_view(node->input[i]).len && strcmp(port->type, what.constraint) == 0;
    }
    *good = to != ONX_UNDEFINED && bound && !onxi_node_is(node, ONXI_ID_Cast); /* a Cast cannot be replaced by casts */
    if (!*good)
        return ONX_OK;
    const onx_node before = *node;
    if (!(node->input = onxi_own_names(r, node->input, node->input_count)) ||
        !(node->output = onxi_own_names(r, node->output, node->output_count)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onxi_port *port = onxi_port_at(row->inputs, i);
        const onx_bytes old = node->input[i];
        if (!port || !onx_view(old).len || strcmp(port->type, what.constraint) != 0)
            continue;
        ONX_TRY(onxi_names_make(&r->names, base, onx_str_of("cast"), &node->input[i]));
        ONX_TRY(note_type(r, scope, old, node->input[i], to));
        onx_node *cast = onxi_make_cast(r, old, node->input[i], (int)to);
        if (!cast)
            return ONX_E_MEMORY;
        ONX_TRY(onxi_retarget_convert(r, scope, cast, at, out));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const onxi_port *port = onxi_port_at(row->outputs, i);
        const onx_bytes old = node->output[i];
        if (!port || !onx_view(old).len || strcmp(port->type, what.constraint) != 0)
            continue;
        ONX_TRY(onxi_names_make(&r->names, onx_view(old), onx_str_of("wide"), &node->output[i]));
        ONX_TRY(note_type(r, scope, old, node->output[i], to));
        onx_node *cast = onxi_make_cast(r, node->output[i], old, what.dtype);
        if (!cast)
            return ONX_E_MEMORY;
        ONX_TRY(onxi_node_list_add(r->scratch, after, cast));
    }
    return onxi_node_fit_devices(r->arena, node, &before);
}
