/* transform_grad_rules.c - the table of gradient rules. */
#include "transform/transform_grad.h"

#include <onx/grad.h>

#define ROW(op_, kind_, head_, when_, ...)                                                                             \
    { .op = ONXI_ID_##op_, .kind = ONXI_GRAD_##kind_, .head = (head_), .when = onxi_grad_when_##when_, __VA_ARGS__ },
#define MACRO(head, when, nodes)     ROW(NONE, MACRO, head, when, .text = nodes)
#define PART(op, head, when, nodes)  ROW(op, PART, head, when, .text = nodes)
#define WRITTEN(op, when, by)        ROW(op, PART, NULL, when, .write = onxi_grad_write_##by)
#define LOWER(op, head, when, nodes) ROW(op, LOWER, head, when, .text = nodes)
#define LOWER_WRITTEN(op, when, by)  ROW(op, LOWER, NULL, when, .write = onxi_grad_write_##by)
#define LOWER_CODE(op, by)           ROW(op, LOWER, NULL, always, .make = onxi_grad_make_##by)
#define CODE(op, by)                 ROW(op, CODE, NULL, always, .make = onxi_grad_make_##by)
#define AGAIN(op, head, when, nodes) ROW(op, AGAIN, head, when, .text = nodes)
#define STOP(op)                     ROW(op, STOP, NULL, always, .text = NULL)
#define NONE(op, why)                ROW(op, NONE, NULL, always, .text = why)

const onxi_grad_rule onxi_grad_rules[] = {
#include "transform/transform_grad_rules.def"
    { 0 }
};
const uint32_t onxi_grad_rule_count = sizeof onxi_grad_rules / sizeof *onxi_grad_rules - 1;

const onxi_grad_rule *onxi_grad_rule_of(const onxi_grad *g, onxi_op_id op)
{
    return op > ONXI_ID_NONE && op < ONXI_ID_END && g->first[op] ? &onxi_grad_rules[g->first[op] - 1] : NULL;
}

bool onx_grad_knows(const onx_op *op)
{
    if (!op)
        return false;
    const onxi_operator *row = onxi_operator_find(onx_str_of(onx_op_domain(op)), onx_str_of(onx_op_name(op)));
    const onxi_op_id id = onxi_operator_id(row);
    for (uint32_t i = 0; id != ONXI_ID_NONE && i < onxi_grad_rule_count; i++)
        if (onxi_grad_rules[i].op == id)
            return onxi_grad_rules[i].kind != ONXI_GRAD_NONE;
    return *onx_op_domain(op) && onx_op_is_composed(op); /* nodes of other domains are differentiated by their bodies */
}
