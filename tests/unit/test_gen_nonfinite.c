/* test_gen_nonfinite.c - NaN and infinities: every version of every operator, operand by operand, and chains of nodes
 * that fast kernels fuse, give the same with plain and fast kernels, and on one thread and two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>

#include "gen/gen.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct subject {
    onx_ctx *cx;
    const onxi_schema *schema;
    const gen_recipe *recipe;
    unsigned found, models, ran;
} subject;

static void complain(subject *s, const char *what, const char *why)
{
    s->found++;
    print_error("%s-%d (%.80s), %s: %s\n", s->schema->name, s->schema->since, s->recipe->attributes, what, why);
}

static const char *const fills[] = { [GEN_SOME_NAN] = "some NaN",
                                     [GEN_SOME_INFINITE] = "some infinities",
                                     [GEN_SPECIAL] = "special values",
                                     [GEN_ALL_LOWEST] = "minus infinity" };
static const gen_fill sorts[] = { GEN_SOME_NAN, GEN_SOME_INFINITE, GEN_SPECIAL, GEN_ALL_LOWEST };
enum { SORTS = sizeof sorts / sizeof *sorts };

static bool is_float(const gen_operand *o)
{
    const onx_dtype_class class = onx_dtype_class_of(o->dtype);
    return o->kind != GEN_OMITTED && (class == ONX_CLASS_FLOATING || class == ONX_CLASS_COMPLEX) &&
           (o->fill == GEN_SMALL || o->fill == GEN_POSITIVE || o->fill == GEN_UNIT);
}

static void verify(subject *s, onx_doc *doc, const gen_operand *operands, uint32_t count, const char *what)
{
    const unsigned flags = s->schema->flags & ONXI_OP_NONDETERMINISTIC ? GEN_ANY_VALUES : 0;
    gen_verdict v;
    gen_verify(s->cx, doc, operands, count, flags | GEN_TWO_THREADS | GEN_LEVELS | GEN_ROWS, &v);
    s->models++;
    s->ran += v.plain.status == ONX_OK;
    if (v.why[0])
        complain(s, what, v.why);
    gen_verdict_free(&v);
}

/* ---- each operator alone ---- */

static void test_operands(subject *s, const gen_choice *choice)
{
    gen_node node;
    if (!gen_node_make(s->schema, s->recipe, choice, &node))
        return;
    for (uint32_t i = 0; i < node.operand_count; i++)
        for (int sort = 0; sort < SORTS && is_float(&node.operands[i]); sort++) {
            gen_node changed = node;
            onx_doc *doc;
            char what[80];
            changed.operands[i].fill = sorts[sort];
            snprintf(what, sizeof what, "%s %u with %s", node.operands[i].constant ? "constant" : "input", i,
                     fills[sorts[sort]]);
            if (gen_model(s->cx, &changed, NULL, NULL, &doc) != ONX_OK)
                complain(s, what, "the model cannot be made");
            else {
                verify(s, doc, changed.operands, changed.operand_count, what);
                onx_doc_free(doc);
            }
            onx_diag_clear(s->cx);
        }
}

/* Sizes that fill whole vectors and leave a rest. */
static const struct {
    uint32_t rank;
    int64_t dims[5];
} shapes[] = { { 2, { 5, 37 } },        { 2, { 1, 64 } },         { 3, { 2, 19, 23 } },
               { 4, { 1, 16, 9, 11 } }, { 4, { 2, 19, 10, 12 } }, { 5, { 1, 17, 5, 4, 6 } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool is_fast(const onxi_schema *schema)
{
    const char *variants[4];
    return onx_kernel_variants(onx_str_of(onxi_schema_domain(schema)), onx_str_of(schema->name), schema->since,
                               variants, 4) > 1;
}

static void test_recipe(subject *s)
{
    const int step = share_step() > 1 ? 2 : 1; /* half of the shapes each way */
    for (int fixed = 0; fixed < 2; fixed++) {
        gen_choice choice = { .seed = 5, .fixed = fixed };
        test_operands(s, &choice);
        choice.type = (gen_type_choice){ "*", ONX_FLOAT };
        for (int shape = fixed % step; shape < SHAPES && is_fast(s->schema); shape += step) {
            choice.dims = shapes[shape].dims;
            choice.rank = shapes[shape].rank;
            test_operands(s, &choice);
        }
    }
}

static bool next_operator(subject *s, uint32_t *at)
{
    const char *only = getenv("ONX_GEN_ONLY"); /* an operator, for debugging */
    for (;;) {
        s->schema = s->schema && s->schema[1].name ? s->schema + 1
                                                   : (*at < onxi_operator_count ? onxi_operators[(*at)++].rows : NULL);
        if (!s->schema)
            return false;
        if (!(s->schema->flags & ONXI_OP_DEPRECATED) && (!only || strcmp(only, s->schema->name) == 0))
            return true;
    }
}

static void test_gen_nonfinite__kernels_agree(void **state)
{
    (void)state;
    subject s = { .cx = onx_ctx_new(NULL) };
    uint32_t at = 0;
    unsigned number = 0;
    while (next_operator(&s, &at))
        for (uint32_t n = 0; (s.recipe = gen_recipe_for(s.schema, n)) != NULL; n++)
            if (share_has(number++))
                test_recipe(&s);
    onx_ctx_free(s.cx);
    print_message("%u models, %u of them run\n", s.models, s.ran);
    assert_int_equal(s.found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_nonfinite__kernels_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
