/* train_reduce.c - inserts the reduction into a step: nodes after the nodes Gradient, and a kernel that passes their
 * inputs to a function. */
#include "train/train.h"

#include "ir/ir.h"
#include "op/op.h"

typedef struct rewriter {
    onx_ctx *cx;
    onx_arena *arena;
    onx_graph *graph;
    onxi_dict names; /* names in use */
    onxi_dict fed;   /* values that depend on inputs other than variables */
    onxi_dict late;  /* values that depend on gradients */
    onx_node **nodes;
    uint32_t count;
} rewriter;

static onx_status note(onxi_dict *names, onx_str name)
{
    return !name.len || onxi_dict_at(names, name, 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status new_name(rewriter *w, onx_str base, onx_bytes *out)
{
    for (uint32_t i = 0;; i++) {
        const onx_str name = onxi_arena_printf(w->arena, "%.*s/reduced%.0u", ONX_ARG(base), i);
        bool made;
        if (!name.ptr || !onxi_dict_at(&w->names, name, 1, &made))
            return ONX_E_MEMORY;
        if (made)
            return onx_arena_keep(w->arena, name, out);
    }
}

/* ---- dependencies ---- */

typedef struct reader {
    const rewriter *w;
    bool fed, late;
} reader;

static void look(reader *r, onx_str name)
{
    r->fed |= onxi_dict_find(&r->w->fed, name) != NULL;
    r->late |= onxi_dict_find(&r->w->late, name) != NULL;
}

/* Visits a node and its subgraphs, whose outputs may come from the enclosing graph. */
static onx_status visit(void *user, const onx_visit *at)
{
    if (at->kind == ONX_KIND_NODE) {
        const onx_node *node = at->message;
        for (uint32_t i = 0; i < node->input_count; i++)
            look(user, onx_view(node->input[i]));
    } else if (at->kind == ONX_KIND_GRAPH) {
        const onx_graph *graph = at->message;
        for (uint32_t i = 0; i < graph->output_count; i++)
            look(user, onx_view(graph->output[i]->name));
    }
    return ONX_OK;
}

static onx_status follow(rewriter *w, const onx_node *node)
{
    reader r = { .w = w, .late = onxi_node_is(node, ONXI_ID_Gradient) };
    ONX_TRY(onx_message_walk(w->cx, ONX_KIND_NODE, (onx_node *)(uintptr_t)node, visit, &r));
    for (uint32_t i = 0; i < node->output_count; i++) {
        ONX_TRY(note(&w->names, onx_view(node->output[i])));
        if (r.fed)
            ONX_TRY(note(&w->fed, onx_view(node->output[i])));
        if (r.late)
            ONX_TRY(note(&w->late, onx_view(node->output[i])));
    }
    return ONX_OK;
}

static onx_status find_dependencies(rewriter *w, const onxi_dict *own)
{
    for (uint32_t i = 0; i < w->graph->input_count; i++) {
        const onx_str name = onx_view(w->graph->input[i]->name);
        ONX_TRY(note(&w->names, name));
        if (!onxi_dict_find(own, name))
            ONX_TRY(note(&w->fed, name));
    }
    for (uint32_t i = 0; i < w->graph->initializer_count; i++)
        ONX_TRY(note(&w->names, onx_view(w->graph->initializer[i]->name)));
    for (uint32_t i = 0; i < w->graph->node_count; i++)
        ONX_TRY(follow(w, w->graph->node[i]));
    return ONX_OK;
}

/* ---- nodes ---- */

static onx_status add_reduce(rewriter *w, onx_bytes *from, onx_bytes *to, uint32_t count)
{
    onx_node *node = onx_message_new(w->arena, ONX_KIND_NODE);
    if (!node || onx_arena_keep(w->arena, onx_str_of("Reduce"), &node->op_type) != ONX_OK ||
        onx_arena_keep(w->arena, onx_str_of(ONXI_TRAIN_DOMAIN), &node->domain) != ONX_OK)
        return ONX_E_MEMORY;
    node->has |= onx_node_has_op_type | onx_node_has_domain;
    node->input = from;
    node->output = to;
    node->input_count = node->output_count = count;
    w->nodes[w->count++] = node;
    return ONX_OK;
}

/* Renames the outputs of the Gradient node, so that the reduced gradients get the original names. */
static onx_status reduce_gradients(rewriter *w, const onx_node *from)
{
    onx_node *node = ONXI_NEW(w->arena, onx_node);
    onx_bytes *before = ONXI_ARRAY(w->arena, onx_bytes, (size_t)from->output_count + 1);
    onx_bytes *list = ONXI_ARRAY(w->arena, onx_bytes, (size_t)from->output_count + 1);
    onx_bytes *after = ONXI_ARRAY(w->arena, onx_bytes, (size_t)from->output_count + 1);
    uint32_t count = 0;
    if (!node || !before || !list || !after)
        return ONX_E_MEMORY;
    *node = *from;
    node->output = before;
    for (uint32_t i = 0; i < from->output_count; i++) {
        if (!onx_view(from->output[i]).len)
            continue;
        ONX_TRY(new_name(w, onx_view(from->output[i]), &before[i]));
        list[count] = before[i];
        after[count++] = from->output[i];
    }
    w->nodes[w->count++] = node;
    return count ? add_reduce(w, list, after, count) : ONX_OK;
}

static onx_status reduce_outputs(rewriter *w, onxi_train_reduced *out)
{
    onx_bytes *from = ONXI_ARRAY(w->arena, onx_bytes, (size_t)w->graph->output_count + 1);
    onx_bytes *to = ONXI_ARRAY(w->arena, onx_bytes, (size_t)w->graph->output_count + 1);
    uint32_t count = 0;
    if (!from || !to)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < w->graph->output_count; i++) {
        const onx_value_info *old = w->graph->output[i];
        const onx_str name = onx_view(old->name);
        onx_value_info *info;
        if (!onxi_dict_find(&w->fed, name) || onxi_dict_find(&w->late, name) || onxi_dict_find(&out->outputs, name))
            continue;
        from[count] = old->name;
        ONX_TRY(new_name(w, name, &to[count]));
        if (!(info = ONXI_NEW(w->arena, onx_value_info)) ||
            !ONXI_GROW_IN(w->arena, out->names, out->room, (uint64_t)out->outputs.count + 1) ||
            !onxi_dict_at(&out->outputs, name, out->outputs.count, NULL))
            return ONX_E_MEMORY;
        out->names[out->outputs.count - 1] = onx_view(to[count]);
        *info = *old;
        info->name = to[count++];
        w->graph->output[i] = info;
    }
    return count ? add_reduce(w, from, to, count) : ONX_OK;
}

onx_status onxi_train_reduce_graph(onx_ctx *cx, onx_arena *arena, onx_graph *graph, const onxi_dict *own,
                                   onxi_train_reduced *out)
{
    rewriter w = { .cx = cx,
                   .arena = arena,
                   .graph = graph,
                   .names = onxi_dict_in_arena(arena),
                   .fed = onxi_dict_in_arena(arena),
                   .late = onxi_dict_in_arena(arena) };
    *out = (onxi_train_reduced){ .outputs = onxi_dict_in_arena(arena) };
    if (!(w.nodes = (onx_node **)ONXI_ARRAY(arena, void *, 2 * (size_t)graph->node_count + 1)))
        return ONX_E_MEMORY;
    ONX_TRY(find_dependencies(&w, own));
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (onxi_node_is(graph->node[i], ONXI_ID_Gradient))
            ONX_TRY(reduce_gradients(&w, graph->node[i]));
        else
            w.nodes[w.count++] = graph->node[i];
    ONX_TRY(reduce_outputs(&w, out));
    graph->node = w.nodes;
    graph->node_count = w.count;
    return ONX_OK;
}

/* ---- the kernel ---- */

static onx_status types(onx_prepare *p)
{
    for (uint32_t i = 0; i < p->output_count; i++) {
        const onx_value *x = i < p->input_count ? p->inputs[i] : NULL;
        if (!x || x->kind != ONX_VALUE_TENSOR || x->dtype == ONX_STRING)
            return onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                    "only tensors of numbers are put together with those of others");
        if (p->outputs[i])
            ONX_TRY(onx_prepare_output(p, i, (onx_dtype)x->dtype, x->rank, x->dims));
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    p->params = (void *)(uintptr_t)p->kernel->body;
    p->workspace = p->output_count * sizeof(onx_value *);
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_train_reduction *reduction = work->params;
    onx_value **values = work->workspace;
    uint32_t count = 0;
    (void)first, (void)last;
    for (uint32_t i = 0; i < work->prepared->output_count; i++) {
        if (!work->outputs[i])
            continue;
        if (work->outputs[i]->size)
            memcpy(work->outputs[i]->data, work->inputs[i]->data, (size_t)work->outputs[i]->size);
        values[count++] = work->outputs[i];
    }
    return reduction->reduce(reduction->user, work->cx, values, count);
}

onx_kernel onxi_train_reduce_kernel(const onx_train_reduction *reduction)
{
    return (onx_kernel){ .op = "Reduce",
                         .domain = ONXI_TRAIN_DOMAIN,
                         .since = 1,
                         .flags = ONX_KERNEL_RANDOM | ONX_KERNEL_ONCE,
                         .body = reduction,
                         .prepare = prepare,
                         .run = run,
                         .types = types };
}
