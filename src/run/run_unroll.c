/* run_unroll.c - while a graph is resolved: an If with a constant condition is its branch, and a Loop with a constant
 * number of few turns is these turns. Exporters write such loops around sequences (PyTorch's tensor_split). The shapes
 * behind them are then known before a run, and their nodes are fused with those around them. */
#include "run/run_build.h"

enum {
    TURNS = 16,           /* of a loop that is unrolled */
    NODES = 512,          /* of all turns of a loop */
    VALUES = 64,          /* that a loop carries: their names are compared with those of initializers */
    CONSTANTS = 16 << 20, /* bytes of constants that all turns of a loop compute */
};

/* What a session had before an attempt. Slots and constants that an attempt made stay, unused, if it is given up. */
typedef struct attempt {
    onxi_run_builder *b;
    const onxi_run_op *op;
    const onx_graph *body;
    const onxi_run_frame *frame;
    onxi_run_builder fixed; /* the scope of what is the same in each turn */
    uint32_t ops;
    uint64_t op_total, constant_bytes;
} attempt;

static onxi_run_builder scope_in(onxi_run_builder *around, const onxi_run_frame *frame)
{
    onxi_run_builder inner = { .session = around->session,
                               .g = around->g,
                               .around = around,
                               .frame = frame,
                               .binder = around->binder,
                               .arena = around->arena,
                               .lists = around->lists,
                               .depth = around->depth };
    inner.names = onxi_dict_in_arena(inner.arena);
    return inner;
}

static bool is_fixed(const onxi_run_builder *b, const onx_node *node)
{
    const onxi_bound *bound = node->input_count ? NULL : onxi_bind(b->binder, node);
    return bound && bound->kind == ONXI_BOUND_OPERATOR && bound->op == ONXI_ID_Constant;
}

/* Initializers and Constant nodes, once for all turns. */
static onx_status add_fixed(attempt *a)
{
    onxi_run_builder *b = &a->fixed;
    for (uint32_t i = 0; i < a->body->initializer_count; i++) {
        const onx_tensor *t = a->body->initializer[i];
        uint32_t slot;
        if (!onx_view(t->name).len)
            continue;
        ONX_TRY(onxi_run_build_define(b, onx_view(t->name), &slot));
        onxi_run_graph_slot *s = &b->g->slots[slot];
        ONX_TRY(onxi_run_constant_load(b->session, t, &s->constant, &s->source));
    }
    for (uint32_t i = 0; i < a->body->node_count; i++)
        if (is_fixed(b, a->body->node[i]))
            ONX_TRY(onxi_run_build_node(b, a->body->node[i], i));
    return ONX_OK;
}

static onx_status begin(attempt *a, onxi_run_builder *b, const onxi_run_op *op, const onx_attribute *attribute)
{
    onxi_run_frame *frame = ONXI_NEW(b->session->arena, onxi_run_frame);
    if (!frame)
        return ONX_E_MEMORY;
    *frame = (onxi_run_frame){ .parent = b->frame, .node = op->node, .index = op->index, .subgraph = attribute };
    frame->depth = b->frame ? b->frame->depth : 0;
    *a = (attempt){ .b = b,
                    .op = op,
                    .body = attribute->g,
                    .frame = frame,
                    .ops = b->g->op_count,
                    .op_total = b->session->op_total,
                    .constant_bytes = b->session->constant_bytes };
    a->fixed = scope_in(b, frame);
    a->fixed.depth++;
    return add_fixed(a);
}

static onx_status give_up(attempt *a)
{
    onxi_run_session *s = a->b->session;
    s->unrolled += 1 + s->op_total - a->op_total;
    s->op_total = a->op_total;
    a->b->g->op_count = a->ops;
    return ONX_OK;
}

static onx_status add_nodes(const attempt *a, onxi_run_builder *b)
{
    for (uint32_t i = 0; i < a->body->node_count; i++)
        if (!is_fixed(b, a->body->node[i]))
            ONX_TRY(onxi_run_build_node(b, a->body->node[i], i));
    return ONX_OK;
}

/* Random numbers depend on which node draws them, and how often. */
static bool draws(const onxi_run_graph *g, uint32_t first)
{
    for (uint32_t i = first; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        if (!op->graph_count && !onxi_run_op_is_pure(op))
            return true;
        for (uint32_t k = 0; k < op->graph_count; k++)
            if (draws(op->graphs[k], 0))
                return true;
    }
    return false;
}

/* Can the nodes of the subgraph be nodes of the graph? */
static bool can_move(const onxi_run_builder *b, const onx_attribute *a, uint32_t inputs, uint32_t outputs)
{
    const onx_graph *g = a ? a->g : NULL;
    const onxi_run_session *s = b->session;
    if (!g || s->unsorted || inputs > VALUES || s->unrolled >= ONXI_RUN_UNROLLED ||
        b->depth >= onx_ctx_limits(s->cx).depth || g->input_count != inputs || g->output_count != outputs ||
        g->sparse_initializer_count)
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        const onx_type *type = g->input[i]->type;
        if (type && ONX_HAS(type, type, optional_type)) /* a value that comes in is put into an optional */
            return false;
        for (uint32_t k = 0; k < g->initializer_count; k++)
            if (onx_str_equal(onx_view(g->input[i]->name), onx_view(g->initializer[k]->name)))
                return false;
    }
    return true;
}

static const onx_attribute *subgraph_of(const onx_node *node, const char *name)
{
    const onx_attribute *a = onx_node_attribute(node, name);
    return a && a->slot == ONX_SLOT_G && a->g ? a : NULL;
}

/* Names the outputs of the op; `slots` are those of the subgraph. */
static onx_status name_outputs(const attempt *a, const uint32_t *slots)
{
    const onx_node *node = a->op->node;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len)
            ONX_TRY(onxi_run_build_name(a->b, onx_view(node->output[i]), slots[i]));
    return ONX_OK;
}

/* The slots of the subgraph's outputs; *there is false if one of them is made by nothing. */
static onx_status take_outputs(const attempt *a, onxi_run_builder *b, uint32_t *slots, bool *there)
{
    *there = true;
    for (uint32_t i = 0; i < a->body->output_count; i++) {
        ONX_TRY(onxi_run_build_use(b, onx_view(a->body->output[i]->name), &slots[i]));
        *there &= slots[i] != ONXI_NO_SLOT;
    }
    return ONX_OK;
}

static const onx_value *constant_of(const onxi_run_builder *b, uint32_t slot, onx_dtype dtype)
{
    const onx_value *v = slot == ONXI_NO_SLOT ? NULL : b->g->slots[slot].constant;
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == dtype && v->count == 1 && v->data ? v : NULL;
}

static bool is_true(const onx_value *v)
{
    return *(const uint8_t *)v->data != 0;
}

/* ---- If ---- */

static onx_status branch(onxi_run_builder *b, const onxi_run_op *op, bool *done)
{
    const onx_value *condition = op->input_count ? constant_of(b, op->inputs[0], ONX_BOOL) : NULL;
    if (!condition)
        return ONX_OK;
    const onx_attribute *taken = subgraph_of(op->node, is_true(condition) ? "then_branch" : "else_branch");
    const onx_attribute *other = subgraph_of(op->node, is_true(condition) ? "else_branch" : "then_branch");
    if (!other || !can_move(b, taken, 0, op->node->output_count))
        return ONX_OK;
    attempt a;
    ONX_TRY(begin(&a, b, op, taken));
    uint32_t *slots = ONXI_ARRAY(b->arena, uint32_t, a.body->output_count + 1u);
    if (!slots)
        return ONX_E_MEMORY;
    ONX_TRY(add_nodes(&a, &a.fixed));
    ONX_TRY(take_outputs(&a, &a.fixed, slots, done));
    if (!*done || draws(b->g, a.ops)) {
        *done = false;
        return give_up(&a);
    }
    return name_outputs(&a, slots);
}

/* ---- Loop ---- */

/* Defines the iteration number or the condition for a turn; `undeclared`: its rank if the body declares none. */
static onx_status define(onxi_run_builder *b, const onx_graph *body, uint32_t input, onx_dtype dtype, const void *data,
                         uint32_t undeclared)
{
    const int declared = onxi_loop_rank(body, input);
    const uint32_t rank = declared < 0 ? undeclared : (uint32_t)declared;
    int64_t ones[ONX_RANK_MAX];
    uint32_t slot;
    onx_value *v;
    for (uint32_t i = 0; i < ONX_RANK_MAX; i++)
        ones[i] = 1;
    ONX_TRY(onxi_run_build_define(b, onx_view(body->input[input]->name), &slot));
    ONX_TRY(onx_value_new_tensor(b->session->cx, dtype, rank, ones, &v));
    memcpy(v->data, data, dtype == ONX_BOOL ? sizeof(uint8_t) : sizeof(int64_t));
    b->g->slots[slot].constant = v;
    return onxi_run_session_keep(b->session, v);
}

/* Adds a turn. `rank`: that of the condition; `state`: the slots of the condition and of the carried values, before and
 * after it. */
static onx_status add_turn(attempt *a, int64_t turn, bool go_on, uint32_t rank, uint32_t *state, bool *there)
{
    onxi_run_builder b = scope_in(&a->fixed, a->frame);
    ONX_TRY(define(&b, a->body, 0, ONX_INT64, &turn, 0));
    ONX_TRY(define(&b, a->body, 1, ONX_BOOL, &(uint8_t){ go_on }, rank));
    for (uint32_t i = 2; i < a->body->input_count; i++)
        ONX_TRY(onxi_run_build_name(&b, onx_view(a->body->input[i]->name), state[i - 1]));
    ONX_TRY(add_nodes(a, &b));
    return take_outputs(a, &b, state, there);
}

/* May as many turns as expected follow the first one? */
static bool pays(const attempt *a, int64_t turns)
{
    const onxi_run_session *s = a->b->session;
    return !draws(a->b->g, a->ops) && (s->op_total - a->op_total) * (uint64_t)turns <= NODES &&
           (s->constant_bytes - a->constant_bytes) * (uint64_t)turns <= CONSTANTS;
}

/* Adds turns until the loop ends; *done is false if that cannot be told, or is not worth it. */
static onx_status add_turns(attempt *a, int64_t trips, bool obeys, uint32_t rank, uint32_t *state, bool *done)
{
    bool go_on = true;
    const int64_t most = trips < TURNS ? trips : TURNS;
    *done = false;
    for (int64_t turn = 0; turn < trips; turn++) {
        bool there;
        if (turn == TURNS)
            return ONX_OK;
        ONX_TRY(add_turn(a, turn, go_on, rank, state, &there));
        if (!there || (!turn && !pays(a, trips == INT64_MAX ? 1 : most)))
            return ONX_OK;
        if (turn + 1 == trips)
            break;
        const onx_value *next = constant_of(a->b, state[0], ONX_BOOL);
        if (!next)
            return ONX_OK;
        go_on = is_true(next);
        rank = next->rank;
        if (obeys && !go_on)
            break;
    }
    *done = true;
    return ONX_OK;
}

/* The slots of the condition and of the carried values at first; NULL: they are unknown, or memory is. */
static uint32_t *first_state(onxi_run_builder *b, const onxi_run_op *op)
{
    uint32_t *state = ONXI_ARRAY(b->arena, uint32_t, op->input_count + 1u);
    for (uint32_t i = 1; state && i < op->input_count; i++) {
        state[i - 1] = op->inputs[i];
        if (i > 1 && op->inputs[i] == ONXI_NO_SLOT)
            return NULL;
    }
    return state;
}

static onx_status loop(onxi_run_builder *b, const onxi_run_op *op, bool *done)
{
    const onx_attribute *body = subgraph_of(op->node, "body");
    const bool has_condition = op->input_count > 1 && op->inputs[1] != ONXI_NO_SLOT;
    const onx_value *go = has_condition ? constant_of(b, op->inputs[1], ONX_BOOL) : NULL;
    const bool obeys =
        has_condition || !op->input_count || op->inputs[0] == ONXI_NO_SLOT; /* as in kernel/control/loop.c */
    int64_t trips = INT64_MAX;
    if (op->input_count < 2 || (has_condition && !go) || op->node->output_count != op->input_count - 2 ||
        !can_move(b, body, op->input_count, op->input_count - 1))
        return ONX_OK;
    if (op->inputs[0] != ONXI_NO_SLOT) {
        const onx_value *v = constant_of(b, op->inputs[0], ONX_INT64);
        if (!v)
            return ONX_OK;
        memcpy(&trips, v->data, sizeof trips);
        if (trips > TURNS)
            return ONX_OK;
    }
    uint32_t *state = first_state(b, op);
    attempt a;
    if (!state)
        return ONX_OK;
    ONX_TRY(begin(&a, b, op, body));
    ONX_TRY(add_turns(&a, go && !is_true(go) ? 0 : trips, obeys, go ? go->rank : 0, state, done));
    if (!*done)
        return give_up(&a);
    b->session->unrolled += b->session->op_total - a.op_total;
    return name_outputs(&a, state + 1);
}

onx_status onxi_run_build_unroll(onxi_run_builder *b, const onxi_run_op *op, bool *done)
{
    *done = false;
    if (op->id == ONXI_ID_If)
        return branch(b, op, done);
    return op->id == ONXI_ID_Loop ? loop(b, op, done) : ONX_OK;
}
