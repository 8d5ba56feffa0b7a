/* tree_read.c - reads decision trees from attributes, in both forms of the standard. Attributes are untrusted: lengths,
 * indices and the shape of the trees are checked here, so that running the trees needs no checks. */
#include "kernel/ml/tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lists ---- */

static onx_status ints_of(const onx_prepare *p, const char *name, uint64_t count, bool needed, const int64_t **out)
{
    uint32_t given = 0;
    *out = onx_prepare_ints(p, name, &given);
    if (!given && !needed) {
        *out = NULL;
        return ONX_OK;
    }
    if (given != count)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %u elements, expected %llu", name, given,
                                (unsigned long long)count);
    return ONX_OK;
}

static onx_status numbers_of(const onx_prepare *p, const char *name, uint64_t count, bool needed, onxi_ml_numbers *out)
{
    ONX_TRY(onxi_ml_numbers_of(p, name, out));
    if (out->count != count && (needed || out->count))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %llu elements, expected %llu", name,
                                (unsigned long long)out->count, (unsigned long long)count);
    return ONX_OK;
}

static onx_status start(const onx_prepare *p, uint64_t nodes, uint64_t leaves, uint64_t votes, onxi_tree_node **made)
{
    *made = NULL;
    if (!nodes)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are no nodes");
    if (nodes >= ONXI_TREE_IS_LEAF || leaves >= ONXI_TREE_IS_LEAF || votes >= UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_LIMIT, "%llu nodes and %llu votes are too many", (unsigned long long)nodes,
                                (unsigned long long)votes);
    *made = ONXI_ARRAY(p->arena, onxi_tree_node, nodes);
    return *made ? ONX_OK : ONX_E_MEMORY;
}

static onx_status set_feature(const onx_prepare *p, uint64_t i, int64_t feature, uint64_t columns, onxi_tree_node *node)
{
    if (feature < 0 || (uint64_t)feature >= columns || feature > UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "node %llu looks at feature %lld of %llu", (unsigned long long)i,
                                (long long)feature, (unsigned long long)columns);
    node->feature = (uint32_t)feature;
    return ONX_OK;
}

static onx_status set_target(const onx_prepare *p, const char *name, uint64_t i, int64_t target, uint64_t targets,
                             uint32_t *out)
{
    if (target < 0 || (uint64_t)target >= targets || target >= UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "entry %llu of %s is %lld, expected 0 to %lld", (unsigned long long)i,
                                name, (long long)target, (long long)targets - 1);
    *out = (uint32_t)target;
    return ONX_OK;
}

static uint32_t only_target(const uint32_t *target, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        if (target[i] != target[0])
            return UINT32_MAX;
    return count ? target[0] : UINT32_MAX;
}

/* Checks that each inner node is reached from the roots once. So there are no cycles and no shared subtrees, which
 * could expand to exponential size. */
static onx_status check_trees(const onx_prepare *p, const onxi_forest *f, uint64_t count)
{
    uint8_t *reached = ONXI_ARRAY(p->arena, uint8_t, count);
    uint32_t *open = ONXI_ARRAY(p->arena, uint32_t, count + 1);
    if (!reached || !open)
        return ONX_E_MEMORY;
    for (uint32_t r = 0; r < f->root_count; r++) {
        uint64_t left = 0;
        if (f->roots[r] & ONXI_TREE_IS_LEAF)
            continue;
        for (uint32_t at = f->roots[r];; at = open[--left]) {
            if (reached[at]++)
                return onx_prepare_fail(p, ONX_E_INVALID, "node %u is reached by two paths, so this is not a tree", at);
            /* With n nodes, at most n + 1 branches can be pending before a node is reached twice. */
            for (int side = 0; side < 2; side++) {
                uint32_t next = f->nodes[at].next[side];
                if (next & ONXI_TREE_IS_LEAF)
                    continue;
                if (left == count || reached[next])
                    return onx_prepare_fail(p, ONX_E_INVALID, "node %u is reached by two paths, so this is not a tree",
                                            next);
                open[left++] = next;
            }
            if (!left)
                break;
        }
    }
    return ONX_OK;
}

/* ---- nodes identified by tree and number ---- */

typedef struct entry {
    int64_t tree, node;
    uint32_t index;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

typedef struct lists {
    const int64_t *tree, *node, *feature, *yes, *no, *missing;
    const onx_bytes *mode;
    onxi_ml_numbers split;
    uint32_t count;
    entry *sorted;
} lists;

/* The index of a node in sorted order, or UINT32_MAX. Numbers mostly have no gaps, so the index is first guessed by the
 * distance from the node `known`. */
static uint32_t find_entry(const lists *l, uint32_t known, int64_t tree, int64_t node)
{
    const entry key = { tree, node, 0 };
    const uint64_t guess = known + ((uint64_t)node - (uint64_t)l->sorted[known].node);
    if (guess < l->count && compare_entries(&key, &l->sorted[guess]) == 0)
        return (uint32_t)guess;
    const entry *found = bsearch(&key, l->sorted, l->count, sizeof key, compare_entries);
    return found ? (uint32_t)(found - l->sorted) : UINT32_MAX;
}

/* Sorts the nodes. Converters mostly write them in order, so that is checked first, which is faster. */
static onx_status sort_entries(const onx_prepare *p, lists *l)
{
    uint32_t in_order = 1;
    while (in_order < l->count && compare_entries(&l->sorted[in_order - 1], &l->sorted[in_order]) < 0)
        in_order++;
    if (in_order >= l->count)
        return ONX_OK;
    qsort(l->sorted, l->count, sizeof *l->sorted, compare_entries);
    for (uint32_t i = 1; i < l->count; i++)
        if (compare_entries(&l->sorted[i - 1], &l->sorted[i]) == 0)
            return onx_prepare_fail(p, ONX_E_INVALID, "node %lld of tree %lld is there twice",
                                    (long long)l->sorted[i].node, (long long)l->sorted[i].tree);
    return ONX_OK;
}

static onx_status read_lists(const onx_prepare *p, lists *l)
{
    uint32_t modes;
    onxi_ml_numbers unused;
    l->tree = onx_prepare_ints(p, "nodes_treeids", &l->count);
    ONX_TRY(ints_of(p, "nodes_nodeids", l->count, true, &l->node));
    ONX_TRY(ints_of(p, "nodes_featureids", l->count, true, &l->feature));
    ONX_TRY(ints_of(p, "nodes_truenodeids", l->count, true, &l->yes));
    ONX_TRY(ints_of(p, "nodes_falsenodeids", l->count, true, &l->no));
    ONX_TRY(ints_of(p, "nodes_missing_value_tracks_true", l->count, false, &l->missing));
    ONX_TRY(numbers_of(p, "nodes_values", l->count, true, &l->split));
    ONX_TRY(numbers_of(p, "nodes_hitrates", l->count, false, &unused));
    l->mode = onxi_ml_texts_of(p, "nodes_modes", &modes);
    if (modes != l->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute nodes_modes has %u elements, expected %u", modes,
                                l->count);
    l->sorted = ONXI_ARRAY(p->arena, entry, l->count + 1u);
    if (!l->sorted)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < l->count; i++)
        l->sorted[i] = (entry){ l->tree[i], l->node[i], i };
    return sort_entries(p, l);
}

static onx_status read_mode(const onx_prepare *p, onx_str name, uint8_t *out)
{
    if (onx_str_is(name, "LEAF")) { /* about half of all nodes are leaves */
        *out = ONXI_TREE_LEAF;
        return ONX_OK;
    }
    static const char *const names[] = {
        [ONXI_TREE_LEQ] = "BRANCH_LEQ", [ONXI_TREE_LT] = "BRANCH_LT", [ONXI_TREE_GTE] = "BRANCH_GTE",
        [ONXI_TREE_GT] = "BRANCH_GT",   [ONXI_TREE_EQ] = "BRANCH_EQ", [ONXI_TREE_NEQ] = "BRANCH_NEQ",
        [ONXI_TREE_MEMBER] = NULL, /* not a mode of this operator */
    };
    for (uint8_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && onx_str_is(name, names[i])) {
            *out = i;
            return ONX_OK;
        }
    return onx_prepare_fail(p, ONX_E_INVALID, "a node has the mode \"%.*s\"", ONX_ARG(name));
}

static onx_status read_node(const onx_prepare *p, const lists *l, uint32_t place, uint64_t columns,
                            onxi_tree_node *nodes)
{
    const uint32_t i = l->sorted[place].index;
    onxi_tree_node *n = &nodes[i];
    if (n->mode == ONXI_TREE_LEAF)
        return ONX_OK;
    ONX_TRY(set_feature(p, i, l->feature[i], columns, n));
    n->by.split = l->split.at[i];
    n->missing = l->missing && l->missing[i] != 0;
    for (int side = 0; side < 2; side++) {
        int64_t id = side ? l->yes[i] : l->no[i];
        const uint32_t found = find_entry(l, place, l->tree[i], id);
        if (found == UINT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "node %lld of tree %lld leads to node %lld, which does not exist",
                                    (long long)l->node[i], (long long)l->tree[i], (long long)id);
        const uint32_t next = l->sorted[found].index;
        n->next[side] = nodes[next].mode == ONXI_TREE_LEAF ? next | ONXI_TREE_IS_LEAF : next;
    }
    return ONX_OK;
}

/* The root of a tree is its first node; trees are ordered by their numbers. */
static onx_status read_roots(const onx_prepare *p, const lists *l, const onxi_tree_node *nodes, onxi_forest *f)
{
    uint32_t *roots = ONXI_ARRAY(p->arena, uint32_t, l->count);
    if (!roots)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < l->count;) {
        uint32_t root = l->sorted[i].index;
        int64_t tree = l->sorted[i].tree;
        for (; i < l->count && l->sorted[i].tree == tree; i++)
            root = l->sorted[i].index < root ? l->sorted[i].index : root;
        roots[f->root_count++] = nodes[root].mode == ONXI_TREE_LEAF ? root | ONXI_TREE_IS_LEAF : root;
    }
    f->roots = roots;
    return ONX_OK;
}

/* Sorts votes by leaves, keeping the given order within a leaf. Votes of inner nodes are ignored. */
static onx_status read_votes(const onx_prepare *p, const lists *l, const char *votes, uint64_t targets, onxi_forest *f)
{
    char name[4][32];
    static const char *const parts[] = { "treeids", "nodeids", "ids", "weights" };
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s_%s", votes, parts[i]);
    const int64_t *tree, *node, *target;
    onxi_ml_numbers weight;
    uint32_t count;
    tree = onx_prepare_ints(p, name[0], &count);
    ONX_TRY(ints_of(p, name[1], count, true, &node));
    ONX_TRY(ints_of(p, name[2], count, true, &target));
    ONX_TRY(numbers_of(p, name[3], count, true, &weight));
    uint32_t *leaf = ONXI_ARRAY(p->arena, uint32_t, count + 1u);
    uint32_t *first = ONXI_ARRAY(p->arena, uint32_t, l->count + 2u);
    uint32_t *to = ONXI_ARRAY(p->arena, uint32_t, count + 1u);
    double *weights = ONXI_ARRAY(p->arena, double, count + 1u);
    if (!leaf || !first || !to || !weights)
        return ONX_E_MEMORY;
    for (uint32_t i = 0, found = 0; i < count; i++) {
        found = find_entry(l, found, tree[i], node[i]);
        if (found == UINT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID,
                                    "entry %u of %s is for node %lld of tree %lld, which does not exist", i, name[1],
                                    (long long)node[i], (long long)tree[i]);
        leaf[i] = l->sorted[found].index;
        first[leaf[i] + 2u]++;
    }
    for (uint32_t i = 0; i < l->count; i++)
        first[i + 2] += first[i + 1];
    for (uint32_t i = 0; i < count; i++) { /* first[i + 1] moves from the start of leaf i to its end */
        uint32_t at = first[leaf[i] + 1u]++;
        ONX_TRY(set_target(p, name[2], i, target[i], targets, &to[at]));
        weights[at] = weight.at[i] + 0.0; /* never -0, which is the sum of no votes */
    }
    f->first = first;
    f->target = to;
    f->weight = weights;
    f->only_target = only_target(to, count);
    return ONX_OK;
}

onx_status onxi_forest_by_ids(const onx_prepare *p, const char *votes, uint64_t targets, uint64_t columns,
                              onxi_forest *out)
{
    lists l = { 0 };
    onxi_tree_node *nodes = NULL;
    *out = (onxi_forest){ .target_count = (uint32_t)targets };
    ONX_TRY(read_lists(p, &l));
    ONX_TRY(start(p, l.count, 0, 0, &nodes));
    for (uint32_t i = 0; i < l.count; i++)
        ONX_TRY(read_mode(p, onx_view(l.mode[i]), &nodes[i].mode));
    for (uint32_t i = 0; i < l.count; i++)
        ONX_TRY(read_node(p, &l, i, columns, nodes));
    out->nodes = nodes;
    out->node_count = out->leaf_count = l.count;
    ONX_TRY(read_roots(p, &l, nodes, out));
    ONX_TRY(read_votes(p, &l, votes, targets, out));
    return check_trees(p, out, l.count);
}

/* ---- nodes identified by position ---- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* membership_values contains a set, terminated by NaN, for each node that tests one, in the order of the nodes. */
static onx_status read_sets(const onx_prepare *p, onxi_tree_node *nodes, uint64_t count, onxi_forest *f)
{
    onxi_ml_numbers all;
    uint64_t at = 0, sets = 0, wanted = 0;
    ONX_TRY(onxi_ml_numbers_of(p, "membership_values", &all));
    double *members = ONXI_ARRAY(p->arena, double, all.count + 1);
    if (!members)
        return ONX_E_MEMORY;
    if (all.count >= UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_LIMIT, "%llu members are too many", (unsigned long long)all.count);
    for (uint64_t i = 0; i < all.count; i++) {
        members[i] = all.at[i];
        sets += isnan(members[i]) != 0;
    }
    for (uint64_t i = 0; i < count; i++)
        wanted += nodes[i].mode == ONXI_TREE_MEMBER;
    if (sets != wanted || (all.count && !isnan(members[all.count - 1])))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "membership_values has %llu sets that end in NaN, and %llu nodes ask for one",
                                (unsigned long long)sets, (unsigned long long)wanted);
    for (uint64_t i = 0; i < count; i++) {
        if (nodes[i].mode != ONXI_TREE_MEMBER)
            continue;
        uint64_t end = at;
        while (!isnan(members[end]))
            end++;
        qsort(members + at, end - at, sizeof *members, compare_numbers);
        nodes[i].by.set.first = (uint32_t)at;
        nodes[i].by.set.count = (uint32_t)(end - at);
        at = end + 1;
    }
    f->members = members;
    return ONX_OK;
}

static onx_status set_branch(const onx_prepare *p, uint64_t i, int64_t to, bool leaf, uint64_t nodes, uint64_t leaves,
                             uint32_t *out)
{
    if (to < 0 || (uint64_t)to >= (leaf ? leaves : nodes))
        return onx_prepare_fail(p, ONX_E_INVALID, "node %llu leads to %s %lld of %llu", (unsigned long long)i,
                                leaf ? "leaf" : "node", (long long)to, (unsigned long long)(leaf ? leaves : nodes));
    *out = leaf ? (uint32_t)to | ONXI_TREE_IS_LEAF : (uint32_t)to;
    return ONX_OK;
}

static onx_status read_leaves(const onx_prepare *p, uint64_t targets, uint64_t count, const double *weight,
                              onxi_forest *f)
{
    const int64_t *target;
    ONX_TRY(ints_of(p, "leaf_targetids", count, true, &target));
    uint32_t *to = ONXI_ARRAY(p->arena, uint32_t, count + 1), *first = ONXI_ARRAY(p->arena, uint32_t, count + 1);
    if (!to || !first)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        ONX_TRY(set_target(p, "leaf_targetids", i, target[i], targets, &to[i]));
        first[i + 1] = (uint32_t)i + 1;
    }
    f->first = first;
    f->target = to;
    f->weight = weight;
    f->only_target = only_target(to, count);
    return ONX_OK;
}

static onx_status read_places(const onx_prepare *p, const onxi_ml_numbers *split, uint64_t leaves, uint64_t columns,
                              onxi_tree_node *nodes)
{
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *missing;
    onxi_ml_numbers mode, unused;
    uint64_t count = split->count;
    ONX_TRY(numbers_of(p, "nodes_modes", count, true, &mode));
    ONX_TRY(ints_of(p, "nodes_featureids", count, true, &feature));
    ONX_TRY(ints_of(p, "nodes_truenodeids", count, true, &yes));
    ONX_TRY(ints_of(p, "nodes_falsenodeids", count, true, &no));
    ONX_TRY(ints_of(p, "nodes_trueleafs", count, true, &yes_leaf));
    ONX_TRY(ints_of(p, "nodes_falseleafs", count, true, &no_leaf));
    ONX_TRY(ints_of(p, "nodes_missing_value_tracks_true", count, false, &missing));
    ONX_TRY(numbers_of(p, "nodes_hitrates", count, false, &unused));
    for (uint64_t i = 0; i < count; i++) {
        onxi_tree_node *n = &nodes[i];
        if (!(mode.at[i] >= 0 && mode.at[i] <= ONXI_TREE_MEMBER))
            return onx_prepare_fail(p, ONX_E_INVALID, "node %llu has the mode %g", (unsigned long long)i, mode.at[i]);
        n->mode = (uint8_t)mode.at[i];
        n->by.split = split->at[i];
        /* NaN is not equal to any number, for onnxruntime and the reference. In the older operators the attribute alone
         * decides, as the text says of both. */
        n->missing = (missing && missing[i] != 0) || n->mode == ONXI_TREE_NEQ;
        ONX_TRY(set_feature(p, i, feature[i], columns, n));
        ONX_TRY(set_branch(p, i, no[i], no_leaf[i] != 0, count, leaves, &n->next[0]));
        ONX_TRY(set_branch(p, i, yes[i], yes_leaf[i] != 0, count, leaves, &n->next[1]));
    }
    return ONX_OK;
}

onx_status onxi_forest_by_places(const onx_prepare *p, uint64_t targets, uint64_t columns, onxi_forest *out)
{
    onxi_ml_numbers split, weight;
    onxi_tree_node *nodes = NULL;
    *out = (onxi_forest){ .target_count = (uint32_t)targets };
    ONX_TRY(onxi_ml_numbers_of(p, "nodes_splits", &split));
    ONX_TRY(onxi_ml_numbers_of(p, "leaf_weights", &weight));
    ONX_TRY(start(p, split.count, weight.count, weight.count, &nodes));
    ONX_TRY(read_places(p, &split, weight.count, columns, nodes));
    ONX_TRY(read_sets(p, nodes, split.count, out));
    ONX_TRY(read_leaves(p, targets, weight.count, weight.at, out));
    const int64_t *places = onx_prepare_ints(p, "tree_roots", &out->root_count);
    uint32_t *roots = ONXI_ARRAY(p->arena, uint32_t, out->root_count + 1u);
    if (!roots)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < out->root_count; i++) {
        if (places[i] < 0 || (uint64_t)places[i] >= split.count)
            return onx_prepare_fail(p, ONX_E_INVALID, "the root of tree %u is node %lld of %llu", i,
                                    (long long)places[i], (unsigned long long)split.count);
        roots[i] = (uint32_t)places[i];
    }
    out->nodes = nodes;
    out->node_count = (uint32_t)split.count;
    out->leaf_count = (uint32_t)weight.count;
    out->roots = roots;
    return check_trees(p, out, split.count);
}
