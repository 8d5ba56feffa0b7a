/* gen_draw_any.c - a block that takes any operator of the default domain, as one of its recipes says. Its first operand
 * is a value of the model where the recipe allows it; what it makes has the types and shapes that inference finds. */
#include "gen/gen_draw.h"

#include <onx/infer.h>
#include <onx/tensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const onxi_schema *drawn_schema(draw *d, const gen_recipe **recipe)
{
    const onxi_operator *op = &onxi_operators[gen_below(&d->random, onxi_operator_count)];
    const onxi_schema *schema = op->rows;
    uint32_t count = 0;
    if (*op->domain)
        return NULL;
    while (schema->name && schema->since > d->opset)
        schema++;
    if (!schema->name || schema->flags & (ONXI_OP_DEPRECATED | ONXI_OP_NONDETERMINISTIC) ||
        gen_lacks_library(schema->name))
        return NULL;
    while (gen_recipe_for(schema, count))
        count++;
    *recipe = gen_recipe_for(schema, gen_below(&d->random, count));
    return *recipe ? schema : NULL;
}

static bool is_plain_tensor(const gen_operand *o)
{
    return o->kind == GEN_TENSOR && o->dtype <= ONX_BFLOAT16 && onx_dtype_class_of(o->dtype) != ONX_CLASS_COMPLEX &&
           o->rank <= DRAW_RANK;
}

static bool is_like(const gen_operand *o, const draw_value *v)
{
    return o->fill == GEN_SMALL && o->dtype == v->dtype && o->rank == v->rank &&
           (!v->rank || memcmp(o->dims, v->dims, v->rank * sizeof *v->dims) == 0);
}

/* The elements of an operand as text. */
static bool add_elements(draw_text *text, const gen_operand *o)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *v = NULL;
    const bool made = cx && gen_value(cx, o, &v) == ONX_OK && v;
    const uint64_t width = made ? onx_dtype_bits(v->dtype) / 8 : 0;
    for (uint64_t i = 0; made && i < v->count; i++) {
        double x = 0;
        draw_add(text, "%s", i ? ", " : "");
        if (v->dtype == ONX_STRING)
            draw_add(text, "\"%.*s\"", ONX_ARG(((const onx_str *)v->data)[i]));
        else if (v->dtype == ONX_FLOAT16 || v->dtype == ONX_BFLOAT16)
            draw_add(text, "%u", ((const uint16_t *)v->data)[i]);
        else if (onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, (const char *)v->data + i * width, 1, true) == ONX_OK)
            draw_add(text, DRAW_WHOLES >> v->dtype & 1 ? "%.0f" : "%.7g", x);
    }
    onx_value_free(v);
    onx_ctx_free(cx);
    return made;
}

/* A value of the model, or a constant. */
static bool operand(draw *d, const gen_operand *o, const draw_value *first, draw_value *out)
{
    draw_value v;
    if (first && is_like(o, first)) {
        *out = *first;
        return true;
    }
    for (int tries = 0; tries < 3; tries++)
        if (draw_pick(d, (draw_wish){ .types = 1u << o->dtype }, &v) && is_like(o, &v)) {
            *out = v;
            return true;
        }
    draw_text text = { 0 };
    *out = draw_of(o->dtype, o->rank, o->dims);
    const bool made = draw_product(out->dims, out->rank) <= 2000 && add_elements(&text, o);
    if (made)
        draw_listed_constant(d, out, text.ptr ? text.ptr : "");
    draw_text_free(&text);
    return made;
}

/* The types of what the node makes; false if inference does not know them down to the sizes, or the node does not run
 * (a recipe does not suit all types and sizes). */
static bool learn(const gen_node *node, draw_value *out)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_infer *infer = NULL;
    bool known = cx && gen_model(cx, node, NULL, NULL, &doc) == ONX_OK &&
                 onx_infer_new(cx, doc, NULL, &infer) == ONX_OK && onx_infer_summarize(infer).failed == 0;
    for (uint32_t i = 0; known && i < node->output_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "y%u", i);
        const onx_type *type = onx_infer_type(infer, onx_doc_model(doc)->graph, onx_str_of(name));
        known = type && ONX_HAS(type, type, tensor_type) && type->tensor_type->shape &&
                type->tensor_type->shape->dim_count <= DRAW_RANK && type->tensor_type->elem_type <= ONX_BFLOAT16 &&
                onx_dtype_class_of(type->tensor_type->elem_type) != ONX_CLASS_COMPLEX;
        if (!known)
            break;
        out[i] = (draw_value){ .dtype = (onx_dtype)type->tensor_type->elem_type,
                               .rank = type->tensor_type->shape->dim_count };
        for (uint32_t k = 0; k < out[i].rank; k++) {
            known = known && ONX_HAS(dimension, type->tensor_type->shape->dim[k], dim_value);
            out[i].dims[k] = type->tensor_type->shape->dim[k]->dim_value;
        }
    }
    gen_run run = { .status = ONX_E_INVALID };
    if (known)
        gen_run_model(cx, doc, node->operands, node->operand_count, true, 1, &run);
    known = run.status == ONX_OK;
    gen_run_free(&run);
    onx_infer_free(infer);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return known;
}

static bool any_operator(draw *d)
{
    const gen_recipe *recipe;
    gen_node node;
    draw_value first, out[GEN_OPERANDS], in;
    draw_text list = { 0 };
    const onxi_schema *schema = drawn_schema(d, &recipe);
    if (!schema || !draw_pick(d, (draw_wish){ .types = DRAW_EVERY }, &first))
        return false;
    const gen_choice choice = { .random = &d->random,
                                .vary = draw_chance(d, 70),
                                .type = { "*", first.dtype },
                                .dims = first.dims,
                                .rank = first.rank };
    if (!gen_node_make(schema, recipe, &choice, &node) || node.output_count > GEN_OPERANDS ||
        (d->opset < 9 && node.types[0].dtype != ONX_FLOAT))
        return false;
    bool good = true;
    for (uint32_t i = 0; good && i < node.operand_count; i++)
        good = node.operands[i].kind == GEN_OMITTED || is_plain_tensor(&node.operands[i]);
    if (!good || !learn(&node, out))
        return false;
    for (uint32_t i = 0; good && i < node.operand_count; i++) {
        draw_add(&list, "%s", i ? ", " : "");
        if (node.operands[i].kind == GEN_OMITTED)
            continue;
        good = operand(d, &node.operands[i], i ? NULL : &first, &in);
        draw_add(&list, "%s", in.name);
    }
    good = good && list.ptr &&
           draw_node(d, out, node.output_count, "%s%s%s%s (%s)", schema->name, node.attributes[0] ? " <" : "",
                     node.attributes, node.attributes[0] ? ">" : "", list.ptr);
    draw_text_free(&list);
    return good;
}

const draw_block draw_any_blocks[] = {
    { "operator", { 9, 8, 4, 6, 12 }, 7, false, any_operator },
    { .name = NULL },
};
