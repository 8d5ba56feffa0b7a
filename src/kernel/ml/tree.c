/* tree.c - TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier: each tree leads a row of features to a leaf,
 * and the votes of the leaves are aggregated per target. */
#include "kernel/ml/tree.h"

#include <math.h>

static bool is_member(const onxi_forest *f, const onxi_tree_node *n, double x)
{
    uint32_t low = n->by.set.first, high = low + n->by.set.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (f->members[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->by.set.first + n->by.set.count && f->members[low] == x;
}

static inline bool decide(const onxi_forest *f, const onxi_tree_node *n, double x)
{
    if (isnan(x))
        return n->missing;
    switch (n->mode) {
    case ONXI_TREE_LEQ:
        return x <= n->by.split;
    case ONXI_TREE_LT:
        return x < n->by.split;
    case ONXI_TREE_GTE:
        return x >= n->by.split;
    case ONXI_TREE_GT:
        return x > n->by.split;
    case ONXI_TREE_EQ:
        return x == n->by.split;
    case ONXI_TREE_NEQ:
        return x != n->by.split;
    default:
        return is_member(f, n, x);
    }
}

/* Finds the leaf for a row of features. */
static uint32_t leaf_of(const onxi_forest *f, uint32_t root, const double *features)
{
    while (!(root & ONXI_TREE_IS_LEAF)) {
        const onxi_tree_node *n = &f->nodes[root];
        root = n->next[decide(f, n, features[n->feature])];
    }
    return root & ~ONXI_TREE_IS_LEAF;
}

/* ---- scores ---- */

/* Describes a row of the kernel table. */
typedef struct tree_kind {
    bool places; /* TreeEnsemble: nodes are identified by their positions */
    bool lanes;  /* walks several rows or trees at once */
} tree_kind;

typedef struct tree_params {
    onxi_forest forest;
    onxi_ml_batch batch;
    onxi_ml_numbers base;
    onxi_ml_transform transform;
    onxi_tree_aggregate how;
    double start;                 /* score of a target before any vote, which says that there was none */
    const onxi_tree_lanes *lanes; /* NULL: rows are walked one by one */
    uint64_t block;               /* rows scored at a time */
    uint64_t scores, features;    /* offsets in a thread's workspace, in bytes */
    /* For the classifier. */
    onxi_ml_labels labels;
    bool opposed; /* two classes, and all votes are for the first: the second has the score, the first its opposite */
    bool odds;    /* a score above a half, not above 0, decides between two classes */
} tree_params;

/* Computes the scores of `count` rows, one per target, before the final transform. */
static double *score_rows(const tree_params *q, const onx_work *work, uint64_t row, uint64_t count)
{
    const onxi_forest *f = &q->forest;
    char *memory = work->thread_workspace;
    double *scores = (double *)(void *)(memory + q->scores), *features = (double *)(void *)(memory + q->features);
    for (uint64_t i = 0; i < count * f->target_count; i++)
        scores[i] = q->start;
    if (q->lanes) {
        onxi_tree_lanes_run(q->lanes, q->how, work->inputs[0], row, count, memory, features, scores);
    } else {
        onxi_ml_load(work->inputs[0], row, q->batch.columns, features);
        for (uint32_t r = 0; r < f->root_count; r++)
            onxi_tree_vote(f, q->how, leaf_of(f, f->roots[r], features), scores);
    }
    for (uint64_t i = 0, t = 0; i < count * f->target_count; i++, t = t + 1 == f->target_count ? 0 : t + 1) {
        if (q->how == ONXI_TREE_AVERAGE)
            scores[i] /= f->root_count ? f->root_count : 1;
        if (isnan(scores[i]) && isnan(q->start))
            scores[i] = 0;
        if (q->base.count)
            scores[i] += q->base.at[q->base.count == 1 ? 0 : t] + 0.0; /* not -0: see top_class */
    }
    return scores;
}

static onx_status finish_prepare(onx_prepare *p, tree_params *q)
{
    enum { SCORES = 1u << 15 }; /* scores per block */
    const tree_kind *kind = p->kernel->body;
    uint64_t steps = (uint64_t)q->forest.root_count * 8 + q->batch.columns, room = 0;
    p->params = q;
    p->rows = q->batch.rows;
    p->grain = 4096 / (steps + 1) + 1;
    q->block = 1;
    if (kind->lanes) {
        ONX_TRY(onxi_tree_lanes_make(p, &q->forest, q->how, p->inputs[0]->dtype, q->batch.columns, &q->lanes));
        q->block = onxi_tree_lanes_block(q->lanes);
        if (q->forest.target_count > SCORES / q->block)
            return ONX_E_UNSUPPORTED;
        p->grain = p->grain < 64 ? 64 : p->grain;
        room = onxi_tree_lanes_workspace(q->lanes);
    }
    q->scores = room;
    q->features = room + q->forest.target_count * q->block * sizeof(double);
    bool as_they_are = q->lanes && (p->inputs[0]->dtype == ONX_FLOAT || p->inputs[0]->dtype == ONX_DOUBLE);
    ONX_TRY(onxi_ml_workspace(p, as_they_are ? 0 : q->batch.columns, 0));
    return onxi_add_u64(p->thread_workspace, q->features, &p->thread_workspace)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_LIMIT, "the rows are too large");
}

static onx_status base_values(const onx_prepare *p, tree_params *q, uint64_t targets)
{
    ONX_TRY(onxi_ml_numbers_of(p, "base_values", &q->base));
    if (q->base.count > 1 && q->base.count != targets)
        return onx_prepare_fail(p, ONX_E_INVALID, "base_values has %llu elements, expected %llu",
                                (unsigned long long)q->base.count, (unsigned long long)targets);
    return ONX_OK;
}

/* n_targets, or the number of targets that votes refer to. */
static onx_status target_count(const onx_prepare *p, const char *votes, uint64_t *out)
{
    int64_t count = 1;
    if (onx_prepare_given(p, "n_targets")) {
        count = onx_prepare_int(p, "n_targets");
    } else {
        uint32_t given;
        const int64_t *ids = onx_prepare_ints(p, votes, &given);
        for (uint32_t i = 0; i < given; i++)
            count = ids[i] >= count && ids[i] < UINT32_MAX ? ids[i] + 1 : count;
    }
    if (count < 1 || count > UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "n_targets is %lld", (long long)count);
    *out = (uint64_t)count;
    return ONX_OK;
}

/* Of a single score, ONNX Runtime applies PROBIT only, and the reference implementation nothing: models rely on it. */
static void finish_scores(const tree_params *q, double *scores, uint64_t count)
{
    if (count > 1 || q->transform == ONXI_ML_PROBIT)
        onxi_ml_finish(q->transform, scores, count);
}

/* ---- TreeEnsembleRegressor, TreeEnsemble ---- */

static bool by_places(const onx_prepare *p)
{
    return ((const tree_kind *)p->kernel->body)->places;
}

/* Used where n_targets is not given. */
static onx_status regressor_types(onx_prepare *p)
{
    onxi_ml_batch batch;
    uint64_t targets;
    ONX_TRY(onxi_ml_batch_of(p, 0, &batch));
    bool places = p->op == ONXI_ID_TreeEnsemble; /* no kernel row is chosen yet */
    ONX_TRY(target_count(p, places ? "leaf_targetids" : "target_ids", &targets));
    const int64_t dims[] = { (int64_t)batch.rows, (int64_t)targets };
    return onx_prepare_output(p, 0, places ? (onx_dtype)p->inputs[0]->dtype : ONX_FLOAT, 2, dims);
}

static onx_status regressor_modes(const onx_prepare *p, tree_params *q)
{
    static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    if (by_places(p)) {
        int64_t how = onx_prepare_int(p, "aggregate_function"), end = onx_prepare_int(p, "post_transform");
        if (how < 0 || how >= ONXI_TREE_AGGREGATE_COUNT || end < 0 || end >= ONXI_ML_TRANSFORM_COUNT)
            return onx_prepare_fail(p, ONX_E_INVALID, "aggregate_function is %lld and post_transform %lld",
                                    (long long)how, (long long)end);
        q->how = (onxi_tree_aggregate)how;
        q->transform = (onxi_ml_transform)end;
        return ONX_OK;
    }
    onx_str name = onx_prepare_text(p, "aggregate_function");
    for (q->how = ONXI_TREE_AVERAGE; q->how < ONXI_TREE_AGGREGATE_COUNT && !onx_str_is(name, names[q->how]);)
        q->how++;
    if (q->how == ONXI_TREE_AGGREGATE_COUNT)
        return onx_prepare_fail(p, ONX_E_INVALID, "aggregate_function is \"%.*s\"", ONX_ARG(name));
    return onxi_ml_transform_of(p, &q->transform);
}

static onx_status regressor_prepare(onx_prepare *p)
{
    tree_params *q = ONXI_NEW(p->arena, tree_params);
    uint64_t targets;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(target_count(p, by_places(p) ? "leaf_targetids" : "target_ids", &targets));
    ONX_TRY(onxi_ml_want_scores(p, 0, q->batch.rows, targets));
    ONX_TRY(regressor_modes(p, q));
    if (by_places(p)) {
        ONX_TRY(onxi_forest_by_places(p, targets, q->batch.columns, &q->forest));
    } else {
        ONX_TRY(onxi_forest_by_ids(p, "target", targets, q->batch.columns, &q->forest));
        ONX_TRY(base_values(p, q, targets));
    }
    /* The standard does not say what the minimum of no votes is; ONNX Runtime gives 0. */
    q->start = q->how >= ONXI_TREE_MIN ? NAN : 0;
    return finish_prepare(p, q);
}

static onx_status regressor_run(onx_work *work, uint64_t first, uint64_t last)
{
    const tree_params *q = work->params;
    const uint32_t targets = q->forest.target_count;
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < q->block ? last - row : q->block;
        double *scores = score_rows(q, work, row, count);
        for (uint64_t i = 0; q->transform != ONXI_ML_NONE && i < count; i++)
            finish_scores(q, scores + i * targets, targets);
        onxi_ml_store_rows(work->outputs[0], row, count, targets, scores);
    }
    return ONX_OK;
}

/* ---- TreeEnsembleClassifier ---- */

/* Reads how scores come from votes. The standard leaves open which scores two classes have if votes are for the first
 * of them only; converters rely on what ONNX Runtime does: the sum belongs to the second class. */
static onx_status classifier_shape(const onx_prepare *p, tree_params *q)
{
    uint32_t count;
    const int64_t *ids = onx_prepare_ints(p, "class_ids", &count);
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(onxi_ml_labels_of(p, "classlabels_int64s", &q->labels));
    if (!q->labels.count)
        return onx_prepare_fail(p, ONX_E_INVALID, "no attribute gives the class labels");
    q->opposed = count && q->labels.count == 2;
    for (uint32_t i = 0; i < count; i++)
        q->opposed &= ids[i] == 0;
    return ONX_OK;
}

static onx_status classifier_types(onx_prepare *p)
{
    tree_params q = { .opposed = false };
    ONX_TRY(classifier_shape(p, &q));
    return onxi_ml_classes(p, &q.labels, q.batch.rows, q.labels.count);
}

/* Two classes with votes for one of them: if no vote is negative, the sum is a probability, and more than a half
 * decides; else it is a margin, and its sign decides. Other transforms than NONE make probabilities of margins. */
static onx_status read_meaning(const onx_prepare *p, tree_params *q)
{
    onxi_ml_numbers weights;
    ONX_TRY(onxi_ml_numbers_of(p, "class_weights", &weights));
    q->odds = q->transform == ONXI_ML_NONE;
    for (uint64_t i = 0; i < weights.count; i++)
        q->odds &= !(weights.at[i] < 0);
    if (q->opposed)
        q->odds |= q->transform == ONXI_ML_PROBIT;
    else
        q->odds &= q->labels.count == 2 && q->forest.only_target == 1 && !q->base.count;
    return ONX_OK;
}

static onx_status classifier_prepare(onx_prepare *p)
{
    tree_params *q = ONXI_NEW(p->arena, tree_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(classifier_shape(p, q));
    ONX_TRY(onxi_ml_want_scores(p, 1, q->batch.rows, q->labels.count));
    ONX_TRY(onxi_ml_transform_of(p, &q->transform));
    ONX_TRY(onxi_forest_by_ids(p, "class", q->labels.count, q->batch.columns, &q->forest));
    ONX_TRY(base_values(p, q, q->labels.count));
    ONX_TRY(read_meaning(p, q));
    q->how = ONXI_TREE_SUM;
    q->start = -0.0; /* no vote is -0, so this is the sum of no votes only */
    return finish_prepare(p, q);
}

/* The first class with the greatest score (a NaN is greater than all). Of more than two classes, only those that have
 * votes are compared, as by ONNX Runtime. */
static uint64_t top_class(const double *scores, uint64_t count)
{
    uint64_t best = count;
    for (uint64_t i = 0; i < count; i++) {
        if (count > 2 && scores[i] == 0 && signbit(scores[i]))
            continue;
        if (best == count || scores[i] > scores[best] || (isnan(scores[i]) && !isnan(scores[best])))
            best = i;
    }
    return best < count ? best : 0;
}

/* Turns the scores of a row's targets into output scores, and returns the index of its class. */
static uint64_t finish_classes(const tree_params *q, double *scores)
{
    const uint32_t count = q->labels.count;
    uint64_t best = top_class(scores, count);
    if (q->opposed) {
        scores[1] = scores[0];
        scores[0] = (q->odds ? 1 : 0) - scores[1];
        best = UINT64_MAX; /* decided by the transformed scores */
    } else if (count == 1) {
        best = scores[0] > 0 ? 0 : UINT64_MAX; /* the label, or no label */
    } else if (q->odds) {
        best = scores[1] > 0.5;
    }
    for (uint32_t i = 0; i < count; i++)
        scores[i] += 0.0; /* turns -0 into 0 */
    finish_scores(q, scores, count);
    return q->opposed ? onxi_ml_argmax(scores, count) : best;
}

static onx_status classifier_run(onx_work *work, uint64_t first, uint64_t last)
{
    const tree_params *q = work->params;
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < q->block ? last - row : q->block;
        double *scores = score_rows(q, work, row, count);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t best = finish_classes(q, scores + i * q->labels.count);
            onxi_ml_label(&q->labels, onxi_ml_output(work, 0), row + i, best, -1);
        }
        if (onxi_ml_output(work, 1))
            onxi_ml_store_rows(onxi_ml_output(work, 1), row, count, q->labels.count, scores);
    }
    return ONX_OK;
}

static const tree_kind ids = { false, false }, ids_lanes = { false, true }, places = { true, false },
                       places_lanes = { true, true };

#define ROWS(name, from, kind, what)                                                                                   \
    ONXI_ML_ROW(name, from, .body = &kind, .types = what##_types, .prepare = what##_prepare, .run = what##_run),       \
        ONXI_ML_ROW(name, from, .variant = "lanes", .preference = 1, .body = &kind##_lanes, .types = what##_types,     \
                    .prepare = what##_prepare, .run = what##_run)
const onx_kernel onxi_kernels_ml_tree[] = { ROWS("TreeEnsemble", 5, places, regressor),
                                            ROWS("TreeEnsembleRegressor", 1, ids, regressor),
                                            ROWS("TreeEnsembleClassifier", 1, ids, classifier),
                                            { 0 } };
