/* test_kernel_quantize.c - QuantizeLinear and DequantizeLinear of every pair of types, with scales for all elements,
 * per index of an axis and in blocks, by the plain rows and by the vectorized ones, which give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

typedef struct kind {
    const char *name;
    onx_dtype dtype;
    int32_t low, high;
} kind;
static const kind wholes[] = { { "int8", ONX_INT8, -128, 127 },
                               { "uint8", ONX_UINT8, 0, 255 },
                               { "int16", ONX_INT16, -32768, 32767 },
                               { "uint16", ONX_UINT16, 0, 65535 },
                               { "int4", ONX_INT4, -8, 7 },
                               { "uint4", ONX_UINT4, 0, 15 },
                               { "int32", ONX_INT32, INT32_MIN, INT32_MAX } };
static const kind reals[] = { { "float", ONX_FLOAT, 0, 0 },
                              { "float16", ONX_FLOAT16, 0, 0 },
                              { "bfloat16", ONX_BFLOAT16, 0, 0 } };
enum { SMALL = 6, WHOLES = sizeof wholes / sizeof *wholes, REALS = sizeof reals / sizeof *reals };

/* The shapes of an operator: of `rank` dimensions, with scales along `axis`, or in blocks of it. */
typedef struct form {
    int64_t dims[3], scale_dims[3];
    uint32_t scale_rank, axis, block;
} form;

static form any_form(source *s)
{
    static const uint32_t widths[] = { 1, 2, 5, 15, 16, 17, 33, 100 };
    form f = { .axis = below(s, 3) };
    for (int d = 0; d < 3; d++)
        f.dims[d] = widths[below(s, 6)];
    f.dims[f.axis] = widths[2 + below(s, 6)] * (1 + below(s, 3));
    switch (below(s, 4)) {
    case 0: /* one scale */
        break;
    case 1:
        f.block = 1 + below(s, 40);
        f.scale_rank = 3;
        memcpy(f.scale_dims, f.dims, sizeof f.dims);
        f.scale_dims[f.axis] = (f.dims[f.axis] + f.block - 1) / f.block;
        break;
    default:
        f.scale_rank = 1;
        f.scale_dims[0] = f.dims[f.axis];
    }
    return f;
}

/* Integers of a type; those of 4 bits are given in 8 and cast by the model. */
static const kind *given_as(const kind *k)
{
    return k->dtype == ONX_INT4 ? &wholes[0] : k->dtype == ONX_UINT4 ? &wholes[1] : k;
}

static onx_value *integers(source *s, const kind *k, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(given_as(k)->dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++) {
        const int64_t x = k->low + (int64_t)(below(s, UINT32_MAX) % ((uint64_t)((int64_t)k->high - k->low) + 1));
        onx_convert((onx_dtype)v->dtype, (char *)v->data + i * (onx_dtype_bits(v->dtype) / 8), ONX_INT64, &x, 1, true);
    }
    return v;
}

/* Numbers of a real type, of which some are ties, some are out of range and some are no numbers. */
static onx_value *numbers(source *s, const kind *k, uint32_t rank, const int64_t *dims)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-45f, -0.0f };
    onx_value *v = tensor(k->dtype, rank, dims);
    const uint32_t span = below(s, 2) ? 600 : 200000;
    for (uint64_t i = 0; i < v->count; i++) {
        float x = (float)((int32_t)below(s, span) - (int32_t)(span / 2)) / 16;
        x = below(s, 3) ? x : below(s, 20) ? x * between(s, 0, 1) : odd[below(s, 7)];
        onx_convert(k->dtype, (char *)v->data + i * (onx_dtype_bits(k->dtype) / 8), ONX_FLOAT, &x, 1, false);
    }
    return v;
}

static onx_value *scales(source *s, const kind *k, const form *f)
{
    static const float odd[] = { 1e-38f, 1e30f, -0.25f, 0x1.fffffep-3f, 1e-25f };
    onx_value *v = tensor(k->dtype, f->scale_rank, f->scale_dims);
    for (uint64_t i = 0; i < v->count; i++) {
        const float x = below(s, 8)   ? (float)(1 + below(s, 15)) / 8
                        : below(s, 4) ? between(s, 0.01f, 1)
                                      : odd[below(s, 5)];
        onx_convert(k->dtype, (char *)v->data + i * (onx_dtype_bits(k->dtype) / 8), ONX_FLOAT, &x, 1, true);
    }
    return v;
}

static const char *scale_shape(const form *f)
{
    return f->scale_rank == 3 ? "[K, L, M]" : f->scale_rank ? "[K]" : "";
}

static void compare(const writer *w, const char *op, const onx_value *const *in)
{
    const char *variant = compare_any(w, op, in, 0);
    if (strcmp(variant, "plain") == 0)
        fail_msg("no vectorized row for %s", w->text);
}

static void test_kernel_quantize__quantizing(void **state)
{
    static writer w;
    source s = { 11 };
    (void)state;
    for (unsigned turn = 0; turn < 400; turn++) {
        const form f = any_form(&s);
        const kind *to = &wholes[turn % SMALL], *by = &reals[below(&s, REALS)], *from = by;
        const uint32_t rounded = below(&s, 4) ? 0 : (uint32_t)reals[below(&s, REALS)].dtype;
        if (!below(&s, 3))
            from = below(&s, 3) ? &reals[below(&s, REALS)] : &wholes[SMALL];
        onx_value *x = from == &wholes[SMALL] ? integers(&s, from, 3, f.dims) : numbers(&s, from, 3, f.dims);
        onx_value *scale = scales(&s, by, &f), *zero = integers(&s, to, f.scale_rank, f.scale_dims);
        w.len = 0;
        add(&w, "<ir_version: 11, opset_import: [\"\" : 23]>\ng (%s[A, B, C] x, %s%s s, %s%s z) => (%s[A, B, C] y) {\n",
            from->name, by->name, scale_shape(&f), given_as(to)->name, scale_shape(&f), to->name);
        add(&w,
            " t = Cast <to = %d> (z)\n y = QuantizeLinear <axis = %u, block_size = %u, precision = %u> (x, s, t)\n}\n",
            (int)to->dtype, f.axis, f.block, rounded);
        compare(&w, "QuantizeLinear", (const onx_value *const[]){ x, scale, zero });
        onx_value_free(x);
        onx_value_free(scale);
        onx_value_free(zero);
    }
}

static void test_kernel_quantize__dequantizing(void **state)
{
    static writer w;
    source s = { 12 };
    (void)state;
    for (unsigned turn = 0; turn < 400; turn++) {
        const form f = any_form(&s);
        const kind *from = &wholes[turn % WHOLES], *by = &reals[below(&s, REALS)];
        const bool zeros = below(&s, 3);
        onx_value *x = integers(&s, from, 3, f.dims), *scale = scales(&s, by, &f);
        onx_value *zero = integers(&s, from, f.scale_rank, f.scale_dims);
        w.len = 0;
        add(&w, "<ir_version: 11, opset_import: [\"\" : 23]>\ng (%s[A, B, C] x, %s%s s, %s%s z) => (%s[A, B, C] y) {\n",
            given_as(from)->name, by->name, scale_shape(&f), given_as(from)->name, scale_shape(&f), by->name);
        add(&w, " t = Cast <to = %d> (z)\n u = Cast <to = %d> (x)\n", (int)from->dtype, (int)from->dtype);
        add(&w, " y = DequantizeLinear <axis = %u, block_size = %u> (u, s%s)\n}\n", f.axis, f.block,
            zeros ? ", t" : "");
        compare(&w, "DequantizeLinear", (const onx_value *const[]){ x, scale, zero });
        onx_value_free(x);
        onx_value_free(scale);
        onx_value_free(zero);
    }
}

/* Scales of 16-bit integers for which the remainder of a product decides, and quotients next to ties. */
static void test_kernel_quantize__beside_ties(void **state)
{
    static writer w;
    source s = { 13 };
    (void)state;
    w.len = 0;
    add(&w, "<ir_version: 11, opset_import: [\"\" : 23]>\ng (float[N] x, float s, int16 z) => (int16[N] y) {\n"
            " y = QuantizeLinear (x, s, z)\n}\n");
    for (unsigned turn = 0; turn < 60; turn++) {
        onx_value *x = tensor(ONX_FLOAT, 1, (const int64_t[]){ 3001 }), *scale = tensor(ONX_FLOAT, 0, NULL);
        onx_value *zero = integers(&s, &wholes[2], 0, NULL);
        uint32_t bits = (127 - 20 + below(&s, 40)) << 23 | (turn % 3 ? below(&s, 1 << 23) : turn ? 0x7fffff : 0);
        float by;
        memcpy(&by, &bits, sizeof by);
        memcpy(scale->data, &by, sizeof by);
        for (uint64_t i = 0; i < x->count; i++) {
            const float tie = ((float)((int32_t)below(&s, 65536) - 32768) + 0.5f) * by;
            memcpy(&bits, &tie, sizeof bits);
            bits += below(&s, 4) - 1;
            memcpy((float *)x->data + i, &bits, sizeof bits);
        }
        compare(&w, "QuantizeLinear", (const onx_value *const[]){ x, scale, zero });
        onx_value_free(x);
        onx_value_free(scale);
        onx_value_free(zero);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_quantize__quantizing),
        cmocka_unit_test(test_kernel_quantize__dequantizing),
        cmocka_unit_test(test_kernel_quantize__beside_ties),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
