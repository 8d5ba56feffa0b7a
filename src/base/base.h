/* base.h - what every layer uses: reporting, arena allocation, checked arithmetic, message tables, file bytes. */
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
/* The entry of a public call: how many errors there are (onx_diag_total). What is recorded until its exit may be taken
 * back, so a log is told afterwards. */
size_t onxi_call_begin(onx_ctx *cx);
/* The exit of a public call: a failure for which no error was recorded since there were `errors` of them
 * (onx_diag_total) is recorded as what its status says, so that none is without a diagnostic; and where an error was
 * recorded, a success becomes the failure that it says. Returns the status. */
onx_status onxi_tell(onx_ctx *cx, size_t errors, onx_status status);
/* The last statement of a public function whose work another one does. */
#define ONXI_CALL(cx, call)                                                                                            \
    do {                                                                                                               \
        const size_t onxi_errors_ = onxi_call_begin((cx));                                                             \
        return onxi_tell((cx), onxi_errors_, (call));                                                                  \
    } while (0)
/* The same for one that makes *out: of a failure nothing is left. */
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
/* What a caller's options say, as this library knows them: `name` gets the members that the caller knows of, 0 for the
 * others, and 0 everywhere for NULL. The first statement of a public function with options, after ONXI_NEED. */
#define ONXI_OPTIONS(cx, type, name, given)                                                                            \
    type name;                                                                                                         \
    ONX_TRY(onxi_options((cx), &(name), sizeof(name), (given)))
/* `size` bytes at `own`, from a struct that begins with its `struct_size`, or from NULL. */
onx_status onxi_options(onx_ctx *cx, void *own, size_t size, const void *given);
/* Records a warning or note. */
void onxi_warn(onx_ctx *cx, onx_severity severity, const char *rule, onx_where where, const char *format, ...)
    ONX_PRINTF(5, 6);
/* Records a diagnostic with all its parts; texts are copied. `message` of the template is replaced by the formatted
 * one. */
void onxi_report(onx_ctx *cx, const onx_diag *diag, const char *format, ...) ONX_PRINTF(3, 4);
/* The same with a va_list. */
void onxi_vreport(onx_ctx *cx, const onx_diag *diag, const char *format, va_list args) ONX_PRINTF(3, 0);
/* Records ONX_E_MEMORY (nothing is allocated for it) and returns it. */
onx_status onxi_no_memory(onx_ctx *cx);
/* Public functions begin with this for each argument that has to be there: ONX_E_MISUSE, with a diagnostic that names
 * the function and the argument. Without a context there is nowhere to record it. */
#define ONXI_NEED(cx, argument)                                                                                        \
    do {                                                                                                               \
        if (!(argument))                                                                                               \
            return onxi_misuse((cx), __func__, #argument);                                                             \
    } while (0)
/* The same for a function that answers otherwise than by a status. */
#define ONXI_NEED_OR(cx, argument, answer)                                                                             \
    do {                                                                                                               \
        if (!(argument)) {                                                                                             \
            onxi_misuse((cx), __func__, #argument);                                                                    \
            return answer;                                                                                             \
        }                                                                                                              \
    } while (0)
onx_status onxi_misuse(onx_ctx *cx, const char *function, const char *argument);
const onx_allocator *onxi_ctx_allocator(const onx_ctx *cx);
/* That of contexts that are given none. */
extern const onx_allocator onxi_allocator_default;
/* The operators that onx_ctx_set_registry gave it (onx/op.h), or NULL; what they are is no business of base/. */
struct onx_registry;
const struct onx_registry *onxi_ctx_registry(const onx_ctx *cx);
void onxi_ctx_set_registry(onx_ctx *cx, const struct onx_registry *registry);
/* A context for a worker on another thread: the allocator, the limits and the operators of this one, whose arenas count
 * there, too. */
onx_ctx *onxi_ctx_worker(const onx_ctx *cx);
/* A point in the diagnostics, and going back to it: the caller takes over what came since in a form of its own. */
typedef struct onxi_diag_mark {
    size_t count, totals[ONX_ERROR + 1];
} onxi_diag_mark;
onxi_diag_mark onxi_diag_here(const onx_ctx *cx);
void onxi_diag_rewind(onx_ctx *cx, onxi_diag_mark mark);
/* A diagnostic turns out to be about this place of a text, too. */
void onxi_diag_place(onx_ctx *cx, size_t index, onx_where where, onx_str excerpt);
/* Removes the warnings of that rule: a later look at the same things has reported them in full. */
void onxi_diag_forget(onx_ctx *cx, const char *rule);
/* Moves the diagnostics of a worker's context to the end of cx. */
void onxi_diag_move(onx_ctx *cx, onx_ctx *from);

/* ---- allocation ---- */

/* realloc through the context's allocator; NULL with the diagnostic recorded when out of memory. Sizes have 64 bits
 * here and in arenas, where addresses may have 32: what does not fit is refused, never cut off. */
void *onxi_resize(onx_ctx *cx, void *ptr, uint64_t old_size, uint64_t new_size);
/* Counts bytes against the memory limit, as arenas do; false (recorded) when that would be exceeded. */
bool onxi_ctx_hold(onx_ctx *cx, uint64_t bytes);
void onxi_ctx_let_go(onx_ctx *cx, uint64_t bytes);
/* Bytes that may still be held. */
uint64_t onxi_ctx_room(const onx_ctx *cx);
static inline void onxi_release(onx_ctx *cx, void *ptr, uint64_t size)
{
    if (ptr)
        onxi_resize(cx, ptr, size, 0);
}

/* A block of `size` bytes that shares no line with another one: of what one thread writes in every run, while another
 * thread writes or reads what the allocator has put beside it. NULL, recorded, when out of memory. It is freed by
 * onxi_apart_free, with the same size; NULL is allowed there. */
enum { ONXI_APART_BYTES = 128 /* bytes: lines that processors fetch together */ };
void *onxi_apart_new(onx_ctx *cx, uint64_t size);
void onxi_apart_free(onx_ctx *cx, void *ptr, uint64_t size);

/* Large buffers that come and go (output, stacks of readers): one that was returned is reused. *size is at
 * least what was asked for. */
void *onxi_buffer_take(onx_ctx *cx, uint64_t wanted, size_t *size);
void onxi_buffer_give(onx_ctx *cx, void *ptr, size_t size);

struct onx_arena {
    char *at, *end; /* free part of the current block */
    struct onxi_block *blocks;
    onx_ctx *cx;
    size_t total;
};

void *onxi_arena_grow(onx_arena *arena, uint64_t size);
/* Gives all memory back, and is empty; small blocks stay with the context for the next use. */
void onxi_arena_reset(onx_arena *arena);
/* Uninitialised memory aligned to 8 bytes; NULL when out of memory (recorded). */
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
/* Whether the arenas of the context hold no more than it allows, after some were adopted; otherwise that is recorded.
 */
bool onxi_arena_within_limit(onx_ctx *cx);
/* ONX_E_CANCELLED, recorded, when the work with the context has to end. */
onx_status onxi_ctx_go_on(onx_ctx *cx);
/* Array allocation with checked product; zeroed. */
void *onxi_arena_array(onx_arena *arena, uint64_t count, size_t size);
#define ONXI_NEW(arena, type)          ((type *)onx_arena_alloc((arena), sizeof(type)))
#define ONXI_ARRAY(arena, type, count) ((type *)onxi_arena_array((arena), (count), sizeof(type)))
/* Makes room in a growing array for `wanted` elements in all: `list` is the pointer to it and `room` the number of
 * elements that there is memory for, variables of any unsigned type, 0 at first. The room at least doubles; what is new
 * is not initialised. False, recorded, when out of memory or too large for `room`; the array is then as it was. On the
 * heap it is freed with onxi_release(cx, list, room * sizeof *list); in an arena what it outgrows is left there. The
 * arguments are evaluated more than once. */
#define ONXI_GROW(cx, list, room, wanted)       ONXI_GROW_WHERE(cx, NULL, list, room, wanted)
#define ONXI_GROW_IN(arena, list, room, wanted) ONXI_GROW_WHERE((arena)->cx, arena, list, room, wanted)
#define ONXI_GROW_WHERE(cx, arena, list, room, wanted)                                                                 \
    ((uint64_t)(wanted) <= (uint64_t)(room) ||                                                                         \
     onxi_grow((cx), (arena), &(list), sizeof *(list), &(room), sizeof(room), (uint64_t)(wanted)))
bool onxi_grow(onx_ctx *cx, onx_arena *arena, void *list, size_t size, void *room, size_t room_size, uint64_t wanted);
/* A formatted text in the arena; empty when out of memory. */
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

/* After the last byte. An empty view may have no address, to which nothing may be added, not even 0. */
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

/* onx_str_equal for names, which are short: a call to compare them costs as much as comparing. */
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
    size_t i = a.len - 8; /* ends differ more often than beginnings */
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
/* Dimensions of a tensor; of rank 0 there are none, and no array need be there. */
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

/* Capacity that a list of `count` elements has: 0, or the next power of two (onx/ir.h, lists). */
static inline uint64_t onxi_list_room(uint64_t count)
{
    if (count < 2)
        return count;
    return (uint64_t)1 << (64 - __builtin_clzll(count - 1));
}

/* ---- UTF-8 ---- */

/* Length of the valid prefix; equal to s.len when all of it is UTF-8 (no overlong forms, no surrogates). */
size_t onxi_utf8_valid(onx_str s);

/* The next part of *rest, which is moved on, parts being apart by one byte or several; false at the end. */
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

/* ---- numbers as text, whatever the locale ---- */

/* Shortest decimal that reads back to the same bits ("1", "0.1", "1e+30", "nan", "-inf"); returns the length. */
size_t onxi_print_f32(char buf[32], float value);
size_t onxi_print_f64(char buf[32], double value);
/* The digits of that for a finite value other than 0 (its bits without the sign): digits * 10^exponent. */
uint32_t onxi_shortest_f32(uint32_t bits, int *exponent);
/* The whole text must be a decimal number (optional exponent), inf, infinity or nan in any case; correctly rounded.
 * False otherwise; overflow gives an infinity with *overflow set. */
bool onxi_parse_f64(onx_str text, double *out, bool *overflow);
bool onxi_parse_f32(onx_str text, float *out, bool *overflow);

/* ---- elements ---- */

/* The bits of a FLOAT16, BFLOAT16, 8-bit float (not FLOAT8E8M0) or FLOAT4E2M1, rounded once. */
uint16_t onxi_f64_to_float(onx_dtype dtype, double value, bool saturate);
/* onx_convert from element `first` of `in` on, types already checked; complex numbers give their real part. */
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

/* The bit of row i in `has` and in masks of rows: later rows have lower bits, so that the writer, which goes backwards,
 * takes the lowest bit first. */
#define ONXI_ROW_BIT(i) ((uint32_t)1 << (30 - (i)))

typedef struct onxi_field {
    /* One row to a cache line: the writer finds the next row by a shift, and touches one line for it. */
    _Alignas(64) const char *name; /* as in the .proto */
    uint32_t number;
    uint8_t type; /* onxi_field_type */
    uint8_t tag;  /* as written, when one byte holds it; else 0 */
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
    uint32_t slot_offset;     /* where a `slot` is, 0: none */
    uint32_t singles;         /* ONXI_ROW_BIT(i): row i is singular */
    uint32_t lists;           /* ... is repeated and lives in the struct */
    uint32_t extra_lists;     /* ... is repeated and lives in the extra part or the slot */
    const uint8_t *by_number; /* index + 1 of the field with that number, below number_count; 0: unknown */
    uint32_t number_count;
    const uint32_t *reserved; /* numbers that the .proto reserves, ends with 0; or NULL */
    int kind;                 /* onx_kind */
    bool alike;               /* many messages of a file have the same bytes */
} onxi_message_table;

static inline const onxi_field *onxi_field_find(const onxi_message_table *table, uint32_t number)
{
    if (number >= table->number_count || !table->by_number[number])
        return NULL;
    return &table->fields[table->by_number[number] - 1];
}

/* The slot of a message whose table has one: the number of the field that is in it. */
static inline uint32_t *onxi_slot(const onxi_message_table *table, const void *message)
{
    return (uint32_t *)(void *)((char *)(uintptr_t)message + table->slot_offset);
}

/* Where a field's value (or array pointer) and count are; NULL value when the message has no part that could hold it
 * (extra missing, slot taken by another field and no extra): the field is then absent. */
typedef struct onxi_place {
    void *value;
    void *count; /* uint32_t, or uint64_t when ONXI_WIDE; NULL for singular fields */
} onxi_place;
onxi_place onxi_field_place(const onxi_message_table *table, const onxi_field *field, const void *message);
/* The same for writing: makes the extra part, claims the slot. False when out of memory. */
bool onxi_field_claim(const onxi_message_table *table, const onxi_field *field, void *message, onx_arena *arena,
                      onxi_place *out);
/* Number of elements of a repeated field, or 0/1 for a singular one by presence. */
uint64_t onxi_field_count(const onxi_message_table *table, const onxi_field *field, const void *message);
/* The bytes of one element as stored in memory: 4 or 8 for numbers, sizeof(onx_bytes), sizeof(void *). */
size_t onxi_field_size(const onxi_field *field);

/* ---- file bytes ---- */

/* The system's text for an errno value; may point into buf or elsewhere. */
const char *onxi_error_text(int error, char *buf, size_t size);
/* "a directory", "a FIFO" and so on for st_mode. */
const char *onxi_mode_name(unsigned mode);

/* Which file it is, however its path is spelled; all zeros: none. */
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

/* "-" is standard input. Refuses directories, devices and FIFOs by name; E_IO with a diagnostic naming path and reason.
 */
onx_status onxi_file_open(onx_ctx *cx, const char *path, onxi_file *out);
/* The same into memory, never mapped: what another process does to the file afterwards does not matter. */
onx_status onxi_file_read(onx_ctx *cx, const char *path, onxi_file *out);
/* The same by flags. A FIFO is read to its end, once it has a writer; its id is zero. */
enum { ONXI_FILE_MAP = 1, ONXI_FILE_STREAM = 2 };
onx_status onxi_file_take(onx_ctx *cx, const char *path, unsigned flags, onxi_file *out);
/* Maps an opened regular file of that size, or reads it where it cannot be mapped; `shown` names it in messages. The
 * descriptor stays the caller's. */
onx_status onxi_file_map(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);
/* The same, but where nothing can be mapped (base_late.c) nothing is read before onxi_file_need. */
onx_status onxi_file_map_late(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);
/* From here on these bytes, which are some of the file's, are there. One thread at a time. */
onx_status onxi_file_need(onx_ctx *cx, onx_where where, const onxi_file *file, onx_str bytes);
/* Copies bytes of the file that need not be there, in any thread. What cannot be read is zeros, and the file broken. */
void onxi_file_copy(const onxi_file *file, const char *from, size_t size, void *out);
/* How messages name a broken file; NULL for any other. */
const char *onxi_file_broken(const onxi_file *file);
void onxi_late_close(onx_ctx *cx, struct onxi_late *late);
/* What is left of an opened file, read into memory; `expected` is a guess of how much that is. */
onx_status onxi_file_load(onx_ctx *cx, int fd, size_t expected, const char *shown, onxi_file *out);
/* Tells the system that the file will be read from front to back. */
void onxi_file_read_ahead(const onxi_file *file);
/* How many of these bytes, from the first on, are in a hole of the file and so are zero; 0 when that is not known. */
size_t onxi_file_hole(const onxi_file *file, onx_str bytes);
/* Tells the system that these bytes, if they are in the mapping, need not stay in memory; they read the same later. */
void onxi_file_forget(const onxi_file *file, onx_str bytes);
void onxi_file_close(onx_ctx *cx, onxi_file *file);

/* Bytes that are made but not kept in memory (base_spill.c): a file without a name, mapped when it is complete. */
typedef struct onxi_spill {
    int fd; /* -1: not open */
    uint64_t size;
} onxi_spill;
onx_status onxi_spill_open(onx_ctx *cx, const char *dir, onxi_spill *out);
/* Zeros become holes. */
onx_status onxi_spill_write(onx_ctx *cx, onxi_spill *spill, onx_str bytes);
/* All that was written; the spill is closed in every case. */
onx_status onxi_spill_map(onx_ctx *cx, onxi_spill *spill, onxi_file *out);
void onxi_spill_close(onxi_spill *spill);

/* ---- files that are found again by what they were made of (base_store.c) ---- */

/* A folder of them, for one thread at a time. What cannot be trusted (another user's, damaged, of other contents than
 * its name says) is as if it were not there, and is replaced. */
typedef struct onxi_store onxi_store;
/* Makes the folder if it is missing. The context stays the caller's and is used as long as the store is. */
onx_status onxi_store_open(onx_ctx *cx, const char *folder, onxi_store **out);
void onxi_store_close(onxi_store *store); /* NULL is allowed */
/* Digests that only those who can read the folder can aim at; those of several pieces one after the other. */
onxi_digest onxi_store_digest(const onxi_store *store, unsigned threads, onxi_digest before, const void *bytes,
                              size_t len);
onxi_secret onxi_store_secret(const onxi_store *store);
/* The same with any secret. */
onxi_digest onxi_digest_then(onxi_secret secret, unsigned threads, onxi_digest before, const void *bytes, size_t len);
/* The `size` bytes of that name, mapped read-only from the start of a page on: what onxi_store_unmap takes. NULL: there
 * are none. */
const void *onxi_store_find(onxi_store *store, unsigned threads, onxi_digest name, uint64_t size);
/* The same where there may be `least` (1 or more) to `most` bytes; *size: how many there are. */
const void *onxi_store_find_some(onxi_store *store, unsigned threads, onxi_digest name, uint64_t least, uint64_t most,
                                 uint64_t *size);
void onxi_store_unmap(const void *bytes, uint64_t size);
/* Keeps bytes under a name, as well as may be. */
void onxi_store_put(onxi_store *store, unsigned threads, onxi_digest name, const void *bytes, uint64_t size);
/* A note to `cx` about what could not be used or written since the last time, if anything. */
void onxi_store_tell(onxi_store *store, onx_ctx *cx);

/* Safe writing: a temporary file beside `path`, synced and renamed by onxi_output_commit. Standard output for "-";
 * devices and FIFOs are written to directly. A symbolic link is kept, the file that it names is replaced. */
typedef struct onxi_output onxi_output;
onx_status onxi_output_open(onx_ctx *cx, const char *path, onxi_output **out);
/* The same, where the output may replace the file `own` although it was read: the one that it is made from. */
onx_status onxi_output_open_over(onx_ctx *cx, const char *path, onxi_file_id own, onxi_output **out);
/* A file `name` (one component) in the folder `dir`, a descriptor that must stay open until the end: links, hard links
 * and all but regular files are refused, a new file is private to its owner. `shown` names it in messages. The folder
 * is the caller's to sync. */
onx_status onxi_output_open_at(onx_ctx *cx, int dir, const char *name, const char *shown, onxi_output **out);
/* Makes the renamings in the folder last; true when that failed, errno says why. */
bool onxi_folder_sync_failed(int dir);
/* Buffers small pieces; large ones are written from where they are. Long runs of zeros become holes. */
onx_status onxi_output_write(onxi_output *output, onx_str bytes);
/* Appends zeros. */
onx_status onxi_output_skip(onxi_output *output, uint64_t count);
uint64_t onxi_output_size(const onxi_output *output); /* bytes so far */
/* What is written can be made again: it is for this user alone, and need not survive a power cut. */
onx_status onxi_output_disposable(onxi_output *output);
/* Everything but its name: flushed and synced. For files that have to appear together. */
onx_status onxi_output_complete(onxi_output *output);
/* The same, and no descriptor stays open, whatever the number of files; meanwhile the file has a temporary name. */
onx_status onxi_output_finish(onxi_output *output);
onx_status onxi_output_commit(onxi_output *output); /* frees `output` in every case */
void onxi_output_abandon(onxi_output *output);      /* removes the temporary file; NULL is allowed */

/* ---- files that must not be replaced (base_guard.c) ---- */

/* While it is entered, the guard of a context keeps what is read and written, and every output is refused
 * that would replace one of those files. Entering is counted. */
onx_status onxi_guard_enter(onx_ctx *cx);
void onxi_guard_leave(onx_ctx *cx);
/* All of the following do nothing where no guard was entered. */
onx_status onxi_guard_read(onx_ctx *cx, onxi_file_id id, onx_str shown);
/* A file that may be read later, below a folder. */
onx_status onxi_guard_read_beneath(onx_ctx *cx, int folder, onx_str location);
/* A source of further files: asked once, before the next output. */
typedef struct onxi_guard_source {
    struct onxi_guard_source *next;
    onx_status (*list)(void *user);
    void *user;
    bool watched, listed;
} onxi_guard_source;
void onxi_guard_watch(onx_ctx *cx, onxi_guard_source *source);
void onxi_guard_unwatch(onx_ctx *cx, onxi_guard_source *source);

/* An output on its way; for base_output.c. */
typedef struct onxi_guard_write {
    int folder;
    const char *name, *shown; /* in the folder; in messages */
    const void *owner;        /* tells outputs apart */
    onxi_file_id own;         /* an input that it may replace, or all zeros */
    bool in_place;            /* it may replace any input */
} onxi_guard_write;
onx_status onxi_guard_claim(onx_ctx *cx, onxi_guard_write *w);
/* What has been written under that spelling is claimed once more. */
void onxi_guard_again(onx_ctx *cx, const char *shown);
/* Before anything is written. */
onx_status onxi_guard_begin(onx_ctx *cx, onxi_guard_write *w);
/* The output was not written: others may have its name. */
void onxi_guard_give_up(onx_ctx *cx, const void *owner);
/* Before the renaming: what is there now is examined once more. */
onx_status onxi_guard_replace(onx_ctx *cx, const onxi_guard_write *w);
/* After it: the new file is an output. */
onx_status onxi_guard_done(onx_ctx *cx, onxi_file_id made, const onxi_guard_write *w);
/* Before an open stream is written to. */
onx_status onxi_guard_stream(onx_ctx *cx, int fd, const char *shown);

/* ---- paths below a folder, for names that come from untrusted files ---- */

enum {
    ONXI_BENEATH_STEPWISE = 1, /* component by component even where the kernel could do it at once; for tests */
    ONXI_BENEATH_MAKE = 2,     /* make folders that are missing */
    ONXI_BENEATH_LINKS = 4     /* through symbolic links, wherever they lead, and files with several hard links */
};

/* Opens for reading a regular file with one hard link, at a relative path below the folder `dir`. No component may be
 * `..`, nor, without ONXI_BENEATH_LINKS, a symbolic link. Failures carry `where` and the id of the rule about external
 * data that is broken. */
onx_status onxi_beneath_open(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *fd_out,
                             uint64_t *size_out);
/* Opens the folder that the last component of the path is in, under the same rules; *leaf_out is that component. */
onx_status onxi_beneath_folder(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *folder_out,
                               onx_str *leaf_out);

/* ---- optional libraries of others, loaded on first need (base_library.c) ---- */

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

/* What a file uses of a library is a list, #define FUNCTIONS(F) F(EVP_MD_CTX_new) F(...): ONXI_FUNCTION_MEMBER makes it
 * the members of a struct, ONXI_FUNCTION_NAME the names to look for. Names that are macros are expanded. */
#define ONXI_FUNCTION_MEMBER(function) __typeof__(function) *function;
#define ONXI_FUNCTION_NAME(function)   ONXI_FUNCTION_NAME_(function)
#define ONXI_FUNCTION_NAME_(function)  #function,
/* The pointers of such a struct, valid for the rest of the process; NULL when the library is not on this machine or
 * lacks one of them, but for names after a '?', whose pointers may be NULL. `names` is a constant array, by whose
 * address the answer is found again; a few files may use a library. */
const void *onxi_library_functions(onxi_library library, const char *const *names, size_t count);
#define ONXI_FUNCTIONS(library, names) onxi_library_functions((library), (names), sizeof(names) / sizeof((names)[0]))
/* "needs libpcre2-8, which is not on this machine (Debian has it in libpcre2-8-0)", or "which was left out of this
 * build" */
const char *onxi_library_missing(onxi_library library);

/* ---- memory that is kept (base_memory.c) ---- */

/* Bytes at most of blocks that are kept because they are large, and because of what is in them (below), together. */
#define ONXI_KEPT_MOST ((size_t)256 << 20)
/* From now on large blocks that go back to the allocator of contexts that are given none are kept for whoever asks for
 * as much, up to a bound. The system may take their pages whenever it needs memory. */
void onxi_memory_keep(void);
bool onxi_memory_keeps(void);
/* There is more of what is left, below: fewer blocks are kept, if need be. */
void onxi_memory_make_room(void);

/* ---- what was made, and is kept for the next maker (base_left.c) ---- */

/* Somebody is going to ask for what is here, and to leave what he makes, under names made with the secret; false: not
 * now. */
bool onxi_left_begin(onxi_secret *secret);
typedef void onxi_left_free(void *owner, void *bytes, size_t size);
/* Keeps what was made, up to a bound, until it is taken or others need the memory; false: the caller does. The name is
 * a digest of all that it was made of. */
bool onxi_left_put(onxi_digest name, void *owner, void *bytes, size_t size, onxi_left_free *release);
/* The caller's from now on, as it was put, or NULL. */
void *onxi_left_take(onxi_digest name, size_t size, void **owner);
/* Frees what is as large, or all, the oldest first; false: there was nothing. */
bool onxi_left_drop(size_t size);

/* ---- what sessions of one process share (base_process.c) ---- */

/* The head of the runner's list (run/run_pack.c), NULL at first; no other thread has it until it is left. */
void **onxi_process_enter(void);
void onxi_process_leave(void);

/* Of the calling thread: from 1 on, in the order in which threads ask. */
unsigned onxi_process_thread_number(void);

/* ---- threads: one team per process, made when first needed (base_team.c) ---- */

/* Does piece `piece`; `worker` < threads is unique at that time. */
typedef void onxi_team_work(void *user, uint64_t piece, unsigned worker);
/* How many of `threads` would work on a job that is posted now: 1 where the caller is to stay alone, so that work need
 * not be cut, else all. */
unsigned onxi_team_threads(unsigned threads);
/* Does pieces 0 .. pieces-1, on up to `threads` threads, the calling one included; returns when all are done. Who does
 * which is left open. Calls from within a piece do all of theirs by themselves, as worker 0. Any number of threads may
 * call it at the same time. */
void onxi_team_run(unsigned threads, uint64_t pieces, onxi_team_work *work, void *user);

/* ---- zip archives (base_zip.c) ---- */

/* Unpacks the member `name` or `name` + `suffix` of an archive, or the only one that it has, and compares its checksum.
 * The bytes are one more than *len_out, made with onxi_resize. Encrypted ones and other methods than deflate are
 * refused; ONX_E_UNSUPPORTED with a diagnostic where libzip is missing. */
onx_status onxi_zip_member(onx_ctx *cx, onx_str archive, onx_str name, const char *suffix, char **bytes_out,
                           size_t *len_out);
/* Unpacks all members whose name ends in `suffix` and, without it, is `wanted` (NULL: all are), in their order, as
 * above. A status other than ONX_OK from `member` ends it and is returned; the bytes are there during the call. */
onx_status onxi_zip_each(onx_ctx *cx, onx_str archive, const char *suffix, bool (*wanted)(void *user, onx_str name),
                         onx_status (*member)(void *user, onx_str name, onx_str bytes), void *user);

/* ---- checksums ---- */

typedef struct onxi_sha1 onxi_sha1;
/* ONX_E_UNSUPPORTED with a diagnostic where libcrypto is missing. */
onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out);
void onxi_sha1_add(onxi_sha1 *hash, onx_str bytes);
onx_status onxi_sha1_end(onxi_sha1 *hash, char hex_out[41]); /* frees `hash` in every case */
void onxi_sha1_free(onxi_sha1 *hash);                        /* NULL is allowed */

#endif
