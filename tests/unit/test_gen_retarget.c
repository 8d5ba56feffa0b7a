/* test_gen_retarget.c - every version of every operator, with the element types, sizes (of 0, too), special values and
 * attributes that the generator draws, through other versions of its operator set and back: the result is valid and
 * gives the same values, or the conversion is refused with a reason. ONX_GEN_SEEDS: how many seeds (1), ONX_GEN_ONLY:
 * an operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/io.h>
#include <onx/text.h>
#include <onx/transform.h>

#include "gen/gen.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS = ONX_CHECK_FULL | ONX_CHECK_OPEN_SHAPES };

typedef struct subject {
    onx_ctx *cx;
    const onxi_schema *schema;
    onx_doc *doc;
    const gen_node *node;
    gen_run before;
    gen_random *random;
    unsigned found, models, converted, refused, compared;
    char what[200];
} subject;

static onx_status print(void *user, onx_str bytes)
{
    (void)user;
    print_error("%.*s", (int)bytes.len, bytes.ptr);
    return ONX_OK;
}

static void complain(subject *s, onx_doc *doc, const char *path, const char *why)
{
    const onx_sink sink = { print, NULL };
    s->found++;
    print_error("%s, to %s: %s\n", s->what, path, why);
    if (!getenv("ONX_GEN_SHOW"))
        return;
    (void)onx_text_print(s->cx, ONX_KIND_MODEL, onx_doc_model(s->doc), NULL, sink);
    if (doc)
        (void)onx_text_print(s->cx, ONX_KIND_MODEL, onx_doc_model(doc), NULL, sink);
    onx_diag_clear(s->cx);
}

static onx_doc *copy_of(onx_ctx *cx, onx_doc *doc)
{
    onx_buffer bytes;
    onx_doc *copy = NULL;
    if (onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes) != ONX_OK)
        return NULL;
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &copy) != ONX_OK)
        copy = NULL;
    onx_buffer_free(&bytes);
    if (copy && gen_give_folder(copy) != ONX_OK) {
        onx_doc_free(copy);
        copy = NULL;
    }
    return copy;
}

/* The first error among the diagnostics, which are cleared; false: there is none. Types that a version lacks (ND-16)
 * are errors in what onx writes, also where files of old exporters get a warning only. */
static bool first_error(onx_ctx *cx, char *why, size_t size)
{
    bool any = false;
    (void)snprintf(why, size, "no reason");
    for (size_t i = 0; i < onx_diag_count(cx) && !any; i++) {
        const onx_diag *d = onx_diag_get(cx, i);
        any = d->severity == ONX_ERROR || (d->rule && strcmp(d->rule, "ND-16") == 0);
        if (any)
            onx_diag_format(d, why, size);
    }
    onx_diag_clear(cx);
    return any;
}

static bool is_valid(onx_ctx *cx, onx_doc *doc, char *why, size_t size)
{
    const onx_check_options options = { .struct_size = sizeof options, .flags = FLAGS };
    const onx_status status = onx_check(cx, doc, &options, NULL);
    return !first_error(cx, why, size) && status == ONX_OK;
}

/* The kernel of Attention leaves out keys that nothing attends to, where its body multiplies NaN and infinities by 0.
 */
static bool has_special_weights(const subject *s)
{
    bool special = false;
    for (uint32_t i = 0; i < s->node->operand_count; i++)
        special |= s->node->operands[i].fill >= GEN_SPECIAL && s->node->operands[i].fill <= GEN_ALL_LOWEST;
    return special && strcmp(s->schema->name, "Attention") == 0;
}

static void compare(subject *s, onx_doc *doc, const char *path)
{
    char why[600];
    gen_run after;
    gen_origin origin = { .cx = s->cx, .doc = s->doc, .operands = s->node->operands, .count = s->node->operand_count };
    gen_run_model(s->cx, doc, s->node->operands, s->node->operand_count, true, 1, &after);
    s->compared += after.status == ONX_OK && s->before.status == ONX_OK;
    if (!(s->schema->flags & ONXI_OP_NONDETERMINISTIC) && !has_special_weights(s) && s->before.status == ONX_OK &&
        !gen_run_close(&after, &s->before, &origin, why, sizeof why))
        complain(s, doc, path, why);
    gen_origin_free(&origin);
    gen_run_free(&after);
    onx_diag_clear(s->cx);
}

/* Converts to each version in turn, and looks at each result. */
static void convert(subject *s, const int64_t *versions, uint32_t count)
{
    char path[80], why[600];
    size_t len = 0;
    onx_doc *doc = copy_of(s->cx, s->doc);
    assert_non_null(doc);
    for (uint32_t i = 0; i < count; i++) {
        const onx_opset_version to = { onx_str_of(onxi_schema_domain(s->schema)), versions[i] };
        const onx_retarget_options options = { .struct_size = sizeof options, .opset = &to, .opset_count = 1 };
        len += (size_t)snprintf(path + len, sizeof path - len, "%s%lld", i ? ", " : "", (long long)versions[i]);
        const onx_status status = onx_retarget(s->cx, doc, &options);
        const bool silent = onx_diag_total(s->cx, ONX_ERROR) == 0;
        (void)first_error(s->cx, why, sizeof why);
        if (status != ONX_OK) {
            s->refused++;
            /* what runs is valid, and a step that made it invalid should have refused it */
            if (silent ||
                (s->before.status == ONX_OK && (status != ONX_E_UNSUPPORTED || strstr(why, "result would be invalid"))))
                complain(s, NULL, path, why);
            break;
        }
        s->converted++;
        if (!is_valid(s->cx, doc, why, sizeof why)) {
            complain(s, doc, path, why);
            break;
        }
        compare(s, doc, path);
    }
    onx_doc_free(doc);
}

static int64_t newest_of(const onxi_schema *schema)
{
    return onxi_domain_newest(onx_str_of(onxi_schema_domain(schema)));
}

/* The versions next to the row, far ones, and there and back. */
static void convert_all(subject *s)
{
    const int64_t newest = newest_of(s->schema), since = s->schema->since;
    const bool standard = !*onxi_schema_domain(s->schema);
    const int64_t oldest = standard ? 6 : 1,
                  any = oldest + (int64_t)gen_below(s->random, (uint32_t)(newest - oldest + 1));
    int64_t above = newest;
    for (const onxi_schema *row =
             onxi_operator_find(onx_str_of(onxi_schema_domain(s->schema)), onx_str_of(s->schema->name))->rows;
         row->name && row->since > since; row++)
        above = row->since;
    if (since > oldest)
        convert(s, (const int64_t[]){ since - 1, since }, 2);
    if (above > since)
        convert(s, (const int64_t[]){ above, since }, 2);
    if (newest > above)
        convert(s, (const int64_t[]){ newest }, 1);
    if (since - 1 > oldest)
        convert(s, (const int64_t[]){ oldest + (int64_t)gen_below(s->random, (uint32_t)(since - oldest)), newest }, 2);
    if (any != since)
        convert(s, (const int64_t[]){ any, since }, 2);
}

typedef struct twist { /* what is drawn for a model besides its operands */
    gen_random *random;
    const onxi_schema *schema;
    bool wild;
} twist;

static void give_attribute(void *user, onx_arena *arena, onx_node *node)
{
    twist *t = user;
    if (t->wild)
        (void)gen_wild_attribute(arena, node, t->schema, t->random);
}

static void try_one(subject *s, const gen_recipe *recipe, const gen_choice *choice, bool wild)
{
    gen_node node;
    char why[600];
    twist t = { s->random, s->schema, wild };
    if (!gen_node_make(s->schema, recipe, choice, &node))
        return;
    if (wild)
        gen_wild_operands(&node, s->random);
    if (gen_model(s->cx, &node, give_attribute, &t, &s->doc) != ONX_OK) {
        onx_diag_clear(s->cx);
        return;
    }
    if (is_valid(s->cx, s->doc, why, sizeof why)) {
        s->node = &node;
        s->models++;
        (void)snprintf(s->what, sizeof s->what, "%s-%d (%.60s) %s%s", s->schema->name, s->schema->since,
                       recipe->attributes, onx_dtype_name(choice->type.dtype), wild ? ", wild" : "");
        gen_run_model(s->cx, s->doc, node.operands, node.operand_count, true, 1, &s->before);
        convert_all(s);
        gen_run_free(&s->before);
    }
    onx_diag_clear(s->cx);
    onx_doc_free(s->doc);
}

static void try_row(subject *s, uint64_t seed)
{
    const gen_recipe *recipe;
    for (uint32_t n = 0; (recipe = gen_recipe_for(s->schema, n)) != NULL; n++)
        for (onx_dtype dtype = 1; dtype < 32; dtype++) {
            gen_random random = { .state = seed * 1000003 + n * 37 + dtype };
            gen_choice choice = { .seed = gen_next(&random),
                                  .type = { "*", dtype },
                                  .fixed = gen_below(&random, 4) == 0 };
            bool any = false;
            for (const onxi_type_constraint *c = s->schema->types; c && c->name; c++)
                any |= (c->set.tensor | c->set.seq | c->set.optional) >> dtype & 1;
            if (!any && dtype != ONX_FLOAT)
                continue;
            s->random = &random;
            try_one(s, recipe, &choice, false);
            choice.vary = true;
            try_one(s, recipe, &choice, true);
        }
}

static void test_gen_retarget__versions_give_the_same(void **state)
{
    (void)state;
    const char *only = getenv("ONX_GEN_ONLY"), *seeds = getenv("ONX_GEN_SEEDS");
    subject s = { .cx = onx_ctx_new(NULL) };
    unsigned number = 0;
    const uint64_t from = seeds && strchr(seeds, '-') ? strtoull(seeds, NULL, 10) : 1;
    const uint64_t count = !seeds ? 1 : strtoull(strchr(seeds, '-') ? strchr(seeds, '-') + 1 : seeds, NULL, 10);
    for (uint64_t seed = from; seed < from + count; seed++)
        for (uint32_t i = 0; i < onxi_operator_count; i++)
            for (s.schema = onxi_operators[i].rows; s.schema->name; s.schema++) {
                const char *domain = onxi_schema_domain(s.schema);
                if ((*domain && strcmp(domain, "ai.onnx.ml") != 0) || s.schema->flags & ONXI_OP_DEPRECATED ||
                    (only && strcmp(only, s.schema->name) != 0) || gen_lacks_library(s.schema->name) ||
                    !share_has(number++))
                    continue;
                try_row(&s, seed);
            }
    onx_ctx_free(s.cx);
    print_message("%u models, %u conversions, %u of them compared, %u refused\n", s.models, s.converted, s.compared,
                  s.refused);
    assert_true(only || s.compared > 10000 / share_step());
    assert_int_equal(s.found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_retarget__versions_give_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
