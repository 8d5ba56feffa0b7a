/* ffi.h - for other languages: what C has as macros, inline functions and printf-like calls, as ordinary functions.
 * Bindings are made from these and from onx.json (docs/bindings.md); programs in C have no need of them. */
#ifndef ONX_FFI_H
#define ONX_FFI_H

#include <onx/kernel.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inline functions ---- */

/* onx_str_of; `text` may be NULL. */
ONX_API ONX_ANY_THREAD onx_str onx_ffi_str_of(const char *text);
/* onx_str_make */
ONX_API ONX_ANY_THREAD onx_str onx_ffi_str_make(const char *ptr, size_t len);
/* onx_str_equal */
ONX_API ONX_ANY_THREAD bool onx_ffi_str_equal(onx_str a, onx_str b);
/* onx_str_is */
ONX_API ONX_ANY_THREAD bool onx_ffi_str_is(onx_str a, const char *text);
/* onx_view */
ONX_API ONX_ANY_THREAD onx_str onx_ffi_view(onx_bytes bytes);
/* onx_doc_model */
ONX_API ONX_ANY_THREAD onx_model *onx_ffi_doc_model(const onx_doc *doc);
/* onx_node_more; `node` may be NULL. */
ONX_API ONX_ANY_THREAD const onx_node_extra *onx_ffi_node_more(const onx_node *node);
/* onx_attribute_more; `a` may be NULL. */
ONX_API ONX_ANY_THREAD const onx_attribute_extra *onx_ffi_attribute_more(const onx_attribute *a);

/* ---- fields of messages by the names of the .proto (ONX_HAS, ONX_SET, ONX_CLEAR, ONX_ADD) ---- */

/* The number of elements of a repeated field; 0 or 1, by presence, of a singular one; 0 for a name that is no field. */
ONX_API ONX_ANY_THREAD uint64_t onx_field_count(onx_kind kind, const void *message, const char *field);
/* Element `index` of an integer, boolean or enumeration field (0 for singular ones). False when it is not there or of
 * another kind. */
ONX_API ONX_ANY_THREAD bool onx_field_int(onx_kind kind, const void *message, const char *field, uint64_t index,
                                          int64_t *out);
/* The same for fields of floats and doubles. */
ONX_API ONX_ANY_THREAD bool onx_field_float(onx_kind kind, const void *message, const char *field, uint64_t index,
                                            double *out);
/* The same for strings and bytes, which stay where they are. */
ONX_API ONX_ANY_THREAD bool onx_field_text(onx_kind kind, const void *message, const char *field, uint64_t index,
                                           onx_str *out);
/* The message in a field, and its kind; NULL when it is not there. `kind_out` may be NULL. */
ONX_API ONX_ANY_THREAD void *onx_field_message(onx_kind kind, const void *message, const char *field, uint64_t index,
                                               onx_kind *kind_out);
/* Stores a singular field, or appends to a repeated one. ONX_E_NOT_FOUND for a name that is no field of such values,
 * ONX_E_LIMIT for what does not fit it, ONX_E_UNSUPPORTED for arrays of numbers that may lie in the input (data of
 * tensors: make those with onx_tensor_new). */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_int(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                    int64_t value);
ONX_API ONX_OWN_THREAD onx_status onx_field_set_float(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                      double value);
/* The text is copied. */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_text(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                     onx_str value);
/* Puts a message of the kind that the field has, which lives as long as the arena, there. */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_message(onx_arena *arena, onx_kind kind, void *message,
                                                        const char *field, void *value);
/* Makes the field absent, or empty. */
ONX_API ONX_OWN_THREAD onx_status onx_field_clear(onx_arena *arena, onx_kind kind, void *message, const char *field);

/* ---- failures whose text is ready ---- */

/* onx_op_call_fail */
ONX_API ONX_OWN_THREAD onx_status onx_op_call_fail_text(onx_op_call *call, onx_str text);
/* onx_prepare_fail */
ONX_API ONX_OWN_THREAD onx_status onx_prepare_fail_text(const onx_prepare *p, onx_status status, onx_str text);
/* onx_work_fail */
ONX_API ONX_ANY_THREAD onx_status onx_work_fail_text(onx_work *work, onx_status status, onx_str text);

#ifdef __cplusplus
}
#endif
#endif
