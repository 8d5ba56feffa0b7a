/* run_graph.c - resolves a graph: names become slots, functions are inlined, subgraphs are resolved with their
 * captures, nodes with constant inputs are folded, and unused nodes are removed. */
#include "run/run_build.h"

/* ---- names ---- */

typedef onxi_run_builder builder;

static uint32_t find_name(const builder *b, onx_str name)
{
    for (uint32_t i = 1; i <= ONXI_RUN_RECENT && i <= b->made; i++) {
        const onxi_dict_entry *entry = &b->names.entries[b->recent[(b->made - i) % ONXI_RUN_RECENT]];
        if (onx_str_equal(entry->key, name))
            return entry->value;
    }
    const onxi_dict_entry *entry = onxi_dict_find(&b->names, name);
    return entry ? entry->value : ONXI_NO_SLOT;
}

onx_status onxi_run_graph_add_slot(onxi_run_graph *g, onx_str name, uint32_t *out)
{
    if (!ONXI_GROW_IN(g->session->arena, g->slots, g->slot_room, (uint64_t)g->slot_count + 1))
        return ONX_E_MEMORY;
    g->slots[g->slot_count] = (onxi_run_graph_slot){ .name = name };
    *out = g->slot_count++;
    return ONX_OK;
}

static onx_status defined_twice(const builder *b, onx_str name)
{
    return onxi_fail(b->session->cx, ONX_E_INVALID, ONXI_NOWHERE, "the name \"%.*s\" is defined twice", ONX_ARG(name));
}

onx_status onxi_run_build_define(builder *b, onx_str name, uint32_t *out)
{
    bool added;
    if (!onxi_dict_at(&b->names, name, b->g->slot_count, &added))
        return ONX_E_MEMORY;
    if (!added)
        return defined_twice(b, name);
    b->recent[b->made++ % ONXI_RUN_RECENT] = b->names.count - 1;
    return onxi_run_graph_add_slot(b->g, name, out);
}

onx_status onxi_run_build_name(builder *b, onx_str name, uint32_t slot)
{
    bool added;
    if (!onxi_dict_at(&b->names, name, slot, &added))
        return ONX_E_MEMORY;
    return added ? ONX_OK : defined_twice(b, name);
}

/* ---- constants ---- */

onx_status onxi_run_session_keep(onxi_run_session *s, onx_value *value)
{
    onxi_run_owned *o = ONXI_NEW(s->arena, onxi_run_owned);
    if (!o) {
        onx_value_free(value);
        return ONX_E_MEMORY;
    }
    *o = (onxi_run_owned){ s->constants, value };
    s->constants = o;
    s->constant_bytes += value->size;
    pthread_mutex_lock(&s->root->lock);
    s->kept_bytes += value->size;
    pthread_mutex_unlock(&s->root->lock);
    if (onxi_run_constant_bytes(s) > s->options.memory)
        return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "constants exceed the memory limit of %llu bytes",
                         (unsigned long long)s->options.memory);
    return ONX_OK;
}

static onx_status load_slot(builder *b, uint32_t slot)
{
    onxi_run_graph_slot *s = &b->g->slots[slot];
    const onxi_run_session *root = b->session->root;
    if (root != b->session && s->tensor && b->g->graph == root->main->graph) {
        /* inputs and initializers of the main graph have the same slots in the root and in the variant */
        const onxi_run_graph_slot *same = &root->main->slots[slot];
        s->shared = same->constant && onx_str_equal(same->name, s->name);
        if (s->shared) {
            s->tensor = NULL;
            s->constant = same->constant;
            s->source = same->source;
            return ONX_OK;
        }
    }
    if (s->tensor) {
        const onx_tensor *t = s->tensor;
        s->tensor = NULL;
        return onxi_run_constant_load(b->session, t, &s->constant, &s->source);
    }
    if (s->sparse) {
        onx_value *v;
        ONX_TRY(onx_value_from_message(b->session->cx, &b->session->reader, ONX_KIND_SPARSE_TENSOR, s->sparse, &v));
        s->sparse = NULL;
        s->constant = v;
        return onxi_run_session_keep(b->session, v);
    }
    return ONX_OK;
}

/* ---- uses ---- */

static onx_status capture(builder *b, onx_str name, uint32_t *out);

onx_status onxi_run_build_use(builder *b, onx_str name, uint32_t *out)
{
    *out = find_name(b, name);
    if (*out == ONXI_NO_SLOT && b->around)
        return onxi_run_build_use(b->around, name, out);
    if (*out == ONXI_NO_SLOT && b->outer)
        ONX_TRY(capture(b, name, out));
    if (*out == ONXI_OMITTED) /* an omitted input of a function */
        *out = ONXI_NO_SLOT;
    return *out == ONXI_NO_SLOT ? ONX_OK : load_slot(b, *out);
}

/* Does the name stand for an input of an enclosing function that its call leaves out? */
static bool is_omitted(const builder *b, onx_str name)
{
    uint32_t slot = find_name(b, name);
    while (slot == ONXI_NO_SLOT && (b->around || b->outer)) {
        b = b->around ? b->around : b->outer;
        slot = find_name(b, name);
    }
    return slot == ONXI_OMITTED;
}

/* Finds or adds a capture of the op that holds the graph; returns its index. Each slot is captured once for all
 * subgraphs of the op. */
static onx_status hold_capture(builder *b, uint32_t outside, uint32_t *index_out)
{
    onxi_run_op *holder = b->holder;
    onxi_run_graph_slot *slot = &b->outer->g->slots[outside];
    if (slot->captor != holder) {
        uint32_t total = holder->input_count + holder->capture_count;
        if (!ONXI_GROW_IN(b->session->arena, holder->inputs, holder->input_room, (uint64_t)total + 1))
            return ONX_E_MEMORY;
        holder->inputs[total] = outside;
        slot->captor = holder;
        slot->capture = holder->capture_count++;
    }
    *index_out = slot->capture;
    return ONX_OK;
}

/* Captures a name of the enclosing graph: a constant there is a constant here, any other value becomes an additional
 * input. */
static onx_status capture(builder *b, onx_str name, uint32_t *out)
{
    uint32_t outside;
    ONX_TRY(onxi_run_build_use(b->outer, name, &outside));
    *out = ONXI_NO_SLOT;
    if (outside == ONXI_NO_SLOT)
        return ONX_OK;
    ONX_TRY(onxi_run_build_define(b, name, out));
    const onx_value *constant = b->outer->g->slots[outside].constant;
    b->g->slots[*out].constant = constant;
    b->g->slots[*out].source = b->outer->g->slots[outside].source;
    b->g->slots[*out].shared = b->outer->g->slots[outside].shared;
    if (constant)
        return ONX_OK;
    uint32_t at;
    ONX_TRY(hold_capture(b, outside, &at));
    onx_arena *arena = b->session->arena;
    onxi_run_graph *g = b->g;
    const uint32_t total = g->input_count + g->capture_count;
    if (!ONXI_GROW_IN(arena, g->inputs, g->input_room, (uint64_t)total + 1) ||
        !ONXI_GROW_IN(arena, g->captures, g->capture_room, (uint64_t)g->capture_count + 1))
        return ONX_E_MEMORY;
    g->inputs[total] = *out;
    g->captures[g->capture_count++] = at;
    return ONX_OK;
}

/* ---- nodes ---- */

/* A binder that resolves the nodes of the model, or those of a function's body. */
static onx_status new_binder(onxi_run_session *s, const onxi_functions *functions, const onx_function *body,
                             onxi_binder **out)
{
    const onx_model *model = s->model;
    if (*out)
        return ONX_OK;
    if (!(*out = ONXI_NEW(s->arena, onxi_binder)))
        return ONX_E_MEMORY;
    **out = (onxi_binder){ .arena = s->arena, .registry = s->options.registry, .functions = functions };
    if (body)
        return onxi_binder_open_body(*out, body);
    return onxi_binder_open(*out, model->opset_import, model->opset_import_count, onxi_model_is_legacy(model));
}

/* The arguments of the enclosing function's call; NULL in the graphs of the model. */
static const onxi_arguments *arguments_of(const builder *b)
{
    const onxi_run_frame *call = onxi_run_frame_of_call(b->frame);
    return call ? &call->arguments : NULL;
}

#define PLACE(b, node, index) ONXI_AT_PATH(onxi_run_frame_path((b)->session->arena, (b)->frame, (index), (node)))

/* Calls count as nodes: without that, functions that call each other twice would cost exponential time. */
static onx_status count_node(const builder *b, const onx_node *node, uint32_t index)
{
    onxi_run_session *s = b->session;
    const uint64_t limit = onxi_calls_limit(s->model);
    if (++s->op_total > limit)
        return onxi_fail(s->cx, ONX_E_LIMIT, PLACE(b, node, index),
                         "the model has more than %llu nodes and calls when its functions are inlined",
                         (unsigned long long)limit);
    return ONX_OK;
}

static onx_status build_nodes(builder *b, onx_node *const *nodes, uint32_t count);
static onx_status build_graph(onxi_run_session *s, const onx_graph *graph, const bool *given, builder *outer,
                              onxi_run_op *holder, const onxi_run_frame *frame, uint32_t depth, onxi_run_graph **out);

/* Inlines the body of a call: with its own scope of names and its inputs bound to the slots of the call. */
static onx_status inline_function(builder *b, const onx_node *node, uint32_t index, const onx_function *f,
                                  onxi_binder *binder)
{
    onxi_run_session *s = b->session;
    uint32_t depth = b->frame ? b->frame->depth + 1 : 1;
    onxi_run_frame *frame = ONXI_NEW(s->arena, onxi_run_frame);
    if (!frame)
        return ONX_E_MEMORY;
    *frame = (onxi_run_frame){ .parent = b->frame, .node = node, .index = index, .function = f, .depth = depth };
    if (depth > onx_ctx_limits(s->cx).depth)
        return onxi_fail(s->cx, ONX_E_LIMIT, PLACE(b, node, index),
                         "functions call each other more than %u levels deep", onx_ctx_limits(s->cx).depth);
    ONX_TRY(onxi_arguments_make(&frame->arguments, &binder->parameters, s->arena,
                                (const onx_attribute *const *)node->attribute, node->attribute_count, arguments_of(b)));
    builder inner = { .session = s, .g = b->g, .frame = frame, .binder = binder, .arena = b->arena, .lists = b->lists };
    inner.depth = b->depth;
    inner.names = onxi_dict_in_arena(inner.arena);
    for (uint32_t i = 0; i < f->input_count; i++) {
        onx_str formal = onx_view(f->input[i]),
                actual = i < node->input_count ? onx_view(node->input[i]) : (onx_str){ 0 };
        uint32_t slot = ONXI_NO_SLOT;
        if (actual.len)
            ONX_TRY(onxi_run_build_use(b, actual, &slot));
        if (actual.len && slot == ONXI_NO_SLOT && !is_omitted(b, actual))
            return onxi_fail(s->cx, ONX_E_INVALID, PLACE(b, node, index),
                             "function %.*s is called with \"%.*s\", which nothing has made so far",
                             ONX_ARG(onx_view(f->name)), ONX_ARG(actual));
        if (find_name(&inner, formal) == ONXI_NO_SLOT) /* omitted: `bind_operands` treats it as omitted, too */
            ONX_TRY(onxi_run_build_name(&inner, formal, slot == ONXI_NO_SLOT ? ONXI_OMITTED : slot));
    }
    ONX_TRY(build_nodes(&inner, f->node, f->node_count));
    for (uint32_t i = 0; i < node->output_count; i++) {
        onx_str actual = onx_view(node->output[i]);
        if (!actual.len)
            continue;
        uint32_t slot = i < f->output_count ? find_name(&inner, onx_view(f->output[i])) : ONXI_NO_SLOT;
        if (slot >= ONXI_OMITTED)
            return onxi_fail(s->cx, ONX_E_INVALID, PLACE(b, node, index), "function %.*s does not make its output %u",
                             ONX_ARG(onx_view(f->name)), i);
        ONX_TRY(onxi_run_build_name(b, actual, slot));
    }
    return ONX_OK;
}

static onx_status bind_operands(builder *b, onxi_run_op *op)
{
    const onx_node *node = op->node;
    onxi_run_session *s = b->session;
    uint32_t inputs = node->input_count;
    while (inputs && !onx_view(node->input[inputs - 1]).len)
        inputs--; /* trailing omitted inputs need not be written */
    op->inputs = ONXI_ARRAY(s->arena, uint32_t, inputs + 1u);
    op->outputs = ONXI_ARRAY(s->arena, uint32_t, node->output_count + 1u);
    if (!op->inputs || !op->outputs)
        return ONX_E_MEMORY;
    op->input_count = inputs;
    op->input_room = inputs + 1u;
    for (uint32_t i = 0; i < inputs; i++) {
        onx_str name = onx_view(node->input[i]);
        op->inputs[i] = ONXI_NO_SLOT;
        if (!name.len)
            continue;
        ONX_TRY(onxi_run_build_use(b, name, &op->inputs[i]));
        if (op->inputs[i] == ONXI_NO_SLOT && !is_omitted(b, name))
            return onxi_fail(s->cx, ONX_E_INVALID, ONXI_AT_PATH(onxi_run_op_path(s->arena, op)),
                             "input \"%.*s\" is not made by any node before this one, nor an input or initializer",
                             ONX_ARG(name));
    }
    while (op->input_count && op->inputs[op->input_count - 1] == ONXI_NO_SLOT)
        op->input_count--;
    return ONX_OK;
}

/* Adds a subgraph to an op: that of the attribute `a`. */
static onx_status add_graph(onxi_run_session *s, onxi_run_op *op, const onx_attribute *a)
{
    uint32_t room = op->graph_room;
    if (!ONXI_GROW_IN(s->arena, op->graphs, room, (uint64_t)op->graph_count + 1))
        return ONX_E_MEMORY;
    if (!ONXI_GROW_IN(s->arena, op->graph_attributes, op->graph_room, (uint64_t)op->graph_count + 1))
        return ONX_E_MEMORY;
    op->graphs[op->graph_count] = NULL;
    op->graph_attributes[op->graph_count++] = a;
    return ONX_OK;
}

static onx_status bind_graphs(builder *b, onxi_run_op *op)
{
    onxi_run_session *s = b->session;
    const onx_node *node = op->node;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        uint32_t n;
        const onx_attribute *a = node->attribute[i];
        onx_graph *const *g = onx_attribute_value(a, ONX_SLOT_G, &n);
        if (!g || !*g)
            continue;
        ONX_TRY(add_graph(s, op, a));
        onxi_run_frame *frame = ONXI_NEW(s->arena, onxi_run_frame);
        if (!frame)
            return ONX_E_MEMORY;
        *frame = (onxi_run_frame){ .parent = b->frame, .node = node, .index = op->index, .subgraph = a };
        frame->depth = b->frame ? b->frame->depth : 0;
        if (b->depth >= onx_ctx_limits(s->cx).depth)
            return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_AT_PATH(onxi_run_op_path(s->arena, op)),
                             "subgraphs are nested more than %u levels deep (limit depth)",
                             onx_ctx_limits(s->cx).depth);
        ONX_TRY(build_graph(s, *g, NULL, b, op, frame, b->depth + 1, &op->graphs[op->graph_count - 1]));
    }
    return ONX_OK;
}

static onx_status define_outputs(builder *b, onxi_run_op *op)
{
    const onx_node *node = op->node;
    uint32_t count = node->output_count;
    while (count && !onx_view(node->output[count - 1]).len)
        count--;
    op->output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        onx_str name = onx_view(node->output[i]);
        op->outputs[i] = ONXI_NO_SLOT;
        if (name.len)
            ONX_TRY(onxi_run_build_define(b, name, &op->outputs[i]));
    }
    return ONX_OK;
}

/* Checks the number of operands against the schema, so that rules and kernels need not. */
static onx_status check_op(builder *b, const onxi_run_op *op)
{
    const onxi_schema *schema = op->schema;
    onxi_run_session *s = b->session;
    if (!schema || schema->flags & ONX_OP_OPEN)
        return ONX_OK;
    if (!onxi_arity_fits(op->node->input_count, schema->min_input, schema->max_input)) /* omitted operands count */
        return onxi_fail(s->cx, ONX_E_INVALID, ONXI_AT_PATH(onxi_run_op_path(s->arena, op)),
                         "%u inputs are given, the operator takes %u to %u", op->node->input_count, schema->min_input,
                         schema->max_input);
    if (!onxi_arity_fits(op->output_count, 0, schema->max_output))
        return onxi_fail(s->cx, ONX_E_INVALID, ONXI_AT_PATH(onxi_run_op_path(s->arena, op)),
                         "%u outputs are asked for, the operator has %u", op->output_count, schema->max_output);
    for (uint32_t i = 0; schema->inputs && i < op->input_count && schema->inputs[i].name; i++) {
        if (schema->inputs[i].flags & ONX_PORT_VARIADIC)
            break;
        if (op->inputs[i] == ONXI_NO_SLOT && !(schema->inputs[i].flags & ONX_PORT_OPTIONAL))
            return onxi_fail(s->cx, ONX_E_INVALID, ONXI_AT_PATH(onxi_run_op_path(s->arena, op)),
                             "input %u (%s) is missing", i, schema->inputs[i].name);
    }
    return ONX_OK;
}

bool onxi_run_op_is_constant(const onxi_run_graph *g, const onxi_run_op *op)
{
    if (!onxi_run_op_is_pure(op))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT && !g->slots[op->inputs[i]].constant)
            return false;
    return true;
}

onx_status onxi_run_graph_fold(onxi_run_graph *g, const onxi_run_op *op)
{
    onxi_run_session *s = g->session;
    onx_arena *arena;
    bool deferred;
    ONX_TRY(onxi_run_constant_defer(g, op, &deferred));
    if (deferred)
        return ONX_OK;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    onxi_run_env e = { .cx = s->cx, .session = s, .graph = g, .arena = arena, .watch = &s->watch };
    const onx_value **inputs = onxi_run_op_constants(g, op, arena);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    onx_status status = inputs && outputs ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT)
            status = onx_value_new(s->cx, &outputs[i]);
    if (status == ONX_OK)
        status = onxi_run_op_eager(&e, op, inputs, outputs, NULL);
    for (uint32_t i = 0; outputs && i < op->output_count; i++) {
        if (!outputs[i])
            continue;
        if (status != ONX_OK) {
            onx_value_free(outputs[i]);
            continue;
        }
        onx_value *kept = outputs[i];
        if (kept->dtype == ONX_STRING && kept->kind == ONX_VALUE_TENSOR) { /* its strings are in a temporary arena */
            status = onx_value_new(s->cx, &kept);
            if (status == ONX_OK)
                status = onx_value_assign(kept, outputs[i]);
            onx_value_free(outputs[i]);
        }
        if (status == ONX_OK)
            status = onxi_run_session_keep(s, kept);
        g->slots[op->outputs[i]].constant = kept;
    }
    onx_arena_free(arena);
    return status;
}

/* Finds the kernel rows of a resolved operator. */
static onx_status note_kernels(onxi_run_session *s, onxi_bound *bound, bool by_rule)
{
    onxi_run_bound *more = ONXI_NEW(s->arena, onxi_run_bound);
    const onxi_schema *schema = bound->schema;
    if (!more)
        return ONX_E_MEMORY;
    more->since = schema                     ? schema->since
                  : bound->opset > INT32_MAX ? INT32_MAX
                  : bound->opset < 1         ? 1
                                             : (int32_t)bound->opset;
    bound->more = more;
    const onxi_kernel_wanted want = { .domain = bound->domain,
                                      .name = bound->name,
                                      .op = bound->op,
                                      .since = more->since,
                                      .registered = schema ? onx_op_kernel(schema) : NULL,
                                      .by_rule = by_rule && onx_str_is(bound->domain, "onx") };
    return onxi_kernel_candidates(s->kernels, s->arena, &want, &more->kernels, &more->kernel_count);
}

/* Does a kernel of the caller run it? */
static bool runs_own_kernel(const onxi_run_session *s, const onxi_run_op *op)
{
    for (const onx_kernel *own = s->options.kernels; own && own->op; own++)
        if (op->kernel_count && op->kernels[0] == own)
            return true;
    return false;
}

/* Does the operator run by its function body although it has kernels? */
static bool body_comes_first(const onxi_run_session *s, const onxi_run_op *op)
{
    return op->schema && op->schema->body_first && !s->options.plain && !runs_own_kernel(s, op);
}

/* The function body for this call of an operator that has no kernel, or runs faster by its body; NULL: there is
 * none. */
static onx_status expand(builder *b, const onxi_run_op *op, const onx_function **out, onxi_binder **binder)
{
    onxi_run_session *s = b->session;
    onxi_run_env e = { .cx = s->cx, .session = s, .graph = b->g, .arena = b->arena };
    *out = NULL;
    if (!op->schema || !op->schema->body_parts)
        return ONX_OK;
    uint64_t parts = onxi_run_op_body_parts(&e, op);
    if (!parts && (op->kernel_count || onxi_operator_is(op->id, ONXI_TRAIT_PARTLY)))
        return ONX_OK;
    onxi_run_expansion *x = s->expansions;
    while (x && (x->schema != op->schema || x->parts != parts))
        x = x->next;
    if (!x) {
        if (!(x = ONXI_NEW(s->arena, onxi_run_expansion)))
            return ONX_E_MEMORY;
        *x = (onxi_run_expansion){ s->expansions, op->schema, parts, NULL, NULL };
        ONX_TRY(onxi_body_function(s->cx, op->schema, parts, &x->doc));
        s->expansions = x;
    }
    const onx_function *f = *out = onx_doc_root(x->doc, ONX_KIND_FUNCTION);
    ONX_TRY(new_binder(s, NULL, f, &x->binder));
    *binder = x->binder;
    return ONX_OK;
}

static onx_status take_attributes(onxi_run_session *s, const onxi_arguments *arguments, const onxi_bound *bound,
                                  onxi_run_op *op)
{
    onxi_attr_fault fault;
    onx_status status = onxi_bind_attributes(bound, op->node, arguments, s->arena, NULL, 0, &op->attrs, &fault);
    if (status != ONX_E_INVALID)
        return status;
    onx_diag diag = { .severity = ONX_ERROR,
                      .status = status,
                      .rule = fault.rule,
                      .where = ONXI_AT_PATH(onxi_run_op_path(s->arena, op)) };
    onxi_report(s->cx, &diag, "%s", fault.text);
    return status;
}

static void take_meaning(onxi_run_op *op, const onxi_bound *bound)
{
    const onxi_run_bound *more = bound->more;
    op->id = bound->op;
    op->schema = bound->schema;
    op->since = more->since;
    op->kernels = more->kernels;
    op->kernel_count = more->kernel_count;
}

onx_status onxi_run_op_mean(onxi_run_session *s, onxi_binder *binder, const onxi_arguments *arguments, onxi_run_op *op)
{
    onxi_bound *bound = onxi_bind(binder, op->node);
    if (!bound)
        return ONX_E_MEMORY;
    if (!bound->more)
        ONX_TRY(note_kernels(s, bound, true));
    take_meaning(op, bound);
    return take_attributes(s, arguments, bound, op);
}

/* A call of a function of the model. */
static onx_status call_function(builder *b, const onx_node *node, uint32_t index, const onxi_bound *bound)
{
    onxi_run_session *s = b->session;
    const onx_function *f = bound->function;
    if (!s->bodies && !(s->bodies = (onxi_binder **)ONXI_ARRAY(s->arena, void *, s->functions.count)))
        return ONX_E_MEMORY;
    onxi_binder **body = &s->bodies[bound->function_index];
    ONX_TRY(new_binder(s, &s->functions, f, body));
    return inline_function(b, node, index, f, *body);
}

/* A guard precedes the inlined body of an operator. It is an op without outputs that checks the call by the operator's
 * own rule and types, which the nodes of the body do not know. */
static onx_status guard_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)work, (void)first, (void)last;
    return ONX_OK;
}
static const onx_kernel guard_kernel = { .op = "", .run = guard_run };
static const onx_kernel *const guard_kernels[] = { &guard_kernel };

static onx_status inline_body(builder *b, const onxi_run_op *op, const onx_function *f, onxi_binder *binder)
{
    onxi_run_graph *g = b->g;
    onx_arena *arena = b->session->arena;
    const uint32_t at = g->op_count;
    onxi_run_op guard = *op;
    guard.kernels = onxi_kernel_guard(op->id);
    if (!guard.kernels)
        guard.kernels = guard_kernels;
    guard.kernel_count = 1;
    if (onxi_run_op_is_constant(b->g, &guard)) { /* then the body is constant, too */
        ONX_TRY(onxi_run_graph_fold(b->g, &guard));
        return inline_function(b, op->node, op->index, f, binder);
    }
    if (!ONXI_GROW_IN(arena, g->ops, g->op_room, (uint64_t)g->op_count + 1))
        return ONX_E_MEMORY;
    g->ops[g->op_count++] = guard;
    ONX_TRY(inline_function(b, op->node, op->index, f, binder));
    g->ops[at].guard_end = g->op_count;
    return ONX_OK;
}

onx_status onxi_run_build_add(builder *b, const onxi_run_op *op)
{
    onxi_run_graph *g = b->g;
    if (op->output_count && onxi_run_op_is_constant(g, op) && !onxi_run_keeps_bytes(g, op)) {
        bool large;
        ONX_TRY(onxi_run_constant_defer(g, op, &large));
        if (large)
            return ONX_OK;
        ONX_TRY(onxi_run_constant_is_too_large(g, op, &large));
        if (!large)
            return onxi_run_graph_fold(g, op);
    }
    if (!ONXI_GROW_IN(b->session->arena, g->ops, g->op_room, (uint64_t)g->op_count + 1))
        return ONX_E_MEMORY;
    g->ops[g->op_count++] = *op;
    return ONX_OK;
}

/* Replaces an op by what is known about it. *done is false where it stays. */
static onx_status replace(builder *b, const onxi_run_op *op, bool *done)
{
    if (!ONXI_PLATFORM_ROOMY || !b->lists || runs_own_kernel(b->session, op))
        return ONX_OK;
    ONX_TRY(onxi_run_build_unroll(b, op, done));
    return *done ? ONX_OK : onxi_run_build_read_list(b, op, done);
}

onx_status onxi_run_build_node(builder *b, const onx_node *node, uint32_t index)
{
    onxi_run_session *s = b->session;
    ONX_TRY(count_node(b, node, index));
    onxi_bound *bound = onxi_bind(b->binder, node);
    if (!bound)
        return ONX_E_MEMORY;
    if (bound->kind == ONXI_BOUND_FUNCTION)
        return call_function(b, node, index, bound);
    if (!bound->more)
        ONX_TRY(note_kernels(s, bound, false));
    onxi_run_bound *more = bound->more;
    const onx_function *f = bound->schema ? onx_op_body(bound->schema) : NULL;
    if (!more->kernel_count && f) {
        ONX_TRY(new_binder(s, &s->functions, f, &more->body));
        return inline_function(b, node, index, f, more->body);
    }
    onxi_run_op *op = s->spare_op ? s->spare_op : ONXI_NEW(s->arena, onxi_run_op);
    if (!op)
        return ONX_E_MEMORY;
    s->spare_op = NULL;
    *op = (onxi_run_op){ .node = node, .frame = b->frame, .index = index };
    take_meaning(op, bound);
    ONX_TRY(bind_operands(b, op));
    ONX_TRY(check_op(b, op));
    ONX_TRY(take_attributes(s, arguments_of(b), bound, op));
    if (!op->kernel_count || body_comes_first(s, op)) {
        onxi_binder *binder;
        ONX_TRY(expand(b, op, &f, &binder));
        if (f)
            return inline_body(b, op, f, binder);
    }
    bool done = false;
    ONX_TRY(replace(b, op, &done));
    if (done)
        return ONX_OK;
    ONX_TRY(bind_graphs(b, op));
    ONX_TRY(define_outputs(b, op));
    if (ONXI_PLATFORM_ROOMY && b->lists)
        ONX_TRY(onxi_run_build_note_list(b, op));
    if (!op->graph_count) /* an op with subgraphs keeps its address, which their captures refer to */
        s->spare_op = op;
    return onxi_run_build_add(b, op);
}

static onx_status build_nodes(builder *b, onx_node *const *nodes, uint32_t count)
{
    uint32_t *order = NULL;
    if (b->session->unsorted)
        ONX_TRY(onxi_nodes_order(b->session->arena, nodes, count, NULL, &order));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = order ? order[i] : i;
        ONX_TRY(onxi_run_build_node(b, nodes[at], at));
    }
    return ONX_OK;
}

/* ---- graphs ---- */

static onx_status add_initializers(builder *b, const onx_graph *graph, const bool *given)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ONX_TRY(onxi_run_build_define(b, onx_view(graph->input[i]->name), &b->g->inputs[i]));
    }
    for (uint32_t i = 0; i < graph->initializer_count + graph->sparse_initializer_count; i++) {
        bool sparse = i >= graph->initializer_count;
        const onx_sparse_tensor *st = sparse ? graph->sparse_initializer[i - graph->initializer_count] : NULL;
        const onx_tensor *t = sparse ? st->values : graph->initializer[i];
        onx_str name = t ? onx_view(t->name) : (onx_str){ 0 };
        if (!name.len)
            continue; /* nothing can refer to it */
        uint32_t slot = find_name(b, name);
        bool is_input = slot != ONXI_NO_SLOT && slot < graph->input_count;
        if (is_input && given && given[slot])
            continue;
        if (slot == ONXI_NO_SLOT)
            ONX_TRY(onxi_run_build_define(b, name, &slot));
        if (sparse)
            b->g->slots[slot].sparse = st;
        else
            b->g->slots[slot].tensor = t;
    }
    return ONX_OK;
}

static onx_status find_outputs(builder *b, const onx_graph *graph)
{
    onxi_run_session *s = b->session;
    b->g->output_count = graph->output_count;
    b->g->outputs = ONXI_ARRAY(s->arena, uint32_t, graph->output_count + 1u);
    if (!b->g->outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        onx_str name = onx_view(graph->output[i]->name);
        ONX_TRY(onxi_run_build_use(b, name, &b->g->outputs[i]));
        if (b->g->outputs[i] == ONXI_NO_SLOT)
            return onxi_fail(s->cx, ONX_E_INVALID, ONXI_NOWHERE, "output \"%.*s\" of the graph is made by no node",
                             ONX_ARG(name));
    }
    return ONX_OK;
}

static void drop_unneeded(onxi_run_graph *g)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        g->slots[g->outputs[i]].uses = 1;
    for (uint32_t i = g->op_count; i-- > 0;) {
        onxi_run_op *op = &g->ops[i];
        for (uint32_t k = 0; k < op->output_count; k++)
            op->needed |= op->outputs[k] != ONXI_NO_SLOT && g->slots[op->outputs[k]].uses;
        op->needed |= op->guard_end == i + 1; /* the body was folded */
        for (uint32_t k = i + 1; k < op->guard_end; k++)
            op->needed |= g->ops[k].needed;
        for (uint32_t k = 0; op->needed && k < op->input_count + op->capture_count; k++)
            if (op->inputs[k] != ONXI_NO_SLOT)
                g->slots[op->inputs[k]].uses = 1;
    }
}

static const char *why_no_kernel(const onxi_run_op *op)
{
    const onxi_op_id id = op->id;
    return onxi_operator_is(id, ONXI_TRAIT_COMPILED)
               ? ": it holds a program compiled for one device; use the model that it was compiled from"
           : onxi_operator_is(id, ONXI_TRAIT_DEVICE) ? ": it is for accelerators only"
           : onxi_operator_is(id, ONXI_TRAIT_PARTLY) ? ": its attributes are for accelerators only"
                                                     : "";
}

/* Reports nodes that no kernel can run before anything runs. */
static onx_status check_kernels(onxi_run_graph *g)
{
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        onx_str domain = onx_view(op->node->domain);
        if (!op->kernel_count)
            return onxi_fail(g->session->cx, ONX_E_UNSUPPORTED, ONXI_AT_PATH(onxi_run_op_path(g->session->arena, op)),
                             "no kernel runs operator %.*s%s%.*s of version %d%s", ONX_ARG(domain),
                             domain.len ? "." : "", ONX_ARG(onx_view(op->node->op_type)), op->since, why_no_kernel(op));
    }
    return ONX_OK;
}

static onx_status build_graph(onxi_run_session *s, const onx_graph *graph, const bool *given, builder *outer,
                              onxi_run_op *holder, const onxi_run_frame *frame, uint32_t depth, onxi_run_graph **out)
{
    onxi_run_graph *g = ONXI_NEW(s->arena, onxi_run_graph);
    if (!g || !(g->inputs = ONXI_ARRAY(s->arena, uint32_t, graph->input_count + 1u)))
        return ONX_E_MEMORY;
    g->session = s;
    g->graph = graph;
    g->arena = s->arena;
    g->given = given;
    g->input_count = graph->input_count;
    g->input_room = graph->input_count + 1u;
    const uint64_t nodes = graph->node_count, names = nodes + graph->input_count + graph->initializer_count;
    if (!ONXI_GROW_IN(s->arena, g->ops, g->op_room, nodes) || /* most ops have one output */
        !ONXI_GROW_IN(s->arena, g->slots, g->slot_room, names))
        return ONX_E_MEMORY;
    builder b = { .session = s, .g = g, .outer = outer, .holder = holder, .frame = frame, .depth = depth };
    b.binder = outer ? outer->binder : s->binder;
    ONX_TRY(onx_arena_new(s->cx, &b.arena));
    b.names = onxi_dict_in_arena(b.arena);
    onxi_map lists = onxi_map_in_arena(b.arena);
    if (ONXI_PLATFORM_ROOMY && !s->options.plain && !s->options.no_optimize)
        b.lists = &lists;
    onx_status status = onxi_dict_reserve(&b.names, names) ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = add_initializers(&b, graph, given);
    if (status == ONX_OK)
        status = build_nodes(&b, graph->node, graph->node_count);
    if (status == ONX_OK)
        status = find_outputs(&b, graph);
    onx_arena_free(b.arena);
    ONX_TRY(status);
    drop_unneeded(g);
    ONX_TRY(onxi_run_graph_count_uses(g));
    ONX_TRY(check_kernels(g));
    *out = g;
    return ONX_OK;
}

/* Passes over a graph, and those in it. */
static onx_status optimize(onxi_run_graph *g)
{
    enum { ROOMY = ONXI_PLATFORM_ROOMY }; /* few models for browsers have such nodes */
    if (ROOMY)
        ONX_TRY(onxi_run_graph_sink_transposes(g));
    ONX_TRY(onxi_run_graph_fuse(g));
    ONX_TRY(onxi_run_graph_split_bytes(g));
    ONX_TRY(onxi_run_graph_rewrite(g));
    ONX_TRY(onxi_run_graph_fold_bytes(g));
    if (ROOMY) {
        ONX_TRY(onxi_run_graph_join_transposes(g));
        ONX_TRY(onxi_run_graph_merge_repeats(g));
    }
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].graph_count; k++)
            ONX_TRY(optimize(g->ops[i].graphs[k]));
    return ONX_OK;
}

onx_status onxi_run_graph_build(onxi_run_session *s, const onx_graph *graph, const bool *given, onxi_run_graph **out)
{
    s->op_total = s->unrolled = 0;
    ONX_TRY(new_binder(s, &s->functions, NULL, &s->binder));
    ONX_TRY(build_graph(s, graph, given, NULL, NULL, NULL, 0, out));
    if (s->options.plain || s->options.no_optimize)
        return ONX_OK;
    ONX_TRY(onxi_run_graph_widen(*out, NULL));
    return optimize(*out);
}
