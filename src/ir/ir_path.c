/* ir_path.c - writes the paths of diagnostics, graph.node[3] "conv1" (Conv).input[0], and follows them back to the
 * messages that they name. */
#include "ir/ir.h"

#include <stdio.h>

/* ---- labels ---- */

size_t onxi_path_quote(char *out, size_t room, onx_str s)
{
    size_t n = 0, i = 0;
    size_t valid = onxi_utf8_valid(onx_str_make(s.ptr, s.len < 120 ? s.len : 120));
    for (; i < s.len && n + 8 < room && i < 100; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && i >= valid))
            n += (size_t)snprintf(out + n, room - n, "\\x%02x", c);
        else
            out[n++] = (char)c;
    }
    while (i < s.len && i < valid && ((unsigned char)s.ptr[i] & 0xc0) == 0x80 && n + 8 < room)
        out[n++] = s.ptr[i++];
    if (i < s.len)
        n += (size_t)snprintf(out + n, room - n, "...");
    out[n] = 0;
    return n;
}

/* The name by which a user would identify a message, or an empty string. */
static onx_str name_of(onx_kind kind, const void *message)
{
    switch ((int)kind) {
    case ONX_KIND_NODE:
        return onx_view(((const onx_node *)message)->name);
    case ONX_KIND_ATTRIBUTE:
        return onx_view(((const onx_attribute *)message)->name);
    case ONX_KIND_TENSOR:
        return onx_view(((const onx_tensor *)message)->name);
    case ONX_KIND_VALUE_INFO:
        return onx_view(((const onx_value_info *)message)->name);
    case ONX_KIND_FUNCTION:
        return onx_view(((const onx_function *)message)->name);
    case ONX_KIND_OPERATOR_SET_ID:
        return onx_view(((const onx_operator_set_id *)message)->domain);
    case ONX_KIND_STRING_STRING_ENTRY:
        return onx_view(((const onx_string_string_entry *)message)->key);
    case ONX_KIND_DEVICE_CONFIGURATION:
        return onx_view(((const onx_device_configuration *)message)->name);
    case ONX_KIND_OPERATOR:
        return onx_view(((const onx_operator *)message)->op_type);
    default:
        return (onx_str){ 0 };
    }
}

size_t onxi_path_label(char buf[ONXI_LABEL_MAX], onx_kind kind, const void *message)
{
    enum { QUOTED = 320 };
    char text[QUOTED];
    size_t n = 0;
    onx_str name = name_of(kind, message);
    onx_str op = kind == ONX_KIND_NODE ? onx_view(((const onx_node *)message)->op_type) : (onx_str){ 0 };
    buf[0] = 0;
    if (name.len) {
        onxi_path_quote(text, sizeof text, name);
        n += (size_t)snprintf(buf, ONXI_LABEL_MAX, " \"%s\"", text);
    }
    if (op.len) {
        onxi_path_quote(text, sizeof text, op);
        n += (size_t)snprintf(buf + n, ONXI_LABEL_MAX - n, " (%s)", text);
    }
    return n;
}

/* ---- writing ---- */

typedef struct text {
    char *buf;
    size_t size, len;
} text;

static void put(text *t, const char *format, ...) ONX_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t at = t->len < t->size ? t->len : t->size;
    int n = vsnprintf(at < t->size ? t->buf + at : NULL, t->size - at, format, args);
    va_end(args);
    if (n > 0)
        t->len += (size_t)n;
}

static void put_visit(text *t, const onx_visit *at)
{
    char label[ONXI_LABEL_MAX];
    if (!at->parent)
        return;
    put_visit(t, at->parent);
    put(t, t->len ? ".%s" : "%s", at->field);
    if (at->repeated)
        put(t, "[%u]", at->index);
    onxi_path_label(label, at->kind, at->message);
    put(t, "%s", label);
}

size_t onx_visit_path(const onx_visit *at, char *buf, size_t size)
{
    if (!at)
        return 0;
    if (!buf)
        size = 0;
    text t = { buf, size, 0 };
    if (size)
        buf[0] = 0;
    put_visit(&t, at);
    return t.len;
}

onx_str onxi_path_node(onx_arena *arena, onx_str prefix, uint32_t index, const onx_node *node)
{
    char label[ONXI_LABEL_MAX];
    onxi_path_label(label, ONX_KIND_NODE, node);
    return onxi_arena_printf(arena, "%.*snode[%u]%s", ONX_ARG(prefix), index, label);
}

static bool is_step(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The length of the step at the beginning of the path. */
static onx_str step_of(onx_str path)
{
    size_t n = 0;
    while (n < path.len && is_step(path.ptr[n]))
        n++;
    return onx_str_make(path.ptr, n);
}

static const onxi_field *find_field(const onxi_message_table *table, onx_str name)
{
    for (uint32_t i = 0; i < table->field_count; i++)
        if (onx_str_is(name, table->fields[i].name))
            return &table->fields[i];
    return NULL;
}

/* Names that are not identifiers, or that are fields of a node, are written in full: .attribute[0] "name".g. */
onx_str onxi_path_subgraph(onx_arena *arena, onx_str path, const onx_node *node, const onx_attribute *attribute)
{
    char label[ONXI_LABEL_MAX];
    onx_str name = onx_view(attribute->name);
    uint32_t index = 0;
    if (name.len && name.len <= 100 && step_of(name).len == name.len && !find_field(onxi_messages[ONX_KIND_NODE], name))
        return onxi_arena_printf(arena, "%.*s.%.*s.", ONX_ARG(path), ONX_ARG(name));
    while (index < node->attribute_count && node->attribute[index] != attribute)
        index++;
    onxi_path_label(label, ONX_KIND_ATTRIBUTE, attribute);
    return onxi_arena_printf(arena, "%.*s.attribute[%u]%s.g.", ONX_ARG(path), index, label);
}

static void call_words(char buf[ONXI_LABEL_MAX], const onx_function *function)
{
    char name[ONXI_LABEL_MAX / 2];
    onxi_path_quote(name, sizeof name, onx_view(function->name));
    snprintf(buf, ONXI_LABEL_MAX, " function %s ", name);
}

onx_str onxi_path_call(onx_arena *arena, onx_str path, const onx_function *function)
{
    char words[ONXI_LABEL_MAX];
    call_words(words, function);
    return onxi_arena_printf(arena, "%.*s%s", ONX_ARG(path), words);
}

/* ---- following paths ---- */

onxi_path_cursor onxi_path_begin(onx_kind kind, const void *root, onx_str path)
{
    return (onxi_path_cursor){ .table = onxi_messages[kind], .message = root, .rest = path };
}

static void skip(onxi_path_cursor *c, size_t n)
{
    c->rest.ptr += n;
    c->rest.len -= n;
}

static bool skip_text(onxi_path_cursor *c, const char *words, size_t len)
{
    if (len > c->rest.len || memcmp(c->rest.ptr, words, len) != 0)
        return false;
    skip(c, len);
    return true;
}

/* Parses [3]; false if it is malformed. */
static bool take_index(onxi_path_cursor *c)
{
    uint64_t index = 0;
    size_t n = 1;
    for (; n < c->rest.len && c->rest.ptr[n] >= '0' && c->rest.ptr[n] <= '9' && index < ONXI_PATH_NO_INDEX; n++)
        index = index * 10 + (uint64_t)(c->rest.ptr[n] - '0');
    if (n == 1 || n >= c->rest.len || c->rest.ptr[n] != ']' || index >= ONXI_PATH_NO_INDEX)
        return false;
    c->index = (uint32_t)index;
    skip(c, n + 1);
    return true;
}

static void find_member(onxi_path_cursor *c, const onxi_field *field)
{
    bool repeated = (field->flags & ONXI_REPEATED) != 0;
    onxi_place place = onxi_field_place(c->table, field, c->message);
    c->member = place.value;
    if (repeated && c->index != ONXI_PATH_NO_INDEX && place.value) {
        const char *elements;
        memcpy(&elements, place.value, sizeof elements);
        c->member = c->index < onxi_field_count(c->table, field, c->message)
                        ? elements + (size_t)c->index * onxi_field_size(field)
                        : NULL;
    }
    c->message = NULL;
    if (field->type == ONXI_MESSAGE && c->member && repeated == (c->index != ONXI_PATH_NO_INDEX)) {
        memcpy(&c->message, c->member, sizeof c->message);
        c->table = field->message;
    }
}

/* .body is short for .attribute[i] "body".g */
static bool take_subgraph(onxi_path_cursor *c, onx_str name)
{
    const onx_node *node = c->table->kind == ONX_KIND_NODE ? c->message : NULL;
    const onx_attribute *a = NULL;
    uint32_t count;
    for (uint32_t i = 0; node && !a && i < node->attribute_count; i++)
        if (onx_str_equal(onx_view(node->attribute[i]->name), name))
            a = node->attribute[i];
    onx_graph *const *graph = a ? onx_attribute_value(a, ONX_SLOT_G, &count) : NULL;
    if (!graph || !*graph)
        return false;
    c->field = NULL;
    c->index = ONXI_PATH_NO_INDEX;
    c->member = c->message = *graph;
    c->table = onxi_messages[ONX_KIND_GRAPH];
    return true;
}

bool onxi_path_next(onxi_path_cursor *c)
{
    char label[ONXI_LABEL_MAX];
    if (!c->message || !c->rest.len || (c->begun && !skip_text(c, ".", 1)))
        return false;
    c->begun = true;
    onx_str name = step_of(c->rest);
    const onxi_field *field = name.len ? find_field(c->table, name) : NULL;
    skip(c, name.len);
    if (!field)
        return name.len && take_subgraph(c, name);
    c->index = ONXI_PATH_NO_INDEX;
    if (c->rest.len && c->rest.ptr[0] == '[' && (!(field->flags & ONXI_REPEATED) || !take_index(c)))
        return false;
    c->field = field;
    find_member(c, field);
    if (c->message)
        skip_text(c, label, onxi_path_label(label, (onx_kind)c->table->kind, c->message));
    return true;
}

bool onxi_path_enter_call(onxi_path_cursor *c, const onx_function *function)
{
    char words[ONXI_LABEL_MAX];
    call_words(words, function);
    if (!c->begun || !c->message || !skip_text(c, words, strlen(words)))
        return false;
    c->table = onxi_messages[ONX_KIND_FUNCTION];
    c->message = c->member = function;
    c->begun = false; /* the next step is not preceded by a dot */
    return true;
}
