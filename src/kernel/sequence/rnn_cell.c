/* rnn_cell.c - the arithmetic of RNN, GRU and LSTM for one row of a batch in one step, in float and in double.
 */
#include "kernel/core/rnn.h"

#include <math.h>

#define CELLS(T, sfx, m)                                                                                               \
    static T sigmoid_##sfx(T x)                                                                                        \
    {                                                                                                                  \
        return 1 / (1 + exp##m(-x));                                                                                   \
    }                                                                                                                  \
    static T one_##sfx(const onxi_activation *act, T x)                                                                \
    {                                                                                                                  \
        const T a = (T)act->alpha, b = (T)act->beta;                                                                   \
        switch (act->kind) {                                                                                           \
        case ONXI_ACT_RELU:                                                                                            \
            return x < 0 ? 0 : x;                                                                                      \
        case ONXI_ACT_TANH:                                                                                            \
            return tanh##m(x);                                                                                         \
        case ONXI_ACT_SIGMOID:                                                                                         \
            return sigmoid_##sfx(x);                                                                                   \
        case ONXI_ACT_AFFINE:                                                                                          \
            return a * x + b;                                                                                          \
        case ONXI_ACT_LEAKY_RELU:                                                                                      \
            return x < 0 ? a * x : x;                                                                                  \
        case ONXI_ACT_THRESHOLDED_RELU:                                                                                \
            return x < a ? 0 : x;                                                                                      \
        case ONXI_ACT_SCALED_TANH:                                                                                     \
            return a * tanh##m(b * x);                                                                                 \
        case ONXI_ACT_HARD_SIGMOID:                                                                                    \
            x = a * x + b;                                                                                             \
            return x < 0 ? 0 : x > 1 ? 1 : x;                                                                          \
        case ONXI_ACT_ELU:                                                                                             \
            return x < 0 ? a * expm1##m(x) : x;                                                                        \
        case ONXI_ACT_SOFTSIGN:                                                                                        \
            return x / (1 + fabs##m(x));                                                                               \
        case ONXI_ACT_SOFTPLUS:                                                                                        \
            return x > 0 ? x + log1p##m(exp##m(-x)) : log1p##m(exp##m(x));                                             \
        }                                                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    static void activate_##sfx(const onxi_rnn_row *r, uint32_t which, T *x, uint64_t n)                                \
    {                                                                                                                  \
        const T most = (T)r->clip;                                                                                     \
        const onxi_activation act = r->act[which];                                                                     \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            T v = x[i] > most ? most : x[i] < -most ? -most : x[i];                                                    \
            x[i] = one_##sfx(&act, v);                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* Adds the products of the hidden state and both biases to gates `first` .. `last` - 1. */                        \
    static void gather_##sfx(const onxi_rnn_row *r, uint32_t gates, uint32_t first, uint32_t last)                     \
    {                                                                                                                  \
        const T *rec = r->recurrent, *b = r->bias;                                                                     \
        T *g = r->gates;                                                                                               \
        for (uint64_t i = first * r->hidden; i < last * r->hidden; i++)                                                \
            g[i] += rec[i] + (b[i] + b[gates * r->hidden + i]);                                                        \
    }                                                                                                                  \
    static void rnn_##sfx(const onxi_rnn_row *r)                                                                       \
    {                                                                                                                  \
        gather_##sfx(r, 1, 0, 1);                                                                                      \
        activate_##sfx(r, 0, r->gates, r->hidden);                                                                     \
        memcpy(r->h, r->gates, r->hidden * sizeof(T));                                                                 \
    }                                                                                                                  \
    static void gru_##sfx(const onxi_rnn_row *r)                                                                       \
    {                                                                                                                  \
        const T *h = r->h;                                                                                             \
        T *g = r->gates, *reset = r->reset;                                                                            \
        gather_##sfx(r, 3, 0, 2);                                                                                      \
        activate_##sfx(r, 0, g, 2 * r->hidden);                                                                        \
        for (uint64_t i = 0; i < r->hidden; i++)                                                                       \
            reset[i] = g[r->hidden + i] * h[i];                                                                        \
    }                                                                                                                  \
    static void gru_finish_##sfx(const onxi_rnn_row *r)                                                                \
    {                                                                                                                  \
        const uint64_t n = r->hidden;                                                                                  \
        const T *rec = (const T *)r->recurrent + 2 * n, *wb = (const T *)r->bias + 2 * n, *rb = wb + 3 * n;            \
        T *z = r->gates, *reset = z + n, *c = reset + n, *h = r->h;                                                    \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            c[i] += r->before_reset ? reset[i] * (rec[i] + rb[i]) + wb[i] : rec[i] + (wb[i] + rb[i]);                  \
        activate_##sfx(r, 1, c, n);                                                                                    \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            h[i] = (1 - z[i]) * c[i] + z[i] * h[i];                                                                    \
    }                                                                                                                  \
    static void lstm_##sfx(const onxi_rnn_row *r)                                                                      \
    {                                                                                                                  \
        const uint64_t n = r->hidden;                                                                                  \
        const T *p = r->peephole;                                                                                      \
        T *in = r->gates, *out = in + n, *forget = out + n, *cell = forget + n, *c = r->c, *h = r->h;                  \
        gather_##sfx(r, 4, 0, 4);                                                                                      \
        for (uint64_t i = 0; p && i < n; i++) {                                                                        \
            in[i] += p[i] * c[i];                                                                                      \
            forget[i] += p[2 * n + i] * c[i];                                                                          \
        }                                                                                                              \
        activate_##sfx(r, 0, in, n);                                                                                   \
        if (!r->couple)                                                                                                \
            activate_##sfx(r, 0, forget, n);                                                                           \
        activate_##sfx(r, 1, cell, n);                                                                                 \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            c[i] = (r->couple ? 1 - in[i] : forget[i]) * c[i] + in[i] * cell[i];                                       \
            out[i] += p ? p[n + i] * c[i] : 0;                                                                         \
            cell[i] = c[i];                                                                                            \
        }                                                                                                              \
        activate_##sfx(r, 0, out, n);                                                                                  \
        onxi_rnn_row last = *r;                                                                                        \
        last.clip = r->open_cell ? (double)INFINITY : r->clip;                                                         \
        activate_##sfx(&last, 2, cell, n);                                                                             \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            h[i] = out[i] * cell[i];                                                                                   \
    }                                                                                                                  \
    static void product_##sfx(const T *a, uint64_t rows, uint64_t k, const T *weight, uint64_t n, uint64_t pitch,      \
                              T *out)                                                                                  \
    {                                                                                                                  \
        for (uint64_t row = 0; row < rows; row++, a += k, out += pitch) {                                              \
            memset(out, 0, (size_t)n * sizeof(T));                                                                     \
            for (uint64_t j = 0; j < k; j++) {                                                                         \
                const T by = a[j], *w = weight + j * pitch;                                                            \
                for (uint64_t i = 0; i < n; i++)                                                                       \
                    out[i] += by * w[i];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
CELLS(float, f32, f)
CELLS(double, f64, )

void onxi_rnn_plain_product(bool wide, const void *a, uint64_t rows, uint64_t k, const void *weight, uint64_t n,
                            uint64_t pitch, void *out)
{
    if (wide)
        product_f64(a, rows, k, weight, n, pitch, out);
    else
        product_f32(a, rows, k, weight, n, pitch, out);
}

const onxi_rnn_cell onxi_rnn_cells[] = {
    { "RNN", 1, 1, { ONXI_ACT_TANH }, { rnn_f32, rnn_f64 }, { NULL, NULL }, NULL },
    { "GRU",
      3,
      2,
      { ONXI_ACT_SIGMOID, ONXI_ACT_TANH },
      { gru_f32, gru_f64 },
      { gru_finish_f32, gru_finish_f64 },
      NULL },
    { "LSTM", 4, 3, { ONXI_ACT_SIGMOID, ONXI_ACT_TANH, ONXI_ACT_TANH }, { lstm_f32, lstm_f64 }, { NULL, NULL }, NULL },
};
