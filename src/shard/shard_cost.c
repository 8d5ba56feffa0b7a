/* shard_cost.c - the cost of a node: arithmetic operations, and bytes read and written. */
#include "shard/shard_rules.h"

#include "value/value.h"

double onxi_split_count(const onxi_shard_value *v)
{
    double count = v && v->known;
    for (uint32_t k = 0; v && k < v->rank; k++)
        count *= (double)v->dims[k];
    return count;
}

const onxi_shard_value *onxi_split_operand(const onxi_shard_plan *plan, const onxi_shard_node *n, uint32_t operand)
{
    const uint32_t value = n->inputs[operand]; /* outputs follow */
    return value == ONXI_SHARD_NONE ? NULL : &plan->value[value];
}

/* ---- multiplications and additions ---- */

static double made_by(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    return onxi_split_count(onxi_split_operand(plan, n, n->node->input_count));
}

/* The size of the node's iteration space. */
double onxi_split_work_of_dims(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    double all = 2;
    for (uint32_t i = 0; i < n->rule.dim_count; i++)
        all *= (double)n->rule.dim[i].size;
    return n->rule.dim_count ? all : made_by(plan, n);
}

/* The cost of one filter channel for each of `elements`. */
static double of_windows(const onxi_shard_plan *plan, const onxi_shard_node *n, double elements)
{
    const onxi_shard_value *b = n->node->input_count > 1 ? onxi_split_operand(plan, n, 1) : NULL;
    return b && b->rank && b->known && b->dims[0] ? 2 * elements * onxi_split_count(b) / (double)b->dims[0]
                                                  : made_by(plan, n);
}

double onxi_split_work_of_windows(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    return of_windows(plan, n, made_by(plan, n));
}

double onxi_split_work_of_windows_back(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    return of_windows(plan, n, onxi_split_count(onxi_split_operand(plan, n, 0)));
}

double onxi_split_work_of_attention(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const onxi_shard_value *keys = n->node->input_count > 1 ? onxi_split_operand(plan, n, 1) : NULL;
    return keys && keys->rank >= 3
               ? 4 * onxi_split_count(onxi_split_operand(plan, n, 0)) * (double)keys->dims[keys->rank - 2]
               : made_by(plan, n);
}

/* The output shares memory with the input. */
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

/* The part of an operand on the device; the whole operand if `p` is NULL. */
static double bytes_of(const onxi_shard_value *v, const onxi_placement *p, uint32_t device)
{
    double elements = onxi_split_count(v);
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
        const onxi_shard_value *v = onxi_split_operand(plan, n, i);
        if (!v || (int32_t)i == n->rule.unread || (i == 0 && n->bound->op == ONXI_ID_Gather))
            continue; /* of a table only the selected rows are read */
        const double bytes = bytes_of(v, in ? in[i] : NULL, device);
        w->bytes += bytes;
        w->weights += v->tensor || v->constant ? bytes : 0;
    }
}

static double rows_of(const onxi_shard_plan *plan, const onxi_shard_node *n, double operations)
{
    const bool product = n->row && n->row->product && n->node->input_count > 1;
    const double weights = product ? onxi_split_count(onxi_split_operand(plan, n, 1)) : 0;
    const double rows = weights > 0 ? operations / 2 / weights : 1;
    return rows > 1 ? rows : 1;
}

onxi_shard_work onxi_shard_work_at(const onxi_shard_plan *plan, const onxi_shard_node *n,
                                   const onxi_placement *const *in, double parts, uint32_t device)
{
    onxi_shard_work w = { 0, 0, 0, 1 };
    if (n->bound->kind != ONXI_BOUND_OPERATOR || !n->node->input_count || !n->node->output_count)
        return w;
    const double all = n->row && n->row->operations ? n->row->operations(plan, n) : made_by(plan, n);
    w.operations = all / parts;
    w.rows = rows_of(plan, n, all);
    add_bytes(plan, n, in, device, &w);
    return w;
}

onxi_shard_work onxi_shard_work_of(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    return onxi_shard_work_at(plan, n, NULL, 1, 0);
}
