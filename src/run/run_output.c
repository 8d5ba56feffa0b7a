/* run_output.c - gives the results of a run to the caller's values. A result may be in the memory of an input (a view),
 * and the caller may have given the same memory for another output: such results are copied before any is written. */
#include "run/run_zones.h"

#include <stdlib.h>

/* Bytes that may change when the caller's value of an output is written. */
typedef struct span {
    uintptr_t from, to;
} span;

static int by_address(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

/* The spans of the outputs that have memory, sorted; returns their number. */
static uint32_t sort_spans(onx_value *const *outputs, uint32_t count, span *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *v = outputs[i];
        const uint64_t size = !v || !v->data ? 0 : v->data_room > v->size ? v->data_room : v->size;
        if (size)
            out[n++] = (span){ (uintptr_t)v->data, (uintptr_t)v->data + size };
    }
    qsort(out, n, sizeof *out, by_address);
    return n;
}

/* Was the output computed directly in the caller's value? */
static bool is_there(const onx_value *out, const onx_value *made)
{
    return out->kind == ONX_VALUE_TENSOR && made->kind == ONX_VALUE_TENSOR && made->size && out->data == made->data &&
           out->dtype == made->dtype && out->rank == made->rank && onxi_same_dims(out->dims, made->dims, made->rank);
}

/* Is the result in memory that the run does not own? */
static bool is_outside(const onxi_run_plan *plan, uint32_t slot)
{
    const onxi_run_residence place = plan->slots[slot]->place;
    return place == ONXI_PLACE_INPUT || place == ONXI_PLACE_VIEW || place == ONXI_PLACE_CONSTANT;
}

/* Do the bytes overlap one of the sorted spans? reach[i] is the highest address of the spans up to the i-th. */
static bool overlaps(const span *spans, const uintptr_t *reach, uint32_t n, uintptr_t from, uintptr_t to)
{
    uint32_t lo = 0, hi = n; /* the number of spans that begin before `to` */
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (spans[mid].from < to)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && reach[lo - 1] > from;
}

/* Copies the results that are in memory which the caller's values are about to change: copies[i], NULL for the others.
 */
static onx_status copy_outside(onxi_run_state *st, onx_value *const *outputs, uint32_t count, onx_value **copies)
{
    span *spans = ONXI_ARRAY(st->scratch, span, count + 1u);
    uintptr_t *reach = ONXI_ARRAY(st->scratch, uintptr_t, count + 1u);
    if (!spans || !reach)
        return ONX_E_MEMORY;
    const uint32_t n = sort_spans(outputs, count, spans);
    for (uint32_t i = 0; i < n; i++)
        reach[i] = i && reach[i - 1] > spans[i].to ? reach[i - 1] : spans[i].to;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = st->plan->outputs[i];
        const onx_value *made = st->slots[slot];
        if (!is_outside(st->plan, slot))
            continue;
        const uintptr_t at = (uintptr_t)made->data;
        if (made->kind == ONX_VALUE_TENSOR && overlaps(spans, reach, n, at, at + made->size))
            ONX_TRY(onxi_value_snapshot(st->cx, made, &copies[i]));
    }
    return ONX_OK;
}

static bool has_ended(const void *watch)
{
    return onxi_run_watch_look(watch) != ONX_OK;
}

static onx_status put_output(const onxi_run_watch *watch, onx_ctx *cx, onx_value *out, const onx_value *made,
                             uint32_t index)
{
    const onxi_value_end end = { has_ended, watch };
    const onx_status status = onxi_value_assign_until(out, made, onxi_run_watch_is_on(watch) ? &end : NULL);
    const onx_status going = status == ONX_E_CANCELLED ? onxi_run_watch_look(watch) : ONX_OK;
    if (going != ONX_OK)
        return onxi_run_watch_fail(watch, going, cx, NULL);
    if (status != ONX_E_MISUSE || !(out->flags & ONXI_VALUE_WRAPPED))
        return status;
    return onxi_fail(cx, status, ONXI_NOWHERE,
                     "the memory given for output %u is for another type or shape: it has %llu bytes, %llu are needed",
                     index, (unsigned long long)out->size, (unsigned long long)made->size);
}

/* `copies` (NULL: none) as of copy_outside. */
static onx_status put_all(onxi_run_state *st, onx_ctx *cx, onx_value **outputs, uint32_t count,
                          onx_value *const *copies)
{
    const onxi_run_watch *watch = &st->outermost->watch;
    for (uint32_t i = 0; i < count; i++) {
        if (!outputs[i] && cx)
            ONX_TRY(onx_value_new(cx, &outputs[i]));
        if (!outputs[i])
            continue;
        onx_value *made = st->slots[st->plan->outputs[i]];
        /* Strings are in the arena of the run. */
        const bool texts = made->kind == ONX_VALUE_TENSOR && made->dtype == ONX_STRING;
        if (copies && copies[i])
            ONX_TRY(put_output(watch, cx ? cx : st->cx, outputs[i], copies[i], i));
        else if (!texts && st->plan->moves[i] && made->cx == outputs[i]->cx && !(made->flags & ONXI_VALUE_BORROWED) &&
                 !(outputs[i]->flags & ONXI_VALUE_WRAPPED))
            onxi_value_swap(outputs[i], made);
        else if (!is_there(outputs[i], made))
            ONX_TRY(put_output(watch, cx ? cx : st->cx, outputs[i], made, i));
    }
    return ONX_OK;
}

static onx_status put_apart(onxi_run_state *st, onx_ctx *cx, onx_value **outputs, uint32_t count)
{
    onx_value **copies = (onx_value **)ONXI_ARRAY(st->scratch, void *, count + 1u);
    onx_status status = copies ? copy_outside(st, outputs, count, copies) : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = put_all(st, cx, outputs, count, copies);
    for (uint32_t i = 0; copies && i < count; i++)
        onx_value_free(copies[i]);
    onxi_arena_reset(st->scratch);
    return status;
}

onx_status onxi_run_outputs_put(onxi_run_state *st, onx_ctx *cx, onx_value **outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        onxi_run_zones_open_value(st, st->slots[st->plan->outputs[i]]);
    const onx_status status =
        st->aim.overlaps ? put_apart(st, cx, outputs, count) : put_all(st, cx, outputs, count, NULL);
    for (uint32_t i = 0; i < count; i++)
        onxi_run_zones_close_value(st, st->slots[st->plan->outputs[i]]);
    return status;
}
