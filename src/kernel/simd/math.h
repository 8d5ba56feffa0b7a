/* math.h - vectorized functions of floats. The polynomials are least-squares fits at Chebyshev points over the ranges
 * given. Error bounds are in units in the last place (ulp), tested against libm in double
 * (tests/unit/test_kernel_math.c). Parts of functions are always inlined: WebAssembly engines keep no vector in a
 * register across a call. */
#ifndef ONXI_KERNEL_SIMD_MATH_H
#define ONXI_KERNEL_SIMD_MATH_H

#include "kernel/simd/wide.h"

#include <math.h>

/* r + r^2/2 + ... for |r| <= ln(2)/2: e^r - 1 */
static inline onxi_vf vf_expm1_near(onxi_vf r)
{
    onxi_vf p = r * 0.001393453567288816f + 0.008363769389688969f;
    p = p * r + 0.04166645556688309f;
    p = p * r + 0.16666573286056519f;
    p = p * r + 0.5f;
    return p * (r * r) + r;
}

/* e^r for |r| <= ln(2)/2. The 1 is added last, so that the final rounding is nearly all of the error. */
__attribute__((always_inline)) static inline onxi_vf vf_exp_near(onxi_vf r)
{
    onxi_vf p = r * 0.001384646981023252f + 0.008374118246138096f;
    p = p * r + 0.04166795313358307f;
    p = p * r + 0.16666433215141296f;
    p = p * r + 0.4999999403953552f;
    p = p * r + 1.0f;
    return p * r + 1.0f;
}

/* e * 2^k for an integer k from -151 to 129, in two steps where there is no instruction for it: neither factor
 * overflows. */
__attribute__((always_inline)) static inline onxi_vf vf_scale(onxi_vf e, onxi_vf k)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_scalef_ps((__m512)e, (__m512)k);
#else
    const onxi_vf magic = vf_all(12582912.0f);
    onxi_vi n = (onxi_vi)((onxi_vu)(k + magic) - (onxi_vu)magic), half = n >> 1;
    e = e * (onxi_vf)((onxi_vu)(half + 127) << 23);
    return e * (onxi_vf)((onxi_vu)(n - half + 127) << 23);
#endif
}

/* e^x, 2 ulp; gradual underflow and overflow as in libm. */
static inline onxi_vf vf_exp(onxi_vf x)
{
    x = vf_min(vf_all(89), vf_max(vf_all(-104), x)); /* NaN passes */
    const onxi_vf magic = vf_all(12582912.0f);       /* 1.5 * 2^23: adding it rounds to an integer */
    onxi_vf k = (x * 1.44269504088896341f + magic) - magic;
    onxi_vf r = x - k * 0.693359375f; /* ln(2) in two parts: the product of the first is exact */
    r = r + k * 2.12194440e-4f;
    return vf_scale(vf_exp_near(r), k);
}

/* e^x for x <= 0, for weights whose maximum is 1 (softmax): results near or below the smallest normal number become 0.
 * Some processors take a hundred times as long for subnormal numbers, here and in products with them, and masks make
 * many of them. */
static inline onxi_vf vf_exp_weight(onxi_vf x)
{
    const onxi_vf least = vf_all(-87);
    return vf_select(x < least, vf_all(0), vf_exp(vf_select(x < least, least, x)));
}

/* e^x - 1, 4 ulp */
static inline onxi_vf vf_expm1(onxi_vf x)
{
    onxi_vf out = vf_select(vf_abs(x) < 0.34657359f, vf_expm1_near(x), vf_exp(x) - 1.0f);
    return vf_select(x == 0.0f, x, out); /* of -0, too */
}

/* Natural logarithm, 2 ulp; denormal numbers included. */
static inline onxi_vf vf_log(onxi_vf x)
{
    onxi_vi small = x < 1.17549435e-38f;
    onxi_vf y = vf_select(small, x * 8388608.0f, x);
    onxi_vi e = (onxi_vi)((onxi_vu)y - 0x3f3504f3u) >> 23; /* y = m * 2^e, sqrt(1/2) <= m < sqrt(2) */
    onxi_vf r = (onxi_vf)((onxi_vu)y - ((onxi_vu)e << 23)) - 1.0f;
    onxi_vf p = r * 0.07147883623838425f - 0.11570707708597183f;
    p = p * r + 0.1166190356016159f;
    p = p * r - 0.12411130219697952f;
    p = p * r + 0.14249908924102783f;
    p = p * r - 0.16668476164340973f;
    p = p * r + 0.20000708103179932f;
    p = p * r - 0.24999989569187164f;
    p = p * r + 0.3333333134651184f;
    e -= small & 23;
    onxi_vf k = __builtin_convertvector(e, onxi_vf), square = r * r;
    p = p * (square * r) - k * 2.12194440e-4f;
    p = p - square * 0.5f;
    onxi_vf out = (r + p) + k * 0.693359375f;
    out = vf_select(x == INFINITY, x, out);
    out = vf_select(x == 0.0f, vf_all(-INFINITY), out);
    return vf_select((onxi_vi) ~(x >= 0.0f), vf_all(NAN), out);
}

/* ln(1 + x) for 0 <= x <= 1, 3 ulp */
static inline onxi_vf vf_log1p_unit(onxi_vf x)
{
    onxi_vf u = x + 1.0f;
    return vf_log(u) + (x - (u - 1.0f)) / u;
}

/* 3 ulp */
static inline onxi_vf vf_tanh(onxi_vf x)
{
    onxi_vf a = vf_abs(x), s = x * x;
    onxi_vf p = s * -0.005607688799500465f + 0.020544905215501785f;
    p = p * s - 0.0537070669233799f;
    p = p * s + 0.13330957293510437f;
    p = p * s - 0.33333253860473633f;
    onxi_vf near = p * (s * x) + x;
    onxi_vf far = 1.0f - 2.0f / (vf_exp(a + a) + 1.0f);
    return vf_sign_of(vf_select(a < 0.625f, near, far), x);
}

/* 1 / (1 + e^-x), 3 ulp; results below the smallest normal number may become 0. */
static inline onxi_vf vf_sigmoid(onxi_vf x)
{
    return 1.0f / (1.0f + vf_exp(-x));
}

/* x / (1 + e^-ax), 3 ulp; likewise. */
static inline onxi_vf vf_swish(onxi_vf x, onxi_vf a)
{
    return x / (1.0f + vf_exp(-(a * x)));
}

/* 3 ulp */
static inline onxi_vf vf_erf(onxi_vf x)
{
    onxi_vf a = vf_abs(x), s = x * x;
    onxi_vf p = s * -9.673581189417746e-06f + 0.00011268250818829983f;
    p = p * s - 0.0008484396385028958f;
    p = p * s + 0.005221053492277861f;
    p = p * s - 0.026865437626838684f;
    p = p * s + 0.11283782869577408f;
    p = p * s - 0.37612637877464294f;
    onxi_vf near = p * s * x + x * 0.12837922573089600f + x; /* the constant is 2/sqrt(pi) - 1 */
    onxi_vf b = vf_select(a > 4.0f, vf_all(4), a);           /* ln(erfc(b)) for 1 <= b <= 4 */
    onxi_vf q = b * -1.6140616025950294e-06f + 4.559062290354632e-05f;
    q = q * b - 0.0005927695310674608f;
    q = q * b + 0.004740222357213497f;
    q = q * b - 0.02636471763253212f;
    q = q * b + 0.10997824370861053f;
    q = q * b + 0.6319370865821838f;
    q = q * b + 1.1301666498184204f;
    q = q * b - 0.00030321296071633697f;
    onxi_vf far = 1.0f - vf_exp(-q);
    return vf_sign_of(vf_select(a < 1.0f, near, far), x);
}

/* ln(1 + e^x), 4 ulp */
static inline onxi_vf vf_softplus(onxi_vf x)
{
    return vf_max(x, vf_all(0)) + vf_log1p_unit(vf_exp(-vf_abs(x)));
}

/* x * tanh(ln(1 + e^x)), 5 ulp: with t = e^x the factor is (t^2 + 2t) / (t^2 + 2t + 2). */
static inline onxi_vf vf_mish(onxi_vf x)
{
    onxi_vf t = vf_exp(vf_select(x > 20.0f, vf_all(20), x)), u = t * (t + 2.0f);
    return x * (u / (u + 2.0f));
}

/* x / 2 * (1 + erf(x / sqrt(2))), 4 ulp for x > 0, absolute error 1e-7 for x < 0. The difference from x (x > 0) or from
 * 0 (x < 0) is |x| * erfc(|x| / sqrt(2)) / 2, whose logarithm is smooth; it is 0 from |x| = 6 on. */
static inline onxi_vf vf_gelu(onxi_vf x)
{
    onxi_vf a = vf_abs(x);
    onxi_vi near = a < 6.0f;
    a = vf_min(a, vf_all(6));
    onxi_vf a2 = a * a, a4 = a2 * a2; /* pairs of terms, so that few wait for others */
    onxi_vf high = (a * -4.1693670027598273e-07f + 5.643918939313153e-06f) + a2 * 1.3171425727875885e-08f;
    onxi_vf middle = (a * -4.12804183724802e-05f + 0.00015227279800456017f) * a2 +
                     (a * 8.930256444728002e-05f - 0.004929018672555685f);
    onxi_vf low =
        (a * 0.03643050417304039f + 0.3182791769504547f) * a2 + (a * 0.7978883981704712f + 0.6931471228599548f);
    onxi_vf q = (high * a4 + middle) * a4 + low;
    const onxi_vf magic = vf_all(12582912.0f);
    onxi_vf t = q * -1.44269504088896341f + magic, k = t - magic; /* e^-q as vf_exp has it, but q is between 0 and 21 */
    onxi_vf r = (-q - k * 0.693359375f) + k * 2.12194440e-4f;
    onxi_vf r2 = r * r;
    onxi_vf e = (r + 1.0f) + ((r * 0.008363769389688969f + 0.04166645556688309f) * r2 +
                              r2 * r2 * 0.001393453567288816f + (r * 0.16666573286056519f + 0.5f)) *
                                 r2;
    e = (onxi_vf)((onxi_vu)e + (((onxi_vu)t - (onxi_vu)magic) << 23));
    e = (onxi_vf)((onxi_vi)e & near);
    onxi_vf part = vf_select(x > 0.0f, a, x) * e; /* of -infinity it is NaN, as in the formula */
    return vf_select(x > 0.0f, x - part, part);
}

/* x / 2 * (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) * (x + 0.044715 * x^3) */
static inline onxi_vf vf_gelu_tanh(onxi_vf x)
{
    return x * vf_sigmoid(1.5957691216057308f * (x + 0.044715f * (x * x * x)));
}

/* Sine (turn 0) and cosine (turn 1), 2 ulp, for |x| <= 8192, where x - k * pi/2 is accurate enough. */
static inline onxi_vf vf_sine_near(onxi_vf x, int turn)
{
    const onxi_vf magic = vf_all(12582912.0f);
    onxi_vf t = x * 0.63661977236758134f + magic, k = t - magic;
    onxi_vu q = (onxi_vu)t - (onxi_vu)magic + (uint32_t)turn;
    onxi_vf r = x - k * 1.5703125f; /* pi/2 in three parts; products of the first two are exact */
    r = r - k * 4.837512969970703e-4f;
    r = r - k * 7.549789954891882e-8f;
    onxi_vf s = r * r;
    onxi_vf sine = s * -0.00019587950373534113f + 0.008332748897373676f;
    sine = (sine * s - 0.166666641831398f) * (s * r) + r;
    onxi_vf cosine = s * 2.4745020709815435e-05f - 0.001388982287608087f;
    cosine = (cosine * s + 0.04166668653488159f) * (s * s) - s * 0.5f + 1.0f;
    onxi_vf out = vf_select((onxi_vi)((q & 1) != 0), cosine, sine);
    return (onxi_vf)((onxi_vu)out ^ ((q & 2) << 30));
}

static inline onxi_vf vf_sine(onxi_vf x, int turn)
{
    onxi_vi far = (onxi_vi) ~(vf_abs(x) <= 8192.0f);
    onxi_vf out = vf_sine_near(vf_select(far, vf_all(0), x), turn);
    if (vi_any(far))
        for (int i = 0; i < ONXI_LANES; i++)
            if (far[i])
                out[i] = turn ? cosf(x[i]) : sinf(x[i]);
    return turn ? out : vf_select(x == 0.0f, x, out); /* of -0, too */
}

static inline onxi_vf vf_sqrt(onxi_vf x)
{
    onxi_vf y;
    for (int i = 0; i < ONXI_LANES; i++) /* one instruction */
        y[i] = sqrtf(x[i]);
    return y;
}

/* Rounds to the nearest integer, ties to even, for any float: from 2^23 on all floats are integers. NaN, infinities and
 * the sign of 0 stay. */
static inline onxi_vf vf_round(onxi_vf x)
{
    const onxi_vf magic = vf_all(8388608.0f), a = vf_abs(x);
    return vf_select(a < magic, vf_sign_of((a + magic) - magic, x), x);
}

/* Floor and ceiling; the result, also a zero, has the sign of x. */
static inline onxi_vf vf_floor(onxi_vf x)
{
    const onxi_vf r = vf_round(x);
    return vf_sign_of(r - vf_select(r > x, vf_all(1), vf_all(0)), x);
}

static inline onxi_vf vf_ceil(onxi_vf x)
{
    const onxi_vf r = vf_round(x);
    return vf_sign_of(r + vf_select(r < x, vf_all(1), vf_all(0)), x);
}

/* Arc tangent, 3 ulp: of the inverse where |x| > 1. */
static inline onxi_vf vf_atan(onxi_vf x)
{
    const onxi_vf a = vf_abs(x);
    const onxi_vi far = a > 1.0f;
    const onxi_vf t = vf_select(far, 1.0f / a, a), s = t * t;
    onxi_vf p = s * -0.001793593866750598f + 0.010914481244981289f;
    p = p * s - 0.031177613884210587f;
    p = p * s + 0.05795735865831375f;
    p = p * s - 0.08403436839580536f;
    p = p * s + 0.10952181369066238f;
    p = p * s - 0.14264240860939026f;
    p = p * s + 0.19998548924922943f;
    p = p * s - 0.33333298563957214f;
    p = p * (s * t) + t;
    return vf_sign_of(vf_select(far, 1.57079632679489662f - p, p), x);
}

/* Arc sine of r, where s is its square and no more than 1/4. */
static inline onxi_vf vf_asin_near(onxi_vf r, onxi_vf s)
{
    onxi_vf p = s * 0.04216628521680832f + 0.024179525673389435f;
    p = p * s + 0.04547037556767464f;
    p = p * s + 0.07495297491550446f;
    p = p * s + 0.16666752099990845f;
    return p * (s * r) + r;
}

/* Arc sine (cosine 0) and arc cosine (1), 3 ulp; NaN for |x| > 1. From 1/2 on the result is computed from the
 * complement: twice the arc sine of sqrt((1 - |x|) / 2). */
static inline onxi_vf vf_arc(onxi_vf x, int cosine)
{
    const onxi_vf a = vf_abs(x), half_pi = vf_all(1.57079632679489662f);
    const onxi_vi near = a <= 0.5f;
    const onxi_vf s = vf_select(near, x * x, (1.0f - a) * 0.5f);
    const onxi_vf p = vf_asin_near(vf_select(near, x, vf_sqrt(s)), s), twice = p + p;
    if (!cosine)
        return vf_select(near, p, vf_sign_of(half_pi - twice, x));
    const onxi_vf far = vf_select(x < 0.0f, 3.14159265358979324f - twice, twice);
    return vf_select(near, half_pi - p, far);
}

/* x^y where x holds floats, in double, so that the result can be rounded to a float; 1 ulp of that. For x from 0 to
 * infinity, exclusive, and finite y. */
static inline vd vd_pow_usual(vd x, vd y)
{
    vl e = (vl)((vul)x - 0x3fe6a09e667f3bcdu) >> 52; /* x = m * 2^e, sqrt(1/2) <= m < sqrt(2) */
    vd m = (vd)((vul)x - ((vul)e << 52));
    vd s = (m - 1.0) / (m + 1.0), t = s * s;
    vd p = t * 0.09610654302133496 + 0.11100390588520644;
    p = p * t + 0.14285773486592038;
    p = p * t + 0.2000000024957718;
    p = p * t + 0.3333333333180222;
    vd log2 = (s + s * t * p) * 2.8853900817779268 + __builtin_convertvector(e, vd);
    vd z = log2 * y;
    z = vd_select(z < -1000.0, vd_all(-1000), vd_select(z > 1000.0, vd_all(1000), z));
    const vd magic = vd_all(6755399441055744.0); /* 1.5 * 2^52 */
    vd k = z + magic;
    vul n = (vul)k - (vul)magic;
    vd r = z - (k - magic);
    vd q = r * 1.3259764245463673e-06 + 1.531008451691451e-05;
    q = q * r + 0.00015403433238489077;
    q = q * r + 0.0013333450547845225;
    q = q * r + 0.00961812919460342;
    q = q * r + 0.05550410941228502;
    q = q * r + 0.2402265069563765;
    q = q * r + 0.6931471805459265;
    q = q * r + 1.0000000000000173;
    return (vd)((vul)q + (n << 52));
}

/* x^y of bases that are 0 or negative, where `size` is |x|^y for x other than 0. */
static inline vd vd_pow_signed(vd x, vd y, vd size)
{
    const vd a = vd_abs(y), shifted = a + 0x1p52; /* to whole numbers; from 2^53 on all are even */
    const vl big = a >= 0x1p52, whole = big | (shifted - 0x1p52 == a);
    const vl odd = whole & (a < 0x1p53) & (vl)vd_select(big, a, shifted) & 1;
    const vd at_0 = vd_select(y > 0.0, vd_all(0), vd_select(y < 0.0, vd_all((double)INFINITY), vd_all(1)));
    const vd power = (vd)((vl)vd_select(x == 0.0, at_0, size) | ((vl)((vul)odd << 63) & (vl)x));
    return vd_select((x < 0.0) & ~whole, vd_all((double)NAN), power);
}

/* The same for all x and y; pow is called for infinity and NaN only. */
static inline vd vd_pow_of_float(vd x, vd y)
{
    const vl finite = (vd_abs(x) < (double)INFINITY) & (vd_abs(y) < (double)INFINITY);
    const vd power = (vd)((vl)y & finite);
    vd out = vd_pow_usual(vd_select(finite & (x != 0.0), vd_abs(x), vd_all(1)), power);
    if (vl_any(x <= 0.0))
        out = vd_pow_signed(x, power, out);
    if (vl_any(~finite))
        for (int i = 0; i < VD_LANES; i++)
            if (!finite[i])
                out[i] = pow(x[i], y[i]);
    return out;
}

typedef float vdf __attribute__((vector_size(VD_LANES * 4))); /* as many floats as a vector has doubles */

static inline onxi_vf vf_pow(onxi_vf x, onxi_vf y)
{
    vdf a[2], b[2];
    memcpy(a, &x, sizeof x);
    memcpy(b, &y, sizeof y);
    for (int i = 0; i < 2; i++)
        a[i] = __builtin_convertvector(
            vd_pow_of_float(__builtin_convertvector(a[i], vd), __builtin_convertvector(b[i], vd)), vdf);
    memcpy(&x, a, sizeof x);
    return x;
}

#endif
