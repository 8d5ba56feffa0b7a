/* test_generate.c - scores, sampling, and the state of a generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <onx/generate.h>
#include <onx/text.h>

#include <math.h>

#include "unit/context.h"

/* What follows a token depends on it alone: row i of a table has the logarithms of the probabilities behind token i. */
static const char table[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (int64[1, n] input_ids) => (float[1, n, 4] logits)\n"
    "<float[5, 4] p = {0.1, 0.2, 0.3, 0.4,  0.4, 0.3, 0.2, 0.1,  0.25, 0.25, 0.25, 0.25,  0.01, 0.01, 0.97, 0.01,\n"
    "                  0.5, 0.5, 0, 0}>\n"
    "{ w = Log (p)  logits = Gather (w, input_ids) }";

typedef struct decoder {
    onx_doc *doc;
    onx_generator *g;
} decoder;

static decoder open_table(void)
{
    decoder d;
    const onx_session_options plain = { .struct_size = sizeof plain, .plain = true };
    const onx_generator_options options = { .struct_size = sizeof options, .session = &plain };
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(table), 0, &d.doc), ONX_OK);
    assert_int_equal(onx_generator_new(cx, d.doc, &options, &d.g), ONX_OK);
    return d;
}

static void close_table(decoder d)
{
    onx_generator_free(d.g);
    onx_doc_free(d.doc);
}

static void feed(const decoder *d, int64_t id)
{
    assert_int_equal(onx_generator_feed(d->g, &id, 1), ONX_OK);
}

static void test_generate__scores(void **state)
{
    (void)state;
    decoder d = open_table();
    uint64_t count = 9;
    assert_null(onx_generator_scores(d.g, &count));
    assert_int_equal(count, 0);
    feed(&d, 0);
    feed(&d, 1);
    const float *scores = onx_generator_scores(d.g, &count);
    assert_int_equal(count, 4);
    assert_true(fabsf(expf(scores[0]) - 0.4f) < 1e-6f && fabsf(expf(scores[3]) - 0.1f) < 1e-6f);
    assert_int_equal(onx_generator_length(d.g), 2);
    assert_true(onx_generator_limit(d.g) == UINT64_MAX);
    assert_int_equal(onx_generator_reset(d.g), ONX_OK);
    assert_int_equal(onx_generator_length(d.g), 0);
    assert_null(onx_generator_scores(d.g, NULL));
    close_table(d);
}

/* How often each token comes in 4000 choices at different places. */
static void sample(int64_t after, const onx_choice_options *how, unsigned counts[4])
{
    decoder d = open_table();
    onx_choice_options options = *how;
    memset(counts, 0, 4 * sizeof *counts);
    feed(&d, after);
    for (unsigned i = 0; i < 4000; i++) {
        int64_t id;
        options.seed = i;
        assert_int_equal(onx_generator_choose(d.g, &options, &id), ONX_OK);
        assert_in_range(id, 0, 3);
        counts[id]++;
    }
    close_table(d);
}

static bool near(unsigned count, double share)
{
    return fabs(count / 4000.0 - share) < 0.03; /* four standard deviations at least */
}

static void test_generate__chooses_by_chance(void **state)
{
    (void)state;
    unsigned n[4];
    sample(1, &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 1 }, n);
    assert_true(near(n[0], 0.4) && near(n[1], 0.3) && near(n[2], 0.2) && near(n[3], 0.1));
    sample(1, &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 0.5 }, n);
    assert_true(near(n[0], 16 / 30.0) && near(n[1], 9 / 30.0) && near(n[2], 4 / 30.0) && near(n[3], 1 / 30.0));
    sample(1, &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 1, .top_k = 2 }, n);
    assert_true(near(n[0], 4 / 7.0) && near(n[1], 3 / 7.0) && !n[2] && !n[3]);
    sample(1, &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 1, .top_p = 0.75 }, n);
    assert_true(near(n[0], 4 / 9.0) && near(n[1], 3 / 9.0) && near(n[2], 2 / 9.0) && !n[3]);
    /* 0.4 of 0.4 + 0.3 + 0.2 is less than a half, with 0.3 more */
    sample(
        1,
        &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 1, .top_k = 3, .top_p = 0.5 },
        n);
    assert_true(near(n[0], 4 / 7.0) && near(n[1], 3 / 7.0) && !n[2] && !n[3]);
    sample(4, &(onx_choice_options){ .struct_size = sizeof(onx_choice_options), .temperature = 1 }, n); /* log 0 */
    assert_true(near(n[0], 0.5) && near(n[1], 0.5));
}

static void test_generate__penalizes(void **state)
{
    (void)state;
    decoder d = open_table();
    const onx_choice_options options = { .struct_size = sizeof options, .repetition_penalty = 2 };
    int64_t id;
    feed(&d, 3);
    assert_int_equal(onx_generator_choose(d.g, &options, &id), ONX_OK);
    assert_int_equal(id, 2);
    feed(&d, 0); /* log 0.4 = -0.92 is doubled for token 3, log 0.3 = -1.2 stays */
    assert_int_equal(onx_generator_choose(d.g, &options, &id), ONX_OK);
    assert_int_equal(id, 2);
    close_table(d);
}

static void test_generate__refuses(void **state)
{
    (void)state;
    decoder d = open_table();
    int64_t id;
    assert_int_equal(onx_generator_choose(d.g, NULL, &id), ONX_E_MISUSE);
    feed(&d, 1);
    const double bad[] = { -1, (double)NAN, (double)INFINITY };
    for (int i = 0; i < 3; i++) {
        const onx_choice_options options = { .struct_size = sizeof options, .temperature = bad[i] };
        assert_int_equal(onx_generator_choose(d.g, &options, &id), ONX_E_MISUSE);
    }
    id = 5;
    assert_int_not_equal(onx_generator_feed(d.g, &id, 1), ONX_OK);
    id = 1;
    assert_int_equal(onx_generator_feed(d.g, &id, 1), ONX_E_MISUSE); /* until it begins anew */
    assert_int_equal(onx_generator_reset(d.g), ONX_OK);
    feed(&d, 1);
    onx_diag_clear(cx);
    close_table(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generate__scores),
        cmocka_unit_test(test_generate__chooses_by_chance),
        cmocka_unit_test(test_generate__penalizes),
        cmocka_unit_test(test_generate__refuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
