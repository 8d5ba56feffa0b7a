/* cli_value.h - values in files: protobuf messages and NumPy arrays. */
#ifndef ONX_CLI_VALUE_H
#define ONX_CLI_VALUE_H

#include "cli.h"

#include <onx/run.h>
#include <onx/tensor.h>

/* Reads .npy, .npz (member `name`, or the only one), otherwise the message that matches `type` (NULL: a tensor). */
onx_status cli_value_load(cli_call *call, const char *path, const onx_type *type, onx_str name, onx_value **out);
/* Writes a message (.pb), or a NumPy array if the path ends in .npy. */
onx_status cli_value_save(cli_call *call, const char *path, const onx_value *value, onx_str name);
/* The same if the path does not determine the format: an array if `npy` is set, or the path ends in .npy. */
onx_status cli_value_save_as(cli_call *call, const char *path, bool npy, const onx_value *value, onx_str name);

/* ---- printing values as text and JSON (cli_print_value.c) ---- */

enum { CLI_TOP_MOST = 100 };
typedef struct cli_look {
    bool full;    /* print all elements */
    uint64_t top; /* print the largest of each row of the last dimension instead, at most CLI_TOP_MOST; 0: not
                   * requested */
} cli_look;

/* Prints type, shape and what `look` requests, by default the first elements, and minimum, maximum and mean of the
 * finite ones; NaN and infinities are counted. No newline at the end. `to` is standard output, or a memory stream for
 * it. */
void cli_put_value(FILE *to, const onx_value *value, const cli_look *look);
/* The same as members of the open object: all elements, or the largest. Values that JSON cannot express are the strings
 * "NaN", "Infinity" and "-Infinity". */
void cli_json_value(cli_json *json, const onx_value *value, const cli_look *look);

/* The ONX_ISA_* constant of a name, as in the environment variable ONX_ISA and `onx compare --isa`; 0: none, the best
 * available. */
unsigned cli_isa(const char *name);
/* Reads --threads, --timeout, --max-iterations, and ONX_KERNELS and ONX_ISA from the environment; false after an error
 * message. `threads` contains the default, and receives the result. */
bool cli_run_options(const cli_call *call, uint64_t *threads, onx_session_options *session, onx_run_options *run);
/* clang-format off */
#define CLI_OPTION_TIMEOUT { "timeout", 0, "SECONDS", NULL, "end a run, including its planning, after this time" }
#define CLI_OPTION_MAX_ITERATIONS { "max-iterations", 0, "N", NULL, "end a run that enters loop bodies and branches more than N times" }
#define CLI_OPTION_STRICT { "strict", 0, NULL, NULL, "refuse models that break the standard, even if their meaning is clear, and lists of one element for scalars" }, \
    { "strict-opset", 0, NULL, NULL, "refuse operator sets and IR versions newer than the newest known; otherwise the newest known serves, with a warning" }
#define CLI_OPTION_NO_OPTIMIZE { "no-optimize", 0, NULL, NULL, "run the nodes as they are in the model, without fusion" }
#define CLI_OPTION_PRECISION { "precision", 0, "TYPE", "full|bf16|f16|int8-weights", "type that constant weights of products may be held in" }
#define CLI_OPTION_CACHE { "cache", 0, "DIR", NULL, "store packed weights in this folder, so that later runs start faster" }
#define CLI_OPTION_LEAN { "lean-memory", 0, NULL, NULL, "memory before speed: use weights directly from the mapped file, and keep almost no packed copies" }
#define CLI_OPTIONS_MEASURE \
    { "measure", 0, NULL, NULL, "measure which kernels are the fastest on this machine, once per model and --cache folder" }, \
    { "no-measure", 0, NULL, NULL, "use the fixed order of kernels; this is the default and overrides --measure" }
/* Options of commands that create a session for each model. */
#define CLI_OPTIONS_SESSION CLI_OPTION_TIMEOUT, CLI_OPTION_MAX_ITERATIONS, CLI_OPTION_NO_OPTIMIZE, \
    CLI_OPTION_STRICT, CLI_OPTION_PRECISION, CLI_OPTION_CACHE, CLI_OPTIONS_MEASURE, CLI_OPTION_LEAN
/* clang-format on */

int cli_bench_model(cli_call *call);    /* `onx bench MODEL` */
int cli_bench_accuracy(cli_call *call); /* with --accuracy */

#endif
