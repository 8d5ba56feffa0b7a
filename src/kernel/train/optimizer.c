/* optimizer.c - Adagrad, Adam and Momentum: one training step for any number of tensors, computed in double. */
#include "kernel/core/loops.h"

#include <math.h>

enum { ADAGRAD, ADAM, MOMENTUM, NESTEROV };
enum { IN_RATE, IN_COUNT, BEFORE };

typedef struct step_numbers {
    int kind;
    double rate; /* learning rate after decay */
    double norm, norm_post, alpha, beta, epsilon;
} step_numbers;

typedef struct optimizer_params {
    step_numbers numbers; /* all but `rate` */
    double decay;
    uint32_t count, states; /* number of tensors; number of states per tensor */
    uint64_t *first;        /* count + 1 entries: number of rows before each tensor */
} optimizer_params;

/* Computes the new values of a tensor x from its gradient g and its states. */
#define STEP(T)                                                                                                        \
    static void step_##T(const step_numbers *s, uint64_t n, const void *const *in, void *const *out)                   \
    {                                                                                                                  \
        const T *x = in[0], *g = in[1], *v_in = in[2], *square_in = in[3];                                             \
        T *x_out = out[0], *v_out = out[1], *square_out = out[2];                                                      \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            double value = (double)x[i], slope = s->norm * value + (double)g[i], v = (double)v_in[i];                  \
            double square = s->kind == ADAM ? (double)square_in[i] : 0;                                                \
            switch (s->kind) {                                                                                         \
            case ADAGRAD:                                                                                              \
                v += slope * slope;                                                                                    \
                value -= s->rate * slope / (sqrt(v) + s->epsilon);                                                     \
                break;                                                                                                 \
            case ADAM:                                                                                                 \
                v = s->alpha * v + (1 - s->alpha) * slope;                                                             \
                square = s->beta * square + (1 - s->beta) * slope * slope;                                             \
                value = (1 - s->norm_post) * (value - s->rate * v / (sqrt(square) + s->epsilon));                      \
                break;                                                                                                 \
            default:                                                                                                   \
                v = s->alpha * v + s->beta * slope;                                                                    \
                value -= s->rate * (s->kind == NESTEROV ? slope + s->alpha * v : v);                                   \
            }                                                                                                          \
            if (x_out)                                                                                                 \
                x_out[i] = (T)value;                                                                                   \
            if (v_out)                                                                                                 \
                v_out[i] = (T)v;                                                                                       \
            if (square_out)                                                                                            \
                square_out[i] = (T)square;                                                                             \
        }                                                                                                              \
    }
STEP(float)
STEP(double)

static onx_status optimizer_tensors(onx_prepare *p, optimizer_params *q)
{
    uint32_t each = q->states + 2, given = p->input_count > BEFORE ? p->input_count - BEFORE : 0;
    q->count = given / each;
    if (!given || given % each)
        return onx_prepare_fail(p, ONX_E_INVALID, "%u tensors follow rate and count, expected a multiple of %u", given,
                                each);
    q->first = ONXI_ARRAY(p->arena, uint64_t, q->count + 1u);
    if (!q->first)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < q->count; i++) {
        const onx_value *x = p->inputs[BEFORE + i];
        for (uint32_t k = 0; k < each; k++) {
            const onx_value *v = p->inputs[BEFORE + k * q->count + i];
            bool fits = x && v && v->kind == ONX_VALUE_TENSOR && (v->dtype == ONX_FLOAT || v->dtype == ONX_DOUBLE) &&
                        v->dtype == x->dtype && v->rank == x->rank && onxi_same_dims(v->dims, x->dims, v->rank);
            if (!fits)
                return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not have the type and shape of input %u",
                                        BEFORE + k * q->count + i, BEFORE + i);
        }
        q->first[i + 1] = q->first[i] + (x->count + ONXI_BLOCK - 1) / ONXI_BLOCK;
    }
    p->rows = q->first[q->count];
    return ONX_OK;
}

static onx_status optimizer_prepare(onx_prepare *p)
{
    optimizer_params *q = ONXI_NEW(p->arena, optimizer_params);
    if (!q)
        return ONX_E_MEMORY;
    step_numbers *s = &q->numbers;
    s->kind = *(const int *)p->kernel->body;
    s->norm = (double)onx_prepare_float(p, "norm_coefficient");
    if (p->op == ONXI_ID_Adagrad) {
        q->decay = (double)onx_prepare_float(p, "decay_factor");
    } else {
        s->alpha = (double)onx_prepare_float(p, "alpha");
        s->beta = (double)onx_prepare_float(p, "beta");
    }
    if (p->op == ONXI_ID_Adam)
        s->norm_post = (double)onx_prepare_float(p, "norm_coefficient_post");
    if (p->op != ONXI_ID_Momentum)
        s->epsilon = (double)onx_prepare_float(p, "epsilon");
    q->states = s->kind == ADAM ? 2 : 1;
    onx_str mode = p->op == ONXI_ID_Momentum ? onx_prepare_text(p, "mode") : onx_str_of("standard");
    if (onx_str_is(mode, "nesterov"))
        s->kind = NESTEROV;
    else if (!onx_str_is(mode, "standard"))
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(mode));
    for (uint32_t i = 0; i < BEFORE; i++)
        if (p->input_count <= i || !p->inputs[i] || p->inputs[i]->kind != ONX_VALUE_TENSOR || p->inputs[i]->count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is no single number", i);
    ONX_TRY(optimizer_tensors(p, q));
    p->params = q;
    return ONX_OK;
}

/* The numbers that depend on the number of steps so far. */
static step_numbers numbers_now(const optimizer_params *q, double rate, double count)
{
    step_numbers s = q->numbers;
    s.rate = rate;
    if (s.kind == ADAGRAD)
        s.rate = rate / (1 + count * q->decay);
    else if (s.kind == ADAM && count > 0)
        s.rate = rate * sqrt(1 - pow(s.beta, count)) / (1 - pow(s.alpha, count));
    else if (s.kind != ADAM && !(count > 0))
        s.beta = 1;
    return s;
}

static const char *part(const onx_value *v, uint64_t at)
{
    return v ? (const char *)v->data + at * onxi_element_size(v->dtype) : NULL;
}

static onx_status optimizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const optimizer_params *q = work->params;
    const onx_value *const *in = work->inputs + BEFORE;
    step_numbers s =
        numbers_now(q, onxi_value_number(work->inputs[IN_RATE], 0), onxi_value_number(work->inputs[IN_COUNT], 0));
    uint32_t i = 0, n = q->count;
    for (uint64_t row = first; row < last; row++) {
        while (row >= q->first[i + 1])
            i++;
        const onx_value *x = in[i];
        uint64_t at = (row - q->first[i]) * ONXI_BLOCK, count = x->count - at < ONXI_BLOCK ? x->count - at : ONXI_BLOCK;
        const void *from[4] = { NULL };
        void *to[3] = { NULL };
        for (uint32_t k = 0; k < q->states + 2; k++)
            from[k] = part(in[k * n + i], at);
        for (uint32_t k = 0; k <= q->states; k++)
            if (k * n + i < work->prepared->output_count)
                to[k] = (void *)(uintptr_t)part(work->outputs[k * n + i], at);
        (x->dtype == ONX_DOUBLE ? step_double : step_float)(&s, count, from, to);
    }
    return ONX_OK;
}

static const int adagrad = ADAGRAD, adam = ADAM, momentum = MOMENTUM;
#define ROW(name, kind)                                                                                                \
    {                                                                                                                  \
        .op = name, .domain = "ai.onnx.preview.training", .since = 1, .body = &kind, .prepare = optimizer_prepare,     \
        .run = optimizer_run                                                                                           \
    }

const onx_kernel onxi_kernels_optimizer[] = {
    ROW("Adagrad", adagrad), ROW("Adam", adam), ROW("Momentum", momentum), { 0 }
};
