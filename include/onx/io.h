/* io.h - reading and writing documents: bytes in memory, files, every format, external data. */
#ifndef ONX_IO_H
#define ONX_IO_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- binary, in memory ---- */

enum {
    ONX_READ_COPY = 1, /* copy strings and payloads, so that the input may be freed */
    /* for damaged files: a known field with an impossible wire type is kept as an unknown field, with a warning */
    ONX_READ_LENIENT = 2,
    /* onx_load only: external data may be reached through links, as with onx_doc_allow_links */
    ONX_READ_LINKS = 4,
    /* onx_load and onx_load_bytes_as only: read a FIFO to its end like standard input, however long its writer takes;
     * such a document has no folder for external data */
    ONX_READ_STREAM = 8
};

/* Reads one binary message of the kind. Without ONX_READ_COPY the bytes must outlive the document: strings, raw data
 * and packed floats point into them. `threads` is the number of threads that decode; below 2, no thread is created. The
 * result does not depend on it. On failure *out is NULL and a diagnostic names the byte offset and the message. */
ONX_API ONX_OWN_THREAD onx_status onx_read(onx_ctx *cx, onx_kind kind, onx_str bytes, uint32_t flags, unsigned threads,
                                           onx_doc **out);

/* Bytes that the library allocated; free them with onx_buffer_free. */
typedef struct onx_buffer {
    char *ptr;
    size_t len;
    void *base; /* what is freed */
    size_t base_size;
    onx_ctx *cx;
} onx_buffer;
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_buffer_free(onx_buffer *buffer);

/* Receives streamed output. A status other than ONX_OK stops the writing and is returned to the caller. */
typedef struct onx_sink {
    onx_status (*write)(void *user, onx_str bytes);
    void *user;
} onx_sink;

/* Writes a message in canonical form: fields in number order, shortest varints, packed as proto2 declares, unknown
 * fields last. The bytes are those that the reference implementation writes. `expected` is the likely size in bytes
 * (onx_doc_input_size), 0 when unknown. */
ONX_API ONX_OWN_THREAD onx_status onx_write(onx_ctx *cx, onx_kind kind, const void *message, size_t expected,
                                            onx_buffer *out);
/* The same without holding the output in memory: payloads go directly from their place to the sink. */
ONX_API ONX_OWN_THREAD onx_status onx_write_to(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);

/* ---- protobuf text and JSON ---- */

ONX_API ONX_OWN_THREAD onx_status onx_textproto_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
ONX_API ONX_OWN_THREAD onx_status onx_textproto_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);
/* proto3 JSON mapping with the field names of the .proto. Reading accepts lowerCamelCase names too. */
ONX_API ONX_OWN_THREAD onx_status onx_json_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
ONX_API ONX_OWN_THREAD onx_status onx_json_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);

/* ---- files ---- */

typedef enum onx_format {
    ONX_FORMAT_AUTO, /* when writing: by extension; when reading: by extension and content */
    ONX_FORMAT_BINARY,
    ONX_FORMAT_ONNXTXT,
    ONX_FORMAT_TEXTPROTO,
    ONX_FORMAT_JSON
} onx_format;

/* By extension: .onnx .pb binary, .onnxtxt ONNX text, .textproto .pbtxt .prototxt protobuf text, .json JSON; AUTO
 * otherwise. */
ONX_API ONX_ANY_THREAD onx_format onx_format_of_path(const char *path);
/* The kind of a binary message, guessed from its first fields: a model, a graph, a tensor or an operator set;
 * ONX_KIND_NONE if they do not show it. */
ONX_API ONX_ANY_THREAD onx_kind onx_kind_guess(onx_str bytes);

typedef struct onx_load_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_format format;
    uint32_t flags;       /* ONX_READ_* */
    unsigned threads;     /* threads that decode; 0 or 1: none are created */
    const char *base_dir; /* folder of external data; NULL: the folder of the file, none for standard input */
} onx_load_options;

/* Reads a file of any format; "-" is standard input. Unless the options give the format, name and content have to agree
 * on it. Files are mapped into memory: if another process truncates the file meanwhile, access to the missing part
 * raises SIGBUS, as with every mapping. With ONX_READ_COPY the file is read into memory once instead. Data files of
 * external tensors are always mapped. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_load(onx_ctx *cx, onx_kind kind, const char *path,
                                           const onx_load_options *options, onx_doc **out);

typedef struct onx_external_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    const char *location; /* name of the data file relative to the model's folder; NULL: weights stay in the model */
    uint64_t threshold;   /* tensors of at least this many bytes become external; 0: 1024. Tensors that are external
                           * already are always moved */
    uint64_t alignment;   /* alignment of each tensor's offset in bytes, a power of two up to 65536; 0: 4096 */
    uint64_t split;       /* start a new file (name.1, name.2, ...) before one would exceed this many bytes; 0: never */
    bool file_per_tensor; /* one file per tensor; `location` is a folder when it ends with /, else a prefix */
    bool checksum;        /* record the SHA-1 of each file */
    bool inline_all;      /* move external data into the model */
} onx_external_options;

typedef struct onx_save_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_format format;
    const onx_external_options *external; /* NULL: external data and the references to it stay as they are */
} onx_save_options;

/* Writes to a temporary file in the same folder, syncs it and renames it, so that the old file stays complete until the
 * new one is. "-" is standard output. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_save(onx_ctx *cx, const onx_doc *doc, const char *path,
                                           const onx_save_options *options);

/* Until the context is freed, no output of it replaces a file that was read with the context, a file that a living
 * document refers to or was read from, or another output. Such an attempt fails with ONX_E_MISUSE and changes nothing.
 * Files are identified by device and inode, not by name. Only onx_save may replace the file that its document was read
 * from. Without this call, only onx_save refuses such outputs, and only for the files of its own document. */
ONX_API ONX_OWN_THREAD onx_status onx_ctx_guard_files(onx_ctx *cx);
/* In a guarded context: checks early, before long work, whether a file may be written at `path`, and reserves the path
 * for the output that uses the same spelling. `in_place`: the output may replace an input. */
ONX_API ONX_OWN_THREAD onx_status onx_output_claim(onx_ctx *cx, const char *path, bool in_place);
/* In a guarded context: allows one more output to replace what was written to `path` (same spelling), for example the
 * progress of long work. */
ONX_API ONX_OWN_THREAD onx_status onx_output_again(onx_ctx *cx, const char *path);

/* Files are complete before they get their names. For a moment, or all the time on file systems without nameless files,
 * a file has a temporary name: unlinkat(dir, name, 0) removes it. A program that a signal may end keeps a list of these
 * names and removes the files then. `made` is called before the name exists, `gone` after it was removed; in between
 * the strings are valid and `dir` is open. */
typedef struct onx_temp_watch {
    void (*made)(void *user, int dir, const char *name);
    void (*gone)(void *user, int dir, const char *name);
    void *user;
} onx_temp_watch;
/* `watch` may be NULL, which ends the watching. */
ONX_API ONX_OWN_THREAD void onx_ctx_watch_temps(onx_ctx *cx, const onx_temp_watch *watch);

/* Reads the bytes of a regular file ("-": of standard input), up to the memory limit of the context. */
ONX_API ONX_OWN_THREAD onx_status onx_load_bytes(onx_ctx *cx, const char *path, onx_buffer *out);
/* The same with `flags`: ONX_READ_STREAM or 0. */
ONX_API ONX_OWN_THREAD onx_status onx_load_bytes_as(onx_ctx *cx, const char *path, uint32_t flags, onx_buffer *out);
/* Writes any bytes, as safely as onx_save does. */
ONX_API ONX_OWN_THREAD onx_status onx_save_bytes(onx_ctx *cx, const char *path, onx_str bytes);

/* ---- external data ---- */

/* The folder that contains the external data of the document, or NULL. */
ONX_API ONX_ANY_THREAD const char *onx_doc_base_dir(const onx_doc *doc);
/* `dir` may be NULL: there is none. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_set_base_dir(onx_doc *doc, const char *dir);
/* Access to external data through a symbolic link, or to a file with several hard links, is refused, because an
 * untrusted model could reach any file that way. Model caches consist of such links: allow them for folders that you
 * trust. Names in the model must still be relative and without "..". Files that are open already are not affected. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_allow_links(onx_doc *doc, bool allowed);
/* Whether data_location is EXTERNAL. */
ONX_API ONX_ANY_THREAD bool onx_tensor_is_external(const onx_tensor *tensor);
/* The bytes of an external tensor, mapped on first use and kept until the document is freed. Path, offset and length
 * are checked against the rules of ExternalData.md, the file and the shape. */
ONX_API ONX_OWN_THREAD onx_status onx_external_bytes(onx_doc *doc, const onx_tensor *tensor, onx_str *out);
/* Verifies the SHA-1 checksums that external tensors of the document give; each file is read once. */
ONX_API ONX_OWN_THREAD onx_status onx_external_verify(onx_doc *doc);

#ifdef __cplusplus
}
#endif
#endif
