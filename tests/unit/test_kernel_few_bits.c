/* test_kernel_few_bits.c - products with low-bit weights, by the plain row and by those of every instruction set: block
 * sizes, both kinds of zero points, bias, rounded left operands, sizes around those of panels, constant and other
 * operands, elements that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

static onx_value *filled(source *s, onx_dtype dtype, uint32_t rank, const int64_t *dims, float low, float high)
{
    onx_value *v = tensor(dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++)
        if (dtype == ONX_FLOAT)
            ((float *)v->data)[i] = between(s, low, high);
        else
            ((uint8_t *)v->data)[i] = (uint8_t)below(s, 256);
    return v;
}

/* A constant or an input of the model. */
static void add_operand(writer *w, const char *type, const char *name, const onx_value *v, bool constant)
{
    add(w, "%s[", type);
    for (uint32_t i = 0; i < v->rank; i++)
        add(w, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    add(w, "] %s", name);
    for (uint64_t i = 0; constant && i < v->count; i++)
        if (v->dtype == ONX_FLOAT)
            add(w, "%s%.9g", i ? "," : " = {", (double)((const float *)v->data)[i]);
        else
            add(w, "%s%u", i ? "," : " = {", ((const uint8_t *)v->data)[i]);
    add(w, constant ? "}" : "");
}

enum { OPERANDS = 4 }; /* weights, scales, bias, zero points */
static const char *const names[OPERANDS] = { "w", "s", "b", "z" };

/* Those of `constants` (bits) are initializers. Returns the variant that ran. */
static const char *compare_product(const onx_value *a, const onx_value *const *of, unsigned constants,
                                   const char *attributes, bool zeros, bool bias)
{
    static writer w;
    const onx_value *in[1 + OPERANDS] = { a };
    const char *types[OPERANDS] = { "uint8", "float", "float", of[3]->dtype == ONX_FLOAT ? "float" : "uint8" };
    uint32_t count = 1;
    w.len = 0;
    add(&w, "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\ng (float[M, K] a");
    for (unsigned i = 0; i < OPERANDS; i++)
        if (!(constants >> i & 1)) {
            add(&w, ", ");
            add_operand(&w, types[i], names[i], of[i], false);
            in[count++] = of[i];
        }
    add(&w, ") => (float[M, N] y)\n<");
    bool first = true;
    for (unsigned i = 0; i < OPERANDS; i++)
        if (constants >> i & 1) {
            add(&w, first ? "" : ", ");
            add_operand(&w, types[i], names[i], of[i], true);
            first = false;
        }
    add(&w, ">\n{\n y = com.microsoft.MatMulNBits <%s> (a, w, s%s, , %s)\n}\n", attributes, zeros ? ", z" : ", ",
        bias ? "b" : "");
    return compare_any(&w, "MatMulNBits", in, 1000);
}

static void test_kernel_few_bits__are_the_same(void **state)
{
    source s = { 5 };
    unsigned fast = 0;
    (void)state;
    if (!onx_op_find(onx_str_of("com.microsoft"), onx_str_of("MatMulNBits"), 1))
        return; /* left out of this build */
    for (unsigned turn = 0; turn < 150; turn++) {
        static const uint32_t ks[] = { 1, 16, 31, 32, 40, 64, 127, 256, 390, 600 },
                              ns[] = { 1, 3, 4, 15, 17, 64, 70, 130, 200 }, blocks[] = { 16, 32, 64, 128, 256 },
                              ms[] = { 1, 1, 2, 3, 4, 5, 13, 40, 230 };
        const uint32_t k = ks[below(&s, 10)], n = ns[below(&s, 9)], m = ms[below(&s, 9)], block = blocks[below(&s, 5)];
        const uint32_t bits = 2u << turn % 3, count = (k + block - 1) / block, zeros = below(&s, 3);
        const bool bias = below(&s, 2), rounded = below(&s, 3) == 0;
        onx_value *a = floats(&s, 2, (int64_t[]){ m, k });
        onx_value *of[OPERANDS] = {
            filled(&s, ONX_UINT8, 3, (int64_t[]){ n, count, block * bits / 8 }, 0, 0),
            filled(&s, ONX_FLOAT, 1, (int64_t[]){ (int64_t)n * count }, 0.001f, 0.01f),
            filled(&s, ONX_FLOAT, 1, (int64_t[]){ n }, -1, 1),
            zeros == 2 ? filled(&s, ONX_FLOAT, 2, (int64_t[]){ n, count }, 0, 15)
                       : filled(&s, ONX_UINT8, 2, (int64_t[]){ n, (count * bits + 7) / 8 }, 0, 0),
        };
        /* What is not finite, and what is near the ends of the type. */
        static const float odd[] = { INFINITY, -INFINITY, NAN, 1e30f, 1e-30f, 1e-40f };
        if (turn % 5 == 0)
            ((float *)a->data)[below(&s, (uint32_t)a->count)] = odd[below(&s, 6)];
        if (turn % 15 == 0)
            ((float *)of[1]->data)[below(&s, (uint32_t)of[1]->count)] = odd[below(&s, 3)];
        for (uint64_t i = 0; turn % 10 == 1 && i < a->count; i++)
            ((float *)a->data)[i] *= 1e-37f;
        char attributes[120];
        snprintf(attributes, sizeof attributes, "K = %u, N = %u, bits = %u, block_size = %u, accuracy_level = %u", k, n,
                 bits, block, rounded ? 4u : 0u);
        /* Most often all constants; else some or none. */
        const char *variant = compare_product(a, (const onx_value *const *)(const void *)of,
                                              turn % 4 ? 15 : below(&s, 15), attributes, zeros, bias);
        fast += variant && strcmp(variant, "plain") != 0;
        onx_value_free(a);
        for (int i = 0; i < OPERANDS; i++)
            onx_value_free(of[i]);
    }
    assert_true(fast > 110); /* all but those with numbers that are not finite */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_few_bits__are_the_same) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
