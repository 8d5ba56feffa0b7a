/* transform_trainable_reach.c - which values a gradient of the loss reaches, and which of the initializers among them
 * are constants, as their values and uses show. */
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

#include <math.h>

/* ---- values ---- */

static bool has(const onxi_dict *names, onx_bytes name)
{
    return onx_view(name).len && onxi_dict_find(names, onx_view(name));
}

static bool is_real(onxi_trainable *t, onx_str name)
{
    const int dtype = onxi_type_dtype(onxi_values_type(&t->values, &t->scope, name));
    return dtype <= 0 || dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

static onx_status reach(void *user, onx_bytes *name)
{
    onxi_trainable *t = user;
    if (!onx_view(*name).len || !is_real(t, onx_view(*name)))
        return ONX_OK;
    return onxi_dict_at(&t->reached, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* A gradient of the node's outputs reaches its real inputs, unless the operator has no derivative by them. Where no
 * rule exists, it counts as reaching them: that there is none is reported, instead of weights that are silently left.
 */
static onx_status pass(onxi_trainable *t, onx_node *node, onxi_grad_kind kind)
{
    const bool rounds = onxi_trainable_rounds(t, node) || onxi_trainable_restores(t, node);
    const onxi_bound *bound = onxi_trainable_bound(t, node);
    if (!bound)
        return ONX_E_MEMORY;
    if (rounds && node->input_count) /* straight through, and the value between the two is an integer */
        return onxi_dict_at(&t->reached, onx_view(node->input[0]), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
    if (kind == ONXI_GRAD_STOP)
        return ONX_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onxi_port *port = bound->schema ? onxi_port_at(bound->schema->inputs, i) : NULL;
        if (port && port->flags & ONXI_PORT_NONDIFF && kind == ONXI_GRAD_PART)
            continue;
        ONX_TRY(reach(t, &node->input[i]));
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(onxi_graph_each_name(t->cx, node->attribute[i]->g, reach, t));
    return ONX_OK;
}

/* ---- values that come from the data without a weight ---- */

/* Operators that preprocess data. */
static const onxi_op_id preparing[] = { ONXI_ID_Identity,  ONXI_ID_Cast,    ONXI_ID_Reshape, ONXI_ID_Transpose,
                                        ONXI_ID_Squeeze,   ONXI_ID_Flatten, ONXI_ID_Slice,   ONXI_ID_Resize,
                                        ONXI_ID_Unsqueeze, ONXI_ID_Pad,     ONXI_ID_Clip,    ONXI_ID_Add,
                                        ONXI_ID_Sub,       ONXI_ID_Mul,     ONXI_ID_Div };
static const onxi_op_id arithmetic[] = { ONXI_ID_Add, ONXI_ID_Sub, ONXI_ID_Mul, ONXI_ID_Div };

static bool is_from_node(onxi_trainable *t, onx_bytes name)
{
    return onx_index_def(t->index, onx_index_find(t->index, onx_view(name))).kind == ONX_DEF_NODE;
}

static onx_status find_data(onxi_trainable *t)
{
    const onx_graph *g = t->graph;
    t->data = onxi_dict_in_arena(t->scratch);
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!onxi_dict_at(&t->data, onx_view(g->input[i]->name), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *node = g->node[i];
        bool data = false, other = !ONXI_IS_ONE_OF(onxi_trainable_op(t, node), preparing);
        for (uint32_t k = 0; k < node->input_count && !other; k++) {
            data |= has(&t->data, node->input[k]);
            other = is_from_node(t, node->input[k]) && !has(&t->data, node->input[k]) &&
                    is_real(t, onx_view(node->input[k]));
        }
        if (data && !other && node->output_count && !onxi_dict_at(&t->data, onx_view(node->output[0]), 1, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

onx_status onxi_trainable_reach(onxi_trainable *t)
{
    onxi_grad_kind kinds[ONXI_ID_END];
    for (uint32_t i = 0; i < ONXI_ID_END; i++)
        kinds[i] = ONXI_GRAD_NONE;
    for (uint32_t i = 0; i < onxi_grad_rule_count; i++)
        if (kinds[onxi_grad_rules[i].op] != ONXI_GRAD_LOWER) /* one of several rules, possibly */
            kinds[onxi_grad_rules[i].op] = (onxi_grad_kind)onxi_grad_rules[i].kind;
    t->reached = onxi_dict_in_arena(t->scratch);
    if (!onxi_dict_at(&t->reached, onx_view(t->y), 1, NULL))
        return ONX_E_MEMORY;
    for (uint32_t i = t->graph->node_count; i-- > 0;) {
        onx_node *node = t->graph->node[i];
        bool any = false;
        for (uint32_t k = 0; k < node->output_count && !any; k++)
            any = has(&t->reached, node->output[k]);
        const onxi_op_id op = any ? onxi_trainable_op(t, node) : ONXI_ID_NONE;
        if (any)
            ONX_TRY(pass(t, node, op > ONXI_ID_NONE && op < ONXI_ID_END ? kinds[op] : ONXI_GRAD_NONE));
    }
    return find_data(t);
}

/* ---- constants ---- */

typedef struct sample { /* the first elements of a weight */
    float *x;
    uint64_t count, all;
} sample;

static bool take_sample(onxi_trainable *t, const onx_tensor *tensor, sample *s)
{
    enum { FIRST = 65536 };
    if (!onx_tensor_count(tensor, &s->all))
        return false;
    s->count = s->all < FIRST ? s->all : FIRST;
    if (!t->sample) /* of one weight at a time */
        t->sample = ONXI_ARRAY(t->scratch, float, FIRST);
    s->x = t->sample;
    return s->x && onx_tensor_get_f32(t->doc, tensor, 0, s->count, s->x) == ONX_OK;
}

/* Number of axes with a size other than 1. */
static uint32_t axes_of(const onx_tensor *tensor)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tensor->dims_count; i++)
        count += tensor->dims[i] != 1;
    return count;
}

static bool differs(float a, float b)
{
    return a < b || a > b;
}

/* Masks contain infinite or huge values, or two values over several axes: 0 and 1, or 0 and a number far below. */
static bool is_mask(const sample *s, uint32_t axes)
{
    enum { HUGE_FROM = 1000, FAR = -9 };
    bool zero = false, other = false;
    float second = 0;
    for (uint64_t i = 0; i < s->count; i++)
        if (!(fabsf(s->x[i]) < (float)HUGE_FROM))
            return true;
    for (uint64_t i = 0; i < s->count; i++) {
        if (!differs(s->x[i], 0))
            zero = true;
        else if (other && differs(s->x[i], second))
            return false;
        else
            other = true, second = s->x[i];
    }
    return axes > 1 && zero && other && (!differs(second, 1) || second < (float)FAR);
}

/* Tables of positions: each column is a sine or cosine, so that the sum of the numbers before and after one is a fixed
 * multiple of it. The largest frequency turns fast enough to tell it from a line. */
static bool is_waves(const sample *s, const onx_tensor *tensor)
{
    enum { ROWS = 4 };
    const double near = 1e-3, line = 1.99;
    uint32_t axis = 0;
    bool turns = false;
    while (axis < tensor->dims_count && tensor->dims[axis] == 1)
        axis++;
    if (axis + 1 >= tensor->dims_count || tensor->dims[axis] < ROWS)
        return false;
    const uint64_t row = s->all / (uint64_t)tensor->dims[axis];
    for (uint64_t i = 0; i + 3 * row < s->count; i++) {
        const double a = (double)s->x[i], b = (double)s->x[i + row], c = (double)s->x[i + 2 * row];
        const double d = (double)s->x[i + 3 * row];
        if (!(fabs((a + c) * c - (b + d) * b) <= near * (fabs(b) + fabs(c))))
            return false;
        turns |= fabs(b) > near && fabs(a + c) < line * fabs(b);
    }
    return turns && s->count > 3 * row;
}

/* Does a gradient pass smoothly through an operator that is of no use for a constant? */
static bool is_learned_number(onxi_trainable *t, onx_str name, const onx_tensor *tensor)
{
    static const onxi_op_id smooth[] = { ONXI_ID_Exp,  ONXI_ID_Softplus, ONXI_ID_Sigmoid, ONXI_ID_Tanh,
                                         ONXI_ID_Log,  ONXI_ID_Softmax,  ONXI_ID_Expand,  ONXI_ID_HardSigmoid,
                                         ONXI_ID_Clip, ONXI_ID_Softsign, ONXI_ID_Abs,     ONXI_ID_Concat };
    uint32_t count;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    for (uint32_t i = 0; i < count; i++) {
        const onx_node *node = t->graph->node[use[i].node];
        const onxi_op_id op = onxi_trainable_op(t, node);
        if (use[i].input == UINT32_MAX)
            continue;
        if (ONXI_IS_ONE_OF(op, smooth) && (op == ONXI_ID_Concat || use[i].input == 0))
            return true;
        /* the bias of a product with a single output */
        if (op == ONXI_ID_Add && node->input_count == 2 && tensor->dims_count) {
            const onx_type *type = onxi_values_type(&t->values, &t->scope, onx_view(node->input[1 - use[i].input]));
            const int rank = onxi_type_rank(type);
            if (rank > 0 && onxi_type_dim(type, (uint32_t)rank - 1) == 1 &&
                !has(&t->data, node->input[1 - use[i].input]))
                return true;
        }
    }
    return false;
}

/* Do all nodes that read it combine it with data? */
static bool prepares_data(onxi_trainable *t, onx_str name, const onx_tensor *tensor)
{
    uint32_t count;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    if (axes_of(tensor) > 1)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const onx_node *node = t->graph->node[use[i].node];
        if (use[i].input > 1 || node->input_count != 2 || !ONXI_IS_ONE_OF(onxi_trainable_op(t, node), arithmetic) ||
            !has(&t->data, node->input[1 - use[i].input]))
            return false;
    }
    return count != 0;
}

/* Is each use of it input `first` or later of such an operator? */
static bool is_only(onxi_trainable *t, onx_str name, const onxi_op_id *ops, size_t op_count, uint32_t first)
{
    uint32_t count;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    for (uint32_t i = 0; i < count; i++)
        if (use[i].input == UINT32_MAX || use[i].input < first ||
            !onxi_op_is_one_of(onxi_trainable_op(t, t->graph->node[use[i].node]), ops, op_count))
            return false;
    return count != 0;
}

static bool has_equal_elements(const sample *s)
{
    for (uint64_t i = 1; i < s->count; i++)
        if (differs(s->x[i], s->x[0]))
            return false;
    return true;
}

onxi_weight_left onxi_trainable_constant(onxi_trainable *t, const onxi_weight *w)
{
    static const onxi_op_id recurrent[] = { ONXI_ID_LSTM, ONXI_ID_GRU, ONXI_ID_RNN };
    static const onxi_op_id quantizers[] = { ONXI_ID_QuantizeLinear, ONXI_ID_DequantizeLinear };
    const onx_str name = onx_view(w->tensor->name);
    const onxi_origin origin = onxi_trainable_origin(t, name);
    const bool elementwise = w->role == ONXI_ROLE_NONE || w->elementwise;
    sample s;
    if (origin == ONXI_ORIGIN_PARAMETER)
        return ONXI_LEFT_NOT;
    if (origin == ONXI_ORIGIN_BUFFER)
        return ONXI_LEFT_BUFFER;
    if (!take_sample(t, w->tensor, &s) || !s.all)
        return ONXI_LEFT_SCALAR;
    if (origin == ONXI_ORIGIN_MADE && (elementwise || has_equal_elements(&s)))
        return ONXI_LEFT_MADE;
    if (is_only(t, name, quantizers, sizeof quantizers / sizeof *quantizers, 1))
        return ONXI_LEFT_QUANTIZER;
    if (!elementwise)
        return ONXI_LEFT_NOT;
    if (s.all == 1 && origin != ONXI_ORIGIN_STATE && !is_learned_number(t, name, w->tensor))
        return ONXI_LEFT_SCALAR;
    if (is_mask(&s, axes_of(w->tensor)))
        return ONXI_LEFT_MASK;
    if (is_waves(&s, w->tensor))
        return ONXI_LEFT_WAVES;
    if (has_equal_elements(&s) && s.all > 1 && is_only(t, name, recurrent, sizeof recurrent / sizeof *recurrent, 5))
        return ONXI_LEFT_STATE;
    return prepares_data(t, name, w->tensor) ? ONXI_LEFT_DATA : ONXI_LEFT_NOT;
}
