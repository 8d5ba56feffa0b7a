/* cmd_convert.c - `onx convert`: converts between all formats, and moves weights into or out of the model file. */
#include "cli_numpy.h"

/* Reads --external and the related options; false, with the error printed, if they contradict each other. */
static bool external_options(const cli_call *call, onx_external_options *out)
{
    static const char *const needs_external[] = { "external-threshold", "external-align", "external-split",
                                                  "external-per-tensor", "checksum" };
    *out = (onx_external_options){ .location = cli_value(call, "external"),
                                   .threshold = 1024,
                                   .alignment = 4096,
                                   .file_per_tensor = cli_has(call, "external-per-tensor"),
                                   .checksum = cli_has(call, "checksum"),
                                   .inline_all = cli_has(call, "inline-external") };
    if (out->location && out->inline_all) {
        cli_error(call, "--external and --inline-external exclude each other");
        return false;
    }
    for (size_t i = 0; i < sizeof(needs_external) / sizeof(needs_external[0]) && !out->location; i++) {
        if (cli_has(call, needs_external[i])) {
            cli_error(call, "--%s needs --external FILE", needs_external[i]);
            return false;
        }
    }
    if (!cli_number(call, "external-threshold", 0, UINT64_MAX, &out->threshold) ||
        !cli_number(call, "external-align", 1, 65536, &out->alignment) ||
        !cli_number(call, "external-split", 1, UINT64_MAX, &out->split))
        return false;
    if (out->threshold == 0)
        out->threshold = 1; /* 0 would be the default */
    if (out->alignment & (out->alignment - 1)) {
        cli_error(call, "--external-align %llu is not a power of two", (unsigned long long)out->alignment);
        return false;
    }
    return true;
}

static int run_convert(cli_call *call)
{
    const char *in = call->operand[0], *out = call->operand_count > 1 ? call->operand[1] : cli_value(call, "output");
    if (!out || (call->operand_count > 1 && cli_has(call, "output")))
        return cli_error(call, "name one output, as second operand or with -o");
    onx_external_options external;
    if (!external_options(call, &external))
        return CLI_MISUSE;
    onx_save_options save = { .format = cli_format_out(call, out) };
    if (external.location || external.inline_all)
        save.external = &external;
    const bool numpy = cli_is_numpy(out) && save.format == ONX_FORMAT_AUTO;
    if (numpy && save.external)
        return cli_error(call, "--%s applies to models, not to NumPy files",
                         external.location ? "external" : "inline-external");
    if (save.format == ONX_FORMAT_AUTO && !numpy) {
        cli_error(call, "the extension of \"%s\" names no format", out);
        cli_hint("say which with --to");
        return CLI_MISUSE;
    }
    onx_doc *doc;
    onx_kind kind;
    onx_status status = cli_load_any(call, in, cli_format(call, "from"), &kind, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    if (cli_has(call, "sort"))
        status = onx_doc_sort(doc, NULL);
    if (status == ONX_OK)
        status = numpy ? cli_save_numpy(call, doc, kind, out) : onx_save(call->cx, doc, out, &save);
    onx_doc_free(doc);
    return cli_exit(call, status);
}

static const cli_option options[] = {
    CLI_OPTION_AS,
    { "from", 0, "FORMAT", CLI_FORMATS, "format of IN, if extension and content do not tell it" },
    CLI_OPTION_TO,
    CLI_OPTION_OUTPUT,
    { "lenient", 0, NULL, NULL, "read damaged files, and text with values that do not fit, with warnings" },
    { "sort", 0, NULL, NULL, "sort nodes topologically, as rule G-03 demands; otherwise keep their order" },
    { "external", 0, "FILE", NULL, "move weights to FILE in the folder of OUT" },
    { "external-threshold", 0, "BYTES", NULL, "move tensors of at least this many bytes (1024)" },
    { "external-align", 0, "N", NULL, "align each tensor to a power of two, at most 65536 (4096)" },
    { "external-split", 0, "BYTES", NULL, "start FILE.1, FILE.2, ... before a file exceeds this size" },
    { "external-per-tensor", 0, NULL, NULL, "one file per tensor; FILE/ is a folder, FILE a prefix" },
    { "checksum", 0, NULL, NULL, "record the SHA-1 of each data file" },
    { "inline-external", 0, NULL, NULL, "move external weights into OUT" },
    CLI_END,
};

const cli_command cmd_convert = {
    .name = "convert",
    .summary = "convert between formats; move weights into or out of the file",
    .operands = "IN [OUT]",
    .help = "The extension selects the format; for IN the content counts as well. Without an option about\n"
            "external data, references to it stay as they are. NumPy's .npy is a tensor and .npz a graph of\n"
            "initializers, both as IN and as OUT. Reading and writing a binary file without a change gives the\n"
            "same bytes.\n",
    .example = "onx convert model.onnx model.textproto\n"
               "onx convert model.onnx model-small.onnx --external weights.bin --checksum\n"
               "onx convert --as tensor input_0.pb input_0.json\n"
               "onx convert x.npy input_0.pb\n"
               "generate | onx convert - model.onnx\n",
    .options = options,
    .run = run_convert,
};
