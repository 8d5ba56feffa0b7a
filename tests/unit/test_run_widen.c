/* test_run_widen.c - graphs of float16 and bfloat16, whose nodes compute in float where that is faster: results equal
 * those of the original nodes except for rounding, few Casts are added, and values that must keep their type do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

/* A model; H stands for the 16-bit float type, N for its number. Inputs are x, H[2, 3, 8, 8], and k, H[1, 4, 8]. */
enum { SAME_BITS = 1 /* no Cast is added: same bits */, FLOAT16_ONLY = 2 /* an operator refuses bfloat16 */ };

typedef struct body {
    const char *name, *outputs, *nodes;
    int casts; /* the most Casts that may be added; -1: any number */
    unsigned traits;
} body;

static const body bodies[] = {
    { "a convolutional network", "H[2, 16] y",
      " c = Conv <pads = [1, 1, 1, 1]> (x, w, b)\n r = Relu (c)\n q = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)\n"
      " f = Flatten (q)\n d = MatMul (f, m)\n y = Softmax (d)\n",
      2, 0 },
    { "attention with a cache", "H[1, 4, 8] y, H[1, 8, 8] present",
      " key = MatMul (k, p)\n present = Concat <axis = 1> (k, key)\n t = Transpose <perm = [0, 2, 1]> (present)\n"
      " query = MatMul (k, p)\n s = MatMul (query, t)\n a = Softmax (s)\n y = MatMul (a, present)\n",
      4, 0 },
    { "a table that is not doubled", "H[2, 8] y",
      " i = Constant <value_ints = [3, 1]> ()\n j = Shape (x)\n two = Gather (j, zero)\n picks = Mul (i, two)\n"
      " s = Mod (picks, eight)\n e = Gather (p, s)\n y = MatMul (e, p)\n",
      2, 0 },
    { "branches that capture", "H[A, B, C] y",
      " n = ReduceSum <keepdims = 0> (k)\n yes = Greater (n, low)\n y = If (yes) <then_branch = t () => (H[1, 4, 8] o)"
      " { h = MatMul (k, p)\n o = Tanh (h) }, else_branch = e () => (H[1, 4, 8] o) { h = MatMul (k, p)\n o = Neg (h) }>\n",
      -1, 0 },
    { "loops", "H[1, 4, 8] y",
      " go = Constant <value = bool {1}> ()\n trips = Constant <value = int64 {3}> ()\n"
      " y = Loop (trips, go, k) <body = turn (int64 i, bool c, H[1, 4, 8] d) => (bool on, H[1, 4, 8] o)"
      " { on = Identity (c)\n h = MatMul (d, p)\n o = Tanh (h) }>\n",
      -1, 0 },
    { "functions", "H[1, 4, 8] y", " h = t.layer (k, p)\n y = t.layer (h, p)\n", 2, 0 },
    { "a body with a guard", "H[1, 4, 8] y", " h = MatMul (k, p)\n y = Gelu (h)\n", 2, 0 },
    { "casts of the model", "H[1, 4, 8] y, float[1, 4, 8] z",
      " h = MatMul (k, p)\n f = Cast <to = 1> (h)\n g = Exp (f)\n n = Cast <to = N> (g)\n z = Cast <to = 1> (n)\n"
      " y = MatMul (n, p)\n",
      -1, 0 },
    { "types that follow from an input", "H[8, 8] y, H[1, 4, 8] z",
      " h = MatMul (k, p)\n m2 = Squeeze (h, zero1)\n e = EyeLike (p)\n y = MatMul (e, p)\n z = Tanh (h)\n", -1, 0 },
    { "lists", "H[1, 8, 8] y",
      " h = MatMul (k, p)\n l = SplitToSequence <axis = 1> (h)\n more = SequenceInsert (l, h)\n"
      " a = ConcatFromSequence <axis = 1> (more)\n d = MatMul (a, p)\n y = Sin (d)\n",
      -1, FLOAT16_ONLY },
    { "comparisons and choices", "bool[1, 4, 8] y, int64[1, 4] z",
      " h = MatMul (k, p)\n y = Greater (h, low)\n z = ArgMax <axis = 2, keepdims = 0> (h)\n", -1, 0 },
    { "nodes with loops for the type", "H[1, 4, 8] y",
      " a = Neg (k)\n d = Mul (a, k)\n y = Transpose <perm = [0, 1, 2]> (d)\n", 0, SAME_BITS },
    { "quantized weights", "H[1, 4, 8] y",
      " dq = DequantizeLinear <axis = 1> (q8, sc)\n h = MatMul (k, dq)\n y = Relu (h)\n", 2, 0 },
    { "recurrent layers", "H[4, 1, 1, 8] y",
      " t = Transpose <perm = [1, 0, 2]> (k)\n y = LSTM <hidden_size = 8> (t, lw, lr)\n", 2, 0 },
    { "casts to the type that is there", "H[1, 4, 8] y, H[1, 4, 8] z",
      " h = MatMul (k, p)\n n = Cast <to = N> (h)\n s = Softmax (n)\n e = Cast <to = N> (s)\n y = MatMul (e, p)\n"
      " z = Cast <to = N> (y)\n",
      3, 0 },
    { "a value of two kinds of readers", "H[1, 4, 8] y, H[1, 4, 8] z",
      " h = MatMul (k, p)\n y = Identity (h)\n z = Tanh (h)\n", -1, 0 },
};

/* The text with the type in place of H and its number in place of N. */
static void add_typed(writer *w, const char *text, onx_dtype dtype)
{
    for (const char *c = text; *c; c++) {
        const bool alone =
            c == text || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789", c[-1]);
        const char after = c[1];
        if (*c == 'H' && alone && after == '[')
            add(w, "%s", onx_dtype_name(dtype));
        else if (*c == 'N' && alone && after == '>')
            add(w, "%d", (int)dtype);
        else
            add(w, "%c", *c);
    }
}

typedef struct constant {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
} constant;

static const constant constants[] = { { "w", 4, { 4, 3, 3, 3 } }, { "b", 1, { 4 } },  { "m", 2, { 64, 16 } },
                                      { "p", 2, { 8, 8 } },       { "sc", 1, { 8 } }, { "lw", 3, { 1, 32, 8 } },
                                      { "lr", 3, { 1, 32, 8 } } };

static uint16_t bits_of(onx_dtype dtype, float x)
{
    uint16_t bits;
    assert_int_equal(onx_convert(dtype, &bits, ONX_FLOAT, &x, 1, true), ONX_OK);
    return bits;
}

/* Elements of the narrow types are written as their bits. */
static void add_constant(writer *w, const constant *c, onx_dtype dtype, source *s)
{
    int64_t count = 1;
    add(w, ", %s[", onx_dtype_name(dtype));
    for (uint32_t i = 0; i < c->rank; i++) {
        add(w, "%s%lld", i ? ", " : "", (long long)c->dims[i]);
        count *= c->dims[i];
    }
    add(w, "] %s = {", c->name);
    for (int64_t i = 0; i < count; i++)
        add(w, "%s%u", i ? ", " : "", (unsigned)bits_of(dtype, between(s, -0.5F, 0.5F)));
    add(w, "}");
}

static onx_doc *model_of(const body *b, onx_dtype dtype)
{
    static writer w;
    source s = { 17 };
    onx_doc *doc = NULL;
    w.len = 0;
    add_typed(&w, "<ir_version: 10, opset_import: [\"\" : 22, \"t\" : 1]>\ng (H[2, 3, 8, 8] x, H[1, 4, 8] k) => (",
              dtype);
    add_typed(&w, b->outputs, dtype);
    add_typed(&w, ") <H[1] low = {0}, int64 zero = {0}, int64[1] zero1 = {0}, int64[1] eight = {8}, int8[8, 8] q8 = {",
              dtype);
    for (int i = 0; i < 64; i++)
        add(&w, "%s%d", i ? ", " : "", (int)below(&s, 255) - 127);
    add(&w, "}");
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        add_constant(&w, &constants[i], dtype, &s);
    add(&w, "> {\n");
    add_typed(&w, b->nodes, dtype);
    add(&w, "}\n<domain: \"t\", opset_import: [\"\" : 22]> layer (a, b) => (y) { h = MatMul (a, b)\n y = Sin (h) }\n");
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    return doc;
}

static onx_value *fill(source *s, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++)
        ((uint16_t *)v->data)[i] = bits_of(dtype, between(s, -1, 1));
    return v;
}

typedef struct told {
    int casts; /* that the session has added */
} told;

static void count(void *user, const onx_run_event *event)
{
    told *t = user;
    t->casts += onx_str_is(event->op_type, "Cast") && !event->node;
}

enum { OUTPUTS = 2 };

static told run_model(onx_doc *doc, const onx_session_options *options, const onx_value *const *in, onx_value **out)
{
    told t = { 0 };
    onx_session *session = NULL;
    const onx_run_options watch = { .event = count, .user = &t };
    onx_status status = onx_session_new(cx, doc, options, &session);
    for (int i = 0; i < 2 && status == ONX_OK; i++) {
        t = (told){ 0 };
        status = onx_session_run_with(session, cx, in, out, &watch);
    }
    say_all();
    assert_int_equal(status, ONX_OK);
    onx_session_free(session);
    return t;
}

/* Elements that differ by roundings of the type; others are the same. */
static bool agree(const onx_value *a, const onx_value *b, onx_dtype dtype)
{
    const double near = dtype == ONX_FLOAT16 ? 0.004 : 0.03;
    onx_value_difference d = { .what = "bits" };
    const bool rounds = a->dtype == dtype || a->dtype == ONX_FLOAT;
    if (onx_value_close(a, b, rounds ? near : 0, rounds ? near : 0, &d))
        return true;
    print_error("%s: %.200s\n", d.what, d.text);
    return false;
}

static void test_run_widen__gives_the_same_but_for_rounding(void **state)
{
    static const onx_dtype types[] = { ONX_FLOAT16, ONX_BFLOAT16 };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof bodies / sizeof *bodies; i++) {
        const body *b = &bodies[i / 2];
        const onx_dtype dtype = types[i % 2];
        source s = { 5 };
        if (b->traits & FLOAT16_ONLY && dtype != ONX_FLOAT16)
            continue;
        onx_doc *doc = model_of(b, dtype);
        onx_value *const in[] = { fill(&s, dtype, 4, (int64_t[]){ 2, 3, 8, 8 }),
                                  fill(&s, dtype, 3, (int64_t[]){ 1, 4, 8 }) };
        onx_value *fast[OUTPUTS] = { NULL }, *slow[OUTPUTS] = { NULL };
        const told t =
            run_model(doc, &(onx_session_options){ .verify = true, .threads = 2 }, (const onx_value *const *)in, fast);
        const told none = run_model(doc, &(onx_session_options){ .verify = true, .threads = 1, .no_optimize = true },
                                    (const onx_value *const *)in, slow);
        assert_int_equal(none.casts, 0);
        if (b->casts >= 0 && t.casts > b->casts)
            fail_msg("%s of %s: %d casts", b->name, onx_dtype_name(dtype), t.casts);
        for (int k = 0; k < OUTPUTS && fast[k]; k++) {
            if (!agree(fast[k], slow[k], dtype) || (b->traits & SAME_BITS && !near_enough(fast[k], slow[k], 0)))
                fail_msg("%s of %s: output %d differs", b->name, onx_dtype_name(dtype), k);
            onx_value_free(fast[k]);
            onx_value_free(slow[k]);
        }
        onx_value_free(in[0]);
        onx_value_free(in[1]);
        onx_doc_free(doc);
    }
}

/* Casts to the type that is there neither round a value that is kept in float, nor add Casts: the same bits as without.
 */
static void test_run_widen__casts_to_the_same_type_change_nothing(void **state)
{
    static const onx_dtype types[] = { ONX_FLOAT16, ONX_BFLOAT16 };
    static const body with = { "with casts", "H[1, 4, 8] y, H[1, 4, 8] z",
                               " h = MatMul (k, p)\n n = Cast <to = N> (h)\n s = Softmax (n)\n e = Cast <to = N> (s)\n"
                               " y = MatMul (e, p)\n z0 = Tanh (y)\n z1 = Cast <to = N> (z0)\n z = Sin (z1)\n",
                               -1, 0 };
    static const body without = { "without", "H[1, 4, 8] y, H[1, 4, 8] z",
                                  " h = MatMul (k, p)\n s = Softmax (h)\n y = MatMul (s, p)\n z0 = Tanh (y)\n"
                                  " z = Sin (z0)\n",
                                  -1, 0 };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        source s = { 5 };
        onx_value *const in[] = { fill(&s, types[i], 4, (int64_t[]){ 2, 3, 8, 8 }),
                                  fill(&s, types[i], 3, (int64_t[]){ 1, 4, 8 }) };
        onx_value *a[OUTPUTS] = { NULL }, *b[OUTPUTS] = { NULL };
        const onx_session_options options = { .verify = true, .threads = 1 };
        onx_doc *first = model_of(&with, types[i]), *second = model_of(&without, types[i]);
        const told x = run_model(first, &options, (const onx_value *const *)in, a);
        const told y = run_model(second, &options, (const onx_value *const *)in, b);
        assert_int_equal(x.casts, y.casts);
        for (int k = 0; k < OUTPUTS; k++) {
            assert_memory_equal(a[k]->data, b[k]->data, a[k]->size);
            onx_value_free(a[k]);
            onx_value_free(b[k]);
            onx_value_free(in[k]);
        }
        onx_doc_free(first);
        onx_doc_free(second);
    }
}

/* What the types of a model forbid stays forbidden, whether the operator takes float or not. */
static void test_run_widen__invalid_types_are_refused(void **state)
{
    static const char *const nodes[] = {
        "<ir_version: 10, opset_import: [\"\" : 22]> g (float16[2] x, float[2] z) => (float16[2] y) { y = Add (x, z) }",
        "<ir_version: 10, opset_import: [\"\" : 22]> g (float16[2] x, bfloat16[2] z) => (float16[2] y) { y = Sub (x, z) }",
        "<ir_version: 8, opset_import: [\"\" : 7]> g (bfloat16[2] x) => (bfloat16[2] y) { y = Sin (x) }",
        "<ir_version: 8, opset_import: [\"\" : 12]> g (bfloat16[2] x) => (bfloat16[2] y) { y = Softmax (x) }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        onx_doc *doc = NULL;
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(nodes[i]), 0, &doc), ONX_OK);
        const onx_graph *g = onx_doc_model(doc)->graph;
        onx_value *in[2] = { NULL }, *out = NULL;
        for (uint32_t k = 0; k < g->input_count; k++)
            in[k] = tensor((onx_dtype)g->input[k]->type->tensor_type->elem_type, 1, (int64_t[]){ 2 });
        onx_session *session = NULL;
        onx_status status = onx_session_new(cx, doc, NULL, &session);
        if (status == ONX_OK)
            status = onx_session_run(session, cx, (const onx_value *const *)in, &out);
        assert_int_equal(status, ONX_E_INVALID);
        onx_diag_clear(cx);
        onx_session_free(session);
        onx_value_free(out);
        onx_value_free(in[0]);
        onx_value_free(in[1]);
        onx_doc_free(doc);
    }
}

/* A row of the caller gets the types of the model. */
static onx_status own_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    memcpy(work->outputs[0]->data, work->inputs[0]->data, work->inputs[0]->size);
    return work->inputs[0]->dtype == ONX_FLOAT16 ? ONX_OK : ONX_E_INVALID;
}

static void test_run_widen__rows_of_the_caller_keep_the_type(void **state)
{
    static const char text[] = "<ir_version: 10, opset_import: [\"\" : 22]> g (float16[4] x) => (float16[4] y)"
                               " { a = Sin (x)\n b = Cos (a)\n y = Sin (b) }";
    const onx_kernel rows[] = { { .op = "Cos", .since = 7, .run = own_run }, { 0 } };
    (void)state;
    source s = { 3 };
    onx_doc *doc = NULL;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    onx_value *in = fill(&s, ONX_FLOAT16, 1, (int64_t[]){ 4 }), *out = NULL;
    run_model(doc, &(onx_session_options){ .verify = true, .kernels = rows }, (const onx_value *const[]){ in }, &out);
    for (uint64_t i = 0; i < 4; i++) {
        float x, y;
        onx_convert(ONX_FLOAT, &x, ONX_FLOAT16, (uint16_t *)in->data + i, 1, true);
        onx_convert(ONX_FLOAT, &y, ONX_FLOAT16, (uint16_t *)out->data + i, 1, true);
        assert_true(fabsf(y - sinf(sinf(x))) < 2e-3F);
    }
    onx_value_free(in);
    onx_value_free(out);
    onx_doc_free(doc);
}

/* A weight that a caller gives in place of an initializer, and one that is large enough to be widened late. */
static void test_run_widen__initializers_are_overridden(void **state)
{
    static writer w;
    static const constant large = { "large", 2, { 96, 96 } };
    static const onx_dtype types[] = { ONX_FLOAT16, ONX_BFLOAT16 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        source s = { 9 };
        w.len = 0;
        add_typed(
            &w,
            "<ir_version: 10, opset_import: [\"\" : 22]>\ng (H[2, 96] x, H[96] bias, H[96] more) => (H[2, 96] y) <H[96] bias = {",
            types[i]);
        for (int k = 0; k < 96; k++)
            add(&w, "%s%u", k ? ", " : "", (unsigned)bits_of(types[i], 0.25F));
        add(&w, "}");
        add_constant(&w, &large, types[i], &s);
        add(&w, "> {\n h = MatMul (x, large)\n t = Add (h, bias)\n u = Sin (t)\n y = Add (u, more) }");
        onx_doc *doc = NULL;
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        onx_value *in[3] = { fill(&s, types[i], 2, (int64_t[]){ 2, 96 }), NULL,
                             fill(&s, types[i], 1, (int64_t[]){ 96 }) };
        for (int turn = 0; turn < 2; turn++) {
            onx_value *fast = NULL, *slow = NULL;
            run_model(doc, &(onx_session_options){ .verify = true, .threads = 1 }, (const onx_value *const *)in, &fast);
            run_model(doc, &(onx_session_options){ .verify = true, .no_optimize = true }, (const onx_value *const *)in,
                      &slow);
            assert_true(agree(fast, slow, types[i]));
            onx_value_free(fast);
            onx_value_free(slow);
            in[1] = turn ? in[1] : fill(&s, types[i], 1, (int64_t[]){ 96 });
        }
        for (int k = 0; k < 3; k++)
            onx_value_free(in[k]);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_widen__gives_the_same_but_for_rounding),
        cmocka_unit_test(test_run_widen__casts_to_the_same_type_change_nothing),
        cmocka_unit_test(test_run_widen__invalid_types_are_refused),
        cmocka_unit_test(test_run_widen__rows_of_the_caller_keep_the_type),
        cmocka_unit_test(test_run_widen__initializers_are_overridden),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
