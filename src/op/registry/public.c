/* public.c - the accessor functions of onx/op.h. */
#include "op/op.h"

uint32_t onx_op_count(void)
{
    return onxi_operator_count;
}

const onx_op *onx_op_get(uint32_t index)
{
    return index < onxi_operator_count ? onxi_operators[index].rows : NULL;
}

const onx_op *onx_op_find(onx_str domain, onx_str name, int64_t opset)
{
    return onxi_schema_find(domain, name, opset);
}

const onx_op *onx_op_newest(onx_str domain, onx_str name)
{
    return onxi_schema_newest(domain, name);
}

/* Versions of one operator are consecutive, newest first. */
const onx_op *onx_op_older(const onx_op *op)
{
    if (!op)
        return NULL;
    return op[1].name ? &op[1] : NULL;
}

int64_t onx_domain_newest(onx_str domain)
{
    return onxi_domain_newest(domain);
}

const char *onx_op_domain(const onx_op *op)
{
    if (!op)
        return "";
    return onxi_schema_domain(op);
}

const char *onx_op_name(const onx_op *op)
{
    if (!op)
        return "";
    return op->name;
}

int32_t onx_op_since(const onx_op *op)
{
    if (!op)
        return 0;
    return op->since;
}

/* The built-in operator of a row, or NULL. */
static const onxi_operator *built_in(const onx_op *op)
{
    return onxi_operator_at(onx_str_of(onxi_schema_domain(op)), onx_str_of(op->name), op->since);
}

uint32_t onx_op_flags(const onx_op *op)
{
    if (!op)
        return 0;
    const bool standard = !op->own && onxi_operator_is_standard(onxi_operator_id(built_in(op)));
    return op->flags | (standard ? ONX_OP_STANDARD : 0u);
}

const char *onx_op_family(const onx_op *op)
{
    if (!op)
        return "";
    const onxi_operator *operator_ = built_in(op);
    return operator_ ? onxi_families[operator_->family].name : "custom";
}

const char *onx_op_summary(const onx_op *op)
{
    if (!op)
        return "";
    if (op->own)
        return op->own->summary;
    const onxi_operator *operator_ = built_in(op);
    return operator_ ? operator_->summary : "";
}

const char *onx_op_work(const onx_op *op)
{
    const onxi_operator *operator_ = op ? built_in(op) : NULL;
    if (!operator_)
        return NULL;
    const char *text = onxi_families[operator_->family].work;
    switch (onxi_operator_id(operator_)) {
#define WORK(symbol, work)                                                                                             \
    case ONXI_ID_##symbol:                                                                                             \
        text = work;                                                                                                   \
        break;
#include "op/work.def"
    default:
        break;
    }
    return strcmp(text, "?") == 0 ? NULL : text;
}

/* The row; a variadic port repeats for further operands. */
static const onx_op_port *row_at(const onxi_port *ports, uint32_t index)
{
    for (; ports && ports->name; ports++)
        if (index-- == 0)
            return ports;
    return NULL;
}

const onx_op_port *onx_op_input(const onx_op *op, uint32_t index)
{
    if (!op)
        return NULL;
    return row_at(op->inputs, index);
}

const onx_op_port *onx_op_output(const onx_op *op, uint32_t index)
{
    if (!op)
        return NULL;
    return row_at(op->outputs, index);
}

const onx_op_attribute *onx_op_attribute_at(const onx_op *op, uint32_t index)
{
    if (!op)
        return NULL;
    for (const onxi_attr *a = op->attrs; a && a->name; a++)
        if (index-- == 0)
            return a;
    return NULL;
}

uint32_t onx_op_min_input(const onx_op *op)
{
    if (!op)
        return 0;
    return op->min_input;
}

uint32_t onx_op_max_input(const onx_op *op)
{
    if (!op)
        return 0;
    return op->max_input;
}

uint32_t onx_op_min_output(const onx_op *op)
{
    if (!op)
        return 0;
    return op->min_output;
}

uint32_t onx_op_max_output(const onx_op *op)
{
    if (!op)
        return 0;
    return op->max_output;
}

const onx_function *onx_op_body(const onx_op *op)
{
    if (!op)
        return NULL;
    return onxi_schema_body(op);
}

bool onx_op_is_composed(const onx_op *op)
{
    if (!op)
        return false;
    return onxi_schema_body(op) || onxi_schema_is_composed(op);
}
