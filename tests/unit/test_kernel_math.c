/* test_kernel_math.c - functions of one float by every row that this CPU can run, compared with libm in double, those
 * of one double, compared with libm in long double; Cast compared with onx_convert. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernel/core/chain.h"

#include <math.h>

enum { STRIDE = 1021, LINE = 1003 }; /* every so many floats; elements of a call, with a part of a vector at the end */

static double sigmoid_of(double x)
{
    return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}
static double softplus_of(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double mish_of(double x)
{
    return x * tanh(softplus_of(x));
}
static double softsign_of(double x)
{
    return x / (1 + fabs(x));
}
static double reciprocal_of(double x)
{
    return 1 / x;
}
static double relu_of(double x)
{
    return x > 0 || isnan(x) ? x : 0;
}
static double elu_of(double x)
{
    return x > 0 || isnan(x) ? x : expm1(x);
}

static double gelu_of(double x)
{
    return x / 2 * erfc(-x / sqrt(2));
}
static double gelu_tanh_of(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

/* Steps between neighbouring floats that a result may be away; below `least` results may be anything up to it. */
static const struct {
    const char *op;
    double (*reference)(double);
    double ulp, least;
    unsigned body; /* 1, 2: the row has a list of bodies, of which this is the first, the second */
} functions[] = {
    { "Relu", relu_of, 0, 0, 0 },
    { "Elu", elu_of, 5, 0, 0 }, /* alpha is 1 by default */
    { "Sigmoid", sigmoid_of, 4, 1.2e-38, 0 },
    { "Softplus", softplus_of, 5, 1.2e-38, 0 },
    { "Mish", mish_of, 8, 1.2e-37, 0 },
    { "Softsign", softsign_of, 2, 0, 0 },
    { "Reciprocal", reciprocal_of, 1, 0, 0 },
    { "Abs", fabs, 0, 0, 0 },
    { "Exp", exp, 2, 1e-45, 0 },
    { "Log", log, 3, 0, 0 },
    { "Sqrt", sqrt, 1, 0, 0 },
    { "Round", rint, 0, 0, 0 },
    { "Floor", floor, 0, 0, 0 },
    { "Ceil", ceil, 0, 0, 0 },
    { "Tanh", tanh, 4, 0, 0 },
    { "Erf", erf, 4, 0, 0 },
    { "Sin", sin, 4, 1e-7, 0 },
    { "Cos", cos, 4, 1e-7, 0 },
    { "Atan", atan, 3, 0, 0 },
    { "Asin", asin, 3, 0, 0 },
    { "Acos", acos, 3, 0, 0 },
    { "Gelu", gelu_of, 4, 2e-7, 1 },
    { "Gelu", gelu_tanh_of, 8, 2e-7, 2 },
    { "Gelu", gelu_of, 16, 1e-8, 1 }, /* the tail keeps digits, for what divides by it */
    { "Gelu", gelu_tanh_of, 256, 1e-37, 2 },
};

static double steps(float got, double want)
{
    float near = (float)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (got == near) /* zero keeps its sign, which its reciprocal shows */
        return got != 0 || !signbit(got) == !signbit(near) ? 0 : INFINITY;
    if (isinf(near) || isinf(got)) /* just above the largest float is as good as infinite */
        return fabs(want) > 3.4028e38 && fabsf(got) > 3.4028e38f && (got > 0) == (want > 0) ? 0 : INFINITY;
    float next = nextafterf(fabsf(near), INFINITY) - fabsf(near);
    return fabs((double)got - want) / (double)next;
}

static unsigned try_row(const onx_kernel *k, double (*reference)(double), double ulp, double least, unsigned of_list)
{
    const onxi_unary_body *body = of_list ? ((const onxi_unary_body *const *)k->body)[of_list - 1] : k->body;
    float x[LINE], y[LINE];
    unsigned bad = 0;
    double worst = 0;
    uint64_t bits = 0;
    while (bits <= UINT32_MAX) {
        int n = 0;
        if (!bits)
            x[n++] = -0.0f;
        for (; n < LINE && bits <= UINT32_MAX; n++, bits += STRIDE) {
            uint32_t b = (uint32_t)bits;
            memcpy(&x[n], &b, sizeof b);
        }
        body->loops[ONX_FLOAT](x, y, (uint64_t)n, 1, 0);
        for (int i = 0; i < n; i++) {
            double want = reference((double)x[i]), off = steps(y[i], want);
            if (x[i] != 0 && fabs((double)y[i] - want) <= least)
                continue;
            worst = off > worst ? off : worst;
            if (off > ulp && bad++ < 3)
                print_error("%s %s: f(%a) is %a, expected %a\n", k->op, onxi_kernel_variant(k), (double)x[i],
                            (double)y[i], want);
        }
    }
    print_message("%s %s: %.2f ulp\n", k->op, onxi_kernel_variant(k), worst);
    return bad;
}

static void test_kernel_math__rows_agree_with_libm(void **state)
{
    (void)state;
    unsigned bad = 0, rows = 0;
    const size_t count = sizeof functions / sizeof *functions;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            for (size_t f = 0; f < count && k->isa && k->isa <= onxi_isa_best(); f++)
                if (strcmp(functions[f].op, k->op) == 0 && k->dtypes & ONX_DTYPE_BIT(ONX_FLOAT)) {
                    bad += try_row(k, functions[f].reference, functions[f].ulp, functions[f].least, functions[f].body);
                    rows++;
                }
    assert_int_equal(bad, 0);
    assert_true(rows >= count);
}

static const struct {
    const char *op;
    long double (*reference)(long double);
    double ulp;
} wide_functions[] = {
    { "Tanh", tanhl, 4 },
    { "Sin", sinl, 3 },
    { "Cos", cosl, 3 },
};

static double wide_steps(double got, long double want)
{
    const double near = (double)want;
    if (isnan(near) || isnan(got))
        return isnan(near) && isnan(got) ? 0 : INFINITY;
    if (got == near)
        return got != 0 || !signbit(got) == !signbit(near) ? 0 : INFINITY;
    const double next = nextafter(fabs(near), INFINITY) - fabs(near);
    return isinf(near) || isinf(got) ? INFINITY : (double)(fabsl((long double)got - want) / (long double)next);
}

/* Elements whose bits are spread over all that there are, in turn with others from -32 to 32 or larger, and of each
 * number of elements that fills vectors in part. */
static unsigned try_wide_row(const onx_kernel *k, long double (*reference)(long double), double ulp)
{
    static const double ends[] = { 0.0, -0.0, NAN, INFINITY, -INFINITY, 0x1p-1074, -0x1p-1022, 0x1.fffffffffffffp1023 };
    enum { ENDS = sizeof ends / sizeof *ends, LINES = 1000 };
    const onxi_unary_body *body = k->body;
    double x[LINE + 1], y[LINE + 1], worst = 0;
    unsigned bad = 0;
    uint64_t bits = 1;
    for (unsigned line = 0; line < LINES; line++) {
        const unsigned n = LINE - line % 32;
        for (unsigned i = 0; i < n; i++) {
            bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            memcpy(&x[i], &bits, sizeof bits);
            if (i % 2 || line % 2)
                x[i] = ((double)(bits >> 11) * 0x1p-53 - 0.5) * (line % 8 == 1 ? 2e5 : 64);
            if (line % 4 == 3) /* next to multiples of pi / 2 */
                x[i] = rint(x[i] * (line % 8 == 3 ? 1 : 900)) * 1.57079632679489661923;
            if (i < ENDS)
                x[i] = ends[i];
        }
        y[n] = 7;
        body->loops[ONX_DOUBLE](x, y, n, 1, 0);
        bad += y[n] != 7;
        for (unsigned i = 0; i < n; i++) {
            const long double want = reference((long double)x[i]);
            const double off = wide_steps(y[i], want);
            worst = off > worst ? off : worst;
            if (off > ulp && bad++ < 3)
                print_error("%s %s: f(%a) is %a, expected %La\n", k->op, onxi_kernel_variant(k), x[i], y[i], want);
        }
    }
    print_message("%s of doubles %s: %.2f ulp\n", k->op, onxi_kernel_variant(k), worst);
    return bad;
}

static void test_kernel_math__rows_of_doubles_agree_with_libm(void **state)
{
    (void)state;
    unsigned bad = 0, rows = 0;
    const size_t count = sizeof wide_functions / sizeof *wide_functions;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            for (size_t f = 0; f < count && k->isa && k->isa <= onxi_isa_best(); f++)
                if (strcmp(wide_functions[f].op, k->op) == 0 && k->dtypes & ONX_DTYPE_BIT(ONX_DOUBLE)) {
                    bad += try_wide_row(k, wide_functions[f].reference, wide_functions[f].ulp);
                    rows++;
                }
    assert_int_equal(bad, 0);
    assert_true(rows >= count);
}

/* A loop over elements whose bits are all that there are of 8 and 16, every so many of 32, and of 64 these and others
 * spread over all of their range: what onx_convert makes of them, and nothing behind the last. */
static unsigned try_cast(const char *variant, const onxi_cast_body *c)
{
    const unsigned bits = onx_dtype_bits(c->from);
    const size_t to = onx_dtype_bits(c->to) / 8;
    static char x[LINE * 8], got[LINE * 8], want[LINE * 8];
    unsigned bad = 0;
    uint64_t at = 0;
    for (uint64_t n = LINE; at >> (bits < 32 ? bits : 32) == 0; n = n > LINE - 64 ? n - 1 : LINE) {
        for (uint64_t i = 0; i < n; i++, at += bits <= 16 ? 1 : STRIDE) {
            const uint64_t spread = bits < 64 || i % 2 ? at : at * UINT64_C(0x9e3779b97f4a7c15);
            memcpy(x + i * bits / 8, &spread, bits / 8);
        }
        memset(got, 0x55, sizeof got);
        memset(want, 0x55, sizeof want);
        assert_int_equal(onx_convert(c->to, want, c->from, x, n, true), ONX_OK);
        c->loop(x, got, n, 0, 0);
        for (uint64_t i = 0; i < LINE && memcmp(got, want, sizeof got) != 0; i++)
            if (memcmp(got + i * to, want + i * to, to) != 0 && bad++ < 3)
                print_error("%s %s to %s: element %llu of %llu, up to bits %llx\n", variant, onx_dtype_name(c->from),
                            onx_dtype_name(c->to), (unsigned long long)i, (unsigned long long)n,
                            (unsigned long long)at);
    }
    return bad;
}

static void test_kernel_math__casts_agree_with_convert(void **state)
{
    (void)state;
    unsigned bad = 0, loops = 0;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            if (k->run == onxi_cast_run && k->body && k->isa <= onxi_isa_best())
                for (const onxi_cast_body *c = k->body; c->loop; c++, loops++)
                    bad += try_cast(onxi_kernel_variant(k), c);
    assert_int_equal(bad, 0);
    assert_true(loops > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_math__rows_agree_with_libm),
                                        cmocka_unit_test(test_kernel_math__rows_of_doubles_agree_with_libm),
                                        cmocka_unit_test(test_kernel_math__casts_agree_with_convert) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
