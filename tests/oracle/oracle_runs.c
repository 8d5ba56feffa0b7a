/* oracle_runs.c - rows about sessions: kernels, threads, later runs, memory of the caller. */
#include "oracle/oracle.h"

#include <onx/infer.h>
#include <onx/kernel.h>
#include <onx/tensor.h>
#include <onx/transform.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one session, all sets ---- */

static void look_nodes(oracle *o)
{
    const onx_session_options options = { .threads = 1, .plain = true, .no_optimize = true };
    oracle_series all = { 0 };
    bool good = true;
    for (uint32_t set = 0; good && set < o->set_count; set++) {
        oracle_run run;
        oracle_run_next(o, &all, o->doc, &options, set, &run);
        good = oracle_compare(o, "plain", &run, &o->reference[set], set, true);
        oracle_run_free(&run);
    }
    onx_session_free(all.session);
}

/* One session runs all sets, then all of them again with the outputs of before: the same bits as the first time, and
 * as a session of its own. */
static void look_session(oracle *o)
{
    const onx_session_options *options = o->row->data;
    oracle_run first[ORACLE_SETS], *run = calloc(2, sizeof *run);
    onx_session *s = run ? oracle_session(o, o->doc, options, &run[0]) : NULL;
    bool good = run != NULL;
    memset(first, 0, sizeof first);
    if (run && !s && o->runs)
        (void)oracle_compare(o, "session", run, &o->reference[0], 0, false);
    for (uint32_t set = 0; s && good && set < o->set_count; set++) {
        oracle_run_session(o, s, set, NULL, &first[set]);
        good = oracle_compare(o, set ? "first run of another set" : "first run", &first[set], &o->reference[set], set,
                              false);
    }
    for (uint32_t turn = 0; s && good && turn < 2; turn++)
        for (uint32_t set = 0; good && set < o->set_count; set++) {
            if (first[set].status != ONX_OK || (turn && !set)) /* the first set of all was the first run of a session */
                continue;
            if (!turn) {
                memset(&run[0], 0, sizeof run[0]);
                oracle_run_session(o, s, set, NULL, &run[0]);
            } else {
                oracle_run_doc(o, o->doc, options, set, &run[0]);
            }
            /* measurements of another session may choose other kernels */
            good = oracle_compare(o, turn ? "a session of its own" : "later run", &run[0], &first[set], set,
                                  !turn || !options->measure);
            oracle_run_free(&run[0]);
        }
    onx_session_free(s);
    for (uint32_t set = 0; set < ORACLE_SETS; set++)
        oracle_run_free(&first[set]);
    free(run);
}

/* The same bits for any number of threads. */
static void look_threads(oracle *o)
{
    const onx_session_options one = { .threads = 1 }, several = { .threads = *(const unsigned *)o->row->data };
    oracle_series all[2] = { { 0 } };
    bool good = true;
    for (uint32_t set = 0; good && set < o->set_count; set++) {
        oracle_run a, b;
        oracle_run_next(o, &all[0], o->doc, &one, set, &a);
        oracle_run_next(o, &all[1], o->doc, &several, set, &b);
        good = oracle_compare(o, "threads", &b, &a, set, true);
        oracle_run_free(&a);
        oracle_run_free(&b);
    }
    onx_session_free(all[0].session);
    onx_session_free(all[1].session);
}

/* Weights of fewer bits: the results have the right type, and are near. */
static void look_precision(oracle *o)
{
    const onx_session_options options = { .threads = 1, .precision = *(const unsigned *)o->row->data };
    const bool quantized = o->quantized;
    const double coarse = o->coarse;
    o->quantized = true;
    o->coarse = 0.5;
    o->types_only = o->steps;
    oracle_forget_nudged(o);
    oracle_series all = { 0 };
    for (uint32_t set = 0; set < o->set_count; set++) {
        oracle_run run;
        oracle_run_next(o, &all, o->doc, &options, set, &run);
        (void)oracle_compare(o, "precision", &run, &o->reference[set], set, false);
        oracle_run_free(&run);
    }
    onx_session_free(all.session);
    oracle_forget_nudged(o);
    o->types_only = false;
    o->quantized = quantized;
    o->coarse = coarse;
}

/* ---- every value an output: nothing is overwritten ---- */

static void look_outputs(oracle *o)
{
    const onx_session_options *options = o->row->data;
    onx_doc *doc = oracle_copy(o);
    const onx_graph *graph = doc ? onx_doc_model(doc)->graph : NULL;
    for (uint32_t i = 0; graph && i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++) {
            const onx_str name = onx_view(graph->node[i]->output[k]);
            bool is_output = !name.len || graph->output_count >= ORACLE_OUTPUTS;
            for (uint32_t n = 0; n < graph->output_count; n++)
                is_output = is_output || onx_str_equal(onx_view(graph->output[n]->name), name);
            char text[80];
            (void)snprintf(text, sizeof text, "%.*s", ONX_ARG(name));
            if (!is_output)
                (void)onx_graph_add_output(onx_doc_arena(doc), (onx_graph *)(uintptr_t)(const void *)graph, text, NULL);
        }
    oracle_series all = { 0 };
    for (uint32_t set = 0; doc && set < o->set_count; set++) {
        oracle_run run;
        oracle_run_next(o, &all, doc, options, set, &run);
        /* nodes that no output needs may fail in sets with other sizes */
        if (run.status == ONX_OK || set < 2)
            (void)oracle_compare(o, "every value an output", &run, &o->reference[set], set, false);
        oracle_run_free(&run);
    }
    onx_session_free(all.session);
    onx_doc_free(doc);
}

/* ---- outputs in the memory of inputs ---- */

typedef struct slab {
    char *memory;
    size_t size, at[ORACLE_PORTS];
    onx_value *source[ORACLE_PORTS], *input[ORACLE_PORTS]; /* as they are at first; over the memory */
    uint32_t count;
} slab;

static onx_value *over(oracle *o, const onx_value *like, char *memory)
{
    const onx_memory m = {
        .dtype = like->dtype, .rank = like->rank, .dims = like->dims, .data = memory, .size = like->size
    };
    onx_value *v = NULL;
    return onx_value_wrap(o->cx, &m, &v) == ONX_OK ? v : NULL;
}

static void clear_slab(slab *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        onx_value_free(b->input[i]);
        b->input[i] = NULL;
    }
    free(b->memory);
    b->memory = NULL;
}

static void free_slab(slab *b)
{
    clear_slab(b);
    for (uint32_t i = 0; i < b->count; i++)
        onx_value_free(b->source[i]);
}

/* The inputs as they are at first. */
static bool begin_slab(oracle *o, onx_session *s, uint32_t set, slab *b)
{
    const oracle_set *all = &o->sets[set];
    memset(b, 0, sizeof *b);
    if (onx_session_input_count(s) > ORACLE_PORTS)
        return false;
    b->count = onx_session_input_count(s);
    for (uint32_t i = 0; i < b->count; i++) {
        const onx_session_port port = onx_session_input(s, i);
        for (uint32_t k = 0; k < all->count; k++)
            if (onx_str_is(port.name, all->input[k].name) && port.type && ONX_HAS(type, port.type, tensor_type))
                b->source[i] =
                    oracle_value(o->cx, &all->input[k], (onx_dtype)port.type->tensor_type->elem_type, set, NULL);
    }
    return b->count != 0;
}

/* All inputs, one after the other in one memory, with room for an output of `more` bytes. */
static bool fill_slab(oracle *o, size_t more, slab *b)
{
    b->size = 64;
    for (uint32_t i = 0; i < b->count; i++) {
        b->at[i] = b->size;
        b->size += b->source[i] ? (size_t)(b->source[i]->size + 15) / 16 * 16 : 0;
    }
    b->size = (b->size + more + 4096) / 64 * 64;
    b->memory = aligned_alloc(64, b->size);
    if (!b->memory)
        return false;
    memset(b->memory, 0, b->size);
    for (uint32_t i = 0; i < b->count; i++)
        if (b->source[i] && b->source[i]->dtype != ONX_STRING && b->source[i]->size) {
            memcpy(b->memory + b->at[i], b->source[i]->data, (size_t)b->source[i]->size);
            b->input[i] = over(o, b->source[i], b->memory + b->at[i]);
        } else if (b->source[i]) {
            b->input[i] = b->source[i];
            b->input[i]->refs++;
        }
    return true;
}

/* Bytes of inputs beside the output are as they were. */
static void look_at_inputs(oracle *o, const slab *b, const char *place, size_t size, uint32_t set)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const onx_value *source = b->source[i];
        const char *now = b->memory + b->at[i];
        if (!source || source->dtype == ONX_STRING || !source->size ||
            memcmp(now, source->data, (size_t)source->size) == 0)
            continue;
        for (uint64_t k = 0; k < source->size; k++)
            if (now[k] != ((const char *)source->data)[k] && !(now + k >= place && now + k < place + size)) {
                oracle_found(o, "input", "set %u: byte %llu of input %u changed", set, (unsigned long long)k, i);
                return;
            }
    }
}

static bool run_over(oracle *o, onx_session *s, uint32_t set, uint32_t output, size_t place, slab *b,
                     const oracle_run *want)
{
    oracle_run run = { .count = want->count };
    const onx_value *like = want->outputs[output];
    char why[ORACLE_WHY];
    bool good = true;
    onx_value *mine = run.outputs[output] = over(o, like, b->memory + place);
    if (!mine)
        return true;
    run.status = onx_session_run(s, o->cx, (const onx_value *const *)b->input, run.outputs);
    oracle_error(o->cx, why, sizeof why);
    (void)snprintf(run.why, sizeof run.why, "%.300s", why);
    if (run.status == ONX_OK && run.outputs[output] != mine)
        oracle_found(o, "moved", "set %u: output %u is another value", set, output);
    char what[80];
    (void)snprintf(what, sizeof what, "output %u over inputs", output);
    good = oracle_compare(o, what, &run, want, set, true);
    if (run.status == ONX_OK)
        look_at_inputs(o, b, b->memory + place, (size_t)like->size, set);
    oracle_run_free(&run);
    return good;
}

static void look_over(oracle *o)
{
    const onx_session_options *options = o->row->data;
    oracle_run *want = calloc(1, sizeof *want);
    onx_session *s = want ? oracle_session(o, o->doc, options, want) : NULL;
    bool good = s != NULL;
    for (uint32_t set = 0; s && good && set < o->set_count; set++) {
        slab b;
        oracle_run_session(o, s, set, NULL, want);
        const bool has_inputs = begin_slab(o, s, set, &b);
        for (uint32_t i = 0; good && has_inputs && want->status == ONX_OK && i < want->count; i++) {
            const onx_value *like = want->outputs[i];
            if (!like || like->kind != ONX_VALUE_TENSOR || like->dtype == ONX_STRING || !like->size)
                continue;
            for (uint32_t mode = 0; good && mode < 3; mode++) {
                if (!fill_slab(o, (size_t)like->size, &b))
                    break;
                const uint32_t input = (i + set + (uint32_t)o->seed) % b.count;
                const size_t place = mode == 0 ? b.at[input] : mode == 1 ? b.at[input] + 16 : b.at[input] - 16;
                good = run_over(o, s, set, i, place, &b, want);
                clear_slab(&b);
            }
        }
        free_slab(&b);
        oracle_run_free(want);
    }
    onx_session_free(s);
    free(want);
}

/* ---- inference ---- */

static void look_types(oracle *o)
{
    onx_infer *infer = NULL;
    const onx_infer_options options = { .strict = true, .check_type = true };
    char why[ORACLE_WHY];
    if (!o->runs || !o->valid)
        return;
    if (onx_infer_new(o->cx, o->doc, &options, &infer) != ONX_OK) {
        oracle_error(o->cx, why, sizeof why);
        oracle_found(o, "refused", "%s", why);
        return;
    }
    const onx_graph *graph = onx_doc_model(o->doc)->graph;
    for (uint32_t i = 0; i < graph->output_count && i < o->reference[0].count; i++) {
        const onx_type *type = onx_infer_type(infer, graph, onx_view(graph->output[i]->name));
        if (type && o->reference[0].outputs[i] && !gen_type_agrees(type, o->reference[0].outputs[i], why, sizeof why))
            oracle_found(o, "inferred", "output %u: %s", i, why);
    }
    onx_infer_free(infer);
}

static const unsigned two = 2, three = 3;
static const unsigned bf16 = ONX_PRECISION_BF16, f16 = ONX_PRECISION_F16, int8 = ONX_PRECISION_INT8;
static const onx_session_options usual = { .threads = 1 }, plain = { .threads = 1, .plain = true },
                                 as_is = { .threads = 1, .no_optimize = true },
                                 lean = { .threads = 1, .lean_memory = true },
                                 measured = { .threads = 1, .measure = true },
                                 plain_as_is = { .threads = 1, .plain = true, .no_optimize = true },
                                 base = { .threads = 1, .isa = ONX_ISA_BASE }, v3 = { .threads = 1, .isa = ONX_ISA_V3 },
                                 v4 = { .threads = 1, .isa = ONX_ISA_V4 }, vnni = { .threads = 1, .isa = ONX_ISA_VNNI },
                                 level_bf16 = { .threads = 1, .isa = ONX_ISA_BF16 },
                                 amx = { .threads = 1, .isa = ONX_ISA_AMX };

const oracle_row oracle_run_rows[] = {
    { "nodes", 100, 100, look_nodes, NULL },
    { "plain", 60, 30, look_session, &plain },
    { "default", 100, 100, look_session, &usual },
    { "no_optimize", 60, 20, look_session, &as_is },
    { "isa_base", 25, 10, look_session, &base },
    { "isa_v3", 25, 10, look_session, &v3 },
    { "isa_v4", 15, 10, look_session, &v4 },
    { "isa_vnni", 10, 5, look_session, &vnni },
    { "isa_bf16", 5, 5, look_session, &level_bf16 },
    { "isa_amx", 5, 5, look_session, &amx },
    { "lean", 20, 5, look_session, &lean },
    { "measure", 2, 0, look_session, &measured },
    { "two_threads", 50, 20, look_threads, &two },
    { "three_threads", 10, 3, look_threads, &three },
    { "outputs_plain", 30, 0, look_outputs, &plain_as_is },
    { "outputs_default", 30, 0, look_outputs, &usual },
    { "over_default", 40, 20, look_over, &usual },
    { "over_plain", 15, 5, look_over, &plain },
    { "over_lean", 5, 2, look_over, &lean },
    { "over_no_optimize", 15, 2, look_over, &as_is },
    { "weights_bf16", 10, 3, look_precision, &bf16 },
    { "weights_f16", 10, 3, look_precision, &f16 },
    { "weights_int8", 10, 3, look_precision, &int8 },
    { "types", 100, 100, look_types, NULL },
    { .name = NULL },
};
