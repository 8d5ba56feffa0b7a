/* transform_grad_control.c - gradients of operators with subgraphs. The gradient's subgraph recomputes the values of
 * the original one, and then differentiates its nodes; loop-carried values are kept for each iteration. */
#include "transform/transform_grad.h"

#define MAKE(name) onx_status onxi_grad_make_##name(onxi_grad_node *n)

static onx_graph *subgraph_of(const onx_node *node, const char *name)
{
    const onx_attribute *a = onx_node_attribute(node, name);
    return a && a->slot == ONX_SLOT_G ? a->g : NULL;
}

/* ---- a subgraph under construction ---- */

typedef struct body {
    onxi_grad *g;
    onxi_grad_node *n; /* for texts */
    onx_graph *from, *graph;
    onxi_scope scope; /* of `from` */
    onxi_grad_out out;
    onx_bytes *outputs; /* names of its outputs */
    uint32_t output_count, output_room;
} body;

static bool is_random(onxi_grad *g, const onx_graph *graph, uint32_t depth);

/* Is the result of a node random? For Dropout only in training mode. */
static bool draws(onxi_grad *g, const onx_node *node, uint32_t depth)
{
    const onxi_bound *bound = onxi_bind(&g->binder, node);
    bool graphs = false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g) {
            graphs = true;
            if (is_random(g, node->attribute[i]->g, depth + 1))
                return true;
        }
    if (graphs || !bound || !bound->schema || !(bound->schema->flags & ONXI_OP_NONDETERMINISTIC))
        return false;
    return bound->op != ONXI_ID_Dropout || (node->input_count > 2 && onx_view(node->input[2]).len);
}

static bool is_random(onxi_grad *g, const onx_graph *graph, uint32_t depth)
{
    for (uint32_t i = 0; i < graph->node_count && depth < g->limit; i++)
        if (draws(g, graph->node[i], depth))
            return true;
    return false;
}

bool onxi_grad_draws(onxi_grad *g, const onx_node *node)
{
    return draws(g, node, 0);
}

static onx_status open_body(onxi_grad_node *n, onx_graph *from, const char *name, body *b)
{
    onxi_grad *g = n->g;
    *b = (body){ .g = g, .from = from, .graph = onx_message_new(g->arena, ONX_KIND_GRAPH) };
    b->scope = (onxi_scope){ .parent = n->s.scope, .graph = from, .nodes = from->node, .node_count = from->node_count };
    b->n = ONXI_NEW(g->scratch, onxi_grad_node);
    if (!b->graph || !b->n || onx_arena_keep(g->arena, onx_str_of(name), &b->graph->name) != ONX_OK)
        return ONX_E_MEMORY;
    b->graph->has |= onx_graph_has_name;
    b->graph->initializer = from->initializer;
    b->graph->initializer_count = from->initializer_count;
    b->graph->sparse_initializer = from->sparse_initializer;
    b->graph->sparse_initializer_count = from->sparse_initializer_count;
    ONX_TRY(onxi_grad_out_open(g, &b->out));
    *b->n = *n;
    b->n->out = &b->out;
    b->n->s.scope = &b->scope;
    if (is_random(g, from, 0))
        return onxi_grad_fail(g, n->s.node, "its subgraph %.*s draws random numbers, which cannot be reproduced",
                              ONX_ARG(onx_view(from->name)));
    return ++g->depth > g->limit ? onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                                             "subgraphs are nested more than %u deep (limit depth)", g->limit)
                                 : ONX_OK;
}

/* Copies the nodes of the original, to recompute its values. */
static onx_status add_forward(body *b)
{
    for (uint32_t i = 0; i < b->from->node_count; i++) {
        onx_node *copy;
        ONX_TRY(onxi_grad_copy(b->g, b->from->node[i], &copy));
        ONX_TRY(onxi_grad_push(b->g, &b->out, copy));
    }
    return ONX_OK;
}

static onx_status put_text(body *b, const char *inputs, const char *text, const onx_bytes *in, uint32_t in_count,
                           onx_bytes *out, const char *part)
{
    ONX_TRY(onxi_grad_name(b->g, b->n->s.node->output[0], part, out));
    ONX_TRY(onxi_grad_put(b->n, inputs, "out", text, in, in_count, out, 1));
    *out = onxi_grad_resolve(&b->out, *out);
    return ONX_OK;
}

static onx_status add_input(body *b, onx_bytes name, int dtype, int rank)
{
    onx_value_info *info = ONX_ADD(b->g->arena, b->graph, input, VALUE_INFO);
    if (!info)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, name, name);
    if (dtype > 0 && dtype < ONX_DTYPE_COUNT) {
        onx_type *type = onx_type_new_tensor(b->g->arena, (onx_dtype)dtype, NULL, rank);
        if (!type)
            return ONX_E_MEMORY;
        ONX_SET(value_info, info, type, type);
    }
    return ONX_OK;
}

/* Each output needs a name of its own: the value may be an input, or be returned twice. */
static onx_status add_output(body *b, onx_bytes value, int dtype)
{
    onxi_grad *g = b->g;
    onx_bytes name;
    onx_value_info *info = ONX_ADD(g->arena, b->graph, output, VALUE_INFO);
    if (!info)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_grad_name(g, value, "out", &name));
    ONX_TRY(onxi_grad_add(g, &b->out, "Identity", value, name));
    ONX_SET(value_info, info, name, name);
    if (dtype > 0 && dtype < ONX_DTYPE_COUNT) {
        onx_type *type = onx_type_new_tensor(g->arena, (onx_dtype)dtype, NULL, -1);
        if (!type)
            return ONX_E_MEMORY;
        ONX_SET(value_info, info, type, type);
    }
    if (!ONXI_GROW_IN(g->scratch, b->outputs, b->output_room, (uint64_t)b->output_count + 1))
        return ONX_E_MEMORY;
    b->outputs[b->output_count++] = name;
    return ONX_OK;
}

static onx_status close_body(body *b)
{
    onxi_node_list *list = &b->out.nodes;
    onxi_node_list before = { 0 };
    ONX_TRY(onxi_grad_prune(b->g, list->items, &list->count, b->outputs, b->output_count));
    ONX_TRY(onxi_grad_shapes_early(b->g, &before, list));
    ONX_TRY(onxi_node_list_keep(b->g->arena, list, &b->graph->node, &b->graph->node_count));
    b->g->depth--;
    return ONX_OK;
}

static int dtype_of(const onxi_grad_node *n, onxi_scope *scope, onx_bytes name)
{
    return onxi_type_dtype(onxi_values_type(&n->g->values, scope, onx_view(name)));
}

/* The gradient, or zeros of the value's shape if no gradient flows to it. */
static onx_status or_zeros(body *b, onx_bytes *gradient, onx_bytes value)
{
    if (onx_view(*gradient).len)
        return ONX_OK;
    return put_text(b, "x", "out = grad.Zeros (x)", &value, 1, gradient, "zeros");
}

/* Differentiates the nodes that are in the body so far. */
static onx_status walk_back(body *b, const onx_bytes *ys, const onx_bytes *dys, uint32_t y_count, const onx_bytes *xs,
                            onx_bytes *dxs, uint32_t x_count)
{
    const uint32_t count = b->out.nodes.count;
    onx_node **nodes = ONXI_ARRAY(b->g->scratch, onx_node *, (size_t)count + 1); /* the list grows during the loop */
    if (!nodes)
        return ONX_E_MEMORY;
    if (count)
        memcpy(nodes, b->out.nodes.items, count * sizeof *nodes);
    const onxi_grad_task task = { .scope = &b->scope,
                                  .nodes = nodes,
                                  .count = count,
                                  .ys = ys,
                                  .dys = dys,
                                  .y_count = y_count,
                                  .xs = xs,
                                  .dxs = dxs,
                                  .x_count = x_count };
    return onxi_grad_walk(b->g, &task, &b->out);
}

/* ---- If ---- */

static onx_status derive_branch(onxi_grad_node *n, const char *name, onx_graph **out)
{
    onxi_grad *g = n->g;
    onx_graph *from = subgraph_of(n->s.node, name);
    body b;
    if (!from)
        return onxi_grad_fail(g, n->s.node, "it has no %s", name);
    ONX_TRY(open_body(n, from, name, &b));
    ONX_TRY(add_forward(&b));
    const uint32_t count = from->output_count < n->dy_count ? from->output_count : n->dy_count;
    onx_bytes *ys = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)count + 1);
    onx_bytes *dxs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)n->captured_count + 1);
    if (!ys || !dxs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        ys[i] = from->output[i]->name;
    ONX_TRY(walk_back(&b, ys, n->dy, count, n->captured, dxs, n->captured_count));
    for (uint32_t i = 0; i < n->captured_count; i++) {
        ONX_TRY(or_zeros(&b, &dxs[i], n->captured[i]));
        ONX_TRY(add_output(&b, dxs[i], dtype_of(n, n->s.scope, n->captured[i])));
    }
    ONX_TRY(close_body(&b));
    *out = b.graph;
    return ONX_OK;
}

MAKE(if)
{
    onxi_grad *g = n->g;
    onx_graph *yes, *no;
    if (!n->captured_count)
        return ONX_OK;
    ONX_TRY(derive_branch(n, "then_branch", &yes));
    ONX_TRY(derive_branch(n, "else_branch", &no));
    for (uint32_t i = 0; i < n->captured_count; i++)
        ONX_TRY(onxi_grad_name(g, n->captured[i], "grad", &n->captured_dx[i]));
    onx_node *node = onxi_grad_node_new(g, "If", n->s.node->input, 1, n->captured_dx, n->captured_count);
    if (!node || !onx_node_add_graph(g->arena, node, "then_branch", yes) ||
        !onx_node_add_graph(g->arena, node, "else_branch", no))
        return ONX_E_MEMORY;
    return onxi_grad_push(g, n->out, node);
}

/* ---- Loop and Scan ---- */

/* A backward loop: its carried values, the gradients of captured values that it accumulates, and the values kept for
 * each iteration. */
typedef struct loop {
    onxi_grad_node *n;
    onx_node *node;
    onx_graph *from;
    uint32_t first, states, scans; /* operand of the first state; number of states; number of scan outputs of the
                                    * original */
    uint32_t body_first;           /* index of the body input that is the first state */
    onx_bytes *kept;               /* per state: its values before each iteration, stacked */
    bool *real;                    /* per state: differentiable */
    body b;
    onx_bytes *dstate, *dcaptured; /* inputs of the body: gradients so far */
    onx_bytes *dxs;                /* the computed gradients */
} loop;

/* Makes the original loop also return its states before each iteration. */
static onx_status keep_states(loop *l)
{
    onxi_grad *g = l->n->g;
    onx_node *node = l->node;
    const uint32_t outputs = l->from->output_count - (l->body_first == 2);
    onx_bytes *names = onxi_arena_array(g->arena, (size_t)onxi_list_room((uint64_t)outputs + l->states), sizeof *names);
    onx_node **nodes =
        onxi_arena_array(g->arena, (size_t)onxi_list_room((uint64_t)l->from->node_count + l->states), sizeof *nodes);
    onx_value_info **infos =
        onxi_arena_array(g->arena, (size_t)onxi_list_room((uint64_t)l->from->output_count + l->states), sizeof *infos);
    if (!names || !nodes || !infos)
        return ONX_E_MEMORY;
    memset(names, 0, outputs * sizeof *names);
    memcpy(names, node->output, (node->output_count < outputs ? node->output_count : outputs) * sizeof *names);
    if (l->from->node_count)
        memcpy(nodes, l->from->node, l->from->node_count * sizeof *nodes);
    memcpy(infos, l->from->output, l->from->output_count * sizeof *infos);
    for (uint32_t i = 0; i < l->states; i++) {
        const onx_value_info *state = l->from->input[l->body_first + i];
        onx_bytes copy;
        ONX_TRY(onxi_grad_name(g, state->name, "before", &copy));
        ONX_TRY(onxi_grad_name(g, state->name, "kept", &l->kept[i]));
        nodes[l->from->node_count + i] = onxi_grad_node_new(g, "Identity", &state->name, 1, &copy, 1);
        infos[l->from->output_count + i] = onx_message_new(g->arena, ONX_KIND_VALUE_INFO);
        if (!nodes[l->from->node_count + i] || !infos[l->from->output_count + i])
            return ONX_E_MEMORY;
        onx_value_info *info = infos[l->from->output_count + i];
        ONX_SET(value_info, info, name, copy);
        if (state->type)
            ONX_SET(value_info, info, type, state->type);
        names[outputs + i] = l->kept[i];
    }
    node->output = names;
    node->output_count = outputs + l->states;
    l->from->node = nodes;
    l->from->output = infos;
    l->from->node_count += l->states;
    l->from->output_count += l->states;
    return ONX_OK;
}

/* Gradients of the states, then of captured values, are inputs of the new body. */
static onx_status add_gradients(loop *l)
{
    onxi_grad *g = l->n->g;
    for (uint32_t i = 0; i < l->states; i++)
        if (l->real[i]) {
            const onx_bytes state = l->from->input[l->body_first + i]->name;
            ONX_TRY(onxi_grad_name(g, state, "grad_in", &l->dstate[i]));
            ONX_TRY(add_input(&l->b, l->dstate[i], dtype_of(l->n, &l->b.scope, state), -1));
        }
    for (uint32_t i = 0; i < l->n->captured_count; i++) {
        ONX_TRY(onxi_grad_name(g, l->n->captured[i], "grad_in", &l->dcaptured[i]));
        ONX_TRY(add_input(&l->b, l->dcaptured[i], dtype_of(l->n, l->n->s.scope, l->n->captured[i]), -1));
    }
    return ONX_OK;
}

/* Differentiates one iteration. `dscan`: gradients of its scan outputs, in the body. Further xs, beyond states and
 * captured values: inputs of the body whose gradients are needed. */
static onx_status derive_iteration(loop *l, const onx_bytes *dscan, const onx_bytes *more, uint32_t more_count)
{
    onxi_grad *g = l->n->g;
    const uint32_t outputs = l->states + l->scans, first = l->body_first == 2, captured = l->n->captured_count;
    onx_bytes *ys = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)outputs + 1),
              *dys = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)outputs + 1);
    onx_bytes *xs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)l->states + captured + more_count + 1);
    l->dxs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)l->states + captured + more_count + 1);
    if (!ys || !dys || !xs || !l->dxs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < outputs; i++) {
        ys[i] = l->from->output[first + i]->name;
        dys[i] = i < l->states ? l->dstate[i] : dscan[i - l->states];
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->states; i++)
        if (l->real[i])
            xs[count++] = l->from->input[l->body_first + i]->name;
    for (uint32_t i = 0; i < captured; i++)
        xs[count++] = l->n->captured[i];
    for (uint32_t i = 0; i < more_count; i++)
        xs[count++] = more[i];
    return walk_back(&l->b, ys, dys, outputs, xs, l->dxs, count);
}

/* The outputs of the new body: the gradients after the iteration. */
static onx_status add_results(loop *l, const onx_bytes *more, uint32_t more_count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < l->states; i++)
        if (l->real[i]) {
            const onx_bytes state = l->from->input[l->body_first + i]->name;
            ONX_TRY(or_zeros(&l->b, &l->dxs[at], state));
            ONX_TRY(add_output(&l->b, l->dxs[at++], dtype_of(l->n, &l->b.scope, state)));
        }
    for (uint32_t i = 0; i < l->n->captured_count; i++, at++) {
        onx_bytes sum = l->dcaptured[i];
        const onx_bytes both[2] = { l->dcaptured[i], l->dxs[at] };
        if (onx_view(l->dxs[at]).len)
            ONX_TRY(put_text(&l->b, "a, b", "out = Add (a, b)", both, 2, &sum, "sum"));
        ONX_TRY(add_output(&l->b, sum, dtype_of(l->n, l->n->s.scope, l->n->captured[i])));
    }
    for (uint32_t i = 0; i < more_count; i++, at++) {
        ONX_TRY(or_zeros(&l->b, &l->dxs[at], more[i]));
        ONX_TRY(add_output(&l->b, l->dxs[at], dtype_of(l->n, &l->b.scope, more[i])));
    }
    return ONX_OK;
}

static onx_status zeros_like(onxi_grad_node *n, onx_bytes value, onx_bytes *out)
{
    ONX_TRY(onxi_grad_name(n->g, value, "zeros", out));
    ONX_TRY(onxi_grad_put(n, "x", "out", "out = grad.Zeros (x)", &value, 1, out, 1));
    *out = onxi_grad_resolve(n->out, *out);
    return ONX_OK;
}

static onx_bytes arriving(const onxi_grad_node *n, uint32_t output)
{
    return output < n->dy_count ? n->dy[output] : (onx_bytes){ 0 };
}

/* The operands of the backward loop, and names for its outputs: the gradients of states and captured values. */
static onx_status add_operands(loop *l, onx_bytes *in, uint32_t *in_count, onx_bytes *out, uint32_t *out_count)
{
    onxi_grad_node *n = l->n;
    for (uint32_t i = 0; i < l->states; i++) {
        if (!l->real[i])
            continue;
        const uint32_t operand = l->first + i;
        onx_bytes from = arriving(n, i);
        if (!onx_view(from).len)
            ONX_TRY(zeros_like(n, l->node->input[operand], &from));
        in[(*in_count)++] = from;
        onx_bytes name = n->dx[operand];
        if (!onx_view(name).len)
            ONX_TRY(onxi_grad_name(n->g, l->node->input[operand], "grad_unused", &name));
        out[(*out_count)++] = name;
    }
    for (uint32_t i = 0; i < n->captured_count; i++) {
        ONX_TRY(zeros_like(n, n->captured[i], &in[(*in_count)++]));
        ONX_TRY(onxi_grad_name(n->g, n->captured[i], "grad", &n->captured_dx[i]));
        out[(*out_count)++] = n->captured_dx[i];
    }
    return ONX_OK;
}

static onx_status open_loop(onxi_grad_node *n, uint32_t body_first, uint32_t first, uint32_t states, uint32_t scans,
                            loop *l)
{
    onxi_grad *g = n->g;
    *l = (loop){ .n = n,
                 .node = (onx_node *)(uintptr_t)n->s.node,
                 .from = subgraph_of(n->s.node, "body"),
                 .first = first,
                 .body_first = body_first,
                 .states = states,
                 .scans = scans };
    l->kept = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)states + 1);
    l->real = ONXI_ARRAY(g->scratch, bool, (size_t)states + 1);
    l->dstate = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)states + 1);
    l->dcaptured = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)n->captured_count + 1);
    if (!l->kept || !l->real || !l->dstate || !l->dcaptured)
        return ONX_E_MEMORY;
    const onxi_scope scope = {
        .parent = n->s.scope, .graph = l->from, .nodes = l->from->node, .node_count = l->from->node_count
    };
    for (uint32_t i = 0; i < states; i++) {
        const onx_value_info *state = l->from->input[body_first + i];
        l->real[i] = onxi_grad_is_real(g, &scope, onx_view(state->name));
        const onx_type *type = onxi_values_type(&g->values, &scope, onx_view(state->name));
        if (type && !ONX_HAS(type, type, tensor_type))
            return onxi_grad_fail(g, n->s.node, "its loop-carried value %.*s is not a tensor",
                                  ONX_ARG(onx_view(state->name)));
    }
    ONX_TRY(open_body(n, l->from, "backward", &l->b));
    ONX_TRY(add_forward(&l->b));
    return keep_states(l);
}

/* ---- Loop ---- */

/* The number of iterations: the length of the loop's scan outputs. */
static onx_status count_iterations(loop *l, onx_bytes *count, onx_bytes *last)
{
    onxi_grad_node *n = l->n;
    onx_bytes from = l->states ? l->kept[0] : (onx_bytes){ 0 };
    for (uint32_t i = 0; !onx_view(from).len && i < l->scans; i++)
        from = l->node->output[l->states + i];
    ONX_TRY(onxi_grad_name(n->g, l->node->output[0], "iterations", count));
    ONX_TRY(onxi_grad_put(n, "x", "out",
                          "z = Constant <value_ints = [0]> () s = Shape <start = 0, end = 1> (x) out = Squeeze (s, z)",
                          &from, 1, count, 1));
    *count = onxi_grad_resolve(n->out, *count);
    ONX_TRY(onxi_grad_name(n->g, l->node->output[0], "last", last));
    ONX_TRY(onxi_grad_put(n, "x", "out", "o = Constant <value_int = 1> () out = Sub (x, o)", count, 1, last, 1));
    *last = onxi_grad_resolve(n->out, *last);
    return ONX_OK;
}

/* Restores the values at the start of the iteration, under their names in the body, before its nodes. */
static onx_status restore(loop *l, onx_bytes last, onx_bytes step, onx_bytes *at_out)
{
    onxi_grad *g = l->n->g;
    body *b = &l->b;
    const onx_bytes both[2] = { last, step };
    onxi_node_list forward = b->out.nodes;
    const int rank = onxi_loop_rank(b->from, 0), go_rank = onxi_loop_rank(b->from, 1);
    onx_bytes at = b->from->input[0]->name;
    b->out.nodes = (onxi_node_list){ 0 };
    if (rank > 0) /* `at` stays a scalar; the body gets the number in its rank */
        ONX_TRY(onxi_grad_name(g, b->from->input[0]->name, "scalar", &at));
    ONX_TRY(onxi_grad_push(g, &b->out, onxi_grad_node_new(g, "Sub", both, 2, &at, 1)));
    if (rank > 0) {
        onx_bytes x = at;
        for (int i = 0; i < rank; i++)
            ONX_TRY(put_text(b, "x", "z = Constant <value_ints = [0]> () out = Unsqueeze (x, z)", &x, 1, &x, "ranked"));
        ONX_TRY(onxi_grad_push(g, &b->out, onxi_grad_node_new(g, "Identity", &x, 1, &b->from->input[0]->name, 1)));
    }
    onx_node *go = onxi_grad_node_new(g, "Constant", NULL, 0, &b->from->input[1]->name, 1);
    const bool yes = true;
    int64_t ones[ONX_RANK_MAX];
    for (uint32_t i = 0; i < ONX_RANK_MAX; i++)
        ones[i] = 1;
    onx_tensor *truth = onx_tensor_new(g->arena, ONX_BOOL, ones, go_rank < 0 ? 0 : (uint32_t)go_rank, &yes, NULL);
    if (!go || !truth || !onx_node_add_tensor(g->arena, go, "value", truth))
        return ONX_E_MEMORY;
    ONX_TRY(onxi_grad_push(g, &b->out, go));
    for (uint32_t i = 0; i < l->states; i++) {
        const onx_bytes in[2] = { l->kept[i], at };
        ONX_TRY(onxi_grad_push(g, &b->out, onxi_grad_node_new(g, "Gather", in, 2, &b->from->input[2 + i]->name, 1)));
    }
    for (uint32_t i = 0; i < forward.count; i++)
        ONX_TRY(onxi_grad_push(g, &b->out, forward.items[i]));
    *at_out = at;
    return ONX_OK;
}

MAKE(loop)
{
    onxi_grad *g = n->g;
    onx_graph *from = subgraph_of(n->s.node, "body");
    loop l;
    if (!from || from->input_count < 2 || n->s.node->input_count < from->input_count ||
        from->output_count + 1 < from->input_count)
        return onxi_grad_fail(g, n->s.node, "its body does not have the inputs and outputs of a Loop");
    const uint32_t states = from->input_count - 2, scans = from->output_count - 1 - states;
    ONX_TRY(open_loop(n, 2, 2, states, scans, &l));
    onx_bytes count, last, step, go, at = { 0 }, *dscan = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)scans + 1);
    if (!dscan)
        return ONX_E_MEMORY;
    ONX_TRY(count_iterations(&l, &count, &last));
    ONX_TRY(onxi_grad_name(g, from->input[0]->name, "back", &step));
    ONX_TRY(onxi_grad_name(g, from->input[1]->name, "back", &go));
    ONX_TRY(add_input(&l.b, step, ONX_INT64, 0));
    ONX_TRY(add_input(&l.b, go, ONX_BOOL, 0));
    ONX_TRY(add_gradients(&l));
    ONX_TRY(restore(&l, last, step, &at));
    for (uint32_t i = 0; i < scans; i++) {
        const onx_bytes in[2] = { arriving(n, states + i), at };
        if (!onx_view(in[0]).len)
            continue;
        ONX_TRY(onxi_grad_name(g, in[0], "at", &dscan[i]));
        ONX_TRY(onxi_grad_push(g, &l.b.out, onxi_grad_node_new(g, "Gather", in, 2, &dscan[i], 1)));
    }
    ONX_TRY(derive_iteration(&l, dscan, NULL, 0));
    ONX_TRY(add_output(&l.b, go, ONX_BOOL));
    ONX_TRY(add_results(&l, NULL, 0));
    ONX_TRY(close_body(&l.b));
    onx_bytes *in = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)states + n->captured_count + 3);
    onx_bytes *out = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)states + n->captured_count + 1);
    if (!in || !out)
        return ONX_E_MEMORY;
    uint32_t in_count = 2, out_count = 0;
    in[0] = count;
    ONX_TRY(add_operands(&l, in, &in_count, out, &out_count));
    onx_node *node = onxi_grad_node_new(g, "Loop", in, in_count, out, out_count);
    if (!node || !onx_node_add_graph(g->arena, node, "body", l.b.graph))
        return ONX_E_MEMORY;
    return onxi_grad_push(g, n->out, node);
}

/* ---- Scan ---- */

static int64_t listed(const onx_node *node, const char *name, uint32_t i)
{
    uint32_t count;
    const int64_t *list = onxi_bind_ints(NULL, node, name, &count); /* shorter, or absent: forward, along axis 0 */
    return i < count ? list[i] : 0;
}

/* An attribute of the original with an entry per scan output: entries for the kept states are appended. */
static onx_status lengthen(onxi_grad *g, onx_node *node, const char *name, uint32_t scans, uint32_t states)
{
    onx_attribute *a = onx_node_attribute(node, name);
    if (!a || a->slot != ONX_SLOT_INTS || a->count < scans)
        return ONX_OK;
    int64_t *list = onxi_arena_array(g->arena, (size_t)onxi_list_room((uint64_t)a->count + states), sizeof *list);
    if (!list)
        return ONX_E_MEMORY;
    memset(list, 0, ((size_t)a->count + states) * sizeof *list);
    onxi_copy_dims(list, a->ints, a->count);
    a->ints = list;
    a->count += states;
    return ONX_OK;
}

typedef struct scan_lists {
    int64_t *axes, *directions; /* of scan inputs */
    int64_t *out_axes, *out_directions;
    uint32_t count, outs;
} scan_lists;

MAKE(scan)
{
    onxi_grad *g = n->g;
    onx_graph *from = subgraph_of(n->s.node, "body");
    onx_node *original = (onx_node *)(uintptr_t)n->s.node;
    int64_t inputs = 0;
    loop l;
    if (!from || !onxi_subject_int(&n->s, "num_scan_inputs", &inputs) || inputs < 1 || inputs > from->input_count ||
        from->input_count > n->s.node->input_count || from->output_count < from->input_count - (uint32_t)inputs)
        return onxi_grad_fail(g, n->s.node, "its body does not have the inputs and outputs of a Scan");
    const uint32_t states = from->input_count - (uint32_t)inputs, scans = from->output_count - states;
    ONX_TRY(open_loop(n, 0, 0, states, scans, &l));
    ONX_TRY(lengthen(g, original, "scan_output_axes", scans, states));
    ONX_TRY(lengthen(g, original, "scan_output_directions", scans, states));
    const size_t most = (size_t)from->input_count + from->output_count + n->captured_count + states + 1;
    scan_lists s = { ONXI_ARRAY(g->scratch, int64_t, most),
                     ONXI_ARRAY(g->scratch, int64_t, most),
                     ONXI_ARRAY(g->scratch, int64_t, most),
                     ONXI_ARRAY(g->scratch, int64_t, most),
                     0,
                     0 };
    onx_bytes *in = ONXI_ARRAY(g->scratch, onx_bytes, most), *out = ONXI_ARRAY(g->scratch, onx_bytes, most),
              *dscan = ONXI_ARRAY(g->scratch, onx_bytes, most), *more = ONXI_ARRAY(g->scratch, onx_bytes, most);
    if (!s.axes || !s.directions || !s.out_axes || !s.out_directions || !in || !out || !dscan || !more)
        return ONX_E_MEMORY;
    uint32_t in_count = 0, out_count = 0, more_count = 0;
    ONX_TRY(add_gradients(&l));
    ONX_TRY(add_operands(&l, in, &in_count, out, &out_count));
    for (uint32_t i = 0; i < (uint32_t)inputs; i++) { /* its scan inputs */
        const onx_value_info *info = from->input[states + i];
        ONX_TRY(add_input(&l.b, info->name, dtype_of(n, &l.b.scope, info->name), -1));
        in[in_count++] = original->input[states + i];
        s.axes[s.count] = listed(original, "scan_input_axes", i);
        s.directions[s.count++] = !listed(original, "scan_input_directions", i);
        if (!onx_view(n->dx[states + i]).len)
            continue;
        s.out_axes[s.outs] = s.axes[s.count - 1];
        s.out_directions[s.outs++] = s.directions[s.count - 1];
        more[more_count++] = info->name;
        out[out_count++] = n->dx[states + i];
    }
    for (uint32_t i = 0; i < states; i++) { /* its states before each iteration */
        const onx_value_info *info = from->input[i];
        ONX_TRY(add_input(&l.b, info->name, dtype_of(n, &l.b.scope, info->name), -1));
        in[in_count++] = l.kept[i];
        s.directions[s.count++] = 1;
    }
    for (uint32_t i = 0; i < scans; i++) { /* gradients of its scan outputs */
        const onx_bytes dy = arriving(n, states + i);
        if (!onx_view(dy).len)
            continue;
        ONX_TRY(onxi_grad_name(g, dy, "at", &dscan[i]));
        ONX_TRY(add_input(&l.b, dscan[i], dtype_of(n, &l.b.scope, from->output[states + i]->name), -1));
        in[in_count++] = dy;
        s.axes[s.count] = listed(original, "scan_output_axes", i);
        s.directions[s.count++] = !listed(original, "scan_output_directions", i);
    }
    ONX_TRY(derive_iteration(&l, dscan, more, more_count));
    ONX_TRY(add_results(&l, more, more_count));
    ONX_TRY(close_body(&l.b));
    onx_node *node = onxi_grad_node_new(g, "Scan", in, in_count, out, out_count);
    if (!node || !onx_node_add_graph(g->arena, node, "body", l.b.graph) ||
        !onx_node_add_int(g->arena, node, "num_scan_inputs", s.count) ||
        !onx_node_add_ints(g->arena, node, "scan_input_axes", s.axes, s.count) ||
        !onx_node_add_ints(g->arena, node, "scan_input_directions", s.directions, s.count) ||
        (s.outs && (!onx_node_add_ints(g->arena, node, "scan_output_axes", s.out_axes, s.outs) ||
                    !onx_node_add_ints(g->arena, node, "scan_output_directions", s.out_directions, s.outs))))
        return ONX_E_MEMORY;
    return onxi_grad_push(g, n->out, node);
}

/* ---- SequenceMap ---- */

/* The backward body: takes the inputs of the body and the gradients of its outputs; returns the gradients of inputs and
 * captured values. `xs` are those whose gradients are needed. */
static onx_status derive_element(onxi_grad_node *n, body *b, const onx_bytes *xs, uint32_t x_count, onx_bytes *in,
                                 uint32_t *in_count)
{
    const onx_graph *from = b->from;
    onx_bytes *ys = ONXI_ARRAY(b->g->scratch, onx_bytes, (size_t)from->output_count + 1),
              *dys = ONXI_ARRAY(b->g->scratch, onx_bytes, (size_t)from->output_count + 1),
              *dxs = ONXI_ARRAY(b->g->scratch, onx_bytes, (size_t)x_count + 1);
    uint32_t count = 0;
    if (!ys || !dys || !dxs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < from->input_count; i++)
        ONX_TRY(add_input(b, from->input[i]->name, dtype_of(n, &b->scope, from->input[i]->name), -1));
    for (uint32_t i = 0; i < from->output_count; i++) {
        const onx_bytes dy = arriving(n, i), y = from->output[i]->name;
        if (!onx_view(dy).len)
            continue;
        ys[count] = y;
        ONX_TRY(onxi_grad_name(b->g, y, "grad_in", &dys[count]));
        ONX_TRY(add_input(b, dys[count++], dtype_of(n, n->s.scope, n->s.node->output[i]), -1));
        in[(*in_count)++] = dy;
    }
    ONX_TRY(add_forward(b));
    ONX_TRY(walk_back(b, ys, dys, count, xs, dxs, x_count));
    for (uint32_t i = 0; i < x_count; i++) {
        ONX_TRY(or_zeros(b, &dxs[i], xs[i]));
        ONX_TRY(add_output(b, dxs[i], dtype_of(n, &b->scope, xs[i])));
    }
    return close_body(b);
}

/* Sums the gradients of all elements with respect to one tensor; zeros are added so that the sum is never empty. */
static onx_status add_up(onxi_grad_node *n, onx_bytes each, onx_bytes of, onx_bytes sum)
{
    const onx_bytes in[2] = { each, of };
    return onxi_grad_put(
        n, "s, x", "out",
        "z = grad.Zeros (x)  t = SequenceInsert (s, z)  a = ConcatFromSequence <axis = 0, new_axis = 1> (t)"
        "  first = Constant <value_ints = [0]> ()  out = ReduceSum <keepdims = 0> (a, first)",
        in, 2, &sum, 1);
}

static bool is_tensor(const onxi_grad_node *n, uint32_t input)
{
    const onx_type *type = onxi_values_type(&n->g->values, n->s.scope, onx_view(n->s.node->input[input]));
    return type && ONX_HAS(type, type, tensor_type);
}

/* The gradient of a sequence operand is a sequence, element by element; a tensor operand or captured value is used by
 * each element. */
MAKE(sequence_map)
{
    onxi_grad *g = n->g;
    const onx_node *node = n->s.node;
    onx_graph *from = subgraph_of(node, "body");
    const uint32_t all = node->input_count + n->captured_count;
    body b;
    if (!from || from->input_count != node->input_count || from->output_count < n->dy_count)
        return onxi_grad_fail(g, node, "its body does not have an input for each input, and an output for each output");
    onx_bytes *xs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)all + 1);
    onx_bytes *out = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)all + 1);
    onx_bytes *in = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)node->input_count + from->output_count + 1);
    uint32_t in_count = 0, count = 0;
    if (!xs || !out || !in)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->input_count; i++) {
        in[in_count++] = node->input[i];
        if (onx_view(n->dx[i]).len)
            xs[count++] = from->input[i]->name;
    }
    for (uint32_t i = 0; i < n->captured_count; i++)
        xs[count++] = n->captured[i];
    if (!count)
        return ONX_OK;
    ONX_TRY(open_body(n, from, "backward", &b));
    ONX_TRY(derive_element(n, &b, xs, count, in, &in_count));
    count = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (onx_view(n->dx[i]).len) {
            out[count] = n->dx[i];
            if (is_tensor(n, i))
                ONX_TRY(onxi_grad_name(g, node->input[i], "grad_each", &out[count]));
            count++;
        }
    for (uint32_t i = 0; i < n->captured_count; i++) {
        ONX_TRY(onxi_grad_name(g, n->captured[i], "grad", &n->captured_dx[i]));
        ONX_TRY(onxi_grad_name(g, n->captured[i], "grad_each", &out[count++]));
    }
    onx_node *back = onxi_grad_node_new(g, "SequenceMap", in, in_count, out, count);
    if (!back || !onx_node_add_graph(g->arena, back, "body", b.graph))
        return ONX_E_MEMORY;
    ONX_TRY(onxi_grad_push(g, n->out, back));
    count = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (onx_view(n->dx[i]).len) {
            if (is_tensor(n, i))
                ONX_TRY(add_up(n, out[count], node->input[i], n->dx[i]));
            count++;
        }
    for (uint32_t i = 0; i < n->captured_count; i++)
        ONX_TRY(add_up(n, out[count++], n->captured[i], n->captured_dx[i]));
    return ONX_OK;
}
