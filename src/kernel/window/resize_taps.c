/* resize_taps.c - tables for Resize and Upsample: the input coordinates of each output element, and the weights of its
 * neighbours. */
#include "kernel/core/resize.h"

#include <math.h>

typedef enum transform {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    CROP_AND_RESIZE,
    HALF_PIXEL_FOR_NEAREST
} transform;
typedef enum filter { NEAREST, LINEAR, CUBIC } filter;
/* SIMPLE, before version 11: rounds down where the axis grows and up where it shrinks. */
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, SIMPLE } rounding;

typedef struct options {
    transform transform;
    filter filter;
    rounding rounding;
    bool antialias, exclude_outside;
    double cubic, scale, low, high; /* scale and region of one axis */
} options;

/* ---- attributes and inputs ---- */

static onx_status choose(const onxi_move_call *call, const char *name, const onxi_word *words, uint32_t count, int *out)
{
    *out = onxi_prepare_word(call->p, name, words, count);
    return *out >= 0 ? ONX_OK : ONXI_MOVE_FAIL(call, "%s is \"%.*s\"", name, ONX_ARG(onx_prepare_text(call->p, name)));
}

static onx_status read_options(const onxi_move_call *call, options *o)
{
    /* Many models use tf_half_pixel_for_nn after version 11, so it is accepted there. The checker reports words that
     * the version does not have (ND-26). */
    static const onxi_word transforms[] = { { "half_pixel", 1, 0 },          { "half_pixel_symmetric", 1, 0 },
                                            { "pytorch_half_pixel", 1, 0 },  { "align_corners", 1, 0 },
                                            { "asymmetric", 1, 0 },          { "tf_crop_and_resize", 1, 0 },
                                            { "tf_half_pixel_for_nn", 1, 0 } };
    static const onxi_word filters[] = {
        { "nearest", 1, 0 }, { "linear", 7, 0 }, { "cubic", 11, 0 }, { "bilinear", 1, 6 }
    };
    static const onxi_word roundings[] = {
        { "round_prefer_floor", 1, 0 }, { "round_prefer_ceil", 1, 0 }, { "floor", 1, 0 }, { "ceil", 1, 0 }
    };
    const onx_prepare *p = call->p;
    bool resize = p->op == ONXI_ID_Resize;
    int chosen = ASYMMETRIC;
    bool modern = resize && p->since >= 11; /* before version 11, coordinates were only scaled */
    *o = (options){ .rounding = SIMPLE };
    if (modern) {
        o->cubic = (double)onx_prepare_float(p, "cubic_coeff_a");
        o->antialias = onx_prepare_is_set(p, "antialias");
        o->exclude_outside = onx_prepare_is_set(p, "exclude_outside");
        ONX_TRY(choose(call, "coordinate_transformation_mode", transforms, 7, &chosen));
    }
    o->transform = (transform)chosen;
    ONX_TRY(choose(call, "mode", filters, 4, &chosen));
    o->filter = chosen == 3 ? LINEAR : (filter)chosen;
    if (!modern)
        return ONX_OK;
    ONX_TRY(choose(call, "nearest_mode", roundings, 4, &chosen));
    o->rounding = (rounding)chosen;
    return ONX_OK;
}

/* Numbers given per axis: scales from the attribute or input, sizes, regions. */
typedef struct numbers {
    const onx_value *scales, *sizes, *regions;
    const float *list;
    uint64_t list_count;
} numbers;

static const onx_value *given(const onxi_move_call *call, uint32_t index)
{
    const onx_value *v = onxi_move_input(call, index);
    return v && v->count ? v : NULL;
}

static numbers read_numbers(const onxi_move_call *call, float *pair)
{
    const onx_prepare *p = call->p;
    numbers n = { 0 };
    uint32_t count = 0;
    if (p->op == ONXI_ID_Resize) {
        n.scales = given(call, p->since >= 11 ? 2 : 1);
        n.sizes = p->since >= 11 ? given(call, 3) : NULL;
        n.regions = p->since >= 11 ? given(call, 1) : NULL;
    } else if (p->since >= 9) {
        n.scales = given(call, 1);
    } else if (p->since >= 7) {
        n.list = onx_prepare_floats(p, "scales", &count);
    } else {
        pair[0] = onx_prepare_float(p, "height_scale");
        pair[1] = onx_prepare_float(p, "width_scale");
        n.list = pair;
        count = 2;
    }
    n.list_count = n.scales ? n.scales->count : n.list ? count : n.sizes ? n.sizes->count : 0;
    return n;
}

bool onxi_taps_known(const onx_prepare *p)
{
    for (uint32_t i = 1; i < p->input_count; i++)
        if (p->inputs[i] && p->inputs[i]->count && !p->inputs[i]->data)
            return false;
    return true;
}

/* Determines the axes that the numbers refer to. */
static onx_status read_axes(const onxi_move_call *call, uint64_t numbers_given, uint32_t *axes, uint32_t *count)
{
    uint32_t rank = call->inputs[0]->rank, n = 0;
    const int64_t *list = call->p->since >= 18 ? onx_prepare_ints(call->p, "axes", &n) : NULL;
    bool seen[ONX_RANK_MAX] = { false };
    static const int64_t plane[2] = { -2, -1 };
    if (call->p->since < 7) { /* Upsample-1 */
        list = plane;
        n = 2;
    }
    *count = list && n ? n : rank;
    if (*count != numbers_given || *count > rank)
        return ONXI_MOVE_FAIL(call, "there are %llu scales or sizes for %u axes", (unsigned long long)numbers_given,
                              *count);
    for (uint32_t i = 0; i < *count; i++) {
        int64_t axis = list && n ? list[i] : (int64_t)i;
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= (int64_t)rank || seen[axis])
            return ONXI_MOVE_FAIL(call, "an axis is outside of rank %u, or given twice", rank);
        seen[axis] = true;
        axes[i] = (uint32_t)axis;
    }
    return ONX_OK;
}

/* With a keep_aspect_ratio_policy, all axes have the scale of the axis that grows least, or most. */
static onx_status read_scales(const onxi_move_call *call, const numbers *n, const uint32_t *axes, uint32_t count,
                              double *scales)
{
    const onx_value *x = call->inputs[0];
    onx_str policy = call->p->op == ONXI_ID_Resize && call->p->since >= 18
                         ? onx_prepare_text(call->p, "keep_aspect_ratio_policy")
                         : onx_str_of("stretch");
    bool larger = onx_str_is(policy, "not_smaller"), smaller = onx_str_is(policy, "not_larger");
    double all = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t in = x->dims[axes[i]];
        scales[i] = n->scales ? onxi_value_number(n->scales, i)
                    : n->list ? (double)n->list[i]
                    : in      ? onxi_value_number(n->sizes, i) / (double)in
                              : 0;
        if (!(scales[i] >= 0) || isinf(scales[i]) || ((n->scales || n->list) && scales[i] == 0))
            return ONXI_MOVE_FAIL(call, "the scale of axis %u is %g", axes[i], scales[i]);
        all = !i || (larger ? scales[i] > all : scales[i] < all) ? scales[i] : all;
    }
    for (uint32_t i = 0; n->sizes && !n->scales && (larger || smaller) && i < count; i++)
        scales[i] = all;
    return ONX_OK;
}

/* ---- coordinates ---- */

/* The input coordinate of output index `o`; false if it is outside and tf_crop_and_resize extrapolates. */
static bool coordinate(const options *o, const onxi_taps *t, int64_t index, double *out)
{
    double x = (double)index, in = (double)t->in, width = o->scale * in, scale = o->scale;
    switch (o->transform) {
    case ALIGN_CORNERS:
        *out = width == 1 ? 0 : x * (in - 1) / (width - 1);
        return true;
    case ASYMMETRIC:
        *out = x / scale;
        return true;
    case HALF_PIXEL_FOR_NEAREST:
        *out = (x + 0.5) / scale;
        return true;
    case PYTORCH_HALF_PIXEL:
        *out = t->out > 1 ? (x + 0.5) / scale - 0.5 : 0;
        return true;
    case HALF_PIXEL_SYMMETRIC:
        *out = in / 2 * (1 - (double)t->out / width) + (x + 0.5) / scale - 0.5;
        return true;
    case CROP_AND_RESIZE:
        *out = width == 1 ? 0.5 * (o->low + o->high) * (in - 1)
                          : o->low * (in - 1) + x * (o->high - o->low) * (in - 1) / (width - 1);
        return *out >= 0 && *out <= in - 1;
    default:
        *out = (x + 0.5) / scale - 0.5;
        return true;
    }
}

/* Converts to an index; coordinates far outside and NaN become an index far outside. */
static int64_t whole(double x)
{
    return x >= 4e18 ? INT64_C(4000000000000000000) : x > -4e18 ? (int64_t)x : -INT64_C(4000000000000000000);
}

static int64_t clamp(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static void nearest(const options *o, onxi_taps *t, int64_t index, double x)
{
    double at = o->rounding == PREFER_FLOOR  ? ceil(x - 0.5)
                : o->rounding == PREFER_CEIL ? floor(x + 0.5)
                : o->rounding == CEIL        ? ceil(x)
                : o->rounding == FLOOR       ? floor(x)
                : o->scale < 1               ? ceil(x)
                                             : floor(x);
    t->start[index] = clamp(whole(at), t->in);
    t->count[index] = 1;
}

/* ---- weights ---- */

static double weigh(const options *o, double distance)
{
    double x = fabs(distance), a = o->cubic;
    if (o->filter == LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The factor by which an antialiasing filter is widened, in input elements. */
static double stretch_of(const options *o)
{
    return o->antialias && o->scale < 1 ? o->scale : 1;
}

static int64_t reach_of(const options *o)
{
    return -whole(floor(-(o->filter == CUBIC ? 2 : 1) / stretch_of(o)));
}

/* Weights of the neighbours left - reach + 1 .. left + reach, where `left` is below x. Weights of neighbours outside
 * are added to the element at the edge. */
static void weigh_all(const options *o, onxi_taps *t, int64_t index, double x)
{
    int64_t reach = reach_of(o), left = whole(ceil(x)) - 1, first = left - reach + 1, last = left + reach;
    double stretch = stretch_of(o), sum = 0, *weight = t->weight + index * t->most;
    t->start[index] = clamp(first, t->in);
    t->count[index] = clamp(last, t->in) - t->start[index] + 1;
    memset(weight, 0, (size_t)t->most * sizeof *weight);
    for (int64_t i = first; i <= last; i++) {
        double w = weigh(o, ((double)i - x) * stretch);
        if (o->exclude_outside && (i < 0 || i >= t->in))
            continue;
        weight[clamp(i, t->in) - t->start[index]] += w;
        sum += w;
    }
    if ((o->exclude_outside || o->antialias) && sum != 0)
        for (int64_t i = 0; i < t->count[index]; i++)
            weight[i] /= sum;
}

/* ---- tables ---- */

static onx_status make_pair(onx_arena *arena, onxi_taps *t)
{
    onxi_taps_pair pair;
    if (!t->weight || t->most > 2 || t->in > INT32_MAX)
        return ONX_OK;
    for (int64_t i = 0; i < t->out; i++)
        if (!t->count[i])
            return ONX_OK;
    for (int n = 0; n < 2; n++) {
        pair.at[n] = ONXI_ARRAY(arena, int32_t, (uint64_t)t->out);
        pair.weight[n] = ONXI_ARRAY(arena, float, (uint64_t)t->out);
        if (!pair.at[n] || !pair.weight[n])
            return ONX_E_MEMORY;
    }
    for (int64_t i = 0; i < t->out; i++) {
        const double *weight = t->weight + i * t->most;
        const bool two = t->count[i] == 2;
        for (int n = 0; n < 2; n++) {
            pair.at[n][i] = (int32_t)(t->start[i] + (two ? n : 0));
            pair.weight[n][i] = (float)(two ? weight[n] : weight[0] / 2);
        }
    }
    t->pair = pair;
    return ONX_OK;
}

static onx_status make_axis(const onxi_move_call *call, onx_arena *arena, const options *o, onxi_taps *t)
{
    uint64_t out = (uint64_t)t->out, entries;
    if (!t->in)
        return ONXI_MOVE_FAIL(call, "axis %u is empty and cannot be resized to %lld", t->axis, (long long)t->out);
    if (o->scale * (double)t->in < 1e-3) /* within the rounding error */
        return ONXI_MOVE_FAIL(call, "axis %u cannot be scaled by %g to %lld", t->axis, o->scale, (long long)t->out);
    t->start = ONXI_ARRAY(arena, int64_t, out);
    t->count = ONXI_ARRAY(arena, int64_t, out);
    if (!t->start || !t->count)
        return ONX_E_MEMORY;
    if (o->filter != NEAREST) {
        t->most = 2 * reach_of(o) < t->in ? 2 * reach_of(o) : t->in;
        if (!onxi_mul_u64(out, (uint64_t)t->most, &entries) || entries > SIZE_MAX / sizeof *t->weight)
            return ONXI_MOVE_FAIL(call, "axis %u is too large", t->axis);
        t->weight = ONXI_ARRAY(arena, double, entries);
        if (!t->weight)
            return ONX_E_MEMORY;
    }
    for (int64_t i = 0; i < t->out; i++) {
        double x;
        if (!coordinate(o, t, i, &x))
            t->count[i] = 0;
        else if (o->filter == NEAREST)
            nearest(o, t, i, x);
        else
            weigh_all(o, t, i, x < -2e9 ? -2e9 : x < 2e9 + (double)t->in ? x : 2e9 + (double)t->in);
    }
    return make_pair(arena, t);
}

/* Order of the axes: those that shrink most first, so that no intermediate result is larger than both the input and the
 * output. Then those that grow, the last axis first: it is resized element by element, the others by lines, so there
 * should be few lines yet. */
static bool goes_before(const onxi_taps *a, const onxi_taps *b)
{
    const double by_a = (double)a->out / (double)a->in, by_b = (double)b->out / (double)b->in;
    return by_a >= 1 && by_b >= 1 ? a->axis > b->axis : by_a < by_b;
}

static void sort_axes(onxi_taps_list *list)
{
    for (uint32_t i = 1; i < list->count; i++) {
        onxi_taps t = list->axis[i];
        uint32_t k = i;
        for (; k && goes_before(&t, &list->axis[k - 1]); k--)
            list->axis[k] = list->axis[k - 1];
        list->axis[k] = t;
    }
}

onx_status onxi_taps_make(const onxi_move_call *call, onx_arena *arena, onxi_taps_list *list)
{
    const onx_value *x = call->inputs[0], *y = call->output;
    options o;
    float pair[2];
    numbers n = read_numbers(call, pair);
    uint32_t axes[ONX_RANK_MAX], count;
    double scales[ONX_RANK_MAX];
    memset(list, 0, sizeof *list);
    ONX_TRY(read_options(call, &o));
    ONX_TRY(read_axes(call, n.list_count, axes, &count));
    ONX_TRY(read_scales(call, &n, axes, count, scales));
    bool crop = o.transform == CROP_AND_RESIZE;
    if (crop && (!n.regions || n.regions->count != 2 * (uint64_t)count))
        return ONXI_MOVE_FAIL(call, "roi has %llu elements, expected %u",
                              n.regions ? (unsigned long long)n.regions->count : 0, 2 * count);
    list->nearest = o.filter == NEAREST;
    list->extrapolation = crop ? (double)onx_prepare_float(call->p, "extrapolation_value") : 0;
    int64_t left[ONX_RANK_MAX];
    onxi_copy_dims(left, x->dims, x->rank);
    for (uint32_t i = 0; i < count; i++) {
        onxi_taps *t = &list->axis[list->count];
        *t = (onxi_taps){ .axis = axes[i], .in = x->dims[axes[i]], .out = y->dims[axes[i]] };
        o.scale = scales[i];
        o.low = crop ? onxi_value_number(n.regions, i) : 0;
        o.high = crop ? onxi_value_number(n.regions, count + i) : 1;
        left[t->axis] = t->out;
        if (o.scale == 1 && t->in == t->out && o.low == 0 && o.high == 1)
            continue;
        ONX_TRY(make_axis(call, arena, &o, t));
        list->count++;
    }
    for (uint32_t d = 0; d < x->rank; d++)
        if (left[d] != y->dims[d])
            return ONXI_MOVE_FAIL(call, "dimension %u of the output is %lld, expected %lld", d, (long long)y->dims[d],
                                  (long long)left[d]);
    sort_axes(list);
    return ONX_OK;
}
