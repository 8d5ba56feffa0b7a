/* doubles.h - vectors of doubles that are as wide as those of floats: for sums and products whose steps leave the
 * digits or the range of float. */
#ifndef ONXI_KERNEL_SIMD_DOUBLES_H
#define ONXI_KERNEL_SIMD_DOUBLES_H

#include "kernel/simd/simd.h"

/* Half a vector: as doubles, it fills a whole vector. */
typedef float half_floats __attribute__((vector_size(ONXI_LANES * 2)));
typedef double doubles __attribute__((vector_size(ONXI_LANES * 4)));
enum { DOUBLES = ONXI_LANES / 2 };

static inline doubles doubles_at(const float *x)
{
    half_floats v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, doubles);
}

/* Adds a vector of floats to as many totals, or begins these. */
static inline void doubles_add(onxi_vf v, bool begins, double *total)
{
    float floats[ONXI_LANES];
    vf_store(floats, v);
    for (int i = 0; i < ONXI_LANES; i += DOUBLES) {
        doubles sum = { 0 };
        if (!begins)
            memcpy(&sum, total + i, sizeof sum);
        sum += doubles_at(floats + i);
        memcpy(total + i, &sum, sizeof sum);
    }
}

#endif
