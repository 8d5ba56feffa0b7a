/* rewrite_condition.c - conditions of rules on shapes, which come from a plan or from inference. */
#include "rewrite/rewrite.h"

static bool axis_of(int64_t axis, uint32_t rank, uint32_t *out)
{
    const int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    *out = (uint32_t)at;
    return at >= 0 && at < (int64_t)rank;
}

/* Is it a vector along an axis of a value, like per-channel parameters: [C, 1, 1] for axis 1 of rank 4? */
static bool is_along(const onxi_rewrite_shape *list, const onxi_rewrite_shape *of, int64_t axis)
{
    uint32_t at;
    if (!axis_of(axis, of->rank, &at) || list->rank > of->rank || list->rank < of->rank - at)
        return false;
    const uint32_t before = of->rank - list->rank; /* axes that the vector does not have */
    for (uint32_t i = 0; i < list->rank; i++)
        if (i + before == at ? list->dims[i] != of->dims[at] : list->dims[i] != 1)
            return false;
    return true;
}

static int64_t bound_of(const onxi_rewrite_bound *b, int64_t dim)
{
    return b->of_dim ? dim / b->number : b->number;
}

/* The value of a Slice bound for a dimension of size `dim`. */
static int64_t clamped(int64_t bound, int64_t dim)
{
    bound = bound < 0 ? (bound < -dim ? 0 : bound + dim) : bound;
    return bound > dim ? dim : bound;
}

/* Does the Slice take the last axis only, with the given start, end and step, and is the axis divisible? */
static bool slices(const onxi_rewrite_shapes *s, const onxi_rewrite_condition *c, const onxi_rewrite_shape *x)
{
    int64_t lists[4][1] = { { 0 }, { 0 }, { 0 }, { 1 } };
    uint32_t axis, count;
    const int64_t dim = x->rank ? x->dims[x->rank - 1] : -1;
    for (uint32_t i = 0; i < 4; i++) {
        if (c->bounds[i] >= ONXI_REWRITE_NONE - 1) {
            if (i < 2 || (i == 2 && x->rank != 1)) /* without axes, a Slice begins with the first axis */
                return false;
        } else if (!s->ints(s->graph, c->bounds[i], lists[i], 1, &count) || count != 1) {
            return false;
        }
    }
    if (dim < 0 || !axis_of(lists[2][0], x->rank, &axis) || axis + 1 != x->rank || lists[3][0] != c->number)
        return false;
    const bool divides = !(c->from.of_dim && dim % c->from.number) && !(c->to.of_dim && dim % c->to.number);
    return divides && clamped(lists[0][0], dim) == bound_of(&c->from, dim) &&
           clamped(lists[1][0], dim) == bound_of(&c->to, dim);
}

/* Are the first `count` dims the same? */
static bool same_dims(const onxi_rewrite_shape *a, const onxi_rewrite_shape *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a->dims[i] != b->dims[i] || a->dims[i] == INT64_MIN)
            return false;
    return true;
}

/* Does broadcasting it with the other value give the dims of the other value? */
static bool is_onto(const onxi_rewrite_shape *a, const onxi_rewrite_shape *to)
{
    for (uint32_t i = 0; i < a->rank && a->rank <= to->rank; i++) {
        const int64_t dim = a->dims[i];
        if (dim != 1 && (dim == INT64_MIN || dim != to->dims[to->rank - a->rank + i]))
            return false;
    }
    return a->rank <= to->rank;
}

bool onxi_rewrite_holds(const onxi_rewrite_shapes *s, const onxi_rewrite_condition *c)
{
    onxi_rewrite_shape a, b;
    uint32_t i, k;
    if (c->kind == ONXI_REWRITE_CONSTANTS || c->kind == ONXI_REWRITE_NUMBER || c->kind == ONXI_REWRITE_BOTH)
        return true; /* checked when the rule matched, or nothing to check */
    if (!s->shape(s->graph, c->value, &a))
        return false;
    switch (c->kind) {
    case ONXI_REWRITE_LAST_AXIS:
        return c->number == -1 || c->number == (int64_t)a.rank - 1;
    case ONXI_REWRITE_RANK:
        return c->number == (int64_t)a.rank;
    case ONXI_REWRITE_SAME_DIMS:
        return s->shape(s->graph, c->other, &b) && a.dtype == b.dtype && a.dtype != ONX_UNDEFINED && a.rank == b.rank &&
               same_dims(&a, &b, a.rank);
    case ONXI_REWRITE_BATCH:
        return s->shape(s->graph, c->other, &b) && a.rank == b.rank && a.rank >= 2 && same_dims(&a, &b, a.rank - 2);
    case ONXI_REWRITE_ONTO:
        return s->shape(s->graph, c->other, &b) && is_onto(&a, &b);
    case ONXI_REWRITE_BOUNDED:
        return s->bounded && s->bounded(s->graph, c->value);
    case ONXI_REWRITE_SIZE:
        return axis_of(c->axis, a.rank, &i) && a.dims[i] == c->number && c->number >= 0;
    case ONXI_REWRITE_MULTIPLE:
        return axis_of(c->axis, a.rank, &i) && c->number > 0 && a.dims[i] >= 0 && a.dims[i] % c->number == 0;
    case ONXI_REWRITE_SAME_SIZE:
        return s->shape(s->graph, c->other, &b) && axis_of(c->axis, a.rank, &i) && axis_of(c->axis, b.rank, &k) &&
               a.dims[i] == b.dims[k] && a.dims[i] != INT64_MIN;
    case ONXI_REWRITE_ALONG:
        return s->shape(s->graph, c->other, &b) && is_along(&a, &b, c->axis);
    case ONXI_REWRITE_SLICE:
        return slices(s, c, &a);
    default:
        return false;
    }
}
