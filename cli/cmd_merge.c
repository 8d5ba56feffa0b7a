/* cmd_merge.c - `onx merge`: merges models. */
#include "cli_transform.h"

#include <stdlib.h>

/* --map OUT=IN,...; NULL with the error printed. */
static onx_io_pair *read_map(const cli_call *call, uint32_t *count)
{
    onx_str *texts = cli_names(call, "map", count);
    onx_io_pair *list = texts ? calloc((size_t)*count + 1, sizeof *list) : NULL;
    bool good = list != NULL;
    if (texts && !list)
        cli_error(call, "out of memory");
    for (uint32_t i = 0; good && i < *count; i++) {
        const char *at = memchr(texts[i].ptr, '=', texts[i].len);
        const size_t len = at ? (size_t)(at - texts[i].ptr) : 0;
        good = len && len + 1 < texts[i].len;
        if (!good)
            cli_error(call, "--map needs OUTPUT=INPUT, not \"%.*s\"", ONX_ARG(texts[i]));
        else
            list[i] = (onx_io_pair){ onx_str_make(texts[i].ptr, len), onx_str_make(at + 1, texts[i].len - len - 1) };
    }
    free(texts);
    if (good)
        return list;
    free(list);
    return NULL;
}

static onx_status merge(cli_transform *t, onx_doc **docs, const onx_merge_options *options)
{
    cli_call *call = t->call;
    for (int i = 0; i < call->operand_count; i++)
        ONX_TRY(cli_load(call, call->operand[i], ONX_KIND_MODEL, &docs[i]));
    call->input = NULL; /* from here on, diagnostics concern all models */
    ONX_TRY(onx_merge(call->cx, docs[0], docs + 1, (uint32_t)call->operand_count - 1, options));
    return cli_transform_save(t, docs[0]);
}

static int work(cli_transform *t, const onx_merge_options *options)
{
    cli_call *call = t->call;
    onx_doc **docs = calloc((size_t)call->operand_count, sizeof *docs);
    if (!docs)
        return cli_error(call, "out of memory");
    const onx_status status = merge(t, docs, options);
    for (int i = 0; i < call->operand_count; i++)
        onx_doc_free(docs[i]);
    free(docs);
    return cli_exit(call, status);
}

static int run_merge(cli_call *call)
{
    cli_transform t;
    const char *prefix1 = cli_value(call, "prefix1"), *prefix2 = cli_value(call, "prefix2");
    onx_merge_options options = { .struct_size = sizeof options,
                                  .how = cli_has(call, "map")            ? ONX_MERGE_BY_MAP
                                         : cli_has(call, "sequence")     ? ONX_MERGE_IN_SEQUENCE
                                         : cli_has(call, "side-by-side") ? ONX_MERGE_SIDE_BY_SIDE
                                                                         : ONX_MERGE_BY_NAME,
                                  .prefix1 = onx_str_of(prefix1 ? prefix1 : ""),
                                  .prefix2 = onx_str_of(prefix2 ? prefix2 : "") };
    if (cli_has(call, "map") + cli_has(call, "sequence") + cli_has(call, "side-by-side") > 1)
        return cli_error(call, "--map, --sequence and --side-by-side exclude each other");
    if (call->operand_count < 2)
        return cli_error(call, "name at least two models");
    if (!cli_transform_open(call, &t))
        return CLI_MISUSE;
    onx_io_pair *map = read_map(call, &options.map_count);
    onx_str *inputs = cli_names(call, "inputs", &options.input_count),
            *outputs = cli_names(call, "outputs", &options.output_count);
    int exit_status = CLI_MISUSE;
    options.map = map;
    options.input = inputs;
    options.output = outputs;
    options.changed = cli_transform_changed(&t);
    options.user = &t;
    if (map && inputs && outputs)
        exit_status = work(&t, &options);
    free(map);
    free(inputs);
    free(outputs);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "map", 0, "OUT=IN,...", NULL,
      "connect outputs of earlier models to inputs of later ones; otherwise they are connected by name" },
    { "sequence", 0, NULL, NULL, "connect the outputs of each model to the inputs of the next one, in order" },
    { "side-by-side", 0, NULL, NULL, "connect nothing" },
    { "inputs", 0, "NAME,...", NULL, "inputs of the result; otherwise all unconnected inputs" },
    { "outputs", 0, "NAME,...", NULL, "outputs of the result; otherwise all unconnected outputs" },
    { "prefix1", 0, "TEXT", NULL, "prefix for all names of the first model" },
    { "prefix2", 0, "TEXT", NULL, "prefix for all names of the later models" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_merge = {
    .name = "merge",
    .summary = "merge models, one after the other or side by side",
    .operands = "FILE...",
    .help = "By default, inputs of a model are connected to outputs of the same name of earlier models, and\n"
            "inputs that two models share become one. Internal names that clash are renamed; if inputs, outputs\n"
            "or functions clash, give a prefix. Models with different operator sets are converted to the higher\n"
            "version, as by onx retarget. Initializers and constants that are the same in both are stored once.\n",
    .example = "onx merge part.1.onnx part.2.onnx -o whole.onnx\n"
               "onx merge encoder.onnx decoder.onnx -o both.onnx --map hidden=memory\n"
               "onx merge a.onnx b.onnx -o two.onnx --side-by-side --prefix1 a/ --prefix2 b/\n",
    .options = options,
    .run = run_merge,
};
