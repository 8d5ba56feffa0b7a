/* distance.h - the distances of all pairs of two lists of vectors: loops for each ISA level (kernel/simd/distance.c).
 */
#ifndef ONXI_KERNEL_CORE_DISTANCE_H
#define ONXI_KERNEL_CORE_DISTANCE_H

#include "kernel/kernel.h"

/* The most vectors of a call, and the bytes of its scratch memory. */
enum {
    ONXI_DISTANCE_LEFT = 128,
    ONXI_DISTANCE_RIGHT = 64,
    ONXI_DISTANCE_DEPTH = 256, /* elements of a vector that are interleaved at once */
    ONXI_DISTANCE_SPACE = (ONXI_DISTANCE_DEPTH + ONXI_DISTANCE_LEFT) * 128
};

/* Vectors of `size` contiguous elements. The distance of vector i on the left and vector j on the right goes to
 * out[i * left_step + j * right_step]. */
typedef struct onxi_distances {
    const void *left, *right;
    uint64_t left_count, right_count, size;
    void *out, *space;
    uint64_t left_step, right_step;
    bool root; /* else distances are squared */
} onxi_distances;

/* A distance is the sum of the squared differences, in one order whatever the counts are. */
typedef struct onxi_distance_loops {
    void (*floats)(const onxi_distances *d);
    void (*doubles)(const onxi_distances *d);
} onxi_distance_loops;
extern const onxi_distance_loops onxi_distance_loops_base, onxi_distance_loops_v3, onxi_distance_loops_v4;

#endif
