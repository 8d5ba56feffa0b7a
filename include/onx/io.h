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
    /* for damaged files: known fields with an impossible wire type are kept as unknown, with a warning */
    ONX_READ_LENIENT = 2,
    /* onx_load only: external data may be reached through links, as onx_doc_allow_links says */
    ONX_READ_LINKS = 4,
    /* onx_load and onx_load_bytes_as only: a FIFO is read to its end as standard input is, however long its writer
     * takes; such a document has no folder for external data */
    ONX_READ_STREAM = 8
};

/* Reads one binary message of the kind. Without ONX_READ_COPY the bytes must outlive the document: strings, raw
 * data and packed floats point into them. `threads` below 2 means none are made; the result is the same. On
 * failure *out is NULL and a diagnostic says at which byte and in which message. */
ONX_API ONX_OWN_THREAD onx_status onx_read(onx_ctx *cx, onx_kind kind, onx_str bytes, uint32_t flags, unsigned threads,
                                           onx_doc **out);

/* Bytes made by the library; free with onx_buffer_free. */
typedef struct onx_buffer {
    char *ptr;
    size_t len;
    void *base; /* what is freed */
    size_t base_size;
    onx_ctx *cx;
} onx_buffer;
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_buffer_free(onx_buffer *buffer);

/* Where streamed output goes; a status other than ONX_OK ends the writing and is passed on. */
typedef struct onx_sink {
    onx_status (*write)(void *user, onx_str bytes);
    void *user;
} onx_sink;

/* Writes a message in canonical form: fields in number order, shortest varints, packed as proto2 declares, unknown
 * fields last: byte for byte what the reference writes. `expected` is the likely size (onx_doc_input_size), 0 when
 * unknown. */
ONX_API ONX_OWN_THREAD onx_status onx_write(onx_ctx *cx, onx_kind kind, const void *message, size_t expected,
                                            onx_buffer *out);
/* The same without ever holding the output: payloads go from where they are to the sink. */
ONX_API ONX_OWN_THREAD onx_status onx_write_to(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);

/* ---- protobuf text and JSON ---- */

ONX_API ONX_OWN_THREAD onx_status onx_textproto_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
ONX_API ONX_OWN_THREAD onx_status onx_textproto_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);
/* proto3 JSON mapping with the field names of the .proto. Reading accepts lowerCamelCase names too. */
ONX_API ONX_OWN_THREAD onx_status onx_json_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
ONX_API ONX_OWN_THREAD onx_status onx_json_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);

/* ---- files ---- */

typedef enum onx_format {
    ONX_FORMAT_AUTO, /* by extension when writing; by extension and content when reading */
    ONX_FORMAT_BINARY,
    ONX_FORMAT_ONNXTXT,
    ONX_FORMAT_TEXTPROTO,
    ONX_FORMAT_JSON
} onx_format;

/* By extension: .onnx .pb binary, .onnxtxt ONNX text, .textproto .pbtxt .prototxt protobuf text, .json JSON; AUTO
 * otherwise. */
ONX_API ONX_ANY_THREAD onx_format onx_format_of_path(const char *path);
/* The kind that a binary message seems to be by its first fields: a model, a graph, a tensor or an operator set;
 * ONX_KIND_NONE when nothing shows. */
ONX_API ONX_ANY_THREAD onx_kind onx_kind_guess(onx_str bytes);

typedef struct onx_load_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_format format;
    uint32_t flags;       /* ONX_READ_* */
    unsigned threads;     /* for decoding; 0 or 1: none are made */
    const char *base_dir; /* where external data is looked for; NULL: the folder of the file, none for standard input */
} onx_load_options;

/* Reads a file of any format; "-" is standard input. Name and content have to agree on the format where the options do
 * not give it. Files are mapped, not read: should another process cut the file short meanwhile, touching what is gone
 * raises SIGBUS, as with every mapping; with ONX_READ_COPY the file is read into memory once instead. Data files of
 * external tensors are always mapped. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_load(onx_ctx *cx, onx_kind kind, const char *path,
                                           const onx_load_options *options, onx_doc **out);

typedef struct onx_external_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    const char *location; /* name of the data file relative to the model's folder; NULL: weights stay inside */
    uint64_t threshold;   /* tensors of at least this size in bytes move out; 0: 1024. External ones move in any case */
    uint64_t alignment;   /* of each tensor's offset, a power of two up to 65536; 0: 4096 */
    uint64_t split;       /* start a new file (name.1, name.2, ...) before one would exceed this size; 0: never */
    bool file_per_tensor; /* one file per tensor; `location` is a folder when it ends with /, else a prefix */
    bool checksum;        /* record the SHA-1 of each file */
    bool inline_all;      /* bring external data into the model */
} onx_external_options;

typedef struct onx_save_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_format format;
    const onx_external_options *external; /* NULL: external data stays as it is, references are kept */
} onx_save_options;

/* Writes to a temporary file in the same folder, syncs and renames, so the old file stays whole until the new one
 * is. "-" is standard output. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_save(onx_ctx *cx, const onx_doc *doc, const char *path,
                                           const onx_save_options *options);

/* Until the context is freed, no output of it replaces a file that was read with it, that a living document refers to
 * or was read from, or another output: that fails with ONX_E_MISUSE and changes nothing. Files are told by device and
 * inode, not by name. Only onx_save may replace the very file that its document was read from. Without this call
 * onx_save alone refuses such outputs, among the files of that one document. */
ONX_API ONX_OWN_THREAD onx_status onx_ctx_guard_files(onx_ctx *cx);
/* In a guarded context: says early whether a file may be written at that path, and keeps it for the output of the same
 * spelling, before the work that leads to it is done. `in_place`: it may replace an input. */
ONX_API ONX_OWN_THREAD onx_status onx_output_claim(onx_ctx *cx, const char *path, bool in_place);
/* In a guarded context: what has been written to that path, in this spelling, may be replaced by one more output of it,
 * as the progress of long work is. */
ONX_API ONX_OWN_THREAD onx_status onx_output_again(onx_ctx *cx, const char *path);

/* Files are complete before they get their names. For a moment, or all the time where a file system has no nameless
 * files, a file is then under a temporary name: unlinkat(dir, name, 0) removes it. A program that a signal may end
 * keeps a list of these and does that. `made` is called before the name is there, `gone` after it is gone; the strings
 * are valid and `dir` is open in between. */
typedef struct onx_temp_watch {
    void (*made)(void *user, int dir, const char *name);
    void (*gone)(void *user, int dir, const char *name);
    void *user;
} onx_temp_watch;
/* `watch` may be NULL, which ends it. */
ONX_API ONX_OWN_THREAD void onx_ctx_watch_temps(onx_ctx *cx, const onx_temp_watch *watch);

/* The bytes of a regular file ("-": of standard input), as many as the memory limit of the context allows. */
ONX_API ONX_OWN_THREAD onx_status onx_load_bytes(onx_ctx *cx, const char *path, onx_buffer *out);
/* The same with ONX_READ_STREAM, or 0, as `flags`. */
ONX_API ONX_OWN_THREAD onx_status onx_load_bytes_as(onx_ctx *cx, const char *path, uint32_t flags, onx_buffer *out);
/* Writes any bytes the same safe way. */
ONX_API ONX_OWN_THREAD onx_status onx_save_bytes(onx_ctx *cx, const char *path, onx_str bytes);

/* ---- external data ---- */

/* The folder that external data of the document is looked for in, or NULL. */
ONX_API ONX_ANY_THREAD const char *onx_doc_base_dir(const onx_doc *doc);
/* `dir` may be NULL: there is none. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_set_base_dir(onx_doc *doc, const char *dir);
/* External data is refused where a symbolic link leads to it or the file has several hard links: an untrusted model
 * could reach any file so. Caches of models are made of such links. Allow them for folders that are trusted;
 * names in the model stay what they have to be, relative and without "..". Has no effect on files that are open
 * already. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_allow_links(onx_doc *doc, bool allowed);
/* Is data_location EXTERNAL? */
ONX_API ONX_ANY_THREAD bool onx_tensor_is_external(const onx_tensor *tensor);
/* The bytes of an external tensor, mapped on first use and kept until the document is freed. Path, offset and length
 * are checked against ExternalData.md, the file and the shape. */
ONX_API ONX_OWN_THREAD onx_status onx_external_bytes(onx_doc *doc, const onx_tensor *tensor, onx_str *out);
/* Verifies the SHA-1 checksums that external tensors of the document give; each file is read once. */
ONX_API ONX_OWN_THREAD onx_status onx_external_verify(onx_doc *doc);

#ifdef __cplusplus
}
#endif
#endif
