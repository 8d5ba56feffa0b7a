/* test_kernel_blocks.c - operators computed in blocks of elements, at sizes with full and with partial blocks, compared
 * with loops that follow the text of the standard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/simd/cut.h"
#include "unit/context.h"

static uint32_t below(uint64_t *state, uint32_t end)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % end);
}

static onx_value *run(const char *text, const onx_value *const *in)
{
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    onx_value *out = NULL;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 2 }, &session), ONX_OK);
    assert_int_equal(onx_session_run(session, cx, in, &out), ONX_OK);
    onx_session_free(session);
    onx_doc_free(doc);
    return out;
}

/* Element types of all widths, dims of 1 and of more than a block, all ranks up to 5. */
static void test_kernel_blocks__transpose_moves_every_element(void **unused)
{
    static const struct {
        const char *name;
        onx_dtype dtype;
        unsigned width;
    } types[] = { { "uint8", ONX_UINT8, 1 },
                  { "float16", ONX_FLOAT16, 2 },
                  { "float", ONX_FLOAT, 4 },
                  { "int64", ONX_INT64, 8 },
                  { "complex128", ONX_COMPLEX128, 16 } };
    static const int64_t sizes[] = { 1, 2, 3, 15, 16, 17, 33 };
    uint64_t state = 1;
    (void)unused;
    for (unsigned turn = 0; turn < 150; turn++) {
        const uint32_t rank = 1 + below(&state, 5), type = turn % 5;
        const unsigned width = types[type].width;
        int64_t dims[5], perm[5];
        char text[400], list[100] = "", shape[100] = "";
        uint64_t count = 1;
        for (uint32_t d = 0; d < rank; d++) {
            dims[d] = sizes[below(&state, count > 20000 ? 3 : 7)];
            count *= (uint64_t)dims[d];
            perm[d] = d;
        }
        for (uint32_t d = rank; d-- > 1;) {
            const uint32_t other = below(&state, d + 1);
            const int64_t swap = perm[d];
            perm[d] = perm[other];
            perm[other] = swap;
        }
        for (uint32_t d = 0; d < rank; d++) {
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", d ? ", " : "", (int)perm[d]);
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", d ? ", " : "", (int)dims[d]);
        }
        snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (%s[%s] x) => (%s y) {\n y = Transpose <perm = [%s]> (x)\n}\n",
            types[type].name, shape, types[type].name, list);
        onx_value *x = NULL;
        assert_int_equal(onx_value_new_tensor(cx, types[type].dtype, rank, dims, &x), ONX_OK);
        for (uint64_t i = 0; i < count * width; i++)
            ((uint8_t *)x->data)[i] = (uint8_t)below(&state, 120);
        onx_value *y = run(text, (const onx_value *const[]){ x });
        assert_int_equal(y->count, count);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t rest = i, from = 0;
            for (uint32_t d = rank; d-- > 0;) {
                uint64_t index = rest % (uint64_t)dims[perm[d]], step = 1;
                rest /= (uint64_t)dims[perm[d]];
                for (uint32_t k = (uint32_t)perm[d] + 1; k < rank; k++)
                    step *= (uint64_t)dims[k];
                from += index * step;
            }
            if (memcmp((char *)y->data + i * width, (char *)x->data + from * width, width) != 0)
                fail_msg("element %llu of %s", (unsigned long long)i, text);
        }
        onx_value_free(x);
        onx_value_free(y);
    }
}

static bool too_near(const float *a, const float *b, float limit)
{
    float h = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
    float w = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    float common = h > 0 && w > 0 ? h * w : 0;
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common) > limit;
}

/* Sizes around one, two and many blocks of kept boxes. */
static void test_kernel_blocks__suppression_keeps_the_right_boxes(void **unused)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "g (float[1, N, 4] b, float[1, 1, N] s) => (int64[M, 3] y) <int64 most = {100000}, "
                               "float limit = {0.25}> {\n y = NonMaxSuppression (b, s, most, limit)\n}\n";
    static const int64_t sizes[] = { 1, 31, 40, 65, 700 };
    uint64_t state = 2;
    (void)unused;
    for (unsigned turn = 0; turn < 15; turn++) {
        /* most boxes reach far, compared with all that there are, or few do */
        const uint32_t range[] = { turn < 5 ? 60 : turn < 10 ? 400 : 5000, turn < 5 ? 60 : 100 };
        const int64_t n = sizes[turn % 5], bd[] = { 1, n, 4 }, sd[] = { 1, 1, n };
        onx_value *boxes = NULL, *scores = NULL;
        assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 3, bd, &boxes), ONX_OK);
        assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 3, sd, &scores), ONX_OK);
        float *b = boxes->data, *s = scores->data;
        for (int64_t i = 0; i < n; i++) { /* the order of the scores is that of the boxes */
            for (int d = 0; d < 2; d++) {
                b[4 * i + d] = (float)below(&state, range[d]);
                b[4 * i + 2 + d] = b[4 * i + d] + 1 + (float)below(&state, 40);
            }
            s[i] = 1 - (float)i / (float)n;
        }
        onx_value *y = run(text, (const onx_value *const[]){ boxes, scores });
        int64_t kept[700], count = 0;
        for (int64_t i = 0; i < n; i++) {
            bool keep = true;
            for (int64_t k = 0; k < count && keep; k++)
                keep = !too_near(b + 4 * i, b + 4 * kept[k], 0.25f);
            if (keep)
                kept[count++] = i;
        }
        assert_int_equal(y->dims[0], count);
        for (int64_t k = 0; k < count; k++)
            assert_int_equal(((const int64_t *)y->data)[3 * k + 2], kept[k]);
        onx_value_free(boxes);
        onx_value_free(scores);
        onx_value_free(y);
    }
}

static onx_value *numbers(onx_dtype dtype, uint32_t rank, const int64_t *dims, uint64_t *state, uint32_t end)
{
    onx_value *v = NULL;
    assert_int_equal(onx_value_new_tensor(cx, dtype, rank, dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++) {
        const int32_t x = (int32_t)below(state, end);
        onx_convert(dtype, (char *)v->data + i * (onx_dtype_bits(dtype) / 8), ONX_INT32, &x, 1, true);
    }
    return v;
}

/* Conditions and operands that are lines or single elements. */
static void test_kernel_blocks__where_takes_from_the_right_side(void **unused)
{
    uint64_t state = 3;
    (void)unused;
    for (unsigned turn = 0; turn < 32; turn++) {
        const int64_t n = 1 + below(&state, 70);
        const int64_t cd[] = { 2, turn & 1 ? n : 1 }, xd[] = { 2, turn & 2 ? n : 1 }, yd[] = { 2, turn & 4 ? n : 1 };
        onx_value *c = numbers(ONX_BOOL, 2, cd, &state, 2), *x = numbers(ONX_FLOAT, 2, xd, &state, 100),
                  *y = numbers(ONX_FLOAT, 2, yd, &state, 100);
        onx_value *z =
            run("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                "g (bool[2, A] c, float[2, B] x, float[2, C] y) => (float[2, D] z) {\n z = Where (c, x, y)\n}\n",
                (const onx_value *const[]){ c, x, y });
        for (int64_t r = 0; r < 2; r++)
            for (int64_t i = 0; i < z->dims[1]; i++) {
                const float a = ((const float *)x->data)[r * xd[1] + i % xd[1]],
                            b = ((const float *)y->data)[r * yd[1] + i % yd[1]];
                const bool so = ((const uint8_t *)c->data)[r * cd[1] + i % cd[1]];
                assert_true(((const float *)z->data)[r * z->dims[1] + i] == (so ? a : b));
            }
        onx_value_free(c);
        onx_value_free(x);
        onx_value_free(y);
        onx_value_free(z);
    }
}

static void test_kernel_blocks__nearest_repeats_lines(void **unused)
{
    static const int64_t dims[] = { 2, 3, 5, 7 };
    uint64_t state = 4;
    (void)unused;
    onx_value *x = numbers(ONX_FLOAT, 4, dims, &state, 1000);
    onx_value *y = run(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[2, 3, 5, 7] x) => (float[2, 3, 10, 21] y) <float[4] s = {1, 1, 2, 3}> {\n"
        " y = Resize <mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, \"\", s)\n}\n",
        (const onx_value *const[]){ x });
    for (int64_t p = 0; p < 6; p++)
        for (int64_t r = 0; r < 10; r++)
            for (int64_t i = 0; i < 21; i++)
                assert_true(((const float *)y->data)[(p * 10 + r) * 21 + i] ==
                            ((const float *)x->data)[(p * 5 + r / 2) * 7 + i / 3]);
    onx_value_free(x);
    onx_value_free(y);
}

static void test_kernel_blocks__nonzero_finds_every_place(void **unused)
{
    uint64_t state = 5;
    (void)unused;
    for (unsigned turn = 0; turn < 20; turn++) {
        static const char *const names[] = { "bool", "float", "int64", "float16" };
        static const onx_dtype types[] = { ONX_BOOL, ONX_FLOAT, ONX_INT64, ONX_FLOAT16 };
        const int64_t dims[] = { 1 + below(&state, 4), 1 + below(&state, 5), 1 + below(&state, 40) };
        char text[200];
        snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (%s[A, B, C] x) => (int64[3, D] y) {\n y = NonZero (x)\n}\n",
            names[turn % 4]);
        onx_value *x = numbers(types[turn % 4], 3, dims, &state, 2), *y = run(text, (const onx_value *const[]){ x });
        const unsigned width = onx_dtype_bits(x->dtype) / 8;
        uint64_t at = 0, found = (uint64_t)y->dims[1];
        for (uint64_t i = 0; i < x->count; i++) {
            static const uint8_t zeros[8] = { 0 };
            if (memcmp((const char *)x->data + i * width, zeros, width) == 0)
                continue;
            const int64_t want[] = { (int64_t)i / dims[2] / dims[1], (int64_t)i / dims[2] % dims[1],
                                     (int64_t)i % dims[2] };
            assert_true(at < found);
            for (uint64_t d = 0; d < 3; d++)
                assert_int_equal(((const int64_t *)y->data)[d * found + at], want[d]);
            at++;
        }
        assert_int_equal(at, found);
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Work that is cut for threads: nothing is left out, and the last thread ends soon after the first one could. */
static void test_kernel_blocks__cuts_are_even(void **unused)
{
    (void)unused;
    for (uint64_t threads = 1; threads < 10; threads++)
        for (uint64_t others = 1; others < 40; others++)
            for (uint64_t units = 1; units < 300; units++) {
                const uint64_t each = cut_evenly(units, others, threads, CUT_SOME);
                assert_in_range(each, 1, units);
                const uint64_t pieces = (units + each - 1) / each * others;
                const uint64_t last = (pieces + threads - 1) / threads * each, all = units * others;
                if (threads == 1)
                    assert_int_equal(each, units);
                else if (all >= 8 * threads)
                    assert_true(last * threads * 2 <= all * 3);
            }
    assert_int_equal(cut_evenly(72, 1, 2, CUT_SOME), 9);
    assert_int_equal(cut_evenly(96, 1, 2, CUT_SOME), 12);
    assert_int_equal(cut_evenly(72, 1, 2, CUT_FEW), 18);
    assert_int_equal(cut_evenly(0, 1, 2, CUT_SOME), 0);
    assert_int_equal(cut_evenly(UINT64_MAX, UINT64_MAX, 2, CUT_SOME), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_blocks__transpose_moves_every_element),
        cmocka_unit_test(test_kernel_blocks__suppression_keeps_the_right_boxes),
        cmocka_unit_test(test_kernel_blocks__where_takes_from_the_right_side),
        cmocka_unit_test(test_kernel_blocks__nearest_repeats_lines),
        cmocka_unit_test(test_kernel_blocks__nonzero_finds_every_place),
        cmocka_unit_test(test_kernel_blocks__cuts_are_even),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
