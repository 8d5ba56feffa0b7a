/* cmd_infer.c - `onx infer`: infers the types and shapes of all values, and reports where inference stops. */
#include "cli_dims.h"

#include <onx/text.h>

/* ---- the summary ---- */

static void print_json(const onx_infer *infer)
{
    onx_infer_summary s = onx_infer_summarize(infer);
    const onx_infer_loss *loss;
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_uint(&json, "values", s.values);
    cli_json_uint(&json, "known", s.known);
    cli_json_uint(&json, "symbolic", s.symbolic);
    cli_json_uint(&json, "open", s.open);
    cli_json_uint(&json, "unknown", s.unknown);
    cli_json_uint(&json, "failed_nodes", s.failed);
    cli_json_open(&json, "lost_at", '[');
    for (uint32_t i = 0; (loss = onx_infer_loss_get(infer, i)) != NULL; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "path", loss->path);
        cli_json_text(&json, "op_type", loss->op_type);
        cli_json_text(&json, "reason", loss->reason);
        cli_json_uint(&json, "values", loss->values);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static void print_count(uint64_t count, const char *what)
{
    if (count)
        printf("  %9s  %s\n", cli_thousands(count).text, what);
}

enum { SHOWN = 10 };

static void print_text(const onx_infer *infer)
{
    onx_infer_summary s = onx_infer_summarize(infer);
    const onx_infer_loss *loss;
    uint32_t i;
    printf("%s values\n", cli_thousands(s.values).text);
    print_count(s.known, "known");
    print_count(s.symbolic, "known up to the symbols of the model");
    print_count(s.open, "with sizes that depend on data");
    print_count(s.unknown, "unknown");
    print_count(s.failed, s.failed == 1 ? "node failed" : "nodes failed");
    for (i = 0; (loss = onx_infer_loss_get(infer, i)) != NULL; i++) {
        if (i == SHOWN) {
            printf("and more; --json lists all\n");
            break;
        }
        printf("lost at ");
        cli_put_text(stdout, loss->path);
        printf(": ");
        cli_put_text(stdout, loss->reason);
        printf(" (%s value%s)\n", cli_thousands(loss->values).text, loss->values == 1 ? "" : "s");
    }
}

static void print_value(onx_infer *infer, const onx_graph *graph, onx_str name)
{
    char type[512] = "?";
    const onx_type *known = onx_infer_type(infer, graph, name);
    if (known)
        (void)cli_type(known, type, sizeof type);
    cli_put_text(stdout, name);
    printf("  ");
    cli_put_text(stdout, onx_str_of(type));
    putchar('\n');
}

static void print_values(onx_infer *infer, const onx_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        print_value(infer, graph, onx_view(graph->input[i]->name));
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
            if (onx_view(graph->node[i]->output[k]).len)
                print_value(infer, graph, onx_view(graph->node[i]->output[k]));
}

/* ---- the command ---- */

static onx_status infer_and_write(cli_call *call, onx_doc *doc, const onx_infer_options *options)
{
    const char *out = cli_value(call, "output");
    bool quiet = out && strcmp(out, "-") == 0;
    onx_infer *infer;
    ONX_TRY(onx_infer_new(call->cx, doc, options, &infer));
    if (cli_has(call, "json") && !quiet)
        print_json(infer);
    else if (!quiet)
        print_text(infer);
    if (cli_has(call, "list") && !quiet)
        print_values(infer, onx_doc_model(doc)->graph);
    onx_status status = onx_infer_apply(infer);
    onx_infer_free(infer);
    if (status != ONX_OK || !out)
        return status;
    onx_save_options save = { .format = cli_format_out(call, out) };
    return onx_save(call->cx, doc, out, &save);
}

static int run_infer(cli_call *call)
{
    onx_infer_options options = { .strict = cli_has(call, "strict"),
                                  .check_type = cli_has(call, "check-type"),
                                  .no_data_prop = cli_has(call, "no-data-prop"),
                                  .plain_names = cli_has(call, "plain-names") };
    cli_dims dims;
    if (!cli_dims_read(call, &dims)) {
        cli_dims_free(&dims);
        return CLI_MISUSE;
    }
    options.fixed = dims.list;
    options.fixed_count = dims.count;
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        status = infer_and_write(call, doc, &options);
        (void)onx_text_locate(doc, 0);
        onx_doc_free(doc);
    }
    cli_dims_free(&dims);
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "strict", 0, NULL, NULL, "a node that cannot be inferred is an error, not a warning" },
    { "check-type", 0, NULL, NULL, "check every node against the types that its operator allows" },
    { "no-data-prop", 0, NULL, NULL, "do not propagate the values of small integer tensors" },
    { "dim", 0, "NAME=N", NULL, "use N for the symbolic dimension NAME; may be repeated" },
    { "plain-names", 0, NULL, NULL, "write only sizes that are numbers or single names, no expressions" },
    { "list", 0, NULL, NULL, "print the type of every input and of every node output of the main graph" },
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_infer = {
    .name = "infer",
    .summary = "infer the types and shapes of all values and write them into the model",
    .operands = "FILE",
    .help = "Sizes are expressions over the symbols of the model: N + 1, 2*seq, (H + 1)/2. A size that depends on\n"
            "data becomes a new symbol (unk__0). A node that fails is a warning, and inference continues after\n"
            "it; the summary names the first node whose output type is unknown. Without -o nothing is written.\n",
    .example = "onx infer model.onnx -o typed.onnx\n"
               "onx infer model.onnx --dim batch=1 --list\n"
               "onx infer model.onnx --strict --check-type --json\n",
    .options = options,
    .run = run_infer,
};
