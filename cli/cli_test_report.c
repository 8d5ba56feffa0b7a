/* cli_test_report.c - prints the results of `onx test`: text, JSON or JUnit. */
#include "cli_table.h"
#include "cli_test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

static const char *const outcome_names[] = { "passed", "failed", "skipped" };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one case ---- */

void test_case_begin(test_report *report)
{
    report->text_bytes = NULL;
    report->text_len = 0;
    report->text = open_memstream(&report->text_bytes, &report->text_len);
    report->no_memory |= !report->text;
    report->start = now();
}

/* Indents the further lines of diagnostics. */
static void put_lines(FILE *to, const char *text)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        fprintf(to, "  %.*s\n", (int)strcspn(text, "\n"), text);
}

void test_case_say(test_report *report, const char *place, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (report->text)
        fprintf(report->text, "%s: %s\n", place, text);
    for (size_t i = 0; i < onx_diag_count(report->call->cx); i++) {
        onx_diag_format(onx_diag_get(report->call->cx, i), text, sizeof text);
        if (report->text)
            put_lines(report->text, text);
    }
    onx_diag_clear(report->call->cx);
}

/* Prints the text of a case; further lines are indented. */
static void print_case(const char *name, const char *text, test_outcome outcome)
{
    static const char *const words[] = { "ok", "FAIL", "skip" };
    static const cli_style styles[] = { CLI_GREEN, CLI_RED, CLI_YELLOW };
    if (!text || !*text) /* the case passed */
        text = name;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        if (*text == ' ')
            fputs("   ", stdout);
        else
            printf("%s%-4s%s ", cli_color(stdout, styles[outcome]), words[outcome], cli_color(stdout, CLI_PLAIN));
        cli_put_text(stdout, onx_str_make(text, strcspn(text, "\n")));
        putchar('\n');
    }
}

static bool wants_document(const cli_call *call)
{
    return cli_has(call, "json") || cli_has(call, "junit");
}

static bool keep(test_report *report, const char *name, char *text, test_outcome outcome)
{
    if (!CLI_GROW(report->list, report->count, report->room))
        return false;
    char *copy = strdup(name);
    if (copy)
        report->list[report->count++] =
            (test_case){ .name = copy, .text = text, .outcome = outcome, .seconds = now() - report->start };
    return copy != NULL;
}

void test_case_end(test_report *report, const char *name, test_outcome outcome)
{
    const cli_call *call = report->call;
    if (report->text && fclose(report->text) != 0)
        report->no_memory = true;
    report->text = NULL;
    report->outcomes[outcome]++;
    if (!cli_has(call, "json") && (outcome != TEST_PASSED || cli_has(call, "verbose")))
        print_case(name, report->text_bytes, outcome);
    if (!wants_document(call) || !keep(report, name, report->text_bytes, outcome)) {
        report->no_memory |= wants_document(call);
        free(report->text_bytes);
    }
    report->text_bytes = NULL;
    onx_diag_clear(call->cx);
}

/* ---- documents ---- */

static void print_json(const test_report *report)
{
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    for (int i = TEST_PASSED; i <= TEST_SKIPPED; i++)
        cli_json_uint(&json, outcome_names[i], report->outcomes[i]);
    cli_json_open(&json, "cases", '[');
    for (size_t i = 0; i < report->count; i++) {
        const test_case *c = &report->list[i];
        cli_json_open(&json, NULL, '{');
        cli_json_cstr(&json, "name", c->name);
        cli_json_cstr(&json, "outcome", outcome_names[c->outcome]);
        cli_json_real(&json, "seconds", c->seconds);
        if (c->text && *c->text)
            cli_json_cstr(&json, "text", c->text);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* <testcase>: the message is the first line of the failure. */
static void put_junit_case(FILE *to, const test_case *c)
{
    static const char *const tags[] = { NULL, "failure", "skipped" };
    const char *text = c->text ? c->text : "";
    const char *slash = strrchr(c->name, '/');
    fputs("    <testcase classname=\"", to);
    cli_put_xml(to, onx_str_make(c->name, slash ? (size_t)(slash - c->name) : 0));
    fputs("\" name=\"", to);
    cli_put_xml(to, onx_str_of(slash ? slash + 1 : c->name));
    fprintf(to, "\" time=\"%.6f\"", c->seconds);
    if (c->outcome == TEST_PASSED) {
        fputs("/>\n", to);
        return;
    }
    fprintf(to, ">\n      <%s message=\"", tags[c->outcome]);
    cli_put_xml(to, onx_str_make(text, strcspn(text, "\n")));
    fputs("\">", to);
    cli_put_xml(to, onx_str_of(text));
    fprintf(to, "</%s>\n    </testcase>\n", tags[c->outcome]);
}

static onx_status write_junit(const test_report *report, const char *path)
{
    char *bytes = NULL;
    size_t len = 0;
    double seconds = 0;
    FILE *to = open_memstream(&bytes, &len);
    if (!to)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < report->count; i++)
        seconds += report->list[i].seconds;
    fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"onx\" tests=\"%zu\"",
            report->count);
    fprintf(to, " failures=\"%llu\" errors=\"0\" skipped=\"%llu\" time=\"%.6f\">\n",
            (unsigned long long)report->outcomes[TEST_FAILED], (unsigned long long)report->outcomes[TEST_SKIPPED],
            seconds);
    for (size_t i = 0; i < report->count; i++)
        put_junit_case(to, &report->list[i]);
    fputs("  </testsuite>\n</testsuites>\n", to);
    onx_status status = fclose(to) == 0 ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = onx_save_bytes(report->call->cx, path, onx_str_make(bytes, len));
    free(bytes);
    return status;
}

int test_report_end(test_report *report)
{
    cli_call *call = report->call;
    const char *junit = cli_value(call, "junit");
    onx_status status = report->no_memory ? ONX_E_MEMORY : ONX_OK;
    if (status == ONX_OK && cli_has(call, "json")) {
        print_json(report);
    } else if (status == ONX_OK) {
        printf("%llu passed, %llu failed", (unsigned long long)report->outcomes[TEST_PASSED],
               (unsigned long long)report->outcomes[TEST_FAILED]);
        if (report->outcomes[TEST_SKIPPED])
            printf(", %llu skipped", (unsigned long long)report->outcomes[TEST_SKIPPED]);
        putchar('\n');
    }
    if (status == ONX_OK && junit)
        status = write_junit(report, junit);
    for (size_t i = 0; i < report->count; i++) {
        free(report->list[i].name);
        free(report->list[i].text);
    }
    free(report->list);
    call->told = false; /* the messages concern cases, not the call */
    if (status != ONX_OK)
        return cli_exit(call, status);
    return report->outcomes[TEST_FAILED] ? CLI_FAULT : CLI_OK;
}
