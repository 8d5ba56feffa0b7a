/* test_run_overlap.c - memory that values share: random graphs dense in views, pieces, broadcasts, changes of layout
 * and kernels that overwrite operands give what they give where every value is an output and so nothing is overwritten;
 * and outputs over the memory of inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/overlap_graphs.h"

enum { MODELS = 1000 };

static void test_run_overlap__as_if_nothing_were_overwritten(void **state)
{
    static writer w;
    graph *g = new_graph(5);
    (void)state;
    for (int model = 0; model < MODELS; model++) {
        onx_value *in[INPUTS];
        made all = { { NULL } };
        draw(g);
        draw_inputs(g, in);
        onx_doc *doc = write_model(g, &w, true);
        onx_session *session = open_session(doc, &ways[0].options);
        run_made(session, in, &all);
        onx_session_free(session);
        onx_doc_free(doc);
        doc = write_model(g, &w, false);
        for (int i = 0; i < WAYS; i++) {
            made some = { { NULL } };
            session = open_session(doc, &ways[i].options);
            run_made(session, in, &some);
            assert_same(g, &all, &some, ways[i].name, &w);
            run_made(session, in, &some); /* into the memory of the first run */
            assert_same(g, &all, &some, ways[i].name, &w);
            onx_session_free(session);
            free_made(&some);
        }
        onx_doc_free(doc);
        free_made(&all);
        free_inputs(in);
    }
}

static onx_doc *parse(const char *text)
{
    onx_doc *doc = NULL;
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    return doc;
}

/* Values of which one is part of the other, where the whole is overwritten while the part is read. */
static void test_run_overlap__parts_and_wholes(void **state)
{
    static const struct {
        const char *nodes;
        float want[6];
    } cases[] = {
        { "c = Abs (x) a, b = Split <axis = 0> (c, s) y = Add (c, a)", { 2, 4, 4, 6, 6, 8 } },
        { "c = Abs (x) a, b = Split <axis = 0> (c, s) y = Sum (c, a)", { 2, 4, 4, 6, 6, 8 } },
        { "c = Abs (x) a, b = Split <axis = 0> (c, s) y = Where (k, c, a)", { 1, 2, 1, 4, 1, 6 } },
        { "t = Abs (x) a, b = Split <axis = 0> (t, s) d = Neg (a) e = Neg (b) c = Concat <axis = 0> (d, e) y = Sub "
          "(d, c)",
          { 0, 0, 2, 2, 4, 4 } },
        { "c = Abs (x) a, b = Split <axis = 0> (c, s) d = Neg (a) y = Max (c, d, a)", { 1, 2, 3, 4, 5, 6 } }
    };
    (void)state;
    onx_value *x = tensor(ONX_FLOAT, 2, (const int64_t[]){ 3, 2 });
    for (int i = 0; i < 6; i++)
        ((float *)x->data)[i] = (float)-(i + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(
            text, sizeof text,
            "<ir_version: 10, opset_import: [\"\": 21]> g (float[3, 2] x) => (float[] y) <int64[2] s = {1, 2}, bool[3, "
            "2] k = {0, 1, 0, 1, 0, 1}> { %s }",
            cases[i].nodes);
        onx_doc *doc = parse(text);
        for (int way = 0; way < WAYS; way++) {
            made m = { { NULL } };
            onx_session *session = open_session(doc, &ways[way].options);
            run_made(session, &x, &m);
            for (int k = 0; k < 6; k++)
                if (((float *)m.out[0]->data)[k] != cases[i].want[k])
                    fail_msg("%s (%s): [%d] is %g", cases[i].nodes, ways[way].name, k,
                             (double)((float *)m.out[0]->data)[k]);
            onx_session_free(session);
            free_made(&m);
        }
        onx_doc_free(doc);
    }
    onx_value_free(x);
}

/* ---- outputs over inputs ---- */

static onx_value *wrap(const onx_value *like, void *data)
{
    const onx_memory m = {
        .dtype = like->dtype, .rank = like->rank, .dims = like->dims, .data = data, .size = like->size
    };
    onx_value *v = NULL;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_OK);
    return v;
}

enum { SLAB = 1 << 16, GAP = 64 };

/* Runs with all inputs in one block of memory, and some outputs in it, too, each beginning `shift` floats after an
 * input begins, where they do not overlap each other. */
static void run_over(graph *g, onx_session *session, onx_value *const *in, const made *all, int shift, const writer *w)
{
    _Alignas(64) static char slab[SLAB], before[SLAB];
    onx_value *given[INPUTS];
    made some = { { NULL } };
    bool written[SLAB / sizeof(float)] = { false };
    size_t at[INPUTS], end = GAP;
    memset(slab, 0, sizeof slab);
    for (uint32_t i = 0; i < INPUTS; i++) {
        at[i] = end;
        memcpy(slab + end, in[i]->data, in[i]->size);
        given[i] = wrap(in[i], slab + end);
        end += (in[i]->size + 15) / 16 * 16;
    }
    for (uint32_t i = 0, n = 0; i < g->count; i++) {
        if (!g->wanted[i])
            continue;
        const size_t from = at[below(&g->s, INPUTS)] + (size_t)shift * sizeof(float);
        bool free = below(&g->s, 3) > 0 && all->out[i]->size;
        for (size_t k = 0; k < all->out[i]->count && free; k++)
            free = !written[from / sizeof(float) + k];
        if (free) {
            some.out[n] = wrap(all->out[i], slab + from);
            memset(written + from / sizeof(float), true, all->out[i]->count);
        }
        n++;
    }
    memcpy(before, slab, sizeof slab);
    run_made(session, given, &some);
    assert_same(g, all, &some, "outputs over inputs", w);
    for (size_t k = 0; k < SLAB / sizeof(float); k++)
        if (!written[k] && memcmp(slab + k * sizeof(float), before + k * sizeof(float), sizeof(float)) != 0)
            fail_msg("memory of no output has changed\n%s", w->text);
    free_inputs(given);
    free_made(&some);
}

static void test_run_overlap__outputs_over_inputs(void **state)
{
    static writer w;
    graph *g = new_graph(9);
    (void)state;
    for (int model = 0; model < MODELS / 2; model++) {
        onx_value *in[INPUTS];
        made all = { { NULL } };
        draw(g);
        for (uint32_t i = 0; i < INPUTS; i++) /* more views of inputs */
            g->wanted[i] |= below(&g->s, 2);
        draw_inputs(g, in);
        onx_doc *doc = write_model(g, &w, true);
        onx_session *session = open_session(doc, &ways[0].options);
        run_made(session, in, &all);
        onx_session_free(session);
        onx_doc_free(doc);
        doc = write_model(g, &w, false);
        session = open_session(doc, &ways[1 + below(&g->s, 2)].options);
        for (int shift = -4; shift <= 8; shift += 4)
            run_over(g, session, in, &all, shift, &w);
        onx_session_free(session);
        onx_doc_free(doc);
        free_made(&all);
        free_inputs(in);
    }
}

/* An input over memory that the value of an output owns, and gives back when it becomes larger. */
static void test_run_overlap__output_that_moves(void **state)
{
    (void)state;
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 21]> g (float[8] x) => (float[] y, float[2, 4] z) <int64[2] "
              "s = {2, 4}, int64[2] r = {4096, 8}> { z = Reshape (x, s) y = Expand (x, r) }");
    onx_session *session = open_session(doc, NULL);
    for (int which = 0; which < 2; which++) {
        made m = { { NULL } };
        m.out[which] = tensor(ONX_FLOAT, 1, (const int64_t[]){ 8 });
        for (int i = 0; i < 8; i++)
            ((float *)m.out[which]->data)[i] = (float)i;
        onx_value *x = wrap(m.out[which], m.out[which]->data);
        run_made(session, &x, &m);
        assert_int_equal(m.out[0]->count, 4096 * 8);
        assert_int_equal(m.out[1]->rank, 2);
        for (int i = 0; i < 4096 * 8; i++)
            assert_true(((float *)m.out[0]->data)[i] == (float)(i % 8));
        for (int i = 0; i < 8; i++)
            assert_true(((float *)m.out[1]->data)[i] == (float)i);
        free_made(&m);
        onx_value_free(x);
    }
    onx_session_free(session);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_run_overlap__as_if_nothing_were_overwritten),
                                        cmocka_unit_test(test_run_overlap__parts_and_wholes),
                                        cmocka_unit_test(test_run_overlap__outputs_over_inputs),
                                        cmocka_unit_test(test_run_overlap__output_that_moves) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
