/* test_run_chain.c - elementwise nodes that run as one step give the same bits as alone: random graphs of them, with
 * several types, broadcasting, and elements that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

enum { VALUES = 64, INPUTS = 6, RANK = 3, OUTPUTS = 64 };

typedef struct drawn {
    onx_dtype dtype;
    int64_t dims[RANK];
    bool used;
} drawn;

typedef struct graph {
    source s;
    drawn values[VALUES];
    uint32_t count, inputs;
    writer *w;
} graph;

static const char *type_name(onx_dtype dtype)
{
    return onx_dtype_name(dtype);
}

/* A value of the type that can be broadcast with the dims; VALUES: none. */
static uint32_t pick(graph *g, onx_dtype dtype, const int64_t *with)
{
    const uint32_t first = below(&g->s, g->count);
    for (uint32_t i = 0; i < g->count; i++) {
        const uint32_t at = g->count - 1 - (first / 2 + i) % g->count; /* what is new more often */
        bool fits = g->values[at].dtype == dtype;
        for (uint32_t d = 0; with && d < RANK; d++)
            fits &= g->values[at].dims[d] == with[d] || g->values[at].dims[d] == 1 || with[d] == 1;
        if (fits)
            return at;
    }
    return VALUES;
}

static void take(graph *g, uint32_t from, drawn *result)
{
    g->values[from].used = true;
    for (uint32_t d = 0; d < RANK; d++)
        if (g->values[from].dims[d] != 1)
            result->dims[d] = g->values[from].dims[d];
}

static void draw_node(graph *g)
{
    static const char *const one[] = { "Neg", "Abs", "Exp", "Tanh", "Sin", "Relu", "Reciprocal", "Floor" };
    static const char *const two[] = { "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum" };
    static const onx_dtype casts[] = { ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_INT32, ONX_BOOL, ONX_FLOAT16 };
    static const char *const bounds[] = { "(v%u, low)", "(v%u, , high)", "(v%u, low, high)", "(v%u)" };
    static const char *const told[] = { "Less", "Greater", "Equal" }, *const logic[] = { "And", "Or", "Xor" };
    static const onx_dtype types[] = { ONX_FLOAT, ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_INT32, ONX_FLOAT16 };
    onx_dtype dtype = types[below(&g->s, 6)];
    const uint32_t kind = below(&g->s, 10), x = pick(g, dtype, NULL), bools = pick(g, ONX_BOOL, NULL);
    /* The last operators of a list are for floats. Of float16 they have no loops, compute in float and round otherwise
     * (test_run_widen.c). */
    const bool few = dtype == ONX_INT32 || dtype == ONX_FLOAT16;
    drawn made = { .dtype = dtype, .dims = { 1, 1, 1 } };
    if (x == VALUES)
        return;
    take(g, x, &made);
    if (kind < 2) {
        add(g->w, " v%u = %s (v%u)\n", g->count, one[below(&g->s, few ? 2 : 8)], x);
    } else if (kind == 2 && dtype == ONX_FLOAT) {
        add(g->w, " v%u = Pow (v%u, %s)\n", g->count, x, below(&g->s, 2) ? "two" : "half");
    } else if (kind == 8) {
        const uint32_t from = bools < VALUES && below(&g->s, 2) ? bools : x;
        made = (drawn){ .dtype = casts[below(&g->s, 6)], .dims = { 1, 1, 1 } };
        take(g, from, &made);
        add(g->w, " v%u = Cast <to: int = %d> (v%u)\n", g->count, (int)made.dtype, from);
    } else if (kind == 9 && dtype == ONX_FLOAT) {
        add(g->w, " v%u = Clip ", g->count);
        add(g->w, bounds[below(&g->s, 4)], x);
        add(g->w, "\n");
    } else if (kind == 3 && bools < VALUES && below(&g->s, 2)) {
        const uint32_t other = pick(g, ONX_BOOL, g->values[bools].dims);
        made = (drawn){ .dtype = ONX_BOOL, .dims = { 1, 1, 1 } };
        take(g, bools, &made);
        take(g, other, &made);
        add(g->w, " v%u = %s (v%u, v%u)\n", g->count, logic[below(&g->s, 3)], bools, other);
    } else {
        const uint32_t y = pick(g, dtype, made.dims);
        const uint32_t condition = kind == 4 ? pick(g, ONX_BOOL, made.dims) : VALUES;
        if (condition < VALUES) {
            take(g, condition, &made);
            const uint32_t other = pick(g, dtype, made.dims);
            take(g, other, &made);
            add(g->w, " v%u = Where (v%u, v%u, v%u)\n", g->count, condition, x, other);
        } else {
            take(g, y, &made);
            made.dtype = kind == 3 ? ONX_BOOL : dtype;
            add(g->w, " v%u = %s (v%u, v%u)\n", g->count,
                kind == 3 ? told[below(&g->s, 3)] : two[below(&g->s, few ? 6 : 7)], x, y);
        }
    }
    g->values[g->count++] = made;
}

static void declare(graph *g, uint32_t at)
{
    const drawn *v = &g->values[at];
    add(g->w, "%s[%lld, %lld, %lld] v%u", type_name(v->dtype), (long long)v->dims[0], (long long)v->dims[1],
        (long long)v->dims[2], at);
}

/* A graph whose nodes stand in front of its outputs in the text: what no node uses comes out. */
static void draw(graph *g, writer *nodes, uint32_t node_count)
{
    static const int64_t sizes[] = { 1, 2, 3, 7, 16, 33, 300, 1030 };
    static const onx_dtype types[INPUTS] = { ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_INT32, ONX_BOOL, ONX_FLOAT16 };
    writer *model = g->w;
    int64_t dims[RANK];
    for (uint32_t d = 0; d < RANK; d++)
        dims[d] = sizes[below(&g->s, d == 2 ? 8 : 6)];
    for (g->count = 0; g->count < 2 * INPUTS; g->count++) {
        drawn *v = &g->values[g->count];
        *v = (drawn){ .dtype = types[g->count % INPUTS] };
        for (uint32_t d = 0; d < RANK; d++)
            v->dims[d] = g->count < INPUTS || below(&g->s, 2) ? dims[d] : 1;
    }
    g->inputs = g->count;
    nodes->len = 0;
    g->w = nodes;
    while (g->count < g->inputs + node_count)
        draw_node(g);
    g->w = model;
    model->len = 0;
    add(model, "<ir_version: 10, opset_import: [\"\" : 21]>\ng (");
    for (uint32_t i = 0; i < g->inputs; i++) {
        add(model, "%s", i ? ", " : "");
        declare(g, i);
    }
    add(model, ") => (");
    bool any = false;
    for (uint32_t i = g->inputs; i < g->count; i++) {
        if (g->values[i].used)
            continue;
        add(model, "%s", any ? ", " : "");
        declare(g, i);
        any = true;
    }
    add(model, ") <float two = {2.0}, float half = {0.5}, float low = {-1.5}, float high = {1.0}> {\n%.*s}\n",
        (int)nodes->len, nodes->text);
}

static onx_value *fill(source *s, const drawn *v)
{
    static const double odd[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 0, -0.0, 1e30 };
    onx_value *out = tensor(v->dtype, RANK, v->dims);
    for (uint64_t i = 0; i < out->count; i++) {
        const bool floating = onx_dtype_class_of(v->dtype) == ONX_CLASS_FLOATING;
        double number = floating && below(s, 40) == 0 ? odd[below(s, 6)] : (double)between(s, -3, 3);
        if (v->dtype == ONX_BOOL)
            number = number > 0;
        onx_convert(v->dtype, (char *)out->data + i * (onx_dtype_bits(v->dtype) / 8), ONX_DOUBLE, &number, 1, true);
    }
    return out;
}

typedef struct told {
    unsigned chains, tables, steps, nodes;
} told;

static void count(void *user, const onx_run_event *event)
{
    told *t = user;
    const bool chain = strcmp(event->variant, "chain") == 0;
    t->chains += chain;
    t->tables += strcmp(event->variant, "table") == 0;
    t->steps++;
    t->nodes += event->node_count;
    if (chain)
        assert_int_equal(event->node_count, event->post_ops + 1);
}

static told run_model(onx_doc *doc, const onx_session_options *options, const onx_value *const *in, onx_value **out)
{
    told t = { 0 };
    onx_session *session = NULL;
    const onx_run_options watch = { .event = count, .user = &t };
    onx_status status = onx_session_new(cx, doc, options, &session);
    for (int i = 0; i < 2 && status == ONX_OK; i++) { /* the second run finds values of the first */
        t = (told){ 0 };
        status = onx_session_run_with(session, cx, in, out, &watch);
    }
    say_all();
    assert_int_equal(status, ONX_OK);
    onx_session_free(session);
    return t;
}

/* Bit by bit, whatever the instruction set and the number of threads is. */
static void test_run_chain__chains_give_the_same_bits(void **state)
{
    static writer model, nodes;
    graph g = { .s = { 5 }, .w = &model };
    unsigned chains = 0, steps = 0, alone_steps = 0;
    (void)state;
    for (unsigned turn = 0; turn < 150; turn++) {
        static const unsigned isas[] = { 0, ONX_ISA_BASE, ONX_ISA_V3 };
        onx_doc *doc = NULL;
        onx_value *in[2 * INPUTS], *one[OUTPUTS] = { NULL }, *alone[OUTPUTS] = { NULL };
        draw(&g, &nodes, 2 + below(&g.s, 40));
        onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(model.text, model.len), 0, &doc);
        say_all();
        assert_int_equal(status, ONX_OK);
        for (uint32_t i = 0; i < g.inputs; i++)
            in[i] = fill(&g.s, &g.values[i]);
        if (turn % 2) /* from buffers that may be overwritten */
            feed_from_buffers(doc);
        const unsigned isa = isas[turn % 3], threads = 1 + turn / 3 % 2;
        const told t = run_model(doc, &(onx_session_options){ .verify = true, .isa = isa, .threads = threads },
                                 (const onx_value *const *)in, one);
        const told a =
            run_model(doc, &(onx_session_options){ .verify = true, .isa = isa, .threads = 1, .no_optimize = true },
                      (const onx_value *const *)in, alone);
        assert_in_range(t.nodes, 1, a.nodes); /* what is drawn twice runs once */
        assert_int_equal(a.chains, 0);
        chains += t.chains;
        steps += t.steps;
        alone_steps += a.steps;
        for (uint32_t i = 0; i < OUTPUTS && one[i]; i++) {
            if (!near_enough(one[i], alone[i], 0))
                fail_msg("output %u of turn %u differs\n%.3000s", i, turn, model.text);
            onx_value_free(one[i]);
            onx_value_free(alone[i]);
        }
        for (uint32_t i = 0; i < g.inputs; i++)
            onx_value_free(in[i]);
        onx_doc_free(doc);
    }
    assert_in_range(chains, 150, 15000);
    assert_in_range(steps, 1, alone_steps * 9 / 10);
}

static told run_text(const char *text, onx_value **y)
{
    onx_doc *doc = NULL;
    onx_value *x = tensor(ONX_FLOAT, 2, (int64_t[]){ 2, 3 });
    for (int i = 0; i < 6; i++)
        ((float *)x->data)[i] = (float)(i - 2);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    const told t = run_model(doc, NULL, (const onx_value *const[]){ x }, y);
    onx_value_free(x);
    onx_doc_free(doc);
    return t;
}

#define HEAD "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[2, 3] x) => "

/* What somebody else reads, and what has another shape, is a step of its own. */
static void test_run_chain__what_is_seen_is_there(void **state)
{
    onx_value *y[2] = { NULL };
    (void)state;
    told t = run_text(HEAD "(float[2, 3] y) { a = Neg (x) b = Abs (a) c = Sin (x) y = Add (b, c) }", y);
    assert_int_equal(t.steps, 1);
    assert_int_equal(t.nodes, 4);
    for (int i = 0; i < 6; i++)
        assert_float_equal(((float *)y[0]->data)[i], fabsf((float)i - 2) + sinf((float)i - 2), 1e-6);
    t = run_text(HEAD "(float[2, 3] y, float[2, 3] a) { a = Neg (x) y = Abs (a) }", y);
    assert_int_equal(t.steps, 2);
    t = run_text(
        HEAD "(float[3, 2] y) { a = Neg (x) b = Abs (a) c = Transpose <perm = [1, 0]> (b) d = Neg (c) y = Abs (d) }",
        y);
    assert_int_equal(t.steps, 3);
    t = run_text(HEAD "(float[2, 2, 3] y) <float[2, 1, 1] k = {1, 2}> { a = Neg (x) b = Add (a, k) y = Abs (b) }", y);
    assert_int_equal(t.steps, 2);
    for (int i = 0; i < 2; i++)
        onx_value_free(y[i]);
}

/* Bounds, changes of the type and operators of many inputs, where they have two, are links as well. */
static void test_run_chain__takes_bounds_types_and_pairs(void **state)
{
    onx_value *y[2] = { NULL };
    (void)state;
    const told t = run_text(HEAD "(float[2, 3] y) <float low = {-1}, float high = {2}> {"
                                 " a = Clip (x, low, high) b = Max (a, low) c = Sum (b, x) d = Greater (c, x)"
                                 " e = Cast <to = 1> (d) f = Clip (e, , high) y = Min (f, x) }",
                            y);
    assert_int_equal(t.steps, 1);
    assert_int_equal(t.nodes, 7);
    for (int i = 0; i < 6; i++) /* x is -2 .. 3, c is x and more where x is above 0 */
        assert_float_equal(((float *)y[0]->data)[i], i < 2 ? (float)(i - 2) : i > 2 ? 1 : 0, 0);
    onx_value_free(y[0]);
}

/* ---- bytes ---- */

/* From bytes to bytes: by a table where all else is constant and there are enough of them. */
static const struct {
    const char *nodes;
    bool table;
} byte_chains[] = {
    { "f = Relu (d)  y = QuantizeLinear (f, sy, zy)", true },
    { "f = Sigmoid (d)  y = QuantizeLinear (f, sy, zy)", true },
    { "a = HardSwish (d)  f = Neg (a)  y = QuantizeLinear (f, sy, zy)", true },
    { "f = Clip (d, low, high)  y = QuantizeLinear (f, sy, zy)", true },
    { "a = Mul (half, d)  b = Exp (a)  f = Sub (b, d)  y = QuantizeLinear (f, sy, zy)", true },
    { "y = QuantizeLinear (d, sy, zy)", true },
    { "e = DequantizeLinear (x, sy, zx)  f = Sub (d, e)  y = QuantizeLinear (f, sy, zy)", true },
    { "e = DequantizeLinear (other, sx, zx)  f = Sub (d, e)  y = QuantizeLinear (f, sy, zy)", false },
    { "f = Mul (d, given)  y = QuantizeLinear (f, sy, zy)", false },
    { "f = Tanh (d)  y = QuantizeLinear (f, given, zy)", false },
};

static onx_value *any_bytes(source *s, onx_dtype dtype, int64_t n)
{
    onx_value *v = tensor(dtype, 2, (int64_t[]){ 2, n / 2 });
    for (uint64_t i = 0; i < v->count; i++)
        ((uint8_t *)v->data)[i] = (uint8_t)below(s, 256);
    return v;
}

static void test_run_chain__bytes_give_the_same_bits(void **state)
{
    enum { CHAINS = sizeof byte_chains / sizeof *byte_chains };
    static const unsigned isas[] = { 0, ONX_ISA_BASE, ONX_ISA_V3, ONX_ISA_V4 };
    static const int64_t counts[] = { 1022, 1024, 5002, 40000 };
    static writer w;
    source s = { 67 };
    (void)state;
    for (unsigned turn = 0; turn < 8 * CHAINS; turn++) {
        const char *from = turn / CHAINS % 2 ? "int8" : "uint8", *to = turn / CHAINS / 2 % 2 ? "int8" : "uint8";
        const int64_t n = counts[below(&s, 4)];
        const onx_dtype dtype = turn / CHAINS % 2 ? ONX_INT8 : ONX_UINT8;
        onx_value *x = any_bytes(&s, dtype, n), *other = any_bytes(&s, dtype, n), *given = tensor(ONX_FLOAT, 0, NULL);
        onx_value *one[OUTPUTS] = { NULL }, *alone[OUTPUTS] = { NULL };
        onx_doc *doc = NULL;
        *(float *)given->data = 0.25f;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\ng (%s[2, N] x, %s[2, N] other, float given) => (%s[2, N] y) "
            "<float sx = {%.4f}, %s zx = {%u}, float sy = {%.4f}, %s zy = {%u}, float low = {-0.7}, float high = {1.5}, "
            "float half = {0.5}> {\n d = DequantizeLinear (x, sx, zx) %s\n}\n",
            from, from, to, (double)between(&s, 0.01f, 0.1f), from, below(&s, 128), (double)between(&s, 0.005f, 0.05f),
            to, below(&s, 128), byte_chains[turn % CHAINS].nodes);
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        const onx_value *const in[] = { x, other, given };
        const unsigned isa = isas[turn / 3 % 4];
        const told t =
            run_model(doc, &(onx_session_options){ .verify = true, .isa = isa, .threads = 1 + turn % 2 }, in, one);
        run_model(doc, &(onx_session_options){ .verify = true, .isa = isa, .threads = 1, .no_optimize = true }, in,
                  alone);
        assert_int_equal(t.tables, byte_chains[turn % CHAINS].table && n >= 1024);
        assert_int_equal(t.tables + t.chains, 1);
        if (!near_enough(one[0], alone[0], 0))
            fail_msg("turn %u differs\n%s", turn, w.text);
        onx_value_free(one[0]);
        onx_value_free(alone[0]);
        onx_value_free(x);
        onx_value_free(other);
        onx_value_free(given);
        onx_doc_free(doc);
    }
}

/* ---- chains that end in a node that goes line by line ---- */

/* What stands behind a chain, whose result is c: all of it in one step, or not. `per_row` has a number for each line.
 */
typedef struct end_case {
    const char *node, *dims;
    bool joins;
} end_case;

static const end_case ends[] = {
    { "z = Softmax (c)", "A, B, C", true },
    { "z = LogSoftmax (c)", "A, B, C", true },
    { "z = Softmax <axis = 1> (c)", "A, B, C", false },
    { "z = ReduceSum (c, last)", "A, B, 1", true },
    { "z = ReduceSum <keepdims = 0> (c, two)", "A", true },
    { "z = ReduceMean <keepdims = 0> (c, last)", "A, B", true },
    { "z = ReduceMax (c, last)", "A, B, 1", true },
    { "z = ReduceL2 (c, last)", "A, B, 1", true },
    { "z = ReduceSum (c, first)", "1, B, C", false },
    { "z = ReduceMean (c)", "1, 1, 1", true },
    { "z = LayerNormalization (c, scale, shift)", "A, B, C", true },
    { "z = LayerNormalization (c, scale)", "A, B, C", true },
    { "z = LayerNormalization <axis = 1> (c, scale)", "A, B, C", true },
    { "z = LayerNormalization (c, per_row)", "A, B, C", false },
    { "z, mean = LayerNormalization (c, scale)", "A, B, C", true },
    { "z = RMSNormalization (c, scale)", "A, B, C", true },
    { "z = RMSNormalization (c, x)", "A, B, C", false },
};

/* a of some, with what is in between seen by nobody, and operands of all shapes. */
static void draw_end(writer *w, const end_case *e)
{
    w->len = 0;
    add(w,
        "<ir_version: 12, opset_import: [\"\" : 23]>\ng (float[A, B, C] x, float[A, B, 1] per_row, float[C] row, "
        "float[C] scale, float[C] shift) => (float[%s] z)\n"
        "<int64[1] last = {-1}, int64[1] first = {0}, int64[2] two = {1, 2}> {\n"
        " p = Neg (per_row) q = Neg (row) xx = Neg (x)\n" /* in buffers that a step may write to */
        " a = Mul (xx, q) b = Tanh (a) d = Add (b, p) f = Mul (b, d) c = Sub (f, row)\n %s }\n",
        e->dims, e->node);
}

static void test_run_chain__ends(void **state)
{
    static const int64_t shapes[][3] = { { 2, 3, 1 },    { 3, 5, 7 },     { 1, 1, 16 },     { 2, 40, 33 },
                                         { 3, 4, 1030 }, { 1, 2, 8192 },  { 2, 1, 8193 },   { 300, 1, 3 },
                                         { 1, 1, 300 },  { 3, 1, 20011 }, { 130, 1, 16200 } };
    static const unsigned isas[] = { 0, ONX_ISA_BASE, ONX_ISA_V3 };
    static writer model;
    source s = { 9 };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends * (sizeof shapes / sizeof *shapes); i++) {
        const end_case *e = &ends[i % (sizeof ends / sizeof *ends)];
        const int64_t *n = shapes[i / (sizeof ends / sizeof *ends)];
        const drawn in_types[] = { { ONX_FLOAT, { n[0], n[1], n[2] }, false },
                                   { ONX_FLOAT, { n[0], n[1], 1 }, false } };
        onx_doc *doc = NULL;
        onx_value *in[5], *one = NULL, *alone = NULL;
        draw_end(&model, e);
        const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(model.text, model.len), 0, &doc);
        say_all();
        assert_int_equal(status, ONX_OK);
        for (int k = 0; k < 5; k++) {
            if (k < 2) {
                in[k] = fill(&s, &in_types[k]);
                continue;
            }
            in[k] = tensor(ONX_FLOAT, 1, (int64_t[]){ n[2] });
            for (int64_t at = 0; at < n[2]; at++)
                ((float *)in[k]->data)[at] = (float)(at % 13 - 6) / 5;
        }
        const onx_session_options fast = { .verify = true, .isa = isas[i % 3], .threads = 1 + i / 3 % 2 };
        const told t = run_model(doc, &fast, (const onx_value *const *)in, &one);
        const told a =
            run_model(doc, &(onx_session_options){ .verify = true, .isa = fast.isa, .threads = 1, .no_optimize = true },
                      (const onx_value *const *)in, &alone);
        assert_int_equal(t.nodes, a.nodes);
        const uint64_t line = strstr(e->node, "two") || strstr(e->node, "axis = 1") ? (uint64_t)(n[1] * n[2])
                              : strstr(e->node, "(c)") && e->dims[0] == '1'         ? (uint64_t)(n[0] * n[1] * n[2])
                                                                                    : (uint64_t)n[2];
        /* long lines are for large values, of no fewer lines than there are threads */
        const uint64_t count = (uint64_t)(n[0] * n[1] * n[2]);
        const bool long_line = line > 8192 && (line > 1 << 18 || count < 1 << 21 || count / line < fast.threads);
        const unsigned steps = e->joins && n[2] > 1 && !long_line              ? 3
                               : !e->joins && n[0] > 1 && n[1] > 1 && n[2] > 1 ? 4
                                                                               : t.steps;
        if (t.steps != steps)
            fail_msg("%s of %lld %lld %lld takes %u steps", e->node, (long long)n[0], (long long)n[1], (long long)n[2],
                     t.steps);
        if (!near_enough(one, alone, 0))
            fail_msg("%s of %lld %lld %lld differs", e->node, (long long)n[0], (long long)n[1], (long long)n[2]);
        for (int k = 0; k < 5; k++)
            onx_value_free(in[k]);
        onx_value_free(one);
        onx_value_free(alone);
        onx_doc_free(doc);
    }
}

/* Channels that are no whole blocks of a layout lie with others between them that nobody made: pairs of what a chain
 * has made go over all of it, by two operands of the chain, and one of it in either place. */
static void test_run_chain__padded_layouts(void **state)
{
    static const char *const pairs[] = { "t = Sqrt (c)  y = Add (t, t)", "t = Tanh (c)  y = Sub (t, c)",
                                         "t = Sin (c)  u = Mul (t, t)  y = Sub (c, u)" };
    static const uint32_t channels[] = { 24, 20, 40, 3 };
    static writer w;
    source s = { 61 };
    (void)state;
    for (unsigned turn = 0; turn < 24; turn++) {
        const uint32_t m = channels[turn / 3 % 4];
        const bool transposed = turn < 12;
        onx_value *x = floats(&s, 3, (int64_t[]){ 3, 2, 2 + turn % 5 });
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 22]> g (float[N, 2, W] x) => (float[N, M, V] y) <float[%u, %u, 7] w = {",
            transposed ? 2 : m, transposed ? m : 2);
        for (uint32_t i = 0; i < 2 * m * 7; i++)
            add(&w, "%s%.2f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> { c = %s (x, w)  %s }", transposed ? "ConvTranspose" : "Conv <pads = [6, 6]>", pairs[turn % 3]);
        compare_any(&w, "Conv", (const onx_value *const[]){ x }, 200);
        onx_value_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_chain__chains_give_the_same_bits),
        cmocka_unit_test(test_run_chain__what_is_seen_is_there),
        cmocka_unit_test(test_run_chain__takes_bounds_types_and_pairs),
        cmocka_unit_test(test_run_chain__bytes_give_the_same_bits),
        cmocka_unit_test(test_run_chain__ends),
        cmocka_unit_test(test_run_chain__padded_layouts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
