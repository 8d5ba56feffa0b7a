/* isa.c - the instruction sets that the CPU supports and the system enables. */
#include "kernel/kernel.h"

#ifdef ONX_WITH_X86_LEVELS
#if defined(__has_include) && __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h> /* the C library read CPUID at program start: CPUID traps in virtual machines */
#define HAS_FEATURE_LEAVES
#define HAS(name, built_in) active(x86_cpu_##name)
#define HAS_TILES           (HAS(AMX_TILE, ) && HAS(AMX_INT8, ) && HAS(AMX_BF16, ))
#else
#define HAS(name, built_in) (__builtin_cpu_supports(built_in) != 0)
#define HAS_TILES           false /* compilers differ in which names of them they know */
#endif
#endif

#ifdef HAS_FEATURE_LEAVES
/* CPU_FEATURE_ACTIVE of the C library shifts a signed 1 by 31, which C leaves undefined. */
static bool active(unsigned feature)
{
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(feature / 128);
    return leaf->active_array[feature % 128 / 32] >> feature % 32 & 1;
}
#endif

unsigned onxi_isa_vectors(void)
{
#ifdef ONX_WITH_X86_LEVELS
    if (!HAS(AVX2, "avx2") || !HAS(FMA, "fma") || !HAS(BMI2, "bmi2"))
        return ONX_ISA_BASE;
    if (!HAS(AVX512F, "avx512f") || !HAS(AVX512BW, "avx512bw") || !HAS(AVX512CD, "avx512cd") ||
        !HAS(AVX512DQ, "avx512dq") || !HAS(AVX512VL, "avx512vl"))
        return ONX_ISA_V3;
    return ONX_ISA_V4;
#else
    return ONX_ISA_BASE;
#endif
}

unsigned onxi_isa_best(void)
{
    const unsigned vectors = onxi_isa_vectors();
#ifdef ONX_WITH_X86_LEVELS
    if (vectors == ONX_ISA_V4 && HAS(AVX512_VNNI, "avx512vnni")) {
        if (!HAS(AVX512_BF16, "avx512bf16"))
            return ONX_ISA_VNNI;
#ifdef ONX_EMULATED_TILES
        return ONX_ISA_AMX;
#else
        return HAS_TILES && onxi_platform_permit_tiles() ? ONX_ISA_AMX : ONX_ISA_BF16;
#endif
    }
#endif
    return vectors;
}

unsigned onxi_isa_of(unsigned asked)
{
#ifdef ONX_EMULATED_TILES
    const unsigned usual = onxi_isa_best() < ONX_ISA_BF16 ? onxi_isa_best() : ONX_ISA_BF16;
#else
    const unsigned usual = onxi_isa_best();
#endif
    const unsigned most = asked ? onxi_isa_best() : usual;
    return asked && asked < most ? asked : most;
}

bool onxi_isa_permutes_bytes(void)
{
#ifdef ONX_WITH_X86_LEVELS
    return HAS(AVX512_VBMI, "avx512vbmi");
#else
    return false;
#endif
}

bool onxi_isa_takes(unsigned isa, const onx_kernel *k)
{
    return k->isa == ONX_ISA_ANY || k->isa == isa || (k->isa >= ONX_ISA_V4 && k->isa < isa);
}
