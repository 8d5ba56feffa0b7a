/* kernel_control.c - operators that run subgraphs. */
#include "kernel/kernel.h"

typedef struct if_params {
    uint32_t then_branch, else_branch;
} if_params;

static onx_status if_prepare(onx_prepare *p)
{
    if_params *q = ONXI_NEW(p->arena, if_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(p->ops->graph(p, "then_branch", &q->then_branch));
    ONX_TRY(p->ops->graph(p, "else_branch", &q->else_branch));
    if (!p->inputs[0] || p->inputs[0]->kind != ONX_VALUE_TENSOR || p->inputs[0]->dtype != ONX_BOOL ||
        p->inputs[0]->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the condition is no single boolean");
    p->params = q;
    return ONX_OK;
}

static onx_status if_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const if_params *q = work->params;
    uint32_t count = work->prepared->node->output_count; /* a branch gives all, whoever asks */
    onx_value **made = ONXI_ARRAY(work->prepared->arena, onx_value *, count + 1u);
    if (!made)
        return ONX_E_MEMORY;
    bool yes = *(const uint8_t *)work->inputs[0]->data != 0;
    onx_status status = work->ops->graph(work, yes ? q->then_branch : q->else_branch, NULL, 0, made, count);
    for (uint32_t i = 0; i < count; i++) {
        if (status == ONX_OK && i < work->prepared->output_count && work->outputs[i])
            status = onx_value_assign(work->outputs[i], made[i]);
        onx_value_free(made[i]);
    }
    return status;
}

const onx_kernel onxi_kernels_control[] = {
    { .op = "If", .since = 1, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = if_prepare, .run = if_run },
    { 0 },
};
