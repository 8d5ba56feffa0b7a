/* sample.h - where GridSample reads: what its rows share. */
#ifndef ONXI_KERNEL_SAMPLE_H
#define ONXI_KERNEL_SAMPLE_H

#include "kernel/kernel.h"

typedef enum onxi_sample_mode { ONXI_SAMPLE_NEAREST, ONXI_SAMPLE_LINEAR, ONXI_SAMPLE_CUBIC } onxi_sample_mode;
typedef enum onxi_sample_padding { ONXI_SAMPLE_ZEROS, ONXI_SAMPLE_BORDER, ONXI_SAMPLE_REFLECTION } onxi_sample_padding;

typedef struct onxi_sample {
    onxi_sample_mode mode;
    onxi_sample_padding padding;
    bool align;
    uint32_t rank, taps;      /* spatial axes; neighbours of a place at most */
    uint64_t in_size, places; /* elements of a channel of the input, and of the output */
    uint64_t channels;
} onxi_sample;

/* Reads and checks what all rows need, and sets the number of rows: positions of all images. */
onx_status onxi_sample_make(onx_prepare *p, onxi_sample *q);

/* A block of positions, and the neighbours of each: 4 along each of 2 axes, or 2 along each of 3. */
enum { ONXI_SAMPLE_BLOCK = 64, ONXI_SAMPLE_TAPS = 16, ONXI_SAMPLE_AXES = 3 };
typedef struct onxi_sample_taps {
    int32_t at[ONXI_SAMPLE_TAPS][ONXI_SAMPLE_BLOCK]; /* within a channel; -1: zero is there */
    float weight[ONXI_SAMPLE_TAPS][ONXI_SAMPLE_BLOCK];
    bool whole; /* no zeros */
} onxi_sample_taps;

/* For `count` positions of a float grid and these spatial dims of the input. */
void onxi_sample_find(const onxi_sample *q, const int64_t *dims, const float *grid, uint64_t count,
                      onxi_sample_taps *t);

#endif
