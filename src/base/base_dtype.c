/* base_dtype.c - properties of the element types, from dtype.def. */
#include "base/base.h"

typedef struct dtype_row {
    const char *name;
    uint8_t bits;
    uint8_t ir_version;
    uint8_t class; /* onx_dtype_class */
} dtype_row;

static const dtype_row rows[ONX_DTYPE_COUNT] = {
#define DTYPE(name, number, bits, class, text, ir) [number] = { text, bits, ir, ONX_CLASS_##class },
#include <onx/dtype.def>
};

static const dtype_row *row_of(int64_t dtype)
{
    return dtype > 0 && dtype < ONX_DTYPE_COUNT ? &rows[dtype] : &rows[0];
}

const char *onx_dtype_name(int64_t dtype)
{
    return row_of(dtype)->name;
}
unsigned onx_dtype_bits(int64_t dtype)
{
    return row_of(dtype)->bits;
}
onx_dtype_class onx_dtype_class_of(int64_t dtype)
{
    return (onx_dtype_class)row_of(dtype)->class;
}
int onx_dtype_ir_version(int64_t dtype)
{
    return row_of(dtype)->ir_version;
}

onx_dtype onx_dtype_find(onx_str name)
{
    for (int i = 1; i < ONX_DTYPE_COUNT; i++)
        if (rows[i].name && onx_str_is(name, rows[i].name))
            return (onx_dtype)i;
    return ONX_UNDEFINED;
}

bool onx_dtype_size(int64_t dtype, uint64_t count, uint64_t *bytes_out)
{
    if (!bytes_out)
        return false;
    unsigned bits = onx_dtype_bits(dtype);
    if (bits == 0)
        return false;
    if (bits < 8) {
        unsigned per_byte = 8 / bits;
        *bytes_out = count / per_byte + (count % per_byte != 0);
        return true;
    }
    return onxi_mul_u64(count, bits / 8, bytes_out);
}
