/* ir_part.c - tensors that are a slice of another tensor's elements, such as some columns of a matrix: locates the runs
 * of bytes. */
#include "ir/ir.h"

onx_status onxi_doc_add_part(onx_doc *doc, const onx_tensor *tensor, const onxi_tensor_part *part)
{
    if (!doc->parts) {
        if (!(doc->parts = ONXI_NEW(doc->arena, onxi_map)))
            return ONX_E_MEMORY;
        *doc->parts = onxi_map_in_arena(doc->arena);
    }
    onxi_tensor_part *copy = ONXI_NEW(doc->arena, onxi_tensor_part);
    void **at = copy ? onxi_map_at(doc->parts, (uint64_t)(uintptr_t)tensor) : NULL;
    if (!at)
        return ONX_E_MEMORY;
    *copy = *part;
    *at = copy;
    return ONX_OK;
}

const onxi_tensor_part *onxi_doc_part(const onx_doc *doc, const onx_tensor *tensor)
{
    return doc && doc->parts ? onxi_map_find(doc->parts, (uint64_t)(uintptr_t)tensor) : NULL;
}

const char *onxi_part_run(const onxi_tensor_part *part, uint64_t run)
{
    uint64_t at = 0;
    for (uint32_t i = part->axes; i-- > 0; run /= part->count[i])
        at += run % part->count[i] * part->pitch[i];
    return part->span.ptr + at;
}

void onxi_part_copy(const onxi_tensor_part *part, uint64_t from, uint64_t size, void *out)
{
    char *to = out;
    while (size) {
        const uint64_t skipped = from % part->run, left = part->run - skipped, n = left < size ? left : size;
        memcpy(to, onxi_part_run(part, from / part->run) + skipped, (size_t)n);
        to += n;
        from += n;
        size -= n;
    }
}
