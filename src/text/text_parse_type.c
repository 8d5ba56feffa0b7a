/* text_parse_type.c - types and shapes of the text syntax. */
#include "text/text.h"

static const char *const constructors[] = { "seq", "optional", "map", "sparse_tensor", "opaque" };

bool onxi_text_is_type_word(onx_str word)
{
    for (size_t i = 0; i < sizeof constructors / sizeof *constructors; i++)
        if (onx_str_is(word, constructors[i]))
            return true;
    return onx_dtype_find(word) != ONX_UNDEFINED;
}

/* prim = "float" | "uint8" | ...; `what` describes the use of the type for messages, or is NULL */
static bool parse_prim(onxi_text_parser *p, int32_t *out, const char *what)
{
    onxi_text_gap(p);
    const char *at = p->at;
    onx_str word = onxi_text_take_ident(p);
    onx_dtype dtype = onx_dtype_find(word);
    if (dtype == ONX_UNDEFINED) {
        onxi_text_hint hint;
        p->at = at;
        return what
                   ? onxi_text_parse_error(p, at, "an element type",
                                           onxi_text_is_type_word(word) ? NULL : onxi_text_hint_for_type(word, &hint),
                                           "%s must be an element type", what)
                   : onxi_text_parse_error(p, at, "a type", onxi_text_hint_for_type(word, &hint), "this is not a type");
    }
    *out = (int32_t)dtype;
    return true;
}

/* dim = "?" | ident | string | int */
static bool parse_dim(onxi_text_parser *p, onx_dimension **out)
{
    onx_dimension *dim = ONXI_NEW(p->arena, onx_dimension);
    if (!dim)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    *out = dim;
    char c = onxi_text_peek(p);
    onxi_text_mark_part(p, dim, p->at);
    if (onxi_text_take(p, '?'))
        return true;
    if (c == '"' || onxi_text_char_is(c, ONXI_CHAR_LETTER)) {
        dim->has |= onx_dimension_has_dim_param;
        return onxi_text_take_name(p, &dim->dim_param, "a dimension");
    }
    if (c != '-' && !onxi_text_char_is(c, ONXI_CHAR_DIGIT))
        return onxi_text_parse_error(p, p->at, "a number, a name or ?",
                                     c == '*' ? "an unknown dimension is ?" : onxi_text_hint_behind_comma(p),
                                     "a dimension is missing");
    int64_t value;
    if (!onxi_text_take_int(p, &value, "a dimension"))
        return false;
    ONX_SET(dimension, dim, dim_value, value);
    return true;
}

/* dims = "[" [ dim { "," dim } ] "]"; the opening bracket has been consumed */
bool onxi_text_parse_shape(onxi_text_parser *p, onx_tensor_shape *shape)
{
    size_t base = p->stack_count;
    if (!onxi_text_parse_enter(p, 1))
        return false;
    do {
        onx_dimension *dim = NULL;
        if (!parse_dim(p, &dim) || !onxi_text_push_ptr(p, dim)) {
            p->stack_count = base;
            return false;
        }
    } while (onxi_text_take(p, ','));
    p->depth--;
    shape->dim = onxi_text_pop_pointers(p, base, &shape->dim_count);
    if (p->fatal || onxi_text_take(p, ']'))
        return !p->fatal;
    char c = onxi_text_peek(p);
    return onxi_text_unexpected(p, "',' or ']'", c && strchr("+-*/", c) ? "an expression is quoted: \"N + 1\"" : NULL,
                                "the shape");
}

/* prim [ dims ]; sets the three members that tensor and sparse tensor types have in common. */
static bool parse_element_type(onxi_text_parser *p, int32_t *elem_type, onx_tensor_shape **shape, const char *what)
{
    if (!parse_prim(p, elem_type, what))
        return false;
    bool brackets = onxi_text_take(p, '[');
    if (brackets && onxi_text_take(p, ']'))
        return true;
    *shape = ONXI_NEW(p->arena, onx_tensor_shape);
    if (!*shape)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    if (!brackets)
        return true;
    if (!onxi_text_parse_enter(p, 1) || !onxi_text_parse_shape(p, *shape))
        return false;
    p->depth--;
    return true;
}

/* "(" [ ident { "." ident } [ "," ident ] ] ")"; a single argument is the name, even if it has dots */
static bool parse_opaque(onxi_text_parser *p, onx_type_opaque *opaque)
{
    onx_bytes first = { 0 };
    if (!onxi_text_expect(p, '(', "'('", "the opaque type"))
        return false;
    if (onxi_text_take(p, ')'))
        return true;
    if (onxi_text_peek(p) == '"') {
        if (!onxi_text_take_string(p, &first))
            return false;
    } else {
        size_t len = 0;
        const char *start = p->at;
        bool spaced = false;
        do {
            onxi_text_gap(p);
            onx_str part = onxi_text_take_ident(p);
            if (!part.len)
                return onxi_text_parse_error(p, p->at, "a name", NULL, "a part of an opaque type's name is missing");
            spaced |= part.ptr != start + len;
            len += part.len + 1;
        } while (onxi_text_take(p, '.'));
        len--;
        char *joined = (char *)(uintptr_t)start;
        if (spaced) { /* white space within the dotted name */
            joined = onxi_arena_get(p->arena, len);
            if (!joined)
                return onxi_text_parse_abort(p, ONX_E_MEMORY);
            size_t n = 0;
            for (const char *s = start; n < len; s++)
                if (*s == '.' || onxi_text_char_is(*s, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT))
                    joined[n++] = *s;
                else if (*s == '#')
                    s = memchr(s, '\n', (size_t)(p->end - s));
        }
        if (!onxi_bytes_refer(p->arena, joined, len, &first))
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
    }
    if (onxi_text_take(p, ',')) {
        onx_bytes name;
        if (!onxi_text_take_name(p, &name, "a name"))
            return false;
        ONX_SET(type_opaque, opaque, domain, first);
        ONX_SET(type_opaque, opaque, name, name);
    } else {
        ONX_SET(type_opaque, opaque, name, first);
    }
    return onxi_text_expect(p, ')', "')'", "the opaque type");
}

/* "(" type ")" */
static bool parse_inner(onxi_text_parser *p, onx_type **out, const char *context)
{
    return onxi_text_expect(p, '(', "'('", context) && onxi_text_parse_type(p, out) &&
           onxi_text_expect(p, ')', "')'", context);
}

static bool parse_map(onxi_text_parser *p, onx_type_map *map)
{
    if (!onxi_text_expect(p, '(', "'('", "the map type") || !parse_prim(p, &map->key_type, "the key of a map"))
        return false;
    map->has = onx_type_map_has_key_type | onx_type_map_has_value_type;
    return onxi_text_expect(p, ',', "','", "the map type") && onxi_text_parse_type(p, &map->value_type) &&
           onxi_text_expect(p, ')', "')'", "the map type");
}

static bool parse_sparse(onxi_text_parser *p, onx_type_sparse_tensor *sparse)
{
    if (!onxi_text_expect(p, '(', "'('", "the sparse tensor type") ||
        !parse_element_type(p, &sparse->elem_type, &sparse->shape, "what a sparse tensor holds"))
        return false;
    sparse->has = onx_type_sparse_tensor_has_elem_type | (sparse->shape ? onx_type_sparse_tensor_has_shape : 0u);
    return onxi_text_expect(p, ')', "')'", "the sparse tensor type");
}

/* Creates the message of one alternative of the oneof; false when out of memory. */
#define NEW_PART(p, type, member, T)                                                                                   \
    (((type)->member = ONXI_NEW((p)->arena, T)) != NULL ? ((type)->has |= (uint32_t)onx_type_has_##member, true)       \
                                                        : onxi_text_parse_abort((p), ONX_E_MEMORY))

static bool parse_type_body(onxi_text_parser *p, onx_type *type)
{
    onx_str word = onxi_text_look_ident(p);
    if (onx_str_is(word, "seq")) {
        p->at += word.len;
        if (!NEW_PART(p, type, sequence_type, onx_type_sequence))
            return false;
        type->sequence_type->has = onx_type_sequence_has_elem_type;
        return parse_inner(p, &type->sequence_type->elem_type, "the sequence type");
    }
    if (onx_str_is(word, "optional")) {
        p->at += word.len;
        if (!NEW_PART(p, type, optional_type, onx_type_optional))
            return false;
        type->optional_type->has = onx_type_optional_has_elem_type;
        return parse_inner(p, &type->optional_type->elem_type, "the optional type");
    }
    if (onx_str_is(word, "map")) {
        p->at += word.len;
        return NEW_PART(p, type, map_type, onx_type_map) && parse_map(p, type->map_type);
    }
    if (onx_str_is(word, "sparse_tensor")) {
        p->at += word.len;
        return NEW_PART(p, type, sparse_tensor_type, onx_type_sparse_tensor) &&
               parse_sparse(p, type->sparse_tensor_type);
    }
    if (onx_str_is(word, "opaque")) {
        p->at += word.len;
        return NEW_PART(p, type, opaque_type, onx_type_opaque) && parse_opaque(p, type->opaque_type);
    }
    if (!NEW_PART(p, type, tensor_type, onx_type_tensor))
        return false;
    onx_type_tensor *tensor = type->tensor_type;
    if (!parse_element_type(p, &tensor->elem_type, &tensor->shape, NULL))
        return false;
    tensor->has = onx_type_tensor_has_elem_type | (tensor->shape ? onx_type_tensor_has_shape : 0u);
    return true;
}

/* type = prim [ dims ] | "seq" "(" type ")" | "optional" "(" type ")" | "map" "(" prim "," type ")"
 *      | "sparse_tensor" "(" prim [ dims ] ")" | "opaque" "(" ... ")" */
bool onxi_text_parse_type(onxi_text_parser *p, onx_type **out)
{
    onx_type *type = ONXI_NEW(p->arena, onx_type);
    *out = type;
    if (!type)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    onxi_text_gap(p);
    onxi_text_mark_part(p, type, p->at);
    if (!onxi_text_parse_enter(p, 2)) /* the type, and the message of its kind */
        return false;
    uint32_t depth = p->depth;
    if (!p->target[ONXI_TARGET_TYPE])
        p->target[ONXI_TARGET_TYPE] = type; /* for comments on a type that is a text of its own */
    bool ok = parse_type_body(p, type);
    p->depth = depth - 2;
    return ok;
}
