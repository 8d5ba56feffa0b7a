/* simplify_control.c - replaces an If with a constant condition, or a Loop that runs at most once, by the nodes that
 * run. */
#include "simplify/simplify.h"

static uint32_t scope_of(onxi_simplify *s, const onxi_sop *op, const char *name)
{
    const onx_attribute *a = onx_node_attribute(op->node, name);
    for (uint32_t scope = op->first_scope; a && a->slot == ONX_SLOT_G && scope != ONXI_S_NONE;
         scope = s->scopes[scope].sibling)
        if (s->scopes[scope].graph && s->scopes[scope].graph == a->g)
            return scope;
    return ONXI_S_NONE;
}

static bool get_number(onxi_simplify *s, uint32_t value, double *out)
{
    uint64_t count;
    return value != ONXI_S_NONE && onxi_simplify_get_numbers(s, value, out, 1, &count) && count == 1;
}

/* Can its nodes be moved to the enclosing graph? Pinned values must stay where they are. */
static bool can_move(const onxi_simplify *s, uint32_t scope, uint32_t first_output, uint32_t outputs)
{
    const onxi_sscope *from = &s->scopes[scope];
    if (from->graph->sparse_initializer_count || from->output_count < first_output ||
        from->output_count - first_output != outputs)
        return false;
    for (uint32_t i = 0; i < from->output_count; i++)
        if (from->outputs[i] == ONXI_S_NONE)
            return false;
    for (uint32_t i = from->first_value; i < from->end_value; i++)
        if (s->values[i].scope == scope && s->values[i].initializer && !s->values[i].tensor)
            return false;
    for (uint32_t i = 0; i < from->input_count; i++)
        if (from->inputs[i] == ONXI_S_NONE || s->values[from->inputs[i]].pinned ||
            s->values[from->inputs[i]].initializer)
            return false;
    return true;
}

/* Moves the values of the scope to the enclosing scope, with unique names. */
static onx_status move_value(onxi_simplify *s, uint32_t value, uint32_t to)
{
    onxi_svalue *v = &s->values[value];
    v->scope = to;
    if (v->shares_name && v->name.bits)
        return onxi_names_make(s->names, onx_view(v->name), (onx_str){ 0 }, &v->name);
    return ONX_OK;
}

static onx_status move_ops(onxi_simplify *s, uint32_t scope, uint32_t at)
{
    onxi_sscope *from = &s->scopes[scope];
    const uint32_t to = s->ops[at].scope;
    for (uint32_t op = from->first; op != ONXI_S_NONE; op = s->ops[op].next) {
        s->ops[op].scope = to;
        for (uint32_t i = 0; i < s->ops[op].output_count; i++)
            if (s->ops[op].outputs[i] != ONXI_S_NONE)
                ONX_TRY(move_value(s, s->ops[op].outputs[i], to));
        for (uint32_t inner = s->ops[op].first_scope; inner != ONXI_S_NONE; inner = s->scopes[inner].sibling)
            s->scopes[inner].parent = to;
    }
    from->gone = true;
    if (from->first == ONXI_S_NONE)
        return ONX_OK;
    if (s->previous == ONXI_S_NONE)
        s->scopes[to].first = from->first;
    else
        s->ops[s->previous].next = from->first;
    s->ops[from->last].next = at;
    s->previous = from->last;
    return ONX_OK;
}

/* Its initializers are found among the values that were created while it was read. */
static onx_status move_initializers(onxi_simplify *s, uint32_t scope, uint32_t to)
{
    for (uint32_t i = s->scopes[scope].first_value; i < s->scopes[scope].end_value; i++) {
        onxi_svalue *v = &s->values[i];
        if (v->scope != scope || v->maker)
            continue;
        if (v->tensor) {
            v->made = true;
            v->initializer = false;
        }
        ONX_TRY(move_value(s, i, to));
    }
    return ONX_OK;
}

/* Replaces the outputs of the op by those of the scope, from output `first` on. */
static onx_status hand_out(onxi_simplify *s, uint32_t at, uint32_t scope, uint32_t first)
{
    const onxi_sscope *from = &s->scopes[scope];
    for (uint32_t i = 0; i < from->output_count; i++) {
        const uint32_t b = onxi_simplify_value(s, from->outputs[i]);
        s->values[b].uses--;
        s->values[b].is_output--;
    }
    for (uint32_t i = 0; i < s->ops[at].output_count; i++) {
        const uint32_t y = s->ops[at].outputs[i];
        if (y == ONXI_S_NONE || first + i >= from->output_count)
            continue;
        const uint32_t b = onxi_simplify_value(s, from->outputs[first + i]);
        s->ops[at].outputs[i] = ONXI_S_NONE;
        if (onxi_simplify_hand_on(s, at, y, b))
            continue;
        if (onxi_simplify_add(s, at, "Identity", b, y) == ONXI_S_NONE)
            return ONX_E_MEMORY;
    }
    return onxi_simplify_drop(s, at);
}

static onx_status put_in_place(onxi_simplify *s, uint32_t at, uint32_t scope, uint32_t first)
{
    ONX_TRY(move_initializers(s, scope, s->ops[at].scope));
    ONX_TRY(move_ops(s, scope, at));
    s->changed = true;
    return hand_out(s, at, scope, first);
}

static onx_status branch(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    double condition;
    if (!get_number(s, onxi_simplify_input(s, op, 0), &condition))
        return ONX_OK;
    const char *taken = condition != 0 ? "then_branch" : "else_branch";
    const uint32_t scope = scope_of(s, op, taken);
    if (scope == ONXI_S_NONE || s->scopes[scope].input_count || !can_move(s, scope, 0, op->output_count))
        return ONX_OK;
    onxi_simplify_note(s, ONXI_SIMPLIFY_CONTROL, "If", index, "%s is always taken, and replaces the If", taken);
    return put_in_place(s, index, scope, 0);
}

/* ---- Loop ---- */

static bool is_used(const onxi_simplify *s, const onxi_sop *op, uint32_t from)
{
    for (uint32_t i = from; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE && (s->values[op->outputs[i]].uses || s->values[op->outputs[i]].pinned))
            return true;
    return false;
}

static onx_status never(onxi_simplify *s, uint32_t index, uint32_t carried)
{
    for (uint32_t i = 0; i < carried; i++) {
        const uint32_t y = s->ops[index].outputs[i], x = onxi_simplify_input(s, &s->ops[index], i + 2);
        if (y == ONXI_S_NONE)
            continue;
        s->ops[index].outputs[i] = ONXI_S_NONE;
        if (!onxi_simplify_hand_on(s, index, y, x) && onxi_simplify_add(s, index, "Identity", x, y) == ONXI_S_NONE)
            return ONX_E_MEMORY;
    }
    s->changed = true;
    return onxi_simplify_drop(s, index);
}

static onx_status once(onxi_simplify *s, uint32_t index, uint32_t scope)
{
    const onx_str base = onx_view(s->ops[index].node->name);
    const uint32_t parent = s->ops[index].scope;
    const onx_graph *body = s->scopes[scope].graph;
    int64_t ones[ONX_RANK_MAX];
    uint32_t rank[2];
    for (uint32_t i = 0; i < ONX_RANK_MAX; i++)
        ones[i] = 1;
    for (uint32_t i = 0; i < 2; i++)
        rank[i] = onxi_loop_rank(body, i) < 0 ? 0 : (uint32_t)onxi_loop_rank(body, i);
    const uint32_t given[] = {
        onxi_simplify_constant(s, parent, base, "iteration",
                               onx_tensor_new(s->arena, ONX_INT64, ones, rank[0], &(int64_t){ 0 }, NULL)),
        onxi_simplify_constant(s, parent, base, "condition",
                               onx_tensor_new(s->arena, ONX_BOOL, ones, rank[1], &(uint8_t){ 1 }, NULL)),
    };
    if (given[0] == ONXI_S_NONE || given[1] == ONXI_S_NONE)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < s->scopes[scope].input_count; i++) {
        const uint32_t formal = s->scopes[scope].inputs[i];
        const uint32_t actual = i < 2 ? given[i] : onxi_simplify_input(s, &s->ops[index], i);
        s->values[actual].uses += s->values[formal].uses;
        s->values[actual].is_output += s->values[formal].is_output;
        s->values[formal].uses = s->values[formal].is_output = 0;
        s->values[formal].alias = actual;
    }
    return put_in_place(s, index, scope, 1);
}

static onx_status loop(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    const uint32_t scope = scope_of(s, op, "body"), trips = onxi_simplify_input(s, op, 0);
    const uint32_t condition = onxi_simplify_input(s, op, 1);
    double most = 2, go = 1;
    if (scope == ONXI_S_NONE || op->input_count < 2 || s->scopes[scope].input_count != op->input_count ||
        (trips != ONXI_S_NONE && !get_number(s, trips, &most) && condition == ONXI_S_NONE))
        return ONX_OK;
    const bool known = condition == ONXI_S_NONE || get_number(s, condition, &go);
    const uint32_t carried = op->input_count - 2;
    for (uint32_t i = 2; i < op->input_count; i++)
        if (onxi_simplify_input(s, op, i) == ONXI_S_NONE)
            return ONX_OK;
    if (is_used(s, op, carried) || op->output_count < carried) /* values of all iterations */
        return ONX_OK;
    if (most < 1 || (known && go == 0)) {
        onxi_simplify_note(s, ONXI_SIMPLIFY_CONTROL, "Loop", index, "never runs");
        return never(s, index, carried);
    }
    if (most != 1 || !known || !can_move(s, scope, 1, op->output_count))
        return ONX_OK;
    onxi_simplify_note(s, ONXI_SIMPLIFY_CONTROL, "Loop", index, "runs once: replaced by its body");
    return once(s, index, scope);
}

onx_status onxi_simplify_control(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE && s->values[op->outputs[i]].pinned)
            return ONX_OK;
    if (onxi_simplify_is(s, op, ONXI_ID_If))
        return branch(s, index);
    return onxi_simplify_is(s, op, ONXI_ID_Loop) ? loop(s, index) : ONX_OK;
}
