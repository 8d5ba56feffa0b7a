/* reshape.c - Reshape, Squeeze and Unsqueeze of images with channel blocks, whose elements stay where they are. */
#include "kernel/core/blocked.h"

#if ONXI_PLATFORM_ROOMY

/* The memory is a list of blocks, each of which has all pixels of some channels. It is the same list if the pixels of
 * an image and the channels of a block stay together, however many images and spatial axes there are. */
static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const uint32_t block = onxi_blocked_of(x);
    if (!p->want || !block || y->kind != ONX_VALUE_TENSOR || y->rank < 3 || y->count != x->count ||
        onxi_product(y->dims, 2, y->rank) != onxi_product(x->dims, 2, x->rank))
        return ONX_E_UNSUPPORTED;
    const onx_layout *layout = onxi_blocked_layout(p->arena, y, block);
    if (!layout)
        return ONX_E_UNSUPPORTED;
    onxi_image_layouts(p, x->layout, layout);
    return ONX_OK;
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        .op = name, .since = 1, .preference = 5, .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_VIEW, .variant = "blocked",  \
        .prepare = prepare, .run = onxi_view_run                                                                       \
    }
const onx_kernel onxi_kernels_reshape[] = { ROW("Reshape"), ROW("Squeeze"), ROW("Unsqueeze"), { 0 } };
#else
const onx_kernel onxi_kernels_reshape[] = { { 0 } };
#endif
