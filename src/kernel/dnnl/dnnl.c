/* dnnl.c - primitives of oneDNN as kernels: creating them, binding operands, running, packing constants. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL
#include <fenv.h>
#include <float.h>
#include <stdatomic.h>

/* ---- threads of oneDNN ---- */

static int threads_now(const onxi_dnnl_functions *lib)
{
    return lib->omp_get_max_threads ? lib->omp_get_max_threads() : 1;
}

static void set_threads(const onxi_dnnl_functions *lib, int threads)
{
    if (lib->omp_set_num_threads)
        lib->omp_set_num_threads(threads);
}

/* ---- creating primitives ---- */

/* Multiplications that justify another thread; multiplications after which a run asks whether it has to end: no fewer,
 * since parts read some of the operands again. */
enum { THREAD_COST = 1 << 17, SLICE_COST = 1 << 30, SLICES_MOST = 256 };

onxi_dnnl *onxi_dnnl_new(onx_prepare *p, uint32_t operands, uint64_t cost)
{
    const onxi_dnnl_functions *lib = onxi_dnnl_library();
    onxi_dnnl *d = lib ? ONXI_NEW(p->arena, onxi_dnnl) : NULL;
    if (!d || !(d->operands = ONXI_ARRAY(p->arena, onxi_dnnl_operand, operands + 1u)))
        return NULL;
    d->lib = lib;
    d->arena = p->arena;
    d->room = operands + 1u;
    d->cut = (onxi_dnnl_cut){ 1, 0, 0 };
    uint64_t worth = 1 + cost / THREAD_COST;
    d->threads = worth < p->threads ? (unsigned)worth : p->threads;
    d->slices = cost / SLICE_COST < SLICES_MOST ? (unsigned)(1 + cost / SLICE_COST) : SLICES_MOST;
    d->threads_before = threads_now(lib);
    set_threads(lib, 1);
    if (lib->dnnl_engine_create(&d->engine, dnnl_cpu, 0) == dnnl_success)
        return d;
    d->engine = NULL;
    set_threads(lib, d->threads_before);
    return NULL;
}

void onxi_dnnl_release(void *params)
{
    onxi_dnnl *d = params;
    for (int i = 0; i < 2; i++) {
        if (d->primitive[i])
            d->lib->dnnl_primitive_destroy(d->primitive[i]);
        if (d->desc[i])
            d->lib->dnnl_primitive_desc_destroy(d->desc[i]);
        d->primitive[i] = NULL;
        d->desc[i] = NULL;
    }
    if (d->engine)
        d->lib->dnnl_engine_destroy(d->engine);
    d->engine = NULL;
    onxi_dnnl_md_free(d);
}

onx_status onxi_dnnl_decline(onxi_dnnl *d)
{
    if (d) {
        set_threads(d->lib, d->threads_before);
        onxi_dnnl_release(d);
    }
    return ONX_E_UNSUPPORTED;
}

void onxi_dnnl_add(onxi_dnnl *d, int arg, onxi_dnnl_source source, uint32_t index, onxi_dnnl_pair md, uint64_t step)
{
    if (d->count < d->room)
        d->operands[d->count++] = (onxi_dnnl_operand){ arg, source, index, NULL, md, step };
}

onx_status onxi_dnnl_finish(onx_prepare *p, onxi_dnnl *d)
{
    onxi_dnnl_md scratch = NULL;
    size_t most = 0;
    for (int i = 0; i < 2 && d->desc[i]; i++) {
        if (d->lib->dnnl_primitive_create(&d->primitive[i], d->desc[i]) != dnnl_success) {
            d->primitive[i] = NULL;
            return onxi_dnnl_decline(d);
        }
        onxi_dnnl_md md = d->lib->dnnl_primitive_desc_query_md(d->desc[i], dnnl_query_scratchpad_md, 0);
        size_t size = md ? d->lib->dnnl_memory_desc_get_size(md) : 0;
        if (size > most) { /* the larger scratchpad serves the other primitive as well */
            most = size;
            scratch = md;
        }
    }
    if (most) {
        *(d->cut.parts > 1 ? &p->thread_workspace : &p->workspace) = most;
        onxi_dnnl_add(d, DNNL_ARG_SCRATCHPAD, ONXI_DNNL_WORKSPACE, 0, onxi_dnnl_both(scratch), 0);
    }
    p->params = d;
    p->rows = d->cut.parts;
    set_threads(d->lib, d->threads_before);
    return ONX_OK;
}

/* ---- running ---- */

/* Each part has its own array of arguments, so parts can run concurrently. */
typedef struct dnnl_state {
    const onxi_dnnl *d;
    onx_ctx *cx;
    size_t size;
    atomic_uint done;       /* finished parts of a sum */
    dnnl_stream_t *streams; /* one per part */
    void **data;            /* the address last bound to each argument */
    dnnl_exec_arg_t args[];
} dnnl_state;

static void *operand_data(const onx_work *work, const onxi_dnnl *d, const onxi_dnnl_operand *o, uint64_t part)
{
    char *base;
    switch (o->source) {
    case ONXI_DNNL_INPUT:
        base = work->inputs[o->index]->data;
        break;
    case ONXI_DNNL_OUTPUT:
        base = work->outputs[o->index]->data;
        break;
    case ONXI_DNNL_CONSTANT:
        base = (char *)(uintptr_t)o->data;
        break;
    case ONXI_DNNL_PARTIAL:
        base = work->workspace;
        break;
    default:
        return d->cut.parts > 1 ? work->thread_workspace : work->workspace;
    }
    return base ? base + part * o->step : NULL;
}

void onxi_dnnl_unbind(void *state)
{
    dnnl_state *s = state;
    const onxi_dnnl_functions *lib = s->d->lib;
    for (uint32_t i = 0; i < s->d->count * s->d->cut.parts; i++)
        if (s->args[i].memory)
            lib->dnnl_memory_destroy(s->args[i].memory);
    for (uint32_t i = 0; i < s->d->cut.parts; i++)
        if (s->streams[i])
            lib->dnnl_stream_destroy(s->streams[i]);
    onxi_release(s->cx, s, s->size);
}

onx_status onxi_dnnl_bind(onx_work *work)
{
    const onxi_dnnl *d = work->params;
    size_t args = (size_t)d->count * d->cut.parts;
    size_t size =
        sizeof(dnnl_state) + args * (sizeof(dnnl_exec_arg_t) + sizeof(void *)) + d->cut.parts * sizeof(dnnl_stream_t);
    dnnl_state *s = onxi_resize(work->cx, NULL, 0, size);
    if (!s)
        return ONX_E_MEMORY;
    memset(s, 0, size);
    s->d = d;
    s->cx = work->cx;
    s->size = size;
    s->data = (void **)(void *)(s->args + args);
    s->streams = (dnnl_stream_t *)(void *)(s->data + args);
    work->state = s;
    bool good = true;
    for (uint32_t part = 0; part < d->cut.parts && good; part++) {
        good = d->lib->dnnl_stream_create(&s->streams[part], d->engine, dnnl_stream_default_flags) == dnnl_success;
        for (uint32_t i = 0; i < d->count && good; i++) {
            size_t at = (size_t)part * d->count + i;
            const onxi_dnnl_operand *o = &d->operands[i];
            onxi_dnnl_md md = part + 1 == d->cut.parts ? o->md.last : o->md.each;
            s->args[at].arg = o->arg;
            s->data[at] = operand_data(work, d, o, part);
            good = d->lib->dnnl_memory_create(&s->args[at].memory, md, d->engine, s->data[at]) == dnnl_success;
        }
    }
    return good ? ONX_OK : onx_work_fail(work, ONX_E_MEMORY, "oneDNN cannot bind an operand");
}

static onx_status run_part(onx_work *work, const onxi_dnnl *d, uint64_t part)
{
    dnnl_state *s = work->state;
    dnnl_exec_arg_t *args = s->args + part * d->count;
    void **last = s->data + part * d->count;
    for (uint32_t i = 0; i < d->count; i++) { /* addresses of the caller's inputs and of the workspace change */
        void *data = operand_data(work, d, &d->operands[i], part);
        if (data == last[i])
            continue;
        if (d->lib->dnnl_memory_set_data_handle(args[i].memory, data) != dnnl_success)
            return onx_work_fail(work, ONX_E_INVALID, "oneDNN cannot bind an operand");
        last[i] = data;
    }
    dnnl_primitive_t primitive = d->primitive[d->primitive[1] && part + 1 == d->cut.parts];
    if (d->lib->dnnl_primitive_execute(primitive, s->streams[part], (int)d->count, args) != dnnl_success ||
        d->lib->dnnl_stream_wait(s->streams[part]) != dnnl_success)
        return onx_work_fail(work, ONX_E_INVALID, "oneDNN cannot run the primitive");
    return ONX_OK;
}

static onx_status run_parts(onx_work *work, const onxi_dnnl *d, uint64_t first, uint64_t last)
{
    int before = threads_now(d->lib);
    onx_status status = ONX_OK;
    set_threads(d->lib, 1);
    for (uint64_t part = first; part < last && status == ONX_OK && !(part > first && onx_work_stops(work)); part++)
        status = run_part(work, d, part);
    set_threads(d->lib, before);
    return status;
}

/* Has the output an element -FLT_MAX, with which oneDNN begins a maximum instead of minus infinity? */
static bool has_lowest(const onx_work *work, const onxi_dnnl *d, uint64_t part)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        const onxi_dnnl_operand *o = &d->operands[i];
        if (o->source != ONXI_DNNL_OUTPUT)
            continue;
        const float *y = operand_data(work, d, o, part);
        size_t count =
            d->lib->dnnl_memory_desc_get_size(part + 1 == d->cut.parts ? o->md.last : o->md.each) / sizeof *y;
        for (size_t k = 0; k < count; k++)
            found |= y[k] == -FLT_MAX;
    }
    return found != 0;
}

/* Has this part's share of the input a NaN or infinity that oneDNN would lose? */
static bool is_lost(const onx_work *work, const onxi_dnnl *d, uint64_t part)
{
    const onx_value *v = work->inputs[d->finite - 1];
    const uint64_t count = (v->layout ? v->layout->size : v->count * sizeof(float)) / sizeof(float);
    const uint64_t first = count / d->cut.parts * part,
                   last = part + 1 == d->cut.parts ? count : first + count / d->cut.parts;
    const uint32_t *x = v->data, exponent = 0x7f800000;
    uint32_t lost = 0;
    for (uint64_t i = first; i < last; i++)
        lost |= (x[i] & exponent) == exponent;
    return lost != 0;
}

/* The thread that finishes last adds up the results of all parts, in the order of the parts. */
static void add_parts(onx_work *work, const onxi_dnnl *d, unsigned parts)
{
    dnnl_state *s = work->state;
    const onxi_dnnl_operand *o = NULL;
    for (uint32_t i = 0; i < d->count; i++)
        if (d->operands[i].source == ONXI_DNNL_PARTIAL)
            o = &d->operands[i];
    if (!o || atomic_fetch_add(&s->done, parts) + parts < d->cut.parts)
        return;
    atomic_store(&s->done, 0);
    const uint64_t count = d->lib->dnnl_memory_desc_get_size(o->md.each) / sizeof(float);
    float *restrict to = work->outputs[o->index]->data;
    memcpy(to, work->workspace, count * sizeof *to);
    for (uint32_t part = 1; part < d->cut.parts; part++) {
        const float *restrict from = (const float *)(const void *)((const char *)work->workspace + part * o->step);
        for (uint64_t i = 0; i < count; i++)
            to[i] += from[i];
    }
}

/* Relu, Clip and MaxPool take the maximum of two numbers. If the first one is NaN, oneDNN returns the second, so NaN
 * gets lost. The CPU sets its flag for invalid operations in that case: testing the flag costs nothing, while testing
 * the elements would. */
onx_status onxi_dnnl_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_dnnl *d = work->params;
    fenv_t before;
    for (uint64_t part = first; part < last && d->finite; part++)
        if (is_lost(work, d, part))
            return ONX_E_UNSUPPORTED;
    if (!d->loses_nan) {
        onx_status status = run_parts(work, d, first, last);
        if (status == ONX_OK)
            add_parts(work, d, (unsigned)(last - first));
        return status;
    }
    feholdexcept(&before);
    onx_status status = run_parts(work, d, first, last);
    bool lost = fetestexcept(FE_INVALID) != 0;
    fesetenv(&before);
    for (uint64_t part = first; part < last && status == ONX_OK && !lost && d->loses_infinity; part++)
        lost = has_lowest(work, d, part);
    return status == ONX_OK && lost ? ONX_E_UNSUPPORTED : status;
}

/* ---- packing ---- */

typedef struct packing {
    const onxi_dnnl *d;
    const char *from;
    uint64_t from_step, to_step;
    uint32_t copies; /* copies: one per part, or one for all parts */
    onxi_dnnl_pair from_md, to_md;
} packing;

static bool execute(const onxi_dnnl *d, dnnl_primitive_t primitive, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    if (d->lib->dnnl_stream_create(&stream, d->engine, dnnl_stream_default_flags) != dnnl_success)
        return false;
    bool good = d->lib->dnnl_primitive_execute(primitive, stream, 2, args) == dnnl_success &&
                d->lib->dnnl_stream_wait(stream) == dnnl_success;
    d->lib->dnnl_stream_destroy(stream);
    return good;
}

/* Packs copies first .. last-1, which are equal. */
static bool pack_copies(const packing *q, onxi_dnnl_md from_md, onxi_dnnl_md to_md, uint32_t first, uint32_t last,
                        char *out)
{
    const onxi_dnnl *d = q->d;
    const onxi_dnnl_functions *lib = d->lib;
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    if (first == last)
        return true;
    bool good =
        lib->dnnl_memory_create(&from, from_md, d->engine, NULL) == dnnl_success &&
        lib->dnnl_memory_create(&to, to_md, d->engine, NULL) == dnnl_success &&
        lib->dnnl_reorder_primitive_desc_create(&desc, from_md, d->engine, to_md, d->engine, NULL) == dnnl_success &&
        lib->dnnl_primitive_create(&primitive, desc) == dnnl_success;
    for (uint32_t i = first; i < last && good; i++)
        good =
            lib->dnnl_memory_set_data_handle(from, (void *)(uintptr_t)(q->from + i * q->from_step)) == dnnl_success &&
            lib->dnnl_memory_set_data_handle(to, out + i * q->to_step) == dnnl_success &&
            execute(d, primitive, from, to);
    if (primitive)
        lib->dnnl_primitive_destroy(primitive);
    if (desc)
        lib->dnnl_primitive_desc_destroy(desc);
    if (to)
        lib->dnnl_memory_destroy(to);
    if (from)
        lib->dnnl_memory_destroy(from);
    return good;
}

static onx_status pack(void *user, const void *elements, uint64_t piece, void *out)
{
    packing *q = user;
    (void)piece;
    q->from = elements;
    bool good = pack_copies(q, q->from_md.each, q->to_md.each, 0, q->copies - 1, out) &&
                pack_copies(q, q->from_md.last, q->to_md.last, q->copies - 1, q->copies, out);
    return good ? ONX_OK : ONX_E_UNSUPPORTED;
}

/* The key of packed bytes: the source layout (a constant may be read in two), the target layout, and the number of
 * copies. */
static size_t packing_key(onxi_dnnl *d, const packing *q, char **out)
{
    const onxi_dnnl_md mds[] = { q->from_md.each, q->from_md.last, q->to_md.each, q->to_md.last };
    enum { COUNT = sizeof mds / sizeof *mds };
    const void *keys[COUNT];
    size_t sizes[COUNT], total = sizeof q->copies;
    for (int i = 0; i < COUNT; i++) {
        if (!(sizes[i] = onxi_dnnl_md_key(d, mds[i], &keys[i])))
            return 0;
        total += sizes[i];
    }
    char *key = onx_arena_alloc(d->arena, total);
    if (!key)
        return 0;
    *out = key;
    memcpy(key, &q->copies, sizeof q->copies);
    key += sizeof q->copies;
    for (int i = 0; i < COUNT; i++) {
        memcpy(key, keys[i], sizes[i]);
        key += sizes[i];
    }
    return total;
}

bool onxi_dnnl_add_constant(onx_prepare *p, onxi_dnnl *d, int arg, uint32_t input, onxi_dnnl_pair from, uint64_t step,
                            onxi_dnnl_pair to)
{
    if (!from.each || !from.last || !to.each || !to.last)
        return false;
    size_t each = d->lib->dnnl_memory_desc_get_size(to.each), last = d->lib->dnnl_memory_desc_get_size(to.last);
    packing q = { .d = d,
                  .from_step = step,
                  .to_step = ((each > last ? each : last) + 63u) & ~(size_t)63u,
                  .copies = step ? d->cut.parts : 1,
                  .from_md = from,
                  .to_md = to };
    const void *data;
    if (q.copies > 1 || !d->lib->dnnl_memory_desc_equal(from.each, to.each)) {
        char *key;
        uint64_t size;
        size_t key_size = packing_key(d, &q, &key);
        if (!key_size || !onxi_mul_u64(q.to_step, q.copies, &size))
            return false;
        const onx_packing job = {
            .input = input, .key = key, .key_size = key_size, .size = size, .make = pack, .user = &q
        };
        if (p->ops->packed(p, &job, &data) != ONX_OK)
            return false;
    } else if (p->ops->elements(p, input, &data) != ONX_OK) {
        return false;
    }
    onxi_dnnl_add(d, arg, ONXI_DNNL_CONSTANT, input, to, q.copies > 1 ? q.to_step : 0);
    d->operands[d->count - 1].data = data;
    return true;
}
#endif
