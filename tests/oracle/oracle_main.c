/* oracle_main.c - onx_oracle: random models, or those of files, looked at from all sides. docs/notes/oracle.md */
#include "oracle/oracle.h"

#include "gen/gen_draw.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS = 64, BATCH = 200, SORTS = 400, HANG = 120, OPERATORS = DRAW_THEMES, MIXED };

typedef struct settings {
    uint64_t seed, count;
    unsigned seconds, jobs, reduce;
    int theme; /* draw_theme, OPERATORS or MIXED */
    const char *row, *keep;
    bool all, list, print;
} settings;

/* What a child does, in memory that it shares with its parent. */
typedef struct progress {
    uint64_t number, models, ran, tick;
    char row[32];
} progress;

typedef struct job {
    pid_t pid;
    int from;
    progress *at;
    uint64_t end; /* number past the last one of the batch */
    uint64_t tick;
    time_t changed;
} job;

typedef struct work {
    const settings *options;
    job jobs[JOBS];
    uint64_t next, end, models, ran;
    time_t stop; /* 0: none */
    oracle_finding sorts[SORTS];
    uint64_t times[SORTS], first[SORTS];
    uint32_t sort_count;
} work;

/* ---- models ---- */

static int theme_of(const settings *options, uint64_t number)
{
    return options->theme == MIXED ? (int)(number % (DRAW_THEMES + 1)) : options->theme;
}

static char *model_of(const settings *options, uint64_t number)
{
    const int theme = theme_of(options, number);
    return theme == OPERATORS ? oracle_operator_model(options->theme == MIXED ? number / (DRAW_THEMES + 1) : number)
                              : draw_model(number, (draw_theme)theme);
}

static const char *theme_name(int theme)
{
    return theme == OPERATORS ? "operators" : theme == MIXED ? "all" : draw_theme_names[theme];
}

/* ---- children ---- */

typedef struct child {
    progress *at;
    int to;
} child;

typedef struct message {
    uint64_t number;
    oracle_finding finding;
} message;

static void begin(void *user, const char *row)
{
    child *c = user;
    c->at->tick++;
    (void)snprintf(c->at->row, sizeof c->at->row, "%s", row);
}

static void found(void *user, const char *row, const char *kind, const char *text)
{
    child *c = user;
    message m;
    memset(&m, 0, sizeof m);
    m.number = c->at->number;
    (void)snprintf(m.finding.row, sizeof m.finding.row, "%s", row);
    (void)snprintf(m.finding.kind, sizeof m.finding.kind, "%s", kind);
    (void)snprintf(m.finding.text, sizeof m.finding.text, "%s", text);
    if (write(c->to, &m, sizeof m) != (ssize_t)sizeof m)
        _exit(3);
}

static void work_off(const settings *options, child *c, uint64_t number, uint64_t end)
{
    oracle *o = calloc(1, sizeof *o);
    for (; o && number < end; number++) {
        c->at->number = number;
        (void)snprintf(c->at->row, sizeof c->at->row, "generator");
        char *text = model_of(options, number);
        if (!text)
            continue;
        o->found = found;
        o->user = c;
        (void)oracle_examine(o, onx_str_of(text), number, options->row,
                             options->all                             ? ORACLE_ALL_ROWS
                             : theme_of(options, number) == OPERATORS ? ORACLE_SOME_ROWS_OPS
                                                                      : ORACLE_SOME_ROWS,
                             begin);
        c->at->models++;
        c->at->ran += o->runs;
        free(text);
    }
    _exit(o ? 0 : 3);
}

static bool start(work *w, job *j, uint64_t number, uint64_t end)
{
    int ends[2];
    if (!j->at) {
        void *shared = mmap(NULL, sizeof *j->at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            return false;
        j->at = shared;
    }
    if (pipe(ends) != 0)
        return false;
    (void)fflush(NULL);
    j->end = end;
    j->changed = time(NULL);
    j->from = ends[0];
    j->pid = fork();
    if (j->pid == 0) {
        child c = { .at = j->at, .to = ends[1] };
        (void)close(ends[0]);
        work_off(w->options, &c, number, end);
    }
    (void)close(ends[1]);
    return j->pid > 0;
}

/* ---- findings ---- */

static void write_file(const settings *options, uint64_t number, const char *row, const char *kind, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s-%llu-%s-%s.onnxtxt", options->keep, theme_name(theme_of(options, number)),
                   (unsigned long long)number, row, kind);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        (void)fprintf(stderr, "onx_oracle: %s: %s\n", path, strerror(errno));
    else
        (void)printf("  kept in %s: onx_oracle --row %s %s\n", path, row, path);
}

static void take(work *w, const message *m)
{
    uint32_t at = 0;
    const oracle_finding *f = &m->finding;
    while (at < w->sort_count && !oracle_same_sort(&w->sorts[at], f))
        at++;
    if (at == w->sort_count && at < SORTS) {
        w->sorts[at] = *f;
        w->first[at] = m->number;
        w->sort_count++;
    }
    if (at == SORTS || w->times[at]++ > 0)
        return;
    const settings *options = w->options;
    (void)printf("%s %llu: %s: %s: %s\n", theme_name(theme_of(options, m->number)), (unsigned long long)m->number,
                 f->row, f->kind, f->text);
    (void)fflush(stdout);
    char *text = options->keep ? model_of(options, m->number) : NULL;
    if (text && options->reduce) {
        char *reduced = oracle_reduce(text, m->number, f, options->reduce);
        free(text);
        text = reduced;
    }
    if (text)
        write_file(options, m->number, f->row, f->kind, text);
    (void)fflush(stdout);
    free(text);
}

static void died(work *w, job *j, int status, bool hung)
{
    message m = { .number = j->at->number };
    (void)snprintf(m.finding.row, sizeof m.finding.row, "%s", j->at->row);
    (void)snprintf(m.finding.kind, sizeof m.finding.kind, "%s", hung ? "hang" : "crash");
    (void)snprintf(m.finding.text, sizeof m.finding.text, "signal %d", WTERMSIG(status));
    take(w, &m);
}

/* ---- the parent ---- */

static void collect(work *w, job *j)
{
    w->models += j->at->models;
    w->ran += j->at->ran;
    j->at->models = j->at->ran = 0;
}

/* The next batch for a job, or what a crash has left of its last one. */
static void go_on(work *w, job *j, uint64_t left)
{
    j->pid = 0;
    if (left && left < j->end) {
        (void)start(w, j, left, j->end);
        return;
    }
    if (w->next >= w->end || (w->stop && time(NULL) >= w->stop))
        return;
    const uint64_t first = w->next, end = w->end - first < BATCH ? w->end : first + BATCH;
    w->next = end;
    (void)start(w, j, first, end);
}

static void reap(work *w, job *j, bool hung)
{
    int status = 0;
    message m;
    while (read(j->from, &m, sizeof m) == (ssize_t)sizeof m)
        take(w, &m);
    (void)close(j->from);
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        ;
    collect(w, j);
    const uint64_t at = j->at->number;
    if (WIFSIGNALED(status))
        died(w, j, status, hung);
    go_on(w, j, WIFSIGNALED(status) ? at + 1 : 0);
}

static bool step(work *w)
{
    struct pollfd polls[JOBS];
    uint32_t running = 0;
    for (unsigned i = 0; i < w->options->jobs; i++)
        if (w->jobs[i].pid)
            polls[running++] = (struct pollfd){ .fd = w->jobs[i].from, .events = POLLIN };
    if (!running)
        return false;
    (void)poll(polls, running, 1000);
    running = 0;
    for (unsigned i = 0; i < w->options->jobs; i++) {
        job *j = &w->jobs[i];
        message m;
        if (!j->pid)
            continue;
        const short events = polls[running++].revents;
        if (j->at->tick != j->tick)
            j->changed = time(NULL);
        j->tick = j->at->tick;
        if (events & POLLIN) {
            if (read(j->from, &m, sizeof m) == (ssize_t)sizeof m)
                take(w, &m);
            j->changed = time(NULL);
        } else if (events) {
            reap(w, j, false);
        } else if (time(NULL) - j->changed > HANG) {
            (void)kill(j->pid, SIGKILL);
            reap(w, j, true);
        }
    }
    return true;
}

static int run(const settings *options)
{
    work *w = calloc(1, sizeof *w);
    if (!w)
        return 2;
    w->options = options;
    w->next = options->seed;
    w->end = options->count ? options->seed + options->count : UINT64_MAX;
    w->stop = options->seconds ? time(NULL) + (time_t)options->seconds : 0;
    (void)oracle_operator_count();
    for (unsigned i = 0; i < options->jobs; i++)
        go_on(w, &w->jobs[i], 0);
    while (step(w))
        ;
    uint64_t findings = 0;
    for (uint32_t i = 0; i < w->sort_count; i++) {
        findings += w->times[i];
        (void)printf("%6llu times, first in %llu: %s: %s: %.160s\n", (unsigned long long)w->times[i],
                     (unsigned long long)w->first[i], w->sorts[i].row, w->sorts[i].kind, w->sorts[i].text);
    }
    (void)printf("numbers %llu to %llu, theme %s: %llu models, %llu run, %llu findings of %u sorts\n",
                 (unsigned long long)options->seed, (unsigned long long)(w->next ? w->next - 1 : 0),
                 theme_name(options->theme), (unsigned long long)w->models, (unsigned long long)w->ran,
                 (unsigned long long)findings, w->sort_count);
    free(w);
    return findings != 0;
}

/* ---- files ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t len = 0, got = 0;
    for (; f; len += got) {
        char *grown = realloc(text, len + 65537);
        if (!grown)
            break;
        text = grown;
        got = fread(text + len, 1, 65536, f);
        text[len + got] = 0;
        if (!got)
            break;
    }
    if (f)
        (void)fclose(f);
    return text;
}

/* Every line of a case that begins with `# ` is a comment, as in ONNX text. */
static int look_at_file(const settings *options, const char *path)
{
    oracle_finding *list = calloc(64, sizeof *list);
    char *text = read_file(path);
    if (!text || !list) {
        (void)fprintf(stderr, "onx_oracle: %s: %s\n", path, strerror(errno));
        free(text);
        free(list);
        return 2;
    }
    const uint32_t count =
        oracle_probe(text, options->seed, options->row, options->seconds ? options->seconds : HANG, list, 64);
    for (uint32_t i = 0; i < count && i < 64; i++)
        (void)printf("%s: %s: %s: %s\n", path, list[i].row, list[i].kind, list[i].text);
    if (count && options->reduce && options->keep) {
        char *reduced = oracle_reduce(text, options->seed, &list[0], options->reduce);
        if (reduced)
            (void)printf("%s\n", reduced);
        free(reduced);
    }
    free(text);
    free(list);
    return count != 0;
}

/* ---- options ---- */

static const char usage[] =
    "usage: onx_oracle [option...] [FILE...]\n\n"
    "Looks at random models, or at those in files of ONNX text, from all sides: every way to run one gives what its nodes\n"
    "give one by one, and every transform keeps it valid and its results the same. The exit status is 1 if there are\n"
    "findings. docs/notes/oracle.md\n\n"
    "  --seed N       number of the first model (1)\n"
    "  --count N      how many numbers (1000; 0: until the time is over)\n"
    "  --seconds N    begin no further models after that time\n"
    "  --theme THEME  any, alias, nested, zero, types, operators, all (all)\n"
    "  --row ROW      look in one way only\n"
    "  --all          look at every model in every way; otherwise the number draws some\n"
    "  --jobs N       child processes at the same time (1)\n"
    "  --keep FOLDER  write the models with findings there, one of each sort\n"
    "  --reduce N     make them smaller first, for up to N seconds each\n"
    "  --print        print the models instead\n"
    "  --list         print the rows\n";

static bool read_option(settings *o, const char *name, const char *value, bool *used)
{
    *used = true;
    if (strcmp(name, "--all") == 0 || strcmp(name, "--list") == 0 || strcmp(name, "--print") == 0) {
        *used = false;
        *(name[2] == 'a' ? &o->all : name[2] == 'l' ? &o->list : &o->print) = true;
        return true;
    }
    if (!value)
        return false;
    if (strcmp(name, "--seed") == 0)
        o->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--count") == 0)
        o->count = strtoull(value, NULL, 10);
    else if (strcmp(name, "--seconds") == 0)
        o->seconds = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--jobs") == 0)
        o->jobs = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--reduce") == 0)
        o->reduce = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--keep") == 0)
        o->keep = value;
    else if (strcmp(name, "--row") == 0)
        o->row = value;
    else if (strcmp(name, "--theme") == 0) {
        for (o->theme = 0; o->theme < MIXED && strcmp(theme_name(o->theme), value) != 0;)
            o->theme++;
        return o->theme < MIXED || strcmp(value, "all") == 0;
    } else {
        return false;
    }
    return o->jobs >= 1 && o->jobs <= JOBS;
}

static int print_rows(void)
{
    for (uint32_t i = 0; oracle_row_get(i); i++)
        (void)printf("%-20s %3u %% of random models, %3u %% of those of one operator\n", oracle_row_get(i)->name,
                     oracle_row_get(i)->share, oracle_row_get(i)->share_ops);
    return 0;
}

static int print_models(const settings *options)
{
    for (uint64_t i = 0; i < options->count; i++) {
        char *text = model_of(options, options->seed + i);
        (void)printf("%s", text ? text : "");
        free(text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    settings o = { .seed = 1, .count = 1000, .jobs = 1, .theme = MIXED };
    int at = 1, worst = 0;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        bool used;
        if (!read_option(&o, argv[at], at + 1 < argc ? argv[at + 1] : NULL, &used)) {
            (void)fputs(usage, stderr);
            return 2;
        }
        at += used;
    }
    if (o.list)
        return print_rows();
    if (o.print)
        return print_models(&o);
    if (at == argc)
        return run(&o);
    for (; at < argc; at++) {
        const int status = look_at_file(&o, argv[at]);
        worst = status > worst ? status : worst;
    }
    return worst;
}
