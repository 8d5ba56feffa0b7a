/* base.h - what every part of onx shares: status, views of bytes, memory, the context and its diagnostics. */
#ifndef ONX_BASE_H
#define ONX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ONX_API                 __attribute__((visibility("default")))
#define ONX_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ONX_API
#define ONX_PRINTF(text, first)
#endif

/* Which threads may call a function; each declaration says one of these.
 *  - ONX_ANY_THREAD: any number of threads at the same time, as long as nobody changes what they pass meanwhile.
 *  - ONX_OWN_THREAD: one thread at a time for what it is given and for the context that this was made with. Another
 *    thread may be the next one.
 *  - ONX_EACH_THREAD: any number of threads at the same time on one session, each with a context and values of its own.
 */
#define ONX_ANY_THREAD
#define ONX_OWN_THREAD
#define ONX_EACH_THREAD

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version: of the headers, and of the library that runs with the program ---- */

#define ONX_VERSION_MAJOR 0
#define ONX_VERSION_MINOR 1
#define ONX_VERSION_PATCH 0
/* One number that grows: 0.1.0 is 100, 1.2.3 is 10203. */
#define ONX_VERSION_NUMBER (ONX_VERSION_MAJOR * 10000 + ONX_VERSION_MINOR * 100 + ONX_VERSION_PATCH)

/* ONX_VERSION_NUMBER of the library that was found when the program started. */
ONX_API ONX_ANY_THREAD uint32_t onx_version(void);
/* The same as text: "0.1.0". */
ONX_API ONX_ANY_THREAD const char *onx_version_text(void);
/* What the library was built with, one fact per index from 0 on: "compiler gcc 12.2.0", "processor x86_64", "kernels
 * base v3 v4 vnni bf16 amx", "libraries oneDNN libzip"; NULL past the last one. */
ONX_API ONX_ANY_THREAD const char *onx_build_info(uint32_t index);

/* Options of functions are structs that begin with `struct_size`: sizeof of the struct as the caller was compiled, or
 * 0, which stands for the members that the first release had. So a later release may append members: the library takes
 * those that the caller knows of and 0 for the others. Whatever a caller does not set has to be 0, as initialisers in
 * braces make it. A struct that is larger than the library knows, with something other than 0 there, is ONX_E_MISUSE.
 */

/* ---- status: what kind of thing went wrong; the context's diagnostics say what and where ----
 *
 * No argument may be NULL but those of which the declaration says so; of a list without elements the address is not
 * read. What is missing, or out of range, is ONX_E_MISUSE, with a diagnostic where an argument leads to a context.
 * Functions that return no status answer NULL, 0, false or an empty text then, and do nothing. */

typedef enum onx_status {
#define STATUS(name, text) ONX_##name,
#include <onx/status.def>
} onx_status;

/* "malformed input" for ONX_E_MALFORMED, and so on; never NULL. */
ONX_API ONX_ANY_THREAD const char *onx_status_text(onx_status status);

/* Passes a failure on to the caller. */
#define ONX_TRY(call)                                                                                                  \
    do {                                                                                                               \
        onx_status onx_try_status_ = (call);                                                                           \
        if (onx_try_status_ != ONX_OK)                                                                                 \
            return onx_try_status_;                                                                                    \
    } while (0)

/* ---- libraries of others that some operators need; loaded when something first needs them ---- */

typedef struct onx_library_info {
    const char *name;    /* "libpcre2-8" */
    const char *what;    /* what it is needed for */
    const char *package; /* of Debian 12 that has it */
    const char *file;    /* under which it was found and loaded; NULL: not on this machine, or left out of the build */
    bool built;          /* this build of onx can use it */
} onx_library_info;

/* One after the other, from index 0 on; false when there are no more. Loads the library to find out. Any thread may
 * call it. */
ONX_API ONX_ANY_THREAD bool onx_library(uint32_t index, onx_library_info *out);

/* ---- views ---- */

/* A view of text or bytes that is owned elsewhere. Not terminated by zero, may hold zero bytes. */
typedef struct onx_str {
    const char *ptr;
    size_t len;
} onx_str;

static inline onx_str onx_str_of(const char *text)
{
    onx_str s;
    s.ptr = text;
    s.len = text ? strlen(text) : 0;
    return s;
}

static inline onx_str onx_str_make(const char *ptr, size_t len)
{
    onx_str s;
    s.ptr = ptr;
    s.len = len;
    return s;
}

static inline bool onx_str_equal(onx_str a, onx_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool onx_str_is(onx_str a, const char *text)
{
    return onx_str_equal(a, onx_str_of(text));
}

/* For printf: printf("%.*s", ONX_ARG(s)); texts longer than INT_MAX are cut. */
#define ONX_ARG(s) ((s).len > 0x7fffffff ? 0x7fffffff : (int)(s).len), ((s).ptr ? (s).ptr : "")

/* A string or bytes field of a message: an onx_str squeezed into eight bytes (docs/notes/bytes.md). A model of a
 * million nodes is mostly names, so their size decides how much memory is touched. The low 48 bits are the
 * address, the high 16 the length; 0xffff there means that the address is that of an onx_str in the arena.
 * All bits zero is the empty string. Read it with onx_view, make it with onx_arena_keep or onx_arena_refer. */
typedef struct onx_bytes {
    uint64_t bits;
} onx_bytes;

static inline onx_str onx_view(onx_bytes bytes)
{
    const char *ptr = (const char *)(uintptr_t)(bytes.bits & 0xffffffffffffu);
    uint64_t len = bytes.bits >> 48;
    if (len == 0xffff)
        return *(const onx_str *)(const void *)ptr;
    return onx_str_make(ptr, (size_t)len);
}

/* ---- diagnostics ---- */

typedef enum onx_severity { ONX_NOTE, ONX_WARNING, ONX_ERROR } onx_severity;

typedef enum onx_where_kind { ONX_AT_NOWHERE, ONX_AT_BYTE, ONX_AT_TEXT, ONX_AT_MODEL } onx_where_kind;

/* A place in the input. Several kinds of place may be known at once: a byte offset and a model path, say. */
typedef struct onx_where {
    onx_where_kind kind;
    uint64_t byte;         /* ONX_AT_BYTE: from the start of the input */
    uint32_t line, column; /* ONX_AT_TEXT: both from 1, columns in bytes */
    onx_str path;          /* graph.node[3] "conv1" (Conv) attribute pads; may be set with any kind */
} onx_where;

typedef struct onx_diag {
    onx_severity severity;
    onx_status status; /* what kind of failure an error is; ONX_OK for warnings and notes */
    const char *rule;  /* id of the broken rule ("T-04") or NULL */
    onx_where where;
    onx_str message;  /* one sentence, no full stop, no place in it */
    onx_str value;    /* offending value, or empty */
    onx_str expected; /* what was expected, or empty */
    onx_str hint;     /* what may help, or empty */
    onx_str excerpt;  /* the line of text at `where`, for a caret, or empty */
} onx_diag;

/* ---- context: allocator, limits, diagnostics. One thread at a time may use a context. ---- */

typedef struct onx_ctx onx_ctx;

/* `resize` works like realloc with the old size given; a new size of 0 frees and returns NULL. */
typedef struct onx_allocator {
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
    void *user;
} onx_allocator;

typedef struct onx_limits {
    uint32_t depth;       /* nesting of messages, types and subgraphs; default 100, at most ONX_DEPTH_MAX */
    uint32_t diagnostics; /* how many are kept, and the first error even after those; others are counted only; default
                           * 1000 */
    uint64_t memory;      /* bytes of all arenas and values of the context, mapped files not counted; default 8 GiB */
} onx_limits;

#define ONX_DEPTH_MAX 2000u

/* `allocator` may be NULL, which means the C library's. Returns NULL when out of memory. */
ONX_API ONX_ANY_THREAD onx_ctx *onx_ctx_new(const onx_allocator *allocator);
/* Everything made with the context must have been freed before. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_ctx_free(onx_ctx *cx);
ONX_API ONX_OWN_THREAD onx_limits onx_ctx_limits(const onx_ctx *cx);
ONX_API ONX_OWN_THREAD void onx_ctx_set_limits(onx_ctx *cx, onx_limits limits);

/* Diagnostics in order of arrival. Each stays where it is until onx_diag_clear or onx_ctx_free. */
ONX_API ONX_OWN_THREAD size_t onx_diag_count(const onx_ctx *cx);
ONX_API ONX_OWN_THREAD const onx_diag *onx_diag_get(const onx_ctx *cx, size_t index);
/* How many of a severity were reported, those past the limit included. */
ONX_API ONX_OWN_THREAD size_t onx_diag_total(const onx_ctx *cx, onx_severity severity);
ONX_API ONX_OWN_THREAD void onx_diag_clear(onx_ctx *cx);
/* Writes "where: severity: message, found ..., expected ... [rule]" and a hint line into buf, as snprintf does;
 * returns the length of the whole text. `buf` may be NULL, for the length alone. */
ONX_API ONX_ANY_THREAD size_t onx_diag_format(const onx_diag *diag, char *buf, size_t size);

/* Gets each diagnostic once, in order, by the thread that works with the context, at the latest before the outermost
 * call that recorded it returns; those past the limit of diagnostics are not passed on. It may read the context's
 * diagnostics, and must not call anything else with it. */
typedef struct onx_log {
    void (*write)(void *user, const onx_diag *diag);
    void *user;
} onx_log;
/* `log` may be NULL, which ends it. */
ONX_API ONX_OWN_THREAD void onx_ctx_set_log(onx_ctx *cx, const onx_log *log);

/* ---- cancelling from another thread ---- */

/* Ends what it was given to, from any thread: work with a context, runs, and the making of sessions, whose options name
 * it. It must outlive them. */
typedef struct onx_cancel onx_cancel;
ONX_API ONX_OWN_THREAD onx_status onx_cancel_new(onx_ctx *cx, onx_cancel **out);
/* What uses it must have ended; the context that it was made with releases it. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_cancel_free(onx_cancel *cancel);
/* From now on what it was given to fails with ONX_E_CANCELLED: what is running, soon, and what begins later, at once.
 */
ONX_API ONX_ANY_THREAD void onx_cancel_now(onx_cancel *cancel);
/* As if it had just been made. */
ONX_API ONX_ANY_THREAD void onx_cancel_reset(onx_cancel *cancel);
ONX_API ONX_ANY_THREAD bool onx_cancel_is_set(const onx_cancel *cancel);
/* Ends reading, writing, checking, inference, transforms and whatever else takes memory of the context or writes files
 * with it: it is checked whenever an arena grows and between pieces of files. A document that is transformed
 * meanwhile can then only be freed; files are not replaced. NULL: no cancelling. */
ONX_API ONX_OWN_THREAD void onx_ctx_set_cancel(onx_ctx *cx, const onx_cancel *cancel);

/* For hash tables over what files hold: 64 bits by a secret of the context, so that no file can choose names that fall
 * on one place. `before` is the hash of the part of the key before this text, 0 if there is none. Another context has
 * other hashes: no output may depend on them. */
ONX_API ONX_OWN_THREAD uint64_t onx_hash(const onx_ctx *cx, onx_str text, uint64_t before);

/* ---- arena: memory that is freed all at once ---- */

typedef struct onx_arena onx_arena;

ONX_API ONX_OWN_THREAD onx_status onx_arena_new(onx_ctx *cx, onx_arena **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_arena_free(onx_arena *arena);
/* Zeroed memory aligned to 8 bytes; NULL when out of memory or past the context's memory limit. */
ONX_API ONX_OWN_THREAD void *onx_arena_alloc(onx_arena *arena, size_t size);
/* Moves all memory of `from` into `arena` and frees `from`; addresses stay valid. */
ONX_API ONX_OWN_THREAD void onx_arena_adopt(onx_arena *arena, onx_arena *from);
/* Bytes that the arena holds, unused ends of blocks included. */
ONX_API ONX_OWN_THREAD size_t onx_arena_size(const onx_arena *arena);
/* Copies the bytes into the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_arena_keep(onx_arena *arena, onx_str bytes, onx_bytes *out);
/* Refers to the bytes where they are; they must outlive the arena's users. */
ONX_API ONX_OWN_THREAD onx_status onx_arena_refer(onx_arena *arena, onx_str bytes, onx_bytes *out);

/* ---- what all messages have in common (onx/ir.h) ---- */

/* One field that the tables do not know: its bytes, tag included, as they were read. */
typedef struct onx_unknown {
    struct onx_unknown *next;
    uint32_t number; /* field number */
    onx_bytes bytes;
} onx_unknown;

typedef struct onx_extra {
    onx_unknown *unknown; /* in order of appearance */
    onx_unknown *unknown_last;
} onx_extra;

/* What every message begins with; `second` is a member that fills the gap. */
#define ONX_MESSAGE_HEAD(second)                                                                                       \
    uint32_t has;                                                                                                      \
    second;                                                                                                            \
    onx_extra *extra

typedef struct onx_message {
    ONX_MESSAGE_HEAD(uint32_t reserved);
} onx_message;

/* ---- element types ---- */

/* Dimensions that a tensor may have. */
#define ONX_RANK_MAX 64u

typedef enum onx_dtype {
    ONX_UNDEFINED = 0,
#define DTYPE(name, number, bits, class, text, ir) ONX_##name = number,
#include <onx/dtype.def>
    ONX_DTYPE_COUNT
} onx_dtype;

typedef enum onx_dtype_class {
    ONX_CLASS_NONE,
    ONX_CLASS_FLOATING,
    ONX_CLASS_SIGNED,
    ONX_CLASS_UNSIGNED,
    ONX_CLASS_BOOLEAN,
    ONX_CLASS_COMPLEX,
    ONX_CLASS_TEXT
} onx_dtype_class;

/* Any number may be given; those that are no element type have width 0, class NONE, name NULL, IR version 0. */
ONX_API ONX_ANY_THREAD const char *onx_dtype_name(int64_t dtype); /* "float16" */
ONX_API ONX_ANY_THREAD unsigned onx_dtype_bits(int64_t dtype);    /* 0 also for STRING */
ONX_API ONX_ANY_THREAD onx_dtype_class onx_dtype_class_of(int64_t dtype);
ONX_API ONX_ANY_THREAD int onx_dtype_ir_version(int64_t dtype); /* the IR version that introduced it */
/* The type of a text name, ONX_UNDEFINED when there is none. */
ONX_API ONX_ANY_THREAD onx_dtype onx_dtype_find(onx_str name);
/* Bytes that `count` elements take, packed for types below 8 bits; false when that overflows or for STRING. */
ONX_API ONX_ANY_THREAD bool onx_dtype_size(int64_t dtype, uint64_t count, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif
#endif
