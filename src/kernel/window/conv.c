/* conv.c - convolution by unfolding: windows of a tile of output positions are gathered into columns and multiplied
 * with the weights. This is the reference for all types; fast variants are in kernel/dnnl/conv.c. */
#include "kernel/core/conv.h"

static onx_status conv_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    onxi_conv *q = ONXI_NEW(p->arena, onxi_conv);
    if (!q)
        return ONX_E_MEMORY;
    if (w->dtype != x->dtype || (b && b->dtype != x->dtype))
        return onx_prepare_fail(p, ONX_E_INVALID, "weights and bias do not have the type of the input");
    ONX_TRY(onxi_conv_make(p, w, b, q));
    p->params = q;
    p->thread_workspace = q->columns_size + onxi_gemm_workspace(x->dtype, q->out_each, ONXI_CONV_TILE, q->depth);
    p->rows = q->window.batch * q->group * q->tiles;
    p->grain = onxi_worth_a_thread((q->window.out_size < ONXI_CONV_TILE ? q->window.out_size : ONXI_CONV_TILE) *
                                   q->depth * q->out_each);
    return ONX_OK;
}

static onx_status conv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_conv *q = work->params;
    const onxi_window *w = &q->window;
    const onx_value *x = work->inputs[0], *bias = work->prepared->input_count > 2 ? work->inputs[2] : NULL;
    static const char zero[8] = { 0 };
    char *columns = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        uint64_t image = row / q->tiles, start = row % q->tiles * ONXI_CONV_TILE, count = w->out_size - start;
        count = count < ONXI_CONV_TILE ? count : ONXI_CONV_TILE;
        onxi_unfold(q, (const char *)x->data + image * q->in_each * w->in_size * q->width, start, count, zero, columns);
        onxi_conv_multiply(work, q, work->inputs[1], bias, work->outputs[0], image, start, count, columns);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_conv[] = {
    { .op = "Conv", .since = 1, .dtypes = ONXI_FLOATS, .prepare = conv_prepare, .run = conv_run }, { 0 }
};
