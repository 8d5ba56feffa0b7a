/* grad_differences.h - compares gradients of models with finite differences. */
#ifndef ONXI_TEST_GRAD_DIFFERENCES_H
#define ONXI_TEST_GRAD_DIFFERENCES_H

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

static void close_point(point *p)
{
    for (uint32_t i = 0; i < ROOM; i++)
        onx_value_free(p->values[i]);
}

static onx_session *session_of(onx_ctx *cx, onx_doc *doc)
{
    onx_session *s = NULL;
    const onx_session_options options = { .verify = true, .threads = 1, .memory = 64 << 20 };
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
static const precision fine = { 1e-4, 1e-4, 2e-2, 2e-5 }, rough = { 0x1p-6, 1e-2, 2e-2, 1e-2 };

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

/* ---- one model ---- */

typedef struct trial {
    onx_ctx *cx;
    onx_doc *doc;
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

static void forget_outputs(trial *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        onx_value_free(t->values[i]);
    t->count = 0;
}

/* What the model gives at the point, as far as it is of real numbers, in t->values; false where some of it is no
 * number. Outputs of a node of `schema` that are not differentiable are left out; NULL: any model. */
static bool take_outputs(trial *t, onx_session *s, const onxi_schema *schema)
{
    onx_value *outputs[ROOM] = { NULL };
    bool good = onx_session_run(s, t->cx, (const onx_value *const *)t->at.values, outputs) == ONX_OK;
    t->count = 0;
    for (uint32_t i = 0; i < ROOM; i++) {
        const onxi_port *port = schema ? onxi_port_at(schema->outputs, i) : NULL;
        const bool out = port && port->flags & ONXI_PORT_NONDIFF && !is_beyond_standard(schema);
        if (!good || !is_real(outputs[i]) || !outputs[i]->count || out) {
            onx_value_free(outputs[i]);
            continue;
        }
        good = all_finite(outputs[i]);
        t->at.coarse |= !is_double(outputs[i]);
        snprintf(t->texts[t->count], sizeof t->texts[0], "%.*s", ONX_ARG(onx_session_output(s, i).name));
        t->names[t->count] = t->texts[t->count];
        t->values[t->count++] = outputs[i];
    }
    if (!good)
        forget_outputs(t);
    onx_diag_clear(t->cx);
    return good;
}

static bool find_outputs(trial *t, onx_doc *doc)
{
    onx_session *s = session_of(t->cx, doc);
    const bool good = s && take_outputs(t, s, NULL);
    onx_session_free(s);
    return good;
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

/* ---- what is kept for the backward pass ---- */

typedef struct reads { /* of one value */
    unsigned numbers, shapes;
} reads;

static void count_reads(const onx_graph *graph, uint32_t from, onx_str name, reads *r);

/* Does the node look at its input k for its shape, or its type, alone? */
static bool reads_shape(const onx_node *node, uint32_t k)
{
    static const char *const first[] = {
        "Shape", "Size", "SequenceLength", "EyeLike", "RandomNormalLike", "RandomUniformLike"
    };
    const onx_str op = onx_view(node->op_type);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (onx_str_is(op, first[i]))
            return k == 0;
    if (onx_str_is(op, "CastLike"))
        return k == 1;
    const onx_attribute *body = onx_str_is(op, "SequenceMap") ? onx_node_attribute(node, "body") : NULL;
    reads inner = { 0, 0 };
    if (!body || !body->g || k >= body->g->input_count)
        return false;
    count_reads(body->g, 0, onx_view(body->g->input[k]->name), &inner);
    return !inner.numbers;
}

/* By the nodes of a graph from some place on, and in their subgraphs. */
static void count_reads(const onx_graph *graph, uint32_t from, onx_str name, reads *r)
{
    for (uint32_t i = from; i < graph->node_count; i++) {
        const onx_node *node = graph->node[i];
        for (uint32_t k = 0; k < node->input_count; k++)
            if (onx_str_equal(onx_view(node->input[k]), name))
                (*(reads_shape(node, k) ? &r->shapes : &r->numbers))++;
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (node->attribute[k]->slot == ONX_SLOT_G && node->attribute[k]->g)
                count_reads(node->attribute[k]->g, 0, name, r);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        r->numbers += from == 0 && onx_str_equal(onx_view(graph->output[i]->name), name);
}

/* A value that nodes up to `loss` make is not to be kept for what stands behind it where that asks for its shape alone:
 * the shape can be kept. */
static bool keeps_no_value_for_its_shape(const onx_graph *graph, const char *loss, char *why, size_t size)
{
    uint32_t behind = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (onx_str_is(onx_view(graph->node[i]->output[0]), loss))
            behind = i + 1;
    for (uint32_t i = 0; i < behind; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++) {
            const onx_str name = onx_view(graph->node[i]->output[k]);
            reads r = { 0, 0 };
            if (name.len)
                count_reads(graph, behind, name, &r);
            if (r.shapes && !r.numbers) {
                snprintf(why, size, "%.*s, of %.*s, is kept for its shape alone", ONX_ARG(name),
                         ONX_ARG(onx_view(graph->node[i]->op_type)));
                return false;
            }
        }
    return true;
}

static bool check_order(trial *t, const char *loss, tally *sum, char *why, size_t size)
{
    uint32_t first, last = onx_doc_model(t->doc)->graph->output_count - 1;
    onx_doc *derived = derive(t, loss, &first, why, size);
    if (!derived)
        return false;
    onx_session *plain = session_of(t->cx, t->doc), *s = session_of(t->cx, derived);
    bool ok = plain && s && compare(t->cx, plain, last, s, first, &t->at, sum, why, size) &&
              (t->checkpoint || keeps_no_value_for_its_shape(onx_doc_model(derived)->graph, loss, why, size));
    if (!plain || !s)
        first_error(t->cx, why, size);
    onx_session_free(plain);
    onx_session_free(s);
    onx_doc_free(t->doc);
    t->doc = derived;
    return ok;
}

#endif
