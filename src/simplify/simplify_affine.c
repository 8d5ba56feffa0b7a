/* simplify_affine.c - folds BatchNormalization, and constant factors and terms, that follow a product or convolution
 * into its weights: y = (W x + c) a + b is (a W) x + (a c + b). */
#include "simplify/simplify.h"

#include <math.h>

enum { COMPUTED_MAX = 512 << 20 }; /* bytes of weights that may move from external files into the model */

/* The op whose weights are changed, and the layout of its channels in them. */
typedef struct host {
    onxi_sop *op;
    uint32_t index, rank; /* rank: of its output */
    const onx_tensor *weights, *bias;
    uint64_t channels, before, after; /* the weights are viewed as [before, channels, after] */
    uint64_t groups;                  /* for ConvTranspose: [groups, before, channels per group, after] */
} host;

typedef struct affine {    /* per channel */
    double *scale, *shift; /* NULL: all 1, all 0 */
} affine;

static bool is_float(int32_t dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

/* ---- hosts ---- */

static bool lay_out(host *h)
{
    const onx_tensor *w = h->weights;
    uint64_t count;
    if (!w || !is_float(w->data_type) || w->dims_count < 2 || !onx_tensor_count(w, &count) || !count)
        return false;
    h->rank = w->dims_count;
    h->before = 1;
    h->groups = 1;
    switch ((int)h->op->bound->op) {
    case ONXI_ID_Conv:
        h->channels = (uint64_t)w->dims[0];
        break;
    case ONXI_ID_ConvTranspose: {
        const int64_t groups = onxi_attrs_int(&h->op->attrs, "group");
        if (groups < 1 || w->dims[0] % groups)
            return false;
        h->groups = (uint64_t)groups;
        h->before = (uint64_t)w->dims[0] / h->groups;
        h->channels = (uint64_t)w->dims[1] * h->groups;
        break;
    }
    default: /* Gemm, MatMul */
        if (w->dims_count != 2)
            return false;
        const bool rows = h->op->bound->op == ONXI_ID_Gemm && onxi_attrs_int(&h->op->attrs, "transB") != 0;
        h->channels = (uint64_t)w->dims[!rows];
        h->before = rows ? 1 : (uint64_t)w->dims[0];
    }
    h->after = count / h->before / h->channels;
    return true;
}

static bool find_host(onxi_simplify *s, const onxi_sop *near, uint32_t value, host *h)
{
    static const onxi_op_id ids[] = { ONXI_ID_Conv, ONXI_ID_ConvTranspose, ONXI_ID_Gemm, ONXI_ID_MatMul };
    h->op = NULL;
    for (size_t i = 0; i < sizeof ids / sizeof *ids && !h->op; i++)
        h->op = onxi_simplify_maker(s, near, value, ids[i]);
    if (!h->op || !onxi_simplify_is_private(s, value) || h->op->input_count < 2)
        return false;
    h->index = (uint32_t)(h->op - s->ops);
    const uint32_t w = onxi_simplify_input(s, h->op, 1), c = onxi_simplify_input(s, h->op, 2);
    h->weights = w == ONXI_S_NONE ? NULL : s->values[w].tensor;
    h->bias = c == ONXI_S_NONE ? NULL : s->values[c].tensor;
    if (!lay_out(h) || (c != ONXI_S_NONE && !h->bias))
        return false;
    uint64_t count;
    if (h->bias && (!onx_tensor_count(h->bias, &count) || (count != h->channels && count != 1) ||
                    h->bias->dims_count > 2 || (h->bias->dims_count == 2 && h->bias->dims[0] != 1)))
        return false;
    const onxi_attr_value *beta = onxi_attrs_get(&h->op->attrs, "beta", ONX_ATTR_FLOAT);
    return !beta || beta->f == 1.0f;
}

/* ---- the affine operation ---- */

/* A constant with one number per channel, or one for all channels; expanded to all channels. */
static bool per_channel(onxi_simplify *s, const host *h, uint32_t value, double **out)
{
    const onx_tensor *t = value == ONXI_S_NONE ? NULL : s->values[value].tensor;
    const bool spatial = h->op->bound->op == ONXI_ID_Conv || h->op->bound->op == ONXI_ID_ConvTranspose;
    const uint32_t most = h->op->bound->op == ONXI_ID_MatMul ? 1 : h->rank;
    uint64_t count;
    if (!t || !is_float(t->data_type) || t->dims_count > most || !onx_tensor_count(t, &count) ||
        (count != 1 && count != h->channels))
        return false;
    const uint32_t behind = spatial ? h->rank - 2 : 0; /* axes after the channels */
    if (count != 1 && (t->dims_count < behind + 1 || (uint64_t)t->dims[t->dims_count - 1 - behind] != count))
        return false;
    *out = ONXI_ARRAY(s->scratch, double, (size_t)h->channels);
    uint64_t got;
    if (!*out || !onxi_simplify_get_numbers(s, value, *out, h->channels, &got))
        return false;
    for (uint64_t i = 1; count == 1 && i < h->channels; i++)
        (*out)[i] = (*out)[0];
    return true;
}

static bool of_normalization(onxi_simplify *s, const onxi_sop *bn, const host *h, affine *a)
{
    double *list[4];
    uint64_t count;
    const onxi_attr_value *epsilon = onxi_attrs_get(&bn->attrs, "epsilon", ONX_ATTR_FLOAT);
    if (bn->input_count != 5 || bn->bound->schema->since < 7 || onxi_attrs_int(&bn->attrs, "training_mode") ||
        h->op->bound->op == ONXI_ID_MatMul || !epsilon)
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        list[i] = ONXI_ARRAY(s->scratch, double, (size_t)h->channels);
        const uint32_t value = onxi_simplify_input(s, bn, i + 1);
        if (!list[i] || value == ONXI_S_NONE || !onxi_simplify_get_numbers(s, value, list[i], h->channels, &count) ||
            count != h->channels)
            return false;
    }
    for (uint32_t i = 1; i < bn->output_count; i++)
        if (bn->outputs[i] != ONXI_S_NONE)
            return false;
    for (uint64_t c = 0; c < h->channels; c++) { /* scale, shift, mean, variance */
        list[0][c] /= sqrt(list[3][c] + (double)epsilon->f);
        list[1][c] -= list[2][c] * list[0][c];
    }
    *a = (affine){ list[0], list[1] };
    return true;
}

/* The constant operand of Mul, Div, Add or Sub as scale and shift. */
static bool of_elementwise(onxi_simplify *s, const onxi_sop *op, const host *h, bool first, affine *a)
{
    double *c;
    if (op->input_count != 2 || !per_channel(s, h, onxi_simplify_input(s, op, first ? 0 : 1), &c))
        return false;
    double *minus = first && op->bound->op == ONXI_ID_Sub ? ONXI_ARRAY(s->scratch, double, (size_t)h->channels) : NULL;
    for (uint64_t i = 0; i < h->channels; i++) {
        if (op->bound->op == ONXI_ID_Div)
            c[i] = 1 / c[i];
        if (op->bound->op == ONXI_ID_Sub && !first)
            c[i] = -c[i];
        if (minus)
            minus[i] = -1;
    }
    const bool factor = op->bound->op == ONXI_ID_Mul || op->bound->op == ONXI_ID_Div;
    *a = factor ? (affine){ c, NULL } : (affine){ minus, c };
    return (!first || op->bound->op != ONXI_ID_Div) && (factor || h->op->bound->op != ONXI_ID_MatMul);
}

/* ---- new weights ---- */

enum { PIECE = 1024 };

/* Multiplies the elements of a tensor by the factors of their channels. */
static bool scaled(onxi_simplify *s, const host *h, const double *scale, char *out)
{
    const onx_tensor *w = h->weights;
    const unsigned width = onx_dtype_bits(w->data_type) / 8;
    const uint64_t total = h->before * h->channels * h->after, each = h->channels / h->groups;
    double piece[PIECE];
    const onxi_diag_mark mark = onxi_diag_here(s->cx);
    bool fine = true;
    for (uint64_t at = 0; at < total && fine; at += PIECE) {
        const uint64_t n = total - at < PIECE ? total - at : PIECE;
        fine = onx_tensor_get_f64(s->doc, w, at, n, piece) == ONX_OK;
        for (uint64_t i = 0; i < n && fine; i++) {
            const uint64_t channel = (at + i) / h->after;
            piece[i] *= scale[channel / (h->before * each) * each + channel % each];
        }
        if (fine)
            onxi_convert((onx_dtype)w->data_type, out + at * width, ONX_DOUBLE, piece, 0, n, false);
    }
    onxi_diag_rewind(s->cx, mark);
    return fine;
}

static bool is_finite(const onx_tensor *t, uint64_t count)
{
    double piece[PIECE];
    for (uint64_t at = 0; at < count; at += PIECE) {
        const uint64_t n = count - at < PIECE ? count - at : PIECE;
        if (onx_tensor_get_f64(NULL, t, at, n, piece) != ONX_OK)
            return false;
        for (uint64_t i = 0; i < n; i++)
            if (!isfinite(piece[i]))
                return false;
    }
    return true;
}

/* A tensor in the document's arena, without elements yet. */
static onx_tensor *blank(onxi_simplify *s, int32_t dtype, const int64_t *dims, uint32_t rank, uint64_t count,
                         char **data)
{
    uint64_t size;
    onx_tensor *t = ONXI_NEW(s->arena, onx_tensor);
    if (!t || !onx_dtype_size((onx_dtype)dtype, count, &size) ||
        !(t->dims = onxi_arena_array(s->arena, (size_t)onxi_list_room(rank), sizeof *t->dims)) ||
        !(*data = onx_arena_alloc(s->arena, (size_t)size)))
        return NULL;
    onxi_copy_dims(t->dims, dims, rank);
    t->dims_count = rank;
    ONX_SET(tensor, t, data_type, dtype);
    t->has |= onx_tensor_has_raw_data;
    return onx_arena_refer(s->arena, onx_str_make(*data, (size_t)size), &t->raw_data) == ONX_OK ? t : NULL;
}

static onx_status new_weights(onxi_simplify *s, const host *h, const double *scale, onx_tensor **out)
{
    const uint64_t count = h->before * h->channels * h->after;
    char *data;
    onx_tensor *t = blank(s, h->weights->data_type, h->weights->dims, h->weights->dims_count, count, &data);
    *out = NULL;
    if (!t)
        return ONX_E_MEMORY;
    if (scaled(s, h, scale, data) && is_finite(t, count))
        *out = t;
    return ONX_OK;
}

static onx_status new_bias(onxi_simplify *s, const host *h, const affine *a, onx_tensor **out)
{
    const int64_t dim = (int64_t)h->channels;
    double *numbers = ONXI_ARRAY(s->scratch, double, (size_t)h->channels);
    char *data;
    onx_tensor *t = blank(s, h->weights->data_type, &dim, 1, h->channels, &data);
    *out = NULL;
    if (!t || !numbers)
        return ONX_E_MEMORY;
    if (h->bias) {
        uint64_t count = 0;
        const onxi_diag_mark mark = onxi_diag_here(s->cx);
        (void)onx_tensor_count(h->bias, &count);
        const onx_status status = onx_tensor_get_f64(s->doc, h->bias, 0, count, numbers);
        onxi_diag_rewind(s->cx, mark);
        if (status != ONX_OK)
            return ONX_OK;
        for (uint64_t i = 1; count == 1 && i < h->channels; i++)
            numbers[i] = numbers[0];
    }
    for (uint64_t i = 0; i < h->channels; i++)
        numbers[i] = numbers[i] * (a->scale ? a->scale[i] : 1) + (a->shift ? a->shift[i] : 0);
    onxi_convert((onx_dtype)h->weights->data_type, data, ONX_DOUBLE, numbers, 0, h->channels, false);
    if (is_finite(t, h->channels))
        *out = t;
    return ONX_OK;
}

/* Creating new weights pays off if the old ones are removed, or if the model may grow by their size. */
static bool may_compute(onxi_simplify *s, const host *h)
{
    const uint32_t w = onxi_simplify_input(s, h->op, 1);
    uint64_t bytes;
    if (!onxi_simplify_elements(h->weights, &bytes) || bytes > COMPUTED_MAX)
        return false;
    const bool stay = s->values[w].uses != 1 || s->values[w].pinned || s->values[w].is_output;
    if (stay && bytes > s->limit)
        return false;
    if (stay || h->weights->data_location == ONX_DATA_EXTERNAL) {
        if (s->computed + bytes > COMPUTED_MAX)
            return false;
        s->computed += bytes;
    }
    return true;
}

static onx_status fold(onxi_simplify *s, uint32_t index, host *h, const affine *a)
{
    const uint32_t y = s->ops[index].outputs[0], x = h->op->outputs[0], scope = h->op->scope;
    const onx_str base = onx_view(s->values[x].name);
    const bool bias = a->shift || h->bias;
    onx_tensor *w = NULL, *b = NULL;
    if (!onxi_simplify_can_hand_on(s, y, x) || (a->scale && !may_compute(s, h)))
        return ONX_OK;
    if (a->scale)
        ONX_TRY(new_weights(s, h, a->scale, &w));
    if (bias)
        ONX_TRY(new_bias(s, h, a, &b));
    if ((a->scale && !w) || (bias && !b)) /* infinite, or unreadable */
        return ONX_OK;
    const uint32_t weights = w ? onxi_simplify_constant(s, scope, base, "weight", w) : onxi_simplify_input(s, h->op, 1);
    const uint32_t shift = b ? onxi_simplify_constant(s, scope, base, "bias", b) : ONXI_S_NONE;
    if (weights == ONXI_S_NONE || (b && shift == ONXI_S_NONE))
        return ONX_E_MEMORY;
    onxi_simplify_note(s, ONXI_SIMPLIFY_AFFINE, s->ops[index].bound->schema->name, index,
                       "folded into the %s of %s %.*s", w ? "weights" : "bias", h->op->bound->schema->name,
                       ONX_ARG(onx_view(h->op->node->name)));
    const uint32_t inputs[] = { onxi_simplify_input(s, h->op, 0), weights, shift };
    ONX_TRY(onxi_simplify_set_inputs(s, h->index, inputs, 3));
    (void)onxi_simplify_hand_on(s, index, y, x);
    return onxi_simplify_drop(s, index);
}

onx_status onxi_simplify_affine(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    host h;
    affine a;
    if (op->opaque || op->dead || !op->output_count || op->outputs[0] == ONXI_S_NONE || op->input_count < 2)
        return ONX_OK;
    const onxi_op_id id = op->bound->op;
    const bool normalization = id == ONXI_ID_BatchNormalization;
    const bool elementwise = id == ONXI_ID_Mul || id == ONXI_ID_Div || id == ONXI_ID_Add || id == ONXI_ID_Sub;
    if ((!normalization && !elementwise) || op->bound->schema->since < 7 || !onxi_simplify_attrs(s, op))
        return ONX_OK;
    for (uint32_t first = 0; first < (elementwise ? 2u : 1u); first++) {
        const uint32_t x = onxi_simplify_input(s, op, first);
        if (x == ONXI_S_NONE || s->values[x].tensor || !find_host(s, op, x, &h))
            continue;
        if (normalization ? of_normalization(s, op, &h, &a) : of_elementwise(s, op, &h, first != 0, &a))
            return fold(s, index, &h, &a);
    }
    return ONX_OK;
}
