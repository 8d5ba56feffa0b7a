/* Every fact of every row, compared with the lists of operators next to the conformance data, if they exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op/op.h"

#ifdef ONX_WITH_JANSSON
#include <jansson.h>

/* All operators of the version before the newest, and what the newest adds. */
enum { LISTS = 2 };
static const char *const names[LISTS] = { "operators.jsonl", "operators_28.jsonl" };
static const unsigned rows[LISTS] = { 642, 17 };
static FILE *facts[LISTS];

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void compare_ports(const onxi_port *ports, const json_t *facts_of_ports)
{
    size_t i;
    json_t *fact;
    json_array_foreach(facts_of_ports, i, fact)
    {
        assert_non_null(ports);
        assert_non_null(ports[i].name);
        assert_string_equal(ports[i].name, text_of(fact, "name"));
        assert_string_equal(ports[i].type, text_of(fact, "type"));
        uint32_t flags = 0;
        if (strcmp(text_of(fact, "option"), "optional") == 0)
            flags |= ONXI_PORT_OPTIONAL;
        if (strcmp(text_of(fact, "option"), "variadic") == 0) {
            flags |= ONXI_PORT_VARIADIC;
            if (!json_is_true(json_object_get(fact, "homogeneous")))
                flags |= ONXI_PORT_HETEROGENEOUS;
            if (json_integer_value(json_object_get(fact, "min_arity")) == 0)
                flags |= ONXI_PORT_ARITY_0;
        }
        if (strcmp(text_of(fact, "differentiation"), "differentiable") == 0)
            flags |= ONXI_PORT_DIFF;
        if (strcmp(text_of(fact, "differentiation"), "nondifferentiable") == 0)
            flags |= ONXI_PORT_NONDIFF;
        assert_int_equal(ports[i].flags, flags);
    }
    assert_true(!ports || !ports[i].name);
}

static void compare_default(const onxi_attr *attr, const json_t *value)
{
    onxi_attr_value v;
    if (!value || json_is_null(value)) {
        assert_null(attr->default_text);
        return;
    }
    assert_non_null(attr->default_text);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(onxi_attr_default(attr, arena, &v), ONX_OK);
    assert_int_equal(v.type, attr->type);
    switch (attr->type) {
    case ONX_ATTR_INT:
        assert_int_equal(v.i, json_integer_value(value));
        break;
    case ONX_ATTR_FLOAT:
        assert_true(v.f == (float)json_number_value(value));
        break;
    case ONX_ATTR_STRING:
        assert_true(onx_str_is(v.s, json_string_value(value)));
        break;
    default:
        assert_int_equal(v.count, json_array_size(value));
        for (uint32_t i = 0; i < v.count; i++) {
            const json_t *element = json_array_get(value, i);
            if (v.type == ONX_ATTR_INTS)
                assert_int_equal(((const int64_t *)v.list)[i], json_integer_value(element));
            else if (v.type == ONX_ATTR_STRINGS)
                assert_true(onx_str_is(onx_view(((const onx_bytes *)v.list)[i]), json_string_value(element)));
            else
                fail_msg("%s is a list of another type", attr->name);
        }
    }
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

static void compare_attributes(const onxi_attr *attrs, const json_t *facts_of_attributes)
{
    size_t i;
    json_t *fact;
    json_array_foreach(facts_of_attributes, i, fact)
    {
        assert_non_null(attrs);
        assert_non_null(attrs[i].name);
        assert_string_equal(attrs[i].name, text_of(fact, "name"));
        assert_string_equal(onx_attribute_type_name(attrs[i].type), text_of(fact, "type"));
        assert_int_equal(attrs[i].required, json_is_true(json_object_get(fact, "required")));
        compare_default(&attrs[i], json_object_get(fact, "default"));
    }
    assert_true(!attrs || !attrs[i].name);
}

static bool same_but_spaces(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

/* A list may name element types that this build does not have. */
static bool has_known_elements(const char *type)
{
    const char *at = strrchr(type, '(');
    if (!at || strstr(type, "map("))
        return true;
    return onx_dtype_find((onx_str){ at + 1, strcspn(at + 1, ")") }) != ONX_UNDEFINED;
}

static void compare_types(const onxi_schema *row, const json_t *facts_of_types)
{
    const char *name;
    json_t *list, *fact;
    size_t i, count = 0;
    json_object_foreach((json_t *)(uintptr_t)facts_of_types, name, list)
    {
        const onxi_type_constraint *constraint = onxi_schema_type(row, name);
        assert_non_null(constraint);
        char text[ONXI_TYPE_TEXT];
        uint32_t at = 0, types = 0, known = 0;
        json_array_foreach(list, i, fact) known += has_known_elements(json_string_value(fact));
        while (onxi_type_set_next(&constraint->set, &at, text)) {
            bool found = false;
            json_array_foreach(list, i, fact) found = found || same_but_spaces(text, json_string_value(fact));
            if (!found)
                fail_msg("%s-%d %s: %s is not in the facts", row->name, row->since, name, text);
            types++;
        }
        assert_int_equal(types, known);
        assert_string_equal(row->types[count].name, name);
        count++;
    }
    assert_true(count ? !row->types[count].name : !row->types);
}

static void compare_opsets(const char *text, const json_t *list)
{
    size_t i;
    json_t *fact;
    json_array_foreach(list, i, fact)
    {
        char *end;
        assert_int_equal(strtol(text, &end, 10), json_integer_value(fact));
        text = end;
    }
    assert_true(!*text);
}

static uint16_t most(const json_t *fact, const char *key)
{
    const json_t *value = json_object_get(fact, key);
    return json_is_null(value) ? ONXI_MANY : (uint16_t)json_integer_value(value);
}

static void compare_flags(const onxi_schema *row, const json_t *fact)
{
    const char *determinism = text_of(fact, "node_determinism");
    uint32_t flags = 0;
    flags |= strcmp(text_of(fact, "status"), "experimental") == 0 ? ONXI_OP_EXPERIMENTAL : 0;
    flags |= json_is_true(json_object_get(fact, "deprecated")) ? ONXI_OP_DEPRECATED : 0;
    flags |= json_is_true(json_object_get(fact, "has_function_body")) ? ONXI_OP_FUNCTION : 0;
    flags |= json_is_true(json_object_get(fact, "function_body_is_context_dependent")) ? ONXI_OP_CONTEXT_FUNCTION : 0;
    flags |= json_is_true(json_object_get(fact, "infers_types_and_shapes")) ? ONXI_OP_INFERS : 0;
    flags |= json_is_true(json_object_get(fact, "propagates_data")) ? ONXI_OP_PROPAGATES : 0;
    flags |= strcmp(determinism, "nondeterministic") == 0 ? ONXI_OP_NONDETERMINISTIC : 0;
    flags |= strcmp(determinism, "unknown") == 0 ? ONXI_OP_DETERMINISM_UNKNOWN : 0;
    assert_int_equal(row->flags, flags);
}

static void compare_list(FILE *list, unsigned rows_of_list)
{
    static char line[1 << 20];
    unsigned count = 0;
    while (fgets(line, sizeof line, list)) {
        json_t *fact = json_loads(line, 0, NULL);
        assert_non_null(fact);
        int64_t since = json_integer_value(json_object_get(fact, "since_version"));
        const onxi_schema *row =
            onxi_schema_find(onx_str_of(text_of(fact, "domain")), onx_str_of(text_of(fact, "name")), since);
        assert_non_null(row);
        assert_int_equal(row->since, since);
        compare_flags(row, fact);
        assert_int_equal(row->min_input, json_integer_value(json_object_get(fact, "min_input")));
        assert_int_equal(row->max_input, most(fact, "max_input"));
        assert_int_equal(row->min_output, json_integer_value(json_object_get(fact, "min_output")));
        assert_int_equal(row->max_output, most(fact, "max_output"));
        compare_ports(row->inputs, json_object_get(fact, "inputs"));
        compare_ports(row->outputs, json_object_get(fact, "outputs"));
        compare_attributes(row->attrs, json_object_get(fact, "attributes"));
        compare_types(row, json_object_get(fact, "type_constraints"));
        compare_opsets(row->function_opsets, json_object_get(fact, "function_opset_versions"));
        compare_opsets(row->context_function_opsets,
                       json_object_get(fact, "context_dependent_function_opset_versions"));
        json_decref(fact);
        count++;
    }
    assert_int_equal(count, rows_of_list);
}

static void test_op_facts__every_row(void **state)
{
    (void)state;
    for (int i = 0; i < LISTS; i++)
        if (facts[i])
            compare_list(facts[i], rows[i]);
}

int main(void)
{
    const char *folder = getenv("ONX_CONFORMANCE_DIR");
    char path[4096];
    for (int i = 0; folder && i < LISTS; i++) {
        snprintf(path, sizeof path, "%s/../spec/%s", folder, names[i]);
        facts[i] = fopen(path, "r");
    }
    if (!facts[0]) {
        printf("skipped: no list of operators beside ONX_CONFORMANCE_DIR\n");
        return 77;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_op_facts__every_row) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < LISTS; i++)
        if (facts[i])
            fclose(facts[i]);
    return failed;
}

#else
int main(void)
{
    printf("skipped: built without jansson\n");
    return 77;
}
#endif
