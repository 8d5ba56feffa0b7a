/* fuzz_simplify.c - decodes a model and, depending on the first byte, sorts it, inlines functions and simplifies it. */
#include "fuzz_model.h"

#include <onx/transform.h>

static void changed(void *user, const onx_change *change)
{
    *(size_t *)user += change->path.len + change->rule.len + change->text.len;
}

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    static const onx_infer_fixed fixed[] = { { "N", 3 } };
    const onx_str keep[] = { onx_str_of("y") };
    size_t told = 0;
    const onx_simplify_options options = { .exact = choice & 1,
                                           .changed = changed,
                                           .user = &told,
                                           .fixed = fixed,
                                           .fixed_count = choice & 2 ? 1u : 0u,
                                           .keep = keep,
                                           .keep_count = choice & 4 ? 1u : 0u,
                                           .fold_limit = choice & 8 ? 1 << 16 : 0 };
    const onx_inline_options bodies = { .schema = choice & 16 };
    if (choice & 32)
        ONX_TRY(onx_doc_sort(doc, NULL));
    if (choice & 64)
        ONX_TRY(onx_inline(cx, doc, &bodies));
    return onx_simplify(cx, doc, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
