/* test_gen_models.c - every version of every operator as a model from the recipes of tests/gen: the model is valid, and
 * runs give the types and shapes that inference gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/infer.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>

/* Versions that no valid model is made of, with the reason. */
static const struct {
    const char *name;
    int32_t since;
    const char *why;
} without[] = {
    { "Gradient", 1, "asks about other nodes of its graph; test_gen_grad has it" },
};

static bool is_without(const onxi_schema *schema)
{
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(without[i].name, schema->name) == 0 && without[i].since == schema->since)
            return true;
    return false;
}

/* Has every output of the node a type, so that models with operators for accelerators can be looked at? Programs for a
 * device do not say what they give. */
static bool infers_all(onx_ctx *cx, onx_doc *doc, const gen_node *node)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    onx_infer *infer = NULL;
    bool all = onx_infer_new(cx, doc, NULL, &infer) == ONX_OK;
    for (uint32_t i = 0; all && i < graph->node[0]->output_count; i++)
        all = onx_infer_type(infer, graph, onx_view(graph->node[0]->output[i])) ||
              strcmp(node->schema->name, "EPContext") == 0;
    onx_infer_free(infer);
    return all;
}

/* Is the model of a recipe valid, and does everything agree on it? Says why not. */
static bool try_recipe(onx_ctx *cx, const onxi_schema *schema, const gen_recipe *recipe, char *why, size_t size)
{
    gen_node node;
    onx_doc *doc;
    gen_verdict verdict;
    const unsigned random = schema->flags & ONXI_OP_NONDETERMINISTIC ? GEN_ANY_VALUES : 0;
    const gen_choice choice = { .seed = 1 };
    const onx_check_options full = { .flags = ONX_CHECK_FULL | ONX_CHECK_OPEN_SHAPES };
    snprintf(why, size, "the recipe does not suit");
    if (!gen_node_make(schema, recipe, &choice, &node))
        return false;
    if (gen_model(cx, &node, NULL, NULL, &doc) != ONX_OK) {
        if (onx_diag_count(cx))
            onx_diag_format(onx_diag_get(cx, 0), why, size);
        onx_diag_clear(cx);
        return false;
    }
    bool ok = onx_check(cx, doc, &full, NULL) == ONX_OK;
    for (size_t i = 0; !ok && i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->severity == ONX_ERROR)
            onx_diag_format(onx_diag_get(cx, i), why, size);
    onx_diag_clear(cx);
    if (ok && !gen_runs(schema)) {
        ok = infers_all(cx, doc, &node);
        snprintf(why, size, "an output has no inferred type");
    } else if (ok) {
        gen_verify(cx, doc, node.operands, node.operand_count, GEN_TWO_THREADS | random, &verdict);
        ok = verdict.plain.status == ONX_OK && !verdict.why[0];
        snprintf(why, size, "%s", verdict.why[0] ? verdict.why : verdict.plain.why);
        gen_verdict_free(&verdict);
    }
    onx_doc_free(doc);
    return ok;
}

static void test_gen_models__every_version_has_a_valid_model(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    unsigned rows = 0, missing = 0;
    char why[400];
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            rows += i < ONXI_ID_Momentum; /* of the standard */
            const gen_recipe *recipe = gen_recipe_to_check(schema, 0);
            if (schema->flags & ONXI_OP_DEPRECATED || (is_without(schema) && !recipe))
                continue;
            if (gen_lacks_library(schema->name)) {
                print_message("%s-%d is not tested for want of a library\n", schema->name, schema->since);
                continue;
            }
            if (!recipe) {
                missing++;
                print_error("%s-%d has no recipe\n", schema->name, schema->since);
            }
            for (uint32_t n = 0; (recipe = gen_recipe_to_check(schema, n)) != NULL; n++)
                if (try_recipe(cx, schema, recipe, why, sizeof why) == is_without(schema)) {
                    missing++;
                    print_error("%s-%d <%s> %s: %s\n", schema->name, schema->since, recipe->attributes,
                                recipe->operands, why);
                }
        }
    onx_ctx_free(cx);
    assert_int_equal(rows, 659);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_models__every_version_has_a_valid_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
