/* gen_draw_net.c - blocks of nodes that networks are made of: products, convolutions, pools, norms, quantized layers.
 */
#include "gen/gen_draw.h"

#include <stdio.h>
#include <string.h>

enum { NET_FLOATS = DRAW_BIT(FLOAT) | DRAW_BIT(DOUBLE) };

static uint32_t net_types(draw *d, const char *op)
{
    return draw_takes(d, op, 0) & (draw_chance(d, 85) ? (uint32_t)NET_FLOATS : DRAW_FLOATS);
}

static draw_value vector(onx_dtype dtype, int64_t size)
{
    return draw_of(dtype, 1, &size);
}

static draw_value channels(draw *d, onx_dtype dtype, int64_t size, draw_fill fill)
{
    draw_value v = vector(dtype, size);
    draw_constant(d, &v, fill);
    return v;
}

static bool binary(draw *d, const char *op, const draw_value *a, const draw_value *b, draw_value *out)
{
    const bool turned = draw_chance(d, 50);
    return draw_broadcast(a, b, out) &&
           draw_node(d, out, 1, "%s (%s, %s)", op, turned ? b->name : a->name, turned ? a->name : b->name);
}

/* What often comes after a product or convolution. */
static bool follow(draw *d, draw_value v)
{
    draw_value out = draw_like(&v), w;
    if (draw_chance(d, 40))
        return draw_node(d, &out, 1, "%s (%s)", DRAW_ONE(d, const char *, "Relu", "Sigmoid", "Tanh", "LeakyRelu"),
                         v.name);
    if (draw_chance(d, 40))
        return draw_smaller(d, &v, &w) && binary(d, "Add", &v, &w, &out);
    return true;
}

/* ---- products ---- */

static bool second_matrix(draw *d, const draw_value *v, draw_value *w)
{
    const int64_t k = v->dims[v->rank - 1];
    for (int tries = 0; tries < 6 && draw_chance(d, 60); tries++)
        if (draw_pick(d, (draw_wish){ .types = 1u << v->dtype, .least = 1 }, w) &&
            w->dims[w->rank == 1 ? 0 : w->rank - 2] == k)
            return true;
    const int64_t dims[] = { k, draw_size(d) };
    *w = draw_of(v->dtype, draw_chance(d, 85) ? 2 : 1, dims);
    if (v->rank > 2 && draw_chance(d, 20)) {
        *w = draw_like(v);
        w->dims[w->rank - 2] = k;
        w->dims[w->rank - 1] = dims[1];
    }
    if (draw_product(w->dims, w->rank) > 4000)
        return false;
    if (draw_chance(d, 20))
        return draw_new_input(d, w, -1, 1);
    draw_constant(d, w, DRAW_WEIGHT);
    return true;
}

static bool matmul(draw *d)
{
    draw_value v, w, out;
    if (!draw_pick(d, (draw_wish){ .types = net_types(d, "MatMul"), .least = 1 }, &v) || !second_matrix(d, &v, &w))
        return false;
    draw_value a = v, b = w;
    const bool row = v.rank == 1, column = w.rank == 1;
    if (row) {
        a.rank = 2;
        a.dims[1] = a.dims[0];
        a.dims[0] = 1;
    }
    if (column) {
        b.rank = 2;
        b.dims[1] = 1;
    }
    draw_value x = draw_of(v.dtype, a.rank - 2, a.dims), y = draw_of(v.dtype, b.rank - 2, b.dims);
    if (!draw_broadcast(&x, &y, &out))
        return false;
    if (!row)
        out.dims[out.rank++] = a.dims[a.rank - 2];
    if (!column)
        out.dims[out.rank++] = b.dims[b.rank - 1];
    if (draw_product(out.dims, out.rank) * (uint64_t)(a.dims[a.rank - 1] + 1) > 2000000 ||
        !draw_node(d, &out, 1, "MatMul (%s, %s)", v.name, w.name))
        return false;
    if (out.rank && draw_chance(d, 40)) {
        draw_value bias = draw_chance(d, 80) ? channels(d, v.dtype, out.dims[out.rank - 1], DRAW_SMALL) : w, sum;
        return draw_broadcast(&out, &bias, &sum) && binary(d, "Add", &out, &bias, &sum) &&
               (draw_chance(d, 50) || follow(d, sum));
    }
    return draw_chance(d, 60) || follow(d, out);
}

static bool gemm(draw *d)
{
    draw_value v, w, c, out;
    if (!draw_pick(d, (draw_wish){ .types = net_types(d, "Gemm"), .least = 2, .most = 2 }, &v))
        return false;
    const bool ta = draw_chance(d, 30), tb = draw_chance(d, 50);
    const int64_t m = v.dims[ta], k = v.dims[!ta], n = draw_size(d);
    const int64_t dims[] = { tb ? n : k, tb ? k : n };
    w = draw_of(v.dtype, 2, dims);
    draw_constant(d, &w, DRAW_WEIGHT);
    const int64_t sizes[] = { m, n }, column[] = { m, 1 }, one[] = { 1 };
    switch (gen_below(&d->random, 5)) {
    case 0:
        c = draw_of(v.dtype, 2, sizes);
        break;
    case 1:
        c = draw_of(v.dtype, 2, column);
        break;
    case 2:
        c = draw_of(v.dtype, 1, one);
        break;
    default:
        c = vector(v.dtype, n);
    }
    out = draw_of(v.dtype, 2, sizes);
    draw_constant(d, &c, DRAW_SMALL);
    const char *alpha = DRAW_ONE(d, const char *, "1.0", "1.0", "0.5", "-2.0");
    const char *beta = DRAW_ONE(d, const char *, "1.0", "1.0", "0.5", "0.0");
    if (d->opset >= 11 && draw_chance(d, 25))
        return draw_node(d, &out, 1, "Gemm <transA = %d, transB = %d, alpha = %s> (%s, %s)", ta, tb, alpha, v.name,
                         w.name);
    return draw_node(d, &out, 1, "Gemm <transA = %d, transB = %d, alpha = %s, beta = %s> (%s, %s, %s)", ta, tb, alpha,
                     beta, v.name, w.name, c.name);
}

static bool einsum(draw *d)
{
    draw_value v, w, out;
    char a[DRAW_RANK + 1] = "", o[3] = "";
    if (!draw_pick(d, (draw_wish){ .types = net_types(d, "Einsum"), .least = 2, .most = 4 }, &v))
        return false;
    for (uint32_t i = 0; i < v.rank; i++)
        a[i] = (char)('a' + i);
    const uint32_t first = gen_below(&d->random, v.rank);
    o[0] = (char)('a' + first);
    out = (draw_value){ .dtype = v.dtype, .rank = 2 };
    out.dims[0] = v.dims[first];
    if (draw_chance(d, 40)) {
        const uint32_t second = (first + 1) % v.rank;
        o[1] = (char)('a' + second);
        out.dims[1] = v.dims[second];
        return draw_node(d, &out, 1, "Einsum <equation = \"%s->%s\"> (%s)", a, o, v.name);
    }
    const int64_t dims[] = { v.dims[v.rank - 1], draw_size(d) };
    w = draw_of(v.dtype, 2, dims);
    out.dims[1] = dims[1];
    o[1] = 'z';
    draw_constant(d, &w, DRAW_WEIGHT);
    return draw_node(d, &out, 1, "Einsum <equation = \"%s,%cz->%s\"> (%s, %s)", a, a[v.rank - 1], o, v.name, w.name);
}

/* ---- windows ---- */

typedef struct window {
    int64_t kernel[3], strides[3], dilations[3], pads[6], out[3];
    uint32_t rank;
    bool same; /* auto_pad */
} window;

static bool draw_window(draw *d, const draw_value *v, bool pool, window *w)
{
    memset(w, 0, sizeof *w);
    w->rank = v->rank - 2;
    w->same = !pool && draw_chance(d, 15);
    for (uint32_t i = 0; i < w->rank; i++) {
        const int64_t size = v->dims[2 + i];
        w->kernel[i] = pool ? draw_between(d, 1, size < 3 ? (int)size : 3) : DRAW_ONE(d, int64_t, 1, 1, 3, 3, 2, 5);
        w->strides[i] = DRAW_ONE(d, int64_t, 1, 1, 1, 2, 3);
        w->dilations[i] = pool || w->same ? 1 : DRAW_ONE(d, int64_t, 1, 1, 1, 2);
        const int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1, most = extent - 1 < 2 ? extent - 1 : 2;
        w->pads[i] = w->same ? 0 : draw_between(d, 0, (int)most);
        w->pads[w->rank + i] = w->same || draw_chance(d, 60) ? w->pads[i] : draw_between(d, 0, (int)most);
        const int64_t padded = size + w->pads[i] + w->pads[w->rank + i];
        if (!w->same && padded < extent)
            return false;
        w->out[i] = w->same ? (size + w->strides[i] - 1) / w->strides[i] : (padded - extent) / w->strides[i] + 1;
    }
    return true;
}

static bool norm_of(draw *d, const draw_value *v)
{
    const int64_t c = v->dims[1];
    const draw_value scale = channels(d, v->dtype, c, DRAW_SMALL), bias = channels(d, v->dtype, c, DRAW_WEIGHT),
                     mean = channels(d, v->dtype, c, DRAW_WEIGHT), var = channels(d, v->dtype, c, DRAW_ABOVE);
    draw_value out = draw_like(v);
    return draw_node(d, &out, 1, "BatchNormalization (%s, %s, %s, %s, %s)", v->name, scale.name, bias.name, mean.name,
                     var.name);
}

static bool batch_norm(draw *d)
{
    draw_value v;
    return draw_pick(d, (draw_wish){ .types = net_types(d, "BatchNormalization"), .least = 2 }, &v) && norm_of(d, &v);
}

static bool conv(draw *d)
{
    draw_value v, w, out;
    window win;
    if (!draw_pick(d, (draw_wish){ .types = net_types(d, "Conv"), .least = 3, .most = 5, .full = true }, &v) ||
        !draw_window(d, &v, false, &win))
        return false;
    const int64_t c = v.dims[1];
    int64_t group = draw_chance(d, 25) ? c : draw_chance(d, 20) && c % 2 == 0 ? 2 : 1;
    const int64_t m = group > 1 ? group * DRAW_ONE(d, int64_t, 1, 1, 2) : DRAW_ONE(d, int64_t, 1, 2, 3, 4, 5, 8, 16);
    w = (draw_value){ .dtype = v.dtype, .rank = v.rank, .dims = { m, c / group } };
    out = (draw_value){ .dtype = v.dtype, .rank = v.rank, .dims = { v.dims[0], m } };
    for (uint32_t i = 0; i < win.rank; i++) {
        w.dims[2 + i] = win.kernel[i];
        out.dims[2 + i] = win.out[i];
    }
    if (draw_product(w.dims, w.rank) > 3000)
        return false;
    draw_constant(d, &w, DRAW_WEIGHT);
    char bias[16] = "";
    if (draw_chance(d, 60))
        (void)snprintf(bias, sizeof bias, ", %s", channels(d, v.dtype, m, DRAW_SMALL).name);
    if (!draw_node(d, &out, 1, "Conv <%s%s, strides = %s, dilations = %s, group = %lld> (%s, %s%s)",
                   win.same ? "auto_pad = " : "pads = ",
                   win.same ? DRAW_ONE(d, const char *, "\"SAME_UPPER\"", "\"SAME_LOWER\"")
                            : draw_listed(win.pads, 2 * win.rank).text,
                   draw_listed(win.strides, win.rank).text, draw_listed(win.dilations, win.rank).text, (long long)group,
                   v.name, w.name, bias))
        return false;
    return draw_chance(d, 20) ? norm_of(d, &out) : draw_chance(d, 50) || follow(d, out);
}

static bool pool(draw *d)
{
    draw_value v, out;
    window win;
    const char *op =
        DRAW_ONE(d, const char *, "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool");
    if (!draw_pick(d, (draw_wish){ .types = net_types(d, op), .least = 3, .most = 5, .full = true }, &v) ||
        !draw_window(d, &v, true, &win))
        return false;
    out = draw_like(&v);
    for (uint32_t i = 0; i < win.rank; i++)
        out.dims[2 + i] = op[0] == 'G' ? 1 : win.out[i];
    if (op[0] == 'G')
        return draw_node(d, &out, 1, "%s (%s)", op, v.name);
    const bool counted = op[0] == 'A' && draw_chance(d, 50);
    return draw_node(d, &out, 1, "%s <kernel_shape = %s, strides = %s, pads = %s%s> (%s)", op,
                     draw_listed(win.kernel, win.rank).text, draw_listed(win.strides, win.rank).text,
                     draw_listed(win.pads, 2 * win.rank).text, counted ? ", count_include_pad = 1" : "", v.name);
}

static bool resize(draw *d)
{
    draw_value v, out, none = { .dtype = ONX_FLOAT, .rank = 1 };
    if (!draw_pick(d,
                   (draw_wish){ .types = draw_takes(d, "Resize", 0) & NET_FLOATS, .least = 4, .most = 4, .full = true },
                   &v))
        return false;
    const char *mode = DRAW_ONE(d, const char *, "nearest", "linear", "cubic");
    const char *where = DRAW_ONE(d, const char *, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel");
    out = draw_like(&v);
    for (uint32_t i = 2; i < 4; i++)
        out.dims[i] = draw_between(d, 1, (int)v.dims[i] * 2);
    if (d->opset < 13)
        draw_number(d, &none, 0);
    const draw_value sizes = draw_ints(d, out.dims, 4);
    return draw_node(d, &out, 1, "Resize <mode = \"%s\", coordinate_transformation_mode = \"%s\"> (%s, %s, %s, %s)",
                     mode, where, v.name, none.name, none.name, sizes.name);
}

/* ---- norms ---- */

static bool norm(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "InstanceNormalization", "LayerNormalization", "RMSNormalization",
                              "GroupNormalization", "LpNormalization", "LRN", "MeanVarianceNormalization");
    draw_value v;
    if (!draw_has(d, op) || !draw_pick(d, (draw_wish){ .types = net_types(d, op), .least = 3, .full = true }, &v))
        return false;
    draw_value out = draw_like(&v);
    const int64_t c = v.dims[1];
    if (op[0] == 'I' || op[0] == 'G') {
        if (op[0] == 'G' && d->opset < 21)
            return false;
        const draw_value scale = channels(d, v.dtype, c, DRAW_SMALL), bias = channels(d, v.dtype, c, DRAW_SMALL);
        return draw_node(d, &out, 1, "%s%s (%s, %s, %s)", op,
                         op[0] == 'I' ? ""
                         : c % 2 == 0 ? " <num_groups = 2>"
                                      : " <num_groups = 1>",
                         v.name, scale.name, bias.name);
    }
    const uint32_t axis = gen_below(&d->random, v.rank);
    if (strcmp(op, "LayerNormalization") == 0 || op[0] == 'R') {
        draw_value scale = draw_of(v.dtype, v.rank - axis, v.dims + axis);
        draw_constant(d, &scale, DRAW_SMALL);
        return draw_node(d, &out, 1, "%s <axis = %d> (%s, %s)", op, (int)axis - (draw_chance(d, 50) ? (int)v.rank : 0),
                         v.name, scale.name);
    }
    if (op[0] == 'M')
        return d->opset >= 9 && draw_node(d, &out, 1, "%s <axes = [%u]> (%s)", op, axis, v.name);
    return strcmp(op, "LRN") == 0
               ? draw_node(d, &out, 1, "LRN <size = %d> (%s)", DRAW_ONE(d, int, 1, 3, 5), v.name)
               : draw_node(d, &out, 1, "%s <axis = %u, p = %d> (%s)", op, axis, draw_between(d, 1, 2), v.name);
}

/* The nodes that exporters write for a layer norm. */
static bool written_norm(draw *d)
{
    draw_value v, mean, off, square, var, sum, root, out, k = { .dtype = ONX_FLOAT };
    if (d->opset < 11 || d->opset >= 18 ||
        !draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT), .least = 2, .full = true }, &v))
        return false;
    const uint32_t axis = draw_chance(d, 70) ? v.rank - 1 : gen_below(&d->random, v.rank);
    mean = draw_like(&v);
    mean.dims[axis] = 1;
    var = mean;
    if (!draw_node(d, &mean, 1, "ReduceMean <axes = [%u]> (%s)", axis, v.name))
        return false;
    off = draw_like(&v);
    square = draw_like(&v);
    if (!draw_node(d, &off, 1, "Sub (%s, %s)", v.name, mean.name))
        return false;
    draw_number(d, &k, 2);
    if (!(draw_chance(d, 60) ? draw_node(d, &square, 1, "Pow (%s, %s)", off.name, k.name)
                             : draw_node(d, &square, 1, "Mul (%s, %s)", off.name, off.name)) ||
        !draw_node(d, &var, 1, "ReduceMean <axes = [%u]> (%s)", axis, square.name))
        return false;
    draw_number(d, &k, 0.01);
    if (!binary(d, "Add", &var, &k, &sum))
        return false;
    root = draw_like(&sum);
    out = draw_like(&v);
    if (!draw_node(d, &root, 1, "Sqrt (%s)", sum.name) || !draw_node(d, &out, 1, "Div (%s, %s)", off.name, root.name))
        return false;
    draw_value w, last;
    return draw_smaller(d, &out, &w) && binary(d, "Mul", &out, &w, &last);
}

/* ---- attention, as exporters write it ---- */

static bool fresh(draw *d, const int64_t *dims, uint32_t rank, draw_value *v)
{
    *v = draw_of(ONX_FLOAT, rank, dims);
    return draw_new_input(d, v, -2, 2);
}

static bool attention(draw *d)
{
    const int64_t b = draw_between(d, 1, 2), h = draw_between(d, 1, 3), q = DRAW_ONE(d, int64_t, 1, 2, 3, 5),
                  k = DRAW_ONE(d, int64_t, 1, 3, 4, 7), size = DRAW_ONE(d, int64_t, 2, 4, 8, 16);
    const bool flat = draw_chance(d, 30);
    const uint32_t rank = flat ? 3 : 4, at = rank - 2;
    const int64_t dims[] = { b, flat ? q : h, q, size };
    draw_value Q, K, V, turned, scores, scale = { .dtype = ONX_FLOAT }, scaled, mask, masked, weights, out;
    Q = draw_of(ONX_FLOAT, rank, dims);
    Q.dims[at] = q;
    Q.dims[at + 1] = size;
    K = Q;
    K.dims[at] = k;
    if (!fresh(d, Q.dims, rank, &Q) || !fresh(d, K.dims, rank, &K) || !fresh(d, K.dims, rank, &V))
        return false;
    turned = draw_like(&K);
    turned.dims[at] = size;
    turned.dims[at + 1] = k;
    if (!draw_node(d, &turned, 1, "Transpose <perm = %s> (%s)", flat ? "[0, 2, 1]" : "[0, 1, 3, 2]", K.name))
        return false;
    scores = draw_like(&Q);
    scores.dims[at + 1] = k;
    if (!draw_node(d, &scores, 1, "MatMul (%s, %s)", Q.name, turned.name))
        return false;
    draw_number(d, &scale, DRAW_ONE(d, double, 0.5, 1, 0.25));
    scaled = scores;
    if (draw_chance(d, 70) && !binary(d, "Mul", &scores, &scale, &scaled))
        return false;
    masked = scaled;
    if (draw_chance(d, 60)) {
        mask = draw_like(&scaled);
        for (uint32_t i = 0; i < rank; i++)
            mask.dims[i] = draw_chance(d, 50) ? 1 : scaled.dims[i];
        const uint32_t dropped = gen_below(&d->random, rank);
        mask = draw_of(ONX_FLOAT, rank - dropped, mask.dims + dropped);
        if (draw_chance(d, 50) ? !draw_new_input(d, &mask, -3, 0) : (draw_constant(d, &mask, DRAW_SMALL), false))
            return false;
        if (!binary(d, "Add", &scaled, &mask, &masked))
            return false;
    }
    weights = draw_like(&masked);
    if (!draw_node(d, &weights, 1, "Softmax <axis = %d> (%s)", draw_chance(d, 85) ? (int)rank - 1 : (int)rank - 2,
                   masked.name))
        return false;
    out = draw_like(&Q);
    return draw_node(d, &out, 1, "MatMul (%s, %s)", weights.name, V.name);
}

/* ---- quantized layers ---- */

static bool quantize(draw *d)
{
    draw_value v, scale = { .dtype = ONX_FLOAT }, zero, q, out;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) }, &v))
        return false;
    const onx_dtype to = draw_chance(d, 60) ? ONX_UINT8 : ONX_INT8;
    char axis[24] = "";
    if (d->opset >= 13 && v.rank && draw_chance(d, 30)) {
        const uint32_t at = gen_below(&d->random, v.rank);
        scale = vector(ONX_FLOAT, v.dims[at]);
        (void)snprintf(axis, sizeof axis, "<axis = %u> ", at);
    }
    zero = draw_like(&scale);
    zero.dtype = to;
    draw_constant(d, &scale, DRAW_ABOVE);
    draw_number(d, &zero, to == ONX_UINT8 ? DRAW_ONE(d, double, 0, 3, 128) : DRAW_ONE(d, double, 0, 3, -3));
    q = draw_like(&v);
    q.dtype = to;
    out = draw_like(&v);
    return draw_node(d, &q, 1, "QuantizeLinear %s(%s, %s, %s)", axis, v.name, scale.name, zero.name) &&
           (draw_chance(d, 15) ||
            draw_node(d, &out, 1, "DequantizeLinear %s(%s, %s, %s)", axis, q.name, scale.name, zero.name));
}

static bool quantized_product(draw *d)
{
    draw_value v, w, scale, zero, weights, out, x;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT), .least = 1, .full = true }, &v))
        return false;
    const int64_t n = DRAW_ONE(d, int64_t, 1, 2, 3, 5, 8), dims[] = { v.dims[v.rank - 1], n };
    const bool each = draw_chance(d, 50);
    w = draw_of(draw_chance(d, 50) ? ONX_INT8 : ONX_UINT8, 2, dims);
    scale = draw_of(ONX_FLOAT, each, &n);
    zero = draw_of(w.dtype, each, &n);
    draw_constant(d, &w, DRAW_SMALL);
    draw_constant(d, &scale, DRAW_ABOVE);
    draw_number(d, &zero, DRAW_ONE(d, double, 0, 1, 3));
    weights = draw_of(ONX_FLOAT, 2, dims);
    if (!draw_node(d, &weights, 1, "DequantizeLinear <axis = 1> (%s, %s, %s)", w.name, scale.name, zero.name))
        return false;
    x = v;
    draw_value s = { .dtype = ONX_FLOAT }, z = { .dtype = ONX_UINT8 }, q = draw_like(&v);
    draw_number(d, &s, 0.05);
    draw_number(d, &z, 100);
    q.dtype = ONX_UINT8;
    if (draw_chance(d, 70)) {
        x = draw_like(&v);
        if (!draw_node(d, &q, 1, "QuantizeLinear (%s, %s, %s)", v.name, s.name, z.name) ||
            !draw_node(d, &x, 1, "DequantizeLinear (%s, %s, %s)", q.name, s.name, z.name))
            return false;
    }
    out = draw_like(&v);
    out.dims[v.rank - 1] = n;
    return draw_node(d, &out, 1, "MatMul (%s, %s)", x.name, weights.name) && (draw_chance(d, 50) || follow(d, out));
}

const draw_block draw_net_blocks[] = {
    { "matmul", { 6, 5, 4, 6, 4 }, 9, false, matmul },
    { "gemm", { 4, 3, 2, 4, 3 }, 7, false, gemm },
    { "einsum", { 2, 1, 1, 2, 1 }, 12, false, einsum },
    { "conv", { 8, 10, 4, 1, 3 }, 7, false, conv },
    { "batch_norm", { 3, 3, 2, 3, 2 }, 7, false, batch_norm },
    { "pool", { 4, 5, 2, 1, 2 }, 7, false, pool },
    { "resize", { 2, 2, 1, 0, 1 }, 11, false, resize },
    { "norm", { 4, 4, 2, 1, 2 }, 7, false, norm },
    { "written_norm", { 2, 1, 1, 1, 0 }, 11, false, written_norm },
    { "attention", { 6, 3, 2, 0, 0 }, 13, false, attention },
    { "quantize", { 3, 2, 1, 2, 2 }, 10, false, quantize },
    { "quantized_product", { 3, 1, 1, 1, 1 }, 13, false, quantized_product },
    { .name = NULL },
};
