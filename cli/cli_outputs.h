/* cli_outputs.h - what a command shows or writes of the values that a model computes: its outputs, and values inside.
 */
#ifndef ONX_CLI_OUTPUTS_H
#define ONX_CLI_OUTPUTS_H

#include "cli_value.h"

/* clang-format off */
#define CLI_OPTIONS_OUTPUTS \
    { "output", 'o', "WHERE", NULL, "write the outputs: to output_0.pb, output_1.pb, ... in a folder, all of them to FILE.npz, or a single one to FILE.npy or FILE.pb; - is standard output" }, \
    { "output-dir", 0, "DIR", NULL, "write the outputs to this folder, whatever its name" }, \
    { "npy", 0, NULL, NULL, "write NumPy files instead of protobuf messages" }, \
    { "outputs", 0, "NAME|all", NULL, "print these values; they may be inside of the model, its functions and subgraphs; may be repeated" }, \
    { "full", 0, NULL, NULL, "print all elements" }, \
    { "top-k", 0, "N", NULL, "print the N largest elements of each row with their indexes" }, \
    CLI_OPTION_JSON
/* clang-format on */

typedef struct cli_named {
    onx_str name;     /* of the document, or in text */
    onx_value *value; /* or */
    char *shown;      /* what standard output gets of it */
    char *text;
} cli_named;

typedef struct cli_outputs {
    cli_call *call;
    cli_look look;
    const char *folder;      /* where they go in place of what options say, NULL: there */
    cli_json *json;          /* what --json writes them to, NULL: an object of their own */
    uint32_t own;            /* outputs that the model has without us */
    bool all;                /* every value that is computed */
    bool *wanted;            /* by options of --outputs: not found in the main graph, so looked for in events */
    bool *seen;              /* by option: an event had it */
    int wanted_count;        /* how many options of --outputs there are */
    bool inside;             /* events are needed */
    onx_status status;       /* of what events did */
    struct onx_infer *infer; /* keeps the types of outputs that were added to the document */
    cli_named *list;         /* what is shown, in order */
    uint32_t count, room;
} cli_outputs;

/* Reads the options, before the session is made: values inside of the main graph become outputs of `doc`, those inside
 * of functions and subgraphs are taken while the model runs, for which `options` may have to change. */
onx_status cli_outputs_open(cli_call *call, onx_doc *doc, onx_session_options *options, cli_outputs *out);
/* Whether all that will be written may be, before a run that may take hours. */
onx_status cli_outputs_claim(cli_outputs *o, const onx_session *s);
/* Runs the model; `outputs` has room for those of the session, and keeps them. */
onx_status cli_outputs_run(cli_outputs *o, onx_session *s, const onx_run_options *limits,
                           const onx_value *const *inputs, onx_value **outputs);
/* Prints or writes them. */
onx_status cli_outputs_put(cli_outputs *o);
/* Another run follows. */
void cli_outputs_clear(cli_outputs *o);
void cli_outputs_free(cli_outputs *o);

#endif
