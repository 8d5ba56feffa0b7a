/* norm.c - normalizations of floats, a vector at a time. */
#include "kernel/core/norm.h"
#include "kernel/simd/math.h"

/* Sums are taken in float over blocks that are short enough for that, and in double over the blocks. */
enum { BLOCK = 64 * ONXI_LANES };

static double sum_of(const float *x, uint64_t n, float mean, bool squares)
{
    double sum = 0;
    for (uint64_t start = 0; start < n; start += BLOCK) {
        uint64_t end = n - start < BLOCK ? n : start + BLOCK, i = start;
        onxi_vf s = vf_all(0), t = vf_all(0);
        for (; i + 2 * ONXI_LANES <= end; i += 2 * ONXI_LANES) {
            onxi_vf u = vf_load(x + i) - mean, v = vf_load(x + i + ONXI_LANES) - mean;
            s += squares ? u * u : u;
            t += squares ? v * v : v;
        }
        for (; i < end; i += ONXI_LANES) {
            onxi_vf u = vf_load_part(x + i, end - i < ONXI_LANES ? end - i : ONXI_LANES, mean) - mean;
            s += squares ? u * u : u;
        }
        sum += (double)vf_sum(s + t);
    }
    return sum;
}

static void moments(const void *x, uint64_t n, bool about_zero, double *mean, double *second)
{
    const double m = about_zero ? 0 : sum_of(x, n, 0, false) / (double)n;
    const double rest = m - (double)(float)m; /* squares are taken about the nearest float */
    *mean = m;
    *second = sum_of(x, n, (float)m, true) / (double)n - rest * rest;
}

/* What an addition leaves as it is; 0 would make 0 of -0. */
#define NOTHING (-0.0f)

static void affine(const void *px, void *py, uint64_t n, double mean, double scale, const void *pa, int64_t sa,
                   const void *pb, int64_t sb)
{
    const float *x = px, *a = pa, *b = pb, m = (float)mean, s = (float)scale;
    float *y = py;
    uint64_t i = 0;
    if (sa == 1 && (!b || sb == 1)) {
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
            onxi_vf v = (vf_load(x + i) - m) * s * vf_load(a + i);
            vf_store(y + i, b ? v + vf_load(b + i) : v);
        }
    } else if (sa == 0 && (!b || sb == 0)) {
        const onxi_vf factor = vf_all(*a), shift = vf_all(b ? *b : NOTHING);
        for (; i + ONXI_LANES <= n; i += ONXI_LANES)
            vf_store(y + i, (vf_load(x + i) - m) * s * factor + shift);
    }
    for (; i < n; i++)
        y[i] = (x[i] - m) * s * a[(int64_t)i * sa] + (b ? b[(int64_t)i * sb] : NOTHING);
}

static const onxi_norm_loops loops[ONX_DTYPE_COUNT] = { [ONX_FLOAT] = { moments, affine } };

#define ROW(name, version, kind)                                                                                       \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32, .preference = 1, .isa = ONXI_LEVEL,                          \
        .flags = ONX_KERNEL_IN_PLACE, .variant = ONXI_VARIANT, .body = loops, .prepare = onxi_##kind##_norm_prepare,   \
        .run = onxi_##kind##_norm_run                                                                                  \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_norm)[] = { ROW("LayerNormalization", 17, layer),
                                                            ROW("RMSNormalization", 23, layer),
                                                            ROW("GroupNormalization", 18, group),
                                                            ROW("InstanceNormalization", 1, group),
                                                            { 0 } };
