/* cmd_check.c - `onx check`: reports the rules that ONNX files break, and explains the rules. */
#include "cli_check.h"
#include "cli_files.h"

#include <onx/text.h>

#include <stdlib.h>
#include <strings.h>

/* ---- explaining rules ---- */

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

/* Converts letters to capitals and pads a number of one digit with a zero, because people write "nd-4" for ND-04. False
 * if the word is too long to be a rule. */
static bool spell_rule(const char *word, char *out, size_t size)
{
    const char *dash = strchr(word, '-');
    const bool short_number = dash && dash[1] >= '0' && dash[1] <= '9' && !dash[2];
    const int n = short_number ? snprintf(out, size, "%.*s-0%s", (int)(dash - word), word, dash + 1)
                               : snprintf(out, size, "%s", word);
    for (char *p = out; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    return n > 0 && (size_t)n < size;
}

static const char *rule_candidate(const void *from, int index)
{
    (void)from;
    const onx_rule *rule = onx_rule_get((size_t)index);
    return rule ? rule->id : NULL;
}

/* The rule that was probably meant: the nearest one, or the last one of its group if the number is too large. */
static void suggest_rule(const char *word)
{
    char id[32];
    if (!spell_rule(word, id, sizeof id)) {
        cli_hint("--explain all prints every rule");
        return;
    }
    const size_t group = strcspn(id, "-");
    const onx_rule *last = NULL;
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        if (id[group] && strncmp(rule->id, id, group + 1) == 0)
            last = rule;
    }
    const char *nearest = onx_rule_find(onx_str_of(id)) ? id : last ? NULL : cli_nearest(id, rule_candidate, NULL);
    if (nearest)
        cli_hint("did you mean %s?", nearest);
    else if (last)
        cli_hint("the last rule about %s is %s; --explain %.*s prints them", onx_rule_group(last), last->id, (int)group,
                 last->id);
    else
        cli_hint("--explain all prints every rule");
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
    suggest_rule(id);
    return status;
}

/* ---- the command ---- */

/* A list "A,B,C" of all values of an option, in memory that stays allocated until the process ends. */
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
    { "checksums", ONX_CHECK_CHECKSUMS },
    { "structure", ONX_CHECK_STRUCTURE },
    { "quiet", ONX_CHECK_NO_NOTES },
};

/* Findings of the reader are counted with those of the checker; the context may have dropped some of them. */
static void add_readers(cli_call *call, check_result *r)
{
    size_t kept[3] = { 0, 0, 0 };
    size_t *const counts[3] = { &r->summary.notes, &r->summary.warnings, &r->summary.errors };
    for (size_t i = 0; i < onx_diag_count(call->cx); i++)
        kept[onx_diag_get(call->cx, i)->severity] +=
            !r->checked || onx_diag_get(call->cx, i)->where.kind == ONX_AT_BYTE;
    for (int s = 0; s < 3; s++)
        *counts[s] += kept[s];
}

typedef struct run {
    cli_call *call;
    const onx_check_options *options;
    check_report report;
    int status; /* the worst status of all files */
} run;

static void check_file(void *user, const char *path)
{
    run *all = user;
    cli_call *call = all->call;
    onx_doc *doc = NULL;
    check_result r = { .file = strcmp(path, "-") == 0 ? "standard input" : path };
    call->told = false;
    onx_status status = cli_load(call, path, cli_kind(call), &doc);
    if (status == ONX_OK) {
        r.checked = true;
        r.open_types = !(all->options->flags & ONX_CHECK_FULL) && onx_doc_model(doc);
        status = onx_check(call->cx, doc, all->options, &r.summary);
    }
    add_readers(call, &r);
    if (status == ONX_OK && all->options->flags & ONX_CHECK_STRICT && r.summary.warnings)
        status = ONX_E_INVALID; /* warnings from the reader */
    if (doc)
        (void)onx_text_locate(doc, 0); /* when this runs out of memory, findings have paths but no lines */
    r.exit_status = cli_exit(call, status);
    call->input = r.file;
    check_report_file(&all->report, &r);
    all->status = r.exit_status > all->status ? r.exit_status : all->status;
    onx_diag_clear(call->cx);
    onx_doc_free(doc);
}

/* The extensions that a folder is searched for: those used only for models. */
static bool is_model(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".onnx") == 0 || strcmp(dot, ".onnxtxt") == 0);
}

static int check_all(cli_call *call, onx_check_options *o)
{
    run all = { .call = call, .options = o };
    if (!check_report_begin(&all.report, call))
        return CLI_MISUSE;
    for (int i = 0; i < call->operand_count; i++) {
        uint64_t before = all.report.files;
        if (!cli_each_file(call, call->operand[i], is_model, check_file, &all))
            all.status = CLI_MISUSE;
        else if (all.report.files == before)
            all.status = cli_error(call, "%s: the folder contains no .onnx or .onnxtxt file", call->operand[i]);
    }
    check_report_end(&all.report);
    call->input = NULL;
    return all.status;
}

static int run_check(cli_call *call)
{
    if (cli_has(call, "explain"))
        return explain(call, cli_value(call, "explain"));
    if (!call->operand_count)
        return cli_error(call, "give a file or a folder, or --explain RULE");
    const char *format = cli_value(call, "format");
    if (format && strcmp(format, "markdown") == 0)
        return cli_error(call, "--format markdown needs --explain all");
    onx_check_options o = { .flags = 0 };
    uint64_t ir_version = 0, max_errors = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (cli_has(call, flags[i].option))
            o.flags |= flags[i].flag;
    if (!cli_has(call, "strict-opset"))
        o.flags |= ONX_CHECK_NEWER_OPSETS;
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
        status = check_all(call, &o);
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
    { "strict", 0, NULL, NULL, "treat warnings as errors, and report names that are no C identifiers" },
    { "only", 0, "RULE,...", NULL, "apply only these rules or groups of rules" },
    { "ignore", 0, "RULE,...", NULL, "skip these rules or groups of rules" },
    { "max-errors", 0, "N", NULL, "how many findings of each severity are shown (1000)" },
    { "quiet", 'q', NULL, NULL, "no notes and no summary" },
    { "pedantic", 0, NULL, NULL, "also print notes that are off by default" },
    { "format", 0, "FORMAT", "text|json|sarif|markdown", "how findings are printed; markdown is for --explain all" },
    CLI_OPTION_JSON,
    { "explain", 0, "RULE", NULL, "print a rule, a group of rules, or all of them" },
    CLI_OPTION_AS,
    { "ir-version", 0, "N", NULL, "with --as: the IR version of the model around the part" },
    { "opset", 0, "DOMAIN=N", NULL, "with --as: an operator set that the model imports; may be repeated" },
    { "custom-domains", 0, NULL, NULL, "operators of other domains must be known" },
    { "skip-opset-compatibility", 0, NULL, NULL, "functions may import other versions than the model" },
    { "strict-opset", 0, NULL, NULL, "an operator set or IR version newer than the newest known is an error" },
    { "checksums", 0, NULL, NULL, "read external data and verify its checksums" },
    { "structure", 0, NULL, NULL, "errors only, as fast as possible" },
    CLI_END,
};

const cli_command cmd_check = {
    .name = "check",
    .summary = "check a model against the rules of ONNX",
    .operands = "[FILE...]",
    .help = "Checks all rules and reports every finding with the rule that it violates, ordered by place, on\n"
            "standard output. Exit status 1 means that there are errors, 2 that a file could not be read. Rules\n"
            "have stable ids; --explain T-04 prints one, --explain T a group. Findings in ONNX text also have\n"
            "line and column. For a folder, all .onnx and .onnxtxt files in it and in its subfolders are checked,\n"
            "except hidden ones; links to folders are not followed.\n",
    .example = "onx check model.onnx\n"
               "onx check --full models/ | grep ND-20\n"
               "onx check --full --format sarif model.onnx > findings.sarif\n"
               "onx check --as node --opset =17 --ir-version 8 node.pb\n"
               "onx check --explain T-04\n",
    .options = options,
    .run = run_check,
};
