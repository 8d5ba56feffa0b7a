/* layout_place.c - coordinates of one component, by the algorithm of Brandes and Köpf: vertices of adjacent layers are
 * aligned vertically in four ways (from above or below, leaning left or right), each as narrow as possible. Every
 * vertex is placed at the mean of the two middle results. Long edges become straight lines. */
#include "layout/layout.h"

enum { RUNS = 4, PASSING_GAP = 12 };

typedef struct lines {
    onxi_drawn *p;
    bool *conflict;         /* per link: it would bend a long edge, or pull the main path aside */
    bool *side;             /* per vertex: it has no predecessor, but its successors have other predecessors */
    uint32_t *up, *down;    /* as in the component, sorted by position */
    uint32_t *root, *align; /* the first vertex of its vertical line; the next one, cyclic */
    uint32_t *waiting;      /* per root: left neighbours that have no position yet */
    uint32_t *queue;
    int64_t *x; /* of roots first, then of all vertices */
} lines;

static bool is_passing(const onxi_drawn *p, uint32_t v)
{
    return v >= p->node_count;
}

/* Lists of links, sorted by the position of their other ends. */
static onx_status sort_links(lines *l)
{
    onxi_drawn *p = l->p;
    uint32_t *next = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    l->up = ONXI_DRAWN_ARRAY(p, uint32_t, p->link_count);
    l->down = ONXI_DRAWN_ARRAY(p, uint32_t, p->link_count);
    if (!next || !l->up || !l->down)
        return ONX_E_MEMORY;
    memcpy(next, p->up_at, p->vertex_count * sizeof *next);
    for (uint32_t i = 0; i < p->vertex_count; i++)
        for (uint32_t k = p->down_at[p->order[i]]; k < p->down_at[p->order[i] + 1]; k++)
            l->up[next[p->lower[p->down[k]]]++] = p->down[k];
    memcpy(next, p->down_at, p->vertex_count * sizeof *next);
    for (uint32_t i = 0; i < p->vertex_count; i++)
        for (uint32_t k = p->up_at[p->order[i]]; k < p->up_at[p->order[i] + 1]; k++)
            l->down[next[p->upper[p->up[k]]]++] = p->up[k];
    p->steps += 2 * (uint64_t)p->link_count;
    return ONX_OK;
}

/* Links that cross a segment of a long edge between two dummy vertices are not aligned. */
static void mark_conflicts(lines *l)
{
    const onxi_drawn *p = l->p;
    for (uint32_t layer = 0; layer + 1 < p->layer_count; layer++) {
        const uint32_t *row = p->order + p->order_at[layer + 1];
        const uint32_t count = p->order_at[layer + 2] - p->order_at[layer + 1];
        uint32_t left = 0, begin = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t right = p->order_at[layer + 1] - p->order_at[layer] - 1;
            const uint32_t above = is_passing(p, row[i]) ? p->upper[l->up[p->up_at[row[i]]]] : 0;
            const bool piece = is_passing(p, row[i]) && is_passing(p, above);
            if (piece)
                right = p->position[above];
            else if (i + 1 < count)
                continue;
            for (; begin <= i; begin++) {
                for (uint32_t k = p->up_at[row[begin]]; k < p->up_at[row[begin] + 1]; k++) {
                    const uint32_t u = p->upper[l->up[k]], at = p->position[u];
                    if ((at < left || at > right) && !(is_passing(p, row[begin]) && is_passing(p, u)))
                        l->conflict[l->up[k]] = true;
                }
            }
            left = right;
        }
    }
}

/* The layer where the longest path down to each vertex begins. */
static uint32_t *tops(onxi_drawn *p)
{
    uint32_t *top = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    for (uint32_t i = 0; top && i < p->vertex_count; i++) {
        const uint32_t v = p->order[i];
        top[v] = p->layer[v];
        for (uint32_t k = p->up_at[v]; k < p->up_at[v + 1]; k++) {
            const uint32_t above = top[p->upper[p->up[k]]];
            top[v] = above < top[v] ? above : top[v];
        }
    }
    return top;
}

/* Constants, and values computed from them, are placed beside the path of the data. They must not pull this path aside,
 * or a network would be drawn like stairs; nor must edges that bypass nodes. Therefore links have ranks: the lowest one
 * if a longer path ends in its lower vertex, a low one between a box and a dummy vertex. A box is aligned only with the
 * neighbours of its best links. */
static onx_status mark_sides(lines *l)
{
    onxi_drawn *p = l->p;
    enum { SIDE, BEND, MAIN };
    const uint32_t *top = tops(p);
    uint8_t *rank = ONXI_DRAWN_ARRAY(p, uint8_t, p->link_count);
    uint8_t *above = ONXI_DRAWN_ARRAY(p, uint8_t, p->vertex_count); /* per vertex: the best rank of the links to its
                                                                     * predecessors */
    uint8_t *below = ONXI_DRAWN_ARRAY(p, uint8_t, p->vertex_count);
    if (!top || !rank || !above || !below)
        return ONX_E_MEMORY;
    memset(above, SIDE, p->vertex_count);
    memset(below, SIDE, p->vertex_count);
    for (uint32_t k = 0; k < p->link_count; k++) {
        const uint32_t u = p->upper[k], v = p->lower[k];
        rank[k] = top[u] > top[v] ? SIDE : is_passing(p, u) != is_passing(p, v) ? BEND : MAIN;
        below[u] = rank[k] > below[u] ? rank[k] : below[u];
        above[v] = rank[k] > above[v] ? rank[k] : above[v];
    }
    for (uint32_t k = 0; k < p->link_count; k++) {
        const uint32_t u = p->upper[k], v = p->lower[k];
        const bool pulls =
            rank[k] == SIDE || (rank[k] < below[u] && !is_passing(p, u)) || (rank[k] < above[v] && !is_passing(p, v));
        l->conflict[k] = l->conflict[k] || pulls;
    }
    for (uint32_t v = 0; v < p->vertex_count; v++)
        l->side[v] = p->up_at[v] == p->up_at[v + 1] && p->down_at[v] < p->down_at[v + 1] && below[v] == SIDE;
    p->steps += 3 * (uint64_t)p->link_count;
    return ONX_OK;
}

/* Aligns v with the middle one of its neighbours that is still free and right of `reached`. If `mirror`, positions are
 * counted from the right. */
static int64_t line_up(lines *l, uint32_t v, bool by_above, bool mirror, int64_t reached)
{
    const onxi_drawn *p = l->p;
    const uint32_t *at = by_above ? p->up_at : p->down_at, *links = by_above ? l->up : l->down;
    const uint32_t *other = by_above ? p->upper : p->lower;
    uint32_t count = 0, first[2] = { 0, 0 };
    for (uint32_t k = at[v]; k < at[v + 1]; k++)
        count += !l->conflict[links[k]];
    for (uint32_t k = at[v], n = 0; k < at[v + 1]; k++) {
        if (l->conflict[links[k]])
            continue;
        /* of two middle neighbours, the left one first, or, mirrored, the right one */
        if (n == (count - 1) / 2)
            first[mirror] = links[k];
        if (n == count / 2)
            first[!mirror] = links[k];
        n++;
    }
    for (uint32_t turn = 0; count && turn < 2; turn++) {
        const uint32_t link = first[turn], u = other[link], layer = p->layer[u];
        const int64_t position = mirror ? (int64_t)(p->order_at[layer + 1] - p->order_at[layer]) - 1 - p->position[u]
                                        : (int64_t)p->position[u];
        if (l->align[v] != v || position <= reached)
            continue;
        l->align[u] = v;
        l->root[v] = l->root[u];
        l->align[v] = l->root[v];
        reached = position;
    }
    return reached;
}

static void make_lines(lines *l, bool by_above, bool mirror)
{
    const onxi_drawn *p = l->p;
    for (uint32_t v = 0; v < p->vertex_count; v++)
        l->root[v] = l->align[v] = v;
    for (uint32_t i = 0; i < p->layer_count; i++) {
        const uint32_t layer = by_above ? i : p->layer_count - 1 - i;
        const uint32_t begin = p->order_at[layer], end = p->order_at[layer + 1];
        int64_t reached = -1;
        for (uint32_t k = begin; k < end; k++)
            reached = line_up(l, p->order[mirror ? begin + end - 1 - k : k], by_above, mirror, reached);
    }
}

/* The minimum distance between the centres of two neighbours. */
static int64_t apart(const onxi_drawn *p, uint32_t a, uint32_t b)
{
    const bool narrow = is_passing(p, a) || is_passing(p, b);
    return (p->width[a] + 1) / 2 + (p->width[b] + 1) / 2 + (narrow && PASSING_GAP < p->gap_x ? PASSING_GAP : p->gap_x);
}

/* The neighbour of v on its left (side -1) or right (1), or NONE; `mirror` exchanges left and right. */
static uint32_t beside(const onxi_drawn *p, uint32_t v, bool right, bool mirror)
{
    const uint32_t layer = p->layer[v], at = p->order_at[layer] + p->position[v];
    if (right != mirror)
        return at + 1 < p->order_at[layer + 1] ? p->order[at + 1] : ONX_LAYOUT_NONE;
    return at > p->order_at[layer] ? p->order[at - 1] : ONX_LAYOUT_NONE;
}

/* Moves every line as far left as the lines left of it allow; a line is placed when all its left neighbours are
 * placed. */
static uint32_t push_left(lines *l, bool mirror)
{
    onxi_drawn *p = l->p;
    uint32_t queued = 0, done = 0;
    for (uint32_t v = 0; v < p->vertex_count; v++) {
        l->waiting[v] = 0;
        l->x[v] = 0;
    }
    for (uint32_t v = 0; v < p->vertex_count; v++)
        l->waiting[l->root[v]] += beside(p, v, false, mirror) != ONX_LAYOUT_NONE;
    for (uint32_t v = 0; v < p->vertex_count; v++)
        if (l->root[v] == v && !l->waiting[v])
            l->queue[queued++] = v;
    while (done < queued) {
        const uint32_t root = l->queue[done++];
        uint32_t v = root;
        do {
            const uint32_t next = beside(p, v, true, mirror);
            if (next != ONX_LAYOUT_NONE) {
                const uint32_t line = l->root[next];
                const int64_t x = l->x[root] + apart(p, v, next);
                l->x[line] = x > l->x[line] ? x : l->x[line];
                if (--l->waiting[line] == 0)
                    l->queue[queued++] = line;
            }
            v = l->align[v];
        } while (v != root);
    }
    p->steps += 2 * (uint64_t)p->vertex_count;
    return done;
}

/* Then moves every line, from the right, as far right as its right neighbours allow, so that gaps close. */
static void pull_right(lines *l, bool mirror, uint32_t count)
{
    onxi_drawn *p = l->p;
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t root = l->queue[i];
        int64_t limit = INT64_MAX;
        uint32_t v = root;
        do {
            const uint32_t next = beside(p, v, true, mirror);
            if (next != ONX_LAYOUT_NONE) {
                const int64_t x = l->x[l->root[next]] - apart(p, v, next);
                limit = x < limit ? x : limit;
            }
            v = l->align[v];
        } while (v != root);
        if (limit != INT64_MAX && limit > l->x[root])
            l->x[root] = limit;
    }
    p->steps += p->vertex_count;
}

/* Computes one of the four alignments into `x`. */
static void run(lines *l, bool by_above, bool mirror, int64_t *x)
{
    const onxi_drawn *p = l->p;
    make_lines(l, by_above, mirror);
    pull_right(l, mirror, push_left(l, mirror));
    for (uint32_t v = 0; v < p->vertex_count; v++)
        x[v] = mirror ? -l->x[l->root[v]] : l->x[l->root[v]];
}

typedef struct extent {
    int64_t left, right;
} extent;

static extent extent_of(const onxi_drawn *p, const int64_t *x)
{
    extent e = { INT64_MAX, INT64_MIN };
    for (uint32_t v = 0; v < p->vertex_count; v++) {
        const int64_t half = (p->width[v] + 1) / 2;
        e.left = x[v] - half < e.left ? x[v] - half : e.left;
        e.right = x[v] + half > e.right ? x[v] + half : e.right;
    }
    return e;
}

/* Aligns the left-leaning results with the left edge of the narrowest one, and the others with its right edge, and
 * takes the mean of the two middle values. Distances that hold in all four results also hold for the mean. */
static void combine(onxi_drawn *p, int64_t *const x[RUNS])
{
    extent e[RUNS], narrow = { 0, INT64_MAX };
    for (int r = 0; r < RUNS; r++) {
        e[r] = extent_of(p, x[r]);
        if (e[r].right - e[r].left < narrow.right - narrow.left)
            narrow = e[r];
    }
    for (int r = 0; r < RUNS; r++) {
        const int64_t shift = r % 2 ? narrow.right - e[r].right : narrow.left - e[r].left;
        for (uint32_t v = 0; v < p->vertex_count; v++)
            x[r][v] += shift;
    }
    for (uint32_t v = 0; v < p->vertex_count; v++) {
        int64_t a[RUNS];
        for (int r = 0; r < RUNS; r++) {
            int at = r;
            for (; at > 0 && a[at - 1] > x[r][v]; at--)
                a[at] = a[at - 1];
            a[at] = x[r][v];
        }
        /* rounds towards minus infinity, so that distances are preserved */
        const int64_t sum = a[1] + a[2];
        p->x[v] = (sum - (sum & 1)) / 2;
    }
    p->steps += 2 * RUNS * (uint64_t)p->vertex_count;
}

/* Moves side vertices as close to their successors as their neighbours allow: first those that move left, from left to
 * right, then the others. */
static void settle(lines *l)
{
    onxi_drawn *p = l->p;
    for (int right = 0; right < 2; right++) {
        for (uint32_t i = 0; i < p->vertex_count; i++) {
            const uint32_t v = p->order[right ? p->vertex_count - 1 - i : i], count = p->down_at[v + 1] - p->down_at[v];
            if (!l->side[v])
                continue;
            const int64_t wanted = p->x[p->lower[l->down[p->down_at[v] + count / 2]]];
            const uint32_t next = beside(p, v, right != 0, false);
            int64_t x = wanted;
            if (next != ONX_LAYOUT_NONE && right)
                x = p->x[next] - apart(p, v, next) < wanted ? p->x[next] - apart(p, v, next) : wanted;
            else if (next != ONX_LAYOUT_NONE)
                x = p->x[next] + apart(p, next, v) > wanted ? p->x[next] + apart(p, next, v) : wanted;
            if (right ? x > p->x[v] : x < p->x[v])
                p->x[v] = x;
        }
    }
    p->steps += 2 * (uint64_t)p->vertex_count;
}

/* Shifts all coordinates so that the left edge is 0. */
static void measure(onxi_drawn *p)
{
    const extent all = extent_of(p, p->x);
    for (uint32_t v = 0; v < p->vertex_count; v++)
        p->x[v] -= all.left;
    p->total_width = all.right - all.left;
    p->steps += 2 * (uint64_t)p->vertex_count;
}

static void place_layers(onxi_drawn *p)
{
    int64_t y = 0;
    for (uint32_t layer = 0; layer < p->layer_count; layer++) {
        int64_t height = 0;
        for (uint32_t i = p->order_at[layer]; i < p->order_at[layer + 1]; i++)
            height = p->height[p->order[i]] > height ? p->height[p->order[i]] : height;
        height += height & 1;
        p->layer_height[layer] = height;
        p->layer_y[layer] = y + height / 2;
        y += height + p->gap_y;
    }
    p->total_height = y - p->gap_y;
}

onx_status onxi_drawn_place(onxi_drawn *p)
{
    lines l = { .p = p,
                .conflict = ONXI_DRAWN_ARRAY(p, bool, p->link_count),
                .side = ONXI_DRAWN_ARRAY(p, bool, p->vertex_count),
                .root = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
                .align = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
                .waiting = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
                .queue = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
                .x = ONXI_DRAWN_ARRAY(p, int64_t, p->vertex_count) };
    int64_t *x[RUNS];
    bool there = l.conflict && l.side && l.root && l.align && l.waiting && l.queue && l.x;
    for (int r = 0; r < RUNS; r++)
        there = (x[r] = ONXI_DRAWN_ARRAY(p, int64_t, p->vertex_count)) && there;
    p->x = ONXI_DRAWN_ARRAY(p, int64_t, p->vertex_count);
    p->layer_y = ONXI_DRAWN_ARRAY(p, int64_t, p->layer_count);
    p->layer_height = ONXI_DRAWN_ARRAY(p, int64_t, p->layer_count);
    if (!there || !p->x || !p->layer_y || !p->layer_height)
        return ONX_E_MEMORY;
    ONX_TRY(sort_links(&l));
    mark_conflicts(&l);
    ONX_TRY(mark_sides(&l));
    p->steps += p->link_count + p->vertex_count;
    for (unsigned r = 0; r < RUNS; r++)
        run(&l, r < 2, r % 2 != 0, x[r]);
    combine(p, x);
    settle(&l);
    measure(p);
    place_layers(p);
    return ONX_OK;
}
