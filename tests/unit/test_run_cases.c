/* test_run_cases.c - operators on small inputs, from the files of tests/cases/op. Inputs of the graph carry values;
 * every case runs with the values as constants and as inputs, with fast kernels and with plain ones: all must agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "unit/cases.h"

static void add_number(cases_buffer *b, const onx_value *v, uint64_t i)
{
    char text[48];
    unsigned bits = onx_dtype_bits(v->dtype);
    if (v->dtype == ONX_STRING) {
        onx_str s = ((const onx_str *)v->data)[i];
        cases_add_text(b, "\"");
        cases_add(b, s.ptr ? s.ptr : "", s.len);
        cases_add_text(b, "\"");
        return;
    }
    assert_true(bits >= 8);
    double x = 0;
    onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, (const char *)v->data + i * (bits / 8), 1, true);
    snprintf(text, sizeof text, "%.5g", x);
    cases_add_text(b, text);
}

static void add_value(cases_buffer *b, onx_str name, const onx_value *v)
{
    char text[48];
    cases_add(b, name.ptr, name.len);
    assert_int_equal(v->kind, ONX_VALUE_TENSOR);
    snprintf(text, sizeof text, ": %s[", onx_dtype_name(v->dtype));
    cases_add_text(b, text);
    for (uint32_t i = 0; i < v->rank; i++) {
        snprintf(text, sizeof text, "%s%lld", i ? "," : "", (long long)v->dims[i]);
        cases_add_text(b, text);
    }
    cases_add_text(b, "] {");
    for (uint64_t i = 0; i < v->count; i++) {
        cases_add_text(b, i ? ", " : "");
        add_number(b, v, i);
    }
    cases_add_text(b, "}\n");
}

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
    onx_session_options options = { .threads = 1, .plain = plain };
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

static cases_buffer answer_of(onx_str title, onx_str text)
{
    cases_buffer out = { NULL, 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    (void)title;
    cases_add(&out, "", 0);
    if (onx_text_parse(cx, ONX_KIND_MODEL, text, 0, &doc) != ONX_OK) {
        cases_add_diagnostics(cx, &out);
        onx_ctx_free(cx);
        return out;
    }
    onx_value *first[16] = { NULL };
    const onx_graph *g = onx_doc_model(doc)->graph;
    for (int way = 0; way < 4; way++) {
        onx_value *got[16] = { NULL };
        onx_status status = run_once(cx, doc, way & 1, way & 2, got);
        if (status != ONX_OK && way == 0)
            cases_add_diagnostics(cx, &out);
        onx_diag_clear(cx);
        for (uint32_t i = 0; i < g->output_count && status == ONX_OK; i++) {
            onx_value_difference d;
            if (way == 0)
                add_value(&out, onx_view(g->output[i]->name), got[i]);
            else if (!first[i] || !onx_value_close(got[i], first[i], 1e-4, 1e-6, &d))
                fail_msg("%.*s: way %d differs", (int)title.len, title.ptr, way);
        }
        for (int i = 0; i < 16; i++) {
            if (way == 0)
                first[i] = got[i];
            else
                onx_value_free(got[i]);
        }
        if ((status == ONX_OK) != (first[0] != NULL))
            fail_msg("%.*s: way %d fails where others do not, or the other way round", (int)title.len, title.ptr, way);
    }
    for (int i = 0; i < 16; i++)
        onx_value_free(first[i]);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return out;
}

static void run_file(const char *name, size_t least)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/cases/op/%s.case", ONX_SOURCE_DIR, name);
    cases_run(path, least, answer_of);
}

/* Files of cases, and how many there are at least in each. */
#define FILES(FILE)                                                                                                    \
    FILE(types, 5)                                                                                                     \
    FILE(window, 11)                                                                                                   \
    FILE(elementwise, 8)                                                                                               \
    FILE(product, 4)                                                                                                   \
    FILE(shape, 6)                                                                                                     \
    FILE(move, 20)                                                                                                     \
    FILE(function, 16)                                                                                                 \
    FILE(sequence, 13)                                                                                                 \
    FILE(index, 19)                                                                                                    \
    FILE(rearrange, 10)                                                                                                \
    FILE(quantize, 14)                                                                                                 \
    FILE(control, 25)                                                                                                  \
    FILE(resample, 13)                                                                                                 \
    FILE(region, 22)                                                                                                   \
    FILE(tree, 36)                                                                                                     \
    FILE(learned, 44)                                                                                                  \
    FILE(random, 5)                                                                                                    \
    FILE(rnn, 20)                                                                                                      \
    FILE(string, 20)                                                                                                   \
    FILE(attention, 17)                                                                                                \
    FILE(signal, 11)                                                                                                   \
    FILE(optimizer, 5)
#ifdef ONX_WITH_PCRE2
#define REGEX_FILES(FILE) FILE(regex, 35)
#else
#define REGEX_FILES(FILE) FILE(without_pcre2, 1)
#endif
#ifdef ONX_WITH_UTF8PROC
#define CASE_FILES(FILE) FILE(string_case, 2)
#else
#define CASE_FILES(FILE) FILE(without_utf8proc, 2)
#endif
#ifdef ONX_WITH_LEPTONICA
#define IMAGE_FILES(FILE) FILE(image, 4)
#else
#define IMAGE_FILES(FILE) FILE(without_leptonica, 1)
#endif

#define TEST(name, least)                                                                                              \
    static void test_run_cases__##name(void **state)                                                                   \
    {                                                                                                                  \
        (void)state, run_file(#name, least);                                                                           \
    }
FILES(TEST)
REGEX_FILES(TEST)
CASE_FILES(TEST)
IMAGE_FILES(TEST)

int main(void)
{
#define LIST(name, least) cmocka_unit_test(test_run_cases__##name),
    const struct CMUnitTest tests[] = { FILES(LIST) REGEX_FILES(LIST) CASE_FILES(LIST) IMAGE_FILES(LIST) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
