/* text_parse_node.c - nodes and attributes of the text syntax. */
#include "text/text.h"

/* ---- attribute values ---- */

static const struct {
    const char *word;
    uint8_t type;    /* an onx_attribute_type */
    uint8_t element; /* type of an element; for singular attributes the type itself */
} annotations[] = {
    { "float", ONX_ATTR_FLOAT, ONX_ATTR_FLOAT },
    { "int", ONX_ATTR_INT, ONX_ATTR_INT },
    { "string", ONX_ATTR_STRING, ONX_ATTR_STRING },
    { "tensor", ONX_ATTR_TENSOR, ONX_ATTR_TENSOR },
    { "graph", ONX_ATTR_GRAPH, ONX_ATTR_GRAPH },
    { "sparse_tensor", ONX_ATTR_SPARSE_TENSOR, ONX_ATTR_SPARSE_TENSOR },
    { "type_proto", ONX_ATTR_TYPE_PROTO, ONX_ATTR_TYPE_PROTO },
    { "floats", ONX_ATTR_FLOATS, ONX_ATTR_FLOAT },
    { "ints", ONX_ATTR_INTS, ONX_ATTR_INT },
    { "strings", ONX_ATTR_STRINGS, ONX_ATTR_STRING },
    { "tensors", ONX_ATTR_TENSORS, ONX_ATTR_TENSOR },
    { "graphs", ONX_ATTR_GRAPHS, ONX_ATTR_GRAPH },
    { "sparse_tensors", ONX_ATTR_SPARSE_TENSORS, ONX_ATTR_SPARSE_TENSOR },
    { "type_protos", ONX_ATTR_TYPE_PROTOS, ONX_ATTR_TYPE_PROTO },
};
enum { ANNOTATIONS = sizeof annotations / sizeof *annotations };

const char *onxi_text_annotation_word(int32_t type)
{
    for (size_t i = 0; i < ANNOTATIONS; i++)
        if (annotations[i].type == type)
            return annotations[i].word;
    return NULL;
}

static uint8_t list_of(uint8_t element)
{
    for (size_t i = 0; i < ANNOTATIONS; i++)
        if (annotations[i].element == element && annotations[i].type != element)
            return annotations[i].type;
    return ONX_ATTR_UNDEFINED;
}

/* One value; `type` tells which member is valid; REFERENCE: the name of a function's attribute. */
enum { REFERENCE = 0xff };
typedef struct single {
    uint8_t type;
    union {
        float f;
        int64_t i;
        onx_bytes s;
        void *message;
    };
} single;

/* Does a graph follow the name, that is, "(" or "=>"? */
static bool graph_follows(onxi_text_parser *p)
{
    char c = onxi_text_peek(p);
    return c == '(' || (c == '=' && p->end - p->at >= 2 && p->at[1] == '>');
}

static bool single_graph(onxi_text_parser *p, single *out)
{
    onx_graph *graph = ONXI_NEW(p->arena, onx_graph);
    if (!graph)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    void *outer = p->target[ONXI_TARGET_GRAPH];
    p->hold = false;
    p->inner++;
    out->type = ONX_ATTR_GRAPH;
    out->message = graph;
    bool ok = onxi_text_parse_enter(p, 1) && onxi_text_parse_graph(p, graph);
    p->inner--;
    if (!ok)
        return false;
    p->depth--;
    p->hold = true;
    p->target[ONXI_TARGET_GRAPH] = outer;
    return true;
}

static bool single_type_or_tensor(onxi_text_parser *p, single *out)
{
    const char *at = p->at;
    onx_type *type;
    if (!onxi_text_parse_type(p, &type))
        return false;
    char c = onxi_text_peek(p);
    out->type = ONX_ATTR_TYPE_PROTO;
    out->message = type;
    if (c == '(' || graph_follows(p))
        return onxi_text_parse_error(p, p->at, "',' or '>'", "quote the name of a graph that is a type word",
                                     "this type is followed by a graph");
    if (c != '{' && c != '=' && c != '"' && !onxi_text_char_is(c, ONXI_CHAR_LETTER))
        return true;
    onx_tensor *tensor = ONXI_NEW(p->arena, onx_tensor);
    if (!tensor)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    out->type = ONX_ATTR_TENSOR;
    out->message = tensor;
    return onxi_text_parse_tensor(p, at, type, tensor);
}

static bool single_number(onxi_text_parser *p, uint8_t want, single *out)
{
    const char *at = p->at;
    onx_str text;
    bool ok, overflow = false;
    onxi_text_literal_kind kind = onxi_text_take_number(p, &text, &ok);
    if (!ok)
        return false;
    if (kind == ONXI_LITERAL_FLOAT && onxi_text_char_is(*at, ONXI_CHAR_LETTER) && graph_follows(p))
        return onxi_text_parse_error(p, at, NULL, "quote the name of the graph",
                                     "inf, infinity and nan are numbers, not names of graphs");
    if (kind == ONXI_LITERAL_INT && want != ONX_ATTR_FLOAT) {
        out->type = ONX_ATTR_INT;
        if (!onxi_text_int_of(text, &out->i))
            return onxi_text_parse_error(p, at, "-9223372036854775808 to 9223372036854775807", NULL,
                                         "the integer is out of range");
        return true;
    }
    out->type = ONX_ATTR_FLOAT;
    if (!onxi_parse_f32(text, &out->f, &overflow) || overflow)
        return onxi_text_parse_error(p, at, "a number of at most 3.4028235e38", NULL,
                                     "this value is out of the range of float");
    return true;
}

static bool single_unknown(onxi_text_parser *p)
{
    char c = p->at < p->end ? *p->at : '\0';
    const char *hint = c == '.'   ? "a digit must stand before the point: 0.5"
                       : c == '+' ? "a plus sign is not part of a number"
                       : c == '{' ? "a list stands in brackets: [1, 2]; a tensor begins with its type: float[2] {1, 2}"
                       : c == '(' ? "a list stands in brackets: [1, 2]"
                                  : onxi_text_hint_behind_comma(p);
    return onxi_text_parse_error(p, p->at, "a number, string, @reference, tensor, type or graph", hint,
                                 "the value of an attribute is missing");
}

/* A word that is neither a type nor the name of a graph. */
static bool single_word(onxi_text_parser *p, onx_str word)
{
    onxi_text_hint buf;
    const char *type = onxi_text_hint_for_type(word, &buf);
    bool logical =
        onx_str_is(word, "true") || onx_str_is(word, "True") || onx_str_is(word, "false") || onx_str_is(word, "False");
    return onxi_text_parse_error(p, p->at, "a number, string, @reference, tensor, type or graph",
                                 logical ? "booleans are written 1 and 0"
                                 : type  ? type
                                         : "a string is quoted, an attribute of the function is a reference: @name",
                                 "a bare word is no value");
}

/* single = literal | "@" name | tensor | type | graph; `want` is the annotated type, or 0. */
static bool parse_single(onxi_text_parser *p, uint8_t want, single *out)
{
    char c = onxi_text_peek(p);
    const char *at = p->at;
    if (c == '"') {
        out->type = ONX_ATTR_STRING;
        if (!onxi_text_take_string(p, &out->s))
            return false;
        if (!graph_follows(p))
            return true;
        p->at = at;
        return single_graph(p, out);
    }
    if (c == '@') {
        p->at++;
        out->type = REFERENCE;
        return onxi_text_take_name(p, &out->s, "the name of an attribute of the function");
    }
    if (c == '-' || onxi_text_char_is(c, ONXI_CHAR_DIGIT))
        return single_number(p, want, out);
    if (!onxi_text_char_is(c, ONXI_CHAR_LETTER))
        return single_unknown(p);
    onx_str word = onxi_text_look_ident(p);
    if (onxi_text_is_special_float(word))
        return single_number(p, want, out);
    if (onxi_text_is_type_word(word))
        return single_type_or_tensor(p, out);
    p->at += word.len;
    bool graph = graph_follows(p) || onxi_text_peek(p) == '=';
    p->at = at;
    return graph ? single_graph(p, out) : single_word(p, word);
}

/* The "expected" text for a value of the wrong type. */
static bool wrong_type(onxi_text_parser *p, const char *at, uint8_t want, uint8_t got)
{
    static const char *const names[] = {
        [ONX_ATTR_FLOAT] = "a float",     [ONX_ATTR_INT] = "an integer", [ONX_ATTR_STRING] = "a string",
        [ONX_ATTR_TENSOR] = "a tensor",   [ONX_ATTR_GRAPH] = "a graph",  [ONX_ATTR_SPARSE_TENSOR] = "a reference",
        [ONX_ATTR_TYPE_PROTO] = "a type",
    };
    const char *hint =
        want == ONX_ATTR_INT && got == ONX_ATTR_FLOAT ? "annotate the attribute as floats, or write integers" : NULL;
    return onxi_text_parse_error(p, at, names[want], hint, "the value is %s where the attribute needs %s", names[got],
                                 want == ONX_ATTR_SPARSE_TENSOR ? "a sparse tensor, which has no notation"
                                                                : names[want]);
}

static uint64_t bits_of(const single *v)
{
    uint64_t bits = 0;
    if (v->type == ONX_ATTR_FLOAT)
        memcpy(&bits, &v->f, sizeof v->f);
    else if (v->type == ONX_ATTR_INT)
        memcpy(&bits, &v->i, sizeof v->i);
    else if (v->type == ONX_ATTR_STRING)
        bits = v->s.bits;
    else
        bits = (uint64_t)(uintptr_t)v->message;
    return bits;
}

/* Makes the list from `base` on the value of the attribute. */
static bool set_list(onxi_text_parser *p, onx_attribute *a, uint8_t element, size_t base)
{
    size_t n = p->stack_count - base;
    a->slot = onxi_attribute_kind_of(list_of(element))->slot;
    if (element == ONX_ATTR_STRING) {
        a->strings = onxi_text_pop_strings(p, base, &a->count);
    } else if (element == ONX_ATTR_INT || element == ONX_ATTR_FLOAT) {
        size_t size = element == ONX_ATTR_INT ? sizeof *a->ints : sizeof *a->floats;
        char *data = n > INT32_MAX ? NULL : onxi_arena_get(p->arena, (size_t)onxi_list_room(n) * size);
        if (!data)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        for (size_t i = 0; i < n; i++)
            memcpy(data + i * size, p->stack + base + i, size);
        if (element == ONX_ATTR_INT)
            a->ints = (int64_t *)(void *)data;
        else
            a->floats = (float *)(void *)data;
        a->count = (uint32_t)n;
        p->stack_count = base;
    } else {
        a->tensors = onxi_text_pop_pointers(p, base, &a->count);
    }
    return !p->fatal;
}

/* "[" [ single { "," single } ] "]"; the opening bracket has been consumed; `want` as above. */
static bool parse_list(onxi_text_parser *p, onx_attribute *a, uint8_t want)
{
    size_t base = p->stack_count;
    if (onxi_text_peek(p) == ']') {
        if (!want)
            return onxi_text_parse_error(p, p->at, NULL, "write the type: name: ints = []",
                                         "an empty list does not tell its type");
        p->at++;
        ONX_SET(attribute, a, type, list_of(want));
        return true;
    }
    do {
        single v;
        onxi_text_gap(p);
        const char *at = p->at;
        if (!parse_single(p, want, &v))
            return false;
        if (v.type == REFERENCE)
            return onxi_text_parse_error(p, at, NULL, "refer to an attribute that is a list: name: ints = @other",
                                         "a list cannot hold references");
        if (!want)
            want = v.type;
        if (v.type != want)
            return wrong_type(p, at, want, v.type);
        if (!onxi_text_push(p, bits_of(&v)))
            return false;
    } while (onxi_text_take(p, ','));
    if (!onxi_text_expect(p, ']', "',' or ']'", "the list"))
        return false;
    ONX_SET(attribute, a, type, list_of(want));
    return set_list(p, a, want, base);
}

static bool set_reference(onxi_text_parser *p, onx_attribute *a, onx_bytes name)
{
    onx_attribute_extra *extra = ONXI_NEW(p->arena, onx_attribute_extra);
    if (!extra)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    extra->ref_attr_name = name;
    a->extra = &extra->base;
    a->has |= onx_attribute_has_ref_attr_name;
    return true;
}

static void set_single(onx_attribute *a, const single *v)
{
    ONX_SET(attribute, a, type, v->type);
    a->count = 0;
    switch (v->type) {
    case ONX_ATTR_FLOAT:
        ONX_SET(attribute, a, f, v->f);
        a->slot = ONX_SLOT_F;
        break;
    case ONX_ATTR_INT:
        ONX_SET(attribute, a, i, v->i);
        a->slot = ONX_SLOT_I;
        break;
    case ONX_ATTR_STRING:
        ONX_SET(attribute, a, s, v->s);
        a->slot = ONX_SLOT_S;
        break;
    case ONX_ATTR_TENSOR:
        ONX_SET(attribute, a, t, v->message);
        a->slot = ONX_SLOT_T;
        break;
    case ONX_ATTR_GRAPH:
        ONX_SET(attribute, a, g, v->message);
        a->slot = ONX_SLOT_G;
        break;
    default:
        ONX_SET(attribute, a, tp, v->message);
        a->slot = ONX_SLOT_TP;
        break;
    }
}

static bool parse_value(onxi_text_parser *p, onx_attribute *a, uint8_t type, uint8_t element)
{
    onxi_text_gap(p);
    const char *at = p->at;
    if (onxi_text_take(p, '[')) {
        if (type && type == element)
            return onxi_text_parse_error(p, at, NULL, "use the plural: ints, floats, strings",
                                         "a list stands where the type says one value");
        return parse_list(p, a, element);
    }
    single v;
    if (!parse_single(p, element, &v))
        return false;
    if (v.type == REFERENCE) {
        if (type)
            ONX_SET(attribute, a, type, type);
        return set_reference(p, a, v.s);
    }
    if (type != element)
        return onxi_text_parse_error(p, at, "'['", "a list stands in brackets, also with one element",
                                     "one value stands where the type says a list");
    if (element && v.type != element)
        return wrong_type(p, at, element, v.type);
    set_single(a, &v);
    return true;
}

static bool no_annotation(onxi_text_parser *p, const char *at, onx_str word)
{
    const char *hint = !word.len                      ? "a value stands behind =, name = 1"
                       : onx_str_is(word, "bool")     ? "booleans are ints: 1 or 0"
                       : onxi_text_is_type_word(word) ? "a value of a tensor type is a tensor, one number int or float"
                                                      : NULL;
    return onxi_text_parse_error(p, at,
                                 "int, float, string, tensor, graph, type_proto, sparse_tensor or a plural of these",
                                 hint, "this is not a type of attributes");
}

bool onxi_text_parse_attribute_rest(onxi_text_parser *p, onx_attribute *a)
{
    uint8_t type = 0, element = 0;
    p->target[ONXI_TARGET_ATTRIBUTE] = a;
    if (onxi_text_take(p, ':')) {
        onxi_text_gap(p);
        const char *word_at = p->at;
        onx_str word = onxi_text_take_ident(p);
        size_t i = 0;
        while (i < ANNOTATIONS && !onx_str_is(word, annotations[i].word))
            i++;
        if (i == ANNOTATIONS)
            return no_annotation(p, word_at, word);
        type = annotations[i].type;
        element = annotations[i].element;
    }
    char c = onxi_text_peek(p);
    if (c == ',' || c == '>' || c == '(')
        return onxi_text_parse_error(p, p->at, "'=' and a value", NULL, "an attribute has no value");
    if (!onxi_text_expect(p, '=', type ? "'='" : "':' or '='", "the attribute"))
        return false;
    uint32_t depth = p->depth;
    size_t waiting = p->waiting_count;
    p->hold = true; /* skipping the gap after a value may reach a comment about the attribute */
    bool ok = onxi_text_parse_enter(p, 1) && parse_value(p, a, type, element);
    p->hold = false;
    p->target[ONXI_TARGET_ATTRIBUTE] = a; /* nested graphs have changed it */
    onxi_text_restore_waiting(p, waiting);
    p->depth = depth;
    return ok;
}

/* attribute = ident [ ":" attr-type ] "=" attr-value */
bool onxi_text_parse_attribute(onxi_text_parser *p, onx_attribute *a)
{
    onxi_text_gap(p);
    const char *at = p->at;
    onxi_text_mark_part(p, a, at);
    onx_str name = onxi_text_take_ident(p);
    if (!name.len)
        return onxi_text_parse_error(p, at, "a name",
                                     at < p->end && *at == '"' ? "names of attributes are not quoted"
                                                               : onxi_text_hint_behind_comma(p),
                                     "the name of an attribute is missing");
    a->has = onx_attribute_has_name;
    if (!onxi_bytes_refer(p->arena, name.ptr, name.len, &a->name))
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    return onxi_text_parse_attribute_rest(p, a);
}

/* Recovers from an error in an attribute: skips to the next one, or to the end of the list on the same line. */
static bool skip_attribute(onxi_text_parser *p, const char *start)
{
    const char *error = p->at;
    if (!p->fatal && onxi_text_skip_element(p, start, '>') && p->at >= error &&
        !memchr(error, '\n', (size_t)(p->at - error)))
        return true;
    p->at = error;
    return false;
}

/* attributes = "<" attribute { "," attribute } ">"; the opening bracket has been consumed */
static bool parse_attributes(onxi_text_parser *p, onx_node *node)
{
    size_t base = p->stack_count;
    uint32_t depth = p->depth, errors = p->errors;
    do {
        onx_attribute *a = ONXI_NEW(p->arena, onx_attribute);
        if (!a)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        onxi_text_gap(p);
        const char *at = p->at;
        size_t stack = p->stack_count;
        if (!onxi_text_parse_attribute(p, a)) {
            p->depth = depth;
            p->stack_count = stack;
            if (!skip_attribute(p, at))
                return false;
        } else if (!onxi_text_push_ptr(p, a)) {
            return false;
        }
        if (p->trivia)
            onxi_text_trivia_item(p, a, at, onxi_text_token_end(p));
    } while (onxi_text_take(p, ','));
    if (p->trivia)
        onxi_text_trivia_closing(p, (const char *)node + 1);
    node->attribute = onxi_text_pop_pointers(p, base, &node->attribute_count);
    return !p->fatal && onxi_text_expect(p, '>', "',' or '>'", "the list of attributes") && p->errors == errors;
}

/* ---- nodes ---- */

/* operands = [ slot { "," slot } [ "," ] ]; an empty slot counts only if a comma follows it. */
static bool parse_operands(onxi_text_parser *p, onx_bytes **list, uint32_t *count)
{
    size_t base = p->stack_count, marks = onxi_text_mark_next(p);
    for (;;) {
        onx_bytes name = { 0 };
        char c = onxi_text_peek(p);
        const char *at = p->at;
        if (onxi_text_char_is(c, ONXI_CHAR_LETTER)) {
            onx_str s = onxi_text_take_ident(p);
            if (!onxi_bytes_refer(p->arena, s.ptr, s.len, &name))
                return onxi_text_parse_abort(p, ONX_E_MEMORY);
        } else if (c == '"') {
            if (!onxi_text_take_string(p, &name))
                return false;
        } else if (c != ',') {
            break;
        }
        onxi_text_mark_part(p, NULL, at);
        if (!onxi_text_push(p, name.bits))
            return false;
        if (!onxi_text_take(p, ','))
            break;
    }
    *list = onxi_text_pop_strings(p, base, count);
    if (p->marks)
        onxi_text_mark_elements(p, marks, *list);
    return !p->fatal;
}

/* A part of an operator's name: bare, or quoted (an extension of this library). */
static bool take_part(onxi_text_parser *p, onx_str *out, bool *quoted)
{
    char c = onxi_text_peek(p);
    *quoted = c == '"';
    if (*quoted) {
        onx_bytes text;
        if (!onxi_text_take_string(p, &text))
            return false;
        *out = onx_view(text);
    } else {
        *out = onxi_text_take_ident(p);
    }
    if (!out->len)
        return onxi_text_parse_error(p, p->at, "the name of an operator", NULL, "the operator of a node is missing");
    return true;
}

static bool append(onxi_text_parser *p, onx_str s)
{
    if (!onxi_text_data_reserve(p, s.len + 1))
        return false;
    memcpy(p->data + p->data_len, s.ptr, s.len);
    p->data_len += s.len;
    return true;
}

/* operator = [ "." ] part { "." part }: the last part is the operator, the rest the domain. */
static bool parse_operator(onxi_text_parser *p, onx_node *node)
{
    onx_str part, domain = { 0 };
    bool quoted, plain = true; /* plain: the parts of the domain so far are adjacent in the text */
    const char *start = p->at;
    if (onxi_text_take(p, '.')) /* some existing texts have it */
        onxi_text_parse_warn(p, start, ONX_NOTE, "leave out the dot", "an empty domain stands before the operator");
    onxi_text_gap(p);
    onxi_text_mark_part(p, &node->op_type, p->at); /* the domain with it */
    if (!take_part(p, &part, &quoted))
        return false;
    while (onxi_text_take(p, '.')) {
        if (!domain.len) {
            domain = part;
            plain = !quoted;
        } else if (plain && !quoted && part.ptr == domain.ptr + domain.len + 1) {
            domain.len += part.len + 1;
        } else {
            if (domain.ptr != p->data) {
                p->data_len = 0;
                if (!append(p, domain))
                    return false;
            }
            if (!append(p, onx_str_make(".", 1)) || !append(p, part))
                return false;
            domain = onx_str_make(p->data, p->data_len);
            plain = false;
        }
        if (!take_part(p, &part, &quoted))
            return false;
    }
    if (domain.len) {
        node->has |= onx_node_has_domain;
        bool made = domain.ptr == p->data;
        if (made ? onx_arena_keep(p->arena, domain, &node->domain) != ONX_OK
                 : !onxi_bytes_refer(p->arena, domain.ptr, domain.len, &node->domain))
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
    }
    node->has |= onx_node_has_op_type;
    return onxi_bytes_refer(p->arena, part.ptr, part.len, &node->op_type) || onxi_text_parse_abort(p, ONX_E_MEMORY);
}

static bool parse_overload(onxi_text_parser *p, onx_node *node)
{
    onx_node_extra *extra = ONXI_NEW(p->arena, onx_node_extra);
    if (!extra)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    node->extra = &extra->base;
    node->has |= onx_node_has_overload;
    onxi_text_gap(p);
    onxi_text_mark_part(p, &extra->overload, p->at);
    return onxi_text_take_name(p, &extra->overload, "the name of an overload");
}

/* [ "[" [ name ] "]" ] operands "=" */
static bool parse_outputs(onxi_text_parser *p, onx_node *node)
{
    if (onxi_text_take(p, '[')) {
        node->has |= onx_node_has_name;
        if (onxi_text_peek(p) != ']' && !onxi_text_take_name(p, &node->name, "the name of the node or ']'"))
            return false;
        if (!onxi_text_expect(p, ']', "']'", "the label of a node"))
            return false;
    }
    if (!parse_operands(p, &node->output, &node->output_count))
        return false;
    if (onxi_text_peek(p) == '=' && p->end - p->at >= 2 && p->at[1] == '>')
        return onxi_text_parse_error(p, p->at, "'='", "a node is written: outputs = Operator(inputs)",
                                     "an arrow stands in a node");
    if (onxi_text_take(p, '='))
        return true;
    if (!node->output_count)
        return onxi_text_parse_error(p, p->at, "the outputs of a node, '=' or '}'", onxi_text_hint_for_name(p),
                                     "unexpected text in the list of nodes");
    const char *hint = onxi_text_hint_behind_name(p);
    return onxi_text_unexpected(p, "',' or '='", hint ? hint : "a node is written: outputs = Operator(inputs)",
                                "the node");
}

static const char *inputs_hint(onxi_text_parser *p, const onx_node *node)
{
    onxi_text_gap(p);
    const char *stop = onxi_text_token_end(p);
    if (memchr(stop, '\n', (size_t)(p->at - stop)))
        return NULL;
    if (p->at < p->end && onxi_text_char_is(*p->at, ONXI_CHAR_LETTER) && node->input_count)
        return onxi_text_is_type_word(onx_view(node->input[node->input_count - 1])) ? "inputs have no types"
                                                                                    : "commas stand between inputs";
    const char *hint = onxi_text_hint_behind_name(p);
    return hint ? hint : onxi_text_hint_for_name(p);
}

static bool no_operands(onxi_text_parser *p, const onx_node *node)
{
    char c = onxi_text_peek(p);
    const char *hint = c == '-'   ? "quote a name with other characters: \"my-domain\".Op"
                       : c == '[' ? "inputs stand in parentheses"
                       : c == '{' ? "attributes stand in angle brackets: Operator<name = value>(inputs)"
                                  : NULL;
    return onxi_text_parse_error(p, p->at, node->attribute_count ? "'('" : "'(' or '<'", hint,
                                 "the inputs of a node are missing");
}

/* node = [ label ] operands "=" operator [ ":" name ] [ attributes ] "(" operands ")" [ attributes ] */
bool onxi_text_parse_node(onxi_text_parser *p, onx_node **out)
{
    onx_node *node = ONXI_NEW(p->arena, onx_node);
    *out = node;
    if (!node)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    onxi_text_gap(p);
    const char *start = p->at;
    onxi_text_mark_part(p, node, start);
    if (!parse_outputs(p, node) || !parse_operator(p, node))
        return false;
    if (onxi_text_take(p, ':') && !parse_overload(p, node))
        return false;
    if (onxi_text_take(p, '<') && !parse_attributes(p, node))
        return false;
    if (!onxi_text_take(p, '('))
        return no_operands(p, node);
    if (!parse_operands(p, &node->input, &node->input_count))
        return false;
    if (!onxi_text_take(p, ')'))
        return onxi_text_unexpected(p, "',' or ')'", inputs_hint(p, node), "the list of inputs");
    const char *stop = p->at;
    p->target[ONXI_TARGET_NODE] = node; /* a comment may follow */
    if (onxi_text_peek(p) == '<') {
        if (node->attribute_count)
            return onxi_text_parse_error(p, p->at, "the next node or '}'", "write all attributes in one list",
                                         "a node has attributes on both sides of its inputs");
        p->at++;
        if (!parse_attributes(p, node))
            return false;
        stop = p->at;
    }
    p->target[ONXI_TARGET_NODE] = node;
    if (p->trivia)
        onxi_text_trivia_item(p, node, start, stop);
    return true;
}

/* nodes = "{" { node } "}". Invalid nodes are reported and omitted, and the list continues. */
bool onxi_text_parse_nodes(onxi_text_parser *p, onx_node ***list, uint32_t *count)
{
    size_t base = p->stack_count;
    if (!onxi_text_expect(p, '{', "'{'", "the list of nodes"))
        return false;
    if (p->trivia)
        onxi_text_trivia_item(p, NULL, p->at - 1, p->at);
    for (;;) {
        char c = onxi_text_peek(p);
        const char *start = p->at;
        if (c == '}')
            break;
        if (start >= p->end)
            return onxi_text_parse_error(p, start, "a node or '}'", NULL, "the list of nodes has no end");
        uint32_t depth = p->depth;
        size_t stack = p->stack_count;
        onx_node *node;
        if (onxi_text_parse_enter(p, 1) && onxi_text_parse_node(p, &node)) {
            if (!onxi_text_push_ptr(p, node))
                return false;
        } else {
            if (p->fatal)
                return false;
            p->stack_count = stack;
            onxi_text_skip_node(p, start);
        }
        p->depth = depth;
    }
    p->at++;
    *list = onxi_text_pop_pointers(p, base, count);
    return !p->fatal;
}
