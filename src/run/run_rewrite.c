/* run_rewrite.c - replaces several nodes by one operator, by the rules of rewrite_rules.def. The nodes are kept with
 * the op (`parts`): a plan for which the op does not apply uses them instead. */
#include "run/run.h"

typedef struct rewriter {
    onxi_run_graph *g;
    uint32_t *maker; /* per slot: 1 + the op that makes it, 0: none */
    bool changed;
} rewriter;
_Static_assert(ONXI_NO_SLOT == ONXI_REWRITE_NONE, "a slot that is none is a value that is none");

bool onxi_run_read_ints(const onx_value *v, int64_t *out, uint32_t most, uint32_t *count)
{
    if (!v || v->kind != ONX_VALUE_TENSOR || (v->dtype != ONX_INT64 && v->dtype != ONX_INT32) || !v->data ||
        v->count > most || v->rank > 1)
        return false;
    *count = (uint32_t)v->count;
    for (uint32_t i = 0; i < *count; i++) {
        int32_t narrow;
        if (v->dtype == ONX_INT64) {
            memcpy(&out[i], (const char *)v->data + i * sizeof *out, sizeof *out);
            continue;
        }
        memcpy(&narrow, (const char *)v->data + i * sizeof narrow, sizeof narrow);
        out[i] = narrow;
    }
    return true;
}

/* ---- callbacks of the matcher ---- */

static bool see_op(void *user, uint32_t index, onxi_rewrite_op *out)
{
    const rewriter *w = user;
    const onxi_run_op *op = &w->g->ops[index];
    if (!op->needed || op->guard_end || op->graph_count)
        return false;
    *out = (onxi_rewrite_op){ .id = op->id,
                              .since = op->since,
                              .attrs = op->attrs,
                              .inputs = op->inputs,
                              .outputs = op->outputs,
                              .input_count = op->input_count,
                              .output_count = op->output_count };
    return true;
}

static void see_value(void *user, uint32_t value, onxi_rewrite_value *out)
{
    const rewriter *w = user;
    const onxi_run_graph_slot *slot = &w->g->slots[value];
    *out = (onxi_rewrite_value){ w->maker[value], slot->uses, slot->is_output, slot->constant != NULL };
}

static bool see_number(void *user, uint32_t value, onxi_rewrite_number *out)
{
    const rewriter *w = user;
    const onxi_run_graph_slot *slot = &w->g->slots[value];
    const onx_value *v = slot->constant;
    if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype == ONX_STRING || !v->data || !v->count || v->rank > 1 ||
        v->count > ONXI_REWRITE_UNIFORM)
        return false;
    *out = (onxi_rewrite_number){ slot->narrow ? slot->narrow : v->dtype, onxi_value_number(v, 0), v->count };
    for (uint64_t i = 1; i < v->count; i++)
        if (onxi_value_number(v, i) != out->number)
            return false;
    return true;
}

static bool see_ints(void *user, uint32_t value, int64_t *out, uint32_t *count)
{
    const rewriter *w = user;
    return onxi_run_read_ints(w->g->slots[value].constant, out, ONXI_REWRITE_INTS, count);
}

/* ---- replacing ---- */

/* The conditions of the rule that are checked for each plan. */
static onx_status conditions_of(const onxi_rewrite_rule *r, const onxi_rewrite_match *m, onx_arena *arena,
                                onxi_run_op *op)
{
    onxi_rewrite_condition *list = ONXI_ARRAY(arena, onxi_rewrite_condition, r->condition_count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < r->condition_count; i++)
        op->condition_count += onxi_rewrite_condition_of(r, m, i, &list[op->condition_count]);
    op->conditions = list;
    return ONX_OK;
}

static onx_status parts_of(rewriter *w, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, onxi_run_op *op)
{
    uint32_t list[ONXI_REWRITE_OPS];
    const uint32_t count = onxi_rewrite_parts(r, m, list);
    onxi_run_op *parts = ONXI_ARRAY(w->g->session->arena, onxi_run_op, count + 1u);
    if (!parts)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        onxi_run_op *from = &w->g->ops[list[i]];
        parts[op->part_count++] = *from;
        from->needed = false;
        for (uint32_t k = 0; k < from->input_count; k++)
            if (from->inputs[k] != ONXI_NO_SLOT)
                w->g->slots[from->inputs[k]].uses--;
    }
    op->parts = parts;
    return ONX_OK;
}

static onx_status replace(rewriter *w, const onxi_rewrite_rule *r, const onxi_rewrite_match *m, uint32_t index)
{
    onxi_run_session *s = w->g->session;
    const onx_node *body = r->replacement->node[0];
    const onxi_run_op root = w->g->ops[index];
    onx_node *node = onx_message_new(s->arena, ONX_KIND_NODE);
    onxi_run_op op = { .frame = root.frame, .index = root.index, .needed = true, .rule = r->row->name };
    onxi_arguments arguments;
    if (!node || !(op.inputs = ONXI_ARRAY(s->arena, uint32_t, body->input_count + 1u)) ||
        !(op.outputs = ONXI_ARRAY(s->arena, uint32_t, 1)))
        return ONX_E_MEMORY;
    *node = *body;
    node->name = root.node->name;
    op.node = node;
    ONX_TRY(onxi_rewrite_arguments(r, m, s->arena, &arguments));
    ONX_TRY(onxi_run_op_mean(s, r->binder, &arguments, &op));
    if (!op.kernel_count) /* this CPU has no kernel for it */
        return ONX_OK;
    op.input_count = body->input_count;
    op.input_room = body->input_count + 1u;
    op.output_count = 1;
    op.outputs[0] = root.outputs[0];
    for (uint32_t i = 0; i < body->input_count; i++)
        op.inputs[i] = onxi_rewrite_input(r, m, body->input[i]);
    while (op.input_count && op.inputs[op.input_count - 1] == ONXI_NO_SLOT)
        op.input_count--;
    ONX_TRY(conditions_of(r, m, s->arena, &op));
    ONX_TRY(parts_of(w, r, m, &op));
    for (uint32_t i = 0; i < op.input_count; i++)
        if (op.inputs[i] != ONXI_NO_SLOT)
            w->g->slots[op.inputs[i]].uses++;
    w->g->ops[index] = op;
    w->changed = true;
    return ONX_OK;
}

static onx_status apply(rewriter *w, const onxi_rewrite_rule *r)
{
    const onxi_rewrite_view view = { w, see_op, see_value, see_number, see_ints };
    onxi_rewrite_match m;
    for (uint32_t i = 0; i < w->g->op_count; i++)
        if (w->g->ops[i].id == r->row->root && onxi_rewrite_find(&view, r, i, &m))
            ONX_TRY(replace(w, r, &m, i));
    return ONX_OK;
}

onx_status onxi_run_graph_rewrite(onxi_run_graph *g)
{
    onxi_run_session *s = g->session;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    rewriter w = { .g = g, .maker = ONXI_ARRAY(arena, uint32_t, g->slot_count + 1u) };
    bool *there = ONXI_ARRAY(arena, bool, ONXI_ID_END);
    onx_status status = w.maker && there ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK && !s->rewrites.rules)
        status = onxi_rewrites_open(&s->rewrites, s->cx, s->arena);
    for (uint32_t i = 0; status == ONX_OK && i < g->op_count; i++) {
        there[g->ops[i].id] = true;
        for (uint32_t k = 0; k < g->ops[i].output_count; k++)
            if (g->ops[i].outputs[k] != ONXI_NO_SLOT)
                w.maker[g->ops[i].outputs[k]] = i + 1;
    }
    for (const onxi_rewrite_row *row = onxi_rewrite_rows; status == ONX_OK && row->name; row++) {
        const onxi_rewrite_rule *r;
        if (!(row->by & ONXI_REWRITE_BY_SESSION) || !there[row->root] || !there[row->needs])
            continue;
        status = onxi_rewrites_get(&s->rewrites, row, &r);
        if (status == ONX_OK)
            status = apply(&w, r);
    }
    onx_arena_free(arena);
    return status == ONX_OK && w.changed ? onxi_run_graph_count_uses(g) : status;
}

/* ---- undoing rewrites ---- */

onx_status onxi_run_graph_unwritten(const onxi_run_graph *g, const bool *refused, onxi_run_graph **out)
{
    onx_arena *arena = g->arena;
    onxi_run_graph *u = *out = ONXI_NEW(arena, onxi_run_graph);
    uint64_t count = g->op_count;
    for (uint32_t i = 0; i < g->op_count; i++)
        count += refused[i] ? g->ops[i].part_count : 0;
    if (!u || count > UINT32_MAX)
        return ONX_E_MEMORY;
    *u = *g;
    u->unwritten = NULL;
    u->written = g;
    u->plans = (onxi_run_recent){ 0 };
    u->op_count = 0;
    u->op_room = (uint32_t)count + 1;
    u->slot_room = g->slot_count + 1;
    u->ops = ONXI_ARRAY(arena, onxi_run_op, u->op_room);
    u->slots = ONXI_ARRAY(arena, onxi_run_graph_slot, u->slot_room);
    if (!u->ops || !u->slots)
        return ONX_E_MEMORY;
    if (g->slot_count)
        memcpy(u->slots, g->slots, g->slot_count * sizeof *u->slots);
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        const onxi_run_op *from = refused[i] && op->part_count ? op->parts : op;
        uint32_t n = refused[i] && op->part_count ? op->part_count : 1;
        memcpy(u->ops + u->op_count, from, n * sizeof *from);
        u->op_count += n;
    }
    return onxi_run_graph_count_uses(u);
}
