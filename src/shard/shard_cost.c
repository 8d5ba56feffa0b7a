/* shard_cost.c - what a node takes: arithmetic, and bytes that are read and written. */
#include "shard/shard.h"

#include "value/value.h"

static double count_of(const onxi_shard_value *v)
{
    double count = v && v->known;
    for (uint32_t k = 0; v && k < v->rank; k++)
        count *= (double)v->dims[k];
    return count;
}

static const onxi_shard_value *value_at(const onxi_shard_plan *plan, const onxi_shard_node *n, uint32_t operand)
{
    const uint32_t value = n->inputs[operand]; /* outputs follow */
    return value == ONXI_SHARD_NONE ? NULL : &plan->value[value];
}

/* Multiplications and additions of the node. */
static double arithmetic(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const uint32_t ins = n->node->input_count;
    const onxi_shard_value *a = value_at(plan, n, 0), *b = ins > 1 ? value_at(plan, n, 1) : NULL;
    const double made = count_of(value_at(plan, n, ins));
    double all = 2;
    switch (n->bound->op) {
    case ONXI_ID_MatMul:
    case ONXI_ID_Gemm:
    case ONXI_ID_Einsum:
        for (uint32_t i = 0; i < n->rule.dim_count; i++)
            all *= (double)n->rule.dim[i].size;
        return n->rule.dim_count ? all : made;
    case ONXI_ID_Conv:
        return b && b->rank && b->known ? 2 * made * count_of(b) / (double)b->dims[0] : made;
    case ONXI_ID_ConvTranspose:
        return b && b->rank && b->known ? 2 * count_of(a) * count_of(b) / (double)b->dims[0] : made;
    case ONXI_ID_Attention:
        return b && b->rank >= 3 ? 4 * count_of(a) * (double)b->dims[b->rank - 2] : made;
    default:
        return made;
    }
}

static double bytes(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const uint32_t operands = n->node->input_count + n->node->output_count;
    double all = 0;
    switch (n->bound->op) {
    case ONXI_ID_Reshape:
    case ONXI_ID_Flatten:
    case ONXI_ID_Squeeze:
    case ONXI_ID_Unsqueeze:
    case ONXI_ID_Identity:
        return 0; /* the same memory */
    default:
        break;
    }
    for (uint32_t i = 0; i < operands; i++) {
        const onxi_shard_value *v = value_at(plan, n, i);
        if (!v || (int32_t)i == n->rule.unread || (i == 0 && n->bound->op == ONXI_ID_Gather))
            continue; /* of a table only what is made is read */
        all += count_of(v) * onxi_element_size(v->dtype);
    }
    return all;
}

onxi_shard_work onxi_shard_work_of(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    if (n->bound->kind != ONXI_BOUND_OPERATOR || !n->node->input_count || !n->node->output_count)
        return (onxi_shard_work){ 0, 0 };
    return (onxi_shard_work){ arithmetic(plan, n), bytes(plan, n) };
}
