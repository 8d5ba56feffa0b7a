/* cmd_compress.c - `onx compress`: makes a model smaller without changing its results. */
#include "cli_tune.h"

static int run_compress(cli_call *call)
{
    cli_transform frame;
    char folder[4096];
    if (!cli_transform_open(call, &frame))
        return CLI_MISUSE;
    const onx_compress_options options = { .struct_size = sizeof options,
                                           .changed = cli_transform_changed(&frame),
                                           .user = &frame,
                                           .sparse = cli_has(call, "sparse"),
                                           .spill_dir = cli_folder_of(frame.out, folder, sizeof folder) };
    onx_doc *doc;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK) {
        const bool external = cli_is_external(call, doc);
        status = onx_compress(call->cx, doc, &options);
        if (status == ONX_OK)
            status = cli_save_beside(&frame, doc, external);
        onx_doc_free(doc);
    }
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "sparse", 0, NULL, NULL, "store weights that are mostly zeros as sparse initializers" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_compress = {
    .name = "compress",
    .summary = "store identical weights once; with --sparse, only nonzero elements",
    .operands = "IN",
    .help = "Weights with the same type, shape and bytes are stored once. The results of the model stay\n"
            "bit-identical.\n"
            "\n"
            "--sparse stores a weight as its nonzero elements and their indices if that takes at most half of the\n"
            "bytes (IR version 6). Sparse weights are expanded when a session is created, and not every other\n"
            "tool reads them.\n",
    .example = "onx compress model.onnx -o smaller.onnx\n"
               "onx compress pruned.onnx -o smaller.onnx --sparse --explain\n"
               "onx compress model.onnx --dry-run\n",
    .options = options,
    .run = run_compress,
};
