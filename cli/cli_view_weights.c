/* cli_view_weights.c - statistics of the elements of a tensor: range, mean, deviation, a histogram, the first elements.
 * Of a large tensor only evenly spaced pieces are read, so that a page takes seconds for any model. */
#include "cli_view.h"

#include <onx/tensor.h>

#include <math.h>

enum { BINS = 40, FIRST = 16, PIECE = 4096, PIECES = 256 };

typedef struct summary {
    uint64_t count, zero, nan, infinite; /* of the elements that were read */
    double min, max, sum, squares;       /* of the finite ones */
    uint64_t bin[BINS];
    double first[FIRST];
    uint32_t first_count;
} summary;

typedef onx_status (*take)(summary *s, const double *values, uint64_t count);

static onx_status take_moments(summary *s, const double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double v = values[i];
        if (s->first_count < FIRST)
            s->first[s->first_count++] = v;
        s->count++;
        if (!isfinite(v)) {
            s->nan += isnan(v) != 0;
            s->infinite += isnan(v) == 0;
            continue;
        }
        s->zero += v == 0;
        s->min = v < s->min ? v : s->min;
        s->max = v > s->max ? v : s->max;
        s->sum += v;
        s->squares += v * v;
    }
    return ONX_OK;
}

static onx_status take_bins(summary *s, const double *values, uint64_t count)
{
    const double scale = BINS / (s->max - s->min);
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        const double at = (values[i] - s->min) * scale;
        s->bin[at >= BINS - 1 ? BINS - 1 : at > 0 ? (unsigned)at : 0]++;
    }
    return ONX_OK;
}

/* The elements that are read: all, or PIECES pieces at even distances. */
static onx_status read_elements(onx_doc *doc, const onx_tensor *t, uint64_t count, bool whole, summary *s, take each)
{
    double values[PIECE];
    const uint64_t pieces = whole ? (count + PIECE - 1) / PIECE : PIECES;
    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t at = whole ? i * PIECE : (count - PIECE) / (PIECES - 1) * i;
        const uint64_t n = count - at < PIECE ? count - at : PIECE;
        ONX_TRY(onx_tensor_get_f64(doc, t, at, n, values));
        ONX_TRY(each(s, values, n));
    }
    return ONX_OK;
}

static void put_summary(cli_json *json, const summary *s, uint64_t count)
{
    const uint64_t finite = s->count - s->nan - s->infinite;
    const double mean = finite ? s->sum / (double)finite : 0;
    const double variance = finite ? s->squares / (double)finite - mean * mean : 0;
    cli_json_uint(json, "read", s->count);
    cli_json_uint(json, "zero", s->zero);
    cli_json_uint(json, "nan", s->nan);
    cli_json_uint(json, "infinite", s->infinite);
    if (finite) {
        cli_json_real(json, "min", s->min);
        cli_json_real(json, "max", s->max);
        cli_json_real(json, "mean", mean);
        cli_json_real(json, "std", variance > 0 ? sqrt(variance) : 0);
    }
    FILE *to = cli_json_raw(json, "first");
    for (uint32_t i = 0; i < s->first_count; i++) {
        fputc(i ? ',' : '[', to);
        if (isfinite(s->first[i]))
            fprintf(to, "%.7g", s->first[i]);
        else
            fputs(isnan(s->first[i]) ? "\"NaN\"" : s->first[i] > 0 ? "\"Infinity\"" : "\"-Infinity\"", to);
    }
    fputs(s->first_count ? "]" : "[]", to);
    if (count <= FIRST || !finite || !(s->max - s->min > 0) || !isfinite(s->max - s->min))
        return;
    to = cli_json_raw(json, "histogram");
    for (int i = 0; i < BINS; i++)
        fprintf(to, "%c%llu", i ? ',' : '[', (unsigned long long)s->bin[i]);
    fputc(']', to);
}

static void put_texts(cli_json *json, const onx_tensor *t, uint64_t count)
{
    onx_str text;
    cli_json_open(json, "first", '[');
    for (uint64_t i = 0; i < count && i < FIRST && onx_tensor_get_text(t, i, &text) == ONX_OK; i++)
        cli_json_text(json, NULL, onx_str_make(text.ptr, text.len < 200 ? text.len : 200));
    cli_json_close(json, ']');
}

static void put_elements(cli_json *json, cli_view *view, const onx_tensor *t, uint64_t count, view_weights *weights)
{
    summary s = { .min = INFINITY, .max = -INFINITY };
    const bool whole = count <= (uint64_t)PIECE * PIECES && count <= weights->budget;
    const uint64_t cost = whole ? count : (uint64_t)PIECE * PIECES;
    if (cost > weights->budget)
        return;
    weights->budget -= cost;
    onx_status status = read_elements(view->doc, t, count, whole, &s, take_moments);
    if (status == ONX_OK && count > FIRST && s.max - s.min > 0 && isfinite(s.max - s.min))
        status = read_elements(view->doc, t, count, whole, &s, take_bins);
    view->scarce = view->scarce || status == ONX_E_MEMORY;
    if (status == ONX_OK)
        put_summary(json, &s, count);
    else
        cli_json_bool(json, "unreadable", true); /* if the model is at fault, the findings tell why */
}

void cli_view_tensor(cli_json *json, cli_view *view, const onx_tensor *t, view_weights *weights)
{
    uint64_t count = 0, bytes = 0;
    if (!onx_tensor_count(t, &count))
        return;
    cli_json_uint(json, "elements", count);
    if (t->data_type != ONX_STRING && onx_dtype_size(t->data_type, count, &bytes))
        cli_json_uint(json, "bytes", bytes);
    for (uint32_t i = 0; onx_tensor_is_external(t) && i < t->external_data_count; i++)
        if (onx_str_is(onx_view(t->external_data[i]->key), "location"))
            cli_json_text(json, "location", onx_view(t->external_data[i]->value));
    if (weights->skip || !count)
        return;
    if (t->data_type == ONX_STRING)
        put_texts(json, t, count);
    else
        put_elements(json, view, t, count, weights);
}
