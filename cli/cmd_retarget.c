/* cmd_retarget.c - `onx retarget`: a model for other versions of its operator sets. */
#include "cli.h"

#include <onx/text.h>
#include <onx/transform.h>

#include <stdlib.h>

/* ---- options ---- */

/* --opset N and --opset DOMAIN=M; NULL with the error printed. */
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

/* ---- what is said ---- */

typedef struct teller {
    uint64_t count;
    bool explain;
    FILE *to;
} teller;

static void tell(void *user, const onx_change *change)
{
    teller *t = user;
    t->count++;
    if (!t->explain)
        return;
    cli_put_text(t->to, change->path);
    fprintf(t->to, ": ");
    cli_put_text(t->to, change->rule);
    fprintf(t->to, ": ");
    cli_put_text(t->to, change->text);
    fputc('\n', t->to);
}

static onx_status retarget(cli_call *call, onx_doc *doc, const onx_retarget_options *options)
{
    const char *out = cli_value(call, "output");
    ONX_TRY(onx_retarget(call->cx, doc, options));
    if (options->dry_run)
        return ONX_OK;
    onx_save_options save = { .format = cli_format_out(call, out) };
    return onx_save(call->cx, doc, out, &save);
}

static int run_retarget(cli_call *call)
{
    const char *out = cli_value(call, "output");
    const bool dry = cli_has(call, "dry-run");
    uint64_t ir_version = 0;
    if (!out && !dry)
        return cli_error(call, "say where the result goes with -o, or --dry-run");
    if (!cli_has(call, "opset") && !cli_has(call, "ir-version"))
        return cli_error(call, "say which version is wanted with --opset N");
    if (!cli_number(call, "ir-version", 3, INT32_MAX, &ir_version))
        return CLI_MISUSE;
    teller t = { .explain = cli_has(call, "explain") || dry, .to = out && strcmp(out, "-") == 0 ? stderr : stdout };
    onx_retarget_options options = { .struct_size = sizeof options,
                                     .dry_run = dry,
                                     .best_effort = cli_has(call, "best-effort"),
                                     .changed = t.explain ? tell : NULL,
                                     .user = &t,
                                     .ir_version = (int64_t)ir_version };
    onx_opset_version *opsets = read_opsets(call, &options.opset_count);
    if (!opsets)
        return CLI_MISUSE;
    options.opset = opsets;
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        status = retarget(call, doc, &options);
        (void)onx_text_locate(doc, 0);
        onx_doc_free(doc);
    }
    free(opsets);
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "opset", 0, "[DOMAIN=]N", NULL, "version of the default domain, or of another one, to go to; may be repeated" },
    { "ir-version", 0, "N", NULL, "IR version of the result; otherwise that of the model, or what its operators need" },
    { "best-effort", 0, NULL, NULL, "leave nodes that cannot be expressed as they are, with a warning" },
    { "explain", 0, NULL, NULL, "print each node that is rewritten, and how" },
    { "dry-run", 0, NULL, NULL, "say what would be done, and write nothing" },
    CLI_END,
};

const cli_command cmd_retarget = {
    .name = "retarget",
    .summary = "to another version of the operator sets, up or down",
    .operands = "IN",
    .help =
        "Nodes whose operator means something else in the other version are rewritten so that results stay the same:\n"
        "attributes become inputs and back, old broadcasting becomes explicit, operators that do not exist there are\n"
        "replaced by others. Functions, subgraphs and training information are included, weights are not touched. What\n"
        "cannot be expressed is listed, all of it, with the nearest version that can, and nothing is written.\n",
    .example = "onx retarget model.onnx -o newest.onnx --opset 28\n"
               "onx retarget model.onnx -o old.onnx --opset 13 --opset ai.onnx.ml=3\n"
               "onx retarget model.onnx --opset 9 --dry-run\n",
    .options = options,
    .run = run_retarget,
};
