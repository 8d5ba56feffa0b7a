/* dlpack.h - exchange of tensors with other libraries (NumPy, PyTorch, JAX, TVM, CuPy, ...) without a copy, through
 * DLPack. The structs have the layout of DLTensor and DLManagedTensor in dlpack.h, version 1, so pointers may be cast
 * between them. Source: the DLPack specification, https://dmlc.github.io/dlpack. */
#ifndef ONX_DLPACK_H
#define ONX_DLPACK_H

#include <onx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* onx_dl_type.code */
       ONX_DL_INT = 0,
       ONX_DL_UINT = 1,
       ONX_DL_FLOAT = 2,
       ONX_DL_OPAQUE = 3,
       ONX_DL_BFLOAT = 4,
       ONX_DL_COMPLEX = 5,
       ONX_DL_BOOL = 6,
       ONX_DL_FLOAT8_E4M3FN = 10,
       ONX_DL_FLOAT8_E4M3FNUZ = 11,
       ONX_DL_FLOAT8_E5M2 = 12,
       ONX_DL_FLOAT8_E5M2FNUZ = 13,
       ONX_DL_FLOAT8_E8M0FNU = 14
};

enum { ONX_DL_CPU = 1 }; /* onx_dl_tensor.device_type */

typedef struct onx_dl_type {
    uint8_t code;   /* ONX_DL_* */
    uint8_t bits;   /* of one element */
    uint16_t lanes; /* 1 */
} onx_dl_type;

typedef struct onx_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    onx_dl_type dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: row-major */
    uint64_t byte_offset; /* bytes from `data` to the first element */
} onx_dl_tensor;

typedef struct onx_dl_managed {
    onx_dl_tensor tensor;
    void *manager;                                /* private data of the producer */
    void (*deleter)(struct onx_dl_managed *self); /* the consumer calls it once; may be NULL */
} onx_dl_managed;

/* A value over elements that another library owns. The elements are used without a copy if they are row-major and
 * aligned to their type; otherwise they are copied. On ONX_OK the value owns `managed` and calls its deleter when the
 * value is freed (after a copy, at once). On failure the caller still owns `managed`. ONX_E_UNSUPPORTED for the memory
 * of other devices and for element types that ONNX lacks; ONX_E_MISUSE for a struct that describes no valid tensor. */
ONX_API ONX_OWN_THREAD onx_status onx_value_from_dlpack(onx_ctx *cx, onx_dl_managed *managed, onx_value **out);
/* Passes the elements of a row-major tensor to another library without a copy. The result holds a reference to the
 * value until its deleter is called; that must happen on the thread that the value's context belongs to, before the
 * context is freed. The value must not be reset meanwhile. ONX_E_UNSUPPORTED for values that are no tensors, for
 * STRING, and for types of less than 8 bits. */
ONX_API ONX_OWN_THREAD onx_status onx_value_to_dlpack(onx_ctx *cx, onx_value *value, onx_dl_managed **out);

#ifdef __cplusplus
}
#endif
#endif
