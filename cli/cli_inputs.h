/* cli_inputs.h - the one way in which every command that runs a model is told its inputs: files, values on the command
 * line, images, or made up. */
#ifndef ONX_CLI_INPUTS_H
#define ONX_CLI_INPUTS_H

#include "cli_value.h"

/* Rows for the table of options of a command; all that the functions below read. Commands with CLI_MAKE_UP do what
 * --random says anyway. */
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
/* 1x512, 1,512 or [1,512]; [] is a scalar. */
bool cli_shape_read(const char *text, cli_shape *out);

enum {
    CLI_MAKE_UP = 1, /* inputs that are not given are made up without --random */
    CLI_SILENT = 4,  /* nothing is said of what is made up */
    CLI_WAVE = 2     /* made-up floats without --range are the wave sin(0.37 i), which other programs can be fed, too */
};

typedef struct cli_inputs {
    onx_value **values; /* one per input of the session, in its order; NULL: left out, which its initializer allows */
    uint32_t count;
} cli_inputs;

/* What the options say, for the inputs of a session over `doc`. Names, shapes and ranges that fit no input are errors,
 * printed. What is made up is said on standard error. Free `out` in any case. */
onx_status cli_inputs_read(cli_call *call, onx_doc *doc, const onx_session *s, unsigned flags, cli_inputs *out);
/* The same with inputs from a folder of test data, an archive, or a file of the only value that options leave open. */
onx_status cli_inputs_read_set(cli_call *call, onx_doc *doc, const onx_session *s, const char *set, unsigned flags,
                               cli_inputs *out);
void cli_inputs_free(cli_inputs *inputs);

/* ---- folders of test data: DIR/input_0.pb, input_1.pb, ..., output_0.pb, ... (.npy, too) ---- */

typedef struct cli_fault {
    char *path; /* free it */
    char text[200];
} cli_fault;

/* Reads the files up to the first that is missing into the values of the inputs or outputs of the session (entries that
 * are there are replaced); where there are fewer input files than inputs they are those without an initializer.
 * `count` is how many there were. On failure `fault` says why; what the library said is in the context. */
onx_status cli_data_set(cli_call *call, const onx_session *s, const char *dir, bool outputs, onx_value **values,
                        uint32_t *count, cli_fault *fault);

/* ---- values as people write them (cli_literal.c) ---- */

/* Is it a number, true, false, nan, inf, or the start of a list or of a quoted text? */
bool cli_is_literal(const char *text);
/* The value that the text stands for; `what` is what messages are about. A single value fills `shape`, NULL: it is a
 * scalar. Errors are printed. */
onx_status cli_literal(cli_call *call, const char *what, onx_str text, onx_dtype dtype, const cli_shape *shape,
                       onx_value **out);

/* ---- values made up (cli_made_up.c) ---- */

typedef enum cli_pattern {
    CLI_PATTERN_RANGE, /* numbers from low to high */
    CLI_PATTERN_STEPS, /* 0, 1, 2, ... */
    CLI_PATTERN_FLAT,  /* -1, 1, 1, ...: a shape that any tensor can have */
    CLI_PATTERN_LIST,  /* these, the last one again and again */
    CLI_PATTERN_PARTS, /* sizes that add up to a number */
    CLI_PATTERN_CHOICE /* some of a list */
} cli_pattern;

typedef struct cli_wish {
    const cli_shape *shape; /* NULL: by the type, where dimensions that are neither numbers nor symbols are 1 */
    cli_pattern pattern;
    bool has_range;
    bool hint;        /* the range is where it is because that suits: what the element type does not hold is left out */
    double low, high; /* integers: both ends included */
    int64_t list[8];  /* of CLI_PATTERN_LIST; for CLI_PATTERN_PARTS the first is what they add up to */
    uint32_t count;
    const onx_attribute *choices; /* of CLI_PATTERN_CHOICE: integers or texts */
    uint64_t seed;
    bool wave;
    int64_t (*size_of)(const void *user, onx_str dim); /* of symbolic dimensions */
    const void *user;
} cli_wish;
/* The next of a row of 64-bit numbers that look random; `state` begins with a seed. */
uint64_t cli_random(uint64_t *state);

/* The name of the input is part of the seed, so that inputs differ whatever their order. With `hint` the
 * range becomes what the type holds of it. Errors are printed. */
onx_status cli_make_up(cli_call *call, const onx_type *type, onx_str name, cli_wish *wish, onx_value **out);

#endif
