/* text_keep.c - parts that the syntax cannot express are printed as comments of the form "#@ node.doc_string: ..."
 * beside the item that they belong to. Only this parser reads them (text_restore.c). */
#include "text/text.h"

#include <stdio.h>

const onxi_text_target_row onxi_text_targets[ONXI_TARGET_COUNT] = {
    [ONXI_TARGET_MODEL] = { "model", ONX_KIND_MODEL, false },
    [ONXI_TARGET_GRAPH] = { "graph", ONX_KIND_GRAPH, false },
    [ONXI_TARGET_FUNCTION] = { "function", ONX_KIND_FUNCTION, false },
    [ONXI_TARGET_NODE] = { "node", ONX_KIND_NODE, false },
    [ONXI_TARGET_INPUT] = { "input", ONX_KIND_VALUE_INFO, true },
    [ONXI_TARGET_OUTPUT] = { "output", ONX_KIND_VALUE_INFO, true },
    [ONXI_TARGET_VALUE_INFO] = { "value_info", ONX_KIND_VALUE_INFO, false },
    [ONXI_TARGET_INITIALIZER] = { "initializer", ONX_KIND_TENSOR, true },
    [ONXI_TARGET_ATTRIBUTE_PROTO] = { "attribute_proto", ONX_KIND_ATTRIBUTE, true },
    [ONXI_TARGET_ATTRIBUTE] = { "attribute", ONX_KIND_ATTRIBUTE, false },
    [ONXI_TARGET_TENSOR] = { "tensor", ONX_KIND_TENSOR, false },
    [ONXI_TARGET_TYPE] = { "type", ONX_KIND_TYPE, false },
    [ONXI_TARGET_SHAPE] = { "shape", ONX_KIND_TENSOR_SHAPE, false },
};

/* ---- paths ---- */

void onxi_text_path_index(onxi_text_printer *o, const char *field, uint64_t index)
{
    if (!ONXI_GROW(o->cx, o->path, o->path_room, o->path_len + 1)) {
        o->status = ONX_E_MEMORY;
        return;
    }
    o->path[o->path_len++] = (onxi_text_step){ field, index };
}

onxi_text_path_mark onxi_text_path_enter(onxi_text_printer *o, const char *item)
{
    onxi_text_path_mark mark = { o->path_base, o->path_len, o->keep_len };
    o->path_base = o->path_len;
    onxi_text_path_field(o, item);
    return mark;
}

void onxi_text_path_leave(onxi_text_printer *o, onxi_text_path_mark mark)
{
    o->path_base = mark.base;
    o->path_len = mark.len;
}

/* item.field[2].field */
static void put_path(onxi_text_printer *o)
{
    for (size_t i = o->path_base; i < o->path_len; i++) {
        if (i > o->path_base)
            onxi_text_put_char(o, '.');
        onxi_text_put_text(o, o->path[i].field);
        if (o->path[i].index == ONXI_TEXT_NO_INDEX)
            continue;
        onxi_text_put_char(o, '[');
        onxi_text_put_uint(o, o->path[i].index);
        onxi_text_put_char(o, ']');
    }
}

/* ---- values in comments: protobuf text on one line ---- */

static void put_keep_string(onxi_text_printer *o, onx_str s)
{
    size_t valid = 0; /* the text is valid UTF-8 up to here */
    onxi_text_put_char(o, '"');
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i], hex[8];
        if (i >= valid)
            valid = i + onxi_utf8_valid(onx_str_make(s.ptr + i, s.len - i));
        if (c == '"' || c == '\\') {
            onxi_text_put_char(o, '\\');
            onxi_text_put_char(o, c);
        } else if (c == '\n') {
            ONXI_PUT(o, "\\n");
        } else if (c == '\t') {
            ONXI_PUT(o, "\\t");
        } else if ((uint8_t)c < 0x20 || c == 0x7f || i >= valid) {
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned)(uint8_t)c);
            onxi_text_write(o, hex, 4);
        } else {
            onxi_text_put_char(o, c);
        }
    }
    onxi_text_put_char(o, '"');
}

/* Values that are not numbers keep their bits: nan:0x7f800001. */
static void put_keep_float(onxi_text_printer *o, const void *at, bool wide)
{
    char text[40];
    uint64_t bits = 0;
    float f = 0;
    double d = 0;
    memcpy(&bits, at, wide ? 8 : 4);
    memcpy(wide ? (void *)&d : (void *)&f, at, wide ? 8 : 4);
    if (wide ? d != d : f != f)
        onxi_text_write(o, text, (size_t)snprintf(text, sizeof text, "nan:0x%llx", (unsigned long long)bits));
    else
        onxi_text_write(o, text, wide ? onxi_print_f64(text, d) : onxi_print_f32(text, f));
}

bool onxi_text_tells_empty(const onxi_message_table *table, const onxi_field *field)
{
    return (field->flags & (ONXI_SLOT | ONXI_ONEOF)) || (table->kind == ONX_KIND_TENSOR && field->number == 9) ||
           (table->kind == ONX_KIND_NODE && field->number == 3);
}

/* An empty string, which the syntax does not distinguish from an absent one. */
static bool as_good_as_absent(const onxi_message_table *table, const onxi_field *field, onxi_place place)
{
    return !(field->flags & ONXI_REPEATED) && (field->type == ONXI_STRING || field->type == ONXI_BYTES) &&
           ((const onx_bytes *)place.value)->bits == 0 && !onxi_text_tells_empty(table, field);
}

static void put_keep_message(onxi_text_printer *o, const onxi_message_table *table, const void *message);

static void put_keep_value(onxi_text_printer *o, const onxi_field *field, const char *at)
{
    int32_t narrow;
    int64_t wide;
    uint64_t natural;
    onx_bytes bytes;
    void *message;
    switch (field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE:
        put_keep_float(o, at, field->type == ONXI_DOUBLE);
        break;
    case ONXI_INT32:
    case ONXI_ENUM:
        memcpy(&narrow, at, sizeof narrow);
        onxi_text_put_int(o, narrow);
        break;
    case ONXI_INT64:
        memcpy(&wide, at, sizeof wide);
        onxi_text_put_int(o, wide);
        break;
    case ONXI_UINT64:
        memcpy(&natural, at, sizeof natural);
        onxi_text_put_uint(o, natural);
        break;
    case ONXI_STRING:
    case ONXI_BYTES:
        memcpy(&bytes, at, sizeof bytes);
        put_keep_string(o, onx_view(bytes));
        break;
    default:
        memcpy(&message, at, sizeof message);
        put_keep_message(o, field->message, message);
        break;
    }
}

static void put_keep_field(onxi_text_printer *o, const onxi_field *field, onxi_place place, uint64_t count)
{
    if (!(field->flags & ONXI_REPEATED)) {
        put_keep_value(o, field, place.value);
        return;
    }
    const char *elements;
    memcpy(&elements, place.value, sizeof elements);
    onxi_text_put_char(o, '[');
    for (uint64_t i = 0; i < count && o->status == ONX_OK; i++) {
        if (i)
            ONXI_PUT(o, ", ");
        put_keep_value(o, field, elements + i * onxi_field_size(field));
    }
    onxi_text_put_char(o, ']');
}

bool onxi_text_has_unknown(const void *message)
{
    const onx_message *m = message;
    return m->extra && m->extra->unknown;
}

static void put_unknown(onxi_text_printer *o, const void *message)
{
    const onx_message *m = message;
    onxi_text_put_char(o, '[');
    for (const onx_unknown *u = m->extra->unknown; u; u = u->next) {
        if (u != m->extra->unknown)
            ONXI_PUT(o, ", ");
        put_keep_string(o, onx_view(u->bytes));
    }
    onxi_text_put_char(o, ']');
}

static void put_keep_message(onxi_text_printer *o, const onxi_message_table *table, const void *message)
{
    if (++o->depth > o->depth_limit && o->status == ONX_OK)
        o->status = onxi_fail(o->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                              "messages are nested more than %u levels deep (limit depth)", o->depth_limit);
    bool any = false;
    onxi_text_put_char(o, '{');
    for (uint32_t i = 0; i < table->field_count && o->status == ONX_OK; i++) {
        const onxi_field *field = &table->fields[i];
        uint64_t count = onxi_field_count(table, field, message);
        if (!count || as_good_as_absent(table, field, onxi_field_place(table, field, message)))
            continue;
        if (any)
            onxi_text_put_char(o, ' ');
        any = true;
        onxi_text_put_text(o, field->name);
        ONXI_PUT(o, ": ");
        put_keep_field(o, field, onxi_field_place(table, field, message), count);
    }
    if (onxi_text_has_unknown(message) && o->status == ONX_OK) {
        onxi_text_put_text(o, any ? " unknown: " : "unknown: ");
        put_unknown(o, message);
    }
    onxi_text_put_char(o, '}');
    o->depth--;
}

/* ---- lines ---- */

/* Lines are composed at the end of the output, and then moved to o->keep. */
static size_t line_begin(onxi_text_printer *o)
{
    size_t start = o->len;
    o->holding++;
    ONXI_PUT(o, "#@ ");
    put_path(o);
    return start;
}

static void line_end(onxi_text_printer *o, size_t start)
{
    onxi_text_put_char(o, '\n');
    o->holding--;
    if (o->status != ONX_OK || o->len < start)
        return;
    size_t len = o->len - start;
    if (ONXI_GROW(o->cx, o->keep, o->keep_room, o->keep_len + len)) {
        memcpy(o->keep + o->keep_len, o->buf + start, len);
        o->keep_len += len;
    } else {
        o->status = ONX_E_MEMORY;
    }
    o->len = start;
}

void onxi_text_keep_line(onxi_text_printer *o, const char *suffix)
{
    size_t start = line_begin(o);
    onxi_text_put_text(o, suffix);
    line_end(o, start);
}

void onxi_text_keep_message(onxi_text_printer *o, onx_kind kind, const void *message)
{
    size_t start = line_begin(o);
    ONXI_PUT(o, ": ");
    put_keep_message(o, onxi_messages[kind], message);
    line_end(o, start);
}

void onxi_text_keep_field(onxi_text_printer *o, onx_kind kind, const void *message, uint32_t number)
{
    const onxi_message_table *table = onxi_messages[kind];
    const onxi_field *field = onxi_field_find(table, number);
    uint64_t count = onxi_field_count(table, field, message);
    onxi_place place = onxi_field_place(table, field, message);
    size_t path = o->path_len;
    if (!count || as_good_as_absent(table, field, place))
        return;
    onxi_text_path_field(o, field->name);
    size_t start = line_begin(o);
    ONXI_PUT(o, ": ");
    put_keep_field(o, field, place, count);
    line_end(o, start);
    onxi_text_path_cut(o, path);
}

void onxi_text_keep_fields(onxi_text_printer *o, onx_kind kind, const void *message, const uint32_t *numbers)
{
    for (; *numbers; numbers++)
        onxi_text_keep_field(o, kind, message, *numbers);
    if (!onxi_text_has_unknown(message))
        return;
    size_t path = o->path_len;
    onxi_text_path_field(o, "unknown");
    size_t start = line_begin(o);
    ONXI_PUT(o, ": ");
    put_unknown(o, message);
    line_end(o, start);
    onxi_text_path_cut(o, path);
}

/* ---- summary of kept parts ---- */

enum { SORT_MAX = 64, SHOWN_MAX = 160 };

typedef struct onxi_kept {
    char sort[SORT_MAX]; /* a path without indices: node.attribute.doc_string */
    uint64_t count;
} onxi_kept;

static void count_kept(onxi_text_printer *o, const char *line, size_t len)
{
    char sort[SORT_MAX];
    size_t n = 0, i = 3; /* after "#@ " */
    for (bool inside = false; i < len && (line[i] != ':' || inside); i++) {
        inside = line[i] == '[' || (inside && line[i] != ']');
        if (!inside && line[i] != ']' && n + 1 < sizeof sort)
            sort[n++] = line[i];
    }
    sort[n] = 0;
    if (i == len)
        return; /* it only describes how data in the text was stored */
    for (uint32_t k = 0; k < o->kept_count; k++)
        if (strcmp(o->kept[k].sort, sort) == 0) {
            o->kept[k].count++;
            return;
        }
    if (o->kept_count == SORT_MAX)
        return;
    if (!o->kept) {
        o->kept = onxi_resize(o->cx, NULL, 0, SORT_MAX * sizeof *o->kept);
        if (!o->kept) {
            o->status = ONX_E_MEMORY;
            return;
        }
    }
    onxi_kept *kept = &o->kept[o->kept_count++];
    memcpy(kept->sort, sort, n + 1);
    kept->count = 1;
}

void onxi_text_keep_release(onxi_text_printer *o)
{
    onxi_release(o->cx, o->kept, SORT_MAX * sizeof *o->kept);
    onxi_release(o->cx, o->keep, o->keep_room);
    onxi_release(o->cx, o->path, o->path_room * sizeof *o->path);
}

static void put_shown(onxi_text_printer *o, const char *line, size_t len)
{
    if (o->options.elide && len > SHOWN_MAX) {
        onxi_text_write(o, line, SHOWN_MAX);
        ONXI_PUT(o, " ...");
    } else {
        onxi_text_write(o, line, len);
    }
}

void onxi_text_keep_flush(onxi_text_printer *o, size_t base, bool beside)
{
    size_t at = base;
    while (at < o->keep_len && o->status == ONX_OK) {
        const char *line = o->keep + at;
        size_t len = (size_t)((const char *)memchr(line, '\n', o->keep_len - at) - line);
        count_kept(o, line, len);
        bool storage = len > 9 && memcmp(line + len - 9, ".raw_data", 9) == 0;
        if (!o->options.plain && !(storage && o->options.elide)) {
            if (beside && storage && at == base && at + len + 1 == o->keep_len)
                ONXI_PUT(o, "  ");
            else if (o->len || o->flushed)
                onxi_text_put_line(o);
            put_shown(o, line, len);
        }
        at += len + 1;
    }
    o->keep_len = base;
}

/* "graph.doc_string, node.metadata_props (3)" */
static size_t list_kept(const onxi_text_printer *o, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (uint32_t i = 0; i < o->kept_count && n + SORT_MAX + 32 < size; i++) {
        const char *sep = i ? ", " : "";
        if (o->kept[i].count > 1)
            n += (size_t)snprintf(buf + n, size - n, "%s%s (%llu)", sep, o->kept[i].sort,
                                  (unsigned long long)o->kept[i].count);
        else
            n += (size_t)snprintf(buf + n, size - n, "%s%s", sep, o->kept[i].sort);
    }
    return n;
}

void onxi_text_kept_summary(onxi_text_printer *o, char *buf, size_t size)
{
    char list[3072];
    buf[0] = 0;
    if (list_kept(o, list, sizeof list))
        snprintf(buf, size,
                 o->options.plain ? "#@ (without notation, not in this text: %s)\n"
                                  : "#@ (kept in these comments, which other readers skip: %s)\n",
                 list);
}

void onxi_text_kept_report(onxi_text_printer *o)
{
    char list[3072];
    if (o->status == ONX_OK && list_kept(o, list, sizeof list))
        onxi_warn(o->cx, ONX_NOTE, NULL, ONXI_NOWHERE,
                  o->options.plain
                      ? "the text syntax has no notation for %s: the text leaves it out"
                      : "the text syntax has no notation for %s: #@ comments keep it, which other readers skip",
                  list);
}
