/* text_print.c - models, functions, graphs and nodes in the text syntax, and the entry point of the printer. */
#include "text/text.h"

enum { WIDTH = 100, WIDTH_MIN = 20, WRAP_OPERANDS = 8, DEFAULT_LITERALS = 16, TYPES_AT = 46 };

/* ---- lists ---- */

static bool list_has_trivia(const onxi_text_printer *o, const onxi_text_list *list)
{
    if (!o->trivia || !list->key)
        return false;
    if (list->end && onxi_text_trivia_leads(o, list->end))
        return true;
    for (uint32_t i = 0; i < list->count; i++)
        if (onxi_text_trivia_has(o, list->key(list->owner, i)))
            return true;
    return false;
}

/* Begins the line of a closing bracket, after the comments before it. */
static void print_end(onxi_text_printer *o, const void *end)
{
    if (end && onxi_text_trivia_leads(o, end)) {
        onxi_text_put_line(o);
        onxi_text_trivia_before(o, end, true);
        o->len = o->line > 0 && o->status == ONX_OK ? o->line - 1 : o->len; /* the line is ended below */
    }
    o->indent -= 2;
    onxi_text_put_line(o);
}

void onxi_text_print_list(onxi_text_printer *o, const onxi_text_list *list, bool lines)
{
    if (!lines && !list_has_trivia(o, list)) {
        onxi_text_out_mark mark = onxi_text_out_try(o);
        onxi_text_put_char(o, list->open);
        for (uint32_t i = 0; i < list->count && !onxi_text_out_stop(o); i++) {
            if (i)
                ONXI_PUT(o, ", ");
            list->item(o, list->owner, i);
        }
        onxi_text_put_char(o, list->close);
        if (onxi_text_out_done(o, mark, false))
            return;
    }
    if (o->narrow) {
        o->broken = true;
        return;
    }
    onxi_text_put_char(o, list->open);
    o->indent += 2;
    for (uint32_t i = 0; i < list->count && o->status == ONX_OK; i++) {
        const void *key = list->key ? list->key(list->owner, i) : NULL;
        size_t keep = o->keep_len;
        onxi_text_put_line(o);
        onxi_text_trivia_before(o, key, false);
        list->item(o, list->owner, i);
        if (i + 1 < list->count)
            onxi_text_put_char(o, ',');
        bool commented = onxi_text_trivia_after(o, key);
        onxi_text_keep_flush(o, keep, !commented);
        onxi_text_out_flush(o, false);
    }
    print_end(o, list->end);
    onxi_text_put_char(o, list->close);
}

/* ---- headers ---- */

typedef struct head {
    const void *message;
    const onxi_text_head_item *present[8];
} head;

static const char *head_member(const head *h, uint32_t i)
{
    return (const char *)h->message + h->present[i]->offset;
}

static const void *head_key(const void *owner, uint32_t i)
{
    return head_member(owner, i);
}

static uint32_t head_count(const head *h, const onxi_text_head_item *item)
{
    uint32_t count;
    memcpy(&count, (const char *)h->message + item->count_offset, sizeof count);
    return count;
}

static void print_imports(onxi_text_printer *o, onx_operator_set_id *const *list, uint32_t count)
{
    onxi_text_put_char(o, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            ONXI_PUT(o, ", ");
        onxi_text_put_string(o, onx_view(list[i]->domain));
        ONXI_PUT(o, ": ");
        onxi_text_put_int(o, list[i]->version);
    }
    onxi_text_put_char(o, ']');
}

static void print_head_item(onxi_text_printer *o, const void *owner, uint32_t i)
{
    const head *h = owner;
    const onxi_text_head_item *item = h->present[i];
    const char *member = head_member(h, i);
    int64_t number;
    onx_bytes text;
    void *const *list;
    onxi_text_put_text(o, item->word);
    ONXI_PUT(o, ": ");
    switch (item->form) {
    case ONXI_HEAD_INT:
        memcpy(&number, member, sizeof number);
        onxi_text_put_int(o, number);
        break;
    case ONXI_HEAD_STRING:
        memcpy(&text, member, sizeof text);
        onxi_text_put_string(o, onx_view(text));
        break;
    case ONXI_HEAD_IMPORTS:
        memcpy(&list, member, sizeof list);
        print_imports(o, (onx_operator_set_id *const *)(void *)list, head_count(h, item));
        break;
    default:
        memcpy(&list, member, sizeof list);
        onxi_text_print_pairs(o, (onx_string_string_entry *const *)(void *)list, head_count(h, item));
        break;
    }
}

/* Would parsing the printed list yield the same list? */
static bool head_list_is_plain(const head *h, const onxi_text_head_item *item)
{
    onx_message *const *list;
    memcpy(&list, (const char *)h->message + item->offset, sizeof list);
    for (uint32_t i = 0; i < head_count(h, item); i++)
        if (onxi_text_has_unknown(list[i]) ||
            (item->form == ONXI_HEAD_IMPORTS && !(list[i]->has & (uint32_t)onx_operator_set_id_has_version)))
            return false;
    return true;
}

/* Returns false if there is nothing to print. Lists that the header cannot fully express are kept as comments. */
static bool print_head(onxi_text_printer *o, onx_kind kind, const onxi_text_head_item *items, const void *message)
{
    head h = { .message = message };
    onxi_text_list list = { '<', '>', 0, print_head_item, head_key, &h, onxi_text_trivia_close_key(message) };
    for (; items->word; items++) {
        bool present = items->has ? (((const onx_message *)message)->has & items->has) != 0 : head_count(&h, items) > 0;
        if (present)
            h.present[list.count++] = items;
        if (present && !items->has && !head_list_is_plain(&h, items))
            onxi_text_keep_field(o, kind, message, items->number);
    }
    if (!list.count)
        return false;
    onxi_text_print_list(o, &list, false);
    return true;
}

/* ---- nodes ---- */

static void print_operands(onxi_text_printer *o, const onx_bytes *list, uint32_t count)
{
    for (uint32_t i = 0; i < count && !onxi_text_out_stop(o); i++) {
        if (i)
            onxi_text_put_char(o, ',');
        if (i && count > WRAP_OPERANDS && onxi_text_out_wide(o)) {
            o->indent += 4;
            onxi_text_put_line(o);
            o->indent -= 4;
        } else if (i) {
            onxi_text_put_char(o, ' ');
        }
        onxi_text_put_name(o, onx_view(list[i]));
    }
}

/* a.b.c */
bool onxi_text_is_dotted(onx_str s)
{
    size_t from = 0;
    for (size_t i = 0; i <= s.len; i++)
        if (i == s.len || s.ptr[i] == '.') {
            if (!onxi_text_is_ident(onx_str_make(s.ptr + from, i - from)))
                return false;
            from = i + 1;
        }
    return true;
}

static void print_operator(onxi_text_printer *o, const onx_node *node)
{
    onx_str domain = onx_view(node->domain), op_type = onx_view(node->op_type),
            overload = onx_view(onx_node_more(node)->overload);
    if (domain.len) {
        if (onxi_text_is_dotted(domain))
            onxi_text_write(o, domain.ptr, domain.len);
        else
            onxi_text_put_string(o, domain);
        onxi_text_put_char(o, '.');
    }
    if (op_type.len) {
        onxi_text_put_name(o, op_type);
    } else {
        onxi_text_put_char(o, '_');
        onxi_text_path_field(o, "op_type");
        onxi_text_keep_line(o, ": none");
        onxi_text_path_cut(o, o->path_len - 1);
    }
    if (overload.len) {
        onxi_text_put_char(o, ':');
        onxi_text_put_name(o, overload);
    }
}

static void print_attributes(onxi_text_printer *o, const onx_node *node, bool lines)
{
    onxi_text_put_char(o, '<');
    size_t path = o->path_len;
    o->indent += 2;
    for (uint32_t i = 0; i < node->attribute_count && !onxi_text_out_stop(o); i++) {
        if (i && !lines)
            ONXI_PUT(o, ", ");
        if (lines) {
            onxi_text_put_line(o);
            onxi_text_trivia_before(o, node->attribute[i], false);
        }
        onxi_text_path_index(o, "attribute", i);
        onxi_text_print_attribute(o, node->attribute[i], false);
        onxi_text_path_cut(o, path);
        if (lines && i + 1 < node->attribute_count)
            onxi_text_put_char(o, ',');
        if (lines)
            onxi_text_trivia_after(o, node->attribute[i]);
    }
    if (lines)
        print_end(o, (const char *)node + 1);
    else
        o->indent -= 2;
    onxi_text_put_char(o, '>');
}

static bool attributes_have_trivia(const onxi_text_printer *o, const onx_node *node)
{
    for (uint32_t i = 0; o->trivia && i < node->attribute_count; i++)
        if (onxi_text_trivia_has(o, node->attribute[i]))
            return true;
    return onxi_text_trivia_leads(o, (const char *)node + 1);
}

static bool node_holds_graph(const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onxi_text_attribute_holds_graph(node->attribute[i]))
            return true;
    return false;
}

/* Attributes with graphs are printed after the inputs, which would otherwise be far from the operator. */
static void print_node_text(onxi_text_printer *o, const onx_node *node, bool graphs, bool lines)
{
    if (ONX_HAS(node, node, name)) {
        onxi_text_put_char(o, '[');
        if (onx_view(node->name).len)
            onxi_text_put_name(o, onx_view(node->name));
        ONXI_PUT(o, "] ");
    }
    print_operands(o, node->output, node->output_count);
    if (node->output_count)
        onxi_text_put_char(o, ' ');
    ONXI_PUT(o, "= ");
    print_operator(o, node);
    if (node->attribute_count && !graphs)
        print_attributes(o, node, lines);
    onxi_text_put_char(o, '(');
    print_operands(o, node->input, node->input_count);
    onxi_text_put_char(o, ')');
    if (node->attribute_count && graphs)
        print_attributes(o, node, true);
}

/* Prints the types of the node's outputs as a comment; line breaks in quoted dimensions become spaces. */
static void print_node_types(onxi_text_printer *o, const onx_node *node)
{
    bool any = false;
    if (!o->options.type_of)
        return;
    size_t start = o->len, keep = o->keep_len;
    o->holding++;
    for (uint32_t i = 0; i < node->output_count; i++) {
        onx_str name = onx_view(node->output[i]);
        const onx_type *type = name.len ? o->options.type_of(o->options.user, o->scope_kind, o->scope, name) : NULL;
        if (!type || !onxi_text_type_is_plain(type, o->depth_limit))
            continue;
        if (!any)
            while (onxi_text_out_column(o) < TYPES_AT && o->status == ONX_OK)
                onxi_text_put_char(o, ' ');
        onxi_text_put_text(o, any ? ", " : "  # ");
        any = true;
        if (node->output_count > 1) {
            onxi_text_put_name(o, name);
            ONXI_PUT(o, ": ");
        }
        onxi_text_print_type(o, type);
    }
    for (size_t i = start; i < o->len && o->status == ONX_OK; i++)
        if (o->buf[i] == '\n')
            o->buf[i] = ' ';
    o->holding--;
    o->keep_len = keep;
}

static void print_node(onxi_text_printer *o, const onx_node *node)
{
    static const uint32_t rest[] = { 6, 9, 10, 0 }; /* doc_string, metadata_props, device_configurations */
    onxi_text_path_mark item = onxi_text_path_enter(o, "node");
    onxi_text_trivia_before(o, node, false);
    bool graphs = node_holds_graph(node), remarks = attributes_have_trivia(o, node), done = false;
    if (!graphs && !remarks && node->attribute_count > 1) {
        onxi_text_out_mark mark = onxi_text_out_try(o);
        print_node_text(o, node, false, false);
        done = onxi_text_out_done(o, mark, true);
    }
    if (!done)
        print_node_text(o, node, graphs, remarks || node->attribute_count > 1);
    if (node->extra)
        onxi_text_keep_fields(o, ONX_KIND_NODE, node, rest);
    print_node_types(o, node);
    bool commented = onxi_text_trivia_after(o, node);
    onxi_text_keep_flush(o, item.keep_len, !commented);
    onxi_text_path_leave(o, item);
}

/* "{" nodes "}"; comments kept since `keep` belong to the owner and come first. */
static void print_body(onxi_text_printer *o, onx_kind kind, const void *owner, onx_node *const *nodes, uint32_t count,
                       size_t keep)
{
    const char *end = (const char *)owner + 1; /* the formatter's key of the end of the body */
    onxi_text_put_char(o, '{');
    o->indent += 2;
    size_t before = o->len;
    onxi_text_keep_flush(o, keep, false);
    bool trivia = onxi_text_trivia_leads(o, end);
    o->scope_kind = kind;
    o->scope = owner;
    for (uint32_t i = 0; i < count && o->status == ONX_OK; i++) {
        onxi_text_put_line(o);
        print_node(o, nodes[i]);
        onxi_text_out_flush(o, false);
    }
    if (trivia) {
        onxi_text_put_line(o);
        onxi_text_trivia_before(o, end, true);
        o->len = o->line > 0 && o->status == ONX_OK ? o->line - 1 : o->len; /* the line of the brace is ended below */
    }
    o->indent -= 2;
    if (count || trivia || o->len != before)
        onxi_text_put_line(o);
    onxi_text_put_char(o, '}');
    onxi_text_trivia_after(o, end); /* not for graphs in attributes, whose ends the parser does not record */
}

/* ---- graphs ---- */

typedef struct graph_lists {
    const onx_graph *graph;
    uint32_t defaults; /* number of initializers that are printed with their inputs */
    uint32_t *next;    /* the next one, while the inputs are printed */
} graph_lists;

static bool small_default(const onx_value_info *value, const onx_tensor *t)
{
    uint64_t count;
    return onx_str_equal(onx_view(value->name), onx_view(t->name)) && ONX_HAS(value_info, value, type) &&
           !value->extra && !value->metadata_props_count && onxi_text_type_is_plain(value->type, 1) &&
           onxi_text_type_matches(value->type, t) && onx_tensor_count(t, &count) && count <= DEFAULT_LITERALS &&
           onxi_text_tensor_form(t) == ONXI_DATA_TYPED && !t->extra && !t->metadata_props_count;
}

/* Initializers at the start of the list that belong to inputs in the same order are printed as default values. */
static uint32_t count_defaults(const onx_graph *graph)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->input_count && n < graph->initializer_count; i++)
        n += small_default(graph->input[i], graph->initializer[n]);
    return n;
}

static void print_input(onxi_text_printer *o, const void *owner, uint32_t i)
{
    static const uint32_t rest[] = { 3, 12, 14, 16, 0 };
    const graph_lists *g = owner;
    if (i == 0)
        *g->next = 0;
    onxi_text_path_mark item = onxi_text_path_enter(o, "input");
    onxi_text_print_value(o, g->graph->input[i]);
    onxi_text_path_leave(o, item);
    if (*g->next < g->defaults && small_default(g->graph->input[i], g->graph->initializer[*g->next])) {
        const onx_tensor *t = g->graph->initializer[(*g->next)++];
        item = onxi_text_path_enter(o, "initializer");
        ONXI_PUT(o, " = ");
        onxi_text_print_tensor_data(o, t, ONXI_DATA_TYPED);
        onxi_text_keep_fields(o, ONX_KIND_TENSOR, t, rest);
        onxi_text_path_leave(o, item);
    }
}

static const void *input_key(const void *owner, uint32_t i)
{
    return ((const graph_lists *)owner)->graph->input[i];
}

static void print_output(onxi_text_printer *o, const void *owner, uint32_t i)
{
    onxi_text_path_mark item = onxi_text_path_enter(o, "output");
    onxi_text_print_value(o, ((const graph_lists *)owner)->graph->output[i]);
    onxi_text_path_leave(o, item);
}

static const void *output_key(const void *owner, uint32_t i)
{
    return ((const graph_lists *)owner)->graph->output[i];
}

/* Initializers, then value infos. */
static const void *stored_key(const void *owner, uint32_t i)
{
    const graph_lists *g = owner;
    uint32_t initializers = g->graph->initializer_count - g->defaults;
    return i < initializers ? (const void *)g->graph->initializer[g->defaults + i]
                            : (const void *)g->graph->value_info[i - initializers];
}

static void print_stored(onxi_text_printer *o, const void *owner, uint32_t i)
{
    const graph_lists *g = owner;
    bool initializer = i < g->graph->initializer_count - g->defaults;
    onxi_text_path_mark item = onxi_text_path_enter(o, initializer ? "initializer" : "value_info");
    if (initializer)
        onxi_text_print_tensor(o, stored_key(owner, i), true);
    else
        onxi_text_print_value(o, stored_key(owner, i));
    onxi_text_path_leave(o, item);
}

/* "(" inputs ") => (" outputs ")" on one line, or a line for each input */
static void print_signature(onxi_text_printer *o, const onxi_text_list *inputs, const onxi_text_list *outputs)
{
    onxi_text_out_mark mark = onxi_text_out_try(o);
    onxi_text_print_list(o, inputs, false);
    ONXI_PUT(o, " => ");
    onxi_text_print_list(o, outputs, false);
    if (onxi_text_out_done(o, mark, false) || o->narrow)
        return;
    onxi_text_print_list(o, inputs, inputs->count > 1);
    ONXI_PUT(o, " => ");
    onxi_text_print_list(o, outputs, false);
}

/* Is the name parsed as a name where an attribute value is expected? */
static void put_graph_name(onxi_text_printer *o, onx_str name)
{
    if (onxi_text_is_special_float(name))
        onxi_text_put_string(o, name);
    else
        onxi_text_put_value_name(o, name);
}

/* The list in <> is meant for many long items: one per line, unless it is short. */
static void print_stored_list(onxi_text_printer *o, const onxi_text_list *list)
{
    if (!list->count && !list_has_trivia(o, list)) {
        onxi_text_put_char(o, ' ');
        return;
    }
    onxi_text_put_line(o);
    onxi_text_print_list(o, list, false);
    onxi_text_put_line(o);
}

void onxi_text_print_graph(onxi_text_printer *o, const onx_graph *graph)
{
    static const uint32_t rest[] = { 10, 14, 15, 16,
                                     0 }; /* doc_string, quantization_annotation, sparse_initializer, metadata_props */
    if (++o->depth > o->depth_limit && o->status == ONX_OK)
        o->status = onxi_fail(o->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                              "graphs are nested more than %u levels deep (limit depth)", o->depth_limit);
    if (o->status != ONX_OK) {
        o->depth--;
        return;
    }
    uint32_t next = 0;
    graph_lists g = { graph, count_defaults(graph), &next };
    onxi_text_list inputs = { '(', ')', graph->input_count, print_input, input_key, &g, &graph->input };
    onxi_text_list outputs = { '(', ')', graph->output_count, print_output, output_key, &g, &graph->output };
    onxi_text_list stored = { '<',
                              '>',
                              graph->initializer_count - g.defaults + graph->value_info_count,
                              print_stored,
                              stored_key,
                              &g,
                              &graph->value_info };
    put_graph_name(o, onx_view(graph->name));
    onxi_text_put_char(o, ' ');
    print_signature(o, &inputs, &outputs);
    print_stored_list(o, &stored);
    onxi_text_path_mark item = onxi_text_path_enter(o, "graph");
    onxi_text_keep_fields(o, ONX_KIND_GRAPH, graph, rest);
    onxi_text_path_leave(o, item);
    print_body(o, ONX_KIND_GRAPH, graph, graph->node, graph->node_count, item.keep_len);
    o->depth--;
}

/* ---- functions ---- */

/* Value infos at the start of the list that belong to inputs, then outputs, in the same order are printed with them. */
typedef struct function_lists {
    const onx_function *function;
    uint32_t at_inputs, at_outputs; /* number of value infos printed with inputs and outputs */
    uint32_t *next;
} function_lists;

static bool typed_parameter(const onxi_text_printer *o, const onx_function *f, uint32_t value, onx_bytes name)
{
    return value < f->value_info_count && onx_str_equal(onx_view(f->value_info[value]->name), onx_view(name)) &&
           ONX_HAS(value_info, f->value_info[value], type) &&
           onxi_text_type_is_plain(f->value_info[value]->type, o->depth_limit);
}

static void print_parameter(onxi_text_printer *o, const function_lists *l, const char *target, onx_bytes name,
                            uint32_t end)
{
    if (*l->next < end && typed_parameter(o, l->function, *l->next, name)) {
        onxi_text_path_mark item = onxi_text_path_enter(o, target);
        onxi_text_print_value(o, l->function->value_info[(*l->next)++]);
        onxi_text_path_leave(o, item);
    } else {
        onxi_text_put_value_name(o, onx_view(name));
    }
}

static void print_function_input(onxi_text_printer *o, const void *owner, uint32_t i)
{
    const function_lists *l = owner;
    if (i == 0)
        *l->next = 0;
    print_parameter(o, l, "input", l->function->input[i], l->at_inputs);
}

static void print_function_output(onxi_text_printer *o, const void *owner, uint32_t i)
{
    const function_lists *l = owner;
    if (i == 0)
        *l->next = l->at_inputs;
    print_parameter(o, l, "output", l->function->output[i], l->at_inputs + l->at_outputs);
}

static const onx_value_info *function_value(const function_lists *l, uint32_t i)
{
    return l->function->value_info[l->at_inputs + l->at_outputs + i];
}

static void print_function_value(onxi_text_printer *o, const void *owner, uint32_t i)
{
    onxi_text_path_mark item = onxi_text_path_enter(o, "value_info");
    onxi_text_print_value(o, function_value(owner, i));
    onxi_text_path_leave(o, item);
}

static const void *function_value_key(const void *owner, uint32_t i)
{
    return function_value(owner, i);
}

static void print_function_attribute(onxi_text_printer *o, const void *owner, uint32_t i)
{
    const onx_function *f = ((const function_lists *)owner)->function;
    if (i < f->attribute_count) {
        onxi_text_put_name(o, onx_view(f->attribute[i]));
        return;
    }
    onxi_text_path_mark item = onxi_text_path_enter(o, "attribute_proto");
    onxi_text_print_attribute(o, f->attribute_proto[i - f->attribute_count], true);
    onxi_text_path_leave(o, item);
}

static const void *function_attribute_key(const void *owner, uint32_t i)
{
    const onx_function *f = ((const function_lists *)owner)->function;
    return i < f->attribute_count ? NULL : f->attribute_proto[i - f->attribute_count];
}

static void print_function(onxi_text_printer *o, const onx_function *f)
{
    uint32_t next = 0;
    function_lists l = { f, 0, 0, &next };
    for (uint32_t i = 0; i < f->input_count; i++)
        l.at_inputs += typed_parameter(o, f, l.at_inputs, f->input[i]);
    for (uint32_t i = 0; i < f->output_count; i++)
        l.at_outputs += typed_parameter(o, f, l.at_inputs + l.at_outputs, f->output[i]);
    onxi_text_list attributes = { '<',
                                  '>',
                                  f->attribute_count + f->attribute_proto_count,
                                  print_function_attribute,
                                  function_attribute_key,
                                  &l,
                                  &f->attribute };
    onxi_text_list inputs = { '(', ')', f->input_count, print_function_input, NULL, &l, NULL };
    onxi_text_list outputs = { '(', ')', f->output_count, print_function_output, NULL, &l, NULL };
    onxi_text_list values = {
        '<', '>',           f->value_info_count - l.at_inputs - l.at_outputs, print_function_value, function_value_key,
        &l,  &f->value_info
    };

    static const uint32_t none[] = { 0 };
    onxi_text_path_mark item = onxi_text_path_enter(o, "function");
    onxi_text_trivia_before(o, f, false);
    if (print_head(o, ONX_KIND_FUNCTION, onxi_text_function_items, f))
        onxi_text_put_line(o);
    onxi_text_keep_fields(o, ONX_KIND_FUNCTION, f, none);
    onxi_text_path_leave(o, item);
    onxi_text_put_name(o, onx_view(f->name));
    onxi_text_put_char(o, ' ');
    if (attributes.count) {
        onxi_text_print_list(o, &attributes, false);
        onxi_text_put_char(o, ' ');
    }
    print_signature(o, &inputs, &outputs);
    print_stored_list(o, &values);
    print_body(o, ONX_KIND_FUNCTION, f, f->node, f->node_count, item.keep_len);
}

/* ---- models ---- */

static void print_model(onxi_text_printer *o, const onx_model *model)
{
    static const uint32_t rest[] = { 20, 26, 0 }; /* training_info, configuration */
    static const onx_graph nothing;
    onxi_text_path_mark item = onxi_text_path_enter(o, "model");
    onxi_text_trivia_before(o, model, false);
    bool headed = print_head(o, ONX_KIND_MODEL, onxi_text_model_items, model);
    bool commented = headed && onxi_text_trivia_after(o, model);
    (void)commented;
    onxi_text_keep_fields(o, ONX_KIND_MODEL, model, rest);
    size_t before = o->len;
    onxi_text_keep_flush(o, item.keep_len, false);
    if (headed || o->len > before)
        onxi_text_put_line(o);
    onxi_text_path_leave(o, item);
    if (model->graph)
        onxi_text_trivia_before(o, model->graph, false);
    onxi_text_print_graph(o, model->graph ? model->graph : &nothing);
    for (uint32_t i = 0; i < model->functions_count && o->status == ONX_OK; i++) {
        onxi_text_put_line(o);
        onxi_text_put_line(o);
        print_function(o, model->functions[i]);
    }
    if (!model->graph) {
        item = onxi_text_path_enter(o, "model");
        onxi_text_path_field(o, "graph");
        onxi_text_keep_line(o, ": none");
        onxi_text_keep_flush(o, item.keep_len, false);
        onxi_text_path_leave(o, item);
    }
}

/* ---- entry points ---- */

static void print_part(onxi_text_printer *o, onx_kind kind, const void *message)
{
    onxi_text_path_mark item = { 0 };
    switch (kind) {
    case ONX_KIND_MODEL:
        print_model(o, message);
        return;
    case ONX_KIND_GRAPH:
        onxi_text_trivia_before(o, message, false);
        onxi_text_print_graph(o, message);
        return;
    case ONX_KIND_FUNCTION:
        print_function(o, message);
        return;
    case ONX_KIND_NODE:
        print_node(o, message);
        return;
    case ONX_KIND_ATTRIBUTE:
        item = onxi_text_path_enter(o, "attribute");
        onxi_text_print_attribute(o, message, false);
        break;
    case ONX_KIND_TENSOR:
        item = onxi_text_path_enter(o, "tensor");
        onxi_text_print_tensor(o, message, false);
        break;
    case ONX_KIND_VALUE_INFO:
        item = onxi_text_path_enter(o, "value_info");
        onxi_text_trivia_before(o, message, false);
        onxi_text_print_value(o, message);
        break;
    case ONX_KIND_TYPE:
        item = onxi_text_path_enter(o, "type");
        if (onxi_text_type_is_plain(message, o->depth_limit)) {
            onxi_text_print_type(o, message);
        } else {
            ONXI_PUT(o, "float");
            onxi_text_keep_message(o, ONX_KIND_TYPE, message);
        }
        break;
    default:
        item = onxi_text_path_enter(o, "shape");
        onxi_text_print_shape(o, message);
        break;
    }
    onxi_text_keep_flush(o, item.keep_len, false);
    onxi_text_path_leave(o, item);
}

onx_status onxi_text_print_text(onx_ctx *cx, onx_kind kind, const void *message, const onx_text_options *options,
                                onxi_text_trivia *trivia, onx_sink sink)
{
    if (!onx_text_has_notation(kind))
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the text syntax has no notation for %s",
                         onx_kind_proto_name(kind));
    onxi_text_printer o = { .cx = cx, .sink = sink, .trivia = trivia, .depth_limit = onx_ctx_limits(cx).depth };
    if (options)
        o.options = *options;
    if (o.options.width == 0)
        o.options.width = WIDTH;
    if (o.options.width < WIDTH_MIN)
        o.options.width = WIDTH_MIN;
    print_part(&o, kind, message);
    if (trivia)
        onxi_text_trivia_rest(&o);
    onxi_text_put_char(&o, '\n');
    if (o.flushed) { /* the beginning was written before everything was known */
        char tail[4096];
        onxi_text_kept_summary(&o, tail, sizeof tail);
        onxi_text_put_text(&o, tail);
    }
    onxi_text_out_flush(&o, true);
    onxi_text_kept_report(&o);
    onxi_text_keep_release(&o);
    onxi_release(cx, o.buf, o.room);
    return o.status;
}

onx_status onx_text_print(onx_ctx *cx, onx_kind kind, const void *message, const onx_text_options *options,
                          onx_sink sink)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, sink.write);
    ONXI_OPTIONS(cx, onx_text_options, own, options);
    ONXI_CALL(cx, onxi_text_print_text(cx, kind, message, &own, NULL, sink));
}
