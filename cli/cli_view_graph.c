/* cli_view_graph.c - the boxes, values and arrows of a model, scope by scope. */
#include "cli_view.h"

#include <onx/tensor.h>

#include <stdarg.h>

typedef struct view_binding {
    uint32_t scope, value; /* scope: index + 1, 0: the name is not bound */
} view_binding;

/* The binding of a name before a scope changed it. */
typedef struct view_undo {
    uint32_t string;
    view_binding before;
} view_undo;

/* ---- lists and strings ---- */

void view_push(cli_view *view, view_list *list, uint32_t number)
{
    if (!CLI_GROW(list->at, list->count, list->room)) {
        view->scarce = true;
        return;
    }
    list->at[list->count++] = number;
}

/* The element, VIEW_NONE if memory ran out before it was added. */
static uint32_t get(const view_list *list, uint32_t at)
{
    return at < list->count ? list->at[at] : VIEW_NONE;
}

static void set(view_list *list, uint32_t at, uint32_t number)
{
    if (at < list->count)
        list->at[at] = number;
}

uint32_t view_string(cli_view *view, onx_str text)
{
    const uint32_t hash = cli_table_hash(&view->string_table, text, onx_str_of(""));
    CLI_TABLE_EACH (&view->string_table, hash, i)
        if (onx_str_equal(view->string[i], text))
            return i;
    if (!CLI_GROW(view->string, view->string_count, view->string_room) ||
        !cli_table_add(&view->string_table, hash, view->string_count)) {
        view->scarce = true;
        return 0;
    }
    view->string[view->string_count] = text;
    return view->string_count++;
}

uint32_t view_format(cli_view *view, const char *format, ...)
{
    char text[2048];
    onx_bytes kept;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const uint32_t hash = cli_table_hash(&view->string_table, onx_str_of(text), onx_str_of(""));
    CLI_TABLE_EACH (&view->string_table, hash, i)
        if (onx_str_is(view->string[i], text))
            return i;
    if (onx_arena_keep(view->arena, onx_str_of(text), &kept) != ONX_OK) {
        view->scarce = true;
        return 0;
    }
    onx_str *lasting = onx_arena_alloc(view->arena, sizeof *lasting);
    if (!lasting) {
        view->scarce = true;
        return 0;
    }
    *lasting = onx_view(kept);
    return view_string(view, *lasting);
}

/* ---- types ---- */

static uint32_t type_string(cli_view *view, const onx_type *type)
{
    char text[1024];
    if (!type)
        return 0;
    (void)cli_type(type, text, sizeof text);
    return view_format(view, "%s", text);
}

static uint32_t tensor_type_string(cli_view *view, const onx_tensor *t)
{
    char text[1024];
    const char *name = onx_dtype_name(t->data_type);
    size_t n = name ? (size_t)snprintf(text, sizeof text, "%s", name)
                    : (size_t)snprintf(text, sizeof text, "type %d", t->data_type);
    n += (size_t)snprintf(text + n, sizeof text - n, "[");
    for (uint32_t i = 0; i < t->dims_count && n < sizeof text - 32; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    snprintf(text + n, sizeof text - n, "]");
    return view_format(view, "%s", text);
}

uint32_t view_add_tensor(cli_view *view, const onx_tensor *tensor)
{
    const uint32_t name = view_string(view, onx_view(tensor->name)), type = tensor_type_string(view, tensor);
    if (!CLI_GROW(view->tensor, view->tensor_count, view->tensor_room)) {
        view->scarce = true;
        return VIEW_NONE;
    }
    view->tensor[view->tensor_count] = (view_tensor){ tensor, name, type };
    return view->tensor_count++;
}

/* ---- names ---- */

static view_binding bound(const cli_view *view, uint32_t string)
{
    return string < view->binding_count ? view->binding[string] : (view_binding){ 0 };
}

static bool reserve_binding(cli_view *view, uint32_t string)
{
    if (string < view->binding_count)
        return true;
    const uint32_t count = view->string_room;
    view_binding *more = realloc(view->binding, (size_t)count * sizeof *more);
    if (!more)
        return false;
    memset(more + view->binding_count, 0, (size_t)(count - view->binding_count) * sizeof *more);
    view->binding = more;
    view->binding_count = count;
    return true;
}

/* Binds the name to the value until the end of the scope. */
static void bind(cli_view *view, uint32_t string, uint32_t scope, uint32_t value)
{
    if (view->scarce || !reserve_binding(view, string) || !CLI_GROW(view->undo, view->undo_count, view->undo_room)) {
        view->scarce = true;
        return;
    }
    view->undo[view->undo_count++] = (view_undo){ string, view->binding[string] };
    view->binding[string] = (view_binding){ scope + 1, value };
}

static void unbind_to(cli_view *view, uint32_t mark)
{
    while (view->undo_count > mark) {
        const view_undo *u = &view->undo[--view->undo_count];
        view->binding[u->string] = u->before;
    }
}

/* ---- the parts of a scope ---- */

static view_scope *add_scope(cli_view *view, view_scope_kind kind)
{
    view_scope *s = view->scarce ? NULL : calloc(1, sizeof *s);
    if (!s || !CLI_GROW(view->scope, view->scope_count, view->scope_room)) {
        free(s);
        view->scarce = true;
        return NULL;
    }
    s->kind = kind;
    s->parent = s->parent_box = VIEW_NONE;
    s->number = view->scope_count;
    view->scope[view->scope_count++] = s;
    return s;
}

static uint32_t add_box(cli_view *view, view_scope *s, view_box_kind kind, uint32_t value)
{
    view_push(view, &s->box_kind, kind);
    view_push(view, &s->box_value, value);
    return s->box_kind.count - 1;
}

static uint32_t add_value(cli_view *view, view_scope *s, uint32_t name, uint32_t box)
{
    const uint32_t value = s->value_name.count;
    view_push(view, &s->value_name, name);
    view_push(view, &s->value_type, 0);
    view_push(view, &s->value_box, box);
    view_push(view, &s->value_tensor, VIEW_NONE);
    view_push(view, &s->value_doc, 0);
    bind(view, name, s->number, value);
    return value;
}

static void add_edge(cli_view *view, view_scope *s, uint32_t from, uint32_t to, uint32_t value)
{
    /* one arrow suffices if a node reads the same value twice in a row, like Mul(x, x) */
    const uint32_t n = s->edge_to.count;
    if (n && get(&s->edge_to, n - 1) == to && get(&s->edge_value, n - 1) == value)
        return;
    view_push(view, &s->edge_from, from);
    view_push(view, &s->edge_to, to);
    view_push(view, &s->edge_value, value);
}

/* The value that the name refers to; a captured or undefined value gets a box in this scope. */
static uint32_t resolve(cli_view *view, view_scope *s, uint32_t name)
{
    const view_binding b = bound(view, name);
    if (b.scope == s->number + 1)
        return b.value;
    const view_scope *outer = b.scope ? view->scope[b.scope - 1] : NULL;
    const uint32_t tensor = outer && !view->scarce ? get(&outer->value_tensor, b.value) : VIEW_NONE;
    if (tensor != VIEW_NONE) {
        const uint32_t value = add_value(view, s, name, VIEW_NONE);
        if (!view->scarce)
            set(&s->value_tensor, value, tensor);
        return value;
    }
    const uint32_t box = add_box(view, s, outer ? VIEW_OUTER : VIEW_MISSING, s->value_name.count);
    if (outer)
        view_push(view, &s->captured, name);
    return add_value(view, s, name, box);
}

/* ---- definitions of a scope ---- */

static void declare(cli_view *view, view_scope *s, const onx_value_info *info)
{
    const view_binding b = bound(view, view_string(view, onx_view(info->name)));
    if (b.scope != s->number + 1 || view->scarce)
        return;
    if (info->type && !get(&s->value_type, b.value))
        set(&s->value_type, b.value, type_string(view, info->type));
    if (onx_view(info->doc_string).len && !view->scarce)
        set(&s->value_doc, b.value, view_string(view, onx_view(info->doc_string)));
}

/* An input with an initializer of the same name is drawn as a weight. */
static void define_input(cli_view *view, view_scope *s, onx_str name)
{
    const uint32_t string = view_string(view, name);
    if (bound(view, string).scope == s->number + 1)
        return;
    const uint32_t box = add_box(view, s, VIEW_INPUT, s->value_name.count);
    (void)add_value(view, s, string, box);
}

static void define_weight(cli_view *view, view_scope *s, const onx_tensor *tensor, bool sparse)
{
    const uint32_t string = view_string(view, onx_view(tensor->name));
    const view_binding b = bound(view, string);
    const uint32_t value = b.scope == s->number + 1 ? b.value : add_value(view, s, string, VIEW_NONE);
    const uint32_t number = view_add_tensor(view, tensor);
    if (view->scarce)
        return;
    set(&s->value_tensor, value, number);
    if (!get(&s->value_type, value))
        set(&s->value_type, value,
            sparse ? view_format(view, "sparse %.*s", ONX_ARG(view->string[view->tensor[number].type]))
                   : view->tensor[number].type);
}

static void define_outputs(cli_view *view, view_scope *s, const onx_node *node, uint32_t box)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const onx_str name = onx_view(node->output[i]);
        if (!name.len)
            continue;
        const uint32_t string = view_string(view, name);
        const view_binding b = bound(view, string);
        if (b.scope != s->number + 1)
            (void)add_value(view, s, string, box);
        else if (!view->scarce && get(&s->value_box, b.value) == VIEW_NONE)
            set(&s->value_box, b.value, box);
    }
}

static void define(cli_view *view, view_scope *s)
{
    const onx_graph *g = s->graph;
    const onx_function *f = s->function;
    for (uint32_t i = 0; g && i < g->initializer_count; i++)
        define_weight(view, s, g->initializer[i], false);
    for (uint32_t i = 0; g && i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values)
            define_weight(view, s, g->sparse_initializer[i]->values, true);
    for (uint32_t i = 0; i < (g ? g->input_count : f->input_count); i++)
        define_input(view, s, onx_view(g ? g->input[i]->name : f->input[i]));
    s->first_node = s->box_kind.count;
    for (uint32_t i = 0; i < s->node_count; i++)
        (void)add_box(view, s, VIEW_NODE, i);
    for (uint32_t i = 0; i < s->node_count; i++)
        define_outputs(view, s, s->node[i], s->first_node + i);
    for (uint32_t i = 0; g && i < g->input_count; i++)
        declare(view, s, g->input[i]);
    for (uint32_t i = 0; g && i < g->output_count; i++)
        declare(view, s, g->output[i]);
    const uint32_t count = g ? g->value_info_count : f->value_info_count;
    for (uint32_t i = 0; i < count; i++)
        declare(view, s, g ? g->value_info[i] : f->value_info[i]);
}

/* ---- nodes ---- */

static int64_t opset_of(const cli_view *view, const view_scope *s, onx_str domain)
{
    const onx_model *m = onx_doc_model(view->doc);
    onx_operator_set_id *const *list = s->function ? s->function->opset_import : m->opset_import;
    const uint32_t count = s->function ? s->function->opset_import_count : m->opset_import_count;
    if (onx_str_is(domain, "ai.onnx"))
        domain = onx_str_of("");
    for (uint32_t i = 0; i < count; i++) {
        const onx_str d = onx_view(list[i]->domain);
        if (onx_str_equal(onx_str_is(d, "ai.onnx") ? onx_str_of("") : d, domain))
            return list[i]->version;
    }
    return 0;
}

/* The index of the operator, VIEW_NONE if it is unknown. */
static uint32_t operator_of(cli_view *view, const view_scope *s, const onx_node *node)
{
    const onx_str domain = onx_view(node->domain), name = onx_view(node->op_type);
    const int64_t version = opset_of(view, s, domain);
    const onx_op *op = version > 0 ? onx_registry_find(view->call->registry, domain, name, version) : NULL;
    if (!op)
        return VIEW_NONE;
    const uint32_t hash = cli_table_hash(&view->op_table, onx_str_of(onx_op_domain(op)), onx_str_of(onx_op_name(op)));
    CLI_TABLE_EACH (&view->op_table, hash, i)
        if (view->op[i] == op)
            return i;
    if (!CLI_GROW(view->op, view->op_count, view->op_room) || !cli_table_add(&view->op_table, hash, view->op_count)) {
        view->scarce = true;
        return VIEW_NONE;
    }
    view->op[view->op_count] = op;
    return view->op_count++;
}

static onx_str plain_domain(onx_bytes domain)
{
    const onx_str d = onx_view(domain);
    return onx_str_is(d, "ai.onnx") ? onx_str_of("") : d;
}

/* The model function that the node calls, VIEW_NONE if it calls none. */
static uint32_t function_of(const cli_view *view, const onx_node *node)
{
    const onx_model *m = onx_doc_model(view->doc);
    const onx_str domain = plain_domain(node->domain), name = onx_view(node->op_type);
    CLI_TABLE_EACH (&view->function_table, cli_table_hash(&view->function_table, domain, name), i) {
        const onx_function *f = m->functions[i];
        if (onx_str_equal(plain_domain(f->domain), domain) && onx_str_equal(onx_view(f->name), name) &&
            onx_str_equal(onx_view(f->overload), onx_view(onx_node_more(node)->overload)))
            return i;
    }
    return VIEW_NONE;
}

enum { ROWS_MOST = 4 };

static void add_inputs(cli_view *view, view_scope *s, const onx_node *node, uint32_t box, uint32_t op)
{
    uint32_t rows = 0, more = 0;
    const uint32_t constant = view_constant_row(view, node);
    if (constant && ++rows)
        view_push(view, &s->rows, constant);
    view_push(view, &s->box_inputs, node->input_count);
    for (uint32_t i = 0; i < node->input_count && !view->scarce; i++) {
        const onx_str name = onx_view(node->input[i]);
        if (!name.len) {
            view_push(view, &s->inputs, VIEW_NONE);
            continue;
        }
        const uint32_t value = resolve(view, s, view_string(view, name));
        view_push(view, &s->inputs, value);
        if (view->scarce)
            return;
        if (get(&s->value_box, value) != VIEW_NONE)
            add_edge(view, s, get(&s->value_box, value), box, value);
        else if (rows == ROWS_MOST)
            more++;
        else if (get(&s->value_tensor, value) != VIEW_NONE && ++rows)
            view_push(view, &s->rows,
                      view_weight_row(view, op == VIEW_NONE ? NULL : view->op[op], i,
                                      view->tensor[get(&s->value_tensor, value)].tensor));
    }
    if (more)
        view_push(view, &s->rows, view_format(view, "and %u more", more));
    view_push(view, &s->box_rows, rows + (more > 0));
}

static uint32_t build_graph(cli_view *view, view_scope_kind kind, const onx_graph *graph, uint32_t parent,
                            uint32_t parent_box);

/* A graph in an attribute of the first node whose attributes are not counted yet. */
static void add_subgraph(cli_view *view, view_scope *s, uint32_t name, const onx_graph *graph)
{
    const uint32_t box = s->box_attributes.count;
    const uint32_t inner = build_graph(view, VIEW_SUBGRAPH, graph, s->number, box);
    if (inner == VIEW_NONE)
        return;
    view_push(view, &s->inner, name);
    view_push(view, &s->inner, inner);
    for (uint32_t i = 0; i < view->scope[inner]->captured.count && !view->scarce; i++) {
        const uint32_t value = resolve(view, s, get(&view->scope[inner]->captured, i));
        if (!view->scarce && get(&s->value_box, value) != VIEW_NONE)
            add_edge(view, s, get(&s->value_box, value), box, value);
    }
}

static void add_node(cli_view *view, view_scope *s, uint32_t index)
{
    const onx_node *node = s->node[index];
    const uint32_t box = s->first_node + index, op = operator_of(view, s, node), function = function_of(view, node);
    const uint32_t inner = s->inner.count, attributes = s->attributes.count;
    view_push(view, &s->box_op, op);
    add_inputs(view, s, node, box, op);
    view_push(view, &s->box_outputs, node->output_count);
    for (uint32_t i = 0; i < node->output_count; i++)
        view_push(view, &s->outputs,
                  onx_view(node->output[i]).len ? bound(view, view_string(view, onx_view(node->output[i]))).value
                                                : VIEW_NONE);
    view_attributes(view, s, node, add_subgraph);
    view_push(view, &s->box_attributes, s->attributes.count - attributes);
    if (function != VIEW_NONE) {
        view_push(view, &s->inner, view_string(view, onx_view(node->op_type)));
        view_push(view, &s->inner, view->function_scope[function]);
    }
    view_push(view, &s->box_inner, (s->inner.count - inner) / 2);
}

/* Fills the node columns for boxes that are not nodes. */
static void add_bare(cli_view *view, view_scope *s)
{
    view_push(view, &s->box_op, VIEW_NONE);
    view_push(view, &s->box_rows, 0);
    view_push(view, &s->box_inputs, 0);
    view_push(view, &s->box_outputs, 0);
    view_push(view, &s->box_attributes, 0);
    view_push(view, &s->box_inner, 0);
}

static void add_results(cli_view *view, view_scope *s)
{
    const uint32_t count = s->graph ? s->graph->output_count : s->function->output_count;
    for (uint32_t i = 0; i < count && !view->scarce; i++) {
        const onx_str name = onx_view(s->graph ? s->graph->output[i]->name : s->function->output[i]);
        const uint32_t value = resolve(view, s, view_string(view, name));
        if (view->scarce)
            return;
        if (get(&s->value_box, value) == VIEW_NONE) {
            const uint32_t weight = add_box(view, s, VIEW_INITIALIZER, value);
            set(&s->value_box, value, weight);
        }
        add_edge(view, s, get(&s->value_box, value), add_box(view, s, VIEW_OUTPUT, value), value);
    }
}

static void infer_types(cli_view *view, view_scope *s)
{
    const onx_kind kind = s->graph ? ONX_KIND_GRAPH : ONX_KIND_FUNCTION;
    const void *message = s->graph ? (const void *)s->graph : (const void *)s->function;
    for (uint32_t i = 0; view->infer && i < s->value_name.count && !view->scarce; i++) {
        const onx_type *type = onx_infer_type_of(view->infer, kind, message, view->string[get(&s->value_name, i)]);
        if (type)
            set(&s->value_type, i, type_string(view, type));
    }
}

static void fill_scope(cli_view *view, view_scope *s)
{
    const uint32_t mark = view->undo_count;
    define(view, s);
    for (uint32_t i = 0; i < s->first_node; i++)
        add_bare(view, s);
    for (uint32_t i = 0; i < s->node_count && !view->scarce; i++)
        add_node(view, s, i);
    add_results(view, s);
    while (!view->scarce && s->box_op.count < s->box_kind.count)
        add_bare(view, s);
    infer_types(view, s);
    if (s->kind != VIEW_GRAPH) /* names of the main graph are visible in training graphs */
        unbind_to(view, mark);
}

static uint32_t build_graph(cli_view *view, view_scope_kind kind, const onx_graph *graph, uint32_t parent,
                            uint32_t parent_box)
{
    view_scope *s = add_scope(view, kind);
    if (!s)
        return VIEW_NONE;
    s->graph = graph;
    s->parent = parent;
    s->parent_box = parent_box;
    s->node = graph->node;
    s->node_count = graph->node_count;
    fill_scope(view, s);
    return s->number;
}

/* ---- places ---- */

/* Widths are estimated for the fonts of the page: 8 pixels per character in titles, 7 in rows. */
static onx_layout_node size_of(const cli_view *view, const view_scope *s, uint32_t box, const uint32_t *row)
{
    enum { TITLE = 8, ROW = 7, SIDES = 22, HEIGHT = 26, LINE = 15, LEAST = 44, MOST = 260, OPENER = 16 };
    const bool node = get(&s->box_kind, box) == VIEW_NODE;
    const onx_str title = node ? onx_view(s->node[get(&s->box_value, box)]->op_type)
                               : view->string[get(&s->value_name, s->box_value.at[box])];
    const unsigned columns = cli_columns(title);
    unsigned width = SIDES + TITLE * (columns < 100 ? columns : 100);
    if (get(&s->box_inner, box))
        width += OPENER;
    for (uint32_t i = 0; i < get(&s->box_rows, box); i++) {
        const unsigned wide = cli_columns(view->string[row[i]]);
        width = SIDES + 6 + ROW * wide > width ? SIDES + 6 + ROW * wide : width;
    }
    width = width < LEAST ? LEAST : width > MOST ? MOST : width;
    const unsigned height = HEIGHT + (get(&s->box_rows, box) ? LINE * get(&s->box_rows, box) + 4 : 0);
    return (onx_layout_node){ .width = width, .height = node ? height : HEIGHT - 2, .parent = ONX_LAYOUT_NONE };
}

static onx_status place(cli_view *view, view_scope *s)
{
    const uint32_t count = s->box_kind.count, edges = s->edge_from.count;
    onx_layout_node *nodes = calloc(count + 1u, sizeof *nodes);
    onx_layout_edge *arrows = calloc(edges + 1u, sizeof *arrows);
    onx_status status = nodes && arrows ? ONX_OK : ONX_E_MEMORY;
    view->scarce = status != ONX_OK;
    uint32_t row = 0;
    for (uint32_t i = 0; status == ONX_OK && i < count; i++) {
        nodes[i] = size_of(view, s, i, view_rows_from(s, row));
        row += get(&s->box_rows, i);
    }
    for (uint32_t i = 0; status == ONX_OK && i < edges; i++)
        arrows[i] = (onx_layout_edge){ get(&s->edge_from, i), get(&s->edge_to, i) };
    if (status == ONX_OK)
        status = onx_layout_new(view->call->cx, nodes, count, arrows, edges, NULL, &s->layout);
    free(nodes);
    free(arrows);
    return status;
}

/* ---- models ---- */

static void build_functions(cli_view *view, const onx_model *m)
{
    view->function_scope = calloc(m->functions_count + 1u, sizeof *view->function_scope);
    view->scarce = view->scarce || !view->function_scope;
    for (uint32_t i = 0; i < m->functions_count && !view->scarce; i++) {
        const onx_function *f = m->functions[i];
        view_scope *s = add_scope(view, VIEW_FUNCTION);
        if (!s ||
            !cli_table_add(&view->function_table,
                           cli_table_hash(&view->function_table, plain_domain(f->domain), onx_view(f->name)), i)) {
            view->scarce = true;
            return;
        }
        view->function_scope[i] = s->number;
        s->function = f;
        s->node = f->node;
        s->node_count = f->node_count;
    }
    for (uint32_t i = 0; i < m->functions_count && !view->scarce; i++)
        fill_scope(view, view->scope[view->function_scope[i]]);
}

static void build_training(cli_view *view, uint32_t index, const onx_graph *graph, bool initializes)
{
    const uint32_t scope = graph ? build_graph(view, VIEW_TRAINING, graph, VIEW_NONE, VIEW_NONE) : VIEW_NONE;
    if (scope == VIEW_NONE)
        return;
    view->scope[scope]->training = index;
    view->scope[scope]->initializes = initializes;
}

onx_status cli_view_build(cli_view *view)
{
    const onx_model *m = onx_doc_model(view->doc);
    view->string_table.cx = view->op_table.cx = view->function_table.cx = view->call->cx;
    ONX_TRY(onx_arena_new(view->call->cx, &view->arena));
    (void)view_string(view, onx_str_of(""));
    /* Functions come first, because nodes refer to their scopes. The page starts with the main graph. */
    build_functions(view, m);
    if (m->graph)
        (void)build_graph(view, VIEW_GRAPH, m->graph, VIEW_NONE, VIEW_NONE);
    for (uint32_t i = 0; i < m->training_info_count && !view->scarce; i++) {
        build_training(view, i, m->training_info[i]->initialization, true);
        build_training(view, i, m->training_info[i]->algorithm, false);
    }
    for (uint32_t i = 0; i < view->scope_count && !view->scarce; i++)
        ONX_TRY(place(view, view->scope[i]));
    return view->scarce ? ONX_E_MEMORY : ONX_OK;
}

const view_scope *cli_view_main(const cli_view *view)
{
    for (uint32_t i = 0; i < view->scope_count; i++)
        if (view->scope[i]->kind == VIEW_GRAPH)
            return view->scope[i];
    return NULL;
}

static void free_scope(view_scope *s)
{
    view_list *const lists[] = { &s->box_kind,    &s->box_value,      &s->box_op,    &s->box_rows,   &s->box_inputs,
                                 &s->box_outputs, &s->box_attributes, &s->box_inner, &s->rows,       &s->inputs,
                                 &s->outputs,     &s->attributes,     &s->inner,     &s->value_name, &s->value_type,
                                 &s->value_box,   &s->value_tensor,   &s->value_doc, &s->edge_from,  &s->edge_to,
                                 &s->edge_value,  &s->captured };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->at);
    onx_layout_free(s->layout);
    free(s);
}

void cli_view_free(cli_view *view)
{
    for (uint32_t i = 0; i < view->scope_count; i++)
        free_scope(view->scope[i]);
    free(view->scope);
    free(view->string);
    free(view->string_table.slots);
    free(view->op_table.slots);
    free(view->function_table.slots);
    free(view->binding);
    free(view->undo);
    free(view->function_scope);
    free(view->tensor);
    free((void *)view->op);
    free(view->attribute_name.at);
    free(view->attribute_text.at);
    free(view->attribute_type.at);
    free(view->attribute_tensor.at);
    free(view->finding);
    free(view->profile);
    onx_arena_free(view->arena);
}
