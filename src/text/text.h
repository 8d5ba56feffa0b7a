/* text.h - the internals of the ONNX text syntax: parser state, scanner, printer output. The grammar is in
 * docs/notes/text.md; each production is repeated above the function that parses it. */
#ifndef ONXI_TEXT_H
#define ONXI_TEXT_H

#include <onx/text.h>

#include "base/base.h"
#include "ir/ir.h"

/* ---- comments and layout that the formatter keeps (text_format.c) ---- */

typedef struct onxi_text_trivia onxi_text_trivia;

/* ---- positions of parts in a text (text_places.c) ---- */

/* A part is identified by an address: of a message, of a member, or of an element of a list of strings. */
typedef struct onxi_text_mark {
    const void *key;
    const char *at;
} onxi_text_mark;

typedef struct onxi_text_marks {
    onxi_text_mark *list;
    size_t count, room;
} onxi_text_marks;

/* ---- parser ---- */

/* The messages that a #@ comment can refer to: the last one of each kind that was completed, or is open. */
typedef enum onxi_text_target {
    ONXI_TARGET_MODEL,
    ONXI_TARGET_GRAPH,
    ONXI_TARGET_FUNCTION,
    ONXI_TARGET_NODE,
    ONXI_TARGET_INPUT,
    ONXI_TARGET_OUTPUT,
    ONXI_TARGET_VALUE_INFO,
    ONXI_TARGET_INITIALIZER,
    ONXI_TARGET_ATTRIBUTE_PROTO,
    ONXI_TARGET_ATTRIBUTE,
    ONXI_TARGET_TENSOR,
    ONXI_TARGET_TYPE,
    ONXI_TARGET_SHAPE,
    ONXI_TARGET_COUNT
} onxi_text_target;

typedef struct onxi_text_parser {
    onx_ctx *cx;
    onx_arena *arena;
    const char *begin, *at, *end;
    uint32_t flags;
    uint32_t depth, depth_limit; /* nesting of messages */
    uint32_t errors;
    bool fatal;        /* an error that ends parsing: out of memory, a limit, too many errors */
    onx_status status; /* of the first error */
    const char *place; /* start of line `line`: a cache for onxi_text_parse_where */
    uint32_t line;
    const char *seen;                /* comments before this position have been processed */
    const char *gap_begin, *gap_end; /* the last gap of more than one blank */
    uint64_t *stack;                 /* lists under construction: pointers and onx_bytes */
    size_t stack_count, stack_room;
    char *data; /* elements of the current tensor literal */
    size_t data_len, data_room;
    void *target[ONXI_TARGET_COUNT];
    onxi_text_trivia *trivia; /* NULL unless the formatter asks */
    onxi_text_marks *marks;   /* NULL unless places are asked for */
    bool mute;                /* the current text has no position of its own in the printed text */
    uint32_t inner;           /* number of open graphs in attributes */
    uint64_t patience;        /* total number of bytes that may still be skipped to recover from errors */
    bool unclosed;            /* a skipped string has no closing quote */
    bool hold;                /* #@ comments are queued in `waiting` until the current attribute has its value */
    onx_str *waiting;
    size_t waiting_count, waiting_room;
} onxi_text_parser;

/* text_scan.c */

enum { ONXI_CHAR_SPACE = 1, ONXI_CHAR_LETTER = 2, ONXI_CHAR_DIGIT = 4 };
extern const uint8_t onxi_text_char_class[256];

static inline bool onxi_text_char_is(char c, unsigned classes)
{
    return (onxi_text_char_class[(uint8_t)c] & classes) != 0;
}
/* Is it an identifier of the grammar? */
bool onxi_text_is_ident(onx_str s);
/* Is it inf, infinity or nan, in any case? */
bool onxi_text_is_special_float(onx_str s);

void onxi_text_gap_slow(onxi_text_parser *p);
/* Skips white space and comments; afterwards p->at is at a token or at the end. */
static inline void onxi_text_gap(onxi_text_parser *p)
{
    if (p->at < p->end && *p->at == ' ')
        p->at++;
    if (p->at < p->end && (onxi_text_char_is(*p->at, ONXI_CHAR_SPACE) || *p->at == '#'))
        onxi_text_gap_slow(p);
}
/* The end of the last token, although the gap after it has been skipped. */
static inline const char *onxi_text_token_end(const onxi_text_parser *p)
{
    return p->at == p->gap_end ? p->gap_begin : p->at;
}
/* The first byte of the next token, or 0 at the end of the text (a zero byte is not a token either). */
static inline char onxi_text_peek(onxi_text_parser *p)
{
    onxi_text_gap(p);
    return p->at < p->end ? *p->at : '\0';
}
/* Consumes the character if it is next. */
static inline bool onxi_text_take(onxi_text_parser *p, char c)
{
    if (onxi_text_peek(p) != c || p->at >= p->end)
        return false;
    p->at++;
    return true;
}
/* Consumes the character, or fails; `expected` names the possible tokens. */
bool onxi_text_expect(onxi_text_parser *p, char c, const char *expected, const char *context);
/* Fails at the next token, or at the end of the line that should have continued. */
bool onxi_text_unexpected(onxi_text_parser *p, const char *expected, const char *hint, const char *context);
/* Consumes the identifier at p->at, which starts with a letter; returns an empty string if there is none. */
onx_str onxi_text_take_ident(onxi_text_parser *p);
/* The same without consuming it. */
onx_str onxi_text_look_ident(onxi_text_parser *p);
/* Consumes a quoted string at p->at. */
bool onxi_text_take_string(onxi_text_parser *p, onx_bytes *out);
/* name = ident | string */
bool onxi_text_take_name(onxi_text_parser *p, onx_bytes *out, const char *what);

typedef enum onxi_text_literal_kind { ONXI_LITERAL_NONE, ONXI_LITERAL_INT, ONXI_LITERAL_FLOAT } onxi_text_literal_kind;
/* Consumes the number at p->at; NONE, without consuming or reporting anything, if there is none; *ok is false if it is
 * malformed. */
onxi_text_literal_kind onxi_text_take_number(onxi_text_parser *p, onx_str *out, bool *ok);
/* Convert integer tokens; false if out of range. */
bool onxi_text_int_of(onx_str text, int64_t *out);
bool onxi_text_uint_of(onx_str text, uint64_t *out);
/* Consumes an integer. */
bool onxi_text_take_int(onxi_text_parser *p, int64_t *out, const char *what);

onx_where onxi_text_parse_where(onxi_text_parser *p, const char *at);
/* The line that contains `at`, to be printed with a caret; empty if the caret would be too far right. */
onx_str onxi_text_excerpt(const char *end, const char *at, uint32_t column);
/* Records an error at a position; `expected` and `hint` may be NULL. Always returns false. */
bool onxi_text_parse_error(onxi_text_parser *p, const char *at, const char *expected, const char *hint,
                           const char *format, ...) ONX_PRINTF(5, 6);
void onxi_text_parse_warn(onxi_text_parser *p, const char *at, onx_severity severity, const char *hint,
                          const char *format, ...) ONX_PRINTF(5, 6);
/* Ends parsing with a status that has been recorded already (out of memory). Always returns false. */
bool onxi_text_parse_abort(onxi_text_parser *p, onx_status status);
/* Enters `levels` nested messages; false with an error beyond the limit. Undone by p->depth -= levels. */
bool onxi_text_parse_enter(onxi_text_parser *p, uint32_t levels);
/* Recovers from an error in a node that starts at `start`: skips to the next node, or the end of the list. */
void onxi_text_skip_node(onxi_text_parser *p, const char *start);
/* Recovers from an error in a list element that starts at `start`: skips to the next comma or the closing bracket of
 * this list; false if there is none. */
bool onxi_text_skip_element(onxi_text_parser *p, const char *start, char close);

/* Recovers from an error in the header of a graph or function: skips to the brace before its nodes; false if there is
 * none. */
bool onxi_text_skip_to_body(onxi_text_parser *p);

bool onxi_text_push(onxi_text_parser *p, uint64_t value);
static inline bool onxi_text_push_ptr(onxi_text_parser *p, const void *ptr)
{
    return onxi_text_push(p, (uint64_t)(uintptr_t)ptr);
}
/* Moves the elements from `base` on into a list in the arena. NULL if there are none or, with p->fatal set, out of
 * memory. */
void *onxi_text_pop_pointers(onxi_text_parser *p, size_t base, uint32_t *count);
onx_bytes *onxi_text_pop_strings(onxi_text_parser *p, size_t base, uint32_t *count);
/* Reserves `more` further bytes of p->data. */
bool onxi_text_data_reserve(onxi_text_parser *p, size_t more);

/* text_parse_type.c */
bool onxi_text_is_type_word(onx_str word);
bool onxi_text_parse_type(onxi_text_parser *p, onx_type **out);
bool onxi_text_parse_shape(onxi_text_parser *p, onx_tensor_shape *shape);

/* text_parse_tensor.c */
/* The dims of a tensor literal from its type; fails for types other than tensors. */
bool onxi_text_tensor_from_type(onxi_text_parser *p, const char *at, const onx_type *type, onx_tensor *tensor);
bool onxi_text_parse_tensor_data(onxi_text_parser *p, onx_tensor *tensor);
/* tensor = type [ name ] [ "=" ] data; `type` has been parsed already, or is NULL. */
bool onxi_text_parse_tensor(onxi_text_parser *p, const char *at, const onx_type *type, onx_tensor *tensor);
bool onxi_text_parse_pairs(onxi_text_parser *p, void ***list, uint32_t *count, const char *what);
typedef struct onxi_text_element {
    uint8_t storage; /* an onxi_data_field */
    uint8_t bits;    /* width of an element in raw_data */
    uint8_t packed;  /* elements per entry of the typed field: 1, 2 or 4 */
    uint8_t parts;   /* literals per element: 1, or 2 for complex */
    bool is_signed;
    int64_t min, max; /* for INT32 storage: range of a literal */
} onxi_text_element;
/* All zero for unknown types. */
onxi_text_element onxi_text_element_of(int64_t dtype);

/* text_parse_node.c */
/* The keyword of an attribute type, such as "ints"; NULL if unknown. */
const char *onxi_text_annotation_word(int32_t type);
bool onxi_text_parse_node(onxi_text_parser *p, onx_node **out);
bool onxi_text_parse_nodes(onxi_text_parser *p, onx_node ***list, uint32_t *count);
bool onxi_text_parse_attribute(onxi_text_parser *p, onx_attribute *a);
/* [ ":" attr-type ] "=" attr-value */
bool onxi_text_parse_attribute_rest(onxi_text_parser *p, onx_attribute *a);

/* text_parse.c */
/* The keys of a header, in print order. */
typedef enum onxi_text_head_form {
    ONXI_HEAD_INT,
    ONXI_HEAD_STRING,
    ONXI_HEAD_IMPORTS,
    ONXI_HEAD_PAIRS
} onxi_text_head_form;
typedef struct onxi_text_head_item {
    const char *word; /* NULL ends the table */
    onxi_text_head_form form;
    size_t offset, count_offset; /* offsets in the message */
    uint32_t has;                /* 0 for lists */
    uint32_t number;             /* field number */
} onxi_text_head_item;
extern const onxi_text_head_item onxi_text_model_items[], onxi_text_function_items[];
bool onxi_text_parse_graph(onxi_text_parser *p, onx_graph *graph);
/* What parsing records beside the message; either may be NULL. */
typedef struct onxi_text_parse_notes {
    onxi_text_trivia *trivia;
    onxi_text_marks *marks;
} onxi_text_parse_notes;
onx_status onxi_text_parse_text(onx_ctx *cx, onx_kind kind, onx_str text, uint32_t flags, onxi_text_parse_notes notes,
                                onx_doc **out);

/* text_places.c */
void onxi_text_mark_add(onxi_text_parser *p, const void *key, const char *at);
static inline void onxi_text_mark_part(onxi_text_parser *p, const void *key, const char *at)
{
    if (p->marks)
        onxi_text_mark_add(p, key, at);
}
/* The position of the next mark, for the functions below. */
static inline size_t onxi_text_mark_next(const onxi_text_parser *p)
{
    return p->marks ? p->marks->count : 0;
}
/* The marks from `from` on belong to the elements of the list, whose memory is only allocated now. */
void onxi_text_mark_elements(onxi_text_parser *p, size_t from, const onx_bytes *list);
/* Adds `key` to the part that was marked as `old` at or after *from; *from is advanced past it. */
void onxi_text_mark_also(onxi_text_parser *p, size_t *from, const void *old, const void *key);
/* The message was copied to another address. */
void onxi_text_mark_moved(onxi_text_parser *p, const void *from, const void *to, size_t size);

/* text_hint.c: hints for common mistakes, or NULL. */
typedef struct onxi_text_hint {
    char text[96];
} onxi_text_hint;
const char *onxi_text_hint_for_type(onx_str word, onxi_text_hint *hint);
const char *onxi_text_hint_for_key(onx_str word, const onxi_text_head_item *items, onxi_text_hint *hint);
/* For the next token where a name ended, or where a name is expected. */
const char *onxi_text_hint_behind_name(const onxi_text_parser *p);
const char *onxi_text_hint_for_name(const onxi_text_parser *p);
/* For a missing element of a list. */
const char *onxi_text_hint_behind_comma(const onxi_text_parser *p);

/* ---- #@ comments: parts that the syntax cannot express (text_keep.c, text_restore.c) ---- */

/* The keywords of onxi_text_target and their message kinds. */
typedef struct onxi_text_target_row {
    const char *word;
    onx_kind kind;
    bool listed; /* occurs only as a list element */
} onxi_text_target_row;
extern const onxi_text_target_row onxi_text_targets[ONXI_TARGET_COUNT];

/* Applies the comment `text` (without "#@"); a comment that cannot be parsed is ignored with a warning. */
void onxi_text_restore(onxi_text_parser *p, const char *at, onx_str text);
/* The same, immediately or, while p->hold is set, when onxi_text_restore_waiting is called. */
void onxi_text_restore_later(onxi_text_parser *p, const char *at, onx_str text);
/* Applies the queued comments, from index `base` on. */
void onxi_text_restore_waiting(onxi_text_parser *p, size_t base);
/* Moves typed data to raw_data; false, without changes, if it does not match its type and shape. */
bool onxi_text_tensor_to_raw(onx_arena *arena, onx_tensor *tensor);

/* ---- printer ---- */

/* A step on the path to a part of an item. */
typedef struct onxi_text_step {
    const char *field;
    uint64_t index; /* of a list element */
} onxi_text_step;
#define ONXI_TEXT_NO_INDEX UINT64_MAX

typedef struct onxi_text_printer {
    onx_ctx *cx;
    onx_text_options options;
    onx_sink sink;
    onx_status status; /* of the first failure; later output is dropped */
    char *buf;
    size_t len, room;
    size_t line; /* start of the current line in buf */
    uint32_t indent, depth, depth_limit;
    uint32_t holding; /* buf must stay in memory, because output may be undone */
    bool narrow; /* everything has to fit on one line; if it does not, `broken` is set, and the output will be undone */
    bool broken;
    bool flushed; /* the beginning has been written to the sink */
    char *keep;   /* #@ comments of the current item, each ends with a line break */
    size_t keep_len, keep_room;
    onxi_text_step *path; /* of the part that is being examined, within its item: from path_base to path_len */
    size_t path_base, path_len, path_room;
    struct onxi_kept *kept; /* kinds of parts that were written as #@ comments (text_keep.c) */
    uint32_t kept_count, kept_room;
    onxi_text_trivia *trivia; /* NULL unless the formatter prints */
    onx_kind scope_kind;      /* the graph or function whose nodes are being printed */
    const void *scope;
} onxi_text_printer;

/* text_out.c */
bool onxi_text_out_grow(onxi_text_printer *o, size_t more);
static inline bool onxi_text_out_room(onxi_text_printer *o, size_t more)
{
    return o->room - o->len >= more || onxi_text_out_grow(o, more);
}
static inline void onxi_text_write(onxi_text_printer *o, const char *text, size_t len)
{
    if (len && onxi_text_out_room(o, len)) {
        memcpy(o->buf + o->len, text, len);
        o->len += len;
    }
}
static inline void onxi_text_put_char(onxi_text_printer *o, char c)
{
    if (onxi_text_out_room(o, 1))
        o->buf[o->len++] = c;
}
#define ONXI_PUT(o, literal) onxi_text_write((o), (literal), sizeof(literal) - 1)
static inline void onxi_text_put_text(onxi_text_printer *o, const char *text)
{
    onxi_text_write(o, text, strlen(text));
}
void onxi_text_put_int(onxi_text_printer *o, int64_t value);
void onxi_text_put_uint(onxi_text_printer *o, uint64_t value);
/* A number that is read as a float without an annotation: 1.0, not 1. */
void onxi_text_put_float(onxi_text_printer *o, float value);
/* "text", with \ before " and \. */
void onxi_text_put_string(onxi_text_printer *o, onx_str s);
/* Unquoted if it is an identifier, quoted otherwise. */
void onxi_text_put_name(onxi_text_printer *o, onx_str s);
/* The same, but quoted also if it would be read as a type. */
void onxi_text_put_value_name(onxi_text_printer *o, onx_str s);
/* Ends the line and indents the next one. */
void onxi_text_put_line(onxi_text_printer *o);
static inline size_t onxi_text_out_column(const onxi_text_printer *o)
{
    return o->len - o->line;
}
static inline bool onxi_text_out_wide(const onxi_text_printer *o)
{
    return o->len - o->line > o->options.width;
}
/* The line is full, and must not be broken. */
static inline bool onxi_text_out_stop(onxi_text_printer *o)
{
    if (o->narrow && onxi_text_out_wide(o))
        o->broken = true;
    return o->status != ONX_OK || (o->narrow && o->broken);
}
/* Writes complete lines to the sink if there are many. */
void onxi_text_out_flush(onxi_text_printer *o, bool all);

/* A position to which output can be undone. Between onxi_text_out_try and onxi_text_out_done everything is put on one
 * line. */
typedef struct onxi_text_out_mark {
    size_t len, line, keep_len;
    bool narrow, broken;
} onxi_text_out_mark;
onxi_text_out_mark onxi_text_out_try(onxi_text_printer *o);
/* Did everything fit? Otherwise the output is undone; `kept`: #@ comments may have been added. */
bool onxi_text_out_done(onxi_text_printer *o, onxi_text_out_mark mark, bool kept);

/* text_print_value.c */
void onxi_text_print_type(onxi_text_printer *o, const onx_type *type);
/* Can the syntax express the type (apart from denotations)? */
bool onxi_text_type_is_plain(const onx_type *type, uint32_t depth);
/* "type name" or "name"; `member` is the path step of the type. */
void onxi_text_print_value(onxi_text_printer *o, const onx_value_info *value);
/* type name = data */
void onxi_text_print_tensor(onxi_text_printer *o, const onx_tensor *tensor, bool initializer);
void onxi_text_print_shape(onxi_text_printer *o, const onx_tensor_shape *shape);
/* Is the declared type of a value exactly that of a tensor? */
bool onxi_text_type_matches(const onx_type *type, const onx_tensor *tensor);
/* The forms in which tensor data can be printed. */
typedef enum onxi_text_data_form {
    ONXI_DATA_NO_NOTATION,
    ONXI_DATA_TYPED,
    ONXI_DATA_RAW,
    ONXI_DATA_ELSEWHERE
} onxi_text_data_form;
onxi_text_data_form onxi_text_tensor_form(const onx_tensor *tensor);
void onxi_text_print_tensor_data(onxi_text_printer *o, const onx_tensor *tensor, onxi_text_data_form form);
/* Keeps the parts of a tensor that the syntax cannot express in that form. */
void onxi_text_keep_tensor(onxi_text_printer *o, const onx_tensor *tensor, onxi_text_data_form form);
/* { "key" : "value", ... } between the given brackets */
void onxi_text_print_pairs(onxi_text_printer *o, onx_string_string_entry *const *list, uint32_t count);

/* text_print_attribute.c */
/* name [ ":" type ] "=" value; `quoted` if names may be quoted. */
void onxi_text_print_attribute(onxi_text_printer *o, const onx_attribute *a, bool quoted);
bool onxi_text_attribute_holds_graph(const onx_attribute *a);
/* A list of integers, floats or strings as in attributes, broken into lines if necessary. */
typedef enum onxi_text_view_kind {
    ONXI_VIEW_F32,
    ONXI_VIEW_F64,
    ONXI_VIEW_I8,
    ONXI_VIEW_U8,
    ONXI_VIEW_I16,
    ONXI_VIEW_U16,
    ONXI_VIEW_I32,
    ONXI_VIEW_U32,
    ONXI_VIEW_I64,
    ONXI_VIEW_U64,
    ONXI_VIEW_PACKED,
    ONXI_VIEW_TEXT
} onxi_text_view_kind;
typedef struct onxi_text_view {
    onxi_text_view_kind kind;
    const char *data;
    uint64_t count;       /* number of literals */
    uint64_t row;         /* literals per row of the innermost dimension, 0: no rows */
    uint8_t bits, stride; /* PACKED: bits per element, and bytes per entry */
    bool is_signed;
    bool pointed;      /* floats are printed as 1.0, not 1 */
    const char *field; /* the field name for NaNs whose bits the text cannot express */
} onxi_text_view;
void onxi_text_print_elements(onxi_text_printer *o, const onxi_text_view *view, char open, char close);

/* text_print.c */
/* List elements in brackets, on one line or one per line. */
typedef struct onxi_text_list {
    char open, close;
    uint32_t count;
    void (*item)(onxi_text_printer *o, const void *owner, uint32_t i);
    const void *(*key)(const void *owner, uint32_t i); /* for the formatter; NULL: none */
    const void *owner;
    const void *end; /* the formatter's key of the closing bracket, or NULL */
} onxi_text_list;
void onxi_text_print_list(onxi_text_printer *o, const onxi_text_list *list, bool lines);
bool onxi_text_is_dotted(onx_str s); /* a.b.c */
void onxi_text_print_graph(onxi_text_printer *o, const onx_graph *graph);
onx_status onxi_text_print_text(onx_ctx *cx, onx_kind kind, const void *message, const onx_text_options *options,
                                onxi_text_trivia *trivia, onx_sink sink);

/* text_keep.c: parts that the syntax cannot express. The path is extended by the following functions, and truncated to
 * an earlier length. */
void onxi_text_path_index(onxi_text_printer *o, const char *field, uint64_t index);
static inline void onxi_text_path_field(onxi_text_printer *o, const char *field)
{
    onxi_text_path_index(o, field, ONXI_TEXT_NO_INDEX);
}
static inline void onxi_text_path_cut(onxi_text_printer *o, size_t len)
{
    o->path_len = len;
}
/* Does an empty string differ from an absent field? In the text syntax they are usually the same. */
bool onxi_text_tells_empty(const onxi_message_table *table, const onxi_field *field);
/* Starts the path of a new item after the current one; undone by onxi_text_path_leave with the returned value. */
typedef struct onxi_text_path_mark {
    size_t base, len, keep_len;
} onxi_text_path_mark;
onxi_text_path_mark onxi_text_path_enter(onxi_text_printer *o, const char *item);
void onxi_text_path_leave(onxi_text_printer *o, onxi_text_path_mark mark);
/* Keeps the whole message at the path. */
void onxi_text_keep_message(onxi_text_printer *o, onx_kind kind, const void *message);
void onxi_text_keep_field(onxi_text_printer *o, onx_kind kind, const void *message, uint32_t number);
/* Keeps those of the fields (by number, ends with 0) that are present, and unknown fields, of a message at the path. */
void onxi_text_keep_fields(onxi_text_printer *o, onx_kind kind, const void *message, const uint32_t *numbers);
/* Keeps a line of the form path + suffix. */
void onxi_text_keep_line(onxi_text_printer *o, const char *suffix);
/* Prints the comments kept since `base`, one per line, and removes them; a short one goes beside the item if there is
 * room. */
void onxi_text_keep_flush(onxi_text_printer *o, size_t base, bool beside);
/* Does a message contain unknown fields? */
bool onxi_text_has_unknown(const void *message);
/* The comment at the start of a text with kept parts, and the note about them. */
void onxi_text_kept_summary(onxi_text_printer *o, char *buf, size_t size);
void onxi_text_kept_report(onxi_text_printer *o);
void onxi_text_keep_release(onxi_text_printer *o);

/* ---- formatter (text_format.c) ---- */

/* Adds an item of the source, from begin to end; `key` is what the printer will ask for. Without a key it only
 * separates comments before it from those after it; without an end it has no comments beside it. */
void onxi_text_trivia_item(onxi_text_parser *p, const void *key, const char *begin, const char *end);
/* The printer will ask for another address. */
void onxi_text_trivia_moved(onxi_text_parser *p, const void *from, const void *to);
/* The closing bracket follows, if there is one. */
/* The key of the position before the closing bracket of a message; its other parts have the keys of their members. */
static inline const void *onxi_text_trivia_close_key(const void *message)
{
    return (const char *)message + 2;
}
void onxi_text_trivia_closing(onxi_text_parser *p, const void *key);
void onxi_text_trivia_comment(onxi_text_parser *p, onx_str comment);
void onxi_text_trivia_blank(onxi_text_parser *p, const char *at);
/* Does the current item of the printer have comments, or comments before it? */
bool onxi_text_trivia_has(const onxi_text_printer *o, const void *key);
bool onxi_text_trivia_leads(const onxi_text_printer *o, const void *key);
/* Prints the comments and empty lines before the item, each on its own line; the printer is at the start of an indented
 * line before and after. `closing`: the item is a closing brace. */
void onxi_text_trivia_before(onxi_text_printer *o, const void *key, bool closing);
/* Prints the comment beside the item; true if there was one. */
bool onxi_text_trivia_after(onxi_text_printer *o, const void *key);
/* Prints all remaining comments at the end of the text. */
void onxi_text_trivia_rest(onxi_text_printer *o);

#endif
