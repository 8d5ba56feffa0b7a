/* test_gen_precision.c - models of one operator (every version, recipe and type of floats), alone, in a branch, in the
 * body of a Loop or Scan and in a function, converted to other floating-point types: the result is valid, and runs give
 * the same values within the rounding of the narrower type. The same of products that are quantized. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/io.h>
#include <onx/tensor.h>
#include <onx/text.h>
#include <onx/transform.h>

#include "gen/gen.h"
#include "share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALONE = GEN_FORMS, PLACES };
static const char *const places[] = {
    [GEN_CONSTANTS] = "with constants", [GEN_BRANCH] = "in an If",        [GEN_LOOP] = "in a Loop",
    [GEN_SCAN] = "in a Scan",           [GEN_FUNCTION] = "in a function", [ALONE] = "alone"
};
static const onx_dtype floats[] = { ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_BFLOAT16 };
enum { FLOATS = sizeof floats / sizeof *floats };

typedef struct model { /* a node, and the conversion of it */
    onx_ctx *cx;
    gen_node node;
    onx_dtype type, to;
    int place;
    bool keep_io, exact;
    onx_doc *doc; /* the original */
    gen_run run;  /* its results */
    bool random;
    char why[500];
} model;

typedef struct counts {
    unsigned models, converted, refused, compared, failed;
} counts;

/* ---- comparing ---- */

static double spacing(onx_dtype dtype)
{
    return dtype == ONX_DOUBLE ? 0x1p-52 : dtype == ONX_FLOAT ? 0x1p-23 : dtype == ONX_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

static bool is_float(int32_t dtype)
{
    return onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING && onx_dtype_bits(dtype) >= 16;
}

static double element(const onx_value *v, uint64_t i)
{
    double x = 0;
    const char *at = (const char *)v->data + i * onx_dtype_bits(v->dtype) / 8;
    (void)onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, at, 1, true);
    return x;
}

/* The largest difference between elements, as a part of the largest element; infinite for other kinds of values. */
static double apart(const onx_value *a, const onx_value *b, bool same_type)
{
    double most = 0, difference = 0;
    if (a->kind != b->kind || a->count != b->count)
        return INFINITY;
    if (a->kind != ONX_VALUE_TENSOR) {
        for (uint64_t i = 0; i < a->count; i++)
            most = fmax(most, apart(a->items[i], b->items[i], same_type));
        return most;
    }
    if ((is_float(a->dtype) != is_float(b->dtype)) || ((same_type || !is_float(a->dtype)) && a->dtype != b->dtype))
        return INFINITY;
    if (a->rank != b->rank || (a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)))
        return INFINITY;
    if (a->dtype == ONX_STRING || onx_dtype_bits(a->dtype) < 8 || onx_dtype_class_of(a->dtype) == ONX_CLASS_COMPLEX)
        return 0;
    for (uint64_t i = 0; i < a->count; i++) {
        const double x = element(a, i), y = element(b, i);
        if (isnan(x) && isnan(y))
            continue;
        if (isfinite(x))
            most = fmax(most, fabs(x));
        if (x == y)
            continue;
        difference = isfinite(x) && isfinite(y) ? fmax(difference, fabs(x - y)) : INFINITY;
    }
    return difference > 0 ? difference / (most > 0 ? most : 1) : 0;
}

/* The error that rounding alone explains: of operands rounded to the type, computed with the original model. */
static double explained(model *m, uint32_t output)
{
    double most = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        gen_node nudged = m->node;
        gen_run run;
        const double step = fmax(spacing(m->to), spacing(m->type));
        for (uint32_t i = 0; i < nudged.operand_count; i++)
            if (is_float((int32_t)nudged.operands[i].dtype) && nudged.operands[i].fill < GEN_INDEX)
                nudged.operands[i].nudge = sign * step;
        gen_run_model(m->cx, m->doc, nudged.operands, nudged.operand_count, true, 1, &run);
        most = fmax(most, run.status == ONX_OK && output < run.count
                              ? apart(m->run.outputs[output], run.outputs[output], true)
                              : INFINITY);
        gen_run_free(&run);
    }
    return most;
}

/* Are there elements beyond the range of the type, or so small that they lose digits in it? */
static bool is_beyond(const model *m, const onx_value *v)
{
    const bool half = m->to == ONX_FLOAT16;
    for (uint64_t i = 0; v->kind != ONX_VALUE_TENSOR && i < v->count; i++)
        if (is_beyond(m, v->items[i]))
            return true;
    for (uint64_t i = 0; v->kind == ONX_VALUE_TENSOR && is_float(v->dtype) && i < v->count; i++) {
        const double size = fabs(element(v, i));
        if (size > (half ? 6e4 : 3.3e38) || (size > 0 && size < (half ? 6.2e-5 : 1.2e-38)))
            return true;
    }
    return false;
}

static bool compare(model *m, const gen_run *run)
{
    if (m->run.status != ONX_OK)
        return true;
    if (run->status != ONX_OK) {
        snprintf(m->why, sizeof m->why, "the result does not run: %s", run->why);
        return false;
    }
    const double step = fmax(spacing(m->to), spacing(m->type));
    for (uint32_t i = 0; !m->random && i < m->run.count; i++) {
        const double distance = apart(m->run.outputs[i], run->outputs[i], m->keep_io);
        if (distance <= 8 * step || is_beyond(m, m->run.outputs[i]))
            continue;
        const double known = explained(m, i);
        if (distance <= 16 * known + 8 * step)
            continue;
        snprintf(m->why, sizeof m->why, "output %u differs by %g, rounding explains %g", i, distance, known);
        return false;
    }
    return true;
}

/* ---- converting ---- */

static bool is_valid(onx_ctx *cx, onx_doc *doc, char *why, size_t size)
{
    const onx_check_options full = { .flags = ONX_CHECK_FULL | ONX_CHECK_OPEN_SHAPES | ONX_CHECK_NO_NOTES };
    const bool ok = onx_check(cx, doc, &full, NULL) == ONX_OK;
    for (size_t i = 0; !ok && i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->severity == ONX_ERROR) {
            onx_diag_format(onx_diag_get(cx, i), why, size);
            break;
        }
    onx_diag_clear(cx);
    return ok;
}

static onx_doc *copy_of(onx_ctx *cx, onx_doc *doc)
{
    onx_buffer bytes;
    onx_doc *copy = NULL;
    assert_int_equal(onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes), ONX_OK);
    assert_int_equal(onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &copy), ONX_OK);
    assert_int_equal(gen_give_folder(copy), ONX_OK);
    onx_buffer_free(&bytes);
    return copy;
}

static int32_t elements_of(const onx_type *type)
{
    while (type && !ONX_HAS(type, type, tensor_type))
        type = ONX_HAS(type, type, sequence_type)   ? type->sequence_type->elem_type
               : ONX_HAS(type, type, optional_type) ? type->optional_type->elem_type
                                                    : NULL;
    return type ? type->tensor_type->elem_type : ONX_UNDEFINED;
}

/* Declared types of inputs or outputs: as before, or converted. */
static bool types_agree(model *m, onx_value_info *const *before, onx_value_info *const *after, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int32_t old = elements_of(before[i]->type), now = elements_of(after[i]->type);
        if (old == now || (!m->keep_io && is_float(old) && now == (int32_t)m->to))
            continue;
        snprintf(m->why, sizeof m->why, "\"%.*s\" is declared with type %s, and was %s",
                 ONX_ARG(onx_view(after[i]->name)), onx_dtype_name(now), onx_dtype_name(old));
        return false;
    }
    return true;
}

/* Operands as the inputs of the model are declared. */
static void fit_operands(gen_node *node, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->input_count; i++)
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (onx_str_is(onx_view(g->input[i]->name), node->operands[k].name) &&
                is_float((int32_t)node->operands[k].dtype) && node->operands[k].kind != GEN_MAP)
                node->operands[k].dtype = (onx_dtype)elements_of(g->input[i]->type);
}

static bool convert(model *m, counts *c)
{
    onx_doc *doc = copy_of(m->cx, m->doc);
    const onx_precision_options options = {
        .struct_size = sizeof options, .to = (int32_t)m->to, .keep_io = m->keep_io, .convert_exact = m->exact
    };
    const onx_status status = onx_precision(m->cx, doc, &options);
    bool ok = true;
    if (status != ONX_OK) {
        ok = onx_diag_count(m->cx) && (status == ONX_E_UNSUPPORTED || status == ONX_E_INVALID);
        snprintf(m->why, sizeof m->why, "the conversion fails with status %d", (int)status);
        for (size_t i = 0; !ok && i < onx_diag_count(m->cx); i++)
            onx_diag_format(onx_diag_get(m->cx, i), m->why, sizeof m->why);
        c->refused++;
        onx_diag_clear(m->cx);
        onx_doc_free(doc);
        return ok;
    }
    onx_diag_clear(m->cx);
    c->converted++;
    const onx_graph *before = onx_doc_model(m->doc)->graph, *after = onx_doc_model(doc)->graph;
    ok = is_valid(m->cx, doc, m->why, sizeof m->why) &&
         types_agree(m, before->input, after->input, after->input_count) &&
         types_agree(m, before->output, after->output, after->output_count);
    if (ok && m->run.status == ONX_OK) {
        gen_node node = m->node;
        gen_run run;
        fit_operands(&node, after);
        gen_run_model(m->cx, doc, node.operands, node.operand_count, true, 1, &run);
        ok = compare(m, &run);
        gen_run_free(&run);
        c->compared++;
    }
    onx_doc_free(doc);
    onx_diag_clear(m->cx);
    return ok;
}

/* ---- all rows ---- */

/* The model in its place; false if there is none. */
static bool make(model *m)
{
    gen_graph graph = { .opset = *onxi_schema_domain(m->node.schema) ? 21 : m->node.schema->since,
                        .node_count = 1,
                        .operand_count = m->node.operand_count };
    gen_random none = { .state = 1 };
    if (gen_model(m->cx, &m->node, NULL, NULL, &graph.doc) != ONX_OK) {
        onx_diag_clear(m->cx);
        return false;
    }
    memcpy(graph.operands, m->node.operands, m->node.operand_count * sizeof *m->node.operands);
    if (m->place == ALONE) {
        m->doc = graph.doc;
    } else {
        const bool made = gen_graph_form(m->cx, &graph, (gen_form)m->place, &none, &m->doc);
        onx_doc_free(graph.doc);
        if (!made)
            return false;
        if (m->place == GEN_BRANCH) { /* what the If asks for */
            gen_operand *o = &m->node.operands[m->node.operand_count++];
            *o = (gen_operand){ .kind = GEN_TENSOR, .dtype = ONX_BOOL, .like = ONX_BOOL, .name = "cond" };
        }
    }
    if (is_valid(m->cx, m->doc, m->why, sizeof m->why)) {
        gen_run_model(m->cx, m->doc, m->node.operands, m->node.operand_count, true, 1, &m->run);
        return true;
    }
    onx_doc_free(m->doc);
    return false;
}

static void try_one(model *m, const gen_choice *choice, const gen_recipe *recipe, const onxi_schema *schema, counts *c)
{
    if (!gen_node_make(schema, recipe, choice, &m->node) || m->node.operand_count >= GEN_OPERANDS)
        return;
    if (!make(m))
        return;
    c->models++;
    m->random = schema->flags & ONXI_OP_NONDETERMINISTIC;
    if (!convert(m, c)) {
        c->failed++;
        print_error("%s-%d <%s> %s of %s %s to %s%s%s: %s\n", schema->name, schema->since, recipe->attributes,
                    recipe->operands, onx_dtype_name((int64_t)m->type), places[m->place],
                    onx_dtype_name((int64_t)m->to), m->keep_io ? ", inputs and outputs kept" : "",
                    m->exact ? ", all" : "", m->why);
    }
    gen_run_free(&m->run);
    onx_doc_free(m->doc);
}

static bool has_type(const gen_node *node, onx_dtype type)
{
    for (uint32_t i = 0; i < node->type_count; i++)
        if (node->types[i].dtype == type)
            return true;
    return false;
}

/* Some conversions of the node, drawn; or all of them. */
static void try_recipe(onx_ctx *cx, const onxi_schema *schema, const gen_recipe *recipe, onx_dtype type,
                       gen_random *random, unsigned some, counts *c)
{
    const gen_choice choice = {
        .seed = 1 + gen_below(random, 1000), .type = { "*", type }, .like = ONX_BFLOAT16, .vary = gen_below(random, 2)
    };
    gen_node node;
    if (!gen_node_make(schema, recipe, &choice, &node) || !(type == ONX_FLOAT || has_type(&node, type)))
        return;
    const unsigned all = PLACES * FLOATS * 4;
    for (unsigned n = 0; n < (some ? some : all); n++) {
        const unsigned k = some ? gen_below(random, all) : n;
        model m = { .cx = cx, .type = type, .to = floats[k / 4 % FLOATS], .place = (int)(k / 4 / FLOATS) };
        m.keep_io = k & 1;
        m.exact = k & 2;
        if (m.to != type)
            try_one(&m, &choice, recipe, schema, c);
    }
}

/* ONX_TEST_OPERATOR: one operator only; ONX_TEST_ALL: all conversions; ONX_TEST_SEED: others are drawn. */
static void test_gen_precision__every_row_stays_valid_and_close(void **state)
{
    const char *only = getenv("ONX_TEST_OPERATOR"), *seed = getenv("ONX_TEST_SEED"), *every = getenv("ONX_TEST_ALL");
    gen_random random = { .state = seed ? strtoull(seed, NULL, 10) : 1 };
    const unsigned some = every ? 0 : (8 + share_step() - 1) / share_step();
    counts c = { 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    (void)state;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            if (schema->flags & ONXI_OP_DEPRECATED || gen_lacks_library(schema->name) ||
                (only && strcmp(only, schema->name)))
                continue;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (unsigned t = 0; t < FLOATS; t++)
                    try_recipe(cx, schema, recipe, floats[t], &random, some, &c);
        }
    onx_ctx_free(cx);
    print_message("%u models: %u converted, %u refused, %u compared, %u failed\n", c.models, c.converted, c.refused,
                  c.compared, c.failed);
    assert_int_equal(c.failed, 0);
    assert_true(only || (c.compared > 1000 && c.refused < c.models / 4));
}

/* ---- quantization ---- */

typedef struct reduction {
    onx_quantize_mode mode;
    int32_t weight_type;
    uint32_t block;
    double error; /* as a part of the largest element of the result */
} reduction;
static const reduction reductions[] = {
    { ONX_QUANTIZE_WEIGHTS, ONX_INT8, 0, 0.05 },
    { ONX_QUANTIZE_WEIGHTS, ONX_UINT8, 0, 0.05 },
    { ONX_QUANTIZE_WEIGHTS, ONX_INT4, 16, 0.4 },
    { ONX_QUANTIZE_WEIGHTS, ONX_UINT4, 0, 0.4 },
    { ONX_QUANTIZE_WEIGHTS, ONX_FLOAT8E4M3FN, 0, 0.15 },
    { ONX_QUANTIZE_WEIGHTS, ONX_FLOAT8E5M2, 0, 0.25 },
    { ONX_QUANTIZE_WEIGHTS, ONX_FLOAT4E2M1, 16, 0.6 },
    { ONX_QUANTIZE_DYNAMIC, 0, 0, 0.08 },
    { ONX_QUANTIZE_QDQ, 0, 0, 0.08 },
    { ONX_QUANTIZE_QLINEAR, 0, 0, 0.1 },
};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

static void count_change(void *user, const onx_change *change)
{
    *(unsigned *)user += !onx_str_is(change->rule, "skip");
}

enum { MOST_RANGES = 64 };
typedef struct ranges {
    onx_value_range list[MOST_RANGES];
    uint32_t count;
    float low, high; /* of what nodes compute */
} ranges;

static onx_status collect_names(void *user, const onx_visit *at)
{
    ranges *r = user;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    const onx_node *n = at->message;
    for (uint32_t i = 0; i < n->input_count && r->count + 2 < MOST_RANGES; i++)
        r->list[r->count++] = (onx_value_range){ onx_view(n->input[i]), -2, 2 };
    for (uint32_t i = 0; i < n->output_count && r->count + 2 < MOST_RANGES; i++)
        r->list[r->count++] = (onx_value_range){ onx_view(n->output[i]), r->low, r->high };
    return ONX_OK;
}

/* Ranges of all values, as data would give them. */
static void find_ranges(const model *m, const onx_doc *doc, ranges *r)
{
    *r = (ranges){ .low = -1, .high = 1 };
    for (uint32_t k = 0; k < m->run.count; k++)
        for (uint64_t i = 0; m->run.outputs[k]->kind == ONX_VALUE_TENSOR && i < m->run.outputs[k]->count; i++) {
            const float x = (float)element(m->run.outputs[k], i);
            r->low = x < r->low ? x : r->low;
            r->high = x > r->high ? x : r->high;
        }
    assert_int_equal(onx_message_walk(m->cx, ONX_KIND_MODEL, onx_doc_model(doc), collect_names, r), ONX_OK);
}

static bool quantize(model *m, const reduction *by, bool per_channel, unsigned *done)
{
    onx_doc *doc = copy_of(m->cx, m->doc);
    ranges r;
    gen_run run;
    if (onx_doc_model(doc)->functions_count) /* names as in the result */
        assert_int_equal(onx_inline(m->cx, doc, NULL), ONX_OK);
    find_ranges(m, doc, &r);
    const onx_quantize_options options = { .struct_size = sizeof options,
                                           .mode = by->mode,
                                           .weight_type = by->weight_type,
                                           .block_size = by->block,
                                           .per_channel = per_channel,
                                           .range = r.list,
                                           .range_count = r.count,
                                           .changed = count_change,
                                           .user = done };
    const onx_status status = onx_quantize(m->cx, doc, &options);
    bool ok = status == ONX_OK || (status == ONX_E_UNSUPPORTED && onx_diag_count(m->cx));
    snprintf(m->why, sizeof m->why, "the conversion fails with status %d", (int)status);
    onx_diag_clear(m->cx);
    if (status == ONX_OK) {
        ok = is_valid(m->cx, doc, m->why, sizeof m->why);
        gen_run_model(m->cx, doc, m->node.operands, m->node.operand_count, true, 1, &run);
        if (ok && run.status != ONX_OK) {
            ok = false;
            snprintf(m->why, sizeof m->why, "the result does not run: %s", run.why);
        }
        for (uint32_t i = 0; ok && i < m->run.count; i++) {
            const double distance = apart(m->run.outputs[i], run.outputs[i], true);
            ok = distance <= by->error;
            snprintf(m->why, sizeof m->why, "output %u differs by %g", i, distance);
        }
        gen_run_free(&run);
    }
    onx_doc_free(doc);
    return ok;
}

static void test_gen_precision__products_are_quantized_everywhere(void **state)
{
    static const char *const products[] = { "Conv", "MatMul", "Gemm" };
    static const onx_dtype types[] = { ONX_FLOAT, ONX_FLOAT16, ONX_BFLOAT16 };
    const char *seed = getenv("ONX_TEST_SEED");
    const bool every = getenv("ONX_TEST_ALL") != NULL;
    gen_random random = { .state = seed ? strtoull(seed, NULL, 10) : 1 };
    unsigned done = 0, models = 0, failed = 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    (void)state;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            bool product = false;
            for (size_t k = 0; k < sizeof products / sizeof *products; k++)
                product |= !*onxi_schema_domain(schema) && strcmp(schema->name, products[k]) == 0;
            const gen_recipe *recipe;
            for (uint32_t n = 0; product && (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (unsigned k = 0; k < 3 * PLACES * REDUCTIONS * 2; k++) {
                    model m = { .cx = cx, .type = types[k % 3], .to = ONX_BFLOAT16, .place = (int)(k / 3 % PLACES) };
                    const reduction *by = &reductions[k / 3 / PLACES % REDUCTIONS];
                    const gen_choice choice = { .seed = 1 + gen_below(&random, 1000),
                                                .type = { "*", m.type },
                                                .like = ONX_BFLOAT16,
                                                .fixed = true };
                    if (!every && gen_below(&random, 8))
                        continue;
                    if (!gen_node_make(schema, recipe, &choice, &m.node) || !make(&m))
                        continue;
                    models++;
                    if (m.run.status == ONX_OK && !quantize(&m, by, k & 1, &done)) {
                        failed++;
                        print_error("%s-%d <%s> %s of %s %s, mode %d to %s: %s\n", schema->name, schema->since,
                                    recipe->attributes, recipe->operands, onx_dtype_name((int64_t)m.type),
                                    places[m.place], (int)by->mode, onx_dtype_name(by->weight_type), m.why);
                    }
                    gen_run_free(&m.run);
                    onx_doc_free(m.doc);
                }
        }
    onx_ctx_free(cx);
    print_message("%u models, %u products quantized, %u failed\n", models, done, failed);
    assert_int_equal(failed, 0);
    assert_true(done > models / 3 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_precision__every_row_stays_valid_and_close),
        cmocka_unit_test(test_gen_precision__products_are_quantized_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
