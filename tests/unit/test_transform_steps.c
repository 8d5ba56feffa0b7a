/* test_transform_steps.c - each step between two versions of each operator is in the table, each row of the table is
 * for an existing step, and its text uses operators that exist in that version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "transform/transform_retarget.h"

static bool has_row(onxi_op_id id, int32_t since, bool up)
{
    for (uint32_t i = 0; i < onxi_step_count; i++)
        if (onxi_steps[i].op == id && onxi_steps[i].since == since && onxi_steps[i].up == up)
            return true;
    return false;
}

static void test_transform_steps__no_step_is_forgotten(void **state)
{
    (void)state;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        const onxi_op_id id = onxi_operator_id(op);
        if (onxi_versioned_of(onx_str_of(op->domain)) == ONXI_VERSIONED_COUNT)
            continue;
        for (const onxi_schema *row = op->rows; row->name; row++) {
            const bool first = !row[1].name;
            const bool good = first ? row->since == 1 || has_row(id, row->since, false)
                                    : has_row(id, row->since, false) && has_row(id, row->since, true);
            if (!good)
                print_error("%s %s at version %d has no row\n", op->domain, op->name, row->since);
            missing += !good;
        }
    }
    assert_int_equal(missing, 0);
}

static void test_transform_steps__every_row_is_about_a_step(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < onxi_step_count; i++) {
        const onxi_step *step = &onxi_steps[i];
        const onxi_operator *op = onxi_operator_of((onxi_op_id)step->op);
        bool found = false;
        assert_non_null(op);
        for (const onxi_schema *row = op->rows; row->name; row++)
            found |= row->since == step->since && (row[1].name || !step->up);
        if (!found)
            print_error("%s has no version %d to step over\n", op->name, step->since);
        assert_true(found);
        if (step->kind == ONXI_STEP_BODY) {
            const onxi_schema *row = op->rows;
            while (row->since > step->since)
                row++;
            assert_non_null(row->body_parts);
        }
        if (step->kind == ONXI_STEP_DROP)
            assert_non_null(step->text);
    }
}

/* Attributes of the nodes are those of their rows, but for what they inherit. */
static void check_nodes(const onxi_step *step, const onxi_operator *op, const onx_function *text)
{
    const int64_t reached = step->up ? step->since : step->since - 1;
    for (uint32_t i = 0; i < text->node_count; i++) {
        const onx_node *node = text->node[i];
        /* Constants become tensors, and what casts need is of any version. */
        const bool any = onx_str_is(onx_view(node->op_type), "Constant");
        const onxi_schema *row = onxi_schema_find(onx_view(node->domain), onx_view(node->op_type), any ? 28 : reached);
        if (!row || (row->flags & ONXI_OP_DEPRECATED && strcmp(op->name, "GroupNormalization") != 0))
            print_error("%s, step at %d: %.*s is not there\n", op->name, step->since, ONX_ARG(onx_view(node->op_type)));
        assert_non_null(row);
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (!onxi_schema_attr(row, onx_view(node->attribute[k]->name))) {
                print_error("%s, step at %d: %.*s has no attribute %.*s\n", op->name, step->since,
                            ONX_ARG(onx_view(node->op_type)), ONX_ARG(onx_view(node->attribute[k]->name)));
                assert_true(false);
            }
        assert_true(node->input_count <= row->max_input || row->max_input == ONXI_MANY);
        assert_true(node->output_count <= row->max_output || row->max_output == ONXI_MANY);
    }
}

static void test_transform_steps__texts_are_of_the_version_that_is_reached(void **state)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    char text[8192];
    (void)state;
    for (uint32_t i = 0; i < onxi_step_count; i++) {
        const onxi_step *step = &onxi_steps[i];
        const onxi_operator *op = onxi_operator_of((onxi_op_id)step->op);
        onx_doc *doc;
        if (step->kind != ONXI_STEP_TEXT || !step->text)
            continue;
        assert_true(snprintf(text, sizeof text, "<domain: \"r\", opset_import: [\"\": 1]> R %s", step->text) <
                    (int)sizeof text);
        const onx_status status = onxi_function_of_text(cx, onx_str_of(text), &doc);
        if (status != ONX_OK)
            print_error("%s, step at %d: %s\n", op->name, step->since, step->text);
        assert_int_equal(status, ONX_OK);
        check_nodes(step, op, onx_doc_root(doc, ONX_KIND_FUNCTION));
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transform_steps__no_step_is_forgotten),
        cmocka_unit_test(test_transform_steps__every_row_is_about_a_step),
        cmocka_unit_test(test_transform_steps__texts_are_of_the_version_that_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
