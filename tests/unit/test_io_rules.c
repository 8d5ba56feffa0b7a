/* test_io_rules.c - the rules for writing and opening files: each with an example that breaks it and one that follows
 * it. The table of tests/cases/check names these functions. */
#include <onx/check.h>
#include <onx/io.h>
#include <onx/text.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "unit/file_fixture.h"

static bool has_rule(const fixture *f, const char *rule)
{
    for (size_t i = 0; i < onx_diag_count(f->cx); i++)
        if (onx_diag_get(f->cx, i)->rule && strcmp(onx_diag_get(f->cx, i)->rule, rule) == 0)
            return true;
    return false;
}

static onx_doc *parse(fixture *f, const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(f->cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

/* ---- M-08, V-26: what identifies a model, and its ir_version, come through ---- */

static const char *const names[] = { "m.onnx", "m.textproto", "m.json", "m.onnxtxt" };

static void comes_back(fixture *f, const char *text)
{
    onx_doc *doc = parse(f, text);
    const onx_model *a = onx_doc_model(doc);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        onx_doc *back;
        assert_int_equal(onx_save(f->cx, doc, at(f, names[i]), NULL), ONX_OK);
        assert_int_equal(onx_load(f->cx, ONX_KIND_MODEL, f->path, NULL, &back), ONX_OK);
        const onx_model *b = onx_doc_model(back);
        assert_int_equal(a->ir_version, b->ir_version);
        assert_int_equal(a->model_version, b->model_version);
        assert_int_equal(ONX_HAS(model, a, model_version), ONX_HAS(model, b, model_version));
        assert_true(onx_str_equal(onx_view(a->domain), onx_view(b->domain)));
        assert_true(onx_str_equal(onx_view(a->graph->name), onx_view(b->graph->name)));
        onx_doc_free(back);
    }
    onx_doc_free(doc);
}

/* M-08: domain, model_version and graph name, in every format. */
static void test_io_rules__m08_held(void **state)
{
    comes_back(
        *state,
        "<ir_version: 10, opset_import: [\"\" : 21], domain: \"com.example\", model_version: 77> net () => () {}");
}

/* M-08: a model that lacks them is not given any. */
static void test_io_rules__m08_broken(void **state)
{
    comes_back(*state, "<ir_version: 10, opset_import: [\"\" : 21]> g () => () {}");
}

/* V-26: an ir_version that suits the features. */
static void test_io_rules__v26_held(void **state)
{
    comes_back(*state, "<ir_version: 10, opset_import: [\"\" : 21]> g (int4[2] x) => (int4[2] x) {}");
}

/* V-26: one that is too low for them stays so, as nobody asked for another. */
static void test_io_rules__v26_broken(void **state)
{
    comes_back(*state, "<ir_version: 3, opset_import: [\"\" : 21]> g (int4[2] x) => (int4[2] x) {}");
}

/* ---- W-26: messages that other readers refuse ---- */

/* A tensor of so many bytes, none of which takes memory. */
static onx_status read_large(fixture *f, uint64_t size)
{
    enum { HEAD = 16 };
    onx_doc *doc;
    unsigned char *bytes =
        mmap(NULL, HEAD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return ONX_E_MEMORY;
    size_t n = 0;
    bytes[n++] = 0x10; /* data_type: UINT8 */
    bytes[n++] = 0x02;
    bytes[n++] = 0x4a; /* raw_data */
    uint64_t rest = size;
    for (; rest > 0x7f; rest >>= 7)
        bytes[n++] = (unsigned char)(rest | 0x80);
    bytes[n++] = (unsigned char)rest;
    onx_status status = onx_read(f->cx, ONX_KIND_TENSOR, onx_str_make((const char *)bytes, n + size), 0, 1, &doc);
    if (status == ONX_OK) {
        assert_true(onx_view(((const onx_tensor *)onx_doc_root(doc, ONX_KIND_TENSOR))->raw_data).len == size);
        onx_doc_free(doc);
    }
    munmap(bytes, HEAD + size);
    return status;
}

static void test_io_rules__w26_broken(void **state)
{
    fixture *f = *state;
    onx_status status = read_large(f, (uint64_t)0x80000000);
    if (status == ONX_E_MEMORY)
        skip(); /* no address space for it */
    assert_int_equal(status, ONX_OK);
    assert_true(has_rule(f, "W-26"));
    assert_int_equal(onx_diag_total(f->cx, ONX_WARNING), 1);
}

static void test_io_rules__w26_held(void **state)
{
    fixture *f = *state;
    assert_int_equal(read_large(f, (uint64_t)0x7fffff00), ONX_OK);
    assert_int_equal(onx_diag_total(f->cx, ONX_WARNING), 0);
}

/* ---- E-11, E-30: what is opened is what was checked ---- */

#define EXTERNAL                                                                                                       \
    "ir_version: 10 opset_import { version: 21 } graph { name: \"g\" initializer { name: \"w\" dims: 2 data_type: 1 "  \
    "data_location: EXTERNAL external_data { key: \"location\" value: \"w.bin\" } } }"

static onx_doc *load_external(fixture *f)
{
    onx_doc *doc;
    put_text(at(f, "m.textproto"), EXTERNAL);
    assert_int_equal(onx_load(f->cx, ONX_KIND_MODEL, f->path, NULL, &doc), ONX_OK);
    return doc;
}

static onx_status read_weight(onx_doc *doc, onx_str *out)
{
    return onx_external_bytes(doc, onx_doc_model(doc)->graph->initializer[0], out);
}

/* E-11: swapped for a link between check and reading. */
static void test_io_rules__e11_broken(void **state)
{
    fixture *f = *state;
    onx_str bytes;
    put_text(at(f, "w.bin"), "abcdefgh");
    put_text(at(f, "other"), "password");
    onx_doc *doc = load_external(f);
    assert_int_equal(onx_check(f->cx, doc, NULL, NULL), ONX_OK);
    assert_int_equal(unlink(at(f, "w.bin")), 0);
    assert_int_equal(symlink("other", at(f, "w.bin")), 0);
    assert_int_equal(read_weight(doc, &bytes), ONX_E_INVALID);
    assert_int_equal(bytes.len, 0);
    assert_true(has_rule(f, "E-08"));
    onx_doc_free(doc);
}

/* E-11: once opened, the file stays the one that was opened, whatever its name stands for now. */
static void test_io_rules__e11_held(void **state)
{
    fixture *f = *state;
    onx_str bytes;
    put_text(at(f, "w.bin"), "abcdefgh");
    onx_doc *doc = load_external(f);
    assert_int_equal(onx_check(f->cx, doc, NULL, NULL), ONX_OK);
    assert_int_equal(read_weight(doc, &bytes), ONX_OK);
    assert_int_equal(unlink(at(f, "w.bin")), 0);
    put_text(at(f, "w.bin"), "password");
    assert_int_equal(read_weight(doc, &bytes), ONX_OK);
    assert_true(onx_str_is(bytes, "abcdefgh"));
    onx_doc_free(doc);
}

/* E-30: a name in other letters is another name; where the system thinks otherwise, it opens the same file. */
static void test_io_rules__e30_broken(void **state)
{
    fixture *f = *state;
    put_text(at(f, "W.bin"), "abcdefgh");
    bool blind = access(at(f, "w.bin"), F_OK) == 0;
    onx_doc *doc = load_external(f);
    onx_str bytes;
    assert_int_equal(read_weight(doc, &bytes), blind ? ONX_OK : ONX_E_INVALID);
    onx_doc_free(doc);
}

static void test_io_rules__e30_held(void **state)
{
    fixture *f = *state;
    put_text(at(f, "w.bin"), "abcdefgh");
    onx_doc *doc = load_external(f);
    onx_str bytes;
    assert_int_equal(read_weight(doc, &bytes), ONX_OK);
    onx_doc_free(doc);
}

/* ---- E-28, E-29: writing data files ---- */

static const char two_weights[] = "<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x) => (float[2] y) "
                                  "<float[2] v = {1, 2}, float[2] w = {3, 4}> { a = Add (x, v) y = Mul (a, w) }";

static onx_status save(fixture *f, const char *location, uint64_t alignment)
{
    onx_doc *doc = parse(f, two_weights);
    onx_external_options external = { .location = location, .threshold = 1, .alignment = alignment };
    onx_status status = onx_save(f->cx, doc, at(f, "m.onnx"), &(onx_save_options){ .external = &external });
    onx_doc_free(doc);
    return status;
}

/* E-28: through a link, over a link, out of the folder. */
static void test_io_rules__e28_broken(void **state)
{
    fixture *f = *state;
    char kept[8];
    put_text(at(f, "secret"), "secret!");
    assert_int_equal(mkdir(at(f, "inner"), 0700), 0);
    assert_int_equal(symlink("inner", at(f, "way")), 0);
    assert_int_not_equal(save(f, "way/w.bin", 0), ONX_OK);
    assert_int_equal(folder_entries(at(f, "inner")), 0);
    assert_int_not_equal(save(f, "../w.bin", 0), ONX_OK);
    assert_int_not_equal(save(f, "c:w.bin", 0), ONX_OK);
    assert_int_equal(symlink("secret", at(f, "link.bin")), 0);
    assert_int_not_equal(save(f, "link.bin", 0), ONX_OK);
    int fd = open(at(f, "secret"), O_RDONLY);
    assert_int_equal(read(fd, kept, sizeof kept), 7);
    close(fd);
    assert_memory_equal(kept, "secret!", 7);
}

/* E-28: with the mode that the umask gives, one tensor behind the other. */
static void test_io_rules__e28_held(void **state)
{
    fixture *f = *state;
    struct stat st;
    float data[4] = { 0 };
    const mode_t before = umask(027);
    assert_int_equal(save(f, "w.bin", 8), ONX_OK);
    umask(before);
    assert_int_equal(stat(at(f, "w.bin"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, sizeof data);
    int fd = open(at(f, "w.bin"), O_RDONLY);
    assert_int_equal(read(fd, data, sizeof data), sizeof data);
    close(fd);
    assert_true(data[0] == 1 && data[1] == 2 && data[2] == 3 && data[3] == 4);
}

/* E-29: gaps of more than 64 KiB. */
static void test_io_rules__e29_broken(void **state)
{
    fixture *f = *state;
    assert_int_equal(save(f, "w.bin", 1 << 17), ONX_E_MISUSE);
    assert_true(has_rule(f, "E-29"));
    assert_int_not_equal(access(at(f, "w.bin"), F_OK), 0);
}

/* E-29: the widest gap that is allowed, filled with zeros. */
static void test_io_rules__e29_held(void **state)
{
    enum { GAP = 1 << 16 };
    static char data[GAP + 9];
    fixture *f = *state;
    assert_int_equal(save(f, "w.bin", GAP), ONX_OK);
    int fd = open(at(f, "w.bin"), O_RDONLY);
    assert_int_equal(read(fd, data, sizeof data), GAP + 8);
    close(fd);
    for (int i = 8; i < GAP; i++)
        assert_int_equal(data[i], 0);
    const float w[] = { 3, 4 };
    assert_memory_equal(data + GAP, w, sizeof w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_io_rules__m08_held),   TEST(test_io_rules__m08_broken), TEST(test_io_rules__v26_held),
        TEST(test_io_rules__v26_broken), TEST(test_io_rules__w26_broken), TEST(test_io_rules__w26_held),
        TEST(test_io_rules__e11_broken), TEST(test_io_rules__e11_held),   TEST(test_io_rules__e30_broken),
        TEST(test_io_rules__e30_held),   TEST(test_io_rules__e28_broken), TEST(test_io_rules__e28_held),
        TEST(test_io_rules__e29_broken), TEST(test_io_rules__e29_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
