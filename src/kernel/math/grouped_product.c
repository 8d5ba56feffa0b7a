/* grouped_product.c - products with matrices that indices select, onx.GroupedMatMul (x, weights, indices): equal to
 * MatMul (x, Gather (weights, indices)), but the rows that belong to a matrix are multiplied together, and no matrix is
 * copied. A rule of sessions replaces the two nodes, whatever function they come from. */
#include "kernel/core/groups.h"
#include "kernel/kernel.h"

enum { ROWS = 96, COLUMNS = 512, FEW = 4, PLENTY = 16 }; /* rows and columns of a product; PLENTY rows are not copied */

typedef struct product {
    uint64_t matrices, k, n, rows, items; /* rows: of x per item; items: batches of the output */
    uint32_t rank;                        /* of the batch axes */
    uint64_t size[ONX_RANK_MAX], x_step[ONX_RANK_MAX], at_step[ONX_RANK_MAX]; /* steps in items; 0: broadcast */
    uint64_t width;                                                           /* bytes of an element */
    uint64_t starts, next, active, place, order; /* offsets in the workspace, then that of each thread: */
    uint64_t worker, worker_size, left, right, pack;
    unsigned threads;
} product;

static bool is_taken(int dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

/* The axes of the batches, those of x and of the indices broadcast to each other. False: they do not fit. */
static bool batches(const onx_value *x, const onx_value *at, product *q, int64_t *dims)
{
    const uint32_t own = x->rank < 2 ? 0 : x->rank - 2;
    uint64_t x_step = 1, at_step = 1;
    q->rank = own > at->rank ? own : at->rank;
    for (uint32_t i = 0; i < q->rank; i++) {
        const int64_t a = i < own ? x->dims[own - 1 - i] : 1, b = i < at->rank ? at->dims[at->rank - 1 - i] : 1;
        const uint32_t axis = q->rank - 1 - i;
        if (a != b && a != 1 && b != 1)
            return false;
        dims[axis] = a == 1 ? b : a;
        q->size[axis] = (uint64_t)dims[axis];
        q->x_step[axis] = a == 1 ? 0 : x_step;
        q->at_step[axis] = b == 1 ? 0 : at_step;
        x_step *= (uint64_t)a;
        at_step *= (uint64_t)b;
    }
    return true;
}

static onx_status product_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *at = p->inputs[2];
    int64_t dims[ONX_RANK_MAX + 2];
    product q = { 0 };
    if (!x || !w || !at || x->kind != ONX_VALUE_TENSOR || w->kind != ONX_VALUE_TENSOR || at->kind != ONX_VALUE_TENSOR ||
        !is_taken(x->dtype) || w->dtype != x->dtype || w->rank != 3 || x->rank < 1 || at->rank < 1 ||
        x->dims[x->rank - 1] != w->dims[1] || x->rank + at->rank + 2 > ONX_RANK_MAX || !batches(x, at, &q, dims))
        return ONX_OK; /* no type: the nodes stay */
    uint32_t rank = q.rank;
    if (x->rank > 1)
        dims[rank++] = x->dims[x->rank - 2];
    dims[rank++] = w->dims[2];
    return onx_prepare_output(p, 0, (onx_dtype)x->dtype, rank, dims);
}

static bool reserve(uint64_t *total, uint64_t a, uint64_t b, uint64_t *at)
{
    uint64_t bytes;
    *at = *total;
    return onxi_mul_u64(a, b, &bytes) && bytes < UINT64_MAX / 64 &&
           onxi_add_u64(*total, (bytes + 63) & ~(uint64_t)63, total);
}

static onx_status product_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *at = p->inputs[2];
    int64_t dims[ONX_RANK_MAX + 2];
    product *q = ONXI_NEW(p->arena, product);
    uint64_t total = 0, worker = 0, count, all;
    if (!q)
        return ONX_E_MEMORY;
    if (w->rank != 3 || x->rank < 1 || x->dims[x->rank - 1] != w->dims[1] || x->rank + at->rank + 2 > ONX_RANK_MAX ||
        !batches(x, at, q, dims))
        return onx_prepare_fail(p, ONX_E_INVALID, "x, weights and indices of ranks %u, %u and %u do not fit", x->rank,
                                w->rank, at->rank);
    q->matrices = (uint64_t)w->dims[0];
    q->k = (uint64_t)w->dims[1];
    q->n = (uint64_t)w->dims[2];
    q->rows = x->rank < 2 ? 1 : (uint64_t)x->dims[x->rank - 2];
    q->items = 1;
    for (uint32_t i = 0; i < q->rank; i++)
        if (!onxi_mul_u64(q->items, q->size[i], &q->items))
            return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many batches");
    q->width = x->dtype == ONX_DOUBLE ? 8 : x->dtype == ONX_FLOAT ? 4 : 2;
    q->threads = p->threads;
    if (!onxi_mul_u64(q->items, q->rows, &count) || !onxi_mul_u64(count, q->n, &all) || all != p->outputs[0]->count ||
        q->items > UINT32_MAX || q->matrices >= UINT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output has %llu elements, expected %llu rows of %llu",
                                (unsigned long long)p->outputs[0]->count, (unsigned long long)count,
                                (unsigned long long)q->n);
    const uint64_t columns = q->n < COLUMNS ? q->n : COLUMNS;
    if (!reserve(&worker, ROWS * q->width, q->k, &q->left) || !reserve(&worker, ROWS * q->width, columns, &q->right) ||
        !reserve(&worker, onxi_gemm_workspace(x->dtype, ROWS, columns, q->k), 1, &q->pack) ||
        !reserve(&total, q->matrices + 1, sizeof(uint32_t), &q->starts) ||
        !reserve(&total, q->matrices, sizeof(uint32_t), &q->next) ||
        !reserve(&total, q->matrices, sizeof(uint32_t), &q->active) ||
        !reserve(&total, q->items, sizeof(uint32_t), &q->place) ||
        !reserve(&total, q->items, sizeof(uint32_t), &q->order) || !reserve(&total, worker, q->threads, &q->worker))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the matrices are too large");
    q->worker_size = worker;
    p->workspace = total;
    p->params = q;
    p->rows = all ? 1 : 0; /* the steps use threads themselves */
    return ONX_OK;
}

typedef struct job {
    onx_work *work;
    const product *q;
    char *memory;
    uint64_t active, parts;
} job;

static uint32_t *numbers_at(const job *j, uint64_t at)
{
    return (uint32_t *)(void *)(j->memory + at);
}

/* The place of an item among those of an operand. */
static uint64_t place_of(const product *q, const uint64_t *step, uint64_t item)
{
    uint64_t at = 0;
    for (uint32_t i = q->rank; i-- > 0; item /= q->size[i])
        at += item % q->size[i] * step[i];
    return at;
}

/* Few rows of floats: each row of the matrix is read once, without packing. */
static void multiply_few(const job *j, const float *a, const float *b, float *c, uint64_t rows, uint64_t columns)
{
    const product *q = j->q;
    onxi_pace pace = { .work = j->work };
    for (uint64_t r = 0; r < rows; r++) {
        float *restrict y = c + r * columns;
        memset(y, 0, columns * sizeof *y);
        for (uint64_t k = 0; k < q->k && !onxi_pace_stops(&pace, columns); k++) {
            const float by = a[r * q->k + k], *restrict row = b + k * q->n;
            for (uint64_t n = 0; n < columns; n++)
                y[n] += by * row[n];
        }
    }
}

static void multiply(const job *j, const void *a, const void *b, void *c, uint64_t rows, uint64_t columns,
                     uint64_t c_row, char *spare)
{
    const product *q = j->q;
    const onx_value *x = j->work->inputs[0];
    if (x->dtype == ONX_FLOAT && rows < FEW && c_row == columns) {
        multiply_few(j, a, b, c, rows, columns);
        return;
    }
    const onxi_gemm g = { .dtype = x->dtype,
                          .m = rows,
                          .n = columns,
                          .k = q->k,
                          .a = a,
                          .b = b,
                          .c = c,
                          .a_row = (int64_t)q->k,
                          .a_col = 1,
                          .b_row = (int64_t)q->n,
                          .b_col = 1,
                          .c_row = (int64_t)c_row,
                          .work = j->work };
    onxi_gemm_run(&g, spare + q->pack);
}

/* Some items of a matrix whose rows are copied, multiplied together, and copied to their places. */
static void multiply_together(const job *j, const uint32_t *items, uint64_t count, const char *matrix, uint64_t n0,
                              uint64_t columns, char *spare)
{
    const product *q = j->q;
    const char *x = j->work->inputs[0]->data;
    char *y = j->work->outputs[0]->data, *left = spare + q->left, *right = spare + q->right;
    const uint64_t bytes = q->k * q->width, line = columns * q->width;
    for (uint64_t i = 0; i < count; i++)
        memcpy(left + i * q->rows * bytes, x + place_of(q, q->x_step, items[i]) * q->rows * bytes, q->rows * bytes);
    multiply(j, left, matrix, right, count * q->rows, columns, columns, spare);
    for (uint64_t r = 0; r < count * q->rows; r++)
        memcpy(y + ((items[r / q->rows] * q->rows + r % q->rows) * q->n + n0) * q->width, right + r * line, line);
}

/* A piece is a matrix that has items, and a part of its columns. */
static void run_piece(void *user, uint64_t piece, unsigned worker)
{
    const job *j = user;
    const product *q = j->q;
    char *spare = j->memory + q->worker + worker * q->worker_size;
    const uint64_t matrix = numbers_at(j, q->active)[piece / j->parts], n0 = piece % j->parts * COLUMNS,
                   columns = q->n - n0 < COLUMNS ? q->n - n0 : COLUMNS;
    const uint32_t *starts = numbers_at(j, q->starts) + matrix, *order = numbers_at(j, q->order);
    const char *w = (const char *)j->work->inputs[1]->data + (matrix * q->k * q->n + n0) * q->width;
    const uint64_t each = q->rows < PLENTY ? ROWS / q->rows : 1;
    for (uint64_t i = starts[0]; i < starts[1] && !onx_work_stops(j->work); i += each) {
        const uint64_t count = starts[1] - i < each ? starts[1] - i : each;
        if (q->rows < PLENTY) {
            multiply_together(j, order + i, count, w, n0, columns, spare);
            continue;
        }
        const char *x =
            (const char *)j->work->inputs[0]->data + place_of(q, q->x_step, order[i]) * q->rows * q->k * q->width;
        char *y = (char *)j->work->outputs[0]->data + (order[i] * q->rows * q->n + n0) * q->width;
        for (uint64_t r = 0; r < q->rows && !onx_work_stops(j->work); r += ROWS)
            multiply(j, x + r * q->k * q->width, w, y + r * q->n * q->width, q->rows - r < ROWS ? q->rows - r : ROWS,
                     columns, q->n, spare);
    }
}

static onx_status product_run(onx_work *work, uint64_t first, uint64_t last)
{
    const product *q = work->params;
    const onx_value *at = work->inputs[2];
    job j = { .work = work, .q = q, .memory = work->workspace, .parts = (q->n + COLUMNS - 1) / COLUMNS };
    uint32_t *place = numbers_at(&j, q->place), *order = numbers_at(&j, q->order);
    (void)first, (void)last; /* one row of work */
    for (uint64_t i = 0; i < q->items; i++) {
        const uint64_t k = place_of(q, q->at_step, i);
        const int64_t id = at->dtype == ONX_INT64 ? ((const int64_t *)at->data)[k] : ((const int32_t *)at->data)[k];
        if (id < -(int64_t)q->matrices || id >= (int64_t)q->matrices)
            return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of %llu matrices", (long long)id,
                                 (unsigned long long)q->matrices);
        place[i] = (uint32_t)(id < 0 ? id + (int64_t)q->matrices : id);
    }
    if (!q->k) {
        memset(work->outputs[0]->data, 0, work->outputs[0]->count * q->width);
        return ONX_OK;
    }
    j.active = onxi_groups_sort(place, q->items, q->matrices, numbers_at(&j, q->starts), numbers_at(&j, q->next),
                                numbers_at(&j, q->active));
    for (uint64_t i = 0; i < q->items; i++)
        order[place[i]] = (uint32_t)i;
    const uint64_t pieces = j.active * j.parts, cost = q->items * q->rows * q->k,
                   wanted = cost / onxi_worth_a_thread(q->n * ONXI_COST_ELEMENT) + 1;
    const unsigned most = q->threads < work->threads ? q->threads : work->threads,
                   threads = wanted < most ? (unsigned)wanted : most;
    if (threads < 2)
        for (uint64_t i = 0; i < pieces; i++)
            run_piece(&j, i, 0);
    else
        onxi_team_run(onxi_team_threads(threads), pieces, run_piece, &j);
    return ONX_OK;
}

const onx_kernel onxi_kernels_grouped_product[] = {
    { .op = "GroupedMatMul",
      .domain = "onx",
      .since = 1,
      .prepare = product_prepare,
      .run = product_run,
      .types = product_types },
    { 0 },
};
