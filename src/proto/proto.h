/* proto.h - bytes of ONNX files: binary, protobuf text and JSON, external data. The public face is onx/io.h. */
#ifndef ONXI_PROTO_H
#define ONXI_PROTO_H

#include <onx/io.h>

#include "base/base.h"
#include "ir/ir.h"
#include "wire/wire.h"

/* The document owns the file from here on; its bytes are what the document borrows from. */
onx_status onxi_doc_keep_input(onx_doc *doc, onxi_file *file);
/* Gives back the memory of bytes of the input or of external data that were read through; they can be read again. */
void onxi_doc_forget(onx_doc *doc, onx_str bytes);

#endif
