/* proto.h - bytes of ONNX files: binary, protobuf text and JSON, external data. The public face is onx/io.h. */
#ifndef ONXI_PROTO_H
#define ONXI_PROTO_H

#include <onx/io.h>

#include "base/base.h"
#include "ir/ir.h"
#include "wire/wire.h"

/* The document owns the file from here on; its bytes are what the document borrows from. */
onx_status onxi_doc_keep_input(onx_doc *doc, onxi_file *file);
/* The files that the document comes from and refers to are inputs for the guard of the context, as long as it lives. */
onx_status onxi_doc_guard(onx_doc *doc);
/* How many of these bytes, from the first on, lie in a hole of one of the document's files. */
size_t onxi_doc_hole(onx_doc *doc, onx_str bytes);
/* The input is about to be read through as a whole. */
void onxi_doc_read_ahead(onx_doc *doc);
/* Gives back the memory of bytes of the input or of external data that were read through; they can be read again. */
void onxi_doc_forget(onx_doc *doc, onx_str bytes);

#endif
