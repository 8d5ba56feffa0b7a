/* contrib.h - shared by the kernels of ai.onnx.contrib. */
#ifndef ONXI_KERNEL_CONTRIB_H
#define ONXI_KERNEL_CONTRIB_H

#include "kernel/kernel.h"

#define CONTRIB_KERNEL(name, ...)                                                                                      \
    {                                                                                                                  \
        .op = name, .domain = "ai.onnx.contrib", .since = 1, __VA_ARGS__                                               \
    }

/* Reads an input that is a setting: a single string. */
onx_status onxi_contrib_text(onx_work *work, uint32_t input, onx_str *out);
/* Before string or row `i` of many: ONX_E_CANCELLED, without a diagnostic, if the run has to end. */
static inline onx_status onxi_contrib_go_on(const onx_work *work, uint64_t i)
{
    enum { EACH = 16 };
    return i % EACH == EACH - 1 && onx_work_stops(work) ? ONX_E_CANCELLED : ONX_OK;
}
onx_status onxi_contrib_int(onx_work *work, uint32_t input, int64_t *out);
/* Checks that splits begin at 0 or later, never decrease, and are at most `count`. *longest_out is the length of the
 * longest row. */
onx_status onxi_contrib_splits(onx_work *work, const onx_value *splits, uint64_t count, int64_t *longest_out);

#endif
