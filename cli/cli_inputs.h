/* cli_inputs.h - the inputs of a model, for every command that runs one: files, values on the command line, images, or
 * made-up values. */
#ifndef ONX_CLI_INPUTS_H
#define ONX_CLI_INPUTS_H

#include "cli_value.h"

/* Rows for the option table of a command; all options that the functions below read. Commands with CLI_MAKE_UP behave
 * as if --random were given. */
/* clang-format off */
#define CLI_OPTIONS_INPUTS \
    { "input", 'i', "NAME=VALUE", NULL, "an input: a file (.npy, .npz, .pb, .json, or an image), a number, or a list such as [[1,2],[3,4]]; without NAME=: an .npz or a test_data_set folder that contains all inputs; may be repeated" }, \
    { "shape", 0, "NAME=1x512", NULL, "make up this input, with that shape; may be repeated" }, \
    { "range", 0, "NAME=LO:HI", NULL, "make up this input, with elements from LO to HI; may be repeated" }, \
    { "dim", 0, "NAME=N", NULL, "size of a symbolic dimension of made-up inputs (1, or what suits the model); may be repeated" }, \
    { "seed", 0, "N", NULL, "seed of the made-up values (0)" }, \
    { "random", 0, NULL, NULL, "make up the inputs that are not given" }
/* clang-format on */

typedef struct cli_shape {
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
} cli_shape;
/* Parses 1x512, 1,512 or [1,512]; [] is a scalar. */
bool cli_shape_read(const char *text, cli_shape *out);

enum {
    CLI_MAKE_UP = 1, /* make up missing inputs even without --random */
    CLI_SILENT = 4,  /* do not report what is made up */
    CLI_WAVE = 2     /* made-up floats without --range are the wave sin(0.37 i), which is easy to reproduce in other
                      * programs */
};

typedef struct cli_inputs {
    onx_value **values; /* one per input of the session, in order; NULL: omitted, which its initializer allows */
    uint32_t count;
} cli_inputs;

/* Reads the inputs of a session for `doc` from the options. Names, shapes and ranges that match no input are errors,
 * which are printed. Made-up values are reported on standard error. Free `out` in any case. */
onx_status cli_inputs_read(cli_call *call, onx_doc *doc, const onx_session *s, unsigned flags, cli_inputs *out);
/* The same, with further inputs from a test data folder, an archive, or a file for the only input that options do not
 * give. */
onx_status cli_inputs_read_set(cli_call *call, onx_doc *doc, const onx_session *s, const char *set, unsigned flags,
                               cli_inputs *out);
void cli_inputs_free(cli_inputs *inputs);

/* ---- test data folders: DIR/input_0.pb, input_1.pb, ..., output_0.pb, ... (or .npy) ---- */

typedef struct cli_fault {
    char *path; /* free it */
    char text[200];
} cli_fault;

/* Reads the files, up to the first missing one, into the values of the session's inputs or outputs, replacing existing
 * values. If there are fewer input files than inputs, they belong to those without an initializer. `count` receives the
 * number of files. On failure `fault` gives the reason; diagnostics of the library are in the context. */
onx_status cli_data_set(cli_call *call, const onx_session *s, const char *dir, bool outputs, onx_value **values,
                        uint32_t *count, cli_fault *fault);

/* ---- values on the command line (cli_literal.c) ---- */

/* Is it a number, true, false, nan, inf, or the start of a list or of a quoted string? */
bool cli_is_literal(const char *text);
/* Parses a value; `what` names it in messages. A single value fills `shape`; NULL: it is a scalar. Errors are
 * printed. */
onx_status cli_literal(cli_call *call, const char *what, onx_str text, onx_dtype dtype, const cli_shape *shape,
                       onx_value **out);

/* ---- made-up values (cli_made_up.c) ---- */

typedef enum cli_pattern {
    CLI_PATTERN_RANGE, /* random numbers from low to high */
    CLI_PATTERN_STEPS, /* 0, 1, 2, ... */
    CLI_PATTERN_FLAT,  /* -1, 1, 1, ...: a shape that fits every tensor */
    CLI_PATTERN_LIST,  /* these elements; the last one is repeated */
    CLI_PATTERN_PARTS, /* sizes with a given sum */
    CLI_PATTERN_CHOICE /* elements of a list */
} cli_pattern;

typedef struct cli_wish {
    const cli_shape *shape; /* NULL: from the type; dimensions that are neither numbers nor symbols are 1 */
    cli_pattern pattern;
    bool has_range;
    bool hint;        /* the range is only a preference, and is clipped to the element type */
    double low, high; /* for integers both ends are included */
    int64_t list[8];  /* for CLI_PATTERN_LIST; for CLI_PATTERN_PARTS the first element is the sum */
    uint32_t count;
    const onx_attribute *choices; /* for CLI_PATTERN_CHOICE: integers or strings */
    uint64_t seed;
    bool wave;
    int64_t (*size_of)(const void *user, onx_str dim); /* sizes of symbolic dimensions */
    const void *user;
} cli_wish;
/* The next 64-bit pseudo-random number; `state` is initialised with a seed. */
uint64_t cli_random(uint64_t *state);

/* The name of the input is part of the seed, so that inputs differ regardless of their order. With `hint`, the range is
 * clipped to that of the type. Errors are printed. */
onx_status cli_make_up(cli_call *call, const onx_type *type, onx_str name, cli_wish *wish, onx_value **out);

#endif
