/* base_cancel.c - cancellation of work from another thread. */
#include "base/base_ctx.h"

#include <stdatomic.h>

struct onx_cancel {
    onx_ctx *cx;
    atomic_bool set;
};

onx_status onx_cancel_new(onx_ctx *cx, onx_cancel **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    onx_cancel *made = onxi_resize(cx, NULL, 0, sizeof *made);
    if (!made)
        return onxi_no_memory(cx);
    made->cx = cx;
    atomic_init(&made->set, false);
    *out = made;
    return ONX_OK;
}

void onx_cancel_free(onx_cancel *cancel)
{
    if (!cancel)
        return;
    if (cancel->cx->cancel == cancel)
        cancel->cx->cancel = NULL;
    onxi_release(cancel->cx, cancel, sizeof *cancel);
}

void onx_cancel_now(onx_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, true);
}

void onx_cancel_reset(onx_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, false);
}

bool onx_cancel_is_set(const onx_cancel *cancel)
{
    return cancel && atomic_load_explicit(&cancel->set, memory_order_relaxed);
}

void onx_ctx_set_cancel(onx_ctx *cx, const onx_cancel *cancel)
{
    if (cx)
        cx->cancel = cancel;
}

const onx_cancel *onxi_ctx_cancel(const onx_ctx *cx)
{
    return cx ? cx->cancel : NULL;
}

onx_status onxi_ctx_go_on(onx_ctx *cx)
{
    if (!onx_cancel_is_set(cx->cancel) || cx->reporting)
        return ONX_OK;
    /* Reported once per public call, however often it is checked while the call returns. */
    if (!cx->cancelled) {
        (void)onxi_fail(cx, ONX_E_CANCELLED, ONXI_NOWHERE, "the work was cancelled");
        cx->cancelled = cx->calls > 0;
    }
    return ONX_E_CANCELLED;
}
