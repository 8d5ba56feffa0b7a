/* transform_grad_walk.c - reverse-mode differentiation of a list of nodes: finds the values that depend on xs, and
 * accumulates gradients from the last node to the first. */
#include "transform/transform_grad.h"

enum { FLOATS = 1u << ONX_FLOAT | 1u << ONX_FLOAT16 | 1u << ONX_DOUBLE | 1u << ONX_BFLOAT16 };

onx_status onxi_grad_fail(onxi_grad *g, const onx_node *node, const char *format, ...)
{
    onx_diag diag = { .severity = ONX_ERROR,
                      .status = ONX_E_UNSUPPORTED,
                      .where = ONXI_AT_PATH(onxi_path_node(g->scratch, onx_str_of("graph."), 0, node)) };
    const onx_graph *graph = g->model->graph;
    for (uint32_t i = 0; graph && i < graph->node_count; i++)
        if (graph->node[i] == node)
            diag.where = ONXI_AT_PATH(onxi_path_node(g->scratch, onx_str_of("graph."), i, node));
    va_list args;
    va_start(args, format);
    onxi_vreport(g->cx, &diag, format, args);
    va_end(args);
    return ONX_E_UNSUPPORTED;
}

bool onxi_grad_is_real(onxi_grad *g, const onxi_scope *scope, onx_str name)
{
    const int dtype = onxi_type_dtype(onxi_values_type(&g->values, scope, name));
    return dtype <= 0 || dtype >= 32 || (FLOATS >> dtype & 1);
}

/* ---- dependencies ---- */

typedef struct tape {
    onxi_grad *g;
    const onxi_grad_task *task;
    onxi_grad_out *out;
    onxi_dict active;   /* values that depend on xs */
    onxi_dict arriving; /* values that a gradient arrives at: indexes of parts */
    onx_bytes **parts;  /* the gradient terms of each value */
    uint32_t *part_counts;
    uint32_t parts_room, counts_room;
} tape;

static const onxi_bound *bound_of(onxi_grad *g, const onx_node *node)
{
    return onxi_bind(&g->binder, node);
}

static const onxi_grad_rule *rule_of(onxi_grad *g, const onx_node *node)
{
    const onxi_bound *bound = bound_of(g, node);
    return bound && bound->kind == ONXI_BOUND_OPERATOR ? onxi_grad_rule_of(g, bound->op) : NULL;
}

static bool is_active(const onxi_dict *active, onx_bytes name)
{
    return onx_view(name).len && onxi_dict_find(active, onx_view(name));
}

/* Does the node read a value that depends on xs? */
static onx_status reads_active(onxi_grad *g, const onxi_dict *active, const onx_node *node, bool *reads)
{
    *reads = false;
    for (uint32_t i = 0; i < node->input_count && !*reads; i++)
        *reads = is_active(active, node->input[i]);
    if (*reads)
        return ONX_OK;
    onxi_dict captured = onxi_dict_in_arena(g->scratch);
    bool graphs = false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        graphs |= node->attribute[i]->slot == ONX_SLOT_G || node->attribute[i]->slot == ONX_SLOT_GRAPHS;
    if (!graphs)
        return ONX_OK;
    ONX_TRY(onxi_grad_captured(g, node, &captured));
    for (uint32_t i = 0; i < captured.count && !*reads; i++)
        *reads = onxi_dict_find(active, captured.entries[i].key) != NULL;
    return ONX_OK;
}

/* The real-valued values that depend on xs through differentiable operators. */
static onx_status find_active(onxi_grad *g, const onxi_grad_task *task, onxi_dict *active)
{
    *active = onxi_dict_in_arena(g->scratch);
    for (uint32_t i = 0; i < task->x_count; i++)
        if (!onxi_dict_at(active, onx_view(task->xs[i]), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < task->count; i++) {
        const onx_node *node = task->nodes[i];
        bool reads;
        ONX_TRY(reads_active(g, active, node, &reads));
        const onxi_grad_rule *rule = reads ? rule_of(g, node) : NULL;
        if (!reads || (rule && rule->kind == ONXI_GRAD_STOP))
            continue;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (onx_view(node->output[k]).len && onxi_grad_is_real(g, task->scope, onx_view(node->output[k])))
                if (!onxi_dict_at(active, onx_view(node->output[k]), 1, NULL))
                    return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* ---- accumulating gradients ---- */

static onx_status arrive(tape *t, onx_bytes at, onx_bytes gradient)
{
    onxi_grad *g = t->g;
    bool made;
    gradient = onxi_grad_resolve(t->out, gradient);
    onxi_dict_entry *entry = onxi_dict_at(&t->arriving, onx_view(at), t->arriving.count, &made);
    if (!entry || !ONXI_GROW_IN(g->scratch, t->parts, t->parts_room, t->arriving.count) ||
        !ONXI_GROW_IN(g->scratch, t->part_counts, t->counts_room, t->arriving.count))
        return ONX_E_MEMORY;
    const uint32_t i = entry->value;
    if (made) {
        t->parts[i] = NULL;
        t->part_counts[i] = 0;
    }
    const uint32_t count = t->part_counts[i];
    if (!(count & (count - 1))) { /* grow to the next power of two */
        onx_bytes *more = ONXI_ARRAY(g->scratch, onx_bytes, count ? 2 * (size_t)count : 1);
        if (!more)
            return ONX_E_MEMORY;
        if (count)
            memcpy(more, t->parts[i], count * sizeof *more);
        t->parts[i] = more;
    }
    t->parts[i][t->part_counts[i]++] = gradient;
    return ONX_OK;
}

/* Sequences are added tensor by tensor. */
static onx_status add_sequences(tape *t, const onx_bytes *parts, uint32_t count, onx_bytes sum)
{
    onxi_grad_node n = { .s = { .values = &t->g->values, .arena = t->g->arena, .scope = t->task->scope },
                         .g = t->g,
                         .out = t->out };
    onx_bytes so_far = parts[0];
    for (uint32_t i = 1; i < count; i++) {
        const onx_bytes pair[2] = { so_far, parts[i] };
        so_far = sum;
        if (i + 1 < count)
            ONX_TRY(onxi_grad_name(t->g, sum, "part", &so_far));
        ONX_TRY(onxi_grad_put(&n, "a, b", "c", "c = SequenceMap <body = add (x, y) => (z) { z = Add (x, y) }> (a, b)",
                              pair, 2, &so_far, 1));
    }
    return ONX_OK;
}

/* The sum of the gradient terms of a value; empty if there are none. */
static onx_status total(tape *t, onx_bytes name, onx_bytes *sum)
{
    const onxi_dict_entry *entry = onx_view(name).len ? onxi_dict_find(&t->arriving, onx_view(name)) : NULL;
    *sum = (onx_bytes){ 0 };
    if (!entry)
        return ONX_OK;
    const uint32_t i = entry->value, count = t->part_counts[i];
    if (count > 1) {
        const onx_type *type = onxi_values_type(&t->g->values, t->task->scope, onx_view(name));
        ONX_TRY(onxi_grad_name(t->g, name, "grad", sum));
        if (type && ONX_HAS(type, type, sequence_type))
            ONX_TRY(add_sequences(t, t->parts[i], count, *sum));
        else
            ONX_TRY(onxi_grad_push(t->g, t->out,
                                   onxi_grad_node_new(t->g, count == 2 ? "Add" : "Sum", t->parts[i], count, sum, 1)));
        t->parts[i][0] = *sum;
        t->part_counts[i] = 1;
    }
    *sum = t->parts[i][0];
    return ONX_OK;
}

/* ---- nodes ---- */

static void fill(onxi_grad *g, onxi_grad_node *n, const onxi_bound *bound, onxi_scope *scope, const onx_node *node)
{
    *n = (onxi_grad_node){
        .s = { .values = &g->values, .arena = g->arena, .scope = scope, .node = node, .row = bound->schema }, .g = g
    };
}

static onx_status fail_without_rule(onxi_grad *g, const onx_node *node, const onxi_bound *bound,
                                    const onxi_grad_rule *rule)
{
    if (bound && bound->kind == ONXI_BOUND_FUNCTION)
        return onxi_grad_fail(g, node, "function %.*s calls itself", ONX_ARG(onx_view(node->op_type)));
    if (rule && rule->text)
        return onxi_grad_fail(g, node, "there is no gradient of %.*s: %s", ONX_ARG(onx_view(node->op_type)),
                              rule->text);
    return onxi_grad_fail(g, node, "no gradient of %.*s is known", ONX_ARG(onx_view(node->op_type)));
}

static onx_status check_operands(onxi_grad *g, const onx_node *node, const onxi_schema *row)
{
    if (!row || onxi_node_has_operands(node, row))
        return ONX_OK;
    return onxi_grad_fail(g, node, "it has %u inputs and %u outputs, but not all that %s requires", node->input_count,
                          node->output_count, row->name);
}

static onx_status derive_node(tape *t, onx_node *node, const onx_bytes *dys)
{
    onxi_grad *g = t->g;
    const onxi_bound *bound = bound_of(g, node);
    if (!bound)
        return ONX_E_MEMORY;
    const onxi_grad_rule *rule = rule_of(g, node);
    if (rule && rule->kind == ONXI_GRAD_STOP)
        return ONX_OK;
    if (!rule || rule->kind == ONXI_GRAD_NONE)
        return fail_without_rule(g, node, bound, rule);
    ONX_TRY(check_operands(g, node, bound->schema));
    onxi_grad_node n;
    fill(g, &n, bound, t->task->scope, node);
    onxi_dict captured = onxi_dict_in_arena(g->scratch);
    if (rule->kind == ONXI_GRAD_CODE)
        ONX_TRY(onxi_grad_captured(g, node, &captured));
    /* Captured values follow the inputs. */
    onx_bytes *dx = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)node->input_count + captured.count + 1);
    bool *made = ONXI_ARRAY(g->scratch, bool, (size_t)node->input_count + captured.count + 1);
    if (!dx || !made)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_active(&t->active, node->input[i]))
            ONX_TRY(onxi_grad_name(g, node->input[i], "grad", &dx[i]));
    n.out = t->out;
    n.dy = dys;
    n.dy_count = node->output_count;
    n.dx = dx;
    if (rule->kind == ONXI_GRAD_CODE) {
        onx_bytes *names = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)captured.count + 1);
        onx_bytes *gradients = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)captured.count + 1);
        uint32_t count = 0;
        if (!names || !gradients)
            return ONX_E_MEMORY;
        for (uint32_t i = 0; i < captured.count; i++)
            if (onxi_dict_find(&t->active, captured.entries[i].key))
                ONX_TRY(onx_arena_keep(g->arena, captured.entries[i].key, &names[count++]));
        n.captured = names;
        n.captured_dx = gradients;
        n.captured_count = count;
        const uint32_t inputs = node->input_count;
        ONX_TRY(rule->make(&n));
        for (uint32_t i = 0; i < count; i++)
            if (onx_view(gradients[i]).len)
                ONX_TRY(arrive(t, names[i], gradients[i]));
        for (uint32_t i = 0; i < inputs; i++)
            if (onx_view(dx[i]).len)
                ONX_TRY(arrive(t, node->input[i], dx[i]));
        return ONX_OK;
    }
    if (rule->kind != ONXI_GRAD_PART)
        return fail_without_rule(g, node, bound, NULL);
    ONX_TRY(onxi_grad_apply(&n, rule, made));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onxi_port *port = onxi_port_at(bound->schema->inputs, i);
        if (!made[i] && onx_view(dx[i]).len && !(port && port->flags & ONXI_PORT_NONDIFF))
            return onxi_grad_fail(g, node, "there is no gradient of %.*s with respect to input %u",
                                  ONX_ARG(onx_view(node->op_type)), i);
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (made[i] && onx_view(dx[i]).len)
            ONX_TRY(arrive(t, node->input[i], dx[i]));
    return ONX_OK;
}

onx_status onxi_grad_walk(onxi_grad *g, const onxi_grad_task *task, onxi_grad_out *out)
{
    tape t = { .g = g, .task = task, .out = out, .arriving = onxi_dict_in_arena(g->scratch) };
    onxi_dict xs = onxi_dict_in_arena(g->scratch);
    ONX_TRY(find_active(g, task, &t.active));
    for (uint32_t i = 0; i < task->x_count; i++)
        if (!onxi_dict_at(&xs, onx_view(task->xs[i]), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < task->y_count; i++)
        if (onx_view(task->dys[i]).len && is_active(&t.active, task->ys[i]))
            ONX_TRY(arrive(&t, task->ys[i], task->dys[i]));
    for (uint32_t i = task->count; i-- > 0;) {
        onx_node *node = task->nodes[i];
        bool any = false;
        for (uint32_t k = 0; k < node->output_count && !any; k++)
            any = is_active(&t.active, node->output[k]);
        if (!any)
            continue;
        onx_bytes *dys = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)node->output_count + 1);
        any = false;
        if (!dys)
            return ONX_E_MEMORY;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (is_active(&t.active, node->output[k]) && !onxi_dict_find(&xs, onx_view(node->output[k]))) {
                ONX_TRY(total(&t, node->output[k], &dys[k]));
                any |= onx_view(dys[k]).len != 0;
            }
        if (any)
            ONX_TRY(derive_node(&t, node, dys));
    }
    for (uint32_t i = 0; i < task->x_count; i++)
        ONX_TRY(total(&t, task->xs[i], &task->dxs[i]));
    return ONX_OK;
}

/* ---- replacing operators by equivalent subgraphs ---- */

/* The rules of a node if an equivalent subgraph is differentiated in its place, NULL otherwise. */
static const onxi_grad_rule *lowering_of(onxi_grad *g, onxi_scope *scope, const onx_node *node, onxi_grad_node *n)
{
    const onxi_grad_rule *rules = rule_of(g, node);
    if (!rules)
        return NULL;
    fill(g, n, bound_of(g, node), scope, node);
    if (n->s.row && !onxi_node_has_operands(node, n->s.row)) /* reported when the node is differentiated */
        return NULL;
    for (const onxi_grad_rule *rule = rules; rule->op == rules->op; rule++)
        if (rule->kind == ONXI_GRAD_LOWER && rule->when(n))
            return rules;
    return NULL;
}

static onx_status lower_subgraphs(onxi_grad *g, onxi_scope *scope, onx_node *node, bool *changed)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot != ONX_SLOT_G || !a->g)
            continue;
        onx_graph *graph = a->g;
        onxi_scope inner = { .parent = scope, .graph = graph, .nodes = graph->node, .node_count = graph->node_count };
        onx_bytes *ys = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)graph->output_count + 1);
        onxi_dict names = onxi_dict_in_arena(g->scratch);
        if (!ys)
            return ONX_E_MEMORY;
        for (uint32_t k = 0; k < graph->output_count; k++)
            ys[k] = graph->output[k]->name;
        ONX_TRY(onxi_grad_captured(g, node, &names));
        onx_bytes *xs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)graph->input_count + names.count + 1);
        uint32_t count = 0;
        if (!xs)
            return ONX_E_MEMORY;
        for (uint32_t k = 0; k < graph->input_count; k++)
            xs[count++] = graph->input[k]->name;
        for (uint32_t k = 0; k < names.count; k++)
            ONX_TRY(onx_arena_keep(g->scratch, names.entries[k].key, &xs[count++]));
        if (++g->depth > g->limit)
            return onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                             g->limit);
        bool inside = false;
        ONX_TRY(onxi_grad_lower_graph(g, &inner, graph, ys, graph->output_count, xs, count, &inside));
        if (inside)
            ONX_TRY(onxi_grad_note(g, node));
        *changed |= inside;
        g->depth--;
    }
    return ONX_OK;
}

onx_status onxi_grad_needed(onxi_grad *g, onx_node *const *nodes, uint32_t count, const onx_bytes *ys, uint32_t y_count,
                            const onx_bytes *xs, uint32_t x_count, onxi_node_list *out)
{
    enum { NODES_PER_STEP = 256 };
    onxi_dict names = onxi_dict_in_arena(g->scratch); /* 1: needed, 2: an x, beyond which nothing is */
    ONX_TRY(onxi_grad_spend(g, 1 + count / NODES_PER_STEP));
    for (uint32_t i = 0; i < x_count; i++)
        if (!onxi_dict_at(&names, onx_view(xs[i]), 2, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < y_count; i++)
        if (!onxi_dict_at(&names, onx_view(ys[i]), 1, NULL))
            return ONX_E_MEMORY;
    *out = (onxi_node_list){ 0 };
    for (uint32_t i = count; i-- > 0;) {
        const onx_node *node = nodes[i];
        bool used = false;
        for (uint32_t k = 0; k < node->output_count && !used; k++) {
            const onxi_dict_entry *entry = onxi_dict_find(&names, onx_view(node->output[k]));
            used = entry && entry->value == 1 && entry->key.len;
        }
        if (!used)
            continue;
        ONX_TRY(onxi_node_list_add(g->scratch, out, nodes[i]));
        for (uint32_t k = 0; k < node->input_count; k++)
            if (!onxi_dict_at(&names, onx_view(node->input[k]), 1, NULL))
                return ONX_E_MEMORY;
        ONX_TRY(onxi_grad_captured(g, node, &names));
    }
    for (uint32_t i = 0; i < out->count / 2; i++) {
        onx_node *other = out->items[i];
        out->items[i] = out->items[out->count - 1 - i];
        out->items[out->count - 1 - i] = other;
    }
    return ONX_OK;
}

/* Marks the nodes between xs and ys. */
static onx_status find_between(onxi_grad *g, const onxi_grad_task *task, bool *between)
{
    onxi_dict active, needed = onxi_dict_in_arena(g->scratch);
    ONX_TRY(find_active(g, task, &active));
    for (uint32_t i = 0; i < task->y_count; i++)
        if (!onxi_dict_at(&needed, onx_view(task->ys[i]), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = task->count; i-- > 0;) {
        const onx_node *node = task->nodes[i];
        bool used = false;
        for (uint32_t k = 0; k < node->output_count && !used; k++)
            used = is_active(&active, node->output[k]) && onxi_dict_find(&needed, onx_view(node->output[k]));
        if (!used)
            continue;
        ONX_TRY(reads_active(g, &active, node, &between[i]));
        for (uint32_t k = 0; k < node->input_count; k++)
            if (!onxi_dict_at(&needed, onx_view(node->input[k]), 1, NULL))
                return ONX_E_MEMORY;
        ONX_TRY(onxi_grad_captured(g, node, &needed));
    }
    return ONX_OK;
}

onx_status onxi_grad_lower_graph(onxi_grad *g, onxi_scope *scope, onx_graph *graph, const onx_bytes *ys,
                                 uint32_t y_count, const onx_bytes *xs, uint32_t x_count, bool *changed)
{
    onxi_node_list needed = { 0 };
    ONX_TRY(onxi_grad_needed(g, graph->node, graph->node_count, ys, y_count, xs, x_count, &needed));
    const onxi_grad_task task = { .scope = scope,
                                  .nodes = needed.items,
                                  .count = needed.count,
                                  .ys = ys,
                                  .y_count = y_count,
                                  .xs = xs,
                                  .x_count = x_count };
    bool *between = ONXI_ARRAY(g->scratch, bool, (size_t)needed.count + 1), any = false;
    onxi_node_list list = { 0 };
    if (!between)
        return ONX_E_MEMORY;
    ONX_TRY(find_between(g, &task, between));
    for (uint32_t i = 0; i < needed.count; i++) {
        onxi_grad_node n;
        const bool lowers = between[i] && lowering_of(g, scope, needed.items[i], &n);
        if (between[i] && !lowers)
            ONX_TRY(lower_subgraphs(g, scope, needed.items[i], changed));
        between[i] = lowers;
        any |= lowers;
    }
    if (!any)
        return ONX_OK;
    for (uint32_t i = 0, k = 0; i < graph->node_count; i++) {
        onx_node *node = graph->node[i];
        onxi_grad_node n;
        const bool is_needed = k < needed.count && needed.items[k] == node;
        k += is_needed;
        if (!is_needed || !between[k - 1]) {
            ONX_TRY(onxi_node_list_add(g->scratch, &list, node));
            continue;
        }
        const uint32_t first = list.count;
        const onxi_grad_rule *rules = lowering_of(g, scope, node, &n);
        if (!rules)
            return ONX_E_MEMORY; /* it did, before */
        ONX_TRY(onxi_grad_lower(&n, rules, &list));
        for (uint32_t m = first; m < list.count; m++)
            ONX_TRY(onxi_grad_note(g, list.items[m]));
    }
    *changed = true;
    return onxi_node_list_keep(g->arena, &list, &graph->node, &graph->node_count);
}
