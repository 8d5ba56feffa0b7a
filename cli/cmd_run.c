/* cmd_run.c - `onx run`: runs a model on inputs from files or on made-up ones, and writes or summarises the outputs. */
#include "cli_image.h"
#include "cli_inputs.h"
#include "cli_outputs.h"
#include "cli_profile.h"
#include "cli_ranks.h"
#include "cli_sets.h"

#include <onx/text.h>

#include <stdlib.h>

static const char *trace_path(const cli_call *call)
{
    const char *path = cli_value(call, "trace");
    return path || !cli_has(call, "profile") ? path : "onx-trace.json";
}

/* ---- the command ---- */

/* Runs the session several more times, and prints the profile. */
static onx_status run_profile(cli_call *call, onx_doc *doc, onx_session *s, const onx_session_options *options,
                              const onx_run_options *limits, const onx_value *const *inputs)
{
    cli_profile p = { .call = call };
    onx_status status = cli_profile_run(&p, doc, s, options, inputs, limits);
    if (status == ONX_OK)
        status = cli_profile_trace(&p, trace_path(call));
    if (status == ONX_OK)
        status = cli_profile_print(&p);
    cli_profile_free(&p);
    return status;
}

static onx_status run_session(cli_call *call, onx_session *s, const onx_run_options *limits, onx_value **inputs,
                              cli_outputs *o)
{
    const uint32_t count = onx_session_output_count(s);
    if (cli_has(call, "profile"))
        ONX_TRY(onx_output_claim(call->cx, trace_path(call), false));
    if (cli_ranks_first(call))
        ONX_TRY(cli_outputs_claim(o, s));
    onx_value **outputs = calloc(count + 1u, sizeof *outputs);
    onx_status status =
        outputs ? cli_outputs_run(o, s, limits, (const onx_value *const *)inputs, outputs) : ONX_E_MEMORY;
    if (status == ONX_OK && cli_ranks_first(call))
        status = cli_outputs_put(o);
    for (uint32_t i = 0; outputs && i < count; i++)
        onx_value_free(outputs[i]);
    free(outputs);
    return status;
}

static int run_run(cli_call *call)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    if (!cli_run_options(call, &threads, &options, &limits))
        return CLI_MISUSE;
    if (cli_has(call, "trace") && !cli_has(call, "profile"))
        return cli_error(call, "--trace needs --profile");
    if (call->ranks && cli_has(call, "profile"))
        return cli_error(call, "--profile measures a single rank, but --configuration runs several");
    if (!cli_sets_options(call))
        return CLI_MISUSE;
    if (cli_has(call, "json") && cli_has(call, "profile"))
        return cli_error(call, "--json prints the outputs, and --profile would print a table between them");
    onx_doc *doc;
    onx_session *s = NULL;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    const char *input = call->input;
    cli_outputs outputs;
    status = cli_outputs_open(call, doc, &options, &outputs);
    if (status == ONX_OK)
        status = cli_session_new(call, doc, &options, &s);
    if (status == ONX_OK && cli_has(call, "batches")) {
        status = cli_sets_run(call, doc, s, &limits, &outputs);
    } else if (status == ONX_OK) {
        cli_inputs inputs;
        status = cli_inputs_read(call, doc, s, cli_ranks_first(call) ? 0 : CLI_SILENT, &inputs);
        if (status == ONX_OK)
            status = run_session(call, s, &limits, inputs.values, &outputs);
        if (status == ONX_OK && cli_has(call, "profile"))
            status = run_profile(call, doc, s, &options, &limits, (const onx_value *const *)inputs.values);
        cli_inputs_free(&inputs);
    }
    onx_session_free(s);
    cli_outputs_free(&outputs);
    if (call->input == input) /* otherwise diagnostics concern the file of an input value */
        (void)onx_text_locate(doc, 0);
    onx_doc_free(doc);
    return cli_exit(call, status);
}

/* clang-format off */
static const cli_option options_[] = {
    CLI_OPTIONS_INPUTS,
    CLI_OPTIONS_IMAGES,
    CLI_OPTIONS_OUTPUTS,
    CLI_OPTIONS_PROFILE,
    { "threads", 0, "N", NULL, "threads to use (0: one per processor)" },
    CLI_OPTIONS_SESSION,
    CLI_OPTIONS_SETS,
    CLI_OPTIONS_RANKS,
    CLI_END,
};
/* clang-format on */

const cli_command cmd_run = {
    .name = "run",
    .summary = "run a model",
    .operands = "MODEL",
    .help = "Without --output a summary of the outputs is printed on standard output; --full and --json print all\n"
            "elements. Inputs that have an initializer of the same name may be omitted. When --outputs names\n"
            "values inside of functions or subgraphs, or all, the nodes run one by one with plain kernels; NAME#2\n"
            "is the second value of a name. ONX_KERNELS=plain turns the fast kernels off. ONX_ISA=base, v3, v4,\n"
            "vnni or bf16 selects the kernels of an older instruction set.\n",
    .example = "onx run model.onnx --random --dim batch=4\nonx run model.onnx -i x=x.npy -i sr=16000 -o out.npz\n"
               "onx run model.onnx --random --shape x=1x3x224x224 --top-k 5\n"
               "mpirun -n 4 onx run model.onnx --configuration four --random -o out.npz\n"
               "mpirun -n 4 onx run model.onnx --batches inputs/ --ranks -o results/\n"
               "onx run resnet18.onnx -i image=cat.png --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --top-k 5\n",
    .options = options_,
    .run = run_run,
};
