/* transform_grad_lower.c - decomposes sequence operators, and computes the tables of RotaryEmbedding. */
#include "transform/transform_grad.h"

#include <stdio.h>

typedef onxi_grad_writer writer;
#define put onxi_grad_say

static onx_status finish(const writer *w, onx_str *text)
{
    *text = onx_str_make(w->text, w->size);
    return w->failed ? ONX_E_MEMORY : ONX_OK;
}

/* A causal convolution: the taps of each position, separate for each channel, times the weights. */
onx_status onxi_grad_write_causal(onxi_grad_node *n, onx_str *text)
{
    writer w = { .arena = n->g->scratch };
    const bool smooth =
        onxi_subject_text_is(&n->s, "activation", "silu") || onxi_subject_text_is(&n->s, "activation", "swish");
    put(&w,
        "zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()  first = Constant <value_ints = [0]> ()"
        "  single = Constant <value_ints = [1]> ()  along = Constant <value_ints = [2]> ()  taps_axis = Constant <value_ints = [3]> ()"
        "  taps1 = Shape <start = 2, end = 3> (weight)  taps = Squeeze (taps1)  count1 = Shape <start = 2, end = 3> (input)  count = Squeeze (count1)  ");
    if (onxi_subject_has(&n->s, 3))
        put(&w, "whole = Concat <axis = 2> (past_state, input)  ");
    else
        put(&w,
            "before = Sub (taps1, single)  ends = Concat <axis = 0> (before, first)  whole = Pad (input, ends, , along)  ");
    put(&w,
        "positions = Range (zero, count, one)  rows = Unsqueeze (positions, single)  columns = Range (zero, taps, one)"
        "  at = Add (rows, columns)  read = Gather <axis = 2> (whole, at)  weighed = Mul (read, weight)  sum = ReduceSum <keepdims = 0> (weighed, taps_axis)  ");
    put(&w, onxi_subject_has(&n->s, 2) ? "shift = Unsqueeze (bias, single)  y = Add (sum, shift)  "
                                       : "y = Identity (sum)  ");
    put(&w, smooth ? "gate = Sigmoid (y)  output = Mul (y, gate)  " : "output = Identity (y)  ");
    put(&w, "length = Shape <start = 2, end = 3> (whole)  present_state = Slice (whole, count1, length, along)");
    n->head = (onx_str){ 0 };
    return finish(&w, text);
}

/* [batch, steps, width] as [steps, batch, heads...], with steps first for Scan. */
static void put_steps(writer *w, const char *name, const char *shape, int rank)
{
    static const char *const turns[] = { "[1, 0, 2, 3]", "[1, 0, 2, 3, 4]" };
    put(w,
        "%s_shape = Constant <value_ints = %s> ()  %s_split = Reshape (%s, %s_shape)  %s_steps = Transpose <perm = %s> (%s_split)  ",
        name, shape, name, name, name, name, turns[rank - 4], name);
}

/* A loop over the steps, whose state is the matrix of each head: decay, update, and the product with the queries. */
onx_status onxi_grad_write_linear_attention(onxi_grad_node *n, onx_str *text)
{
    writer w = { .arena = n->g->scratch };
    const bool decay = onxi_subject_has(&n->s, 4), beta = onxi_subject_has(&n->s, 5), past = onxi_subject_has(&n->s, 3);
    int64_t queries = 0, heads = 0;
    float scale = 0;
    char shape[64];
    if (!onxi_subject_int(&n->s, "q_num_heads", &queries) || !onxi_subject_int(&n->s, "kv_num_heads", &heads) ||
        heads < 1 || queries < 1 || queries % heads)
        return onxi_grad_fail(n->g, n->s.node, "%lld query heads are not a multiple of %lld key heads",
                              (long long)queries, (long long)heads);
    (void)onxi_subject_float(&n->s, "scale", &scale);
    (void)snprintf(shape, sizeof shape, "[0, 0, %lld, %lld, -1]", (long long)heads, (long long)(queries / heads));
    put_steps(&w, "query", shape, 5);
    (void)snprintf(shape, sizeof shape, "[0, 0, %lld, -1]", (long long)heads);
    put_steps(&w, "key", shape, 4);
    put_steps(&w, "value", shape, 4);
    if (decay)
        put_steps(&w, "decay", shape, 4);
    if (beta)
        put_steps(&w, "beta", "[0, 0, -1, 1]", 4);
    put(&w,
        "sizes0 = Shape <start = 1> (key_steps)  sizes1 = Shape <start = 3> (value_steps)  sizes = Concat <axis = 0> (sizes0, sizes1)"
        "  none0 = Constant <value = double {0.0}> ()  none = CastLike (none0, query)  ");
    put(&w, past ? "state = CastLike (past_state, query)  " : "state = Expand (none, sizes)  ");
    put(&w,
        "last_state, read = Scan <num_scan_inputs = %d, body = step (s, k, v, q%s%s) => (s_next, o) {"
        " last = Constant <value_ints = [-1]> ()  row = Constant <value_ints = [-2]> ()  kc = Unsqueeze (k, last)  vr = Unsqueeze (v, row)  ",
        3 + decay + beta, decay ? ", d" : "", beta ? ", b" : "");
    put(&w, decay ? "keep0 = Exp (d)  keep = Unsqueeze (keep0, last)  old = Mul (s, keep)  " : "old = Identity (s)  ");
    put(&w,
        beta
            ? "kr = Unsqueeze (k, row)  said = MatMul (kr, old)  less = Sub (vr, said)  bc = Unsqueeze (b, last)  fresh = Mul (less, bc)  "
            : "fresh = Identity (vr)  ");
    put(&w,
        "more = Mul (kc, fresh)  s_next = Add (old, more)  o = MatMul (q, s_next) }> (state, key_steps, value_steps, query_steps%s%s)  ",
        decay ? ", decay_steps" : "", beta ? ", beta_steps" : "");
    if (scale != 0.0f)
        put(&w, "f0 = Constant <value_float: float = @scale> ()  f = CastLike (f0, query)  ");
    else
        put(&w,
            "f0 = Shape <start = 3, end = 4> (key_steps)  f1 = CastLike (f0, query)  f2 = Sqrt (f1)  f = Reciprocal (f2)  ");
    put(&w,
        "scaled = Mul (read, f)  turned = Transpose <perm = [1, 0, 2, 3, 4]> (scaled)  packed = Constant <value_ints = [0, 0, -1]> ()"
        "  output = Reshape (turned, packed)  ");
    put(&w, past ? "present_state = CastLike (last_state, past_state)" : "present_state = Identity (last_state)");
    n->head = (onx_str){ 0 };
    return finish(&w, text);
}

/* ---- RotaryEmbedding ---- */

/* The halves of the rotated part, of x and of the gradient: `<name>1` and `<name>2`, [batch, steps, heads, pairs]. */
static void put_halves(writer *w, const char *name, const char *of, bool packed, bool interleaved)
{
    onxi_grad_say_for(w, name, of,
                      packed ? "#_heads = Reshape (~, by_head)  " : "#_heads = Transpose <perm = [0, 2, 1, 3]> (~)  ");
    onxi_grad_say_for(w, name, of,
                      "#_part = Slice (#_heads, front, turned, last)  #_apart = Reshape (#_part, apart)  ");
    onxi_grad_say_for(w, name, of,
                      interleaved
                          ? "#1 = Gather <axis = -1> (#_apart, none)  #2 = Gather <axis = -1> (#_apart, one)  "
                          : "#1 = Gather <axis = -2> (#_apart, none)  #2 = Gather <axis = -2> (#_apart, one)  ");
}

/* With halves x1, x2 of x and g1, g2 of the gradient, the gradient of a cosine is g1 x1 + g2 x2, and of a sine g2 x1 -
 * g1 x2, summed over all heads and all positions that use it. */
onx_status onxi_grad_write_rotary(onxi_grad_node *n, onx_str *text)
{
    writer w = { .arena = n->g->scratch };
    int64_t heads = 0, size = 0, interleaved = 0;
    const int rank = onxi_subject_rank(&n->s, 0);
    if (rank < 0 || !onxi_subject_int(&n->s, "rotary_embedding_dim", &size) ||
        !onxi_subject_int(&n->s, "interleaved", &interleaved) ||
        (rank == 3 && !onxi_subject_int(&n->s, "num_heads", &heads)))
        return onxi_grad_fail(n->g, n->s.node, "the gradient of RotaryEmbedding needs the rank of its input");
    put(&w,
        "none = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()  front = Constant <value_ints = [0]> ()"
        "  last = Constant <value_ints = [-1]> ()  by_head = Constant <value_ints = [0, 0, %lld, -1]> ()  turned = Constant <value_ints = [%lld]> ()"
        "  apart = Constant <value_ints = [0, 0, 0, %s]> ()  of_heads = Constant <value_ints = [2]> ()  ",
        (long long)heads, size > 0 ? (long long)size : INT64_MAX, interleaved ? "-1, 2" : "2, -1");
    put_halves(&w, "x", "x", rank == 3, interleaved != 0);
    put_halves(&w, "dy", "g", rank == 3, interleaved != 0);
    put(&w, "c1 = Mul (g1, x1)  c2 = Mul (g2, x2)  c3 = Add (c1, c2)  c = ReduceSum <keepdims = 0> (c3, of_heads)"
            "  s1 = Mul (g2, x1)  s2 = Mul (g1, x2)  s3 = Sub (s1, s2)  s = ReduceSum <keepdims = 0> (s3, of_heads)  ");
    if (onxi_subject_has(&n->s, 3))
        put(&w,
            "rows = Unsqueeze (at, last)  zc = grad.Zeros (cos)  dcos = ScatterND <reduction = \"add\"> (zc, rows, c)"
            "  zs = grad.Zeros (sin)  dsin = ScatterND <reduction = \"add\"> (zs, rows, s)");
    else
        put(&w, "dcos = grad.Fit (c, cos, c)  dsin = grad.Fit (s, sin, s)");
    n->head = onx_str_of("x cos sin at => y");
    return finish(&w, text);
}
