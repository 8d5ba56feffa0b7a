/* test_proto_text_peers.c - our protobuf text and JSON, compared with protoc's. The .proto for protoc is printed from
 * our own tables, so these are tested, too. Messages with every field are made here; real models come from
 * ONX_CONFORMANCE_DIR. */
#include "text_formats.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/onx_text_peers_XXXXXX"; /* holds onx.proto and what goes to and from protoc */

static void put_format(text_buffer *b, const char *format, ...) ONX_PRINTF(2, 3);
static void put_format(text_buffer *b, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof line);
    text_append(b, onx_str_make(line, (size_t)n));
}

/* ---- the .proto ---- */

/* Nested messages are put side by side: TypeProto.Tensor is TypeProto_Tensor. Their names are nowhere in the data. */
static const char *flat_name(const onxi_message_table *table)
{
    static char name[64];
    snprintf(name, sizeof name, "%s", table->name);
    for (char *p = name; *p; p++)
        *p = *p == '.' ? '_' : *p;
    return name;
}

static void put_proto_field(text_buffer *b, const onxi_field *field, bool label)
{
    static const char *const types[] = { "float", "double", "int32", "int64", "uint64", "Enum", "string", "bytes" };
    put_format(b, "  %s %s %s = %u%s;\n",
               !label                           ? ""
               : (field->flags & ONXI_REPEATED) ? "repeated"
                                                : "optional",
               field->type == ONXI_MESSAGE ? flat_name(field->message) : types[field->type], field->name, field->number,
               (field->flags & ONXI_PACKED) ? " [packed = true]" : "");
}

static void put_proto_message(text_buffer *b, const onxi_message_table *table)
{
    bool oneof = false;
    put_format(b, "message %s {\n", flat_name(table));
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        if (field->type == ONXI_ENUM) {
            put_format(b, "  enum Enum {\n");
            for (const onxi_enum_name *n = field->names; n->name; n++)
                put_format(b, "    %s = %d;\n", n->name, n->value);
            put_format(b, "  }\n");
        }
        if (!(field->flags & ONXI_ONEOF)) {
            put_proto_field(b, field, true);
            continue;
        }
        if (oneof) /* put with the first member */
            continue;
        put_format(b, "  oneof value_of {\n");
        for (uint32_t k = i; k < table->field_count; k++)
            if (table->fields[k].flags & ONXI_ONEOF)
                put_proto_field(b, &table->fields[k], false);
        put_format(b, "  }\n");
        oneof = true;
    }
    put_format(b, "}\n");
}

static void path_of(char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s", folder, name);
}

static void save(const char *name, const text_buffer *b)
{
    char path[128];
    path_of(path, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (b->len)
        assert_int_equal(fwrite(b->ptr, 1, b->len, f), b->len);
    assert_int_equal(fclose(f), 0);
}

static text_buffer load(const char *path)
{
    text_buffer b = { 0 };
    FILE *f = fopen(path, "rb");
    char piece[65536];
    assert_non_null(f);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        text_append(&b, onx_str_make(piece, n));
    fclose(f);
    return b;
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    text_buffer proto = { 0 };
    assert_non_null(mkdtemp(folder));
    put_format(&proto, "syntax = \"proto2\";\nmessage Batch {\n");
    for (int kind = 1; kind < ONX_KIND_COUNT; kind++)
        put_format(&proto, "  repeated %s k%d = %d;\n", flat_name(onxi_messages[kind]), kind, kind);
    put_format(&proto, "}\n");
    for (int kind = 1; kind < ONX_KIND_COUNT; kind++)
        put_proto_message(&proto, onxi_messages[kind]);
    save("onx.proto", &proto);
    free(proto.ptr);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

static text_buffer protoc(const char *what, const text_buffer *input)
{
    char command[512], out[128];
    save("in", input);
    path_of(out, "out");
    snprintf(command, sizeof command, "protoc -I%s --%s=Batch onx.proto <%s/in >%s 2>%s/err", folder, what, folder, out,
             folder);
    if (system(command) != 0) {
        char err[128];
        path_of(err, "err");
        text_buffer said = load(err);
        fail_msg("protoc --%s: %.*s", what, ONX_ARG(text_view(&said)));
    }
    return load(out);
}

static bool have_protoc(void)
{
    return system("protoc --version >/dev/null 2>&1") == 0;
}

/* ---- batches: many messages in one, so that protoc runs few times ---- */

typedef struct batch {
    text_buffer wire, text; /* a Batch in wire form, and as text by our writer */
    struct item {
        onx_kind kind;
        size_t wire_from, wire_to, text_from, text_to;
    } * items;
    size_t count, room, total;
} batch;

static void put_varint(text_buffer *b, uint64_t value)
{
    char byte;
    for (; value > 0x7f; value >>= 7) {
        byte = (char)(value | 0x80);
        text_append(b, onx_str_make(&byte, 1));
    }
    byte = (char)value;
    text_append(b, onx_str_make(&byte, 1));
}

static void put_indented(text_buffer *b, onx_str text)
{
    for (size_t at = 0, length; at < text.len; at += length) {
        const char *newline = memchr(text.ptr + at, '\n', text.len - at);
        assert_non_null(newline);
        length = (size_t)(newline + 1 - (text.ptr + at));
        text_append(b, onx_str_of("  "));
        text_append(b, onx_str_make(text.ptr + at, length));
    }
}

static void batch_add(batch *b, onx_kind kind, const void *message, onx_str wire)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    text_buffer text = { 0 };
    assert_ok(cx, onx_textproto_write(cx, kind, message, text_sink(&text)));
    if (b->count == b->room) {
        b->room = 2 * b->room + 64;
        b->items = realloc(b->items, b->room * sizeof *b->items);
        assert_non_null(b->items);
    }
    struct item *item = &b->items[b->count++];
    put_varint(&b->wire, (uint64_t)kind << 3 | 2);
    put_varint(&b->wire, wire.len);
    item->kind = kind;
    item->wire_from = b->wire.len;
    text_append(&b->wire, wire);
    item->wire_to = b->wire.len;
    put_format(&b->text, "k%d {\n", (int)kind);
    item->text_from = b->text.len;
    put_indented(&b->text, text_view(&text));
    item->text_to = b->text.len;
    put_format(&b->text, "}\n");
    free(text.ptr);
    onx_ctx_free(cx);
}

static void assert_same_text(onx_str got, onx_str want)
{
    size_t i = 0;
    while (i < got.len && i < want.len && got.ptr[i] == want.ptr[i])
        i++;
    if (i == got.len && i == want.len)
        return;
    size_t from = i < 200 ? 0 : i - 200;
    fail_msg("texts differ at byte %zu\nours:\n%.300s\nprotoc:\n%.300s", i, i < got.len ? got.ptr + from : "",
             i < want.len ? want.ptr + from : "");
}

static void assert_reads_back(const batch *b, const struct item *item)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_buffer wire;
    assert_ok(cx,
              onx_textproto_read(cx, item->kind,
                                 onx_str_make(b->text.ptr + item->text_from, item->text_to - item->text_from), &doc));
    assert_ok(cx, onx_write(cx, item->kind, doc->root, 0, &wire));
    assert_int_equal(wire.len, item->wire_to - item->wire_from);
    if (wire.len)
        assert_memory_equal(wire.ptr, b->wire.ptr + item->wire_from, wire.len);
    onx_buffer_free(&wire);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* The texts are the same, and read back they are the same bytes. */
static void batch_check(batch *b)
{
    if (b->count) {
        text_buffer theirs = protoc("decode", &b->wire);
        assert_same_text(text_view(&b->text), text_view(&theirs));
        free(theirs.ptr);
        for (size_t i = 0; i < b->count; i++)
            assert_reads_back(b, &b->items[i]);
    }
    b->total += b->count;
    b->wire.len = b->text.len = b->count = 0;
}

static void batch_free(batch *b)
{
    free(b->wire.ptr);
    free(b->text.ptr);
    free(b->items);
}

/* ---- messages with every field ---- */

static uint32_t random_state = 1;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}
#define PICK(array) ((array)[random_below(sizeof(array) / sizeof *(array))])

static void put_all_fields(text_buffer *b, const onxi_message_table *table, unsigned depth);

static void put_some_value(text_buffer *b, const onxi_field *field, unsigned depth)
{
    static const char *const reals[] = { "0",
                                         "-0",
                                         "1",
                                         "-1.5",
                                         "0.1",
                                         "1e-7",
                                         "16777217",
                                         "3.4028235e38",
                                         "1e-45",
                                         "inf",
                                         "-inf",
                                         "nan",
                                         ".3333333333333333",
                                         "2.5f",
                                         "1e300",
                                         "5e-324",
                                         "1234567",
                                         "99999.95" };
    static const char *const small[] = { "0", "1", "-1", "0x7f", "-0x80000000", "2147483647", "-2147483648", "017" };
    static const char *const wide[] = { "0", "-1", "9223372036854775807", "-9223372036854775808", "0x123456789abcdef" };
    static const char *const natural[] = { "0", "18446744073709551615", "1", "0xffffffffffffffff" };
    static const char *const strings[] = { "''",
                                           "'a' \"b\"",
                                           "'\\n\\r\\t\\\\\\'\\\"\\?\\a\\b\\f\\v'",
                                           "'\\303\\251 \\u20ac \\U0001F600'",
                                           "'caf\xc3\xa9'",
                                           "'\\001\\x7f#'" };
    static const char *const bytes[] = { "'\\000\\001\\377\\x80'", "''", "'plain'" };
    switch ((onxi_field_type)field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE:
        put_format(b, "%s", PICK(reals));
        break;
    case ONXI_INT32:
        put_format(b, "%s", PICK(small));
        break;
    case ONXI_INT64:
        put_format(b, "%s", PICK(wide));
        break;
    case ONXI_UINT64:
        put_format(b, "%s", PICK(natural));
        break;
    case ONXI_ENUM: {
        uint32_t count = 0;
        while (field->names[count].name)
            count++;
        put_format(b, "%s", field->names[random_below(count)].name);
        break;
    }
    case ONXI_STRING:
        put_format(b, "%s", PICK(strings));
        break;
    case ONXI_BYTES:
        put_format(b, "%s", PICK(bytes));
        break;
    case ONXI_MESSAGE:
        put_format(b, depth % 2 ? "<" : "{ # a message\n");
        put_all_fields(b, field->message, depth + 1);
        put_format(b, depth % 2 ? ">" : "}");
        break;
    }
}

static void put_all_fields(text_buffer *b, const onxi_message_table *table, unsigned depth)
{
    bool oneof = false;
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        if (field->type == ONXI_MESSAGE && depth > 2 && random_below(6 * depth))
            continue;
        if (field->flags & ONXI_ONEOF) {
            if (oneof || random_below(3))
                continue;
            oneof = true;
        }
        if ((field->flags & ONXI_REPEATED) && random_below(2)) {
            put_format(b, "%s: [", field->name);
            for (uint32_t k = 0, n = random_below(4); k < n; k++) {
                put_format(b, k ? ", " : " ");
                put_some_value(b, field, depth);
            }
            put_format(b, "]\n");
        } else {
            for (uint32_t k = (field->flags & ONXI_REPEATED) ? random_below(4) : 1; k > 0; k--) {
                put_format(b, "%s%s", field->name, field->type == ONXI_MESSAGE && k % 2 ? " " : ": ");
                put_some_value(b, field, depth);
                put_format(b, k % 3 == 0 ? ";" : k % 3 == 1 ? "\n" : ", ");
            }
        }
    }
}

static void test_proto_text_peers__every_field(void **state)
{
    (void)state;
    if (!have_protoc())
        skip();
    batch b = { 0 };
    text_buffer spelled = { 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int round = 0; round < 20; round++) {
        for (int kind = 1; kind < ONX_KIND_COUNT; kind++) {
            text_buffer one = { 0 };
            onx_doc *doc;
            onx_buffer wire;
            put_all_fields(&one, onxi_messages[kind], 0);
            put_format(&spelled, "k%d {\n", kind);
            text_append(&spelled, text_view(&one));
            put_format(&spelled, "}\n");
            assert_ok(cx, onx_textproto_read(cx, (onx_kind)kind, text_view(&one), &doc));
            assert_ok(cx, onx_write(cx, (onx_kind)kind, doc->root, 0, &wire));
            batch_add(&b, (onx_kind)kind, doc->root, onx_str_make(wire.ptr, wire.len));
            onx_buffer_free(&wire);
            onx_doc_free(doc);
            free(one.ptr);
        }
        /* protoc reads the many ways of spelling to the same bytes as we do. It sorts by kind within a batch; so do we.
         */
        text_buffer theirs = protoc("encode", &spelled);
        assert_int_equal(theirs.len, b.wire.len);
        assert_memory_equal(theirs.ptr, b.wire.ptr, theirs.len);
        free(theirs.ptr);
        batch_check(&b);
        spelled.len = 0;
    }
    assert_int_equal(b.total, 20 * (ONX_KIND_COUNT - 1));
    free(spelled.ptr);
    batch_free(&b);
    onx_ctx_free(cx);
}

/* ---- real models ---- */

static struct {
    batch by_kind[ONX_KIND_COUNT]; /* a batch of one kind comes back from protoc in order */
    uint64_t files;
    bool with_protoc;
} corpus;

static void json_round_trip(onx_ctx *cx, onx_kind kind, const void *message, onx_str wire)
{
    text_buffer json = { 0 };
    onx_doc *doc;
    onx_buffer again;
    onx_status status = onx_json_write(cx, kind, message, text_sink(&json));
    if (status == ONX_E_UNSUPPORTED) { /* a string that is no UTF-8 */
        free(json.ptr);
        return;
    }
    assert_ok(cx, status);
    assert_ok(cx, onx_json_read(cx, kind, text_view(&json), &doc));
    assert_ok(cx, onx_write(cx, kind, doc->root, 0, &again));
    assert_int_equal(again.len, wire.len);
    if (wire.len)
        assert_memory_equal(again.ptr, wire.ptr, wire.len);
    onx_buffer_free(&again);
    onx_doc_free(doc);
    free(json.ptr);
}

/* One file through both formats; the document is given when asked for. */
static void take_file(onx_ctx *cx, onx_kind kind, const char *path, onx_doc **doc_out, text_buffer *bytes_out)
{
    text_buffer bytes = load(path);
    onx_doc *doc;
    onx_buffer wire;
    assert_ok(cx, onx_read(cx, kind, text_view(&bytes), 0, 1, &doc));
    assert_ok(cx, onx_write(cx, kind, doc->root, 0, &wire));
    onx_str canonical = onx_str_make(wire.ptr, wire.len);
    corpus.files++;
    if (corpus.with_protoc) {
        batch *b = &corpus.by_kind[kind];
        batch_add(b, kind, doc->root, canonical);
        if (b->wire.len > (8u << 20))
            batch_check(b);
    }
    json_round_trip(cx, kind, doc->root, canonical);
    onx_buffer_free(&wire);
    *doc_out = doc;
    *bytes_out = bytes;
}

static void take_data(onx_ctx *cx, const char *dir, const char *name, onx_value_info *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char path[4096];
        struct stat s;
        onx_doc *doc;
        text_buffer bytes;
        const onx_type *type = values[i]->type;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%u.pb", dir, name, i);
        if (!type || stat(path, &s) != 0)
            continue;
        onx_kind kind = ONX_HAS(type, type, sequence_type)   ? ONX_KIND_SEQUENCE
                        : ONX_HAS(type, type, optional_type) ? ONX_KIND_OPTIONAL
                        : ONX_HAS(type, type, map_type)      ? ONX_KIND_MAP
                                                             : ONX_KIND_TENSOR;
        take_file(cx, kind, path, &doc, &bytes);
        onx_doc_free(doc);
        free(bytes.ptr);
    }
}

static int take_entry(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s;
    if (type != FTW_F || strcmp(path + at->base, "model.onnx") != 0)
        return 0;
    char dir[4096];
    snprintf(dir, sizeof dir, "%.*s", at->base - 1, path);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    text_buffer bytes;
    take_file(cx, ONX_KIND_MODEL, path, &doc, &bytes);
    const onx_graph *graph = onx_doc_model(doc)->graph;
    if (graph) {
        take_data(cx, dir, "input", graph->input, graph->input_count);
        take_data(cx, dir, "output", graph->output, graph->output_count);
    }
    onx_doc_free(doc);
    free(bytes.ptr);
    onx_ctx_free(cx);
    return 0;
}

static void test_proto_text_peers__real_models(void **state)
{
    (void)state;
    static const char *const debian = "/usr/share/libonnx-testdata";
    const char *given = getenv("ONX_CONFORMANCE_DIR");
    char dir[4096];
    struct stat s;
    snprintf(dir, sizeof dir, "%s%s", given ? given : debian, given ? "/backend" : "");
    if (stat(dir, &s) != 0) {
        print_message("no models at %s: set ONX_CONFORMANCE_DIR or install libonnx-testdata\n", dir);
        skip();
    }
    corpus.with_protoc = have_protoc();
    nftw(dir, take_entry, 16, FTW_PHYS);
    for (int kind = 1; kind < ONX_KIND_COUNT; kind++) {
        batch_check(&corpus.by_kind[kind]);
        batch_free(&corpus.by_kind[kind]);
    }
    print_message("%llu files%s\n", (unsigned long long)corpus.files, corpus.with_protoc ? "" : ", without protoc");
    assert_true(corpus.files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_text_peers__every_field),
        cmocka_unit_test(test_proto_text_peers__real_models),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
