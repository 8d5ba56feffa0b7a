/* run_bytes.c - prepares graphs for the rewrite rules that replace nodes between DequantizeLinear and QuantizeLinear by
 * integer kernels, and finishes them afterwards. Before the rules, quantized constants are not dequantized, and each
 * operator that may read bytes gets its own copy of the DequantizeLinear. After the rules, the remaining quantized
 * constants are dequantized. */
#include "run/run.h"

onx_status onxi_run_session_takes_bytes(onxi_run_session *s)
{
    const onx_kernel *const *rows;
    uint32_t count;
    const onxi_kernel_wanted want = {
        .domain = onx_str_of("onx"), .name = onx_str_of("QConv"), .since = 1, .by_rule = true
    };
    ONX_TRY(onxi_kernel_candidates(s->kernels, s->arena, &want, &rows, &count));
    s->takes_bytes = count && !s->options.plain && !s->options.no_optimize;
    return ONX_OK;
}

bool onxi_run_keeps_bytes(const onxi_run_graph *g, const onxi_run_op *op)
{
    if (!g->session->takes_bytes || op->id != ONXI_ID_DequantizeLinear || op->inputs[0] == ONXI_NO_SLOT)
        return false;
    const onx_value *v = g->slots[op->inputs[0]].constant;
    return v && v->kind == ONX_VALUE_TENSOR && (v->dtype == ONX_INT8 || v->dtype == ONX_UINT8) && v->rank > 1;
}

/* The DequantizeLinear that makes each slot: 1 + its op index; 0: none. Slots from `count` on are results of copies. */
typedef struct byte_makers {
    uint32_t *of, count;
} byte_makers;

static bool is_of_bytes(const byte_makers *m, uint32_t slot)
{
    return slot != ONXI_NO_SLOT && (slot >= m->count || m->of[slot]);
}

/* Can rewrite rules replace the operator by an integer kernel? For Add, Mul and average pooling, all inputs must come
 * from DequantizeLinear. */
static bool takes_bytes(const byte_makers *m, const onxi_run_op *op)
{
    switch (op->id) {
    case ONXI_ID_Conv:
    case ONXI_ID_MatMul:
    case ONXI_ID_Gemm:
        return op->needed;
    case ONXI_ID_Add:
    case ONXI_ID_Mul:
    case ONXI_ID_GlobalAveragePool:
    case ONXI_ID_AveragePool:
        for (uint32_t i = 0; i < op->input_count; i++)
            if (!is_of_bytes(m, op->inputs[i]))
                return false;
        return op->needed;
    default:
        return false;
    }
}

/* The DequantizeLinear that makes this input of an operator that can read bytes, if its result also has other readers;
 * else NULL. */
static const onxi_run_op *shared_maker(const onxi_run_graph *g, const byte_makers *m, const onxi_run_op *op,
                                       uint32_t input)
{
    const uint32_t slot = input < op->input_count && takes_bytes(m, op) ? op->inputs[input] : ONXI_NO_SLOT;
    if (slot >= m->count || !m->of[slot] || g->slots[slot].uses < 2)
        return NULL;
    return &g->ops[m->of[slot] - 1];
}

/* Copies the op `from`. The copy's result is a new slot, which becomes the given input of `user`. */
static onx_status copy_for(onxi_run_graph *g, const onxi_run_op *from, onxi_run_op *user, uint32_t input,
                           onxi_run_op *out)
{
    onx_arena *arena = g->session->arena;
    const uint32_t old = user->inputs[input];
    if (!ONXI_GROW_IN(arena, g->slots, g->slot_room, (uint64_t)g->slot_count + 1))
        return ONX_E_MEMORY;
    *out = *from;
    out->inputs = ONXI_ARRAY(arena, uint32_t, from->input_count + 1u);
    out->outputs = ONXI_ARRAY(arena, uint32_t, 1);
    if (!out->inputs || !out->outputs)
        return ONX_E_MEMORY;
    memcpy(out->inputs, from->inputs, from->input_count * sizeof *out->inputs);
    out->input_room = from->input_count + 1u;
    g->slots[g->slot_count] = (onxi_run_graph_slot){ .name = g->slots[old].name, .uses = 1 };
    g->slots[old].uses--;
    out->outputs[0] = user->inputs[input] = g->slot_count++;
    return ONX_OK;
}

onx_status onxi_run_graph_split_bytes(onxi_run_graph *g)
{
    onx_arena *scratch;
    uint32_t copies = 0, count = 0;
    if (!g->session->takes_bytes)
        return ONX_OK;
    ONX_TRY(onx_arena_new(g->session->cx, &scratch));
    const byte_makers m = { ONXI_ARRAY(scratch, uint32_t, g->slot_count + 1u), g->slot_count };
    for (uint32_t i = 0; m.of && i < g->op_count; i++)
        if (g->ops[i].id == ONXI_ID_DequantizeLinear && g->ops[i].output_count == 1 &&
            g->ops[i].outputs[0] != ONXI_NO_SLOT)
            m.of[g->ops[i].outputs[0]] = i + 1;
    for (uint32_t i = 0; m.of && i < g->op_count; i++)
        for (uint32_t k = 0; k < 2; k++)
            copies += shared_maker(g, &m, &g->ops[i], k) != NULL;
    onxi_run_op *ops = m.of && copies ? ONXI_ARRAY(g->session->arena, onxi_run_op, g->op_count + copies) : NULL;
    onx_status status = m.of && (ops || !copies) ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && copies && i < g->op_count; i++) {
        for (uint32_t k = 0; status == ONX_OK && k < 2; k++) {
            const onxi_run_op *from = shared_maker(g, &m, &g->ops[i], k);
            if (from && (status = copy_for(g, from, &g->ops[i], k, &ops[count])) == ONX_OK)
                count++;
        }
        ops[count++] = g->ops[i];
    }
    onx_arena_free(scratch);
    if (status != ONX_OK || !copies)
        return status;
    g->ops = ops;
    g->op_count = count;
    g->op_room = count;
    return onxi_run_graph_count_uses(g);
}

onx_status onxi_run_graph_fold_bytes(onxi_run_graph *g)
{
    bool any = false;
    for (uint32_t i = 0; g->session->takes_bytes && i < g->op_count; i++) {
        onxi_run_op *op = &g->ops[i];
        if (!op->needed || !onxi_run_keeps_bytes(g, op) || !onxi_run_op_is_constant(g, op))
            continue;
        ONX_TRY(onxi_run_graph_fold(g, op));
        op->needed = false;
        any = true;
    }
    return any ? onxi_run_graph_count_uses(g) : ONX_OK;
}
