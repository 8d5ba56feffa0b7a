/* cmd_bench_model.c - `onx bench MODEL`: measures the time of a run by repeating it with the same inputs, in one stream
 * or in several at once. */
#include "cli_inputs.h"
#include "cli_profile.h"
#include "cli_ranks.h"
#include "cli_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { WARM_UP = 3, LEAST = 5 }; /* warm-up runs that are not measured, and the minimum number of measured runs */

/* ---- counting memory ---- */

enum { HUGE_PAGE = 2 << 20 };

/* Bytes that a context has allocated: now, and at most so far. One thread at a time uses a context, but the session's
 * allocator may be called by two. */
typedef struct counter {
    atomic_ullong now, most;
} counter;

/* Large blocks use huge pages, as they do in contexts that count nothing; otherwise creating a session would take
 * longer here than elsewhere. */
static void *resize_large(void *ptr, size_t old_size, size_t new_size)
{
    void *out = NULL;
    if (posix_memalign(&out, HUGE_PAGE, new_size) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(out, new_size, MADV_HUGEPAGE);
#endif
    if (ptr)
        memcpy(out, ptr, old_size < new_size ? old_size : new_size);
    free(ptr);
    return out;
}

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    counter *c = user;
    void *out = NULL;
    if (new_size == 0)
        free(ptr);
    else if (!(out = new_size < HUGE_PAGE ? realloc(ptr, new_size) : resize_large(ptr, old_size, new_size)))
        return NULL;
    if (!ptr)
        old_size = 0;
    const unsigned long long now = atomic_fetch_add(&c->now, new_size - old_size) + new_size - old_size;
    unsigned long long most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) {
    }
    return out;
}

static onx_ctx *counted_context(const cli_call *call, counter *c)
{
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ .resize = resize, .user = c });
    if (cx)
        onx_ctx_set_limits(cx, onx_ctx_limits(call->cx));
    return cx;
}

/* ---- streams ---- */

typedef struct series {
    double *seconds;
    size_t count;
    uint32_t room;
} series;

static bool add_time(series *s, double seconds)
{
    if (!CLI_GROW(s->seconds, s->count, s->room))
        return false;
    s->seconds[s->count++] = seconds;
    return true;
}

/* Lets all threads pass at once, or makes them return if not all of them could be created. */
typedef enum gate_state { GATE_SHUT, GATE_OPEN, GATE_HOME } gate_state;
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    gate_state state;
    uint64_t waiting; /* threads that have reached the gate */
} gate;

static void move_gate(gate *g, gate_state state)
{
    pthread_mutex_lock(&g->lock);
    g->state = state;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

/* Waits until that number of threads is waiting at the gate. */
static void await_others(gate *g, uint64_t count)
{
    pthread_mutex_lock(&g->lock);
    while (g->waiting < count)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static bool pass_gate(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->waiting++;
    pthread_cond_broadcast(&g->moved);
    while (g->state == GATE_SHUT)
        pthread_cond_wait(&g->moved, &g->lock);
    const bool open = g->state == GATE_OPEN;
    pthread_mutex_unlock(&g->lock);
    return open;
}

typedef struct bench {
    cli_call *call;
    onx_doc *doc;
    onx_session *session;
    onx_run_options limits;
    const onx_value *const *inputs;
    double seconds; /* how long to measure */
    gate gate;      /* where streams wait after their warm-up */
    /* results, except for the series of times */
    double load, plan, first; /* seconds */
    double opened;            /* when the gate was opened */
    double rate;              /* runs per second, all streams together */
    counter *memory;          /* of model and session */
    uint64_t threads, streams, plan_bytes, run_bytes;
} bench;

/* One of several threads that run the session, each with its own context and outputs. */
typedef struct stream {
    bench *bench;
    pthread_t thread;
    onx_ctx *cx;
    counter memory;
    series times;
    double first, elapsed; /* elapsed: from when the gate opened to the end of its last run */
    onx_status status;
    onx_value **outputs;
    char apart[128]; /* padding: keeps the counters of two streams on different cache lines, to avoid false sharing */
} stream;

static onx_status run_once(stream *s)
{
    const bench *b = s->bench;
    return onx_session_run_with(b->session, s->cx, b->inputs, s->outputs, &b->limits);
}

static void warm_up(stream *s)
{
    for (int i = 0; s->status == ONX_OK && i < WARM_UP; i++) {
        const double start = cli_now();
        s->status = run_once(s);
        if (i == 0)
            s->first = cli_now() - start;
    }
}

static void measure(stream *s)
{
    const double end = s->bench->opened + s->bench->seconds;
    while (s->status == ONX_OK && cli_ranks_decide(s->bench->call, s->times.count < LEAST || cli_now() < end)) {
        const double start = cli_now();
        s->status = run_once(s);
        if (s->status == ONX_OK && !add_time(&s->times, cli_now() - start))
            s->status = ONX_E_MEMORY;
    }
    s->elapsed = cli_now() - s->bench->opened;
}

static void *run_stream(void *user)
{
    stream *s = user;
    warm_up(s);
    if (pass_gate(&s->bench->gate))
        measure(s);
    return NULL;
}

static bool begin_stream(bench *b, stream *s)
{
    s->bench = b;
    s->outputs = calloc(onx_session_output_count(b->session) + 1u, sizeof *s->outputs);
    s->cx = counted_context(b->call, &s->memory);
    s->status = s->outputs && s->cx ? ONX_OK : ONX_E_MEMORY;
    return s->status == ONX_OK;
}

/* Reports the error of a stream; its times are kept. */
static void end_stream(bench *b, stream *s)
{
    for (uint32_t i = 0; s->outputs && i < onx_session_output_count(b->session); i++)
        onx_value_free(s->outputs[i]);
    free(s->outputs);
    if (!s->cx)
        return;
    cli_call part = *b->call;
    part.cx = s->cx;
    if (s->status != ONX_OK)
        cli_report(&part);
    b->call->told |= part.told;
    onx_ctx_free(s->cx);
}

/* Runs all streams; the first one is the calling thread. */
static onx_status run_streams(bench *b, stream *list, uint64_t count)
{
    uint64_t started = 1;
    for (uint64_t i = 0; i < count; i++)
        if (!begin_stream(b, &list[i]))
            return ONX_E_MEMORY;
    b->gate = (gate){ .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
    warm_up(&list[0]); /* alone: the time of the session's first run is reported */
    for (; list[0].status == ONX_OK && started < count; started++)
        if (pthread_create(&list[started].thread, NULL, run_stream, &list[started]) != 0)
            break;
    const bool all = list[0].status == ONX_OK && started == count;
    await_others(&b->gate, started - 1); /* the warm-up of the other streams would slow down the first one */
    b->opened = cli_now();
    move_gate(&b->gate, all ? GATE_OPEN : GATE_HOME);
    if (all)
        measure(&list[0]);
    for (uint64_t i = 1; i < started; i++)
        pthread_join(list[i].thread, NULL);
    b->first = list[0].first;
    for (uint64_t i = 0; i < count; i++) {
        if (list[i].status != ONX_OK)
            return list[i].status;
        b->rate += list[i].elapsed > 0 ? (double)list[i].times.count / list[i].elapsed : 0;
    }
    if (!all) {
        cli_error(b->call, "cannot start %llu threads", (unsigned long long)count);
        return ONX_E_LIMIT;
    }
    return ONX_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All times of all streams in one sorted series; false when out of memory. */
static bool gather(const stream *list, uint64_t count, series *all)
{
    for (uint64_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i].times.count; k++)
            if (!add_time(all, list[i].times.seconds[k]))
                return false;
    qsort(all->seconds, all->count, sizeof *all->seconds, by_value);
    return true;
}

/* ---- printing ---- */

static double at_part(const series *t, double part)
{
    const double index = part * (double)t->count;
    return t->seconds[index < (double)t->count ? (size_t)index : t->count - 1];
}

static double mean_of(const series *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->count; i++)
        sum += t->seconds[i];
    return sum / (double)t->count;
}

/* Peak memory of the whole process, including the mapped file; 0 if unknown. */
static uint64_t process_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static onx_status print_json(const bench *b, const series *t, const cli_profile *profile)
{
    onx_status status = ONX_OK;
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "file", b->call->operand[0]);
    cli_json_uint(&json, "threads", b->threads);
    cli_json_uint(&json, "streams", b->streams);
    cli_json_uint(&json, "runs", t->count);
    cli_json_real(&json, "load_ms", 1e3 * b->load);
    cli_json_real(&json, "plan_ms", 1e3 * b->plan);
    cli_json_real(&json, "first_ms", 1e3 * b->first);
    cli_json_real(&json, "mean_ms", 1e3 * mean_of(t));
    cli_json_real(&json, "median_ms", 1e3 * at_part(t, 0.5));
    cli_json_real(&json, "min_ms", 1e3 * t->seconds[0]);
    cli_json_real(&json, "p10_ms", 1e3 * at_part(t, 0.1));
    cli_json_real(&json, "p50_ms", 1e3 * at_part(t, 0.5));
    cli_json_real(&json, "p90_ms", 1e3 * at_part(t, 0.9));
    cli_json_real(&json, "p99_ms", 1e3 * at_part(t, 0.99));
    cli_json_real(&json, "max_ms", 1e3 * t->seconds[t->count - 1]);
    cli_json_real(&json, "runs_per_second", b->rate);
    cli_json_uint(&json, "planned_bytes", b->plan_bytes);
    cli_json_uint(&json, "running_bytes", b->run_bytes);
    cli_json_uint(&json, "process_bytes", process_bytes());
    if (profile)
        status = cli_profile_json(profile, &json);
    cli_json_close(&json, '}');
    return status;
}

static void print_text(const bench *b, const series *t)
{
    const struct {
        const char *name;
        double seconds;
    } list[] = { { "median", at_part(t, 0.5) }, { "mean", mean_of(t) },      { "minimum", t->seconds[0] },
                 { "p90", at_part(t, 0.9) },    { "p99", at_part(t, 0.99) }, { "maximum", t->seconds[t->count - 1] } };
    fputs("time      ", stdout);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        printf("%s%s %s%s%s", i ? ", " : "", list[i].name, i ? "" : cli_color(stdout, CLI_BOLD),
               cli_duration(list[i].seconds).text, i ? "" : cli_color(stdout, CLI_PLAIN));
    printf("\nruns      %zu, %s per second", t->count, cli_count(b->rate).text);
    if (b->streams > 1)
        printf(", %llu at once", (unsigned long long)b->streams);
    if (b->threads)
        printf(", %llu thread%s%s", (unsigned long long)b->threads, b->threads == 1 ? "" : "s",
               b->streams > 1 ? " each" : "");
    printf("\nstart-up  read in %s, ", cli_duration(b->load).text);
    printf("planned in %s, ", cli_duration(b->plan).text);
    printf("first run %s\n", cli_duration(b->first).text);
    printf("memory    planned %s, ", cli_bytes(b->plan_bytes).text);
    printf("running %s, ", cli_bytes(b->run_bytes).text);
    printf("process at most %s\n", cli_bytes(process_bytes()).text);
}

/* ---- the command ---- */

/* Prints the measurements; with --profile, runs the model some more times and prints the profile as well. */
static onx_status answer(bench *b, const series *times, const onx_session_options *options)
{
    cli_call *call = b->call;
    const bool json = cli_has(call, "json"), profiled = cli_has(call, "profile");
    cli_profile p = { .call = call };
    onx_status status = ONX_OK;
    if (!json)
        print_text(b, times);
    if (profiled)
        status = cli_profile_run(&p, b->doc, b->session, options, b->inputs, &b->limits);
    if (status == ONX_OK && cli_has(call, "trace"))
        status = cli_profile_trace(&p, cli_value(call, "trace"));
    if (status == ONX_OK && json)
        status = print_json(b, times, profiled ? &p : NULL);
    if (status == ONX_OK && profiled && !json) {
        putchar('\n');
        status = cli_profile_print(&p);
    }
    cli_profile_free(&p);
    return status;
}

static onx_status measure_streams(bench *b, const onx_session_options *options)
{
    stream *list = calloc(b->streams, sizeof *list);
    series all = { 0 };
    onx_status status = list ? run_streams(b, list, b->streams) : ONX_E_MEMORY;
    b->run_bytes = atomic_load(&b->memory->most);
    for (uint64_t i = 0; list && i < b->streams; i++) {
        b->run_bytes += atomic_load(&list[i].memory.most);
        end_stream(b, &list[i]);
    }
    if (status == ONX_OK && !gather(list, b->streams, &all))
        status = ONX_E_MEMORY;
    if (status == ONX_OK)
        status = answer(b, &all, options);
    for (uint64_t i = 0; list && i < b->streams; i++)
        free(list[i].times.seconds);
    free(list);
    free(all.seconds);
    return status;
}

static onx_status bench_session(bench *b, const onx_session_options *options)
{
    cli_call *call = b->call;
    double start = cli_now();
    ONX_TRY(cli_load(call, call->operand[0], ONX_KIND_MODEL, &b->doc));
    b->load = cli_now() - start;
    start = cli_now();
    ONX_TRY(cli_session_new(call, b->doc, options, &b->session));
    b->plan = cli_now() - start;
    return ONX_OK;
}

int cli_bench_model(cli_call *call)
{
    counter memory = { 0 };
    bench b = { .call = call, .memory = &memory, .threads = 1, .streams = 1, .seconds = 2 };
    onx_session_options options;
    if (!cli_run_options(call, &b.threads, &options, &b.limits) || !cli_real(call, "seconds", 0, 3600, &b.seconds) ||
        !cli_number(call, "streams", 1, 1024, &b.streams))
        return CLI_MISUSE;
    if (call->ranks && (b.streams > 1 || cli_has(call, "profile")))
        return cli_error(call, "--streams and --profile measure a single rank, but --configuration runs several");
    if (cli_has(call, "trace") && !cli_has(call, "profile"))
        return cli_error(call, "--trace needs --profile");
    /* The model and the session are created in a context whose memory is counted. */
    onx_ctx *outer = call->cx, *counted = counted_context(call, &memory);
    if (!counted)
        return cli_error(call, "out of memory");
    call->cx = counted;
    cli_watch_temps(counted);
    cli_inputs in = { 0 };
    onx_status status = onx_ctx_guard_files(counted);
    if (status == ONX_OK && cli_has(call, "trace"))
        status = onx_output_claim(counted, cli_value(call, "trace"), false);
    if (status == ONX_OK)
        status = bench_session(&b, &options);
    b.plan_bytes = atomic_load(&memory.now);
    if (status == ONX_OK)
        status = cli_inputs_read(call, b.doc, b.session,
                                 CLI_MAKE_UP | CLI_WAVE | (cli_ranks_first(call) ? 0u : CLI_SILENT), &in);
    b.inputs = (const onx_value *const *)in.values;
    if (status == ONX_OK)
        status = measure_streams(&b, &options);
    cli_inputs_free(&in);
    onx_session_free(b.session);
    onx_doc_free(b.doc);
    const int exit_status = cli_exit(call, status);
    cli_report(call);
    call->cx = outer;
    cli_watch_temps(outer);
    onx_ctx_free(counted);
    return exit_status;
}
