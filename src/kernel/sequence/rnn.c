/* rnn.c - RNN, GRU and LSTM. Matrix products of the input are computed for many steps at once; those of the recurrent
 * state follow step by step. 16-bit floats are computed in float. A row of work is a direction. */
#include "kernel/core/rnn.h"

#include <math.h>

/* Several threads share a product if the recurrent weights of one direction have at least PART_BYTES, or it takes at
 * least PART_COST multiplications. */
enum { CHUNK_ROWS = 96, FEW_ROWS = 4, PART_BYTES = 1u << 19, PART_COST = 1u << 21 };

typedef struct rnn_params {
    const onxi_rnn_cell *cell;
    uint32_t directions;
    bool backward[2];
    bool batch_first, couple, before_reset;
    bool wide;    /* computes in double */
    bool convert; /* operands are converted to the type of the computation */
    bool sizes;   /* some outputs have a shape that no rule determines */
    bool few;     /* the batch is small: recurrent weights are transposed instead of packed */
    double clip;
    onxi_activation act[2][3];
    const float *packed_w, *packed_r;             /* for all directions, if the cell uses packed weights */
    uint64_t tiles;                               /* tiles per gate */
    uint64_t steps, batch, inputs, hidden, chunk; /* chunk: steps whose input products are computed at once */
    /* Offsets in bytes into a thread's workspace. */
    uint64_t x, w, r, turned, bias, peephole, gates, recurrent, reset, h, c, pack;
} rnn_params;

/* ---- attributes ---- */

static const struct {
    const char *name;
    onxi_activation_kind kind;
    bool has_alpha, has_beta;
    double alpha, beta;
} known[] = {
    { "relu", ONXI_ACT_RELU, false, false, 0, 0 },
    { "tanh", ONXI_ACT_TANH, false, false, 0, 0 },
    { "sigmoid", ONXI_ACT_SIGMOID, false, false, 0, 0 },
    { "affine", ONXI_ACT_AFFINE, true, true, 1, 0 },
    { "leakyrelu", ONXI_ACT_LEAKY_RELU, true, false, 0.01f, 0 },
    { "thresholdedrelu", ONXI_ACT_THRESHOLDED_RELU, true, false, 1, 0 },
    { "scaledtanh", ONXI_ACT_SCALED_TANH, true, true, 1, 1 },
    { "hardsigmoid", ONXI_ACT_HARD_SIGMOID, true, true, 0.2f, 0.5 },
    { "elu", ONXI_ACT_ELU, true, false, 1, 0 },
    { "softsign", ONXI_ACT_SOFTSIGN, false, false, 0, 0 },
    { "softplus", ONXI_ACT_SOFTPLUS, false, false, 0, 0 },
};

static bool same_word(onx_str s, const char *word)
{
    if (s.len != strlen(word))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((s.ptr[i] | 0x20) != word[i])
            return false;
    return true;
}

typedef struct numbers { /* a list whose elements are consumed in order */
    const float *list;
    uint32_t count, at;
} numbers;

static double take(numbers *n, bool wanted, double fallback)
{
    return wanted && n->at < n->count ? (double)n->list[n->at++] : fallback;
}

onx_status onxi_rnn_activations(onx_prepare *p, const onxi_rnn_cell *cell, uint32_t directions,
                                onxi_activation act[2][3])
{
    uint32_t count = 0, each = cell->activations, total = each * directions;
    const onx_bytes *names = onx_prepare_strings(p, "activations", &count);
    numbers alpha = { 0 }, beta = { 0 };
    alpha.list = onx_prepare_floats(p, "activation_alpha", &alpha.count);
    beta.list = onx_prepare_floats(p, "activation_beta", &beta.count);
    if (names && count && count < each)
        return onx_prepare_fail(p, ONX_E_INVALID, "%u activations are named, expected %u", count, total);
    for (uint32_t i = 0; i < total; i++) {
        onxi_activation *to = &act[i / each][i % each];
        *to = (onxi_activation){ .kind = cell->fallback[i % each] };
        if (!names || !count)
            continue;
        if (i >= count) { /* a list for one direction serves both */
            *to = act[0][i % each];
            continue;
        }
        onx_str name = onx_view(names[i]);
        size_t k = 0;
        while (k < sizeof known / sizeof *known && !same_word(name, known[k].name))
            k++;
        if (k == sizeof known / sizeof *known)
            return onx_prepare_fail(p, ONX_E_INVALID, "there is no activation \"%.*s\"", ONX_ARG(name));
        *to = (onxi_activation){ .kind = known[k].kind };
        to->alpha = take(&alpha, known[k].has_alpha, known[k].alpha);
        to->beta = take(&beta, known[k].has_beta, known[k].beta);
    }
    return ONX_OK;
}

static onx_status read_attributes(onx_prepare *p, rnn_params *q)
{
    onx_str direction = onx_prepare_text(p, "direction");
    bool both = onx_str_is(direction, "bidirectional");
    q->backward[0] = onx_str_is(direction, "reverse");
    q->backward[1] = true;
    /* GRU-1 was published with the default "foward". */
    if (!both && !q->backward[0] && !onx_str_is(direction, "forward") && !onx_str_is(direction, "foward"))
        return onx_prepare_fail(p, ONX_E_INVALID, "direction is \"%.*s\"", ONX_ARG(direction));
    q->directions = both ? 2 : 1;
    q->batch_first = onx_prepare_is_set(p, "layout");
    q->couple = p->op == ONXI_ID_LSTM && onx_prepare_is_set(p, "input_forget");
    q->before_reset = p->op == ONXI_ID_GRU && onx_prepare_is_set(p, "linear_before_reset");
    q->clip = onx_prepare_given(p, "clip") ? (double)onx_prepare_float(p, "clip") : (double)INFINITY;
    if (!(q->clip >= 0))
        return onx_prepare_fail(p, ONX_E_INVALID, "clip is %g", q->clip);
    return onxi_rnn_activations(p, q->cell, q->directions, q->act);
}

/* ---- operands ---- */

enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H, IN_C, IN_P };

static onx_status check_operand(const onx_prepare *p, uint32_t i, int dtype, uint32_t rank, uint64_t a, uint64_t b,
                                uint64_t c)
{
    const onx_value *v = onxi_operand(p->input_count, p->inputs, i);
    const uint64_t want[] = { a, b, c };
    if (!v)
        return ONX_OK;
    bool fits = v->kind == ONX_VALUE_TENSOR && v->dtype == dtype && v->rank == rank;
    for (uint32_t d = 0; fits && d < rank; d++)
        fits = (uint64_t)v->dims[d] == want[d];
    return fits ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the others", i);
}

static onx_status check_operands(onx_prepare *p, rnn_params *q)
{
    const onx_value *x = p->inputs[IN_X], *r = p->inputs[IN_R];
    if (!x || !r || !p->inputs[IN_W] || x->rank != 3 || r->kind != ONX_VALUE_TENSOR || r->rank != 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "X, W or R is not a tensor of rank 3");
    q->steps = (uint64_t)x->dims[q->batch_first];
    q->batch = (uint64_t)x->dims[!q->batch_first];
    q->inputs = (uint64_t)x->dims[2];
    q->hidden = (uint64_t)r->dims[2];
    uint64_t d = q->directions, h = q->hidden, g = q->cell->gates * h;
    if (h > INT32_MAX || (!q->inputs && q->steps && q->batch))
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has %llu features, the state %llu",
                                (unsigned long long)q->inputs, (unsigned long long)h);
    int64_t named = onx_prepare_given(p, "hidden_size") ? onx_prepare_int(p, "hidden_size") : (int64_t)h;
    if (named != (int64_t)h)
        return onx_prepare_fail(p, ONX_E_INVALID, "hidden_size is %lld, R is for %llu", (long long)named,
                                (unsigned long long)h);
    ONX_TRY(check_operand(p, IN_W, x->dtype, 3, d, g, q->inputs));
    ONX_TRY(check_operand(p, IN_R, x->dtype, 3, d, g, h));
    ONX_TRY(check_operand(p, IN_B, x->dtype, 2, d, 2 * g, 0));
    ONX_TRY(check_operand(p, IN_LENS, ONX_INT32, 1, q->batch, 0, 0));
    uint64_t first = q->batch_first ? q->batch : d, second = q->batch_first ? d : q->batch;
    ONX_TRY(check_operand(p, IN_H, x->dtype, 3, first, second, h));
    if (q->cell->gates != 4)
        return ONX_OK;
    ONX_TRY(check_operand(p, IN_C, x->dtype, 3, first, second, h));
    return check_operand(p, IN_P, x->dtype, 2, d, 3 * h, 0);
}

/* ---- memory ---- */

/* Reserves `count` numbers in a thread's workspace; false on overflow. */
static bool reserve(uint64_t *total, uint64_t *at, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    *at = *total;
    return onxi_mul_u64(count, size, &bytes) && bytes < UINT64_MAX / 4 &&
           onxi_add_u64(*total, (bytes + 63u) & ~(uint64_t)63u, total);
}

static onx_status plan_memory(onx_prepare *p, rnn_params *q)
{
    uint64_t total = 0, size = q->wide ? 8 : 4, h = q->hidden, g = q->cell->gates * h, rows, all, chunk_rows;
    bool moved = q->convert || q->batch_first || q->backward[0] || q->directions == 2;
    q->few = !q->cell->packing && q->batch < FEW_ROWS;
    q->chunk = q->batch && q->batch < CHUNK_ROWS ? CHUNK_ROWS / q->batch : 1;
    q->chunk = q->chunk > q->steps && q->steps ? q->steps : q->chunk;
    bool good = onxi_mul_u64(q->steps, q->batch, &rows) && onxi_mul_u64(rows, q->inputs, &all) &&
                onxi_mul_u64(q->chunk, q->batch, &chunk_rows) && onxi_mul_u64(chunk_rows, g, &chunk_rows) &&
                onxi_mul_u64(q->batch, g, &rows) && reserve(&total, &q->x, moved ? all : 0, size) &&
                reserve(&total, &q->w, q->convert ? g * q->inputs : 0, size) &&
                reserve(&total, &q->r, q->convert ? g * h : 0, size) &&
                reserve(&total, &q->turned, q->few ? g * h : 0, size) && reserve(&total, &q->bias, 2 * g, size) &&
                reserve(&total, &q->peephole, 3 * h, size) && reserve(&total, &q->gates, chunk_rows, size) &&
                reserve(&total, &q->recurrent, rows, size) && reserve(&total, &q->reset, q->batch * h, size) &&
                reserve(&total, &q->h, q->batch * h, size) && reserve(&total, &q->c, q->batch * h, size);
    if (!good)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the layer is too large");
    q->pack = total;
    if (!q->cell->packing)
        total += onxi_gemm_workspace(q->wide ? ONX_DOUBLE : ONX_FLOAT, CHUNK_ROWS, g, q->inputs);
    p->thread_workspace = total;
    return ONX_OK;
}

/* ---- packed weights ---- */

typedef struct packing_key {
    char what[8];
    uint64_t tile, gates, hidden, k, directions;
} packing_key;

typedef struct packing_job {
    const rnn_params *q;
    uint64_t k;
} packing_job;

static uint64_t packed_count(const rnn_params *q, uint64_t k)
{
    return q->cell->gates * q->tiles * q->cell->packing->tile * k;
}

static onx_status pack(void *user, const void *weight, uint64_t piece, void *out)
{
    const packing_job *j = user;
    (void)piece;
    const rnn_params *q = j->q;
    const uint64_t from = q->cell->gates * q->hidden * j->k, to = packed_count(q, j->k);
    for (uint32_t d = 0; d < q->directions; d++)
        q->cell->packing->pack((const float *)weight + d * from, q->cell->gates, q->hidden, j->k,
                               (float *)out + d * to);
    return ONX_OK;
}

static onx_status pack_input(const onx_prepare *p, const rnn_params *q, uint32_t input, uint64_t k, const float **out)
{
    const onx_value *v = p->inputs[input];
    uint64_t size;
    if (!v->data || v->kind != ONX_VALUE_TENSOR || !v->count) /* not constant, or empty */
        return ONX_E_UNSUPPORTED;
    if (!onxi_mul_u64(q->cell->gates * q->tiles * q->cell->packing->tile, k, &size) ||
        !onxi_mul_u64(size, q->directions * sizeof(float), &size))
        return ONX_E_UNSUPPORTED;
    packing_key key = { .what = "rnn",
                        .tile = q->cell->packing->tile,
                        .gates = q->cell->gates,
                        .hidden = q->hidden,
                        .k = k,
                        .directions = q->directions };
    packing_job job = { q, k };
    const onx_packing packing = {
        .input = input, .key = &key, .key_size = sizeof key, .size = size, .make = pack, .user = &job
    };
    const void *packed;
    ONX_TRY(p->ops->packed(p, &packing, &packed));
    *out = packed;
    return ONX_OK;
}

static onx_status pack_weights(const onx_prepare *p, rnn_params *q)
{
    q->tiles = (q->hidden + q->cell->packing->tile - 1) / q->cell->packing->tile;
    ONX_TRY(pack_input(p, q, IN_W, q->inputs, &q->packed_w));
    return pack_input(p, q, IN_R, q->hidden, &q->packed_r);
}

/* The dims of output `i`: Y, or a final state. */
static uint32_t output_dims(const rnn_params *q, uint32_t i, int64_t *dims)
{
    int64_t d = q->directions, b = (int64_t)q->batch, s = (int64_t)q->steps, h = (int64_t)q->hidden;
    uint32_t n = 0;
    if (q->batch_first)
        dims[n++] = b;
    if (i == 0)
        dims[n++] = s;
    dims[n++] = d;
    if (!q->batch_first)
        dims[n++] = b;
    dims[n++] = h;
    return n;
}

onx_status onxi_rnn_prepare(onx_prepare *p)
{
    rnn_params *q = ONXI_NEW(p->arena, rnn_params);
    if (!q)
        return ONX_E_MEMORY;
    q->cell = p->kernel->body;
    ONX_TRY(read_attributes(p, q));
    ONX_TRY(check_operands(p, q));
    q->wide = p->inputs[IN_X]->dtype == ONX_DOUBLE;
    q->convert = !q->wide && p->inputs[IN_X]->dtype != ONX_FLOAT;
    for (uint32_t i = 0; i < p->output_count; i++) {
        const onx_value *y = p->outputs[i];
        int64_t dims[4];
        uint32_t rank = output_dims(q, i, dims);
        q->sizes |= y && y->kind != ONX_VALUE_TENSOR;
        if (y && y->kind == ONX_VALUE_TENSOR && (y->rank != rank || !onxi_same_dims(y->dims, dims, rank)))
            return onx_prepare_fail(p, ONX_E_INVALID, "output %u has other dims than the layer", i);
    }
    p->params = q;
    p->rows = q->sizes ? 1 : q->directions;
    if (q->cell->packing)
        ONX_TRY(pack_weights(p, q));
    return plan_memory(p, q);
}

/* ---- running ---- */

/* One direction of the layer while it runs. */
typedef struct lane {
    onx_work *work;
    const rnn_params *q;
    uint32_t d;
    int dtype, real; /* stored type, and type of the computation */
    uint64_t size;   /* bytes of a number of the computation */
    char *memory;
    const void *x, *w, *r;
    const int32_t *lens;
} lane;

static void *space(const lane *l, uint64_t at)
{
    return l->memory + at;
}

static uint64_t length_of(const lane *l, uint64_t b)
{
    return l->lens ? (uint64_t)l->lens[b] : l->q->steps;
}

static void load(const lane *l, const onx_value *from, uint64_t first, uint64_t count, void *to)
{
    uint64_t width = onx_dtype_bits(l->dtype) / 8;
    const char *at = (const char *)from->data + first * width;
    if (!count)
        return;
    if (l->dtype == l->real)
        memcpy(to, at, count * width);
    else
        onx_convert((onx_dtype)l->real, to, (onx_dtype)l->dtype, at, count, true);
}

static void store(const lane *l, onx_value *to, uint64_t first, uint64_t count, const void *from)
{
    uint64_t width = onx_dtype_bits(l->dtype) / 8;
    char *at = (char *)to->data + first * width;
    if (!count)
        return;
    if (!from)
        memset(at, 0, count * width);
    else if (l->dtype == l->real)
        memcpy(at, from, count * width);
    else
        onx_convert((onx_dtype)l->dtype, at, (onx_dtype)l->real, from, count, true);
}

/* The index in the sequence of row `b` of the s-th step to compute. */
static uint64_t step_of(const lane *l, uint64_t b, uint64_t s)
{
    return l->q->backward[l->d] && s < length_of(l, b) ? length_of(l, b) - 1 - s : s;
}

/* Loads the input as rows in the order of the computation. */
static void load_input(lane *l)
{
    const rnn_params *q = l->q;
    const onx_value *x = l->work->inputs[IN_X];
    if (l->dtype == l->real && !q->batch_first && !q->backward[l->d]) {
        l->x = x->data;
        return;
    }
    char *to = space(l, q->x);
    l->x = to;
    for (uint64_t s = 0; s < q->steps; s++)
        for (uint64_t b = 0; b < q->batch; b++, to += q->inputs * l->size) {
            uint64_t t = step_of(l, b, s), row = q->batch_first ? b * q->steps + t : t * q->batch + b;
            load(l, x, row * q->inputs, q->inputs, to);
        }
}

static const void *load_weight(const lane *l, uint32_t input, uint64_t count, uint64_t at)
{
    const onx_value *v = l->work->inputs[input];
    if (l->dtype == l->real)
        return (const char *)v->data + l->d * count * l->size;
    load(l, v, l->d * count, count, space(l, at));
    return space(l, at);
}

static void load_weights(lane *l)
{
    const rnn_params *q = l->q;
    const onx_prepared *p = l->work->prepared;
    uint64_t h = q->hidden, g = q->cell->gates * h;
    const onx_value *bias = onxi_operand(p->input_count, l->work->inputs, IN_B);
    const onx_value *peephole = q->cell->gates == 4 ? onxi_operand(p->input_count, l->work->inputs, IN_P) : NULL;
    if (!q->cell->packing) {
        l->w = load_weight(l, IN_W, g * q->inputs, q->w);
        l->r = load_weight(l, IN_R, g * h, q->r);
    }
    memset(space(l, q->bias), 0, 2 * g * l->size);
    if (bias)
        load(l, bias, l->d * 2 * g, 2 * g, space(l, q->bias));
    if (peephole)
        load(l, peephole, l->d * 3 * h, 3 * h, space(l, q->peephole));
    for (uint64_t row = 0; q->few && row < g; row++)
        for (uint64_t k = 0; k < h; k++)
            memcpy((char *)space(l, q->turned) + (k * g + row) * l->size, (const char *)l->r + (row * h + k) * l->size,
                   l->size);
}

static uint64_t state_at(const lane *l, uint64_t b)
{
    const rnn_params *q = l->q;
    return (q->batch_first ? b * q->directions + l->d : l->d * q->batch + b) * q->hidden;
}

static void load_state(const lane *l, const onx_value *from, uint64_t at)
{
    const rnn_params *q = l->q;
    uint64_t row = q->hidden * l->size;
    for (uint64_t b = 0; b < q->batch; b++)
        if (from)
            load(l, from, state_at(l, b), q->hidden, (char *)space(l, at) + b * row);
        else if (row)
            memset((char *)space(l, at) + b * row, 0, row);
}

static void store_state(const lane *l, uint32_t output, uint64_t at)
{
    const rnn_params *q = l->q;
    onx_value *y = output < l->work->prepared->output_count ? l->work->outputs[output] : NULL;
    for (uint64_t b = 0; y && b < q->batch; b++)
        store(l, y, state_at(l, b), q->hidden, (char *)space(l, at) + b * q->hidden * l->size);
}

/* A product with packed weights, shared by several threads if that pays. Results do not depend on which thread computes
 * which tile. */
typedef struct product_job {
    const onxi_rnn_packing *packing;
    onxi_rnn_product product;
    uint64_t first, last, parts;
} product_job;

static void run_part(void *user, uint64_t part, unsigned worker)
{
    const product_job *j = user;
    const uint64_t count = j->last - j->first;
    (void)worker;
    j->packing->product(&j->product, j->first + count * part / j->parts, j->first + count * (part + 1) / j->parts);
}

static void packed_product(const lane *l, const onxi_rnn_product *product, uint32_t first, uint32_t last)
{
    const rnn_params *q = l->q;
    const uint64_t bytes = q->cell->gates * q->hidden * q->hidden * sizeof(float);
    product_job job = { q->cell->packing, *product, first * q->tiles, last * q->tiles, 1 };
    /* The product of the input has many rows, so several threads may pay even for a small layer. */
    const bool many = product->rows * product->k >= PART_COST / ((last - first) * q->hidden + 1);
    if (q->directions == 1 && (bytes >= PART_BYTES || many))
        job.parts = onxi_team_threads(l->work->threads);
    if (job.parts > 1)
        onxi_team_run((unsigned)job.parts, job.parts, run_part, &job);
    else
        run_part(&job, 0, 0);
}

/* Multiplies rows of the input with the weights of all gates. */
static void input_products(const lane *l, uint64_t first, uint64_t steps)
{
    const rnn_params *q = l->q;
    uint64_t g = q->cell->gates * q->hidden;
    if (q->cell->packing) {
        const onxi_rnn_product product = { .a = (const float *)l->x + first * q->batch * q->inputs,
                                           .rows = steps * q->batch,
                                           .k = q->inputs,
                                           .hidden = q->hidden,
                                           .packed = q->packed_w + l->d * packed_count(q, q->inputs),
                                           .out = space(l, q->gates),
                                           .pitch = g };
        packed_product(l, &product, 0, q->cell->gates);
        return;
    }
    onxi_gemm m = { .dtype = l->real,
                    .m = steps * q->batch,
                    .n = g,
                    .k = q->inputs,
                    .a = (const char *)l->x + first * q->batch * q->inputs * l->size,
                    .b = l->w,
                    .c = space(l, q->gates),
                    .a_row = (int64_t)q->inputs,
                    .a_col = 1,
                    .b_row = 1,
                    .b_col = (int64_t)q->inputs,
                    .c_row = (int64_t)g,
                    .work = l->work };
    onxi_gemm_run(&m, space(l, q->pack));
}

/* Multiplies a state with the recurrent weights of gates `first` .. `last` - 1, in step `s`. */
static void state_products(const lane *l, uint64_t s, const void *state, uint32_t first, uint32_t last)
{
    const rnn_params *q = l->q;
    uint64_t h = q->hidden, g = q->cell->gates * h, n = (last - first) * h, skip = first * h * l->size;
    char *to = (char *)space(l, q->recurrent) + skip;
    if (q->cell->packing) {
        const onxi_rnn_product product = { .a = state,
                                           .rows = q->batch,
                                           .k = h,
                                           .hidden = h,
                                           .packed = q->packed_r + l->d * packed_count(q, h),
                                           .out = space(l, q->recurrent),
                                           .pitch = g,
                                           .backwards = s % 2 != 0 };
        packed_product(l, &product, first, last);
        return;
    }
    if (q->few) {
        onxi_rnn_plain_product(q->wide, state, q->batch, h, (char *)space(l, q->turned) + skip, n, g, to);
        return;
    }
    onxi_gemm m = { .dtype = l->real,
                    .m = q->batch,
                    .n = n,
                    .k = h,
                    .a = state,
                    .b = (const char *)l->r + first * h * h * l->size,
                    .c = to,
                    .a_row = (int64_t)h,
                    .a_col = 1,
                    .b_row = 1,
                    .b_col = (int64_t)h,
                    .c_row = (int64_t)g,
                    .work = l->work };
    onxi_gemm_run(&m, space(l, q->pack));
}

/* Computes one half of a step for all rows whose sequence has not ended. */
static void each_row(const lane *l, uint64_t s, char *gates, void (*half)(const onxi_rnn_row *))
{
    const rnn_params *q = l->q;
    uint64_t row = q->hidden * l->size;
    bool peephole = q->cell->gates == 4 && onxi_operand(l->work->prepared->input_count, l->work->inputs, IN_P);
    for (uint64_t b = 0; b < q->batch; b++) {
        if (s >= length_of(l, b))
            continue;
        half(&(onxi_rnn_row){ .act = q->act[l->d],
                              .clip = q->clip,
                              .hidden = q->hidden,
                              .couple = q->couple,
                              .before_reset = q->before_reset,
                              .gates = gates + b * q->cell->gates * row,
                              .recurrent = (char *)space(l, q->recurrent) + b * q->cell->gates * row,
                              .bias = space(l, q->bias),
                              .peephole = peephole ? space(l, q->peephole) : NULL,
                              .h = (char *)space(l, q->h) + b * row,
                              .c = (char *)space(l, q->c) + b * row,
                              .reset = (char *)space(l, q->reset) + b * row });
    }
}

static void step(const lane *l, uint64_t s, char *gates)
{
    const rnn_params *q = l->q;
    const onxi_rnn_cell *cell = q->cell;
    bool halves = cell->finish[q->wide] != NULL;
    state_products(l, s, space(l, q->h), 0, halves && !q->before_reset ? 2 : cell->gates);
    each_row(l, s, gates, cell->step[q->wide]);
    if (halves && !q->before_reset)
        state_products(l, s, space(l, q->reset), 2, 3);
    if (halves)
        each_row(l, s, gates, cell->finish[q->wide]);
    onx_value *y = l->work->prepared->output_count ? l->work->outputs[0] : NULL;
    for (uint64_t b = 0; y && b < q->batch; b++) {
        uint64_t t = step_of(l, b, s), d = q->directions;
        uint64_t at = q->batch_first ? (b * q->steps + t) * d + l->d : (t * d + l->d) * q->batch + b;
        store(l, y, at * q->hidden, q->hidden,
              s < length_of(l, b) ? (char *)space(l, q->h) + b * q->hidden * l->size : NULL);
    }
}

static void run_direction(onx_work *work, const int32_t *lens, uint32_t d)
{
    const rnn_params *q = work->params;
    lane l = { .work = work,
               .q = q,
               .d = d,
               .dtype = work->inputs[IN_X]->dtype,
               .real = q->wide ? ONX_DOUBLE : ONX_FLOAT,
               .size = q->wide ? 8 : 4,
               .memory = work->thread_workspace,
               .lens = lens };
    load_input(&l);
    load_weights(&l);
    load_state(&l, onxi_operand(work->prepared->input_count, work->inputs, IN_H), q->h);
    load_state(&l, q->cell->gates == 4 ? onxi_operand(work->prepared->input_count, work->inputs, IN_C) : NULL, q->c);
    uint64_t pitch = q->batch * q->cell->gates * q->hidden * l.size;
    const uint64_t cost = q->batch * q->cell->gates * q->hidden * (q->hidden / 8 + 4); /* of a step */
    onxi_pace pace = { .work = work };
    for (uint64_t s = 0; s < q->steps && q->batch && q->hidden && !onxi_pace_stops(&pace, cost); s += q->chunk) {
        uint64_t steps = q->steps - s < q->chunk ? q->steps - s : q->chunk;
        input_products(&l, s, steps);
        for (uint64_t i = 0; i < steps && !onxi_pace_stops(&pace, cost); i++)
            step(&l, s + i, (char *)space(&l, q->gates) + i * pitch);
    }
    store_state(&l, 1, q->h);
    if (q->cell->gates == 4)
        store_state(&l, 2, q->c);
}

onx_status onxi_rnn_run(onx_work *work, uint64_t first, uint64_t last)
{
    const rnn_params *q = work->params;
    const onx_value *lens = onxi_operand(work->prepared->input_count, work->inputs, IN_LENS);
    for (uint64_t b = 0; lens && b < q->batch; b++) {
        int32_t n = ((const int32_t *)lens->data)[b];
        if (n < 0 || (uint64_t)n > q->steps)
            return onx_work_fail(work, ONX_E_INVALID, "sequence_lens has the value %d, expected 0 to %llu", n,
                                 (unsigned long long)q->steps);
    }
    for (uint32_t i = 0; q->sizes && i < work->prepared->output_count; i++) {
        int64_t dims[4];
        uint32_t rank = output_dims(q, i, dims);
        if (work->outputs[i])
            ONX_TRY(onxi_value_size(work->outputs[i], work->inputs[IN_X]->dtype, rank, dims));
    }
    for (uint64_t d = first; d < (q->sizes ? q->directions : last); d++)
        run_direction(work, lens ? lens->data : NULL, (uint32_t)d);
    return ONX_OK;
}

#define ROW(name, index)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_FLOATS, .flags = ONX_KERNEL_SIZES_OUTPUT,                               \
        .body = &onxi_rnn_cells[index], .prepare = onxi_rnn_prepare, .run = onxi_rnn_run                               \
    }
const onx_kernel onxi_kernels_rnn[] = {
    ROW("RNN", 0),
    ROW("GRU", 1),
    ROW("LSTM", 2),
    { 0 },
};
