/* cmd_inline.c - `onx inline`: replaces function calls by the function bodies. */
#include "cli_transform.h"

#include <stdlib.h>

/* The values of --function DOMAIN.NAME; the name follows the last dot. NULL with the error printed. */
static onx_function_name *read_names(const cli_call *call, const char *option, uint32_t *count)
{
    onx_function_name *list = calloc((size_t)call->given_count + 1, sizeof *list);
    const char *text;
    if (!list)
        cli_error(call, "out of memory");
    for (*count = 0; list && (text = cli_value_at(call, option, (int)*count)) != NULL; ++*count) {
        const char *dot = strrchr(text, '.');
        list[*count].domain = onx_str_make(text, dot ? (size_t)(dot - text) : 0);
        list[*count].name = onx_str_of(dot ? dot + 1 : text);
    }
    return list;
}

static onx_status inline_calls(onx_ctx *cx, onx_doc *doc, void *options)
{
    return onx_inline(cx, doc, options);
}

static int run_inline(cli_call *call)
{
    const bool but = cli_has(call, "except");
    cli_transform t;
    if (!cli_transform_open(call, &t))
        return CLI_MISUSE;
    if (but && cli_has(call, "function"))
        return cli_error(call, "--function and --except exclude each other");
    onx_inline_options options = { .struct_size = sizeof options,
                                   .exclude = but,
                                   .schema = cli_has(call, "schema"),
                                   .changed = cli_transform_changed(&t),
                                   .user = &t };
    if (cli_has(call, "domain"))
        options.domain = onx_str_of(cli_value(call, "domain"));
    onx_function_name *names = read_names(call, but ? "except" : "function", &options.function_count);
    if (!names)
        return CLI_MISUSE;
    options.function = names;
    const int exit_status = cli_transform_run(&t, call->operand[0], inline_calls, &options);
    free(names);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "function", 0, "DOMAIN.NAME", NULL, "only this function; may be repeated" },
    { "except", 0, "DOMAIN.NAME", NULL, "all functions but this one; may be repeated" },
    { "schema", 0, NULL, NULL, "also operators that the standard or an operator-set document defines as functions" },
    { "domain", 0, "DOMAIN", NULL, "also operators of DOMAIN that can be expressed by standard ones" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_inline = {
    .name = "inline",
    .summary = "replace function calls by the bodies of the functions",
    .operands = "IN",
    .help = "Replaces calls of the model's functions by their bodies, also in subgraphs and training information,\n"
            "and removes the functions. Values of a body get unique names. Functions that import other versions\n"
            "of the operator sets are converted to those of the model first.\n",
    .example = "onx inline model.onnx -o flat.onnx\n"
               "onx inline model.onnx -o flat.onnx --function com.example.Block\n"
               "onx inline model.onnx -o flat.onnx --schema\n"
               "onx inline optimized.onnx -o standard.onnx --domain com.microsoft\n",
    .options = options,
    .run = run_inline,
};
