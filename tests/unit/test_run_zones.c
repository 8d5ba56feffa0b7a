/* test_run_zones.c - kernels that write after the end of an output or of their workspace: the run fails and names them.
 * Under AddressSanitizer, only the operands and the workspace of a step can be touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include "base/base_platform.h"
#include "unit/context.h"

#if ONXI_PLATFORM_ASAN
#include <sanitizer/asan_interface.h>
#define UNSEEN __attribute__((no_sanitize("address")))
#else
#define UNSEEN
#endif

/* ---- kernels: y = x, and a byte at `at` beyond what is named ---- */

typedef struct beyond {
    int64_t output, workspace, thread; /* bytes after the end; -1: none */
    int64_t leaves;                    /* elements at the end that are not written */
} beyond;

static onx_status copy_types(onx_prepare *p)
{
    return onx_prepare_output(p, 0, ONX_FLOAT, p->inputs[0]->rank, p->inputs[0]->dims);
}

static onx_status copy_prepare(onx_prepare *p)
{
    beyond *b = onx_arena_alloc(p->arena, sizeof *b);
    if (!b)
        return ONX_E_MEMORY;
    b->output = onx_prepare_int(p, "output");
    b->workspace = onx_prepare_int(p, "workspace");
    b->thread = onx_prepare_int(p, "thread");
    b->leaves = onx_prepare_is_set(p, "leaves") ? onx_prepare_int(p, "leaves") : 0;
    p->params = b;
    p->workspace = 40;
    p->thread_workspace = 24;
    return ONX_OK;
}

UNSEEN static void spoil(void *at, int64_t by)
{
    if (by >= 0)
        ((volatile char *)at)[by] = 1;
}

static uint32_t looked;
static void look(const onx_work *work)
{
#if ONXI_PLATFORM_ASAN
    const char *x = work->inputs[0]->data, *y = work->outputs[0]->data, *space = work->workspace,
               *own = work->thread_workspace;
    assert_null(__asan_region_is_poisoned((void *)(uintptr_t)y, work->outputs[0]->size));
    assert_null(__asan_region_is_poisoned((void *)(uintptr_t)space, 40));
    assert_null(__asan_region_is_poisoned((void *)(uintptr_t)own, 24));
    assert_true(__asan_address_is_poisoned(y + work->outputs[0]->size));
    assert_true(__asan_address_is_poisoned(x + work->inputs[0]->size));
    assert_true(__asan_address_is_poisoned(space + 40));
    assert_true(__asan_address_is_poisoned(own + 24));
#else
    (void)work;
#endif
    looked++;
}

static onx_status copy_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const beyond *b = work->params;
    memcpy(work->outputs[0]->data, work->inputs[0]->data, work->outputs[0]->size - (size_t)b->leaves * sizeof(float));
    memset(work->workspace, 1, 40);
    memset(work->thread_workspace, 2, 24);
    look(work);
    spoil((char *)work->outputs[0]->data + work->outputs[0]->size, b->output);
    spoil((char *)work->workspace + 40, b->workspace);
    spoil((char *)work->thread_workspace + 24, b->thread);
    return ONX_OK;
}

static const onx_kernel kernels[] = { { .op = "Copy",
                                        .domain = "own",
                                        .since = 1,
                                        .dtypes = ONX_DTYPE_BIT(ONX_FLOAT),
                                        .prepare = copy_prepare,
                                        .run = copy_run,
                                        .types = copy_types },
                                      { 0 } };

/* Runs y = x through four copies, the second of which has the attributes; returns the last message. `out` (NULL: not
 * wanted) gets the 15 elements of y. */
static onx_status run_copies(const char *attributes, const onx_session_options *options, char *why, size_t size,
                             float *out)
{
    char text[1024];
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    onx_value *x = NULL, *y = NULL;
    const int64_t dims[] = { 5, 3 };
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 1]> g (float[5, 3] x) => (float[5, 3] y) {\n"
             "[a] u = own.Copy <output = -1, workspace = -1, thread = -1> (x)\n"
             "[b] v = own.Copy <%s> (u)\n[c] w = own.Copy <output = -1, workspace = -1, thread = -1> (v)\n"
             "[d] y = own.Copy <output = -1, workspace = -1, thread = -1> (w) }",
             attributes);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, options, &session), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    memset(x->data, 0, x->size);
    onx_status status = onx_session_run(session, cx, (const onx_value *const[]){ x }, &y);
    if (status == ONX_OK) /* and with the memory of the run before */
        status = onx_session_run(session, cx, (const onx_value *const[]){ x }, &y);
    if (status == ONX_OK && out)
        memcpy(out, y->data, y->size);
    *why = 0;
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, onx_diag_count(cx) - 1), why, size);
    onx_diag_clear(cx);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
    return status;
}

static const onx_session_options checked = { .verify = true, .threads = 1, .kernels = kernels };
static const onx_session_options unchecked = { .threads = 1, .kernels = kernels };

static void test_run_zones__writes_beyond_the_end_are_found(void **state)
{
    static const struct {
        const char *attributes, *where;
    } cases[] = {
        { "output = 0, workspace = -1, thread = -1", "after the end of output 0" },
        { "output = 4, workspace = -1, thread = -1", "after the end of output 0" },
        { "output = 67, workspace = -1, thread = -1", "after the end of output 0" },
        { "output = -1, workspace = 0, thread = -1", "after the end of its workspace" },
        { "output = -1, workspace = 80, thread = -1", "after the end of its workspace" },
        { "output = -1, workspace = -1, thread = 0", "after the end of the workspace of thread 0" },
        { "output = -1, workspace = -1, thread = 100", "after the end of the workspace of thread 0" },
    };
    char why[400];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_copies(cases[i].attributes, &checked, why, sizeof why, NULL), ONX_E_INTERNAL);
        if (!strstr(why, cases[i].where) || !strstr(why, "Copy \"b\""))
            fail_msg("%s: %s", cases[i].attributes, why);
    }
}

static void test_run_zones__steps_see_their_own_memory(void **state)
{
    char why[400];
    (void)state;
    looked = 0;
    assert_int_equal(run_copies("output = -1, workspace = -1, thread = -1", &checked, why, sizeof why, NULL), ONX_OK);
    assert_int_equal(run_copies("output = -1, workspace = -1, thread = -1", &unchecked, why, sizeof why, NULL), ONX_OK);
    assert_int_equal(looked, 16);
}

/* They have other elements in sessions with other options. */
static void test_run_zones__elements_left_out_differ(void **state)
{
    static const char attributes[] = "output = -1, workspace = -1, thread = -1, leaves = 4";
    const onx_session_options plain = { .verify = true, .threads = 1, .kernels = kernels, .plain = true };
    float a[15], b[15], c[15];
    char why[400];
    (void)state;
    assert_int_equal(run_copies(attributes, &checked, why, sizeof why, a), ONX_OK);
    assert_int_equal(run_copies(attributes, &checked, why, sizeof why, b), ONX_OK);
    assert_int_equal(run_copies(attributes, &plain, why, sizeof why, c), ONX_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(a, c, 11 * sizeof *a);
    for (int i = 11; i < 15; i++)
        assert_memory_not_equal(&a[i], &c[i], sizeof *a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_zones__writes_beyond_the_end_are_found),
        cmocka_unit_test(test_run_zones__steps_see_their_own_memory),
        cmocka_unit_test(test_run_zones__elements_left_out_differ),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
