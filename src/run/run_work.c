/* run_work.c - runs a prepared kernel: all rows of its work, on as many threads as the work justifies. */
#include "run/run.h"

#include <stdatomic.h>

/* How many rows are run between two looks at the watch. */
typedef struct row_pace {
    uint64_t rows, least;
    double each; /* nanoseconds of a row in the last call; 0: there was none */
} row_pace;

/* Aims at calls of one to four milliseconds. Where a call of more rows takes hardly longer, most of it is work that
 * each call repeats (such as packing an operand), and shorter calls would cost too much. */
static void pace_rows(row_pace *p, uint64_t rows, uint64_t ns)
{
    enum { SHORT_NS = 1000000, LONG_NS = 4000000 };
    const double each = (double)ns / (double)rows;
    const bool repeats = p->each > 0 && each < 0.7 * p->each;
    if (ns < SHORT_NS || repeats) {
        p->rows += rows < p->rows || p->rows > UINT64_MAX / 4 ? 0 : p->rows;
        if (repeats && ns >= SHORT_NS)
            p->least = p->rows;
    } else if (ns > LONG_NS && p->rows / 2 >= p->least) {
        p->rows /= 2;
    }
    p->each = each;
}

/* With a watch, the rows are run in pieces, with a look before each and after the last one: the kernel may have seen
 * the end and left the rest out. */
static onx_status run_rows(const onx_kernel *kernel, onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_run_watch *watch = work->watch;
    if (!onxi_run_watch_is_on(watch))
        return kernel->run(work, first, last);
    /* Less than is worth a thread, because some rows cost more than their kernels estimate. */
    row_pace pace = { .rows = work->prepared->grain / 32 + 1, .least = 1 };
    const size_t errors = work->cx ? onx_diag_total(work->cx, ONX_ERROR) : 0;
    onx_status going = onxi_run_watch_look(watch), status = ONX_OK;
    while (first < last && going == ONX_OK && status == ONX_OK) {
        const uint64_t end = last - first <= pace.rows ? last : first + pace.rows, start = onxi_run_clock_ns();
        status = kernel->run(work, first, end);
        pace_rows(&pace, end - first, onxi_run_clock_ns() - start);
        going = onxi_run_watch_look(watch);
        first = end;
    }
    if (going == ONX_OK || (status != ONX_OK && work->cx && onx_diag_total(work->cx, ONX_ERROR) > errors))
        return status; /* a node of a subgraph has reported the end */
    return work->cx ? onxi_run_watch_fail(watch, going, work->cx, work->prepared->place) : going;
}

/* The rows of work in blocks of consecutive rows. The plan fixes the blocks; any thread may run any block. */
typedef struct row_blocks {
    const onx_kernel *kernel;
    const onx_work *work;
    uint64_t rows, count;
    atomic_bool failed, declined;
} row_blocks;

static void run_block(void *user, uint64_t block, unsigned worker)
{
    row_blocks *b = user;
    if (atomic_load_explicit(&b->failed, memory_order_relaxed))
        return;
    /* Some blocks have one row more: every other block rather than the first ones, which run on the caller's thread. */
    uint64_t each = b->rows / b->count, more = b->rows % b->count;
    uint64_t first = each * block + more * block / b->count;
    uint64_t last = each * (block + 1) + more * (block + 1) / b->count;
    uint64_t step = b->work->prepared->thread_workspace;
    onx_work mine = *b->work;
    mine.cx = NULL;
    mine.thread_workspace = step ? (char *)mine.thread_workspace + step * worker : NULL;
    onx_status status = run_rows(b->kernel, &mine, first, last);
    if (status == ONX_E_UNSUPPORTED)
        atomic_store_explicit(&b->declined, true, memory_order_relaxed);
    if (status != ONX_OK)
        atomic_store_explicit(&b->failed, true, memory_order_relaxed);
}

/* Adds a diagnostic if a kernel fails without one. ONX_E_MISUSE comes from an output that cannot be resized, because
 * the rule determined its shape and the plan owns its memory. */
static onx_status explained(onx_status status, const onx_kernel *kernel, onx_work *work, size_t errors)
{
    if (status == ONX_OK || onx_diag_total(work->cx, ONX_ERROR) != errors ||
        (status == ONX_E_UNSUPPORTED && !work->prepared->nonfinite)) /* it declines NaN, and the run starts again */
        return status;
    if (status == ONX_E_MISUSE)
        return onx_work_fail(work, ONX_E_INVALID, "%s gives another shape or element type than its rule says",
                             kernel->op);
    return onx_work_fail(work, status, "the %s kernel of %s fails", onxi_kernel_variant(kernel), kernel->op);
}

static onx_status run_all_rows(const onx_kernel *kernel, onx_work *work)
{
    /* Blocks per thread, so that other threads take over the blocks of one that is late or interrupted. */
    enum { BLOCKS = 4 };
    uint64_t rows = work->prepared->rows, grain = work->prepared->grain ? work->prepared->grain : 1;
    size_t errors = onx_diag_total(work->cx, ONX_ERROR);
    if (!rows)
        return ONX_OK;
    const unsigned threads = onxi_team_threads(work->threads);
    uint64_t pieces = rows / grain, most = (uint64_t)threads * BLOCKS;
    if (pieces > 1 && threads > 1) {
        row_blocks b = { .kernel = kernel, .work = work, .rows = rows, .count = pieces < most ? pieces : most };
        onxi_team_run(threads, b.count, run_block, &b);
        if (!atomic_load_explicit(&b.failed, memory_order_relaxed))
            return ONX_OK;
        if (atomic_load_explicit(&b.declined, memory_order_relaxed) && !work->prepared->nonfinite)
            return ONX_E_UNSUPPORTED; /* the inputs may be overwritten by now, so it cannot run again */
    }                                 /* the serial run below records the failure */
    return explained(run_rows(kernel, work, 0, rows), kernel, work, errors);
}

/* Clears the unused bits of the last byte of elements smaller than a byte. Kernels write only the elements, and the
 * rest would be whatever the memory held. So results are the same bytes in each run, and leak no old data. */
static void clear_rest(onx_value *v)
{
    const unsigned bits = v && v->kind == ONX_VALUE_TENSOR ? onx_dtype_bits(v->dtype) : 8;
    const unsigned used = bits < 8 ? onxi_packed_used(bits, v->count) : 0;
    if (used && v->data && v->size)
        ((uint8_t *)v->data)[v->size - 1] &= (uint8_t)((1u << used) - 1);
}

onx_status onxi_run_work_run(const onx_kernel *kernel, onx_work *work)
{
    onx_status status = run_all_rows(kernel, work);
    for (uint32_t i = 0; status == ONX_OK && i < work->prepared->output_count; i++)
        clear_rest(work->outputs[i]);
    return status;
}
