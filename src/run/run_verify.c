/* run_verify.c - checks a finished plan: walks its steps with the ranges of bytes of the buffer that are still needed.
 * It uses the plan's data and the facts of kernels, but no code of the planner, so that a mistake there shows here.
 * docs/notes/verifier.md */
#include "run/run_zones.h"

#include <stdio.h>
#include <stdlib.h>

/* Times: step i is at i + 1, the outputs are read after the last step; 0: never. */
typedef struct value_state {
    uint64_t from, to;                /* bytes in the buffer; equal: none */
    uint64_t end, zone;               /* of the storage that contains them, and of the zone after it */
    uint32_t root;                    /* the storage that contains them, ONXI_NO_SLOT: none */
    uint32_t last_read, reads, maker; /* times, and how often it is read */
    uint32_t views, next_view;        /* the first view of it; the next view of the same value */
    bool there;                       /* its bytes are in place */
} value_state;

typedef struct verifier {
    const onxi_run_plan *plan;
    const onxi_run_graph *g;
    onx_ctx *cx;
    value_state *values; /* per slot */
    uint32_t *pending;   /* room for a list of slots */
    /* The buffer between neighbouring `edges` is one leaf of a tree. A node has the time until which some byte below it
     * is needed (`most`), and one until which all of its bytes are (`all`), which is not noted further down. */
    uint64_t *edges;
    uint32_t edge_count;
    uint32_t *most, *all;
} verifier;

/* ---- messages ---- */

static onx_str name_of(const verifier *v, uint32_t slot)
{
    return slot < v->g->slot_count ? v->g->slots[slot].name : onx_str_of("(in another layout)");
}

static onx_status broken(const verifier *v, uint32_t time, uint32_t slot, const char *what)
{
    const value_state *s = &v->values[slot];
    const uint32_t steps = v->plan->step_count;
    const onxi_run_op *op = time && time <= steps ? v->plan->steps[time - 1].op : NULL;
    return onxi_fail(
        v->cx, ONX_E_INTERNAL, ONXI_NOWHERE,
        "the plan is wrong, please report it: %s %u of %u (%.*s \"%.*s\") and value \"%.*s\", bytes %llu to "
        "%llu of the buffer: %s",
        time > steps ? "outputs after step" : "step", time > steps ? steps : time, steps,
        ONX_ARG(op ? onx_view(op->node->op_type) : onx_str_of(time && time <= steps ? "layout" : "graph")),
        ONX_ARG(op ? onx_view(op->node->name) : onx_str_of("")), ONX_ARG(name_of(v, slot)), (unsigned long long)s->from,
        (unsigned long long)s->to, what);
}

/* ---- until when bytes are needed ---- */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t edge_of(const verifier *v, uint64_t byte)
{
    uint32_t lo = 0, hi = v->edge_count;
    while (lo + 1 < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (v->edges[mid] <= byte)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Leaves first .. last - 1 are below `node`; from .. to - 1 are meant. */
static uint32_t needed_below(const verifier *v, uint32_t node, uint32_t first, uint32_t last, uint32_t from,
                             uint32_t to)
{
    if (from <= first && last <= to)
        return v->most[node];
    const uint32_t mid = first + (last - first) / 2;
    const uint32_t left = from < mid ? needed_below(v, 2 * node, first, mid, from, to) : 0;
    const uint32_t right = to > mid ? needed_below(v, 2 * node + 1, mid, last, from, to) : 0;
    const uint32_t below = left > right ? left : right;
    return below > v->all[node] ? below : v->all[node];
}

static void need_below(verifier *v, uint32_t node, uint32_t first, uint32_t last, uint32_t from, uint32_t to,
                       uint32_t t)
{
    v->most[node] = v->most[node] > t ? v->most[node] : t;
    if (from <= first && last <= to) {
        v->all[node] = v->all[node] > t ? v->all[node] : t;
        return;
    }
    const uint32_t mid = first + (last - first) / 2;
    if (from < mid)
        need_below(v, 2 * node, first, mid, from, to, t);
    if (to > mid)
        need_below(v, 2 * node + 1, mid, last, from, to, t);
}

/* The time until which some of the bytes are needed. */
static uint32_t needed_until(const verifier *v, uint64_t from, uint64_t to)
{
    return from == to ? 0 : needed_below(v, 1, 0, v->edge_count - 1, edge_of(v, from), edge_of(v, to));
}

static void need(verifier *v, uint64_t from, uint64_t to, uint32_t time)
{
    if (from != to)
        need_below(v, 1, 0, v->edge_count - 1, edge_of(v, from), edge_of(v, to), time);
}

static onx_status find_edges(verifier *v, onx_arena *arena)
{
    uint32_t n = 0;
    v->edges = ONXI_ARRAY(arena, uint64_t, 4 * (uint64_t)v->plan->slot_count + 2);
    if (!v->edges)
        return ONX_E_MEMORY;
    v->edges[n++] = 0;
    v->edges[n++] = UINT64_MAX; /* so that there is a leaf */
    for (uint32_t i = 0; i < v->plan->slot_count; i++)
        if (v->values[i].from != v->values[i].to || v->values[i].end != v->values[i].zone) {
            v->edges[n++] = v->values[i].from;
            v->edges[n++] = v->values[i].to;
            v->edges[n++] = v->values[i].end;
            v->edges[n++] = v->values[i].zone;
        }
    qsort(v->edges, n, sizeof *v->edges, by_number);
    v->edge_count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!i || v->edges[i] != v->edges[i - 1])
            v->edges[v->edge_count++] = v->edges[i];
    v->most = ONXI_ARRAY(arena, uint32_t, 4 * (uint64_t)v->edge_count);
    v->all = ONXI_ARRAY(arena, uint32_t, 4 * (uint64_t)v->edge_count);
    return v->most && v->all ? ONX_OK : ONX_E_MEMORY;
}

/* ---- where values are ---- */

static bool is_in_buffer(const verifier *v, uint32_t slot)
{
    return v->plan->slots[slot]->place == ONXI_PLACE_BUFFER;
}

static uint64_t bytes_of(const onx_value *value)
{
    uint64_t size = 0;
    if (value->layout)
        return value->layout->size;
    return onxi_tensor_room(value->dtype, value->count, &size) ? size : UINT64_MAX;
}

/* Every value is inside its storage, and every storage in the part of the buffer that is not workspace. */
static onx_status locate(verifier *v, uint32_t slot)
{
    const onxi_run_plan *plan = v->plan;
    const onxi_run_plan_slot *s = plan->slots[slot];
    value_state *at = &v->values[slot];
    at->root = ONXI_NO_SLOT;
    at->views = at->next_view = ONXI_NO_SLOT;
    if (s->place != ONXI_PLACE_BUFFER || s->storage == ONXI_NO_SLOT)
        return ONX_OK;
    if (s->storage >= plan->storage_count)
        return broken(v, 0, slot, "there is no such storage");
    const onxi_run_storage *own = &plan->storages[s->storage];
    const bool piece = own->whole != ONXI_NO_SLOT;
    if (piece && (own->whole >= plan->storage_count || plan->storages[own->whole].whole != ONXI_NO_SLOT))
        return broken(v, 0, slot, "the storage that contains it is part of another one");
    const onxi_run_storage *root = piece ? &plan->storages[own->whole] : own;
    const uint64_t begin = piece ? own->at : 0, size = s->value.size;
    at->root = piece ? own->whole : s->storage;
    at->from = root->offset + begin;
    at->to = at->from + size;
    if (bytes_of(&s->value) > size)
        return broken(v, 0, slot, "its elements take more bytes");
    if (begin > root->size || size > root->size - begin || own->offset != at->from)
        return broken(v, 0, slot, "it is not inside its storage");
    at->end = root->offset + root->size;
    at->zone = root->size ? ((at->end + 63u) & ~(uint64_t)63u) + onxi_run_zone(plan->graph->session) : at->end;
    if (root->size > plan->workspace_offset || root->offset > plan->workspace_offset - root->size ||
        at->zone > plan->workspace_offset)
        return broken(v, 0, slot, "its storage is in the workspace");
    return ONX_OK;
}

static void note_read(verifier *v, uint32_t slot, uint32_t time)
{
    value_state *s = &v->values[slot];
    s->reads++;
    s->last_read = s->last_read > time ? s->last_read : time;
}

static void note_reads(verifier *v)
{
    const onxi_run_plan *plan = v->plan;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_run_step *step = &plan->steps[i];
        for (uint32_t k = 0; k < step->input_count + step->capture_count; k++)
            if (step->inputs[k] != ONXI_NO_SLOT)
                note_read(v, step->inputs[k], i + 1);
        for (uint32_t k = 0; k < step->output_count; k++)
            if (step->outputs[k] != ONXI_NO_SLOT)
                v->values[step->outputs[k]].maker = i + 1;
    }
    const onxi_run_later *later = plan->later;
    for (uint32_t i = 0; later && i < later->graph.capture_count; i++)
        if (!later->graph.known[i])
            note_read(v, later->captured[i], later->from + 1);
    for (uint32_t i = 0; i < v->g->output_count; i++)
        note_read(v, plan->outputs[i], plan->step_count + 1);
}

/* Views are in the memory of the value that they are views of: their op reads it, or its copy in another layout. */
static onx_status link_views(verifier *v)
{
    const onxi_run_plan *plan = v->plan;
    for (uint32_t i = 0; i < v->g->op_count; i++) {
        const onxi_run_op *op = &v->g->ops[i];
        const uint32_t slot = op->output_count ? op->outputs[0] : ONXI_NO_SLOT;
        const uint32_t base = slot == ONXI_NO_SLOT ? slot : plan->slots[slot]->base;
        if (base == ONXI_NO_SLOT || plan->slots[slot]->place == ONXI_PLACE_CONSTANT)
            continue;
        bool reads = false;
        for (uint32_t at = op->input_count ? op->inputs[0] : ONXI_NO_SLOT; at != ONXI_NO_SLOT && !reads;
             at = plan->slots[at]->reordered)
            reads = at == base || plan->slots[at]->base == base;
        value_state *view = &v->values[slot], *of = &v->values[base];
        if (!reads || view->maker || base == slot)
            return broken(v, 0, slot, "it is a view of something else");
        if (view->root != of->root || view->from != of->from || view->to > of->to)
            return broken(v, 0, slot, "it is a view, but has other bytes");
        view->next_view = of->views;
        of->views = slot;
    }
    return ONX_OK;
}

/* ---- writing ---- */

/* The value is there, and so are its views: its bytes are needed until all of them have been read for the last time. */
static onx_status arrive(verifier *v, uint32_t slot, uint32_t time)
{
    uint32_t count = 0;
    v->pending[count++] = slot;
    while (count) {
        const uint32_t at = v->pending[--count];
        value_state *s = &v->values[at];
        if (s->there)
            return broken(v, time, at, "it is made twice");
        s->there = true;
        need(v, s->from, s->to, s->last_read > time ? s->last_read : time);
        for (uint32_t view = s->views; view != ONXI_NO_SLOT; view = v->values[view].next_view)
            v->pending[count++] = view;
    }
    return ONX_OK;
}

/* A slot with these bytes that is needed at this time, for the message. */
static uint32_t victim_of(const verifier *v, uint64_t from, uint64_t to, uint32_t needed)
{
    for (uint32_t i = 0; i < v->plan->slot_count; i++) {
        const value_state *s = &v->values[i];
        if (s->there && s->last_read >= needed && s->from < to && from < s->to)
            return i;
    }
    return ONXI_NO_SLOT;
}

static onx_status overwrites(const verifier *v, uint32_t time, uint64_t from, uint64_t to, uint32_t needed)
{
    const uint32_t victim = victim_of(v, from, to, needed);
    char what[200];
    snprintf(what, sizeof what, "the step overwrites bytes %llu to %llu, which are needed until %s %u",
             (unsigned long long)from, (unsigned long long)to,
             needed > v->plan->step_count ? "the outputs are read after step" : "step",
             needed > v->plan->step_count ? needed - 1 : needed);
    return victim == ONXI_NO_SLOT ? onxi_fail(v->cx, ONX_E_INTERNAL, ONXI_NOWHERE, "step %u: %s", time, what)
                                  : broken(v, time, victim, what);
}

/* Bytes that nothing needs, not even an operand of the step. */
static onx_status write_apart(const verifier *v, uint32_t time, uint64_t from, uint64_t to)
{
    const uint32_t needed = needed_until(v, from, to);
    return needed < time ? ONX_OK : overwrites(v, time, from, to, needed);
}

static bool same_layout(const onx_layout *a, const onx_layout *b)
{
    return a == b || (a && b && a->ops == b->ops && a->ops->equal(a, b));
}

/* May the kernel of the step write output 0 over operand k while it reads it? `others`: it shares bytes with other
 * operands, too. A kernel that works element by element may, where the elements are in the same places; a kernel that
 * has chosen an operand may overwrite that one. */
static bool may_overwrite(const verifier *v, const onxi_run_step *step, uint32_t k, bool others)
{
    const onx_value *x = &v->plan->slots[step->inputs[k]]->value, *y = &v->plan->slots[step->outputs[0]]->value;
    const value_state *from = &v->values[step->inputs[k]], *to = &v->values[step->outputs[0]];
    if (k >= step->input_count || from->root != to->root || from->from != to->from)
        return false;
    if (step->prepare.overwrite >= 0)
        return !others && (uint32_t)step->prepare.overwrite == k && to->to <= from->to;
    const bool each =
        step->op && (onxi_element_is(step->kernel, step->op->input_count) || step->kernel == &onxi_kernel_chain);
    return step->kernel->flags & ONX_KERNEL_IN_PLACE && to->to == from->to && x->dtype == y->dtype &&
           same_layout(x->layout, y->layout) && (!others || each);
}

/* The bytes of output 0, which may be those of an operand. */
static onx_status write_first(const verifier *v, uint32_t time, const onxi_run_step *step)
{
    const value_state *y = &v->values[step->outputs[0]];
    const uint32_t needed = needed_until(v, y->from, y->to);
    uint32_t count = 0;
    bool may = needed == time;
    for (int pass = 0; pass < 2 && may; pass++)
        for (uint32_t k = 0; k < step->input_count + step->capture_count && may; k++) {
            if (step->inputs[k] == ONXI_NO_SLOT)
                continue;
            const value_state *x = &v->values[step->inputs[k]];
            const bool meets = x->from < y->to && y->from < x->to;
            count += meets && pass == 0;
            may = !meets || pass == 0 || may_overwrite(v, step, k, count > 1);
        }
    return needed < time || (may && count) ? ONX_OK : overwrites(v, time, y->from, y->to, needed);
}

/* Are parts along an axis contiguous in the whole? That is so if all dims before the axis are 1. */
static bool cuts_evenly(const onx_value *whole, const onx_value *part)
{
    uint32_t axis = 0;
    if (whole->layout || part->layout || whole->dtype != part->dtype || whole->rank != part->rank)
        return false;
    while (axis < whole->rank && whole->dims[axis] == part->dims[axis])
        axis++;
    for (uint32_t i = 0; i < axis && axis < whole->rank; i++)
        if (whole->dims[i] != 1)
            return false;
    return true;
}

/* A kernel that copies the parts of a whole (Concat: parts to the whole; Split: the whole to parts) copies only those
 * that are not in their place in the whole already. */
static onx_status move_parts(verifier *v, uint32_t time, const onxi_run_step *step, bool join)
{
    const uint32_t whole = join ? step->outputs[0] : step->inputs[0],
                   count = join ? step->input_count : step->output_count;
    const uint32_t *parts = join ? step->inputs : step->outputs;
    const value_state *w = &v->values[whole];
    uint64_t at = w->from;
    bool even = true; /* all parts so far are contiguous, so the place of the next one is known */
    for (uint32_t i = 0; i < count; i++) {
        const value_state *p = parts[i] == ONXI_NO_SLOT ? NULL : &v->values[parts[i]];
        const onx_value *value = p ? &v->plan->slots[parts[i]]->value : NULL;
        even = even && p && cuts_evenly(&v->plan->slots[whole]->value, value);
        const bool there = even && p->root != ONXI_NO_SLOT && p->root == w->root && p->from == at;
        if (join && !even) /* its elements may go anywhere in the rest of the whole */
            return write_apart(v, time, at, w->to);
        if (join && !there)
            ONX_TRY(write_apart(v, time, at, at + value->size));
        if (!join && p && is_in_buffer(v, parts[i])) {
            if (!there)
                ONX_TRY(write_apart(v, time, p->from, p->to));
            ONX_TRY(arrive(v, parts[i], time));
        }
        if (even)
            at += value->size;
    }
    return join && at != w->to ? broken(v, time, whole, "the parts are not as large as the whole") : ONX_OK;
}

/* While a step runs, the zones after its outputs are marked (run_zones.c). */
static onx_status check_zones(const verifier *v, uint32_t time, const onxi_run_step *step)
{
    for (uint32_t i = 0; i < step->output_count; i++)
        if (step->outputs[i] != ONXI_NO_SLOT && is_in_buffer(v, step->outputs[i]))
            ONX_TRY(write_apart(v, time, v->values[step->outputs[i]].end, v->values[step->outputs[i]].zone));
    return ONX_OK;
}

static onx_status write_outputs(verifier *v, uint32_t time, const onxi_run_step *step)
{
    const uint32_t flags = step->kernel && !step->eager ? step->kernel->flags : 0;
    const bool cuts = flags & ONXI_KERNEL_CUTS && step->inputs[0] != ONXI_NO_SLOT;
    if (cuts)
        ONX_TRY(move_parts(v, time, step, false));
    for (uint32_t i = 0; i < step->output_count; i++) {
        const uint32_t slot = step->outputs[i];
        if (slot == ONXI_NO_SLOT || (cuts && is_in_buffer(v, slot)))
            continue;
        if (v->plan->slots[slot]->place == ONXI_PLACE_DYNAMIC) {
            v->values[slot].there = true;
            continue;
        }
        if (!is_in_buffer(v, slot) || v->values[slot].root == ONXI_NO_SLOT)
            return broken(v, time, slot, "the step writes it, but it has no memory of the run");
        if (flags & ONXI_KERNEL_JOINS && i == 0)
            ONX_TRY(move_parts(v, time, step, true));
        else if (i == 0)
            ONX_TRY(write_first(v, time, step));
        else
            ONX_TRY(write_apart(v, time, v->values[slot].from, v->values[slot].to));
        ONX_TRY(arrive(v, slot, time));
    }
    return check_zones(v, time, step);
}

/* ---- reading ---- */

static onx_status read_value(const verifier *v, uint32_t time, uint32_t slot)
{
    const value_state *s = &v->values[slot];
    const onxi_run_later *later = v->plan->later;
    if (!s->there)
        return broken(v, time, slot, "it is read, but nothing has written it");
    /* The steps of plan->later may not run: a plan for the shapes at hand takes their place, and makes its outputs. */
    if (later && s->maker > later->from && s->maker <= later->to && time > later->to) {
        bool made = false;
        for (uint32_t i = 0; i < later->graph.output_count && !made; i++)
            made = later->graph.outputs[i] == slot;
        if (!made)
            return broken(v, time, slot, "it is read, but steps that may not run make it");
    }
    return ONX_OK;
}

/* An input that an output may overwrite in the caller's memory has one reader: the step that makes the output. */
static onx_status check_updates(const verifier *v, uint32_t slot)
{
    const uint32_t from = v->plan->slots[slot]->updates;
    if (from == ONXI_NO_SLOT)
        return ONX_OK;
    const value_state *cache = &v->values[from];
    return v->plan->slots[from]->place == ONXI_PLACE_INPUT && cache->reads == 1 && cache->views == ONXI_NO_SLOT &&
                   cache->last_read == v->values[slot].maker
               ? ONX_OK
               : broken(v, v->values[slot].maker, from, "it is updated in place, but something else reads it");
}

static onx_status check_workspace(const verifier *v, uint32_t time, const onxi_run_step *step)
{
    const onxi_run_plan *plan = v->plan;
    const uint64_t each = plan->thread_workspace, threads = plan->graph->session->threads;
    const bool fits = step->prepare.workspace <= plan->thread_workspace_offset - plan->workspace_offset &&
                      step->prepare.thread_workspace <= each && plan->thread_workspace_offset <= plan->buffer_size &&
                      (!each || (plan->buffer_size - plan->thread_workspace_offset) / each >= threads);
    return fits ? ONX_OK
                : onxi_fail(v->cx, ONX_E_INTERNAL, ONXI_NOWHERE,
                            "the plan is wrong, please report it: step %u of %u has "
                            "too little workspace",
                            time, plan->step_count);
}

static onx_status walk(verifier *v)
{
    const onxi_run_plan *plan = v->plan;
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        const onxi_run_residence place = plan->slots[i]->place;
        const bool at_first = place == ONXI_PLACE_INPUT || place == ONXI_PLACE_CONSTANT;
        if (at_first && !v->values[i].there)
            ONX_TRY(arrive(v, i, 0));
    }
    for (uint32_t i = 0; i < v->g->input_count + v->g->capture_count; i++) /* those that are not given have no value */
        v->values[v->g->inputs[i]].there = true;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_run_step *step = &plan->steps[i];
        for (uint32_t k = 0; k < step->input_count + step->capture_count; k++)
            if (step->inputs[k] != ONXI_NO_SLOT)
                ONX_TRY(read_value(v, i + 1, step->inputs[k]));
        ONX_TRY(check_workspace(v, i + 1, step));
        ONX_TRY(write_outputs(v, i + 1, step));
    }
    for (uint32_t i = 0; i < v->g->output_count; i++) {
        ONX_TRY(read_value(v, plan->step_count + 1, plan->outputs[i]));
        if (plan->slots[plan->outputs[i]]->value.layout)
            return broken(v, plan->step_count + 1, plan->outputs[i], "an output is not row-major");
    }
    for (uint32_t i = 0; i < plan->slot_count; i++)
        ONX_TRY(check_updates(v, i));
    return ONX_OK;
}

onx_status onxi_run_verify(const onxi_run_plan *plan, onx_ctx *cx)
{
    verifier v = { .plan = plan, .g = plan->graph, .cx = cx };
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    v.values = ONXI_ARRAY(arena, value_state, plan->slot_count + 1u);
    v.pending = ONXI_ARRAY(arena, uint32_t, plan->slot_count + 1u);
    onx_status status = v.values && v.pending ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < plan->slot_count; i++)
        status = locate(&v, i);
    if (status == ONX_OK)
        status = find_edges(&v, arena);
    if (status == ONX_OK) {
        note_reads(&v);
        status = link_views(&v);
    }
    if (status == ONX_OK)
        status = walk(&v);
    onx_arena_free(arena);
    return status;
}
