/* tree.h - decision trees as they are run: the same for all operators that have them. */
#ifndef ONXI_KERNEL_ML_TREE_H
#define ONXI_KERNEL_ML_TREE_H

#include "kernel/core/ml.h"

typedef enum onxi_tree_mode { /* numbers of nodes_modes in TreeEnsemble */
                              ONXI_TREE_LEQ,
                              ONXI_TREE_LT,
                              ONXI_TREE_GTE,
                              ONXI_TREE_GT,
                              ONXI_TREE_EQ,
                              ONXI_TREE_NEQ,
                              ONXI_TREE_MEMBER,
                              ONXI_TREE_LEAF /* only while reading */
} onxi_tree_mode;

/* Where a branch goes: an inner node, or with this bit a leaf. */
#define ONXI_TREE_IS_LEAF UINT32_C(0x80000000)

typedef struct onxi_tree_node {
    union {
        double split;
        struct {
            uint32_t first, count;
        } set; /* of members */
    } by;
    uint32_t feature;
    uint32_t next[2]; /* if not, if so */
    uint8_t mode;
    bool missing; /* where NaN goes */
} onxi_tree_node;

/* Every inner node that a root leads to is reached once, so that a row costs no more steps than there are nodes, and
 * all indexes are good. */
typedef struct onxi_forest {
    const onxi_tree_node *nodes;
    const uint32_t *roots;
    const double *members; /* of each set in ascending order */
    const uint32_t *first; /* votes of leaf i: first[i] .. first[i + 1] - 1 */
    const uint32_t *target;
    const double *weight;
    uint32_t root_count, target_count;
    uint32_t only_target; /* that all votes are for; UINT32_MAX: there are several, or no votes */
} onxi_forest;

/* TreeEnsembleRegressor and TreeEnsembleClassifier: votes are in `votes`_ids and so on, for less than `targets`. */
onx_status onxi_forest_by_ids(const onx_prepare *p, const char *votes, uint64_t targets, uint64_t columns,
                              onxi_forest *out);
/* TreeEnsemble */
onx_status onxi_forest_by_places(const onx_prepare *p, uint64_t targets, uint64_t columns, onxi_forest *out);

/* The leaf that a row of features ends in. */
uint32_t onxi_forest_leaf(const onxi_forest *f, uint32_t root, const double *features);

#endif
