/* fuzz_opset.c - takes the halves of any bytes as two operator-set documents: checks them, loads them into one
 * registry, looks up the operators that they list, and compares them. */
#include <onx/io.h>
#include <onx/op.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each operator that a loaded document lists must be found at its version, unless it is built in. */
static void look_up(const onx_registry *registry, const onx_doc *doc)
{
    const onx_operator_set *set = onx_doc_root(doc, ONX_KIND_OPERATOR_SET);
    char text[256];
    for (uint32_t i = 0; i < set->operator_count; i++) {
        const onx_operator *listed = set->operator_[i];
        const onx_str name = onx_view(listed->op_type), domain = onx_view(set->domain);
        const onx_op *op = onx_registry_find(registry, domain, name, listed->since_version);
        if (!op && !onx_op_newest(domain, name) && listed->since_version <= INT32_MAX)
            abort();
        if (!op)
            continue;
        onx_op_signature(op, text, sizeof text);
        onx_op_change(op, text, sizeof text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t half = size / 2;
    const char *bytes = (const char *)data;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 256 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *docs[2] = { NULL, NULL };
    onx_registry *registry = NULL;
    if (onx_registry_new(cx, &registry) == ONX_OK &&
        onx_read(cx, ONX_KIND_OPERATOR_SET, onx_str_make(bytes, half), 0, 1, &docs[0]) == ONX_OK &&
        onx_read(cx, ONX_KIND_OPERATOR_SET, onx_str_make(bytes + half, size - half), 0, 1, &docs[1]) == ONX_OK) {
        for (int i = 0; i < 2; i++)
            if (onx_registry_load(registry, docs[i]) == ONX_OK)
                look_up(registry, docs[i]);
        (void)onx_opset_compare(cx, docs[0], docs[1], NULL, NULL);
    }
    onx_registry_free(registry);
    onx_doc_free(docs[0]);
    onx_doc_free(docs[1]);
    onx_ctx_free(cx);
    return 0;
}
