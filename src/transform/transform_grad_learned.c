/* transform_grad_learned.c - conditions and texts of the gradients of ai.onnx.ml: linear models and support vector
 * machines, whose coefficients are attributes, and preprocessing of features. */
#include "transform/transform_grad.h"

#include <math.h>

#define WHEN(name) bool onxi_grad_when_##name(onxi_grad_node *n)

static uint32_t count_of(const onxi_grad_node *n, const char *name)
{
    const onx_attribute *a = onxi_subject_given(&n->s, name);
    return a ? a->count : 0;
}

static bool set_pair(onxi_grad_node *n, const char *name, int64_t a, int64_t b)
{
    return onxi_grad_set_ints(n, name, (const int64_t[]){ a, b }, 2);
}

/* ---- post-transforms of scores ---- */

WHEN(scores_plain)
{
    return onxi_subject_text_is(&n->s, "post_transform", "NONE");
}
WHEN(scores_softmax)
{
    return onxi_subject_text_is(&n->s, "post_transform", "SOFTMAX") ||
           onxi_subject_text_is(&n->s, "post_transform", "SOFTMAX_ZERO");
}
WHEN(scores_logistic)
{
    return onxi_subject_text_is(&n->s, "post_transform", "LOGISTIC");
}
WHEN(scores_probit)
{
    return onxi_subject_text_is(&n->s, "post_transform", "PROBIT");
}

/* ---- linear models ---- */

WHEN(linear_regressor)
{
    int64_t targets;
    return count_of(n, "coefficients") && onxi_subject_int(&n->s, "targets", &targets) && targets > 0 &&
           set_pair(n, "lists", targets, -1);
}

/* A single list of coefficients and two labels: the scores of the classes are opposite. If this depends on the number
 * of features, that has to be known. */
static int opposed(onxi_grad_node *n)
{
    const uint32_t labels = count_of(n, "classlabels_ints") + count_of(n, "classlabels_strings");
    const onx_type *type = onxi_subject_type(&n->s, 0);
    const int rank = onxi_type_rank(type);
    const int64_t features = rank > 0 ? onxi_type_dim(type, (uint32_t)rank - 1) : -1;
    const uint32_t coefficients = count_of(n, "coefficients");
    if (!coefficients || (features < 1 && (labels == 0 || labels == 2)))
        return -1;
    if (labels == 2 && coefficients == features)
        return set_pair(n, "lists", 1, -1) ? 1 : -1;
    return (labels ? set_pair(n, "lists", labels, -1) : set_pair(n, "lists", -1, features)) ? 0 : -1;
}
WHEN(classifier_plain)
{
    return opposed(n) == 0;
}
WHEN(classifier_opposed)
{
    return opposed(n) == 1;
}

/* ---- support vectors ---- */

enum { PAIR_WEIGHTS_MAX = 1 << 24 };

static bool read_kernel(onxi_grad_node *n, int64_t vectors)
{
    const uint32_t numbers = count_of(n, "support_vectors"), given = count_of(n, "kernel_params");
    const onx_attribute *params = onxi_subject_given(&n->s, "kernel_params");
    if (vectors < 1 || numbers % vectors || (given && given != 3))
        return false;
    const double degree = given ? (double)(int64_t)params->floats[2] : 0;
    return set_pair(n, "lists", vectors, -1) && set_pair(n, "features", -1, (int64_t)(numbers / vectors)) &&
           onxi_prepare_float(&n->s, "gamma", given ? params->floats[0] : 0) &&
           onxi_prepare_float(&n->s, "shift", given ? params->floats[1] : 0) &&
           onxi_prepare_float(&n->s, "degree", (float)degree) && onxi_prepare_float(&n->s, "lower", (float)degree - 1);
}

WHEN(machine)
{
    int64_t vectors = 0, one_class = 0;
    (void)onxi_subject_int(&n->s, "n_supports", &vectors);
    (void)onxi_subject_int(&n->s, "one_class", &one_class);
    return !one_class && vectors > 0 && count_of(n, "coefficients") && read_kernel(n, vectors);
}

/* For a classifier: number of classes, and of support vectors. */
typedef struct voter {
    uint32_t classes, pairs;
    int64_t vectors;
    const int64_t *per_class;
} voter;

static bool read_voter(onxi_grad_node *n, voter *v)
{
    uint32_t count;
    const uint32_t labels = count_of(n, "classlabels_ints") + count_of(n, "classlabels_strings");
    *v = (voter){ .classes = labels ? labels : 1, .per_class = onxi_subject_ints(&n->s, "vectors_per_class", &count) };
    for (uint32_t i = 0; i < count; i++)
        if (v->per_class[i] < 0 || __builtin_add_overflow(v->vectors, v->per_class[i], &v->vectors))
            return false;
    if (!v->vectors)
        return true;
    if (count != v->classes || v->classes < 2 || v->classes > 4096)
        return false;
    v->pairs = v->classes * (v->classes - 1) / 2;
    return v->vectors <= PAIR_WEIGHTS_MAX / v->pairs &&
           count_of(n, "coefficients") == (uint64_t)v->vectors * (v->classes - 1);
}

/* The sum for each pair of classes: kernels of the vectors of both, weighted by the coefficients of each against the
 * other. */
static bool set_pairs(onxi_grad_node *n, const voter *v)
{
    const onx_attribute *given = onxi_subject_given(&n->s, "coefficients");
    const size_t all = (size_t)v->vectors;
    float *sums = ONXI_ARRAY(n->g->scratch, float, (size_t)v->pairs *all + 1);
    size_t from_i = 0, at = 0;
    for (uint32_t i = 0; sums && i < v->classes; i++) {
        const size_t count_i = (size_t)v->per_class[i];
        size_t from_j = from_i + count_i;
        for (uint32_t j = i + 1; j < v->classes; j++, at++) {
            const size_t count_j = (size_t)v->per_class[j];
            for (size_t k = 0; k < count_i; k++)
                sums[at * all + from_i + k] = given->floats[(j - 1) * all + from_i + k];
            for (size_t k = 0; k < count_j; k++)
                sums[at * all + from_j + k] = given->floats[i * all + from_j + k];
            from_j += count_j;
        }
        from_i += count_i;
    }
    return sums && set_pair(n, "pairs_shape", v->pairs, v->vectors) &&
           onxi_prepare_floats(&n->s, "of_pairs", sums, v->pairs * (uint32_t)v->vectors);
}

/* The values that all kernels and pairs need, computed once. */
static bool prepare_pairs(onxi_grad_node *n)
{
    voter v;
    for (uint32_t i = 0; i < n->s.prepared_count; i++)
        if (onx_str_is(onx_str_of(n->s.prepared_names[i]), "of_pairs"))
            return true;
    return read_voter(n, &v) && v.vectors && set_pairs(n, &v) && read_kernel(n, v.vectors);
}
WHEN(voter)
{
    return !count_of(n, "prob_a") && prepare_pairs(n);
}
/* Probabilities: the index into [r, 1 - r, 0] for each element of a matrix over classes, and the index into [w, 0]. */
static bool set_squares(onxi_grad_node *n, const voter *v)
{
    const uint32_t k = v->classes, all = k * k;
    int64_t *share = ONXI_ARRAY(n->g->scratch, int64_t, all), *weight = ONXI_ARRAY(n->g->scratch, int64_t, all);
    float *unit = ONXI_ARRAY(n->g->scratch, float, all);
    if (!share || !weight || !unit)
        return false;
    for (uint32_t i = 0, at = 0; i < k; i++) {
        share[i * k + i] = 2 * (int64_t)v->pairs;
        weight[i * k + i] = v->pairs;
        unit[i * k + i] = 1;
        for (uint32_t j = i + 1; j < k; j++, at++) {
            share[i * k + j] = weight[i * k + j] = weight[j * k + i] = at;
            share[j * k + i] = (int64_t)v->pairs + at;
        }
    }
    return onxi_grad_set_ints(n, "share", share, all) && onxi_grad_set_ints(n, "weight", weight, all) &&
           onxi_prepare_floats(&n->s, "unit", unit, all) && onxi_prepare_int(&n->s, "classes", k) &&
           onxi_prepare_int(&n->s, "rounds", k > 100 ? k : 100) &&
           onxi_grad_set_ints(n, "square", (const int64_t[]){ 0, k, k }, 3) && set_pair(n, "unit_shape", k, k);
}
WHEN(coupled)
{
    enum { CLASSES_MAX = 256 };
    voter v;
    if (!count_of(n, "prob_a") || !read_voter(n, &v) || !v.vectors || v.classes > CLASSES_MAX ||
        count_of(n, "prob_a") != v.pairs || count_of(n, "prob_b") != v.pairs || count_of(n, "rho") != v.pairs)
        return false;
    for (uint32_t i = 0; i < n->s.prepared_count; i++)
        if (onx_str_is(onx_str_of(n->s.prepared_names[i]), "unit"))
            return true;
    return prepare_pairs(n) && set_squares(n, &v);
}

static bool is_opposed(onxi_grad_node *n, const voter *v)
{
    return v->pairs == 1 && v->classes == 2 && !onxi_subject_text_is(&n->s, "post_transform", "PROBIT");
}
WHEN(voter_opposed)
{
    voter v;
    return onxi_grad_when_voter(n) && read_voter(n, &v) && is_opposed(n, &v);
}
WHEN(voter_plain)
{
    voter v;
    return onxi_grad_when_voter(n) && read_voter(n, &v) && !is_opposed(n, &v);
}
WHEN(voter_direct)
{
    voter v;
    return read_voter(n, &v) && !v.vectors && count_of(n, "coefficients") && set_pair(n, "lists", v.classes, -1);
}

#define KERNEL(name, text)                                                                                             \
    WHEN(kernel_##name)                                                                                                \
    {                                                                                                                  \
        const bool regressor = onxi_schema_attr(n->s.row, onx_str_of("n_supports")) != NULL;                           \
        return onxi_subject_text_is(&n->s, "kernel_type", text) &&                                                     \
               (regressor ? onxi_grad_when_machine(n) : onxi_grad_when_voter(n));                                      \
    }
/* The same for the probabilities that are differentiated as an iteration. */
#define COUPLED_KERNEL(name, text)                                                                                     \
    WHEN(coupled_##name)                                                                                               \
    {                                                                                                                  \
        return onxi_subject_text_is(&n->s, "kernel_type", text) && onxi_grad_when_coupled(n);                          \
    }
COUPLED_KERNEL(linear, "LINEAR")
COUPLED_KERNEL(poly, "POLY")
COUPLED_KERNEL(radial, "RBF")
COUPLED_KERNEL(sigmoid, "SIGMOID")
KERNEL(linear, "LINEAR")
KERNEL(poly, "POLY")
KERNEL(radial, "RBF")
KERNEL(sigmoid, "SIGMOID")
WHEN(machine_direct)
{
    int64_t vectors = 0, one_class = 0;
    (void)onxi_subject_int(&n->s, "n_supports", &vectors);
    (void)onxi_subject_int(&n->s, "one_class", &one_class);
    return !one_class && vectors < 1 && count_of(n, "coefficients") && set_pair(n, "lists", 1, -1);
}
/* A decision between two classes is a step function. */
WHEN(machine_step)
{
    int64_t one_class = 0;
    return onxi_subject_int(&n->s, "one_class", &one_class) && one_class;
}

/* ---- features ---- */

WHEN(scaler_scales)
{
    return count_of(n, "scale") != 0;
}
WHEN(scaler_shifts)
{
    return !count_of(n, "scale");
}
#define NORM(name, text)                                                                                               \
    WHEN(normalizer_##name)                                                                                            \
    {                                                                                                                  \
        return onxi_subject_text_is(&n->s, "norm", text);                                                              \
    }
NORM(max, "MAX")
NORM(l1, "L1")
NORM(l2, "L2")
static bool imputes_nan(onxi_grad_node *n)
{
    float missing;
    return onxi_subject_float(&n->s, "replaced_value_float", &missing) && isnan(missing);
}
WHEN(imputer_nan)
{
    return imputes_nan(n);
}
WHEN(imputer_number)
{
    return !imputes_nan(n);
}

/* Each part is the gradient of its input: cropped to its size, or padded with zeros if the vectorizer cropped it. */
onx_status onxi_grad_write_features(onxi_grad_node *n, onx_str *text)
{
    onxi_grad_writer w = { .arena = n->g->scratch }, head = { .arena = n->g->scratch };
    const uint32_t count = n->s.node->input_count;
    uint32_t given;
    const int64_t *sizes = onxi_subject_ints(&n->s, "inputdimensions", &given);
    if (sizes && given && given != count)
        return onxi_grad_fail(n->g, n->s.node, "inputdimensions has %u elements for %u inputs", given, count);
    onxi_grad_say(&w, "zero = Constant <value_ints = [0]> ()  last = Constant <value_ints = [-1]> ()  ");
    for (uint32_t i = 0; i < count; i++) {
        onxi_grad_say(&w, "n%u = Shape <start = -1> (x%u)  ", i, i);
        if (sizes && given)
            onxi_grad_say(&w, "w%u = Constant <value_ints = [%lld]> ()  ", i, (long long)sizes[i]);
        else
            onxi_grad_say(&w, "w%u = Identity (n%u)  ", i, i);
        onxi_grad_say(&head, "x%u ", i);
    }
    onxi_grad_say(&w, "widths = Concat <axis = 0> (");
    for (uint32_t i = 0; i < count; i++)
        onxi_grad_say(&w, "%sw%u", i ? ", " : "", i);
    onxi_grad_say(&w, ")  ");
    for (uint32_t i = 0; i < count; i++)
        onxi_grad_say(&w, "%sp%u", i ? ", " : "", i);
    onxi_grad_say(&w, " = Split <axis = -1> (dy, widths)  ");
    for (uint32_t i = 0; i < count; i++)
        onxi_grad_say(&w,
                      "r%u = Sub (n%u, w%u)  e%u = Concat <axis = 0> (zero, r%u)  c%u = Pad (p%u, e%u, , last)"
                      "  t%u = CastLike (c%u, x%u)  dx%u = grad.As (t%u, x%u)  ",
                      i, i, i, i, i, i, i, i, i, i, i, i, i, i);
    onxi_grad_say(&head, "=> y");
    n->head = onx_str_make(head.text, head.size);
    *text = onx_str_make(w.text, w.size);
    return w.failed || head.failed ? ONX_E_MEMORY : ONX_OK;
}
