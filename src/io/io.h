/* io.h - documents in files: detecting formats, loading, saving, moving weights. The public interface is onx/io.h. */
#ifndef ONXI_IO_H
#define ONXI_IO_H

#include <onx/io.h>
#include <onx/text.h>

#include "base/base.h"
#include "ir/ir.h"
#include "proto/proto.h"

/* The format that the first bytes of a file indicate. */
typedef struct onxi_io_look {
    onx_format format; /* AUTO: another or an unknown format */
    const char *what;  /* "protobuf text", "a zip archive"; NULL if unknown */
} onxi_io_look;
onxi_io_look onxi_io_look_at(onx_str bytes);

/* "a ModelProto" and the like, if the top-level fields of a binary file match exactly one kind; otherwise NULL. */

/* Stores the folder part of a path in `buf`; false if it is too long. */
bool onxi_io_folder_of(const char *path, char *buf, size_t size);

/* ---- moving weights (io_external.c) ---- */

typedef struct onxi_io_move onxi_io_move;

/* Writes the weights that leave the model to data files, under temporary names, and creates a root message without
 * them. The document is not changed. *root_out is valid until onxi_io_move_end. */
onx_status onxi_io_move_begin(onx_doc *doc, const onx_external_options *options, const char *path, onxi_io_move **out,
                              const void **root_out);
/* Renames the data files and the model, which becomes `path`, to their final names, in an order in which a model never
 * finds the data of another one, wherever the program is stopped (docs/notes/external_data.md). Frees `model` in every
 * case. */
onx_status onxi_io_move_commit(onxi_io_move *move, onxi_output *model, const char *path);
/* Frees everything; removes data files that have not been renamed. NULL is allowed. */
void onxi_io_move_end(onxi_io_move *move);

/* A sink that writes to a file, and drops pages of the document's mapped files once they have been written. */
typedef struct onxi_io_stream {
    onxi_output *output;
    onx_doc *doc;    /* may be NULL */
    onxi_sha1 *hash; /* may be NULL */
    onx_str behind;  /* read completely, but not dropped yet */
} onxi_io_stream;
onx_sink onxi_io_stream_sink(onxi_io_stream *stream);
onx_status onxi_io_stream_write(void *stream, onx_str bytes);
onx_status onxi_io_stream_skip(onxi_io_stream *stream, uint64_t count); /* zeros */

#endif
