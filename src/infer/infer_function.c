/* infer_function.c - functions of the model, inferred per call with the types and attributes of the
 * caller. */
#include "infer/infer.h"

/* The attributes of the function: what the caller gives, else its defaults. */
static onx_status bind_attributes(onx_infer *e, onxi_frame *frame, const onx_function *f, const onxi_frame *caller,
                                  const onx_node *node, const onx_attribute **given)
{
    uint32_t room = f->attribute_count + f->attribute_proto_count;
    onx_str *names = ONXI_ARRAY(e->arena, onx_str, room + 1);
    const onx_attribute **attributes = ONXI_ARRAY(e->arena, const onx_attribute *, room + 1);
    if (!names || !attributes)
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < room; i++) {
        const onx_attribute *preset = i < f->attribute_count ? NULL : f->attribute_proto[i - f->attribute_count];
        names[i] = onx_view(preset ? preset->name : f->attribute[i]);
        const onx_attribute *a = NULL;
        if (node) {
            onx_bytes kept;
            ONX_TRY(onx_arena_keep(e->arena, names[i], &kept));
            onx_str text = onxi_arena_printf(e->arena, "%.*s", ONX_ARG(onx_view(kept)));
            a = onxi_infer_attribute(caller, node, text.ptr ? text.ptr : "");
        }
        for (uint32_t k = 0; given && given[k]; k++)
            if (onx_str_equal(onx_view(given[k]->name), names[i]))
                a = given[k];
        attributes[i] = a ? a : preset;
    }
    frame->attribute_names = names;
    frame->attributes = attributes;
    frame->attribute_count = room;
    return ONX_OK;
}

static onx_status bind_function_inputs(onx_infer *e, onxi_scope *scope, const onx_function *f, onxi_fact *const *inputs,
                                       uint32_t input_count)
{
    for (uint32_t i = 0; i < f->input_count; i++) {
        uint32_t name = onxi_names_add(e, &scope->frame->names, onx_view(f->input[i]));
        onxi_fact *fact = i < input_count ? inputs[i] : NULL;
        if (name == UINT32_MAX)
            return e->status;
        if (!fact) {
            if (!(fact = onxi_fact_new(e)))
                return e->status;
            fact->omitted = true;
        }
        ONX_TRY(onxi_scope_bind(e, scope, name, fact));
    }
    return ONX_OK;
}

static onx_status run_body(onx_infer *e, onxi_scope *scope, const onx_function *f, onxi_fact *const *inputs,
                           uint32_t input_count, onxi_fact **outputs, uint32_t output_count)
{
    /* Types that the body declares are hints of the author for one caller; what this caller's types give counts. */
    ONX_TRY(bind_function_inputs(e, scope, f, inputs, input_count));
    ONX_TRY(onxi_infer_nodes(e, scope, f->node, f->node_count));
    for (uint32_t i = 0; i < output_count; i++) {
        uint32_t name =
            i < f->output_count ? onxi_names_add(e, &scope->frame->names, onx_view(f->output[i])) : UINT32_MAX;
        outputs[i] = name == UINT32_MAX ? NULL : scope->frame->names.entries[name].fact;
    }
    return e->status;
}

onx_status onxi_infer_body(onx_infer *e, onxi_scope *caller, const onx_node *node, uint32_t node_index,
                           const onx_function *function, onxi_fact *const *inputs, uint32_t input_count,
                           const onx_attribute **attributes, onxi_fact **outputs, uint32_t output_count)
{
    onxi_frame frame = { .caller = caller ? caller->frame : NULL, .function = function };
    onxi_scope scope = { .parent = caller,
                         .frame = &frame,
                         .node = node,
                         .node_index = node_index,
                         .depth = caller ? caller->depth + 1 : 0 };
    /* Paths of what is reported later refer to the scope: those that end up in results are texts by then. */
    int64_t ir_version = e->model ? e->model->ir_version : 10;
    ONX_TRY(onxi_frame_imports(e, &frame, function->opset_import, function->opset_import_count, ir_version));
    onx_status status = bind_attributes(e, &frame, function, caller ? caller->frame : NULL, node, attributes);
    if (status == ONX_OK)
        status = run_body(e, &scope, function, inputs, input_count, outputs, output_count);
    if (caller && scope.unsupported) {
        if (!caller->unsupported)
            caller->unsupported_at = node_index;
        caller->unsupported = true;
    }
    onxi_frame_free(e, &frame);
    return status;
}

onx_status onxi_infer_call_function(onxi_running *run, const onx_function *function)
{
    onx_infer *e = run->infer;
    onxi_call *call = &run->call;
    uint32_t limit = onx_ctx_limits(e->cx).depth;
    for (const onxi_frame *f = run->scope->frame; f; f = f->caller)
        if (f->function == function) {
            onxi_infer_report(e, run->scope, call->node, run->index, true, "function %.*s calls itself",
                              ONX_ARG(onx_view(function->name)));
            return ONX_E_INVALID;
        }
    if (run->scope->depth >= limit)
        return onxi_call_fail(call, "subgraphs and functions are nested more than %u levels deep", limit);
    if (call->output_count > function->output_count || call->input_count > function->input_count) {
        onxi_infer_report(e, run->scope, call->node, run->index, false,
                          "the node has %u inputs and %u outputs, function %.*s has %u and %u", call->input_count,
                          call->output_count, ONX_ARG(onx_view(function->name)), function->input_count,
                          function->output_count);
        onxi_infer_count_failures(e, run->scope, run->index, 1);
    }
    onxi_fact **outputs = ONXI_ARRAY(e->arena, onxi_fact *, call->output_count + 1);
    onxi_fact **inputs = ONXI_ARRAY(e->arena, onxi_fact *, call->input_count + 1);
    if (!outputs || !inputs)
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < call->input_count; i++) {
        inputs[i] = run->facts[i];
        if (!inputs[i] && call->inputs[i] && !(inputs[i] = onxi_fact_new(e))) /* given, but nothing is known of it */
            return e->status;
    }
    ONX_TRY(onxi_infer_body(e, run->scope, call->node, run->index, function, inputs, call->input_count, NULL, outputs,
                            call->output_count));
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (!outputs[i])
            continue;
        call->outputs[i] = outputs[i]->type;
        if (outputs[i]->value)
            call->output_values[i] = *outputs[i]->value;
    }
    return ONX_OK;
}
