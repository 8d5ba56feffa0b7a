/* pool.h - shared by the kernels of poolings. */
#ifndef ONXI_KERNEL_POOL_H
#define ONXI_KERNEL_POOL_H

#include "kernel/kernel.h"

/* Does an average that includes the padding also count the positions that ceil_mode adds after the pads? (Before
 * version 22.) Of a window that is larger than the padded input, each version counts the padded input only. */
static inline bool onxi_pool_counts_beyond(const onx_prepare *p)
{
    return p->since < 22 && onx_prepare_is_set(p, "ceil_mode");
}

#endif
