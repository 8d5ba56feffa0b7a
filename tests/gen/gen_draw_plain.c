/* gen_draw_plain.c - blocks of nodes that work element by element, and shapes that rewrite rules look for. */
#include "gen/gen_draw.h"

#include <stdio.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- one operand ---- */

static bool unary(draw *d)
{
    static const char *const ops[] = { "Abs",        "Neg",   "Relu",       "Tanh",        "Sigmoid",
                                       "Identity",   "Exp",   "Sqrt",       "Floor",       "Ceil",
                                       "Round",      "Sign",  "Erf",        "Softplus",    "Softsign",
                                       "Elu",        "Selu",  "LeakyRelu",  "HardSigmoid", "HardSwish",
                                       "Mish",       "Gelu",  "Sin",        "Cos",         "Atan",
                                       "Reciprocal", "Not",   "BitwiseNot", "Celu",        "ThresholdedRelu",
                                       "Shrink",     "IsNaN", "IsInf",      "Dropout",     "Swish",
                                       "Log" };
    const char *op = ops[gen_below(&d->random, draw_chance(d, 50) ? 10 : COUNT(ops))];
    draw_value v, out;
    if (!draw_has(d, op) || !draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0) }, &v))
        return false;
    out = draw_like(&v);
    if (strcmp(op, "IsNaN") == 0 || strcmp(op, "IsInf") == 0)
        out.dtype = ONX_BOOL;
    return draw_node(d, &out, 1, "%s (%s)", op, v.name);
}

static bool clip(draw *d)
{
    draw_value v, low, high;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Clip", 0) }, &v))
        return false;
    draw_value out = draw_like(&v);
    if (d->opset < 11)
        return draw_node(d, &out, 1, "Clip <min = %s, max = 1.5> (%s)", DRAW_ONE(d, const char *, "0.0", "-1.0"),
                         v.name);
    low = high = draw_of(v.dtype, 0, NULL);
    draw_number(d, &low, DRAW_ONE(d, double, 0, 0, 1));
    draw_number(d, &high, DRAW_ONE(d, double, 6, 2, 3));
    return draw_node(d, &out, 1, "Clip (%s, %s, %s)", v.name, draw_chance(d, 20) ? "" : low.name, high.name);
}

static bool cast(draw *d)
{
    draw_value v, in;
    onx_dtype to = DRAW_ONE(d, onx_dtype, ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_INT64, ONX_INT32, ONX_BOOL,
                            ONX_UINT8, ONX_INT8);
    if (d->theme == DRAW_TYPES)
        to = DRAW_ONE(d, onx_dtype, ONX_FLOAT, ONX_UINT16, ONX_INT16, ONX_UINT32, ONX_UINT64, ONX_BOOL, ONX_DOUBLE,
                      ONX_FLOAT16, ONX_INT64);
    if (draw_chance(d, 15) && d->opset >= 13)
        to = ONX_BFLOAT16;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Cast", 0) & ~DRAW_BIT(STRING) }, &v))
        return false;
    in = v;
    /* The conversion of floats that the type does not have is left to the machine by the standard. */
    if (DRAW_FLOATS >> v.dtype & 1 && DRAW_WHOLES >> to & 1) {
        if (d->opset < 13)
            return false;
        draw_value low = draw_of(v.dtype, 0, NULL), high = low;
        draw_number(d, &low, 0);
        draw_number(d, &high, 6);
        in = draw_like(&v);
        if (!draw_node(d, &in, 1, "Clip (%s, %s, %s)", v.name, low.name, high.name))
            return false;
    } else if (to == ONX_FLOAT16 && (DRAW_BIT(INT32) | DRAW_BIT(INT64)) >> v.dtype & 1 && draw_chance(d, 50)) {
        return false;
    }
    draw_value out = draw_like(&v);
    out.dtype = to;
    if (!draw_node(d, &out, 1, "Cast <to = %d> (%s)", (int)to, in.name))
        return false;
    if (!draw_chance(d, 30) || !(DRAW_FLOATS >> v.dtype & 1) || !(DRAW_FLOATS >> to & 1))
        return true;
    draw_value back = draw_like(&v);
    return draw_node(d, &back, 1, "Cast <to = %d> (%s)", (int)v.dtype, out.name);
}

static bool cast_like(draw *d)
{
    draw_value v, like;
    const uint32_t floats = DRAW_BIT(FLOAT) | DRAW_BIT(DOUBLE) | DRAW_BIT(FLOAT16);
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "CastLike", 0) & ~DRAW_BIT(STRING) }, &v) ||
        !draw_pick(d, (draw_wish){ .types = floats }, &like))
        return false;
    draw_value out = draw_like(&v);
    out.dtype = like.dtype;
    return draw_node(d, &out, 1, "CastLike (%s, %s)", v.name, like.name);
}

/* ---- several operands ---- */

/* What a second operand shall be so that the result is well conditioned, or defined at all. */
static bool tame_operand(draw *d, const char *op, const draw_value *v, draw_value *out)
{
    const bool divides = strcmp(op, "Div") == 0 || strcmp(op, "Mod") == 0, power = strcmp(op, "Pow") == 0;
    if (!divides && !power && strcmp(op, "BitShift") != 0)
        return draw_operand(d, v, out);
    *out = draw_of(v->dtype, v->rank && draw_chance(d, 40) ? 1 : 0, v->rank ? &v->dims[v->rank - 1] : NULL);
    if (DRAW_FLOATS >> v->dtype & 1)
        draw_number(d, out,
                    power ? DRAW_ONE(d, double, 2, 2, 3, 0.5, 1, -1) : DRAW_ONE(d, double, 2, 0.5, 3, 1, 1.41421356));
    else
        draw_number(d, out, power ? draw_between(d, 0, 3) : draw_between(d, 1, 3));
    return true;
}

static bool binary(draw *d)
{
    static const char *const ops[] = { "Add", "Mul", "Sub",        "Add",       "Mul",       "Max", "Min",
                                       "Div", "Pow", "Sum",        "Mean",      "PRelu",     "Mod", "And",
                                       "Or",  "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor" };
    const char *op = ops[gen_below(&d->random, draw_chance(d, 60) ? 6 : COUNT(ops))];
    draw_value v, w, out;
    uint32_t types = draw_takes(d, op, 0);
    if (d->opset < 8 && strchr("MS", op[0]) && strcmp(op, "Mul") != 0 && strcmp(op, "Sub") != 0)
        return false;
    if (strcmp(op, "Mod") == 0)
        types &= DRAW_WHOLES;
    if (strcmp(op, "Pow") == 0)
        types &= draw_takes(d, op, 1) & (DRAW_FLOATS | DRAW_BIT(INT32) | DRAW_BIT(INT64));
    if (!draw_has(d, op) || !draw_pick(d, (draw_wish){ .types = types }, &v))
        return false;
    if (strcmp(op, "PRelu") == 0 ? !draw_smaller(d, &v, &w) : !tame_operand(d, op, &v, &w))
        return false;
    if (!draw_broadcast(&v, &w, &out))
        return false;
    const bool turned = !strchr("DPS", op[0]) && strcmp(op, "Mod") != 0 && draw_chance(d, 50);
    return draw_node(d, &out, 1, "%s (%s, %s)", op, turned ? w.name : v.name, turned ? v.name : w.name);
}

static bool several(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "Sum", "Max", "Min", "Mean");
    draw_value v, w, x, out;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0) }, &v) || !draw_operand(d, &v, &w) ||
        !draw_broadcast(&v, &w, &out))
        return false;
    if (draw_chance(d, 20)) {
        out = draw_like(&v);
        return draw_node(d, &out, 1, "%s (%s)", op, v.name);
    }
    draw_value common = out;
    if (!draw_operand(d, &v, &x) || !draw_broadcast(&common, &x, &out))
        return false;
    return draw_node(d, &out, 1, "%s (%s, %s, %s)", op, v.name, w.name, x.name);
}

static bool compare(draw *d)
{
    const char *op = DRAW_ONE(d, const char *, "Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual");
    draw_value v, w, out;
    if (!draw_has(d, op) || !draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0) }, &v) ||
        !draw_operand(d, &v, &w) || !draw_broadcast(&v, &w, &out))
        return false;
    out.dtype = ONX_BOOL;
    return draw_node(d, &out, 1, "%s (%s, %s)", op, v.name, w.name);
}

static bool where(draw *d)
{
    draw_value c, v, w, common, out;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Where", 1) }, &v) || !draw_operand(d, &v, &w) ||
        !draw_broadcast(&v, &w, &common))
        return false;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(BOOL) }, &c) || !draw_broadcast(&common, &c, &out)) {
        c = draw_of(ONX_BOOL, draw_chance(d, 70) ? v.rank : 0, v.dims);
        draw_constant(d, &c, DRAW_SMALL);
        if (!draw_broadcast(&common, &c, &out))
            return false;
    }
    const bool turned = draw_chance(d, 50);
    return draw_node(d, &out, 1, "Where (%s, %s, %s)", c.name, turned ? w.name : v.name, turned ? v.name : w.name);
}

static bool shift(draw *d)
{
    draw_value v, w;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_UNSIGNED }, &v) || !tame_operand(d, "BitShift", &v, &w))
        return false;
    draw_value out = draw_like(&v);
    return draw_node(d, &out, 1, "BitShift <direction = \"%s\"> (%s, %s)", DRAW_ONE(d, const char *, "LEFT", "RIGHT"),
                     v.name, w.name);
}

/* ---- chains that rewrite rules replace, or nearly ---- */

static draw_value number(draw *d, onx_dtype dtype, double x)
{
    static const int64_t ones[] = { 1, 1 };
    draw_value v = draw_of(dtype, DRAW_ONE(d, uint32_t, 0, 0, 0, 1, 2), ones);
    draw_number(d, &v, x);
    return v;
}

static bool pair(draw *d, const char *op, const draw_value *a, const draw_value *b, draw_value *out)
{
    const bool turned = (op[0] == 'A' || op[0] == 'M') && draw_chance(d, 50);
    return draw_broadcast(a, b, out) &&
           draw_node(d, out, 1, "%s (%s, %s)", op, turned ? b->name : a->name, turned ? a->name : b->name);
}

static bool gelu(draw *d)
{
    draw_value v, x, y, k = { .dtype = ONX_FLOAT };
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) }, &v))
        return false;
    const bool divides = draw_chance(d, 50);
    k = number(d, ONX_FLOAT, divides ? 1.41421356 : 0.70710678);
    if (!pair(d, divides ? "Div" : "Mul", &v, &k, &x))
        return false;
    y = draw_like(&x);
    if (!draw_node(d, &y, 1, "Erf (%s)", x.name))
        return false;
    k = number(d, ONX_FLOAT, draw_chance(d, 90) ? 1 : 0.5);
    if (!pair(d, "Add", &y, &k, &x) || !pair(d, "Mul", &x, &v, &y))
        return false;
    k = number(d, ONX_FLOAT, 0.5);
    return pair(d, "Mul", &y, &k, &x);
}

static bool gate(draw *d)
{
    draw_value v, x, y, k;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) | DRAW_BIT(DOUBLE) | DRAW_BIT(FLOAT16) }, &v))
        return false;
    x = v;
    switch (gen_below(&d->random, 3)) {
    case 0:
        k = number(d, v.dtype, DRAW_ONE(d, double, 1.702, 1, 2));
        if (draw_chance(d, 50) && !pair(d, "Mul", &v, &k, &x))
            return false;
        y = draw_like(&x);
        return draw_node(d, &y, 1, "Sigmoid (%s)", x.name) && pair(d, "Mul", &v, &y, &x);
    case 1:
        y = x = draw_like(&v);
        return draw_node(d, &y, 1, "Softplus (%s)", v.name) && draw_node(d, &x, 1, "Tanh (%s)", y.name) &&
               pair(d, "Mul", &v, &x, &y);
    default:
        k = number(d, v.dtype, 3);
        if (d->opset < 11 || !pair(d, "Add", &v, &k, &x))
            return false;
        {
            draw_value low = draw_of(v.dtype, 0, NULL), high = low;
            draw_number(d, &low, 0);
            draw_number(d, &high, 6);
            y = draw_like(&x);
            if (!draw_node(d, &y, 1, "Clip (%s, %s, %s)", x.name, low.name, high.name) || !pair(d, "Mul", &v, &y, &x))
                return false;
        }
        k = number(d, v.dtype, 6);
        return pair(d, "Div", &x, &k, &y);
    }
}

/* Two nodes that cancel each other, or a node that changes nothing. */
static bool nothing(draw *d)
{
    draw_value v, x, k;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Add", 0) & draw_takes(d, "Mul", 0) }, &v))
        return false;
    static const int64_t ones[] = { 1, 1, 1, 1, 1, 1 };
    k = draw_of(v.dtype, gen_below(&d->random, v.rank + 2), ones);
    if (k.rank > DRAW_RANK)
        return false;
    const char *op = DRAW_ONE(d, const char *, "Add", "Mul", "Sub", "Div");
    draw_number(d, &k, op[0] == 'A' || op[0] == 'S' ? 0 : 1);
    return pair(d, op, &v, &k, &x);
}

const draw_block draw_plain_blocks[] = {
    { "unary", { 12, 14, 10, 10, 14 }, 1, false, unary },
    { "binary", { 12, 20, 12, 12, 14 }, 7, false, binary },
    { "several", { 3, 4, 2, 2, 3 }, 8, false, several },
    { "clip", { 2, 1, 1, 1, 3 }, 6, false, clip },
    { "cast", { 5, 2, 2, 3, 10 }, 9, false, cast },
    { "cast_like", { 1, 0, 1, 1, 3 }, 15, false, cast_like },
    { "compare", { 3, 2, 3, 2, 5 }, 9, false, compare },
    { "where", { 4, 5, 3, 3, 5 }, 9, false, where },
    { "shift", { 0, 0, 0, 0, 3 }, 11, false, shift },
    { "gelu", { 1, 1, 1, 1, 0 }, 9, false, gelu },
    { "gate", { 2, 1, 1, 1, 1 }, 7, false, gate },
    { "nothing", { 2, 2, 1, 1, 2 }, 7, false, nothing },
    { .name = NULL },
};
