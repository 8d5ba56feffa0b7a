/* attention.c - how attention of com.microsoft may be split: by the batch, and by heads where those are separate. In
 * operands that hold queries, keys and values one after the other they are not: such a node has no parts of heads. */
#include "shard/shard_rules.h"

static const char *const head_counts[] = { "num_heads", "kv_num_heads", NULL };

/* By the keys that come out, or go in: [batch, heads, keys, size] or [batch, keys, heads * size]. */
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

/* Positions come first, and nothing need say how many heads there are. */
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

/* Layouts of blocks repeat over the heads: each part begins with the first one. */
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

/* A bias is that of queries, keys and values one after the other. */
static void multi_attention(onxi_splitter *m)
{
    enum { BIAS = 3, PADDING, SCORES, INDIRECTION = 9 };
    static const uint32_t headed[] = { 0, 1, 2, 6, 7 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *padding = onxi_split_input(m, PADDING);
    const int64_t count = onxi_attrs_int(m->s->attrs, "num_heads");
    if (count < 1 || onxi_split_input(m, INDIRECTION) || q->rank < 3 ||
        (padding && padding->rank == 1 && padding->dims[0] != q->dims[0])) /* sums over the batch */
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, q->dims[0], onxi_split_input(m, BIAS) ? 1 : count);
    onxi_split_heads_map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    onxi_split_heads_map_outputs(m, d);
    onxi_split_heads_map_batch(m, PADDING, q->dims[0], d.batch);
    onxi_split_heads_map_mask(m, SCORES, q->dims[0], count, d);
    onxi_split_heads_count(m, d, head_counts);
}

/* The weights make queries, keys and values one after the other, and the past is [2, batch, heads, keys, size]. */
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
    enum { MASK = 5, PAST = 8, SCORES = 9 /* there are none */ };
    by_batch(m, MASK, PAST, SCORES);
}

/* The product with the weights, and then the attention. */
static double work_of_projection(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const onxi_shard_value *x = onxi_split_operand(plan, n, 0), *w = onxi_split_operand(plan, n, 1);
    const double out = onxi_split_count(onxi_split_operand(plan, n, n->node->input_count));
    if (!x || !w || x->rank != 3 || !x->known || !w->known)
        return out;
    return 2 * (double)x->dims[0] * (double)x->dims[1] * onxi_split_count(w) + 4 * out * (double)x->dims[1];
}

const onxi_split_row onxi_splits_microsoft_attention[] = {
    { .op = ONXI_ID_microsoft_RotaryEmbedding, .find = rotary },
    { .op = ONXI_ID_microsoft_GroupQueryAttention, .find = group_attention, .operations = work_of_heads },
    { .op = ONXI_ID_microsoft_SparseAttention, .find = sparse_attention, .operations = work_of_heads },
    { .op = ONXI_ID_microsoft_MultiHeadAttention, .find = multi_attention, .operations = work_of_heads },
    { .op = ONXI_ID_microsoft_Attention, .find = attention, .operations = work_of_projection },
    { .op = ONXI_ID_microsoft_QAttention, .find = quantized_attention, .operations = work_of_projection },
    { .op = ONXI_ID_NONE },
};
