/* amx.h - the configuration of AMX tiles in all kernels: eight tiles of 16 rows with 64 bytes. Each unit of work
 * configures the tiles and releases them at its end. */
#ifndef ONXI_KERNEL_SIMD_AMX_H
#define ONXI_KERNEL_SIMD_AMX_H

#include "kernel/simd/simd.h"

#if ONXI_LEVEL >= 6 /* ONX_ISA_AMX; files of lower levels do not have it */

typedef struct amx_setup {
    uint8_t palette, start, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} amx_setup;

static inline void amx_begin(void)
{
    amx_setup s = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        s.bytes[i] = 64;
        s.rows[i] = 16;
    }
    _tile_loadconfig(&s);
}

static inline void amx_end(void)
{
    _tile_release();
}

/* Adds rows of two adjacent tiles, which were stored to `sums`, to c, or copies them there. */
enum { AMX_COLUMNS = 2 * ONXI_LANES };

static inline void amx_put(const float *sums, float *c, uint64_t ldc, uint64_t rows, bool more)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t v = 0; v < AMX_COLUMNS; v += ONXI_LANES) {
            float *at = c + i * ldc + v;
            const onxi_vf x = vf_load(sums + i * AMX_COLUMNS + v);
            vf_store(at, more ? vf_load(at) + x : x);
        }
}

#endif
#endif
