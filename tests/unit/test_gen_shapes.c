/* test_gen_shapes.c - inference is complete: if all operands are constants, every version of every operator has outputs
 * of known sizes; if only their shapes are known, so have all outputs whose sizes do not depend on values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>

/* Sizes that only the work itself tells, or elements that a type does not hold. */
static const struct {
    const char *op;
    bool constants; /* also where all operands are constants */
    const char *why;
} open_ones[] = {
    { "Compress", false, "the condition says how many elements are kept" },
    { "NonZero", false, "the elements say how many there are" },
    { "Unique", true, "elements are sorted and compared" },
    { "NonMaxSuppression", true, "boxes are compared" },
    { "StringNormalizer", true, "words are compared without case" },
    { "StringSplit", true, "text is split" },
    { "ImageDecoder", true, "a picture is decoded" },
    { "SequenceEmpty", true, "no element has a shape" },
    { "ConcatFromSequence", true, "the type of a sequence does not say its length" },
    { "CastMap", true, "the type of a map does not say its length" },
#define R(operators, since, operands, attributes, outputs)
#define OPEN(op, constants, why) { op, constants, why },
#include "recipe_domains.inc"
#undef OPEN
#undef R
};

enum { SEEDS = 6 };

static bool is_sized(const onx_type *type)
{
    if (!type)
        return false;
    if (ONX_HAS(type, type, sequence_type))
        return is_sized(type->sequence_type->elem_type);
    if (ONX_HAS(type, type, optional_type))
        return is_sized(type->optional_type->elem_type);
    if (ONX_HAS(type, type, map_type))
        return true;
    if (!ONX_HAS(type, type, tensor_type) || !type->tensor_type->elem_type || !type->tensor_type->shape)
        return false;
    for (uint32_t i = 0; i < type->tensor_type->shape->dim_count; i++)
        if (!ONX_HAS(dimension, type->tensor_type->shape->dim[i], dim_value))
            return false;
    return true;
}

static bool is_open(const onxi_schema *schema, bool constants)
{
    char text[128];
    const char *name = gen_operator_name(schema, text);
    for (size_t i = 0; i < sizeof open_ones / sizeof *open_ones; i++)
        if (strcmp(open_ones[i].op, name) == 0)
            return !constants || open_ones[i].constants;
    return false;
}

/* Outputs that are not sized. */
static unsigned look(onx_ctx *cx, const gen_node *node, const char *how, unsigned *outputs)
{
    onx_doc *doc;
    onx_infer *infer = NULL;
    unsigned bad = 0;
    assert_int_equal(gen_model(cx, node, NULL, NULL, &doc), ONX_OK);
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    if (onx_infer_summarize(infer).failed) { /* drawn sizes need not fit each other */
        onx_infer_free(infer);
        onx_doc_free(doc);
        onx_diag_clear(cx);
        return 0;
    }
    const onx_graph *graph = onx_doc_model(doc)->graph;
    const onx_node *made = graph->node[0];
    for (uint32_t i = 0; i < made->output_count; i++) {
        const onx_str name = onx_view(made->output[i]);
        ++*outputs;
        if (is_sized(onx_infer_type(infer, graph, name)))
            continue;
        print_error("%s-%d (%.80s), %s: output %u is not sized\n", node->schema->name, node->schema->since,
                    node->recipe->attributes, how, i);
        bad++;
    }
    onx_infer_free(infer);
    onx_doc_free(doc);
    onx_diag_clear(cx);
    return bad;
}

static void test_gen_shapes__what_is_told_is_used(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned bad = 0, outputs = 0;
    const char *only = getenv("ONX_GEN_ONLY"); /* an operator, for debugging */
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            if (schema->flags & ONXI_OP_DEPRECATED || (only && strcmp(only, schema->name) != 0))
                continue;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (uint64_t seed = 0; seed < SEEDS; seed++) {
                    const gen_choice choice = { .seed = seed, .vary = seed > 0 };
                    gen_node node;
                    assert_true(gen_node_make(schema, recipe, &choice, &node));
                    if (!is_open(schema, false))
                        bad += look(cx, &node, "inputs", &outputs);
                    for (uint32_t k = 0; k < node.operand_count; k++)
                        node.operands[k].constant = node.operands[k].kind == GEN_TENSOR;
                    if (!is_open(schema, true))
                        bad += look(cx, &node, "constants", &outputs);
                }
        }
    onx_ctx_free(cx);
    print_message("%u outputs\n", outputs);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_shapes__what_is_told_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
