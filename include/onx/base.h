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

/* Which threads may call a function; each declaration carries one of these.
 *  - ONX_ANY_THREAD: any number of threads at the same time, as long as no thread changes the arguments meanwhile.
 *  - ONX_OWN_THREAD: only one thread at a time may use the arguments and the context that they were made with. The
 *    next call may come from another thread.
 *  - ONX_EACH_THREAD: any number of threads at the same time on one session, each with its own context and values. */
#define ONX_ANY_THREAD
#define ONX_OWN_THREAD
#define ONX_EACH_THREAD

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version of the headers, and version of the library that is loaded at run time ---- */

#define ONX_VERSION_MAJOR 0
#define ONX_VERSION_MINOR 1
#define ONX_VERSION_PATCH 0
/* The version as one increasing integer: 0.1.0 is 100, 1.2.3 is 10203. */
#define ONX_VERSION_NUMBER (ONX_VERSION_MAJOR * 10000 + ONX_VERSION_MINOR * 100 + ONX_VERSION_PATCH)

/* ONX_VERSION_NUMBER of the library that is loaded at run time. */
ONX_API ONX_ANY_THREAD uint32_t onx_version(void);
/* The same version as text: "0.1.0". */
ONX_API ONX_ANY_THREAD const char *onx_version_text(void);
/* How the library was built, one fact per index, from 0: "compiler gcc 12.2.0", "processor x86_64", "kernels base v3 v4
 * vnni bf16 amx", "libraries oneDNN libzip". NULL for an index past the last fact. */
ONX_API ONX_ANY_THREAD const char *onx_build_info(uint32_t index);

/* Functions take options as structs that begin with `struct_size`. Set it to the sizeof of the struct in the caller, or
 * to 0, which means the members of the first release. Later releases may append members: the library reads the members
 * that the caller has and uses 0 for the others. Set every member that you do not use to 0; an initialiser in braces
 * does so. A struct that is larger than the library's own and is not all 0 in the extra bytes is ONX_E_MISUSE. */

/* ---- status: the kind of failure; the diagnostics of the context say what failed and where ----
 *
 * Arguments must not be NULL unless the declaration says that they may. The address of a list without elements is not
 * read. A missing or out-of-range argument is ONX_E_MISUSE, with a diagnostic if one of the arguments leads to a
 * context. Functions that do not return a status do nothing in that case and return NULL, 0, false or an empty text. */

typedef enum onx_status {
#define STATUS(name, text) ONX_##name,
#include <onx/status.def>
} onx_status;

/* "malformed input" for ONX_E_MALFORMED, and so on; never NULL. */
ONX_API ONX_ANY_THREAD const char *onx_status_text(onx_status status);

/* Returns from the calling function with the status of `call` if that is a failure. */
#define ONX_TRY(call)                                                                                                  \
    do {                                                                                                               \
        onx_status onx_try_status_ = (call);                                                                           \
        if (onx_try_status_ != ONX_OK)                                                                                 \
            return onx_try_status_;                                                                                    \
    } while (0)

/* ---- third-party libraries that some operators need; each is loaded on first use ---- */

typedef struct onx_library_info {
    const char *name;    /* "libpcre2-8" */
    const char *what;    /* what it is needed for */
    const char *package; /* the Debian 12 package that contains it */
    const char *file;    /* file name that it was loaded from; NULL: not installed on this machine, or not in this
                          * build */
    bool built;          /* this build of onx supports the library */
} onx_library_info;

/* The libraries one after the other, from index 0; false past the last one. Loads the library to find out whether it is
 * installed. Any thread may call it. */
ONX_API ONX_ANY_THREAD bool onx_library(uint32_t index, onx_library_info *out);

/* ---- views ---- */

/* A view of text or bytes that is owned elsewhere. It is not zero-terminated and may contain zero bytes. */
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

/* For printf: printf("%.*s", ONX_ARG(s)). Texts longer than INT_MAX are truncated. */
#define ONX_ARG(s) ((s).len > 0x7fffffff ? 0x7fffffff : (int)(s).len), ((s).ptr ? (s).ptr : "")

/* A string or bytes field of a message: an onx_str packed into eight bytes (docs/notes/bytes.md). Most of a model of a
 * million nodes is names, so the size of this type determines how much memory is touched. The low 48 bits are the
 * address, the high 16 bits the length. Length 0xffff means that the address is that of an onx_str in the arena. All
 * bits zero is the empty string. Read it with onx_view; make it with onx_arena_keep or onx_arena_refer. */
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

/* A place in the input. Several kinds of place may be known at once, for example a byte offset and a model path. */
typedef struct onx_where {
    onx_where_kind kind;
    uint64_t byte;         /* ONX_AT_BYTE: from the start of the input */
    uint32_t line, column; /* ONX_AT_TEXT: both from 1, columns in bytes */
    onx_str path;          /* graph.node[3] "conv1" (Conv) attribute pads; may be set together with any kind */
} onx_where;

typedef struct onx_diag {
    onx_severity severity;
    onx_status status; /* what kind of failure an error is; ONX_OK for warnings and notes */
    const char *rule;  /* id of the broken rule ("T-04") or NULL */
    onx_where where;
    onx_str message;  /* one sentence without a full stop and without the place */
    onx_str value;    /* offending value, or empty */
    onx_str expected; /* what was expected, or empty */
    onx_str hint;     /* advice, or empty */
    onx_str excerpt;  /* the line of text at `where`, for printing with a caret, or empty */
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
    uint32_t diagnostics; /* maximum number of diagnostics that are kept, and the first error even beyond it; others
                           * are only counted; default 1000 */
    uint64_t memory;      /* bytes of all arenas and values of the context, without mapped files; default 8 GiB */
} onx_limits;

#define ONX_DEPTH_MAX 2000u

/* `allocator` may be NULL: the allocator of the C library is used. Returns NULL when out of memory. */
ONX_API ONX_ANY_THREAD onx_ctx *onx_ctx_new(const onx_allocator *allocator);
/* Free everything that was made with the context first. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_ctx_free(onx_ctx *cx);
ONX_API ONX_OWN_THREAD onx_limits onx_ctx_limits(const onx_ctx *cx);
ONX_API ONX_OWN_THREAD void onx_ctx_set_limits(onx_ctx *cx, onx_limits limits);

/* Diagnostics in order of arrival. Each keeps its address until onx_diag_clear or onx_ctx_free. */
ONX_API ONX_OWN_THREAD size_t onx_diag_count(const onx_ctx *cx);
ONX_API ONX_OWN_THREAD const onx_diag *onx_diag_get(const onx_ctx *cx, size_t index);
/* Number of diagnostics of a severity that were reported, including those past the limit. */
ONX_API ONX_OWN_THREAD size_t onx_diag_total(const onx_ctx *cx, onx_severity severity);
ONX_API ONX_OWN_THREAD void onx_diag_clear(onx_ctx *cx);
/* Writes "where: severity: message, found ..., expected ... [rule]" and a hint line into `buf`, as snprintf does;
 * returns the length of the whole text. `buf` may be NULL, to get the length only. */
ONX_API ONX_ANY_THREAD size_t onx_diag_format(const onx_diag *diag, char *buf, size_t size);

/* Receives each diagnostic once, in order, on the thread that uses the context, and before the outermost call that
 * recorded it returns. Diagnostics past the limit are not passed on. `write` may read the diagnostics of the context,
 * and must not call any other function with the context. */
typedef struct onx_log {
    void (*write)(void *user, const onx_diag *diag);
    void *user;
} onx_log;
/* `log` may be NULL, which removes the log. */
ONX_API ONX_OWN_THREAD void onx_ctx_set_log(onx_ctx *cx, const onx_log *log);

/* ---- cancelling from another thread ---- */

/* Cancels the work that it was given to, from any thread: work with a context, runs, and the creation of sessions.
 * Their options point to it, and it must outlive them. */
typedef struct onx_cancel onx_cancel;
ONX_API ONX_OWN_THREAD onx_status onx_cancel_new(onx_ctx *cx, onx_cancel **out);
/* Everything that uses it must have ended. Its memory belongs to the context that it was made with. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_cancel_free(onx_cancel *cancel);
/* From now on, the work that it was given to fails with ONX_E_CANCELLED: work in progress soon, new work at once. */
ONX_API ONX_ANY_THREAD void onx_cancel_now(onx_cancel *cancel);
/* Resets it to the state that onx_cancel_new returns. */
ONX_API ONX_ANY_THREAD void onx_cancel_reset(onx_cancel *cancel);
ONX_API ONX_ANY_THREAD bool onx_cancel_is_set(const onx_cancel *cancel);
/* Cancels reading, writing, checking, inference, transforms and everything else that allocates memory of the context or
 * writes files with it. The library checks it whenever an arena grows and between pieces of files. A document whose
 * transform was cancelled can only be freed; files are not replaced. NULL: no cancelling. */
ONX_API ONX_OWN_THREAD void onx_ctx_set_cancel(onx_ctx *cx, const onx_cancel *cancel);

/* A 64-bit hash for hash tables whose keys come from files. It is keyed with a secret of the context, so that no file
 * can choose names that collide. `before` is the hash of the part of the key that precedes this text, 0 if there is
 * none. Each context has its own secret: output must not depend on hashes. */
ONX_API ONX_OWN_THREAD uint64_t onx_hash(const onx_ctx *cx, onx_str text, uint64_t before);

/* ---- arena: memory that is freed all at once ---- */

typedef struct onx_arena onx_arena;

ONX_API ONX_OWN_THREAD onx_status onx_arena_new(onx_ctx *cx, onx_arena **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_arena_free(onx_arena *arena);
/* Zeroed memory aligned to 8 bytes; NULL when out of memory or past the memory limit of the context. */
ONX_API ONX_OWN_THREAD void *onx_arena_alloc(onx_arena *arena, size_t size);
/* Moves all memory of `from` into `arena` and frees `from`; addresses remain valid. */
ONX_API ONX_OWN_THREAD void onx_arena_adopt(onx_arena *arena, onx_arena *from);
/* Bytes that the arena has allocated, including the unused ends of blocks. */
ONX_API ONX_OWN_THREAD size_t onx_arena_size(const onx_arena *arena);
/* Copies the bytes into the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_arena_keep(onx_arena *arena, onx_str bytes, onx_bytes *out);
/* Refers to the bytes without copying them; they must outlive everything that uses the arena. */
ONX_API ONX_OWN_THREAD onx_status onx_arena_refer(onx_arena *arena, onx_str bytes, onx_bytes *out);

/* ---- members that all messages share (onx/ir.h) ---- */

/* One field that the field tables do not know: its bytes as they were read, tag included. */
typedef struct onx_unknown {
    struct onx_unknown *next;
    uint32_t number; /* field number */
    onx_bytes bytes;
} onx_unknown;

typedef struct onx_extra {
    onx_unknown *unknown; /* in order of appearance */
    onx_unknown *unknown_last;
} onx_extra;

/* The first members of every message; `second` is a member that fills the gap. */
#define ONX_MESSAGE_HEAD(second)                                                                                       \
    uint32_t has;                                                                                                      \
    second;                                                                                                            \
    onx_extra *extra

typedef struct onx_message {
    ONX_MESSAGE_HEAD(uint32_t reserved);
} onx_message;

/* ---- element types ---- */

/* Maximum rank of a tensor. */
#define ONX_RANK_MAX 64u

typedef enum onx_dtype {
    ONX_UNDEFINED = 0,
#define DTYPE(name, number, bits, class, text, ir, field, entry, mantissa, bias, values, numpy) ONX_##name = number,
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

/* Any integer may be passed. A value that is no element type has width 0, class NONE, name NULL and IR version 0. */
ONX_API ONX_ANY_THREAD const char *onx_dtype_name(int64_t dtype); /* "float16" */
ONX_API ONX_ANY_THREAD unsigned onx_dtype_bits(int64_t dtype);    /* 0 also for STRING */
/* The name of the type in NumPy, or in the package ml_dtypes where NumPy lacks it: "float32", "float8_e4m3fn". */
ONX_API ONX_ANY_THREAD const char *onx_dtype_numpy_name(int64_t dtype);
ONX_API ONX_ANY_THREAD onx_dtype_class onx_dtype_class_of(int64_t dtype);
ONX_API ONX_ANY_THREAD int onx_dtype_ir_version(int64_t dtype); /* the IR version that introduced it */
/* The type with that text name, ONX_UNDEFINED when there is none. */
ONX_API ONX_ANY_THREAD onx_dtype onx_dtype_find(onx_str name);
/* Size in bytes of `count` elements; types below 8 bits are packed: the size is rounded up to whole bytes. False on
 * overflow and for STRING. */
ONX_API ONX_ANY_THREAD bool onx_dtype_size(int64_t dtype, uint64_t count, uint64_t *bytes_out);

#ifdef __cplusplus
}
#endif
#endif
