/* transform_halve_types.c - which operands of a node must have the same type, and whether the operator supports the new
 * type, according to the type constraints of its schema row. */
#include "transform/transform_halve.h"

const onxi_halve_attribute onxi_halve_attributes[] = {
    { "Cast", "to", ONX_FLOAT },
    { "ConstantOfShape", "value", ONX_FLOAT },
    { "EyeLike", "dtype", ONX_UNDEFINED },
    { "RandomNormal", "dtype", ONX_FLOAT },
    { "RandomUniform", "dtype", ONX_FLOAT },
    { "RandomNormalLike", "dtype", ONX_UNDEFINED },
    { "RandomUniformLike", "dtype", ONX_UNDEFINED },
    { "Bernoulli", "dtype", ONX_UNDEFINED },
    { "SequenceEmpty", "dtype", ONX_FLOAT },
    { "HannWindow", "output_datatype", ONX_FLOAT },
    { "HammingWindow", "output_datatype", ONX_FLOAT },
    { "BlackmanWindow", "output_datatype", ONX_FLOAT },
    { "MelWeightMatrix", "output_datatype", ONX_FLOAT },
    { NULL, NULL, 0 },
};

static uint8_t attribute_row(const onxi_halve_node *n)
{
    const onx_str op = onx_view(n->node->op_type);
    for (uint8_t i = 0; n->schema && onxi_halve_attributes[i].op; i++)
        if (onx_str_is(op, onxi_halve_attributes[i].op) &&
            onxi_schema_attr(n->schema, onx_str_of(onxi_halve_attributes[i].name)))
            return (uint8_t)(i + 1);
    return 0;
}

/* ---- the type variables of a node ---- */

enum { VARIABLES = 64 };

typedef struct variable {
    const char *name; /* of a constraint; NULL: of a single operand */
    uint32_t term, inputs, outputs;
} variable;

typedef struct operands {
    onxi_halver *h;
    onxi_halve_node *n;
    variable list[VARIABLES];
    uint32_t count;
    bool lists; /* includes a sequence or optional, which cannot be cast */
} operands;

static onx_status variable_of(operands *o, const onxi_port *port, variable **out)
{
    const bool alone = !port || (port->flags & ONXI_PORT_HETEROGENEOUS) || !onxi_schema_type(o->n->schema, port->type);
    for (uint32_t i = 0; !alone && i < o->count; i++)
        if (o->list[i].name && strcmp(o->list[i].name, port->type) == 0) {
            *out = &o->list[i];
            return ONX_OK;
        }
    /* Further operands share the last variable, and keep their types. */
    const bool full = o->count == VARIABLES;
    *out = &o->list[full ? VARIABLES - 1 : o->count++];
    if (full) {
        o->h->term[onxi_halve_root(o->h, (*out)->term)].stays = true;
        return ONX_OK;
    }
    **out = (variable){ .name = alone ? NULL : port->type };
    return onxi_halve_term_new(o->h, !o->n->chosen, &(*out)->term);
}

static void stay(operands *o, const variable *v)
{
    o->h->term[onxi_halve_root(o->h, v->term)].stays = true;
}

bool onxi_halve_takes(const onxi_halver *h, const onxi_halve_node *n, const onxi_port *port, const onx_type *type)
{
    const onxi_type_constraint *c = port && n->schema ? onxi_schema_type(n->schema, port->type) : NULL;
    return c && type && onxi_element_types(&c->set, type) >> h->to & 1;
}

/* An operand of that type at a port; it keeps its type if the port does not support the new one. */
static onx_status meet(operands *o, const onxi_port *port, const onx_type *type, variable **out)
{
    ONX_TRY(variable_of(o, port, out));
    if (!onxi_halve_takes(o->h, o->n, port, type))
        stay(o, *out);
    o->lists |= type && !onxi_halve_is_tensor(type);
    return ONX_OK;
}

static const onx_type *type_of(const onxi_halver *h, const onxi_halve_node *n, onx_str name)
{
    return onxi_values_type((onxi_values *)(uintptr_t)&h->values, &n->scope->scope, name);
}

static onx_status meet_input(operands *o, uint32_t i)
{
    onxi_halver *h = o->h;
    onxi_halve_node *n = o->n;
    const onx_str name = onx_view(n->node->input[i]);
    onxi_halve_use *use = &h->use[n->use + i];
    const onxi_port *port = n->schema ? onxi_port_at(n->schema->inputs, i) : NULL;
    *use = (onxi_halve_use){ ONXI_HALVE_NONE, ONXI_HALVE_NONE, ONXI_HALVE_OLD };
    if (!name.len)
        return ONX_OK;
    const uint32_t value = onxi_halve_find(h, n->scope, name);
    const onxi_halve_value *v = value == ONXI_HALVE_NONE ? NULL : &h->value[value];
    const onx_type *type = v && (v->tensor || v->sparse) ? NULL : type_of(h, n, name);
    variable *var;
    onx_type_tensor element = { 0 };
    const onx_type plain = { .has = onx_type_has_tensor_type, .tensor_type = &element };
    if (v && v->from && (v->tensor || v->sparse)) /* its type is that of the tensor */
        type = &plain;
    if (!v || !v->from) {
        const onxi_type_constraint *c = port && n->schema ? onxi_schema_type(n->schema, port->type) : NULL;
        const bool known = (v && (v->tensor || v->sparse)) || onxi_type_dtype(type) != ONX_UNDEFINED;
        if (!known && !h->untyped++)
            h->untyped_name = name;
        if (known || !c) /* its type is not converted, so it has no influence */
            return ONX_OK;
        ONX_TRY(variable_of(o, port, &var));
        stay(o, var);
        return ONX_OK;
    }
    ONX_TRY(meet(o, port, type, &var));
    var->inputs++;
    *use = (onxi_halve_use){ value, var->term, ONXI_HALVE_TERM };
    if (!v->tensor_typed)
        onxi_halve_unite(h, var->term, v->term);
    return ONX_OK;
}

static onx_status meet_output(operands *o, uint32_t i, uint32_t *out)
{
    onxi_halve_node *n = o->n;
    const onx_str name = onx_view(n->node->output[i]);
    const onxi_port *port = n->schema ? onxi_port_at(n->schema->outputs, i) : NULL;
    const onx_type *type = name.len ? type_of(o->h, n, name) : NULL;
    variable *var;
    out[i] = ONXI_HALVE_NONE;
    if (!name.len)
        return ONX_OK;
    if (!onxi_halve_source(o->h, type)) {
        if (onxi_type_dtype(type) == ONX_UNDEFINED && port && n->schema && onxi_schema_type(n->schema, port->type)) {
            ONX_TRY(variable_of(o, port, &var));
            stay(o, var);
        }
        return ONX_OK;
    }
    ONX_TRY(meet(o, port, type, &var));
    var->outputs++;
    out[i] = var->term;
    return ONX_OK;
}

/* Does an input that the node omits have the constraint? */
static bool binds_input(const onxi_halve_node *n, const char *constraint)
{
    for (const onxi_port *p = n->schema ? n->schema->inputs : NULL; constraint && p && p->name; p++)
        if (strcmp(p->type, constraint) == 0)
            return true;
    return false;
}

/* The type of an output that no input determines: an attribute gives it; or it is that of input 0, if the input that
 * would determine it is omitted (like the state of LinearAttention); or it is not converted. */
static void settle_output(operands *o, variable *v)
{
    onxi_halver *h = o->h;
    onxi_halve_node *n = o->n;
    const onxi_halve_attribute *row = n->attribute ? &onxi_halve_attributes[n->attribute - 1] : NULL;
    const onx_attribute *given = row ? onx_node_attribute(n->node, row->name) : NULL;
    if (!row && n->node->input_count && h->use[n->use].value != ONXI_HALVE_NONE && binds_input(n, v->name)) {
        onxi_halve_unite(h, v->term, h->use[n->use].term);
        return;
    }
    if (!row || (given && onx_view(onx_attribute_more(given)->ref_attr_name).len)) {
        stay(o, v);
        return;
    }
    n->term = v->term;
    if (given || row->implied != ONX_UNDEFINED)
        return;
    n->term = ONXI_HALVE_NONE; /* like input 0, whose constraint differs in the row */
    const onxi_halve_use *first = &h->use[n->use];
    if (!n->node->input_count || first->value == ONXI_HALVE_NONE)
        stay(o, v);
    else
        onxi_halve_unite(h, v->term, first->term);
}

/* For BitCast, bits matter instead of values; and the types of subgraphs of nodes other than control flow are only
 * known to their rules. */
static bool is_closed(const onxi_halve_node *n)
{
    bool holds = n->op == ONXI_ID_BitCast;
    for (uint32_t i = 0; i < n->node->attribute_count; i++)
        holds |= n->node->attribute[i]->slot == ONX_SLOT_G || n->node->attribute[i]->slot == ONX_SLOT_GRAPHS;
    return holds;
}

onx_status onxi_halve_operands(onxi_halver *h, onxi_halve_node *n, uint32_t *outputs)
{
    operands o = { .h = h, .n = n };
    n->chosen = n->chosen && n->schema && !is_closed(n);
    n->attribute = attribute_row(n);
    for (uint32_t i = 0; i < n->node->input_count; i++)
        ONX_TRY(meet_input(&o, i));
    for (uint32_t i = 0; i < n->node->output_count; i++)
        ONX_TRY(meet_output(&o, i, outputs));
    for (uint32_t i = 0; i < o.count; i++) {
        variable *v = &o.list[i];
        if (v->outputs && !v->inputs)
            settle_output(&o, v);
        if (o.lists && i)
            onxi_halve_unite(h, o.list[0].term, v->term);
    }
    /* An operand that shares its type with no other is accepted in any type. */
    for (uint32_t i = 0; i < n->node->input_count && !o.lists; i++) {
        onxi_halve_use *use = &h->use[n->use + i];
        for (uint32_t k = 0; use->value != ONXI_HALVE_NONE && k < o.count; k++)
            if (o.list[k].term == use->term && o.list[k].inputs == 1 && !o.list[k].outputs &&
                !onxi_halve_stays(h, use->term))
                use->want = ONXI_HALVE_ANY;
    }
    return ONX_OK;
}
