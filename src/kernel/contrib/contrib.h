/* contrib.h - what the kernels of ai.onnx.contrib share. */
#ifndef ONXI_KERNEL_CONTRIB_H
#define ONXI_KERNEL_CONTRIB_H

#include "kernel/kernel.h"

#define CONTRIB_KERNEL(name, ...)                                                                                      \
    {                                                                                                                  \
        .op = name, .domain = "ai.onnx.contrib", .since = 1, __VA_ARGS__                                               \
    }

/* The one element of an input that is a setting. */
onx_status onxi_contrib_text(onx_work *work, uint32_t input, onx_str *out);
onx_status onxi_contrib_int(onx_work *work, uint32_t input, int64_t *out);
/* Splits begin at 0 or later, never decrease, and stay within `count`. How long the longest row is. */
onx_status onxi_contrib_splits(onx_work *work, const onx_value *splits, uint64_t count, int64_t *longest_out);

#endif
