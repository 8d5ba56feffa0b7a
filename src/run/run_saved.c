/* run_saved.c - packed weights that are kept for later sessions, in a folder (onx_session_options.cache) or in the
 * memory of the process. They are identified by the bytes of the weights and by everything else that determines the
 * packed form. */
#include "run/run.h"

enum {
    EDITION = 2,       /* increased when a kernel packs differently under the same key */
    WINDOW = 32 << 20, /* bytes of the document that are read at a time */
};

static onxi_secret secret_of(const onxi_run_session *s)
{
    return s->root->store ? onxi_store_secret(s->root->store) : s->root->left_secret;
}

/* How the elements of a source are given: in memory, as scaled elements, as copies of one element, or otherwise. */
typedef enum source_kind { LIE, ARE_SCALED, ARE_FILLED, OTHERS } source_kind;

static source_kind kind_of(const onxi_run_source *source)
{
    if (source->made || onxi_run_source_is_whole(source))
        return LIE;
    if (onxi_run_source_is_filled(source))
        return ARE_FILLED;
    return source->part || source->late || source->recipe ? OTHERS : ARE_SCALED;
}

/* Digests bytes in memory. Pages of large constants of the document are dropped after reading. */
static onxi_digest digest_bytes(onxi_run_session *s, const onxi_run_source *source, const char *at, uint64_t size)
{
    const bool forgets = source && !source->made && size > WINDOW;
    onxi_digest digest = { 0 };
    for (uint64_t done = 0, len; done < size; done += len) {
        len = size - done < WINDOW ? size - done : WINDOW;
        digest = onxi_digest_then(secret_of(s), s->threads, digest, at + done, (size_t)len);
        if (forgets) /* which counts in bytes of elements */
            onxi_run_source_forget(s, source, source->narrow ? done * 2 : done, source->narrow ? len * 2 : len);
    }
    return digest;
}

/* Digests elements that have to be made first. */
static bool digest_made(onxi_run_session *s, const onxi_run_keeper *to, onxi_digest *digest)
{
    const uint64_t size = to->source->value->size;
    void *elements = onxi_resize(to->cx, NULL, 0, size);
    if (!elements)
        return false;
    onxi_run_source_write(s, to->source, elements);
    *digest = digest_bytes(s, NULL, elements, size);
    onxi_release(to->cx, elements, size);
    return true;
}

static bool digest_source(onxi_run_session *s, const onxi_run_keeper *to, onxi_digest *digest)
{
    const onxi_run_source *source = to->source;
    const source_kind kind = kind_of(source);
    if (kind == OTHERS)
        return s->root->store && digest_made(s, to, digest);
    if (kind == ARE_FILLED) {
        onxi_run_source plain = *source;
        float element;
        plain.scale = NULL;
        onxi_run_source_read(&plain, 0, 1, &element);
        *digest = onxi_digest_then(secret_of(s), 1, (onxi_digest){ 0 }, &element, sizeof element);
    } else {
        *digest = digest_bytes(s, source, source->made ? source->value->data : source->raw,
                               source->made ? source->value->size : onxi_run_source_bytes(source));
    }
    const uint64_t scaled = source->scale && !source->made,
                   numbers[] = { kind, scaled, source->made ? ONX_UNDEFINED : source->narrow };
    *digest = onxi_digest_then(secret_of(s), 1, *digest, numbers, sizeof numbers);
    if (scaled)
        *digest = onxi_digest_then(secret_of(s), 1, *digest, source->scale,
                                   (size_t)source->value->dims[0] * sizeof *source->scale);
    return true;
}

static bool digest_elements(onxi_run_session *s, const onxi_run_keeper *to, uint64_t size, onxi_digest *digest)
{
    onxi_run_source *source = to->source;
    if (!source) {
        *digest = digest_bytes(s, NULL, to->elements, size);
        return true;
    }
    if (source->has_digest) {
        *digest = source->digest;
        return true;
    }
    if (!digest_source(s, to, digest))
        return false;
    pthread_mutex_lock(&s->root->lock); /* runs copy the source meanwhile */
    source->digest = *digest;
    source->has_digest = true;
    pthread_mutex_unlock(&s->root->lock);
    return true;
}

/* Is the packed form left to later sessions? This pays where packing takes much longer than digesting the elements: for
 * weights of convolutions and for filled constants. Weights of matrix products are packed at the speed of memory, so a
 * digest would take as long as it saves. A session leaves no more than ONXI_KEPT_MOST bytes: those that it packs first,
 * which the next session needs first. */
static bool leaves(const onxi_run_session *s, const onxi_run_keeper *to, uint64_t size, const onx_value *v)
{
    return s->root->leaves && to->session && size <= ONXI_KEPT_MOST && s->root->kept_bytes <= ONXI_KEPT_MOST - size &&
           (v->rank > 2 || (to->source && kind_of(to->source) == ARE_FILLED));
}

bool onxi_run_saved_name(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, onxi_digest *out)
{
    const onx_value *v = to->source ? to->source->value : p->inputs[packing->input];
    const bool saves = s->root->store && packing->size >= ONXI_RUN_STORE_LEAST;
    onxi_digest elements;
    if ((!saves && !leaves(s, to, packing->size, v)) || v->kind != ONX_VALUE_TENSOR || !p->kernel ||
        !digest_elements(s, to, v->size, &elements))
        return false;
    const uint64_t numbers[] = { EDITION,       v->dtype,          v->rank,        v->size,
                                 packing->size, packing->key_size, p->kernel->isa, ONX_VERSION_NUMBER };
    const char *variant = onxi_kernel_variant(p->kernel), *domain = p->kernel->domain ? p->kernel->domain : "";
    const struct {
        const void *bytes;
        size_t len;
    } parts[] = { { numbers, sizeof numbers },
                  { v->dims, v->rank * sizeof *v->dims },
                  { variant, strlen(variant) + 1 },
                  { domain, strlen(domain) + 1 },
                  { p->kernel->op, strlen(p->kernel->op) + 1 },
                  { packing->key, packing->key_size } };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        elements = onxi_digest_then(secret_of(s), 1, elements, parts[i].bytes, parts[i].len);
    *out = elements;
    return true;
}
