/* test_gen_layouts.c - every version of every operator that accepts the output of a convolution, directly after a
 * convolution, or after one whose first two axes are exchanged. Fast kernels leave such values in a layout of their
 * own, which all other kernels must read as row-major. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "gen/gen.h"

#include <stdio.h>

/* What gives 2x17x9x9 and 3x2x3x3: with few output channels, layouts of blocks hold more than the elements. Then the
 * same kinds with their first two axes exchanged, of channels that are whole blocks, too, which gives 32x2x5x5. */
static const struct {
    const char *node, *turned; /* `turned` may be NULL */
    int64_t dims[4], pixels[4], weights[4];
} convolutions[] = {
    { "conv = Conv <pads = [1, 1, 1, 1]> (pixels, weights)", NULL, { 2, 17, 9, 9 }, { 2, 3, 9, 9 }, { 17, 3, 3, 3 } },
    { "conv = Conv <pads = [1, 1, 1, 1], dilations = [2, 2]> (pixels, weights)",
      NULL,
      { 3, 2, 3, 3 },
      { 3, 9, 9, 9 },
      { 2, 9, 5, 5 } },
    { "seen = Conv <pads = [1, 1, 1, 1]> (pixels, weights)",
      "conv = Transpose <perm = [1, 0, 2, 3]> (seen)",
      { 17, 2, 9, 9 },
      { 2, 3, 9, 9 },
      { 17, 3, 3, 3 } },
    { "seen = Conv (pixels, weights)",
      "conv = Transpose <perm = [1, 0, 2, 3]> (seen)",
      { 32, 2, 5, 5 },
      { 2, 16, 5, 5 },
      { 32, 16, 1, 1 } },
};

static gen_operand operand(const char *name, const int64_t dims[4])
{
    gen_operand o = { .kind = GEN_TENSOR, .dtype = ONX_FLOAT, .like = ONX_FLOAT, .rank = 4, .seed = 1 };
    memcpy(o.dims, dims, 4 * sizeof *dims);
    snprintf(o.name, sizeof o.name, "%s", name);
    return o;
}

/* Is operand i of the node what the convolution gives? */
static bool takes(const gen_node *node, uint32_t i, const int64_t dims[4])
{
    const gen_operand *o = &node->operands[i];
    return o->kind == GEN_TENSOR && o->dtype == ONX_FLOAT && o->fill == GEN_SMALL && o->rank == 4 &&
           memcmp(o->dims, dims, 4 * sizeof *dims) == 0;
}

static bool add_node(onx_ctx *cx, onx_doc *doc, onx_graph *graph, const char *node)
{
    onx_doc *parsed;
    void *copy = NULL;
    onx_arena *arena = onx_doc_arena(doc);
    if (onx_text_parse(cx, ONX_KIND_NODE, onx_str_of(node), 0, &parsed) != ONX_OK)
        return false;
    const onx_status status = onx_message_copy(arena, ONX_KIND_NODE, onx_doc_root(parsed, ONX_KIND_NODE), &copy);
    onx_doc_free(parsed);
    onx_node **at = status == ONX_OK ? onx_list_insert(arena, (void **)(void *)&graph->node, &graph->node_count,
                                                       graph->node_count, sizeof *at)
                                     : NULL;
    if (at)
        *at = copy;
    return at != NULL;
}

/* The model of a convolution and that node; false when it takes no such value. */
static bool make(onx_ctx *cx, size_t which, const onxi_schema *schema, const gen_recipe *recipe, gen_node *node,
                 onx_doc **out)
{
    const int64_t *dims = convolutions[which].dims;
    const gen_operand inputs[] = { operand("pixels", convolutions[which].pixels),
                                   operand("weights", convolutions[which].weights) };
    const gen_choice choice = { .seed = 1, .vary = true, .type = { "*", ONX_FLOAT }, .dims = dims, .rank = 4 };
    bool any = false;
    *out = NULL;
    if (!gen_node_make(schema, recipe, &choice, node) || node->operand_count + 2 > GEN_OPERANDS)
        return false;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        gen_operand *o = &node->operands[i];
        snprintf(o->name, sizeof o->name, "x%u", i);
        if (takes(node, i, dims)) {
            snprintf(o->name, sizeof o->name, "conv");
            o->made = any = true;
        }
    }
    const char *domain = onxi_schema_domain(schema);
    const int64_t newest = onxi_domain_newest(onx_str_of(""));
    if (!any || gen_new(cx, *domain || schema->since < 7 ? newest : schema->since, out) != ONX_OK)
        return false;
    onx_graph *graph = onx_doc_model(*out)->graph;
    onx_node *made = NULL;
    if (gen_add_operand(*out, graph, &inputs[0]) && gen_add_operand(*out, graph, &inputs[1]) &&
        add_node(cx, *out, graph, convolutions[which].node) &&
        (!convolutions[which].turned || add_node(cx, *out, graph, convolutions[which].turned)) &&
        (!*domain || gen_import(*out, domain, schema->since)))
        made = gen_add(*out, graph, node, "y");
    if (made && gen_declare(*out, graph, node, made) == ONX_OK && graph->output_count <= GEN_OUTPUTS) {
        node->operands[node->operand_count++] = inputs[0];
        node->operands[node->operand_count++] = inputs[1];
        return true;
    }
    onx_doc_free(*out);
    *out = NULL;
    return false;
}

typedef struct tally {
    unsigned ran, wrong;
} tally;

static void try_recipe(onx_ctx *cx, size_t which, const onxi_schema *schema, const gen_recipe *recipe, tally *t)
{
    gen_node node;
    gen_verdict verdict;
    onx_doc *doc;
    const unsigned flags = schema->flags & ONXI_OP_NONDETERMINISTIC ? GEN_ANY_VALUES : 0;
    if (make(cx, which, schema, recipe, &node, &doc)) {
        gen_verify(cx, doc, node.operands, node.operand_count, flags, &verdict);
        t->ran += verdict.plain.status == ONX_OK;
        if (verdict.why[0]) {
            t->wrong++;
            print_error("%s-%d <%s> %s behind %s%s: %s\n", schema->name, schema->since, recipe->attributes,
                        recipe->operands, convolutions[which].node, convolutions[which].turned ? ", turned" : "",
                        verdict.why);
        }
        gen_verdict_free(&verdict);
        onx_doc_free(doc);
    }
    onx_diag_clear(cx);
}

static void test_gen_layouts__every_operator_takes_what_a_convolution_gives(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    tally t = { 0, 0 };
    const gen_recipe *recipe;
    for (size_t which = 0; which < sizeof convolutions / sizeof *convolutions; which++)
        for (uint32_t i = 0; i < onxi_operator_count; i++)
            for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++)
                for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                    if (!(schema->flags & ONXI_OP_DEPRECATED) && !gen_lacks_library(schema->name))
                        try_recipe(cx, which, schema, recipe, &t);
    onx_ctx_free(cx);
    print_message("%u models run\n", t.ran);
    assert_true(t.ran > 400);
    assert_int_equal(t.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_layouts__every_operator_takes_what_a_convolution_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
