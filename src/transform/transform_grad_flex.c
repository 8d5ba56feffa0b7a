/* transform_grad_flex.c - decomposes FlexAttention: matrix products, with the graphs for scores and probabilities in
 * between. */
#include "transform/transform_grad.h"

#include <stdio.h>

/* Query heads that share a key and a value head form an axis of their own. */
#define SCORES                                                                                                                                                            \
    "rest = Constant <value_ints = [-1]> ()  two = Constant <value_ints = [2]> ()  qc = Cast <to = %d> (Q)  kc = Cast <to = %d> (K)  bk = Shape <start = 0, end = 2> (K)" \
    "  ql = Shape <start = 2> (Q)  qs = Concat <axis = 0> (bk, rest, ql)  q5 = Reshape (qc, qs)  k5 = Unsqueeze (kc, two)  %s  qf = Mul (q5, f)"                          \
    "  kt = Transpose <perm = [0, 1, 2, 4, 3]> (k5)  s5 = MatMul (qf, kt)  qh = Shape <start = 0, end = 3> (Q)  ks = Shape <start = 2, end = 3> (K)"                      \
    "  all = Concat <axis = 0> (qh, ks)  s4 = Reshape (s5, all)  s = Cast <to = %d> (s4)"
#define SCALE_GIVEN "f0 = Constant <value_float: float = @scale> ()  f = CastLike (f0, qc)"
#define SCALE_SIZE                                                                                                     \
    "first = Constant <value_ints = [0]> ()  d0 = Shape <start = 3> (Q)  d1 = Squeeze (d0, first)  d2 = Cast <to = %d> (d1)  d3 = Sqrt (d2)  f = Reciprocal (d3)"
#define SOFTMAX "c = Cast <to = %d> (s)  q = Softmax <axis = -1> (c)  p = Cast <to = %d> (q)"
#define MIX                                                                                                                                                               \
    "rest = Constant <value_ints = [-1]> ()  two = Constant <value_ints = [2]> ()  pc = Cast <to = %d> (p)  vc = Cast <to = %d> (V)  bv = Shape <start = 0, end = 2> (V)" \
    "  pl = Shape <start = 2> (p)  ps = Concat <axis = 0> (bv, rest, pl)  p5 = Reshape (pc, ps)  v5 = Unsqueeze (vc, two)  y5 = MatMul (p5, v5)"                          \
    "  qh = Shape <start = 0, end = 3> (Q)  ev = Shape <start = 3> (V)  ys = Concat <axis = 0> (qh, ev)  y4 = Reshape (y5, ys)  Y = Cast <to = %d> (y4)"

/* Appends the nodes of the graph attribute, which has one input and one output, if the node has it; *value becomes its
 * output. */
static onx_status put_graph(onxi_grad_node *n, const char *name, onx_bytes *value)
{
    onxi_grad *g = n->g;
    const onx_attribute *a = onx_node_attribute(n->s.node, name);
    onxi_grad_again again = { .g = g, .to = onxi_dict_in_arena(g->scratch) };
    if (!a)
        return ONX_OK;
    const onx_graph *graph = a->slot == ONX_SLOT_G ? a->g : NULL;
    if (!graph || graph->input_count != 1 || graph->output_count != 1 || graph->sparse_initializer_count)
        return onxi_grad_fail(g, n->s.node, "%s is not a graph with one input, one output and no sparse initializers",
                              name);
    ONX_TRY(onxi_grad_again_set(&again, onx_view(graph->input[0]->name), *value));
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        onx_bytes own;
        void *tensor;
        ONX_TRY(onxi_grad_name(g, graph->initializer[i]->name, "again", &own));
        ONX_TRY(onx_message_copy(g->arena, ONX_KIND_TENSOR, graph->initializer[i], &tensor));
        onx_node *node = onxi_grad_node_new(g, "Constant", NULL, 0, &own, 1);
        if (!node || !onx_node_add_tensor(g->arena, node, "value", tensor))
            return ONX_E_MEMORY;
        ONX_TRY(onxi_grad_push(g, n->out, node));
        ONX_TRY(onxi_grad_again_set(&again, onx_view(graph->initializer[i]->name), own));
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        onx_node *node;
        ONX_TRY(onxi_grad_again_node(&again, graph->node[i], &node));
        ONX_TRY(onxi_grad_push(g, n->out, node));
    }
    *value = graph->output[0]->name;
    return onxi_grad_again_rename(&again, value);
}

static onx_status put_text(onxi_grad_node *n, const char *inputs, const char *output, onx_str text, const onx_bytes *in,
                           uint32_t count, onx_bytes *out)
{
    if (!text.len)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_grad_put(n, inputs, output, text.ptr, in, count, out, 1));
    *out = onxi_grad_resolve(n->out, *out);
    return ONX_OK;
}

onx_status onxi_grad_make_flex_attention(onxi_grad_node *n)
{
    onxi_grad *g = n->g;
    const onx_bytes *in = n->s.node->input;
    const int dtype = onxi_subject_dtype(&n->s, 0);
    int64_t given;
    const int softmax = onxi_subject_int(&n->s, "softmax_precision", &given) && given > 0 && given < ONX_DTYPE_COUNT
                            ? (int)given
                        : dtype == ONX_DOUBLE ? ONX_DOUBLE
                                              : ONX_FLOAT;
    const int wide = dtype == ONX_DOUBLE || softmax == ONX_DOUBLE ? ONX_DOUBLE : ONX_FLOAT;
    onx_bytes s, p, y = n->lowered[0];
    if (dtype == ONX_UNDEFINED)
        return onxi_grad_fail(g, n->s.node, "the gradient of FlexAttention needs the type of Q");
    const onx_str size = onxi_arena_printf(g->scratch, SCALE_SIZE, wide);
    const char *scale = onxi_subject_given(&n->s, "scale") ? SCALE_GIVEN : size.len ? size.ptr : "";
    ONX_TRY(onxi_grad_name(g, n->s.node->output[0], "scores", &s));
    ONX_TRY(onxi_grad_name(g, n->s.node->output[0], "shares", &p));
    ONX_TRY(put_text(n, "Q, K", "s", onxi_arena_printf(g->scratch, SCORES, wide, wide, scale, softmax), in, 2, &s));
    ONX_TRY(put_graph(n, "score_mod", &s));
    ONX_TRY(put_text(n, "s", "p", onxi_arena_printf(g->scratch, SOFTMAX, wide, softmax), &s, 1, &p));
    ONX_TRY(put_graph(n, "prob_mod", &p));
    const onx_bytes last[3] = { p, in[0], in[2] };
    return put_text(n, "p, Q, V", "Y", onxi_arena_printf(g->scratch, MIX, wide, wide, dtype), last, 3, &y);
}
