/* proto_binary.c - reads and writes the binary format of any message. */
#include "proto/proto.h"

_Static_assert((int)ONX_READ_COPY == (int)ONXI_WIRE_COPY && (int)ONX_READ_LENIENT == (int)ONXI_WIRE_LENIENT,
               "flags agree");

/* The size limit of most protobuf implementations (rule W-26). */
#define COMMON_LIMIT ((uint64_t)0x7fffffff)

static onx_status read_binary(onx_ctx *cx, onx_kind kind, onx_str bytes, uint32_t flags, unsigned threads,
                              onx_doc **out)
{
    onx_doc *doc;
    ONX_TRY(onx_doc_new(cx, kind, &doc));
    doc->input_size = bytes.len;
    if (bytes.len > COMMON_LIMIT)
        onxi_warn(cx, ONX_WARNING, "W-26", ONXI_NOWHERE,
                  "the message is larger than 2147483647 bytes, which other readers refuse; external data avoids that");
    onx_status status = onxi_wire_read(cx, doc->arena, onxi_messages[kind], bytes, flags, threads, doc->root);
    if (status != ONX_OK) {
        onx_doc_free(doc);
        return status;
    }
    *out = doc;
    return ONX_OK;
}

onx_status onx_read(onx_ctx *cx, onx_kind kind, onx_str bytes, uint32_t flags, unsigned threads, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free, read_binary(cx, kind, bytes, flags, threads, out));
}

onx_status onx_write(onx_ctx *cx, onx_kind kind, const void *message, size_t expected, onx_buffer *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, out);
    memset(out, 0, sizeof *out);
    onxi_writer w;
    ONX_TRY(onxi_wire_write(cx, onxi_messages[kind], message, false, expected, &w));
    *out = (onx_buffer){
        .ptr = w.end - w.bytes.len, .len = w.bytes.len, .base = w.base, .base_size = (size_t)(w.end - w.base), .cx = cx
    };
    return ONX_OK;
}

void onx_buffer_free(onx_buffer *buffer)
{
    if (!buffer)
        return;
    if (buffer->cx)
        onxi_buffer_give(buffer->cx, buffer->base, buffer->base_size);
    memset(buffer, 0, sizeof *buffer);
}

onx_status onx_write_to(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, sink.write);
    onxi_writer w;
    ONX_TRY(onxi_wire_write(cx, onxi_messages[kind], message, true, 0, &w));
    const char *at = w.bytes.ptr;
    onx_status status = ONX_OK;
    /* Messages are written from back to front, so the payload that was added last comes first. */
    for (size_t i = w.ref_count; i-- > 0 && status == ONX_OK;) {
        const char *until = w.end - w.refs[i].behind;
        if (until > at)
            status = sink.write(sink.user, onx_str_make(at, (size_t)(until - at)));
        if (status == ONX_OK)
            status = sink.write(sink.user, w.refs[i].payload);
        at = until;
    }
    if (status == ONX_OK && at < w.end)
        status = sink.write(sink.user, onx_str_make(at, (size_t)(w.end - at)));
    onxi_writer_free(&w);
    return status;
}
