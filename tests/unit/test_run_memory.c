/* Values over memory of the caller, by strides and DLPack, and runs that write there; inputs and outputs by name;
 * callbacks during a run: stop, progress, log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <pthread.h>

#include <cmocka.h>

#include <onx/onx.h>

#include "unit/folder.h"

static onx_ctx *cx;

static int set_up(void **state)
{
    (void)state;
    return (cx = onx_ctx_new(NULL)) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    onx_ctx_free(cx);
    return 0;
}

static void says(const char *text)
{
    assert_true(onx_diag_count(cx) > 0);
    const onx_diag *d = onx_diag_get(cx, onx_diag_count(cx) - 1);
    if (!onx_str_is(d->message, text))
        fail_msg("says \"%.*s\", not \"%s\"", ONX_ARG(d->message), text);
    onx_diag_clear(cx);
}

/* ---- memory ---- */

static int released;

static void count_release(void *owner)
{
    (void)owner;
    released++;
}

static void test_run_memory__wrapped(void **state)
{
    (void)state;
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    const int64_t dims[] = { 2, 3 }, row_major[] = { 3, 1 }, turned[] = { 1, 2 };
    onx_memory m = {
        .dtype = ONX_FLOAT, .rank = 2, .dims = dims, .data = data, .size = sizeof data, .release = count_release
    };
    onx_value *v;
    released = 0;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_OK);
    assert_ptr_equal(v->data, data);
    assert_int_equal(v->count, 6);
    /* It keeps its shape, and the memory is told of once, when the last reference goes. */
    assert_int_equal(onx_value_reset(v, ONX_FLOAT, 2, (const int64_t[]){ 2, 3 }), ONX_OK);
    assert_int_equal(onx_value_reset(v, ONX_FLOAT, 2, (const int64_t[]){ 3, 2 }), ONX_E_MISUSE);
    onx_value *list;
    assert_int_equal(onx_value_new(cx, &list), ONX_OK);
    assert_int_equal(onx_value_reset_list(list, ONX_VALUE_SEQUENCE, ONX_FLOAT), ONX_OK);
    assert_int_equal(onx_value_insert(list, 0, v), ONX_OK);
    onx_value_free(v);
    assert_int_equal(released, 0);
    onx_value_free(list);
    assert_int_equal(released, 1);

    m.strides = row_major;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_OK);
    onx_value_free(v);
    assert_int_equal(released, 2);
    m.strides = turned;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_E_MISUSE);
    assert_null(v);
    says("the strides are not those of row-major elements, which alone need no copy");
    m.strides = NULL;
    m.size = 20;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_E_MISUSE);
    says("the memory has 20 bytes, and the tensor takes 24");
    m.size = 24;
    m.data = (char *)data + 1;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_E_MISUSE);
    says("the address of the memory is no multiple of 4");
    m.dtype = ONX_STRING;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_E_UNSUPPORTED);
    onx_diag_clear(cx);
    m.dtype = 1000;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_E_MISUSE);
    says("1000 is no element type");
    assert_int_equal(released, 2);
}

/* Every way to lay out a small tensor, with negative strides, as somebody with a pencil would find the elements. */
static void test_run_memory__strides(void **state)
{
    (void)state;
    static const int64_t layouts[][3] = { { 6, 3, 1 },  { 1, 2, 4 },   { 12, 6, 2 },
                                          { -6, 3, 1 }, { 6, -3, -1 }, { 0, 3, 1 } };
    int32_t room[64];
    const int64_t dims[] = { 2, 2, 3 };
    for (int i = 0; i < 64; i++)
        room[i] = i;
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        const int64_t *s = layouts[k];
        int32_t *at = room + 32;
        onx_memory m = { .dtype = ONX_INT32, .rank = 3, .dims = dims, .strides = s, .data = at, .size = 128 };
        onx_value *v;
        assert_int_equal(onx_value_from_memory(cx, &m, &v), ONX_OK);
        for (int64_t n = 0; n < 12; n++)
            assert_int_equal(((int32_t *)v->data)[n], at[n / 6 * s[0] + n / 3 % 2 * s[1] + n % 3 * s[2]]);
        if (s[0]) { /* elements that are the same cannot be written apart */
            int32_t back[64];
            m.data = back + 32;
            memset(back, 0, sizeof back);
            assert_int_equal(onx_value_to_memory(cx, v, &m), ONX_OK);
            int written = 0;
            for (int i = 0; i < 64; i++) {
                assert_true(back[i] == 0 || back[i] == room[i]);
                written += back[i] != 0;
            }
            assert_int_equal(written, 12);
        }
        onx_value_free(v);
    }
    const int64_t far[] = { INT64_MAX / 2, 1, 1 }, one[] = { 1, 1, 1 }, huge[] = { INT64_MAX, INT64_MIN, 1 };
    onx_value *v;
    onx_memory m = { .dtype = ONX_INT32, .rank = 3, .dims = dims, .strides = far, .data = room, .size = sizeof room };
    assert_int_equal(onx_value_from_memory(cx, &m, &v), ONX_E_MISUSE);
    says("the strides of the memory lead past the end of all memory");
    m.dims = one; /* strides of axes of one element mean nothing */
    m.strides = huge;
    assert_int_equal(onx_value_from_memory(cx, &m, &v), ONX_OK);
    onx_value_free(v);
    m.dtype = ONX_INT4;
    m.dims = dims;
    m.strides = layouts[1];
    assert_int_equal(onx_value_from_memory(cx, &m, &v), ONX_E_UNSUPPORTED);
}

/* ---- DLPack ---- */

static int deleted;

static void delete (onx_dl_managed *self)
{
    (void)self;
    deleted++;
}

static void test_run_memory__dlpack(void **state)
{
    (void)state;
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    int64_t shape[] = { 3, 2 }, turned[] = { 1, 3 };
    onx_dl_managed m = { .tensor = { .data = data,
                                     .device_type = ONX_DL_CPU,
                                     .ndim = 2,
                                     .dtype = { ONX_DL_FLOAT, 32, 1 },
                                     .shape = shape },
                         .deleter = delete };
    onx_value *v;
    deleted = 0;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_OK);
    assert_ptr_equal(v->data, data);
    /* And out again, without a copy; what was made outlives the value. */
    onx_dl_managed *out;
    assert_int_equal(onx_value_to_dlpack(cx, v, &out), ONX_OK);
    assert_ptr_equal(out->tensor.data, data);
    assert_int_equal(out->tensor.ndim, 2);
    assert_int_equal(out->tensor.shape[0], 3);
    onx_value_free(v);
    assert_int_equal(deleted, 0);
    out->deleter(out);
    assert_int_equal(deleted, 1);

    m.tensor.strides = turned;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_OK);
    assert_int_equal(deleted, 2); /* copied */
    assert_true(((float *)v->data)[1] == 4);
    onx_value_free(v);
    assert_int_equal(deleted, 2);

    m.tensor.device_type = 2;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_E_UNSUPPORTED);
    m.tensor.device_type = ONX_DL_CPU;
    m.tensor.dtype.lanes = 4;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_E_UNSUPPORTED);
    m.tensor.dtype.lanes = 1;
    m.tensor.ndim = -1;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_E_MISUSE);
    m.tensor.ndim = 65;
    assert_int_equal(onx_value_from_dlpack(cx, &m, &v), ONX_E_LIMIT);
    assert_int_equal(deleted, 2);
    onx_diag_clear(cx);
}

/* ---- runs ---- */

static onx_doc *parse(const char *text)
{
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

static onx_session *session_of(onx_doc *doc)
{
    onx_session *session;
    if (onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &session) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return session;
}

static onx_value *wrap(float *data, int64_t count)
{
    const onx_memory m = {
        .dtype = ONX_FLOAT, .rank = 1, .dims = &count, .data = data, .size = (uint64_t)count * sizeof *data
    };
    onx_value *v;
    assert_int_equal(onx_value_wrap(cx, &m, &v), ONX_OK);
    return v;
}

static const char chain[] = "<ir_version: 10, opset_import: [\"\": 21]>\n"
                            "g (float[N] x) => (float[N] y, float[N] z) {\n"
                            "  a = Mul (x, x) y = Neg (a) b = Abs (y) z = Add (b, x) }";

enum { N = 40 };

/* Does a node write where the caller wants its result? */
typedef struct writes {
    const void *where;
    bool seen;
} writes;

static void look_where(void *user, const onx_run_event *event)
{
    writes *w = user;
    w->seen |= event->output && event->output->data == w->where;
}

static void test_run_memory__outputs_are_written_in_place(void **state)
{
    (void)state;
    onx_doc *doc = parse(chain);
    onx_session *session = session_of(doc);
    _Alignas(16) float room[3][N] = { { 1, 2, 3 } };
    onx_value *in = wrap(room[0], N), *out[2] = { wrap(room[1], N), NULL };
    for (int again = 0; again < 2; again++) {
        writes w = { room[1], false };
        const onx_run_options options = { .event = look_where, .user = &w };
        assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ in }, out, &options), ONX_OK);
        assert_true(w.seen);
        w = (writes){ out[1]->data, false };
        assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ in }, out, &options), ONX_OK);
        assert_true(w.seen); /* that of the run before is one of them, too */
    }
    onx_value_free(in);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* Which of several places are written to while a run goes on. */
enum { PLACES = 6 };
typedef struct places {
    const void *where[PLACES];
    bool seen[PLACES];
} places;

static void look_at_places(void *user, const onx_run_event *event)
{
    places *p = user;
    for (int i = 0; i < PLACES; i++)
        p->seen[i] |= event->output && event->output->data == p->where[i];
}

static bool meet(const float *a, const float *b)
{
    return a < b + N && b < a + N;
}

/* Outputs lie anywhere, on top of each other and of the input: just those are written in place that nothing else
 * touches, whatever the order of addresses was in the run before. */
static void test_run_memory__outputs_apart_are_in_place(void **state)
{
    (void)state;
    enum { STEP = 4, STEPS = 150, ROUNDS = 400 };
    static const float nine[PLACES] = { -9, 9, 18, 81, 3, 9 }; /* what becomes of it */
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 21]>\n"
              "g (float[N] x) => (float[N] a, float[N] b, float[N] c, float[N] d, float[N] e, float[N] f) {\n"
              "a = Neg (x) b = Abs (x) c = Add (x, x) d = Mul (x, x) e = Sqrt (x) f = Relu (x) }");
    onx_session *session = session_of(doc);
    float *room = aligned_alloc(64, (STEPS * STEP + N) * sizeof(float));
    assert_non_null(room);
    uint32_t random = 1;
    int written = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float *at[PLACES + 1]; /* the last one is the input */
        places p = { .where = { 0 } };
        onx_value *in, *out[PLACES];
        for (int i = 0; i <= PLACES; i++) {
            random = random * 1664525 + 1013904223;
            at[i] = room + random / 65536 % STEPS * STEP;
        }
        for (int k = 0; k < N; k++)
            at[PLACES][k] = (float)k;
        in = wrap(at[PLACES], N);
        for (int i = 0; i < PLACES; i++)
            out[i] = wrap(at[i], N), p.where[i] = at[i];
        const onx_run_options options = { .event = look_at_places, .user = &p };
        assert_int_equal(onx_session_run_with(session, cx, (const onx_value *const[]){ in }, out, &options), ONX_OK);
        for (int i = 0; i < PLACES; i++) {
            bool apart = true;
            for (int k = 0; k <= PLACES; k++)
                apart &= k == i || !meet(at[i], at[k]);
            assert_int_equal(p.seen[i], apart);
            assert_true(!apart || at[i][9] == nine[i]);
            written += apart;
            onx_value_free(out[i]);
        }
        onx_value_free(in);
    }
    assert_true(written > ROUNDS / 2 && written < ROUNDS * PLACES); /* there were both */
    free(room);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* Whether an output is written at once or copied at the end, nobody can tell but by time: memory that is aligned or
 * not, of the value or of the caller, apart from the inputs or on top of them, the same as last time or another one. */
static void test_run_memory__bound_outputs(void **state)
{
    (void)state;
    onx_doc *doc = parse(chain);
    onx_session *session = session_of(doc);
    float *room = aligned_alloc(64, 8 * 64 * sizeof(float));
    assert_non_null(room);
    const int offsets[] = { 0, 64, 65, 128, 20, 200, 64 };
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int own = 0; own < 3; own++) {
            float *x = room, *y = room + offsets[i], *z = room + 320;
            for (int k = 0; k < N; k++)
                x[k] = (float)(k - 7);
            onx_value *in = wrap(x, N), *out[2] = { own == 1 ? NULL : wrap(y, N), own == 2 ? NULL : wrap(z, N) };
            const onx_value *inputs[] = { in };
            assert_int_equal(onx_session_run(session, cx, inputs, out), ONX_OK);
            if (own != 1)
                assert_ptr_equal(out[0]->data, y);
            for (int k = 0; k < N; k++) {
                const float v = (float)(k - 7);
                assert_true(((float *)out[0]->data)[k] == -(v * v));
                assert_true(((float *)out[1]->data)[k] == v * v + v);
            }
            /* Once more with what is there, as a caller does who runs in a loop. */
            for (int k = 0; k < N; k++)
                x[k] = (float)k;
            if (offsets[i] >= 64 || own == 1) {
                assert_int_equal(onx_session_run(session, cx, inputs, out), ONX_OK);
                for (int k = 0; k < N; k++)
                    assert_true(((float *)out[1]->data)[k] == (float)(k * k + k));
            }
            onx_value_free(in);
            onx_value_free(out[0]);
            onx_value_free(out[1]);
        }
    /* No room for what comes out: said, and nothing is written beyond it. */
    room[200 + N - 1] = -1;
    onx_value *in = wrap(room, N), *out[2] = { wrap(room + 200, N - 1), NULL };
    assert_int_equal(onx_session_run(session, cx, (const onx_value *const[]){ in }, out), ONX_E_MISUSE);
    says("the memory given for output 0 is for another type or shape: it has 156 bytes, 160 are needed");
    assert_true(room[200 + N - 1] == -1);
    onx_value_free(in);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    /* The session remembers nothing of memory that is gone. */
    free(room);
    float small[N] = { 1, 2, 3 };
    in = wrap(small, N);
    out[0] = out[1] = NULL;
    assert_int_equal(onx_session_run(session, cx, (const onx_value *const[]){ in }, out), ONX_OK);
    assert_true(((float *)out[1]->data)[2] == 12);
    onx_value_free(in);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* Outputs that are one value, views of it and of inputs, and constants. */
static void test_run_memory__bound_outputs_that_share(void **state)
{
    (void)state;
    onx_doc *doc =
        parse("<ir_version: 10, opset_import: [\"\": 21]>\n"
              "g (float[4] x) => (float[4] a, float[4] b, float[4] c, float[4] d) <float[4] k = {9, 9, 9, 9}> {\n"
              "  a = Neg (x) b = Identity (a) c = Identity (x) d = Identity (k) }");
    onx_session *session = session_of(doc);
    _Alignas(64) float x[4] = { 1, 2, 3, 4 }, room[4][16];
    onx_value *in = wrap(x, 4), *out[4];
    for (int i = 0; i < 4; i++)
        out[i] = wrap(room[i], 4);
    for (int again = 0; again < 2; again++) {
        memset(room, 0, sizeof room);
        assert_int_equal(onx_session_run(session, cx, (const onx_value *const[]){ in }, out), ONX_OK);
        for (int i = 0; i < 4; i++) {
            assert_true(room[0][i] == -x[i] && room[1][i] == -x[i] && room[2][i] == x[i] && room[3][i] == 9);
            assert_true(room[i][4] == 0);
        }
    }
    for (int i = 0; i < 4; i++)
        onx_value_free(out[i]);
    onx_value_free(in);
    onx_session_free(session);
    onx_doc_free(doc);
}

static void test_run_memory__by_name(void **state)
{
    (void)state;
    onx_doc *doc = parse(chain);
    onx_session *session = session_of(doc);
    float x[3] = { 1, 2, 3 };
    uint32_t at = 9;
    assert_true(onx_session_find_output(session, onx_str_of("z"), &at));
    assert_int_equal(at, 1);
    assert_false(onx_session_find_input(session, onx_str_of("y"), &at));
    assert_null(onx_session_input(session, 1).name.ptr);
    assert_null(onx_session_output(session, UINT32_MAX).type);
    onx_named_value in[] = { { "x", wrap(x, 3) }, { "x", NULL } }, out[] = { { "z", NULL }, { "z", NULL } };
    assert_int_equal(onx_session_run_named(session, cx, in, 1, out, 1, NULL), ONX_OK);
    assert_true(((float *)out[0].value->data)[2] == 12);
    onx_value_free(out[0].value);
    out[0].value = NULL;
    assert_int_equal(onx_session_run_named(session, cx, in, 1, out, 2, NULL), ONX_E_MISUSE);
    says("output \"z\" is given twice");
    out[0].name = "w";
    assert_int_equal(onx_session_run_named(session, cx, in, 1, out, 1, NULL), ONX_E_NOT_FOUND);
    says("the model has no output \"w\"");
    assert_int_equal(onx_session_run_named(session, cx, in, 0, out, 0, NULL), ONX_E_MISUSE);
    says("input \"x\" is not given");
    in[1].name = NULL;
    assert_int_equal(onx_session_run_named(session, cx, in, 2, out, 0, NULL), ONX_E_MISUSE);
    says("input 1 of the list has no name");
    onx_value_free(in[0].value);
    onx_session_free(session);
    onx_doc_free(doc);
}

static void test_run_memory__session_of_a_file(void **state)
{
    (void)state;
    char folder[FOLDER_ROOM], path[FOLDER_ROOM + 16];
    assert_true(folder_make(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    onx_doc *doc = parse(chain);
    assert_int_equal(onx_save(cx, doc, path, NULL), ONX_OK);
    onx_doc_free(doc);
    onx_session *session;
    assert_int_equal(onx_session_load(cx, path, NULL, NULL, &session), ONX_OK);
    assert_int_equal(onx_session_output_count(session), 2);
    onx_session_free(session);
    strcat(path, "x");
    assert_int_equal(onx_session_load(cx, path, NULL, NULL, &session), ONX_E_IO);
    assert_null(session);
    assert_true(onx_diag_count(cx) == 1);
    folder_remove(folder);
}

/* ---- while a run goes on ---- */

static const char endless[] = "<ir_version: 10, opset_import: [\"\": 21]>\n"
                              "g (float[1] x) => (float[1] y) <bool t = {1}, int64 m = {4611686018427387904}> {\n"
                              "  y = Loop (m, t, x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w)\n"
                              "  { d = Identity (c) w = Neg (v) }> }";

static void *cancel_soon(void *cancel)
{
    onx_cancel_now(cancel);
    return NULL;
}

static void test_run_memory__cancel(void **state)
{
    (void)state;
    onx_doc *doc = parse(endless);
    onx_session *session = session_of(doc);
    onx_cancel *cancel;
    assert_int_equal(onx_cancel_new(cx, &cancel), ONX_OK);
    float x[1] = { 1 };
    onx_value *in = wrap(x, 1), *out = NULL;
    const onx_value *inputs[] = { in };
    onx_run_options options = { .struct_size = sizeof options, .cancel = cancel };
    /* Before: at once. During: soon. After: the next one; and none once it is taken back. */
    onx_cancel_now(cancel);
    assert_true(onx_cancel_is_set(cancel));
    assert_int_equal(onx_session_run_with(session, cx, inputs, &out, &options), ONX_E_CANCELLED);
    says("the run was cancelled");
    onx_cancel_reset(cancel);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    assert_int_equal(onx_session_run_with(session, cx, inputs, &out, &options), ONX_E_CANCELLED);
    pthread_join(thread, NULL);
    onx_session *never;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .cancel = cancel }, &never), ONX_E_CANCELLED);
    onx_cancel_reset(cancel);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .cancel = cancel }, &never), ONX_OK);
    onx_session_free(never);
    onx_value_free(out);
    onx_value_free(in);
    onx_cancel_free(cancel);
    onx_session_free(session);
    onx_doc_free(doc);
}

static onx_status count_progress(void *user, uint32_t done, uint32_t total)
{
    int *steps = user;
    assert_true(done < total);
    if (*steps >= 0)
        assert_int_equal(done, (*steps)++);
    else if (done == total - 1)
        return ONX_E_IO; /* a caller's own failure */
    return ONX_OK;
}

static void test_run_memory__progress(void **state)
{
    (void)state;
    onx_doc *doc = parse(chain);
    onx_session *session = session_of(doc);
    float x[2] = { 1, 2 };
    int steps = 0;
    onx_value *in = wrap(x, 2), *out[2] = { NULL, NULL };
    const onx_value *inputs[] = { in };
    const onx_run_options options = { .progress = count_progress, .user = &steps };
    assert_int_equal(onx_session_run_with(session, cx, inputs, out, &options), ONX_OK);
    assert_true(steps > 0);
    const int all = steps;
    steps = -1;
    assert_int_equal(onx_session_run_with(session, cx, inputs, out, &options), ONX_E_IO);
    char text[80];
    snprintf(text, sizeof text, "the progress callback ended the run after %d of %d steps", all - 1, all);
    says(text);
    assert_int_equal(onx_session_run(session, cx, inputs, out), ONX_OK);
    assert_true(((float *)out[1]->data)[1] == 6);
    onx_value_free(in);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_session_free(session);
    onx_doc_free(doc);
}

typedef struct told {
    size_t count;
    char last[200];
} told;

static void note(void *user, const onx_diag *diag)
{
    told *t = user;
    t->count++;
    snprintf(t->last, sizeof t->last, "%.*s", ONX_ARG(diag->message));
}

static void test_run_memory__log(void **state)
{
    (void)state;
    told t = { 0 };
    onx_doc *doc;
    onx_ctx_set_log(cx, &(onx_log){ note, &t });
    assert_int_equal(onx_load(cx, ONX_KIND_MODEL, "/no/such.onnx", NULL, &doc), ONX_E_IO);
    assert_int_equal(t.count, 1);
    /* What a call takes back, as the checker does to sort its findings, is told once, as it ends up. */
    doc = parse("<ir_version: 10, opset_import: [\"\": 21]>\n"
                "g (float[2] x) => (float[2] y) { y = Nothing (q) z = Nothing (r) }");
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    assert_int_equal(t.count, onx_diag_count(cx));
    const onx_diag *last = onx_diag_get(cx, onx_diag_count(cx) - 1);
    assert_true(onx_str_is(last->message, t.last));
    onx_diag_clear(cx);
    const size_t before = t.count;
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    assert_int_equal(t.count, before + onx_diag_count(cx));
    onx_ctx_set_log(cx, NULL);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    assert_int_equal(t.count, 2 * before - 1);
    onx_doc_free(doc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_run_memory__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(wrapped),
        TEST(strides),
        TEST(dlpack),
        TEST(bound_outputs),
        TEST(outputs_are_written_in_place),
        TEST(outputs_apart_are_in_place),
        TEST(bound_outputs_that_share),
        TEST(by_name),
        TEST(session_of_a_file),
        TEST(cancel),
        TEST(progress),
        TEST(log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
