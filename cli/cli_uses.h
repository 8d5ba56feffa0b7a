/* cli_uses.h - how a model uses its inputs, so that made-up values are valid: which elements nodes accept, and the
 * sizes of dimensions that the model leaves open. */
#ifndef ONX_CLI_USES_H
#define ONX_CLI_USES_H

#include "cli_inputs.h"

/* A number, or the size of a dimension of an input. */
typedef struct cli_size {
    int64_t number;
    uint32_t input; /* 1 + the input; 0: `number` */
    uint32_t axis;
} cli_size;
enum { CLI_MOST_SIZES = 8 };

/* A demand on the elements of a value. */
typedef struct cli_numbers {
    const char *op; /* the operator that demands it; NULL: no demand */
    cli_pattern pattern;
    bool of_text;                  /* applies to strings only */
    bool soft;                     /* a preference, which is not propagated through arithmetic */
    double low, high;              /* both ends included; for CLI_PATTERN_RANGE */
    cli_size list[CLI_MOST_SIZES]; /* for CLI_PATTERN_LIST; for CLI_PATTERN_PARTS the first element is the sum */
    uint32_t count;
    const onx_attribute *choices; /* for CLI_PATTERN_CHOICE: integers or strings */
} cli_numbers;

/* The demands on one input. */
typedef struct cli_use {
    cli_numbers numbers;
    uint32_t rank;   /* 0: the rank is unknown */
    int64_t dims[8]; /* 0: unknown */
} cli_use;

typedef struct cli_uses {
    cli_use *list; /* one per input of the session */
    struct cli_flow *flow;
} cli_uses;

/* Finds out how nodes of the main graph, of subgraphs and of functions use the inputs, directly or through nodes that
 * move elements or compute with them. Errors are printed. `out` is valid until it is closed, which has to be done in
 * any case. */
onx_status cli_uses_open(cli_call *call, const onx_doc *doc, const onx_session *s, cli_uses *out);
void cli_uses_close(cli_uses *uses);

/* A dimension to choose: -1 - k for symbol k, so that equal symbols get equal sizes. */
#define CLI_DIM_OPEN INT64_MIN /* a dimension without a name */

/* Chooses the negative dimensions of `shapes`, one per input, and ranks that are CLI_RANK_OPEN: 1 if inference finds no
 * problem with that, otherwise the sizes with the fewest problems from a list of typical sizes. `known` has the rank
 * and dims that uses demand; `symbols` is the number of symbols. Errors are printed. */
#define CLI_RANK_OPEN UINT32_MAX
onx_status cli_fit_shapes(cli_call *call, onx_doc *doc, const onx_session *s, const cli_use *known, cli_shape *shapes,
                          uint32_t count, uint32_t symbols);

#endif
