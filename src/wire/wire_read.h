/* wire_read.h - what the files of the reader share. */
#ifndef ONXI_WIRE_READ_H
#define ONXI_WIRE_READ_H

#include "wire/wire.h"

typedef unsigned char byte;

/* Kept out of the way of what runs for every node. */
#define COLD      __attribute__((cold, noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_GROUP = 3, WIRE_END = 4, WIRE_I32 = 5 };

/* Where the reader is, for diagnostics: a chain through the C stack. */
typedef struct onxi_reader_frame {
    const struct onxi_reader_frame *up;
    const onxi_message_table *table;
    const onxi_field *field; /* of `table`, being read; NULL between fields */
    uint64_t index;          /* position in a repeated field */
    uint32_t depth;
} onxi_reader_frame;

/* A message that was read before; one with the same bytes is a copy of it (wire_read_alike.c). */
enum { ONXI_ALIKE = 16, ONXI_ALIKE_POINTERS = 40, ONXI_ALIKE_SEEN = 0, ONXI_ALIKE_READY, ONXI_ALIKE_UNFIT };
typedef struct onxi_alike {
    const onxi_message_table *table;
    const byte *bytes; /* as it is in the input */
    const char *memory;
    uint64_t notes;     /* of the reader when it was read: since then nothing was merged into it */
    uint32_t len, size; /* of bytes and memory; len 0: none */
    uint32_t depth;     /* of the message around: what is copied further down could be nested too deeply */
    uint8_t state, pointer_count;
    uint16_t pointer[ONXI_ALIKE_POINTERS]; /* where `memory` points into itself */
} onxi_alike;

typedef struct onxi_reader {
    onx_ctx *cx;
    onx_arena *arena;
    const byte *start, *limit; /* the whole input */
    uint32_t flags;
    uint32_t depth_limit;
    unsigned threads;
    onx_status failure;
    void **stack; /* elements of repeated messages being gathered */
    size_t stack_count, stack_room;
    uint64_t notes; /* onxi_reader_note was called so often */
    onxi_alike alike[ONXI_ALIKE];
} onxi_reader;

/* Raises an error at p; returns NULL for `return bad(...)`. */
const byte *onxi_reader_bad(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_status status,
                            const char *rule, const char *format, ...) ONX_PRINTF(6, 7);
void onxi_reader_note(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_severity severity,
                      const char *rule, const char *format, ...) ONX_PRINTF(6, 7);

/* Reads the fields of [p, end) into the message; NULL after an error. */
const byte *onxi_read_message(onxi_reader *r, const onxi_message_table *table, void *message, const byte *p,
                              const byte *end, const onxi_reader_frame *up);

/* A zeroed message in the arena; NULL with the failure set. */
void *onxi_reader_message(onxi_reader *r, const onxi_message_table *table);
/* A new message of [p, p + len), decoded or copied from one with the same bytes; NULL after an error. */
void *onxi_read_alike(onxi_reader *r, const onxi_message_table *table, const byte *p, size_t len,
                      const onxi_reader_frame *up);

/* Decodes a varint of up to ten bytes; NULL with the error raised. */
const byte *onxi_read_varint_slow(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                                  uint64_t *out);
static inline const byte *read_varint(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                                      uint64_t *out)
{
    if (LIKELY(p < end && *p < 0x80)) {
        *out = *p;
        return p + 1;
    }
    if (end - p > 1 && p[1] < 0x80) {
        *out = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
        return p + 2;
    }
    return onxi_read_varint_slow(r, f, p, end, out);
}

/* A length that fits in what is left. */
static inline const byte *read_length(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                                      size_t *out)
{
    uint64_t n = 0;
    const byte *q = read_varint(r, f, p, end, &n);
    *out = 0;
    if (!q)
        return NULL;
    if (n > (uint64_t)(end - q))
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-10",
                               "length %llu reaches past the end, where %llu bytes are left", (unsigned long long)n,
                               (unsigned long long)(end - q));
    *out = (size_t)n;
    return q;
}

/* The position after the value that follows a tag; unknown groups are skipped as a unit. */
const byte *onxi_read_skip(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end, uint32_t number,
                           uint32_t wire_type);

/* Numbers, packed and one by one (wire_read_number.c). */
const byte *onxi_read_numbers(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                              const byte *end, uint32_t wire_type, const byte *tag, size_t tag_size);
const byte *onxi_read_number(onxi_reader *r, const onxi_reader_frame *f, void *value, const byte *p, const byte *end);
/* A run of repeated messages decoded by several threads (wire_read_parallel.c). */
const byte *onxi_read_parallel(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p, const byte *end,
                               const byte *tag, size_t tag_size);

/* Room in a list for `more` elements after the `count` it has; false with the failure set. */
bool onxi_reader_grow(onxi_reader *r, const onxi_reader_frame *f, void **list, uint64_t count, uint64_t more,
                      size_t size, bool borrowed, bool wide);

#endif
