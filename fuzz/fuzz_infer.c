/* fuzz_infer.c - decodes a model, infers its types and writes the result. The first byte selects the options. */
#include "fuzz_model.h"

#include <onx/infer.h>

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    static const onx_infer_fixed fixed[] = { { "N", 3 } };
    const onx_infer_options options = { .strict = choice & 1,
                                        .check_type = choice & 2,
                                        .no_data_prop = choice & 4,
                                        .plain_names = choice & 8,
                                        .fixed = fixed,
                                        .fixed_count = choice & 16 ? 1u : 0u };
    onx_infer *infer;
    const onx_status made = onx_infer_new(cx, doc, &options, &infer);
    if (made != ONX_OK)
        return made;
    (void)onx_infer_loss_get(infer, 0);
    (void)onx_infer_fix(infer, onx_str_of("N"), 5);
    const onx_status status = onx_infer_apply(infer);
    onx_infer_free(infer);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
