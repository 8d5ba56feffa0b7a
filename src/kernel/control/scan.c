/* scan.c - Scan. In version 8, the inputs have a batch axis, whose items run one after the other; later versions are
 * treated as a batch of one without that axis. */
#include "kernel/control/control.h"
#include "kernel/core/move.h"

typedef struct scan_axis {
    int64_t axis; /* as given by the model */
    bool backward;
} scan_axis;

typedef struct scan_params {
    uint32_t body, states, inputs, outputs; /* number of state variables, scan inputs, and scan outputs */
    uint32_t first;                         /* input of the node that is the first state variable */
    bool batched;
    scan_axis *in, *out;
    const onx_graph *graph;
} scan_params;

/* ---- preparing ---- */

static onx_status read_list(const onx_prepare *p, const char *name, uint32_t want, bool directions, scan_axis *out)
{
    uint32_t count;
    const int64_t *list = onx_prepare_ints(p, name, &count);
    if (list && count != want)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s has %u values, expected %u", name, count, want);
    for (uint32_t i = 0; list && i < count; i++) {
        if (directions && list[i] != 0 && list[i] != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s has the value %lld, expected 0 or 1", name,
                                    (long long)list[i]);
        if (directions)
            out[i].backward = list[i] == 1;
        else
            out[i].axis = list[i];
    }
    return ONX_OK;
}

static onx_status scan_lists(const onx_prepare *p, scan_params *q)
{
    q->in = ONXI_ARRAY(p->arena, scan_axis, q->inputs + 1u);
    q->out = ONXI_ARRAY(p->arena, scan_axis, q->outputs + 1u);
    if (!q->in || !q->out)
        return ONX_E_MEMORY;
    if (q->batched)
        return read_list(p, "directions", q->inputs, true, q->in);
    ONX_TRY(read_list(p, "scan_input_axes", q->inputs, false, q->in));
    ONX_TRY(read_list(p, "scan_input_directions", q->inputs, true, q->in));
    ONX_TRY(read_list(p, "scan_output_axes", q->outputs, false, q->out));
    return read_list(p, "scan_output_directions", q->outputs, true, q->out);
}

static onx_status scan_prepare(onx_prepare *p)
{
    scan_params *q = ONXI_NEW(p->arena, scan_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(p->ops->graph(p, "body", &q->body));
    q->graph = onx_prepare_graph(p, "body");
    q->batched = p->since < 9;
    q->first = q->batched ? 1 : 0;
    int64_t scans = onx_prepare_int(p, "num_scan_inputs");
    uint32_t count = p->input_count > q->first ? p->input_count - q->first : 0;
    if (scans < 1 || scans > (int64_t)count)
        return onx_prepare_fail(p, ONX_E_INVALID, "num_scan_inputs is %lld, the node has %u inputs", (long long)scans,
                                count);
    for (uint32_t i = q->first; i < p->input_count; i++)
        if (!p->inputs[i])
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is missing", i);
    q->inputs = (uint32_t)scans;
    q->states = count - q->inputs;
    uint32_t outputs = q->graph ? q->graph->output_count : 0;
    if (outputs != p->node->output_count || outputs < q->states)
        return onx_prepare_fail(p, ONX_E_INVALID, "the body has %u outputs, the node %u and %u state variables",
                                outputs, p->node->output_count, q->states);
    q->outputs = outputs - q->states;
    p->params = q;
    return scan_lists(p, q);
}

/* ---- memory of a run ---- */

typedef struct slice { /* a slice of a scan input along its axis */
    onx_value view;    /* the value that the body gets */
    onx_value *own;    /* owns the dims, and the elements where slices are not contiguous */
    uint64_t outer, inner;
} slice;

typedef struct scan_state {
    onxi_body *body;
    slice *slices;
    onx_value *starts; /* state variables of one batch item */
    uint32_t slice_count;
    onx_ctx *cx;
    uint64_t size; /* bytes of this struct */
} scan_state;

static void scan_unbind(void *state)
{
    scan_state *s = state;
    for (uint32_t i = 0; i < s->slice_count; i++)
        onx_value_free(s->slices[i].own);
    if (s->body)
        onxi_body_free(s->body);
    onxi_release(s->cx, s, s->size);
}

static onx_status scan_bind(onx_work *work)
{
    const scan_params *q = work->params;
    uint64_t size = sizeof(scan_state) + q->inputs * sizeof(slice) + q->states * sizeof(onx_value);
    scan_state *s = onxi_resize(work->cx, NULL, 0, size);
    if (!s)
        return ONX_E_MEMORY;
    memset(s, 0, size);
    *s = (scan_state){ .slice_count = q->inputs, .cx = work->cx, .size = size };
    s->slices = (slice *)(s + 1);
    s->starts = (onx_value *)(s->slices + q->inputs);
    onx_status status = onxi_body_new(work, q->states + q->inputs, q->states + q->outputs, q->states);
    s->body = work->state;
    work->state = s;
    ONX_TRY(status);
    for (uint32_t i = 0; i < q->inputs; i++)
        ONX_TRY(onx_value_new(work->cx, &s->slices[i].own));
    for (uint32_t i = q->states; i < work->prepared->output_count; i++)
        if (work->outputs[i])
            ONX_TRY(onx_value_new(work->cx, &s->body->next[i]));
    return ONX_OK;
}

/* ---- sizes ---- */

typedef struct extent {
    int64_t batch, length;
    const int64_t *lengths; /* per batch item, or NULL */
} extent;

static onx_status find_axis(onx_work *work, int64_t axis, uint32_t rank, uint32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onx_work_fail(work, ONX_E_INVALID, "axis %lld is outside of rank %u", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return ONX_OK;
}

static onx_status measure_slice(onx_work *work, const onx_value *x, const scan_axis *along, slice *s, uint32_t *axis)
{
    const scan_params *q = work->params;
    uint32_t lead = q->batched ? 1 : 0, rank = 0;
    int64_t dims[ONX_RANK_MAX];
    if (x->kind != ONX_VALUE_TENSOR || x->rank < lead + 1)
        return onx_work_fail(work, ONX_E_INVALID, "a scan input is not a tensor of rank %u or more", lead + 1);
    ONX_TRY(find_axis(work, along->axis, x->rank - lead, axis));
    *axis += lead;
    for (uint32_t d = lead; d < x->rank; d++)
        if (d != *axis)
            dims[rank++] = x->dims[d];
    s->outer = onxi_product(x->dims, lead, *axis);
    s->inner = onxi_product(x->dims, *axis + 1, x->rank);
    ONX_TRY(onx_value_reset(s->own, (onx_dtype)x->dtype, rank, dims));
    if (onxi_value_bits(x) < 8 && s->own->size)
        memset(s->own->data, 0, s->own->size);
    s->view = *s->own;
    s->view.flags |= ONXI_VALUE_BORROWED;
    s->view.cx = NULL;
    return ONX_OK;
}

static onx_status measure_lengths(onx_work *work, extent *e)
{
    const onx_value *v = work->inputs[0];
    if (!v)
        return ONX_OK;
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_INT64 || v->count != (uint64_t)e->batch)
        return onx_work_fail(work, ONX_E_INVALID, "sequence_lens has no int64 for each item of the batch");
    e->lengths = v->data;
    for (int64_t b = 0; b < e->batch; b++)
        if (e->lengths[b] < 0 || e->lengths[b] > e->length)
            return onx_work_fail(work, ONX_E_INVALID, "sequence_lens has the value %lld, expected 0 to %lld",
                                 (long long)e->lengths[b], (long long)e->length);
    return ONX_OK;
}

static onx_status measure(onx_work *work, scan_state *s, extent *e)
{
    const scan_params *q = work->params;
    *e = (extent){ .batch = 1 };
    for (uint32_t i = 0; i < q->states + q->inputs; i++) {
        const onx_value *x = work->inputs[q->first + i];
        bool batched = q->batched && x->kind == ONX_VALUE_TENSOR;
        if (batched && (x->rank < 1 || onxi_value_bits(x) < 8))
            return onx_work_fail(work, ONX_E_INVALID, "input %u has no batch", q->first + i);
        if (batched && i == 0)
            e->batch = x->dims[0];
        if (batched && x->dims[0] != e->batch)
            return onx_work_fail(work, ONX_E_INVALID, "input %u has a batch of %lld, others of %lld", q->first + i,
                                 (long long)x->dims[0], (long long)e->batch);
    }
    for (uint32_t i = 0; i < q->inputs; i++) {
        const onx_value *x = work->inputs[q->first + q->states + i];
        uint32_t axis;
        ONX_TRY(measure_slice(work, x, &q->in[i], &s->slices[i], &axis));
        if (i && x->dims[axis] != e->length)
            return onx_work_fail(work, ONX_E_INVALID, "scan input %u has length %lld, others have %lld", i,
                                 (long long)x->dims[axis], (long long)e->length);
        e->length = x->dims[axis];
    }
    return q->batched ? measure_lengths(work, e) : ONX_OK;
}

/* ---- passing values in and out ---- */

/* Sets the view to index `t` of the axis, in batch item `b`. */
static void take_slice(const onx_value *x, slice *s, const extent *e, int64_t b, int64_t t)
{
    s->view.data = s->own->data;
    if (!s->own->count) /* empty, so offsets are not computed: they could overflow */
        return;
    uint32_t bits = onxi_value_bits(x);
    uint64_t length = (uint64_t)e->length, base = (uint64_t)b * s->outer * length * s->inner,
             first = base + (uint64_t)t * s->inner;
    if (s->outer == 1 && first * bits % 8 == 0) {
        s->view.data = (char *)x->data + first * bits / 8;
        return;
    }
    for (uint64_t o = 0; o < s->outer && s->inner; o++)
        onxi_move_copy(bits, x, base + (o * length + (uint64_t)t) * s->inner, s->own, o * s->inner, s->inner);
}

/* A view of a state variable of version 8 for batch item `b`. */
static onx_status start_of(onx_work *work, const onx_value *x, onx_value *view, int64_t b)
{
    *view = *x;
    view->flags |= ONXI_VALUE_BORROWED;
    view->cx = NULL;
    view->rank = x->rank - 1;
    view->dims = x->dims + 1;
    if (!onxi_dims_count(view->rank, view->dims, &view->count) || !onxi_tensor_room(x->dtype, view->count, &view->size))
        return onx_work_fail(work, ONX_E_LIMIT, "a state variable has impossible dims");
    view->data = (char *)x->data + (uint64_t)b * view->size;
    return ONX_OK;
}

/* Sets the dims of an output: those of `part`, with a dim `size` inserted at `axis` unless `size` is negative, after
 * the batch axis if there is one. */
static onx_status size_output(onx_work *work, onx_value *y, onx_dtype dtype, uint32_t rank, const int64_t *part,
                              uint32_t axis, int64_t size, int64_t batch)
{
    const scan_params *q = work->params;
    int64_t dims[ONX_RANK_MAX + 2];
    uint32_t n = 0;
    if (q->batched)
        dims[n++] = batch;
    for (uint32_t d = 0; d <= rank; d++) {
        if (d == axis && size >= 0)
            dims[n++] = size;
        if (d < rank)
            dims[n++] = part[d];
    }
    ONX_TRY(onx_value_reset(y, dtype, n, dims));
    if (y->size) /* sequences that end early leave elements unset */
        memset(y->data, 0, y->size);
    return ONX_OK;
}

/* Writes the body's output to index `t` of the scan output. */
static onx_status put_slice(onx_work *work, uint32_t output, const extent *e, bool fresh, int64_t b, int64_t t)
{
    const scan_params *q = work->params;
    const scan_state *s = work->state;
    const onx_value *part = s->body->next[q->states + output];
    onx_value *y = work->outputs[q->states + output];
    uint32_t axis;
    if (part->kind != ONX_VALUE_TENSOR || part->rank + 2 > ONX_RANK_MAX)
        return onx_work_fail(work, ONX_E_INVALID, "the body does not give a tensor for scan output %u", output);
    ONX_TRY(find_axis(work, q->out[output].axis, part->rank + 1, &axis));
    if (fresh)
        onx_value_reset_list(y, ONX_VALUE_NONE, ONX_UNDEFINED);
    if (y->kind != ONX_VALUE_TENSOR)
        ONX_TRY(size_output(work, y, (onx_dtype)part->dtype, part->rank, part->dims, axis, e->length, e->batch));
    uint32_t lead = q->batched ? 1 : 0;
    bool same = y->dtype == part->dtype && y->rank == part->rank + 1 + lead;
    for (uint32_t d = 0; same && d < part->rank; d++)
        same = y->dims[lead + d + (d >= axis ? 1 : 0)] == part->dims[d];
    if (!same)
        return onx_work_fail(work, ONX_E_INVALID, "scan output %u changes its shape or type", output);
    if (!part->count)
        return ONX_OK;
    uint64_t outer = onxi_product(part->dims, 0, axis), inner = onxi_product(part->dims, axis, part->rank);
    uint64_t base = (uint64_t)b * (uint64_t)e->length * part->count;
    for (uint64_t o = 0; o < outer; o++) {
        uint64_t to = base + (o * (uint64_t)e->length + (uint64_t)t) * inner;
        onxi_move_copy(onxi_value_bits(part), part, o * inner, y, to, inner);
        ONX_TRY(onxi_keep_texts(work, y, to, inner));
    }
    return ONX_OK;
}

/* Writes the final value of a state variable, for batch item `b`. */
static onx_status put_state(onx_work *work, uint32_t i, const extent *e, int64_t b, int64_t steps)
{
    const scan_params *q = work->params;
    scan_state *s = work->state;
    onx_value *y = work->outputs[i], *made = s->body->last[i];
    const onx_value *from = steps ? made : s->body->in[i];
    if (!q->batched) {
        if (steps)
            onxi_value_swap(y, made);
        return steps ? ONX_OK : onx_value_assign(y, from);
    }
    if (from->kind != ONX_VALUE_TENSOR || from->rank >= ONX_RANK_MAX || onxi_value_bits(from) < 8)
        return onx_work_fail(work, ONX_E_INVALID, "state variable %u is not a tensor that can be batched", i);
    if (b == 0)
        ONX_TRY(size_output(work, y, (onx_dtype)from->dtype, from->rank, from->dims, from->rank, -1, e->batch));
    if (y->dtype != from->dtype || y->rank != from->rank + 1 || y->count != (uint64_t)e->batch * from->count)
        return onx_work_fail(work, ONX_E_INVALID, "state variable %u differs from one item of the batch to the next",
                             i);
    if (from->count)
        onxi_move_copy(onxi_value_bits(from), from, 0, y, (uint64_t)b * from->count, from->count);
    return onxi_keep_texts(work, y, (uint64_t)b * from->count, from->count);
}

/* ---- running ---- */

/* Checks that a state variable has the same type and shape in all iterations, as the inference rule requires. */
static onx_status check_states(onx_work *work, const scan_state *s)
{
    const scan_params *q = work->params;
    onx_value_difference d;
    for (uint32_t i = 0; i < q->states; i++)
        if (!onx_value_same_type(s->body->next[i], s->body->in[i], &d))
            return onx_work_fail(work, ONX_E_INVALID, "state variable %u changes its %s: %s", i, d.what, d.text);
    return ONX_OK;
}

static onx_status scan_item(onx_work *work, scan_state *s, const extent *e, int64_t b, bool *fresh)
{
    const scan_params *q = work->params;
    onxi_body *body = s->body;
    int64_t steps = e->lengths ? e->lengths[b] : e->length;
    for (uint32_t i = 0; i < q->states; i++) {
        const onx_value *x = work->inputs[q->first + i];
        body->in[i] = q->batched ? &s->starts[i] : x;
        if (q->batched)
            ONX_TRY(start_of(work, x, &s->starts[i], b));
    }
    for (int64_t t = 0; t < steps; t++) {
        for (uint32_t i = 0; i < q->inputs; i++)
            take_slice(work->inputs[q->first + q->states + i], &s->slices[i], e, b,
                       q->in[i].backward ? steps - 1 - t : t);
        ONX_TRY(work->ops->graph(work, q->body, body->in, body->inputs, body->next, body->outputs));
        for (uint32_t i = 0; i < q->outputs; i++)
            if (body->next[q->states + i])
                ONX_TRY(put_slice(work, i, e, *fresh, b, q->out[i].backward ? steps - 1 - t : t));
        ONX_TRY(check_states(work, s));
        *fresh = false;
        onxi_body_turn(body);
        for (uint32_t i = 0; i < q->states; i++)
            body->in[i] = body->last[i];
    }
    for (uint32_t i = 0; i < q->states && i < work->prepared->output_count; i++)
        if (work->outputs[i])
            ONX_TRY(put_state(work, i, e, b, steps));
    return ONX_OK;
}

/* Types the scan outputs when there was no iteration. */
static onx_status nothing(onx_work *work, const scan_state *s, const extent *e)
{
    const scan_params *q = work->params;
    for (uint32_t i = 0; i < q->outputs; i++) {
        onx_dtype dtype;
        uint32_t rank, axis, output = q->states + i;
        int64_t dims[ONX_RANK_MAX];
        if (!s->body->next[output])
            continue;
        ONX_TRY(onxi_body_type(work, s->body, q->body, q->graph, output, &dtype, &rank, dims));
        ONX_TRY(find_axis(work, q->out[i].axis, rank + 1, &axis));
        if (rank + 2 > ONX_RANK_MAX)
            return onx_work_fail(work, ONX_E_LIMIT, "scan output %u has rank %u", i, rank + 2);
        ONX_TRY(size_output(work, work->outputs[output], dtype, rank, dims, axis, e->length, e->batch));
    }
    return ONX_OK;
}

static onx_status scan_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const scan_params *q = work->params;
    scan_state *s = work->state;
    extent e;
    bool fresh = true;
    ONX_TRY(measure(work, s, &e));
    for (uint32_t i = 0; i < q->inputs; i++)
        s->body->in[q->states + i] = &s->slices[i].view;
    for (int64_t b = 0; b < e.batch; b++)
        ONX_TRY(scan_item(work, s, &e, b, &fresh));
    for (uint32_t i = 0; e.batch == 0 && i < q->states; i++) {
        const onx_value *x = work->inputs[q->first + i];
        s->body->in[i] = &s->starts[i];
        ONX_TRY(start_of(work, x, &s->starts[i], 0));
        if (i < work->prepared->output_count && work->outputs[i])
            ONX_TRY(onx_value_assign(work->outputs[i], x));
    }
    if (fresh)
        ONX_TRY(nothing(work, s, &e));
    onxi_body_rest(s->body);
    return ONX_OK;
}

const onx_kernel onxi_kernels_scan[] = {
    { .op = "Scan",
      .since = 8,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = scan_prepare,
      .run = scan_run,
      .bind = scan_bind,
      .unbind = scan_unbind },
    { 0 },
};
