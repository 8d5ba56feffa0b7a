/* io.h - documents in files: which format a file has, loading, saving, moving weights. The public face is onx/io.h. */
#ifndef ONXI_IO_H
#define ONXI_IO_H

#include <onx/io.h>
#include <onx/text.h>

#include "base/base.h"
#include "ir/ir.h"
#include "proto/proto.h"

/* What the first bytes of a file look like. */
typedef struct onxi_io_look {
    onx_format format; /* AUTO: none of ours, or nothing can be said */
    const char *what;  /* "protobuf text", "a zip archive"; NULL when nothing can be said */
} onxi_io_look;
onxi_io_look onxi_io_look_at(onx_str bytes);

/* "a ModelProto" and the like, when the top-level fields of a binary file fit one kind and no other; NULL else. */

/* The folder part of a path in `buf`; false when it is too long. */
bool onxi_io_folder_of(const char *path, char *buf, size_t size);

/* ---- moving weights (io_external.c) ---- */

typedef struct onxi_io_move onxi_io_move;

/* Writes the weights that leave the model to data files, not in place yet, and makes a root without them. The document
 * stays as it is. *root_out is valid until onxi_io_move_end. */
onx_status onxi_io_move_begin(onx_doc *doc, const onx_external_options *options, const char *path, onxi_io_move **out,
                              const void **root_out);
/* Puts the data files in place. */
onx_status onxi_io_move_commit(onxi_io_move *move);
/* Frees all; removes data files that are not in place. NULL is allowed. */
void onxi_io_move_end(onxi_io_move *move);

/* A sink that writes to a file and gives back the memory of what it has read through in the document's files. */
typedef struct onxi_io_stream {
    onxi_output *output;
    onx_doc *doc;    /* may be NULL */
    onxi_sha1 *hash; /* may be NULL */
    onx_str behind;  /* read through, not given back yet */
} onxi_io_stream;
onx_sink onxi_io_stream_sink(onxi_io_stream *stream);
onx_status onxi_io_stream_write(void *stream, onx_str bytes);
onx_status onxi_io_stream_skip(onxi_io_stream *stream, uint64_t count); /* zeros */

#endif
