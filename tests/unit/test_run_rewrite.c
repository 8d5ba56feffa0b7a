/* test_run_rewrite.c - every rule of run_rules.def on a model made from its pattern: the replacement runs, gives what
 * the nodes give, and gives way to them for operands that it cannot take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include "run/run.h"

#include <math.h>

enum { OUTPUT_MAX = 4096, INPUTS_MAX = 9 };

typedef struct outcome {
    onx_status status;
    uint32_t rank;
    int64_t dims[8];
    uint64_t count;
    float y[OUTPUT_MAX];
    uint32_t steps;
    char last[64]; /* operator that ran last */
    char why[200]; /* it failed */
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

static void fill_bool(onx_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        ((uint8_t *)v->data)[i] = i % 3 != 0;
}

/* Inputs of attention beside the first three; SHAPE and BACK are constants, of which the list is the value. */
enum { MASK = 3, KEEP, HIDE, MORE, SHAPE, BACK };

/* Runs the model on inputs of such dims; `dims` has a list per input, ended by -1; of SHAPE and BACK it is the value.
 */
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
    onx_value *in[INPUTS_MAX] = { NULL }, *y = NULL;
    const onx_value *given[INPUTS_MAX] = { NULL };
    if (out->status == ONX_OK) {
        for (uint32_t i = 0; i < onx_session_input_count(session); i++) {
            uint32_t rank = 0;
            while (dims[i][rank] >= 0)
                rank++;
            const bool boolean = i == KEEP || i == HIDE;
            assert_int_equal(onx_value_new_tensor(cx, boolean ? ONX_BOOL : ONX_FLOAT, rank, dims[i], &in[i]), ONX_OK);
            if (boolean)
                fill_bool(in[i]);
            else
                fill(in[i], i ? FINITE : special);
            for (uint64_t k = 0; i == MASK && special == SOME_INFINITE && k < in[i]->count / 2; k++)
                ((float *)in[i]->data)[k] = -INFINITY; /* whole rows of scores */
            given[i] = in[i];
        }
        const onx_run_options watch = { .event = note, .user = out };
        out->status = onx_session_run_with(session, cx, given, &y, &watch);
    }
    if (out->status == ONX_OK) {
        assert_true(y->count <= OUTPUT_MAX && y->rank <= 8);
        out->rank = y->rank;
        out->count = y->count;
        for (uint32_t d = 0; d < y->rank; d++)
            out->dims[d] = y->dims[d];
        memcpy(out->y, y->data, y->count * sizeof *out->y);
    }
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), out->why, sizeof out->why);
    onx_value_free(y);
    for (uint32_t i = 0; i < INPUTS_MAX; i++)
        onx_value_free(in[i]);
    onx_session_free(session);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void run(const char *text, const int64_t (*dims)[8], bool no_optimize, outcome *out)
{
    run_on(text, dims, FINITE, no_optimize, out);
}

/* Names between ( and ) behind `at`, one after the other. */
static const char *next_name(const char *at, const char *end, int *length)
{
    at += strspn(at, " ,");
    *length = (int)strcspn(at, " ,)>");
    return at < end && *length ? at : NULL;
}

/* A model that calls the pattern as a function, which the runner inlines. Optional nodes of which the bit is not set
 * hand on what they would change. */
static void model_of(const onxi_run_rule *rule, const char *axis, const int64_t (*dims)[8], uint32_t optional,
                     char *text, size_t size)
{
    static char body[4096];
    char ports[256] = "", call[256] = "", attributes[512] = "", constants[256] = "";
    const char *list = strchr(rule->pattern, '('), *close = strchr(list, ')');
    uint32_t inputs = 0;
    int len;
    for (const char *at = list + 1; (at = next_name(at, close, &len)); at += len) {
        size_t used = strlen(ports), called = strlen(call);
        char list_of[64] = "";
        snprintf(call + called, sizeof call - called, "%s%.*s", inputs ? ", " : "", len, at);
        if (inputs == SHAPE || inputs == BACK) {
            uint32_t rank = 0;
            for (uint32_t i = 0; dims[inputs][i] >= 0; i++, rank++) {
                used = strlen(list_of);
                snprintf(list_of + used, sizeof list_of - used, "%s%d", i ? ", " : "", (int)dims[inputs][i]);
            }
            used = strlen(constants);
            snprintf(constants + used, sizeof constants - used, "%sint64[%u] %.*s = {%s}", used ? ", " : "",
                     (unsigned)rank, len, at, list_of);
        } else {
            const char *type = inputs == KEEP || inputs == HIDE ? "bool" : "float";
            snprintf(ports + used, sizeof ports - used, "%s%s[] %.*s", inputs ? ", " : "", type, len, at);
        }
        inputs++;
    }
    const char *open = strchr(strchr(rule->pattern, 'P'), '<');
    for (const char *at = open && open < list ? open + 1 : list; (at = next_name(at, list, &len)); at += len) {
        const char *value = !strncmp(at, "axes", 4)         ? NULL
                            : !strncmp(at, "axis", 4)       ? axis
                            : !strncmp(at, "epsilon", 7)    ? "0.001"
                            : !strncmp(at, "alpha", 5)      ? "1.702"
                            : !strncmp(at, "scale", 5)      ? (strstr(rule->pattern, "Div (") ? "4.5" : "0.375")
                            : strstr(at, "_perm") == at + 1 ? "[0, 2, 1, 3]"
                                                            : "-100.0";
        size_t used = strlen(attributes);
        snprintf(attributes + used, sizeof attributes - used, "%s%.*s = %s%s%s", used ? ", " : "<", len, at,
                 value ? "" : "[", value ? value : axis, value ? "" : "]");
    }
    if (*attributes)
        strcat(attributes, ">");
    assert_true(strlen(rule->pattern) < sizeof body);
    strcpy(body, rule->pattern);
    for (char *at = body; (at = strstr(at, "[optional]")); at++, optional >>= 1) {
        memset(at, ' ', strlen("[optional]"));
        if (!(optional & 1)) { /* x = Op <..> (a, b) becomes x = Identity (a); of Where, the one that is made */
            char *op = strchr(at, '=') + 2, *arguments = strchr(op, '('), *end = strchr(arguments, ')'), made[32];
            const char *from = arguments + 1;
            if (strncmp(op, "Where (keep", 11) == 0)
                from = next_name(from + 4, end, &len);
            else if (strncmp(op, "Where (hide", 11) == 0)
                from = next_name(from + 7, end, &len);
            from = next_name(from, end, &len);
            snprintf(made, sizeof made, "Identity (%.*s", len, from);
            assert_true(strlen(body) + sizeof made < sizeof body);
            memmove(op + strlen(made), end, strlen(end) + 1);
            memcpy(op, made, strlen(made));
        }
    }
    const int written = snprintf(
        text, size,
        "<ir_version: 9, opset_import: [\"\" : 17, \"onx\" : 1]>\ng (%s) => (float[] y) %s%s%s { y = onx.P %s (%s) }\n%s",
        ports, *constants ? "<" : "", constants, *constants ? ">" : "", attributes, call, body);
    assert_true(written > 0 && (size_t)written < size);
}

/* How many optional nodes there are. */
static uint32_t optional_nodes(const onxi_run_rule *rule)
{
    uint32_t count = 0;
    for (const char *at = rule->pattern; (at = strstr(at, "[optional]")); at++)
        count++;
    return count;
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
/* Of attention: so that each Transpose may be there or not, and so that all dims differ. */
static const int64_t cubes[][8] = { { 2, 5, 5, 5, -1 },    { 2, 5, 5, 5, -1 },    { 2, 5, 5, 5, -1 },
                                    { 5, 5, -1 },          { 2, 1, 1, 5, -1 },    { 5, 5, -1 },
                                    { 1, 2, 1, 5, 5, -1 }, { 1, 2, 5, 5, 5, -1 }, { 2, 5, 5, 5, -1 } };
static const int64_t heads[][8] = { { 2, 21, 3, 20, -1 },    { 1, 20, 3, 103, -1 },    { 2, 103, 1, 9, -1 },
                                    { 21, 103, -1 },         { 3, 1, 103, -1 },        { 21, 1, -1 },
                                    { 2, 1, 1, 1, 103, -1 }, { 2, 1, 3, 21, 103, -1 }, { 2, 3, 21, 103, -1 } };

static bool is_attention(const onxi_run_rule *rule)
{
    return strstr(rule->pattern, "back") != NULL;
}

static void test_run_rewrite__every_rule_is_used(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++) {
        const int64_t(*const dims)[8] = is_attention(rule) ? cubes : usual;
        model_of(rule, "-1", dims, UINT32_MAX, text, sizeof text);
        run(text, dims, false, &rewritten);
        run(text, dims, true, &plain);
        if (plain.status != ONX_OK)
            fail_msg("%s\n%s", plain.why, text);
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
    static char text[8192];
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++)
        for (among special = FINITE; special < AMONG_COUNT; special++) {
            const int64_t(*const dims)[8] = is_attention(rule) ? heads : broad;
            model_of(rule, "-1", dims, UINT32_MAX, text, sizeof text);
            run_on(text, dims, special, false, &rewritten);
            run_on(text, dims, special, true, &nodes);
            assert_int_equal(nodes.status, ONX_OK);
            same(&rewritten, &nodes, rule);
        }
}

/* What the nodes take and the operator does not: scales that add axes, axes that are not the last. */
static void test_run_rewrite__gives_way_to_the_nodes(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    static const int64_t wide[][8] = { { 3, 5, -1 }, { 2, 1, 5, -1 }, { 5, -1 } };
    static const int64_t longer[][8] = { { 3, 1, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t empty[][8] = { { 0, 5, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t wrong[][8] = { { 3, 5, -1 }, { 4, -1 }, { 5, -1 } };
    /* fewer dims than the perms have, a batch that does not go together, no keys at all */
    static const int64_t flat[][8] = { { 5, 5, 5, -1 }, { 5, 5, 5, -1 }, { 5, 5, 5, -1 },
                                       { 5, 5, -1 },    { 1, 1, 5, -1 }, { 5, 5, -1 },
                                       { 5, 5, -1 },    { 5, 5, 5, -1 }, { 5, 5, 5, -1 } };
    static const int64_t other[][8] = { { 2, 5, 5, 5, -1 }, { 3, 5, 5, 5, -1 },  { 2, 5, 5, 5, -1 },
                                        { 5, 5, -1 },       { 2, 1, 1, 5, -1 },  { 5, 5, -1 },
                                        { 5, 5, -1 },       { 2, 25, 1, 5, -1 }, { 2, 5, 5, 5, -1 } };
    static const int64_t hollow[][8] = { { 2, 4, 3, 5, -1 }, { 2, 5, 3, 0, -1 }, { 2, 0, 3, 6, -1 },
                                         { 4, 0, -1 },       { 2, 1, 1, 0, -1 }, { 4, 1, -1 },
                                         { 4, 1, -1 },       { 2, 3, 4, 0, -1 }, { 2, 3, 4, 0, -1 } };
    static const char *const axes[] = { "-1", "0", "1", "2" };
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++)
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
            const int64_t(*const shapes[])[8] = { usual, wide, longer, empty, wrong };
            const int64_t(*const of_heads[])[8] = { cubes, heads, flat, other, hollow };
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                const int64_t(*const dims)[8] = is_attention(rule) ? of_heads[s] : shapes[s];
                model_of(rule, axes[a], dims, UINT32_MAX, text, sizeof text);
                run(text, dims, false, &rewritten);
                run(text, dims, true, &plain);
                same(&rewritten, &plain, rule);
            }
        }
}

/* Nodes that may be missing, in all sets of them: where they all fit, one operator is left. */
static void test_run_rewrite__optional_nodes(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    for (const onxi_run_rule *rule = onxi_run_rules; rule->name; rule++) {
        const uint32_t count = optional_nodes(rule);
        if (!count)
            continue;
        for (uint32_t turn = 0; turn <= 4 * count; turn++) {
            /* without one of them, with one of them, and some sets */
            const uint32_t set = turn < count       ? ~(UINT32_C(1) << turn)
                                 : turn < 2 * count ? UINT32_C(1) << (turn - count)
                                                    : turn * UINT32_C(2654435761) >> 7;
            model_of(rule, "-1", cubes, set, text, sizeof text);
            run(text, cubes, false, &rewritten);
            run(text, cubes, true, &plain);
            same(&rewritten, &plain, rule);
        }
        model_of(rule, "-1", cubes, 0, text, sizeof text);
        run(text, cubes, false, &rewritten);
        assert_int_equal(rewritten.steps, 1);
    }
}

/* A value that very many nodes take, in a model of very many nodes: each pattern is found, in time that grows with
 * their number. */
static void test_run_rewrite__very_many_nodes(void **state)
{
    enum { TIMES = 30000, ROOM = TIMES * 96 };
    (void)state;
    static outcome out;
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, ROOM,
                                  "<ir_version: 9, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] a%d) {"
                                  " a0 = Identity (x)",
                                  TIMES);
    for (int i = 0; i < TIMES; i++)
        len += (size_t)snprintf(text + len, ROOM - len, " s%d = Sigmoid (x) y%d = Mul (s%d, x) a%d = Add (y%d, a%d)", i,
                                i, i, i + 1, i, i);
    assert_true(len + 2 < ROOM);
    snprintf(text + len, ROOM - len, " }");
    run(text, usual + 1, false, &out);
    free(text);
    assert_int_equal(out.status, ONX_OK);
    assert_int_equal(out.steps, 2 * TIMES);
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
        cmocka_unit_test(test_run_rewrite__optional_nodes),
        cmocka_unit_test(test_run_rewrite__very_many_nodes),
        cmocka_unit_test(test_run_rewrite__needed_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
