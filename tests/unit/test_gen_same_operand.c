/* test_gen_same_operand.c - one value for several operands: every version of every operator gives what it gives for
 * equal values in different places, also where the output may take the place of the operand; and each operand alone may
 * be in memory that the output takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/gen.h"

#include <stdio.h>
#include <string.h>

static bool is_alike(const gen_operand *a, const gen_operand *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && !a->constant && !b->constant &&
           (!a->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* Gives operands from `first` on the elements of that one, where they have its type and shape; returns how many. */
static uint32_t share(gen_node *node, uint32_t first, bool *shares)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < node->operand_count; i++) {
        gen_operand *o = &node->operands[i];
        if ((shares[i] = o->kind == GEN_TENSOR && is_alike(&node->operands[first], o))) {
            const gen_operand like = node->operands[first];
            char name[sizeof o->name];
            memcpy(name, o->name, sizeof name);
            *o = like;
            memcpy(o->name, name, sizeof name);
            count++;
        }
    }
    return count;
}

typedef struct sharing {
    const gen_node *node;
    const bool *shares;
    uint32_t first;
} sharing;

static void rename_inputs(void *user, onx_arena *arena, onx_node *made)
{
    const sharing *s = user;
    (void)arena;
    for (uint32_t i = 0; i < s->node->operand_count && i < made->input_count; i++)
        if (s->shares[i])
            made->input[i] = made->input[s->first];
}

/* Lets the node read what another node has written, as its output may overwrite that and no graph input: Max(x, x). */
static void feed_from_buffer(onx_doc *doc, gen_operand *operand)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    onx_arena *arena = onx_doc_arena(doc);
    char inputs[2 * sizeof operand->name + 16], from[sizeof operand->name];
    snprintf(from, sizeof from, "g%.20s", operand->name);
    for (uint32_t i = 0; i < g->input_count; i++)
        if (onx_str_is(onx_view(g->input[i]->name), operand->name)) {
            snprintf(inputs, sizeof inputs, "%s %s", from, from);
            assert_int_equal(onx_arena_keep(arena, onx_str_of(from), &g->input[i]->name), ONX_OK);
            assert_non_null(onx_graph_add_node(arena, g, "Max", inputs, operand->name));
            assert_int_equal(onx_doc_sort(doc, NULL), ONX_OK);
            memcpy(operand->name, from, sizeof from);
            return;
        }
}

typedef struct tally {
    onx_ctx *cx;
    unsigned models, found;
} tally;

/* With one value for the operands, and with one each. */
static void compare(tally *t, const gen_node *node, uint32_t first, const bool *shares, bool plain, bool buffered)
{
    sharing s = { node, shares, first };
    gen_run runs[2] = { { .status = ONX_OK } };
    bool made = true;
    for (int same = 0; same < 2; same++) {
        gen_operand operands[GEN_OPERANDS];
        onx_doc *doc;
        memcpy(operands, node->operands, sizeof operands);
        if (gen_model(t->cx, node, same ? rename_inputs : NULL, &s, &doc) != ONX_OK) {
            onx_diag_clear(t->cx);
            made = false;
            continue;
        }
        for (uint32_t i = first; buffered && i < node->operand_count; i++)
            if (shares[i] && (i == first || !same))
                feed_from_buffer(doc, &operands[i]);
        gen_run_model(t->cx, doc, operands, node->operand_count, plain, 1, &runs[same]);
        onx_doc_free(doc);
    }
    char why[400];
    if (made && !gen_run_agree(&runs[0], &runs[1], false, why, sizeof why)) {
        t->found++;
        print_error("%s-%d (%.80s), operands like %u, %s%s: %s\n", node->schema->name, node->schema->since,
                    node->recipe->attributes, first, plain ? "plain" : "fast", buffered ? ", from a buffer" : "", why);
    }
    t->models += made && runs[0].status == ONX_OK;
    gen_run_free(&runs[0]);
    gen_run_free(&runs[1]);
}

static void test_node(tally *t, const gen_node *node)
{
    bool done[GEN_OPERANDS] = { false };
    for (uint32_t first = 0; first < node->operand_count; first++) {
        gen_node changed = *node;
        bool shares[GEN_OPERANDS] = { false };
        if (done[first] || share(&changed, first, shares) < 2)
            continue;
        for (uint32_t i = first; i < node->operand_count; i++)
            done[i] |= shares[i];
        for (int way = 0; way < 4; way++)
            compare(t, &changed, first, shares, way & 1, way & 2);
    }
}

typedef void (*test)(tally *t, const gen_node *node);

static void for_all_nodes(test one, uint32_t least)
{
    static const onx_dtype types[] = { ONX_UNDEFINED, ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_INT64, ONX_UINT8 };
    tally t = { .cx = onx_ctx_new(NULL) };
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            if (schema->flags & (ONXI_OP_DEPRECATED | ONXI_OP_NONDETERMINISTIC))
                continue;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
                    gen_choice choice = { .seed = 7 + k };
                    gen_node node;
                    if (types[k])
                        choice.type = (gen_type_choice){ "*", types[k] };
                    if (gen_node_make(schema, recipe, &choice, &node))
                        one(&t, &node);
                    onx_diag_clear(t.cx);
                }
        }
    onx_ctx_free(t.cx);
    print_message("%u models\n", t.models);
    assert_int_equal(t.found, 0);
    assert_in_range(t.models, least, UINT32_MAX);
}

static void test_gen_same_operand__one_value_or_several(void **state)
{
    (void)state;
    for_all_nodes(test_node, 1000);
}

/* With one operand in memory that the output may take, the others in memory of the caller, as where all are in memory
 * of the caller. */
static void test_each_operand(tally *t, const gen_node *node)
{
    for (uint32_t which = 0; which < 2 * node->operand_count; which++) {
        const uint32_t fed = which / 2;
        gen_run runs[2] = { { .status = ONX_OK } };
        bool made = node->operands[fed].kind == GEN_TENSOR && !node->operands[fed].constant &&
                    node->operands[fed].dtype != ONX_STRING && node->operands[fed].dtype != ONX_BOOL;
        for (int way = 0; way < 2 && made; way++) {
            gen_operand operands[GEN_OPERANDS];
            onx_doc *doc;
            memcpy(operands, node->operands, sizeof operands);
            made = gen_model(t->cx, node, NULL, NULL, &doc) == ONX_OK;
            if (!made)
                break;
            if (way)
                feed_from_buffer(doc, &operands[fed]);
            gen_run_model(t->cx, doc, operands, node->operand_count, which & 1, 1, &runs[way]);
            onx_doc_free(doc);
        }
        onx_diag_clear(t->cx);
        char why[400];
        /* Max has no kernel for some types. */
        if (made && runs[0].status == ONX_OK && runs[1].status == ONX_OK &&
            !gen_run_agree(&runs[0], &runs[1], false, why, sizeof why)) {
            t->found++;
            print_error("%s-%d (%.80s), operand %u from a buffer, %s: %s\n", node->schema->name, node->schema->since,
                        node->recipe->attributes, fed, which & 1 ? "plain" : "fast", why);
        }
        t->models += made && runs[0].status == ONX_OK && runs[1].status == ONX_OK;
        gen_run_free(&runs[0]);
        gen_run_free(&runs[1]);
    }
}

static void test_gen_same_operand__each_operand_from_a_buffer(void **state)
{
    (void)state;
    for_all_nodes(test_each_operand, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_same_operand__one_value_or_several),
        cmocka_unit_test(test_gen_same_operand__each_operand_from_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
