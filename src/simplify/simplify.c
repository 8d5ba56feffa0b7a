/* simplify.c - runs the passes in rounds over the graphs and functions of a model, until nothing changes. */
#include "simplify/simplify.h"

enum {
    ROUNDS_MAX = 8,   /* few changes are left after one round; each round takes linear time */
    FOLD_LIMIT = 1024 /* default limit, in bytes */
};

const char *const onxi_simplify_names[ONXI_SIMPLIFY_COUNT] = {
#define PASS(id, name, summary, effect) name,
#include "simplify/simplify_passes.def"
};

static const onx_pass_effect effects[ONXI_SIMPLIFY_COUNT] = {
#define PASS(id, name, summary, effect) ONX_PASS_##effect,
#include "simplify/simplify_passes.def"
};

typedef struct simplifier {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    const onx_simplify_options *options;
    uint32_t passes;
    onx_arena *rules_arena;
    onxi_rewrites rules;
    onxi_dict keep; /* value 1: the name was found */
    bool *asked;    /* per graph and function: it must not be changed */
    uint64_t computed;
    uint64_t saved, pool; /* bytes of removed constants, and the part of them that new constants may use in the end */
    uint64_t held;        /* bytes of constants that the last round did not compute because the model would grow */
    uint32_t held_count;
    uint32_t round;
    bool changed;
} simplifier;

/* ---- one graph, one round ---- */

static onx_status walk(onxi_simplify *s, uint32_t scope)
{
    static onx_status (*const passes[])(onxi_simplify *, uint32_t) = {
        [ONXI_SIMPLIFY_SHAPE] = onxi_simplify_shape,   [ONXI_SIMPLIFY_IDENTITY] = onxi_simplify_identity,
        [ONXI_SIMPLIFY_MERGE] = onxi_simplify_merge,   [ONXI_SIMPLIFY_CONTROL] = onxi_simplify_control,
        [ONXI_SIMPLIFY_AFFINE] = onxi_simplify_affine,
    };
    uint32_t previous = ONXI_S_NONE;
    for (uint32_t op = s->scopes[scope].first; op != ONXI_S_NONE; op = s->ops[op].next) {
        for (uint32_t inner = s->ops[op].dead ? ONXI_S_NONE : s->ops[op].first_scope; inner != ONXI_S_NONE;
             inner = s->scopes[inner].sibling)
            ONX_TRY(walk(s, inner)); /* recursion is bounded: simplify_body.c has checked the depth */
        s->previous = previous;
        for (uint32_t p = 0; p < sizeof passes / sizeof *passes; p++)
            if (passes[p] && onxi_simplify_wants(s, (onxi_simplify_pass)p) && !s->ops[op].dead)
                ONX_TRY(passes[p](s, op));
        previous = op;
    }
    return ONX_OK;
}

static onx_status drop_unused(onxi_simplify *s)
{
    for (uint32_t op = s->op_count; op-- > 0;)
        if (!s->ops[op].dead)
            ONX_TRY(onxi_simplify_drop(s, op));
    return ONX_OK;
}

/* The graph that a path prefix leads to. */
static onx_where graph_at(onx_str prefix)
{
    return ONXI_AT_PATH(onx_str_make(prefix.ptr, prefix.len - (prefix.len && prefix.ptr[prefix.len - 1] == '.')));
}

/* Warns why a graph is not simplified. */
static onx_status warn_broken(onxi_simplify *s, onx_str prefix)
{
    const onx_graph *graph = s->scopes[0].graph;
    const onx_function *function = s->scopes[0].function;
    onxi_cycle cycle = { 0 };
    uint32_t *order;
    ONX_TRY(onxi_nodes_order(s->scratch, graph ? graph->node : function->node,
                             graph ? graph->node_count : function->node_count, &cycle, &order));
    if (cycle.node)
        onxi_warn(s->cx, ONX_WARNING, NULL, graph_at(prefix), "there is a cycle, so the graph is not changed: %.*s",
                  ONX_ARG(cycle.text));
    else
        onxi_warn(s->cx, ONX_WARNING, NULL, graph_at(prefix), "%.*s %s: the graph is not changed",
                  ONX_ARG(s->broken_name), s->broken);
    return ONX_OK;
}

static onx_status simplify_body(simplifier *x, onxi_simplify *s, onx_str prefix)
{
    if (s->broken)
        return x->round ? ONX_OK : warn_broken(s, prefix);
    const uint64_t before = onxi_simplify_bytes(s);
    ONX_TRY(walk(s, 0));
    if (onxi_simplify_wants(s, ONXI_SIMPLIFY_UNUSED))
        ONX_TRY(drop_unused(s));
    if (onxi_simplify_wants(s, ONXI_SIMPLIFY_REPEATS))
        ONX_TRY(onxi_simplify_repeats(s));
    if (onxi_simplify_wants(s, ONXI_SIMPLIFY_FOLD))
        ONX_TRY(onxi_simplify_fold(s)); /* before the rules, which look for constants */
    if (onxi_simplify_wants(s, ONXI_SIMPLIFY_FUSE))
        ONX_TRY(onxi_simplify_fuse(s));
    ONX_TRY(onxi_simplify_write(s));
    const uint64_t after = onxi_simplify_bytes(s);
    x->saved = x->saved + before > after ? x->saved + before - after : 0;
    x->pool = s->pool;
    x->held_count += s->held_count;
    if (!onxi_add_u64(x->held, s->held, &x->held))
        x->held = UINT64_MAX;
    x->changed |= s->changed;
    x->computed = s->computed;
    return ONX_OK;
}

/* ---- all graphs and functions ---- */

/* If types are not available, the passes that need none still run. */
static onx_infer *infer(simplifier *x)
{
    onx_infer *out;
    const onxi_diag_mark mark = onxi_diag_here(x->cx);
    if (onxi_facts_new(x->cx, x->doc, onx_str_of(""), &out) != ONX_OK)
        out = NULL;
    onxi_diag_rewind(x->cx, mark);
    if (!out && !x->round)
        onxi_warn(x->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "types cannot be inferred (onx infer reports why): passes that need them change nothing");
    return out;
}

static onx_status round_of(simplifier *x, onx_arena *scratch, onx_infer *known)
{
    onx_model *model = x->model;
    onxi_functions functions;
    onxi_names names = { .scratch = scratch, .arena = onx_doc_arena(x->doc), .model = model };
    ONX_TRY(onxi_functions_index(scratch, model->functions, model->functions_count, &functions));
    const onxi_simplify fresh = { .cx = x->cx,
                                  .doc = x->doc,
                                  .model = model,
                                  .arena = onx_doc_arena(x->doc),
                                  .scratch = scratch,
                                  .options = x->options,
                                  .passes = x->passes,
                                  .limit = x->options->fold_limit ? x->options->fold_limit : FOLD_LIMIT,
                                  .names = &names,
                                  .rules = &x->rules,
                                  .binder = { .functions = &functions },
                                  .keep = &x->keep };
    const uint32_t graphs = 1 + 2 * model->training_info_count;
    for (uint32_t i = 0; i < graphs + model->functions_count; i++) {
        onxi_simplify s = fresh;
        const onx_training_info *info = i && i < graphs ? model->training_info[(i - 1) / 2] : NULL;
        onx_graph *graph = !i ? model->graph : info ? (i % 2 ? info->initialization : info->algorithm) : NULL;
        onx_str prefix;
        s.computed = x->computed;
        s.pool = x->pool;
        s.infer = i ? NULL : known;
        if (i >= graphs) {
            prefix = onxi_arena_printf(scratch, "functions[%u].", i - graphs);
            ONX_TRY(onxi_simplify_read_function(&s, model->functions[i - graphs], prefix));
        } else if (graph) {
            prefix = info ? onxi_arena_printf(scratch, "training_info[%u].%s.", (i - 1) / 2,
                                              i % 2 ? "initialization" : "algorithm")
                          : onx_str_of("graph.");
            ONX_TRY(onxi_simplify_read_graph(&s, graph, prefix));
        } else {
            continue;
        }
        if (x->asked[i] && !x->round)
            onxi_warn(x->cx, ONX_WARNING, NULL, graph_at(prefix),
                      "a node Gradient computes derivatives: the graph is not changed (onx grad replaces it by plain "
                      "nodes)");
        if (!x->asked[i])
            ONX_TRY(simplify_body(x, &s, prefix));
    }
    return ONX_OK;
}

static onx_status run_rounds(simplifier *x)
{
    onx_status status = ONX_OK;
    bool spent = !(x->passes >> ONXI_SIMPLIFY_FOLD & 1);
    for (x->round = 0; status == ONX_OK && x->round < ROUNDS_MAX; x->round++) {
        if (x->round && (!x->changed || x->round == ROUNDS_MAX - 2)) {
            if (spent || !x->saved)
                break;
            spent = true; /* new constants must not be larger than the removed ones */
            x->pool = x->saved;
        }
        onx_arena *scratch;
        ONX_TRY(onx_arena_new(x->cx, &scratch));
        onx_infer *known = infer(x);
        x->changed = false;
        x->held = x->held_count = 0;
        status = round_of(x, scratch, known);
        onx_infer_free(known);
        onx_arena_free(scratch);
    }
    return status;
}

/* ---- options ---- */

static onx_status choose_passes(simplifier *x)
{
    const onx_simplify_options *o = x->options;
    for (uint32_t p = 0; !o->pass_count && p < ONXI_SIMPLIFY_COUNT; p++)
        x->passes |= UINT32_C(1) << p;
    for (uint32_t i = 0; i < o->pass_count; i++) {
        uint32_t p = 0;
        while (p < ONXI_SIMPLIFY_COUNT && !onx_str_is(o->pass[i], onxi_simplify_names[p]))
            p++;
        if (p == ONXI_SIMPLIFY_COUNT)
            return onxi_fail(x->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no pass is called %.*s", ONX_ARG(o->pass[i]));
        x->passes |= UINT32_C(1) << p;
    }
    for (uint32_t p = 0; o->exact && p < ONXI_SIMPLIFY_COUNT; p++)
        if (effects[p] != ONX_PASS_EXACT)
            x->passes &= ~(UINT32_C(1) << p);
    return ONX_OK;
}

static onx_status keep_name(void *user, onx_bytes *name)
{
    simplifier *x = user;
    return onxi_dict_at(&x->keep, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status ask_about(void *user, onx_bytes *name)
{
    (void)name;
    *(bool *)user = true;
    return ONX_OK;
}

/* Marks the graphs and functions with values that node attributes refer to by name, as Gradient does: the computation
 * between these values matters, not only the outputs. Gradient nodes in training graphs may refer to the main graph,
 * too. */
static onx_status list_asked(simplifier *x)
{
    const onx_model *model = x->model;
    const uint32_t graphs = 1 + 2 * model->training_info_count;
    if (!(x->asked = ONXI_ARRAY(x->rules_arena, bool, (size_t)graphs + model->functions_count)))
        return ONX_E_MEMORY;
    if (model->graph)
        ONX_TRY(onxi_each_named(x->cx, ONX_KIND_GRAPH, model->graph, ask_about, &x->asked[0]));
    for (uint32_t i = 1; i < graphs; i++) {
        const onx_training_info *info = model->training_info[(i - 1) / 2];
        onx_graph *graph = i % 2 ? info->initialization : info->algorithm;
        if (graph)
            ONX_TRY(onxi_each_named(x->cx, ONX_KIND_GRAPH, graph, ask_about, &x->asked[i]));
        x->asked[0] |= x->asked[i];
    }
    for (uint32_t i = 0; i < model->functions_count; i++)
        ONX_TRY(onxi_each_named(x->cx, ONX_KIND_FUNCTION, model->functions[i], ask_about, &x->asked[graphs + i]));
    return ONX_OK;
}

/* The values that the caller wants to keep, and those that training information refers to by name. */
static onx_status keep_names(simplifier *x)
{
    for (uint32_t i = 0; i < x->model->training_info_count; i++) {
        const onx_training_info *info = x->model->training_info[i];
        for (uint32_t k = 0; k < info->initialization_binding_count; k++)
            ONX_TRY(keep_name(x, &info->initialization_binding[k]->key));
        for (uint32_t k = 0; k < info->initialization_binding_count; k++)
            ONX_TRY(keep_name(x, &info->initialization_binding[k]->value));
        for (uint32_t k = 0; k < info->update_binding_count; k++) {
            ONX_TRY(keep_name(x, &info->update_binding[k]->key));
            ONX_TRY(keep_name(x, &info->update_binding[k]->value));
        }
        if (info->initialization)
            ONX_TRY(onxi_graph_each_name(x->cx, info->initialization, keep_name, x));
        if (info->algorithm)
            ONX_TRY(onxi_graph_each_name(x->cx, info->algorithm, keep_name, x));
    }
    for (uint32_t i = 0; i < x->options->keep_count; i++)
        if (!onxi_dict_at(&x->keep, x->options->keep[i], 0, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static void tell_not_found(simplifier *x)
{
    for (uint32_t i = 0; i < x->options->keep_count; i++) {
        const onxi_dict_entry *entry = onxi_dict_find(&x->keep, x->options->keep[i]);
        if (entry && !entry->value)
            onxi_warn(x->cx, ONX_WARNING, NULL, ONXI_NOWHERE, "no value is called %.*s", ONX_ARG(x->options->keep[i]));
    }
}

static void tell_held(const simplifier *x)
{
    const uint64_t limit = x->options->fold_limit ? x->options->fold_limit : FOLD_LIMIT;
    if (x->held_count)
        onxi_warn(
            x->cx, ONX_NOTE, NULL, ONXI_NOWHERE,
            "%u value%s of %llu bytes depend%s on constants only, but would make the model larger; values are computed "
            "up to %llu bytes (fold limit)",
            x->held_count, x->held_count == 1 ? "" : "s", (unsigned long long)x->held, x->held_count == 1 ? "s" : "",
            (unsigned long long)limit);
}

static onx_status simplify(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options)
{
    simplifier x = { .cx = cx, .doc = doc, .model = onx_doc_model(doc), .options = options };
    if (!x.model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(choose_passes(&x));
    if (options->freeze_defaults)
        ONX_TRY(onxi_simplify_freeze(cx, doc));
    ONX_TRY(onxi_simplify_fix(cx, doc, options));
    ONX_TRY(onx_arena_new(cx, &x.rules_arena));
    x.keep = onxi_dict_in_arena(x.rules_arena);
    onx_status status = onxi_rewrites_open(&x.rules, cx, x.rules_arena);
    if (status == ONX_OK)
        status = keep_names(&x);
    if (status == ONX_OK)
        status = list_asked(&x);
    if (status == ONX_OK)
        status = run_rounds(&x);
    if (status == ONX_OK && x.passes >> ONXI_SIMPLIFY_UNUSED & 1)
        status = onxi_simplify_unused(cx, doc, options);
    if (status == ONX_OK) {
        tell_not_found(&x);
        tell_held(&x);
    }
    onxi_rewrites_close(&x.rules);
    onx_arena_free(x.rules_arena);
    return status;
}

onx_status onx_simplify(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_simplify_options, own, options);
    ONXI_NEED(cx, own.pass || !own.pass_count);
    ONXI_NEED(cx, own.fixed || !own.fixed_count);
    ONXI_NEED(cx, own.shape || !own.shape_count);
    ONXI_NEED(cx, own.keep || !own.keep_count);
    ONXI_TRANSFORM(cx, doc, simplify(cx, doc, &own));
}
