/* cli_message.c - messages on standard error: errors, diagnostics, progress; and findings, which go to standard
 * output. */
#include "cli.h"
#include "cli_ranks.h"
#include "cli_table.h"

#include <stdarg.h>
#include <time.h>

static void put_severity(FILE *to, onx_severity severity)
{
    static const struct {
        const char *word;
        cli_style style;
    } look[] = { { "note", CLI_CYAN }, { "warning", CLI_YELLOW }, { "error", CLI_RED } };
    fprintf(to, "%s%s%s:%s ", cli_color(to, CLI_BOLD), cli_color(to, look[severity].style), look[severity].word,
            cli_color(to, CLI_PLAIN));
}

static void put_hint(FILE *to, onx_str text)
{
    fprintf(to, "%shint:%s ", cli_color(to, CLI_CYAN), cli_color(to, CLI_PLAIN));
    cli_put_text(to, text);
    fputc('\n', to);
}

static bool error_was_said;

bool cli_said_error(void)
{
    return error_was_said;
}

static void say(const cli_call *call, onx_severity severity, const char *format, va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof(text), format, args);
    cli_progress_end();
    fflush(stdout);
    fputs(call ? "onx " : "onx: ", stderr);
    if (call)
        fprintf(stderr, "%s: ", call->command->name);
    put_severity(stderr, severity);
    cli_put_text(stderr, onx_str_of(text));
    fputc('\n', stderr);
}

int cli_error(const cli_call *call, const char *format, ...)
{
    error_was_said = true;
    if (call && call->ranks && cli_ranks_told(call, true))
        return CLI_MISUSE; /* one message is enough */
    va_list args;
    va_start(args, format);
    say(call, ONX_ERROR, format, args);
    va_end(args);
    return CLI_MISUSE;
}

void cli_warn(const cli_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(call, ONX_WARNING, format, args);
    va_end(args);
}

void cli_hint(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_hint(stderr, onx_str_of(text));
}

/* ---- diagnostics ---- */

/* Prints the line of text with a caret below the position. Long lines are cut around it. */
static void put_excerpt(FILE *to, const onx_diag *d)
{
    enum { BEFORE = 60, AFTER = 40 };
    size_t column = d->where.column ? d->where.column - 1 : 0;
    onx_str line = d->excerpt;
    if (column > line.len)
        column = line.len;
    size_t from = column > BEFORE ? column - BEFORE : 0, until = line.len - column > AFTER ? column + AFTER : line.len;
    while (from > 0 && ((unsigned char)line.ptr[from] & 0xc0) == 0x80)
        from--;
    while (until < line.len && ((unsigned char)line.ptr[until] & 0xc0) == 0x80)
        until++;
    fprintf(to, "%s%5u |%s ", cli_color(to, CLI_DIM), d->where.line, cli_color(to, CLI_PLAIN));
    /* Tabs print as one blank, so that the caret is aligned. */
    unsigned indent = 0;
    for (size_t i = from; i < until;) {
        size_t end = i;
        while (end < until && line.ptr[end] != '\t' && line.ptr[end] != '\r')
            end++;
        cli_put_text(to, onx_str_make(line.ptr + i, end - i));
        if (end < until)
            fputc(' ', to);
        if (i < column) {
            size_t stop = end < column ? end : column;
            indent += cli_columns(onx_str_make(line.ptr + i, stop - i)) + (end < column);
        }
        i = end + (end < until);
    }
    fprintf(to, "\n%s      |%s %*s%s%s^%s\n", cli_color(to, CLI_DIM), cli_color(to, CLI_PLAIN), (int)indent, "",
            cli_color(to, CLI_BOLD), cli_color(to, CLI_GREEN), cli_color(to, CLI_PLAIN));
}

static void put_place(FILE *to, const char *input, const onx_where *where)
{
    const char *between = "";
    fputs(cli_color(to, CLI_BOLD), to);
    if (input) {
        cli_put_text(to, onx_str_of(input));
        between = ": ";
    }
    if (where->kind == ONX_AT_TEXT) {
        fprintf(to, input ? ":%u:%u" : "%u:%u", where->line, where->column);
        between = ": ";
    } else if (where->kind == ONX_AT_BYTE) {
        fprintf(to, "%sbyte %llu", between, (unsigned long long)where->byte);
        between = ": ";
    }
    if (where->path.len) {
        fputs(between, to);
        cli_put_text(to, where->path);
        between = ": ";
    }
    fprintf(to, "%s%s", between, cli_color(to, CLI_PLAIN));
}

static bool limit_hit;

bool cli_limit_was_hit(void)
{
    return limit_hit;
}

/* Translates the advice of the library into options of this program: `text` if the command has the option, otherwise
 * `otherwise`; NULL: print no advice. Exceeded limits and files of other kinds are recognised by the message. */
static const struct {
    const char *in, *option, *text, *otherwise;
    bool in_message; /* matched against the message, because there is no hint */
    uint32_t most;   /* maximum of the option's value; 0: unlimited */
} advice[] = {
    { "limit timeout", "timeout", "--timeout SECONDS sets the limit", NULL, true, 0 },
    { "limit iterations", "max-iterations", "--max-iterations N raises the limit", NULL, true, 0 },
    { "limit depth", "max-depth", "--max-depth N raises the limit", NULL, true, ONX_DEPTH_MAX },
    { "limit memory", "max-memory", "--max-memory SIZE raises the limit", NULL, true, 0 },
    { "memory limit", "max-memory", "--max-memory SIZE raises the limit", NULL, true, 0 },
    { "give the format, or", "from",
      "give its format with --from FORMAT, or rename the file to the extension of its format",
      "rename the file to the extension of its format", false, 0 },
    { "name the folder that external data is in", "external-dir",
      "--external-dir DIR names the folder of its external data", NULL, false, 0 },
    { "looks like a NumPy array", NULL, NULL, "NumPy files are recognised by their extension: rename the file to .npy",
      true, 0 },
    { "looks like a zip archive", NULL, NULL, "NumPy files are recognised by their extension: rename the file to .npz",
      true, 0 },
    { "allow links", "external-links", "--external-links follows links; use it only for models that you trust", NULL,
      false, 0 },
};

static void put_advice(FILE *to, const cli_call *call, const onx_diag *d)
{
    const onx_str said = d->hint.len ? d->hint : d->message;
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++) {
        if (advice[i].in_message == (d->hint.len > 0) ||
            !memmem(said.ptr, said.len, advice[i].in, strlen(advice[i].in)))
            continue;
        const bool known = advice[i].option && cli_knows_option(call->command, advice[i].option);
        const char *text = known ? advice[i].text : advice[i].otherwise;
        char whole[128];
        if (text && advice[i].most) {
            snprintf(whole, sizeof whole, "%s, which is %u at most", text, advice[i].most);
            text = whole;
        }
        if (text)
            put_hint(to, onx_str_of(text));
        return;
    }
    if (d->hint.len)
        put_hint(to, d->hint);
}

/* Prints a diagnostic without its position. */
static void put_finding(FILE *to, const cli_call *call, const onx_diag *d, uint32_t times)
{
    limit_hit |= d->severity == ONX_ERROR && d->status == ONX_E_LIMIT;
    put_severity(to, d->severity);
    cli_put_text(to, d->message);
    if (d->value.len || d->expected.len) {
        fputs(" (", to);
        if (d->value.len) {
            fputs(d->where.kind == ONX_AT_TEXT && !d->where.path.len ? "found " : "value ", to);
            cli_put_text(to, d->value);
        }
        if (d->expected.len) {
            fputs(d->value.len ? ", expected " : "expected ", to);
            cli_put_text(to, d->expected);
        }
        fputc(')', to);
    }
    if (d->rule)
        fprintf(to, " %s[%s]%s", cli_color(to, CLI_DIM), d->rule, cli_color(to, CLI_PLAIN));
    if (times > 1)
        fprintf(to, " (%u times)", times);
    fputc('\n', to);
    if (d->excerpt.len && d->where.kind == ONX_AT_TEXT)
        put_excerpt(to, d);
    if (d->hint.len || d->status == ONX_E_LIMIT || (d->rule && strcmp(d->rule, "W-01") == 0))
        put_advice(to, call, d);
}

static void put_diag(FILE *to, const cli_call *call, const onx_diag *d, uint32_t times)
{
    /* messages about files contain the file name */
    if (d->status == ONX_E_IO && d->where.kind == ONX_AT_NOWHERE)
        fprintf(to, "onx %s: ", call->command->name);
    else
        put_place(to, call->input, &d->where);
    put_finding(to, call, d, times);
}

/* Do both say the same of the same place? */
static bool is_same(const onx_diag *a, const onx_diag *b)
{
    return a->severity == b->severity && a->status == b->status && onx_str_equal(a->message, b->message) &&
           onx_str_equal(a->value, b->value) && onx_str_equal(a->expected, b->expected) &&
           onx_str_equal(a->hint, b->hint) && a->where.kind == b->where.kind &&
           onx_str_equal(a->where.path, b->where.path) && a->where.byte == b->where.byte &&
           a->where.line == b->where.line && a->where.column == b->where.column;
}

/* For each diagnostic how often it was recorded; 0: it repeats an earlier one. NULL: none repeats another, as far as
 * memory allows to find out. */
static uint32_t *count_repeats(const cli_call *call, size_t kept)
{
    cli_table seen = { .cx = call->cx };
    uint32_t *times = calloc(kept + 1, sizeof *times);
    for (uint32_t i = 0; times && i < kept; i++) {
        const onx_diag *d = onx_diag_get(call->cx, i);
        const uint32_t hash = cli_table_hash(&seen, d->message, d->where.path);
        bool repeats = false;
        CLI_TABLE_EACH (&seen, hash, k) {
            if (is_same(onx_diag_get(call->cx, k), d)) {
                times[k]++;
                repeats = true;
                break;
            }
        }
        if (repeats)
            continue;
        times[i] = 1;
        if (!cli_table_add(&seen, hash, i)) {
            free(times);
            times = NULL;
        }
    }
    free(seen.slots);
    return times;
}

static void put_rest(FILE *to, const cli_call *call)
{
    size_t kept = onx_diag_count(call->cx), all = 0;
    for (int s = ONX_NOTE; s <= ONX_ERROR; s++)
        all += onx_diag_total(call->cx, (onx_severity)s);
    if (all > kept)
        fprintf(to, "and %zu more\n", all - kept);
}

static void forget(cli_call *call)
{
    call->told |= onx_diag_total(call->cx, ONX_ERROR) > 0;
    onx_diag_clear(call->cx);
}

static void report_to(FILE *to, cli_call *call)
{
    cli_progress_end();
    size_t kept = onx_diag_count(call->cx);
    if (kept && to != stdout)
        fflush(stdout);
    uint32_t *times = kept > 1 ? count_repeats(call, kept) : NULL;
    for (size_t i = 0; i < kept; i++)
        if (!times || times[i])
            put_diag(to, call, onx_diag_get(call->cx, i), times ? times[i] : 1);
    free(times);
    put_rest(to, call);
    forget(call);
}

void cli_report(cli_call *call)
{
    if (call->ranks && onx_diag_total(call->cx, ONX_ERROR) && cli_ranks_told(call, false))
        forget(call); /* one message is enough */
    report_to(stderr, call);
}

/* The part of a path that names an item of the model, such as graph.node[3] "conv1" (Conv) in graph.node[3] "conv1"
 * (Conv).input[0]. Empty if the path has no such part. */
static onx_str item_of(onx_str path)
{
    size_t n = 0;
    while (n < path.len && path.ptr[n] != ']')
        n++;
    bool quoted = false;
    for (; n < path.len && (quoted || path.ptr[n] != '.'); n++)
        quoted ^= path.ptr[n] == '"';
    return onx_str_make(path.ptr, n);
}

void cli_report_findings(cli_call *call)
{
    FILE *to = stdout;
    if (!cli_is_terminal(to)) {
        report_to(to, call);
        return;
    }
    cli_progress_end();
    onx_str last = { NULL, 0 };
    for (size_t i = 0; i < onx_diag_count(call->cx); i++) {
        const onx_diag *d = onx_diag_get(call->cx, i);
        onx_str item = item_of(d->where.path);
        if (d->where.kind != ONX_AT_MODEL || !item.len) {
            put_diag(to, call, d, 1);
            last = (onx_str){ NULL, 0 };
            continue;
        }
        if (!onx_str_equal(item, last)) {
            fputs(cli_color(to, CLI_BOLD), to);
            cli_put_text(to, item);
            fprintf(to, "%s\n", cli_color(to, CLI_PLAIN));
        }
        last = item;
        fputs("  ", to);
        if (d->where.path.len > item.len + 1) {
            cli_put_text(to, onx_str_make(d->where.path.ptr + item.len + 1, d->where.path.len - item.len - 1));
            fputs(": ", to);
        }
        put_finding(to, call, d, 1);
    }
    put_rest(to, call);
    forget(call);
}

/* ---- progress ---- */

static bool progress_shown;

void cli_progress(const char *what, uint64_t done, uint64_t total)
{
    static struct timespec last;
    if (!cli_is_terminal(stderr))
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double since = (double)(now.tv_sec - last.tv_sec) + 1e-9 * (double)(now.tv_nsec - last.tv_nsec);
    if (since < 0.1)
        return;
    /* The first call only starts the clock: no bar is shown for short work. */
    bool first = last.tv_sec == 0 && last.tv_nsec == 0;
    last = now;
    if (first)
        return;
    progress_shown = true;
    fprintf(stderr, "\r\033[K%s ", what);
    if (total) {
        fputs(cli_color(stderr, CLI_CYAN), stderr);
        cli_put_bar(stderr, (double)done, (double)total, 30);
        fprintf(stderr, "%s %3u %%", cli_color(stderr, CLI_PLAIN), (unsigned)(100.0 * (double)done / (double)total));
    } else {
        fprintf(stderr, "%llu", (unsigned long long)done);
    }
    fflush(stderr);
}

void cli_progress_end(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}
