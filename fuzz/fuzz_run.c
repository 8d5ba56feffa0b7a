/* fuzz_run.c - takes any bytes as a model: planning it and running it on small inputs is safe and stays within a memory
 * limit, with fast and plain kernels, low-precision weights, and overridden initializers. */
#include <onx/io.h>
#include <onx/kernel.h>
#include <onx/run.h>

#include "fuzz_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static onx_status run_once(void *session, onx_ctx *cx, fuzz_values *v, const onx_run_options *options)
{
    return onx_session_run_with(session, cx, (const onx_value *const *)v->inputs, v->outputs, options);
}

/* `overridden`: also gives values for inputs that have an initializer. */
static void run(onx_ctx *cx, onx_doc *doc, onx_session_options options, bool overridden)
{
    fuzz_values v = { { NULL }, { NULL } };
    onx_session *s;
    options.threads = 1;
    options.memory = 16 << 20;
    if (onx_session_new(cx, doc, &options, &s) != ONX_OK)
        return;
    uint32_t count = onx_session_input_count(s);
    bool ready = count <= FUZZ_PORTS && onx_session_output_count(s) <= FUZZ_PORTS;
    for (uint32_t i = 0; ready && i < count; i++)
        ready = (!overridden && !onx_session_input(s, i).required) ||
                fuzz_value(cx, onx_session_input(s, i).type, &v.inputs[i]);
    fuzz_run(cx, &v, ready, run_once, s);
    onx_session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 64 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc;
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make((const char *)data, size), 0, 1, &doc) == ONX_OK) {
        run(cx, doc, (onx_session_options){ 0 }, false);
        run(cx, doc, (onx_session_options){ .plain = true }, true);
        run(cx, doc, (onx_session_options){ .precision = (unsigned)(size % ONX_PRECISION_END) }, true);
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}
