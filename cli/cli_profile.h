/* cli_profile.h - the time of each operator and node over several warm runs: --profile of run, bench and train. */
#ifndef ONX_CLI_PROFILE_H
#define ONX_CLI_PROFILE_H

#include "cli_cost.h"
#include "cli_value.h"

/* A step of the plan: a node, or several fused nodes. */
typedef struct profile_step {
    char *name, *op; /* of the node; op is never NULL */
    const char *variant;
    uint32_t post_ops;
    bool measured;                   /* the kernel was selected by --measure */
    uint64_t total_ns, output_bytes; /* total of all runs; bytes of the last run */
    uint64_t start_ns, end_ns;       /* of the last run */
    double macs, bytes;              /* of the node in the model; negative: unknown */
} profile_step;

typedef struct cli_profile {
    cli_call *call;
    profile_step *step; /* in execution order */
    size_t count;
    uint32_t room;
    unsigned runs;
    double seconds;       /* of all these runs, including time between nodes */
    double flops, copied; /* rates of this machine per second: matrix products, bytes copied */
    double bound;         /* lower bound of a run in seconds at these rates: for each node the maximum of its arithmetic
                           * and reading its weights; bodies count once; 0: unknown */
    size_t at;            /* the next step of the current run */
    bool no_memory, changed; /* changed: steps differ from those of the previous run, which is discarded */
} cli_profile;

/* Runs the session for a second or ten times, but at least twice; the first run is not counted. `options` are those of
 * the session. Free the profile in any case. */
onx_status cli_profile_run(cli_profile *profile, onx_doc *doc, onx_session *session, const onx_session_options *options,
                           const onx_value *const *inputs, const onx_run_options *limits);
void cli_profile_free(cli_profile *profile);
/* The same for runs by other code, such as the steps of a trainer: `note` is the event handler in its options, with the
 * profile as user; `begin` is called before each run, and `end` after it, with its time in seconds and whether it
 * counts. */
void cli_profile_begin(cli_profile *profile);
void cli_profile_note(void *profile, const onx_run_event *event);
onx_status cli_profile_end(cli_profile *profile, double seconds, bool counts);
/* Measures the rates of the machine with the session's options. */
onx_status cli_profile_measure(cli_profile *profile, const onx_session_options *options);
/* Prints a table by operator, then one by node. */
onx_status cli_profile_print(const cli_profile *profile);
onx_status cli_profile_json(const cli_profile *profile, cli_json *json);
/* Writes the last run in the format of the Chrome and Perfetto trace viewers, and reports that. */
onx_status cli_profile_trace(const cli_profile *profile, const char *path);

/* clang-format off */
#define CLI_OPTIONS_PROFILE \
    { "profile", 0, NULL, NULL, "print the time of operators and nodes, over several warm runs" }, \
    { "trace", 0, "FILE", NULL, "write a Chrome trace of the last of these runs to FILE (run: onx-trace.json)" }
/* clang-format on */

#endif
