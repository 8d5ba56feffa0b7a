/* dim_range.c - computes bounds of a dimension expression that hold for all values of its symbols. */
#include "dim/dim_expr.h"

onxi_range onxi_range_of(const onxi_dims *dims, onxi_dim d)
{
    if (onxi_dim_is_const(d))
        return (onxi_range){ d, d };
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    return (onxi_range){ e->low, e->high };
}

static int64_t bound_add(int64_t a, int64_t b, int64_t none)
{
    int64_t sum;
    if (a == none || b == none || !onxi_add_i64(a, b, &sum))
        return none;
    return sum;
}

static int64_t bound_scale(int64_t bound, int64_t coef, int64_t none)
{
    int64_t product;
    if (bound == INT64_MIN || bound == INT64_MAX || !onxi_mul_i64(bound, coef, &product))
        return none;
    return product;
}

onxi_range onxi_range_of_sum(const onxi_dims *dims, int64_t constant, const onxi_dim_term *terms, uint32_t count)
{
    onxi_range r = { constant, constant };
    for (uint32_t i = 0; i < count; i++) {
        onxi_range t = onxi_range_of(dims, terms[i].of);
        int64_t coef = terms[i].coef;
        r.low = bound_add(r.low, bound_scale(coef > 0 ? t.low : t.high, coef, INT64_MIN), INT64_MIN);
        r.high = bound_add(r.high, bound_scale(coef > 0 ? t.high : t.low, coef, INT64_MAX), INT64_MAX);
    }
    return r;
}

int64_t onxi_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

static onxi_range range_div(onxi_range a, onxi_range b)
{
    onxi_range r = { INT64_MIN, INT64_MAX };
    if (b.high < 1)
        return r;
    int64_t least = b.low < 1 ? 1 : b.low; /* a divisor is never 0 */
    if (a.low >= 0)
        r.low = b.high == INT64_MAX ? 0 : a.low / b.high;
    else if (a.low != INT64_MIN)
        r.low = onxi_floor_div(a.low, least);
    if (a.high != INT64_MAX)
        r.high = a.high >= 0 ? a.high / least : -1;
    return r;
}

static onxi_range range_product(const onxi_dims *dims, const onxi_dim *args, uint32_t count)
{
    onxi_range r = { 1, 1 };
    for (uint32_t i = 0; i < count; i++) {
        onxi_range a = onxi_range_of(dims, args[i]);
        if (a.low < 0)
            return (onxi_range){ INT64_MIN, INT64_MAX };
        if (!onxi_mul_i64(r.low, a.low, &r.low))
            r.low = INT64_MAX - 1;
        if (r.high == INT64_MAX || a.high == INT64_MAX || !onxi_mul_i64(r.high, a.high, &r.high))
            r.high = INT64_MAX;
    }
    return r;
}

static onxi_range range_list(const onxi_dims *dims, const onxi_dim_expr *e)
{
    onxi_range r = onxi_range_of(dims, e->args[0]);
    for (uint32_t i = 1; i < e->count; i++) {
        onxi_range a = onxi_range_of(dims, e->args[i]);
        bool least = e->kind == ONXI_DIM_MIN;
        r.low = least == (a.low < r.low) ? a.low : r.low;
        r.high = least == (a.high < r.high) ? a.high : r.high;
    }
    return r;
}

onxi_range onxi_range_of_expr(const onxi_dims *dims, const onxi_dim_expr *e)
{
    switch (e->kind) {
    case ONXI_DIM_SUM:
        return onxi_range_of_sum(dims, e->constant, e->terms, e->count);
    case ONXI_DIM_PRODUCT:
        return range_product(dims, e->args, e->count);
    case ONXI_DIM_DIV:
        return range_div(onxi_range_of(dims, e->args[0]), onxi_range_of(dims, e->args[1]));
    case ONXI_DIM_MOD: {
        int64_t high = onxi_range_of(dims, e->args[1]).high;
        return (onxi_range){ 0, high == INT64_MAX ? high : high - 1 };
    }
    case ONXI_DIM_MIN:
    case ONXI_DIM_MAX:
        return range_list(dims, e);
    case ONXI_DIM_SYMBOL: /* symbols stand for dimensions */
        return (onxi_range){ 0, INT64_MAX };
    default:
        return (onxi_range){ INT64_MIN, INT64_MAX };
    }
}

/* The largest magnitude; the size of an expression bounds the recursion (ONXI_DIM_WEIGHT). */
static double magnitude(const onxi_dims *dims, onxi_dim d)
{
    if (onxi_dim_is_const(d))
        return d < 0 ? -(double)d : (double)d;
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    double most = e->kind == ONXI_DIM_PRODUCT ? 1 : 0;
    switch (e->kind) {
    case ONXI_DIM_SYMBOL:
        return INT32_MAX;
    case ONXI_DIM_SUM:
        most = magnitude(dims, e->constant);
        for (uint32_t i = 0; i < e->count; i++)
            most += magnitude(dims, e->terms[i].coef) * magnitude(dims, e->terms[i].of);
        return most;
    case ONXI_DIM_PRODUCT:
        for (uint32_t i = 0; i < e->count; i++)
            most *= magnitude(dims, e->args[i]);
        return most;
    case ONXI_DIM_DIV:
        return magnitude(dims, e->args[0]);
    case ONXI_DIM_MOD:
        return magnitude(dims, e->args[1]);
    case ONXI_DIM_MIN:
    case ONXI_DIM_MAX:
        for (uint32_t i = 0; i < e->count; i++) {
            const double of = magnitude(dims, e->args[i]);
            most = of > most ? of : most;
        }
        return most;
    default:
        return (double)INT64_MAX * 2;
    }
}

bool onxi_dim_within(const onxi_dims *dims, onxi_dim d, double most)
{
    return magnitude(dims, d) <= most;
}
