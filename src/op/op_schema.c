/* op_schema.c - reads rows: type sets as text, ports and attributes. */
#include "op/op.h"

/* Appends as much of `part` as fits. */
static void append(char text[ONXI_TYPE_TEXT], size_t *len, const char *part, size_t part_len)
{
    if (part_len > ONXI_TYPE_TEXT - 1 - *len)
        part_len = ONXI_TYPE_TEXT - 1 - *len;
    memcpy(text + *len, part, part_len);
    *len += part_len;
    text[*len] = 0;
}

bool onxi_type_set_next(const onxi_type_set *set, uint32_t *at, char text[ONXI_TYPE_TEXT])
{
    static const struct {
        const char *open, *close;
    } forms[] = { { "tensor(", ")" },
                  { "sparse_tensor(", ")" },
                  { "seq(tensor(", "))" },
                  { "optional(tensor(", "))" },
                  { "optional(seq(tensor(", ")))" } };
    const uint32_t bits[] = { set->tensor, set->sparse_tensor, set->seq, set->optional, set->optional_seq };
    const uint32_t others = 32 * (uint32_t)(sizeof forms / sizeof *forms);
    size_t len = 0;
    for (; *at < others; ++*at) {
        const uint32_t form = *at / 32, dtype = *at % 32;
        if (bits[form] >> dtype & 1 && onx_dtype_name(dtype)) {
            append(text, &len, forms[form].open, strlen(forms[form].open));
            append(text, &len, onx_dtype_name(dtype), strlen(onx_dtype_name(dtype)));
            append(text, &len, forms[form].close, strlen(forms[form].close));
            ++*at;
            return true;
        }
    }
    if (!set->other)
        return false;
    const char *rest = set->other + (*at - others);
    rest += strspn(rest, " ");
    if (!*rest)
        return false;
    append(text, &len, rest, strcspn(rest, " "));
    *at = others + (uint32_t)(rest - set->other) + (uint32_t)strcspn(rest, " ");
    return true;
}

bool onxi_type_set_add(onxi_type_set *set, onx_str type)
{
    static const char *const open[] = { "tensor(", "sparse_tensor(", "seq(tensor(", "optional(tensor(",
                                        "optional(seq(tensor(" };
    uint32_t *const bits[] = { &set->tensor, &set->sparse_tensor, &set->seq, &set->optional, &set->optional_seq };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        size_t len = strlen(open[i]), closing = 0;
        for (const char *c = open[i]; *c; c++)
            closing += *c == '(';
        if (type.len <= len + closing || memcmp(type.ptr, open[i], len) != 0)
            continue;
        for (size_t j = 0; j < closing; j++)
            if (type.ptr[type.len - 1 - j] != ')')
                return false;
        const onx_dtype dtype = onx_dtype_find(onx_str_make(type.ptr + len, type.len - len - closing));
        if (dtype == ONX_UNDEFINED)
            return false;
        *bits[i] |= UINT32_C(1) << dtype;
        return true;
    }
    return false;
}

const onxi_port *onxi_port_at(const onxi_port *ports, uint32_t index)
{
    for (uint32_t i = 0; ports && ports[i].name; i++)
        if (i == index || (ports[i].flags & ONXI_PORT_VARIADIC && index > i))
            return &ports[i];
    return NULL;
}

const onxi_type_constraint *onxi_schema_type(const onxi_schema *schema, const char *name)
{
    for (const onxi_type_constraint *t = schema->types; t && t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

const onxi_attr *onxi_schema_attr(const onxi_schema *schema, onx_str name)
{
    for (const onxi_attr *a = schema->attrs; a && a->name; a++)
        if (onx_str_is(name, a->name))
            return a;
    return NULL;
}
