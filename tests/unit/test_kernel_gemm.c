/* test_kernel_gemm.c - Gemm in all its forms: factors, transposed inputs, and what is added, of every shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

#include <stdlib.h>

/* Small numbers that every type has, as an input or, with `constant`, as an initializer. */
static onx_value *operand(writer *w, source *s, const char *name, onx_dtype dtype, uint32_t rank, const int64_t *dims,
                          bool constant)
{
    onx_value *v = tensor(dtype, rank, dims);
    if (constant) {
        add(w, "%s%s", w->text[w->len - 1] == '<' ? "" : ", ", onx_dtype_name(dtype));
        for (uint32_t i = 0; i < rank; i++)
            add(w, "%s%lld%s", i ? ", " : "[", (long long)dims[i], i + 1 < rank ? "" : "]");
        add(w, " %s = {", name);
    }
    for (uint64_t i = 0; i < v->count; i++) {
        const double x = (double)below(s, 9) - 4;
        onx_convert(dtype, (char *)v->data + i * (onx_dtype_bits(dtype) / 8), ONX_DOUBLE, &x, 1, true);
        if (constant) /* in text, elements of float16 are given by their bits */
            add(w, "%s%d", i ? ", " : "", dtype == ONX_FLOAT16 ? ((const uint16_t *)v->data)[i] : (int)x);
    }
    if (constant)
        add(w, "}");
    return v;
}

/* What a Gemm is made of; c: the dims of what it adds. */
typedef struct form {
    onx_dtype dtype;
    bool turned_a, turned_b, constant_b, constant_c, adds;
    float alpha, beta;
    int64_t m, n, k, c[2];
    uint32_t c_rank;
} form;

static form draw(source *s, unsigned turn)
{
    static const onx_dtype types[] = { ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_INT32, ONX_FLOAT16 };
    static const float factors[] = { 1, 1, 2, -3 };
    form f = { .dtype = types[turn % 5],
               .turned_a = !below(s, 3),
               .turned_b = below(s, 2),
               .constant_b = below(s, 3) > 0,
               .constant_c = below(s, 2),
               .adds = below(s, 5) > 0,
               .alpha = factors[below(s, 4)],
               .beta = factors[below(s, 4)],
               .m = 1 + below(s, 9),
               .n = 1 + below(s, 40),
               .k = 1 + below(s, 20),
               .c_rank = below(s, 3) };
    f.c[0] = f.c_rank == 2 && below(s, 2) ? f.m : 1;
    f.c[f.c_rank == 2] = below(s, 2) ? f.n : 1;
    return f;
}

static void test_kernel_gemm__forms(void **state)
{
    static const char *const dims[] = { "", "[G]", "[G, H]" };
    static writer w;
    source s = { 44 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 240; turn++) {
        const form f = draw(&s, turn);
        const char *type = onx_dtype_name(f.dtype);
        const int64_t a[2] = { f.turned_a ? f.k : f.m, f.turned_a ? f.m : f.k };
        const int64_t b[2] = { f.turned_b ? f.n : f.k, f.turned_b ? f.k : f.n };
        w.len = 0;
        add(&w, "<ir_version: 9, opset_import: [\"\" : %u]> g (%s[A, B] a",
            f.adds && f.dtype != ONX_INT32 ? 9 + 4 * below(&s, 3) : 13, type);
        if (!f.constant_b)
            add(&w, ", %s[C, D] b", type);
        if (f.adds && !f.constant_c)
            add(&w, ", %s%s c", type, dims[f.c_rank]);
        add(&w, ") => (%s[E, F] y) <", type);
        onx_value *in[3] = { operand(&w, &s, "a", f.dtype, 2, a, false) };
        onx_value *vb = operand(&w, &s, "b", f.dtype, 2, b, f.constant_b);
        onx_value *vc = f.adds ? operand(&w, &s, "c", f.dtype, f.c_rank, f.c, f.constant_c) : NULL;
        uint32_t count = 1;
        if (!f.constant_b)
            in[count++] = vb;
        if (vc && !f.constant_c)
            in[count] = vc;
        add(&w, "> { y = Gemm <alpha = %.1f, beta = %.1f, transA = %d, transB = %d> (a, b%s) }", (double)f.alpha,
            (double)f.beta, f.turned_a, f.turned_b, f.adds ? ", c" : "");
        const char *row = compare_any(&w, "Gemm", (const onx_value *const *)in, 60);
        const bool should = f.dtype == ONX_FLOAT && f.constant_b && !f.turned_a;
        if (should && strcmp(row, "plain") == 0)
            fail_msg("no fast row: %s", w.text + (w.len > 100 ? w.len - 100 : 0));
        fast += should;
        onx_value_free(in[0]);
        onx_value_free(vb);
        onx_value_free(vc);
    }
    assert_true(fast > 20);
}

/* One row times a matrix, of every type, by the definition: whole numbers, whose products and sums are exact. */
static void test_kernel_gemm__single_rows(void **state)
{
    static const onx_dtype types[] = { ONX_FLOAT, ONX_DOUBLE, ONX_INT32,   ONX_UINT32,
                                       ONX_INT64, ONX_UINT64, ONX_FLOAT16, ONX_BFLOAT16 };
    static writer w;
    source s = { 47 };
    (void)state;
    for (unsigned turn = 0; turn < 160; turn++) {
        const onx_dtype type = types[turn % 8];
        const bool plain = turn / 8 % 2, halves = onx_dtype_bits(type) == 16;
        const int64_t k = 1 + below(&s, halves ? 12 : 40), n = 1 + below(&s, turn % 3 ? 70 : 1300), dims[] = { k, n };
        onx_value *x = operand(&w, &s, "x", type, 2, (int64_t[]){ 1, k }, false), *y = NULL;
        onx_value *b = operand(&w, &s, "b", type, 2, dims, false);
        uint64_t *of_x = calloc((size_t)k, sizeof *of_x), *of_b = calloc((size_t)(k * n), sizeof *of_b);
        uint64_t *of_y = calloc((size_t)n, sizeof *of_y);
        onx_doc *doc = NULL;
        assert_true(of_x && of_b && of_y);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[A, K] x, %s[K, B] b) => (%s[A, B] y) {"
            " y = MatMul (x, b) }",
            onx_dtype_name(type), onx_dtype_name(type), onx_dtype_name(type));
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        run(doc, "MatMul", &(onx_session_options){ .threads = 1 + turn / 16 % 2, .plain = plain },
            (const onx_value *const[]){ x, b }, &y);
        assert_int_equal(onx_convert(ONX_INT64, of_x, type, x->data, x->count, false), ONX_OK);
        assert_int_equal(onx_convert(ONX_INT64, of_b, type, b->data, b->count, false), ONX_OK);
        assert_int_equal(onx_convert(ONX_INT64, of_y, type, y->data, y->count, false), ONX_OK);
        for (int64_t j = 0; j < n; j++) {
            uint64_t sum = 0; /* unsigned integers wrap */
            for (int64_t i = 0; i < k; i++)
                sum += of_x[i] * of_b[i * n + j];
            assert_true(onx_dtype_bits(type) == 64 ? of_y[j] == sum : (uint32_t)of_y[j] == (uint32_t)sum);
        }
        onx_doc_free(doc);
        onx_value_free(x);
        onx_value_free(b);
        onx_value_free(y);
        free(of_x);
        free(of_b);
        free(of_y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_gemm__single_rows),
                                        cmocka_unit_test(test_kernel_gemm__forms) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
