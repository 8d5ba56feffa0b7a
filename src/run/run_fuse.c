/* run_fuse.c - folds scaling and shifting of channels after a Conv or a BatchNormalization into its constants. */
#include "run/run.h"

#include <math.h>

static const onx_value *constant_of(const onxi_run_graph *g, const onxi_run_op *op, uint32_t input)
{
    if (input >= op->input_count || op->inputs[input] == ONXI_NO_SLOT)
        return NULL;
    const onx_value *v = g->slots[op->inputs[input]].constant;
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_FLOAT ? v : NULL;
}

/* An element of a float constant at any alignment. */
static double number_at(const onx_value *v, uint64_t i)
{
    float x;
    memcpy(&x, (const char *)v->data + (v->count == 1 ? 0 : i) * sizeof x, sizeof x);
    return (double)x;
}

/* Adds a slot for a constant, given as `value` or as `source`. */
static onx_status add_constant(onxi_run_graph *g, onx_value *value, onxi_run_source *source, uint32_t *slot_out)
{
    onxi_run_session *s = g->session;
    if (!ONXI_GROW_IN(s->arena, g->slots, g->slot_room, (uint64_t)g->slot_count + 1)) {
        onx_value_free(value);
        return ONX_E_MEMORY;
    }
    g->slots[g->slot_count] =
        (onxi_run_graph_slot){ .constant = source ? source->value : value, .source = source, .uses = 1 };
    *slot_out = g->slot_count++;
    return source ? ONX_OK : onxi_run_session_keep(s, value);
}

/* ---- affine functions of channels ---- */

/* y = x * a + b, for each channel. */
typedef struct affine {
    uint64_t channels;
    double *a, *b;
    bool scales; /* some a are not 1 */
} affine;

/* Outside of training, a BatchNormalization is y = x * a + b per channel. */
static bool is_scaling(const onxi_run_graph *g, const onxi_run_op *bn, uint64_t channels)
{
    if (bn->id != ONXI_ID_BatchNormalization || bn->output_count != 1 || bn->input_count != 5)
        return false;
    for (uint32_t i = 1; i < 5; i++) {
        const onx_value *c = constant_of(g, bn, i);
        if (!c || c->rank != 1 || c->count != channels)
            return false;
    }
    const int64_t mode = onxi_attrs_int(&bn->attrs, bn->since >= 14 ? "training_mode" : "is_test");
    if (bn->since < 14 && bn->node->output_count > 1) /* more outputs mean training */
        return false;
    if (bn->since < 7)
        return mode != 0;
    return bn->since < 14 || mode == 0;
}

/* Has the constant one element per channel, for values of that rank, or one for all channels? */
static bool is_per_channel(const onx_value *v, uint64_t channels, uint32_t rank)
{
    if (!v || v->rank > rank || (v->count != 1 && v->count != channels))
        return false;
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->dims[i] != 1 && i + rank - v->rank != 1)
            return false;
    return true;
}

static void then_scaling(const onxi_run_graph *g, const onxi_run_op *bn, affine *f)
{
    const onx_value *scale = constant_of(g, bn, 1), *shift = constant_of(g, bn, 2);
    const onx_value *mean = constant_of(g, bn, 3), *var = constant_of(g, bn, 4);
    const double eps = (double)onxi_attrs_float(&bn->attrs, "epsilon");
    f->scales = true;
    for (uint64_t c = 0; c < f->channels; c++) {
        const double by = number_at(scale, c) / sqrt(number_at(var, c) + eps);
        f->a[c] *= by;
        f->b[c] = (f->b[c] - number_at(mean, c)) * by + number_at(shift, c);
    }
}

/* Folds an Add, Sub, Mul or Div of a value and a constant into `f`; false where it is none. */
static bool then_arithmetic(const onxi_run_graph *g, const onxi_run_op *op, uint32_t rank, affine *f)
{
    const bool add = op->id == ONXI_ID_Add, sub = op->id == ONXI_ID_Sub, mul = op->id == ONXI_ID_Mul;
    if ((!add && !sub && !mul && op->id != ONXI_ID_Div) || op->since < 7 || op->input_count != 2 || !rank)
        return false;
    const uint32_t at = constant_of(g, op, 1) ? 1 : 0;
    const onx_value *v = constant_of(g, op, at);
    if (!is_per_channel(v, f->channels, rank) || (!at && !add && !mul))
        return false;
    f->scales |= !add && !sub;
    for (uint64_t c = 0; c < f->channels; c++) {
        const double x = number_at(v, c), by = add || sub ? 1 : mul ? x : 1 / x;
        f->a[c] *= by;
        f->b[c] = f->b[c] * by + (add ? x : sub ? -x : 0);
    }
    return true;
}

/* The op that uses the result of this one, if it is the only use. */
static onxi_run_op *only_user(const onxi_run_graph *g, const onxi_run_op *op)
{
    if (op->output_count != 1 || op->outputs[0] == ONXI_NO_SLOT)
        return NULL;
    const onxi_run_graph_slot *out = &g->slots[op->outputs[0]];
    onxi_run_op *user = out->uses == 1 && !out->is_output ? &g->ops[out->user] : NULL;
    return user && user->needed && user->output_count == 1 && user->outputs[0] != ONXI_NO_SLOT && !user->graph_count
               ? user
               : NULL;
}

/* Folds the ops after `op` into `f` as long as they are affine. Returns the last of them, NULL when there is none. */
static onxi_run_op *follow(const onxi_run_graph *g, const onxi_run_op *op, uint32_t rank, affine *f)
{
    onxi_run_op *last = NULL, *next;
    for (; (next = only_user(g, last ? last : op)) != NULL; last = next) {
        const uint32_t from = (last ? last : op)->outputs[0];
        if (is_scaling(g, next, f->channels) && next->inputs[0] == from)
            then_scaling(g, next, f);
        else if (!then_arithmetic(g, next, rank, f))
            break;
    }
    return last;
}

/* Marks the folded ops as unneeded; `op` now makes the result of the last one. */
static void take_over(onxi_run_graph *g, onxi_run_op *op, const onxi_run_op *last)
{
    for (onxi_run_op *next = only_user(g, op); next; next = next == last ? NULL : only_user(g, next))
        next->needed = false;
    op->outputs[0] = last->outputs[0];
}

static onx_status new_affine(onxi_run_graph *g, uint64_t channels, affine *out)
{
    *out = (affine){ .channels = channels,
                     .a = ONXI_ARRAY(g->session->arena, double, channels + 1),
                     .b = ONXI_ARRAY(g->session->arena, double, channels + 1) };
    for (uint64_t c = 0; out->a && out->b && c < channels; c++) {
        out->a[c] = 1;
        out->b[c] = 0;
    }
    return out->a && out->b ? ONX_OK : ONX_E_MEMORY;
}

/* v * a + b, or b alone if v is NULL; *out is NULL when an element is not finite. */
static onx_status changed_constant(onxi_run_graph *g, const affine *f, const onx_value *v, const double *b,
                                   onx_value **out)
{
    const int64_t dims[] = { (int64_t)f->channels };
    ONX_TRY(onx_value_new_tensor(g->session->cx, ONX_FLOAT, 1, dims, out));
    for (uint64_t c = 0; c < f->channels; c++)
        ((float *)(*out)->data)[c] = (float)((v ? number_at(v, c) * f->a[c] : 0) + (b ? b[c] : 0));
    if (!onxi_value_is_finite(*out)) {
        onx_value_free(*out);
        *out = NULL;
    }
    return ONX_OK;
}

/* ---- into a Conv ---- */

/* The weights are scaled when they are read, because most kernels pack them and do not read them again. */
static onx_status into_conv(onxi_run_graph *g, onxi_run_op *conv, const affine *f, const onxi_run_op *last,
                            bool *changed)
{
    onxi_run_session *s = g->session;
    uint32_t *inputs = ONXI_ARRAY(s->arena, uint32_t, 3);
    onxi_run_source *w2 = NULL;
    onx_value *b2;
    if (!inputs)
        return ONX_E_MEMORY;
    if (f->scales)
        ONX_TRY(onxi_run_constant_scaled(s, &g->slots[conv->inputs[1]], f->a, &w2));
    if (f->scales && !w2) /* an infinite factor would multiply each product instead of the sum */
        return ONX_OK;
    ONX_TRY(changed_constant(g, f, constant_of(g, conv, 2), f->b, &b2));
    if (!b2)
        return ONX_OK;
    inputs[0] = conv->inputs[0];
    inputs[1] = conv->inputs[1];
    const onx_status status = w2 ? add_constant(g, NULL, w2, &inputs[1]) : ONX_OK;
    if (status != ONX_OK) {
        onx_value_free(b2);
        return status;
    }
    ONX_TRY(add_constant(g, b2, NULL, &inputs[2]));
    conv->inputs = inputs;
    conv->input_count = 3;
    take_over(g, conv, last);
    *changed = true;
    return ONX_OK;
}

static onx_status fuse_conv(onxi_run_graph *g, onxi_run_op *conv, bool *changed)
{
    const onx_value *w = constant_of(g, conv, 1), *b = constant_of(g, conv, 2);
    const bool bias = conv->input_count > 2 && conv->inputs[2] != ONXI_NO_SLOT;
    affine f;
    if (!w || w->rank < 3 || w->dims[0] < 1 || !only_user(g, conv) ||
        (bias && (!b || b->count != (uint64_t)w->dims[0])))
        return ONX_OK;
    ONX_TRY(new_affine(g, (uint64_t)w->dims[0], &f));
    const onxi_run_op *last = follow(g, conv, w->rank, &f);
    return last ? into_conv(g, conv, &f, last, changed) : ONX_OK;
}

/* ---- into a BatchNormalization ---- */

static onx_status fuse_scaling(onxi_run_graph *g, onxi_run_op *bn, uint32_t rank, bool *changed)
{
    const onx_value *scale = constant_of(g, bn, 1);
    affine f;
    if (!rank || !scale || !is_scaling(g, bn, scale->count) || !only_user(g, bn))
        return ONX_OK;
    ONX_TRY(new_affine(g, scale->count, &f));
    const onxi_run_op *last = follow(g, bn, rank, &f);
    uint32_t *inputs = last ? ONXI_ARRAY(g->session->arena, uint32_t, 5) : NULL;
    onx_value *made[2] = { NULL, NULL };
    if (!last)
        return ONX_OK;
    if (!inputs)
        return ONX_E_MEMORY;
    memcpy(inputs, bn->inputs, 5 * sizeof *inputs);
    for (uint32_t i = 0; i < 2; i++) {
        const onx_status status = changed_constant(g, &f, constant_of(g, bn, i + 1), i ? f.b : NULL, &made[i]);
        if (status != ONX_OK || !made[i]) {
            if (i)
                onx_value_free(made[0]);
            return status;
        }
    }
    const onx_status status = add_constant(g, made[0], NULL, &inputs[1]);
    if (status != ONX_OK) {
        onx_value_free(made[1]);
        return status;
    }
    ONX_TRY(add_constant(g, made[1], NULL, &inputs[2]));
    bn->inputs = inputs;
    take_over(g, bn, last);
    *changed = true;
    return ONX_OK;
}

/* ---- the graph ---- */

/* The rank of an op's result, if the weights tell it; 0: they do not. */
static uint32_t rank_of(const onxi_run_graph *g, const onxi_run_op *op, const uint8_t *ranks)
{
    const onx_value *w;
    switch (op->id) {
    case ONXI_ID_Conv:
    case ONXI_ID_ConvTranspose:
        w = constant_of(g, op, 1);
        return w ? w->rank : 0;
    case ONXI_ID_BatchNormalization:
    case ONXI_ID_Relu:
    case ONXI_ID_LeakyRelu:
    case ONXI_ID_PRelu:
    case ONXI_ID_Clip:
    case ONXI_ID_Sigmoid:
    case ONXI_ID_MaxPool:
    case ONXI_ID_AveragePool:
    case ONXI_ID_Concat:
    case ONXI_ID_Dropout:
    case ONXI_ID_Identity:
        return op->input_count && op->inputs[0] != ONXI_NO_SLOT ? ranks[op->inputs[0]] : 0;
    default:
        return 0;
    }
}

onx_status onxi_run_graph_fuse(onxi_run_graph *g)
{
    bool changed = false;
    const uint32_t slots = g->slot_count;
    uint8_t *ranks = onxi_resize(g->session->cx, NULL, 0, slots + 1u);
    onx_status status = ranks ? ONX_OK : ONX_E_MEMORY;
    if (ranks)
        memset(ranks, 0, slots + 1u);
    for (uint32_t i = 0; i < g->op_count && status == ONX_OK; i++) {
        onxi_run_op *op = &g->ops[i];
        const uint32_t rank = op->needed ? rank_of(g, op, ranks) : 0;
        if (op->needed && op->id == ONXI_ID_Conv)
            status = fuse_conv(g, op, &changed);
        else if (op->needed && op->id == ONXI_ID_BatchNormalization)
            status = fuse_scaling(g, op, rank, &changed);
        if (op->output_count && op->outputs[0] < slots)
            ranks[op->outputs[0]] = (uint8_t)rank;
    }
    onxi_release(g->session->cx, ranks, slots + 1u);
    ONX_TRY(status);
    return changed ? onxi_run_graph_count_uses(g) : ONX_OK;
}
