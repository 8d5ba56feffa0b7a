/* base_dtype.c - properties of the element types, from dtype.def. */
#include "base/base.h"

/* Sets of types are words of 32 bits (ONX_DTYPE_BIT). */
_Static_assert(ONX_DTYPE_COUNT <= 32, "a set of element types does not fit 32 bits");

/* The largest finite bit pattern of floats up to 16 bits, by kind of values. */
#define ALL_ONES(bits)              ((1u << ((bits) > 16 ? 16 : (bits)-1)) - 1u)
#define MOST_NONE(bits, mantissa)   0
#define MOST_IEEE(bits, mantissa)   (bits) > 16 ? 0 : (uint16_t)(ALL_ONES(bits) - (1u << ((bits) > 16 ? 0 : (mantissa))))
#define MOST_FN(bits, mantissa)     ALL_ONES(bits) - 1
#define MOST_FNUZ(bits, mantissa)   ALL_ONES(bits)
#define MOST_FINITE(bits, mantissa) ALL_ONES(bits)
#define MOST_SCALE(bits, mantissa)  (1u << (bits)) - 2

static const onxi_dtype_row rows[ONX_DTYPE_COUNT] = {
#define DTYPE(name, number, bits, class, text, ir, field, entry, mantissa, bias, values, numpy)                        \
    [number] = { text,                                                                                                 \
                 numpy,                                                                                                \
                 bits,                                                                                                 \
                 ir,                                                                                                   \
                 ONX_CLASS_##class,                                                                                    \
                 ONXI_IN_##field,                                                                                      \
                 ONXI_ENTRY_##entry,                                                                                   \
                 ONXI_VALUES_##values,                                                                                 \
                 mantissa,                                                                                             \
                 bias,                                                                                                 \
                 MOST_##values(bits, mantissa) },
#include <onx/dtype.def>
};

static const onxi_dtype_row *row_of(int64_t dtype)
{
    return dtype > 0 && dtype < ONX_DTYPE_COUNT ? &rows[dtype] : &rows[0];
}

const onxi_dtype_row *onxi_dtype_row_of(int64_t dtype)
{
    return row_of(dtype);
}

const char *onx_dtype_name(int64_t dtype)
{
    return row_of(dtype)->name;
}
const char *onx_dtype_numpy_name(int64_t dtype)
{
    return row_of(dtype)->numpy;
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
        *bytes_out = count / 8 * bits + (count % 8 * bits + 7) / 8;
        return true;
    }
    return onxi_mul_u64(count, bits / 8, bytes_out);
}
