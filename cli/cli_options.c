/* cli_options.c - parses the command line according to the option tables of the commands. */
#include "cli.h"

#include <onx/grad.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const cli_option cli_common_options[] = {
    /* first in the table, because commands that run models have their own --timeout (cli_common_of) */
    { "timeout", 0, "SECONDS", NULL, "end the command when it takes longer" },
    { "help", 'h', NULL, NULL, "show this help" },
    { "color", 0, "WHEN", "auto|always|never", "colours; auto: on a terminal, unless NO_COLOR is set" },
    { "external-dir", 0, "DIR", NULL, "folder of the external data of models, if it is not beside them" },
    { "external-links", 0, NULL, NULL,
      "follow links to external data, as model caches have them; only for models that you trust" },
    /* clang-format off */
    { "library", 0, "FILE", NULL, "shared library with custom operators; may be repeated" },
    { "opset-doc", 0, "FILE", NULL, "operator-set document of a custom domain or a newer operator set; may be repeated" },
    /* clang-format on */
    { "max-memory", 0, "SIZE", NULL, "maximum memory of models, without mapped files (8G)" },
    { "max-depth", 0, "N", NULL, "maximum nesting of messages, types and subgraphs (100)" },
    CLI_END
};

/* ---- looking up ---- */

static const cli_option *find_name(const cli_option *options, const char *name, size_t len)
{
    for (; options && options->name; options++)
        if (strlen(options->name) == len && memcmp(options->name, name, len) == 0)
            return options;
    return NULL;
}

const cli_option *cli_common_of(const cli_command *command)
{
    return cli_common_options +
           (find_name(command->options, cli_common_options->name, strlen(cli_common_options->name)) != NULL);
}

bool cli_knows_option(const cli_command *command, const char *name)
{
    return find_name(command->options, name, strlen(name)) || find_name(cli_common_options, name, strlen(name));
}

static const cli_option *find_letter(const cli_option *options, char letter)
{
    for (; options && options->name; options++)
        if (options->letter == letter)
            return options;
    return NULL;
}

const char *cli_value_at(const cli_call *call, const char *name, int index)
{
    for (int i = 0; i < call->given_count; i++)
        if (strcmp(call->given[i]->name, name) == 0 && index-- == 0)
            return call->given_value[i];
    return NULL;
}

bool cli_has(const cli_call *call, const char *name)
{
    return cli_value_at(call, name, 0) != NULL;
}

const char *cli_value(const cli_call *call, const char *name)
{
    const char *last = NULL;
    for (int i = 0; i < call->given_count; i++)
        if (strcmp(call->given[i]->name, name) == 0)
            last = call->given_value[i];
    return last;
}

/* ---- suggestions for misspelled words ---- */

/* Edit distance: the number of letters to change, insert, delete or swap with a neighbour; words are cut to 31
 * letters. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    unsigned d[MOST + 1][MOST + 1];
    size_t n = strlen(a) < MOST ? strlen(a) : MOST, m = strlen(b) < MOST ? strlen(b) : MOST;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *cli_nearest(const char *word, const char *(*candidate)(const void *from, int index), const void *from)
{
    const char *best = NULL, *name;
    unsigned least = (unsigned)strlen(word) / 3 + 1;
    for (int i = 0; (name = candidate(from, i)) != NULL; i++) {
        unsigned d = distance(word, name);
        /* A prefix of a name counts as one edit: "conv" for "convert". */
        if (strlen(word) > 1 && strncmp(name, word, strlen(word)) == 0 && d > 1)
            d = 1;
        if (d <= least && (!best || d < least)) {
            best = name;
            least = d;
        }
    }
    return best;
}

static const char *option_name(const void *from, int index)
{
    const cli_command *command = from;
    int count = 0;
    for (const cli_option *o = command->options; o && o->name; o++, count++)
        if (count == index)
            return o->name;
    for (const cli_option *o = cli_common_of(command); o->name; o++, count++)
        if (count == index)
            return o->name;
    return NULL;
}

/* ---- operands ---- */

/* The number of operands that "IN OUT", "[NAME]" or "DIR..." allows; *most is -1 for any number. */
static void operand_range(const char *spec, int *least, int *most)
{
    *least = *most = 0;
    while (*spec) {
        size_t len = strcspn(spec, " ");
        if (spec[0] != '[')
            *least += 1;
        bool many = strstr(spec, "...") != NULL && strstr(spec, "...") < spec + len;
        *most = many || *most < 0 ? -1 : *most + 1;
        spec += len;
        spec += strspn(spec, " ");
    }
}

static int check_operands(const cli_call *call)
{
    const cli_command *command = call->command;
    int least, most;
    operand_range(command->operands, &least, &most);
    if (call->operand_count >= least && (most < 0 || call->operand_count <= most))
        return -1;
    if (call->operand_count < least)
        cli_error(call, "%s missing", call->operand_count ? "an operand is" : command->operands);
    else
        cli_error(call, "one operand too many: \"%s\"", call->operand[most]);
    cli_hint("usage: onx %s [option...]%s%s", command->name, most ? " " : "", command->operands);
    return CLI_MISUSE;
}

/* ---- values ---- */

typedef struct choice_words {
    char words[32][24];
} choice_words;

static const char *choice_at(const void *from, int index)
{
    const choice_words *choices = from;
    return index < 32 && choices->words[index][0] ? choices->words[index] : NULL;
}

static int check_choice(const cli_call *call, const cli_option *option, const char *value)
{
    choice_words choices = { 0 };
    size_t count = 0;
    for (const char *at = option->choices; *at && count < 32; at += strcspn(at, "|"), at += *at == '|')
        snprintf(choices.words[count++], sizeof(choices.words[0]), "%.*s", (int)strcspn(at, "|"), at);
    for (size_t i = 0; i < count; i++)
        if (strcmp(choices.words[i], value) == 0)
            return -1;
    cli_error(call, "--%s cannot be \"%s\"", option->name, value);
    const char *near = cli_nearest(value, choice_at, &choices);
    if (near)
        cli_hint("did you mean \"%s\"? the value has to be one of %s", near, option->choices);
    else
        cli_hint("the value has to be one of %s", option->choices);
    return CLI_MISUSE;
}

bool cli_number(const cli_call *call, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
    const char *text = cli_value(call, name);
    if (!text)
        return true;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    bool good = errno == 0 && text[0] >= '0' && text[0] <= '9';
    const char *units = "KMGT", *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (good && unit) {
        unsigned shift = 10u * (unsigned)(unit - units + 1);
        good = number <= UINT64_MAX >> shift;
        number = good ? number << shift : 0;
        end++;
    }
    if (!good || *end) {
        cli_error(call, "--%s needs a number, not \"%s\"", name, text);
        return false;
    }
    if (number < min || number > max) {
        cli_error(call, "--%s %s is not in the range %llu to %llu", name, text, (unsigned long long)min,
                  (unsigned long long)max);
        return false;
    }
    *out = number;
    return true;
}

bool cli_real(const cli_call *call, const char *name, double min, double max, double *out)
{
    const char *text = cli_value(call, name);
    if (!text)
        return true;
    char *end;
    const double number = strtod(text, &end);
    const bool decimal = strspn(text, "0123456789.eE+-") == strlen(text) && text[0] != '-' && text[0] != '+';
    if (!decimal || end == text || *end || !isfinite(number)) {
        cli_error(call, "--%s needs a number of at least %g, not \"%s\"", name, min, text);
        return false;
    }
    if (number < min || number > max) {
        cli_error(call, "--%s %s is not in the range %g to %g", name, text, min, max);
        return false;
    }
    *out = number;
    return true;
}

bool cli_checkpoint(const cli_call *call, int32_t *out)
{
    const char *text = cli_value(call, "checkpoint");
    uint64_t number = 0;
    if (!text)
        return true;
    if (strcmp(text, "sqrt") != 0 && !cli_number(call, "checkpoint", 1, INT32_MAX, &number))
        return false;
    *out = number ? (int32_t)number : ONX_GRAD_CHECKPOINT_SQRT;
    return true;
}

/* Parses decimal digits only, up to 2^63 - 1. */
static bool whole_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    *out = number;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* Splits "NAME=N" at the last '='; without '=' the whole text is the number. */
static onx_str name_of_pair(const char *text, const char **number)
{
    const char *at = strrchr(text, '=');
    *number = at ? at + 1 : text;
    return onx_str_make(text, at ? (size_t)(at - text) : 0);
}

int cli_named_number(const cli_call *call, const char *option, int index, bool unnamed, onx_str *name, int64_t *number)
{
    const char *text = cli_value_at(call, option, index), *digits, *other;
    if (!text)
        return 0;
    *name = name_of_pair(text, &digits);
    if (!name->len && !unnamed) {
        cli_error(call, "--%s needs NAME=N, not \"%s\"", option, text);
        return -1;
    }
    if (!whole_number(digits, number)) {
        cli_error(call, "--%s %s: N has to be a number from 0 to 2^63 - 1", option, text);
        return -1;
    }
    for (int i = 0; i < index; i++)
        if (onx_str_equal(name_of_pair(cli_value_at(call, option, i), &other), *name)) {
            cli_error(call, "--%s is given twice for \"%.*s\"", option, ONX_ARG(*name));
            return -1;
        }
    return 1;
}

onx_kind cli_kind(const cli_call *call)
{
    const char *word = cli_value(call, "as");
    return word ? onx_kind_find(onx_str_of(word)) : ONX_KIND_MODEL;
}

bool cli_split(const cli_call *call, const char *option, const char *text, onx_str *name, const char **rest)
{
    const char *at = strrchr(text, '=');
    if (!at || at == text) {
        cli_error(call, "--%s needs NAME=VALUE, not \"%s\"", option, text);
        return false;
    }
    *name = onx_str_make(text, (size_t)(at - text));
    *rest = at + 1;
    return true;
}

/* ---- parsing ---- */

static int no_option(const cli_call *call, const char *word, size_t len)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", len < 60 ? (int)len : 60, word);
    cli_error(call, "no option %s%s", strlen(name) == 1 ? "-" : "--", name);
    const char *near = strlen(name) > 1 ? cli_nearest(name, option_name, call->command) : NULL;
    if (near)
        cli_hint("did you mean --%s?", near);
    else
        cli_hint("\"onx %s --help\" lists the options", call->command->name);
    return CLI_MISUSE;
}

/* Parses the option at argv[*at] and its value. */
static int parse_option(cli_call *call, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *value = NULL;
    const cli_option *option;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        option = find_name(call->command->options, word + 2, len);
        if (!option)
            option = find_name(cli_common_options, word + 2, len);
        if (!option)
            return no_option(call, word + 2, len);
        if (word[2 + len] == '=')
            value = word + 2 + len + 1;
    } else {
        option = find_letter(call->command->options, word[1]);
        if (!option)
            option = find_letter(cli_common_options, word[1]);
        if (!option)
            return no_option(call, word + 1, 1);
        if (word[2] != '\0')
            value = word + 2;
    }
    if (!option->value && value)
        return cli_error(call, "--%s takes no value", option->name);
    if (option->value && !value) {
        if (*at + 1 >= argc)
            return cli_error(call, "--%s needs a value: %s", option->name, option->value);
        value = argv[++*at];
    }
    if (option->choices && check_choice(call, option, value) >= 0)
        return CLI_MISUSE;
    call->given[call->given_count] = option;
    call->given_value[call->given_count++] = value ? value : "";
    return -1;
}

static int apply_common(cli_call *call)
{
    if (cli_value(call, "color"))
        cli_set_color(cli_value(call, "color"));
    onx_limits limits = onx_ctx_limits(call->cx);
    uint64_t depth = limits.depth;
    if (!cli_number(call, "max-memory", 1, UINT64_MAX, &limits.memory) ||
        !cli_number(call, "max-depth", 1, ONX_DEPTH_MAX, &depth))
        return CLI_MISUSE;
    limits.depth = (uint32_t)depth;
    onx_ctx_set_limits(call->cx, limits);
    double seconds = 0;
    if (cli_common_of(call->command) == cli_common_options && cli_has(call, "timeout") && !cli_has(call, "help") &&
        (!cli_real(call, "timeout", 1e-6, 1e9, &seconds) || !cli_deadline_begin(call, seconds)))
        return CLI_MISUSE;
    if (cli_has(call, "help")) {
        cli_print_help(call->command, stdout);
        return CLI_OK;
    }
    return check_operands(call);
}

int cli_parse(cli_call *call, int argc, char **argv)
{
    bool options = true;
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            int status = parse_option(call, argc, argv, &i);
            if (status >= 0)
                return status;
        } else {
            call->operand[call->operand_count++] = argv[i];
        }
    }
    return apply_common(call);
}

/* ---- exit status ---- */

int cli_exit(cli_call *call, onx_status status)
{
    /* Every failure should leave a diagnostic; if one does not, the kind of failure is printed. Standard output that
     * its reader has closed is checked when the program ends. */
    if (status != ONX_OK && !call->told && !cli_said_error() && !onx_diag_total(call->cx, ONX_ERROR) && !ferror(stdout))
        cli_error(call, "%s", onx_status_text(status));
    switch (status) {
    case ONX_OK:
        return CLI_OK;
    case ONX_E_IO:
    case ONX_E_MEMORY:
    case ONX_E_NOT_FOUND:
    case ONX_E_MISUSE:
    case ONX_E_CANCELLED:
        return CLI_MISUSE;
    default:
        return CLI_FAULT;
    }
}
