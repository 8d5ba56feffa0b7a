/* test_gen_misfits.c - operands of wrong ranks and sizes, which only a run sees: for each operator beyond the standard,
 * every operand in turn gets another rank or another size, in a model that declares no shapes. The run fails, or every
 * operand has been read as what it is: with sanitizers, no kernel reads or writes outside of one.
 *
 * ONX_GEN_ALL=1 draws sizes several times, for every operator; ONX_GEN_ONLY=name tests one operator, and lists the
 * misfits that are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>

#include "gen/gen.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISFITS = 3 * GEN_RANK + 3, SEEDS = 5 };

/* The n-th misfit: one axis fewer, one more at the end or the front, or a size that is smaller, larger, or 0. False:
 * the operand has none of that kind. */
static bool misfit(gen_operand *x, uint32_t n)
{
    if (x->kind != GEN_TENSOR || (n < 3 && x->rank == GEN_RANK))
        return false;
    if (n == 0) {
        if (x->rank == 0)
            return false;
        x->rank--;
    } else if (n == 1) {
        x->dims[x->rank++] = 1;
    } else if (n == 2) {
        memmove(x->dims + 1, x->dims, x->rank * sizeof *x->dims);
        x->dims[0] = 2;
        x->rank++;
    } else {
        const uint32_t axis = (n - 3) / 3, kind = (n - 3) % 3;
        if (axis >= x->rank || x->dims[axis] == 0 || (kind == 2 && x->dims[axis] == 1))
            return false;
        x->dims[axis] = kind == 0 ? x->dims[axis] - 1 : kind == 1 ? x->dims[axis] * 2 + 1 : 0;
    }
    return true;
}

static void declare_no_shapes(onx_doc *doc)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        onx_value_info *input = graph->input[i];
        if (ONX_HAS(value_info, input, type) && ONX_HAS(type, input->type, tensor_type))
            input->type->tensor_type->shape = NULL;
    }
}

typedef struct state {
    onx_ctx *cx;
    bool all;
    const char *only;
    unsigned number, runs, taken, bad;
} state;

/* Does inference refuse the operands if it is given their shapes? */
static bool is_refused(state *s, const gen_node *node)
{
    onx_doc *doc = NULL;
    onx_infer *infer = NULL;
    assert_int_equal(gen_model(s->cx, node, NULL, NULL, &doc), ONX_OK);
    assert_int_equal(onx_infer_new(s->cx, doc, NULL, &infer), ONX_OK);
    const bool failed = onx_infer_summarize(infer).failed;
    onx_infer_free(infer);
    onx_doc_free(doc);
    onx_diag_clear(s->cx);
    return failed;
}

static void run_one(state *s, const gen_node *node, uint32_t operand, uint32_t n, bool plain)
{
    gen_node changed = *node;
    gen_run run;
    onx_doc *doc;
    if (!misfit(&changed.operands[operand], n) || (!s->all && !share_has(s->number++)))
        return;
    if (gen_model(s->cx, node, NULL, NULL, &doc) != ONX_OK) { /* drawn sizes need not fit each other */
        onx_diag_clear(s->cx);
        return;
    }
    declare_no_shapes(doc);
    gen_run_model(s->cx, doc, changed.operands, changed.operand_count, plain, 1, &run);
    s->runs++;
    if (s->only && run.status != ONX_OK)
        print_message("operand %u misfit %u: %s\n", operand, n, run.why);
    if (run.status == ONX_OK) {
        s->taken++;
        char text[128];
        const bool wrong = is_refused(s, &changed);
        if (wrong || s->only)
            print_message("%s%s (%.60s): operand %u is taken as misfit %u\n", wrong ? "WRONG " : "",
                          gen_operator_name(node->schema, text), node->recipe->operands, operand, n);
        s->bad += wrong;
    }
    gen_run_free(&run);
    onx_doc_free(doc);
    onx_diag_clear(s->cx);
}

static void run_operator(state *s, const onxi_schema *schema)
{
    const gen_recipe *recipe;
    for (uint32_t r = 0; (recipe = gen_recipe_for(schema, r)) != NULL; r++) {
        for (uint64_t seed = 0; seed < (s->all ? SEEDS : 1); seed++) {
            const gen_choice choice = { .seed = seed, .vary = seed > 0 };
            gen_node node;
            assert_true(gen_node_make(schema, recipe, &choice, &node));
            for (uint32_t i = 0; i < node.operand_count; i++)
                node.operands[i].constant = false;
            for (uint32_t i = 0; i < node.operand_count; i++)
                for (uint32_t n = 0; n < MISFITS; n++)
                    for (int plain = 0; plain < 2; plain++)
                        run_one(s, &node, i, n, plain);
        }
    }
}

/* Not of onnx, nor of its training and machine learning. */
static bool is_beyond(const onxi_schema *schema)
{
    const char *domain = onxi_schema_domain(schema);
    return strncmp(domain, "com.", 4) == 0 || strcmp(domain, "ai.onnx.contrib") == 0;
}

static void test_gen_misfits__are_seen(void **unused)
{
    (void)unused;
    state s = { .cx = onx_ctx_new(NULL), .all = getenv("ONX_GEN_ALL") != NULL, .only = getenv("ONX_GEN_ONLY") };
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++)
            if (s.only ? strcmp(s.only, schema->name) == 0 : s.all || is_beyond(schema))
                run_operator(&s, schema);
    onx_ctx_free(s.cx);
    print_message("%u runs, %u of them take a misfit\n", s.runs, s.taken);
    assert_int_equal(s.bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_misfits__are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
