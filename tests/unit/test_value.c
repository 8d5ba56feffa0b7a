/* Values whose memory belongs to another owner, a plan or the caller, are never resized. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include "value/value.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/context.h"

static void refuses_changes(onx_value *v)
{
    const int64_t same[] = { 2, 2 }, other[] = { 2, 3 };
    const onx_value before = *v;
    onx_value *item;
    assert_int_equal(onx_value_new(cx, &item), ONX_OK);
    assert_int_equal(onxi_value_size(v, ONX_FLOAT, 2, same), ONX_OK);
    assert_int_equal(onx_value_reset(v, ONX_FLOAT, 2, same), ONX_OK);
    assert_int_equal(onxi_value_size(v, ONX_FLOAT, 2, other), ONX_E_MISUSE);
    assert_int_equal(onxi_value_size(v, ONX_FLOAT, 1, same), ONX_E_MISUSE);
    assert_int_equal(onxi_value_size(v, ONX_INT32, 2, same), ONX_E_MISUSE);
    assert_int_equal(onx_value_reset(v, ONX_FLOAT, 2, other), ONX_E_MISUSE);
    assert_int_equal(onx_value_reset_list(v, ONX_VALUE_SEQUENCE, ONX_FLOAT), ONX_E_MISUSE);
    assert_int_equal(onxi_value_lengthen(v, 3), ONX_E_MISUSE);
    assert_int_equal(onx_value_insert(v, 0, item), ONX_E_MISUSE);
    assert_int_equal(onx_value_set_text(v, 0, onx_str_of("a")), ONX_E_MISUSE);
    assert_int_equal(onx_value_assign(v, item), ONX_E_MISUSE);
    assert_memory_equal(&before, v, sizeof before);
    onx_value_free(item);
}

static void test_value__of_others_is_fixed(void **state)
{
    (void)state;
    int64_t dims[] = { 2, 2 };
    float data[4] = { 1, 2, 3, 4 };
    onx_value v = {
        .kind = ONX_VALUE_TENSOR, .dtype = ONX_FLOAT, .rank = 2, .dims = dims, .count = 4, .data = data, .size = 16
    };
    refuses_changes(&v); /* no context, as in a plan */
    v.cx = cx;
    v.flags = ONXI_VALUE_BORROWED;
    refuses_changes(&v);
    assert_true(data[0] == 1 && data[3] == 4);
}

/* ---- a kernel that gives another shape than the rule of its operator ---- */

static onx_status run_wider(onx_work *work, uint64_t first, uint64_t last)
{
    const int64_t dims[] = { 1000 };
    (void)first, (void)last;
    return onx_value_reset(work->outputs[0], ONX_FLOAT, 1, dims);
}

static const onx_kernel wider[] = {
    { .op = "Relu",
      .since = 1,
      .preference = 100,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .variant = "wider",
      .run = run_wider },
    { .op = NULL },
};

static void test_value__of_a_plan_is_fixed(void **state)
{
    (void)state;
    onx_doc *doc;
    onx_session *session;
    const onx_session_options options = { .threads = 1, .kernels = wider };
    const int64_t dims[] = { 2 };
    onx_value *x, *y = NULL;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL,
                                    onx_str_of("<ir_version: 8, opset_import: [\"\": 14]>\n"
                                               "g (float[2] x) => (float[2] z) { y = Relu(x) z = Neg(y) }"),
                                    0, &doc),
                     ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &x), ONX_OK);
    const onx_value *inputs[] = { x };
    assert_int_equal(onx_session_run(session, cx, inputs, &y), ONX_E_INVALID);
    assert_int_equal(onx_diag_total(cx, ONX_ERROR), 1);
    const onx_diag *diag = onx_diag_get(cx, 0); /* its texts do not end with a zero byte */
    assert_true(onx_str_is(diag->message, "Relu gives another shape or element type than its rule says"));
    assert_true(onx_str_is(diag->where.path, "graph.node[0] (Relu)"));
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* ---- strings ---- */

typedef struct tally {
    uint64_t calls, bytes;
} tally;

static void *count_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    tally *t = user;
    (void)old_size;
    t->calls++;
    t->bytes += new_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Storing strings one by one takes memory, and so time, in proportion to them; what is overwritten does not pile up. */
static void test_value__strings_are_stored_one_by_one(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    const int64_t dims[] = { COUNT };
    tally t = { 0 };
    onx_ctx *own = onx_ctx_new(&(onx_allocator){ count_resize, &t });
    onx_value *v;
    char text[32];
    assert_int_equal(onx_value_new_tensor(own, ONX_STRING, 1, dims, &v), ONX_OK);
    const uint64_t before = t.bytes;
    for (int round = 0; round < 3; round++)
        for (uint64_t i = 0; i < COUNT; i++) {
            const int len = snprintf(text, sizeof text, "%d.%u", round, (unsigned)i);
            assert_int_equal(onx_value_set_text(v, i, onx_str_make(text, (size_t)len)), ONX_OK);
        }
    assert_true(t.calls < 100);
    assert_true(t.bytes - before < 100 * COUNT);
    const onx_str *strings = v->data;
    for (uint64_t i = 0; i < COUNT; i += 777) {
        snprintf(text, sizeof text, "2.%u", (unsigned)i);
        assert_true(onx_str_is(strings[i], text));
    }
    /* the value's own bytes, which may move meanwhile */
    for (uint64_t i = 1; i < COUNT; i++)
        assert_int_equal(onx_value_set_text(v, i, strings[i - 1]), ONX_OK);
    assert_true(onx_str_is(strings[COUNT - 1], "2.0"));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(onx_value_set_text(v, 0, onx_str_of("x")), ONX_OK);
    assert_int_equal(onx_value_set_text(v, 0, onx_str_make(NULL, 0)), ONX_OK);
    assert_true(v->text_room < 30 * COUNT && strings[0].len == 0);
    assert_int_equal(onx_value_reset(v, ONX_STRING, 1, dims), ONX_OK);
    assert_true(((const onx_str *)v->data)[1].len == 0 && v->text_spare == v->text_room);
    assert_int_equal(onx_value_set_text(v, 5, onx_str_of("again")), ONX_OK);
    assert_true(onx_str_is(((const onx_str *)v->data)[5], "again"));
    onx_value_free(v);
    onx_ctx_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_value__of_others_is_fixed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_value__of_a_plan_is_fixed, set_up, tear_down),
        cmocka_unit_test(test_value__strings_are_stored_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
