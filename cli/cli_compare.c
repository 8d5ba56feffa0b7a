/* cli_compare.c - computes the difference between two values, and makes inner values of a model outputs. */
#include "cli_compare.h"

#include "cli_table.h"

#include <onx/infer.h>

#include <math.h>
#include <stdlib.h>

/* ---- difference ---- */

typedef struct sums {
    cli_distance *out;
    double rtol, atol;
    double aa, bb, ab, dd; /* sums of squares and products of finite elements */
} sums;

static void compare_numbers(sums *s, double a, double b)
{
    cli_distance *d = s->out;
    const double difference = a == b ? 0 : fabs(b - a);
    const double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    const bool both_nan = isnan(a) && isnan(b);
    const bool finite = isfinite(a) && isfinite(b);
    const bool apart = !both_nan && a != b && !(finite && difference <= s->atol + s->rtol * fabs(a));
    if (finite) {
        s->aa += a * a;
        s->bb += b * b;
        s->ab += a * b;
        s->dd += difference * difference;
    }
    if (!both_nan) {
        const double relative = difference == 0 ? 0 : difference / larger;
        d->max_abs =
            isnan(difference) || difference > d->max_abs ? (isnan(difference) ? INFINITY : difference) : d->max_abs;
        d->max_rel = isnan(relative) || relative > d->max_rel ? (isnan(relative) ? INFINITY : relative) : d->max_rel;
    }
    if (apart && !d->different++) {
        d->first = d->elements;
        d->a = a;
        d->b = b;
    }
    d->elements++;
}

enum { CHUNK = 512 };

/* Converts the elements of a tensor to doubles; a complex element becomes two. */
static bool as_doubles(const onx_value *v, uint64_t first, uint64_t count, double *out)
{
    const onx_dtype dtype = (onx_dtype)v->dtype;
    const unsigned bits = onx_dtype_bits(dtype);
    if (onx_dtype_class_of(v->dtype) == ONX_CLASS_COMPLEX) {
        const onx_dtype half = bits == 64 ? ONX_FLOAT : ONX_DOUBLE;
        return onx_convert(ONX_DOUBLE, out, half, (const char *)v->data + first * (bits / 16), count, true) == ONX_OK;
    }
    /* chunks begin at whole bytes, also for packed types */
    return onx_convert(ONX_DOUBLE, out, dtype, (const char *)v->data + first * bits / 8, count, true) == ONX_OK;
}

static void compare_texts(sums *s, const onx_value *a, const onx_value *b)
{
    const onx_str *x = a->data, *y = b->data;
    for (uint64_t i = 0; i < a->count; i++)
        compare_numbers(s, 0, onx_str_equal(x[i], y[i]) ? 0 : INFINITY);
}

static bool is_complex(const onx_value *v)
{
    return onx_dtype_class_of(v->dtype) == ONX_CLASS_COMPLEX;
}

static void put_shape(const onx_value *v, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "%s[", onx_dtype_name(v->dtype) ? onx_dtype_name(v->dtype) : "?");
    for (uint32_t i = 0; i < v->rank && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
}

static void compare_tensors(sums *s, const onx_value *a, const onx_value *b)
{
    cli_distance *d = s->out;
    double x[CHUNK], y[CHUNK];
    const bool texts = a->dtype == ONX_STRING;
    if (a->rank != b->rank || a->count != b->count ||
        (a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)) || texts != (b->dtype == ONX_STRING) ||
        is_complex(a) != is_complex(b)) {
        char left[70], right[70];
        put_shape(a, left, sizeof left);
        put_shape(b, right, sizeof right);
        snprintf(d->unlike, sizeof d->unlike, "%s and %s", left, right);
        return;
    }
    if (texts) {
        compare_texts(s, a, b);
        return;
    }
    const uint64_t count = is_complex(a) ? 2 * a->count : a->count;
    for (uint64_t i = 0; i < count; i += CHUNK) {
        const uint64_t n = count - i < CHUNK ? count - i : CHUNK;
        if (!as_doubles(a, i, n, x) || !as_doubles(b, i, n, y)) {
            snprintf(d->unlike, sizeof d->unlike, "elements of type %s are not numeric", onx_dtype_name(a->dtype));
            return;
        }
        for (uint64_t k = 0; k < n; k++)
            compare_numbers(s, x[k], y[k]);
    }
}

/* recursion is as deep as the type, which the reader bounds */
static void compare_any(sums *s, const onx_value *a, const onx_value *b)
{
    static const char *const kinds[] = { "nothing", "a tensor", "a sequence", "an optional", "a map" };
    cli_distance *d = s->out;
    if (!a || !b || a->kind != b->kind) {
        snprintf(d->unlike, sizeof d->unlike, "%s and %s", a ? kinds[a->kind] : "nothing",
                 b ? kinds[b->kind] : "nothing");
        return;
    }
    if (a->kind == ONX_VALUE_TENSOR) {
        compare_tensors(s, a, b);
        return;
    }
    if (a->count != b->count) {
        snprintf(d->unlike, sizeof d->unlike, "%s of %llu and of %llu", kinds[a->kind], (unsigned long long)a->count,
                 (unsigned long long)b->count);
        return;
    }
    onx_value_difference keys;
    if (a->kind == ONX_VALUE_MAP && !onx_value_same_type(a, b, &keys)) {
        snprintf(d->unlike, sizeof d->unlike, "%s: %.120s", keys.what, keys.text);
        return;
    }
    for (uint64_t i = 0; a->items && b->items && i < a->count && !d->unlike[0]; i++)
        compare_any(s, a->items[i], b->items[i]);
}

void cli_compare_values(const onx_value *a, const onx_value *b, double rtol, double atol, cli_distance *out)
{
    *out = (cli_distance){ .cosine = 1, .snr = INFINITY };
    sums s = { .out = out, .rtol = rtol, .atol = atol };
    compare_any(&s, a, b);
    if (s.dd > 0) {
        out->cosine = s.aa > 0 && s.bb > 0 ? s.ab / (sqrt(s.aa) * sqrt(s.bb)) : 0;
        out->snr = s.aa > 0 ? 10 * log10(s.aa / s.dd) : -INFINITY;
    }
}

bool cli_deviates(const cli_distance *d)
{
    return d->different || d->unlike[0];
}

/* ---- inner values ---- */

static bool is_output(const cli_table *t, const onx_graph *g, onx_str name)
{
    CLI_TABLE_EACH (t, cli_table_hash(t, name, onx_str_of("")), i) {
        if (onx_str_equal(onx_view(g->output[i]->name), name))
            return true;
    }
    return false;
}

/* A description of the value in the memory of the document. */
static onx_status describe(onx_arena *arena, const onx_bytes *name, const onx_type *type, onx_value_info **out)
{
    void *copy;
    onx_value_info *v = onx_message_new(arena, ONX_KIND_VALUE_INFO);
    if (!v)
        return ONX_E_MEMORY;
    ONX_TRY(onx_message_copy(arena, ONX_KIND_TYPE, type, &copy));
    ONX_SET(value_info, v, name, *name);
    ONX_SET(value_info, v, type, (onx_type *)copy);
    *out = v;
    return ONX_OK;
}

static onx_status list_values(cli_inner *in, onx_infer *infer, const cli_table *outputs)
{
    const onx_graph *g = onx_doc_model(in->doc)->graph;
    uint64_t room = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        room += g->node[i]->output_count;
    in->list = calloc(room + 1, sizeof *in->list);
    in->node = calloc(room + 1, sizeof *in->node);
    const size_t errors = onx_diag_total(in->call->cx, ONX_ERROR);
    if (!in->list || !in->node)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->node[i]->output_count; k++) {
            const onx_bytes *name = &g->node[i]->output[k];
            const onx_type *type = onx_view(*name).len && !is_output(outputs, g, onx_view(*name))
                                       ? onx_infer_type(infer, g, onx_view(*name))
                                       : NULL;
            if (!type)
                continue;
            ONX_TRY(describe(onx_doc_arena(in->doc), name, type, &in->list[in->count]));
            in->node[in->count++] = i;
        }
    /* a failed allocation must not look like an unknown type */
    return onx_diag_total(in->call->cx, ONX_ERROR) > errors ? ONX_E_MEMORY : ONX_OK;
}

onx_status cli_inner_open(cli_inner *in, cli_call *call, onx_doc *doc)
{
    *in = (cli_inner){ .call = call, .doc = doc };
    const onx_graph *g = onx_doc_model(doc)->graph;
    onx_infer *infer = NULL;
    if (!g)
        return ONX_OK;
    cli_table outputs = { .cx = call->cx };
    in->outputs = g->output_count;
    onx_status status = onx_infer_new(call->cx, doc, NULL, &infer);
    for (uint32_t i = 0; status == ONX_OK && i < g->output_count; i++)
        if (!cli_table_add(&outputs, cli_table_hash(&outputs, onx_view(g->output[i]->name), onx_str_of("")), i))
            status = ONX_E_MEMORY;
    if (status == ONX_OK)
        status = list_values(in, infer, &outputs);
    free(outputs.slots);
    onx_infer_free(infer);
    return status;
}

void cli_inner_close(cli_inner *in)
{
    free(in->list);
    free(in->node);
}

onx_status cli_inner_choose(cli_inner *in, const uint32_t *chosen, uint32_t count)
{
    onx_graph *g = onx_doc_model(in->doc)->graph;
    while (g && g->output_count > in->outputs)
        onx_list_remove(g->output, &g->output_count, g->output_count - 1, sizeof *g->output);
    for (uint32_t i = 0; g && i < count; i++) {
        onx_value_info **at = onx_list_insert(onx_doc_arena(in->doc), (void **)(void *)&g->output, &g->output_count,
                                              g->output_count, sizeof *g->output);
        if (!at)
            return ONX_E_MEMORY;
        *at = in->list[chosen[i]];
    }
    return ONX_OK;
}
