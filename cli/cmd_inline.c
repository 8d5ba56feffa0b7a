/* cmd_inline.c - `onx inline`: function bodies in place of calls. */
#include "cli.h"

#include <onx/text.h>
#include <onx/transform.h>

#include <stdlib.h>

/* --function DOMAIN.NAME, as often as it is given: the name is what stands behind the last dot. NULL with the error
 * printed. */
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

static onx_status inline_and_write(cli_call *call, onx_doc *doc, const onx_inline_options *options)
{
    const char *out = cli_value(call, "output");
    ONX_TRY(onx_inline(call->cx, doc, options));
    onx_save_options save = { .format = cli_format_out(call, out) };
    return onx_save(call->cx, doc, out, &save);
}

static int run_inline(cli_call *call)
{
    const bool but = cli_has(call, "except");
    if (!cli_has(call, "output"))
        return cli_error(call, "say where the result goes with -o");
    if (but && cli_has(call, "function"))
        return cli_error(call, "--function and --except exclude each other");
    onx_inline_options options = { .struct_size = sizeof options, .exclude = but, .schema = cli_has(call, "schema") };
    onx_function_name *names = read_names(call, but ? "except" : "function", &options.function_count);
    if (!names)
        return CLI_MISUSE;
    options.function = names;
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        status = inline_and_write(call, doc, &options);
        (void)onx_text_locate(doc, 0);
        onx_doc_free(doc);
    }
    free(names);
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "function", 0, "DOMAIN.NAME", NULL, "this function only; may be repeated" },
    { "except", 0, "DOMAIN.NAME", NULL, "all functions but this one; may be repeated" },
    { "schema", 0, NULL, NULL, "operators that the standard defines as functions, too" },
    CLI_END,
};

const cli_command cmd_inline = {
    .name = "inline",
    .summary = "function bodies in place of calls",
    .operands = "IN",
    .help =
        "Calls of the model's functions are replaced by their bodies, in subgraphs and training information, too, and the\n"
        "functions are removed. Values that a body makes get names of their own. Functions that import other versions\n"
        "of the operator sets are taken to those of the model first.\n",
    .example = "onx inline model.onnx -o flat.onnx\n"
               "onx inline model.onnx -o flat.onnx --function com.example.Block\n"
               "onx inline model.onnx -o flat.onnx --schema\n",
    .options = options,
    .run = run_inline,
};
