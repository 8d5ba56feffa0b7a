/* test_run_measure.c - measured kernel rows: the table's choices are used where possible and kept in a folder, results
 * are those of the fixed order within rounding, and errors while measuring do not affect the run. The generated tests
 * compare all rows of all operators (GEN_ROWS). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/text.h>

#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#include "folder.h"
#include "run/run_choice.h"
#include "scarce.h"

enum { COUNT = 8 * 12 * 12, ROOM = 400 };

/* Convolutions with alternatives, one of them behind something whose shape is open; `function` tells models apart. */
static onx_doc *parse(onx_ctx *cx, const char *function, bool open)
{
    char text[1500];
    onx_doc *doc = NULL;
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17]> g (float[%s,8,12,12] x) => (float[n,8,12,12] y) {\n"
             "  i = Constant <value = int64[4] {8, 8, 3, 3}> () w = ConstantOfShape <value = float[1] {0.01}> (i)\n"
             "  j = Constant <value = int64[4] {8, 1, 3, 3}> () v = ConstantOfShape <value = float[1] {0.1}> (j)\n"
             "  a = Conv <pads = [1, 1, 1, 1]> (x, w) b = %s (a)\n"
             "  c = Conv <group = 8, pads = [1, 1, 1, 1]> (b, v)\n"
             "  e = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (c) y = Add (e, x) }",
             open ? "N" : "1", function);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

static void count_measured(void *user, const onx_run_event *event)
{
    *(unsigned *)user += event->measured;
}

/* One run, and how many of its nodes had a row that was measured. */
static onx_status run(onx_ctx *cx, onx_session *s, float first, float *y, unsigned *measured, onx_run_options options)
{
    const int64_t dims[] = { 1, 8, 12, 12 };
    onx_value *x = NULL, *out = NULL;
    *measured = 0;
    options.event = count_measured;
    options.user = measured;
    onx_status status = onx_value_new_tensor(cx, ONX_FLOAT, 4, dims, &x);
    for (int i = 0; status == ONX_OK && i < COUNT; i++)
        ((float *)x->data)[i] = i ? sinf((float)i) : first;
    if (status == ONX_OK)
        status = onx_session_run_with(s, cx, (const onx_value *const *)&x, &out, &options);
    if (status == ONX_OK)
        memcpy(y, out->data, COUNT * sizeof *y);
    onx_value_free(x);
    onx_value_free(out);
    return status;
}

static void close_to(const float *a, const float *b)
{
    for (int i = 0; i < COUNT; i++)
        if (isnan(a[i]) != isnan(b[i]) || fabsf(a[i] - b[i]) > 1e-4f)
            fail_msg("element %d is %g, not %g", i, (double)b[i], (double)a[i]);
}

static onx_session *open_session(onx_ctx *cx, onx_doc *doc, const char *folder, unsigned threads, bool measure)
{
    const onx_session_options options = {
        .struct_size = sizeof options, .threads = threads, .cache = folder, .measure = measure
    };
    onx_session *s = NULL;
    if (onx_session_new(cx, doc, &options, &s) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return s;
}

static const onx_run_options no_limits = { 0 };
static float want[COUNT], got[COUNT], again[COUNT];

static void run_fixed(onx_ctx *cx, onx_doc *doc, float first, float *y)
{
    unsigned measured;
    onx_session *s = open_session(cx, doc, NULL, 1, false);
    assert_null(s->s.choices);
    assert_int_equal(run(cx, s, first, y, &measured, no_limits), ONX_OK);
    assert_int_equal(measured, 0);
    onx_session_free(s);
}

/* ---- measuring, and the folder ---- */

static void test_run_measure__a_folder_keeps_it(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        char dir[FOLDER_ROOM];
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = parse(cx, "Relu", open), *other = parse(cx, "Sigmoid", open);
        unsigned measured, then;
        assert_true(folder_make(dir));
        run_fixed(cx, doc, 1, want);
        onx_session *s = open_session(cx, doc, dir, 1, true);
        const uint64_t budget = s->s.choices->left_ns;
        assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
        close_to(want, got);
        assert_true(s->s.choices->left_ns < budget && s->s.choices->count > 0);
        onx_session_free(s);
        const size_t files = folder_entries(dir);
        assert_int_equal(files, 2); /* the secret and the table: there are no weights that are large */
        for (unsigned threads = 1; threads <= 3; threads++) { /* nothing is measured, and the bits are the same */
            s = open_session(cx, doc, dir, threads, true);
            assert_int_equal(run(cx, s, 1, again, &then, no_limits), ONX_OK);
            assert_true(s->s.choices->left_ns == budget);
            assert_int_equal(then, measured);
            assert_memory_equal(got, again, sizeof got);
            onx_session_free(s);
        }
        s = open_session(cx, other, dir, 1, true); /* what one model is like says nothing of another one */
        const uint32_t known = s->s.choices->count;
        assert_int_equal(run(cx, s, 1, again, &then, no_limits), ONX_OK);
        assert_true(s->s.choices->left_ns < budget && s->s.choices->count > known);
        onx_session_free(s);
        s = open_session(cx, doc, dir, 1, true);
        assert_true(s->s.choices->count > known);
        assert_int_equal(folder_entries(dir), files);
        onx_session_free(s);
        assert_int_equal(onx_diag_count(cx), 0);
        onx_doc_free(doc);
        onx_doc_free(other);
        onx_ctx_free(cx);
        folder_remove(dir);
    }
}

static void find_table(const char *dir, char path[ROOM])
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    *path = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".pack"))
            snprintf(path, ROOM, "%s/%s", dir, e->d_name);
    closedir(d);
    assert_true(*path != 0);
}

static void test_run_measure__a_damaged_table_is_none(void **state)
{
    (void)state;
    char dir[FOLDER_ROOM], path[ROOM];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    unsigned measured;
    assert_true(folder_make(dir));
    run_fixed(cx, doc, 1, want);
    for (int harm = 0; harm < 7; harm++) {
        onx_session *s = open_session(cx, doc, dir, 1, true);
        assert_int_equal(s->s.choices->count, 0);
        assert_int_equal(onx_diag_total(cx, ONX_NOTE), harm > 0);
        onx_diag_clear(cx);
        assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
        close_to(want, got);
        onx_session_free(s);
        assert_int_equal(onx_diag_total(cx, ONX_ERROR), 0);
        onx_diag_clear(cx);
        find_table(dir, path);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        /* Entries come first; behind them there may be padding, whose bytes mean nothing, and then 64 bytes about the
         * entries. */
        const off_t places[] = { 0, (st.st_size - 64) / 4, st.st_size - 56, st.st_size - 1 };
        if (harm < 4) {
            FILE *f = fopen(path, "r+b");
            assert_int_equal(fseek(f, (long)places[harm], SEEK_SET), 0);
            const int byte = fgetc(f);
            assert_int_equal(fseek(f, (long)places[harm], SEEK_SET), 0);
            fputc(byte ^ 4, f);
            fclose(f);
        } else if (harm == 4) {
            assert_int_equal(truncate(path, 0), 0);
        } else {
            assert_int_equal(truncate(path, harm == 5 ? st.st_size - 64 : (off_t)1 << 40), 0);
        }
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    folder_remove(dir);
}

/* ---- what a table says ---- */

/* Makes the session's table from the choices of a plan in the fixed order. */
static uint32_t fill(onx_session *s, const onx_session *from, onxi_digest (*row)(const onxi_run_chosen *c))
{
    const onxi_run_plan *plan = (const onxi_run_plan *)from->s.main->plans.first;
    s->s.choices->left_ns = 0;
    for (uint32_t i = 0; i < plan->chosen_count; i++)
        assert_true(onxi_run_choices_put(s->s.choices, plan->chosen[i].key, row(&plan->chosen[i])));
    return plan->chosen_count;
}

static onxi_digest row_of_nobody(const onxi_run_chosen *c)
{
    (void)c;
    return (onxi_digest){ 1, 2 };
}
static onxi_digest plain_row(const onxi_run_chosen *c)
{
    return onxi_run_row_digest(c->rows, c->count - 1);
}
static onxi_digest row_before(const onxi_run_chosen *c) /* one that has declined */
{
    return c->row ? onxi_run_row_digest(c->rows, c->row - 1) : (onxi_digest){ 0 };
}
static onxi_digest row_of_other_isa(const onxi_run_chosen *c)
{
    onx_kernel k = *c->rows[c->row];
    const onx_kernel *rows[] = { &k };
    k.isa = ONX_ISA_END;
    return onxi_run_row_digest(rows, 0);
}
static onxi_digest row_itself(const onxi_run_chosen *c)
{
    return onxi_run_row_digest(c->rows, c->row);
}
static onxi_digest row_after(const onxi_run_chosen *c)
{
    return onxi_run_row_digest(c->rows, c->row + 1 < c->count ? c->row + 1 : c->row);
}

static void test_run_measure__rows_that_cannot_be_are_ignored(void **state)
{
    (void)state;
    static onxi_digest (*const rows[])(const onxi_run_chosen *) = { row_of_nobody, plain_row, row_before,
                                                                    row_of_other_isa };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    unsigned measured;
    onx_session *first = open_session(cx, doc, NULL, 1, true);
    first->s.choices->left_ns = 0;
    assert_int_equal(run(cx, first, 1, want, &measured, no_limits), ONX_OK);
    assert_int_equal(measured, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onx_session *s = open_session(cx, doc, NULL, 1, true);
        assert_true(fill(s, first, rows[i]) > 0);
        assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
        assert_int_equal(measured, 0);
        assert_memory_equal(want, got, sizeof got);
        onx_session_free(s);
    }
    onx_session *s = open_session(cx, doc, NULL, 1, true);
    fill(s, first, row_after); /* it takes the node or not, as the build has it */
    assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
    close_to(want, got);
    onx_session_free(s);
    s = open_session(cx, doc, NULL, 1, true);
    fill(s, first, row_itself);
    assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
    assert_true(measured > 0);
    assert_memory_equal(want, got, sizeof got);
    onx_session_free(s);
    onx_session_free(first);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- what measuring may not do ---- */

static bool stop_at_once(void *user)
{
    (void)user;
    return true;
}

static void test_run_measure__limits_hold(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    unsigned measured;
    run_fixed(cx, doc, 1, want);
    onx_session *s = open_session(cx, doc, NULL, 1, true);
    assert_int_equal(run(cx, s, 1, got, &measured, (onx_run_options){ .stop = stop_at_once }), ONX_E_CANCELLED);
    assert_int_equal(run(cx, s, 1, got, &measured, (onx_run_options){ .timeout_ns = 1 }), ONX_E_LIMIT);
    assert_int_equal(s->s.choices->count, 0);
    onx_diag_clear(cx);
    assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
    close_to(want, got);
    onx_session_free(s);
    /* A run that has to be back soon is so. */
    s = open_session(cx, doc, NULL, 1, true);
    const uint64_t start = onxi_run_clock_ns();
    const onx_status status =
        run(cx, s, 1, got, &measured, (onx_run_options){ .timeout_ns = UINT64_C(200000000), .stop = NULL });
    assert_true(status == ONX_OK || status == ONX_E_LIMIT);
    assert_true(onxi_run_clock_ns() - start < UINT64_C(3000000000));
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_measure__some_sessions_say_themselves(void **state)
{
    (void)state;
    static const onx_kernel none[] = { { 0 } };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    const onx_session_options all[] = { { .measure = true, .plain = true },
                                        { .measure = true, .kernels = none },
                                        { .measure = true, .precision = ONX_PRECISION_BF16 },
                                        { .measure = true, .lean_memory = true } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        onx_session *s = NULL;
        assert_int_equal(onx_session_new(cx, doc, &all[i], &s), ONX_OK);
        assert_null(s->s.choices);
        onx_session_free(s);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_measure__nan_is_kept(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    unsigned measured;
    run_fixed(cx, doc, NAN, want);
    onx_session *s = open_session(cx, doc, NULL, 1, true);
    assert_int_equal(run(cx, s, NAN, got, &measured, no_limits), ONX_OK);
    close_to(want, got);
    run_fixed(cx, doc, 1, want);
    assert_int_equal(run(cx, s, 1, got, &measured, no_limits), ONX_OK);
    close_to(want, got);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Whichever allocation fails: the run fails for it or is right, and nothing is lost. */
static void test_run_measure__memory_may_run_out(void **state)
{
    (void)state;
    scarce_memory m = { 0 };
    onx_ctx *outer = onx_ctx_new(NULL);
    onx_doc *plain = parse(outer, "Relu", true);
    unsigned right = 0, total = 0;
    run_fixed(outer, plain, 1, want);
    for (unsigned failing = 0; failing == 0 || failing <= total; failing += 1 + total / 150) {
        m = (scarce_memory){ .failing = failing };
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &m });
        onx_doc *doc = cx ? parse(outer, "Relu", true) : NULL;
        const onx_session_options options = { .verify = true, .threads = 1, .measure = true };
        onx_session *s = NULL;
        unsigned measured;
        onx_status status = cx ? onx_session_new(cx, doc, &options, &s) : ONX_E_MEMORY;
        if (status == ONX_OK) {
            s->s.choices->left_ns = UINT64_C(20000000);
            status = run(cx, s, 1, got, &measured, no_limits);
        }
        if (status == ONX_OK)
            close_to(want, got);
        else
            assert_true(status == ONX_E_MEMORY || strstr(onx_diag_get(cx, 0)->message.ptr, "out of memory"));
        right += status == ONX_OK;
        total = failing ? total : m.calls;
        onx_session_free(s);
        onx_ctx_free(cx);
        onx_doc_free(doc);
        assert_int_equal(m.in_use, 0);
    }
    assert_true(right > 1 && total > 100);
    onx_doc_free(plain);
    onx_ctx_free(outer);
}

/* ---- several at a time ---- */

typedef struct runner {
    pthread_t thread;
    onx_session *s;
    float y[COUNT];
    onx_status status;
} runner;

static void *run_it(void *user)
{
    runner *r = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned measured;
    r->status = run(cx, r->s, 1, r->y, &measured, no_limits);
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_measure__many_may_come_first(void **state)
{
    (void)state;
    static runner runners[4];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "Relu", true);
    onx_session *s = open_session(cx, doc, NULL, 1, true);
    for (size_t i = 0; i < 4; i++) {
        runners[i].s = s;
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_it, &runners[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].status, ONX_OK);
        assert_memory_equal(runners[i].y, runners[0].y, sizeof runners[i].y);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_measure__a_folder_keeps_it),
        cmocka_unit_test(test_run_measure__a_damaged_table_is_none),
        cmocka_unit_test(test_run_measure__rows_that_cannot_be_are_ignored),
        cmocka_unit_test(test_run_measure__limits_hold),
        cmocka_unit_test(test_run_measure__some_sessions_say_themselves),
        cmocka_unit_test(test_run_measure__nan_is_kept),
        cmocka_unit_test(test_run_measure__memory_may_run_out),
        cmocka_unit_test(test_run_measure__many_may_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
