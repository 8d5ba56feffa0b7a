/* shard_rules.c - how nodes may be split: which axes of operands belong to one dimension that the node iterates over,
 * and what becomes of results when a dimension is split that is reduced. */
#include "shard/shard.h"

#include <onx/tensor.h>

typedef struct splitter {
    const onxi_shard_subject *s;
    onxi_shard_rule *r;
} splitter;

/* ---- operands ---- */

static const onxi_shard_value *value_at(const onxi_shard_subject *s, uint32_t value)
{
    return value == ONXI_SHARD_NONE ? NULL : &s->plan->value[value];
}

static const onxi_shard_value *input(const splitter *m, uint32_t i)
{
    return i < m->s->node->input_count ? value_at(m->s, m->s->inputs[i]) : NULL;
}

static const onxi_shard_value *output(const splitter *m, uint32_t i)
{
    return i < m->s->node->output_count ? value_at(m->s, m->s->outputs[i]) : NULL;
}

static int8_t *row_of_output(const splitter *m, uint32_t i)
{
    return m->r->map[m->s->node->input_count + i];
}

static int64_t int_attribute(const splitter *m, const char *name, int64_t fallback)
{
    const onxi_attr_value *a = onxi_attrs_get(m->s->attrs, name, ONX_ATTR_INT);
    return a ? a->i : fallback;
}

static const int64_t *ints_attribute(const splitter *m, const char *name, uint32_t *count)
{
    const onxi_attr_value *a = onxi_attrs_get(m->s->attrs, name, ONX_ATTR_INTS);
    *count = a ? a->count : 0;
    return a ? a->list : NULL;
}

/* The elements of an input that is an initializer or a Constant; NULL when it is neither, or has too many. */
static const int64_t *constant_ints(const splitter *m, uint32_t i, uint32_t *count)
{
    enum { MOST = 64 };
    const onxi_shard_value *v = input(m, i);
    const onx_tensor *t = v ? v->tensor : NULL;
    uint64_t n;
    if (v && !t && v->node != ONXI_SHARD_NONE) {
        const onx_attribute *a = onx_node_attribute(m->s->plan->graph->node[v->node], "value");
        const bool is = onxi_node_is(m->s->plan->graph->node[v->node], ONXI_ID_Constant);
        t = is && a && a->slot == ONX_SLOT_T ? a->t : NULL;
    }
    if (!t || !onx_tensor_count(t, &n) || n > MOST)
        return NULL;
    int64_t *ints = ONXI_ARRAY(m->s->plan->arena, int64_t, (size_t)n + 1);
    *count = (uint32_t)n;
    return ints && onx_tensor_get_i64(m->s->plan->doc, t, 0, n, ints) == ONX_OK ? ints : NULL;
}

static bool axis_of(int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < 0)
        axis += rank;
    *out = (uint32_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}

/* -1 when there are too many, which only means that this one is not split. */
static int8_t new_dim(const splitter *m, int64_t size, int64_t unit, onxi_shard_kind kind)
{
    if (m->r->dim_count == ONXI_SHARD_DIMS || size < 2)
        return -1;
    m->r->dim[m->r->dim_count] = (onxi_shard_dim){ size, unit, kind };
    return (int8_t)m->r->dim_count++;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Nothing is split. */
static void forget(const splitter *m)
{
    memset(m->r->map, -1, sizeof *m->r->map * (m->s->node->input_count + m->s->node->output_count));
    m->r->dim_count = 0;
    m->r->fix = ONXI_SHARD_KEEP;
    m->r->once = m->r->unread = -1;
}

/* ---- element by element ---- */

/* All operands are aligned at their last axes with output 0; those of size 1 are stretched. */
static void elementwise(splitter *m)
{
    const onxi_shard_value *y = output(m, 0);
    const uint32_t operands = m->s->node->input_count + m->s->node->output_count;
    if (m->s->bound->opset < 7 && m->s->node->input_count > 1)
        return;
    int8_t dims[ONXI_SHARD_RANK];
    for (uint32_t k = 0; k < y->rank; k++)
        dims[k] = new_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
    for (uint32_t i = 0; i < operands; i++) {
        const uint32_t in = m->s->node->input_count;
        const onxi_shard_value *v = i < in ? input(m, i) : output(m, i - in);
        for (uint32_t k = 0; v && v->rank <= y->rank && k < v->rank; k++)
            if (v->dims[k] == y->dims[k + y->rank - v->rank])
                m->r->map[i][k] = dims[k + y->rank - v->rank];
    }
}

/* Axes of input 0 and of output 0 up to `end`, but for those in `whole`, are the same dimensions; all outputs alike. */
static void along(splitter *m, uint32_t end, uint64_t whole)
{
    const onxi_shard_value *x = input(m, 0), *y = output(m, 0);
    for (uint32_t k = 0; k < x->rank && k < y->rank && k < end; k++) {
        if (whole >> k & 1 || x->dims[k] != y->dims[k])
            continue;
        m->r->map[0][k] = new_dim(m, x->dims[k], 0, ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; i < m->s->node->output_count; i++) {
            const onxi_shard_value *v = output(m, i);
            if (v && v->rank == y->rank && v->dims[k] == y->dims[k])
                row_of_output(m, i)[k] = m->r->map[0][k];
        }
    }
}

static void all_but_axis(splitter *m)
{
    uint32_t axis;
    if (axis_of(int_attribute(m, "axis", -1), input(m, 0)->rank, &axis))
        along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Before version 13 the tensor is taken as a matrix whose rows begin at the axis. */
static void softmax(splitter *m)
{
    uint32_t axis;
    if (m->s->bound->opset >= 13)
        all_but_axis(m);
    else if (axis_of(int_attribute(m, "axis", 1), input(m, 0)->rank, &axis))
        along(m, axis, 0);
}

static void before_axis(splitter *m)
{
    uint32_t axis;
    if (axis_of(int_attribute(m, "axis", -1), input(m, 0)->rank, &axis))
        along(m, axis, 0);
}

static void batch(splitter *m)
{
    along(m, 1, 0);
}

static void batch_and_channels(splitter *m)
{
    along(m, 2, 0);
}

static void batch_normalization(splitter *m)
{
    if (m->s->node->output_count > 1 || input(m, 0)->rank < 2)
        return;
    along(m, ONXI_SHARD_RANK, 0);
    for (uint32_t i = 1; i < m->s->node->input_count; i++)
        m->r->map[i][0] = m->r->map[0][1];
}

static void instance_normalization(splitter *m)
{
    along(m, 2, 0);
    for (uint32_t i = 1; i < m->s->node->input_count && input(m, 0)->rank > 1; i++)
        m->r->map[i][0] = m->r->map[0][1];
}

static void all_but_last_two(splitter *m)
{
    along(m, input(m, 0)->rank < 2 ? 0 : input(m, 0)->rank - 2, 0);
}

/* An axis that an input says. */
static void all_but_input_axis(splitter *m)
{
    uint32_t axis, count;
    const int64_t *at = constant_ints(m, 1, &count);
    if (at && count == 1 && axis_of(at[0], input(m, 0)->rank, &axis))
        along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Scales of one element, or one for each index of an axis. */
static void quantize(splitter *m)
{
    const onxi_shard_value *x = input(m, 0), *scale = input(m, 1);
    uint32_t axis;
    if (!scale || scale->rank > 1 || !axis_of(int_attribute(m, "axis", 1), x->rank ? x->rank : 2, &axis))
        return;
    along(m, ONXI_SHARD_RANK, 0);
    for (uint32_t i = 1; i < m->s->node->input_count && scale->rank == 1 && axis < x->rank; i++)
        if (input(m, i) && input(m, i)->rank == 1 && input(m, i)->dims[0] == x->dims[axis])
            m->r->map[i][0] = m->r->map[0][axis];
    if (scale->rank == 1 && axis < x->rank && scale->dims[0] != x->dims[axis] && scale->dims[0] != 1)
        m->r->dim_count = 0, memset(m->r->map, -1, sizeof *m->r->map * (m->s->node->input_count + 1u));
}

/* ---- reductions ---- */

static const struct reduction_row {
    onxi_op_id op;
    onxi_shard_kind kind;
} reductions[] = { { ONXI_ID_ReduceSum, ONXI_SHARD_SUM },      { ONXI_ID_ReduceMean, ONXI_SHARD_MEAN },
                   { ONXI_ID_ReduceMax, ONXI_SHARD_MAX },      { ONXI_ID_ReduceMin, ONXI_SHARD_MIN },
                   { ONXI_ID_ReduceProd, ONXI_SHARD_PRODUCT }, { ONXI_ID_ReduceL1, ONXI_SHARD_SUM },
                   { ONXI_ID_ReduceSumSquare, ONXI_SHARD_SUM } };

static bool can_be_added(int32_t dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16 ||
           dtype == ONX_INT32 || dtype == ONX_INT64 || dtype == ONX_UINT32 || dtype == ONX_UINT64;
}

/* Which axes, as a bit each; false when that is not known. */
static bool reduced_axes(splitter *m, uint32_t rank, uint64_t *out)
{
    uint32_t count = 0, axis;
    const bool given = m->s->node->input_count > 1 && m->s->inputs[1] != ONXI_SHARD_NONE;
    const int64_t *axes = given ? constant_ints(m, 1, &count) : ints_attribute(m, "axes", &count);
    *out = 0;
    if (given && !axes)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!axis_of(axes[i], rank, &axis))
            return false;
        *out |= UINT64_C(1) << axis;
    }
    if (!count && int_attribute(m, "noop_with_empty_axes", 0))
        return false;
    if (!count)
        *out = (UINT64_C(1) << rank) - 1;
    return true;
}

static void map_reduced(splitter *m, uint64_t reduced, bool keep, int32_t kind)
{
    const onxi_shard_value *x = input(m, 0);
    for (uint32_t k = 0, at = 0; k < x->rank; k++) {
        const bool gone = reduced >> k & 1;
        if (!gone || kind >= 0)
            m->r->map[0][k] = new_dim(m, x->dims[k], 0, gone ? (onxi_shard_kind)kind : ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; !gone && i < m->s->node->output_count; i++)
            row_of_output(m, i)[at] = m->r->map[0][k];
        at += !gone || keep;
    }
}

static void reduce(splitter *m)
{
    const onxi_shard_value *x = input(m, 0), *y = output(m, 0);
    const bool keep = int_attribute(m, "keepdims", 1) != 0;
    uint64_t reduced;
    uint32_t axis;
    int32_t kind = -1;
    if (m->s->bound->op == ONXI_ID_ArgMax || m->s->bound->op == ONXI_ID_ArgMin) {
        if (!axis_of(int_attribute(m, "axis", 0), x->rank, &axis))
            return;
        reduced = UINT64_C(1) << axis;
    } else if (!reduced_axes(m, x->rank, &reduced))
        return;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].op == m->s->bound->op && can_be_added(y->dtype) &&
            (reductions[i].kind != ONXI_SHARD_MEAN || y->dtype == ONX_FLOAT || y->dtype == ONX_DOUBLE))
            kind = (int32_t)reductions[i].kind;
    map_reduced(m, reduced, keep, kind);
}

/* ---- products ---- */

static void matmul(splitter *m)
{
    const onxi_shard_value *a = input(m, 0), *b = input(m, 1), *y = output(m, 0);
    if (!a->rank || !b || !b->rank)
        return;
    const uint32_t tail = (a->rank > 1 ? 1u : 0u) + (b->rank > 1 ? 1u : 0u); /* axes of the output behind the batch */
    const uint32_t a_batch = a->rank > 1 ? a->rank - 2 : 0, b_batch = b->rank > 1 ? b->rank - 2 : 0;
    if (y->rank != (a_batch > b_batch ? a_batch : b_batch) + tail)
        return;
    for (uint32_t k = 0; k + tail < y->rank; k++) {
        const uint32_t back = y->rank - tail - k; /* axes from here to the matrix */
        const int8_t dim = new_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
        row_of_output(m, 0)[k] = dim;
        if (a_batch >= back && a->dims[a_batch - back] == y->dims[k])
            m->r->map[0][a_batch - back] = dim;
        if (b_batch >= back && b->dims[b_batch - back] == y->dims[k])
            m->r->map[1][b_batch - back] = dim;
    }
    if (a->rank > 1)
        row_of_output(m, 0)[y->rank - tail] = m->r->map[0][a->rank - 2] =
            new_dim(m, a->dims[a->rank - 2], 0, ONXI_SHARD_PARALLEL);
    if (b->rank > 1)
        row_of_output(m, 0)[y->rank - 1] = m->r->map[1][b->rank - 1] =
            new_dim(m, b->dims[b->rank - 1], 0, ONXI_SHARD_PARALLEL);
    if (can_be_added(y->dtype))
        m->r->map[0][a->rank - 1] = m->r->map[1][b->rank > 1 ? b->rank - 2 : 0] =
            new_dim(m, a->dims[a->rank - 1], 0, ONXI_SHARD_SUM);
}

static void gemm(splitter *m)
{
    const onxi_shard_value *a = input(m, 0), *b = input(m, 1), *c = input(m, 2), *y = output(m, 0);
    const uint32_t turn_a = int_attribute(m, "transA", 0) != 0, turn_b = int_attribute(m, "transB", 0) != 0;
    if (a->rank != 2 || !b || b->rank != 2 || y->rank != 2)
        return;
    const int8_t rows = new_dim(m, y->dims[0], 0, ONXI_SHARD_PARALLEL);
    const int8_t columns = new_dim(m, y->dims[1], 0, ONXI_SHARD_PARALLEL);
    m->r->map[0][turn_a] = row_of_output(m, 0)[0] = rows;
    m->r->map[1][1 - turn_b] = row_of_output(m, 0)[1] = columns;
    for (uint32_t k = 0; c && c->rank <= 2 && k < c->rank; k++) {
        const uint32_t at = k + 2 - c->rank;
        if (c->dims[k] == y->dims[at])
            m->r->map[2][k] = at ? columns : rows;
    }
    if (!can_be_added(y->dtype) || (c && m->s->bound->opset < 11))
        return;
    m->r->map[0][1 - turn_a] = m->r->map[1][turn_b] = new_dim(m, a->dims[1 - turn_a], 0, ONXI_SHARD_SUM);
    m->r->once = c ? 2 : -1;
}

static void convolve(splitter *m)
{
    const onxi_shard_value *x = input(m, 0), *w = input(m, 1), *y = output(m, 0);
    const int64_t group = int_attribute(m, "group", 1);
    if (x->rank < 3 || !w || w->rank != x->rank || y->rank != x->rank)
        return;
    m->r->map[0][0] = row_of_output(m, 0)[0] = new_dim(m, x->dims[0], 0, ONXI_SHARD_PARALLEL);
    const int8_t channels = new_dim(m, group > 1 ? group : w->dims[0], group > 1 ? group : 0, ONXI_SHARD_PARALLEL);
    row_of_output(m, 0)[1] = m->r->map[1][0] = channels;
    if (input(m, 2))
        m->r->map[2][0] = channels;
    if (group > 1) {
        m->r->map[0][1] = channels;
        if (channels >= 0) {
            m->r->fix = ONXI_SHARD_GROUP;
            m->r->fix_dim = (uint32_t)channels;
        }
    } else if (can_be_added(y->dtype)) {
        m->r->map[0][1] = m->r->map[1][1] = new_dim(m, x->dims[1], 0, ONXI_SHARD_SUM);
        m->r->once = input(m, 2) ? 2 : -1;
    }
}

/* The letters of an equation without ellipsis, one dimension each. */
static void einsum(splitter *m)
{
    const onxi_attr_value *a = onxi_attrs_get(m->s->attrs, "equation", ONX_ATTR_STRING);
    int8_t dim[256];
    bool kept[256] = { false };
    memset(dim, -1, sizeof dim);
    const onx_str text = a ? a->s : onx_str_of("");
    const char *arrow = text.len > 1 ? memmem(text.ptr, text.len, "->", 2) : NULL;
    if (!arrow || memchr(text.ptr, '.', text.len))
        return;
    for (const char *p = arrow + 2; p < text.ptr + text.len; p++)
        kept[(unsigned char)*p] = true;
    uint32_t operand = 0, axis = 0;
    bool seen[256] = { false };
    for (const char *p = text.ptr; p < text.ptr + text.len; p++) {
        const bool out = p > arrow;
        if (*p == ',' || p == arrow) {
            operand += *p == ',';
            operand = p == arrow ? m->s->node->input_count : operand;
            axis = 0;
            memset(seen, 0, sizeof seen);
        }
        if (*p == ',' || *p == ' ' || *p == '-' || *p == '>')
            continue;
        const unsigned char c = (unsigned char)*p;
        const onxi_shard_value *v = operand > m->s->node->input_count   ? NULL
                                    : out                               ? output(m, 0)
                                    : operand < m->s->node->input_count ? input(m, operand)
                                                                        : NULL;
        if (!v || axis >= v->rank || seen[c])
            goto unknown; /* a diagonal, or something that is not understood */
        seen[c] = true;
        if (dim[c] < 0 && (kept[c] || can_be_added(output(m, 0)->dtype)))
            dim[c] = new_dim(m, v->dims[axis], 0, kept[c] ? ONXI_SHARD_PARALLEL : ONXI_SHARD_SUM);
        if (dim[c] >= 0 && m->r->dim[dim[c]].size != v->dims[axis])
            goto unknown;
        m->r->map[operand][axis++] = dim[c];
    }
    return;
unknown:
    forget(m);
}

/* ---- moves ---- */

static void transpose(splitter *m)
{
    const onxi_shard_value *x = input(m, 0);
    uint32_t count;
    const int64_t *perm = ints_attribute(m, "perm", &count);
    for (uint32_t k = 0; k < x->rank && (!perm || count == x->rank); k++) {
        const int64_t from = perm ? perm[k] : x->rank - 1 - k;
        if (from >= 0 && from < (int64_t)x->rank)
            row_of_output(m, 0)[k] = m->r->map[0][from] = new_dim(m, x->dims[from], 0, ONXI_SHARD_PARALLEL);
    }
}

/* Axes of both sides whose products are equal belong together; what is split is the outermost one of each side. */
static void reshape(splitter *m)
{
    const onxi_shard_value *x = input(m, 0), *y = output(m, 0);
    for (uint32_t i = 0, k = 0; i < x->rank && k < y->rank;) {
        while (i < x->rank && x->dims[i] == 1)
            i++;
        while (k < y->rank && y->dims[k] == 1)
            k++;
        if (i == x->rank || k == y->rank)
            break;
        const uint32_t from = i, to = k;
        int64_t a = x->dims[i++], b = y->dims[k++];
        while (a != b && (a < b ? i < x->rank : k < y->rank)) {
            if (a < b ? __builtin_mul_overflow(a, x->dims[i++], &a) : __builtin_mul_overflow(b, y->dims[k++], &b))
                return;
        }
        if (a != b || !a)
            break;
        const bool same = x->dims[from] == y->dims[to];
        const int64_t unit = same ? 0 : common_divisor(x->dims[from], y->dims[to]);
        m->r->map[0][from] = row_of_output(m, 0)[to] =
            new_dim(m, same ? x->dims[from] : unit, unit, ONXI_SHARD_PARALLEL);
    }
}

static void reshape_to(splitter *m)
{
    reshape(m);
    if (m->s->node->input_count < 2) /* before version 5 an attribute says the shape */
        m->r->dim_count = 0, memset(m->r->map, -1, sizeof *m->r->map * 2);
    else
        m->r->fix = ONXI_SHARD_SHAPE, m->r->unread = 1;
}

static void expand(splitter *m)
{
    elementwise(m);
    memset(m->r->map[1], -1, sizeof *m->r->map);
    m->r->fix = ONXI_SHARD_SHAPE;
    m->r->unread = 1;
}

static void concat(splitter *m)
{
    const onxi_shard_value *y = output(m, 0);
    uint32_t axis;
    if (!axis_of(int_attribute(m, "axis", 1), y->rank, &axis))
        return;
    for (uint32_t k = 0; k < y->rank; k++) {
        if (k == axis)
            continue;
        row_of_output(m, 0)[k] = new_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; i < m->s->node->input_count; i++)
            m->r->map[i][k] = row_of_output(m, 0)[k];
    }
}

static void split(splitter *m)
{
    uint32_t axis;
    if (axis_of(int_attribute(m, "axis", 0), input(m, 0)->rank, &axis))
        along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Axes that are not named stay as they are. */
static void slice(splitter *m)
{
    const onxi_shard_value *x = input(m, 0);
    uint32_t count = 0, starts, axis;
    uint64_t cut = 0;
    const bool by_input = m->s->node->input_count > 1, named = m->s->node->input_count > 3 && input(m, 3);
    const int64_t *axes = named ? constant_ints(m, 3, &count) : by_input ? NULL : ints_attribute(m, "axes", &count);
    if (named && !axes)
        return;
    if (!axes) { /* the first ones */
        if (by_input && (!input(m, 1) || input(m, 1)->rank != 1))
            return;
        starts = by_input ? (uint32_t)input(m, 1)->dims[0] : (ints_attribute(m, "starts", &count), count);
        cut = starts >= ONXI_SHARD_RANK ? UINT64_MAX : (UINT64_C(1) << starts) - 1;
    } else
        for (uint32_t i = 0; i < count; i++)
            if (axis_of(axes[i], x->rank, &axis))
                cut |= UINT64_C(1) << axis;
    along(m, ONXI_SHARD_RANK, cut);
}

/* What is padded or repeated gets longer; padding may also cut as much as it adds, so it has to be known. */
static void pad(splitter *m)
{
    const onxi_shard_value *x = input(m, 0);
    uint32_t count;
    uint64_t padded = 0;
    const int64_t *pads = m->s->node->input_count > 1 ? constant_ints(m, 1, &count) : ints_attribute(m, "pads", &count);
    if (!pads || count != 2 * x->rank)
        return;
    for (uint32_t k = 0; k < x->rank; k++)
        if (pads[k] || pads[k + x->rank])
            padded |= UINT64_C(1) << k;
    along(m, ONXI_SHARD_RANK, padded);
}

static void tile(splitter *m)
{
    along(m, ONXI_SHARD_RANK, 0);
}

/* Rows of a table may be on several devices: those that lack one give zeros, and all are added up. */
static void gather(splitter *m)
{
    const onxi_shard_value *x = input(m, 0), *index = input(m, 1), *y = output(m, 0);
    uint32_t axis;
    if (!index || !axis_of(int_attribute(m, "axis", 0), x->rank, &axis) || y->rank != x->rank - 1 + index->rank)
        return;
    for (uint32_t k = 0; k < y->rank; k++) {
        const bool of_index = k >= axis && k < axis + index->rank;
        const uint32_t from = of_index ? k - axis : k < axis ? k : k - index->rank + 1;
        row_of_output(m, 0)[k] = m->r->map[of_index][from] = new_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
    }
    const int8_t rows = can_be_added(y->dtype) ? new_dim(m, x->dims[axis], 0, ONXI_SHARD_SUM) : -1;
    if (rows < 0)
        return;
    m->r->map[0][axis] = rows;
    m->r->fix = ONXI_SHARD_LOOKUP;
    m->r->fix_dim = (uint32_t)rows;
}

/* ---- attention ---- */

/* The attributes that count heads of queries, and of keys and values. */
static const struct heads_row {
    onxi_op_id op;
    const char *queries, *keys;
} heads[] = { { ONXI_ID_Attention, "q_num_heads", "kv_num_heads" } };

/* It is stretched to batch, heads, queries and keys. */
static void map_mask(int8_t *row, const onxi_shard_value *mask, int64_t batch, int64_t queries, const int8_t dims[2])
{
    if (mask->rank == 4 && mask->dims[0] == batch)
        row[0] = dims[0];
    if (mask->rank >= 3 && mask->dims[mask->rank - 3] == queries)
        row[mask->rank - 3] = dims[1];
}

static void attention(splitter *m)
{
    const onxi_shard_value *q = input(m, 0), *k = input(m, 1), *v = input(m, 2);
    if (!k || !v || q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4)
        return;
    const int64_t queries = q->rank == 4 ? q->dims[1] : int_attribute(m, heads[0].queries, 0);
    const int64_t keys = q->rank == 4 ? k->dims[1] : int_attribute(m, heads[0].keys, 0);
    if (queries < 1 || keys < 1 || m->s->node->output_count > 3)
        return;
    const int64_t unit = common_divisor(queries, keys);
    const int8_t dims[2] = { new_dim(m, q->dims[0], 0, ONXI_SHARD_PARALLEL),
                             new_dim(m, unit, unit, ONXI_SHARD_PARALLEL) };
    for (uint32_t i = 0; i < m->s->node->input_count + m->s->node->output_count; i++) {
        const uint32_t in = m->s->node->input_count;
        const onxi_shard_value *x = i < in ? input(m, i) : output(m, i - in);
        if (i == 3 && i < in) {
            if (x)
                map_mask(m->r->map[i], x, q->dims[0], queries, dims);
        } else if (x && i == 6 && i < in) { /* how many keys are real, for each of the batch */
            if (x->rank == 1 && x->dims[0] == q->dims[0])
                m->r->map[i][0] = dims[0];
        } else if (x && x->rank >= 3) {
            m->r->map[i][0] = dims[0];
            m->r->map[i][x->rank == 4 ? 1 : 2] = dims[1];
        }
    }
    if (q->rank == 3 && dims[1] >= 0) {
        m->r->fix = ONXI_SHARD_HEADS;
        m->r->fix_dim = (uint32_t)dims[1];
    }
}

/* Positions turn all heads alike. */
static void rotary(splitter *m)
{
    const onxi_shard_value *x = input(m, 0);
    if (x->rank < 3 || x->rank > 4)
        return;
    const int64_t count = x->rank == 4 ? x->dims[1] : int_attribute(m, "num_heads", 0);
    const uint32_t axis = x->rank == 4 ? 1 : 2;
    if (count < 1 || x->dims[axis] % count)
        return;
    const int8_t dims[2] = { new_dim(m, x->dims[0], 0, ONXI_SHARD_PARALLEL),
                             new_dim(m, count, count, ONXI_SHARD_PARALLEL) };
    m->r->map[0][0] = row_of_output(m, 0)[0] = dims[0];
    m->r->map[0][axis] = row_of_output(m, 0)[axis] = dims[1];
    for (uint32_t i = 1; i < m->s->node->input_count; i++)
        if (input(m, i) && input(m, i)->rank == (i == 3 ? 2u : 3u) && input(m, i)->dims[0] == x->dims[0])
            m->r->map[i][0] = dims[0];
    if (x->rank == 3 && dims[1] >= 0) {
        m->r->fix = ONXI_SHARD_HEADS;
        m->r->fix_dim = (uint32_t)dims[1];
    }
}

/* ---- the table ---- */

static const struct rule_row {
    onxi_op_id op;
    void (*find)(splitter *m);
} rows[] = {
    { ONXI_ID_MatMul, matmul },
    { ONXI_ID_Gemm, gemm },
    { ONXI_ID_Conv, convolve },
    { ONXI_ID_Einsum, einsum },
    { ONXI_ID_Transpose, transpose },
    { ONXI_ID_Reshape, reshape_to },
    { ONXI_ID_Flatten, reshape },
    { ONXI_ID_Squeeze, reshape },
    { ONXI_ID_Unsqueeze, reshape },
    { ONXI_ID_Expand, expand },
    { ONXI_ID_Concat, concat },
    { ONXI_ID_Split, split },
    { ONXI_ID_Slice, slice },
    { ONXI_ID_Pad, pad },
    { ONXI_ID_Tile, tile },
    { ONXI_ID_Gather, gather },
    { ONXI_ID_Softmax, softmax },
    { ONXI_ID_LogSoftmax, softmax },
    { ONXI_ID_Hardmax, softmax },
    { ONXI_ID_LpNormalization, all_but_axis },
    { ONXI_ID_LayerNormalization, before_axis },
    { ONXI_ID_RMSNormalization, before_axis },
    { ONXI_ID_GroupNormalization, batch },
    { ONXI_ID_LRN, batch },
    { ONXI_ID_DepthToSpace, batch },
    { ONXI_ID_SpaceToDepth, batch },
    { ONXI_ID_BatchNormalization, batch_normalization },
    { ONXI_ID_InstanceNormalization, instance_normalization },
    { ONXI_ID_AveragePool, batch_and_channels },
    { ONXI_ID_MaxPool, batch_and_channels },
    { ONXI_ID_LpPool, batch_and_channels },
    { ONXI_ID_GlobalAveragePool, batch_and_channels },
    { ONXI_ID_GlobalMaxPool, batch_and_channels },
    { ONXI_ID_GlobalLpPool, batch_and_channels },
    { ONXI_ID_Trilu, all_but_last_two },
    { ONXI_ID_CumSum, all_but_input_axis },
    { ONXI_ID_TopK, all_but_axis },
    { ONXI_ID_QuantizeLinear, quantize },
    { ONXI_ID_DequantizeLinear, quantize },
    { ONXI_ID_Attention, attention },
    { ONXI_ID_RotaryEmbedding, rotary },
};

static bool operands_are_known(const splitter *m)
{
    const onx_node *n = m->s->node;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (input(m, i) && !input(m, i)->known)
            return false;
    for (uint32_t i = 0; i < n->output_count; i++)
        if (output(m, i) && !output(m, i)->known)
            return false;
    return n->input_count && input(m, 0) && n->output_count && output(m, 0);
}

/* Types that a model declares need not be what its operators give, as nobody has run it yet: a dimension that an
 * operand does not have is not split, and nothing is where the sizes contradict each other. */
static void keep_what_fits(splitter *m)
{
    const uint32_t in = m->s->node->input_count, operands = in + m->s->node->output_count;
    for (uint32_t i = 0; i < operands; i++) {
        const onxi_shard_value *v = i < in ? input(m, i) : output(m, i - in);
        for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++) {
            int8_t *at = &m->r->map[i][k];
            const onxi_shard_dim *d = *at < 0 ? NULL : &m->r->dim[*at];
            if (!v || k >= v->rank)
                *at = -1;
            else if (d && (d->unit ? v->dims[k] % d->unit != 0 : v->dims[k] != d->size)) {
                forget(m);
                return;
            }
        }
    }
}

static void find(splitter *m)
{
    const onxi_shard_subject *s = m->s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == s->bound->op) {
            rows[i].find(m);
            return;
        }
    if (onxi_operator_is(s->bound->op, ONXI_TRAIT_REDUCTION))
        reduce(m);
    else if (onxi_operator_is(s->bound->op, ONXI_TRAIT_ELEMENTWISE))
        elementwise(m);
}

void onxi_shard_rule_find(const onxi_shard_subject *s, onxi_shard_rule *rule)
{
    splitter m = { s, rule };
    if (s->bound->kind != ONXI_BOUND_OPERATOR || !operands_are_known(&m) ||
        (s->bound->schema && s->bound->schema->flags & ONXI_OP_NONDETERMINISTIC))
        return;
    find(&m);
    keep_what_fits(&m);
}
