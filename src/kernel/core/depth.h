/* depth.h - what DepthToSpace and SpaceToDepth do. */
#ifndef ONXI_KERNEL_DEPTH_H
#define ONXI_KERNEL_DEPTH_H

#include "kernel/kernel.h"

typedef struct onxi_depth {
    bool to_depth;      /* SpaceToDepth */
    bool columns_first; /* channels of the deep image: of a channel of the other, the pixels of its square (CRD) */
    int64_t block;      /* pixels along a side of a square; its square does not overflow */
} onxi_depth;

/* Reads the attributes, and checks that the input divides into squares. */
onx_status onxi_depth_of(const onx_prepare *p, onxi_depth *out);

#endif
