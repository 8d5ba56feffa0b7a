/* simplify_fuse.c - one operator of the standard in place of several nodes, by the rules of rewrite_rules.def whose
 * replacement the model's version has. */
#include "simplify/simplify.h"

#include <stdio.h>

typedef struct fuser {
    onxi_simplify *s;
    uint32_t scope; /* of the pattern's last node */
} fuser;

/* ---- what the matcher sees ---- */

static bool see_op(void *user, uint32_t index, onxi_rewrite_op *out)
{
    const fuser *f = user;
    onxi_simplify *s = f->s;
    onxi_sop *op = &s->ops[index];
    if (op->scope != f->scope || op->first_scope != ONXI_S_NONE || !onxi_simplify_attrs(s, op))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++)
        op->inputs[i] = onxi_simplify_input(s, op, i);
    *out = (onxi_rewrite_op){ .id = op->bound->op,
                              .since = op->bound->schema->since,
                              .attrs = op->attrs,
                              .inputs = op->inputs,
                              .outputs = op->outputs,
                              .input_count = op->input_count,
                              .output_count = op->output_count };
    return true;
}

static void see_value(void *user, uint32_t value, onxi_rewrite_value *out)
{
    const onxi_svalue *v = &((const fuser *)user)->s->values[value];
    *out = (onxi_rewrite_value){ v->maker, v->uses, v->is_output || v->pinned, v->tensor != NULL };
}

static bool see_number(void *user, uint32_t value, onxi_rewrite_number *out)
{
    onxi_simplify *s = ((const fuser *)user)->s;
    const onx_tensor *t = s->values[value].tensor;
    uint64_t count;
    if (!t || t->dims_count > 1 || !onxi_simplify_get_numbers(s, value, &out->number, 1, &count) || count != 1)
        return false;
    out->dtype = t->data_type;
    return true;
}

/* ---- does the replacement give the type that the nodes give? ---- */

static const onxi_known_ints *no_value(onxi_call *call, uint32_t input)
{
    (void)call, (void)input;
    return NULL;
}
static const onx_tensor *no_constant(onxi_call *call, uint32_t input)
{
    (void)call, (void)input;
    return NULL;
}
static onx_status no_subgraph(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                              onxi_type *outputs, uint32_t output_count)
{
    (void)call, (void)graph, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return ONX_E_INVALID;
}
static onx_status no_type(onxi_call *call, const onx_type *type, onxi_type *out)
{
    (void)call, (void)type, (void)out;
    return ONX_E_INVALID;
}
static onxi_op_id no_operator(onxi_call *call, const onx_node *node)
{
    (void)call, (void)node;
    return ONXI_ID_NONE;
}
static onx_status refuse(onxi_call *call, const char *format, va_list args)
{
    (void)call, (void)format, (void)args;
    return ONX_E_INVALID;
}
static const onxi_call_ops call_ops = { no_value, no_constant, no_subgraph, no_type, no_operator, refuse };

/* The types that the operator takes, of the inputs as they are. */
static bool takes(const onxi_schema *schema, const onxi_type *const *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onxi_port *port = onxi_port_at(schema->inputs, i);
        if (!port)
            return false;
        const onxi_type_constraint *types = onxi_schema_type(schema, port->type);
        if (inputs[i] && types && !(types->set.tensor >> inputs[i]->dtype & 1))
            return false;
    }
    return true;
}

static bool gives_type(onxi_simplify *s, const onx_node *node, const uint32_t *values, uint32_t y)
{
    onxi_bound *bound = onxi_bind(&s->binder, node);
    onxi_attr_fault fault;
    onxi_attrs attrs;
    onxi_type types[ONXI_REWRITE_INPUTS + 1], wanted, given = { 0 };
    const onxi_type *inputs[ONXI_REWRITE_INPUTS + 1];
    if (!s->infer || !bound || !bound->schema || bound->kind != ONXI_BOUND_OPERATOR ||
        node->input_count > ONXI_REWRITE_INPUTS || !onxi_simplify_type(s, y, &wanted) ||
        onxi_bind_attributes(bound, node, NULL, s->scratch, NULL, 0, &attrs, &fault) != ONX_OK)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = values[i] == ONXI_S_NONE ? NULL : &types[i];
        if (inputs[i] && !onxi_simplify_type(s, values[i], &types[i]))
            return false;
    }
    if (!takes(bound->schema, inputs, node->input_count))
        return false;
    onxi_call call = { .schema = bound->schema,
                       .op = bound->op,
                       .node = node,
                       .attrs = &attrs,
                       .opset = bound->opset,
                       .dims = s->infer->dims,
                       .arena = s->scratch,
                       .input_count = node->input_count,
                       .output_count = 1,
                       .inputs = inputs,
                       .outputs = &given,
                       .ops = &call_ops };
    if (onxi_call_run(&call) != ONX_OK || given.kind != ONXI_TYPE_TENSOR || !given.ranked ||
        given.rank != wanted.rank || given.dtype != wanted.dtype)
        return false;
    for (uint32_t i = 0; i < given.rank; i++)
        if (given.dims[i] != wanted.dims[i] || !onxi_dim_is_known(given.dims[i]))
            return false;
    return true;
}

static bool holds(onxi_simplify *s, const onxi_rewrite_condition *c)
{
    onxi_type type, other;
    if (!onxi_simplify_type(s, c->value, &type))
        return false;
    switch (c->kind) {
    case ONXI_REWRITE_LAST_AXIS:
        return c->number == -1 || c->number == (int64_t)type.rank - 1;
    case ONXI_REWRITE_SAME_DIMS:
        return onxi_simplify_same_type(s, c->value, c->other);
    case ONXI_REWRITE_RANK:
        return c->number == (int64_t)type.rank;
    case ONXI_REWRITE_BATCH:
        if (!onxi_simplify_type(s, c->other, &other) || other.rank != type.rank || type.rank < 2)
            return false;
        for (uint32_t i = 0; i + 2 < type.rank; i++)
            if (type.dims[i] != other.dims[i] || !onxi_dim_is_known(type.dims[i]))
                return false;
        return true;
    case ONXI_REWRITE_CONSTANTS: /* looked at before */
        return true;
    }
    return false;
}

/* ---- replacing ---- */

/* The node as the model will have it: attributes of the replacement, with what its parameters stand for. */
static onx_status make_node(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, onx_node *out)
{
    const onx_node *body = r->replacement->node[0];
    onxi_arguments arguments;
    *out = (onx_node){ .op_type = body->op_type, .has = onx_node_has_op_type };
    ONX_TRY(onxi_rewrite_arguments(r, m, s->scratch, &arguments));
    for (uint32_t i = 0; i < body->attribute_count; i++) {
        const onx_attribute *a = onxi_arguments_resolve(&arguments, body->attribute[i]);
        void *copy;
        if (!a)
            continue;
        ONX_TRY(onx_message_copy(s->arena, ONX_KIND_ATTRIBUTE, a, &copy));
        onx_attribute **place = onx_list_insert(s->arena, (void **)(void *)&out->attribute, &out->attribute_count,
                                                out->attribute_count, sizeof *place);
        if (!place ||
            onx_arena_keep(s->arena, onx_view(body->attribute[i]->name), &((onx_attribute *)copy)->name) != ONX_OK)
            return ONX_E_MEMORY;
        *place = copy;
    }
    return ONX_OK;
}

/* Constants of the type that comes out: what is invalid stays so. */
static bool agree(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t y)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        const uint32_t value = m->values[r->nodes[i].output];
        if (r->nodes[i].id == ONXI_ID_Constant && value != ONXI_S_NONE &&
            onxi_simplify_dtype(s, value) != onxi_simplify_dtype(s, y))
            return false;
    }
    return true;
}

static onx_status replace(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t index)
{
    const onx_node *body = r->replacement->node[0];
    uint32_t values[ONXI_REWRITE_INPUTS + 1], count = body->input_count;
    onx_node node;
    for (uint32_t i = 0; i < r->condition_count; i++) {
        onxi_rewrite_condition c;
        if (onxi_rewrite_condition_of(r, m, i, &c) && !holds(s, &c))
            return ONX_OK;
    }
    if (count > ONXI_REWRITE_INPUTS || !agree(s, r, m, s->ops[index].outputs[0]))
        return ONX_OK;
    for (uint32_t i = 0; i < count; i++)
        values[i] = onxi_rewrite_input(r, m, body->input[i]);
    while (count && values[count - 1] == ONXI_S_NONE)
        count--;
    ONX_TRY(make_node(s, r, m, &node));
    node.input = body->input;
    node.input_count = count;
    if (!gives_type(s, &node, values, s->ops[index].outputs[0]))
        return ONX_OK;
    uint32_t parts[ONXI_REWRITE_OPS];
    char type[64];
    snprintf(type, sizeof type, "%.*s", ONX_ARG(onx_view(body->op_type)));
    onxi_simplify_note(s, ONXI_SIMPLIFY_FUSE, r->row->name, index, "%s in place of %u nodes", type,
                       onxi_rewrite_parts(r, m, parts));
    ONX_TRY(onxi_simplify_become(s, index, type, node.attribute, node.attribute_count));
    return onxi_simplify_set_inputs(s, index, values, count);
}

static onx_status apply(onxi_simplify *s, const onxi_rewrite_rule *r)
{
    fuser f = { .s = s };
    const onxi_rewrite_view view = { &f, see_op, see_value, see_number };
    onxi_rewrite_match m;
    for (uint32_t i = 0; i < s->op_count; i++) {
        const onxi_sop *op = &s->ops[i];
        if (op->dead || op->opaque || op->bound->op != r->row->root || !op->output_count ||
            op->outputs[0] == ONXI_S_NONE)
            continue;
        f.scope = op->scope;
        if (onxi_rewrite_find(&view, r, i, &m))
            ONX_TRY(replace(s, r, &m, i));
    }
    return ONX_OK;
}

onx_status onxi_simplify_fuse(onxi_simplify *s)
{
    bool *there = ONXI_ARRAY(s->scratch, bool, ONXI_ID_END);
    if (!there)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < s->op_count; i++)
        if (!s->ops[i].dead && !s->ops[i].opaque)
            there[s->ops[i].bound->op] = true;
    for (const onxi_rewrite_row *row = onxi_rewrite_rows; row->name; row++) {
        const onxi_rewrite_rule *r;
        if (!(row->by & ONXI_REWRITE_BY_MODEL) || !row->since || row->since > s->opset || !there[row->root] ||
            !there[row->needs])
            continue;
        ONX_TRY(onxi_rewrites_get(s->rules, row, &r));
        ONX_TRY(apply(s, r));
    }
    return ONX_OK;
}
