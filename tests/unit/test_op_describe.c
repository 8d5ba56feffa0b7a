/* Descriptions of operators as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/op.h>

static const onx_op *find(const char *name, int64_t opset)
{
    return onx_op_find(onx_str_of(""), onx_str_of(name), opset);
}

static void changes(const char *name, int64_t opset, const char *expected)
{
    char text[1000];
    const size_t len = onx_op_change(find(name, opset), text, sizeof text);
    assert_int_equal(len, strlen(text));
    assert_string_equal(text, expected);
}

static void test_op_describe__signatures(void **state)
{
    (void)state;
    char text[300];
    onx_op_signature(find("Dropout", 22), text, sizeof text);
    assert_string_equal(text, "output, mask? = Dropout <seed?> (data, ratio?, training_mode?)");
    onx_op_signature(find("Concat", 13), text, sizeof text);
    assert_string_equal(text, "concat_result = Concat <axis> (inputs...)");
    onx_op_signature(find("Loop", 13), text, sizeof text);
    assert_string_equal(text, "v_final_and_scan_outputs... = Loop <body> (M?, cond?, v_initial...?)");
    onx_op_signature(find("Elu", 22), text, sizeof text);
    assert_string_equal(text, "Y = Elu <alpha = 1> (X)");
}

static void test_op_describe__text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    char text[8];
    assert_int_equal(onx_op_signature(find("Elu", 22), text, sizeof text), strlen("Y = Elu <alpha = 1> (X)"));
    assert_string_equal(text, "Y = Elu");
    assert_int_equal(onx_op_signature(find("Elu", 22), NULL, 0), strlen("Y = Elu <alpha = 1> (X)"));
    text[0] = 'x';
    onx_op_signature(find("Elu", 22), text, 1);
    assert_int_equal(text[0], 0);
}

static void test_op_describe__changes_between_versions(void **state)
{
    (void)state;
    changes("Gelu", 20, "new");
    changes("Add", 14, "T takes tensor(uint8, int8, uint16, int16)");
    changes("Unsqueeze", 13, "new required input axes; attribute axes is gone; T takes tensor(bfloat16)");
    changes("Relu", 6, "attribute consumed_inputs is gone");
    changes("Scatter", 11, "deprecated");
    changes("Elu", 6, "attribute consumed_inputs is gone; now defined by a function");
    changes("Softmax", 11, "other meaning or wording, same interface");
    changes("Softmax", 13, "attribute axis defaults to -1; T takes tensor(bfloat16); now defined by a function");
}

static void test_op_describe__every_version_has_words(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < onx_op_count(); i++) {
        const char *summary = onx_op_summary(onx_op_get(i));
        const size_t len = strlen(summary);
        assert_true(len > 10 && len < 200);
        assert_true(summary[0] >= 'A' && summary[0] <= 'Z' && summary[len - 1] == '.');
        for (const onx_op *op = onx_op_get(i); op; op = onx_op_older(op)) {
            assert_true(onx_op_change(op, NULL, 0) > 0);
            assert_true(onx_op_signature(op, NULL, 0) > strlen(onx_op_name(op)));
        }
    }
    assert_null(onx_op_get(onx_op_count()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_describe__signatures),
        cmocka_unit_test(test_op_describe__text_that_does_not_fit_is_cut),
        cmocka_unit_test(test_op_describe__changes_between_versions),
        cmocka_unit_test(test_op_describe__every_version_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
