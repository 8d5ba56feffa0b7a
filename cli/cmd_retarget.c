/* cmd_retarget.c - `onx retarget`: converts a model to other versions of its operator sets. */
#include "cli_transform.h"

#include <stdlib.h>

/* ---- options ---- */

/* The values of --opset N and --opset DOMAIN=M; NULL with the error printed. */
static onx_opset_version *read_opsets(const cli_call *call, uint32_t *count_out)
{
    onx_opset_version *list = calloc((size_t)call->given_count + 1, sizeof *list);
    onx_str name;
    int64_t version;
    int more = list ? 0 : -1;
    *count_out = 0;
    if (!list)
        cli_error(call, "out of memory");
    while (list && (more = cli_named_number(call, "opset", (int)*count_out, true, &name, &version)) > 0)
        list[(*count_out)++] = (onx_opset_version){ name, version };
    if (more == 0)
        return list;
    free(list);
    return NULL;
}

static onx_status retarget(onx_ctx *cx, onx_doc *doc, void *options)
{
    return onx_retarget(cx, doc, options);
}

static int run_retarget(cli_call *call)
{
    cli_transform t;
    uint64_t ir_version = 0;
    if (!cli_transform_open(call, &t))
        return CLI_MISUSE;
    if (!cli_has(call, "opset") && !cli_has(call, "ir-version"))
        return cli_error(call, "say which version is wanted with --opset N");
    if (!cli_number(call, "ir-version", 3, INT32_MAX, &ir_version))
        return CLI_MISUSE;
    onx_retarget_options options = { .struct_size = sizeof options,
                                     .dry_run = t.dry_run,
                                     .best_effort = cli_has(call, "best-effort"),
                                     .changed = cli_transform_changed(&t),
                                     .user = &t,
                                     .ir_version = (int64_t)ir_version };
    onx_opset_version *opsets = read_opsets(call, &options.opset_count);
    if (!opsets)
        return CLI_MISUSE;
    options.opset = opsets;
    const int exit_status = cli_transform_run(&t, call->operand[0], retarget, &options);
    free(opsets);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "opset", 0, "[DOMAIN=]N", NULL, "target version of the default domain, or of another domain; may be repeated" },
    { "ir-version", 0, "N", NULL,
      "IR version of the result; otherwise that of the model, or a higher one that its operators need" },
    { "best-effort", 0, NULL, NULL, "keep nodes that cannot be expressed as they are, with a warning" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_retarget = {
    .name = "retarget",
    .summary = "convert to another version of the operator sets, newer or older",
    .operands = "IN",
    .help = "Nodes whose operator has another meaning in the target version are rewritten so that results stay\n"
            "the same: attributes become inputs and vice versa, old broadcasting becomes explicit, operators that\n"
            "do not exist in the target version are replaced by others. Functions, subgraphs and training\n"
            "information are included; weights do not change. If nodes cannot be expressed, all of them are\n"
            "listed, with the nearest version that can express them, and nothing is written.\n",
    .example = "onx retarget model.onnx -o newest.onnx --opset 28\n"
               "onx retarget model.onnx -o old.onnx --opset 13 --opset ai.onnx.ml=3\n"
               "onx retarget model.onnx --opset 9 --dry-run\n",
    .options = options,
    .run = run_retarget,
};
