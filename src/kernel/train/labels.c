/* labels.c - checks the labels of a loss before its function body runs: they have to be valid classes. The nodes of the
 * body would take negative labels as counted from the end. */
#include "kernel/kernel.h"

#include "kernel/core/move.h"

typedef struct label_params {
    int64_t classes, ignored;
    bool ignores;
} label_params;

static onx_status prepare(onx_prepare *p)
{
    label_params *q = ONXI_NEW(p->arena, label_params);
    const onx_value *x = p->input_count > 1 ? p->inputs[0] : NULL;
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    q->classes = x && x->kind == ONX_VALUE_TENSOR && x->rank > 1 ? x->dims[1] : INT64_MAX;
    q->ignores = onx_prepare_given(p, "ignore_index");
    q->ignored = q->ignores ? onx_prepare_int(p, "ignore_index") : 0;
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const label_params *q = work->params;
    const onx_value *labels = work->prepared->input_count > 1 ? work->inputs[1] : NULL;
    (void)first, (void)last;
    for (uint64_t i = 0; labels && i < labels->count; i++) {
        const int64_t label = onxi_move_number(labels, i);
        if ((label < 0 || label >= q->classes) && !(q->ignores && label == q->ignored))
            return onx_work_fail(work, ONX_E_INVALID, "label %lld of element %llu is none of %lld classes",
                                 (long long)label, (unsigned long long)i, (long long)q->classes);
    }
    return ONX_OK;
}

static const onx_kernel labels = { .op = "", .prepare = prepare, .run = run };
static const onx_kernel *const labels_list[] = { &labels };

const onx_kernel *const *onxi_kernel_guard(onxi_op_id op)
{
    return op == ONXI_ID_SoftmaxCrossEntropyLoss || op == ONXI_ID_NegativeLogLikelihoodLoss ? labels_list : NULL;
}
