/* cli_outputs.h - prints or writes values that a model computes: its outputs, and inner values. */
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
    onx_str name;     /* from the document, or allocated in `text` */
    onx_value *value; /* or */
    char *shown;      /* its formatted text for standard output */
    char *text;
} cli_named;

typedef struct cli_outputs {
    cli_call *call;
    cli_look look;
    const char *folder;      /* destination folder that overrides the options, NULL: none */
    cli_json *json;          /* destination of --json, NULL: a new object */
    uint32_t own;            /* number of outputs of the model itself */
    bool all;                /* all computed values */
    bool *wanted;            /* per option --outputs: not in the main graph, so searched for in events */
    bool *seen;              /* per option: an event had it */
    int wanted_count;        /* number of options --outputs */
    bool inside;             /* events are needed */
    onx_status status;       /* status of the event handler */
    struct onx_infer *infer; /* owns the types of outputs that were added to the document */
    cli_named *list;         /* values to print, in order */
    uint32_t count, room;
} cli_outputs;

/* Reads the options, before the session is created: inner values of the main graph become outputs of `doc`; those
 * inside of functions and subgraphs are collected by events during the run, for which `options` may be changed. */
onx_status cli_outputs_open(cli_call *call, onx_doc *doc, onx_session_options *options, cli_outputs *out);
/* Checks that all output files can be written, before a run that may take hours. */
onx_status cli_outputs_claim(cli_outputs *o, const onx_session *s);
/* Runs the model; `outputs` has room for those of the session, and owns them. */
onx_status cli_outputs_run(cli_outputs *o, onx_session *s, const onx_run_options *limits,
                           const onx_value *const *inputs, onx_value **outputs);
/* Prints or writes the values. */
onx_status cli_outputs_put(cli_outputs *o);
/* Prepares for another run. */
void cli_outputs_clear(cli_outputs *o);
void cli_outputs_free(cli_outputs *o);

#endif
