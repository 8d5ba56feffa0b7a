/* Documents in files: formats by name and content, saving over the input, moving weights out and in. */
#include "io/io.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/file_fixture.h"

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static void add_initializer(onx_doc *doc, onx_tensor *t)
{
    onx_graph *graph = onx_doc_model(doc)->graph;
    *(onx_tensor **)onx_list_insert(onx_doc_arena(doc), (void **)&graph->initializer, &graph->initializer_count,
                                    graph->initializer_count, sizeof(void *)) = t;
}

/* Weights of every storage: raw, typed, narrow in int32_data, sparse, in an attribute, in a function; and strings. */
static onx_doc *make_model(onx_ctx *cx)
{
    enum { N = 3000 };
    static float values[N];
    for (int i = 0; i < N; i++)
        values[i] = (float)i;
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "g", 20, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    int64_t n = N, few = 3;
    add_initializer(doc, onx_tensor_new(arena, ONX_FLOAT, &n, 1, values, "raw"));
    add_initializer(doc, onx_tensor_new(arena, ONX_FLOAT, &few, 1, values, "small"));
    onx_tensor *typed = onx_tensor_new(arena, ONX_FLOAT, &n, 1, values, "typed");
    typed->has &= ~(uint32_t)onx_tensor_has_raw_data;
    typed->raw_data = (onx_bytes){ 0 };
    typed->float_data = values;
    typed->float_data_count = N;
    add_initializer(doc, typed);
    onx_tensor *narrow = onx_tensor_new(arena, ONX_INT8, &n, 1, values, "narrow");
    narrow->has &= ~(uint32_t)onx_tensor_has_raw_data;
    narrow->raw_data = (onx_bytes){ 0 };
    narrow->int32_data = onx_arena_alloc(arena, N * sizeof(int32_t));
    for (int i = 0; i < N; i++)
        narrow->int32_data[i] = i % 256 - 128;
    narrow->int32_data_count = N;
    add_initializer(doc, narrow);
    onx_tensor *text = onx_tensor_new(arena, ONX_FLOAT, &few, 1, values, "text");
    text->has &= ~(uint32_t)onx_tensor_has_raw_data;
    text->raw_data = (onx_bytes){ 0 };
    text->data_type = ONX_STRING;
    for (int i = 0; i < 3; i++)
        onx_list_add_text(arena, &text->string_data, &text->string_data_count, onx_str_of("a string of some length"));
    add_initializer(doc, text);
    onx_sparse_tensor *sparse = ONX_ADD(arena, graph, sparse_initializer, SPARSE_TENSOR);
    ONX_SET(sparse_tensor, sparse, values, onx_tensor_new(arena, ONX_FLOAT, &n, 1, values, "sparse"));
    onx_node *node = onx_graph_add_node(arena, graph, "Constant", "", "y");
    onx_node_add_tensor(arena, node, "value", onx_tensor_new(arena, ONX_FLOAT, &n, 1, values, "constant"));
    onx_function *function = ONX_ADD(arena, onx_doc_model(doc), functions, FUNCTION);
    ONX_SET(function, function, name, (onx_bytes){ 0 });
    assert_int_equal(onx_arena_keep(arena, onx_str_of("f"), &function->name), ONX_OK);
    onx_attribute *a = ONX_ADD(arena, function, attribute_proto, ATTRIBUTE);
    ONX_SET(attribute, a, name, (onx_bytes){ 0 });
    assert_int_equal(onx_arena_keep(arena, onx_str_of("a"), &a->name), ONX_OK);
    a->slot = ONX_SLOT_T;
    a->has |= onx_attribute_has_t;
    a->t = onx_tensor_new(arena, ONX_FLOAT, &n, 1, values, "default");
    return doc;
}

enum { MOVED = 6 }; /* tensors of make_model above the threshold */

typedef struct gathered {
    onx_doc *doc;
    unsigned external, count;
    double sum;
} gathered;

static onx_status gather(void *user, const onx_visit *at)
{
    gathered *g = user;
    const onx_tensor *t = at->message;
    if (at->kind != ONX_KIND_TENSOR || t->data_type == ONX_STRING)
        return ONX_OK;
    uint64_t n;
    g->external += onx_tensor_is_external(t);
    g->count++;
    assert_true(onx_tensor_count(t, &n));
    for (uint64_t i = 0; i < n; i++) {
        double d;
        ONX_TRY(onx_tensor_get_f64(g->doc, t, i, 1, &d));
        g->sum += d * (double)(i + 1);
    }
    return ONX_OK;
}

static gathered gather_all(onx_doc *doc)
{
    gathered g = { .doc = doc };
    if (onx_message_walk(onx_doc_ctx(doc), ONX_KIND_MODEL, onx_doc_model(doc), gather, &g) != ONX_OK) {
        char text[512];
        onx_diag_format(onx_diag_get(onx_doc_ctx(doc), 0), text, sizeof text);
        fail_msg("%s", text);
    }
    return g;
}

static onx_doc *load(fixture *f, const char *path)
{
    onx_doc *doc;
    if (onx_load(f->cx, ONX_KIND_MODEL, path, NULL, &doc) != ONX_OK) {
        char text[512];
        onx_diag_format(onx_diag_get(f->cx, 0), text, sizeof text);
        fail_msg("%s: %s", path, text);
    }
    return doc;
}

static void expect_fault(fixture *f, const char *path, onx_kind kind, onx_status want, const char *text)
{
    onx_doc *doc;
    char buf[1024] = "";
    bool found = false;
    onx_diag_clear(f->cx);
    assert_int_equal(onx_load(f->cx, kind, path, NULL, &doc), want);
    assert_null(doc);
    for (size_t i = 0; i < onx_diag_count(f->cx); i++) {
        onx_diag_format(onx_diag_get(f->cx, i), buf, sizeof buf);
        found = found || strstr(buf, text);
    }
    if (!found)
        fail_msg("%s: %s", path, buf);
}

static void test_io_format__by_name(void **state)
{
    (void)state;
    assert_int_equal(onx_format_of_path("a.onnx"), ONX_FORMAT_BINARY);
    assert_int_equal(onx_format_of_path("dir.json/a.PB"), ONX_FORMAT_BINARY);
    assert_int_equal(onx_format_of_path("a.onnxtxt"), ONX_FORMAT_ONNXTXT);
    assert_int_equal(onx_format_of_path("a.b.textproto"), ONX_FORMAT_TEXTPROTO);
    assert_int_equal(onx_format_of_path("a.pbtxt"), ONX_FORMAT_TEXTPROTO);
    assert_int_equal(onx_format_of_path("a.prototxt"), ONX_FORMAT_TEXTPROTO);
    assert_int_equal(onx_format_of_path("/x/a.json"), ONX_FORMAT_JSON);
    assert_int_equal(onx_format_of_path("dir.json/a"), ONX_FORMAT_AUTO);
    assert_int_equal(onx_format_of_path("a."), ONX_FORMAT_AUTO);
    assert_int_equal(onx_format_of_path(""), ONX_FORMAT_AUTO);
}

static void test_io_format__by_content(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        onx_format format;
        const char *what;
    } cases[] = {
        { "", ONX_FORMAT_AUTO, NULL },
        { "\x08\x08\x12\x03onx", ONX_FORMAT_AUTO, NULL },
        { " \n{ \"irVersion\": 8 }", ONX_FORMAT_JSON, "JSON" },
        { "{}", ONX_FORMAT_JSON, "JSON" },
        { "# a comment\nir_version: 8", ONX_FORMAT_TEXTPROTO, "protobuf text" },
        { "graph {\n}", ONX_FORMAT_TEXTPROTO, "protobuf text" },
        { "<\n ir_version: 10\n>\ng () => () {}", ONX_FORMAT_ONNXTXT, "ONNX text" },
        { "# c\nagraph (float[N] X) => (Y) { }", ONX_FORMAT_ONNXTXT, "ONNX text" },
        { "<!DOCTYPE html>", ONX_FORMAT_AUTO, "HTML or XML" },
        { "<html>", ONX_FORMAT_AUTO, "HTML or XML" },
        { "hello world", ONX_FORMAT_AUTO, "text" },
        { "version https://git-lfs.github.com/spec/v1\n", ONX_FORMAT_AUTO, "a Git LFS pointer, not the file itself" },
        { "PK\3\4xx", ONX_FORMAT_AUTO, "a zip archive (PyTorch files and .npz are such)" },
        { "\x93NUMPY\1", ONX_FORMAT_AUTO, "a NumPy array (.npy)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onxi_io_look look = onxi_io_look_at(onx_str_of(cases[i].text));
        if (look.format != cases[i].format || (look.what == NULL) != (cases[i].what == NULL) ||
            (look.what && strcmp(look.what, cases[i].what) != 0))
            fail_msg("%s: %s", cases[i].text, look.what ? look.what : "nothing");
    }
}

static void test_io_file__says_what_a_wrong_file_is(void **state)
{
    fixture *f = *state;
    put_bytes(at(f, "zip.onnx"), "PK\3\4abcd", 8);
    expect_fault(f, at(f, "zip.onnx"), ONX_KIND_MODEL, ONX_E_MALFORMED, "a zip archive");
    put_bytes(at(f, "text.onnx"), "ir_version: 8\n", 14);
    expect_fault(f, at(f, "text.onnx"), ONX_KIND_MODEL, ONX_E_MALFORMED,
                 "the name says the binary format, but the content looks like protobuf text");
    put_bytes(at(f, "bin.json"), "\x08\x08", 2);
    expect_fault(f, at(f, "bin.json"), ONX_KIND_MODEL, ONX_E_MALFORMED, "binary data");
    put_bytes(at(f, "set.onnx"), "\x0a\x09ONNXOPSET\x10\x08", 13);
    expect_fault(f, at(f, "set.onnx"), ONX_KIND_MODEL, ONX_E_MALFORMED, "looks like an OperatorSetProto");
    put_bytes(at(f, "tensor.onnx"), "\x08\x01\x10\x01\x4a\x04\0\0\0\0", 10);
    expect_fault(f, at(f, "tensor.onnx"), ONX_KIND_MODEL, ONX_E_MALFORMED, "looks like a TensorProto");
    put_bytes(at(f, "model.pb"), "\x08\x08\x12\x01x\x3a\x00", 7);
    expect_fault(f, at(f, "model.pb"), ONX_KIND_TENSOR, ONX_E_MALFORMED, "looks like a ModelProto");
    expect_fault(f, f->dir, ONX_KIND_MODEL, ONX_E_IO, "a directory");
    expect_fault(f, at(f, "none"), ONX_KIND_MODEL, ONX_E_IO, "No such file");
    /* A format given in the call is taken at its word. */
    onx_doc *doc;
    onx_load_options options = { .format = ONX_FORMAT_TEXTPROTO };
    assert_int_equal(onx_load(f->cx, ONX_KIND_MODEL, at(f, "text.onnx"), &options, &doc), ONX_OK);
    assert_int_equal(onx_doc_model(doc)->ir_version, 8);
    onx_doc_free(doc);
    put_bytes(at(f, "empty.onnx"), "", 0);
    onx_diag_clear(f->cx);
    onx_doc_free(load(f, at(f, "empty.onnx")));
    assert_int_equal(onx_diag_total(f->cx, ONX_WARNING), 1);
}

static void test_io_file__every_format_round_trips(void **state)
{
    fixture *f = *state;
    static const char *const names[] = { "m.onnx", "m.textproto", "m.json", "m.pb", "plain", "m.onnxtxt" };
    onx_doc *doc = make_model(f->cx);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(onx_save(f->cx, doc, at(f, names[i]), NULL), ONX_OK);
        onx_doc *back = load(f, at(f, names[i]));
        assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), onx_doc_model(back)));
        assert_string_equal(onx_doc_base_dir(back), f->dir);
        assert_int_equal(onx_doc_input_size(back), size_of(at(f, names[i])));
        onx_doc_free(back);
        onx_load_options copy = { .flags = ONX_READ_COPY };
        assert_int_equal(onx_load(f->cx, ONX_KIND_MODEL, at(f, names[i]), &copy, &back), ONX_OK);
        put_bytes(at(f, names[i]), "gone", 4); /* in place: a mapping would show it */
        assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(doc), onx_doc_model(back)));
        onx_doc_free(back);
    }
    onx_doc_free(doc);
}

static void test_io_file__saves_over_its_own_input(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    assert_int_equal(onx_save(f->cx, doc, at(f, "m.onnx"), NULL), ONX_OK);
    onx_doc *mapped = load(f, at(f, "m.onnx"));
    ONX_SET(model, onx_doc_model(mapped), model_version, 77);
    assert_int_equal(onx_save(f->cx, mapped, at(f, "m.onnx"), NULL), ONX_OK);
    onx_doc *back = load(f, at(f, "m.onnx"));
    assert_true(onx_message_equal(ONX_KIND_MODEL, onx_doc_model(mapped), onx_doc_model(back)));
    assert_int_equal(onx_doc_model(back)->model_version, 77);
    onx_doc_free(back);
    onx_doc_free(mapped);
    onx_doc_free(doc);
    assert_int_equal(folder_entries(f->dir), 1);
}

static void move(fixture *f, onx_doc *doc, const char *path, onx_external_options external, onx_status want)
{
    onx_save_options options = { .external = &external };
    void *before;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(f->cx, &arena), ONX_OK);
    assert_int_equal(onx_message_copy(arena, ONX_KIND_MODEL, onx_doc_model(doc), &before), ONX_OK);
    onx_status status = onx_save(f->cx, doc, path, &options);
    if (status != want) {
        char text[512] = "";
        if (onx_diag_count(f->cx))
            onx_diag_format(onx_diag_get(f->cx, onx_diag_count(f->cx) - 1), text, sizeof text);
        fail_msg("%s: status %d, %s", path, (int)status, text);
    }
    assert_true(onx_message_equal(ONX_KIND_MODEL, before, onx_doc_model(doc))); /* the document stays as it is */
    onx_arena_free(arena);
}

static void expect_model(fixture *f, const char *path, gathered want, unsigned external)
{
    onx_doc *doc = load(f, path);
    gathered g = gather_all(doc);
    assert_int_equal(g.count, want.count);
    assert_int_equal(g.external, external);
    assert_true(g.sum == want.sum);
    onx_doc_free(doc);
}

static void test_io_external__out_and_in(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    gathered want = gather_all(doc);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_OK);
    expect_model(f, at(f, "m.onnx"), want, MOVED);
    assert_true(size_of(at(f, "m.onnx")) < 2000);
    struct stat st, beside;
    stat(at(f, "w.bin"), &st);
    stat(at(f, "m.onnx"), &beside);
    assert_int_equal(st.st_mode & 0777, beside.st_mode & 0777);
    assert_int_equal(folder_entries(f->dir), 2);
    /* Every offset is aligned, every entry as the writer promises. */
    onx_doc *moved = load(f, at(f, "m.onnx"));
    const onx_tensor *t = onx_doc_model(moved)->graph->initializer[2];
    assert_true(onx_str_is(onx_view(t->name), "typed"));
    assert_int_equal(t->external_data_count, 3);
    assert_true(onx_str_is(onx_view(t->external_data[0]->key), "location"));
    assert_true(onx_str_is(onx_view(t->external_data[1]->value), "24576"));
    assert_true(onx_str_is(onx_view(t->external_data[2]->value), "12000"));
    /* In again, over the model itself and its data file unchanged beside it. */
    move(f, moved, at(f, "m.onnx"), (onx_external_options){ .inline_all = true }, ONX_OK);
    expect_model(f, at(f, "m.onnx"), want, 0);
    /* From one data file to several; never over the one that the document refers to. */
    move(f, moved, at(f, "again.onnx"), (onx_external_options){ .location = "w.bin", .split = 30000, .alignment = 64 },
         ONX_E_MISUSE);
    move(f, moved, at(f, "again.onnx"), (onx_external_options){ .location = "v.bin", .split = 30000, .alignment = 64 },
         ONX_OK);
    expect_model(f, at(f, "again.onnx"), want, MOVED);
    assert_true(size_of(at(f, "v.bin")) <= 30000 && size_of(at(f, "v.bin.1")) > 0 && size_of(at(f, "v.bin.2")) > 0);
    assert_int_equal(size_of(at(f, "v.bin.3")), -1);
    onx_doc_free(moved);
    /* A threshold between the two sizes that occur. */
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "big.bin", .threshold = 4000 }, ONX_OK);
    expect_model(f, at(f, "m.onnx"), want, MOVED - 1);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "all.bin", .threshold = 1 }, ONX_OK);
    expect_model(f, at(f, "m.onnx"), want, MOVED + 1);
    onx_doc_free(doc);
}

static void test_io_external__file_per_tensor_and_checksums(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    gathered want = gather_all(doc);
    onx_external_options o = { .location = "weights/", .file_per_tensor = true, .checksum = true };
#ifndef ONX_WITH_CRYPTO
    move(f, doc, at(f, "m.onnx"), o, ONX_E_UNSUPPORTED);
    o.checksum = false;
#endif
    move(f, doc, at(f, "m.onnx"), o, ONX_OK);
    expect_model(f, at(f, "m.onnx"), want, MOVED);
    assert_int_equal(folder_entries(at(f, "weights")), MOVED);
    assert_int_equal(size_of(at(f, "weights/00001-raw")), 12000);
    assert_int_equal(size_of(at(f, "weights/00003-narrow")), 3000);
    if (o.checksum) {
        onx_doc *back = load(f, at(f, "m.onnx"));
        assert_int_equal(onx_doc_model(back)->graph->initializer[0]->external_data_count, 4);
        assert_int_equal(onx_external_verify(back), ONX_OK);
        onx_doc_free(back);
        FILE *file = fopen(at(f, "weights/00001-raw"), "r+b");
        fseek(file, 100, SEEK_SET);
        fputc('!', file);
        fclose(file);
        back = load(f, at(f, "m.onnx"));
        onx_diag_clear(f->cx);
        assert_int_equal(onx_external_verify(back), ONX_E_INVALID);
        assert_int_equal(onx_diag_total(f->cx, ONX_ERROR), 1);
        onx_doc_free(back);
        /* One file for all, with gaps: the checksum covers them. */
        move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "one.bin", .checksum = true }, ONX_OK);
        back = load(f, at(f, "m.onnx"));
        assert_int_equal(onx_external_verify(back), ONX_OK);
        onx_doc_free(back);
    }
    onx_doc_free(doc);
}

static void test_io_external__refusals(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    static const char *const names[] = { "../w.bin", "/tmp/w.bin", "a/../w.bin", "c:w.bin", "", "sub/" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = names[i] }, ONX_E_MISUSE);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "m.onnx" }, ONX_E_MISUSE);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin", .alignment = 100 }, ONX_E_MISUSE);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin", .inline_all = true }, ONX_E_MISUSE);
    move(f, doc, "-", (onx_external_options){ .location = "w.bin" }, ONX_E_MISUSE);
    move(f, doc, at(f, "none/m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_E_IO);
    assert_int_equal(folder_entries(f->dir), 0);
    /* Never through a link, never into a file of several names. */
    put_bytes(at(f, "precious"), "precious", 8);
    assert_int_equal(symlink("precious", at(f, "w.bin")), 0);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_E_IO);
    assert_int_equal(link(at(f, "precious"), at(f, "hard.bin")), 0);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "hard.bin" }, ONX_E_IO);
    assert_int_equal(symlink("/tmp", at(f, "out")), 0);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "out/w.bin" }, ONX_E_INVALID);
    assert_int_equal(size_of(at(f, "precious")), 8);
    assert_int_equal(size_of(at(f, "m.onnx")), -1);
    assert_int_equal(folder_entries(f->dir), 4);
    /* A tensor whose data is missing: nothing is written, the old model and data stay. */
    put_bytes(at(f, "old.bin"), "old", 3);
    onx_tensor *lost = onx_doc_model(doc)->graph->initializer[0];
    ONX_SET(tensor, lost, data_location, ONX_DATA_EXTERNAL);
    assert_int_equal(onx_doc_set_base_dir(doc, f->dir), ONX_OK);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "old.bin" }, ONX_E_INVALID);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .inline_all = true }, ONX_E_INVALID);
    assert_int_equal(size_of(at(f, "old.bin")), 3);
    assert_int_equal(folder_entries(f->dir), 5);
    onx_doc_free(doc);
}

/* The disk is full at every point in turn: the old model and its old data stay, and no temporary file. */
static void test_io_external__full_disk(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    gathered want = gather_all(doc);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_OK);
    off_t data = size_of(at(f, "w.bin"));
    for (off_t limit = 0; limit < data; limit += data / 7) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGXFSZ, SIG_IGN);
            struct rlimit r = { (rlim_t)limit, (rlim_t)limit };
            setrlimit(RLIMIT_FSIZE, &r);
            onx_external_options external = { .location = "w.bin" };
            onx_save_options options = { .external = &external };
            _exit(onx_save(f->cx, doc, at(f, "m.onnx"), &options) == ONX_E_IO ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(folder_entries(f->dir), 2);
        expect_model(f, at(f, "m.onnx"), want, MOVED);
    }
    onx_doc_free(doc);
}

static void test_io_file__references_are_kept(void **state)
{
    fixture *f = *state;
    onx_doc *doc = make_model(f->cx);
    gathered want = gather_all(doc);
    move(f, doc, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_OK);
    onx_doc *moved = load(f, at(f, "m.onnx"));
    assert_int_equal(onx_save(f->cx, moved, at(f, "copy.textproto"), NULL), ONX_OK);
    expect_model(f, at(f, "copy.textproto"), want, MOVED);
    assert_int_equal(onx_diag_total(f->cx, ONX_WARNING), 0);
    mkdir(at(f, "sub"), 0700);
    assert_int_equal(onx_save(f->cx, moved, at(f, "sub/copy.onnx"), NULL), ONX_OK);
    assert_int_equal(onx_diag_total(f->cx, ONX_WARNING), 1); /* the data is not there */
    onx_doc_free(moved);
    onx_load_options options = { .base_dir = f->dir };
    assert_int_equal(onx_load(f->cx, ONX_KIND_MODEL, at(f, "sub/copy.onnx"), &options, &moved), ONX_OK);
    assert_true(gather_all(moved).sum == want.sum);
    onx_doc_free(moved);
    onx_doc_free(doc);
}

typedef struct failing {
    size_t left; /* allocations until one fails */
    bool failed;
} failing;

static void *resize_or_fail(void *user, void *ptr, size_t old_size, size_t new_size)
{
    failing *a = user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (a->left == 0) {
        a->failed = true;
        return NULL;
    }
    a->left--;
    return realloc(ptr, new_size);
}

/* Allocation n fails, for every n: no crash, no leak, no file but whole ones. */
static void test_io_file__out_of_memory(void **state)
{
    fixture *f = *state;
    onx_doc *made = make_model(f->cx);
    move(f, made, at(f, "m.onnx"), (onx_external_options){ .location = "w.bin" }, ONX_OK);
    onx_doc_free(made);
    bool done = false;
    for (size_t n = 0; !done; n++) {
        failing a = { n, false };
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ resize_or_fail, &a });
        if (!cx)
            continue;
        onx_doc *doc = NULL;
        onx_external_options out = { .location = "v/", .file_per_tensor = true, .threshold = 1 };
        onx_status status = onx_load(cx, ONX_KIND_MODEL, at(f, "m.onnx"), NULL, &doc);
        if (status == ONX_OK)
            status = onx_save(cx, doc, at(f, "n.onnx"), &(onx_save_options){ .external = &out });
        if (status == ONX_OK)
            status = onx_save(cx, doc, at(f, "m.json"), NULL);
        done = status == ONX_OK && !a.failed;
        if (!done && status != ONX_E_MEMORY && status != ONX_OK)
            fail_msg("allocation %zu: status %d", n, (int)status);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        size_t files = folder_entries(f->dir);
        assert_true(files >= 2 && files <= 5);
        char command[256];
        snprintf(command, sizeof command, "rm -rf %s/v %s/n.onnx %s/m.json", f->dir, f->dir, f->dir);
        if (files > 2)
            assert_int_equal(system(command), 0);
    }
}

static size_t put_varint(char *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (char)(v | 0x80);
    p[n++] = (char)v;
    return n;
}

/* A model with one tensor of 5 GB, all hole but for a mark at its begin, middle and end: past 2^32 in every length,
 * offset and count, and it costs next to no space. */
static void test_io_file__beyond_4_gb(void **state)
{
    fixture *f = *state;
    const uint64_t size = (uint64_t)5 << 30;
    char tensor[64], head[64];
    size_t t = 0, h = 0;
    tensor[t++] = 0x08; /* dims */
    t += put_varint(tensor + t, size);
    tensor[t++] = 0x10; /* data_type */
    tensor[t++] = ONX_UINT8;
    tensor[t++] = 0x4a; /* raw_data */
    t += put_varint(tensor + t, size);
    head[h++] = 0x08; /* ir_version */
    head[h++] = 8;
    head[h++] = 0x3a; /* graph */
    char inner[16];
    inner[0] = 0x2a; /* initializer */
    size_t i = 1 + put_varint(inner + 1, t + size);
    h += put_varint(head + h, i + t + size);
    memcpy(head + h, inner, i);
    memcpy(head + h + i, tensor, t);
    h += i + t;
    FILE *file = fopen(at(f, "big.onnx"), "wb");
    assert_int_equal(fwrite(head, 1, h, file), h);
    bool fits = ftruncate(fileno(file), (off_t)(h + size)) == 0;
    static const off_t marks[] = { 0, (off_t)((uint64_t)5 << 29) + 12345, (off_t)((uint64_t)5 << 30) - 1 };
    for (int k = 0; k < 3 && fits; k++)
        fits = fseeko(file, (off_t)h + marks[k], SEEK_SET) == 0 && fputc('x', file) == 'x';
    fits = fclose(file) == 0 && fits;
    struct stat st;
    if (!fits || stat(at(f, "big.onnx"), &st) != 0 || st.st_blocks > 1 << 20) {
        print_message("no file of 5 GB with holes can be made here\n");
        skip();
    }
    onx_doc *doc = load(f, at(f, "big.onnx"));
    onx_external_options out = { .location = "big.bin" }, in = { .inline_all = true };
    assert_int_equal(onx_save(f->cx, doc, at(f, "same.onnx"), NULL), ONX_OK);
    assert_int_equal(onx_save(f->cx, doc, at(f, "moved.onnx"), &(onx_save_options){ .external = &out }), ONX_OK);
    onx_doc_free(doc);
    doc = load(f, at(f, "moved.onnx"));
    assert_int_equal(onx_save(f->cx, doc, at(f, "back.onnx"), &(onx_save_options){ .external = &in }), ONX_OK);
    onx_doc_free(doc);
    static const char *const names[] = { "same.onnx", "moved.onnx", "back.onnx" };
    for (int n = 0; n < 3; n++) {
        onx_str bytes;
        doc = load(f, at(f, names[n]));
        assert_int_equal(onx_tensor_bytes(doc, onx_doc_model(doc)->graph->initializer[0], &bytes), ONX_OK);
        assert_true(bytes.len == size);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(bytes.ptr[marks[k]], 'x');
            assert_int_equal(bytes.ptr[marks[k] ? marks[k] - 1 : 1], 0);
        }
        if (n != 1) {
            assert_true(size_of(at(f, names[n])) == (off_t)(h + size));
            assert_memory_equal(bytes.ptr - h, head, h);
        }
        onx_doc_free(doc);
    }
    stat(at(f, "back.onnx"), &st);
    assert_true(st.st_blocks < 1 << 16); /* the holes are kept */
}

static void test_io_file__save_bytes(void **state)
{
    fixture *f = *state;
    assert_int_equal(onx_save_bytes(f->cx, at(f, "x"), onx_str_of("hello")), ONX_OK);
    assert_int_equal(size_of(at(f, "x")), 5);
    assert_int_equal(onx_save_bytes(f->cx, at(f, "none/x"), onx_str_of("hello")), ONX_E_IO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_io_format__by_name),
        TEST(test_io_format__by_content),
        TEST(test_io_file__says_what_a_wrong_file_is),
        TEST(test_io_file__every_format_round_trips),
        TEST(test_io_file__saves_over_its_own_input),
        TEST(test_io_external__out_and_in),
        TEST(test_io_external__file_per_tensor_and_checksums),
        TEST(test_io_external__refusals),
        TEST(test_io_external__full_disk),
        TEST(test_io_file__references_are_kept),
        TEST(test_io_file__out_of_memory),
        TEST(test_io_file__beyond_4_gb),
        TEST(test_io_file__save_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
