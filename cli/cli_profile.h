/* cli_profile.h - what each operator and node takes, over several warm runs: --profile of run, bench and train. */
#ifndef ONX_CLI_PROFILE_H
#define ONX_CLI_PROFILE_H

#include "cli_cost.h"
#include "cli_value.h"

/* A step of the plan: a node, or several that run as one. */
typedef struct profile_step {
    char *name, *op; /* of the node; op is never NULL */
    const char *variant;
    uint32_t post_ops;
    bool measured;                   /* the kernel is one that --measure has found */
    uint64_t total_ns, output_bytes; /* over all runs; of the last one */
    uint64_t start_ns, end_ns;       /* of the last run */
    double macs, bytes;              /* as the model has the node; negative: not known */
} profile_step;

typedef struct cli_profile {
    cli_call *call;
    profile_step *step; /* in the order in which they run */
    size_t count;
    uint32_t room;
    unsigned runs;
    double seconds;       /* of all those runs, what is between the nodes included */
    double flops, copied; /* what this machine does per second: products of matrices, bytes copied */
    double bound;         /* seconds that a run takes at these rates: of each node the longer one of its arithmetic and
                           * the reading of its weights; bodies count once; 0: not known */
    size_t at;            /* the next step of the run in hand */
    bool no_memory, changed; /* steps are others than those of the run before, which then does not count */
} cli_profile;

/* Runs the session until a second has passed or there are ten runs, but at least twice; the first run does not count.
 * `options` are those of the session. Free the profile in any case. */
onx_status cli_profile_run(cli_profile *profile, onx_doc *doc, onx_session *session, const onx_session_options *options,
                           const onx_value *const *inputs, const onx_run_options *limits);
void cli_profile_free(cli_profile *profile);
/* The same for runs that something else makes, such as the steps of a trainer: note is the event of their options with
 * the profile as user; begin comes before each run, and end, with the seconds that it took and whether it counts,
 * behind it. */
void cli_profile_begin(cli_profile *profile);
void cli_profile_note(void *profile, const onx_run_event *event);
onx_status cli_profile_end(cli_profile *profile, double seconds, bool counts);
/* What the machine does with the options of the session, for the rates that are printed. */
onx_status cli_profile_measure(cli_profile *profile, const onx_session_options *options);
/* A table by operator, then one by node. */
onx_status cli_profile_print(const cli_profile *profile);
onx_status cli_profile_json(const cli_profile *profile, cli_json *json);
/* The last run in the format of Chrome's and Perfetto's trace viewers. That it was written is said. */
onx_status cli_profile_trace(const cli_profile *profile, const char *path);

/* clang-format off */
#define CLI_OPTIONS_PROFILE \
    { "profile", 0, NULL, NULL, "print the time of operators and nodes, over several warm runs" }, \
    { "trace", 0, "FILE", NULL, "write a Chrome trace of the last of these runs to FILE (run: onx-trace.json)" }
/* clang-format on */

#endif
