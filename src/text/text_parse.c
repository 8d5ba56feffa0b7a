/* text_parse.c - models, functions and graphs of the text syntax, and the entry points of the parser. */
#include "text/text.h"

#include <stddef.h>

/* ---- headers ---- */

#define ITEM(message, member, FORM, n)                                                                                 \
    {                                                                                                                  \
#member, ONXI_HEAD_##FORM, offsetof(onx_##message, member), 0, onx_##message##_has_##member, n                 \
    }
#define LIST(message, member, FORM, n)                                                                                 \
    {                                                                                                                  \
#member, ONXI_HEAD_##FORM, offsetof(onx_##message, member), offsetof(onx_##message, member##_count), 0, n      \
    }

const onxi_text_head_item onxi_text_model_items[] = {
    ITEM(model, ir_version, INT, 1),
    LIST(model, opset_import, IMPORTS, 8),
    ITEM(model, producer_name, STRING, 2),
    ITEM(model, producer_version, STRING, 3),
    ITEM(model, domain, STRING, 4),
    ITEM(model, model_version, INT, 5),
    ITEM(model, doc_string, STRING, 6),
    LIST(model, metadata_props, PAIRS, 14),
    { 0 },
};

const onxi_text_head_item onxi_text_function_items[] = {
    ITEM(function, domain, STRING, 10),        ITEM(function, overload, STRING, 13),
    LIST(function, opset_import, IMPORTS, 9),  ITEM(function, doc_string, STRING, 8),
    LIST(function, metadata_props, PAIRS, 14), { 0 },
};

/* imports = "[" [ import { "," import } ] "]" ; import = string ":" int */
static bool parse_imports(onxi_text_parser *p, void ***list, uint32_t *count)
{
    static const char *const hint = "an import is a domain and a version: opset_import: [\"\" : 21]";
    size_t base = p->stack_count;
    if (onxi_text_peek(p) != '[')
        return onxi_text_parse_error(p, p->at, "'['", hint, "the list of operator sets is missing");
    p->at++;
    if (onxi_text_take(p, ']'))
        return true;
    for (uint32_t i = 0; i < *count; i++) /* a repeated key appends */
        if (!onxi_text_push_ptr(p, (*list)[i]))
            return false;
    do {
        onx_operator_set_id *import = ONXI_NEW(p->arena, onx_operator_set_id);
        if (!import)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        import->has = onx_operator_set_id_has_domain | onx_operator_set_id_has_version;
        if (onxi_text_peek(p) != '"')
            return onxi_text_parse_error(p, p->at, "a quoted domain", hint, "the domain of an operator set is missing");
        onxi_text_mark_part(p, import, p->at);
        if (!onxi_text_take_string(p, &import->domain))
            return false;
        if (onxi_text_peek(p) != ':')
            return onxi_text_parse_error(p, p->at, "':' and a version", hint,
                                         "the version of an operator set is missing");
        p->at++;
        if (!onxi_text_take_int(p, &import->version, "the version of an operator set") ||
            !onxi_text_push_ptr(p, import))
            return false;
    } while (onxi_text_take(p, ','));
    *list = onxi_text_pop_pointers(p, base, count);
    return !p->fatal && onxi_text_expect(p, ']', "',' or ']'", "the list of operator sets");
}

static bool parse_head_value(onxi_text_parser *p, const onxi_text_head_item *item, void *message)
{
    char *member = (char *)message + item->offset;
    uint32_t *count = (uint32_t *)(void *)((char *)message + item->count_offset);
    ((onx_message *)message)->has |= item->has;
    switch (item->form) {
    case ONXI_HEAD_INT:
        return onxi_text_take_int(p, (int64_t *)(void *)member, item->word);
    case ONXI_HEAD_STRING:
        if (onxi_text_peek(p) != '"')
            return onxi_text_parse_error(p, p->at, "a string", NULL, "%s must be quoted", item->word);
        return onxi_text_take_string(p, (onx_bytes *)(void *)member);
    case ONXI_HEAD_IMPORTS:
        return parse_imports(p, (void ***)(void *)member, count);
    default:
        if (!onxi_text_expect(p, '[', "'['", item->word))
            return false;
        return onxi_text_take(p, ']') || onxi_text_parse_pairs(p, (void ***)(void *)member, count, item->word);
    }
}

static bool parse_head_item(onxi_text_parser *p, const onxi_text_head_item *items, void *message, const char *expected)
{
    onxi_text_gap(p);
    const char *at = p->at;
    onx_str word = onxi_text_take_ident(p);
    const onxi_text_head_item *item = items;
    while (item->word && !onx_str_is(word, item->word))
        item++;
    if (!item->word) {
        onxi_text_hint hint;
        p->at = at;
        return onxi_text_parse_error(
            p, at, expected, word.len ? onxi_text_hint_for_key(word, items, &hint) : onxi_text_hint_behind_comma(p),
            "this is not a key of the header");
    }
    if (!onxi_text_expect(p, ':', "':'", "the header") || !parse_head_value(p, item, message))
        return false;
    if (p->trivia)
        onxi_text_trivia_item(p, (char *)message + item->offset, at, p->at);
    onxi_text_mark_part(p, (char *)message + item->offset, at);
    return true;
}

/* "<" item { "," item } ">"; the opening bracket has been consumed */
static bool parse_head(onxi_text_parser *p, const onxi_text_head_item *items, void *message, const char *expected)
{
    do {
        size_t stack = p->stack_count;
        onxi_text_gap(p);
        const char *start = p->at;
        bool ok = parse_head_item(p, items, message, expected);
        if (ok && onxi_text_peek(p) != ',' && p->at < p->end && *p->at != '>') {
            start = p->at;
            ok = onxi_text_unexpected(p, "',' or '>'", NULL, "the header");
        }
        const char *error = p->at;
        if (!ok) {
            p->stack_count = stack;
            if (p->fatal || !onxi_text_skip_element(p, start, '>')) {
                p->at = error;
                return false;
            }
        }
    } while (onxi_text_take(p, ','));
    if (p->trivia)
        onxi_text_trivia_closing(p, onxi_text_trivia_close_key(message));
    return onxi_text_expect(p, '>', "',' or '>'", "the header");
}

/* ---- values ---- */

static bool no_value_name(onxi_text_parser *p, const char *at, onx_str word)
{
    char c = onxi_text_peek(p);
    bool bare = (size_t)(onxi_text_token_end(p) - at) == word.len;
    const char *hint = c == '('           ? "dimensions stand in brackets: float[2, 3]"
                       : c == '['         ? "all dimensions stand in one pair of brackets: float[2, 3]"
                       : bare && c != '%' ? "quote a name that is a type word"
                                          : onxi_text_hint_for_name(p);
    return onxi_text_parse_error(p, p->at, "a name", hint, "a type has no value name behind it");
}

/* A name without a type: the following token shows whether it was meant as a name, or as a misspelt type. */
static bool is_no_type(onxi_text_parser *p, const char *name_at)
{
    static const char *const behind = "a type stands before the name: float[2] x";
    char c = onxi_text_peek(p);
    if (c == ':' && !(p->end - p->at > 1 && onxi_text_char_is(p->at[1], ONXI_CHAR_DIGIT)))
        return onxi_text_parse_error(p, p->at, "',' or a closing bracket", behind, "a colon stands behind a name");
    if (!onxi_text_char_is(c, ONXI_CHAR_LETTER) && c != '[' && c != '"' && c != '(')
        return true;
    if (onxi_text_is_type_word(onxi_text_look_ident(p)))
        return onxi_text_parse_error(p, p->at, "',' or a closing bracket", behind, "a type stands behind a name");
    p->at = name_at;
    onx_type *type; /* reports what is wrong with the word */
    return onxi_text_parse_type(p, &type) && onxi_text_parse_error(p, name_at, "a type", NULL, "this is not a type");
}

/* value = [ type ] name */
static bool parse_value(onxi_text_parser *p, onxi_text_target target, onx_value_info **out, const char **stop)
{
    onx_value_info *value = ONXI_NEW(p->arena, onx_value_info);
    *out = value;
    if (!value)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    onxi_text_gap(p);
    const char *at = p->at;
    onxi_text_mark_part(p, value, at);
    onx_str word = onxi_text_look_ident(p);
    if (word.len && onxi_text_is_type_word(word)) {
        value->has |= onx_value_info_has_type;
        if (!onxi_text_parse_type(p, &value->type))
            return false;
        if (onxi_text_peek(p) != '"' && !onxi_text_char_is(onxi_text_peek(p), ONXI_CHAR_LETTER))
            return no_value_name(p, at, word);
    }
    value->has |= onx_value_info_has_name;
    const char *name_at = p->at;
    if (onxi_text_peek(p) == ')' || onxi_text_peek(p) == '>')
        return onxi_text_parse_error(p, p->at, "a type or a name", onxi_text_hint_behind_comma(p), "a name is missing");
    if (!onxi_text_take_name(p, &value->name, "a type or a name"))
        return false;
    onxi_text_mark_part(p, &value->name, name_at);
    p->target[target] = value; /* a comment may follow */
    *stop = p->at;
    return ONX_HAS(value_info, value, type) || is_no_type(p, name_at);
}

/* Common mistakes are reported, and treated as an arrow. */
static bool parse_arrow(onxi_text_parser *p)
{
    char c = onxi_text_peek(p);
    const char *s = p->at + 1, *hint = NULL;
    if (c == '=' && p->end - p->at >= 2 && p->at[1] == '>') {
        p->at += 2;
        return true;
    }
    if (c == '=') {
        while (s < p->end && onxi_text_char_is(*s, ONXI_CHAR_SPACE))
            s++;
        hint = s > p->at + 1 && s < p->end && *s == '>' ? "=> is written without a gap"
                                                        : "inputs and outputs are separated by =>, not =";
    } else if (c == '{') {
        hint = "the outputs are missing: => (outputs)";
    } else if (c == '-') {
        hint = "inputs and outputs are separated by =>";
    }
    onxi_text_parse_error(p, p->at, "=>", hint, "the arrow before the outputs is missing");
    if (c != '=' && c != '-')
        return false;
    p->at = s + (s < p->end && *s == '>');
    return !p->fatal;
}

/* The lists that the elements of a parenthesis are added to. */
typedef struct value_place {
    onxi_text_target target;
    char close;
    bool initializers; /* are initial values allowed? */
    const char *what;
} value_place;

enum { IS_INITIALIZER = 1 }; /* tag in the stack; messages are aligned to 8 bytes */

/* value [ "=" data ]; pushed once or, if it is an input with a default value, twice. */
static bool parse_entry(onxi_text_parser *p, const value_place *place)
{
    onx_value_info *value;
    onxi_text_gap(p);
    const char *at = p->at, *stop;
    if (!onxi_text_parse_enter(p, 1) || !parse_value(p, place->target, &value, &stop))
        return false;
    bool valued = onxi_text_peek(p) == '=' && !(p->end - p->at >= 2 && p->at[1] == '>');
    bool lone = valued && place->target == ONXI_TARGET_VALUE_INFO;
    if (!lone && !onxi_text_push_ptr(p, value))
        return false;
    if (!valued) {
        if (p->trivia)
            onxi_text_trivia_item(p, value, at, stop);
        p->depth--;
        return true;
    }
    if (!place->initializers)
        return onxi_text_parse_error(p, p->at, "',' or a closing bracket", NULL, "%s cannot have values", place->what);
    if (!ONX_HAS(value_info, value, type))
        return onxi_text_parse_error(p, at, NULL, "write it before the name", "a value is given but no type");
    onx_tensor *tensor = ONXI_NEW(p->arena, onx_tensor);
    if (!tensor)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    tensor->has = onx_tensor_has_name;
    tensor->name = value->name;
    p->target[ONXI_TARGET_INITIALIZER] = tensor;
    onxi_text_mark_part(p, tensor, at);
    p->at++;
    if (!onxi_text_tensor_from_type(p, at, value->type, tensor) || !onxi_text_parse_tensor_data(p, tensor))
        return false;
    if (p->trivia)
        onxi_text_trivia_item(p, lone ? (const void *)tensor : (const void *)value, at, p->at);
    p->depth--;
    return onxi_text_push(p, (uint64_t)(uintptr_t)tensor | IS_INITIALIZER);
}

/* [ entry { "," entry } ] and the closing bracket; initializers are appended to existing ones. `end` is the formatter's
 * key of the bracket. */
static bool parse_entries(onxi_text_parser *p, const value_place *place, const void *end, onx_value_info ***values,
                          uint32_t *value_count, onx_tensor ***tensors, uint32_t *tensor_count)
{
    size_t base = p->stack_count;
    if (p->trivia)
        onxi_text_trivia_item(p, NULL, p->at - 1, p->at);
    if (onxi_text_peek(p) == place->close) {
        if (p->trivia)
            onxi_text_trivia_closing(p, end);
        p->at++;
        return true;
    }
    do {
        uint32_t depth = p->depth;
        size_t stack = p->stack_count;
        onxi_text_gap(p);
        const char *start = p->at;
        bool ok = parse_entry(p, place);
        if (ok && onxi_text_peek(p) != ',' && p->at < p->end && *p->at != place->close) {
            start = p->at;
            ok = onxi_text_unexpected(p, place->close == ')' ? "',' or ')'" : "',' or '>'",
                                      onxi_text_hint_behind_name(p), place->what);
        }
        const char *error = p->at;
        if (!ok) {
            p->depth = depth;
            p->stack_count = stack;
            if (p->fatal || !onxi_text_skip_element(p, start, place->close)) {
                p->at = error;
                return false;
            }
        }
    } while (onxi_text_take(p, ','));
    if (p->trivia)
        onxi_text_trivia_closing(p, end);
    if (!onxi_text_expect(p, place->close, place->close == ')' ? "',' or ')'" : "',' or '>'", place->what))
        return false;
    size_t top = p->stack_count;
    for (size_t i = base; i < top; i++)
        if (!(p->stack[i] & IS_INITIALIZER) && !onxi_text_push(p, p->stack[i]))
            return false;
    *values = onxi_text_pop_pointers(p, top, value_count);
    for (uint32_t i = 0; tensors && i < *tensor_count; i++)
        if (!onxi_text_push_ptr(p, (*tensors)[i]))
            return false;
    for (size_t i = base; i < top; i++)
        if ((p->stack[i] & IS_INITIALIZER) && !onxi_text_push(p, p->stack[i] - IS_INITIALIZER))
            return false;
    if (tensors)
        *tensors = onxi_text_pop_pointers(p, top, tensor_count);
    p->stack_count = base;
    return !p->fatal;
}

/* ---- graphs ---- */

static bool parse_body(onxi_text_parser *p, const void *key, onx_node ***list, uint32_t *count)
{
    if (!onxi_text_parse_nodes(p, list, count))
        return false;
    if (p->trivia) /* after the brace of an inner graph the line continues */
        onxi_text_trivia_item(p, (const char *)key + 1, p->at - 1, p->inner ? NULL : p->at);
    return true;
}

/* graph = name [ "(" [ entry { "," entry } ] ")" ] arrow "(" [ value { "," value } ] ")"
 *         [ "<" [ entry { "," entry } ] ">" ] nodes */
static bool parse_graph_head(onxi_text_parser *p, onx_graph *graph)
{
    static const value_place inputs = { ONXI_TARGET_INPUT, ')', true, "the inputs of the graph" };
    static const value_place outputs = { ONXI_TARGET_OUTPUT, ')', false, "the outputs of the graph" };
    static const value_place values = { ONXI_TARGET_VALUE_INFO, '>', true, "the initializers of the graph" };
    onxi_text_gap(p);
    const char *at = p->at;
    p->target[ONXI_TARGET_GRAPH] = graph;
    onxi_text_mark_part(p, graph, at);
    graph->has |= onx_graph_has_name;
    if (!onxi_text_take_name(p, &graph->name, "the name of a graph"))
        return false;
    if (p->trivia) {
        if (!p->inner)
            onxi_text_trivia_item(p, graph, at, NULL);
        onxi_text_trivia_item(p, NULL, at, p->at);
    }
    if (onxi_text_take(p, '(') && !parse_entries(p, &inputs, &graph->input, &graph->input, &graph->input_count,
                                                 &graph->initializer, &graph->initializer_count))
        return false;
    if (!parse_arrow(p) || !onxi_text_expect(p, '(', "'('", "the graph") ||
        !parse_entries(p, &outputs, &graph->output, &graph->output, &graph->output_count, NULL, NULL))
        return false;
    return !onxi_text_take(p, '<') ||
           parse_entries(p, &values, &graph->value_info, &graph->value_info, &graph->value_info_count,
                         &graph->initializer, &graph->initializer_count);
}

/* errors in the nodes are reported even if the header has errors */
bool onxi_text_parse_graph(onxi_text_parser *p, onx_graph *graph)
{
    bool ok = parse_graph_head(p, graph);
    if (!ok && (p->fatal || p->inner || !onxi_text_skip_to_body(p)))
        return false;
    return parse_body(p, graph, &graph->node, &graph->node_count) && ok;
}

/* ---- functions ---- */

/* fun-attr = name [ [ ":" attr-type ] "=" attr-value ]: with a value an attribute_proto, without one a name. */
static bool parse_function_attribute(onxi_text_parser *p, uint64_t *out)
{
    onx_bytes name;
    onxi_text_gap(p);
    const char *at = p->at;
    if (!onxi_text_take_name(p, &name, "the name of an attribute"))
        return false;
    char c = onxi_text_peek(p);
    onx_attribute *a = ONXI_NEW(p->arena, onx_attribute);
    onx_bytes *lone = ONXI_NEW(p->arena, onx_bytes);
    if (!a || !lone)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    onxi_text_mark_part(p, c != ':' && c != '=' ? (const void *)lone : (const void *)a, at);
    if (c != ':' && c != '=') {
        *lone = name;
        *out = (uint64_t)(uintptr_t)lone;
        return true;
    }
    ONX_SET(attribute, a, name, name);
    p->target[ONXI_TARGET_ATTRIBUTE_PROTO] = a;
    uint32_t depth = p->depth;
    if (!onxi_text_parse_enter(p, 1) || !onxi_text_parse_attribute_rest(p, a))
        return false;
    p->depth = depth;
    if (ONX_HAS(attribute, a, ref_attr_name))
        return onxi_text_parse_error(p, at, "a value", NULL,
                                     "the default of a function's attribute cannot be a reference");
    if (p->trivia)
        onxi_text_trivia_item(p, a, at, onxi_text_token_end(p));
    *out = (uint64_t)(uintptr_t)a | IS_INITIALIZER;
    return true;
}

/* "<" fun-attr { "," fun-attr } ">"; the opening bracket has been consumed */
static bool parse_function_attributes(onxi_text_parser *p, onx_function *function)
{
    size_t base = p->stack_count, marks = onxi_text_mark_next(p);
    do {
        uint64_t element = 0;
        if (!parse_function_attribute(p, &element) || !onxi_text_push(p, element))
            return false;
    } while (onxi_text_take(p, ','));
    if (p->trivia)
        onxi_text_trivia_closing(p, &function->attribute);
    if (!onxi_text_expect(p, '>', "',' or '>'", "the list of attributes"))
        return false;
    size_t top = p->stack_count;
    for (size_t i = base; i < top; i++)
        if (!(p->stack[i] & IS_INITIALIZER) && !onxi_text_push(p, ((const onx_bytes *)(uintptr_t)p->stack[i])->bits))
            return false;
    function->attribute = onxi_text_pop_strings(p, top, &function->attribute_count);
    for (size_t i = base, n = 0; function->attribute && i < top; i++)
        if (!(p->stack[i] & IS_INITIALIZER))
            onxi_text_mark_also(p, &marks, (const void *)(uintptr_t)p->stack[i], &function->attribute[n++]);
    for (size_t i = base; i < top; i++)
        if ((p->stack[i] & IS_INITIALIZER) && !onxi_text_push(p, p->stack[i] - IS_INITIALIZER))
            return false;
    function->attribute_proto = onxi_text_pop_pointers(p, top, &function->attribute_proto_count);
    p->stack_count = base;
    return !p->fatal;
}

/* The names of parameters; those with a type also become value_info entries, in text order. */
static bool parse_parameters(onxi_text_parser *p, onx_function *function, const value_place *place, onx_bytes **list,
                             uint32_t *count)
{
    onx_value_info **values = NULL;
    uint32_t value_count = 0;
    size_t marks = onxi_text_mark_next(p);
    p->mute = true;
    if (!onxi_text_expect(p, '(', "'('", "the function") ||
        !parse_entries(p, place, NULL, &values, &value_count, NULL, NULL))
        return false;
    p->mute = false;
    size_t base = p->stack_count;
    for (uint32_t i = 0; i < value_count; i++)
        if (!onxi_text_push(p, values[i]->name.bits))
            return false;
    *list = onxi_text_pop_strings(p, base, count);
    for (uint32_t i = 0; *list && i < value_count; i++)
        onxi_text_mark_also(p, &marks, values[i], &(*list)[i]);
    for (uint32_t i = 0; i < function->value_info_count; i++)
        if (!onxi_text_push_ptr(p, function->value_info[i]))
            return false;
    for (uint32_t i = 0; i < value_count; i++)
        if (ONX_HAS(value_info, values[i], type) && !onxi_text_push_ptr(p, values[i]))
            return false;
    function->value_info = onxi_text_pop_pointers(p, base, &function->value_info_count);
    return !p->fatal;
}

static bool parse_function_values(onxi_text_parser *p, onx_function *function)
{
    static const value_place place = { ONXI_TARGET_VALUE_INFO, '>', false, "the value infos of the function" };
    size_t base = p->stack_count;
    onx_value_info **values = NULL;
    uint32_t count = 0;
    if (!parse_entries(p, &place, &function->value_info, &values, &count, NULL, NULL))
        return false;
    for (uint32_t i = 0; i < function->value_info_count; i++)
        if (!onxi_text_push_ptr(p, function->value_info[i]))
            return false;
    for (uint32_t i = 0; i < count; i++)
        if (!onxi_text_push_ptr(p, values[i]))
            return false;
    function->value_info = onxi_text_pop_pointers(p, base, &function->value_info_count);
    return !p->fatal;
}

/* function = [ fun-head ] name [ "<" fun-attr { "," fun-attr } ">" ] "(" [ value { "," value } ] ")" arrow
 *            "(" [ value { "," value } ] ")" [ "<" [ value { "," value } ] ">" ] nodes */
static bool parse_function_head(onxi_text_parser *p, onx_function *function)
{
    static const value_place inputs = { ONXI_TARGET_INPUT, ')', false, "the inputs of a function" };
    static const value_place outputs = { ONXI_TARGET_OUTPUT, ')', false, "the outputs of a function" };
    onxi_text_gap(p);
    const char *at = p->at;
    p->mute = false;
    p->target[ONXI_TARGET_FUNCTION] = function;
    if (onxi_text_take(p, '<') && !parse_head(p, onxi_text_function_items, function,
                                              "opset_import, doc_string, domain, overload or metadata_props"))
        return false;
    function->has |= onx_function_has_name;
    onxi_text_gap(p);
    onxi_text_mark_part(p, function, p->at); /* not the header, which may be on a line of its own */
    if (!onxi_text_take_name(p, &function->name, "the name of a function"))
        return false;
    if (p->trivia)
        onxi_text_trivia_item(p, function, at, NULL);
    if (onxi_text_take(p, '<') && !parse_function_attributes(p, function))
        return false;
    if (!parse_parameters(p, function, &inputs, &function->input, &function->input_count) || !parse_arrow(p) ||
        !parse_parameters(p, function, &outputs, &function->output, &function->output_count))
        return false;
    return !onxi_text_take(p, '<') || parse_function_values(p, function);
}

static bool parse_function(onxi_text_parser *p, onx_function *function)
{
    bool ok = parse_function_head(p, function);
    p->mute = false;
    if (!ok && (p->fatal || !onxi_text_skip_to_body(p)))
        return false;
    return parse_body(p, function, &function->node, &function->node_count) && ok;
}

/* ---- models ---- */

/* Recovers from an error in a graph or function: skips to its end, unless its nodes were parsed. */
static void skip_rest(onxi_text_parser *p, const char *start)
{
    if (p->at > start && p->at[-1] == '}')
        return;
    onxi_text_skip_node(p, start);
    onxi_text_take(p, '}');
}

static bool parse_functions(onxi_text_parser *p, onx_model *model)
{
    size_t base = p->stack_count;
    for (char c; (c = onxi_text_peek(p)) == '<' || c == '"' || onxi_text_char_is(c, ONXI_CHAR_LETTER);) {
        const char *start = p->at;
        onx_function *function = ONXI_NEW(p->arena, onx_function);
        if (!function)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        uint32_t depth = p->depth;
        size_t stack = p->stack_count;
        if (onxi_text_parse_enter(p, 1) && parse_function(p, function)) {
            if (!onxi_text_push_ptr(p, function))
                return false;
        } else {
            if (p->fatal)
                return false;
            p->stack_count = stack;
            skip_rest(p, start);
        }
        p->depth = depth;
    }
    model->functions = onxi_text_pop_pointers(p, base, &model->functions_count);
    return !p->fatal;
}

/* model = [ model-head ] graph { function } end-of-text */
static bool parse_model(onxi_text_parser *p, onx_model *model)
{
    p->target[ONXI_TARGET_MODEL] = model;
    onxi_text_gap(p);
    const char *at = p->at;
    if (onxi_text_take(p, '<')) {
        if (!parse_head(
                p, onxi_text_model_items, model,
                "ir_version, opset_import, producer_name, producer_version, domain, model_version, doc_string or metadata_props")) {
            if (p->fatal)
                return false;
            p->stack_count = 0;
            onxi_text_skip_node(p, at);
        } else if (p->trivia) {
            onxi_text_trivia_item(p, model, at, p->at);
        }
    }
    model->graph = ONXI_NEW(p->arena, onx_graph);
    if (!model->graph)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    model->has |= onx_model_has_graph;
    onxi_text_gap(p);
    at = p->at;
    if (!onxi_text_parse_enter(p, 1))
        return false;
    if (!onxi_text_parse_graph(p, model->graph)) {
        if (p->fatal)
            return false;
        p->stack_count = 0;
        skip_rest(p, at);
    }
    p->depth = 0;
    if (!parse_functions(p, model))
        return false;
    if (!p->errors && !model->opset_import_count)
        onxi_text_parse_warn(p, p->begin, ONX_NOTE, "begin the text with <ir_version: 10, opset_import: [\"\" : 21]>",
                             "the model names no operator set");
    return true;
}

/* ---- entry points ---- */

bool onx_text_has_notation(onx_kind kind)
{
    switch (kind) {
    case ONX_KIND_MODEL:
    case ONX_KIND_GRAPH:
    case ONX_KIND_FUNCTION:
    case ONX_KIND_NODE:
    case ONX_KIND_ATTRIBUTE:
    case ONX_KIND_VALUE_INFO:
    case ONX_KIND_TENSOR:
    case ONX_KIND_TYPE:
    case ONX_KIND_TENSOR_SHAPE:
        return true;
    default:
        return false;
    }
}

/* Values, types and shapes are allocated by their parsers: their contents move to the root of the document. */
static bool parse_into(onxi_text_parser *p, onx_kind kind, void *root)
{
    onx_value_info *value;
    onx_type *type;
    const char *stop;
    switch (kind) {
    case ONX_KIND_MODEL:
        return parse_model(p, root);
    case ONX_KIND_GRAPH:
        return onxi_text_parse_graph(p, root);
    case ONX_KIND_FUNCTION:
        return parse_function(p, root);
    case ONX_KIND_ATTRIBUTE:
        return onxi_text_parse_attribute(p, root);
    case ONX_KIND_TENSOR:
        onxi_text_gap(p);
        return onxi_text_parse_tensor(p, p->at, NULL, root);
    case ONX_KIND_NODE: {
        onx_node *node;
        if (!onxi_text_parse_node(p, &node))
            return false;
        memcpy(root, node, sizeof *node);
        p->target[ONXI_TARGET_NODE] = root;
        onxi_text_mark_moved(p, node, root, sizeof *node);
        if (p->trivia)
            onxi_text_trivia_moved(p, node, root);
        return true;
    }
    case ONX_KIND_VALUE_INFO:
        if (!parse_value(p, ONXI_TARGET_VALUE_INFO, &value, &stop))
            return false;
        memcpy(root, value, sizeof *value);
        onxi_text_mark_moved(p, value, root, sizeof *value);
        p->target[ONXI_TARGET_VALUE_INFO] = root;
        return true;
    case ONX_KIND_TYPE:
        if (!onxi_text_parse_type(p, &type))
            return false;
        memcpy(root, type, sizeof *type);
        p->target[ONXI_TARGET_TYPE] = root;
        return true;
    default:
        p->target[ONXI_TARGET_SHAPE] = root;
        return onxi_text_expect(p, '[', "'['", "the shape") &&
               (onxi_text_take(p, ']') || onxi_text_parse_shape(p, root));
    }
}

static bool parse_all(onxi_text_parser *p, onx_kind kind, void *root)
{
    bool in_place = kind != ONX_KIND_NODE && kind != ONX_KIND_VALUE_INFO && kind != ONX_KIND_TYPE;
    for (int target = 0; target < ONXI_TARGET_COUNT && in_place; target++) /* a comment may come first */
        if (onxi_text_targets[target].kind == kind && !onxi_text_targets[target].listed)
            p->target[target] = root;
    onxi_text_gap(p);
    if (p->at >= p->end)
        return onxi_text_parse_error(p, p->at, "a model or a part of one", NULL, "the text is empty");
    const char *at = p->at;
    if (!parse_into(p, kind, root))
        return false;
    if (kind != ONX_KIND_FUNCTION)
        onxi_text_mark_part(p, root, at);
    onxi_text_gap(p);                 /* the rest may contain comments that belong to it */
    if (p->at < p->end && !p->errors) /* otherwise it is a consequence of an earlier error */
        return onxi_text_parse_error(
            p, p->at, kind == ONX_KIND_MODEL ? "a function or the end of the text" : "the end of the text", NULL,
            "something follows that does not belong to it");
    return p->errors == 0;
}

onx_status onxi_text_parse_text(onx_ctx *cx, onx_kind kind, onx_str text, uint32_t flags, onxi_text_parse_notes notes,
                                onx_doc **out)
{
    *out = NULL;
    if (!onx_text_has_notation(kind))
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the text syntax has no notation for %s",
                         onx_kind_proto_name(kind));
    onx_doc *doc;
    ONX_TRY(onx_doc_new(cx, kind, &doc));
    onxi_text_parser p = {
        .cx = cx, .arena = onx_doc_arena(doc), .flags = flags, .line = 1, .trivia = notes.trivia, .marks = notes.marks
    };
    p.depth_limit = onx_ctx_limits(cx).depth;
    p.patience = 8 * (uint64_t)text.len;
    if (!(flags & ONX_TEXT_BORROW) && text.len) {
        char *copy = onxi_arena_get(p.arena, text.len);
        if (!copy) {
            onx_doc_free(doc);
            return ONX_E_MEMORY;
        }
        memcpy(copy, text.ptr, text.len);
        text.ptr = copy;
    }
    if (!text.ptr)
        text.ptr = "";
    p.begin = p.at = p.place = p.seen = text.ptr;
    p.end = onxi_str_end(text);
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        p.at += 3; /* a byte-order mark */
    if (!parse_all(&p, kind, onx_doc_root(doc, kind)) && p.status == ONX_OK)
        p.status = ONX_E_MALFORMED;
    onxi_release(cx, p.stack, p.stack_room * sizeof *p.stack);
    onxi_release(cx, p.data, p.data_room);
    onxi_release(cx, p.waiting, p.waiting_room * sizeof *p.waiting);
    if (p.status != ONX_OK) {
        onx_doc_free(doc);
        return p.status;
    }
    doc->input_size = text.len;
    doc->text = text;
    doc->text_flags = flags;
    *out = doc;
    return ONX_OK;
}

onx_status onx_text_parse(onx_ctx *cx, onx_kind kind, onx_str text, uint32_t flags, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free,
                      onxi_text_parse_text(cx, kind, text, flags, (onxi_text_parse_notes){ 0 }, out));
}
