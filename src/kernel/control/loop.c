/* loop.c - Loop. */
#include "kernel/control/control.h"
#include "kernel/core/move.h"

typedef struct loop_params {
    uint32_t body, carried, scans;
    bool has_trip, has_cond;
    bool obeys; /* the condition that the body returns ends the loop */
    const onx_graph *graph;
} loop_params;

static onx_status loop_prepare(onx_prepare *p)
{
    loop_params *q = ONXI_NEW(p->arena, loop_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(p->ops->graph(p, "body", &q->body));
    q->graph = onx_prepare_graph(p, "body");
    q->has_trip = p->input_count > 0 && p->inputs[0];
    q->has_cond = p->input_count > 1 && p->inputs[1];
    q->carried = p->input_count > 2 ? p->input_count - 2 : 0;
    for (uint32_t i = 0; i < q->carried; i++)
        if (!p->inputs[i + 2])
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is missing", i + 2);
    uint32_t outputs = q->graph ? q->graph->output_count : 0;
    if (outputs < q->carried + 1 || outputs - 1 != p->node->output_count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the body has %u outputs, the node %u and %u carried values", outputs,
                                p->node->output_count, q->carried);
    q->scans = outputs - 1 - q->carried;
    /* The standard says that the body's condition is ignored where the node has no condition. Without a trip count,
     * too, such a loop would never end, so it is obeyed then, as in other runtimes. */
    q->obeys = q->has_cond || !q->has_trip;
    p->params = q;
    return ONX_OK;
}

static onx_status loop_bind(onx_work *work)
{
    const loop_params *q = work->params;
    uint32_t outputs = 1 + q->carried + q->scans;
    ONX_TRY(onxi_body_new(work, 2 + q->carried, outputs, 1 + q->carried));
    onxi_body *b = work->state;
    for (uint32_t i = q->carried; i < work->prepared->output_count; i++)
        if (work->outputs[i])
            ONX_TRY(onx_value_new(b->cx, &b->next[1 + i]));
    return ONX_OK;
}

static onx_status read_cond(onx_work *work, const onx_value *v, bool *out)
{
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_BOOL || v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "the condition is not a single boolean");
    *out = *(const uint8_t *)v->data != 0;
    return ONX_OK;
}

/* Appends one iteration's part to a scan output. */
static onx_status append(onx_work *work, onx_value *y, uint64_t at, const onx_value *part, uint32_t output)
{
    if (part->kind != ONX_VALUE_TENSOR || part->rank >= ONX_RANK_MAX)
        return onx_work_fail(work, ONX_E_INVALID, "the body does not give a tensor for scan output %u", output);
    if (at == 0) {
        int64_t dims[ONX_RANK_MAX] = { 0 };
        for (uint32_t d = 0; d < part->rank; d++)
            dims[d + 1] = part->dims[d];
        ONX_TRY(onx_value_reset(y, (onx_dtype)part->dtype, part->rank + 1, dims));
    }
    bool same = y->dtype == part->dtype && y->rank == part->rank + 1;
    for (uint32_t d = 0; same && d < part->rank; d++)
        same = y->dims[d + 1] == part->dims[d];
    if (!same)
        return onx_work_fail(work, ONX_E_INVALID, "scan output %u changes its shape or type in iteration %llu", output,
                             (unsigned long long)at);
    ONX_TRY(onxi_value_lengthen(y, (int64_t)at + 1));
    onxi_move_copy(onxi_value_bits(part), part, 0, y, at * part->count, part->count);
    return onxi_keep_texts(work, y, at * part->count, part->count);
}

/* The maximum number of iterations. */
static onx_status trip_count(onx_work *work, int64_t *out)
{
    const loop_params *q = work->params;
    const onx_value *v = q->has_trip ? work->inputs[0] : NULL;
    *out = INT64_MAX;
    if (v && (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_INT64 || v->count != 1))
        return onx_work_fail(work, ONX_E_INVALID, "the trip count is not a single int64");
    if (v)
        *out = onxi_move_number(v, 0);
    return ONX_OK;
}

static onx_status iterate(onx_work *work, onxi_body *b, int64_t trips, bool go_on, int64_t *done)
{
    const loop_params *q = work->params;
    for (*done = 0; *done < trips && go_on; ++*done) {
        *(int64_t *)b->counter->data = *done;
        ONX_TRY(work->ops->graph(work, q->body, b->in, b->inputs, b->next, b->outputs));
        for (uint32_t i = q->carried; i < q->carried + q->scans; i++)
            if (b->next[i + 1])
                ONX_TRY(append(work, work->outputs[i], (uint64_t)*done, b->next[i + 1], i));
        onxi_body_turn(b);
        for (uint32_t i = 0; i < b->carried; i++) {
            b->in[i + 1] = b->last[i];
            b->last[i]->flags |= ONXI_VALUE_GIVEN; /* only the next iteration reads it */
            b->next[i]->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
        }
        if (q->obeys)
            ONX_TRY(read_cond(work, b->last[0], &go_on));
    }
    return ONX_OK;
}

/* Types a scan output when there was no iteration. */
static onx_status nothing(onx_work *work, const onxi_body *b, uint32_t output)
{
    const loop_params *q = work->params;
    onx_dtype dtype;
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX + 1];
    ONX_TRY(onxi_body_type(work, b, q->body, q->graph, output + 1, &dtype, &rank, dims + 1));
    dims[0] = 0;
    return onx_value_reset(work->outputs[output], dtype, rank + 1, dims);
}

static onx_status loop_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const loop_params *q = work->params;
    onxi_body *b = work->state;
    int64_t trips, done;
    bool go_on = true;
    ONX_TRY(trip_count(work, &trips));
    if (q->has_cond)
        ONX_TRY(read_cond(work, work->inputs[1], &go_on));
    b->in[0] = b->counter;
    b->in[1] = q->has_cond ? work->inputs[1] : b->yes;
    for (uint32_t i = 0; i < q->carried; i++)
        b->in[i + 2] = work->inputs[i + 2];
    onx_status status = iterate(work, b, trips, go_on, &done);
    for (uint32_t i = 0; i < b->carried; i++) {
        b->last[i]->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
        b->next[i]->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
    }
    ONX_TRY(status);
    for (uint32_t i = 0; i < work->prepared->output_count; i++) {
        if (!work->outputs[i])
            continue;
        if (i < q->carried && done)
            onxi_value_swap(work->outputs[i], b->last[i + 1]);
        else if (i < q->carried)
            ONX_TRY(onxi_value_take(work->outputs[i], work->inputs[i + 2]));
        else if (!done)
            ONX_TRY(nothing(work, b, i));
    }
    onxi_body_rest(b);
    return ONX_OK;
}

const onx_kernel onxi_kernels_loop[] = {
    { .op = "Loop",
      .since = 1,
      .flags = ONX_KERNEL_SIZES_OUTPUT | ONX_KERNEL_HANDS_ON,
      .prepare = loop_prepare,
      .run = loop_run,
      .bind = loop_bind,
      .unbind = onxi_body_free },
    { 0 },
};
