/* wire.h - the protobuf wire format over message tables; knows no ONNX message. */
#ifndef ONXI_WIRE_H
#define ONXI_WIRE_H

#include "base/base.h"

enum { ONXI_WIRE_COPY = 1, ONXI_WIRE_LENIENT = 2 }; /* as ONX_READ_* */

/* Reads the fields of one message from all of `bytes` into `message` (a zeroed struct of the table, or one to merge
 * into). Strings and payloads point into `bytes` unless ONXI_WIRE_COPY. The message is complete or the status is not
 * ONX_OK. */
onx_status onxi_wire_read(onx_ctx *cx, onx_arena *arena, const onxi_message_table *table, onx_str bytes, uint32_t flags,
                          unsigned threads, void *message);

/* A message in wire form, made back to front so that lengths are known when they are written. Large payloads are
 * not copied but referred to when `refer` was set. */
typedef struct onxi_wire_ref {
    size_t behind; /* bytes of the buffer that follow the payload */
    onx_str payload;
} onxi_wire_ref;

typedef struct onxi_writer {
    onx_ctx *cx;
    char *base, *end;    /* the buffer, filled from its end */
    onx_str bytes;       /* what was written, payloads referred to not included */
    onxi_wire_ref *refs; /* last payload first */
    size_t ref_count, ref_room;
    uint64_t referred; /* bytes of all payloads referred to */
    uint64_t top;      /* address of `end` plus `referred`: less the front, it is what was written */
    bool refer;
    uint32_t depth, depth_limit;
    onx_status failure;
} onxi_writer;

/* `expected` sizes the first buffer. On failure nothing needs to be freed. */
onx_status onxi_wire_write(onx_ctx *cx, const onxi_message_table *table, const void *message, bool refer,
                           size_t expected, onxi_writer *out);
void onxi_writer_free(onxi_writer *writer);
/* The buffer alone; `bytes` is gone with it. */
void onxi_writer_free_buffer(onxi_writer *writer);

#endif
