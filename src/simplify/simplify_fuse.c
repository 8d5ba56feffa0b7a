/* simplify_fuse.c - replaces several nodes by one standard operator, by the rules of rewrite_rules.def whose
 * replacement exists in the model's operator-set version. */
#include "simplify/simplify.h"

#include <stdio.h>

typedef struct fuser {
    onxi_simplify *s;
    uint32_t scope;     /* scope of the pattern's last node */
    uint32_t *previous; /* per op: the previous op of its scope; NULL: not built yet */
    uint32_t previous_room;
} fuser;

/* ---- the matcher's view ---- */

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
    double numbers[ONXI_REWRITE_UNIFORM];
    if (!t || t->dims_count > 1 || !onxi_simplify_get_numbers(s, value, numbers, ONXI_REWRITE_UNIFORM, &out->count) ||
        !out->count)
        return false;
    for (uint64_t i = 1; i < out->count; i++)
        if (numbers[i] != numbers[0])
            return false;
    out->number = numbers[0];
    out->dtype = t->data_type;
    return true;
}

static bool see_ints(void *user, uint32_t value, int64_t *out, uint32_t *count)
{
    onxi_simplify *s = ((const fuser *)user)->s;
    const onx_tensor *t = s->values[value].tensor;
    return t && t->data_type == ONX_INT64 && t->dims_count <= 1 &&
           onxi_simplify_get_ints(s, value, out, ONXI_REWRITE_INTS, count);
}

/* ---- does the replacement have the same result type? ---- */

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

/* Infers the output types of the operator for the actual inputs. */
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

static bool see_shape(void *user, uint32_t value, onxi_rewrite_shape *out)
{
    onxi_type type;
    if (!onxi_simplify_type(user, value, &type))
        return false;
    *out = (onxi_rewrite_shape){ type.dtype, type.rank, type.dims };
    return true;
}

static bool see_known_ints(void *user, uint32_t value, int64_t *out, uint32_t most, uint32_t *count)
{
    return onxi_simplify_get_ints(user, value, out, most, count);
}

static bool see_bounded(void *user, uint32_t value)
{
    return onxi_simplify_is_bounded(user, value);
}

/* ---- replacing ---- */

/* The replacement node, with the values of its parameters as attributes. */
static onx_status make_node(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m,
                            const onx_node *body, onx_node *out)
{
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

/* Constants of the result type; an invalid value stays invalid. */
static bool agree(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t y)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        const uint32_t value = m->values[r->nodes[i].output];
        if (r->nodes[i].id == ONXI_ID_Constant && !r->nodes[i].list && value != ONXI_S_NONE &&
            onxi_simplify_dtype(s, value) != onxi_simplify_dtype(s, y))
            return false;
    }
    return true;
}

/* ---- further nodes of the replacement ---- */

/* Values that nodes of the replacement produce. */
typedef struct made_values {
    onx_bytes names[ONXI_REWRITE_NODES];
    uint32_t values[ONXI_REWRITE_NODES], count;
} made_values;

static uint32_t input_of(const onxi_rewrite_rule *r, const onxi_rewrite_match *m, const made_values *made,
                         onx_bytes name)
{
    for (uint32_t i = 0; i < made->count; i++)
        if (onx_str_equal(onx_view(made->names[i]), onx_view(name)))
            return made->values[i];
    return onxi_rewrite_input(r, m, name);
}

static onx_status note_previous(fuser *f)
{
    onxi_simplify *s = f->s;
    if (!ONXI_GROW_IN(s->scratch, f->previous, f->previous_room, (uint64_t)s->op_count + 1))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < s->op_count; i++)
        f->previous[i] = ONXI_S_NONE;
    for (uint32_t scope = 0; scope < s->scope_count; scope++)
        for (uint32_t op = s->scopes[scope].gone ? ONXI_S_NONE : s->scopes[scope].first; op != ONXI_S_NONE;
             op = s->ops[op].next)
            if (s->ops[op].next != ONXI_S_NONE)
                f->previous[s->ops[op].next] = op;
    return ONX_OK;
}

/* A constant list of integers of the replacement, in the outermost graph, where all scopes see it. */
static uint32_t add_list(onxi_simplify *s, const onx_node *node, const onx_node *made, onx_str base)
{
    const onx_attribute *a = onx_node_attribute(made, "value_ints");
    const onxi_bound *bound = onxi_bind(&s->binder, made);
    uint32_t count;
    const int64_t *list = a && bound ? onxi_bind_ints(bound, made, "value_ints", &count) : NULL;
    char part[ONXI_REWRITE_NAME];
    snprintf(part, sizeof part, "%.*s", ONX_ARG(onx_view(node->output[0])));
    return list ? onxi_simplify_ints(s, 0, base, part, list, 1, count) : ONXI_S_NONE;
}

/* Inserts a node before op `index`; *value is its output. */
static onx_status add_node(fuser *f, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, const onx_node *body,
                           const made_values *made, uint32_t index, uint32_t *value)
{
    onxi_simplify *s = f->s;
    uint32_t inputs[ONXI_REWRITE_INPUTS];
    char type[64], part[ONXI_REWRITE_NAME];
    onx_bytes name;
    onx_node node;
    const onx_str base = onx_view(s->values[s->ops[index].outputs[0]].name);
    ONX_TRY(make_node(s, r, m, body, &node));
    const onxi_bound *bound = onxi_bind(&s->binder, &node);
    if (!bound)
        return ONX_E_MEMORY;
    if (bound->op == ONXI_ID_Constant) {
        *value = add_list(s, body, &node, base);
        return *value == ONXI_S_NONE ? ONX_E_MEMORY : ONX_OK;
    }
    for (uint32_t i = 0; i < body->input_count; i++)
        inputs[i] = input_of(r, m, made, body->input[i]);
    snprintf(type, sizeof type, "%.*s", ONX_ARG(onx_view(body->op_type)));
    snprintf(part, sizeof part, "%.*s", ONX_ARG(onx_view(body->output[0])));
    if ((!f->previous && note_previous(f) != ONX_OK) ||
        onxi_names_make(s->names, base, onx_str_of(part), &name) != ONX_OK ||
        !ONXI_GROW_IN(s->scratch, s->values, s->value_room, (uint64_t)s->value_count + 1) ||
        !ONXI_GROW_IN(s->scratch, f->previous, f->previous_room, (uint64_t)s->op_count + 1))
        return ONX_E_MEMORY;
    *value = s->value_count++;
    s->values[*value] =
        (onxi_svalue){ .name = name, .scope = s->ops[index].scope, .alias = ONXI_S_NONE, .defined = true };
    s->previous = f->previous[index];
    const uint32_t op = onxi_simplify_add(s, index, type, inputs[0], *value);
    if (op == ONXI_S_NONE)
        return ONX_E_MEMORY;
    f->previous[op] = f->previous[index];
    f->previous[index] = op;
    ONX_TRY(onxi_simplify_become(s, op, type, node.attribute, node.attribute_count));
    return onxi_simplify_set_inputs(s, op, inputs, body->input_count);
}

/* Does the operator support the result type? The types between the nodes of the replacement are not known yet, but the
 * conditions ensure that the result has the type of an input. */
static bool is_for(onxi_simplify *s, const onx_node *node, uint32_t y)
{
    const onxi_bound *bound = onxi_bind(&s->binder, node);
    onxi_type type;
    const onxi_type *types[ONXI_REWRITE_INPUTS + 1];
    if (!bound || !bound->schema || bound->kind != ONXI_BOUND_OPERATOR || !onxi_simplify_type(s, y, &type))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        types[i] = &type;
    return takes(bound->schema, types, node->input_count);
}

static bool may_replace(onxi_simplify *s, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t index)
{
    const onxi_rewrite_shapes shapes = { s, see_shape, see_known_ints, see_bounded };
    for (uint32_t i = 0; i < r->condition_count; i++) {
        onxi_rewrite_condition c;
        if (onxi_rewrite_condition_of(r, m, i, &c) && !onxi_rewrite_holds(&shapes, &c))
            return false;
    }
    return agree(s, r, m, s->ops[index].outputs[0]);
}

static onx_status replace(fuser *f, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t index)
{
    onxi_simplify *s = f->s;
    const uint32_t before = r->replacement->node_count - 1, y = s->ops[index].outputs[0];
    const onx_node *body = r->replacement->node[before];
    uint32_t values[ONXI_REWRITE_INPUTS + 1], count = body->input_count, parts[ONXI_REWRITE_OPS];
    made_values made = { .count = 0 };
    onx_node node;
    if (count > ONXI_REWRITE_INPUTS || !may_replace(s, r, m, index))
        return ONX_OK;
    for (uint32_t i = 0; i < count; i++)
        values[i] = onxi_rewrite_input(r, m, body->input[i]);
    while (!before && count && values[count - 1] == ONXI_S_NONE)
        count--;
    ONX_TRY(make_node(s, r, m, body, &node));
    node.input = body->input;
    node.input_count = count;
    if (before ? !is_for(s, &node, y) : !gives_type(s, &node, values, y))
        return ONX_OK;
    char type[64];
    snprintf(type, sizeof type, "%.*s", ONX_ARG(onx_view(body->op_type)));
    onxi_simplify_note(s, ONXI_SIMPLIFY_FUSE, r->row->name, index, "%s replaces %u nodes", type,
                       onxi_rewrite_parts(r, m, parts));
    for (uint32_t i = 0; i < before; i++) {
        made.names[i] = r->replacement->node[i]->output[0];
        ONX_TRY(add_node(f, r, m, r->replacement->node[i], &made, index, &made.values[i]));
        made.count++;
    }
    for (uint32_t i = 0; i < count; i++)
        values[i] = input_of(r, m, &made, body->input[i]);
    ONX_TRY(onxi_simplify_become(s, index, type, node.attribute, node.attribute_count));
    return onxi_simplify_set_inputs(s, index, values, count);
}

static onx_status apply(onxi_simplify *s, const onxi_rewrite_rule *r)
{
    fuser f = { .s = s };
    const onxi_rewrite_view view = { &f, see_op, see_value, see_number, see_ints };
    onxi_rewrite_match m;
    for (uint32_t i = 0; i < s->op_count; i++) {
        const onxi_sop *op = &s->ops[i];
        if (op->dead || op->opaque || op->bound->op != r->row->root || !op->output_count ||
            op->outputs[0] == ONXI_S_NONE)
            continue;
        f.scope = op->scope;
        if (onxi_rewrite_find(&view, r, i, &m))
            ONX_TRY(replace(&f, r, &m, i));
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
