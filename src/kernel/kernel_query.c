/* kernel_query.c - tells callers which built-in kernels an operator has. */
#include "kernel/kernel.h"

static bool serves(const onx_kernel *k, onx_str domain, onx_str op)
{
    return onx_str_is(op, k->op) && onx_str_is(domain, k->domain ? k->domain : "");
}

uint32_t onx_kernel_variants(onx_str domain, onx_str op, int32_t since, const char **variants, uint32_t room)
{
    if (!variants)
        return 0;
    int32_t newest = 0; /* only rows of this version are in force */
    uint32_t count = 0;
    const unsigned isa = onxi_isa_of(ONX_ISA_ANY);
    domain = onxi_domain_plain(domain);
    for (const onx_kernel *const *table = onxi_kernel_tables; *table; table++)
        for (const onx_kernel *k = *table; k->op; k++)
            if (k->since <= since && k->since > newest && serves(k, domain, op))
                newest = k->since;
    for (const onx_kernel *const *table = onxi_kernel_tables; *table && newest; table++) {
        for (const onx_kernel *k = *table; k->op; k++) {
            if (k->since != newest || !serves(k, domain, op) || !onxi_isa_takes(isa, k))
                continue;
            const char *variant = onxi_kernel_variant(k);
            bool told = false;
            for (uint32_t i = 0; i < count && i < room; i++)
                told = told || strcmp(variants[i], variant) == 0;
            if (told)
                continue;
            if (count < room)
                variants[count] = variant;
            count++;
        }
    }
    return count;
}
