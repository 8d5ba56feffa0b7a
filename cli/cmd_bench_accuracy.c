/* cmd_bench_accuracy.c - `onx bench MODEL --accuracy`: compares the outputs of a session with the given options (such
 * as --precision) with those of a session in full precision without rewriting, on the same inputs. */
#include "cli_inputs.h"

#include <onx/kernel.h>

#include <math.h>
#include <stdlib.h>

typedef struct errors {
    onx_str name;
    bool compared; /* numeric tensors of the same shape */
    uint64_t count;
    double most;     /* largest absolute difference */
    double relative; /* the same, divided by the largest finite magnitude that is expected */
    double cosine;   /* cosine of the angle between the two; 1 if both are zero */
} errors;

/* The elements as doubles, in memory that the caller frees; NULL if they are not numeric. */
static double *numbers(const onx_value *v)
{
    if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype == ONX_STRING || v->count > SIZE_MAX / sizeof(double) - 1)
        return NULL;
    double *all = malloc((v->count + 1) * sizeof *all);
    if (all && onx_convert(ONX_DOUBLE, all, (onx_dtype)v->dtype, v->data, v->count, true) == ONX_OK)
        return all;
    free(all);
    return NULL;
}

/* NaN is equal to NaN, and an infinity to itself. */
static double difference(double x, double y)
{
    if ((isnan(x) && isnan(y)) || x == y)
        return 0;
    return isnan(x) || isnan(y) ? INFINITY : fabs(x - y);
}

static void compare_numbers(const double *x, const double *y, errors *e)
{
    double largest = 0, xx = 0, yy = 0, xy = 0;
    for (uint64_t i = 0; i < e->count; i++) {
        e->most = fmax(e->most, difference(x[i], y[i]));
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        largest = fmax(largest, fabs(y[i]));
        xx += x[i] * x[i];
        yy += y[i] * y[i];
        xy += x[i] * y[i];
    }
    e->relative = e->most > 0 ? e->most / largest : 0;
    e->cosine = xx > 0 && yy > 0 ? xy / (sqrt(xx) * sqrt(yy)) : xx == yy;
}

static errors compare(const onx_session *s, uint32_t output, const onx_value *got, const onx_value *expected)
{
    errors e = { .name = onx_session_output(s, output).name };
    double *x = numbers(got), *y = numbers(expected);
    e.compared = x && y && got->count == expected->count;
    e.count = e.compared ? got->count : 0;
    if (e.compared)
        compare_numbers(x, y, &e);
    free(x);
    free(y);
    return e;
}

static void print_errors(cli_call *call, const errors *all, uint32_t count)
{
    if (!cli_has(call, "json")) {
        printf("%14s %14s %14s  output\n", "max abs", "max rel", "cosine");
        for (uint32_t i = 0; i < count; i++) {
            if (all[i].compared)
                printf("%14.6g %14.6g %14.9f  ", all[i].most, all[i].relative, all[i].cosine);
            else
                printf("%14s %14s %14s  ", "-", "-", "-");
            cli_put_text(stdout, all[i].name);
            putchar('\n');
        }
        return;
    }
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "file", call->operand[0]);
    cli_json_open(&json, "outputs", '[');
    for (uint32_t i = 0; i < count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", all[i].name);
        cli_json_bool(&json, "compared", all[i].compared);
        if (all[i].compared) {
            cli_json_uint(&json, "elements", all[i].count);
            cli_json_real(&json, "max_abs", all[i].most);
            cli_json_real(&json, "max_rel", all[i].relative);
            cli_json_real(&json, "cosine", all[i].cosine);
        }
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* Runs the same inputs through both sessions. */
static onx_status measure(cli_call *call, onx_doc *doc, onx_session *s, onx_session *full,
                          const onx_run_options *limits)
{
    const uint32_t count = onx_session_output_count(full);
    onx_value **got = calloc(count + 1u, sizeof *got), **expected = calloc(count + 1u, sizeof *expected);
    errors *all = calloc(count + 1u, sizeof *all);
    cli_inputs in = { 0 };
    onx_status status = got && expected && all ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = cli_inputs_read(call, doc, full, CLI_MAKE_UP | CLI_WAVE, &in);
    const onx_value *const *inputs = (const onx_value *const *)in.values;
    if (status == ONX_OK)
        status = onx_session_run_with(full, call->cx, inputs, expected, limits);
    if (status == ONX_OK)
        status = onx_session_run_with(s, call->cx, inputs, got, limits);
    for (uint32_t i = 0; status == ONX_OK && i < count; i++)
        all[i] = compare(full, i, got[i], expected[i]);
    if (status == ONX_OK)
        print_errors(call, all, count);
    for (uint32_t i = 0; got && expected && i < count; i++) {
        onx_value_free(got[i]);
        onx_value_free(expected[i]);
    }
    free(got);
    free(expected);
    free(all);
    cli_inputs_free(&in);
    return status;
}

int cli_bench_accuracy(cli_call *call)
{
    uint64_t threads = 1;
    onx_session_options options;
    onx_run_options limits;
    onx_doc *doc;
    onx_session *s = NULL, *full = NULL;
    if (!cli_run_options(call, &threads, &options, &limits))
        return CLI_MISUSE;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    onx_session_options reference = options;
    reference.precision = ONX_PRECISION_FULL;
    reference.no_optimize = true;
    status = onx_session_new(call->cx, doc, &reference, &full);
    if (status == ONX_OK)
        status = onx_session_new(call->cx, doc, &options, &s);
    if (status == ONX_OK)
        status = measure(call, doc, s, full, &limits);
    onx_session_free(s);
    onx_session_free(full);
    onx_doc_free(doc);
    return cli_exit(call, status);
}
