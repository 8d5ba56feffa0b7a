/* value_dlpack.c - imports and exports values as DLPack tensors. */
#include <onx/dlpack.h>

#include "value/value.h"

static const struct type_row {
    uint8_t code, bits, dtype;
} rows[] = {
    { ONX_DL_FLOAT, 32, ONX_FLOAT },
    { ONX_DL_FLOAT, 64, ONX_DOUBLE },
    { ONX_DL_FLOAT, 16, ONX_FLOAT16 },
    { ONX_DL_BFLOAT, 16, ONX_BFLOAT16 },
    { ONX_DL_INT, 8, ONX_INT8 },
    { ONX_DL_INT, 16, ONX_INT16 },
    { ONX_DL_INT, 32, ONX_INT32 },
    { ONX_DL_INT, 64, ONX_INT64 },
    { ONX_DL_UINT, 8, ONX_UINT8 },
    { ONX_DL_UINT, 16, ONX_UINT16 },
    { ONX_DL_UINT, 32, ONX_UINT32 },
    { ONX_DL_UINT, 64, ONX_UINT64 },
    { ONX_DL_BOOL, 8, ONX_BOOL },
    { ONX_DL_COMPLEX, 64, ONX_COMPLEX64 },
    { ONX_DL_COMPLEX, 128, ONX_COMPLEX128 },
    { ONX_DL_FLOAT8_E4M3FN, 8, ONX_FLOAT8E4M3FN },
    { ONX_DL_FLOAT8_E4M3FNUZ, 8, ONX_FLOAT8E4M3FNUZ },
    { ONX_DL_FLOAT8_E5M2, 8, ONX_FLOAT8E5M2 },
    { ONX_DL_FLOAT8_E5M2FNUZ, 8, ONX_FLOAT8E5M2FNUZ },
    { ONX_DL_FLOAT8_E8M0FNU, 8, ONX_FLOAT8E8M0 },
};
enum { ROWS = sizeof rows / sizeof *rows };

static int dtype_of(onx_dl_type type)
{
    for (size_t i = 0; i < ROWS && type.lanes == 1; i++)
        if (rows[i].code == type.code && rows[i].bits == type.bits)
            return rows[i].dtype;
    return ONX_UNDEFINED;
}

/* ---- import ---- */

static void let_go(void *owner)
{
    onx_dl_managed *managed = owner;
    if (managed->deleter)
        managed->deleter(managed);
}

/* Describes the memory. DLPack gives no size in bytes, so it is computed from the dims and strides. */
static onx_status describe(onx_ctx *cx, onx_dl_managed *managed, onx_memory *m)
{
    const onx_dl_tensor *t = &managed->tensor;
    if (t->device_type != ONX_DL_CPU)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "the tensor is in the memory of device type %ld, not 1 (CPU)", (long)t->device_type);
    const int dtype = dtype_of(t->dtype);
    if (dtype == ONX_UNDEFINED)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "ONNX has no element type for DLPack type code %u with %u bits and %u lanes", t->dtype.code,
                         t->dtype.bits, t->dtype.lanes);
    if (t->ndim < 0)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the tensor has %ld dimensions", (long)t->ndim);
    *m = (onx_memory){ .dtype = dtype,
                       .rank = (uint32_t)t->ndim,
                       .dims = t->shape,
                       .strides = t->strides,
                       .data = t->data ? (char *)t->data + t->byte_offset : NULL,
                       .size = UINT64_MAX,
                       .release = let_go,
                       .owner = managed };
    return ONX_OK;
}

static onx_status from_dlpack(onx_ctx *cx, onx_dl_managed *managed, onx_value **out)
{
    onx_memory m;
    ONX_TRY(describe(cx, managed, &m));
    if (onxi_memory_suits(&m))
        return onx_value_wrap(cx, &m, out);
    ONX_TRY(onx_value_from_memory(cx, &m, out));
    let_go(managed);
    return ONX_OK;
}

onx_status onx_value_from_dlpack(onx_ctx *cx, onx_dl_managed *managed, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, managed);
    ONXI_CALL(cx, from_dlpack(cx, managed, out));
}

/* ---- export ---- */

typedef struct handed_out {
    onx_dl_managed managed;
    onx_ctx *cx;
    onx_value *value;
    int64_t dims[ONX_RANK_MAX];
} handed_out;

static void take_back(onx_dl_managed *self)
{
    handed_out *h = self ? self->manager : NULL;
    if (!h)
        return;
    onx_value_free(h->value);
    onxi_release(h->cx, h, sizeof *h);
}

static onx_status to_dlpack(onx_ctx *cx, onx_value *value, onx_dl_managed **out)
{
    size_t row = 0;
    while (row < ROWS && rows[row].dtype != value->dtype)
        row++;
    if (value->kind != ONX_VALUE_TENSOR || value->layout || row == ROWS)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "DLPack cannot represent %s",
                         value->kind != ONX_VALUE_TENSOR ? "values that are not tensors"
                                                         : onx_dtype_name(value->dtype));
    if (!onxi_value_is_whole(value))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the elements of the tensor do not fit its dimensions");
    handed_out *h = onxi_resize(cx, NULL, 0, sizeof *h);
    if (!h)
        return onxi_no_memory(cx);
    *h = (handed_out){ .cx = cx };
    const onx_status status = onxi_value_share(cx, value, &h->value);
    if (status != ONX_OK) {
        onxi_release(cx, h, sizeof *h);
        return status;
    }
    onxi_copy_dims(h->dims, value->dims, value->rank);
    h->managed = (onx_dl_managed){ .tensor = { .data = h->value->data,
                                               .device_type = ONX_DL_CPU,
                                               .ndim = (int32_t)value->rank,
                                               .dtype = { rows[row].code, rows[row].bits, 1 },
                                               .shape = h->dims },
                                   .manager = h,
                                   .deleter = take_back };
    *out = &h->managed;
    return ONX_OK;
}

onx_status onx_value_to_dlpack(onx_ctx *cx, onx_value *value, onx_dl_managed **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, value);
    ONXI_CALL(cx, to_dlpack(cx, value, out));
}
