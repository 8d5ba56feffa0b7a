/* shard_rules_layers.c - how layers that are a single node may be split: attention by heads, recurrent layers by
 * direction, and all of them by batch. */
#include "shard/shard_rules.h"

onxi_split_heads onxi_split_heads_new(const onxi_splitter *m, int64_t batch, int64_t parts)
{
    const int8_t first = onxi_split_dim(m, batch, 0, ONXI_SHARD_PARALLEL);
    return (onxi_split_heads){ first, onxi_split_dim(m, parts, parts, ONXI_SHARD_PARALLEL) };
}

void onxi_split_heads_count(const onxi_splitter *m, onxi_split_heads d, const char *const *names)
{
    if (d.heads >= 0) {
        m->r->fix = ONXI_SHARD_COUNTS;
        m->r->fix_dim = (uint32_t)d.heads;
        m->r->names = names;
    }
}

void onxi_split_heads_map(int8_t *row, const onxi_shard_value *x, onxi_split_heads d)
{
    if (x->rank < 3 || x->rank > 5)
        return;
    row[0] = d.batch;
    row[x->rank == 4 ? 1 : 2] = d.heads;
}

void onxi_split_heads_map_inputs(const onxi_splitter *m, const uint32_t *which, uint32_t count, onxi_split_heads d)
{
    for (uint32_t i = 0; i < count; i++)
        if (onxi_split_input(m, which[i]))
            onxi_split_heads_map(m->r->map[which[i]], onxi_split_input(m, which[i]), d);
}

void onxi_split_heads_map_outputs(const onxi_splitter *m, onxi_split_heads d)
{
    for (uint32_t i = 0; i < m->s->node->output_count; i++)
        if (onxi_split_output(m, i))
            onxi_split_heads_map(onxi_split_output_row(m, i), onxi_split_output(m, i), d);
}

void onxi_split_heads_map_mask(const onxi_splitter *m, uint32_t i, int64_t batch, int64_t heads, onxi_split_heads d)
{
    const onxi_shard_value *mask = onxi_split_input(m, i);
    if (mask && mask->rank == 4 && mask->dims[0] == batch)
        m->r->map[i][0] = d.batch;
    if (mask && mask->rank >= 3 && mask->dims[mask->rank - 3] == heads)
        m->r->map[i][mask->rank - 3] = d.heads;
}

void onxi_split_heads_map_batch(const onxi_splitter *m, uint32_t i, int64_t batch, int8_t dim)
{
    const onxi_shard_value *x = onxi_split_input(m, i);
    if (x && x->rank && x->dims[0] == batch)
        m->r->map[i][0] = dim;
}

void onxi_split_attention(onxi_splitter *m)
{
    enum { MASK = 3, LENGTHS = 6 };
    static const uint32_t headed[] = { 0, 1, 2, 4, 5 };
    static const char *const counts[] = { "q_num_heads", "kv_num_heads", NULL };
    const onxi_shard_value *q = onxi_split_input(m, 0), *k = onxi_split_input(m, 1), *v = onxi_split_input(m, 2);
    if (!k || !v || q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4)
        return;
    const int64_t queries = q->rank == 4 ? q->dims[1] : onxi_attrs_int(m->s->attrs, "q_num_heads");
    const int64_t keys = q->rank == 4 ? k->dims[1] : onxi_attrs_int(m->s->attrs, "kv_num_heads");
    if (queries < 1 || keys < 1)
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, q->dims[0], onxi_split_common(queries, keys));
    onxi_split_heads_map_inputs(m, headed, sizeof headed / sizeof *headed, d);
    onxi_split_heads_map_outputs(m, d);
    onxi_split_heads_map_mask(m, MASK, q->dims[0], queries, d);
    onxi_split_heads_map_batch(m, LENGTHS, q->dims[0], d.batch); /* how many keys are real */
    if (q->rank == 3)
        onxi_split_heads_count(m, d, counts);
}

/* Positions rotate all heads in the same way; angles may differ within the batch. */
void onxi_split_rotary(onxi_splitter *m)
{
    enum { POSITIONS = 3 };
    static const char *const counts[] = { "num_heads", NULL };
    const onxi_shard_value *x = onxi_split_input(m, 0);
    if (x->rank < 3 || x->rank > 4)
        return;
    const int64_t count = x->rank == 4 ? x->dims[1] : onxi_attrs_int(m->s->attrs, "num_heads");
    if (count < 1 || x->dims[x->rank == 4 ? 1 : 2] % count)
        return;
    const onxi_split_heads d = onxi_split_heads_new(m, x->dims[0], count);
    onxi_split_heads_map(m->r->map[0], x, d);
    onxi_split_heads_map(onxi_split_output_row(m, 0), x, d);
    for (uint32_t i = 1; i < m->s->node->input_count; i++)
        if (onxi_split_input(m, i) && onxi_split_input(m, i)->rank == (i == POSITIONS ? 2 : 3))
            onxi_split_heads_map_batch(m, i, x->dims[0], d.batch);
    if (x->rank == 3)
        onxi_split_heads_count(m, d, counts);
}

/* ---- recurrent layers ---- */

/* The two directions of a layer may be on different devices: one is then forward, the other backward. */
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
