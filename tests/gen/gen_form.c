/* gen_form.c - other forms of the same computation: constants instead of inputs, nodes in a branch, in the body of a
 * loop or scan, in a function. The results must be the same. */
#include "gen/gen.h"

#include <stdio.h>
#include <string.h>

typedef struct form {
    onx_doc *doc;
    onx_arena *arena;
    onx_graph *graph;
    onx_node **moved; /* the last nodes of the graph, which go elsewhere */
    uint32_t moved_count;
} form;

/* ---- helpers ---- */

static onx_bytes text_of(form *f, const char *prefix, onx_str name)
{
    char text[80];
    onx_bytes out = { 0 };
    snprintf(text, sizeof text, "%s%.*s", prefix, ONX_ARG(name));
    (void)onx_arena_keep(f->arena, onx_str_of(text), &out);
    return out;
}

static bool is_made(const form *f, onx_str name)
{
    for (uint32_t i = 0; i < f->moved_count; i++)
        for (uint32_t k = 0; k < f->moved[i]->output_count; k++)
            if (name.len && onx_str_equal(onx_view(f->moved[i]->output[k]), name))
                return true;
    return false;
}

/* A copy of the moved nodes, whose values get a prefix. */
static bool copy_nodes(form *f, const char *prefix, onx_node ***list, uint32_t *count)
{
    for (uint32_t i = 0; i < f->moved_count; i++) {
        void *copy;
        if (onx_message_copy(f->arena, ONX_KIND_NODE, f->moved[i], &copy) != ONX_OK)
            return false;
        onx_node *node = copy;
        for (uint32_t k = 0; k < node->input_count; k++)
            if (is_made(f, onx_view(node->input[k])))
                node->input[k] = text_of(f, prefix, onx_view(node->input[k]));
        for (uint32_t k = 0; k < node->output_count; k++)
            if (onx_view(node->output[k]).len)
                node->output[k] = text_of(f, prefix, onx_view(node->output[k]));
        onx_node **at = onx_list_insert(f->arena, (void **)(void *)list, count, *count, sizeof *at);
        if (!at)
            return false;
        *at = node;
    }
    return true;
}

static onx_value_info *add_info(form *f, onx_graph *graph, bool output, onx_str name, onx_type *type)
{
    char text[80];
    snprintf(text, sizeof text, "%.*s", ONX_ARG(name));
    return output ? onx_graph_add_output(f->arena, graph, text, type)
                  : onx_graph_add_input(f->arena, graph, text, type);
}

/* The moved nodes as a graph with the outputs of the model that they make. */
static onx_graph *body(form *f, const char *prefix, onx_graph *into)
{
    onx_graph *graph = into ? into : onx_message_new(f->arena, ONX_KIND_GRAPH);
    if (!graph || !copy_nodes(f, prefix, &graph->node, &graph->node_count))
        return NULL;
    graph->name = text_of(f, prefix, onx_str_of("body"));
    graph->has |= onx_graph_has_name;
    for (uint32_t i = 0; i < f->graph->output_count; i++) {
        onx_str name = onx_view(f->graph->output[i]->name);
        void *type;
        if (!is_made(f, name))
            continue;
        if (onx_message_copy(f->arena, ONX_KIND_TYPE, f->graph->output[i]->type, &type) != ONX_OK ||
            !add_info(f, graph, true, onx_view(text_of(f, prefix, name)), type))
            return NULL;
    }
    return graph;
}

/* A node in place of the moved ones that makes the outputs of the model that they make. */
static onx_node *replace(form *f, const char *op, const char *inputs)
{
    f->graph->node_count -= f->moved_count;
    onx_node *node = onx_graph_add_node(f->arena, f->graph, op, inputs, "");
    for (uint32_t i = 0; node && i < f->graph->output_count; i++)
        if (is_made(f, onx_view(f->graph->output[i]->name)) &&
            onx_list_add_text(f->arena, &node->output, &node->output_count, onx_view(f->graph->output[i]->name)) !=
                ONX_OK)
            return NULL;
    return node && node->output_count ? node : NULL;
}

static bool add_constant(form *f, const char *name, onx_dtype dtype, const int64_t *dims, uint32_t rank,
                         const void *data)
{
    onx_tensor *tensor = onx_tensor_new(f->arena, dtype, dims, rank, data, name);
    onx_tensor **at = onx_list_insert(f->arena, (void **)(void *)&f->graph->initializer, &f->graph->initializer_count,
                                      f->graph->initializer_count, sizeof *at);
    if (at)
        *at = tensor;
    return tensor && at;
}

/* ---- forms ---- */

static bool as_branch(form *f)
{
    onx_graph *yes = body(f, "yes_", NULL), *no = body(f, "no_", NULL);
    onx_node *node = yes && no ? replace(f, "If", "cond") : NULL;
    static const int64_t none = 0;
    return node && onx_node_add_graph(f->arena, node, "then_branch", yes) &&
           onx_node_add_graph(f->arena, node, "else_branch", no) &&
           onx_graph_add_input(f->arena, f->graph, "cond", onx_type_new_tensor(f->arena, ONX_BOOL, &none, 0));
}

/* Only tensors can be stacked. Their outputs get one axis more. */
static bool can_stack(const form *f)
{
    for (uint32_t i = 0; i < f->graph->output_count; i++)
        if (is_made(f, onx_view(f->graph->output[i]->name)) && !ONX_HAS(type, f->graph->output[i]->type, tensor_type))
            return false;
    return true;
}

static bool as_loop(form *f)
{
    static const int64_t once = 1, none = 0;
    onx_graph *step = onx_message_new(f->arena, ONX_KIND_GRAPH);
    if (!step || !can_stack(f) ||
        !onx_graph_add_input(f->arena, step, "f_at", onx_type_new_tensor(f->arena, ONX_INT64, &none, 0)) ||
        !onx_graph_add_input(f->arena, step, "f_go", onx_type_new_tensor(f->arena, ONX_BOOL, &none, 0)) ||
        !onx_graph_add_node(f->arena, step, "Identity", "f_go", "f_on") ||
        !onx_graph_add_output(f->arena, step, "f_on", onx_type_new_tensor(f->arena, ONX_BOOL, &none, 0)) ||
        !body(f, "step_", step) || !add_constant(f, "once", ONX_INT64, NULL, 0, &once))
        return false;
    onx_node *node = replace(f, "Loop", "once -");
    return node && onx_node_add_graph(f->arena, node, "body", step);
}

static bool as_scan(form *f)
{
    static const int64_t one = 1, none = 0;
    static const float zero = 0;
    onx_graph *step = onx_message_new(f->arena, ONX_KIND_GRAPH);
    if (!step || !can_stack(f) ||
        !onx_graph_add_input(f->arena, step, "f_unused", onx_type_new_tensor(f->arena, ONX_FLOAT, &none, 0)) ||
        !body(f, "step_", step) || !add_constant(f, "zero", ONX_FLOAT, &one, 1, &zero))
        return false;
    onx_node *node = replace(f, "Scan", "zero");
    return node && onx_node_add_int(f->arena, node, "num_scan_inputs", 1) &&
           onx_node_add_graph(f->arena, node, "body", step);
}

/* What the moved nodes read from outside. */
static bool add_captures(form *f, onx_function *function, onx_node *call)
{
    for (uint32_t i = 0; i < f->moved_count; i++)
        for (uint32_t k = 0; k < f->moved[i]->input_count; k++) {
            onx_str name = onx_view(f->moved[i]->input[k]);
            bool known = !name.len || is_made(f, name);
            for (uint32_t n = 0; n < call->input_count && !known; n++)
                known = onx_str_equal(onx_view(call->input[n]), name);
            if (!known && (onx_list_add_text(f->arena, &function->input, &function->input_count, name) != ONX_OK ||
                           onx_list_add_text(f->arena, &call->input, &call->input_count, name) != ONX_OK))
                return false;
        }
    return true;
}

static bool as_function(form *f)
{
    onx_model *model = onx_doc_model(f->doc);
    onx_function *function = ONX_ADD(f->arena, model, functions, FUNCTION);
    onx_graph *content = body(f, "", NULL);
    if (!function || !content)
        return false;
    function->name = text_of(f, "", onx_str_of("Part"));
    function->domain = text_of(f, "", onx_str_of("local"));
    function->has |= onx_function_has_name | onx_function_has_domain;
    function->node = content->node;
    function->node_count = content->node_count;
    for (uint32_t i = 0; i < content->output_count; i++)
        if (onx_list_add_text(f->arena, &function->output, &function->output_count,
                              onx_view(content->output[i]->name)) != ONX_OK)
            return false;
    for (uint32_t i = 0; i < model->opset_import_count; i++) {
        onx_operator_set_id *import = ONX_ADD(f->arena, function, opset_import, OPERATOR_SET_ID);
        if (!import)
            return false;
        *import = *model->opset_import[i];
    }
    onx_node *call = replace(f, "Part", "");
    if (!call)
        return false;
    call->domain = function->domain;
    call->has |= onx_node_has_domain;
    return gen_import(f->doc, "local", 1) && add_captures(f, function, call);
}

/* ---- copies of models ---- */

static onx_status copy_model(onx_ctx *cx, const onx_doc *from, onx_doc **out)
{
    void *copy;
    ONX_TRY(onx_doc_new(cx, ONX_KIND_MODEL, out));
    onx_status status = onx_message_copy(onx_doc_arena(*out), ONX_KIND_MODEL, onx_doc_model(from), &copy);
    if (status == ONX_OK)
        status = gen_give_folder(*out);
    if (status == ONX_OK)
        *onx_doc_model(*out) = *(onx_model *)copy;
    else
        onx_doc_free(*out);
    return status;
}

static bool as_constants(form *f, const gen_graph *graph)
{
    for (uint32_t i = 0; i < graph->operand_count; i++) {
        gen_operand o = graph->operands[i];
        if (o.constant || o.made || o.kind != GEN_TENSOR)
            continue;
        for (uint32_t k = f->graph->input_count; k-- > 0;)
            if (onx_str_is(onx_view(f->graph->input[k]->name), o.name))
                onx_list_remove(f->graph->input, &f->graph->input_count, k, sizeof *f->graph->input);
        o.constant = true;
        if (!gen_add_operand(f->doc, f->graph, &o))
            return false;
    }
    return true;
}

bool gen_graph_form(onx_ctx *cx, const gen_graph *graph, gen_form sort, gen_random *random, onx_doc **out)
{
    form f = { .doc = NULL };
    *out = NULL;
    if (copy_model(cx, graph->doc, &f.doc) != ONX_OK)
        return false;
    f.arena = onx_doc_arena(f.doc);
    f.graph = onx_doc_model(f.doc)->graph;
    f.moved_count = 1 + gen_below(random, f.graph->node_count);
    f.moved = onx_arena_alloc(f.arena, f.moved_count * sizeof *f.moved);
    if (f.moved)
        memcpy(f.moved, f.graph->node + f.graph->node_count - f.moved_count, f.moved_count * sizeof *f.moved);
    bool ok = f.moved && (sort == GEN_CONSTANTS  ? as_constants(&f, graph)
                          : sort == GEN_BRANCH   ? as_branch(&f)
                          : sort == GEN_LOOP     ? graph->opset >= 11 && as_loop(&f)
                          : sort == GEN_SCAN     ? graph->opset >= 9 && as_scan(&f)
                          : sort == GEN_FUNCTION ? as_function(&f)
                                                 : false);
    if (ok)
        *out = f.doc;
    else
        onx_doc_free(f.doc);
    return ok;
}
