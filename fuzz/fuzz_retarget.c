/* fuzz_retarget.c - decodes a model and takes it to other versions of its operator sets; the first byte chooses which.
 */
#include <onx/io.h>
#include <onx/transform.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const onx_opset_version opset[] = { { onx_str_of(""), 1 + data[0] % 28 },
                                        { onx_str_of("ai.onnx.ml"), 1 + data[0] % 5 } };
    const onx_retarget_options options = {
        .best_effort = data[0] & 32, .dry_run = data[0] & 64, .opset = opset, .opset_count = 2
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_buffer buffer;
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = UINT64_C(1) << 30;
    onx_ctx_set_limits(cx, limits);
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make((const char *)data + 1, size - 1), 0, 1, &doc) == ONX_OK) {
        if (onx_retarget(cx, doc, &options) == ONX_OK &&
            onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &buffer) == ONX_OK)
            onx_buffer_free(&buffer);
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}
