/* move.c - what Slice, Pad, Tile and Split share: a description of where each index comes from is checked once,
 * and one loop copies runs of elements. */
#include "kernel/core/move.h"

/* ---- describing a move ---- */

const onx_value *onxi_move_input(const onxi_move_call *call, uint32_t index)
{
    return onxi_operand(call->p->input_count, call->inputs, index);
}

int64_t onxi_move_number(const onx_value *v, uint64_t index)
{
    int64_t out = 0;
    onx_convert(ONX_INT64, &out, (onx_dtype)v->dtype, (const char *)v->data + index * (onx_dtype_bits(v->dtype) / 8), 1,
                true);
    return out;
}

static onx_status move_start(const onxi_move_call *call, onxi_move *m)
{
    const onx_value *x = call->inputs[0];
    memset(m, 0, sizeof *m);
    m->rank = x->rank;
    m->bits = x->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(x->dtype);
    if (!m->bits)
        return ONX_E_UNSUPPORTED;
    uint64_t stride = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        m->axis[d] = (onxi_move_axis){ .out = x->dims[d], .step = 1, .count = x->dims[d], .stride = stride };
        stride *= (uint64_t)x->dims[d];
    }
    return ONX_OK;
}

static bool stays_inside(const onxi_move_axis *a)
{
    if (a->out == 0)
        return true;
    if (a->mode == ONXI_MOVE_FILL)
        return true;
    if (a->mode != ONXI_MOVE_EXACT)
        return a->count > 0;
    int64_t way, last;
    return onxi_mul_i64(a->out - 1, a->step, &way) && onxi_add_i64(a->offset, way, &last) && a->offset >= a->low &&
           a->offset - a->low < a->count && last >= a->low && last - a->low < a->count;
}

static bool is_whole(const onxi_move_axis *a)
{
    return a->offset == 0 && a->step == 1 && a->low == 0 && a->out == a->count;
}

static onx_status move_finish(const onxi_move_call *call, onxi_move *m)
{
    const onx_value *y = call->output;
    if (y->rank != m->rank)
        return ONXI_MOVE_FAIL(call, "the output has rank %u, expected %u", y->rank, m->rank);
    for (uint32_t d = 0; d < m->rank; d++)
        if (y->dims[d] != m->axis[d].out)
            return ONXI_MOVE_FAIL(call, "dimension %u of the output is %lld, expected %lld", d, (long long)y->dims[d],
                                  (long long)m->axis[d].out);
    m->inner = 1;
    m->rows = 0;
    if (!y->count)
        return ONX_OK;
    for (uint32_t d = 0; d < m->rank; d++)
        if (!stays_inside(&m->axis[d]))
            return ONXI_MOVE_FAIL(call, "dimension %u would be made from elements that are not there", d);
    while (m->rank && is_whole(&m->axis[m->rank - 1]))
        m->inner *= (uint64_t)m->axis[--m->rank].out;
    if (!m->rank) {
        m->axis[0] = (onxi_move_axis){ .out = 1, .step = 1, .count = 1 };
        m->rank = 1;
    }
    m->rows = 1;
    for (uint32_t d = 0; d + 1 < m->rank; d++)
        m->rows *= (uint64_t)m->axis[d].out;
    return ONX_OK;
}

/* ---- copying ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where output index `o` comes from (-1: it is filled), and for how many indexes that just continues. */
static int64_t run_at(const onxi_move_axis *a, int64_t o, int64_t *from)
{
    int64_t at = a->offset + o * a->step, left = a->out - o, high = a->low + a->count;
    *from = at;
    if (a->mode == ONXI_MOVE_EXACT)
        return a->step == 1 ? left : 1;
    if (at >= a->low && at < high)
        return least(high - at, left);
    int64_t rest = at - a->low, period = a->mode == ONXI_MOVE_REFLECT ? 2 * (a->count - 1) : a->count;
    switch (a->mode) {
    case ONXI_MOVE_EDGE:
        *from = at < a->low ? a->low : high - 1;
        return 1;
    case ONXI_MOVE_REFLECT:
    case ONXI_MOVE_WRAP:
        rest = period > 0 ? rest % period : 0;
        rest += rest < 0 ? period : 0;
        *from = a->low + (rest < a->count ? rest : period - rest);
        return rest < a->count && period > 0 ? least(a->count - rest, left) : 1;
    default:
        *from = -1;
        return at < a->low ? least(a->low - at, left) : left;
    }
}

void onxi_move_copy(uint32_t bits, const onx_value *x, uint64_t from, onx_value *y, uint64_t to, uint64_t count)
{
    if (bits < 8) {
        for (uint64_t i = 0; i < count; i++)
            onxi_move_bits(bits, x->data, from + i, y->data, to + i);
        return;
    }
    uint64_t width = bits / 8;
    const char *source = (const char *)x->data + from * width;
    char *target = (char *)y->data + to * width;
    if (source == target)
        return;
    if (count == 1 && width == 4)
        memcpy(target, source, 4);
    else if (count == 1 && width == 8)
        memcpy(target, source, 8);
    else
        memcpy(target, source, count * width);
}

/* What is filled already is copied, up to a part that caches hold. */
static void fill_run(uint32_t bits, const void *fill, onx_value *y, uint64_t to, uint64_t count)
{
    const uint64_t width = bits / 8, most = 8192;
    char *at = (char *)y->data + to * width;
    if (bits < 8) {
        for (uint64_t i = 0; i < count; i++)
            onxi_move_bits(bits, fill, 0, y->data, to + i);
        return;
    }
    for (uint64_t done = 0, n; done < count; done += n) {
        n = done < most ? done : most;
        n = !done ? 1 : n < count - done ? n : count - done;
        memcpy(at + done * width, done ? at : fill, (size_t)(n * width));
    }
}

static void move_rows(const onxi_move *m, const onx_value *x, onx_value *y, const void *fill, uint64_t first,
                      uint64_t last)
{
    const onxi_move_axis *along = &m->axis[m->rank - 1];
    for (uint64_t row = first; row < last; row++) {
        uint64_t rest = row, base = 0, to = row * (uint64_t)along->out * m->inner;
        bool filled = false;
        for (uint32_t d = m->rank - 1; d-- > 0;) {
            int64_t from;
            run_at(&m->axis[d], (int64_t)(rest % (uint64_t)m->axis[d].out), &from);
            rest /= (uint64_t)m->axis[d].out;
            filled |= from < 0;
            base += (uint64_t)from * m->axis[d].stride;
        }
        if (filled) {
            fill_run(m->bits, fill, y, to, (uint64_t)along->out * m->inner);
            continue;
        }
        for (int64_t o = 0; o < along->out;) {
            int64_t from, count = run_at(along, o, &from);
            if (from < 0)
                fill_run(m->bits, fill, y, to, (uint64_t)count * m->inner);
            else
                onxi_move_copy(m->bits, x, base + (uint64_t)from * along->stride, y, to, (uint64_t)count * m->inner);
            to += (uint64_t)count * m->inner;
            o += count;
        }
    }
}

/* ---- the move is known while preparing, or it depends on data ---- */

static bool is_known(const onx_prepare *p, const onxi_move_body *body)
{
    for (uint32_t i = 1; i < p->input_count; i++)
        if (i != body->fill_input && p->inputs[i] && !p->inputs[i]->data)
            return false;
    return p->outputs[0] && p->outputs[0]->kind == ONX_VALUE_TENSOR;
}

onx_status onxi_move_prepare(onx_prepare *p)
{
    const onxi_move_body *body = p->kernel->body;
    onxi_move_params *q = ONXI_NEW(p->arena, onxi_move_params);
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    q->known = is_known(p, body);
    if (!q->known)
        return (q->kept = onxi_prepare_keep(p)) ? ONX_OK : ONX_E_MEMORY;
    const onxi_move_call call = { .p = p, .inputs = p->inputs, .output = p->outputs[0] };
    ONX_TRY(move_start(&call, &q->move));
    ONX_TRY(body->describe(&call, &q->move));
    ONX_TRY(move_finish(&call, &q->move));
    p->rows = q->move.rows;
    uint64_t row = q->move.rows ? (uint64_t)q->move.axis[q->move.rank - 1].out * q->move.inner : 1;
    p->grain = q->move.bits < 8 ? p->rows + 1 : ONXI_MOVE_GRAIN / row + 1; /* threads do not share bytes */
    return ONX_OK;
}

/* The output as described, for versions whose shape no rule can tell. */
static onx_status size_output(const onxi_move *m, const onx_value *x, onx_value *y)
{
    int64_t dims[ONX_RANK_MAX];
    for (uint32_t d = 0; d < m->rank; d++)
        dims[d] = m->axis[d].out;
    return onxi_value_size(y, x->dtype, m->rank, dims);
}

onx_status onxi_move_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_move_params *q = work->params;
    const onxi_move_body *body = work->prepared->kernel->body;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    const onx_value *value =
        body->fill_input ? onxi_operand(work->prepared->input_count, work->inputs, body->fill_input) : NULL;
    if (value && value->dtype != x->dtype)
        return onx_work_fail(work, ONX_E_INVALID, "the value to fill with is %s, the input %s",
                             onx_dtype_name(value->dtype), onx_dtype_name(x->dtype));
    const void *fill = value && value->count ? value->data : q->fill;
    if (q->known) {
        move_rows(&q->move, x, y, fill, first, last);
        return ONX_OK;
    }
    onxi_move own;
    const onx_prepare again = onxi_prepare_again(q->kept, work);
    const onxi_move_call call = { .p = &again, .inputs = work->inputs, .output = y };
    ONX_TRY(move_start(&call, &own));
    ONX_TRY(body->describe(&call, &own));
    if (work->prepared->kernel->flags & ONX_KERNEL_SIZES_OUTPUT)
        ONX_TRY(size_output(&own, x, y));
    ONX_TRY(move_finish(&call, &own));
    move_rows(&own, x, y, fill, 0, own.rows);
    return ONX_OK;
}
