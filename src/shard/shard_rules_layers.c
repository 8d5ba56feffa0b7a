/* shard_rules_layers.c - how layers that are one node may be split: attention by heads, recurrent layers by direction,
 * products with weights of few bits by columns and by blocks of rows, and all of them by the batch. */
#include "shard/shard_rules.h"

/* Batch, and heads in parts of which each is whole. */
typedef struct attention_dims {
    int8_t batch, heads;
} attention_dims;

static attention_dims new_dims(const onxi_splitter *m, int64_t batch, int64_t unit)
{
    const int8_t first = onxi_split_dim(m, batch, 0, ONXI_SHARD_PARALLEL);
    return (attention_dims){ first, onxi_split_dim(m, unit, unit, ONXI_SHARD_PARALLEL) };
}

/* The attributes that count heads change where those are not an axis. */
static void count_heads(const onxi_splitter *m, int8_t heads)
{
    if (heads >= 0) {
        m->r->fix = ONXI_SHARD_HEADS;
        m->r->fix_dim = (uint32_t)heads;
    }
}

/* The axis of heads by the rank of an operand: [batch, positions, heads * size], [batch, heads, positions, size], or
 * packed as [batch, positions, heads, 2 or 3, size]. */
static void map_heads(int8_t *row, const onxi_shard_value *x, attention_dims d)
{
    if (x->rank < 3 || x->rank > 5)
        return;
    row[0] = d.batch;
    row[x->rank == 4 ? 1 : 2] = d.heads;
}

/* It is stretched to batch, heads, queries and keys. */
static void map_mask(int8_t *row, const onxi_shard_value *mask, int64_t batch, int64_t queries, attention_dims d)
{
    if (mask->rank == 4 && mask->dims[0] == batch)
        row[0] = d.batch;
    if (mask->rank >= 3 && mask->dims[mask->rank - 3] == queries)
        row[mask->rank - 3] = d.heads;
}

/* Something for each of the batch, if it is that. */
static void map_batch(const onxi_splitter *m, uint32_t i, int64_t batch, int8_t dim)
{
    const onxi_shard_value *x = onxi_split_input(m, i);
    if (x && x->rank && x->dims[0] == batch)
        m->r->map[i][0] = dim;
}

/* Operands by what they are: heads are an axis, or the part of one. */
static void map_outputs(const onxi_splitter *m, attention_dims d)
{
    for (uint32_t i = 0; i < m->s->node->output_count; i++)
        if (onxi_split_output(m, i))
            map_heads(onxi_split_output_row(m, i), onxi_split_output(m, i), d);
}

static void map_inputs(const onxi_splitter *m, const uint32_t *which, uint32_t count, attention_dims d)
{
    for (uint32_t i = 0; i < count; i++)
        if (onxi_split_input(m, which[i]))
            map_heads(m->r->map[which[i]], onxi_split_input(m, which[i]), d);
}

void onxi_split_attention(onxi_splitter *m)
{
    static const uint32_t headed[] = { 0, 1, 2, 4, 5 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *k = onxi_split_input(m, 1), *v = onxi_split_input(m, 2);
    const onxi_shard_value *mask = onxi_split_input(m, 3);
    if (!k || !v || q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4)
        return;
    const int64_t queries = q->rank == 4 ? q->dims[1] : onxi_attrs_int(m->s->attrs, "q_num_heads");
    const int64_t keys = q->rank == 4 ? k->dims[1] : onxi_attrs_int(m->s->attrs, "kv_num_heads");
    if (queries < 1 || keys < 1)
        return;
    const attention_dims d = new_dims(m, q->dims[0], onxi_split_common(queries, keys));
    map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    map_outputs(m, d);
    if (mask)
        map_mask(m->r->map[3], mask, q->dims[0], queries, d);
    map_batch(m, 6, q->dims[0], d.batch); /* how many keys are real */
    if (q->rank == 3)
        count_heads(m, d.heads);
}

/* Positions turn all heads alike. The operator of the standard has positions last, and angles may be those of each of
 * the batch; that of com.microsoft has them first, and need not say how many heads there are. */
void onxi_split_rotary(onxi_splitter *m)
{
    const bool standard = m->s->bound->op == ONXI_ID_RotaryEmbedding;
    const onxi_shard_value *x = onxi_split_input(m, 0), *angles = onxi_split_input(m, standard ? 1 : 2);
    if (x->rank < 3 || x->rank > 4 || !angles || !angles->rank)
        return;
    const uint32_t axis = x->rank == 4 ? 1 : 2;
    int64_t count = x->rank == 4 ? x->dims[1] : onxi_attrs_int(m->s->attrs, "num_heads"), width = 0;
    if (!standard && x->rank == 3 && !onxi_attrs_int(m->s->attrs, "rotary_embedding_dim") &&
        !__builtin_mul_overflow(angles->dims[angles->rank - 1], 2, &width) && width > 0)
        count = x->dims[2] / width;
    if (count < 1 || x->dims[axis] % count)
        return;
    const attention_dims d = new_dims(m, x->dims[0], count);
    map_heads(m->r->map[0], x, d);
    map_heads(onxi_split_output_row(m, 0), x, d);
    for (uint32_t i = 1; i < m->s->node->input_count; i++) {
        const onxi_shard_value *v = onxi_split_input(m, i);
        const uint32_t rank = i == (standard ? 3u : 1u) ? 2 : standard ? 3 : 0;
        if (v && v->rank == rank && v->dims[0] == x->dims[0])
            m->r->map[i][0] = d.batch;
    }
    if (x->rank == 3)
        count_heads(m, d.heads);
}

/* ---- com.microsoft ---- */

/* With a key of its own: in a packed one the parts of the heads do not lie in one piece. */
void onxi_split_group_attention(onxi_splitter *m)
{
    enum { POSITIONS = 9, BIAS, SINK, LENGTHS = 5 };
    static const uint32_t headed[] = { 0, 1, 2, 3, 4 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *bias = onxi_split_input(m, BIAS),
                           *sink = onxi_split_input(m, SINK);
    const int64_t queries = onxi_attrs_int(m->s->attrs, "num_heads"),
                  keys = onxi_attrs_int(m->s->attrs, "kv_num_heads");
    if (!onxi_split_input(m, 1) || !onxi_split_input(m, 2) || q->rank != 3 || queries < 1 || keys < 1)
        return;
    const attention_dims d = new_dims(m, q->dims[0], onxi_split_common(queries, keys));
    map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    map_outputs(m, d);
    map_batch(m, LENGTHS, q->dims[0], d.batch);
    map_batch(m, POSITIONS, q->dims[0], d.batch);
    if (bias)
        map_mask(m->r->map[BIAS], bias, q->dims[0], queries, d);
    if (sink && sink->rank == 1 && sink->dims[0] == queries)
        m->r->map[SINK][0] = d.heads;
    count_heads(m, d.heads);
}

/* A bias is that of queries, keys and values one behind the other: with one there are no parts of heads. */
void onxi_split_multi_attention(onxi_splitter *m)
{
    enum { BIAS = 3, PADDING, SCORES, INDIRECTION = 9 };
    static const uint32_t headed[] = { 0, 1, 2, 6, 7 };
    const onxi_shard_value *q = onxi_split_input(m, 0), *padding = onxi_split_input(m, PADDING),
                           *scores = onxi_split_input(m, SCORES);
    const int64_t count = onxi_attrs_int(m->s->attrs, "num_heads");
    if (count < 1 || onxi_split_input(m, INDIRECTION) || q->rank < 3)
        return;
    const attention_dims d = new_dims(m, q->dims[0], onxi_split_input(m, BIAS) ? 1 : count);
    map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    map_outputs(m, d);
    if (padding && padding->rank == 1 && padding->dims[0] != q->dims[0]) { /* sums over the batch */
        onxi_split_nothing(m);
        return;
    }
    map_batch(m, PADDING, q->dims[0], d.batch);
    if (scores)
        map_mask(m->r->map[SCORES], scores, q->dims[0], count, d);
    count_heads(m, d.heads);
}

/* The last axes of scales and zero points are those of blocks, or all are one axis: rows are whole then. */
static bool map_blocks(onxi_splitter *m, int64_t columns, int64_t blocks, bool *flat, int64_t *rows)
{
    *flat = false;
    *rows = blocks;
    for (uint32_t i = 2; i < 4; i++) {
        const onxi_shard_value *v = onxi_split_input(m, i);
        if (!v)
            continue;
        if (v->rank == 1 && v->dims[0] % columns == 0)
            *flat |= columns != v->dims[0] || blocks != 1;
        else if (v->rank != 2 || v->dims[0] != columns)
            return false;
        *rows = v->rank == 2 ? onxi_split_common(*rows, v->dims[1]) : 1;
        if (i == 3 && v->dtype == ONX_UINT8 && onxi_attrs_int(m->s->attrs, "bits") != 8 &&
            blocks * onxi_attrs_int(m->s->attrs, "bits") % 8)
            *rows = 1; /* a byte has zero points of two parts */
    }
    return true;
}

/* Weights lie column by column, each in blocks with a scale. */
void onxi_split_few_bits(onxi_splitter *m)
{
    enum { BIAS = 5, GROUPS = 4 };
    const onxi_shard_value *a = onxi_split_input(m, 0), *b = onxi_split_input(m, 1), *y = onxi_split_output(m, 0);
    const int64_t columns = onxi_attrs_int(m->s->attrs, "N"), rows = onxi_attrs_int(m->s->attrs, "K"),
                  size = onxi_attrs_int(m->s->attrs, "block_size");
    int64_t parts;
    bool flat;
    if (!b || b->rank < 2 || b->dims[0] != columns || columns < 1 || rows < 1 || size < 1 || !a->rank ||
        y->rank != a->rank || a->dims[a->rank - 1] != rows || onxi_attrs_int(m->s->attrs, "weight_prepacked") ||
        !map_blocks(m, columns, rows / size, &flat, &parts))
        return;
    onxi_split_along(m, a->rank - 1, 0);
    const int8_t wide = onxi_split_dim(m, columns, flat ? columns : 0, ONXI_SHARD_PARALLEL);
    onxi_split_output_row(m, 0)[y->rank - 1] = wide;
    for (uint32_t i = 1; i < m->s->node->input_count; i++)
        if (i != GROUPS)
            m->r->map[i][0] = wide;
    if (!flat && rows % size == 0 && b->rank == 3 && b->dims[1] == rows / size && !onxi_split_input(m, GROUPS) &&
        onxi_split_adds(y->dtype)) {
        const int8_t deep = onxi_split_dim(m, parts, parts, ONXI_SHARD_SUM);
        m->r->map[0][a->rank - 1] = m->r->map[1][1] = m->r->map[2][1] = deep;
        if (onxi_split_input(m, 3))
            m->r->map[3][1] = deep;
        m->r->once = onxi_split_input(m, BIAS) ? BIAS : -1;
    }
    m->r->fix = ONXI_SHARD_SIZES;
}

/* Something is added before it is normalized along the last axis. */
void onxi_split_skip_norm(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *skip = onxi_split_input(m, 1);
    if (!x->rank || !skip)
        return;
    onxi_split_along(m, x->rank - 1, 0);
    for (uint32_t k = 0; k < skip->rank; k++) {
        const uint32_t at = k + x->rank - skip->rank;
        if (skip->rank <= x->rank && skip->dims[k] == x->dims[at])
            m->r->map[1][k] = m->r->map[0][at];
    }
}

/* ---- recurrent layers ---- */

/* Both directions of a layer may be on different devices: the one goes forward, the other one back. */
void onxi_split_recurrent(onxi_splitter *m)
{
    enum { LENGTHS = 4 };
    const bool first =
        onxi_attrs_int(m->s->attrs, "layout") == 1; /* the batch comes before the steps, and the directions */
    const onxi_shard_value *x = onxi_split_input(m, 0), *w = onxi_split_input(m, 1);
    if (x->rank != 3 || !w || w->rank != 3)
        return;
    const bool named = onxi_attrs_get(m->s->attrs, "activations", ONX_ATTR_STRINGS) != NULL;
    const int8_t batch = onxi_split_dim(m, x->dims[first ? 0 : 1], 0, ONXI_SHARD_PARALLEL),
                 directions = onxi_split_dim(m, named ? 1 : w->dims[0], named ? 1 : w->dims[0], ONXI_SHARD_PARALLEL);
    m->r->map[0][first ? 0 : 1] = batch;
    for (uint32_t i = 1; i < m->s->node->input_count; i++) {
        const bool state = i == 5 || i == 6;
        if (i == LENGTHS || (state && first))
            m->r->map[i][0] = batch;
        else
            m->r->map[i][0] = directions;
        if (state)
            m->r->map[i][1] = first ? directions : batch;
    }
    for (uint32_t i = 0; i < m->s->node->output_count; i++) {
        int8_t *row = onxi_split_output_row(m, i);
        if (i) {
            row[0] = first ? batch : directions;
            row[1] = first ? directions : batch;
        } else {
            row[first ? 0 : 2] = batch;
            row[first ? 2 : 1] = directions;
        }
    }
    if (directions >= 0) {
        m->r->fix = ONXI_SHARD_DIRECTION;
        m->r->fix_dim = (uint32_t)directions;
    }
}
