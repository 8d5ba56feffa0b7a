/* op_hash.h - the hash of operator names, shared by the look-up and the tool that generates its table. */
#ifndef ONXI_OP_HASH_H
#define ONXI_OP_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t onxi_op_hash_part(uint32_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT32_C(16777619);
    return hash;
}

/* FNV-1a, folded so that the low bits depend on all bits. */
static inline uint32_t onxi_op_hash(const char *domain, size_t domain_len, const char *name, size_t name_len)
{
    uint32_t hash = onxi_op_hash_part(UINT32_C(2166136261), domain, domain_len);
    hash = onxi_op_hash_part(hash, name, name_len);
    return hash ^ hash >> 15;
}

#endif
