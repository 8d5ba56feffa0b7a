/* proto.h - bytes of ONNX files: binary, protobuf text and JSON, external data. The public face is onx/io.h. */
#ifndef ONXI_PROTO_H
#define ONXI_PROTO_H

#include <onx/io.h>

#include "base/base.h"
#include "ir/ir.h"
#include "wire/wire.h"

/* The document owns the file from here on; its bytes are what the document borrows from. */
onx_status onxi_doc_keep_input(onx_doc *doc, onxi_file *file);
/* The files that the document comes from and refers to are inputs for the guard of the context, as long as it lives. */
onx_status onxi_doc_guard(onx_doc *doc);
/* How many of these bytes, from the first on, are in a hole of one of the document's files. */
size_t onxi_doc_hole(onx_doc *doc, onx_str bytes);
/* The input is about to be read through as a whole. */
void onxi_doc_read_ahead(onx_doc *doc);
/* Gives back the memory of bytes of the input or of external data that were read through; they can be read again. */
void onxi_doc_forget(onx_doc *doc, onx_str bytes);

/* ---- JSON of any kind (proto_json_value.c) ---- */

typedef enum onxi_json_kind {
    ONXI_JSON_NULL, /* also what is not there */
    ONXI_JSON_BOOL,
    ONXI_JSON_NUMBER,
    ONXI_JSON_TEXT,
    ONXI_JSON_LIST,
    ONXI_JSON_OBJECT
} onxi_json_kind;

typedef struct onxi_json {
    uint8_t kind;
    bool truth;
    uint32_t count; /* members of a list or object */
    double number;
    onx_str text;
    struct onxi_json_member *members; /* in the order of the text; names of lists are empty */
} onxi_json;
typedef struct onxi_json_member {
    onx_str name;
    onxi_json value;
} onxi_json_member;

/* Reads a value; texts are in `text` or the arena. Nesting is bounded by the context's limit. */
onx_status onxi_json_value_read(onx_ctx *cx, onx_arena *arena, onx_str text, onxi_json *out);
/* The member of an object, the last one of that name; one of kind NULL when there is none or `of` is no object. It
 * takes time in proportion to the members. */
const onxi_json *onxi_json_get(const onxi_json *of, const char *name);
/* What the member says, or `otherwise` when it is of another kind. */
bool onxi_json_truth(const onxi_json *of, const char *name, bool fallback);
onx_str onxi_json_text(const onxi_json *of, const char *name);
double onxi_json_number(const onxi_json *of, const char *name, double fallback);
/* An integer of at most 53 bits; false for anything else. */
bool onxi_json_integer(const onxi_json *value, int64_t *out);
/* Bytes in base64, standard or URL-safe, padded or not; without address when the text is none. */
onx_status onxi_json_base64(onx_arena *arena, onx_str text, onx_str *out);

#endif
