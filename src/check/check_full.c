/* check_full.c - full mode: strict inference applies the rules that need types and shapes, and its diagnostics become
 * findings; the inferred types are then compared with the declared ones. */
#include "check/check.h"

#include "infer/infer.h"

/* A declared value whose sizes have been inferred: its variables have these sizes (N-08). */
static void bind_value(onxi_check *k, onx_infer *infer, const onxi_check_at *at, const onx_graph *g,
                       const onx_value_info *v, onx_rule_severity severity)
{
    const onx_type *type = v->type && ONX_HAS(type, v->type, tensor_type) ? v->type : NULL;
    const onx_tensor_shape *declared = type ? type->tensor_type->shape : NULL;
    if (!declared || !declared->dim_count)
        return;
    const onx_type *known = onx_infer_type(infer, g, onx_view(v->name));
    const onx_tensor_shape *shape = known && ONX_HAS(type, known, tensor_type) ? known->tensor_type->shape : NULL;
    for (uint32_t i = 0; shape && shape->dim_count == declared->dim_count && i < shape->dim_count; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value >= 0)
            onxi_check_bind_dim(k, at, declared->dim[i], shape->dim[i]->dim_value, severity);
}

/* value_info is only a hint, so two contradicting hints are a warning. */
static void bind_graph(onxi_check *k, onx_infer *infer, const onxi_check_at *at, const onx_graph *g, uint32_t depth)
{
    onx_rule_severity severity = depth ? ONX_RULE_WARNING : ONX_RULE_ERROR;
    for (uint32_t i = 0; i < g->input_count; i++)
        bind_value(k, infer, ONXI_AT_ITEM(at, input, i, VALUE_INFO, g->input[i]), g, g->input[i], severity);
    for (uint32_t i = 0; i < g->output_count; i++)
        bind_value(k, infer, ONXI_AT_ITEM(at, output, i, VALUE_INFO, g->output[i]), g, g->output[i], severity);
    for (uint32_t i = 0; i < g->value_info_count; i++)
        bind_value(k, infer, ONXI_AT_ITEM(at, value_info, i, VALUE_INFO, g->value_info[i]), g, g->value_info[i],
                   ONX_RULE_WARNING);
    for (uint32_t i = 0; i < g->node_count && depth < k->depth_limit; i++) {
        const onx_node *n = g->node[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, node, i, NODE, n);
        for (uint32_t j = 0; j < n->attribute_count; j++) {
            uint32_t count;
            onx_graph *const *inner = onx_attribute_value(n->attribute[j], ONX_SLOT_G, &count);
            const onxi_check_at *attribute = ONXI_AT_ITEM(here, attribute, j, ATTRIBUTE, n->attribute[j]);
            if (inner && *inner)
                bind_graph(k, infer, ONXI_AT_MESSAGE(attribute, g, GRAPH, *inner), *inner, depth + 1);
        }
    }
}

/* After errors of other kinds inference continues with the known types; a note reports what could not be checked. */
static void say_what_is_left_out(onxi_check *k, onx_infer *infer, uint32_t nodes)
{
    const onxi_check_at root = { NULL, ONXI_STEP_ROOT, ONXI_NO_INDEX, k->doc->kind, k->doc->root };
    const onxi_check_at *graph = ONXI_AT_MESSAGE(&root, graph, GRAPH, k->model->graph);
    onx_infer_summary s = onx_infer_summarize(infer);
    if (s.unknown)
        onxi_check_find(
            k, graph, "ND-20", (onxi_check_detail){ .severity = ONX_RULE_NOTE },
            "after the errors, the types of %llu of %llu values are not known, so rules about types were not "
            "applied to all nodes",
            (unsigned long long)s.unknown, (unsigned long long)s.values);
    if (nodes)
        onxi_check_find(k, graph, "ND-20", (onxi_check_detail){ .severity = ONX_RULE_NOTE },
                        "what inference says of nodes with errors is left out: %u times", nodes);
}

void onxi_check_full(onxi_check *k)
{
    onx_infer_options options = { .strict = true, .check_type = true, .registry = k->registry };
    const onxi_check_at root = { NULL, ONXI_STEP_ROOT, ONXI_NO_INDEX, k->doc->kind, k->doc->root };
    onxi_diag_mark before = onxi_diag_here(k->cx);
    onx_infer *infer = NULL;
    bool broken = k->broken;
    if (!k->model->graph)
        return; /* an error of its own */
    onx_status status = onxi_infer_start(k->cx, k->doc, k->model, &options, &infer);
    if (status == ONX_OK) {
        infer->incomplete = broken;
        status = onxi_infer_main(infer);
    }
    if (status != ONX_OK && status != ONX_E_INVALID)
        k->status = status;
    uint32_t said = onxi_check_adopt(k, before, NULL, "ND-20");
    if (infer && k->status == ONX_OK) {
        if (onxi_check_wants(k, "N-08"))
            bind_graph(k, infer, ONXI_AT_MESSAGE(&root, graph, GRAPH, k->model->graph), k->model->graph, 0);
        if (broken)
            say_what_is_left_out(k, infer, said);
    }
    onx_infer_free(infer);
}
