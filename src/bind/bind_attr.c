/* bind_attr.c - the values of a node's attributes: resolves references to function parameters, defaults, and values
 * that were not written. */
#include "bind/bind.h"

#include <stdio.h>

/* ---- parameters of functions ---- */

onx_status onxi_parameters_open(onxi_parameters *parameters, onx_arena *arena, const onx_function *function)
{
    const uint32_t plain = function->attribute_count, all = plain + function->attribute_proto_count;
    *parameters = (onxi_parameters){ .function = function, .by_name = onxi_dict_in_arena(arena) };
    parameters->presets = (const onx_attribute **)ONXI_ARRAY(arena, void *, (size_t)all + 1);
    if (!parameters->presets)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < all; i++) {
        const onx_attribute *preset = i < plain ? NULL : function->attribute_proto[i - plain];
        const onx_str name = onx_view(preset ? preset->name : function->attribute[i]);
        const onxi_dict_entry *entry = onxi_dict_at(&parameters->by_name, name, parameters->count, NULL);
        if (!entry)
            return ONX_E_MEMORY;
        const uint32_t at = entry->value;
        if (at >= parameters->count)
            parameters->count = at + 1;
        if (preset && !parameters->presets[at] && !onx_view(onx_attribute_more(preset)->ref_attr_name).len)
            parameters->presets[at] = preset;
    }
    return ONX_OK;
}

static uint32_t find(const onxi_parameters *parameters, onx_str name)
{
    const onxi_dict_entry *entry = onxi_dict_find(&parameters->by_name, name);
    return entry ? entry->value : ONXI_UNBOUND;
}

onx_status onxi_arguments_make(onxi_arguments *arguments, const onxi_parameters *parameters, onx_arena *arena,
                               const onx_attribute *const *list, uint32_t count, const onxi_arguments *outer)
{
    *arguments = (onxi_arguments){ .parameters = parameters, .values = parameters->presets };
    if (!count || !parameters->count)
        return ONX_OK;
    arguments->values = (const onx_attribute **)ONXI_ARRAY(arena, void *, parameters->count);
    if (!arguments->values)
        return ONX_E_MEMORY;
    for (uint32_t i = count; i-- > 0;) { /* of two with the same name, the first one counts */
        const uint32_t at = find(parameters, onx_view(list[i]->name));
        if (at != ONXI_UNBOUND)
            arguments->values[at] = onxi_arguments_resolve(outer, list[i]);
    }
    for (uint32_t i = 0; i < parameters->count; i++)
        if (!arguments->values[i])
            arguments->values[i] = parameters->presets[i];
    return ONX_OK;
}

const onx_attribute *onxi_arguments_resolve(const onxi_arguments *arguments, const onx_attribute *attribute)
{
    const onx_str name = attribute->extra ? onx_view(onx_attribute_more(attribute)->ref_attr_name) : (onx_str){ 0 };
    if (!name.len)
        return attribute;
    const uint32_t at = arguments ? find(arguments->parameters, name) : ONXI_UNBOUND;
    return at == ONXI_UNBOUND ? NULL : arguments->values[at];
}

/* ---- values ---- */

static onx_status at_fault(onxi_attr_fault *fault, const char *rule, onx_str name, const char *format, const char *a,
                           const char *b)
{
    char quoted[80];
    const int len = name.len < sizeof quoted ? (int)name.len : (int)sizeof quoted - 1;
    (void)snprintf(quoted, sizeof quoted, "%.*s", len, name.len ? name.ptr : "");
    fault->rule = rule;
    (void)snprintf(fault->text, sizeof fault->text, format, quoted, a, b);
    return ONX_E_INVALID;
}

static const char *type_name(uint8_t type)
{
    const char *name = onx_attribute_type_name(type);
    return name ? name : "none";
}

static uint8_t type_of(const onx_attribute *a)
{
    if (ONX_HAS(attribute, a, type) && onxi_attribute_kind_of(a->type)->slot != ONX_SLOT_NONE)
        return (uint8_t)a->type;
    return (uint8_t)onxi_attribute_type_in(a->slot);
}

static void copy_value(onxi_attr_value *out, const void *from)
{
    switch (out->type) {
    case ONX_ATTR_FLOAT:
        out->f = *(const float *)from;
        break;
    case ONX_ATTR_INT:
        out->i = *(const int64_t *)from;
        break;
    case ONX_ATTR_STRING:
        out->s = onx_view(*(const onx_bytes *)from);
        break;
    case ONX_ATTR_TENSOR:
        out->t = *(onx_tensor *const *)from;
        break;
    case ONX_ATTR_GRAPH:
        out->g = *(onx_graph *const *)from;
        break;
    case ONX_ATTR_SPARSE_TENSOR:
        out->sparse = *(onx_sparse_tensor *const *)from;
        break;
    case ONX_ATTR_TYPE_PROTO:
        out->tp = *(onx_type *const *)from;
        break;
    default:
        out->list = from;
        break;
    }
}

/* `want`: the type that the row declares; UNDEFINED: any. */
static onx_status read_value(const onx_attribute *a, uint8_t want, onxi_attr_value *out, onxi_attr_fault *fault)
{
    const onx_str name = out->name;
    uint8_t type = type_of(a);
    if (type == ONX_ATTR_UNDEFINED)
        type = want;
    if (want != ONX_ATTR_UNDEFINED && type != want)
        return at_fault(fault, "ND-19", name, "attribute %s is of type %s, expected %s", type_name(type),
                        type_name(want));
    *out = (onxi_attr_value){ .name = name, .type = type, .given = true, .source = a };
    if (type == ONX_ATTR_UNDEFINED)
        return ONX_OK;
    uint32_t count = 0;
    const onxi_attribute_kind *kind = onxi_attribute_kind_of(type);
    const void *value = onx_attribute_value(a, kind->slot, &count);
    if (value) {
        copy_value(out, value);
        out->count = kind->list ? count : 0;
        if (!kind->needed || out->t)
            return ONX_OK;
    } else if (a->slot != ONX_SLOT_NONE && a->slot != kind->slot) {
        return at_fault(fault, "A-03", name, "the value of attribute %s is not in the field of type %s%s",
                        type_name(type), "");
    }
    if (kind->needed)
        return at_fault(fault, "A-06", name, "attribute %s of type %s has no value%s", type_name(type), "");
    return ONX_OK; /* proto3 does not write 0, 0.0 and empty values */
}

/* Without a row, the attributes are those that the node gives. */
static onx_status read_open(const onx_node *node, const onxi_arguments *arguments, onxi_attr_value *values,
                            uint32_t *count, onxi_attr_fault *fault)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = onxi_arguments_resolve(arguments, node->attribute[i]);
        if (!a)
            continue;
        values[*count].name = onx_view(node->attribute[i]->name);
        ONX_TRY(read_value(a, ONX_ATTR_UNDEFINED, &values[*count], fault));
        ++*count;
    }
    return ONX_OK;
}

static onx_status read_declared(const onxi_bound *bound, const onx_node *node, const onxi_arguments *arguments,
                                onxi_attr_value *values, onxi_attr_fault *fault)
{
    uint32_t next = 0, required = 0; /* nodes mostly list attributes in the order of the row */
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_str name = onx_view(node->attribute[i]->name);
        uint32_t at = next < bound->attr_count && onx_str_equal(values[next].name, name) ? next : 0;
        while (at < bound->attr_count && !onx_str_equal(values[at].name, name))
            at++;
        if (at == bound->attr_count || values[at].given)
            continue; /* unknown to the operator (ND-17), or a duplicate */
        next = at + 1;
        const onx_attribute *a = onxi_arguments_resolve(arguments, node->attribute[i]);
        if (!a)
            continue;
        ONX_TRY(read_value(a, bound->schema->attrs[at].type, &values[at], fault));
        required += bound->schema->attrs[at].required;
    }
    for (uint32_t i = 0; i < bound->attr_count && required < bound->required; i++)
        if (bound->schema->attrs[i].required && !values[i].given)
            return at_fault(fault, "ND-18", values[i].name, "attribute %s is missing%s%s", "", "");
    return ONX_OK;
}

/* Are the attributes only those that the node gives? */
static bool is_open(const onxi_bound *bound)
{
    return !bound || bound->kind != ONXI_BOUND_OPERATOR || bound->schema->flags & ONXI_OP_OPEN;
}

onxi_attr_value onxi_bind_attribute(const onxi_bound *bound, const onx_node *node, const char *name)
{
    onxi_attr_fault fault;
    onxi_attr_value value = { .name = onx_str_of(name) };
    uint8_t want = ONX_ATTR_UNDEFINED;
    uint32_t at = 0;
    if (!is_open(bound)) {
        while (at < bound->attr_count && !onx_str_equal(bound->defaults[at].name, value.name))
            at++;
        if (at == bound->attr_count)
            return value; /* the operator does not have it (ND-17) */
        want = bound->schema->attrs[at].type;
    }
    const onx_attribute *a = onx_node_attribute(node, name);
    if (!a)
        return is_open(bound) ? value : bound->defaults[at];
    if (!onxi_arguments_resolve(NULL, a) || read_value(a, want, &value, &fault) != ONX_OK)
        return (onxi_attr_value){ .name = onx_str_of(name), .given = true, .source = a };
    return value;
}

int64_t onxi_bind_int(const onxi_bound *bound, const onx_node *node, const char *name)
{
    const onxi_attr_value value = onxi_bind_attribute(bound, node, name);
    return value.type == ONX_ATTR_INT ? value.i : 0;
}

float onxi_bind_float(const onxi_bound *bound, const onx_node *node, const char *name)
{
    const onxi_attr_value value = onxi_bind_attribute(bound, node, name);
    return value.type == ONX_ATTR_FLOAT ? value.f : 0;
}

const int64_t *onxi_bind_ints(const onxi_bound *bound, const onx_node *node, const char *name, uint32_t *count)
{
    const onxi_attr_value value = onxi_bind_attribute(bound, node, name);
    *count = value.type == ONX_ATTR_INTS ? value.count : 0;
    return *count ? value.list : NULL;
}

onx_status onxi_bind_attributes(const onxi_bound *bound, const onx_node *node, const onxi_arguments *arguments,
                                onx_arena *arena, onxi_attr_value *room, uint32_t room_count, onxi_attrs *out,
                                onxi_attr_fault *fault)
{
    const bool open = is_open(bound);
    const uint32_t count = open ? node->attribute_count : bound->attr_count;
    *out = (onxi_attrs){ .values = open ? NULL : bound->defaults, .count = open ? 0 : count };
    if (!count || (!node->attribute_count && !bound->required))
        return ONX_OK;
    onxi_attr_value *values = count <= room_count ? room : ONXI_ARRAY(arena, onxi_attr_value, count);
    if (!values)
        return ONX_E_MEMORY;
    out->values = values;
    if (open)
        return read_open(node, arguments, values, &out->count, fault);
    memcpy(values, bound->defaults, count * sizeof *values);
    return read_declared(bound, node, arguments, values, fault);
}

/* ---- comparing ---- */

/* The value as bytes; false for lists of strings and messages, which are compared where they come from. */
static bool bytes_of(const onxi_attr_value *a, onx_str *out)
{
    switch (a->type) {
    case ONX_ATTR_INT:
        *out = onx_str_make((const char *)&a->i, sizeof a->i);
        return true;
    case ONX_ATTR_FLOAT: /* bit by bit: a zero may be negative */
        *out = onx_str_make((const char *)&a->f, sizeof a->f);
        return true;
    case ONX_ATTR_STRING:
        *out = a->s;
        return true;
    case ONX_ATTR_INTS:
        *out = onx_str_make(a->list, a->count * sizeof(int64_t));
        return true;
    case ONX_ATTR_FLOATS:
        *out = onx_str_make(a->list, a->count * sizeof(float));
        return true;
    default:
        *out = (onx_str){ 0 };
        return !a->source; /* absent, or the default of the version */
    }
}

static bool equal_attribute(const onxi_attr_value *a, const onxi_attr_value *b)
{
    onx_str x, y;
    if (a->type != b->type || a->given != b->given || a->count != b->count || !onx_str_equal(a->name, b->name))
        return false;
    const bool plain = bytes_of(a, &x);
    if (plain != bytes_of(b, &y))
        return false;
    return plain ? onx_str_equal(x, y) : onx_message_equal(ONX_KIND_ATTRIBUTE, a->source, b->source);
}

bool onxi_attrs_equal(const onxi_attrs *a, const onxi_attrs *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!equal_attribute(&a->values[i], &b->values[i]))
            return false;
    return true;
}

uint64_t onxi_attrs_hash(onxi_secret secret, const onxi_attrs *attrs)
{
    uint64_t hash = onxi_hash_word(secret, attrs->count);
    for (uint32_t i = 0; i < attrs->count; i++) {
        const onxi_attr_value *a = &attrs->values[i];
        onx_str bytes;
        hash = onxi_hash_word(onxi_hash_then(secret, hash), (uint64_t)a->type << 1 | a->given);
        if (!bytes_of(a, &bytes))
            hash = onxi_message_hash(onxi_hash_then(secret, hash), ONX_KIND_ATTRIBUTE, a->source);
        else if (bytes.len)
            hash = onxi_hash(onxi_hash_then(secret, hash), bytes.ptr, bytes.len);
    }
    return hash;
}
