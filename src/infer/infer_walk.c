/* infer_walk.c - the walk over the nodes of a graph or function body, in order; each node sees the results of earlier
 * ones. */
#include "infer/infer.h"

#include <stdio.h>

/* ---- places and reports ---- */

/* "graph." or "graph.node[3] \"loop\" (Loop).attribute \"body\"." and so on. */
static onx_str prefix_of(onx_infer *e, const onxi_infer_scope *scope)
{
    if (!scope->parent)
        return scope->graph ? onx_str_of("graph.") : onx_str_of("function.");
    onx_str node = onxi_path_node(e->arena, prefix_of(e, scope->parent), scope->node_index, scope->node);
    if (!scope->graph)
        return onxi_path_call(e->arena, node, scope->frame->function);
    for (uint32_t i = 0; i < scope->node->attribute_count; i++) {
        const onx_attribute *a = scope->node->attribute[i];
        uint32_t count;
        onx_graph *const *g = onx_attribute_value(a, ONX_SLOT_G, &count);
        if (g && *g == scope->graph)
            return onxi_path_subgraph(e->arena, node, scope->node, a);
    }
    return onxi_arena_printf(e->arena, "%.*s.subgraph.", ONX_ARG(node));
}

onx_str onxi_infer_path(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index)
{
    return onxi_path_node(e->arena, prefix_of(e, scope), index, node);
}

void onxi_infer_report(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index, bool fatal,
                       const char *format, ...)
{
    const onxi_infer_running *failing = e->failing;
    const char *rule = e->rule;
    e->failing = NULL;
    e->rule = NULL;
    if (scope->unreachable && !fatal)
        return;
    if (fatal && e->incomplete) { /* structural rules were reported by the checker, which set that flag */
        e->invalid = true;
        return;
    }
    bool error = fatal || (e->options.strict && !scope->unsupported);
    onx_diag diag = { .severity = error ? ONX_ERROR : ONX_WARNING,
                      .status = error ? ONX_E_INVALID : ONX_OK,
                      .rule = rule };
    char message[512];
    e->invalid |= error;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* Loop bodies and functions are walked more than once. */
    onxi_secret secret = e->reported.table.secret;
    uint64_t key =
        onxi_hash(onxi_hash_then(secret, (uint64_t)(uintptr_t)node + (error ? e->round : 0)), message, strlen(message));
    void **seen = onxi_infer_map_at(e, &e->reported, key);
    if (!seen || *seen)
        return;
    *seen = e;
    diag.where = ONXI_AT_PATH(onxi_infer_path(e, scope, node, index));
    if (failing)
        diag.hint = onxi_infer_show_inputs(failing);
    onxi_report(e->cx, &diag, "%s", message);
}

/* ---- operator sets ---- */

onx_status onxi_infer_binder(onx_infer *e, const onx_function *function, onxi_binder **out)
{
    void **known = onxi_infer_map_at(e, &e->binders, (uint64_t)(uintptr_t)function);
    if (!known)
        return e->status;
    if (*known) {
        *out = *known;
        return ONX_OK;
    }
    const onx_model *model = e->model;
    onxi_binder *binder = ONXI_NEW(e->arena, onxi_binder);
    if (!binder)
        return e->status = ONX_E_MEMORY;
    *binder = (onxi_binder){ .arena = e->arena, .registry = e->options.registry, .functions = &e->functions };
    onx_status status = function ? onxi_binder_open_body(binder, function)
                                 : onxi_binder_open(binder, model ? model->opset_import : NULL,
                                                    model ? model->opset_import_count : 0, onxi_model_is_legacy(model));
    if (status != ONX_OK)
        return e->status = status;
    *known = *out = binder;
    return ONX_OK;
}

/* ---- one node ---- */

enum { FEW = 8 };

/* Storage for a node with few inputs and outputs; larger ones use the arena. */
typedef struct room {
    const onxi_type *inputs[FEW];
    onxi_infer_fact *facts[FEW];
    onxi_type outputs[FEW];
    onxi_known_ints values[FEW];
    onxi_attr_value attrs[FEW];
} room;

/* The facts of the inputs of a node; `known`: something is known of every input that is not omitted. */
typedef struct gathered {
    const onxi_type **types;
    onxi_infer_fact **facts;
    bool known;
} gathered;

static onx_status gather_inputs(onx_infer *e, onxi_infer_scope *scope, const onx_node *node, room *few, gathered *out)
{
    static const onxi_type nothing = { .kind = ONXI_TYPE_NONE };
    onxi_infer_names *names = &scope->frame->names;
    *out = (gathered){ .types = few->inputs, .facts = few->facts, .known = true };
    if (node->input_count > FEW) {
        out->types = ONXI_ARRAY(e->arena, const onxi_type *, node->input_count);
        out->facts = ONXI_ARRAY(e->arena, onxi_infer_fact *, node->input_count);
        if (!out->types || !out->facts)
            return e->status = ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        onx_str text = onx_view(node->input[i]);
        out->facts[i] = NULL;
        out->types[i] = NULL;
        if (!text.len)
            continue;
        uint32_t name = onxi_infer_names_add(e, names, text);
        if (name == UINT32_MAX)
            return e->status;
        onxi_infer_fact *fact = names->entries[name].fact;
        out->known &= fact != NULL;
        e->may_cycle |= !names->entries[name].made;
        if (fact && fact->omitted)
            continue;
        out->facts[i] = fact;
        out->types[i] = fact ? &fact->type : &nothing;
    }
    return ONX_OK;
}

static onx_status gather_attributes(onxi_infer_running *run, const onxi_bound *bound, const onx_node *node, room *few,
                                    onxi_attrs *out)
{
    const onxi_infer_frame *frame = run->scope->frame;
    onxi_attr_fault fault;
    onx_status status = onxi_bind_attributes(bound, node, frame->function ? &frame->arguments : NULL, run->infer->arena,
                                             few->attrs, FEW, out, &fault);
    if (status != ONX_E_INVALID)
        return status;
    run->rule = fault.rule;
    onxi_call_preset(&run->call);
    return onxi_call_fail(&run->call, "%s", fault.text);
}

static onx_status make_outputs(onx_infer *e, const onx_node *node, onxi_infer_running *run, room *few)
{
    run->call.output_count = node->output_count;
    run->call.outputs = few->outputs;
    run->call.output_values = few->values;
    if (node->output_count > FEW) {
        run->call.outputs = ONXI_ARRAY(e->arena, onxi_type, node->output_count);
        run->call.output_values = ONXI_ARRAY(e->arena, onxi_known_ints, node->output_count);
        if (!run->call.outputs || !run->call.output_values)
            return e->status = ONX_E_MEMORY;
    }
    memset(run->call.outputs, 0, node->output_count * sizeof *run->call.outputs);
    memset(run->call.output_values, 0, node->output_count * sizeof *run->call.output_values);
    return ONX_OK;
}

uint32_t onxi_infer_top(const onxi_infer_scope *scope, uint32_t index)
{
    for (; scope->parent; scope = scope->parent)
        index = scope->node_index;
    return index;
}

void onxi_infer_count_failures(onx_infer *e, const onxi_infer_scope *scope, uint32_t index, uint64_t count)
{
    if (scope->unreachable)
        return;
    void **there = count ? onxi_infer_map_at(e, &e->failed_at, (uint64_t)onxi_infer_top(scope, index) + 1) : NULL;
    e->failed += count;
    if (there)
        *there = (void *)((uintptr_t)*there + (uintptr_t)count);
}

static onxi_infer_loss *loss_new(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index,
                                 const char *reason)
{
    void **known = onxi_infer_map_at(e, &e->lost_at, onxi_infer_node_key(node));
    onxi_infer_loss *loss = known ? *known : NULL;
    if (!known || (loss && !loss->stale))
        return loss;
    if (!loss) {
        if (!(loss = ONXI_NEW(e->arena, onxi_infer_loss)))
            return NULL;
        *known = loss;
        loss->shown.path = onxi_infer_path(e, scope, node, index);
        loss->shown.op_type = onx_view(node->op_type);
        loss->top = onxi_infer_top(scope, index);
        *e->losses_end = loss;
        e->losses_end = &loss->next;
    }
    loss->shown.reason = onxi_arena_printf(e->arena, "%s", scope->unreachable ? "it is never run" : reason);
    loss->order = e->loss_count++;
    loss->stale = false;
    return loss;
}

static bool is_vague(const onxi_type *type)
{
    return type->kind == ONXI_TYPE_NONE ||
           ((type->kind == ONXI_TYPE_TENSOR || type->kind == ONXI_TYPE_SPARSE_TENSOR) && !type->ranked);
}

static bool has_open(const onx_infer *e, const onxi_type *type)
{
    for (uint32_t i = 0; type->ranked && i < type->rank; i++)
        if (onxi_dim_is_fresh(e->dims, type->dims[i]))
            return true;
    return type->inner && has_open(e, type->inner);
}

/* Why an output is not fully known: because an input was not, or because of this node. */
static onxi_infer_loss *explain(onx_infer *e, onxi_infer_running *run, const onx_node *node, bool vague,
                                const char *reason, onxi_infer_loss **own)
{
    if (!run->failed)
        for (uint32_t i = 0; i < run->call.input_count; i++)
            if (run->facts[i] && run->facts[i]->loss && (vague ? is_vague(&run->facts[i]->type) : true))
                return run->facts[i]->loss;
    if (run->inner && !run->failed)
        return run->inner;
    if (!*own)
        *own = loss_new(e, run->scope, node, run->index, run->failed ? run->why : reason);
    return *own;
}

/* Is only a type known of output `i`, which would be the same for any node like this one? */
static bool is_plain(const onxi_infer_running *run, uint32_t i, bool fresh, bool constant)
{
    const onxi_type *type = &run->call.outputs[i];
    if (fresh || constant || run->failed || run->inner || type->kind != ONXI_TYPE_TENSOR || !type->ranked ||
        run->call.output_values[i].elements)
        return false;
    for (uint32_t k = 0; k < run->call.input_count; k++)
        if (run->facts[k] && run->facts[k]->loss)
            return false;
    return true;
}

/* Binds a name to a shared fact; false, without effect, if the model declares something else. */
static bool bind_plain(onx_infer *e, onxi_infer_scope *scope, uint32_t name, onx_str text, onxi_infer_fact *fact)
{
    const onxi_infer_name *entry = &scope->frame->names.entries[name];
    const bool declared = entry->declared && scope->graph && entry->scope == scope;
    if (declared && entry->declared == ONXI_DECLARED_TYPE && entry->fact && entry->fact != fact)
        return false;
    if (scope->result && onxi_infer_result_add(e, scope->result, text, fact, declared) != ONX_OK)
        return true; /* e->status tells */
    (void)onxi_infer_scope_bind(e, scope, name, fact);
    return true;
}

/* Merges the declared type of output `i`, if there is one, into the inferred type. */
static void merge_declared(onx_infer *e, onxi_infer_running *run, const onx_node *node, uint32_t i,
                           const onxi_infer_name *entry, onxi_infer_fact *fact, bool *fresh)
{
    onxi_infer_scope *scope = run->scope;
    char why[128];
    const onxi_type said = entry->fact->type;
    if (scope->result)
        scope->result->settled = false;
    if (onxi_infer_type_merge(e, &said, &fact->type, why, sizeof why)) {
        *fresh = *fresh && has_open(e, &fact->type);
        return;
    }
    fact->type = said;
    e->rule = "G-20";
    onxi_infer_report(e, scope, node, run->index, false,
                      "output %u \"%.*s\" is inferred and declared in ways that exclude each other: %s", i,
                      ONX_ARG(onx_view(node->output[i])), why);
    onxi_infer_count_failures(e, scope, run->index, 1);
}

static onx_status bind_output(onx_infer *e, onxi_infer_running *run, const onx_node *node, uint32_t i, bool constant,
                              const char *reason, onxi_infer_loss **own)
{
    onxi_infer_scope *scope = run->scope;
    onxi_infer_names *names = &scope->frame->names;
    onx_str text = onx_view(node->output[i]);
    onxi_type *type = &run->call.outputs[i];
    run->plain = run->plain && text.len && i < ONXI_INFER_REPEAT_OUTPUTS;
    if (!text.len)
        return ONX_OK;
    uint32_t name = onxi_infer_names_make(e, names, text);
    if (name == UINT32_MAX)
        return e->status;
    bool fresh = onxi_infer_type_materialize(e, type);
    if (is_plain(run, i, fresh, constant)) {
        onxi_infer_fact *shared = onxi_infer_fact_of_type(e, type);
        if (!shared)
            return e->status;
        if (run->plain)
            run->made[i] = shared;
        if (bind_plain(e, scope, name, text, shared))
            return e->status;
    } else {
        run->plain = false;
    }
    onxi_infer_fact *fact = onxi_infer_fact_new(e);
    if (!fact)
        return e->status;
    fact->type = *type;
    onxi_infer_name *entry = &names->entries[name];
    bool declared = entry->declared && scope->graph && entry->scope == scope;
    if (declared && entry->declared == ONXI_DECLARED_TYPE && entry->fact)
        merge_declared(e, run, node, i, entry, fact, &fresh);
    if (run->call.output_values[i].elements && (!e->options.no_data_prop || constant)) {
        onxi_known_ints *value = onxi_arena_get(e->arena, sizeof *value);
        if (!value)
            return e->status = ONX_E_MEMORY;
        *value = run->call.output_values[i];
        e->carried += value->count;
        fact->value = value;
        fact->constant = constant;
    }
    bool vague = is_vague(&fact->type);
    if (vague || fresh)
        fact->loss = explain(e, run, node, vague, vague ? reason : "a size depends on data", own);
    else if (!fact->loss)
        for (uint32_t k = 0; k < run->call.input_count && !fact->loss; k++) /* unknown dims may come from an input */
            fact->loss =
                run->facts[k] && run->facts[k]->loss && !is_vague(&run->facts[k]->type) ? run->facts[k]->loss : NULL;
    if (scope->result)
        ONX_TRY(onxi_infer_result_add(e, scope->result, text, fact, declared));
    return onxi_infer_scope_bind(e, scope, name, fact);
}

/* Binds the outputs of a node that repeats an earlier one; false, without effect, if the model declares something
 * else. */
static bool bind_repeated(onx_infer *e, onxi_infer_scope *scope, const onx_node *node, onxi_infer_fact *const *facts)
{
    onxi_infer_names *names = &scope->frame->names;
    uint32_t found[ONXI_INFER_REPEAT_OUTPUTS];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const onx_str text = onx_view(node->output[i]);
        found[i] = text.len ? onxi_infer_names_make(e, names, text) : UINT32_MAX;
        if (found[i] == UINT32_MAX)
            return false;
        const onxi_infer_name *entry = &names->entries[found[i]];
        if (entry->declared && entry->scope == scope && entry->fact != facts[i])
            return false;
    }
    for (uint32_t i = 0; i < node->output_count && e->status == ONX_OK; i++)
        (void)bind_plain(e, scope, found[i], onx_view(node->output[i]), facts[i]);
    return true;
}

/* Converts a list of numbers that a Constant contains to a tensor. */
static const onx_tensor *tensor_of_floats(onxi_infer_running *run)
{
    uint32_t count = 0;
    const float *floats = onxi_call_floats(&run->call, "value_floats", &count);
    onx_tensor *tensor = floats ? ONXI_NEW(run->infer->arena, onx_tensor) : NULL;
    int64_t *dims = tensor ? ONXI_ARRAY(run->infer->arena, int64_t, 1) : NULL;
    if (!dims)
        return NULL;
    dims[0] = count;
    *tensor = (onx_tensor){
        .data_type = ONX_FLOAT, .dims = dims, .dims_count = 1, .float_data = floats, .float_data_count = count
    };
    return tensor;
}

/* The constant tensor of a node, for rules that read more than integers. */
static void keep_constant(onxi_infer_running *run, const onx_node *node)
{
    if (node->output_count != 1)
        return;
    const onx_tensor *value = onxi_call_attr_tensor(&run->call, "value");
    const onx_tensor *tensor = value ? value : tensor_of_floats(run);
    onxi_infer_names *names = &run->scope->frame->names;
    uint32_t name = tensor ? onxi_infer_names_add(run->infer, names, onx_view(node->output[0])) : UINT32_MAX;
    onxi_infer_fact *fact =
        name != UINT32_MAX && names->entries[name].fact ? onxi_infer_fact_own(run->infer, &names->entries[name]) : NULL;
    if (fact)
        fact->tensor = tensor;
}

/* In strict mode a rule that did not determine the type of its first output has failed. */
static void want_type(onxi_infer_running *run, const onx_node *node)
{
    onx_infer *e = run->infer;
    const onxi_schema *schema = run->call.schema;
    if (!e->options.strict || e->incomplete || run->scope->unsupported || !(schema->flags & ONXI_OP_INFERS) ||
        !node->output_count || !onx_view(node->output[0]).len || run->call.outputs[0].kind != ONXI_TYPE_NONE)
        return;
    if (run->call.outputs[0].kind == ONXI_TYPE_NONE) {
        run->failed = true;
        (void)snprintf(run->why, sizeof run->why,
                       "the type of output 0 cannot be told: the type of an input is not known");
    }
}

onx_status onxi_infer_node(onx_infer *e, onxi_infer_scope *scope, const onx_node *node, uint32_t index)
{
    room few;
    gathered inputs;
    const char *reason = "its rule needs more of its inputs than is known";
    onxi_infer_loss *own = NULL;
    onxi_bound *bound = onxi_bind(scope->frame->binder, node);
    if (!bound)
        return e->status = ONX_E_MEMORY;
    if (onxi_bound_report(scope->frame->binder, bound))
        onxi_infer_report(e, scope, node, index, false,
                          "domain \"%.*s\" is not imported, so its version is taken to be 1", ONX_ARG(bound->domain));
    ONX_TRY(gather_inputs(e, scope, node, &few, &inputs));
    onxi_infer_fact *const *answer = inputs.known ? onxi_infer_repeat_find(e, bound, node, inputs.facts) : NULL;
    if (answer && bind_repeated(e, scope, node, answer))
        return e->status;
    onxi_infer_running run = { .infer = e, .scope = scope, .index = index, .facts = inputs.facts, .plain = true };
    const onxi_schema *schema = bound->kind == ONXI_BOUND_OPERATOR ? bound->schema : NULL;
    const onx_function *function = schema && !onxi_schema_custom(schema) ? onxi_schema_body(schema) : bound->function;
    onxi_attrs attrs = { .count = 0 };
    run.call = (onxi_call){ .schema = schema,
                            .op = bound->op,
                            .node = node,
                            .attrs = &attrs,
                            .opset = bound->opset,
                            .dims = e->dims,
                            .arena = e->arena,
                            .input_count = node->input_count,
                            .inputs = inputs.types,
                            .ops = &onxi_infer_call_ops,
                            .engine = &run,
                            .doc = e->doc ? &e->reader : NULL,
                            .value_limit = e->carried > ONXI_CARRIED_LIMIT ? ONXI_CARRIED_FEW : 0 };
    ONX_TRY(make_outputs(e, node, &run, &few));
    if (bound->opset < 0 && !function) {
        reason = "its operator set is not imported";
        onxi_infer_report(e, scope, node, index, true, "domain \"%.*s\" of operator %.*s is not imported",
                          ONX_ARG(bound->domain), ONX_ARG(bound->name));
    } else if (function) {
        onx_status status = onxi_infer_call_function(&run, function);
        if (status != ONX_OK && status != ONX_E_INVALID)
            return status;
    } else if (!schema) {
        reason = "the operator is not known";
        if (!scope->unsupported)
            scope->unsupported_at = index;
        scope->unsupported = true;
    } else {
        const bool by_body = !schema->infer && schema->body_parts;
        if (!schema->infer && !by_body)
            reason = "no shape rule is defined for the operator";
        onx_status status = gather_attributes(&run, bound, node, &few, &attrs);
        if (status == ONX_OK)
            status = by_body ? onxi_infer_call_operator(&run) : onxi_call_run(&run.call);
        if (status != ONX_OK && status != ONX_E_INVALID)
            return e->status = status;
        if (!run.failed && e->options.check_type)
            (void)onxi_infer_check_types(&run);
        if (!run.failed)
            want_type(&run, node);
    }
    e->may_cycle |= (run.failed || (!schema && !function)) && node->attribute_count; /* the attributes may be graphs */
    if (run.failed) {
        for (uint32_t i = 0; i < node->output_count;
             i++) /* keep the element type; a shape from an incomplete rule would be misleading */
            run.call.outputs[i].ranked = false;
        e->rule = run.rule ? run.rule : "ND-20";
        e->failing = &run;
        onxi_infer_report(e, scope, node, index, false, "%s", run.why);
        onxi_infer_count_failures(e, scope, index, 1);
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        ONX_TRY(bind_output(e, &run, node, i, bound->op == ONXI_ID_Constant, reason, &own));
    if (bound->op == ONXI_ID_Constant)
        keep_constant(&run, node);
    if (run.plain && inputs.known && schema && !onxi_schema_custom(schema) && !function)
        onxi_infer_repeat_note(e, bound, node, inputs.facts, run.made);
    return e->status;
}

enum { AHEAD = 4 }; /* number of nodes; enough for a cache line to arrive */

/* Prefetches the following nodes, then their first names, then the table slots of these names. */
static void look_ahead(onxi_infer_names *names, onx_node *const *nodes, uint32_t count, uint32_t at)
{
    if (at + 3 * AHEAD < count)
        __builtin_prefetch(nodes[at + 3 * AHEAD]);
    if (at + 2 * AHEAD < count && nodes[at + 2 * AHEAD]->output_count)
        __builtin_prefetch(onx_view(nodes[at + 2 * AHEAD]->output[0]).ptr);
    if (at + AHEAD < count && nodes[at + AHEAD]->output_count)
        onxi_infer_names_prefetch(names, onx_view(nodes[at + AHEAD]->output[0]));
}

static void look_ahead_at_values(onxi_infer_names *names, onx_value_info *const *values, uint32_t count, uint32_t at)
{
    if (at + 3 * AHEAD < count)
        __builtin_prefetch(values[at + 3 * AHEAD]);
    if (at + 2 * AHEAD < count) {
        __builtin_prefetch(onx_view(values[at + 2 * AHEAD]->name).ptr);
        __builtin_prefetch(values[at + 2 * AHEAD]->type);
    }
    if (at + AHEAD < count)
        onxi_infer_names_prefetch(names, onx_view(values[at + AHEAD]->name));
}

onx_status onxi_infer_nodes(onx_infer *e, onxi_infer_scope *scope, onx_node *const *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        e->visits += onxi_infer_cost(nodes[i]);
        if (e->visits > e->visit_limit) {
            if (!e->gave_up)
                onxi_infer_report(e, scope, nodes[i], i, false,
                                  "inference stops here: loops and functions have repeated %llu nodes already",
                                  (unsigned long long)e->visit_limit);
            e->gave_up = true;
            e->cut++;
            return ONX_OK;
        }
        look_ahead(&scope->frame->names, nodes, count, i);
        ONX_TRY(onxi_infer_node(e, scope, nodes[i], i));
    }
    return ONX_OK;
}

/* ---- one graph ---- */

/* The fact for a declared type, shared if it is complete. `plain`: onxi_infer_type_plain can read it. */
static onx_status declared_fact(onx_infer *e, const onx_type *type, onxi_infer_fact **out, bool *plain)
{
    onxi_dim dims[ONXI_INFER_PLAIN_RANK];
    onxi_type read = { .dims = dims };
    *plain = onxi_infer_type_plain(type, &read);
    if (!*plain)
        ONX_TRY(onxi_infer_type_read(e, type, &read));
    if (*plain || (read.kind == ONXI_TYPE_TENSOR && read.ranked && !has_open(e, &read))) {
        *out = onxi_infer_fact_of_type(e, &read);
        return *out ? ONX_OK : e->status;
    }
    if (!(*out = onxi_infer_fact_new(e)))
        return e->status;
    (*out)->type = read;
    return ONX_OK;
}

/* `plain`: it is the complete declaration of its name. */
static onx_status declare(onx_infer *e, onxi_infer_scope *scope, const onx_value_info *info, bool *plain)
{
    onx_str text = onx_view(info->name);
    *plain = false;
    if (!text.len)
        return ONX_OK;
    uint32_t name = onxi_infer_names_add(e, &scope->frame->names, text);
    if (name == UINT32_MAX)
        return e->status;
    if (!info->type) { /* only a name; the fact of an enclosing graph stays visible */
        if (scope->frame->names.entries[name].scope == scope)
            return ONX_OK;
        ONX_TRY(onxi_infer_scope_bind(e, scope, name, scope->frame->names.entries[name].fact));
        scope->frame->names.entries[name].declared = ONXI_DECLARED_NAME;
        return ONX_OK;
    }
    onxi_infer_fact *fact = NULL;
    ONX_TRY(declared_fact(e, info->type, &fact, plain));
    *plain = *plain && ONX_HAS(value_info, info, type);
    onxi_infer_name *entry = &scope->frame->names.entries[name];
    if (entry->declared == ONXI_DECLARED_TYPE && entry->scope == scope &&
        entry->fact) { /* declared twice, for example as output and in value_info */
        char why[128];
        onxi_infer_fact *first = onxi_infer_fact_own(e, entry);
        if (!first)
            return e->status;
        if (scope->result)
            scope->result->settled = false;
        if (!onxi_infer_type_merge(e, &fact->type, &first->type, why, sizeof why)) {
            onx_diag diag = { .severity = e->options.strict ? ONX_ERROR : ONX_WARNING,
                              .status = e->options.strict ? ONX_E_INVALID : ONX_OK,
                              .rule = "G-20" };
            e->invalid |= e->options.strict;
            onxi_report(e->cx, &diag, "\"%.*s\" is declared twice in ways that exclude each other: %s", ONX_ARG(text),
                        why);
        }
        return ONX_OK;
    }
    ONX_TRY(onxi_infer_scope_bind(e, scope, name, fact));
    scope->frame->names.entries[name].declared = ONXI_DECLARED_TYPE;
    return ONX_OK;
}

onx_status onxi_infer_declare(onx_infer *e, onxi_infer_scope *scope, const onx_value_info *info)
{
    bool plain;
    return declare(e, scope, info, &plain);
}

/* The fact of a name in the scope itself. */
static onxi_infer_fact *own_fact(const onxi_infer_name *entry, const onxi_infer_scope *scope)
{
    return entry->scope == scope && entry->declared != ONXI_DECLARED_NAME ? entry->fact : NULL;
}

/* An initializer determines type and value; an input of that name keeps its declared type. */
static onx_status bind_initializer(onx_infer *e, onxi_infer_scope *scope, onx_str text, const onxi_type *type,
                                   const onx_tensor *tensor)
{
    onxi_type merged = { 0 };
    if (!text.len)
        return ONX_OK;
    uint32_t name = onxi_infer_names_add(e, &scope->frame->names, text);
    if (name == UINT32_MAX)
        return e->status;
    onxi_infer_name *entry = &scope->frame->names.entries[name];
    onxi_infer_fact *fact = own_fact(entry, scope);
    entry->made = true;
    if (fact) {
        char why[128];
        if (e->proven && onxi_facts_has_defaults(e->model))
            return ONX_OK; /* an input whose default a caller may override */
        if (!(fact = onxi_infer_fact_own(e, entry)))
            return e->status;
        merged = fact->type;
        if (!onxi_infer_type_merge(e, type, &merged, why, sizeof why)) {
            onx_diag diag = { .severity = e->options.strict ? ONX_ERROR : ONX_WARNING,
                              .status = e->options.strict ? ONX_E_INVALID : ONX_OK,
                              .rule = "G-15" };
            e->invalid |= e->options.strict;
            diag.where = ONXI_AT_PATH(onxi_arena_printf(e->arena, "graph.initializer \"%.*s\"", ONX_ARG(text)));
            onxi_report(e->cx, &diag, "the initializer and the declared type exclude each other: %s", why);
        }
        if (e->proven)
            fact->type = *type;
        fact->tensor = tensor;
        return ONX_OK;
    }
    fact = onxi_infer_fact_new(e);
    if (!fact)
        return e->status;
    fact->type = *type;
    fact->tensor = tensor;
    return onxi_infer_scope_bind(e, scope, name, fact);
}

static onx_status type_of_dims(onx_infer *e, uint8_t kind, int32_t dtype, const int64_t *sizes, uint32_t rank,
                               onxi_type *out)
{
    onxi_dim *dims = ONXI_ARRAY(e->arena, onxi_dim, rank ? rank : 1);
    if (!dims)
        return e->status = ONX_E_MEMORY;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = sizes[i] >= 0 ? sizes[i] : onxi_dim_fresh(e->dims, "unk_");
    *out = (onxi_type){
        .kind = kind, .dtype = onx_dtype_name(dtype) ? (uint8_t)dtype : 0, .ranked = true, .rank = rank, .dims = dims
    };
    return ONX_OK;
}

onx_status onxi_infer_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_tensor *t)
{
    onxi_type type;
    ONX_TRY(type_of_dims(e, ONXI_TYPE_TENSOR, t->data_type, t->dims, t->dims_count, &type));
    return bind_initializer(e, scope, onx_view(t->name), &type, t);
}

/* Sparse is a storage format: no operator takes sparse tensors, and runtimes convert initializers to dense ones. An
 * input may be declared as sparse, though. */
onx_status onxi_infer_sparse_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_sparse_tensor *t)
{
    onxi_type type;
    const onx_str text = t->values ? onx_view(t->values->name) : (onx_str){ 0 };
    if (!text.len)
        return ONX_OK;
    const uint32_t name = onxi_infer_names_add(e, &scope->frame->names, text);
    if (name == UINT32_MAX)
        return e->status;
    const onxi_infer_fact *declared = own_fact(&scope->frame->names.entries[name], scope);
    const bool sparse = declared && declared->type.kind == ONXI_TYPE_SPARSE_TENSOR;
    ONX_TRY(type_of_dims(e, sparse ? ONXI_TYPE_SPARSE_TENSOR : ONXI_TYPE_TENSOR, t->values->data_type, t->dims,
                         t->dims_count, &type));
    return bind_initializer(e, scope, text, &type, NULL);
}

static onx_status bind_initializers(onx_infer *e, onxi_infer_scope *scope)
{
    const onx_graph *graph = scope->graph;
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        ONX_TRY(onxi_infer_initializer(e, scope, graph->initializer[i]));
    for (uint32_t i = 0; i < graph->sparse_initializer_count; i++)
        ONX_TRY(onxi_infer_sparse_initializer(e, scope, graph->sparse_initializer[i]));
    return ONX_OK;
}

static onx_status bind_inputs(onx_infer *e, onxi_infer_scope *scope, const onxi_type *inputs, uint32_t input_count)
{
    const onx_graph *graph = scope->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        onx_str text = onx_view(graph->input[i]->name);
        uint32_t name = text.len ? onxi_infer_names_add(e, &scope->frame->names, text) : UINT32_MAX;
        if (name == UINT32_MAX)
            continue;
        onxi_infer_name *entry = &scope->frame->names.entries[name];
        onxi_infer_fact *fact = own_fact(entry, scope);
        entry->made = true;
        if (!fact) {
            if (!(fact = onxi_infer_fact_new(e)))
                return e->status;
            ONX_TRY(onxi_infer_scope_bind(e, scope, name, fact));
            scope->frame->names.entries[name].declared = ONXI_DECLARED_TYPE;
        } else if (!(fact = onxi_infer_fact_own(e, entry))) {
            return e->status;
        }
        if (inputs && i < input_count && inputs[i].kind != ONXI_TYPE_NONE) {
            char why[128];
            if (!onxi_infer_type_merge(e, &inputs[i], &fact->type, why, sizeof why) && scope->node)
                onxi_infer_report(
                    e, scope->parent, scope->node, scope->node_index, false,
                    "input %u \"%.*s\" of the subgraph is given and declared in ways that exclude each other: %s", i,
                    ONX_ARG(text), why);
            (void)onxi_infer_type_materialize(e, &fact->type);
        }
        if (scope->result)
            ONX_TRY(onxi_infer_result_add(e, scope->result, text, fact, true));
    }
    if (scope->result)
        scope->result->input_count = scope->result->count;
    return e->status;
}

onx_status onxi_infer_graph_in(onx_infer *e, onxi_infer_scope *scope, const onxi_type *inputs, uint32_t input_count,
                               onxi_type *outputs, uint32_t output_count)
{
    const onx_graph *graph = scope->graph;
    bool settled = true;
    if (scope->result)
        scope->result->settled = true; /* until a name is declared twice */
    if (!scope->parent)                /* about one value per node */
        ONX_TRY(onxi_infer_names_reserve(e, &scope->frame->names,
                                         (uint64_t)graph->node_count + graph->input_count + graph->initializer_count));
    /* What is given to a subgraph has the types that the node around it gives, whatever the subgraph declares. */
    const uint32_t claims = e->proven ? 0 : UINT32_MAX, inputs_claimed = e->proven && scope->parent ? 0 : UINT32_MAX;
    for (uint32_t i = 0; i < graph->value_info_count && i < claims; i++) {
        look_ahead_at_values(&scope->frame->names, graph->value_info, graph->value_info_count, i);
        bool plain;
        ONX_TRY(declare(e, scope, graph->value_info[i], &plain));
        settled &= plain;
    }
    if (scope->result) /* later declarations are merged with it, so it is no longer complete */
        scope->result->settled &= settled;
    for (uint32_t i = 0; i < graph->input_count && i < inputs_claimed; i++)
        ONX_TRY(onxi_infer_declare(e, scope, graph->input[i]));
    for (uint32_t i = 0; i < graph->output_count && i < claims; i++)
        ONX_TRY(onxi_infer_declare(e, scope, graph->output[i]));
    ONX_TRY(bind_inputs(e, scope, inputs, input_count));
    ONX_TRY(bind_initializers(e, scope));
    ONX_TRY(onxi_infer_nodes(e, scope, graph->node, graph->node_count));
    for (uint32_t i = 0; i < output_count; i++) {
        outputs[i] = (onxi_type){ .kind = ONXI_TYPE_NONE };
        if (i >= graph->output_count)
            continue;
        uint32_t name = onxi_infer_names_add(e, &scope->frame->names, onx_view(graph->output[i]->name));
        if (name == UINT32_MAX)
            return e->status;
        if (scope->frame->names.entries[name].fact)
            outputs[i] = scope->frame->names.entries[name].fact->type;
    }
    return ONX_OK;
}

void onxi_infer_frame_free(onx_infer *e, onxi_infer_frame *frame)
{
    onxi_infer_names_free(e, &frame->names);
    onxi_release(e->cx, frame->undo, frame->undo_room * sizeof *frame->undo);
    frame->undo = NULL;
}
