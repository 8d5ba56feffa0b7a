/* NumPy files: every element type, both orders, all versions, archives; and hostile headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/npy.h>

#include "value/value.h"

#include "unit/context.h"

typedef struct npy {
    char bytes[4096];
    size_t len;
} npy;

/* A file of that version; the header is not padded. */
static onx_str make(npy *f, int version, const char *header, const void *data, size_t size)
{
    size_t len = strlen(header), start = version == 1 ? 10 : 12;
    memcpy(f->bytes, "\x93NUMPY", 6);
    f->bytes[6] = (char)version;
    f->bytes[7] = 0;
    for (size_t i = 8; i < start; i++)
        f->bytes[i] = (char)(len >> (8 * (i - 8)));
    memcpy(f->bytes + start, header, len);
    if (size)
        memcpy(f->bytes + start + len, data, size);
    f->len = start + len + size;
    return onx_str_make(f->bytes, f->len);
}

static onx_value *read_ok(onx_str bytes)
{
    onx_value *v;
    onx_diag_clear(cx);
    if (onx_value_from_npy(cx, bytes, &v) != ONX_OK) {
        char text[512];
        onx_diag_format(onx_diag_get(cx, 0), text, sizeof text);
        fail_msg("%s", text);
    }
    return v;
}

static void refused(onx_str bytes, onx_status want, const char *because)
{
    onx_value *v;
    char text[512] = "no diagnostic";
    onx_diag_clear(cx);
    onx_status status = onx_value_from_npy(cx, bytes, &v);
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), text, sizeof text);
    if (status != want || v || !strstr(text, because))
        fail_msg("status %d, %s; wanted %d, %s", (int)status, text, (int)want, because);
}

static void refused_header(const char *header, onx_status want, const char *because)
{
    npy f;
    char data[64] = { 0 };
    refused(make(&f, 1, header, data, sizeof data), want, because);
}

/* What was written comes back; small types as the wider ones that NumPy has. */
static void test_value_npy__writes_and_reads_every_type(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = { { 0 }, { 5 }, { 2, 3 }, { 2, 0, 3 }, { 1, 4, 3 } };
    static const uint32_t ranks[] = { 0, 1, 2, 3, 3 };
    unsigned widened = 0;
    for (int dtype = 1; dtype < ONX_DTYPE_COUNT; dtype++) {
        for (size_t s = 0; s < 5; s++) {
            onx_value *v, *back;
            onx_buffer bytes;
            onx_value_difference d;
            assert_int_equal(onx_value_new_tensor(cx, (onx_dtype)dtype, ranks[s], shapes[s], &v), ONX_OK);
            if (dtype == ONX_STRING)
                for (uint64_t i = 0; i < v->count; i++)
                    assert_int_equal(onx_value_set_text(v, i, onx_str_of(&"abcdefgh"[i % 7])), ONX_OK);
            else
                for (uint64_t i = 0; i < v->size; i++)
                    ((uint8_t *)v->data)[i] = dtype == ONX_BOOL ? i & 1 : (uint8_t)(i * 7 % 60);
            assert_int_equal(onx_value_to_npy(cx, v, &bytes), ONX_OK);
            back = read_ok(onx_str_make(bytes.ptr, bytes.len));
            if (back->dtype == dtype) {
                assert_true(onx_value_close(back, v, 0, 0, &d));
            } else {
                widened++;
                assert_int_equal(back->rank, v->rank);
                assert_true(back->count == v->count);
                for (uint64_t i = 0; i < v->count; i++)
                    assert_true(onxi_value_number(back, i) == onxi_value_number(v, i));
            }
            /* The elements start at a multiple of 64; every shorter file is refused. */
            assert_true((bytes.len - (size_t)(back->dtype == ONX_STRING ? 0 : back->size)) % 64 == 0 ||
                        back->dtype == ONX_STRING);
            for (size_t n = 0; n < bytes.len; n++) {
                onx_value *cut;
                if (onx_value_from_npy(cx, onx_str_make(bytes.ptr, n), &cut) == ONX_OK)
                    fail_msg("type %d is read from %zu of %zu bytes", dtype, n, bytes.len);
                onx_diag_clear(cx);
            }
            onx_buffer_free(&bytes);
            onx_value_free(back);
            onx_value_free(v);
        }
    }
    assert_true(widened >= 5 * 8);
}

/* As written by numpy.save: all versions, columns, the other byte order. */
static void test_value_npy__reads_orders_and_versions(void **state)
{
    (void)state;
    npy f;
    static const int16_t rows[6] = { 1, 2, 3, 4, 5, 6 }, columns[6] = { 1, 4, 2, 5, 3, 6 };
    for (int version = 1; version <= 3; version++) {
        onx_value *v = read_ok(
            make(&f, version, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }  \n", rows, sizeof rows));
        assert_int_equal(v->dtype, ONX_INT16);
        assert_int_equal(v->rank, 2);
        assert_memory_equal(v->data, rows, sizeof rows);
        onx_value_free(v);
        v = read_ok(
            make(&f, version, "{\"shape\":(2L,3L,),'fortran_order':True,'descr':'i2'}", columns, sizeof columns));
        assert_memory_equal(v->data, rows, sizeof rows);
        onx_value_free(v);
    }
    static const int16_t swapped[2] = { 0x0102, 0x0304 }, straight[2] = { 0x0201, 0x0403 };
    onx_value *v =
        read_ok(make(&f, 1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", swapped, sizeof swapped));
    assert_memory_equal(v->data, straight, sizeof straight);
    onx_value_free(v);
    v = read_ok(make(&f, 1, "{'descr': '>c8', 'fortran_order': False, 'shape': (), }", "\x3f\x80\0\0\x40\0\0\0", 8));
    assert_int_equal(v->dtype, ONX_COMPLEX64);
    assert_int_equal(v->rank, 0);
    assert_true(((const float *)v->data)[0] == 1 && ((const float *)v->data)[1] == 2);
    onx_value_free(v);
    v = read_ok(make(&f, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\0\1\7", 3));
    assert_memory_equal(v->data, "\0\1\1", 3);
    onx_value_free(v);
    /* Three axes by columns: element [i][j][k] of 2 x 3 x 2 is i + 2j + 6k in the file. */
    uint8_t cube[12];
    for (int i = 0; i < 12; i++)
        cube[i] = (uint8_t)i;
    v = read_ok(make(&f, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", cube, sizeof cube));
    for (int i = 0; i < 12; i++)
        assert_int_equal(((const uint8_t *)v->data)[i], i / 6 + 2 * (i / 2 % 3) + 6 * (i % 2));
    onx_value_free(v);
}

static void test_value_npy__reads_texts(void **state)
{
    (void)state;
    npy f;
    onx_value *v = read_ok(make(&f, 1, "{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }",
                                "abc"
                                "d\0\0"
                                "e\0f",
                                9));
    const onx_str *s = v->data;
    assert_true(onx_str_is(s[0], "abc") && onx_str_is(s[1], "d") && s[2].len == 3 && s[2].ptr[2] == 'f');
    onx_value_free(v);
    static const uint32_t wide[] = { 'a', 0xe9, 0x20ac, 0x1f600, 0, 0, 'x', 0 };
    v = read_ok(make(&f, 3, "{'descr': '<U2', 'fortran_order': False, 'shape': (2, 2), }", wide, sizeof wide));
    s = v->data;
    assert_true(onx_str_is(s[0], "a\xc3\xa9") && onx_str_is(s[1], "\xe2\x82\xac\xf0\x9f\x98\x80"));
    assert_true(s[2].len == 0 && onx_str_is(s[3], "x"));
    onx_value_free(v);
    v = read_ok(make(&f, 3, "{'descr': '<U2', 'fortran_order': True, 'shape': (2, 2), }", wide, sizeof wide));
    s = v->data;
    assert_true(s[1].len == 0 && onx_str_is(s[2], "\xe2\x82\xac\xf0\x9f\x98\x80"));
    onx_value_free(v);
    v = read_ok(make(&f, 1, "{'descr': '>U1', 'fortran_order': False, 'shape': (1,), }", "\0\0\x20\xac", 4));
    assert_true(onx_str_is(((const onx_str *)v->data)[0], "\xe2\x82\xac"));
    onx_value_free(v);
    static const uint32_t beyond[] = { 0x110000 }, half[] = { 0xd800 };
    refused(make(&f, 1, "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", beyond, 4), ONX_E_MALFORMED,
            "not a Unicode character");
    refused(make(&f, 1, "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", half, 4), ONX_E_MALFORMED,
            "not a Unicode character");
}

static void test_value_npy__refuses(void **state)
{
    (void)state;
    npy f;
    refused(onx_str_make("", 0), ONX_E_MALFORMED, "not a NumPy array");
    refused(onx_str_of("\x93NUMPX\1"), ONX_E_MALFORMED, "not a NumPy array");
    refused(make(&f, 4, "{}", NULL, 0), ONX_E_MALFORMED, "format version");
    refused(make(&f, 0, "{}", NULL, 0), ONX_E_MALFORMED, "format version");
    refused(onx_str_make("\x93NUMPY\1\0\xff\xff", 10), ONX_E_MALFORMED, "cut short");
    refused(onx_str_make("\x93NUMPY\2\0\xff\xff\xff\xff", 12), ONX_E_MALFORMED, "cut short");
    static const struct {
        const char *header, *because;
        onx_status status;
    } cases[] = {
        { "", "not a dict", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False}", "lacks", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", "a key other than", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "twice", ONX_E_MALFORMED },
        { "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", "'key': value", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,)}", "neither True nor", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "text after its dict", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "'key': value", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "not a tuple", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "not a tuple", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "comma", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "number from 0", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", "comma", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "2^63", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,)}", "2^63", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "shape", ONX_E_MALFORMED },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,)}", "cut short", ONX_E_MALFORMED },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "shape", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}", "cut short", ONX_E_MALFORMED },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (17, 1)}", "cut short", ONX_E_MALFORMED },
        { "{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000,)}", "length 0", ONX_E_MALFORMED },
        { "{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': (1,)}", "length", ONX_E_MALFORMED },
        { "{'descr': '<U4611686018427387904', 'fortran_order': False, 'shape': (1,)}", "length", ONX_E_MALFORMED },
        { "{'descr': '|S9223372036854775807', 'fortran_order': False, 'shape': (3,)}", "shape", ONX_E_MALFORMED },
        { "{'descr': '|S1x', 'fortran_order': False, 'shape': (1,)}", "length", ONX_E_MALFORMED },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "not have this element type", ONX_E_UNSUPPORTED },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "not have this element type", ONX_E_UNSUPPORTED },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records", ONX_E_UNSUPPORTED },
        { "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (1,)}", "not a text", ONX_E_MALFORMED },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused_header(cases[i].header, cases[i].status, cases[i].because);
    char many[1024] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < 65; i++)
        strcat(many, "1,");
    strcat(many, ")}");
    refused_header(many, ONX_E_MALFORMED, "64 dimensions");
    /* A file may promise no more than the memory limit, either. */
    onx_limits limits = onx_ctx_limits(cx), small = limits;
    small.memory = 32;
    onx_ctx_set_limits(cx, small);
    char data[64] = { 0 };
    refused(make(&f, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (64,)}", data, 64), ONX_E_LIMIT, "limit");
    onx_ctx_set_limits(cx, limits);
}

/* ---- archives: made here, byte by byte ---- */

static uint32_t crc_of(const char *p, size_t len)
{
    uint32_t c = 0xffffffffu;
    while (len--) {
        c ^= (uint8_t)*p++;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static void put(char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (char)(i < 8 ? value >> (8 * i) : 0);
}

typedef struct zip {
    char bytes[8192];
    size_t len;
} zip;

/* One member per name, all with the same content; `fault` is the one thing that is wrong. */
typedef enum wrong { NOTHING, SUM, ENCRYPTED, METHOD, SIZE, PACKED, OFFSET, COUNT } wrong;

static onx_str make_zip(zip *z, const char *const *names, onx_str content, wrong fault)
{
    char *at = z->bytes;
    size_t offsets[8], n = 0;
    const uint32_t crc = crc_of(content.ptr, content.len) + (fault == SUM);
    const uint64_t flags = fault == ENCRYPTED, method = fault == METHOD ? 12 : 0,
                   size = content.len + (fault == SIZE ? 100000000 : 0), packed = content.len + (fault == PACKED);
    for (; names[n]; n++) {
        offsets[n] = (size_t)(at - z->bytes) + (fault == OFFSET ? 100000 : 0);
        put(&at, 0x04034b50, 4);
        put(&at, 20, 2);
        put(&at, flags, 2);
        put(&at, method, 2);
        put(&at, 0, 4);
        put(&at, crc, 4);
        put(&at, packed, 4);
        put(&at, size, 4);
        put(&at, strlen(names[n]), 2);
        put(&at, 0, 2);
        memcpy(at, names[n], strlen(names[n]));
        at += strlen(names[n]);
        memcpy(at, content.ptr, content.len);
        at += content.len;
    }
    const size_t start = (size_t)(at - z->bytes);
    for (size_t i = 0; i < n; i++) {
        put(&at, 0x02014b50, 4);
        put(&at, 20, 2);
        put(&at, 20, 2);
        put(&at, flags, 2);
        put(&at, method, 2);
        put(&at, 0, 4);
        put(&at, crc, 4);
        put(&at, packed, 4);
        put(&at, size, 4);
        put(&at, strlen(names[i]), 2);
        put(&at, 0, 2 + 2 + 2 + 2 + 4);
        put(&at, offsets[i], 4);
        memcpy(at, names[i], strlen(names[i]));
        at += strlen(names[i]);
    }
    const size_t end = (size_t)(at - z->bytes);
    put(&at, 0x06054b50, 4);
    put(&at, 0, 4);
    put(&at, n + (fault == COUNT ? 60000 : 0), 2);
    put(&at, n + (fault == COUNT ? 60000 : 0), 2);
    put(&at, end - start, 4);
    put(&at, start, 4);
    put(&at, 0, 2);
    z->len = (size_t)(at - z->bytes);
    return onx_str_make(z->bytes, z->len);
}

static onx_status read_zip(onx_str archive, const char *name, const char *because)
{
    onx_value *v;
    char text[512] = "";
    onx_diag_clear(cx);
    onx_status status = onx_value_from_npz(cx, archive, onx_str_of(name), &v);
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), text, sizeof text);
    if (status != ONX_OK && !*text)
        fail_msg("status %d without a diagnostic", (int)status);
    if (because && !strstr(text, because))
        fail_msg("status %d: %s, not: %s", (int)status, text, because);
    if (status == ONX_OK)
        assert_true(v->dtype == ONX_UINT8 && v->count == 3 && memcmp(v->data, "xyz", 3) == 0);
    onx_value_free(v);
    return status;
}

static void test_value_npz__members(void **state)
{
    (void)state;
    npy f;
    zip z;
    static const char *const one[] = { "arr_0.npy", NULL }, *const two[] = { "a.npy", "b.npy", NULL };
    const onx_str array = make(&f, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "xyz", 3);
#ifndef ONX_WITH_ZIP
    assert_int_equal(read_zip(make_zip(&z, one, array, NOTHING), "x", "needs libzip"), ONX_E_UNSUPPORTED);
    (void)two;
    print_message("archives are not tested: built without libzip\n");
    skip();
#else
    assert_int_equal(read_zip(make_zip(&z, one, array, NOTHING), "x", NULL), ONX_OK);
    assert_int_equal(read_zip(make_zip(&z, two, array, NOTHING), "b", NULL), ONX_OK);
    assert_int_equal(read_zip(make_zip(&z, two, array, NOTHING), "a.npy", NULL), ONX_OK);
    assert_int_equal(read_zip(make_zip(&z, two, array, NOTHING), "c", "named \"c\""), ONX_E_NOT_FOUND);
    assert_int_equal(read_zip(make_zip(&z, one, array, SUM), "x", "CRC"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(make_zip(&z, one, array, ENCRYPTED), "x", "encrypted"), ONX_E_UNSUPPORTED);
    assert_int_equal(read_zip(make_zip(&z, one, array, METHOD), "x", "method"), ONX_E_UNSUPPORTED);
    assert_int_equal(read_zip(make_zip(&z, one, array, SIZE), "x", "archive"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(make_zip(&z, one, array, PACKED), "x", "archive"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(make_zip(&z, one, array, OFFSET), "x", "archive"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(make_zip(&z, one, array, COUNT), "x", "archive"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(onx_str_make("", 0), "x", "archive"), ONX_E_MALFORMED);
    assert_int_equal(read_zip(onx_str_of("PK\3\4 and nothing else"), "x", "archive"), ONX_E_MALFORMED);
    /* Cut off anywhere, or any byte changed: an error that says so, or the array as it was. */
    const onx_str good = make_zip(&z, one, array, NOTHING);
    for (size_t n = 0; n < good.len; n++)
        assert_int_not_equal(read_zip(onx_str_make(good.ptr, n), "x", NULL), ONX_OK);
    for (size_t n = 0; n < good.len; n++) {
        z.bytes[n] = (char)(z.bytes[n] ^ 0x41);
        (void)read_zip(good, "x", NULL);
        z.bytes[n] = (char)(z.bytes[n] ^ 0x41);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_npy__writes_and_reads_every_type),
        cmocka_unit_test(test_value_npy__reads_orders_and_versions),
        cmocka_unit_test(test_value_npy__reads_texts),
        cmocka_unit_test(test_value_npy__refuses),
        cmocka_unit_test(test_value_npz__members),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
