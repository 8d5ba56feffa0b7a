/* cli_compare.h - the difference between two values, and models whose inner values can be requested. */
#ifndef ONX_CLI_COMPARE_H
#define ONX_CLI_COMPARE_H

#include "cli_value.h"

/* Statistics over all pairs of elements of two values; the first value is the reference. */
typedef struct cli_distance {
    uint64_t elements;       /* number of compared elements */
    uint64_t different;      /* outside of the tolerances, or NaN on one side only */
    uint64_t first;          /* index of the first different one, in row-major order */
    double max_abs, max_rel; /* |b - a|, and |b - a| divided by the larger of |a| and |b| */
    double cosine;           /* of both as vectors; 1 when they are equal */
    double snr;              /* 10 log10(sum a^2 / sum (b - a)^2), in decibels; infinite when they are equal */
    double a, b;             /* the elements at `first` */
    char unlike[160];        /* why the elements cannot be compared: kinds, types, shapes; "" if they can */
} cli_distance;

/* Compares numeric tensors of any types; sequences item by item, as if concatenated. */
void cli_compare_values(const onx_value *a, const onx_value *b, double rtol, double atol, cli_distance *out);
bool cli_deviates(const cli_distance *distance);

/* A model whose main graph can be run with inner values as additional outputs. The document is modified. */
typedef struct cli_inner {
    cli_call *call;
    onx_doc *doc;
    uint32_t outputs;      /* number of outputs of the model itself */
    onx_value_info **list; /* node outputs in order that are not model outputs and have a known type */
    uint32_t *node;        /* the node that computes each */
    uint32_t count;
} cli_inner;

onx_status cli_inner_open(cli_inner *inner, cli_call *call, onx_doc *doc);
void cli_inner_close(cli_inner *inner);
/* Sets the outputs: those of the model, then the inner values whose indexes are in `chosen`. There must be no open
 * session. */
onx_status cli_inner_choose(cli_inner *inner, const uint32_t *chosen, uint32_t count);

#endif
