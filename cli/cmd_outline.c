/* cmd_outline.c - `onx outline`: turns repeated sequences of nodes into functions. */
#include "cli_transform.h"

static onx_status outline(onx_ctx *cx, onx_doc *doc, void *options)
{
    return onx_outline(cx, doc, options);
}

static int run_outline(cli_call *call)
{
    cli_transform t;
    uint64_t nodes = 4, calls = 2;
    const char *domain = cli_value(call, "domain");
    if (!cli_transform_open(call, &t) || !cli_number(call, "min-nodes", 2, UINT32_MAX, &nodes) ||
        !cli_number(call, "min-calls", 2, UINT32_MAX, &calls))
        return CLI_MISUSE;
    if (domain && (!*domain || strcmp(domain, "ai.onnx") == 0))
        return cli_error(call, "functions need a domain of their own");
    onx_outline_options options = { .struct_size = sizeof options,
                                    .min_nodes = (uint32_t)nodes,
                                    .min_calls = (uint32_t)calls,
                                    .domain = onx_str_of(domain ? domain : ""),
                                    .changed = cli_transform_changed(&t),
                                    .user = &t };
    return cli_transform_run(&t, call->operand[0], outline, &options);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "min-nodes", 0, "N", NULL, "minimum number of nodes of a function (4)" },
    { "min-calls", 0, "N", NULL, "minimum number of calls of a function (2)" },
    { "domain", 0, "NAME", NULL, "domain of the functions (outlined)" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_outline = {
    .name = "outline",
    .summary = "turn repeated sequences of nodes into functions",
    .operands = "IN",
    .help = "The opposite of onx inline: the layers of a transformer become one function and several calls.\n"
            "Sequences of nodes of the main graph count as repeated when they differ only in the names of values;\n"
            "weights and everything else that differs between the calls become inputs of the function. Nodes with\n"
            "subgraphs are not moved.\n",
    .example = "onx outline model.onnx -o short.onnx --explain\n"
               "onx outline model.onnx -o short.onnx --min-nodes 20 --domain com.example\n",
    .options = options,
    .run = run_outline,
};
