/* base_ctx.c - the context: allocator, limits, and the list of diagnostics. */
#include "base/base_ctx.h"
#include "base/base.h"

#include <stdio.h>

static const char *const status_texts[] = {
#define STATUS(name, text) [ONX_##name] = text,
#include <onx/status.def>
};

const char *onx_status_text(onx_status status)
{
    size_t i = (size_t)status;
    return i < sizeof status_texts / sizeof *status_texts ? status_texts[i] : "unknown status";
}

onx_ctx *onx_ctx_new(const onx_allocator *allocator)
{
    const onx_allocator *a = allocator ? allocator : &onxi_allocator_default;
    char *block = a->resize(a->user, NULL, 0, sizeof(onx_ctx) + 2 * ONXI_APART_BYTES);
    if (!block)
        return NULL;
    onx_ctx *cx = (onx_ctx *)(void *)(block + ONXI_APART_BYTES); /* padding: no cache line is shared */
    memset(cx, 0, sizeof *cx);
    cx->allocator = *a;
    cx->secret = onxi_secret_make(cx);
    cx->diags = cx->few_diags;
    cx->diag_room = sizeof cx->few_diags / sizeof *cx->few_diags;
    onx_ctx_set_limits(cx, (onx_limits){ .depth = 100, .diagnostics = 1000, .memory = (uint64_t)8 << 30 });
    return cx;
}

void onx_ctx_free(onx_ctx *cx)
{
    if (!cx)
        return;
    onxi_guard_leave(cx); /* entered by onx_ctx_guard_files, if at all */
    onx_diag_clear(cx);
    onxi_arena_drop_spare(cx);
    if (cx->diags != cx->few_diags)
        onxi_release(cx, cx->diags, cx->diag_room * sizeof *cx->diags);
    onx_allocator a = cx->allocator;
    a.resize(a.user, (char *)cx - ONXI_APART_BYTES, sizeof *cx + 2 * ONXI_APART_BYTES, 0);
}

onx_limits onx_ctx_limits(const onx_ctx *cx)
{
    if (!cx)
        return (onx_limits){ 0 };
    return cx->limits;
}

void onx_ctx_set_limits(onx_ctx *cx, onx_limits limits)
{
    if (!cx)
        return;
    if (limits.depth > ONX_DEPTH_MAX)
        limits.depth = ONX_DEPTH_MAX;
    /* On systems with 32-bit addresses, this keeps sizes within the limit, plus a little more, in the range of
     * size_t. */
    enum { MORE = 1 << 16 };
    if (SIZE_MAX < UINT64_MAX && limits.memory > SIZE_MAX - MORE)
        limits.memory = SIZE_MAX - MORE;
    cx->limits = limits;
}

void onx_ctx_watch_temps(onx_ctx *cx, const onx_temp_watch *watch)
{
    if (!cx)
        return;
    cx->temps = watch ? *watch : (onx_temp_watch){ 0 };
}

const onx_allocator *onxi_ctx_allocator(const onx_ctx *cx)
{
    return &cx->allocator;
}

onxi_secret onxi_ctx_secret(const onx_ctx *cx)
{
    return cx->secret;
}

const struct onx_registry *onxi_ctx_registry(const onx_ctx *cx)
{
    return cx->registry;
}

void onxi_ctx_set_registry(onx_ctx *cx, const struct onx_registry *registry)
{
    cx->registry = registry;
}

onx_ctx *onxi_ctx_worker(const onx_ctx *cx)
{
    onx_ctx *worker = onx_ctx_new(&cx->allocator);
    if (!worker)
        return NULL;
    worker->limits = cx->limits;
    worker->registry = cx->registry;
    worker->secret = cx->secret;
    worker->arena_bytes = cx->arena_bytes;
    worker->cancel = cx->cancel;
    worker->cancelled = true; /* the context reports the cancellation, not each worker */
    return worker;
}

size_t onx_diag_count(const onx_ctx *cx)
{
    if (!cx)
        return 0;
    return cx->diag_count;
}

const onx_diag *onx_diag_get(const onx_ctx *cx, size_t index)
{
    if (!cx)
        return NULL;
    return index < cx->diag_count ? cx->diags[index] : NULL;
}

size_t onx_diag_total(const onx_ctx *cx, onx_severity severity)
{
    if (!cx)
        return 0;
    return (size_t)severity <= ONX_ERROR ? cx->totals[severity] : 0;
}

void onx_diag_clear(onx_ctx *cx)
{
    if (!cx)
        return;
    onx_arena_free(cx->texts);
    cx->texts = NULL;
    cx->diag_count = 0;
    cx->logged = 0;
    memset(cx->totals, 0, sizeof cx->totals);
}

onxi_diag_mark onxi_diag_here(const onx_ctx *cx)
{
    onxi_diag_mark mark = { .count = cx->diag_count };
    memcpy(mark.totals, cx->totals, sizeof mark.totals);
    return mark;
}

void onxi_diag_rewind(onx_ctx *cx, onxi_diag_mark mark)
{
    cx->diag_count = mark.count;
    if (cx->logged > cx->diag_count)
        cx->logged = cx->diag_count;
    memcpy(cx->totals, mark.totals, sizeof mark.totals);
    cx->cancelled = false; /* the next call reports it again */
}

void onxi_diag_forget(onx_ctx *cx, const char *rule)
{
    size_t n = 0, told = 0;
    for (size_t i = 0; i < cx->diag_count; i++) {
        onx_diag *d = cx->diags[i];
        if (d->severity == ONX_WARNING && d->rule && strcmp(d->rule, rule) == 0) {
            cx->totals[ONX_WARNING]--;
            told += i < cx->logged;
        } else {
            cx->diags[n++] = d;
        }
    }
    cx->diag_count = n;
    cx->logged -= told;
}

void onx_ctx_set_log(onx_ctx *cx, const onx_log *log)
{
    if (!cx)
        return;
    cx->log = log ? *log : (onx_log){ 0 };
    cx->logged = cx->diag_count;
}

/* Passes the diagnostics that are final to the log function. */
static void write_log(onx_ctx *cx)
{
    if (cx->calls)
        return;
    while (cx->log.write && cx->logged < cx->diag_count) {
        const onx_diag *d = cx->diags[cx->logged++];
        cx->log.write(cx->log.user, d);
    }
    cx->logged = cx->diag_count;
}

/* May one more diagnostic of that severity be kept? The first error always may, even if warnings have used up the
 * limit: without it, it would be unknown why a call failed. */
static bool is_wanted(const onx_ctx *cx, onx_severity severity)
{
    if (cx->diag_count < cx->limits.diagnostics)
        return true;
    return severity == ONX_ERROR && cx->totals[ONX_ERROR] == 1 && cx->limits.diagnostics;
}

/* The diagnostic for running out of memory while recording a diagnostic. */
static void push_no_memory(onx_ctx *cx)
{
    cx->no_memory = (onx_diag){ .severity = ONX_ERROR,
                                .status = ONX_E_MEMORY,
                                .message = { "out of memory", sizeof "out of memory" - 1 } };
    if (cx->diag_count < cx->diag_room && is_wanted(cx, ONX_ERROR))
        cx->diags[cx->diag_count++] = &cx->no_memory;
}

/* Reserves room for two more, of which one stays free. */
static bool diags_grow(onx_ctx *cx)
{
    if (cx->diag_count + 1 < cx->diag_room)
        return true;
    const size_t old = cx->diag_room * sizeof *cx->diags;
    const bool few = cx->diags == cx->few_diags;
    onx_diag **more = cx->allocator.resize(cx->allocator.user, few ? NULL : cx->diags, few ? 0 : old, 2 * old);
    if (!more)
        return false;
    if (few)
        memcpy(more, cx->few_diags, old);
    cx->diags = more;
    cx->diag_room *= 2;
    return true;
}

/* A new diagnostic; NULL beyond the limit, or when out of memory, which is then recorded. */
static onx_diag *diag_push(onx_ctx *cx, onx_severity severity)
{
    cx->totals[severity]++;
    if (!is_wanted(cx, severity))
        return NULL;
    bool enough = (cx->texts || onx_arena_new(cx, &cx->texts) == ONX_OK) && diags_grow(cx);
    onx_diag *d = enough ? onxi_arena_get(cx->texts, sizeof *d) : NULL;
    if (d)
        return cx->diags[cx->diag_count++] = d;
    cx->totals[ONX_ERROR] += severity != ONX_ERROR;
    cx->last_error = ONX_E_MEMORY;
    push_no_memory(cx);
    return NULL;
}

static onx_str keep(onx_ctx *cx, onx_str s)
{
    if (!s.len)
        return (onx_str){ 0 };
    char *copy = onxi_arena_get(cx->texts, s.len);
    if (!copy)
        return (onx_str){ 0 };
    memcpy(copy, s.ptr, s.len);
    return onx_str_make(copy, s.len);
}

static onx_str keep_format(onx_ctx *cx, const char *format, va_list args)
{
    char small[512];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    onx_str out = { 0 };
    if (n > 0 && (size_t)n < sizeof small) {
        out = keep(cx, onx_str_make(small, (size_t)n));
    } else if (n > 0) {
        char *big = onxi_arena_get(cx->texts, (size_t)n + 1);
        if (big) {
            vsnprintf(big, (size_t)n + 1, format, again);
            out = onx_str_make(big, (size_t)n);
        }
    }
    va_end(again);
    return out;
}

void onxi_diag_place(onx_ctx *cx, size_t index, onx_where where, onx_str excerpt)
{
    onx_diag *d = cx->diags[index];
    where.path = d->where.path;
    d->where = where;
    d->excerpt = keep(cx, excerpt);
}

void onxi_vreport(onx_ctx *cx, const onx_diag *diag, const char *format, va_list args)
{
    if (cx->reporting)
        return;
    cx->reporting = true; /* errors during recording are not recorded */
    if (diag->severity == ONX_ERROR)
        cx->last_error = diag->status;
    onx_diag *d = diag_push(cx, diag->severity);
    if (d) {
        *d = *diag;
        d->message = keep_format(cx, format, args);
        if (!d->message.len) /* no memory for the text: at least the kind of failure is reported */
            d->message = onx_str_of(onx_status_text(diag->status));
        d->where.path = keep(cx, diag->where.path);
        d->value = keep(cx, diag->value);
        d->expected = keep(cx, diag->expected);
        d->hint = keep(cx, diag->hint);
        d->excerpt = keep(cx, diag->excerpt);
    }
    cx->reporting = false;
    write_log(cx);
}

void onxi_report(onx_ctx *cx, const onx_diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, diag, format, args);
    va_end(args);
}

onx_status onxi_fail(onx_ctx *cx, onx_status status, onx_where where, const char *format, ...)
{
    onx_diag d = { .severity = ONX_ERROR, .status = status, .where = where };
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, &d, format, args);
    va_end(args);
    return status;
}

void onxi_warn(onx_ctx *cx, onx_severity severity, const char *rule, onx_where where, const char *format, ...)
{
    onx_diag d = { .severity = severity, .rule = rule, .where = where };
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, &d, format, args);
    va_end(args);
}

onx_status onxi_misuse(onx_ctx *cx, const char *function, const char *argument)
{
    /* The condition begins with the name of the argument: "inputs || !input_count", "own.only || !own.only_count". */
    static const char *const copies[] = { "own.", "(own)." };
    const char *of = "";
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        if (strncmp(argument, copies[i], strlen(copies[i])) == 0) {
            argument += strlen(copies[i]);
            of = "options.";
        }
    const int length = (int)strcspn(argument, " ");
    return cx ? onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s: %s%.*s is missing or wrong", function, of, length,
                          argument)
              : ONX_E_MISUSE;
}

onx_status onxi_options(onx_ctx *cx, void *own, size_t size, const void *given)
{
    uint32_t given_size = 0;
    memset(own, 0, size);
    if (!given)
        return ONX_OK;
    memcpy(&given_size, given, sizeof given_size);
    const size_t known = given_size && given_size < size ? given_size : size;
    for (size_t i = size; i < given_size; i++)
        if (((const char *)given)[i])
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "options of %lu bytes say what this version, which knows %lu bytes of them, cannot do",
                             (unsigned long)given_size, (unsigned long)size);
    memcpy(own, given, known);
    return ONX_OK;
}

onx_status onxi_no_memory(onx_ctx *cx)
{
    if (cx->reporting || cx->cancelled)
        return ONX_E_MEMORY;
    cx->reporting = true;
    cx->totals[ONX_ERROR]++;
    cx->last_error = ONX_E_MEMORY;
    push_no_memory(cx);
    cx->reporting = false;
    write_log(cx);
    return ONX_E_MEMORY;
}

static onx_status tell(onx_ctx *cx, size_t errors, onx_status status)
{
    /* After that, every failure is a consequence of the missing memory. */
    if (cx->cancelled || (status == ONX_E_MEMORY && onx_cancel_is_set(cx->cancel))) {
        (void)onxi_ctx_go_on(cx);
        return ONX_E_CANCELLED;
    }
    if (onx_diag_total(cx, ONX_ERROR) > errors)
        return status == ONX_OK ? cx->last_error : status;
    if (status == ONX_OK)
        return ONX_OK;
    if (status == ONX_E_MEMORY)
        return onxi_no_memory(cx);
    return onxi_fail(cx, status, ONXI_NOWHERE, "%s", onx_status_text(status));
}

size_t onxi_call_begin(onx_ctx *cx)
{
    if (cx && !cx->calls++)
        cx->cancelled = false;
    return onx_diag_total(cx, ONX_ERROR);
}

uint32_t onxi_call_depth(const onx_ctx *cx)
{
    return cx->calls;
}

onx_status onxi_tell(onx_ctx *cx, size_t errors, onx_status status)
{
    status = tell(cx, errors, status);
    cx->calls -= cx->calls > 0;
    write_log(cx);
    return status;
}

void onxi_diag_move(onx_ctx *cx, onx_ctx *from)
{
    for (size_t i = 0; i < from->diag_count; i++) {
        const onx_diag *d = from->diags[i];
        onxi_report(cx, d, "%.*s", ONX_ARG(d->message));
    }
    onx_diag_clear(from);
}

/* Like snprintf, but appends to the buffer. */
static void put(char *buf, size_t size, size_t *len, const char *format, ...) ONX_PRINTF(4, 5);
static void put(char *buf, size_t size, size_t *len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t at = *len < size ? *len : size;
    int n = vsnprintf(at < size ? buf + at : NULL, size - at, format, args);
    va_end(args);
    if (n > 0)
        *len += (size_t)n;
}

size_t onx_diag_format(const onx_diag *d, char *buf, size_t size)
{
    static const char *const severities[] = { "note", "warning", "error" };
    size_t n = 0;
    if (!buf)
        size = 0;
    if (size)
        buf[0] = 0;
    if (!d)
        return 0;
    if (d->where.kind == ONX_AT_TEXT)
        put(buf, size, &n, "%u:%u: ", d->where.line, d->where.column);
    if (d->where.kind == ONX_AT_BYTE)
        put(buf, size, &n, "byte %llu: ", (unsigned long long)d->where.byte);
    if (d->where.path.len)
        put(buf, size, &n, "%.*s: ", ONX_ARG(d->where.path));
    put(buf, size, &n, "%s: %.*s", severities[(unsigned)d->severity > ONX_ERROR ? ONX_ERROR : d->severity],
        ONX_ARG(d->message));
    if (d->value.len)
        put(buf, size, &n, ", found %.*s", ONX_ARG(d->value));
    if (d->expected.len)
        put(buf, size, &n, ", expected %.*s", ONX_ARG(d->expected));
    if (d->rule)
        put(buf, size, &n, " [%s]", d->rule);
    /* Names from a file may contain escape sequences, which a terminal would execute. */
    for (size_t i = 0; i < n && i + 1 < size; i++)
        if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f)
            buf[i] = '?';
    if (d->hint.len)
        put(buf, size, &n, "\n  hint: %.*s", ONX_ARG(d->hint));
    return n;
}

onx_str onxi_arena_printf(onx_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    onx_str out = { 0 };
    char *p = n < 0 ? NULL : onxi_arena_get(arena, (size_t)n + 1);
    if (p) {
        vsnprintf(p, (size_t)n + 1, format, again);
        out = onx_str_make(p, (size_t)n);
    }
    va_end(again);
    va_end(args);
    return out;
}
