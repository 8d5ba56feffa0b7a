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
 * ONX_E_LIMIT for what does not fit it, ONX_E_UNSUPPORTED for arrays of numbers that may be in the input (data of
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

/* ---- lists: fields that are repeated ---- */

/* Puts `insert` elements, 0, empty texts or new messages, in place of `remove` ones from `at` on. ONX_E_MISUSE for
 * places that are not in the list; ONX_E_UNSUPPORTED as above: see onx_field_fill. */
ONX_API ONX_OWN_THREAD onx_status onx_field_splice(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                   uint64_t at, uint64_t remove, uint64_t insert);
/* Store element `index`, which is there, of a repeated field; otherwise as onx_field_set_int and so on. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_int(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                    uint64_t index, int64_t value);
ONX_API ONX_OWN_THREAD onx_status onx_field_put_float(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                      uint64_t index, double value);
/* The text is copied. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_text(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                     uint64_t index, onx_str value);
/* The message lives as long as the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_field_put_message(onx_arena *arena, onx_kind kind, void *message,
                                                        const char *field, uint64_t index, void *value);
/* A copy of `count` numbers becomes all of a repeated field of numbers, also of one whose array may be in the input.
 * They are as wide as the field says: float, double, int32_t (enumerations, too), int64_t or uint64_t. */
ONX_API ONX_OWN_THREAD onx_status onx_field_fill(onx_arena *arena, onx_kind kind, void *message, const char *field,
                                                 const void *numbers, uint64_t count);

/* ---- the fields that there are ---- */

typedef enum onx_field_type { /* values stay what they are */
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
    const char *name; /* as in the .proto */
    uint32_t number;
    int32_t type; /* onx_field_type */
    bool repeated;
    bool oneof;       /* one of several of which at most one is present */
    onx_kind message; /* of MESSAGE: its kind */
} onx_field_info;
/* In ascending number, from index 0 on; false when there are no more. */
ONX_API ONX_ANY_THREAD bool onx_field_get(onx_kind kind, uint32_t index, onx_field_info *out);
/* The name and number of a value of an enumeration field; NULL when there are no more. */
ONX_API ONX_ANY_THREAD const char *onx_field_enum(onx_kind kind, const char *field, uint32_t index, int32_t *value_out);

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
