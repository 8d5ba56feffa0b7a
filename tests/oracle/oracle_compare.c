/* oracle_compare.c - how far two values are apart, and whether rounding can explain that. */
#include "oracle/oracle.h"

#include <onx/tensor.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_float(int dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

static double number_at(const onx_value *v, uint64_t i)
{
    double x = 0;
    if (v->dtype == ONX_FLOAT)
        return ((const float *)v->data)[i];
    if (v->dtype == ONX_DOUBLE)
        return ((const double *)v->data)[i];
    (void)onx_convert(ONX_DOUBLE, &x, v->dtype, (const char *)v->data + i * (onx_dtype_bits(v->dtype) / 8), 1, true);
    return x;
}

/* Tensors of the same type whose bytes agree, which is most of them: nothing is left to look at. */
static bool has_same_bytes(const onx_value *a, const onx_value *b)
{
    return a->kind == ONX_VALUE_TENSOR && a->dtype != ONX_STRING && a->size == b->size &&
           (!a->size || memcmp(a->data, b->data, (size_t)a->size) == 0);
}

double oracle_largest(const onx_value *v)
{
    double largest = 0;
    for (uint64_t i = 0; v && v->kind == ONX_VALUE_TENSOR && is_float(v->dtype) && i < v->count; i++) {
        const double x = fabs(number_at(v, i));
        if (isfinite(x) && x > largest)
            largest = x;
    }
    return largest;
}

bool oracle_is_finite(const onx_value *v)
{
    for (uint64_t i = 0; v && v->kind == ONX_VALUE_TENSOR && is_float(v->dtype) && i < v->count; i++)
        if (!isfinite(number_at(v, i)))
            return false;
    return true;
}

static double float_deviation(const onx_value *a, const onx_value *b, char *why, size_t size)
{
    const double largest = fmax(1e-6, oracle_largest(b));
    double worst = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        const double x = number_at(a, i), y = number_at(b, i);
        if ((isnan(x) && isnan(y)) || x == y)
            continue;
        const double off = isfinite(x) && isfinite(y) ? fabs(x - y) / largest : INFINITY;
        if (off > worst) {
            worst = off;
            at = i;
        }
    }
    if (worst > 0)
        (void)snprintf(why, size, "element %llu of %llu is %.9g instead of %.9g", (unsigned long long)at,
                       (unsigned long long)a->count, number_at(a, at), number_at(b, at));
    return worst;
}

double oracle_deviation(const onx_value *a, const onx_value *b, char *why, size_t size)
{
    onx_value_difference d;
    double worst = 0;
    if (!onx_value_same_type(a, b, &d)) {
        (void)snprintf(why, size, "%s: %s", d.what, d.text);
        return -1;
    }
    if (a->kind != ONX_VALUE_TENSOR) {
        for (uint64_t i = 0; i < a->count && worst >= 0; i++) {
            const double off = oracle_deviation(a->items[i], b->items[i], why, size);
            worst = off < 0 ? off : fmax(worst, off);
        }
        return worst;
    }
    if (has_same_bytes(a, b))
        return 0;
    if (is_float(a->dtype))
        return float_deviation(a, b, why, size);
    if (onx_value_close(a, b, 0, 0, &d))
        return 0;
    (void)snprintf(why, size, "%s %llu: %s, and %llu in all", d.what, (unsigned long long)d.index, d.text,
                   (unsigned long long)d.different);
    return INFINITY;
}

bool oracle_same_bits(const onx_value *a, const onx_value *b, char *why, size_t size)
{
    if (oracle_deviation(a, b, why, size) != 0)
        return false;
    if (has_same_bytes(a, b))
        return true;
    for (uint64_t i = 0; a->kind == ONX_VALUE_TENSOR && is_float(a->dtype) && i < a->count; i++)
        if (number_at(a, i) == 0 && signbit(number_at(a, i)) != signbit(number_at(b, i))) {
            (void)snprintf(why, size, "element %llu of %llu is a zero of the other sign", (unsigned long long)i,
                           (unsigned long long)a->count);
            return false;
        }
    return true;
}

/* ---- what rounding can explain ---- */

static double rounding(int dtype)
{
    return dtype == ONX_FLOAT16 ? 4e-3 : dtype == ONX_BFLOAT16 ? 3e-2 : 2e-5;
}

static onx_status nudge_tensor(void *user, const onx_visit *at)
{
    const oracle_nudge *nudge = user;
    onx_tensor *t = at->message;
    const uint64_t width = at->kind == ONX_KIND_TENSOR && is_float(t->data_type) ? onx_dtype_bits(t->data_type) / 8 : 0;
    const onx_str bytes = width ? onx_view(t->raw_data) : onx_str_of("");
    char *data = (char *)(uintptr_t)(const void *)bytes.ptr; /* the copy is ours */
    for (uint64_t i = 0; width && i < bytes.len / width; i++) {
        double x = 0;
        (void)onx_convert(ONX_DOUBLE, &x, (onx_dtype)t->data_type, data + i * width, 1, true);
        x = nudge->bits ? oracle_nudged(nudge, i, x) : x * (i % 2 ? 1 + nudge->by : 1 - nudge->by / 2);
        (void)onx_convert((onx_dtype)t->data_type, data + i * width, ONX_DOUBLE, &x, 1, true);
    }
    float *list = (float *)(uintptr_t)(const void *)t->float_data;
    for (uint32_t i = 0; width && i < t->float_data_count; i++)
        list[i] = nudge->bits ? (float)oracle_nudged(nudge, i, list[i])
                              : list[i] * (float)(i % 2 ? 1 + nudge->by : 1 - nudge->by / 2);
    return ONX_OK;
}

/* The plain kernels on inputs and constants that differ a little. */
static void run_nudged(oracle *o, uint32_t set, oracle_nudge nudge, oracle_run *run)
{
    const onx_session_options plain = { .threads = 1, .plain = true, .no_optimize = true };
    onx_doc *doc = oracle_copy(o);
    run->status = ONX_E_MEMORY;
    if (doc && onx_message_walk(o->cx, ONX_KIND_MODEL, onx_doc_model(doc), nudge_tensor, &nudge) == ONX_OK) {
        onx_session *s = oracle_session(o, doc, &plain, run);
        if (s)
            oracle_run_session(o, s, set, &nudge, run);
        onx_session_free(s);
    }
    onx_doc_free(doc);
}

void oracle_forget_nudged(oracle *o)
{
    memset(o->has_nudged, 0, sizeof o->has_nudged);
    for (uint32_t set = 0; set < ORACLE_SETS; set++)
        for (uint32_t turn = 0; turn < ORACLE_NUDGES; turn++)
            oracle_run_free(&o->nudged[set][turn]);
}

/* Some turns change inputs and constants by a rounding of the type, the next one by more of it; then they are rounded
 * to the coarser type itself, which makes equal what was nearly so; then all that nodes compute is changed, too, so
 * that a sum that cancels exactly does not, and once more in the other direction, so that of two equal numbers each is
 * the larger one once. Such a turn may not apply: false. */
enum { TURN_MORE = ORACLE_NUDGES - 4, TURN_ROUNDED, TURN_NODES, TURN_NODES_BACK };

static bool take_turn(oracle *o, uint32_t set, uint32_t turn)
{
    const double unit = o->coarse > 1e-2 ? 8e-3 : o->coarse > 1e-3 ? 1e-3 : 2e-6;
    oracle_nudge nudge = { .by = (turn % 2 ? -1 : 1) * (turn == TURN_MORE ? fmax(3e-4, unit) : unit), .turn = turn };
    oracle_run *run = &o->nudged[set][turn];
    if (turn == TURN_ROUNDED && unit < 1e-3)
        return false;
    if (!o->has_nudged[set][turn]) {
        o->has_nudged[set][turn] = true;
        if (turn == TURN_ROUNDED) {
            nudge = (oracle_nudge){ .bits = unit > 1e-3 ? 8 : 11 };
            run_nudged(o, set, nudge, run);
        } else if (turn >= TURN_NODES) {
            nudge.turn = TURN_NODES;
            oracle_run_nodes_nudged(o, set, &nudge, run);
        } else {
            run_nudged(o, set, nudge, run);
        }
    }
    return turn < TURN_ROUNDED || run->status == ONX_OK;
}

/* Is an output that is so far off within what a little more or less in inputs and constants gives? */
static bool is_explained(oracle *o, uint32_t set, uint32_t output, double off)
{
    char ignored[ORACLE_WHY];
    for (uint32_t turn = 0; turn < ORACLE_NUDGES; turn++) {
        const oracle_run *run = &o->nudged[set][turn];
        if (!take_turn(o, set, turn))
            continue;
        if (run->status != ONX_OK || output >= run->count)
            return true;
        const double own =
            oracle_deviation(run->outputs[output], o->reference[set].outputs[output], ignored, sizeof ignored);
        if (own < 0 || isinf(own) || off <= own * (turn == TURN_MORE ? 3 : 60))
            return true;
    }
    return false;
}

static bool compare_output(oracle *o, const char *what, const oracle_run *run, const oracle_run *reference,
                           uint32_t set, uint32_t i, bool exact)
{
    char why[ORACLE_WHY] = "";
    const onx_value *a = run->outputs[i], *b = reference->outputs[i];
    if (!a || !b) {
        if (a != b)
            oracle_found(o, "output", "%s, set %u: output %u is missing", what, set, i);
        return a == b;
    }
    if (exact) {
        const bool same = oracle_same_bits(a, b, why, sizeof why);
        if (!same)
            oracle_found(o, "bits", "%s, set %u, output %u: %s", what, set, i, why);
        return same;
    }
    const double off = oracle_deviation(a, b, why, sizeof why);
    if (off < 0)
        oracle_found(o, "type", "%s, set %u, output %u: %s", what, set, i, why);
    if (off < 0)
        return false;
    if (off == 0 || o->types_only || (is_float(a->dtype) && off <= fmax(rounding(a->dtype), o->coarse)) ||
        (o->quantized && off < 0.25) || is_explained(o, set, i, off))
        return true;
    oracle_found(o, "value", "%s, set %u, output %u: %s, off by %.3g", what, set, i, why, off);
    return false;
}

bool oracle_compare(oracle *o, const char *what, const oracle_run *run, const oracle_run *reference, uint32_t set,
                    bool exact)
{
    /* outputs of a call or of a subgraph, and elements of a sequence, that nothing reads are not computed, and cannot
     * fail */
    if (reference->status != ONX_OK && (o->graphs > 1 || o->lists || onx_doc_model(o->doc)->functions_count))
        return true;
    if ((run->status == ONX_OK) != (reference->status == ONX_OK)) {
        oracle_found(o, run->status == ONX_OK ? "accepts" : "status", "%s, set %u: %s", what, set,
                     run->status == ONX_OK ? reference->why : run->why);
        return false;
    }
    if (run->status != ONX_OK)
        return true;
    if (run->count < reference->count) {
        oracle_found(o, "outputs", "%s, set %u: %u outputs instead of %u", what, set, run->count, reference->count);
        return false;
    }
    for (uint32_t i = 0; i < reference->count; i++)
        if (!compare_output(o, what, run, reference, set, i, exact))
            return false;
    return true;
}
