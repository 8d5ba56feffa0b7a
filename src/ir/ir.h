/* ir.h - what other layers use of the model beyond onx/ir.h: the message tables and the insides of a document. */
#ifndef ONXI_IR_H
#define ONXI_IR_H

#include <onx/ir.h>
#include <onx/tensor.h>

#include "base/base.h"

/* By onx_kind; entry 0 is NULL. */
extern const onxi_message_table *const onxi_messages[ONX_KIND_COUNT];

/* Frees what a layer above attached to a document (mappings, external files). */
typedef struct onxi_attachment {
    struct onxi_attachment *next;
    void (*release)(onx_ctx *cx, void *data);
    void *data;
} onxi_attachment;

struct onx_doc {
    onx_ctx *cx;
    onx_arena *arena;
    onx_kind kind;
    void *root;
    uint64_t input_size;
    onxi_attachment *attachments;
    const char *base_dir;  /* in the arena; NULL: external data cannot be found */
    struct onxi_external *external; /* opened data files (proto_external.c) */
    /* Gives the bytes of an external tensor; set by the layer that knows files, NULL until then. */
    onx_status (*external_bytes)(onx_doc *doc, const onx_tensor *tensor, onx_str *out);
};

onx_status onxi_doc_attach(onx_doc *doc, void (*release)(onx_ctx *cx, void *data), void *data);

/* Short names for paths in diagnostics: graph.node[3] "conv1" (Conv). In the arena. */
onx_str onxi_path_node(onx_arena *arena, const char *prefix, uint32_t index, const onx_node *node);

#endif
