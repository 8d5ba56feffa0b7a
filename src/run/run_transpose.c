/* run_transpose.c - lets a Transpose of a Transpose read what the first one reads, with both permutations in one. If
 * the two change nothing, the second is a view of its input (kernel/tensor/layout.c). Ops that convert between channels
 * first and channels last leave many such pairs. The rewrite rules go first: patterns contain single ones. */
#include "run/run.h"

typedef struct joiner {
    onxi_run_graph *g;
    uint32_t *maker; /* per slot: index after the Transpose that makes it; 0: something else does */
    bool *read;      /* per slot: an op, a rewrite condition, or the caller reads it */
    bool changed;
} joiner;

/* The permutation of a Transpose; NULL if it depends on the rank, or is none, which its rule will say. */
static const onxi_attr_value *perm_of(const onxi_run_op *op)
{
    const onxi_attr_value *perm = onxi_attrs_get(&op->attrs, "perm", ONX_ATTR_INTS);
    bool seen[ONX_RANK_MAX] = { false };
    if (op->id != ONXI_ID_Transpose || op->part_count || op->input_count != 1 || op->inputs[0] == ONXI_NO_SLOT ||
        op->outputs[0] == ONXI_NO_SLOT || !perm || !perm->count || perm->count > ONX_RANK_MAX)
        return NULL;
    for (uint32_t i = 0; i < perm->count; i++) {
        const int64_t axis = ((const int64_t *)perm->list)[i];
        if (axis < 0 || axis >= perm->count || seen[axis])
            return NULL;
        seen[axis] = true;
    }
    return perm;
}

static onx_status join(joiner *j, const onxi_run_op *first, onxi_run_op *op)
{
    const onxi_attr_value *inner = perm_of(first), *outer = perm_of(op);
    onxi_attr_value *values = ONXI_ARRAY(j->g->arena, onxi_attr_value, op->attrs.count);
    int64_t *perm = ONXI_ARRAY(j->g->arena, int64_t, outer->count);
    if (!values || !perm)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < outer->count; i++)
        perm[i] = ((const int64_t *)inner->list)[((const int64_t *)outer->list)[i]];
    for (uint32_t i = 0; i < op->attrs.count; i++) {
        values[i] = op->attrs.values[i];
        if (&op->attrs.values[i] == outer)
            values[i].list = perm;
    }
    op->attrs.values = values;
    op->inputs[0] = first->inputs[0];
    j->changed = true;
    return ONX_OK;
}

static onx_status look_at(joiner *j, uint32_t index)
{
    onxi_run_op *op = &j->g->ops[index];
    const onxi_attr_value *perm = perm_of(op);
    if (!perm)
        return ONX_OK;
    const uint32_t maker = j->maker[op->inputs[0]];
    j->maker[op->outputs[0]] = index + 1;
    return maker && perm_of(&j->g->ops[maker - 1])->count == perm->count ? join(j, &j->g->ops[maker - 1], op) : ONX_OK;
}

/* Marks what an op reads, and the ops that it replaces. */
static void mark_reads(const joiner *j, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->input_count + op->capture_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT)
            j->read[op->inputs[i]] = true;
    onxi_run_op_mark_conditions(j->g, op, j->read);
    for (uint32_t i = 0; i < op->part_count; i++)
        mark_reads(j, &op->parts[i]);
}

/* Removes each Transpose that nobody reads any more. */
static void drop_unread(const joiner *j)
{
    for (uint32_t i = 0; i < j->g->output_count; i++)
        j->read[j->g->outputs[i]] = true;
    for (uint32_t i = j->g->op_count; i-- > 0;) {
        onxi_run_op *op = &j->g->ops[i];
        op->needed &= !perm_of(op) || j->read[op->outputs[0]];
        if (op->needed)
            mark_reads(j, op);
    }
}

onx_status onxi_run_graph_join_transposes(onxi_run_graph *g)
{
    onx_arena *arena;
    ONX_TRY(onx_arena_new(g->session->cx, &arena));
    joiner j = { .g = g,
                 .maker = ONXI_ARRAY(arena, uint32_t, g->slot_count + 1u),
                 .read = ONXI_ARRAY(arena, bool, g->slot_count + 1u) };
    onx_status status = j.maker && j.read ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < g->op_count; i++)
        status = look_at(&j, i);
    if (status == ONX_OK && j.changed)
        drop_unread(&j);
    onx_arena_free(arena);
    return status == ONX_OK && j.changed ? onxi_run_graph_count_uses(g) : status;
}
