/* norm.h - normalization of lines of elements: y = (x - mean) / deviation * scale + shift, with the mean and the
 * deviation of each line. */
#ifndef ONXI_KERNEL_NORM_H
#define ONXI_KERNEL_NORM_H

#include "kernel/kernel.h"

#include <math.h>

/* Whether no step of (x - mean) * scale overflows float, or loses its last digits by underflow, unless the result
 * does. */
static inline bool onxi_norm_fits_float(double mean, double scale)
{
    const double s = fabs(scale);
    return fabs(mean) < 0x1p100 && (s == 0 || (s > 0x1p-100 && s < 0x1p100));
}

/* What lines of few elements have in common: scale and shift (NULL: none), each a number for all elements (step 0) or
 * one for each (step 1), of the type of the elements. */
typedef struct onxi_norm_short {
    uint64_t n; /* elements of a line, at most ONXI_NORM_SHORT */
    bool about_zero;
    double epsilon;
    const void *a, *b;
    int64_t step_a, step_b;
} onxi_norm_short;

enum { ONXI_NORM_SHORT = 64 };

typedef struct onxi_norm_loops {
    /* Mean and second moment of n elements; with `about_zero` the mean is 0 and the moment is that about 0. */
    void (*moments)(const void *x, uint64_t n, bool about_zero, double *mean, double *second);
    /* y = (x - mean) * scale * a[i * step_a] + b[i * step_b]; a and b may be NULL. */
    void (*affine)(const void *x, void *y, uint64_t n, double mean, double scale, const void *a, int64_t step_a,
                   const void *b, int64_t step_b);
    /* Both for `count` short lines from x to y, which may be the same; NULL: one line at a time. */
    void (*short_lines)(const onxi_norm_short *q, const void *x, void *y, uint64_t count);
} onxi_norm_loops;

/* The channels of a group, if the node is one that a fast row of GroupNormalization or InstanceNormalization for floats
 * takes: a number of scale and shift for each channel. 0: it is not. */
uint64_t onxi_group_norm_each(const onx_prepare *p);

/* LayerNormalization, RMSNormalization; the body of the row is a list of loops by element type. */
onx_status onxi_layer_norm_prepare(onx_prepare *p);
onx_status onxi_layer_norm_run(onx_work *work, uint64_t first, uint64_t last);
/* GroupNormalization, InstanceNormalization: lines are groups of channels. */
onx_status onxi_group_norm_prepare(onx_prepare *p);
onx_status onxi_group_norm_run(onx_work *work, uint64_t first, uint64_t last);

#endif
