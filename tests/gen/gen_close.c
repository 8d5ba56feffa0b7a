/* gen_close.c - compares two runs of a generated model if kernels round differently. An output that depends on a step
 * (Floor, ArgMax, NonZero) or a pole (Reciprocal) may differ much if its operands differ by a rounding error. */
#include "gen/gen.h"

#include <onx/io.h>
#include <onx/tensor.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- outputs that tell nothing ---- */

/* The floats of the constants, one after the other: `values` gets them, and they become what is in `with`. */
static size_t exchange_constants(const onx_graph *graph, float *values, const float *with)
{
    size_t count = 0;
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        const onx_tensor *t = graph->initializer[i];
        const onx_str bytes = onx_view(t->raw_data);
        const size_t n = t->data_type == ONX_FLOAT ? bytes.len / sizeof(float) : 0;
        if (values && n)
            memcpy(values + count, bytes.ptr, n * sizeof(float));
        if (with && n) /* what the generator made is the arena's */
            memcpy((void *)(uintptr_t)(const void *)bytes.ptr, with + count, n * sizeof(float));
        count += n;
    }
    return count;
}

static void run_nudged(gen_origin *o, double by, gen_run *out)
{
    enum { MOST = 256 };
    gen_operand nudged[MOST];
    const onx_graph *graph = onx_doc_model(o->doc)->graph;
    const uint32_t count = o->count < MOST ? o->count : MOST;
    for (uint32_t i = 0; i < count; i++) {
        nudged[i] = o->operands[i];
        const bool real = onx_dtype_class_of(nudged[i].dtype) == ONX_CLASS_FLOATING;
        const double step = nudged[i].dtype == ONX_FLOAT16    ? 1e3 /* 16-bit floats have a thousandth, */
                            : nudged[i].dtype == ONX_BFLOAT16 ? 8e3 /* or eight, between neighbours, not a millionth */
                                                              : 1;
        nudged[i].nudge = real && nudged[i].fill < GEN_INDEX ? by * step : 0;
    }
    const size_t floats = exchange_constants(graph, NULL, NULL);
    float *kept = calloc(floats + 1, sizeof *kept), *others = calloc(floats + 1, sizeof *others);
    out->status = ONX_E_MEMORY;
    if (kept && others) {
        exchange_constants(graph, kept, NULL);
        for (size_t i = 0; i < floats; i++)
            others[i] = (float)((double)kept[i] * gen_nudged(i, by));
        exchange_constants(graph, NULL, others);
        gen_run_model(o->cx, o->doc, nudged, count, true, 1, out);
        exchange_constants(graph, NULL, kept);
    }
    free(kept);
    free(others);
}

static void run_origin(gen_origin *o)
{
    static const double by = 1e-6;
    o->ran = true;
    gen_run_model(o->cx, o->doc, o->operands, o->count, true, 1, &o->plain);
    run_nudged(o, by, &o->nudged[0]);
    run_nudged(o, -by, &o->nudged[1]);
}

/* Does a rounding of inputs and constants alone give something else? `index` GEN_OUTPUTS: another status. */
static bool tells_nothing(gen_origin *o, uint32_t index)
{
    char ignored[300];
    if (!o->ran)
        run_origin(o);
    for (int i = 0; i < 2; i++) {
        const gen_run *other = &o->nudged[i];
        if (o->plain.status != ONX_OK || other->status != ONX_OK) {
            if (o->plain.status != other->status && index == GEN_OUTPUTS)
                return true;
        } else if (index < o->plain.count &&
                   !gen_output_agrees(&o->plain, other, index, false, ignored, sizeof ignored)) {
            return true;
        }
    }
    return false;
}

/* Are there numbers whose sums leave the range of float, or not, depending on what is added first? */
static bool is_near_overflow(const gen_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const onx_value *v = run->outputs[i];
        const float *x = v->data;
        for (uint64_t k = 0; v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_FLOAT && k < v->count; k++)
            if (isfinite(x[k]) && fabsf(x[k]) > 1e30F)
                return true;
    }
    return false;
}

/* ---- each node by itself ---- */

/* The value becomes a constant, and nodes that read `name` read that. */
static bool give(onx_doc *doc, onx_str name, const onx_value *value)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    char text[64];
    onx_bytes given;
    onx_doc *held = NULL;
    void *copy = NULL;
    const int len = snprintf(text, sizeof text, "%.*s of the run", ONX_ARG(name));
    if (value->kind != ONX_VALUE_TENSOR)
        return true; /* lists are what the nodes make of the rest */
    if (len < 0 || (size_t)len >= sizeof text ||
        onx_arena_keep(arena, onx_str_make(text, (size_t)len), &given) != ONX_OK ||
        onx_value_to_doc(onx_doc_ctx(doc), value, onx_str_of(text), &held) != ONX_OK)
        return false;
    const onx_status status = onx_message_copy(arena, ONX_KIND_TENSOR, onx_doc_root(held, ONX_KIND_TENSOR), &copy);
    onx_doc_free(held);
    if (status != ONX_OK || !onx_graph_add_initializer(arena, graph, copy))
        return false;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n]->input_count; i++)
            if (onx_str_equal(onx_view(graph->node[n]->input[i]), name))
                graph->node[n]->input[i] = given;
    return true;
}

static onx_doc *copy_doc(onx_ctx *cx, onx_doc *doc)
{
    onx_buffer bytes;
    onx_doc *copy = NULL;
    if (onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &bytes) != ONX_OK)
        return NULL;
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &copy) != ONX_OK)
        copy = NULL;
    else if (gen_give_folder(copy) != ONX_OK) {
        onx_doc_free(copy);
        copy = NULL;
    }
    onx_buffer_free(&bytes);
    return copy;
}

/* Is the output what plain kernels make of the values that the run itself gave the node? Then what is off came from
 * values before it, which are outputs and compared themselves. */
static bool follows(gen_origin *o, const gen_run *run, uint32_t index)
{
    char ignored[300];
    gen_run again = { .status = ONX_E_MEMORY };
    onx_doc *doc = copy_doc(o->cx, o->doc);
    bool given = doc && onx_doc_model(doc)->graph->output_count == run->count;
    for (uint32_t i = 0; given && i < run->count; i++)
        given = give(doc, onx_view(onx_doc_model(o->doc)->graph->output[i]->name), run->outputs[i]);
    if (given)
        gen_run_model(o->cx, doc, o->operands, o->count, true, 1, &again);
    const bool same = again.status == ONX_OK && gen_output_agrees(run, &again, index, false, ignored, sizeof ignored);
    gen_run_free(&again);
    onx_doc_free(doc);
    onx_diag_clear(o->cx);
    return same;
}

bool gen_run_close(const gen_run *a, const gen_run *b, gen_origin *o, char *why, size_t size)
{
    if (!gen_status_agrees(a, b, why, size))
        return tells_nothing(o, GEN_OUTPUTS);
    for (uint32_t i = 0; a->status == ONX_OK && b->status == ONX_OK && i < a->count; i++)
        if (!gen_output_agrees(a, b, i, false, why, size) && !tells_nothing(o, i) && !is_near_overflow(a) &&
            !(follows(o, a, i) && follows(o, b, i)))
            return false;
    return true;
}

void gen_origin_free(gen_origin *o)
{
    if (!o->ran)
        return;
    gen_run_free(&o->plain);
    gen_run_free(&o->nudged[0]);
    gen_run_free(&o->nudged[1]);
}
