/* control.c - If and SequenceMap, and functions shared by operators that run subgraphs. */
#include "kernel/control/control.h"

/* ---- values that pass through a body ---- */

static onx_status new_scalar(onx_ctx *cx, onx_dtype dtype, onx_value **out)
{
    return onx_value_new_tensor(cx, dtype, 0, NULL, out);
}

static onx_status fill_body(onxi_body *b)
{
    for (uint32_t i = 0; i < b->carried; i++) {
        ONX_TRY(onx_value_new(b->cx, &b->last[i]));
        ONX_TRY(onx_value_new(b->cx, &b->next[i]));
    }
    ONX_TRY(new_scalar(b->cx, ONX_INT64, &b->counter));
    ONX_TRY(new_scalar(b->cx, ONX_BOOL, &b->yes));
    *(uint8_t *)b->yes->data = 1;
    return ONX_OK;
}

static size_t body_size(uint32_t inputs, uint32_t outputs, uint32_t carried)
{
    return sizeof(onxi_body) + ((size_t)inputs + outputs + carried) * sizeof(void *);
}

onx_status onxi_body_new(onx_work *work, uint32_t inputs, uint32_t outputs, uint32_t carried)
{
    onxi_body *b = onxi_resize(work->cx, NULL, 0, body_size(inputs, outputs, carried));
    if (!b)
        return ONX_E_MEMORY;
    memset(b, 0, body_size(inputs, outputs, carried));
    *b = (onxi_body){ .cx = work->cx, .inputs = inputs, .outputs = outputs, .carried = carried };
    b->in = (const onx_value **)(void *)(b + 1);
    b->next = (onx_value **)(uintptr_t)(const void *)(b->in + inputs);
    b->last = b->next + outputs;
    work->state = b;
    return fill_body(b);
}

void onxi_body_free(void *body)
{
    onxi_body *b = body;
    for (uint32_t i = 0; i < b->outputs; i++)
        onx_value_free(b->next[i]);
    for (uint32_t i = 0; i < b->carried; i++)
        onx_value_free(b->last[i]);
    onx_value_free(b->counter);
    onx_value_free(b->yes);
    onxi_release(b->cx, b, body_size(b->inputs, b->outputs, b->carried));
}

void onxi_body_turn(onxi_body *b)
{
    for (uint32_t i = 0; i < b->carried; i++) {
        onx_value *came = b->next[i];
        b->next[i] = b->last[i];
        b->last[i] = came;
    }
}

void onxi_body_rest(onxi_body *b)
{
    for (uint32_t i = 0; i < b->outputs; i++) {
        if (b->next[i] && b->next[i]->kind > ONX_VALUE_TENSOR)
            onx_value_reset_list(b->next[i], ONX_VALUE_NONE, ONX_UNDEFINED);
        if (i < b->carried && b->last[i]->kind > ONX_VALUE_TENSOR)
            onx_value_reset_list(b->last[i], ONX_VALUE_NONE, ONX_UNDEFINED);
    }
}

onx_status onxi_body_type(onx_work *work, const onxi_body *b, uint32_t index, const onx_graph *graph, uint32_t output,
                          onx_dtype *dtype, uint32_t *rank, int64_t *dims)
{
    const onx_type *type = graph->output[output]->type;
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_tensor_shape *shape = t ? t->shape : NULL;
    *dtype = t && onx_dtype_name(t->elem_type) ? (onx_dtype)t->elem_type : ONX_UNDEFINED;
    *rank = shape && shape->dim_count <= ONX_RANK_MAX ? shape->dim_count : 0;
    bool known = *dtype != ONX_UNDEFINED && shape;
    for (uint32_t d = 0; d < *rank; d++) {
        bool size = ONX_HAS(dimension, shape->dim[d], dim_value) && shape->dim[d]->dim_value >= 0;
        dims[d] = size ? shape->dim[d]->dim_value : 0;
        known &= size;
    }
    const onx_value *planned = NULL;
    if (!known)
        ONX_TRY(work->ops->graph_type(work, index, b->in, b->inputs, output, &planned));
    if (planned) {
        *dtype = (onx_dtype)planned->dtype;
        *rank = planned->rank;
        onxi_copy_dims(dims, planned->dims, planned->rank);
    }
    if (*dtype == ONX_UNDEFINED)
        return onx_work_fail(work, ONX_E_INVALID, "output %u of a body that never ran has no known type", output);
    return ONX_OK;
}

onx_status onxi_keep_texts(onx_work *work, onx_value *y, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; y->dtype == ONX_STRING && i < count; i++) {
        onx_str *s = (onx_str *)y->data + first + i;
        char *kept = s->len ? onx_arena_alloc(work->text, s->len) : NULL;
        if (s->len && !kept)
            return ONX_E_MEMORY;
        if (s->len)
            memcpy(kept, s->ptr, s->len);
        s->ptr = kept;
    }
    return ONX_OK;
}

uint32_t onxi_value_bits(const onx_value *v)
{
    return v->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(v->dtype);
}

/* ---- If ---- */

typedef struct if_params {
    uint32_t then_branch, else_branch;
} if_params;

static onx_status prepare_branch(onx_prepare *p, const char *name, uint32_t *index)
{
    const onx_graph *g = onx_prepare_graph(p, name);
    ONX_TRY(p->ops->graph(p, name, index));
    if (g && g->output_count != p->node->output_count)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s has %u outputs, the node has %u", name, g->output_count,
                                p->node->output_count);
    return ONX_OK;
}

static onx_status if_prepare(onx_prepare *p)
{
    if_params *q = ONXI_NEW(p->arena, if_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(prepare_branch(p, "then_branch", &q->then_branch));
    ONX_TRY(prepare_branch(p, "else_branch", &q->else_branch));
    p->params = q;
    return ONX_OK;
}

static onx_status if_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const if_params *q = work->params;
    const onx_value *cond = work->inputs[0];
    if (cond->kind != ONX_VALUE_TENSOR || cond->dtype != ONX_BOOL || cond->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "the condition is not a single boolean");
    bool yes = *(const uint8_t *)cond->data != 0;
    return work->ops->graph(work, yes ? q->then_branch : q->else_branch, NULL, 0, (onx_value **)work->outputs,
                            work->prepared->output_count);
}

/* ---- SequenceMap ---- */

typedef struct map_params {
    uint32_t body;
    const onx_graph *graph;
} map_params;

static onx_status map_prepare(onx_prepare *p)
{
    map_params *q = ONXI_NEW(p->arena, map_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(p->ops->graph(p, "body", &q->body));
    q->graph = onx_prepare_graph(p, "body");
    if (!q->graph || q->graph->output_count != p->node->output_count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the body has %u outputs, the node has %u",
                                q->graph ? q->graph->output_count : 0, p->node->output_count);
    for (uint32_t i = 0; i < p->input_count; i++)
        if (!p->inputs[i])
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is missing", i);
    p->params = q;
    return ONX_OK;
}

static onx_status map_bind(onx_work *work)
{
    return onxi_body_new(work, work->prepared->input_count, work->prepared->output_count, 0);
}

/* The element type of an output sequence that stays empty, if the body declares it. */
static onx_dtype declared_item(const onx_graph *g, uint32_t output)
{
    const onx_type *type = g->output[output]->type;
    bool known = type && ONX_HAS(type, type, tensor_type) && onx_dtype_name(type->tensor_type->elem_type);
    return known ? (onx_dtype)type->tensor_type->elem_type : ONX_UNDEFINED;
}

/* Runs the body on the items at index `at`. The outputs in `b->next` are new values, which the caller frees. */
static onx_status map_item(onx_work *work, onxi_body *b, uint64_t at)
{
    const map_params *q = work->params;
    for (uint32_t i = 0; i < b->inputs; i++) {
        const onx_value *x = work->inputs[i];
        b->in[i] = x->kind == ONX_VALUE_SEQUENCE ? x->items[at] : x;
    }
    for (uint32_t i = 0; i < b->outputs; i++)
        if (work->outputs[i])
            ONX_TRY(onx_value_new(work->outputs[i]->cx, &b->next[i]));
    ONX_TRY(work->ops->graph(work, q->body, b->in, b->inputs, b->next, b->outputs));
    for (uint32_t i = 0; i < b->outputs; i++) {
        onx_value *y = work->outputs[i];
        if (!y)
            continue;
        if (b->next[i]->kind != ONX_VALUE_TENSOR || (at && b->next[i]->dtype != y->dtype))
            return onx_work_fail(work, ONX_E_INVALID,
                                 "the body does not give tensors of one element type for output %u", i);
        y->dtype = b->next[i]->dtype;
        ONX_TRY(onx_value_insert(y, at, b->next[i]));
    }
    return ONX_OK;
}

static onx_status map_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const map_params *q = work->params;
    onxi_body *b = work->state;
    if (work->inputs[0]->kind != ONX_VALUE_SEQUENCE)
        return onx_work_fail(work, ONX_E_INVALID, "input 0 is not a sequence");
    uint64_t length = work->inputs[0]->count;
    for (uint32_t i = 1; i < b->inputs; i++)
        if (work->inputs[i]->kind == ONX_VALUE_SEQUENCE && work->inputs[i]->count != length)
            return onx_work_fail(work, ONX_E_INVALID, "sequences 0 and %u have %llu and %llu items", i,
                                 (unsigned long long)length, (unsigned long long)work->inputs[i]->count);
    for (uint32_t i = 0; i < b->outputs; i++)
        if (work->outputs[i])
            ONX_TRY(onx_value_reset_list(work->outputs[i], ONX_VALUE_SEQUENCE, declared_item(q->graph, i)));
    onx_status status = ONX_OK;
    for (uint64_t at = 0; at < length && status == ONX_OK && !onx_work_stops(work); at++) {
        status = map_item(work, b, at);
        for (uint32_t i = 0; i < b->outputs; i++) {
            onx_value_free(b->next[i]);
            b->next[i] = NULL;
        }
    }
    return status;
}

const onx_kernel onxi_kernels_control[] = {
    { .op = "If",
      .since = 1,
      .flags = ONX_KERNEL_SIZES_OUTPUT | ONX_KERNEL_BRANCHES,
      .prepare = if_prepare,
      .run = if_run },
    { .op = "SequenceMap",
      .since = 17,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = map_prepare,
      .run = map_run,
      .bind = map_bind,
      .unbind = onxi_body_free },
    { 0 },
};
