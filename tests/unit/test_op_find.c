/* The rows of operators: order, duplicates, names that resolve, arities, and which version is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "op/op.h"

static const onxi_schema *find(const char *domain, const char *name, int64_t opset)
{
    return onxi_schema_find(onx_str_of(domain), onx_str_of(name), opset);
}

/* A node is of an operator when name and domain say so; the default domain has two spellings. */
static void test_op_find__a_node_is_of_one_operator(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        const char *const domains[] = { op->domain, "ai.onnx", "elsewhere", "" };
        onx_node node = { 0 };
        assert_int_equal(onx_arena_keep(arena, onx_str_of(op->name), &node.op_type), ONX_OK);
        for (size_t k = 0; k < sizeof domains / sizeof *domains; k++) {
            const bool same = k == 0 || (!*op->domain && k != 2);
            assert_int_equal(onx_arena_keep(arena, onx_str_of(domains[k]), &node.domain), ONX_OK);
            assert_int_equal(onxi_node_is(&node, (onxi_op_id)(i + 1)), same);
        }
        assert_false(onxi_node_is(&node, ONXI_ID_NONE));
        assert_int_equal(onx_arena_keep(arena, onx_str_of(op->domain), &node.domain), ONX_OK);
        for (uint32_t other = 0; other < onxi_operator_count; other++)
            if (strcmp(op->name, onxi_operators[other].name) != 0)
                assert_false(onxi_node_is(&node, (onxi_op_id)(other + 1)));
    }
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

static void test_op_find__every_operator_is_counted_sorted_and_found(void **state)
{
    (void)state;
    uint32_t versions = 0;
    assert_int_equal(ONXI_ID_Momentum, 227); /* the last one of the standard */
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        if (i) { /* behind the standard each folder of a domain begins anew */
            int domains = strcmp(op[-1].domain, op->domain);
            assert_true(domains < 0 || (domains == 0 && strcmp(op[-1].name, op->name) < 0) ||
                        (domains > 0 && i >= ONXI_ID_Momentum));
        }
        assert_ptr_equal(onxi_operator_at(onx_str_of(op->domain), onx_str_of(op->name), op->rows->since), op);
        if (i < ONXI_ID_Momentum)
            assert_ptr_equal(onxi_operator_find(onx_str_of(op->domain), onx_str_of(op->name)), op);
        assert_true(op->family < ONXI_FAMILY_COUNT);
        for (const onxi_schema *row = op->rows; row->name; row++) {
            assert_string_equal(row->name, op->name);
            assert_string_equal(onxi_schema_domain(row), op->domain);
            assert_true(row->since >= 1);
            if (row != op->rows)
                assert_true(row->since < row[-1].since);
            assert_ptr_equal(find(op->domain, op->name, row->since), row);
            versions += i < ONXI_ID_Momentum;
        }
    }
    assert_int_equal(versions, 659);
}

static void test_op_find__the_version_in_force(void **state)
{
    (void)state;
    assert_int_equal(find("", "Add", 1)->since, 1);
    assert_int_equal(find("", "Add", 12)->since, 7);
    assert_int_equal(find("ai.onnx", "Add", 13)->since, 13);
    assert_int_equal(find("", "Add", INT64_MAX)->since, 14);
    assert_null(find("", "Add", 0));
    assert_null(find("", "Add", INT64_MIN));
    assert_null(find("", "Gelu", 19));
    assert_null(find("", "add", 14));
    assert_null(find("", "", 14));
    assert_null(find("com.example", "Add", 14));
    assert_null(find("", "ZipMap", 1));
    assert_int_equal(find("ai.onnx.ml", "ZipMap", 5)->since, 1);
    assert_null(onxi_schema_find(onx_str_make("", 0), onx_str_make("Add\0", 4), 14));
    assert_int_equal(onxi_domain_newest(onx_str_of("")), 28);
    assert_int_equal(onxi_domain_newest(onx_str_of("ai.onnx")), 28);
    assert_int_equal(onxi_domain_newest(onx_str_of("ai.onnx.ml")), 5);
    assert_int_equal(onxi_domain_newest(onx_str_of("ai.onnx.preview.training")), 1);
    assert_int_equal(onxi_domain_newest(onx_str_of("com.example")), 0);
}

static uint32_t type_count(const onxi_type_set *set)
{
    char text[ONXI_TYPE_TEXT];
    uint32_t at = 0, count = 0;
    while (onxi_type_set_next(set, &at, text)) {
        assert_true(strlen(text) < ONXI_TYPE_TEXT - 1);
        count++;
    }
    return count;
}

/* Least and most values for a list of ports. */
static void arity(const onxi_port *ports, uint32_t *least, uint32_t *most)
{
    *least = *most = 0;
    for (uint32_t i = 0; ports && ports[i].name; i++) {
        const uint32_t flags = ports[i].flags;
        assert_true(*most != ONXI_MANY); /* nothing follows a variadic port */
        *most = flags & ONXI_PORT_VARIADIC ? ONXI_MANY : i + 1;
        if (flags & ONXI_PORT_VARIADIC)
            *least = flags & ONXI_PORT_ARITY_0 ? i : i + 1;
        else if (!(flags & ONXI_PORT_OPTIONAL))
            *least = i + 1;
        assert_false(flags & ONXI_PORT_DIFF && flags & ONXI_PORT_NONDIFF);
        assert_false(flags & (ONXI_PORT_HETEROGENEOUS | ONXI_PORT_ARITY_0) && !(flags & ONXI_PORT_VARIADIC));
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(ports[i].name, ports[j].name);
    }
}

static void port_types_resolve(const onxi_schema *row, const onxi_port *ports)
{
    for (; ports && ports->name; ports++) {
        if (onxi_schema_type(row, ports->type))
            continue;
        size_t len = strlen(ports->type);
        assert_true(len > 8 && memcmp(ports->type, "tensor(", 7) == 0 && ports->type[len - 1] == ')');
        assert_int_not_equal(onx_dtype_find(onx_str_make(ports->type + 7, len - 8)), ONX_UNDEFINED);
    }
}

static void test_op_find__rows_are_consistent(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        for (const onxi_schema *row = onxi_operators[i].rows; row->name; row++) {
            uint32_t least, most;
            arity(row->inputs, &least, &most);
            assert_int_equal(row->min_input, least);
            assert_int_equal(row->max_input, most);
            arity(row->outputs, &least, &most);
            assert_int_equal(row->min_output, least);
            assert_int_equal(row->max_output, most);
            port_types_resolve(row, row->inputs);
            port_types_resolve(row, row->outputs);
            for (const onxi_type_constraint *t = row->types; t && t->name; t++) {
                assert_ptr_equal(onxi_schema_type(row, t->name), t);
                assert_true(type_count(&t->set) > 0);
            }
            for (const onxi_attr *a = row->attrs; a && a->name; a++) {
                assert_ptr_equal(onxi_schema_attr(row, onx_str_of(a->name)), a);
                assert_non_null(onx_attribute_type_name(a->type));
                assert_false(a->required && a->default_text);
            }
            assert_int_equal(row->function_opsets[0] != 0, (row->flags & ONXI_OP_FUNCTION) != 0);
            assert_int_equal(row->context_function_opsets[0] != 0, (row->flags & ONXI_OP_CONTEXT_FUNCTION) != 0);
        }
    }
}

static void test_op_find__type_sets_as_text(void **state)
{
    (void)state;
    const onxi_type_set set = { .tensor = UINT32_C(1) << ONX_FLOAT,
                                .seq = UINT32_C(1) << ONX_INT2,
                                .optional_seq = UINT32_C(1) << ONX_BOOL,
                                .other = "map(int64,float)  seq(map(string,float))" };
    const char *expected[] = { "tensor(float)", "seq(tensor(int2))", "optional(seq(tensor(bool)))", "map(int64,float)",
                               "seq(map(string,float))" };
    char text[ONXI_TYPE_TEXT];
    uint32_t at = 0;
    for (uint32_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(onxi_type_set_next(&set, &at, text));
        assert_string_equal(text, expected[i]);
    }
    assert_false(onxi_type_set_next(&set, &at, text));
}

static void test_op_find__defaults(void **state)
{
    (void)state;
    onxi_attr_value v;
    assert_int_equal(onxi_attr_default(onxi_schema_attr(find("", "Gemm", 13), onx_str_of("transA")), NULL, &v), ONX_OK);
    assert_true(v.type == ONX_ATTR_INT && v.i == 0 && !v.given);
    assert_int_equal(onxi_attr_default(onxi_schema_attr(find("", "Selu", 22), onx_str_of("alpha")), NULL, &v), ONX_OK);
    assert_true(v.type == ONX_ATTR_FLOAT && v.f == 1.67326319217681884765625f);
    assert_int_equal(onxi_attr_default(onxi_schema_attr(find("", "Conv", 22), onx_str_of("auto_pad")), NULL, &v),
                     ONX_OK);
    assert_true(v.type == ONX_ATTR_STRING && onx_str_is(v.s, "NOTSET"));
    assert_int_equal(onxi_attr_default(onxi_schema_attr(find("", "Conv", 22), onx_str_of("pads")), NULL, &v), ONX_OK);
    assert_int_equal(v.type, ONX_ATTR_UNDEFINED);
    assert_null(onxi_schema_attr(find("", "Conv", 22), onx_str_of("nothing")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_find__a_node_is_of_one_operator),
        cmocka_unit_test(test_op_find__every_operator_is_counted_sorted_and_found),
        cmocka_unit_test(test_op_find__the_version_in_force),
        cmocka_unit_test(test_op_find__rows_are_consistent),
        cmocka_unit_test(test_op_find__type_sets_as_text),
        cmocka_unit_test(test_op_find__defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
