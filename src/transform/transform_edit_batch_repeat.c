/* transform_edit_batch_repeat.c - operands that are joined to the batch, such as class tokens of vision transformers
 * and initial states of recurrent networks: nodes that repeat them for any batch size. Where the old size is above 1,
 * they are constants of equal parts, one for each sample. */
#include "transform/transform_edit.h"

#include <onx/tensor.h>

/* ---- which operands ---- */

typedef struct spot { /* an operand, and the dimension that is the batch */
    uint32_t input, position;
} spot;

static bool broadcasts(onxi_op_id op)
{
    static const onxi_op_id ops[] = { ONXI_ID_Add,        ONXI_ID_Sub,       ONXI_ID_Mul,        ONXI_ID_Div,
                                      ONXI_ID_Pow,        ONXI_ID_Mod,       ONXI_ID_Min,        ONXI_ID_Max,
                                      ONXI_ID_Sum,        ONXI_ID_Mean,      ONXI_ID_Where,      ONXI_ID_PRelu,
                                      ONXI_ID_MatMul,     ONXI_ID_Equal,     ONXI_ID_Greater,    ONXI_ID_Less,
                                      ONXI_ID_And,        ONXI_ID_Or,        ONXI_ID_Xor,        ONXI_ID_GreaterOrEqual,
                                      ONXI_ID_BitwiseAnd, ONXI_ID_BitwiseOr, ONXI_ID_BitwiseXor, ONXI_ID_LessOrEqual };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == op)
            return true;
    return false;
}

/* The place of the batch in the operand at `input`, of rank `own`; false if it has none, or the operator needs no
 * repetition there. `at` is the place in the operand that has the batch, of rank `rank`. */
static bool spot_of(const onxi_bound *bound, const onx_node *node, uint32_t input, uint32_t at, int rank, int own,
                    spot *out)
{
    const bool first = onxi_bind_int(bound, node, "layout") != 0;
    *out = (spot){ input, at };
    if (broadcasts(bound->op)) {
        const int position = (int)at - rank + own;
        *out = (spot){ input, (uint32_t)position };
        return position >= 0 && (bound->op != ONXI_ID_MatMul || position < own - 2);
    }
    switch (bound->op) {
    case ONXI_ID_Concat:
        return true;
    case ONXI_ID_RNN:
    case ONXI_ID_GRU:
    case ONXI_ID_LSTM: /* the lengths, and the initial states */
        out->position = input == 4 ? 0 : first ? 0 : 1;
        return input >= 4 && input <= 6 && at == (first ? 0 : 1);
    default:
        return false;
    }
}

/* The type of an operand. Inference has no types of initializers. */
typedef struct operand {
    int rank, dtype; /* rank -1: unknown */
    int64_t dims[ONX_RANK_MAX];
    const onx_tensor *tensor; /* its elements; NULL: it is not constant */
} operand;

static operand look(onxi_editor *e, onx_infer *infer, onxi_values *values, onxi_scope *scope, onx_str name)
{
    const onx_type *type = onx_infer_type(infer, e->graph, name);
    const onxi_constant *constant = onxi_values_constant(values, scope, name);
    operand o = { .rank = onxi_type_rank(type), .dtype = onxi_type_dtype(type) };
    if (constant && constant->tensor && constant->tensor->dims_count <= ONX_RANK_MAX) {
        o.rank = (int)constant->tensor->dims_count;
        o.dtype = constant->tensor->data_type;
        o.tensor = constant->tensor;
        onxi_copy_dims(o.dims, constant->tensor->dims, constant->tensor->dims_count);
        return o;
    }
    for (int i = 0; i < o.rank && i < (int)ONX_RANK_MAX; i++)
        o.dims[i] = onxi_type_dim(type, (uint32_t)i);
    if (o.rank > (int)ONX_RANK_MAX)
        o.rank = -1;
    return o;
}

/* The only dimension that is the batch; false if there is none, or several. */
static bool batch_at(const operand *o, int64_t size, uint32_t *out)
{
    uint32_t found = 0;
    for (int i = 0; i < o->rank; i++)
        if (o->dims[i] == size) {
            *out = (uint32_t)i;
            found++;
        }
    return found == 1;
}

/* Has the constant the same elements for each index along the dimension? */
static onx_status parts_are_equal(onxi_editor *e, const operand *o, uint32_t position, bool *out)
{
    uint64_t outer = 1, inner = onx_dtype_bits(o->dtype);
    onx_str bytes;
    *out = false;
    if (!o->tensor || o->dtype == ONX_STRING || !inner || inner % 8)
        return ONX_OK;
    inner /= 8;
    for (int i = 0; i < o->rank; i++)
        if (i != (int)position &&
            !onxi_mul_u64(i < (int)position ? outer : inner, (uint64_t)o->dims[i], i < (int)position ? &outer : &inner))
            return ONX_OK;
    ONX_TRY(onx_tensor_bytes(e->doc, o->tensor, &bytes));
    const uint64_t parts = (uint64_t)o->dims[position];
    uint64_t part, all;
    if (!onxi_mul_u64(parts, inner, &part) || !onxi_mul_u64(part, outer, &all) || all != bytes.len)
        return ONX_OK;
    *out = true;
    for (uint64_t i = 0; i < outer && *out; i++)
        for (uint64_t k = 1; k < parts && *out; k++)
            *out = memcmp(bytes.ptr + i * part, bytes.ptr + i * part + k * inner, inner) == 0;
    return ONX_OK;
}

static bool is_recurrent(onxi_op_id op)
{
    return op == ONXI_ID_RNN || op == ONXI_ID_GRU || op == ONXI_ID_LSTM;
}

onx_status onxi_edit_batch_repeats(onxi_editor *e, const onxi_bound *bound, onx_infer *infer, onxi_values *values,
                                   onxi_scope *scope, onx_node *node, const onxi_batch_shapes *with,
                                   onxi_batch_repeat **out)
{
    uint32_t has = UINT32_MAX, at = 0;
    operand batched = { .rank = -1 };
    *out = NULL;
    if (!infer || bound->kind != ONXI_BOUND_OPERATOR || bound->opset < 8 || !onx_str_is(bound->domain, ""))
        return ONX_OK;
    const bool broadcast = broadcasts(bound->op) && with->old > 1; /* a size of 1 follows by itself */
    if (bound->op != ONXI_ID_Concat && !is_recurrent(bound->op) && !broadcast)
        return ONX_OK;
    for (uint32_t i = 0; i < node->input_count && has == UINT32_MAX && (i == 0 || !is_recurrent(bound->op)); i++) {
        batched = look(e, infer, values, scope, onx_view(node->input[i]));
        if (batch_at(&batched, with->size, &at))
            has = i;
    }
    if (has == UINT32_MAX)
        return ONX_OK;
    const int rank = batched.rank;
    int64_t axis = onxi_bind_int(bound, node, "axis");
    axis = axis < 0 ? axis + rank : axis;
    if (bound->op == ONXI_ID_Concat && axis == (int64_t)at)
        return ONX_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        operand o = look(e, infer, values, scope, onx_view(node->input[i]));
        const int own = o.rank;
        spot s;
        if (i == has || own < 0 || !spot_of(bound, node, i, at, rank, own, &s) || s.position >= (uint32_t)own ||
            (bound->op == ONXI_ID_Concat && own != rank) || o.dims[s.position] != with->old)
            continue;
        bool known = true;
        if (with->old > 1)
            ONX_TRY(parts_are_equal(e, &o, s.position, &known));
        if (!known) {
            e->uneven = o.tensor && !e->uneven.len ? onx_view(node->input[i]) : e->uneven;
            continue;
        }
        onxi_batch_repeat *r = ONXI_NEW(e->scratch, onxi_batch_repeat);
        o.dims[s.position] = broadcast ? 1 : with->size;
        for (int d = 0; d < own; d++)
            known &= o.dims[d] >= 0;
        if (!known)
            continue;
        int64_t *kept = onxi_arena_array(e->arena, (size_t)own + 1, sizeof *kept);
        if (!r || !kept)
            return ONX_E_MEMORY;
        onxi_copy_dims(kept, o.dims, (uint32_t)own);
        *r = (onxi_batch_repeat){ .node = node,
                                  .operand = node->input[i],
                                  .instead = onx_message_new(e->arena, ONX_KIND_TENSOR),
                                  .input = i,
                                  .position = s.position,
                                  .with = has,
                                  .with_position = at,
                                  .rank = (uint32_t)own,
                                  .takes_first = with->old > 1,
                                  .expands = !broadcast,
                                  .next = *out };
        if (!r->instead)
            return ONX_E_MEMORY;
        ONX_SET(tensor, r->instead, data_type, o.dtype);
        r->instead->dims = kept;
        r->instead->dims_count = (uint32_t)own;
        ONX_TRY(onxi_names_make(&e->names, onx_view(r->operand), onx_str_of("repeated"), &r->instead->name));
        r->instead->has |= onx_tensor_has_name;
        *out = r;
    }
    return ONX_OK;
}

/* ---- in the search ---- */

static onx_status set_operand(onxi_editor *e, const onxi_batch_repeat *r, onx_bytes name)
{
    onx_bytes *inputs = onxi_arena_array(e->arena, (size_t)onxi_list_room(r->node->input_count) + 1, sizeof *inputs);
    if (!inputs)
        return ONX_E_MEMORY;
    memcpy(inputs, r->node->input, r->node->input_count * sizeof *inputs);
    inputs[r->input] = name;
    r->node->input = inputs;
    return ONX_OK;
}

onx_status onxi_edit_batch_place(onxi_editor *e, onxi_batch_repeat *list)
{
    for (onxi_batch_repeat *r = list; r; r = r->next) {
        ONX_TRY(set_operand(e, r, r->instead->name));
        if (!onx_graph_add_initializer(e->arena, e->graph, r->instead))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

static void remove_initializer(onx_graph *g, const onx_tensor *tensor)
{
    for (uint32_t i = g->initializer_count; i-- > 0;)
        if (g->initializer[i] == tensor) {
            onx_list_remove(g->initializer, &g->initializer_count, i, sizeof *g->initializer);
            return;
        }
}

void onxi_edit_batch_take_back(onxi_editor *e, const onxi_batch_repeat *list)
{
    for (const onxi_batch_repeat *r = list; r; r = r->next) {
        r->node->input[r->input] = r->operand; /* the list is the node's own */
        remove_initializer(e->graph, r->instead);
    }
}

/* ---- the nodes ---- */

static onx_node *add_node(onxi_editor *e, onxi_node_list *nodes, const char *op, const onx_bytes *inputs,
                          uint32_t count, onx_str base, onx_bytes *made)
{
    onx_node *node = onx_message_new(e->arena, ONX_KIND_NODE);
    if (!node || onx_arena_keep(e->arena, onx_str_of(op), &node->op_type) != ONX_OK ||
        onxi_names_make(&e->names, base, onx_str_of("batch"), made) != ONX_OK ||
        onx_list_add_text(e->arena, &node->output, &node->output_count, onx_view(*made)) != ONX_OK)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (onx_list_add_text(e->arena, &node->input, &node->input_count, onx_view(inputs[i])) != ONX_OK)
            return NULL;
    node->has |= onx_node_has_op_type;
    return onxi_node_list_add(e->scratch, nodes, node) == ONX_OK ? node : NULL;
}

/* A list of int64; empty when out of memory. */
static onx_bytes add_list(onxi_editor *e, onx_str base, uint32_t count, const int64_t *list)
{
    const int64_t dims[1] = { count };
    onx_tensor *tensor = onx_tensor_new(e->arena, ONX_INT64, dims, 1, list, "");
    if (!tensor || onxi_names_make(&e->names, base, onx_str_of("batch"), &tensor->name) != ONX_OK)
        return (onx_bytes){ 0 };
    tensor->has |= onx_tensor_has_name;
    return onx_graph_add_initializer(e->arena, e->graph, tensor) ? tensor->name : (onx_bytes){ 0 };
}

/* The first of the equal parts, as an operand of size 1. */
static onx_status take_first(onxi_editor *e, onxi_node_list *nodes, const onxi_batch_repeat *r, onx_bytes *out)
{
    const int64_t zero[1] = { 0 };
    const onx_str base = onx_view(r->operand);
    const onx_bytes index = add_list(e, base, 1, zero);
    onx_node *node = onx_view(index).len
                         ? add_node(e, nodes, "Gather", (const onx_bytes[]){ r->operand, index }, 2, base, out)
                         : NULL;
    return node && onx_node_add_int(e->arena, node, "axis", r->position) ? ONX_OK : ONX_E_MEMORY;
}

/* Expand to the batch of the other operand: (1, .., batch, .., 1). */
static onx_status repeat(onxi_editor *e, onxi_node_list *nodes, const onxi_batch_repeat *r)
{
    int64_t ones[ONX_RANK_MAX];
    const int64_t place[1] = { r->with_position };
    const onx_str base = onx_view(r->operand);
    onx_bytes shape, size, whole, result, parts[3];
    uint32_t count = 0;
    onx_node *node;
    onx_bytes single = r->operand;
    if (r->takes_first)
        ONX_TRY(take_first(e, nodes, r, &single));
    if (r->takes_first)
        onxi_tell_change(e->options->changed, e->options->user, "edit", "batch", base,
                         "has equal parts for the samples, of which the first is taken");
    if (!r->expands)
        return set_operand(e, r, single);
    for (uint32_t i = 0; i < ONX_RANK_MAX; i++)
        ones[i] = 1;
    const onx_bytes at = add_list(e, base, 1, place);
    if (!onx_view(at).len || !add_node(e, nodes, "Shape", &r->node->input[r->with], 1, base, &shape) ||
        !add_node(e, nodes, "Gather", (const onx_bytes[]){ shape, at }, 2, base, &size))
        return ONX_E_MEMORY;
    if (r->position)
        parts[count++] = add_list(e, base, r->position, ones);
    parts[count++] = size;
    if (r->position + 1 < r->rank)
        parts[count++] = add_list(e, base, r->rank - r->position - 1, ones);
    for (uint32_t i = 0; i < count; i++)
        if (!onx_view(parts[i]).len)
            return ONX_E_MEMORY;
    if (!(node = add_node(e, nodes, "Concat", parts, count, base, &whole)) ||
        !onx_node_add_int(e->arena, node, "axis", 0) ||
        !add_node(e, nodes, "Expand", (const onx_bytes[]){ single, whole }, 2, base, &result))
        return ONX_E_MEMORY;
    onxi_tell_change(e->options->changed, e->options->user, "edit", "batch", base, "is repeated for each sample");
    return set_operand(e, r, result);
}

onx_status onxi_edit_batch_insert(onxi_editor *e, const onxi_batch_repeat *list)
{
    onxi_node_list nodes = { 0 };
    onx_graph *g = e->graph;
    onxi_edit_batch_take_back(e, list);
    for (uint32_t i = 0; i < g->node_count; i++) {
        for (const onxi_batch_repeat *r = list; r; r = r->next)
            if (r->node == g->node[i])
                ONX_TRY(repeat(e, &nodes, r));
        ONX_TRY(onxi_node_list_add(e->scratch, &nodes, g->node[i]));
    }
    return onxi_node_list_keep(e->arena, &nodes, &g->node, &g->node_count);
}
