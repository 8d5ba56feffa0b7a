/* wire_read.h - shared by the files of the decoder. */
#ifndef ONXI_WIRE_READ_H
#define ONXI_WIRE_READ_H

#include "wire/wire.h"

typedef unsigned char byte;

/* Not inlined, to keep rare code out of the hot path. */
#define COLD      __attribute__((cold, noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_GROUP = 3, WIRE_END = 4, WIRE_I32 = 5 };

/* The position of the decoder, for diagnostics: a list of frames on the C stack. */
typedef struct onxi_reader_frame {
    const struct onxi_reader_frame *up;
    const onxi_message_table *table;
    const onxi_field *field; /* of `table`, being read; NULL between fields */
    uint64_t index;          /* position in a repeated field */
    uint32_t depth;
} onxi_reader_frame;

/* A decoded message; later messages with the same bytes are copied from it (wire_read_alike.c). */
enum { ONXI_ALIKE = 16, ONXI_ALIKE_POINTERS = 40, ONXI_ALIKE_SEEN = 0, ONXI_ALIKE_READY, ONXI_ALIKE_UNFIT };
typedef struct onxi_alike {
    const onxi_message_table *table;
    const byte *bytes; /* its bytes in the input */
    const char *memory;
    uint64_t notes;     /* value of the reader's `notes` when it was decoded: if it is unchanged, nothing was merged
                         * into the message */
    uint32_t len, size; /* size of the encoded bytes and of the memory; len 0: none */
    uint32_t depth;     /* depth of the enclosing message: a copy at a greater depth could exceed the depth limit */
    uint8_t state, pointer_count;
    uint16_t pointer[ONXI_ALIKE_POINTERS]; /* offsets at which `memory` points into itself */
} onxi_alike;

typedef struct onxi_reader {
    onx_ctx *cx;
    onx_arena *arena;
    const byte *start, *limit; /* the whole input */
    uint32_t flags;
    uint32_t depth_limit;
    unsigned threads;
    onx_status failure;
    void **stack; /* elements of repeated messages that are being collected */
    size_t stack_count, stack_room;
    uint64_t notes; /* number of calls of onxi_reader_note */
    onxi_alike alike[ONXI_ALIKE];
} onxi_reader;

/* Records an error at p; returns NULL for `return bad(...)`. */
const byte *onxi_reader_bad(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_status status,
                            const char *rule, const char *format, ...) ONX_PRINTF(6, 7);
void onxi_reader_note(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_severity severity,
                      const char *rule, const char *format, ...) ONX_PRINTF(6, 7);

/* Decodes the fields in [p, end) into the message; NULL after an error. */
const byte *onxi_read_message(onxi_reader *r, const onxi_message_table *table, void *message, const byte *p,
                              const byte *end, const onxi_reader_frame *up);

/* A zeroed message in the arena; NULL if out of memory, which is recorded. */
void *onxi_reader_message(onxi_reader *r, const onxi_message_table *table);
/* A new message from [p, p + len), decoded, or copied from a message with the same bytes; NULL after an error. */
void *onxi_read_alike(onxi_reader *r, const onxi_message_table *table, const byte *p, size_t len,
                      const onxi_reader_frame *up);

/* Decodes a varint of up to ten bytes; NULL after an error, which is recorded. */
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

/* Decodes a length that does not exceed the remaining bytes. */
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

/* The position after the value that follows a tag; an unknown group is skipped as a whole. */
const byte *onxi_read_skip(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end, uint32_t number,
                           uint32_t wire_type);

/* Numbers, packed and unpacked (wire_read_number.c). */
const byte *onxi_read_numbers(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                              const byte *end, uint32_t wire_type, const byte *tag, size_t tag_size);
const byte *onxi_read_number(onxi_reader *r, const onxi_reader_frame *f, void *value, const byte *p, const byte *end);
/* A run of repeated messages, decoded by several threads (wire_read_parallel.c). */
const byte *onxi_read_parallel(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p, const byte *end,
                               const byte *tag, size_t tag_size);

/* Reserves room in a list for `more` elements after the existing `count`; false if out of memory, which is recorded. */
bool onxi_reader_grow(onxi_reader *r, const onxi_reader_frame *f, void **list, uint64_t count, uint64_t more,
                      size_t size, bool borrowed, bool wide);

#endif
