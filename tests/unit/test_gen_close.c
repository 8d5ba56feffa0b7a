/* test_gen_close.c - the comparison of the generated tests: a step function after a value with a rounding error may
 * differ, but a wrong step is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "gen/gen.h"

static const char text[] = "<ir_version: 13, opset_import: [\"\": 28]>\n"
                           "g (float[3] x) => (float[3] y, float[3] z) { y = Exp(x) z = Floor(y) }";

/* Two runs of the model at x = 0, where y and z are 1; in the other one they are what is given. */
static bool is_close(float y, float z)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    gen_operand x = { .kind = GEN_TENSOR,
                      .dtype = ONX_FLOAT,
                      .like = ONX_FLOAT,
                      .fill = GEN_LISTED,
                      .listed_count = 1,
                      .rank = 1,
                      .dims = { 3 },
                      .name = "x" };
    gen_run a, b;
    char why[300];
    assert_non_null(cx);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    gen_run_model(cx, doc, &x, 1, true, 1, &a);
    gen_run_model(cx, doc, &x, 1, true, 1, &b);
    assert_int_equal(a.status, ONX_OK);
    assert_int_equal(b.status, ONX_OK);
    assert_true(((float *)a.outputs[1]->data)[0] == 1);
    ((float *)b.outputs[0]->data)[1] = y;
    ((float *)b.outputs[1]->data)[1] = z;
    gen_origin origin = { .cx = cx, .doc = doc, .operands = &x, .count = 1 };
    const bool close = gen_run_close(&a, &b, &origin, why, sizeof why);
    gen_origin_free(&origin);
    gen_run_free(&a);
    gen_run_free(&b);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return close;
}

static void test_gen_close__a_step_may_follow_a_rounding(void **state)
{
    (void)state;
    assert_true(is_close(1, 1));
    assert_true(is_close(0.9999999F, 0));
    assert_true(is_close(1.0000001F, 1));
}

static void test_gen_close__a_wrong_step_is_found(void **state)
{
    (void)state;
    assert_false(is_close(1, 0));
    assert_false(is_close(0.9999999F, 2));
    assert_false(is_close(1.0000001F, 0));
}

static void test_gen_close__more_than_a_rounding_is_found(void **state)
{
    (void)state;
    assert_false(is_close(0.5F, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_close__a_step_may_follow_a_rounding),
        cmocka_unit_test(test_gen_close__a_wrong_step_is_found),
        cmocka_unit_test(test_gen_close__more_than_a_rounding_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
