/* distance.c - CDist. */
#include "kernel/core/distance.h"
#include "kernel/microsoft/microsoft.h"

#if ONXI_PLATFORM_ROOMY /* browsers run the function body */

typedef struct pairs {
    uint64_t left, right, size;
    uint64_t across; /* pieces of the work along the vectors on the right */
    bool root;
    bool swapped; /* the vectors on the left are those of B */
} pairs;

/* Fewer vectors of B do not fill the registers that hold vectors on the right. */
enum { FEW = 32 };

static onx_status distance_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    pairs *q = ONXI_NEW(p->arena, pairs);
    if (!q)
        return ONX_E_MEMORY;
    if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[1] || a->dtype != b->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs are not matrices of one type with rows of one length");
    q->swapped = b->dims[0] < FEW && a->dims[0] > b->dims[0];
    q->left = (uint64_t)p->inputs[q->swapped]->dims[0];
    q->right = (uint64_t)p->inputs[!q->swapped]->dims[0];
    q->size = (uint64_t)a->dims[1];
    q->root = onx_str_is(onx_prepare_text(p, "metric"), "euclidean");
    q->across = (q->right + ONXI_DISTANCE_RIGHT - 1) / ONXI_DISTANCE_RIGHT;
    p->params = q;
    p->rows = (q->left + ONXI_DISTANCE_LEFT - 1) / ONXI_DISTANCE_LEFT * q->across;
    p->grain = onxi_worth_a_thread((q->size + ONXI_COST_ELEMENT) * ONXI_DISTANCE_LEFT * ONXI_DISTANCE_RIGHT);
    p->thread_workspace = ONXI_DISTANCE_SPACE;
    return ONX_OK;
}

/* A row of work is a block of the result. */
static onx_status distance_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pairs *q = work->params;
    const onxi_distance_loops *loops = work->prepared->kernel->body;
    const bool wide = work->inputs[0]->dtype == ONX_DOUBLE;
    const uint64_t width = onxi_element_size(work->inputs[0]->dtype);
    const uint64_t left_step = q->swapped ? 1 : q->right, right_step = q->swapped ? q->left : 1;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t i = row / q->across * ONXI_DISTANCE_LEFT, j = row % q->across * ONXI_DISTANCE_RIGHT;
        const onxi_distances d = {
            .left = (const char *)work->inputs[q->swapped]->data + i * q->size * width,
            .right = (const char *)work->inputs[!q->swapped]->data + j * q->size * width,
            .left_count = q->left - i < ONXI_DISTANCE_LEFT ? q->left - i : ONXI_DISTANCE_LEFT,
            .right_count = q->right - j < ONXI_DISTANCE_RIGHT ? q->right - j : ONXI_DISTANCE_RIGHT,
            .size = q->size,
            .out = (char *)work->outputs[0]->data + (i * left_step + j * right_step) * width,
            .space = work->thread_workspace,
            .left_step = left_step,
            .right_step = right_step,
            .root = q->root,
        };
        (wide ? loops->doubles : loops->floats)(&d);
    }
    return ONX_OK;
}

#define DISTANCE(...)                                                                                                  \
    MS_KERNEL("CDist", .dtypes = ONXI_F32 | ONX_DTYPE_BIT(ONX_DOUBLE), .prepare = distance_prepare,                    \
              .run = distance_run, __VA_ARGS__)
#endif

const onx_kernel onxi_kernels_microsoft_distance[] = {
#if ONXI_PLATFORM_ROOMY
    ONXI_LEVELS(DISTANCE, onxi_distance_loops),
#endif
    { 0 },
};
