/* interrupt.c - Ctrl-C while the library works. Python's own handler only notes the signal, which Python handles after
 * the library has returned. Therefore a handler of ours is installed meanwhile, which cancels the work. */
#include "py.h"

#include <signal.h>

static onx_cancel *cancelled; /* NULL: out of memory, and nothing is watched */
static struct sigaction before;
static unsigned watches; /* a counter, because Python functions called by the library may call it again */
static PyObject *get_signal, *default_handler;

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    onx_cancel_now(cancelled); /* after Python's handler has noted the signal: another thread may check it */
}

/* Does Python's handler raise KeyboardInterrupt? A program with a handler of its own may continue after the signal and
 * then needs the result. */
static bool raises_interrupt(void)
{
    PyObject *now = get_signal ? PyObject_CallFunction(get_signal, "i", SIGINT) : NULL;
    const bool same = now && now == default_handler;
    Py_XDECREF(now);
    PyErr_Clear();
    return same;
}

static bool stand_before(void)
{
    if (!cancelled || !raises_interrupt() || sigaction(SIGINT, NULL, &before) != 0)
        return false;
    struct sigaction ours = before;
    ours.sa_sigaction = on_interrupt;
    ours.sa_flags |= SA_SIGINFO;
    return sigaction(SIGINT, &ours, NULL) == 0;
}

void py_watch_begin(py_watch *watch, py_ctx *ctx)
{
    watch->ctx = NULL;
    if (!py_on_main_thread() || (watches == 0 && !stand_before()))
        return;
    watches++;
    watch->ctx = ctx;
    onx_ctx_set_cancel(ctx->cx, cancelled);
}

void py_watch_end(py_watch *watch)
{
    if (!watch->ctx)
        return;
    onx_ctx_set_cancel(watch->ctx->cx, NULL);
    if (--watches > 0)
        return;
    sigaction(SIGINT, &before, NULL);
    onx_cancel_reset(cancelled);
}

/* Objects created here live as long as the process. */
bool py_add_interrupt(PyObject *module)
{
    (void)module;
    if (cancelled)
        return true;
    /* This module in C handles no signal within a call, so none is lost. */
    PyObject *signals = PyImport_ImportModule("_signal");
    onx_ctx *cx = signals ? onx_ctx_new(NULL) : NULL;
    if (cx && onx_cancel_new(cx, &cancelled) != ONX_OK)
        cancelled = NULL;
    get_signal = signals ? PyObject_GetAttrString(signals, "getsignal") : NULL;
    default_handler = get_signal ? PyObject_GetAttrString(signals, "default_int_handler") : NULL;
    Py_XDECREF(signals);
    return default_handler != NULL;
}
