/* cmd_run.c - `onx run`: runs a model on inputs from files or made up, and writes or sums up the outputs. */
#include "cli_inputs.h"
#include "cli_profile.h"

#include <onx/text.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- outputs ---- */

/* "DIR/output_3.pb"; NULL when out of memory. */
static char *output_path(cli_call *call, uint32_t index)
{
    const char *dir = cli_value(call, "output-dir");
    size_t room = strlen(dir) + 40;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/output_%u.%s", dir, index, cli_has(call, "npy") ? "npy" : "pb");
    else
        cli_error(call, "out of memory");
    return path;
}

/* A profile is written as a trace as well, NULL: there is none. */
static const char *trace_path(const cli_call *call)
{
    const char *path = cli_value(call, "trace");
    return path || !cli_has(call, "profile") ? path : "onx-trace.json";
}

/* Whether all that will be written may be, before a run that may take hours. */
static onx_status claim_outputs(cli_call *call, onx_session *s)
{
    const char *dir = cli_value(call, "output-dir");
    if (trace_path(call))
        ONX_TRY(onx_output_claim(call->cx, trace_path(call), false));
    if (dir && mkdir(dir, 0777) != 0 && errno != EEXIST) {
        cli_error(call, "cannot make the folder %s: %s", dir, strerror(errno));
        return ONX_E_IO;
    }
    for (uint32_t i = 0; dir && i < onx_session_output_count(s); i++) {
        char *path = output_path(call, i);
        onx_status status = path ? onx_output_claim(call->cx, path, false) : ONX_E_MEMORY;
        free(path);
        ONX_TRY(status);
    }
    return ONX_OK;
}

static onx_status write_outputs(cli_call *call, onx_session *s, onx_value *const *outputs)
{
    for (uint32_t i = 0; i < onx_session_output_count(s); i++) {
        char *path = output_path(call, i);
        onx_status status = path ? cli_value_save(call, path, outputs[i], onx_session_output(s, i).name) : ONX_E_MEMORY;
        free(path);
        ONX_TRY(status);
    }
    return ONX_OK;
}

static void print_value(const onx_value *v)
{
    static const char *const kinds[] = { "nothing", "tensor", "sequence", "optional", "map" };
    if (v->kind != ONX_VALUE_TENSOR) {
        printf("%s of %llu", kinds[v->kind], (unsigned long long)v->count);
        return;
    }
    printf("%s[", onx_dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)v->dims[i]);
    printf("]");
    unsigned width = onx_dtype_bits(v->dtype) / 8;
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    if (v->dtype == ONX_STRING) {
        for (uint64_t i = 0; i < v->count && i < 4; i++) {
            printf(" \"");
            cli_put_text(stdout, ((const onx_str *)v->data)[i]);
            printf("\"");
        }
        return;
    }
    if (!width || class == ONX_CLASS_COMPLEX || !v->count)
        return;
    double least = INFINITY, most = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        double x = 0;
        onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, (const char *)v->data + i * width, 1, true);
        least = x < least ? x : least;
        most = x > most ? x : most;
        sum += x;
        if (i < 4)
            printf(" %.6g", x);
    }
    printf("%s  (min %.6g, max %.6g, mean %.6g)", v->count > 4 ? " ..." : "", least, most, sum / (double)v->count);
}

static void print_outputs(onx_session *s, onx_value *const *outputs)
{
    for (uint32_t i = 0; i < onx_session_output_count(s); i++) {
        printf("%s", cli_color(stdout, CLI_BOLD));
        cli_put_text(stdout, onx_session_output(s, i).name);
        printf("%s  ", cli_color(stdout, CLI_PLAIN));
        print_value(outputs[i]);
        putchar('\n');
    }
}

/* ---- the command ---- */

/* Runs it again, some times, and says what took how long. */
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
                              onx_value **outputs)
{
    ONX_TRY(claim_outputs(call, s));
    ONX_TRY(onx_session_run_with(s, call->cx, (const onx_value *const *)inputs, outputs, limits));
    if (cli_has(call, "output-dir"))
        return write_outputs(call, s, outputs);
    print_outputs(s, outputs);
    return ONX_OK;
}

static int run_run(cli_call *call)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    if (!cli_run_options(call, &threads, &options, &limits))
        return CLI_MISUSE;
    if (cli_has(call, "trace") && !cli_has(call, "profile"))
        return cli_error(call, "--trace goes with --profile");
    onx_doc *doc;
    onx_session *s = NULL;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    const char *input = call->input;
    status = onx_session_new(call->cx, doc, &options, &s);
    if (status == ONX_OK) {
        uint32_t no = onx_session_output_count(s);
        cli_inputs inputs;
        onx_value **outputs = calloc(no + 1u, sizeof *outputs);
        status = cli_inputs_read(call, doc, s, 0, &inputs);
        if (status == ONX_OK)
            status = outputs ? run_session(call, s, &limits, inputs.values, outputs) : ONX_E_MEMORY;
        if (status == ONX_OK && cli_has(call, "profile"))
            status = run_profile(call, doc, s, &options, &limits, (const onx_value *const *)inputs.values);
        cli_inputs_free(&inputs);
        for (uint32_t i = 0; outputs && i < no; i++)
            onx_value_free(outputs[i]);
        free(outputs);
    }
    onx_session_free(s);
    if (call->input == input) /* else it is about the file of a value */
        (void)onx_text_locate(doc, 0);
    onx_doc_free(doc);
    return cli_exit(call, status);
}

static const cli_option options_[] = {
    CLI_OPTIONS_INPUTS,
    CLI_OPTION_RANDOM,
    { "output-dir", 'o', "DIR", NULL, "write output_0.pb, output_1.pb, ... in graph order" },
    { "npy", 0, NULL, NULL, "write NumPy files instead" },
    CLI_OPTIONS_PROFILE,
    { "threads", 0, "N", NULL, "threads to use (0: one per processor)" },
    CLI_OPTION_OPSET_DOC,
    CLI_OPTION_LIBRARY,
    CLI_OPTION_TIMEOUT,
    CLI_OPTION_MAX_ITERATIONS,
    CLI_OPTION_NO_OPTIMIZE,
    CLI_OPTION_STRICT,
    CLI_OPTION_PRECISION,
    CLI_END,
};

const cli_command cmd_run = {
    .name = "run",
    .summary = "run a model",
    .operands = "MODEL",
    .help = "Without --output-dir the outputs are summed up on standard output. Inputs that have an\n"
            "initializer of the same name may be left out. ONX_KERNELS=plain turns the fast kernels off.\n"
            "ONX_ISA=base, v3 or v4 asks for those of an older processor.\n",
    .example = "onx run model.onnx --random --dim batch=4\nonx run model.onnx --input x=x.npy --output-dir out --npy\n",
    .options = options_,
    .run = run_run,
};
