/* Function bodies of operators: each is a valid function of operators that run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/op.h"

#include <onx/check.h>
#include <onx/kernel.h>
#include <onx/op.h>

#include "unit/context.h"

/* A call that gives some of what may be left out: bit by bit, first the optional inputs, then attributes. */
typedef struct given {
    uint32_t bits, inputs;
} given;

static bool may_be_left_out(const onxi_attr *a)
{
    return !a->required && !a->default_text;
}

/* What makes up a call whose inputs are all of a type. */
static uint64_t choose(const onxi_schema *row, const given *g, int dtype)
{
    const onxi_type known = { .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype };
    static const onx_node node = { 0 };
    const onxi_type *inputs[24] = { NULL };
    onxi_attr_value values[16];
    onxi_attrs attrs = { .values = values };
    onxi_call call = { .schema = row, .node = &node, .attrs = &attrs, .inputs = inputs };
    uint32_t bit = 0, attr_bit = g->inputs;
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    for (const onxi_attr *a = row->attrs; a && a->name; a++) {
        assert_true(attrs.count < 16);
        onxi_attr_value *value = &values[attrs.count++];
        assert_int_equal(onxi_attr_default(a, arena, value), ONX_OK);
        if (may_be_left_out(a) && g->bits >> attr_bit++ & 1) {
            value->given = true;
            value->type = a->type;
        }
    }
    for (; row->inputs[call.input_count].name; call.input_count++) {
        assert_true(call.input_count < 24);
        bool optional = row->inputs[call.input_count].flags & ONXI_PORT_OPTIONAL;
        inputs[call.input_count] = !optional || g->bits >> bit++ & 1 ? &known : NULL;
    }
    const uint64_t parts = onxi_body_choose(&call);
    onx_arena_free(arena);
    return parts;
}

/* Does a call that gives what the node gives, of what may be left out, have no body? */
static bool runs_by_kernel(const onxi_schema *row, const onx_node *node)
{
    given g = { 0 };
    for (uint32_t i = 0; row->inputs[i].name; i++)
        if (row->inputs[i].flags & ONXI_PORT_OPTIONAL)
            g.bits |= (uint32_t)(i < node->input_count && onx_view(node->input[i]).len > 0) << g.inputs++;
    uint32_t bit = g.inputs;
    for (const onxi_attr *a = row->attrs; a && a->name; a++)
        if (may_be_left_out(a)) {
            for (uint32_t i = 0; i < node->attribute_count; i++)
                g.bits |= (uint32_t)onx_str_is(onx_view(node->attribute[i]->name), a->name) << bit;
            bit++;
        }
    return !choose(row, &g, ONX_UNDEFINED);
}

/* `others`: calls of floats are none of it, so that it may call the operator for those, or with less given. */
static void check_body(const onxi_schema *row, uint64_t parts, bool others)
{
    onx_doc *doc;
    assert_int_equal(onxi_body_function(cx, row, parts, &doc), ONX_OK);
    onx_function *f = onx_doc_root(doc, ONX_KIND_FUNCTION);
    /* Nobody calls it by name, and it may call a later operator of that name. */
    assert_int_equal(onx_arena_keep(onx_doc_arena(doc), onx_str_of("body"), &f->name), ONX_OK);
    if (onx_check(cx, doc, NULL, NULL) != ONX_OK)
        fail_msg("%s-%d, parts %llx: %.*s", row->name, row->since, (unsigned long long)parts,
                 ONX_ARG(onx_diag_get(cx, 0)->message));
    for (uint32_t i = 0; i < f->node_count; i++) {
        const char *variant;
        onx_str type = onx_view(f->node[i]->op_type), domain = onx_view(f->node[i]->domain);
        const onxi_schema *used = onxi_schema_find(domain, type, domain.len ? row->since : row->body_opset);
        assert_non_null(used);
        if (!onx_kernel_variants(domain, type, used->since, &variant, 1) && !used->body_parts)
            fail_msg("%s-%d is made of %.*s, which does not run", row->name, row->since, ONX_ARG(type));
        if (used == row && others)
            continue;
        if (used->body_first && runs_by_kernel(used, f->node[i]))
            continue;
        if (used == row || (strcmp(used->name, row->name) == 0 && !*onxi_schema_domain(row) &&
                            onxi_operator_at(onx_str_of(""), type, row->since) ==
                                onxi_operator_at(onx_str_of(""), type, row->body_opset)))
            fail_msg("%s-%d is made of itself", row->name, row->since);
    }
    onx_diag_clear(cx);
    onx_doc_free(doc);
}

static void test_op_body__each_is_a_function_that_runs(void **state)
{
    static const int types[] = { ONX_UNDEFINED, ONX_FLOAT16 };
    (void)state;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *row = onxi_operators[i].rows; row->name; row++) {
            given g = { 0 };
            uint32_t bits = 0;
            for (const onxi_port *p = row->inputs; row->body_parts && p->name; p++)
                bits += (p->flags & ONXI_PORT_OPTIONAL) != 0;
            g.inputs = bits;
            for (const onxi_attr *a = row->attrs; row->body_parts && a && a->name; a++)
                bits += may_be_left_out(a);
            assert_true(bits < 14);
            rows += row->body_parts != NULL;
            for (g.bits = 0; row->body_parts && g.bits < 1u << bits; g.bits++)
                for (uint32_t k = 0; k < sizeof types / sizeof *types; k++) {
                    const uint64_t parts = choose(row, &g, types[k]);
                    if (parts || !row->body_first) /* else its kernel runs */
                        check_body(row, parts, row->body_first && !choose(row, &g, ONX_FLOAT));
                }
        }
    assert_true(rows > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_body__each_is_a_function_that_runs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
