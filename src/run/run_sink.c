/* run_sink.c - moves Transposes between channels first and channels last behind the nodes that go element by element,
 * where they then meet those that turn back. Exporters of channels-last frameworks (tf2onnx) write such a pair around
 * each Conv, and biases, activations and residuals between: these become neighbours of the Conv, and can be fused.
 *
 * Nodes that are connected are one group: their values are T(x) for values x that have their axes in the other order. A
 * group is moved as a whole if that leaves fewer Transposes. */
#include "run/run.h"

enum { RANK_MIN = 3, RANK_MAX = 5 };

/* What an op is to the group that it reads. */
typedef enum part {
    OUTSIDE,
    ENTERS, /* a Transpose whose result the group reads */
    MOVES,  /* a node of the group */
    LEAVES, /* a Transpose back, which vanishes */
    ENDS    /* a reduction whose result has no such axes any more */
} part;

typedef struct sinker {
    onxi_run_graph *g;
    bool last;            /* the Transposes make channels last; else first */
    uint8_t *rank;        /* per slot: the rank of a value of a group; 0: none */
    uint8_t *sure;        /* per slot: the rank that it has if its op runs at all; 0: unknown */
    uint32_t *group;      /* per slot: an op of its group */
    bool *outside;        /* per slot: something outside of the group reads it, in its own order of axes */
    uint32_t *moved;      /* per slot: the slot with its axes in the other order; ONXI_NO_SLOT: none */
    uint32_t *instead;    /* per slot: the slot that takes its place */
    uint8_t *part;        /* per op */
    uint32_t *joined;     /* per op: another op of its group, or itself */
    int32_t *gain;        /* per op that stands for a group: Transposes that are saved */
    bool *meets;          /* per op that stands for a group: a Transpose back reads it */
    onxi_run_op *ops;     /* the new list */
    uint32_t count, room; /* of it */
    bool changed;
} sinker;

/* Axis a of the result of the Transpose is this one of its input. */
static uint32_t from_axis(const sinker *k, uint32_t rank, uint32_t a)
{
    if (!a)
        return 0;
    if (k->last)
        return a + 1 < rank ? a + 1 : 1;
    return a == 1 ? rank - 1 : a - 1;
}

static uint32_t channels_of(const sinker *k, uint32_t rank)
{
    return k->last ? rank - 1 : 1;
}

static uint32_t group_of(sinker *k, uint32_t op)
{
    while (k->joined[op] != op)
        op = k->joined[op] = k->joined[k->joined[op]];
    return op;
}

/* The rank of the Transpose if it moves the channels in this direction, or (`back`) in the other one; else 0. */
static uint32_t turns(const sinker *k, const onxi_run_op *op, bool back)
{
    const onxi_attr_value *perm = onxi_attrs_get(&op->attrs, "perm", ONX_ATTR_INTS);
    if (op->id != ONXI_ID_Transpose || op->input_count != 1 || op->output_count != 1 ||
        op->outputs[0] == ONXI_NO_SLOT || op->inputs[0] == ONXI_NO_SLOT || !perm || perm->count < RANK_MIN ||
        perm->count > RANK_MAX)
        return 0;
    const sinker other = { .last = k->last != back };
    for (uint32_t i = 0; i < perm->count; i++)
        if (((const int64_t *)perm->list)[i] != from_axis(&other, perm->count, i))
            return 0;
    return perm->count;
}

/* ---- which operands and axes can be moved ---- */

/* Has the constant at most one axis of another size than 1, so that its elements stay where they are? */
static bool is_line(const onxi_run_graph_slot *slot, uint32_t rank)
{
    const onx_value *v = slot->constant;
    uint32_t axes = 0;
    if (!v || v->kind != ONX_VALUE_TENSOR || v->rank > rank || (slot->source && !slot->source->made))
        return false;
    for (uint32_t i = 0; i < v->rank; i++)
        axes += v->dims[i] != 1;
    return axes <= 1;
}

static bool is_value(const sinker *k, uint32_t slot)
{
    return slot != ONXI_NO_SLOT && k->rank[slot];
}

/* Axes as an attribute or as a constant input; false if they are unknown, or one of them is out of range. */
static bool axes_of(const sinker *k, const onxi_run_op *op, uint32_t input, uint32_t rank, int64_t *axes,
                    uint32_t *count)
{
    const onxi_attr_value *a = onxi_attrs_get(&op->attrs, "axes", ONX_ATTR_INTS);
    *count = 0;
    if (a && a->count <= RANK_MAX)
        memcpy(axes, a->list, (*count = a->count) * sizeof *axes);
    else if (a || input >= op->input_count || op->inputs[input] == ONXI_NO_SLOT ||
             !onxi_run_read_ints(k->g->slots[op->inputs[input]].constant, axes, RANK_MAX, count))
        return false;
    for (uint32_t i = 0; i < *count; i++) {
        axes[i] += axes[i] < 0 ? rank : 0;
        if (axes[i] < 0 || axes[i] >= rank)
            return false;
    }
    return *count > 0;
}

/* Are none of the axes those of batch and channels? */
static bool are_spatial(const sinker *k, uint32_t rank, const int64_t *axes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!axes[i] || axes[i] == channels_of(k, rank))
            return false;
    return true;
}

/* The rank of the result of an op that does not go element by element, if it can be a node of the group; else 0. */
static uint32_t rank_behind(const sinker *k, const onxi_run_op *op, uint32_t rank)
{
    int64_t axes[RANK_MAX];
    uint32_t count;
    switch (op->id) {
    case ONXI_ID_Concat:
        return rank;
    case ONXI_ID_Pad: /* versions with pads as an input, of all axes */
        return op->since >= 11 && op->input_count <= 3 &&
                       onxi_run_read_ints(k->g->slots[op->inputs[1]].constant, (int64_t[2 * RANK_MAX]){ 0 },
                                          2 * RANK_MAX, &count) &&
                       count == 2 * rank
                   ? rank
                   : 0;
    case ONXI_ID_QuantizeLinear:
    case ONXI_ID_DequantizeLinear: /* of the whole tensor, not of each channel */
        for (uint32_t i = 1; i < op->input_count; i++)
            if (op->inputs[i] != ONXI_NO_SLOT &&
                (!k->g->slots[op->inputs[i]].constant || k->g->slots[op->inputs[i]].constant->count != 1))
                return 0;
        return rank;
    case ONXI_ID_Squeeze:
    case ONXI_ID_Unsqueeze: {
        const bool less = op->id == ONXI_ID_Squeeze;
        const uint32_t wide = less ? rank : rank + 1;
        const bool fits = wide <= RANK_MAX && wide > RANK_MIN && axes_of(k, op, 1, wide, axes, &count) && count == 1 &&
                          are_spatial(k, wide, axes, count);
        return !fits ? 0 : less ? rank - 1 : wide;
    }
    default:
        return onxi_operator_is(op->id, ONXI_TRAIT_REDUCTION) && onxi_attrs_int(&op->attrs, "keepdims") == 1 &&
                       axes_of(k, op, 1, rank, axes, &count) && are_spatial(k, rank, axes, count)
                   ? rank
                   : 0;
    }
}

/* The number of its first inputs that are values; those after them give axes or pads. */
static uint32_t values_of(const onxi_run_op *op)
{
    const bool all = op->id == ONXI_ID_Concat || onxi_operator_is(op->id, ONXI_TRAIT_ELEMENTWISE);
    return all ? op->input_count : 1;
}

/* The rank of the result, if the op can be a node of the group; else 0. */
static uint32_t moves(const sinker *k, const onxi_run_op *op)
{
    uint32_t rank = 0;
    if (!op->schema || op->guard_end || op->output_count != 1 || op->outputs[0] == ONXI_NO_SLOT ||
        !onxi_run_op_is_pure(op) || op->since < (op->input_count > 1 ? 7 : 1))
        return 0;
    for (uint32_t i = 0; i < values_of(op); i++) {
        if (!is_value(k, op->inputs[i]))
            continue;
        if (rank && rank != k->rank[op->inputs[i]])
            return 0;
        rank = k->rank[op->inputs[i]];
    }
    for (uint32_t i = 0; rank && i < values_of(op); i++)
        if (op->inputs[i] != ONXI_NO_SLOT && !is_value(k, op->inputs[i]) && !is_line(&k->g->slots[op->inputs[i]], rank))
            return 0;
    if (!rank || op->id == ONXI_ID_BitCast || op->id == ONXI_ID_Dropout || op->id == ONXI_ID_CastLike)
        return 0;
    return onxi_operator_is(op->id, ONXI_TRAIT_ELEMENTWISE) ? rank : rank_behind(k, op, rank);
}

/* Is it a reduction behind which all other axes are in the same order? */
static bool ends(const sinker *k, const onxi_run_op *op)
{
    int64_t axes[RANK_MAX];
    uint32_t count, seen = 0;
    const uint32_t rank = op->input_count && is_value(k, op->inputs[0]) ? k->rank[op->inputs[0]] : 0;
    if (!rank || op->guard_end || !onxi_operator_is(op->id, ONXI_TRAIT_REDUCTION) ||
        onxi_attrs_int(&op->attrs, "keepdims") == 1 || !axes_of(k, op, 1, rank, axes, &count) ||
        !are_spatial(k, rank, axes, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        seen |= 1u << axes[i];
    for (uint32_t a = 0, before = 0; a < rank; a++) {
        if (seen >> a & 1)
            continue;
        if (from_axis(k, rank, a) < before)
            return false;
        before = from_axis(k, rank, a);
    }
    return true;
}

/* ---- groups ---- */

static void belong(sinker *k, uint32_t slot, uint32_t rank, uint32_t op)
{
    k->rank[slot] = (uint8_t)rank;
    k->group[slot] = op;
}

static part part_of(sinker *k, uint32_t index)
{
    const onxi_run_op *op = &k->g->ops[index];
    const bool reads = op->input_count && is_value(k, op->inputs[0]);
    uint32_t rank;
    if (reads && turns(k, op, true) == k->rank[op->inputs[0]])
        return LEAVES;
    if (!reads && (rank = turns(k, op, false)) != 0) {
        belong(k, op->outputs[0], rank, index);
        return ENTERS;
    }
    if ((rank = moves(k, op)) == 0)
        return ends(k, op) ? ENDS : OUTSIDE;
    for (uint32_t i = 0; i < values_of(op); i++)
        if (is_value(k, op->inputs[i]))
            k->joined[group_of(k, k->group[op->inputs[i]])] = index;
    belong(k, op->outputs[0], rank, index);
    return MOVES;
}

/* The rank that the result has if the op runs: that of a kernel's constant weights, of its window or of its perm, or of
 * an operand that goes through element by element. */
static uint32_t sure_rank(const sinker *k, const onxi_run_op *op)
{
    const onxi_attr_value *list = NULL;
    const onx_value *w =
        op->input_count > 1 && op->inputs[1] != ONXI_NO_SLOT ? k->g->slots[op->inputs[1]].constant : NULL;
    if (!op->schema || !op->input_count || op->inputs[0] == ONXI_NO_SLOT)
        return 0;
    switch (op->id) {
    case ONXI_ID_Conv:
    case ONXI_ID_ConvTranspose:
        return w && w->kind == ONX_VALUE_TENSOR && w->rank <= RANK_MAX ? w->rank : 0;
    case ONXI_ID_MaxPool:
    case ONXI_ID_AveragePool:
        list = onxi_attrs_get(&op->attrs, "kernel_shape", ONX_ATTR_INTS);
        return list && list->count + 2 <= RANK_MAX ? list->count + 2 : 0;
    case ONXI_ID_Transpose:
        list = onxi_attrs_get(&op->attrs, "perm", ONX_ATTR_INTS);
        return list && list->count <= RANK_MAX ? list->count : 0;
    case ONXI_ID_BatchNormalization:
        return k->sure[op->inputs[0]];
    default:
        return op->input_count == 1 && onxi_operator_is(op->id, ONXI_TRAIT_ELEMENTWISE) ? k->sure[op->inputs[0]] : 0;
    }
}

static void find_groups(sinker *k)
{
    for (uint32_t i = 0; i < k->g->op_count; i++) {
        const onxi_run_op *op = &k->g->ops[i];
        k->joined[i] = i;
        k->part[i] = op->needed ? (uint8_t)part_of(k, i) : OUTSIDE;
        if (op->needed && op->output_count && op->outputs[0] != ONXI_NO_SLOT)
            k->sure[op->outputs[0]] = (uint8_t)sure_rank(k, op);
        for (uint32_t n = 0; k->part[i] == OUTSIDE && n < op->input_count + op->capture_count; n++)
            if (op->inputs[n] != ONXI_NO_SLOT)
                k->outside[op->inputs[n]] = true;
    }
    for (uint32_t i = 0; i < k->g->output_count; i++)
        k->outside[k->g->outputs[i]] = true;
}

static void count_gains(sinker *k)
{
    for (uint32_t i = 0; i < k->g->op_count; i++) {
        const onxi_run_op *op = &k->g->ops[i];
        const part p = k->part[i];
        if (p == LEAVES || p == ENDS) {
            const uint32_t group = group_of(k, k->group[op->inputs[0]]);
            k->gain[group]++;
            k->meets[group] = true;
        } else if (p == ENTERS) {
            k->gain[group_of(k, i)] += !k->outside[op->outputs[0]];
        } else if (p == MOVES) {
            k->gain[group_of(k, i)] -= k->outside[op->outputs[0]];
        }
    }
}

static bool pays(sinker *k, uint32_t group)
{
    return k->meets[group_of(k, group)] && k->gain[group_of(k, group)] > 0;
}

/* ---- the new list of ops ---- */

static onx_status add_op(sinker *k, const onxi_run_op *op)
{
    if (!ONXI_GROW_IN(k->g->arena, k->ops, k->room, (uint64_t)k->count + 1))
        return ONX_E_MEMORY;
    k->ops[k->count++] = *op;
    return ONX_OK;
}

/* A constant for an operand of the group: with its axes in the other order. */
static onx_status move_constant(sinker *k, uint32_t rank, uint32_t slot, uint32_t *out)
{
    const onx_value *from = k->g->slots[slot].constant;
    onx_value *v = ONXI_NEW(k->g->arena, onx_value);
    int64_t *dims = ONXI_ARRAY(k->g->arena, int64_t, rank);
    *out = slot;
    if (from->count == 1)
        return ONX_OK;
    if (!v || !dims)
        return ONX_E_MEMORY;
    for (uint32_t a = 0; a < rank; a++)
        dims[from_axis(k, rank, a)] = a + from->rank < rank ? 1 : from->dims[a + from->rank - rank];
    *v = *from;
    v->flags = ONXI_VALUE_BORROWED;
    v->dims = dims;
    v->rank = rank;
    ONX_TRY(onxi_run_graph_add_slot(k->g, k->g->slots[slot].name, out));
    k->g->slots[*out].constant = v;
    k->g->slots[*out].narrow = k->g->slots[slot].narrow;
    return ONX_OK;
}

static onx_status set_attribute(sinker *k, onxi_run_op *op, const onxi_attr_value *old, const int64_t *list)
{
    onxi_attr_value *values = ONXI_ARRAY(k->g->arena, onxi_attr_value, op->attrs.count);
    if (!values)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->attrs.count; i++) {
        values[i] = op->attrs.values[i];
        if (&op->attrs.values[i] == old && old->type == ONX_ATTR_INT)
            values[i].i = *list;
        else if (&op->attrs.values[i] == old)
            values[i].list = list;
    }
    op->attrs.values = values;
    return ONX_OK;
}

static onx_status constant_list(sinker *k, const int64_t *list, uint32_t count, uint32_t *slot)
{
    onx_value *v;
    ONX_TRY(onx_value_new_tensor(k->g->session->cx, ONX_INT64, 1, (const int64_t[]){ count }, &v));
    memcpy(v->data, list, count * sizeof *list);
    ONX_TRY(onxi_run_session_keep(k->g->session, v));
    ONX_TRY(onxi_run_graph_add_slot(k->g, (onx_str){ 0 }, slot));
    k->g->slots[*slot].constant = v;
    return ONX_OK;
}

/* Axes of the op in the other order; `rank` is that of the value whose axes they are. */
static onx_status move_axes(sinker *k, onxi_run_op *op, uint32_t rank)
{
    int64_t *axes = ONXI_ARRAY(k->g->arena, int64_t, RANK_MAX);
    uint32_t count;
    if (!axes)
        return ONX_E_MEMORY;
    if (!axes_of(k, op, 1, rank, axes, &count))
        return ONX_OK;
    for (uint32_t i = 0; i < count; i++)
        axes[i] = from_axis(k, rank, (uint32_t)axes[i]);
    const onxi_attr_value *a = onxi_attrs_get(&op->attrs, "axes", ONX_ATTR_INTS);
    return a ? set_attribute(k, op, a, axes) : constant_list(k, axes, count, &op->inputs[1]);
}

static onx_status move_pads(sinker *k, onxi_run_op *op, uint32_t rank)
{
    int64_t pads[2 * RANK_MAX], to[2 * RANK_MAX];
    uint32_t count;
    if (!onxi_run_read_ints(k->g->slots[op->inputs[1]].constant, pads, 2 * RANK_MAX, &count))
        return ONX_OK;
    for (uint32_t a = 0; a < rank; a++) {
        to[from_axis(k, rank, a)] = pads[a];
        to[rank + from_axis(k, rank, a)] = pads[rank + a];
    }
    return constant_list(k, to, 2 * rank, &op->inputs[1]);
}

static onx_status move_axis(sinker *k, onxi_run_op *op, uint32_t rank)
{
    const onxi_attr_value *a = onxi_attrs_get(&op->attrs, "axis", ONX_ATTR_INT);
    const int64_t axis = a ? a->i + (a->i < 0 ? rank : 0) : 0;
    if (!a || axis < 0 || axis >= rank) /* its rule will say so */
        return ONX_OK;
    return set_attribute(k, op, a, &(int64_t){ from_axis(k, rank, (uint32_t)axis) });
}

/* What the op says of axes, in the other order. */
static onx_status move_numbers(sinker *k, onxi_run_op *op, uint32_t rank)
{
    if (onxi_operator_is(op->id, ONXI_TRAIT_ELEMENTWISE))
        return ONX_OK;
    if (op->id == ONXI_ID_Concat)
        return move_axis(k, op, rank);
    if (op->id == ONXI_ID_Pad)
        return move_pads(k, op, rank);
    if (op->id == ONXI_ID_QuantizeLinear || op->id == ONXI_ID_DequantizeLinear)
        return ONX_OK;
    return move_axes(k, op, op->id == ONXI_ID_Unsqueeze ? rank + 1 : rank);
}

/* A Transpose of `from` to `to`, which turns the axes as those of the group do, or (`turned` false) leaves them. */
static onx_status add_transpose(sinker *k, const onxi_run_op *by, uint32_t rank, bool turned, uint32_t from,
                                uint32_t to)
{
    const onxi_run_added what = { .op_type = "Transpose", .name = onx_view(by->node->name) };
    int64_t *perm = ONXI_ARRAY(k->g->arena, int64_t, rank);
    onxi_run_op op;
    if (!perm)
        return ONX_E_MEMORY;
    for (uint32_t a = 0; a < rank; a++)
        perm[a] = turned ? from_axis(k, rank, a) : a;
    ONX_TRY(onxi_run_op_added(k->g->session, by, &what, &from, 1, &op));
    onxi_attr_value *value = ONXI_NEW(k->g->arena, onxi_attr_value);
    if (!value)
        return ONX_E_MEMORY;
    *value = (onxi_attr_value){
        .name = onx_str_of("perm"), .type = ONX_ATTR_INTS, .given = true, .count = rank, .list = perm
    };
    op.attrs = (onxi_attrs){ value, 1 };
    op.outputs[0] = to;
    return add_op(k, &op);
}

/* The value that a group begins with, in the other order. Where its rank is not sure, a view stays that has to have it:
 * otherwise two perms that are wrong for a value would cancel, and the error with them. */
static onx_status enter(sinker *k, const onxi_run_op *op)
{
    const uint32_t out = op->outputs[0], rank = k->rank[out];
    k->moved[out] = op->inputs[0];
    if (k->outside[out] || k->sure[op->inputs[0]] == rank)
        return k->outside[out] ? add_op(k, op) : ONX_OK;
    ONX_TRY(onxi_run_graph_add_slot(k->g, k->g->slots[out].name, &k->moved[out]));
    return add_transpose(k, op, rank, false, op->inputs[0], k->moved[out]);
}

/* A node of the group, or (ENDS) one that reads it. */
static onx_status move_op(sinker *k, uint32_t index)
{
    onxi_run_op op = k->g->ops[index];
    uint32_t rank = 0, out = op.outputs[0];
    uint32_t *inputs = ONXI_ARRAY(k->g->arena, uint32_t, op.input_count + 1u);
    if (!inputs)
        return ONX_E_MEMORY;
    memcpy(inputs, op.inputs, op.input_count * sizeof *inputs);
    op.inputs = inputs;
    op.input_room = op.input_count + 1u;
    for (uint32_t i = 0; !rank && i < values_of(&op); i++)
        rank = is_value(k, inputs[i]) ? k->rank[inputs[i]] : 0;
    for (uint32_t i = 0; i < values_of(&op); i++) {
        if (is_value(k, inputs[i]))
            inputs[i] = k->moved[inputs[i]];
        else if (inputs[i] != ONXI_NO_SLOT)
            ONX_TRY(move_constant(k, rank, inputs[i], &inputs[i]));
    }
    ONX_TRY(move_numbers(k, &op, rank));
    if (k->part[index] == ENDS)
        return add_op(k, &op);
    op.outputs = ONXI_ARRAY(k->g->arena, uint32_t, 1);
    if (!op.outputs)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_run_graph_add_slot(k->g, k->g->slots[out].name, &k->moved[out]));
    op.outputs[0] = k->moved[out];
    ONX_TRY(add_op(k, &op));
    return k->outside[out] ? add_transpose(k, &op, k->rank[out], true, k->moved[out], out) : ONX_OK;
}

static onx_status take_op(sinker *k, uint32_t index)
{
    onxi_run_op *op = &k->g->ops[index];
    const part p = k->part[index];
    for (uint32_t i = 0; i < op->input_count + op->capture_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT)
            op->inputs[i] = k->instead[op->inputs[i]];
    if (p == OUTSIDE)
        return add_op(k, op);
    if (!pays(k, p == ENTERS || p == MOVES ? index : k->group[op->inputs[0]]))
        return add_op(k, op);
    k->changed = true;
    if (p == MOVES || p == ENDS)
        return move_op(k, index);
    if (p == LEAVES) {
        k->instead[op->outputs[0]] = k->moved[op->inputs[0]];
        return ONX_OK;
    }
    return enter(k, op);
}

static onx_status rebuild(sinker *k, uint32_t *place)
{
    onxi_run_graph *g = k->g;
    const uint32_t old = g->op_count;
    for (uint32_t i = 0; i < old; i++) {
        place[i] = k->count;
        ONX_TRY(take_op(k, i));
    }
    place[old] = k->count;
    if (!k->changed)
        return ONX_OK;
    for (uint32_t i = 0; i < old; i++)
        if (g->ops[i].guard_end)
            k->ops[place[i]].guard_end = place[g->ops[i].guard_end];
    for (uint32_t i = 0; i < g->output_count; i++)
        g->outputs[i] = k->instead[g->outputs[i]];
    g->ops = k->ops;
    g->op_count = k->count;
    g->op_room = k->room;
    return onxi_run_graph_count_uses(g);
}

static onx_status sink(onxi_run_graph *g, bool last)
{
    onx_arena *arena;
    bool any = false;
    sinker k = { .g = g, .last = last };
    for (uint32_t i = 0; i < g->op_count && !any; i++)
        any = turns(&k, &g->ops[i], false);
    if (!any)
        return ONX_OK;
    /* slots that are added are constants, or values of groups in the other order, which nothing asks about */
    const uint32_t slots = g->slot_count + 1, ops = g->op_count + 1;
    ONX_TRY(onx_arena_new(g->session->cx, &arena));
    uint32_t *place = ONXI_ARRAY(arena, uint32_t, ops);
    onx_status status = ONX_OK;
    if (!place || !(k.rank = ONXI_ARRAY(arena, uint8_t, slots)) || !(k.sure = ONXI_ARRAY(arena, uint8_t, slots)) ||
        !(k.group = ONXI_ARRAY(arena, uint32_t, slots)) || !(k.outside = ONXI_ARRAY(arena, bool, slots)) ||
        !(k.moved = ONXI_ARRAY(arena, uint32_t, slots)) || !(k.instead = ONXI_ARRAY(arena, uint32_t, slots)) ||
        !(k.part = ONXI_ARRAY(arena, uint8_t, ops)) || !(k.joined = ONXI_ARRAY(arena, uint32_t, ops)) ||
        !(k.gain = ONXI_ARRAY(arena, int32_t, ops)) || !(k.meets = ONXI_ARRAY(arena, bool, ops)))
        status = ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < slots; i++)
        k.instead[i] = i;
    if (status == ONX_OK) {
        find_groups(&k);
        count_gains(&k);
        status = rebuild(&k, place);
    }
    onx_arena_free(arena);
    return status;
}

onx_status onxi_run_graph_sink_transposes(onxi_run_graph *g)
{
    ONX_TRY(sink(g, true));
    return sink(g, false);
}
