/* cmd_grad.c - `onx grad`: adds the gradient of a value as standard operators. */
#include "cli.h"

#include <onx/grad.h>
#include <onx/text.h>

#include <stdlib.h>

/* The names of --wrt, which may be repeated or contain commas; NULL with the error printed. */
static onx_str *read_names(const cli_call *call, uint32_t *count)
{
    const char *text;
    size_t room = 1;
    for (int i = 0; (text = cli_value_at(call, "wrt", i)) != NULL; i++)
        room += strlen(text) + 1;
    onx_str *list = calloc(room, sizeof *list);
    if (!list)
        cli_error(call, "out of memory");
    *count = 0;
    for (int i = 0; list && (text = cli_value_at(call, "wrt", i)) != NULL; i++)
        for (const char *at = text; at;) {
            const char *comma = strchr(at, ',');
            list[(*count)++] = onx_str_make(at, comma ? (size_t)(comma - at) : strlen(at));
            at = comma ? comma + 1 : NULL;
        }
    return list;
}

static onx_status derive_and_write(cli_call *call, onx_doc *doc, const onx_grad_options *options)
{
    const char *out = cli_value(call, "output");
    ONX_TRY(onx_grad(call->cx, doc, options));
    onx_save_options save = { .format = cli_format_out(call, out) };
    return onx_save(call->cx, doc, out, &save);
}

static int run_grad(cli_call *call)
{
    const char *of = cli_value(call, "of");
    if (!cli_has(call, "output"))
        return cli_error(call, "say where the result goes with -o");
    if (!of != !cli_has(call, "wrt"))
        return cli_error(call, "--of and --wrt must be given together");
    onx_grad_options options = { .struct_size = sizeof options,
                                 .of = onx_str_of(of ? of : ""),
                                 .only = cli_has(call, "only") };
    if (!cli_checkpoint(call, &options.checkpoint))
        return CLI_MISUSE;
    onx_str *names = read_names(call, &options.wrt_count);
    if (!names)
        return CLI_MISUSE;
    options.wrt = names;
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        status = derive_and_write(call, doc, &options);
        (void)onx_text_locate(doc, 0);
        onx_doc_free(doc);
    }
    free(names);
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "of", 0, "NAME", NULL, "the value to differentiate; the sum of its elements, if it has several" },
    { "wrt", 0, "NAMES", NULL, "differentiate with respect to these values, separated by commas; may be repeated" },
    { "only", 0, NULL, NULL, "make the gradients the only outputs and remove everything else" },
    CLI_OPTION_CHECKPOINT,
    CLI_END,
};

const cli_command cmd_grad = {
    .name = "grad",
    .summary = "add the gradient of a value as plain ONNX nodes",
    .operands = "IN",
    .help = "Adds nodes to the main graph that compute the gradient of a value, and an output NAME_grad for each\n"
            "value of --wrt. The gradient has the shape of that value; it is zeros if --of does not depend on it.\n"
            "The nodes are standard operators, so that any runtime can run them. Nodes Gradient of\n"
            "ai.onnx.preview.training are replaced in the same way, with or without --of. Functions are inlined,\n"
            "and a model with an operator set before version 18 is converted to it.\n",
    .example = "onx grad model.onnx -o with_gradients.onnx --of loss --wrt weight,bias\n"
               "onx grad model.onnx -o gradients.onnx --of loss --wrt weight --only\n"
               "onx grad training.onnx -o plain.onnx\n"
               "onx grad model.onnx -o lean.onnx --of loss --wrt weight --checkpoint sqrt\n",
    .options = options,
    .run = run_grad,
};
