/* experts_grouped.c - vectorized MoE and QMoE with constant weights: tokens are sorted by experts, so that the weights
 * of an expert are read once for all of its tokens. The results of a token are summed in the order in which its experts
 * were chosen. */
#include "kernel/microsoft/experts.h"

#include "kernel/core/groups.h"

#if ONXI_PLATFORM_ROOMY

enum {
    CHUNK = 192, /* most tokens processed at a time */
    WHOLE = 64   /* columns of a unit of work that is not divided */
};

/* One of the weight matrices of all experts, packed expert by expert. */
typedef struct matrix {
    onxi_few_bits q;   /* for one expert */
    uint64_t tiles;    /* tiles per expert, for float weights */
    uint64_t of_block; /* blocks of `q` per block of the operator */
    const float *floats, *scales;
    const uint8_t *weights;
    const void *zeros;
} matrix;

typedef struct grouped {
    experts_params all;
    matrix of[2];
    uint64_t chunk;
    unsigned threads;
    /* Offsets in the workspace of a run: numbers per expert, numbers per choice, rows per choice; then the memory of
     * the threads. */
    uint64_t share, starts, active, place, origin, expert, weight, sum, rows, between, gated, results, worker;
    /* Offsets in the memory of a thread: a flag for products that are not finite, temporary floats. */
    uint64_t bad, spare, worker_size;
} grouped;

/* ---- packing ---- */

/* The context of packing a constant: the kernel row, and the operand that it is combined with. */
typedef struct packing {
    const experts_body *by;
    const experts_layer *l;
    const matrix *m;
    const onx_value *operand;
} packing;

static const experts_body *body_of(const onx_prepare *p)
{
    return p->kernel->body;
}

static uint64_t strips_of(const onxi_few_bits *q)
{
    return (q->n + q->lanes - 1) / q->lanes;
}

static onx_status pack_weights(void *user, const void *elements, uint64_t expert, void *out)
{
    const onxi_few_bits *q = &((const packing *)user)->m->q;
    const uint64_t strips = strips_of(q), strip = q->lanes * q->row_bytes;
    for (uint64_t s = 0; s < strips; s++)
        onxi_few_bits_strip(q, (const uint8_t *)elements + expert * q->n * q->row_bytes, s,
                            (uint8_t *)out + (expert * strips + s) * strip);
    return ONX_OK;
}

/* Packs scales as lines of floats and zero points as lines of bytes; missing columns are zero. */
static void pack_lines(const packing *j, const void *elements, uint64_t expert, float *scales, uint8_t *zeros)
{
    const onxi_few_bits *q = &j->m->q;
    const onxi_ms_packed *w = &j->l->packed;
    onx_value v = *j->operand;
    v.data = (void *)(uintptr_t)elements;
    for (uint64_t s = 0; s < strips_of(q); s++)
        for (uint64_t b = 0; b < q->blocks; b++)
            for (uint64_t c = 0; c < q->lanes; c++) {
                const uint64_t column = s * q->lanes + c, row = expert * q->n + column, block = b / j->m->of_block;
                const uint64_t to = ((expert * strips_of(q) + s) * q->blocks + b) * q->lanes + c;
                if (scales)
                    scales[to] = column < q->n ? onxi_ms_float(&v, row * w->blocks + block) : 0;
                else
                    zeros[to] = column < q->n ? (uint8_t)onxi_ms_packed_zero(w, &v, row, block) : 0;
            }
}

static onx_status pack_scales(void *user, const void *elements, uint64_t expert, void *out)
{
    pack_lines(user, elements, expert, out, NULL);
    return ONX_OK;
}

static onx_status pack_zeros(void *user, const void *elements, uint64_t expert, void *out)
{
    pack_lines(user, elements, expert, NULL, out);
    return ONX_OK;
}

static onx_status pack_floats(void *user, const void *elements, uint64_t expert, void *out)
{
    const packing *j = user;
    const uint64_t n = j->l->rows, k = j->l->columns;
    j->by->floats->pack((const float *)elements + expert * n * k, 1, n, k,
                        (float *)out + expert * j->m->tiles * j->by->floats->tile * k);
    return ONX_OK;
}

/* Packs a constant to `bytes` per expert. */
static onx_status pack(onx_prepare *p, const packing *j, uint32_t input, uint64_t bytes,
                       onx_status (*make)(void *, const void *, uint64_t, void *), const void **out)
{
    const onxi_few_bits *q = &j->m->q;
    struct {
        char what[8];
        uint64_t lanes, n, k, block, of_block, bits, input, experts;
    } key = { "experts",  j->by->floats ? j->by->floats->tile : q->lanes,
              j->l->rows, j->l->columns,
              q->block,   j->m->of_block,
              q->bits,    input,
              0 };
    packing job = *j;
    uint64_t size;
    key.experts = (uint64_t)p->inputs[1]->dims[1];
    job.operand = p->inputs[input];
    if (!onxi_mul_u64(key.experts, bytes, &size))
        return ONX_E_UNSUPPORTED;
    onx_elements there = { 0 };
    const onx_status status = p->ops->in_place(p, input, size, &there);
    if (status != ONX_E_UNSUPPORTED) /* no memory for packed weights: the plain row reads them in place */
        return status == ONX_OK ? ONX_E_UNSUPPORTED : status;
    const onx_packing as = { .input = input,
                             .key = &key,
                             .key_size = sizeof key,
                             .size = size,
                             .pieces = key.experts,
                             .in_order = true,
                             .make = make,
                             .user = &job };
    return p->ops->packed(p, &as, out);
}

static onx_status pack_real(onx_prepare *p, const experts_layer *l, matrix *m)
{
    const experts_body *by = body_of(p);
    const void *out;
    uint64_t bytes;
    if (p->inputs[l->weights]->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    m->tiles = (l->rows + by->floats->tile - 1) / by->floats->tile;
    if (!onxi_mul_u64(m->tiles * by->floats->tile * sizeof(float), l->columns, &bytes))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(pack(p, &(packing){ by, l, m, NULL }, l->weights, bytes, pack_floats, &out));
    m->floats = out;
    return ONX_OK;
}

/* Loops for 8-bit products limit the block size. Larger blocks are divided into equal ones of whole vectors. */
static uint64_t cut_block(uint64_t block)
{
    enum { MOST = 256, WHOLE_BLOCK = 16 };
    uint64_t size = block < MOST ? block : MOST;
    while (size > WHOLE_BLOCK && (size % WHOLE_BLOCK || block % size))
        size--;
    return size;
}

static onx_status pack_few_bits(onx_prepare *p, const experts_layer *l, matrix *m)
{
    const experts_body *by = body_of(p);
    const onxi_ms_packed *w = &l->packed;
    const onx_value *zeros = onxi_operand(p->input_count, p->inputs, l->zeros);
    const uint64_t block = cut_block(w->block);
    uint64_t bytes;
    const void *out[3] = { NULL };
    if (w->block % 16 || l->columns % w->block || !p->inputs[l->scales]->data ||
        (zeros && (!zeros->data || zeros->dtype != ONX_UINT8)))
        return ONX_E_UNSUPPORTED;
    m->of_block = w->block / block;
    m->q = (onxi_few_bits){ .n = l->rows,
                            .k = l->columns,
                            .block = block,
                            .blocks = l->columns / block,
                            .row_bytes = w->row_bytes,
                            .lanes = by->few_bits->lanes,
                            .bits = w->bits,
                            .has_zeros = zeros != NULL };
    const uint64_t columns = strips_of(&m->q) * m->q.lanes;
    const packing job = { by, l, m, NULL };
    if (!onxi_mul_u64(columns, w->row_bytes, &bytes) || bytes > UINT64_MAX / 64)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(pack(p, &job, l->weights, bytes, pack_weights, &out[0]));
    ONX_TRY(pack(p, &job, l->scales, columns * m->q.blocks * sizeof(float), pack_scales, &out[1]));
    if (zeros)
        ONX_TRY(pack(p, &job, l->zeros, columns * m->q.blocks, pack_zeros, &out[2]));
    m->weights = out[0];
    m->scales = out[1];
    m->zeros = out[2];
    return ONX_OK;
}

/* ---- workspace ---- */

/* The most memory that the loops need for some rows of one expert. */
static bool piece_memory(const onx_prepare *p, const grouped *g, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 2 && body_of(p)->few_bits; i++)
        for (uint64_t m = 1; m <= g->chunk; m++) {
            onxi_few_bits q = g->of[i].q;
            uint64_t bytes;
            q.m = m;
            if (!body_of(p)->few_bits->plan(&q, 1, &bytes) || q.rows_each < m || bytes > UINT64_MAX / 64)
                return false;
            *out = bytes > *out ? bytes : *out;
        }
    return true;
}

static bool reserve(uint64_t *total, uint64_t a, uint64_t b, uint64_t *at)
{
    uint64_t count;
    return onxi_mul_u64(a, b, &count) && onxi_ms_reserve(total, count, at);
}

static onx_status plan_memory(onx_prepare *p, grouped *g)
{
    const experts_params *q = &g->all;
    const uint64_t most = q->wide > q->hidden ? q->wide : q->hidden;
    uint64_t total = 0, worker = 0, choices, bytes, at;
    if (!piece_memory(p, g, &bytes) || !onxi_mul_u64(g->chunk, q->k, &choices) ||
        !reserve(&worker, bytes / sizeof(float) + 1, 1, &at) || !reserve(&worker, 1, 1, &g->bad) ||
        !reserve(&worker, most, 2, &g->spare) || choices > UINT32_MAX || !reserve(&total, q->experts, 1, &g->share) ||
        !reserve(&total, q->experts + 1, 1, &g->starts) || !reserve(&total, q->experts, 1, &g->active) ||
        !reserve(&total, choices, 1, &g->place) || !reserve(&total, choices, 1, &g->origin) ||
        !reserve(&total, choices, 1, &g->expert) || !reserve(&total, choices, 1, &g->weight) ||
        !reserve(&total, g->chunk, 1, &g->sum) || !reserve(&total, choices, q->hidden, &g->rows) ||
        !reserve(&total, choices, q->wide, &g->between) ||
        !reserve(&total, choices, q->wide == q->inner ? 0 : q->inner, &g->gated) ||
        !reserve(&total, choices, q->hidden, &g->results) ||
        !reserve(&total, worker / sizeof(float), g->threads, &g->worker))
        return ONX_E_UNSUPPORTED;
    g->worker_size = worker;
    g->gated = q->wide == q->inner ? g->between : g->gated;
    p->workspace = total;
    return ONX_OK;
}

onx_status onxi_ms_experts_group(onx_prepare *p)
{
    grouped *g = ONXI_NEW(p->arena, grouped);
    if (!g)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_ms_experts_read(p, &g->all));
    const experts_params *q = &g->all;
    if (!p->outputs[0]->count || !q->inner || !p->inputs[q->first.weights]->data ||
        !p->inputs[q->second.weights]->data || q->experts > UINT32_MAX || (q->quantized && p->nonfinite))
        return ONX_E_UNSUPPORTED;
    g->chunk = q->tokens < CHUNK ? q->tokens : CHUNK;
    g->threads = p->threads;
    for (int i = 0; i < 2; i++) {
        const experts_layer *l = i ? &q->second : &q->first;
        ONX_TRY((q->quantized ? pack_few_bits : pack_real)(p, l, &g->of[i]));
    }
    p->params = g;
    return plan_memory(p, g);
}

/* ---- running ---- */

/* A chunk of tokens, whose choices are rows sorted by experts. */
typedef struct job {
    onx_work *work;
    const grouped *g;
    const experts_body *by;
    char *memory;
    uint64_t first, tokens, choices, active;
    unsigned threads;
    int layer;
    uint64_t columns, parts; /* columns per unit of work of a product; units per expert */
    void (*each)(struct job *j, uint64_t i, char *spare);
    uint64_t count, at_once;
} job;

static float *floats_at(const job *j, uint64_t at)
{
    return (float *)(void *)(j->memory + at);
}

static uint32_t *numbers_at(const job *j, uint64_t at)
{
    return (uint32_t *)(void *)(j->memory + at);
}

static void do_some(void *user, uint64_t piece, unsigned worker)
{
    job *j = user;
    char *spare = j->memory + j->g->worker + worker * j->g->worker_size;
    const uint64_t first = piece * j->at_once, last = first + j->at_once < j->count ? first + j->at_once : j->count;
    for (uint64_t i = first; i < last; i++)
        j->each(j, i, spare);
}

/* Calls `each` `count` times, in parallel; several calls in a row unless `apart`. */
static void do_all(job *j, void (*each)(job *, uint64_t, char *), uint64_t count, bool apart)
{
    const uint64_t pieces = j->threads < 2 ? 1 : apart ? count : 4 * (uint64_t)j->threads;
    j->each = each;
    j->count = count;
    j->at_once = count > pieces ? (count + pieces - 1) / pieces : 1;
    const uint64_t all = (count + j->at_once - 1) / j->at_once;
    if (j->threads < 2)
        for (uint64_t i = 0; i < all; i++)
            do_some(j, i, 0);
    else
        onxi_team_run(j->threads, all, do_some, j);
}

/* Which experts tokens go through, and where each choice has its row. */
static void route(job *j)
{
    const grouped *g = j->g;
    const experts_params *q = &g->all;
    uint32_t *starts = numbers_at(j, g->starts), *place = numbers_at(j, g->place), *active = numbers_at(j, g->active);
    float *share = floats_at(j, g->share), *weight = floats_at(j, g->weight), *sum = floats_at(j, g->sum);
    for (uint64_t t = 0; t < j->tokens; t++) {
        onxi_ms_experts_route(q, j->work->inputs[1], j->first + t, share);
        sum[t] = 0;
        for (uint64_t i = t * q->k; i < (t + 1) * q->k; i++) {
            place[i] = (uint32_t)onxi_ms_experts_next(j->work, q, j->first + t, share, &weight[i]);
            sum[t] += weight[i];
        }
    }
    uint32_t *next = numbers_at(j, g->share), *origin = numbers_at(j, g->origin), *expert = numbers_at(j, g->expert);
    j->active = onxi_groups_sort(place, j->choices, q->experts, starts, next, active);
    for (uint64_t i = 0; i < j->choices; i++)
        origin[place[i]] = (uint32_t)(i / q->k);
    for (uint64_t i = 0; i < j->active; i++)
        for (uint64_t row = starts[active[i]]; row < starts[active[i] + 1]; row++)
            expert[row] = active[i];
}

static void gather(job *j, uint64_t row, char *spare)
{
    const experts_params *q = &j->g->all;
    (void)spare;
    onxi_ms_floats(j->work->inputs[0], (j->first + numbers_at(j, j->g->origin)[row]) * q->hidden, q->hidden,
                   floats_at(j, j->g->rows) + row * q->hidden);
}

/* Columns of an expert's product with its rows. */
static void multiply(job *j, uint64_t piece, char *spare)
{
    const grouped *g = j->g;
    const matrix *m = &g->of[j->layer];
    const experts_layer *l = j->layer ? &g->all.second : &g->all.first;
    const uint64_t expert = numbers_at(j, g->active)[piece / j->parts], n0 = piece % j->parts * j->columns;
    const uint64_t n1 = l->rows - n0 < j->columns ? l->rows : n0 + j->columns;
    const uint32_t *starts = numbers_at(j, g->starts) + expert;
    const float *a = floats_at(j, j->layer ? g->gated : g->rows) + starts[0] * l->columns;
    float *y = floats_at(j, j->layer ? g->results : g->between) + starts[0] * l->rows;
    if (j->by->floats) {
        const uint64_t tile = j->by->floats->tile;
        const onxi_rnn_product product = { .a = a,
                                           .rows = starts[1] - starts[0],
                                           .k = l->columns,
                                           .hidden = l->rows,
                                           .packed = m->floats + expert * m->tiles * tile * l->columns,
                                           .out = y,
                                           .pitch = l->rows };
        j->by->floats->product(&product, n0 / tile, (n1 + tile - 1) / tile);
        return;
    }
    onxi_few_bits q = m->q;
    const uint64_t strip = expert * strips_of(&q) + n0 / q.lanes, line = q.blocks * q.lanes;
    uint64_t bytes;
    q.m = starts[1] - starts[0];
    if (!j->by->few_bits->plan(&q, 1, &bytes))
        return; /* it has been asked */
    q.a = a;
    q.y = y;
    q.weights = m->weights + strip * q.lanes * q.row_bytes;
    q.scales = m->scales + strip * line;
    q.zeros = m->zeros ? (const uint8_t *)m->zeros + strip * line : NULL;
    *(uint32_t *)(void *)(spare + g->bad) |= !j->by->few_bits->piece(&q, 0, q.m, n0, n1, spare);
}

static void multiply_all(job *j, int layer)
{
    const uint64_t n = layer ? j->g->all.second.rows : j->g->all.first.rows, units = (n + WHOLE - 1) / WHOLE;
    const uint64_t wanted = j->threads < 2 ? 1 : (4 * (uint64_t)j->threads + j->active - 1) / j->active;
    const uint64_t parts = wanted < units ? wanted : units;
    j->layer = layer;
    j->columns = (units + parts - 1) / parts * WHOLE;
    j->parts = (n + j->columns - 1) / j->columns;
    do_all(j, multiply, j->active * j->parts, true);
}

/* The bias of an expert as floats: in place, or converted in `space`; NULL: none. */
static const float *bias_of(const job *j, const experts_layer *l, uint64_t expert, float *space)
{
    const onx_value *bias = onxi_operand(j->work->prepared->input_count, j->work->inputs, l->bias);
    if (!bias || bias->dtype == ONX_FLOAT)
        return bias ? (const float *)bias->data + expert * l->rows : NULL;
    onxi_ms_floats(bias, expert * l->rows, l->rows, space);
    return space;
}

static void activate(job *j, uint64_t row, char *spare)
{
    const experts_params *q = &j->g->all;
    float *x = floats_at(j, j->g->between) + row * q->wide;
    const float *bias = bias_of(j, &q->first, numbers_at(j, j->g->expert)[row], (float *)(void *)(spare + j->g->spare));
    for (uint64_t i = 0; bias && i < q->wide; i++)
        x[i] += bias[i];
    if (q->activation == SWIGLU)
        j->by->gates->pairs(&(onxi_gate_pairs){ q->interleaved, q->alpha, q->beta, q->limit }, x,
                            floats_at(j, j->g->gated) + row * q->inner, q->inner);
    else if (q->activation != IDENTITY)
        j->by->gates->alone(q->activation == RELU   ? ONXI_GATE_RELU
                            : q->activation == GELU ? ONXI_GATE_GELU
                                                    : ONXI_GATE_SILU,
                            x, q->inner);
}

/* Computes the result of a token from those of its experts, in the order in which they were chosen. */
static void combine(job *j, uint64_t token, char *spare)
{
    const grouped *g = j->g;
    const experts_params *q = &g->all;
    float *result = (float *)(void *)(spare + g->spare), *space = result + q->hidden;
    const float sum = floats_at(j, g->sum)[token];
    memset(result, 0, (size_t)q->hidden * sizeof *result);
    for (uint64_t i = token * q->k; i < (token + 1) * q->k; i++) {
        const uint32_t row = numbers_at(j, g->place)[i];
        const float *bias = bias_of(j, &q->second, numbers_at(j, g->expert)[row], space);
        const float weight = floats_at(j, g->weight)[i], *y = floats_at(j, g->results) + row * q->hidden;
        for (uint64_t k = 0; k < q->hidden; k++)
            result[k] += weight * (y[k] + (bias ? bias[k] : 0));
    }
    for (uint64_t k = 0; q->normalize && k < q->hidden; k++)
        result[k] = sum != 0 ? result[k] / sum : 0;
    onxi_ms_store(j->work->outputs[0], (j->first + token) * q->hidden, q->hidden, result);
}

/* The number of threads that the work justifies. */
static unsigned threads_for(const onx_work *work, const grouped *g)
{
    const experts_params *q = &g->all;
    const uint64_t tokens = g->chunk * q->k, reading = ONXI_COST_READING + tokens,
                   cost = reading < UINT32_MAX ? (q->wide + q->inner) / 2 * reading : UINT32_MAX;
    const unsigned most = g->threads < work->threads ? g->threads : work->threads;
    return onxi_worth_a_thread(cost) > q->hidden / 2 ? 1 : onxi_team_threads(most);
}

onx_status onxi_ms_experts_run_grouped(onx_work *work, uint64_t first, uint64_t last)
{
    const grouped *g = work->params;
    uint32_t bad = 0;
    job j = { .work = work,
              .g = g,
              .by = work->prepared->kernel->body,
              .memory = work->workspace,
              .threads = threads_for(work, g) };
    (void)first, (void)last; /* one row of work: the steps use threads themselves */
    for (unsigned t = 0; t < g->threads; t++)
        *(uint32_t *)(void *)(j.memory + g->worker + t * g->worker_size + g->bad) = 0;
    for (j.first = 0; j.first < g->all.tokens && !onx_work_stops(work); j.first += g->chunk) {
        j.tokens = g->all.tokens - j.first < g->chunk ? g->all.tokens - j.first : g->chunk;
        j.choices = j.tokens * g->all.k;
        route(&j);
        do_all(&j, gather, j.choices, false);
        multiply_all(&j, 0);
        do_all(&j, activate, j.choices, false);
        multiply_all(&j, 1);
        do_all(&j, combine, j.tokens, false);
    }
    for (unsigned t = 0; t < g->threads; t++)
        bad |= *(uint32_t *)(void *)(j.memory + g->worker + t * g->worker_size + g->bad);
    return bad ? ONX_E_UNSUPPORTED : ONX_OK;
}
#endif
