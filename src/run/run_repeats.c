/* run_repeats.c - removes nodes that compute the same as an earlier node of their graph, if its outputs are still
 * needed or were so a few nodes before. Exporters write many: each index with a mask of booleans, for example, is
 * preceded by a NonZero of its own. Values that nobody has read for longer are computed again, so that they need not be
 * kept; gradients with checkpoints repeat nodes for that reason. The rewrite rules go first, because a value with
 * several readers would end their patterns. */
#include "run/run.h"

enum { NEAR = 8 /* nodes for which a value is kept until it is needed again */ };

typedef struct repeats {
    onxi_run_graph *g;
    onxi_table table; /* of `ops` */
    uint32_t *ops;    /* indices of ops that differ from each other; of equal ones, the last that was kept */
    uint32_t op_count;
    uint32_t *instead;  /* per slot: the slot that its readers read */
    uint32_t *last;     /* per slot: the last op that reads it; the number of ops for an output of the graph */
    bool *is_condition; /* per slot: a condition of a rewritten op depends on it */
    bool changed;
} repeats;

static bool may_repeat(const onxi_run_op *op)
{
    if (!op->schema || op->graph_count || op->guard_end || op->part_count || !op->output_count ||
        op->schema->flags & (ONXI_OP_NONDETERMINISTIC | ONXI_OP_DETERMINISM_UNKNOWN) || onx_op_kernel(op->schema) ||
        op->id == ONXI_ID_Dropout) /* random in training */
        return false;
    for (uint32_t i = 0; i < op->kernel_count; i++)
        if (op->kernels[i]->flags & (ONX_KERNEL_RANDOM | ONX_KERNEL_ONCE))
            return false;
    return true;
}

/* May readers of its outputs read others? */
static bool may_go(const repeats *r, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t slot = op->outputs[i];
        if (slot != ONXI_NO_SLOT && (r->g->slots[slot].is_output || r->is_condition[slot]))
            return false;
    }
    return true;
}

static bool is_same(const onxi_run_op *a, const onxi_run_op *b)
{
    if (a->schema != b->schema || a->since != b->since || a->input_count != b->input_count ||
        a->node->output_count != b->node->output_count || a->output_count != b->output_count ||
        !onxi_attrs_equal(&a->attrs, &b->attrs) ||
        (a->input_count && memcmp(a->inputs, b->inputs, a->input_count * sizeof *a->inputs) != 0))
        return false;
    for (uint32_t i = 0; i < b->output_count; i++)
        if ((a->outputs[i] == ONXI_NO_SLOT) != (b->outputs[i] == ONXI_NO_SLOT))
            return false;
    return true;
}

static uint32_t hash_of(const repeats *r, const onxi_run_op *op)
{
    uint64_t hash = onxi_hash_word(r->table.secret, (uint64_t)(uintptr_t)op->schema);
    for (uint32_t i = 0; i < op->input_count; i++)
        hash = onxi_hash_word(onxi_hash_then(r->table.secret, hash), op->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        hash = onxi_hash_word(onxi_hash_then(r->table.secret, hash), op->outputs[i] == ONXI_NO_SLOT);
    return (uint32_t)onxi_attrs_hash(onxi_hash_then(r->table.secret, hash), &op->attrs);
}

/* Are all outputs that the later op has read at its place, behind it or shortly before it? */
static bool is_near(const repeats *r, const onxi_run_op *before, const onxi_run_op *op, uint32_t index)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT && (uint64_t)r->last[before->outputs[i]] + NEAR < index)
            return false;
    return true;
}

/* Reads of an op, and of the ops that it replaces, go to the earlier nodes. */
static void redirect(const repeats *r, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->input_count + op->capture_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT)
            op->inputs[i] = r->instead[op->inputs[i]];
    for (uint32_t i = 0; i < op->part_count; i++)
        redirect(r, &op->parts[i]);
}

static void replace(repeats *r, uint32_t slot, uint32_t by)
{
    r->instead[slot] = by;
    if (r->last[by] < r->last[slot])
        r->last[by] = r->last[slot];
}

static onx_status look_at(repeats *r, uint32_t index)
{
    onxi_run_op *op = &r->g->ops[index];
    redirect(r, op);
    if (!may_repeat(op))
        return ONX_OK;
    const uint32_t hash = hash_of(r, op);
    ONXI_TABLE_EACH (&r->table, hash, i) {
        const onxi_run_op *before = &r->g->ops[r->ops[i]];
        if (!is_same(before, op))
            continue;
        if (!may_go(r, op) || !is_near(r, before, op, index)) {
            r->ops[i] = index;
            return ONX_OK;
        }
        for (uint32_t k = 0; k < op->output_count; k++)
            if (op->outputs[k] != ONXI_NO_SLOT)
                replace(r, op->outputs[k], before->outputs[k]);
        op->needed = false;
        r->changed = true;
        return ONX_OK;
    }
    r->ops[r->op_count] = index;
    return onxi_table_add(&r->table, hash, r->op_count++) ? ONX_OK : ONX_E_MEMORY;
}

/* What the op at the index reads, and the ops that it replaces. */
static void note_reads(const repeats *r, const onxi_run_op *op, uint32_t index)
{
    for (uint32_t i = 0; i < op->input_count + op->capture_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT)
            r->last[op->inputs[i]] = index;
    onxi_run_op_mark_conditions(r->g, op, r->is_condition);
    for (uint32_t i = 0; i < op->part_count; i++)
        note_reads(r, &op->parts[i], index);
}

onx_status onxi_run_graph_merge_repeats(onxi_run_graph *g)
{
    onx_arena *arena;
    ONX_TRY(onx_arena_new(g->session->cx, &arena));
    repeats r = { .g = g,
                  .table = onxi_table_in_arena(arena),
                  .ops = ONXI_ARRAY(arena, uint32_t, g->op_count + 1u),
                  .instead = ONXI_ARRAY(arena, uint32_t, g->slot_count + 1u),
                  .last = ONXI_ARRAY(arena, uint32_t, g->slot_count + 1u),
                  .is_condition = ONXI_ARRAY(arena, bool, g->slot_count + 1u) };
    onx_status status = r.ops && r.instead && r.last && r.is_condition ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < g->slot_count; i++)
        r.instead[i] = i;
    for (uint32_t i = 0; status == ONX_OK && i < g->op_count; i++)
        note_reads(&r, &g->ops[i], i);
    for (uint32_t i = 0; status == ONX_OK && i < g->output_count; i++)
        r.last[g->outputs[i]] = g->op_count;
    for (uint32_t i = 0; status == ONX_OK && i < g->op_count; i++)
        status = look_at(&r, i);
    onx_arena_free(arena);
    return status == ONX_OK && r.changed ? onxi_run_graph_count_uses(g) : status;
}
