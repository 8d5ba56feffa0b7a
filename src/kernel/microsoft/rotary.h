/* rotary.h - rotation of the vectors of heads by their positions, and their normalization before it. */
#ifndef ONXI_KERNEL_MICROSOFT_ROTARY_H
#define ONXI_KERNEL_MICROSOFT_ROTARY_H

#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* A row of the table of cosines or sines as floats: in place, or converted in `space`. */
static inline const float *onxi_ms_table_row(const onx_value *table, uint64_t position, uint64_t pairs, float *space)
{
    if (table->dtype == ONX_FLOAT)
        return (const float *)table->data + position * pairs;
    onxi_ms_floats(table, position * pairs, pairs, space);
    return space;
}

/* The cosines and sines of a position. `space` has 2 * pairs floats. */
typedef struct onxi_ms_angles {
    const float *cosines, *sines;
} onxi_ms_angles;

static inline onxi_ms_angles onxi_ms_angles_of(const onx_value *cosines, const onx_value *sines, uint64_t position,
                                               uint64_t pairs, float *space)
{
    return (onxi_ms_angles){ onxi_ms_table_row(cosines, position, pairs, space),
                             onxi_ms_table_row(sines, position, pairs, space + pairs) };
}

/* Rotates the pairs of the first 2 * pairs elements and copies the rest. */
static inline void onxi_ms_turn(const float *restrict x, float *restrict y, uint64_t size, uint64_t pairs,
                                bool interleaved, const onxi_ms_angles *by)
{
    const float *restrict c = by->cosines, *restrict s = by->sines;
    for (uint64_t i = 0; interleaved && i < pairs; i++) {
        y[2 * i] = x[2 * i] * c[i] - x[2 * i + 1] * s[i];
        y[2 * i + 1] = x[2 * i + 1] * c[i] + x[2 * i] * s[i];
    }
    for (uint64_t i = 0; !interleaved && i < pairs; i++) {
        y[i] = x[i] * c[i] - x[i + pairs] * s[i];
        y[i + pairs] = x[i + pairs] * c[i] + x[i] * s[i];
    }
    for (uint64_t i = 2 * pairs; i < size; i++)
        y[i] = x[i];
}

static inline onx_status onxi_ms_check_tables(const onx_prepare *p, const onx_value *cosines, const onx_value *sines,
                                              uint64_t size)
{
    const bool fit = cosines && sines && cosines->rank == 2 && sines->rank == 2 && cosines->dims[0] == sines->dims[0] &&
                     cosines->dims[1] == sines->dims[1] && (uint64_t)cosines->dims[1] * 2 <= size;
    return fit ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID,
                                  "the tables of cosines and sines differ in shape, or are too wide for heads of %llu",
                                  (unsigned long long)size);
}

/* RMS normalization of a vector, with weights. */
static inline void onxi_ms_normalize(float *x, uint64_t size, float epsilon, const onx_value *weight)
{
    const float by = 1 / sqrtf(onxi_ms_dot(x, x, size) / (float)size + epsilon);
    for (uint64_t i = 0; i < size; i++)
        x[i] *= by * onxi_ms_float(weight, i);
}

#endif
