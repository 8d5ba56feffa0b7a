/* transform_extract.c - extracts a part of a model by values or nodes, and splits a model into parts. */
#include "transform/transform_part.h"

/* ---- lists of names ---- */

typedef struct id_list {
    onx_name_id *items;
    uint32_t count, room;
} id_list;

static onx_status add_id(onxi_cutter *c, id_list *list, onx_name_id id)
{
    if (!ONXI_GROW_IN(c->scratch, list->items, list->room, (uint64_t)list->count + 1))
        return ONX_E_MEMORY;
    list->items[list->count++] = id;
    return ONX_OK;
}

/* Marks `id` in `seen` and adds it, unless it is marked already. */
static onx_status add_once(onxi_cutter *c, id_list *list, bool *seen, onx_name_id id)
{
    if (seen[id])
        return ONX_OK;
    seen[id] = true;
    return add_id(c, list, id);
}

static bool *flags_of(onxi_cutter *c)
{
    return ONXI_ARRAY(c->scratch, bool, (size_t)onx_index_name_count(c->index) + 1);
}

static onx_status find_all(onxi_cutter *c, const onx_str *names, uint32_t count, id_list *list, bool *seen)
{
    for (uint32_t i = 0; i < count; i++) {
        onx_name_id id;
        ONX_TRY(onxi_cutter_find(c, names[i], &id));
        ONX_TRY(add_once(c, list, seen, id));
    }
    return ONX_OK;
}

/* ---- parts between values ---- */

static onx_status default_outputs(onxi_cutter *c, id_list *outputs, bool *is_output)
{
    for (uint32_t i = 0; i < c->graph->output_count; i++) {
        const onx_str name = onx_view(c->graph->output[i]->name);
        const onx_name_id id = onx_index_find(c->index, name);
        if (id == ONX_NO_NAME || onx_index_def(c->index, id).kind == ONX_DEF_NONE)
            return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "output %.*s is not defined", ONX_ARG(name));
        ONX_TRY(add_once(c, outputs, is_output, id));
    }
    return ONX_OK;
}

/* Inputs of the model that the part also needs; initializers may replace them. */
static onx_status add_needed_inputs(onxi_cutter *c, const onx_extract_options *options, const bool *needed,
                                    bool *is_input, id_list *inputs)
{
    for (uint32_t i = 0; i < c->graph->input_count; i++) {
        const onx_str name = onx_view(c->graph->input[i]->name);
        const onx_name_id id = onx_index_find(c->index, name);
        if (id == ONX_NO_NAME || !needed[id] || is_input[id])
            continue;
        if (options->input_count)
            onxi_warn(c->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                      "the part depends on input %.*s of the model as well, which becomes an input of the part",
                      ONX_ARG(name));
        ONX_TRY(add_once(c, inputs, is_input, id));
    }
    return ONX_OK;
}

onx_status onxi_extract_between(onxi_cutter *c, onx_arena *arena, const onx_extract_options *options, onx_model **out)
{
    bool *is_input = flags_of(c), *is_output = flags_of(c), *needed = flags_of(c);
    bool *node = ONXI_ARRAY(c->scratch, bool, (size_t)c->graph->node_count + 1);
    id_list inputs = { 0 }, outputs = { 0 };
    if (!is_input || !is_output || !needed || !node)
        return ONX_E_MEMORY;
    ONX_TRY(find_all(c, options->input, options->input_count, &inputs, is_input));
    ONX_TRY(find_all(c, options->output, options->output_count, &outputs, is_output));
    if (!options->output_count)
        ONX_TRY(default_outputs(c, &outputs, is_output));
    ONX_TRY(onxi_cutter_need(c, outputs.items, outputs.count, is_input, node, needed));
    ONX_TRY(add_needed_inputs(c, options, needed, is_input, &inputs));
    const onxi_part part = { node, inputs.items, outputs.items, inputs.count, outputs.count };
    return onxi_part_make(c, arena, &part, out);
}

/* ---- parts given by nodes ---- */

static onx_str label_of(const onx_node *node)
{
    const onx_str name = onx_view(node->name);
    return name.len || !node->output_count ? name : onx_view(node->output[0]);
}

static onx_status match_nodes(onxi_cutter *c, const onx_extract_options *options, bool *node)
{
    for (uint32_t i = 0; i < options->node_count; i++) {
        bool any = false;
        for (uint32_t k = 0; k < c->graph->node_count; k++)
            if (onxi_pattern_match(options->node[i], label_of(c->graph->node[k])))
                any = node[k] = true;
        if (!any)
            return onxi_fail(c->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no node of the main graph matches %.*s",
                             ONX_ARG(options->node[i]));
    }
    return ONX_OK;
}

/* The values that nodes of the part read from others. Constants are included in the part. */
static onx_status inputs_of(onxi_cutter *c, bool *node, id_list *inputs, bool *is_input)
{
    for (uint32_t i = 0; i < c->graph->node_count; i++)
        for (uint32_t k = c->first[i]; node[i] && k < c->first[i + 1]; k++) {
            const onx_name_id id = c->reads[k];
            const onx_def def = onx_index_def(c->index, id);
            if (def.kind == ONX_DEF_NODE && onxi_cutter_is_constant(c, id))
                onxi_cutter_take_constant(c, id, node);
            else if (def.kind == ONX_DEF_NONE || def.kind == ONX_DEF_INPUT ||
                     (def.kind == ONX_DEF_NODE && !node[def.index]))
                ONX_TRY(add_once(c, inputs, is_input, id));
        }
    return ONX_OK;
}

/* The values of the part that others read, and outputs of the model; if there are none, all values that are not
 * read. */
static onx_status outputs_of(onxi_cutter *c, const bool *node, id_list *outputs)
{
    for (int unread = 0; unread < 2 && !outputs->count; unread++)
        for (uint32_t i = 0; i < c->graph->node_count; i++)
            for (uint32_t k = 0; node[i] && k < c->graph->node[i]->output_count; k++) {
                const onx_name_id id = onx_index_find(c->index, onx_view(c->graph->node[i]->output[k]));
                uint32_t count;
                if (id == ONX_NO_NAME)
                    continue;
                const onx_use *uses = onx_index_uses(c->index, id, &count);
                bool wanted = onx_index_is_output(c->index, id) || (unread && !count);
                for (uint32_t u = 0; u < count && !wanted; u++)
                    wanted = !node[uses[u].node];
                if (wanted)
                    ONX_TRY(add_id(c, outputs, id));
            }
    return ONX_OK;
}

static onx_status extract_nodes(onxi_cutter *c, const onx_extract_options *options, onx_doc **out)
{
    bool *is_input = flags_of(c), *node = ONXI_ARRAY(c->scratch, bool, (size_t)c->graph->node_count + 1);
    id_list inputs = { 0 }, outputs = { 0 };
    if (!is_input || !node)
        return ONX_E_MEMORY;
    ONX_TRY(match_nodes(c, options, node));
    ONX_TRY(outputs_of(c, node, &outputs));
    ONX_TRY(inputs_of(c, node, &inputs, is_input));
    const onxi_part part = { node, inputs.items, outputs.items, inputs.count, outputs.count };
    return onxi_part_doc(c, &part, out);
}

static void tell_part(const onx_extract_options *o, const char *rule, onx_doc *part, const char *what)
{
    const onx_graph *g = onx_doc_model(part)->graph;
    onxi_tell_change(o->changed, o->user, "extract", rule, (onx_str){ 0 },
                     "%s %u nodes, %u inputs, %u outputs and %u initializers", what, g->node_count, g->input_count,
                     g->output_count, g->initializer_count);
}

static void warn_training(const onxi_cutter *c)
{
    if (c->model->training_info_count)
        onxi_warn(c->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "training information describes the whole model, and is not part of the result");
}

static onx_status extract(onx_ctx *cx, onx_doc *doc, const onx_extract_options *options, onx_doc **out)
{
    onxi_cutter c;
    onx_arena *scratch;
    onx_model *model;
    if (options->node_count && (options->input_count || options->output_count))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a part is given by nodes or by values, not by both");
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = onxi_cutter_open(&c, doc, scratch);
    if (status == ONX_OK && options->node_count)
        status = extract_nodes(&c, options, out);
    else if (status == ONX_OK) {
        status = onx_doc_reader(cx, doc, out);
        if (status == ONX_OK)
            status = onxi_extract_between(&c, (*out)->arena, options, &model);
        if (status == ONX_OK)
            (*out)->root = model;
    }
    if (status == ONX_OK) {
        warn_training(&c);
        tell_part(options, options->node_count ? "nodes" : "values", *out, "the part has");
    }
    onxi_cutter_close(&c);
    onx_arena_free(scratch);
    return status;
}

static onx_status extract_call(onx_ctx *cx, onx_doc *doc, const onx_extract_options *options, onx_doc **out)
{
    ONXI_TRANSFORM_TO(cx, doc, out, 1, false, extract(cx, doc, options, out));
}

onx_status onx_extract(onx_ctx *cx, onx_doc *doc, const onx_extract_options *options, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_extract_options, own, options);
    ONXI_NEED(cx, own.input || !own.input_count);
    ONXI_NEED(cx, own.output || !own.output_count);
    ONXI_NEED(cx, own.node || !own.node_count);
    const onx_status status = extract_call(cx, doc, &own, out);
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}
