/* cli_uses.h - what a model does with its inputs, so that made-up values suit: which numbers nodes take there, and how
 * large dimensions that the model leaves open have to be. */
#ifndef ONX_CLI_USES_H
#define ONX_CLI_USES_H

#include "cli_inputs.h"

/* What is known of one input. */
typedef struct cli_use {
    const char *op; /* of the node that says it; NULL: nothing is known of the numbers */
    cli_pattern pattern;
    double low, high; /* both ends included; for CLI_PATTERN_RANGE */
    uint32_t rank;    /* 0: nothing is known of the rank */
    int64_t dims[8];  /* of that rank: 0 where nothing is known */
} cli_use;

/* Fills `uses`, one per input of the session, by what nodes of the main graph and of subgraphs do with inputs, also
 * after nodes that only move values. Nothing is said about what a function does. Errors are printed. */
onx_status cli_uses_find(cli_call *call, onx_doc *doc, const onx_session *s, cli_use *uses);

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
