/* layout_order.c - orders the boxes in their layers: layers are sorted repeatedly by the positions of their neighbours,
 * which leaves few crossings; the best order is kept. */
#include "layout/layout.h"

#include <stdlib.h>

/* ---- initial order ---- */

static void stand(onxi_drawn *p, uint32_t v, uint32_t *count)
{
    const uint32_t layer = p->layer[v];
    p->position[v] = count[layer]++;
    p->order[p->order_at[layer] + p->position[v]] = v;
}

/* Vertices in the order of a depth-first search, so that connected ones are adjacent. */
static onx_status first_order(onxi_drawn *p)
{
    uint32_t *stack = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
             *next = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    uint32_t *count = ONXI_DRAWN_ARRAY(p, uint32_t, p->layer_count), *by_layer;
    bool *seen = ONXI_DRAWN_ARRAY(p, bool, p->vertex_count);
    if (!stack || !next || !count || !seen)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_drawn_lists(p, p->layer, p->vertex_count, p->layer_count, &p->order_at, &by_layer));
    for (uint32_t i = 0; i < p->vertex_count; i++) {
        uint32_t depth = 0, w = by_layer[i];
        do {
            if (!seen[w]) {
                seen[w] = true;
                next[w] = p->down_at[w];
                stack[depth++] = w;
                stand(p, w, count);
            }
            while (depth && next[stack[depth - 1]] == p->down_at[stack[depth - 1] + 1])
                depth--, p->steps++;
            if (depth)
                w = p->lower[p->down[next[stack[depth - 1]]++]], p->steps++;
        } while (depth);
    }
    return ONX_OK;
}

/* ---- crossings ---- */

/* Counts the crossings of the links between two layers: the lower ends, in the order of their upper ends, are inserted
 * into a tree of prefix sums. `tree` has room for the lower layer. */
static uint64_t crossings_below(onxi_drawn *p, uint32_t layer, uint32_t *tree)
{
    const uint32_t width = p->order_at[layer + 2] - p->order_at[layer + 1];
    uint64_t crossings = 0, there = 0;
    memset(tree, 0, ((size_t)width + 1) * sizeof *tree);
    for (uint32_t i = p->order_at[layer]; i < p->order_at[layer + 1]; i++) {
        const uint32_t v = p->order[i], first = p->down_at[v], end = p->down_at[v + 1];
        /* links from the same vertex do not cross, so all of them are counted before one is inserted */
        for (uint32_t k = first; k < end; k++) {
            uint64_t not_right = 0;
            for (uint32_t at = p->position[p->lower[p->down[k]]] + 1; at; at &= at - 1, p->steps++)
                not_right += tree[at];
            crossings += there - not_right;
        }
        for (uint32_t k = first; k < end; k++, there++)
            for (uint32_t at = p->position[p->lower[p->down[k]]] + 1; at <= width; at += at & (~at + 1), p->steps++)
                tree[at]++;
    }
    return crossings;
}

static uint64_t crossings(onxi_drawn *p, uint32_t *tree)
{
    uint64_t all = 0;
    for (uint32_t layer = 0; layer + 1 < p->layer_count; layer++)
        all += crossings_below(p, layer, tree);
    return all;
}

/* ---- sorting ---- */

typedef struct wish { /* the preferred position of a vertex */
    double place;
    uint32_t now, vertex;
} wish;

static int compare(const void *a, const void *b)
{
    const wish *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->now < y->now ? -1 : x->now > y->now;
}

/* Sorts one layer by the mean position of the neighbours in the layer above or below. Vertices without neighbours keep
 * their positions. */
static void sort_layer(onxi_drawn *p, uint32_t layer, bool by_above, wish *wishes)
{
    const uint32_t *at = by_above ? p->up_at : p->down_at, *links = by_above ? p->up : p->down;
    const uint32_t *other = by_above ? p->upper : p->lower;
    uint32_t *order = p->order + p->order_at[layer], count = p->order_at[layer + 1] - p->order_at[layer], wished = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = order[i], neighbours = at[v + 1] - at[v];
        uint64_t sum = 0;
        for (uint32_t k = at[v]; k < at[v + 1]; k++)
            sum += p->position[other[links[k]]];
        if (neighbours)
            wishes[wished++] = (wish){ (double)sum / neighbours, i, v };
        p->steps += neighbours + 1;
    }
    qsort(wishes, wished, sizeof *wishes, compare);
    for (uint32_t i = 0, w = 0; i < count; i++) {
        if (at[order[i] + 1] != at[order[i]])
            order[i] = wishes[w++].vertex;
        p->position[order[i]] = i;
    }
    for (uint32_t n = wished; n > 1; n /= 2)
        p->steps += wished;
}

static void sweep(onxi_drawn *p, bool down, wish *wishes)
{
    for (uint32_t i = 1; i < p->layer_count; i++)
        sort_layer(p, down ? i : p->layer_count - 1 - i, down, wishes);
}

/* Sweeps down and up in turn, until several sweeps in a row bring no improvement. */
static onx_status improve(onxi_drawn *p)
{
    enum { PATIENCE = 4 };
    wish *wishes = ONXI_DRAWN_ARRAY(p, wish, p->vertex_count);
    uint32_t *tree = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count),
             *best = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    if (!wishes || !tree || !best)
        return ONX_E_MEMORY;
    const size_t size = p->vertex_count * sizeof *best;
    uint64_t least = crossings(p, tree);
    memcpy(best, p->order, size);
    for (uint32_t i = 0, idle = 0; i < p->sweeps && least && idle < PATIENCE; i++) {
        sweep(p, i % 2 == 0, wishes);
        const uint64_t now = crossings(p, tree);
        idle = now < least ? 0 : idle + 1;
        if (now < least) {
            least = now;
            memcpy(best, p->order, size);
        }
    }
    memcpy(p->order, best, size);
    for (uint32_t layer = 0; layer < p->layer_count; layer++)
        for (uint32_t i = p->order_at[layer]; i < p->order_at[layer + 1]; i++)
            p->position[p->order[i]] = i - p->order_at[layer];
    return ONX_OK;
}

onx_status onxi_drawn_order(onxi_drawn *p)
{
    p->order = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    p->position = ONXI_DRAWN_ARRAY(p, uint32_t, p->vertex_count);
    if (!p->order || !p->position)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_drawn_lists(p, p->upper, p->link_count, p->vertex_count, &p->down_at, &p->down));
    ONX_TRY(onxi_drawn_lists(p, p->lower, p->link_count, p->vertex_count, &p->up_at, &p->up));
    ONX_TRY(first_order(p));
    return improve(p);
}
