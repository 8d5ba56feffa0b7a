/* cli_view_node.c - the attributes of nodes as text for the page, and finding the box of a diagnostic. */
#include "cli_view.h"

enum { LIST_MOST = 64, TEXT_MOST = 1800 };

/* ---- attributes ---- */

/* Up to LIST_MOST elements in the text syntax; `one` writes an element. */
static uint32_t list_text(cli_view *view, const void *values, uint32_t count,
                          int (*one)(char *buf, size_t size, const void *values, uint32_t i))
{
    char text[TEXT_MOST + 64];
    size_t n = (size_t)snprintf(text, sizeof text, "[");
    uint32_t i = 0;
    for (; i < count && i < LIST_MOST && n < TEXT_MOST - 96; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, i ? ", " : "");
        n += (size_t)one(text + n, sizeof text - n, values, i);
    }
    if (i < count)
        snprintf(text + n, sizeof text - n, ", ... %u in all]", count);
    else
        snprintf(text + n, sizeof text - n, "]");
    return view_format(view, "%s", text);
}

static int put_int(char *buf, size_t size, const void *values, uint32_t i)
{
    return snprintf(buf, size, "%lld", (long long)((const int64_t *)values)[i]);
}

static int put_float(char *buf, size_t size, const void *values, uint32_t i)
{
    return snprintf(buf, size, "%.9g", (double)((const float *)values)[i]);
}

static int put_text(char *buf, size_t size, const void *values, uint32_t i)
{
    const onx_str s = onx_view(((const onx_bytes *)values)[i]);
    return snprintf(buf, size, "\"%.*s%s\"", (int)(s.len < 80 ? s.len : 80), s.ptr ? s.ptr : "",
                    s.len > 80 ? "..." : "");
}

static uint32_t string_text(cli_view *view, onx_str s)
{
    if (s.len > TEXT_MOST)
        return view_format(view, "%.*s... %zu bytes in all", TEXT_MOST, s.ptr, s.len);
    return view_string(view, s);
}

static uint32_t types_text(cli_view *view, onx_type *const *types, uint32_t count)
{
    char text[TEXT_MOST];
    size_t n = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < count && n < sizeof text - 300; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, i ? ", " : "");
        const size_t room = sizeof text - n < 256 ? sizeof text - n : 256;
        (void)cli_type(types[i], text + n, room);
        n += strlen(text + n);
    }
    return view_format(view, "%s", text);
}

uint32_t view_value_text(cli_view *view, const onx_attribute *a)
{
    uint32_t n;
    const void *v;
    if ((v = onx_attribute_value(a, ONX_SLOT_I, &n)) != NULL)
        return view_format(view, "%lld", (long long)*(const int64_t *)v);
    if ((v = onx_attribute_value(a, ONX_SLOT_F, &n)) != NULL)
        return view_format(view, "%.9g", (double)*(const float *)v);
    if ((v = onx_attribute_value(a, ONX_SLOT_S, &n)) != NULL)
        return string_text(view, onx_view(*(const onx_bytes *)v));
    if ((v = onx_attribute_value(a, ONX_SLOT_INTS, &n)) != NULL)
        return list_text(view, v, n, put_int);
    if ((v = onx_attribute_value(a, ONX_SLOT_FLOATS, &n)) != NULL)
        return list_text(view, v, n, put_float);
    if ((v = onx_attribute_value(a, ONX_SLOT_STRINGS, &n)) != NULL)
        return list_text(view, v, n, put_text);
    if ((v = onx_attribute_value(a, ONX_SLOT_TP, &n)) != NULL)
        return types_text(view, v, 1);
    if ((v = onx_attribute_value(a, ONX_SLOT_TYPE_PROTOS, &n)) != NULL)
        return types_text(view, v, n);
    const onx_str reference = onx_view(onx_attribute_more(a)->ref_attr_name);
    if (reference.len)
        return view_format(view, "as @%.*s of the function", (int)(reference.len < 500 ? reference.len : 500),
                           reference.ptr);
    return 0;
}

static void add_attribute(cli_view *view, view_scope *s, const onx_attribute *a, uint32_t tensor)
{
    const char *type = onx_attribute_type_name((int32_t)onx_attribute_type_of(a));
    view_push(view, &s->attributes, view->attribute_name.count);
    view_push(view, &view->attribute_name, view_string(view, onx_view(a->name)));
    view_push(view, &view->attribute_text, view_value_text(view, a));
    view_push(view, &view->attribute_type, view_string(view, onx_str_of(type ? type : "")));
    view_push(view, &view->attribute_tensor, tensor);
}

static void add_tensors(cli_view *view, view_scope *s, const onx_attribute *a, onx_tensor *const *list, uint32_t count)
{
    enum { MOST = 16 };
    for (uint32_t i = 0; i < count && i < MOST && !view->scarce; i++)
        add_attribute(view, s, a, view_add_tensor(view, list[i]));
}

void view_attributes(cli_view *view, view_scope *s, const onx_node *node,
                     void (*inner)(cli_view *view, view_scope *scope, uint32_t name, const onx_graph *graph))
{
    for (uint32_t i = 0; i < node->attribute_count && !view->scarce; i++) {
        const onx_attribute *a = node->attribute[i];
        uint32_t graphs = 0, tensors = 0;
        onx_graph *const *g = onx_attribute_value(a, ONX_SLOT_G, &graphs);
        if (!g)
            g = onx_attribute_value(a, ONX_SLOT_GRAPHS, &graphs);
        onx_tensor *const *t = onx_attribute_value(a, ONX_SLOT_T, &tensors);
        if (!t)
            t = onx_attribute_value(a, ONX_SLOT_TENSORS, &tensors);
        for (uint32_t k = 0; g && k < graphs && !view->scarce; k++)
            inner(view, s, view_string(view, onx_view(a->name)), g[k]);
        if (t && tensors)
            add_tensors(view, s, a, t, tensors);
        else if (!g)
            add_attribute(view, s, a, VIEW_NONE);
    }
}

/* ---- findings ---- */

/* The state of following a path such as graph.node[3] "conv1" (Conv).then_branch.node[0]. */
typedef struct cursor {
    cli_view *view;
    onx_str rest;
    uint32_t scope, box;
} cursor;

static bool take(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    if (n > c->rest.len || memcmp(c->rest.ptr, word, n) != 0)
        return false;
    c->rest = onx_str_make(c->rest.ptr + n, c->rest.len - n);
    return true;
}

static bool take_text(cursor *c, onx_str text)
{
    if (!text.len || text.len > c->rest.len || memcmp(c->rest.ptr, text.ptr, text.len) != 0)
        return false;
    c->rest = onx_str_make(c->rest.ptr + text.len, c->rest.len - text.len);
    return true;
}

/* word[3] */
static bool take_index(cursor *c, const char *word, uint32_t *index)
{
    const cursor before = *c;
    uint64_t number = 0;
    if (take(c, word) && take(c, "[")) {
        size_t n = 0;
        while (n < c->rest.len && c->rest.ptr[n] >= '0' && c->rest.ptr[n] <= '9' && number < UINT32_MAX)
            number = number * 10 + (uint64_t)(c->rest.ptr[n++] - '0');
        c->rest = onx_str_make(c->rest.ptr + n, c->rest.len - n);
        if (n && number < UINT32_MAX && take(c, "]")) {
            *index = (uint32_t)number;
            return true;
        }
    }
    *c = before;
    return false;
}

/* Skips the label after a step: ' "conv1" (Conv)'. Names may contain quotes, so the label is compared with the node; if
 * it differs, it ends at the next quote. */
static void pass_label(cursor *c, char open, char close, onx_str name)
{
    const char begin[] = { ' ', open, 0 }, end[] = { close, 0 };
    if (!take(c, begin))
        return;
    if (!take_text(c, name)) {
        const char *at = memchr(c->rest.ptr, close, c->rest.len);
        const size_t n = at ? (size_t)(at - c->rest.ptr) : c->rest.len;
        c->rest = onx_str_make(c->rest.ptr + n, c->rest.len - n);
    }
    (void)take(c, end);
}

/* Enters the scope of the box that the path names. */
static bool enter(cursor *c)
{
    const view_scope *s = c->view->scope[c->scope];
    const onx_node *node = s->node[c->box - s->first_node];
    uint32_t index, from = 0;
    if (!s->box_inner.at[c->box])
        return false;
    for (uint32_t i = 0; i < c->box; i++)
        from += 2 * s->box_inner.at[i];
    if (take_index(c, ".attribute", &index) && index < node->attribute_count) {
        const onx_str name = onx_view(node->attribute[index]->name);
        pass_label(c, '"', '"', name);
        for (uint32_t k = 0; k < s->box_inner.at[c->box]; k++)
            if (onx_str_equal(c->view->string[s->inner.at[from + 2 * k]], name)) {
                c->scope = s->inner.at[from + 2 * k + 1];
                return take(c, ".g.") || take_index(c, ".graphs", &index);
            }
        return false;
    }
    for (uint32_t k = 0; k < s->box_inner.at[c->box]; k++) {
        const cursor before = *c;
        const onx_str name = c->view->string[s->inner.at[from + 2 * k]];
        c->scope = s->inner.at[from + 2 * k + 1];
        if ((take(c, ".") && take_text(c, name) && take(c, ".")))
            return true;
        *c = before;
        c->scope = s->inner.at[from + 2 * k + 1];
        if (take(c, " function ") && take_text(c, name) && take(c, " "))
            return true;
        *c = before;
    }
    return false;
}

/* The box of an input or output. Inputs that are drawn as weights have none. */
static uint32_t find_port(const cursor *c, view_box_kind kind, uint32_t index)
{
    const view_scope *s = c->view->scope[c->scope];
    const onx_graph *g = s->graph;
    const onx_function *f = s->function;
    const bool input = kind == VIEW_INPUT;
    if (index >= (input ? g ? g->input_count : f->input_count : g ? g->output_count : f->output_count))
        return VIEW_NONE;
    const onx_str name =
        onx_view(g ? (input ? g->input : g->output)[index]->name : (input ? f->input : f->output)[index]);
    for (uint32_t i = 0; i < s->box_kind.count; i++)
        if (s->box_kind.at[i] == (uint32_t)kind &&
            onx_str_equal(c->view->string[s->value_name.at[s->box_value.at[i]]], name))
            return i;
    return VIEW_NONE;
}

static bool begin(cursor *c)
{
    const onx_model *m = onx_doc_model(c->view->doc);
    uint32_t index;
    const bool function = take_index(c, "functions", &index) && index < m->functions_count;
    if (function)
        pass_label(c, '"', '"', onx_view(m->functions[index]->name));
    const bool training = !function && take_index(c, "training_info", &index);
    const bool initializes = training && take(c, ".initialization");
    if (!function && !(training ? initializes || take(c, ".algorithm") : take(c, "graph")))
        return false;
    for (c->scope = 0; c->scope < c->view->scope_count; c->scope++) {
        const view_scope *s = c->view->scope[c->scope];
        if (function   ? s->function == m->functions[index]
            : training ? s->kind == VIEW_TRAINING && s->training == index && s->initializes == initializes
                       : s->kind == VIEW_GRAPH)
            return take(c, ".");
    }
    return false;
}

/* Follows the path as far as possible. */
static void follow(cursor *c)
{
    uint32_t index;
    if (!begin(c))
        return;
    for (;;) {
        const view_scope *s = c->view->scope[c->scope];
        if (take_index(c, "input", &index)) {
            c->box = find_port(c, VIEW_INPUT, index);
            return;
        }
        if (take_index(c, "output", &index)) {
            c->box = find_port(c, VIEW_OUTPUT, index);
            return;
        }
        if (!take_index(c, "node", &index) || index >= s->node_count)
            return;
        c->box = s->first_node + index;
        pass_label(c, '"', '"', onx_view(s->node[index]->name));
        pass_label(c, '(', ')', onx_view(s->node[index]->op_type));
        const cursor before = *c;
        if (!enter(c)) {
            *c = before;
            return;
        }
        c->box = VIEW_NONE;
    }
}

void cli_view_find(cli_view *view, size_t first)
{
    for (size_t i = first; i < onx_diag_count(view->call->cx); i++) {
        const onx_diag *d = onx_diag_get(view->call->cx, i);
        cursor c = { .view = view, .rest = d->where.path, .scope = VIEW_NONE, .box = VIEW_NONE };
        if (view->doc)
            follow(&c);
        if (c.scope >= view->scope_count)
            c.scope = c.box = VIEW_NONE;
        /* marks that a finding was lost */
        const bool lost = d->status == ONX_E_MEMORY;
        if (lost || !CLI_GROW(view->finding, view->finding_count, view->finding_room)) {
            view->scarce = true;
            return;
        }
        view->finding[view->finding_count++] = (view_finding){ d, c.scope, c.box };
    }
}
