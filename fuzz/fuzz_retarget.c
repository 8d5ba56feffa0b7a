/* fuzz_retarget.c - decodes a model and converts it to other versions of its operator sets, which the first byte
 * selects. */
#include "fuzz_model.h"

#include <onx/transform.h>

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    const onx_opset_version opset[] = { { onx_str_of(""), 1 + choice % 28 },
                                        { onx_str_of("ai.onnx.ml"), 1 + choice % 5 } };
    const onx_retarget_options options = {
        .best_effort = choice & 32, .dry_run = choice & 64, .opset = opset, .opset_count = 2
    };
    return onx_retarget(cx, doc, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
