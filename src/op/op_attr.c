/* op_attr.c - attribute values: looking them up, and the defaults for attributes that a node omits. */
#include "op/op.h"

#include <errno.h>
#include <stdlib.h>

const onxi_attr_value *onxi_attrs_find(const onxi_attrs *attrs, const char *name)
{
    const size_t len = strlen(name);
    for (uint32_t i = 0; attrs && i < attrs->count; i++) {
        const onx_str has = attrs->values[i].name;
        if (has.len == len && memcmp(has.ptr, name, len) == 0)
            return &attrs->values[i];
    }
    return NULL;
}

const onxi_attr_value *onxi_attrs_get(const onxi_attrs *attrs, const char *name, onx_attribute_type type)
{
    const onxi_attr_value *value = onxi_attrs_find(attrs, name);
    return value && value->type == type ? value : NULL;
}

int64_t onxi_attrs_int(const onxi_attrs *attrs, const char *name)
{
    const onxi_attr_value *value = onxi_attrs_get(attrs, name, ONX_ATTR_INT);
    return value ? value->i : 0;
}

float onxi_attrs_float(const onxi_attrs *attrs, const char *name)
{
    const onxi_attr_value *value = onxi_attrs_get(attrs, name, ONX_ATTR_FLOAT);
    return value ? value->f : 0;
}

bool onxi_attrs_given(const onxi_attrs *attrs, const char *name)
{
    const onxi_attr_value *value = onxi_attrs_find(attrs, name);
    return value && value->given;
}

int64_t onxi_attr_implied(const char *name)
{
    static const char *const ones[] = { "strides", "dilations" };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (strcmp(ones[i], name) == 0)
            return 1;
    return 0; /* pads, output_padding */
}

bool onxi_schema_has_attr(const onxi_schema *schema, const char *name)
{
    const onxi_schema *row = schema;
    if (!row || row->flags & ONXI_OP_OPEN)
        return true; /* nothing is known about the operator */
    const onxi_operator *operator_ =
        onxi_operator_at(onx_str_of(onxi_schema_domain(row)), onx_str_of(row->name), row->since);
    for (row = operator_ ? operator_->rows : row; row->name; row++)
        if (onxi_schema_attr(row, onx_str_of(name)))
            return true;
    return false;
}

/* ---- defaults from rows ---- */

static bool parse_number(onx_str text, uint8_t type, onxi_attr_value *out)
{
    bool overflow;
    if (type == ONX_ATTR_INT) {
        char *end = NULL;
        errno = 0;
        out->i = strtoll(text.ptr, &end, 10);
        return text.len && errno == 0 && end == onxi_str_end(text);
    }
    return onxi_parse_f32(text, &out->f, &overflow);
}

static onx_str trimmed(const char *from, const char *to)
{
    while (from < to && *from == ' ')
        from++;
    while (from < to && to[-1] == ' ')
        to--;
    return onx_str_make(from, (size_t)(to - from));
}

/* Removes the quotes; defaults contain no escapes, and list elements no commas. */
static bool parse_text(onx_str text, onx_str *out)
{
    if (text.len < 2 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"')
        return false;
    *out = onx_str_make(text.ptr + 1, text.len - 2);
    return true;
}

static onx_status parse_element(onx_str text, onx_arena *arena, onxi_attr_value *list, void *elements)
{
    onxi_attr_value number = { .type = 0 };
    onx_str inside;
    switch (list->type) {
    case ONX_ATTR_INTS:
        if (!parse_number(text, ONX_ATTR_INT, &number))
            return ONX_E_INVALID;
        ((int64_t *)elements)[list->count++] = number.i;
        return ONX_OK;
    case ONX_ATTR_FLOATS:
        if (!parse_number(text, ONX_ATTR_FLOAT, &number))
            return ONX_E_INVALID;
        ((float *)elements)[list->count++] = number.f;
        return ONX_OK;
    default:
        return parse_text(text, &inside) ? onx_arena_keep(arena, inside, &((onx_bytes *)elements)[list->count++])
                                         : ONX_E_INVALID;
    }
}

/* "[1, 2]" */
static onx_status parse_list(const char *text, onx_arena *arena, onxi_attr_value *out)
{
    const char *end = strchr(text, ']');
    uint32_t room = 1;
    if (*text != '[' || !end ||
        (out->type != ONX_ATTR_INTS && out->type != ONX_ATTR_FLOATS && out->type != ONX_ATTR_STRINGS))
        return ONX_E_INVALID;
    for (const char *c = text; c < end; c++)
        room += *c == ',';
    void *elements = onxi_arena_array(arena, room, sizeof(int64_t)); /* the largest of the three types */
    if (!elements)
        return ONX_E_MEMORY;
    out->list = elements;
    for (const char *at = text + 1; at < end;) {
        const size_t len = strcspn(at, ",]");
        ONX_TRY(parse_element(trimmed(at, at + len), arena, out, elements));
        at += len + 1;
    }
    return ONX_OK;
}

onx_status onxi_attr_default(const onxi_attr *attr, onx_arena *arena, onxi_attr_value *out)
{
    const char *text = attr->default_text;
    *out = (onxi_attr_value){ .name = onx_str_of(attr->name) };
    if (!text)
        return ONX_OK;
    const size_t len = strlen(text);
    out->type = attr->type;
    switch (attr->type) {
    case ONX_ATTR_INT:
    case ONX_ATTR_FLOAT:
        return parse_number(onx_str_make(text, len), attr->type, out) ? ONX_OK : ONX_E_INVALID;
    case ONX_ATTR_STRING:
        return parse_text(onx_str_make(text, len), &out->s) ? ONX_OK : ONX_E_INVALID;
    default:
        return parse_list(text, arena, out);
    }
}

/* ---- values of attributes without a default ---- */

/* Some versions give a default only in prose: their schemas have none, and tools that list schemas must not show
 * one. */
static const struct implied {
    const char *op;
    int32_t last; /* last version */
    onxi_attr attr;
} implied[] = {
    { "Concat", 3, { .name = "axis", .type = ONX_ATTR_INT, .default_text = "1" } },
    { "Split", 1, { .name = "axis", .type = ONX_ATTR_INT, .default_text = "0" } },
    { "SequenceEmpty", INT32_MAX, { .name = "dtype", .type = ONX_ATTR_INT, .default_text = "1" } }, /* float */
    { "StringSplit", INT32_MAX, { .name = "maxsplit", .type = ONX_ATTR_INT, .default_text = "-1" } },
    { "StringSplit", INT32_MAX, { .name = "delimiter", .type = ONX_ATTR_STRING, .default_text = "\"\"" } },
};

onx_status onxi_schema_default(const onxi_schema *row, const onxi_attr *attr, onx_arena *arena, onxi_attr_value *out)
{
    const bool plain = !attr->default_text && !onxi_schema_domain(row)[0];
    for (size_t i = 0; plain && i < sizeof implied / sizeof *implied; i++)
        if (row->since <= implied[i].last && strcmp(row->name, implied[i].op) == 0 &&
            strcmp(attr->name, implied[i].attr.name) == 0)
            return onxi_attr_default(&implied[i].attr, arena, out);
    return onxi_attr_default(attr, arena, out);
}
