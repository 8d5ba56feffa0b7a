/* cmd_bench_model.c - `onx bench MODEL`: how long a run takes, over and over with the same inputs. */
#include "cli_inputs.h"

#include <stdlib.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct series {
    double *ms;
    size_t count, room;
} series;

static bool add_time(series *s, double ms)
{
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 256;
        double *more = realloc(s->ms, room * sizeof *more);
        if (!more)
            return false;
        s->ms = more;
        s->room = room;
    }
    s->ms[s->count++] = ms;
    return true;
}

static onx_status measure(cli_call *call, onx_doc *doc, onx_session *s, const onx_run_options *limits, double seconds,
                          series *times)
{
    uint32_t no = onx_session_output_count(s);
    cli_inputs in = { 0 };
    onx_value **outputs = calloc(no + 1u, sizeof *outputs);
    onx_status status = outputs ? cli_inputs_read(call, doc, s, CLI_MAKE_UP | CLI_WAVE, &in) : ONX_E_MEMORY;
    const onx_value *const *inputs = (const onx_value *const *)in.values;
    for (int i = 0; status == ONX_OK && i < 3; i++)
        status = onx_session_run_with(s, call->cx, inputs, outputs, limits);
    double end = now_ms() + 1e3 * seconds;
    while (status == ONX_OK && (times->count < 5 || now_ms() < end)) {
        double start = now_ms();
        status = onx_session_run_with(s, call->cx, inputs, outputs, limits);
        if (!add_time(times, now_ms() - start))
            status = ONX_E_MEMORY;
    }
    cli_inputs_free(&in);
    for (uint32_t i = 0; outputs && i < no; i++)
        onx_value_free(outputs[i]);
    free(outputs);
    return status;
}

static void print_times(cli_call *call, const series *t, uint64_t threads, double plan_ms)
{
    double median = t->ms[t->count / 2], least = t->ms[0], low = t->ms[t->count / 10],
           high = t->ms[t->count - 1 - t->count / 10];
    if (!cli_has(call, "json")) {
        printf("median %.3f ms, minimum %.3f ms, 80 %% between %.3f and %.3f ms, %zu runs, planned in %.1f ms\n",
               median, least, low, high, t->count, plan_ms);
        return;
    }
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "file", call->operand[0]);
    cli_json_uint(&json, "threads", threads);
    cli_json_uint(&json, "runs", t->count);
    cli_json_real(&json, "plan_ms", plan_ms);
    cli_json_real(&json, "median_ms", median);
    cli_json_real(&json, "min_ms", least);
    cli_json_real(&json, "p10_ms", low);
    cli_json_real(&json, "p90_ms", high);
    cli_json_real(&json, "max_ms", t->ms[t->count - 1]);
    cli_json_close(&json, '}');
}

int cli_bench_model(cli_call *call)
{
    uint64_t threads = 1;
    double seconds = 2;
    onx_session_options options;
    onx_run_options limits;
    if (!cli_run_options(call, &threads, &options, &limits) || !cli_real(call, "seconds", 0, 3600, &seconds))
        return CLI_MISUSE;
    onx_doc *doc;
    onx_session *s = NULL;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    double start = now_ms();
    series times = { 0 };
    status = onx_session_new(call->cx, doc, &options, &s);
    double plan_ms = now_ms() - start;
    if (status == ONX_OK)
        status = measure(call, doc, s, &limits, seconds, &times);
    if (status == ONX_OK) {
        qsort(times.ms, times.count, sizeof *times.ms, by_value);
        print_times(call, &times, threads, plan_ms);
    }
    free(times.ms);
    onx_session_free(s);
    onx_doc_free(doc);
    return cli_exit(call, status);
}
