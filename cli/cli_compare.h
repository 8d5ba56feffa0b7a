/* cli_compare.h - how far two values are apart, and models whose inner values can be asked for. */
#ifndef ONX_CLI_COMPARE_H
#define ONX_CLI_COMPARE_H

#include "cli_value.h"

/* Of all pairs of elements of two values; the first is what the second is measured against. */
typedef struct cli_distance {
    uint64_t elements;       /* that were compared */
    uint64_t different;      /* farther apart than the tolerances, or NaN on one side only */
    uint64_t first;          /* the first of those, in row-major order */
    double max_abs, max_rel; /* |b - a|, and that by the larger of |a| and |b| */
    double cosine;           /* of both as vectors; 1 when they are equal */
    double snr;              /* 10 log10(sum a^2 / sum (b - a)^2), in decibels; infinite when they are equal */
    double a, b;             /* the elements at `first` */
    char unlike[160];        /* why elements cannot be compared: kinds, types, shapes; "" when they can */
} cli_distance;

/* Numbers of any types are compared; lists item by item, as if concatenated. */
void cli_compare_values(const onx_value *a, const onx_value *b, double rtol, double atol, cli_distance *out);
bool cli_departs(const cli_distance *distance);

/* A model whose main graph can be run with values inside of it as outputs. The document is changed. */
typedef struct cli_inner {
    cli_call *call;
    onx_doc *doc;
    uint32_t outputs;      /* those that the model has itself */
    onx_value_info **list; /* values made by nodes, in their order, that are no outputs and whose type is known */
    uint32_t *node;        /* which node makes each */
    uint32_t count;
} cli_inner;

onx_status cli_inner_open(cli_inner *inner, cli_call *call, onx_doc *doc);
void cli_inner_close(cli_inner *inner);
/* The outputs of the model, then the inner values that `chosen` names by their indexes. No session may be there. */
onx_status cli_inner_choose(cli_inner *inner, const uint32_t *chosen, uint32_t count);

#endif
