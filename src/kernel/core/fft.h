/* fft.h - Fourier transforms of one line of complex numbers, of any length, in double. */
#ifndef ONXI_KERNEL_FFT_H
#define ONXI_KERNEL_FFT_H

#include "kernel/kernel.h"

typedef struct onxi_complex {
    double re, im;
} onxi_complex;

/* Tables for a length: made once, then only read. */
typedef struct onxi_fft {
    uint64_t length, padded; /* padded: a power of two, the length itself if it is one */
    onxi_complex *roots;     /* exp(-2 pi i k / padded), k < padded / 2 */
    onxi_complex *chirp;     /* exp(-pi i k^2 / length), k < length; NULL when the length is a power of two */
    onxi_complex *filter;    /* transform of the inverse chirp, over `padded` */
} onxi_fft;

/* Number of complex elements of the tables, and of the workspace of a transform (the length of a line); false on
 * overflow. */
bool onxi_fft_room(uint64_t length, uint64_t *tables_out, uint64_t *line_out);
/* `length` is at least 1. Here and below, nothing is complete if `pace` stops it. */
void onxi_fft_make(onxi_fft *f, uint64_t length, onxi_complex *tables, onxi_pace *pace);
/* In-place transform of the first `length` elements of a line of `padded` elements; the others are overwritten. Not
 * scaled. */
void onxi_fft_run(const onxi_fft *f, onxi_complex *line, bool inverse, onxi_pace *pace);

#endif
