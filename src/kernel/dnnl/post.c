/* post.c - post-operations: functions that oneDNN applies to results before it stores them. */
#include "kernel/core/loops.h"
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL
#include <math.h>

static bool same_dims(const onx_value *a, const onx_value *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && onxi_same_dims(a->dims, b->dims, a->rank);
}

/* Translates a function to one of oneDNN, if it is cheap there. Functions with an exponential are left to their own
 * rows: those of oneDNN take twice as long per vector as ours and use registers that its sums need (a convolution of
 * one pixel with Swish takes 411 us; without it 175, and the Swish alone 165; 1.2 million elements with AVX-512). */
static bool eltwise_of(const onx_prepare *as, dnnl_alg_kind_t *kind, float *alpha, float *beta)
{
    *alpha = *beta = 0;
    switch (as->kernel->post_op) {
    case ONX_POST_RELU:
        *kind = dnnl_eltwise_relu;
        return true;
    case ONX_POST_LEAKY_RELU:
        *kind = dnnl_eltwise_relu;
        *alpha = onx_prepare_float(as, "alpha");
        return true;
    case ONX_POST_HARD_SWISH:
        *kind = dnnl_eltwise_hardswish;
        return true;
    case ONX_POST_CLIP:
        *kind = dnnl_eltwise_clip;
        return onxi_clip_bound(as, "min", 1, -INFINITY, alpha) && onxi_clip_bound(as, "max", 2, INFINITY, beta) &&
               *alpha <= *beta;
    default:
        return false;
    }
}

static bool take_post_op(const onx_prepare *p, const onxi_dnnl *d, const onx_post_op *f, onxi_dnnl_md dst,
                         onxi_dnnl_post *post, dnnl_post_ops_t ops)
{
    dnnl_alg_kind_t kind;
    float alpha, beta;
    if (eltwise_of(f->prepare, &kind, &alpha, &beta)) {
        /* In oneDNN 2.6, a second Relu would use the slope of the first. */
        for (uint32_t i = 0; i < post->eltwise_count; i++)
            if (post->eltwise[i] == kind)
                return false;
        if (p->nonfinite || f->operand >= 0 || f->port != 0 || /* the result may also be the bound of a Clip */
            !onxi_dnnl_append_eltwise(d, ops, kind, alpha, beta))
            return false;
        post->loses_nan = true;
        post->eltwise[post->eltwise_count++] = kind;
        return true;
    }
    if (f->prepare->kernel->post_op != ONX_POST_ADD || f->prepare->input_count != 2 || f->operand < 0 ||
        !same_dims(p->inputs[f->operand], p->outputs[0]))
        return false;
    if (p->last_use[f->operand] && post->sum < 0 && post->binary < 0) {
        post->sum = f->operand;
        return onxi_dnnl_append_sum(d, ops);
    }
    if (!dst || post->binary >= 0)
        return false;
    post->binary = f->operand;
    post->binary_at = (uint32_t)d->lib->dnnl_post_ops_len(ops);
    return d->lib->dnnl_post_ops_append_binary(ops, dnnl_binary_add, dst) == dnnl_success;
}

bool onxi_dnnl_attr(const onxi_dnnl *d, dnnl_primitive_attr_t *out)
{
    if (d->lib->dnnl_primitive_attr_create(out) != dnnl_success)
        return false;
    if (d->lib->dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user) == dnnl_success)
        return true;
    d->lib->dnnl_primitive_attr_destroy(*out);
    return false;
}

bool onxi_dnnl_post_make(const onx_prepare *p, const onxi_dnnl *d, onxi_dnnl_md dst, uint32_t taken,
                         onxi_dnnl_post *post)
{
    dnnl_post_ops_t ops;
    *post = (onxi_dnnl_post){ .sum = -1, .binary = -1, .post_ops_done = taken };
    if (!onxi_dnnl_attr(d, &post->attr))
        return false;
    bool good = d->lib->dnnl_post_ops_create(&ops) == dnnl_success;
    if (good) {
        while (post->post_ops_done < p->post_op_count && post->eltwise_count < ONXI_DNNL_POST_MAX &&
               take_post_op(p, d, &p->post_ops[post->post_ops_done], dst, post, ops))
            post->post_ops_done++;
        good = d->lib->dnnl_primitive_attr_set_post_ops(post->attr, ops) == dnnl_success;
        d->lib->dnnl_post_ops_destroy(ops);
    }
    if (!good)
        d->lib->dnnl_primitive_attr_destroy(post->attr);
    return good;
}

void onxi_dnnl_post_apply(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_post *post, const onx_layout *layout,
                          onxi_dnnl_pair dst, uint64_t step)
{
    p->post_ops_done = post->post_ops_done;
    d->loses_nan = post->loses_nan;
    if (post->sum >= 0) {
        p->overwrite = post->sum;
        p->want[post->sum] = layout;
    }
    if (post->binary >= 0) {
        p->want[post->binary] = layout;
        onxi_dnnl_add(d, (int)DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)post->binary_at) | DNNL_ARG_SRC_1, ONXI_DNNL_INPUT,
                      (uint32_t)post->binary, dst, step);
    }
}
#endif
