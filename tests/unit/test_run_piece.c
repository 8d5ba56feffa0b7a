/* test_run_piece.c - values inside other values, outputs of a Split and inputs of a Concat: random graphs of them give
 * for a batch of two, whose parts are not contiguous, the same as for each of the two; and no bytes are moved
 * unnecessarily. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

enum { VALUES = 48, INPUTS = 3, OUTPUTS = 8, WIDTH = 16, CHANNELS_MAX = 64, MODELS = 300 };

typedef struct graph {
    source s;
    uint32_t channels[VALUES], count;
    uint32_t outputs[OUTPUTS], output_count;
    writer *w;
} graph;

/* One that is new more often than not. */
static uint32_t pick(graph *g)
{
    const uint32_t back = below(&g->s, g->count);
    return g->count - 1 - (below(&g->s, 3) ? back / 3 : back);
}

static void draw_split(graph *g, uint32_t x)
{
    const uint32_t parts = 2 + below(&g->s, 2);
    uint32_t left = g->channels[x], sizes[3];
    if (left < parts || g->count + parts > VALUES)
        return;
    add(g->w, " s%u = Constant <value_ints = [", g->count);
    for (uint32_t i = 0; i < parts; i++) {
        sizes[i] = i + 1 == parts ? left : 1 + below(&g->s, left - (parts - 1 - i));
        left -= sizes[i];
        add(g->w, "%s%u", i ? ", " : "", sizes[i]);
    }
    add(g->w, "]> ()\n");
    for (uint32_t i = 0; i < parts; i++) {
        add(g->w, "%s v%u", i ? "," : "", g->count + i);
        g->channels[g->count + i] = sizes[i];
    }
    add(g->w, " = Split <axis = 1> (v%u, s%u)\n", x, g->count);
    g->count += parts;
}

static void draw_concat(graph *g)
{
    const uint32_t operands = 1 + below(&g->s, 3);
    uint32_t from[3], sum = 0;
    for (uint32_t i = 0; i < operands; i++)
        sum += g->channels[from[i] = pick(g)];
    if (sum > CHANNELS_MAX)
        return;
    add(g->w, " v%u = Concat <axis = 1> (", g->count);
    for (uint32_t i = 0; i < operands; i++)
        add(g->w, "%sv%u", i ? ", " : "", from[i]);
    add(g->w, ")\n");
    g->channels[g->count++] = sum;
}

static void draw_node(graph *g)
{
    static const char *const one[] = { "Neg", "Abs", "Relu", "Identity", "Softmax", "Tanh" };
    const uint32_t kind = below(&g->s, 10), x = pick(g);
    if (kind < 3) {
        draw_split(g, x);
    } else if (kind < 7) {
        draw_concat(g);
    } else {
        uint32_t other = x;
        for (uint32_t i = 0; i < g->count && kind == 9; i++)
            other = g->channels[i] == g->channels[x] && below(&g->s, 2) ? i : other;
        if (kind == 9)
            add(g->w, " v%u = Sub (v%u, v%u)\n", g->count, x, other);
        else
            add(g->w, " v%u = %s (v%u)\n", g->count, one[below(&g->s, 6)], x);
        g->channels[g->count++] = g->channels[x];
    }
}

static void declare(graph *g, const uint32_t *of, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add(g->w, "%sfloat[N, %u, %d] v%u", i ? ", " : "", g->channels[of[i]], WIDTH, of[i]);
}

static onx_doc *draw(graph *g, writer *nodes, writer *whole)
{
    static const uint32_t inputs[INPUTS] = { 0, 1, 2 };
    onx_doc *doc = NULL;
    nodes->len = whole->len = 0;
    g->w = nodes;
    g->output_count = 0;
    for (g->count = 0; g->count < INPUTS; g->count++)
        g->channels[g->count] = 1 + below(&g->s, 8);
    while (g->count < VALUES - 3)
        draw_node(g);
    for (uint32_t i = INPUTS; i < g->count && g->output_count < OUTPUTS; i++)
        if (i + 1 == g->count || below(&g->s, 6) == 0)
            g->outputs[g->output_count++] = i;
    g->w = whole;
    add(whole, "<ir_version: 10, opset_import: [\"\": 21]>\ng (");
    declare(g, inputs, INPUTS);
    add(whole, ") => (");
    declare(g, g->outputs, g->output_count);
    add(whole, ") {\n%s}", nodes->text);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(whole->text, whole->len), 0, &doc) != ONX_OK) {
        say_all();
        fail_msg("%s", whole->text);
    }
    return doc;
}

/* `batch` of the numbers of an input, from `first` on. */
static onx_value *input_of(graph *g, uint32_t which, int64_t first, int64_t batch, const float *numbers)
{
    const int64_t dims[3] = { batch, g->channels[which], WIDTH };
    const uint64_t each = (uint64_t)g->channels[which] * WIDTH;
    onx_value *v;
    assert_int_equal(onx_value_new(cx, &v), ONX_OK);
    assert_int_equal(onx_value_reset(v, ONX_FLOAT, 3, dims), ONX_OK);
    memcpy(v->data, numbers + (uint64_t)first * each, v->size);
    return v;
}

static void run_batch(graph *g, onx_session *session, int64_t first, int64_t batch, const float *numbers,
                      onx_value **out)
{
    onx_value *in[INPUTS];
    for (uint32_t i = 0; i < INPUTS; i++)
        in[i] = input_of(g, i, first, batch, numbers + i * 1000);
    const onx_status status = onx_session_run(session, cx, (const onx_value *const *)in, out);
    say_all();
    assert_int_equal(status, ONX_OK);
    for (uint32_t i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
}

static void test_run_piece__each_of_a_batch_is_as_alone(void **state)
{
    static writer nodes, whole;
    static float numbers[INPUTS * 1000];
    graph g = { .s = { 11 } };
    (void)state;
    for (int model = 0; model < MODELS; model++) {
        onx_doc *doc = draw(&g, &nodes, &whole);
        onx_session *session = NULL;
        onx_value *both[OUTPUTS] = { NULL }, *alone[OUTPUTS] = { NULL };
        const onx_session_options options = { .verify = true,
                                              .threads = 1 + below(&g.s, 2),
                                              .no_optimize = below(&g.s, 2) };
        for (uint32_t i = 0; i < INPUTS * 1000; i++)
            numbers[i] = between(&g.s, -2, 2);
        assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_OK);
        run_batch(&g, session, 0, 2, numbers, both);
        for (int64_t first = 0; first < 2; first++) {
            run_batch(&g, session, first, 1, numbers, alone); /* the second time into the memory of the first */
            for (uint32_t i = 0; i < g.output_count; i++)
                if (memcmp((const char *)both[i]->data + (uint64_t)first * alone[i]->size, alone[i]->data,
                           alone[i]->size) != 0)
                    fail_msg("output v%u of\n%s", g.outputs[i], whole.text);
        }
        for (uint32_t i = 0; i < g.output_count; i++) {
            onx_value_free(both[i]);
            onx_value_free(alone[i]);
        }
        onx_session_free(session);
        onx_doc_free(doc);
        onx_diag_clear(cx);
    }
}

/* ---- where results are ---- */

enum { PLACES = 8 };
typedef struct places {
    const char *at[PLACES][2]; /* by the number in the name of the value: its first two outputs */
} places;

static void look(void *user, const onx_run_event *event)
{
    places *p = user;
    const onx_str name = event->node ? onx_view(event->node->name) : onx_str_of("");
    if (name.len != 1 || name.ptr[0] < '0' || name.ptr[0] >= '0' + PLACES)
        return;
    for (uint32_t i = 0; i < event->output_count && i < 2; i++)
        p->at[name.ptr[0] - '0'][i] = event->outputs[i] ? event->outputs[i]->data : NULL;
}

static void test_run_piece__what_is_joined_is_made_there(void **state)
{
    static const char text[] = "<ir_version: 10, opset_import: [\"\": 21]>\n"
                               "g (float[1, 8, 16] x, float[16, 16] w) => (float[1, 8, 16] y) {\n"
                               " [\"0\"] n = Softmax (x)\n"
                               " [\"1\"] a, b = Split <axis = 1, num_outputs = 2> (n)\n"
                               " [\"2\"] c = MatMul (a, w)\n"
                               " [\"3\"] d = MatMul (b, w)\n"
                               " [\"4\"] j = Concat <axis = 1> (d, c)\n"
                               " [\"5\"] y = Softmax (j) }";
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    places p = { { { NULL, NULL } } };
    const int64_t dims[3] = { 1, 8, 16 }, weights[2] = { 16, 16 };
    const onx_run_options watch = { .event = look, .user = &p };
    onx_value *x = NULL, *w = NULL, *y = NULL;
    (void)state;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &session),
                     ONX_OK);
    assert_int_equal(onx_value_new(cx, &x), ONX_OK);
    assert_int_equal(onx_value_new(cx, &w), ONX_OK);
    assert_int_equal(onx_value_reset(x, ONX_FLOAT, 3, dims), ONX_OK);
    assert_int_equal(onx_value_reset(w, ONX_FLOAT, 2, weights), ONX_OK);
    memset(x->data, 0, x->size);
    memset(w->data, 0, w->size);
    assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ x, w }, &y, &watch), ONX_OK);
    assert_ptr_equal(p.at[1][0], p.at[0][0]);
    assert_ptr_equal(p.at[1][1], p.at[0][0] + 4 * 16 * sizeof(float));
    assert_ptr_equal(p.at[3][0], p.at[4][0]);
    assert_ptr_equal(p.at[2][0], p.at[4][0] + 4 * 16 * sizeof(float));
    onx_value_free(x);
    onx_value_free(w);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_run_piece__each_of_a_batch_is_as_alone),
                                        cmocka_unit_test(test_run_piece__what_is_joined_is_made_there) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
