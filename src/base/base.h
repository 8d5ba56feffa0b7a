/* base.h - shared by all layers: diagnostics, arena allocation, checked arithmetic, message tables, file bytes. */
#ifndef ONXI_BASE_H
#define ONXI_BASE_H

#include "base/base_platform.h"

#include <onx/base.h>

#include "base/base_regex.h"
#include "base/base_table.h"

#include <stdarg.h>

/* ---- reporting ---- */

#define ONXI_NOWHERE         ((onx_where){ .kind = ONX_AT_NOWHERE })
#define ONXI_AT_BYTE(offset) ((onx_where){ .kind = ONX_AT_BYTE, .byte = (offset) })
#define ONXI_AT_PATH(str)    ((onx_where){ .kind = ONX_AT_MODEL, .path = (str) })

/* Records an error and returns its status, so that `return onxi_fail(...)` raises. Texts are copied. */
onx_status onxi_fail(onx_ctx *cx, onx_status status, onx_where where, const char *format, ...) ONX_PRINTF(4, 5);
/* Begins a public call; returns the number of errors so far (onx_diag_total). Diagnostics may be taken back until the
 * call ends, so the log function receives them only then. */
size_t onxi_call_begin(onx_ctx *cx);
/* Ends a public call. `errors` is the value that onxi_call_begin returned. If the call fails without having recorded an
 * error, one is recorded from the status, so that no failure is without a diagnostic. If an error was recorded but
 * `status` is ONX_OK, the status of that error is returned. Returns the final status. */
onx_status onxi_tell(onx_ctx *cx, size_t errors, onx_status status);
/* The last statement of a public function that delegates its work to `call`. */
#define ONXI_CALL(cx, call)                                                                                            \
    do {                                                                                                               \
        const size_t onxi_errors_ = onxi_call_begin((cx));                                                             \
        return onxi_tell((cx), onxi_errors_, (call));                                                                  \
    } while (0)
/* The same for a function that creates *out: after a failure, *out is released and set to NULL. */
#define ONXI_CALL_TO_MAKE(cx, out, release, call)                                                                      \
    do {                                                                                                               \
        const size_t onxi_errors_ = onxi_call_begin((cx));                                                             \
        *(out) = NULL;                                                                                                 \
        const onx_status onxi_status_ = onxi_tell((cx), onxi_errors_, (call));                                         \
        if (onxi_status_ != ONX_OK && *(out)) {                                                                        \
            release(*(out));                                                                                           \
            *(out) = NULL;                                                                                             \
        }                                                                                                              \
        return onxi_status_;                                                                                           \
    } while (0)
/* Defines `name`, the options that the caller passed, in this library's version of the struct: members that the
 * caller's version has are copied, all others are 0; everything is 0 if the caller passed NULL. The first statement of
 * a public function with options, after ONXI_NEED. */
#define ONXI_OPTIONS(cx, type, name, given)                                                                            \
    type name;                                                                                                         \
    ONX_TRY(onxi_options((cx), &(name), sizeof(name), (given)))
/* Fills the `size` bytes at `own` from a struct that begins with its `struct_size`, or from NULL. */
onx_status onxi_options(onx_ctx *cx, void *own, size_t size, const void *given);
/* Records a warning or note. */
void onxi_warn(onx_ctx *cx, onx_severity severity, const char *rule, onx_where where, const char *format, ...)
    ONX_PRINTF(5, 6);
/* Records a diagnostic with all its parts; texts are copied. The `message` of *diag is replaced by the formatted
 * text. */
void onxi_report(onx_ctx *cx, const onx_diag *diag, const char *format, ...) ONX_PRINTF(3, 4);
/* The same with a va_list. */
void onxi_vreport(onx_ctx *cx, const onx_diag *diag, const char *format, va_list args) ONX_PRINTF(3, 0);
/* Records ONX_E_MEMORY, without allocating, and returns it. */
onx_status onxi_no_memory(onx_ctx *cx);
/* Public functions check each argument that must not be NULL with this macro: they return ONX_E_MISUSE, with a
 * diagnostic that names the function and the argument. Without a context nothing is recorded. */
#define ONXI_NEED(cx, argument)                                                                                        \
    do {                                                                                                               \
        if (!(argument))                                                                                               \
            return onxi_misuse((cx), __func__, #argument);                                                             \
    } while (0)
/* The same for a function that does not return a status; it returns `answer`. */
#define ONXI_NEED_OR(cx, argument, answer)                                                                             \
    do {                                                                                                               \
        if (!(argument)) {                                                                                             \
            onxi_misuse((cx), __func__, #argument);                                                                    \
            return answer;                                                                                             \
        }                                                                                                              \
    } while (0)
onx_status onxi_misuse(onx_ctx *cx, const char *function, const char *argument);
const onx_allocator *onxi_ctx_allocator(const onx_ctx *cx);
/* The allocator of contexts that are created without one. */
extern const onx_allocator onxi_allocator_default;
/* The registry set by onx_ctx_set_registry (onx/op.h), or NULL. This layer only stores the pointer. */
struct onx_registry;
const struct onx_registry *onxi_ctx_registry(const onx_ctx *cx);
void onxi_ctx_set_registry(onx_ctx *cx, const struct onx_registry *registry);
/* A context for a worker on another thread, with the allocator, limits and operators of `cx`. The worker's arenas count
 * against the limits of `cx`. */
onx_ctx *onxi_ctx_worker(const onx_ctx *cx);
/* Marks a position in the list of diagnostics, and removes all later ones. The caller reports them in another form. */
typedef struct onxi_diag_mark {
    size_t count, totals[ONX_ERROR + 1];
} onxi_diag_mark;
onxi_diag_mark onxi_diag_here(const onx_ctx *cx);
void onxi_diag_rewind(onx_ctx *cx, onxi_diag_mark mark);
/* Adds a position in the text to a diagnostic that is recorded already. */
void onxi_diag_place(onx_ctx *cx, size_t index, onx_where where, onx_str excerpt);
/* Removes the warnings of that rule, because a later check of the same items has reported them in full. */
void onxi_diag_forget(onx_ctx *cx, const char *rule);
/* Moves the diagnostics of a worker's context to the end of cx. */
void onxi_diag_move(onx_ctx *cx, onx_ctx *from);

/* ---- allocation ---- */

/* realloc through the context's allocator; NULL, with a diagnostic, when out of memory. Sizes have 64 bits here and in
 * arenas, even if addresses have 32: a size that does not fit into size_t is refused, never truncated. */
void *onxi_resize(onx_ctx *cx, void *ptr, uint64_t old_size, uint64_t new_size);
/* Counts bytes against the memory limit, as arenas do; false, with a diagnostic, if the limit would be exceeded. */
bool onxi_ctx_hold(onx_ctx *cx, uint64_t bytes);
void onxi_ctx_let_go(onx_ctx *cx, uint64_t bytes);
/* Bytes that can still be counted before the limit is reached. */
uint64_t onxi_ctx_room(const onx_ctx *cx);
static inline void onxi_release(onx_ctx *cx, void *ptr, uint64_t size)
{
    if (ptr)
        onxi_resize(cx, ptr, size, 0);
}

/* A block of `size` bytes that shares no cache line with another one: for what one thread writes in every run, while
 * another thread writes or reads what the allocator has put beside it. NULL, recorded, when out of memory. It is freed
 * by onxi_apart_free, with the same size; NULL is allowed there. */
enum { ONXI_APART_BYTES = 128 /* cache lines that CPUs prefetch as a pair */ };
void *onxi_apart_new(onx_ctx *cx, uint64_t size);
void onxi_apart_free(onx_ctx *cx, void *ptr, uint64_t size);

/* A large temporary buffer (output, parser stacks); a returned one is reused. *size is at least `wanted`. */
void *onxi_buffer_take(onx_ctx *cx, uint64_t wanted, size_t *size);
void onxi_buffer_give(onx_ctx *cx, void *ptr, size_t size);

struct onx_arena {
    char *at, *end; /* free part of the current block */
    struct onxi_block *blocks;
    onx_ctx *cx;
    size_t total;
};

void *onxi_arena_grow(onx_arena *arena, uint64_t size);
/* Frees all memory and leaves the arena empty; the context keeps small blocks for the next arena. */
void onxi_arena_reset(onx_arena *arena);
/* Uninitialised memory aligned to 8 bytes; NULL, with a diagnostic, when out of memory. */
static inline void *onxi_arena_get(onx_arena *arena, uint64_t size)
{
    size_t room = (size_t)(arena->end - arena->at);
    if (size <= room && ((size + 7u) & ~(uint64_t)7u) <= room) {
        void *p = arena->at;
        arena->at += (size_t)((size + 7u) & ~(uint64_t)7u);
        return p;
    }
    return onxi_arena_grow(arena, size);
}
/* Checks the memory limit after arenas were adopted from another context; records an error if they exceed it. */
bool onxi_arena_within_limit(onx_ctx *cx);
/* Returns ONX_E_CANCELLED, with a diagnostic, if the work with the context was cancelled. */
onx_status onxi_ctx_go_on(onx_ctx *cx);
/* What onx_ctx_set_cancel has set; NULL: nothing, or no context. */
const onx_cancel *onxi_ctx_cancel(const onx_ctx *cx);
/* Allocates a zeroed array; the product count * size is checked for overflow. */
void *onxi_arena_array(onx_arena *arena, uint64_t count, size_t size);
#define ONXI_NEW(arena, type)          ((type *)onx_arena_alloc((arena), sizeof(type)))
#define ONXI_ARRAY(arena, type, count) ((type *)onxi_arena_array((arena), (count), sizeof(type)))
/* Grows an array to room for at least `wanted` elements. `list` is the pointer to the array and `room` its capacity in
 * elements; both are variables, `room` of any unsigned type and 0 at first. The capacity at least doubles; new elements
 * are not initialised. False, with a diagnostic, when out of memory or if the capacity does not fit into `room`; the
 * array is then unchanged. A heap array is freed with onxi_release(cx, list, room * sizeof *list); in an arena, the
 * outgrown array stays allocated. Arguments are evaluated more than once. */
#define ONXI_GROW(cx, list, room, wanted)       ONXI_GROW_WHERE(cx, NULL, list, room, wanted)
#define ONXI_GROW_IN(arena, list, room, wanted) ONXI_GROW_WHERE((arena)->cx, arena, list, room, wanted)
#define ONXI_GROW_WHERE(cx, arena, list, room, wanted)                                                                 \
    ((uint64_t)(wanted) <= (uint64_t)(room) ||                                                                         \
     onxi_grow((cx), (arena), &(list), sizeof *(list), &(room), sizeof(room), (uint64_t)(wanted)))
bool onxi_grow(onx_ctx *cx, onx_arena *arena, void *list, size_t size, void *room, size_t room_size, uint64_t wanted);
/* A formatted string in the arena; empty when out of memory. */
onx_str onxi_arena_printf(onx_arena *arena, const char *format, ...) ONX_PRINTF(2, 3);

/* The short form of onx_bytes, inline for readers; falls back to a record in the arena. */
static inline bool onxi_bytes_refer(onx_arena *arena, const char *ptr, size_t len, onx_bytes *out)
{
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    if (len < 0xffff && (address >> 48) == 0) {
        out->bits = len ? address | (uint64_t)len << 48 : 0;
        return true;
    }
    return onx_arena_refer(arena, onx_str_make(ptr, len), out) == ONX_OK;
}

/* The end of a view. The pointer of an empty view may be NULL, to which not even 0 may be added. */
static inline const char *onxi_str_end(onx_str s)
{
    return s.len ? s.ptr + s.len : s.ptr;
}

static inline uint64_t onxi_load64(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline uint32_t onxi_load32(const char *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* onx_str_equal for names. Names are short, so a function call would cost as much as the comparison itself. */
static inline bool onxi_str_same(onx_str a, onx_str b)
{
    if (a.len != b.len)
        return false;
    if (a.len < 4)
        return a.len == 0 ||
               (a.ptr[0] == b.ptr[0] && a.ptr[a.len / 2] == b.ptr[a.len / 2] && a.ptr[a.len - 1] == b.ptr[a.len - 1]);
    if (a.len < 8)
        return onxi_load32(a.ptr) == onxi_load32(b.ptr) &&
               onxi_load32(a.ptr + a.len - 4) == onxi_load32(b.ptr + a.len - 4);
    size_t i = a.len - 8; /* compared first, because names differ at their ends more often than at their beginnings */
    if (onxi_load64(a.ptr + i) != onxi_load64(b.ptr + i))
        return false;
    for (i = 0; i + 8 < a.len; i += 8)
        if (onxi_load64(a.ptr + i) != onxi_load64(b.ptr + i))
            return false;
    return true;
}

/* ---- checked arithmetic ---- */

static inline bool onxi_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool onxi_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool onxi_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
/* Checks the dimensions of a tensor. For rank 0 the array may be NULL. */
static inline void onxi_copy_dims(int64_t *to, const int64_t *from, uint32_t rank)
{
    if (rank)
        memcpy(to, from, rank * sizeof *to);
}
static inline bool onxi_same_dims(const int64_t *a, const int64_t *b, uint32_t rank)
{
    return !rank || memcmp(a, b, rank * sizeof *a) == 0;
}
static inline bool onxi_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool onxi_sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}
static inline bool onxi_mul_size(uint64_t a, uint64_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* The capacity of a list of `count` elements: 0, or the next power of two (onx/ir.h, lists). */
static inline uint64_t onxi_list_room(uint64_t count)
{
    if (count < 2)
        return count;
    return (uint64_t)1 << (64 - __builtin_clzll(count - 1));
}

/* ---- UTF-8 ---- */

/* Length of the valid prefix; equal to s.len when all of it is UTF-8 (no overlong forms, no surrogates). */
size_t onxi_utf8_valid(onx_str s);

/* Splits *rest at the byte `by`: *out is the next non-empty part, *rest the remainder. False at the end. */
static inline bool onxi_next_part(onx_str *rest, char by, onx_str *out)
{
    while (rest->len && *rest->ptr == by)
        *rest = onx_str_make(rest->ptr + 1, rest->len - 1);
    if (!rest->len)
        return false;
    const char *end = (const char *)memchr(rest->ptr, by, rest->len);
    const size_t size = end ? (size_t)(end - rest->ptr) : rest->len;
    *out = onx_str_make(rest->ptr, size);
    *rest = onx_str_make(rest->ptr + size, rest->len - size);
    return true;
}

/* ---- numbers as text, independent of the locale ---- */

/* The shortest decimal text that reads back as the same bits ("1", "0.1", "1e+30", "nan", "-inf"); returns its
 * length. */
size_t onxi_print_f32(char buf[32], float value);
size_t onxi_print_f64(char buf[32], double value);
/* The digits of the shortest decimal of a finite value other than 0, given its bits without the sign: digits *
 * 10^exponent. */
uint32_t onxi_shortest_f32(uint32_t bits, int *exponent);
/* Parses a decimal number (with an optional exponent), inf, infinity or nan in any case, correctly rounded. False if
 * the whole text is not one. On overflow, the result is an infinity and *overflow is set. */
bool onxi_parse_f64(onx_str text, double *out, bool *overflow);
bool onxi_parse_f32(onx_str text, float *out, bool *overflow);

/* ---- elements ---- */

/* The fields that may contain elements, ordered by their numbers in the .proto. */
typedef enum onxi_data_field {
    ONXI_IN_NONE,
    ONXI_IN_FLOAT,
    ONXI_IN_INT32,
    ONXI_IN_STRING,
    ONXI_IN_INT64,
    ONXI_IN_DOUBLE,
    ONXI_IN_UINT64,
    ONXI_IN_RAW
} onxi_data_field;

/* The elements in an entry of the typed field. */
typedef enum onxi_entry_form {
    ONXI_ENTRY_ONE,
    ONXI_ENTRY_BYTE, /* as many as fit a byte */
    ONXI_ENTRY_PAIR  /* half of one: the real or the imaginary part */
} onxi_entry_form;

/* The special values of a floating-point type. */
typedef enum onxi_float_values {
    ONXI_VALUES_NONE,   /* not a floating-point type */
    ONXI_VALUES_IEEE,   /* infinities and NaNs where IEEE 754 has them */
    ONXI_VALUES_FN,     /* no infinities; NaN is all ones */
    ONXI_VALUES_FNUZ,   /* no infinities, no negative zero; its bit pattern is NaN */
    ONXI_VALUES_FINITE, /* neither infinities nor NaN */
    ONXI_VALUES_SCALE   /* an unsigned power of two; all ones is NaN */
} onxi_float_values;

/* A row of dtype.def. */
typedef struct onxi_dtype_row {
    const char *name, *numpy;
    uint8_t bits;
    uint8_t ir_version;
    uint8_t class;  /* onx_dtype_class */
    uint8_t field;  /* onxi_data_field */
    uint8_t entry;  /* onxi_entry_form */
    uint8_t values; /* onxi_float_values */
    uint8_t mantissa;
    int16_t bias;
    uint16_t max; /* floats up to 16 bits: the largest finite bit pattern */
} onxi_dtype_row;
/* All zero for a number that is not an element type. */
const onxi_dtype_row *onxi_dtype_row_of(int64_t dtype);

/* Element `index` of a type of less than 8 bits. */
static inline unsigned onxi_packed_get(const void *in, unsigned bits, uint64_t index)
{
    const unsigned offset = (unsigned)(index % 8) * bits, shift = offset % 8;
    const unsigned char *p = (const unsigned char *)in + index / 8 * bits + offset / 8;
    const unsigned code = shift + bits > 8 ? p[0] | (unsigned)p[1] << 8 : p[0];
    return code >> shift & ((1u << bits) - 1);
}

/* Replaces element `index`; other elements and unused bits are kept. */
static inline void onxi_packed_set(void *out, unsigned bits, uint64_t index, unsigned code)
{
    const unsigned offset = (unsigned)(index % 8) * bits, shift = offset % 8, mask = (1u << bits) - 1;
    unsigned char *p = (unsigned char *)out + index / 8 * bits + offset / 8;
    code &= mask;
    p[0] = (unsigned char)((p[0] & ~(mask << shift)) | code << shift);
    if (shift + bits > 8)
        p[1] = (unsigned char)((p[1] & ~(mask >> (8 - shift))) | code >> (8 - shift));
}

/* The bits of the last byte that `count` elements of `bits` bits use; 0: all. */
static inline unsigned onxi_packed_used(unsigned bits, uint64_t count)
{
    return (unsigned)(count % 8) * bits % 8;
}

/* The bits of `value` as FLOAT16, BFLOAT16, an 8-bit float (not FLOAT8E8M0) or a smaller one, rounded once. */
uint16_t onxi_f64_to_float(onx_dtype dtype, double value, bool saturate);
/* onx_convert, starting at element `first` of `in`. Types have been checked; complex numbers yield their real part. */
void onxi_convert(onx_dtype to, void *out, onx_dtype from, const void *in, uint64_t first, uint64_t count,
                  bool saturate);

/* ---- message tables ---- */

typedef enum onxi_field_type {
    ONXI_FLOAT,  /* fixed 4 bytes */
    ONXI_DOUBLE, /* fixed 8 bytes */
    ONXI_INT32,  /* varint, sign-extended to 64 bits on the wire */
    ONXI_INT64,
    ONXI_UINT64,
    ONXI_ENUM,   /* as INT32; the closed set is in `names` */
    ONXI_STRING, /* onx_bytes, UTF-8 expected */
    ONXI_BYTES,  /* onx_bytes */
    ONXI_MESSAGE /* pointer, or array of pointers */
} onxi_field_type;

/* Wire type of a single value. */
#define ONXI_WIRE_TYPE(type) ((type) >= ONXI_STRING ? 2 : (type) == ONXI_FLOAT ? 5 : (type) == ONXI_DOUBLE ? 1 : 0)

enum {
    ONXI_REPEATED = 1,
    ONXI_PACKED = 2,  /* written packed */
    ONXI_COLD = 4,    /* lives in extra: offset and count_offset are relative to it */
    ONXI_SLOT = 8,    /* lives in the shared slot of an attribute, or in extra at more_offset */
    ONXI_ONEOF = 16,  /* shares storage with the other fields of `group`; the last one read wins */
    ONXI_BORROW = 32, /* fixed-width array that may point, unaligned, into the input */
    ONXI_WIDE = 64    /* the count is a uint64_t */
};

typedef struct onxi_enum_name {
    int32_t value;
    const char *name;
} onxi_enum_name;

struct onxi_message_table;

/* The bit of row i in `has` and in masks of rows. Later rows have lower bits, because the writer goes backwards and
 * takes the lowest bit first. */
#define ONXI_ROW_BIT(i) ((uint32_t)1 << (30 - (i)))

typedef struct onxi_field {
    /* One row per cache line: the writer computes the address of the next row by a shift, and touches one line per
     * row. */
    _Alignas(64) const char *name; /* as in the .proto */
    uint32_t number;
    uint8_t type; /* onxi_field_type */
    uint8_t tag;  /* the encoded tag if it takes one byte, else 0 */
    uint8_t flags;
    uint16_t offset;       /* of the value, or of the array pointer */
    uint16_t count_offset; /* repeated: of the count */
    uint16_t more_offset;  /* ONXI_SLOT: of the value in extra */
    uint16_t more_count_offset;
    uint32_t has;                             /* presence bit of a singular field (ONXI_ROW_BIT), 0 for repeated */
    uint32_t group;                           /* ONXI_ONEOF: presence bits of all members of the oneof */
    const struct onxi_message_table *message; /* ONXI_MESSAGE */
    const onxi_enum_name *names;              /* ONXI_ENUM: ends with a NULL name */
} onxi_field;

typedef struct onxi_message_table {
    const char *name;         /* "NodeProto" */
    const onxi_field *fields; /* in ascending number */
    uint32_t field_count;
    uint32_t size;            /* of the struct */
    uint32_t extra_size;      /* of the extra part */
    uint32_t slot_offset;     /* offset of the `slot` member, 0 if there is none */
    uint32_t singles;         /* bit mask of the singular rows (ONXI_ROW_BIT) */
    uint32_t lists;           /* bit mask of the repeated rows in the struct */
    uint32_t extra_lists;     /* bit mask of the repeated rows in the extra part or the slot */
    const uint8_t *by_number; /* index + 1 of the field with that number, below number_count; 0: unknown */
    uint32_t number_count;
    const uint32_t *reserved; /* numbers that the .proto reserves, ends with 0; or NULL */
    int kind;                 /* an onx_kind */
    bool alike;               /* files typically contain many messages with equal bytes */
} onxi_message_table;

static inline const onxi_field *onxi_field_find(const onxi_message_table *table, uint32_t number)
{
    if (number >= table->number_count || !table->by_number[number])
        return NULL;
    return &table->fields[table->by_number[number] - 1];
}

/* The slot of a message whose table has one: it contains the number of the field that uses it. */
static inline uint32_t *onxi_slot(const onxi_message_table *table, const void *message)
{
    return (uint32_t *)(void *)((char *)(uintptr_t)message + table->slot_offset);
}

/* The addresses of a field's value (or array pointer) and of its count. `value` is NULL if the field is absent because
 * the message has no storage for it: no extra part, or the slot is used by another field. */
typedef struct onxi_place {
    void *value;
    void *count; /* uint32_t, or uint64_t when ONXI_WIDE; NULL for singular fields */
} onxi_place;
onxi_place onxi_field_place(const onxi_message_table *table, const onxi_field *field, const void *message);
/* The same for writing: creates the extra part and claims the slot. False when out of memory. */
bool onxi_field_claim(const onxi_message_table *table, const onxi_field *field, void *message, onx_arena *arena,
                      onxi_place *out);
/* The number of elements of a repeated field; for a singular field 1 if present, else 0. */
uint64_t onxi_field_count(const onxi_message_table *table, const onxi_field *field, const void *message);
/* The size of one element in memory, in bytes: 4 or 8 for numbers, sizeof(onx_bytes), sizeof(void *). */
size_t onxi_field_size(const onxi_field *field);

/* ---- file bytes ---- */

/* The system's description of an errno value; the result points into buf or to static memory. */
const char *onxi_error_text(int error, char *buf, size_t size);
/* "a directory", "a FIFO" and so on for st_mode. */
const char *onxi_mode_name(unsigned mode);

/* Identifies a file independent of the spelling of its path; all zeros: no file. */
typedef struct onxi_file_id {
    uint64_t device, inode;
} onxi_file_id;
struct stat;
onxi_file_id onxi_file_id_of(const struct stat *st);

typedef struct onxi_file { /* a file mapped read-only, or standard input read into memory */
    onx_str bytes;
    onxi_file_id id;
    void *map; /* munmap, or NULL */
    size_t map_size;
    void *heap; /* for what could not be mapped */
    size_t heap_size;
    int holes;              /* descriptor + 1 of a mapped file that has holes; 0: none */
    struct onxi_late *late; /* `heap` is filled when its bytes are needed; NULL: all are there */
} onxi_file;

/* Opens and maps a file; "-" is standard input. Directories, devices and FIFOs are refused if given by name. ONX_E_IO,
 * with a diagnostic that names the path and the reason, on failure. */
onx_status onxi_file_open(onx_ctx *cx, const char *path, onxi_file *out);
/* The same, but reads the file into memory instead of mapping it, so that later changes by other processes have no
 * effect. */
onx_status onxi_file_read(onx_ctx *cx, const char *path, onxi_file *out);
/* The same, controlled by flags. ONXI_FILE_STREAM allows a FIFO: it waits for a writer and reads to the end; the id is
 * zero. */
enum { ONXI_FILE_MAP = 1, ONXI_FILE_STREAM = 2 };
onx_status onxi_file_take(onx_ctx *cx, const char *path, unsigned flags, onxi_file *out);
/* Maps an open regular file of `size` bytes, or reads it if it cannot be mapped; `shown` names it in messages. The
 * caller keeps ownership of the descriptor. */
onx_status onxi_file_map(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);
/* The same, but if files cannot be mapped (base_late.c), bytes are read only when onxi_file_need requests them. */
onx_status onxi_file_map_late(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);
/* Makes sure that these bytes of the file have been read. Only one thread at a time may call it for a file. */
onx_status onxi_file_need(onx_ctx *cx, onx_where where, const onxi_file *file, onx_str bytes);
/* Copies bytes of the file, which need not have been read, in any thread. Bytes that cannot be read become zero, and
 * the file is then marked as broken. */
void onxi_file_copy(const onxi_file *file, const char *from, size_t size, void *out);
/* The name of a broken file for messages; NULL if the file is not broken. */
const char *onxi_file_broken(const onxi_file *file);
void onxi_late_close(onx_ctx *cx, struct onxi_late *late);
/* Reads the rest of an open file into memory; `expected` is an estimate of its size in bytes. */
onx_status onxi_file_load(onx_ctx *cx, int fd, size_t expected, const char *shown, onxi_file *out);
/* Advises the system that the file will be read sequentially. */
void onxi_file_read_ahead(const onxi_file *file);
/* The number of bytes at the start of `bytes` that lie in a hole of the file, and so are zero; 0 if unknown. */
size_t onxi_file_hole(const onxi_file *file, onx_str bytes);
/* Advises the system that these bytes, if they are mapped, need not stay in memory; later accesses read them again. */
void onxi_file_forget(const onxi_file *file, onx_str bytes);
void onxi_file_close(onx_ctx *cx, onxi_file *file);

/* Generated bytes that are not kept in memory (base_spill.c): an unnamed temporary file, which is mapped when it is
 * complete. */
typedef struct onxi_spill {
    int fd; /* -1: not open */
    uint64_t size;
} onxi_spill;
onx_status onxi_spill_open(onx_ctx *cx, const char *dir, onxi_spill *out);
/* Appends bytes; long runs of zeros become holes. */
onx_status onxi_spill_write(onx_ctx *cx, onxi_spill *spill, onx_str bytes);
/* Maps all that was written. The spill is closed in every case. */
onx_status onxi_spill_map(onx_ctx *cx, onxi_spill *spill, onxi_file *out);
void onxi_spill_close(onxi_spill *spill);

/* ---- a folder of files that are named by a digest of their origin (base_store.c) ---- */

/* Such a folder, used by one thread at a time. A file that cannot be trusted (because it belongs to another user, is
 * damaged, or does not match its name) is treated as missing, and is replaced. */
typedef struct onxi_store onxi_store;
/* Opens the folder, creating it if it is missing. The store uses `cx` until it is closed; the caller keeps
 * ownership. */
onx_status onxi_store_open(onx_ctx *cx, const char *folder, onxi_store **out);
void onxi_store_close(onxi_store *store); /* NULL is allowed */
/* A digest keyed with the folder's secret, so that only those who can read the folder can produce collisions. `before`
 * is the digest of the preceding pieces. */
onxi_digest onxi_store_digest(const onxi_store *store, unsigned threads, onxi_digest before, const void *bytes,
                              size_t len);
onxi_secret onxi_store_secret(const onxi_store *store);
/* The same with any secret. */
onxi_digest onxi_digest_then(onxi_secret secret, unsigned threads, onxi_digest before, const void *bytes, size_t len);
/* The file of that name and of `size` bytes, mapped read-only at the start of a page; unmap it with onxi_store_unmap.
 * NULL if there is none. */
const void *onxi_store_find(onxi_store *store, unsigned threads, onxi_digest name, uint64_t size);
/* The same for a file of `least` (at least 1) to `most` bytes; *size is its size. */
const void *onxi_store_find_some(onxi_store *store, unsigned threads, onxi_digest name, uint64_t least, uint64_t most,
                                 uint64_t *size);
void onxi_store_unmap(const void *bytes, uint64_t size);
/* Stores bytes under a name. Failures are only noted, for onxi_store_tell. */
void onxi_store_put(onxi_store *store, unsigned threads, onxi_digest name, const void *bytes, uint64_t size);
/* Reports to `cx`, as one note, what could not be read or written since the last call, if anything. */
void onxi_store_tell(onxi_store *store, onx_ctx *cx);

/* Atomic replacement of files: writes to a temporary file beside `path`, which onxi_output_commit syncs and renames.
 * "-" is standard output; devices and FIFOs are written to directly. A symbolic link is kept, and the file that it
 * names is replaced. */
typedef struct onxi_output onxi_output;
onx_status onxi_output_open(onx_ctx *cx, const char *path, onxi_output **out);
/* The same, but the output may replace the file `own` although it is an input: the one that the output is made from. */
onx_status onxi_output_open_over(onx_ctx *cx, const char *path, onxi_file_id own, onxi_output **out);
/* Writes the file `name` (one component) in the folder `dir`, a descriptor that must stay open until the output is
 * closed. Links, files with several hard links and all but regular files are refused; a new file is private to its
 * owner. `shown` names it in messages. The caller has to sync the folder. */
onx_status onxi_output_open_at(onx_ctx *cx, int dir, const char *name, const char *shown, onxi_output **out);
/* Syncs the folder, so that renames in it are durable; true on failure, with errno set. */
bool onxi_folder_sync_failed(int dir);
/* Buffers small pieces; large ones are written directly. Long runs of zeros become holes. */
onx_status onxi_output_write(onxi_output *output, onx_str bytes);
/* Appends zeros. */
onx_status onxi_output_skip(onxi_output *output, uint64_t count);
uint64_t onxi_output_size(const onxi_output *output); /* bytes so far */
/* Marks the output as reproducible, for example a cache: the file is private to this user, and is not synced. */
onx_status onxi_output_disposable(onxi_output *output);
/* Flushes and syncs the file without renaming it. For files that have to appear together. */
onx_status onxi_output_complete(onxi_output *output);
/* The same, and also closes the descriptor, so that the number of files is not limited; until the commit, the file has
 * a temporary name. */
onx_status onxi_output_finish(onxi_output *output);
onx_status onxi_output_commit(onxi_output *output); /* frees `output` in every case */
void onxi_output_abandon(onxi_output *output);      /* removes the temporary file; NULL is allowed */

/* ---- files that must not be replaced (base_guard.c) ---- */

/* While a guard is entered, it records all files that the context reads and writes, and refuses every output that would
 * replace one of them. Calls nest. */
onx_status onxi_guard_enter(onx_ctx *cx);
void onxi_guard_leave(onx_ctx *cx);
/* All functions below do nothing if no guard is entered. */
onx_status onxi_guard_read(onx_ctx *cx, onxi_file_id id, onx_str shown);
/* Records a file below a folder that may be read later. */
onx_status onxi_guard_read_beneath(onx_ctx *cx, int folder, onx_str location);
/* A callback that lists further files; it is called once, before the next output is opened. */
typedef struct onxi_guard_source {
    struct onxi_guard_source *next;
    onx_status (*list)(void *user);
    void *user;
    bool watched, listed;
} onxi_guard_source;
void onxi_guard_watch(onx_ctx *cx, onxi_guard_source *source);
void onxi_guard_unwatch(onx_ctx *cx, onxi_guard_source *source);

/* An output that is being written; for base_output.c. */
typedef struct onxi_guard_write {
    int folder;
    const char *name, *shown; /* in the folder; in messages */
    const void *owner;        /* tells outputs apart */
    onxi_file_id own;         /* an input that this output may replace, or all zeros */
    bool in_place;            /* it may replace any input */
} onxi_guard_write;
onx_status onxi_guard_claim(onx_ctx *cx, onxi_guard_write *w);
/* Claims the output with that spelling once more, after it has been written. */
void onxi_guard_again(onx_ctx *cx, const char *shown);
/* Called before anything is written. */
onx_status onxi_guard_begin(onx_ctx *cx, onxi_guard_write *w);
/* Called if the output was not written, so that others may use its name. */
void onxi_guard_give_up(onx_ctx *cx, const void *owner);
/* Called before the rename: checks again which file has the name now. */
onx_status onxi_guard_replace(onx_ctx *cx, const onxi_guard_write *w);
/* Called after the rename: records the new file as an output. */
onx_status onxi_guard_done(onx_ctx *cx, onxi_file_id made, const onxi_guard_write *w);
/* Called before an open stream is written to. */
onx_status onxi_guard_stream(onx_ctx *cx, int fd, const char *shown);

/* ---- paths below a folder, for names that come from untrusted files ---- */

enum {
    ONXI_BENEATH_STEPWISE = 1, /* walk component by component even if the kernel could resolve the path in one call; for
                                * tests */
    ONXI_BENEATH_MAKE = 2,     /* make folders that are missing */
    ONXI_BENEATH_LINKS = 4     /* follow symbolic links, wherever they lead, and accept files with several hard links */
};

/* Opens a regular file with one hard link for reading, at a relative path below the folder `dir`. No component may be
 * `..` or, without ONXI_BENEATH_LINKS, a symbolic link. Diagnostics carry `where` and the id of the violated rule about
 * external data. */
onx_status onxi_beneath_open(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *fd_out,
                             uint64_t *size_out);
/* Opens the folder that contains the last component of the path, under the same rules; *leaf_out is that component. */
onx_status onxi_beneath_folder(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *folder_out,
                               onx_str *leaf_out);

/* ---- optional third-party libraries, loaded on first use (base_library.c) ---- */

typedef enum onxi_library {
    ONXI_LIBRARY_CRYPTO,
    ONXI_LIBRARY_PCRE2,
    ONXI_LIBRARY_UTF8PROC,
    ONXI_LIBRARY_LEPTONICA,
    ONXI_LIBRARY_SNDFILE,
    ONXI_LIBRARY_MPG123,
    ONXI_LIBRARY_DNNL,
    ONXI_LIBRARY_ZIP,
    ONXI_LIBRARY_MPI,
    ONXI_LIBRARY_COUNT
} onxi_library;

/* The functions that a file uses of a library are listed as #define FUNCTIONS(F) F(EVP_MD_CTX_new) F(...). Applied to
 * the list, ONXI_FUNCTION_MEMBER declares the members of a struct of pointers, and ONXI_FUNCTION_NAME the names to look
 * up. Names that are macros are expanded first. */
#define ONXI_FUNCTION_MEMBER(function) __typeof__(function) *function;
#define ONXI_FUNCTION_NAME(function)   ONXI_FUNCTION_NAME_(function)
#define ONXI_FUNCTION_NAME_(function)  #function,
/* The struct of function pointers, valid for the rest of the process. NULL if the library is not installed or lacks one
 * of the functions; functions whose names follow a '?' are optional, and their pointers may be NULL. `names` has to be
 * a constant array, because the result is cached by its address; only a few files may use the same library. */
const void *onxi_library_functions(onxi_library library, const char *const *names, size_t count);
#define ONXI_FUNCTIONS(library, names) onxi_library_functions((library), (names), sizeof(names) / sizeof((names)[0]))
/* Why the library is missing: "needs libpcre2-8, which is not on this machine (Debian has it in libpcre2-8-0)", or
 * "which was left out of this build". */
const char *onxi_library_missing(onxi_library library);

/* ---- memory that is kept for reuse (base_memory.c) ---- */

/* Upper bound, in bytes, for the blocks that are kept for their memory and those that are kept for their contents
 * (below), together. */
#define ONXI_KEPT_MOST ((size_t)256 << 20)
/* From now on, large blocks that are freed by the default allocator are kept, up to a bound, for the next allocation of
 * the same size. The system may reclaim their pages whenever it needs memory. */
void onxi_memory_keep(void);
bool onxi_memory_keeps(void);
/* Called when more bytes are kept for their contents (below): frees kept blocks if the bound is exceeded. */
void onxi_memory_make_room(void);

/* ---- derived data, such as packed weights, that is kept after its owner is gone (base_left.c) ---- */

/* Called by a new user of the cache, who will look entries up and leave new ones, under names made with *secret. False:
 * the cache cannot be used now. */
bool onxi_left_begin(onxi_secret *secret);
typedef void onxi_left_free(void *owner, void *bytes, size_t size);
/* Keeps derived data, up to a bound, until it is taken or the memory is needed; false: the caller keeps ownership. The
 * name is a digest of everything that the data was derived from. */
bool onxi_left_put(onxi_digest name, void *owner, void *bytes, size_t size, onxi_left_free *release);
/* Transfers ownership of the entry to the caller, as it was put; NULL if there is none. */
void *onxi_left_take(onxi_digest name, size_t size, void **owner);
/* Frees entries of at least that size, or all, the oldest first; false if there was nothing to free. */
bool onxi_left_drop(size_t size);

/* ---- data shared by the sessions of a process (base_process.c) ---- */

/* Locks and returns the head of the runner's list (run/run_pack.c), NULL at first; onxi_process_leave unlocks it. */
void **onxi_process_enter(void);
void onxi_process_leave(void);

/* A number for the calling thread: from 1, in the order in which threads first ask. */
unsigned onxi_process_thread_number(void);

/* ---- threads: one thread pool per process, created on first use (base_team.c) ---- */

/* Computes piece `piece`; `worker` < threads is unique among the calls that run at the same time. */
typedef void onxi_team_work(void *user, uint64_t piece, unsigned worker);
/* How many of `threads` threads would work on a job that is posted now: 1 if the caller should work alone, so that the
 * work need not be split, else `threads`. */
unsigned onxi_team_threads(unsigned threads);
/* Computes pieces 0 .. pieces-1 on up to `threads` threads, including the calling one, and returns when all are done.
 * The assignment of pieces to threads is not specified. A nested call from within a piece computes all of its pieces
 * itself, as worker 0. Any number of threads may call this at the same time. */
void onxi_team_run(unsigned threads, uint64_t pieces, onxi_team_work *work, void *user);

/* ---- zip archives (base_zip.c) ---- */

/* Extracts the member `name` or `name` + `suffix` of an archive, or its only member, and verifies the checksum. The
 * buffer is one byte larger than *len_out, and is allocated with onxi_resize. Encrypted members and compression methods
 * other than deflate are refused; ONX_E_UNSUPPORTED, with a diagnostic, if libzip is missing. */
onx_status onxi_zip_member(onx_ctx *cx, onx_str archive, onx_str name, const char *suffix, char **bytes_out,
                           size_t *len_out);
/* Extracts, in order, all members whose name ends in `suffix` and whose name without the suffix is `wanted` (NULL:
 * all). The bytes are valid during the call of `member`; a status other than ONX_OK from it ends the extraction and is
 * returned. */
onx_status onxi_zip_each(onx_ctx *cx, onx_str archive, const char *suffix, bool (*wanted)(void *user, onx_str name),
                         onx_status (*member)(void *user, onx_str name, onx_str bytes), void *user);

/* ---- checksums ---- */

typedef struct onxi_sha1 onxi_sha1;
/* Returns ONX_E_UNSUPPORTED, with a diagnostic, if libcrypto is missing. */
onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out);
void onxi_sha1_add(onxi_sha1 *hash, onx_str bytes);
onx_status onxi_sha1_end(onxi_sha1 *hash, char hex_out[41]); /* frees `hash` in every case */
void onxi_sha1_free(onxi_sha1 *hash);                        /* NULL is allowed */

#endif
