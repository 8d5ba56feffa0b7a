/* cli_tune.h - measured conversions to smaller types: sample data, runs of the original and the changed model, their
 * difference, and which nodes have to stay unchanged to keep it small enough. */
#ifndef ONX_CLI_TUNE_H
#define ONX_CLI_TUNE_H

#include "cli_compare.h"
#include "cli_observe.h"
#include "cli_transform.h"

/* clang-format off */
/* Rows for the option table; the same as CLI_OPTIONS_INPUTS without `input`, for inputs that the data does not give. */
#define CLI_OPTIONS_DATA \
    { "data", 0, "WHERE", NULL, "sample inputs, as for --input of onx run: NAME=FILE, an .npz, or a folder: a test_data_set, or one that contains several; each is a sample; may be repeated" }, \
    { "samples", 0, "N", NULL, "make up N samples if there is no --data" }, \
    { "shape", 0, "NAME=1x512", NULL, "make up this input, with that shape; may be repeated" }, \
    { "range", 0, "NAME=LO:HI", NULL, "make up this input, with elements from LO to HI; may be repeated" }, \
    { "dim", 0, "NAME=N", NULL, "size of a symbolic dimension of made-up inputs (1); may be repeated" }, \
    { "seed", 0, "N", NULL, "seed of the made-up values (0)" }, \
    { "max-error", 0, "E", NULL, "keep nodes unchanged until the relative error of the outputs is at most E" }, \
    { "threads", 0, "N", NULL, "threads to run the model with (0: one per processor)" }
/* clang-format on */

/* The relative error of outputs: |b - a| / |a|, each the root of the sum of squares. Not finite if nothing can be
 * compared, or if only one side has non-finite elements. */
double cli_apart(const onx_value *a, const onx_value *b);

/* ---- a change that excludes some nodes ---- */

typedef struct cli_tune {
    cli_call *call;
    const cli_samples *samples;
    const char *path; /* of the model */
    double max_error; /* negative: not requested */
    /* Changes a fresh document; `keep` are names of nodes (of the first output, for unnamed ones) to leave
     * unchanged. */
    onx_status (*apply)(void *user, onx_doc *doc, const onx_str *keep, uint32_t keep_count);
    bool trying; /* during apply: the result is only measured, so nothing is to be reported */
    void *user;
    /* results */
    double error;  /* of the worst output over all samples */
    onx_str *keep; /* in memory of the first document */
    uint32_t keep_count, tries;
    onx_doc *original;            /* the document that names and errors refer to, without functions */
    cli_observer observer;        /* of it */
    struct cli_node_error *nodes; /* sorted: the largest error first */
    uint32_t node_count;
    bool told; /* non-finite elements in the data were reported */
} cli_tune;

typedef struct cli_node_error {
    onx_str name, op;
    double error; /* of its first output */
    double added; /* by the node itself: minus the error of its inputs */
    bool kept;
} cli_node_error;

/* Tries the change with t->keep unchanged, then with more and more of the worst nodes unchanged, until the error is
 * small enough; *out is the changed model. If no set suffices, an error is printed. */
onx_status cli_tune_run(cli_tune *t, onx_doc **out);
/* Only loads t->original; its names have to be those of t->keep. */
onx_status cli_tune_load(cli_tune *t);
void cli_tune_close(cli_tune *t);
onx_status cli_tune_keep(cli_tune *t, onx_str name);

/* cli_transform_save, but weights are written to NAME.data beside it if they are to be `outside`, like those of the
 * original model, or if the file would be too large otherwise. */
onx_status cli_save_beside(const cli_transform *t, onx_doc *doc, bool outside);
bool cli_is_external(cli_call *call, const onx_doc *doc);
/* The folder of an output, in `buf`, for spill files; NULL if it has none. */
const char *cli_folder_of(const char *path, char *buf, size_t size);
/* The values of an option that may be repeated, as views; NULL with the error printed. */
onx_str *cli_texts(const cli_call *call, const char *option, uint32_t *count);

#endif
