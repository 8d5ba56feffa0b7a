/* fft.c - the fast Fourier transform: radix 2 if the length is a power of two, otherwise Bluestein's algorithm (a
 * convolution with a chirp) with transforms of such a length. O(n log n) for every length. */
#include "kernel/core/fft.h"

#include <math.h>

enum { PART = 4096 }; /* elements between two questions whether to stop; a power of two */

bool onxi_fft_room(uint64_t length, uint64_t *tables_out, uint64_t *line_out)
{
    uint64_t padded = 1, least = length & (length - 1) ? 2 * length - 1 : length;
    if (!length || length > UINT64_MAX / 1024)
        return false;
    while (padded < least)
        padded *= 2;
    *tables_out = padded / 2 + (padded == length ? 0 : length + padded);
    *line_out = padded;
    return true;
}

static onxi_complex multiply(onxi_complex a, onxi_complex b)
{
    return (onxi_complex){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* exp(-2 pi i k / n), exact at multiples of a quarter turn: the angle is relative to the nearest quarter. */
static onxi_complex root(uint64_t k, uint64_t n)
{
    static const double pi = 3.14159265358979323846;
    uint64_t quarter = (4 * k + n / 2) / n;
    double rest = ((double)(4 * k) - (double)(quarter * n)) * pi / (2 * (double)n), c = cos(rest), s = sin(rest);
    switch (quarter % 4) {
    case 0:
        return (onxi_complex){ c, -s };
    case 1:
        return (onxi_complex){ -s, -c };
    case 2:
        return (onxi_complex){ -c, s };
    default:
        return (onxi_complex){ s, c };
    }
}

/* Elements in the order of their reversed bits. */
static void reorder(onxi_complex *x, uint64_t n, onxi_pace *pace)
{
    for (uint64_t i = 1, j = 0; i < n && !(i % PART == 0 && onxi_pace_stops(pace, PART * 8)); i++) {
        uint64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            onxi_complex t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
}

static void by_halves(const onxi_fft *f, onxi_complex *x, onxi_pace *pace)
{
    uint64_t n = f->padded;
    reorder(x, n, pace);
    for (uint64_t half = 1; half < n; half *= 2) {
        uint64_t step = n / (2 * half);
        for (uint64_t start = 0; start < n; start += 2 * half) {
            if (start % PART == 0 && onxi_pace_stops(pace, PART * 8))
                return;
            for (uint64_t from = 0, to; from < half; from = to) {
                to = half - from < PART ? half : from + PART;
                if (from && onxi_pace_stops(pace, PART * 8))
                    return;
                for (uint64_t k = from; k < to; k++) {
                    onxi_complex a = x[start + k], b = multiply(x[start + k + half], f->roots[k * step]);
                    x[start + k] = (onxi_complex){ a.re + b.re, a.im + b.im };
                    x[start + k + half] = (onxi_complex){ a.re - b.re, a.im - b.im };
                }
            }
        }
    }
}

static void conjugate(onxi_complex *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        x[i].im = -x[i].im;
}

void onxi_fft_make(onxi_fft *f, uint64_t length, onxi_complex *tables, onxi_pace *pace)
{
    uint64_t count = 0, n = 1;
    onxi_fft_room(length, &count, &n);
    *f = (onxi_fft){ .length = length, .padded = n, .roots = tables };
    for (uint64_t k = 0; k < n / 2 && !(k % PART == 0 && onxi_pace_stops(pace, PART * 32)); k++)
        f->roots[k] = root(k, n);
    if (n == length)
        return;
    f->chirp = tables + n / 2;
    f->filter = f->chirp + length;
    memset(f->filter, 0, n * sizeof *f->filter);
    /* k^2 modulo 2 * length, which determines the angle */
    for (uint64_t k = 0, square = 0; k < length; square = (square + 2 * k + 1) % (2 * length), k++) {
        if (k % PART == 0 && onxi_pace_stops(pace, PART * 32))
            return;
        onxi_complex c = root(square, 2 * length);
        f->chirp[k] = c;
        f->filter[k] = f->filter[k ? n - k : 0] = (onxi_complex){ c.re / (double)n, -c.im / (double)n };
    }
    by_halves(f, f->filter, pace);
}

void onxi_fft_run(const onxi_fft *f, onxi_complex *line, bool inverse, onxi_pace *pace)
{
    uint64_t n = f->padded, length = f->length;
    if (inverse)
        conjugate(line, length);
    if (!f->chirp) {
        by_halves(f, line, pace);
    } else {
        for (uint64_t k = 0; k < length; k++)
            line[k] = multiply(line[k], f->chirp[k]);
        memset(line + length, 0, (n - length) * sizeof *line);
        by_halves(f, line, pace);
        for (uint64_t k = 0; k < n; k++)
            line[k] = multiply(line[k], f->filter[k]);
        conjugate(line, n); /* the inverse transform */
        by_halves(f, line, pace);
        conjugate(line, n);
        for (uint64_t k = 0; k < length; k++)
            line[k] = multiply(line[k], f->chirp[k]);
    }
    if (inverse)
        conjugate(line, length);
}
