/* run_zones.c - finds kernels that touch bytes of the buffer outside of their operands and workspaces, and shows which
 * elements of outputs they do not write. A write into the zone after an output or a workspace is found even if the code
 * was not compiled here (oneDNN). AddressSanitizer finds every other access of compiled code: all bytes are poisoned
 * except those that belong to the step that runs. */
#include "run/run_zones.h"

#include <stdio.h>

#if ONXI_PLATFORM_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)   ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum {
    MARK = 0xA5, /* the byte in zones */
    GRANULE = 8, /* AddressSanitizer knows how many of the first bytes of each 8 may be touched */
};

static bool is_on(const onxi_run_state *st)
{
    return onxi_run_zone(st->plan->graph->session) != 0;
}

/* Is memory poisoned that no running step has? Collectives copy to and from the buffers of others at any time. */
static bool poisons(const onxi_run_state *st)
{
    return ONXI_PLATFORM_ASAN && is_on(st) && !st->plan->graph->session->once;
}

/* ---- what may be touched ---- */

static bool is_inside(const onxi_run_state *st, const void *at)
{
    return at && (uintptr_t)at >= (uintptr_t)st->buffer &&
           (uintptr_t)at - (uintptr_t)st->buffer < st->plan->buffer_size;
}

static void touch(char *at, uint64_t size, bool open)
{
    const uintptr_t before = (uintptr_t)at % GRANULE;
    if (open)
        ASAN_UNPOISON_MEMORY_REGION(at, (size_t)size);
    else
        ASAN_POISON_MEMORY_REGION(at - before, (size_t)((size + before + GRANULE - 1) / GRANULE * GRANULE));
}

static void touch_value(const onxi_run_state *st, const onx_value *v, bool open)
{
    if (poisons(st) && v && v->kind == ONX_VALUE_TENSOR && v->size && is_inside(st, v->data))
        touch(v->data, v->size, open);
}

static void touch_step(const onxi_run_state *st, uint32_t i, bool open)
{
    const onxi_run_step *step = &st->plan->steps[i];
    const onx_work *w = &st->works[i];
    const uint64_t own = step->prepare.thread_workspace, stride = st->plan->thread_workspace;
    for (uint32_t k = 0; k < step->input_count + step->capture_count; k++)
        touch_value(st, w->inputs[k], open);
    for (uint32_t k = 0; k < step->output_count; k++)
        touch_value(st, w->outputs[k], open);
    if (poisons(st) && !step->eager) {
        touch(w->workspace, step->prepare.workspace, open);
        for (unsigned t = 0; own && t < w->threads; t++)
            touch((char *)w->thread_workspace + t * stride, own, open);
    }
}

void onxi_run_zones_close(const onxi_run_state *st)
{
    if (poisons(st) && st->plan->buffer_size)
        touch(st->buffer, st->plan->buffer_size, false);
}

void onxi_run_zones_end(const onxi_run_state *st)
{
    if (ONXI_PLATFORM_ASAN && st->buffer && st->plan->buffer_size)
        touch(st->buffer, st->plan->buffer_size, true);
}

void onxi_run_zones_open_value(const onxi_run_state *st, const onx_value *value)
{
    if (is_on(st))
        touch_value(st, value, true);
}

void onxi_run_zones_close_value(const onxi_run_state *st, const onx_value *value)
{
    if (is_on(st))
        touch_value(st, value, false);
}

/* ---- zones ---- */

/* The zone of a range that ends here goes on to the next line and a whole zone further. */
static uint64_t zone_size(const onxi_run_state *st, const char *end)
{
    const uintptr_t rest = (uintptr_t)(end - st->buffer) % 64;
    return onxi_run_zone(st->plan->graph->session) + (rest ? 64 - rest : 0);
}

/* Marks the zone that begins at `end`, or looks whether the marks are still there. */
static bool visit_zone(const onxi_run_state *st, char *end, bool look)
{
    const uint64_t size = zone_size(st, end);
    bool intact = true;
    if (poisons(st))
        touch(end, size, true);
    if (!look)
        memset(end, MARK, (size_t)size);
    for (uint64_t i = 0; look && i < size; i++)
        intact = intact && (unsigned char)end[i] == MARK;
    if (poisons(st))
        touch(end, size, false);
    return intact;
}

/* Where the storage of output k ends; NULL: it is not in the buffer. */
static char *end_of_output(const onxi_run_state *st, const onxi_run_step *step, uint32_t k)
{
    const onxi_run_plan *plan = st->plan;
    const uint32_t slot = step->outputs[k];
    if (slot == ONXI_NO_SLOT || plan->slots[slot]->place != ONXI_PLACE_BUFFER ||
        plan->slots[slot]->storage == ONXI_NO_SLOT)
        return NULL;
    const onxi_run_storage *own = &plan->storages[plan->slots[slot]->storage];
    const uint32_t root = own->whole == ONXI_NO_SLOT ? plan->slots[slot]->storage : own->whole;
    const uint64_t size = plan->storages[root].size;
    return size && is_inside(st, st->storage_at[root]) ? st->storage_at[root] + size : NULL;
}

typedef struct place { /* what a broken zone follows; empty: none is broken */
    char text[48];
} place;

static void visit_zones(const onxi_run_state *st, uint32_t i, bool look, place *out)
{
    const onxi_run_plan *plan = st->plan;
    const onxi_run_step *step = &plan->steps[i];
    const onx_work *w = &st->works[i];
    out->text[0] = 0;
    for (uint32_t k = 0; k < step->output_count; k++) {
        char *end = end_of_output(st, step, k);
        if (end && !visit_zone(st, end, look))
            snprintf(out->text, sizeof out->text, "output %u", k);
    }
    if (step->eager)
        return;
    if (plan->thread_workspace_offset != plan->workspace_offset &&
        !visit_zone(st, (char *)w->workspace + step->prepare.workspace, look))
        snprintf(out->text, sizeof out->text, "its workspace");
    for (unsigned t = 0; plan->thread_workspace && t < w->threads; t++) {
        char *own = (char *)w->thread_workspace + t * plan->thread_workspace;
        if (!visit_zone(st, own + step->prepare.thread_workspace, look))
            snprintf(out->text, sizeof out->text, "the workspace of thread %u", t);
    }
}

/* ---- elements that nothing writes ---- */

static bool meets(const onx_value *a, const onx_value *b)
{
    return a && b && a->data && b->data && (uintptr_t)a->data < (uintptr_t)b->data + b->size &&
           (uintptr_t)b->data < (uintptr_t)a->data + a->size;
}

/* Outputs that are not in the memory of an operand get elements that depend on the options of the session. So elements
 * that a kernel leaves out differ from those of another session, and are the same in each run. */
static void fill_outputs(const onxi_run_state *st, uint32_t i)
{
    const onxi_run_step *step = &st->plan->steps[i];
    const onx_session_options *o = &st->plan->graph->session->options;
    const onx_work *w = &st->works[i];
    const int byte = MARK ^ (o->plain ? 0xFF : 0) ^ (o->no_optimize ? 0x3C : 0);
    for (uint32_t k = 0; k < step->output_count; k++) {
        const onx_value *y = w->outputs[k];
        bool apart = y && y->kind == ONX_VALUE_TENSOR && y->dtype != ONX_STRING && y->data && y->size &&
                     st->plan->slots[step->outputs[k]]->place == ONXI_PLACE_BUFFER;
        for (uint32_t n = 0; apart && n < step->input_count + step->capture_count; n++)
            apart = !meets(y, w->inputs[n]);
        if (apart)
            memset(y->data, byte, (size_t)y->size);
    }
}

void onxi_run_zones_enter(const onxi_run_state *st, uint32_t i)
{
    place nowhere;
    if (!is_on(st))
        return;
    visit_zones(st, i, false, &nowhere);
    touch_step(st, i, true);
    fill_outputs(st, i);
}

onx_status onxi_run_zones_leave(const onxi_run_state *st, uint32_t i, const onx_kernel *kernel)
{
    const onxi_run_op *op = st->plan->steps[i].op;
    place where;
    if (!is_on(st))
        return ONX_OK;
    touch_step(st, i, false);
    visit_zones(st, i, true, &where);
    return !where.text[0]
               ? ONX_OK
               : onxi_fail(st->cx, ONX_E_INTERNAL, ONXI_NOWHERE,
                           "the %s kernel of %.*s \"%.*s\" is wrong, please report it: it writes after the end of %s",
                           kernel ? onxi_kernel_variant(kernel) : "plain",
                           ONX_ARG(op ? onx_view(op->node->op_type) : onx_str_of("Reorder")),
                           ONX_ARG(op ? onx_view(op->node->name) : onx_str_of("")), where.text);
}
