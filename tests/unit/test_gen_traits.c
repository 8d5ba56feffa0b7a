/* test_gen_traits.c - traits of operators in the rows of operators.def (ONXI_TRAIT_*), compared with the results of
 * every version for generated nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/gen.h"

#include <stdio.h>

typedef struct shape {
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
} shape;

/* The shape that the tensors of a node broadcast to. */
static shape broadcast(const gen_node *node)
{
    shape s = { .rank = 0 };
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i].kind == GEN_TENSOR && node->operands[i].rank > s.rank)
            s.rank = node->operands[i].rank;
    for (uint32_t k = 0; k < s.rank; k++)
        s.dims[k] = 1;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const gen_operand *o = &node->operands[i];
        for (uint32_t k = 0; o->kind == GEN_TENSOR && k < o->rank; k++)
            if (o->dims[k] != 1)
                s.dims[s.rank - o->rank + k] = o->dims[k];
    }
    return s;
}

/* A size of the tensor, or several, or all of them multiplied. */
static bool tells_sizes(const gen_operand *x, const onx_value *y)
{
    int64_t all = 1;
    for (uint32_t k = 0; k < x->rank; k++)
        all *= x->dims[k];
    bool tells = y->dtype == ONX_INT64;
    for (uint64_t i = 0; i < y->count && tells; i++) {
        const int64_t size = ((const int64_t *)y->data)[i];
        tells = y->rank == 0 && size == all;
        for (uint32_t k = 0; y->rank == 1 && k < x->rank && !tells; k++)
            tells = size == x->dims[k];
    }
    return tells;
}

/* The first trait that the result contradicts, or NULL. */
static const char *contradiction(const gen_node *node, unsigned traits, const onx_value *y)
{
    const gen_operand *x = &node->operands[0];
    const shape all = broadcast(node);
    if (x->kind != GEN_TENSOR || y->kind != ONX_VALUE_TENSOR)
        return NULL;                       /* Identity hands on what is no tensor */
    bool placed = node->schema->since < 7; /* operands of lower rank were not aligned at the end then */
    for (uint32_t i = 1; placed && i < node->operand_count; i++)
        placed = node->operands[i].rank < x->rank;
    bool same = all.rank == y->rank;
    for (uint32_t k = 0; same && k < all.rank; k++)
        same = all.dims[k] == y->dims[k];
    if (traits & ONXI_TRAIT_ELEMENTWISE && !placed && !same)
        return "ELEMENTWISE";
    same = x->rank == y->rank;
    if (traits & ONXI_TRAIT_KEEPS_AXES && !same)
        return "KEEPS_AXES";
    if (traits & ONXI_TRAIT_REDUCTION && !strstr(node->attributes, "keepdims")) { /* 1 by default */
        for (uint32_t k = 0; same && k < y->rank; k++)
            same = y->dims[k] == 1 || y->dims[k] == x->dims[k];
        if (!same)
            return "REDUCTION";
    }
    if (traits & (ONXI_TRAIT_CHANNELS | ONXI_TRAIT_WINDOW) && x->rank < 2)
        return "CHANNELS";
    if (traits & ONXI_TRAIT_WINDOW && y->rank != x->rank)
        return "WINDOW";
    if (traits & ONXI_TRAIT_SHAPE && !tells_sizes(x, y))
        return "SHAPE";
    return NULL;
}

static void test_gen_traits__every_version_has_the_traits_of_its_row(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned seen = 0, wrong = 0, compared[16] = { 0 };
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        for (const onxi_schema *row = op->rows; row->name && op->traits; row++)
            for (uint32_t n = 0; gen_recipe_for(row, n); n++)
                for (uint64_t seed = 1; seed < 5; seed++) {
                    const gen_choice choice = { .seed = seed, .vary = seed > 1 };
                    gen_node node;
                    gen_run run;
                    onx_doc *doc;
                    if (!gen_node_make(row, gen_recipe_for(row, n), &choice, &node) ||
                        gen_model(cx, &node, NULL, NULL, &doc) != ONX_OK)
                        continue;
                    gen_run_model(cx, doc, node.operands, node.operand_count, true, 1, &run);
                    const char *trait =
                        run.status == ONX_OK && run.count ? contradiction(&node, op->traits, run.outputs[0]) : NULL;
                    if (trait) {
                        wrong++;
                        print_error("%s-%d <%s> %s: not %s\n", row->name, row->since, node.recipe->attributes,
                                    node.recipe->operands, trait);
                    }
                    for (unsigned t = 0; run.status == ONX_OK && t < 16; t++)
                        compared[t] += op->traits >> t & 1;
                    seen += run.status == ONX_OK;
                    gen_run_free(&run);
                    onx_doc_free(doc);
                    onx_diag_clear(cx);
                }
    }
    onx_ctx_free(cx);
    assert_int_equal(wrong, 0);
    assert_true(seen > 800);
    for (unsigned t = 0; t < 5; t++)
        assert_true(compared[t] > 20);
    assert_true(compared[7] > 20); /* SHAPE */
}

/* An elementwise operator of one tensor keeps axes, too; so do operators of two, where one alone sizes the output. */
static void test_gen_traits__elementwise_operators_of_one_input_keep_axes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const onxi_operator *op = &onxi_operators[i];
        if (op->traits & ONXI_TRAIT_ELEMENTWISE && op->rows->max_input == 1)
            assert_true(op->traits & ONXI_TRAIT_KEEPS_AXES);
        if (op->traits)
            assert_ptr_equal(onxi_operator_of(onxi_operator_id(op)), op);
    }
    assert_null(onxi_operator_of(ONXI_ID_NONE));
    assert_null(onxi_operator_of(ONXI_ID_END));
    assert_false(onxi_operator_is(ONXI_ID_NONE, UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_traits__every_version_has_the_traits_of_its_row),
        cmocka_unit_test(test_gen_traits__elementwise_operators_of_one_input_keep_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
