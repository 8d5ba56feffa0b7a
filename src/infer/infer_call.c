/* infer_call.c - the interface of rules to the engine: values, constants, attributes, subgraphs. */
#include "infer/infer.h"

#include <stdio.h>

static onxi_infer_running *running(onxi_call *call)
{
    return (onxi_infer_running *)(void *)call;
}

/* The elements of a constant tensor. Unreadable elements are unknown; the checker reports them, except for external
 * data, which may simply be missing. */
static void read_value(onx_infer *e, onxi_infer_fact *fact)
{
    onxi_known_ints *value = onxi_arena_get(e->arena, sizeof *value);
    fact->value_tried = true;
    if (!value)
        return;
    bool external = onx_tensor_is_external(fact->tensor), quiet = e->doc && !external;
    size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    if (quiet && !e->quiet)
        e->quiet = onxi_ctx_worker(e->cx);
    if (quiet && e->quiet) /* tensors stored in the model are read without diagnostics */
        e->reader.cx = e->quiet;
    bool known = onxi_known_ints_of_tensor(e->doc ? &e->reader : NULL, e->arena, fact->tensor, value);
    e->reader.cx = e->cx;
    if (e->quiet)
        onx_diag_clear(e->quiet);
    if (known) {
        fact->value = value;
        fact->constant = true;
    } else {
        fact->unreadable = external && onx_diag_total(e->cx, ONX_ERROR) != errors;
    }
}

static const onxi_known_ints *call_value(onxi_call *call, uint32_t input)
{
    onxi_infer_running *run = running(call);
    onxi_infer_fact *fact = run->facts[input];
    if (!fact)
        return NULL;
    if (!fact->value && fact->tensor && !fact->value_tried)
        read_value(run->infer, fact);
    if (fact->unreadable) {
        run->failed = true; /* the result would be known if the data were available */
        (void)snprintf(run->why, sizeof run->why, "the external data of \"%.*s\" cannot be read",
                       ONX_ARG(onx_view(fact->tensor->name)));
    }
    if (fact->value && run->infer->options.no_data_prop && !fact->constant)
        return NULL;
    return fact->value;
}

static const onx_tensor *call_constant(onxi_call *call, uint32_t input)
{
    onxi_infer_fact *fact = input < call->input_count ? running(call)->facts[input] : NULL;
    return fact ? fact->tensor : NULL;
}

static onx_status call_subgraph(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                                onxi_type *outputs, uint32_t output_count)
{
    onxi_infer_running *run = running(call);
    onx_infer *e = run->infer;
    uint32_t limit = onx_ctx_limits(e->cx).depth;
    if (run->scope->depth >= limit) {
        e->cut++;
        return onxi_call_fail(call, "subgraphs and functions are nested more than %u levels deep", limit);
    }
    onxi_infer_scope scope = {
        .parent = run->scope,
        .graph = graph,
        .frame = run->scope->frame,
        .node = call->node,
        .node_index = run->index,
        .depth = run->scope->depth + 1,
        .unreachable = run->scope->unreachable || call->unreachable,
        .undo_mark = run->scope->frame->undo_count,
    };
    bool kept = !scope.frame->function; /* results of a function body are not kept */
    if (kept && !(scope.result = onxi_infer_result_of(e, graph, true)))
        return e->status;
    onxi_known_ints *values = call->subgraph_values;
    onx_status status = onxi_infer_graph_in(e, &scope, inputs, input_count, outputs, output_count);
    for (uint32_t i = 0; i < output_count && i < graph->output_count && status == ONX_OK; i++) {
        uint32_t name = onxi_infer_names_add(e, &scope.frame->names, onx_view(graph->output[i]->name));
        const onxi_infer_fact *fact = name == UINT32_MAX ? NULL : scope.frame->names.entries[name].fact;
        if (values && fact && fact->value)
            values[i] = *fact->value;
        if (fact && fact->loss && !run->inner && !call->unreachable)
            run->inner = fact->loss;
    }
    onxi_infer_scope_leave(e, &scope);
    return status;
}

static onx_status call_fail(onxi_call *call, const char *format, va_list args)
{
    onxi_infer_running *run = running(call);
    run->failed = true;
    (void)vsnprintf(run->why, sizeof run->why, format, args);
    return ONX_E_INVALID;
}

static onx_status call_type(onxi_call *call, const onx_type *type, onxi_type *out)
{
    return onxi_infer_type_read(running(call)->infer, type, out);
}

static onxi_op_id call_which(onxi_call *call, const onx_node *node)
{
    const onxi_bound *bound = onxi_bind(running(call)->scope->frame->binder, node);
    return bound && bound->kind == ONXI_BOUND_OPERATOR ? bound->op : ONXI_ID_NONE;
}

const onxi_call_ops onxi_infer_call_ops = {
    .value = call_value,
    .constant = call_constant,
    .subgraph = call_subgraph,
    .type = call_type,
    .which = call_which,
    .fail = call_fail,
};
