/* op_body.c - operators in terms of others: the parts of a row that apply to a call become a function. */
#include "op/op.h"

#include <onx/text.h>

uint64_t onxi_body_choose(onxi_call *call)
{
    uint64_t parts = 0, bit = 1;
    for (const onxi_body_part *p = call->schema->body_parts; p && p->nodes; p++, bit <<= 1)
        if (!p->when || p->when(call))
            parts |= bit;
    return parts;
}

/* ---- the text of a function ---- */

/* `text` is copied for each extension, because bodies are short. */
static void put(onx_arena *arena, onx_str *text, const char *before, const char *more)
{
    *text = onxi_arena_printf(arena, "%.*s%s%s", ONX_ARG(*text), before, more);
}

static void put_ports(onx_arena *arena, onx_str *text, const onxi_port *ports)
{
    for (const onxi_port *p = ports; p && p->name; p++)
        put(arena, text, p == ports ? "(" : ", ", p->name);
    put(arena, text, ports && ports->name ? ")" : "()", "");
}

/* "float", from "FLOAT" */
static void put_type(onx_arena *arena, onx_str *text, int type)
{
    char word[32];
    size_t n = 0;
    for (const char *c = onx_attribute_type_name(type); c && *c && n < sizeof word - 1; c++)
        word[n++] = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    word[n] = 0;
    put(arena, text, ": ", word);
}

/* The attributes of the row, with the defaults for those that a call omits. */
static void put_attributes(onx_arena *arena, onx_str *text, const onxi_attr *attrs)
{
    for (const onxi_attr *a = attrs; a && a->name; a++) {
        put(arena, text, a == attrs ? "<" : ", ", a->name);
        if (!a->default_text)
            continue;
        put_type(arena, text, a->type);
        put(arena, text, " = ", a->default_text);
    }
    if (attrs && attrs->name)
        put(arena, text, ">", " ");
}

/* A body may use other operators of the same domain. */
static bool names_own_domain(const onxi_schema *schema)
{
    const char *domain = onxi_schema_domain(schema);
    for (const onxi_body_part *p = schema->body_parts; *domain && p && p->nodes; p++)
        if (strstr(p->nodes, domain))
            return true;
    return false;
}

onx_status onxi_body_function(onx_ctx *cx, const onxi_schema *schema, uint64_t parts, onx_doc **out)
{
    onx_arena *arena;
    *out = NULL;
    ONX_TRY(onx_arena_new(cx, &arena));
    const char *domain = onxi_schema_domain(schema);
    onx_str own = onx_str_of("");
    if (names_own_domain(schema))
        own = onxi_arena_printf(arena, ", \"%s\": %d", domain, schema->since);
    onx_str text = onxi_arena_printf(arena, "<domain: \"%s\", opset_import: [\"\": %d%.*s]> %s ", domain,
                                     schema->body_opset, ONX_ARG(own), schema->name);
    put_attributes(arena, &text, schema->attrs);
    put_ports(arena, &text, schema->inputs);
    put(arena, &text, " => ", "");
    put_ports(arena, &text, schema->outputs);
    put(arena, &text, " {\n", "");
    for (const onxi_body_part *p = schema->body_parts; p && p->nodes; p++, parts >>= 1)
        if (parts & 1)
            put(arena, &text, p->nodes, "\n");
    put(arena, &text, "}", "");
    onx_status status = text.len ? onx_text_parse(cx, ONX_KIND_FUNCTION, text, 0, out) : ONX_E_MEMORY;
    onx_arena_free(arena);
    return status;
}

onx_status onxi_function_of_text(onx_ctx *cx, onx_str text, onx_doc **out)
{
    return onx_text_parse(cx, ONX_KIND_FUNCTION, text, 0, out);
}
