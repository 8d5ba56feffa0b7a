/* cli_train.h - the parts of `onx train`: samples from files, measurements, plots, and the state in checkpoints. */
#ifndef ONX_CLI_TRAIN_H
#define ONX_CLI_TRAIN_H

#include "cli_value.h"

#include <onx/train.h>

/* ---- samples (cli_train_data.c) ---- */

/* An input of the step: samples along the first axis of arrays from files, or a fixed value for all steps. */
typedef struct cli_train_input {
    char *name;
    const onx_type *type; /* may be NULL */
    bool required;
    onx_value *parts;     /* a sequence: the arrays of this name, in file order */
    uint64_t *part_start; /* number of samples before each array */
    uint64_t samples;
    onx_value *value; /* of --set, or the current batch; NULL: neither */
    bool set;
} cli_train_input;

typedef struct cli_batches {
    cli_call *call;
    cli_train_input *columns;
    uint32_t count;
    uint64_t samples;
    int64_t fixed; /* the batch size if an input fixes it; else 0 */
} cli_batches;

/* The inputs of the step of `entry`, except variables, with the data of --data and --set. Names that match no input,
 * arrays that do not fit, and inputs without a value are errors, which are printed. Free `out` in any case. */
onx_status cli_batches_open(cli_call *call, onx_doc *doc, const onx_trainer *t, uint32_t entry, cli_batches *out);
void cli_batches_free(cli_batches *s);
cli_train_input *cli_batches_find(const cli_batches *s, onx_str name);
/* Fills the current batch of all columns with the samples `which`. */
onx_status cli_batches_batch(cli_batches *s, const uint64_t *which, uint64_t count);

/* ---- measured outputs (cli_train_measure.c) ---- */

enum { CLI_MEASURES_MAX = 8 };

typedef struct cli_measures {
    uint32_t entry;
    onx_named_value outputs[CLI_MEASURES_MAX]; /* the loss, followed by other scalars */
    uint32_t count;
    onx_named_value *inputs; /* of the entry, those with values */
    uint32_t input_count;
    double sum[CLI_MEASURES_MAX]; /* over samples */
    uint64_t samples;
} cli_measures;

/* Selects outputs of an entry that are not bound to a variable; `loss` may be NULL: the first suitable one. Free `out`
 * in any case. */
onx_status cli_measures_open(cli_call *call, const onx_doc *doc, const cli_batches *data, uint32_t entry,
                             const char *loss, cli_measures *out);
/* The same for validation: uses an entry that changes no variable and has an output with the name of the loss, if there
 * is one; otherwise the step itself. */
onx_status cli_measures_without_learning(cli_call *call, const onx_doc *doc, const cli_batches *data,
                                         const cli_measures *steps, cli_measures *out);
void cli_measures_free(cli_measures *m);
void cli_measures_reset(cli_measures *m);
/* Adds the outputs of a step over `samples` samples. */
onx_status cli_measures_add(cli_call *call, cli_measures *m, uint64_t samples, double *loss);
onx_status cli_measures_number(cli_call *call, const char *name, const onx_value *v, double *out);
static inline double cli_measures_mean(const cli_measures *m, uint32_t i)
{
    return m->samples ? m->sum[i] / (double)m->samples : 0;
}

/* ---- plots (cli_train_plot.c) ---- */

typedef struct cli_curve {
    uint64_t epoch;
    double loss, validation; /* not finite: missing */
} cli_curve;

/* Writes the curves as SVG. */
onx_status cli_train_plot(cli_call *call, const char *path, const cli_curve *points, uint64_t count);

/* ---- state (cli_train_state.c) ---- */

/* The contents of a checkpoint beside the variables. */
typedef struct cli_train_state {
    uint64_t epoch;          /* number of complete epochs */
    uint64_t waiting;        /* number of epochs since the best one */
    double best;             /* its loss; infinite: there is none */
    uint64_t batch, samples; /* of the run that wrote it */
    uint64_t seed;
    double validation; /* the fraction of samples for validation */
    bool shuffle;
} cli_train_state;

/* Writes the document to a path that this run may have written before, with the state for a checkpoint, or NULL. */
onx_status cli_train_save(cli_call *call, onx_doc *doc, const char *path, const cli_train_state *state);
/* The same for bytes. */
onx_status cli_train_save_bytes(cli_call *call, const char *path, onx_str bytes);
/* Calls `take` with the bytes of a file that will be overwritten later; they are not read through the call's context,
 * which would then refuse to overwrite the file. */
onx_status cli_train_load_bytes(cli_call *call, const char *path, onx_status (*take)(void *user, onx_str bytes),
                                void *user);
/* Reads the checkpoint, which has to match the model; ONX_OK with *out NULL if there is no such file. Errors are
 * printed. */
onx_status cli_train_resume(cli_call *call, const onx_doc *model, const char *path, cli_train_state *state,
                            onx_doc **out);

#endif
