/* proto.h - bytes of ONNX files: binary, protobuf text and JSON, external data. The public face is onx/io.h. */
#ifndef ONXI_PROTO_H
#define ONXI_PROTO_H

#include <onx/io.h>

#include "base/base.h"
#include "ir/ir.h"
#include "wire/wire.h"

#endif
