/* attention.c - how attention of com.microsoft may be split: by batch, and by heads if these are separate. In operands
 * with packed queries, keys and values heads are not contiguous: such a node is not split by heads, unless annotations
 * are being created, for which the packed products are separated. */
#include "shard/shard_rules.h"

static const char *const head_counts[] = { "num_heads", "kv_num_heads", NULL };

/* The dimensions from present or past keys: [batch, heads, keys, size] or [batch, keys, heads * size]. */
static double work_of_heads(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const uint32_t ins = n->node->input_count;
    const onxi_shard_value *made = n->node->output_count > 1 ? onxi_split_operand(plan, n, ins + 1) : NULL;
    const onxi_shard_value *keys = ins > 1 ? onxi_split_operand(plan, n, 1) : NULL;
    const double out = onxi_split_count(onxi_split_operand(plan, n, ins));
    if (made && made->rank == 4)
        return 4 * out * (double)made->dims[2];
    return keys && keys->rank >= 3 ? 4 * out * (double)keys->dims[keys->rank == 3 ? 1 : 2] : out;
}

/* Operands with positions first; the number of heads need not be known. */
static void rotary(onxi_splitter *m)
{
    enum { POSITIONS = 1, ANGLES };
    const onxi_shard_value *x = onxi_split_input(m, 0), *angles = onxi_split_input(m, ANGLES);
    if (x->rank < 3 || x->rank > 4 || !angles || !angles->rank)
        return;
    int64_t count = x->rank == 4 ? x->dims[1] : onxi_attrs_int(m->s->attrs, "num_heads"), width = 0;
    if (x->rank == 3 && !onxi_attrs_int(m->s->attrs, "rotary_embedding_dim") &&
        !__builtin_mul_overflow(angles->dims[angles->rank - 1], 2, &width) && width > 0)
        count = x->dims[2] / width;
    if (count < 1 || x->dims[x->rank == 4 ? 1 : 2] % count)
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, x->dims[0], count);
    onxi_split_heads_map(m->r->map[0], x, d);
    onxi_split_heads_map(onxi_split_output_row(m, 0), x, d);
    if (onxi_split_input(m, POSITIONS) && onxi_split_input(m, POSITIONS)->rank == 2)
        onxi_split_heads_map_batch(m, POSITIONS, x->dims[0], d.batch);
    if (x->rank == 3)
        onxi_split_heads_count(m, d, head_counts);
}

static void group_attention(onxi_splitter *m)
{
    enum { LENGTHS = 5, POSITIONS = 9, BIAS, SINK };
    static const uint32_t headed[] = { 0, 1, 2, 3, 4 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *sink = onxi_split_input(m, SINK);
    const int64_t queries = onxi_attrs_int(m->s->attrs, "num_heads"),
                  keys = onxi_attrs_int(m->s->attrs, "kv_num_heads");
    const bool packed = !onxi_split_input(m, 1) || !onxi_split_input(m, 2);
    if (q->rank != 3 || queries < 1 || keys < 1)
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, q->dims[0], packed ? 1 : onxi_split_common(queries, keys));
    onxi_split_heads_map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    onxi_split_heads_map_outputs(m, d);
    onxi_split_heads_map_batch(m, LENGTHS, q->dims[0], d.batch);
    onxi_split_heads_map_batch(m, POSITIONS, q->dims[0], d.batch);
    onxi_split_heads_map_mask(m, BIAS, q->dims[0], queries, d);
    if (sink && sink->rank == 1 && sink->dims[0] == queries)
        m->r->map[SINK][0] = d.heads;
    onxi_split_heads_count(m, d, head_counts);
}

/* Block layouts repeat over the heads: each part begins with the first one. */
static void sparse_attention(onxi_splitter *m)
{
    enum { LAYOUT = 5, LENGTHS = 8 };
    static const uint32_t headed[] = { 0, 1, 2, 3, 4 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *layout = onxi_split_input(m, LAYOUT);
    const int64_t queries = onxi_attrs_int(m->s->attrs, "num_heads"),
                  keys = onxi_attrs_int(m->s->attrs, "kv_num_heads");
    const bool packed = !onxi_split_input(m, 1) || !onxi_split_input(m, 2);
    if (q->rank != 3 || queries < 1 || keys < 1 || !layout || layout->rank != 2 || layout->dims[0] < 1)
        return;
    const int64_t cycles = queries % layout->dims[0] ? 1 : queries / layout->dims[0];
    const onxi_split_heads d =
        onxi_split_heads_new(m, q->dims[0], packed ? 1 : onxi_split_common(cycles, onxi_split_common(queries, keys)));
    onxi_split_heads_map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    onxi_split_heads_map_outputs(m, d);
    onxi_split_heads_map_batch(m, LENGTHS, q->dims[0], d.batch);
    onxi_split_heads_count(m, d, head_counts);
}

/* A bias contains those of queries, keys and values, concatenated. */
static void multi_attention(onxi_splitter *m)
{
    enum { BIAS = 3, PADDING, SCORES, INDIRECTION = 9 };
    static const uint32_t headed[] = { 0, 1, 2, 6, 7 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *padding = onxi_split_input(m, PADDING);
    const int64_t count = onxi_attrs_int(m->s->attrs, "num_heads");
    if (count < 1 || onxi_split_input(m, INDIRECTION) || q->rank < 3 ||
        (padding && padding->rank == 1 && padding->dims[0] != q->dims[0])) /* cumulative lengths over the batch */
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, q->dims[0], onxi_split_input(m, BIAS) ? 1 : count);
    onxi_split_heads_map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    onxi_split_heads_map_outputs(m, d);
    onxi_split_heads_map_batch(m, PADDING, q->dims[0], d.batch);
    onxi_split_heads_map_mask(m, SCORES, q->dims[0], count, d);
    onxi_split_heads_count(m, d, head_counts);
}

/* The weights yield packed queries, keys and values, and the past is [2, batch, heads, keys, size]. */
static void by_batch(onxi_splitter *m, uint32_t mask, uint32_t past, uint32_t scores)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *padding = onxi_split_input(m, mask),
                           *before = onxi_split_input(m, past), *present = onxi_split_output(m, 1);
    if (x->rank != 3 || (padding && (!padding->rank || (padding->rank == 1 && padding->dims[0] != x->dims[0]))))
        return;
    const int8_t batch = onxi_split_dim(m, x->dims[0], 0, ONXI_SHARD_PARALLEL);
    m->r->map[0][0] = onxi_split_output_row(m, 0)[0] = batch;
    onxi_split_heads_map_batch(m, mask, x->dims[0], batch);
    onxi_split_heads_map_batch(m, scores, x->dims[0], batch);
    if (before && before->rank == 5)
        m->r->map[past][1] = batch;
    if (present && present->rank == 5)
        onxi_split_output_row(m, 1)[1] = batch;
}

static void attention(onxi_splitter *m)
{
    enum { MASK = 3, PAST, SCORES };
    by_batch(m, MASK, PAST, SCORES);
}

static void quantized_attention(onxi_splitter *m)
{
    enum { MASK = 5, PAST = 8, SCORES = 9 /* the operator has none */ };
    by_batch(m, MASK, PAST, SCORES);
}

/* The cost of the product with the weights, and of the attention. */
static double work_of_projection(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const onxi_shard_value *x = onxi_split_operand(plan, n, 0), *w = onxi_split_operand(plan, n, 1);
    const double out = onxi_split_count(onxi_split_operand(plan, n, n->node->input_count));
    if (!x || !w || x->rank != 3 || !x->known || !w->known)
        return out;
    return 2 * (double)x->dims[0] * (double)x->dims[1] * onxi_split_count(w) + 4 * out * (double)x->dims[1];
}

/* ---- separating packed operands ---- */

static bool is_given(const onx_node *node, uint32_t i)
{
    return i < node->input_count && onx_view(node->input[i]).len;
}

/* A node whose first inputs are separate queries, keys and values. */
static onx_status with_inputs(onxi_unfolder *u, uint32_t index, const onx_bytes apart[ONXI_APART], uint32_t room,
                              onx_node **out)
{
    ONX_TRY(onxi_apart_copy(u, index, room, out));
    for (uint32_t k = 0; k < ONXI_APART; k++)
        (*out)->input[k] = apart[k];
    return ONX_OK;
}

/* Queries of all heads come first, then keys and values of all key heads. */
static onx_status separate_groups(onxi_unfolder *u, const onxi_bound *bound, uint32_t index)
{
    enum { MOST = 1 << 20 };
    const onx_node *node = onxi_apart_at(u, index);
    const int64_t queries = onxi_bind_int(bound, node, "num_heads"), keys = onxi_bind_int(bound, node, "kv_num_heads");
    onx_bytes apart[ONXI_APART];
    onx_node *made;
    if (!is_given(node, 0) || is_given(node, 1) || is_given(node, 2) || queries < 1 || queries > MOST || keys < 1 ||
        keys > MOST)
        return ONX_OK;
    const int64_t count = onxi_apart_count(u, node->input[0]), size = count / (queries + 2 * keys);
    if (!count || count % (queries + 2 * keys))
        return ONX_OK;
    ONX_TRY(onxi_apart_make(u, node->input[0], (const int64_t[]){ queries * size, keys * size, keys * size }, apart));
    return with_inputs(u, index, apart, ONXI_APART, &made);
}

/* Adds to each its part of the bias. */
static onx_status add_bias(onxi_unfolder *u, uint32_t index, const onx_tensor *bias, const int64_t size[ONXI_APART],
                           onx_bytes apart[ONXI_APART])
{
    onx_bytes part[ONXI_APART];
    ONX_TRY(onxi_apart_cut(u, bias, size, part));
    for (uint32_t k = 0; k < ONXI_APART; k++)
        ONX_TRY(onxi_apart_binary(u, index, "Add", apart[k], part[k], &apart[k]));
    return ONX_OK;
}

/* The bias is added first if queries, keys and values are products with a known number of columns. */
static onx_status separate_bias(onxi_unfolder *u, const onxi_bound *bound, uint32_t index)
{
    enum { BIAS = 3 };
    const onx_node *node = onxi_apart_at(u, index);
    const onx_tensor *bias = onxi_apart_tensor(u, node, BIAS);
    int64_t size[ONXI_APART], all = 0;
    onx_bytes apart[ONXI_APART];
    onx_node *made;
    (void)bound;
    for (uint32_t k = 0; k < ONXI_APART && bias; k++) {
        size[k] = is_given(node, k) ? onxi_apart_count(u, node->input[k]) : 0;
        if (!size[k] || __builtin_add_overflow(all, size[k], &all))
            return ONX_OK;
        apart[k] = node->input[k];
    }
    if (!bias || bias->dims_count != 1 || bias->dims[0] != all)
        return ONX_OK;
    ONX_TRY(add_bias(u, index, bias, size, apart));
    ONX_TRY(with_inputs(u, index, apart, BIAS + 1, &made));
    made->input[BIAS] = (onx_bytes){ 0 };
    return ONX_OK;
}

/* The numbers of columns of queries, keys and values; false if they are not known. */
static bool sizes_of(const onxi_bound *bound, const onx_node *node, const onx_tensor *w, int64_t size[ONXI_APART])
{
    uint32_t count = 0;
    const int64_t *sizes = onxi_bind_ints(bound, node, "qkv_hidden_sizes", &count);
    int64_t all = 0;
    if (!w || w->dims_count != 2 || (count && count != ONXI_APART))
        return false;
    for (uint32_t k = 0; k < ONXI_APART; k++) {
        size[k] = count ? sizes[k] : w->dims[1] / ONXI_APART;
        if (size[k] < 1 || __builtin_add_overflow(all, size[k], &all))
            return false;
    }
    return all == w->dims[1];
}

/* Replaces the projection by three products and MultiHeadAttention, which takes a mask per key. */
static onx_status separate_projection(onxi_unfolder *u, const onxi_bound *bound, uint32_t index)
{
    enum { WEIGHTS = 1, BIAS, MASK, PAST, SCORES, LENGTH, PADDING = 4, INPUTS = 6 };
    static const char *const dropped[] = { "do_rotary", "past_present_share_buffer", "qkv_hidden_sizes",
                                           "rotary_embedding_dim" };
    const onx_node *node = onxi_apart_at(u, index);
    const onx_tensor *w = onxi_apart_tensor(u, node, WEIGHTS), *bias = onxi_apart_tensor(u, node, BIAS);
    int64_t size[ONXI_APART];
    onx_bytes part[ONXI_APART], apart[ONXI_APART];
    onx_node *made;
    if (!is_given(node, 0) || !sizes_of(bound, node, w, size) || is_given(node, PAST) || is_given(node, LENGTH) ||
        node->output_count != 1 || onxi_bind_int(bound, node, "do_rotary") ||
        (is_given(node, BIAS) && (!bias || bias->dims_count != 1 || bias->dims[0] != w->dims[1])) ||
        (is_given(node, MASK) && onxi_apart_rank(u, node->input[MASK]) != 2))
        return ONX_OK;
    ONX_TRY(onxi_apart_cut(u, w, size, part));
    for (uint32_t k = 0; k < ONXI_APART; k++)
        ONX_TRY(onxi_apart_binary(u, index, "MatMul", node->input[0], part[k], &apart[k]));
    if (bias)
        ONX_TRY(add_bias(u, index, bias, size, apart));
    ONX_TRY(with_inputs(u, index, apart, INPUTS, &made));
    made->input[BIAS + 1] = (onx_bytes){ 0 };
    made->input[PADDING] = is_given(node, MASK) ? node->input[MASK] : (onx_bytes){ 0 };
    made->input[SCORES] = is_given(node, SCORES) ? node->input[SCORES] : (onx_bytes){ 0 };
    made->input_count = INPUTS;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        onxi_apart_drop(made, dropped[i]);
    return onxi_apart_rename(u, made, "MultiHeadAttention");
}

const onxi_split_row onxi_splits_microsoft_attention[] = {
    { .op = ONXI_ID_microsoft_RotaryEmbedding, .find = rotary },
    { .op = ONXI_ID_microsoft_GroupQueryAttention,
      .find = group_attention,
      .operations = work_of_heads,
      .separate = separate_groups },
    { .op = ONXI_ID_microsoft_SparseAttention,
      .find = sparse_attention,
      .operations = work_of_heads,
      .separate = separate_groups },
    { .op = ONXI_ID_microsoft_MultiHeadAttention,
      .find = multi_attention,
      .operations = work_of_heads,
      .separate = separate_bias },
    { .op = ONXI_ID_microsoft_Attention,
      .find = attention,
      .operations = work_of_projection,
      .separate = separate_projection },
    { .op = ONXI_ID_microsoft_QAttention, .find = quantized_attention, .operations = work_of_projection },
    { .op = ONXI_ID_NONE },
};
