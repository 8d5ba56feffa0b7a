/* transform_trainable_quantized.c - quantisation-aware training: integer weights become floats that are rounded where
 * they are read, and a training step rounds with straight-through gradients. */
#include "transform/transform_trainable.h"

static const struct range {
    int dtype;
    double low, high;
} ranges[] = { { ONX_INT8, -128, 127 },  { ONX_UINT8, 0, 255 }, { ONX_INT16, -32768, 32767 },
               { ONX_UINT16, 0, 65535 }, { ONX_INT4, -8, 7 },   { ONX_UINT4, 0, 15 } };

static const struct range *range_of(int dtype)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].dtype == dtype)
            return &ranges[i];
    return NULL;
}

static bool same_input(const onx_node *a, const onx_node *b, uint32_t i)
{
    const onx_str none = { 0 };
    return onx_str_equal(a->input_count > i ? onx_view(a->input[i]) : none,
                         b->input_count > i ? onx_view(b->input[i]) : none);
}

static int64_t axis_of(onxi_trainable *t, const onx_node *node, int64_t rank)
{
    const int64_t axis = onxi_bind_int(onxi_trainable_bound(t, node), node, "axis");
    return axis < 0 ? axis + rank : axis;
}

/* ---- rounding with straight-through gradients ---- */

typedef struct rounding {
    const struct range *range;
    int dtype; /* of the rounded values */
    int64_t axis, rank;
    bool by_axis, zero; /* one scale per index; a zero point is given */
} rounding;

/* A QuantizeLinear whose result is only dequantized, with the same scale. */
static bool read_rounding(onxi_trainable *t, const onx_node *node, rounding *r)
{
    const onx_type *x, *scale;
    uint32_t count;
    if (onxi_trainable_op(t, node) != ONXI_ID_QuantizeLinear || node->input_count < 2 || node->output_count != 1)
        return false;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, onx_view(node->output[0])), &count);
    for (uint32_t i = 0; i < count; i++) {
        const onx_node *reader = use[i].input == 0 ? t->graph->node[use[i].node] : NULL;
        if (!reader || onxi_trainable_op(t, reader) != ONXI_ID_DequantizeLinear || !same_input(node, reader, 1) ||
            !same_input(node, reader, 2))
            return false;
    }
    x = onxi_values_type(&t->values, &t->scope, onx_view(node->input[0]));
    scale = onxi_values_type(&t->values, &t->scope, onx_view(node->input[1]));
    *r = (rounding){ .dtype = onxi_type_dtype(x), .rank = onxi_type_rank(x) };
    r->zero = node->input_count > 2 && onx_view(node->input[2]).len;
    const onx_type *zero = r->zero ? onxi_values_type(&t->values, &t->scope, onx_view(node->input[2])) : NULL;
    r->range = range_of(r->zero ? onxi_type_dtype(zero) : ONX_UINT8);
    r->by_axis = onxi_type_rank(scale) == 1 && onxi_type_dim(scale, 0) != 1;
    r->axis = axis_of(t, node, r->rank);
    return count && r->range && (r->dtype == ONX_FLOAT || r->dtype == ONX_DOUBLE) && onxi_type_rank(scale) >= 0 &&
           onxi_type_rank(scale) <= 1 &&
           (!r->by_axis || (r->rank <= ONX_RANK_MAX && r->axis >= 0 && r->axis < r->rank));
}

bool onxi_trainable_rounds(onxi_trainable *t, const onx_node *node)
{
    rounding r;
    return read_rounding(t, node, &r);
}

bool onxi_trainable_restores(onxi_trainable *t, const onx_node *node)
{
    if (onxi_trainable_op(t, node) != ONXI_ID_DequantizeLinear || !node->input_count)
        return false;
    const onx_def def = onx_index_def(t->index, onx_index_find(t->index, onx_view(node->input[0])));
    return def.kind == ONX_DEF_NODE && onxi_trainable_rounds(t, t->graph->node[def.index]);
}

/* Adding and subtracting a large number rounds to nearest even, and has the derivative 1; Clip passes gradients within
 * the range. So the training step needs only standard operators. */
onx_status onxi_trainable_round(onxi_trainable *t, const onx_node *node, const onx_node *copy)
{
    static const char *const texts[2][2] = {
        { "k = CastLike (k0, x)  u = Div (x, s)  a = Add (u, k)  r = Sub (a, k)  l = CastLike (l0, x)  h = CastLike (h0, x)"
          "  c = Clip (r, l, h)  y = Mul (c, s)",
          "k = CastLike (k0, x)  u = Div (x, s)  a = Add (u, k)  r = Sub (a, k)  l = CastLike (l0, x)  h = CastLike (h0, x)"
          "  z = CastLike (zs, x)  m = Add (r, z)  c = Clip (m, l, h)  d = Sub (c, z)  y = Mul (d, s)" },
        { "shape = Constant <value_ints: ints = @shape> ()  s1 = Reshape (s, shape)  k = CastLike (k0, x)  u = Div (x, s1)"
          "  a = Add (u, k)  r = Sub (a, k)  l = CastLike (l0, x)  h = CastLike (h0, x)  c = Clip (r, l, h)  y = Mul (c, s1)",
          "shape = Constant <value_ints: ints = @shape> ()  s1 = Reshape (s, shape)  z1 = Reshape (zs, shape)  k = CastLike (k0, x)"
          "  u = Div (x, s1)  a = Add (u, k)  r = Sub (a, k)  l = CastLike (l0, x)  h = CastLike (h0, x)  z = CastLike (z1, x)"
          "  m = Add (r, z)  c = Clip (m, l, h)  d = Sub (c, z)  y = Mul (d, s1)" }
    };
    const double float_round = 12582912.0, double_round = 6755399441055744.0; /* 1.5 * 2^23, 1.5 * 2^52 */
    rounding r;
    int64_t shape[ONX_RANK_MAX];
    if (!read_rounding(t, node, &r))
        return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "what is rounded has changed");
    for (int64_t i = 0; r.by_axis && i < r.rank; i++)
        shape[i] = i == r.axis ? -1 : 1;
    if (r.by_axis)
        ONX_TRY(onxi_trainable_ints(t, "shape", shape, (uint32_t)r.rank));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("lowest"), r.range->low));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("highest"), r.range->high));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("rounder"), r.dtype == ONX_FLOAT ? float_round : double_round));
    const onx_str text = onxi_arena_printf(
        t->scratch,
        "k0 = Constant <value_float: float = @rounder> ()  l0 = Constant <value_float: float = @lowest> ()"
        "  h0 = Constant <value_float: float = @highest> ()  %s",
        texts[r.by_axis][r.zero]);
    const onxi_text_nodes nodes = { .head = r.zero ? "(x, s, zs) => (y)" : "(x, s) => (y)",
                                    .text = text.ptr,
                                    .in = copy->input,
                                    .out = copy->output,
                                    .in_count = r.zero ? 3 : 2,
                                    .out_count = 1,
                                    .base = onx_view(copy->output[0]) };
    return text.ptr ? onxi_trainable_put(t, t->algorithm, &nodes) : ONX_E_MEMORY;
}

onx_status onxi_trainable_restore(onxi_trainable *t, const onx_node *copy)
{
    const onxi_text_nodes nodes = { .head = "(x) => (y)",
                                    .text = "y = Identity (x)",
                                    .in = copy->input,
                                    .out = copy->output,
                                    .in_count = 1,
                                    .out_count = 1 };
    return onxi_trainable_put(t, t->algorithm, &nodes);
}

/* ---- integer weights ---- */

typedef struct unpacker {
    onxi_trainable *t;
    onxi_dict initializers; /* indexes */
    onx_graph first;        /* nodes that round */
    bool *gone;             /* per initializer: converted to float */
    bool *replaced;         /* per node: replaced by a node in `first` */
} unpacker;

static onx_tensor *initializer(const unpacker *u, const onx_node *node, uint32_t i)
{
    const onxi_dict_entry *e = i < node->input_count
                                   ? onxi_dict_find((onxi_dict *)(uintptr_t)&u->initializers, onx_view(node->input[i]))
                                   : NULL;
    return e && !u->gone[e->value] ? u->t->graph->initializer[e->value] : NULL;
}

/* The float values of quantized integers; *out is NULL if they cannot be determined. */
static onx_status restore_numbers(const unpacker *u, const onx_node *node, const onx_tensor *q, onx_tensor **out)
{
    onxi_trainable *t = u->t;
    const onx_tensor *scale = initializer(u, node, 1), *zero = initializer(u, node, 2);
    uint64_t count, scales, step = 1;
    *out = NULL;
    const int64_t axis = axis_of(t, node, q->dims_count);
    if (!scale || (scale->data_type != ONX_FLOAT && scale->data_type != ONX_DOUBLE) || scale->dims_count > 1 ||
        (node->input_count > 2 && onx_view(node->input[2]).len && !zero) || !onx_tensor_count(q, &count) ||
        !onx_tensor_count(scale, &scales) || q->dims_count > ONX_RANK_MAX || count > SIZE_MAX / sizeof(double) - 1)
        return ONX_OK;
    if (scales != 1 && (axis < 0 || axis >= (int64_t)q->dims_count || (uint64_t)q->dims[axis] != scales))
        return ONX_OK;
    for (int64_t i = axis + 1; scales != 1 && i < (int64_t)q->dims_count; i++)
        step *= (uint64_t)q->dims[i];
    double *values = ONXI_ARRAY(t->scratch, double, (size_t)count + 1),
           *s = ONXI_ARRAY(t->scratch, double, (size_t)scales + 1);
    double *z = ONXI_ARRAY(t->scratch, double, (size_t)scales + 1);
    uint64_t zeros = 0;
    if (!values || !s || !z)
        return ONX_E_MEMORY;
    ONX_TRY(onx_tensor_get_f64(t->doc, q, 0, count, values));
    ONX_TRY(onx_tensor_get_f64(t->doc, scale, 0, scales, s));
    if (zero && (!onx_tensor_count(zero, &zeros) || zeros != scales))
        return ONX_OK;
    if (zero)
        ONX_TRY(onx_tensor_get_f64(t->doc, zero, 0, scales, z));
    float *numbers = ONXI_ARRAY(t->arena, float, (size_t)count + 1);
    if (!numbers)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t k = scales == 1 ? 0 : i / step % scales;
        values[i] = (values[i] - z[k]) * s[k];
        numbers[i] = (float)values[i];
    }
    const void *data = scale->data_type == ONX_DOUBLE ? (const void *)values : numbers;
    *out = onx_tensor_new(t->arena, (onx_dtype)scale->data_type, q->dims, q->dims_count, data, "");
    return *out ? ONX_OK : ONX_E_MEMORY;
}

/* Integers that are only dequantized become floats, which QuantizeLinear converts to the same integers. Int32 biases
 * become floats without rounding, which training does not need to simulate. */
static onx_status unpack(unpacker *u, uint32_t index)
{
    onxi_trainable *t = u->t;
    onx_node *node = t->graph->node[index];
    onx_tensor *q = onxi_trainable_op(t, node) == ONXI_ID_DequantizeLinear ? initializer(u, node, 0) : NULL, *numbers;
    const bool bias = q && q->data_type == ONX_INT32;
    const onx_tensor *zero = q ? initializer(u, node, 2) : NULL;
    if (!q || (!bias && !range_of(q->data_type)) || (!bias && !zero && q->data_type != ONX_UINT8))
        return ONX_OK;
    ONX_TRY(restore_numbers(u, node, q, &numbers));
    if (!numbers)
        return ONX_OK;
    ONX_TRY(onxi_names_make(&t->names, onx_view(q->name), onx_str_of("numbers"), &numbers->name));
    numbers->has |= onx_tensor_has_name;
    if (!onx_graph_add_initializer(t->arena, t->graph, numbers))
        return ONX_E_MEMORY;
    if (bias) {
        const onxi_text_nodes nodes = { .head = "(x) => (y)",
                                        .text = "y = Identity (x)",
                                        .in = &numbers->name,
                                        .out = node->output,
                                        .in_count = 1,
                                        .out_count = 1 };
        u->replaced[index] = true;
        return onxi_trainable_put(t, &u->first, &nodes);
    }
    u->gone[onxi_dict_find(&u->initializers, onx_view(node->input[0]))->value] = true;
    void *copy;
    ONX_TRY(onx_message_copy(t->arena, ONX_KIND_NODE, node, &copy));
    onx_node *round = copy;
    round->input[0] = numbers->name;
    ONX_TRY(onx_arena_keep(t->arena, onx_str_of("QuantizeLinear"), &round->op_type));
    ONX_TRY(onxi_names_make(&t->names, onx_view(q->name), onx_str_of("QuantizeLinear"), &round->name));
    round->has |= onx_node_has_name;
    round->output[0] = node->input[0];
    round->output_count = 1;
    return onxi_trainable_add_node(t, &u->first, round);
}

onx_status onxi_trainable_unpack(onxi_trainable *t)
{
    onx_graph *g = t->graph;
    unpacker u = { .t = t, .initializers = onxi_dict_in_arena(t->scratch) };
    const uint32_t before = g->initializer_count;
    uint32_t kept = 0;
    u.gone = ONXI_ARRAY(t->scratch, bool, (size_t)before + 1);
    u.replaced = ONXI_ARRAY(t->scratch, bool, (size_t)g->node_count + 1);
    if (!u.gone || !u.replaced)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < before; i++)
        if (!onxi_dict_at(&u.initializers, onx_view(g->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++)
        ONX_TRY(unpack(&u, i));
    for (uint32_t i = 0; i < g->node_count; i++)
        if (!u.replaced[i])
            ONX_TRY(onxi_trainable_add_node(t, &u.first, g->node[i]));
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (i >= before || !u.gone[i])
            g->initializer[kept++] = g->initializer[i];
    g->initializer_count = kept;
    g->node = u.first.node;
    g->node_count = u.first.node_count;
    return ONX_OK;
}
