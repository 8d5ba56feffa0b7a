/* packed_formats.h - formats of blocks of weights, as in GGUF files: each block holds the same number of elements and
 * its own scales. A format is a row of a table; nothing else depends on it. */
#ifndef ONXI_KERNEL_MICROSOFT_PACKED_FORMATS_H
#define ONXI_KERNEL_MICROSOFT_PACKED_FORMATS_H

#include "kernel/kernel.h"

typedef struct onxi_packed_format {
    int64_t id;               /* the number of the type in GGUF files */
    uint32_t elements, bytes; /* of a block */
    void (*decode)(const uint8_t *block, float *out);
} onxi_packed_format;

/* NULL: unknown. */
const onxi_packed_format *onxi_packed_format_find(int64_t id);
/* Reads attribute packed_type (or the one of another `name`), and checks that `length` elements are whole blocks, at
 * least one, and that rows of `data` hold as many. */
onx_status onxi_packed_format_read(const onx_prepare *p, const char *name, const onx_value *data, int64_t length,
                                   const onxi_packed_format **out);
void onxi_packed_format_row(const onxi_packed_format *f, const uint8_t *row, uint64_t length, float *out);

/* Codebooks: sorted points of a lattice, with 2 bits per coordinate (8, 25, 43), or 3 bits (4, 12, .., 44, 52, 62). */
extern const uint16_t onxi_lattice_256[256], onxi_lattice_512[512], onxi_lattice_1024[1024], onxi_lattice_4d[256];

#endif
