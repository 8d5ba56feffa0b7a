/* gen_draw_sum.c - blocks of nodes that work along axes, and that compute with shapes. */
#include "gen/gen_draw.h"

#include <stdio.h>
#include <string.h>

/* ---- along axes ---- */

static bool reduce(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2",
                              "ReduceSumSquare", "ReduceLogSumExp", "ReduceL1", "ReduceProd", "ReduceMean");
    draw_value v, out;
    int64_t axes[DRAW_RANK], written[DRAW_RANK];
    uint32_t count = 0;
    const uint32_t types = draw_takes(d, op, 0) & (draw_chance(d, 70) ? DRAW_FLOATS : DRAW_EVERY);
    /* of nothing, there is a sum only */
    if (!draw_pick(d, (draw_wish){ .types = types, .full = strcmp(op, "ReduceSum") != 0 }, &v))
        return false;
    bool keep = draw_chance(d, 60), all;
    for (uint32_t i = 0; i < v.rank; i++)
        if (draw_chance(d, 50)) {
            written[count] = d->opset >= 11 && draw_chance(d, 30) ? (int64_t)i - v.rank : i;
            axes[count++] = i;
        }
    const bool input = d->opset >= 18 || (d->opset >= 13 && strcmp(op, "ReduceSum") == 0);
    const bool none = !count && input && draw_chance(d, 40);
    all = !count && !none;
    out = (draw_value){ .dtype = v.dtype };
    for (uint32_t i = 0, k = 0; i < v.rank; i++) {
        const bool reduced = all || (k < count && axes[k] == i && ++k);
        if (!reduced)
            out.dims[out.rank++] = v.dims[i];
        else if (keep)
            out.dims[out.rank++] = 1;
    }
    if (none)
        return draw_node(d, &out, 1, "%s <noop_with_empty_axes = 1, keepdims = %d> (%s)", op, keep, v.name);
    if (!count)
        return draw_node(d, &out, 1, "%s <keepdims = %d> (%s)", op, keep, v.name);
    if (!input)
        return draw_node(d, &out, 1, "%s <keepdims = %d, axes = %s> (%s)", op, keep, draw_listed(written, count).text,
                         v.name);
    const draw_value list = draw_ints(d, written, count);
    return draw_node(d, &out, 1, "%s <keepdims = %d> (%s, %s)", op, keep, v.name, list.name);
}

static bool softmax(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "Softmax", "Softmax", "LogSoftmax", "Hardmax");
    draw_value v;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0), .least = 1 }, &v))
        return false;
    draw_value out = draw_like(&v);
    const int axis = (int)gen_below(&d->random, v.rank);
    return draw_node(d, &out, 1, "%s <axis = %d> (%s)", op,
                     d->opset >= 11 && draw_chance(d, 40) ? axis - (int)v.rank : axis, v.name);
}

static bool arg(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "ArgMax", "ArgMin");
    draw_value v, out;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank), keep = draw_chance(d, 50);
    out = (draw_value){ .dtype = ONX_INT64 };
    for (uint32_t i = 0; i < v.rank; i++)
        if (i != axis || keep)
            out.dims[out.rank++] = i == axis ? 1 : v.dims[i];
    return draw_node(d, &out, 1, "%s <axis = %u, keepdims = %u> (%s)", op, axis, keep, v.name);
}

static bool top(draw *d)
{
    draw_value v, out[2];
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "TopK", 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank);
    out[0] = draw_like(&v);
    out[0].dims[axis] = draw_between(d, 1, (int)v.dims[axis]);
    out[1] = out[0];
    out[1].dtype = ONX_INT64;
    const draw_value k = draw_ints(d, &out[0].dims[axis], 1);
    return draw_node(d, out, 2, "TopK <axis = %u%s> (%s, %s)", axis,
                     d->opset >= 11 && draw_chance(d, 40) ? ", largest = 0" : "", v.name, k.name);
}

static bool running_sum(draw *d)
{
    draw_value v, axis = { .dtype = ONX_INT64 };
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "CumSum", 0), .least = 1 }, &v))
        return false;
    draw_number(d, &axis, gen_below(&d->random, v.rank));
    draw_value out = draw_like(&v);
    return draw_node(d, &out, 1, "CumSum <exclusive = %d, reverse = %d> (%s, %s)", draw_between(d, 0, 1),
                     draw_between(d, 0, 1), v.name, axis.name);
}

static bool one_hot(draw *d)
{
    static const int64_t two[] = { 2 };
    draw_value v, depth = { .dtype = ONX_INT64 }, values = draw_of(ONX_FLOAT, 1, two), out;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(INT64) | DRAW_BIT(INT32), .least = 1, .most = DRAW_RANK - 1 }, &v))
        return false;
    draw_number(d, &depth, 4);
    draw_constant(d, &values, DRAW_SMALL);
    out = draw_like(&v);
    out.dtype = ONX_FLOAT;
    out.dims[out.rank++] = 4;
    return draw_node(d, &out, 1, "OneHot (%s, %s, %s)", v.name, depth.name, values.name);
}

const draw_block draw_sum_blocks[] = {
    { "reduce", { 7, 5, 4, 6, 6 }, 9, false, reduce },
    { "softmax", { 4, 5, 3, 5, 3 }, 7, false, softmax },
    { "arg", { 3, 1, 2, 1, 3 }, 7, false, arg },
    { "top", { 2, 1, 1, 1, 2 }, 10, false, top },
    { "running_sum", { 2, 2, 1, 2, 2 }, 11, false, running_sum },
    { "one_hot", { 1, 1, 1, 1, 2 }, 11, false, one_hot },
    { .name = NULL },
};

/* ---- shapes ---- */

static bool shape_of(draw *d, draw_value *v, draw_value *shape)
{
    const bool got = draw_pick(d, (draw_wish){ .types = DRAW_EVERY, .least = 1 }, v);
    const int64_t rank = v->rank;
    *shape = draw_of(ONX_INT64, 1, &rank);
    return got && draw_node(d, shape, 1, "Shape (%s)", v->name);
}

static bool filled(draw *d)
{
    draw_value v, shape, out;
    if (!shape_of(d, &v, &shape))
        return false;
    out = draw_like(&v);
    out.dtype = DRAW_ONE(d, onx_dtype, ONX_FLOAT, ONX_FLOAT, ONX_FLOAT16, ONX_INT64, ONX_DOUBLE, ONX_BOOL);
    if (!(draw_takes(d, "Identity", 0) >> out.dtype & 1))
        return false;
    return draw_node(d, &out, 1, "ConstantOfShape <value = %s[1] {%s}> (%s)", onx_dtype_name(out.dtype),
                     out.dtype == ONX_FLOAT16 ? "15360" : "1", shape.name);
}

static bool reshaped_like(draw *d)
{
    draw_value v, shape, w, out;
    if (!shape_of(d, &v, &shape))
        return false;
    for (int tries = 0; tries < 6; tries++)
        if (draw_pick(d, (draw_wish){ .types = draw_takes(d, "Reshape", 0), .full = true }, &w) &&
            draw_product(w.dims, w.rank) == draw_product(v.dims, v.rank)) {
            out = draw_like(&v);
            out.dtype = w.dtype;
            return draw_node(d, &out, 1, "Reshape (%s, %s)", w.name, shape.name);
        }
    return false;
}

static bool expanded_like(draw *d)
{
    draw_value v, shape, w, out;
    if (!shape_of(d, &v, &shape))
        return false;
    for (int tries = 0; tries < 6; tries++)
        if (draw_pick(d, (draw_wish){ .types = draw_takes(d, "Expand", 0) }, &w) && draw_broadcast(&w, &v, &out))
            return draw_node(d, &out, 1, "Expand (%s, %s)", w.name, shape.name);
    return false;
}

/* [size of an axis, -1] */
static bool partly_flat(draw *d)
{
    static const int64_t rest[] = { -1 }, two[] = { 2 }, one[] = { 1 };
    draw_value v, shape, size, target, out;
    if (!shape_of(d, &v, &shape) || !draw_product(v.dims, v.rank))
        return false;
    const int64_t axis = gen_below(&d->random, v.rank);
    const draw_value at = draw_ints(d, &axis, 1), minus = draw_ints(d, rest, 1);
    size = draw_of(ONX_INT64, 1, one);
    target = draw_of(ONX_INT64, 1, two);
    if (!draw_node(d, &size, 1, "Gather (%s, %s)", shape.name, at.name) ||
        !draw_node(d, &target, 1, "Concat <axis = 0> (%s, %s)", size.name, minus.name))
        return false;
    out = (draw_value){ .dtype = v.dtype, .rank = 2 };
    out.dims[0] = v.dims[axis];
    out.dims[1] = (int64_t)draw_product(v.dims, v.rank) / v.dims[axis];
    return draw_node(d, &out, 1, "Reshape (%s, %s)", v.name, target.name);
}

static bool count(draw *d)
{
    draw_value v, out = { .dtype = ONX_INT64 };
    return draw_pick(d, (draw_wish){ .types = DRAW_EVERY }, &v) && draw_node(d, &out, 1, "Size (%s)", v.name);
}

static bool range(draw *d)
{
    draw_value from = { .dtype = DRAW_ONE(d, onx_dtype, ONX_INT64, ONX_FLOAT, ONX_INT32) }, to = from, step = from, out;
    const int64_t n = draw_between(d, d->theme == DRAW_ZERO ? 0 : 1, 5);
    draw_number(d, &from, 1);
    draw_number(d, &to, 1 + 2 * (int)n);
    draw_number(d, &step, 2);
    out = draw_of(from.dtype, 1, &n);
    return draw_node(d, &out, 1, "Range (%s, %s, %s)", from.name, to.name, step.name);
}

const draw_block draw_shape_blocks[] = {
    { "filled", { 2, 1, 1, 3, 2 }, 9, false, filled },
    { "reshaped_like", { 2, 3, 1, 2, 1 }, 7, false, reshaped_like },
    { "expanded_like", { 2, 2, 1, 2, 1 }, 8, false, expanded_like },
    { "partly_flat", { 2, 2, 1, 1, 1 }, 7, false, partly_flat },
    { "count", { 1, 1, 1, 1, 1 }, 7, false, count },
    { "range", { 1, 0, 1, 1, 1 }, 11, false, range },
    { .name = NULL },
};
