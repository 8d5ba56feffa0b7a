/* run_types.c - checks what kernels rely on: operands have types that the operator takes in the version in force, and
 * outputs have types that it gives, as far as the rule tells. Types that are known only while running have passed no
 * checker. A kernel that trusts the type of one operand must not read another operand whose type is smaller. */
#include "run/run.h"

enum { CONSTRAINTS_MAX = 16 };

typedef struct bound {
    const char *constraint;
    onx_dtype dtype;
} bound;

/* The types that a port allows: those of its type constraint, or the one type that it names. */
static onxi_type_set types_of(const onxi_schema *schema, const onxi_port *port, bool *open)
{
    const onxi_type_constraint *c = onxi_schema_type(schema, port->type);
    onxi_type_set set = { 0 };
    *open = !c && !onxi_type_set_add(&set, onx_str_of(port->type));
    return c ? c->set : set;
}

/* Can a value of this kind have one of the types? */
static bool kind_fits(const onxi_type_set *set, onx_value_kind kind)
{
    switch (kind) {
    case ONX_VALUE_SEQUENCE:
        return (set->seq | set->optional_seq) || set->other;
    case ONX_VALUE_OPTIONAL:
        return (set->optional | set->optional_seq) || set->other;
    case ONX_VALUE_MAP:
        return set->other != NULL;
    default:
        return true;
    }
}

/* Words for messages about the inputs or the outputs of a node. */
typedef struct port_side {
    const char *name, *verb;
    const onxi_port *ports;
} port_side;

static onx_status check_tensor(const onx_prepare *p, const onxi_schema *schema, const port_side *side, uint32_t i,
                               onx_dtype dtype, bound *bounds, uint32_t *count)
{
    const onxi_port *port = onxi_port_at(side->ports, i);
    bool open;
    onxi_type_set set = types_of(schema, port, &open);
    uint32_t bit = dtype < 32 ? UINT32_C(1) << dtype : 0;
    if (!open && !((set.tensor | set.optional) & bit))
        return onx_prepare_fail(p, ONX_E_INVALID, "%s %u \"%s\" is a tensor of %s, which %s-%d does not %s", side->name,
                                i, port->name, onx_dtype_name(dtype), schema->name, (int)schema->since, side->verb);
    if (open || port->flags & ONXI_PORT_HETEROGENEOUS || strchr(port->type, '('))
        return ONX_OK;
    for (uint32_t k = 0; k < *count; k++)
        if (strcmp(bounds[k].constraint, port->type) == 0)
            return bounds[k].dtype == dtype
                       ? ONX_OK
                       : onx_prepare_fail(p, ONX_E_INVALID, "%s %u \"%s\" is a tensor of %s where %s is already %s",
                                          side->name, i, port->name, onx_dtype_name(dtype), port->type,
                                          onx_dtype_name(bounds[k].dtype));
    if (*count < CONSTRAINTS_MAX)
        bounds[(*count)++] = (bound){ port->type, dtype };
    return ONX_OK;
}

static onx_status check_side(const onx_prepare *p, const onxi_schema *schema, const port_side *side,
                             const onx_value *const *values, uint32_t value_count, bound *bounds, uint32_t *count)
{
    for (uint32_t i = 0; i < value_count; i++) {
        const onx_value *v = values[i];
        const onxi_port *port = onxi_port_at(side->ports, i);
        if (!v || !port || v->kind == ONX_VALUE_NONE)
            continue;
        if (v->kind == ONX_VALUE_TENSOR && v->dtype)
            ONX_TRY(check_tensor(p, schema, side, i, v->dtype, bounds, count));
        bool open;
        onxi_type_set set = types_of(schema, port, &open);
        if (!open && !kind_fits(&set, v->kind))
            return onx_prepare_fail(p, ONX_E_INVALID, "%s %u \"%s\" is no tensor, and %s-%d %ss tensors only",
                                    side->name, i, port->name, schema->name, (int)schema->since, side->verb);
    }
    return ONX_OK;
}

onx_status onxi_run_op_check_types(const onxi_run_op *op, const onx_prepare *p)
{
    bound bounds[CONSTRAINTS_MAX];
    uint32_t count = 0;
    if (!op->schema || op->schema->flags & ONXI_OP_OPEN)
        return ONX_OK;
    const port_side in = { "input", "take", op->schema->inputs }, out = { "output", "give", op->schema->outputs };
    ONX_TRY(check_side(p, op->schema, &in, p->inputs, op->input_count, bounds, &count));
    /* Before version 9 it has no integer types, but test data that ONNX publishes uses them. */
    if (op->id == ONXI_ID_Constant)
        return ONX_OK;
    return check_side(p, op->schema, &out, (const onx_value *const *)p->outputs, op->output_count, bounds, &count);
}
