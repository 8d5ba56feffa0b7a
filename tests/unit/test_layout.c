/* test_layout.c - drawings of graphs: nothing overlaps, arrows go down, and time grows no faster than the graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/layout.h>

#include "context.h"

#define NONE ONX_LAYOUT_NONE

typedef struct graph {
    onx_layout_node *node;
    onx_layout_edge *edge;
    uint32_t nodes, edges, room;
} graph;

static graph make(uint32_t nodes, uint32_t room)
{
    graph g = { .node = calloc(nodes + 1, sizeof *g.node), .edge = calloc(room + 1, sizeof *g.edge) };
    assert_true(g.node && g.edge);
    g.nodes = nodes;
    g.room = room;
    for (uint32_t i = 0; i < nodes; i++)
        g.node[i] = (onx_layout_node){ .width = 40 + i * 7 % 90, .height = 20 + i * 5 % 31, .parent = NONE };
    return g;
}

static void connect(graph *g, uint32_t from, uint32_t to)
{
    assert_true(g->edges < g->room);
    g->edge[g->edges++] = (onx_layout_edge){ from, to };
}

static void drop(graph *g)
{
    free(g->node);
    free(g->edge);
}

/* ---- what holds for every drawing ---- */

typedef struct placed {
    uint32_t parent;
    onx_layout_box box;
} placed;

static int by_top(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->box.y != y->box.y)
        return x->box.y < y->box.y ? -1 : 1;
    return x->box.x < y->box.x ? -1 : x->box.x > y->box.x;
}

static bool overlap(const onx_layout_box *a, const onx_layout_box *b)
{
    return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height && b->y < a->y + a->height;
}

/* Boxes of a parent from top to bottom: each is compared with those below that begin above its end; of wide layers
 * only so many, which are the next ones to the right. */
static void no_overlaps(const graph *g, const onx_placement *l)
{
    enum { NEAR = 4000 };
    placed *all = calloc(g->nodes + 1, sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < g->nodes; i++)
        all[i] = (placed){ g->node[i].parent, *onx_layout_box_at(l, i) };
    qsort(all, g->nodes, sizeof *all, by_top);
    for (uint32_t i = 0; i < g->nodes; i++)
        for (uint32_t k = i + 1; k < g->nodes && k < i + NEAR && all[k].parent == all[i].parent &&
                                 all[k].box.y < all[i].box.y + all[i].box.height;
             k++)
            if (overlap(&all[i].box, &all[k].box))
                fail_msg("boxes at %lld,%lld and %lld,%lld overlap", (long long)all[i].box.x, (long long)all[i].box.y,
                         (long long)all[k].box.x, (long long)all[k].box.y);
    free(all);
}

static void inside_parents(const graph *g, const onx_placement *l)
{
    for (uint32_t i = 0; i < g->nodes; i++) {
        const onx_layout_box *box = onx_layout_box_at(l, i);
        int64_t width = onx_layout_size(l).x, height = onx_layout_size(l).y;
        if (g->node[i].parent != NONE) {
            const onx_layout_box *around = onx_layout_box_at(l, g->node[i].parent);
            width = around->inner_width;
            height = around->inner_height;
            if (g->node[g->node[i].parent].open)
                assert_true(around->width >= width + 2 * 16 && around->height >= height + 24 + 2 * 16);
        }
        assert_true(box->x >= 0 && box->y >= 0 && box->x + box->width <= width && box->y + box->height <= height);
        assert_true(box->width >= g->node[i].width && box->height >= g->node[i].height);
    }
}

static void ways_go_down(const graph *g, const onx_placement *l)
{
    for (uint32_t e = 0; e < g->edges; e++) {
        const onx_layout_route *r = onx_layout_route_at(l, e);
        if (r->flags & ONX_LAYOUT_LOOP) {
            assert_int_equal(r->point_count, 0);
            continue;
        }
        assert_true(r->point_count >= 2);
        for (uint32_t k = 1; k < r->point_count; k++) {
            const int64_t step = r->point[k].y - r->point[k - 1].y;
            assert_true(r->flags & ONX_LAYOUT_BACK ? step <= 0 : step >= 0);
        }
        if (r->trunk != NONE) {
            assert_true(r->trunk < g->edges);
            const onx_layout_route *trunk = onx_layout_route_at(l, r->trunk);
            assert_int_equal(trunk->trunk, NONE);
            if (!((r->flags | trunk->flags) & ONX_LAYOUT_BACK) && g->node[g->edge[e].from].parent == trunk->parent &&
                g->node[g->edge[e].to].parent == trunk->parent)
                assert_int_equal(trunk->point[0].x, onx_layout_box_at(l, g->edge[e].from)->x +
                                                        (onx_layout_box_at(l, g->edge[e].from)->width + 1) / 2);
        }
    }
}

/* An edge between neighbours of one area begins at its box and ends at the other one, and no way leads through a third
 * box unless it is a far one. */
static void ends_meet_boxes(const graph *g, const onx_placement *l)
{
    for (uint32_t e = 0; e < g->edges; e++) {
        const onx_layout_route *r = onx_layout_route_at(l, e);
        if (!r->point_count || r->trunk != NONE || g->node[g->edge[e].from].parent != g->node[g->edge[e].to].parent)
            continue;
        const onx_layout_box *from = onx_layout_box_at(l, g->edge[e].from), *to = onx_layout_box_at(l, g->edge[e].to);
        const onx_layout_point first = r->point[0], last = r->point[r->point_count - 1];
        const int64_t start = r->flags & ONX_LAYOUT_BACK ? from->y : from->y + from->height;
        const int64_t end = r->flags & ONX_LAYOUT_BACK ? to->y + to->height : to->y;
        assert_true(first.x > from->x && first.x < from->x + from->width && llabs(first.y - start) <= 1);
        assert_true(last.x > to->x && last.x < to->x + to->width && llabs(last.y - end) <= 1);
    }
}

static onx_placement *draw(onx_ctx *with, const graph *g)
{
    onx_placement *l = NULL;
    assert_int_equal(onx_layout_new(with, g->node, g->nodes, g->edge, g->edges, NULL, &l), ONX_OK);
    no_overlaps(g, l);
    inside_parents(g, l);
    ways_go_down(g, l);
    ends_meet_boxes(g, l);
    return l;
}

static uint64_t steps_of(graph g)
{
    onx_placement *l = draw(cx, &g);
    const uint64_t steps = onx_layout_steps(l);
    onx_layout_free(l);
    drop(&g);
    return steps;
}

/* ---- families of graphs, by size ---- */

static graph deep(uint32_t n)
{
    graph g = make(n, n);
    for (uint32_t i = 1; i < n; i++)
        connect(&g, i - 1, i);
    return g;
}

static graph wide(uint32_t n) /* one feeds all, all feed one */
{
    graph g = make(n, 2 * n);
    for (uint32_t i = 1; i + 1 < n; i++) {
        connect(&g, 0, i);
        connect(&g, i, n - 1);
    }
    return g;
}

static graph dense(uint32_t n) /* each of a layer of 20 to each of the next one */
{
    graph g = make(n, n * 20);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 20 && (i / 20 + 1) * 20 + k < n; k++)
            connect(&g, i, (i / 20 + 1) * 20 + k);
    return g;
}

static graph hubs(uint32_t n) /* a chain whose every tenth member goes to all members ten times as far */
{
    graph g = make(n, 3 * n);
    for (uint32_t i = 1; i < n; i++) {
        connect(&g, i - 1, i);
        connect(&g, 0, i);
        connect(&g, i / 10, i);
    }
    return g;
}

static graph loose(uint32_t n) /* nothing is connected */
{
    return make(n, 0);
}

static graph circle(uint32_t n)
{
    graph g = make(n, 3 * n);
    for (uint32_t i = 0; i < n; i++) {
        connect(&g, i, (i + 1) % n);
        connect(&g, i, i);
        connect(&g, i, i * 7919u % n);
    }
    return g;
}

static graph random_one(uint32_t n, uint32_t seed)
{
    graph g = make(n, 2 * n);
    for (uint32_t i = 0; i < 2 * n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t a = seed >> 8;
        seed = seed * 1664525u + 1013904223u;
        const uint32_t from = a % n, far = (seed >> 8) % 40 + 1;
        if (from + far < n)
            connect(&g, from, from + far);
    }
    return g;
}

static graph nested(uint32_t n) /* every fifth box holds the four behind it; edges go across all areas */
{
    graph g = make(n, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        if (i % 5)
            g.node[i].parent = i - i % 5;
        g.node[i].open = i % 10 == 0;
        if (i)
            connect(&g, i - 1, i);
        if (i > 20)
            connect(&g, i - 17, i);
    }
    return g;
}

/* ---- tests ---- */

static void test_layout__a_diamond(void **state)
{
    (void)state;
    graph g = make(4, 4);
    connect(&g, 0, 1);
    connect(&g, 0, 2);
    connect(&g, 1, 3);
    connect(&g, 2, 3);
    onx_placement *l = draw(cx, &g);
    assert_int_equal(onx_layout_box_at(l, 0)->layer, 0);
    assert_int_equal(onx_layout_box_at(l, 1)->layer, 1);
    assert_int_equal(onx_layout_box_at(l, 2)->layer, 1);
    assert_int_equal(onx_layout_box_at(l, 3)->layer, 2);
    assert_null(onx_layout_box_at(l, 4));
    assert_null(onx_layout_route_at(l, 4));
    onx_layout_free(l);
    drop(&g);
}

/* A constant stands right above what needs it, not at the top of all. */
static void test_layout__what_hangs_loose_comes_down(void **state)
{
    (void)state;
    graph g = make(22, 40);
    for (uint32_t i = 1; i < 20; i++)
        connect(&g, i - 1, i);
    connect(&g, 20, 21);
    connect(&g, 21, 15);
    onx_placement *l = draw(cx, &g);
    assert_int_equal(onx_layout_box_at(l, 21)->layer, 14);
    assert_int_equal(onx_layout_box_at(l, 20)->layer, 13);
    onx_layout_free(l);
    drop(&g);
}

static int64_t middle(const onx_placement *l, uint32_t node)
{
    const onx_layout_box *box = onx_layout_box_at(l, node);
    return box->x + box->width / 2;
}

/* A network runs straight down the page, whatever constants stand beside it and edges go past it, and the constants
 * stand next to what they are for. */
static void test_layout__the_main_way_is_straight(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    graph g = make(3 * STEPS, 4 * STEPS);
    for (uint32_t i = 0; i < g.nodes; i++)
        g.node[i].width &= ~1u;
    for (uint32_t i = 1; i < STEPS; i++) {
        connect(&g, i - 1, i);
        connect(&g, STEPS + i, i);
        connect(&g, 2 * STEPS + i, i);
        if (i % 4 == 0)
            connect(&g, i - 4, i);
    }
    onx_placement *l = draw(cx, &g);
    /* In the top layer nothing tells a constant from an input. */
    for (uint32_t i = 2; i < STEPS; i++) {
        assert_int_equal(middle(l, i), middle(l, 1));
        int64_t least = INT64_MAX;
        for (uint32_t k = STEPS + i; k < g.nodes; k += STEPS) {
            const onx_layout_box *box = onx_layout_box_at(l, k), *main = onx_layout_box_at(l, i - 1);
            const int64_t gap = box->x > main->x ? box->x - main->x - main->width : main->x - box->x - box->width;
            least = gap < least ? gap : least;
        }
        assert_true(least <= 2 * 24);
    }
    onx_layout_free(l);
    drop(&g);
}

/* Two chains with one crossing too many in the order of input: the drawing has none. */
static void test_layout__crossings_go_away(void **state)
{
    (void)state;
    graph g = make(7, 6);
    connect(&g, 0, 1);
    connect(&g, 0, 2);
    connect(&g, 1, 4);
    connect(&g, 2, 3);
    connect(&g, 3, 5);
    connect(&g, 4, 6);
    onx_placement *l = draw(cx, &g);
    const bool left = onx_layout_box_at(l, 1)->x < onx_layout_box_at(l, 2)->x;
    assert_int_equal(onx_layout_box_at(l, 4)->x < onx_layout_box_at(l, 3)->x, left);
    assert_int_equal(onx_layout_box_at(l, 6)->x < onx_layout_box_at(l, 5)->x, left);
    onx_layout_free(l);
    drop(&g);
}

/* A long edge is a straight line beside the chain that it passes, and edges that leave together share it. */
static void test_layout__long_edges(void **state)
{
    (void)state;
    graph g = make(12, 14);
    for (uint32_t i = 1; i < 12; i++)
        connect(&g, i - 1, i);
    connect(&g, 0, 11);
    connect(&g, 0, 8);
    onx_placement *l = draw(cx, &g);
    const onx_layout_route *whole = onx_layout_route_at(l, 11), *branch = onx_layout_route_at(l, 12);
    assert_int_equal(whole->trunk, NONE);
    assert_int_equal(whole->point_count, 4);
    assert_int_equal(whole->point[1].x, whole->point[2].x);
    assert_int_equal(branch->trunk, 11);
    assert_int_equal(branch->point[0].x, whole->point[1].x);
    for (uint32_t i = 1; i < 11; i++) {
        const onx_layout_box *box = onx_layout_box_at(l, i);
        assert_true(whole->point[1].x < box->x || whole->point[1].x > box->x + box->width);
    }
    onx_layout_free(l);
    drop(&g);
}

static void test_layout__boxes_in_boxes(void **state)
{
    (void)state;
    graph g = make(6, 3);
    g.node[1].open = true;
    g.node[2].parent = g.node[3].parent = 1;
    g.node[3].open = true;
    g.node[4].parent = 3;
    connect(&g, 0, 4); /* as 0 -> 1 */
    connect(&g, 2, 4); /* as 2 -> 3 */
    connect(&g, 1, 4); /* not drawn */
    onx_placement *l = draw(cx, &g);
    assert_int_equal(onx_layout_route_at(l, 0)->parent, NONE);
    assert_int_equal(onx_layout_route_at(l, 1)->parent, 1);
    assert_int_equal(onx_layout_route_at(l, 2)->flags, ONX_LAYOUT_LOOP);
    assert_int_equal(onx_layout_box_at(l, 1)->layer, 1);
    assert_true(onx_layout_box_at(l, 1)->width > onx_layout_box_at(l, 3)->width);
    assert_int_equal(onx_layout_box_at(l, 5)->inner_width, 0);
    onx_layout_free(l);
    drop(&g);
}

static void test_layout__hostile_graphs(void **state)
{
    (void)state;
    steps_of(make(0, 0));
    steps_of(circle(1));
    steps_of(circle(2));
    steps_of(circle(300));
    for (uint32_t seed = 0; seed < 60; seed++)
        steps_of(random_one(20 + seed * 5, seed));
    steps_of(nested(500));
    graph pairs = make(2, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        connect(&pairs, i % 2, (i + i / 2 + 1) % 2);
    steps_of(pairs);
    steps_of(wide(100002));
}

static void test_layout__time_is_linear(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        graph (*make)(uint32_t);
        uint32_t size;
    } families[] = { { "deep", deep, 20000 },    { "wide", wide, 10000 },   { "dense", dense, 2000 },
                     { "hubs", hubs, 10000 },    { "loose", loose, 10000 }, { "circle", circle, 10000 },
                     { "nested", nested, 10000 } };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const uint64_t small = steps_of(families[i].make(families[i].size));
        const uint64_t large = steps_of(families[i].make(4 * families[i].size));
        if (large > 6 * small)
            fail_msg("%s: %llu steps, of four times the size %llu", families[i].name, (unsigned long long)small,
                     (unsigned long long)large);
        /* No more than some hundred looks at each box and edge. */
        graph g = families[i].make(families[i].size);
        assert_true(small < 1500 * ((uint64_t)g.nodes + g.edges));
        drop(&g);
    }
}

static void test_layout__equal_input_equal_output(void **state)
{
    (void)state;
    graph g = random_one(2000, 7);
    onx_ctx *other = onx_ctx_new(NULL);
    onx_placement *a = draw(cx, &g), *b = draw(other, &g);
    for (uint32_t i = 0; i < g.nodes; i++)
        assert_memory_equal(onx_layout_box_at(a, i), onx_layout_box_at(b, i), sizeof(onx_layout_box));
    for (uint32_t e = 0; e < g.edges; e++) {
        const onx_layout_route *x = onx_layout_route_at(a, e), *y = onx_layout_route_at(b, e);
        assert_int_equal(x->point_count, y->point_count);
        assert_memory_equal(x->point, y->point, x->point_count * sizeof *x->point);
    }
    onx_layout_free(a);
    onx_layout_free(b);
    onx_ctx_free(other);
    drop(&g);
}

static void refused(const graph *g, const onx_layout_options *options, onx_status status)
{
    onx_placement *l = (onx_placement *)(uintptr_t)8;
    assert_int_equal(onx_layout_new(cx, g->node, g->nodes, g->edge, g->edges, options, &l), status);
    assert_null(l);
    assert_int_equal(onx_diag_count(cx), 1);
    onx_diag_clear(cx);
}

static void test_layout__what_is_refused(void **state)
{
    (void)state;
    graph g = make(3, 1);
    connect(&g, 0, 3);
    refused(&g, NULL, ONX_E_MISUSE);
    g.edge[0].to = 2;
    refused(&g, &(onx_layout_options){ .sweeps = 65 }, ONX_E_MISUSE);
    refused(&g, &(onx_layout_options){ .gap_x = 65537 }, ONX_E_MISUSE);
    g.node[1].parent = 1;
    refused(&g, NULL, ONX_E_MISUSE);
    g.node[1].parent = NONE;
    g.node[1].width = 0;
    refused(&g, NULL, ONX_E_MISUSE);
    drop(&g);
    graph nest = make(200, 0);
    for (uint32_t i = 1; i < 200; i++)
        nest.node[i].parent = i - 1;
    refused(&nest, NULL, ONX_E_LIMIT);
    drop(&nest);
    graph large = random_one(5000, 1);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 1 << 18;
    onx_ctx_set_limits(cx, limits);
    onx_placement *l = NULL;
    assert_int_not_equal(onx_layout_new(cx, large.node, large.nodes, large.edge, large.edges, NULL, &l), ONX_OK);
    assert_null(l);
    drop(&large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout__a_diamond),         cmocka_unit_test(test_layout__what_hangs_loose_comes_down),
        cmocka_unit_test(test_layout__crossings_go_away), cmocka_unit_test(test_layout__long_edges),
        cmocka_unit_test(test_layout__boxes_in_boxes),    cmocka_unit_test(test_layout__hostile_graphs),
        cmocka_unit_test(test_layout__time_is_linear),    cmocka_unit_test(test_layout__equal_input_equal_output),
        cmocka_unit_test(test_layout__what_is_refused),   cmocka_unit_test(test_layout__the_main_way_is_straight),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
