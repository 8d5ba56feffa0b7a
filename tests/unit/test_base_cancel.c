/* Cancelling work from another thread: whenever that happens, the work fails as cancelled or completes, and leaks
 * nothing. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include <onx/onx.h>

#include "unit/folder.h"

/* An allocator that counts what is held, and cancels when it is asked the `when`th time (0: never). */
typedef struct canceller {
    onx_cancel *cancel;
    uint64_t asked, when;
    size_t held;
} canceller;

static void *count(void *user, void *ptr, size_t old_size, size_t new_size)
{
    canceller *c = user;
    if (new_size && ++c->asked == c->when)
        onx_cancel_now(c->cancel);
    c->held += new_size;
    c->held -= old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static onx_str model_text(char *buf, size_t size)
{
    size_t n =
        (size_t)snprintf(buf, size,
                         "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                         "g (float[N,16] x) => (float[N,16] y) <float[16] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {\n"
                         "  a0 = Relu(x)\n");
    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(buf + n, size - n, "  b%d = Add(a%d, w)\n  a%d = Softmax(b%d)\n", i, i, i + 1, i);
    n += (size_t)snprintf(buf + n, size - n, "  y = Identity(a300)\n}\n");
    assert_true(n < size);
    return onx_str_make(buf, n);
}

/* ---- kinds of work ---- */

static char dir[FOLDER_ROOM], path[200];

static onx_status load(onx_ctx *cx, onx_doc **doc)
{
    return onx_load(cx, ONX_KIND_MODEL, path, &(onx_load_options){ .threads = 3 }, doc);
}

static onx_status read_text(onx_ctx *cx, onx_doc **doc)
{
    static char text[40000];
    return onx_text_parse(cx, ONX_KIND_MODEL, model_text(text, sizeof text), 0, doc);
}

static onx_status check(onx_ctx *cx, onx_doc **doc)
{
    ONX_TRY(load(cx, doc));
    return onx_check(cx, *doc, &(onx_check_options){ .flags = ONX_CHECK_FULL }, NULL);
}

static onx_status simplify(onx_ctx *cx, onx_doc **doc)
{
    ONX_TRY(load(cx, doc));
    return onx_simplify(cx, *doc, NULL);
}

static onx_status retarget(onx_ctx *cx, onx_doc **doc)
{
    ONX_TRY(load(cx, doc));
    const onx_opset_version to = { onx_str_of(""), 22 };
    return onx_retarget(cx, *doc, &(onx_retarget_options){ .opset = &to, .opset_count = 1 });
}

static onx_status save(onx_ctx *cx, onx_doc **doc)
{
    char out[220];
    ONX_TRY(load(cx, doc));
    snprintf(out, sizeof out, "%s.textproto", path);
    return onx_save(cx, *doc, out, NULL);
}

static onx_status plan(onx_ctx *cx, onx_doc **doc)
{
    onx_session *session = NULL;
    ONX_TRY(load(cx, doc));
    const onx_status status = onx_session_new(cx, *doc, NULL, &session);
    onx_session_free(session);
    return status;
}

static const struct {
    const char *name;
    onx_status (*work)(onx_ctx *cx, onx_doc **doc);
} works[] = { { "load", load },         { "parse", read_text }, { "check", check }, { "simplify", simplify },
              { "retarget", retarget }, { "save", save },       { "plan", plan } };

/* ---- tests ---- */

static bool says_cancelled(const onx_ctx *cx)
{
    bool said = false;
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        said = said || onx_diag_get(cx, i)->status == ONX_E_CANCELLED;
    return said;
}

static onx_status attempt(onx_status (*work)(onx_ctx *, onx_doc **), uint64_t when, uint64_t *asked)
{
    canceller c = { .when = 0 };
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ count, &c });
    onx_doc *doc = NULL;
    assert_non_null(cx);
    assert_int_equal(onx_cancel_new(cx, &c.cancel), ONX_OK);
    onx_ctx_set_cancel(cx, c.cancel);
    c.asked = 0;
    c.when = when;
    onx_status status = work(cx, &doc);
    *asked = c.asked;
    if (status != ONX_OK && !says_cancelled(cx))
        fail_msg("at %llu: %s, but no diagnostic says so", (unsigned long long)when, onx_status_text(status));
    onx_doc_free(doc);
    doc = NULL;
    /* Afterwards the context is as good as new. */
    onx_diag_clear(cx);
    onx_cancel_reset(c.cancel);
    c.when = 0;
    if (when % 16 == 1)
        assert_int_equal(work(cx, &doc), ONX_OK);
    onx_doc_free(doc);
    onx_cancel_free(c.cancel);
    onx_ctx_free(cx);
    assert_int_equal(c.held, 0);
    return status;
}

static void test_base_cancel__at_any_moment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        uint64_t all, asked, cancelled = 0;
        assert_int_equal(attempt(works[i].work, 0, &all), ONX_OK);
        for (uint64_t when = 1; when <= all; when += 1 + all / 200) {
            const onx_status status = attempt(works[i].work, when, &asked);
            if (status != ONX_OK && status != ONX_E_CANCELLED)
                fail_msg("%s, cancelled at allocation %llu: %s", works[i].name, (unsigned long long)when,
                         onx_status_text(status));
            cancelled += status == ONX_E_CANCELLED;
        }
        if (!cancelled)
            fail_msg("%s is never cancelled", works[i].name);
    }
}

/* What begins when it is cancelled already does nothing, and says so once. */
static void test_base_cancel__before(void **state)
{
    onx_cancel *cancel;
    onx_ctx *cx = onx_ctx_new(NULL);
    (void)state;
    assert_int_equal(onx_cancel_new(cx, &cancel), ONX_OK);
    onx_ctx_set_cancel(cx, cancel);
    onx_cancel_now(cancel);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        onx_doc *doc = NULL;
        assert_int_equal(works[i].work(cx, &doc), ONX_E_CANCELLED);
        assert_null(doc);
        assert_int_equal(onx_diag_count(cx), 1);
        assert_true(onx_str_is(onx_diag_get(cx, 0)->message, "the work was cancelled"));
        onx_diag_clear(cx);
    }
    assert_int_equal(onx_save_bytes(cx, path, onx_str_of("nothing")), ONX_E_CANCELLED);
    onx_ctx_set_cancel(cx, NULL);
    onx_doc *doc;
    assert_int_equal(load(cx, &doc), ONX_OK); /* so the file is what it was */
    onx_doc_free(doc);
    onx_cancel_free(cancel);
    onx_ctx_free(cx);
}

/* A pipe whose writer goes on for ever. */
static void *cancel_later(void *cancel)
{
    usleep(20000);
    onx_cancel_now(cancel);
    return NULL;
}

static void *write_for_ever(void *end)
{
    static const char zeros[4096];
    while (write(*(int *)end, zeros, sizeof zeros) > 0)
        ;
    return NULL;
}

static void test_base_cancel__a_stream_without_end(void **state)
{
    onx_cancel *cancel;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    pthread_t threads[2];
    int ends[2];
    char name[40];
    (void)state;
    assert_return_code(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    if (access(name, R_OK) != 0)
        skip();
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = UINT64_C(1) << 40;
    onx_ctx_set_limits(cx, limits);
    assert_int_equal(onx_cancel_new(cx, &cancel), ONX_OK);
    onx_ctx_set_cancel(cx, cancel);
    assert_int_equal(pthread_create(&threads[0], NULL, write_for_ever, &ends[1]), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, cancel_later, cancel), 0);
    assert_int_equal(onx_load(cx, ONX_KIND_MODEL, name, &(onx_load_options){ .flags = ONX_READ_STREAM }, &doc),
                     ONX_E_CANCELLED);
    close(ends[0]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close(ends[1]);
    onx_cancel_free(cancel);
    onx_ctx_free(cx);
}

/* One kernel that would go on for an hour, in a run and in the creation of a session that folds it. */
static void test_base_cancel__a_kernel(void **state)
{
    static const char *const texts[] = {
        "<ir_version: 10, opset_import: [\"\" : 19]> g () => (float[1,1,2001,2001] y)"
        "{ r = RandomUniform <shape = [1, 1, 4000, 4000]> () y = AveragePool <kernel_shape = [2000, 2000]> (r) }",
        "<ir_version: 10, opset_import: [\"\" : 19]> g () => (float[1,1,1] y) <int64[3] d = {1, 1, 400000}> "
        "{ x = ConstantOfShape (d) a = AveragePool <kernel_shape = [200000]> (x) y = GlobalMaxPool (a) }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_cancel *cancel;
        onx_doc *doc;
        onx_session *session = NULL;
        onx_value *y = NULL;
        pthread_t thread;
        assert_int_equal(onx_cancel_new(cx, &cancel), ONX_OK);
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(texts[i]), 0, &doc), ONX_OK);
        onx_ctx_set_cancel(cx, cancel);
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, cancel), 0);
        onx_status status = onx_session_new(cx, doc, &(onx_session_options){ .threads = 1, .plain = true }, &session);
        if (status == ONX_OK)
            status = onx_session_run(session, cx, NULL, &y);
        assert_int_equal(status, ONX_E_CANCELLED);
        pthread_join(thread, NULL);
        assert_true(says_cancelled(cx));
        onx_value_free(y);
        onx_session_free(session);
        onx_doc_free(doc);
        onx_cancel_free(cancel);
        onx_ctx_free(cx);
    }
}

static int set_up(void **state)
{
    static char text[40000];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (!folder_make(dir))
        return -1;
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, model_text(text, sizeof text), 0, &doc), ONX_OK);
    assert_int_equal(onx_save(cx, doc, path, NULL), ONX_OK);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_cancel__at_any_moment),
        cmocka_unit_test(test_base_cancel__before),
        cmocka_unit_test(test_base_cancel__a_stream_without_end),
        cmocka_unit_test(test_base_cancel__a_kernel),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
