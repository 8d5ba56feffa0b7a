/* cli_uses.h - what a model does with its inputs, so that made-up values suit: which numbers nodes take there, and how
 * large dimensions that the model leaves open have to be. */
#ifndef ONX_CLI_USES_H
#define ONX_CLI_USES_H

#include "cli_inputs.h"

/* A number, or the size that a dimension of an input will have. */
typedef struct cli_size {
    int64_t number;
    uint32_t input; /* 1 + the input; 0: `number` */
    uint32_t axis;
} cli_size;
enum { CLI_MOST_SIZES = 8 };

/* What is asked of the numbers of a value. */
typedef struct cli_numbers {
    const char *op; /* of the node that asks; NULL: nothing is asked */
    cli_pattern pattern;
    bool of_text;                  /* it is about texts alone */
    bool soft;                     /* a run does without; nothing is calculated backwards for it */
    double low, high;              /* both ends included; for CLI_PATTERN_RANGE */
    cli_size list[CLI_MOST_SIZES]; /* of CLI_PATTERN_LIST; for CLI_PATTERN_PARTS the first is what they add up to */
    uint32_t count;
    const onx_attribute *choices; /* of CLI_PATTERN_CHOICE: integers or texts */
} cli_numbers;

/* What is known of one input. */
typedef struct cli_use {
    cli_numbers numbers;
    uint32_t rank;   /* 0: nothing is known of the rank */
    int64_t dims[8]; /* of that rank: 0 where nothing is known */
} cli_use;

typedef struct cli_uses {
    cli_use *list; /* one per input of the session */
    struct cli_flow *flow;
} cli_uses;

/* What nodes of the main graph, of subgraphs and of functions do with inputs, also after nodes that move numbers or
 * calculate with them. Errors are printed. `out` lasts until it is closed, which is done in any case. */
onx_status cli_uses_open(cli_call *call, const onx_doc *doc, const onx_session *s, cli_uses *out);
void cli_uses_close(cli_uses *uses);

/* A dimension that is to be chosen: -1 - k for symbol k, so that equal symbols get equal sizes. */
#define CLI_DIM_OPEN INT64_MIN /* one without a name */

/* Chooses the dimensions of `shapes`, one per input, that are below 0, and ranks that are CLI_RANK_OPEN: 1 wherever
 * inference finds nothing wrong with that, else the sizes that it finds least wrong with, of a list of what networks
 * usually take. `known` tells the rank and dims that uses demand; `symbols` is how many there are. Errors are
 * printed. */
#define CLI_RANK_OPEN UINT32_MAX
onx_status cli_fit_shapes(cli_call *call, onx_doc *doc, const onx_session *s, const cli_use *known, cli_shape *shapes,
                          uint32_t count, uint32_t symbols);

#endif
