/* test_text_random.c - random messages made from the field tables, valid and contradictory ones: printed text parses to
 * the same message, printing and formatting are idempotent, and all comments are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "cases.h"
#include "text_normal.h"

enum { ROUNDS = 40000, DEPTH = 7, FIELDS_MAX = 64 };

static uint64_t seed;

static uint32_t below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static bool chance(uint32_t percent)
{
    return below(100) < percent;
}

/* ---- the wire form of a random message ---- */

static void put_varint(cases_buffer *b, uint64_t v)
{
    char c;
    for (; v > 127; v >>= 7) {
        c = (char)(v | 128);
        cases_add(b, &c, 1);
    }
    c = (char)v;
    cases_add(b, &c, 1);
}

static void put_tag(cases_buffer *b, uint32_t number, unsigned wire)
{
    put_varint(b, (uint64_t)number << 3 | wire);
}

static void put_bytes(cases_buffer *b, uint32_t number, const char *bytes, size_t len)
{
    put_tag(b, number, 2);
    put_varint(b, len);
    cases_add(b, bytes, len);
}

static void put_int(cases_buffer *b, uint32_t number, int64_t value)
{
    put_tag(b, number, 0);
    put_varint(b, (uint64_t)value);
}

/* Identifiers for the most part; else what has to be quoted, escaped, or could be taken for something else. */
static const char *any_string(size_t *len)
{
    static const char *const plain[] = { "x", "y", "N", "a_1", "_", "Conv", "conv1" };
    static const char *const odd[] = { "",
                                       " ",
                                       "0",
                                       "a b",
                                       "a.b",
                                       ".",
                                       "a\"b",
                                       "\\",
                                       "\\n",
                                       "\n",
                                       "\r\n",
                                       "#",
                                       "#@ node.name: \"q\"",
                                       "{",
                                       "}>)]",
                                       "=>",
                                       "seq",
                                       "float",
                                       "tensor",
                                       "opaque",
                                       "inf",
                                       "NaN",
                                       "inf1",
                                       "domain",
                                       "graph",
                                       "none",
                                       "\xc3\xa9",
                                       "\xe6\x97\xa5\xe6\x9c\xac",
                                       "\x01\x7f",
                                       "ai.onnx.ml",
                                       "a..b",
                                       "x-y",
                                       "location" };
    const char *s = chance(60) ? plain[below(sizeof plain / sizeof *plain)] : odd[below(sizeof odd / sizeof *odd)];
    *len = strlen(s);
    return s;
}

static int64_t any_int(void)
{
    static const int64_t edges[] = { 0, 1, -1, 2, 7, 127, 128, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN };
    return chance(50) ? (int64_t)below(30) : edges[below(sizeof edges / sizeof *edges)];
}

static uint64_t any_float_bits(bool wide)
{
    static const uint32_t edges[] = { 0,          0x80000000, 0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000,
                                      0xffc00000, 0x7f800001, 0xffc12345, 1,          0x7f7fffff, 0x3dcccccd };
    uint32_t bits = chance(70) ? edges[below(sizeof edges / sizeof *edges)] : below(UINT32_MAX);
    return wide ? (uint64_t)bits << 32 | (chance(50) ? below(UINT32_MAX) : 0) : bits;
}

static unsigned seen[ONX_KIND_COUNT][FIELDS_MAX];
static void put_message(cases_buffer *b, const onxi_message_table *table, int depth);

static void put_value(cases_buffer *b, const onxi_field *field, int depth)
{
    uint64_t bits;
    size_t len;
    const char *text;
    switch (field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE:
        bits = any_float_bits(field->type == ONXI_DOUBLE);
        put_tag(b, field->number, field->type == ONXI_DOUBLE ? 1 : 5);
        cases_add(b, (const char *)&bits, field->type == ONXI_DOUBLE ? 8 : 4);
        break;
    case ONXI_STRING:
    case ONXI_BYTES:
        text = any_string(&len);
        if (field->type == ONXI_BYTES && chance(20)) {
            text = "\0\xff\x80";
            len = 3;
        }
        put_bytes(b, field->number, text, len);
        break;
    case ONXI_MESSAGE: {
        cases_buffer inner = { NULL, 0 };
        cases_add(&inner, "", 0);
        put_message(&inner, field->message, depth - 1);
        put_bytes(b, field->number, inner.ptr, inner.len);
        free(inner.ptr);
        break;
    }
    case ONXI_INT32:
    case ONXI_ENUM:
        put_int(b, field->number, chance(90) ? (int64_t)below(28) : (int32_t)any_int());
        break;
    default:
        put_int(b, field->number, any_int());
        break;
    }
}

static void put_field(cases_buffer *b, const onxi_message_table *table, uint32_t number, uint32_t count, int depth)
{
    const onxi_field *field = onxi_field_find(table, number);
    if (!field || (field->type == ONXI_MESSAGE && depth <= 0))
        return;
    for (uint32_t i = 0; i < count; i++)
        put_value(b, field, depth);
    if (count)
        seen[table->kind][field - table->fields]++;
}

/* Every field at random: most of these messages contradict themselves. */
static void put_anything(cases_buffer *b, const onxi_message_table *table, int depth)
{
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        bool list = (field->flags & ONXI_REPEATED) != 0;
        if (chance(field->type == ONXI_MESSAGE ? 30 : 45))
            put_field(b, table, field->number, list ? below(3) : 1, depth);
    }
}

/* A tensor whose data fit its type and shape, in one of the two forms. */
static void put_sound_tensor(cases_buffer *b)
{
    /* data_type, field of the typed data, literals for an element, elements in an entry, bytes of 8 raw elements, mask
     */
    static const uint32_t rows[][6] = { { 1, 4, 1, 1, 32, 0 },   { 2, 5, 1, 1, 8, 255 },    { 3, 5, 1, 1, 8, 127 },
                                        { 4, 5, 1, 1, 16, 255 }, { 6, 5, 1, 1, 32, 65535 }, { 7, 7, 1, 1, 64, 65535 },
                                        { 8, 6, 1, 1, 0, 0 },    { 9, 5, 1, 1, 8, 1 },      { 10, 5, 1, 1, 16, 65535 },
                                        { 11, 10, 1, 1, 64, 0 }, { 12, 11, 1, 1, 32, 255 }, { 13, 11, 1, 1, 64, 65535 },
                                        { 14, 4, 2, 1, 64, 0 },  { 15, 10, 2, 1, 128, 0 },  { 16, 5, 1, 1, 16, 65535 },
                                        { 17, 5, 1, 1, 8, 255 }, { 20, 5, 1, 1, 8, 255 },   { 21, 5, 1, 2, 4, 15 },
                                        { 22, 5, 1, 2, 4, 15 },  { 23, 5, 1, 2, 4, 15 },    { 24, 5, 1, 1, 8, 255 },
                                        { 25, 5, 1, 4, 2, 3 },   { 26, 5, 1, 4, 2, 3 } };
    const uint32_t *row = rows[below(sizeof rows / sizeof *rows)];
    const onxi_message_table *table = onxi_messages[ONX_KIND_TENSOR];
    uint32_t elements = 1, raw_bytes = row[4];
    for (uint32_t rank = below(3); rank > 0; rank--) {
        uint32_t dim = below(5);
        put_int(b, 1, dim);
        elements *= dim;
    }
    put_int(b, 2, row[0]);
    if (chance(60))
        put_field(b, table, 8, 1, 0);
    if (raw_bytes && chance(40)) {
        char raw[512];
        for (size_t i = 0; i < sizeof raw; i++)
            raw[i] = (char)(row[5] == 1 ? below(2) : below(256) & (row[3] > 1 ? row[5] : 255u));
        put_bytes(b, 9, raw, ((size_t)elements * raw_bytes + 7) / 8);
    } else {
        for (uint32_t i = 0; i < (elements * row[2] + row[3] - 1) / row[3]; i++)
            if (row[1] == 5 || row[1] == 7 || row[1] == 11)
                put_int(b, row[1], below(row[5] + 1));
            else
                put_field(b, table, row[1], 1, 0);
    }
    if (chance(10))
        put_field(b, table, 12, 1, 0); /* doc_string */
}

/* One value, and the type that goes with it. */
static void put_sound_attribute(cases_buffer *b, int depth)
{
    static const uint32_t rows[][2] = { { 1, 2 },   { 2, 3 },   { 3, 4 },   { 4, 5 },   { 5, 6 }, { 6, 7 },
                                        { 7, 8 },   { 8, 9 },   { 9, 10 },  { 10, 11 }, { 2, 3 }, { 7, 8 },
                                        { 11, 22 }, { 12, 23 }, { 13, 14 }, { 14, 15 } };
    const uint32_t *row = rows[below(sizeof rows / sizeof *rows)];
    const onxi_message_table *table = onxi_messages[ONX_KIND_ATTRIBUTE];
    const onxi_field *field = onxi_field_find(table, row[1]);
    bool list = (field->flags & ONXI_REPEATED) != 0;
    put_field(b, table, 1, 1, 0);
    put_int(b, 20, row[0]);
    if (chance(10))
        put_field(b, table, 21, 1, 0);
    else
        put_field(b, table, row[1], list ? below(4) : 1, depth);
}

static void put_message(cases_buffer *b, const onxi_message_table *table, int depth)
{
    if (table->kind == ONX_KIND_TENSOR && chance(75))
        put_sound_tensor(b);
    else if (table->kind == ONX_KIND_ATTRIBUTE && chance(75))
        put_sound_attribute(b, depth);
    else if (table->kind == ONX_KIND_TYPE && chance(80)) /* one of its kind */
        put_field(b, table, (uint32_t[]){ 1, 1, 4, 5, 8, 9, 7 }[below(7)], 1, depth);
    else
        put_anything(b, table, depth);
    if (chance(2))
        put_int(b, 1000 + below(3), below(300));
}

/* ---- what has to hold ---- */

static onx_ctx *cx;

static void print(onx_kind kind, const onx_doc *doc, cases_buffer *out)
{
    assert_int_equal(onx_text_print(cx, kind, onx_doc_root(doc, kind), NULL, (onx_sink){ cases_collect, out }), ONX_OK);
}

static void fail_texts(const char *what, const cases_buffer *a, const cases_buffer *b)
{
    print_error("%s\n", what);
    fwrite(a->ptr, 1, a->len, stderr);
    print_error("\n---\n");
    fwrite(b->ptr, 1, b->len, stderr);
    fail();
}

static onx_doc *parse(onx_kind kind, const cases_buffer *text)
{
    onx_doc *doc;
    if (onx_text_parse(cx, kind, onx_str_make(text->ptr, text->len), 0, &doc) != ONX_OK) {
        cases_buffer said = { NULL, 0 };
        cases_add_diagnostics(cx, &said);
        fail_texts("cannot be parsed", text, &said);
    }
    return doc;
}

static void assert_same(onx_kind kind, const onx_doc *doc, const cases_buffer *text)
{
    onx_doc *again = parse(kind, text);
    cases_buffer other = { NULL, 0 };
    text_normal(cx, kind, onx_doc_root(doc, kind));
    text_normal(cx, kind, onx_doc_root(again, kind));
    if (!onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(again, kind))) {
        print(kind, again, &other);
        fail_texts("another message", text, &other);
    }
    onx_doc_free(again);
}

static void assert_equal_text(const cases_buffer *a, const cases_buffer *b, const char *what)
{
    if (a->len != b->len || memcmp(a->ptr, b->ptr, a->len) != 0)
        fail_texts(what, a, b);
}

static void format(onx_kind kind, const cases_buffer *text, cases_buffer *out)
{
    cases_add(out, "", 0);
    assert_int_equal(onx_text_format(cx, kind, onx_str_make(text->ptr, text->len), (onx_sink){ cases_collect, out }),
                     ONX_OK);
}

/* The length of the string, comment or single byte at c. */
static size_t piece(const char *c)
{
    size_t len = 1;
    if (*c == '#')
        return strcspn(c, "\n");
    if (*c != '"')
        return 1;
    while (c[len] != '"')
        len += c[len] == '\\' ? 2 : 1;
    return len + 1;
}

/* Where the text ends but for comments. */
static size_t code_end(const cases_buffer *text)
{
    size_t end = 0;
    for (size_t i = 0, len; i < text->len; i += len) {
        len = piece(text->ptr + i);
        if (!strchr("# \n", text->ptr[i]) || !text->ptr[i])
            end = i + len;
    }
    return end;
}

/* The text with comments "# c0;", "# c1;" ... in some of its gaps; returns how many. */
static unsigned add_comments(const cases_buffer *text, cases_buffer *out)
{
    unsigned count = 0;
    char mark[32];
    size_t end = code_end(text);
    for (size_t i = 0, len; i < text->len; i += len) {
        const char *c = text->ptr + i;
        len = piece(c);
        cases_add(out, c, len);
        if (i + len < end && *c && strchr(" ,<>(){}[]", *c) && chance(12)) {
            snprintf(mark, sizeof mark, "# c%u;%s", count++, chance(30) ? "\n\n\n" : "\n");
            cases_add_text(out, mark);
        }
    }
    cases_add_text(out, "# end\n");
    return count;
}

/* Each comment is there once, and within the text. */
static void try_comments(onx_kind kind, const onx_doc *doc, const cases_buffer *text)
{
    cases_buffer noted = { NULL, 0 }, first = { NULL, 0 }, second = { NULL, 0 };
    unsigned count = add_comments(text, &noted);
    format(kind, &noted, &first);
    assert_same(kind, doc, &first);
    format(kind, &first, &second);
    assert_equal_text(&first, &second, "formats differently the second time");
    size_t end = code_end(&first);
    for (unsigned i = 0; i < count; i++) {
        char mark[32];
        snprintf(mark, sizeof mark, "# c%u;\n", i);
        const char *at = memmem(first.ptr, end, mark, strlen(mark));
        if (!at || memmem(at + 1, (size_t)(first.ptr + first.len - at) - 1, mark, strlen(mark)))
            fail_texts(mark, &noted, &first);
    }
    free(noted.ptr);
    free(first.ptr);
    free(second.ptr);
}

static void try_message(onx_kind kind)
{
    cases_buffer wire = { NULL, 0 }, text = { NULL, 0 }, again = { NULL, 0 };
    onx_doc *doc;
    cases_add(&wire, "", 0);
    put_message(&wire, onxi_messages[kind], DEPTH);
    onx_diag_clear(cx);
    assert_int_equal(onx_read(cx, kind, onx_str_make(wire.ptr, wire.len), ONX_READ_COPY, 1, &doc), ONX_OK);
    print(kind, doc, &text);
    assert_same(kind, doc, &text);
    onx_doc *other = parse(kind, &text);
    print(kind, other, &again);
    assert_equal_text(&text, &again, "prints differently the second time");
    onx_doc_free(other);
    bool whole = kind == ONX_KIND_MODEL && onx_doc_model(doc)->graph; /* else a graph stands in for it */
    if (whole || kind == ONX_KIND_GRAPH || kind == ONX_KIND_FUNCTION || kind == ONX_KIND_NODE)
        try_comments(kind, doc, &text);
    onx_doc_free(doc);
    free(wire.ptr);
    free(text.ptr);
    free(again.ptr);
}

static void test_text_random__every_message_comes_back(void **state)
{
    static const onx_kind kinds[] = { ONX_KIND_MODEL,    ONX_KIND_GRAPH,      ONX_KIND_NODE,
                                      ONX_KIND_FUNCTION, ONX_KIND_TENSOR,     ONX_KIND_ATTRIBUTE,
                                      ONX_KIND_TYPE,     ONX_KIND_VALUE_INFO, ONX_KIND_TENSOR_SHAPE };
    (void)state;
    cx = onx_ctx_new(NULL);
    assert_non_null(cx);
    for (unsigned i = 0; i < ROUNDS; i++) {
        seed = 88172645463325252u + i * 2654435761u;
        below(2);
        try_message(kinds[i % (sizeof kinds / sizeof *kinds)]);
    }
    onx_ctx_free(cx);
}

/* Every field of every message that a model can hold was in one of them. */
static void test_text_random__every_field_was_there(void **state)
{
    (void)state;
    for (int kind = 1; kind < ONX_KIND_COUNT; kind++) {
        const onxi_message_table *table = onxi_messages[kind];
        bool reached = kind == ONX_KIND_MODEL;
        for (int k = 1; k < ONX_KIND_COUNT; k++)
            for (uint32_t i = 0; i < onxi_messages[k]->field_count; i++)
                reached |= onxi_messages[k]->fields[i].message == table && seen[k][i];
        for (uint32_t i = 0; reached && i < table->field_count; i++)
            if (!seen[kind][i])
                fail_msg("%s.%s was in no message", table->name, table->fields[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_random__every_message_comes_back),
        cmocka_unit_test(test_text_random__every_field_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
