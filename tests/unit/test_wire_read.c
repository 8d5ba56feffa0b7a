/* The wire reader, rule by rule: W-01 to W-32. Inputs are hexadecimal; spaces are ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/io.h>

typedef struct input {
    char *ptr; /* exactly as long as the input, so that ASan sees a read past it */
    size_t len;
} input;

static int digit(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static input bytes_of(const char *hex)
{
    size_t n = 0;
    char *p = malloc(strlen(hex) / 2 + 1);
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        p[n++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
        hex++;
    }
    p = realloc(p, n ? n : 1);
    return (input){ p, n };
}

/* Reads the input as a message; the document and its input are freed by done(). */
typedef struct run {
    onx_ctx *cx;
    onx_doc *doc;
    input in;
    onx_status status;
} run;

static run read_as(onx_kind kind, const char *hex, uint32_t flags)
{
    run r = { .cx = onx_ctx_new(NULL), .in = bytes_of(hex) };
    r.status = onx_read(r.cx, kind, onx_str_make(r.in.ptr, r.in.len), flags, 1, &r.doc);
    assert_true((r.status == ONX_OK) == (r.doc != NULL));
    return r;
}

static void done(run *r)
{
    onx_doc_free(r->doc);
    onx_ctx_free(r->cx);
    free(r->in.ptr);
}

static bool reported(const run *r, const char *rule, onx_severity severity)
{
    for (size_t i = 0; i < onx_diag_count(r->cx); i++) {
        const onx_diag *d = onx_diag_get(r->cx, i);
        if (d->rule && strcmp(d->rule, rule) == 0 && d->severity == severity)
            return true;
    }
    return false;
}

/* The message comes back as these bytes. */
static void writes(const run *r, const char *hex)
{
    input want = bytes_of(hex);
    onx_kind kind = onx_doc_kind(r->doc);
    onx_buffer out;
    assert_int_equal(onx_write(r->cx, kind, onx_doc_root(r->doc, kind), 0, &out), ONX_OK);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.ptr, want.ptr, want.len);
    onx_buffer_free(&out);
    free(want.ptr);
}

/* ---- what is malformed ---- */

static const struct {
    const char *rule, *hex;
    onx_kind kind;
    uint64_t byte; /* where it is reported */
} bad[] = {
    { "W-02", "08 0E 00 FF FF FF", ONX_KIND_MODEL, 2 }, /* W-01: nothing may follow the message */
    { "W-02", "08 0E 02 00", ONX_KIND_MODEL, 2 },
    { "W-02", "3A 02 02 00", ONX_KIND_MODEL, 2 },       /* nested */
    { "W-03", "88 80 80 80 80 00", ONX_KIND_MODEL, 0 }, /* six bytes */
    { "W-03", "88 80 80 80 70 01", ONX_KIND_MODEL, 0 }, /* bits above 31 */
    { "W-04", "08 80 80 80 80 80 80 80 80 80 80 01", ONX_KIND_MODEL, 1 },
    { "W-05", "08 8E 80 80 80 80 80 80 80 80 7E", ONX_KIND_MODEL, 1 },
    { "W-07", "08 80", ONX_KIND_MODEL, 1 },
    { "W-07", "08", ONX_KIND_MODEL, 1 },
    { "W-07", "15 00 00", ONX_KIND_ATTRIBUTE, 1 },
    { "W-07", "80", ONX_KIND_MODEL, 0 },
    { "W-08", "0E", ONX_KIND_MODEL, 0 },
    { "W-08", "9F 06", ONX_KIND_MODEL, 0 },       /* of an unknown field */
    { "W-09", "9B 06 94 06", ONX_KIND_MODEL, 2 }, /* 99 opened, 98 closed */
    { "W-09", "9B 06", ONX_KIND_MODEL, 2 },       /* never closed */
    { "W-09", "9C 06", ONX_KIND_MODEL, 0 },       /* closed without having begun */
    { "W-09", "2C", ONX_KIND_TENSOR, 0 },
    { "W-10", "3A 03 12 7F 61", ONX_KIND_MODEL, 3 }, /* a name longer than its graph */
    { "W-10", "12 7F 61 62 63", ONX_KIND_MODEL, 1 },
    { "W-11", "12 80 80 80 80 08 61 62 63", ONX_KIND_MODEL, 1 },
    { "W-11", "12 FF FF FF FF FF FF FF FF FF 01 61", ONX_KIND_MODEL, 1 },
    { "W-13", "22 07 00 00 00 00 00 00 00", ONX_KIND_TENSOR, 2 },
    { "W-13", "3A 02 01 80", ONX_KIND_TENSOR, 2 },       /* varint cut by the end of its block */
    { "W-15", "0A 01 61", ONX_KIND_MODEL, 0 },           /* ir_version as a string */
    { "W-15", "38 01", ONX_KIND_MODEL, 0 },              /* graph as a varint */
    { "W-22", "10 81 80 80 80 10", ONX_KIND_TENSOR, 1 }, /* data_type 2^32 + 1 */
    { "W-22", "2A 06 01 81 80 80 80 10", ONX_KIND_TENSOR, 3 },
};

static void test_wire_read__malformed_input_is_refused_with_rule_and_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *rule = strcmp(bad[i].rule, "W-11") == 0 ? "W-10" : bad[i].rule; /* one check serves both */
        run r = read_as(bad[i].kind, bad[i].hex, 0);
        const onx_diag *d = onx_diag_get(r.cx, onx_diag_count(r.cx) - 1); /* notes may come before the error */
        if (r.status != ONX_E_MALFORMED || !d || !d->rule || strcmp(d->rule, rule) != 0 || d->where.byte != bad[i].byte)
            fail_msg("%s: status %d, rule %s, byte %llu", bad[i].hex, (int)r.status, d && d->rule ? d->rule : "none",
                     d ? (unsigned long long)d->where.byte : 0ull);
        done(&r);
    }
}

/* Every prefix of a good model is either refused or read, never read past. */
static void test_wire_read__truncation_is_safe_everywhere(void **state)
{
    (void)state;
    const char *hex =
        "08 0A 12 03 61 62 63 3A 2A 0A 18 0A 01 78 12 01 79 22 04 52 65 6C 75 2A 08 0A 01 61 18 05 A0 01 02 12 01 67"
        "2A 0B 08 02 10 01 22 08 00 00 80 3F 00 00 00 40 42 04 10 15 0A 00";
    input all = bytes_of(hex);
    for (size_t n = 0; n <= all.len; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, all.ptr, n);
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc;
        onx_status status = onx_read(cx, ONX_KIND_MODEL, onx_str_make(copy, n), 0, 1, &doc);
        assert_true(status == ONX_OK || (status == ONX_E_MALFORMED && onx_diag_count(cx) == 1));
        onx_doc_free(doc);
        onx_ctx_free(cx);
        free(copy);
    }
    free(all.ptr);
}

/* ---- what is accepted ---- */

static void test_wire_read__w06_padded_varints_are_written_short(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "08 8E 80 00", 0);
    assert_int_equal(onx_doc_model(r.doc)->ir_version, 14);
    writes(&r, "08 0E");
    done(&r);
}

static void test_wire_read__w12_packed_unpacked_and_mixed(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_TENSOR, "0A 01 02 08 03 0A 00", 0);
    onx_tensor *t = onx_doc_root(r.doc, ONX_KIND_TENSOR);
    assert_int_equal(t->dims_count, 2);
    assert_int_equal(t->dims[0], 2);
    assert_int_equal(t->dims[1], 3);
    writes(&r, "08 02 08 03"); /* W-14: dims are not packed */
    done(&r);
    /* float_data one by one, then a block, then one again: written as one block */
    r = read_as(ONX_KIND_TENSOR, "25 00 00 80 3F 22 08 00 00 00 40 00 00 40 40 25 00 00 80 40", 0);
    t = onx_doc_root(r.doc, ONX_KIND_TENSOR);
    assert_int_equal(t->float_data_count, 4);
    writes(&r, "22 10 00 00 80 3F 00 00 00 40 00 00 40 40 00 00 80 40");
    done(&r);
    /* two blocks: the first is borrowed, the second makes a copy */
    r = read_as(ONX_KIND_TENSOR, "22 04 00 00 80 3F 22 04 00 00 00 40", 0);
    writes(&r, "22 08 00 00 80 3F 00 00 00 40");
    done(&r);
    r = read_as(ONX_KIND_TENSOR, "3A 02 01 02 38 03", 0);
    writes(&r, "3A 03 01 02 03");
    done(&r);
}

static void test_wire_read__w15_lenient_keeps_a_mistyped_field(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "0A 01 61 28 03", ONX_READ_LENIENT);
    assert_int_equal(r.status, ONX_OK);
    assert_false(ONX_HAS(model, onx_doc_model(r.doc), ir_version));
    assert_true(reported(&r, "W-15", ONX_WARNING));
    writes(&r, "28 03 0A 01 61");
    done(&r);
}

static void test_wire_read__w16_unknown_fields_survive(void **state)
{
    (void)state;
    /* number 99 with wire types 0, 1, 2, 5 and as a group (W-09), before a known field */
    run r = read_as(ONX_KIND_MODEL,
                    "98 06 05 99 06 01 02 03 04 05 06 07 08 9A 06 01 61 9D 06 01 02 03 04 9B 06 08 01 9C 06 08 0E", 0);
    assert_int_equal(r.status, ONX_OK);
    assert_true(reported(&r, "W-16", ONX_NOTE));
    assert_true(reported(&r, "W-09", ONX_NOTE));
    writes(&r, "08 0E 98 06 05 99 06 01 02 03 04 05 06 07 08 9A 06 01 61 9D 06 01 02 03 04 9B 06 08 01 9C 06");
    done(&r);
    /* in a node and in an attribute, whose rare members share the place of unknown ones */
    r = read_as(ONX_KIND_NODE, "98 06 05 2A 07 0A 01 61 98 06 05 18 01", 0);
    assert_int_equal(r.status, ONX_E_MALFORMED);
    done(&r);
    r = read_as(ONX_KIND_NODE, "98 06 05 2A 08 0A 01 61 98 06 05 18 01", 0);
    writes(&r, "2A 08 0A 01 61 18 01 98 06 05 98 06 05");
    done(&r);
}

static void test_wire_read__w17_last_scalar_wins(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "08 0E 08 63 12 01 61 12 01 62", 0);
    assert_int_equal(onx_doc_model(r.doc)->ir_version, 99);
    assert_true(reported(&r, "W-17", ONX_WARNING));
    writes(&r, "08 63 12 01 62");
    done(&r);
}

static void test_wire_read__w18_messages_are_merged(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "3A 05 0A 00 12 01 67 3A 05 0A 00 12 01 68", 0);
    onx_model *m = onx_doc_model(r.doc);
    assert_int_equal(m->graph->node_count, 2);
    assert_true(onx_str_is(onx_view(m->graph->name), "h"));
    assert_true(reported(&r, "W-18", ONX_WARNING));
    writes(&r, "3A 07 0A 00 0A 00 12 01 68");
    done(&r);
}

static void test_wire_read__w19_last_oneof_member_wins(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_TYPE, "0A 02 08 01 22 00", 0);
    onx_type *t = onx_doc_root(r.doc, ONX_KIND_TYPE);
    assert_true(ONX_HAS(type, t, sequence_type));
    assert_false(ONX_HAS(type, t, tensor_type));
    assert_true(reported(&r, "W-19", ONX_WARNING));
    writes(&r, "22 00");
    done(&r);
    /* the same member twice is merged */
    r = read_as(ONX_KIND_TYPE, "0A 02 08 01 0A 02 12 00", 0);
    writes(&r, "0A 04 08 01 12 00");
    done(&r);
    r = read_as(ONX_KIND_DIMENSION, "12 01 4E 08 05", 0);
    onx_dimension *d = onx_doc_root(r.doc, ONX_KIND_DIMENSION);
    assert_true(ONX_HAS(dimension, d, dim_value) && d->dim_value == 5);
    writes(&r, "08 05");
    done(&r);
}

static void test_wire_read__w20_presence_is_kept(void **state)
{
    (void)state;
    static const char *const shapes[] = { "08 01", "08 01 12 00", "08 01 12 02 0A 00", "12 00", "" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        run r = read_as(ONX_KIND_TYPE_TENSOR, shapes[i], 0);
        onx_type_tensor *t = onx_doc_root(r.doc, ONX_KIND_TYPE_TENSOR);
        assert_true(ONX_HAS(type_tensor, t, shape) == (strstr(shapes[i], "12") != NULL));
        writes(&r, shapes[i]);
        done(&r);
    }
    run r = read_as(ONX_KIND_MODEL, "08 00 12 00", 0); /* defaults that are present */
    writes(&r, "08 00 12 00");
    done(&r);
}

static void test_wire_read__w21_strings_that_are_not_utf8(void **state)
{
    (void)state;
    static const char *const texts[] = { "12 02 FF FE", "12 02 C0 80", "12 03 ED A0 80" };
    for (size_t i = 0; i < 3; i++) {
        run r = read_as(ONX_KIND_MODEL, texts[i], 0);
        assert_int_equal(r.status, ONX_OK);
        assert_true(reported(&r, "W-21", ONX_WARNING));
        writes(&r, texts[i]);
        done(&r);
    }
    run r = read_as(ONX_KIND_MODEL, "12 04 F0 9F 98 80", 0);
    assert_int_equal(onx_diag_count(r.cx), 0);
    done(&r);
    r = read_as(ONX_KIND_ATTRIBUTE, "22 01 FF", 0); /* a field of bytes */
    assert_int_equal(onx_diag_count(r.cx), 0);
    done(&r);
}

static void test_wire_read__w23_numbers_outside_an_enumeration_are_kept(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_ATTRIBUTE, "0A 01 61 A0 01 4D", 0);
    assert_int_equal(((onx_attribute *)onx_doc_root(r.doc, ONX_KIND_ATTRIBUTE))->type, 77);
    writes(&r, "0A 01 61 A0 01 4D");
    done(&r);
}

static void test_wire_read__w24_negative_numbers(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_TENSOR, "2A 0F FF FF FF FF 0F FF FF FF FF FF FF FF FF FF 01", 0);
    onx_tensor *t = onx_doc_root(r.doc, ONX_KIND_TENSOR);
    assert_int_equal(t->int32_data_count, 2);
    assert_int_equal(t->int32_data[0], -1);
    assert_int_equal(t->int32_data[1], -1);
    writes(&r, "2A 14 FF FF FF FF FF FF FF FF FF 01 FF FF FF FF FF FF FF FF FF 01");
    done(&r);
    r = read_as(ONX_KIND_TENSOR, "08 01", 0); /* not zigzag */
    assert_int_equal(((onx_tensor *)onx_doc_root(r.doc, ONX_KIND_TENSOR))->dims[0], 1);
    done(&r);
}

/* A type of `depth` nested sequences: every level is two messages. */
static run read_nested(unsigned depth, uint32_t limit)
{
    size_t room = (size_t)depth * 20 + 16, at = room;
    unsigned char *buf = malloc(room);
    for (unsigned i = 0; i < depth; i++) {
        for (int k = 0; k < 2; k++) { /* elem_type of a sequence is field 1, sequence_type of a type field 4 */
            size_t len = room - at, v = len;
            unsigned char head[10];
            size_t n = 0;
            do {
                head[n++] = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
                v >>= 7;
            } while (v);
            at -= n;
            memcpy(buf + at, head, n);
            buf[--at] = k == 0 ? 0x0A : 0x22;
        }
    }
    run r = { .cx = onx_ctx_new(NULL) };
    onx_limits limits = onx_ctx_limits(r.cx);
    limits.depth = limit;
    onx_ctx_set_limits(r.cx, limits);
    r.in.ptr = (char *)buf;
    r.status = onx_read(r.cx, ONX_KIND_TYPE, onx_str_make((char *)buf + at, room - at), 0, 1, &r.doc);
    return r;
}

static void test_wire_read__w25_nesting_is_bounded(void **state)
{
    (void)state;
    run r = read_nested(50, 100);
    assert_int_equal(r.status, ONX_OK);
    done(&r);
    r = read_nested(51, 100);
    assert_int_equal(r.status, ONX_E_LIMIT);
    assert_true(reported(&r, "W-25", ONX_ERROR));
    done(&r);
    r = read_nested(51, 102);
    assert_int_equal(r.status, ONX_OK);
    done(&r);
    r = read_nested(100000, UINT32_MAX); /* more than the stack would bear: the limit is capped */
    assert_int_equal(r.status, ONX_E_LIMIT);
    done(&r);
    char groups[2 * 2 * 200 + 1]; /* unknown groups count too */
    for (int i = 0; i < 200; i++)
        memcpy(groups + 4 * i, "9B06", 5);
    r = read_as(ONX_KIND_MODEL, groups, 0);
    assert_int_equal(r.status, ONX_E_LIMIT);
    done(&r);
}

static void test_wire_read__w27_fields_in_any_order(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "42 02 10 15 3A 00 08 0A", 0);
    writes(&r, "08 0A 3A 00 42 02 10 15");
    done(&r);
}

static void test_wire_read__w28_reserved_numbers_are_reported(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_FUNCTION, "10 01 0A 01 66", 0);
    assert_true(reported(&r, "W-28", ONX_NOTE));
    writes(&r, "0A 01 66 10 01");
    done(&r);
}

static void test_wire_read__w29_w30_missing_fields_are_no_matter_of_reading(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "", 0);
    assert_int_equal(r.status, ONX_OK);
    assert_null(onx_doc_model(r.doc)->graph);
    writes(&r, "");
    done(&r);
    r = read_as(ONX_KIND_MODEL, "3A 02 0A 00", 0);
    assert_int_equal(onx_doc_model(r.doc)->graph->node_count, 1);
    writes(&r, "3A 02 0A 00");
    done(&r);
}

static void test_wire_read__w31_zero_bytes_survive(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "12 03 61 00 62", 0);
    onx_str name = onx_view(onx_doc_model(r.doc)->producer_name);
    assert_int_equal(name.len, 3);
    assert_false(onx_str_is(name, "a"));
    writes(&r, "12 03 61 00 62");
    done(&r);
}

static void test_wire_read__w32_memory_is_limited(void **state)
{
    (void)state;
    enum { NODES = 100000 };
    char *p = malloc(2 * NODES);
    for (int i = 0; i < NODES; i++)
        memcpy(p + 2 * i, "\x0A\x00", 2);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 1 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc;
    assert_int_equal(onx_read(cx, ONX_KIND_GRAPH, onx_str_make(p, 2 * NODES), 0, 1, &doc), ONX_E_MEMORY);
    assert_int_equal(onx_diag_get(cx, 0)->status, ONX_E_LIMIT);
    limits.memory = 1 << 30;
    onx_ctx_set_limits(cx, limits);
    assert_int_equal(onx_read(cx, ONX_KIND_GRAPH, onx_str_make(p, 2 * NODES), 0, 1, &doc), ONX_OK);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(p);
}

/* ---- attributes: one slot, and what happens to several values ---- */

static void test_wire_read__several_values_of_one_attribute_are_all_kept(void **state)
{
    (void)state;
    const char *hex = "0A 01 61 15 00 00 80 3F 18 07 22 01 73 3D 00 00 00 40 40 01 40 02 4A 01 74 A0 01 02";
    run r = read_as(ONX_KIND_ATTRIBUTE, hex, 0);
    onx_attribute *a = onx_doc_root(r.doc, ONX_KIND_ATTRIBUTE);
    uint32_t n;
    assert_true(*(const float *)onx_attribute_value(a, ONX_SLOT_F, &n) == 1.0f);
    assert_int_equal(*(const int64_t *)onx_attribute_value(a, ONX_SLOT_I, &n), 7);
    const int64_t *ints = onx_attribute_value(a, ONX_SLOT_INTS, &n);
    assert_int_equal(n, 2);
    assert_int_equal(ints[1], 2);
    assert_null(onx_attribute_value(a, ONX_SLOT_T, &n));
    writes(&r, hex);
    void *copy;
    assert_int_equal(onx_message_copy(onx_doc_arena(r.doc), ONX_KIND_ATTRIBUTE, a, &copy), ONX_OK);
    assert_true(onx_message_equal(ONX_KIND_ATTRIBUTE, a, copy));
    done(&r);
}

/* ---- copies, and several threads ---- */

/* Types with the same bytes are read once and copied: each value has its own, and what was said of one is said of all.
 */
#define ALIKE_SHAPE    "0a02 0802 0a02 0803"
#define ALIKE_TYPE     "0a0c 0801 1208" ALIKE_SHAPE
#define ALIKE_VALUE(n) "6a13 0a01" n "120e" ALIKE_TYPE

static const onx_dimension *dim_of(const onx_graph *g, uint32_t value, uint32_t axis)
{
    return g->value_info[value]->type->tensor_type->shape->dim[axis];
}

static void test_wire_read__types_that_are_alike_are_separate(void **state)
{
    (void)state;
    const char *const hex = ALIKE_VALUE("61") ALIKE_VALUE("62") ALIKE_VALUE("63");
    for (uint32_t flags = 0; flags <= ONX_READ_COPY; flags += ONX_READ_COPY) {
        run r = read_as(ONX_KIND_GRAPH, hex, flags);
        onx_graph *g = onx_doc_root(r.doc, ONX_KIND_GRAPH);
        assert_int_equal(g->value_info_count, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(g->value_info[i]->type->tensor_type->elem_type, 1);
            assert_int_equal(g->value_info[i]->type->tensor_type->shape->dim_count, 2);
            assert_int_equal(dim_of(g, i, 0)->dim_value, 2);
            assert_int_equal(dim_of(g, i, 1)->dim_value, 3);
        }
        writes(&r, hex);
        for (uint32_t i = 0; i < 3; i++) {
            g->value_info[i]->type->tensor_type->elem_type = (int32_t)i + 1;
            g->value_info[i]->type->tensor_type->shape->dim[1]->dim_value = 4 + i;
        }
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(g->value_info[i]->type->tensor_type->elem_type, i + 1);
            assert_int_equal(dim_of(g, i, 0)->dim_value, 2);
            assert_int_equal(dim_of(g, i, 1)->dim_value, 4 + i);
        }
        done(&r);
    }
}

static void test_wire_read__types_that_are_alike_are_reported_alike(void **state)
{
    (void)state;
    /* with an unknown field 100 in each shape */
    char hex[400];
    const char *const good = "6a16 0a01 61 1211 0a0f 0801 120b " ALIKE_SHAPE "a006 01";
    (void)snprintf(hex, sizeof hex, "%s %s %s", good, good, good);
    run r = read_as(ONX_KIND_GRAPH, hex, 0);
    assert_int_equal(r.status, ONX_OK);
    assert_int_equal(onx_diag_count(r.cx), 3);
    for (size_t i = 0; i < 3; i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "value_info[%zu].type.tensor_type.shape", i);
        const onx_str where = onx_diag_get(r.cx, i)->where.path;
        assert_true(where.len == strlen(path) && memcmp(where.ptr, path, where.len) == 0);
    }
    writes(&r, hex);
    done(&r);
}

static void test_wire_read__types_that_are_merged_are_not_copied(void **state)
{
    (void)state;
    /* The second value gives its type twice, the second time with another element type; the others have the first. */
    run r =
        read_as(ONX_KIND_GRAPH, ALIKE_VALUE("61") "6a19 0a01 62 120e" ALIKE_TYPE "1204 0a02 0807" ALIKE_VALUE("63"), 0);
    assert_int_equal(r.status, ONX_OK);
    const onx_graph *g = onx_doc_root(r.doc, ONX_KIND_GRAPH);
    assert_int_equal(g->value_info[0]->type->tensor_type->elem_type, 1);
    assert_int_equal(g->value_info[1]->type->tensor_type->elem_type, 7);
    assert_int_equal(g->value_info[2]->type->tensor_type->elem_type, 1);
    done(&r);
    r = read_as(ONX_KIND_GRAPH, "6a19 0a01 62 120e" ALIKE_TYPE "1204 0a02 0807" ALIKE_VALUE("63") ALIKE_VALUE("64"), 0);
    g = onx_doc_root(r.doc, ONX_KIND_GRAPH);
    assert_int_equal(g->value_info[0]->type->tensor_type->elem_type, 7);
    assert_int_equal(g->value_info[1]->type->tensor_type->elem_type, 1);
    assert_int_equal(g->value_info[2]->type->tensor_type->elem_type, 1);
    done(&r);
}

static void test_wire_read__types_that_are_alike_are_bounded_alike(void **state)
{
    (void)state;
    /* a tensor type, and the same bytes again inside a sequence type: two levels further down */
    const char *const hex = ALIKE_VALUE("61") ALIKE_VALUE("62") "6a17 0a01 63 1212 2210 0a0e" ALIKE_TYPE;
    const input in = bytes_of(hex);
    for (uint32_t limit = 1; limit < 9; limit++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_limits limits = onx_ctx_limits(cx);
        onx_doc *doc = NULL;
        limits.depth = limit;
        onx_ctx_set_limits(cx, limits);
        /* graph, value_info, type, sequence_type, elem_type, tensor_type, shape, dim: seven levels below the first */
        assert_int_equal(onx_read(cx, ONX_KIND_GRAPH, onx_str_make(in.ptr, in.len), 0, 1, &doc),
                         limit < 7 ? ONX_E_LIMIT : ONX_OK);
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
    free(in.ptr);
}

static void test_wire_read__copy_outlives_its_input(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "12 03 61 62 63 3A 0E 2A 0C 22 04 00 00 80 3F 4A 04 01 02 03 04 98 06 05",
                    ONX_READ_COPY);
    assert_int_equal(r.status, ONX_OK);
    memset(r.in.ptr, 0xAA, r.in.len);
    writes(&r, "12 03 61 62 63 3A 0E 2A 0C 22 04 00 00 80 3F 4A 04 01 02 03 04 98 06 05");
    done(&r);
}

/* A graph of many nodes, of about 1 MB; `broken` puts a malformed node at that position. */
static onx_buffer many_nodes(onx_ctx *cx, int count)
{
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 21, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    for (int i = 0; i < count; i++) {
        char in[40], out[40];
        snprintf(in, sizeof in, "value_%d bias_%d", i, i % 7);
        snprintf(out, sizeof out, "value_%d", i + 1);
        onx_node *node = onx_graph_add_node(arena, onx_doc_model(doc)->graph, "Add", in, out);
        assert_non_null(node);
        assert_non_null(onx_node_add_int(arena, node, "axis", i));
    }
    onx_buffer out;
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &out), ONX_OK);
    onx_doc_free(doc);
    return out;
}

static void test_wire_read__threads_give_the_same_model(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_buffer bytes = many_nodes(cx, 20000);
    onx_str in = onx_str_make(bytes.ptr, bytes.len);
    onx_doc *one, *many;
    assert_int_equal(onx_read(cx, ONX_KIND_MODEL, in, 0, 1, &one), ONX_OK);
    for (unsigned threads = 2; threads < 6; threads++) {
        assert_int_equal(onx_read(cx, ONX_KIND_MODEL, in, 0, threads, &many), ONX_OK);
        assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(one), onx_doc_model(many)));
        onx_buffer again;
        assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(many), in.len, &again), ONX_OK);
        assert_int_equal(again.len, in.len);
        assert_memory_equal(again.ptr, in.ptr, in.len);
        onx_buffer_free(&again);
        onx_doc_free(many);
    }
    onx_doc_free(one);
    onx_buffer_free(&bytes);
    onx_ctx_free(cx);
}

static void test_wire_read__threads_report_the_same_error(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_buffer bytes = many_nodes(cx, 20000);
    for (size_t at = bytes.len / 3; at < bytes.len; at += bytes.len / 3) {
        char *broken = malloc(bytes.len);
        memcpy(broken, bytes.ptr, bytes.len);
        char *op = memmem(broken + at, bytes.len - at,
                          "\x22\x03"
                          "Add",
                          5);
        if (op)
            *op = 0x26; /* wire type 6 */
        char first[200] = "", other[200];
        for (unsigned threads = 1; op && threads < 5; threads++) {
            onx_diag_clear(cx);
            onx_doc *doc;
            assert_int_equal(onx_read(cx, ONX_KIND_MODEL, onx_str_make(broken, bytes.len), 0, threads, &doc),
                             ONX_E_MALFORMED);
            assert_int_equal(onx_diag_count(cx), 1);
            onx_diag_format(onx_diag_get(cx, 0), threads == 1 ? first : other, sizeof first);
            if (threads > 1)
                assert_string_equal(first, other);
        }
        free(broken);
    }
    onx_buffer_free(&bytes);
    onx_ctx_free(cx);
}

static void test_wire_read__path_says_where(void **state)
{
    (void)state;
    run r = read_as(ONX_KIND_MODEL, "3A 0A 0A 00 0A 06 2A 00 2A 02 0E 00", 0);
    const onx_diag *d = onx_diag_get(r.cx, 0);
    assert_true(onx_str_is(d->where.path, "graph.node[1].attribute[1].name"));
    assert_int_equal(d->where.byte, 10);
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_read__malformed_input_is_refused_with_rule_and_place),
        cmocka_unit_test(test_wire_read__truncation_is_safe_everywhere),
        cmocka_unit_test(test_wire_read__w06_padded_varints_are_written_short),
        cmocka_unit_test(test_wire_read__w12_packed_unpacked_and_mixed),
        cmocka_unit_test(test_wire_read__w15_lenient_keeps_a_mistyped_field),
        cmocka_unit_test(test_wire_read__w16_unknown_fields_survive),
        cmocka_unit_test(test_wire_read__w17_last_scalar_wins),
        cmocka_unit_test(test_wire_read__w18_messages_are_merged),
        cmocka_unit_test(test_wire_read__w19_last_oneof_member_wins),
        cmocka_unit_test(test_wire_read__w20_presence_is_kept),
        cmocka_unit_test(test_wire_read__w21_strings_that_are_not_utf8),
        cmocka_unit_test(test_wire_read__w23_numbers_outside_an_enumeration_are_kept),
        cmocka_unit_test(test_wire_read__w24_negative_numbers),
        cmocka_unit_test(test_wire_read__w25_nesting_is_bounded),
        cmocka_unit_test(test_wire_read__w27_fields_in_any_order),
        cmocka_unit_test(test_wire_read__w28_reserved_numbers_are_reported),
        cmocka_unit_test(test_wire_read__w29_w30_missing_fields_are_no_matter_of_reading),
        cmocka_unit_test(test_wire_read__w31_zero_bytes_survive),
        cmocka_unit_test(test_wire_read__w32_memory_is_limited),
        cmocka_unit_test(test_wire_read__several_values_of_one_attribute_are_all_kept),
        cmocka_unit_test(test_wire_read__types_that_are_alike_are_separate),
        cmocka_unit_test(test_wire_read__types_that_are_alike_are_reported_alike),
        cmocka_unit_test(test_wire_read__types_that_are_merged_are_not_copied),
        cmocka_unit_test(test_wire_read__types_that_are_alike_are_bounded_alike),
        cmocka_unit_test(test_wire_read__copy_outlives_its_input),
        cmocka_unit_test(test_wire_read__threads_give_the_same_model),
        cmocka_unit_test(test_wire_read__threads_report_the_same_error),
        cmocka_unit_test(test_wire_read__path_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
