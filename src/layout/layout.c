/* layout.c - graph drawing: areas are laid out from the innermost outwards. The connected components of an area are
 * laid out one by one, and arranged in rows like words. */
#include "layout/layout.h"

#include <stdlib.h>

struct onx_placement {
    onx_arena *arena; /* contains this struct */
    uint32_t node_count, edge_count;
    onx_layout_box *box;
    onx_layout_route *route;
    onx_layout_point size;
    uint64_t steps;
};

/* The state of one call of onx_layout_new. An area has the number of its box; the area outside of all boxes is
 * node_count. */
typedef struct maker {
    onx_ctx *cx;
    onx_placement *out;
    onx_arena *arena;   /* for data of the call */
    onx_arena *scratch; /* for data of one component */
    const onx_layout_node *nodes;
    onx_layout_options options;
    uint32_t *from, *to;          /* ends of edges, lifted to a common area; equal: the edge is not drawn */
    uint32_t *child_at, *child;   /* boxes per area */
    uint32_t *inside_at, *inside; /* edges per area */
    uint32_t *local;              /* per node: its number in the component */
    uint32_t *group;              /* per node: its connected component, identified by the smallest node */
} maker;

typedef struct part_at { /* a finished component in an area */
    uint32_t first_node, node_count, first_edge, edge_count;
    int64_t x, y, width, height;
} part_at;

/* ---- input ---- */

static onx_status check(maker *m, uint32_t node_count, const onx_layout_edge *edges, uint32_t edge_count,
                        uint32_t *depth)
{
    const uint32_t limit = onx_ctx_limits(m->cx).depth;
    for (uint32_t i = 0; i < node_count; i++) {
        const onx_layout_node *n = &m->nodes[i];
        if (!n->width || !n->height || n->width > ONX_LAYOUT_SIDE_MAX || n->height > ONX_LAYOUT_SIDE_MAX)
            return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "box %u is %u wide and %u high, not 1 to %u", i,
                             n->width, n->height, ONX_LAYOUT_SIDE_MAX);
        if (n->parent != ONX_LAYOUT_NONE && n->parent >= i)
            return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "box %u stands in box %u, which has no smaller number",
                             i, n->parent);
        depth[i] = n->parent == ONX_LAYOUT_NONE ? 0 : depth[n->parent] + 1;
        if (depth[i] > limit)
            return onxi_fail(m->cx, ONX_E_LIMIT, ONXI_NOWHERE, "box %u stands in more than %u others", i, limit);
    }
    for (uint32_t e = 0; e < edge_count; e++)
        if (edges[e].from >= node_count || edges[e].to >= node_count)
            return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "edge %u goes from box %u to box %u of %u", e,
                             edges[e].from, edges[e].to, node_count);
    return ONX_OK;
}

/* The boxes around the ends of an edge, or the ends themselves, that are in the same area. */
static void lift(const maker *m, const uint32_t *depth, uint32_t *a, uint32_t *b)
{
    while (*a != *b && m->nodes[*a].parent != m->nodes[*b].parent) {
        const bool up_a = depth[*a] >= depth[*b], up_b = depth[*b] >= depth[*a];
        if (up_a)
            *a = m->nodes[*a].parent;
        if (up_b)
            *b = m->nodes[*b].parent;
        m->out->steps++;
    }
}

/* Builds lists per area by counting sort; the arrays live as long as the call, unlike those of onxi_drawn_lists. */
static onx_status lists(maker *m, const uint32_t *key, uint32_t count, uint32_t areas, uint32_t **at, uint32_t **list)
{
    onxi_drawn p = { .arena = m->arena };
    ONX_TRY(onxi_drawn_lists(&p, key, count, areas, at, list));
    m->out->steps += p.steps;
    return ONX_OK;
}

static onx_status take(maker *m, const onx_layout_edge *edges)
{
    const uint32_t nodes = m->out->node_count, count = m->out->edge_count;
    uint32_t *depth = ONXI_ARRAY(m->arena, uint32_t, (size_t)nodes + 1), *area;
    uint32_t *key = ONXI_ARRAY(m->arena, uint32_t, (size_t)(count > nodes ? count : nodes) + 1);
    m->from = ONXI_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    m->to = ONXI_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    m->local = ONXI_ARRAY(m->arena, uint32_t, (size_t)nodes + 1);
    m->group = ONXI_ARRAY(m->arena, uint32_t, (size_t)nodes + 1);
    if (!depth || !key || !m->from || !m->to || !m->local || !m->group)
        return ONX_E_MEMORY;
    ONX_TRY(check(m, nodes, edges, count, depth));
    area = key;
    for (uint32_t i = 0; i < nodes; i++)
        area[i] = m->nodes[i].parent == ONX_LAYOUT_NONE ? nodes : m->nodes[i].parent;
    ONX_TRY(lists(m, area, nodes, nodes + 1, &m->child_at, &m->child));
    for (uint32_t e = 0; e < count; e++) {
        m->from[e] = edges[e].from;
        m->to[e] = edges[e].to;
        lift(m, depth, &m->from[e], &m->to[e]);
        const uint32_t parent = m->nodes[m->from[e]].parent;
        area[e] = m->from[e] == m->to[e] ? nodes + 1 : parent == ONX_LAYOUT_NONE ? nodes : parent;
        m->out->route[e] = (onx_layout_route){ .parent = ONX_LAYOUT_NONE,
                                               .trunk = ONX_LAYOUT_NONE,
                                               .flags = m->from[e] == m->to[e] ? ONX_LAYOUT_LOOP : 0 };
    }
    return lists(m, area, count, nodes + 2, &m->inside_at, &m->inside);
}

/* ---- connected components of an area ---- */

static uint32_t group_of(maker *m, uint32_t v)
{
    while (m->group[v] != v) {
        m->group[v] = m->group[m->group[v]];
        v = m->group[v];
        m->out->steps++;
    }
    return v;
}

/* Finds the components of an area, and sorts boxes and edges by component, in the order of their smallest boxes. */
static onx_status find_parts(maker *m, uint32_t area, part_at **parts_out, uint32_t *count_out)
{
    uint32_t *child = m->child + m->child_at[area], children = m->child_at[area + 1] - m->child_at[area];
    uint32_t *inside = m->inside + m->inside_at[area], edges = m->inside_at[area + 1] - m->inside_at[area], parts = 0;
    onxi_drawn p = { .arena = m->scratch };
    uint32_t *number = ONXI_DRAWN_ARRAY(&p, uint32_t, children > edges ? children : edges), *at, *list;
    for (uint32_t i = 0; i < children; i++)
        m->group[child[i]] = child[i];
    for (uint32_t i = 0; i < edges; i++) {
        const uint32_t a = group_of(m, m->from[inside[i]]), b = group_of(m, m->to[inside[i]]);
        m->group[a > b ? a : b] = a > b ? b : a;
    }
    if (!number)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < children; i++) {
        /* the smallest box of a component comes first, so its number is known when others need it */
        const uint32_t least = group_of(m, child[i]);
        m->local[child[i]] = least == child[i] ? parts++ : m->local[least];
        number[i] = m->local[child[i]];
    }
    part_at *found = ONXI_DRAWN_ARRAY(&p, part_at, parts);
    uint32_t *sorted = ONXI_DRAWN_ARRAY(&p, uint32_t, children > edges ? children : edges);
    if (!found || !sorted)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_drawn_lists(&p, number, children, parts, &at, &list));
    for (uint32_t i = 0; i < children; i++)
        sorted[i] = child[list[i]];
    for (uint32_t i = 0; i < edges; i++)
        number[i] = m->local[m->from[inside[i]]];
    for (uint32_t i = 0; i < parts; i++)
        found[i] = (part_at){ .first_node = at[i], .node_count = at[i + 1] - at[i] };
    if (children)
        memcpy(child, sorted, children * sizeof *child);
    ONX_TRY(onxi_drawn_lists(&p, number, edges, parts, &at, &list));
    for (uint32_t i = 0; i < edges; i++)
        sorted[i] = inside[list[i]];
    for (uint32_t i = 0; i < parts; i++)
        found[i].first_edge = at[i], found[i].edge_count = at[i + 1] - at[i];
    if (edges)
        memcpy(inside, sorted, edges * sizeof *inside);
    m->out->steps += p.steps;
    *parts_out = found;
    *count_out = parts;
    return ONX_OK;
}

/* ---- one component ---- */

/* The path of edge i of the component, in the coordinates of the component. */
static onx_status route(maker *m, const onxi_drawn *p, uint32_t i, const uint32_t *edge_number, onx_layout_route *route)
{
    const uint32_t from = p->from[i], to = p->to[i], span = p->layer[to] - p->layer[from] - 1;
    const bool far = p->last[i] == ONX_LAYOUT_NONE;
    const bool whole = far || span == 0 || p->trunk[from] == i;
    const uint32_t passes = far || span == 0 ? 0 : whole ? span : 1;
    onx_layout_point *point = ONXI_ARRAY(m->out->arena, onx_layout_point, (size_t)passes * 2 + 2);
    uint32_t n = 0;
    if (!point)
        return ONX_E_MEMORY;
    route->flags = (p->back[i] ? ONX_LAYOUT_BACK : 0u) | (far ? ONX_LAYOUT_FAR : 0u);
    route->trunk = whole ? ONX_LAYOUT_NONE : edge_number[p->trunk[from]];
    if (whole)
        point[n++] = (onx_layout_point){ p->x[from], p->layer_y[p->layer[from]] + p->height[from] / 2 };
    for (uint32_t k = 0; k < passes; k++) {
        const uint32_t v = whole ? p->chain[from] + k : p->last[i], layer = p->layer[v];
        const onx_layout_point top = { p->x[v], p->layer_y[layer] - p->layer_height[layer] / 2 };
        const onx_layout_point bottom = { p->x[v], p->layer_y[layer] + p->layer_height[layer] / 2 };
        /* two collinear segments become one */
        if (n >= 2 && point[n - 1].x == top.x && point[n - 2].x == top.x)
            n--;
        else if (whole)
            point[n++] = top;
        point[n++] = bottom;
    }
    point[n++] = (onx_layout_point){ p->x[to], p->layer_y[p->layer[to]] - p->height[to] / 2 };
    for (uint32_t k = 0; p->back[i] && k < n / 2; k++) {
        const onx_layout_point swap = point[k];
        point[k] = point[n - 1 - k];
        point[n - 1 - k] = swap;
    }
    route->point = point;
    route->point_count = n;
    m->out->steps += passes + 1;
    return ONX_OK;
}

static onx_status lay_out_part(maker *m, uint32_t area, part_at *at, onx_arena *arena)
{
    const uint32_t *child = m->child + m->child_at[area] + at->first_node;
    const uint32_t *inside = m->inside + m->inside_at[area] + at->first_edge;
    onxi_drawn p = { .arena = arena,
                     .gap_x = m->options.gap_x,
                     .gap_y = m->options.gap_y,
                     .sweeps = m->options.sweeps,
                     .node_count = at->node_count,
                     .edge_count = at->edge_count };
    p.from = ONXI_DRAWN_ARRAY(&p, uint32_t, p.edge_count);
    p.to = ONXI_DRAWN_ARRAY(&p, uint32_t, p.edge_count);
    p.width = ONXI_DRAWN_ARRAY(&p, int64_t, p.node_count);
    p.height = ONXI_DRAWN_ARRAY(&p, int64_t, p.node_count);
    if (!p.from || !p.to || !p.width || !p.height)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p.node_count; i++) {
        m->local[child[i]] = i;
        p.width[i] = m->out->box[child[i]].width;
        p.height[i] = m->out->box[child[i]].height;
    }
    for (uint32_t i = 0; i < p.edge_count; i++) {
        p.from[i] = m->local[m->from[inside[i]]];
        p.to[i] = m->local[m->to[inside[i]]];
    }
    ONX_TRY(onxi_drawn_layers(&p));
    ONX_TRY(onxi_drawn_order(&p));
    ONX_TRY(onxi_drawn_place(&p));
    for (uint32_t i = 0; i < p.node_count; i++) {
        onx_layout_box *box = &m->out->box[child[i]];
        box->layer = p.layer[i];
        box->x = p.x[i] - (box->width + 1) / 2;
        box->y = p.layer_y[p.layer[i]] - box->height / 2;
    }
    for (uint32_t i = 0; i < p.edge_count; i++) {
        m->out->route[inside[i]].parent = area == m->out->node_count ? ONX_LAYOUT_NONE : area;
        ONX_TRY(route(m, &p, i, inside, &m->out->route[inside[i]]));
    }
    at->width = p.total_width;
    at->height = p.total_height;
    m->out->steps += p.steps;
    return ONX_OK;
}

/* ---- arranging components ---- */

static int taller(const void *a, const void *b)
{
    const part_at *x = a, *y = b;
    if (x->height != y->height)
        return x->height > y->height ? -1 : 1;
    return x->first_node < y->first_node ? -1 : x->first_node > y->first_node;
}

/* Arranges components in rows from left to right, the tall ones first, approximately in the proportions of a screen. */
static onx_layout_point pack(const maker *m, part_at *parts, uint32_t count)
{
    const int64_t gap = (int64_t)m->options.gap_x * 2;
    int64_t widest = 0, row = 1, x = 0, y = 0, height = 0;
    double space = 0;
    onx_layout_point size = { 0, 0 };
    for (uint32_t i = 0; i < count; i++) {
        widest = parts[i].width > widest ? parts[i].width : widest;
        space += (double)(parts[i].width + gap) * (double)(parts[i].height + gap);
    }
    /* An integer square root, because the last digit of the mathematics library's differs between platforms. */
    while ((double)row * (double)row < space * 1.5)
        row *= 2;
    row = row > widest ? row : widest;
    qsort(parts, count, sizeof *parts, taller);
    for (uint32_t i = 0; i < count; i++) {
        if (x && x + parts[i].width > row) {
            y += height + gap;
            x = height = 0;
        }
        parts[i].x = x;
        parts[i].y = y;
        x += parts[i].width + gap;
        height = parts[i].height > height ? parts[i].height : height;
        size.x = x - gap > size.x ? x - gap : size.x;
        size.y = y + height;
    }
    return size;
}

static void shift(maker *m, uint32_t area, const part_at *at)
{
    const uint32_t *child = m->child + m->child_at[area] + at->first_node;
    const uint32_t *inside = m->inside + m->inside_at[area] + at->first_edge;
    for (uint32_t i = 0; i < at->node_count; i++) {
        m->out->box[child[i]].x += at->x;
        m->out->box[child[i]].y += at->y;
    }
    for (uint32_t i = 0; i < at->edge_count; i++) {
        const onx_layout_route *route = &m->out->route[inside[i]];
        onx_layout_point *point = (onx_layout_point *)(uintptr_t)route->point;
        for (uint32_t k = 0; k < route->point_count; k++) {
            point[k].x += at->x;
            point[k].y += at->y;
        }
    }
}

static onx_status lay_out_area(maker *m, uint32_t area, onx_layout_point *size)
{
    part_at *parts;
    uint32_t count;
    onx_arena *arena;
    onxi_arena_reset(m->scratch);
    ONX_TRY(find_parts(m, area, &parts, &count));
    ONX_TRY(onx_arena_new(m->cx, &arena));
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < count && status == ONX_OK; i++) {
        onxi_arena_reset(arena);
        status = lay_out_part(m, area, &parts[i], arena);
    }
    onx_arena_free(arena);
    ONX_TRY(status);
    *size = pack(m, parts, count);
    for (uint32_t i = 0; i < count; i++)
        shift(m, area, &parts[i]);
    return ONX_OK;
}

/* ---- the whole layout ---- */

/* The size of a box as drawn, once the layout of its contents is known. */
static void size_box(const maker *m, uint32_t i, onx_layout_point inner)
{
    const onx_layout_node *n = &m->nodes[i];
    onx_layout_box *box = &m->out->box[i];
    *box = (onx_layout_box){ .width = n->width, .height = n->height, .inner_width = inner.x, .inner_height = inner.y };
    if (!n->open || !inner.x)
        return;
    const int64_t width = inner.x + 2 * (int64_t)m->options.padding;
    const int64_t height = inner.y + 2 * (int64_t)m->options.padding + m->options.header;
    box->width = width > box->width ? width : box->width;
    box->height = height > box->height ? height : box->height;
}

static onx_status lay_out(maker *m, const onx_layout_edge *edges)
{
    onx_placement *out = m->out;
    out->box = ONXI_ARRAY(out->arena, onx_layout_box, (size_t)out->node_count + 1);
    out->route = ONXI_ARRAY(out->arena, onx_layout_route, (size_t)out->edge_count + 1);
    if (!out->box || !out->route)
        return ONX_E_MEMORY;
    ONX_TRY(onx_arena_new(m->cx, &m->arena));
    ONX_TRY(onx_arena_new(m->cx, &m->scratch));
    ONX_TRY(take(m, edges));
    /* a nested box has a larger number than the box around it */
    for (uint32_t i = out->node_count; i-- > 0;) {
        onx_layout_point inner = { 0, 0 };
        if (m->child_at[i] != m->child_at[i + 1])
            ONX_TRY(lay_out_area(m, i, &inner));
        size_box(m, i, inner);
    }
    return lay_out_area(m, out->node_count, &out->size);
}

static uint32_t or_else(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static onx_status layout_new(onx_ctx *cx, const onx_layout_node *nodes, uint32_t node_count,
                             const onx_layout_edge *edges, uint32_t edge_count, const onx_layout_options *given,
                             onx_placement **out)
{
    ONXI_OPTIONS(cx, onx_layout_options, options, given);
    if (options.gap_x > ONX_LAYOUT_SIDE_MAX || options.gap_y > ONX_LAYOUT_SIDE_MAX ||
        options.padding > ONX_LAYOUT_SIDE_MAX || options.header > ONX_LAYOUT_SIDE_MAX || options.sweeps > 64)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "gaps of a layout are at most %u, and its sweeps 64",
                         ONX_LAYOUT_SIDE_MAX);
    if (node_count >= ONX_LAYOUT_NONE - 2 || edge_count >= ONX_LAYOUT_NONE - 2)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a layout of %u boxes and %u edges is too large", node_count,
                         edge_count);
    options.gap_x = or_else(options.gap_x, 24);
    options.gap_y = or_else(options.gap_y, 40);
    options.padding = or_else(options.padding, 16);
    options.header = or_else(options.header, 24);
    options.sweeps = or_else(options.sweeps, 12);
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_placement *layout = ONXI_NEW(arena, onx_placement);
    if (!layout) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *layout = (onx_placement){ .arena = arena, .node_count = node_count, .edge_count = edge_count };
    *out = layout;
    maker m = { .cx = cx, .out = layout, .nodes = nodes, .options = options };
    const onx_status status = lay_out(&m, edges);
    onx_arena_free(m.arena);
    onx_arena_free(m.scratch);
    return status;
}

onx_status onx_layout_new(onx_ctx *cx, const onx_layout_node *nodes, uint32_t node_count, const onx_layout_edge *edges,
                          uint32_t edge_count, const onx_layout_options *options, onx_placement **out)
{
    ONXI_NEED(NULL, cx);
    ONXI_NEED(cx, nodes || !node_count);
    ONXI_NEED(cx, edges || !edge_count);
    ONXI_NEED(cx, out);
    ONXI_CALL_TO_MAKE(cx, out, onx_layout_free, layout_new(cx, nodes, node_count, edges, edge_count, options, out));
}

void onx_layout_free(onx_placement *layout)
{
    if (layout)
        onx_arena_free(layout->arena);
}

const onx_layout_box *onx_layout_box_at(const onx_placement *layout, uint32_t node)
{
    ONXI_NEED_OR(NULL, layout, NULL);
    return node < layout->node_count ? &layout->box[node] : NULL;
}

const onx_layout_route *onx_layout_route_at(const onx_placement *layout, uint32_t edge)
{
    ONXI_NEED_OR(NULL, layout, NULL);
    return edge < layout->edge_count ? &layout->route[edge] : NULL;
}

onx_layout_point onx_layout_size(const onx_placement *layout)
{
    ONXI_NEED_OR(NULL, layout, ((onx_layout_point){ 0, 0 }));
    return layout->size;
}

uint64_t onx_layout_steps(const onx_placement *layout)
{
    ONXI_NEED_OR(NULL, layout, 0);
    return layout->steps;
}
