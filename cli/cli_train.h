/* cli_train.h - the parts of `onx train`: samples from files, and the state that is kept in checkpoints. */
#ifndef ONX_CLI_TRAIN_H
#define ONX_CLI_TRAIN_H

#include "cli_value.h"

#include <onx/train.h>

/* ---- samples (cli_train_data.c) ---- */

/* An input of the step: what files give for it, sample by sample along the first axis, or one value for all steps. */
typedef struct cli_train_input {
    char *name;
    const onx_type *type; /* may be NULL */
    bool required;
    onx_value *parts;     /* a sequence: the arrays of this name, in the order of the files */
    uint64_t *part_start; /* samples before each */
    uint64_t samples;
    onx_value *value; /* of --set, or the batch in hand; NULL: neither */
    bool set;
} cli_train_input;

typedef struct cli_batches {
    cli_call *call;
    cli_train_input *columns;
    uint32_t count;
    uint64_t samples;
    int64_t fixed; /* samples in a batch, where an input says it; else 0 */
} cli_batches;

/* The inputs of the step of `entry` but for variables, and what --data and --set give for them. Names that no input
 * has, arrays that do not fit, and inputs without a value are errors, printed. Free `out` in any case. */
onx_status cli_batches_open(cli_call *call, onx_doc *doc, const onx_trainer *t, uint32_t entry, cli_batches *out);
void cli_batches_free(cli_batches *s);
cli_train_input *cli_batches_find(const cli_batches *s, onx_str name);
/* Fills the batches of all columns with the samples `which`. */
onx_status cli_batches_batch(cli_batches *s, const uint64_t *which, uint64_t count);

/* ---- state (cli_train_state.c) ---- */

/* What a checkpoint holds beside the variables. */
typedef struct cli_train_state {
    uint64_t epoch;          /* how many are complete */
    uint64_t waiting;        /* how many since the best one */
    double best;             /* the loss of that; infinite: there is none */
    uint64_t batch, samples; /* of the run that made it */
    uint64_t seed;
    double validation; /* the part that is kept for that */
    bool shuffle;
} cli_train_state;

/* Writes the document to a path that may have been written by this run before, with the state for a checkpoint or
 * NULL. */
onx_status cli_train_save(cli_call *call, onx_doc *doc, const char *path, const cli_train_state *state);
/* The same for bytes. */
onx_status cli_train_save_bytes(cli_call *call, const char *path, onx_str bytes);
/* Gives `take` the bytes of a file that is to be written again, which the context of the call would not allow where it
 * had read it. */
onx_status cli_train_load_bytes(cli_call *call, const char *path, onx_status (*take)(void *user, onx_str bytes),
                                void *user);
/* Reads the checkpoint of a model, which it has to fit; ONX_OK and *out NULL when there is no such file. Errors are
 * printed. */
onx_status cli_train_resume(cli_call *call, const onx_doc *model, const char *path, cli_train_state *state,
                            onx_doc **out);

#endif
