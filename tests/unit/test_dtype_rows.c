/* Rows of dtype.def that no version of the standard has, in a build of the layers below the operators: an element type
 * is one row, from which packing, text, messages and conversion follow. */
#include "ir/ir.h"
#include "text/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* FLOAT5E2M2 has 8 elements in 5 bytes, one per entry of int32_data; INT3 has 8 in 3 bytes. */
enum { FLOAT5 = ONX_FLOAT5E2M2, INT3 = ONX_INT3, COUNT = 19 };

static void test_dtype_rows__properties(void **state)
{
    uint64_t size;
    (void)state;
    assert_int_equal(onx_dtype_find(onx_str_of("float5e2m2")), FLOAT5);
    assert_string_equal(onx_dtype_numpy_name(FLOAT5), "float5_e2m2");
    assert_int_equal(onx_dtype_bits(FLOAT5), 5);
    assert_int_equal(onx_dtype_class_of(FLOAT5), ONX_CLASS_FLOATING);
    assert_int_equal(onx_dtype_ir_version(INT3), 99);
    for (uint64_t n = 0; n < 40; n++) {
        assert_true(onx_dtype_size(FLOAT5, n, &size));
        assert_int_equal(size, (n * 5 + 7) / 8);
        assert_true(onx_dtype_size(INT3, n, &size));
        assert_int_equal(size, (n * 3 + 7) / 8);
    }
    assert_true(onx_dtype_size(FLOAT5, UINT64_MAX, &size));
    assert_int_equal(size, UINT64_MAX / 8 * 5 + 5);
}

static void test_dtype_rows__conversion(void **state)
{
    (void)state;
    double x[32], back[32];
    uint8_t packed[20], codes[32];
    for (unsigned i = 0; i < 32; i++) {
        const unsigned exponent = i >> 2 & 3, mantissa = i & 3;
        x[i] = exponent ? ldexp(4 + mantissa, (int)exponent - 3) : ldexp(mantissa, -2);
        x[i] = i & 16 ? -x[i] : x[i];
    }
    assert_int_equal(onx_convert((onx_dtype)FLOAT5, packed, ONX_DOUBLE, x, 32, true), ONX_OK);
    assert_int_equal(onx_codes_unpack((onx_dtype)FLOAT5, codes, packed, 32), ONX_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(codes[i], i);
    assert_int_equal(onx_convert(ONX_DOUBLE, back, (onx_dtype)FLOAT5, packed, 32, true), ONX_OK);
    assert_memory_equal(back, x, sizeof x);
    assert_int_equal(onx_f32_to_small_float((onx_dtype)FLOAT5, INFINITY, false), 15);
    assert_int_equal(onx_f32_to_small_float((onx_dtype)FLOAT5, -1e9f, false), 31);
    assert_int_equal(onx_f32_to_small_float((onx_dtype)FLOAT5, NAN, true), 16);

    int8_t whole[8] = { 0, 1, 2, 3, -4, -3, -2, -1 }, again[8];
    assert_int_equal(onx_convert((onx_dtype)INT3, packed, ONX_INT8, whole, 8, true), ONX_OK);
    assert_int_equal(packed[0] | packed[1] << 8 | packed[2] << 16, 076543210);
    assert_int_equal(onx_convert(ONX_INT8, again, (onx_dtype)INT3, packed, 8, true), ONX_OK);
    assert_memory_equal(again, whole, sizeof whole);
}

static onx_status append(void *user, onx_str piece)
{
    onx_str *to = user;
    memcpy((char *)(uintptr_t)to->ptr + to->len, piece.ptr, piece.len);
    to->len += piece.len;
    return ONX_OK;
}

/* A tensor of codes or numbers from its text, in typed entries or raw_data, prints as the same text and has the same
 * elements. */
static void through_text(onx_ctx *cx, const char *type, const char *values, bool raw, const double *want)
{
    char text[400], printed[400];
    double got[COUNT];
    onx_doc *doc;
    snprintf(text, sizeof text, "%s[%d] w = {%s}", type, COUNT, values);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_TENSOR, onx_str_of(text), 0, &doc), ONX_OK);
    onx_tensor *tensor = onx_doc_root(doc, ONX_KIND_TENSOR);
    if (raw)
        assert_true(onxi_text_tensor_to_raw(onx_doc_arena(doc), tensor));
    onx_str all = { printed, 0 };
    assert_int_equal(onx_text_print(cx, ONX_KIND_TENSOR, tensor, NULL, (onx_sink){ .write = append, .user = &all }),
                     ONX_OK);
    printed[all.len] = 0;
    assert_non_null(strstr(printed, values));
    assert_non_null(strstr(printed, type));
    for (uint64_t at = 0; at < COUNT; at++) {
        assert_int_equal(onx_tensor_get_f64(doc, tensor, at, COUNT - at, got), ONX_OK);
        for (uint64_t i = at; i < COUNT; i++)
            assert_true(got[i - at] == want[i]);
    }
    onx_doc_free(doc);
}

static void test_dtype_rows__text_and_tensors(void **state)
{
    char codes[200] = "", numbers[200] = "";
    double floats[COUNT], whole[COUNT];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const int code = i * 7 % 32, number = i % 8 - 4;
        floats[i] = (double)onx_small_float_to_f32((onx_dtype)FLOAT5, (uint8_t)code);
        whole[i] = number;
        snprintf(codes + strlen(codes), sizeof codes - strlen(codes), i ? ", %d" : "%d", code);
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), i ? ", %d" : "%d", number);
    }
    for (int raw = 0; raw < 2; raw++) {
        through_text(cx, "float5e2m2", codes, raw != 0, floats);
        through_text(cx, "int3", numbers, raw != 0, whole);
    }
    static const char *const wrong[] = { "float5e2m2[1] w = {32}", "int3[1] w = {4}", "float5e2m2[1] w = {-1}" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_not_equal(onx_text_parse(cx, ONX_KIND_TENSOR, onx_str_of(wrong[i]), 0, &doc), ONX_OK);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype_rows__properties),
        cmocka_unit_test(test_dtype_rows__conversion),
        cmocka_unit_test(test_dtype_rows__text_and_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
