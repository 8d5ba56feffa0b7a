/* ffi.h - for other languages: ordinary functions for what C has as macros, inline functions and printf-like calls.
 * Language bindings are generated from these and from onx.json (docs/bindings.md). C programs do not need them. */
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

/* ---- fields of messages by the names in the .proto (ONX_HAS, ONX_SET, ONX_CLEAR, ONX_ADD) ---- */

/* The number of elements of a repeated field; for a singular field 1 if present, else 0. 0 for a name that is no
 * field. */
ONX_API ONX_ANY_THREAD uint64_t onx_field_count(onx_kind kind, const void *message, const char *field);
/* Element `index` of an integer, boolean or enumeration field (index 0 for singular fields). False when there is no
 * such element or the field has another type. */
ONX_API ONX_ANY_THREAD bool onx_field_int(onx_kind kind, const void *message, const char *field, uint64_t index,
                                          int64_t *out);
/* The same for fields of floats and doubles. */
ONX_API ONX_ANY_THREAD bool onx_field_float(onx_kind kind, const void *message, const char *field, uint64_t index,
                                            double *out);
/* The same for strings and bytes, which are not copied. */
ONX_API ONX_ANY_THREAD bool onx_field_text(onx_kind kind, const void *message, const char *field, uint64_t index,
                                           onx_str *out);
/* The message in a field, and its kind; NULL when it is absent. `kind_out` may be NULL. */
ONX_API ONX_ANY_THREAD void *onx_field_message(onx_kind kind, const void *message, const char *field, uint64_t index,
                                               onx_kind *kind_out);
/* Stores a singular field, or appends to a repeated one. ONX_E_NOT_FOUND if there is no field of that name and type.
 * ONX_E_LIMIT if the value does not fit the field. ONX_E_UNSUPPORTED for arrays of numbers that may lie in the input
 * (data of tensors: make those with onx_tensor_new). */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_int(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                    int64_t value);
ONX_API ONX_OWN_THREAD onx_status onx_field_set_float(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                      double value);
/* The text is copied. */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_text(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                     onx_str value);
/* Stores a message of the kind that the field has. The message must live as long as the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_field_set_message(onx_arena *arena, onx_kind kind, void *message,
                                                        const char *field, void *value);
/* Makes a singular field absent, or a repeated one empty. */
ONX_API ONX_OWN_THREAD onx_status onx_field_clear(onx_arena *arena, onx_kind kind, void *message, const char *field);

/* ---- repeated fields ---- */

/* Replaces `remove` elements from index `at` on by `insert` new elements: 0, empty texts or new messages. ONX_E_MISUSE
 * for a range outside of the list; ONX_E_UNSUPPORTED as above: see onx_field_fill. */
ONX_API ONX_OWN_THREAD onx_status onx_field_splice(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                   uint64_t at, uint64_t remove, uint64_t insert);
/* Overwrites element `index` of a repeated field, which must exist; otherwise as onx_field_set_int and so on. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_int(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                    uint64_t index, int64_t value);
ONX_API ONX_OWN_THREAD onx_status onx_field_put_float(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                      uint64_t index, double value);
/* The text is copied. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_text(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                     uint64_t index, onx_str value);
/* The message must live as long as the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_message(onx_arena *arena, onx_kind kind, void *message,
                                                        const char *field, uint64_t index, void *value);
/* Replaces all elements of a repeated numeric field by a copy of `count` numbers, also where the old array may lie in
 * the input. The numbers have the type of the field: float, double, int32_t (also enumerations), int64_t or
 * uint64_t. */
ONX_API ONX_OWN_THREAD onx_status onx_field_fill(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                 const void *numbers, uint64_t count);

/* ---- field tables ---- */

typedef enum onx_field_type { /* the values are stable */
                              ONX_FIELD_FLOAT,
                              ONX_FIELD_DOUBLE,
                              ONX_FIELD_INT32,
                              ONX_FIELD_INT64,
                              ONX_FIELD_UINT64,
                              ONX_FIELD_ENUM, /* int32_t */
                              ONX_FIELD_STRING,
                              ONX_FIELD_BYTES,
                              ONX_FIELD_MESSAGE
} onx_field_type;

typedef struct onx_field_info {
    const char *name; /* name in the .proto */
    uint32_t number;
    int32_t type; /* onx_field_type */
    bool repeated;
    bool oneof;       /* member of a oneof: at most one of its fields is present */
    onx_kind message; /* for MESSAGE: its kind */
} onx_field_info;
/* Fields in ascending order of number, from index 0; false past the last one. */
ONX_API ONX_ANY_THREAD bool onx_field_get(onx_kind kind, uint32_t index, onx_field_info *out);
/* The name and number of a value of an enumeration field; NULL past the last one. */
ONX_API ONX_ANY_THREAD const char *onx_field_enum(onx_kind kind, const char *field, uint32_t index, int32_t *value_out);

/* ---- failures with a finished text instead of a format ---- */

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
