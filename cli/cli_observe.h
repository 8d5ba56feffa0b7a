/* cli_observe.h - shows the values that runs of a model compute: of the main graph and of the bodies of If, Loop and
 * Scan at any depth, each time they are computed. Nothing is kept, so one run suffices for any number of values. */
#ifndef ONX_CLI_OBSERVE_H
#define ONX_CLI_OBSERVE_H

#include "cli_inputs.h"

#include <onx/infer.h>
#include <onx/kernel.h>

typedef struct cli_samples {
    cli_call *call;
    char **where; /* `count` paths, or NULL: made up */
    uint32_t count, room;
    bool given; /* from --data */
} cli_samples;

/* False, with the error printed, if there is no sample, or a folder cannot be read. */
onx_status cli_samples_open(cli_call *call, cli_samples *out);
void cli_samples_close(cli_samples *s);
/* Reports on standard error if samples are made up. */
void cli_samples_say(const cli_samples *s);
onx_status cli_samples_read(const cli_samples *s, uint32_t index, onx_doc *doc, const onx_session *session,
                            cli_inputs *out);

/* The values of a graph are listed in this order: its inputs, its initializers, the outputs of its nodes. Those of the
 * graphs of a node come before the outputs of the node. Only tensors of floating-point numbers, and values of unknown
 * type, are listed. */
typedef enum cli_origin { CLI_FROM_INPUT, CLI_FROM_WEIGHT, CLI_FROM_NODE } cli_origin;

typedef struct cli_observed {
    onx_str name;
    uint32_t node;    /* index in `nodes`; UINT32_MAX: no node computes it */
    uint32_t ordinal; /* how many values before it have the same name, in other graphs */
    int64_t row;      /* size of the last axis, -1: unknown or none */
    uint32_t at;      /* private: how many values come before it, those of other types included */
    cli_origin from;
    bool wanted; /* set by the caller before the start; false initially */
} cli_observed;

typedef struct cli_observed_node {
    const onx_node *node;
    bool opened; /* the values of its graphs are listed */
} cli_observed_node;

/* Value `value` of sample `sample`: an index into the list; or the length of the list + the index of an output of the
 * model. */
typedef struct cli_visit {
    onx_status (*see)(void *user, uint32_t sample, uint32_t value, const onx_value *v);
    void *user;
} cli_visit;

typedef struct cli_observer {
    cli_call *call;
    onx_doc *doc;
    uint32_t outputs; /* number of outputs of the model */
    cli_observed *list;
    cli_observed_node *nodes; /* of all graphs; the nodes inside of a node come before it */
    uint32_t count, room, node_count, node_room;
    /* private */
    onx_infer *infer;
    onx_model before; /* the model as it was */
    bool started;
    onx_session *session;
    onx_kernel rows[2];
    cli_visit visit;
    uint32_t sample, next, met, made;
} cli_observer;

/* Lists the values. Functions of the model have to be inlined before (onx_inline). */
onx_status cli_observer_open(cli_observer *o, cli_call *call, onx_doc *doc);
/* Prepares runs that show the wanted values; the document must not be changed until the observer is closed, which
 * restores it. */
onx_status cli_observer_start(cli_observer *o);
/* Runs the model on one sample. */
onx_status cli_observer_run(cli_observer *o, const cli_samples *samples, uint32_t sample, const cli_visit *visit);
void cli_observer_close(cli_observer *o);

#endif
