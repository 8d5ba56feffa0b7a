/* test_kernel_few_bits.c - products with weights of few bits, by the plain row and by those of every instruction set:
 * block sizes, zero points of both kinds, bias, left sides that are rounded, sizes around those of panels. */
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

static void test_kernel_few_bits__are_the_same(void **state)
{
    static writer w;
    source s = { 5 };
    unsigned fast = 0;
    (void)state;
    if (!onx_op_find(onx_str_of("com.microsoft"), onx_str_of("MatMulNBits"), 1))
        return; /* left out of this build */
    for (unsigned turn = 0; turn < 60; turn++) {
        static const uint32_t ks[] = { 1, 16, 31, 32, 40, 64, 127, 256, 600 }, ns[] = { 1, 3, 4, 15, 17, 64, 70, 130 },
                              blocks[] = { 16, 32, 64, 128 }, ms[] = { 1, 2, 4, 5, 13, 40 };
        const uint32_t k = ks[below(&s, 9)], n = ns[below(&s, 8)], m = ms[below(&s, 6)], block = blocks[below(&s, 4)];
        const uint32_t bits = turn % 2 ? 8 : 4, count = (k + block - 1) / block, zeros = below(&s, 3);
        const bool bias = below(&s, 2);
        onx_value *in[] = {
            floats(&s, 2, (int64_t[]){ m, k }),
            filled(&s, ONX_UINT8, 3, (int64_t[]){ n, count, block * bits / 8 }, 0, 0),
            filled(&s, ONX_FLOAT, 1, (int64_t[]){ (int64_t)n * count }, 0.001f, 0.01f),
            filled(&s, ONX_FLOAT, 1, (int64_t[]){ n }, -1, 1),
            zeros == 2 ? filled(&s, ONX_FLOAT, 2, (int64_t[]){ n, count }, 0, 15)
                       : filled(&s, ONX_UINT8, 2, (int64_t[]){ n, (count * bits + 7) / 8 }, 0, 0),
        };
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\n"
            "g (float[M, K] a, uint8[N, B, S] w, float[C] s, float[N] b, %s z) => (float[M, N] y) {\n"
            " y = com.microsoft.MatMulNBits <K = %u, N = %u, bits = %u, block_size = %u, accuracy_level = %u> (a, w, s%s, , %s)\n}\n",
            zeros == 2 ? "float[N, B]" : "uint8[N, Z]", k, n, bits, block, turn % 5 ? 0 : 4, zeros ? ", z" : ", ",
            bias ? "b" : "");
        const char *variant = compare_any(&w, "MatMulNBits", (const onx_value *const *)(const void *)in, 3000);
        fast += variant && strcmp(variant, "plain") != 0;
        for (int i = 0; i < 5; i++)
            onx_value_free(in[i]);
    }
    assert_true(fast > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_few_bits__are_the_same) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
