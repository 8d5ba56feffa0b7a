/* products.c - how products and the operators fused with them may be split: products with low-bit weights by columns
 * and by blocks of rows, others like MatMul, normalizations by all axes except the last. */
#include "shard/shard_rules.h"

/* ---- low-bit weights ---- */

/* Scales and zero points have a last axis of blocks, or are flat: in that case rows are not split. */
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
            *rows = 1; /* a byte contains zero points of two blocks */
    }
    return true;
}

/* Weights are stored by columns, each divided into blocks with a scale. */
static void few_bits(onxi_splitter *m)
{
    enum { BIAS = 5, GROUPS = 4 };
    static const char *const sizes[] = { "K", "N", NULL };
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
    m->r->names = sizes;
}

/* Flat scales and zero points are reshaped to an axis of columns and an axis of blocks, which the operator accepts as
 * well: blocks of rows can only be split along an axis of their own. */
static onx_status few_bits_unfold(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node)
{
    enum { LARGEST = 1 << 30 };
    const int64_t columns = onxi_bind_int(bound, node, "N"), rows = onxi_bind_int(bound, node, "K"),
                  size = onxi_bind_int(bound, node, "block_size"), bits = onxi_bind_int(bound, node, "bits");
    if (columns < 1 || rows < 1 || size < 1 || rows > LARGEST || size > LARGEST || bits < 1 || bits > 8)
        return ONX_OK;
    const int64_t blocks = (rows + size - 1) / size;
    for (uint32_t i = 2; i < 4; i++) {
        onx_tensor *t = onxi_unfold_own(u, node, i);
        const bool packed = t && i == 3 && t->data_type == ONX_UINT8;
        if (t)
            ONX_TRY(onxi_unfold_axis(u, t, columns, packed ? (blocks * bits + 7) / 8 : blocks));
    }
    return ONX_OK;
}

/* The first axis of weights, scales, zero points and bias are the columns. */
static bool few_bits_columns(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node,
                             onxi_apart_columns *out)
{
    enum { BIAS = 5, GROUPS = 4 };
    (void)u;
    out->count = onxi_bind_int(bound, node, "N");
    out->attribute = "N";
    for (uint32_t i = 1; i <= BIAS; i++)
        out->axis[i] = (int8_t)(i == GROUPS ? -1 : 0);
    return !onxi_bind_int(bound, node, "weight_prepacked");
}

/* Each output element reads one row of the left operand. */
static double work_of_rows(const onxi_shard_plan *plan, const onxi_shard_node *n)
{
    const onxi_shard_value *a = onxi_split_operand(plan, n, 0);
    const double made = onxi_split_count(onxi_split_operand(plan, n, n->node->input_count));
    return a && a->rank && a->known ? 2 * made * (double)a->dims[a->rank - 1] : made;
}

/* ---- products like MatMul ---- */

/* A batch axis that is exchanged with rows is not split. */
static void fused_product(onxi_splitter *m)
{
    if (!onxi_attrs_int(m->s->attrs, "transBatchA") && !onxi_attrs_int(m->s->attrs, "transBatchB"))
        onxi_split_product(m, onxi_attrs_int(m->s->attrs, "transA") != 0, onxi_attrs_int(m->s->attrs, "transB") != 0);
}

static void turned_product(onxi_splitter *m)
{
    onxi_split_product(m, onxi_attrs_int(m->s->attrs, "transA") != 0, onxi_attrs_int(m->s->attrs, "transB") != 0);
}

/* ---- operators around products ---- */

/* An addition, followed by a normalization along the last axis. */
static void skip_norm(onxi_splitter *m)
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

const onxi_split_row onxi_splits_microsoft_products[] = {
    { .op = ONXI_ID_microsoft_MatMulNBits,
      .find = few_bits,
      .operations = work_of_rows,
      .product = true,
      .unfold = few_bits_unfold,
      .columns = few_bits_columns },
    { .op = ONXI_ID_microsoft_FusedMatMul,
      .find = fused_product,
      .operations = onxi_split_work_of_dims,
      .product = true },
    { .op = ONXI_ID_microsoft_TransposeMatMul,
      .find = turned_product,
      .operations = onxi_split_work_of_dims,
      .product = true },
    { .op = ONXI_ID_microsoft_SkipLayerNormalization, .find = skip_norm },
    { .op = ONXI_ID_microsoft_SkipSimplifiedLayerNormalization, .find = skip_norm },
    { .op = ONXI_ID_microsoft_SimplifiedLayerNormalization, .find = onxi_split_before_axis },
    { .op = ONXI_ID_microsoft_BiasGelu, .find = onxi_split_broadcast },
    { .op = ONXI_ID_microsoft_FastGelu, .find = onxi_split_broadcast },
    { .op = ONXI_ID_microsoft_QuickGelu, .find = onxi_split_broadcast },
    { .op = ONXI_ID_NONE },
};
