/* Every file of the reference implementation is the same, byte for byte, after it is read and written unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ir/ir.h"

#include <onx/io.h>

#include "conformance.h"

static unsigned files, failures;

/* A path in `out`, which holds CONFORMANCE_PATH bytes; is there such a file? */
static bool join(char *out, const char *format, ...) ONX_PRINTF(2, 3);
static bool join(char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, CONFORMANCE_PATH, format, args);
    va_end(args);
    struct stat st;
    return n > 0 && n < CONFORMANCE_PATH && stat(out, &st) == 0;
}

static onx_kind kind_of_type(const onx_type *type)
{
    if (type && ONX_HAS(type, type, sequence_type))
        return ONX_KIND_SEQUENCE;
    if (type && ONX_HAS(type, type, optional_type))
        return ONX_KIND_OPTIONAL;
    if (type && ONX_HAS(type, type, map_type))
        return ONX_KIND_MAP;
    if (type && ONX_HAS(type, type, sparse_tensor_type))
        return ONX_KIND_SPARSE_TENSOR;
    return ONX_KIND_TENSOR;
}

static void fail_file(const char *path, const char *why, const onx_ctx *cx)
{
    char text[512] = "";
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), text, sizeof(text));
    print_error("%s: %s %s\n", path, why, text);
    failures++;
}

/* Reads and writes one file; the document is handed over when asked for. */
static void try_file(onx_ctx *cx, const char *path, onx_kind kind, onx_doc **doc_out, onxi_file *file_out)
{
    onxi_file file;
    onx_doc *doc = NULL;
    onx_buffer buffer;
    files++;
    if (onxi_file_open(cx, path, &file) != ONX_OK) {
        fail_file(path, "cannot be opened", cx);
        return;
    }
    if (onx_read(cx, kind, file.bytes, 0, 1, &doc) != ONX_OK) {
        fail_file(path, "cannot be read", cx);
    } else if (onx_write(cx, kind, onx_doc_root(doc, kind), file.bytes.len, &buffer) != ONX_OK) {
        fail_file(path, "cannot be written", cx);
    } else {
        if (!onx_str_equal(onx_str_make(buffer.ptr, buffer.len), file.bytes))
            fail_file(path, "comes back with other bytes", cx);
        onx_buffer_free(&buffer);
    }
    onx_diag_clear(cx);
    if (doc_out) {
        *doc_out = doc;
        *file_out = file;
        return;
    }
    onx_doc_free(doc);
    onxi_file_close(cx, &file);
}

/* input_N.pb and output_N.pb of one data set hold values of the graph's inputs and outputs. */
static void try_data_set(onx_ctx *cx, const char *dir, const onx_graph *graph)
{
    static const char *const sides[] = { "input", "output" };
    for (int side = 0; side < 2; side++) {
        onx_value_info **values = side ? graph->output : graph->input;
        uint32_t count = side ? graph->output_count : graph->input_count;
        for (uint32_t i = 0; i < count; i++) {
            char path[CONFORMANCE_PATH];
            if (join(path, "%s/%s_%u.pb", dir, sides[side], i))
                try_file(cx, path, kind_of_type(values[i]->type), NULL, NULL);
        }
    }
}

static void try_case(void *user, const char *dir, const char *model_path)
{
    onx_ctx *cx = user;
    onx_doc *doc = NULL;
    onxi_file file;
    try_file(cx, model_path, ONX_KIND_MODEL, &doc, &file);
    if (!doc)
        return;
    const onx_graph *graph = onx_doc_model(doc)->graph;
    for (int i = 0; graph; i++) {
        char path[CONFORMANCE_PATH];
        if (!join(path, "%s/test_data_set_%d", dir, i))
            break;
        try_data_set(cx, path, graph);
    }
    onx_doc_free(doc);
    onxi_file_close(cx, &file);
}

static const char *root_dir;

static void test_roundtrip__every_reference_file_comes_back_byte_for_byte(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    assert_non_null(cx);
    conformance_walk(root_dir, 0, try_case, cx);
    onx_ctx_free(cx);
    print_message("%u files below %s\n", files, root_dir);
    assert_true(files > 1000);
    assert_int_equal(failures, 0);
}

int main(void)
{
    root_dir = conformance_dir();
    if (!root_dir)
        return CONFORMANCE_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roundtrip__every_reference_file_comes_back_byte_for_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
