/* test_transform_rules.c - every rule of rewrite_rules.def for models, on models made from its pattern: one node is
 * left, with the results of the original nodes. And the page docs/rewrites.md. */
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
#include <onx/transform.h>

#include "rewrite_draw.h"

#include <math.h>

enum { INPUTS_MAX = 13 };
typedef int64_t dims_list[INPUTS_MAX][8];

static const dims_list of_elements[] = { { { 2, 3, 5, -1 }, { 5, -1 }, { 5, -1 } },
                                         { { 4, 37, -1 }, { 37, -1 }, { 37, -1 } },
                                         { { 1, 1, 1, 8, -1 }, { 8, -1 }, { 8, -1 } } };
static const dims_list of_products[] = { { { 3, 5, -1 }, { 5, 7, -1 }, { 7, -1 } },
                                         { { 1, 64, -1 }, { 64, 33, -1 }, { 33, -1 } },
                                         { { 2, 1, -1 }, { 1, 4, -1 }, { 1, -1 } } };
static const dims_list of_heads[] = {
    { { 2, 3, 5, 8, -1 }, { 2, 3, 7, 8, -1 }, { 2, 3, 7, 6, -1 }, { 5, 7, -1 } },
    { { 1, 1, 1, 4, -1 }, { 1, 1, 9, 4, -1 }, { 1, 1, 9, 4, -1 }, { 1, 1, 1, 9, -1 } },
    { { 2, 2, 4, 4, -1 }, { 2, 2, 4, 4, -1 }, { 2, 2, 4, 4, -1 }, { 2, 1, 4, 4, -1 } }
};
/* Of constants, the values. */
static const dims_list of_groups[] = {
    { { 2, 4, 3, 5, -1 }, { 4, 1, 1, -1 }, { 4, 1, 1, -1 }, { 2, 4, 3, 5, -1 } },
    { { 1, 32, 6, -1 }, { 32, 1, -1 }, { 1, 32, 1, -1 }, { 1, 32, 6, -1 } },
    { { 3, 2, 2, 2, 2, -1 }, { 2, 1, 1, 1, -1 }, { 2, 1, 1, 1, -1 }, { 3, 2, 2, 2, 2, -1 } }
};
#define HALVES(half)                                                                                                   \
    { 0, -1 }, { half, -1 }, { ALL, -1 }, { 1, -1 }, { half, -1 }, { END, -1 }, { ALL, -1 },                           \
    {                                                                                                                  \
        1, -1                                                                                                          \
    }
static const dims_list of_tables[] = { { { 2, 3, 5, 8, -1 }, { 2, 1, 5, 4, -1 }, { 2, 1, 5, 4, -1 }, HALVES(4) },
                                       { { 1, 1, 1, 4, -1 }, { 1, 1, 1, 2, -1 }, { 1, 1, 1, 2, -1 }, HALVES(2) },
                                       { { 1, 2, 7, 36, -1 }, { 1, 1, 7, 18, -1 }, { 1, 1, 7, 18, -1 }, HALVES(18) } };
static const dims_list of_angles[] = { { { 2, 3, 5, 8, -1 }, { 2, 5, 4, -1 }, { 1, -1 }, { 1, -1 }, HALVES(4) },
                                       { { 1, 1, 1, 4, -1 }, { 1, 1, 2, -1 }, { 1, -1 }, { 1, -1 }, HALVES(2) },
                                       { { 1, 2, 7, 36, -1 }, { 1, 7, 18, -1 }, { 1, -1 }, { 1, -1 }, HALVES(18) } };
enum { SHAPES = 3 };

static const dims_list *shapes_of(const onxi_rewrite_row *rule)
{
    if (strstr(rule->replacement, "RotaryEmbedding"))
        return strstr(rule->pattern, "(t, h, ") ? of_angles : of_tables;
    if (strstr(rule->replacement, "GroupNormalization"))
        return of_groups;
    return strstr(rule->pattern, "(q, k") ? of_heads : strstr(rule->pattern, "(x, w") ? of_products : of_elements;
}

static uint32_t rank_of(const int64_t *dims)
{
    uint32_t rank = 0;
    while (dims[rank] >= 0)
        rank++;
    return rank;
}

typedef struct side {
    onx_doc *doc;
    onx_session *session;
    onx_value *y;
} side;

static const char *why(const onx_ctx *cx)
{
    static char text[400];
    onx_diag_format(onx_diag_get(cx, onx_diag_count(cx) - 1), text, sizeof text);
    return text;
}

static void parse(onx_ctx *cx, const char *text, side *s)
{
    *s = (side){ .doc = NULL };
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &s->doc) != ONX_OK)
        fail_msg("%s\n%s", why(cx), text);
}

static bool try_side(onx_ctx *cx, side *s, const onx_value *const *inputs)
{
    const onx_session_options options = { .threads = 1, .plain = true, .no_optimize = true };
    return onx_session_new(cx, s->doc, &options, &s->session) == ONX_OK &&
           onx_session_run(s->session, cx, inputs, &s->y) == ONX_OK;
}

static void run_side(onx_ctx *cx, side *s, const onx_value *const *inputs)
{
    if (!try_side(cx, s, inputs))
        fail_msg("%s", why(cx));
}

static void drop(side *s)
{
    onx_value_free(s->y);
    onx_session_free(s->session);
    onx_doc_free(s->doc);
}

static double number(const onx_value *v, uint64_t i)
{
    double out;
    onx_convert(ONX_DOUBLE, &out, (onx_dtype)v->dtype, (const char *)v->data + i * onx_dtype_bits(v->dtype) / 8, 1,
                false);
    return out;
}

static void make_inputs(onx_ctx *cx, const onx_session *session, onx_dtype dtype, const dims_list *dims,
                        const drawn *special, onx_value **out)
{
    uint32_t state = 12345;
    for (uint32_t i = 0; i < onx_session_input_count(session); i++) {
        assert_true(i < INPUTS_MAX);
        assert_int_equal(onx_value_new_tensor(cx, dtype, rank_of((*dims)[i]), (*dims)[i], &out[i]), ONX_OK);
        for (uint64_t k = 0; k < out[i]->count; k++) {
            state = state * UINT32_C(1664525) + UINT32_C(1013904223);
            const double x = special ? draw_number(*special) : (double)(int32_t)(state >> 8) / (1 << 22) - 2;
            onx_convert(dtype, (char *)out[i]->data + k * onx_dtype_bits(dtype) / 8, ONX_DOUBLE, &x, 1, false);
        }
    }
}

static void compare(const onx_value *a, const onx_value *b, double tolerance, const char *text)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    if (a->rank)
        assert_memory_equal(a->dims, b->dims, a->rank * sizeof *a->dims);
    for (uint64_t i = 0; i < a->count; i++) {
        const double x = number(a, i), y = number(b, i);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * (1 + fabs(y)) && isfinite(y)))
            fail_msg("element %u is %g, expected %g\n%s", (unsigned)i, x, y, text);
    }
}

/* Nodes that the replacement has beside constants. */
static uint32_t nodes_of(const onxi_rewrite_row *rule)
{
    uint32_t count = 0;
    for (const char *at = rule->replacement; (at = strstr(at, " = ")) != NULL; at += 3)
        count += at[3] >= 'A' && at[3] <= 'Z' && strncmp(at + 3, "Constant ", 9) != 0;
    return count;
}

/* Nodes that are left beside constants, and whether the operator of the replacement is among them. */
static uint32_t nodes_left(const onx_doc *doc, const onxi_rewrite_row *rule, bool *replaced)
{
    const onx_graph *graph = onx_doc_model((onx_doc *)(uintptr_t)doc)->graph;
    uint32_t count = 0;
    *replaced = false;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const onx_str op = onx_view(graph->node[i]->op_type);
        char call[64];
        snprintf(call, sizeof call, "y = %.*s ", ONX_ARG(op));
        count += !onx_str_is(op, "Constant") && !onx_str_is(op, "Max"); /* of the mask */
        *replaced |= strstr(rule->replacement, call) != NULL;
    }
    return count;
}

/* Constants of the pattern, which are floats, as those of another type: name = Constant <..> () becomes
 * name_f = Constant <..> () name = Cast (name_f), which is computed. */
static void convert_constants(char *text, size_t size, int dtype)
{
    static char out[16384];
    size_t n = 0;
    for (const char *at = text; *at;) {
        const char *constant = strstr(at, " = Constant <value_float");
        if (!constant) {
            n += (size_t)snprintf(out + n, sizeof out - n, "%s", at);
            break;
        }
        const char *name = constant, *end = strstr(constant, "()") + 2;
        while (name > at && name[-1] != ' ')
            name--;
        const int len = (int)(constant - name);
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s%.*s_f%.*s  %.*s = Cast <to = %d> (%.*s_f)",
                              (int)(name - at), at, len, name, (int)(end - constant), constant, len, name, dtype, len,
                              name);
        at = end;
    }
    assert_true(n < size);
    strcpy(text, out);
}

/* A model made from the pattern, and its copy after the pass `fuse`; false if that is refused, as of dims that do not
 * go together. */
static bool make_sides(onx_ctx *cx, const onxi_rewrite_row *rule, int opset, const char *element, onx_dtype dtype,
                       const dims_list *dims, uint32_t optional, const char **model, side *nodes, side *one)
{
    static char text[16384];
    onx_input_shape shapes[INPUTS_MAX];
    const onx_str pass[] = { onx_str_of("fuse"), onx_str_of("unused"), onx_str_of("identity"), onx_str_of("fold") };
    int64_t padded[16][8] = { { 0 } };
    memcpy(padded, *dims, sizeof *dims);
    model_of(rule, opset, element, "-1", (const int64_t(*)[8])padded, optional, text, sizeof text);
    *model = text;
    if (dtype != ONX_FLOAT)
        convert_constants(text, sizeof text, (int)dtype);
    parse(cx, text, nodes);
    parse(cx, text, one);
    const onx_graph *graph = onx_doc_model(one->doc)->graph;
    for (uint32_t i = 0; i < graph->input_count; i++)
        shapes[i] = (onx_input_shape){ onx_view(graph->input[i]->name), (*dims)[i], rank_of((*dims)[i]) };
    const onx_simplify_options options = {
        .pass = pass, .pass_count = 4, .shape = shapes, .shape_count = graph->input_count
    };
    return onx_inline(cx, nodes->doc, NULL) == ONX_OK && onx_inline(cx, one->doc, NULL) == ONX_OK &&
           onx_simplify(cx, one->doc, &options) == ONX_OK;
}

static bool try_rule(const onxi_rewrite_row *rule, int opset, const char *element, onx_dtype dtype, double tolerance,
                     const dims_list *dims, uint32_t optional)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    side nodes, one;
    onx_value *inputs[INPUTS_MAX] = { NULL };
    const char *text;
    bool replaced;
    if (!make_sides(cx, rule, opset, element, dtype, dims, optional, &text, &nodes, &one))
        fail_msg("%s\n%s", why(cx), text);
    const uint32_t left = nodes_left(one.doc, rule, &replaced);
    if (replaced && left != nodes_of(rule))
        fail_msg("%u nodes are left\n%s", (unsigned)left, text);
    if (replaced) {
        onx_session *probe = NULL;
        if (onx_session_new(cx, nodes.doc, NULL, &probe) != ONX_OK)
            fail_msg("%s\n%s", why(cx), text);
        make_inputs(cx, probe, dtype, dims, NULL, inputs);
        onx_session_free(probe);
        run_side(cx, &nodes, (const onx_value *const *)inputs);
        run_side(cx, &one, (const onx_value *const *)inputs);
        compare(one.y, nodes.y, tolerance, text);
    }
    for (uint32_t i = 0; i < INPUTS_MAX; i++)
        onx_value_free(inputs[i]);
    drop(&nodes);
    drop(&one);
    onx_ctx_free(cx);
    return replaced;
}

static void test_transform_rules__every_rule_of_models(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        onx_dtype dtype;
        double tolerance;
    } elements[] = { { "float", ONX_FLOAT, 2e-5 }, { "double", ONX_DOUBLE, 2e-6 }, { "float16", ONX_FLOAT16, 2e-2 } };
    uint32_t rules = 0;
    for (const onxi_rewrite_row *rule = onxi_rewrite_rows; rule->name; rule++) {
        if (!(rule->by & ONXI_REWRITE_BY_MODEL))
            continue;
        const int least = rule->since > 17 ? rule->since : 17;
        rules++;
        for (int opset = least; opset <= 24; opset += opset < 24 ? 24 - opset : 1)
            for (uint32_t shape = 0; shape < SHAPES; shape++)
                for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
                    for (uint32_t optional = 0; optional < 1u << optional_nodes(rule); optional++)
                        if (!try_rule(rule, opset, elements[e].name, elements[e].dtype, elements[e].tolerance,
                                      &shapes_of(rule)[shape], optional) &&
                            e == 0)
                            fail_msg("rule %s is not used at version %d, shapes %u, optional nodes %u", rule->name,
                                     opset, (unsigned)shape, (unsigned)optional);
        if (rule->since > 17) /* one before, there is no such operator */
            assert_false(try_rule(rule, rule->since - 1, "float", ONX_FLOAT, 0, &shapes_of(rule)[0], UINT32_MAX));
    }
    assert_true(rules > 20);
}

/* Operands of any dims that broadcast, with any elements: where the nodes run, the simplified model gives the same.
 * Returns whether both were compared. */
static bool try_drawn(const onxi_rewrite_row *rule, uint32_t trial)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    side nodes = { .doc = NULL }, one = { .doc = NULL };
    onx_value *inputs[INPUTS_MAX] = { NULL };
    const char *text;
    int64_t dims[INPUTS_MAX][8];
    bool compared = false;
    draw_state = trial * 7919 + 1;
    draw_dims(rule, (const int64_t(*)[8])shapes_of(rule)[trial % SHAPES], inputs_of_rule(rule), dims);
    const int least = rule->since > 17 ? rule->since : 17, opset = least + (int)draw(24 - (uint32_t)least + 1);
    const drawn special = draw_kind();
    operands_are_free = draw(3) == 0;
    if (make_sides(cx, rule, opset, "float", ONX_FLOAT, (const dims_list *)&dims, draw(2) ? UINT32_MAX : draw(16),
                   &text, &nodes, &one)) {
        onx_session *probe = NULL;
        if (onx_session_new(cx, nodes.doc, NULL, &probe) == ONX_OK) {
            make_inputs(cx, probe, ONX_FLOAT, (const dims_list *)&dims, &special, inputs);
            onx_session_free(probe);
            compared = try_side(cx, &nodes, (const onx_value *const *)inputs);
            if (compared) {
                run_side(cx, &one, (const onx_value *const *)inputs);
                compare(one.y, nodes.y, 2e-5, text);
            }
        }
    }
    operands_are_free = false;
    for (uint32_t i = 0; i < INPUTS_MAX; i++)
        onx_value_free(inputs[i]);
    drop(&nodes);
    drop(&one);
    onx_ctx_free(cx);
    return compared;
}

static void test_transform_rules__drawn_operands(void **state)
{
    (void)state;
    for (const onxi_rewrite_row *rule = onxi_rewrite_rows; rule->name; rule++) {
        uint32_t compared = 0;
        for (uint32_t trial = 0; rule->by & ONXI_REWRITE_BY_MODEL && trial < 24; trial++)
            compared += try_drawn(rule, trial);
        if (rule->by & ONXI_REWRITE_BY_MODEL && compared < 3)
            fail_msg("rule %s: %u of 24 models run", rule->name, (unsigned)compared);
    }
}

/* Each input but the first that the nodes broadcast is in a condition that says how. */
static void test_transform_rules__broadcasting_is_described(void **state)
{
    (void)state;
    static const char *const broadcasting[] = { " = Add (", " = Sub (", " = Mul (", " = Div (",   " = Where (",
                                                " = Max (", " = Min (", " = Pow (", " (xf, wf, b" };
    static const char *const how[] = { "onto %.*s ", "along 1 %.*s ", "rank 0 %.*s", "both %.*s " };
    for (const onxi_rewrite_row *rule = onxi_rewrite_rows; rule->name; rule++) {
        const char *at = strchr(rule->pattern, '(') + 1, *close = strchr(at, ')');
        int len, own;
        for (uint32_t input = 0; (at = next_name(at, close, &len)) != NULL; at += len, input++)
            for (size_t b = 0; input && b < sizeof broadcasting / sizeof *broadcasting; b++)
                for (const char *node = rule->pattern; (node = strstr(node, broadcasting[b])) != NULL; node++) {
                    if (broadcasting[b][1] == '(' && !strstr(rule->pattern, "Gemm"))
                        continue; /* the bias of a convolution is a list */
                    const char *list = strchr(node, '(') + 1, *end = strchr(list, ')');
                    bool operand = false, others = false, said = false;
                    char text[64];
                    for (; (list = next_name(list, end, &own)) != NULL; list += own) {
                        const bool is = own == len && memcmp(list, at, (size_t)len) == 0;
                        snprintf(text, sizeof text, " %.*s = Constant ", own, list);
                        operand |= is;
                        others |= !is && !strstr(rule->pattern, text);
                    }
                    for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
                        snprintf(text, sizeof text, how[h], len, at);
                        said |= strstr(rule->where, text) != NULL;
                    }
                    if (operand && others && !said)
                        fail_msg("rule %s does not say how %.*s broadcasts", rule->name, len, at);
                }
    }
}

/* ---- docs/rewrites.md ---- */

/* A side of a rule as nodes, without what is the same for all. */
static void print_side(FILE *to, const char *text)
{
    const char *at = strchr(text, '>') + 2;
    bool blank = false;
    for (at++; *at; at++) { /* behind its name */
        if (*at == ' ' && blank)
            continue;
        blank = *at == ' ';
        fputc(*at == '|' ? '/' : *at, to);
    }
}

static void print_page(FILE *to)
{
    static const char *const users[] = { "", "sessions", "models", "both" };
    fprintf(
        to,
        "# Rewrites\n\nThe passes of `onx simplify`, and the rules that replace several nodes by one operator, in models and in "
        "sessions.\nThis page is printed from the tables by "
        "`scripts/update_rewrites`.\n\n## Passes of `onx simplify`\n\n| pass | what it does | results |\n|---|---|---|\n");
    const onx_pass *pass;
    for (uint32_t i = 0; (pass = onx_pass_get(i)) != NULL; i++)
        if (pass->simplifies)
            fprintf(to, "| %s | %s | %s |\n", pass->name, pass->summary,
                    pass->effect == ONX_PASS_EXACT ? "the same" : "within rounding");
    fprintf(
        to,
        "\n## Rules\n\nInputs of a pattern match any value. A Constant node matches a constant with the same value or, if its value is a "
        "parameter (`@e`), any constant.\nA node named `[optional]` may be missing; a node named `[shared]` is not removed. In models a rule applies "
        "from the given version of the default domain\non, and `where` says how operands broadcast: `onto` other dims, "
        "`along` an axis, with `rank` 0, or as `both` the nodes\nand the operator do. operators of the domain `onx` are kernels of sessions.\n\n"
        "| rule | used by | from version | results | where | nodes | operator |\n|---|---|---|---|---|---|---|\n");
    for (const onxi_rewrite_row *row = onxi_rewrite_rows; row->name; row++) {
        fprintf(to, "| %s | %s | ", row->name, users[row->by]);
        if (row->since)
            fprintf(to, "%d", (int)row->since);
        fprintf(to, " | %s | %s | `", row->effect == ONXI_REWRITE_EXACT ? "the same" : "within rounding", row->where);
        print_side(to, row->pattern);
        fputs("` | `", to);
        print_side(to, row->replacement);
        fputs("` |\n", to);
    }
}

static void test_transform_rules__page(void **state)
{
    (void)state;
    char *made = NULL, *has;
    size_t size = 0;
    FILE *to = open_memstream(&made, &size), *from = fopen(ONX_SOURCE_DIR "/docs/rewrites.md", "r");
    assert_non_null(to);
    assert_non_null(from);
    print_page(to);
    fclose(to);
    has = calloc(1, size + 2);
    assert_non_null(has);
    const size_t read = fread(has, 1, size + 1, from);
    fclose(from);
    if (read != size || memcmp(has, made, size) != 0)
        fail_msg("docs/rewrites.md is stale: run scripts/update_rewrites");
    free(has);
    free(made);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transform_rules__every_rule_of_models),
        cmocka_unit_test(test_transform_rules__drawn_operands),
        cmocka_unit_test(test_transform_rules__broadcasting_is_described),
        cmocka_unit_test(test_transform_rules__page),
    };
    if (argc > 1 && strcmp(argv[1], "--page") == 0) {
        print_page(stdout);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
