/* cli_check_report.c - prints the findings of `onx check` as text, JSON or SARIF, for any number of files. */
#include "cli_check.h"

#include "cli_files.h"

#include <stdlib.h>

static const char *severity_name(onx_severity severity)
{
    static const char *const names[] = { "note", "warning", "error" };
    return names[severity];
}

/* ---- JSON ---- */

static void json_finding(cli_json *json, const onx_diag *d)
{
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "rule", d->rule);
    cli_json_cstr(json, "severity", severity_name(d->severity));
    if (d->where.path.len)
        cli_json_text(json, "path", d->where.path);
    if (d->where.kind == ONX_AT_BYTE)
        cli_json_uint(json, "byte", d->where.byte);
    if (d->where.kind == ONX_AT_TEXT) {
        cli_json_uint(json, "line", d->where.line);
        cli_json_uint(json, "column", d->where.column);
    }
    cli_json_text(json, "message", d->message);
    if (d->value.len)
        cli_json_text(json, "value", d->value);
    if (d->expected.len)
        cli_json_text(json, "expected", d->expected);
    if (d->hint.len)
        cli_json_text(json, "hint", d->hint);
    cli_json_close(json, '}');
}

static void json_file(check_report *report, const check_result *r)
{
    cli_json *json = &report->json;
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "file", r->file);
    cli_json_bool(json, "valid", !r->summary.errors && r->exit_status != CLI_MISUSE);
    cli_json_bool(json, "types_checked", r->checked && !r->open_types);
    cli_json_uint(json, "errors", r->summary.errors);
    cli_json_uint(json, "warnings", r->summary.warnings);
    cli_json_uint(json, "notes", r->summary.notes);
    cli_json_open(json, "findings", '[');
    for (size_t i = 0; i < onx_diag_count(report->call->cx); i++)
        json_finding(json, onx_diag_get(report->call->cx, i));
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void json_total(check_report *report)
{
    cli_json *json = &report->json;
    cli_json_close(json, ']');
    cli_json_uint(json, "checked", report->files);
    cli_json_uint(json, "invalid", report->invalid);
    cli_json_uint(json, "unreadable", report->unread);
    cli_json_uint(json, "errors", report->total.errors);
    cli_json_uint(json, "warnings", report->total.warnings);
    cli_json_uint(json, "notes", report->total.notes);
    cli_json_close(json, '}');
}

/* ---- SARIF 2.1.0 ---- */

/* Rules are listed after the results, in the order of first use. */
static int64_t rule_index(check_report *report, const onx_rule *rule)
{
    for (size_t i = 0; i < onx_rule_count(); i++) {
        if (onx_rule_get(i) != rule)
            continue;
        if (!report->rule_index[i])
            report->rule_index[i] = ++report->rules;
        return report->rule_index[i] - 1;
    }
    return -1;
}

static void sarif_text(cli_json *json, const char *key, const char *text)
{
    cli_json_open(json, key, '{');
    cli_json_cstr(json, "text", text);
    cli_json_close(json, '}');
}

static void sarif_help(cli_json *json, const onx_rule *rule)
{
    char text[512];
    bool passes = strncmp(rule->example, "accept: ", 8) == 0;
    snprintf(text, sizeof text, "%s: %s. Source: %s.", passes ? "Passes" : "Breaks it",
             passes ? rule->example + 8 : rule->example, rule->source);
    sarif_text(json, "help", text);
}

static void sarif_rule(cli_json *json, const onx_rule *rule)
{
    static const char *const levels[] = { "none", "note", "warning", "error" };
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "id", rule->id);
    sarif_text(json, "shortDescription", onx_rule_group(rule));
    sarif_text(json, "fullDescription", rule->text);
    sarif_help(json, rule);
    cli_json_open(json, "defaultConfiguration", '{');
    cli_json_bool(json, "enabled", !(rule->flags & ONX_RULE_OFF));
    cli_json_cstr(json, "level", levels[rule->severity]);
    cli_json_close(json, '}');
    cli_json_open(json, "properties", '{');
    cli_json_cstr(json, "source", rule->source);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

static void sarif_rules(check_report *report)
{
    cli_json_open(&report->json, "rules", '[');
    for (uint32_t index = 1; index <= report->rules; index++)
        for (size_t i = 0; i < onx_rule_count(); i++)
            if (report->rule_index[i] == index)
                sarif_rule(&report->json, onx_rule_get(i));
    cli_json_close(&report->json, ']');
}

/* Writes a file name as a URI reference: all characters except plain ones are escaped. */
static void sarif_uri(cli_json *json, const char *file)
{
    char uri[3 * 4096 + 1];
    size_t n = 0;
    for (const char *p = file; *p && n + 4 < sizeof uri; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~/", c) != NULL;
        if (plain && c)
            uri[n++] = (char)c;
        else
            n += (size_t)snprintf(uri + n, sizeof uri - n, "%%%02X", c);
    }
    cli_json_text(json, "uri", onx_str_make(uri, n));
}

/* Converts a byte column to the character column that SARIF requires. If the line is not available, because it is very
 * long, the byte column is used. */
static uint32_t sarif_column(const onx_diag *d)
{
    uint32_t column = d->where.column ? d->where.column : 1, n = column;
    for (uint32_t i = 0; d->excerpt.len && i + 1 < column && i < d->excerpt.len; i++)
        n -= ((unsigned char)d->excerpt.ptr[i] & 0xc0) == 0x80;
    return n;
}

static void sarif_location(cli_json *json, const char *file, const onx_diag *d)
{
    const onx_where *where = &d->where;
    cli_json_open(json, "locations", '[');
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "physicalLocation", '{');
    cli_json_open(json, "artifactLocation", '{');
    sarif_uri(json, file);
    cli_json_close(json, '}');
    if (where->kind == ONX_AT_BYTE) {
        cli_json_open(json, "region", '{');
        cli_json_uint(json, "byteOffset", where->byte);
        cli_json_uint(json, "byteLength", 0);
        cli_json_close(json, '}');
    } else if (where->kind == ONX_AT_TEXT && where->line) {
        cli_json_open(json, "region", '{');
        cli_json_uint(json, "startLine", where->line);
        cli_json_uint(json, "startColumn", sarif_column(d));
        cli_json_close(json, '}');
    }
    cli_json_close(json, '}');
    if (where->path.len) {
        cli_json_open(json, "logicalLocations", '[');
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "fullyQualifiedName", where->path);
        cli_json_cstr(json, "kind", "element");
        cli_json_close(json, '}');
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
    cli_json_close(json, ']');
}

static void sarif_message(cli_json *json, const onx_diag *d)
{
    char text[2048];
    size_t n = 0;
    const struct {
        const char *lead;
        onx_str part;
    } parts[] = { { "", d->message }, { "; found ", d->value }, { "; expected ", d->expected }, { "; ", d->hint } };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].part.len && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", parts[i].lead, ONX_ARG(parts[i].part));
    cli_json_open(json, "message", '{');
    cli_json_text(json, "text", onx_str_make(text, n < sizeof text ? n : sizeof text - 1));
    cli_json_close(json, '}');
}

static void sarif_begin(check_report *report)
{
    cli_json *json = &report->json;
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    cli_json_cstr(json, "version", "2.1.0");
    cli_json_open(json, "runs", '[');
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "results", '[');
}

static void sarif_file(check_report *report, const check_result *r)
{
    cli_json *json = &report->json;
    for (size_t i = 0; i < onx_diag_count(report->call->cx); i++) {
        const onx_diag *d = onx_diag_get(report->call->cx, i);
        const onx_rule *rule = d->rule ? onx_rule_find(onx_str_of(d->rule)) : NULL;
        cli_json_open(json, NULL, '{');
        if (rule) {
            cli_json_cstr(json, "ruleId", rule->id);
            cli_json_int(json, "ruleIndex", rule_index(report, rule));
        }
        cli_json_cstr(json, "level", severity_name(d->severity));
        sarif_message(json, d);
        sarif_location(json, r->file, d);
        cli_json_close(json, '}');
    }
}

static void sarif_end(check_report *report)
{
    cli_json *json = &report->json;
    cli_json_close(json, ']');
    cli_json_open(json, "tool", '{');
    cli_json_open(json, "driver", '{');
    cli_json_cstr(json, "name", "onx");
    cli_json_cstr(json, "version", ONX_VERSION);
    sarif_rules(report);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
    cli_json_open(json, "invocations", '[');
    cli_json_open(json, NULL, '{');
    cli_json_bool(json, "executionSuccessful", !report->failed);
    cli_json_close(json, '}');
    cli_json_close(json, ']');
    cli_json_cstr(json, "columnKind", "unicodeCodePoints");
    cli_json_close(json, '}');
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

/* ---- text ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "3 errors, 1 warning, 0 notes" */
static void put_counts(FILE *to, const onx_check_summary *s)
{
    fprintf(to, "%zu error%s, %zu warning%s, %zu note%s", s->errors, plural(s->errors), s->warnings,
            plural(s->warnings), s->notes, plural(s->notes));
}

static void text_file(check_report *report, const check_result *r)
{
    const onx_check_summary *s = &r->summary;
    cli_style style = s->errors ? CLI_RED : s->warnings ? CLI_YELLOW : CLI_GREEN;
    if (r->exit_status == CLI_MISUSE) { /* nothing is known about its contents */
        cli_report(report->call);
        return;
    }
    cli_report_findings(report->call);
    if (cli_has(report->call, "quiet"))
        return;
    cli_put_text(stdout, onx_str_of(r->file));
    printf(": %s%s%s", cli_color(stdout, style), r->exit_status ? "invalid" : "valid", cli_color(stdout, CLI_PLAIN));
    if (s->errors || s->warnings || s->notes) {
        fputs(", ", stdout);
        put_counts(stdout, s);
    }
    if (!r->exit_status && r->open_types)
        fputs("; types and shapes were not checked (--full checks them)", stdout);
    putchar('\n');
}

static void text_total(const check_report *report)
{
    if (!report->several || cli_has(report->call, "quiet"))
        return;
    const uint64_t valid = report->files - report->invalid - report->unread;
    printf("%s file%s: %s valid, ", cli_thousands(report->files).text, plural(report->files),
           cli_thousands(valid).text);
    printf("%s invalid", cli_thousands(report->invalid).text);
    if (report->unread)
        printf(", %s unreadable", cli_thousands(report->unread).text);
    fputs("; ", stdout);
    put_counts(stdout, &report->total);
    putchar('\n');
}

/* Findings are printed on standard output; the failure is also reported on standard error, for users who only look
 * there. */
static void say_failure(const check_report *report, const char *file)
{
    if (!report->invalid || cli_has(report->call, "quiet"))
        return;
    if (report->several)
        cli_error(report->call, "%llu of %llu files %s invalid", (unsigned long long)report->invalid,
                  (unsigned long long)report->files, report->invalid == 1 ? "is" : "are");
    else
        cli_error(report->call, "%s is invalid", file);
}

/* ---- any format ---- */

bool check_report_begin(check_report *report, cli_call *call)
{
    const char *format = cli_value(call, "format");
    const bool json = cli_has(call, "json") || (format && strcmp(format, "json") == 0);
    *report = (check_report){ .call = call, .json = { .to = stdout } };
    report->format = json ? CHECK_JSON : format && strcmp(format, "sarif") == 0 ? CHECK_SARIF : CHECK_TEXT;
    report->several = call->operand_count > 1 || cli_is_folder(call->operand[0]);
    if (report->format == CHECK_JSON && report->several) {
        cli_json_open(&report->json, NULL, '{');
        cli_json_open(&report->json, "files", '[');
    } else if (report->format == CHECK_SARIF) {
        report->rule_index = calloc(onx_rule_count(), sizeof *report->rule_index);
        if (!report->rule_index) {
            cli_error(call, "out of memory");
            return false;
        }
        sarif_begin(report);
    }
    return true;
}

void check_report_file(check_report *report, const check_result *result)
{
    report->files++;
    report->invalid += result->exit_status == CLI_FAULT;
    report->unread += result->exit_status == CLI_MISUSE;
    report->failed |= !result->checked;
    report->total.errors += result->summary.errors;
    report->total.warnings += result->summary.warnings;
    report->total.notes += result->summary.notes;
    if (report->format == CHECK_TEXT) {
        text_file(report, result);
        if (!report->several)
            say_failure(report, result->file);
        return;
    }
    if (report->format == CHECK_JSON)
        json_file(report, result);
    else
        sarif_file(report, result);
    if (result->exit_status == CLI_MISUSE)
        cli_report(report->call);
}

void check_report_end(check_report *report)
{
    if (report->format == CHECK_JSON && report->several)
        json_total(report);
    else if (report->format == CHECK_SARIF)
        sarif_end(report);
    else if (report->format == CHECK_TEXT) {
        text_total(report);
        if (report->several)
            say_failure(report, "");
    }
    free(report->rule_index);
}
