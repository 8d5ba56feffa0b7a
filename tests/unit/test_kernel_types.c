/* test_kernel_types.c - operators on all plain types, by the plain rows and by vectorized ones, or by their definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

static const struct {
    const char *name;
    onx_dtype dtype;
    int64_t low, high;
} wholes[] = { { "int8", ONX_INT8, INT8_MIN, INT8_MAX },     { "uint8", ONX_UINT8, 0, UINT8_MAX },
               { "int16", ONX_INT16, INT16_MIN, INT16_MAX }, { "uint16", ONX_UINT16, 0, UINT16_MAX },
               { "int32", ONX_INT32, INT32_MIN, INT32_MAX }, { "uint32", ONX_UINT32, 0, UINT32_MAX } };

/* Any of the type's values: small ones, those at the ends, and others. */
static onx_value *integers(source *s, unsigned type, uint32_t rank, const int64_t *dims)
{
    const int64_t low = wholes[type].low, high = wholes[type].high;
    onx_value *v = tensor(wholes[type].dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++) {
        const uint32_t random = below(s, UINT32_MAX), kind = below(s, 4);
        int64_t x = kind == 0   ? (int64_t)(random % 7) - (low ? 3 : 0)
                    : kind == 1 ? (random % 2 ? high - random % 3 : low + random % 3)
                                : low + (int64_t)(random % ((uint64_t)(high - low) + 1));
        onx_convert(wholes[type].dtype, (char *)v->data + i * (onx_dtype_bits(v->dtype) / 8), ONX_INT64, &x, 1, true);
    }
    return v;
}

static void test_kernel_types__remainders(void **state)
{
    static writer w;
    source s = { 17 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const unsigned type = turn % 6, form = turn / 6 % 4;
        const int64_t dims[] = { 1 + below(&s, 30), 1 + below(&s, 300) }, one[] = { 1, 1 }, column[] = { dims[0], 1 };
        onx_value *x = integers(&s, type, 2, form == 3 ? column : dims);
        onx_value *y = integers(&s, type, 2, form == 0 ? one : form == 1 ? column : dims);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[A, B] x, %s[C, D] y) => (%s[E, F] z) {",
            wholes[type].name, wholes[type].name, wholes[type].name);
        add(&w, " z = Mod <fmod = %u> (x, y) }", below(&s, 2));
        compare_any(&w, "Mod", (const onx_value *const[]){ x, y }, 0);
        onx_value_free(x);
        onx_value_free(y);
    }
}

static onx_value *result_of(const writer *w, const char *op, const onx_value *x)
{
    onx_doc *doc = NULL;
    onx_value *out[2] = { NULL };
    const onx_session_options options = { .threads = 1 };
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    run(doc, op, &options, (const onx_value *const[]){ x }, out);
    onx_doc_free(doc);
    return out[0];
}

/* Where each element of the image comes from, by the definition. */
static void test_kernel_types__blocks_of_pixels(void **state)
{
    static const struct {
        const char *name;
        onx_dtype dtype;
    } all[] = { { "uint8", ONX_UINT8 }, { "int16", ONX_INT16 }, { "float", ONX_FLOAT }, { "double", ONX_DOUBLE } };
    static writer w;
    source s = { 19 };
    (void)state;
    for (unsigned turn = 0; turn < 96; turn++) {
        const unsigned type = turn % 4, way = turn / 4 % 3;
        const int64_t block = 2 + below(&s, 4), deep = 1 + below(&s, 4), h = 1 + below(&s, 5), v = 1 + below(&s, 40);
        const int64_t small[] = { 2, deep * block * block, h, v }, large[] = { 2, deep, h * block, v * block };
        onx_value *x = tensor(all[type].dtype, 4, way == 2 ? large : small);
        const uint64_t width = onx_dtype_bits(x->dtype) / 8;
        for (uint64_t i = 0; i < x->size; i++)
            ((uint8_t *)x->data)[i] = (uint8_t)below(&s, 128);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[A, B, C, D] x) => (%s[E, F, G, H] y) {",
            all[type].name, all[type].name);
        if (way == 2)
            add(&w, " y = SpaceToDepth <blocksize = %d> (x) }", (int)block);
        else
            add(&w, " y = DepthToSpace <blocksize = %d, mode = \"%s\"> (x) }", (int)block, way ? "CRD" : "DCR");
        onx_value *y = result_of(&w, way == 2 ? "SpaceToDepth" : "DepthToSpace", x);
        assert_int_equal(y->count, x->count);
        const char *near = way == 2 ? y->data : x->data, *far = way == 2 ? x->data : y->data;
        for (int64_t at = 0; at < (int64_t)x->count; at++) { /* of the image with fewer channels */
            const int64_t column = at % large[3], row = at / large[3] % large[2], c = at / large[3] / large[2] % deep;
            const int64_t n = at / large[3] / large[2] / deep, in = row % block * block + column % block;
            const int64_t channel = way == 1 ? c * block * block + in : in * deep + c;
            const int64_t from = ((n * small[1] + channel) * h + row / block) * v + column / block;
            assert_memory_equal(far + (uint64_t)at * width, near + (uint64_t)from * width, width);
        }
        onx_value_free(x);
        onx_value_free(y);
    }
}

static void test_kernel_types__cumulating(void **state)
{
    static writer w;
    source s = { 23 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        const bool real = turn % 2, exclusive = below(&s, 2), reverse = below(&s, 2), product = below(&s, 4) == 0;
        const int64_t dims[] = { 1 + below(&s, 3), 1 + below(&s, 40), turn % 3 ? 1 : 1 + below(&s, 40) };
        onx_value *x = tensor(real ? ONX_FLOAT : ONX_INT32, 3, dims);
        for (uint64_t i = 0; i < x->count; i++)
            if (real)
                ((float *)x->data)[i] = (float)(product ? 1 + below(&s, 2) : below(&s, 100));
            else
                ((int32_t *)x->data)[i] = (int32_t)below(&s, UINT32_MAX);
        w.len = 0;
        add(&w, "<ir_version: 13, opset_import: [\"\" : 26]> g (%s[A, B, C] x) => (%s[A, B, C] y) {",
            real ? "float" : "int32", real ? "float" : "int32");
        add(&w, " axis = Constant <value_int = 1> () y = Cum%s <exclusive = %u, reverse = %u> (x, axis) }",
            product ? "Prod" : "Sum", exclusive, reverse);
        onx_value *y = result_of(&w, "CumSum", x);
        for (int64_t line = 0; line < dims[0] * dims[2]; line++) {
            double sum = product;
            uint32_t whole = product;
            for (int64_t i = 0; i < dims[1]; i++) {
                const int64_t k = reverse ? dims[1] - 1 - i : i;
                const int64_t at = (line / dims[2] * dims[1] + k) * dims[2] + line % dims[2];
                const double before = sum;
                const uint32_t whole_before = whole;
                if (real) {
                    const double v = (double)((const float *)x->data)[at];
                    sum = product ? sum * v : sum + v;
                    assert_true(((const float *)y->data)[at] == (float)(exclusive ? before : sum));
                } else {
                    const uint32_t v = ((const uint32_t *)x->data)[at];
                    whole = product ? whole * v : whole + v;
                    assert_true(((const uint32_t *)y->data)[at] == (exclusive ? whole_before : whole));
                }
            }
        }
        onx_value_free(x);
        onx_value_free(y);
    }
}

static void test_kernel_types__resizing(void **state)
{
    static const char *const modes[] = { "linear", "cubic", "nearest" };
    static writer w;
    source s = { 29 };
    (void)state;
    for (unsigned turn = 0; turn < 96; turn++) {
        const unsigned type = turn % 8;
        const bool half = type > 5;
        const int64_t dims[] = { 1, 2, 1 + below(&s, 20), 1 + below(&s, 40) };
        const char *name = half ? type == 6 ? "float16" : "bfloat16" : wholes[type].name;
        onx_value *x = half ? tensor(type == 6 ? ONX_FLOAT16 : ONX_BFLOAT16, 4, dims) : integers(&s, type, 4, dims);
        for (uint64_t i = 0; half && i < x->count; i++) {
            const float v = between(&s, -100, 100);
            onx_convert((onx_dtype)x->dtype, (uint16_t *)x->data + i, ONX_FLOAT, &v, 1, true);
        }
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 19]> g (%s[A, B, C, D] x) => (%s[E, F, G, H] y) {", name,
            half ? "float" : name);
        add(&w, " sizes = Constant <value_ints = [1, 2, %u, %u]> () z = Resize <mode = \"%s\"> (x, , , sizes)",
            1 + below(&s, 30), 1 + below(&s, 90), modes[turn / 8 % 3]);
        add(&w, " y = %s (z) }", half ? "Cast <to = 1>" : "Identity");
        /* 16-bit floats may be rounded to a neighbour */
        assert_string_not_equal(compare_any(&w, "Resize", (const onx_value *const[]){ x }, half ? 65536 : 0), "plain");
        onx_value_free(x);
    }
}

/* Halves of floats of which any axes are broadcast, lines of few and of many elements: one operator, or several of a
 * chain, and comparisons. */
static void test_kernel_types__halves_are_broadcast(void **state)
{
    static const char *const ops[] = { "Add", "Sub", "Mul", "Div", "PRelu", "Less" };
    static const struct {
        const char *name;
        onx_dtype dtype;
    } types[] = { { "float16", ONX_FLOAT16 }, { "bfloat16", ONX_BFLOAT16 } };
    enum { RANK = 4, OPERANDS = 3 };
    static writer w;
    source s = { 71 };
    (void)state;
    for (unsigned turn = 0; turn < 240; turn++) {
        const unsigned type = turn % 2, node = turn / 2 % 6, chain = turn / 12 % 2 && node < 5;
        int64_t dims[OPERANDS][RANK];
        onx_value *in[OPERANDS];
        for (unsigned d = 0; d < RANK; d++) {
            const int64_t size = 1 + below(&s, d == RANK - 1 && turn % 5 == 0 ? 200 : 12);
            for (unsigned i = 0; i < OPERANDS; i++) /* a slope is broadcast to its input */
                dims[i][d] = below(&s, 3) || (i == 0 && node == 4) ? size : 1;
        }
        for (unsigned i = 0; i < OPERANDS; i++) {
            onx_value *wide = floats(&s, RANK, dims[i]);
            in[i] = tensor(types[type].dtype, RANK, dims[i]);
            for (uint64_t k = 0; k < wide->count; k++)
                ((float *)wide->data)[k] += ((float *)wide->data)[k] < 0 ? -0.5f : 0.5f; /* quotients are finite */
            assert_int_equal(onx_convert(types[type].dtype, in[i]->data, ONX_FLOAT, wide->data, wide->count, true),
                             ONX_OK);
            onx_value_free(wide);
        }
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[] x, %s[] y, %s[] v) => (%s[] z) {",
            types[type].name, types[type].name, types[type].name, node == 5 ? "bool" : types[type].name);
        if (chain)
            add(&w, " a = %s (x, y) b = Neg (a) c = Mul (b, v) z = Add (c, x) }", ops[node]);
        else
            add(&w, " z = %s (x, y) }", ops[node]);
        assert_string_not_equal(compare_any(&w, ops[node], (const onx_value *const *)in, 0), "plain");
        for (unsigned i = 0; i < OPERANDS; i++)
            onx_value_free(in[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_types__remainders),
        cmocka_unit_test(test_kernel_types__blocks_of_pixels),
        cmocka_unit_test(test_kernel_types__cumulating),
        cmocka_unit_test(test_kernel_types__resizing),
        cmocka_unit_test(test_kernel_types__halves_are_broadcast),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
