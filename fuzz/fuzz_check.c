/* fuzz_check.c - takes any bytes as a message of any kind and checks it, completely and quickly. For any input, the
 * check terminates, each finding names a rule, and a second check gives the same findings. */
#include <onx/check.h>
#include <onx/io.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static onx_check_summary check(onx_str bytes, onx_kind kind, uint32_t flags)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_check_summary summary = { 0, 0, 0 };
    if (!cx)
        abort();
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 1u << 28;
    onx_ctx_set_limits(cx, limits);
    if (onx_read(cx, kind, bytes, ONX_READ_COPY, 1, &doc) == ONX_OK) {
        onx_check_options options = { .flags = flags, .max_errors = 20 };
        size_t before = onx_diag_count(cx);
        onx_status status = onx_check(cx, doc, &options, &summary);
        if (status == ONX_OK && summary.errors)
            abort();
        for (size_t i = before; i < onx_diag_count(cx); i++) {
            const onx_diag *d = onx_diag_get(cx, i);
            if (status != ONX_E_MEMORY && status != ONX_E_LIMIT && status != ONX_E_MISUSE && !d->rule)
                abort();
        }
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return summary;
}

/* The first byte chooses the kind and the flags. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const onx_kind kinds[] = { ONX_KIND_MODEL,     ONX_KIND_MODEL,         ONX_KIND_GRAPH,
                                      ONX_KIND_FUNCTION,  ONX_KIND_NODE,          ONX_KIND_TYPE,
                                      ONX_KIND_TENSOR,    ONX_KIND_SPARSE_TENSOR, ONX_KIND_MAP,
                                      ONX_KIND_OPTIONAL,  ONX_KIND_SEQUENCE,      ONX_KIND_OPERATOR_SET,
                                      ONX_KIND_ATTRIBUTE, ONX_KIND_VALUE_INFO,    ONX_KIND_MODEL,
                                      ONX_KIND_MODEL };
    if (!size)
        return 0;
    onx_kind kind = kinds[data[0] & 15];
    uint32_t flags = data[0] & 16 ? ONX_CHECK_FULL | ONX_CHECK_PEDANTIC | ONX_CHECK_STRICT : ONX_CHECK_PEDANTIC;
    onx_str bytes = onx_str_make((const char *)data + 1, size - 1);
    onx_check_summary first = check(bytes, kind, flags), second = check(bytes, kind, flags);
    if (first.errors != second.errors || first.warnings != second.warnings || first.notes != second.notes)
        abort();
    onx_check_summary quick = check(bytes, kind, ONX_CHECK_STRUCTURE);
    if (quick.warnings || quick.notes)
        abort();
    return 0;
}
