/* svm.c - SVMRegressor and SVMClassifier: support vector machines in the form of libsvm, and linear ones. */
#include "kernel/core/ml_lanes.h"

#include <math.h>

/* ---- kernel functions ---- */

typedef struct svm_params {
    onxi_ml_batch batch;
    onxi_ml_curve kernel;
    onxi_ml_numbers vectors, coefficients, rho;
    uint64_t vector_count; /* 0: the machine is linear, with one coefficient per feature */
    onxi_ml_transform transform;
    bool one_class;
    /* For the classifier. */
    onxi_ml_labels labels;
    onxi_ml_numbers prob_a, prob_b; /* convert scores to probabilities; without them, votes are counted */
    const int64_t *per_class;       /* number of support vectors per class */
    uint64_t classes, pairs, raw;   /* raw: scores per row before the transform */
    uint64_t columns;               /* scores per row of the output */
    bool positive;                  /* all coefficients are nonnegative */
    const float *narrow;            /* the support vectors, if their dot products are sums of floats; else NULL */
} svm_params;

/* x^degree. The degree is an integer, usually a small one. */
static double power(double x, double degree)
{
    double result = x;
    if (!(degree >= 1 && degree <= 8))
        return pow(x, degree);
    for (int i = 1; i < (int)degree; i++)
        result *= x;
    return result;
}

static double kernel_of(const svm_params *q, const double *a, const double *b)
{
    const uint64_t n = q->batch.columns;
    const onxi_ml_curve *k = &q->kernel;
    switch (k->kind) {
    case ONXI_ML_POLY:
        return power(onxi_ml_product(a, b, n) * k->gamma + k->coef0, k->degree);
    case ONXI_ML_SIGMOID:
        return tanh(onxi_ml_product(a, b, n) * k->gamma + k->coef0);
    case ONXI_ML_RBF:
        return exp(-k->gamma * onxi_ml_distance(a, b, n));
    default:
        return onxi_ml_product(a, b, n);
    }
}

/* ---- attributes ---- */

static onx_status want(const onx_prepare *p, const char *name, const onxi_ml_numbers *list, uint64_t a, uint64_t b)
{
    uint64_t count;
    if (onxi_mul_u64(a, b, &count) && list->count == count)
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %llu elements, expected %llu * %llu", name,
                            (unsigned long long)list->count, (unsigned long long)a, (unsigned long long)b);
}

static onx_status read_common(const onx_prepare *p, svm_params *q)
{
    static const char *const names[] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
    onx_str name = onx_prepare_text(p, "kernel_type");
    onxi_ml_numbers params;
    for (q->kernel.kind = ONXI_ML_LINEAR;
         q->kernel.kind < ONXI_ML_CURVE_COUNT && !onx_str_is(name, names[q->kernel.kind]);)
        q->kernel.kind++;
    if (q->kernel.kind == ONXI_ML_CURVE_COUNT)
        return onx_prepare_fail(p, ONX_E_INVALID, "kernel_type is \"%.*s\"", ONX_ARG(name));
    ONX_TRY(onxi_ml_batch_of(p, 0, &q->batch));
    ONX_TRY(onxi_ml_numbers_of(p, "kernel_params", &params));
    ONX_TRY(onxi_ml_numbers_of(p, "coefficients", &q->coefficients));
    ONX_TRY(onxi_ml_numbers_of(p, "support_vectors", &q->vectors));
    ONX_TRY(onxi_ml_numbers_of(p, "rho", &q->rho));
    if (params.count) {
        ONX_TRY(want(p, "kernel_params", &params, 3, 1));
        q->kernel.gamma = params.at[0];
        q->kernel.coef0 = params.at[1];
        q->kernel.degree = trunc(params.at[2]);
    }
    return onxi_ml_transform_of(p, &q->transform);
}

/* ---- SVMRegressor ---- */

/* With a linear kernel, the weighted sum of dot products with the support vectors equals one dot product with the
 * weighted sum of the vectors. The sum of the vectors is used unless an element of it is not finite. */
static onx_status join_vectors(const onx_prepare *p, svm_params *q)
{
    double *joined = ONXI_ARRAY(p->arena, double, q->batch.columns + 1);
    if (!joined)
        return ONX_E_MEMORY;
    bool finite = true;
    for (uint64_t i = 0; i < q->batch.columns; i++) {
        joined[i] = 0;
        for (uint64_t v = 0; v < q->vector_count; v++)
            joined[i] += q->coefficients.at[v] * q->vectors.at[v * q->batch.columns + i];
        finite &= isfinite(joined[i]) != 0;
    }
    if (finite) {
        q->coefficients.at = joined;
        q->coefficients.count = q->batch.columns;
        q->vector_count = 0;
    }
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
/* Support vectors per block: their kernel values, for all lanes, fit in the L1 cache. */
enum { VECTORS = 64 };

/* The workspace of a thread, for ONXI_ML_LANES interleaved rows: features, kernel values of one block of support
 * vectors, and sums of scores. `rows` is the part that is used for one row at a time; it is the last one. */
typedef struct lanes {
    const onxi_ml_loops *loops;
    double *features, *kernels, *sums, *rows;
    float *narrow_features, *dots; /* of one block, for narrow support vectors */
} lanes;

static lanes lanes_of(const onx_work *work, uint64_t sums)
{
    const svm_params *q = work->params;
    lanes l = { .loops = work->prepared->kernel->body, .features = work->thread_workspace };
    l.kernels = l.features + ONXI_ML_LANES * q->batch.columns;
    l.sums = l.kernels + ONXI_ML_LANES * VECTORS;
    l.rows = l.sums + ONXI_ML_LANES * sums;
    if (q->narrow) {
        l.narrow_features = (float *)l.rows;
        l.dots = l.narrow_features + ONXI_ML_LANES * q->batch.columns;
        l.rows += ONXI_ML_LANES / 2 * (q->batch.columns + VECTORS); /* two floats per double */
    }
    return l;
}

/* Reserves the workspace for interleaved rows with `sums` scores each, and for the features of a single row. */
static onx_status lanes_workspace(onx_prepare *p, const svm_params *q, uint64_t sums)
{
    uint64_t numbers, all;
    const uint64_t shares = q->narrow ? 2 : 1;
    p->grain = (p->grain + ONXI_ML_LANES - 1) / ONXI_ML_LANES * ONXI_ML_LANES;
    if (!onxi_mul_u64(q->batch.columns, shares, &numbers) || !onxi_add_u64(numbers, shares * VECTORS + 1, &numbers) ||
        !onxi_add_u64(numbers, sums, &numbers) || !onxi_mul_u64(numbers, ONXI_ML_LANES, &all))
        all = UINT64_MAX; /* refused below, with a message */
    return onxi_ml_workspace(p, q->batch.columns, all);
}

/* Dot products of floats are sums of floats in short stretches, as those of linear models are; those that are not
 * finite are computed again in double. Sums over support vectors are sums of doubles. */
static onx_status narrow_vectors(const onx_prepare *p, svm_params *q)
{
    const bool suits = q->kernel.kind == ONXI_ML_POLY || q->kernel.kind == ONXI_ML_SIGMOID;
    if (!p->kernel->body || !suits || !q->vector_count || !q->batch.columns || p->inputs[0]->dtype != ONX_FLOAT ||
        q->vectors.dtype != ONX_FLOAT)
        return ONX_OK;
    float *numbers = ONXI_ARRAY(p->arena, float, q->vectors.count);
    if (!numbers)
        return ONX_E_MEMORY;
    onxi_convert(ONX_FLOAT, numbers, ONX_DOUBLE, q->vectors.at, 0, q->vectors.count, true);
    q->narrow = numbers;
    return ONX_OK;
}

static void load_rows(const svm_params *q, const lanes *l, const onx_value *x, uint64_t row, uint64_t count,
                      double *space)
{
    const uint64_t n = q->batch.columns;
    if (q->narrow)
        l->loops->turn_narrow((const float *)x->data + row * n, count, n, l->narrow_features);
    else
        onxi_ml_lanes_load(l->loops, x, row, count, n, space, l->features);
}

/* Computes kernel values from narrow support vectors; false: not all dot products are finite. */
static bool find_narrow(const svm_params *q, const lanes *l, uint64_t from, uint64_t count)
{
    const uint64_t n = q->batch.columns;
    memset(l->dots, 0, count * ONXI_ML_LANES * sizeof *l->dots);
    if (!l->loops->products_narrow(l->narrow_features, q->narrow + from * n, n, count, l->dots)) {
        l->loops->curve_narrow(&q->kernel, l->dots, count, l->kernels);
        return true;
    }
    for (uint64_t i = 0; i < n * ONXI_ML_LANES; i++)
        l->features[i] = (double)l->narrow_features[i];
    return false;
}

/* Computes the kernel values of support vectors from .. from + count - 1. */
static void find_kernels(const svm_params *q, const lanes *l, uint64_t from, uint64_t count)
{
    const double *vectors = q->vectors.at + from * q->batch.columns;
    if (q->narrow && find_narrow(q, l, from, count))
        return;
    memset(l->kernels, 0, count * ONXI_ML_LANES * sizeof *l->kernels);
    if (q->kernel.kind == ONXI_ML_RBF)
        l->loops->distances(l->features, vectors, q->batch.columns, count, l->kernels);
    else
        l->loops->products(l->features, vectors, q->batch.columns, count, l->kernels);
    l->loops->curve(&q->kernel, l->kernels, count);
}

static onx_status regressor_lanes(onx_work *work, uint64_t first, uint64_t last)
{
    const svm_params *q = work->params;
    const lanes l = lanes_of(work, 1);
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < ONXI_ML_LANES ? last - row : ONXI_ML_LANES;
        load_rows(q, &l, work->inputs[0], row, count, l.rows);
        memset(l.sums, 0, ONXI_ML_LANES * sizeof *l.sums);
        for (uint64_t v = 0, some; v < q->vector_count; v += some) {
            some = q->vector_count - v < VECTORS ? q->vector_count - v : VECTORS;
            find_kernels(q, &l, v, some);
            l.loops->products(l.kernels, q->coefficients.at + v, some, 1, l.sums);
        }
        if (!q->vector_count)
            l.loops->products(l.features, q->coefficients.at, q->batch.columns, 1, l.sums);
        for (uint64_t r = 0; r < ONXI_ML_LANES; r++) {
            l.sums[r] += q->rho.at[0];
            if (q->one_class)
                l.sums[r] = l.sums[r] > 0 ? 1 : -1;
        }
        onxi_ml_lanes_finish(l.loops, q->transform, l.sums, 1, l.kernels, NULL);
        onxi_ml_store_rows(work->outputs[0], row, count, 1, l.kernels);
    }
    return ONX_OK;
}
#endif

static onx_status regressor_prepare(onx_prepare *p)
{
    svm_params *q = ONXI_NEW(p->arena, svm_params);
    int64_t supports = onx_prepare_int(p, "n_supports");
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(read_common(p, q));
    ONX_TRY(onxi_ml_want_scores(p, 0, q->batch.rows, 1));
    q->vector_count = supports > 0 ? (uint64_t)supports : 0;
    q->one_class = onx_prepare_int(p, "one_class") != 0;
    if (q->vector_count)
        ONX_TRY(want(p, "support_vectors", &q->vectors, q->vector_count, q->batch.columns));
    ONX_TRY(want(p, "coefficients", &q->coefficients, q->vector_count ? q->vector_count : q->batch.columns, 1));
    ONX_TRY(want(p, "rho", &q->rho, 1, 1));
    if (q->kernel.kind == ONXI_ML_LINEAR && q->vector_count)
        ONX_TRY(join_vectors(p, q));
    p->params = q;
    p->rows = q->batch.rows;
    p->grain = 16384 / (q->vector_count * q->batch.columns + q->batch.columns + 1) + 1;
#if ONXI_PLATFORM_ROOMY
    ONX_TRY(narrow_vectors(p, q));
    if (p->kernel->body)
        return lanes_workspace(p, q, 1);
#endif
    return onxi_ml_workspace(p, q->batch.columns, 1);
}

static onx_status regressor_run(onx_work *work, uint64_t first, uint64_t last)
{
    const svm_params *q = work->params;
    double *features = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        onxi_ml_load(work->inputs[0], row, q->batch.columns, features);
        double sum = 0;
        for (uint64_t v = 0; v < q->vector_count; v++)
            sum += q->coefficients.at[v] * kernel_of(q, features, q->vectors.at + v * q->batch.columns);
        if (!q->vector_count)
            sum = onxi_ml_product(features, q->coefficients.at, q->batch.columns);
        sum += q->rho.at[0];
        if (q->one_class)
            sum = sum > 0 ? 1 : -1;
        onxi_ml_finish(q->transform, &sum, 1);
        onxi_ml_store(work->outputs[0], row, 1, &sum);
    }
    return ONX_OK;
}

/* ---- SVMClassifier: checks of the attributes ---- */

/* With support vectors, each pair of classes has a score; without them, each class has one. */
static onx_status machine_shape(const onx_prepare *p, svm_params *q)
{
    uint32_t count;
    q->per_class = onx_prepare_ints(p, "vectors_per_class", &count);
    for (uint32_t i = 0; i < count; i++)
        if (q->per_class[i] < 0 || q->per_class[i] > UINT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "vectors_per_class has the value %lld",
                                    (long long)q->per_class[i]);
        else
            q->vector_count += (uint64_t)q->per_class[i];
    if (!q->vector_count) {
        ONX_TRY(want(p, "coefficients", &q->coefficients, q->classes, q->batch.columns));
        if (!q->rho.count)
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute rho has no elements");
        q->raw = q->classes;
        return ONX_OK;
    }
    q->pairs = q->classes * (q->classes - 1) / 2;
    if (count != q->classes || q->classes < 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "vectors_per_class has %u elements for %llu classes", count,
                                (unsigned long long)q->classes);
    ONX_TRY(want(p, "support_vectors", &q->vectors, q->vector_count, q->batch.columns));
    ONX_TRY(want(p, "coefficients", &q->coefficients, q->classes - 1, q->vector_count));
    ONX_TRY(want(p, "rho", &q->rho, q->pairs, 1));
    if (q->prob_a.count || q->prob_b.count) {
        ONX_TRY(want(p, "prob_a", &q->prob_a, q->pairs, 1));
        ONX_TRY(want(p, "prob_b", &q->prob_b, q->pairs, 1));
    }
    q->raw = q->prob_a.count ? q->classes : q->pairs;
    return ONX_OK;
}

static onx_status classifier_shape(const onx_prepare *p, svm_params *q)
{
    ONX_TRY(read_common(p, q));
    ONX_TRY(onxi_ml_labels_of(p, "classlabels_ints", &q->labels));
    ONX_TRY(onxi_ml_numbers_of(p, "prob_a", &q->prob_a));
    ONX_TRY(onxi_ml_numbers_of(p, "prob_b", &q->prob_b));
    q->classes = q->labels.count ? q->labels.count : 1;
    ONX_TRY(machine_shape(p, q));
    /* A single score for two classes is that of the second class; the first class has the negated score. */
    bool opposed = q->raw == 1 && q->labels.count == 2 && q->transform != ONXI_ML_PROBIT;
    q->columns = opposed ? 2 : q->raw;
    q->positive = true;
    for (uint64_t i = 0; i < q->coefficients.count; i++)
        q->positive &= q->coefficients.at[i] >= 0;
    return ONX_OK;
}

static onx_status classifier_types(onx_prepare *p)
{
    svm_params q = { .columns = 0 };
    ONX_TRY(classifier_shape(p, &q));
    return onxi_ml_classes(p, &q.labels, q.batch.rows, q.columns);
}

static onx_status classifier_prepare(onx_prepare *p)
{
    svm_params *q = ONXI_NEW(p->arena, svm_params);
    uint64_t square = 0, more;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(classifier_shape(p, q));
    ONX_TRY(onxi_ml_want_scores(p, 1, q->batch.rows, q->columns));
    p->params = q;
    p->rows = q->batch.rows;
    p->grain = 16384 / (q->vectors.count + q->coefficients.count + 1) + 1;
    /* Workspace for features, kernel values, scores of pairs, votes, scores and, for probabilities, two vectors and a
     * square matrix. */
    if (q->prob_a.count)
        square = 2 * q->classes + q->classes * q->classes;
    const uint64_t kernels = p->kernel->body ? 0 : q->vector_count;
    if (!onxi_add_u64(square, kernels + q->pairs + 2 * q->classes + 2, &more))
        more = UINT64_MAX; /* refused below, with a message */
#if ONXI_PLATFORM_ROOMY
    const uint64_t sums = q->pairs > q->classes ? q->pairs : q->classes;
    if (p->kernel->body) {
        ONX_TRY(narrow_vectors(p, q));
        ONX_TRY(lanes_workspace(p, q, sums));
        const uint64_t shared = p->thread_workspace / sizeof(double);
        return onxi_ml_workspace(p, shared, more);
    }
#endif
    return onxi_ml_workspace(p, q->batch.columns, more);
}

/* ---- SVMClassifier: running ---- */

typedef struct svm_space {
    double *features, *kernels, *pairs, *votes, *scores, *rest;
} svm_space;

/* Divides the workspace of one row; `kernels`: the number of kernel values that it has room for. */
static svm_space space_of(const svm_params *q, void *workspace, uint64_t kernels)
{
    svm_space s = { .features = workspace };
    s.kernels = s.features + q->batch.columns;
    s.pairs = s.kernels + kernels;
    s.votes = s.pairs + q->pairs;
    s.scores = s.votes + q->classes;
    s.rest = s.scores + q->classes + 2;
    return s;
}

static void count_votes(const svm_params *q, const svm_space *s)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < q->classes; i++)
        s->votes[i] = 0;
    for (uint64_t i = 0; i < q->classes; i++)
        for (uint64_t j = i + 1; j < q->classes; j++, at++)
            s->votes[s->pairs[at] > 0 ? i : j]++;
}

static void score_pairs(const svm_params *q, const svm_space *s)
{
    const double *c = q->coefficients.at;
    uint64_t n = q->vector_count, at = 0, from_i = 0;
    for (uint64_t v = 0; v < n; v++)
        s->kernels[v] = kernel_of(q, s->features, q->vectors.at + v * q->batch.columns);
    for (uint64_t i = 0; i < q->classes; i++) {
        uint64_t count_i = (uint64_t)q->per_class[i], from_j = from_i + count_i;
        for (uint64_t j = i + 1; j < q->classes; j++, at++) {
            uint64_t count_j = (uint64_t)q->per_class[j];
            s->pairs[at] = q->rho.at[at] + onxi_ml_product(c + (j - 1) * n + from_i, s->kernels + from_i, count_i) +
                           onxi_ml_product(c + i * n + from_j, s->kernels + from_j, count_j);
            from_j += count_j;
        }
        from_i += count_i;
    }
    count_votes(q, s);
}

/* Computes the class probabilities that agree best with those of the pairs: Wu, Lin and Weng, "Probability estimates
 * for multi-class classification by pairwise coupling", second method. r[i][j] is the upper half of `square`. */
static void couple(uint64_t k, double *square, double *product_of, double *p)
{
    double *r = square; /* is replaced by the matrix Q of the method */
    for (uint64_t t = 0; t < k; t++)
        p[t] = 1.0 / (double)k;
    for (uint64_t t = 0; t < k; t++) {
        double sum = 0;
        for (uint64_t j = 0; j < k; j++)
            if (j != t) {
                double other = j < t ? r[j * k + t] : 1 - r[t * k + j];
                sum += other * other;
            }
        product_of[t] = sum;
    }
    for (uint64_t t = 0; t < k; t++)
        r[t * k + t] = product_of[t];
    for (uint64_t t = 0; t < k; t++)
        for (uint64_t j = t + 1; j < k; j++)
            r[j * k + t] = r[t * k + j] = -(1 - r[t * k + j]) * r[t * k + j];
    uint64_t rounds = k > 100 ? k : 100;
    for (uint64_t round = 0; round < rounds; round++) {
        double whole = 0, worst = 0;
        for (uint64_t t = 0; t < k; t++) {
            product_of[t] = onxi_ml_product(r + t * k, p, k);
            whole += p[t] * product_of[t];
        }
        for (uint64_t t = 0; t < k; t++)
            worst = fabs(product_of[t] - whole) > worst ? fabs(product_of[t] - whole) : worst;
        if (!(worst >= 0.005 / (double)k))
            return;
        for (uint64_t t = 0; t < k; t++) {
            double step = (whole - product_of[t]) / r[t * k + t], scale = 1 + step;
            p[t] += step;
            whole = (whole + step * (step * r[t * k + t] + 2 * product_of[t])) / scale / scale;
            for (uint64_t j = 0; j < k; j++) {
                product_of[j] = (product_of[j] + step * r[t * k + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}

static void probabilities(const svm_params *q, const svm_space *s)
{
    double *square = s->rest + q->classes;
    uint64_t at = 0;
    for (uint64_t i = 0; i < q->classes; i++)
        for (uint64_t j = i + 1; j < q->classes; j++, at++) {
            double r = 1 - onxi_ml_logistic(s->pairs[at] * q->prob_a.at[at] + q->prob_b.at[at]);
            r = r < 1e-7 ? 1e-7 : r > 1 - 1e-7 ? 1 - 1e-7 : r;
            square[i * q->classes + j] = r;
        }
    couple(q->classes, square, s->rest, s->scores);
}

/* Writes the class with the most votes or the greatest score. A single score decides between yes (1) and no (0). */
static void name_class(const svm_params *q, onx_value *y, uint64_t row, const double *from, uint64_t count)
{
    uint64_t best = onxi_ml_argmax(from, count);
    if (q->rho.count != 1 || q->labels.count == 2) {
        if (q->rho.count == 1 && q->positive && !q->prob_a.count && from[best] >= 0.5)
            best = 1;
        onxi_ml_label(&q->labels, y, row, best, (int64_t)best);
        return;
    }
    onxi_ml_label(&q->labels, y, row, UINT64_MAX, from[best] > 0);
}

/* Writes the outputs of a row: from its pairs and votes if there are support vectors, else from its scores. */
static void finish_row(const svm_params *q, const svm_space *s, const onx_work *work, uint64_t row)
{
    double *scores = s->scores;
    if (q->vector_count && q->prob_a.count)
        probabilities(q, s);
    else if (q->vector_count)
        scores = s->pairs;
    if (onxi_ml_output(work, 0))
        name_class(q, onxi_ml_output(work, 0), row, q->vector_count ? s->votes : scores, q->classes);
    if (!onxi_ml_output(work, 1))
        return;
    double both[2] = { -scores[0], scores[0] };
    if (q->columns == 2 && q->raw == 1)
        scores = both;
    onxi_ml_finish(q->transform, scores, q->columns);
    onxi_ml_store(onxi_ml_output(work, 1), row, q->columns, scores);
}

static onx_status classifier_run(onx_work *work, uint64_t first, uint64_t last)
{
    const svm_params *q = work->params;
    svm_space s = space_of(q, work->thread_workspace, q->vector_count);
    for (uint64_t row = first; row < last; row++) {
        onxi_ml_load(work->inputs[0], row, q->batch.columns, s.features);
        if (q->vector_count) {
            score_pairs(q, &s);
        } else {
            for (uint64_t c = 0; c < q->classes; c++)
                s.scores[c] = q->rho.at[0] +
                              onxi_ml_product(s.features, q->coefficients.at + c * q->batch.columns, q->batch.columns);
        }
        finish_row(q, &s, work, row);
    }
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
/* Computes the scores of all pairs of classes. The support vectors of a class contribute to its pairs with every other
 * class. */
static void score_pairs_lanes(const svm_params *q, const lanes *l)
{
    const uint64_t n = q->vector_count, k = q->classes;
    for (uint64_t i = 0; i < q->pairs * ONXI_ML_LANES; i++)
        l->sums[i] = q->rho.at[i / ONXI_ML_LANES];
    for (uint64_t c = 0, from = 0; c < k; from += (uint64_t)q->per_class[c++])
        for (uint64_t v = 0, some; v < (uint64_t)q->per_class[c]; v += some) {
            const uint64_t left = (uint64_t)q->per_class[c] - v;
            some = left < VECTORS ? left : VECTORS;
            find_kernels(q, l, from + v, some);
            for (uint64_t other = 0; other < k; other++) {
                const uint64_t i = c < other ? c : other, j = c < other ? other : c;
                const double *list = q->coefficients.at + (c < other ? other - 1 : other) * n;
                if (other != c)
                    l->loops->products(l->kernels, list + from + v, some, 1,
                                       l->sums + (i * k - i * (i + 1) / 2 + j - i - 1) * ONXI_ML_LANES);
            }
        }
}

/* Copies the scores of row r from the interleaved rows to the workspace of a single row. */
static void take_row(const svm_params *q, const lanes *l, uint64_t r, const svm_space *s)
{
    double *to = q->vector_count ? s->pairs : s->scores;
    const uint64_t count = q->vector_count ? q->pairs : q->classes;
    for (uint64_t i = 0; i < count; i++)
        to[i] = l->sums[i * ONXI_ML_LANES + r];
    if (q->vector_count)
        count_votes(q, s);
}

static onx_status classifier_lanes(onx_work *work, uint64_t first, uint64_t last)
{
    const svm_params *q = work->params;
    const lanes l = lanes_of(work, q->pairs > q->classes ? q->pairs : q->classes);
    const svm_space s = space_of(q, l.rows, 0);
    for (uint64_t row = first, count; row < last; row += count) {
        count = last - row < ONXI_ML_LANES ? last - row : ONXI_ML_LANES;
        load_rows(q, &l, work->inputs[0], row, count, s.features);
        if (q->vector_count) {
            score_pairs_lanes(q, &l);
        } else {
            for (uint64_t i = 0; i < q->classes * ONXI_ML_LANES; i++)
                l.sums[i] = q->rho.at[0];
            l.loops->products(l.features, q->coefficients.at, q->batch.columns, q->classes, l.sums);
        }
        for (uint64_t r = 0; r < count; r++) {
            take_row(q, &l, r, &s);
            finish_row(q, &s, work, row + r);
        }
    }
    return ONX_OK;
}

#define LANES(...)                                                                                                     \
    ONXI_ML_ROW("SVMRegressor", 1, .preference = 1, .prepare = regressor_prepare, .run = regressor_lanes,              \
                __VA_ARGS__),                                                                                          \
        ONXI_ML_ROW("SVMClassifier", 1, .preference = 1, .types = classifier_types, .prepare = classifier_prepare,     \
                    .run = classifier_lanes, __VA_ARGS__)
#endif

const onx_kernel onxi_kernels_ml_svm[] = {
#if ONXI_PLATFORM_ROOMY
    ONXI_LEVELS(LANES, onxi_ml_loops),
#endif
    ONXI_ML_ROW("SVMRegressor", 1, .prepare = regressor_prepare, .run = regressor_run),
    ONXI_ML_ROW("SVMClassifier", 1, .types = classifier_types, .prepare = classifier_prepare, .run = classifier_run),
    { 0 }
};
