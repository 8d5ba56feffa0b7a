/* cli_profile_print.c - prints profiles as tables, JSON and traces. */
#include "cli_profile.h"

#include <stdlib.h>

/* Steps that are summed in one row. */
typedef struct group {
    const char *op;
    size_t steps;
    uint64_t ns;
    double macs, bytes; /* negative: unknown for at least one step */
} group;

static int by_time(const void *pa, const void *pb)
{
    const group *a = pa, *b = pb;
    return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : strcmp(a->op, b->op);
}

static void add_to(double *sum, double part)
{
    *sum = *sum < 0 || part < 0 ? -1 : *sum + part;
}

/* Rows by operator, the longest time first; NULL when out of memory. */
static group *by_operator(const cli_profile *p, size_t *count)
{
    cli_tallies index = { .table = { .cx = p->call->cx } };
    group *list = calloc(p->count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < p->count; i++) {
        const profile_step *s = &p->step[i];
        const cli_tally *row = cli_tally_at(&index, onx_str_of(""), onx_str_of(s->op));
        if (!row) {
            free(list);
            list = NULL;
            break;
        }
        group *g = &list[row - index.row];
        if (!g->op) {
            g->op = s->op;
            ++*count;
        }
        g->steps++;
        g->ns += s->total_ns;
        add_to(&g->macs, s->macs);
        add_to(&g->bytes, s->bytes);
    }
    cli_tallies_free(&index);
    if (list)
        qsort(list, *count, sizeof *list, by_time);
    return list;
}

static uint64_t total_ns(const cli_profile *p)
{
    uint64_t total = 0;
    for (size_t i = 0; i < p->count; i++)
        total += p->step[i].total_ns;
    return total;
}

/* Work per second; negative: unknown. */
static double rate(double work, uint64_t ns, unsigned runs)
{
    return work > 0 && ns ? work * runs * 1e9 / (double)ns : -1;
}

static double share(uint64_t ns, uint64_t total)
{
    return total ? 100.0 * (double)ns / (double)total : 0;
}

/* Prints "23.4 G" and the percentage of the machine's rate; blank if unknown. */
static void put_rate(double value, double most)
{
    if (value < 0 || most <= 0)
        printf(" %8s %5s", "", "");
    else
        printf(" %8s %4.0f%%", cli_count(value).text, 100 * value / most);
}

static void put_head(const char *middle, const char *last)
{
    printf("%s%10s %6s  %-20s %8s %8s %5s %8s %5s  %s%s\n", cli_color(stdout, CLI_BOLD), "time", "share", "operator",
           middle, "flop/s", "", "byte/s", "", last, cli_color(stdout, CLI_PLAIN));
}

static void put_time(const cli_profile *p, uint64_t ns, uint64_t total)
{
    const cli_small text = cli_duration((double)ns * 1e-9 / p->runs);
    printf("%*s%s %5.1f%%  ", 10 - (int)cli_columns(onx_str_of(text.text)), "", text.text, share(ns, total));
}

static int by_step_time(const void *pa, const void *pb)
{
    const profile_step *a = *(const profile_step *const *)pa, *b = *(const profile_step *const *)pb;
    return a->total_ns < b->total_ns ? 1 : a->total_ns > b->total_ns ? -1 : a < b ? -1 : a > b;
}

static void put_step(const cli_profile *p, const profile_step *s, uint64_t total)
{
    put_time(p, s->total_ns, total);
    cli_put_field(stdout, onx_str_of(s->op), 20);
    printf(" %8s", s->variant);
    put_rate(rate(2 * s->macs, s->total_ns, p->runs), p->flops);
    put_rate(rate(s->bytes, s->total_ns, p->runs), p->copied);
    fputs("  ", stdout);
    cli_put_text(stdout, onx_str_of(s->name)); /* not cut, because names may differ anywhere */
    if (s->post_ops)
        printf(" (+%u)", s->post_ops);
    if (s->measured)
        printf(" measured");
    putchar('\n');
}

onx_status cli_profile_print(const cli_profile *p)
{
    const uint64_t total = total_ns(p);
    size_t count;
    group *list = by_operator(p, &count);
    const profile_step **order = calloc(p->count + 1, sizeof *order);
    if (!list || !order) {
        free(list);
        free(order);
        return ONX_E_MEMORY;
    }
    put_head("steps", "");
    for (size_t i = 0; i < count; i++) {
        put_time(p, list[i].ns, total);
        cli_put_field(stdout, onx_str_of(list[i].op), 20);
        printf(" %8zu", list[i].steps);
        put_rate(rate(2 * list[i].macs, list[i].ns, p->runs), p->flops);
        put_rate(rate(list[i].bytes, list[i].ns, p->runs), p->copied);
        putchar('\n');
    }
    putchar('\n');
    put_head("kernel", "node");
    for (size_t i = 0; i < p->count; i++)
        order[i] = &p->step[i];
    qsort(order, p->count, sizeof *order, by_step_time);
    for (size_t i = 0; i < p->count; i++)
        put_step(p, order[i], total);
    printf("\n%s in %zu steps, ", cli_duration((double)total * 1e-9 / p->runs).text, p->count);
    printf("%s a run, mean of %u warm run%s", cli_duration(p->seconds / p->runs).text, p->runs,
           p->runs == 1 ? "" : "s");
    printf("; 100%% are %s flop/s of a matrix product ", cli_count(p->flops).text);
    printf("and %s byte/s of copying\n", cli_count(p->copied).text);
    if (p->bound > 0)
        printf(
            "at these rates its arithmetic, or reading its weights where that takes longer, takes %s: %.0f%% of a run\n",
            cli_duration(p->bound).text, 100 * p->bound * p->runs / p->seconds);
    free(list);
    free(order);
    return ONX_OK;
}

/* ---- JSON ---- */

static void json_rates(cli_json *json, const cli_profile *p, uint64_t ns, double macs, double bytes)
{
    const double flops = rate(2 * macs, ns, p->runs), moved = rate(bytes, ns, p->runs);
    cli_json_real(json, "ms", (double)ns * 1e-6 / p->runs);
    if (flops >= 0)
        cli_json_real(json, "flops_per_second", flops);
    if (moved >= 0)
        cli_json_real(json, "bytes_per_second", moved);
}

onx_status cli_profile_json(const cli_profile *p, cli_json *json)
{
    size_t count;
    group *list = by_operator(p, &count);
    if (!list)
        return ONX_E_MEMORY;
    cli_json_open(json, "profile", '{');
    cli_json_uint(json, "runs", p->runs);
    cli_json_real(json, "run_ms", 1e3 * p->seconds / p->runs);
    cli_json_real(json, "machine_flops_per_second", p->flops);
    cli_json_real(json, "machine_bytes_per_second", p->copied);
    if (p->bound > 0)
        cli_json_real(json, "bound_ms", 1e3 * p->bound);
    cli_json_open(json, "operators", '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_cstr(json, "op", list[i].op);
        cli_json_uint(json, "steps", list[i].steps);
        json_rates(json, p, list[i].ns, list[i].macs, list[i].bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "steps", '[');
    for (size_t i = 0; i < p->count; i++) {
        const profile_step *s = &p->step[i];
        cli_json_open(json, NULL, '{');
        cli_json_cstr(json, "name", s->name);
        cli_json_cstr(json, "op", s->op);
        cli_json_cstr(json, "kernel", s->variant);
        cli_json_bool(json, "measured", s->measured);
        cli_json_uint(json, "post_ops", s->post_ops);
        cli_json_uint(json, "output_bytes", s->output_bytes);
        json_rates(json, p, s->total_ns, s->macs, s->bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    free(list);
    return ONX_OK;
}

/* ---- traces ---- */

static void trace_step(cli_json *json, const profile_step *s)
{
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "name", s->name[0] ? s->name : s->op);
    cli_json_cstr(json, "cat", s->op);
    cli_json_cstr(json, "ph", "X");
    cli_json_real(json, "ts", (double)s->start_ns * 1e-3);
    cli_json_real(json, "dur", (double)(s->end_ns - s->start_ns) * 1e-3);
    cli_json_int(json, "pid", 1);
    cli_json_int(json, "tid", 1);
    cli_json_open(json, "args", '{');
    cli_json_cstr(json, "op", s->op);
    cli_json_cstr(json, "kernel", s->variant);
    cli_json_uint(json, "post_ops", s->post_ops);
    cli_json_uint(json, "output_bytes", s->output_bytes);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

onx_status cli_profile_trace(const cli_profile *p, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return ONX_E_MEMORY;
    cli_json json = { .to = f };
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "traceEvents", '[');
    for (size_t i = 0; i < p->count; i++)
        trace_step(&json, &p->step[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    onx_status status = fclose(f) == 0 ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = onx_save_bytes(p->call->cx, path, onx_str_make(text, len));
    if (status == ONX_OK && strcmp(path, "-") != 0)
        fprintf(stderr, "onx %s: the trace is in %s\n", p->call->command->name, path);
    free(text);
    return status;
}
