/* test_run_threads.c - one session, and one document, used by several threads at a time; a run that another thread
 * ends. ThreadSanitizer finds races here (cmake --preset tsan); results are compared in every build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include <onx/check.h>
#include <onx/infer.h>
#include <onx/io.h>
#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "run/run.h"

#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 12 };

/* Initializers that an input of the same name overrides, stored wider than they are (float16, int8 in int32_data), and
 * one that decides about a shape. */
static const char model[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[N] x, float16[1] h = {16384}, int8[1] k = {3}, int64[1] s = {-1}) => (float[M] y) {\n"
    "  a = Cast <to = 1> (h)\n"
    "  b = Cast <to = 1> (k)\n"
    "  c = Mul (x, a)\n"
    "  d = Add (c, b)\n"
    "  twice = Concat <axis = 0> (x, x)\n"
    "  y = Reshape (d, s)\n"
    "}\n";
static const char endless[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g () => (float[1] y) <bool c = {1}, float[1] a = {0}> {\n"
    "  y = Loop (\"\", c, a) <body = b (int64 i, bool go, float[1] v) => (bool on, float[1] w) {\n"
    "    on = Identity (go)\n"
    "    w = Neg (v)\n"
    "  }>\n"
    "}\n";

typedef struct job {
    pthread_t thread;
    unsigned index;
    onx_doc *doc;
    onx_session *session; /* NULL: makes its own */
    onx_str bytes;
    unsigned right;
} job;

static onx_value *numbers(onx_ctx *cx, onx_dtype dtype, int64_t count, float number)
{
    onx_value *v;
    if (onx_value_new_tensor(cx, dtype, 1, &count, &v) != ONX_OK)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        onx_convert(dtype, (char *)v->data + (uint64_t)i * (onx_dtype_bits(dtype) / 8), ONX_FLOAT, &number, 1, true);
    return v;
}

/* x is 1 everywhere and h is 2, bit by bit; where h is overridden it is 5: y is 2 + 3 or 5 + 3. */
static bool run_right(onx_session *s, unsigned turn)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    bool over = turn % 2, right = false;
    int64_t count = 1 + turn % 5;
    onx_value *in[4] = { numbers(cx, ONX_FLOAT, count, 1), over ? numbers(cx, ONX_FLOAT16, 1, 5) : NULL, NULL, NULL };
    onx_value *out = NULL;
    if (onx_session_run(s, cx, (const onx_value *const *)in, &out) == ONX_OK)
        right = out->count == (uint64_t)count && ((const float *)out->data)[count - 1] == (over ? 8.0f : 5.0f);
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        char why[200];
        onx_diag_format(onx_diag_get(cx, i), why, sizeof why);
        print_error("%s\n", why);
    }
    onx_value_free(out);
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    onx_ctx_free(cx);
    return right;
}

static void *run_all(void *user)
{
    job *j = user;
    for (unsigned i = 0; i < ROUNDS; i++)
        j->right += run_right(j->session, j->index + i);
    return NULL;
}

/* The elements of initializers that are stored wider than they are. */
static bool reads_right(onx_ctx *cx, const onx_doc *doc, const onx_graph *graph)
{
    static const uint16_t half[] = { 16384 };
    static const int8_t three[] = { 3 };
    onx_doc *reader;
    bool right = onx_doc_reader(cx, doc, &reader) == ONX_OK;
    for (uint32_t i = 0; right && i < 2; i++) {
        onx_str bytes;
        right = onx_tensor_bytes(reader, graph->initializer[i], &bytes) == ONX_OK && bytes.len == (i ? 1 : 2) &&
                memcmp(bytes.ptr, i ? (const void *)three : half, bytes.len) == 0;
    }
    /* what is wrong is said to who asks */
    const size_t before = onx_diag_count(onx_doc_ctx(doc));
    double none;
    right = right && onx_tensor_get_f64(reader, graph->initializer[0], 7, 1, &none) == ONX_E_MISUSE &&
            onx_diag_count(cx) == 1 && onx_diag_count(onx_doc_ctx(doc)) == before;
    onx_doc_free(reader);
    return right;
}

/* Each round does something else with the document, so that every pair of things happens at the same time. */
static void *read_all(void *user)
{
    job *j = user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_session *s = NULL;
        onx_infer *infer = NULL;
        const onx_graph *graph = onx_doc_model(j->doc)->graph;
        switch ((j->index + i) % 4) {
        case 0:
            if (onx_session_new(cx, j->doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s) == ONX_OK)
                j->right += run_right(s, i);
            onx_session_free(s);
            break;
        case 1:
            j->right += onx_check(cx, j->doc, &(onx_check_options){ .flags = ONX_CHECK_FULL }, NULL) == ONX_OK;
            break;
        case 2: /* the dimension is an expression, whose text has to lie somewhere */
            if (onx_infer_new(cx, j->doc, NULL, &infer) == ONX_OK) {
                const onx_type *type = onx_infer_type(infer, graph, onx_str_of("twice"));
                j->right += type && onx_str_is(onx_view(type->tensor_type->shape->dim[0]->dim_param), "2*N");
            }
            onx_infer_free(infer);
            break;
        default:
            j->right += reads_right(cx, j->doc, graph);
            break;
        }
        onx_ctx_free(cx);
    }
    return NULL;
}

static void *decode_all(void *user)
{
    job *j = user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = NULL;
        j->right += onx_read(cx, ONX_KIND_MODEL, j->bytes, 0, 2, &doc) == ONX_OK &&
                    onx_doc_model(doc)->graph->node_count == onx_doc_model(j->doc)->graph->node_count;
        onx_doc_free(doc);
        onx_ctx_free(cx);
    }
    return NULL;
}

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    return doc;
}

/* Threads with an even index use the first session, the others the second. */
static void all_right(onx_doc *doc, onx_session *first, onx_session *second, onx_str bytes, void *(*work)(void *))
{
    job jobs[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (job){ .index = i, .doc = doc, .session = i % 2 ? second : first, .bytes = bytes };
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(jobs[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(jobs[i].right, ROUNDS);
}

static void test_run_threads__one_session(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 2 }, &s), ONX_OK);
    all_right(doc, s, s, (onx_str){ 0 }, run_all);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static atomic_llong held;

static void *counted_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    atomic_fetch_add(&held, (long long)new_size - (ptr ? (long long)old_size : 0));
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void *run_two_shapes(void *user)
{
    job *j = user;
    for (unsigned i = 0; i < 4; i += 2)
        j->right += run_right(j->session, i);
    return NULL;
}

/* Threads that come and go find what those before them left: of each plan there is one state, however many there were.
 */
static void test_run_threads__one_after_the_other(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, NULL });
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
    long long first = 0;
    for (unsigned i = 0; i < 40; i++) {
        job j = { .session = s };
        assert_int_equal(pthread_create(&j.thread, NULL, run_two_shapes, &j), 0);
        pthread_join(j.thread, NULL);
        assert_int_equal(j.right, 2);
        if (i == 0)
            first = atomic_load(&held);
        assert_int_equal(atomic_load(&held), first);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&held), 0);
}

static void test_run_threads__two_sessions_of_one_document(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s[i]),
                         ONX_OK);
    all_right(doc, s[0], s[1], (onx_str){ 0 }, run_all);
    onx_session_free(s[0]);
    onx_session_free(s[1]);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_threads__sessions_checks_and_inference_of_one_document(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    all_right(doc, NULL, NULL, (onx_str){ 0 }, read_all);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_threads__decoding(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_buffer buffer;
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &buffer), ONX_OK);
    all_right(doc, NULL, NULL, onx_str_make((const char *)buffer.ptr, buffer.len), decode_all);
    onx_buffer_free(&buffer);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- planning ---- */

/* A kernel whose preparation for inputs of two elements waits until somebody lets it go on. */
static atomic_bool in_prepare, go_on;

static onx_status slow_prepare(onx_prepare *p)
{
    enum { PATIENCE = 5000 }; /* ms: whoever does not come in that time is waiting for us */
    for (int i = 0; p->inputs[0]->count == 2 && !atomic_load(&go_on) && i < PATIENCE; i++) {
        atomic_store(&in_prepare, true);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return ONX_OK;
}

static onx_status slow_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    memcpy(work->outputs[0]->data, work->inputs[0]->data, work->inputs[0]->size);
    return ONX_OK;
}

static onx_status run_with(onx_session *s, int64_t count, const onx_run_options *options)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *in = numbers(cx, ONX_FLOAT, count, 1), *out = NULL;
    const onx_status status = onx_session_run_with(s, cx, (const onx_value *const[]){ in }, &out, options);
    onx_value_free(in);
    onx_value_free(out);
    onx_ctx_free(cx);
    return status;
}

static void *run_two(void *user)
{
    job *j = user;
    j->right = run_with(j->session, 2, NULL) == ONX_OK;
    return NULL;
}

/* While one thread plans, another runs what is planned already; a third, which wants a plan too, waits no longer than
 * its limit of time says. */
static void test_run_threads__nobody_waits_for_the_plan_of_another(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "Relu", .since = 1, .prepare = slow_prepare, .run = slow_run }, { 0 } };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc =
        parse(cx, "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] y) { y = Relu (x) }");
    onx_session *s;
    assert_int_equal(
        onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .kernels = own }, &s), ONX_OK);
    assert_int_equal(run_with(s, 1, NULL), ONX_OK);
    job j = { .session = s };
    assert_int_equal(pthread_create(&j.thread, NULL, run_two, &j), 0);
    while (!atomic_load(&in_prepare)) {
    }
    assert_int_equal(run_with(s, 1, NULL), ONX_OK);
    assert_false(atomic_load(&go_on));
    assert_int_equal(run_with(s, 3, &(onx_run_options){ .timeout_ns = 30000000 }), ONX_E_LIMIT);
    atomic_store(&go_on, true);
    pthread_join(j.thread, NULL);
    assert_true(j.right);
    assert_int_equal(run_with(s, 3, NULL), ONX_OK);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Which of six inputs with initializers are given, by bits: there are more such sets than a session keeps. */
static bool run_variant(onx_session *s, unsigned given)
{
    enum { INPUTS = 6 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *in[INPUTS] = { NULL }, *out = NULL;
    float want = 0;
    for (unsigned i = 0; i < INPUTS; i++) {
        const bool mine = given >> i & 1;
        want += mine ? 100 : (float)(1u << i);
        if (mine)
            in[i] = numbers(cx, ONX_FLOAT, 1, 100);
    }
    const bool right =
        onx_session_run(s, cx, (const onx_value *const *)in, &out) == ONX_OK && *(const float *)out->data == want;
    for (unsigned i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
    onx_value_free(out);
    onx_ctx_free(cx);
    return right;
}

static void *run_variants(void *user)
{
    job *j = user;
    for (unsigned i = 0; i < ROUNDS; i++)
        j->right += run_variant(j->session, (j->index * 7 + i * 5) % 64);
    return NULL;
}

static void test_run_threads__as_many_variants_as_are_kept(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                             "g (float[1] a = {1}, float[1] b = {2}, float[1] c = {4}, float[1] d = {8},\n"
                             "   float[1] e = {16}, float[1] f = {32}) => (float[1] y) { y = Sum (a, b, c, d, e, f) }");
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &s), ONX_OK);
    all_right(doc, s, s, (onx_str){ 0 }, run_variants);
    assert_int_equal(s->s.variants.count, ONXI_VARIANTS_MAX);
    assert_true(run_variant(s, 63)); /* one that goes to the front, and is found there */
    const onxi_run_kept *first = s->s.variants.first;
    for (unsigned given = 1; given < 64; given++) {
        assert_true(run_variant(s, given) && run_variant(s, 63) && run_variant(s, 0));
        assert_ptr_equal(s->s.variants.first, first); /* it was used last each time, so that it stays */
        assert_true(s->s.variants.count <= ONXI_VARIANTS_MAX);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- ending a run from another thread ---- */

typedef struct ending {
    onx_session *session;
    atomic_bool stop;
    atomic_uint asked;
    onx_status status, recorded;
} ending;

static bool shall_stop(void *user)
{
    ending *e = user;
    atomic_fetch_add(&e->asked, 1);
    return atomic_load(&e->stop);
}

static void *run_endless(void *user)
{
    ending *e = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *out = NULL;
    e->status = onx_session_run_with(e->session, cx, NULL, &out, &(onx_run_options){ .stop = shall_stop, .user = e });
    e->recorded = onx_diag_count(cx) == 1 ? onx_diag_get(cx, 0)->status : ONX_OK;
    onx_value_free(out);
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_threads__cancelled_by_another(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, endless);
    ending e = { .status = ONX_OK };
    pthread_t thread;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = 1 }, &e.session),
                     ONX_OK);
    for (int again = 0; again < 2; again++) { /* the session is as good as before */
        atomic_store(&e.stop, false);
        atomic_store(&e.asked, 0);
        assert_int_equal(pthread_create(&thread, NULL, run_endless, &e), 0);
        while (atomic_load(&e.asked) < 1000) { /* it is in the loop */
        }
        atomic_store(&e.stop, true);
        pthread_join(thread, NULL);
        assert_int_equal(e.status, ONX_E_CANCELLED);
        assert_int_equal(e.recorded, ONX_E_CANCELLED);
    }
    onx_session_free(e.session);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_threads__one_session),
        cmocka_unit_test(test_run_threads__one_after_the_other),
        cmocka_unit_test(test_run_threads__two_sessions_of_one_document),
        cmocka_unit_test(test_run_threads__sessions_checks_and_inference_of_one_document),
        cmocka_unit_test(test_run_threads__decoding),
        cmocka_unit_test(test_run_threads__nobody_waits_for_the_plan_of_another),
        cmocka_unit_test(test_run_threads__as_many_variants_as_are_kept),
        cmocka_unit_test(test_run_threads__cancelled_by_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
