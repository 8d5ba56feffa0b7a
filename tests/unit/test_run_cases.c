/* test_run_cases.c - operators on small inputs, from the files of tests/cases/op. Inputs of the graph have values;
 * every case runs with the values as constants and as inputs, with fast kernels and with plain ones, and all must
 * give the written result: integers and text exactly, floats within the tolerance after "---" (run_types.h,
 * run_values.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/io.h>
#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "unit/cases.h"
#include "unit/run_coverage.h"
#include "unit/run_types.h"

#include <dirent.h>

/* Values of the initializers that belong to inputs. */
static void values_of(onx_ctx *cx, onx_doc *doc, onx_session *s, onx_value **inputs)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < onx_session_input_count(s); i++)
        for (uint32_t k = 0; k < g->initializer_count; k++)
            if (onx_str_equal(onx_session_input(s, i).name, onx_view(g->initializer[k]->name)))
                assert_int_equal(onx_value_from_message(cx, doc, ONX_KIND_TENSOR, g->initializer[k], &inputs[i]),
                                 ONX_OK);
}

static onx_status run_once(onx_ctx *cx, onx_doc *doc, bool plain, bool given, onx_value **outputs)
{
    onx_session *s;
    onx_session_options options = { .verify = true, .threads = 1, .plain = plain };
    ONX_TRY(onx_session_new(cx, doc, &options, &s));
    onx_value *inputs[16] = { NULL };
    assert_true(onx_session_input_count(s) <= 16 && onx_session_output_count(s) <= 16);
    if (given)
        values_of(cx, doc, s, inputs);
    onx_status status = onx_session_run(s, cx, (const onx_value *const *)inputs, outputs);
    for (int again = 0; status == ONX_OK && again < 2; again++) /* what a run leaves behind does not matter */
        status = onx_session_run(s, cx, (const onx_value *const *)inputs, outputs);
    for (int i = 0; i < 16; i++)
        onx_value_free(inputs[i]);
    onx_session_free(s);
    return status;
}

/* Whether the outputs are what the case wants; *got_out gets them as text. */
static bool judge(const onx_graph *g, onx_value **outputs, onx_str want, const run_types *types,
                  const run_tolerance *tolerance, cases_buffer *got_out)
{
    bool same = true;
    for (uint32_t i = 0; i < g->output_count; i++) {
        onx_str name = onx_view(g->output[i]->name);
        run_add_value(got_out, name, outputs[i]);
        /* the type stands after the name and a colon; one letter may stand for it */
        const char *written = want.ptr + name.len + 2;
        run_take(&want, "", 0);
        size_t left = want.len > name.len + 2 ? 1 : 0;
        onx_str letter = run_name_of_type(types, outputs[i]->dtype, left ? want.ptr + name.len + 2 : written, left);
        same = same && run_take_value(&want, name, outputs[i], letter, tolerance);
    }
    run_take(&want, "", 0);
    return same && want.len == 0;
}

static const char *const ways[] = { "fast kernels, constants", "plain kernels, constants", "fast kernels, inputs",
                                    "plain kernels, inputs" };

/* Whether the run failed because this version of the operator does not take or give the type. */
static bool is_foreign_type(const onx_ctx *cx)
{
    char last[512] = "";
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, onx_diag_count(cx) - 1), last, sizeof last);
    return strstr(last, " does not take") || strstr(last, " does not give") || strstr(last, "error: no kernel runs ");
}

/* One case for one choice of types, in all four ways; stops at the first that differs. False: not of this version. */
static bool run_case(cases_case *c, onx_str text, const run_types *types, const run_tolerance *tolerance)
{
    static const char folder[] = ONX_SOURCE_DIR "/tests/cases/op/files"; /* what models read */
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, text, 0, &doc) != ONX_OK || onx_doc_set_base_dir(doc, folder) != ONX_OK) {
        cases_add_diagnostics(cx, &c->got);
        onx_ctx_free(cx);
        return true;
    }
    bool foreign = false;
    const onx_graph *g = onx_doc_model(doc)->graph;
    c->same = true;
    for (int way = 0; way < 4 && c->same && !foreign; way++) {
        onx_value *outputs[16] = { NULL };
        cases_buffer got = { NULL, 0 };
        cases_add(&got, "", 0);
        onx_diag_clear(cx);
        if (run_once(cx, doc, way & 1, way & 2, outputs) == ONX_OK) {
            c->same = judge(g, outputs, c->want, types, tolerance, &got);
        } else if (way == 0 && run_has_versions(types) && is_foreign_type(cx)) {
            foreign = true;
        } else if (way == 0) { /* the wording of constants; other ways may say it of another place */
            cases_add_diagnostics(cx, &got);
            c->same = onx_str_equal(onx_str_make(got.ptr, got.len ? got.len - 1 : 0), c->want);
        } else {
            c->same = strstr(c->want.ptr, "error: ") != NULL;
        }
        for (int i = 0; i < 16; i++)
            onx_value_free(outputs[i]);
        if (!c->same || way == 0) {
            free(c->got.ptr);
            c->got = got;
        } else {
            free(got.ptr);
        }
        if (!c->same && way > 0)
            print_error("%.*s: %s\n", ONX_ARG(c->title), ways[way]);
    }
    onx_diag_clear(cx);
    if (c->same && !foreign && strstr(c->want.ptr, "error: ") != c->want.ptr)
        run_coverage_add(c->user, cx, doc);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return !foreign;
}

static void visit(cases_case *c)
{
    run_types types;
    run_tolerance tolerance;
    run_read_options(c->options, &types, &tolerance);
    bool ran = false;
    do {
        cases_buffer text = run_with_types(&types, c->text);
        free(c->got.ptr);
        c->got = (cases_buffer){ NULL, 0 };
        cases_add(&c->got, "", 0);
        ran |= run_case(c, onx_str_make(text.ptr, text.len), &types, &tolerance);
        free(text.ptr);
        if (!c->same)
            run_say_types(&types, c->title);
    } while (c->same && run_next_types(&types));
    if (!ran) {
        c->same = false;
        print_error("%.*s: no version takes any of the types\n", ONX_ARG(c->title));
    }
    while (c->got.len && c->got.ptr[c->got.len - 1] == '\n')
        c->got.ptr[--c->got.len] = 0;
}

/* ---- all files of the folder ---- */

#ifdef ONX_WITH_PCRE2
#define HAS_PCRE2 true
#else
#define HAS_PCRE2 false
#endif
#ifdef ONX_WITH_UTF8PROC
#define HAS_UTF8PROC true
#else
#define HAS_UTF8PROC false
#endif
#ifdef ONX_WITH_SNDFILE
#define HAS_SNDFILE true
#else
#define HAS_SNDFILE false
#endif
#ifdef ONX_WITH_MPG123
#define HAS_MPG123 true
#else
#define HAS_MPG123 false
#endif
#ifdef ONX_WITH_LEPTONICA
#define HAS_LEPTONICA true
#else
#define HAS_LEPTONICA false
#endif

/* A library by its name, or a domain, which has a dot in it. */
static bool has_part(const char *path, onx_str name)
{
    const struct {
        const char *name;
        bool there;
    } parts[] = { { "pcre2", HAS_PCRE2 },
                  { "utf8proc", HAS_UTF8PROC },
                  { "leptonica", HAS_LEPTONICA },
                  { "sndfile", HAS_SNDFILE },
                  { "mpg123", HAS_MPG123 } };
    if (memchr(name.ptr, '.', name.len))
        return onxi_domain_newest(name) > 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (onx_str_is(name, parts[i].name))
            return parts[i].there;
    fail_msg("%s needs \"%.*s\", which nobody knows", path, ONX_ARG(name));
    return false;
}

/* The first line of a file may be "# needs: pcre2" or "# needs: no pcre2", or several of these. */
static bool suits_build(const char *path)
{
    cases_buffer file = cases_read(path);
    const onx_str need = cases_need(&file);
    bool suits = true, without = false;
    for (size_t at = 0, size; at < need.len; at += size + 1) {
        const char *space = memchr(need.ptr + at, ' ', need.len - at);
        size = space ? (size_t)(space - need.ptr) - at : need.len - at;
        const onx_str word = onx_str_make(need.ptr + at, size);
        if (onx_str_is(word, "no")) {
            without = true;
            continue;
        }
        suits &= has_part(path, word) != without;
        without = false;
    }
    free(file.ptr);
    return suits;
}

/* What a file is run with. */
typedef struct file_state {
    char path[sizeof ONX_SOURCE_DIR + 288];
    run_coverage *coverage;
} file_state;

static void run_file(void **state)
{
    file_state *file = *state;
    const char *path = file->path;
    if (!suits_build(path)) {
        print_message("%s is for another build\n", path);
        skip();
    }
    assert_true(cases_visit(path, visit, file->coverage) > 0);
}

/* After all files: what the kernels claim has numbers. */
static void covers_all(void **state)
{
    if (!(HAS_PCRE2 && HAS_UTF8PROC && HAS_LEPTONICA)) {
        print_message("this build lacks a library, so some files did not run\n");
        skip();
    }
    assert_int_equal(run_coverage_report(*state), 0);
}

enum { FILES_MAX = 256 };

int main(void)
{
    static const char folder[] = ONX_SOURCE_DIR "/tests/cases/op";
    struct dirent **entries = NULL;
    struct CMUnitTest tests[FILES_MAX + 1];
    static file_state files[FILES_MAX];
    static run_coverage coverage;
    size_t count = 0;
    int found = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && strcmp(dot, ".case") == 0 && count < FILES_MAX) {
            file_state *file = &files[count];
            file->coverage = &coverage;
            snprintf(file->path, sizeof file->path, "%s/%s", folder, entries[i]->d_name);
            tests[count++] = (struct CMUnitTest){ .name = strrchr(file->path, '/') + 1,
                                                  .test_func = run_file,
                                                  .initial_state = file };
        }
        free(entries[i]);
    }
    free(entries);
    if (!count || count == FILES_MAX) {
        fprintf(stderr, "%zu files in %s\n", count, folder);
        return 1;
    }
    run_coverage_make(&coverage);
    tests[count++] = (struct CMUnitTest){ .name = "every operator on every type",
                                          .test_func = covers_all,
                                          .initial_state = &coverage };
    return _cmocka_run_group_tests("cases", tests, count, NULL, NULL);
}
