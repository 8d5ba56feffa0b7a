/* value.h - the values of a running model: tensors, sequences, optional values and maps. */
#ifndef ONX_VALUE_H
#define ONX_VALUE_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum onx_value_kind {
    ONX_VALUE_NONE,
    ONX_VALUE_TENSOR,
    ONX_VALUE_SEQUENCE,
    ONX_VALUE_OPTIONAL, /* count is 0 or 1: items[0] if it has a value */
    ONX_VALUE_MAP       /* data holds the keys (int64_t or onx_str), items the values */
} onx_value_kind;

struct onx_layout; /* see onx/kernel.h; values that a caller sees never have one */

/* Members may be read directly; change them through the functions below. References are counted: a value that is put
 * into a sequence is shared, not copied. One thread at a time may change a value or its references; any number may read
 * it. */
typedef struct onx_value {
    uint8_t kind;   /* onx_value_kind */
    uint8_t dtype;  /* element type of a tensor or of a sequence of tensors, key type of a map; 0: unknown */
    uint16_t flags; /* private */
    uint32_t rank;
    int64_t *dims;
    uint64_t count; /* elements of a tensor; items of a sequence, optional or map */
    void *data;     /* elements in raw_data layout; strings are onx_str */
    uint64_t size;  /* number of bytes of data in use */
    struct onx_value **items;
    const struct onx_layout *layout; /* NULL: row-major */
    /* memory that the value owns, all of it allocated with cx */
    onx_ctx *cx;
    uint32_t refs, dims_room;
    uint64_t data_room, items_room, text_room;
    uint64_t items_head;          /* number of free entries, out of items_room, before the first item */
    char *text;                   /* bytes of the strings */
    uint64_t text_spare;          /* number of bytes, out of text_room, at the end that no string uses */
    void (*release)(void *owner); /* for memory of the caller (onx_value_wrap) */
    void *owner;
} onx_value;

/* A value without a kind yet, with one reference. */
ONX_API ONX_OWN_THREAD onx_status onx_value_new(onx_ctx *cx, onx_value **out);
/* A tensor with zeroed elements (empty strings). Fails for invalid dims and past the memory limit of the context. */
ONX_API ONX_OWN_THREAD onx_status onx_value_new_tensor(onx_ctx *cx, onx_dtype dtype, uint32_t rank, const int64_t *dims,
                                                       onx_value **out);
/* Releases one reference. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_value_free(onx_value *value);
/* Makes the value a tensor of that type and shape; its memory is reused if it suffices. Elements are not
 * initialised. */
ONX_API ONX_OWN_THREAD onx_status onx_value_reset(onx_value *value, onx_dtype dtype, uint32_t rank,
                                                  const int64_t *dims);
/* Makes the value an empty sequence, optional or map. */
ONX_API ONX_OWN_THREAD onx_status onx_value_reset_list(onx_value *value, onx_value_kind kind, onx_dtype dtype);
/* Puts a reference to `item` into a sequence, optional or map at `index` (<= count). An item made with another
 * context is copied. */
ONX_API ONX_OWN_THREAD onx_status onx_value_insert(onx_value *value, uint64_t index, onx_value *item);
/* Copies `from` to `to`; only the items of lists that were made with the same context are shared. */
ONX_API ONX_OWN_THREAD onx_status onx_value_assign(onx_value *to, const onx_value *from);
/* Stores element `index` of a string tensor, or key `index` of a map. The bytes are copied; over many calls the time is
 * proportional to their number. */
ONX_API ONX_OWN_THREAD onx_status onx_value_set_text(onx_value *value, uint64_t index, onx_str text);

/* ---- memory of the caller ---- */

/* A tensor in memory that the caller owns. */
typedef struct onx_memory {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    int32_t dtype;        /* onx_dtype */
    uint32_t rank;
    const int64_t *dims;    /* rank of them */
    const int64_t *strides; /* distance between consecutive elements along each axis, in elements; may be negative.
                             * NULL: row-major */
    void *data;             /* the element with all indices 0 */
    uint64_t size;          /* number of bytes that may be accessed, from `data` on, and before it where a stride is
                             * negative */
    void (*release)(void *owner); /* called once when the memory is no longer needed; may be NULL */
    void *owner;                  /* for release */
} onx_memory;

/* A tensor over the caller's memory, without a copy, as input or output of a run; the value's `data` is the `data`
 * given here. Elements are row-major as in raw_data, and aligned to their type. The memory must outlive the value
 * (`release` tells when that ends). It is written only if the value is an output of a run or is changed by the
 * functions above; those fail with ONX_E_MISUSE rather than change its type or shape. ONX_E_MISUSE for strides that are
 * not row-major, for a `size` that is too small (the message has both numbers), and for unaligned addresses;
 * ONX_E_UNSUPPORTED for STRING. After a failure `release` has not been called. */
ONX_API ONX_OWN_THREAD onx_status onx_value_wrap(onx_ctx *cx, const onx_memory *memory, onx_value **out);
/* A tensor with a copy of the elements, for any strides and address. `release` is not called. Types of less than 8 bits
 * have no strides. ONX_E_UNSUPPORTED for STRING, ONX_E_MISUSE for a `size` that is too small. */
ONX_API ONX_OWN_THREAD onx_status onx_value_from_memory(onx_ctx *cx, const onx_memory *memory, onx_value **out);
/* Copies the elements of a tensor to memory with the same type and dims; otherwise as onx_value_from_memory. */
ONX_API ONX_OWN_THREAD onx_status onx_value_to_memory(onx_ctx *cx, const onx_value *value, const onx_memory *memory);

/* Makes a value from a TensorProto, SequenceProto, MapProto, OptionalProto or SparseTensorProto of `doc` (a sparse
 * tensor becomes a dense one). The value owns a copy. */
ONX_API ONX_OWN_THREAD onx_status onx_value_from_message(onx_ctx *cx, onx_doc *doc, onx_kind kind, const void *message,
                                                         onx_value **out);
/* A document whose root is a message of the kind that suits the value; tensors hold raw_data, copied. */
ONX_API ONX_OWN_THREAD onx_status onx_value_to_doc(onx_ctx *cx, const onx_value *value, onx_str name, onx_doc **out);
/* ONX_KIND_TENSOR, ..., for the type of a graph input or output. */
ONX_API ONX_ANY_THREAD onx_kind onx_value_kind_of_type(const onx_type *type);

/* The first difference between two values. */
typedef struct onx_value_difference {
    const char *what;   /* "element type", "shape", "element", ...; NULL: they agree */
    uint64_t index;     /* row-major index of the element */
    uint64_t item;      /* of a list */
    uint64_t different; /* number of elements that differ */
    double got, want;   /* the first pair of different elements, if they are numbers */
    char text[160];     /* both sides as text */
} onx_value_difference;

/* Floats agree when |got - want| <= atol + rtol * |want|; NaN agrees with NaN only; everything else must be equal. */
ONX_API ONX_ANY_THREAD bool onx_value_close(const onx_value *got, const onx_value *want, double rtol, double atol,
                                            onx_value_difference *out);
/* Same kinds, element types and shapes, whatever the elements. */
ONX_API ONX_ANY_THREAD bool onx_value_same_type(const onx_value *got, const onx_value *want, onx_value_difference *out);

#ifdef __cplusplus
}
#endif
#endif
