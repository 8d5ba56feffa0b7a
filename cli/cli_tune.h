/* cli_tune.h - models made smaller, measured: sample data, runs of the model as it was and as it is now, the error of
 * each, and which nodes have to stay as they were for the error to be small enough. */
#ifndef ONX_CLI_TUNE_H
#define ONX_CLI_TUNE_H

#include "cli_compare.h"
#include "cli_inputs.h"
#include "cli_transform.h"

/* clang-format off */
/* Rows for the table of options; with CLI_OPTIONS_INPUTS but `input`, for what the data does not give. */
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

typedef struct cli_samples {
    cli_call *call;
    char **where; /* count of them, or NULL: made up */
    uint32_t count, room;
    uint32_t first; /* index 0 is this one of them */
    bool given;     /* by --data */
} cli_samples;

/* False, with the error printed: no sample is there, or a folder cannot be read. */
onx_status cli_samples_open(cli_call *call, cli_samples *out);
void cli_samples_close(cli_samples *s);
/* Says so, on standard error, when the samples are made up. */
void cli_samples_say(const cli_samples *s);
onx_status cli_samples_read(const cli_samples *s, uint32_t index, onx_doc *doc, const onx_session *session,
                            cli_inputs *out);

/* Runs the model of `doc` over all samples with the inner values (indexes into `inner`) as further outputs, some at a
 * time, and shows each: `value` is the index into the list, or the number of these + the index of an output of the
 * model. */
typedef struct cli_visit {
    onx_status (*see)(void *user, uint32_t sample, uint32_t value, const onx_value *v);
    onx_status (*input)(void *user, onx_str name, const onx_value *v); /* of the sample; may be NULL */
    void *user;
} cli_visit;
onx_status cli_observe(const cli_samples *s, cli_inner *inner, const uint32_t *chosen, uint32_t count,
                       const cli_visit *visit);

/* How far outputs are apart: the root of the ratio of the sums of squares, |b - a| / |a|. Not finite: there is nothing
 * to compare, or the one has numbers that are not finite where the other has. */
double cli_apart(const onx_value *a, const onx_value *b);

/* ---- a change that is made with some nodes left out ---- */

typedef struct cli_tune {
    cli_call *call;
    const cli_samples *samples;
    const char *path; /* of the model */
    double max_error; /* below 0: none is asked for */
    /* Changes a fresh document; `keep` are names of nodes (of first outputs, for those without) to leave alone. */
    onx_status (*apply)(void *user, onx_doc *doc, const onx_str *keep, uint32_t keep_count);
    void *user;
    /* results */
    double error;  /* of the worst output over all samples */
    onx_str *keep; /* in memory of the first document */
    uint32_t keep_count, tries;
    onx_doc *original;            /* that names and errors are of */
    struct cli_node_error *nodes; /* sorted: the worst first */
    uint32_t node_count;
    bool told; /* that there are numbers in the data that are not finite */
} cli_tune;

typedef struct cli_node_error {
    onx_str name, op;
    double error; /* of its first output */
    double added; /* by the node: less that of its inputs */
    bool kept;
} cli_node_error;

/* Tries without leaving out any but t->keep, then with more and more of the worst nodes, until the error is small
 * enough; *out is the changed model that is. CLI says when none is. */
onx_status cli_tune_run(cli_tune *t, onx_doc **out);
void cli_tune_close(cli_tune *t);
onx_status cli_tune_keep(cli_tune *t, onx_str name);

/* cli_transform_save, with weights in NAME.data beside it where they are to be `outside`, as those of the model that it
 * was made from, or would make the file too large. */
onx_status cli_save_beside(const cli_transform *t, onx_doc *doc, bool outside);
bool cli_is_external(cli_call *call, const onx_doc *doc);
/* The folder of an output, in `buf`, for files that take no memory; NULL where it has none. */
const char *cli_folder_of(const char *path, char *buf, size_t size);
/* The values of an option that may be repeated, as views; NULL with the error printed. */
onx_str *cli_texts(const cli_call *call, const char *option, uint32_t *count);

#endif
