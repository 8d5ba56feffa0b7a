/* gen_graph.c - random models of several nodes. */
#include "gen/gen.h"

#include <onx/infer.h>

#include "kernel/kernel.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COUNT = 2048, MOST_IN_NETS = 1 << 15 }; /* elements of a value that further nodes read */

/* ---- making nodes ---- */

typedef struct value_known {
    char name[24];
    onx_dtype dtype;
    uint32_t rank;
    int64_t dims[GEN_RANK];
} value_known;

typedef struct builder {
    gen_graph *out;
    gen_random *random;
    value_known known[64];
    uint32_t known_count;
    bool net; /* what fast kernels do, one node after the other */
    gen_node last;
} builder;

/* What a value is, if it is a tensor of known and small size. */
static bool read_type(const onx_type *type, uint64_t most, value_known *v)
{
    uint64_t count = 1;
    if (!type || !ONX_HAS(type, type, tensor_type) || !type->tensor_type->shape ||
        type->tensor_type->shape->dim_count > GEN_RANK || !type->tensor_type->elem_type)
        return false;
    const onx_tensor_shape *shape = type->tensor_type->shape;
    v->dtype = (onx_dtype)type->tensor_type->elem_type;
    v->rank = shape->dim_count;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!ONX_HAS(dimension, shape->dim[i], dim_value) || shape->dim[i]->dim_value > (int64_t)most)
            return false;
        v->dims[i] = shape->dim[i]->dim_value;
        count *= (uint64_t)v->dims[i];
    }
    return count <= most;
}

static bool is_same_type(const value_known *v, const gen_operand *o)
{
    if (o->kind != GEN_TENSOR || o->fill != GEN_SMALL || o->dtype != v->dtype || o->rank != v->rank)
        return false;
    for (uint32_t i = 0; i < v->rank; i++)
        if (o->dims[i] != v->dims[i])
            return false;
    return true;
}

/* Is the operator one that fast kernels do, alone, in passing, or in a layout of theirs? */
static bool is_of_nets(const onxi_operator *op)
{
    for (size_t t = 0; onxi_kernel_tables[t] && !*op->domain; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            if (strcmp(k->op, op->rows->name) == 0 && !k->domain &&
                (k->preference || k->post_op != ONX_POST_NONE || k->flags & ONX_KERNEL_FLAT))
                return true;
    return false;
}

static const onxi_operator *draw_name(const builder *b)
{
    const onxi_operator *op = &onxi_operators[gen_below(b->random, onxi_operator_count)];
    for (int tries = 0; tries < 64 && b->net && !is_of_nets(op); tries++)
        op = &onxi_operators[gen_below(b->random, onxi_operator_count)];
    return op;
}

/* Any operator at the versions that the model imports, with one of its recipes; NULL when the draw has none. */
static const onxi_schema *draw_operator(builder *b, const gen_recipe **recipe)
{
    const onxi_operator *op = draw_name(b);
    const onxi_schema *schema = op->rows;
    while (schema->name && schema->since > (*op->domain ? 100 : b->out->opset))
        schema++;
    if (!schema->name || schema->flags & ONXI_OP_DEPRECATED)
        return NULL;
    uint32_t count = 0;
    while (gen_recipe_for(schema, count))
        count++;
    *recipe = gen_recipe_for(schema, gen_below(b->random, count));
    return *recipe ? schema : NULL;
}

/* The type of a value for the constraint of the first input, or any type for any constraint. */
static void draw_type(builder *b, const onxi_schema *schema, const value_known *from, gen_choice *choice)
{
    uint32_t count = 0;
    const onxi_port *port = onxi_port_at(schema->inputs, 0);
    if (from && port) {
        choice->type = (gen_type_choice){ port->type, from->dtype };
        return;
    }
    if (b->net) {
        choice->type = (gen_type_choice){ "*", ONX_FLOAT };
        return;
    }
    while (schema->types && schema->types[count].name)
        count++;
    if (!count || gen_below(b->random, 2))
        return;
    const onxi_type_constraint *c = &schema->types[gen_below(b->random, count)];
    onx_dtype dtype = 1 + gen_below(b->random, ONX_DTYPE_COUNT - 1);
    if (c->set.tensor >> dtype & 1)
        choice->type = (gen_type_choice){ gen_below(b->random, 2) ? "*" : c->name, dtype };
}

/* Operands get names of their own, or those of values that there are. */
static void connect(builder *b, gen_node *node, const value_known *from)
{
    for (uint32_t i = 0; i < node->operand_count; i++) {
        gen_operand *o = &node->operands[i];
        snprintf(o->name, sizeof o->name, "x%u_%u", b->out->node_count, i);
        if (o->kind == GEN_TENSOR && !o->constant)
            o->constant = gen_below(b->random, b->net ? 2 : 4) == 0;
        const value_known *v = from;
        if (!v || i)
            v = b->known_count ? &b->known[gen_below(b->random, b->known_count)] : NULL;
        if (v && is_same_type(v, o)) {
            snprintf(o->name, sizeof o->name, "%s", v->name);
            o->made = true;
        }
    }
}

/* What the node makes is there for others, if inference does not refuse it. *any says whether a type is known, so that
 * the node has an output of the model; one without is not needed, and need not run. */
static bool learn(builder *b, const onx_node *made, bool *any)
{
    onx_doc *doc = b->out->doc;
    onx_infer *infer;
    if (onx_infer_new(onx_doc_ctx(doc), doc, NULL, &infer) != ONX_OK)
        return false;
    bool fine = onx_infer_summarize(infer).failed == 0;
    for (uint32_t i = 0; i < made->output_count && fine && b->known_count < 64; i++) {
        value_known v = { .rank = 0 };
        onx_str name = onx_view(made->output[i]);
        const onx_type *type = onx_infer_type(infer, onx_doc_model(doc)->graph, name);
        *any = *any || (type && !(ONX_HAS(type, type, tensor_type) && !type->tensor_type->elem_type));
        if (name.len < sizeof v.name && read_type(type, b->net ? MOST_IN_NETS : MOST_COUNT, &v)) {
            memcpy(v.name, name.ptr, name.len);
            b->known[b->known_count++] = v;
        }
    }
    onx_infer_free(infer);
    return fine;
}

static void take_back(onx_graph *graph, uint32_t inputs, uint32_t initializers)
{
    graph->node_count--;
    graph->input_count = inputs;
    graph->initializer_count = initializers;
}

static bool add_node(builder *b)
{
    gen_graph *g = b->out;
    gen_node node;
    bool wild = gen_below(b->random, 3) == 0;
    const gen_recipe *recipe;
    char prefix[16];
    const onxi_schema *schema = draw_operator(b, &recipe);
    const value_known *from = b->known_count && gen_below(b->random, 4)
                                  ? &b->known[b->net ? b->known_count - 1 : gen_below(b->random, b->known_count)]
                                  : NULL;
    gen_choice choice = { .random = b->random, .vary = b->net || gen_below(b->random, 4) != 0, .wide = b->net };
    if (!schema)
        return false;
    draw_type(b, schema, from, &choice);
    if (from) {
        choice.rank = from->rank;
        choice.dims = from->dims;
    }
    if (!gen_node_make(schema, recipe, &choice, &node) || g->operand_count + node.operand_count > GEN_GRAPH_OPERANDS)
        return false;
    connect(b, &node, from);
    if (wild)
        gen_wild_operands(&node, b->random);
    onx_graph *graph = onx_doc_model(g->doc)->graph;
    const uint32_t inputs = graph->input_count, initializers = graph->initializer_count;
    snprintf(prefix, sizeof prefix, "y%u_", g->node_count);
    const char *domain = onxi_schema_domain(schema);
    onx_node *made = NULL;
    if (!*domain || gen_import(g->doc, domain, onxi_domain_newest(onx_str_of(domain))))
        made = gen_add(g->doc, graph, &node, prefix);
    if (!made)
        return false;
    if (wild && gen_below(b->random, 2) && !gen_wild_attribute(onx_doc_arena(g->doc), made, schema, b->random))
        return false;
    bool any = false;
    const bool fine = learn(b, made, &any);
    if (fine && !any) {
        take_back(graph, inputs, initializers);
        return false;
    }
    if (!fine) {
        if (gen_below(b->random, 4)) {
            take_back(graph, inputs, initializers);
            return false;
        }
        g->refused = true;
        b->last = node;
    }
    g->wild = g->wild || wild;
    g->any_values = g->any_values || schema->flags & ONXI_OP_NONDETERMINISTIC;
    memcpy(&g->operands[g->operand_count], node.operands, node.operand_count * sizeof *node.operands);
    g->operand_count += node.operand_count;
    g->node_count++;
    return true;
}

static bool add_outputs(builder *b)
{
    onx_graph *graph = onx_doc_model(b->out->doc)->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const bool refused = b->out->refused && i + 1 == graph->node_count;
        if (gen_declare(b->out->doc, graph, refused ? &b->last : NULL, graph->node[i]) != ONX_OK)
            return false;
    }
    return graph->output_count > 0 && graph->output_count <= GEN_OUTPUTS;
}

bool gen_graph_make(onx_ctx *cx, gen_random *random, gen_graph *out)
{
    memset(out, 0, sizeof *out);
    builder b = { .out = out, .random = random, .net = gen_below(random, 4) == 0 };
    const int64_t newest = onxi_domain_newest(onx_str_of(""));
    out->opset = gen_below(random, 2) ? newest : 7 + gen_below(random, (uint32_t)newest - 6);
    if (gen_new(cx, out->opset, &out->doc) != ONX_OK)
        return false;
    const uint32_t wanted = 1 + gen_below(random, GEN_GRAPH_NODES);
    for (uint32_t tries = 0; tries < 4 * wanted && out->node_count < wanted && !out->refused; tries++)
        (void)add_node(&b);
    onx_diag_clear(cx);
    if (out->node_count && add_outputs(&b))
        return true;
    gen_graph_free(out);
    return false;
}

void gen_graph_free(gen_graph *graph)
{
    onx_doc_free(graph->doc);
    graph->doc = NULL;
}
