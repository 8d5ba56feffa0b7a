/* isa.c - the instruction sets that this processor has, and that the system lets a program use. */
#include "kernel/kernel.h"

#ifdef ONX_WITH_X86_LEVELS
#include <cpuid.h>

enum { VNNI_ECX = 1 << 11, TILE_EDX = 1 << 24, TILE_INT8_EDX = 1 << 25, TILE_BF16_EDX = 1 << 22, BF16_EAX = 1 << 5 };

/* What comes after ONX_ISA_V4. */
static unsigned beyond_v4(void)
{
    unsigned eax, ebx, ecx, edx, more, unused;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ecx & VNNI_ECX))
        return ONX_ISA_V4;
    const unsigned tiles = TILE_EDX | TILE_INT8_EDX | TILE_BF16_EDX;
    if ((edx & tiles) == tiles && eax >= 1 && __get_cpuid_count(7, 1, &more, &unused, &unused, &unused) &&
        (more & BF16_EAX) && onxi_platform_permit_tiles())
        return ONX_ISA_AMX;
    return ONX_ISA_VNNI;
}
#endif

unsigned onxi_isa_best(void)
{
#ifdef ONX_WITH_X86_LEVELS
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return beyond_v4();
    if (v3)
        return ONX_ISA_V3;
#endif
    return ONX_ISA_BASE;
}

bool onxi_isa_takes(unsigned isa, const onx_kernel *k)
{
    return k->isa == ONX_ISA_ANY || k->isa == isa || (k->isa >= ONX_ISA_V4 && k->isa < isa);
}
