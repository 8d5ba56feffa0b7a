/* layout_layer.c - assigns layers: cycles are broken, and producers are placed above their consumers. Nodes without
 * inputs, such as constants, are placed directly above the node that needs them. */
#include "layout/layout.h"

onx_status onxi_drawn_lists(onxi_drawn *p, const uint32_t *key, uint32_t key_count, uint32_t count, uint32_t **at,
                            uint32_t **list)
{
    uint32_t *start = ONXI_DRAWN_ARRAY(p, uint32_t, (size_t)count + 1),
             *items = ONXI_DRAWN_ARRAY(p, uint32_t, key_count);
    if (!start || !items)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < key_count; i++)
        start[key[i] + 1]++;
    for (uint32_t v = 0; v < count; v++)
        start[v + 1] += start[v];
    /* filling advances each start to its end, so the starts are one entry further on afterwards */
    for (uint32_t i = 0; i < key_count; i++)
        items[start[key[i]]++] = i;
    for (uint32_t v = count; v > 0; v--)
        start[v] = start[v - 1];
    start[0] = 0;
    p->steps += (uint64_t)key_count + count;
    *at = start;
    *list = items;
    return ONX_OK;
}

/* ---- cycles ---- */

/* A depth-first search over the nodes in order: an edge to a node on the current path closes a cycle and is reversed.
 * `sorted` receives a topological order. */
static onx_status cut_cycles(onxi_drawn *p, uint32_t *sorted)
{
    enum { NEW, ON_WAY, DONE };
    uint32_t *at, *out;
    ONX_TRY(onxi_drawn_lists(p, p->from, p->edge_count, p->node_count, &at, &out));
    uint8_t *state = ONXI_DRAWN_ARRAY(p, uint8_t, p->node_count);
    uint32_t *next = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count),
             *stack = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count);
    if (!state || !next || !stack)
        return ONX_E_MEMORY;
    uint32_t place = p->node_count;
    for (uint32_t root = p->node_count; root-- > 0;) {
        uint32_t depth = 0;
        if (state[root] == NEW)
            stack[depth++] = root, state[root] = ON_WAY, next[root] = at[root];
        while (depth) {
            const uint32_t v = stack[depth - 1];
            p->steps++;
            if (next[v] == at[v + 1]) {
                state[v] = DONE;
                sorted[--place] = v;
                depth--;
                continue;
            }
            const uint32_t e = out[next[v]++], w = p->to[e];
            if (state[w] == ON_WAY)
                p->back[e] = true;
            else if (state[w] == NEW)
                stack[depth++] = w, state[w] = ON_WAY, next[w] = at[w];
        }
    }
    for (uint32_t e = 0; e < p->edge_count; e++) {
        if (!p->back[e])
            continue;
        const uint32_t v = p->from[e];
        p->from[e] = p->to[e];
        p->to[e] = v;
    }
    return ONX_OK;
}

/* ---- layers ---- */

/* Places every node directly below the lowest of its predecessors. Then nodes with more outgoing than incoming edges,
 * and components above that are not connected to anything higher, move down as far as possible, from the bottom up. */
static onx_status assign(onxi_drawn *p, const uint32_t *sorted)
{
    uint32_t *in_at, *in, *out_at, *out;
    ONX_TRY(onxi_drawn_lists(p, p->to, p->edge_count, p->node_count, &in_at, &in));
    ONX_TRY(onxi_drawn_lists(p, p->from, p->edge_count, p->node_count, &out_at, &out));
    bool *loose = ONXI_DRAWN_ARRAY(p, bool, p->node_count);
    if (!loose)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const uint32_t v = sorted[i];
        uint32_t layer = 0;
        loose[v] = true;
        for (uint32_t k = in_at[v]; k < in_at[v + 1]; k++) {
            const uint32_t u = p->from[in[k]];
            layer = p->layer[u] >= layer ? p->layer[u] + 1 : layer;
            loose[v] = loose[v] && loose[u] && out_at[u + 1] - out_at[u] == 1;
        }
        p->layer[v] = layer;
        p->layer_count = layer >= p->layer_count ? layer + 1 : p->layer_count;
    }
    for (uint32_t i = p->node_count; i-- > 0;) {
        const uint32_t v = sorted[i], outs = out_at[v + 1] - out_at[v], ins = in_at[v + 1] - in_at[v];
        if (!outs || (outs <= ins && !loose[v]))
            continue;
        uint32_t below = p->layer_count;
        for (uint32_t k = out_at[v]; k < out_at[v + 1]; k++)
            below = p->layer[p->to[out[k]]] < below ? p->layer[p->to[out[k]]] : below;
        p->layer[v] = below - 1;
    }
    p->steps += 2 * ((uint64_t)p->node_count + p->edge_count);
    return ONX_OK;
}

/* ---- long edges ---- */

/* The number of layers that the edge crosses. */
static uint32_t passed(const onxi_drawn *p, uint32_t e)
{
    return p->layer[p->to[e]] - p->layer[p->from[e]] - 1;
}

/* Selects the edges that get dummy vertices: short ones first, up to four dummy vertices per node and edge in total, so
 * that a value that is used everywhere, or a hostile graph, does not take quadratic memory. All edges of one node share
 * a chain of dummy vertices. */
static onx_status admit(onxi_drawn *p, uint32_t *vertices_out)
{
    uint32_t *span = ONXI_DRAWN_ARRAY(p, uint32_t, p->edge_count), *at, *by_span;
    if (!span)
        return ONX_E_MEMORY;
    for (uint32_t e = 0; e < p->edge_count; e++)
        span[e] = passed(p, e);
    ONX_TRY(onxi_drawn_lists(p, span, p->edge_count, p->layer_count, &at, &by_span));
    const uint64_t budget = 4 * ((uint64_t)p->node_count + p->edge_count) + 256;
    uint64_t taken = p->node_count;
    for (uint32_t i = 0; i < p->edge_count; i++) {
        const uint32_t e = by_span[i], v = p->from[e];
        p->last[e] = ONX_LAYOUT_NONE;
        if (span[e] > p->chain_count[v]) {
            const uint64_t more = span[e] - p->chain_count[v];
            if (taken + more > budget)
                continue;
            taken += more;
            p->chain_count[v] = span[e];
        }
        p->last[e] = v; /* it has dummy vertices; which ones is known when all chains exist */
        p->trunk[v] = span[e] && span[e] == p->chain_count[v] ? e : p->trunk[v];
    }
    if (taken >= ONX_LAYOUT_NONE)
        return onxi_fail(p->arena->cx, ONX_E_LIMIT, ONXI_NOWHERE, "a drawing of %u boxes and %u edges is too large",
                         p->node_count, p->edge_count);
    *vertices_out = (uint32_t)taken;
    p->steps += p->edge_count;
    return ONX_OK;
}

/* Copies per-node arrays with room for the dummy vertices, whose width and height are 0. */
static onx_status widen(onxi_drawn *p, uint32_t vertices)
{
    int64_t *width = ONXI_DRAWN_ARRAY(p, int64_t, vertices), *height = ONXI_DRAWN_ARRAY(p, int64_t, vertices);
    uint32_t *layer = ONXI_DRAWN_ARRAY(p, uint32_t, vertices);
    if (!width || !height || !layer)
        return ONX_E_MEMORY;
    memcpy(width, p->width, p->node_count * sizeof *width);
    memcpy(height, p->height, p->node_count * sizeof *height);
    memcpy(layer, p->layer, p->node_count * sizeof *layer);
    p->width = width;
    p->height = height;
    p->layer = layer;
    p->vertex_count = vertices;
    return ONX_OK;
}

static onx_status make_links(onxi_drawn *p)
{
    uint32_t next = p->node_count, links = 0;
    const size_t most = (size_t)p->edge_count + p->vertex_count;
    p->upper = ONXI_DRAWN_ARRAY(p, uint32_t, most);
    p->lower = ONXI_DRAWN_ARRAY(p, uint32_t, most);
    if (!p->upper || !p->lower)
        return ONX_E_MEMORY;
    for (uint32_t v = 0; v < p->node_count; v++) {
        p->chain[v] = next;
        for (uint32_t k = 0; k < p->chain_count[v]; k++, next++) {
            p->layer[next] = p->layer[v] + 1 + k;
            p->upper[links] = k ? next - 1 : v;
            p->lower[links++] = next;
        }
    }
    for (uint32_t e = 0; e < p->edge_count; e++) {
        if (p->last[e] == ONX_LAYOUT_NONE)
            continue;
        const uint32_t v = p->from[e], span = passed(p, e);
        p->last[e] = span ? p->chain[v] + span - 1 : v;
        p->upper[links] = p->last[e];
        p->lower[links++] = p->to[e];
    }
    p->link_count = links;
    p->steps += p->vertex_count + p->edge_count;
    return ONX_OK;
}

onx_status onxi_drawn_layers(onxi_drawn *p)
{
    uint32_t *sorted = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count), vertices = 0;
    p->back = ONXI_DRAWN_ARRAY(p, bool, p->edge_count);
    p->layer = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count);
    p->last = ONXI_DRAWN_ARRAY(p, uint32_t, p->edge_count);
    p->chain = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count);
    p->chain_count = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count);
    p->trunk = ONXI_DRAWN_ARRAY(p, uint32_t, p->node_count);
    if (!sorted || !p->back || !p->layer || !p->last || !p->chain || !p->chain_count || !p->trunk)
        return ONX_E_MEMORY;
    for (uint32_t v = 0; v < p->node_count; v++)
        p->trunk[v] = ONX_LAYOUT_NONE;
    ONX_TRY(cut_cycles(p, sorted));
    ONX_TRY(assign(p, sorted));
    ONX_TRY(admit(p, &vertices));
    ONX_TRY(widen(p, vertices));
    return make_links(p);
}
