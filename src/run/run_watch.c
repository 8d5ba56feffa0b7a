/* run_watch.c - ends a run early: after a time limit, or when the caller cancels it. */
#include "run/run.h"

static bool stops(const onxi_work_watch *watch)
{
    return onxi_run_watch_look((const onxi_run_watch *)(const void *)watch) != ONX_OK;
}

onxi_run_watch onxi_run_watch_new(const onx_ctx *cx, const onx_run_options *options)
{
    onxi_run_watch w = { .context = onxi_ctx_cancel(cx) };
    if (options) {
        w.timeout_ns = options->timeout_ns;
        w.iterations = options->iterations;
        w.stop = options->stop;
        w.user = options->user;
        w.cancel = options->cancel;
    }
    if (w.timeout_ns || w.stop || w.cancel || w.context)
        w.work.stops = stops;
    if (w.timeout_ns && !onxi_add_u64(onxi_run_clock_ns(), w.timeout_ns, &w.deadline_ns))
        w.deadline_ns = UINT64_MAX;
    return w;
}

static onx_status find_end(const onxi_run_watch *w)
{
    if (onx_cancel_is_set(w->cancel) || onx_cancel_is_set(w->context) || (w->stop && w->stop(w->user)))
        return ONX_E_CANCELLED;
    return w->deadline_ns && onxi_run_clock_ns() > w->deadline_ns ? ONX_E_LIMIT : ONX_OK;
}

onx_status onxi_run_watch_look(const onxi_run_watch *w)
{
    if (!onxi_run_watch_is_on(w))
        return ONX_OK;
    const onx_status before = (onx_status)__atomic_load_n(&w->ended, __ATOMIC_RELAXED);
    if (before != ONX_OK)
        return before;
    /* Kernels that saw the end have not finished, so it is noted: a cancellation may be taken back. */
    const onx_status now = find_end(w);
    if (now != ONX_OK)
        __atomic_store_n(&((onxi_run_watch *)(uintptr_t)(const void *)w)->ended, (int)now, __ATOMIC_RELAXED);
    return now;
}

onx_status onxi_run_watch_fail(const onxi_run_watch *w, onx_status status, onx_ctx *cx, const onxi_run_op *op)
{
    onx_arena *arena = NULL;
    onx_where where = ONXI_NOWHERE;
    if (op && onx_arena_new(cx, &arena) == ONX_OK)
        where = ONXI_AT_PATH(onxi_run_op_path(arena, op));
    if (status == ONX_E_CANCELLED)
        (void)onxi_fail(cx, status, where, "the run was cancelled");
    else
        (void)onxi_fail(cx, status, where, "this takes longer than %g s (limit timeout)", (double)w->timeout_ns * 1e-9);
    onx_arena_free(arena);
    return status;
}
