/* linear.c - LinearRegressor and LinearClassifier: matrix products of feature rows and coefficients. */
#include "kernel/core/ml_lanes.h"

#include <math.h>

typedef struct linear_params {
    onxi_ml_batch batch;
    onxi_ml_numbers coefficients, intercepts; /* intercepts: none, or one per score */
    uint64_t scores;                          /* number of scores computed */
    onxi_ml_transform transform;
    const float *narrow; /* coefficients, then intercepts, if all of them and the features are floats; else NULL */
    const float *packed; /* the same with coefficients in groups of lists, as for panels_narrow; NULL: not */
    /* For the classifier. */
    onxi_ml_labels labels;
    bool opposed; /* one score s decides between two classes, whose scores are -s and s */
} linear_params;

static onx_status read_numbers(const onx_prepare *p, linear_params *q)
{
    ONX_TRY(onxi_ml_numbers_of(p, "intercepts", &q->intercepts));
    if (q->intercepts.count && q->intercepts.count != q->scores)
        return onx_prepare_fail(p, ONX_E_INVALID, "intercepts has %llu elements, expected %llu",
                                (unsigned long long)q->intercepts.count, (unsigned long long)q->scores);
    return onxi_ml_transform_of(p, &q->transform);
}

static void score_row(const linear_params *q, const onx_value *x, uint64_t row, double *features, double *scores)
{
    uint64_t n = q->batch.columns;
    onxi_ml_load(x, row, n, features);
    for (uint64_t s = 0; s < q->scores; s++) {
        const double sum = onxi_ml_product(features, q->coefficients.at + s * n, n);
        scores[s] = sum + (q->intercepts.count ? q->intercepts.at[s] : 0);
    }
}

#if ONXI_PLATFORM_ROOMY
/* Scores, rounded up to whole groups of lanes. */
static uint64_t grouped(const linear_params *q)
{
    return (q->scores + ONXI_ML_LANES - 1) / ONXI_ML_LANES * ONXI_ML_LANES;
}

/* Does what is lost in the last group of lists cost less than interleaving the features? */
static bool fills_groups(const linear_params *q)
{
    return grouped(q) - q->scores <= 4 + q->scores / 8;
}

static onx_status pack_groups(const onx_prepare *p, linear_params *q)
{
    const uint64_t n = q->batch.columns, all = grouped(q);
    uint64_t count;
    if (!onxi_mul_u64(all, n + 1, &count))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many coefficients");
    float *packed = onxi_arena_array(p->arena, count, sizeof *packed);
    if (!packed)
        return ONX_E_MEMORY;
    memset(packed, 0, count * sizeof *packed);
    for (uint64_t s = 0; s < q->scores; s++)
        for (uint64_t i = 0; i < n; i++)
            packed[(s / ONXI_ML_LANES * n + i) * ONXI_ML_LANES + s % ONXI_ML_LANES] = q->narrow[s * n + i];
    memcpy(packed + all * n, q->narrow + q->coefficients.count, q->scores * sizeof *packed);
    q->packed = packed;
    return ONX_OK;
}

/* Sums of products of floats are sums of floats, as in onnxruntime and in the reference of onnx, but in short
 * stretches. A row with a sum that is not finite is computed again in double, as plain rows are: the sum may be finite
 * although a part of it exceeds the range of floats. Without features there may be any number of scores, which no
 * coefficients in the file stand for. */
static onx_status narrow_numbers(const onx_prepare *p, linear_params *q, uint32_t output)
{
    const uint64_t n = q->coefficients.count;
    const onx_value *y = output < p->output_count ? p->outputs[output] : NULL;
    if (!n || p->inputs[0]->dtype != ONX_FLOAT || (y && y->dtype != ONX_FLOAT) || q->coefficients.dtype != ONX_FLOAT ||
        q->scores > INT32_MAX || (q->intercepts.count && q->intercepts.dtype != ONX_FLOAT))
        return ONX_OK;
    float *numbers = ONXI_ARRAY(p->arena, float, n + q->scores);
    if (!numbers)
        return ONX_E_MEMORY;
    onxi_convert(ONX_FLOAT, numbers, ONX_DOUBLE, q->coefficients.at, 0, n, true);
    memset(numbers + n, 0, q->scores * sizeof *numbers);
    onxi_convert(ONX_FLOAT, numbers + n, ONX_DOUBLE, q->intercepts.at, 0, q->intercepts.count, true);
    q->narrow = numbers;
    return fills_groups(q) ? pack_groups(p, q) : ONX_OK;
}

/* The workspace of a thread. `features` and `scores` hold ONXI_ML_LANES interleaved rows; `rows` holds the scores row
 * by row. `scores` and `rows` have room for one more score per row, which the classifier uses if `opposed` is set. The
 * narrow ones are the same in float, if there are narrow coefficients. */
typedef struct lanes {
    const onxi_ml_loops *loops;
    double *row, *features, *scores, *rows;
    float *narrow_features, *narrow_scores, *narrow_rows;
} lanes;

/* Scores per row that narrow_scores and narrow_rows have room for, of which rows_narrow needs more than there are. */
static uint64_t narrow_room(const linear_params *q)
{
    return q->narrow ? q->scores + 1 + ONXI_ML_LANES : 0;
}

static lanes lanes_of(const onx_work *work)
{
    const linear_params *q = work->params;
    lanes l = { .loops = work->prepared->kernel->body, .row = work->thread_workspace };
    l.features = l.row + q->batch.columns;
    l.scores = l.features + ONXI_ML_LANES * q->batch.columns;
    l.rows = l.scores + ONXI_ML_LANES * (q->scores + 1);
    l.narrow_features = (float *)(l.rows + ONXI_ML_LANES * (q->scores + 1));
    l.narrow_scores = l.narrow_features + (q->narrow ? ONXI_ML_LANES * q->batch.columns : 0);
    l.narrow_rows = l.narrow_scores + ONXI_ML_LANES * narrow_room(q);
    return l;
}

static onx_status lanes_workspace(onx_prepare *p, const linear_params *q)
{
    uint64_t features, scores = 0;
    const uint64_t each = ONXI_ML_LANES + 1 + (q->narrow ? ONXI_ML_LANES / 2 : 0); /* two floats per double */
    p->grain = (p->grain + ONXI_ML_LANES - 1) / ONXI_ML_LANES * ONXI_ML_LANES;
    if (!onxi_mul_u64(q->batch.columns, each, &features) ||
        !onxi_mul_u64(2 * (q->scores + 1) + narrow_room(q), ONXI_ML_LANES, &scores))
        features = UINT64_MAX; /* refused below, with a message */
    return onxi_ml_workspace(p, features, scores);
}

static void score_wide(const linear_params *q, const lanes *l, const onx_value *x, uint64_t row, uint64_t count)
{
    onxi_ml_lanes_load(l->loops, x, row, count, q->batch.columns, l->row, l->features);
    for (uint64_t i = 0; i < q->scores * ONXI_ML_LANES; i++)
        l->scores[i] = q->intercepts.count ? q->intercepts.at[i / ONXI_ML_LANES] : 0;
    l->loops->products(l->features, q->coefficients.at, q->batch.columns, q->scores, l->scores);
    /* The sign of a NaN depends on the order of the operands of an addition, which may differ between lanes. */
    for (uint64_t i = 0; i < q->scores * ONXI_ML_LANES; i++)
        l->scores[i] = isnan(l->scores[i]) ? (double)NAN : l->scores[i];
}

/* Computes the scores of `count` rows: either narrow_scores, and returns true, or `scores`. */
static bool score_lanes(const linear_params *q, const lanes *l, const onx_value *x, uint64_t row, uint64_t count)
{
    const uint64_t n = q->batch.columns;
    uint32_t odd = UINT32_MAX; /* a bit for each row that has to be computed in double */
    const float *from = q->narrow ? (const float *)x->data + row * n : NULL;
    if (q->packed) {
        odd =
            l->loops->panels_narrow(from, count, q->packed, q->packed + grouped(q) * n, n, q->scores, l->narrow_scores);
    } else if (q->narrow) {
        l->loops->turn_narrow(from, count, n, l->narrow_features);
        for (uint64_t s = 0; s < q->scores; s++)
            for (uint64_t r = 0; r < ONXI_ML_LANES; r++)
                l->narrow_scores[s * ONXI_ML_LANES + r] = q->narrow[q->coefficients.count + s];
        odd = l->loops->products_narrow(l->narrow_features, q->narrow, n, q->scores, l->narrow_scores);
    }
    if (!odd && (q->transform == ONXI_ML_NONE || q->transform == ONXI_ML_SOFTMAX))
        return true;
    if (odd)
        score_wide(q, l, x, row, count);
    for (uint64_t i = 0; q->narrow && i < q->scores * ONXI_ML_LANES; i++)
        if (!(odd >> i % ONXI_ML_LANES & 1))
            l->scores[i] = (double)l->narrow_scores[i];
    return false;
}

/* Applies the transform and writes the `columns` scores of each row to y, which may be NULL. `narrow`: as score_lanes
 * returned it; `best`: as in onxi_ml_lanes_finish. Afterwards `rows` has the scores, if there is one per row. */
static void finish_lanes(const linear_params *q, const lanes *l, bool narrow, uint64_t columns, onx_value *y,
                         uint64_t row, uint64_t count, uint64_t *best)
{
    if (!narrow) {
        onxi_ml_lanes_finish(l->loops, q->transform, l->scores, columns, l->rows, best);
        if (y)
            onxi_ml_store_rows(y, row, count, columns, l->rows);
        return;
    }
    if (best)
        l->loops->argmax_narrow(l->narrow_scores, columns, best);
    if (q->transform == ONXI_ML_SOFTMAX) /* keeps the order; what is too close to differ as floats did differ before */
        l->loops->softmax_narrow(l->narrow_scores, columns);
    for (uint64_t r = 0; columns == 1 && r < ONXI_ML_LANES; r++)
        l->rows[r] = (double)l->narrow_scores[r];
    if (!y)
        return;
    l->loops->rows_narrow(l->narrow_scores, columns, l->narrow_rows);
    memcpy((float *)y->data + row * columns, l->narrow_rows, count * columns * sizeof(float));
}
#endif

/* `output`: the one with the scores. */
static onx_status finish_prepare(onx_prepare *p, linear_params *q, uint32_t output)
{
    (void)output; /* plain rows convert scores to any type */
    p->params = q;
    p->rows = q->batch.rows;
    p->grain = 16384 / (q->coefficients.count + q->batch.columns + 1) + 1;
#if ONXI_PLATFORM_ROOMY
    if (p->kernel->body) {
        ONX_TRY(narrow_numbers(p, q, output));
        return lanes_workspace(p, q);
    }
#endif
    return onxi_ml_workspace(p, q->batch.columns, q->scores + 1);
}

/* ---- LinearRegressor ---- */

static onx_status regressor_prepare(onx_prepare *p)
{
    linear_params *q = ONXI_NEW(p->arena, linear_params);
    int64_t targets = onx_prepare_int(p, "targets");
    uint64_t wanted;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(onxi_ml_numbers_of(p, "coefficients", &q->coefficients));
    if (targets < 1 || !onxi_mul_u64((uint64_t)targets, q->batch.columns, &wanted) || wanted != q->coefficients.count)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld targets of %llu features do not have %llu coefficients",
                                (long long)targets, (unsigned long long)q->batch.columns,
                                (unsigned long long)q->coefficients.count);
    q->scores = (uint64_t)targets;
    ONX_TRY(onxi_ml_want_scores(p, 0, q->batch.rows, q->scores));
    ONX_TRY(read_numbers(p, q));
    return finish_prepare(p, q, 0);
}

static onx_status regressor_run(onx_work *work, uint64_t first, uint64_t last)
{
    const linear_params *q = work->params;
    double *features = work->thread_workspace, *scores = features + q->batch.columns;
    for (uint64_t row = first; row < last; row++) {
        score_row(q, work->inputs[0], row, features, scores);
        onxi_ml_finish(q->transform, scores, q->scores);
        onxi_ml_store(work->outputs[0], row, q->scores, scores);
    }
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
static onx_status regressor_lanes(onx_work *work, uint64_t first, uint64_t last)
{
    const linear_params *q = work->params;
    const lanes l = lanes_of(work);
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < ONXI_ML_LANES ? last - row : ONXI_ML_LANES;
        const bool narrow = score_lanes(q, &l, work->inputs[0], row, count);
        finish_lanes(q, &l, narrow, q->scores, work->outputs[0], row, count, NULL);
    }
    return ONX_OK;
}
#endif

/* ---- LinearClassifier ---- */

/* Checks the coefficients, and determines the number of scores: one per list of coefficients. */
static onx_status classifier_shape(const onx_prepare *p, linear_params *q)
{
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(onxi_ml_numbers_of(p, "coefficients", &q->coefficients));
    ONX_TRY(onxi_ml_labels_of(p, "classlabels_ints", &q->labels));
    if (!q->batch.columns || !q->coefficients.count || q->coefficients.count % q->batch.columns)
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu coefficients cannot be divided among %llu features",
                                (unsigned long long)q->coefficients.count, (unsigned long long)q->batch.columns);
    q->scores = q->coefficients.count / q->batch.columns;
    q->opposed = q->scores == 1 && q->labels.count == 2;
    if (q->labels.count && !q->opposed && q->labels.count != q->scores)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu lists of coefficients for %u classes",
                                (unsigned long long)q->scores, q->labels.count);
    return ONX_OK;
}

static onx_status classifier_types(onx_prepare *p)
{
    linear_params q = { .scores = 0 };
    ONX_TRY(classifier_shape(p, &q));
    return onxi_ml_classes(p, &q.labels, q.batch.rows, q.opposed ? 2 : q.scores);
}

static onx_status classifier_prepare(onx_prepare *p)
{
    linear_params *q = ONXI_NEW(p->arena, linear_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(classifier_shape(p, q));
    ONX_TRY(onxi_ml_want_scores(p, 1, q->batch.rows, q->opposed ? 2 : q->scores));
    ONX_TRY(read_numbers(p, q));
    return finish_prepare(p, q, 1);
}

/* Writes the predicted class. `best` is the index of the greatest score, `first` the first score. A single score
 * decides between yes and no: yes gives the first label, or 1 if there are no labels; no gives 0, or an empty string if
 * the labels are strings. */
static void name_class(const linear_params *q, onx_value *y, uint64_t row, uint64_t best, double first,
                       uint64_t columns)
{
    if (!y)
        return;
    if (columns > 1 || q->opposed) {
        onxi_ml_label(&q->labels, y, row, best, (int64_t)best);
        return;
    }
    bool yes = first >= (q->transform == ONXI_ML_NONE ? 0 : 0.5);
    onxi_ml_label(&q->labels, y, row, yes ? 0 : UINT64_MAX, q->labels.count ? -1 : yes);
}

static onx_status classifier_run(onx_work *work, uint64_t first, uint64_t last)
{
    const linear_params *q = work->params;
    double *features = work->thread_workspace, *scores = features + q->batch.columns;
    uint64_t columns = q->opposed ? 2 : q->scores;
    for (uint64_t row = first; row < last; row++) {
        score_row(q, work->inputs[0], row, features, scores);
        if (q->opposed) {
            scores[1] = scores[0];
            scores[0] = -scores[1];
        }
        onxi_ml_finish(q->transform, scores, columns);
        name_class(q, onxi_ml_output(work, 0), row, onxi_ml_argmax(scores, columns), scores[0], columns);
        if (onxi_ml_output(work, 1))
            onxi_ml_store(onxi_ml_output(work, 1), row, columns, scores);
    }
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
static void oppose(const lanes *l, bool narrow)
{
    for (uint64_t r = 0; r < ONXI_ML_LANES; r++)
        if (narrow) {
            l->narrow_scores[ONXI_ML_LANES + r] = l->narrow_scores[r];
            l->narrow_scores[r] = -l->narrow_scores[r];
        } else {
            l->scores[ONXI_ML_LANES + r] = l->scores[r];
            l->scores[r] = -l->scores[r];
        }
}

/* Writes the predicted classes of `count` rows; `first`: their scores, if there is one per row. */
static void name_classes(const linear_params *q, onx_value *y, uint64_t row, uint64_t count, const uint64_t *best,
                         const double *first, uint64_t columns)
{
    if (y && y->dtype == ONX_INT64 && q->labels.count == columns && columns > 1) {
        for (uint64_t r = 0; r < count; r++)
            ((int64_t *)y->data)[row + r] = q->labels.ints[best[r]];
        return;
    }
    for (uint64_t r = 0; r < count; r++)
        name_class(q, y, row + r, best[r], columns == 1 ? first[r] : 0, columns);
}

static onx_status classifier_lanes(onx_work *work, uint64_t first, uint64_t last)
{
    const linear_params *q = work->params;
    const lanes l = lanes_of(work);
    const uint64_t columns = q->opposed ? 2 : q->scores;
    uint64_t best[ONXI_ML_LANES];
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < ONXI_ML_LANES ? last - row : ONXI_ML_LANES;
        const bool narrow = score_lanes(q, &l, work->inputs[0], row, count);
        if (q->opposed)
            oppose(&l, narrow);
        finish_lanes(q, &l, narrow, columns, onxi_ml_output(work, 1), row, count, best);
        name_classes(q, onxi_ml_output(work, 0), row, count, best, l.rows, columns);
    }
    return ONX_OK;
}

#define LANES(...)                                                                                                     \
    ONXI_ML_ROW("LinearRegressor", 1, .preference = 1, .prepare = regressor_prepare, .run = regressor_lanes,           \
                __VA_ARGS__),                                                                                          \
        ONXI_ML_ROW("LinearClassifier", 1, .preference = 1, .types = classifier_types, .prepare = classifier_prepare,  \
                    .run = classifier_lanes, __VA_ARGS__)
#endif

const onx_kernel onxi_kernels_ml_linear[] = {
#if ONXI_PLATFORM_ROOMY
    ONXI_LEVELS(LANES, onxi_ml_loops),
#endif
    ONXI_ML_ROW("LinearRegressor", 1, .prepare = regressor_prepare, .run = regressor_run),
    ONXI_ML_ROW("LinearClassifier", 1, .types = classifier_types, .prepare = classifier_prepare, .run = classifier_run),
    { 0 }
};
