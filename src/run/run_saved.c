/* run_saved.c - what was packed and is kept in a folder for later sessions (onx_session_options.cache): which file it
 * is in follows from the weights' bytes and from all that decides what is made of them. */
#include "run/run.h"

enum {
    EDITION = 1,       /* goes up when a kernel packs otherwise under the same key */
    WINDOW = 32 << 20, /* bytes of the document that are in memory at a time */
};

/* The elements as stored in the document, which need not stay in memory. */
static onxi_digest digest_raw(onxi_run_session *s, const onxi_run_source *source, onxi_digest digest)
{
    const uint64_t size = source->value->size;
    for (uint64_t at = 0; at < size; at += WINDOW) {
        const uint64_t len = size - at < WINDOW ? size - at : WINDOW;
        digest = onxi_store_digest(s->root->store, s->threads, digest, source->raw + at, (size_t)len);
        onxi_run_source_forget(s, source, at, len);
    }
    return digest;
}

static bool digest_elements(onxi_run_session *s, const onxi_run_keeper *to, uint64_t size, onxi_digest *digest)
{
    const onxi_run_source *source = to->source;
    const onxi_store *store = s->root->store;
    if (!source || source->made) {
        const char *at = source ? source->value->data : to->elements;
        for (uint64_t done = 0; done < size; done += WINDOW)
            *digest = onxi_store_digest(store, s->threads, *digest, at + done,
                                        (size_t)(size - done < WINDOW ? size - done : WINDOW));
        return true;
    }
    if (onxi_run_source_is_whole(source)) {
        *digest = digest_raw(s, source, *digest);
        return true;
    }
    onxi_run_source whole = *source;
    onx_value value = *source->value;
    void *elements = onxi_resize(to->cx, NULL, 0, size);
    if (!elements)
        return false;
    onxi_run_source_write(s, source, elements);
    value.data = elements;
    whole.value = &value;
    whole.made = true;
    onxi_run_keeper made = *to;
    made.source = &whole;
    const bool good = digest_elements(s, &made, size, digest);
    onxi_release(to->cx, elements, size);
    return good;
}

bool onxi_run_saved_name(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, onxi_digest *out)
{
    const onxi_store *store = s->root->store;
    const onx_value *v = to->source ? to->source->value : p->inputs[packing->input];
    if (!store || packing->size < ONXI_RUN_STORE_LEAST || v->kind != ONX_VALUE_TENSOR || !p->kernel)
        return false;
    const uint64_t numbers[] = { EDITION,       v->dtype,          v->rank,        v->size,
                                 packing->size, packing->key_size, p->kernel->isa, ONX_VERSION_NUMBER };
    const char *variant = onxi_kernel_variant(p->kernel), *domain = p->kernel->domain ? p->kernel->domain : "";
    onxi_digest digest = onxi_store_digest(store, 1, (onxi_digest){ 0 }, numbers, sizeof numbers);
    digest = onxi_store_digest(store, 1, digest, v->dims, v->rank * sizeof *v->dims);
    digest = onxi_store_digest(store, 1, digest, variant, strlen(variant) + 1);
    digest = onxi_store_digest(store, 1, digest, domain, strlen(domain) + 1);
    digest = onxi_store_digest(store, 1, digest, p->kernel->op, strlen(p->kernel->op) + 1);
    digest = onxi_store_digest(store, 1, digest, packing->key, packing->key_size);
    *out = digest;
    return digest_elements(s, to, v->size, out);
}
