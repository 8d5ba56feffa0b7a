/* Elements of tensors from every field, and all mismatches. */
#include "ir/ir.h"
#include <onx/io.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int set_up(void **state)
{
    static onx_doc doc;
    memset(&doc, 0, sizeof doc);
    doc.cx = onx_ctx_new(NULL);
    onx_arena_new(doc.cx, &doc.arena);
    *state = &doc;
    return 0;
}

static int tear_down(void **state)
{
    onx_doc *doc = *state;
    onx_arena_free(doc->arena);
    onx_ctx_free(doc->cx);
    return 0;
}

static onx_tensor *tensor(onx_doc *doc, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_tensor *t = onx_arena_alloc(doc->arena, sizeof *t);
    ONX_SET(tensor, t, data_type, (int32_t)dtype);
    t->dims_count = rank;
    t->dims = onx_arena_alloc(doc->arena, rank * sizeof *dims);
    if (rank)
        memcpy(t->dims, dims, rank * sizeof *dims);
    return t;
}

static onx_tensor *vector(onx_doc *doc, onx_dtype dtype, int64_t n)
{
    return tensor(doc, dtype, 1, &n);
}

static void set_raw(onx_doc *doc, onx_tensor *t, const void *bytes, size_t len)
{
    t->has |= onx_tensor_has_raw_data;
    assert_int_equal(onx_arena_keep(doc->arena, onx_str_make(bytes, len), &t->raw_data), ONX_OK);
}

static void expect_bytes(onx_doc *doc, const onx_tensor *t, const void *want, size_t len)
{
    onx_str got;
    assert_int_equal(onx_tensor_bytes(doc, t, &got), ONX_OK);
    assert_int_equal(got.len, len);
    assert_memory_equal(got.ptr, want, len);
}

static void expect_fault(onx_doc *doc, const onx_tensor *t, onx_status status, const char *text)
{
    onx_str got;
    char buf[512];
    onx_diag_clear(doc->cx);
    assert_int_equal(onx_tensor_bytes(doc, t, &got), status);
    assert_int_equal(onx_diag_count(doc->cx), 1);
    onx_diag_format(onx_diag_get(doc->cx, 0), buf, sizeof buf);
    if (!strstr(buf, text))
        fail_msg("%s", buf);
    double d;
    assert_int_not_equal(onx_tensor_get_f64(doc, t, 0, 1, &d), ONX_OK);
}

static void test_ir_tensor__count(void **state)
{
    onx_doc *doc = *state;
    uint64_t n;
    assert_true(onx_tensor_count(tensor(doc, ONX_FLOAT, 0, NULL), &n) && n == 1);
    assert_true(onx_tensor_count(tensor(doc, ONX_FLOAT, 3, (int64_t[]){ 2, 3, 4 }), &n) && n == 24);
    assert_true(onx_tensor_count(tensor(doc, ONX_FLOAT, 3, (int64_t[]){ INT64_MAX, 0, INT64_MAX }), &n) && n == 0);
    assert_true(onx_tensor_count(tensor(doc, ONX_FLOAT, 3, (int64_t[]){ INT64_MAX, INT64_MAX, 0 }), &n) && n == 0);
    assert_false(onx_tensor_count(tensor(doc, ONX_FLOAT, 2, (int64_t[]){ 0, -1 }), &n));
    assert_false(onx_tensor_count(tensor(doc, ONX_FLOAT, 3, (int64_t[]){ INT64_MAX, INT64_MAX, 4 }), &n));
}

static void test_ir_tensor__raw_data_is_borrowed(void **state)
{
    onx_doc *doc = *state;
    const float f[3] = { 1, -2.5f, 3 };
    onx_tensor *t = vector(doc, ONX_FLOAT, 3);
    set_raw(doc, t, f, sizeof f);
    onx_str got;
    assert_int_equal(onx_tensor_bytes(NULL, t, &got), ONX_OK);
    assert_ptr_equal(got.ptr, onx_view(t->raw_data).ptr);
    double d[2];
    assert_int_equal(onx_tensor_get_f64(NULL, t, 1, 2, d), ONX_OK);
    assert_true(d[0] == -2.5 && d[1] == 3);
    int64_t i[3];
    assert_int_equal(onx_tensor_get_i64(doc, t, 0, 3, i), ONX_OK);
    assert_true(i[0] == 1 && i[1] == -2 && i[2] == 3);
    assert_int_equal(onx_tensor_get_f64(doc, t, 2, 2, d), ONX_E_MISUSE);
    assert_int_equal(onx_tensor_get_f64(doc, t, UINT64_MAX, 2, d), ONX_E_MISUSE);
    assert_int_equal(onx_tensor_get_f64(doc, t, 3, 0, d), ONX_OK);
}

/* One case per typed field: entries in, raw_data layout out. */
static void test_ir_tensor__typed_fields(void **state)
{
    onx_doc *doc = *state;
    float floats[] = { 1, 2, 3, 4 };
    onx_tensor *t = vector(doc, ONX_COMPLEX64, 2);
    t->float_data = floats;
    t->float_data_count = 4;
    expect_bytes(doc, t, floats, sizeof floats);
    double real[2];
    assert_int_equal(onx_tensor_get_f64(doc, t, 0, 2, real), ONX_OK);
    assert_true(real[0] == 1 && real[1] == 3);
    double doubles[] = { 1.5, -1 };
    t = vector(doc, ONX_DOUBLE, 2);
    t->double_data = doubles;
    t->double_data_count = 2;
    expect_bytes(doc, t, doubles, sizeof doubles);
    uint64_t wide[] = { 1, UINT32_MAX };
    t = vector(doc, ONX_UINT32, 2);
    t->uint64_data = wide;
    t->uint64_data_count = 2;
    expect_bytes(doc, t, "\1\0\0\0\xff\xff\xff\xff", 8);
    static const struct {
        onx_dtype dtype;
        int64_t count;
        int32_t entries[4];
        uint32_t entry_count;
        const char *bytes;
        size_t len;
        double first, last;
    } cases[] = {
        { ONX_INT8, 2, { -128, 127 }, 2, "\x80\x7f", 2, -128, 127 },
        { ONX_UINT8, 2, { 0, 255 }, 2, "\0\xff", 2, 0, 255 },
        { ONX_INT16, 2, { -2, 258 }, 2, "\xfe\xff\x02\x01", 4, -2, 258 },
        { ONX_UINT16, 1, { 65535 }, 1, "\xff\xff", 2, 65535, 65535 },
        { ONX_INT32, 1, { -1 }, 1, "\xff\xff\xff\xff", 4, -1, -1 },
        { ONX_BOOL, 2, { 0, 1 }, 2, "\0\1", 2, 0, 1 },
        { ONX_FLOAT16, 2, { 0x3c00, 0xc000 }, 2, "\x00\x3c\x00\xc0", 4, 1, -2 },
        { ONX_BFLOAT16, 1, { 0xbf80 }, 1, "\x80\xbf", 2, -1, -1 },
        { ONX_FLOAT8E4M3FN, 1, { 0xb8 }, 1, "\xb8", 1, -1, -1 },
        { ONX_FLOAT8E8M0, 1, { 128 }, 1, "\x80", 1, 2, 2 },
        { ONX_INT4, 3, { 0xf1, 0x08 }, 2, "\xf1\x08", 2, 1, -8 },
        { ONX_FLOAT4E2M1, 2, { 0xf7 }, 1, "\xf7", 1, 6, -6 },
        { ONX_UINT2, 5, { 0xe4, 0x02 }, 2, "\xe4\x02", 2, 0, 2 },
        /* filled with 32 bits, and one by one */
        { ONX_INT4, 10, { INT32_MIN + 0x76543f1, 0x2e }, 2, "\xf1\x43\x65\x87\x2e", 5, 1, 2 },
        { ONX_UINT2, 17, { (int32_t)0x80000001, 3 }, 2, "\x01\x00\x00\x80\x03", 5, 1, 3 },
        { ONX_UINT2, 16, { 0x40000002 }, 1, "\x02\x00\x00\x40", 4, 2, 1 },
        { ONX_INT4, 3, { -8, 15, 3 }, 3, "\xf8\x03", 2, -8, 3 },
        { ONX_UINT4, 4, { 1, 2, 3, 15 }, 4, "\x21\xf3", 2, 1, 15 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t = vector(doc, cases[i].dtype, cases[i].count);
        t->int32_data = (int32_t *)(uintptr_t)cases[i].entries;
        t->int32_data_count = cases[i].entry_count;
        expect_bytes(doc, t, cases[i].bytes, cases[i].len);
        double d;
        assert_int_equal(onx_tensor_get_f64(doc, t, 0, 1, &d), ONX_OK);
        assert_true(d == cases[i].first);
        assert_int_equal(onx_tensor_get_f64(doc, t, (uint64_t)cases[i].count - 1, 1, &d), ONX_OK);
        assert_true(d == cases[i].last);
    }
}

/* Longer than a window, from the middle of a byte, whichever way they are packed. */
static void test_ir_tensor__packed_entries_in_windows(void **state)
{
    onx_doc *doc = *state;
    enum { N = 5001 };
    static int32_t entries[N / 2 + 1];
    for (int i = 0; i <= N / 2; i++)
        entries[i] = (2 * i % 16) | ((2 * i + 1) % 16) << 4;
    onx_tensor *t = vector(doc, ONX_UINT4, N);
    static int32_t words[N / 8 + 1], single[N];
    for (int i = 0; i < N; i++) {
        single[i] = i % 16;
        words[i / 8] = (int32_t)((uint32_t)words[i / 8] | (uint32_t)(i % 16) << i % 8 * 4);
    }
    int32_t *ways[] = { entries, words, single };
    static const uint32_t counts[] = { N / 2 + 1, N / 8 + 1, N };
    for (int way = 0; way < 3; way++) {
        static float out[N];
        t->int32_data = ways[way];
        t->int32_data_count = counts[way];
        assert_int_equal(onx_tensor_get_f32(doc, t, 3, N - 3, out), ONX_OK);
        for (int i = 3; i < N; i++)
            assert_true(out[i - 3] == (float)(i % 16));
    }
}

/* A range that starts inside of a wrongly filled entry says which. */
static void test_ir_tensor__packed_entries_out_of_range(void **state)
{
    onx_doc *doc = *state;
    int32_t entries[] = { 16, 2, 3, 4 };
    onx_tensor *t = vector(doc, ONX_UINT4, 4);
    t->int32_data = entries;
    t->int32_data_count = 4;
    expect_fault(doc, t, ONX_E_INVALID, "entry 0 of int32_data is 16");
    t = vector(doc, ONX_UINT4, 8);
    entries[0] = 256;
    t->int32_data = entries;
    t->int32_data_count = 4;
    expect_fault(doc, t, ONX_E_INVALID, "entry 0 of int32_data is 256");
}

static void test_ir_tensor__saturates_integers(void **state)
{
    onx_doc *doc = *state;
    uint64_t big = UINT64_MAX;
    onx_tensor *t = vector(doc, ONX_UINT64, 1);
    t->uint64_data = &big;
    t->uint64_data_count = 1;
    int64_t i;
    assert_int_equal(onx_tensor_get_i64(doc, t, 0, 1, &i), ONX_OK);
    assert_true(i == INT64_MAX);
    float nan = NAN;
    t = vector(doc, ONX_FLOAT, 1);
    set_raw(doc, t, &nan, 4);
    assert_int_equal(onx_tensor_get_i64(doc, t, 0, 1, &i), ONX_OK);
    assert_true(i == 0);
}

static void test_ir_tensor__faults(void **state)
{
    onx_doc *doc = *state;
    onx_tensor *t = vector(doc, ONX_FLOAT, 2);
    set_raw(doc, t, "12345678", 5);
    onx_arena_keep(doc->arena, onx_str_of("w"), &t->name);
    expect_fault(doc, t, ONX_E_INVALID, "tensor \"w\": error: raw_data has 5 bytes, but 2 elements of float");
    int32_t entries[] = { 300, 7, -1 };
    t = vector(doc, ONX_UINT8, 3);
    t->int32_data = entries;
    t->int32_data_count = 3;
    expect_fault(doc, t, ONX_E_INVALID, "entry 0 of int32_data is 300");
    t = vector(doc, ONX_BOOL, 2);
    t->int32_data = entries + 1;
    t->int32_data_count = 2;
    expect_fault(doc, t, ONX_E_INVALID, "entry 0 of int32_data is 7");
    uint64_t wide = (uint64_t)1 << 32;
    t = vector(doc, ONX_UINT32, 1);
    t->uint64_data = &wide;
    t->uint64_data_count = 1;
    expect_fault(doc, t, ONX_E_INVALID, "entry 0 of uint64_data");
    t = vector(doc, ONX_INT64, 1); /* the wrong field */
    t->int32_data = entries;
    t->int32_data_count = 1;
    expect_fault(doc, t, ONX_E_INVALID, "int64_data has 0 entries");
    t = vector(doc, ONX_INT4, 10); /* five bytes, two words, ten elements: but not three entries */
    t->int32_data = entries;
    t->int32_data_count = 3;
    expect_fault(doc, t, ONX_E_INVALID, "int32_data has 3 entries, but 10 elements of int4");
    set_raw(doc, t, "1234", 4);
    expect_fault(doc, t, ONX_E_INVALID, "both in raw_data and in a typed field");
    expect_fault(doc, vector(doc, ONX_FLOAT, 1), ONX_E_INVALID, "float_data has 0 entries");
    expect_fault(doc, vector(doc, ONX_FLOAT, -1), ONX_E_INVALID, "negative");
    expect_fault(doc, vector(doc, ONX_FLOAT, INT64_MAX), ONX_E_INVALID, "overflow");
    expect_fault(doc, vector(doc, ONX_UNDEFINED, 1), ONX_E_INVALID, "data_type 0");
    expect_fault(doc, vector(doc, (onx_dtype)99, 1), ONX_E_INVALID, "data_type 99");
    expect_fault(doc, vector(doc, ONX_STRING, 1), ONX_E_UNSUPPORTED, "strings");
    t = vector(doc, ONX_FLOAT, 1);
    t->has |= onx_tensor_has_segment;
    expect_fault(doc, t, ONX_E_UNSUPPORTED, "segment");
    /* A terabyte is declared, nothing is there: refused before anything is reserved. */
    expect_fault(doc, vector(doc, ONX_INT8, (int64_t)1 << 40), ONX_E_INVALID, "int32_data has 0 entries");
    t = vector(doc, ONX_FLOAT, 1);
    ONX_SET(tensor, t, data_location, ONX_DATA_EXTERNAL);
    expect_fault(doc, t, ONX_E_MISUSE, "external");
}

static void test_ir_tensor__empty_and_text(void **state)
{
    onx_doc *doc = *state;
    onx_str got;
    assert_int_equal(onx_tensor_bytes(NULL, vector(doc, ONX_INT4, 0), &got), ONX_OK);
    assert_int_equal(got.len, 0);
    onx_tensor *t = vector(doc, ONX_STRING, 1);
    onx_bytes text;
    onx_arena_keep(doc->arena, onx_str_of("hello"), &text);
    t->string_data = &text;
    t->string_data_count = 1;
    assert_int_equal(onx_tensor_get_text(t, 0, &got), ONX_OK);
    assert_true(onx_str_is(got, "hello"));
    assert_int_equal(onx_tensor_get_text(t, 1, &got), ONX_E_MISUSE);
    t->dims[0] = 2;
    assert_int_equal(onx_tensor_get_text(t, 0, &got), ONX_E_INVALID);
    assert_int_equal(onx_tensor_get_text(vector(doc, ONX_FLOAT, 1), 0, &got), ONX_E_MISUSE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_ir_tensor__count),
        TEST(test_ir_tensor__raw_data_is_borrowed),
        TEST(test_ir_tensor__typed_fields),
        TEST(test_ir_tensor__packed_entries_in_windows),
        TEST(test_ir_tensor__packed_entries_out_of_range),
        TEST(test_ir_tensor__saturates_integers),
        TEST(test_ir_tensor__faults),
        TEST(test_ir_tensor__empty_and_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
