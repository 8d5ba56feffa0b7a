/* test_run_rewrite.c - every rule of run_rules.def on a model made from its pattern: the replacement runs, gives what
 * the nodes give, and gives way to them for operands that it cannot take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include "run/run.h"

#include <math.h>

typedef struct outcome {
    onx_status status;
    uint32_t rank;
    int64_t dims[8];
    uint64_t count;
    float y[512];
    uint32_t steps;
    char last[64]; /* operator that ran last */
} outcome;

static void note(void *user, const onx_run_event *event)
{
    outcome *o = user;
    o->steps++;
    snprintf(o->last, sizeof o->last, "%.*s", ONX_ARG(event->op_type));
}

/* What is among the elements of the first input. */
typedef enum among { FINITE, SOME_NAN, SOME_INFINITE, AMONG_COUNT } among;

static void fill(onx_value *v, among special)
{
    float *x = v->data;
    for (uint64_t i = 0; i < v->count; i++)
        x[i] = special == SOME_NAN && i % 11 == 3        ? NAN
               : special == SOME_INFINITE && i % 29 == 3 ? INFINITY
               : special == SOME_INFINITE && i % 31 == 5 ? -INFINITY
                                                         : (float)((int64_t)(i * 7919 % 61) - 30) / 8;
}

/* Runs the model on inputs of such dims; `dims` has a list per input, ended by -1. */
static void run_on(const char *text, const int64_t (*dims)[8], among special, bool no_optimize, outcome *out)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_session *session = NULL;
    memset(out, 0, sizeof *out);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK) {
        char why[400];
        onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
        fail_msg("%s\n%s", why, text);
    }
    const onx_session_options options = { .threads = 1, .no_optimize = no_optimize };
    out->status = onx_session_new(cx, doc, &options, &session);
    onx_value *in[4] = { NULL }, *y = NULL;
    const onx_value *given[4] = { NULL };
    if (out->status == ONX_OK) {
        for (uint32_t i = 0; i < onx_session_input_count(session); i++) {
            uint32_t rank = 0;
            while (dims[i][rank] >= 0)
                rank++;
            assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, rank, dims[i], &in[i]), ONX_OK);
            fill(in[i], i ? FINITE : special);
            given[i] = in[i];
        }
        const onx_run_options watch = { .event = note, .user = out };
        out->status = onx_session_run_with(session, cx, given, &y, &watch);
    }
    if (out->status == ONX_OK) {
        assert_true(y->count <= 512 && y->rank <= 8);
        out->rank = y->rank;
        out->count = y->count;
        for (uint32_t d = 0; d < y->rank; d++)
            out->dims[d] = y->dims[d];
        memcpy(out->y, y->data, y->count * sizeof *out->y);
    }
    onx_value_free(y);
    for (uint32_t i = 0; i < 4; i++)
        onx_value_free(in[i]);
    onx_session_free(session);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void run(const char *text, const int64_t (*dims)[8], bool no_optimize, outcome *out)
{
    run_on(text, dims, FINITE, no_optimize, out);
}

/* A model that calls the pattern as a function, which the runner inlines. */
static uint32_t model_of(const onxi_run_rule *rule, const char *axis, char *text, size_t size)
{
    char ports[128] = "", call[128] = "", attributes[128] = "";
    const char *open = strchr(rule->pattern, '(') + 1, *close = strchr(open, ')');
    uint32_t inputs = 0;
    for (const char *at = open; at < close; at += strcspn(at, ",)") + 1) {
        at += strspn(at, " ");
        int len = (int)strcspn(at, ",)");
        size_t used = strlen(ports), called = strlen(call);
        snprintf(ports + used, sizeof ports - used, "%sfloat[] %.*s", inputs ? ", " : "", len, at);
        snprintf(call + called, sizeof call - called, "%s%.*s", inputs++ ? ", " : "", len, at);
    }
    if (strstr(rule->pattern, "<axes, epsilon>"))
        snprintf(attributes, sizeof attributes, "<axes = [%s], epsilon = 0.001>", axis);
    else if (strstr(rule->pattern, "<alpha>"))
        snprintf(attributes, sizeof attributes, "<alpha = 1.702>");
    snprintf(text, size,
             "<ir_version: 9, opset_import: [\"\" : 17, \"onx\" : 1]>\ng (%s) => (float[] y) { y = onx.P %s (%s) }\n%s",
             ports, attributes, call, rule->pattern);
    return inputs;
}

static void same(const outcome *a, const outcome *b, const onxi_run_rule *rule)
{
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, sizeof a->dims);
    for (uint64_t i = 0; i < a->count; i++)
        if (!(isnan(a->y[i]) && isnan(b->y[i])) && a->y[i] != b->y[i] &&
            !(fabsf(a->y[i] - b->y[i]) <= 2e-5f * (1 + fabsf(b->y[i])) && isfinite(b->y[i])))
            fail_msg("%s: element %u is %g, expected %g", rule->name, (unsigned)i, (double)a->y[i], (double)b->y[i]);
}

static const int64_t usual[][8] = { { 2, 3, 5, -1 }, { 5, -1 }, { 5, -1 } };
static const int64_t broad[][8] = { { 2, 5, 37, -1 }, { 37, -1 }, { 37, -1 } }; /* more than a vector, and a rest */

static void test_run_rewrite__every_rule_is_used(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[4096];
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++) {
        model_of(rule, "-1", text, sizeof text);
        run(text, usual, false, &rewritten);
        run(text, usual, true, &plain);
        assert_int_equal(plain.status, ONX_OK);
        same(&rewritten, &plain, rule);
        assert_true(plain.steps > 1);
        if (rewritten.steps != 1 || !strstr(rule->replacement, rewritten.last))
            fail_msg("%s: %u steps, the last one %s", rule->name, (unsigned)rewritten.steps, rewritten.last);
    }
}

/* An operator keeps the NaN and infinities that the nodes make, and makes no others. */
static void test_run_rewrite__nan_and_infinities(void **state)
{
    (void)state;
    static outcome rewritten, nodes;
    static char text[4096];
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++)
        for (among special = FINITE; special < AMONG_COUNT; special++) {
            model_of(rule, "-1", text, sizeof text);
            run_on(text, broad, special, false, &rewritten);
            run_on(text, broad, special, true, &nodes);
            assert_int_equal(nodes.status, ONX_OK);
            same(&rewritten, &nodes, rule);
        }
}

/* What the nodes take and the operator does not: scales that add axes, axes that are not the last. */
static void test_run_rewrite__gives_way_to_the_nodes(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[4096];
    static const int64_t wide[][8] = { { 3, 5, -1 }, { 2, 1, 5, -1 }, { 5, -1 } };
    static const int64_t longer[][8] = { { 3, 1, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t empty[][8] = { { 0, 5, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t wrong[][8] = { { 3, 5, -1 }, { 4, -1 }, { 5, -1 } };
    static const char *const axes[] = { "-1", "0", "1", "2" };
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++)
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
            model_of(rule, axes[a], text, sizeof text);
            const int64_t(*const shapes[])[8] = { usual, wide, longer, empty, wrong };
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                run(text, shapes[s], false, &rewritten);
                run(text, shapes[s], true, &plain);
                same(&rewritten, &plain, rule);
            }
        }
}

/* A value inside that is needed outside, too, keeps its nodes. */
static void test_run_rewrite__needed_inside(void **state)
{
    (void)state;
    static outcome out;
    run("<ir_version: 9, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] z) {"
        " s = Sigmoid (x) y = Mul (x, s) z = Add (y, s) }",
        usual + 1, false, &out);
    assert_int_equal(out.status, ONX_OK);
    assert_int_equal(out.steps, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_rewrite__every_rule_is_used),
        cmocka_unit_test(test_run_rewrite__nan_and_infinities),
        cmocka_unit_test(test_run_rewrite__gives_way_to_the_nodes),
        cmocka_unit_test(test_run_rewrite__needed_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
