/* test_infer_cases.c - inference for small models, from the files in tests/cases/infer. A case is a model as text; the
 * answer has a line for each value made by a node of the main graph, and the diagnostics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>
#include <onx/op.h>
#include <onx/text.h>

#include "unit/cases.h"

#include <dirent.h>

static void add_type(onx_ctx *cx, cases_buffer *out, onx_str name, const onx_type *type)
{
    cases_add(out, name.ptr, name.len);
    cases_add_text(out, ": ");
    if (!type)
        cases_add_text(out, "not known");
    else
        assert_int_equal(onx_text_print(cx, ONX_KIND_TYPE, type, NULL, (onx_sink){ cases_collect, out }), ONX_OK);
    while (out->ptr[out->len - 1] == '\n')
        out->ptr[--out->len] = 0;
    cases_add_text(out, "\n");
}

static cases_buffer answer(onx_str title, onx_str text)
{
    (void)title;
    const onx_infer_options options = { .check_type = true };
    cases_buffer out = { NULL, 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_infer *infer = NULL;
    cases_add(&out, "", 0);
    if (onx_text_parse(cx, ONX_KIND_MODEL, text, 0, &doc) == ONX_OK &&
        onx_infer_new(cx, doc, &options, &infer) == ONX_OK) {
        const onx_graph *graph = onx_doc_model(doc)->graph;
        for (uint32_t i = 0; i < graph->node_count; i++)
            for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
                if (onx_view(graph->node[i]->output[k]).len)
                    add_type(cx, &out, onx_view(graph->node[i]->output[k]),
                             onx_infer_type(infer, graph, onx_view(graph->node[i]->output[k])));
    }
    cases_add_diagnostics(cx, &out);
    onx_infer_free(infer);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return out;
}

static void test_infer_cases__all(void **state)
{
    (void)state;
    const char *folder = ONX_SOURCE_DIR "/tests/cases/infer";
    DIR *dir = opendir(folder);
    size_t files = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        const size_t len = strlen(entry->d_name);
        if (len < 5 || strcmp(entry->d_name + len - 5, ".case") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files++;
        cases_buffer file = cases_read(path);
        const onx_str domain = cases_need(&file);
        if (!domain.len || onx_domain_newest(domain))
            cases_run(path, 1, answer);
        else
            print_message("%s is for a build with the domain %.*s\n", path, ONX_ARG(domain));
        free(file.ptr);
    }
    closedir(dir);
    assert_true(files > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_infer_cases__all) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
