/* fuzz_infer.c - decodes a model, infers its types and writes the result; the first byte chooses the options. */
#include <onx/infer.h>
#include <onx/io.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const onx_infer_fixed fixed[] = { { "N", 3 } };
    if (size == 0)
        return 0;
    const onx_infer_options options = { .strict = data[0] & 1,
                                        .check_type = data[0] & 2,
                                        .no_data_prop = data[0] & 4,
                                        .plain_names = data[0] & 8,
                                        .fixed = fixed,
                                        .fixed_count = data[0] & 16 ? 1u : 0u };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_buffer buffer;
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = UINT64_C(1) << 30;
    onx_ctx_set_limits(cx, limits);
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make((const char *)data + 1, size - 1), 0, 1, &doc) == ONX_OK) {
        onx_infer *infer;
        if (onx_infer_new(cx, doc, &options, &infer) == ONX_OK) {
            (void)onx_infer_loss_get(infer, 0);
            (void)onx_infer_fix(infer, onx_str_of("N"), 5);
            if (onx_infer_apply(infer) == ONX_OK &&
                onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &buffer) == ONX_OK)
                onx_buffer_free(&buffer);
            onx_infer_free(infer);
        }
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}
