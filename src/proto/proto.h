/* proto.h - the bytes of ONNX files: binary, protobuf text and JSON formats, external data. The public interface is
 * onx/io.h. */
#ifndef ONXI_PROTO_H
#define ONXI_PROTO_H

#include <onx/io.h>

#include "base/base.h"
#include "ir/ir.h"
#include "wire/wire.h"

/* Transfers ownership of the file to the document, whose strings and payloads point into its bytes. */
onx_status onxi_doc_keep_input(onx_doc *doc, onxi_file *file);
/* Registers the files that the document comes from and refers to as inputs with the guard of the context, while the
 * document lives. */
onx_status onxi_doc_guard(onx_doc *doc);
/* The number of bytes at the start of `bytes` that are in a hole of one of the document's files. */
size_t onxi_doc_hole(onx_doc *doc, onx_str bytes);
/* Advises the system that the whole input will be read sequentially. */
void onxi_doc_read_ahead(onx_doc *doc);
/* Drops the memory of bytes of the input or of external data that have been read; later accesses read them again. */
void onxi_doc_forget(onx_doc *doc, onx_str bytes);

/* ---- JSON of any kind (proto_json_value.c) ---- */

typedef enum onxi_json_kind {
    ONXI_JSON_NULL, /* also stands for a missing value */
    ONXI_JSON_BOOL,
    ONXI_JSON_NUMBER,
    ONXI_JSON_TEXT,
    ONXI_JSON_LIST,
    ONXI_JSON_OBJECT
} onxi_json_kind;

typedef struct onxi_json {
    uint8_t kind;
    bool truth;
    uint32_t count; /* number of members of a list or object */
    double number;
    onx_str text;
    struct onxi_json_member *members; /* in text order; members of a list have empty names */
} onxi_json;
typedef struct onxi_json_member {
    onx_str name;
    onxi_json value;
} onxi_json_member;

/* Parses a value; its strings point into `text` or the arena. The context's depth limit bounds the nesting. */
onx_status onxi_json_value_read(onx_ctx *cx, onx_arena *arena, onx_str text, onxi_json *out);
/* The member of an object with that name, the last one if there are several; a member of kind NULL if there is none or
 * `of` is not an object. Takes time linear in the number of members. */
const onxi_json *onxi_json_get(const onxi_json *of, const char *name);
/* The value of the member, or `otherwise` if it is of another kind. */
bool onxi_json_truth(const onxi_json *of, const char *name, bool fallback);
onx_str onxi_json_text(const onxi_json *of, const char *name);
double onxi_json_number(const onxi_json *of, const char *name, double fallback);
/* An integer of at most 53 bits; false for other values. */
bool onxi_json_integer(const onxi_json *value, int64_t *out);
/* Decodes base64, standard or URL-safe, padded or not; the pointer is NULL if the text is invalid. */
onx_status onxi_json_base64(onx_arena *arena, onx_str text, onx_str *out);

/* Opens the data file at the location below the folder `dir`, which is that of the document: links are refused unless
 * the document allows them, or the file is in the store of a model cache that the document's own file is in. */
onx_status onxi_external_open(const onx_doc *doc, int dir, onx_where where, onx_str location, int *fd, uint64_t *size);

#endif
