/* proto_text.h - shared by the readers and writers of protobuf text and JSON. */
#ifndef ONXI_PROTO_TEXT_H
#define ONXI_PROTO_TEXT_H

#include <onx/io.h>

#include "ir/ir.h"

/* Unknown length-delimited fields are printed as messages down to this depth, like protoc does. */
#define ONXI_UNKNOWN_DEPTH 10u

/* ---- writing: buffered output to the sink; after the first failure nothing is sent ---- */

typedef struct onxi_text_out {
    onx_ctx *cx;
    onx_sink sink;
    onx_status status; /* of the first failure; nothing is sent after it */
    uint64_t odd_nans; /* NaNs with a sign or payload, which the text cannot represent */
    size_t used;
    char buffer[32768];
} onxi_text_out;

void onxi_text_start(onxi_text_out *out, onx_ctx *cx, onx_sink sink);
void onxi_text_flush(onxi_text_out *out);
/* Flushes the buffer, warns about values that the text cannot represent, and returns the status. */
onx_status onxi_text_finish(onxi_text_out *out);

/* Reserves `need` bytes, far fewer than the buffer has; the caller adds the number of bytes written to `used`. */
static inline char *onxi_text_room(onxi_text_out *out, size_t need)
{
    if (sizeof out->buffer - out->used < need)
        onxi_text_flush(out);
    return out->buffer + out->used;
}

static inline void onxi_text_put(onxi_text_out *out, const char *text, size_t len)
{
    memcpy(onxi_text_room(out, len), text, len);
    out->used += len;
}
/* For string literals. */
#define ONXI_TEXT_PUT(out, literal) onxi_text_put((out), "" literal, sizeof(literal) - 1)

void onxi_text_indent(onxi_text_out *out, uint32_t level);
void onxi_text_put_u64(onxi_text_out *out, uint64_t value);
void onxi_text_put_i64(onxi_text_out *out, int64_t value);

/* Formats the value as in protobuf's text format; returns the length. */
size_t onxi_text_print_float(char buf[32], double value, bool is_double);

/* The output for one byte. Tables of 256 entries consist of rows of eight. */
typedef struct onxi_text_escape {
    char text[6];
    uint8_t len;
} onxi_text_escape;
#define ONXI_TEXT_PLAIN(c)                                                                                             \
    {                                                                                                                  \
        { (char)(c) }, 1                                                                                               \
    }
#define ONXI_TEXT_SHORT(c)                                                                                             \
    {                                                                                                                  \
        { '\\', (c) }, 2                                                                                               \
    }
#define ONXI_TEXT_ROW(M, c) M(c), M((c) + 1), M((c) + 2), M((c) + 3), M((c) + 4), M((c) + 5), M((c) + 6), M((c) + 7)
/* The rows that all formats share: letters and signs are written unchanged, except quotes and the backslash. */
#define ONXI_TEXT_LETTERS                                                                                              \
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x28), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x30), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x38),  \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x40), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x48),                                    \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x50), ONXI_TEXT_PLAIN('X'), ONXI_TEXT_PLAIN('Y'), ONXI_TEXT_PLAIN('Z'),        \
        ONXI_TEXT_PLAIN('['), ONXI_TEXT_SHORT('\\'), ONXI_TEXT_PLAIN(']'), ONXI_TEXT_PLAIN('^'), ONXI_TEXT_PLAIN('_'), \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x60), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x68),                                    \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x70), ONXI_TEXT_PLAIN('x'), ONXI_TEXT_PLAIN('y'), ONXI_TEXT_PLAIN('z'),        \
        ONXI_TEXT_PLAIN('{'), ONXI_TEXT_PLAIN('|'), ONXI_TEXT_PLAIN('}'), ONXI_TEXT_PLAIN('~')
void onxi_text_put_escaped(onxi_text_out *out, const onxi_text_escape *escapes, onx_str bytes);

/* The name of an enum value, NULL if unknown. */
const char *onxi_text_enum_name(const onxi_field *field, int32_t value);
/* Writes an element of a signed integer or enum field. */
int64_t onxi_text_load_int(const onxi_field *field, const void *value);

/* Writes an element of a float or double field, which may be unaligned. */
double onxi_text_load_float(onxi_text_out *out, const onxi_field *field, const void *value);

/* The number of values of a field, and the address of the first; a NULL message pointer counts as absent. */
uint64_t onxi_text_values(const onxi_message_table *table, const onxi_field *field, const void *message,
                          const char **values_out);
/* The child message with that index in a field. */
onx_visit onxi_text_visit(const onxi_field *field, const char *values, const onx_visit *parent, uint64_t index);

/* Formats the path of a field of a message, or of the message if `field` is NULL; returns the length, less than
 * `size`. */
size_t onxi_text_path(const onx_visit *at, const char *field, char *buf, size_t size);
/* Returns an error if the depth limit of the context is exceeded. */
onx_status onxi_text_deeper(onx_ctx *cx, const onx_visit *at);
/* Records an error about a field of the message that is being written. */
onx_status onxi_text_model_fail(onx_ctx *cx, onx_status status, const onx_visit *at, const char *field,
                                const char *format, ...) ONX_PRINTF(5, 6);

/* ---- reading: a cursor over the text and the message under construction ---- */

typedef struct onxi_text_in {
    onx_ctx *cx;
    onx_arena *arena;
    onx_str text;
    const char *at, *end;
    const onx_visit *self; /* the message that is being read */
    const char *field;     /* its field that is being read, or NULL */
    char *scratch;         /* decoded bytes of the current string or unknown field */
    size_t scratch_used, scratch_size;
} onxi_text_in;

typedef onx_status (*onxi_text_reader)(onxi_text_in *in, const onxi_message_table *table, const onx_visit *root);
/* Creates a document of that kind and calls `read` to fill its root. */
onx_status onxi_text_read(onx_ctx *cx, onx_kind kind, onx_str text, onxi_text_reader read, onx_doc **out);

/* Records an error at a position of the text, with its line, column and message path. If `found.ptr` is NULL, the token
 * at the position is quoted, except for limit errors; `expected` may be NULL. */
onx_status onxi_text_fail(onxi_text_in *in, onx_status status, const char *at, onx_str found, const char *expected,
                          const char *format, ...) ONX_PRINTF(6, 7);
/* The usual syntax error: something other than `expected` was found. */
onx_status onxi_text_expected(onxi_text_in *in, const char *expected);

/* The field of that name; `camel` allows lowerCamelCase too. The search starts at *hint, because fields are mostly in
 * order. */
const onxi_field *onxi_text_find(const onxi_message_table *table, onx_str name, bool camel, uint32_t *hint);
/* The address for the next value of the field: a new element of a list, or a singular field, which is marked as
 * present. A second value for a singular field or a oneof is an error at `at`. */
onx_status onxi_text_slot(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                          const char *at, void **slot_out);
/* Stores an integer after checking its range; `magnitude_fits` is false if it exceeds 64 bits. */
onx_status onxi_text_store_int(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, bool negative,
                               uint64_t magnitude, bool magnitude_fits);
onx_status onxi_text_store_enum(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, onx_str name);
/* Creates a child message in the slot, and its frame; checks the depth limit. */
onx_status onxi_text_enter(onxi_text_in *in, const onxi_field *field, void *slot, uint32_t index, onx_visit *frame_out);
/* Parses digits of base 8, 10 or 16; false if the number exceeds 64 bits. */
bool onxi_text_digits(onx_str digits, unsigned base, uint64_t *out);
/* The value of a hexadecimal digit, or -1. */
int onxi_text_hex(char c);
/* Encodes a code point as UTF-8 (3 bytes for a lone surrogate); returns the length, up to 4. */
size_t onxi_text_utf8(uint32_t code, char out[4]);
/* The index of the element that the last onxi_text_slot returned for a repeated field; 0 for other fields. */
uint32_t onxi_text_index(const onxi_message_table *table, const onxi_field *field, const void *message);

/* ---- JSON ---- */

/* The next character that is not white space, 0 at the end. */
char onxi_json_peek(onxi_text_in *in);
/* Skips `c` if it is the next character; returns whether it was. */
bool onxi_json_take(onxi_text_in *in, char c);
/* Skips the word if it is next; returns whether it was. */
bool onxi_json_take_word(onxi_text_in *in, const char *word);
/* The contents of a string: in the input if it has no escapes and `borrow` is set, else in the arena. */
onx_status onxi_json_take_string(onxi_text_in *in, bool borrow, onx_str *out);
/* The length of the JSON number at the start of `text`, 0 if there is none; *fractional: it has a point or exponent. */
size_t onxi_json_number_length(onx_str text, bool *fractional);

#endif
