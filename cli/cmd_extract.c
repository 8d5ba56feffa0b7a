/* cmd_extract.c - `onx extract`: writes a part of a model, or splits a model into parts. */
#include "cli_transform.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- one part ---- */

static onx_status extract(cli_transform *t, onx_doc *doc, const onx_extract_options *options)
{
    onx_doc *part;
    ONX_TRY(onx_extract(t->call->cx, doc, options, &part));
    const onx_status status = cli_transform_save(t, part);
    onx_doc_free(part);
    return status;
}

/* ---- all parts ---- */

/* model.onnx becomes model.1.onnx, model.2.onnx ... */
static char *path_of(const char *out, uint32_t part)
{
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash ? slash : out, '.');
    const size_t stem = dot && dot != (slash ? slash + 1 : out) ? (size_t)(dot - out) : strlen(out),
                 size = strlen(out) + 16;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%.*s.%u%s", (int)stem, out, part, out + stem);
    return path;
}

static onx_status save_part(cli_transform *t, onx_doc *part, uint32_t number)
{
    if (t->dry_run)
        return ONX_OK;
    char *path = path_of(t->out, number);
    if (!path)
        return ONX_E_MEMORY;
    const onx_save_options save = { .struct_size = sizeof save, .format = cli_format_out(t->call, path) };
    const onx_status status = onx_save(t->call->cx, part, path, &save);
    free(path);
    return status;
}

static onx_status split(cli_transform *t, onx_doc *doc, const onx_split_options *options, uint32_t count)
{
    onx_doc **parts = calloc(count, sizeof *parts);
    onx_status status = parts ? onx_split(t->call->cx, doc, options, count, parts) : ONX_E_MEMORY;
    for (uint32_t i = 0; i < count && status == ONX_OK; i++)
        status = save_part(t, parts[i], i + 1);
    for (uint32_t i = 0; i < count && parts; i++)
        onx_doc_free(parts[i]);
    free(parts);
    return status;
}

/* ---- the command ---- */

typedef struct wanted {
    onx_extract_options part;
    onx_split_options split;
    uint64_t count; /* number of parts; 0: the single part described by `part` */
} wanted;

static int work(cli_call *call, cli_transform *t, wanted *w)
{
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        status = w->count ? split(t, doc, &w->split, (uint32_t)w->count) : extract(t, doc, &w->part);
        onx_doc_free(doc);
    }
    return cli_exit(call, status);
}

static int check_options(cli_call *call, cli_transform *t, wanted *w)
{
    const bool values = cli_has(call, "inputs") || cli_has(call, "outputs"), nodes = cli_has(call, "nodes"),
               cut = cli_has(call, "split") || cli_has(call, "at");
    if (values + nodes + cut != 1)
        return cli_error(call, "say what to take with --inputs and --outputs, --nodes, --split or --at");
    if (cli_has(call, "split") && cli_has(call, "at"))
        return cli_error(call, "--split and --at exclude each other");
    if (!cli_number(call, "split", 2, 1000, &w->count) || !cli_transform_open(call, t))
        return CLI_MISUSE;
    if (cut && t->out && strcmp(t->out, "-") == 0)
        return cli_error(call, "several parts cannot go to standard output");
    return CLI_OK;
}

static int run_extract(cli_call *call)
{
    cli_transform t;
    wanted w = { .part = { .struct_size = sizeof w.part }, .split = { .struct_size = sizeof w.split } };
    if (check_options(call, &t, &w) != CLI_OK)
        return CLI_MISUSE;
    onx_str *inputs = cli_names(call, "inputs", &w.part.input_count),
            *outputs = cli_names(call, "outputs", &w.part.output_count),
            *nodes = cli_names(call, "nodes", &w.part.node_count), *at = cli_names(call, "at", &w.split.at_count);
    int exit_status = CLI_MISUSE;
    w.part.input = inputs;
    w.part.output = outputs;
    w.part.node = nodes;
    w.split.at = at;
    w.part.changed = w.split.changed = cli_transform_changed(&t);
    w.part.user = w.split.user = &t;
    if (w.split.at_count)
        w.count = (uint64_t)w.split.at_count + 1;
    if (inputs && outputs && nodes && at)
        exit_status = work(call, &t, &w);
    free(inputs);
    free(outputs);
    free(nodes);
    free(at);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "inputs", 0, "NAME,...", NULL, "inputs of the part; otherwise the inputs of the model that it needs" },
    { "outputs", 0, "NAME,...", NULL, "outputs of the part; otherwise the outputs of the model" },
    { "nodes", 0, "PATTERN,...", NULL, "extract the nodes with these names (* matches any text, ? one byte)" },
    { "split", 0, "N", NULL, "N parts with about the same number of nodes, cut where the least data crosses" },
    { "at", 0, "NAME,...", NULL, "split into parts that end with these values or nodes, and one with the rest" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_extract = {
    .name = "extract",
    .summary = "extract a part of a model, or split it into parts",
    .operands = "IN",
    .help = "A part contains everything that its nodes need: initializers, constants, functions, values that\n"
            "subgraphs capture, declared types. Parts of --split and --at are written to OUT with a number before\n"
            "the extension; onx merge joins them again. Weights are not copied in memory.\n",
    .example = "onx extract model.onnx -o part.onnx --inputs hidden.3 --outputs hidden.7\n"
               "onx extract model.onnx -o block.onnx --nodes '/layer.0/*'\n"
               "onx extract model.onnx -o part.onnx --split 2 --explain\n"
               "onx merge part.1.onnx part.2.onnx -o whole.onnx\n",
    .options = options,
    .run = run_extract,
};
