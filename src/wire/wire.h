/* wire.h - the protobuf wire format, driven by message tables; independent of ONNX. */
#ifndef ONXI_WIRE_H
#define ONXI_WIRE_H

#include "base/base.h"

enum { ONXI_WIRE_COPY = 1, ONXI_WIRE_LENIENT = 2 }; /* as ONX_READ_* */

/* Decodes one message, whose fields are all of `bytes`, into `message`: a zeroed struct of the table, or an existing
 * message to merge into. Strings and payloads point into `bytes` unless ONXI_WIRE_COPY is set. After ONX_OK the message
 * is complete. */
onx_status onxi_wire_read(onx_ctx *cx, onx_arena *arena, const onxi_message_table *table, onx_str bytes, uint32_t flags,
                          unsigned threads, void *message);

/* An encoded message. It is written from back to front, so that lengths are known when they are written. If `refer` is
 * set, large payloads are referenced instead of copied. */
typedef struct onxi_wire_ref {
    size_t behind; /* bytes of the buffer that follow the payload */
    onx_str payload;
} onxi_wire_ref;

typedef struct onxi_writer {
    onx_ctx *cx;
    char *base, *end;    /* the buffer, which is filled from its end */
    onx_str bytes;       /* the encoded bytes, without referenced payloads */
    onxi_wire_ref *refs; /* the last payload first */
    size_t ref_count, ref_room;
    uint64_t referred; /* total size of the referenced payloads */
    uint64_t top;      /* address of `end` plus `referred`: minus the current front, this is the number of bytes
                        * written */
    bool refer;
    uint32_t depth, depth_limit;
    onx_status failure;
} onxi_writer;

/* `expected` is the initial size of the buffer. On failure nothing has to be freed. */
onx_status onxi_wire_write(onx_ctx *cx, const onxi_message_table *table, const void *message, bool refer,
                           size_t expected, onxi_writer *out);
void onxi_writer_free(onxi_writer *writer);
/* Frees only the buffer, and with it `bytes`. */
void onxi_writer_free_buffer(onxi_writer *writer);

#endif
