/* gen_model.c - models from generated nodes, and values for their inputs. */
#include "gen/gen.h"

#include <onx/infer.h>
#include <onx/io.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_TEXT = GEN_ATTRIBUTES + 1024 };

/* ---- elements ---- */

static const char *const words[] = { "a", "b", "ab", "", "c d", "1" };

static double special(onx_dtype_class class, gen_random *r)
{
    static const double floats[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0 };
    static const double ints[] = { 0, 1, -1, 127, 128, 255, 32767, 65535, 2147483647.0, -2147483648.0, 4294967295.0 };
    if (class == ONX_CLASS_FLOATING || class == ONX_CLASS_COMPLEX)
        return floats[gen_below(r, sizeof floats / sizeof *floats)];
    return class == ONX_CLASS_BOOLEAN ? gen_below(r, 2) : ints[gen_below(r, sizeof ints / sizeof *ints)];
}

static double element(const gen_operand *o, gen_random *r, uint64_t n)
{
    onx_dtype_class class = onx_dtype_class_of(o->like);
    bool whole = class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
    bool real = class == ONX_CLASS_FLOATING || class == ONX_CLASS_COMPLEX;
    switch (o->fill) {
    case GEN_LISTED:
        return o->listed_count ? o->listed[n % o->listed_count] : 0;
    case GEN_INDEX:
        return gen_below(r, (uint32_t)o->below);
    case GEN_POSITIVE:
        return whole ? 1 + gen_below(r, 3) : (1 + gen_below(r, 16)) / 8.0;
    case GEN_UNIT:
        return whole ? gen_below(r, 2) : gen_below(r, 9) / 8.0;
    case GEN_SPECIAL:
        if (gen_below(r, 2))
            return special(class, r);
        break;
    case GEN_SOME_NAN:
        if (real && gen_below(r, 8) == 0)
            return NAN;
        break;
    case GEN_SOME_INFINITE:
        if (real && gen_below(r, 8) == 0)
            return gen_below(r, 2) ? INFINITY : -INFINITY;
        break;
    case GEN_ALL_LOWEST:
        if (real && gen_below(r, 64))
            return -INFINITY;
        break;
    case GEN_SMALL:
        break;
    }
    if (class == ONX_CLASS_BOOLEAN)
        return gen_below(r, 2);
    if (class == ONX_CLASS_UNSIGNED)
        return gen_below(r, 6);
    return class == ONX_CLASS_SIGNED ? (int)gen_below(r, 7) - 3 : ((int)gen_below(r, 33) - 16) / 8.0;
}

double gen_nudged(uint64_t i, double nudge)
{
    gen_random r = { .state = i };
    return 1 + nudge * ((double)gen_below(&r, 256) / 127.5 - 1);
}

static size_t word(const gen_operand *o, gen_random *r, uint64_t n)
{
    const size_t count = sizeof words / sizeof *words;
    return o->fill == GEN_LISTED ? (size_t)(int64_t)element(o, r, n) % count : gen_below(r, (uint32_t)count);
}

/* All elements in the layout of raw_data; strings are onx_str. NULL when out of memory. */
static void *elements(const gen_operand *o, uint64_t count)
{
    gen_random r = { .state = o->seed };
    uint64_t size = count * sizeof(onx_str) + 16;
    double *numbers = calloc(1, (size_t)(count * 2 + 2) * sizeof *numbers), *exact = calloc(1, (size_t)size + 16);
    void *out = calloc(1, (size_t)size);
    bool complex = onx_dtype_class_of(o->dtype) == ONX_CLASS_COMPLEX;
    uint64_t parts = complex ? count * 2 : count;
    if (!numbers || !exact || !out) {
        free(out);
        out = NULL;
    } else if (o->dtype == ONX_STRING) {
        for (uint64_t i = 0; i < count; i++)
            ((onx_str *)out)[i] = onx_str_of(words[word(o, &r, i)]);
    } else {
        for (uint64_t i = 0; i < parts; i++)
            numbers[i] = element(o, &r, i) * gen_nudged(i, o->nudge);
        onx_dtype to = !complex ? o->dtype : o->dtype == ONX_COMPLEX64 ? ONX_FLOAT : ONX_DOUBLE;
        if (o->like != o->dtype && o->like != ONX_STRING) {
            onx_convert(o->like, exact, ONX_DOUBLE, numbers, parts, true);
            onx_convert(ONX_DOUBLE, numbers, o->like, exact, parts, true);
        }
        onx_convert(to, out, ONX_DOUBLE, numbers, parts, true);
    }
    free(numbers);
    free(exact);
    return out;
}

static uint64_t count_of(const gen_operand *o)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        count *= (uint64_t)o->dims[i];
    return count;
}

static onx_status tensor_value(onx_ctx *cx, const gen_operand *o, onx_value **out)
{
    uint64_t count = count_of(o);
    ONX_TRY(onx_value_new_tensor(cx, o->dtype, o->rank, o->dims, out));
    void *data = elements(o, count);
    if (!data)
        return ONX_E_MEMORY;
    if (o->dtype != ONX_STRING && (*out)->size)
        memcpy((*out)->data, data, (size_t)(*out)->size);
    onx_status status = ONX_OK;
    for (uint64_t i = 0; o->dtype == ONX_STRING && i < count && status == ONX_OK; i++)
        status = onx_value_set_text(*out, i, ((const onx_str *)data)[i]);
    free(data);
    return status;
}

/* Puts `count` tensors like the operand's into a list. */
static onx_status list_value(onx_ctx *cx, const gen_operand *o, onx_value_kind kind, uint32_t count, onx_value **out)
{
    ONX_TRY(onx_value_new(cx, out));
    ONX_TRY(onx_value_reset_list(*out, kind, kind == ONX_VALUE_MAP ? o->key : o->dtype));
    for (uint32_t i = 0; i < count; i++) {
        gen_operand item = *o;
        onx_value *v = NULL;
        item.seed += i;
        onx_status status = tensor_value(cx, &item, &v);
        if (status == ONX_OK)
            status = onx_value_insert(*out, i, v);
        onx_value_free(v);
        ONX_TRY(status);
        if (kind == ONX_VALUE_MAP && o->key == ONX_STRING)
            ONX_TRY(onx_value_set_text(*out, i, onx_str_of(words[i])));
        else if (kind == ONX_VALUE_MAP)
            ((int64_t *)(*out)->data)[i] = i;
    }
    return ONX_OK;
}

onx_status gen_value(onx_ctx *cx, const gen_operand *o, onx_value **out)
{
    *out = NULL;
    switch (o->kind) {
    case GEN_TENSOR:
        return tensor_value(cx, o, out);
    case GEN_SEQUENCE:
        return list_value(cx, o, ONX_VALUE_SEQUENCE, 2, out);
    case GEN_OPTIONAL:
        return list_value(cx, o, ONX_VALUE_OPTIONAL, 1, out);
    case GEN_MAP:
        return list_value(cx, o, ONX_VALUE_MAP, 3, out);
    case GEN_OMITTED:
        break;
    }
    return ONX_OK;
}

/* ---- types ---- */

static onx_type *type_of_kind(onx_arena *arena, gen_kind kind, onx_dtype key, onx_type *inner)
{
    onx_type *type = onx_message_new(arena, ONX_KIND_TYPE);
    if (kind == GEN_SEQUENCE) {
        ONX_SET(type, type, sequence_type, onx_message_new(arena, ONX_KIND_TYPE_SEQUENCE));
        ONX_SET(type_sequence, type->sequence_type, elem_type, inner);
    } else if (kind == GEN_OPTIONAL) {
        ONX_SET(type, type, optional_type, onx_message_new(arena, ONX_KIND_TYPE_OPTIONAL));
        ONX_SET(type_optional, type->optional_type, elem_type, inner);
    } else {
        ONX_SET(type, type, map_type, onx_message_new(arena, ONX_KIND_TYPE_MAP));
        ONX_SET(type_map, type->map_type, key_type, (int32_t)key);
        ONX_SET(type_map, type->map_type, value_type, inner);
    }
    return type;
}

static onx_type *operand_type(onx_arena *arena, const gen_operand *o)
{
    onx_type *tensor = onx_type_new_tensor(arena, o->dtype, o->dims, (int)o->rank);
    return o->kind == GEN_TENSOR ? tensor : type_of_kind(arena, o->kind, o->key, tensor);
}

/* The type without shapes, or NULL where it is not known down to the elements. */
static onx_type *bare_type(onx_arena *arena, const onx_type *type)
{
    onx_type *inner;
    if (!type)
        return NULL;
    if (ONX_HAS(type, type, tensor_type))
        return type->tensor_type->elem_type
                   ? onx_type_new_tensor(arena, (onx_dtype)type->tensor_type->elem_type, NULL, -1)
                   : NULL;
    if (ONX_HAS(type, type, sequence_type))
        return (inner = bare_type(arena, type->sequence_type->elem_type))
                   ? type_of_kind(arena, GEN_SEQUENCE, ONX_UNDEFINED, inner)
                   : NULL;
    if (ONX_HAS(type, type, optional_type))
        return (inner = bare_type(arena, type->optional_type->elem_type))
                   ? type_of_kind(arena, GEN_OPTIONAL, ONX_UNDEFINED, inner)
                   : NULL;
    if (ONX_HAS(type, type, map_type))
        return (inner = bare_type(arena, type->map_type->value_type))
                   ? type_of_kind(arena, GEN_MAP, (onx_dtype)type->map_type->key_type, inner)
                   : NULL;
    return NULL;
}

/* ---- graphs ---- */

bool gen_import(onx_doc *doc, const char *domain, int64_t version)
{
    onx_model *model = onx_doc_model(doc);
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (onx_str_is(onx_view(model->opset_import[i]->domain), domain)) {
            ONX_SET(operator_set_id, model->opset_import[i], version, version);
            return true;
        }
    onx_operator_set_id *import = ONX_ADD(onx_doc_arena(doc), model, opset_import, OPERATOR_SET_ID);
    if (!import || onx_arena_keep(onx_doc_arena(doc), onx_str_of(domain), &import->domain) != ONX_OK)
        return false;
    import->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, import, version, version);
    return true;
}

static onx_tensor *constant(onx_arena *arena, const gen_operand *o)
{
    const uint64_t count = count_of(o);
    void *data = elements(o, count);
    onx_tensor *tensor =
        data ? onx_tensor_new(arena, o->dtype == ONX_STRING ? ONX_UINT8 : o->dtype, o->dims, o->rank, data, o->name)
             : NULL;
    if (tensor && o->dtype == ONX_STRING) {
        tensor->data_type = ONX_STRING;
        tensor->has &= ~(uint32_t)onx_tensor_has_raw_data;
        tensor->raw_data = (onx_bytes){ 0 };
        for (uint64_t i = 0; i < count && tensor; i++)
            if (onx_list_add_text(arena, &tensor->string_data, &tensor->string_data_count,
                                  ((const onx_str *)data)[i]) != ONX_OK)
                tensor = NULL;
    }
    free(data);
    return tensor;
}

bool gen_add_operand(onx_doc *doc, onx_graph *graph, const gen_operand *o)
{
    onx_arena *arena = onx_doc_arena(doc);
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (onx_str_is(onx_view(graph->input[i]->name), o->name))
            return true;
    if (o->made)
        return true;
    if (!o->constant)
        return onx_graph_add_input(arena, graph, o->name, operand_type(arena, o)) != NULL;
    onx_tensor *tensor = constant(arena, o);
    onx_tensor **at = tensor ? onx_list_insert(arena, (void **)(void *)&graph->initializer, &graph->initializer_count,
                                               graph->initializer_count, sizeof *at)
                             : NULL;
    if (at)
        *at = tensor;
    return at != NULL;
}

/* y0, y1 = domain.Op <attributes> (x0, , x2) */
static void node_text(const gen_node *node, const char *prefix, char *text, size_t size)
{
    const char *domain = onxi_schema_domain(node->schema);
    size_t len = 0;
#define ADD(...) len += (size_t)snprintf(text + len, len < size ? size - len : 0, __VA_ARGS__)
    text[0] = 0;
    for (uint32_t i = 0; i < node->output_count; i++)
        ADD("%s%s%u", i ? ", " : "", prefix, i);
    ADD(" = %s%s%s ", domain, *domain ? "." : "", node->schema->name);
    if (node->attributes[0])
        ADD("<%s> ", node->attributes);
    ADD("(");
    for (uint32_t i = 0; i < node->operand_count; i++)
        ADD("%s%s", i ? ", " : "", node->operands[i].kind == GEN_OMITTED ? "" : node->operands[i].name);
    ADD(")");
#undef ADD
}

onx_node *gen_add(onx_doc *doc, onx_graph *graph, const gen_node *node, const char *prefix)
{
    char text[NODE_TEXT];
    onx_doc *parsed;
    void *copy = NULL;
    onx_arena *arena = onx_doc_arena(doc);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i].kind != GEN_OMITTED && !gen_add_operand(doc, graph, &node->operands[i]))
            return NULL;
    node_text(node, prefix, text, sizeof text);
    if (onx_text_parse(onx_doc_ctx(doc), ONX_KIND_NODE, onx_str_of(text), 0, &parsed) != ONX_OK)
        return NULL;
    onx_status status = onx_message_copy(arena, ONX_KIND_NODE, onx_doc_root(parsed, ONX_KIND_NODE), &copy);
    onx_doc_free(parsed);
    onx_node **at = status == ONX_OK ? onx_list_insert(arena, (void **)(void *)&graph->node, &graph->node_count,
                                                       graph->node_count, sizeof *at)
                                     : NULL;
    if (at)
        *at = copy;
    return at ? *at : NULL;
}

/* ---- outputs ---- */

/* What the schema alone says: the type that the constraint of the port was given. */
static onx_type *type_by_schema(onx_arena *arena, const gen_node *node, uint32_t output)
{
    const onxi_port *port = onxi_port_at(node->schema->outputs, output);
    for (uint32_t i = 0; port && i < node->type_count; i++)
        if (strcmp(node->types[i].constraint, port->type) == 0)
            return onx_type_new_tensor(arena, node->types[i].dtype, NULL, -1);
    return onx_type_new_tensor(arena, ONX_FLOAT, NULL, -1);
}

onx_status gen_declare(onx_doc *doc, onx_graph *graph, const gen_node *node, const onx_node *made)
{
    onx_ctx *cx = onx_doc_ctx(doc);
    onx_arena *arena = onx_doc_arena(doc);
    onx_infer *infer = NULL;
    if (onx_infer_new(cx, doc, NULL, &infer) != ONX_OK)
        infer = NULL;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < made->output_count && status == ONX_OK; i++) {
        char name[64];
        onx_str view = onx_view(made->output[i]);
        if (!view.len)
            continue;
        snprintf(name, sizeof name, "%.*s", ONX_ARG(view));
        onx_type *type = infer ? bare_type(arena, onx_infer_type(infer, graph, view)) : NULL;
        if (!type && node)
            type = type_by_schema(arena, node, i);
        if (type && !onx_graph_add_output(arena, graph, name, type))
            status = ONX_E_MEMORY;
    }
    onx_infer_free(infer);
    onx_diag_clear(cx);
    return status;
}

onx_status gen_give_folder(onx_doc *doc)
{
    return onx_doc_set_base_dir(doc, ONX_SOURCE_DIR "/tests/cases/op/files");
}

onx_status gen_new(onx_ctx *cx, int64_t opset, onx_doc **out)
{
    ONX_TRY(onx_model_new(cx, "g", opset, out));
    ONX_SET(model, onx_doc_model(*out), ir_version, GEN_IR);
    const onx_status status = gen_give_folder(*out);
    if (status != ONX_OK)
        onx_doc_free(*out);
    return status;
}

onx_status gen_model(onx_ctx *cx, const gen_node *node, gen_edit edit, void *user, onx_doc **out)
{
    const char *domain = onxi_schema_domain(node->schema);
    ONX_TRY(gen_new(cx, *domain ? 21 : node->schema->since, out));
    onx_model *model = onx_doc_model(*out);
    onx_node *made = gen_add(*out, model->graph, node, "y");
    onx_status status = made && gen_import(*out, domain, node->schema->since) ? ONX_OK : ONX_E_INVALID;
    if (status == ONX_OK && edit)
        edit(user, onx_doc_arena(*out), made);
    if (status == ONX_OK)
        status = gen_declare(*out, model->graph, node, made);
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}
