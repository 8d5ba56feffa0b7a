/* transform_grad_shapes.c - the backward pass often needs only the shape of a value. Nodes that compute the shape are
 * moved to directly after the producer of the value, so that the value itself need not be kept. */
#include "transform/transform_grad.h"

typedef struct mover {
    onxi_grad *g;
    onxi_dict made;   /* values: places of the nodes that make them, in both lists as one */
    onx_node **moved; /* nodes that are moved, */
    uint32_t *next;   /* 1 + index of the next one after the same node; 0: none */
    uint32_t count, moved_room, next_room;
    uint32_t *first, *last; /* per position: 1 + index of the first and last one after it; 0: none */
} mover;

static bool tells_shape(const onx_node *node)
{
    const onxi_operator *op = onxi_operator_find(onx_view(node->domain), onx_view(node->op_type));
    return onxi_operator_is(onxi_operator_id(op), ONXI_TRAIT_SHAPE);
}

bool onxi_grad_is_about_shape(const onx_node *node)
{
    if (node->input_count != 1 || node->output_count != 1)
        return false;
    if (tells_shape(node))
        return true;
    const onx_attribute *body = onxi_node_is(node, ONXI_ID_SequenceMap) ? onx_node_attribute(node, "body") : NULL;
    return body && body->slot == ONX_SLOT_G && body->g && body->g->node_count == 1 && body->g->input_count == 1 &&
           body->g->output_count == 1 && onxi_grad_is_about_shape(body->g->node[0]);
}

static onx_status list_made(mover *m, onx_node *const *nodes, uint32_t count, uint32_t from)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < nodes[i]->output_count; k++)
            if (onx_view(nodes[i]->output[k]).len &&
                !onxi_dict_at(&m->made, onx_view(nodes[i]->output[k]), from + i, NULL))
                return ONX_E_MEMORY;
    return ONX_OK;
}

typedef struct level { /* nested subgraphs */
    const onx_graph *graph;
    const struct level *up;
} level;

static bool is_of(const onx_graph *graph, onx_str name)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (onx_str_equal(onx_view(graph->input[i]->name), name))
            return true;
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (onx_str_equal(onx_view(graph->initializer[i]->name), name))
            return true;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
            if (onx_str_equal(onx_view(graph->node[i]->output[k]), name))
                return true;
    return false;
}

/* Is the name defined in the subgraphs themselves? Then it does not refer to an outer value. */
static bool is_local(const level *at, onx_str name)
{
    for (; at; at = at->up)
        if (is_of(at->graph, name))
            return true;
    return false;
}

static bool is_output(const onx_graph *graph, onx_bytes name)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (onx_str_equal(onx_view(graph->output[i]->name), onx_view(name)))
            return true;
    return false;
}

/* Moves the node at position `at` to after the producer of its input, if that is known. */
static onx_status take(mover *m, onx_node *node, uint32_t at, bool *taken)
{
    const onxi_dict_entry *entry =
        onxi_grad_is_about_shape(node) ? onxi_dict_find(&m->made, onx_view(node->input[0])) : NULL;
    *taken = entry && entry->value < at;
    if (!*taken)
        return ONX_OK;
    if (!ONXI_GROW_IN(m->g->scratch, m->moved, m->moved_room, (uint64_t)m->count + 1) ||
        !ONXI_GROW_IN(m->g->scratch, m->next, m->next_room, (uint64_t)m->count + 1))
        return ONX_E_MEMORY;
    const uint32_t place = entry->value;
    m->moved[m->count] = node;
    m->next[m->count++] = 0;
    if (m->last[place])
        m->next[m->last[place] - 1] = m->count;
    else
        m->first[place] = m->count;
    m->last[place] = m->count;
    return onxi_grad_note(m->g, node);
}

static onx_status take_inner(mover *m, onx_node *node, uint32_t at, const level *up, uint32_t depth);

static onx_status take_from(mover *m, onx_graph *graph, uint32_t at, const level *up, uint32_t depth)
{
    enum { NODES_PER_STEP = 256 };
    const level here = { graph, up };
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        onx_node *node = graph->node[i];
        bool taken = false;
        ONX_TRY(take_inner(m, node, at, &here, depth + 1));
        if (onxi_grad_is_about_shape(node) && onxi_dict_find(&m->made, onx_view(node->input[0])) &&
            !is_output(graph, node->output[0])) {
            ONX_TRY(onxi_grad_spend(m->g, 1 + graph->node_count / NODES_PER_STEP));
            if (!is_local(&here, onx_view(node->input[0])))
                ONX_TRY(take(m, node, at, &taken));
        }
        if (!taken)
            graph->node[kept++] = node;
    }
    graph->node_count = kept;
    return ONX_OK;
}

/* Nodes in the subgraphs of a node that refer to outer values only. */
static onx_status take_inner(mover *m, onx_node *node, uint32_t at, const level *up, uint32_t depth)
{
    for (uint32_t i = 0; i < node->attribute_count && depth < m->g->limit; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(take_from(m, node->attribute[i]->g, at, up, depth));
    return ONX_OK;
}

static onx_status put_behind(mover *m, uint32_t place, onxi_node_list *out)
{
    for (uint32_t i = m->first[place]; i; i = m->next[i - 1])
        ONX_TRY(onxi_node_list_add(m->g->scratch, out, m->moved[i - 1]));
    return ONX_OK;
}

onx_status onxi_grad_shapes_early(onxi_grad *g, onxi_node_list *forward, onxi_node_list *back)
{
    const uint32_t before = forward->count, count = before + back->count;
    mover m = { .g = g, .made = onxi_dict_in_arena(g->scratch) };
    onxi_node_list early = { 0 }, late = { 0 };
    m.first = ONXI_ARRAY(g->scratch, uint32_t, (size_t)count + 1);
    m.last = ONXI_ARRAY(g->scratch, uint32_t, (size_t)count + 1);
    bool *gone = ONXI_ARRAY(g->scratch, bool, (size_t)back->count + 1);
    if (!m.first || !m.last || !gone)
        return ONX_E_MEMORY;
    ONX_TRY(list_made(&m, forward->items, before, 0));
    ONX_TRY(list_made(&m, back->items, back->count, before));
    for (uint32_t i = 0; i < back->count; i++) {
        ONX_TRY(take(&m, back->items[i], before + i, &gone[i]));
        ONX_TRY(take_inner(&m, back->items[i], before + i, NULL, 0));
    }
    for (uint32_t i = 0; i < count; i++) {
        onx_node *node = i < before ? forward->items[i] : gone[i - before] ? NULL : back->items[i - before];
        if (node)
            ONX_TRY(onxi_node_list_add(g->scratch, i < before ? &early : &late, node));
        ONX_TRY(put_behind(&m, i, i < before ? &early : &late));
    }
    *forward = early;
    *back = late;
    return ONX_OK;
}
