/* npy.h - values as NumPy files: .npy (one array) and .npz (a zip archive of arrays). */
#ifndef ONX_NPY_H
#define ONX_NPY_H

#include <onx/io.h>
#include <onx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the bytes of a .npy file of format version 1 to 3: numbers and bool of either byte order, and texts (S, U),
 * row-major or column-major. The value is a tensor that owns its elements. Bytes after the array are ignored. Source:
 * numpy.lib.format. */
ONX_API ONX_OWN_THREAD onx_status onx_value_from_npy(onx_ctx *cx, onx_str bytes, onx_value **out);
/* Reads member `name`.npy of a .npz file, or its only member, whatever its name. ONX_E_UNSUPPORTED if libzip is
 * missing, and for encrypted members; ONX_E_NOT_FOUND for a name that does not exist. */
ONX_API ONX_OWN_THREAD onx_status onx_value_from_npz(onx_ctx *cx, onx_str bytes, onx_str name, onx_value **out);
/* Reads the arrays of a .npz file one after the other and calls `member` for each name (without .npy) that `wanted`
 * accepts. `wanted` may be NULL: all are read. The value is freed after the call of `member`, which may insert it into
 * a list to keep it. A status other than ONX_OK from `member` stops the reading and is returned. ONX_E_UNSUPPORTED as
 * above. */
ONX_API ONX_OWN_THREAD onx_status onx_npz_each(onx_ctx *cx, onx_str bytes, bool (*wanted)(void *user, onx_str name),
                                               onx_status (*member)(void *user, onx_str name, onx_value *value),
                                               void *user);
/* The bytes of a .npy file, version 1. Types that NumPy lacks are widened: small floats to float32, integers of 4 and 2
 * bits to 8 bits. Strings become U of the longest length, or S (bytes) if one of them is not UTF-8; trailing zero bytes
 * are lost. ONX_E_UNSUPPORTED for everything but tensors. */
ONX_API ONX_OWN_THREAD onx_status onx_value_to_npy(onx_ctx *cx, const onx_value *value, onx_buffer *out);

/* The bytes of an uncompressed .npz file that contains the values, which have to be tensors, under these names. It
 * contains no time stamps: the same values give the same bytes. `values` and `names` have `count` entries. */
ONX_API ONX_OWN_THREAD onx_status onx_value_to_npz(onx_ctx *cx, const onx_value *const *values, const onx_str *names,
                                                   uint32_t count, onx_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
