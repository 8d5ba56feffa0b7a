/* transform_halve_types.c - which operands of a node must have the same type, and whether the operator supports the new
 * type, according to the type constraints of its schema row. */
#include "transform/transform_halve.h"

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
    bool lists;        /* includes a sequence or optional, which cannot be cast */
    uint8_t *in, *out; /* element types, for asking the rule */
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
    const onx_type *type = v && (v->tensor || v->sparse) ? NULL : onxi_halve_type(h, n, name);
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
    const onx_type *type = name.len ? onxi_halve_type(o->h, n, name) : NULL;
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

/* ---- what the rule of the operator says ---- */

/* Does an input that the node omits have the constraint? */
static bool binds_input(const onxi_halve_node *n, const char *constraint)
{
    for (const onxi_port *p = n->schema ? n->schema->inputs : NULL; constraint && p && p->name; p++)
        if (strcmp(p->type, constraint) == 0)
            return true;
    return false;
}

/* Asks with the new type for the inputs of one variable (NULL: of all that may change). */
static bool ask_with(operands *o, const variable *v, bool changed)
{
    for (uint32_t i = 0; i < o->n->node->input_count; i++) {
        const onxi_halve_use *use = &o->h->use[o->n->use + i];
        const bool fresh =
            use->value != ONXI_HALVE_NONE && (v ? use->term == v->term : !onxi_halve_stays(o->h, use->term));
        o->in[i] = (uint8_t)(use->value == ONXI_HALVE_NONE ? ONX_UNDEFINED
                             : fresh                       ? (int)o->h->to
                                                           : o->h->value[use->value].from);
    }
    return onxi_halve_ask(o->h, o->n, o->in, changed, o->out);
}

/* The index of an output with the variable's type; a variable has outputs if this is called. */
static uint32_t output_of(const operands *o, const uint32_t *outputs, const variable *v)
{
    uint32_t i = 0;
    while (i + 1 < o->n->node->output_count && outputs[i] != v->term)
        i++;
    return i;
}

static bool is_of(const operands *o, const variable *v)
{
    return v->inputs && !onxi_halve_stays(o->h, v->term);
}

/* Does an attribute of the row give the type of the first output? */
static bool find_attribute(operands *o, bool given)
{
    const onxi_schema *schema = o->n->schema;
    const variable none = { .term = ONXI_HALVE_NONE };
    for (uint32_t i = 0; schema->attrs && schema->attrs[i].name; i++) {
        if (schema->attrs[i].type != ONX_ATTR_INT && schema->attrs[i].type != ONX_ATTR_TENSOR)
            continue;
        const onx_attribute *a = onx_node_attribute(o->n->node, schema->attrs[i].name);
        if ((a != NULL) != given || (a && onx_view(onx_attribute_more(a)->ref_attr_name).len))
            continue;
        o->n->attribute = i;
        if (ask_with(o, &none, true) && o->out[0] == (uint8_t)o->h->to)
            return true;
    }
    return false;
}

/* The type of an output whose variable no input has: an attribute gives it; or it follows that of an input; or it is
 * that of input 0, if the input that would determine it is omitted (like the state of LinearAttention); or it is not
 * converted. */
static void settle_output(operands *o, const uint32_t *outputs, variable *v)
{
    onxi_halver *h = o->h;
    onxi_halve_node *n = o->n;
    const uint32_t index = output_of(o, outputs, v);
    if (!index && find_attribute(o, true)) {
        n->term = v->term;
        return;
    }
    for (uint32_t k = 0; k < o->count; k++)
        if (is_of(o, &o->list[k]) && ask_with(o, &o->list[k], false) && o->out[index] == (uint8_t)h->to) {
            onxi_halve_unite(h, v->term, o->list[k].term);
            return;
        }
    if (!index && find_attribute(o, false))
        n->term = v->term;
    else if (n->node->input_count && h->use[n->use].value != ONXI_HALVE_NONE && binds_input(n, v->name))
        onxi_halve_unite(h, v->term, h->use[n->use].term);
    else
        stay(o, v);
}

/* Variables whose types the rule wants to be equal have one term; all keep their types if the rule does not take the
 * new one. */
static void settle_inputs(operands *o)
{
    variable *first = NULL;
    uint32_t several = 0;
    for (uint32_t i = 0; i < o->count; i++)
        if (is_of(o, &o->list[i]) && !first)
            first = &o->list[i];
    for (uint32_t i = 0; i < o->count; i++)
        several += is_of(o, &o->list[i]);
    if (!several)
        return;
    const bool takes = ask_with(o, NULL, false);
    for (uint32_t i = 0; i < o->count && !takes && several == 1; i++)
        if (is_of(o, &o->list[i]))
            stay(o, &o->list[i]);
    for (uint32_t i = 0; i < o->count && several > 1; i++)
        if (is_of(o, &o->list[i]) && !ask_with(o, &o->list[i], false))
            onxi_halve_unite(o->h, first->term, o->list[i].term);
    if (!takes && several > 1 && !ask_with(o, NULL, false))
        stay(o, first);
}

/* The types of subgraphs of nodes other than control flow are only known to their rules; and for some operators bits
 * matter instead of numbers. */
static bool is_closed(const onxi_halve_node *n)
{
    bool holds = onxi_operator_is(n->op, ONXI_TRAIT_BITS);
    for (uint32_t i = 0; i < n->node->attribute_count; i++)
        holds |= n->node->attribute[i]->slot == ONX_SLOT_G || n->node->attribute[i]->slot == ONX_SLOT_GRAPHS;
    return holds;
}

static void settle(operands *o, const uint32_t *outputs)
{
    const variable none = { .term = ONXI_HALVE_NONE };
    bool good = o->n->chosen && ask_with(o, &none, false);
    for (uint32_t i = 0; good && i < o->n->node->output_count; i++) {
        const onx_str name = onx_view(o->n->node->output[i]);
        const int known = name.len ? onxi_type_dtype(onxi_halve_type(o->h, o->n, name)) : ONX_UNDEFINED;
        good = !known || !o->out[i] || o->out[i] == known;
    }
    for (uint32_t i = 0; !good && i < o->count; i++)
        stay(o, &o->list[i]);
    if (!good)
        return;
    o->n->asked = true;
    settle_inputs(o);
    for (uint32_t i = 0; i < o->count; i++)
        if (o->list[i].outputs && !o->list[i].inputs)
            settle_output(o, outputs, &o->list[i]);
}

/* Has no other variable the type? */
static bool is_alone(const operands *o, const variable *v)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (&o->list[i] != v && onxi_halve_root(o->h, o->list[i].term) == onxi_halve_root(o->h, v->term))
            return false;
    return v->inputs == 1 && !v->outputs;
}

onx_status onxi_halve_operands(onxi_halver *h, onxi_halve_node *n, uint32_t *outputs)
{
    operands o = { .h = h, .n = n };
    n->chosen = n->chosen && n->schema && !(n->schema->flags & ONXI_OP_OPEN) && !is_closed(n);
    o.in = ONXI_ARRAY(h->scratch, uint8_t, (size_t)n->node->input_count + 1);
    o.out = ONXI_ARRAY(h->scratch, uint8_t, (size_t)n->node->output_count + 1);
    if (!o.in || !o.out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < n->node->input_count; i++)
        ONX_TRY(meet_input(&o, i));
    for (uint32_t i = 0; i < n->node->output_count; i++)
        ONX_TRY(meet_output(&o, i, outputs));
    if (n->op != ONXI_ID_Constant)
        settle(&o, outputs);
    for (uint32_t i = 1; i < o.count && o.lists; i++)
        onxi_halve_unite(h, o.list[0].term, o.list[i].term);
    /* An operand that shares its type with no other is accepted in any type. */
    for (uint32_t i = 0; i < n->node->input_count && !o.lists; i++) {
        onxi_halve_use *use = &h->use[n->use + i];
        for (uint32_t k = 0; use->value != ONXI_HALVE_NONE && k < o.count; k++)
            if (o.list[k].term == use->term && is_alone(&o, &o.list[k]) && !onxi_halve_stays(h, use->term))
                use->want = ONXI_HALVE_ANY;
    }
    return ONX_OK;
}
