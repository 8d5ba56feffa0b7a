/* test_train_ranks.c - data-parallel steps: ranks that are threads, each with a part of the batch, give the result of
 * one rank with the whole batch, and the same bits on all ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>
#include <onx/train.h>
#include <onx/trainable.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 12, WIDTH = 5, CLASSES = 3, RANKS_MAX = 5, STEPS = 8, VARIABLES_MAX = 32, NUMBERS_MAX = 400 };

static const char network[] =
    "<ir_version: 8, opset_import: [\"\" : 18]>\n"
    "g (float[N, 5] x) => (float[N, 3] y) <float[5, 9] w1 = {0}, float[9] b1 = {0}, float[9, 3] w2 = "
    "{0}, float[3] b2 = {0}> {\n"
    "  h = Gemm (x, w1, b1)  t = Tanh (h)  y = Gemm (t, w2, b2)\n"
    "}";

static onx_doc *make_model(onx_ctx *cx, const char *optimizer, double clip)
{
    static const int counts[] = { 45, 9, 27, 3 };
    char text[4000], *at = text;
    int which = 0;
    onx_doc *doc;
    for (const char *from = network; *from; from++) { /* "{0}" stands for as many as it takes */
        if (strncmp(from, "{0}", 3) != 0) {
            *at++ = *from;
            continue;
        }
        *at++ = '{';
        for (int i = 0; i < counts[which]; i++)
            at += snprintf(at, 20, "%s0.%d", i ? "," : "", i % 7);
        *at++ = '}';
        which++;
        from += 2;
    }
    *at = '\0';
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    const onx_trainable_options options = { .optimizer = onx_str_of(optimizer), .clip_norm = clip, .rate = 0.05 };
    assert_int_equal(onx_trainable(cx, doc, &options), ONX_OK);
    return doc;
}

typedef struct rank {
    pthread_t thread;
    uint32_t index, size, first, count; /* samples */
    onx_comm_group *group;
    const char *optimizer;
    double clip, weight;
    bool fails;
    /* what comes out */
    onx_status status;
    double loss;
    uint32_t variables;
    float numbers[VARIABLES_MAX][NUMBERS_MAX];
} rank;

static void fill(onx_value *x, onx_value *label, uint32_t first, uint32_t step)
{
    for (int64_t n = 0; n < x->dims[0]; n++) {
        const uint32_t sample = first + (uint32_t)n + step * SAMPLES;
        for (uint32_t k = 0; k < WIDTH; k++)
            ((float *)x->data)[n * WIDTH + k] = (float)((sample * 31 + k * 17) % 23) / 11 - 1;
        ((int64_t *)label->data)[n] = (sample * 7) % CLASSES;
    }
}

static onx_status train(rank *r, onx_ctx *cx, onx_trainer *t)
{
    onx_value *x, *label;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[2]){ r->count, WIDTH }, &x), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_INT64, 1, (const int64_t[1]){ r->count }, &label), ONX_OK);
    const onx_named_value inputs[2] = { { "x", x }, { "label", label } };
    onx_named_value loss = { "loss", NULL };
    onx_status status = onx_trainer_initialize(t);
    for (uint32_t i = 0; i < STEPS && status == ONX_OK; i++) {
        fill(x, label, r->first, i);
        status = r->fails && i == 3 ? onx_trainer_step(t, 0, inputs, 1, &loss, 1)
                                    : onx_trainer_step(t, 0, inputs, 2, &loss, 1);
    }
    if (status == ONX_OK) {
        r->loss = (double)*(const float *)loss.value->data;
        status = onx_trainer_evaluate(t, 1, inputs, 2, &loss, 1);
    }
    onx_value_free(loss.value);
    onx_value_free(x);
    onx_value_free(label);
    return status;
}

static void *run_rank(void *user)
{
    rank *r = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = make_model(cx, r->optimizer, r->clip);
    onx_trainer *t;
    onx_trainer_variable v;
    assert_int_equal(onx_trainer_new(cx, doc, &(onx_session_options){ .threads = 1 }, &t), ONX_OK);
    r->status = ONX_OK;
    if (r->group) {
        onx_comm comm;
        assert_int_equal(onx_comm_group_rank(cx, r->group, r->index, &comm), ONX_OK);
        const onx_train_ranks ranks = { .comm = &comm, .timeout_ns = 20000000000u };
        r->status = onx_trainer_set_ranks(t, &ranks);
        assert_int_equal(onx_trainer_set_weight(t, r->weight), ONX_OK);
    }
    if (r->status == ONX_OK)
        r->status = train(r, cx, t);
    for (r->variables = 0; onx_trainer_variable_get(t, r->variables, &v); r->variables++) {
        assert_true(r->variables < VARIABLES_MAX && v.value->size <= sizeof r->numbers[0]);
        memcpy(r->numbers[r->variables], v.value->data, (size_t)v.value->size);
    }
    onx_trainer_free(t);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return NULL;
}

/* Ranks with these many samples each, one behind the other. */
static void run_ranks(rank *ranks, uint32_t size, const uint32_t *counts, const char *optimizer, double clip)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_comm_group *group;
    assert_int_equal(onx_comm_group_new(cx, size, &group), ONX_OK);
    for (uint32_t i = 0, first = 0; i < size; i++) {
        ranks[i].index = i;
        ranks[i].size = size;
        ranks[i].first = first;
        ranks[i].count = counts[i] ? counts[i] : 1; /* samples that do not count */
        ranks[i].weight = counts[i];
        ranks[i].group = group;
        ranks[i].optimizer = optimizer;
        ranks[i].clip = clip;
        first += counts[i];
    }
    for (uint32_t i = 1; i < size; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    run_rank(&ranks[0]);
    for (uint32_t i = 1; i < size; i++)
        pthread_join(ranks[i].thread, NULL);
    onx_comm_group_free(group);
    onx_ctx_free(cx);
}

static rank alone, many[RANKS_MAX];

static void test_train_ranks__parts_of_a_batch_are_the_batch(void **state)
{
    static const uint32_t parts[][RANKS_MAX] = { { 12 }, { 6, 6 }, { 5, 7 }, { 4, 4, 4 }, { 1, 0, 3, 6, 2 } };
    static const char *const optimizers[] = { "sgd", "adam", "momentum" };
    (void)state;
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        const double clip = o == 1 ? 0.1 : 0;
        memset(&alone, 0, sizeof alone);
        alone.count = SAMPLES;
        alone.optimizer = optimizers[o];
        alone.clip = clip;
        run_rank(&alone);
        assert_int_equal(alone.status, ONX_OK);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            uint32_t size = 0, samples = 0;
            while (samples < SAMPLES)
                samples += parts[i][size++];
            memset(many, 0, sizeof many);
            run_ranks(many, size, parts[i], optimizers[o], clip);
            for (uint32_t k = 0; k < size; k++) {
                assert_int_equal(many[k].status, ONX_OK);
                assert_int_equal(many[k].variables, alone.variables);
                assert_memory_equal(many[k].numbers, many[0].numbers, sizeof many[k].numbers);
                assert_true(fabs(many[k].loss - alone.loss) < 1e-5);
            }
            for (uint32_t v = 0; v < alone.variables; v++)
                for (uint32_t n = 0; n < NUMBERS_MAX; n++)
                    assert_true(fabsf(many[0].numbers[v][n] - alone.numbers[v][n]) < 2e-5f);
        }
    }
}

static void test_train_ranks__a_rank_that_fails_ends_the_others(void **state)
{
    (void)state;
    memset(many, 0, sizeof many);
    many[1].fails = true;
    run_ranks(many, 3, (const uint32_t[]){ 4, 4, 4 }, "sgd", 0);
    assert_int_equal(many[0].status, ONX_E_CANCELLED);
    assert_int_equal(many[1].status, ONX_E_MISUSE);
    assert_int_equal(many[2].status, ONX_E_CANCELLED);
    memset(many, 0, sizeof many);
    run_ranks(many, 2, (const uint32_t[]){ 0, 0 }, "sgd", 0);
    assert_int_equal(many[0].status, ONX_E_MISUSE); /* nobody has samples */
}

/* ---- a reduction of the caller's ---- */

typedef struct seen {
    uint32_t calls, counts[4];
    float factor;
    bool refuses;
} seen;

static onx_status scale(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count)
{
    seen *s = user;
    (void)cx;
    if (s->refuses)
        return ONX_E_CANCELLED;
    if (s->calls < 4)
        s->counts[s->calls] = count;
    for (uint32_t i = 0; i < count && s->calls % 2 == 0; i++) /* gradients come first */
        for (uint64_t k = 0; k < values[i]->count; k++)
            ((float *)values[i]->data)[k] *= s->factor;
    s->calls++;
    return ONX_OK;
}

static float first_weight(const onx_trainer *t)
{
    onx_trainer_variable v;
    for (uint32_t i = 0; onx_trainer_variable_get(t, i, &v); i++)
        if (onx_str_is(v.name, "b2"))
            return *(const float *)v.value->data;
    fail_msg("there is no b2");
    return 0;
}

static void test_train_ranks__gradients_pass_a_function(void **state)
{
    seen s = { .factor = 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = make_model(cx, "sgd", 0);
    onx_trainer *t;
    onx_value *x, *label;
    onx_named_value loss[2] = { { "loss", NULL }, { "accuracy", NULL } };
    (void)state;
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[2]){ 4, WIDTH }, &x), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_INT64, 1, (const int64_t[1]){ 4 }, &label), ONX_OK);
    const onx_named_value inputs[2] = { { "x", x }, { "label", label } };
    fill(x, label, 0, 0);
    const onx_train_reduction reduction = { .user = &s, .reduce = scale };
    const float before = first_weight(t);
    assert_int_equal(onx_trainer_set_reduction(t, &reduction), ONX_OK);
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, loss, 2), ONX_OK);
    assert_int_equal(s.calls, 2);
    assert_int_equal(s.counts[0], 4); /* w1 b1 w2 b2 */
    assert_int_equal(s.counts[1], 2); /* loss and accuracy */
    assert_true(first_weight(t) == before);
    s.factor = 2;
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, loss, 2), ONX_OK);
    const float twice = first_weight(t) - before;
    assert_true(fabsf(twice) > 1e-4f);
    assert_int_equal(onx_trainer_set_reduction(t, NULL), ONX_OK);
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, loss, 2), ONX_OK);
    assert_int_equal(s.calls, 4);
    assert_int_equal(onx_trainer_set_reduction(t, &reduction), ONX_OK);
    s.refuses = true;
    const float then = first_weight(t);
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, loss, 2), ONX_E_CANCELLED);
    assert_true(first_weight(t) == then);
    onx_named_value y = { "y", NULL }; /* an output of the main graph, which no step has needed so far */
    s.refuses = false;
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, &y, 1), ONX_OK);
    assert_int_equal(y.value->dims[0], 4);
    assert_int_equal(onx_trainer_set_weight(t, -1), ONX_E_MISUSE);
    assert_int_equal(onx_trainer_set_weight(t, (double)NAN), ONX_E_MISUSE);
    assert_int_equal(onx_trainer_set_ranks(t, &(onx_train_ranks){ .timeout_ns = 1 }), ONX_E_MISUSE);
    assert_int_equal(onx_trainer_set_ranks(t, NULL), ONX_OK);
    onx_value_free(y.value);
    onx_value_free(loss[0].value);
    onx_value_free(loss[1].value);
    onx_value_free(x);
    onx_value_free(label);
    onx_trainer_free(t);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_ranks__parts_of_a_batch_are_the_batch),
        cmocka_unit_test(test_train_ranks__a_rank_that_fails_ends_the_others),
        cmocka_unit_test(test_train_ranks__gradients_pass_a_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
