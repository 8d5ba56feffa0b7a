/* test_gen_grad.c - the gradient of every version of every operator, on models from the recipes of tests/gen, against
 * differences of runs; of smooth operators the second derivative, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/grad.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "gen/gen.h"
#include "transform/transform_grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 64, ELEMENTS = 12 };

/* ---- values ---- */

typedef struct point { /* inputs of a model */
    uint32_t count;
    bool wanted[ROOM]; /* of real numbers, and differentiable */
    bool coarse;       /* some numbers have the digits of float */
    onx_value *values[ROOM];
} point;

/* Where a function is defined, and not at a kink: numbers of a recipe moved by a little, and into four domains. */
static double moved(double v, uint64_t i, int domain)
{
    const double noise = 0.011 + 0.031 * (double)((i * 2654435761u >> 7) % 97) / 97.0;
    switch (domain) {
    case 0:
        return v * 0.93 + noise;
    case 1:
        return fabs(v) * 0.93 + 0.2 + noise;
    case 2:
        return fabs(v) + 1.1 + noise;
    default:
        return v / (1.5 + fabs(v)) * 0.9 + noise;
    }
}

static bool is_real_port(const onxi_schema *schema, const onxi_port *port)
{
    const onxi_type_constraint *c = onxi_schema_type(schema, port->type);
    const uint32_t reals = 1u << ONX_FLOAT | 1u << ONX_DOUBLE;
    return c ? (c->set.tensor & reals) != 0 : strstr(port->type, "float") || strstr(port->type, "double");
}

/* Operators of which the standard counts no input of real numbers as differentiable: a rule for them is ours. */
static bool is_beyond_standard(const onxi_schema *schema)
{
    for (const onxi_port *port = schema->inputs; port && port->name; port++)
        if (is_real_port(schema, port) && !(port->flags & ONXI_PORT_NONDIFF))
            return false;
    return true;
}

/* Is input i of the node one that the standard counts as not differentiable? */
static bool is_nondiff(const gen_node *node, onx_str name)
{
    if (is_beyond_standard(node->schema))
        return false;
    for (uint32_t k = 0; k < node->operand_count; k++)
        if (onx_str_is(name, node->operands[k].name)) {
            const onxi_port *port = onxi_port_at(
                onxi_schema_newest(onx_str_of(onxi_schema_domain(node->schema)), onx_str_of(node->schema->name))
                    ->inputs,
                k);
            return port && port->flags & ONXI_PORT_NONDIFF;
        }
    return false;
}

static bool is_double(const onx_value *v)
{
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_DOUBLE;
}

/* Numbers of float stand where an operator takes no double. */
static bool is_real(const onx_value *v)
{
    return v && v->kind == ONX_VALUE_TENSOR && (v->dtype == ONX_DOUBLE || v->dtype == ONX_FLOAT);
}

static double get(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_DOUBLE ? ((const double *)v->data)[i] : (double)((const float *)v->data)[i];
}

static void set(onx_value *v, uint64_t i, double number)
{
    if (v->dtype == ONX_DOUBLE)
        ((double *)v->data)[i] = number;
    else
        ((float *)v->data)[i] = (float)number;
}

static bool open_point(onx_ctx *cx, const onx_session *s, const gen_node *node, int domain, point *p)
{
    memset(p, 0, sizeof *p);
    p->count = onx_session_input_count(s);
    for (uint32_t i = 0; i < p->count && i < ROOM; i++)
        for (uint32_t k = 0; k < node->operand_count && !p->values[i]; k++)
            if (onx_str_is(onx_session_input(s, i).name, node->operands[k].name)) {
                if (gen_value(cx, &node->operands[k], &p->values[i]) != ONX_OK)
                    return false;
                for (uint64_t e = 0; is_real(p->values[i]) && e < p->values[i]->count; e++)
                    set(p->values[i], e, moved(get(p->values[i], e), e + 7 * i, domain));
                p->wanted[i] = is_real(p->values[i]) && !is_nondiff(node, onx_session_input(s, i).name);
                p->coarse |= p->wanted[i] && !is_double(p->values[i]);
            }
    return p->count <= ROOM;
}

static void close_point(point *p)
{
    for (uint32_t i = 0; i < ROOM; i++)
        onx_value_free(p->values[i]);
}

static onx_session *session_of(onx_ctx *cx, onx_doc *doc)
{
    onx_session *s = NULL;
    const onx_session_options options = { .threads = 1, .memory = 64 << 20 };
    return onx_session_new(cx, doc, &options, &s) == ONX_OK ? s : NULL;
}

static void first_error(onx_ctx *cx, char *why, size_t size)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->severity == ONX_ERROR) {
            onx_diag_format(onx_diag_get(cx, i), why, size);
            break;
        }
    onx_diag_clear(cx);
}

/* ---- a scalar of all outputs ---- */

/* Adds the sum of the named values, each element times a number of its own; their values are in `like`. */
static bool add_loss(onx_doc *doc, const char *const *names, onx_value *const *like, uint32_t count, const char *loss)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    char sums[1024] = "", name[64], product[64], sum[64], wide[64], inputs[160];
    for (uint32_t i = 0; i < count; i++) {
        double *weights = calloc((size_t)like[i]->count + 1, sizeof *weights);
        if (!weights)
            return false;
        for (uint64_t e = 0; e < like[i]->count; e++)
            weights[e] = 0.3 + 0.7 * cos(1.7 * (double)e + i);
        snprintf(name, sizeof name, "%s_weight%u", loss, i);
        snprintf(product, sizeof product, "%s_product%u", loss, i);
        snprintf(sum, sizeof sum, "%s_sum%u", loss, i);
        snprintf(wide, sizeof wide, "%s_wide%u", loss, i);
        snprintf(inputs, sizeof inputs, "%s %s", is_double(like[i]) ? names[i] : wide, name);
        onx_tensor *t = onx_tensor_new(arena, ONX_DOUBLE, like[i]->dims, like[i]->rank, weights, name);
        free(weights);
        onx_node *cast = is_double(like[i]) ? NULL : onx_graph_add_node(arena, graph, "Cast", names[i], wide);
        if (!is_double(like[i]) && (!cast || !onx_node_add_int(arena, cast, "to", ONX_DOUBLE)))
            return false;
        onx_node *add =
            t && onx_graph_add_initializer(arena, graph, t) && onx_graph_add_node(arena, graph, "Mul", inputs, product)
                ? onx_graph_add_node(arena, graph, "ReduceSum", product, sum)
                : NULL;
        if (!add || !onx_node_add_int(arena, add, "keepdims", 0))
            return false;
        snprintf(sums + strlen(sums), sizeof sums - strlen(sums), "%s%s", i ? " " : "", sum);
    }
    return onx_graph_add_node(arena, graph, "Sum", sums, loss) &&
           onx_graph_add_output(arena, graph, loss, onx_type_new_tensor(arena, ONX_DOUBLE, NULL, -1));
}

static double scalar(const onx_value *v)
{
    return is_double(v) && v->count == 1 ? *(const double *)v->data : NAN;
}

static double run_scalar(onx_ctx *cx, onx_session *s, point *p, uint32_t output)
{
    onx_value *outputs[ROOM] = { NULL };
    double loss = NAN;
    if (onx_session_run(s, cx, (const onx_value *const *)p->values, outputs) == ONX_OK)
        loss = scalar(outputs[output]);
    for (uint32_t i = 0; i < ROOM; i++)
        onx_value_free(outputs[i]);
    onx_diag_clear(cx);
    return loss;
}

/* ---- one comparison ---- */

typedef struct tally {
    unsigned compared, kinks, nonzero;
    double worst, worst_rough; /* errors, in numbers of double and of float */
} tally;

/* What numbers of double and of float can tell of a slope: the step of a difference, how far differences of two widths,
 * and those to both sides, may be apart where there is no kink, and a gradient from them. */
typedef struct precision {
    double step, widths, sides, error;
} precision;
static const precision fine = { 1e-4, 1e-4, 2e-2, 2e-5 }, rough = { 0x1p-6, 1e-2, 5e-2, 1e-2 };

/* Central differences of two widths agree where a function is smooth. */
static bool difference(onx_ctx *cx, onx_session *s, point *p, uint32_t output, onx_value *of, uint64_t at,
                       const precision *with, double *slope)
{
    const double keep = get(of, at), h = with->step;
    double f[4];
    const double steps[4] = { -h, h, -h / 2, h / 2 };
    for (int i = 0; i < 4; i++) {
        set(of, at, keep + steps[i]);
        f[i] = run_scalar(cx, s, p, output);
    }
    set(of, at, keep);
    const double wide = (f[1] - f[0]) / (2 * h), narrow = (f[3] - f[2]) / h;
    *slope = narrow + (narrow - wide) / 3;
    const double f0 = run_scalar(cx, s, p, output);
    const double left = (f0 - f[2]) / (h / 2), right = (f[3] - f0) / (h / 2);
    return isfinite(narrow) && fabs(wide - narrow) <= with->widths * (1 + fabs(narrow)) &&
           fabs(left - right) <= with->sides * (1 + fabs(narrow));
}

/* Compares the gradients that are the last outputs of `derived`, one per input that is of real numbers, with
 * differences of output `loss`. */
static bool compare(onx_ctx *cx, onx_session *plain, uint32_t loss, onx_session *derived, uint32_t first, point *p,
                    tally *t, char *why, size_t size)
{
    onx_value *outputs[ROOM] = { NULL };
    const precision *with = p->coarse ? &rough : &fine;
    bool ok = onx_session_run(derived, cx, (const onx_value *const *)p->values, outputs) == ONX_OK;
    if (!ok)
        first_error(cx, why, size);
    uint32_t at = first;
    for (uint32_t i = 0; i < p->count && ok; i++) {
        if (!p->wanted[i])
            continue;
        const onx_value *gradient = outputs[at++];
        if (!is_real(gradient) || gradient->dtype != p->values[i]->dtype || gradient->count != p->values[i]->count) {
            snprintf(why, size, "the gradient of input %u has %llu elements", i,
                     gradient ? (unsigned long long)gradient->count : 0);
            ok = false;
            break;
        }
        const uint64_t count = p->values[i]->count, step = count > ELEMENTS ? count / ELEMENTS + 1 : 1;
        for (uint64_t e = 0; e < count && ok; e += step) {
            double slope;
            const double g = get(gradient, e);
            if (!difference(cx, plain, p, loss, p->values[i], e, with, &slope)) {
                t->kinks++;
                continue;
            }
            const double error = fabs(g - slope) / (1 + fabs(slope));
            t->compared++;
            t->nonzero += fabs(slope) > 1e-9;
            double *worst = p->coarse ? &t->worst_rough : &t->worst;
            *worst = error > *worst ? error : *worst;
            if (!(error <= with->error)) {
                snprintf(why, size, "input %u element %llu: gradient %.9g, difference %.9g", i, (unsigned long long)e,
                         g, slope);
                ok = false;
            }
        }
    }
    for (uint32_t i = 0; i < ROOM; i++)
        onx_value_free(outputs[i]);
    return ok;
}

/* ---- one recipe ---- */

enum { SEGMENTS = 3 };

typedef struct trial {
    onx_ctx *cx;
    onx_doc *doc;
    gen_node node;
    point at;
    const char *names[ROOM]; /* of outputs of real numbers */
    char texts[ROOM][64];
    onx_value *values[ROOM];
    uint32_t count;
    int32_t checkpoint; /* of the gradients */
} trial;

static bool all_finite(const onx_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        if (!isfinite(get(v, i)))
            return false;
    return true;
}

/* The real outputs at a point where all of them are numbers. */
static bool find_outputs(trial *t, onx_doc *doc, bool search)
{
    onx_session *s = session_of(t->cx, doc);
    bool good = false;
    for (int domain = 0; s && domain < 4 && !good; domain++) {
        onx_value *outputs[ROOM] = { NULL };
        if (search) {
            close_point(&t->at);
            if (!open_point(t->cx, s, &t->node, domain, &t->at))
                break;
        }
        good = onx_session_run(s, t->cx, (const onx_value *const *)t->at.values, outputs) == ONX_OK;
        t->count = 0;
        for (uint32_t i = 0; i < ROOM; i++) {
            const onxi_port *port = search ? onxi_port_at(t->node.schema->outputs, i) : NULL;
            const bool out = port && port->flags & ONXI_PORT_NONDIFF && !is_beyond_standard(t->node.schema);
            if (good && is_real(outputs[i]) && outputs[i]->count && !out) {
                good = all_finite(outputs[i]);
                t->at.coarse |= !is_double(outputs[i]);
                const onx_str name = onx_session_output(s, i).name;
                snprintf(t->texts[t->count], sizeof t->texts[0], "%.*s", ONX_ARG(name));
                t->names[t->count] = t->texts[t->count];
                t->values[t->count++] = outputs[i];
            } else {
                onx_value_free(outputs[i]);
            }
        }
        if (!good || !search) {
            for (uint32_t i = 0; i < t->count && !good; i++)
                onx_value_free(t->values[i]);
            t->count = good ? t->count : 0;
            if (!search)
                break;
        }
        onx_diag_clear(t->cx);
    }
    onx_session_free(s);
    return good;
}

static void forget_outputs(trial *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        onx_value_free(t->values[i]);
    t->count = 0;
}

static onx_doc *copy_of(onx_ctx *cx, onx_doc *doc)
{
    onx_doc *copy;
    void *root;
    if (onx_doc_new(cx, ONX_KIND_MODEL, &copy) != ONX_OK ||
        onx_message_copy(onx_doc_arena(copy), ONX_KIND_MODEL, onx_doc_model(doc), &root) != ONX_OK)
        return NULL;
    ((struct onx_doc *)copy)->root = root;
    return copy;
}

/* The model with the gradients of `loss` by all real inputs as its last outputs. */
static onx_doc *derive(trial *t, const char *loss, uint32_t *first, char *why, size_t size)
{
    onx_doc *doc = copy_of(t->cx, t->doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_str names[ROOM];
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->input_count && i < ROOM; i++)
        if (t->at.wanted[i])
            names[count++] = onx_view(graph->input[i]->name);
    *first = graph->output_count;
    const onx_grad_options options = {
        .of = onx_str_of(loss), .wrt = names, .wrt_count = count, .checkpoint = t->checkpoint
    };
    if (onx_grad(t->cx, doc, &options) == ONX_OK)
        return doc;
    first_error(t->cx, why, size);
    onx_doc_free(doc);
    return NULL;
}

static bool check_order(trial *t, const char *loss, tally *sum, char *why, size_t size)
{
    uint32_t first, last = onx_doc_model(t->doc)->graph->output_count - 1;
    onx_doc *derived = derive(t, loss, &first, why, size);
    if (!derived)
        return false;
    onx_session *plain = session_of(t->cx, t->doc), *s = session_of(t->cx, derived);
    bool ok = plain && s && compare(t->cx, plain, last, s, first, &t->at, sum, why, size);
    if (!plain || !s)
        first_error(t->cx, why, size);
    onx_session_free(plain);
    onx_session_free(s);
    onx_doc_free(t->doc);
    t->doc = derived;
    return ok;
}

/* A dry run does not look at what bodies that are taken on the way are made of. */
static bool can_be_newer(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options)
{
    onx_retarget_options really = *options;
    onx_doc *copy = copy_of(cx, doc);
    really.dry_run = false;
    const bool can = copy && onx_retarget(cx, copy, &really) == ONX_OK;
    onx_doc_free(copy);
    return can;
}

/* The loss is of double: Cast has its types as numbers from version 6 on. */
static bool cast_can_be_written(trial *t, const onxi_schema *schema)
{
    const onx_opset_version version = { { 0 }, 6 };
    const onx_retarget_options up = { .opset = &version, .opset_count = 1 };
    return schema->domain || schema->since >= 6 || !t->at.coarse || onx_retarget(t->cx, t->doc, &up) == ONX_OK;
}

typedef enum outcome { PASSED, FAILED, NOT_REAL } outcome;

static outcome try_recipe(onx_ctx *cx, const onxi_schema *schema, const gen_recipe *recipe, uint64_t seed, bool twice,
                          tally *sum, char *why, size_t size)
{
    trial *t = calloc(1, sizeof *t);
    const gen_choice choice = { .seed = seed, .vary = seed > 1, .type = { "*", ONX_DOUBLE } };
    outcome result = NOT_REAL;
    if (!t)
        return FAILED;
    t->cx = cx;
    t->checkpoint = seed > 1 ? SEGMENTS : 0;
    if (gen_node_make(schema, recipe, &choice, &t->node) && gen_model(cx, &t->node, NULL, NULL, &t->doc) == ONX_OK) {
        bool real = false, empty = false;
        const onx_opset_version version = { { 0 }, ONXI_GRAD_OPSET };
        const onx_retarget_options up = { .opset = &version, .opset_count = 1, .dry_run = true };
        const bool can = schema->since >= ONXI_GRAD_OPSET || schema->domain || can_be_newer(cx, t->doc, &up);
        if (can && find_outputs(t, t->doc, true) && t->count) {
            for (uint32_t i = 0; i < t->at.count; i++) {
                real |= t->at.wanted[i];
                empty |= t->at.values[i] && !t->at.values[i]->count;
            }
        }
        if (real && !empty) {
            result = FAILED;
            snprintf(why, size, "no memory");
            if (cast_can_be_written(t, schema) && add_loss(t->doc, t->names, t->values, t->count, "loss") &&
                check_order(t, "loss", sum, why, size))
                result = PASSED;
        }
        forget_outputs(t);
        if (result == PASSED && twice && find_outputs(t, t->doc, false) && t->count > 1) {
            uint32_t from = 0; /* the gradients stand behind the loss */
            while (from < t->count && strcmp(t->names[from], "loss") != 0)
                from++;
            tally second = { 0 };
            t->checkpoint = ONX_GRAD_CHECKPOINT_SQRT;
            if (from + 1 < t->count) {
                result = FAILED;
                if (add_loss(t->doc, t->names + from + 1, t->values + from + 1, t->count - from - 1, "loss2") &&
                    check_order(t, "loss2", &second, why, size))
                    result = PASSED;
                if (result == FAILED)
                    memmove(why + 8, why, size - 9), memcpy(why, "second: ", 8);
                sum->kinks += second.kinks;
                sum->compared += second.compared;
            }
            forget_outputs(t);
        }
    }
    onx_diag_clear(cx);
    close_point(&t->at);
    onx_doc_free(t->doc);
    free(t);
    return result;
}

/* Does the body of an operator round to numbers of few bits? The derivative of that is zero by rule, and that of its
 * scale, which differences see, too. */
static bool rounds(const onxi_schema *schema)
{
    for (const onxi_body_part *p = schema->body_parts; p && p->nodes; p++)
        if (strstr(p->nodes, "DynamicQuantizeLinear ") || strstr(p->nodes, "= QuantizeLinear "))
            return true;
    return false;
}

/* The reason that the table of rules gives for an operator that has none; NULL: it has one. */
static const char *why_without(uint32_t op)
{
    for (uint32_t i = 0; i < onxi_grad_rule_count; i++)
        if (onxi_grad_rules[i].op == op && onxi_grad_rules[i].kind == ONXI_GRAD_NONE)
            return onxi_grad_rules[i].text;
    return NULL;
}

/* Does one of the texts below test the operator? */
static bool in_texts(const char *name);

static void test_gen_grad__every_version_agrees_with_differences(void **state)
{
    (void)state;
    unsigned failed = 0, passed = 0, other = 0;
    tally sum = { 0 };
    char why[400];
    const char *only = getenv("ONX_TEST_OPERATOR");
    static unsigned agreed[ONXI_ID_END];
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const bool standard = onxi_operator_is_standard((onxi_op_id)(i + 1));
        onx_ctx *cx = onx_ctx_new(NULL);
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            if (schema->flags & ONXI_OP_DEPRECATED || gen_lacks_library(schema->name) ||
                (only && strcmp(only, schema->name) != 0))
                continue;
            if (!standard && (!schema->body_parts || rounds(schema)))
                continue; /* operators of other domains have no rules but those of their bodies */
            const gen_recipe *recipe;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (uint64_t seed = 1; seed < 4; seed++) {
                    tally one = { 0 };
                    snprintf(why, sizeof why, "?");
                    const outcome o = try_recipe(cx, schema, recipe, seed, seed == 1, &one, why, sizeof why);
                    const bool expected = why_without(i + 1) != NULL;
                    passed += o == PASSED;
                    agreed[i + 1] += o == PASSED;
                    other += o == NOT_REAL;
                    sum.compared += one.compared;
                    sum.kinks += one.kinks;
                    sum.worst = one.worst > sum.worst ? one.worst : sum.worst;
                    sum.worst_rough = one.worst_rough > sum.worst_rough ? one.worst_rough : sum.worst_rough;
                    if (o == FAILED && !expected) {
                        failed++;
                        print_error("%s-%d <%s> %s (seed %d): %s\n", schema->name, schema->since, recipe->attributes,
                                    recipe->operands, (int)seed, why);
                        break;
                    }
                }
        }
        onx_ctx_free(cx);
    }
    for (uint32_t i = 0; i < onxi_operator_count && !only; i++)
        if (why_without(i + 1))
            print_message("%s has no gradient: %s\n", onxi_operators[i].name, why_without(i + 1));
    unsigned others = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        others += agreed[i + 1] && !onxi_operator_is_standard((onxi_op_id)(i + 1));
    print_message("%u operators of other domains have the gradients of their bodies\n", others);
    assert_true(only || !onxi_domain_newest(onx_str_of("com.microsoft")) || others > 30);
    print_message("Dropout is tested where it drops nothing: it draws other numbers in every run\n");
    print_message(
        "%u models agree, %u elements compared, %u at kinks left out, largest relative error %.2g, of numbers of float %.2g; %u models not of real numbers\n",
        passed, sum.compared, sum.kinks, sum.worst, sum.worst_rough, other);
    assert_int_equal(failed, 0);
    for (uint32_t i = 0; i < onxi_grad_rule_count && !only; i++) {
        const onxi_grad_rule *rule = &onxi_grad_rules[i];
        const bool known =
            rule->kind == ONXI_GRAD_PART || rule->kind == ONXI_GRAD_LOWER || rule->kind == ONXI_GRAD_CODE;
        if (known && in_texts(onxi_operators[rule->op - 1].name))
            continue;
        if (known && !agreed[rule->op]++) {
            print_error("no model has tested the gradient of %s\n", onxi_operators[rule->op - 1].name);
            failed++;
        }
    }
    if (!only) {
        assert_int_equal(failed, 0);
        assert_true(passed > 400);
        assert_true(sum.compared > 10 * sum.kinks);
    }
}

/* ---- what recipes do not say ---- */

#define HEAD_OF(version)                                                                                               \
    "<ir_version: 10, opset_import: [\"\" : " version                                                                  \
    ", \"f\" : 1, \"ai.onnx.preview.training\" : 1, \"ai.onnx.ml\" : 3]>\n"
#define HEAD HEAD_OF("21")

/* Inputs are of double, N is 3, M is 2 and S is 1. */
#define PLACES                                                                                                         \
    "<float[2, 2, 3, 2] places = {-0.9, -0.7, 0.13, 0.41, 0.77, 0.93, -1.3, 0.2, 1.6, -1.2, 0.31, -2.9, "              \
    "0.0, 0.05, -0.45, 0.6, 0.9, -0.2, 3.1, 0.3, -0.6, -0.33, 0.2, 1.1}>"
#define BOXES                                                                                                          \
    "<int64[3] at = {0, 1, 0}, double[3, 4] boxes = {0.3, 0.4, 3.7, 4.9, -2.1, 1.2, 2.2, 9.3, 1.1, 2.2, 2.4, 6.7}>"
#define LINEAR(post)                                                                                                                                \
    "ai.onnx.ml.LinearRegressor <coefficients = [0.5, -0.2, 0.1, 0.3, 0.05, -0.25], intercepts = [0.4, 0.3], targets = 2, post_transform = \"" post \
    "\"> "
#define CLASSES "classlabels_ints = [7, 8], "
#define MACHINE(kernel)                                                                                                                                                                              \
    "ai.onnx.ml.SVMRegressor <n_supports = 2, support_vectors = [1.0, 0.1, 0.5, -1.0, 0.4, 0.3], coefficients = [1.0, -0.5], rho = [0.25], kernel_params = [0.4, 0.3, 3.0], kernel_type = \"" kernel \
    "\"> "
#define VOTER(more)                                                                                                                       \
    "ai.onnx.ml.SVMClassifier <support_vectors = [1.0, 0.1, 0.5, -1.0, 0.4, 0.3, 0.2, 0.9, -0.6], kernel_params = [0.4, 0.3, 3.0], " more \
    "> (x) "
static const char
    *const texts[] = {
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { s = ReduceSum <keepdims = 0> (a) z = Constant <value = double {0.0}> () c = Less (s, z)"
        " y = If <then_branch = t () => (double[3] u) { u = Mul (a, b) }, else_branch = e () => (double[3] v) { w = Sin (a) v = Mul (w, w) }> (c) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y, double[4, 3] ys) { n = Constant <value_int = 4> () t = Constant <value = bool {1}> ()"
        " y, ys = Loop <body = l (int64 i, bool c, double[3] x) => (bool d, double[3] x2, double[3] o) { d = Identity (c) p = Mul (x, b) x2 = Sin (p) f = Cast <to = 11> (i) q = Add (f, x2) o = Mul (q, a) }> (n, t, a) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { n = Constant <value_int = 9> () t = Constant <value = bool {1}> () zero = Constant <value_int = 0> ()"
        " y, k = Loop <body = l (int64 i, bool c, double[3] x, int64 j) => (bool d, double[3] x2, int64 j2) { two = Constant <value_int = 2> () j2 = Add (j, two) six = Constant <value_int = 6> () d = Less (j2, six)"
        " e = Greater (j2, two) x2 = If <then_branch = t1 () => (double[3] u) { u = Mul (x, b) }, else_branch = e1 () => (double[3] v) { v = Tanh (x) }> (e) }> (n, t, a, zero)  }",
        HEAD
        "g (double[2] h, double[N, 2] x, double[2] w) => (double[2] y, double[N, 2] ys) {"
        " y, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], body = b (double[2] s, double[2] t) => (double[2] s2, double[2] o) { p = Mul (s, w) q = Add (p, t) s2 = Tanh (q) o = Mul (s2, t) }> (h, x) }",
        HEAD
        "g (double[2] h, double[2, N] x) => (double[2] y, double[2, N] ys) {"
        " y, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = b (double[2] s, double[2] t) => (double[2] s2, double[2] o) { q = Mul (s, t) s2 = Cos (q) o = Identity (q) }> (h, x) }",
        HEAD "g (double[2] v) => (double[3, 4] y) <int64[3] i = {0, 3, 1}, int64 d = {4}> { y = OneHot (i, d, v) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[] y, double[2, 3] r) { s = SequenceConstruct (a, b) i = Constant <value_int = -1> () t = SequenceAt (s, i) c = ConcatFromSequence <axis = 0> (s)"
        " r = ConcatFromSequence <axis = 0, new_axis = 1> (s) p = Sin (c) u = Mul (t, b) v = ReduceSum <keepdims = 0> (u) w = ReduceMax <keepdims = 0> (p) y = Mul (v, w) }",
        HEAD
        "g (double[N, M] a, double[N, M] b) => (double[] y, double[5, M] z) { l = Constant <value_ints = [1, 2]> () s = SplitToSequence <axis = 0> (a, l) k = SplitToSequence <axis = -1, keepdims = 0> (b) o = Constant <value_int = 1> ()"
        " e = SequenceErase (s, o) f = SequenceInsert (e, b) h = SequenceInsert (f, a, o) m = Constant <value_int = -2> () n = SequenceErase (h, m) z0 = ConcatFromSequence <axis = 0> (h) q = Constant <value_ints = [0]> () t = Constant <value_ints = [5]> ()"
        " z1 = Slice (z0, q, t) z = Exp (z1) x = SequenceAt (k, o) w = SequenceAt (n, o) ww = Mul (w, w) y1 = ReduceSum <keepdims = 0> (x) y2 = ReduceSum <keepdims = 0> (ww) y = Mul (y1, y2) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"cubic\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"linear\", padding_mode = \"border\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <padding_mode = \"reflection\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <padding_mode = \"reflection\", align_corners = 1> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"cubic\", padding_mode = \"border\", align_corners = 1> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <mode = \"nearest\", padding_mode = \"reflection\"> (x, places) }",
        HEAD "g (double[M, 2, 4, N] x) => (double[M, 2, 2, 3] y) " PLACES
             " { y = GridSample <align_corners = 1> (x, places) }",
        /* Places of Slice that are known at run time alone: from the end, outside, of no or all axes. */
        HEAD
        "g (double[N, 4] a, double[N, M] b) => (double[N, v] y, double[w, 4] z, double[p, q] u) { s = Shape <start = 0, end = 1> (a) t = Shape (a) o = Constant <value_ints = [1]> () m = Neg (s) e = Add (s, s)"
        " two = Sub (s, o) c = Sin (a) y1 = Slice (c, m, e, o, o) y = Mul (y1, y1) z1 = Slice (c, o, e) z = Exp (z1) from = Neg (t) to = Neg (two) i = Concat <axis = 0> (to, o) u1 = Slice (c, from, i) u = Mul (u1, u1) }",
        HEAD
        "g (double[N, 4] a) => (double[v, 4] y, double[N, w] z) { s = Shape (a) n = Shape <start = 0, end = 1> (a) f = Cast <to = 6> (n) g1 = Constant <value = int32[1] {1}> () d = Sub (f, g1) m = Constant <value = int32[1] {-1}> ()"
        " x = Sin (a) y1 = Slice (x, f, d) y2 = Slice (x, d, f) y = Concat <axis = 0> (y1, y2) z1 = Slice (x, d, f, m) z = Exp (z1) }",
        HEAD "g (double[3] a) => (double[3] y) { o = Optional (a) p = OptionalGetElement (o) y = Mul (p, a) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { y = f.F (a, b) }\n<domain: \"f\", opset_import: [\"\" : 21]> F (x, z) => (r) { s = Softmax (x) t = ReduceSum <keepdims = 1> (s) u = Sub (z, t) r = Mul (u, s) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { m = Mul (a, b) c = Mul (m, m) l = ReduceSum <keepdims = 0> (c) da = ai.onnx.preview.training.Gradient <xs = [\"a\"], zs = [\"b\"], y = \"l\"> (a, b) y = Sin (da) }",
        HEAD
        "g (double[3] a, double[3] b) => (double[3] y) { m = Exp (a) l = ReduceSum <keepdims = 0> (m) da = ai.onnx.preview.training.Gradient <xs = [\"a\"], y = \"l\"> (b) y = Mul (da, a) }",
        HEAD
        "g (double[N, M] a, double[M] b, double[N, S] c) => (double[N, M] y) { p = Add (a, b) q = Mul (p, c) one = Constant <value_ints = [1]> () r = MatMul (a, b) s = Unsqueeze (r, one) t = Mul (q, s) y = Div (t, c) }",
        HEAD
        "g (double[S, M, N, N] x, double[3, 2, 2, 2] w) => (double[S, 3, M, M] y, double[] m) { y = Conv (x, w) p, i = MaxPool <kernel_shape = [2, 2]> (x) q = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1, pads = [1, 0, 0, 1]> (x) s = ReduceSum <keepdims = 0> (p) t = ReduceMean <keepdims = 0> (q) m = Mul (s, t) }",
        HEAD
        "g (double[M, N, N] x) => (double[M, N, N] y) { c = Einsum <equation = \"bij,bjk->bik\"> (x, x) d = Einsum <equation = \"bij->i\"> (x) e = Einsum <equation = \"...j,j->...j\"> (c, d) y = Add (e, x) }",
        HEAD
        "g (double[S, M, 4, 4] x) => (double[S, M, u, v] y) { f = Constant <value_floats = [1.0, 1.0, 1.5, 0.75]> () y = Resize <mode = \"cubic\"> (x, , f) }",
        HEAD
        "g (double[S, M, 4] x) => (double[S, M, v] y) { n = Constant <value_ints = [7]> () y = Resize <mode = \"linear\", axes = [2], coordinate_transformation_mode = \"align_corners\"> (x, , , n) }",
        HEAD
        "g (double[N, S, M] x, double[2, 4, 2] w, double[2, 4, 4] r, double[2, 8] b, double[2, S, 4] h) => (double[N, 2, S, 4] y, double[2, S, 4] z)"
        " { y, z = RNN <direction = \"bidirectional\", hidden_size = 4, activations = [\"Tanh\", \"Sigmoid\"]> (x, w, r, b, , h) }",
        /* Fourier transforms: filled up and cut, of one side, back, and back from one side; of real and complex
           numbers. */
        HEAD
        "g (double[N, 5, 2] x, double[N, 5, 1] r) => (double[] y) { five = Constant <value_int = 5> () eight = Constant <value_int = 8> () three = Constant <value_int = 3> () at = Constant <value_int = 1> ()"
        " a = DFT (x, eight) b = DFT <onesided = 1> (r, three, at) c = DFT <inverse = 1> (x, three) d = DFT <inverse = 1> (r, eight) e = DFT <onesided = 1> (r) f = DFT <inverse = 1, onesided = 1> (x)"
        " h = DFT <inverse = 1, onesided = 1> (x, three) i = DFT <inverse = 1, onesided = 1> (x, five, at) l = DFT (r, five, at)"
        " a1 = ReduceSumSquare <keepdims = 0> (a) b1 = ReduceSumSquare <keepdims = 0> (b) c1 = ReduceL2 <keepdims = 0> (c) d1 = ReduceL2 <keepdims = 0> (d) e1 = ReduceL2 <keepdims = 0> (e) f1 = ReduceSumSquare <keepdims = 0> (f)"
        " h1 = ReduceSumSquare <keepdims = 0> (h) i1 = ReduceL2 <keepdims = 0> (i) l1 = ReduceSumSquare <keepdims = 0> (l) y = Sum (a1, b1, c1, d1, e1, f1, h1, i1, l1) }",
        HEAD_OF(
            "17") "g (double[4, N, M, 2] x, double[4, N, M, 1] r) => (double[5, N, M, 2] y, double[4, 2, M, 2] z, double[4, N, M, 2] u, double[4, 4, M, 1] v) { five = Constant <value_int = 5> () y = DFT <axis = 0> (x, five) z = DFT <onesided = 1> (r)"
                  " u = DFT <axis = 2, inverse = 1> (x) v = DFT <inverse = 1, onesided = 1> (x) }",
        HEAD
        "g (double[M, 11, 1] x, double[M, 11] s, double[M, 11, 2] c, double[5] w) => (double[M, 4, 3, 2] y, double[M, 1, 11, 2] z, double[M, 3, 5, 2] u) { three = Constant <value_int = 3> () two = Constant <value_int = 2> () five = Constant <value_int = 5> ()"
        " y = STFT (x, two, w, five) z = STFT <onesided = 0> (s, two) u = STFT <onesided = 0> (c, three, w) }",
        HEAD_OF(
            "18") "g (double[M, 9, 1] x) => (double[M, 3, 3, 2] y) { two = Constant <value_int = 2> () four = Constant <value_int = 4> () y = STFT (x, two, , four) }",
        /* Regions: of an average and the largest, with as many points as said or as it takes, beyond the edges. */
        HEAD
        "g (double[M, 2, 6, 5] x, double[3, 4] moved) => (double[3, 2, 2, 3] y) " BOXES
        " { b = Add (boxes, moved) y = RoiAlign <output_height = 2, output_width = 3, spatial_scale = 0.7> (x, b, at) }",
        HEAD
        "g (double[M, 2, 6, 5] x, double[3, 4] moved) => (double[3, 2, 2, 3] y) " BOXES
        " { b = Add (boxes, moved) y = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2, coordinate_transformation_mode = \"output_half_pixel\"> (x, b, at) }",
        HEAD "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 3] y) " BOXES
             " { y = RoiAlign <output_height = 2, output_width = 3, mode = \"max\"> (x, boxes, at) }",
        HEAD
        "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 3] y) " BOXES
        " { y = RoiAlign <output_height = 2, output_width = 3, mode = \"max\", sampling_ratio = 3> (x, boxes, at) }",
        HEAD_OF("10") "g (double[M, 2, 6, 5] x) => (double[3, 2, 2, 2] y) " BOXES
                      " { y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, boxes, at) }",
        HEAD
        "g (double[M, 4, 5, 6] x, double[6, 2, 2, 3] w, double[M, 24, 3, 1] o, double[M, 12, 3, 1] m, double[6] b) => (double[M, 6, 3, 1] y) { y = DeformConv <group = 2, offset_group = 2, strides = [2, 2], pads = [1, 0, 0, 0], dilations = [1, 2]> (x, w, o, b, m) }",
        HEAD
        "g (double[M, 2, 6] x, double[3, 2, 2] w, double[M, 2, 5] o) => (double[M, 3, 5] y) { y = DeformConv (x, w, o) }",
        HEAD
        "g (double[S, 2, 3, 3, 3] x, double[1, 1, 2, 2, 2] w, double[S, 24, 2, 2, 2] o) => (double[S, 2, 2, 2, 2] y) { ww = Concat <axis = 0> (w, w) y = DeformConv <group = 2> (x, ww, o) }",
        /* Scales of a tensor, of an axis, and of blocks of which the last is short. */
        HEAD
        "g (float[S] a, float[3] b, float[3, 3] c, float[2, 5] d) => (float[3, 5] y, float[3, 5] z, float[3, 5] u, float[3, 5] v)"
        " <int8[3, 5] x = {1, -2, 3, 4, -5, 6, 7, -8, 9, 1, 2, 3, -4, 5, 6}, int8 p = {3}, int8[3, 3] q = {1, 2, 0, -1, -2, 3, 1, 0, 2}>"
        " { y = DequantizeLinear (x, a, p) z = DequantizeLinear <axis = 0> (x, b) u = DequantizeLinear <axis = -1, block_size = 2> (x, c, q) v = DequantizeLinear <axis = 0, block_size = 2> (x, d) }",
        /* ai.onnx.ml: what scores become, kernels of support vectors, norms. */
        HEAD
        "g (double[N, 3] x) => (float[N, 2] y, float[N, 2] z, float[N, 2] u, float[N, 2] v) { c = Tanh (x) y = " LINEAR(
            "NONE") "(c) z = " LINEAR("SOFTMAX") "(c) u = " LINEAR("LOGISTIC") "(c) v = " LINEAR("SOFTMAX_ZERO") "(c) }",
        HEAD
        "g (float[N, 2] x) => (float[N, 2] y) { t = Constant <value = float {0.2}> () h = Constant <value = float {0.5}> () s = Sigmoid (x) p = Mul (s, t) q = Add (p, h)"
        " y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 0.0, 0.0, -1.0], intercepts = [-0.4, 1.0], targets = 2, post_transform = \"PROBIT\"> (q) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 2] y, float[N, 2] z, float[N, 2] u) { l, y = ai.onnx.ml.LinearClassifier <" CLASSES
        "coefficients = [0.5, -0.2, 0.1]> (x)"
        " m, z = ai.onnx.ml.LinearClassifier <" CLASSES
        "coefficients = [0.5, -0.2, 0.1], intercepts = [0.2], post_transform = \"SOFTMAX\"> (x)"
        " n, u = ai.onnx.ml.LinearClassifier <classlabels_strings = [\"a\", \"b\"], coefficients = [0.5, -0.2, 0.1, 0.3, 0.7, -0.4], post_transform = \"LOGISTIC\"> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 1] y, float[N, 1] z, float[N, 1] u, float[N, 1] v, float[N, 1] w) { y = " MACHINE(
            "LINEAR") "(x) z = " MACHINE("POLY") "(x) u = " MACHINE("RBF") "(x) v = " MACHINE("SIGMOID") "(x)"
                                                                                                         " w = ai.onnx.ml.SVMRegressor <coefficients = [1.0, -0.5, 0.3], rho = [0.25], post_transform = \"LOGISTIC\"> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z, float[N, 3] u, float[N, 3] v, float[N, 3] w, float[N, 4] t) { y = ai.onnx.ml.Normalizer <norm = \"MAX\"> (x) z = ai.onnx.ml.Normalizer <norm = \"L1\"> (x) u = ai.onnx.ml.Normalizer <norm = \"L2\"> (x)"
        " v = ai.onnx.ml.Scaler <offset = [1.0]> (x) w = ai.onnx.ml.Imputer <imputed_value_floats = [1.0], replaced_value_float = nan> (x) t = ai.onnx.ml.FeatureVectorizer <inputdimensions = [4]> (x) }",
        HEAD
        "g (float[N, 3] x) => (float[N, 3] y, float[N, 2] z, float[N, 2] u) { l, y = " VOTER("classlabels_ints = [0, 1, 2], vectors_per_class = [1, 1, 1], coefficients = [1.0, -0.5, 0.3, 0.7, 0.2, -0.9], rho = [0.2, 0.1, -0.2], kernel_type = \"POLY\"") "m, z = " VOTER(
            "classlabels_ints = [4, 5], vectors_per_class = [1, 2], coefficients = [1.0, -0.5, 0.3], rho = [0.25], kernel_type = \"RBF\"") " n, u = ai.onnx.ml.SVMClassifier <classlabels_strings = [\"a\", \"b\"], coefficients = [0.5, -0.2, 0.1, 0.3, 0.7, -0.4], rho = [0.1], post_transform = \"LOGISTIC\"> (x) }",
        HEAD_OF(
            "23") "g (float[M, N, 12] x, float[M, N, 2] c, float[M, N, 2] s, float[9, 1] d, float[9, 1] e) => (float[M, N, 12] y, float[M, N, 12] z) <int64[2, 3] at = {1, 0, 8, 1, 1, 3}> { y = RotaryEmbedding <num_heads = 3> (x, c, s)"
                  " z = RotaryEmbedding <num_heads = 3, rotary_embedding_dim = 2, interleaved = 1> (x, d, e, at) }",
        HEAD_OF(
            "27") "g (float[M, 3, 5] x, float[3, 1, 3] w, float[3] b, float[M, 3, 2] p) => (float[M, 3, 5] y, float[M, 3, 2] s, float[M, 3, 5] z) { y, s = CausalConvWithState <activation = \"silu\"> (x, w, b, p) z, t = CausalConvWithState (x, w) }",
        HEAD_OF(
            "27") "g (float[S, 3, 8] q, float[S, 3, 4] k, float[S, 3, 6] v, float[S, 3, 4] d, float[S, 3, S] b) => (float[S, 3, 12] y, float[S, 2, 2, 3] s) { y, s = LinearAttention <q_num_heads = 4, kv_num_heads = 2, scale = 0.7> (q, k, v, , d, b) }",
        HEAD_OF(
            "20") "g (double[M, 3, 4] t) => (double[M, 2, 3, 2, 3] y) { n = Constant <value_ints = [2, 3, 2, 3, 2]> () y = AffineGrid <align_corners = 1> (t, n) }",
        HEAD
        "g (double[N, M, 2] x, double[1, 12, 2] w, double[1, 12, 4] r, double[1, 24] b) => (double[N, 1, M, 4] y) <int32[2] n = {3, 2}>"
        " { y = GRU <direction = \"reverse\", hidden_size = 4, linear_before_reset = 1, clip = 0.7> (x, w, r, b, n) }",
        HEAD
        "g (double[M, N, 2] x, double[1, 16, 2] w, double[1, 16, 4] r, double[1, 32] b, double[1, 12] p) => (double[M, N, 1, 4] y, double[M, 1, 4] z, double[M, 1, 4] c) <int32[2] n = {3, 2}>"
        " { y, z, c = LSTM <hidden_size = 4, layout = 1> (x, w, r, b, n, , , p) }",
    };

static bool in_texts(const char *name)
{
    char node[64];
    snprintf(node, sizeof node, "= %s ", name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(texts[i], node))
            return true;
    return false;
}

/* Inputs of real numbers, of the sizes that a text declares. */
static bool open_declared(onx_ctx *cx, onx_doc *doc, point *p)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    memset(p, 0, sizeof *p);
    p->count = graph->input_count;
    for (uint32_t i = 0; i < p->count && i < ROOM; i++) {
        int64_t dims[8];
        double elements[512];
        const onx_tensor_shape *shape = graph->input[i]->type->tensor_type->shape;
        uint64_t count = 1;
        for (uint32_t k = 0; k < shape->dim_count; k++) {
            const onx_dimension *d = shape->dim[k];
            dims[k] = ONX_HAS(dimension, d, dim_value)          ? d->dim_value
                      : onx_str_is(onx_view(d->dim_param), "N") ? 3
                      : onx_str_is(onx_view(d->dim_param), "M") ? 2
                                                                : 1;
            count *= (uint64_t)dims[k];
        }
        for (uint64_t e = 0; e < count && e < 512; e++)
            elements[e] = moved(sin(3.1 * (double)e + 1.3 * i) + 0.2, e + 5 * i, 0);
        const onx_dtype dtype = (onx_dtype)graph->input[i]->type->tensor_type->elem_type;
        if (onx_value_new_tensor(cx, dtype, shape->dim_count, dims, &p->values[i]) != ONX_OK)
            return false;
        for (uint64_t e = 0; e < count; e++)
            set(p->values[i], e, elements[e]);
        p->wanted[i] = true;
        p->coarse |= dtype != ONX_DOUBLE;
    }
    return true;
}

static bool try_text(const char *text, tally *sum, char *why, size_t size)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    trial *t = calloc(1, sizeof *t);
    bool ok = t && onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &t->doc) == ONX_OK;
    if (ok) {
        t->cx = cx;
        ok = open_declared(cx, t->doc, &t->at) && find_outputs(t, t->doc, false) && t->count;
    }
    ok = ok && add_loss(t->doc, t->names, t->values, t->count, "loss") && check_order(t, "loss", sum, why, size);
    if (!ok && onx_diag_count(cx))
        first_error(cx, why, size);
    if (t) {
        forget_outputs(t);
        close_point(&t->at);
        onx_doc_free(t->doc);
    }
    free(t);
    onx_ctx_free(cx);
    return ok;
}

static void test_gen_grad__subgraphs_functions_and_open_shapes(void **state)
{
    (void)state;
    tally sum = { 0 };
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char why[400] = "?";
        const unsigned before = sum.nonzero;
        bool ok = try_text(texts[i], &sum, why, sizeof why);
        if (ok && sum.nonzero == before) {
            snprintf(why, sizeof why, "all slopes are zero, which says nothing");
            ok = false;
        }
        if (!ok) {
            print_error("text %d: %s\n", (int)i, why);
            failed++;
        }
    }
    print_message("%u elements compared, %u at kinks left out, largest relative error %.2g, of numbers of float %.2g\n",
                  sum.compared, sum.kinks, sum.worst, sum.worst_rough);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_grad__subgraphs_functions_and_open_shapes),
        cmocka_unit_test(test_gen_grad__every_version_agrees_with_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
