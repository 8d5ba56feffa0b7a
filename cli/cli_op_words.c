/* cli_op_words.c - descriptions of operators: their inputs, outputs and attributes, and an example of each. */
#include "cli_op_words.h"

#include <string.h>

static const struct {
    const char *name, *operators, *text;
} words[] = {
#define W(name, operators, text) { name, operators, text },
#include "cli_op_words.def"
};

static const struct {
    const char *operators, *graph;
} examples[] = {
#define E(operators, graph) { operators, graph },
#include "cli_op_examples.def"
};

/* Is the name in the list? */
static bool lists(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == len && memcmp(list, name, len) == 0)
            return true;
    return false;
}

/* The descriptions are for built-in operators; operators of documents may have the same names. */
static bool is_built_in(const onx_op *op)
{
    return onx_op_newest(onx_str_of(onx_op_domain(op)), onx_str_of(onx_op_name(op))) != NULL;
}

const char *cli_op_word(const onx_op *op, const char *name)
{
    const char *common = NULL;
    if (!is_built_in(op))
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].name, name) != 0)
            continue;
        if (lists(words[i].operators, onx_op_name(op)))
            return words[i].text;
        if (strcmp(words[i].operators, "*") == 0)
            common = words[i].text;
    }
    return common;
}

/* Puts the nodes, which begin at the first brace that does not belong to an initializer, on a new line. */
static void put_graph(const onx_op *op, const char *graph, FILE *to)
{
    bool head = true;
    for (const char *p = graph; *p; p++) {
        const bool nodes = head && p > graph && strncmp(p, " { ", 3) == 0 && strchr(")>", p[-1]);
        head = head && !nodes;
        if (nodes)
            fputc('\n', to);
        else if (*p != '%')
            fputc(*p, to);
        else
            fprintf(to, "%s%s%s", onx_op_domain(op), *onx_op_domain(op) ? "." : "", onx_op_name(op));
    }
    fputc('\n', to);
}

/* The newest version of the operator's domain that still has it. */
static int64_t example_opset(const onx_op *op)
{
    const onx_str domain = onx_str_of(onx_op_domain(op));
    const onx_op *newest = onx_op_newest(domain, onx_str_of(onx_op_name(op)));
    return onx_op_flags(newest) & ONX_OP_DEPRECATED ? onx_op_since(newest) - 1 : onx_domain_newest(domain);
}

/* A domain whose operators the standard defines, not just one with the same prefix. */
static bool is_of_onnx(const char *domain)
{
    return !*domain || strcmp(domain, "ai.onnx.ml") == 0 || strncmp(domain, "ai.onnx.preview", 15) == 0;
}

bool cli_op_example(const onx_op *op, FILE *to)
{
    const char *domain = onx_op_domain(op);
    const bool standard_one = is_built_in(op) && is_of_onnx(domain); /* operators of other domains may have the same
                                                                      * names */
    for (size_t i = 0; standard_one && i < sizeof examples / sizeof *examples; i++) {
        if (!lists(examples[i].operators, onx_op_name(op)))
            continue;
        const int64_t standard = *domain ? onx_domain_newest(onx_str_of("")) : example_opset(op);
        fprintf(to, "<ir_version: 13, opset_import: [\"\" : %lld", (long long)standard);
        if (*domain)
            fprintf(to, ", \"%s\" : %lld", domain, (long long)example_opset(op));
        fputs("]>\n", to);
        put_graph(op, examples[i].graph, to);
        return true;
    }
    return false;
}
