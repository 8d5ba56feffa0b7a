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
#ifdef ONX_DOMAIN_MICROSOFT
    case ONXI_ID_microsoft_MatMulNBits:
#endif
        return a && a->rank && a->known ? 2 * made * (double)a->dims[a->rank - 1] : made;
    case ONXI_ID_Attention:
        return b && b->rank >= 3 ? 4 * count_of(a) * (double)b->dims[b->rank - 2] : made;
    default:
        return made;
    }
}

/* The same memory. */
static bool moves_nothing(const onxi_shard_node *n)
{
    switch (n->bound->op) {
    case ONXI_ID_Reshape:
    case ONXI_ID_Flatten:
    case ONXI_ID_Squeeze:
    case ONXI_ID_Unsqueeze:
    case ONXI_ID_Identity:
        return true;
    default:
        return false;
    }
}

/* What the device has of an operand; of the whole where `p` is NULL. */
static double bytes_of(const onxi_shard_value *v, const onxi_placement *p, uint32_t device)
{
    double elements = count_of(v);
    if (p && p->at[device] < 0)
        return 0;
    if (p && v->known) {
        const onxi_box box = onxi_placement_box(p, v->dims, v->rank, (uint32_t)p->at[device]);
        elements = 1;
        for (uint32_t k = 0; k < v->rank; k++)
            elements *= (double)box.size[k];
    }
    return elements * onxi_element_size(v->dtype);
}

static void add_bytes(const onxi_shard_plan *plan, const onxi_shard_node *n, const onxi_placement *const *in,
                      uint32_t device, onxi_shard_work *w)
{
    const uint32_t operands = n->node->input_count + n->node->output_count;
    for (uint32_t i = 0; i < operands && !moves_nothing(n); i++) {
        const onxi_shard_value *v = value_at(plan, n, i);
        if (!v || (int32_t)i == n->rule.unread || (i == 0 && n->bound->op == ONXI_ID_Gather))
            continue; /* of a table only what is made is read */
        const double bytes = bytes_of(v, in ? in[i] : NULL, device);
        w->bytes += bytes;
        w->weights += v->tensor || v->constant ? bytes : 0;
    }
}

/* A product of few rows waits for each weight once, one of many rows also for those that it has in a cache. */
static double passes(const onxi_shard_plan *plan, const onxi_shard_node *n, double operations)
{
    const bool product =
        n->bound->op == ONXI_ID_MatMul || n->bound->op == ONXI_ID_Gemm || onxi_shard_is_few_bits(n->bound->op);
    const onxi_shard_value *b = product && n->node->input_count > 1 ? value_at(plan, n, 1) : NULL;
    const double rows = b && count_of(b) > 0 ? operations / 2 / count_of(b) : 1;
    return rows > 1 ? 2 - 1 / rows : 1;
}

onxi_shard_work onxi_shard_work_at(const onxi_shard_plan *plan, const onxi_shard_node *n,
                                   const onxi_placement *const *in, double parts, uint32_t device)
{
    onxi_shard_work w = { 0, 0, 0, 1 };
    if (n->bound->kind != ONXI_BOUND_OPERATOR || !n->node->input_count || !n->node->output_count)
        return w;
    const double all = arithmetic(plan, n);
    w.operations = all / parts;
    w.passes = passes(plan, n, all);
    add_bytes(plan, n, in, device, &w);
    return w;
}

onxi_shard_work onxi_shard_work_of(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    return onxi_shard_work_at(plan, n, NULL, 1, 0);
}
