/* tree.h - decision trees in the form in which they run, shared by all operators with trees. */
#ifndef ONXI_KERNEL_ML_TREE_H
#define ONXI_KERNEL_ML_TREE_H

#include "kernel/core/ml.h"

typedef enum onxi_tree_mode { /* values of nodes_modes in TreeEnsemble */
                              ONXI_TREE_LEQ,
                              ONXI_TREE_LT,
                              ONXI_TREE_GTE,
                              ONXI_TREE_GT,
                              ONXI_TREE_EQ,
                              ONXI_TREE_NEQ,
                              ONXI_TREE_MEMBER,
                              ONXI_TREE_LEAF /* only while reading */
} onxi_tree_mode;

/* The target of a branch is an inner node, or, with this bit, a leaf. */
#define ONXI_TREE_IS_LEAF UINT32_C(0x80000000)

typedef struct onxi_tree_node {
    union {
        double split;
        struct {
            uint32_t first, count;
        } set; /* range in `members` */
    } by;
    uint32_t feature;
    uint32_t next[2]; /* branch if the test fails, branch if it holds */
    uint8_t mode;
    bool missing; /* the branch that NaN takes */
} onxi_tree_node;

/* Every inner node is reachable from one root only and on one path, so a row takes no more steps than there are nodes.
 * All indices are valid. */
typedef struct onxi_forest {
    const onxi_tree_node *nodes;
    const uint32_t *roots;
    const double *members; /* the members of each set, in ascending order */
    const uint32_t *first; /* the votes of leaf i are first[i] .. first[i + 1] - 1 */
    const uint32_t *target;
    const double *weight;
    uint32_t root_count, target_count, node_count, leaf_count;
    uint32_t only_target; /* the target of all votes; UINT32_MAX: there are several targets, or no votes */
} onxi_forest;

/* Reads the trees of TreeEnsembleRegressor and TreeEnsembleClassifier. Votes are in the attributes `votes`_ids and so
 * on, for targets below `targets`. */
onx_status onxi_forest_by_ids(const onx_prepare *p, const char *votes, uint64_t targets, uint64_t columns,
                              onxi_forest *out);
/* Reads the trees of TreeEnsemble. */
onx_status onxi_forest_by_places(const onx_prepare *p, uint64_t targets, uint64_t columns, onxi_forest *out);

/* ---- aggregating votes ---- */

typedef enum onxi_tree_aggregate { /* values of aggregate_function in TreeEnsemble */
                                   ONXI_TREE_AVERAGE,
                                   ONXI_TREE_SUM,
                                   ONXI_TREE_MIN,
                                   ONXI_TREE_MAX,
                                   ONXI_TREE_AGGREGATE_COUNT
} onxi_tree_aggregate;

/* Applies the votes of a leaf to the scores of a row, one per target. Any vote replaces a NaN. */
static inline void onxi_tree_vote(const onxi_forest *f, onxi_tree_aggregate how, uint32_t leaf, double *scores)
{
    for (uint32_t i = f->first[leaf]; i < f->first[leaf + 1]; i++) {
        double *score = &scores[f->target[i]], weight = f->weight[i];
        if (how == ONXI_TREE_MIN)
            *score = weight < *score || *score != *score ? weight : *score;
        else if (how == ONXI_TREE_MAX)
            *score = weight > *score || *score != *score ? weight : *score;
        else
            *score += weight;
    }
}

/* ---- several rows, or several trees, at once (tree_lanes.c) ---- */

typedef struct onxi_tree_lanes onxi_tree_lanes;
/* Builds the tables for walking a forest with rows of `dtype`; the forest must outlive them. ONX_E_UNSUPPORTED: the
 * forest is too large. */
onx_status onxi_tree_lanes_make(const onx_prepare *p, const onxi_forest *f, onxi_tree_aggregate how, int dtype,
                                uint64_t columns, const onxi_tree_lanes **out);
/* The number of rows to process at a time, and the bytes of workspace for them. */
uint64_t onxi_tree_lanes_block(const onxi_tree_lanes *l);
uint64_t onxi_tree_lanes_workspace(const onxi_tree_lanes *l);
/* Adds the votes of all trees for `count` rows of x (at most a block) to scores[count][target_count]. `numbers` is
 * workspace for one row, used if x is neither float nor double. */
void onxi_tree_lanes_run(const onxi_tree_lanes *l, onxi_tree_aggregate how, const onx_value *x, uint64_t row,
                         uint64_t count, void *workspace, double *numbers, double *scores);

#endif
