/* infer_function.c - model functions, inferred per call with the types and attributes of the caller. */
#include "infer/infer.h"

/* The binder for the function's nodes, and the arguments of its parameters. */
static onx_status open_frame(onx_infer *e, onxi_infer_frame *frame, const onx_attribute *const *given, uint32_t count)
{
    ONX_TRY(onxi_infer_binder(e, frame->function, &frame->binder));
    const onxi_arguments *outer = frame->caller && frame->caller->function ? &frame->caller->arguments : NULL;
    onx_status status =
        onxi_arguments_make(&frame->arguments, &frame->binder->parameters, e->arena, given, count, outer);
    return status == ONX_OK ? ONX_OK : (e->status = status);
}

static onx_status bind_function_inputs(onx_infer *e, onxi_infer_scope *scope, const onx_function *f,
                                       onxi_infer_fact *const *inputs, uint32_t input_count)
{
    for (uint32_t i = 0; i < f->input_count; i++) {
        uint32_t name = onxi_infer_names_add(e, &scope->frame->names, onx_view(f->input[i]));
        onxi_infer_fact *fact = i < input_count ? inputs[i] : NULL;
        if (name == UINT32_MAX)
            return e->status;
        if (!fact) {
            if (!(fact = onxi_infer_fact_new(e)))
                return e->status;
            fact->omitted = true;
        }
        scope->frame->names.entries[name].made = true;
        ONX_TRY(onxi_infer_scope_bind(e, scope, name, fact));
    }
    return ONX_OK;
}

static onx_status run_body(onx_infer *e, onxi_infer_scope *scope, const onx_function *f, onxi_infer_fact *const *inputs,
                           uint32_t input_count, onxi_infer_fact **outputs, uint32_t output_count)
{
    /* Types declared in the body are hints for one particular caller; the types of this call have precedence. */
    ONX_TRY(bind_function_inputs(e, scope, f, inputs, input_count));
    ONX_TRY(onxi_infer_nodes(e, scope, f->node, f->node_count));
    for (uint32_t i = 0; i < output_count; i++) {
        uint32_t name =
            i < f->output_count ? onxi_infer_names_add(e, &scope->frame->names, onx_view(f->output[i])) : UINT32_MAX;
        outputs[i] = name == UINT32_MAX ? NULL : scope->frame->names.entries[name].fact;
    }
    return e->status;
}

/* Infers the body; the types of its outputs are stored in `outputs`. */
static onx_status walk_body(onx_infer *e, onxi_infer_frame *frame, onxi_infer_scope *scope,
                            onxi_infer_fact *const *inputs, uint32_t input_count, onxi_infer_fact **outputs,
                            uint32_t output_count)
{
    onxi_infer_scope *caller = scope->parent;
    onx_status status = run_body(e, scope, frame->function, inputs, input_count, outputs, output_count);
    if (caller && scope->unsupported) {
        if (!caller->unsupported)
            caller->unsupported_at = scope->node_index;
        caller->unsupported = true;
    }
    onxi_infer_frame_free(e, frame);
    return status;
}

onx_status onxi_infer_body(onx_infer *e, const onx_function *function, onxi_infer_fact *const *inputs,
                           uint32_t input_count, const onx_attribute *const *attributes, uint32_t attribute_count,
                           onxi_infer_fact **outputs, uint32_t output_count)
{
    onxi_infer_frame frame = { .function = function };
    onxi_infer_scope scope = { .frame = &frame };
    ONX_TRY(open_frame(e, &frame, attributes, attribute_count));
    return walk_body(e, &frame, &scope, inputs, input_count, outputs, output_count);
}

/* ---- reusing results of equal calls ---- */

/* The inputs of a call and its result. A body depends on nothing else, so an equal call reuses the result. */
typedef struct made_call {
    struct made_call *next;
    const onx_function *function;
    const onx_attribute **attributes;
    onxi_infer_fact **inputs;
    uint32_t input_count, output_count;
    onxi_type *types;
    onxi_known_ints *values;
    onxi_infer_loss *loss; /* the reason of one of the outputs, or NULL */
    uint64_t failed;
    bool unsupported;
} made_call;

static onxi_secret hash_dims(onxi_secret h, const onxi_dim *dims, uint64_t count)
{
    return count ? onxi_hash_then(h, onxi_hash(h, dims, (size_t)count * sizeof *dims)) : h;
}

/* Maximum number of calls that are compared per key. Further ones are walked again, which counts as visits; a longer
 * search could take quadratic time for hostile files. */
enum { CALLS_ALIKE = 16 };

/* Hashes a number or string, of long strings only the beginning, because a default is hashed in every call. */
static onxi_secret hash_attribute(onxi_secret h, const onx_attribute *a)
{
    enum { START = 64 };
    uint32_t count;
    const void *value = NULL;
    size_t len = 0;
    if (a && (value = onx_attribute_value(a, ONX_SLOT_I, &count))) {
        len = sizeof(int64_t);
    } else if (a && (value = onx_attribute_value(a, ONX_SLOT_F, &count))) {
        len = sizeof(float);
    } else if (a && (value = onx_attribute_value(a, ONX_SLOT_INTS, &count))) {
        len = (size_t)count * sizeof(int64_t);
    } else if (a && (value = onx_attribute_value(a, ONX_SLOT_S, &count))) {
        const onx_str text = onx_view(*(const onx_bytes *)value);
        value = text.ptr;
        len = text.len;
    }
    h = onxi_hash_then(h, onxi_hash_word(h, len));
    return len ? onxi_hash_then(h, onxi_hash(h, value, len < START ? len : START)) : h;
}

static uint64_t hash_call(const onx_infer *e, const onxi_infer_frame *frame, onxi_infer_fact *const *inputs,
                          uint32_t input_count)
{
    onxi_secret h = e->calls.table.secret;
    h = onxi_hash_then(h, onxi_hash_word(h, (uint64_t)(uintptr_t)frame->function ^ (uint64_t)input_count << 48));
    for (uint32_t i = 0; i < frame->binder->parameters.count; i++)
        h = hash_attribute(h, frame->arguments.values[i]);
    for (uint32_t i = 0; i < input_count; i++) {
        const onxi_type *type = inputs[i] ? &inputs[i]->type : NULL;
        uint64_t head = type ? type->kind + ((uint64_t)type->dtype << 8) + ((uint64_t)type->ranked << 16) : 1;
        h = onxi_hash_then(h, onxi_hash_word(h, head));
        if (type && type->ranked)
            h = hash_dims(h, type->dims, type->rank);
        if (type && !inputs[i]->tensor && inputs[i]->value)
            h = hash_dims(h, inputs[i]->value->elements, inputs[i]->value->count);
    }
    return onxi_hash_word(h, input_count);
}

static bool same_call(const made_call *made, const onxi_infer_frame *frame, onxi_infer_fact *const *inputs,
                      uint32_t input_count, uint32_t output_count)
{
    if (made->function != frame->function || made->input_count != input_count || made->output_count < output_count)
        return false;
    for (uint32_t i = 0; i < frame->binder->parameters.count; i++) {
        const onx_attribute *a = made->attributes[i], *b = frame->arguments.values[i];
        if (a != b && (!a || !b || !onx_message_equal(ONX_KIND_ATTRIBUTE, a, b)))
            return false;
    }
    for (uint32_t i = 0; i < input_count; i++)
        if (made->inputs[i] != inputs[i] &&
            (!made->inputs[i] || !inputs[i] || !onxi_infer_fact_same(made->inputs[i], inputs[i])))
            return false;
    return true;
}

/* Subgraphs passed to a function may capture values of the caller. */
static bool has_graph(const onxi_infer_frame *frame)
{
    uint32_t count;
    for (uint32_t i = 0; i < frame->binder->parameters.count; i++)
        if (frame->arguments.values[i] && (onx_attribute_value(frame->arguments.values[i], ONX_SLOT_G, &count) ||
                                           onx_attribute_value(frame->arguments.values[i], ONX_SLOT_GRAPHS, &count)))
            return true;
    return false;
}

static bool has_fresh_type(const onx_infer *e, const onxi_type *type, onxi_dim after)
{
    for (uint32_t i = 0; type->ranked && i < type->rank; i++)
        if (onxi_dim_has_fresh(e->dims, type->dims[i], after))
            return true;
    return type->inner && has_fresh_type(e, type->inner, after);
}

/* Sizes that depend on data differ between calls, although the arguments look the same. */
static bool has_fresh(const onx_infer *e, const made_call *made, onxi_dim after)
{
    for (uint32_t i = 0; i < made->output_count; i++) {
        if (has_fresh_type(e, &made->types[i], after))
            return true;
        for (uint32_t k = 0; made->values[i].elements && k < made->values[i].count; k++)
            if (onxi_dim_has_fresh(e->dims, made->values[i].elements[k], after))
                return true;
    }
    return false;
}

static onx_status new_call(onx_infer *e, const onxi_infer_frame *frame, onxi_infer_fact **inputs, uint32_t input_count,
                           uint32_t output_count, made_call **out)
{
    made_call *made = ONXI_NEW(e->arena, made_call);
    if (!made)
        return e->status = ONX_E_MEMORY;
    *made = (made_call){ .function = frame->function,
                         .attributes = frame->arguments.values,
                         .inputs = inputs,
                         .input_count = input_count,
                         .output_count = output_count,
                         .types = ONXI_ARRAY(e->arena, onxi_type, (size_t)output_count + 1),
                         .values = ONXI_ARRAY(e->arena, onxi_known_ints, (size_t)output_count + 1) };
    *out = made;
    return made->types && made->values ? ONX_OK : (e->status = ONX_E_MEMORY);
}

static onx_status infer_call(onxi_infer_running *run, const onx_function *function, onxi_infer_fact **inputs,
                             made_call **out)
{
    onx_infer *e = run->infer;
    onxi_call *call = &run->call;
    onxi_infer_scope *caller = run->scope;
    onxi_infer_frame frame = { .caller = caller->frame, .function = function };
    onxi_infer_scope scope = { .parent = caller,
                               .frame = &frame,
                               .node = call->node,
                               .node_index = run->index,
                               .depth = caller->depth + 1,
                               .unreachable = caller->unreachable };
    ONX_TRY(open_frame(e, &frame, (const onx_attribute *const *)call->node->attribute, call->node->attribute_count));
    uint64_t key = hash_call(e, &frame, inputs, call->input_count);
    void **known = onxi_infer_map_at(e, &e->calls, key);
    if (!known)
        return e->status;
    uint32_t alike = 0;
    for (*out = *known; *out && alike < CALLS_ALIKE; *out = (*out)->next, alike++)
        if (same_call(*out, &frame, inputs, call->input_count, call->output_count)) {
            caller->unsupported_at = (*out)->unsupported && !caller->unsupported ? run->index : caller->unsupported_at;
            caller->unsupported |= (*out)->unsupported;
            onxi_infer_count_failures(e, caller, run->index, (*out)->failed);
            return ONX_OK;
        }
    onxi_infer_fact **outputs = ONXI_ARRAY(e->arena, onxi_infer_fact *, (size_t)call->output_count + 1);
    if (!outputs)
        return e->status = ONX_E_MEMORY;
    uint64_t failed = e->failed, cut = e->cut;
    onxi_dim newest = onxi_dims_newest(e->dims);
    ONX_TRY(walk_body(e, &frame, &scope, inputs, call->input_count, outputs, call->output_count));
    ONX_TRY(new_call(e, &frame, inputs, call->input_count, call->output_count, out));
    made_call *made = *out;
    for (uint32_t i = 0; i < made->output_count; i++) {
        if (outputs[i])
            made->types[i] = outputs[i]->type;
        if (outputs[i] && outputs[i]->value)
            made->values[i] = *outputs[i]->value;
        if (outputs[i] && outputs[i]->loss && !made->loss)
            made->loss = outputs[i]->loss;
    }
    made->failed = e->failed - failed;
    made->unsupported = scope.unsupported;
    if (e->cut != cut || scope.unreachable || has_graph(&frame) || has_fresh(e, made, newest))
        return ONX_OK;
    if (!(known = onxi_infer_map_at(e, &e->calls, key))) /* the table may have been reallocated */
        return e->status;
    made->next = *known;
    *known = made;
    return ONX_OK;
}

onx_status onxi_infer_call_function(onxi_infer_running *run, const onx_function *function)
{
    onx_infer *e = run->infer;
    onxi_call *call = &run->call;
    uint32_t limit = onx_ctx_limits(e->cx).depth;
    for (const onxi_infer_frame *f = run->scope->frame; f; f = f->caller)
        if (f->function == function) {
            onxi_infer_report(e, run->scope, call->node, run->index, true, "function %.*s calls itself",
                              ONX_ARG(onx_view(function->name)));
            return ONX_E_INVALID;
        }
    if (run->scope->depth >= limit) {
        e->cut++;
        return onxi_call_fail(call, "subgraphs and functions are nested more than %u levels deep", limit);
    }
    if (call->output_count > function->output_count || call->input_count > function->input_count) {
        onxi_infer_report(e, run->scope, call->node, run->index, false,
                          "the node has %u inputs and %u outputs, function %.*s has %u and %u", call->input_count,
                          call->output_count, ONX_ARG(onx_view(function->name)), function->input_count,
                          function->output_count);
        onxi_infer_count_failures(e, run->scope, run->index, 1);
    }
    onxi_infer_fact **inputs = ONXI_ARRAY(e->arena, onxi_infer_fact *, (size_t)call->input_count + 1);
    if (!inputs)
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < call->input_count; i++) {
        inputs[i] = run->facts[i];
        if (!inputs[i] && call->inputs[i] &&
            !(inputs[i] = onxi_infer_fact_new(e))) /* present, but nothing is known of it */
            return e->status;
    }
    made_call *made = NULL;
    ONX_TRY(infer_call(run, function, inputs, &made));
    run->inner = made->loss;
    for (uint32_t i = 0; i < call->output_count; i++) {
        call->outputs[i] = made->types[i];
        call->output_values[i] = made->values[i];
    }
    return ONX_OK;
}

/* ---- operators that are inferred from their function bodies ---- */

/* The part of a body that applies to a call, as a function. */
typedef struct onxi_infer_made_body {
    struct onxi_infer_made_body *next;
    const onxi_schema *schema;
    uint64_t parts;
    onx_doc *doc;
} made_body;

void onxi_infer_bodies_free(onx_infer *e)
{
    for (; e->bodies; e->bodies = e->bodies->next)
        onx_doc_free(e->bodies->doc);
}

onx_status onxi_infer_call_operator(onxi_infer_running *run)
{
    onx_infer *e = run->infer;
    const onxi_schema *schema = run->call.schema;
    const uint64_t parts = onxi_body_choose(&run->call);
    made_body *b = e->bodies;
    while (b && (b->schema != schema || b->parts != parts))
        b = b->next;
    if (!parts)
        return ONX_OK;
    if (!b) {
        if (!(b = ONXI_NEW(e->arena, made_body)))
            return e->status = ONX_E_MEMORY;
        *b = (made_body){ .next = e->bodies, .schema = schema, .parts = parts };
        onx_status status = onxi_body_function(e->cx, schema, parts, &b->doc);
        if (status != ONX_OK)
            return e->status = status;
        e->bodies = b;
    }
    return onxi_infer_call_function(run, onx_doc_root(b->doc, ONX_KIND_FUNCTION));
}
