/* run_eager.c - runs one node at once on actual values: for steps whose shapes are known only during the run, and for
 * constants that are folded before there is a plan. */
#include "run/run.h"

static onx_status eager_output(onxi_run_env *e, const onx_value *type, onx_value *out)
{
    if (type->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    (void)e;
    return onx_value_reset(out, (onx_dtype)type->dtype, type->rank, type->dims);
}

static onx_status eager_run(onxi_run_env *e, onx_prepare *p, const onx_value *const *inputs, onx_value *const *outputs)
{
    uint64_t threads = p->threads, each, total;
    p->thread_workspace = (p->thread_workspace + 63u) & ~(uint64_t)63u;
    p->workspace = (p->workspace + 63u) & ~(uint64_t)63u;
    if (!onxi_mul_u64(p->thread_workspace, threads, &each) || !onxi_add_u64(each, p->workspace + 64, &total) ||
        total > e->session->options.memory)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the workspace exceeds the memory limit");
    const onxi_run_space room = onxi_run_space_take(e->state, e->cx, total > 64 ? total : 0);
    if (total > 64 && !room.memory)
        return ONX_E_MEMORY;
    char *space = (char *)(((uintptr_t)room.memory + 63u) & ~(uintptr_t)63u);
    const onx_prepared prepared = onxi_run_op_prepared(p);
    onx_work work = { .cx = e->cx,
                      .prepared = &prepared,
                      .params = p->params,
                      .inputs = inputs,
                      .outputs = outputs,
                      .workspace = room.memory ? space : NULL,
                      .thread_workspace = room.memory ? space + p->workspace : NULL,
                      .threads = p->threads,
                      .watch = e->watch,
                      .text = e->state ? e->state->text : e->arena };
    onx_status status = p->kernel->bind ? p->kernel->bind(&work) : ONX_OK;
    if (status == ONX_OK)
        status = onxi_run_work_run(p->kernel, &work);
    if (p->kernel->unbind && work.state)
        p->kernel->unbind(work.state);
    onxi_run_space_give(e->state, e->cx, room);
    return status;
}

/* ---- layouts ---- */

static onx_status reorder_now(onxi_run_env *e, const onx_layout *layout, const onx_value *from, onx_value *to)
{
    const onx_value *inputs[] = { from };
    onx_value *outputs[] = { to };
    onx_prepare p = { .cx = e->cx,
                      .arena = e->arena,
                      .input_count = 1,
                      .output_count = 1,
                      .inputs = inputs,
                      .outputs = outputs,
                      .threads = e->session->threads,
                      .rows = 1,
                      .grain = 1,
                      .overwrite = -1 };
    ONX_TRY(onxi_run_reorder_prepare(e->session, layout, &p));
    return eager_run(e, &p, inputs, outputs);
}

/* A view description of `v` in another layout. Its data is an offset into the memory for layouts; *at is advanced past
 * it. */
static onx_value laid_out(const onx_value *v, const onx_layout *layout, uint64_t *at)
{
    onx_value out = *v;
    out.layout = layout;
    out.size = layout->size;
    out.data = (void *)(uintptr_t)*at; /* an offset until the memory is allocated */
    *at += (layout->size + 63u) & ~(uint64_t)63u;
    return out;
}

/* Runs the row in the layouts that it wants: converts the inputs before and the outputs after it. */
static onx_status run_laid_out(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p, const onx_value *const *inputs,
                               onx_value *const *outputs)
{
    onx_value *made = ONXI_ARRAY(e->arena, onx_value, op->input_count + op->output_count + 1u);
    const onx_value **in = (const onx_value **)ONXI_ARRAY(e->arena, void *, op->input_count + 1u);
    onx_value **out = (onx_value **)ONXI_ARRAY(e->arena, void *, op->output_count + 1u);
    uint64_t size = 0;
    if (!made || !in || !out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const bool other = inputs[i] && p->want[i];
        made[i] = other ? laid_out(inputs[i], p->want[i], &size) : (onx_value){ 0 };
        in[i] = other ? &made[i] : inputs[i];
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const bool other = outputs[i] && p->outputs[i]->layout;
        onx_value *v = &made[op->input_count + i];
        *v = other ? laid_out(outputs[i], p->outputs[i]->layout, &size) : (onx_value){ 0 };
        out[i] = other ? v : outputs[i];
    }
    if (size > e->session->options.memory)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the layouts of a node exceed the memory limit");
    void *base = size ? onxi_resize(e->cx, NULL, 0, size + 64) : NULL;
    if (size && !base)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++)
        made[i].data = (void *)(((((uintptr_t)base + 63u) & ~(uintptr_t)63u)) + (uintptr_t)made[i].data);
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < op->input_count && status == ONX_OK; i++)
        if (in[i] != inputs[i])
            status = reorder_now(e, made[i].layout, inputs[i], &made[i]);
    if (status == ONX_OK)
        status = eager_run(e, p, in, out);
    for (uint32_t i = 0; i < op->output_count && status == ONX_OK; i++)
        if (out[i] != outputs[i])
            status = reorder_now(e, out[i]->layout, out[i], outputs[i]);
    onxi_release(e->cx, base, size ? size + 64 : 0);
    return status;
}

/* Changing layouts pays for images of some size only. */
static bool may_lay_out(const onxi_run_op *op, const onx_value *const *inputs)
{
    enum { LEAST = 1 << 14 };
    return op->input_count && inputs[0] && inputs[0]->kind == ONX_VALUE_TENSOR && inputs[0]->count >= LEAST;
}

/* ---- types, kernel, run ---- */

/* The output of a view row is a copy here, since its input may be freed before it. */
static onx_status eager_view(const onx_value *input, const onx_value *type, onx_value *out)
{
    ONX_TRY(onxi_value_take(out, input));
    if (type->kind != ONX_VALUE_TENSOR || out->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    if (type->rank > out->dims_room) {
        ONX_TRY(
            onxi_value_memory(out->cx, &out->dims, out->dims_room * sizeof *out->dims, type->rank * sizeof *out->dims));
        out->dims_room = type->rank;
    }
    onxi_copy_dims(out->dims, type->dims, type->rank);
    out->rank = type->rank;
    return ONX_OK;
}

static onx_status eager_once(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out)
{
    onx_value *types = ONXI_ARRAY(e->arena, onx_value, op->output_count + 1u);
    onx_value **type_list = (onx_value **)ONXI_ARRAY(e->arena, void *, op->output_count + 1u);
    bool *last_use = ONXI_ARRAY(e->arena, bool, op->input_count + 1u);
    if (!types || !type_list || !last_use)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        type_list[i] = outputs[i] ? &types[i] : NULL;
    ONX_TRY(onxi_run_op_types(e, op, inputs, type_list));
    onx_prepare p = { .inputs = inputs, .outputs = type_list, .last_use = last_use };
    onxi_run_op_describe(e, op, &p);
    if (may_lay_out(op, inputs) && !(p.want = (const onx_layout **)ONXI_ARRAY(e->arena, void *, op->input_count + 1u)))
        return ONX_E_MEMORY;
    onx_status status = onxi_run_op_prepare(e, op, &p, NULL, ONXI_COMMON_NOT, (onxi_run_order){ 0 });
    if (status != ONX_OK)
        return status;
    if (kernel_out)
        *kernel_out = p.kernel;
    for (uint32_t i = 0; status == ONX_OK && i < op->output_count; i++)
        if (outputs[i] && !(p.kernel->flags & ONX_KERNEL_VIEW && i == 0))
            status = eager_output(e, &types[i], outputs[i]);
    if (status == ONX_OK)
        status = p.kernel->flags & ONX_KERNEL_VIEW && inputs[0] && outputs[0]
                     ? eager_view(inputs[0], &types[0], outputs[0])
                 : p.want ? run_laid_out(e, op, &p, inputs, outputs)
                          : eager_run(e, &p, inputs, outputs);
    if (p.kernel->release)
        p.kernel->release(p.params);
    return status;
}

onx_status onxi_run_op_eager(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out)
{
    const size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    onxi_run_passing passing = { .cx = e->cx };
    onxi_run_env own = *e;
    own.passing = &passing;
    onx_status status = eager_once(&own, op, inputs, outputs, kernel_out);
    if (status == ONX_E_UNSUPPORTED && !e->nonfinite && onx_diag_total(e->cx, ONX_ERROR) == errors) {
        onxi_run_passing_end(&passing);
        own.nonfinite = true;
        status = eager_once(&own, op, inputs, outputs, kernel_out);
    }
    onxi_run_passing_end(&passing);
    return status;
}
