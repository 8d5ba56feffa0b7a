/* token.h - tokenizers of nodes of ai.onnx.contrib. They are read while preparing and shared by all runs. */
#ifndef ONXI_KERNEL_CONTRIB_TOKEN_H
#define ONXI_KERNEL_CONTRIB_TOKEN_H

#include "kernel/contrib/contrib.h"
#include "token/token.h"

/* Reports that the tokenizer of a node could not be read. */
onx_status onxi_contrib_unread(const onx_prepare *p, onx_status status);
/* Reports the string that could not be converted. */
onx_status onxi_contrib_undone(onx_work *work, onx_status status, uint64_t index);
/* Reports an output that is not supported, such as offsets of tokens. */
onx_status onxi_contrib_not_output(const onx_prepare *p, uint32_t output, const char *what);
/* Reads an optional boolean input. */
onx_status onxi_contrib_flag(onx_work *work, uint32_t input, bool fallback, bool *out);

/* The ids of several texts, in an arena of their own. */
typedef struct onxi_contrib_ids {
    int64_t *ids;
    uint64_t count;
} onxi_contrib_ids;

#endif
