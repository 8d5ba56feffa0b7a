/* proto_text.h - what the readers and writers of protobuf text and of JSON share. */
#ifndef ONXI_PROTO_TEXT_H
#define ONXI_PROTO_TEXT_H

#include <onx/io.h>

#include "ir/ir.h"

/* Unknown length-delimited fields are shown as messages down to this depth, as protoc does. */
#define ONXI_UNKNOWN_DEPTH 10u

/* ---- writing: a buffer before the sink; the first failure sticks ---- */

typedef struct onxi_text_out {
    onx_ctx *cx;
    onx_sink sink;
    onx_status status; /* of the first failure; nothing is sent after it */
    uint64_t odd_nans; /* NaNs with a sign or payload, which no text keeps */
    size_t used;
    char buffer[32768];
} onxi_text_out;

void onxi_text_start(onxi_text_out *out, onx_ctx *cx, onx_sink sink);
void onxi_text_flush(onxi_text_out *out);
/* Sends the rest, warns of what the text does not keep, and says how the writing went. */
onx_status onxi_text_finish(onxi_text_out *out);

/* Space for `need` more bytes, far less than the buffer; the caller adds to `used` what it wrote. */
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
/* For literals. */
#define ONXI_TEXT_PUT(out, literal) onxi_text_put((out), "" literal, sizeof(literal) - 1)

void onxi_text_indent(onxi_text_out *out, uint32_t level);
void onxi_text_put_u64(onxi_text_out *out, uint64_t value);
void onxi_text_put_i64(onxi_text_out *out, int64_t value);

/* The value as protobuf's text format has it; returns the length. */
size_t onxi_text_print_float(char buf[32], double value, bool is_double);

/* What is written for one byte. Tables of 256 are made of rows of eight. */
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
/* The rows that all formats share: letters and signs that stand for themselves but for quotes, and the backslash. */
#define ONXI_TEXT_LETTERS                                                                                              \
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x28), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x30), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x38),  \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x40), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x48),                                    \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x50), ONXI_TEXT_PLAIN('X'), ONXI_TEXT_PLAIN('Y'), ONXI_TEXT_PLAIN('Z'),        \
        ONXI_TEXT_PLAIN('['), ONXI_TEXT_SHORT('\\'), ONXI_TEXT_PLAIN(']'), ONXI_TEXT_PLAIN('^'), ONXI_TEXT_PLAIN('_'), \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x60), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x68),                                    \
        ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x70), ONXI_TEXT_PLAIN('x'), ONXI_TEXT_PLAIN('y'), ONXI_TEXT_PLAIN('z'),        \
        ONXI_TEXT_PLAIN('{'), ONXI_TEXT_PLAIN('|'), ONXI_TEXT_PLAIN('}'), ONXI_TEXT_PLAIN('~')
void onxi_text_put_escaped(onxi_text_out *out, const onxi_text_escape *escapes, onx_str bytes);

/* The name of an enum value, NULL when it has none. */
const char *onxi_text_enum_name(const onxi_field *field, int32_t value);
/* An element of an integer or enum field that is not unsigned. */
int64_t onxi_text_load_int(const onxi_field *field, const void *value);

/* An element of a float or double field, aligned or not. */
double onxi_text_load_float(onxi_text_out *out, const onxi_field *field, const void *value);

/* How many values a field has, with the address of the first; a message that is NULL is none. */
uint64_t onxi_text_values(const onxi_message_table *table, const onxi_field *field, const void *message,
                          const char **values_out);
/* The child message number `index` among the values of a field. */
onx_visit onxi_text_visit(const onxi_field *field, const char *values, const onx_visit *parent, uint64_t index);

/* The path of a member of a message, or of the message when `field` is NULL; returns the length, below `size`. */
size_t onxi_text_path(const onx_visit *at, const char *field, char *buf, size_t size);
/* Refuses to go below the depth limit of the context. */
onx_status onxi_text_deeper(onx_ctx *cx, const onx_visit *at);
/* Records an error about the field of a message that is being written. */
onx_status onxi_text_model_fail(onx_ctx *cx, onx_status status, const onx_visit *at, const char *field,
                                const char *format, ...) ONX_PRINTF(5, 6);

/* ---- reading: a cursor over the text and the message under construction ---- */

typedef struct onxi_text_in {
    onx_ctx *cx;
    onx_arena *arena;
    onx_str text;
    const char *at, *end;
    const onx_visit *self; /* the message that is being read */
    const char *field;     /* its member that is being read, or NULL */
    char *scratch;         /* bytes of a string or an unknown field under construction */
    size_t scratch_used, scratch_size;
} onxi_text_in;

typedef onx_status (*onxi_text_reader)(onxi_text_in *in, const onxi_message_table *table, const onx_visit *root);
/* Makes a document of the kind and lets `read` fill its root. */
onx_status onxi_text_read(onx_ctx *cx, onx_kind kind, onx_str text, onxi_text_reader read, onx_doc **out);

/* Records an error at a place of the text, with its line, column and message path. `found` is looked up at the place
 * when its ptr is NULL, unless a limit is what failed; `expected` may be NULL. */
onx_status onxi_text_fail(onxi_text_in *in, onx_status status, const char *at, onx_str found, const char *expected,
                          const char *format, ...) ONX_PRINTF(6, 7);
/* The usual case: something else than what the format asks for. */
onx_status onxi_text_expected(onxi_text_in *in, const char *expected);

/* The field of that name; `camel` allows lowerCamelCase too. The search starts at *hint, since fields mostly come in
 * order. */
const onxi_field *onxi_text_find(const onxi_message_table *table, onx_str name, bool camel, uint32_t *hint);
/* Where the next value of the field goes: a new element of a list, or the member itself, which is then marked
 * present. A second value of a member or of a oneof is an error at `at`. */
onx_status onxi_text_slot(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                          const char *at, void **slot_out);
/* Stores an integer with its range checked; `magnitude_fits` is false when it is past 64 bits. */
onx_status onxi_text_store_int(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, bool negative,
                               uint64_t magnitude, bool magnitude_fits);
onx_status onxi_text_store_enum(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, onx_str name);
/* A new child message stored in the slot, and its frame; the depth is checked. */
onx_status onxi_text_enter(onxi_text_in *in, const onxi_field *field, void *slot, uint32_t index, onx_visit *frame_out);
/* Digits of a base (8, 10, 16) to a number; false when past 64 bits. */
bool onxi_text_digits(onx_str digits, unsigned base, uint64_t *out);
/* The value of a hexadecimal digit, or -1. */
int onxi_text_hex(char c);
/* Writes a code point as UTF-8 (3 bytes for a lone surrogate); returns the length, up to 4. */
size_t onxi_text_utf8(uint32_t code, char out[4]);
/* The element index of the slot that onxi_text_slot gave last for a repeated field; 0 for others. */
uint32_t onxi_text_index(const onxi_message_table *table, const onxi_field *field, const void *message);

/* ---- JSON ---- */

/* The next character that is no space, 0 at the end. */
char onxi_json_peek(onxi_text_in *in);
/* Whether that is `c`, which is passed then. */
bool onxi_json_take(onxi_text_in *in, char c);
/* Whether the word is here, which is passed then. */
bool onxi_json_take_word(onxi_text_in *in, const char *word);
/* The text of a string: in the input when it has no escapes and `borrow`, else in the arena. */
onx_status onxi_json_take_string(onxi_text_in *in, bool borrow, onx_str *out);
/* The length of the JSON number at the start of `text`, 0 when there is none; *fractional: it has a point or exponent.
 */
size_t onxi_json_number_length(onx_str text, bool *fractional);

#endif
