/* tree_lanes.c - walks trees in eight lanes at once: eight rows through one tree, or one row through eight trees.
 *
 * Each test of a node is one integer comparison, key <= cut. The key of a number is an integer with the same order, so
 * "less" is "less or equal" to the integer below. "Equal" and sets of members become binary searches through a few
 * cuts, between which the outcome alternates. The key of NaN is the least or the greatest integer, as the node
 * requires. The two children of a node are adjacent, and a leaf is its own child: all lanes step without branches until
 * the deepest lane has reached its leaf. */
#include "kernel/ml/tree.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum {
    LANES = 8,
    ROWS = 512,          /* most rows per block, if their keys fit into KEY_BYTES */
    SEEN = 256,          /* size of the cache of keys that were collected recently */
    KEY_BYTES = 1u << 16 /* fits into the L2 cache, while a tree is in the L1 cache */
};

/* Nodes for both key widths. `next` and the positions of nodes are byte offsets. */
#define NODE(KEY, sfx)                                                                                                 \
    typedef struct node_##sfx {                                                                                        \
        KEY cut;                                                                                                       \
        uint32_t at;   /* index of the key in the first lane */                                                        \
        uint32_t next; /* child if key <= cut; the other child follows it */                                           \
        uint32_t leaf; /* for leaves: the index of the leaf, or its vote as a float */                                 \
    } node_##sfx;
NODE(int32_t, i32)
NODE(int64_t, i64)

typedef struct lane_tree {
    uint32_t root, least, most; /* number of steps to the nearest and to the farthest leaf */
} lane_tree;

struct onxi_tree_lanes {
    const onxi_forest *forest;
    bool wide; /* keys are computed from doubles, not floats */
    uint64_t columns;
    char *nodes;
    lane_tree *trees;
    const uint64_t *slots; /* keys of a row, ascending: 2 * feature, + 1 if NaN is the least */
    uint32_t slot_count;
    bool single; /* all leaves have at most one vote, which is a float, and all votes have the same target */
    uint64_t block;
};

/* ---- keys ---- */

static inline int32_t key_of_float(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return ((bits & INT32_MAX) ^ (bits >> 31)) - (bits >> 31);
}

static inline int64_t key_of_double(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return ((bits & INT64_MAX) ^ (bits >> 63)) - (bits >> 63);
}

/* The key of the largest number of the rows' type that is at most s (`equal`), or less than s. */
static int64_t cut_below(bool wide, double s, bool equal)
{
    if (wide)
        return key_of_double(s) - !equal;
    float f = s > (double)FLT_MAX && s < (double)INFINITY ? FLT_MAX : s < -(double)FLT_MAX ? -INFINITY : (float)s;
    int64_t key = key_of_float(f);
    return (double)f > s || (!equal && (double)f == s) ? key - 1 : key;
}

/* ---- the tests of a node as cuts ---- */

typedef struct tests {
    uint32_t count;
    bool first; /* outcome below the first cut */
    bool nan_least, nan_cut;
} tests;

static tests tests_of(const onxi_tree_node *n)
{
    static const uint8_t cuts[] = { [ONXI_TREE_LEQ] = 1, [ONXI_TREE_LT] = 1, [ONXI_TREE_GTE] = 1,
                                    [ONXI_TREE_GT] = 1,  [ONXI_TREE_EQ] = 2, [ONXI_TREE_NEQ] = 2 };
    tests t = { .first = n->mode == ONXI_TREE_LEQ || n->mode == ONXI_TREE_LT || n->mode == ONXI_TREE_NEQ };
    if (n->mode == ONXI_TREE_MEMBER)
        t.count = 2 * n->by.set.count;
    else if (isnan(n->by.split)) /* no comparison with NaN holds */
        t.first = n->mode == ONXI_TREE_NEQ;
    else
        t.count = cuts[n->mode];
    bool last = t.first ^ (t.count & 1);
    if (n->missing != last) {
        t.nan_least = true;
        if (n->missing != t.first) { /* add a cut below all numbers: only NaN is at most this cut */
            t.nan_cut = true;
            t.count++;
            t.first = n->missing;
        }
    }
    return t;
}

static int64_t cut_at(const onxi_tree_lanes *l, const onxi_tree_node *n, const tests *t, uint32_t i)
{
    if (t->nan_cut && i-- == 0)
        return l->wide ? INT64_MIN : INT32_MIN;
    if (n->mode == ONXI_TREE_MEMBER)
        return cut_below(l->wide, l->forest->members[n->by.set.first + i / 2], i % 2 != 0);
    bool equal = n->mode == ONXI_TREE_LEQ || n->mode == ONXI_TREE_GT;
    return cut_below(l->wide, n->by.split, equal || i == 1);
}

/* ---- building ---- */

typedef struct waiting { /* a node whose children have positions but are not written yet */
    uint32_t node, depth;
    uint64_t at;
} waiting;

typedef struct maker {
    onxi_tree_lanes *l;
    waiting *queue;
    uint64_t *at; /* positions of each node's children */
    uint64_t used;
    uint32_t queued;
    lane_tree *tree;
} maker;

static uint64_t slot_of(const onxi_tree_node *n, const tests *t)
{
    return 2 * (uint64_t)n->feature + t->nan_least;
}

static uint32_t find_slot(const onxi_tree_lanes *l, uint64_t slot)
{
    uint32_t low = 0, high = l->slot_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->slots[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put(const onxi_tree_lanes *l, uint64_t place, int64_t cut, uint32_t at, uint64_t next, uint32_t leaf)
{
    if (l->wide)
        ((node_i64 *)(void *)l->nodes)[place] = (node_i64){ cut, at, (uint32_t)(next * sizeof(node_i64)), leaf };
    else
        ((node_i32 *)(void *)l->nodes)[place] =
            (node_i32){ (int32_t)cut, at, (uint32_t)(next * sizeof(node_i32)), leaf };
}

/* Skips nodes whose outcome is constant. */
static uint32_t passed_over(const onxi_forest *f, uint32_t to)
{
    while (!(to & ONXI_TREE_IS_LEAF)) {
        tests t = tests_of(&f->nodes[to]);
        if (t.count)
            break;
        to = f->nodes[to].next[t.first];
    }
    return to;
}

/* Assigns the positions of an inner node's children; nodes are written in the order in which they are queued. */
static void enqueue(maker *m, uint32_t to, uint32_t depth)
{
    if (to & ONXI_TREE_IS_LEAF)
        return;
    tests t = tests_of(&m->l->forest->nodes[to]);
    m->queue[m->queued++] = (waiting){ to, depth, m->used };
    m->at[to] = m->used;
    m->used += 2 * (uint64_t)t.count;
}

static uint32_t vote_of(const onxi_forest *f, uint32_t leaf)
{
    float vote = f->first[leaf] < f->first[leaf + 1] ? (float)f->weight[f->first[leaf]] : -0.0F;
    uint32_t bits;
    memcpy(&bits, &vote, sizeof bits);
    return bits;
}

static void place(maker *m, uint64_t at, uint32_t to, uint32_t depth)
{
    const onxi_tree_lanes *l = m->l;
    if (to & ONXI_TREE_IS_LEAF) {
        uint32_t leaf = to & ~ONXI_TREE_IS_LEAF;
        put(l, at, l->wide ? INT64_MAX : INT32_MAX, 0, at, l->single ? vote_of(l->forest, leaf) : leaf);
        m->tree->least = depth < m->tree->least ? depth : m->tree->least;
        m->tree->most = depth > m->tree->most ? depth : m->tree->most;
        return;
    }
    const onxi_tree_node *n = &l->forest->nodes[to];
    tests t = tests_of(n);
    put(l, at, cut_at(l, n, &t, t.count / 2), find_slot(l, slot_of(n, &t)) * LANES, m->at[to], 0);
}

typedef struct search {
    const onxi_tree_node *node;
    tests t;
    uint32_t at, side[2];
    uint64_t free;
} search;

/* Writes a binary search through the cuts low .. high - 1: its two children at `pair`, the nodes below them at free
 * positions. */
static void place_search(maker *m, search *s, uint32_t low, uint32_t high, uint64_t pair, uint32_t depth)
{
    const uint32_t middle = low + (high - low) / 2;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t from = side ? middle + 1 : low, to = side ? high : middle;
        if (from == to) { /* between two cuts */
            place(m, pair + side, s->side[s->t.first ^ (from & 1)], depth + 1);
            continue;
        }
        uint64_t below = s->free;
        s->free += 2;
        put(m->l, pair + side, cut_at(m->l, s->node, &s->t, from + (to - from) / 2), s->at, below, 0);
        place_search(m, s, from, to, below, depth + 1);
    }
}

static uint32_t search_depth(uint32_t cuts)
{
    uint32_t depth = 0;
    for (; cuts; cuts /= 2)
        depth++;
    return depth;
}

static void make_tree(maker *m, uint32_t root, lane_tree *tree)
{
    const onxi_tree_lanes *l = m->l;
    const uint64_t width = l->wide ? sizeof(node_i64) : sizeof(node_i32), top = m->used++;
    *tree = (lane_tree){ .root = (uint32_t)(top * width), .least = UINT32_MAX };
    m->tree = tree;
    m->queued = 0;
    root = passed_over(l->forest, root);
    enqueue(m, root, 0);
    place(m, top, root, 0);
    for (uint32_t i = 0; i < m->queued; i++) {
        const waiting w = m->queue[i];
        search s = { .node = &l->forest->nodes[w.node], .free = w.at + 2 };
        s.t = tests_of(s.node);
        s.at = find_slot(l, slot_of(s.node, &s.t)) * LANES;
        for (int side = 0; side < 2; side++) {
            s.side[side] = passed_over(l->forest, s.node->next[side]);
            enqueue(m, s.side[side], w.depth + search_depth(s.t.count));
        }
        place_search(m, &s, 0, s.t.count, w.at, w.depth);
    }
}

static int compare_slots(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Collects the keys that tests use, and counts the nodes. Thousands of nodes use the same few keys, so those collected
 * recently are skipped before sorting. */
static onx_status count_all(const onx_prepare *p, onxi_tree_lanes *l, uint64_t *nodes)
{
    const onxi_forest *f = l->forest;
    uint64_t *slots = ONXI_ARRAY(p->arena, uint64_t, f->node_count + UINT64_C(1));
    uint64_t count = 0, seen[SEEN] = { 0 }; /* slot + 1; 0: empty */
    if (!slots)
        return ONX_E_MEMORY;
    *nodes = f->root_count;
    for (uint32_t i = 0; i < f->node_count; i++) {
        const onxi_tree_node *n = &f->nodes[i];
        if (n->mode == ONXI_TREE_LEAF)
            continue;
        tests t = tests_of(n);
        *nodes += 2 * (uint64_t)t.count;
        const uint64_t slot = slot_of(n, &t);
        if (t.count && seen[slot % SEEN] != slot + 1)
            slots[count++] = slot, seen[slot % SEEN] = slot + 1;
    }
    qsort(slots, count, sizeof *slots, compare_slots);
    for (uint64_t i = 0; i < count; i++)
        if (!l->slot_count || slots[l->slot_count - 1] != slots[i])
            slots[l->slot_count++] = slots[i];
    l->slots = slots;
    return ONX_OK;
}

static bool votes_are_single(const onxi_forest *f)
{
    if (f->only_target == UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < f->leaf_count; i++)
        if (f->first[i + 1] - f->first[i] > 1)
            return false;
    for (uint32_t i = 0; i < f->first[f->leaf_count]; i++)
        if (!(fabs(f->weight[i]) <= (double)FLT_MAX) || (double)(float)f->weight[i] != f->weight[i])
            return false;
    return true;
}

onx_status onxi_tree_lanes_make(const onx_prepare *p, const onxi_forest *f, onxi_tree_aggregate how, int dtype,
                                uint64_t columns, const onxi_tree_lanes **out)
{
    onxi_tree_lanes *l = ONXI_NEW(p->arena, onxi_tree_lanes);
    uint64_t nodes;
    if (!l)
        return ONX_E_MEMORY;
    *l = (onxi_tree_lanes){ .forest = f, .wide = dtype != ONX_FLOAT, .columns = columns };
    const uint64_t width = l->wide ? sizeof(node_i64) : sizeof(node_i32), key = l->wide ? 8 : 4;
    l->single = how <= ONXI_TREE_SUM && votes_are_single(f);
    ONX_TRY(count_all(p, l, &nodes));
    if (nodes > UINT32_MAX / width - 1 || l->slot_count > KEY_BYTES * 16 / (LANES * key))
        return ONX_E_UNSUPPORTED;
    maker m = { .l = l };
    m.queue = ONXI_ARRAY(p->arena, waiting, f->node_count + UINT64_C(1));
    m.at = ONXI_ARRAY(p->arena, uint64_t, f->node_count + UINT64_C(1));
    l->trees = ONXI_ARRAY(p->arena, lane_tree, f->root_count + UINT64_C(1));
    l->nodes = onx_arena_alloc(p->arena, (size_t)((nodes + 1) * width));
    if (!m.queue || !m.at || !l->trees || !l->nodes)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < f->root_count; i++)
        make_tree(&m, f->roots[i], &l->trees[i]);
    l->block = KEY_BYTES / (LANES * key * (l->slot_count + UINT64_C(1)));
    l->block = LANES * (l->block < 1 ? 1 : l->block > ROWS / LANES ? ROWS / LANES : l->block);
    *out = l;
    return ONX_OK;
}

/* ---- walking ---- */

uint64_t onxi_tree_lanes_block(const onxi_tree_lanes *l)
{
    return l->block;
}

uint64_t onxi_tree_lanes_workspace(const onxi_tree_lanes *l)
{
    return l->block * l->slot_count * (l->wide ? 8 : 4);
}

static inline void vote(const onxi_tree_lanes *l, onxi_tree_aggregate how, uint32_t leaf, double *scores)
{
    if (!l->single) {
        onxi_tree_vote(l->forest, how, leaf, scores);
        return;
    }
    float vote;
    memcpy(&vote, &leaf, sizeof vote);
    scores[l->forest->only_target] += (double)vote;
}

/* Computes the keys of `count` rows; the keys of eight rows for one slot are contiguous. */
static void make_keys_i32(const onxi_tree_lanes *l, const onx_value *x, uint64_t row, uint64_t count, double *unused,
                          int32_t *keys)
{
    (void)unused;
    for (uint64_t i = 0; i < count; i++) {
        const float *from = (const float *)x->data + (row + i) * l->columns;
        int32_t *to = keys + i / LANES * LANES * l->slot_count + i % LANES;
        for (uint32_t s = 0; s < l->slot_count; s++, to += LANES) {
            const float v = from[l->slots[s] / 2];
            *to = v == v ? key_of_float(v) : l->slots[s] % 2 ? INT32_MIN : INT32_MAX;
        }
    }
}

static void make_keys_i64(const onxi_tree_lanes *l, const onx_value *x, uint64_t row, uint64_t count, double *numbers,
                          int64_t *keys)
{
    for (uint64_t i = 0; i < count; i++) {
        const double *from = numbers;
        int64_t *to = keys + i / LANES * LANES * l->slot_count + i % LANES;
        if (x->dtype == ONX_DOUBLE)
            from = (const double *)x->data + (row + i) * l->columns;
        else
            onxi_ml_load(x, row + i, l->columns, numbers);
        for (uint32_t s = 0; s < l->slot_count; s++, to += LANES) {
            const double v = from[l->slots[s] / 2];
            *to = v == v ? key_of_double(v) : l->slots[s] % 2 ? INT64_MIN : INT64_MAX;
        }
    }
}

#define EACH_LANE(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define LOAD_LANE(i)  uint32_t at##i = at[i];
#define STORE_LANE(i) at[i] = at##i;
#define STEP_i32(i)   at##i = step_i32(l, key + i * apart, at##i);
#define STEP_i64(i)   at##i = step_i64(l, key + i * apart, at##i);
#define MOVED_LANE(i) | (at##i ^ at[i])

/* `apart` is the distance between the keys of adjacent lanes: 1 for rows, 0 for trees. */
#define WALK(KEY, sfx)                                                                                                 \
    static inline const node_##sfx *node_##sfx##_at(const onxi_tree_lanes *l, uint32_t at)                             \
    {                                                                                                                  \
        return (const node_##sfx *)(const void *)(l->nodes + at);                                                      \
    }                                                                                                                  \
    static inline uint32_t step_##sfx(const onxi_tree_lanes *l, const KEY *key, uint32_t at)                           \
    {                                                                                                                  \
        const node_##sfx *n = node_##sfx##_at(l, at);                                                                  \
        return n->next + (uint32_t)(key[n->at] > n->cut) * (uint32_t)sizeof(node_##sfx);                               \
    }                                                                                                                  \
    static inline void walk_##sfx(const onxi_tree_lanes *l, const KEY *key, unsigned apart, uint32_t least,            \
                                  uint32_t most, uint32_t *at)                                                         \
    {                                                                                                                  \
        EACH_LANE(LOAD_LANE)                                                                                           \
        for (uint32_t d = 0; d < least; d++) {                                                                         \
            EACH_LANE(STEP_##sfx)                                                                                      \
        }                                                                                                              \
        EACH_LANE(STORE_LANE)                                                                                          \
        for (uint32_t d = least; d < most; d++) {                                                                      \
            EACH_LANE(STEP_##sfx)                                                                                      \
            if (!(0 EACH_LANE(MOVED_LANE)))                                                                            \
                break;                                                                                                 \
            EACH_LANE(STORE_LANE)                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    /* Walks eight rows through each tree. */                                                                          \
    static void rows_##sfx(const onxi_tree_lanes *l, onxi_tree_aggregate how, const KEY *keys, uint64_t groups,        \
                           double *scores)                                                                             \
    {                                                                                                                  \
        const uint64_t targets = l->forest->target_count;                                                              \
        for (uint32_t t = 0; t < l->forest->root_count; t++) {                                                         \
            const lane_tree tree = l->trees[t];                                                                        \
            for (uint64_t g = 0; g < groups; g++) {                                                                    \
                const uint32_t r = tree.root;                                                                          \
                uint32_t at[LANES] = { r, r, r, r, r, r, r, r };                                                       \
                walk_##sfx(l, keys + g * LANES * l->slot_count, 1, tree.least, tree.most, at);                         \
                for (uint64_t i = 0; i < LANES; i++)                                                                   \
                    vote(l, how, node_##sfx##_at(l, at[i])->leaf, scores + (g * LANES + i) * targets);                 \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* Walks one row through eight trees at a time; the last ones are fewer. */                                        \
    static void trees_##sfx(const onxi_tree_lanes *l, onxi_tree_aggregate how, const KEY *key, double *scores)         \
    {                                                                                                                  \
        const uint32_t count = l->forest->root_count;                                                                  \
        for (uint32_t t = 0; t < count; t += LANES) {                                                                  \
            const uint32_t lanes = count - t < LANES ? count - t : LANES;                                              \
            uint32_t at[LANES], least = UINT32_MAX, most = 0;                                                          \
            for (uint32_t i = 0; i < LANES; i++) {                                                                     \
                const lane_tree *tree = &l->trees[t + (i < lanes ? i : 0)];                                            \
                at[i] = tree->root;                                                                                    \
                least = tree->least < least ? tree->least : least;                                                     \
                most = tree->most > most ? tree->most : most;                                                          \
            }                                                                                                          \
            walk_##sfx(l, key, 0, least, most, at);                                                                    \
            for (uint32_t i = 0; i < lanes; i++)                                                                       \
                vote(l, how, node_##sfx##_at(l, at[i])->leaf, scores);                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void run_##sfx(const onxi_tree_lanes *l, onxi_tree_aggregate how, const onx_value *x, uint64_t row,         \
                          uint64_t count, KEY *keys, double *numbers, double *scores)                                  \
    {                                                                                                                  \
        const uint64_t groups = count / LANES;                                                                         \
        make_keys_##sfx(l, x, row, count, numbers, keys);                                                              \
        rows_##sfx(l, how, keys, groups, scores);                                                                      \
        for (uint64_t i = groups * LANES; i < count; i++)                                                              \
            trees_##sfx(l, how, keys + groups * LANES * l->slot_count + i % LANES,                                     \
                        scores + i * l->forest->target_count);                                                         \
    }
WALK(int32_t, i32)
WALK(int64_t, i64)

void onxi_tree_lanes_run(const onxi_tree_lanes *l, onxi_tree_aggregate how, const onx_value *x, uint64_t row,
                         uint64_t count, void *workspace, double *numbers, double *scores)
{
    if (l->wide)
        run_i64(l, how, x, row, count, workspace, numbers, scores);
    else
        run_i32(l, how, x, row, count, workspace, numbers, scores);
}
