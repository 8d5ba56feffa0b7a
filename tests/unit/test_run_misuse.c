/* test_run_misuse.c - misuse of values and sessions: gives an error with a diagnostic, and does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>
#include <onx/transform.h>

static onx_value *sequence(onx_ctx *cx)
{
    onx_value *v;
    assert_int_equal(onx_value_new(cx, &v), ONX_OK);
    assert_int_equal(onx_value_reset_list(v, ONX_VALUE_SEQUENCE, ONX_UNDEFINED), ONX_OK);
    return v;
}

static onx_value *numbers(onx_ctx *cx, int64_t count)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, &count, &v), ONX_OK);
    for (int64_t i = 0; i < count; i++)
        ((float *)v->data)[i] = (float)i;
    return v;
}

/* The call is refused, and the last diagnostic says so. */
#define REFUSED(cx, call)                                                                                              \
    do {                                                                                                               \
        onx_diag_clear(cx);                                                                                            \
        assert_int_equal(call, ONX_E_MISUSE);                                                                          \
        assert_int_equal(onx_diag_count(cx), 1);                                                                       \
        assert_int_equal(onx_diag_get(cx, 0)->status, ONX_E_MISUSE);                                                   \
    } while (0)

static void test_run_misuse__values(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *v = sequence(cx), *x = numbers(cx, 3), *none = NULL;
    onx_doc *doc;
    int64_t dims[] = { 2 };
    REFUSED(cx, onx_value_new(cx, NULL));
    REFUSED(cx, onx_value_new_tensor(cx, ONX_FLOAT, 1, NULL, &none));
    REFUSED(cx, onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, NULL));
    assert_int_equal(onx_value_new(NULL, &none), ONX_E_MISUSE);
    assert_int_equal(onx_value_reset(NULL, ONX_FLOAT, 1, dims), ONX_E_MISUSE);
    REFUSED(cx, onx_value_reset(x, ONX_FLOAT, 1, NULL));
    assert_int_equal(onx_value_reset_list(NULL, ONX_VALUE_SEQUENCE, ONX_FLOAT), ONX_E_MISUSE);
    REFUSED(cx, onx_value_reset_list(v, (onx_value_kind)77, ONX_FLOAT));
    REFUSED(cx, onx_value_reset_list(v, ONX_VALUE_TENSOR, ONX_FLOAT));
    REFUSED(cx, onx_value_reset_list(v, ONX_VALUE_SEQUENCE, (onx_dtype)99));
    REFUSED(cx, onx_value_insert(v, 0, NULL));
    REFUSED(cx, onx_value_insert(v, 1, x));
    REFUSED(cx, onx_value_insert(v, UINT64_MAX, x));
    REFUSED(cx, onx_value_insert(x, 0, v));
    assert_int_equal(onx_value_insert(NULL, 0, x), ONX_E_MISUSE);
    REFUSED(cx, onx_value_assign(v, NULL));
    assert_int_equal(onx_value_assign(NULL, v), ONX_E_MISUSE);
    REFUSED(cx, onx_value_set_text(x, 0, onx_str_of("a")));
    REFUSED(cx, onx_value_set_text(x, 0, onx_str_make(NULL, 5)));
    REFUSED(cx, onx_value_to_doc(cx, NULL, onx_str_of("x"), &doc));
    REFUSED(cx, onx_value_to_doc(cx, x, onx_str_of("x"), NULL));
    REFUSED(cx, onx_value_from_message(cx, NULL, ONX_KIND_TENSOR, x, &none));
    assert_null(none);
    assert_false(onx_value_close(NULL, x, 0, 0, NULL));
    assert_false(onx_value_same_type(x, v, NULL));
    assert_true(onx_value_close(x, x, 0, 0, NULL));
    onx_value_free(v);
    onx_value_free(x);
    onx_ctx_free(cx);
}

static void test_run_misuse__cycles(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *a = sequence(cx), *b = sequence(cx), *c = sequence(cx), *x = numbers(cx, 3);
    REFUSED(cx, onx_value_insert(a, 0, a));
    assert_int_equal(onx_value_insert(a, 0, x), ONX_OK);
    assert_int_equal(onx_value_insert(b, 0, a), ONX_OK);
    assert_int_equal(onx_value_insert(c, 0, b), ONX_OK);
    REFUSED(cx, onx_value_insert(a, 1, b));
    REFUSED(cx, onx_value_insert(a, 0, c));
    assert_int_equal(onx_value_insert(c, 1, a), ONX_OK); /* twice is no cycle */
    assert_int_equal(onx_value_assign(c, c->items[0]->items[0]), ONX_OK);
    assert_int_equal(c->count, 1);
    assert_ptr_equal(c->items[0], x);
    assert_int_equal(onx_value_assign(c, c->items[0]), ONX_OK); /* nobody but c holds what it is made from */
    assert_int_equal(c->kind, ONX_VALUE_TENSOR);
    assert_true(((float *)c->data)[2] == 2.0f);
    onx_value_free(a);
    onx_value_free(b);
    onx_value_free(c);
    onx_value_free(x);
    onx_ctx_free(cx);
}

static void test_run_misuse__assigned_from_its_only_item(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *v = sequence(cx), *x = numbers(cx, 3);
    assert_int_equal(onx_value_insert(v, 0, x), ONX_OK);
    onx_value_free(x);
    assert_int_equal(onx_value_assign(v, v->items[0]), ONX_OK);
    assert_int_equal(v->kind, ONX_VALUE_TENSOR);
    assert_int_equal(v->count, 3);
    assert_true(((float *)v->data)[2] == 2.0f);
    onx_value_free(v);
    onx_ctx_free(cx);
}

static void test_run_misuse__sessions(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_session *s;
    const char *text = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                       "g (float[N] x) => (float[N] y, float[N] x) { y = Neg (x) }\n";
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    REFUSED(cx, onx_session_new(cx, NULL, NULL, &s));
    REFUSED(cx, onx_session_new(cx, doc, NULL, NULL));
    assert_int_equal(onx_session_new(NULL, doc, NULL, &s), ONX_E_MISUSE);
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_int_equal(onx_session_input_count(NULL), 0);
    assert_int_equal(onx_session_output_count(NULL), 0);
    for (uint32_t at = 1; at; at *= 2) {
        assert_int_equal(onx_session_input(s, at).name.len, 0);
        assert_int_equal(onx_session_output(s, at + 1).name.len, 0);
    }
    assert_int_equal(onx_session_input(NULL, 0).name.len, 0);
    assert_int_equal(onx_session_output(NULL, 0).name.len, 0);
    onx_value *x = numbers(cx, 3), *empty, *out[2] = { NULL };
    const onx_value *in[] = { x };
    assert_int_equal(onx_value_new(cx, &empty), ONX_OK);
    REFUSED(cx, onx_session_run(NULL, cx, in, out));
    REFUSED(cx, onx_session_run(s, cx, NULL, out));
    assert_true(onx_str_is(onx_diag_get(cx, 0)->message, "onx_session_run_with: inputs is missing or wrong"));
    REFUSED(cx, onx_simplify(cx, doc, &(onx_simplify_options){ .keep_count = 1 }));
    assert_true(onx_str_is(onx_diag_get(cx, 0)->message, "onx_simplify: options.keep is missing or wrong"));
    REFUSED(cx, onx_session_run(s, cx, in, NULL));
    REFUSED(cx, onx_session_run(s, cx, (const onx_value *const[]){ NULL }, out));
    REFUSED(cx, onx_session_run(s, cx, (const onx_value *const[]){ empty }, out));
    assert_int_equal(onx_session_run(s, NULL, in, out), ONX_E_MISUSE);
    REFUSED(cx, onx_session_run(s, cx, in, (onx_value *[]){ x, NULL }));
    REFUSED(cx, onx_session_run(s, cx, in, (onx_value *[]){ empty, empty }));
    assert_int_equal(onx_session_run(s, cx, in, out), ONX_OK);
    assert_true(((float *)out[0]->data)[2] == -2.0f && ((float *)out[1]->data)[2] == 2.0f);
    assert_int_equal(onx_session_run(s, cx, in, out), ONX_OK); /* the marks of what was refused are gone */
    onx_value_free(x);
    onx_value_free(empty);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Values whose fields were changed by hand are neither copied nor run. */
static void test_run_misuse__fields_changed_by_hand(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_session *s;
    const char *text =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[N] x, seq(float[M]) q) => (float[N] y, int64 n) { y = Neg (x) n = SequenceLength (q) }\n";
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    onx_value *x = numbers(cx, 3), *q = sequence(cx), *item = numbers(cx, 2), *to, *out[2] = { NULL };
    const onx_value *in[] = { x, q };
    assert_int_equal(onx_value_new(cx, &to), ONX_OK);
    assert_int_equal(onx_value_insert(q, 0, item), ONX_OK);
    assert_int_equal(onx_session_run(s, cx, in, out), ONX_OK);
    for (int way = 0; way < 6; way++) {
        onx_value *v = way & 1 ? item : x, before = *v;
        const int64_t dim = v->dims[0];
        if (way / 2 == 0)
            v->dims[0] = 1000;
        else if (way / 2 == 1)
            v->size--;
        else
            v->data = NULL;
        REFUSED(cx, onx_session_run(s, cx, in, out));
        REFUSED(cx, onx_value_assign(to, v));
        *v = before;
        v->dims[0] = dim;
    }
    assert_int_equal(onx_session_run(s, cx, in, out), ONX_OK);
    onx_value_free(x);
    onx_value_free(q);
    onx_value_free(item);
    onx_value_free(to);
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_misuse__values),
        cmocka_unit_test(test_run_misuse__cycles),
        cmocka_unit_test(test_run_misuse__assigned_from_its_only_item),
        cmocka_unit_test(test_run_misuse__sessions),
        cmocka_unit_test(test_run_misuse__fields_changed_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
