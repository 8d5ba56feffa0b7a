/* token.h - tokenizers of nodes of ai.onnx.contrib: read while preparing, the same for all runs. */
#ifndef ONXI_KERNEL_CONTRIB_TOKEN_H
#define ONXI_KERNEL_CONTRIB_TOKEN_H

#include "kernel/contrib/contrib.h"
#include "token/token.h"

/* Says of which node a tokenizer could not be read. */
onx_status onxi_contrib_unread(const onx_prepare *p, onx_status status);
/* Says which string of which node could not be done. */
onx_status onxi_contrib_undone(onx_work *work, onx_status status, uint64_t index);
/* An output that is not done, such as where tokens are in a text. */
onx_status onxi_contrib_not_output(const onx_prepare *p, uint32_t output, const char *what);
/* A flag among the inputs that may be left out. */
onx_status onxi_contrib_flag(onx_work *work, uint32_t input, bool fallback, bool *out);

/* Ids of several texts, in an arena of their own. */
typedef struct onxi_contrib_ids {
    int64_t *ids;
    uint64_t count;
} onxi_contrib_ids;

#endif
