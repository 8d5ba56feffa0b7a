/* shard_rules.c - how nodes may be split: which axes of operands belong to the same dimension of the node's iteration
 * space, and how results are combined if a reduced dimension is split. */
#include "shard/shard_rules.h"

#include <onx/tensor.h>

/* ---- operands ---- */

static const onxi_shard_value *value_at(const onxi_shard_subject *s, uint32_t value)
{
    return value == ONXI_SHARD_NONE ? NULL : &s->plan->value[value];
}

const onxi_shard_value *onxi_split_input(const onxi_splitter *m, uint32_t i)
{
    return i < m->s->node->input_count ? value_at(m->s, m->s->inputs[i]) : NULL;
}

const onxi_shard_value *onxi_split_output(const onxi_splitter *m, uint32_t i)
{
    return i < m->s->node->output_count ? value_at(m->s, m->s->outputs[i]) : NULL;
}

int8_t *onxi_split_output_row(const onxi_splitter *m, uint32_t i)
{
    return m->r->map[m->s->node->input_count + i];
}

static const int64_t *ints_attribute(const onxi_splitter *m, const char *name, uint32_t *count)
{
    const onxi_attr_value *a = onxi_attrs_get(m->s->attrs, name, ONX_ATTR_INTS);
    *count = a ? a->count : 0;
    return a ? a->list : NULL;
}

/* The elements of an input that is an initializer or Constant; NULL if it is neither, or has too many elements. */
static const int64_t *constant_ints(const onxi_splitter *m, uint32_t i, uint32_t *count)
{
    enum { MOST = 64 };
    const onxi_shard_value *v = onxi_split_input(m, i);
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

int8_t onxi_split_dim(const onxi_splitter *m, int64_t size, int64_t unit, onxi_shard_kind kind)
{
    if (m->r->dim_count == ONXI_SHARD_DIMS || size < 2)
        return -1;
    m->r->dim[m->r->dim_count] = (onxi_shard_dim){ size, unit, kind };
    return (int8_t)m->r->dim_count++;
}

int64_t onxi_split_common(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void onxi_split_nothing(const onxi_splitter *m)
{
    memset(m->r->map, -1, sizeof *m->r->map * (m->s->node->input_count + m->s->node->output_count));
    m->r->dim_count = 0;
    m->r->fix = ONXI_SHARD_KEEP;
    m->r->once = m->r->unread = -1;
}

/* ---- elementwise operators ---- */

/* All operands are aligned at their last axes with output 0; axes of size 1 are broadcast. */
void onxi_split_broadcast(onxi_splitter *m)
{
    const onxi_shard_value *y = onxi_split_output(m, 0);
    const uint32_t operands = m->s->node->input_count + m->s->node->output_count;
    int8_t dims[ONXI_SHARD_RANK];
    for (uint32_t k = 0; k < y->rank; k++)
        dims[k] = onxi_split_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
    for (uint32_t i = 0; i < operands; i++) {
        const uint32_t in = m->s->node->input_count;
        const onxi_shard_value *v = i < in ? onxi_split_input(m, i) : onxi_split_output(m, i - in);
        for (uint32_t k = 0; v && v->rank <= y->rank && k < v->rank; k++)
            if (v->dims[k] == y->dims[k + y->rank - v->rank])
                m->r->map[i][k] = dims[k + y->rank - v->rank];
    }
}

static void elementwise(onxi_splitter *m)
{
    if (m->s->bound->opset >= 7 || m->s->node->input_count < 2) /* earlier versions align axes differently */
        onxi_split_broadcast(m);
}

void onxi_split_along(onxi_splitter *m, uint32_t end, uint64_t whole)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *y = onxi_split_output(m, 0);
    for (uint32_t k = 0; k < x->rank && k < y->rank && k < end; k++) {
        if (whole >> k & 1 || x->dims[k] != y->dims[k])
            continue;
        m->r->map[0][k] = onxi_split_dim(m, x->dims[k], 0, ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; i < m->s->node->output_count; i++) {
            const onxi_shard_value *v = onxi_split_output(m, i);
            if (v && v->rank == y->rank && v->dims[k] == y->dims[k])
                onxi_split_output_row(m, i)[k] = m->r->map[0][k];
        }
    }
}

static void all_but_axis(onxi_splitter *m)
{
    uint32_t axis;
    if (axis_of(onxi_attrs_int(m->s->attrs, "axis"), onxi_split_input(m, 0)->rank, &axis))
        onxi_split_along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Before version 13 the tensor is flattened to a matrix whose rows begin at the axis. */
static void softmax(onxi_splitter *m)
{
    uint32_t axis;
    if (m->s->bound->opset >= 13)
        all_but_axis(m);
    else if (axis_of(onxi_attrs_int(m->s->attrs, "axis"), onxi_split_input(m, 0)->rank, &axis))
        onxi_split_along(m, axis, 0);
}

void onxi_split_before_axis(onxi_splitter *m)
{
    uint32_t axis;
    if (axis_of(onxi_attrs_int(m->s->attrs, "axis"), onxi_split_input(m, 0)->rank, &axis))
        onxi_split_along(m, axis, 0);
}

static void batch(onxi_splitter *m)
{
    onxi_split_along(m, 1, 0);
}

static void batch_and_channels(onxi_splitter *m)
{
    onxi_split_along(m, 2, 0);
}

static void batch_normalization(onxi_splitter *m)
{
    if (m->s->node->output_count > 1 || onxi_split_input(m, 0)->rank < 2)
        return;
    onxi_split_along(m, ONXI_SHARD_RANK, 0);
    for (uint32_t i = 1; i < m->s->node->input_count; i++)
        m->r->map[i][0] = m->r->map[0][1];
}

static void instance_normalization(onxi_splitter *m)
{
    onxi_split_along(m, 2, 0);
    for (uint32_t i = 1; i < m->s->node->input_count && onxi_split_input(m, 0)->rank > 1; i++)
        m->r->map[i][0] = m->r->map[0][1];
}

static void all_but_last_two(onxi_splitter *m)
{
    onxi_split_along(m, onxi_split_input(m, 0)->rank < 2 ? 0 : onxi_split_input(m, 0)->rank - 2, 0);
}

/* An axis that is an input. */
static void all_but_input_axis(onxi_splitter *m)
{
    uint32_t axis, count;
    const int64_t *at = constant_ints(m, 1, &count);
    if (at && count == 1 && axis_of(at[0], onxi_split_input(m, 0)->rank, &axis))
        onxi_split_along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Scales with one element, or with one per index of an axis. */
static void quantize(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *scale = onxi_split_input(m, 1);
    uint32_t axis;
    if (!scale || scale->rank > 1 || !axis_of(onxi_attrs_int(m->s->attrs, "axis"), x->rank ? x->rank : 2, &axis))
        return;
    onxi_split_along(m, ONXI_SHARD_RANK, 0);
    for (uint32_t i = 1; i < m->s->node->input_count && scale->rank == 1 && axis < x->rank; i++)
        if (onxi_split_input(m, i) && onxi_split_input(m, i)->rank == 1 &&
            onxi_split_input(m, i)->dims[0] == x->dims[axis])
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

bool onxi_split_adds(int32_t dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16 ||
           dtype == ONX_INT32 || dtype == ONX_INT64 || dtype == ONX_UINT32 || dtype == ONX_UINT64;
}

/* The reduced axes as a bit mask; false if they are not known. */
static bool reduced_axes(onxi_splitter *m, uint32_t rank, uint64_t *out)
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
    if (!count && onxi_attrs_int(m->s->attrs, "noop_with_empty_axes"))
        return false;
    if (!count)
        *out = (UINT64_C(1) << rank) - 1;
    return true;
}

static void map_reduced(onxi_splitter *m, uint64_t reduced, bool keep, int32_t kind)
{
    const onxi_shard_value *x = onxi_split_input(m, 0);
    for (uint32_t k = 0, at = 0; k < x->rank; k++) {
        const bool gone = reduced >> k & 1;
        if (!gone || kind >= 0)
            m->r->map[0][k] = onxi_split_dim(m, x->dims[k], 0, gone ? (onxi_shard_kind)kind : ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; !gone && i < m->s->node->output_count; i++)
            onxi_split_output_row(m, i)[at] = m->r->map[0][k];
        at += !gone || keep;
    }
}

static void reduce(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *y = onxi_split_output(m, 0);
    const bool keep = onxi_attrs_int(m->s->attrs, "keepdims") == 1;
    uint64_t reduced;
    uint32_t axis;
    int32_t kind = -1;
    if (m->s->bound->op == ONXI_ID_ArgMax || m->s->bound->op == ONXI_ID_ArgMin) {
        if (!axis_of(onxi_attrs_int(m->s->attrs, "axis"), x->rank, &axis))
            return;
        reduced = UINT64_C(1) << axis;
    } else if (!reduced_axes(m, x->rank, &reduced))
        return;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].op == m->s->bound->op && onxi_split_adds(y->dtype) &&
            (reductions[i].kind != ONXI_SHARD_MEAN || y->dtype == ONX_FLOAT || y->dtype == ONX_DOUBLE))
            kind = (int32_t)reductions[i].kind;
    map_reduced(m, reduced, keep, kind);
}

/* ---- products ---- */

/* `turn_a` and `turn_b`: the operand's last two axes are transposed first. */
void onxi_split_product(onxi_splitter *m, bool turn_a, bool turn_b)
{
    const onxi_shard_value *a = onxi_split_input(m, 0), *b = onxi_split_input(m, 1), *y = onxi_split_output(m, 0);
    if (!a->rank || !b || !b->rank || (turn_a && a->rank < 2) || (turn_b && b->rank < 2))
        return;
    const uint32_t tail = (a->rank > 1 ? 1u : 0u) + (b->rank > 1 ? 1u : 0u); /* axes of the output after the batch */
    const uint32_t a_batch = a->rank > 1 ? a->rank - 2 : 0, b_batch = b->rank > 1 ? b->rank - 2 : 0;
    const uint32_t a_inner = turn_a ? a_batch : a->rank - 1, b_inner = turn_b ? b->rank - 1 : b_batch;
    if (y->rank != (a_batch > b_batch ? a_batch : b_batch) + tail)
        return;
    for (uint32_t k = 0; k + tail < y->rank; k++) {
        const uint32_t back = y->rank - tail - k; /* axes from here to the matrix */
        const int8_t dim = onxi_split_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
        onxi_split_output_row(m, 0)[k] = dim;
        if (a_batch >= back && a->dims[a_batch - back] == y->dims[k])
            m->r->map[0][a_batch - back] = dim;
        if (b_batch >= back && b->dims[b_batch - back] == y->dims[k])
            m->r->map[1][b_batch - back] = dim;
    }
    if (a->rank > 1) {
        const uint32_t rows = turn_a ? a->rank - 1 : a_batch;
        onxi_split_output_row(m, 0)[y->rank - tail] = m->r->map[0][rows] =
            onxi_split_dim(m, a->dims[rows], 0, ONXI_SHARD_PARALLEL);
    }
    if (b->rank > 1) {
        const uint32_t columns = turn_b ? b_batch : b->rank - 1;
        onxi_split_output_row(m, 0)[y->rank - 1] = m->r->map[1][columns] =
            onxi_split_dim(m, b->dims[columns], 0, ONXI_SHARD_PARALLEL);
    }
    if (onxi_split_adds(y->dtype))
        m->r->map[0][a_inner] = m->r->map[1][b_inner] = onxi_split_dim(m, a->dims[a_inner], 0, ONXI_SHARD_SUM);
}

static void matmul(onxi_splitter *m)
{
    onxi_split_product(m, false, false);
}

static void gemm(onxi_splitter *m)
{
    const onxi_shard_value *a = onxi_split_input(m, 0), *b = onxi_split_input(m, 1), *c = onxi_split_input(m, 2),
                           *y = onxi_split_output(m, 0);
    const uint32_t turn_a = onxi_attrs_int(m->s->attrs, "transA") != 0,
                   turn_b = onxi_attrs_int(m->s->attrs, "transB") != 0;
    if (a->rank != 2 || !b || b->rank != 2 || y->rank != 2)
        return;
    const int8_t rows = onxi_split_dim(m, y->dims[0], 0, ONXI_SHARD_PARALLEL);
    const int8_t columns = onxi_split_dim(m, y->dims[1], 0, ONXI_SHARD_PARALLEL);
    m->r->map[0][turn_a] = onxi_split_output_row(m, 0)[0] = rows;
    m->r->map[1][1 - turn_b] = onxi_split_output_row(m, 0)[1] = columns;
    for (uint32_t k = 0; c && c->rank <= 2 && k < c->rank; k++) {
        const uint32_t at = k + 2 - c->rank;
        if (c->dims[k] == y->dims[at])
            m->r->map[2][k] = at ? columns : rows;
    }
    if (!onxi_split_adds(y->dtype) || (c && m->s->bound->opset < 11))
        return;
    m->r->map[0][1 - turn_a] = m->r->map[1][turn_b] = onxi_split_dim(m, a->dims[1 - turn_a], 0, ONXI_SHARD_SUM);
    m->r->once = c ? 2 : -1;
}

static void convolve(onxi_splitter *m)
{
    static const char *const groups[] = { "group", NULL };
    const onxi_shard_value *x = onxi_split_input(m, 0), *w = onxi_split_input(m, 1), *y = onxi_split_output(m, 0);
    const int64_t group = onxi_attrs_int(m->s->attrs, "group");
    if (x->rank < 3 || !w || w->rank != x->rank || y->rank != x->rank)
        return;
    m->r->map[0][0] = onxi_split_output_row(m, 0)[0] = onxi_split_dim(m, x->dims[0], 0, ONXI_SHARD_PARALLEL);
    const int8_t channels =
        onxi_split_dim(m, group > 1 ? group : w->dims[0], group > 1 ? group : 0, ONXI_SHARD_PARALLEL);
    onxi_split_output_row(m, 0)[1] = m->r->map[1][0] = channels;
    if (onxi_split_input(m, 2))
        m->r->map[2][0] = channels;
    if (group > 1) {
        m->r->map[0][1] = channels;
        if (channels >= 0) {
            m->r->fix = ONXI_SHARD_COUNTS;
            m->r->fix_dim = (uint32_t)channels;
            m->r->names = groups;
        }
    } else if (onxi_split_adds(y->dtype)) {
        m->r->map[0][1] = m->r->map[1][1] = onxi_split_dim(m, x->dims[1], 0, ONXI_SHARD_SUM);
        m->r->once = onxi_split_input(m, 2) ? 2 : -1;
    }
}

/* The letters of an equation without ellipsis; each is a dimension. */
static void einsum(onxi_splitter *m)
{
    const onxi_attr_value *a = onxi_attrs_get(m->s->attrs, "equation", ONX_ATTR_STRING);
    int8_t dim[256];
    bool kept[256] = { false };
    memset(dim, -1, sizeof dim);
    const onx_str text = a ? a->s : onx_str_of("");
    const char *arrow = text.len > 1 ? memmem(text.ptr, text.len, "->", 2) : NULL;
    if (!arrow || memchr(text.ptr, '.', text.len))
        return;
    for (const char *p = arrow + 2; p < onxi_str_end(text); p++)
        kept[(unsigned char)*p] = true;
    uint32_t operand = 0, axis = 0;
    bool seen[256] = { false };
    for (const char *p = text.ptr; p < onxi_str_end(text); p++) {
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
                                    : out                               ? onxi_split_output(m, 0)
                                    : operand < m->s->node->input_count ? onxi_split_input(m, operand)
                                                                        : NULL;
        if (!v || axis >= v->rank || seen[c])
            goto unknown; /* a diagonal, or an unsupported equation */
        seen[c] = true;
        if (dim[c] < 0 && (kept[c] || onxi_split_adds(onxi_split_output(m, 0)->dtype)))
            dim[c] = onxi_split_dim(m, v->dims[axis], 0, kept[c] ? ONXI_SHARD_PARALLEL : ONXI_SHARD_SUM);
        if (dim[c] >= 0 && m->r->dim[dim[c]].size != v->dims[axis])
            goto unknown;
        m->r->map[operand][axis++] = dim[c];
    }
    return;
unknown:
    onxi_split_nothing(m);
}

/* ---- operators that move data ---- */

static void transpose(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0);
    uint32_t count;
    const int64_t *perm = ints_attribute(m, "perm", &count);
    for (uint32_t k = 0; k < x->rank && (!perm || count == x->rank); k++) {
        const int64_t from = perm ? perm[k] : x->rank - 1 - k;
        if (from >= 0 && from < (int64_t)x->rank)
            onxi_split_output_row(m, 0)[k] = m->r->map[0][from] =
                onxi_split_dim(m, x->dims[from], 0, ONXI_SHARD_PARALLEL);
    }
}

/* Groups of axes with equal products correspond; of each group, only the outermost axis can be split. */
static void reshape(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *y = onxi_split_output(m, 0);
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
        const int64_t unit = same ? 0 : onxi_split_common(x->dims[from], y->dims[to]);
        m->r->map[0][from] = onxi_split_output_row(m, 0)[to] =
            onxi_split_dim(m, same ? x->dims[from] : unit, unit, ONXI_SHARD_PARALLEL);
    }
}

static void reshape_to(onxi_splitter *m)
{
    reshape(m);
    if (m->s->node->input_count < 2) /* before version 5 the shape is an attribute */
        m->r->dim_count = 0, memset(m->r->map, -1, sizeof *m->r->map * 2);
    else
        m->r->fix = ONXI_SHARD_SHAPE, m->r->unread = 1;
}

static void expand(onxi_splitter *m)
{
    elementwise(m);
    memset(m->r->map[1], -1, sizeof *m->r->map);
    m->r->fix = ONXI_SHARD_SHAPE;
    m->r->unread = 1;
}

static void concat(onxi_splitter *m)
{
    const onxi_shard_value *y = onxi_split_output(m, 0);
    uint32_t axis;
    if (!axis_of(onxi_attrs_int(m->s->attrs, "axis"), y->rank, &axis))
        return;
    for (uint32_t k = 0; k < y->rank; k++) {
        if (k == axis)
            continue;
        onxi_split_output_row(m, 0)[k] = onxi_split_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
        for (uint32_t i = 0; i < m->s->node->input_count; i++)
            m->r->map[i][k] = onxi_split_output_row(m, 0)[k];
    }
}

static void split(onxi_splitter *m)
{
    uint32_t axis;
    if (axis_of(onxi_attrs_int(m->s->attrs, "axis"), onxi_split_input(m, 0)->rank, &axis))
        onxi_split_along(m, ONXI_SHARD_RANK, UINT64_C(1) << axis);
}

/* Axes that are not named are not affected. */
static void slice(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0);
    uint32_t count = 0, starts, axis;
    uint64_t cut = 0;
    const bool by_input = m->s->node->input_count > 1, named = m->s->node->input_count > 3 && onxi_split_input(m, 3);
    const int64_t *axes = named ? constant_ints(m, 3, &count) : by_input ? NULL : ints_attribute(m, "axes", &count);
    if (named && !axes)
        return;
    if (!axes) { /* the first axes */
        if (by_input && (!onxi_split_input(m, 1) || onxi_split_input(m, 1)->rank != 1))
            return;
        starts = by_input ? (uint32_t)onxi_split_input(m, 1)->dims[0] : (ints_attribute(m, "starts", &count), count);
        cut = starts >= ONXI_SHARD_RANK ? UINT64_MAX : (UINT64_C(1) << starts) - 1;
    } else
        for (uint32_t i = 0; i < count; i++)
            if (axis_of(axes[i], x->rank, &axis))
                cut |= UINT64_C(1) << axis;
    onxi_split_along(m, ONXI_SHARD_RANK, cut);
}

/* Padded or repeated axes change their size; padding may also remove as much as it adds, so it has to be constant. */
static void pad(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0);
    uint32_t count;
    uint64_t padded = 0;
    const int64_t *pads = m->s->node->input_count > 1 ? constant_ints(m, 1, &count) : ints_attribute(m, "pads", &count);
    if (!pads || count != 2 * x->rank)
        return;
    for (uint32_t k = 0; k < x->rank; k++)
        if (pads[k] || pads[k + x->rank])
            padded |= UINT64_C(1) << k;
    onxi_split_along(m, ONXI_SHARD_RANK, padded);
}

static void tile(onxi_splitter *m)
{
    onxi_split_along(m, ONXI_SHARD_RANK, 0);
}

/* The rows of a table may be distributed: devices without a row yield zeros, and the results are added up. */
static void gather(onxi_splitter *m)
{
    const onxi_shard_value *x = onxi_split_input(m, 0), *index = onxi_split_input(m, 1), *y = onxi_split_output(m, 0);
    uint32_t axis;
    if (!index || !axis_of(onxi_attrs_int(m->s->attrs, "axis"), x->rank, &axis) || y->rank != x->rank - 1 + index->rank)
        return;
    for (uint32_t k = 0; k < y->rank; k++) {
        const bool of_index = k >= axis && k < axis + index->rank;
        const uint32_t from = of_index ? k - axis : k < axis ? k : k - index->rank + 1;
        onxi_split_output_row(m, 0)[k] = m->r->map[of_index][from] =
            onxi_split_dim(m, y->dims[k], 0, ONXI_SHARD_PARALLEL);
    }
    const int8_t rows = onxi_split_adds(y->dtype) ? onxi_split_dim(m, x->dims[axis], 0, ONXI_SHARD_SUM) : -1;
    if (rows < 0)
        return;
    m->r->map[0][axis] = rows;
    m->r->fix = ONXI_SHARD_LOOKUP;
    m->r->fix_dim = (uint32_t)rows;
}

/* ---- the table ---- */

static const onxi_split_row rows[] = {
    { .op = ONXI_ID_MatMul,
      .find = matmul,
      .operations = onxi_split_work_of_dims,
      .product = true,
      .columns = onxi_apart_of_product },
    { .op = ONXI_ID_Gemm,
      .find = gemm,
      .operations = onxi_split_work_of_dims,
      .product = true,
      .columns = onxi_apart_of_gemm },
    { .op = ONXI_ID_Add, .columns = onxi_apart_of_sum },
    { .op = ONXI_ID_Conv, .find = convolve, .operations = onxi_split_work_of_windows },
    { .op = ONXI_ID_ConvTranspose, .operations = onxi_split_work_of_windows_back },
    { .op = ONXI_ID_Einsum, .find = einsum, .operations = onxi_split_work_of_dims },
    { .op = ONXI_ID_Transpose, .find = transpose },
    { .op = ONXI_ID_Reshape, .find = reshape_to },
    { .op = ONXI_ID_Flatten, .find = reshape },
    { .op = ONXI_ID_Squeeze, .find = reshape },
    { .op = ONXI_ID_Unsqueeze, .find = reshape },
    { .op = ONXI_ID_Expand, .find = expand },
    { .op = ONXI_ID_Concat, .find = concat },
    { .op = ONXI_ID_Split, .find = split },
    { .op = ONXI_ID_Slice, .find = slice },
    { .op = ONXI_ID_Pad, .find = pad },
    { .op = ONXI_ID_Tile, .find = tile },
    { .op = ONXI_ID_Gather, .find = gather },
    { .op = ONXI_ID_Softmax, .find = softmax },
    { .op = ONXI_ID_LogSoftmax, .find = softmax },
    { .op = ONXI_ID_Hardmax, .find = softmax },
    { .op = ONXI_ID_LpNormalization, .find = all_but_axis },
    { .op = ONXI_ID_LayerNormalization, .find = onxi_split_before_axis },
    { .op = ONXI_ID_RMSNormalization, .find = onxi_split_before_axis },
    { .op = ONXI_ID_GroupNormalization, .find = batch },
    { .op = ONXI_ID_LRN, .find = batch },
    { .op = ONXI_ID_DepthToSpace, .find = batch },
    { .op = ONXI_ID_SpaceToDepth, .find = batch },
    { .op = ONXI_ID_BatchNormalization, .find = batch_normalization },
    { .op = ONXI_ID_InstanceNormalization, .find = instance_normalization },
    { .op = ONXI_ID_AveragePool, .find = batch_and_channels },
    { .op = ONXI_ID_MaxPool, .find = batch_and_channels },
    { .op = ONXI_ID_LpPool, .find = batch_and_channels },
    { .op = ONXI_ID_GlobalAveragePool, .find = batch_and_channels },
    { .op = ONXI_ID_GlobalMaxPool, .find = batch_and_channels },
    { .op = ONXI_ID_GlobalLpPool, .find = batch_and_channels },
    { .op = ONXI_ID_Trilu, .find = all_but_last_two },
    { .op = ONXI_ID_CumSum, .find = all_but_input_axis },
    { .op = ONXI_ID_TopK, .find = all_but_axis },
    { .op = ONXI_ID_QuantizeLinear, .find = quantize },
    { .op = ONXI_ID_DequantizeLinear, .find = quantize },
    { .op = ONXI_ID_Attention, .find = onxi_split_attention, .operations = onxi_split_work_of_attention },
    { .op = ONXI_ID_RotaryEmbedding, .find = onxi_split_rotary },
    { .op = ONXI_ID_RNN, .find = onxi_split_recurrent },
    { .op = ONXI_ID_GRU, .find = onxi_split_recurrent },
    { .op = ONXI_ID_LSTM, .find = onxi_split_recurrent },
    { .op = ONXI_ID_NONE },
};

/* Tables of the domains with their own folder (CMakeLists.txt): lines SPLITS(table). */
#define SPLITS(name) extern const onxi_split_row onxi_splits_##name[];
#include "shard_domains.inc"
#undef SPLITS
#define SPLITS(name) onxi_splits_##name,
static const onxi_split_row *const tables[] = { rows,
#include "shard_domains.inc"
                                                NULL };

const onxi_split_row *onxi_split_row_find(onxi_op_id op)
{
    for (const onxi_split_row *const *table = tables; *table; table++)
        for (const onxi_split_row *row = *table; row->op != ONXI_ID_NONE; row++)
            if (row->op == op)
                return row;
    return NULL;
}

static bool operands_are_known(const onxi_splitter *m)
{
    const onx_node *n = m->s->node;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (onxi_split_input(m, i) && !onxi_split_input(m, i)->known)
            return false;
    for (uint32_t i = 0; i < n->output_count; i++)
        if (onxi_split_output(m, i) && !onxi_split_output(m, i)->known)
            return false;
    return n->input_count && onxi_split_input(m, 0) && n->output_count && onxi_split_output(m, 0);
}

/* Types that a model declares may differ from what its operators produce, because it has not run yet: a dimension that
 * an operand lacks is not split, and nothing is split if sizes contradict each other. */
static void keep_what_fits(onxi_splitter *m)
{
    const uint32_t in = m->s->node->input_count, operands = in + m->s->node->output_count;
    for (uint32_t i = 0; i < operands; i++) {
        const onxi_shard_value *v = i < in ? onxi_split_input(m, i) : onxi_split_output(m, i - in);
        for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++) {
            int8_t *at = &m->r->map[i][k];
            const onxi_shard_dim *d = *at < 0 ? NULL : &m->r->dim[*at];
            if (!v || k >= v->rank)
                *at = -1;
            else if (d && (d->unit ? v->dims[k] % d->unit != 0 : v->dims[k] != d->size)) {
                onxi_split_nothing(m);
                return;
            }
        }
    }
}

static bool lies_along(const onxi_splitter *m, uint32_t operand, uint32_t dim)
{
    for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++)
        if (m->r->map[operand][k] == (int8_t)dim)
            return true;
    return false;
}

/* A split without partial results splits all outputs: if an output does not have the dimension, because its declared
 * type is not what the operator produces, nothing is split. */
static void keep_what_is_made(onxi_splitter *m)
{
    const uint32_t in = m->s->node->input_count;
    for (uint32_t d = 0; d < m->r->dim_count; d++) {
        bool used = false;
        for (uint32_t i = 0; i < in; i++)
            used |= lies_along(m, i, d);
        for (uint32_t i = 0; used && i < m->s->node->output_count; i++)
            if (m->r->dim[d].kind == ONXI_SHARD_PARALLEL && onxi_split_output(m, i) && !lies_along(m, in + i, d)) {
                onxi_split_nothing(m);
                return;
            }
    }
}

static void find(onxi_splitter *m, const onxi_split_row *row)
{
    if (row && row->find)
        row->find(m);
    else if (onxi_operator_is(m->s->bound->op, ONXI_TRAIT_REDUCTION))
        reduce(m);
    else if (onxi_operator_is(m->s->bound->op, ONXI_TRAIT_ELEMENTWISE))
        elementwise(m);
}

void onxi_shard_rule_find(const onxi_shard_subject *s, const onxi_split_row *row, onxi_shard_rule *rule)
{
    onxi_splitter m = { s, rule };
    if (s->bound->kind != ONXI_BOUND_OPERATOR || !operands_are_known(&m) ||
        (s->bound->schema && s->bound->schema->flags & ONXI_OP_NONDETERMINISTIC))
        return;
    find(&m, row);
    keep_what_fits(&m);
    keep_what_is_made(&m);
}
