/* test_gen_facts.c - transforms believe only what every run is bound to obey: for every version of every operator, what
 * a model claims of inner values and outputs, the values of defaults, and equal names of sizes change nothing that a
 * transform does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/tensor.h>
#include <onx/text.h>
#include <onx/transform.h>

#include "gen/gen.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- models ---- */

/* What a model says beyond what it computes. */
typedef enum claims {
    NONE,
    SIZES,    /* wrong sizes of inner values and outputs */
    RANKS,    /* wrong ranks */
    TYPES,    /* wrong element types */
    DEFAULTS, /* an input has a default */
    OTHER_DEFAULTS,
    NAMES, /* every size of an input has one name */
    CLAIMS
} claims;

typedef struct request {
    const gen_node *node;
    bool open; /* sizes of inputs are not numbers */
    uint32_t operand;
} request;

static onx_type *claimed_type(onx_arena *arena, const onx_type *right, claims what)
{
    static const int64_t dims[] = { 7, 1, 3, 7, 2, 7, 1, 5 };
    const onx_tensor_shape *shape = right->tensor_type->shape;
    const int rank = what == RANKS ? (shape ? (int)shape->dim_count + 1 : 1) : shape ? (int)shape->dim_count : 2;
    const onx_dtype dtype = (onx_dtype)right->tensor_type->elem_type;
    return onx_type_new_tensor(arena, what == TYPES ? (dtype == ONX_INT32 ? ONX_INT64 : ONX_INT32) : dtype,
                               what == TYPES ? NULL : dims,
                               what == TYPES ? -1
                               : rank > 8    ? 8
                                             : rank);
}

static void name_sizes(onx_arena *arena, onx_graph *g, bool one_name)
{
    char name[32];
    unsigned count = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_type *type = g->input[i]->type;
        const onx_tensor_shape *shape = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
        for (uint32_t k = 0; shape && k < shape->dim_count; k++) {
            ONX_CLEAR(dimension, shape->dim[k], dim_value);
            snprintf(name, sizeof name, "size%u", count++);
            assert_int_equal(onx_arena_keep(arena, onx_str_of(one_name ? "N" : name), &shape->dim[k]->dim_param),
                             ONX_OK);
            shape->dim[k]->has |= onx_dimension_has_dim_param;
        }
    }
}

/* The outputs y0, y1, ... of the node become inner values, of which other nodes read the shape and the elements. */
static void look_at_outputs(onx_arena *arena, onx_graph *g, claims what)
{
    const uint32_t count = g->output_count;
    for (uint32_t i = 0; i < count; i++) {
        char from[64], to[80], shape[80];
        onx_value_info *output = g->output[i];
        if (!output->type || !ONX_HAS(type, output->type, tensor_type))
            continue;
        snprintf(from, sizeof from, "%.*s", ONX_ARG(onx_view(output->name)));
        snprintf(to, sizeof to, "z_%s", from);
        snprintf(shape, sizeof shape, "s_%s", from);
        assert_non_null(onx_graph_add_node(arena, g, "Identity", from, to));
        assert_non_null(onx_graph_add_node(arena, g, "Shape", from, shape));
        assert_non_null(onx_graph_add_output(arena, g, shape, onx_type_new_tensor(arena, ONX_INT64, NULL, -1)));
        assert_int_equal(onx_arena_keep(arena, onx_str_of(to), &output->name), ONX_OK);
        if (what != SIZES && what != RANKS && what != TYPES)
            continue;
        onx_value_info *claim = ONX_ADD(arena, g, value_info, VALUE_INFO);
        assert_non_null(claim);
        assert_int_equal(onx_arena_keep(arena, onx_str_of(from), &claim->name), ONX_OK);
        claim->has |= onx_value_info_has_name;
        ONX_SET(value_info, claim, type, claimed_type(arena, output->type, what));
        if (what != TYPES)
            output->type = claimed_type(arena, output->type, what);
    }
}

static bool make(onx_ctx *cx, const request *r, claims what, onx_doc **out)
{
    gen_node node = *r->node;
    if (gen_model(cx, &node, NULL, NULL, out) != ONX_OK) {
        onx_diag_clear(cx);
        return false;
    }
    onx_arena *arena = onx_doc_arena(*out);
    onx_graph *g = onx_doc_model(*out)->graph;
    if (what == DEFAULTS || what == OTHER_DEFAULTS) {
        gen_operand value = node.operands[r->operand];
        onx_doc *other;
        void *copy;
        value.constant = true;
        value.seed += what == OTHER_DEFAULTS ? 77 : 0;
        assert_int_equal(gen_new(cx, 21, &other), ONX_OK);
        assert_true(gen_add_operand(other, onx_doc_model(other)->graph, &value));
        assert_int_equal(onx_message_copy(arena, ONX_KIND_TENSOR, onx_doc_model(other)->graph->initializer[0], &copy),
                         ONX_OK);
        assert_non_null(onx_graph_add_initializer(arena, g, copy));
        onx_doc_free(other);
    }
    if (r->open)
        name_sizes(arena, g, what == NAMES);
    look_at_outputs(arena, g, what);
    return true;
}

/* ---- what a transform may differ in ---- */

static onx_status strip(void *user, const onx_visit *at)
{
    onx_graph *g = at->message;
    (void)user;
    if (at->kind != ONX_KIND_GRAPH)
        return ONX_OK;
    g->value_info_count = 0;
    for (uint32_t i = 0; i < g->output_count; i++) {
        g->output[i]->type = NULL;
        ONX_CLEAR(value_info, g->output[i], type);
    }
    for (uint32_t i = 0; i < g->input_count; i++) { /* a name of a size, and an initializer of it, stay different */
        g->input[i]->type = NULL;
        ONX_CLEAR(value_info, g->input[i], type);
        for (uint32_t k = 0; k < g->initializer_count; k++)
            if (onx_str_equal(onx_view(g->input[i]->name), onx_view(g->initializer[k]->name)))
                g->initializer[k]->raw_data = (onx_bytes){ 0 };
    }
    return ONX_OK;
}

/* ---- transforms ---- */

static onx_status simplify(onx_ctx *cx, onx_doc *doc)
{
    return onx_simplify(cx, doc, NULL);
}

static onx_status simplify_exact(onx_ctx *cx, onx_doc *doc)
{
    return onx_simplify(cx, doc, &(onx_simplify_options){ .struct_size = sizeof(onx_simplify_options), .exact = true });
}

static onx_status retarget(onx_ctx *cx, onx_doc *doc, int64_t version)
{
    const onx_opset_version to = { onx_str_of(""), version };
    return onx_retarget(
        cx, doc,
        &(onx_retarget_options){ .struct_size = sizeof(onx_retarget_options), .opset = &to, .opset_count = 1 });
}

static onx_status retarget_up(onx_ctx *cx, onx_doc *doc)
{
    return retarget(cx, doc, 23);
}

static onx_status retarget_down(onx_ctx *cx, onx_doc *doc)
{
    return retarget(cx, doc, 9);
}

static onx_status inline_all(onx_ctx *cx, onx_doc *doc)
{
    return onx_inline(cx, doc, &(onx_inline_options){ .struct_size = sizeof(onx_inline_options), .schema = true });
}

static onx_status precision(onx_ctx *cx, onx_doc *doc)
{
    return onx_precision(cx, doc,
                         &(onx_precision_options){ .struct_size = sizeof(onx_precision_options), .to = ONX_FLOAT16 });
}

static const struct {
    const char *name;
    onx_status (*run)(onx_ctx *cx, onx_doc *doc);
    bool values; /* it may convert or (with a warning) use the values of defaults, so these are not compared */
} transforms[] = {
    { "simplify", simplify, false },
    { "simplify --exact", simplify_exact, false },
    { "retarget --opset 23", retarget_up, false },
    { "retarget --opset 9", retarget_down, true },
    { "inline", inline_all, false },
    { "precision", precision, true },
};

static onx_status put(void *user, onx_str text)
{
    (void)user;
    return fwrite(text.ptr, 1, text.len, stderr) == text.len ? ONX_OK : ONX_E_IO;
}

static unsigned compare(onx_ctx *cx, const request *r, claims first, claims second, size_t transform)
{
    static const char *const names[] = {
        "none", "sizes", "ranks", "types", "defaults", "other defaults", "one name", ""
    };
    onx_doc *docs[2];
    onx_status status[2];
    const claims what[2] = { first, second };
    for (int i = 0; i < 2; i++) {
        if (!make(cx, r, what[i], &docs[i])) {
            if (i)
                onx_doc_free(docs[0]);
            return 0;
        }
        status[i] = transforms[transform].run(cx, docs[i]);
        onx_diag_clear(cx);
        assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(docs[i]), strip, NULL), ONX_OK);
    }
    const bool same =
        status[0] == status[1] &&
        (status[0] != ONX_OK || onx_message_equal(ONX_KIND_MODEL, onx_doc_model(docs[0]), onx_doc_model(docs[1])));
    if (!same)
        print_error("%s of %s-%d (%.80s)%s: claims (%s) change what it does: status %d and %d\n",
                    transforms[transform].name, r->node->schema->name, r->node->schema->since,
                    r->node->recipe->attributes, r->open ? " with open sizes" : "", names[second], status[0],
                    status[1]);
    if (!same && getenv("ONX_GEN_SHOW"))
        for (int i = 0; i < 2; i++)
            (void)onx_text_print(cx, ONX_KIND_MODEL, onx_doc_model(docs[i]), NULL, (onx_sink){ put, NULL });
    for (int i = 0; i < 2; i++)
        onx_doc_free(docs[i]);
    return !same;
}

static unsigned look(onx_ctx *cx, const gen_node *node, unsigned *count)
{
    unsigned bad = 0;
    request r = { .node = node };
    for (size_t t = 0; t < sizeof transforms / sizeof *transforms; t++)
        for (int open = 0; open < 2; open++) {
            r.open = open;
            for (claims what = SIZES; what <= TYPES; what++, ++*count)
                bad += compare(cx, &r, NONE, what, t);
            if (open)
                bad += compare(cx, &r, NONE, NAMES, t);
            for (r.operand = 0; r.operand < node->operand_count && !open && !transforms[t].values; r.operand++)
                if (node->operands[r.operand].kind == GEN_TENSOR && node->operands[r.operand].dtype != ONX_STRING) {
                    bad += compare(cx, &r, DEFAULTS, OTHER_DEFAULTS, t);
                    ++*count;
                }
        }
    return bad;
}

static void test_gen_facts__claims_change_nothing(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned bad = 0, count = 0, number = 0;
    const char *only = getenv("ONX_GEN_ONLY"); /* an operator, for debugging */
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            if (schema->flags & ONXI_OP_DEPRECATED || (only && strcmp(only, schema->name) != 0))
                continue;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++) {
                const gen_choice choice = { .seed = n };
                gen_node node;
                if (!share_has(number++))
                    continue;
                assert_true(gen_node_make(schema, recipe, &choice, &node));
                bad += look(cx, &node, &count);
            }
        }
    onx_ctx_free(cx);
    print_message("%u pairs of models\n", count);
    assert_int_equal(bad, 0);
}

/* ---- sizes that are computed ---- */

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc);
    if (status != ONX_OK)
        print_error("%s\n", text);
    assert_int_equal(status, ONX_OK);
    return doc;
}

/* Runs the model without optimizing it; its input is zeros. */
static bool run(onx_ctx *cx, onx_doc *doc, const onx_value *x, onx_value **out, uint32_t count)
{
    onx_session *session;
    for (uint32_t i = 0; i < count; i++)
        out[i] = NULL;
    if (onx_session_new(cx, doc, &(onx_session_options){ .threads = 1, .no_optimize = true }, &session) != ONX_OK)
        return false;
    const onx_status status = onx_session_run(session, cx, &x, out);
    onx_session_free(session);
    return status == ONX_OK;
}

static unsigned same_results(const char *text, onx_value **a, onx_value **b, uint32_t count)
{
    unsigned bad = 0;
    for (uint32_t i = 0; i < count; i++)
        bad += a[i] && b[i] &&
               (a[i]->rank != b[i]->rank || a[i]->dtype != b[i]->dtype ||
                (a[i]->rank && memcmp(a[i]->dims, b[i]->dims, a[i]->rank * sizeof *a[i]->dims) != 0) ||
                (a[i]->size && memcmp(a[i]->data, b[i]->data, a[i]->size) != 0));
    if (bad)
        print_error("results differ after onx_simplify:\n%s\n", text);
    return bad;
}

static void free_results(onx_value **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        onx_value_free(list[i]);
}

/* What inference says of the outputs is what a run makes. */
static unsigned same_types(onx_ctx *cx, onx_doc *doc, const char *text, onx_value **values, uint32_t count,
                           const onx_infer_fixed *fixed)
{
    onx_infer *infer;
    unsigned bad = 0;
    const onx_infer_options options = { .struct_size = sizeof options, .fixed = fixed, .fixed_count = fixed ? 1 : 0 };
    assert_int_equal(onx_infer_new(cx, doc, &options, &infer), ONX_OK);
    const onx_graph *g = onx_doc_model(doc)->graph;
    char why[200];
    if (onx_infer_summarize(infer).failed) {
        print_error("inference refuses what runs:\n%s\n", text);
        bad++;
    }
    for (uint32_t i = 0; i < count; i++) {
        const onx_type *type = onx_infer_type(infer, g, onx_view(g->output[i]->name));
        if (type && values[i] && !gen_type_agrees(type, values[i], why, sizeof why)) {
            print_error("%s\n%s\n", why, text);
            bad++;
        }
    }
    onx_infer_free(infer);
    return bad;
}

static unsigned check_model(onx_ctx *cx, const char *text, const onx_infer_fixed *fixed, bool *ran)
{
    enum { MOST = 8 };
    onx_value *before[MOST], *after[MOST], *x = NULL;
    onx_doc *doc = parse(cx, text);
    const uint32_t count = onx_doc_model(doc)->graph->output_count;
    unsigned bad = 0;
    if (fixed) {
        assert_int_equal(onx_value_new(cx, &x), ONX_OK);
        assert_int_equal(onx_value_reset(x, ONX_FLOAT, 4, (const int64_t[]){ 1, 1, fixed->size, 2 }), ONX_OK);
        memset(x->data, 0, x->size);
    }
    *ran = run(cx, doc, x, before, count);
    onx_diag_clear(cx);
    if (*ran)
        bad += same_types(cx, doc, text, before, count, fixed);
    onx_doc_free(doc);
    for (int exact = 0; exact < 2 && *ran; exact++) {
        doc = parse(cx, text);
        const onx_simplify_options options = {
            .struct_size = sizeof options, .exact = exact, .fixed = fixed, .fixed_count = fixed ? 1 : 0
        };
        assert_int_equal(onx_simplify(cx, doc, &options), ONX_OK);
        const bool again = run(cx, doc, x, after, count);
        if (!again)
            print_error("does not run any more after onx_simplify:\n%s\n", text);
        bad += again ? same_results(text, before, after, count) : 1;
        free_results(after, count);
        onx_doc_free(doc);
    }
    free_results(before, count);
    onx_value_free(x);
    onx_diag_clear(cx);
    return bad;
}

/* Shape, Cast, a computation in floating point, rounding, Cast, and a Resize, as exporters write them. */
static void test_gen_facts__sizes_in_floats(void **state)
{
    (void)state;
    static const char *const scales[] = { "0.7",
                                          "0.5",
                                          "1.4",
                                          "0.1",
                                          "0.3333333432674408",
                                          "2.9",
                                          "0.9",
                                          "1.1",
                                          "0.75",
                                          "0.0204081628471613",
                                          "3",
                                          "0.29999998211860657" };
    static const char *const ways[] = { "m = Mul (f, k)",
                                        "m = Mul (k, f)",
                                        "m = Div (f, k)",
                                        "n = Mul (f, k) m = Add (n, half)",
                                        "n = Div (f, k) m = Mul (n, k)",
                                        "n = Mul (f, k) m = Mul (n, k)",
                                        "n = Mul (f, f) m = Mul (n, k)",
                                        "n = Sqrt (f) m = Mul (n, k)",
                                        "m = Pow (f, half)" };
    static const char *const roundings[] = { "r = Floor (m)", "r = Ceil (m)", "r = Round (m)", "r = Identity (m)" };
    static const int64_t sizes[] = { 1, 2, 3, 5, 7, 10, 13, 20, 30, 49, 50, 90, 100, 110, 127, 300 };
    static const char *const types[] = { "float", "double", "float16" };
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned bad = 0, ran = 0, all = 0;
    gen_random r = { .state = 1 };
    for (unsigned turn = 0; turn < 1500; turn++, all++) {
        char text[1024];
        const char *type = types[gen_below(&r, 8) < 6 ? 0 : 1 + gen_below(&r, 2)];
        const int dtype = strcmp(type, "float") == 0    ? ONX_FLOAT
                          : strcmp(type, "double") == 0 ? ONX_DOUBLE
                                                        : ONX_FLOAT16;
        snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\": 17]> g (float[1,1,H,2] x) => (float[?,?,?,?] y, int64[?] z, bool[?] "
            "e, int32[?] i) <float k0 = {%s}, float half0 = {0.5}, int64[1] two = {2}, int64[1] three = {3}, int64[2] nc = {1,1}, "
            "int64[1] w = {2}> { k = Cast <to = %d> (k0) half = Cast <to = %d> (half0) s = Shape (x) h = Slice (s, two, "
            "three) f = Cast <to = %d> (h) %s %s z = Cast <to = 7> (r) i = Cast <to = 6> (r) e = Equal (z, h) sizes = "
            "Concat <axis = 0> (nc, z, w) y = Resize <mode = \"nearest\"> (x, , , sizes) }",
            scales[gen_below(&r, sizeof scales / sizeof *scales)], dtype, dtype, dtype,
            ways[gen_below(&r, sizeof ways / sizeof *ways)], roundings[gen_below(&r, 4)]);
        const onx_infer_fixed fixed = { "H", sizes[gen_below(&r, sizeof sizes / sizeof *sizes)] };
        bool does;
        bad += check_model(cx, text, &fixed, &does);
        ran += does;
    }
    onx_ctx_free(cx);
    print_message("%u of %u models run\n", ran, all);
    assert_true(ran > all / 2);
    assert_int_equal(bad, 0);
}

/* Arithmetic that leaves its type wraps. */
static void test_gen_facts__integers_that_wrap(void **state)
{
    (void)state;
    static const char *const numbers[] = { "-9223372036854775808",
                                           "-9223372036854775807",
                                           "9223372036854775807",
                                           "-9223372032559808512",
                                           "-9223372032559808513",
                                           "4294967296",
                                           "2147483647",
                                           "-2147483648",
                                           "65536",
                                           "46341",
                                           "42",
                                           "3",
                                           "2",
                                           "1",
                                           "0",
                                           "-1",
                                           "16777217" };
    static const char *const steps[] = { "Add", "Sub", "Mul", "Max", "Min", "Add", "Sub", "Mul", "Pow", "Div", "Mod" };
    static const int types[] = { ONX_INT64,  ONX_INT64,  ONX_INT32, ONX_FLOAT,
                                 ONX_UINT32, ONX_UINT64, ONX_INT16, ONX_UINT8 };
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned bad = 0, ran = 0, all = 0;
    gen_random r = { .state = 2 };
#define DRAW(list) list[gen_below(&r, sizeof list / sizeof *list)]
    for (unsigned turn = 0; turn < 1500; turn++, all++) {
        char text[1024];
        const int type = DRAW(types);
        const char *one = DRAW(steps), *two = DRAW(steps);
        const bool power = strcmp(one, "Pow") == 0 || strcmp(two, "Pow") == 0;
        snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\": 17]> g () => (int64 z, bool e, bool f, int64[2] p) <int64 a0 = {%s}, int64 b0 = "
            "{%s}, int64 c0 = {%s}, int64[2] v0 = {%s, %s}, int64 seven = {7}> { a = Cast <to = %d> (a0) b = Cast <to = %d> (b0) c = Cast <to = "
            "%d> (c0) v = Cast <to = %d> (v0) d = %s (a, b) t = %s (d, c) z = Cast <to = 7> (t) e = Equal (z, a0) f = Less (z, seven) "
            "zero = Constant <value_int = 0> () q = CumSum (v0, zero) p = Sub (q, v0) }",
            DRAW(numbers), DRAW(numbers), power ? "2" : DRAW(numbers), DRAW(numbers), DRAW(numbers), type, type, type,
            type, one, two);
        bool does;
        bad += check_model(cx, text, NULL, &does);
        ran += does;
    }
#undef DRAW
    onx_ctx_free(cx);
    print_message("%u of %u models run\n", ran, all);
    assert_true(ran > all / 2);
    assert_int_equal(bad, 0);
}

/* ---- types that a session does not know ---- */

/* Operand k of the node comes out of an If, whose types no pass over a session knows. */
static void hide_type(onx_ctx *cx, onx_doc *doc, uint32_t k)
{
    static const char text[] =
        "u = If (hidden_cond) <then_branch = t () => (t_) { t_ = Identity (%.*s) }, else_branch = e () "
        "=> (e_) { e_ = Identity (%.*s) }>";
    char all[512];
    onx_doc *parsed;
    void *copy;
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *g = onx_doc_model(doc)->graph;
    onx_node *node = g->node[0];
    const onx_str from = onx_view(node->input[k]);
    snprintf(all, sizeof all, text, ONX_ARG(from), ONX_ARG(from));
    assert_int_equal(onx_text_parse(cx, ONX_KIND_NODE, onx_str_of(all), 0, &parsed), ONX_OK);
    assert_int_equal(onx_message_copy(arena, ONX_KIND_NODE, onx_doc_root(parsed, ONX_KIND_NODE), &copy), ONX_OK);
    onx_doc_free(parsed);
    onx_node **at = onx_list_insert(arena, (void **)(void *)&g->node, &g->node_count, 0, sizeof *at);
    assert_non_null(at);
    *at = copy;
    assert_int_equal(onx_arena_keep(arena, onx_str_of("u"), &node->input[k]), ONX_OK);
    assert_non_null(onx_graph_add_input(arena, g, "hidden_cond", onx_type_new_tensor(arena, ONX_BOOL, NULL, 0)));
    /* A later node tells the type. */
    static const uint16_t one = 0x3c00;
    onx_tensor *half = onx_tensor_new(arena, ONX_FLOAT16, NULL, 0, &one, "hidden_one");
    assert_non_null(half);
    assert_non_null(onx_graph_add_initializer(arena, g, half));
    assert_non_null(onx_graph_add_node(arena, g, "Max", "u hidden_one", "hidden_max"));
    assert_non_null(onx_graph_add_output(arena, g, "hidden_max", onx_type_new_tensor(arena, ONX_FLOAT16, NULL, -1)));
}

static unsigned run_hidden(onx_ctx *cx, const gen_node *node, uint32_t k, unsigned *ran)
{
    char why[300];
    onx_doc *doc;
    gen_node copy = *node;
    gen_operand operands[GEN_OPERANDS + 1];
    gen_run plain, fast;
    unsigned bad = 0;
    if (gen_model(cx, &copy, NULL, NULL, &doc) != ONX_OK) {
        onx_diag_clear(cx);
        return 0;
    }
    hide_type(cx, doc, k);
    memcpy(operands, node->operands, node->operand_count * sizeof *operands);
    operands[node->operand_count] = (gen_operand){
        .kind = GEN_TENSOR, .dtype = ONX_BOOL, .like = ONX_BOOL, .fill = GEN_LISTED, .listed = { 1 }, .listed_count = 1
    };
    snprintf(operands[node->operand_count].name, sizeof operands->name, "hidden_cond");
    gen_run_model(cx, doc, operands, node->operand_count + 1, true, 1, &plain);
    gen_run_model(cx, doc, operands, node->operand_count + 1, false, 1, &fast);
    gen_origin origin = { .cx = cx, .doc = doc, .operands = operands, .count = node->operand_count + 1 };
    *ran += plain.status == ONX_OK;
    if (!gen_run_close(&plain, &fast, &origin, why, sizeof why)) {
        print_error("%s-%d (%.80s), the type of input %u is hidden: %s %s\n", node->schema->name, node->schema->since,
                    node->recipe->attributes, k, why, fast.why);
        bad++;
    }
    gen_origin_free(&origin);
    gen_run_free(&plain);
    gen_run_free(&fast);
    onx_doc_free(doc);
    return bad;
}

static void test_gen_facts__hidden_types(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned bad = 0, ran = 0;
    const char *only = getenv("ONX_GEN_ONLY");
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            if (schema->flags & (ONXI_OP_DEPRECATED | ONXI_OP_NONDETERMINISTIC | ONXI_OP_DETERMINISM_UNKNOWN) ||
                (only && strcmp(only, schema->name) != 0))
                continue;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++) {
                const gen_choice choice = { .seed = n, .type = { "*", ONX_FLOAT16 } };
                gen_node node;
                if (!gen_node_make(schema, recipe, &choice, &node))
                    continue;
                for (uint32_t k = 0; k < node.operand_count; k++)
                    if (node.operands[k].kind == GEN_TENSOR && node.operands[k].dtype == ONX_FLOAT16 &&
                        !node.operands[k].constant)
                        bad += run_hidden(cx, &node, k, &ran);
            }
        }
    onx_ctx_free(cx);
    print_message("%u models run\n", ran);
    assert_true(only || ran > 300);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_facts__claims_change_nothing),
        cmocka_unit_test(test_gen_facts__sizes_in_floats),
        cmocka_unit_test(test_gen_facts__integers_that_wrap),
        cmocka_unit_test(test_gen_facts__hidden_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
