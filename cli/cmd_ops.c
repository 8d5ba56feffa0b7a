/* cmd_ops.c - `onx ops`: lists, searches, explains and exports operators, and prints the page docs/operators.md. */
#include "cli.h"
#include "cli_op_words.h"

#include <onx/grad.h>
#include <onx/kernel.h>

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

enum { TEXT = 8192 };

static const char *shown_domain(const onx_op *op)
{
    return *onx_op_domain(op) ? onx_op_domain(op) : "ai.onnx";
}

/* ---- describing one operator ---- */

/* Prints a text, which may come from a document, padded with spaces. */
static void put_padded(const char *text, unsigned columns)
{
    cli_put_text(stdout, onx_str_of(text));
    for (unsigned n = cli_columns(onx_str_of(text)); n < columns; n++)
        putchar(' ');
}

/* Prints a label and a filled text. */
static void put_wrapped(const char *label, const char *text)
{
    const unsigned indent = (unsigned)printf(*label ? "  %-6s " : "  %s", label);
    cli_put_filled(stdout, onx_str_of(text), indent, cli_prose_width());
}

/* Prints the meaning of a name, indented further. */
static void put_meaning(const onx_op *op, const char *name)
{
    const char *text = cli_op_word(op, name);
    if (!text)
        return;
    printf("    %s", cli_color(stdout, CLI_DIM));
    cli_put_filled(stdout, onx_str_of(text), 4, cli_prose_width());
    fputs(cli_color(stdout, CLI_PLAIN), stdout);
}

static const char *attribute_type_word(const onx_op_attribute *a)
{
    static const char *const words[] = {
        "any",     "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
        "strings", "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"
    };
    return a->type < sizeof words / sizeof *words ? words[a->type] : "any";
}

static const char *gradient_word(uint32_t flags)
{
    return flags & ONX_PORT_DIFF ? "differentiable" : flags & ONX_PORT_NONDIFF ? "not differentiable" : "";
}

static const char *arity_word(uint32_t flags)
{
    if (flags & ONX_PORT_VARIADIC)
        return flags & ONX_PORT_ARITY_0 ? "none or more" : "one or more";
    return flags & ONX_PORT_OPTIONAL ? "optional" : "";
}

typedef const onx_op_port *(*port_at)(const onx_op *op, uint32_t index);

static void explain_ports(const char *title, const onx_op *op, port_at at)
{
    if (at(op, 0))
        printf("\n%s%s%s\n", cli_color(stdout, CLI_BOLD), title, cli_color(stdout, CLI_PLAIN));
    for (uint32_t i = 0; at(op, i); i++) {
        const onx_op_port *port = at(op, i);
        const char *arity = arity_word(port->flags), *gradient = gradient_word(port->flags);
        const char *mixed = port->flags & ONX_PORT_HETEROGENEOUS ? ", types may differ" : "";
        printf("  ");
        put_padded(port->name, 30);
        printf(" %s%*s%s%s%s%s\n", port->type, *arity || *gradient ? 18 - (int)strlen(port->type) : 0, "", arity, mixed,
               *arity && *gradient ? ", " : "", gradient);
        put_meaning(op, port->name);
    }
}

static void explain_attributes(const onx_op *op)
{
    if (onx_op_attribute_at(op, 0))
        printf("\n%sAttributes%s\n", cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
    for (uint32_t i = 0; onx_op_attribute_at(op, i); i++) {
        const onx_op_attribute *a = onx_op_attribute_at(op, i);
        printf("  ");
        put_padded(a->name, 30);
        printf(" %-17s %s%s\n", attribute_type_word(a),
               a->required       ? "required"
               : a->default_text ? "default "
                                 : "optional",
               a->default_text ? a->default_text : "");
        put_meaning(op, a->name);
    }
}

static void explain_types(const onx_op *op)
{
    char text[TEXT];
    if (onx_op_type_name(op, 0))
        printf("\n%sTypes%s\n", cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
    for (uint32_t i = 0; onx_op_type_name(op, i); i++) {
        onx_op_type_text(op, i, text, sizeof text);
        put_wrapped(onx_op_type_name(op, i), text);
    }
}

static void explain_versions(const onx_op *op, const onx_op *newest)
{
    char text[TEXT], label[32];
    printf("\n%sVersions%s\n", cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
    for (const onx_op *v = newest; v; v = onx_op_older(v)) {
        onx_op_change(v, text, sizeof text);
        snprintf(label, sizeof label, "%d%s", onx_op_since(v), v == op ? " *" : "");
        put_wrapped(label, text);
    }
}

/* Prints a small model that uses the operator; `onx ops NAME --example` prints only this. */
static void explain_example(const onx_op *newest)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    const bool found = to && cli_op_example(newest, to);
    if (!to || fclose(to) != 0 || !found) {
        free(text);
        return;
    }
    printf("\n%sExample%s\n", cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        fputs("  ", stdout);
        cli_put_filled(stdout, onx_str_make(line, strcspn(line, "\n")), 2, cli_prose_width());
    }
    free(text);
}

/* Prints further properties, separated by commas. */
static void facts(const onx_op *op, char *buf, size_t size)
{
    static const struct {
        uint32_t flag;
        const char *word;
    } words[] = {
        { ONX_OP_EXPERIMENTAL, "experimental" },
        { ONX_OP_DEPRECATED, "deprecated" },
        { ONX_OP_FUNCTION, "defined by a function" },
        { ONX_OP_CONTEXT_FUNCTION, "defined by a function that depends on the node" },
        { ONX_OP_NONDETERMINISTIC, "not deterministic" },
    };
    size_t len = 0;
    buf[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (onx_op_flags(op) & words[i].flag && len < size)
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "", words[i].word);
    bool differentiable = false;
    for (uint32_t i = 0; onx_op_input(op, i); i++)
        differentiable = differentiable || onx_op_input(op, i)->flags & ONX_PORT_DIFF;
    if (differentiable && len < size)
        snprintf(buf + len, size - len, "%sdifferentiable", len ? ", " : "");
}

static void explain_kernels(const onx_op *op)
{
    const char *variants[CLI_OP_VARIANTS];
    const uint32_t count = cli_op_kernels(op, variants);
    printf(count ? "  kernel:" : onx_op_is_composed(op) ? "  no kernel, runs by other operators" : "  no kernel");
    for (uint32_t i = 0; i < count; i++)
        printf("%s %s", i ? "," : "", variants[i]);
    putchar('\n');
}

static void explain(const onx_op *op, const onx_op *newest)
{
    char text[TEXT];
    onx_op_signature(op, text, sizeof text);
    fputs(cli_color(stdout, CLI_BOLD), stdout);
    cli_put_text(stdout, onx_str_of(onx_op_name(op)));
    printf("%s ", cli_color(stdout, CLI_PLAIN));
    cli_put_text(stdout, onx_str_of(shown_domain(op)));
    printf(" version %d, family %s\n", onx_op_since(op), onx_op_family(op));
    if (*onx_op_summary(op)) {
        cli_put_text(stdout, onx_str_of(onx_op_summary(op)));
        putchar('\n');
    }
    putchar('\n');
    put_wrapped("", text);
    if (onx_op_flags(op) & ONX_OP_OPEN)
        puts("  the document does not say its inputs, outputs and attributes");
    facts(op, text, sizeof text);
    if (*text)
        put_wrapped("", text);
    explain_kernels(op);
    if (!onx_grad_knows(op))
        puts("  no gradient");
    explain_ports("Inputs", op, onx_op_input);
    explain_ports("Outputs", op, onx_op_output);
    explain_attributes(op);
    explain_types(op);
    explain_versions(op, newest);
    explain_example(newest);
}

/* ---- docs/operators.md ---- */

/* Prints text into a line of Markdown; characters that would be markup are escaped. */
static void put_markdown(const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_<>[]|#", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void markdown_operator(const onx_op *op)
{
    char text[TEXT];
    printf("\n### %s\n\n", onx_op_name(op));
    put_markdown(onx_op_summary(op));
    facts(op, text, sizeof text);
    if (*text)
        printf(" (%s)", text);
    onx_op_signature(op, text, sizeof text);
    printf("\n\n`%s`\n\n", text);
    for (uint32_t i = 0; onx_op_type_name(op, i); i++) {
        onx_op_type_text(op, i, text, sizeof text);
        printf("- %s: ", onx_op_type_name(op, i));
        put_markdown(text);
        putchar('\n');
    }
    for (const onx_op *v = op; v; v = onx_op_older(v)) {
        onx_op_change(v, text, sizeof text);
        printf("- version %d: ", onx_op_since(v));
        put_markdown(text);
        putchar('\n');
    }
}

static int print_markdown(void)
{
    const char *domain = NULL;
    puts(
        "# Operators\n\nPrinted by `onx ops --markdown` from the rows in `src/op`; the test `cli_ops` fails when it is stale.\n"
        "`?` marks what is optional, `...` what takes any number of values, `= x` a default.");
    for (uint32_t i = 0; onx_op_get(i); i++) {
        const onx_op *op = onx_op_get(i);
        if (!domain || strcmp(domain, onx_op_domain(op)) != 0)
            printf("\n## %s, version %lld\n", shown_domain(op),
                   (long long)onx_domain_newest(onx_str_of(onx_op_domain(op))));
        domain = onx_op_domain(op);
        markdown_operator(op);
    }
    return CLI_OK;
}

/* ---- selecting operators ---- */

static bool same_word(const char *a, const char *b)
{
    for (; *a && tolower((unsigned char)*a) == tolower((unsigned char)*b); a++)
        b++;
    return tolower((unsigned char)*a) == tolower((unsigned char)*b);
}

typedef struct query {
    const onx_registry *registry;
    const char *word;   /* name or part of it; NULL: all */
    const char *domain; /* NULL: every domain */
    int64_t opset;
    bool exact;     /* the word is the name of an operator */
    char name[256]; /* the parts of a word that contains both name and domain */
    char named_domain[256];
} query;

/* Splits names as other commands print them: "ai.onnx.ml.Scaler" (info), "Relu-14" (check), and both together. Other
 * words are searched for unchanged. */
static void read_name(query *q, const char *word)
{
    const char *dash = strrchr(word, '-'), *dot = strrchr(word, '.');
    const size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    size_t len = strlen(word);
    q->word = word;
    if (dash && digits && digits < 7 && !dash[1 + digits] && (!dot || dot < dash)) {
        len = (size_t)(dash - word);
        q->opset = q->opset ? q->opset : strtol(dash + 1, NULL, 10);
    }
    const size_t head = dot && (size_t)(dot - word) < len ? (size_t)(dot - word) : 0;
    if (len >= sizeof q->name || (!head && len == strlen(word)))
        return;
    const onx_str domain = head == 7 && memcmp(word, "ai.onnx", 7) == 0 ? onx_str_of("") : onx_str_make(word, head);
    if (head && onx_registry_newest(q->registry, domain)) {
        snprintf(q->named_domain, sizeof q->named_domain, "%.*s", ONX_ARG(domain));
        q->domain = q->named_domain;
        snprintf(q->name, sizeof q->name, "%.*s", (int)(len - head - 1), word + head + 1);
    } else {
        snprintf(q->name, sizeof q->name, "%.*s", (int)len, word);
    }
    q->word = q->name;
}

/* Versions newer than the newest known one are replaced by it, with a warning. */
static void warn_of_future(const cli_call *call, const query *q)
{
    const char *domain = q->domain ? q->domain : "";
    for (uint32_t i = 0; q->exact && onx_registry_get(q->registry, i); i++) {
        const onx_op *op = onx_registry_get(q->registry, i);
        if (same_word(onx_op_name(op), q->word) && (!q->domain || strcmp(onx_op_domain(op), q->domain) == 0))
            domain = onx_op_domain(op);
    }
    const int64_t newest = onx_registry_newest(q->registry, onx_str_of(domain));
    if (newest && q->opset > newest)
        cli_warn(call, "version %lld of %s is newer than the newest known one, %lld", (long long)q->opset,
                 *domain ? domain : "ai.onnx", (long long)newest);
}

static bool has_word(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t i = 0;
        while (word[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
            i++;
        if (!word[i])
            return true;
    }
    return !*word;
}

/* The version of the index-th operator that the query selects; NULL if it selects none. */
static const onx_op *matching(const query *q, uint32_t index)
{
    const onx_op *newest = onx_registry_get(q->registry, index);
    const onx_str domain = onx_str_of(onx_op_domain(newest));
    if (q->domain && !onx_str_is(domain, q->domain))
        return NULL;
    if (q->word && !(q->exact ? same_word(onx_op_name(newest), q->word)
                              : has_word(onx_op_name(newest), q->word) || has_word(onx_op_summary(newest), q->word)))
        return NULL;
    if (!q->opset)
        return newest;
    const onx_op *there = onx_registry_find(q->registry, domain, onx_str_of(onx_op_name(newest)), q->opset),
                 *op = newest;
    while (op && op != there) /* another operator of that name may be the current one */
        op = onx_op_older(op);
    return op;
}

static uint32_t count_matching(const query *q)
{
    uint32_t count = 0;
    for (uint32_t i = 0; onx_registry_get(q->registry, i); i++)
        count += matching(q, i) != NULL;
    return count;
}

static int print_json(const query *q)
{
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '[');
    for (uint32_t i = 0; onx_registry_get(q->registry, i); i++) {
        const onx_op *op = matching(q, i);
        if (!op)
            continue;
        cli_op_json(&json, op);
        while (q->exact && !q->opset && (op = onx_op_older(op))) /* a single operator is printed with all its
                                                                  * versions */
            cli_op_json(&json, op);
    }
    cli_json_close(&json, ']');
    return CLI_OK;
}

static int print_list(const query *q)
{
    const unsigned width = cli_is_terminal(stdout) ? cli_width() : UINT_MAX; /* other programs get one line per
                                                                              * operator */
    const char *domain = "";
    uint32_t count = 0;
    for (uint32_t i = 0; onx_registry_get(q->registry, i); i++) {
        const onx_op *op = matching(q, i);
        if (!op)
            continue;
        if (strcmp(domain, onx_op_domain(op)) != 0) {
            fputs(cli_color(stdout, CLI_BOLD), stdout);
            cli_put_text(stdout, onx_str_of(shown_domain(op)));
            printf("%s\n", cli_color(stdout, CLI_PLAIN));
        }
        domain = onx_op_domain(op);
        put_padded(onx_op_name(op), 26);
        printf(" %3d  ", onx_op_since(op));
        char summary[TEXT];
        snprintf(summary, sizeof summary, "%s%s", onx_op_summary(op),
                 onx_op_flags(op) & ONX_OP_DEPRECATED ? " (deprecated)" : "");
        cli_put_filled(stdout, onx_str_of(summary), 32, width);
        count++;
    }
    fprintf(stderr, "%u operators\n", count);
    return CLI_OK;
}

static const char *operator_name(const void *from, int index)
{
    const onx_op *op = index < 0 ? NULL : onx_registry_get(from, (uint32_t)index);
    return op ? onx_op_name(op) : NULL;
}

static int no_operator(const cli_call *call, const query *q)
{
    query any = *q;
    any.opset = 0;
    if (q->opset && count_matching(&any))
        return cli_error(call, "version %lld of the domain has no operator \"%s\" yet", (long long)q->opset, q->word);
    cli_error(call, "no operator matches \"%s\"%s%s", q->word ? q->word : "", q->domain ? " in domain " : "",
              q->domain ? q->domain : "");
    const char *nearest = q->word ? cli_nearest(q->word, operator_name, q->registry) : NULL;
    if (nearest)
        cli_hint("did you mean %s?", nearest);
    return CLI_MISUSE;
}

/* ---- the command ---- */

static int export_set(cli_call *call, const char *path, const char *domain, int64_t opset)
{
    onx_doc *doc;
    const onx_str name = onx_str_of(domain ? domain : "");
    onx_status status = onx_opset_export(call->cx, name, opset ? opset : onx_domain_newest(name), &doc);
    if (status != ONX_OK)
        return CLI_MISUSE;
    status = onx_save(call->cx, doc, path, NULL);
    onx_doc_free(doc);
    return cli_exit(call, status);
}

static int print_examples(const cli_call *call, const query *q)
{
    bool found = false;
    for (uint32_t i = 0; !found && onx_registry_get(q->registry, i); i++)
        if (matching(q, i))
            found = cli_op_example(onx_registry_get(q->registry, i), stdout);
    return found ? CLI_OK : cli_error(call, "there is no example of %s", q->word);
}

static int explain_all(const query *q)
{
    uint32_t count = 0;
    for (uint32_t i = 0; onx_registry_get(q->registry, i); i++) {
        const onx_op *op = matching(q, i);
        if (!op)
            continue;
        if (count++)
            putchar('\n');
        explain(op, onx_registry_get(q->registry, i));
    }
    return CLI_OK;
}

/* Prints the operators that `q` selects. */
static int answer(cli_call *call, query q)
{
    if (call->operand_count)
        read_name(&q, call->operand[0]);
    if (q.domain && !onx_registry_newest(q.registry, onx_str_of(q.domain)))
        return cli_error(call, "there is no domain \"%s\"", q.domain);
    if (call->operand_count) {
        q.exact = true;
        q.exact = count_matching(&q) > 0;
    }
    if (!count_matching(&q))
        return no_operator(call, &q);
    warn_of_future(call, &q);
    if (cli_has(call, "example"))
        return q.exact ? print_examples(call, &q) : cli_error(call, "--example needs the name of an operator");
    if (cli_has(call, "json"))
        return print_json(&q);
    return q.exact ? explain_all(&q) : print_list(&q);
}

static int run_ops(cli_call *call)
{
    query q = { .domain = cli_value(call, "domain") };
    uint64_t opset = 0;
    if (!cli_number(call, "opset", 1, INT32_MAX, &opset))
        return CLI_MISUSE;
    q.opset = (int64_t)opset;
    if (q.domain && strcmp(q.domain, "ai.onnx") == 0)
        q.domain = "";
    if (cli_has(call, "markdown"))
        return print_markdown();
    if (cli_has(call, "export"))
        return export_set(call, cli_value(call, "export"), q.domain, q.opset);
    q.registry = call->registry;
    return answer(call, q);
}

static const cli_option options[] = {
    { "domain", 0, "DOMAIN", NULL, "operators of this domain only; ai.onnx is the default one" },
    { "opset", 0, "N", NULL, "the operators of version N of the domain" },
    { "export", 0, "FILE", NULL, "write an operator-set document of the domain at that version" },
    { "example", 0, NULL, NULL, "print only the example of the operator, a model in ONNX text" },
    { "markdown", 0, NULL, NULL, "print the page of all operators" },
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_ops = {
    .name = "ops",
    .summary = "list, search and explain operators",
    .operands = "[NAME]",
    .help = "NAME is an operator, which is described with all its versions, or a word to search for in names and\n"
            "descriptions. Names as other commands print them are accepted: ai.onnx.ml.Scaler, Relu-14. Without\n"
            "NAME all operators are listed, each with its newest version.\n",
    .example = "onx ops Conv\n"
               "onx ops Resize --opset 11\n"
               "onx ops Conv --example > conv.onnxtxt && onx run conv.onnxtxt --random\n"
               "onx ops --domain ai.onnx.ml\n"
               "onx ops --export ai.onnx-21.pb --opset 21\n",
    .options = options,
    .run = run_ops,
};
