/* cmd_check.c - `onx check`: which rules of ONNX a file breaks, as text, JSON or SARIF; and what the rules are. */
#include "cli_opsets.h"

#include <onx/check.h>
#include <onx/text.h>

#include <stdlib.h>
#include <strings.h>

/* ---- rules explained ---- */

static const char *level_name(const onx_rule *rule)
{
    static const char *const names[] = { "MUST", "SHOULD", "MAY" };
    return names[rule->level];
}

static const char *rule_severity(const onx_rule *rule)
{
    static const char *const names[] = { "none", "note", "warning", "error" };
    return names[rule->severity];
}

static const char *checked_by(const onx_rule *rule)
{
    static const char *const names[] = {
        "onx check",
        "onx check --full",
        "reading the file",
        "writing a file",
        "running the model",
        "comparing two files",
        "every part; there is nothing to report",
        "registering operators",
    };
    return names[rule->by];
}

static void explain_text(const onx_rule *rule)
{
    printf("%s%s%s  %s%s, %s%s\n", cli_color(stdout, CLI_BOLD), rule->id, cli_color(stdout, CLI_PLAIN),
           onx_rule_group(rule), rule->flags & ONX_RULE_DERIVED ? " (derived)" : "", rule_severity(rule),
           rule->flags & ONX_RULE_OFF ? ", off by default" : "");
    printf("  %s: %s.\n", level_name(rule), rule->text);
    printf("  source:     %s\n", rule->source);
    printf("  checked by: %s\n", checked_by(rule));
    if (rule->see)
        printf("  reported as %s\n", rule->see);
    const char *example = rule->example;
    bool passes = strncmp(example, "accept: ", 8) == 0;
    if (strcmp(example, "n/a") != 0)
        printf("  %s  %s\n", passes ? "passes:   " : "breaks it:", passes ? example + 8 : example);
}

static void explain_json(cli_json *json, const onx_rule *rule)
{
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "id", rule->id);
    cli_json_cstr(json, "group", onx_rule_group(rule));
    cli_json_cstr(json, "level", level_name(rule));
    cli_json_bool(json, "derived", (rule->flags & ONX_RULE_DERIVED) != 0);
    cli_json_cstr(json, "severity", rule_severity(rule));
    cli_json_bool(json, "on", !(rule->flags & ONX_RULE_OFF));
    cli_json_cstr(json, "by", checked_by(rule));
    cli_json_cstr(json, "reported_as", rule->see ? rule->see : rule->id);
    cli_json_cstr(json, "source", rule->source);
    cli_json_cstr(json, "text", rule->text);
    cli_json_cstr(json, "example", rule->example);
    cli_json_close(json, '}');
}

/* A cell of a Markdown table. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
    fputs(" | ", stdout);
}

static void explain_markdown(void)
{
    const char *group = "";
    puts("# Rules\n");
    puts(
        "What `onx check` and the readers hold a file to. This page is printed from the rule tables by `onx check --explain all "
        "--format markdown`.");
    puts(
        "A star after the level: the rule follows from the documents or from safety and is not stated there literally.");
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        if (strcmp(group, onx_rule_group(rule)) != 0) {
            group = onx_rule_group(rule);
            printf(
                "\n## %s\n\n| id | level | severity | rule | breaks it, or has to pass | source | checked by |\n|---|---|---|---|---|---|---|\n",
                group);
        }
        printf("| %s | %s%s | %s%s | ", rule->id, level_name(rule), rule->flags & ONX_RULE_DERIVED ? "\\*" : "",
               rule_severity(rule), rule->flags & ONX_RULE_OFF ? " (off)" : "");
        put_cell(rule->text);
        put_cell(rule->example);
        put_cell(rule->source);
        printf("%s%s%s |\n", checked_by(rule), rule->see ? ", as " : "", rule->see ? rule->see : "");
    }
}

static const char *rule_candidate(const void *from, int index)
{
    (void)from;
    const onx_rule *rule = onx_rule_get((size_t)index);
    return rule ? rule->id : NULL;
}

static int explain(cli_call *call, const char *id)
{
    const char *format = cli_value(call, "format");
    bool json_wanted = cli_has(call, "json") || (format && strcmp(format, "json") == 0), all = strcmp(id, "all") == 0;
    if (call->operand_count)
        return cli_error(call, "--explain takes no file");
    if (all && format && strcmp(format, "markdown") == 0) {
        explain_markdown();
        return CLI_OK;
    }
    cli_json json = { .to = stdout };
    bool found = false;
    size_t n = strlen(id);
    if (json_wanted)
        cli_json_open(&json, NULL, '[');
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        bool group = strncasecmp(rule->id, id, n) == 0 && rule->id[n] == '-';
        if (!all && !group && strcasecmp(rule->id, id) != 0)
            continue;
        if (json_wanted) {
            explain_json(&json, rule);
        } else {
            if (found)
                putchar('\n');
            explain_text(rule);
        }
        found = true;
    }
    if (json_wanted)
        cli_json_close(&json, ']');
    if (found)
        return CLI_OK;
    int status = cli_error(call, "there is no rule %s", id);
    const char *nearest = cli_nearest(id, rule_candidate, NULL);
    if (nearest)
        cli_hint("did you mean %s?", nearest);
    return status;
}

/* ---- results ---- */

typedef struct result {
    const char *file;
    onx_check_summary summary;
    bool checked; /* false when the file could not even be read */
} result;

static const char *severity_name(onx_severity severity)
{
    static const char *const names[] = { "note", "warning", "error" };
    return names[severity];
}

static void print_json(cli_call *call, const result *r)
{
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "file", r->file);
    cli_json_bool(&json, "valid", !r->summary.errors);
    cli_json_uint(&json, "errors", r->summary.errors);
    cli_json_uint(&json, "warnings", r->summary.warnings);
    cli_json_uint(&json, "notes", r->summary.notes);
    cli_json_open(&json, "findings", '[');
    for (size_t i = 0; i < onx_diag_count(call->cx); i++) {
        const onx_diag *d = onx_diag_get(call->cx, i);
        cli_json_open(&json, NULL, '{');
        cli_json_cstr(&json, "rule", d->rule);
        cli_json_cstr(&json, "severity", severity_name(d->severity));
        if (d->where.path.len)
            cli_json_text(&json, "path", d->where.path);
        if (d->where.kind == ONX_AT_BYTE)
            cli_json_uint(&json, "byte", d->where.byte);
        if (d->where.kind == ONX_AT_TEXT) {
            cli_json_uint(&json, "line", d->where.line);
            cli_json_uint(&json, "column", d->where.column);
        }
        cli_json_text(&json, "message", d->message);
        if (d->value.len)
            cli_json_text(&json, "value", d->value);
        if (d->expected.len)
            cli_json_text(&json, "expected", d->expected);
        if (d->hint.len)
            cli_json_text(&json, "hint", d->hint);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* ---- SARIF 2.1.0 ---- */

/* Position of a rule among those that results refer to; rules of the run are listed in the order of all rules. */
static int64_t rule_index(const bool *used, const onx_rule *rule)
{
    int64_t n = 0;
    for (size_t i = 0; i < onx_rule_count(); i++) {
        if (onx_rule_get(i) == rule)
            return n;
        n += used[i];
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

static void sarif_rules(cli_json *json, const bool *used)
{
    static const char *const levels[] = { "none", "note", "warning", "error" };
    cli_json_open(json, "rules", '[');
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        if (!used[i])
            continue;
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
    cli_json_close(json, ']');
}

/* A file name as a URI reference: everything but plain characters is escaped. */
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

/* Columns of SARIF are characters, ours bytes. Without the line, which is left out where it is very long, they count
 * as they are. */
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

static int print_sarif(cli_call *call, const result *r)
{
    bool *used = calloc(onx_rule_count(), sizeof *used);
    cli_json json = { .to = stdout };
    if (!used)
        return cli_error(call, "out of memory");
    for (size_t i = 0; i < onx_diag_count(call->cx); i++)
        for (size_t j = 0; j < onx_rule_count(); j++)
            if (onx_diag_get(call->cx, i)->rule && strcmp(onx_diag_get(call->cx, i)->rule, onx_rule_get(j)->id) == 0)
                used[j] = true;
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    cli_json_cstr(&json, "version", "2.1.0");
    cli_json_open(&json, "runs", '[');
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "tool", '{');
    cli_json_open(&json, "driver", '{');
    cli_json_cstr(&json, "name", "onx");
    cli_json_cstr(&json, "version", ONX_VERSION);
    sarif_rules(&json, used);
    cli_json_close(&json, '}');
    cli_json_close(&json, '}');
    cli_json_open(&json, "invocations", '[');
    cli_json_open(&json, NULL, '{');
    cli_json_bool(&json, "executionSuccessful", r->checked);
    cli_json_close(&json, '}');
    cli_json_close(&json, ']');
    cli_json_open(&json, "results", '[');
    for (size_t i = 0; i < onx_diag_count(call->cx); i++) {
        const onx_diag *d = onx_diag_get(call->cx, i);
        const onx_rule *rule = d->rule ? onx_rule_find(onx_str_of(d->rule)) : NULL;
        cli_json_open(&json, NULL, '{');
        if (rule) {
            cli_json_cstr(&json, "ruleId", rule->id);
            cli_json_int(&json, "ruleIndex", rule_index(used, rule));
        }
        cli_json_cstr(&json, "level", severity_name(d->severity));
        sarif_message(&json, d);
        sarif_location(&json, r->file, d);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_cstr(&json, "columnKind", "unicodeCodePoints");
    cli_json_close(&json, '}');
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    free(used);
    return CLI_OK;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void print_summary(cli_call *call, const result *r)
{
    const onx_check_summary *s = &r->summary;
    cli_style style = s->errors ? CLI_RED : s->warnings ? CLI_YELLOW : CLI_GREEN;
    (void)call;
    printf("%s: %s%s%s", r->file, cli_color(stdout, style), s->errors ? "invalid" : "valid",
           cli_color(stdout, CLI_PLAIN));
    if (s->errors || s->warnings || s->notes)
        printf(", %zu error%s, %zu warning%s, %zu note%s", s->errors, plural(s->errors), s->warnings,
               plural(s->warnings), s->notes, plural(s->notes));
    putchar('\n');
}

/* ---- the call ---- */

/* Lists "A,B,C" of all values of an option, in memory that lives as long as the process needs it. */
static bool read_list(const cli_call *call, const char *option, char **text_out, const char ***list_out,
                      size_t *count_out)
{
    size_t size = 1, commas = 0;
    const char *value;
    for (int i = 0; (value = cli_value_at(call, option, i)); i++) {
        size += strlen(value) + 1;
        commas += 1;
        for (const char *p = value; *p; p++)
            commas += *p == ',';
    }
    *count_out = 0;
    if (!commas)
        return true;
    char *text = malloc(size);
    const char **list = malloc((commas + 1) * sizeof *list);
    *text_out = text;
    *list_out = list;
    if (!text || !list)
        return false;
    for (int i = 0; (value = cli_value_at(call, option, i)); i++) {
        size_t n = strlen(value) + 1;
        memcpy(text, value, n);
        for (char *p = text; p;) {
            char *comma = strchr(p, ',');
            if (comma)
                *comma++ = 0;
            if (*p)
                list[(*count_out)++] = p;
            p = comma;
        }
        text += n;
    }
    return true;
}

/* --opset DOMAIN=N, =N or N. */
static bool read_opsets(cli_call *call, onx_arena *arena, onx_check_options *o)
{
    int count = 0;
    while (cli_value_at(call, "opset", count))
        count++;
    if (!count)
        return true;
    onx_operator_set_id **list = onx_arena_alloc(arena, (size_t)count * sizeof *list);
    if (!list)
        return false;
    for (int i = 0; i < count; i++) {
        onx_str domain;
        int64_t version;
        if (cli_named_number(call, "opset", i, true, &domain, &version) < 0)
            return false;
        list[i] = onx_message_new(arena, ONX_KIND_OPERATOR_SET_ID);
        if (!list[i] || onx_arena_keep(arena, domain, &list[i]->domain) != ONX_OK)
            return false;
        list[i]->has |= onx_operator_set_id_has_domain;
        ONX_SET(operator_set_id, list[i], version, version);
    }
    o->opset_import = list;
    o->opset_import_count = (size_t)count;
    return true;
}

static const struct {
    const char *option;
    uint32_t flag;
} flags[] = {
    { "full", ONX_CHECK_FULL },
    { "strict", ONX_CHECK_STRICT },
    { "pedantic", ONX_CHECK_PEDANTIC },
    { "custom-domains", ONX_CHECK_CUSTOM_DOMAINS },
    { "skip-opset-compatibility", ONX_CHECK_SKIP_OPSET_COMPATIBILITY },
    { "newer-opsets", ONX_CHECK_NEWER_OPSETS },
    { "checksums", ONX_CHECK_CHECKSUMS },
    { "structure", ONX_CHECK_STRUCTURE },
    { "quiet", ONX_CHECK_NO_NOTES },
};

static int finish(cli_call *call, result *r, onx_status status)
{
    const char *format = cli_value(call, "format");
    int exit_status = cli_exit(call, status);
    call->input = r->file;
    if (cli_has(call, "json") || (format && strcmp(format, "json") == 0)) {
        print_json(call, r);
    } else if (format && strcmp(format, "sarif") == 0) {
        int failed = print_sarif(call, r);
        if (failed)
            return failed;
    } else {
        cli_report_grouped(call);
        if (!cli_has(call, "quiet") && exit_status != CLI_MISUSE)
            print_summary(call, r);
        return exit_status;
    }
    if (exit_status == CLI_MISUSE)
        cli_report(call);
    onx_diag_clear(call->cx);
    return exit_status;
}

/* Findings of the reader are counted with those of the checker, of which some may not have been kept. */
static void add_readers(cli_call *call, result *r)
{
    size_t kept[3] = { 0, 0, 0 };
    size_t *const counts[3] = { &r->summary.notes, &r->summary.warnings, &r->summary.errors };
    for (size_t i = 0; i < onx_diag_count(call->cx); i++)
        kept[onx_diag_get(call->cx, i)->severity] +=
            !r->checked || onx_diag_get(call->cx, i)->where.kind == ONX_AT_BYTE;
    for (int s = 0; s < 3; s++)
        *counts[s] += kept[s];
}

static int check_file(cli_call *call, onx_check_options *o)
{
    cli_opsets docs = { .count = 0 };
    onx_doc *doc = NULL;
    result r = { .file = call->operand[0] };
    onx_status status = cli_opsets_open(call, &docs);
    if (status != ONX_OK)
        r.file = call->input ? call->input : r.file;
    o->registry = docs.registry;
    size_t before = onx_diag_count(call->cx);
    if (status == ONX_OK)
        status = cli_load(call, call->operand[0], cli_kind(call), &doc);
    if (status == ONX_OK) {
        r.checked = true;
        status = onx_check(call->cx, doc, o, &r.summary);
    }
    add_readers(call, &r);
    if (status == ONX_OK && o->flags & ONX_CHECK_STRICT && r.summary.warnings)
        status = ONX_E_INVALID; /* warnings of the reader */
    if (doc)
        (void)onx_text_locate(doc, before); /* without memory findings have their paths alone */
    int exit_status = finish(call, &r, status);
    onx_doc_free(doc);
    cli_opsets_close(&docs);
    return exit_status;
}

static int run_check(cli_call *call)
{
    if (cli_has(call, "explain"))
        return explain(call, cli_value(call, "explain"));
    if (call->operand_count != 1)
        return cli_error(call, "give one file, or --explain RULE");
    const char *format = cli_value(call, "format");
    if (format && strcmp(format, "markdown") == 0)
        return cli_error(call, "--format markdown goes with --explain all");
    onx_check_options o = { .flags = 0 };
    uint64_t ir_version = 0, max_errors = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (cli_has(call, flags[i].option))
            o.flags |= flags[i].flag;
    if (!cli_number(call, "ir-version", 1, INT64_MAX, &ir_version) ||
        !cli_number(call, "max-errors", 1, 1u << 30, &max_errors))
        return CLI_MISUSE;
    o.ir_version = (int64_t)ir_version;
    o.max_errors = (uint32_t)max_errors;
    onx_limits limits = onx_ctx_limits(call->cx);
    if (3 * max_errors > limits.diagnostics) {
        limits.diagnostics = (uint32_t)(3 * max_errors < UINT32_MAX ? 3 * max_errors : UINT32_MAX);
        onx_ctx_set_limits(call->cx, limits);
    }
    char *texts[2] = { NULL, NULL };
    const char **only = NULL, **ignore = NULL;
    onx_arena *arena = NULL;
    int status = CLI_MISUSE;
    if (!read_list(call, "only", &texts[0], &only, &o.only_count) ||
        !read_list(call, "ignore", &texts[1], &ignore, &o.ignore_count) || onx_arena_new(call->cx, &arena) != ONX_OK)
        status = cli_error(call, "out of memory");
    else if (read_opsets(call, arena, &o)) {
        o.only = only;
        o.ignore = ignore;
        status = check_file(call, &o);
    }
    onx_arena_free(arena);
    free(texts[0]);
    free(texts[1]);
    free(only);
    free(ignore);
    return status;
}

static const cli_option options[] = {
    { "full", 0, NULL, NULL, "infer types and shapes as well, strictly" },
    { "strict", 0, NULL, NULL, "take warnings for errors, and names that are no C identifiers, too" },
    { "only", 0, "RULE,...", NULL, "apply these rules or groups of rules alone" },
    { "ignore", 0, "RULE,...", NULL, "leave these rules or groups of rules out" },
    { "max-errors", 0, "N", NULL, "how many findings of each severity are shown (1000)" },
    { "quiet", 'q', NULL, NULL, "no notes and no summary" },
    { "pedantic", 0, NULL, NULL, "notes that are off by default, too" },
    { "format", 0, "FORMAT", "text|json|sarif|markdown", "how findings are printed; markdown is for --explain all" },
    CLI_OPTION_JSON,
    { "explain", 0, "RULE", NULL, "print a rule, a group of rules, or all of them" },
    CLI_OPTION_AS,
    { "ir-version", 0, "N", NULL, "with --as: the IR version of the model around the part" },
    { "opset", 0, "DOMAIN=N", NULL, "with --as: an operator set that the model imports; may be repeated" },
    CLI_OPTION_OPSET_DOC,
    { "custom-domains", 0, NULL, NULL, "operators of other domains have to be known" },
    { "skip-opset-compatibility", 0, NULL, NULL, "functions may import other versions than the model" },
    { "newer-opsets", 0, NULL, NULL, "only warn about operator sets newer than the newest known" },
    { "checksums", 0, NULL, NULL, "read external data and verify its checksums" },
    { "structure", 0, NULL, NULL, "errors only, as quickly as can be" },
    CLI_END,
};

const cli_command cmd_check = {
    .name = "check",
    .summary = "find what breaks the rules of ONNX",
    .operands = "[FILE]",
    .help = "Checks everything and reports every finding with the rule it breaks, in order of place. Exit status 1\n"
            "means that there are errors. Rules have stable ids; --explain T-04 prints one, --explain T a group.\n"
            "What is found in ONNX text has line and column, too.\n",
    .example = "onx check model.onnx\n"
               "onx check --full --format sarif model.onnx > findings.sarif\n"
               "onx check --as node --opset =17 --ir-version 8 node.pb\n"
               "onx check --explain T-04\n",
    .options = options,
    .run = run_check,
};
