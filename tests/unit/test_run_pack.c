/* test_run_pack.c - memory of sessions: weights that kernels pack are not kept a second time, wherever the document has
 * them; sessions of one document share packed weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base_process.h"
#include "counts.h"
#include "share.h"

/* ---- models with weights at any address ---- */

enum { SIZE = 256, CHANNELS = 32, MISPLACED = 4 };
#define WEIGHT_BYTES ((long long)SIZE * SIZE * 4)

/* A weight of small numbers, `shift` bytes behind an address that 64 divides; NULL: a third party frees it. */
typedef struct weights {
    void *base[24];
    uint32_t count;
} weights;

static void place(onx_doc *doc, weights *all, uint32_t index, uint32_t rank, const int64_t *dims, size_t shift)
{
    onx_tensor *t = onx_doc_model(doc)->graph->initializer[index];
    uint64_t count = 1;
    t->dims = onx_arena_alloc(onx_doc_arena(doc), rank * sizeof *t->dims);
    assert_non_null(t->dims);
    t->dims_count = rank;
    for (uint32_t i = 0; i < rank; i++)
        count *= (uint64_t)(t->dims[i] = dims[i]);
    char *base = all->base[all->count++] = aligned_alloc(64, (count * sizeof(float) + 127) / 64 * 64);
    assert_non_null(base);
    for (uint64_t i = 0; i < count; i++) {
        const float x = (float)((i * 2654435761u + index * 40503u) >> 7 & 1023) / 1024.0f - 0.5f;
        memcpy(base + shift + i * sizeof x, &x, sizeof x);
    }
    t->float_data_count = 0;
    assert_int_equal(
        onx_arena_refer(onx_doc_arena(doc), onx_str_make(base + shift, count * sizeof(float)), &t->raw_data), ONX_OK);
    t->has |= onx_tensor_has_raw_data;
}

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

static void release(weights *all)
{
    while (all->count)
        free(all->base[--all->count]);
}

static onx_doc *products(onx_ctx *cx, weights *all, size_t shift)
{
    static const int64_t square[] = { SIZE, SIZE };
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15]> g (float[N,256] x) => (float[N,256] z)\n"
                             "<float[1] w = {0}, float[1] v = {0}> {\n"
                             "  y = MatMul (x, w) z = Gemm <transB = 1> (y, v) }");
    place(doc, all, 0, 2, square, shift);
    place(doc, all, 1, 2, square, shift);
    return doc;
}

static onx_value *floats(onx_ctx *cx, uint32_t rank, const int64_t *dims)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, rank, dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = sinf((float)i);
    return v;
}

static onx_session *session_of(onx_ctx *cx, onx_doc *doc, const onx_session_options *options)
{
    onx_session *s;
    if (onx_session_new(cx, doc, options, &s) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return s;
}

static void same(const onx_value *a, const onx_value *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

static void close_to(const onx_value *a, const onx_value *b)
{
    assert_int_equal(a->count, b->count);
    for (uint64_t i = 0; i < a->count; i++) {
        const float x = ((const float *)a->data)[i], y = ((const float *)b->data)[i];
        assert_true((isnan(x) && isnan(y)) || x == y || (isfinite(y) && fabsf(x - y) <= 1e-3f * (1 + fabsf(y))));
    }
}

static unsigned isa; /* ONX_ISA_* of all sessions: what a processor lacks is a lower one */

/* ---- weights where they lie ---- */

/* Packed and read as they are, through every row, whatever the address; and again for another shape, and with what
 * fast rows lose. */
static void test_run_pack__weights_lie_anywhere(void **state)
{
    (void)state;
    static const int64_t square[] = { SIZE, SIZE }, kernel[] = { CHANNELS, CHANNELS, 3, 3 }, many[] = { 4, 2, 8, 64 };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[N,256] x, float[M,32,8,8] i)\n"
        "=> (float[N,256] a, float[256,256] b, float[M,32,8,8] c, float[N,256] d, float[4,2,8,64] e)\n"
        "<float[1] w = {0}, float[1] v = {0}, float[1] k = {0}, float[1] q = {0},\n"
        " float[32] scale = {2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},\n"
        " float[32] mean = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> {\n"
        "  y = MatMul (x, w) a = Gemm <transB = 1> (y, v) b = Relu (v) d = Add (y, x) e = Neg (q)\n"
        "  o = Conv <pads = [1, 1, 1, 1]> (i, k) c = BatchNormalization (o, scale, mean, mean, scale) }";
    for (size_t shift = 0; shift <= MISPLACED; shift++) {
        weights all = { .count = 0 };
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = parse(cx, text);
        place(doc, &all, 0, 2, square, shift);
        place(doc, &all, 1, 2, square, shift);
        place(doc, &all, 2, 4, kernel, shift);
        place(doc, &all, 3, 4, many, shift);
        onx_session *fast = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 2, .isa = isa });
        onx_session *plain = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .plain = true });
        for (int64_t n = 1; n <= 40; n += 13) {
            const int64_t rows[] = { n, SIZE }, images[] = { n % 3 + 1, CHANNELS, 8, 8 };
            onx_value *in[] = { floats(cx, 2, rows), floats(cx, 4, images) }, *x[5] = { NULL }, *y[5] = { NULL };
            if (n == 27)
                ((float *)in[1]->data)[5] = NAN;
            assert_int_equal(onx_session_run(fast, cx, (const onx_value *const *)in, x), ONX_OK);
            assert_int_equal(onx_session_run(plain, cx, (const onx_value *const *)in, y), ONX_OK);
            for (int i = 0; i < 5; i++) {
                close_to(x[i], y[i]);
                onx_value_free(x[i]);
                onx_value_free(y[i]);
            }
            onx_value_free(in[0]);
            onx_value_free(in[1]);
        }
        onx_session_free(plain);
        onx_session_free(fast);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        release(&all);
    }
}

/* Bytes that two sessions of the products hold, after a run of each; 0 for kernels that pack nothing. */
static void test_run_pack__packed_once(void **state)
{
    (void)state;
    static const int64_t rows[] = { 3, SIZE };
    for (size_t shift = 0; shift <= MISPLACED; shift += 2) {
        counts c = { 0 };
        weights all = { .count = 0 };
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
        onx_doc *doc = products(cx, &all, shift);
        const long long before = atomic_load(&c.now);
        onx_value *x = floats(cx, 2, rows), *y = NULL, *z = NULL;
        onx_session *first = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
        assert_int_equal(onx_session_run(first, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        const long long one = atomic_load(&c.now) - before;
        assert_true(one < 5 * WEIGHT_BYTES / 2); /* what is packed, and not what it is made of */
        onx_session *second = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
        onx_session_free(first);
        assert_int_equal(onx_session_run(second, cx, (const onx_value *const[]){ x }, &z), ONX_OK);
        same(y, z);
        onx_session *third = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
        onx_value_free(z);
        z = NULL;
        assert_int_equal(onx_session_run(third, cx, (const onx_value *const[]){ x }, &z), ONX_OK);
        same(y, z);
        assert_true(atomic_load(&c.now) - before < one + WEIGHT_BYTES / 2);
        onx_session_free(second);
        onx_session_free(third);
        onx_value_free(x);
        onx_value_free(y);
        onx_value_free(z);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        assert_int_equal(atomic_load(&c.now), 0);
        release(&all);
    }
}

/* Many small ones, which share pieces of memory: sessions come and go in any order, nothing is lost, little is wasted,
 * and few pieces are taken. */
static void test_run_pack__small_ones_lie_together(void **state)
{
    (void)state;
    enum { LAYERS = 24 };
    static const int64_t square[] = { SIZE, SIZE }, rows[] = { 3, SIZE };
    char text[2048];
    int at =
        snprintf(text, sizeof text,
                 "<ir_version: 8, opset_import: [\"\" : 15]> g (float[3,256] x0) => (float[3,256] x%d)\n<", LAYERS);
    for (int i = 0; i < LAYERS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%sfloat[1] w%d = {0}", i ? ", " : "", i);
    at += snprintf(text + at, sizeof text - (size_t)at, "> {");
    for (int i = 0; i < LAYERS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " x%d = MatMul (x%d, w%d)", i + 1, i, i);
    snprintf(text + at, sizeof text - (size_t)at, " }");
    counts c = { 0 };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx, text);
    for (uint32_t i = 0; i < LAYERS; i++)
        place(doc, &all, i, 2, square, 1);
    onx_value *x = floats(cx, 2, rows), *y[3] = { NULL };
    const long long before = atomic_load(&c.now);
    onx_session *s[3] = { NULL };
    for (int i = 0; i < 3; i++) {
        s[i] = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
        assert_int_equal(onx_session_run(s[i], cx, (const onx_value *const[]){ x }, &y[i]), ONX_OK);
        assert_true(atomic_load(&c.now) - before < LAYERS * WEIGHT_BYTES * 5 / 4 + (2ll << 20));
        same(y[0], y[i]);
        if (i == 1)
            onx_session_free(s[0]);
    }
    onx_session_free(s[1]);
    onx_value_free(y[1]);
    y[1] = NULL;
    assert_int_equal(onx_session_run(s[2], cx, (const onx_value *const[]){ x }, &y[1]), ONX_OK);
    same(y[0], y[1]);
    onx_session_free(s[2]);
    for (int i = 0; i < 3; i++)
        onx_value_free(y[i]);
    onx_value_free(x);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&c.now), 0);
    release(&all);
}

/* ---- weights of one number ---- */

/* What ConstantOfShape gives is not there but where something reads it: packed, scaled by what follows, and freely. */
static void test_run_pack__filled_weights_are_not_kept(void **state)
{
    (void)state;
    static const int64_t rows[] = { 3, 512 }, image[] = { 1, CHANNELS, 8, 8 };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[3,512] x, float[1,32,8,8] i)\n"
        "=> (float[3,512] a, float[1,32,8,8] b, float[512,512] c, float[1,32,8,8] d)\n"
        "<int64[2] two = {512, 512}, int64[4] four = {32, 32, 3, 3}, float[32] v = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,\n"
        " 1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[32] most = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,9,1,2,3,\n"
        " 4,5,6,3e38}> {\n"
        "  w = ConstantOfShape <value = float[1] {0.25}> (two) a = MatMul (x, w)\n"
        "  r = ConstantOfShape <value = float[1] {-1.5}> (two) c = Neg (r)\n"
        "  k = ConstantOfShape <value = float[1] {0.5}> (four) o = Conv <pads = [1, 1, 1, 1]> (i, k)\n"
        "  b = BatchNormalization (o, v, v, v, v)\n"
        "  l = ConstantOfShape <value = float[1] {8.0}> (four) p = Conv <pads = [1, 1, 1, 1]> (i, l)\n"
        "  d = BatchNormalization (p, most, v, v, v) }";
    counts c = { 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx, text);
    onx_value *x[] = { floats(cx, 2, rows), floats(cx, 4, image) }, *y[4] = { NULL }, *z[4] = { NULL };
    const long long before = atomic_load(&c.now);
    onx_session *fast = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 2, .isa = isa });
    /* Of squares there are: one packed, one as it is, what comes out of Neg, and a result. */
    assert_true(atomic_load(&c.now) - before < (4ll << 20) + (1ll << 19));
    onx_session *plain = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .plain = true });
    assert_int_equal(onx_session_run(fast, cx, (const onx_value *const *)x, y), ONX_OK);
    assert_int_equal(onx_session_run(plain, cx, (const onx_value *const *)x, z), ONX_OK);
    for (int i = 0; i < 4; i++)
        close_to(y[i], z[i]);
    for (int i = 0; i < 4; i++) {
        onx_value_free(y[i]);
        onx_value_free(z[i]);
    }
    onx_session_free(fast);
    onx_session_free(plain);
    onx_value_free(x[0]);
    onx_value_free(x[1]);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&c.now), 0);
}

/* Nodes whose weights are too many to be made at once, of every kind of row that packs them. The weights lie at odd
 * addresses, and a BatchNormalization scales some of them. */
static const struct heavy {
    const char *node;   /* makes o from x and w */
    int64_t fixed;      /* elements of w per output */
    int64_t image[5];   /* dims of x */
    int64_t weights[5]; /* dims of w; 0: the number of outputs */
    uint32_t rank;      /* of both */
    bool scaled;
} heavies[] = {
    { "o = Conv <pads = [1, 1, 1, 1]> (x, w)", 6300, { 1, 700, 6, 6 }, { 0, 700, 3, 3 }, 4, true },
    { "o = Conv <strides = [2, 2]> (x, w)", 6300, { 1, 700, 7, 7 }, { 0, 700, 3, 3 }, 4, false },
    { "o = Conv (x, w)", 6500, { 1, 6500, 3, 12 }, { 0, 6500, 1, 1 }, 4, true },
    { "o = Conv <pads = [2, 2, 2, 2]> (x, w)", 6400, { 1, 256, 9, 9 }, { 0, 256, 5, 5 }, 4, false },
    { "o = Conv <dilations = [2, 2]> (x, w)", 6300, { 1, 700, 9, 9 }, { 0, 700, 3, 3 }, 4, false },
    { "o = Conv <pads = [1, 0, 0, 1, 0, 0]> (x, w)", 6480, { 1, 2160, 3, 5, 5 }, { 0, 2160, 3, 1, 1 }, 5, true },
    { "o = Conv <pads = [2, 2]> (x, w)", 6300, { 1, 1260, 20 }, { 0, 1260, 5 }, 3, true },
    { "o = Conv <group = 2, pads = [1, 1, 1, 1]> (x, w)", 6300, { 1, 1400, 5, 5 }, { 0, 700, 3, 3 }, 4, false },
    { "o = ConvTranspose <strides = [2, 2]> (x, w)", 6300, { 1, 1575, 4, 4 }, { 1575, 0, 2, 2 }, 4, false },
    { "o = MatMul (x, w)", 6500, { 7, 6500 }, { 6500, 0 }, 2, false },
    { "o = Gemm <transB = 1> (x, w)", 6500, { 7, 6500 }, { 0, 6500 }, 2, false },
};

static const char *dims_text(uint32_t rank, const int64_t *dims, char *text)
{
    size_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, 24, "%s%lld", i ? "," : "", (long long)dims[i]);
    return text;
}

static void run_heavy(const struct heavy *h, int64_t outputs)
{
    char text[1000], dims[120];
    int64_t shape[5];
    const int64_t channels[] = { outputs };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (uint32_t i = 0; i < h->rank; i++)
        shape[i] = h->weights[i] ? h->weights[i] : outputs;
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 15]> g (float[%s] x) => (y)\n"
             "<float[1] w = {0}, float[1] scale = {0}, float[1] mean = {0}> {\n"
             "  %s v = Mul (mean, mean) %s }",
             dims_text(h->rank, h->image, dims), h->node,
             h->scaled ? "y = BatchNormalization <epsilon = 1.0> (o, scale, mean, mean, v)" : "y = Relu (o)");
    onx_doc *doc = parse(cx, text);
    place(doc, &all, 0, h->rank, shape, 1);
    place(doc, &all, 1, 1, channels, 1);
    place(doc, &all, 2, 1, channels, 1);
    onx_value *x = floats(cx, h->rank, h->image), *y = NULL, *z = NULL;
    onx_session *fast = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 2, .isa = isa });
    onx_session *plain = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .plain = true });
    assert_int_equal(onx_session_run(fast, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_int_equal(onx_session_run(plain, cx, (const onx_value *const[]){ x }, &z), ONX_OK);
    close_to(y, z);
    onx_value_free(x);
    onx_value_free(y);
    onx_value_free(z);
    onx_session_free(fast);
    onx_session_free(plain);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    release(&all);
}

/* Some are made at a time, in which a row of panels of 32 outputs packs as many whole panels as there is room for. So
 * there are twice as many outputs as that, and then some more: a row of other vectors has another remainder. */
static void test_run_pack__made_some_at_a_time(void **state)
{
    enum { FLOATS = 1 << 20, PANEL = 32 };
    static const int64_t more[] = { 0, 2, 8, 16, 18, 24, 32 };
    (void)state;
    unsigned number = 0;
    for (size_t i = 0; i < sizeof heavies / sizeof *heavies; i++)
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            if (share_has(number++))
                run_heavy(&heavies[i], 2 * (FLOATS / (PANEL * heavies[i].fixed)) * PANEL + more[k]);
}

/* ---- sessions that are made at the same time ---- */

typedef struct maker {
    onx_doc *doc;
    counts *c;
    const onx_value *x, *expected;
    pthread_barrier_t *barrier;
} maker;

static void *make_and_run(void *user)
{
    const maker *m = user;
    for (int i = 0; i < 5; i++) {
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, m->c });
        pthread_barrier_wait(m->barrier);
        onx_session *s;
        onx_value *y = NULL;
        if (onx_session_new(cx, m->doc, &(onx_session_options){ .verify = true, .threads = 2, .isa = isa }, &s) !=
                ONX_OK ||
            onx_session_run(s, cx, (const onx_value *const[]){ m->x }, &y) != ONX_OK ||
            memcmp(y->data, m->expected->data, y->size) != 0)
            abort();
        pthread_barrier_wait(m->barrier);
        onx_value_free(y);
        onx_session_free(s);
        onx_ctx_free(cx);
    }
    return NULL;
}

static void test_run_pack__sessions_of_many_threads_share(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    static const int64_t rows[] = { 2, SIZE };
    counts c = { 0 };
    weights all = { .count = 0 };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = products(cx, &all, 1);
    onx_session *s = session_of(cx, doc, &(onx_session_options){ .verify = true, .isa = isa });
    onx_value *x = floats(cx, 2, rows), *y = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    maker m = { doc, &c, x, y, &barrier };
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_run, &m), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* weights of each session would be twelve; contexts and states take the rest */
    assert_true(atomic_load(&c.most) < 5 * WEIGHT_BYTES);
    assert_int_equal(atomic_load(&c.now), 0);
    pthread_barrier_destroy(&barrier);
    onx_session_free(s);
    onx_value_free(x);
    onx_value_free(y);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    release(&all);
}

/* ---- nodes whose shapes a run tells ---- */

typedef struct seen {
    uint32_t products, plain;
} seen;

static void note(void *user, const onx_run_event *event)
{
    seen *s = user;
    const bool product = onx_str_is(event->op_type, "MatMul") || onx_str_is(event->op_type, "Gemm");
    s->products += product;
    s->plain += product && strcmp(event->variant, "plain") == 0;
}

typedef struct runner {
    onx_session *s;
    const onx_value *const *in;
    const onx_value *expected;
    pthread_barrier_t *barrier;
} runner;

static void *run_first(void *user)
{
    const runner *r = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *out[2] = { NULL, NULL };
    seen s = { 0 };
    pthread_barrier_wait(r->barrier);
    for (int i = 0; i < 3; i++)
        if (onx_session_run_with(r->s, cx, r->in, out, &(onx_run_options){ .event = note, .user = &s }) != ONX_OK ||
            memcmp(out[0]->data, r->expected->data, out[0]->size) != 0)
            abort();
    if (s.products != 3 * 3 || (isa == ONX_ISA_ANY && s.plain)) /* every machine has vectors of some kind */
        abort();
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_ctx_free(cx);
    return NULL;
}

/* They have their weights packed like all others, once, whoever comes first. */
static void test_run_pack__where_shapes_are_told_by_runs(void **state)
{
    (void)state;
    enum { THREADS = 4, ROWS = 9 };
    static const int64_t square[] = { SIZE, SIZE }, rows[] = { ROWS, SIZE }, count[] = { ROWS };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[N,256] x, bool[N] keep) => (float[M,256] z, float[M,M] t)\n"
        "<float[1] w = {0}, float[1] v = {0}> {\n"
        "  some = Compress <axis = 0> (x, keep) y = MatMul (some, w) z = Gemm <transB = 1> (y, v)\n"
        "  turned = Transpose (z) t = MatMul (z, turned) }";
    counts c = { 0 };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx, text);
    place(doc, &all, 0, 2, square, 0);
    place(doc, &all, 1, 2, square, 0);
    onx_session *plain = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .plain = true });
    onx_session *s = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
    onx_value *x = floats(cx, 2, rows), *keep, *y[2] = { NULL, NULL }, *z[2] = { NULL, NULL };
    assert_int_equal(onx_value_new_tensor(cx, ONX_BOOL, 1, count, &keep), ONX_OK);
    for (int i = 0; i < ROWS; i++)
        ((char *)keep->data)[i] = i % 4 != 1;
    const onx_value *const in[] = { x, keep };
    assert_int_equal(onx_session_run(plain, cx, in, y), ONX_OK);
    onx_session *alone = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = 1, .isa = isa });
    assert_int_equal(onx_session_run(alone, cx, in, z), ONX_OK);
    close_to(z[0], y[0]);
    close_to(z[1], y[1]);
    onx_session_free(alone);
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    runner r = { s, in, z[0], &barrier };
    const long long before = atomic_load(&c.now);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_first, &r), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* Two, packed, copies of those at odd places, and what each of four states works in: not two for each thread. */
    assert_true(atomic_load(&c.now) - before < 5 * WEIGHT_BYTES);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < 2; i++) {
        onx_value_free(y[i]);
        onx_value_free(z[i]);
    }
    onx_value_free(x);
    onx_value_free(keep);
    onx_session_free(s);
    onx_session_free(plain);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&c.now), 0);
    release(&all);
}

/* ---- what a run takes ---- */

/* A run with the shapes of the one before takes no memory, and gives none back, on one thread and on two: images in
 * whatever layouts, products, attention, a recurrent layer, moves and a reduction. */
static void test_run_pack__runs_after_the_first_take_nothing(void **state)
{
    (void)state;
    static const int64_t kernel[] = { CHANNELS, CHANNELS, 3, 3 }, image[] = { 1, CHANNELS, 24, 24 };
    static const int64_t r[] = { 1, 4 * 24, 24 };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,32,24,24] x)\n"
        "=> (float[N,32,9,9] e, float[N,32,24,24] y, float[24,D,N,24] z, float[N,24,23,32] i)\n"
        "<float[1] k = {0}, float[1] u = {0}, float[1] rw = {0}, float[1] rr = {0}, int64[1] one = {1},\n"
        " int64[1] two = {24}, int64[1] axis = {2}> {\n"
        "  a = Conv <pads = [1, 1, 1, 1]> (x, k) b = Relu (a) c = Conv <group = 2, dilations = [2, 2]> (b, u)\n"
        "  d = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (c)\n"
        "  e = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (d)\n"
        "  f = Transpose <perm = [0, 2, 3, 1]> (x) h = Softmax (f) i = Slice (h, one, two, axis)\n"
        "  t = Transpose <perm = [0, 1, 3, 2]> (x) s = MatMul (x, t) p = Softmax (s) y = MatMul (p, x)\n"
        "  m = ReduceMean <axes = [1]> (x) n = Squeeze (m, one) o = Transpose <perm = [1, 0, 2]> (n)\n"
        "  l = LSTM <hidden_size = 24> (o, rw, rr) z = Sigmoid (l) }";
    counts c = { 0 };
    weights all = { .count = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counted_resize, &c });
    onx_doc *doc = parse(cx, text);
    place(doc, &all, 0, 4, kernel, 0);
    const int64_t halves[] = { CHANNELS, CHANNELS / 2, 3, 3 };
    place(doc, &all, 1, 4, halves, 0);
    place(doc, &all, 2, 3, r, 0);
    place(doc, &all, 3, 3, r, 0);
    onx_value *x = floats(cx, 4, image);
    for (unsigned threads = 1; threads <= 2; threads++) {
        onx_session *s = session_of(cx, doc, &(onx_session_options){ .verify = true, .threads = threads, .isa = isa });
        onx_value *out[4] = { NULL, NULL, NULL, NULL };
        unsigned long long before = 0;
        for (int i = 0; i < 4; i++) {
            if (i == 1)
                before = atomic_load(&c.calls);
            if (onx_session_run(s, cx, (const onx_value *const[]){ x }, out) != ONX_OK)
                fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
        }
        assert_int_equal(atomic_load(&c.calls), before);
        for (int i = 0; i < 4; i++)
            onx_value_free(out[i]);
        onx_session_free(s);
    }
    onx_value_free(x);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    assert_int_equal(atomic_load(&c.now), 0);
    release(&all);
}

/* The outputs of a session of its own of products and a scaled convolution, the last weight of which is multiplied by
 * `by`. */
static void run_alone(onx_ctx *cx, float by, const onx_session_options *options, onx_value *out[2], uint64_t *left)
{
    static const int64_t square[] = { SIZE, SIZE }, kernel[] = { CHANNELS, CHANNELS, 3, 3 };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[3,256] x, float[1,32,20,20] i)\n"
        "=> (float[3,256] a, float[1,32,20,20] c) <float[1] w = {0}, float[1] k = {0},\n"
        " float[32] scale = {2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {\n"
        "  s = Constant <value_ints = [32, 32, 3, 3]> ()\n"
        "  u = ConstantOfShape <value = float[1] {0.125}> (s)\n  a = MatMul (x, w)\n"
        "  o = Conv <pads = [1, 1, 1, 1]> (i, k)\n p = Conv <pads = [1, 1, 1, 1]> (o, u)\n"
        "  c = BatchNormalization (p, scale, scale, scale, scale) }";
    static const int64_t rows[] = { 3, SIZE }, image[] = { 1, CHANNELS, 20, 20 };
    weights all = { .count = 0 };
    onx_doc *doc = parse(cx, text);
    place(doc, &all, 0, 2, square, 4);
    place(doc, &all, 1, 4, kernel, 0);
    ((float *)all.base[1])[CHANNELS * CHANNELS * 9 - 1] *= by;
    onx_session *s = session_of(cx, doc, options);
    *left = onxi_process_get()->left.all;
    onx_value *in[] = { floats(cx, 2, rows), floats(cx, 4, image) };
    out[0] = out[1] = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const *)in, out), ONX_OK);
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    onx_session_free(s);
    onx_doc_free(doc);
    release(&all);
}

/* What was packed of convolutions is found by the next session that packs the same bytes the same way, of whichever
 * document; never by one whose weights differ. */
static void test_run_pack__left_to_the_next(void **state)
{
    (void)state;
    const onx_session_options options = { .verify = true, .threads = 2, .isa = isa };
    const onx_session_options plain = { .verify = true, .threads = 1, .plain = true },
                              lean = { .threads = 1, .lean_memory = true };
    uint64_t found, before = 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *first[2], *other[2], *out[2];
    for (float by = 1; by < 3; by++) {
        run_alone(cx, by, &options, by == 1 ? first : other, &found);
        (void)onxi_left_drop(SIZE_MAX);
    }
    assert_memory_not_equal(first[1]->data, other[1]->data, first[1]->size);
    for (unsigned turn = 0; turn < 6; turn++) {
        const bool differs = turn % 3 == 2;
        run_alone(cx, differs ? 2 : 1, &options, out, &found);
        for (int i = 0; i < 2; i++) {
            same(out[i], differs ? other[i] : first[i]);
            onx_value_free(out[i]);
        }
        const uint64_t left = onxi_process_get()->left.all;
        if (turn == 0) {
            before = left;
            assert_true(left > 0 && found == 0);
        } else if (turn == 1) {
            assert_int_equal(left, before); /* all of it was taken, and left again */
            assert_int_equal(found, 0);
        } else if (turn == 2) { /* all but the changed weights */
            assert_in_range(found, 1, before - 1);
            assert_true(left > before);
        }
    }
    const uint64_t left = onxi_process_get()->left.all;
    for (int i = 0; i < 2; i++) { /* who leaves nothing takes nothing */
        run_alone(cx, 1, i ? &plain : &lean, out, &found);
        assert_in_range(found, i ? left : 1, left);
        close_to(out[0], first[0]);
        onx_value_free(out[0]);
        onx_value_free(out[1]);
    }
    for (int i = 0; i < 2; i++) {
        onx_value_free(first[i]);
        onx_value_free(other[i]);
    }
    (void)onxi_left_drop(SIZE_MAX);
    assert_int_equal(onxi_process_get()->left.all, 0);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_pack__weights_lie_anywhere),
        cmocka_unit_test(test_run_pack__packed_once),
        cmocka_unit_test(test_run_pack__small_ones_lie_together),
        cmocka_unit_test(test_run_pack__filled_weights_are_not_kept),
        cmocka_unit_test(test_run_pack__made_some_at_a_time),
        cmocka_unit_test(test_run_pack__sessions_of_many_threads_share),
        cmocka_unit_test(test_run_pack__where_shapes_are_told_by_runs),
        cmocka_unit_test(test_run_pack__runs_after_the_first_take_nothing),
        cmocka_unit_test(test_run_pack__left_to_the_next),
    };
    int failed = 0;
    for (isa = ONX_ISA_ANY; isa < ONX_ISA_END; isa++)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
