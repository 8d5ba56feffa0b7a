/* op.h - the operator registry: every version of every ONNX operator, as data. */
#ifndef ONX_OP_H
#define ONX_OP_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One version of an operator. Built-in ones live as long as the library. */
typedef struct onx_op onx_op;

#ifdef __cplusplus
}
#endif
#endif
